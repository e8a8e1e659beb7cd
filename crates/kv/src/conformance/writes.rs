//! What a transaction writes, and when others see it.

use super::{Case, begin, dump, get, put, put_all, range};
use crate::{Engine, Range, Read, Scan};

pub(super) const CASES: &[Case] = &[
    ("a commit makes all writes visible at once", all_at_once),
    ("a dropped transaction writes nothing", dropped),
    ("an empty transaction commits", empty),
    ("a put replaces, a del removes, a del of nothing is fine", put_and_del),
    ("an empty value is a value", empty_value),
    ("a clear removes the keys of its range and no other", clear),
    ("a clear of an empty range does nothing", clear_of_nothing),
    ("later writes of a transaction win over earlier ones", order_within),
    ("a transaction sees its own writes", own_writes),
    ("add is little-endian, wraps, pads and cuts", add),
    ("add works on what is there at the commit", add_at_commit),
    ("add after other writes of the same transaction", add_within),
    ("keys are bytes in byte order", byte_order),
    ("versions grow", versions),
    ("sync answers", sync),
    ("a watch rings for every kind of write", watches),
    ("a watch made before the read misses nothing", watch_then_read),
];

fn all_at_once(engine: &dyn Engine) {
    let mut txn = begin(engine);
    txn.put(b"a", b"1").unwrap_or_else(|error| panic!("{error}"));
    txn.put(b"b", b"2").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(dump(engine), "", "nobody sees it before the commit");
    txn.commit().expect("commit");
    assert_eq!(dump(engine), "a=1 b=2");
}

fn dropped(engine: &dyn Engine) {
    let mut txn = begin(engine);
    txn.put(b"a", b"1").expect("put");
    txn.clear(&Range::all()).expect("clear");
    txn.put(b"b", b"1").expect("put");
    drop(txn);
    assert_eq!(dump(engine), "");
}

fn empty(engine: &dyn Engine) {
    begin(engine).commit().expect("nothing to do");
    let mut reader = begin(engine);
    assert_eq!(get(&mut *reader, "a"), None);
    put(engine, "a", "1");
    reader.commit().expect("who only read has no conflict: its snapshot was one state");
}

fn put_and_del(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut txn = begin(engine);
    txn.put(b"a", b"2").expect("put");
    txn.del(b"b").expect("del");
    txn.del(b"no such key").expect("del");
    txn.commit().expect("commit");
    assert_eq!(dump(engine), "a=2 c=1");
    assert_eq!(get(&mut *begin(engine), "b"), None);
}

fn empty_value(engine: &dyn Engine) {
    put(engine, "a", "");
    assert_eq!(get(&mut *begin(engine), "a"), Some(String::new()));
    assert_eq!(dump(engine), "a=");
}

fn clear(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("b0", "1"), ("c", "1"), ("d", "1")]);
    let mut txn = begin(engine);
    txn.clear(&range("b", "c")).expect("clear");
    txn.commit().expect("commit");
    assert_eq!(dump(engine), "a=1 c=1 d=1");
    let mut txn = begin(engine);
    txn.clear(&range("b", "d")).expect("clear");
    txn.clear(&range("a", "b")).expect("clear");
    txn.commit().expect("commit");
    assert_eq!(dump(engine), "d=1");
    let mut txn = begin(engine);
    txn.clear(&Range::all()).expect("clear");
    txn.commit().expect("commit");
    assert_eq!(dump(engine), "");
}

fn clear_of_nothing(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1")]);
    let mut txn = begin(engine);
    txn.clear(&range("b", "b")).expect("clear");
    txn.clear(&range("c", "a")).expect("the end may stand before the start");
    txn.clear(&range("x", "z")).expect("clear");
    txn.commit().expect("commit");
    assert_eq!(dump(engine), "a=1 b=1");
}

fn order_within(engine: &dyn Engine) {
    put_all(engine, &[("a", "0"), ("b", "0"), ("c", "0")]);
    let mut txn = begin(engine);
    txn.put(b"a", b"1").expect("put");
    txn.clear(&range("a", "c")).expect("clear");
    txn.put(b"b", b"2").expect("put");
    txn.put(b"c", b"3").expect("put");
    txn.del(b"c").expect("del");
    txn.del(b"d").expect("del");
    txn.put(b"d", b"4").expect("put");
    txn.commit().expect("commit");
    assert_eq!(dump(engine), "b=2 d=4");
}

fn own_writes(engine: &dyn Engine) {
    put_all(engine, &[("a", "0"), ("b", "0"), ("c", "0"), ("e", "0")]);
    let mut txn = begin(engine);
    txn.put(b"a", b"1").expect("put");
    txn.del(b"b").expect("del");
    txn.put(b"d", b"1").expect("put");
    txn.clear(&range("e", "f")).expect("clear");
    for read in [Read::Serializable, Read::Snapshot] {
        assert_eq!(txn.get(b"a", read), Ok(Some(b"1".to_vec())));
        assert_eq!(txn.get(b"b", read), Ok(None));
        assert_eq!(txn.get(b"c", read), Ok(Some(b"0".to_vec())));
        assert_eq!(txn.get(b"e", read), Ok(None));
    }
    let scan = Scan::new(Range::all());
    assert_eq!(super::show(&txn.scan(&scan).expect("scan").rows), "a=1 c=0 d=1");
    let back = txn.scan(&scan.clone().reverse()).expect("scan");
    assert_eq!(super::show(&back.rows), "d=1 c=0 a=1");
    let two = txn.scan(&scan.clone().rows(2)).expect("scan");
    assert_eq!(super::show(&two.rows), "a=1 c=0", "bounds count the rows that are seen");
    txn.put(b"a", b"2").expect("put");
    assert_eq!(get(&mut *txn, "a").as_deref(), Some("2"));
}

