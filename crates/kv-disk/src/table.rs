//! A table: an immutable file of rows in key order, and of cleared ranges.
//!
//! ```text
//! header (16)  "KUMIKOTB"  format u32  zero u32
//! blocks       see `block`
//! index        per block: first key's length u16  offset u64  first key; then crc u32
//! clears       per range: start's length u16  end's length u16  start  end; then crc u32
//! filter       u64 words, see `bloom`; then crc u32
//! footer (64)  index, clears and filter, each as offset u64; filter's end u64; rows u64;
//!              id u64; blocks u32; format u32; magic "KTBL"; crc u32
//! ```
//!
//! A table holds one state of each key: what older transactions see is in the memtables and tables
//! that they keep. A row of a table stands over the table's own clears; the clears hide what older
//! tables hold. Index, clears and filter are read when the table is first used, so opening a store
//! does not take longer the larger it is.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use kumiko_kv::Error;

use crate::block::Block;
use crate::bloom;
use crate::cache::Cache;
use crate::clears::Span;
use crate::files::{self, File, Files};
use crate::frame::{u32_at, u64_at};

/// The newest table format this program writes and reads.
pub(crate) const TABLE_FORMAT: u32 = 1;
pub(crate) const TABLE_HEADER: usize = 16;
pub(crate) const FOOTER: usize = 64;
pub(crate) const HEADER_MAGIC: &[u8; 8] = b"KUMIKOTB";
pub(crate) const FOOTER_MAGIC: &[u8; 4] = b"KTBL";

/// What the manifest says about a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    /// The file's size.
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// How many ranges it clears.
    pub(crate) clears: u64,
    /// The first key or start of a clear.
    pub(crate) min: Vec<u8>,
    /// The last key or end of a clear.
    pub(crate) max: Vec<u8>,
}

impl Entry {
    /// Whether some key could be in both spans. Touching counts, which is never wrong.
    pub(crate) fn overlaps(&self, min: &[u8], max: &[u8]) -> bool {
        self.min.as_slice() <= max && min <= self.max.as_slice()
    }
}

/// What a table keeps in memory once it is used.
#[derive(Debug)]
pub(crate) struct Index {
    keys: Vec<u8>,
    /// Where each first key ends in `keys`.
    ends: Vec<u32>,
    /// Where each block starts, and behind the last one where the index does.
    offsets: Vec<u64>,
    /// Disjoint, in order.
    pub(crate) clears: Vec<Span>,
    pub(crate) filter: Vec<u64>,
}

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) entry: Entry,
    files: Arc<dyn Files>,
    path: PathBuf,
    loaded: OnceLock<(Arc<dyn File>, Index)>,
    /// Whether the file goes away with the last user.
    dead: AtomicBool,
}

/// A cleared range's start and end.
type Around<'a> = (&'a [u8], &'a [u8]);

/// The name of a table's file.
pub(crate) fn name(id: u64) -> String {
    format!("{id:08}.table")
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.dead.load(Ordering::Relaxed) {
            // If it fails the file is removed when the store is opened next.
            let _ = self.files.remove(&self.path);
        }
    }
}

impl Table {
    pub(crate) fn new(files: &Arc<dyn Files>, dir: &Path, entry: Entry) -> Table {
        let path = dir.join(name(entry.id));
        let (loaded, dead) = (OnceLock::new(), AtomicBool::new(false));
        Table { entry, files: Arc::clone(files), path, loaded, dead }
    }

    /// Removes the file once nobody reads it any more.
    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// Index, clears and filter.
    pub(crate) fn index(&self) -> Result<&Index, Error> {
        Ok(&self.loaded()?.1)
    }

