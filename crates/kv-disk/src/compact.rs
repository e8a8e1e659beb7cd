//! Keeps the number of tables that a read must ask small.
//!
//! Level 0 is merged into level 1 when it has four tables; a deeper level that outgrows its bound
//! gives one table to the next. A table that nothing below overlaps only moves.

use std::sync::{Arc, PoisonError};

use kumiko_kv::Error;

use crate::build::Build;
use crate::clears::Span;
use crate::cursor::{Cursor, LevelCursor};
use crate::levels::{Levels, Run, overlapping};
use crate::manifest::DEEP;
use crate::merge::Merge;
use crate::store::Store;
use crate::table::{self, Entry, Table};

/// Level 0 is merged when it has this many tables.
const ZERO_TABLES: usize = 4;
/// While nothing is written it is merged when it has this many, so that reads find less to ask.
const ZERO_TABLES_IDLE: usize = 2;
/// Level 1 may be this many memtables large.
const LEVEL_ONE: u64 = 4;
/// Each level may be this many times larger than the one above.
const GROWTH: u64 = 8;

/// One step of work.
#[derive(Debug)]
enum Job {
    /// The table goes to a deeper level as it is.
    Move(Arc<Table>, usize),
    /// The runs, newest first, become tables of this level.
    Merge(Vec<Arc<Run>>, usize),
}

impl Store {
    /// Does the most urgent step, if any is due. Says whether it did.
    pub(crate) fn compact_one(&self, idle: bool) -> Result<bool, Error> {
        let _one = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        let job = {
            let mut tables = self.tables();
            let levels = Arc::clone(&self.front().view.levels);
            let Some(job) = pick(&levels, self.options.memtable_bytes as u64, idle) else {
                return Ok(false);
            };
            if let Job::Move(table, level) = job {
                let mut levels = Levels::clone(&levels);
                levels.remove(&[table.entry.id]);
                levels.insert(level, table);
                self.install(&mut tables, levels, None)?;
                return Ok(true);
            }
            tables.busy = span(&job);
            job
        };
        let Job::Merge(runs, to) = job else { return Ok(true) };
        let mut ids = Vec::new();
        let built = self.merge_tables(&runs, to, &mut ids);
        let installed = built.and_then(|entries| self.install_merged(&runs, to, entries));
        self.tables().busy = None;
        if installed.is_err() {
            for id in ids {
                let _ = self.files.remove(&self.dir.join(table::name(id)));
            }
        }
        installed.map(|()| true)
    }

    fn merge_tables(
        &self,
        runs: &[Arc<Run>],
        to: usize,
        ids: &mut Vec<u64>,
    ) -> Result<Vec<Entry>, Error> {
        let levels = Arc::clone(&self.front().view.levels);
        let clears = joined_clears(runs, &levels, to)?;
        let cursor = |run| Cursor::Level(LevelCursor::new(run, &self.cache, false, false));
        let mut merge = Merge::new(runs.iter().map(cursor).collect(), false, &[])?;
        let mut entries = Vec::new();
        let mut build: Option<Build> = None;
        // The clears of a table reach from its first key to the next table's.
        let mut from: Vec<u8> = Vec::new();
        while let Some((key, value)) = merge.row() {
            // A removed key is kept only while something below could show it again.
            if value.is_some() || levels.overlaps_from(to + 1, key, key) {
                let bytes_max = self.options.memtable_bytes as u64;
                if let Some(done) = build.take_if(|build| bytes_max <= build.bytes()) {
                    entries.push(done.finish(&clip(&clears, &from, Some(key)))?);
                    from = key.to_vec();
                }
                if build.is_none() {
                    build = Some(self.start_table(ids)?);
                }
                build.as_mut().expect("made above").push(key, value)?;
            }
            merge.advance()?;
        }
        let rest = clip(&clears, &from, None);
        if build.is_none() && !rest.is_empty() {
            build = Some(self.start_table(ids)?);
        }
        if let Some(build) = build {
            entries.push(build.finish(&rest)?);
        }
        Ok(entries)
    }

