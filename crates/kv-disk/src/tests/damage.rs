//! Damaged files: an error that names the file, or the right answer, never a wrong one.

use kumiko_base::Kind;
use kumiko_base::draw;
use kumiko_kv::Engine;

use super::{Model, all, cases, dir, files_of, open, put, write};
use crate::simulated::Simulated;

/// A store with tables and logs, at rest.
fn sample(draw: &mut draw::Draw) -> (Simulated, Model) {
    let disk = Simulated::new();
    let engine = open(&disk).unwrap();
    let mut model = Model::new();
    for _ in 0..60 {
        let mut txn = engine.begin().unwrap();
        write(draw, txn.as_mut(), &mut model);
        txn.commit().unwrap();
    }
    drop(engine);
    (disk, model)
}

/// Opens and reads everything; a wrong answer fails the test.
fn judge(disk: &Simulated, model: &Model, what: &str) -> bool {
    let engine = match open(disk) {
        Ok(engine) => engine,
        Err(error) => {
            let told = matches!(error.kind(), Kind::Corrupt | Kind::Invalid);
            assert!(told, "{what}: {error}");
            return false;
        }
    };
    match all(&engine) {
        Ok(found) => assert!(found == *model, "{what}: a wrong answer"),
        Err(error) => {
            assert_eq!(error.kind(), Kind::Corrupt, "{what}: {error}");
            assert!(!engine.check().problems.is_empty());
            return false;
        }
    }
    true
}

#[test]
fn a_flipped_bit_is_never_a_wrong_answer() {
    draw::check("a_flipped_bit_is_never_a_wrong_answer", cases(12), |draw| {
        let (disk, model) = sample(draw);
        assert!(judge(&disk.copy(), &model, "undamaged"));
        for (path, size) in files_of(&disk) {
            for _ in 0..12 {
                let disk = disk.copy();
                let used = used(&disk, &path).max(1).min(size.max(1));
                let (at, bit) = (draw.index(used), draw.below(8));
                disk.edit(&path, |bytes| bytes[at] ^= 1 << bit);
                judge(&disk, &model, &format!("bit {bit} of byte {at} of {}", path.display()));
            }
        }
    });
}

/// How much of a file is not the zeros at its end.
fn used(disk: &Simulated, path: &std::path::Path) -> usize {
    let mut used = 0;
    disk.edit(path, |bytes| {
        used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    });
    used
}

#[test]
fn a_cut_file_is_noticed() {
    draw::check("a_cut_file_is_noticed", cases(12), |draw| {
        let (disk, model) = sample(draw);
        for (path, _) in files_of(&disk) {
            let used = used(&disk, &path);
            for _ in 0..6 {
                let disk = disk.copy();
                let size = draw.index(used.max(1));
                disk.edit(&path, |bytes| bytes.truncate(size));
                let well = judge(&disk, &model, &format!("{} cut to {size}", path.display()));
                assert!(!well, "{} cut to {size} was not noticed", path.display());
            }
        }
    });
}

#[test]
fn a_missing_file_is_noticed() {
    draw::check("a_missing_file_is_noticed", cases(20), |draw| {
        let (disk, model) = sample(draw);
        for (path, _) in files_of(&disk) {
            let disk = disk.copy();
            crate::files::Files::remove(&disk, &path).unwrap();
            let well = judge(&disk, &model, &format!("without {}", path.display()));
            assert!(!well, "the loss of {} was not noticed", path.display());
        }
    });
}

/// The last commit is as safe as the others: damage to it is not taken for a torn tail.
#[test]
fn damage_to_the_last_commit_is_not_a_torn_tail() {
    let disk = Simulated::new();
    let engine = open(&disk).unwrap();
    put(&engine, b"first", b"1").unwrap();
    put(&engine, b"last", &[0; 2000]).unwrap();
    // As after the end of the process: no mark was written behind the last commit.
    let disk = disk.copy();
    let path = dir().join("00000002.log");
    let used = used(&disk, &path);
    let good = all(&open(&disk.copy()).unwrap()).unwrap();
    assert_eq!(good.len(), 2);
    for at in 0..used {
        let damaged = disk.copy();
        damaged.edit(&path, |bytes| bytes[at] ^= 4);
        match open(&damaged) {
            Ok(engine) => assert_eq!(all(&engine).unwrap(), good, "byte {at}"),
            Err(error) => assert_eq!(error.kind(), Kind::Corrupt, "byte {at}: {error}"),
        }
    }
    drop(engine);
}
