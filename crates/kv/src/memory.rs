//! The memory engine: for tests and throw-away databases.
//!
//! Every key keeps its versions, newest last. A transaction reads the newest version that is not
//! younger than its snapshot; versions that no open transaction can see are dropped by the commit
//! that writes the key again.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffer::{self, Buffer, Write};
use crate::conflict::{Log, Reads};
use crate::watch::Watches;
use crate::{Committed, Engine, Error, Flow, Range, Read, Scan, Txn, Watch, range};

type Versions = Vec<(u64, Option<Arc<[u8]>>)>;

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<Vec<u8>, Versions>,
    log: Log,
    version: u64,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    watches: Watches,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An engine that keeps everything in memory and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

impl Memory {
    /// An empty keyspace.
    pub fn new() -> Memory {
        Memory::default()
    }
}

impl Engine for Memory {
    fn begin(&self) -> Result<Box<dyn Txn>, Error> {
        let mut state = self.shared.state();
        let version = state.version;
        state.log.opened(version);
        Ok(Box::new(MemoryTxn {
            shared: Arc::clone(&self.shared),
            version,
            buffer: Buffer::default(),
            reads: Reads::default(),
        }))
    }

    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        Ok(self.shared.watches.watch(key))
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(())
    }

    fn name(&self) -> &'static str {
        "memory"
    }
}

struct MemoryTxn {
    shared: Arc<Shared>,
    version: u64,
    buffer: Buffer,
    reads: Reads,
}

impl Drop for MemoryTxn {
    fn drop(&mut self) {
        self.shared.state().log.closed(self.version);
    }
}

impl MemoryTxn {
    /// The snapshot's next row at or after (or, in reverse, before) the bounds.
    fn next_stored(&self, range: &Range, reverse: bool) -> Option<(Vec<u8>, Arc<[u8]>)> {
        if range.is_empty() {
            return None;
        }
        let state = self.shared.state();
        let bounds =
            (Bound::Included(range.start.as_slice()), Bound::Excluded(range.end.as_slice()));
        let mut rows = state.rows.range::<[u8], _>(bounds);
        let next = || if reverse { rows.next_back() } else { rows.next() };
        std::iter::from_fn(next).find_map(|(key, versions)| {
            if self.buffer.is_cleared(key) {
                return None;
            }
            Some((key.clone(), visible(versions, self.version)?))
        })
    }

    fn stored(&self, key: &[u8]) -> Option<Arc<[u8]>> {
        visible(self.shared.state().rows.get(key)?, self.version)
    }

    /// The next row of the snapshot with this transaction's writes on top.
    fn next_row(&self, range: &Range, reverse: bool) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut left = range.clone();
        loop {
            let stored = self.next_stored(&left, reverse);
            let mut written = self.buffer.writes_in(&left);
            let written = if reverse { written.next_back() } else { written.next() };
            let (key, write) = match (&stored, written) {
                (None, None) => return None,
                (Some((key, value)), None) => return Some((key.clone(), value.to_vec())),
                (Some((key, value)), Some((wkey, _))) if before(key, wkey, reverse) => {
                    return Some((key.clone(), value.to_vec()));
                }
                (_, Some((wkey, write))) => (wkey.clone(), write.clone()),
            };
            let under = stored.filter(|(skey, _)| *skey == key).map(|(_, value)| value);
            match write {
                Write::Put(value) => return Some((key, value)),
                Write::Add(delta) => return Some((key, buffer::add(under.as_deref(), delta))),
                Write::Del => {}
            }
            if reverse {
                left.end = key;
            } else {
                left.start = range::after(&key);
            }
        }
    }
}

fn before(a: &[u8], b: &[u8], reverse: bool) -> bool {
    if reverse { b < a } else { a < b }
}

fn visible(versions: &Versions, version: u64) -> Option<Arc<[u8]>> {
    versions.iter().rev().find(|(at, _)| *at <= version)?.1.clone()
}

impl Txn for MemoryTxn {
    fn get(&mut self, key: &[u8], read: Read) -> Result<Option<Vec<u8>>, Error> {
        buffer::check_key(key)?;
        let written = self.buffer.get(key);
        // What this transaction wrote itself cannot be changed by another before its commit.
        let depends = !matches!(written, Some(Write::Put(_) | Write::Del));
        if depends && read == Read::Serializable {
            self.reads.keys.push(key.to_vec());
        }
        Ok(match written {
            Some(Write::Put(value)) => Some(value),
            Some(Write::Del) => None,
            Some(Write::Add(delta)) => Some(buffer::add(self.stored(key).as_deref(), delta)),
            None => self.stored(key).map(|value| value.to_vec()),
        })
    }

