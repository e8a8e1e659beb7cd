//! Piers and LMDB files: what real LMDB wrote, what we write, and what nobody should have written.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use kumiko_base::Kind;
use kumiko_base::draw::{self, Draw};
use kumiko_eventlog::lmdb::{Cursor, Env, EnvWriter, INTEGER_KEY, ReadAt, WriteAt};
use kumiko_eventlog::pier::{self, Missing, PierDir};
use kumiko_eventlog::verify::verify;
use kumiko_eventlog::{Error, Item, Log, PageMax, Point, Sizes, Take, Writer};
use kumiko_kv::{Engine, Memory, Range, Scan};

use crate::{bytes, id, read_all};

/// A directory in memory.
#[derive(Clone, Default)]
struct Dir(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

struct File(Dir, String);

impl WriteAt for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.0.borrow_mut().entry(self.1.clone()).or_default().write_at(offset, bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PierDir for Dir {
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let files = self.0.borrow();
        let name = |it: &String| {
            let rest = it.strip_prefix(path)?.strip_prefix('/')?;
            rest.split('/').next().map(str::to_owned)
        };
        let mut names: Vec<String> = files.keys().filter_map(name).collect();
        names.dedup();
        Ok(names)
    }

    fn open(&self, path: &str) -> io::Result<Option<Box<dyn ReadAt>>> {
        let file = self.0.borrow().get(path).cloned();
        Ok(file.map(|bytes| Box::new(bytes) as Box<dyn ReadAt>))
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn WriteAt>> {
        self.0.borrow_mut().insert(path.to_owned(), Vec::new());
        Ok(Box::new(File(self.clone(), path.to_owned())))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let file = self.0.borrow_mut().remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.0.borrow_mut().insert(to.to_owned(), file);
        Ok(())
    }
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn entries(file: &Vec<u8>, name: &str) -> Result<Entries, Error> {
    let env = Env::open(file)?;
    let Some(db) = env.named(name.as_bytes())? else { return Ok(Vec::new()) };
    let mut cursor = Cursor::first(&env, &db)?;
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.step()? {
        found.push((key, env.load(&value, 1 << 20)?));
    }
    Ok(found)
}

/// Two hundred events in batches of ten and a META, written by LMDB itself.
const REAL: &[u8] = include_bytes!("../fixtures/lmdb.mdb");

fn real_value(number: u64) -> Vec<u8> {
    let size = match number {
        7 => 3_000,
        40 => 9_000,
        _ => 5 + number as usize % 60,
    };
    bytes(number, size)
}

#[test]
fn a_file_of_real_lmdb() {
    let file = REAL.to_vec();
    let events = entries(&file, "EVENTS").unwrap();
    assert_eq!(events.len(), 200);
    for (number, (key, value)) in (1u64..).zip(&events) {
        assert_eq!(key, &number.to_le_bytes());
        assert_eq!(value, &real_value(number), "event {number}");
    }
    let meta = entries(&file, "META").unwrap();
    let names: Vec<&[u8]> = meta.iter().map(|(name, _)| name.as_slice()).collect();
    assert_eq!(names, [&b"fake"[..], b"life", b"version", b"who"]);
    assert_eq!(entries(&file, "OTHER"), Ok(vec![]));
    let env = Env::open(&file).unwrap();
    let db = env.named(b"EVENTS").unwrap().unwrap();
    for target in [1u64, 2, 57, 58, 59, 199, 200] {
        let number = |key: &[u8]| u64::from_le_bytes(key.try_into().unwrap());
        let mut cursor = Cursor::seek(&env, &db, &|key| number(key).cmp(&target)).unwrap();
        let rest = std::iter::from_fn(|| cursor.step().unwrap()).map(|(key, _)| number(&key));
        assert!(rest.eq(target..=200), "from {target}");
    }
}

/// Nothing that a file says makes the reader panic, loop or reserve without bound.
#[test]
fn mutated_files() {
    draw::check("mutated_files", 4_000, |draw| {
        let mut file = REAL.to_vec();
        for _ in 0..=draw.below(4) {
            match draw.below(3) {
                0 => {
                    // In the heads of pages, where the structure is.
                    let at = 4096 * draw.index(file.len() / 4096) + draw.index(64);
                    file[at] = draw.one_of(&[0, 1, 2, 4, 0x7f, 0xff, draw.clone().bits() as u8]);
                }
                1 => {
                    let at = draw.index(file.len());
                    file[at] = draw.bits() as u8;
                }
                _ => file.truncate((4096 * (1 + draw.index(file.len() / 4096))).max(4096)),
            }
        }
        for name in ["EVENTS", "META"] {
            if let Err(error) = entries(&file, name) {
                let kinds = [Kind::Corrupt, Kind::Unavailable, Kind::TooLarge];
                assert!(kinds.contains(&error.kind()), "{error}");
            }
        }
    });
}

#[test]
fn other_files_are_refused() {
    for file in [vec![], vec![0; 100], vec![0; 8192], b"SQLite format 3".repeat(600)] {
        assert_eq!(Env::open(&file).err().unwrap().kind(), Kind::Corrupt);
    }
    let mut newer = REAL.to_vec();
    newer[20] = 2;
    let error = Env::open(&newer).err().unwrap();
    assert_eq!(error, Error::Pier("LMDB data format 2 is not 1".into()));
}

/// What we write we read again: any number of entries, so any shape of tree.
#[test]
fn written_files_read_back() {
    draw::check("written_files_read_back", 60, |draw| {
        let count = draw.one_of(&[0, 1, 2, 3, 100, 900, 4_000, 30_000]) + draw.below(3);
        let size = draw.one_of(&[1, 8, 60, 2_021, 2_022, 2_023, 9_000]);
        let count = if 60 < size { count.min(900) } else { count };
        let mut file: Vec<u8> = Vec::new();
        let mut env = EnvWriter::new(&mut file);
        let mut tree = env.tree(INTEGER_KEY);
        for number in 1..=count {
            tree.put(&number.to_le_bytes(), &bytes(number, size)).unwrap();
        }
        let db = tree.finish().unwrap();
        env.finish(&[(b"EVENTS", db)]).unwrap();
        let found = entries(&file, "EVENTS").unwrap();
        assert_eq!(found.len() as u64, count);
        for (number, (key, value)) in (1u64..).zip(found) {
            assert_eq!((key, value), (number.to_le_bytes().to_vec(), bytes(number, size)));
        }
    });
}

fn planet() -> Point {
    "~midlyx-hatrys".parse().unwrap()
}

fn new_log(engine: &Memory) -> Writer {
    let sizes = Sizes { fragment: 1_000, body: 10_000 };
    Writer::open(engine, &Log::of(planet()).with_sizes(sizes), "test", Take::IfFree).unwrap()
}

/// A pier of three epochs, with a state at each roll.
fn sample_pier(draw: &mut Draw) -> Dir {
    let dir = Dir::default();
    let table = |tree: &mut EnvWriter<'_>| {
        let mut tree = tree.tree(0);
        let rows: [(&[u8], &[u8]); 4] =
            [(b"fake", &[]), (b"life", &[5]), (b"version", &[3]), (b"who", &[0, 4, 0x2d])];
        for (name, value) in rows {
            tree.put(name, value).unwrap();
        }
        tree.finish().unwrap()
    };
    let mut top = Vec::new();
    let mut env = EnvWriter::new(&mut top);
    let meta = table(&mut env);
    env.finish(&[(b"META", meta)]).unwrap();
    dir.0.borrow_mut().insert(".urb/log/data.mdb".into(), top);
    let mut next = 1u64;
    for epoch in 0..3u8 {
        let path = format!(".urb/log/0i{}", next - 1);
        let mut file = Vec::new();
        let mut env = EnvWriter::new(&mut file);
        let meta = table(&mut env);
        let mut tree = env.tree(INTEGER_KEY);
        if 1 < next {
            let image = bytes(next, 2_500);
            dir.0.borrow_mut().insert(format!("{path}/image.bin"), image.clone());
            dir.0.borrow_mut().insert(".urb/chk/image.bin".into(), image);
        }
        for _ in 0..=draw.below(300) {
            let size = draw.one_of(&[5, 100, 240, 999, 1_000, 1_001, 5_000, 25_000]);
            tree.put(&next.to_le_bytes(), &bytes(next, size)).unwrap();
            next += 1;
        }
        let events = tree.finish().unwrap();
        env.finish(&[(b"EVENTS", events), (b"META", meta)]).unwrap();
        let mut files = dir.0.borrow_mut();
        files.insert(format!("{path}/data.mdb"), file);
        files.insert(format!("{path}/epoc.txt"), b"2".to_vec());
        files.insert(format!("{path}/vere.txt"), format!("4.{epoch}").into_bytes());
    }
    dir
}

#[test]
fn round_trip() {
    draw::check("round_trip", 8, |draw| {
        let pier = sample_pier(draw);
        let engine = Memory::new();
        let writer = new_log(&engine);
        assert_eq!(pier::inspect(&pier).unwrap().point, planet());
        let done = pier::import(&engine, &writer, &pier, true, &mut |_| ()).unwrap();
        assert_eq!(done.fresh, done.bounds.count());
        assert_eq!(done.snapshots, 2);
        let report = verify(&engine, writer.log(), &mut |_, _| ()).unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
        // Again: nothing is written, everything is compared.
        let again = pier::import(&engine, &writer, &pier, true, &mut |_| ()).unwrap();
        assert_eq!((again.fresh, again.bounds), (0, done.bounds));
        let back = Dir::default();
        let log = writer.log();
        pier::export(&engine, log, planet(), &back, None, &mut |_| ()).unwrap();
        assert!(*back.0.borrow() == *pier.0.borrow(), "every file to the byte");
        // A second export finds its epochs finished.
        let kept = pier::export(&engine, log, planet(), &back, None, &mut |_| ()).unwrap();
        assert_eq!((kept.epochs, kept.epochs_kept), (0, 3));
        back.0.borrow_mut().retain(|path, _| !path.ends_with("data.mdb"));
        pier::export(&engine, log, planet(), &back, None, &mut |_| ()).unwrap();
        assert!(*back.0.borrow() == *pier.0.borrow(), "what was missing is there again");
    });
}

/// An import that breaks off goes on where it was.
#[test]
fn import_is_resumable() {
    let pier = sample_pier(&mut Draw::new(3));
    let memory = Memory::new();
    let writer = new_log(&memory);
    let mut runs = 0;
    loop {
        let engine = crate::faulty::Faulty::new(memory.clone(), runs, 0);
        engine.left.store(9, std::sync::atomic::Ordering::SeqCst);
        runs += 1;
        match pier::import(&engine, &writer, &pier, true, &mut |_| ()) {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), Kind::Unavailable),
        }
        assert!(runs < 1_000, "each run gets further");
    }
    assert!(1 < runs);
    let back = Dir::default();
    pier::export(&memory, writer.log(), planet(), &back, None, &mut |_| ()).unwrap();
    assert!(*back.0.borrow() == *pier.0.borrow());
}

