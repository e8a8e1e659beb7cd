//! Signed replicas: what an owner says its databases hold, and whom to believe.
//!
//! Every owner publishes its merged state of a database as one signed Index, its *slot*. A node
//! keeps the newest slot of every owner, passes them on as they are, and takes into its own state
//! what its trusted owners hold. Two layouts exist, and both may stand in one region:
//!
//! ```text
//! Seed      :kv / database / owner -> signed(Index key -> entry)     "no expiry" is 0
//! Convex    :kv / owner -> signed({database -> Index key -> entry})  "no expiry" is nil
//! ```
//!
//! The seed's layout does not sign the name of the database, nor says which of two versions is
//! newer. So each Index that we publish has one entry more, the [`Manifest`]: database, sequence
//! number, incarnation of the writer, and what the writer has seen of others.
//!
//! What came from outside is [`Received`]; only [`Received::verify`] makes it [`Verified`], and
//! nothing else is ever merged or passed on. A refused slot says why ([`Refusal`]) and touches
//! nobody else's.
//!
//! Read this, then [`manifest`], [`region`], [`absorb`]. Format: `docs/format/replica.md`.

pub mod absorb;
pub mod manifest;
pub mod publish;
pub mod region;
pub mod trust;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::Error;
use crate::cell::{Cell, Form, Slot, View};
use crate::index::{Index, KEY_BYTES_MAX};
use crate::sign::{self, Owner};

pub use absorb::{Absorbed, Verdict, absorb};
pub use manifest::{MANIFEST_KEY, Manifest};
pub use publish::Publisher;
pub use region::{Outcome, Place, Region};
pub use trust::{Standing, Trust};

/// The databases that one owner may have.
pub const DATABASES_MAX: usize = 1_024;

/// What is signed, and how "no expiry" is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// One signature for each database.
    Seed,
    /// One signature for all databases of an owner, as released Convex nodes have it.
    Convex,
}

/// How much is taken from one owner.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most entries in one slot.
    pub entries_max: u64,
    /// The most slots in a region, of all owners together.
    pub slots_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { entries_max: 100_000_000, slots_max: 10_000 }
    }
}

/// Why a slot was refused. Each is counted by its own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The value is not of the form that its place asks for.
    Shape,
    /// The owner in the path is not the signer.
    Owner,
    /// The signature does not hold.
    Signature,
    /// Some of it did not come along.
    Incomplete,
    /// It exceeds a limit.
    TooLarge,
    /// It has no manifest, or one for another database.
    Manifest,
    /// The owner is revoked.
    Revoked,
}

impl Reason {
    /// The stable word for counters.
    pub const fn word(self) -> &'static str {
        match self {
            Reason::Shape => "shape",
            Reason::Owner => "owner",
            Reason::Signature => "signature",
            Reason::Incomplete => "incomplete",
            Reason::TooLarge => "too-large",
            Reason::Manifest => "manifest",
            Reason::Revoked => "revoked",
        }
    }
}

/// A slot that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The owner in the path, if there was one.
    pub owner: Option<Owner>,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Some(owner) => write!(to, "slot of {owner} refused: {}", self.reason.word()),
            None => write!(to, "slot without an owner refused: {}", self.reason.word()),
        }
    }
}

/// A slot as it came. Nothing in it is to be believed yet.
#[derive(Clone, Debug)]
pub struct Received {
    place: Place,
    signed: Cell,
}

/// One database of an owner.
#[derive(Clone, Debug)]
pub struct Store {
    /// The name of the database.
    pub database: Vec<u8>,
    /// Its entries, and the manifest.
    pub index: Index,
    /// The manifest, if there is one. In the seed's layout there always is.
    pub manifest: Option<Manifest>,
}

/// A slot whose owner, signature, form and bounds were checked, or which we signed ourselves.
#[derive(Clone, Debug)]
pub struct Verified {
    place: Place,
    signed: Cell,
    stores: Vec<Store>,
}

impl Received {
    /// A slot at `place`.
    pub fn new(place: Place, signed: Cell) -> Received {
        Received { place, signed }
    }

