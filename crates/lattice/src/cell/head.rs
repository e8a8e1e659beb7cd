//! The layout of an encoding: what its first bytes say about the rest.
//!
//! Every encoding is a head (tag, count, fixed bytes) followed by *slots*. A slot holds another
//! value: its encoding if that is short, else 20 and its id. Only the Index interleaves: an entry
//! of two slots, then depth and mask, then the children.
//!
//! [`head`] knows all tags; [`Slots`] walks the slots of a checked cell; [`walk`] measures bytes
//! that nobody has checked yet. Recursion is bounded because an embedded encoding has at most 140
//! bytes, and each level takes at least one.

use super::vlq;
use super::{Cell, EMBEDDED_BYTES_MAX, Id, View};
use crate::Error;

pub(crate) const NIL: u8 = 0x00;
pub(crate) const INT: u8 = 0x10;
pub(crate) const BIG_INT: u8 = 0x19;
pub(crate) const DOUBLE: u8 = 0x1d;
pub(crate) const REF: u8 = 0x20;
pub(crate) const STRING: u8 = 0x30;
pub(crate) const BLOB: u8 = 0x31;
pub(crate) const SYMBOL: u8 = 0x32;
pub(crate) const KEYWORD: u8 = 0x33;
pub(crate) const VECTOR: u8 = 0x80;
pub(crate) const LIST: u8 = 0x81;
pub(crate) const MAP: u8 = 0x82;
pub(crate) const SET: u8 = 0x83;
pub(crate) const INDEX: u8 = 0x84;
pub(crate) const SYNTAX: u8 = 0x88;
pub(crate) const SIGNED: u8 = 0x90;
pub(crate) const SIGNED_KEYLESS: u8 = 0x91;
pub(crate) const FALSE: u8 = 0xb0;
pub(crate) const TRUE: u8 = 0xb1;
pub(crate) const RESULT: u8 = 0xdd;
pub(crate) const ADDRESS: u8 = 0xea;

/// Text and bytes up to this size are one flat cell; longer ones are trees of blobs.
pub(crate) const FLAT_BYTES_MAX: usize = 4_096;
/// The most entries of a map or set that is one flat cell.
pub(crate) const LEAF_COUNT_MAX: u64 = 15;
/// The hex digits of a key that the Index tells apart: those of 255 bytes.
pub(crate) const KEY_DIGITS_MAX: usize = 510;
/// The longest name of a keyword or symbol.
pub(crate) const NAME_BYTES_MAX: usize = 128;
/// Marks the entry in the head of an Index node.
pub(crate) const ENTRY_MARK: u8 = 0x80;

pub(crate) const fn bad<T>(reason: &'static str) -> Result<T, Error> {
    Err(Error::Encoding { reason })
}

/// What stands before the first slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) tag: u8,
    /// The count or size in the head; 0 where there is none.
    pub(crate) count: u64,
    /// Bytes before the first slot.
    pub(crate) size: usize,
    /// Slots that follow, without the children of an Index node.
    pub(crate) slots: usize,
    /// Whether depth, mask and children of an Index node follow the slots.
    pub(crate) forks: bool,
}

/// Reads the head of an encoding, and checks all that can be seen in it alone.
pub(crate) fn head(bytes: &[u8]) -> Result<Head, Error> {
    let Some(&tag) = bytes.first() else {
        return bad("no bytes");
    };
    let fixed = |size: usize, slots: usize| {
        if bytes.len() < size {
            return bad("cut off");
        }
        Ok(Head { tag, count: 0, size, slots, forks: false })
    };
    match tag {
        NIL => fixed(1, 0),
        0x10..=0x18 => head_int(bytes),
        BIG_INT => head_big_int(bytes),
        DOUBLE => fixed(9, 0),
        STRING | BLOB => head_text(bytes),
        SYMBOL | KEYWORD => {
            let size = usize::from(*bytes.get(1).unwrap_or(&0));
            if size == 0 || NAME_BYTES_MAX < size {
                return bad("name has a wrong length");
            }
            fixed(2 + size, 0)
        }
        0x3c..=0x3e => head_character(bytes),
        VECTOR | LIST | 0xd0..=0xdf => {
            let (count, size) = counted(bytes)?;
            Ok(Head { tag, count, size, slots: vector_slots(count), forks: false })
        }
        MAP | SET => head_map(bytes),
        INDEX => head_index(bytes),
        SYNTAX | 0xc0..=0xcf => fixed(1, 2),
        SIGNED => fixed(97, 1),
        SIGNED_KEYLESS => fixed(65, 1),
        0xb0..=0xbf => fixed(1, 0),
        0xe0..=0xef => {
            let (count, size) = counted(bytes)?;
            Ok(Head { tag, count, size, slots: 0, forks: false })
        }
        REF => bad("a reference stands where a value must"),
        _ => bad("unknown tag"),
    }
}

