//! The replicated state of one key, and its merge.
//!
//! An entry is a product of small lattices, one for each thing that can happen to a key:
//!
//! | part | what it is | join |
//! |---|---|---|
//! | `newest` | the newest stamp of anything below | larger |
//! | `floor` | nothing at or below it exists: a delete, an overwrite | larger |
//! | `expiry` | a register: when the key expires | newer stamp, then the longer life |
//! | `text` | a register: the string | newer stamp, then larger bytes |
//! | `columns` | what each writer counted up and down | larger, per column |
//! | `resets` | what of each column a delete or an overwrite had seen | larger, per column |
//! | `hash`, `list` | registers by field or by position; a removed one has no value | newer stamp, then removed, then larger bytes |
//! | `set`, `zset` | per member the newest add (and its score) and the newest removal | larger of each |
//!
//! A join of products is the product of the joins, and cutting everything at the floor commutes
//! with it, so the merge is commutative, associative and idempotent whatever the entries are. No
//! part is ever decided by comparing whole entries. `merge` is the only place where two states meet.
//!
//! What a reader sees is a function of the entry and the time ([`Entry::shown`]): nothing if the
//! key has expired; else, of the types that hold something, the one that changed last.
//!
//! As a cell an entry is `[value type utime expire]`, and one element more where that is not enough
//! (`cells`). Stamps are milliseconds of a hybrid clock: a writer takes
//! `max(wall clock, newest + 1)`.

mod cells;
mod collect;
mod counter;
mod fold;
mod join;
#[cfg(test)]
mod laws;
mod position;
mod record;
mod shown;

use crate::Error;
use crate::cell::Cell;
use crate::index::Index;

pub use cells::EXTENDED;
pub(crate) use cells::{plain_text, write_plain};
pub(crate) use fold::{Fold, Found};
pub(crate) use record::{text_of, write_text};
pub use shown::{Shape, Shown};

/// A stamp: milliseconds since the epoch on a hybrid clock. Zero is before everything.
pub type Stamp = i64;

/// The longest text taken from a peer's cell.
pub(crate) const TEXT_MAX: usize = crate::live::VALUE_BYTES_MAX;

/// The replicated state of one key. See the module's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub(crate) newest: Stamp,
    pub(crate) floor: Stamp,
    /// (stamp, milliseconds); a time of zero means that the key stays.
    pub(crate) expiry: (Stamp, i64),
    pub(crate) text: Option<(Stamp, Cell)>,
    /// The newest stamp of a count.
    pub(crate) counted: Stamp,
    pub(crate) columns: Index,
    pub(crate) resets: Index,
    pub(crate) hash: Index,
    pub(crate) set: Index,
    pub(crate) zset: Index,
    pub(crate) list: Index,
}

impl Entry {
    /// The newest stamp in this entry.
    pub fn newest(&self) -> Stamp {
        self.newest
    }

    /// The stamp at or below which nothing exists.
    pub fn floor(&self) -> Stamp {
        self.floor
    }

    /// The expiry register: its stamp, and the time in milliseconds or zero.
    pub fn expiry(&self) -> (Stamp, i64) {
        self.expiry
    }

    /// Whether nothing but a floor is left, so that the entry may be collected one day.
    pub fn is_bare(&self) -> bool {
        let indexes = [&self.columns, &self.hash, &self.set, &self.zset, &self.list];
        self.text.is_none() && indexes.iter().all(|it| it.is_empty())
    }

    /// The stamp for a change that happens at `now_ms`.
    pub(crate) fn next_stamp(&self, now_ms: u64) -> Stamp {
        i64::try_from(now_ms).unwrap_or(i64::MAX - 1).max(self.newest + 1)
    }
}

/// Joins two states of one key. The order and the grouping of merges never matter.
///
/// # Errors
///
/// `Encoding` if a record of `theirs` is malformed, `Missing` if something that differs is not here.
pub fn merge(own: &Entry, theirs: &Entry) -> Result<Entry, Error> {
    join::merge(own, theirs)
}
