//! The embedded durable engine: a log-structured store in one directory.
//!
//! A commit is a record in a log and a change to a memtable; full memtables become tables, and
//! tables are merged in the background. Commits that arrive together share one write and one sync.
//! The bytes are described in `docs/format/store.md`.
//!
//! What it promises beside the contract of `kumiko_kv`:
//!
//! * With [`Durability::Always`], an answered commit survives a power cut. A frame that a crash tore
//!   was never answered and is left out; any other damage is an error that names file and place.
//! * Opening reads the manifest and the logs that are not yet in tables, nothing else.
//! * A transaction never fails because it is old: it keeps the memtables and tables it reads.
//! * A full disk fails commits with `Full` until there is room again, and loses nothing.
//!
//! It knows nothing of categories, values or services. It is the one crate below `node` that opens
//! files and starts threads.
//!
//! Read `frame` first, then `wal` and `recover`; `mem`, `clears`; `block`, `table`, `build`;
//! `levels`, `cursor`, `merge`; then `commit`, `flush` and `compact`.

mod background;
mod block;
mod bloom;
mod build;
mod cache;
mod check;
mod clears;
mod commit;
mod compact;
mod cursor;
pub mod files;
mod flush;
mod frame;
mod levels;
mod manifest;
mod mem;
mod merge;
mod open;
mod recover;
pub mod simulated;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod txn;
mod wal;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kumiko_kv::{Engine, Error, Txn, Watch};

use crate::background::Threads;
use crate::files::{Files, Real};
use crate::store::Store;
use crate::txn::DiskTxn;

pub use crate::check::Report;

/// An opening that finds more logs than this makes a table of them.
const LOGS_MAX: usize = 8;

/// When an answered commit is safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Before it is answered. It survives a power cut.
    #[default]
    Always,
    /// A second later at most. A power cut may lose the last second; the end of the process alone
    /// loses nothing.
    EverySecond,
    /// When the operating system likes. The end of the process alone loses nothing.
    Never,
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// When an answered commit is safe.
    pub durability: Durability,
    /// How much memory the blocks of tables may take that were read lately.
    pub cache_bytes: usize,
    /// How large a memtable grows before it becomes a table. Up to three are in memory at a time.
    pub memtable_bytes: usize,
    /// Whether the store is made if it is not there.
    pub create: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            durability: Durability::Always,
            cache_bytes: 128 << 20,
            memtable_bytes: 64 << 20,
            create: true,
        }
    }
}

/// Figures of an open store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The newest version that a new transaction sees.
    pub version: u64,
    /// Tables by level.
    pub level_tables: Vec<usize>,
    /// Their bytes by level.
    pub level_bytes: Vec<u64>,
    /// Bytes in memtables, those that wait to be written included.
    pub memtable_bytes: usize,
    /// Memtables that wait to be written.
    pub memtables_waiting: usize,
    /// Bytes in the block cache.
    pub cache_bytes: usize,
    /// Bytes of the log that is written now.
    pub log_bytes: u64,
}

impl Stats {
    /// Tables on all levels.
    pub fn tables(&self) -> usize {
        self.level_tables.iter().sum()
    }
}

/// An open store. Clones share it; the last one closes it.
#[derive(Clone, Debug)]
pub struct Disk {
    store: Arc<Store>,
    /// Dropped with the last clone, which ends the threads.
    _threads: Arc<Threads>,
}

impl Disk {
    /// Opens the store in `dir`.
    ///
    /// # Errors
    ///
    /// `Locked` if another process has it open, `Corrupt` with file and place if it is damaged,
    /// `Invalid` if it is not there and may not be made, or has a newer format.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Disk, Error> {
        Disk::open_on(Arc::new(Real), dir.as_ref(), options)
    }

    /// Opens the store in `dir` of another file system.
    pub fn open_on(files: Arc<dyn Files>, dir: &Path, options: Options) -> Result<Disk, Error> {
        Disk::start(files, dir, options, true)
    }

    /// The same without threads: commits do the background work. Everything that happens follows
    /// from the calls alone, as a simulation needs it.
    pub fn open_single(files: Arc<dyn Files>, dir: &Path, options: Options) -> Result<Disk, Error> {
        Disk::start(files, dir, options, false)
    }

    fn start(
        files: Arc<dyn Files>,
        dir: &Path,
        options: Options,
        threads: bool,
    ) -> Result<Disk, Error> {
        let store = Arc::new(open::open(files, dir, options, threads)?);
        if LOGS_MAX < store.front().view.active.logs.len() {
            // Openings without a table in between add up; this keeps the next one short. If it
            // fails, the logs are still there.
            let _ = store.rotate_now();
        }
        let threads = Arc::new(Threads::start(&store)?);
        Ok(Disk { store, _threads: threads })
    }

    /// Walks every file of the store and reports what is wrong.
    pub fn check(&self) -> Report {
        check::check(&self.store)
    }

    /// Figures for people and metrics.
    pub fn stats(&self) -> Stats {
        let (view, version) = {
            let front = self.store.front();
            (Arc::clone(&front.view), front.published())
        };
        let levels = manifest::DEEP + 1;
        let mut stats = Stats {
            version,
            level_tables: vec![0; levels],
            level_bytes: vec![0; levels],
            memtable_bytes: view.active.bytes()
                + view.frozen.iter().map(|it| it.bytes()).sum::<usize>(),
            memtables_waiting: self.store.frozen.load(Ordering::Relaxed),
            cache_bytes: self.store.cache.bytes(),
            log_bytes: self.store.wal().offset,
        };
        for (level, table) in view.levels.all() {
            stats.level_tables[level] += 1;
            stats.level_bytes[level] += table.entry.bytes;
        }
        stats
    }

    /// Writes everything out as tables and merges what is due. For tests, benchmarks and before a
    /// copy is taken; the store does it by itself otherwise.
    pub fn settle(&self) -> Result<(), Error> {
        self.store.settle()
    }
}

impl Engine for Disk {
    fn begin(&self) -> Result<Box<dyn Txn>, Error> {
        Ok(Box::new(DiskTxn::begin(&self.store)))
    }

    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        Ok(self.store.watches.watch(key))
    }

    fn sync(&self) -> Result<(), Error> {
        self.store.sync()
    }

    fn name(&self) -> &'static str {
        "disk"
    }
}
