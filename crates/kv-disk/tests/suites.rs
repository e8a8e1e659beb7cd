//! The suites that every engine passes, on the disk engine: on a disk in memory, with memtables so
//! small that tables are written and merged while they run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use kumiko_kv::{Engine, Memory, conformance, history, mirror};
use kumiko_kv_disk::simulated::Simulated;
use kumiko_kv_disk::{Disk, Durability, Options};

/// With threads.
fn threads() -> Arc<dyn Engine> {
    let options = Options { memtable_bytes: 20_000, ..Options::default() };
    Arc::new(Disk::open_on(Arc::new(Simulated::new()), Path::new("/store"), options).unwrap())
}

/// Without threads, with a memtable that holds a few rows.
fn single() -> Arc<dyn Engine> {
    let durability = Durability::Never;
    let options = Options { memtable_bytes: 700, durability, ..Options::default() };
    Arc::new(Disk::open_single(Arc::new(Simulated::new()), Path::new("/store"), options).unwrap())
}

fn memory() -> Arc<dyn Engine> {
    Arc::new(Memory::new())
}

#[test]
fn conforms() {
    conformance::run(&threads);
    conformance::run(&single);
}

#[test]
fn answers_as_the_memory_engine_does() {
    mirror::run(200, &single, &memory);
    mirror::run(50, &threads, &memory);
}

#[test]
fn histories_are_serializable() {
    history::run(&threads, 5);
    history::run(&single, 5);
}
