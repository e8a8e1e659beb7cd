//! `kumiko log` as a process: its output, its streams, and what is left after kill -9.

#![expect(clippy::unwrap_used, reason = "tests may unwrap")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kumiko::eventlog::{Bounds, Content, EventId, Item, Log, PageMax, Take, Writer};
use kumiko::kv::Engine;

const POINT: &str = "~sampel-palnet";
const OTHER: &str = "~nec";

/// A directory that is removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("kumiko-log-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    fn store(&self) -> PathBuf {
        self.0.join("store")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(store: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kumiko"));
    command.arg("log").arg("--dir").arg(store).args(args);
    command.env_remove("KUMIKO_DIR").env_remove("KUMIKO_ENGINE");
    command
}

fn run(store: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = command(store, args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that fails early reads none of it.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn ok(store: &Path, args: &[&str], input: &[u8]) -> String {
    let out = run(store, args, input);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn fails(store: &Path, args: &[&str], input: &[u8]) -> String {
    let out = run(store, args, input);
    assert!(!out.status.success(), "{args:?} should fail");
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn a_session() {
    let dir = Dir::new("session");
    let store = dir.store();
    assert_eq!(ok(&store, &["append", POINT, "-"], b"first"), "1\n");
    let file = dir.0.join("event");
    std::fs::write(&file, [0, 1, 2]).unwrap();
    assert_eq!(ok(&store, &["append", POINT, file.to_str().unwrap()], b""), "2\n");
    assert_eq!(ok(&store, &["append", POINT, "-", "--lines"], b"a\nbb\n\n"), "5\n");
    assert_eq!(ok(&store, &["--json", "append", "~zod", "-"], b""), "{\"id\":1,\"events\":1}\n");
    assert_eq!(ok(&store, &["latest", POINT], b""), "5\n");
    let points = "~zod  1..1  1 events\n~sampel-palnet  1..5  5 events\n";
    assert_eq!(ok(&store, &["points"], b""), points);
    let read = ok(&store, &["read", POINT, "--from", "1", "--limit", "2"], b"");
    assert_eq!(read, "1  5 bytes  \"first\"\n2  3 bytes  000102\n");
    let raw = run(&store, &["read", POINT, "--from", "2", "--limit", "2", "--raw"], b"");
    assert_eq!(raw.stdout, [0, 1, 2, b'a']);
    let back = ok(&store, &["read", POINT, "--back", "--limit", "2", "--json"], b"");
    assert_eq!(
        back,
        "{\"id\":5,\"size\":0,\"hex\":\"\"}\n{\"id\":4,\"size\":2,\"hex\":\"6262\"}\n"
    );
    let tail = ok(&store, &["tail", POINT, "--from", "4", "--limit", "2", "--raw"], b"");
    assert_eq!(tail, "bb");
    assert!(ok(&store, &["stat", POINT], b"").contains("up to 64"));
    assert!(ok(&store, &["verify"], b"").lines().all(|line| line.contains("  ok  ")));
    // The same event again is no change, another one under its id is refused, so is a gap.
    assert_eq!(ok(&store, &["append", POINT, "-", "--id", "1"], b"first"), "1\n");
    assert!(fails(&store, &["append", POINT, "-", "--id", "1"], b"other").contains("fork"));
    assert!(fails(&store, &["append", POINT, "-", "--id", "9"], b"x").contains("next event is 6"));
    assert!(fails(&store, &["latest", "~zod-zod"], b"").contains("not the name of a point"));
    // The front goes only where a snapshot covers it.
    assert!(fails(&store, &["truncate", POINT, "--to", "3"], b"").contains("no snapshot"));
    ok(&store, &["snapshot", POINT, "-", "--at", "3"], b"the state");
    assert_eq!(ok(&store, &["snapshots", POINT, "--raw", "3"], b""), "the state");
    let would = ok(&store, &["truncate", POINT, "--to", "3", "--dry-run"], b"");
    assert_eq!(would, "would remove 3 events, the first kept is 4\n");
    ok(&store, &["truncate", POINT, "--to", "3"], b"");
    let gone = fails(&store, &["read", POINT, "--from", "1"], b"");
    assert!(gone.contains("the first kept is 4"), "{gone}");
    assert!(ok(&store, &["repair", POINT], b"").contains("  ok  "));
    assert!(ok(&store, &["verify", POINT, "--json"], b"").contains("\"findings_count\":0"));
}

/// An event larger than any transaction goes in and out as a stream.
#[test]
fn a_large_event_through_pipes() {
    let dir = Dir::new("large");
    let store = dir.store();
    let event: Vec<u8> = (0..20_000_003_u32).map(|at| (at * 7 + at / 251) as u8).collect();
    assert_eq!(ok(&store, &["append", POINT, "-"], &event), "1\n");
    let raw = run(&store, &["read", POINT, "--raw"], b"");
    assert!(raw.stdout == event);
    assert!(ok(&store, &["verify", POINT], b"").contains("1 events, 20000003 bytes"));
}

#[test]
fn a_pier_there_and_back() {
    let dir = Dir::new("pier");
    let (store, other) = (dir.store(), dir.0.join("other"));
    let lines = "some event of at least five bytes\n".repeat(3_000);
    ok(&store, &["append", POINT, "-", "--lines"], lines.as_bytes());
    let pier = dir.0.join("pier");
    let pier_text = pier.to_str().unwrap();
    assert!(fails(&store, &["export-pier", POINT, pier_text], b"").contains("never a pier's"));
    ok(&store, &["export-pier", POINT, pier_text, "--life", "5"], b"");
    let text = ok(&other, &["import-pier", pier_text], b"");
    assert_eq!(text, "~sampel-palnet  imported 3000 events, the log has 1..3000, 0 snapshots\n");
    let again = dir.0.join("again");
    ok(&other, &["export-pier", POINT, again.to_str().unwrap()], b"");
    for file in [".urb/log/data.mdb", ".urb/log/0i0/data.mdb", ".urb/log/0i0/vere.txt"] {
        assert!(
            std::fs::read(pier.join(file)).unwrap() == std::fs::read(again.join(file)).unwrap()
        );
    }
    // A ship that runs is left alone.
    std::fs::write(pier.join(".vere.lock"), format!("{}\n", std::process::id())).unwrap();
    assert!(fails(&other, &["import-pier", pier_text], b"").contains("in use by process"));
}

/// The program appends numbered lines while it is killed at a random moment, again and again. What
/// it had answered is there, what is there is whole and in order, and nothing is there twice.
#[test]
fn kill_nine() {
    let dir = Dir::new("kill");
    let store = dir.store();
    let rounds = std::env::var("ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(6);
    let mut answered = 0_u64;
    let mut draw = kumiko::base::draw::Draw::new(u64::from(std::process::id()));
    for round in 0..rounds {
        let helper = std::env::current_exe().unwrap();
        let mut child = Command::new(helper)
            .args(["--exact", "appends_until_killed", "--nocapture"])
            .env("KUMIKO_TEST_STORE", &store)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let until = 3 + draw.below(40);
        let mut seen = 0;
        while let Some(Ok(line)) = lines.next() {
            if let Some(id) = line.strip_prefix("answered ") {
                answered = id.parse().unwrap();
                seen += 1;
            }
            if seen == until {
                break;
            }
        }
        child.kill().unwrap();
        for line in lines.map_while(Result::ok) {
            if let Some(id) = line.strip_prefix("answered ") {
                answered = id.parse().unwrap();
            }
        }
        child.wait().unwrap();
        assert_eq!(seen, until, "round {round}: the writer got going");
        check_after_kill(&store, answered);
        check_short(&store);
    }
}

fn check_after_kill(store: &Path, answered: u64) {
    let report = run(store, &["verify", POINT], b"");
    let text = String::from_utf8(report.stdout).unwrap();
    // An event under way may have left fragments after the latest; the next writer removes them.
    let odd = text.lines().skip(1).filter(|line| !line.contains("after the latest"));
    assert_eq!(odd.collect::<Vec<_>>(), Vec::<&str>::new());
    let latest: u64 = ok(store, &["latest", POINT], b"").trim().parse().unwrap();
    assert!(answered <= latest, "{answered} was answered, {latest} is there");
    let raw = run(store, &["read", POINT, "--raw"], b"").stdout;
    let mut rest = raw.as_slice();
    for id in 1..=latest {
        let expected = event_of(id);
        let (event, tail) = rest.split_at_checked(expected.len()).expect("no event is short");
        assert!(event == expected, "event {id}");
        rest = tail;
    }
    assert!(rest.is_empty());
}

/// The log that is truncated all the time is sound too, once what was under way is removed.
fn check_short(store: &Path) {
    let report = run(store, &["verify", OTHER], b"");
    let text = String::from_utf8(report.stdout).unwrap();
    let under_way = |line: &&str| line.contains("truncated") || line.contains("no snapshot");
    let odd: Vec<&str> = text.lines().skip(1).filter(|line| !under_way(line)).collect();
    assert_eq!(odd, Vec::<&str>::new());
    ok(store, &["repair", OTHER, "--take-over"], b"");
    let latest: u64 = ok(store, &["latest", OTHER], b"").trim().parse().unwrap();
    if latest != 0 {
        let raw = run(store, &["read", OTHER, "--raw", "--back", "--limit", "1"], b"").stdout;
        assert_eq!(raw, latest.to_be_bytes().repeat(10));
    }
}

/// Mostly small events, now and then one of several transactions.
fn event_of(id: u64) -> Vec<u8> {
    let size = match id % 20 {
        7 => 9_000_000,
        13 => 250_000,
        _ => 100,
    };
    let mut event = vec![id as u8; size];
    event[..8].copy_from_slice(&id.to_be_bytes());
    event
}

/// Not a test of its own: the process that [`kill_nine`] kills. One thread appends and answers, one
/// appends to another point, makes snapshots and truncates, one reads both.
#[test]
fn appends_until_killed() {
    let Ok(store) = std::env::var("KUMIKO_TEST_STORE") else { return };
    let spec = format!("disk:{store}");
    let engine = kumiko::node::engine::open(&spec, "always", kumiko::node::engine::Missing::Create);
    let engine = engine.unwrap();
    let engine = engine.as_ref();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            answer(engine);
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        scope.spawn(|| keep_short(engine, &done));
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                for point in [POINT, OTHER] {
                    read_some(engine, &log_of(point));
                }
            }
        });
    });
}

