//! Puts a PostgreSQL server through the suites that every engine passes.
//!
//! ```text
//! cargo run -p kumiko-kv-postgres --example suite -- postgres://postgres@127.0.0.1:5432/postgres
//! ```
//!
//! Everything that the database holds in our tables is removed.

use std::process::ExitCode;
use std::sync::Arc;

use kumiko_kv::{Engine, Memory, conformance, history, mirror};
use kumiko_kv_postgres::Postgres;

/// Random programs of the mirror, and rounds of the history checker.
const PROGRAMS: u64 = 30;
const ROUNDS: u64 = 5;

fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: suite POSTGRES_URL");
        return ExitCode::FAILURE;
    };
    let make = || -> Arc<dyn Engine> {
        let engine = Postgres::open(&url, u64::from(std::process::id()));
        let engine = engine.unwrap_or_else(|error| panic!("{url}: {error}"));
        engine.drop_all().unwrap_or_else(|error| panic!("{url}: {error}"));
        Arc::new(engine)
    };
    conformance::run(&make);
    eprintln!("conformance: ok");
    mirror::run(PROGRAMS, &make, &|| Arc::new(Memory::new()));
    eprintln!("mirror against the memory engine: ok");
    history::run(&make, ROUNDS);
    eprintln!("serializability of random histories: ok");
    ExitCode::SUCCESS
}
