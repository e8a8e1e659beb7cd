//! The records inside an entry, as cells: what a field, a member, a position or a column holds.
//!
//! ```text
//! field, position   [value stamp]              a removed one has nil for its value
//! member            [member add remove]        key: the member's id
//! scored member     [member score add remove]  key: the member's id
//! column, reset     [up down]                  key: the column's name
//! ```

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Stamp, TEXT_MAX};
use crate::Error;
use crate::cell::{Cell, Form, View, Writer};

pub(super) fn bad<T>(reason: &'static str) -> Result<T, Error> {
    Err(Error::Encoding { reason })
}

/// Text as a cell: a string if it is UTF-8, else a blob.
pub(crate) fn text_cell(text: &[u8]) -> Cell {
    if std::str::from_utf8(text).is_ok() { Cell::string(text) } else { Cell::blob(text) }
}

/// Appends text as `text_cell` makes it.
pub(crate) fn write_text(writer: &mut Writer, text: &[u8]) {
    if std::str::from_utf8(text).is_ok() { writer.string(text) } else { writer.blob(text) }
}

/// What a Redis client sees of a cell. Numbers and names are spelled out; what has no text of its
/// own shows its encoding.
pub(crate) fn text_of(view: View<'_>) -> Result<Cow<'_, [u8]>, Error> {
    Ok(match view.form() {
        Form::String(_) => view.as_string(TEXT_MAX)?.unwrap_or_default(),
        Form::Blob(_) => view.as_blob(TEXT_MAX)?.unwrap_or_default(),
        Form::Int(n) => n.to_string().into_bytes().into(),
        Form::Double(n) => n.to_string().into_bytes().into(),
        Form::Bool(it) => if it { &b"true"[..] } else { b"false" }.into(),
        Form::Keyword(name) | Form::Symbol(name) => name.into(),
        Form::Nil => (&b""[..]).into(),
        _ => view.bytes().into(),
    })
}

fn parts<'a, const N: usize>(view: View<'a>, reason: &'static str) -> Result<[View<'a>; N], Error> {
    if view.form() != Form::Vector(N as u64) {
        return bad(reason);
    }
    let parts = view.elements(N)?;
    parts.try_into().or_else(|_| bad(reason))
}

fn stamp(view: View<'_>) -> Result<Stamp, Error> {
    match view.as_int() {
        Some(stamp) if 0 <= stamp => Ok(stamp),
        _ => bad("a stamp is not a time"),
    }
}

/// A record that can be joined with another of its kind.
pub(super) trait Record<'a>: Copy + PartialEq + Sized {
    /// Reads it from a cell that may have come from anywhere.
    fn read(key: &[u8], view: View<'a>) -> Result<Self, Error>;
    /// The least record above both.
    fn join(self, other: Self) -> Self;
    /// What is left above a floor.
    fn above(self, floor: Stamp) -> Option<Self>;
    /// Its newest stamp.
    fn newest(self) -> Stamp;
    /// The stamp since which a reader sees it, if one does.
    fn shown(self) -> Option<Stamp>;
    /// Appends it as a cell.
    fn write(self, writer: &mut Writer);
}

/// A register: a field of a hash, or an element of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Register<'a> {
    /// Nothing if it was removed.
    pub(super) value: Option<View<'a>>,
    pub(super) stamp: Stamp,
}

/// The order of registers: time, then removal, then the larger value.
fn later(own: Register<'_>, other: Register<'_>) -> Ordering {
    own.stamp
        .cmp(&other.stamp)
        .then_with(|| own.value.is_none().cmp(&other.value.is_none()))
        .then_with(|| own.value.map(View::bytes).cmp(&other.value.map(View::bytes)))
}

impl<'a> Record<'a> for Register<'a> {
    fn read(_: &[u8], view: View<'a>) -> Result<Self, Error> {
        let [value, time] = parts(view, "a field is not [value stamp]")?;
        let stamp = stamp(time)?;
        if stamp == 0 {
            return bad("a field has no stamp");
        }
        Ok(Register { value: (!value.is_nil()).then_some(value), stamp })
    }

    fn join(self, other: Self) -> Self {
        if later(self, other) == Ordering::Less { other } else { self }
    }

    fn above(self, floor: Stamp) -> Option<Self> {
        (floor < self.stamp).then_some(self)
    }

    fn newest(self) -> Stamp {
        self.stamp
    }

    fn shown(self) -> Option<Stamp> {
        self.value.map(|_| self.stamp)
    }

    fn write(self, writer: &mut Writer) {
        writer.short_vector(2, |writer| {
            match self.value {
                Some(value) => writer.view(value),
                None => writer.nil(),
            }
            writer.int(self.stamp);
        });
    }
}

/// A member of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_field_names, reason = "the member of the member's record")]
pub(super) struct Member<'a> {
    pub(super) member: View<'a>,
    pub(super) add: Stamp,
    pub(super) remove: Stamp,
}

