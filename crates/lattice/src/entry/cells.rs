//! Entries as cells.
//!
//! ```text
//! [value type utime expire]                 what the type needs, if that is all
//! [value type utime expire extension]       with
//! extension = [1 floor expiry-stamp text counted resets others]
//! ```
//!
//! | type | value |
//! |---|---|
//! | nil | nil: only a floor, at `utime` |
//! | 0 | the string; its floor lies right below `utime` |
//! | 1 hash, 2 set, 3 sorted set | Index of records |
//! | 4 | a vector: a list that is replaced as a whole. Read, never written |
//! | 5 counter | Index of columns |
//! | 6 | a list as an Index from position to record |
//!
//! In the extension, `text` is nil, the stamp of a string that is the value, or `[string stamp]`;
//! `resets` is an Index or nil; `others` is a vector of `[type Index]` for types that do not show.

use super::position::{Author, between, in_run};
use super::record::{Record, Register, bad, text_cell};
use super::{Entry, Shape, Stamp};
use crate::Error;
use crate::cell::{Cell, Form, View, Writer};
use crate::index::{Batch, Index};
use crate::live::parse_int;

/// The version of the extension.
pub const EXTENDED: i64 = 1;
/// Most elements of a list that comes as a vector.
const VECTOR_MAX: usize = 1 << 20;

const TEXT: i64 = 0;
const HASH: i64 = 1;
const SET: i64 = 2;
const ZSET: i64 = 3;
const VECTOR: i64 = 4;
const COUNTER: i64 = 5;
const LIST: i64 = 6;

impl Entry {
    /// The Indexes that hold something, by type.
    fn indexes(&self) -> impl Iterator<Item = (i64, &Index)> {
        let all = [
            (HASH, &self.hash),
            (SET, &self.set),
            (ZSET, &self.zset),
            (COUNTER, &self.columns),
            (LIST, &self.list),
        ];
        all.into_iter().filter(|it| !it.1.is_empty())
    }

    fn index_mut(&mut self, kind: i64) -> Option<&mut Index> {
        Some(match kind {
            HASH => &mut self.hash,
            SET => &mut self.set,
            ZSET => &mut self.zset,
            COUNTER => &mut self.columns,
            LIST => &mut self.list,
            _ => return None,
        })
    }

    /// The type whose value stands first in the cell.
    fn first_type(&self) -> Result<Option<i64>, Error> {
        Ok(match self.shape()? {
            Some(Shape::Text) if self.columns.is_empty() => Some(TEXT),
            Some(Shape::Text) => Some(COUNTER),
            Some(Shape::Hash) => Some(HASH),
            Some(Shape::Set) => Some(SET),
            Some(Shape::Zset) => Some(ZSET),
            Some(Shape::List) => Some(LIST),
            None => self.indexes().next().map(|it| it.0),
        })
    }

    /// The entry as a cell.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell inside is not here.
    pub fn encode(&self) -> Result<Cell, Error> {
        if let Some((stamp, text)) = &self.text
            && self.is_plain_text()
        {
            return Ok(Cell::write(|writer| {
                write_plain(writer, |writer| writer.cell(text), *stamp, self.expiry.1);
            }));
        }
        let first = self.first_type()?;
        let plain = Entry::plain(first, self.value(first), self.newest, self.expiry.1)?;
        let simple = plain == *self;
        Ok(Cell::write(|writer| {
            writer.short_vector(if simple { 4 } else { 5 }, |writer| {
                match self.value(first) {
                    Some(value) => writer.view(value),
                    None => writer.nil(),
                }
                match first {
                    Some(kind) => writer.int(kind),
                    None => writer.nil(),
                }
                writer.int(self.newest);
                writer.int(self.expiry.1);
                if !simple {
                    self.write_extension(first, writer);
                }
            });
        }))
    }

    /// Whether this is what a SET leaves, by far the most common entry.
    fn is_plain_text(&self) -> bool {
        let set = |stamp: &Stamp| *stamp == self.newest && self.floor == stamp - 1;
        self.text.as_ref().is_some_and(|it| set(&it.0))
            && (self.expiry == (0, 0) || (self.expiry.0 == self.newest && self.expiry.1 != 0))
            && self.counted == 0
            && self.resets.is_empty()
            && self.indexes().next().is_none()
    }

