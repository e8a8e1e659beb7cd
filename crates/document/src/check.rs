//! Proves that indexes and documents say the same.

use std::collections::BTreeSet;

use kumiko_kv::{Range, Read, Scan, Txn};

use crate::catalog::{self, Collection, State};
use crate::keys;
use crate::{Error, documents, index};

/// What a check of one collection found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many documents there are.
    pub documents: u64,
    /// How many index entries there are.
    pub entries: u64,
    /// What is wrong, one line each.
    pub faults: Vec<String>,
}

/// Reads every document and every entry of a collection and compares them, both ways. Entries of an
/// index that is being built need not be complete.
pub fn collection(txn: &mut dyn Txn, collection: &Collection) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut wanted: Vec<BTreeSet<Vec<u8>>> = vec![BTreeSet::new(); collection.indexes.len()];
    for range in collection.prefixes().all() {
        let mut left = Some(range);
        while let Some(range) = left {
            let page = txn.scan(&Scan::new(range).snapshot().rows(500).bytes(2_000_000))?;
            left = page.rest;
            for (key, bytes) in &page.rows {
                report.documents += 1;
                document(txn, collection, key, bytes, &mut wanted, &mut report)?;
            }
        }
    }
    for (index, wanted) in collection.indexes.iter().zip(wanted) {
        let prefix = collection.index_prefix(&index.name);
        let mut found = BTreeSet::new();
        let mut left = Some(Range::prefix(&prefix));
        while let Some(range) = left {
            let page = txn.scan(&Scan::new(range).snapshot().rows(2_000))?;
            left = page.rest;
            found.extend(page.rows.into_iter().map(|(key, _)| key));
        }
        report.entries += found.len() as u64;
        let fault = |what: &str, n: usize| format!("index {}: {n} {what}", index.name);
        let stray = found.difference(&wanted).count();
        if 0 < stray {
            report.faults.push(fault("entries without their document", stray));
        }
        let missing = wanted.difference(&found).count();
        if 0 < missing && index.state == State::Ready {
            report.faults.push(fault("documents without their entry", missing));
        }
    }
    Ok(report)
}

fn document(
    txn: &mut dyn Txn,
    collection: &Collection,
    key: &[u8],
    bytes: &[u8],
    wanted: &mut [BTreeSet<Vec<u8>>],
    report: &mut Report,
) -> Result<(), Error> {
    let document = match documents::join(txn, collection, key, bytes, Read::Snapshot) {
        Ok(document) => document,
        Err(Error::Corrupt(why)) => {
            report.faults.push(format!("a document cannot be read: {why}"));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let Some(place) = collection.prefixes().place(key) else { return Ok(()) };
    let named = documents::id(&document).and_then(crate::Place::of);
    if named.as_ref() != Ok(&place) {
        report.faults.push("a document lies under another id than its own".into());
    }
    for (index, wanted) in collection.indexes.iter().zip(wanted) {
        let prefix = collection.index_prefix(&index.name);
        let (entries, multikey) = index::entries(index, &place, &document)?;
        if multikey.iter().zip(&index.multikey).any(|(met, noted)| *met && !*noted)
            && index.state == State::Ready
        {
            report.faults.push(format!("index {}: an array was not noted", index.name));
        }
        for parts in entries.keys() {
            wanted.insert(keys::entry(&prefix, parts, &place)?);
        }
    }
    Ok(())
}

/// Checks every collection of every database; each report with its namespace.
pub fn all(txn: &mut dyn Txn) -> Result<Vec<(String, Report)>, Error> {
    let mut reports = Vec::new();
    for database in catalog::databases(txn)? {
        for it in catalog::collections(txn, &database)? {
            reports.push((it.namespace(), collection(txn, &it)?));
        }
    }
    Ok(reports)
}
