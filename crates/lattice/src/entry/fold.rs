//! Turning what commands did to a key into its next state.
//!
//! The live structure knows what a key holds now and which parts of it were touched; the entry
//! knows what was published. The difference, with one new stamp, is the next entry. What was not
//! touched is not looked at, except that a list is walked once.

use std::collections::VecDeque;

use super::position::{Author, between, in_run};
use super::record::{Member, Record, Register, Scored, text_cell, write_text};
use super::{Entry, Shape, Stamp};
use crate::Error;
use crate::cell::{Cell, Id};
use crate::index::{Batch, Index};
use crate::live::{Holds, Item, ListEdit, Touch, Type, parse_int};

/// Who folds: the name of the writer's counter column, and its mark in list positions.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    column: Vec<u8>,
    tag: [u8; 6],
}

impl Fold {
    pub(crate) fn new(column: &[u8]) -> Fold {
        let id = Id::of(column);
        let tag = id.as_bytes()[..6].try_into().expect("an id has 32 bytes");
        Fold { column: column.to_vec(), tag }
    }

    /// The next state of a key whose last state is `old`.
    pub(crate) fn fold(
        &self,
        old: &Entry,
        touch: &Touch,
        item: Option<&Item>,
        find: &dyn Fn(&Item, &[u8]) -> Option<Found>,
    ) -> Result<Entry, Error> {
        let stamp = old.next_stamp(touch.at_ms);
        let shape = old.shape()?;
        let kind = item.map(Item::kind);
        let other_type = matches!((shape, kind), (Some(a), Some(b)) if a.kind() != b);
        if touch.reset || other_type {
            return self.replace(old, stamp, item);
        }
        let mut new = old.clone();
        let part = kind.or(shape.map(Shape::kind));
        match part {
            None => return Ok(new),
            Some(Type::String) => self.text(&mut new, touch, item, stamp)?,
            Some(Type::List) => {
                if !self.list(&mut new, touch, item, stamp)? {
                    return self.replace(old, stamp, item);
                }
            }
            Some(kind) => members(&mut new, kind, touch, item, stamp, find)?,
        }
        let expire_ms = item.map_or(0, |it| it.expire_ms() as i64);
        if new.expiry.1 != expire_ms {
            new.expiry = (stamp, expire_ms);
            new.newest = stamp;
        }
        if item.is_none() && new.shape()?.is_some() {
            // Another type was hidden behind the one that was emptied.
            new.raise(stamp)?;
        }
        Ok(new)
    }

    /// The key was deleted or overwritten: a floor, and above it what is there now.
    fn replace(&self, old: &Entry, stamp: Stamp, item: Option<&Item>) -> Result<Entry, Error> {
        let mut new = old.clone();
        new.reset_counts()?;
        let Some(item) = item else {
            new.raise(stamp)?;
            return Ok(new);
        };
        new.raise(stamp - 1)?;
        new.newest = stamp;
        if item.expire_ms() != 0 {
            new.expiry = (stamp, item.expire_ms() as i64);
        }
        if let Some(text) = item.as_text() {
            new.text = Some((stamp, text_cell(text)));
            return Ok(new);
        }
        let Item::Object(object) = item else { return Ok(new) };
        let mut batch = Batch::new();
        match &object.holds {
            Holds::Text(_) => {}
            Holds::Fields(fields) => {
                for (field, value) in fields.iter() {
                    put_register(&mut batch, field, Some(value), stamp);
                }
                new.hash = new.hash.update(&batch)?;
            }
            Holds::Members(members) => {
                members.each(|member| put_member(&mut batch, &text_cell(member), stamp, 0));
                new.set = new.set.update(&batch)?;
            }
            Holds::Ranking(ranking) => {
                for (member, score) in ranking.range(0, ranking.len()) {
                    put_scored(&mut batch, &text_cell(member), score, stamp, 0);
                }
                new.zset = new.zset.update(&batch)?;
            }
            Holds::Sequence(sequence) => {
                let author = Author { tag: self.tag, stamp };
                let first = between(None, None, author).expect("an empty list has room");
                for (number, element) in sequence.iter().enumerate() {
                    put_element(&mut batch, &in_run(&first, number as u32), Some(element), stamp);
                }
                new.list = new.list.update(&batch)?;
            }
        }
        Ok(new)
    }

