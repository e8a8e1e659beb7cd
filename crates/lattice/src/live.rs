//! The structure that commands run on: databases in memory, made for one thread that owns them.
//!
//! [`Live`] holds databases by name. [`Live::db`] lends one of them together with the time, and the
//! commands are methods of that [`Db`]:
//!
//! ```
//! use kumiko_lattice::live::{Live, Settings, Ttl};
//! let mut live = Live::new(Settings::default());
//! let zero = live.open(b"0");
//! let mut db = live.db(zero, 1_700_000_000_000);
//! db.set(b"greeting", b"hello", Ttl::Clear)?;
//! assert_eq!(db.get(b"greeting")?, Some(&b"hello"[..]));
//! assert_eq!(db.incr(b"visits", 1)?, 1);
//! # Ok::<(), kumiko_lattice::live::Error>(())
//! ```
//!
//! - **Files.** `keys` has what works on any key; `strings`, `hashes`, `sets`, `zsets` and `lists`
//!   have the rest. They sit on `table` (keys, fields, members), `ranking` (sorted sets), `sequence`
//!   (lists) and `item` (one key). `record` and `replay` are the journal.
//! - **Time** is an argument, in milliseconds since the epoch. What is due expires before the first
//!   command that could see it; [`Live::take_expired`] tells which keys went.
//! - **Types.** A command on a key of another type fails with [`Error::WrongType`] and changes
//!   nothing. A collection that loses its last element is gone.
//! - **Changes.** Every change counts ([`Live::changes`]), bumps the version of a watched key
//!   ([`Live::watch`]), and, if the settings ask for it, is recorded for the journal
//!   ([`Live::take_changes`], [`Live::replay`]) and noted for the next publish.
//! - **Randomness** is an argument too: `below(n)` draws a number under `n`.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::index::Index;

mod error;
mod explain;
mod fields;
mod hashes;
mod hashing;
mod image;
mod item;
mod keys;
mod lists;
mod pack;
mod ranking;
mod record;
mod replay;
mod replicate;
mod sequence;
mod sets;
mod strings;
mod table;
mod touch;
mod zsets;

pub use error::Error;
pub use explain::{Column, Explanation};
pub use fields::{Thresholds, parse_int};
pub use hashes::Field;
pub use item::Type;
pub use keys::{Facts, Rename};
pub use lists::End;
pub use ranking::Bound;
pub use record::{Change, RECORD_VERSION, Reader, Record, Writer};
pub use replay::SnapshotStep;
pub use replicate::{AHEAD_MAX_MS, Merged, Source, publication};
pub use strings::Ttl;
pub use zsets::{Added, ZaddRule};

use hashing::Hashing;
pub(crate) use item::Item;
use replay::Snapshot;
use table::Table;
use touch::Touched;

pub(crate) use item::Holds;
pub(crate) use touch::{ListEdit, Touch};

/// Draws a number below its argument.
pub type Below<'a> = &'a mut dyn FnMut(u64) -> u64;

/// The longest string, field or element.
pub const VALUE_BYTES_MAX: usize = 512 * 1024 * 1024;
/// The longest key or hash field that can be replicated: the depth of an `Index`.
pub const REPLICATED_KEY_BYTES_MAX: usize = 255;
/// Most keys that one call of [`Live::db`] expires before it lends the database.
const EXPIRE_PER_CALL: usize = 64;

/// How a [`Live`] behaves. All can be changed while it runs, except `replication` and `seed`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Notes what changed for the publish tick. Keys and fields are then limited in length.
    pub replication: bool,
    /// The name of this node's column in counters; see `replica::absorb::column`.
    pub column: Vec<u8>,
    /// Records changes for [`Live::take_changes`].
    pub journal: bool,
    /// Keeps the names of expired keys for [`Live::take_expired`].
    pub report_expired: bool,
    /// Counts uses (LFU) in place of keeping the time of the last one (LRU).
    pub count_uses: bool,
    /// Keys the hash function. Draw it at random, or clients can slow a table down.
    pub seed: u64,
    /// When small forms become large ones.
    pub thresholds: Thresholds,
}

/// A database of a [`Live`], by its order of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DbId(u32);

/// One database.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) name: Box<[u8]>,
    pub(crate) table: Table<Item>,
    /// (expiry, hash of the key) of every key that expires.
    pub(crate) expiring: BTreeSet<(u64, u64)>,
    /// The first of them, so that most commands look at one number.
    pub(crate) next_expiry: u64,
    pub(crate) touched: Touched,
    /// What is published of this database, as of the last fold.
    pub(crate) index: Index,
    /// Removals from before this are forgotten, and not taken from others.
    pub(crate) collected_before: i64,
}

