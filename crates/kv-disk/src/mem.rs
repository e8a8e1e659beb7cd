//! The memtable: what was committed since the last table was written, in key order.
//!
//! Every key keeps the versions that some snapshot may still see, newest first. Readers take a
//! read lock for a moment and leave with counted references, so a long scan never holds a writer
//! up. A memtable that is full is frozen and written out as tables; from then on it only serves
//! the transactions that began before.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::clears::Clears;
use crate::clears::Span;
use crate::frame::Op;

/// A value, or that the key is removed.
pub(crate) type Slot = Option<Arc<[u8]>>;

/// What a place says about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: ask the next older place.
    Nothing,
    /// The key is removed.
    Gone,
    /// This is its value.
    Value(Vec<u8>),
}

#[derive(Debug)]
struct Versions {
    version: u64,
    slot: Slot,
    /// Newest first.
    older: Vec<(u64, Slot)>,
}

impl Versions {
    fn at(&self, snapshot: u64) -> Option<(u64, &Slot)> {
        if self.version <= snapshot {
            return Some((self.version, &self.slot));
        }
        self.older.iter().find(|(at, _)| *at <= snapshot).map(|(at, slot)| (*at, slot))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Rows {
    map: BTreeMap<Arc<[u8]>, Versions>,
    pub(crate) clears: Clears,
}

/// One memtable.
#[derive(Debug)]
pub(crate) struct Mem {
    /// The logs that hold its commits, oldest first.
    pub(crate) logs: Vec<u64>,
    /// The newest version in it.
    pub(crate) version: AtomicU64,
    rows: RwLock<Rows>,
    bytes: AtomicUsize,
    clears: AtomicBool,
}

/// What a row costs beside its key and value: a tree slot and two allocations.
const ROW_BYTES: usize = 96;

impl Mem {
    pub(crate) fn new(logs: Vec<u64>) -> Mem {
        assert!(!logs.is_empty(), "a memtable is behind a log");
        let (bytes, clears) = (AtomicUsize::new(0), AtomicBool::new(false));
        Mem { logs, version: AtomicU64::new(0), rows: RwLock::default(), bytes, clears }
    }

    /// The same memtable behind these logs.
    pub(crate) fn with_logs(mut self, logs: Vec<u64>) -> Mem {
        assert!(!logs.is_empty(), "a memtable is behind a log");
        self.logs = logs;
        self
    }

    /// The same memtable, whose next commits go to another log.
    pub(crate) fn followed_by(mut self, log: u64) -> Mem {
        self.logs.push(log);
        self
    }

    /// The log that its next commits go to.
    pub(crate) fn log(&self) -> u64 {
        *self.logs.last().expect("a memtable is behind a log")
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it cleared any range.
    pub(crate) fn has_clears(&self) -> bool {
        self.clears.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Rows> {
        self.rows.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the writes of one commit; clears come first. Versions that no snapshot from `keep`
    /// on can see are dropped on the way.
    pub(crate) fn apply<'a>(&self, version: u64, keep: u64, ops: impl Iterator<Item = Op<'a>>) {
        let mut rows = self.write();
        let mut grown = 0;
        for op in ops {
            match op {
                Op::Put(key, value) => {
                    grown += rows.set(key, version, Some(value.into()), keep);
                }
                Op::Del(key) => grown += rows.set(key, version, None, keep),
                Op::Clear(start, end) => {
                    // Before the clear is to be seen, so that no reader overlooks it.
                    self.clears.store(true, Ordering::Relaxed);
                    rows.clears.add(start, end, version, keep);
                    grown += start.len() + end.len() + ROW_BYTES;
                }
            }
        }
        self.bytes.fetch_add(grown, Ordering::Relaxed);
        self.version.store(version, Ordering::Relaxed);
    }

    /// Takes the writes of one commit back, which nobody has seen.
    pub(crate) fn undo<'a>(&self, version: u64, ops: impl Iterator<Item = Op<'a>>) {
        let mut rows = self.write();
        for op in ops {
            match op {
                Op::Put(key, _) | Op::Del(key) => rows.unset(key, version),
                Op::Clear(start, end) => rows.clears.undo(start, end, version),
            }
        }
    }

    /// What `snapshot` sees of `key`.
    pub(crate) fn get(&self, key: &[u8], snapshot: u64) -> Found {
        let rows = self.read();
        let row = rows.map.get(key).and_then(|versions| versions.at(snapshot));
        let cleared = if rows.clears.is_empty() {
            None
        } else {
            rows.clears.covering(key, snapshot).map(|(version, _, _)| version)
        };
        match (row, cleared) {
            (None, None) => Found::Nothing,
            (Some((version, Some(value))), cleared) if cleared.unwrap_or(0) <= version => {
                Found::Value(value.to_vec())
            }
            _ => Found::Gone,
        }
    }

    /// The fragment that hides `key` in older places from `snapshot`.
    pub(crate) fn covering(&self, key: &[u8], snapshot: u64) -> Option<Span> {
        let rows = self.read();
        let (_, start, end) = rows.clears.covering(key, snapshot)?;
        Some((start.to_vec(), end.to_vec()))
    }

    /// The next rows between the bounds that `snapshot` sees, at most `count`, in the order of the
    /// scan. A removed key is a row without a value.
    pub(crate) fn batch(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        reverse: bool,
        snapshot: u64,
        count: usize,
        batch: &mut Vec<(Arc<[u8]>, Slot)>,
    ) {
        let rows = self.read();
        let mut range = rows.map.range::<[u8], _>(bounds);
        let clears = !rows.clears.is_empty();
        while batch.len() < count {
            let next = if reverse { range.next_back() } else { range.next() };
            let Some((key, versions)) = next else { return };
            let Some((version, slot)) = versions.at(snapshot) else { continue };
            let cleared = clears && rows.is_cleared(key, version, snapshot);
            batch.push((Arc::clone(key), if cleared { None } else { slot.clone() }));
        }
    }
}

impl Rows {
    /// The newest state of every key that a commit wrote and no later clear removed.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let clears = !self.clears.is_empty();
        self.map.iter().filter_map(move |(key, versions)| {
            if clears && self.is_cleared(key, versions.version, u64::MAX) {
                return None;
            }
            Some((key.as_ref(), versions.slot.as_deref()))
        })
    }

    fn is_cleared(&self, key: &[u8], version: u64, snapshot: u64) -> bool {
        self.clears.covering(key, snapshot).is_some_and(|(at, _, _)| version < at)
    }

    /// Sets a key and says by how many bytes the rows grew.
    fn set(&mut self, key: &[u8], version: u64, slot: Slot, keep: u64) -> usize {
        let size = slot.as_ref().map_or(0, |value| value.len());
        match self.map.entry(key.into()) {
            Entry::Vacant(entry) => {
                entry.insert(Versions { version, slot, older: Vec::new() });
                key.len() + size + ROW_BYTES
            }
            Entry::Occupied(mut entry) => {
                let versions = entry.get_mut();
                let before = std::mem::replace(&mut versions.slot, slot);
                versions.older.insert(0, (versions.version, before));
                versions.version = version;
                if version <= keep {
                    versions.older.clear();
                }
                let seen = versions.older.iter().position(|(at, _)| *at <= keep);
                let kept = seen.map_or(versions.older.len(), |last| last + 1);
                versions.older.truncate(kept);
                // What is dropped is not counted back: the log holds it until the next table.
                size + ROW_BYTES / 2
            }
        }
    }

    fn unset(&mut self, key: &[u8], version: u64) {
        let Some(versions) = self.map.get_mut(key) else { return };
        if versions.version == version {
            if versions.older.is_empty() {
                self.map.remove(key);
                return;
            }
            (versions.version, versions.slot) = versions.older.remove(0);
        } else {
            versions.older.retain(|(at, _)| *at != version);
        }
    }
}