    fn visit(
        &mut self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error> {
        buffer::check_range(&scan.range)?;
        let mut left = scan.range.clone();
        let (mut rows, mut bytes) = (0, 0);
        let mut rest = None;
        while rows < scan.rows_max && bytes < scan.bytes_max {
            let Some((key, value)) = self.next_row(&left, scan.reverse) else {
                left.start = left.end.clone();
                break;
            };
            rows += 1;
            bytes += key.len() + value.len();
            let flow = each(&key, &value);
            if scan.reverse {
                left.end = key;
            } else {
                left.start = range::after(&key);
            }
            if flow == Flow::Stop {
                break;
            }
        }
        if !left.is_empty() {
            rest = Some(left.clone());
        }
        if scan.read == Read::Serializable && !scan.range.is_empty() {
            let mut seen = scan.range.clone();
            match (&rest, scan.reverse) {
                (None, _) => {}
                (Some(rest), false) => seen.end.clone_from(&rest.start),
                (Some(rest), true) => seen.start.clone_from(&rest.end),
            }
            if !seen.is_empty() {
                self.reads.ranges.push(seen);
            }
        }
        Ok(rest)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.buffer.put(key, value)
    }

    fn del(&mut self, key: &[u8]) -> Result<(), Error> {
        self.buffer.del(key)
    }

    fn clear(&mut self, range: &Range) -> Result<(), Error> {
        self.buffer.clear(range)
    }

    fn add(&mut self, key: &[u8], delta: i64) -> Result<(), Error> {
        self.buffer.add(key, delta)
    }

    fn read_conflict(&mut self, range: &Range) -> Result<(), Error> {
        buffer::check_range(range)?;
        if !range.is_empty() {
            self.reads.ranges.push(range.clone());
        }
        Ok(())
    }

    fn write_conflict(&mut self, range: &Range) -> Result<(), Error> {
        self.buffer.conflict(range)
    }

    fn size(&self) -> usize {
        self.buffer.size()
    }

    fn commit(self: Box<Self>) -> Result<Committed, Error> {
        let mut state = self.shared.state();
        if self.buffer.is_empty() {
            return Ok(Committed { version: self.version });
        }
        if state.log.conflicts(self.version, &self.reads) {
            return Err(Error::Conflict);
        }
        state.version += 1;
        let version = state.version;
        let oldest = state.log.oldest().unwrap_or(version);
        for range in self.buffer.cleared() {
            clear(&mut state.rows, &range, version, oldest);
        }
        for (key, write) in self.buffer.writes() {
            let versions = state.rows.entry(key.clone()).or_default();
            let value: Option<Arc<[u8]>> = match write {
                Write::Put(value) => Some(value.as_slice().into()),
                Write::Del => None,
                Write::Add(delta) => {
                    let newest = versions.last().and_then(|(_, value)| value.as_deref());
                    Some(buffer::add(newest, *delta).into())
                }
            };
            set(versions, version, value, oldest);
            if versions.is_empty() {
                state.rows.remove(key);
            }
        }
        let touched = self.buffer.touched();
        self.shared.watches.ring(touched.keys.iter().map(Vec::as_slice), &touched.ranges);
        state.log.committed(version, touched);
        Ok(Committed { version })
    }
}

fn clear(rows: &mut BTreeMap<Vec<u8>, Versions>, range: &Range, version: u64, oldest: u64) {
    let bounds = (Bound::Included(range.start.as_slice()), Bound::Excluded(range.end.as_slice()));
    let mut gone = Vec::new();
    for (key, versions) in rows.range_mut::<[u8], _>(bounds) {
        set(versions, version, None, oldest);
        if versions.is_empty() {
            gone.push(key.clone());
        }
    }
    for key in gone {
        rows.remove(&key);
    }
}

/// Adds a version and drops those that nobody can see any more.
fn set(versions: &mut Versions, version: u64, value: Option<Arc<[u8]>>, oldest: u64) {
    versions.push((version, value));
    let first = versions.iter().rposition(|(at, _)| *at <= oldest).unwrap_or(0);
    versions.drain(..first);
    if versions.len() == 1 && versions[0].1.is_none() {
        versions.clear();
    }
}
