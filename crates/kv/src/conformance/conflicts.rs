//! Who loses against whom.

use super::{Case, assert_conflict, begin, dump, get, put, put_all, range};
use crate::{Engine, Error, Flow, Range, Read, Scan, Txn};

pub(super) const CASES: &[Case] = &[
    ("a get conflicts with a write of its key", get_conflicts),
    ("a get of nothing conflicts with a write of its key", get_of_nothing_conflicts),
    ("every kind of write conflicts with a read", every_write),
    ("a scan conflicts with a write in its range", scan_conflicts),
    ("a scan of nothing conflicts with a new row: no phantoms", phantom),
    ("only what a scan looked at counts", only_what_was_seen),
    ("a row at which a visit stopped counts", stopped_row_counts),
    ("snapshot reads take part in no conflict", snapshot_reads),
    ("blind writes do not conflict", blind_writes),
    ("writes elsewhere do not conflict", elsewhere),
    ("a lost update is refused", lost_update),
    ("write skew is refused", write_skew),
    ("a write before the beginning is no conflict", before_begin),
    ("a failed transaction leaves nothing and hurts nobody", failed_leaves_nothing),
    ("read_conflict counts as a read", read_conflict),
    ("write_conflict counts as a write and writes nothing", write_conflict),
    ("empty conflict ranges count for nothing", empty_conflict_ranges),
    ("a read of one's own add depends on what is under it", own_add),
    ("a conflict is found however many commits lie between", many_between),
];

/// `txn` reads by `read`, then `write` is committed by another, then `txn` writes and commits.
fn race(
    engine: &dyn Engine,
    read: impl FnOnce(&mut dyn Txn),
    write: impl FnOnce(&mut dyn Txn),
) -> Result<(), Error> {
    let mut txn = begin(engine);
    read(&mut *txn);
    let mut other = begin(engine);
    write(&mut *other);
    other.commit().expect("the other is first");
    txn.put(b"mine", b"1").expect("put");
    txn.commit().map(|_| ())
}

fn putting(key: &'static str) -> impl FnOnce(&mut dyn Txn) {
    move |txn| txn.put(key.as_bytes(), b"2").expect("put")
}

fn scanning(scan: Scan) -> impl FnOnce(&mut dyn Txn) {
    move |txn| drop(txn.scan(&scan).expect("scan"))
}

fn get_conflicts(engine: &dyn Engine) {
    put(engine, "a", "1");
    assert_conflict(race(engine, |txn| drop(get(txn, "a")), putting("a")));
    assert_eq!(dump(engine), "a=2");
}

fn get_of_nothing_conflicts(engine: &dyn Engine) {
    assert_conflict(race(engine, |txn| drop(get(txn, "a")), putting("a")));
}

fn every_write(engine: &dyn Engine) {
    for write in 0..4 {
        put_all(engine, &[("a", "1"), ("b", "1")]);
        let result = race(
            engine,
            |txn| drop(get(txn, "b")),
            |other| {
                match write {
                    0 => other.put(b"b", b"1"),
                    1 => other.del(b"b"),
                    2 => other.add(b"b", 1),
                    _ => other.clear(&range("a", "c")),
                }
                .expect("write");
            },
        );
        assert_conflict(result);
    }
}

fn scan_conflicts(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    for scan in [Scan::new(range("a", "c")), Scan::new(range("a", "c")).reverse()] {
        assert_conflict(race(engine, scanning(scan.clone()), putting("b")));
        assert_conflict(race(engine, scanning(scan.clone()), |txn| {
            txn.clear(&range("0", "a\0")).expect("clear");
        }));
        race(engine, scanning(scan), putting("c")).expect("the end is outside");
        put(engine, "a", "1");
    }
}

fn phantom(engine: &dyn Engine) {
    put(engine, "z", "1");
    for scan in [Scan::new(range("a", "c")), Scan::new(range("a", "c")).reverse()] {
        assert_conflict(race(engine, scanning(scan), putting("b")));
        let mut cleanup = begin(engine);
        cleanup.del(b"b").expect("del");
        cleanup.commit().expect("commit");
    }
}

fn only_what_was_seen(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let first = Scan::new(range("a", "d")).rows(1);
    race(engine, scanning(first.clone()), putting("c")).expect("c was not looked at");
    race(engine, scanning(first.clone().reverse()), putting("a")).expect("nor was a");
    assert_conflict(race(engine, scanning(first.clone()), putting("a")));
    assert_conflict(race(engine, scanning(first.reverse()), putting("c")));
    let none = Scan::new(range("a", "d")).rows(0);
    race(engine, scanning(none), putting("a")).expect("nothing was looked at");
    // What lies before the first row was looked at: there is none, and that was said.
    assert_conflict(race(engine, scanning(Scan::new(range("0", "d")).rows(1)), putting("1")));
}

fn stopped_row_counts(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let stop_at_b = |txn: &mut dyn Txn| {
        let stop = |key: &[u8]| if key == b"b" { Flow::Stop } else { Flow::Go };
        txn.visit(&Scan::new(range("a", "d")), &mut |key, _| stop(key)).expect("visit");
    };
    assert_conflict(race(engine, stop_at_b, putting("b")));
    race(engine, stop_at_b, putting("c")).expect("c was not shown");
}

