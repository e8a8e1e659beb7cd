//! fjall: log-structured, pure Rust.

use std::path::Path;

use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Row, Setting, Store};

pub(super) struct Fjall {
    database: Database,
    keyspace: Keyspace,
    durable: bool,
}

impl Fjall {
    pub(super) fn open(dir: &Path, setting: Setting) -> Fjall {
        let builder = Database::builder(dir).cache_size(setting.cache_bytes as u64);
        let database = builder.open().expect("the store opens");
        let keyspace =
            database.keyspace("bench", KeyspaceCreateOptions::default).expect("the keyspace opens");
        Fjall { database, keyspace, durable: setting.durable }
    }
}

impl Store for Fjall {
    fn commit(&self, rows: &[Row]) {
        // Its own default leaves a commit in a buffer of the process; ours reaches the kernel.
        let mode = if self.durable { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut batch = self.database.batch().durability(Some(mode));
        for (key, value) in rows {
            batch.insert(&self.keyspace, key.as_slice(), value.as_slice());
        }
        batch.commit().expect("commit");
    }

    fn get(&self, key: &[u8]) -> Option<usize> {
        self.keyspace.get(key).expect("get").map(|value| super::copy(&value))
    }

    fn scan(&self, start: &[u8], rows: usize) -> usize {
        let each = |guard: ::fjall::Guard| {
            let (key, value) = guard.into_inner().expect("row");
            super::look(&key, &value)
        };
        self.keyspace.range(start..).take(rows).map(each).sum()
    }

    fn sync(&self) {
        self.database.persist(PersistMode::SyncAll).expect("sync");
    }
}
