//! Walks the rows of one source, in either direction: a memtable, a table, or a level of tables.
//!
//! A cursor stands on a row or past the end. `seek` goes to the first row at or after a key, or, in
//! reverse, to the last row before it.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use kumiko_kv::Error;

use crate::block::Block;
use crate::cache::Cache;
use crate::clears::Span;
use crate::levels::Run;
use crate::mem::{Mem, Slot};

/// The most blocks that are read ahead at once: about 128 KiB.
const AHEAD_MAX: usize = 32;
/// The most rows that are taken from a memtable at once.
const BATCH_MAX: usize = 256;

/// A place in one source.
#[derive(Debug)]
pub(crate) enum Cursor {
    Mem(MemCursor),
    Level(LevelCursor),
}

impl Cursor {
    /// The row under the cursor.
    pub(crate) fn row(&self) -> Option<(&[u8], Option<&[u8]>)> {
        match self {
            Cursor::Mem(cursor) => cursor.row(),
            Cursor::Level(cursor) => cursor.row(),
        }
    }

    /// The key under the cursor.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        match self {
            Cursor::Mem(cursor) => cursor.row().map(|(key, _)| key),
            Cursor::Level(cursor) => cursor.key(),
        }
    }

    /// Goes on to the next row.
    pub(crate) fn advance(&mut self) -> Result<(), Error> {
        match self {
            Cursor::Mem(cursor) => {
                cursor.advance();
                Ok(())
            }
            Cursor::Level(cursor) => cursor.advance(),
        }
    }

    /// Goes to `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<(), Error> {
        match self {
            Cursor::Mem(cursor) => {
                cursor.seek(key);
                Ok(())
            }
            Cursor::Level(cursor) => cursor.seek(key),
        }
    }

    /// Whether this source may hide rows of older ones by a clear.
    pub(crate) fn has_clears(&self) -> bool {
        match self {
            Cursor::Mem(cursor) => cursor.mem.has_clears(),
            Cursor::Level(cursor) => cursor.run.clears,
        }
    }

    /// The cleared range of this source around `key`.
    pub(crate) fn covering(&self, key: &[u8]) -> Result<Option<Span>, Error> {
        match self {
            Cursor::Mem(cursor) => Ok(cursor.mem.covering(key, cursor.snapshot)),
            Cursor::Level(cursor) => {
                let tables = &cursor.run.tables;
                let Some(table) = crate::levels::at(tables, key) else { return Ok(None) };
                let found = table.covering(key)?;
                Ok(found.map(|(start, end)| (start.to_vec(), end.to_vec())))
            }
        }
    }
}

/// A place in a memtable. Rows are taken in batches, so that no lock is held in between.
#[derive(Debug)]
pub(crate) struct MemCursor {
    mem: Arc<Mem>,
    snapshot: u64,
    reverse: bool,
    /// The other end of the scan.
    limit: Vec<u8>,
    batch: Vec<(Arc<[u8]>, Slot)>,
    index: usize,
    count: usize,
}

impl MemCursor {
    pub(crate) fn new(mem: &Arc<Mem>, snapshot: u64, reverse: bool, limit: &[u8]) -> MemCursor {
        MemCursor {
            mem: Arc::clone(mem),
            snapshot,
            reverse,
            limit: limit.to_vec(),
            batch: Vec::new(),
            index: 0,
            count: 16,
        }
    }

    fn row(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let (key, slot) = self.batch.get(self.index)?;
        Some((key, slot.as_deref()))
    }

    fn advance(&mut self) {
        self.index += 1;
        if self.index < self.batch.len() || self.batch.len() < self.count {
            return;
        }
        let last = self.batch.last().map(|(key, _)| Arc::clone(key));
        self.count = BATCH_MAX;
        if let Some(last) = last {
            self.fill(Bound::Excluded(&last));
        }
    }

    fn seek(&mut self, key: &[u8]) {
        self.fill(if self.reverse { Bound::Excluded(key) } else { Bound::Included(key) });
    }

    fn fill(&mut self, from: Bound<&[u8]>) {
        self.batch.clear();
        self.index = 0;
        let (Bound::Included(start) | Bound::Excluded(start)) = from else { return };
        let bounds = if self.reverse {
            if start <= self.limit.as_slice() {
                return;
            }
            (Bound::Included(self.limit.as_slice()), from)
        } else {
            if self.limit.as_slice() <= start {
                return;
            }
            (from, Bound::Excluded(self.limit.as_slice()))
        };
        self.mem.batch(bounds, self.reverse, self.snapshot, self.count, &mut self.batch);
    }
}

/// A place in tables that are disjoint and in key order; one table is the smallest level.
#[derive(Debug)]
pub(crate) struct LevelCursor {
    run: Arc<Run>,
    cache: Arc<Cache>,
    reverse: bool,
    /// Whether blocks are kept in the cache.
    keep: bool,
    /// Which table, which of its blocks, which of its rows.
    table: usize,
    number: usize,
    block: Option<Arc<Block>>,
    row: usize,
    /// Blocks that were read ahead, next one first.
    ahead: VecDeque<Arc<Block>>,
    /// How many to read the next time.
    ahead_count: usize,
}

impl LevelCursor {
    pub(crate) fn new(
        run: &Arc<Run>,
        cache: &Arc<Cache>,
        reverse: bool,
        keep: bool,
    ) -> LevelCursor {
        LevelCursor {
            run: Arc::clone(run),
            cache: Arc::clone(cache),
            reverse,
            keep,
            table: 0,
            number: 0,
            block: None,
            row: 0,
            ahead: VecDeque::new(),
            ahead_count: 1,
        }
    }

