//! Large events: megabytes per second, written durably one by one, and read back as a stream.

use std::time::Instant;

use kumiko_eventlog::{EventId, EventReader, Log, Point, Take, Writer};

use crate::Plan;
use crate::peers::{Appender, Lmdb, Server, open_disk};

pub(crate) fn run(plan: &Plan) {
    println!("large events, MB/s durable append (and read back)");
    println!("{:>12} {:>18} {:>18} {:>14}  {:>7}", "bytes", "kumiko", "lmdb", "redis", "/lmdb");
    let rows = if plan.tiny {
        [(300_000, 3), (9_000_000, 1)]
    } else {
        [(3_000_000, 60), (100_000_000, 4)]
    };
    for (size, count) in rows {
        let (ours, ours_read) = kumiko(plan, size, count);
        let (lmdb, lmdb_read) = lmdb(plan, size, count);
        let redis = redis(plan, size, count).map_or("-".to_owned(), |it| format!("{it:.0}"));
        println!(
            "{size:>12} {:>18} {:>18} {redis:>14}  {:>6.2}x",
            format!("{ours:.0} ({ours_read:.0})"),
            format!("{lmdb:.0} ({lmdb_read:.0})"),
            ours / lmdb
        );
    }
}

fn rate(size: usize, count: usize, begun: Instant) -> f64 {
    (size * count) as f64 / begun.elapsed().as_secs_f64() / 1e6
}

fn kumiko(plan: &Plan, size: usize, count: usize) -> (f64, f64) {
    let engine = open_disk(&plan.fresh("kumiko"));
    let log = Log::of(Point::new(1));
    let writer = Writer::open(&engine, &log, "bench", Take::Over).expect("the log is free");
    let event = vec![7; size];
    let begun = Instant::now();
    let mut id = EventId::FIRST;
    for _ in 0..count {
        writer.append_from(&engine, id, &mut event.as_slice(), 0).expect("append");
        id = id.next();
    }
    let written = rate(size, count, begun);
    let begun = Instant::now();
    let mut read = 0;
    let mut id = EventId::FIRST;
    for _ in 0..count {
        let mut reader = EventReader::new(&log, id);
        while let Some(part) = reader.next(&engine).expect("read") {
            read += part.len();
        }
        id = id.next();
    }
    assert_eq!(read, size * count);
    (written, rate(size, count, begun))
}

fn lmdb(plan: &Plan, size: usize, count: usize) -> (f64, f64) {
    let dir = plan.fresh("lmdb");
    let mut lmdb = Lmdb::new(&dir);
    let event = vec![7; size];
    let begun = Instant::now();
    for _ in 0..count {
        lmdb.append(&event, 1);
    }
    let written = rate(size, count, begun);
    let Lmdb { env, events, .. } = lmdb;
    let begun = Instant::now();
    let txn = env.read_txn().expect("read_txn");
    let mut copy = Vec::new();
    for row in events.iter(&txn).expect("iter") {
        // vere copies an event out of the map before it works on it; so does our stream.
        copy.clear();
        copy.extend_from_slice(row.expect("row").1);
    }
    assert_eq!(copy.len(), size);
    (written, rate(size, count, begun))
}

fn redis(plan: &Plan, size: usize, count: usize) -> Option<f64> {
    let server = Server::start(&plan.fresh("redis"))?;
    let mut stream = server.stream("s".into());
    let event = vec![7; size];
    let begun = Instant::now();
    for _ in 0..count {
        stream.append(&event, 1);
    }
    Some(rate(size, count, begun))
}
