//! Many at once.

use super::{Case, begin, put_all};
use crate::{Engine, Error, Range, Read, Retry, Scan, retry};

pub(super) const CASES: &[Case] = &[
    ("counters by read and write come out right", counters),
    ("counters by add come out right without a conflict", adders),
    ("nobody sees half a transaction", no_halves),
    ("a queue gives every item once", queue),
];

const THREADS: usize = 4;
const ROUNDS: usize = 25;

/// Runs `work` on every thread at once.
fn together(work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}

fn number(value: Option<Vec<u8>>) -> i64 {
    value.map_or(0, |bytes| i64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

fn count(engine: &dyn Engine) -> i64 {
    number(begin(engine).get(b"n", Read::Snapshot).expect("get"))
}

fn counters(engine: &dyn Engine) {
    together(|_| {
        for _ in 0..ROUNDS {
            retry::run(engine, Retry::default(), |txn| -> Result<(), Error> {
                let next = number(txn.get(b"n", Read::Serializable)?) + 1;
                txn.put(b"n", &next.to_le_bytes())
            })
            .expect("with a hundred attempts everybody gets through");
        }
    });
    assert_eq!(count(engine), (THREADS * ROUNDS) as i64);
}

fn adders(engine: &dyn Engine) {
    together(|_| {
        for _ in 0..ROUNDS {
            let mut txn = begin(engine);
            txn.add(b"n", 1).expect("add");
            txn.commit().expect("adds do not conflict");
        }
    });
    assert_eq!(count(engine), (THREADS * ROUNDS) as i64);
}

fn no_halves(engine: &dyn Engine) {
    let keys = ["a", "b", "c", "d"];
    put_all(engine, &keys.map(|key| (key, "start")));
    together(|thread| {
        for round in 0..ROUNDS {
            if thread == 0 {
                put_all(engine, &keys.map(|key| (key, ["x", "yy", "zzz"][round % 3])));
            } else {
                let page = begin(engine).scan(&Scan::new(Range::all())).expect("scan");
                assert_eq!(page.rows.len(), keys.len());
                assert!(page.rows.iter().all(|(_, value)| *value == page.rows[0].1));
            }
        }
    });
}

fn queue(engine: &dyn Engine) {
    let mut txn = begin(engine);
    for item in 0..(THREADS * ROUNDS) as u32 {
        txn.put(&[b"todo/".as_slice(), &item.to_be_bytes()].concat(), b"").expect("put");
    }
    txn.commit().expect("commit");
    together(|_| {
        for _ in 0..ROUNDS {
            retry::run(engine, Retry::default(), |txn| -> Result<(), Error> {
                let page = txn.scan(&Scan::new(Range::prefix(b"todo/")).rows(1))?;
                let (key, _) = page.rows.first().expect("there are as many items as takers");
                txn.del(key)?;
                txn.add(&[b"done/".as_slice(), &key[5..]].concat(), 1)
            })
            .expect("with a hundred attempts everybody gets through");
        }
    });
    let left = begin(engine).scan(&Scan::new(Range::prefix(b"todo/"))).expect("scan");
    assert!(left.rows.is_empty());
    let done = begin(engine).scan(&Scan::new(Range::prefix(b"done/"))).expect("scan");
    assert_eq!(done.rows.len(), THREADS * ROUNDS);
    assert!(done.rows.iter().all(|(_, value)| number(Some(value.clone())) == 1));
}