    /// Whether a clear of this table hides `key` in older tables.
    pub(crate) fn covering(&self, key: &[u8]) -> Result<Option<Around<'_>>, Error> {
        let clears = &self.index()?.clears;
        let at = clears.partition_point(|(start, _)| start.as_slice() <= key);
        let found = at.checked_sub(1).and_then(|at| clears.get(at));
        Ok(found.filter(|(_, end)| key < end.as_slice()).map(|(start, end)| (&start[..], &end[..])))
    }

    /// The block that holds `key` if any does, and its number.
    pub(crate) fn block_for(
        &self,
        key: &[u8],
        hash: u64,
        cache: &Cache,
    ) -> Result<Option<Arc<Block>>, Error> {
        let index = self.index()?;
        if !bloom::may_hold(&index.filter, hash) {
            return Ok(None);
        }
        match index.find(key).checked_sub(1) {
            None => Ok(None),
            Some(number) => self.block(number, cache).map(Some),
        }
    }

    /// Block `number`, from the cache or the disk.
    pub(crate) fn block(&self, number: usize, cache: &Cache) -> Result<Arc<Block>, Error> {
        if let Some(block) = cache.get(self.entry.id, number as u32) {
            return Ok(block);
        }
        let block = self.read(number, 1)?.pop().expect("one block was asked for");
        let block = Arc::new(block);
        cache.put(self.entry.id, number as u32, &block, false);
        Ok(block)
    }

    /// Reads `count` blocks at once, past the cache.
    pub(crate) fn read(&self, number: usize, count: usize) -> Result<Vec<Block>, Error> {
        let (file, index) = self.loaded()?;
        let start = index.offsets[number];
        let end = index.offsets[number + count];
        let mut bytes = vec![0; (end - start) as usize];
        files::read_exact(file.as_ref(), &mut bytes, start)
            .map_err(|error| files::error("cannot read", &self.path, &error))?;
        if count == 1 {
            let block = Block::decode(bytes).map_err(|why| self.damage(start, why))?;
            return Ok(vec![block]);
        }
        let mut blocks = Vec::with_capacity(count);
        for at in number..number + count {
            let from = (index.offsets[at] - start) as usize;
            let to = (index.offsets[at + 1] - start) as usize;
            let block = Block::decode(bytes[from..to].to_vec());
            blocks.push(block.map_err(|why| self.damage(index.offsets[at], why))?);
        }
        Ok(blocks)
    }

    /// An error that names this file and the place.
    pub(crate) fn damage(&self, offset: u64, why: &str) -> Error {
        Error::Corrupt(format!("{} is damaged at byte {offset}: {why}", self.path.display()))
    }

    fn loaded(&self) -> Result<&(Arc<dyn File>, Index), Error> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.load()?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    fn load(&self) -> Result<(Arc<dyn File>, Index), Error> {
        let say = |error| files::error("cannot read", &self.path, &error);
        let file = self.files.open(&self.path).map_err(say)?;
        let mut header = [0; TABLE_HEADER];
        files::read_exact(file.as_ref(), &mut header, 0).map_err(say)?;
        if !header.starts_with(HEADER_MAGIC) || u32_at(&header, 8) != Some(TABLE_FORMAT) {
            return Err(self.damage(0, "the table does not start with its mark"));
        }
        let footer_at = self.entry.bytes.saturating_sub(FOOTER as u64);
        let mut footer = [0; FOOTER];
        files::read_exact(file.as_ref(), &mut footer, footer_at).map_err(say)?;
        let footer = Footer::decode(&footer, self.entry.id, footer_at)
            .ok_or_else(|| self.damage(footer_at, "the footer is wrong"))?;
        let mut bytes = vec![0; (footer_at - footer.index) as usize];
        files::read_exact(file.as_ref(), &mut bytes, footer.index).map_err(say)?;
        let index = footer
            .decode_index(&bytes)
            .ok_or_else(|| self.damage(footer.index, "the index is wrong"))?;
        Ok((file, index))
    }
}

impl Index {
    /// How many blocks there are.
    pub(crate) fn blocks(&self) -> usize {
        self.ends.len()
    }

