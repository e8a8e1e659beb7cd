//! Making whole cells.

use super::head::{LEAF_COUNT_MAX, LIST, MAP, SET, SYMBOL};
use super::{Cell, Id, Writer, vlq};
use crate::Error;
use crate::cell::head::{NAME_BYTES_MAX, bad};

impl Cell {
    /// The cell of the one value that `write` appends.
    pub fn write(write: impl FnOnce(&mut Writer)) -> Cell {
        let mut writer = Writer::new();
        write(&mut writer);
        writer.finish()
    }

    /// Nothing.
    pub fn nil() -> Cell {
        Cell::write(Writer::nil)
    }

    /// True or false.
    pub fn boolean(value: bool) -> Cell {
        Cell::write(|writer| writer.boolean(value))
    }

    /// An integer.
    pub fn int(value: i64) -> Cell {
        Cell::write(|writer| writer.int(value))
    }

    /// A float, bit for bit.
    pub fn double(value: f64) -> Cell {
        Cell::write(|writer| writer.double(value))
    }

    /// Text. Its bytes need not be UTF-8.
    pub fn string(text: impl AsRef<[u8]>) -> Cell {
        Cell::write(|writer| writer.string(text.as_ref()))
    }

    /// Bytes.
    pub fn blob(bytes: impl AsRef<[u8]>) -> Cell {
        Cell::write(|writer| writer.blob(bytes.as_ref()))
    }

    /// A keyword. Its name has 1 to 128 bytes.
    pub fn keyword(name: &str) -> Cell {
        Cell::write(|writer| writer.keyword(name))
    }

    /// A symbol. Its name has 1 to 128 bytes.
    pub fn symbol(name: &str) -> Cell {
        assert!(!name.is_empty() && name.len() <= NAME_BYTES_MAX, "a name has 1 to 128 bytes");
        Cell::write(|writer| {
            writer.bytes.extend_from_slice(&[SYMBOL, name.len() as u8]);
            writer.bytes.extend_from_slice(name.as_bytes());
        })
    }

    /// An account address.
    pub fn address(address: u64) -> Cell {
        Cell::write(|writer| writer.address(address))
    }

    /// A vector.
    pub fn vector(elements: &[Cell]) -> Cell {
        Cell::write(|writer| {
            writer.vector(elements.len(), &mut |writer, index| writer.cell(&elements[index]));
        })
    }

    /// A list, which is stored last element first.
    pub fn list(elements: &[Cell]) -> Cell {
        let last = elements.len();
        Cell::write(|writer| {
            writer.vector_body(LIST, 0, last, &mut |writer, index| {
                writer.cell(&elements[last - 1 - index]);
            });
        })
    }

    /// A dense record: a tag from d0 to df, then fields as in a vector.
    ///
    /// # Errors
    ///
    /// `Encoding` if there is no such tag.
    pub fn record(tag: u8, fields: &[Cell]) -> Result<Cell, Error> {
        if !(0xd0..=0xdf).contains(&tag) {
            return bad("no tag of a record");
        }
        Ok(Cell::write(|writer| {
            writer.vector_body(tag, 0, fields.len(), &mut |writer, index| {
                writer.cell(&fields[index]);
            });
        }))
    }

    /// A hash map. Of entries with equal keys, the last one counts.
    pub fn map(entries: impl IntoIterator<Item = (Cell, Cell)>) -> Cell {
        let mut entries: Vec<_> =
            entries.into_iter().map(|(key, value)| (key.id(), key, Some(value))).collect();
        sort_unique(&mut entries);
        Cell::write(|writer| write_map(writer, MAP, &entries))
    }

    /// A hash set.
    pub fn set(elements: impl IntoIterator<Item = Cell>) -> Cell {
        let mut entries: Vec<_> =
            elements.into_iter().map(|element| (element.id(), element, None)).collect();
        sort_unique(&mut entries);
        Cell::write(|writer| write_map(writer, SET, &entries))
    }
}

type Entry = (Id, Cell, Option<Cell>);

fn sort_unique(entries: &mut Vec<Entry>) {
    entries.reverse();
    entries.sort_by_key(|entry| entry.0);
    entries.dedup_by_key(|entry| entry.0);
}

fn write_map(writer: &mut Writer, tag: u8, entries: &[Entry]) {
    let mark = writer.mark();
    writer.bytes.push(tag);
    vlq::put(&mut writer.bytes, entries.len() as u64);
    if entries.len() as u64 <= LEAF_COUNT_MAX {
        for (_, key, value) in entries {
            writer.cell(key);
            if let Some(value) = value {
                writer.cell(value);
            }
        }
    } else {
        write_map_tree(writer, tag, entries);
    }
    writer.seal(mark);
}

fn write_map_tree(writer: &mut Writer, tag: u8, entries: &[Entry]) {
    let (first, last) = (&entries[0].0, &entries[entries.len() - 1].0);
    let shift = (0..64)
        .find(|&at| first.digit(at) != last.digit(at))
        .expect("sorted ids without repetition differ");
    let groups = || entries.chunk_by(|own, next| own.0.digit(shift) == next.0.digit(shift));
    let mask = groups().fold(0_u16, |mask, group| mask | 1 << group[0].0.digit(shift));
    writer.bytes.push(shift as u8);
    writer.bytes.extend_from_slice(&mask.to_be_bytes());
    groups().for_each(|group| write_map(writer, tag, group));
}
