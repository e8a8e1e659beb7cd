//! Why a key shows what it shows.

use std::fmt;

use super::{DbId, Live};
use crate::Error;
use crate::entry::{Entry, Shape, Stamp};
use crate::index::Index;
use crate::sign::Owner;

/// What [`Live::explain`] tells about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The type that shows, if one does.
    pub shape: Option<Shape>,
    /// Every type that holds something, with the newest stamp of what it shows.
    pub types: Vec<(Shape, Stamp)>,
    /// The newest stamp of anything.
    pub newest: Stamp,
    /// Nothing at or below this exists.
    pub floor: Stamp,
    /// The expiry register: its stamp, and the time or zero.
    pub expiry: (Stamp, i64),
    /// Whether that time has come.
    pub expired: bool,
    /// Counter columns: name, counted up and down, and how far each was reset.
    pub columns: Vec<Column>,
    /// Each owner that was asked about: its newest stamp for the key, and whether it has our state.
    pub owners: Vec<(Owner, Option<Stamp>, bool)>,
    /// Whether commands changed it since the last fold.
    pub unfolded: bool,
}

/// A column of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Whose it is.
    pub name: Vec<u8>,
    /// Counted up and down.
    pub counted: (i64, i64),
    /// How much of each a delete or an overwrite had seen.
    pub reset: (i64, i64),
}

impl Live {
    /// Tells why a key shows what it shows, and which of `others` agree. Nothing if the key was
    /// never replicated.
    ///
    /// # Errors
    ///
    /// `Missing` or `Encoding` if a state is damaged.
    pub fn explain(
        &self,
        id: DbId,
        key: &[u8],
        now_ms: u64,
        others: &[(Owner, &Index)],
    ) -> Result<Option<Explanation>, Error> {
        let Some(view) = self.state(id).get(key)? else { return Ok(None) };
        let entry = Entry::decode(view)?;
        let mut owners = Vec::new();
        for (owner, index) in others {
            let theirs = index.get(key)?;
            let stamp = theirs.map(Entry::decode).transpose()?.map(|it| it.newest());
            owners.push((*owner, stamp, theirs == Some(view)));
        }
        Ok(Some(Explanation {
            shape: entry.shape()?,
            types: entry.shapes()?,
            newest: entry.newest(),
            floor: entry.floor(),
            expiry: entry.expiry(),
            expired: entry.is_expired(now_ms),
            columns: entry.column_list()?,
            owners,
            unfolded: self.databases[id.0 as usize].touched.keys.contains_key(key),
        }))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.shape, self.expired) {
            (_, true) => writeln!(to, "shows nothing: it expired at {}", self.expiry.1)?,
            (None, _) => writeln!(to, "shows nothing: all was removed, floor {}", self.floor)?,
            (Some(shape), _) if self.types.len() == 1 => {
                writeln!(to, "shows a {}: nothing else is above the floor", shape.kind().word())?;
            }
            (Some(shape), _) => {
                writeln!(to, "shows a {}: of the types, it changed last", shape.kind().word())?;
            }
        }
        for (shape, stamp) in &self.types {
            writeln!(to, "{} changed at {stamp}", shape.kind().word())?;
        }
        writeln!(to, "newest stamp {}, floor {}", self.newest, self.floor)?;
        if self.expiry.0 != 0 {
            writeln!(to, "expiry {} set at {}", self.expiry.1, self.expiry.0)?;
        }
        for it in &self.columns {
            let name = String::from_utf8_lossy(&it.name);
            let ((up, down), (reset_up, reset_down)) = (it.counted, it.reset);
            writeln!(to, "counted by {name}: +{up} -{down}, reset +{reset_up} -{reset_down}")?;
        }
        for (owner, stamp, same) in &self.owners {
            match stamp {
                None => writeln!(to, "{owner} does not have it")?,
                Some(stamp) if *same => writeln!(to, "{owner} has the same, newest {stamp}")?,
                Some(stamp) => writeln!(to, "{owner} differs, newest {stamp}")?,
            }
        }
        if self.unfolded {
            writeln!(to, "commands changed it since; that is not published yet")?;
        }
        Ok(())
    }
}