impl Database {
    fn new(name: &[u8]) -> Database {
        Database {
            name: name.into(),
            table: Table::new(),
            expiring: BTreeSet::new(),
            next_expiry: u64::MAX,
            touched: Touched::default(),
            index: Index::new(),
            collected_before: 0,
        }
    }

    pub(crate) fn note_expiry(&mut self, hash: u64, old_ms: u64, new_ms: u64) {
        if old_ms == new_ms {
            return;
        }
        if old_ms != 0 {
            self.expiring.remove(&(old_ms, hash));
        }
        if new_ms != 0 {
            self.expiring.insert((new_ms, hash));
        }
        self.next_expiry = self.expiring.first().map_or(u64::MAX, |it| it.0);
    }
}

#[derive(Debug, Default)]
struct Watched {
    version: u64,
    watchers: usize,
}

/// What all databases share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) hashing: Hashing,
    pub(crate) journal: Writer,
    watched: HashMap<(u32, Box<[u8]>), Watched>,
    changes: u64,
    expired: Vec<(DbId, Box<[u8]>)>,
    /// The time of the records while they are replayed.
    pub(crate) replay_ms: Option<u64>,
    pub(crate) snapshot: Option<Snapshot>,
}

/// All databases of one node.
#[derive(Debug)]
pub struct Live {
    pub(crate) databases: Vec<Database>,
    pub(crate) shared: Shared,
}

/// One database, lent for a command at a certain time.
#[derive(Debug)]
pub struct Db<'a> {
    pub(crate) id: DbId,
    pub(crate) base: &'a mut Database,
    pub(crate) shared: &'a mut Shared,
    pub(crate) now_ms: u64,
}

impl Live {
    /// An empty one.
    pub fn new(settings: Settings) -> Live {
        let hashing = Hashing::new(settings.seed);
        Live {
            databases: Vec::new(),
            shared: Shared {
                settings,
                hashing,
                journal: Writer::default(),
                watched: HashMap::new(),
                changes: 0,
                expired: Vec::new(),
                replay_ms: None,
                snapshot: None,
            },
        }
    }

    /// The settings, to be changed in place.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.shared.settings
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The database of this name, made if it is new.
    pub fn open(&mut self, name: &[u8]) -> DbId {
        if let Some(id) = self.find(name) {
            return id;
        }
        self.databases.push(Database::new(name));
        DbId(self.databases.len() as u32 - 1)
    }

    /// The database of this name, if it was ever opened.
    pub fn find(&self, name: &[u8]) -> Option<DbId> {
        self.databases.iter().position(|it| *it.name == *name).map(|it| DbId(it as u32))
    }

    /// All databases, with their names and numbers of keys.
    pub fn databases(&self) -> impl Iterator<Item = (DbId, &[u8], usize)> {
        self.databases
            .iter()
            .enumerate()
            .map(|(index, it)| (DbId(index as u32), &*it.name, it.table.len()))
    }

    /// The name of a database.
    pub fn name(&self, id: DbId) -> &[u8] {
        &self.databases[id.0 as usize].name
    }

