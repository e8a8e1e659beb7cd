//! Joins sources into one sequence of rows: for each key the newest source's row, unless a clear of
//! a newer source hides it.
//!
//! While one source is ahead of all others it is followed without asking them, so a scan over one
//! large table costs one comparison per row however many small sources there are.

use std::sync::Arc;

use kumiko_kv::{Error, Flow};

use crate::clears::Span;
use crate::cursor::Cursor;

/// Rows of many sources in key order.
#[derive(Debug)]
pub(crate) struct Merge {
    /// Newest first.
    cursors: Vec<Cursor>,
    reverse: bool,
    /// The sources with clears.
    clearing: Vec<usize>,
    /// The source with the row to show, and the one that comes next.
    best: Option<usize>,
    second: Option<usize>,
}

impl Merge {
    /// Joins `cursors`, newest first, from `start` on, or, in reverse, from before it.
    pub(crate) fn new(
        mut cursors: Vec<Cursor>,
        reverse: bool,
        start: &[u8],
    ) -> Result<Merge, Error> {
        let mut clearing = Vec::new();
        for (index, cursor) in cursors.iter_mut().enumerate() {
            if cursor.has_clears() {
                clearing.push(index);
            }
            cursor.seek(start)?;
        }
        let mut merge = Merge { cursors, reverse, clearing, best: None, second: None };
        merge.settle()?;
        Ok(merge)
    }

    /// The row to show now. A removed key is a row without a value.
    pub(crate) fn row(&self) -> Option<(&[u8], Option<&[u8]>)> {
        self.cursors[self.best?].row()
    }

    /// Goes on to the next key.
    pub(crate) fn advance(&mut self) -> Result<(), Error> {
        let Some(best) = self.best else { return Ok(()) };
        self.cursors[best].advance()?;
        if self.clearing.is_empty() && self.still_first(best) {
            return Ok(());
        }
        self.settle()
    }

    /// Shows the rows ahead for as long as they come from one level and need no comparison: whole
    /// blocks that end before every other source and before `limit`. Stands on the first row that
    /// was not shown, or on the one that `each` stopped at. Forward only.
    pub(crate) fn run(
        &mut self,
        limit: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<(), Error> {
        assert!(!self.reverse, "a run goes forward");
        let Some(best) = self.best.filter(|_| self.clearing.is_empty()) else { return Ok(()) };
        let mut moved = false;
        loop {
            let second = self.second.and_then(|second| self.cursors[second].key());
            let bound = second.map_or(limit, |key| key.min(limit));
            let Cursor::Level(cursor) = &self.cursors[best] else { return Ok(()) };
            let Some((block, first)) = cursor.place() else { return self.settle() };
            let block = Arc::clone(block);
            let whole = block.key(block.count() - 1) < bound;
            let end = if whole { block.count() } else { block.find(bound).0 };
            let mut row = first;
            while row < end {
                let (key, value) = block.row(row);
                if value.is_none_or(|value| each(key, value) == Flow::Stop) {
                    break;
                }
                row += 1;
            }
            let Cursor::Level(cursor) = &mut self.cursors[best] else { return Ok(()) };
            cursor.go(row)?;
            moved |= first < row;
            if row < block.count() {
                // Another source, or the limit, comes next: the order has to be found again.
                return if moved && end <= row { self.settle() } else { Ok(()) };
            }
        }
    }

    /// Goes to `key`; in reverse, to the last row before it.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<(), Error> {
        for cursor in &mut self.cursors {
            let passed = match cursor.key() {
                None => true,
                Some(at) if self.reverse => at < key,
                Some(at) => key <= at,
            };
            if !passed {
                cursor.seek(key)?;
            }
        }
        self.settle()
    }

    /// Whether the row of `best` comes strictly before every other source's.
    fn still_first(&self, best: usize) -> bool {
        let Some(key) = self.cursors[best].key() else { return false };
        let Some(other) = self.second.and_then(|second| self.cursors[second].key()) else {
            return self.second.is_none();
        };
        if self.reverse { other < key } else { key < other }
    }

    /// Finds the next row that is to be shown.
    fn settle(&mut self) -> Result<(), Error> {
        loop {
            self.choose();
            let Some(best) = self.best else { return Ok(()) };
            if let Some((start, end)) = self.hidden(best)? {
                // Everything this source has in the range is hidden; other sources decide for
                // themselves.
                let to = if self.reverse { start } else { end };
                self.cursors[best].seek(&to)?;
                continue;
            }
            return self.skip_older(best);
        }
    }

    /// Chooses the first source by key, the newest among equals, and the one after it.
    fn choose(&mut self) {
        let (mut best, mut second): (Option<usize>, Option<usize>) = (None, None);
        for (index, cursor) in self.cursors.iter().enumerate() {
            let Some(key) = cursor.key() else { continue };
            let before = |other: Option<usize>| match other.and_then(|it| self.cursors[it].key()) {
                None => true,
                Some(other) if self.reverse => other < key,
                Some(other) => key < other,
            };
            if before(best) {
                second = best;
                best = Some(index);
            } else if before(second) {
                second = Some(index);
            }
        }
        (self.best, self.second) = (best, second);
    }

    /// The clear of a newer source that hides the row of source `best`.
    fn hidden(&self, best: usize) -> Result<Option<Span>, Error> {
        for index in self.clearing.iter().take_while(|index| **index < best) {
            let Some(key) = self.cursors[best].key() else { return Ok(None) };
            if let Some(found) = self.cursors[*index].covering(key)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Takes older sources past the key that `best` shows.
    fn skip_older(&mut self, best: usize) -> Result<(), Error> {
        let same = |a: &Cursor, b: &Cursor| a.key() == b.key();
        let second = self.second.is_some_and(|it| same(&self.cursors[it], &self.cursors[best]));
        if !second {
            return Ok(());
        }
        for index in best + 1..self.cursors.len() {
            if same(&self.cursors[index], &self.cursors[best]) {
                self.cursors[index].advance()?;
            }
        }
        // The order among the others has changed; the first stays first.
        self.choose();
        Ok(())
    }
}
