//! Several threads on one log: appenders, readers, a follower and truncation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kumiko_base::Kind;
use kumiko_eventlog::verify::verify;
use kumiko_eventlog::{Error, Follow, Guard, Item, Log, PageMax, Point, Take, Writer};
use kumiko_kv::{Engine, Memory, retry};

use crate::faulty::Faulty;
use crate::{SNAP, id, log, read_all, stream, writer};

/// Writers that hold nothing race for the same ids; each answered event is there once, in order.
#[test]
fn appenders_without_a_fence() {
    let engine = Faulty::new(Memory::new(), 1, 6);
    let answered: Vec<(u64, Vec<u8>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u8)
            .map(|who| {
                let engine = &engine;
                scope.spawn(move || contend(engine, who))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let all = read_all(&engine, &log(), PageMax::default());
    let mut answered = answered;
    answered.sort();
    assert_eq!(all, answered);
}

fn contend(engine: &Faulty, who: u8) -> Vec<(u64, Vec<u8>)> {
    let mut mine = Vec::new();
    for turn in 0..50u8 {
        let event = vec![who, turn];
        // The reader of `latest` names the id; a fork means that another was faster.
        loop {
            let mut txn = engine.begin().unwrap();
            let next = log().latest(txn.as_mut(), SNAP).unwrap().unwrap_or_default().next();
            let once = retry::Retry { unknown: true, ..retry::Retry::default() };
            let result = retry::run(engine, once, |txn| {
                log().append(txn, Guard::Free, next, &[Item::event(&event)])
            });
            match result {
                Ok(_) => {
                    mine.push((next.get(), event));
                    break;
                }
                Err(Error::Fork { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    mine
}

/// One appends small and large events, one truncates, others read: nobody sees a torn event.
#[test]
fn appender_readers_and_truncation() {
    let engine = Memory::new();
    let writing = writer(&engine);
    let done = AtomicBool::new(false);
    let content = |number: u64| crate::bytes(number, (number * 13 % 160) as usize);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let mut txn = engine.begin().unwrap();
                    let bounds = log().bounds(txn.as_mut(), SNAP).unwrap();
                    let max = PageMax { events: 30, bytes: 300 };
                    let page = log().page(txn.as_mut(), bounds.first, max).unwrap();
                    for (at, seen) in page.events {
                        if let kumiko_eventlog::Content::Event(event) = seen {
                            assert_eq!(event, content(at.get()));
                        }
                    }
                }
            });
        }
        let follower = scope.spawn(|| {
            let mut follow = Follow::new(&log(), id(1), PageMax::default());
            let mut seen = 0;
            while follow.next_id() <= id(300) {
                match follow.next(&engine, Duration::from_secs(10)) {
                    Ok(page) => seen += page.events.len() as u64,
                    Err(Error::Truncated { first, .. }) => {
                        follow = Follow::new(&log(), first, PageMax::default());
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            seen
        });
        for number in 1..=300 {
            writing.append_from(&engine, id(number), &mut content(number).as_slice(), 0).unwrap();
            if number % 50 == 0 {
                writing.snapshot(&engine, id(number - 10), &mut &b"s"[..]).unwrap();
                writing.truncate(&engine, id(number - 20)).unwrap();
            }
        }
        assert!(0 < follower.join().unwrap());
        done.store(true, Ordering::SeqCst);
    });
    let report = verify(&engine, &log(), &mut |_, _| ()).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!((report.first.get(), report.latest.get()), (281, 300));
}

/// A follower that waits is woken by the append, long before its timeout.
#[test]
fn follow_wakes() {
    let engine = Memory::new();
    let writing = writer(&engine);
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let mut follow = Follow::new(&log(), id(1), PageMax::default());
            follow.next(&engine, Duration::from_secs(600)).unwrap()
        });
        std::thread::yield_now();
        writing.append(&engine, id(1), &[Item::event(b"x")]).unwrap();
        assert_eq!(follower.join().unwrap().events.len(), 1);
    });
}

/// Two hosts boot one ship: the second is refused, and after a take-over the first is cut off.
#[test]
fn a_double_boot() {
    let engine = Memory::new();
    let log = Log::of(Point::new(7));
    let one = Writer::open_until(&engine, &log, "one", Take::IfFree, 1_000).unwrap();
    one.append(&engine, id(1), &[Item::event(b"a")]).unwrap();
    let held = Writer::open(&engine, &log, "two", Take::IfFree).unwrap_err();
    assert_eq!(held, Error::Held { holder: "one".into(), epoch: 1, lease_until_ms: 1_000 });
    assert!(Writer::open(&engine, &log, "two", Take::IfExpired(1_000)).is_err());
    let mut txn = engine.begin().unwrap();
    let free = log.append(txn.as_mut(), Guard::Free, id(2), &[Item::event(b"b")]).unwrap_err();
    assert_eq!(free.kind(), Kind::Denied);
    let two = Writer::open(&engine, &log, "two", Take::IfExpired(1_001)).unwrap();
    two.append(&engine, id(2), &[Item::event(b"b")]).unwrap();
    let stale = one.append(&engine, id(2), &[Item::event(b"b")]).unwrap_err();
    assert_eq!(stale, Error::Stale { epoch: 1, holder_epoch: 2, holder: "two".into() });
    assert!(one.clone().release(&engine).is_err(), "a stale writer cannot free the log");
    two.release(&engine).unwrap();
    assert!(one.append(&engine, id(3), &[Item::event(b"c")]).is_err());
    Writer::open(&engine, &log, "three", Take::IfFree).unwrap();
}

/// A zombie in the middle of a large event writes no fragment after it was replaced.
#[test]
fn a_zombie_with_a_large_event() {
    struct Source<'a>(&'a Memory, u64);
    impl std::io::Read for Source<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1 += 1;
            if self.1 == 12 {
                let other = Writer::open(self.0, &log(), "other", Take::Over).unwrap();
                other.append(self.0, id(1), &[Item::event(&[9; 95])]).unwrap();
            }
            buffer.fill(1);
            Ok(if self.1 < 30 { buffer.len().min(10) } else { 0 })
        }
    }
    let engine = Memory::new();
    let zombie = writer(&engine);
    let error = zombie.append_from(&engine, id(1), &mut Source(&engine, 0), 0).unwrap_err();
    assert!(matches!(error, Error::Stale { .. }), "{error}");
    assert_eq!(stream(&engine, &log(), id(1)), [9; 95]);
    assert!(verify(&engine, &log(), &mut |_, _| ()).unwrap().is_clean());
}
