//! All cells of the region by id, each with the generation in which it came.
//!
//! A generation is one change of the root. What came by a generation can be told from what came
//! later, so what a peer lacks is found without remembering what it has.

use hashbrown::HashMap;

use crate::cell::{Cell, Id, message};

/// The cells that a node can answer for.
#[derive(Debug, Default)]
pub struct Shelf {
    cells: HashMap<Id, (Cell, u64)>,
    generation: u64,
    /// How many cells there were when the last sweep was done.
    swept: usize,
}

impl Shelf {
    /// The generation of the newest root.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How many cells there are.
    pub fn count(&self) -> usize {
        self.cells.len()
    }

    /// A cell.
    pub fn get(&self, id: &Id) -> Option<&Cell> {
        self.cells.get(id).map(|(cell, _)| cell)
    }

    /// Takes in a complete value and starts a generation if something in it is new.
    pub fn add(&mut self, top: &Cell) {
        assert!(top.is_complete(), "the shelf holds no value in part");
        let mut novel = message::novelty(top, &mut |id| self.cells.contains_key(id), usize::MAX);
        // The top can be asked for by its id even if it is short.
        if !self.cells.contains_key(&top.id()) {
            novel.push(top.clone());
        }
        if novel.is_empty() {
            return;
        }
        self.generation += 1;
        for cell in novel {
            self.cells.insert(cell.id(), (cell, self.generation));
        }
    }

    /// The cells below `top` that came after `generation`, parents first, if they fit `size_max`.
    pub fn since(&self, top: &Cell, generation: u64, size_max: usize) -> Option<Vec<Cell>> {
        let mut known = |id: &Id| self.cells.get(id).is_some_and(|(_, since)| *since <= generation);
        // A branch has at least 141 bytes, so more than this many never fit.
        let novel = message::novelty(top, &mut known, size_max / 141 + 1);
        let size: usize = novel.iter().map(|it| it.bytes().len() + 3).sum();
        (size <= size_max).then_some(novel)
    }

    /// Whether so much was replaced that a sweep is worth its while.
    pub fn wants_sweep(&self) -> bool {
        2 * self.swept + 10_000 < self.cells.len()
    }

    /// Forgets what is not below one of `roots`.
    pub fn sweep(&mut self, roots: &[&Cell]) {
        let mut kept = HashMap::new();
        for root in roots {
            let mut live = message::novelty(root, &mut |id| kept.contains_key(id), usize::MAX);
            live.push((*root).clone());
            for cell in live {
                let since = self.cells.get(&cell.id()).map_or(self.generation, |it| it.1);
                kept.insert(cell.id(), (cell, since));
            }
        }
        self.swept = kept.len();
        self.cells = kept;
    }
}
