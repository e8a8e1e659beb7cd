//! Puts a FoundationDB cluster through the suites that every engine passes. Everything that the
//! cluster holds is removed.
//!
//! ```text
//! FDB_CLUSTER_FILE=fdb.cluster cargo run --example suite
//! ```

use std::process::ExitCode;
use std::sync::Arc;

use kumiko_kv::{Engine, Memory, Range, conformance, history, mirror};
use kumiko_kv_fdb::FoundationDb;

fn main() -> ExitCode {
    let Ok(file) = std::env::var("FDB_CLUSTER_FILE") else {
        eprintln!("set FDB_CLUSTER_FILE to the cluster file of a cluster that may be emptied");
        return ExitCode::FAILURE;
    };
    let make = || -> Arc<dyn Engine> {
        let engine = FoundationDb::open(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut txn = engine.begin().unwrap_or_else(|error| panic!("{file}: {error}"));
        txn.clear(&Range::all()).unwrap_or_else(|error| panic!("{file}: {error}"));
        txn.commit().unwrap_or_else(|error| panic!("{file}: {error}"));
        Arc::new(engine)
    };
    conformance::run(&make);
    eprintln!("conformance: ok");
    mirror::run(30, &make, &|| Arc::new(Memory::new()));
    eprintln!("mirror against the memory engine: ok");
    history::run(&make, 5);
    eprintln!("serializability of random histories: ok");
    ExitCode::SUCCESS
}
