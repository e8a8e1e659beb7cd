//! Half-open ranges of keys.

/// The keys from `start` up to, and without, `end`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The first key that may be in the range.
    pub start: Vec<u8>,
    /// The first key that is past the range.
    pub end: Vec<u8>,
}

impl Range {
    /// The keys from `start` up to, and without, `end`. Empty if `end <= start`.
    pub fn new(start: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Range {
        Range { start: start.into(), end: end.into() }
    }

    /// Exactly one key.
    pub fn one(key: &[u8]) -> Range {
        let mut end = key.to_vec();
        end.push(0);
        Range { start: key.to_vec(), end }
    }

    /// The keys that begin with `prefix` and go on with a byte below FF: `[p, p FF)`. Every key of
    /// ours is a tuple, and no tuple element starts with FF, so this is all of them.
    pub fn prefix(prefix: &[u8]) -> Range {
        let mut end = prefix.to_vec();
        end.push(0xFF);
        Range { start: prefix.to_vec(), end }
    }

    /// Every key.
    pub fn all() -> Range {
        Range { start: Vec::new(), end: vec![0xFF] }
    }

    /// Whether no key can be inside.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Whether `key` is inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && key < self.end.as_slice()
    }

    /// Whether some key could be inside both.
    pub fn overlaps(&self, other: &Range) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// The smallest key after `key`.
pub fn after(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}
