//! The entries of an Index in the order of their keys.

use std::borrow::Cow;
use std::ops::Bound;

use super::{Index, Node, digit, first_key, load_key, shared_digits, significant};
use crate::Error;
use crate::cell::{Slot, Slots, View};

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key's cell.
    pub key: View<'a>,
    /// The value.
    pub value: View<'a>,
}

impl<'a> Entry<'a> {
    fn of(key: Slot<'a>, value: Slot<'a>) -> Result<Entry<'a>, Error> {
        Ok(Entry { key: key.view()?, value: value.view()? })
    }

    /// The bytes of the key that count: the first 255.
    ///
    /// # Errors
    ///
    /// `Missing` if they are not here.
    pub fn key_bytes(&self) -> Result<Cow<'a, [u8]>, Error> {
        load_key(Slot::Embedded(self.key))
    }
}

/// The entries of an Index, or of a range of its keys, in order. An error ends it.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    /// Children that are still to be visited, the nearest last.
    path: Vec<Slots<'a>>,
    next: Option<View<'a>>,
    upper: Bound<Vec<u8>>,
}

impl Index {
    /// All entries, in the order of their keys.
    pub fn iter(&self) -> Iter<'_> {
        Iter::below(self.0.view())
    }

    /// The entries with keys between the bounds, in order.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell on the way to the first one is not here.
    pub fn range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<Iter<'_>, Error> {
        let mut iter = self.iter();
        iter.upper = upper.map(|key| significant(key).to_vec());
        if let Bound::Included(key) | Bound::Excluded(key) = lower {
            let key = significant(key);
            iter.seek(key)?;
            if let Bound::Excluded(_) = lower {
                let mut ahead = iter.clone();
                if let Some(entry) = ahead.next()
                    && *entry?.key_bytes()? == *key
                {
                    iter = ahead;
                }
            }
        }
        Ok(iter)
    }

    /// The entries whose keys start with `prefix`, in order.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell on the way to the first one is not here.
    pub fn prefix(&self, prefix: &[u8]) -> Result<Iter<'_>, Error> {
        let after = match prefix.iter().rposition(|&byte| byte < 0xff) {
            Some(at) => {
                let mut after = prefix[..=at].to_vec();
                after[at] += 1;
                Bound::Excluded(after)
            }
            None => Bound::Unbounded,
        };
        self.range(Bound::Included(prefix), after.as_ref().map(Vec::as_slice))
    }
}

impl<'a> IntoIterator for &'a Index {
    type Item = Result<Entry<'a>, Error>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> Iter<'a> {
    pub(super) fn below(view: View<'a>) -> Iter<'a> {
        let next = (0 < view.head().count).then_some(view);
        Iter { path: Vec::new(), next, upper: Bound::Unbounded }
    }

    /// Skips what is before `key`.
    fn seek(&mut self, key: &[u8]) -> Result<(), Error> {
        while let Some(view) = self.next {
            let mut node = Node::of(view);
            let first = first_key(view)?;
            let shared = shared_digits(key, &first);
            let Some(fork) = node.fork().filter(|fork| fork.depth <= shared) else {
                // All keys here are on the same side.
                if *first < *key {
                    self.next = None;
                }
                return Ok(());
            };
            if fork.depth == 2 * key.len() {
                return Ok(());
            }
            // The entry, if any, is a prefix of the key and so before it.
            let place = digit(key, fork.depth);
            let before = (fork.mask & ((1 << place) - 1)).count_ones();
            for _ in 0..before {
                node.slots.next();
            }
            let child = if fork.mask >> place & 1 == 1 { node.slots.next() } else { None };
            self.path.push(node.slots);
            self.next = child.map(Slot::view).transpose()?;
        }
        Ok(())
    }

    /// The next entry, whatever the upper bound.
    pub(super) fn step(&mut self) -> Result<Option<(Slot<'a>, Slot<'a>)>, Error> {
        loop {
            let view = match (self.next.take(), self.path.last_mut()) {
                (Some(view), _) => view,
                (None, None) => return Ok(None),
                (None, Some(slots)) => {
                    let Some(slot) = slots.next() else {
                        self.path.pop();
                        continue;
                    };
                    slot.view()?
                }
            };
            let node = Node::of(view);
            if node.forks {
                self.path.push(node.slots);
            }
            if node.entry.is_some() {
                return Ok(node.entry);
            }
        }
    }

    fn within(&mut self) -> Result<Option<Entry<'a>>, Error> {
        let Some((key, value)) = self.step()? else {
            return Ok(None);
        };
        let entry = Entry::of(key, value)?;
        let is_past = match &self.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => upper.as_slice() < &*entry.key_bytes()?,
            Bound::Excluded(upper) => upper.as_slice() <= &*entry.key_bytes()?,
        };
        Ok((!is_past).then_some(entry))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Entry<'a>, Error>;

    fn next(&mut self) -> Option<Result<Entry<'a>, Error>> {
        let found = self.within();
        if !matches!(found, Ok(Some(_))) {
            self.path.clear();
            self.next = None;
        }
        found.transpose()
    }
}
