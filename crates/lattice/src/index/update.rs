//! Changes to an Index, many at a time.
//!
//! The changes are sorted and walked down the tree together with the old nodes. Below a node with
//! no change nothing is touched, nor needs to be here. Every node is written into one buffer behind
//! its children, so that the count and the mask, which come first in its bytes, are known.

use std::ops::Range;

use super::{Fork, Index, Node, digit, first_key, load_key, shared_digits, significant};
use crate::Error;
use crate::cell::{Cell, Slot, View, Writer, vlq};
use crate::cell::{head, key_bytes};

/// Puts and removals to be made in one step. A later change of a key replaces an earlier one.
#[derive(Debug, Default)]
pub struct Batch {
    /// Key and value of each put, as the slots of a node.
    writer: Writer,
    keys: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    key: Range<usize>,
    /// The place of the two slots. Empty for a removal.
    bytes: Range<usize>,
    branches: Range<usize>,
}

impl Batch {
    /// No changes yet.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// How many changes there are.
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// Forgets the changes and keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.writer.bytes.clear();
        self.writer.branches.clear();
        self.keys.clear();
        self.items.clear();
    }

    /// Puts the one value that `write` appends.
    ///
    /// # Errors
    ///
    /// `Encoding` if such a cell cannot be a key, `Missing` if its bytes are not here.
    pub fn put(&mut self, key: View<'_>, write: impl FnOnce(&mut Writer)) -> Result<(), Error> {
        let Some(bytes) = key_bytes(key)? else {
            return Err(Error::Missing { id: key.id() });
        };
        self.put_pair(&bytes, |writer| writer.view(key), write);
        Ok(())
    }

    /// Puts what another Index holds, sharing its cells.
    pub(super) fn put_slots(&mut self, key: Slot<'_>, value: Slot<'_>) -> Result<(), Error> {
        let bytes = load_key(key)?;
        self.put_pair(&bytes, |writer| writer.slot(key), |writer| writer.slot(value));
        Ok(())
    }

    /// As `put`, with a string for the key.
    pub fn put_string(&mut self, key: &[u8], write: impl FnOnce(&mut Writer)) {
        self.put_pair(significant(key), |writer| writer.string(key), write);
    }

    /// As `put`, with a blob for the key.
    pub fn put_blob(&mut self, key: &[u8], write: impl FnOnce(&mut Writer)) {
        self.put_pair(significant(key), |writer| writer.blob(key), write);
    }

    /// Takes `key` away, if it is there.
    pub fn remove(&mut self, key: &[u8]) {
        let start = self.keys.len();
        self.keys.extend_from_slice(significant(key));
        self.items.push(Item { key: start..self.keys.len(), bytes: 0..0, branches: 0..0 });
    }

    fn put_pair(
        &mut self,
        key: &[u8],
        write_key: impl FnOnce(&mut Writer),
        write: impl FnOnce(&mut Writer),
    ) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        let (bytes, branches) = self.writer.mark();
        write_key(&mut self.writer);
        self.writer.value(write);
        let end = self.writer.mark();
        let key = start..self.keys.len();
        self.items.push(Item { key, bytes: bytes..end.0, branches: branches..end.1 });
    }

    /// The changes by key, each key once.
    fn sorted(&self) -> Vec<Change<'_>> {
        let mut changes: Vec<Change<'_>> = Vec::with_capacity(self.items.len());
        let first = self.items.first().map_or(&[][..], |item| &self.keys[item.key.clone()]);
        let mut shared = first.len();
        for item in &self.items {
            let key = &self.keys[item.key.clone()];
            shared = shared.min(shared_digits(first, key) / 2);
            let pair = (!item.bytes.is_empty()).then(|| View {
                bytes: &self.writer.bytes[item.bytes.clone()],
                branches: &self.writer.branches[item.branches.clone()],
            });
            changes.push(Change { rank: 0, key, pair });
        }
        // Comparing eight bytes behind what all keys share decides nearly always, without a look
        // at the key itself.
        for change in &mut changes {
            let rest = &change.key[shared..];
            let mut rank = [0; 8];
            let size = rest.len().min(8);
            rank[..size].copy_from_slice(&rest[..size]);
            change.rank = u64::from_be_bytes(rank);
        }
        changes
            .sort_by(|own, other| own.rank.cmp(&other.rank).then_with(|| own.key.cmp(other.key)));
        // Stable sorting keeps the order of changes to one key; the last one counts.
        changes.reverse();
        changes.dedup_by(|own, other| own.key == other.key);
        changes.reverse();
        changes
    }
}

