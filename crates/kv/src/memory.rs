//! The memory engine: for tests and throw-away databases.
//!
//! Every key keeps its versions, newest last. A transaction reads the newest version that is not
//! younger than its snapshot. A version that no open transaction can see is dropped by the commit
//! that replaces it, or, if a transaction could still see it then, when that transaction ends.
//!
//! A scan takes its rows from the shared map in chunks, so that the lock is taken once per chunk
//! and never while the caller looks at a row.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffer::{self, Buffer, Write};
use crate::conflict::{Log, Reads};
use crate::watch::Watches;
use crate::{Committed, Engine, Error, Flow, Range, Read, Scan, Txn, Watch, range};

/// The first chunk of a scan: many scans want a row or two.
const CHUNK_ROWS_MIN: usize = 8;
/// The largest chunk: past this the price of the lock no longer shows.
const CHUNK_ROWS_MAX: usize = 512;

type Bytes = Arc<[u8]>;
type Version = (u64, Option<Bytes>);
type Rows = BTreeMap<Bytes, Versions>;

#[derive(Debug, Default)]
struct State {
    rows: Rows,
    log: Log,
    version: u64,
    /// Keys that hold more than their newest value, by the version that made them so.
    stale: VecDeque<(u64, Bytes)>,
}

impl State {
    /// A transaction that read at `version` has ended.
    fn close(&mut self, version: u64) {
        self.log.closed(version);
        let oldest = self.log.oldest().unwrap_or(self.version);
        while self.stale.front().is_some_and(|(at, _)| *at <= oldest) {
            let Some((_, key)) = self.stale.pop_front() else { return };
            let Some(versions) = self.rows.get_mut(&key) else { continue };
            versions.prune(oldest);
            if versions.is_empty(oldest) {
                self.rows.remove(&key);
            }
        }
    }

    /// Puts a version on top of those under `key`.
    fn set(&mut self, key: &Bytes, value: Option<Bytes>, oldest: u64) {
        let version = (self.version, value);
        let versions = match self.rows.entry(Arc::clone(key)) {
            Entry::Vacant(vacant) => vacant.insert(Versions { newest: version, older: Vec::new() }),
            Entry::Occupied(occupied) => {
                let versions = occupied.into_mut();
                versions.push(version);
                versions.prune(oldest);
                versions
            }
        };
        if versions.is_empty(oldest) {
            self.rows.remove(key);
        } else if !versions.is_settled() {
            self.stale.push_back((self.version, Arc::clone(key)));
        }
    }
}

/// The values of one key. Almost always there is the newest one alone, which costs no room beside.
#[derive(Debug)]
struct Versions {
    newest: Version,
    /// Those that an open transaction may still see, newest last.
    older: Vec<Version>,
}

impl Versions {
    /// What a transaction that reads at `version` sees.
    fn visible(&self, version: u64) -> Option<&Bytes> {
        let seen = |(at, _): &&Version| *at <= version;
        let found =
            if seen(&&self.newest) { &self.newest } else { self.older.iter().rev().find(seen)? };
        found.1.as_ref()
    }

    /// Puts a version on top.
    fn push(&mut self, version: Version) {
        self.older.push(std::mem::replace(&mut self.newest, version));
    }

    /// Drops the versions that no transaction at `oldest` or later can see.
    fn prune(&mut self, oldest: u64) {
        if self.newest.0 <= oldest {
            self.older = Vec::new();
        } else {
            let first = self.older.iter().rposition(|(at, _)| *at <= oldest).unwrap_or(0);
            self.older.drain(..first);
        }
    }

    /// Whether nobody can see anything here.
    fn is_empty(&self, oldest: u64) -> bool {
        self.newest.1.is_none() && self.newest.0 <= oldest && self.older.is_empty()
    }

    /// Whether there is the newest value and nothing else.
    fn is_settled(&self) -> bool {
        self.newest.1.is_some() && self.older.is_empty()
    }
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
            closed: false,
            buffer: Buffer::default(),
            reads: Reads::default(),
        }))
    }

    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        buffer::check_key(key)?;
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
    closed: bool,
    buffer: Buffer,
    reads: Reads,
}

