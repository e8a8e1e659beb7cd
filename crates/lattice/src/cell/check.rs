//! What makes an encoding canonical beyond its layout: children of the right form and size, keys
//! in order, forks where keys part.
//!
//! Run on every foreign cell, with the branches that are at hand. A branch that is absent is
//! believed for now; when it arrives, the cell around it is made anew and checked again.

use super::head::{
    BLOB, Head, INDEX, LEAF_COUNT_MAX, LIST, MAP, NIL, SET, STRING, SYNTAX, Slot, Slots, VECTOR,
    bad, checked, head, text_child_size, vector_child_count,
};
use super::read::key_bytes;
use super::{Id, View, digit};
use crate::Error;

/// Checks a cell whose layout [`super::head::refs`] has measured.
pub(crate) fn check(view: View<'_>) -> Result<(), Error> {
    let head = head(view.bytes)?;
    match head.tag {
        STRING | BLOB if 0 < head.slots => check_text(view, &head),
        VECTOR | LIST | 0xd0..=0xdf => check_vector(view, &head),
        MAP | SET if head.count <= LEAF_COUNT_MAX => check_map_leaf(view, &head),
        MAP | SET => check_map_tree(view, &head),
        INDEX if 0 < head.count => check_index(view, &head),
        SYNTAX => {
            let mut slots = Slots::after(view, &head);
            let metadata = slots.nth(1).and_then(Slot::get);
            if metadata
                .is_some_and(|it| it.bytes[0] != NIL && (it.bytes[0] != MAP || it.bytes[1] == 0))
            {
                return bad("metadata is not a map with entries, nor nil");
            }
            check_embedded(view, &head)
        }
        _ => check_embedded(view, &head),
    }
}

/// Branches were checked when they were made; what lies embedded is checked with its cell.
fn check_embedded(view: View<'_>, head: &Head) -> Result<(), Error> {
    Slots::after(view, head).try_for_each(check_slot)
}

fn check_slot(slot: Slot<'_>) -> Result<(), Error> {
    match slot {
        Slot::Embedded(view) => check(view),
        Slot::Branch(..) => Ok(()),
    }
}

fn check_text(view: View<'_>, top: &Head) -> Result<(), Error> {
    let child_size = text_child_size(top.count);
    let mut left = top.count;
    for slot in Slots::after(view, top) {
        check_slot(slot)?;
        let size = left.min(child_size);
        if let Some(child) = slot.get() {
            let child = head(child.bytes)?;
            if child.tag != BLOB || child.count != size {
                return bad("piece of a text has a wrong form or size");
            }
        }
        left -= size;
    }
    Ok(())
}

fn check_vector(view: View<'_>, top: &Head) -> Result<(), Error> {
    let is_tree = 16 < top.count && top.count.is_multiple_of(16);
    let elements = if is_tree || top.count <= 16 { top.slots } else { top.slots - 1 };
    let mut left = top.count;
    for (index, slot) in Slots::after(view, top).enumerate() {
        check_slot(slot)?;
        let count = match is_tree {
            true => left.min(vector_child_count(top.count)),
            false if index < elements => continue,
            false => top.count - elements as u64,
        };
        if let Some(child) = slot.get() {
            let child = head(child.bytes)?;
            if child.tag != VECTOR || child.count != count {
                return bad("piece of a vector has a wrong form or count");
            }
        }
        left -= count;
    }
    Ok(())
}

fn check_map_leaf(view: View<'_>, top: &Head) -> Result<(), Error> {
    let stride = if top.tag == MAP { 2 } else { 1 };
    let mut last: Option<Id> = None;
    for (index, slot) in Slots::after(view, top).enumerate() {
        check_slot(slot)?;
        if index % stride == 0 {
            let id = slot.id();
            if last.is_some_and(|last| id <= last) {
                return bad("keys of a map are out of order");
            }
            last = Some(id);
        }
    }
    Ok(())
}

