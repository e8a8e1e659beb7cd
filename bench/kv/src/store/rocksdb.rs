//! RocksDB: log-structured, C++.

use std::path::Path;

use ::rocksdb::{
    BlockBasedOptions, Cache, DB, Direction, IteratorMode, Options, WriteBatch, WriteOptions,
};

use super::{Row, Setting, Store};

pub(super) struct Rocks {
    database: DB,
    durable: bool,
}

impl Rocks {
    pub(super) fn open(dir: &Path, setting: Setting) -> Rocks {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(setting.cache_bytes));
        blocks.set_bloom_filter(10.0, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        let database = DB::open(&options, dir).expect("the store opens");
        Rocks { database, durable: setting.durable }
    }
}

impl Store for Rocks {
    fn commit(&self, rows: &[Row]) {
        let mut batch = WriteBatch::default();
        for (key, value) in rows {
            batch.put(key, value);
        }
        let mut options = WriteOptions::default();
        options.set_sync(self.durable);
        self.database.write_opt(batch, &options).expect("commit");
    }

    fn get(&self, key: &[u8]) -> Option<usize> {
        self.database.get(key).expect("get").map(|value| std::hint::black_box(value).len())
    }

    fn scan(&self, start: &[u8], rows: usize) -> usize {
        let found = self.database.iterator(IteratorMode::From(start, Direction::Forward));
        let each = |row: Result<(Box<[u8]>, Box<[u8]>), _>| {
            let (key, value) = row.expect("row");
            super::look(&key, &value)
        };
        found.take(rows).map(each).sum()
    }

    fn sync(&self) {
        self.database.flush_wal(true).expect("sync");
    }
}
