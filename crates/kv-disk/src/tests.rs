//! Tests of the whole store on the simulated disk: against a model, through crashes, on a full
//! disk, and with damaged files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kumiko_base::Kind;
use kumiko_base::draw::{self, Draw};
use kumiko_kv::{Engine, Error, Range, Read, Scan};

use crate::simulated::Simulated;
use crate::{Disk, Durability, Options};

mod damage;
mod full;
mod golden;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn dir() -> &'static Path {
    Path::new("/store")
}

/// Small bounds, so that short programs reach every level.
fn small() -> Options {
    Options { memtable_bytes: 4000, cache_bytes: 64 << 10, ..Options::default() }
}

fn open(disk: &Simulated) -> Result<Disk, Error> {
    Disk::open_single(Arc::new(disk.clone()), dir(), small())
}

fn put(engine: &dyn Engine, key: &[u8], value: &[u8]) -> Result<u64, Error> {
    let mut txn = engine.begin()?;
    txn.put(key, value)?;
    Ok(txn.commit()?.version)
}

fn all(engine: &dyn Engine) -> Result<Model, Error> {
    Ok(engine.begin()?.scan(&Scan::new(Range::all()))?.rows.into_iter().collect())
}

/// Without printing thousands of bytes.
fn assert_same(found: &Model, want: &Model) {
    let lost: Vec<_> = want.keys().filter(|key| !found.contains_key(*key)).take(3).collect();
    let extra: Vec<_> = found.keys().filter(|key| !want.contains_key(*key)).take(3).collect();
    assert!(
        found == want,
        "{} rows, not {}: lost {lost:?}, extra {extra:?}",
        found.len(),
        want.len()
    );
}

fn key(draw: &mut Draw) -> Vec<u8> {
    let mut key = vec![1 + draw.below(40) as u8];
    key.extend(draw.bytes(1));
    key
}

fn value(draw: &mut Draw) -> Vec<u8> {
    let size = draw.one_of(&[0, 8, 30, 600]);
    // Zeros on purpose: they look like a place that was never written.
    let byte = if draw.one_in(3) { 0 } else { draw.bits() as u8 };
    vec![byte; size]
}

