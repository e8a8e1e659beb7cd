//! The Index against a plain ordered map, and against known encodings.

use std::collections::BTreeMap;
use std::ops::Bound;

use kumiko_base::draw::{self, Draw};

use super::{Batch, Decision, Index, KEY_BYTES_MAX};
use crate::cell::golden::{hex, vectors};
use crate::cell::{Cell, View, message};

type Model = BTreeMap<Vec<u8>, i64>;

/// Few bytes and short keys, so that prefixes, forks and collapses are frequent.
fn key(draw: &mut Draw) -> Vec<u8> {
    let size = draw.index(4);
    (0..size).map(|_| draw.one_of(&[0, 1, 0x10, 0x61, 0x62, 0xff])).collect()
}

/// Long enough now and then that cells become branches.
fn value(number: i64) -> Cell {
    if number % 5 == 0 { Cell::blob([number as u8; 150]) } else { Cell::int(number) }
}

fn of_model(model: &Model) -> Index {
    model.iter().map(|(key, number)| (Cell::blob(key), value(*number))).collect()
}

fn assert_same(index: &Index, model: &Model) {
    let entries: Vec<_> = index
        .iter()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.key_bytes().unwrap().to_vec(), entry.value.to_cell()))
        .collect();
    let expected: Vec<_> = model.iter().map(|(key, it)| (key.clone(), value(*it))).collect();
    assert_eq!(entries, expected);
    assert_eq!(index.count(), model.len() as u64);
    // One set of entries has one form, however it came about, and a strict decoder takes it.
    assert_eq!(*index, of_model(model));
    let mut sent = Vec::new();
    message::encode(index.cell(), &mut sent);
    assert_eq!(message::decode_complete(&sent).unwrap(), *index.cell());
}

fn random_model(draw: &mut Draw, count_max: usize) -> Model {
    (0..draw.index(count_max)).map(|_| (key(draw), draw.below(40) as i64)).collect()
}

#[test]
fn changes_follow_the_model() {
    draw::check("changes_follow_the_model", 1_000, |draw| {
        let mut model = Model::new();
        let mut index = Index::new();
        let mut batch = Batch::new();
        for _ in 0..draw.below(8) {
            batch.clear();
            for _ in 0..=draw.below(20) {
                let key = key(draw);
                if draw.one_in(3) {
                    batch.remove(&key);
                    model.remove(&key);
                } else {
                    let number = draw.below(40) as i64;
                    batch.put_blob(&key, |writer| writer.cell(&value(number)));
                    model.insert(key, number);
                }
            }
            index = index.update(&batch).unwrap();
            assert_same(&index, &model);
        }
        for _ in 0..20 {
            let key = key(draw);
            let found = index.get(&key).unwrap().map(View::to_cell);
            assert_eq!(found, model.get(&key).map(|it| value(*it)), "{key:?}");
        }
    });
}

#[test]
fn single_changes_follow_the_model() {
    draw::check("single_changes_follow_the_model", 300, |draw| {
        let mut model = random_model(draw, 30);
        let mut index = of_model(&model);
        for number in 0..10 {
            let key = key(draw);
            if draw.one_in(2) {
                index = index.remove(&key).unwrap();
                model.remove(&key);
            } else {
                index = index.put(&Cell::blob(&key), &value(number)).unwrap();
                model.insert(key, number);
            }
        }
        assert_same(&index, &model);
    });
}

#[test]
fn ranges_follow_the_model() {
    draw::check("ranges_follow_the_model", 2_000, |draw| {
        let model = random_model(draw, 40);
        let index = of_model(&model);
        let bound = |draw: &mut Draw| match draw.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(key(draw)),
            _ => Bound::Excluded(key(draw)),
        };
        let (lower, upper) = (bound(draw), bound(draw));
        let keys = |iter: super::Iter<'_>| -> Vec<Vec<u8>> {
            iter.map(|entry| entry.unwrap().key_bytes().unwrap().to_vec()).collect()
        };
        let slice = |bound: &'_ Bound<Vec<u8>>| bound.clone();
        let found = keys(
            index
                .range(lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice))
                .unwrap(),
        );
        let inside = |key: &&Vec<u8>| {
            (match slice(&lower) {
                Bound::Unbounded => true,
                Bound::Included(lower) => lower <= **key,
                Bound::Excluded(lower) => lower < **key,
            }) && (match slice(&upper) {
                Bound::Unbounded => true,
                Bound::Included(upper) => **key <= upper,
                Bound::Excluded(upper) => **key < upper,
            })
        };
        let expected: Vec<_> = model.keys().filter(inside).cloned().collect();
        assert_eq!(found, expected, "{lower:?} {upper:?}");
        let prefix = key(draw);
        let expected: Vec<_> = model.keys().filter(|it| it.starts_with(&prefix)).cloned().collect();
        assert_eq!(keys(index.prefix(&prefix).unwrap()), expected, "{prefix:?}");
    });
}

