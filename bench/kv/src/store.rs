//! What the benchmark asks of an engine, and the engines that answer.
//!
//! Every engine gets the same cache where it has one, the same keys and the same values. Values are
//! random bytes, so that nobody gains by compression.

use std::path::Path;

mod fjall;
mod lmdb;
mod ours;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

/// A key and a value to write.
pub type Row = (Vec<u8>, Vec<u8>);

/// One engine under test.
pub trait Store: Sync {
    /// Writes the rows in one atomic commit; it survives power loss if the store is durable.
    fn commit(&self, rows: &[Row]);

    /// The length of the value under the key, looked up in a transaction of its own.
    fn get(&self, key: &[u8]) -> Option<usize>;

    /// Reads up to `rows` rows from `start` on; the bytes seen.
    fn scan(&self, start: &[u8], rows: usize) -> usize;

    /// Makes what was written so far durable.
    fn sync(&self);
}

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Whether each commit must survive power loss.
    pub durable: bool,
    /// The cache for engines that have one of their own.
    pub cache_bytes: usize,
}

/// The engines of this build, ours first.
pub const ENGINES: &[&str] = &[
    "disk",
    "memory",
    "fjall",
    "redb",
    "lmdb",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
];

/// Opens an engine in an empty directory.
pub fn open(engine: &str, dir: &Path, setting: Setting) -> Box<dyn Store> {
    match engine {
        "disk" => Box::new(ours::disk(dir, setting)),
        "memory" => Box::new(ours::memory()),
        "fjall" => Box::new(fjall::Fjall::open(dir, setting)),
        "redb" => Box::new(redb::Redb::open(dir, setting)),
        "lmdb" => Box::new(lmdb::Lmdb::open(dir, setting)),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => Box::new(rocksdb::Rocks::open(dir, setting)),
        _ => panic!("there is no engine {engine} in this build"),
    }
}
