//! The journal's other half: replaying records, and snapshots that do not stop writers.

use std::collections::VecDeque;
use std::ops::Bound;

use super::record::{Change, Reader, Writer};
use super::{Db, DbId, Error, Live, image, table};
use crate::cell::message;
use crate::index::Index;

/// The states that are still to be written.
type States = VecDeque<(DbId, Index)>;

/// Where the running snapshot stands.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) number: u64,
    database: u32,
    cursor: u64,
    /// Keys changed all at once, which a walk cannot follow.
    pub(crate) broken: bool,
    /// The replicated states, once all values are written, and the last key written of the first.
    entries: Option<(States, Vec<u8>)>,
}

impl Snapshot {
    /// The number of this snapshot if it has yet to write the key with this hash.
    pub(crate) fn covers(&self, id: DbId, hash: u64) -> Option<u64> {
        let place = (id.0, table::position(hash));
        ((self.database, self.cursor) <= place).then_some(self.number)
    }
}

/// What a step of a snapshot gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotStep {
    /// A batch to store; there is more.
    Part(Vec<u8>),
    /// The last batch to store, which may be empty. The snapshot is whole.
    Last(Vec<u8>),
    /// A database was emptied or exchanged. Throw away what was stored, and begin again.
    Restart,
}

impl Live {
    /// Applies a batch of records that [`Live::take_changes`] or a snapshot wrote. Nothing expires
    /// meanwhile; what is due goes with the next command.
    ///
    /// To recover from a snapshot: replay its parts, then every batch of the journal since it
    /// began, with its number as `from_snapshot`.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the bytes are not records, or do not fit what is there. What came before the
    /// broken record was applied.
    pub fn replay(&mut self, batch: &[u8], from_snapshot: Option<u64>) -> Result<(), Error> {
        let mut reader = Reader::new(batch)?;
        self.shared.replay_ms = Some(0);
        let result = self.replay_all(&mut reader, from_snapshot);
        self.shared.replay_ms = None;
        result
    }

    fn replay_all(&mut self, reader: &mut Reader<'_>, from: Option<u64>) -> Result<(), Error> {
        let mut id = None;
        while let Some((change, covered_by)) = reader.next()? {
            if covered_by.is_none() || covered_by != from {
                self.replay_one(&mut id, &change)?;
            }
        }
        Ok(())
    }

    fn replay_one(&mut self, id: &mut Option<DbId>, change: &Change<'_>) -> Result<(), Error> {
        match *change {
            Change::Database { name } => {
                *id = Some(self.open(name));
                return Ok(());
            }
            Change::Time { ms } => {
                self.shared.replay_ms = Some(ms);
                return Ok(());
            }
            _ => {}
        }
        let id = id.ok_or(Error::Corrupt { reason: "a record comes before its database" })?;
        if let Change::Swap { name } = *change {
            let other = self.open(name);
            self.swap(id, other, 0);
            return Ok(());
        }
        // Time zero: nothing is due, so that only the records decide.
        self.db(id, 0).apply(change).map_err(|error| match error {
            Error::Corrupt { .. } | Error::TooLong { .. } => error,
            _ => Error::Corrupt { reason: "a record does not fit what is there" },
        })
    }

    /// Begins a snapshot; one that was running is given up. `number` must be new and not zero.
    pub fn snapshot_begin(&mut self, number: u64) {
        self.shared.snapshot =
            Some(Snapshot { number, database: 0, cursor: 0, broken: false, entries: None });
    }

    /// Writes the next part of the snapshot: records of whole values and of replicated entries,
    /// about `bytes_max` of them.
    ///
    /// Writers go on between the steps; their records know what the snapshot has yet to write.
    /// Without a running snapshot there is nothing to write and the answer is an empty last part.
    pub fn snapshot_step(&mut self, bytes_max: usize, now_ms: u64) -> SnapshotStep {
        let Some(mut at) = self.shared.snapshot.take() else {
            return SnapshotStep::Last(Vec::new());
        };
        if at.broken {
            return SnapshotStep::Restart;
        }
        let mut writer = Writer::default();
        self.snapshot_values(&mut at, &mut writer, bytes_max, now_ms);
        if (at.database as usize) < self.databases.len() {
            self.shared.snapshot = Some(at);
            return SnapshotStep::Part(writer.take());
        }
        if at.entries.is_none() {
            at.entries = Some((self.snapshot_states(now_ms), Vec::new()));
        }
        if self.snapshot_entries(&mut at, &mut writer, bytes_max, now_ms) {
            self.shared.snapshot = Some(at);
            return SnapshotStep::Part(writer.take());
        }
        SnapshotStep::Last(writer.take())
    }

