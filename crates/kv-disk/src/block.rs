//! A block of a table: rows in key order, and where each one starts.
//!
//! ```text
//! row      key length u16  value length + 1 u32, or 0 if the key is removed  key  value
//! offsets  one u32 per row
//! count    u32
//! crc      u32, over all of the above
//! ```
//!
//! Keys are whole, so a search needs no unpacking and a scan hands out slices of the block. All
//! bounds are checked once, when the block comes from the disk.

use std::cmp::Ordering;

use crate::frame::u32_at;

const ROW_HEADER: usize = 6;

/// A block in memory.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    offsets: usize,
    count: usize,
}

impl Block {
    /// Takes a block as stored, or says what is wrong with it.
    pub(crate) fn decode(mut stored: Vec<u8>) -> Result<Block, &'static str> {
        let end = stored.len().checked_sub(4).ok_or("a block is too short")?;
        if u32_at(&stored, end) != Some(crc32fast::hash(&stored[..end])) {
            return Err("a block's checksum is wrong");
        }
        stored.truncate(end);
        let bytes = stored;
        let wrong = "a block's rows are out of bounds";
        let last = end.checked_sub(4).ok_or(wrong)?;
        let count = u32_at(&bytes, last).ok_or(wrong)? as usize;
        let size = count.checked_mul(4).ok_or(wrong)?;
        let offsets = last.checked_sub(size).ok_or(wrong)?;
        for index in 0..count {
            let at = u32_at(&bytes, offsets + 4 * index).ok_or(wrong)? as usize;
            let row = bytes.get(at..offsets).ok_or(wrong)?;
            let (key, value) = sizes(row).ok_or(wrong)?;
            if row.len() < ROW_HEADER + key + value.unwrap_or(0) {
                return Err(wrong);
            }
        }
        Ok(Block { bytes, offsets, count })
    }

    /// How many rows there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// About how much memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + 64
    }

    /// The key of row `index`.
    pub(crate) fn key(&self, index: usize) -> &[u8] {
        let row = self.row_bytes(index);
        let size = usize::from(u16::from_le_bytes([row[0], row[1]]));
        &row[ROW_HEADER..ROW_HEADER + size]
    }

    /// The key and the value of row `index`; no value if the key is removed.
    pub(crate) fn row(&self, index: usize) -> (&[u8], Option<&[u8]>) {
        let row = self.row_bytes(index);
        let (key, value) = sizes(row).expect("checked when the block was decoded");
        let start = ROW_HEADER + key;
        (&row[ROW_HEADER..start], value.map(|size| &row[start..start + size]))
    }

    /// The first row whose key is not below `key`, and whether it is that key.
    pub(crate) fn find(&self, key: &[u8]) -> (usize, bool) {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.key(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return (middle, true),
                Ordering::Greater => high = middle,
            }
        }
        (low, false)
    }

    fn row_bytes(&self, index: usize) -> &[u8] {
        let at = self.offsets + 4 * index;
        let start = u32_at(&self.bytes, at).expect("checked when the block was decoded") as usize;
        &self.bytes[start..self.offsets]
    }
}

/// The sizes of a row's key and value.
fn sizes(row: &[u8]) -> Option<(usize, Option<usize>)> {
    let key = usize::from(u16::from_le_bytes(row.get(..2)?.try_into().ok()?));
    let value = u32_at(row, 2)? as usize;
    Some((key, value.checked_sub(1)))
}

/// Makes a block, row by row.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
}

impl Builder {
    /// Adds a row; keys come in order.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.offsets.push(self.bytes.len() as u32);
        let key_size = u16::try_from(key.len()).expect("keys are at most 10,000 bytes");
        let value_size = value.map_or(0, |value| value.len() as u32 + 1);
        self.bytes.extend_from_slice(&key_size.to_le_bytes());
        self.bytes.extend_from_slice(&value_size.to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
    }

    /// The size so far.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + 4 * self.offsets.len()
    }

    /// Whether there is no row yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Appends the block to `out` and starts a new one.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for offset in &self.offsets {
            out.extend_from_slice(&offset.to_le_bytes());
        }
        out.extend_from_slice(&(self.offsets.len() as u32).to_le_bytes());
        let crc = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
        self.bytes.clear();
        self.offsets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Builder};
    use kumiko_base::draw;

    #[test]
    fn rows_come_back_and_are_found() {
        let mut builder = Builder::default();
        builder.push(b"a", Some(b"1"));
        builder.push(b"c", None);
        builder.push(b"e", Some(b""));
        let mut bytes = Vec::new();
        builder.finish(&mut bytes);
        let block = Block::decode(bytes).unwrap();
        assert_eq!(block.row(0), (&b"a"[..], Some(&b"1"[..])));
        assert_eq!(block.row(1), (&b"c"[..], None));
        assert_eq!(block.row(2), (&b"e"[..], Some(&b""[..])));
        let rows = [("0", 0, false), ("a", 0, true), ("b", 1, false), ("e", 2, true)];
        for (key, index, same) in rows {
            assert_eq!(block.find(key.as_bytes()), (index, same), "{key}");
        }
        assert_eq!(block.find(b"f"), (3, false));
    }

    /// Mutated bytes with a checksum made good again reach the bounds checks.
    #[test]
    fn foreign_bytes_do_no_harm() {
        let mut builder = Builder::default();
        for key in 0..5u8 {
            builder.push(&[key; 3], Some(&[key; 9]));
        }
        let mut good = Vec::new();
        builder.finish(&mut good);
        draw::check("foreign_bytes_do_no_harm", 3000, |draw| {
            let mut bytes = if draw.one_in(3) { draw.bytes(60) } else { good.clone() };
            for _ in 0..draw.below(4) {
                if !bytes.is_empty() {
                    let at = draw.index(bytes.len());
                    bytes[at] = draw.bits() as u8;
                }
            }
            if 4 <= bytes.len() && draw.one_in(2) {
                let end = bytes.len() - 4;
                let crc = crc32fast::hash(&bytes[..end]).to_le_bytes();
                bytes[end..].copy_from_slice(&crc);
            }
            if let Ok(block) = Block::decode(bytes) {
                for index in 0..block.count() {
                    let _ = block.row(index);
                }
                let _ = block.find(b"k");
            }
        });
    }
}
