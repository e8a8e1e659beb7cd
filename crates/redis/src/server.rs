//! Everything that all clients share.
//!
//! [`execute`] turns a request into a reply, [`upkeep`] does what time brings: expiry, timeouts,
//! eviction, statistics. The other modules keep who is connected, who listens, who waits and who
//! watches.

pub mod blocking;
pub mod clients;
pub mod execute;
pub mod pubsub;
pub mod stats;
pub mod table;
pub mod upkeep;
pub mod watching;

use std::collections::{BTreeMap, VecDeque};

use kumiko_base::draw::Draw;
use kumiko_lattice::live::{DbId, Live, Settings};

use crate::acl::{Acl, LogEntry};
use crate::client::{Client, Slot};
use crate::config::Config;
use crate::eventlog::EventLog;
use crate::fail::{self, Fail};

pub use blocking::Blocking;
pub use clients::Clients;
pub use execute::After;
pub use pubsub::PubSub;
pub use stats::Stats;
pub use table::Table;
pub use watching::Watching;

/// The version of Redis whose commands and words these are.
pub const REDIS_VERSION: &str = "7.0.15";
/// How many databases have a number.
pub const NUMBERED_DBS: usize = 16;
/// How many databases there may be, with numbers and with names.
pub const DATABASES_MAX: usize = 10_000;
/// The longest name of a database.
pub const DATABASE_NAME_BYTES_MAX: usize = 128;

/// What the rim is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Make a snapshot of all data in the journal.
    Snapshot,
}

/// Where the users are kept.
pub trait UsersFile: Send + std::fmt::Debug {
    /// The text that was saved last, or why it cannot be read.
    fn load(&mut self) -> Result<String, String>;
    /// Replaces the text, durably.
    fn save(&mut self, text: &str) -> Result<(), String>;
}

/// What the rim knows and INFO shows.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The number of the process.
    pub process_id: u32,
    /// The port for Redis clients.
    pub port: u16,
    /// Random, new with every start.
    pub run_id: String,
    /// The path of the program.
    pub executable: String,
    /// When the server started.
    pub started_ms: u64,
    /// Time that the process spent in the system.
    pub cpu_system_s: f64,
    /// Time that the process spent in itself.
    pub cpu_user_s: f64,
    /// Memory of the process as the system counts it.
    pub rss_bytes: u64,
    /// The journal is being read.
    pub loading: bool,
    /// Changes are kept in a journal.
    pub journal: bool,
    /// The journal cannot be written.
    pub journal_failed: bool,
    /// When an answered write is safe: "always", "everysecond", "never".
    pub durability: String,
    /// Batches written since the start.
    pub journal_batches: u64,
    /// Bytes written since the start.
    pub journal_bytes: u64,
    /// A snapshot is being made.
    pub snapshot_runs: bool,
    /// The last snapshot failed.
    pub snapshot_failed: bool,
    /// How many snapshots were made.
    pub snapshots: u64,
    /// When the last one was finished.
    pub last_snapshot_ms: u64,
    /// Replicas that this node exchanges state with.
    pub peers: u64,
    /// Peers that have all writes of this node.
    pub peers_acknowledged: u64,
}

/// A command that took long.
#[derive(Clone, Debug)]
pub struct SlowEntry {
    /// Its number.
    pub id: u64,
    /// When it ran.
    pub at_ms: u64,
    /// How long it took.
    pub micros: u64,
    /// Its arguments, shortened.
    pub words: Vec<Vec<u8>>,
    /// Where it came from.
    pub peer: String,
    /// The client's name.
    pub name: Vec<u8>,
}

/// What a client published.
#[derive(Clone, Copy, Debug)]
pub struct Published<'a> {
    /// Whether the channel is a shard channel.
    pub shard: bool,
    /// The channel.
    pub channel: &'a [u8],
    /// The message.
    pub message: &'a [u8],
}

/// Takes what a client published.
pub struct Relay(pub Box<dyn Fn(Published<'_>) + Send>);

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Relay")
    }
}

