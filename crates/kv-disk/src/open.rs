//! Opens a store: lock, format, manifest, then the logs that are not yet in tables.
//!
//! Every opening starts a new log. The log before it is ended once the new one exists, so at any
//! moment at most one log is without its end, and if it has a follower, that one is empty.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex};

use kumiko_kv::Error;
use kumiko_kv::watch::Watches;

use crate::Options;
use crate::cache::Cache;
use crate::commit::Queue;
use crate::files::{self, Files};
use crate::frame::Commit;
use crate::levels::{Levels, View};
use crate::manifest::Manifest;
use crate::mem::Mem;
use crate::recover::{self, Log};
use crate::store::{self, Front, Signal, Store, Tables};
use crate::table::{self, Table};
use crate::wal::{self, Failure, Wal};

const LOCK: &str = "LOCK";
const FORMAT: &str = "FORMAT";
/// The first line of the file FORMAT, before the number.
const FORMAT_MARK: &str = "kumiko store ";
/// The newest format this program writes and reads.
const FORMAT_VERSION: u32 = 1;

/// Opens or makes the store in `dir`.
pub(crate) fn open(
    files: Arc<dyn Files>,
    dir: &Path,
    options: Options,
    threads: bool,
) -> Result<Store, Error> {
    let fs = files.as_ref();
    let names = prepare(fs, dir, options.create)?;
    let lock = lock(fs, dir)?;
    if !names.contains(FORMAT) {
        make(fs, dir, &names, &options)?;
    }
    check_format(fs, dir)?;
    let manifest = Manifest::load(fs, dir)?;
    let names: BTreeSet<String> = list(fs, dir)?.into_iter().collect();
    let levels = open_tables(&files, dir, &manifest)?;
    let (mem, version, last) = replay(fs, dir, &manifest, &names)?;
    remove_leftovers(fs, dir, &manifest, &mem.logs, &names);
    let id = 1 + names.iter().filter_map(|name| id_of(name)).max().unwrap_or(0);
    let wal = Wal::create(fs, dir, id, store::salt(id), options.memtable_bytes)?;
    end_log(fs, dir, &last, id)?;
    let mem = Arc::new(mem.followed_by(id));
    let zero = AtomicUsize::new(levels.zero.len());
    let view = View { active: Arc::clone(&mem), frozen: Vec::new(), levels: Arc::new(levels) };
    let front = Front::new(version, Arc::new(view));
    let tables = Tables { log: manifest.log, version: manifest.version, busy: None };
    let cache = Arc::new(Cache::new(options.cache_bytes));
    Ok(Store {
        dir: dir.to_path_buf(),
        options,
        threads,
        queue: Mutex::new(Queue::new(version, mem)),
        room: Condvar::new(),
        tables: Mutex::new(tables),
        front: Mutex::new(front),
        wal: Mutex::new(wal),
        wal_id: AtomicU64::new(id),
        ids: AtomicU64::new(id + 1),
        cache,
        watches: Watches::default(),
        flush: Signal::default(),
        compact: Signal::default(),
        tick: Signal::default(),
        flushing: Mutex::default(),
        compacting: Mutex::default(),
        stop: AtomicBool::new(false),
        frozen: AtomicUsize::new(0),
        gathered: AtomicUsize::new(0),
        zero,
        _lock: lock,
        files,
    })
}

/// The names in the directory, which is made if it may be.
fn prepare(files: &dyn Files, dir: &Path, create: bool) -> Result<BTreeSet<String>, Error> {
    if create {
        files
            .create_dir(dir)
            .map_err(|error| files::error("cannot make the directory", dir, &error))?;
    } else if let Err(error) = files.list(dir) {
        if error.kind() == std::io::ErrorKind::NotFound {
            return Err(Error::Invalid(format!("there is no store at {}", dir.display())));
        }
        return Err(files::error("cannot list", dir, &error));
    }
    Ok(list(files, dir)?.into_iter().collect())
}

fn list(files: &dyn Files, dir: &Path) -> Result<Vec<String>, Error> {
    files.list(dir).map_err(|error| files::error("cannot list", dir, &error))
}

fn lock(files: &dyn Files, dir: &Path) -> Result<Box<dyn std::fmt::Debug + Send + Sync>, Error> {
    let path = dir.join(LOCK);
    let lock = files.lock(&path).map_err(|error| files::error("cannot lock", &path, &error))?;
    lock.ok_or_else(|| {
        Error::Locked(format!("the store at {} is open in another process", dir.display()))
    })
}

/// Makes an empty store. FORMAT comes last: without it there is no store.
fn make(
    files: &dyn Files,
    dir: &Path,
    names: &BTreeSet<String>,
    options: &Options,
) -> Result<(), Error> {
    if !options.create {
        return Err(Error::Invalid(format!("there is no store at {}", dir.display())));
    }
    let used = |id| recover::read(files, dir, id, &mut |_| Ok(())).map_or(true, |it| 0 < it.frames);
    let tables = names.iter().any(|name| table_id(name).is_some());
    if tables || names.iter().filter_map(|name| log_id(name)).any(used) {
        let text = format!("{} holds a store that has lost its file {FORMAT}", dir.display());
        return Err(Error::Corrupt(text));
    }
    let first = 1;
    Wal::create(files, dir, first, store::salt(first), options.memtable_bytes)?;
    Manifest { log: first, ..Manifest::default() }.store(files, dir)?;
    let text = format!("{FORMAT_MARK}{FORMAT_VERSION}\n");
    files::replace(files, dir, FORMAT, text.as_bytes())
        .map_err(|error| files::error("cannot write", &dir.join(FORMAT), &error))
}

