//! The laws of the merge, on random entries of every type and of all types at once.
//!
//! Few stamps, members and values on purpose: ties and clashes are where a merge breaks. `LAWS=n`
//! runs n triples per type.

use kumiko_base::draw::{self, Draw};

use super::record::{Column, Member, Record, Register, Scored};
use super::{Entry, Stamp, merge};
use crate::Error;
use crate::cell::{Cell, message};
use crate::index::{Batch, Index};

/// Which parts a random entry has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Text,
    Counter,
    Hash,
    Set,
    Zset,
    List,
}

const PARTS: [Part; 6] = [Part::Text, Part::Counter, Part::Hash, Part::Set, Part::Zset, Part::List];

fn triples() -> u64 {
    std::env::var("LAWS").ok().and_then(|it| it.parse().ok()).unwrap_or(2_000)
}

/// Values made once: the laws do not depend on how they are made.
struct Values {
    texts: Vec<Cell>,
}

impl Values {
    fn new() -> Values {
        let texts = ["", "a", "7", "-3"].iter().map(|it| Cell::string(it.as_bytes()));
        Values { texts: texts.chain([Cell::int(7), Cell::blob([0xFF])]).collect() }
    }

    fn one(&self, draw: &mut Draw) -> &Cell {
        &self.texts[draw.index(self.texts.len())]
    }
}

fn stamp(draw: &mut Draw) -> Stamp {
    // Mostly few and near, now and then one of a skewed clock.
    if draw.one_in(50) { 1_000_000 } else { 1 + draw.below(6) as Stamp }
}

fn registers(draw: &mut Draw, values: &Values, keys: &[&[u8]]) -> Index {
    let mut batch = Batch::new();
    for key in keys {
        if draw.one_in(2) {
            let value = (!draw.one_in(3)).then(|| values.one(draw).view());
            let record = Register { value, stamp: stamp(draw) };
            batch.put_blob(key, |writer| record.write(writer));
        }
    }
    Index::new().update(&batch).unwrap()
}

fn columns(draw: &mut Draw) -> Index {
    let mut batch = Batch::new();
    for name in [b"a", b"b"] {
        if draw.one_in(2) {
            let column = Column { up: draw.below(4) as i64, down: draw.below(3) as i64 };
            batch.put_string(name, |writer| column.write(writer));
        }
    }
    Index::new().update(&batch).unwrap()
}

fn add_part(draw: &mut Draw, values: &Values, entry: &mut Entry, part: Part) {
    let mut batch = Batch::new();
    let zero_or = |draw: &mut Draw| if draw.one_in(3) { 0 } else { stamp(draw) };
    match part {
        Part::Text => entry.text = Some((stamp(draw), values.one(draw).clone())),
        Part::Counter => {
            entry.columns = columns(draw);
            entry.resets = columns(draw);
            entry.counted = stamp(draw);
        }
        Part::Hash => entry.hash = registers(draw, values, &[b"f", b"g", b"fg"]),
        Part::List => {
            let (first, second) = ([1; 24], [[1; 24], [2; 24]].concat());
            entry.list = registers(draw, values, &[&first, &second, &[9; 24]]);
        }
        Part::Set => {
            for member in values.texts.iter().take(3) {
                let (add, remove) = (stamp(draw), zero_or(draw));
                if draw.one_in(2) {
                    let record = Member { member: member.view(), add, remove };
                    batch.put_blob(member.id().as_bytes(), |writer| record.write(writer));
                }
            }
            entry.set = Index::new().update(&batch).unwrap();
        }
        Part::Zset => {
            for member in values.texts.iter().take(3) {
                let (add, remove) = (stamp(draw), zero_or(draw));
                let score = draw.one_of(&[-1.0, -0.0, 0.0, 2.5, f64::INFINITY]);
                if draw.one_in(2) {
                    let record = Scored { member: member.view(), score, add, remove };
                    batch.put_blob(member.id().as_bytes(), |writer| record.write(writer));
                }
            }
            entry.zset = Index::new().update(&batch).unwrap();
        }
    }
}

fn entry(draw: &mut Draw, values: &Values, parts: &[Part]) -> Entry {
    let mut raw = Entry { newest: 1_000_000, ..Entry::default() };
    for _ in 0..draw.below(3) {
        let part = draw.one_of(parts);
        add_part(draw, values, &mut raw, part);
    }
    if draw.one_in(3) {
        raw.floor = stamp(draw).min(6);
    }
    if draw.one_in(3) {
        raw.expiry = (stamp(draw), draw.below(3) as i64);
    }
    // Brings it into the form every stored entry has.
    merge(&Entry::default(), &raw).unwrap()
}

fn check_laws(name: &str, parts: &[Part]) {
    let values = Values::new();
    draw::check(name, triples(), |draw| {
        let [a, b, c] = [(); 3].map(|()| entry(draw, &values, parts));
        let join = |own: &Entry, theirs: &Entry| merge(own, theirs).unwrap();
        let ab = join(&a, &b);
        assert_eq!(join(&a, &a), a, "idempotent");
        assert_eq!(ab, join(&b, &a), "commutative");
        assert_eq!(join(&ab, &c), join(&a, &join(&b, &c)), "associative");
        assert_eq!(join(&ab, &b), ab, "absorbing what is in it changes nothing");
    });
}

