//! Fetching what a value lacks: ids go out, cells come in, until nothing is absent.
//!
//! Every cell that arrives is kept under the hash of its bytes, so a peer cannot slip in another.
//! The value is put together once, when all is here.

use hashbrown::{HashMap, HashSet};

use super::CELLS_MAX;
use super::shelf::Shelf;
use crate::Error;
use crate::cell::{Cell, Id, message};

/// A value that is being completed.
#[derive(Debug)]
pub(super) struct Pull {
    pub(super) path: Vec<Cell>,
    /// The number under which the sender wants to hear of it.
    pub(super) answer: Option<i64>,
    value: Cell,
    staged: HashMap<Id, Cell>,
    size: usize,
    waiting: Vec<Id>,
    asked: HashSet<Id>,
    /// The request that is under way: its number, its ids and when it is late.
    request: Option<(i64, Vec<Id>, u64)>,
}

impl Pull {
    /// Starts with a value that is not complete.
    pub(super) fn new(value: Cell, path: Vec<Cell>, answer: Option<i64>) -> Pull {
        let waiting = message::missing(&value, usize::MAX);
        let asked = waiting.iter().copied().collect();
        let staged = HashMap::new();
        Pull { path, answer, value, staged, size: 0, waiting, asked, request: None }
    }

    /// Whether the answer with this number is ours.
    pub(super) fn awaits(&self, id: i64) -> bool {
        self.request.as_ref().is_some_and(|it| it.0 == id)
    }

    pub(super) fn is_late(&self, now_ms: u64) -> bool {
        self.request.as_ref().is_some_and(|it| it.2 < now_ms)
    }

    /// The ids to ask for next, or nothing if all is here.
    pub(super) fn ask(&mut self, id: i64, late_ms: u64) -> Option<Vec<Id>> {
        assert!(self.request.is_none(), "one request at a time");
        if self.waiting.is_empty() {
            return None;
        }
        let ids = self.waiting.split_off(self.waiting.len().saturating_sub(CELLS_MAX));
        self.request = Some((id, ids.clone(), late_ms));
        Some(ids)
    }

    /// Takes in the answer.
    pub(super) fn take(
        &mut self,
        answer: &Cell,
        shelf: &Shelf,
        size_max: usize,
    ) -> Result<(), &'static str> {
        let (_, ids, _) = self.request.take().expect("an answer to what was asked");
        let cells = answer.view().elements(CELLS_MAX).map_err(|_| "not a vector of cells")?;
        if cells.len() != ids.len() {
            return Err("a wrong number of cells");
        }
        for (id, view) in ids.into_iter().zip(cells) {
            if view.is_nil() {
                return Err("the peer does not have what it named");
            }
            let cell = view.to_cell();
            if cell.id() != id || cell.is_embedded() {
                return Err("another cell than was asked for");
            }
            self.size += cell.bytes().len();
            if size_max < self.size {
                return Err("the value is too large");
            }
            self.stage(cell, shelf);
        }
        Ok(())
    }

    /// Keeps a cell, and notes what is absent below it.
    pub(super) fn stage(&mut self, cell: Cell, shelf: &Shelf) {
        let _ = crate::cell::head::walk(cell.bytes(), &mut |id| {
            if shelf.get(&id).is_none() && self.asked.insert(id) {
                self.waiting.push(id);
            }
        });
        self.staged.insert(cell.id(), cell);
    }

    /// The whole value.
    pub(super) fn finish(&self, shelf: &Shelf) -> Result<Cell, Error> {
        message::assemble(&self.value, self.staged.values(), &mut |id| shelf.get(id).cloned())
    }
}
