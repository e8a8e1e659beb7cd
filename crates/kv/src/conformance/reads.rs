//! Snapshots, ranges and pages.

use super::{Case, begin, get, put, put_all, range, show};
use crate::{Engine, Flow, Page, Range, Read, Scan, Txn};

pub(super) const CASES: &[Case] = &[
    ("all reads of a transaction see one state", one_state),
    ("a transaction begins on the newest state", newest_state),
    ("a range holds its start and not its end", half_open),
    ("an empty range holds nothing", empty_range),
    ("a prefix holds its children", prefix),
    ("pages join to the whole, forwards and backwards", pages_join),
    ("rows_max bounds a page", rows_bound),
    ("bytes_max bounds a page, the row that reaches it included", bytes_bound),
    ("a visit stops when it is told", visit_stops),
    ("a visit may use the engine", visit_is_not_locked),
    ("many rows and own writes among them", many_rows),
];

fn one_state(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    for read in [Read::Serializable, Read::Snapshot] {
        put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
        let mut txn = begin(engine);
        // The state is that of the beginning, not of the first read.
        let mut other = begin(engine);
        other.put(b"a", b"2").expect("put");
        other.del(b"b").expect("del");
        other.put(b"d", b"2").expect("put");
        other.clear(&range("c", "d")).expect("clear");
        other.commit().expect("commit");
        assert_eq!(txn.get(b"a", read), Ok(Some(b"1".to_vec())));
        assert_eq!(txn.get(b"b", read), Ok(Some(b"1".to_vec())));
        assert_eq!(txn.get(b"d", read), Ok(None));
        let scan = Scan { read, ..Scan::new(Range::all()) };
        assert_eq!(show(&txn.scan(&scan).expect("scan").rows), "a=1 b=1 c=1");
        drop(txn);
        let mut cleanup = begin(engine);
        cleanup.clear(&Range::all()).expect("clear");
        cleanup.commit().expect("commit");
    }
}

fn newest_state(engine: &dyn Engine) {
    let _old = begin(engine);
    for value in ["1", "2", "3"] {
        put(engine, "a", value);
        assert_eq!(get(&mut *begin(engine), "a").as_deref(), Some(value));
    }
}

fn rows_of(engine: &dyn Engine, scan: &Scan) -> String {
    show(&begin(engine).scan(scan).expect("scan").rows)
}

fn half_open(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    assert_eq!(rows_of(engine, &Scan::new(range("a", "c"))), "a=1 b=1");
    assert_eq!(rows_of(engine, &Scan::new(range("a\0", "c\0"))), "b=1 c=1");
    assert_eq!(rows_of(engine, &Scan::new(range("a", "c")).reverse()), "b=1 a=1");
    assert_eq!(rows_of(engine, &Scan::new(range("a\0", "c\0")).reverse()), "c=1 b=1");
    assert_eq!(rows_of(engine, &Scan::new(Range::one(b"b"))), "b=1");
}

fn empty_range(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1")]);
    for (start, end) in [("a", "a"), ("b", "a"), ("c", "z"), ("", "")] {
        for scan in [Scan::new(range(start, end)), Scan::new(range(start, end)).reverse()] {
            let page = begin(engine).scan(&scan).expect("scan");
            assert_eq!(page, Page::default(), "{scan:?}");
        }
    }
}

fn prefix(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("aa", "1"), ("a\0", "1"), ("b", "1"), ("`", "1")]);
    assert_eq!(rows_of(engine, &Scan::new(Range::prefix(b"a"))), "a=1 a\0=1 aa=1");
}

/// Reads page after page; checks that each rest lies behind its page.
fn all_pages(txn: &mut dyn Txn, scan: &Scan) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut scan = scan.clone();
    loop {
        let page = txn.scan(&scan).expect("scan");
        let rest = page.rest.clone();
        if let (Some(rest), Some((last, _))) = (&rest, page.rows.last()) {
            assert!(!rest.contains(last), "the rest holds what was read");
            assert!(scan.range.start <= rest.start && rest.end <= scan.range.end);
            if scan.reverse {
                assert!(rest.end <= *last && rest.start == scan.range.start);
            } else {
                assert!(*last < rest.start && rest.end == scan.range.end);
            }
        }
        assert!(pages.len() < 10_000, "the pages do not end");
        pages.push(page);
        match rest {
            Some(rest) => scan.range = rest,
            None => return pages,
        }
    }
}

fn join(pages: &[Page]) -> String {
    let rows: Vec<_> = pages.iter().flat_map(|page| page.rows.clone()).collect();
    show(&rows)
}

