//! Cells: immutable values with one canonical encoding and an id that is the hash of it.
//!
//! A cell is held as its encoding. A value inside another value is written into the outer
//! encoding if it takes at most [`EMBEDDED_BYTES_MAX`] bytes, else the byte 20 and its id stand in
//! its place and it is a *branch*: a cell of its own. So a cell in memory is
//!
//! ```text
//! bytes       the encoding, ids of branches included
//! branches    one pointer per id, in the order of the bytes; absent if we do not have the cell
//! id          SHA3-256 of the bytes, computed when somebody first asks
//! ```
//!
//! Two consequences carry the rest of the crate. Equal bytes mean equal values, however large, so
//! comparing replicas is comparing bytes. And a cell that we do not understand is kept exactly.
//!
//! Invariants: the bytes passed [`check`] or were made by [`Writer`]; `branches` has one place for
//! every id in the bytes. Reading code may rely on both.
//!
//! Read [`head`] for the layout, [`write`](Writer) and [`read`](View) for use, then [`message`].
//! The format with examples is `docs/format/cells.md`.

mod build;
mod check;
pub(crate) mod head;
pub mod message;
mod read;
pub mod vlq;
mod write;

#[cfg(test)]
pub(crate) mod golden;

use std::fmt;
use std::sync::{Arc, OnceLock};

use sha3::{Digest, Sha3_256};

use crate::Error;

pub use head::{Slot, Slots};
pub use read::Form;
pub(crate) use read::key_bytes;
pub use write::Writer;

/// The longest encoding that is written into the outer cell. The format fixes it.
pub const EMBEDDED_BYTES_MAX: usize = 140;
/// The longest encoding of one cell. The format fixes it.
pub const CELL_BYTES_MAX: usize = 16_383;
/// How many branches may hang below each other in what a peer sends. Two Indexes inside each other
/// whose keys fork at every half byte need 1,020; the rest is for what stands around them.
pub const DEPTH_MAX: u16 = 1_100;

/// The id of a value: SHA3-256 of its encoding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; 32]);

impl Id {
    /// The id of the value with this encoding.
    pub fn of(bytes: &[u8]) -> Id {
        Id(Sha3_256::digest(bytes).into())
    }

    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Id {
        Id(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Hex digit number `position`, of 64.
    pub(crate) fn digit(&self, position: usize) -> usize {
        digit(&self.0, position)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

/// Hex digit number `position` of `bytes`, the high half of a byte first.
pub(crate) fn digit(bytes: &[u8], position: usize) -> usize {
    let byte = bytes[position / 2];
    usize::from(if position.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
}

/// An immutable value. Cloning shares it.
#[derive(Clone)]
pub struct Cell(Arc<Inner>);

struct Inner {
    bytes: Box<[u8]>,
    branches: Box<[Option<Cell>]>,
    id: OnceLock<Id>,
    /// How many branches hang below each other, as far as they are here.
    depth: u16,
    /// Whether every branch is here, and theirs.
    complete: bool,
}

/// Frees what hangs deep one by one: a recursion as deep as the value would exhaust the stack.
impl Drop for Inner {
    fn drop(&mut self) {
        const RECURSION_DEPTH_MAX: u16 = 100;
        if self.depth <= RECURSION_DEPTH_MAX {
            return;
        }
        let mut waiting = std::mem::take(&mut self.branches).into_vec();
        while let Some(branch) = waiting.pop() {
            if let Some(mut inner) = branch.and_then(|cell| Arc::into_inner(cell.0)) {
                waiting.append(&mut std::mem::take(&mut inner.branches).into_vec());
            }
        }
    }
}

impl Cell {
    /// The cell with this encoding, whose branches are already known to fit it.
    pub(crate) fn from_parts(bytes: Box<[u8]>, branches: Box<[Option<Cell>]>) -> Cell {
        assert!(bytes.len() <= CELL_BYTES_MAX, "an encoding is bounded by its layout");
        let mut depth = 0;
        let mut complete = true;
        for branch in &branches {
            match branch {
                Some(cell) => {
                    depth = depth.max(cell.0.depth.saturating_add(1));
                    complete &= cell.0.complete;
                }
                None => complete = false,
            }
        }
        Cell(Arc::new(Inner { bytes, branches, id: OnceLock::new(), depth, complete }))
    }

    /// As `from_parts`, for an encoding whose id is known.
    pub(crate) fn with_id(bytes: Box<[u8]>, branches: Box<[Option<Cell>]>, id: Id) -> Cell {
        let cell = Cell::from_parts(bytes, branches);
        cell.0.id.get_or_init(|| id);
        cell
    }

    /// The same value with all branches absent: what travels when this cell alone is asked for.
    pub fn without_branches(&self) -> Cell {
        let branches = vec![None; self.0.branches.len()].into_boxed_slice();
        Cell::with_id(self.0.bytes.clone(), branches, self.id())
    }

    /// Decodes one cell. Its branches are absent; [`message`] brings them.
    ///
    /// # Errors
    ///
    /// `Encoding` if the bytes are not exactly one canonical encoding.
    pub fn decode(bytes: &[u8]) -> Result<Cell, Error> {
        let branches = vec![None; head::refs(bytes)?].into_boxed_slice();
        check::check(View { bytes, branches: &branches })?;
        Ok(Cell::from_parts(bytes.into(), branches))
    }

    /// The encoding of this cell alone.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The id: SHA3-256 of the encoding, computed once.
    pub fn id(&self) -> Id {
        *self.0.id.get_or_init(|| Id::of(&self.0.bytes))
    }

    /// Whether an outer cell holds this one's encoding, and not its id.
    pub fn is_embedded(&self) -> bool {
        self.0.bytes.len() <= EMBEDDED_BYTES_MAX
    }

    /// Whether everything below is here.
    pub fn is_complete(&self) -> bool {
        self.0.complete
    }

    /// How many branches hang below each other, as far as they are here.
    pub fn depth(&self) -> u16 {
        self.0.depth
    }

    /// The branches, in the order of their ids in the bytes; `None` where we do not have the cell.
    pub fn branches(&self) -> &[Option<Cell>] {
        &self.0.branches
    }

    /// The same value, for reading.
    pub fn view(&self) -> View<'_> {
        View { bytes: &self.0.bytes, branches: &self.0.branches }
    }

    /// Whether both are the very same cell in memory. Cheaper than equality, and may say no to
    /// equal values.
    pub fn is_same(&self, other: &Cell) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Cell {
    fn eq(&self, other: &Cell) -> bool {
        self.is_same(other) || self.0.bytes == other.0.bytes
    }
}

impl Eq for Cell {}

impl fmt::Debug for Cell {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), to)
    }
}

/// A value for reading: a whole cell, or one that lies embedded in another.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) branches: &'a [Option<Cell>],
}

impl<'a> View<'a> {
    /// The encoding.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The id, computed now. Ask a [`Cell`] where there is one: it remembers.
    pub fn id(self) -> Id {
        Id::of(self.bytes)
    }

    /// A cell of its own. Copies the encoding, shares the branches.
    pub fn to_cell(self) -> Cell {
        Cell::from_parts(self.bytes.into(), self.branches.into())
    }
}

/// Equal encodings are equal values.
impl PartialEq for View<'_> {
    fn eq(&self, other: &View<'_>) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for View<'_> {}

impl fmt::Debug for View<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("0x")?;
        self.bytes.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
    }
}
