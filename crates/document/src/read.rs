//! Runs a plan, page by page.
//!
//! A cursor holds no transaction: each page is read in whatever transaction the caller has at the
//! time, so a long result outlives any of them.

use std::collections::{HashSet, VecDeque};

use kumiko_base::Value;
use kumiko_kv::{Range, Read, Scan, Txn};

use crate::catalog::Collection;
use crate::keys::{self, Place};
use crate::plan::{Access, Plan, Segment};
use crate::{Error, documents, index, order};

/// How many rows are taken from the engine at a time.
const PAGE_ROWS: usize = 256;
/// About how many bytes are taken from the engine at a time.
const PAGE_BYTES: usize = 1_000_000;

#[derive(Debug)]
enum Step {
    Rows(Range),
    Numbers(Range, Range),
    /// Entries of the index with this place in the collection's list.
    Entries(usize, Range),
}

/// A plan under way.
#[derive(Debug)]
pub struct Cursor {
    collection: Collection,
    steps: VecDeque<Step>,
    reverse: bool,
    covered: bool,
    read: Read,
    seen: Option<HashSet<Place>>,
    ready: VecDeque<Value>,
    /// How many index entries were read.
    pub keys_examined: u64,
    /// How many documents were read.
    pub documents_examined: u64,
}

impl Cursor {
    /// Begins to run `plan`.
    pub fn new(collection: &Collection, plan: &Plan, read: Read) -> Cursor {
        let mut steps = VecDeque::new();
        add_steps(collection, &plan.access, plan.reverse, &mut steps);
        Cursor {
            collection: collection.clone(),
            steps,
            reverse: plan.reverse,
            covered: plan.covered,
            read,
            seen: plan.repeats.then(HashSet::new),
            ready: VecDeque::new(),
            keys_examined: 0,
            documents_examined: 0,
        }
    }

    /// The collection it reads.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// The next document, or `None` at the end.
    pub fn next(&mut self, txn: &mut dyn Txn) -> Result<Option<Value>, Error> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Ok(Some(document));
            }
            let Some(step) = self.steps.pop_front() else { return Ok(None) };
            self.fill(txn, step)?;
        }
    }

    fn fill(&mut self, txn: &mut dyn Txn, step: Step) -> Result<(), Error> {
        match step {
            Step::Rows(range) => {
                let page = txn.scan(&self.page(range, PAGE_ROWS))?;
                if let Some(rest) = page.rest {
                    self.steps.push_front(Step::Rows(rest));
                }
                for (key, bytes) in page.rows {
                    if self.is_fresh(&key) {
                        let document =
                            documents::join(txn, &self.collection, &key, &bytes, self.read)?;
                        self.documents_examined += 1;
                        self.ready.push_back(document);
                    }
                }
                Ok(())
            }
            Step::Numbers(integers, others) => self.merge(txn, integers, others),
            Step::Entries(n, range) => self.entries(txn, n, range),
        }
    }

    /// Whether the document of this key comes up for the first time, as far as that is in question.
    fn is_fresh(&mut self, key: &[u8]) -> bool {
        let Some(seen) = &mut self.seen else { return true };
        self.collection.prefixes().place(key).is_none_or(|place| seen.insert(place))
    }

    fn page(&self, range: Range, rows_max: usize) -> Scan {
        let mut scan = Scan::new(range).rows(rows_max).bytes(PAGE_BYTES);
        scan.reverse = self.reverse;
        scan.read = self.read;
        scan
    }

    /// Numbers that are not integers are rare as ids. Without any, the integers are in order as
    /// they are; otherwise all of them are sorted at once.
    fn merge(&mut self, txn: &mut dyn Txn, integers: Range, others: Range) -> Result<(), Error> {
        if others.is_empty() || txn.scan(&self.page(others.clone(), 1))?.rows.is_empty() {
            self.steps.push_front(Step::Rows(integers));
            return Ok(());
        }
        let mut documents = Vec::new();
        for range in [integers, others] {
            let mut left = Some(range).filter(|it| !it.is_empty());
            while let Some(range) = left {
                let page = txn.scan(&self.page(range, PAGE_ROWS))?;
                left = page.rest;
                for (key, bytes) in page.rows {
                    if !self.is_fresh(&key) {
                        continue;
                    }
                    documents.push(documents::join(
                        txn,
                        &self.collection,
                        &key,
                        &bytes,
                        self.read,
                    )?);
                }
            }
        }
        self.documents_examined += documents.len() as u64;
        let null = Value::Null;
        documents.sort_by(|a, b| {
            let [a, b] = [a, b].map(|it| documents::id(it).unwrap_or(&null));
            let order = order::compare(a, b);
            if self.reverse { order.reverse() } else { order }
        });
        self.ready.extend(documents);
        Ok(())
    }

    fn entries(&mut self, txn: &mut dyn Txn, n: usize, range: Range) -> Result<(), Error> {
        let page = txn.scan(&self.page(range, PAGE_ROWS))?;
        if let Some(rest) = page.rest {
            self.steps.push_front(Step::Entries(n, rest));
        }
        let index = &self.collection.indexes[n];
        let prefix = self.collection.index_prefix(&index.name).len();
        for (key, value) in page.rows {
            self.keys_examined += 1;
            let damaged = || Error::Corrupt(format!("an entry of index {} is damaged", index.name));
            let rest = key.get(prefix..).ok_or_else(damaged)?;
            let (parts, place) = keys::split_entry(rest).ok_or_else(damaged)?;
            if self.seen.as_mut().is_some_and(|seen| !seen.insert(place.clone())) {
                continue;
            }
            if self.covered
                && let Some(document) = index::covered(index, parts, &place, &value)
            {
                self.ready.push_back(document);
                continue;
            }
            // An entry without its document does not happen in one transaction; `check` reports it.
            if let Some(document) = documents::at(txn, &self.collection, &place, self.read)? {
                self.documents_examined += 1;
                self.ready.push_back(document);
            }
        }
        Ok(())
    }
}

fn add_steps(collection: &Collection, access: &Access, reverse: bool, steps: &mut VecDeque<Step>) {
    let mut next: Vec<Step> = match access {
        Access::All => collection.prefixes().all().into_iter().map(Step::Rows).collect(),
        Access::Ids(segments) => segments
            .iter()
            .map(|segment| match segment {
                Segment::Rows(range) => Step::Rows(range.clone()),
                Segment::Numbers(a, b) => Step::Numbers(a.clone(), b.clone()),
            })
            .collect(),
        Access::Index { name, ranges, .. } => {
            let n = collection.indexes.iter().position(|it| it.name == *name);
            let n = n.expect("the plan was made for this collection");
            ranges.iter().map(|range| Step::Entries(n, range.clone())).collect()
        }
        Access::Union(accesses) => {
            for access in accesses {
                add_steps(collection, access, reverse, steps);
            }
            return;
        }
    };
    if reverse {
        next.reverse();
    }
    steps.extend(next);
}
