//! A transaction: a snapshot, the writes on top of it, and what it read.

use std::sync::Arc;

use kumiko_kv::buffer::{self, Buffer, Write};
use kumiko_kv::conflict::Reads;
use kumiko_kv::{Committed, Error, Flow, Range, Read, Scan, Txn, range};

use crate::cursor::{Cursor, LevelCursor, MemCursor};
use crate::levels::View;
use crate::mem::Found;
use crate::merge::Merge;
use crate::store::Store;

/// One transaction on the disk engine.
#[derive(Debug)]
pub(crate) struct DiskTxn {
    store: Arc<Store>,
    snapshot: u64,
    view: Arc<View>,
    buffer: Buffer,
    reads: Reads,
    /// Whether the snapshot is open in the conflict log.
    open: bool,
}

impl Drop for DiskTxn {
    fn drop(&mut self) {
        if self.open {
            self.store.front().log.closed(self.snapshot);
        }
    }
}

impl DiskTxn {
    pub(crate) fn begin(store: &Arc<Store>) -> DiskTxn {
        let (snapshot, view) = {
            let mut front = store.front();
            let snapshot = front.published();
            front.log.opened(snapshot);
            (snapshot, Arc::clone(&front.view))
        };
        DiskTxn {
            store: Arc::clone(store),
            snapshot,
            view,
            buffer: Buffer::default(),
            reads: Reads::default(),
            open: true,
        }
    }

    fn stored(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(match self.view.get(key, self.snapshot, &self.store.cache)? {
            Found::Value(value) => Some(value),
            Found::Nothing | Found::Gone => None,
        })
    }

    /// The snapshot's rows in the range, without this transaction's writes.
    fn merge(&self, range: &Range, reverse: bool) -> Result<Merge, Error> {
        let (start, limit) =
            if reverse { (&range.end, &range.start) } else { (&range.start, &range.end) };
        let mems = std::iter::once(&self.view.active).chain(&self.view.frozen);
        let mut cursors: Vec<Cursor> = mems
            .filter(|mem| 0 < mem.bytes())
            .map(|mem| Cursor::Mem(MemCursor::new(mem, self.snapshot, reverse, limit)))
            .collect();
        for run in self.view.levels.runs() {
            let last = run.tables.last().map(|table| table.entry.max.as_slice());
            let outside = range.end <= run.tables[0].entry.min || last < Some(&range.start[..]);
            if !outside {
                let cursor = LevelCursor::new(run, &self.store.cache, reverse, true);
                cursors.push(Cursor::Level(cursor));
            }
        }
        Merge::new(cursors, reverse, start)
    }

