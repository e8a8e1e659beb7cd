//! Clients that wait for keys, and the keys that became ready.

use std::collections::{BTreeSet, VecDeque};

use hashbrown::HashMap;

use crate::client::{Blocked, Slot};

/// A key of a database.
pub type DbKey = (usize, Vec<u8>);

/// Who waits for which key.
#[derive(Debug, Default)]
pub struct Blocking {
    /// The clients that wait for a key, the longest first.
    by_key: HashMap<DbKey, Vec<Slot>>,
    /// When which client gives up.
    deadlines: BTreeSet<(u64, Slot)>,
    /// The keys that were changed while somebody waits for them, in order.
    ready: VecDeque<DbKey>,
    /// How many clients wait.
    count: usize,
}

impl Blocking {
    /// A client begins to wait.
    pub fn add(&mut self, slot: u32, db: usize, blocked: &Blocked) {
        for key in &blocked.keys {
            self.by_key.entry((db, key.clone())).or_default().push(Slot(slot));
        }
        if let Some(deadline_ms) = blocked.deadline_ms {
            self.deadlines.insert((deadline_ms, Slot(slot)));
        }
        self.count += 1;
    }

    /// A client waits no more.
    pub fn remove(&mut self, slot: u32, db: usize, keys: &[Vec<u8>]) {
        for key in keys {
            let place = (db, key.clone());
            if let Some(slots) = self.by_key.get_mut(&place) {
                slots.retain(|it| it.0 != slot);
                if slots.is_empty() {
                    self.by_key.remove(&place);
                }
            }
        }
        self.deadlines.retain(|(_, it)| it.0 != slot);
        self.count -= 1;
    }

    /// How many clients wait.
    pub fn len(&self) -> usize {
        self.count
    }

    /// How many of them have a deadline.
    pub fn with_deadline(&self) -> usize {
        self.deadlines.len()
    }

    /// Whether nobody waits for a key.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// A key was changed: if somebody waits for it, it is looked at after the command.
    pub fn make_ready(&mut self, db: usize, key: &[u8]) {
        let place = (db, key.to_vec());
        if self.by_key.contains_key(&place) && !self.ready.contains(&place) {
            self.ready.push_back(place);
        }
    }

    /// All keys of a database may have been changed.
    pub fn make_all_ready(&mut self, db: usize) {
        let keys: BTreeSet<DbKey> =
            self.by_key.keys().filter(|place| place.0 == db).cloned().collect();
        self.ready.extend(keys);
    }

    /// The next changed key.
    pub fn next_ready(&mut self) -> Option<DbKey> {
        self.ready.pop_front()
    }

    /// The clients that wait for a key, the longest first.
    pub fn waiting(&self, db: usize, key: &[u8]) -> Vec<Slot> {
        self.by_key.get(&(db, key.to_vec())).cloned().unwrap_or_default()
    }

    /// The clients whose time is up.
    pub fn timed_out(&self, now_ms: u64) -> Vec<Slot> {
        let due = self.deadlines.iter().take_while(|(deadline_ms, _)| *deadline_ms <= now_ms);
        due.map(|(_, slot)| *slot).collect()
    }

    /// When the next client gives up.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline_ms, _)| *deadline_ms)
    }
}
