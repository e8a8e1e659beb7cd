//! Kumiko's event log beside LMDB, used as vere uses it, and Redis Streams, all durable.
//!
//! ```text
//! bench-eventlog [--tiny] [--seconds N] [--dir DIR] [append] [large] [replay] [memory]
//! ```
//!
//! Every system writes to the same disk, syncs every batch before it goes on, and is measured by
//! the wall clock. What was written is read back and counted.

mod append;
mod large;
mod memory;
mod peers;
mod replay;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What a run is to do.
pub(crate) struct Plan {
    pub(crate) tiny: bool,
    /// How long one cell of a table runs.
    pub(crate) cell: Duration,
    pub(crate) dir: PathBuf,
    /// How many directories were made. No name is used twice, because LMDB remembers them.
    made: AtomicU32,
}

impl Plan {
    /// An empty directory for one system, in place of what an earlier cell left.
    pub(crate) fn fresh(&self, name: &str) -> PathBuf {
        let _ = std::fs::remove_dir_all(&self.dir);
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.join(format!("{name}-{made}"));
        std::fs::create_dir_all(&dir).expect("the directory for measurements can be made");
        dir
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut plan = Plan {
        tiny: false,
        cell: Duration::from_secs(1),
        dir: std::env::temp_dir().join(format!("bench-eventlog-{}", std::process::id())),
        made: AtomicU32::new(0),
    };
    let mut parts: Vec<String> = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--tiny" => {
                plan.tiny = true;
                plan.cell = Duration::from_millis(30);
            }
            "--seconds" => {
                let seconds: f64 = args.next().and_then(|it| it.parse().ok()).expect("--seconds N");
                plan.cell = Duration::from_secs_f64(seconds);
            }
            "--dir" => plan.dir = args.next().expect("--dir DIR").into(),
            // The measurement of memory runs in processes of its own.
            "memory-child" => return memory::child(&args.collect::<Vec<_>>()),
            other => parts.push(other.to_owned()),
        }
    }
    let wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| part == name);
    std::fs::create_dir_all(&plan.dir).expect("the directory for measurements can be made");
    if wanted("append") {
        append::run(&plan);
    }
    if wanted("large") {
        large::run(&plan);
    }
    if wanted("replay") {
        replay::run(&plan);
    }
    if wanted("memory") {
        memory::run(&plan);
    }
    let _ = std::fs::remove_dir_all(&plan.dir);
}