impl Member<'_> {
    /// A removal wins a tie.
    pub(super) fn is_present(&self) -> bool {
        self.remove < self.add
    }
}

fn check_member(key: &[u8], member: View<'_>) -> Result<(), Error> {
    if key != &member.id().as_bytes()[..] {
        return bad("a member is not under its id");
    }
    Ok(())
}

impl<'a> Record<'a> for Member<'a> {
    fn read(key: &[u8], view: View<'a>) -> Result<Self, Error> {
        let [member, add, remove] = parts(view, "a member is not [member add remove]")?;
        check_member(key, member)?;
        let (add, remove) = (stamp(add)?, stamp(remove)?);
        if add.max(remove) == 0 {
            return bad("a member has no stamp");
        }
        Ok(Member { member, add, remove })
    }

    fn join(self, other: Self) -> Self {
        let (add, remove) = (self.add.max(other.add), self.remove.max(other.remove));
        Member { member: self.member, add, remove }
    }

    fn above(self, floor: Stamp) -> Option<Self> {
        let cut = |stamp| if stamp <= floor { 0 } else { stamp };
        let left = Member { member: self.member, add: cut(self.add), remove: cut(self.remove) };
        (left.newest() != 0).then_some(left)
    }

    fn newest(self) -> Stamp {
        self.add.max(self.remove)
    }

    fn shown(self) -> Option<Stamp> {
        self.is_present().then_some(self.add)
    }

    fn write(self, writer: &mut Writer) {
        writer.short_vector(3, |writer| {
            writer.view(self.member);
            writer.int(self.add);
            writer.int(self.remove);
        });
    }
}

/// A member of a sorted set. The score belongs to the newest add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scored<'a> {
    pub(super) member: View<'a>,
    pub(super) score: f64,
    pub(super) add: Stamp,
    pub(super) remove: Stamp,
}

impl Scored<'_> {
    /// A removal wins a tie.
    pub(super) fn is_present(&self) -> bool {
        self.remove < self.add
    }
}

impl<'a> Record<'a> for Scored<'a> {
    fn read(key: &[u8], view: View<'a>) -> Result<Self, Error> {
        let [member, score, add, remove] =
            parts(view, "a scored member is not [member score add remove]")?;
        check_member(key, member)?;
        let score = match score.as_double() {
            Some(score) if !score.is_nan() => score,
            _ => return bad("a score is not a number"),
        };
        let (add, remove) = (stamp(add)?, stamp(remove)?);
        if add.max(remove) == 0 {
            return bad("a member has no stamp");
        }
        // The score of a member that was never added, or whose add was cut away, says nothing.
        let score = if add == 0 { 0.0 } else { score };
        Ok(Scored { member, score, add, remove })
    }

    fn join(self, other: Self) -> Self {
        let remove = self.remove.max(other.remove);
        let by_add = self.add.cmp(&other.add).then(self.score.total_cmp(&other.score));
        let newer = if by_add == Ordering::Less { other } else { self };
        Scored { member: self.member, score: newer.score, add: newer.add, remove }
    }

    fn above(self, floor: Stamp) -> Option<Self> {
        let mut left = self;
        if left.add <= floor {
            left.add = 0;
            left.score = 0.0;
        }
        if left.remove <= floor {
            left.remove = 0;
        }
        (left.newest() != 0).then_some(left)
    }

    fn newest(self) -> Stamp {
        self.add.max(self.remove)
    }

    fn shown(self) -> Option<Stamp> {
        self.is_present().then_some(self.add)
    }

    fn write(self, writer: &mut Writer) {
        writer.short_vector(4, |writer| {
            writer.view(self.member);
            writer.double(self.score);
            writer.int(self.add);
            writer.int(self.remove);
        });
    }
}

/// What a writer counted up and down, or what of it a reset saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Column {
    pub(super) up: i64,
    pub(super) down: i64,
}

impl<'a> Record<'a> for Column {
    fn read(_: &[u8], view: View<'a>) -> Result<Self, Error> {
        let [up, down] = parts(view, "a column is not [up down]")?;
        match (up.as_int(), down.as_int()) {
            (Some(up), Some(down)) if 0 <= up && 0 <= down => Ok(Column { up, down }),
            _ => bad("a column holds no counts"),
        }
    }

    fn join(self, other: Self) -> Self {
        Column { up: self.up.max(other.up), down: self.down.max(other.down) }
    }

    /// Counts have no stamp; a floor does not reach them.
    fn above(self, _: Stamp) -> Option<Self> {
        Some(self)
    }

    fn newest(self) -> Stamp {
        0
    }

    fn shown(self) -> Option<Stamp> {
        None
    }

    fn write(self, writer: &mut Writer) {
        writer.short_vector(2, |writer| {
            writer.int(self.up);
            writer.int(self.down);
        });
    }
}
