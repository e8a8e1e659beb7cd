//! The region `:kv` of a node: the newest slot of every owner.

use std::collections::BTreeMap;
use std::collections::btree_map;

use super::{
    DATABASES_MAX, Layout, Limits, Reason, Received, Refusal, Standing, Store, Trust, Verified,
    database_name, stamp_of,
};
use crate::Error;
use crate::cell::{Cell, Form, View};
use crate::index::Index;
use crate::sign::Owner;

/// Where a slot stands in the region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The seed's layout: one database of one owner.
    Database(Vec<u8>, Owner),
    /// Convex's layout: all databases of one owner.
    Owner(Owner),
}

impl Place {
    /// Whose slot it is.
    pub fn owner(&self) -> &Owner {
        match self {
            Place::Database(_, owner) | Place::Owner(owner) => owner,
        }
    }

    /// The layout of the slot.
    pub fn layout(&self) -> Layout {
        match self {
            Place::Database(..) => Layout::Seed,
            Place::Owner(_) => Layout::Convex,
        }
    }
}

/// What became of a slot that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is the one we have.
    Same,
    /// We have a newer one.
    Older,
    /// It took its place.
    Taken,
    /// The owner signed two states of which neither follows the other. `taken` says which one is kept: the
    /// one with the larger id, so that all nodes keep the same.
    Forked {
        /// Whether the offered one is kept.
        taken: bool,
    },
}

/// The newest slot of every owner, as far as we were told.
#[derive(Clone, Debug, Default)]
pub struct Region {
    slots: BTreeMap<Place, Verified>,
}

impl Region {
    /// No slots.
    pub fn new() -> Region {
        Region::default()
    }

    /// The slots in a value of `:kv`, as it came: those that have a place, and refusals for others.
    /// Both layouts may be mixed. What follows is one offer per slot, so that one bad owner does
    /// not stop another.
    pub fn received(kv: View<'_>, limits: &Limits) -> (Vec<Received>, Vec<Refusal>) {
        let mut found = (Vec::new(), Vec::new());
        let refuse = |owner, reason| Refusal { owner, reason };
        let entries = match kv.map_entries(limits.slots_max) {
            Ok(entries) => entries,
            Err(error) => {
                found.1.push(refuse(None, super::reason_of(error)));
                return found;
            }
        };
        for (key, value) in entries {
            if let Some(owner) = key.as_blob32() {
                let place = Place::Owner(Owner::from_bytes(*owner));
                found.0.push(Received::new(place, value.to_cell()));
                continue;
            }
            let (Some(name), Ok(owners)) =
                (database_name(key), value.map_entries(limits.slots_max))
            else {
                found.1.push(refuse(None, Reason::Shape));
                continue;
            };
            for (owner, signed) in owners {
                match owner.as_blob32() {
                    Some(owner) => {
                        let place = Place::Database(name.clone(), Owner::from_bytes(*owner));
                        found.0.push(Received::new(place, signed.to_cell()));
                    }
                    None => found.1.push(refuse(None, Reason::Shape)),
                }
            }
        }
        found
    }

    /// Verifies a slot and takes it if it is newer than what is here.
    ///
    /// # Errors
    ///
    /// The refusal says what is wrong with it. Nothing has changed then.
    pub fn offer(
        &mut self,
        received: Received,
        trust: &Trust,
        limits: &Limits,
    ) -> Result<Outcome, Refusal> {
        let owner = Some(*received.place.owner());
        if trust.standing(received.place.owner()) == Standing::Revoked {
            return Err(Refusal { owner, reason: Reason::Revoked });
        }
        let here = self.slots.get(&received.place);
        if here.is_some_and(|here| here.signed == received.signed) {
            return Ok(Outcome::Same);
        }
        if here.is_none() && limits.slots_max <= self.slots.len() {
            return Err(Refusal { owner, reason: Reason::TooLarge });
        }
        Ok(self.take(received.verify(limits)?))
    }

    /// Takes a verified slot if it is newer than what is here.
    pub fn take(&mut self, slot: Verified) -> Outcome {
        match self.slots.entry(slot.place.clone()) {
            btree_map::Entry::Vacant(place) => {
                place.insert(slot);
                Outcome::Taken
            }
            btree_map::Entry::Occupied(mut place) => {
                let outcome = compare(place.get(), &slot);
                if matches!(outcome, Outcome::Taken | Outcome::Forked { taken: true }) {
                    place.insert(slot);
                }
                outcome
            }
        }
    }

    /// Forgets the slots of an owner, after its revocation.
    pub fn forget(&mut self, owner: &Owner) {
        self.slots.retain(|place, _| place.owner() != owner);
    }

    /// The slot at a place.
    pub fn get(&self, place: &Place) -> Option<&Verified> {
        self.slots.get(place)
    }