#[test]
fn differences_and_merges_follow_the_model() {
    draw::check("differences_and_merges_follow_the_model", 2_000, |draw| {
        let own = random_model(draw, 40);
        let mut theirs = own.clone();
        if draw.one_in(3) {
            theirs = random_model(draw, 40);
        }
        for _ in 0..draw.below(5) {
            theirs.remove(&key(draw));
            theirs.insert(key(draw), draw.below(40) as i64);
        }
        let (index, other) = (of_model(&own), of_model(&theirs));
        let mut found = Vec::new();
        index
            .diff(&other, &mut |it| {
                found.push((
                    it.key_bytes()?.to_vec(),
                    it.own.map(View::to_cell),
                    it.theirs.map(View::to_cell),
                ));
                Ok(())
            })
            .unwrap();
        let mut keys: Vec<_> = own.keys().chain(theirs.keys()).cloned().collect();
        keys.sort();
        keys.dedup();
        let side = |model: &Model, key: &Vec<u8>| model.get(key).map(|it| value(*it));
        let expected: Vec<_> = keys
            .iter()
            .map(|key| (key.clone(), side(&own, key), side(&theirs, key)))
            .filter(|(_, own, theirs)| own != theirs)
            .collect();
        assert_eq!(found, expected);

        let mut merged = own.clone();
        let decisions = draw.below(6);
        let result = index
            .merge(&other, &mut |it| {
                let key = it.key_bytes()?.to_vec();
                Ok(match (decisions + u64::from(key.len() as u32)) % 4 {
                    _ if decisions == 5 => {
                        theirs.get(&key).map(|number| merged.insert(key.clone(), *number));
                        if it.theirs.is_none() {
                            merged.remove(&key);
                        }
                        Decision::Theirs
                    }
                    0 => Decision::Own,
                    1 => {
                        match theirs.get(&key) {
                            Some(number) => merged.insert(key, *number),
                            None => merged.remove(&key),
                        };
                        Decision::Theirs
                    }
                    2 => {
                        merged.remove(&key);
                        Decision::Remove
                    }
                    _ => {
                        merged.insert(key, 45);
                        Decision::Value(value(45))
                    }
                })
            })
            .unwrap();
        assert_same(&result, &merged);
    });
}

/// Nothing but the changed way may be looked at: the rest is not even here.
#[test]
fn equal_parts_need_not_be_here() {
    let numbers = |skip: u32| -> Index {
        (0..2_000_u32)
            .filter(|it| *it != skip)
            .map(|it| (Cell::string(format!("key {it}")), Cell::int(i64::from(it))))
            .collect()
    };
    let (own, theirs) = (numbers(5_000), numbers(777));
    let known: hashbrown::HashMap<_, _> = message::novelty(own.cell(), &mut |_| false, usize::MAX)
        .into_iter()
        .map(|cell| (cell.id(), cell))
        .collect();
    let novel = message::novelty(theirs.cell(), &mut |id| known.contains_key(id), usize::MAX);
    assert!(novel.len() < 8, "{} cells for one change", novel.len());
    let mut sent = Vec::new();
    message::encode_with(theirs.cell(), &novel, &mut sent);
    let partial = Index::from_cell(message::decode(&sent, &mut |_| None).unwrap()).unwrap();
    assert!(!partial.cell().is_complete());
    let mut differences = 0;
    own.diff(&partial, &mut |it| {
        differences += 1;
        assert_eq!(&*it.key_bytes()?, b"key 777");
        Ok(())
    })
    .unwrap();
    assert_eq!(differences, 1);
    let merged = own.merge(&partial, &mut |_| Ok(Decision::Remove)).unwrap();
    assert_eq!(merged, theirs);
    assert!(merged.cell().is_complete());
    assert!(partial.iter().any(|entry| entry.is_err()));
    assert!((0..2_000).any(|it| partial.get(format!("key {it}").as_bytes()).is_err()));
}

