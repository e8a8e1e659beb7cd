//! LMDB, through heed: a copy-on-write B-tree in a memory map, C.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};

use super::{Row, Setting, Store};

/// Address space, not memory: far more than any run writes.
const MAP_BYTES: usize = 64 << 30;

pub(super) struct Lmdb {
    env: &'static Env<WithoutTls>,
    database: Database<'static, Bytes, Bytes>,
}

impl Lmdb {
    pub(super) fn open(dir: &Path, setting: Setting) -> Lmdb {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES).max_readers(64);
        if !setting.durable {
            // SAFETY: a crash of the machine may then lose the file, which is the point.
            unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC) };
        }
        // SAFETY: the directory is new and nobody else maps the file.
        let env = unsafe { options.open(dir) }.expect("the store opens");
        // The database borrows it; both live as long as this process measures.
        let env: &'static Env<WithoutTls> = Box::leak(Box::new(env));
        let txn = env.write_txn().expect("begin");
        let database = env
            .create_databases_and_commit(txn, |options, txn| {
                options.create_database(txn, None).map(CommitOrAbort::<_, ()>::Commit)
            })
            .expect("the database opens")
            .unwrap_commit();
        Lmdb { env, database }
    }
}

impl Store for Lmdb {
    fn commit(&self, rows: &[Row]) {
        let mut txn = self.env.write_txn().expect("begin");
        for (key, value) in rows {
            self.database.put(&mut txn, key, value).expect("put");
        }
        txn.commit().expect("commit");
    }

    fn get(&self, key: &[u8]) -> Option<usize> {
        let txn = self.env.read_txn().expect("begin");
        // Copied, as all others do: a borrowed value costs nothing and is worth less.
        self.database.get(&txn, key).expect("get").map(|value| super::copy(value))
    }

    fn scan(&self, start: &[u8], rows: usize) -> usize {
        let txn = self.env.read_txn().expect("begin");
        let range = (Bound::Included(start), Bound::Unbounded);
        let found = self.database.range(&txn, &range).expect("range");
        let each = |row: heed::Result<(&[u8], &[u8])>| {
            let (key, value) = row.expect("row");
            super::look(key, value)
        };
        found.take(rows).map(each).sum()
    }

    fn sync(&self) {
        self.env.force_sync().expect("sync");
    }
}