/// Reads the count behind the tag: the count, and the bytes of both.
fn counted(bytes: &[u8]) -> Result<(u64, usize), Error> {
    let (count, size) = vlq::get(&bytes[1..])?;
    Ok((count, 1 + size))
}

fn head_int(bytes: &[u8]) -> Result<Head, Error> {
    let size = 1 + usize::from(bytes[0] & 15);
    let Some(body) = bytes.get(1..size) else {
        return bad("integer is cut off");
    };
    // Zero has no bytes at all, so a single zero byte is one too many as well.
    if body == [0] || has_redundant_sign(body) {
        return bad("integer is not in its shortest form");
    }
    Ok(Head { tag: bytes[0], count: 0, size, slots: 0, forks: false })
}

fn head_big_int(bytes: &[u8]) -> Result<Head, Error> {
    let (count, start) = counted(bytes)?;
    if count < 9 || (FLAT_BYTES_MAX as u64) < count {
        return bad("big integer has a wrong length");
    }
    let size = start + count as usize;
    let Some(body) = bytes.get(start..size) else {
        return bad("big integer is cut off");
    };
    if has_redundant_sign(body) {
        return bad("big integer is not in its shortest form");
    }
    Ok(Head { tag: BIG_INT, count, size, slots: 0, forks: false })
}

fn has_redundant_sign(body: &[u8]) -> bool {
    match body {
        [0, next, ..] => *next < 0x80,
        [0xff, next, ..] => 0x80 <= *next,
        _ => false,
    }
}

fn head_text(bytes: &[u8]) -> Result<Head, Error> {
    let (count, start) = counted(bytes)?;
    let (size, slots) = if count <= FLAT_BYTES_MAX as u64 {
        (start + count as usize, 0)
    } else {
        (start, count.div_ceil(text_child_size(count)) as usize)
    };
    if bytes.len() < size {
        return bad("text is cut off");
    }
    Ok(Head { tag: bytes[0], count, size, slots, forks: false })
}

fn head_character(bytes: &[u8]) -> Result<Head, Error> {
    let size = 2 + usize::from(bytes[0] - 0x3c);
    let Some(body) = bytes.get(1..size) else {
        return bad("character is cut off");
    };
    let point = body.iter().fold(0_u32, |point, &byte| point << 8 | u32::from(byte));
    if (1 < body.len() && body[0] == 0) || 0x10_ffff < point {
        return bad("character has no such code point");
    }
    Ok(Head { tag: bytes[0], count: u64::from(point), size, slots: 0, forks: false })
}

fn head_map(bytes: &[u8]) -> Result<Head, Error> {
    let tag = bytes[0];
    let (count, start) = counted(bytes)?;
    if count <= LEAF_COUNT_MAX {
        let slots = count as usize * if tag == MAP { 2 } else { 1 };
        return Ok(Head { tag, count, size: start, slots, forks: false });
    }
    let Some(&[shift, high, low]) = bytes.get(start..start + 3) else {
        return bad("map is cut off");
    };
    let slots = u16::from_be_bytes([high, low]).count_ones() as usize;
    if 63 < shift || slots < 2 {
        return bad("map does not fork where it says");
    }
    Ok(Head { tag, count, size: start + 3, slots, forks: false })
}