    fn text(
        &self,
        new: &mut Entry,
        touch: &Touch,
        item: Option<&Item>,
        stamp: Stamp,
    ) -> Result<(), Error> {
        let Some(text) = item.and_then(Item::as_text) else { return new.raise(stamp) };
        let old = new.shown_text()?;
        if !touch.written && old.as_deref() == Some(text) {
            return Ok(());
        }
        let before = old.as_ref().map_or(Some(0), |it| parse_int(it));
        if let (false, Some(before), Some(now)) = (touch.written, before, parse_int(text))
            && let Some(by) = now.checked_sub(before).filter(|it| *it != 0)
            && new.count_by(&self.column, by, stamp)?
        {
            return Ok(());
        }
        new.reset_counts()?;
        new.text = Some((stamp, text_cell(text)));
        new.newest = stamp;
        Ok(())
    }

    /// False if there was no room for a position, so that the list must be written anew.
    fn list(
        &self,
        new: &mut Entry,
        touch: &Touch,
        item: Option<&Item>,
        stamp: Stamp,
    ) -> Result<bool, Error> {
        let mut slots: VecDeque<Place> = VecDeque::new();
        let mut gone: Vec<Vec<u8>> = Vec::new();
        new.each_element(|position, _| slots.push_back(Place::Old(position.to_vec())))?;
        for edit in &touch.edits {
            if !replay(&mut slots, &mut gone, *edit) {
                return Ok(false);
            }
        }
        let elements: Vec<&[u8]> = match item {
            Some(Item::Object(object)) => match &object.holds {
                Holds::Sequence(sequence) => sequence.iter().collect(),
                _ => return Ok(false),
            },
            Some(Item::Short(_)) => return Ok(false),
            None => Vec::new(),
        };
        if elements.len() != slots.len() {
            return Ok(false);
        }
        let mut batch = Batch::new();
        for position in &gone {
            put_element(&mut batch, position, None, stamp);
        }
        if !self.place(&mut batch, slots.make_contiguous(), &elements, stamp) {
            return Ok(false);
        }
        if 0 < batch.count() {
            new.list = new.list.update(&batch)?;
            new.newest = stamp;
        }
        Ok(true)
    }

    /// Gives every new element a position.
    fn place(&self, batch: &mut Batch, slots: &[Place], elements: &[&[u8]], stamp: Stamp) -> bool {
        let author = Author { tag: self.tag, stamp };
        let mut left: Option<Vec<u8>> = None;
        let mut at = 0;
        while at < slots.len() {
            match &slots[at] {
                Place::Old(position) => {
                    left = Some(position.clone());
                    at += 1;
                }
                Place::Set(position) => {
                    put_element(batch, position, Some(elements[at]), stamp);
                    left = Some(position.clone());
                    at += 1;
                }
                Place::New => {
                    let run = slots[at..].iter().take_while(|it| **it == Place::New).count();
                    let right = match slots.get(at + run) {
                        Some(Place::Old(it) | Place::Set(it)) => Some(&it[..]),
                        _ => None,
                    };
                    let Some(first) = between(left.as_deref(), right, author) else { return false };
                    for number in 0..run {
                        let position = in_run(&first, number as u32);
                        put_element(batch, &position, Some(elements[at + number]), stamp);
                        left = Some(position);
                    }
                    at += run;
                }
            }
        }
        true
    }
}

/// What a live collection says of a field or member.
pub(crate) enum Found {
    /// The field's value.
    Value(Vec<u8>),
    /// The member is in the set.
    Present,
    /// The member's score.
    Score(f64),
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// An element that is published.
    Old(Vec<u8>),
    /// One that is published and got another value.
    Set(Vec<u8>),
    New,
}

/// Does to the positions what a command did to the elements.
fn replay(slots: &mut VecDeque<Place>, gone: &mut Vec<Vec<u8>>, edit: ListEdit) -> bool {
    match edit {
        ListEdit::Insert { index } if index <= slots.len() => slots.insert(index, Place::New),
        ListEdit::Set { index } if index < slots.len() => {
            if let Place::Old(position) = &slots[index] {
                slots[index] = Place::Set(position.clone());
            }
        }
        ListEdit::Del { index, count } if index + count <= slots.len() => {
            for place in slots.drain(index..index + count) {
                if let Place::Old(position) | Place::Set(position) = place {
                    gone.push(position);
                }
            }
        }
        _ => return false,
    }
    true
}

fn put_register(batch: &mut Batch, field: &[u8], value: Option<&[u8]>, stamp: Stamp) {
    batch.put_string(field, |writer| {
        writer.short_vector(2, |writer| {
            match value {
                Some(value) => write_text(writer, value),
                None => writer.nil(),
            }
            writer.int(stamp);
        });
    });
}