fn check_format(files: &dyn Files, dir: &Path) -> Result<(), Error> {
    let path = dir.join(FORMAT);
    let bytes = files
        .open(&path)
        .and_then(|file| files::read_whole(file.as_ref()))
        .map_err(|error| files::error("cannot read", &path, &error))?;
    let text = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_prefix(FORMAT_MARK));
    let number = text.and_then(|text| text.strip_suffix('\n')).and_then(|it| it.parse().ok());
    match number {
        Some(FORMAT_VERSION) => Ok(()),
        Some(number) if FORMAT_VERSION < number => Err(Error::Invalid(format!(
            "the store at {} has format {number}, this program reads up to {FORMAT_VERSION}",
            dir.display()
        ))),
        _ => Err(Error::Corrupt(format!("{} does not name a format", path.display()))),
    }
}

fn open_tables(files: &Arc<dyn Files>, dir: &Path, manifest: &Manifest) -> Result<Levels, Error> {
    let mut levels = Levels::default();
    // Level 0 is listed newest first, and the last one put there is the newest.
    for (level, entry) in manifest.tables.iter().rev() {
        let path = dir.join(table::name(entry.id));
        let size = files.size(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::Corrupt(format!("{} is missing", path.display()))
            }
            _ => files::error("cannot find", &path, &error),
        })?;
        if size != entry.bytes {
            let (path, bytes) = (path.display(), entry.bytes);
            return Err(Error::Corrupt(format!("{path} has {size} bytes instead of {bytes}")));
        }
        levels.insert(*level, Arc::new(Table::new(files, dir, entry.clone())));
    }
    Ok(levels)
}

/// Takes the commits of all live logs into a memtable. Also the newest version and the last log.
fn replay(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    names: &BTreeSet<String>,
) -> Result<(Mem, u64, Log), Error> {
    let mem = Mem::new(vec![manifest.log]);
    let mut logs = Vec::new();
    let mut version = manifest.version;
    let mut take = |commit: Commit<'_>| {
        if commit.version <= version {
            let text = format!("{} holds versions out of order", dir.display());
            return Err(Error::Corrupt(text));
        }
        version = commit.version;
        mem.apply(version, u64::MAX, commit.ops.into_iter());
        Ok(())
    };
    let mut id = manifest.log;
    let last = loop {
        if !names.contains(&wal::name(id)) {
            let path = dir.join(wal::name(id));
            return Err(Error::Corrupt(format!("{} is missing", path.display())));
        }
        logs.push(id);
        let log = recover::read(files, dir, id, &mut take)?;
        match log.next {
            Some(next) if id < next => id = next,
            Some(_) => {
                let path = dir.join(wal::name(id));
                return Err(Error::Corrupt(format!("{} names no later log", path.display())));
            }
            None => break log,
        }
    };
    check_followers(files, dir, last.id, names)?;
    Ok((mem.with_logs(logs), version, last))
}

/// A log behind one that has no end was made and never used.
fn check_followers(
    files: &dyn Files,
    dir: &Path,
    last: u64,
    names: &BTreeSet<String>,
) -> Result<(), Error> {
    for id in names.iter().filter_map(|name| log_id(name)).filter(|id| last < *id) {
        let log = recover::read(files, dir, id, &mut |_| Ok(()))?;
        if 0 < log.frames {
            let path = dir.join(wal::name(last));
            return Err(Error::Corrupt(format!("{} has lost its end", path.display())));
        }
    }
    Ok(())
}

/// Removes what a crash left behind: files under way, unlisted tables, logs that are in tables.
fn remove_leftovers(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    logs: &[u64],
    names: &BTreeSet<String>,
) {
    let listed: BTreeSet<u64> = manifest.tables.iter().map(|(_, entry)| entry.id).collect();
    for name in names {
        let under_way = name.strip_suffix(".tmp").is_some();
        let old_log = log_id(name).is_some_and(|id| !logs.contains(&id));
        let unlisted = table_id(name).is_some_and(|id| !listed.contains(&id));
        if under_way || old_log || unlisted {
            // A file that stays does no harm; the next opening tries again.
            let _ = files.remove(&dir.join(name));
        }
    }
}

/// Ends the log that was written last, now that its follower exists.
fn end_log(files: &dyn Files, dir: &Path, last: &Log, next: u64) -> Result<(), Error> {
    let Log { id, salt, end, frames, .. } = *last;
    let mut wal = Wal::resume(files, dir, id, salt, end, frames)?;
    wal.end(next).map_err(|failure| match failure {
        Failure::Clean(error) | Failure::Broken(error) => error,
    })
}

/// The id in the name of a log or table.
fn id_of(name: &str) -> Option<u64> {
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    name.strip_suffix(".log").or_else(|| name.strip_suffix(".table"))?.parse().ok()
}

fn log_id(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

fn table_id(name: &str) -> Option<u64> {
    name.strip_suffix(".table")?.parse().ok()
}