    fn snapshot_values(
        &self,
        at: &mut Snapshot,
        writer: &mut Writer,
        bytes_max: usize,
        now_ms: u64,
    ) {
        while let Some(base) = self.databases.get(at.database as usize) {
            let hashing = &self.shared.hashing;
            at.cursor = base.table.scan(
                at.cursor,
                64,
                |it| hashing.of(it.key()),
                |it| {
                    let image = image::encode(it);
                    let put =
                        Change::Put { key: it.key(), expire_ms: it.expire_ms(), image: &image };
                    writer.add(&base.name, now_ms, &put, None);
                },
            );
            if at.cursor == 0 {
                at.database += 1;
            }
            if bytes_max <= writer.size() {
                break;
            }
        }
    }

    /// The replicated states with everything folded, so that the values need no folding again.
    fn snapshot_states(&mut self, now_ms: u64) -> States {
        let mut states = VecDeque::new();
        if self.shared.settings.replication {
            for index in 0..self.databases.len() {
                let id = DbId(index as u32);
                // A damaged state is reported by the next publish; its values are written anyway.
                if self.fold(id, now_ms).is_ok() {
                    states.push_back((id, self.state(id).clone()));
                }
            }
        }
        states
    }

    /// True if there is more.
    fn snapshot_entries(
        &self,
        at: &mut Snapshot,
        writer: &mut Writer,
        bytes_max: usize,
        now_ms: u64,
    ) -> bool {
        let (states, last) = at.entries.as_mut().expect("the states were taken");
        while let Some((id, state)) = states.front() {
            let name = &self.databases[id.0 as usize].name;
            let lower = if last.is_empty() { Bound::Unbounded } else { Bound::Excluded(&last[..]) };
            let entries = state.range(lower, Bound::Unbounded);
            let mut next = None;
            for it in entries.into_iter().flatten().flatten() {
                let Ok(key) = it.key_bytes() else { continue };
                let mut cells = Vec::new();
                message::encode(&it.value.to_cell(), &mut cells);
                writer.add(name, now_ms, &Change::Entry { key: &key, cells: &cells }, None);
                if bytes_max <= writer.size() {
                    next = Some(key.into_owned());
                    break;
                }
            }
            if let Some(key) = next {
                *last = key;
                return true;
            }
            writer.add(name, now_ms, &Change::Folded, None);
            last.clear();
            states.pop_front();
        }
        false
    }
}

impl Db<'_> {
    /// Applies one record.
    fn apply(&mut self, change: &Change<'_>) -> Result<(), Error> {
        match *change {
            Change::Set { key, value, expire_ms } => {
                self.set_raw(self.hash(key), key, value, expire_ms);
                self.changed(change);
            }
            Change::Write { key, value } => self.write(key, value)?,
            Change::Append { key, tail } => {
                self.append(key, tail)?;
            }
            Change::SetRange { key, offset, bytes } => {
                self.set_range(key, usize::try_from(offset).unwrap_or(usize::MAX), bytes)?;
            }
            Change::Incr { key, by } => {
                self.incr(key, by)?;
            }
            Change::Del { key } => {
                self.del(key);
            }
            Change::Expire { key, at_ms } => {
                if at_ms == 0 {
                    self.persist(key);
                } else {
                    self.expire_at(key, at_ms);
                }
            }
            Change::HashSet { key, field, value } => {
                self.hset(key, field, value)?;
            }
            Change::HashDel { key, field } => {
                self.hdel(key, field)?;
            }
            Change::SetAdd { key, member } => {
                self.sadd(key, member)?;
            }
            Change::SetDel { key, member } => {
                self.srem(key, member)?;
            }
            Change::ZsetSet { key, member, score } => {
                self.zset_raw(key, member, score)?;
                self.changed(change);
            }
            Change::ZsetDel { key, member } => {
                self.zrem(key, member)?;
            }
            Change::ListInsert { .. } | Change::ListSet { .. } | Change::ListDel { .. } => {
                self.apply_list(change)?;
            }
            Change::Rename { key, to } => {
                self.rename_raw(key, to);
                self.changed(change);
            }
            Change::Put { key, expire_ms, image } => self.put(key, image, expire_ms)?,
            Change::Flush => {
                self.flush_raw();
                self.changed(change);
            }
            Change::Entry { key, cells } => self.replay_entry(key, cells)?,
            Change::Folded => self.base.touched = super::Touched::default(),
            Change::Collect { before_ms } => self.replay_collect(before_ms)?,
            Change::Swap { .. }
            | Change::Database { .. }
            | Change::Snapshot { .. }
            | Change::Time { .. } => {}
        }
        Ok(())
    }

    /// Applies one record about a list; others are none of its business.
    fn apply_list(&mut self, change: &Change<'_>) -> Result<(), Error> {
        match *change {
            Change::ListInsert { key, index, value } => {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                if index == 0 {
                    self.push(key, super::End::Front, value)?;
                } else {
                    self.linsert(key, index, value)?;
                }
            }
            Change::ListSet { key, index, value } => {
                self.lset(key, usize::try_from(index).unwrap_or(usize::MAX), value)?;
            }
            Change::ListDel { key, index, count } => {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                self.lremove(key, index, usize::try_from(count).unwrap_or(usize::MAX))?;
            }
            _ => {}
        }
        Ok(())
    }
}