    fn row(&self) -> Option<(&[u8], Option<&[u8]>)> {
        Some(self.block.as_ref()?.row(self.row))
    }

    fn key(&self) -> Option<&[u8]> {
        Some(self.block.as_ref()?.key(self.row))
    }

    /// The block and the row in it that the cursor stands on.
    pub(crate) fn place(&self) -> Option<(&Arc<Block>, usize)> {
        Some((self.block.as_ref()?, self.row))
    }

    /// Goes forward to `row` of this block; past its last row, to the next block.
    pub(crate) fn go(&mut self, row: usize) -> Result<(), Error> {
        self.row = row;
        match &self.block {
            Some(block) if block.count() <= row => self.after_block(),
            _ => Ok(()),
        }
    }

    fn advance(&mut self) -> Result<(), Error> {
        let Some(block) = &self.block else { return Ok(()) };
        if self.reverse {
            if 0 < self.row {
                self.row -= 1;
                return Ok(());
            }
            self.before_block()
        } else {
            self.row += 1;
            if self.row < block.count() {
                return Ok(());
            }
            self.after_block()
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<(), Error> {
        self.block = None;
        self.ahead.clear();
        self.ahead_count = 1;
        if self.reverse { self.seek_before(key) } else { self.seek_from(key) }
    }

    fn seek_from(&mut self, key: &[u8]) -> Result<(), Error> {
        self.table = self.run.tables.partition_point(|table| table.entry.max.as_slice() < key);
        let Some(table) = self.run.tables.get(self.table) else { return Ok(()) };
        let index = table.index()?;
        if index.blocks() == 0 {
            return self.after_table();
        }
        self.number = index.find(key).saturating_sub(1);
        let block = self.load()?;
        self.row = block.find(key).0;
        let past = block.count() <= self.row;
        self.block = Some(block);
        if past { self.after_block() } else { Ok(()) }
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        let tables = self.run.tables.partition_point(|table| table.entry.min.as_slice() < key);
        let Some(at) = tables.checked_sub(1) else { return Ok(()) };
        self.table = at;
        let index = self.run.tables[at].index()?;
        // Blocks whose first key is below `key` may hold rows before it.
        let mut blocks = index.find(key);
        if 0 < blocks && index.first_key(blocks - 1) == key {
            blocks -= 1;
        }
        let Some(number) = blocks.checked_sub(1) else { return self.before_table() };
        self.number = number;
        let block = self.load()?;
        let rows = block.find(key).0;
        self.block = Some(block);
        match rows.checked_sub(1) {
            Some(row) => {
                self.row = row;
                Ok(())
            }
            None => self.before_block(),
        }
    }

    fn after_block(&mut self) -> Result<(), Error> {
        self.block = None;
        if self.number + 1 < self.run.tables[self.table].index()?.blocks() {
            self.number += 1;
            self.row = 0;
            self.block = Some(self.load()?);
            return Ok(());
        }
        self.after_table()
    }

    fn after_table(&mut self) -> Result<(), Error> {
        self.block = None;
        self.ahead.clear();
        while self.table + 1 < self.run.tables.len() {
            self.table += 1;
            if self.run.tables[self.table].index()?.blocks() == 0 {
                continue;
            }
            (self.number, self.row) = (0, 0);
            self.block = Some(self.load()?);
            return Ok(());
        }
        self.table = self.run.tables.len();
        Ok(())
    }

    fn before_block(&mut self) -> Result<(), Error> {
        self.block = None;
        if let Some(number) = self.number.checked_sub(1) {
            self.number = number;
            return self.stand_last();
        }
        self.before_table()
    }

    fn before_table(&mut self) -> Result<(), Error> {
        self.block = None;
        while let Some(before) = self.table.checked_sub(1) {
            self.table = before;
            self.ahead.clear();
            if let Some(last) = self.run.tables[before].index()?.blocks().checked_sub(1) {
                self.number = last;
                return self.stand_last();
            }
        }
        Ok(())
    }

    fn stand_last(&mut self) -> Result<(), Error> {
        let block = self.load()?;
        self.row = block.count().saturating_sub(1);
        self.block = (0 < block.count()).then_some(block);
        Ok(())
    }

    /// The block at the cursor's place, read with its neighbours if the scan seems to be long.
    fn load(&mut self) -> Result<Arc<Block>, Error> {
        if let Some(block) = self.ahead.pop_front() {
            return Ok(block);
        }
        let table = &self.run.tables[self.table];
        if let Some(block) = self.cache.get(table.entry.id, self.number as u32) {
            return Ok(block);
        }
        let count = if self.reverse {
            self.ahead_count.min(self.number + 1)
        } else {
            self.ahead_count.min(table.index()?.blocks() - self.number)
        };
        let first = if self.reverse { self.number + 1 - count } else { self.number };
        let blocks = table.read(first, count)?;
        for (at, block) in blocks.into_iter().enumerate() {
            let block = Arc::new(block);
            if self.keep {
                let spare = 4 < self.ahead_count;
                self.cache.put(table.entry.id, (first + at) as u32, &block, spare);
            }
            if self.reverse {
                self.ahead.push_front(block);
            } else {
                self.ahead.push_back(block);
            }
        }
        self.ahead_count = (self.ahead_count * 2).min(AHEAD_MAX);
        Ok(self.ahead.pop_front().expect("at least one block was read"))
    }
}