impl Drop for MemoryTxn {
    fn drop(&mut self) {
        if !self.closed {
            self.shared.state().close(self.version);
        }
    }
}

impl MemoryTxn {
    fn stored(&self, key: &[u8]) -> Option<Bytes> {
        self.shared.state().rows.get(key)?.visible(self.version).cloned()
    }

    /// The next rows of the snapshot in `range`, at most `count`, and whether these are all.
    fn chunk(
        &self,
        range: &Range,
        reverse: bool,
        count: usize,
    ) -> (VecDeque<(Bytes, Bytes)>, bool) {
        let mut chunk = VecDeque::new();
        if range.is_empty() {
            return (chunk, true);
        }
        let bounds =
            (Bound::Included(range.start.as_slice()), Bound::Excluded(range.end.as_slice()));
        let state = self.shared.state();
        let mut rows = state.rows.range::<[u8], _>(bounds);
        loop {
            let next = if reverse { rows.next_back() } else { rows.next() };
            let Some((key, versions)) = next else { return (chunk, true) };
            if let Some(value) = versions.visible(self.version)
                && !self.buffer.is_cleared(key)
            {
                chunk.push_back((Arc::clone(key), Arc::clone(value)));
                if chunk.len() == count {
                    return (chunk, false);
                }
            }
        }
    }

