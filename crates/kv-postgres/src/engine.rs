//! The engine: a pool of connections and the table.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kumiko_kv::{Engine, Error, Txn, Watch};

use crate::client::{self, Client, Statement, Url};
use crate::txn::PostgresTxn;
use crate::watch::Bells;

/// How long a connection may take to be made.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Connections that are kept for later when nobody uses them.
const IDLE_MAX: usize = 32;
/// Every so many commits, traces of what was removed long ago go too.
const TIDY_EVERY: u64 = 512;
/// A trace concerns transactions that were open then, and none lives that long.
const TIDY: &str = "DELETE FROM kumiko_kv WHERE value IS NULL AND at < now() - interval '5 minutes';\
                    DELETE FROM kumiko_touch WHERE at < now() - interval '5 minutes'";

const CREATE: &str = "\
CREATE TABLE IF NOT EXISTS kumiko_kv (key bytea PRIMARY KEY, value bytea, version bigint NOT NULL, at timestamptz NOT NULL DEFAULT now());\
CREATE INDEX IF NOT EXISTS kumiko_gone ON kumiko_kv (at) WHERE value IS NULL;\
CREATE TABLE IF NOT EXISTS kumiko_touch (id bigint PRIMARY KEY, first bytea NOT NULL, past bytea NOT NULL, at timestamptz NOT NULL DEFAULT now());\
CREATE SEQUENCE IF NOT EXISTS kumiko_version;\
CREATE TABLE IF NOT EXISTS kumiko_watch (key bytea PRIMARY KEY)";

pub(crate) struct Pool {
    url: Url,
    idle: Mutex<Vec<Client>>,
    /// Makes nonces and versions; seeded from outside so that no two processes share a stream.
    random: AtomicU64,
    commits: AtomicU64,
    pub(crate) bells: Bells,
}

impl Pool {
    /// A connection outside any transaction, which answers.
    pub(crate) fn take(&self) -> Result<Client, Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(client) => Ok(client),
            None => self.connect(),
        }
    }

    pub(crate) fn connect(&self) -> Result<Client, Error> {
        let mut nonce = String::new();
        for _ in 0..3 {
            let _ = write!(nonce, "{:016x}", self.random());
        }
        Client::connect(&self.url, nonce, CONNECT_TIME_MAX).map_err(unavailable)
    }

    /// Takes a connection back that is outside any transaction.
    pub(crate) fn give(&self, client: Client) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(client);
        }
    }

    /// Takes a connection back after a commit.
    pub(crate) fn committed(&self, mut client: Client) {
        let count = self.commits.fetch_add(1, Ordering::Relaxed);
        // If it cannot be done now, a later commit does it.
        if count % TIDY_EVERY == TIDY_EVERY - 1 && client.execute(TIDY).is_err() {
            return;
        }
        self.give(client);
    }

    /// Forgets the idle connections: one was found to be lost, so the others are suspect.
    pub(crate) fn empty(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The next number of a stream that does not repeat (SplitMix64).
    pub(crate) fn random(&self) -> u64 {
        mix(self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed))
    }
}

/// Scatters numbers over all 64 bits, no two onto one: versions of rows are made so, because the sum
/// of some of them must tell which they were.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The keyspace in a table of PostgreSQL.
pub struct Postgres {
    pool: Arc<Pool>,
}

impl Postgres {
    /// Connects to `url` and makes the tables if they are missing. `seed` must differ in every
    /// process that shares the server; take it from the operating system's random numbers.
    pub fn open(url: &str, seed: u64) -> Result<Postgres, Error> {
        let url = Url::parse(url).map_err(Error::Invalid)?;
        let pool = Pool {
            url,
            idle: Mutex::default(),
            random: AtomicU64::new(seed),
            commits: AtomicU64::new(0),
            bells: Bells::default(),
        };
        let mut client = pool.connect()?;
        create(&mut client)?;
        pool.give(client);
        Ok(Postgres { pool: Arc::new(pool) })
    }

    /// Removes every key, and our tables with them.
    pub fn drop_all(&self) -> Result<(), Error> {
        let mut client = self.pool.take()?;
        client
            .execute("DROP TABLE IF EXISTS kumiko_kv, kumiko_touch, kumiko_watch; DROP SEQUENCE IF EXISTS kumiko_version")
            .map_err(unavailable)?;
        create(&mut client)
    }
}

/// Several nodes may start at once, and then the loser of the race sees an error of the catalog.
fn create(client: &mut Client) -> Result<(), Error> {
    let mut last = None;
    for _ in 0..5 {
        match client.execute(CREATE) {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or(Error::Conflict, unavailable))
}

impl Engine for Postgres {
    fn begin(&self) -> Result<Box<dyn Txn>, Error> {
        let begin = || Statement::new("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", vec![]);
        // The snapshot is taken by the first statement that reads; the contract wants it now.
        let look = || Statement::new("SELECT 1::int8 FROM kumiko_kv LIMIT 0", vec![]);
        let mut client = self.pool.take()?;
        if let Err(error) = client.run(&[begin(), look()]) {
            if let client::Error::Server { .. } = error {
                return Err(unavailable(error));
            }
            // It was idle while the server went away and came back, perhaps.
            self.pool.empty();
            client = self.pool.connect()?;
            client.run(&[begin(), look()]).map_err(unavailable)?;
        }
        Ok(Box::new(PostgresTxn::new(Arc::clone(&self.pool), client)))
    }

    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        Bells::watch(&self.pool, key)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(())
    }

    fn name(&self) -> &'static str {
        "postgres"
    }

    fn shared(&self) -> bool {
        true
    }
}

/// What an error outside a commit means: nothing was written.
pub(crate) fn unavailable(error: client::Error) -> Error {
    match &error {
        client::Error::Server { code, .. } => match code.as_str() {
            "40001" | "40P01" => Error::Conflict,
            "53100" => Error::Full(error.to_string()),
            _ => Error::Unavailable(error.to_string()),
        },
        client::Error::Lost(_) => Error::Unavailable(error.to_string()),
    }
}