fn head_index(bytes: &[u8]) -> Result<Head, Error> {
    let (count, start) = counted(bytes)?;
    if count < 2 {
        let slots = 2 * count as usize;
        return Ok(Head { tag: INDEX, count, size: start, slots, forks: false });
    }
    let slots = match bytes.get(start) {
        Some(&NIL) => 0,
        Some(&ENTRY_MARK) => 2,
        Some(_) => return bad("index entry has an unknown mark"),
        None => return bad("index is cut off"),
    };
    Ok(Head { tag: INDEX, count, size: start + 1, slots, forks: true })
}

/// The depth and mask of an Index node, from the start of `bytes`, and the bytes they took.
pub(crate) fn index_fork(bytes: &[u8]) -> Result<(usize, u16, usize), Error> {
    let (depth, size) = vlq::get(bytes)?;
    if KEY_DIGITS_MAX as u64 <= depth {
        return bad("index forks below its longest key");
    }
    let Some(&[high, low]) = bytes.get(size..size + 2) else {
        return bad("index is cut off");
    };
    Ok((depth as usize, u16::from_be_bytes([high, low]), size + 2))
}

/// The size of all children but the last of a text of `size` bytes, which is not flat.
pub(crate) fn text_child_size(size: u64) -> u64 {
    largest_power(FLAT_BYTES_MAX as u64, size)
}

/// How many slots a vector has.
pub(crate) fn vector_slots(count: u64) -> usize {
    match count {
        0..=16 => count as usize,
        _ if count.is_multiple_of(16) => count.div_ceil(vector_child_count(count)) as usize,
        _ => (count % 16) as usize + 1,
    }
}

/// The elements of all children but the last of a vector that is a tree of packed ones.
pub(crate) fn vector_child_count(count: u64) -> u64 {
    largest_power(16, count)
}

/// The largest `unit` * 16^k below `size`, which is more than `unit`.
fn largest_power(unit: u64, size: u64) -> u64 {
    let mut power = unit;
    while power < size.div_ceil(16) {
        power *= 16;
    }
    power
}

/// Measures the encoding at the start of `bytes`, which may be anything, and hands every id in it
/// to `found`.
pub(crate) fn walk(bytes: &[u8], found: &mut impl FnMut(Id)) -> Result<usize, Error> {
    let head = head(bytes)?;
    let mut at = head.size;
    for _ in 0..head.slots {
        at += walk_slot(&bytes[at..], found)?;
    }
    if head.forks {
        let (_, mask, size) = index_fork(&bytes[at..])?;
        at += size;
        for _ in 0..mask.count_ones() {
            at += walk_slot(&bytes[at..], found)?;
        }
    }
    Ok(at)
}

fn walk_slot(bytes: &[u8], found: &mut impl FnMut(Id)) -> Result<usize, Error> {
    if bytes.first() == Some(&REF) {
        let Some(id) = bytes.get(1..33) else {
            return bad("id is cut off");
        };
        found(Id::from_bytes(id.try_into().expect("the slice has 32 bytes")));
        return Ok(33);
    }
    // What is longer than this has to be a branch, so looking further is never needed.
    walk(&bytes[..bytes.len().min(EMBEDDED_BYTES_MAX)], found)
}

/// How many ids there are in an encoding that must fill `bytes`.
pub(crate) fn refs(bytes: &[u8]) -> Result<usize, Error> {
    let mut refs = 0;
    let size = walk(bytes, &mut |_| refs += 1)?;
    if size != bytes.len() {
        return bad("bytes follow the cell");
    }
    Ok(refs)
}

