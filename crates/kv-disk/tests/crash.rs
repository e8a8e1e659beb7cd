//! A real process, really killed: whatever it was answered must be there afterwards.
//!
//! The test starts its own program again as a writer: sixteen threads that commit small
//! transactions with durability `always` and print every answer. After a moment the writer is
//! killed without warning. The test opens the store and looks for every answer it has read, and
//! for transactions of which only a part is there. `CRASH_CYCLES` says how often.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kumiko_base::draw::Draw;
use kumiko_kv::{Engine, Error, Range, Read, Scan};
use kumiko_kv_disk::{Disk, Options};

const WRITER: &str = "KUMIKO_CRASH_WRITER";
const THREADS: u64 = 16;
/// Rows per transaction: all of them or none.
const ROWS: u8 = 3;

fn options() -> Options {
    // Small, so that kills also hit the writing of tables and compactions.
    Options { memtable_bytes: 256 << 10, cache_bytes: 1 << 20, ..Options::default() }
}

fn key(thread: u64, number: u64, row: u8) -> Vec<u8> {
    format!("t{thread:02}/{number:08}/{row}").into_bytes()
}

fn value(thread: u64, number: u64, row: u8) -> Vec<u8> {
    let mut draw = Draw::new(thread << 40 | number << 8 | u64::from(row));
    let size = draw.one_of(&[0, 20, 100, 1000]);
    // Half of them zeros, which look like a place that was never written.
    let byte = if draw.one_in(2) { 0 } else { draw.bits() as u8 };
    vec![byte; size]
}

/// The writer: each thread goes on from what the store holds and never ends by itself.
fn write(dir: &Path) {
    let engine = Arc::new(Disk::open(dir, options()).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let engine = Arc::clone(&engine);
            scope.spawn(move || {
                for number in next_number(engine.as_ref(), thread).. {
                    commit(engine.as_ref(), thread, number).unwrap();
                    // One short write to a pipe is never torn.
                    let line = format!("{thread} {number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

fn commit(engine: &dyn Engine, thread: u64, number: u64) -> Result<(), Error> {
    let mut txn = engine.begin()?;
    for row in 0..ROWS {
        txn.put(&key(thread, number, row), &value(thread, number, row))?;
    }
    // A counter that all threads share, and one clear of an older transaction of this thread.
    txn.add(b"total", 1)?;
    if number % 7 == 6 {
        let old = Range::new(key(thread, number - 6, 0), key(thread, number - 6, ROWS));
        txn.clear(&old)?;
    }
    txn.commit().map(|_| ())
}

fn next_number(engine: &dyn Engine, thread: u64) -> u64 {
    let range = Range::new(format!("t{thread:02}/"), format!("t{thread:02}0"));
    let mut txn = engine.begin().unwrap();
    let page = txn.scan(&Scan::new(range).reverse().rows(1)).unwrap();
    match page.rows.first() {
        None => 0,
        Some((key, _)) => std::str::from_utf8(&key[4..12]).unwrap().parse::<u64>().unwrap() + 1,
    }
}

/// Looks for everything answered; says how many transactions there are.
fn verify(dir: &Path, answered: &[u64]) -> u64 {
    let engine = Disk::open(dir, options()).unwrap();
    let mut total = 0;
    for thread in 0..THREADS {
        let next = next_number(&engine, thread);
        let want = answered[thread as usize];
        assert!(want <= next, "thread {thread}: answered up to {want}, found up to {next}");
        total += next;
        let mut txn = engine.begin().unwrap();
        for number in 0..next {
            // Of every seven, the first is cleared by the last.
            let cleared = number % 7 == 0 && number + 6 < next;
            for row in 0..ROWS {
                let found = txn.get(&key(thread, number, row), Read::Snapshot).unwrap();
                let want = (!cleared).then(|| value(thread, number, row));
                assert_eq!(found, want, "thread {thread}, transaction {number}, row {row}");
            }
        }
    }
    let found = engine.begin().unwrap().get(b"total", Read::Snapshot).unwrap();
    let found = found.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    assert_eq!(found, total, "the shared counter counts every transaction once");
    assert_eq!(engine.check().problems, Vec::<String>::new());
    total
}

/// One life of the writer: reads its answers, kills it after `life`.
fn run_and_kill(dir: &Path, life: Duration, answered: &mut [u64]) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kill_and_look", "--exact", "--nocapture"])
        .env(WRITER, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let mut started: Option<Instant> = None;
    while lines.read_line(&mut line).unwrap() != 0 {
        let mut words = line.split_whitespace().map(str::parse::<u64>);
        if let (Some(Ok(thread)), Some(Ok(number)), true) =
            (words.next(), words.next(), line.ends_with('\n'))
        {
            answered[thread as usize] = number + 1;
            let started = started.get_or_insert_with(Instant::now);
            if life < started.elapsed() {
                // SIGKILL. What it had answered before is still in the pipe and is read on.
                let _ = child.kill();
            }
        }
        line.clear();
    }
    child.wait().unwrap();
}

#[test]
fn kill_and_look() {
    if let Some(dir) = std::env::var_os(WRITER) {
        write(&PathBuf::from(dir));
        return;
    }
    let cycles = std::env::var("CRASH_CYCLES").map_or(10, |text| text.parse().unwrap());
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("crash");
    let _ = std::fs::remove_dir_all(&dir);
    let mut answered = vec![0; THREADS as usize];
    let mut draw = Draw::new(std::process::id().into());
    for cycle in 0..cycles {
        run_and_kill(&dir, Duration::from_millis(draw.below(120)), &mut answered);
        let found = verify(&dir, &answered);
        let told: u64 = answered.iter().sum();
        assert!(0 < told, "the writer answered nothing in cycle {cycle}");
        eprintln!("cycle {cycle}: {told} answered, {found} found");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