    /// All slots.
    pub fn iter(&self) -> impl Iterator<Item = &Verified> {
        self.slots.values()
    }

    /// What the owners hold of a database, in either layout.
    pub fn stores(&self, database: &[u8]) -> impl Iterator<Item = (&Verified, &Store)> {
        self.slots.values().flat_map(move |slot| {
            slot.stores.iter().filter(move |it| it.database == database).map(move |it| (slot, it))
        })
    }

    /// The value of `:kv`, for peers of a layout: all slots, or those that a Convex node knows.
    pub fn cell(&self, layout: Layout) -> Cell {
        let mut entries: Vec<(Cell, Cell)> = Vec::new();
        let mut databases: BTreeMap<&[u8], Vec<(Cell, Cell)>> = BTreeMap::new();
        for (place, slot) in &self.slots {
            let entry = (place.owner().cell(), slot.signed.clone());
            match place {
                Place::Owner(_) => entries.push(entry),
                Place::Database(name, _) if layout == Layout::Seed => {
                    databases.entry(name).or_default().push(entry);
                }
                Place::Database(..) => {}
            }
        }
        let database = |(name, owners)| (Cell::string(name), Cell::map(owners));
        entries.extend(databases.into_iter().map(database));
        Cell::map(entries)
    }

    /// The root: an Index with the one region `:kv`, or nil if there is no slot in it.
    pub fn root(&self, layout: Layout) -> Cell {
        let is_shown = |place: &Place| layout == Layout::Seed || place.layout() == Layout::Convex;
        if !self.slots.keys().any(is_shown) {
            return Cell::nil();
        }
        let root: Index = [(Cell::keyword("kv"), self.cell(layout))].into_iter().collect();
        root.cell().clone()
    }
}

/// Which of two different slots of one place is the newer.
fn compare(here: &Verified, offered: &Verified) -> Outcome {
    if here.signed == offered.signed {
        return Outcome::Same;
    }
    let larger_id = here.signed.id() < offered.signed.id();
    let sequences = |slot: &Verified| -> Option<BTreeMap<Vec<u8>, u64>> {
        let sequence = |it: &Store| Some((it.database.clone(), it.manifest.as_ref()?.sequence));
        slot.stores.iter().map(sequence).collect()
    };
    let newer = match (sequences(here), sequences(offered)) {
        (Some(own), Some(theirs)) => {
            // A database that is not there has sequence 0, which none has that was published.
            let ahead = |own: &BTreeMap<Vec<u8>, u64>, other: &BTreeMap<Vec<u8>, u64>| {
                own.iter().any(|(name, sequence)| other.get(name).unwrap_or(&0) < sequence)
            };
            let (own_ahead, theirs_ahead) = (ahead(&own, &theirs), ahead(&theirs, &own));
            if own_ahead == theirs_ahead {
                return Outcome::Forked { taken: larger_id };
            }
            theirs_ahead
        }
        // Without sequence numbers the newest stamp among the differences decides.
        _ => match newest_stamps(here, offered) {
            Ok((own, theirs)) if own != theirs => own < theirs,
            _ => larger_id,
        },
    };
    if newer { Outcome::Taken } else { Outcome::Older }
}

/// The newest stamp on each side among the entries that are not the same.
fn newest_stamps(here: &Verified, offered: &Verified) -> Result<(i64, i64), Error> {
    let mut newest = (i64::MIN, i64::MIN);
    let empty = Index::new();
    let find = |slot: &Verified, database: &[u8]| {
        slot.stores.iter().find(|it| it.database == database).map(|it| it.index.clone())
    };
    let names = here.stores.iter().chain(&offered.stores).map(|it| &it.database);
    assert!(names.clone().count() <= 2 * DATABASES_MAX, "a verified slot is within its bounds");
    for name in names {
        let own = find(here, name).unwrap_or_else(|| empty.clone());
        let theirs = find(offered, name).unwrap_or_else(|| empty.clone());
        own.diff(&theirs, &mut |it| {
            let stamp = |entry: Option<View<'_>>| entry.and_then(stamp_of).unwrap_or(i64::MIN);
            newest = (newest.0.max(stamp(it.own)), newest.1.max(stamp(it.theirs)));
            Ok(())
        })?;
    }
    Ok(newest)
}

/// The value of `:kv` in a root, if it has one.
///
/// # Errors
///
/// `Encoding` if it is not a root, `Missing` if the way there is not complete.
pub fn kv_of(root: &Cell) -> Result<Option<Cell>, Error> {
    if root.view().form() == Form::Nil {
        return Ok(None);
    }
    let root = Index::from_cell(root.clone())?;
    Ok(root.get(b"kv")?.map(View::to_cell))
}
