//! The bytes of a small store, which are also those in `docs/format/store.md`.

use std::fmt::Write;

use super::dir;
use crate::build::Build;
use crate::files::Files;
use crate::frame::Op;
use crate::simulated::Simulated;
use crate::wal::Wal;
use crate::{frame, table, wal};

const PAGE: &str = include_str!("../../../../docs/format/store.md");

/// Sixteen bytes a line; lines of zeros are left out.
fn dump(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("{name}\n");
    for (at, line) in bytes.chunks(16).enumerate() {
        if line.iter().all(|byte| *byte == 0) {
            continue;
        }
        let _ = write!(text, "{:4x} ", at * 16);
        for byte in line {
            let _ = write!(text, " {byte:02x}");
        }
        let shown = |byte: &u8| if byte.is_ascii_graphic() { *byte as char } else { '.' };
        let shown: String = line.iter().map(shown).collect();
        let _ = writeln!(text, "{}  {shown}", "   ".repeat(16 - line.len()));
    }
    text
}

fn file(disk: &Simulated, name: &str) -> String {
    let mut text = String::new();
    disk.edit(&dir().join(name), |bytes| text = dump(name, bytes));
    text
}

#[test]
fn the_bytes_stay() {
    let disk = Simulated::new();
    let mut wal = Wal::create(&disk, dir(), 2, 0, 0).unwrap();
    let first: &[Op<'_>] = &[Op::Put(b"a", b"1")];
    let second: &[Op<'_>] = &[Op::Clear(b"b", b"d"), Op::Put(b"c", b"2")];
    for (version, ops) in [(1, first), (2, second)] {
        let mut bytes = vec![0; frame::FRAME_HEADER];
        let start = frame::begin_commit(&mut bytes, version);
        for op in ops {
            frame::push_op(&mut bytes, *op);
        }
        frame::end_commit(&mut bytes, start, ops.len());
        wal.append(&mut bytes, frame::FrameKind::Commits).unwrap();
        wal.sync().unwrap();
    }
    wal.end(3).unwrap();
    let mut build = Build::new(&disk, dir(), 4).unwrap();
    build.push(b"a", Some(b"1")).unwrap();
    build.push(b"c", Some(b"2")).unwrap();
    build.finish(&[(b"b".to_vec(), b"d".to_vec())]).unwrap();
    disk.sync_dir(dir()).unwrap();
    for name in [wal::name(2), table::name(4)] {
        let found = file(&disk, &name);
        assert!(PAGE.contains(&found), "the page has other bytes than these:\n{found}");
    }
}
