//! The connections, each in a place of its own.

use hashbrown::HashMap;

use crate::client::{Client, Slot};

/// The connections.
#[derive(Debug, Default)]
pub struct Clients {
    places: Vec<Option<Box<Client>>>,
    free: Vec<u32>,
    by_id: HashMap<u64, Slot>,
    last_id: u64,
}

impl Clients {
    /// Gives a client its id and its place.
    pub fn add(&mut self, mut client: Client) -> Slot {
        self.last_id += 1;
        client.id = self.last_id;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            (self.places.len() - 1) as u32
        });
        client.slot = slot;
        self.by_id.insert(client.id, Slot(slot));
        self.places[slot as usize] = Some(Box::new(client));
        Slot(slot)
    }

    /// Takes a client out for good.
    pub fn remove(&mut self, slot: Slot) -> Option<Box<Client>> {
        let client = self.take(slot)?;
        self.by_id.remove(&client.id);
        self.free.push(slot.0);
        Some(client)
    }

    /// Takes a client out for the time its command runs.
    pub fn take(&mut self, slot: Slot) -> Option<Box<Client>> {
        self.places.get_mut(slot.0 as usize)?.take()
    }

    /// Puts a client that was taken back.
    pub fn put_back(&mut self, slot: Slot, client: Box<Client>) {
        self.places[slot.0 as usize] = Some(client);
    }

    /// The client in a place.
    pub fn get(&self, slot: Slot) -> Option<&Client> {
        self.places.get(slot.0 as usize)?.as_deref()
    }

    /// The client in a place.
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Client> {
        self.places.get_mut(slot.0 as usize)?.as_deref_mut()
    }

    /// The place of the client with this id.
    pub fn slot_of(&self, id: u64) -> Option<Slot> {
        self.by_id.get(&id).copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// All that are in their places: not the one whose command runs.
    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        self.places.iter().flatten().map(|client| &**client)
    }

    /// All that are in their places: not the one whose command runs.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.places.iter_mut().flatten().map(|client| &mut **client)
    }
}
