//! Several cells in one run of bytes, as they travel.
//!
//! ```text
//! top cell, then any number of: count of bytes, cell
//! ```
//!
//! The cells behind the top one are branches: at least 141 bytes each, in any order. A message is
//! *complete* if every branch below the top is in it. The order is ours to choose, so messages are
//! compared by what they decode to, never by their bytes.
//!
//! Decoding costs one hash per cell and memory in proportion to the bytes: a branch is made once,
//! however often it is named.

use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use super::head::{self, bad};
use super::{CELL_BYTES_MAX, Cell, DEPTH_MAX, EMBEDDED_BYTES_MAX, Id, View, check, vlq};
use crate::Error;

/// Decodes a message. Branches that are not in it come from `known`, or stay absent.
///
/// # Errors
///
/// `Encoding` if the bytes are not a message of canonical cells, `TooLarge` if branches hang more
/// than [`DEPTH_MAX`] below each other.
pub fn decode(bytes: &[u8], known: &mut dyn FnMut(&Id) -> Option<Cell>) -> Result<Cell, Error> {
    let mut linker = Linker::default();
    let size = linker.add(bytes, None)?;
    let mut at = size;
    while at < bytes.len() {
        let (size, prefix) = vlq::get(&bytes[at..])?;
        at += prefix;
        if size <= EMBEDDED_BYTES_MAX as u64 || (CELL_BYTES_MAX as u64) < size {
            return bad("cell in a message has a wrong length");
        }
        let Some(cell) = bytes.get(at..at + size as usize) else {
            return bad("cell in a message is cut off");
        };
        linker.add(cell, Some(Id::of(cell)))?;
        at += size as usize;
    }
    linker.link(known)
}

/// Decodes a message that must hold everything below its top cell.
///
/// # Errors
///
/// As [`decode`], and `Missing` if a branch is not in it.
pub fn decode_complete(bytes: &[u8]) -> Result<Cell, Error> {
    let cell = decode(bytes, &mut |_| None)?;
    match missing(&cell, 1).first() {
        Some(&id) => Err(Error::Missing { id }),
        None => Ok(cell),
    }
}

/// Appends a message with `top` and everything below it that is here.
pub fn encode(top: &Cell, to: &mut Vec<u8>) {
    encode_with(top, &novelty(top, &mut |_| false, usize::MAX), to);
}

/// Appends a message with `top` and `branches`.
pub fn encode_with(top: &Cell, branches: &[Cell], to: &mut Vec<u8>) {
    to.extend_from_slice(top.bytes());
    for branch in branches {
        assert!(!branch.is_embedded(), "a message has branches behind its top cell");
        vlq::put(to, branch.bytes().len() as u64);
        to.extend_from_slice(branch.bytes());
    }
}

/// The branches below `top` that are here and that `known` does not know, parents first, at most
/// `count_max`. What is below a known branch is taken to be known.
pub fn novelty(top: &Cell, known: &mut dyn FnMut(&Id) -> bool, count_max: usize) -> Vec<Cell> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut waiting = vec![top];
    while let Some(cell) = waiting.pop() {
        for branch in cell.branches().iter().rev().flatten() {
            if count_max <= found.len() {
                return found;
            }
            let id = branch.id();
            if !known(&id) && seen.insert(id) {
                found.push(branch.clone());
                waiting.push(branch);
            }
        }
    }
    found
}

/// The ids of branches below `top` that are not here, each once, at most `count_max`.
pub fn missing(top: &Cell, count_max: usize) -> Vec<Id> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut waiting = vec![top];
    while let Some(cell) = waiting.pop() {
        if cell.is_complete() {
            continue;
        }
        let mut branches = cell.branches().iter();
        let size = head::walk(cell.bytes(), &mut |id| match branches
            .next()
            .expect("a place for every id")
        {
            Some(branch) if branch.is_complete() => {}
            Some(branch) => {
                if seen.insert(id) {
                    waiting.push(branch);
                }
            }
            None => {
                if found.len() < count_max && seen.insert(id) {
                    found.push(id);
                }
            }
        });
        head::checked(size);
    }
    found
}

/// The same value with the branches that `known` has, wherever one was absent.
///
/// # Errors
///
/// `Encoding` if a branch does not fit where its id stands, `TooLarge` if branches hang more than
/// [`DEPTH_MAX`] below each other.
pub fn complete(top: &Cell, known: &mut dyn FnMut(&Id) -> Option<Cell>) -> Result<Cell, Error> {
    assemble(top, [], known)
}

