//! The join of two entries, in time that grows with what differs.

use super::record::{Column, Member, Record, Register, Scored, bad};
use super::{Entry, Stamp};
use crate::Error;
use crate::cell::{Cell, View};
use crate::index::{Batch, Decision, Difference, Index};

/// The longer life: never expiring first.
fn lasts(at_ms: i64) -> i64 {
    if at_ms == 0 { i64::MAX } else { at_ms }
}

pub(super) fn merge(own: &Entry, theirs: &Entry) -> Result<Entry, Error> {
    let floor = own.floor.max(theirs.floor);
    let (a, b) = (own.expiry, theirs.expiry);
    let expiry = if (a.0, lasts(a.1)) < (b.0, lasts(b.1)) { b } else { a };
    let text = match (&own.text, &theirs.text) {
        (Some(a), Some(b)) if (a.0, a.1.bytes()) < (b.0, b.1.bytes()) => Some(b.clone()),
        (Some(a), _) => Some(a.clone()),
        (None, b) => b.clone(),
    };
    let counted = own.counted.max(theirs.counted);
    let newest = own.newest.max(theirs.newest);
    let floors = (own.floor, theirs.floor);
    Ok(Entry {
        newest,
        floor,
        expiry: if expiry.0 <= floor { (0, 0) } else { expiry },
        text: text.filter(|it| floor < it.0),
        counted: if counted <= floor { 0 } else { counted },
        columns: join::<Column>(
            &own.columns,
            &theirs.columns,
            newest,
            floors,
            super::counter::NAME,
        )?,
        resets: join::<Column>(&own.resets, &theirs.resets, newest, floors, super::counter::NAME)?,
        hash: join::<Register<'_>>(&own.hash, &theirs.hash, newest, floors, usize::MAX)?,
        set: join::<Member<'_>>(&own.set, &theirs.set, newest, floors, usize::MAX)?,
        zset: join::<Scored<'_>>(&own.zset, &theirs.zset, newest, floors, usize::MAX)?,
        list: join::<Register<'_>>(&own.list, &theirs.list, newest, floors, usize::MAX)?,
    })
}

/// Anything that can make records of a lifetime: one name for the four kinds.
pub(super) trait Kind {
    /// The record of this kind.
    type Of<'a>: Record<'a>;
}

impl Kind for Register<'_> {
    type Of<'a> = Register<'a>;
}

impl Kind for Member<'_> {
    type Of<'a> = Member<'a>;
}

impl Kind for Scored<'_> {
    type Of<'a> = Scored<'a>;
}

impl Kind for Column {
    type Of<'a> = Column;
}

fn cell_of<'a>(record: impl Record<'a>) -> Cell {
    Cell::write(|writer| record.write(writer))
}

/// Joins two Indexes of records. Records that only we have were checked when they came.
fn join<K: Kind>(
    own: &Index,
    theirs: &Index,
    newest: Stamp,
    floors: (Stamp, Stamp),
    key_max: usize,
) -> Result<Index, Error> {
    let floor = floors.0.max(floors.1);
    if theirs.is_empty() || own == theirs {
        return if floors.0 == floor { Ok(own.clone()) } else { cut::<K>(own, floor) };
    }
    let joined = own.merge(theirs, &mut |it: &Difference<'_>| {
        let Some(their_view) = it.theirs else { return Ok(Decision::Own) };
        let key = it.key_bytes()?;
        if key_max < key.len() {
            return bad("a key inside the entry is too long");
        }
        let record = read::<K>(&key, their_view, newest)?;
        let Some(own_view) = it.own else {
            return Ok(match record.above(floor) {
                None => Decision::Own,
                Some(left) if left == record && is_written(record, their_view) => Decision::Theirs,
                Some(left) => Decision::Value(cell_of(left)),
            });
        };
        let joined = K::Of::read(&key, own_view)?.join(record);
        Ok(match joined.above(floor) {
            None => Decision::Remove,
            Some(left) => Decision::Value(cell_of(left)),
        })
    })?;
    if floors.0 == floor { Ok(joined) } else { cut::<K>(&joined, floor) }
}

/// Whether a record's own bytes are the ones we would write.
fn is_written<'a>(record: impl Record<'a>, view: View<'_>) -> bool {
    cell_of(record).view() == view
}

fn read<'a, K: Kind>(key: &[u8], view: View<'a>, newest: Stamp) -> Result<K::Of<'a>, Error> {
    let record = K::Of::read(key, view)?;
    if newest < record.newest() {
        return bad("a record is newer than its entry");
    }
    Ok(record)
}

/// Without what lies at or below `floor`.
pub(super) fn cut<K: Kind>(index: &Index, floor: Stamp) -> Result<Index, Error> {
    if index.is_empty() {
        return Ok(index.clone());
    }
    let mut batch = Batch::new();
    for it in index {
        let it = it?;
        let key = it.key_bytes()?;
        let record = K::Of::read(&key, it.value)?;
        match record.above(floor) {
            None => batch.remove(&key),
            Some(left) if left == record => {}
            Some(left) => batch.put(it.key, |writer| left.write(writer))?,
        }
    }
    index.update(&batch)
}

/// The records of `new` that `old` does not have: joined to `old`, they give `new`.
fn fresh(old: &Index, new: &Index) -> Result<Index, Error> {
    let mut batch = Batch::new();
    old.diff(new, &mut |it| {
        if let Some(value) = it.theirs {
            batch.put(it.key, |writer| writer.view(value))?;
        }
        Ok(())
    })?;
    Index::new().update(&batch)
}

impl Entry {
    /// The least entry that, merged into `old`, gives this one, which must be above `old`.
    ///
    /// # Errors
    ///
    /// `Missing` if something that differs is not here.
    pub fn delta(&self, old: &Entry) -> Result<Entry, Error> {
        Ok(Entry {
            newest: self.newest,
            floor: self.floor,
            expiry: self.expiry,
            text: self.text.clone(),
            counted: self.counted,
            columns: fresh(&old.columns, &self.columns)?,
            resets: fresh(&old.resets, &self.resets)?,
            hash: fresh(&old.hash, &self.hash)?,
            set: fresh(&old.set, &self.set)?,
            zset: fresh(&old.zset, &self.zset)?,
            list: fresh(&old.list, &self.list)?,
        })
    }

    /// Raises the floor and cuts what lies at or below it.
    pub(super) fn raise(&mut self, floor: Stamp) -> Result<(), Error> {
        let bare = Entry { newest: floor, floor, ..Entry::default() };
        *self = merge(self, &bare)?;
        Ok(())
    }
}
