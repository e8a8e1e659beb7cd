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

    /// Adds `delta` under `key`, on top of the earlier writes of this buffer.
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

    /// The cleared ranges as pairs of start and end, without copying them.
    pub fn clears(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        self.cleared.iter().map(|(start, end)| (start.as_slice(), end.as_slice()))
    }

    /// The ranges that conflict although nothing was written there.
    pub fn conflicts(&self) -> &[Range] {
        &self.conflicts
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

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::Kind;
    use kumiko_base::draw;

    /// Against a map that does each thing at once: the buffer over an old state gives the new one.
    #[test]
    fn a_buffer_over_a_state_is_the_next_state() {
        draw::check("a_buffer_over_a_state_is_the_next_state", 4_000, |draw| {
            let mut old: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            for _ in 0..draw.below(8) {
                old.insert(vec![draw.below(9) as u8], draw.bytes(10));
            }
            let mut new = old.clone();
            let mut buffer = Buffer::default();
            for _ in 0..draw.below(12) {
                let key = vec![draw.below(9) as u8];
                match draw.below(4) {
                    0 => {
                        let value = draw.bytes(10);
                        buffer.put(&key, &value).unwrap();
                        new.insert(key, value);
                    }
                    1 => {
                        buffer.del(&key).unwrap();
                        new.remove(&key);
                    }
                    2 => {
                        let delta = draw.bits() as i64;
                        buffer.add(&key, delta).unwrap();
                        let sum = add(new.get(&key).map(Vec::as_slice), delta);
                        new.insert(key, sum);
                    }
                    _ => {
                        let range = Range::new(key, vec![draw.below(9) as u8]);
                        buffer.clear(&range).unwrap();
                        new.retain(|key, _| !range.contains(key));
                    }
                }
            }
            let mut applied = old.clone();
            let cleared: Vec<Range> = buffer.cleared().collect();
            assert!(cleared.windows(2).all(|pair| pair[0].end < pair[1].start), "{cleared:?}");
            applied.retain(|key, _| !cleared.iter().any(|range| range.contains(key)));
            for (key, write) in buffer.writes() {
                match write {
                    Write::Put(value) => drop(applied.insert(key.clone(), value.clone())),
                    Write::Del => drop(applied.remove(key)),
                    Write::Add(delta) => {
                        let sum = add(applied.get(key).map(Vec::as_slice), *delta);
                        applied.insert(key.clone(), sum);
                    }
                }
            }
            assert_eq!(applied, new);
            for key in 0..9 {
                let key = vec![key];
                let seen = match buffer.get(&key) {
                    None => old.get(&key).cloned(),
                    Some(Write::Put(value)) => Some(value),
                    Some(Write::Del) => None,
                    Some(Write::Add(delta)) => Some(add(old.get(&key).map(Vec::as_slice), delta)),
                };
                assert_eq!(seen.as_ref(), new.get(&key));
            }
        });
    }

    #[test]
    fn sums() {
        // value before, delta, value after
        type Sum<'a> = (Option<&'a [u8]>, i64, [u8; 8]);
        let rows: [Sum; 6] = [
            (None, 1, [1, 0, 0, 0, 0, 0, 0, 0]),
            (Some(&[255]), 1, [0, 1, 0, 0, 0, 0, 0, 0]),
            (Some(&[]), -1, [255; 8]),
            (Some(&[255; 8]), 1, [0; 8]),
            (Some(&[1, 0, 0, 0, 0, 0, 0, 0, 9, 9]), 1, [2, 0, 0, 0, 0, 0, 0, 0]),
            (Some(&i64::MAX.to_le_bytes()), 1, i64::MIN.to_le_bytes()),
        ];
        for (before, delta, after) in rows {
            assert_eq!(add(before, delta), after, "{before:?} + {delta}");
        }
    }

    #[test]
    fn limits_on_both_sides() {
        let mut buffer = Buffer::default();
        let long = vec![1; KEY_BYTES_MAX];
        assert!(buffer.put(&long, &vec![0; VALUE_BYTES_MAX]).is_ok());
        let longer = vec![1; KEY_BYTES_MAX + 1];
        for error in [
            buffer.put(&longer, b"").unwrap_err(),
            buffer.del(&longer).unwrap_err(),
            buffer.add(&longer, 1).unwrap_err(),
            buffer.put(b"a", &vec![0; VALUE_BYTES_MAX + 1]).unwrap_err(),
        ] {
            assert_eq!(error.kind(), Kind::TooLarge);
        }
        assert_eq!(buffer.put(b"", b"").unwrap_err().kind(), Kind::Invalid);
        assert_eq!(buffer.put(b"\xFF", b"").unwrap_err().kind(), Kind::Invalid);
        assert!(buffer.put(b"\xFE\xFF", b"").is_ok());
        // A range may end right behind the longest key.
        assert!(buffer.clear(&Range::one(&long)).is_ok());
        assert!(buffer.clear(&Range::new(b"a".as_slice(), vec![1; KEY_BYTES_MAX + 2])).is_err());
        let left = TXN_BYTES_MAX - buffer.size();
        for _ in 0..left / VALUE_BYTES_MAX {
            buffer.put(b"k", &vec![0; VALUE_BYTES_MAX - 1]).unwrap();
        }
        buffer.put(b"k", &vec![0; left % VALUE_BYTES_MAX - 1]).unwrap();
        assert_eq!(buffer.size(), TXN_BYTES_MAX);
        assert_eq!(buffer.del(b"k").unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(buffer.size(), TXN_BYTES_MAX, "what was refused does not count");
    }
}
