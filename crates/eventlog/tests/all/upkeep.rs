//! Snapshots, truncation, verification, repair and statistics.

use kumiko_base::Kind;
use kumiko_base::draw;
use kumiko_eventlog::key::{META_LATEST, META_SCHEMA, META_WRITER, Record};
use kumiko_eventlog::machine::Damage;
use kumiko_eventlog::repair::{Allow, repair};
use kumiko_eventlog::stat::stat;
use kumiko_eventlog::verify::{Finding, verify};
use kumiko_eventlog::{Error, EventId, Item, PageMax, SnapshotReader};
use kumiko_kv::{Engine, Memory, Range, Scan, Txn};

use crate::{append, bytes, id, log, read_all, writer};

/// Five events, the third in fragments, a snapshot at 2.
fn sample() -> Memory {
    let engine = Memory::new();
    let writing = writer(&engine);
    let events: Vec<Vec<u8>> = [4, 0, 35, 10, 9].map(|size| bytes(size, size as usize)).into();
    append(&engine, &writing, 1, &events);
    writing.snapshot(&engine, id(2), &mut &b"the state after two"[..]).unwrap();
    writing.release(&engine).unwrap();
    engine
}

fn change(engine: &Memory, body: impl FnOnce(&mut dyn Txn)) {
    let mut txn = engine.begin().unwrap();
    body(txn.as_mut());
    txn.commit().unwrap();
}

fn findings(engine: &Memory) -> Vec<Finding> {
    verify(engine, &log(), &mut |_, _| ()).unwrap().findings
}

/// What is done to a sample, what must be found, and whether a repair mends it without loss.
struct Case {
    name: &'static str,
    change: Change,
    found: Vec<Finding>,
    mends: bool,
}