/// One change: what stands for `key` afterwards, as two slots one behind the other.
#[derive(Clone, Copy)]
struct Change<'a> {
    rank: u64,
    key: &'a [u8],
    pair: Option<View<'a>>,
}

impl Index {
    /// With the changes of `batch`.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell that has to change is not here.
    pub fn update(&self, batch: &Batch) -> Result<Index, Error> {
        let changes = batch.sorted();
        if changes.is_empty() {
            return Ok(self.clone());
        }
        let mut tree = Tree { writer: Writer::new() };
        let old = (!self.is_empty()).then(|| self.slot());
        if tree.apply(old, &changes)? == 0 {
            return Ok(Index::new());
        }
        Ok(Index(tree.writer.finish()))
    }
}

/// Appends nodes to a buffer, each as the slot that its parent will hold.
struct Tree {
    writer: Writer,
}

impl Tree {
    /// Appends what `old` is after `changes`, unless nothing is left. Says how many entries that
    /// is.
    fn apply(&mut self, old: Option<Slot<'_>>, changes: &[Change<'_>]) -> Result<u64, Error> {
        let Some(slot) = old else {
            return self.build(changes);
        };
        let view = slot.view()?;
        if changes.is_empty() {
            self.writer.slot(slot);
            return Ok(view.head().count);
        }
        let mut node = Node::of(view);
        let Some(fork) = node.fork() else {
            let (key, _) = node.entry.expect("a child has entries");
            return self.apply_to_entry(view, &load_key(key)?, changes);
        };
        let prefix = first_key(view)?;
        let first = shared_digits(&prefix, changes[0].key);
        let last = shared_digits(&prefix, changes[changes.len() - 1].key);
        let depth = first.min(last);
        if depth < fork.depth {
            // Some change is not below this node: they part above it.
            let place = digit(&prefix, depth);
            let above = Fork { depth, mask: 1 << place };
            return self.fork(node.count, None, above, &mut std::iter::once(slot), changes);
        }
        let entry = node.entry.map(|_| entry_pair(view));
        self.fork(node.count, entry, fork, &mut node.slots, changes)
    }

    fn apply_to_entry(
        &mut self,
        view: View<'_>,
        key: &[u8],
        changes: &[Change<'_>],
    ) -> Result<u64, Error> {
        match changes.binary_search_by(|change| change.key.cmp(key)) {
            Ok(_) => self.build(changes),
            Err(at) => {
                let mut all = changes.to_vec();
                all.insert(at, Change { rank: 0, key, pair: Some(entry_pair(view)) });
                self.build(&all)
            }
        }
    }

    /// Appends a tree of the puts in `changes`.
    fn build(&mut self, changes: &[Change<'_>]) -> Result<u64, Error> {
        let is_put = |change: &Change<'_>| change.pair.is_some();
        let Some(first) = changes.iter().position(is_put) else {
            return Ok(0);
        };
        let last = changes.iter().rposition(is_put).expect("there is a first one");
        if first == last {
            let pair = changes[first].pair.expect("it is a put");
            self.single(pair);
            return Ok(1);
        }
        let depth = shared_digits(changes[first].key, changes[last].key);
        let fork = Fork { depth, mask: 0 };
        self.fork(0, None, fork, &mut std::iter::empty(), &changes[first..=last])
    }

    fn single(&mut self, pair: View<'_>) {
        let mark = self.writer.mark();
        self.writer.bytes.extend_from_slice(&[head::INDEX, 1]);
        self.writer.bytes.extend_from_slice(pair.bytes);
        self.writer.branches.extend_from_slice(pair.branches);
        self.writer.seal(mark);
    }

    /// Appends a node that parts its keys at `old.depth`. All `changes` share that many digits.
    fn fork<'e>(
        &mut self,
        count: u64,
        mut entry: Option<View<'e>>,
        old: Fork,
        children: &mut dyn Iterator<Item = Slot<'_>>,
        mut changes: &[Change<'e>],
    ) -> Result<u64, Error> {
        let mark = self.writer.mark();
        let mut count = count;
        if let Some((change, rest)) = changes.split_first()
            && 2 * change.key.len() == old.depth
        {
            count = count + u64::from(change.pair.is_some()) - u64::from(entry.is_some());
            entry = change.pair;
            changes = rest;
        }
        let mut mask = 0_u16;
        for place in 0..16 {
            let split = changes.partition_point(|it| digit(it.key, old.depth) <= place);
            let (part, rest) = changes.split_at(split);
            changes = rest;
            let child = if old.mask >> place & 1 == 1 { children.next() } else { None };
            match child {
                Some(slot) if part.is_empty() => self.writer.slot(slot),
                None if part.is_empty() => continue,
                _ => {
                    let before = child.map_or(Ok(0), |it| it.view().map(|it| it.head().count))?;
                    let after = self.apply(child, part)?;
                    count = count + after - before;
                    if after == 0 {
                        continue;
                    }
                }
            }
            mask |= 1 << place;
        }
        match (entry, mask.count_ones()) {
            // Nothing is left, or a single child takes the place of its parent.
            (None, 0 | 1) => {}
            (Some(pair), 0) => self.single(pair),
            _ => self.finish_node(mark, count, entry, Fork { depth: old.depth, mask }),
        }
        Ok(count)
    }

    /// Puts the head of a node in front of its children, which stand behind `mark`.
    fn finish_node(
        &mut self,
        mark: (usize, usize),
        count: u64,
        entry: Option<View<'_>>,
        fork: Fork,
    ) {
        let mut bytes = Vec::with_capacity(320);
        bytes.push(head::INDEX);
        vlq::put(&mut bytes, count);
        match entry {
            Some(pair) => {
                bytes.push(head::ENTRY_MARK);
                bytes.extend_from_slice(pair.bytes);
                self.writer.branches.splice(mark.1..mark.1, pair.branches.iter().cloned());
            }
            None => bytes.push(head::NIL),
        }
        vlq::put(&mut bytes, fork.depth as u64);
        bytes.extend_from_slice(&fork.mask.to_be_bytes());
        self.writer.bytes.splice(mark.0..mark.0, bytes);
        self.writer.seal(mark);
    }
}

/// The two slots of a node's entry, one behind the other.
fn entry_pair(view: View<'_>) -> View<'_> {
    let head = view.head();
    let mut size = 0;
    let mut refs = 0;
    let mut slots = view.slots();
    for _ in 0..2 {
        match slots.next().expect("an entry has two slots") {
            Slot::Embedded(slot) => {
                size += slot.bytes.len();
                refs += slot.branches.len();
            }
            Slot::Branch(..) => {
                size += 33;
                refs += 1;
            }
        }
    }
    View { bytes: &view.bytes[head.size..head.size + size], branches: &view.branches[..refs] }
}

/// An Index of everything in `entries`.
impl FromIterator<(Cell, Cell)> for Index {
    fn from_iter<I: IntoIterator<Item = (Cell, Cell)>>(entries: I) -> Index {
        let mut batch = Batch::new();
        for (key, value) in entries {
            batch
                .put(key.view(), |writer| writer.cell(&value))
                .expect("the caller gives keys that can be keys");
        }
        Index::new().update(&batch).expect("nothing is absent from an empty index")
    }
}
