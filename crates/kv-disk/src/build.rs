//! Writes a table, row by row.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kumiko_kv::Error;

use crate::block::Builder;
use crate::bloom;
use crate::clears::Span;
use crate::files::{self, File, Files};
use crate::table::{self, Entry, Footer, HEADER_MAGIC, TABLE_FORMAT};

/// A block is ended when it reaches this size: what a single get reads, copies and checks, so one
/// page. The index stays near one hundredth of the rows.
const BLOCK_BYTES: usize = 4 << 10;
/// How much is handed to the file at once.
const WRITE_BYTES: usize = 1 << 20;

/// A table under way.
#[derive(Debug)]
pub(crate) struct Build {
    id: u64,
    file: Arc<dyn File>,
    path: PathBuf,
    block: Builder,
    /// Bytes not yet written, which go to `offset`.
    waiting: Vec<u8>,
    offset: u64,
    index: Vec<u8>,
    blocks: u32,
    hashes: Vec<u64>,
    min: Vec<u8>,
    max: Vec<u8>,
}

impl Build {
    pub(crate) fn new(files: &dyn Files, dir: &Path, id: u64) -> Result<Build, Error> {
        let path = dir.join(table::name(id));
        let file =
            files.create(&path).map_err(|error| files::error("cannot make", &path, &error))?;
        let mut waiting = HEADER_MAGIC.to_vec();
        waiting.extend_from_slice(&TABLE_FORMAT.to_le_bytes());
        waiting.extend_from_slice(&[0; 4]);
        Ok(Build {
            id,
            file,
            path,
            block: Builder::default(),
            waiting,
            offset: 0,
            index: Vec::new(),
            blocks: 0,
            hashes: Vec::new(),
            min: Vec::new(),
            max: Vec::new(),
        })
    }

    /// Adds a row; keys come in order, each once.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        assert!(self.hashes.is_empty() || self.max.as_slice() < key, "rows come in key order");
        if self.hashes.is_empty() {
            self.min = key.to_vec();
        }
        if self.block.is_empty() {
            let key_size = u16::try_from(key.len()).expect("keys are at most 10,000 bytes");
            self.index.extend_from_slice(&key_size.to_le_bytes());
            self.index.extend_from_slice(&self.position().to_le_bytes());
            self.index.extend_from_slice(key);
            self.blocks += 1;
        }
        self.block.push(key, value);
        self.hashes.push(bloom::hash(key));
        self.max.clear();
        self.max.extend_from_slice(key);
        if BLOCK_BYTES <= self.block.size() {
            self.block.finish(&mut self.waiting);
        }
        if WRITE_BYTES <= self.waiting.len() { self.write() } else { Ok(()) }
    }

    /// How large the file is so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.position() + self.block.size() as u64
    }

    /// Ends the table with its clears, which are disjoint and in order, and makes it durable.
    pub(crate) fn finish(mut self, clears: &[Span]) -> Result<Entry, Error> {
        if !self.block.is_empty() {
            self.block.finish(&mut self.waiting);
        }
        let index = self.position();
        let bytes = std::mem::take(&mut self.index);
        self.part(&bytes);
        let clears_at = self.position();
        self.part(&encode_clears(clears));
        let filter = self.position();
        let words = bloom::build(&self.hashes);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.part(&bytes);
        let rows = self.hashes.len() as u64;
        let (id, blocks, end) = (self.id, self.blocks, self.position());
        let footer = Footer { index, clears: clears_at, filter, end, rows, id, blocks };
        self.waiting.extend_from_slice(&footer.encode());
        self.write()?;
        self.file.sync().map_err(|error| files::error("cannot sync", &self.path, &error))?;
        if let (Some((start, _)), Some((_, end))) = (clears.first(), clears.last()) {
            if rows == 0 || *start < self.min {
                self.min.clone_from(start);
            }
            if self.max < *end {
                self.max.clone_from(end);
            }
        }
        let (bytes, clears) = (self.offset, clears.len() as u64);
        Ok(Entry { id, bytes, rows, clears, min: self.min, max: self.max })
    }

    fn position(&self) -> u64 {
        self.offset + self.waiting.len() as u64
    }

    fn part(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        self.waiting.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    }

    fn write(&mut self) -> Result<(), Error> {
        files::write_all(self.file.as_ref(), &self.waiting, self.offset)
            .map_err(|error| files::error("cannot write", &self.path, &error))?;
        self.offset += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

fn encode_clears(clears: &[Span]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (start, end) in clears {
        for bound in [start, end] {
            let size = u16::try_from(bound.len()).expect("bounds are at most 10,001 bytes");
            bytes.extend_from_slice(&size.to_le_bytes());
        }
        bytes.extend_from_slice(start);
        bytes.extend_from_slice(end);
    }
    bytes
}