    /// Lends a database to commands that run at `now_ms`.
    #[inline]
    pub fn db(&mut self, id: DbId, now_ms: u64) -> Db<'_> {
        let base = &mut self.databases[id.0 as usize];
        let mut db = Db { id, base, shared: &mut self.shared, now_ms };
        if db.base.next_expiry <= now_ms {
            db.expire_due(EXPIRE_PER_CALL);
        }
        db
    }

    /// Exchanges the contents of two databases.
    pub fn swap(&mut self, a: DbId, b: DbId, now_ms: u64) {
        if a == b {
            return;
        }
        let (low, high) = (a.min(b).0 as usize, a.max(b).0 as usize);
        let (left, right) = self.databases.split_at_mut(high);
        let (left, right) = (&mut left[low], &mut right[0]);
        std::mem::swap(&mut left.table, &mut right.table);
        std::mem::swap(&mut left.expiring, &mut right.expiring);
        std::mem::swap(&mut left.next_expiry, &mut right.next_expiry);
        let (name, other) = (self.name(a).to_vec(), self.name(b).to_vec());
        self.shared.change(a, &name, now_ms, &Change::Swap { name: &other });
        for id in [a, b] {
            if self.shared.settings.replication {
                let at_ms = self.shared.replay_ms.unwrap_or(now_ms);
                self.databases[id.0 as usize].touched.everything(at_ms);
            }
            self.shared.bump_all(id);
        }
    }

    /// Empties every database.
    pub fn flush_all(&mut self, now_ms: u64) {
        for index in 0..self.databases.len() {
            self.db(DbId(index as u32), now_ms).flush();
        }
    }

    /// How many changes there were since the start.
    pub fn changes(&self) -> u64 {
        self.shared.changes
    }

    /// Starts to watch a key: from now on every change of it bumps its version, which is returned.
    /// Each call needs one [`Live::unwatch`].
    pub fn watch(&mut self, id: DbId, key: &[u8]) -> u64 {
        let watched = self.shared.watched.entry((id.0, key.into())).or_default();
        watched.watchers += 1;
        watched.version
    }

    /// Ends one watch.
    pub fn unwatch(&mut self, id: DbId, key: &[u8]) {
        let name = (id.0, Box::from(key));
        if let Some(watched) = self.shared.watched.get_mut(&name) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                self.shared.watched.remove(&name);
            }
        }
    }

    /// The version of a watched key; compare it with what [`Live::watch`] returned. A key whose
    /// time has come at `now_ms` counts as changed.
    pub fn version(&mut self, id: DbId, key: &[u8], now_ms: u64) -> u64 {
        self.db(id, now_ms).exists(key);
        self.shared.watched.get(&(id.0, Box::from(key))).map_or(u64::MAX, |it| it.version)
    }

    /// The records since the last call, as one batch; empty if nothing changed.
    pub fn take_changes(&mut self) -> Vec<u8> {
        self.shared.journal.take()
    }

    /// Bytes that [`Live::take_changes`] would return.
    pub fn changes_size(&self) -> usize {
        self.shared.journal.size()
    }

    /// The keys that expired since the last call.
    pub fn take_expired(&mut self) -> Vec<(DbId, Box<[u8]>)> {
        std::mem::take(&mut self.shared.expired)
    }

    /// Expires up to `keys_max` keys that are due, over all databases; returns how many.
    pub fn expire_step(&mut self, now_ms: u64, keys_max: usize) -> usize {
        let mut count = 0;
        for (index, base) in self.databases.iter_mut().enumerate() {
            let id = DbId(index as u32);
            let mut db = Db { id, base, shared: &mut self.shared, now_ms };
            count += db.expire_due(keys_max - count);
        }
        count
    }

    /// Bytes of tables and what they hold, estimated from a sample.
    pub fn bytes(&self) -> usize {
        let databases = self.databases.iter();
        databases
            .map(|it| it.table.bytes() + fields::sampled(&it.table, |item| item.bytes() - 28))
            .sum()
    }
}

impl Shared {
    /// Notes one change. Every command that changes something ends here.
    #[inline]
    fn change(&mut self, id: DbId, name: &[u8], now_ms: u64, change: &Change<'_>) {
        self.changes += 1;
        if self.settings.journal && self.replay_ms.is_none() {
            self.record(id, name, now_ms, change);
        }
        if !self.watched.is_empty() {
            self.bump(id, change);
        }
    }

    fn record(&mut self, id: DbId, name: &[u8], now_ms: u64, change: &Change<'_>) {
        let Some(snapshot) = &mut self.snapshot else {
            return self.journal.add(name, now_ms, change, None);
        };
        if let Some(key) = change.key() {
            let covered_by = snapshot.covers(id, self.hashing.of(key));
            self.journal.add(name, now_ms, change, covered_by);
        } else {
            snapshot.broken = true;
            self.journal.add(name, now_ms, change, None);
        }
    }

    #[cold]
    fn bump(&mut self, id: DbId, change: &Change<'_>) {
        if *change == Change::Flush {
            return self.bump_all(id);
        }
        let names = match *change {
            Change::Rename { key, to } => [Some(key), Some(to)],
            _ => [change.key(), None],
        };
        for key in names.into_iter().flatten() {
            if let Some(watched) = self.watched.get_mut(&(id.0, Box::from(key))) {
                watched.version += 1;
            }
        }
    }

    fn bump_all(&mut self, id: DbId) {
        let all = self.watched.iter_mut().filter(|it| it.0.0 == id.0);
        all.for_each(|it| it.1.version += 1);
    }

    /// The access clock of an item that is used now.
    #[inline]
    pub(crate) fn access(&self, old: u32, now_ms: u64) -> u32 {
        if self.settings.count_uses {
            keys::count_use(old, now_ms)
        } else {
            (now_ms / 1000) as u32 & 0xFF_FFFF
        }
    }
}

#[cfg(test)]
mod converge;
#[cfg(test)]
mod semantics;
#[cfg(test)]
mod tests;