/// The same value with the branches in `parts`, which may name each other, and those that `known`
/// has.
///
/// # Errors
///
/// As [`complete`].
pub fn assemble<'a>(
    top: &Cell,
    parts: impl IntoIterator<Item = &'a Cell>,
    known: &mut dyn FnMut(&Id) -> Option<Cell>,
) -> Result<Cell, Error> {
    let mut linker = Linker::default();
    linker.add(top.bytes(), None)?;
    let mut whole: HashMap<Id, Cell> = HashMap::new();
    let below = novelty(top, &mut |_| false, usize::MAX);
    for branch in below.into_iter().chain(parts.into_iter().cloned()) {
        if branch.is_complete() {
            whole.insert(branch.id(), branch);
        } else {
            linker.add_owned(&branch)?;
        }
    }
    linker.link(&mut |id| whole.get(id).cloned().or_else(|| known(id)))
}

/// Makes cells of encodings that name each other.
#[derive(Default)]
struct Linker<'a> {
    parts: Vec<Part<'a>>,
    by_id: HashMap<Id, usize>,
    /// The ids in all parts, one part after the other.
    ids: Vec<Id>,
}

struct Part<'a> {
    bytes: std::borrow::Cow<'a, [u8]>,
    id: Option<Id>,
    ids: Range<usize>,
    cell: Option<Cell>,
}

impl<'a> Linker<'a> {
    /// Takes the encoding at the start of `bytes`; all of them if it has an id. Says its length.
    fn add(&mut self, bytes: &'a [u8], id: Option<Id>) -> Result<usize, Error> {
        let start = self.ids.len();
        let ids = &mut self.ids;
        let size = head::walk(bytes, &mut |id| ids.push(id))?;
        if CELL_BYTES_MAX < size {
            return bad("cell is too long");
        }
        if id.is_some() && size != bytes.len() {
            return bad("bytes follow a cell in a message");
        }
        if let Some(id) = id {
            self.by_id.insert(id, self.parts.len());
        }
        let part = Part { bytes: bytes[..size].into(), id, ids: start..self.ids.len(), cell: None };
        self.parts.push(part);
        Ok(size)
    }

    fn add_owned(&mut self, cell: &Cell) -> Result<(), Error> {
        let start = self.ids.len();
        let ids = &mut self.ids;
        head::walk(cell.bytes(), &mut |id| ids.push(id))?;
        self.by_id.insert(cell.id(), self.parts.len());
        let bytes = cell.bytes().to_vec().into();
        let ids = start..self.ids.len();
        self.parts.push(Part { bytes, id: Some(cell.id()), ids, cell: None });
        Ok(())
    }

    /// Makes the first part, and what it names before it, without recursion.
    fn link(mut self, known: &mut dyn FnMut(&Id) -> Option<Cell>) -> Result<Cell, Error> {
        // A part and how many of its ids have been looked at.
        let mut path = vec![(0, 0)];
        let mut foreign: HashMap<Id, Option<Cell>> = HashMap::new();
        while let Some((index, looked)) = path.last_mut() {
            let ids = self.parts[*index].ids.clone();
            if ids.start + *looked < ids.end {
                let id = self.ids[ids.start + *looked];
                *looked += 1;
                match self.by_id.get(&id) {
                    Some(&next) if self.parts[next].cell.is_none() => {
                        if usize::from(DEPTH_MAX) < path.len() {
                            return Err(too_deep(path.len()));
                        }
                        path.push((next, 0));
                    }
                    Some(_) => {}
                    None => {
                        foreign.entry(id).or_insert_with(|| known(&id));
                    }
                }
                continue;
            }
            let index = *index;
            path.pop();
            self.make(index, &foreign)?;
        }
        Ok(self.parts[0].cell.take().expect("the last part that was made"))
    }

    fn make(&mut self, index: usize, foreign: &HashMap<Id, Option<Cell>>) -> Result<(), Error> {
        let part = &self.parts[index];
        let branch = |id: &Id| match self.by_id.get(id) {
            Some(&at) => self.parts[at].cell.clone(),
            None => foreign.get(id).cloned().flatten(),
        };
        let branches: Box<[_]> = self.ids[part.ids.clone()].iter().map(branch).collect();
        if branches.iter().flatten().any(Cell::is_embedded) {
            return bad("a short value is not embedded");
        }
        check::check(View { bytes: &part.bytes, branches: &branches })?;
        let cell = match part.id {
            Some(id) => Cell::with_id(part.bytes.as_ref().into(), branches, id),
            None => Cell::from_parts(part.bytes.as_ref().into(), branches),
        };
        if DEPTH_MAX < cell.depth() {
            return Err(too_deep(usize::from(cell.depth())));
        }
        self.parts[index].cell = Some(cell);
        Ok(())
    }
}

fn too_deep(size: usize) -> Error {
    Error::TooLarge { what: "depth of a value", size, size_max: usize::from(DEPTH_MAX) }
}
