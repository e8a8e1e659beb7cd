//! The limits, on both sides of each.

use kumiko_base::Kind;
use kumiko_base::limits::{KEY_BYTES_MAX, TXN_BYTES_MAX, VALUE_BYTES_MAX};

use super::{Case, begin, dump};
use crate::{Engine, Error, Range, Read, Scan};

pub(super) const CASES: &[Case] = &[
    ("the longest key, and a longer one", key_size),
    ("keys that are no keys", no_keys),
    ("the longest value, and a longer one", value_size),
    ("the largest transaction, and a larger one", txn_size),
    ("the size of a transaction is known", size_is_known),
    ("bounds of ranges", range_bounds),
    ("a refused write changes nothing", refused),
];

fn assert_kind<T: std::fmt::Debug>(result: Result<T, Error>, kind: Kind) {
    match result {
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
        Ok(value) => panic!("{value:?} instead of {kind:?}"),
    }
}

fn key_size(engine: &dyn Engine) {
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let mut txn = begin(engine);
    txn.put(&longest, b"1").expect("the longest key fits");
    txn.commit().expect("commit");
    assert_eq!(begin(engine).get(&longest, Read::Snapshot), Ok(Some(b"1".to_vec())));
    let rows = begin(engine).scan(&Scan::new(Range::all())).expect("scan").rows;
    assert_eq!(rows, [(longest, b"1".to_vec())]);
    let longer = vec![b'k'; KEY_BYTES_MAX + 1];
    let mut txn = begin(engine);
    assert_kind(txn.put(&longer, b"1"), Kind::TooLarge);
    assert_kind(txn.del(&longer), Kind::TooLarge);
    assert_kind(txn.add(&longer, 1), Kind::TooLarge);
    assert_kind(txn.get(&longer, Read::Snapshot), Kind::TooLarge);
}

fn no_keys(engine: &dyn Engine) {
    let mut txn = begin(engine);
    for key in [b"".as_slice(), b"\xFF", b"\xFFabc"] {
        assert_kind(txn.put(key, b"1"), Kind::Invalid);
        assert_kind(txn.del(key), Kind::Invalid);
        assert_kind(txn.add(key, 1), Kind::Invalid);
        assert_kind(txn.get(key, Read::Snapshot), Kind::Invalid);
    }
    txn.put(b"\xFE\xFF", b"1").expect("below FF is fine");
    txn.put(b"\x00", b"1").expect("so is zero");
    txn.commit().expect("commit");
}

fn value_size(engine: &dyn Engine) {
    let longest = vec![7; VALUE_BYTES_MAX];
    let mut txn = begin(engine);
    txn.put(b"k", &longest).expect("the longest value fits");
    assert_kind(txn.put(b"j", &vec![7; VALUE_BYTES_MAX + 1]), Kind::TooLarge);
    txn.commit().expect("commit");
    assert_eq!(begin(engine).get(b"k", Read::Snapshot), Ok(Some(longest)));
}

fn txn_size(engine: &dyn Engine) {
    let mut txn = begin(engine);
    let mut number: u32 = 0;
    while txn.size() < TXN_BYTES_MAX {
        let key = number.to_be_bytes();
        let left = TXN_BYTES_MAX - txn.size() - key.len();
        txn.put(&key, &vec![7; left.min(VALUE_BYTES_MAX)]).expect("it fits");
        number += 1;
    }
    assert_eq!(txn.size(), TXN_BYTES_MAX);
    assert_kind(txn.put(b"k", b""), Kind::TooLarge);
    assert_kind(txn.del(b"k"), Kind::TooLarge);
    txn.commit().expect("the largest transaction commits");
    let page = begin(engine).scan(&Scan::new(Range::all())).expect("scan");
    assert_eq!(page.rows.len(), number as usize);
}

fn size_is_known(engine: &dyn Engine) {
    let mut txn = begin(engine);
    assert_eq!(txn.size(), 0);
    txn.get(b"a", Read::Serializable).expect("get");
    assert_eq!(txn.size(), 0, "reads do not count");
    txn.put(b"ab", b"cde").expect("put");
    assert!(5 <= txn.size());
    let before = txn.size();
    txn.del(b"ab").expect("del");
    txn.add(b"n", 1).expect("add");
    txn.clear(&Range::prefix(b"x")).expect("clear");
    txn.write_conflict(&Range::prefix(b"y")).expect("conflict");
    assert!(before < txn.size());
}

fn range_bounds(engine: &dyn Engine) {
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let mut txn = begin(engine);
    txn.put(&longest, b"1").expect("put");
    // The range of exactly one longest key ends one byte behind it.
    let one = Range::one(&longest);
    assert_eq!(txn.scan(&Scan::new(one.clone())).expect("scan").rows.len(), 1);
    txn.read_conflict(&one).expect("conflict");
    txn.write_conflict(&one).expect("conflict");
    txn.clear(&one).expect("clear");
    let long = Range::new(b"a".as_slice(), vec![b'k'; KEY_BYTES_MAX + 2]);
    assert_kind(txn.scan(&Scan::new(long.clone())), Kind::TooLarge);
    assert_kind(txn.clear(&long), Kind::TooLarge);
    assert_kind(txn.read_conflict(&long), Kind::TooLarge);
    assert_kind(txn.write_conflict(&long), Kind::TooLarge);
}

fn refused(engine: &dyn Engine) {
    let mut txn = begin(engine);
    txn.put(b"a", b"1").expect("put");
    assert_kind(txn.put(b"a", &vec![7; VALUE_BYTES_MAX + 1]), Kind::TooLarge);
    assert_kind(txn.put(b"", b"2"), Kind::Invalid);
    txn.commit().expect("the rest stands");
    assert_eq!(dump(engine), "a=1");
}
