//! An owner's own slot: changes in, a signed Index out.

use std::collections::BTreeMap;

use super::manifest::{RESERVED_PREFIX, SEEN_MAX};
use super::{Layout, MANIFEST_KEY, Manifest, Place, Store, Verified};
use crate::Error;
use crate::cell::{Cell, Form, View, Writer};
use crate::index::{Batch, Entry, Index};
use crate::sign::{Owner, Signer};

/// Publishes one database of one owner.
///
/// Invariant: no two publications have the same sequence.
#[derive(Debug)]
pub struct Publisher {
    signer: Signer,
    database: Vec<u8>,
    incarnation: u64,
    index: Index,
    sequence: u64,
}

impl Publisher {
    /// A publisher of an empty database. `incarnation` is drawn at random once for the state that
    /// is behind it.
    pub fn new(signer: Signer, database: &[u8], incarnation: u64) -> Publisher {
        let index = Index::new();
        Publisher { signer, database: database.to_vec(), incarnation, index, sequence: 0 }
    }

    /// Goes on from a slot of our own that a store or a peer kept. To be called before the first
    /// publication, with the newest there is, or a wiped node would publish less than it had.
    pub fn resume(&mut self, own: &Verified) {
        assert!(*own.owner() == self.signer.owner(), "only its own slot can be resumed");
        if let Some(store) = own.stores().iter().find(|it| it.database == self.database) {
            let sequence = store.manifest.as_ref().map_or(0, |it| it.sequence);
            if self.sequence <= sequence {
                self.sequence = sequence;
                self.index = store.index.clone();
            }
        }
    }

    /// The Index as last published, manifest included.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The sequence of the last publication; 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Signs the state after the changes in `batch`, which gets one more: the manifest. `seen` says
    /// how far other owners are merged in; beyond [`SEEN_MAX`] of them, the rest is left out.
    ///
    /// # Errors
    ///
    /// `Missing` if the Index is not complete where it changes.
    pub fn publish(
        &mut self,
        batch: &mut Batch,
        seen: &BTreeMap<Owner, u64>,
        now_ms: u64,
    ) -> Result<Verified, Error> {
        let index = self.index.clone();
        self.publish_from(&index, batch, seen, now_ms)
    }

    /// As `publish`, for a state that was kept elsewhere and takes the place of the last one.
    ///
    /// # Errors
    ///
    /// `Missing` if the Index is not complete where the manifest stands.
    pub fn publish_state(
        &mut self,
        state: &Index,
        seen: &BTreeMap<Owner, u64>,
        now_ms: u64,
    ) -> Result<Verified, Error> {
        self.publish_from(state, &mut Batch::new(), seen, now_ms)
    }

    fn publish_from(
        &mut self,
        state: &Index,
        batch: &mut Batch,
        seen: &BTreeMap<Owner, u64>,
        now_ms: u64,
    ) -> Result<Verified, Error> {
        let sequence = now_ms.max(self.sequence + 1);
        let manifest = Manifest {
            database: self.database.clone(),
            sequence,
            incarnation: self.incarnation,
            seen: seen.iter().take(SEEN_MAX).map(|(owner, it)| (*owner, *it)).collect(),
        };
        batch.put_string(MANIFEST_KEY, |writer| manifest.write(writer, Layout::Seed));
        self.index = state.update(batch)?;
        self.sequence = sequence;
        let store = Store {
            database: self.database.clone(),
            index: self.index.clone(),
            manifest: Some(manifest),
        };
        Ok(Verified {
            place: Place::Database(self.database.clone(), self.signer.owner()),
            signed: self.signer.sign(self.index.cell()),
            stores: vec![store],
        })
    }
}

/// Whether `key` may not be written by a user.
pub fn is_reserved(key: &[u8]) -> bool {
    key.starts_with(RESERVED_PREFIX)
}

/// Brings an owner's databases into Convex's layout, under one signature, and keeps up with them at
/// the cost of what changed.
#[derive(Debug, Default)]
pub struct Converter {
    /// Per database: the Index as published, and the same with nil for "no expiry".
    databases: BTreeMap<Vec<u8>, (Index, Index)>,
}

impl Converter {
    /// The slot in Convex's layout, of all databases handed over so far. `slot` is one of our own.
    ///
    /// # Errors
    ///
    /// `Missing` if an Index is not complete.
    pub fn convert(&mut self, slot: &Verified, signer: &Signer) -> Result<Verified, Error> {
        assert!(*slot.owner() == signer.owner(), "only our own slots are signed anew");
        for store in slot.stores() {
            let (from, to) = self.databases.entry(store.database.clone()).or_default();
            let mut batch = Batch::new();
            from.diff(&store.index, &mut |it| {
                match it.theirs {
                    // What four elements cannot say, or Convex does not know.
                    Some(entry) if needs_form(entry) => {
                        let cell = crate::entry::Entry::decode(entry)?.encode_for_convex()?;
                        batch.put(it.key, |writer| writer.cell(&cell))?;
                    }
                    Some(entry) => {
                        batch.put(it.key, |writer| write_expiry(writer, entry, false))?;
                    }
                    None => batch.remove(&it.key_bytes()?),
                }
                Ok(())
            })?;
            *to = to.update(&batch)?;
            *from = store.index.clone();
        }
        let mut stores = Vec::new();
        for (database, (_, index)) in &self.databases {
            let manifest = index.get(MANIFEST_KEY)?.and_then(Manifest::decode);
            stores.push(Store { database: database.clone(), index: index.clone(), manifest });
        }
        let map = Cell::map(
            stores.iter().map(|it| (Cell::string(&it.database), it.index.cell().clone())),
        );
        Ok(Verified { place: Place::Owner(signer.owner()), signed: signer.sign(&map), stores })
    }
}

/// An Index in Convex's layout as one in the seed's: 0 for "no expiry".
///
/// # Errors
///
/// `Missing` if it is not complete.
pub fn from_convex(index: &Index) -> Result<Index, Error> {
    let mut batch = Batch::new();
    for entry in index {
        let Entry { key, value } = entry?;
        batch.put(key, |writer| write_expiry(writer, value, true))?;
    }
    Index::new().update(&batch)
}

/// Whether an entry is one of ours with an extension, or a list by positions.
fn needs_form(entry: View<'_>) -> bool {
    const LIST: i64 = 6;
    let kind = entry.slots().nth(1).and_then(|it| it.view().ok());
    super::stamp_of(entry).is_some()
        && (entry.form() == Form::Vector(5) || kind.and_then(View::as_int) == Some(LIST))
}

/// Appends an entry with "no expiry" written as 0 or as nil. Anything else stays as it is.
fn write_expiry(writer: &mut Writer, entry: View<'_>, as_zero: bool) {
    let is_entry = super::stamp_of(entry).is_some() && entry.bytes()[1] == 4;
    let expiry = is_entry.then(|| entry.slots().nth(3).and_then(|it| it.view().ok())).flatten();
    if !expiry.is_some_and(|it| it.is_nil() || it.as_int() == Some(0)) {
        writer.view(entry);
        return;
    }
    writer.short_vector(4, |writer| {
        entry.slots().take(3).for_each(|slot| writer.slot(slot));
        if as_zero {
            writer.int(0);
        } else {
            writer.nil();
        }
    });
}
