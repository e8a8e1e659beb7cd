//! Reading values. Whatever may be long takes a limit: a few shared cells can spell out a vector
//! of more elements than there is memory.

use std::borrow::Cow;

use super::check::map_fork;
use super::head::{
    ADDRESS, BIG_INT, BLOB, DOUBLE, FALSE, Head, INDEX, INT, KEY_DIGITS_MAX, KEYWORD,
    LEAF_COUNT_MAX, LIST, MAP, NIL, RESULT, SET, SIGNED, STRING, SYMBOL, Slot, Slots, TRUE, VECTOR,
    bad, checked, head,
};
use super::{Id, View};
use crate::Error;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Form<'a> {
    /// Nothing.
    Nil,
    /// True or false.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A longer integer: two's complement, big-endian, shortest.
    BigInt(&'a [u8]),
    /// A float. Its bits are the value: there are many NaNs and two zeros.
    Double(f64),
    /// A code point.
    Character(u32),
    /// Text of this many bytes.
    String(u64),
    /// Bytes, this many.
    Blob(u64),
    /// A symbol's name.
    Symbol(&'a [u8]),
    /// A keyword's name.
    Keyword(&'a [u8]),
    /// A vector of this many elements.
    Vector(u64),
    /// A list of this many elements. [`View::elements`] gives them as stored, last first.
    List(u64),
    /// A hash map of this many entries.
    Map(u64),
    /// A hash set of this many elements.
    Set(u64),
    /// An Index of this many entries.
    Index(u64),
    /// A signed value.
    Signed,
    /// The result record of the node protocol, with this many fields.
    Result(u64),
    /// An account address.
    Address(u64),
    /// Anything else, by tag. It is kept and passed on as it is.
    Other(u8),
}

impl<'a> View<'a> {
    pub(crate) fn head(self) -> Head {
        checked(head(self.bytes))
    }

    /// The slots, in order.
    pub fn slots(self) -> Slots<'a> {
        Slots::new(self)
    }

    /// What this value is.
    pub fn form(self) -> Form<'a> {
        let head = self.head();
        let body = &self.bytes[1..head.size];
        match head.tag {
            NIL => Form::Nil,
            FALSE => Form::Bool(false),
            TRUE => Form::Bool(true),
            0x10..=0x18 => Form::Int(int(body)),
            BIG_INT => Form::BigInt(&self.bytes[head.size - head.count as usize..]),
            DOUBLE => {
                Form::Double(f64::from_be_bytes(body.try_into().expect("a double has 8 bytes")))
            }
            0x3c..=0x3e => Form::Character(head.count as u32),
            STRING => Form::String(head.count),
            BLOB => Form::Blob(head.count),
            SYMBOL => Form::Symbol(&body[1..]),
            KEYWORD => Form::Keyword(&body[1..]),
            VECTOR => Form::Vector(head.count),
            LIST => Form::List(head.count),
            MAP => Form::Map(head.count),
            SET => Form::Set(head.count),
            INDEX => Form::Index(head.count),
            SIGNED => Form::Signed,
            RESULT => Form::Result(head.count),
            ADDRESS => Form::Address(head.count),
            tag => Form::Other(tag),
        }
    }

    /// Whether this is nil.
    pub fn is_nil(self) -> bool {
        self.bytes[0] == NIL
    }

    /// The integer, if it is one of 64 bits.
    pub fn as_int(self) -> Option<i64> {
        (INT <= self.bytes[0] && self.bytes[0] <= INT + 8).then(|| int(&self.bytes[1..]))
    }

    /// The float, if it is one.
    pub fn as_double(self) -> Option<f64> {
        match self.form() {
            Form::Double(double) => Some(double),
            _ => None,
        }
    }

    /// The keyword's name, if it is one.
    pub fn as_keyword(self) -> Option<&'a [u8]> {
        match self.form() {
            Form::Keyword(name) => Some(name),
            _ => None,
        }
    }

    /// The bytes of a string, if it is one.
    ///
    /// # Errors
    ///
    /// `TooLarge` if there are more than `size_max`, `Missing` if a piece is not here.
    pub fn as_string(self, size_max: usize) -> Result<Option<Cow<'a, [u8]>>, Error> {
        if self.bytes[0] == STRING { self.text(size_max).map(Some) } else { Ok(None) }
    }

    /// The bytes of a blob, if it is one.
    ///
    /// # Errors
    ///
    /// `TooLarge` if there are more than `size_max`, `Missing` if a piece is not here.
    pub fn as_blob(self, size_max: usize) -> Result<Option<Cow<'a, [u8]>>, Error> {
        if self.bytes[0] == BLOB { self.text(size_max).map(Some) } else { Ok(None) }
    }

    /// The 32 bytes of a blob of just that size, as keys and ids are kept.
    pub fn as_blob32(self) -> Option<&'a [u8; 32]> {
        match self.bytes {
            [BLOB, 32, rest @ ..] => rest.try_into().ok(),
            _ => None,
        }
    }

    /// The bytes of a string or blob.
    fn text(self, size_max: usize) -> Result<Cow<'a, [u8]>, Error> {
        let head = self.head();
        if (size_max as u64) < head.count {
            let size = usize::try_from(head.count).unwrap_or(usize::MAX);
            return Err(Error::TooLarge { what: "text", size, size_max });
        }
        if head.slots == 0 {
            return Ok(Cow::Borrowed(&self.bytes[head.size - head.count as usize..]));
        }
        let mut bytes = Vec::with_capacity(head.count as usize);
        self.append_text(&mut bytes, usize::MAX)?;
        Ok(Cow::Owned(bytes))
    }

    /// Appends at least the first `size` bytes, by whole pieces.
    fn append_text(self, to: &mut Vec<u8>, size: usize) -> Result<(), Error> {
        let head = self.head();
        if head.slots == 0 {
            to.extend_from_slice(&self.bytes[head.size - head.count as usize..]);
            return Ok(());
        }
        for slot in Slots::after(self, &head) {
            if size <= to.len() {
                break;
            }
            slot.view()?.append_text(to, size)?;
        }
        Ok(())
    }

    /// The elements of a vector, a list (as stored, last first) or a dense record.
    ///
    /// # Errors
    ///
    /// `TooLarge` if there are more than `count_max`, `Missing` if a piece is not here, `Encoding`
    /// if this is something else.
    pub fn elements(self, count_max: usize) -> Result<Vec<View<'a>>, Error> {
        let head = self.head();
        if !matches!(head.tag, VECTOR | LIST | 0xd0..=0xdf) {
            return bad("not a vector");
        }
        let mut elements = Vec::with_capacity(count_within(&head, count_max)?);
        self.append_elements(&mut elements)?;
        Ok(elements)
    }

    fn append_elements(self, to: &mut Vec<View<'a>>) -> Result<(), Error> {
        let head = self.head();
        let slots = Slots::after(self, &head);
        if 16 < head.count && head.count.is_multiple_of(16) {
            for slot in slots {
                slot.view()?.append_elements(to)?;
            }
            return Ok(());
        }
        if 16 < head.count {
            // The tail stands before the prefix in the bytes, and behind it in the vector.
            let prefix = slots.clone().last().expect("a vector with a tail has a prefix");
            prefix.view()?.append_elements(to)?;
        }
        for slot in slots.take((head.count % 16) as usize + if head.count == 16 { 16 } else { 0 }) {
            to.push(slot.view()?);
        }
        Ok(())
    }

    /// The entries of a map, in the order of their keys' ids.
    ///
    /// # Errors
    ///
    /// `TooLarge` if there are more than `count_max`, `Missing` if a piece is not here, `Encoding`
    /// if this is something else.
    pub fn map_entries(self, count_max: usize) -> Result<Vec<(View<'a>, View<'a>)>, Error> {
        let head = self.head();
        if head.tag != MAP {
            return bad("not a map");
        }
        let mut entries = Vec::with_capacity(count_within(&head, count_max)?);
        self.visit_leaves(&mut |leaf| {
            let mut slots = leaf.slots();
            while let (Some(key), Some(value)) = (slots.next(), slots.next()) {
                entries.push((key.view()?, value.view()?));
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// The elements of a set, in the order of their ids.
    ///
    /// # Errors
    ///
    /// `TooLarge` if there are more than `count_max`, `Missing` if a piece is not here, `Encoding`
    /// if this is something else.
    pub fn set_elements(self, count_max: usize) -> Result<Vec<View<'a>>, Error> {
        let head = self.head();
        if head.tag != SET {
            return bad("not a set");
        }
        let mut elements = Vec::with_capacity(count_within(&head, count_max)?);
        self.visit_leaves(&mut |leaf| {
            leaf.slots().try_for_each(|slot| {
                elements.push(slot.view()?);
                Ok(())
            })
        })?;
        Ok(elements)
    }

    fn visit_leaves(
        self,
        visit: &mut impl FnMut(View<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let head = self.head();
        if head.count <= LEAF_COUNT_MAX {
            return visit(self);
        }
        for slot in Slots::after(self, &head) {
            slot.view()?.visit_leaves(visit)?;
        }
        Ok(())
    }

    /// The value that a map holds for the key with this id.
    ///
    /// # Errors
    ///
    /// `Missing` if a piece on the way is not here, `Encoding` if this is not a map.
    pub fn map_get(self, key: &Id) -> Result<Option<View<'a>>, Error> {
        let mut view = self;
        loop {
            let head = view.head();
            if head.tag != MAP {
                return bad("not a map");
            }
            let mut slots = Slots::after(view, &head);
            if head.count <= LEAF_COUNT_MAX {
                while let (Some(it), Some(value)) = (slots.next(), slots.next()) {
                    if it.id() == *key {
                        return value.view().map(Some);
                    }
                }
                return Ok(None);
            }
            let (shift, mask) = map_fork(view.bytes, &head);
            let digit = key.digit(shift);
            if mask >> digit & 1 == 0 {
                return Ok(None);
            }
            let before = (mask & ((1 << digit) - 1)).count_ones() as usize;
            view = slots.nth(before).expect("a slot for each bit of the mask").view()?;
        }
    }

    /// The signer's key, the signature and the signed value, if this is signed data.
    pub fn signed_parts(self) -> Option<(&'a [u8; 32], &'a [u8; 64], Slot<'a>)> {
        if self.bytes[0] != SIGNED {
            return None;
        }
        let key = self.bytes[1..33].try_into().expect("the slice has 32 bytes");
        let signature = self.bytes[33..97].try_into().expect("the slice has 64 bytes");
        Some((key, signature, self.slots().next().expect("signed data has a value")))
    }
}

fn int(body: &[u8]) -> i64 {
    let sign = body.first().map_or(0, |first| if *first < 0x80 { 0 } else { -1 });
    body.iter().fold(sign, |int, byte| int << 8 | i64::from(*byte))
}

fn count_within(head: &Head, count_max: usize) -> Result<usize, Error> {
    let size = usize::try_from(head.count).unwrap_or(usize::MAX);
    if count_max < size {
        return Err(Error::TooLarge { what: "collection", size, size_max: count_max });
    }
    Ok(size)
}

/// The bytes of an Index key that decide its place: the first 255. Nothing if they are not here.
///
/// # Errors
///
/// `Encoding` if such a value cannot be a key.
pub(crate) fn key_bytes(view: View<'_>) -> Result<Option<Cow<'_, [u8]>>, Error> {
    const SIZE_MAX: usize = KEY_DIGITS_MAX / 2;
    let head = view.head();
    let mut bytes = match head.tag {
        STRING | BLOB if head.slots == 0 => {
            Cow::Borrowed(&view.bytes[head.size - head.count as usize..])
        }
        STRING | BLOB => {
            let mut bytes = Vec::new();
            match view.append_text(&mut bytes, SIZE_MAX) {
                Ok(()) => Cow::Owned(bytes),
                Err(_) => return Ok(None),
            }
        }
        SYMBOL | KEYWORD => Cow::Borrowed(&view.bytes[2..]),
        0xe0..=0xef => Cow::Owned(head.count.to_be_bytes().to_vec()),
        _ => return bad("value cannot be the key of an index"),
    };
    if SIZE_MAX < bytes.len() {
        match &mut bytes {
            Cow::Borrowed(slice) => *slice = &slice[..SIZE_MAX],
            Cow::Owned(vec) => vec.truncate(SIZE_MAX),
        }
    }
    Ok(Some(bytes))
}