/// A pier whose older epochs were chopped begins with the state of its first epoch.
#[test]
fn a_chopped_pier() {
    let pier = sample_pier(&mut Draw::new(5));
    pier.0.borrow_mut().retain(|path, _| !path.starts_with(".urb/log/0i0/"));
    let engine = Memory::new();
    let writer = new_log(&engine);
    let done = pier::import(&engine, &writer, &pier, false, &mut |_| ()).unwrap();
    assert_eq!(done.snapshots, 1, "the needed one");
    assert!(id(1) < done.bounds.first);
    assert!(verify(&engine, writer.log(), &mut |_, _| ()).unwrap().is_clean());
    let back = Dir::default();
    let log = writer.log();
    pier::export(&engine, log, planet(), &back, None, &mut |_| ()).unwrap();
    let events = |dir: &Dir| {
        let files = dir.0.borrow();
        let files = files.iter().filter(|(path, _)| path.ends_with("data.mdb"));
        files.flat_map(|(_, file)| entries(file, "EVENTS").unwrap()).collect::<Vec<_>>()
    };
    assert!(events(&back) == events(&pier));
    // Truncating further moves the first epoch along, with its own state.
    let at = id(done.bounds.first.get() + 2);
    writer.snapshot(&engine, at, &mut &b"state"[..]).unwrap();
    writer.truncate(&engine, at).unwrap();
    let cut = Dir::default();
    pier::export(&engine, log, planet(), &cut, None, &mut |_| ()).unwrap();
    assert_eq!(cut.0.borrow()[&format!(".urb/log/0i{at}/image.bin")], b"state");
    assert!(events(&cut) == events(&pier)[3..]);
}

