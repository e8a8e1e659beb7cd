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

/// What a reader of a row does at least: it touches every cache line of the value. Without this, an
/// engine that gives out a pointer would be measured against those that read.
fn look(key: &[u8], value: &[u8]) -> usize {
    let seen: usize = value.iter().step_by(64).map(|byte| usize::from(*byte)).sum();
    std::hint::black_box(seen);
    key.len() + value.len()
}

/// A copy of a value that the compiler must make, and its length.
fn copy(value: &[u8]) -> usize {
    std::hint::black_box(value.to_vec()).len()
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
