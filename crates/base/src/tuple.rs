//! Tuple keys: typed elements packed so that the order of the bytes is the order of the elements.
//!
//! The bytes are those of FoundationDB's tuple layer. Each element is a type code and its payload:
//!
//! ```text
//! 00                       null (inside a nested tuple: 00 FF)
//! 01 bytes 00              byte string, every 00 inside becomes 00 FF
//! 02 bytes 00              text, escaped likewise
//! 05 elements 00           nested tuple
//! 0B ~n ~magnitude         integer below -(2^64 - 1), n bytes, all bits flipped
//! 0C .. 13 ~magnitude      negative integer of 8 .. 1 bytes, all bits flipped
//! 14                       zero
//! 15 .. 1C magnitude       positive integer of 1 .. 8 bytes
//! 1D n magnitude           integer above 2^64 - 1, n bytes
//! 20 / 21 bits             float of 32 / 64 bits: sign bit flipped, or all bits if negative
//! 26 / 27                  false / true
//! 30 bytes                 UUID, 16 bytes
//! 33 bytes                 versionstamp, 12 bytes
//! ```
//!
//! Invariant: every tuple has exactly one form. What unpacks packs again to the same bytes; an
//! integer with leading zeroes, which would break that, is refused.

use std::cmp::Ordering;
use std::fmt;

mod read;
mod write;

pub use read::{Reader, unpack, unpack_some};
pub use write::{Writer, pack};

/// How deep tuples may be nested in one another. Keys of ours do not nest; eight times what any
/// reader of FoundationDB keys is likely to meet, and harmless for the stack.
pub const DEPTH_MAX: usize = 32;

/// The type codes.
pub(crate) mod code {
    pub(crate) const NULL: u8 = 0x00;
    pub(crate) const BYTES: u8 = 0x01;
    pub(crate) const TEXT: u8 = 0x02;
    pub(crate) const TUPLE: u8 = 0x05;
    pub(crate) const INT_BIG_NEGATIVE: u8 = 0x0B;
    pub(crate) const INT_NEGATIVE_8: u8 = 0x0C;
    pub(crate) const INT_ZERO: u8 = 0x14;
    pub(crate) const INT_POSITIVE_8: u8 = 0x1C;
    pub(crate) const INT_BIG_POSITIVE: u8 = 0x1D;
    pub(crate) const F32: u8 = 0x20;
    pub(crate) const F64: u8 = 0x21;
    pub(crate) const FALSE: u8 = 0x26;
    pub(crate) const TRUE: u8 = 0x27;
    pub(crate) const UUID: u8 = 0x30;
    pub(crate) const VERSIONSTAMP: u8 = 0x33;
    /// After a 00: the zero is part of the string, or a null inside a tuple.
    pub(crate) const ESCAPE: u8 = 0xFF;
}

/// One element of a key.
///
/// Elements are ordered as their bytes are: by type first, then by value. Floats compare by their
/// bits, so that the order is total; -0.0 stands before 0.0.
#[derive(Clone, Debug)]
pub enum Element {
    /// Nothing.
    Null,
    /// A byte string.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
    /// Text whose bytes are not UTF-8, as foreign writers leave it behind.
    RawText(Vec<u8>),
    /// A tuple inside the tuple.
    Tuple(Vec<Element>),
    /// An integer. All widths are one type: 42 packs to the same bytes wherever it came from.
    Int(i128),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// True or false.
    Bool(bool),
    /// A UUID.
    Uuid([u8; 16]),
    /// A FoundationDB versionstamp.
    Versionstamp([u8; 12]),
}

impl Element {
    /// The bytes of a text element, whether they are UTF-8 or not.
    pub fn text_bytes(&self) -> Option<&[u8]> {
        match self {
            Element::Text(text) => Some(text.as_bytes()),
            Element::RawText(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Element::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if this is one that fits 64 signed bits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Element::Int(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The integer, if this is one that fits 64 unsigned bits.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Element::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Types in the order of their codes.
    fn rank(&self) -> u8 {
        match self {
            Element::Null => 0,
            Element::Bytes(_) => 1,
            Element::Text(_) | Element::RawText(_) => 2,
            Element::Tuple(_) => 3,
            Element::Int(_) => 4,
            Element::F32(_) => 5,
            Element::F64(_) => 6,
            Element::Bool(_) => 7,
            Element::Uuid(_) => 8,
            Element::Versionstamp(_) => 9,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Element) -> Ordering {
        match (self, other) {
            (Element::Bytes(a), Element::Bytes(b)) => a.cmp(b),
            (Element::Tuple(a), Element::Tuple(b)) => a.cmp(b),
            (Element::Int(a), Element::Int(b)) => a.cmp(b),
            (Element::F32(a), Element::F32(b)) => a.total_cmp(b),
            (Element::F64(a), Element::F64(b)) => a.total_cmp(b),
            (Element::Bool(a), Element::Bool(b)) => a.cmp(b),
            (Element::Uuid(a), Element::Uuid(b)) => a.cmp(b),
            (Element::Versionstamp(a), Element::Versionstamp(b)) => a.cmp(b),
            (a, b) => match (a.text_bytes(), b.text_bytes()) {
                (Some(a), Some(b)) => a.cmp(b),
                _ => a.rank().cmp(&b.rank()),
            },
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Element) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Element) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Null => f.write_str("null"),
            Element::Bytes(bytes) => write!(f, "x'{}'", crate::hex::show(bytes)),
            Element::Text(text) => write!(f, "{text:?}"),
            Element::RawText(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Element::Tuple(elements) => {
                f.write_str("(")?;
                for (index, element) in elements.iter().enumerate() {
                    let gap = if index == 0 { "" } else { ", " };
                    write!(f, "{gap}{element}")?;
                }
                f.write_str(")")
            }
            Element::Int(number) => write!(f, "{number}"),
            Element::F32(number) => write!(f, "{number:?}f32"),
            Element::F64(number) => write!(f, "{number:?}f64"),
            Element::Bool(truth) => write!(f, "{truth}"),
            Element::Uuid(bytes) => write!(f, "uuid'{}'", crate::hex::uuid(bytes)),
            Element::Versionstamp(bytes) => write!(f, "stamp'{}'", crate::hex::show(bytes)),
        }
    }
}

macro_rules! element_from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Element {
            fn from(value: $from) -> Element {
                Element::$variant(value.into())
            }
        })*
    };
}

element_from! {
    &[u8] => Bytes, Vec<u8> => Bytes, &str => Text, String => Text, bool => Bool,
    i8 => Int, i16 => Int, i32 => Int, i64 => Int, u8 => Int, u16 => Int, u32 => Int, u64 => Int,
    i128 => Int, f32 => F32, f64 => F64, Vec<Element> => Tuple,
}

/// The end of the range of keys that begin with the packed tuple `prefix` and go on with at least
/// one whole element, or are `prefix` itself: the range is `[prefix, prefix FF)`.
///
/// Not the next prefix of the same length: after the text "a" that would take in "a\0b" as well,
/// whose zero is packed as 00 FF.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = Vec::with_capacity(prefix.len() + 1);
    end.extend_from_slice(prefix);
    end.push(0xFF);
    end
}

#[cfg(test)]
mod tests;
