//! Runs the same random program on two engines and demands the same answers.
//!
//! A program keeps a few transactions open at once and interleaves them in one thread, so that the
//! answers, conflicts included, follow from the contract alone. Keys are few, so that transactions
//! meet.

use std::sync::Arc;

use kumiko_base::draw::{self, Draw};

use crate::{Engine, Error, Flow, Range, Read, Row, Scan, Txn};

/// How many transactions are open at once, at most.
const OPEN_MAX: usize = 4;

/// Runs `programs` random programs, each on a fresh engine from either maker. The environment's
/// `SEED` picks a single one.
///
/// # Panics
///
/// When the engines answer differently; the seed is printed.
pub fn run(programs: u64, left: &dyn Fn() -> Arc<dyn Engine>, right: &dyn Fn() -> Arc<dyn Engine>) {
    draw::check("mirror", programs, |draw| program(draw, &*left(), &*right()));
}

/// One transaction on each engine.
struct Pair {
    left: Box<dyn Txn>,
    right: Box<dyn Txn>,
    /// What was written so far. Whether reading one's own write counts as a read is left to the
    /// engine, so such reads are made without conflicts.
    written: Vec<Range>,
}

fn program(draw: &mut Draw, left: &dyn Engine, right: &dyn Engine) {
    let mut open: Vec<Pair> = Vec::new();
    for _ in 0..60 {
        if open.is_empty() || (open.len() < OPEN_MAX && draw.one_in(6)) {
            let pair = (left.begin(), right.begin());
            let (left, right) = (pair.0.expect("begin, left"), pair.1.expect("begin, right"));
            open.push(Pair { left, right, written: Vec::new() });
        }
        let index = draw.index(open.len());
        if draw.one_in(8) {
            commit(open.swap_remove(index));
        } else if draw.one_in(40) {
            drop(open.swap_remove(index));
        } else {
            step(draw, &mut open[index]);
        }
    }
    while !open.is_empty() {
        commit(open.swap_remove(draw.index(open.len())));
    }
    let (mut left, mut right) = (left.begin().expect("begin"), right.begin().expect("begin"));
    let all = Scan::new(Range::all());
    assert_eq!(pages(&mut *left, &all), pages(&mut *right, &all), "at the end");
}

fn commit(pair: Pair) {
    let (left, right) = (pair.left.commit(), pair.right.commit());
    assert_eq!(word(&left), word(&right), "commit");
}

/// What both engines must agree on: the kind of an error, not its words.
fn word<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.kind().word(),
    }
}

fn key(draw: &mut Draw) -> Vec<u8> {
    let mut key = vec![draw.one_of(&[0x01, b'a', b'b', 0xFE])];
    match draw.below(6) {
        0 => key.push(0),
        1 => key.push(0xFF),
        2 => key.push(draw.below(20) as u8),
        _ => {}
    }
    key
}

fn range(draw: &mut Draw) -> Range {
    match draw.below(6) {
        0 => Range::all(),
        1 => Range::one(&key(draw)),
        2 => Range::prefix(&key(draw)),
        _ => Range::new(key(draw), key(draw)),
    }
}

fn step(draw: &mut Draw, pair: &mut Pair) {
    let Pair { left, right, written } = pair;
    match draw.below(14) {
        0..=2 => {
            let key = key(draw);
            let own = written.iter().any(|range| range.contains(&key));
            let read = if own || draw.one_in(4) { Read::Snapshot } else { Read::Serializable };
            assert_eq!(left.get(&key, read), right.get(&key, read), "get {key:?}");
        }
        3..=5 => {
            let scan = random_scan(draw);
            assert_eq!(pages(&mut **left, &scan), pages(&mut **right, &scan), "{scan:?}");
        }
        6..=8 => {
            let (key, value) = (key(draw), draw.bytes(12));
            assert_eq!(left.put(&key, &value), right.put(&key, &value));
            written.push(Range::one(&key));
        }
        9 => {
            let key = key(draw);
            assert_eq!(left.del(&key), right.del(&key));
            written.push(Range::one(&key));
        }
        10 => {
            let (key, delta) = (key(draw), draw.bits() as i64);
            assert_eq!(left.add(&key, delta), right.add(&key, delta));
            written.push(Range::one(&key));
        }
        11 => {
            let range = range(draw);
            assert_eq!(left.clear(&range), right.clear(&range));
            written.push(range);
        }
        12 => {
            let range = range(draw);
            assert_eq!(left.read_conflict(&range), right.read_conflict(&range));
        }
        _ => {
            let range = range(draw);
            assert_eq!(left.write_conflict(&range), right.write_conflict(&range));
        }
    }
    assert_eq!(left.size(), right.size(), "size");
}

fn random_scan(draw: &mut Draw) -> Scan {
    let mut scan = Scan::new(range(draw));
    scan.reverse = draw.one_in(2);
    scan.rows_max = draw.one_of(&[1, 2, 5, usize::MAX]);
    scan.bytes_max = draw.one_of(&[1, 30, usize::MAX]);
    if draw.one_in(4) {
        scan.read = Read::Snapshot;
    }
    scan
}

/// The rows of all pages of a scan; an empty last page does not count, because an engine may or
/// may not know that nothing is left.
fn pages(txn: &mut dyn Txn, scan: &Scan) -> Result<Vec<Vec<Row>>, Error> {
    let mut pages = Vec::new();
    let mut scan = scan.clone();
    loop {
        let mut rows = Vec::new();
        let rest = txn.visit(&scan, &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            Flow::Go
        })?;
        if !rows.is_empty() {
            pages.push(rows);
        }
        match rest {
            Some(rest) => scan.range = rest,
            None => return Ok(pages),
        }
    }
}