    /// Shows the rows of the snapshot with this transaction's writes on top, as long as `each`
    /// wants more. Returns the key of the last row shown, if `each` ended the walk.
    fn walk(
        &self,
        range: &Range,
        reverse: bool,
        rows_max: usize,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Option<Vec<u8>> {
        let mut left = range.clone();
        let mut count = CHUNK_ROWS_MIN.min(rows_max.max(1));
        let mut written = self.buffer.writes_in(range);
        let mut take = || if reverse { written.next_back() } else { written.next() };
        let mut write = take();
        loop {
            let (mut chunk, all) = self.chunk(&left, reverse, count);
            let last = chunk.back().map(|(key, _)| Arc::clone(key));
            loop {
                // Writes behind the last row of the chunk wait for the next chunk.
                let row = chunk.front();
                let order = match (row, write) {
                    (None, None) => break,
                    (None, Some(_)) if !all => break,
                    (None, Some(_)) => std::cmp::Ordering::Greater,
                    (Some(_), None) => std::cmp::Ordering::Less,
                    (Some((key, _)), Some((other, _))) if reverse => (**other).cmp(&**key),
                    (Some((key, _)), Some((other, _))) => (**key).cmp(&**other),
                };
                let row = if order.is_le() { chunk.pop_front() } else { None };
                let over = if order.is_ge() { write } else { None };
                let flow = show(row.as_ref(), over, each);
                if flow == Flow::Stop {
                    let key = over.map(|(key, _)| key.clone());
                    return key.or_else(|| row.map(|(key, _)| key.to_vec()));
                }
                if order.is_ge() {
                    write = take();
                }
            }
            let key = last.filter(|_| !all)?;
            if reverse {
                left.end = key.to_vec();
            } else {
                left.start = range::after(&key);
            }
            count = (count * 4).min(CHUNK_ROWS_MAX);
        }
    }
}

/// Shows one row: what is stored, or what the transaction wrote over it, unless it removed it.
fn show(
    row: Option<&(Bytes, Bytes)>,
    over: Option<(&Vec<u8>, &Write)>,
    each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
) -> Flow {
    let stored = row.map(|(_, value)| &**value);
    match (over, row) {
        (Some((key, Write::Put(value))), _) => each(key, value),
        (Some((key, Write::Add(delta))), _) => each(key, &buffer::add(stored, *delta)),
        (Some((_, Write::Del)), _) | (None, None) => Flow::Go,
        (None, Some((key, value))) => each(key, value),
    }
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
        if scan.range.is_empty() {
            return Ok(None);
        }
        if scan.rows_max == 0 || scan.bytes_max == 0 {
            return Ok(Some(scan.range.clone()));
        }
        let (mut rows, mut bytes) = (0, 0);
        let last = self.walk(&scan.range, scan.reverse, scan.rows_max, &mut |key, value| {
            rows += 1;
            bytes += key.len() + value.len();
            let flow = each(key, value);
            if rows < scan.rows_max && bytes < scan.bytes_max { flow } else { Flow::Stop }
        });
        let mut seen = scan.range.clone();
        let rest = last.and_then(|key| {
            let mut rest = scan.range.clone();
            if scan.reverse {
                rest.end.clone_from(&key);
                seen.start = key;
            } else {
                rest.start = range::after(&key);
                seen.end.clone_from(&rest.start);
            }
            if rest.is_empty() { None } else { Some(rest) }
        });
        if scan.read == Read::Serializable {
            self.reads.ranges.push(seen);
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

    fn commit(mut self: Box<Self>) -> Result<Committed, Error> {
        if self.buffer.is_empty() {
            return Ok(Committed { version: self.version });
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let conflict = state.log.conflicts(self.version, &self.reads);
        // From here on nobody needs the snapshot of this transaction.
        self.closed = true;
        state.close(self.version);
        if conflict {
            return Err(Error::Conflict);
        }
        state.version += 1;
        let version = state.version;
        let oldest = state.log.oldest().unwrap_or(version);
        for range in self.buffer.cleared() {
            for key in keys_in(&state.rows, &range) {
                state.set(&key, None, oldest);
            }
        }
        for (key, write) in self.buffer.writes() {
            let value: Option<Bytes> = match write {
                Write::Put(value) => Some(value.as_slice().into()),
                Write::Del => None,
                Write::Add(delta) => {
                    let stored = state.rows.get(key.as_slice());
                    let stored = stored.and_then(|versions| versions.newest.1.clone());
                    Some(buffer::add(stored.as_deref(), *delta).into())
                }
            };
            state.set(&key.as_slice().into(), value, oldest);
        }
        let touched = self.buffer.touched();
        shared.watches.ring(touched.keys.iter().map(Vec::as_slice), &touched.ranges);
        state.log.committed(version, touched);
        Ok(Committed { version })
    }
}

fn keys_in(rows: &Rows, range: &Range) -> Vec<Bytes> {
    let bounds = (Bound::Included(range.start.as_slice()), Bound::Excluded(range.end.as_slice()));
    rows.range::<[u8], _>(bounds).map(|(key, _)| Arc::clone(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{conformance, faults, history, mirror};
    use kumiko_base::draw;

    fn make() -> Arc<dyn Engine> {
        Arc::new(Memory::new())
    }

    #[test]
    fn conforms() {
        conformance::run(&make);
    }

    /// Trivially alike; what it shows is that the programs run and that the mirror finds nothing
    /// where there is nothing.
    #[test]
    fn mirrors_itself() {
        mirror::run(100, &make, &make);
    }

    #[test]
    fn histories_are_serializable() {
        history::run(&make, 10);
    }

    #[test]
    fn histories_with_faults_are_serializable() {
        let seed = std::sync::atomic::AtomicU64::new(0);
        let make = || -> Arc<dyn Engine> {
            let seed = seed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Arc::new(faults::Faults::new(make(), seed, faults::Odds::every(10)))
        };
        history::run(&make, 10);
    }

    /// Whatever was written, deleted and looked at: when nobody looks any more, only the newest
    /// values are left.
    #[test]
    fn old_versions_go_when_nobody_can_see_them() {
        draw::check("old_versions_go_when_nobody_can_see_them", 500, |draw| {
            let engine = Memory::new();
            let mut open = Vec::new();
            for _ in 0..40 {
                match draw.below(4) {
                    0 => open.push(engine.begin().unwrap()),
                    1 if !open.is_empty() => drop(open.swap_remove(draw.index(open.len()))),
                    2 => {
                        let mut txn = engine.begin().unwrap();
                        txn.clear(&Range::new(vec![draw.below(5) as u8], vec![9])).unwrap();
                        txn.commit().unwrap();
                    }
                    _ => {
                        let mut txn = engine.begin().unwrap();
                        let key = [draw.below(5) as u8];
                        if draw.one_in(3) { txn.del(&key) } else { txn.put(&key, b"x") }.unwrap();
                        txn.commit().unwrap();
                    }
                }
            }
            open.clear();
            let state = engine.shared.state();
            assert!(state.stale.is_empty());
            assert!(state.rows.values().all(Versions::is_settled));
        });
    }
}
