//! The writes of a transaction before its commit, laid over a snapshot.
//!
//! A buffer holds at most one entry per key, in key order. Cleared ranges come first in time for
//! the keys below them: a put after a clear stands in the buffer, a put before it is dropped.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::ops::Bound;

use kumiko_base::limits::{KEY_BYTES_MAX, TXN_BYTES_MAX, VALUE_BYTES_MAX};

use crate::conflict::Writes;
use crate::{Error, Range};

/// What happens to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// It gets this value.
    Put(Vec<u8>),
    /// It is removed.
    Del,
    /// This is added to whatever number is there at the commit.
    Add(i64),
}

/// The writes of one transaction.
#[derive(Debug, Default)]
pub struct Buffer {
    writes: BTreeMap<Vec<u8>, Write>,
    /// Disjoint, by start.
    cleared: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Ranges that conflict although nothing was written there.
    conflicts: Vec<Range>,
    size: usize,
}

impl Buffer {
    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.cleared.is_empty() && self.conflicts.is_empty()
    }

    /// The bytes of all writes, as the limit counts them.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Puts `value` under `key`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        check_key(key)?;
        check_size("value", value.len(), VALUE_BYTES_MAX)?;
        self.grow(key.len() + value.len())?;
        self.writes.insert(key.to_vec(), Write::Put(value.to_vec()));
        Ok(())
    }

    /// Removes `key`.
    pub fn del(&mut self, key: &[u8]) -> Result<(), Error> {
        check_key(key)?;
        self.grow(key.len())?;
        self.writes.insert(key.to_vec(), Write::Del);
        Ok(())
    }

    /// Adds `delta` under `key`; `cleared` and earlier writes of this buffer are taken into account.
    pub fn add(&mut self, key: &[u8], delta: i64) -> Result<(), Error> {
        check_key(key)?;
        self.grow(key.len() + 8)?;
        let next = match self.writes.get(key) {
            Some(Write::Put(value)) => Write::Put(add(Some(value), delta)),
            Some(Write::Del) => Write::Put(add(None, delta)),
            Some(Write::Add(earlier)) => Write::Add(earlier.wrapping_add(delta)),
            None if self.is_cleared(key) => Write::Put(add(None, delta)),
            None => Write::Add(delta),
        };
        self.writes.insert(key.to_vec(), next);
        Ok(())
    }

    /// Removes every key of `range`.
    pub fn clear(&mut self, range: &Range) -> Result<(), Error> {
        check_range(range)?;
        self.grow(range.start.len() + range.end.len())?;
        if range.is_empty() {
            return Ok(());
        }
        let inside: Vec<Vec<u8>> = self.writes_in(range).map(|(key, _)| key.clone()).collect();
        for key in inside {
            self.writes.remove(&key);
        }
        self.add_cleared(range);
        Ok(())
    }

    /// Counts `range` as written.
    pub fn conflict(&mut self, range: &Range) -> Result<(), Error> {
        check_range(range)?;
        self.grow(range.start.len() + range.end.len())?;
        if !range.is_empty() {
            self.conflicts.push(range.clone());
        }
        Ok(())
    }

    /// What the buffer says about `key`: `None` if it says nothing.
    pub fn get(&self, key: &[u8]) -> Option<Write> {
        match self.writes.get(key) {
            Some(write) => Some(write.clone()),
            None if self.is_cleared(key) => Some(Write::Del),
            None => None,
        }
    }

    /// Whether a clear of this transaction removed what the snapshot holds under `key`.
    pub fn is_cleared(&self, key: &[u8]) -> bool {
        self.cleared
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(key)))
            .next_back()
            .is_some_and(|(_, end)| key < end.as_slice())
    }

    /// The writes to single keys inside `range`, in key order.
    pub fn writes_in(&self, range: &Range) -> btree_map::Range<'_, Vec<u8>, Write> {
        let (start, end) = (range.start.as_slice(), range.end.as_slice());
        // A range whose end is before its start makes the map panic.
        let end = end.max(start);
        self.writes.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)))
    }

    /// All writes to single keys, in key order.
    pub fn writes(&self) -> &BTreeMap<Vec<u8>, Write> {
        &self.writes
    }

    /// The cleared ranges, disjoint, in key order. They happen before the writes.
    pub fn cleared(&self) -> impl Iterator<Item = Range> + '_ {
        self.cleared.iter().map(|(start, end)| Range::new(start.as_slice(), end.as_slice()))
    }

    /// The ranges that conflict although nothing was written there.
    pub fn conflicts(&self) -> &[Range] {
        &self.conflicts
    }

    /// The same as pairs of start and end, without copying them.
    pub fn clears(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        self.cleared.iter().map(|(start, end)| (start.as_slice(), end.as_slice()))
    }

    /// What other transactions must not have read.
    pub fn touched(&self) -> Writes {
        Writes {
            keys: self.writes.keys().cloned().collect(),
            ranges: self.cleared().chain(self.conflicts.iter().cloned()).collect(),
        }
    }

    fn add_cleared(&mut self, range: &Range) {
        let mut joined = range.clone();
        let near: Vec<Vec<u8>> = self
            .cleared
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(range.end.as_slice())))
            .rev()
            .take_while(|(_, end)| range.start <= **end)
            .map(|(start, _)| start.clone())
            .collect();
        for start in near {
            if let Some(end) = self.cleared.remove(&start) {
                joined.start = joined.start.min(start);
                joined.end = joined.end.max(end);
            }
        }
        self.cleared.insert(joined.start, joined.end);
    }

    fn grow(&mut self, by: usize) -> Result<(), Error> {
        check_size("transaction", self.size + by, TXN_BYTES_MAX)?;
        self.size += by;
        Ok(())
    }
}

/// The little-endian sum that `Txn::add` promises.
pub fn add(value: Option<&[u8]>, delta: i64) -> Vec<u8> {
    let mut bytes = [0; 8];
    if let Some(value) = value {
        for (to, from) in bytes.iter_mut().zip(value) {
            *to = *from;
        }
    }
    i64::from_le_bytes(bytes).wrapping_add(delta).to_le_bytes().to_vec()
}

/// Refuses keys that no engine takes.
pub fn check_key(key: &[u8]) -> Result<(), Error> {
    check_size("key", key.len(), KEY_BYTES_MAX)?;
    match key.first() {
        None => Err(Error::Invalid("a key must not be empty".into())),
        Some(0xFF) => Err(Error::Invalid("a key must not start with FF".into())),
        Some(_) => Ok(()),
    }
}

/// Refuses ranges whose bounds are longer than any key.
pub fn check_range(range: &Range) -> Result<(), Error> {
    check_size("key", range.start.len(), KEY_BYTES_MAX + 1)?;
    check_size("key", range.end.len(), KEY_BYTES_MAX + 1)
}

fn check_size(what: &'static str, size: usize, size_max: usize) -> Result<(), Error> {
    if size_max < size { Err(Error::TooLarge { what, size, size_max }) } else { Ok(()) }
}
