//! Memory while one very large event is written and read: the peak of a process of its own.

use std::io::Read;
use std::process::Command;

use kumiko_eventlog::{EventId, EventReader, Log, Point, Take, Writer};

use crate::Plan;
use crate::peers::open_disk;

pub(crate) fn run(plan: &Plan) {
    println!("peak memory of a process, MB");
    println!("{:>12} {:>10} {:>10}", "event bytes", "append", "read");
    let sizes: &[u64] =
        if plan.tiny { &[1 << 20, 16 << 20] } else { &[1 << 20, 64 << 20, 1 << 30] };
    for size in sizes {
        let dir = plan.fresh("memory");
        let peak = |what: &str| -> String {
            let program = std::env::current_exe().expect("our own path");
            let out = Command::new(program)
                .args(["memory-child", what, &size.to_string()])
                .arg(&dir)
                .output()
                .expect("a child runs");
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).trim().to_owned()
        };
        let (append, read) = (peak("append"), peak("read"));
        println!("{size:>12} {append:>10} {read:>10}");
    }
}

/// Writes or reads one event and prints the most memory that this took, in MB.
pub(crate) fn child(args: &[String]) {
    let [what, size, dir] = args else { panic!("memory-child WHAT SIZE DIR") };
    let size: u64 = size.parse().expect("a size");
    let engine = open_disk(dir.as_ref());
    let log = Log::of(Point::new(1));
    if what == "append" {
        let writer = Writer::open(&engine, &log, "bench", Take::Over).expect("the log is free");
        let mut source = std::io::repeat(7).take(size);
        writer.append_from(&engine, EventId::FIRST, &mut source, 0).expect("append");
    } else {
        let mut reader = EventReader::new(&log, EventId::FIRST);
        let mut read = 0;
        while let Some(part) = reader.next(&engine).expect("read") {
            read += part.len() as u64;
        }
        assert_eq!(read, size);
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    let kilobytes: u64 =
        peak.trim().trim_end_matches(" kB").trim().parse().expect("a number of kilobytes");
    println!("{}", kilobytes / 1_000);
}
