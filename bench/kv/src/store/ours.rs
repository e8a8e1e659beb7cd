//! Our engines, through the contract that the services use.

use std::path::Path;

use kumiko_kv::{Engine, Flow, Memory, Range, Read, Scan};
use kumiko_kv_disk::{Disk, Durability, Options};

use super::{Row, Setting, Store};

pub(super) struct Ours<E>(E);

pub(super) fn memory() -> Ours<Memory> {
    Ours(Memory::new())
}

pub(super) fn disk(dir: &Path, setting: Setting) -> Ours<Disk> {
    let durability = if setting.durable { Durability::Always } else { Durability::Never };
    let options = Options { durability, cache_bytes: setting.cache_bytes, ..Options::default() };
    Ours(Disk::open(dir, options).expect("the store opens"))
}

impl<E: Engine> Store for Ours<E> {
    fn commit(&self, rows: &[Row]) {
        let mut txn = self.0.begin().expect("begin");
        for (key, value) in rows {
            txn.put(key, value).expect("put");
        }
        txn.commit().expect("commit");
    }

    fn get(&self, key: &[u8]) -> Option<usize> {
        let mut txn = self.0.begin().expect("begin");
        txn.get(key, Read::Serializable)
            .expect("get")
            .map(|value| std::hint::black_box(value).len())
    }

    fn scan(&self, start: &[u8], rows: usize) -> usize {
        let mut txn = self.0.begin().expect("begin");
        let scan = Scan::new(Range::new(start, [0xFF])).rows(rows);
        let mut bytes = 0;
        let each = &mut |key: &[u8], value: &[u8]| {
            bytes += super::look(key, value);
            Flow::Go
        };
        txn.visit(&scan, each).expect("visit");
        bytes
    }

    fn sync(&self) {
        self.0.sync().expect("sync");
    }
}
