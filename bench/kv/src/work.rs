//! The workloads. Each runs for a time, not for a count, and answers with a line.
//!
//! ```text
//! load       all keys once, in random order, 1024 to a commit
//! put/N      random keys again, N to a commit
//! get        a random key in a transaction of its own
//! scan       a hundred rows from a random key on
//! mixed      as many gets as commits of one put
//! durable/T  commits of one put that survive power loss, from T threads
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kumiko_base::draw::Draw;

use crate::store::{self, Row, Setting, Store};

/// The most that one commit writes: below the limit of a transaction.
const COMMIT_BYTES_MAX: usize = 8_000_000;
/// How many rows a scan reads.
const SCAN_ROWS: usize = 100;
/// Values are slices of this many random bytes.
const POOL_BYTES: usize = 1 << 20;

/// What one run of the program measures.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many keys there are.
    pub keys: u64,
    /// How long each workload runs.
    pub time: Duration,
    /// The sizes of values, in bytes.
    pub sizes: Vec<usize>,
    /// Which workloads, by the beginning of their names; all if empty.
    pub only: Vec<String>,
    /// The cache for engines that have one of their own.
    pub cache_bytes: usize,
}

impl Plan {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.starts_with(only.as_str()))
    }

    /// A hundredth of the keys for the largest values: the bytes are what takes time there.
    fn keys_of(&self, size: usize) -> u64 {
        if 10_000 < size { (self.keys / 100).max(10) } else { self.keys }
    }
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Line {
    /// The workload and the size of the values.
    pub name: String,
    /// Operations in a second; for puts, rows.
    pub per_second: f64,
    /// The time that half of the operations stayed below, in nanoseconds.
    pub p50_ns: u64,
    /// The time that all but one in a hundred stayed below.
    pub p99_ns: u64,
}

/// Runs the plan on one engine below `dir`, and tells each line when it is there.
pub fn run(engine: &str, dir: &Path, plan: &Plan, tell: &mut dyn FnMut(Line)) {
    let mut draw = Draw::new(1);
    let pool: Vec<u8> = (0..POOL_BYTES / 8).flat_map(|_| draw.bits().to_le_bytes()).collect();
    for size in &plan.sizes {
        let below = dir.join(format!("{size}"));
        std::fs::create_dir_all(&below).expect("a directory for the store");
        let setting = Setting { durable: false, cache_bytes: plan.cache_bytes };
        let store = store::open(engine, &below, setting);
        let bench = Bench { store: &*store, plan, pool: &pool, size: *size };
        bench.run(tell);
    }
    if plan.wants("durable") {
        for threads in [1, 16] {
            let below = dir.join(format!("durable-{threads}"));
            std::fs::create_dir_all(&below).expect("a directory for the store");
            let setting = Setting { durable: true, cache_bytes: plan.cache_bytes };
            let store = store::open(engine, &below, setting);
            let bench = Bench { store: &*store, plan, pool: &pool, size: 100 };
            tell(bench.durable(threads));
        }
    }
}

struct Bench<'a> {
    store: &'a dyn Store,
    plan: &'a Plan,
    pool: &'a [u8],
    size: usize,
}