    /// How many blocks start at or before `key`.
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.first_key(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Where a block starts in the file.
    pub(crate) fn offset(&self, number: usize) -> u64 {
        self.offsets[number]
    }

    /// The first key of a block.
    pub(crate) fn first_key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.keys[start..self.ends[number] as usize]
    }
}

/// The end of a table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) index: u64,
    pub(crate) clears: u64,
    pub(crate) filter: u64,
    pub(crate) end: u64,
    pub(crate) rows: u64,
    pub(crate) id: u64,
    pub(crate) blocks: u32,
}

impl Footer {
    pub(crate) fn encode(&self) -> [u8; FOOTER] {
        let mut bytes = [0; FOOTER];
        let numbers = [self.index, self.clears, self.filter, self.end, self.rows, self.id];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[48..52].copy_from_slice(&self.blocks.to_le_bytes());
        bytes[52..56].copy_from_slice(&TABLE_FORMAT.to_le_bytes());
        bytes[56..60].copy_from_slice(FOOTER_MAGIC);
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; FOOTER], id: u64, footer_at: u64) -> Option<Footer> {
        let number = |index: usize| u64_at(bytes, 8 * index);
        let footer = Footer {
            index: number(0)?,
            clears: number(1)?,
            filter: number(2)?,
            end: number(3)?,
            rows: number(4)?,
            id: number(5)?,
            blocks: u32_at(bytes, 48)?,
        };
        let good = u32_at(bytes, 60) == Some(crc32fast::hash(&bytes[..60]))
            && &bytes[56..60] == FOOTER_MAGIC
            && u32_at(bytes, 52) == Some(TABLE_FORMAT)
            && footer.id == id
            && TABLE_HEADER as u64 <= footer.index
            && footer.index <= footer.clears
            && footer.clears <= footer.filter
            && footer.filter <= footer.end
            && footer.end == footer_at;
        good.then_some(footer)
    }

    /// `bytes` are the file from the index up to the footer.
    fn decode_index(&self, bytes: &[u8]) -> Option<Index> {
        let part = |from: u64, to: u64| {
            let part = bytes.get((from - self.index) as usize..(to - self.index) as usize)?;
            let end = part.len().checked_sub(4)?;
            (u32_at(part, end)? == crc32fast::hash(&part[..end])).then_some(&part[..end])
        };
        let (keys, ends, offsets) = self.decode_blocks(part(self.index, self.clears)?)?;
        let clears = decode_clears(part(self.clears, self.filter)?)?;
        let filter = part(self.filter, self.end)?;
        if !filter.len().is_multiple_of(64) {
            return None;
        }
        let filter = filter.chunks_exact(8).filter_map(|word| u64_at(word, 0)).collect();
        Some(Index { keys, ends, offsets, clears, filter })
    }

    fn decode_blocks(&self, mut bytes: &[u8]) -> Option<(Vec<u8>, Vec<u32>, Vec<u64>)> {
        let (mut keys, mut ends, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
        let mut least = TABLE_HEADER as u64;
        while !bytes.is_empty() {
            let size = usize::from(u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?));
            let offset = u64_at(bytes, 2)?;
            if offset < least || self.index <= offset {
                return None;
            }
            least = offset + 1;
            keys.extend_from_slice(bytes.get(10..10 + size)?);
            ends.push(u32::try_from(keys.len()).ok()?);
            offsets.push(offset);
            bytes = &bytes[10 + size..];
        }
        offsets.push(self.index);
        (ends.len() == self.blocks as usize).then_some((keys, ends, offsets))
    }
}

fn decode_clears(mut bytes: &[u8]) -> Option<Vec<Span>> {
    let mut clears = Vec::new();
    while !bytes.is_empty() {
        let size = |at: usize| {
            Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
        };
        let middle = 4 + size(0)?;
        let end = middle + size(2)?;
        clears.push((bytes.get(4..middle)?.to_vec(), bytes.get(middle..end)?.to_vec()));
        bytes = &bytes[end..];
    }
    Some(clears)
}