fn log_of(point: &str) -> Log {
    Log::of(point.parse().unwrap())
}

fn bounds(engine: &dyn Engine, log: &Log) -> Bounds {
    log.bounds(engine.begin().unwrap().as_mut(), kumiko::kv::Read::Snapshot).unwrap()
}

/// Appends and says so. It has an end, in case nobody kills it.
fn answer(engine: &dyn Engine) {
    let log = log_of(POINT);
    let writer = Writer::open(engine, &log, "victim", Take::Over).unwrap();
    let mut next = bounds(engine, &log).latest.next();
    for _ in 0..2_000 {
        if next.get().is_multiple_of(5) {
            let events: Vec<Vec<u8>> = (0..2).map(|it| event_of(next.get() + it)).collect();
            let items: Vec<Item<'_>> = events.iter().map(|it| Item::event(it)).collect();
            next = writer.append(engine, next, &items).unwrap().last.next();
        } else {
            let event = event_of(next.get());
            writer.append_from(engine, next, &mut event.as_slice(), 0).unwrap();
            next = next.next();
        }
        let mut out = std::io::stdout();
        writeln!(out, "answered {}", next.prior()).unwrap();
        out.flush().unwrap();
    }
}

/// Appends to a log of which only the newest events are kept.
fn keep_short(engine: &dyn Engine, done: &std::sync::atomic::AtomicBool) {
    let log = log_of(OTHER);
    let writer = Writer::open(engine, &log, "victim", Take::Over).unwrap();
    while !done.load(std::sync::atomic::Ordering::SeqCst) {
        let next = bounds(engine, &log).latest.next();
        let event = next.get().to_be_bytes().repeat(10);
        writer.append(engine, next, &[Item::event(&event)]).unwrap();
        if next.get().is_multiple_of(10) {
            let mut state = std::io::Read::take(std::io::repeat(next.get() as u8), 300_000);
            writer.snapshot(engine, next, &mut state).unwrap();
            writer.truncate(engine, next.prior()).unwrap();
        }
    }
}

fn read_some(engine: &dyn Engine, log: &Log) {
    let mut txn = engine.begin().unwrap();
    let bounds = log.bounds(txn.as_mut(), kumiko::kv::Read::Snapshot).unwrap();
    let from = EventId::new(bounds.latest.get().saturating_sub(30)).unwrap().max(bounds.first);
    let page = log.page(txn.as_mut(), from, PageMax::default()).unwrap();
    for (id, content) in page.events {
        if let Content::Event(event) = content {
            assert_eq!(event[..8], id.get().to_be_bytes());
        }
    }
}
