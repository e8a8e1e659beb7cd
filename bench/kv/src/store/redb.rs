//! redb: a copy-on-write B-tree, pure Rust.

use std::path::Path;

use ::redb::{Builder, Database, Durability, ReadableDatabase, TableDefinition};

use super::{Row, Setting, Store};

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bench");

pub(super) struct Redb {
    database: Database,
    durable: bool,
}

impl Redb {
    pub(super) fn open(dir: &Path, setting: Setting) -> Redb {
        let mut builder = Builder::new();
        builder.set_cache_size(setting.cache_bytes);
        let database = builder.create(dir.join("bench.redb")).expect("the store opens");
        let store = Redb { database, durable: setting.durable };
        store.write(&[], true);
        store
    }

    fn write(&self, rows: &[Row], durable: bool) {
        let mut txn = self.database.begin_write().expect("begin");
        let durability = if durable { Durability::Immediate } else { Durability::None };
        txn.set_durability(durability).expect("durability");
        {
            let mut table = txn.open_table(TABLE).expect("table");
            for (key, value) in rows {
                table.insert(key.as_slice(), value.as_slice()).expect("insert");
            }
        }
        txn.commit().expect("commit");
    }
}

impl Store for Redb {
    fn commit(&self, rows: &[Row]) {
        self.write(rows, self.durable);
    }

    fn get(&self, key: &[u8]) -> Option<usize> {
        let txn = self.database.begin_read().expect("begin");
        let table = txn.open_table(TABLE).expect("table");
        let found = table.get(key).expect("get");
        found.map(|value| super::copy(value.value()))
    }

    fn scan(&self, start: &[u8], rows: usize) -> usize {
        let txn = self.database.begin_read().expect("begin");
        let table = txn.open_table(TABLE).expect("table");
        let range = table.range(start..).expect("range");
        let each = |row: Result<(::redb::AccessGuard<&[u8]>, ::redb::AccessGuard<&[u8]>), _>| {
            let (key, value) = row.expect("row");
            super::look(key.value(), value.value())
        };
        range.take(rows).map(each).sum()
    }

    fn sync(&self) {
        self.write(&[], true);
    }
}