    fn value(&self, first: Option<i64>) -> Option<View<'_>> {
        match first {
            None => None,
            Some(TEXT) => self.text.as_ref().map(|it| it.1.view()),
            Some(kind) => self.indexes().find(|it| it.0 == kind).map(|it| it.1.cell().view()),
        }
    }

    fn write_extension(&self, first: Option<i64>, writer: &mut Writer) {
        let others: Vec<_> = self.indexes().filter(|it| Some(it.0) != first).collect();
        writer.short_vector(7, |writer| {
            writer.int(EXTENDED);
            writer.int(self.floor);
            writer.int(self.expiry.0);
            match &self.text {
                None => writer.nil(),
                Some((stamp, _)) if first == Some(TEXT) => writer.int(*stamp),
                Some((stamp, text)) => writer.short_vector(2, |writer| {
                    writer.cell(text);
                    writer.int(*stamp);
                }),
            }
            writer.int(self.counted);
            if self.resets.is_empty() {
                writer.nil();
            } else {
                writer.cell(self.resets.cell());
            }
            writer.short_vector(others.len(), |writer| {
                for (kind, index) in &others {
                    writer.short_vector(2, |writer| {
                        writer.int(*kind);
                        writer.cell(index.cell());
                    });
                }
            });
        });
    }

    /// The entry as released Convex nodes know it: four elements, nil for "no expiry", lists as
    /// vectors. What they have no form for is left out: hidden types, floors, and the columns of a
    /// counter that was ever reset or written, which goes as its number.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell inside is not here.
    pub fn encode_for_convex(&self) -> Result<Cell, Error> {
        let reset = self.text.is_some() || !self.resets.is_empty();
        let (kind, value) = match self.shape()? {
            None => (None, Cell::nil()),
            Some(Shape::Text) if !reset => (Some(COUNTER), self.columns.cell().clone()),
            Some(Shape::Text) => {
                let text = self.shown_text()?.unwrap_or_default();
                let number = parse_int(&text).filter(|_| !self.columns.is_empty());
                let plain = self.text.as_ref().filter(|_| number.is_none());
                let cell = plain.map_or_else(|| text_cell(&text), |it| it.1.clone());
                (Some(TEXT), number.map_or(cell, Cell::int))
            }
            Some(Shape::List) => {
                let mut elements = Vec::new();
                self.each_element(|_, element| elements.push(text_cell(element)))?;
                (Some(VECTOR), Cell::vector(&elements))
            }
            Some(Shape::Hash) => (Some(HASH), self.hash.cell().clone()),
            Some(Shape::Set) => (Some(SET), self.set.cell().clone()),
            Some(Shape::Zset) => (Some(ZSET), self.zset.cell().clone()),
        };
        Ok(Cell::write(|writer| {
            writer.short_vector(4, |writer| {
                writer.cell(&value);
                match kind {
                    Some(kind) => writer.int(kind),
                    None => writer.nil(),
                }
                writer.int(self.newest);
                match self.expiry.1 {
                    0 => writer.nil(),
                    at_ms => writer.int(at_ms),
                }
            });
        }))
    }

    /// What four elements mean.
    fn plain(
        kind: Option<i64>,
        value: Option<View<'_>>,
        utime: Stamp,
        expire_ms: i64,
    ) -> Result<Entry, Error> {
        let expiry = if expire_ms == 0 { (0, 0) } else { (utime, expire_ms) };
        let mut entry = Entry { newest: utime, expiry, ..Entry::default() };
        let (Some(kind), Some(value)) = (kind, value) else {
            entry.floor = utime;
            entry.expiry = (0, 0);
            return Ok(entry);
        };
        match kind {
            TEXT => {
                entry.floor = utime - 1;
                entry.text = Some((utime, value.to_cell()));
            }
            VECTOR => {
                entry.floor = utime - 1;
                entry.list = vector_list(value, utime)?;
            }
            _ => {
                let Form::Index(_) = value.form() else { return bad("the value is no Index") };
                let index = Index::from_cell(value.to_cell())?;
                if kind == COUNTER {
                    entry.counted = utime;
                }
                match entry.index_mut(kind) {
                    Some(place) => *place = index,
                    None => return bad("an entry has an unknown type"),
                }
            }
        }
        Ok(entry)
    }

    /// The entry in a cell that may come from anywhere. Records inside are checked by the merge.
    ///
    /// # Errors
    ///
    /// `Encoding` if it is none, `Missing` if a part of its frame is not here.
    pub fn decode(view: View<'_>) -> Result<Entry, Error> {
        let Form::Vector(4..=16) = view.form() else { return bad("an entry is no vector of four") };
        let parts = view.elements(16)?;
        let Some(utime) = parts[2].as_int().filter(|it| 0 < *it && *it < i64::MAX) else {
            return bad("an entry has no time");
        };
        let expire_ms = match parts[3].as_int() {
            None if parts[3].is_nil() => 0,
            Some(at_ms) if 0 <= at_ms => at_ms,
            _ => return bad("an expiry is not a time"),
        };
        let kind = match parts[1].as_int() {
            None if parts[1].is_nil() => None,
            Some(kind) => Some(kind),
            None => return bad("an entry has an unknown type"),
        };
        if kind.is_none() && !parts[0].is_nil() {
            return bad("a value has no type");
        }
        let value = kind.map(|_| parts[0]);
        let extension = parts.get(4).filter(|it| it.form() == Form::Vector(7));
        let Some(extension) = extension else { return Entry::plain(kind, value, utime, expire_ms) };
        let extension = extension.elements(7)?;
        if extension[0].as_int() != Some(EXTENDED) {
            return bad("an entry has an unknown extension");
        }
        Entry::extended(kind, value, utime, expire_ms, &extension)
    }

    fn extended(
        kind: Option<i64>,
        value: Option<View<'_>>,
        utime: Stamp,
        expire_ms: i64,
        extension: &[View<'_>],
    ) -> Result<Entry, Error> {
        let stamp = |view: View<'_>| match view.as_int() {
            Some(stamp) if 0 <= stamp && stamp <= utime => Ok(stamp),
            _ => bad("a stamp is newer than its entry"),
        };
        let mut entry = Entry { newest: utime, ..Entry::default() };
        entry.floor = stamp(extension[1])?;
        entry.expiry = (stamp(extension[2])?, expire_ms);
        entry.counted = stamp(extension[4])?;
        entry.text = match (extension[3].form(), kind, value) {
            (Form::Nil, _, _) => None,
            (Form::Int(_), Some(TEXT), Some(value)) => {
                Some((stamp(extension[3])?, value.to_cell()))
            }
            (Form::Vector(2), _, _) => {
                let pair = extension[3].elements(2)?;
                Some((stamp(pair[1])?, pair[0].to_cell()))
            }
            _ => return bad("an extension has no string"),
        };
        if !extension[5].is_nil() {
            entry.resets = index_in(extension[5])?;
        }
        if let (Some(kind), Some(value)) = (kind.filter(|it| *it != TEXT), value) {
            let index = index_in(value)?;
            match entry.index_mut(kind) {
                Some(place) => *place = index,
                None => return bad("an entry has an unknown type"),
            }
        }
        let Form::Vector(0..=5) = extension[6].form() else { return bad("too many other types") };
        for other in extension[6].elements(5)? {
            let Form::Vector(2) = other.form() else { return bad("another type is no pair") };
            let pair = other.elements(2)?;
            let index = index_in(pair[1])?;
            match pair[0].as_int().and_then(|it| entry.index_mut(it)) {
                Some(place) => *place = index,
                None => return bad("an entry has an unknown type"),
            }
        }
        // What lies at or below the floor has no place in a whole entry.
        let floor = entry.floor;
        if (entry.expiry.0 <= floor && entry.expiry != (0, 0))
            || entry.text.as_ref().is_some_and(|it| it.0 <= floor)
            || (entry.counted <= floor && entry.counted != 0)
        {
            return bad("a part of an entry lies below its floor");
        }
        Ok(entry)
    }
}