enum Change {
    None,
    Del(Vec<u8>),
    Put(Vec<u8>, &'static [u8]),
    Clear(Range),
}

fn lossy(name: &'static str, change: Change, at: u64, damage: Damage) -> Case {
    Case { name, change, found: vec![Finding::Event { id: id(at), damage }], mends: false }
}

fn mendable(name: &'static str, change: Change, found: &[Finding]) -> Case {
    Case { name, change, found: found.to_vec(), mends: true }
}

fn damaged_events() -> Vec<Case> {
    use Change::{Clear, Del, Put};
    let key = |record| log().keys().record(record);
    let last = || key(Record::Fragment(id(3), 3));
    let middle = key(Record::Fragment(id(3), 2));
    let gap = |at| Damage::Gap { expected: id(at) };
    let twice = key(Record::First(id(4), 1));
    vec![
        lossy("a fragment is gone", Del(middle), 3, Damage::Torn),
        lossy("the last fragment is gone", Del(last()), 3, Damage::Torn),
        lossy("fragment 0 is gone", Clear(log().keys().first_fragment(id(3))), 3, Damage::Headless),
        lossy("a fragment is short", Put(last(), b"1"), 3, Damage::Torn),
        lossy("a fragment is long", Put(last(), b"123456"), 3, Damage::Sum),
        lossy("an event is gone", Del(key(Record::Whole(id(4)))), 4, gap(4)),
        lossy("the last event is gone", Del(key(Record::Whole(id(5)))), 5, gap(5)),
        lossy("an event is there twice", Put(twice, b"x"), 4, Damage::Double),
    ]
}

fn damage_around_events() -> Vec<Case> {
    use Change::{Del, Put};
    let keys = log().keys().clone();
    let key = |record| log().keys().record(record);
    let meta = |name: &[u8]| log().keys().meta(name);
    let foreign = [keys.prefix(), b"\x00odd"].concat();
    let schema = Finding::Schema("the log has events but no schema version".into());
    let snapshot = [Finding::Snapshot(id(2))];
    let headless = [Finding::Blob(0), Finding::Snapshot(id(2))];
    let after = key(Record::Fragment(id(6), 1));
    vec![
        mendable("nothing", Change::None, &[]),
        mendable("a foreign key", Put(foreign.clone(), b"x"), &[Finding::Foreign(foreign)]),
        mendable("debris after the latest", Put(after, b"x"), &[Finding::After(id(6))]),
        mendable("no latest", Del(meta(META_LATEST)), &[Finding::NoLatest]),
        mendable("no schema", Del(meta(META_SCHEMA)), &[schema]),
        mendable("a bad fence", Put(meta(META_WRITER), b"?"), &[Finding::Meta("meta/writer")]),
        mendable("a bad latest", Put(meta(META_LATEST), b"?"), &[]),
        mendable("a snapshot's byte", Put(keys.blob_piece(0, 1), b"x"), &snapshot),
        mendable("a snapshot's piece", Del(keys.blob_piece(0, 0)), &snapshot),
        mendable("a snapshot's note", Del(key(Record::Special(id(2), 3))), &snapshot),
        mendable("a snapshot's head", Del(keys.blob_head(0)), &headless),
        mendable("an unfinished snapshot", Put(keys.blob_piece(1, 0), b"x"), &[Finding::Blob(1)]),
    ]
}

#[test]
fn damage_is_named() {
    let cases = damaged_events().into_iter().chain(damage_around_events());
    for Case { name, change: done, found: expected, mends } in cases {
        let engine = sample();
        let before = read_all(&engine, &log(), PageMax::default());
        change(&engine, |txn| match &done {
            Change::None => {}
            Change::Del(key) => txn.del(key).unwrap(),
            Change::Put(key, value) => txn.put(key, value).unwrap(),
            Change::Clear(range) => txn.clear(range).unwrap(),
        });
        let found = findings(&engine);
        if name == "a bad latest" {
            assert_eq!(found[0], Finding::Meta("meta/latest"));
        } else {
            assert_eq!(found, expected, "{name}");
        }
        let allow = Allow { foreign: true, ..Allow::default() };
        let repaired = repair(&engine, &log(), "fixer", allow).unwrap();
        assert_eq!(repaired.after.is_clean(), mends, "{name}: {repaired:?}");
        assert_eq!(repaired.actions.is_empty(), name == "nothing" || !mends, "{name}");
        if mends {
            assert_eq!(read_all(&engine, &log(), PageMax::default()), before, "{name}");
        } else {
            let allow = Allow { cut: true, ..Allow::default() };
            let cut = repair(&engine, &log(), "fixer", allow).unwrap();
            assert!(cut.after.is_clean(), "{name}: {cut:?}");
            let left = read_all(&engine, &log(), PageMax::default());
            assert_eq!(left, before[..left.len()], "{name}");
            assert_eq!(Some(id(left.len() as u64 + 1)), repaired.after.damaged(), "{name}");
        }
    }
}

/// Random damage: nothing panics, what reads back is what was written, and a repair with all
/// rights leaves a clean log.
#[test]
fn mutated_stores() {
    draw::check("mutated_stores", 1_000, |draw| {
        let engine = sample();
        let before = read_all(&engine, &log(), PageMax::default());
        let rows = engine.begin().unwrap().scan(&Scan::new(Range::all())).unwrap().rows;
        change(&engine, |txn| {
            for _ in 0..=draw.below(2) {
                let (key, value) = draw.one_of(&rows);
                let mut other = key.clone();
                match draw.below(4) {
                    0 => txn.del(&key).unwrap(),
                    1 => txn.put(&key, &draw.bytes(30)).unwrap(),
                    2 => {
                        let at = 2 + draw.index(other.len() - 2);
                        other[at] = draw.one_of(&[0, 1, 3, 5, 0xfe]);
                        txn.put(&other, &value).unwrap();
                    }
                    _ => {
                        other.push(draw.bits() as u8 & 0x7f);
                        txn.put(&other, &value).unwrap();
                    }
                }
            }
        });
        let mut txn = engine.begin().unwrap();
        if let Ok(page) = log().page(txn.as_mut(), id(1), PageMax::default()) {
            let _ = page.events.len();
        }
        drop(txn);
        let allow = Allow { foreign: true, cut: true, take_over: true };
        match repair(&engine, &log(), "fixer", allow) {
            Ok(repaired) => {
                // What a truncated log lacks cannot be mended; everything else can.
                let left = |it: &&Finding| !matches!(it, Finding::Snapshot(_) | Finding::Meta(_));
                let left: Vec<_> = repaired.after.findings.iter().filter(left).collect();
                assert!(left.is_empty() || EventId::FIRST < repaired.after.first, "{repaired:?}");
            }
            Err(error) => assert!(
                matches!(error.kind(), Kind::Unsupported | Kind::Corrupt),
                "{error} after {before:?}"
            ),
        }
    });
}

#[test]
fn truncation_needs_a_snapshot() {
    let engine = sample();
    let writing = writer(&engine);
    let refused = writing.truncate(&engine, id(3)).unwrap_err();
    assert_eq!(refused, Error::Uncovered { cut: id(3), snapshot: Some(id(2)) });
    assert_eq!(writing.truncate(&engine, id(6)).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(writing.can_truncate(&engine, id(2)).unwrap().events, 2);
    let done = writing.truncate(&engine, id(2)).unwrap();
    assert_eq!((done.first, done.events), (id(3), 2));
    assert_eq!(findings(&engine), []);
    assert_eq!(writing.truncate(&engine, id(2)).unwrap().events, 0, "again is harmless");
    let all = read_all(&engine, &log(), PageMax::default());
    assert_eq!(all.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [3, 4, 5]);
    let mut txn = engine.begin().unwrap();
    let error = log().page(txn.as_mut(), id(2), PageMax::default()).unwrap_err();
    assert_eq!(error, Error::Truncated { id: id(2), first: id(3) });
    let snapshot = log().snapshot_before(txn.as_mut(), id(2)).unwrap().unwrap();
    let mut reader = SnapshotReader::new(&log(), snapshot);
    let mut state = Vec::new();
    while let Some(part) = reader.next(&engine).unwrap() {
        state.extend(part);
    }
    assert_eq!(state, b"the state after two");
    assert_eq!(writing.del_snapshot(&engine, id(2)).unwrap_err().kind(), Kind::Invalid);
    // All events may go, and the log still knows where it is.
    writing.snapshot(&engine, id(5), &mut &b"five"[..]).unwrap();
    writing.truncate(&engine, id(5)).unwrap();
    assert_eq!(findings(&engine), []);
    writing.append(&engine, id(6), &[Item::event(b"six")]).unwrap();
    assert_eq!(read_all(&engine, &log(), PageMax::default()), [(6, b"six".to_vec())]);
}

#[test]
fn a_damaged_snapshot_covers_nothing() {
    let engine = sample();
    let writing = writer(&engine);
    change(&engine, |txn| txn.put(&log().keys().blob_piece(0, 0), b"the etats!").unwrap());
    assert_eq!(writing.truncate(&engine, id(2)).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(read_all(&engine, &log(), PageMax::default()).len(), 5);
}

#[test]
fn snapshots_are_idempotent_by_content() {
    let engine = sample();
    let writing = writer(&engine);
    let same = writing.snapshot(&engine, id(2), &mut &b"the state after two"[..]).unwrap();
    assert_eq!(same.number, 0);
    let other = writing.snapshot(&engine, id(2), &mut &b"another"[..]).unwrap_err();
    assert_eq!(other.kind(), Kind::Exists);
    assert_eq!(writing.snapshot(&engine, id(6), &mut &b""[..]).unwrap_err().kind(), Kind::NotFound);
    writing.snapshot(&engine, id(5), &mut &b""[..]).unwrap();
    writing.snapshot(&engine, id(4), &mut bytes(1, 3_000).as_slice()).unwrap();
    writing.del_snapshot(&engine, id(2)).unwrap();
    assert_eq!(findings(&engine), []);
}

#[test]
fn statistics() {
    let engine = Memory::new();
    let writing = writer(&engine);
    let hour = 3_600_000;
    let large = bytes(1, 300);
    let items = [
        Item::event(b"a").at_ms(hour),
        Item::event(&large).at_ms(hour + 1),
        Item::special(1, b"xyz").at_ms(2 * hour),
        Item::event(b""),
    ];
    writing.append(&engine, id(1), &items).unwrap();
    writing.append(&engine, id(1), &items).unwrap();
    writing.append_from(&engine, id(5), &mut large.as_slice(), 2).unwrap();
    let stat = stat(&engine, &log(), &mut |_, _| ()).unwrap();
    assert_eq!((stat.total.events, stat.total.bytes), (5, 604));
    assert_eq!((stat.specials.events, stat.specials.bytes), (1, 3));
    assert_eq!((stat.classes[0].events, stat.classes[0].bytes), (3, 4));
    assert_eq!((stat.classes[3].events, stat.classes[3].bytes), (2, 600));
    let hours: Vec<_> = stat.hours.iter().map(|(at, it)| (*at, it.events, it.bytes)).collect();
    assert_eq!(hours, [(1, 2, 301), (2, 2, 303)]);
    assert_eq!(stat.largest[0].1, 300);
    assert_eq!(stat.largest.len(), 5);
}