#[test]
fn merging_text_is_lawful() {
    check_laws("merging_text_is_lawful", &[Part::Text]);
}

#[test]
fn merging_counters_is_lawful() {
    check_laws("merging_counters_is_lawful", &[Part::Counter, Part::Text]);
}

#[test]
fn merging_hashes_is_lawful() {
    check_laws("merging_hashes_is_lawful", &[Part::Hash]);
}

#[test]
fn merging_sets_is_lawful() {
    check_laws("merging_sets_is_lawful", &[Part::Set]);
}

#[test]
fn merging_zsets_is_lawful() {
    check_laws("merging_zsets_is_lawful", &[Part::Zset]);
}

#[test]
fn merging_lists_is_lawful() {
    check_laws("merging_lists_is_lawful", &[Part::List]);
}

#[test]
fn merging_mixed_types_is_lawful() {
    check_laws("merging_mixed_types_is_lawful", &PARTS);
}

#[test]
fn entries_come_back_from_their_cells() {
    let values = Values::new();
    draw::check("entries_come_back_from_their_cells", 1000, |draw| {
        let a = entry(draw, &values, &PARTS);
        if a.newest == 0 {
            return;
        }
        let cell = a.encode().unwrap();
        assert_eq!(Entry::decode(cell.view()).unwrap(), a);
        let b = entry(draw, &values, &PARTS);
        let ab = merge(&a, &b).unwrap();
        let delta = ab.delta(&a).unwrap();
        assert_eq!(merge(&a, &delta).unwrap(), ab, "a delta carries the difference");
        let again = Entry::decode(delta.encode().unwrap().view()).unwrap();
        assert_eq!(merge(&a, &again).unwrap(), ab, "also as a cell");
    });
}

/// What goes to Convex shows there what it shows here.
#[test]
fn the_form_for_convex_shows_the_same() {
    let values = Values::new();
    draw::check("the_form_for_convex_shows_the_same", 1000, |draw| {
        let a = entry(draw, &values, &PARTS);
        let Some(shown) = a.shown(0).unwrap() else { return };
        let cell = a.encode_for_convex().unwrap();
        let back = Entry::decode(cell.view()).and_then(|it| merge(&Entry::default(), &it)).unwrap();
        assert_eq!(back.shown(0).unwrap(), Some(shown));
        assert_eq!((back.newest, back.expiry.1), (a.newest, a.expiry.1));
    });
}

/// Cells of any shape are refused or taken; nothing panics.
#[test]
fn hostile_entries_are_refused() {
    let values = Values::new();
    let mut refused = 0;
    draw::check("hostile_entries_are_refused", 1500, |draw| {
        let a = entry(draw, &values, &PARTS);
        let mut bytes = Vec::new();
        message::encode(&entry(draw, &values, &PARTS).encode().unwrap(), &mut bytes);
        for _ in 0..=draw.below(3) {
            let at = draw.index(bytes.len());
            bytes[at] = draw.bits() as u8;
        }
        let Ok(cell) = message::decode_complete(&bytes) else { return };
        let merged = Entry::decode(cell.view()).and_then(|it| merge(&a, &it));
        match merged {
            Ok(merged) => assert_eq!(merge(&merged, &a).unwrap(), merged),
            Err(Error::Encoding { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    });
    assert!(30 < refused || std::env::var("SEED").is_ok(), "only {refused} were refused");
}

/// The forms of the seed mean what they say.
#[test]
fn plain_entries_are_understood() {
    let time = 1_700_000_000_000_i64;
    let read = |value: Cell, kind: Cell, expire: Cell| {
        let cell = Cell::vector(&[value, kind, Cell::int(time), expire]);
        Entry::decode(cell.view()).and_then(|it| merge(&Entry::default(), &it))
    };
    let text = read(Cell::int(42), Cell::int(0), Cell::nil()).unwrap();
    assert_eq!(text.shown(0).unwrap(), Some(super::Shown::Text(b"42".to_vec())));
    let gone = read(Cell::nil(), Cell::nil(), Cell::int(0)).unwrap();
    assert_eq!((gone.shown(0).unwrap(), gone.floor), (None, time));
    let soon = read(Cell::string("x"), Cell::int(0), Cell::int(time + 5)).unwrap();
    assert!(soon.shown(time as u64 + 4).unwrap().is_some());
    assert!(soon.shown(time as u64 + 5).unwrap().is_none());
    let list = Cell::vector(&[Cell::string("b"), Cell::string("a")]);
    let list = read(list, Cell::int(4), Cell::nil()).unwrap();
    let want = super::Shown::List(vec![b"b".to_vec(), b"a".to_vec()]);
    assert_eq!(list.shown(0).unwrap(), Some(want));
    assert!(read(Cell::int(1), Cell::int(9), Cell::nil()).is_err());
    assert!(read(Cell::int(1), Cell::int(1), Cell::nil()).is_err());
    assert!(read(Cell::int(1), Cell::nil(), Cell::nil()).is_err());
    assert!(read(Cell::int(1), Cell::int(0), Cell::int(-1)).is_err());
}
