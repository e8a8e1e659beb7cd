//! Walks a store and reports what is wrong: checksums, order, bounds, filters, levels.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use kumiko_kv::Error;

use crate::bloom;
use crate::manifest::Manifest;
use crate::recover;
use crate::store::Store;
use crate::table::Table;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tables looked at.
    pub tables: usize,
    /// Rows in them, removed keys included.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Logs looked at; the one that is written now is not among them.
    pub logs: usize,
    /// Commits in them.
    pub commits: u64,
    /// What is wrong, each with its file. Empty if all is well.
    pub problems: Vec<String>,
}

/// Walks everything. Commits go on meanwhile; no table is made or merged.
pub(crate) fn check(store: &Store) -> Report {
    let _no_flush = store.flushing.lock().unwrap_or_else(PoisonError::into_inner);
    let _no_merge = store.compacting.lock().unwrap_or_else(PoisonError::into_inner);
    let mut report = Report::default();
    let view = std::sync::Arc::clone(&store.front().view);
    for (_, table) in view.levels.all() {
        report.tables += 1;
        report.bytes += table.entry.bytes;
        if let Err(error) = check_table(table, &mut report) {
            report.problems.push(error.to_string());
        }
    }
    for (at, run) in view.levels.deep.iter().enumerate() {
        for pair in run.tables.windows(2) {
            if pair[1].entry.min < pair[0].entry.max {
                let ids = (pair[0].entry.id, pair[1].entry.id);
                report.problems.push(format!("tables {ids:?} of level {} overlap", at + 1));
            }
        }
    }
    check_manifest(store, &mut report);
    let written = store.wal_id.load(Ordering::Acquire);
    let mems = view.frozen.iter().rev().chain([&view.active]);
    for id in mems.flat_map(|mem| &mem.logs).filter(|id| **id < written) {
        report.logs += 1;
        let mut commits = 0;
        let log = recover::read(store.files.as_ref(), &store.dir, *id, &mut |_| {
            commits += 1;
            Ok(())
        });
        report.commits += commits;
        match log {
            Ok(log) if log.next.is_some() => {}
            Ok(_) => report.problems.push(format!("log {id} has lost its end")),
            Err(error) => report.problems.push(error.to_string()),
        }
    }
    report
}

fn check_manifest(store: &Store, report: &mut Report) {
    let levels = std::sync::Arc::clone(&store.front().view.levels);
    match Manifest::load(store.files.as_ref(), &store.dir) {
        Ok(manifest) => {
            let listed = manifest.tables.iter().map(|(level, entry)| (*level, entry));
            if !listed.eq(levels.all().map(|(level, table)| (level, &table.entry))) {
                report.problems.push("the manifest lists other tables than are open".into());
            }
        }
        Err(error) => report.problems.push(error.to_string()),
    }
}

fn check_table(table: &Table, report: &mut Report) -> Result<(), Error> {
    let index = table.index()?;
    let entry = &table.entry;
    let mut before: Option<Vec<u8>> = None;
    let mut rows = 0;
    for number in 0..index.blocks() {
        let at = index.offset(number);
        for block in table.read(number, 1)? {
            if block.count() == 0 || block.key(0) != index.first_key(number) {
                return Err(table.damage(at, "a block starts with another key than the index says"));
            }
            for row in 0..block.count() {
                let key = block.key(row);
                if before.as_deref().is_some_and(|before| key <= before) {
                    return Err(table.damage(at, "keys are out of order"));
                }
                if key < entry.min.as_slice() || entry.max.as_slice() < key {
                    return Err(table.damage(at, "a key is outside the table's span"));
                }
                if !bloom::may_hold(&index.filter, bloom::hash(key)) {
                    return Err(table.damage(at, "the filter does not know a key"));
                }
                before = Some(key.to_vec());
                rows += 1;
            }
        }
    }
    let clears = &index.clears;
    let ordered = clears.iter().all(|(start, end)| start < end)
        && clears.windows(2).all(|pair| pair[0].1 < pair[1].0);
    if rows != entry.rows || clears.len() as u64 != entry.clears || !ordered {
        return Err(table.damage(0, "rows or clears are other than the manifest says"));
    }
    report.rows += rows;
    Ok(())
}
