//! Watches: one connection listens for all of them; where the server has no LISTEN, and in case a
//! notification is lost with a connection, the key's version is looked at from time to time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kumiko_kv::{Error, Watch};

use crate::client::{Client, Statement};
use crate::engine::{Pool, unavailable};

/// How often the key is looked at while waiting for a notification.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The same, where the server cannot notify.
const POLL_EVERY: Duration = Duration::from_millis(20);

const WATCHED: &str =
    "INSERT INTO kumiko_watch (key) VALUES ($1::bytea) ON CONFLICT (key) DO NOTHING";
const VERSION: &str = "SELECT version FROM kumiko_kv WHERE key = $1::bytea";

/// The connections that listen and have nothing to do.
#[derive(Default)]
pub(crate) struct Bells {
    idle: Mutex<Vec<Client>>,
}

impl Bells {
    pub(crate) fn watch(pool: &Arc<Pool>, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        let idle = pool.bells.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut listener = if idle.is_some() {
            idle
        } else {
            let mut client = pool.connect()?;
            client.execute("LISTEN kumiko").is_ok().then_some(client)
        };
        // As PostgreSQL's `encode` writes it.
        let hex = kumiko_base::hex::show(key);
        if let Some(client) = &mut listener {
            client.run(&[Statement::new(WATCHED, vec![key.to_vec()])]).map_err(unavailable)?;
            // What came before the watch was made is of no interest.
            while client.notified(Duration::ZERO).map_err(unavailable)?.is_some() {}
        }
        let mut waiting =
            Waiting { pool: Arc::clone(pool), key: key.to_vec(), hex, listener, seen: None };
        waiting.seen = waiting.look()?;
        Ok(Box::new(waiting))
    }
}

struct Waiting {
    pool: Arc<Pool>,
    key: Vec<u8>,
    hex: String,
    listener: Option<Client>,
    seen: Option<Vec<u8>>,
}

impl Waiting {
    fn look(&self) -> Result<Option<Vec<u8>>, Error> {
        let mut client = self.pool.take()?;
        let rows =
            client.run(&[Statement::new(VERSION, vec![self.key.clone()])]).map_err(unavailable)?;
        self.pool.give(client);
        Ok(rows.into_iter().flatten().flatten().flatten().next())
    }
}

impl Watch for Waiting {
    fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        let end = Instant::now() + timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match &mut self.listener {
                Some(client) => match client.notified(left.min(LOOK_EVERY)) {
                    Ok(Some(text)) if text == self.hex => return Ok(true),
                    Ok(_) => {}
                    Err(_) => self.listener = None,
                },
                None => std::thread::sleep(left.min(POLL_EVERY)),
            }
            if self.look()? != self.seen {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(client) = self.listener.take() {
            self.pool.bells.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }
}
