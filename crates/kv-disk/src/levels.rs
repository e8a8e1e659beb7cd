//! The tables by level, and what a transaction looks at.
//!
//! Level 0 holds tables as memtables were written, newest first; their keys may overlap. On every
//! deeper level tables are disjoint and in key order. For each key, what a lower-numbered level
//! says is newer.

use std::sync::Arc;

use kumiko_kv::Error;

use crate::bloom;
use crate::cache::Cache;
use crate::manifest::DEEP;
use crate::mem::{Found, Mem};
use crate::table::Table;

/// Tables that are disjoint and in key order. Level 0 has one per table.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) tables: Vec<Arc<Table>>,
    /// Whether any table clears a range.
    pub(crate) clears: bool,
}

impl Run {
    pub(crate) fn new(tables: Vec<Arc<Table>>) -> Run {
        let clears = tables.iter().any(|table| 0 < table.entry.clears);
        Run { tables, clears }
    }
}

/// The tables of one state of the store.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    /// Level 0, newest first, each run one table.
    pub(crate) zero: Vec<Arc<Run>>,
    /// Levels 1 and deeper.
    pub(crate) deep: Vec<Arc<Run>>,
}

impl Default for Levels {
    fn default() -> Levels {
        Levels { zero: Vec::new(), deep: vec![Arc::default(); DEEP] }
    }
}

impl Levels {
    /// Every table with its level.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Arc<Table>)> {
        let deep = self.deep.iter().enumerate();
        let deep = deep.flat_map(|(at, run)| run.tables.iter().map(move |table| (at + 1, table)));
        self.zero().map(|table| (0, table)).chain(deep)
    }

    /// The tables of level 0, newest first.
    pub(crate) fn zero(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.zero.iter().flat_map(|run| &run.tables)
    }

    /// The tables of a deep level.
    pub(crate) fn level(&self, level: usize) -> &[Arc<Table>] {
        &self.deep[level - 1].tables
    }

    /// The runs, newest first, that are not empty.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.zero.iter().chain(&self.deep).filter(|run| !run.tables.is_empty())
    }

    /// Whether a table on level `from` (1 or deeper) or below could hold keys of the span.
    pub(crate) fn overlaps_from(&self, from: usize, min: &[u8], max: &[u8]) -> bool {
        (from..=DEEP).any(|level| !overlapping(self.level(level), min, max).is_empty())
    }

    /// The level for a new table: the deepest if no table could hold keys of its span, else 0.
    /// Somewhere in between would be right too, and give reads one more level to ask.
    pub(crate) fn place(&self, min: &[u8], max: &[u8]) -> usize {
        let zero = self.zero().any(|table| table.entry.overlaps(min, max));
        if zero || self.overlaps_from(1, min, max) { 0 } else { DEEP }
    }

    /// Puts a table on a level: on level 0 as the newest, on a deep one in its place.
    pub(crate) fn insert(&mut self, level: usize, table: Arc<Table>) {
        if level == 0 {
            self.zero.insert(0, Arc::new(Run::new(vec![table])));
            return;
        }
        let mut tables = self.level(level).to_vec();
        let at = tables.partition_point(|other| other.entry.min < table.entry.min);
        tables.insert(at, table);
        self.deep[level - 1] = Arc::new(Run::new(tables));
    }

    /// Takes the tables with these ids out.
    pub(crate) fn remove(&mut self, ids: &[u64]) {
        self.zero.retain(|run| !run.tables.iter().any(|table| ids.contains(&table.entry.id)));
        for run in &mut self.deep {
            if run.tables.iter().any(|table| ids.contains(&table.entry.id)) {
                let left = run.tables.iter().filter(|table| !ids.contains(&table.entry.id));
                *run = Arc::new(Run::new(left.cloned().collect()));
            }
        }
    }

    /// The newest state of `key` in the tables.
    pub(crate) fn get(&self, key: &[u8], cache: &Cache) -> Result<Found, Error> {
        let hash = bloom::hash(key);
        for run in self.runs() {
            let Some(table) = at(&run.tables, key) else { continue };
            let found = get_in(table, key, hash, cache)?;
            if found != Found::Nothing {
                return Ok(found);
            }
        }
        Ok(Found::Nothing)
    }
}

/// The only table of a deep level that can hold `key`.
pub(crate) fn at<'a>(tables: &'a [Arc<Table>], key: &[u8]) -> Option<&'a Arc<Table>> {
    let after = tables.partition_point(|table| table.entry.min.as_slice() <= key);
    let table = tables.get(after.checked_sub(1)?)?;
    (key <= table.entry.max.as_slice()).then_some(table)
}

/// The tables of a deep level that could hold keys from `min` up to `max`.
pub(crate) fn overlapping<'a>(
    tables: &'a [Arc<Table>],
    min: &[u8],
    max: &[u8],
) -> &'a [Arc<Table>] {
    let start = tables.partition_point(|table| table.entry.max.as_slice() < min);
    let end = tables.partition_point(|table| table.entry.min.as_slice() <= max);
    tables.get(start..end).unwrap_or_default()
}

fn get_in(table: &Table, key: &[u8], hash: u64, cache: &Cache) -> Result<Found, Error> {
    if let Some(block) = table.block_for(key, hash, cache)? {
        let (index, same) = block.find(key);
        if same {
            return Ok(match block.row(index).1 {
                Some(value) => Found::Value(value.to_vec()),
                None => Found::Gone,
            });
        }
    }
    let covered = 0 < table.entry.clears && table.covering(key)?.is_some();
    Ok(if covered { Found::Gone } else { Found::Nothing })
}

/// What a transaction reads: the memtables and tables there were when it began.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) active: Arc<Mem>,
    /// Newest first.
    pub(crate) frozen: Vec<Arc<Mem>>,
    pub(crate) levels: Arc<Levels>,
}

impl View {
    /// What `snapshot` sees of `key`.
    pub(crate) fn get(&self, key: &[u8], snapshot: u64, cache: &Cache) -> Result<Found, Error> {
        for mem in std::iter::once(&self.active).chain(&self.frozen) {
            let found = mem.get(key, snapshot);
            if found != Found::Nothing {
                return Ok(found);
            }
        }
        self.levels.get(key, cache)
    }
}
