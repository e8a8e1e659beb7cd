//! The Index: a persistent map from byte strings to values, ordered by key.
//!
//! A radix tree over the hex digits of the keys, path-compressed, held as cells and as nothing
//! else: the form in memory is the form that is hashed, signed and sent. Small children lie inside
//! their parent's bytes, so a leaf page of a dozen short entries is one cell. A new version shares
//! every cell that it does not change, and equal parts of two versions have equal bytes, wherever
//! they came from. That makes comparing two versions cost what differs, not what they hold.
//!
//! Changes come in a [`Batch`]: each node on the way is written and hashed once per batch, not once
//! per key.
//!
//! A key's identity is its bytes, whatever kind of cell spells them; the first 255 bytes count.
//!
//! Read this, then [`update`](Batch), [`diff`](Difference) and [`iter`](Iter).

mod diff;
mod iter;
mod update;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::Error;
use crate::cell::{Cell, Id, Slot, Slots, View};
use crate::cell::{Form, digit, head, key_bytes};

pub use diff::{Decision, Difference};
pub use iter::{Entry, Iter};
pub use update::Batch;

/// The bytes of a key that tell it from others. Longer keys with the same start are the same key.
pub const KEY_BYTES_MAX: usize = 255;

const _: () = assert!(2 * KEY_BYTES_MAX == head::KEY_DIGITS_MAX);

/// An immutable, ordered map. Cloning shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index(Cell);

impl Default for Index {
    fn default() -> Index {
        Index::new()
    }
}

impl Index {
    /// The empty Index. There is one for all, as entries hold many.
    pub fn new() -> Index {
        static EMPTY: OnceLock<Index> = OnceLock::new();
        let make =
            || Index(Cell::write(|writer| writer.bytes.extend_from_slice(&[head::INDEX, 0])));
        EMPTY.get_or_init(make).clone()
    }

    /// The Index that a cell is. Branches may be absent; what needs one then says `Missing`.
    ///
    /// # Errors
    ///
    /// `Encoding` if the cell is something else.
    pub fn from_cell(cell: Cell) -> Result<Index, Error> {
        match cell.view().form() {
            Form::Index(_) => Ok(Index(cell)),
            _ => head::bad("not an index"),
        }
    }

    /// As a cell.
    pub fn cell(&self) -> &Cell {
        &self.0
    }

    /// The id: equal for Indexes with equal entries.
    pub fn id(&self) -> Id {
        self.0.id()
    }

    /// How many entries there are.
    pub fn count(&self) -> u64 {
        self.0.view().head().count
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The value of `key`.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell on the way is not here.
    pub fn get(&self, key: &[u8]) -> Result<Option<View<'_>>, Error> {
        let key = significant(key);
        let mut view = self.0.view();
        loop {
            let mut node = Node::of(view);
            let Fork { depth, mask } = match node.fork() {
                Some(fork) if fork.depth < 2 * key.len() => fork,
                // The way here skipped digits, so the key is compared as a whole.
                _ => match node.entry {
                    Some((own, value)) if *load_key(own)? == *key => return value.view().map(Some),
                    _ => return Ok(None),
                },
            };
            let place = digit(key, depth);
            if mask >> place & 1 == 0 {
                return Ok(None);
            }
            let before = (mask & ((1 << place) - 1)).count_ones() as usize;
            view = node.slots.nth(before).expect("a slot for each bit of the mask").view()?;
        }
    }

    /// With `value` for `key`, which must be a string, a blob, a keyword, a symbol or an address.
    /// For more than one change, a [`Batch`] is cheaper.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell on the way is not here, `Encoding` if such a cell cannot be a key.
    pub fn put(&self, key: &Cell, value: &Cell) -> Result<Index, Error> {
        let mut batch = Batch::new();
        batch.put(key.view(), |writer| writer.cell(value))?;
        self.update(&batch)
    }

    /// Without `key`.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell on the way is not here.
    pub fn remove(&self, key: &[u8]) -> Result<Index, Error> {
        let mut batch = Batch::new();
        batch.remove(key);
        self.update(&batch)
    }

    /// The root in the form in which a node holds its children.
    fn slot(&self) -> Slot<'_> {
        if self.0.is_embedded() {
            Slot::Embedded(self.0.view())
        } else {
            Slot::Branch(self.0.id(), Some(&self.0))
        }
    }
}

/// Where a node parts its keys: behind `depth` digits, into the digits of `mask`.
#[derive(Clone, Copy, Debug)]
struct Fork {
    depth: usize,
    mask: u16,
}

/// A node for reading: its entry, then what is behind it.
struct Node<'a> {
    count: u64,
    entry: Option<(Slot<'a>, Slot<'a>)>,
    forks: bool,
    /// The children, once `fork` has been called.
    slots: Slots<'a>,
}

impl<'a> Node<'a> {
    fn of(view: View<'a>) -> Node<'a> {
        let head = view.head();
        let mut slots = Slots::after(view, &head);
        let entry = (0 < head.slots).then(|| {
            let key = slots.next().expect("an entry has a key");
            (key, slots.next().expect("an entry has a value"))
        });
        Node { count: head.count, entry, forks: head.forks, slots }
    }

    /// Where the keys part; nothing for an empty node or a single entry. To be called once, before
    /// the children are taken.
    fn fork(&mut self) -> Option<Fork> {
        self.forks.then(|| {
            let (depth, mask) = self.slots.fork();
            Fork { depth, mask }
        })
    }
}

/// The bytes of a key that count.
fn significant(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

/// The bytes of a key cell that count.
fn load_key(key: Slot<'_>) -> Result<Cow<'_, [u8]>, Error> {
    key_bytes(key.view()?)?.ok_or(Error::Missing { id: key.id() })
}

/// The first key at or below `view`, which is not empty. All keys there share its digits up to
/// where the node forks.
fn first_key(mut view: View<'_>) -> Result<Cow<'_, [u8]>, Error> {
    loop {
        let mut node = Node::of(view);
        if let Some((key, _)) = node.entry {
            return load_key(key);
        }
        view = node.slots.next().expect("a node without entry has children").view()?;
    }
}

/// How many digits two keys share from the start.
fn shared_digits(own: &[u8], other: &[u8]) -> usize {
    match own.iter().zip(other).position(|(own, other)| own != other) {
        Some(at) => 2 * at + usize::from(own[at] >> 4 == other[at] >> 4),
        None => 2 * own.len().min(other.len()),
    }
}