/// Appends the entry that a SET leaves.
pub(crate) fn write_plain(
    writer: &mut Writer,
    write_text: impl FnOnce(&mut Writer),
    stamp: Stamp,
    expire_ms: i64,
) {
    writer.short_vector(4, |writer| {
        write_text(writer);
        writer.int(TEXT);
        writer.int(stamp);
        writer.int(expire_ms);
    });
}

/// The text, stamp and expiry of an entry that a SET left, if it is one in our own form.
pub(crate) fn plain_text(entry: View<'_>) -> Option<(View<'_>, Stamp, i64)> {
    if entry.form() != Form::Vector(4) {
        return None;
    }
    let mut slots = entry.slots();
    let mut next = || slots.next()?.view().ok();
    let (text, kind, stamp, expire_ms) = (next()?, next()?, next()?, next()?);
    let stamp = stamp.as_int().filter(|it| 0 < *it && *it < i64::MAX)?;
    let expire_ms = expire_ms.as_int().filter(|it| 0 <= *it)?;
    (kind.as_int() == Some(TEXT)).then_some((text, stamp, expire_ms))
}

fn index_in(view: View<'_>) -> Result<Index, Error> {
    let Form::Index(_) = view.form() else { return bad("the value is no Index") };
    Index::from_cell(view.to_cell())
}

/// A list that came as a vector, as positions that every reader makes alike.
fn vector_list(value: View<'_>, utime: Stamp) -> Result<Index, Error> {
    let Form::Vector(_) = value.form() else { return bad("a list is no vector") };
    let author = Author { tag: [0; 6], stamp: utime };
    let first = between(None, None, author).expect("there is room in an empty list");
    let mut batch = Batch::new();
    for (number, element) in value.elements(VECTOR_MAX)?.into_iter().enumerate() {
        let record = Register { value: Some(element), stamp: utime };
        batch.put_blob(&in_run(&first, number as u32), |writer| record.write(writer));
    }
    Index::new().update(&batch)
}