#[test]
fn long_keys_part_up_to_their_limit() {
    let long = |size: usize, last: &str| format!("{}{last}", "x".repeat(size));
    let two = |size: usize| -> Index {
        [(long(size, "a"), 1), (long(size, "q"), 2)]
            .into_iter()
            .map(|(key, number)| (Cell::string(key), Cell::int(number)))
            .collect()
    };
    assert_eq!(two(KEY_BYTES_MAX - 1).count(), 2);
    // Beyond the limit they are one key, and the last one put is it.
    assert_eq!(two(KEY_BYTES_MAX).count(), 1);
    assert_eq!(
        two(KEY_BYTES_MAX).get(long(KEY_BYTES_MAX, "a").as_bytes()).unwrap().unwrap().as_int(),
        Some(2)
    );
    assert!(Index::new().put(&Cell::int(1), &Cell::nil()).is_err());
}

/// Every half byte forks: the deepest tree there is.
#[test]
fn the_deepest_tree_works() {
    let mut keys = Vec::new();
    for size in 0..KEY_BYTES_MAX {
        keys.push(vec![7; size]);
        keys.push([vec![7; size], vec![0x17]].concat());
        keys.push([vec![7; size], vec![0x08]].concat());
    }
    let index: Index = keys.iter().map(|key| (Cell::blob(key), Cell::blob([1; 60]))).collect();
    assert_eq!(index.count(), keys.len() as u64);
    let mut sent = Vec::new();
    message::encode(index.cell(), &mut sent);
    let back = Index::from_cell(message::decode_complete(&sent).unwrap()).unwrap();
    assert_eq!(back, index);
    assert_eq!(back.iter().count(), keys.len());
    let less = back.remove(&keys[700]).unwrap();
    let mut found = 0;
    index
        .diff(&less, &mut |_| {
            found += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(found, 1);
}

/// The Index that a vector's name describes.
fn known(name: &str) -> Option<Index> {
    let text = |entries: &[(&str, i64)]| -> Index {
        entries.iter().map(|(key, it)| (Cell::string(key), Cell::int(*it))).collect()
    };
    let p32 = "0123456789abcdef".repeat(2);
    let two = |prefix: &str, one: &str, other: &str| {
        text(&[(&format!("{prefix}{one}"), 1), (&format!("{prefix}{other}"), 2)])
    };
    Some(match name.strip_prefix("index")? {
        " {}" => Index::new(),
        r#" {"a" 1}"# => text(&[("a", 1)]),
        r#" {"a" 1,"b" 2}"# => text(&[("a", 1), ("b", 2)]),
        r#" {"" 1,"a" 2}"# => text(&[("", 1), ("a", 2)]),
        r#" {"a" 1,"ab" 2}"# => text(&[("a", 1), ("ab", 2)]),
        r#" {"a" 1,"q" 2}"# => text(&[("a", 1), ("q", 2)]),
        " {0x 1, 0x00 2, 0x0000 3}" => {
            (0..3).map(|at| (Cell::blob(vec![0; at]), Cell::int(at as i64 + 1))).collect()
        }
        " 16 one-byte keys 00,10..f0 -> 0..15" => {
            (0..16_u8).map(|at| (Cell::blob([at << 4]), Cell::int(at.into()))).collect()
        }
        " user:0..user:99 -> i" => {
            (0..100).map(|at| (Cell::string(format!("user:{at}")), Cell::int(at))).collect()
        }
        " valueID(i)->i, i<1000" => (0..1_000)
            .map(|at| (Cell::blob(Cell::int(at).id().as_bytes()), Cell::int(at)))
            .collect(),
        " {:kv {}}" => [(Cell::keyword("kv"), Cell::map([]))].into_iter().collect(),
        " two 32-byte keys p31+'0','1' -> 1,2" => two(&p32[..31], "0", "1"),
        "(ext) p32+'-one'->1, p32+'-two'->2" => two(&p32, "-one", "-two"),
        "(ext) p64+'a'->1, p64+'b'->2" => two(&p32.repeat(2), "a", "b"),
        "(ext) p254+'a'->1, p254+'q'->2" => two(&p32.repeat(8)[..254], "a", "q"),
        "(ext) single 300-byte key 'k'" => text(&[(&"k".repeat(300), 1)]),
        _ => panic!("no such vector: {name}"),
    })
}

#[test]
fn vectors_are_met() {
    let mut met = 0;
    for vector in vectors() {
        let Some(index) = known(vector.name) else { continue };
        met += 1;
        let name = format!("{} {}", vector.number, vector.name);
        assert_eq!(index.cell().bytes().len(), vector.size, "{name}");
        assert_eq!(index.id().to_string(), vector.id, "{name}");
        if let Some(bytes) = vector.bytes {
            assert_eq!(index.cell().bytes(), bytes, "{name}");
        }
    }
    assert_eq!(met, 16);
    // A key of the same bytes is the same key.
    let index = known("index {:kv {}}").unwrap();
    assert!(index.get(b"kv").unwrap().unwrap().bytes() == hex("8200"));
}