#[test]
fn a_fork_between_pier_and_log() {
    let pier = sample_pier(&mut Draw::new(7));
    let engine = Memory::new();
    let writer = new_log(&engine);
    writer.append(&engine, id(1), &[Item::event(b"another history")]).unwrap();
    let error = pier::import(&engine, &writer, &pier, true, &mut |_| ()).unwrap_err();
    assert_eq!(error, Error::Fork { id: id(1) });
}

#[test]
fn a_log_that_never_was_a_pier() {
    let engine = Memory::new();
    let writer = new_log(&engine);
    let large = bytes(9, 12_345);
    writer.append(&engine, id(1), &[Item::event(b"12345"), Item::event(&large)]).unwrap();
    let log = writer.log();
    let dir = Dir::default();
    let refused = pier::export(&engine, log, planet(), &dir, None, &mut |_| ()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
    let missing = Missing { fake: true, life: 300, vere: "4.5".into() };
    pier::export(&engine, log, planet(), &dir, Some(&missing), &mut |_| ()).unwrap();
    let found = pier::inspect(&dir).unwrap();
    assert_eq!((found.point, found.fake, found.life), (planet(), true, 300));
    let other = Memory::new();
    let copy = new_log(&other);
    pier::import(&other, &copy, &dir, true, &mut |_| ()).unwrap();
    assert_eq!(
        read_all(&other, log, PageMax::default()),
        read_all(&engine, log, PageMax::default())
    );
    // Too short for vere.
    writer.append(&engine, id(3), &[Item::event(b"1234")]).unwrap();
    let missing = Some(&missing);
    let short = pier::export(&engine, log, planet(), &dir, missing, &mut |_| ()).unwrap_err();
    assert_eq!(short.kind(), Kind::Invalid);
}

/// The files of a pier, broken at random: an import fails with an error, and what it wrote before
/// is a sound log.
#[test]
fn mutated_piers() {
    draw::check("mutated_piers", 150, |draw| {
        let pier = sample_pier(draw);
        let names: Vec<String> = pier.0.borrow().keys().cloned().collect();
        let name = draw.one_of(&names);
        if draw.one_in(4) {
            pier.0.borrow_mut().remove(&name);
        } else {
            let mut files = pier.0.borrow_mut();
            let file = files.get_mut(&name).unwrap();
            for _ in 0..=draw.below(3) {
                let reach = draw.one_of(&[200, 5_000, 1 << 20]);
                let at = draw.index(file.len().min(reach));
                file[at] ^= 1 << draw.below(8);
            }
        }
        let engine = Memory::new();
        let writer = new_log(&engine);
        let _ = pier::import(&engine, &writer, &pier, true, &mut |_| ());
        let rows = engine.begin().unwrap().scan(&Scan::new(Range::all())).unwrap().rows;
        let report = verify(&engine, writer.log(), &mut |_, _| ()).unwrap();
        assert!(report.is_clean(), "{:?} in {} rows", report.findings, rows.len());
    });
}
