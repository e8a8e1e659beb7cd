//! Finds out whether what a transaction read has been written since it began.
//!
//! The engines of ours keep the ranges written by recent commits, newest last. A transaction that
//! read at version `v` loses if a commit after `v` wrote into one of its read ranges. Commits that
//! are older than every open transaction are forgotten.

use std::collections::{BTreeMap, VecDeque};

use crate::Range;

/// What one transaction read.
#[derive(Debug, Default)]
pub struct Reads {
    /// Single keys.
    pub keys: Vec<Vec<u8>>,
    /// Ranges.
    pub ranges: Vec<Range>,
}

/// What one commit wrote.
#[derive(Debug, Default)]
pub struct Writes {
    /// Single keys, sorted, each once.
    pub keys: Vec<Vec<u8>>,
    /// Ranges.
    pub ranges: Vec<Range>,
}

/// The writes of recent commits.
#[derive(Debug, Default)]
pub struct Log {
    /// Ascending by version.
    commits: VecDeque<(u64, Writes)>,
    /// Open transactions by the version they read at.
    open: BTreeMap<u64, usize>,
}

impl Log {
    /// A transaction that reads at `version` has begun.
    pub fn opened(&mut self, version: u64) {
        *self.open.entry(version).or_default() += 1;
    }

    /// A transaction that read at `version` has ended.
    pub fn closed(&mut self, version: u64) {
        let Some(count) = self.open.get_mut(&version) else { return };
        *count -= 1;
        if *count == 0 {
            self.open.remove(&version);
        }
        self.forget();
    }

    /// The oldest version that an open transaction reads at.
    pub fn oldest(&self) -> Option<u64> {
        self.open.keys().next().copied()
    }

    /// Whether a commit after `version` wrote what `reads` names.
    pub fn conflicts(&self, version: u64, reads: &Reads) -> bool {
        if reads.keys.is_empty() && reads.ranges.is_empty() {
            return false;
        }
        self.commits
            .iter()
            .rev()
            .take_while(|(committed, _)| version < *committed)
            .any(|(_, writes)| touches(writes, reads))
    }

    /// A commit at `version` wrote `writes`.
    pub fn committed(&mut self, version: u64, writes: Writes) {
        // With no other transaction open there is nobody whom these writes could concern: every
        // later transaction reads at this version or a newer one.
        if !self.open.is_empty() {
            self.commits.push_back((version, writes));
        }
        self.forget();
    }

    fn forget(&mut self) {
        let Some(oldest) = self.oldest() else {
            self.commits.clear();
            return;
        };
        while self.commits.front().is_some_and(|(version, _)| *version <= oldest) {
            self.commits.pop_front();
        }
    }
}

fn touches(writes: &Writes, reads: &Reads) -> bool {
    let key_in = |range: &Range| {
        let first = writes.keys.partition_point(|key| key.as_slice() < range.start.as_slice());
        writes.keys.get(first).is_some_and(|key| range.contains(key))
    };
    reads.keys.iter().any(|key| {
        writes.keys.binary_search(key).is_ok()
            || writes.ranges.iter().any(|range| range.contains(key))
    }) || reads
        .ranges
        .iter()
        .any(|read| key_in(read) || writes.ranges.iter().any(|written| written.overlaps(read)))
}
