//! Writing an LMDB file from sorted entries, front to back, with little held in memory.
//!
//! Leaves are filled one after another; each level of branches keeps the pages that are not full
//! yet. The result is what LMDB itself leaves after one transaction: a file that it can open, read
//! and go on with.

use std::io;

use super::{
    Db, FORMAT, MAGIC, NODE_BIG, NODE_HEAD, NODE_TREE, PAGE_BRANCH, PAGE_HEAD, PAGE_LEAF,
    PAGE_META, PAGE_OVERFLOW, WriteAt, is_big, overflow_pages,
};
use crate::Error;
use crate::writer::fill;

/// The usual page of the machines that vere runs on.
const PAGE_BYTES: usize = 4096;
/// How large the file may grow before its user must say otherwise: what vere asks for.
const MAP_BYTES: u64 = 1 << 40;
/// The longest key that LMDB takes.
const KEY_BYTES_MAX: usize = 511;
/// What is copied at a time into overflow pages.
const COPY_BYTES: usize = 1 << 20;

/// An LMDB file that is being written.
pub struct EnvWriter<'a> {
    file: &'a mut dyn WriteAt,
    next_page: u64,
}

impl<'a> EnvWriter<'a> {
    /// Begins an empty file.
    pub fn new(file: &'a mut dyn WriteAt) -> EnvWriter<'a> {
        EnvWriter { file, next_page: 2 }
    }

    /// Begins a database. One is written at a time.
    pub fn tree(&mut self, flags: u16) -> TreeWriter<'_, 'a> {
        TreeWriter {
            env: self,
            db: Db { flags, ..Db::EMPTY },
            leaf: Page::new(PAGE_LEAF),
            first_key: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Ends the file: `databases` are its names, which must be sorted.
    pub fn finish(mut self, databases: &[(&[u8], Db)]) -> Result<(), Error> {
        let mut main = self.tree(0);
        for (name, db) in databases {
            main.put_node(name, NODE_TREE, &db.encode(), super::DB_BYTES as u64)?;
        }
        let main = main.finish()?;
        self.meta(0, Db::EMPTY, 1, 0)?;
        let last_page = self.next_page - 1;
        self.meta(1, main, last_page, 1)?;
        Ok(self.file.finish()?)
    }

    fn meta(&mut self, number: u64, main: Db, last_page: u64, txn: u64) -> Result<(), Error> {
        let mut content = Vec::new();
        content.extend_from_slice(&MAGIC.to_le_bytes());
        content.extend_from_slice(&FORMAT.to_le_bytes());
        content.extend_from_slice(&0u64.to_le_bytes());
        content.extend_from_slice(&MAP_BYTES.to_le_bytes());
        // The database of free pages says how large a page is.
        let free = Db { pad: PAGE_BYTES as u32, flags: super::INTEGER_KEY, ..Db::EMPTY };
        content.extend_from_slice(&free.encode());
        content.extend_from_slice(&main.encode());
        content.extend_from_slice(&last_page.to_le_bytes());
        content.extend_from_slice(&txn.to_le_bytes());
        let mut page = vec![0; PAGE_BYTES];
        page[..8].copy_from_slice(&number.to_le_bytes());
        page[10..12].copy_from_slice(&PAGE_META.to_le_bytes());
        page[PAGE_HEAD..PAGE_HEAD + content.len()].copy_from_slice(&content);
        Ok(self.file.write_at(number * PAGE_BYTES as u64, &page)?)
    }

    fn take_pages(&mut self, count: u64) -> u64 {
        let number = self.next_page;
        self.next_page += count;
        number
    }

    /// Writes a value into overflow pages and returns the first one.
    fn overflow(&mut self, size: u64, source: &mut dyn io::Read) -> Result<(u64, u64), Error> {
        let count = overflow_pages(PAGE_BYTES, size);
        let number = self.take_pages(count);
        let pages = u32::try_from(count).expect("a value has at most 4 GiB");
        let mut head = vec![0; PAGE_HEAD];
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[10..12].copy_from_slice(&PAGE_OVERFLOW.to_le_bytes());
        head[12..16].copy_from_slice(&pages.to_le_bytes());
        let start = number * PAGE_BYTES as u64;
        self.file.write_at(start, &head)?;
        let mut offset = start + PAGE_HEAD as u64;
        let mut left = size;
        let mut buffer = vec![0; size.min(COPY_BYTES as u64) as usize];
        while 0 < left {
            let part = left.min(buffer.len() as u64) as usize;
            if fill(source, &mut buffer[..part])? != part {
                return Err(Error::Io("the value is shorter than it was said to be".into()));
            }
            self.file.write_at(offset, &buffer[..part])?;
            offset += part as u64;
            left -= part as u64;
        }
        let end = start + count * PAGE_BYTES as u64;
        let rest = usize::try_from(end - offset).expect("less than a page");
        self.file.write_at(offset, &vec![0; rest])?;
        Ok((number, count))
    }
}

/// A branch or leaf page that is being filled.
struct Page {
    bytes: Vec<u8>,
    flags: u16,
    lower: usize,
    upper: usize,
}

impl Page {
    fn new(flags: u16) -> Page {
        Page { bytes: vec![0; PAGE_BYTES], flags, lower: PAGE_HEAD, upper: PAGE_BYTES }
    }

    fn is_empty(&self) -> bool {
        self.lower == PAGE_HEAD
    }

    /// Adds a node if there is room. `low` holds the size of the value, or a page's number.
    fn put(&mut self, low: u64, flags: u16, key: &[u8], rest: &[u8]) -> bool {
        let size = (NODE_HEAD + key.len() + rest.len()).next_multiple_of(2);
        if self.upper - self.lower < size + 2 {
            return false;
        }
        self.upper -= size;
        let at = self.upper;
        self.bytes[self.lower..self.lower + 2].copy_from_slice(&(at as u16).to_le_bytes());
        self.lower += 2;
        self.bytes[at..at + 4].copy_from_slice(&(low as u32).to_le_bytes());
        self.bytes[at + 4..at + 6].copy_from_slice(&flags.to_le_bytes());
        self.bytes[at + 6..at + 8].copy_from_slice(&(key.len() as u16).to_le_bytes());
        let at = at + NODE_HEAD;
        self.bytes[at..at + key.len()].copy_from_slice(key);
        self.bytes[at + key.len()..at + key.len() + rest.len()].copy_from_slice(rest);
        true
    }

    fn seal(mut self, number: u64) -> Vec<u8> {
        self.bytes[..8].copy_from_slice(&number.to_le_bytes());
        self.bytes[10..12].copy_from_slice(&self.flags.to_le_bytes());
        self.bytes[12..14].copy_from_slice(&(self.lower as u16).to_le_bytes());
        self.bytes[14..16].copy_from_slice(&(self.upper as u16).to_le_bytes());
        self.bytes
    }
}

/// One database that is being written. Keys come in the database's order, each once.
pub struct TreeWriter<'e, 'a> {
    env: &'e mut EnvWriter<'a>,
    db: Db,
    leaf: Page,
    /// The first key of the leaf.
    first_key: Vec<u8>,
    /// The children of each level of branches that are in no page yet: first key and number.
    levels: Vec<Vec<(Vec<u8>, u64)>>,
}

impl TreeWriter<'_, '_> {
    /// Adds an entry.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_from(key, value.len() as u64, &mut &*value)
    }

    /// Adds an entry whose value of `size` bytes comes from `source`.
    pub fn put_from(
        &mut self,
        key: &[u8],
        size: u64,
        source: &mut dyn io::Read,
    ) -> Result<(), Error> {
        if key.is_empty() || KEY_BYTES_MAX < key.len() || u64::from(u32::MAX) < size {
            let why = format!("LMDB takes no key of {} and value of {size} bytes", key.len());
            return Err(Error::Invalid(why));
        }
        if is_big(PAGE_BYTES, key.len(), size) {
            let (number, count) = self.env.overflow(size, source)?;
            self.db.overflow_pages += count;
            return self.put_node(key, NODE_BIG, &number.to_le_bytes(), size);
        }
        let mut value = vec![0; size as usize];
        if fill(source, &mut value)? != value.len() {
            return Err(Error::Io("the value is shorter than it was said to be".into()));
        }
        self.put_node(key, 0, &value, size)
    }

    fn put_node(&mut self, key: &[u8], flags: u16, rest: &[u8], size: u64) -> Result<(), Error> {
        if !self.leaf.put(size, flags, key, rest) {
            self.end_leaf()?;
            assert!(self.leaf.put(size, flags, key, rest), "an empty leaf has room for any entry");
        }
        if self.leaf.lower == PAGE_HEAD + 2 {
            self.first_key = key.to_vec();
        }
        self.db.entries += 1;
        Ok(())
    }

    fn end_leaf(&mut self) -> Result<(), Error> {
        let leaf = std::mem::replace(&mut self.leaf, Page::new(PAGE_LEAF));
        let number = self.env.take_pages(1);
        self.env.file.write_at(number * PAGE_BYTES as u64, &leaf.seal(number))?;
        self.db.leaf_pages += 1;
        let key = std::mem::take(&mut self.first_key);
        self.add_child(0, key, number)
    }

    fn add_child(&mut self, level: usize, key: Vec<u8>, number: u64) -> Result<(), Error> {
        if self.levels.len() == level {
            self.levels.push(Vec::new());
        }
        self.levels[level].push((key, number));
        // Two children always stay behind, so that the last page of a level has two as well:
        // LMDB takes no branch with a single child.
        let children = &self.levels[level];
        let full = fitting(children);
        if full + 2 <= children.len() {
            self.end_branch(level, full)?;
        }
        Ok(())
    }

    /// Writes the first `count` children of a level as a page.
    fn end_branch(&mut self, level: usize, count: usize) -> Result<(), Error> {
        let rest = self.levels[level].split_off(count);
        let children = std::mem::replace(&mut self.levels[level], rest);
        let mut page = Page::new(PAGE_BRANCH);
        for (index, (key, number)) in children.iter().enumerate() {
            let key = if index == 0 { &[][..] } else { key };
            let put = page.put(*number, (*number >> 32) as u16, key, &[]);
            assert!(put, "the children were counted to fit");
        }
        let number = self.env.take_pages(1);
        self.env.file.write_at(number * PAGE_BYTES as u64, &page.seal(number))?;
        self.db.branch_pages += 1;
        let (key, _) = children.into_iter().next().expect("a page has children");
        self.add_child(level + 1, key, number)
    }

    /// Ends the database.
    pub fn finish(mut self) -> Result<Db, Error> {
        if !self.leaf.is_empty() {
            self.end_leaf()?;
        }
        let mut level = 0;
        while level < self.levels.len() {
            let count = self.levels[level].len();
            let top = level + 1 == self.levels.len();
            if top && count == 1 {
                self.db.root = self.levels[level][0].1;
                self.db.depth = level as u16 + 1;
                break;
            }
            let full = fitting(&self.levels[level]);
            if full < count {
                // One too many for a page: the last page gets two.
                self.end_branch(level, count - 2)?;
            }
            let left = self.levels[level].len();
            self.end_branch(level, left)?;
            level += 1;
        }
        Ok(self.db)
    }
}

/// How many of the children fit into one page.
fn fitting(children: &[(Vec<u8>, u64)]) -> usize {
    let mut room = PAGE_BYTES - PAGE_HEAD;
    for (index, (key, _)) in children.iter().enumerate() {
        let key = if index == 0 { 0 } else { key.len() };
        let size = (NODE_HEAD + key).next_multiple_of(2) + 2;
        if room < size {
            return index;
        }
        room -= size;
    }
    children.len()
}
