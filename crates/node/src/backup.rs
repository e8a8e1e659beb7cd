//! The whole keyspace as one file, and back.
//!
//! ```text
//! file     "KUMIKOBK" version (1, LE u32) chunk* end
//! chunk    size (LE u32, not 0)  crc32 of the rows (LE u32)  rows
//! row      key size (LE u32) value size (LE u32) key value
//! end      0 (LE u32)  number of rows (LE u64)  crc32 of that number (LE u32)
//! ```
//!
//! All rows are of one snapshot. A file without its end is not a backup: restoring it fails before
//! anything can be taken for whole.

use std::io::{self, BufReader, BufWriter, Read, Write};

use kumiko_base::Kind;
use kumiko_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use kumiko_kv::{Engine, Flow, Range, Scan};

use crate::Error;

const MAGIC: &[u8; 8] = b"KUMIKOBK";
const VERSION: u32 = 1;
/// Rows are collected up to this size, and a restore commits once per chunk.
const CHUNK_BYTES: usize = 1 << 20;
/// The largest chunk that a reader takes: the last row may stand out.
const CHUNK_BYTES_MAX: usize = CHUNK_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX + 8;

/// Writes a backup of everything that `engine` holds. `progress` is told the rows so far. Returns
/// their number.
pub fn write(
    engine: &dyn Engine,
    out: impl Write,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let mut out = BufWriter::new(out);
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    let mut txn = engine.begin()?;
    let mut count = 0_u64;
    let mut left = Some(Range::all());
    while let Some(range) = left {
        let mut rows = Vec::with_capacity(CHUNK_BYTES);
        left = txn.visit(&Scan::new(range).snapshot(), &mut |key, value| {
            count += 1;
            rows.extend_from_slice(&(key.len() as u32).to_le_bytes());
            rows.extend_from_slice(&(value.len() as u32).to_le_bytes());
            rows.extend_from_slice(key);
            rows.extend_from_slice(value);
            if rows.len() < CHUNK_BYTES { Flow::Go } else { Flow::Stop }
        })?;
        if !rows.is_empty() {
            out.write_all(&(rows.len() as u32).to_le_bytes())?;
            out.write_all(&crc32fast::hash(&rows).to_le_bytes())?;
            out.write_all(&rows)?;
        }
        progress(count);
    }
    out.write_all(&0_u32.to_le_bytes())?;
    out.write_all(&count.to_le_bytes())?;
    out.write_all(&crc32fast::hash(&count.to_le_bytes()).to_le_bytes())?;
    out.flush()?;
    Ok(count)
}

/// Puts a backup into `engine`, which must be empty. Returns the number of rows.
pub fn restore(
    engine: &dyn Engine,
    from: impl Read,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let page = engine.begin()?.scan(&Scan::new(Range::all()).rows(1).snapshot())?;
    if !page.rows.is_empty() {
        let text = "the store is not empty; restore into a new directory";
        return Err(Error::new(Kind::Exists, text));
    }
    let mut from = BufReader::new(from);
    let magic: [u8; 8] = take(&mut from)?;
    if &magic != MAGIC {
        return Err(corrupt("the file is not a backup of kumiko"));
    }
    let version = u32::from_le_bytes(take(&mut from)?);
    if version != VERSION {
        return Err(corrupt(&format!(
            "the backup has version {version}, this program reads {VERSION}"
        )));
    }
    let mut count = 0;
    loop {
        let size = u32::from_le_bytes(take(&mut from)?) as usize;
        if size == 0 {
            break;
        }
        count += restore_chunk(engine, &mut from, size, count)?;
        progress(count);
    }
    let end: [u8; 8] = take(&mut from)?;
    let crc = u32::from_le_bytes(take(&mut from)?);
    if u64::from_le_bytes(end) != count || crc != crc32fast::hash(&end) {
        return Err(corrupt("the end of the backup does not fit its rows"));
    }
    engine.sync()?;
    Ok(count)
}

fn restore_chunk(
    engine: &dyn Engine,
    from: &mut impl Read,
    size: usize,
    before: u64,
) -> Result<u64, Error> {
    let damaged = |why: &str| corrupt(&format!("the backup is damaged after row {before}: {why}"));
    if CHUNK_BYTES_MAX < size {
        return Err(damaged("a chunk is too large"));
    }
    let crc = u32::from_le_bytes(take(from)?);
    let mut rows = vec![0; size];
    from.read_exact(&mut rows).map_err(cut)?;
    if crc32fast::hash(&rows) != crc {
        return Err(damaged("a checksum is wrong"));
    }
    let mut txn = engine.begin()?;
    let mut rest = rows.as_slice();
    let mut count = 0;
    while !rest.is_empty() {
        let (key, value, after) = split_row(rest).ok_or_else(|| damaged("a row is malformed"))?;
        txn.put(key, value)?;
        count += 1;
        rest = after;
    }
    txn.commit()?;
    Ok(count)
}

fn split_row(rows: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (key_size, rest) = rows.split_first_chunk::<4>()?;
    let (value_size, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key_size) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_size) as usize)?;
    Some((key, value, rest))
}

fn take<const N: usize>(from: &mut impl Read) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).map_err(cut)?;
    Ok(bytes)
}

fn cut(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => corrupt("the backup ends in the middle"),
        _ => Error::from(error),
    }
}

fn corrupt(text: &str) -> Error {
    Error::new(Kind::Corrupt, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::draw;
    use kumiko_kv::{Memory, Row};

    fn filled(rows: &[(Vec<u8>, Vec<u8>)]) -> Memory {
        let engine = Memory::new();
        for part in rows.chunks(50) {
            let mut txn = engine.begin().unwrap();
            for (key, value) in part {
                txn.put(key, value).unwrap();
            }
            txn.commit().unwrap();
        }
        engine
    }

    fn all(engine: &Memory) -> Vec<Row> {
        engine.begin().unwrap().scan(&Scan::new(Range::all())).unwrap().rows
    }

    fn backup(engine: &Memory) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(engine, &mut bytes, &mut |_| {}).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_comes_back() {
        for count in [0, 1, 100] {
            let row = |it: u32| (it.to_be_bytes().to_vec(), vec![it as u8; 90_000]);
            let engine = filled(&(0..count).map(row).collect::<Vec<_>>());
            let fresh = Memory::new();
            let restored = restore(&fresh, backup(&engine).as_slice(), &mut |_| {}).unwrap();
            assert_eq!(restored, u64::from(count));
            assert_eq!(all(&fresh), all(&engine));
        }
    }

    #[test]
    fn a_store_that_is_not_empty_is_left_alone() {
        let engine = filled(&[(vec![1], vec![2])]);
        let error = restore(&engine, backup(&engine).as_slice(), &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists);
    }

    /// Whatever happens to the file: the restore says so, or the bytes were not part of the rows.
    #[test]
    fn damage_is_always_noticed() {
        let row = |it: u8| (vec![it, 7], vec![it; usize::from(it)]);
        let engine = filled(&(1..60).map(row).collect::<Vec<_>>());
        let good = backup(&engine);
        draw::check("damage_is_always_noticed", 500, |draw| {
            let mut bytes = good.clone();
            if draw.one_in(2) {
                bytes.truncate(draw.index(bytes.len()));
            } else {
                let at = draw.index(bytes.len());
                bytes[at] ^= 1 << draw.below(8);
            }
            assert!(restore(&Memory::new(), bytes.as_slice(), &mut |_| {}).is_err());
        });
    }
}
