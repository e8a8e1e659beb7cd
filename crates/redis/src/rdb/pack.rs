//! The packed forms of small collections: ziplist, listpack and intset.
//!
//! Each is one run of bytes with a header, entries and an end mark of `FF`. Integers are stored as
//! such and come out as text. The lengths that point backwards are skipped, as we only walk forward.

use super::read::Reader;

/// The mark behind the last entry of a ziplist and of a listpack.
const END: u8 = 0xFF;

fn text(value: i64) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// A little-endian integer of three bytes.
fn i24(bytes: [u8; 3]) -> i64 {
    i64::from(i32::from_le_bytes([0, bytes[0], bytes[1], bytes[2]]) >> 8)
}

/// The entries of a ziplist.
pub(super) fn ziplist(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader::new(bytes);
    let size = u32::from_le_bytes(reader.array()?) as usize;
    let _tail: [u8; 4] = reader.array()?;
    let count = u16::from_le_bytes(reader.array()?);
    if size != bytes.len() {
        return None;
    }
    let mut items = Vec::new();
    loop {
        match reader.byte()? {
            END => break,
            0xFE => drop(reader.take(4)?),
            _ => {}
        }
        items.push(ziplist_entry(&mut reader)?);
    }
    // A full count means "walk and see".
    let counted = count == u16::MAX || usize::from(count) == items.len();
    (counted && reader.is_empty()).then_some(items)
}

fn ziplist_entry(reader: &mut Reader) -> Option<Vec<u8>> {
    let first = reader.byte()?;
    let length = match first >> 6 {
        0 => usize::from(first & 0x3F),
        1 => usize::from(first & 0x3F) << 8 | usize::from(reader.byte()?),
        2 => u32::from_be_bytes(reader.array()?) as usize,
        _ => {
            return match first {
                0xC0 => Some(text(i64::from(i16::from_le_bytes(reader.array()?)))),
                0xD0 => Some(text(i64::from(i32::from_le_bytes(reader.array()?)))),
                0xE0 => Some(text(i64::from_le_bytes(reader.array()?))),
                0xF0 => Some(text(i24(reader.array()?))),
                0xFE => Some(text(i64::from(i8::from_le_bytes(reader.array()?)))),
                0xF1..=0xFD => Some(text(i64::from(first & 0x0F) - 1)),
                _ => None,
            };
        }
    };
    reader.take(length).map(<[u8]>::to_vec)
}

/// The entries of a listpack.
pub(super) fn listpack(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader::new(bytes);
    let size = u32::from_le_bytes(reader.array()?) as usize;
    let count = u16::from_le_bytes(reader.array()?);
    if size != bytes.len() {
        return None;
    }
    let mut items = Vec::new();
    loop {
        let first = reader.byte()?;
        if first == END {
            break;
        }
        let (item, entry_bytes) = listpack_entry(first, &mut reader)?;
        items.push(item);
        let backward_bytes = match entry_bytes {
            0..=127 => 1,
            128..16_384 => 2,
            16_384..2_097_152 => 3,
            2_097_152..268_435_456 => 4,
            _ => 5,
        };
        reader.take(backward_bytes)?;
    }
    let counted = count == u16::MAX || usize::from(count) == items.len();
    (counted && reader.is_empty()).then_some(items)
}

/// An entry, and how many bytes it took without the length that points backwards.
fn listpack_entry(first: u8, reader: &mut Reader) -> Option<(Vec<u8>, usize)> {
    let string = |reader: &mut Reader, length: usize, head: usize| {
        reader.take(length).map(|it| (it.to_vec(), head + length))
    };
    match first {
        0x00..=0x7F => Some((text(i64::from(first)), 1)),
        0x80..=0xBF => string(reader, usize::from(first & 0x3F), 1),
        0xC0..=0xDF => {
            let value = thirteen_bits(first, reader.byte()?);
            Some((text(i64::from(value)), 2))
        }
        0xE0..=0xEF => {
            let length = usize::from(first & 0x0F) << 8 | usize::from(reader.byte()?);
            string(reader, length, 2)
        }
        0xF0 => {
            let length = u32::from_le_bytes(reader.array()?) as usize;
            string(reader, length, 5)
        }
        0xF1 => Some((text(i64::from(i16::from_le_bytes(reader.array()?))), 3)),
        0xF2 => Some((text(i24(reader.array()?)), 4)),
        0xF3 => Some((text(i64::from(i32::from_le_bytes(reader.array()?))), 5)),
        0xF4 => Some((text(i64::from_le_bytes(reader.array()?)), 9)),
        _ => None,
    }
}

/// A signed integer of thirteen bits: five in the first byte, eight in the second.
fn thirteen_bits(first: u8, second: u8) -> i16 {
    let bits = i16::from(first & 0x1F) << 8 | i16::from(second);
    if bits < 1 << 12 { bits } else { bits - (1 << 13) }
}

/// The members of an intset.
pub(super) fn intset(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader::new(bytes);
    let width = u32::from_le_bytes(reader.array()?);
    let count = u32::from_le_bytes(reader.array()?) as usize;
    // First the width: a width of zero would back any count with no bytes at all.
    if !matches!(width, 2 | 4 | 8)
        || count.checked_mul(width as usize)?.checked_add(8)? != bytes.len()
    {
        return None;
    }
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        let value = match width {
            2 => i64::from(i16::from_le_bytes(reader.array()?)),
            4 => i64::from(i32::from_le_bytes(reader.array()?)),
            _ => i64::from_le_bytes(reader.array()?),
        };
        items.push(text(value));
    }
    Some(items)
}