fn check_map_tree(view: View<'_>, top: &Head) -> Result<(), Error> {
    let (shift, mask) = map_fork(view.bytes, top);
    let mut digits = (0..16).filter(|digit| mask >> digit & 1 == 1);
    let mut sum = Some(0_u64);
    let mut prefix: Option<Id> = None;
    for slot in Slots::after(view, top) {
        check_slot(slot)?;
        let digit = digits.next().expect("a slot for each bit of the mask");
        let Some(child) = slot.get() else {
            sum = None;
            continue;
        };
        let child_head = head(child.bytes)?;
        if child_head.tag != top.tag || child_head.count == 0 {
            return bad("piece of a map has a wrong form");
        }
        if LEAF_COUNT_MAX < child_head.count && map_fork(child.bytes, &child_head).0 <= shift {
            return bad("piece of a map forks above its parent");
        }
        sum = sum.and_then(|sum| sum.checked_add(child_head.count));
        for id in [map_edge(child, false), map_edge(child, true)].into_iter().flatten() {
            let shared = prefix.get_or_insert(id);
            if id.digit(shift) != digit || (0..shift).any(|at| id.digit(at) != shared.digit(at)) {
                return bad("key of a map is in the wrong place");
            }
        }
    }
    if sum.is_some_and(|sum| sum != top.count) {
        return bad("count of a map disagrees with its pieces");
    }
    Ok(())
}

/// The shift and mask of a map or set that is a tree.
pub(crate) fn map_fork(bytes: &[u8], head: &Head) -> (usize, u16) {
    let at = head.size - 3;
    (usize::from(bytes[at]), u16::from_be_bytes([bytes[at + 1], bytes[at + 2]]))
}

/// The id of the first or last key below, if the way to it is here.
fn map_edge(mut view: View<'_>, last: bool) -> Option<Id> {
    loop {
        let head = checked(head(view.bytes));
        let leaf = head.count <= LEAF_COUNT_MAX;
        let stride = if leaf && head.tag == MAP { 2 } else { 1 };
        let at = if last { head.slots - stride } else { 0 };
        let slot = Slots::after(view, &head).nth(at)?;
        if leaf {
            return Some(slot.id());
        }
        view = slot.get()?;
    }
}

fn check_index(view: View<'_>, top: &Head) -> Result<(), Error> {
    let mut slots = Slots::after(view, top);
    let mut first_key = None;
    if 0 < top.slots {
        let key = slots.next().expect("an entry has a key");
        let value = slots.next().expect("an entry has a value");
        check_slot(key)?;
        check_slot(value)?;
        if let Some(key) = key.get() {
            let Some(key) = key_bytes(key)? else {
                return Ok(());
            };
            first_key = Some(key);
        }
    }
    if !top.forks {
        return Ok(());
    }
    let (depth, mask) = slots.fork();
    if mask.count_ones() < if top.slots == 0 { 2 } else { 1 } {
        return bad("index node does not fork");
    }
    if first_key.as_ref().is_some_and(|key| 2 * key.len() != depth) {
        return bad("entry of an index is in the wrong place");
    }
    let mut digits = (0..16).filter(|digit| mask >> digit & 1 == 1);
    let mut sum = Some(u64::from(top.slots != 0));
    for slot in slots {
        check_slot(slot)?;
        let place = digits.next().expect("a slot for each bit of the mask");
        let Some(child) = slot.get() else {
            sum = None;
            continue;
        };
        let child_head = head(child.bytes)?;
        if child_head.tag != INDEX || child_head.count == 0 {
            return bad("piece of an index has a wrong form");
        }
        sum = sum.and_then(|sum| sum.checked_add(child_head.count));
        if index_depth(child, &child_head).is_some_and(|it| it <= depth) {
            return bad("piece of an index forks above its parent");
        }
        let Some(key) = index_first_key(child)? else {
            continue;
        };
        if 2 * key.len() <= depth || digit(&key, depth) != place {
            return bad("key of an index is in the wrong place");
        }
        let shared = first_key.get_or_insert_with(|| key.clone());
        if (0..depth).any(|at| digit(&key, at) != digit(shared, at)) {
            return bad("key of an index is in the wrong place");
        }
    }
    if sum.is_some_and(|sum| sum != top.count) {
        return bad("count of an index disagrees with its pieces");
    }
    Ok(())
}

/// Where a node with children forks; nothing for a single entry.
fn index_depth(view: View<'_>, head: &Head) -> Option<usize> {
    head.forks.then(|| {
        let mut slots = Slots::after(view, head);
        for _ in 0..head.slots {
            slots.next();
        }
        slots.fork().0
    })
}

/// The bytes of the first key below that count for its place, if the way to it is here.
fn index_first_key(mut view: View<'_>) -> Result<Option<std::borrow::Cow<'_, [u8]>>, Error> {
    loop {
        let head = checked(head(view.bytes));
        let Some(slot) = Slots::after(view, &head).next().and_then(Slot::get) else {
            return Ok(None);
        };
        if 0 < head.slots {
            return key_bytes(slot);
        }
        view = slot;
    }
}
