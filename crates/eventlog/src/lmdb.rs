//! LMDB data files, read and written without LMDB: just enough to exchange logs with vere.
//!
//! The file is an array of pages. Pages 0 and 1 are the meta pages, of which the one with the
//! higher transaction number counts. A database is a B+tree of branch and leaf pages; values that
//! do not fit into half a page lie in runs of overflow pages. All numbers are little-endian, as on
//! every machine that vere runs on. This is data format 1 (LMDB 0.9 and its main branch).
//!
//! ```text
//! page      number (8) pad (2) flags (2) lower (2) upper (2) | overflow: pages (4) for both
//! node      lo (2) hi (2) flags (2) key size (2) key, value | branch: number in lo hi flags
//! database  pad (4) flags (2) depth (2) branch, leaf, overflow pages, entries, root (8 each)
//! meta      magic (4) version (4) address (8) map size (8) free db, main db, last page (8) txn (8)
//! ```
//!
//! Reading never locks and never writes; nothing that the file says is believed without a check.

mod read;
mod write;

pub use read::{Cursor, Env, Value};
pub use write::{EnvWriter, TreeWriter};

use crate::Error;

/// The start of a meta page's content.
const MAGIC: u32 = 0xBEEF_C0DE;
/// The data format.
const FORMAT: u32 = 1;
/// The bytes before a page's content.
const PAGE_HEAD: usize = 16;
/// The bytes before a node's key.
const NODE_HEAD: usize = 8;
/// The root of an empty tree.
const NO_PAGE: u64 = u64::MAX;
/// No tree is deeper: LMDB's own cursors cannot follow one.
const DEPTH_MAX: usize = 32;

const PAGE_BRANCH: u16 = 0x01;
const PAGE_LEAF: u16 = 0x02;
const PAGE_OVERFLOW: u16 = 0x04;
const PAGE_META: u16 = 0x08;

const NODE_BIG: u16 = 0x01;
const NODE_TREE: u16 = 0x02;

/// The flag of a database whose keys are integers in the machine's order.
pub const INTEGER_KEY: u16 = 0x08;

/// Something that can be read at any place: a file, or bytes in memory.
pub trait ReadAt {
    /// How many bytes there are.
    fn size(&self) -> std::io::Result<u64>;
    /// Fills `buffer` from `offset` on; an error if there are not enough bytes.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()>;
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = start.checked_add(buffer.len()).and_then(|end| self.get(start..end));
        let short = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        buffer.copy_from_slice(part.ok_or_else(short)?);
        Ok(())
    }
}

/// Something that can be written at any place.
pub trait WriteAt {
    /// Writes `bytes` from `offset` on.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()>;
    /// Makes all of it durable. Nothing is written afterwards.
    fn finish(&mut self) -> std::io::Result<()>;
}

impl WriteAt for Vec<u8> {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).map_err(std::io::Error::other)?;
        if self.len() < start + bytes.len() {
            self.resize(start + bytes.len(), 0);
        }
        self[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a file says of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Db {
    pub(crate) pad: u32,
    pub(crate) flags: u16,
    pub(crate) depth: u16,
    pub(crate) branch_pages: u64,
    pub(crate) leaf_pages: u64,
    pub(crate) overflow_pages: u64,
    pub(crate) entries: u64,
    pub(crate) root: u64,
}

/// The bytes of a [`Db`].
const DB_BYTES: usize = 48;

impl Db {
    const EMPTY: Db = Db {
        pad: 0,
        flags: 0,
        depth: 0,
        branch_pages: 0,
        leaf_pages: 0,
        overflow_pages: 0,
        entries: 0,
        root: NO_PAGE,
    };

    /// How many entries the file claims to have.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    fn decode(bytes: &[u8]) -> Option<Db> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if bytes.len() != DB_BYTES {
            return None;
        }
        let head = word(0)?;
        Some(Db {
            pad: head as u32,
            flags: (head >> 32) as u16,
            depth: (head >> 48) as u16,
            branch_pages: word(8)?,
            leaf_pages: word(16)?,
            overflow_pages: word(24)?,
            entries: word(32)?,
            root: word(40)?,
        })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(DB_BYTES);
        bytes.extend_from_slice(&self.pad.to_le_bytes());
        bytes.extend_from_slice(&self.flags.to_le_bytes());
        bytes.extend_from_slice(&self.depth.to_le_bytes());
        let counts = [self.branch_pages, self.leaf_pages, self.overflow_pages, self.entries];
        for count in counts.into_iter().chain([self.root]) {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        bytes
    }
}

/// Whether a value goes to overflow pages: a node must leave room for another on its page.
fn is_big(page_size: usize, key: usize, value: u64) -> bool {
    let node_max = (((page_size - PAGE_HEAD) / 2) & !1) - 2;
    (node_max as u64) < (NODE_HEAD + key) as u64 + value
}

/// How many overflow pages a value takes.
fn overflow_pages(page_size: usize, value: u64) -> u64 {
    (PAGE_HEAD as u64 - 1 + value) / page_size as u64 + 1
}

fn broken(why: impl Into<String>) -> Error {
    Error::Pier(format!("the LMDB file is damaged: {}", why.into()))
}
