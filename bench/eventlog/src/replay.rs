//! Full replay: every event once, in order, summed up so that every byte is looked at.

use std::time::Instant;

use kumiko_eventlog::{EventId, Log, Point, Seen};
use kumiko_kv::{Engine, Flow, Read};

use crate::Plan;
use crate::peers::{Appender, Lmdb, Ours, open_disk};

/// How many events one transaction reads, far below what takes five seconds.
const STEP_EVENTS: u64 = 500_000;

pub(crate) fn run(plan: &Plan) {
    println!("full replay, events per second, best of three");
    println!("{:>6} {:>10} {:>14} {:>14}  {:>7}", "bytes", "events", "kumiko", "lmdb", "/lmdb");
    let rows =
        if plan.tiny { [(100, 2_000), (1_024, 500)] } else { [(100, 2_000_000), (1_024, 400_000)] };
    for (size, count) in rows {
        let event: Vec<u8> = (0..size).map(|at| (at * 131 % 251) as u8).collect();
        let ours = kumiko(plan, &event, count);
        let lmdb = lmdb(plan, &event, count);
        println!("{size:>6} {count:>10} {ours:>14.0} {lmdb:>14.0}  {:>6.2}x", ours / lmdb);
    }
}

/// Cheap, but every byte counts: words, then the rest.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, it| sum.wrapping_add(u64::from_le_bytes(*it)));
    rest.iter().fold(words, |sum, it| sum.wrapping_add(u64::from(*it)))
}

fn best(count: u64, mut body: impl FnMut() -> u64, expected: u64) -> f64 {
    let times = (0..3).map(|_| {
        let begun = Instant::now();
        assert_eq!(body(), expected, "every byte of every event");
        begun.elapsed().as_secs_f64()
    });
    count as f64 / times.fold(f64::MAX, f64::min)
}

fn kumiko(plan: &Plan, event: &[u8], count: u64) -> f64 {
    let dir = plan.fresh("kumiko");
    let engine = open_disk(&dir);
    let mut ours = Ours::new(&engine, 1);
    fill(&mut ours, event, count);
    drop(ours);
    drop(engine);
    let engine = open_disk(&dir);
    let log = Log::of(Point::new(1));
    let replay = || {
        let mut total = 0u64;
        let mut next = EventId::FIRST;
        loop {
            let mut txn = engine.begin().expect("begin");
            let latest = log.bounds(txn.as_mut(), Read::Snapshot).expect("bounds").latest;
            if latest < next {
                return total;
            }
            let to = latest.min(next.plus(STEP_EVENTS));
            next = log
                .visit(txn.as_mut(), next, to, usize::MAX, &mut |_, seen| {
                    if let Seen::Event(bytes) = seen {
                        total = total.wrapping_add(sum(bytes));
                    }
                    Flow::Go
                })
                .expect("visit");
        }
    };
    best(count, replay, sum(event).wrapping_mul(count))
}

fn lmdb(plan: &Plan, event: &[u8], count: u64) -> f64 {
    let dir = plan.fresh("lmdb");
    let mut lmdb = Lmdb::new(&dir);
    fill(&mut lmdb, event, count);
    let Lmdb { env, events, .. } = lmdb;
    let replay = || {
        let txn = env.read_txn().expect("read_txn");
        let mut total = 0u64;
        let mut next = 1u64;
        for row in events.iter(&txn).expect("iter") {
            let (key, value) = row.expect("row");
            // vere refuses a gap, and so do we.
            assert_eq!(key, next.to_ne_bytes());
            next += 1;
            total = total.wrapping_add(sum(value));
        }
        total
    };
    best(count, replay, sum(event).wrapping_mul(count))
}

fn fill(appender: &mut dyn Appender, event: &[u8], count: u64) {
    let mut left = count as usize;
    while 0 < left {
        let batch = left.min(5_000);
        appender.append(event, batch);
        left -= batch;
    }
}
