//! The manifest: which tables make up the store, on which level, and which log comes after them.
//!
//! A small text file that is replaced as a whole, so it always says one state of the store:
//!
//! ```text
//! kumiko manifest 1
//! log 7
//! version 1042
//! table 5 level 0 bytes 8321 rows 90 clears 0 min 0105 max 01ff
//! crc 5f3759df
//! ```
//!
//! Tables of level 0 come newest first, those of the other levels in key order. Keys are in
//! hexadecimal. The crc is over all lines before it.

use std::fmt::Write;
use std::path::Path;

use kumiko_kv::Error;

use crate::files::{self, Files};
use crate::table::Entry;

/// The file's name.
pub(crate) const NAME: &str = "MANIFEST";
/// The levels below level 0.
pub(crate) const DEEP: usize = 6;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The first log that is not yet in tables.
    pub(crate) log: u64,
    /// No version in the tables is above this one.
    pub(crate) version: u64,
    /// Level and table.
    pub(crate) tables: Vec<(usize, Entry)>,
}

impl Manifest {
    /// Reads the file.
    pub(crate) fn load(files: &dyn Files, dir: &Path) -> Result<Manifest, Error> {
        let path = dir.join(NAME);
        let bytes = files.open(&path).and_then(|file| files::read_whole(file.as_ref())).map_err(
            |error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    Error::Corrupt(format!("{} is missing", path.display()))
                }
                _ => files::error("cannot read", &path, &error),
            },
        )?;
        decode(&bytes).ok_or_else(|| {
            Error::Corrupt(format!("{} is damaged: its text or checksum is wrong", path.display()))
        })
    }

    /// Replaces the file.
    pub(crate) fn store(&self, files: &dyn Files, dir: &Path) -> Result<(), Error> {
        files::replace(files, dir, NAME, &self.encode())
            .map_err(|error| files::error("cannot write", &dir.join(NAME), &error))
    }

    fn encode(&self) -> Vec<u8> {
        let mut text = format!("kumiko manifest 1\nlog {}\nversion {}\n", self.log, self.version);
        for (level, entry) in &self.tables {
            let Entry { id, bytes, rows, clears, min, max } = entry;
            let (min, max) = (hex(min), hex(max));
            let _ = write!(text, "table {id} level {level} bytes {bytes} rows {rows} ");
            let _ = writeln!(text, "clears {clears} min {min} max {max}");
        }
        let crc = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "crc {crc:08x}");
        text.into_bytes()
    }
}

fn decode(bytes: &[u8]) -> Option<Manifest> {
    let text = std::str::from_utf8(bytes).ok()?;
    let body = text.strip_suffix('\n')?;
    let cut = body.rfind('\n')? + 1;
    let crc = u32::from_str_radix(body[cut..].strip_prefix("crc ")?, 16).ok()?;
    if crc != crc32fast::hash(&bytes[..cut]) {
        return None;
    }
    let mut lines = body[..cut].lines();
    if lines.next()? != "kumiko manifest 1" {
        return None;
    }
    let log = lines.next()?.strip_prefix("log ")?.parse().ok()?;
    let version = lines.next()?.strip_prefix("version ")?.parse().ok()?;
    let mut tables = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let names = ["table", "level", "bytes", "rows", "clears", "min", "max"];
        let named = words.iter().step_by(2).eq(names.iter());
        let [_, id, _, level, _, bytes, _, rows, _, clears, _, min, _, max] = words[..] else {
            return None;
        };
        let level: usize = level.parse().ok()?;
        if DEEP < level || !named {
            return None;
        }
        let entry = Entry {
            id: id.parse().ok()?,
            bytes: bytes.parse().ok()?,
            rows: rows.parse().ok()?,
            clears: clears.parse().ok()?,
            min: unhex(min)?,
            max: unhex(max)?,
        };
        tables.push((level, entry));
    }
    Some(Manifest { log, version, tables })
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Manifest, decode};
    use crate::table::Entry;
    use kumiko_base::draw;

    fn sample() -> Manifest {
        let entry = Entry { id: 5, bytes: 8321, rows: 90, clears: 0, min: vec![1], max: vec![2] };
        Manifest { log: 7, version: 1042, tables: vec![(0, entry)] }
    }

    #[test]
    fn the_text_stays() {
        let text = String::from_utf8(sample().encode()).unwrap();
        let (body, crc) = text.split_once("crc ").unwrap();
        assert_eq!(
            body,
            "kumiko manifest 1\nlog 7\nversion 1042\n\
             table 5 level 0 bytes 8321 rows 90 clears 0 min 01 max 02\n"
        );
        assert_eq!(crc.trim_end(), format!("{:08x}", crc32fast::hash(body.as_bytes())));
        assert_eq!(decode(text.as_bytes()).unwrap(), sample());
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = sample().encode();
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // The case of a hexadecimal digit of the crc may flip without changing its meaning.
            if let Some(read) = decode(&bytes) {
                assert_eq!(read, sample(), "bit {bit}");
            }
        }
        draw::check("every_flipped_bit_is_noticed", 500, |draw| {
            assert!(decode(&draw.bytes(100)).is_none());
        });
    }
}