    /// Where it stood.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Checks that the owner signed it, and that it has the form and bounds of its place.
    ///
    /// # Errors
    ///
    /// The refusal names the owner and the reason.
    pub fn verify(self, limits: &Limits) -> Result<Verified, Refusal> {
        let owner = *self.place.owner();
        let stores =
            self.stores(limits).map_err(|reason| Refusal { owner: Some(owner), reason })?;
        Ok(Verified { place: self.place, signed: self.signed, stores })
    }

    fn stores(&self, limits: &Limits) -> Result<Vec<Store>, Reason> {
        let (key, _, _) = self.signed.view().signed_parts().ok_or(Reason::Shape)?;
        if key != self.place.owner().as_bytes() {
            return Err(Reason::Owner);
        }
        let (_, value) = sign::verify(self.signed.view()).map_err(|_| Reason::Signature)?;
        if !self.signed.is_complete() {
            return Err(Reason::Incomplete);
        }
        match &self.place {
            Place::Database(database, _) => {
                let store = store(database, index_of(value)?, limits)?;
                if store.manifest.is_none() {
                    return Err(Reason::Manifest);
                }
                Ok(vec![store])
            }
            Place::Owner(_) => {
                let map = value.view().map_err(|_| Reason::Incomplete)?;
                let entries = map.map_entries(DATABASES_MAX).map_err(reason_of)?;
                let read = |(name, value): (View<'_>, View<'_>)| {
                    let name = database_name(name).ok_or(Reason::Shape)?;
                    store(&name, index_of(Slot::Embedded(value))?, limits)
                };
                entries.into_iter().map(read).collect()
            }
        }
    }
}

/// The name of a database, if the value can be one.
fn database_name(name: View<'_>) -> Option<Vec<u8>> {
    let name = name.as_string(KEY_BYTES_MAX).ok().flatten()?;
    (!name.is_empty()).then(|| name.into_owned())
}

fn reason_of(error: Error) -> Reason {
    match error {
        Error::TooLarge { .. } => Reason::TooLarge,
        Error::Missing { .. } => Reason::Incomplete,
        _ => Reason::Shape,
    }
}

fn index_of(slot: Slot<'_>) -> Result<Index, Reason> {
    let cell = match slot {
        Slot::Branch(_, Some(cell)) => cell.clone(),
        Slot::Branch(_, None) => return Err(Reason::Incomplete),
        Slot::Embedded(view) => view.to_cell(),
    };
    Index::from_cell(cell).map_err(|_| Reason::Shape)
}

fn store(database: &[u8], index: Index, limits: &Limits) -> Result<Store, Reason> {
    if limits.entries_max < index.count() {
        return Err(Reason::TooLarge);
    }
    let manifest = match index.get(MANIFEST_KEY).map_err(reason_of)? {
        Some(entry) => Some(Manifest::decode(entry).ok_or(Reason::Manifest)?),
        None => None,
    };
    if manifest.as_ref().is_some_and(|it| it.database != database) {
        return Err(Reason::Manifest);
    }
    Ok(Store { database: database.to_vec(), index, manifest })
}

impl Verified {
    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Who signed it.
    pub fn owner(&self) -> &Owner {
        self.place.owner()
    }

    /// The signed data, to be passed on as it is.
    pub fn signed(&self) -> &Cell {
        &self.signed
    }

    /// The databases in it: one in the seed's layout, any number in Convex's.
    pub fn stores(&self) -> &[Store] {
        &self.stores
    }

    /// The largest sequence number in it.
    pub fn sequence(&self) -> Option<u64> {
        self.stores.iter().filter_map(|it| it.manifest.as_ref()).map(|it| it.sequence).max()
    }
}

/// The stamp of an entry, if it has the form of one: `[value type stamp expire ..]`.
fn stamp_of(entry: View<'_>) -> Option<i64> {
    match entry.form() {
        Form::Vector(4..=16) => entry.slots().nth(2)?.view().ok()?.as_int(),
        _ => None,
    }
}
