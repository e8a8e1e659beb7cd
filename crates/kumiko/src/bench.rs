//! `kumiko bench`: how fast this machine is, measured through the engine contract.
//!
//! It says what to expect here; comparisons with other stores are in `bench/` of the project.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Subcommand;
use kumiko_base::draw::Draw;
use kumiko_kv::{Engine, Error as KvError, Flow, Range, Read, Retry, Scan, run as transact};
use kumiko_node::engine::{self, Missing};
use kumiko_node::{Error, random};

/// How many keys are written per transaction while the store is filled.
const FILL_BATCH: u64 = 500;
/// The most keys: more would measure patience.
const KEYS_MAX: u64 = 100_000_000;

/// The flags of `bench`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// The keyspace: durable commits, reads and scans
    Kv(Kv),
}

#[derive(clap::Args, Debug)]
struct Kv {
    /// Where to measure: memory, disk:DIR (a new directory, removed afterwards) or postgres:URL
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// When a commit is safe: always, everysecond or never
    #[arg(long, value_name = "WHEN", default_value = "always")]
    durability: String,
    /// How many keys to fill the store with
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    keys: u64,
    /// The size of a value in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    value: usize,
    /// How long each measurement takes
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    seconds: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let What::Kv(kv) = &args.what;
    if kv.keys == 0 || KEYS_MAX < kv.keys {
        return Err(Error::invalid(format!("--keys must be between 1 and {KEYS_MAX}")));
    }
    let dir = std::env::temp_dir().join(format!("kumiko-bench-{:016x}", random::number()?));
    let spec = kv.engine.clone().unwrap_or_else(|| format!("disk:{}", dir.display()));
    if let Some(dir) = spec.strip_prefix("disk:")
        && std::path::Path::new(dir).exists()
    {
        return Err(Error::invalid(format!("{dir} is there already; name a new directory")));
    }
    let engine = engine::open(&spec, &kv.durability, Missing::Create)?;
    let result = measure(&engine, kv);
    drop(engine);
    if let Some(dir) = spec.strip_prefix("disk:") {
        std::fs::remove_dir_all(dir)?;
    }
    result
}

fn measure(engine: &Arc<dyn Engine>, kv: &Kv) -> Result<(), Error> {
    let value = vec![7; kv.value];
    let begun = Instant::now();
    for first in (0..kv.keys).step_by(FILL_BATCH as usize) {
        put(engine.as_ref(), first..(first + FILL_BATCH).min(kv.keys), &value)?;
    }
    report("fill, 500 keys a commit", kv.keys, begun.elapsed());
    let span = Duration::from_secs(kv.seconds);
    for threads in [1, 16] {
        let count = timed(threads, span, |draw| {
            let key = draw.below(kv.keys);
            put(engine.as_ref(), key..key + 1, &value).map(|()| 1)
        })?;
        report(&format!("put, 1 key a commit, {threads} threads"), count, span);
    }
    let count = timed(1, span, |draw| {
        let key = key(draw.below(kv.keys));
        engine.begin()?.get(&key, Read::Snapshot).map(|_| 1)
    })?;
    report("get", count, span);
    let count = timed(1, span, |draw| {
        let range = Range::new(key(draw.below(kv.keys)), vec![2]);
        let mut rows = 0;
        let scan = Scan::new(range).rows(1000).snapshot();
        engine.begin()?.visit(&scan, &mut |_, _| {
            rows += 1;
            Flow::Go
        })?;
        Ok(rows)
    })?;
    report("scan, rows", count, span);
    Ok(())
}

fn key(number: u64) -> Vec<u8> {
    // Not in the order of writing, as most keys are not.
    let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    [&[1], &scattered.to_be_bytes()[..]].concat()
}

fn put(engine: &dyn Engine, keys: std::ops::Range<u64>, value: &[u8]) -> Result<(), KvError> {
    transact(engine, Retry::default(), |txn| {
        keys.clone().try_for_each(|number| txn.put(&key(number), value))
    })
}

/// Runs `body` on so many threads for `span`, and adds up what it returns.
fn timed(
    threads: u64,
    span: Duration,
    body: impl Fn(&mut Draw) -> Result<u64, KvError> + Sync,
) -> Result<u64, KvError> {
    let end = Instant::now() + span;
    std::thread::scope(|scope| {
        let run = |seed| {
            let body = &body;
            scope.spawn(move || {
                let mut draw = Draw::new(seed);
                let mut count = 0;
                while Instant::now() < end {
                    count += body(&mut draw)?;
                }
                Ok::<u64, KvError>(count)
            })
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        let ended = running.into_iter().map(|it| match it.join() {
            Ok(count) => count,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.sum()
    })
}

#[expect(clippy::print_stdout, reason = "the figures are what the command is for")]
fn report(what: &str, count: u64, span: Duration) {
    println!("{what:<32} {:>12.0} a second", count as f64 / span.as_secs_f64());
}