    /// Shows the rows and says what is left.
    fn show(
        &self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error> {
        let mut merge = self.merge(&scan.range, scan.reverse)?;
        let clears: Vec<(&[u8], &[u8])> = self.buffer.clears().collect();
        let mut writes = self.buffer.writes_in(&scan.range);
        let mut next_write = || if scan.reverse { writes.next_back() } else { writes.next() };
        let mut write = next_write();
        let (mut rows, mut bytes) = (0, 0);
        let plain = !scan.reverse && clears.is_empty();
        loop {
            if plain && write.is_none() {
                // Nothing of our own is ahead: what is stored can be shown as it lies there.
                let mut rest = None;
                merge.run(&scan.range.end, &mut |key, value| {
                    rows += 1;
                    bytes += key.len() + value.len();
                    let enough = scan.rows_max <= rows || scan.bytes_max <= bytes;
                    if each(key, value) == Flow::Stop || enough {
                        rest = Some(left(scan, key));
                        return Flow::Stop;
                    }
                    Flow::Go
                })?;
                if let Some(rest) = rest {
                    return Ok(rest);
                }
            }
            settle(&mut merge, &clears, scan)?;
            let stored = merge.row().filter(|(key, _)| inside(key, scan));
            let side = match (&stored, &write) {
                (None, None) => return Ok(None),
                (Some((key, _)), Some((wkey, _))) => order(key, wkey, scan.reverse),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
            };
            let under = stored.and_then(|(_, value)| value).filter(|_| side.is_le());
            let sum;
            let (key, value) = if side.is_lt() {
                (stored.expect("a stored row comes next").0, under)
            } else {
                let (key, write) = write.expect("a written row comes next");
                let value = match write {
                    Write::Put(value) => Some(value.as_slice()),
                    Write::Del => None,
                    Write::Add(delta) => {
                        sum = buffer::add(under, *delta);
                        Some(sum.as_slice())
                    }
                };
                (key.as_slice(), value)
            };
            if let Some(value) = value {
                rows += 1;
                bytes += key.len() + value.len();
                let flow = each(key, value);
                if flow == Flow::Stop || scan.rows_max <= rows || scan.bytes_max <= bytes {
                    return Ok(left(scan, key));
                }
            }
            if side.is_le() {
                merge.advance()?;
            }
            if side.is_ge() {
                write = next_write();
            }
        }
    }
}

/// Takes the stored rows past removed keys and past what this transaction cleared.
fn settle(merge: &mut Merge, clears: &[(&[u8], &[u8])], scan: &Scan) -> Result<(), Error> {
    loop {
        let Some((key, value)) = merge.row() else { return Ok(()) };
        if !inside(key, scan) {
            return Ok(());
        }
        let at = clears.partition_point(|(start, _)| *start <= key);
        let cleared = at.checked_sub(1).map(|at| clears[at]).filter(|(_, end)| key < *end);
        match (cleared, value) {
            (Some((start, end)), _) => merge.seek(if scan.reverse { start } else { end })?,
            (None, None) => merge.advance()?,
            (None, Some(_)) => return Ok(()),
        }
    }
}

fn inside(key: &[u8], scan: &Scan) -> bool {
    if scan.reverse { scan.range.start.as_slice() <= key } else { key < scan.range.end.as_slice() }
}

fn order(a: &[u8], b: &[u8], reverse: bool) -> std::cmp::Ordering {
    if reverse { b.cmp(a) } else { a.cmp(b) }
}

/// What is left of the scan behind `key`.
fn left(scan: &Scan, key: &[u8]) -> Option<Range> {
    let mut left = scan.range.clone();
    if scan.reverse {
        left.end = key.to_vec();
    } else {
        left.start = range::after(key);
    }
    (!left.is_empty()).then_some(left)
}

impl Txn for DiskTxn {
    fn get(&mut self, key: &[u8], read: Read) -> Result<Option<Vec<u8>>, Error> {
        buffer::check_key(key)?;
        let written = if self.buffer.is_empty() { None } else { self.buffer.get(key) };
        // What this transaction wrote itself cannot be changed by another before its commit.
        let depends = !matches!(written, Some(Write::Put(_) | Write::Del));
        if depends && read == Read::Serializable {
            self.reads.keys.push(key.to_vec());
        }
        match written {
            Some(Write::Put(value)) => Ok(Some(value)),
            Some(Write::Del) => Ok(None),
            Some(Write::Add(delta)) => Ok(Some(buffer::add(self.stored(key)?.as_deref(), delta))),
            None => self.stored(key),
        }
    }

    fn visit(
        &mut self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error> {
        buffer::check_range(&scan.range)?;
        if scan.range.is_empty() {
            return Ok(None);
        }
        if scan.rows_max == 0 || scan.bytes_max == 0 {
            return Ok(Some(scan.range.clone()));
        }
        let rest = self.show(scan, each)?;
        if scan.read == Read::Serializable {
            let mut seen = scan.range.clone();
            match (&rest, scan.reverse) {
                (None, _) => {}
                (Some(rest), false) => seen.end.clone_from(&rest.start),
                (Some(rest), true) => seen.start.clone_from(&rest.end),
            }
            self.reads.ranges.push(seen);
        }
        Ok(rest)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.buffer.put(key, value)
    }

    fn del(&mut self, key: &[u8]) -> Result<(), Error> {
        self.buffer.del(key)
    }

    fn clear(&mut self, range: &Range) -> Result<(), Error> {
        self.buffer.clear(range)
    }

    fn add(&mut self, key: &[u8], delta: i64) -> Result<(), Error> {
        self.buffer.add(key, delta)
    }

    fn read_conflict(&mut self, range: &Range) -> Result<(), Error> {
        buffer::check_range(range)?;
        if !range.is_empty() {
            self.reads.ranges.push(range.clone());
        }
        Ok(())
    }

    fn write_conflict(&mut self, range: &Range) -> Result<(), Error> {
        self.buffer.conflict(range)
    }

    fn size(&self) -> usize {
        self.buffer.size()
    }

    fn commit(mut self: Box<Self>) -> Result<Committed, Error> {
        if self.buffer.is_empty() {
            return Ok(Committed { version: self.snapshot });
        }
        let adds = self.buffer.writes().iter().filter(|(_, it)| matches!(it, Write::Add(_)));
        for (key, _) in adds {
            // Brings the block into the cache, and an error out, before others wait for us.
            self.stored(key)?;
        }
        let DiskTxn { store, snapshot, reads, buffer, open, .. } = self.as_mut();
        let committed = store.commit(*snapshot, reads, buffer, open)?;
        if !store.threads {
            store.work_inline();
        }
        Ok(committed)
    }
}
