//! Comparing two Indexes in time that grows with what differs.
//!
//! Both trees are walked together. Where the bytes are equal, so is everything below, and nothing
//! of it is looked at, nor needs to be here.

use std::borrow::Cow;

use super::{Batch, Fork, Index, Iter, Node, digit, first_key, load_key, shared_digits};
use crate::Error;
use crate::cell::{Cell, Slot, View};

/// A key whose value is not the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference<'a> {
    /// The key's cell, our own where both sides have one.
    pub key: View<'a>,
    /// Our value.
    pub own: Option<View<'a>>,
    /// Their value.
    pub theirs: Option<View<'a>>,
    key_slot: Slot<'a>,
    own_slot: Option<Slot<'a>>,
    their_slot: Option<Slot<'a>>,
}

impl<'a> Difference<'a> {
    /// The bytes of the key that count.
    ///
    /// # Errors
    ///
    /// `Missing` if they are not here.
    pub fn key_bytes(&self) -> Result<Cow<'a, [u8]>, Error> {
        load_key(Slot::Embedded(self.key))
    }

    /// The same difference with another value on their side.
    pub(crate) fn with_theirs<'b>(&self, theirs: View<'b>) -> Difference<'b>
    where
        'a: 'b,
    {
        Difference { theirs: Some(theirs), their_slot: None, ..*self }
    }
}

/// What a merge makes of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Our value, or none where we have none.
    Own,
    /// Their value, or none where they have none.
    Theirs,
    /// No value.
    Remove,
    /// Another value.
    Value(Cell),
}

impl Index {
    /// Hands every difference to `visit`, in the order of the keys.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell that differs is not here, and what `visit` returns.
    pub fn diff<'a>(
        &'a self,
        other: &'a Index,
        visit: &mut dyn FnMut(Difference<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let slot = |index: &'a Index| (!index.is_empty()).then(|| index.slot());
        if self.0 == other.0 {
            return Ok(());
        }
        Walk { visit }.pair(slot(self), slot(other))
    }

    /// The Index with what `decide` says of every difference.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell that differs is not here, and what `decide` returns.
    pub fn merge(
        &self,
        other: &Index,
        decide: &mut dyn FnMut(&Difference<'_>) -> Result<Decision, Error>,
    ) -> Result<Index, Error> {
        // The result is a change of ours, or, if theirs holds much more, of theirs: taking all of a
        // large Index costs no rebuilding of it. Where theirs is not complete, the equal parts have
        // to come from ours.
        let from_theirs = self.count() < other.count() / 2 && other.0.is_complete();
        let (base, stays) =
            if from_theirs { (other, Decision::Theirs) } else { (self, Decision::Own) };
        let mut batch = Batch::new();
        self.diff(other, &mut |it| {
            let decision = if it.own == it.theirs { Decision::Own } else { decide(&it)? };
            if decision == stays {
                return Ok(());
            }
            let slot = match &decision {
                Decision::Own => it.own_slot,
                Decision::Theirs => it.their_slot,
                Decision::Remove => None,
                Decision::Value(cell) => return batch.put(it.key, |writer| writer.cell(cell)),
            };
            match slot {
                Some(value) => batch.put_slots(it.key_slot, value)?,
                None => batch.remove(&it.key_bytes()?),
            }
            Ok(())
        })?;
        base.update(&batch)
    }
}

struct Walk<'v, 'a> {
    visit: &'v mut dyn FnMut(Difference<'a>) -> Result<(), Error>,
}

/// A node on one side, with the first of its keys and where they part. A single entry parts behind
/// its last digit, into nothing.
struct Side<'a> {
    slot: Slot<'a>,
    node: Node<'a>,
    key: Cow<'a, [u8]>,
    fork: Fork,
}

impl<'a> Side<'a> {
    fn of(slot: Slot<'a>) -> Result<Side<'a>, Error> {
        let view = slot.view()?;
        let mut node = Node::of(view);
        let key = first_key(view)?;
        let fork = node.fork().unwrap_or(Fork { depth: 2 * key.len(), mask: 0 });
        Ok(Side { slot, node, key, fork })
    }
}

impl<'a> Walk<'_, 'a> {
    fn pair(&mut self, own: Option<Slot<'a>>, theirs: Option<Slot<'a>>) -> Result<(), Error> {
        match (own, theirs) {
            (Some(own), Some(theirs)) if own == theirs => Ok(()),
            (Some(own), Some(theirs)) => self.both(Side::of(own)?, Side::of(theirs)?),
            (Some(own), None) => self.all(own, true),
            (None, Some(theirs)) => self.all(theirs, false),
            (None, None) => Ok(()),
        }
    }

    fn both(&mut self, mut own: Side<'a>, mut theirs: Side<'a>) -> Result<(), Error> {
        let depth = own.fork.depth.min(theirs.fork.depth);
        if shared_digits(&own.key, &theirs.key) < depth {
            let (first, second) = if own.key < theirs.key {
                ((own.slot, true), (theirs.slot, false))
            } else {
                ((theirs.slot, false), (own.slot, true))
            };
            self.all(first.0, first.1)?;
            return self.all(second.0, second.1);
        }
        // The side that parts later lies, as a whole, in one place of the other.
        let place = |side: &Side<'a>| {
            (depth < side.fork.depth).then(|| (digit(&side.key, depth), side.slot))
        };
        let whole = (place(&own), place(&theirs));
        let entry = |side: &Side<'a>| if depth < side.fork.depth { None } else { side.node.entry };
        self.entries(entry(&own), entry(&theirs))?;
        for at in 0..16 {
            let child = |side: &mut Side<'a>, whole: Option<(usize, Slot<'a>)>| match whole {
                Some((place, slot)) => (place == at).then_some(slot),
                None if side.fork.mask >> at & 1 == 1 => side.node.slots.next(),
                None => None,
            };
            let pair = (child(&mut own, whole.0), child(&mut theirs, whole.1));
            self.pair(pair.0, pair.1)?;
        }
        Ok(())
    }

    fn entries(
        &mut self,
        own: Option<(Slot<'a>, Slot<'a>)>,
        theirs: Option<(Slot<'a>, Slot<'a>)>,
    ) -> Result<(), Error> {
        if own == theirs {
            return Ok(());
        }
        let (key_slot, _) = own.or(theirs).expect("one of two that differ is there");
        let load = |entry: Option<(Slot<'a>, Slot<'a>)>| entry.map(|it| it.1.view()).transpose();
        (self.visit)(Difference {
            key: key_slot.view()?,
            own: load(own)?,
            theirs: load(theirs)?,
            key_slot,
            own_slot: own.map(|(_, value)| value),
            their_slot: theirs.map(|(_, value)| value),
        })
    }

    /// Everything below a node that the other side does not have.
    fn all(&mut self, slot: Slot<'a>, is_own: bool) -> Result<(), Error> {
        let mut iter = Iter::below(slot.view()?);
        while let Some((key, value)) = iter.step()? {
            let entry = Some((key, value));
            let (own, theirs) = if is_own { (entry, None) } else { (None, entry) };
            self.entries(own, theirs)?;
        }
        Ok(())
    }
}