    fn install_merged(
        &self,
        runs: &[Arc<Run>],
        to: usize,
        entries: Vec<Entry>,
    ) -> Result<(), Error> {
        let mut tables = self.tables();
        let mut levels = Levels::clone(&self.front().view.levels);
        let inputs: Vec<&Arc<Table>> = runs.iter().flat_map(|run| &run.tables).collect();
        let ids: Vec<u64> = inputs.iter().map(|table| table.entry.id).collect();
        levels.remove(&ids);
        for entry in entries {
            levels.insert(to, Arc::new(Table::new(&self.files, &self.dir, entry)));
        }
        self.files
            .sync_dir(&self.dir)
            .map_err(|error| crate::files::error("cannot sync", &self.dir, &error))?;
        self.install(&mut tables, levels, None)?;
        for table in inputs {
            table.kill();
        }
        Ok(())
    }
}

/// The most urgent step.
fn pick(levels: &Levels, memtable_bytes: u64, idle: bool) -> Option<Job> {
    for table in levels.zero().collect::<Vec<_>>().into_iter().rev() {
        let mut others = levels.clone();
        others.remove(&[table.entry.id]);
        let to = others.place(&table.entry.min, &table.entry.max);
        if 0 < to {
            return Some(Job::Move(Arc::clone(table), to));
        }
    }
    let zero_tables = if idle { ZERO_TABLES_IDLE } else { ZERO_TABLES };
    if zero_tables <= levels.zero.len() {
        let mut runs = levels.zero.clone();
        let (min, max) = span_of(&runs)?;
        push_run(&mut runs, overlapping(levels.level(1), &min, &max));
        return Some(Job::Merge(runs, 1));
    }
    let mut bytes_max = LEVEL_ONE * memtable_bytes;
    for level in 1..DEEP {
        let tables = levels.level(level);
        if bytes_max < tables.iter().map(|table| table.entry.bytes).sum() {
            return pick_table(levels, level);
        }
        bytes_max *= GROWTH;
    }
    None
}

/// The table of a level that is cheapest to give to the next.
fn pick_table(levels: &Levels, level: usize) -> Option<Job> {
    let below =
        |table: &Table| overlapping(levels.level(level + 1), &table.entry.min, &table.entry.max);
    let cost = |table: &Arc<Table>| {
        let bytes: u64 = below(table).iter().map(|other| other.entry.bytes).sum();
        bytes * 1024 / table.entry.bytes.max(1)
    };
    let table = levels.level(level).iter().min_by_key(|table| cost(table))?;
    if below(table).is_empty() {
        return Some(Job::Move(Arc::clone(table), level + 1));
    }
    let mut runs = vec![Arc::new(Run::new(vec![Arc::clone(table)]))];
    push_run(&mut runs, below(table));
    Some(Job::Merge(runs, level + 1))
}

fn push_run(runs: &mut Vec<Arc<Run>>, tables: &[Arc<Table>]) {
    if !tables.is_empty() {
        runs.push(Arc::new(Run::new(tables.to_vec())));
    }
}

fn span(job: &Job) -> Option<Span> {
    match job {
        Job::Move(..) => None,
        Job::Merge(runs, _) => span_of(runs),
    }
}

fn span_of(runs: &[Arc<Run>]) -> Option<Span> {
    let tables = || runs.iter().flat_map(|run| &run.tables);
    let min = tables().map(|table| &table.entry.min).min()?;
    let max = tables().map(|table| &table.entry.max).max()?;
    Some((min.clone(), max.clone()))
}

/// The clears of all runs that hide something below level `to`, joined and in order.
fn joined_clears(runs: &[Arc<Run>], levels: &Levels, to: usize) -> Result<Vec<Span>, Error> {
    let mut clears = Vec::new();
    for table in runs.iter().flat_map(|run| &run.tables) {
        if 0 < table.entry.clears {
            clears.extend(table.index()?.clears.iter().cloned());
        }
    }
    clears.retain(|(start, end)| levels.overlaps_from(to + 1, start, end));
    clears.sort();
    let mut joined: Vec<Span> = Vec::new();
    for (start, end) in clears {
        match joined.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(std::mem::take(last)),
            _ => joined.push((start, end)),
        }
    }
    Ok(joined)
}

/// The parts of the clears from `from` up to `to`.
fn clip(clears: &[Span], from: &[u8], to: Option<&[u8]>) -> Vec<Span> {
    let mut clipped = Vec::new();
    for (start, end) in clears {
        let start = start.as_slice().max(from);
        let end = to.map_or(end.as_slice(), |to| end.as_slice().min(to));
        if start < end {
            clipped.push((start.to_vec(), end.to_vec()));
        }
    }
    clipped
}
