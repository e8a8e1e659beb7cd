//! Finds out whether what a transaction read has been written since it began.
//!
//! The engines of ours keep what recent commits wrote, newest last. A transaction that read at
//! version `v` loses if a commit after `v` wrote into one of its read ranges. Commits that are
//! older than every open transaction are forgotten.
//!
//! Each commit is compared at the price of the smaller side, so that a long transaction with many
//! reads costs no more than the keys written meanwhile.

use std::collections::{BTreeMap, VecDeque};

use crate::Range;

/// What one transaction read.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    /// Single keys.
    pub keys: Vec<Vec<u8>>,
    /// Ranges.
    pub ranges: Vec<Range>,
}

/// What one commit wrote.
#[derive(Clone, Debug, Default)]
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
        let newest = self.commits.back().map_or(0, |(committed, _)| *committed);
        if newest <= version || (reads.keys.is_empty() && reads.ranges.is_empty()) {
            return false;
        }
        let first = self.commits.partition_point(|(committed, _)| *committed <= version);
        let sorted = Sorted::of(reads);
        self.commits.range(first..).any(|(_, writes)| sorted.touched_by(writes))
    }

    /// A commit at `version`, which is not older than the last one, wrote `writes`.
    pub fn committed(&mut self, version: u64, writes: Writes) {
        let newest = self.commits.back().map_or(0, |(committed, _)| *committed);
        assert!(newest <= version, "versions never fall");
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

/// What was read, in order: keys sorted, ranges sorted and joined where they meet.
struct Sorted<'a> {
    keys: Vec<&'a [u8]>,
    ranges: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Sorted<'a> {
    fn of(reads: &'a Reads) -> Sorted<'a> {
        let mut keys: Vec<&[u8]> = reads.keys.iter().map(Vec::as_slice).collect();
        keys.sort_unstable();
        keys.dedup();
        let bounds = |range: &'a Range| (range.start.as_slice(), range.end.as_slice());
        let filled = reads.ranges.iter().filter(|range| !range.is_empty());
        let mut all: Vec<(&[u8], &[u8])> = filled.map(bounds).collect();
        all.sort_unstable();
        let mut ranges: Vec<(&[u8], &[u8])> = Vec::with_capacity(all.len());
        for (start, end) in all {
            match ranges.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(*last),
                _ => ranges.push((start, end)),
            }
        }
        Sorted { keys, ranges }
    }

    fn touched_by(&self, writes: &Writes) -> bool {
        let by_keys = if self.keys.len() + self.ranges.len() < writes.keys.len() {
            self.keys.iter().any(|key| contains(&writes.keys, key))
                || self.ranges.iter().any(|(start, end)| any_between(&writes.keys, start, end))
        } else {
            writes.keys.iter().any(|key| contains(&self.keys, key) || self.range_has(key))
        };
        by_keys || writes.ranges.iter().any(|range| self.meets(range))
    }

    fn range_has(&self, key: &[u8]) -> bool {
        let after = self.ranges.partition_point(|(start, _)| *start <= key);
        after.checked_sub(1).is_some_and(|index| key < self.ranges[index].1)
    }

    fn meets(&self, range: &Range) -> bool {
        if range.is_empty() {
            return false;
        }
        let (start, end) = (range.start.as_slice(), range.end.as_slice());
        let first = self.ranges.partition_point(|(_, read_end)| *read_end <= start);
        any_between(&self.keys, start, end)
            || self.ranges.get(first).is_some_and(|(read_start, _)| *read_start < end)
    }
}

fn contains<K: AsRef<[u8]>>(sorted: &[K], key: &[u8]) -> bool {
    sorted.binary_search_by(|probe| probe.as_ref().cmp(key)).is_ok()
}

/// Whether one of the sorted keys lies in the range.
fn any_between<K: AsRef<[u8]>>(sorted: &[K], start: &[u8], end: &[u8]) -> bool {
    let first = sorted.partition_point(|key| key.as_ref() < start);
    sorted.get(first).is_some_and(|key| key.as_ref() < end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::draw::{self, Draw};

    fn key(draw: &mut Draw) -> Vec<u8> {
        vec![draw.below(12) as u8]
    }

    fn range(draw: &mut Draw) -> Range {
        Range::new(key(draw), key(draw))
    }

    /// The rule itself, without any order or index.
    fn plainly(writes: &Writes, reads: &Reads) -> bool {
        let key_read = |key: &Vec<u8>| {
            reads.keys.contains(key) || reads.ranges.iter().any(|it| it.contains(key))
        };
        let range_read = |range: &Range| {
            !range.is_empty()
                && (reads.keys.iter().any(|key| range.contains(key))
                    || reads.ranges.iter().any(|it| !it.is_empty() && it.overlaps(range)))
        };
        writes.keys.iter().any(key_read) || writes.ranges.iter().any(range_read)
    }

    #[test]
    fn conflicts_follow_the_plain_rule() {
        draw::check("conflicts_follow_the_plain_rule", 20_000, |draw| {
            let mut log = Log::default();
            log.opened(0);
            let mut commits = Vec::new();
            for version in 1..=draw.below(5) {
                let mut keys: Vec<Vec<u8>> = (0..draw.below(6)).map(|_| key(draw)).collect();
                keys.sort();
                keys.dedup();
                let ranges = (0..draw.below(2)).map(|_| range(draw)).collect();
                let writes = Writes { keys, ranges };
                commits.push((version, writes.clone()));
                log.committed(version, writes);
            }
            let reads = Reads {
                keys: (0..draw.below(3)).map(|_| key(draw)).collect(),
                ranges: (0..draw.below(3)).map(|_| range(draw)).collect(),
            };
            let version = draw.below(5);
            let expected =
                commits.iter().any(|(at, writes)| version < *at && plainly(writes, &reads));
            assert_eq!(log.conflicts(version, &reads), expected);
        });
    }

    #[test]
    fn commits_are_kept_as_long_as_somebody_may_ask() {
        let wrote = || Writes { keys: vec![b"a".to_vec()], ranges: Vec::new() };
        let reads = Reads { keys: vec![b"a".to_vec()], ranges: Vec::new() };
        let mut log = Log::default();
        log.committed(1, wrote());
        assert_eq!(log.commits.len(), 0, "nobody is open");
        log.opened(1);
        log.opened(1);
        log.committed(2, wrote());
        log.opened(2);
        log.committed(3, wrote());
        assert_eq!((log.commits.len(), log.oldest()), (2, Some(1)));
        assert!(log.conflicts(1, &reads) && log.conflicts(2, &reads) && !log.conflicts(3, &reads));
        log.closed(1);
        assert_eq!(log.commits.len(), 2, "one reader of version 1 is left");
        log.closed(1);
        assert_eq!((log.commits.len(), log.oldest()), (1, Some(2)));
        log.closed(2);
        assert_eq!((log.commits.len(), log.oldest()), (0, None));
    }
}