/// What a slot holds.
#[derive(Clone, Copy, Debug)]
pub enum Slot<'a> {
    /// A value that lies here.
    Embedded(View<'a>),
    /// A cell of its own.
    Branch(Id, Option<&'a Cell>),
}

impl<'a> Slot<'a> {
    /// The value.
    ///
    /// # Errors
    ///
    /// `Missing` if it is a branch that is not here.
    pub fn view(self) -> Result<View<'a>, Error> {
        match self {
            Slot::Embedded(view) => Ok(view),
            Slot::Branch(_, Some(cell)) => Ok(cell.view()),
            Slot::Branch(id, None) => Err(Error::Missing { id }),
        }
    }

    /// The value, if it is here.
    pub(crate) fn get(self) -> Option<View<'a>> {
        self.view().ok()
    }

    /// The id of the value, computed if it lies here.
    pub fn id(self) -> Id {
        match self {
            Slot::Embedded(view) => view.id(),
            Slot::Branch(id, _) => id,
        }
    }
}

/// Equal slots hold equal values, whether or not we have them.
impl PartialEq for Slot<'_> {
    fn eq(&self, other: &Slot<'_>) -> bool {
        match (self, other) {
            (Slot::Embedded(own), Slot::Embedded(theirs)) => own == theirs,
            (Slot::Branch(own, _), Slot::Branch(theirs, _)) => own == theirs,
            _ => false,
        }
    }
}

/// The slots of a cell, in order. An Index node yields its entry, if any, then its children.
#[derive(Clone, Debug)]
pub struct Slots<'a> {
    view: View<'a>,
    left: usize,
    forks: bool,
}

impl<'a> Slots<'a> {
    pub(crate) fn new(view: View<'a>) -> Slots<'a> {
        let head = checked(head(view.bytes));
        Slots::after(view, &head)
    }

    pub(crate) fn after(view: View<'a>, head: &Head) -> Slots<'a> {
        let view = View { bytes: &view.bytes[head.size..], branches: view.branches };
        Slots { view, left: head.slots, forks: head.forks }
    }

    /// The depth and mask of an Index node whose entry has been taken.
    pub(crate) fn fork(&mut self) -> (usize, u16) {
        assert!(self.forks && self.left == 0, "the entry stands before the fork");
        let (depth, mask, size) = checked(index_fork(self.view.bytes));
        self.view.bytes = &self.view.bytes[size..];
        self.left = mask.count_ones() as usize;
        self.forks = false;
        (depth, mask)
    }

    fn take(&mut self) -> Slot<'a> {
        let View { bytes, branches } = self.view;
        if bytes[0] == REF {
            let id = Id::from_bytes(bytes[1..33].try_into().expect("the slice has 32 bytes"));
            self.view = View { bytes: &bytes[33..], branches: &branches[1..] };
            return Slot::Branch(id, branches[0].as_ref());
        }
        let mut refs = 0;
        let size = skip(bytes, &mut refs);
        self.view = View { bytes: &bytes[size..], branches: &branches[refs..] };
        Slot::Embedded(View { bytes: &bytes[..size], branches: &branches[..refs] })
    }
}

impl<'a> Iterator for Slots<'a> {
    type Item = Slot<'a>;

    fn next(&mut self) -> Option<Slot<'a>> {
        if self.left == 0 && self.forks {
            self.fork();
        }
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some(self.take())
    }
}

/// Measures an encoding that was checked before, and counts the ids in it. As [`walk`], with short
/// ways for what lies in most entries.
fn skip(bytes: &[u8], refs: &mut usize) -> usize {
    let slots = match (bytes[0], bytes.get(1)) {
        (NIL | FALSE | TRUE, _) => return 1,
        (tag @ 0x10..=0x18, _) => return 1 + usize::from(tag - INT),
        (DOUBLE, _) => return 9,
        (STRING | BLOB, Some(&size @ 0..0x80)) => return 2 + usize::from(size),
        (VECTOR, Some(&count @ 0..=16)) => usize::from(count),
        (INDEX, Some(1)) => 2,
        _ => return checked(walk(bytes, &mut |_| *refs += 1)),
    };
    let mut at = 2;
    for _ in 0..slots {
        if bytes[at] == REF {
            *refs += 1;
            at += 33;
        } else {
            at += skip(&bytes[at..], refs);
        }
    }
    at
}

/// For bytes that were checked when their cell was made.
pub(crate) fn checked<T>(result: Result<T, Error>) -> T {
    result.expect("the bytes of a cell were checked when it was made")
}
