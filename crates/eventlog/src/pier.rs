//! vere's piers: what a ship's directory holds, and how it stands for a log.
//!
//! ```text
//! .urb/log/data.mdb            META alone
//! .urb/log/0iN/data.mdb        META and EVENTS, from event N + 1 on
//! .urb/log/0iN/epoc.txt        the version of the epoch
//! .urb/log/0iN/vere.txt        the runtime that computed it
//! .urb/log/0iN/image.bin       the state after event N; not in epoch 0
//! .urb/chk/image.bin           the newest state
//! ```
//!
//! A value of EVENTS is an event to the byte, its four bytes of state hash included. What META and
//! the text files say is kept in the log's metadata, so that an export writes it back:
//!
//! ```text
//! meta/pier-meta               01 table            the META of .urb/log
//! meta/pier-epoch/ N (8, BE)   01 text text table  epoc.txt, vere.txt, the epoch's META
//! text    size (4, LE) bytes, or ffffffff if the file is not there
//! table   count (1), then name and value as texts
//! ```

mod export;
mod import;
mod time;

pub use export::{Exported, Missing, export};
pub use import::{Imported, Inspected, import, inspect};
pub use time::event_ms;

use std::io;

use crate::lmdb::{Cursor, Env, ReadAt, WriteAt};
use crate::{Error, Point};

/// The longest text file and value of META that is kept.
const TEXT_BYTES_MAX: usize = 4_096;
/// The most names that a META may have.
const TABLE_MAX: usize = 64;
/// vere refuses events of four bytes or less: the state hash and nothing else.
const EVENT_BYTES_LEAST: u64 = 5;

const LOG_DIR: &str = ".urb/log";
const VERSION: u8 = 1;
const ABSENT: u32 = u32::MAX;

/// A directory that holds a pier, or will. Paths are relative, with `/`.
pub trait PierDir {
    /// The names in a directory; none if it is not there.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Opens a file for reading only; `None` if it is not there.
    fn open(&self, path: &str) -> io::Result<Option<Box<dyn ReadAt>>>;
    /// Begins a file, with the directories above it, in place of what was there.
    fn create(&self, path: &str) -> io::Result<Box<dyn WriteAt>>;
    /// Gives a finished file its name, durably.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
}

/// How far a long work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The events done, those of earlier runs included.
    pub events: u64,
    /// The events in all.
    pub events_all: u64,
    /// The bytes copied in this run.
    pub bytes: u64,
}

/// The content of a META table, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(pub Vec<(Vec<u8>, Vec<u8>)>);

impl Table {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.0.iter().find(|(other, _)| other == name.as_bytes());
        found.map(|(_, value)| value.as_slice())
    }

    /// The number under a name: little-endian, without the zeros at its end.
    pub fn number(&self, name: &str) -> Option<u128> {
        let value = self.get(name)?;
        if 16 < value.len() {
            return None;
        }
        Some(value.iter().rev().fold(0, |sum, byte| sum << 8 | u128::from(*byte)))
    }

    /// The ship.
    pub fn point(&self) -> Option<Point> {
        self.number("who").map(Point::new)
    }

    /// Whether the ship is a fake one; in vere, zero is yes.
    pub fn fake(&self) -> Option<bool> {
        self.number("fake").map(|value| value == 0)
    }

    fn read(env: &Env<'_>) -> Result<Table, Error> {
        let db = env.named(b"META")?;
        let db = db.ok_or_else(|| Error::Pier("the LMDB file has no META".into()))?;
        let mut cursor = Cursor::first(env, &db)?;
        let mut table = Vec::new();
        while let Some((name, value)) = cursor.step()? {
            if TABLE_MAX <= table.len() {
                return Err(Error::Pier(format!("META has more than {TABLE_MAX} names")));
            }
            table.push((name, env.load(&value, TEXT_BYTES_MAX as u64)?));
        }
        Ok(Table(table))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.0.len() as u8);
        for (name, value) in &self.0 {
            encode_text(Some(name), out);
            encode_text(Some(value), out);
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Table> {
        let (&count, rest) = bytes.split_first()?;
        *bytes = rest;
        if TABLE_MAX < usize::from(count) {
            return None;
        }
        let mut table = Vec::new();
        for _ in 0..count {
            table.push((decode_text(bytes)?, decode_text(bytes)?));
        }
        Some(Table(table))
    }
}

/// What a pier says of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The last event before it.
    pub number: u64,
    /// `epoc.txt`.
    pub epoc: Option<Vec<u8>>,
    /// `vere.txt`.
    pub vere: Option<Vec<u8>>,
    /// Its META.
    pub table: Table,
}

impl Epoch {
    fn dir(&self) -> String {
        format!("{LOG_DIR}/0i{}", self.number)
    }

    fn encode(&self) -> Vec<u8> {
        let mut value = vec![VERSION];
        encode_text(self.epoc.as_deref(), &mut value);
        encode_text(self.vere.as_deref(), &mut value);
        self.table.encode(&mut value);
        value
    }

    fn decode(number: u64, mut value: &[u8]) -> Option<Epoch> {
        let (&VERSION, rest) = value.split_first()? else { return None };
        value = rest;
        let mut epoch = Epoch { number, ..Epoch::default() };
        decode_file(&mut value, &mut epoch.epoc)?;
        decode_file(&mut value, &mut epoch.vere)?;
        epoch.table = Table::decode(&mut value)?;
        value.is_empty().then_some(epoch)
    }
}

fn encode_table(table: &Table) -> Vec<u8> {
    let mut value = vec![VERSION];
    table.encode(&mut value);
    value
}

fn decode_table(mut value: &[u8]) -> Option<Table> {
    let (&VERSION, rest) = value.split_first()? else { return None };
    value = rest;
    let table = Table::decode(&mut value)?;
    value.is_empty().then_some(table)
}

fn encode_text(text: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(text) = text else { return out.extend_from_slice(&ABSENT.to_le_bytes()) };
    assert!(text.len() <= TEXT_BYTES_MAX, "texts are checked when they are read");
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

fn decode_text(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    let size = u32::from_le_bytes(*size) as usize;
    if TEXT_BYTES_MAX < size {
        return None;
    }
    let (text, rest) = rest.split_at_checked(size)?;
    *bytes = rest;
    Some(text.to_vec())
}

/// A text that may be absent; `None` only if the bytes are wrong.
fn decode_file(bytes: &mut &[u8], file: &mut Option<Vec<u8>>) -> Option<()> {
    if let Some(rest) = bytes.strip_prefix(&ABSENT.to_le_bytes()) {
        *bytes = rest;
        return Some(());
    }
    *file = Some(decode_text(bytes)?);
    Some(())
}

/// A file as a stream.
struct FileRead<'a> {
    file: &'a dyn ReadAt,
    offset: u64,
    size: u64,
}

impl<'a> FileRead<'a> {
    fn new(file: &'a dyn ReadAt) -> io::Result<FileRead<'a>> {
        Ok(FileRead { size: file.size()?, file, offset: 0 })
    }
}

impl io::Read for FileRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (self.size - self.offset).min(buffer.len() as u64) as usize;
        self.file.read_at(self.offset, &mut buffer[..count])?;
        self.offset += count as u64;
        Ok(count)
    }
}
