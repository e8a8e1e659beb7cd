//! The ranges that a memtable has cleared, by version.
//!
//! Overlapping clears are kept as disjoint fragments in key order, each with the versions that
//! cleared it, oldest first. So one lookup tells what a clear hides from a snapshot.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A range: its start, and the first key past it.
pub(crate) type Span = (Vec<u8>, Vec<u8>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fragment {
    end: Vec<u8>,
    versions: Vec<u64>,
}

/// Cleared ranges, by version.
#[derive(Debug, Default)]
pub(crate) struct Clears {
    fragments: BTreeMap<Vec<u8>, Fragment>,
}

impl Clears {
    /// Whether nothing was cleared.
    pub(crate) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// Clears the keys from `start` up to `end` at `version`. Forgets what no snapshot from `keep`
    /// on can tell from a newer clear.
    pub(crate) fn add(&mut self, start: &[u8], end: &[u8], version: u64, keep: u64) {
        if end <= start {
            return;
        }
        self.split(start);
        self.split(end);
        let mut cursor = start.to_vec();
        while cursor.as_slice() < end {
            let bounds = (Bound::Included(cursor.as_slice()), Bound::Excluded(end));
            let next = self.fragments.range_mut::<[u8], _>(bounds).next();
            match next {
                Some((at, fragment)) if *at == cursor => {
                    let stale = fragment.versions.iter().rposition(|it| *it <= keep).unwrap_or(0);
                    fragment.versions.drain(..stale);
                    fragment.versions.push(version);
                    cursor.clone_from(&fragment.end);
                }
                next => {
                    let gap = next.map_or_else(|| end.to_vec(), |(at, _)| at.clone());
                    let fragment = Fragment { end: gap.clone(), versions: vec![version] };
                    self.fragments.insert(std::mem::replace(&mut cursor, gap), fragment);
                }
            }
        }
    }

    /// Takes the clear of `version` back.
    pub(crate) fn undo(&mut self, start: &[u8], end: &[u8], version: u64) {
        if end <= start {
            return;
        }
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        let mut empty = Vec::new();
        for (at, fragment) in self.fragments.range_mut::<[u8], _>(bounds) {
            fragment.versions.retain(|it| *it != version);
            if fragment.versions.is_empty() {
                empty.push(at.clone());
            }
        }
        for at in empty {
            self.fragments.remove(&at);
        }
    }

    /// The newest clear of `key` that `snapshot` sees: its version and the fragment around it.
    pub(crate) fn covering(&self, key: &[u8], snapshot: u64) -> Option<(u64, &[u8], &[u8])> {
        let bounds = (Bound::Unbounded, Bound::Included(key));
        let (start, fragment) = self.fragments.range::<[u8], _>(bounds).next_back()?;
        if fragment.end.as_slice() <= key {
            return None;
        }
        let version = fragment.versions.iter().rev().find(|it| **it <= snapshot)?;
        Some((*version, start, &fragment.end))
    }

    /// The cleared ranges whatever their version, joined where they touch.
    pub(crate) fn joined(&self) -> Vec<Span> {
        let mut joined: Vec<Span> = Vec::new();
        for (start, fragment) in &self.fragments {
            match joined.last_mut() {
                Some((_, end)) if end == start => end.clone_from(&fragment.end),
                _ => joined.push((start.clone(), fragment.end.clone())),
            }
        }
        joined
    }

    /// Cuts the fragment around `at` in two.
    fn split(&mut self, at: &[u8]) {
        let bounds = (Bound::Unbounded, Bound::Excluded(at));
        let Some((_, fragment)) = self.fragments.range_mut::<[u8], _>(bounds).next_back() else {
            return;
        };
        if fragment.end.as_slice() <= at {
            return;
        }
        let right = fragment.clone();
        fragment.end = at.to_vec();
        self.fragments.insert(at.to_vec(), right);
    }
}

#[cfg(test)]
mod tests {
    use super::Clears;
    use kumiko_base::draw;

    /// Against the plain list of all clears.
    #[test]
    fn fragments_say_what_the_list_says() {
        draw::check("fragments_say_what_the_list_says", 500, |draw| {
            let mut clears = Clears::default();
            let mut list: Vec<(u8, u8, u64)> = Vec::new();
            let mut keep = 0;
            for version in 1..draw.below(12) + 2 {
                let (a, b) = (draw.below(9) as u8, draw.below(9) as u8);
                keep = keep.max(draw.below(version));
                clears.add(&[a], &[b], version, keep);
                if draw.one_in(5) {
                    clears.undo(&[a], &[b], version);
                } else {
                    list.push((a, b, version));
                }
            }
            for key in 0..9u8 {
                for snapshot in keep..14 {
                    let want = list
                        .iter()
                        .filter(|(a, b, at)| *a <= key && key < *b && *at <= snapshot)
                        .map(|(_, _, at)| *at)
                        .max();
                    let got = clears.covering(&[key], snapshot);
                    assert_eq!(got.map(|(at, _, _)| at), want, "key {key} at {snapshot}");
                    if let Some((_, start, end)) = got {
                        assert!(start <= &[key][..] && &[key][..] < end);
                    }
                }
            }
        });
    }
}
