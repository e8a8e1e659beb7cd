//! What the parts of an open store share, and who may touch what when.
//!
//! Three locks, taken in this order and held for moments only:
//!
//! * `queue`: commits in the order of their versions, and the memtable they go to.
//! * `tables`: changes to the set of tables, one at a time. Held while the manifest is written.
//! * `front`: what a new transaction sees, and the conflicts of open ones.
//!
//! `wal` belongs to whoever leads a group of commits; nobody waits for another lock while holding
//! it, except for none.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use kumiko_kv::Error;
use kumiko_kv::conflict::Log;
use kumiko_kv::watch::Watches;

use crate::Options;
use crate::bloom;
use crate::cache::Cache;
use crate::clears::Span;
use crate::commit::Queue;
use crate::files::Files;
use crate::levels::{Levels, View};
use crate::manifest::Manifest;
use crate::mem::Mem;
use crate::wal::Wal;

/// What a new transaction sees.
#[derive(Debug)]
pub(crate) struct Front {
    /// The published version counts as open: a transaction may begin there at any time, and must
    /// then find the commits that are not published yet.
    pub(crate) log: Log,
    /// The newest version that is durable, as far as the settings promise it.
    published: u64,
    pub(crate) view: Arc<View>,
}

impl Front {
    pub(crate) fn new(published: u64, view: Arc<View>) -> Front {
        let mut log = Log::default();
        log.opened(published);
        Front { log, published, view }
    }

    pub(crate) fn published(&self) -> u64 {
        self.published
    }

    /// New transactions see `version` from now on.
    pub(crate) fn publish(&mut self, version: u64) {
        self.log.opened(version);
        self.log.closed(self.published);
        self.published = version;
    }

    /// The oldest version that anybody reads at, now or later.
    pub(crate) fn oldest(&self) -> u64 {
        self.log.oldest().expect("the published version counts as open")
    }
}

/// What changes together with the set of tables.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The first log that is not yet in tables.
    pub(crate) log: u64,
    pub(crate) version: u64,
    /// The keys that a compaction is rewriting.
    pub(crate) busy: Option<Span>,
}

/// Why background work is wanted.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: Mutex<bool>,
    wake: Condvar,
}

impl Signal {
    /// Wakes the thread that waits, now or when it waits next.
    pub(crate) fn raise(&self) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    /// Waits until the signal is raised or the time is over.
    pub(crate) fn wait(&self, timeout: Duration) {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wake.wait_timeout_while(raised, timeout, |raised| !*raised);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// Whether threads do the background work; otherwise the commits do it themselves.
    pub(crate) threads: bool,
    pub(crate) queue: Mutex<Queue>,
    /// Writers wait here while too many memtables wait to be written.
    pub(crate) room: Condvar,
    pub(crate) tables: Mutex<Tables>,
    pub(crate) front: Mutex<Front>,
    pub(crate) wal: Mutex<Wal>,
    /// The log that is written now; memtables of older logs may become tables.
    pub(crate) wal_id: AtomicU64,
    /// The next id of a log or table.
    pub(crate) ids: AtomicU64,
    pub(crate) cache: Arc<Cache>,
    pub(crate) watches: Watches,
    pub(crate) flush: Signal,
    pub(crate) compact: Signal,
    pub(crate) tick: Signal,
    /// Held by whoever writes a memtable out, and by whoever merges tables: one each.
    pub(crate) flushing: Mutex<()>,
    pub(crate) compacting: Mutex<()>,
    pub(crate) stop: AtomicBool,
    /// How many memtables wait to be written.
    pub(crate) frozen: AtomicUsize,
    /// How many commits wait for the next frame.
    pub(crate) gathered: AtomicUsize,
    /// How many tables are on level 0.
    pub(crate) zero: AtomicUsize,
    /// Held for as long as the store is open.
    pub(crate) _lock: Box<dyn Debug + Send + Sync>,
}

impl Store {
    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wal(&self) -> MutexGuard<'_, Wal> {
        self.wal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An id that no log or table has.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a new memtable; the old one waits to be written out. The queue is locked.
    pub(crate) fn freeze(&self, queue: &mut Queue) {
        let active = Arc::new(Mem::new(vec![self.next_id()]));
        let mut front = self.front();
        let mut frozen = vec![Arc::clone(&front.view.active)];
        frozen.extend(front.view.frozen.iter().cloned());
        let levels = Arc::clone(&front.view.levels);
        self.frozen.store(frozen.len(), Ordering::Relaxed);
        front.view = Arc::new(View { active: Arc::clone(&active), frozen, levels });
        queue.active = active;
    }

    /// Makes `levels` the tables of the store: first in the manifest, then for new transactions.
    /// With `flushed`, that memtable is in them.
    pub(crate) fn install(
        &self,
        tables: &mut Tables,
        levels: Levels,
        flushed: Option<&Arc<Mem>>,
    ) -> Result<(), Error> {
        let (mut log, mut version) = (tables.log, tables.version);
        if let Some(mem) = flushed {
            let front = self.front();
            let frozen = front.view.frozen.iter().rev().find(|other| !Arc::ptr_eq(other, mem));
            log = frozen.unwrap_or(&front.view.active).logs[0];
            version = version.max(mem.version.load(Ordering::Relaxed));
        }
        let listed = levels.all().map(|(level, table)| (level, table.entry.clone())).collect();
        let manifest = Manifest { log, version, tables: listed };
        manifest.store(self.files.as_ref(), &self.dir)?;
        (tables.log, tables.version) = (log, version);
        let mut front = self.front();
        let mut frozen = front.view.frozen.clone();
        if let Some(mem) = flushed {
            frozen.retain(|other| !Arc::ptr_eq(other, mem));
        }
        self.frozen.store(frozen.len(), Ordering::Relaxed);
        self.zero.store(levels.zero.len(), Ordering::Relaxed);
        let active = Arc::clone(&front.view.active);
        front.view = Arc::new(View { active, frozen, levels: Arc::new(levels) });
        Ok(())
    }
}

/// A number that differs from log to log, so that frames of one are not taken for another's.
pub(crate) fn salt(id: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend_from_slice(&now.as_nanos().to_le_bytes());
    bytes.extend_from_slice(&std::process::id().to_le_bytes());
    bloom::hash(&bytes)
}