impl Bench<'_> {
    fn run(&self, tell: &mut dyn FnMut(Line)) {
        tell(self.load());
        for rows in [1, 64, 1024] {
            let name = format!("put/{rows}");
            // A commit must stay below the limit of a transaction.
            let fits = rows * (self.size + 12) <= COMMIT_BYTES_MAX;
            if fits && self.plan.wants(&name) {
                tell(self.timed(&name, rows, |draw| {
                    let rows: Vec<Row> =
                        (0..rows).map(|_| self.row(self.any(draw), draw)).collect();
                    self.store.commit(&rows);
                }));
            }
        }
        self.store.sync();
        if self.plan.wants("get") {
            tell(self.timed("get", 1, |draw| {
                let found = self.store.get(&key(self.any(draw)));
                assert_eq!(found, Some(self.size), "a key that was loaded is there");
            }));
        }
        if self.plan.wants("scan") {
            tell(self.timed("scan", 1, |draw| {
                assert!(0 < self.store.scan(&key(self.any(draw)), SCAN_ROWS));
            }));
        }
        if self.plan.wants("mixed") {
            tell(self.timed("mixed", 1, |draw| {
                let number = self.any(draw);
                if draw.one_in(2) {
                    self.store.commit(&[self.row(number, draw)]);
                } else {
                    assert_eq!(self.store.get(&key(number)), Some(self.size));
                }
            }));
        }
    }

    /// Every key once, out of order.
    fn load(&self) -> Line {
        let keys = self.plan.keys_of(self.size);
        let mut draw = Draw::new(2);
        let per_commit = (COMMIT_BYTES_MAX / (self.size + 12)).clamp(1, 1024) as u64;
        let mut times = Vec::new();
        let began = Instant::now();
        let mut next = 0;
        while next < keys {
            let last = (next + per_commit).min(keys);
            let rows: Vec<Row> =
                (next..last).map(|number| self.row(shuffle(number, keys), &mut draw)).collect();
            let start = Instant::now();
            self.store.commit(&rows);
            times.push(nanos(start));
            next = last;
        }
        self.line("load", keys as f64 / began.elapsed().as_secs_f64(), times)
    }

    /// A number whose key was loaded.
    fn any(&self, draw: &mut Draw) -> u64 {
        let keys = self.plan.keys_of(self.size);
        shuffle(draw.below(keys), keys)
    }

    fn row(&self, number: u64, draw: &mut Draw) -> Row {
        let start = draw.index(self.pool.len() - self.size);
        (key(number), self.pool[start..start + self.size].to_vec())
    }

    fn timed(&self, name: &str, rows: usize, mut step: impl FnMut(&mut Draw)) -> Line {
        let mut draw = Draw::new(3);
        let mut times = Vec::new();
        let began = Instant::now();
        while began.elapsed() < self.plan.time {
            let start = Instant::now();
            step(&mut draw);
            times.push(nanos(start));
        }
        let per_second = (times.len() * rows) as f64 / began.elapsed().as_secs_f64();
        self.line(name, per_second, times)
    }

    fn durable(&self, threads: usize) -> Line {
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let work = |thread: usize| {
            let mut draw = Draw::new(100 + thread as u64);
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let number = draw.below(self.plan.keys);
                let rows = [self.row(number, &mut draw)];
                let start = Instant::now();
                self.store.commit(&rows);
                times.push(nanos(start));
            }
            times
        };
        let times: Vec<u64> = std::thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
            std::thread::sleep(self.plan.time);
            stop.store(true, Ordering::Relaxed);
            workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
        });
        let per_second = times.len() as f64 / began.elapsed().as_secs_f64();
        self.line(&format!("durable/{threads}"), per_second, times)
    }

    fn line(&self, name: &str, per_second: f64, mut times: Vec<u64>) -> Line {
        times.sort_unstable();
        let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or(0);
        let name = format!("{name} {}", show_size(self.size));
        Line { name, per_second, p50_ns: at(50), p99_ns: at(99) }
    }
}

fn show_size(size: usize) -> String {
    match size {
        1024 => "1 KiB".into(),
        100_000 => "100 kB".into(),
        size => format!("{size} B"),
    }
}

/// Each number below `keys` gets one of its own: an odd factor loses nothing modulo a power of two.
fn shuffle(number: u64, keys: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B1) % keys.next_power_of_two()
}

fn nanos(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// A key as ours look: a header and an integer, twelve bytes.
fn key(number: u64) -> Vec<u8> {
    let mut key = vec![0x01, b'O', 0x11, 0x00];
    key.extend_from_slice(&number.to_be_bytes());
    key
}