fn snapshot_reads(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1")]);
    let look = |txn: &mut dyn Txn| {
        txn.get(b"a", Read::Snapshot).expect("get");
        txn.scan(&Scan::new(Range::all()).snapshot()).expect("scan");
    };
    race(engine, look, putting("a")).expect("nothing was promised");
    race(engine, look, |txn| txn.clear(&range("a", "c")).expect("clear")).expect("nor here");
}

fn blind_writes(engine: &dyn Engine) {
    let mut first = begin(engine);
    let mut second = begin(engine);
    first.put(b"a", b"1").expect("put");
    second.put(b"a", b"2").expect("put");
    second.del(b"b").expect("del");
    first.clear(&range("b", "c")).expect("clear");
    first.commit().expect("commit");
    second.commit().expect("who reads nothing loses to nobody");
    assert_eq!(dump(engine), "a=2");
}

fn elsewhere(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1")]);
    race(engine, |txn| drop(get(txn, "a")), putting("b")).expect("another key");
    race(engine, |txn| drop(get(txn, "a")), putting("a\0")).expect("a longer key");
    race(engine, |txn| drop(get(txn, "aa")), putting("a")).expect("a shorter key");
}

fn lost_update(engine: &dyn Engine) {
    put(engine, "n", "0");
    let mut first = begin(engine);
    let mut second = begin(engine);
    for txn in [&mut first, &mut second] {
        assert_eq!(get(&mut **txn, "n").as_deref(), Some("0"));
        txn.put(b"n", b"1").expect("put");
    }
    first.commit().expect("the first one wins");
    assert_conflict(second.commit());
}

fn write_skew(engine: &dyn Engine) {
    put_all(engine, &[("a", "on"), ("b", "on")]);
    let mut first = begin(engine);
    let mut second = begin(engine);
    for txn in [&mut first, &mut second] {
        let page = txn.scan(&Scan::new(Range::all())).expect("scan");
        assert_eq!(page.rows.len(), 2);
    }
    first.put(b"a", b"off").expect("put");
    second.put(b"b", b"off").expect("put");
    second.commit().expect("the first to commit wins");
    assert_conflict(first.commit());
    assert_eq!(dump(engine), "a=on b=off");
}

fn before_begin(engine: &dyn Engine) {
    let _other = begin(engine);
    put(engine, "a", "1");
    let mut txn = begin(engine);
    assert_eq!(get(&mut *txn, "a").as_deref(), Some("1"));
    txn.put(b"a", b"2").expect("put");
    txn.commit().expect("nothing happened meanwhile");
}

fn failed_leaves_nothing(engine: &dyn Engine) {
    let mut bystander = begin(engine);
    assert_eq!(get(&mut *bystander, "mine"), None);
    assert_conflict(race(engine, |txn| drop(get(txn, "a")), putting("a")));
    assert_eq!(dump(engine), "a=2");
    bystander.put(b"b", b"1").expect("put");
    bystander.commit().expect("the failed one wrote nothing that this one read");
}

fn read_conflict(engine: &dyn Engine) {
    let reading = |txn: &mut dyn Txn| txn.read_conflict(&range("a", "c")).expect("range");
    assert_conflict(race(engine, reading, putting("b")));
    assert_conflict(race(engine, reading, putting("a")));
    race(engine, reading, putting("c")).expect("the end is outside");
}

fn write_conflict(engine: &dyn Engine) {
    put(engine, "b", "1");
    let writing = |txn: &mut dyn Txn| txn.write_conflict(&range("a", "c")).expect("range");
    assert_conflict(race(engine, |txn| drop(get(txn, "b")), writing));
    let scan = Scan::new(range("b", "z"));
    assert_conflict(race(engine, scanning(scan), writing));
    race(engine, |txn| drop(get(txn, "c")), writing).expect("the end is outside");
    race(engine, writing, putting("b")).expect("it is no read");
    assert_eq!(dump(engine), "b=2 mine=1");
}

fn empty_conflict_ranges(engine: &dyn Engine) {
    let nothing = |txn: &mut dyn Txn| {
        txn.read_conflict(&range("a", "a")).expect("range");
        txn.read_conflict(&range("b", "a")).expect("range");
        txn.write_conflict(&range("a", "a")).expect("range");
        txn.scan(&Scan::new(range("b", "a"))).expect("scan");
    };
    race(engine, nothing, putting("a")).expect("nothing was read");
    race(engine, |txn| drop(get(txn, "a")), nothing).expect("nothing was written");
}

fn own_add(engine: &dyn Engine) {
    let add_and_look = |txn: &mut dyn Txn| {
        txn.add(b"n", 1).expect("add");
        txn.get(b"n", Read::Serializable).expect("get");
    };
    assert_conflict(race(engine, add_and_look, |txn| txn.add(b"n", 1).expect("add")));
}

fn many_between(engine: &dyn Engine) {
    put(engine, "a", "1");
    let mut loser = begin(engine);
    let mut winner = begin(engine);
    assert_eq!(get(&mut *loser, "a").as_deref(), Some("1"));
    for number in 0..200 {
        assert_eq!(get(&mut *winner, &format!("read{number}")), None);
    }
    put(engine, "a", "2");
    for number in 0..200 {
        put(engine, &format!("other{number}"), "1");
    }
    loser.put(b"b", b"1").expect("put");
    assert_conflict(loser.commit());
    winner.put(b"c", b"1").expect("put");
    winner.commit().expect("nobody wrote what it read");
}