fn put_element(batch: &mut Batch, position: &[u8], value: Option<&[u8]>, stamp: Stamp) {
    batch.put_blob(position, |writer| {
        writer.short_vector(2, |writer| {
            match value {
                Some(value) => write_text(writer, value),
                None => writer.nil(),
            }
            writer.int(stamp);
        });
    });
}

fn put_member(batch: &mut Batch, member: &Cell, add: Stamp, remove: Stamp) {
    let record = Member { member: member.view(), add, remove };
    batch.put_blob(member.id().as_bytes(), |writer| record.write(writer));
}

fn put_scored(batch: &mut Batch, member: &Cell, score: f64, add: Stamp, remove: Stamp) {
    let record = Scored { member: member.view(), score, add, remove };
    batch.put_blob(member.id().as_bytes(), |writer| record.write(writer));
}

/// The cells that a client may mean by a member's text: the text itself, and the integer.
fn meanings(index: &Index, text: &[u8]) -> Result<Vec<Cell>, Error> {
    let mut cells = vec![text_cell(text)];
    if let Some(n) = parse_int(text) {
        let int = Cell::int(n);
        if index.get(int.id().as_bytes())?.is_some() {
            cells.insert(0, int);
        }
    }
    Ok(cells)
}

/// Brings the touched fields or members up to what the live collection holds.
fn members(
    new: &mut Entry,
    kind: Type,
    touch: &Touch,
    item: Option<&Item>,
    stamp: Stamp,
    find: &dyn Fn(&Item, &[u8]) -> Option<Found>,
) -> Result<(), Error> {
    let mut batch = Batch::new();
    for text in &touch.members {
        let found = item.and_then(|it| find(it, text));
        match kind {
            Type::Hash => field(&mut batch, &new.hash, text, found.as_ref(), stamp)?,
            Type::Set => set_member(&mut batch, &new.set, text, found.is_some(), stamp)?,
            _ => scored(&mut batch, &new.zset, text, found.as_ref(), stamp)?,
        }
    }
    if 0 < batch.count() {
        let index = match kind {
            Type::Hash => &mut new.hash,
            Type::Set => &mut new.set,
            _ => &mut new.zset,
        };
        *index = index.update(&batch)?;
        new.newest = stamp;
    }
    Ok(())
}

fn field(
    batch: &mut Batch,
    index: &Index,
    name: &[u8],
    found: Option<&Found>,
    stamp: Stamp,
) -> Result<(), Error> {
    // Setting a field to what it holds is a write too: it stands against an earlier removal.
    if let Some(Found::Value(value)) = found {
        put_register(batch, name, Some(value), stamp);
        return Ok(());
    }
    let old = index.get(name)?.map(|view| Register::read(name, view)).transpose()?;
    if old.is_some_and(|it| it.value.is_some()) {
        put_register(batch, name, None, stamp);
    }
    Ok(())
}

fn set_member(
    batch: &mut Batch,
    index: &Index,
    text: &[u8],
    present: bool,
    stamp: Stamp,
) -> Result<(), Error> {
    let cells = meanings(index, text)?;
    if present {
        let removed = match index.get(cells[0].id().as_bytes())? {
            Some(view) => Member::read(cells[0].id().as_bytes(), view)?.remove,
            None => 0,
        };
        put_member(batch, &cells[0], stamp, removed);
        return Ok(());
    }
    for cell in &cells {
        if let Some(view) = index.get(cell.id().as_bytes())? {
            let old = Member::read(cell.id().as_bytes(), view)?;
            if old.is_present() {
                put_member(batch, cell, old.add, stamp);
            }
        }
    }
    Ok(())
}

fn scored(
    batch: &mut Batch,
    index: &Index,
    text: &[u8],
    found: Option<&Found>,
    stamp: Stamp,
) -> Result<(), Error> {
    let cells = meanings(index, text)?;
    let read = |cell: &Cell| -> Result<_, Error> {
        let view = index.get(cell.id().as_bytes())?;
        view.map(|it| Scored::read(cell.id().as_bytes(), it)).transpose()
    };
    if let Some(Found::Score(score)) = found {
        let removed = read(&cells[0])?.map_or(0, |it| it.remove);
        put_scored(batch, &cells[0], *score, stamp, removed);
        return Ok(());
    }
    for cell in &cells {
        if let Some(old) = read(cell)?.filter(Scored::is_present) {
            put_scored(batch, cell, old.score, old.add, stamp);
        }
    }
    Ok(())
}
