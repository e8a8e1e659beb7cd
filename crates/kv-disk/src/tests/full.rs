//! A disk that is full, and one that fails.

use kumiko_base::Kind;
use kumiko_base::draw;
use kumiko_kv::{Engine, Error};

use super::{Model, all, assert_same, cases, open, put, write};
use crate::simulated::Simulated;

/// Commits fail with `Full` and leave nothing; what was answered stays; with room it goes on.
#[test]
fn a_full_disk_loses_nothing() {
    draw::check("a_full_disk_loses_nothing", cases(60), |draw| {
        let disk = Simulated::new();
        let engine = open(&disk).unwrap();
        let mut model = Model::new();
        for _ in 0..20 {
            if draw.one_in(2) {
                disk.set_room(Some(draw.index(3000)));
            } else {
                disk.set_room(None);
            }
            for _ in 0..draw.below(20) {
                let mut txn = engine.begin().unwrap();
                let mut next = model.clone();
                write(draw, txn.as_mut(), &mut next);
                match txn.commit() {
                    Ok(_) => model = next,
                    Err(error) => assert_eq!(error.kind(), Kind::Full, "{error}"),
                }
                assert_same(&all(&engine).unwrap(), &model);
            }
            let crashed = disk.crash(draw);
            assert_same(&all(&open(&crashed).unwrap()).unwrap(), &model);
        }
        disk.set_room(None);
        put(&engine, &[1], b"room again").unwrap();
        engine.settle().unwrap();
        assert_eq!(engine.check().problems, Vec::<String>::new());
    });
}

/// After a failed sync nobody knows what the disk holds, so the store takes no more commits.
#[test]
fn a_failed_sync_ends_the_commits() {
    let disk = Simulated::new();
    let engine = open(&disk).unwrap();
    put(&engine, b"a", b"1").unwrap();
    disk.fail_syncs_after(Some(0));
    let error = put(&engine, b"b", b"2").unwrap_err();
    assert_eq!(error.kind(), Kind::Unknown, "{error}");
    disk.fail_syncs_after(None);
    let error = put(&engine, b"c", b"3").unwrap_err();
    assert!(matches!(&error, Error::Unavailable(why) if why.contains("opened again")), "{error}");
    assert_eq!(all(&engine).unwrap().len(), 1, "what was answered can be read");
    drop(engine);
    let engine = open(&disk).unwrap();
    let found = all(&engine).unwrap();
    assert!(found.contains_key(&b"a"[..]) && !found.contains_key(&b"c"[..]));
    put(&engine, b"c", b"3").unwrap();
}

/// A write that fails half-way is taken back, and the next one goes well.
#[test]
fn a_failed_write_is_taken_back() {
    draw::check("a_failed_write_is_taken_back", cases(100), |draw| {
        let disk = Simulated::new();
        let engine = open(&disk).unwrap();
        let mut model = Model::new();
        for _ in 0..30 {
            disk.fail_writes_after(draw.one_in(3).then(|| draw.index(3)));
            let mut txn = engine.begin().unwrap();
            let mut next = model.clone();
            write(draw, txn.as_mut(), &mut next);
            if txn.commit().is_ok() {
                model = next;
            }
            disk.fail_writes_after(None);
            assert_same(&all(&engine).unwrap(), &model);
        }
        assert_same(&all(&open(&disk.crash(draw)).unwrap()).unwrap(), &model);
    });
}
