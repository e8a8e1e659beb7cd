//! Writes a frozen memtable out as tables.
//!
//! Usually that is one table on level 0. A long run of new keys between which no table lies, such
//! as the tail of an event log, becomes a table of its own and goes as deep as nothing is in its
//! way: it is not rewritten again by later compactions.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use kumiko_kv::Error;

use crate::build::Build;
use crate::clears::Span;
use crate::levels::Levels;
use crate::mem::{Mem, Rows};
use crate::store::Store;
use crate::table::{self, Entry, Table};
use crate::wal;

/// A run of new keys shorter than this fraction of a memtable is not worth a table of its own.
const RUN_FRACTION: usize = 64;

/// Rows of a memtable that go into one table.
#[derive(Debug, Default, PartialEq, Eq)]
struct Segment {
    rows: usize,
    /// Whether no table lies between its keys.
    free: bool,
}

impl Store {
    /// Writes the oldest frozen memtable out, if its log is complete. Says whether it did.
    pub(crate) fn flush_one(&self) -> Result<bool, Error> {
        let _one = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let (mem, levels) = {
            let front = self.front();
            let Some(mem) = front.view.frozen.last() else { return Ok(false) };
            if self.wal_id.load(Ordering::Acquire) <= mem.log() {
                return Ok(false);
            }
            (Arc::clone(mem), Arc::clone(&front.view.levels))
        };
        let mut ids = Vec::new();
        let built = self.write_tables(&mem, &levels, &mut ids);
        let installed = built.and_then(|entries| self.install_flushed(&mem, entries));
        if installed.is_err() {
            for id in ids {
                let _ = self.files.remove(&self.dir.join(table::name(id)));
            }
        }
        installed?;
        for log in &mem.logs {
            // A log that stays is removed when the store is opened next.
            let _ = self.files.remove(&self.dir.join(wal::name(*log)));
        }
        Ok(true)
    }

    fn write_tables(
        &self,
        mem: &Mem,
        levels: &Levels,
        ids: &mut Vec<u64>,
    ) -> Result<Vec<Entry>, Error> {
        let rows = mem.read();
        let taken = taken(levels);
        let mut clears = rows.clears.joined();
        clears.retain(|(start, end)| taken.iter().any(|(min, max)| start <= max && min <= end));
        let segments = if clears.is_empty() {
            plan(&rows, &taken, self.options.memtable_bytes / RUN_FRACTION)
        } else {
            vec![Segment { rows: usize::MAX, free: false }]
        };
        let mut newest = rows.newest();
        let mut entries = Vec::new();
        for segment in segments {
            let mut build: Option<Build> = None;
            for (key, value) in newest.by_ref().take(segment.rows) {
                // Where no table has the key there is nothing to remove.
                if value.is_none() && gap(&taken, key).is_some() {
                    continue;
                }
                if build.is_none() {
                    build = Some(self.start_table(ids)?);
                }
                build.as_mut().expect("made above").push(key, value)?;
            }
            if build.is_none() && !clears.is_empty() {
                build = Some(self.start_table(ids)?);
            }
            if let Some(build) = build {
                entries.push(build.finish(&clears)?);
            }
        }
        Ok(entries)
    }

    /// Starts a table and notes its id.
    pub(crate) fn start_table(&self, ids: &mut Vec<u64>) -> Result<Build, Error> {
        let id = self.next_id();
        ids.push(id);
        Build::new(self.files.as_ref(), &self.dir, id)
    }

    fn install_flushed(&self, mem: &Arc<Mem>, entries: Vec<Entry>) -> Result<(), Error> {
        let mut tables = self.tables();
        let mut levels = Levels::clone(&self.front().view.levels);
        let mut dead: Vec<Arc<Table>> = Vec::new();
        for entry in entries {
            let table = Arc::new(Table::new(&self.files, &self.dir, entry));
            if 0 < table.entry.clears {
                dead.extend(covered(&levels, &table)?);
                let ids: Vec<u64> = dead.iter().map(|table| table.entry.id).collect();
                levels.remove(&ids);
            }
            let (min, max) = (&table.entry.min, &table.entry.max);
            let busy = tables.busy.as_ref().is_some_and(|(from, to)| from <= max && min <= to);
            let level = if busy { 0 } else { levels.place(min, max) };
            levels.insert(level, table);
        }
        self.files
            .sync_dir(&self.dir)
            .map_err(|error| crate::files::error("cannot sync", &self.dir, &error))?;
        self.install(&mut tables, levels, Some(mem))?;
        for table in dead {
            table.kill();
        }
        Ok(())
    }
}

/// The older tables of which a new table's clears leave nothing.
fn covered(levels: &Levels, table: &Table) -> Result<Vec<Arc<Table>>, Error> {
    let mut gone = Vec::new();
    for (_, other) in levels.all() {
        let (min, max) = (&other.entry.min, other.entry.max.as_slice());
        let around = table.covering(min)?;
        if around.is_some_and(|(_, end)| max < end) {
            gone.push(Arc::clone(other));
        }
    }
    Ok(gone)
}

/// The spans of all tables, joined where they overlap, in order.
fn taken(levels: &Levels) -> Vec<Span> {
    let mut spans: Vec<Span> =
        levels.all().map(|(_, it)| (it.entry.min.clone(), it.entry.max.clone())).collect();
    spans.sort();
    let mut joined: Vec<Span> = Vec::new();
    for (min, max) in spans {
        match joined.last_mut() {
            Some((_, last)) if min <= *last => *last = max.max(std::mem::take(last)),
            _ => joined.push((min, max)),
        }
    }
    joined
}

/// Between which spans `key` lies, unless it is inside one.
fn gap(taken: &[Span], key: &[u8]) -> Option<usize> {
    let before = taken.partition_point(|(_, max)| max.as_slice() < key);
    match taken.get(before) {
        Some((min, _)) if min.as_slice() <= key => None,
        _ => Some(before),
    }
}

/// Cuts the rows so that long runs inside one gap stand alone.
fn plan(rows: &Rows, taken: &[Span], run_bytes_min: usize) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut run = (None, 0, 0);
    let mut end = |(place, rows, bytes): (Option<usize>, usize, usize)| {
        let free = place.is_some() && run_bytes_min <= bytes;
        match segments.last_mut() {
            Some(last) if !last.free && !free => last.rows += rows,
            _ if 0 < rows => segments.push(Segment { rows, free }),
            _ => {}
        }
    };
    for (key, value) in rows.newest() {
        let place = gap(taken, key);
        if place != run.0 {
            end(std::mem::replace(&mut run, (place, 0, 0)));
        }
        run.1 += 1;
        run.2 += key.len() + value.map_or(0, <[u8]>::len);
    }
    end(run);
    segments
}