/// Everything that all clients share.
#[derive(Debug)]
pub struct Server {
    /// The data.
    pub live: Live,
    /// The databases that clients have selected, by [`Client::db`]; the first are the numbered ones.
    pub dbs: Vec<DbId>,
    /// The commands by name.
    pub table: &'static Table,
    /// The connections.
    pub clients: Clients,
    /// Who hears which channel.
    pub pubsub: PubSub,
    /// Who waits for which key.
    pub blocking: Blocking,
    /// Who watches which key.
    pub watching: Watching,
    /// Passes what clients publish on to other nodes, if there are any.
    pub relay: Option<Relay>,
    /// Users and rights.
    pub acl: Acl,
    /// Where the users are kept, if they are.
    pub users_file: Option<Box<dyn UsersFile>>,
    /// The event log, if there is one.
    pub event_log: Option<Box<dyn EventLog>>,
    /// Parameters.
    pub config: Config,
    /// Counters for `INFO`.
    pub stats: Stats,
    /// What the rim knows.
    pub facts: Facts,
    /// What the rim is asked to do.
    pub effects: Vec<Effect>,
    /// Random numbers, from the seed that the server was made with.
    pub random: Draw,
    /// What passwords are made from; the rim sets it to bytes that nobody can guess.
    pub secret_key: [u8; 32],
    /// The time of this turn, in milliseconds since 1970.
    pub now_ms: u64,
    /// The wall clock in microseconds, for statistics. The rim sets it.
    pub clock: fn() -> u64,
    /// Sleeps so many milliseconds, for `DEBUG SLEEP`. The rim sets it.
    pub sleep: fn(u64),
    /// Clients other than the running one that got output, wait no more or were killed.
    pub woken: Vec<Slot>,
    /// Clients whose commands changed data since the changes were last taken.
    pub writers: Vec<Slot>,
    /// Commands that took long, the newest first.
    pub slow: VecDeque<SlowEntry>,
    /// Spikes of waiting time by event: second and milliseconds.
    pub spikes: BTreeMap<&'static str, VecDeque<(u64, u64)>>,
    /// How many clients see every command.
    pub monitors: usize,
    /// How many bytes of the current request's connection wait.
    pub request_bytes: usize,
    /// All unsent output, as of the last tick.
    pub unsent_bytes: usize,
    /// Keys past their time are removed by themselves, not only when they are looked at.
    pub active_expiry: bool,
    /// The server is to stop.
    pub stopping: bool,
    /// Requests wait until this time: all of them, or only writes.
    pub(crate) paused: Option<(u64, bool)>,
    pub(crate) memory: upkeep::Memory,
    pub(crate) second: (u64, u64),
    pub(crate) last_micros: u64,
    pub(crate) next_slow_id: u64,
    pub(crate) secrets: u64,
    pub(crate) more_expired: bool,
}

impl Server {
    /// A server without data or clients. `seed` fixes its random choices.
    pub fn new(seed: u64) -> Server {
        let settings = Settings { seed, report_expired: true, ..Settings::default() };
        Server::with_live(seed, Live::new(settings))
    }

    /// A server over existing data.
    pub fn with_live(seed: u64, mut live: Live) -> Server {
        live.settings_mut().report_expired = true;
        let dbs = (0..NUMBERED_DBS).map(|db| live.open(db.to_string().as_bytes())).collect();
        let table = Table::shared();
        let mut server = Server {
            live,
            dbs,
            table,
            clients: Clients::default(),
            pubsub: PubSub::default(),
            blocking: Blocking::default(),
            watching: Watching::default(),
            relay: None,
            acl: Acl::default(),
            users_file: None,
            event_log: None,
            config: Config::default(),
            stats: Stats::new(table.len()),
            facts: Facts::default(),
            effects: Vec::new(),
            random: Draw::new(seed),
            secret_key: [0; 32],
            now_ms: 0,
            clock: || 0,
            sleep: |_| {},
            woken: Vec::new(),
            writers: Vec::new(),
            slow: VecDeque::new(),
            spikes: BTreeMap::new(),
            monitors: 0,
            request_bytes: 0,
            unsent_bytes: 0,
            active_expiry: true,
            stopping: false,
            paused: None,
            memory: upkeep::Memory::default(),
            second: (0, 0),
            last_micros: 0,
            next_slow_id: 0,
            secrets: 0,
            more_expired: false,
        };
        server.apply_config(&[]);
        server
    }

    /// The store's name for the database at this index.
    #[inline]
    pub fn db_id(&self, db: usize) -> DbId {
        self.dbs[db]
    }

    /// The index of a database by number or name; a new name makes a new database.
    pub fn open_database(&mut self, name: &[u8]) -> Result<usize, Fail> {
        if let Some(number) = kumiko_wire::resp::number::parse_int(name) {
            let within = (0..NUMBERED_DBS as i64).contains(&number);
            return if within { Ok(number as usize) } else { Err(fail::DB_INDEX) };
        }
        let good = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(byte);
        let first = name.first().is_some_and(u8::is_ascii_alphabetic);
        if !first || DATABASE_NAME_BYTES_MAX < name.len() || !name.iter().all(good) {
            return Err(Fail::new("ERR invalid DB index"));
        }
        let known = self.live.find(name);
        if let Some(index) = known.and_then(|id| self.dbs.iter().position(|it| *it == id)) {
            return Ok(index);
        }
        if known.is_none() && DATABASES_MAX <= self.dbs.len() {
            return Err(Fail::new("ERR too many databases"));
        }
        self.dbs.push(self.live.open(name));
        Ok(self.dbs.len() - 1)
    }

