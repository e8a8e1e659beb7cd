//! Watched keys: EXEC refuses if one of them was changed since WATCH.

use hashbrown::HashMap;

use super::Clients;
use super::blocking::DbKey;
use crate::client::{Client, Slot};

/// Who watches which key.
#[derive(Debug, Default)]
pub struct Watching {
    by_key: HashMap<DbKey, Vec<Slot>>,
}

impl Watching {
    /// Whether nobody watches anything.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// A client begins to watch a key.
    pub fn add(&mut self, client: &mut Client, db: usize, key: &[u8]) {
        if client.watches.keys.iter().any(|(at, it)| *at == db && it == key) {
            return;
        }
        client.watches.keys.push((db, key.to_vec()));
        self.by_key.entry((db, key.to_vec())).or_default().push(Slot(client.slot));
    }

    /// A client watches nothing any more.
    pub fn clear(&mut self, client: &mut Client) {
        for (db, key) in std::mem::take(&mut client.watches).keys {
            let place = (db, key);
            if let Some(slots) = self.by_key.get_mut(&place) {
                slots.retain(|it| it.0 != client.slot);
                if slots.is_empty() {
                    self.by_key.remove(&place);
                }
            }
        }
    }

    /// A key was changed.
    pub fn touch(
        &self,
        db: usize,
        key: &[u8],
        clients: &mut Clients,
        mut current: Option<&mut Client>,
    ) {
        let Some(slots) = self.by_key.get(&(db, key.to_vec())) else { return };
        for slot in slots {
            mark(*slot, clients, current.as_deref_mut());
        }
    }

    /// Many keys of a database were changed at once; `changed` tells which.
    pub fn touch_all(
        &self,
        clients: &mut Clients,
        mut current: Option<&mut Client>,
        changed: &dyn Fn(usize, &[u8]) -> bool,
    ) {
        for ((db, key), slots) in &self.by_key {
            if changed(*db, key) {
                for slot in slots {
                    mark(*slot, clients, current.as_deref_mut());
                }
            }
        }
    }
}

fn mark(slot: Slot, clients: &mut Clients, current: Option<&mut Client>) {
    match current {
        Some(client) if client.slot == slot.0 => client.watches.touched = true,
        _ => {
            if let Some(client) = clients.get_mut(slot) {
                client.watches.touched = true;
            }
        }
    }
}