/// Some writes, done to a transaction and to a model.
fn write(draw: &mut Draw, txn: &mut dyn kumiko_kv::Txn, model: &mut Model) {
    for _ in 0..draw.below(8) {
        let key = key(draw);
        match draw.below(10) {
            0..=5 => {
                let value = value(draw);
                txn.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            6..=7 => {
                txn.del(&key).unwrap();
                model.remove(&key);
            }
            8 => {
                txn.add(&key, 7).unwrap();
                let sum = kumiko_kv::buffer::add(model.get(&key).map(Vec::as_slice), 7);
                model.insert(key, sum);
            }
            _ => {
                let end = self::key(draw);
                txn.clear(&Range::new(key.clone(), end.clone())).unwrap();
                model.retain(|at, _| !(key <= *at && *at < end));
            }
        }
    }
}

/// Compares everything a transaction can see with the model.
fn compare(draw: &mut Draw, txn: &mut dyn kumiko_kv::Txn, model: &Model) {
    let (start, end) = (key(draw), key(draw));
    let range = if draw.one_in(3) { Range::all() } else { Range::new(start, end) };
    let mut want: Vec<_> = model
        .iter()
        .filter(|(key, _)| range.contains(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut scan = Scan::new(range).rows(draw.one_of(&[1, 3, usize::MAX]));
    if draw.one_in(2) {
        scan = scan.reverse();
        want.reverse();
    }
    let mut rows = Vec::new();
    loop {
        let page = txn.scan(&scan).unwrap();
        rows.extend(page.rows);
        match page.rest {
            Some(rest) => scan.range = rest,
            None => break,
        }
    }
    assert!(rows == want, "a scan of {:?} differs: {} rows, {}", scan, rows.len(), want.len());
    for _ in 0..5 {
        let key = key(draw);
        assert_eq!(txn.get(&key, Read::Snapshot).unwrap(), model.get(&key).cloned(), "{key:?}");
    }
}

/// Random transactions, old snapshots kept open, closings and openings, against a model.
#[test]
fn does_what_the_model_does() {
    draw::check("does_what_the_model_does", cases(60), |draw| {
        let disk = Simulated::new();
        let mut engine = open(&disk).unwrap();
        let mut model = Model::new();
        let mut old = Vec::new();
        for _ in 0..draw.below(250) {
            let mut txn = engine.begin().unwrap();
            let mut next = model.clone();
            write(draw, txn.as_mut(), &mut next);
            compare(draw, txn.as_mut(), &next);
            if draw.one_in(8) {
                drop(txn);
            } else {
                txn.commit().unwrap();
                model = next;
            }
            if draw.one_in(20) {
                old.push((engine.begin().unwrap(), model.clone()));
            }
            for (txn, model) in &mut old {
                compare(draw, txn.as_mut(), model);
            }
            if draw.one_in(10) {
                old.clear();
            }
            if draw.one_in(40) {
                engine.settle().unwrap();
            }
            if draw.one_in(40) {
                old.clear();
                drop(engine);
                engine = open(&disk).unwrap();
            }
        }
        assert_same(&all(&engine).unwrap(), &model);
        assert_eq!(engine.check().problems, Vec::<String>::new());
    });
}

/// After a power cut at any moment, everything answered is there and nothing by half.
#[test]
fn a_power_cut_loses_nothing_answered() {
    draw::check("a_power_cut_loses_nothing_answered", cases(60), |draw| {
        let mut disk = Simulated::new();
        let mut model = Model::new();
        for _ in 0..4 {
            let engine = open(&disk).unwrap();
            assert_same(&all(&engine).unwrap(), &model);
            for _ in 0..draw.below(60) {
                let mut txn = engine.begin().unwrap();
                let mut next = model.clone();
                write(draw, txn.as_mut(), &mut next);
                if draw.one_in(8) {
                    // The cut comes inside this commit: all of it or nothing of it stays.
                    disk.fail_syncs_after(Some(draw.index(3)));
                    let result = txn.commit();
                    disk.fail_syncs_after(None);
                    let crashed = disk.crash(draw);
                    let found = all(&open(&crashed).unwrap()).unwrap();
                    match result {
                        Ok(_) => assert!(found == next, "an answered commit is lost"),
                        Err(_) => assert!(found == next || found == model, "half a commit"),
                    }
                    (disk, model) = (crashed, found);
                    break;
                }
                txn.commit().unwrap();
                model = next;
            }
            disk = disk.crash(draw);
        }
        let engine = open(&disk).unwrap();
        assert_same(&all(&engine).unwrap(), &model);
        assert_eq!(engine.check().problems, Vec::<String>::new());
    });
}

/// Without syncs a power cut may lose the newest commits, and never one before another.
#[test]
fn without_syncs_a_first_part_stays() {
    draw::check("without_syncs_a_first_part_stays", cases(60), |draw| {
        let disk = Simulated::new();
        let options = Options { durability: Durability::Never, ..small() };
        let engine = Disk::open_single(Arc::new(disk.clone()), dir(), options).unwrap();
        let mut states = vec![Model::new()];
        let mut safe = 0;
        for _ in 0..draw.below(40) {
            let mut txn = engine.begin().unwrap();
            let mut next = states[states.len() - 1].clone();
            write(draw, txn.as_mut(), &mut next);
            txn.commit().unwrap();
            states.push(next);
            if draw.one_in(10) {
                engine.sync().unwrap();
                safe = states.len() - 1;
            }
        }
        let found = all(&open(&disk.crash(draw)).unwrap()).unwrap();
        assert!(states[safe..].contains(&found), "not one of the states after the last sync");
        // The end of the process alone loses nothing.
        let found = all(&open(&disk.copy()).unwrap()).unwrap();
        assert_same(&found, &states[states.len() - 1]);
    });
}

#[test]
fn appended_runs_are_not_rewritten() {
    let disk = Simulated::new();
    let engine = open(&disk).unwrap();
    for number in 0..400_u64 {
        let mut txn = engine.begin().unwrap();
        let mut key = b"events".to_vec();
        key.extend(number.to_be_bytes());
        txn.put(&key, &[7; 90]).unwrap();
        txn.put(b"events", &number.to_be_bytes()).unwrap();
        txn.commit().unwrap();
    }
    engine.settle().unwrap();
    let stats = engine.stats();
    let deepest = stats.level_tables.last().copied().unwrap();
    assert!(8 < deepest, "the runs are not on the deepest level: {stats:?}");
    assert_eq!(all(&engine).unwrap().len(), 401);
}

#[test]
fn a_cleared_table_is_dropped_whole() {
    let disk = Simulated::new();
    let engine = open(&disk).unwrap();
    for number in 0..400_u64 {
        put(&engine, &[&[1], &number.to_be_bytes()[..]].concat(), &[7; 90]).unwrap();
    }
    engine.settle().unwrap();
    let before: u64 = engine.stats().level_bytes.iter().sum();
    let mut txn = engine.begin().unwrap();
    txn.clear(&Range::new([1], [2])).unwrap();
    txn.commit().unwrap();
    engine.settle().unwrap();
    let after: u64 = engine.stats().level_bytes.iter().sum();
    assert!(30_000 < before && after < 1000, "{before} bytes became {after}");
    assert_eq!(all(&engine).unwrap(), Model::new());
}

#[test]
fn one_process_at_a_time_and_clear_errors() {
    let disk = Simulated::new();
    let engine = open(&disk).unwrap();
    let error = open(&disk).unwrap_err();
    assert!(matches!(error, Error::Locked(_)) && error.to_string().contains("/store"), "{error}");
    drop(engine);
    drop(open(&disk).unwrap());
    let absent = Options { create: false, ..small() };
    let other = Path::new("/other");
    let error = Disk::open_single(Arc::new(disk.clone()), other, absent).unwrap_err();
    assert!(matches!(&error, Error::Invalid(why) if why.contains("/other")), "{error}");
    disk.edit(&dir().join("FORMAT"), |bytes| *bytes = b"kumiko store 2\n".to_vec());
    let error = open(&disk).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("format 2")), (Kind::Invalid, true));
}

/// A transaction that begins while a commit is being made durable does not see it, and so must lose
/// against it. It once won if no other transaction was open, and the commit before it was lost.
#[test]
fn a_commit_under_way_conflicts_with_those_who_begin_meanwhile() {
    let disk = Simulated::new();
    let engine = open(&disk).unwrap();
    put(&engine, b"counter", b"0").unwrap();
    let late = Arc::new(std::sync::Mutex::new(None));
    let (store, slot) = (Arc::downgrade(&engine.store), Arc::clone(&late));
    disk.in_next_sync(move || {
        let store = store.upgrade().unwrap();
        let mut txn = Box::new(crate::txn::DiskTxn::begin(&store));
        let found = kumiko_kv::Txn::get(txn.as_mut(), b"counter", Read::Serializable).unwrap();
        assert_eq!(found.as_deref(), Some(&b"0"[..]), "not durable, so not to be seen");
        *slot.lock().unwrap() = Some(txn);
    });
    put(&engine, b"counter", b"1").unwrap();
    let mut txn: Box<dyn kumiko_kv::Txn> = late.lock().unwrap().take().unwrap();
    txn.put(b"counter", b"overwritten").unwrap();
    assert_eq!(txn.commit(), Err(Error::Conflict));
}

#[test]
fn commits_come_back_after_a_clean_end() {
    let disk = Simulated::new();
    let engine = open(&disk).unwrap();
    for number in 0..30_u8 {
        put(&engine, &[1, number], &[number; 100]).unwrap();
    }
    drop(engine);
    let engine = open(&disk).unwrap();
    assert_eq!(all(&engine).unwrap().len(), 30);
}

fn cases(default: u64) -> u64 {
    std::env::var("CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

fn files_of(disk: &Simulated) -> Vec<(PathBuf, usize)> {
    disk.names().into_iter().filter(|(path, _)| !path.ends_with("LOCK")).collect()
}
