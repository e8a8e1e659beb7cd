//! Durable appends: events per second, by event size, batch and number of points at once.

use std::time::{Duration, Instant};

use crate::Plan;
use crate::peers::{Appender, Lmdb, Ours, Server, open_disk};

struct Cell {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

pub(crate) fn run(plan: &Plan) {
    println!("durable append, events per second (p50/p99 of a batch in ms)");
    println!(
        "{:>6} {:>6} {:>6}  {:>26} {:>26} {:>26}  {:>7} {:>7}",
        "points", "bytes", "batch", "kumiko", "lmdb", "redis streams", "/lmdb", "/redis"
    );
    for points in [1, 16] {
        for size in [100, 1_024] {
            for batch in [1, 100, 1_000] {
                let ours = kumiko(plan, points, size, batch);
                let lmdb = lmdb(plan, points, size, batch);
                let redis = redis(plan, points, size, batch);
                let show = |cell: Option<&Cell>| match cell {
                    None => "-".to_owned(),
                    Some(Cell { rate, p50, p99 }) => {
                        let ms = |it: &Duration| it.as_secs_f64() * 1_000.0;
                        format!("{rate:.0} ({:.2}/{:.2})", ms(p50), ms(p99))
                    }
                };
                let ratio = |other: Option<&Cell>| match other {
                    None => "-".to_owned(),
                    Some(other) => format!("{:.2}x", ours.rate / other.rate),
                };
                println!(
                    "{points:>6} {size:>6} {batch:>6}  {:>26} {:>26} {:>26}  {:>7} {:>7}",
                    show(Some(&ours)),
                    show(Some(&lmdb)),
                    show(redis.as_ref()),
                    ratio(Some(&lmdb)),
                    ratio(redis.as_ref()),
                );
            }
        }
    }
}

fn kumiko(plan: &Plan, points: usize, size: usize, batch: usize) -> Cell {
    let engine = open_disk(&plan.fresh("kumiko"));
    let appenders = (0..points).map(|point| Ours::new(&engine, point as u128)).collect();
    measure(plan, appenders, size, batch)
}

fn lmdb(plan: &Plan, points: usize, size: usize, batch: usize) -> Cell {
    let dir = plan.fresh("lmdb");
    let appenders = (0..points).map(|point| Lmdb::new(&dir.join(point.to_string()))).collect();
    measure(plan, appenders, size, batch)
}

fn redis(plan: &Plan, points: usize, size: usize, batch: usize) -> Option<Cell> {
    let server = Server::start(&plan.fresh("redis"))?;
    let appenders = (0..points).map(|point| server.stream(format!("s{point}"))).collect();
    Some(measure(plan, appenders, size, batch))
}

/// Runs every appender in a thread of its own for the time of a cell.
fn measure<A: Appender>(plan: &Plan, appenders: Vec<A>, size: usize, batch: usize) -> Cell {
    let event: Vec<u8> = (0..size).map(|at| (at * 131 % 251) as u8).collect();
    let begun = Instant::now();
    let mut batches: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = appenders
            .into_iter()
            .map(|mut appender| {
                let event = &event;
                scope.spawn(move || {
                    let mut took = Vec::new();
                    while begun.elapsed() < plan.cell || took.is_empty() {
                        let start = Instant::now();
                        appender.append(event, batch);
                        took.push(start.elapsed());
                    }
                    let count = appender.count();
                    assert_eq!(count, (took.len() * batch) as u64, "every event is there");
                    took
                })
            })
            .collect();
        threads.into_iter().flat_map(|it| it.join().expect("no appender fails")).collect()
    });
    let elapsed = begun.elapsed();
    batches.sort_unstable();
    let at = |part: usize| batches[(batches.len() - 1) * part / 100];
    let rate = (batches.len() * batch) as f64 / elapsed.as_secs_f64();
    Cell { rate, p50: at(50), p99: at(99) }
}