    /// Sets the time of this turn.
    pub fn set_time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.last_micros = (self.clock)();
    }

    /// The wall clock in microseconds; that of the turn if the rim set no clock.
    pub fn micros(&self) -> u64 {
        match (self.clock)() {
            0 => self.now_ms * 1000,
            micros => micros,
        }
    }

    /// The classes of keyspace events that are published.
    #[inline]
    pub fn notify_classes(&self) -> u32 {
        self.config.hot.notify
    }

    /// A new connection.
    pub fn connect(&mut self, peer: String, local: String) -> Slot {
        let client = Client {
            peer,
            local,
            authenticated: self.acl.open_door(),
            user: "default".to_owned(),
            since_ms: self.now_ms,
            active_ms: self.now_ms,
            ..Client::default()
        };
        self.stats.connections += 1;
        self.clients.add(client)
    }

    /// The connection is gone.
    pub fn disconnect(&mut self, slot: Slot) {
        let Some(mut client) = self.clients.remove(slot) else { return };
        self.forget(&mut client);
    }

    /// Takes a client out of all lists: it waits, watches and subscribes no more.
    pub fn forget(&mut self, client: &mut Client) {
        self.unblock(client);
        self.watching.clear(client);
        self.pubsub.clear(client);
        if client.monitor {
            client.monitor = false;
            self.monitors -= 1;
        }
    }

    /// Writes an error to a client outside of any command: it broke the protocol.
    pub fn refuse(&mut self, slot: Slot, text: &str) {
        if let Some(client) = self.clients.get_mut(slot) {
            let out = std::mem::take(&mut client.out);
            let mut reply = kumiko_wire::resp::Writer { out, version: client.version };
            reply.error(text);
            client.out = reply.out;
        }
        self.stats.refused(None, &Fail::text(text.to_owned()));
    }

    /// 64 hexadecimal letters that nobody can guess, if the rim set the secret key.
    pub fn secret(&mut self) -> String {
        self.secrets += 1;
        let mut seed = self.secret_key.to_vec();
        seed.extend_from_slice(&self.secrets.to_le_bytes());
        crate::acl::digest(&seed)
    }

    /// Writes the users to their file, if there is one.
    pub fn keep_users(&mut self) -> Result<(), Fail> {
        let Some(file) = &mut self.users_file else { return Ok(()) };
        let text: String = self.acl.lines().into_iter().map(|line| line + "\n").collect();
        file.save(&text).map_err(|why| Fail::text(format!("ERR cannot keep the users: {why}")))
    }

    /// Keeps a denial for `ACL LOG`.
    pub(crate) fn note_denied(
        &mut self,
        client: &Client,
        reason: &'static str,
        object: String,
        user: &str,
        in_multi: bool,
    ) {
        let entry = LogEntry {
            id: 0,
            count: 1,
            reason,
            context: if in_multi { "multi" } else { "toplevel" },
            object,
            user: user.to_owned(),
            client: crate::commands::client::describe(client, self.now_ms, self.request_bytes),
            created_ms: self.now_ms,
            updated_ms: self.now_ms,
        };
        self.acl.note(entry, self.config.hot.acl_log_entries_max);
    }

    /// A key was changed: tells watchers and waiting clients.
    #[inline]
    pub fn key_modified(&mut self, db: usize, key: &[u8], current: Option<&mut Client>) {
        self.stats.dirty += 1;
        if !self.watching.is_empty() {
            self.watching.touch(db, key, &mut self.clients, current);
        }
        if !self.blocking.is_empty() {
            self.blocking.make_ready(db, key);
        }
    }

    /// Publishes a keyspace event.
    pub fn publish_event(
        &mut self,
        db: usize,
        event: &str,
        key: &[u8],
        mut current: Option<&mut Client>,
    ) {
        let name = self.live.name(self.dbs[db]).to_vec();
        let classes = self.notify_classes();
        if classes & crate::notify::KEYSPACE != 0 {
            let channel = [b"__keyspace@", &name[..], b"__:", key].concat();
            self.publish(&channel, event.as_bytes(), current.as_deref_mut());
        }
        if classes & crate::notify::KEYEVENT != 0 {
            let channel = [b"__keyevent@", &name[..], b"__:", event.as_bytes()].concat();
            self.publish(&channel, key, current);
        }
    }

    /// The changes since the last call as one batch for the journal, if there are any.
    pub fn take_changes(&mut self) -> Option<Vec<u8>> {
        if self.live.changes_size() == 0 {
            return None;
        }
        Some(self.live.take_changes())
    }
}