fn pages_join(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "22"), ("c", "333"), ("d", "4"), ("e", "")]);
    for rows_max in [1, 2, 3, 4, 5, 6, usize::MAX] {
        for bytes_max in [1, 3, 7, usize::MAX] {
            let scan = Scan::new(Range::all()).rows(rows_max).bytes(bytes_max);
            let pages = all_pages(&mut *begin(engine), &scan);
            assert_eq!(join(&pages), "a=1 b=22 c=333 d=4 e=");
            let pages = all_pages(&mut *begin(engine), &scan.reverse());
            assert_eq!(join(&pages), "e= d=4 c=333 b=22 a=1");
        }
    }
}

fn rows_bound(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    // rows_max, rows, whether something must be left
    for (rows_max, count, left) in [(0, 0, true), (1, 1, true), (2, 2, true), (4, 3, false)] {
        let scan = Scan::new(Range::all()).rows(rows_max);
        for scan in [scan.clone(), scan.reverse()] {
            let page = begin(engine).scan(&scan).expect("scan");
            assert_eq!((page.rows.len(), page.rest.is_some()), (count, left), "{scan:?}");
        }
    }
    let page = begin(engine).scan(&Scan::new(Range::all()).rows(0)).expect("scan");
    assert_eq!(page.rest, Some(Range::all()), "nothing was looked at");
    assert_eq!(rows_of(engine, &Scan::new(Range::all()).rows(2).reverse()), "c=1 b=1");
}

fn bytes_bound(engine: &dyn Engine) {
    put_all(engine, &[("a", "12"), ("b", "12"), ("c", "12")]);
    // bytes_max, rows: each row has three bytes
    for (bytes_max, count) in [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3), (9, 3), (10, 3)] {
        let scan = Scan::new(Range::all()).bytes(bytes_max);
        for scan in [scan.clone(), scan.reverse()] {
            let page = begin(engine).scan(&scan).expect("scan");
            assert_eq!(page.rows.len(), count, "{scan:?}");
        }
    }
}

fn visit_stops(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]);
    for (reverse, want) in [(false, "b"), (true, "c")] {
        let mut txn = begin(engine);
        let scan = Scan { reverse, ..Scan::new(Range::all()) };
        let mut last = Vec::new();
        let rest = txn
            .visit(&scan, &mut |key, _| {
                last = key.to_vec();
                if last == want.as_bytes() { Flow::Stop } else { Flow::Go }
            })
            .expect("visit")
            .expect("two rows are left");
        assert_eq!(last, want.as_bytes());
        let page = txn.scan(&Scan { range: rest, ..scan }).expect("scan");
        assert_eq!(show(&page.rows), if reverse { "b=1 a=1" } else { "c=1 d=1" });
    }
}

fn visit_is_not_locked(engine: &dyn Engine) {
    put_all(engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut txn = begin(engine);
    let mut seen = 0;
    txn.visit(&Scan::new(range("a", "d")), &mut |_, _| {
        seen += 1;
        assert_eq!(get(&mut *begin(engine), "a").as_deref(), Some("1"));
        put(engine, "x", "1");
        Flow::Go
    })
    .expect("visit");
    assert_eq!(seen, 3);
}

/// Enough rows that an engine takes them in several steps, with this transaction's writes before,
/// between and behind them.
fn many_rows(engine: &dyn Engine) {
    let key = |number: usize| format!("k{number:05}");
    let mut txn = begin(engine);
    for number in (0..3000).filter(|number| number % 3 == 0) {
        txn.put(key(number).as_bytes(), b"old").expect("put");
    }
    txn.commit().expect("commit");
    let mut txn = begin(engine);
    let mut expected: Vec<String> = Vec::new();
    txn.clear(&range(&key(600), &key(900))).expect("clear");
    for number in 0..3003 {
        let stored = number % 3 == 0 && number < 3000 && !(600..900).contains(&number);
        match number % 7 {
            0 => {
                txn.put(key(number).as_bytes(), b"new").expect("put");
                expected.push(format!("{}=new", key(number)));
            }
            1 => txn.del(key(number).as_bytes()).expect("del"),
            _ if stored => expected.push(format!("{}=old", key(number))),
            _ => {}
        }
    }
    for (rows_max, bytes_max) in [(usize::MAX, usize::MAX), (100, usize::MAX), (7000, 1000)] {
        let scan = Scan::new(Range::all()).rows(rows_max).bytes(bytes_max);
        assert_eq!(join(&all_pages(&mut *txn, &scan)), expected.join(" "));
        let mut back: Vec<String> = expected.clone();
        back.reverse();
        assert_eq!(join(&all_pages(&mut *txn, &scan.reverse())), back.join(" "));
    }
}