fn add(engine: &dyn Engine) {
    // value before, delta, value after
    type Sum<'a> = (Option<&'a [u8]>, i64, [u8; 8]);
    let rows: [Sum; 7] = [
        (None, 5, [5, 0, 0, 0, 0, 0, 0, 0]),
        (Some(&[]), -1, [255; 8]),
        (Some(&[255]), 1, [0, 1, 0, 0, 0, 0, 0, 0]),
        (Some(&[1; 8]), 1, [2, 1, 1, 1, 1, 1, 1, 1]),
        (Some(&[255; 8]), 1, [0; 8]),
        (Some(&[1; 12]), 0, [1; 8]),
        (Some(&i64::MAX.to_le_bytes()), 1, i64::MIN.to_le_bytes()),
    ];
    for (before, delta, after) in rows {
        let mut txn = begin(engine);
        txn.del(b"n").expect("del");
        if let Some(before) = before {
            txn.put(b"n", before).expect("put");
        }
        txn.commit().expect("commit");
        let mut txn = begin(engine);
        txn.add(b"n", delta).expect("add");
        assert_eq!(txn.get(b"n", Read::Snapshot), Ok(Some(after.to_vec())), "own {before:?}");
        let page = txn.scan(&Scan::new(Range::one(b"n"))).expect("scan");
        assert_eq!(page.rows, [(b"n".to_vec(), after.to_vec())]);
        txn.commit().expect("commit");
        let value = begin(engine).get(b"n", Read::Snapshot);
        assert_eq!(value, Ok(Some(after.to_vec())), "{before:?} + {delta}");
    }
}

fn add_at_commit(engine: &dyn Engine) {
    let mut first = begin(engine);
    let mut second = begin(engine);
    first.add(b"n", 1).expect("add");
    second.add(b"n", 10).expect("add");
    put(engine, "n", "\x05");
    second.commit().expect("an add reads nothing");
    first.commit().expect("and conflicts with no other add");
    let value = begin(engine).get(b"n", Read::Snapshot);
    assert_eq!(value, Ok(Some(16_i64.to_le_bytes().to_vec())));
}

fn add_within(engine: &dyn Engine) {
    put_all(engine, &[("a", "\x01"), ("b", "\x01"), ("c", "\x01"), ("d", "\x01")]);
    let mut txn = begin(engine);
    txn.put(b"a", &[9]).expect("put");
    txn.add(b"a", 1).expect("add");
    txn.del(b"b").expect("del");
    txn.add(b"b", 1).expect("add");
    txn.clear(&range("c", "d")).expect("clear");
    txn.add(b"c", 1).expect("add");
    txn.add(b"d", 1).expect("add");
    txn.add(b"d", 1).expect("add");
    txn.add(b"e", 1).expect("add");
    txn.del(b"e").expect("del");
    txn.commit().expect("commit");
    let rows = begin(engine).scan(&Scan::new(Range::all())).expect("scan").rows;
    let values: Vec<u8> = rows.iter().map(|(_, value)| value[0]).collect();
    assert_eq!(values, [10, 1, 1, 3]);
    assert!(rows.iter().all(|(_, value)| value.len() == 8));
}

fn byte_order(engine: &dyn Engine) {
    let keys: [&[u8]; 9] = [
        b"\x00",
        b"\x00\x00",
        b"\x00\xFF",
        b"\x01",
        b"A",
        b"a",
        b"a\x00",
        b"\x80",
        b"\xFE\xFF\xFF",
    ];
    let mut txn = begin(engine);
    for key in keys.iter().rev() {
        txn.put(key, b"").expect("put");
    }
    txn.commit().expect("commit");
    let found = begin(engine).scan(&Scan::new(Range::all())).expect("scan").rows;
    let found: Vec<&[u8]> = found.iter().map(|(key, _)| key.as_slice()).collect();
    assert_eq!(found, keys);
}

fn versions(engine: &dyn Engine) {
    let mut last = put(engine, "a", "1").version;
    for _ in 0..5 {
        let next = put(engine, "a", "1").version;
        assert!(last < next, "{last} then {next}");
        last = next;
    }
}

fn sync(engine: &dyn Engine) {
    engine.sync().expect("nothing to do");
    put(engine, "a", "1");
    engine.sync().expect("sync");
    assert_eq!(dump(engine), "a=1");
}

/// Long enough that a busy machine does not fail, short enough that a failing test ends.
const WAIT: std::time::Duration = std::time::Duration::from_secs(20);

fn watches(engine: &dyn Engine) {
    put(engine, "k", "1");
    for write in 0..4 {
        let mut watch = engine.watch(b"k").expect("watch");
        let mut txn = begin(engine);
        match write {
            0 => txn.put(b"k", b"2"),
            1 => txn.add(b"k", 1),
            2 => txn.del(b"k"),
            _ => txn.clear(&Range::prefix(b"k")),
        }
        .expect("write");
        txn.put(b"k2", b"x").expect("put");
        txn.commit().expect("commit");
        assert_eq!(watch.wait(WAIT), Ok(true), "write number {write}");
        put(engine, "k", "1");
    }
}

fn watch_then_read(engine: &dyn Engine) {
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            // The loop of everyone who waits: watch, look, wait.
            loop {
                let mut watch = engine.watch(b"flag").expect("watch");
                if get(&mut *begin(engine), "flag").is_some() {
                    return true;
                }
                if watch.wait(WAIT) == Ok(false) {
                    return false;
                }
            }
        });
        put(engine, "flag", "up");
        assert!(waiter.join().expect("no panic"), "the flag was missed");
    });
}
