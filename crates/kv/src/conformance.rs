//! The contract, sentence by sentence, for any engine.
//!
//! An engine's tests call [`run`] with a function that makes an empty engine. Every case gets one
//! of its own. What the contract leaves open, whether reading one's own write counts as a read, is
//! not tested.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::{Committed, Engine, Error, Range, Read, Row, Scan, Txn};

mod concurrent;
mod conflicts;
mod limits;
mod reads;
mod writes;

type Case = (&'static str, fn(&dyn Engine));

/// Puts an engine through every case.
///
/// # Panics
///
/// When the engine breaks the contract; the name of the case is printed.
pub fn run(make: &dyn Fn() -> Arc<dyn Engine>) {
    let groups = [writes::CASES, reads::CASES, conflicts::CASES, limits::CASES, concurrent::CASES];
    for (name, case) in groups.into_iter().flatten() {
        let engine = make();
        assert!(!engine.name().is_empty());
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case(&*engine))) {
            eprintln!("{} does not conform: {name}", engine.name());
            resume_unwind(panic);
        }
    }
}

fn begin(engine: &dyn Engine) -> Box<dyn Txn> {
    engine.begin().expect("an engine begins transactions")
}

/// Writes rows in one transaction.
fn put_all(engine: &dyn Engine, rows: &[(&str, &str)]) -> Committed {
    let mut txn = begin(engine);
    for (key, value) in rows {
        txn.put(key.as_bytes(), value.as_bytes()).expect("a small row fits");
    }
    txn.commit().expect("nothing was read, so nothing conflicts")
}

fn put(engine: &dyn Engine, key: &str, value: &str) -> Committed {
    put_all(engine, &[(key, value)])
}

fn get(txn: &mut dyn Txn, key: &str) -> Option<String> {
    text(txn.get(key.as_bytes(), Read::Serializable).expect("a get works"))
}

fn text(value: Option<Vec<u8>>) -> Option<String> {
    value.map(|bytes| String::from_utf8(bytes).expect("the cases write text"))
}

/// All rows, in words: "a=1 b=2".
fn dump(engine: &dyn Engine) -> String {
    show(&begin(engine).scan(&Scan::new(Range::all())).expect("a scan works").rows)
}

fn show(rows: &[Row]) -> String {
    let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown: Vec<String> =
        rows.iter().map(|(key, value)| format!("{}={}", part(key), part(value))).collect();
    shown.join(" ")
}

fn range(start: &str, end: &str) -> Range {
    Range::new(start.as_bytes(), end.as_bytes())
}

fn assert_conflict<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::Conflict)), "{result:?} is no conflict");
}
