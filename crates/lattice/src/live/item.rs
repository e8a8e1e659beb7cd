//! One key of a database with what it holds.
//!
//! A short string lives with its key, expiry and access clock in a single allocation:
//!
//! ```text
//! flags (1: has an expiry) access (3, LE) key length (varint) key [expiry ms (8, LE)] value
//! ```
//!
//! Everything else is an [`Object`].

use super::fields::{Fields, Members};
use super::pack::{get_bytes, put_bytes, sized};
use super::ranking::Ranking;
use super::sequence::Sequence;

/// A longer string is kept apart from its key, with room to grow.
pub(crate) const TEXT_BYTES_MAX: usize = 1024;
const HEADER: usize = 4;
const EXPIRES: u8 = 1;

/// What a key holds, as TYPE names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Text or a counter.
    String,
    /// Fields and values.
    Hash,
    /// Members.
    Set,
    /// Members with scores.
    Zset,
    /// Elements in order.
    List,
}

impl Type {
    /// The word TYPE answers with.
    pub fn word(self) -> &'static str {
        match self {
            Type::String => "string",
            Type::Hash => "hash",
            Type::Set => "set",
            Type::Zset => "zset",
            Type::List => "list",
        }
    }
}

/// What an object holds.
#[derive(Debug)]
pub(crate) enum Holds {
    Text(Vec<u8>),
    Fields(Fields),
    Members(Members),
    Ranking(Ranking),
    Sequence(Sequence),
}

impl Holds {
    pub(crate) fn kind(&self) -> Type {
        match self {
            Holds::Text(_) => Type::String,
            Holds::Fields(_) => Type::Hash,
            Holds::Members(_) => Type::Set,
            Holds::Ranking(_) => Type::Zset,
            Holds::Sequence(_) => Type::List,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Holds::Text(text) => text.len(),
            Holds::Fields(fields) => fields.len(),
            Holds::Members(members) => members.len(),
            Holds::Ranking(ranking) => ranking.len(),
            Holds::Sequence(sequence) => sequence.len(),
        }
    }
}

/// A key with anything but a short string.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) key: Box<[u8]>,
    /// Milliseconds since the epoch; zero if it never expires.
    pub(crate) expire_ms: u64,
    pub(crate) access: u32,
    pub(crate) holds: Holds,
}

/// One key with what it holds.
#[derive(Debug)]
pub(crate) enum Item {
    Short(Box<[u8]>),
    Object(Box<Object>),
}

const _: () = assert!(size_of::<Item>() == 16);

fn short(key: &[u8], value: &[u8], expire_ms: u64, access: u32) -> Box<[u8]> {
    let expiry_size = if expire_ms == 0 { 0 } else { 8 };
    let mut bytes = Vec::with_capacity(HEADER + sized(key.len()) + expiry_size + value.len());
    bytes.push(u8::from(expire_ms != 0) * EXPIRES);
    bytes.extend_from_slice(&access.to_le_bytes()[..3]);
    put_bytes(&mut bytes, key);
    if expire_ms != 0 {
        bytes.extend_from_slice(&expire_ms.to_le_bytes());
    }
    bytes.extend_from_slice(value);
    bytes.into_boxed_slice()
}

fn value_start(bytes: &[u8]) -> usize {
    let (_, end) = get_bytes(bytes, HEADER).expect("a short item holds its key");
    end + usize::from(bytes[0] & EXPIRES) * 8
}

impl Item {
    /// A string item in the form that fits its size.
    pub(crate) fn text(key: &[u8], value: &[u8], expire_ms: u64, access: u32) -> Item {
        if value.len() <= TEXT_BYTES_MAX {
            return Item::Short(short(key, value, expire_ms, access));
        }
        Item::object(key, Holds::Text(value.to_vec()), expire_ms, access)
    }

    pub(crate) fn object(key: &[u8], holds: Holds, expire_ms: u64, access: u32) -> Item {
        Item::Object(Box::new(Object { key: key.into(), expire_ms, access, holds }))
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Item::Short(bytes) => get_bytes(bytes, HEADER).expect("a short item holds its key").0,
            Item::Object(object) => &object.key,
        }
    }

    pub(crate) fn kind(&self) -> Type {
        match self {
            Item::Short(_) => Type::String,
            Item::Object(object) => object.holds.kind(),
        }
    }

    /// The string, if it is one.
    #[inline]
    pub(crate) fn as_text(&self) -> Option<&[u8]> {
        match self {
            Item::Short(bytes) => Some(&bytes[value_start(bytes)..]),
            Item::Object(object) => match &object.holds {
                Holds::Text(text) => Some(text),
                _ => None,
            },
        }
    }

    /// Puts another string in place of the value, with the given expiry.
    pub(crate) fn set_text(&mut self, value: &[u8], expire_ms: u64) {
        if let Item::Short(bytes) = self
            && (expire_ms != 0) == (bytes[0] & EXPIRES != 0)
        {
            let start = value_start(bytes);
            if bytes.len() - start == value.len() {
                bytes[start..].copy_from_slice(value);
                if expire_ms != 0 {
                    bytes[start - 8..start].copy_from_slice(&expire_ms.to_le_bytes());
                }
                return;
            }
        }
        if let Item::Object(object) = self
            && let Holds::Text(text) = &mut object.holds
            && TEXT_BYTES_MAX < value.len()
        {
            // A much shorter value gives the memory back.
            if value.len() < text.capacity() / 2 {
                *text = Vec::new();
            }
            text.clear();
            text.extend_from_slice(value);
            object.expire_ms = expire_ms;
            return;
        }
        *self = Item::text(self.key(), value, expire_ms, self.access());
    }

    /// The string as a vector that can grow, moved out of the short form for good.
    pub(crate) fn text_mut(&mut self) -> Option<&mut Vec<u8>> {
        if let Item::Short(_) = self {
            let text = self.as_text().expect("short items are strings").to_vec();
            *self = Item::object(self.key(), Holds::Text(text), self.expire_ms(), self.access());
        }
        match self {
            Item::Object(object) => match &mut object.holds {
                Holds::Text(text) => Some(text),
                _ => None,
            },
            Item::Short(_) => None,
        }
    }

    #[inline]
    pub(crate) fn expire_ms(&self) -> u64 {
        match self {
            Item::Short(bytes) if bytes[0] & EXPIRES == 0 => 0,
            Item::Short(bytes) => {
                let end = value_start(bytes);
                u64::from_le_bytes(bytes[end - 8..end].try_into().expect("eight bytes were cut"))
            }
            Item::Object(object) => object.expire_ms,
        }
    }

    pub(crate) fn set_expire_ms(&mut self, expire_ms: u64) {
        match self {
            Item::Object(object) => object.expire_ms = expire_ms,
            Item::Short(_) => {
                let text = self.as_text().expect("short items are strings");
                *self = Item::Short(short(self.key(), text, expire_ms, self.access()));
            }
        }
    }

    /// Twenty-four bits that tell when, or how often, the item was used.
    pub(crate) fn access(&self) -> u32 {
        match self {
            Item::Short(bytes) => u32::from_le_bytes([bytes[1], bytes[2], bytes[3], 0]),
            Item::Object(object) => object.access,
        }
    }

    #[inline]
    pub(crate) fn set_access(&mut self, access: u32) {
        match self {
            Item::Short(bytes) => bytes[1..HEADER].copy_from_slice(&access.to_le_bytes()[..3]),
            Item::Object(object) => object.access = access & 0xFF_FFFF,
        }
    }

    /// The same content under another key.
    pub(crate) fn renamed(self, key: &[u8]) -> Item {
        match self {
            Item::Short(_) => {
                let text = self.as_text().expect("short items are strings");
                Item::Short(short(key, text, self.expire_ms(), self.access()))
            }
            Item::Object(mut object) => {
                object.key = key.into();
                Item::Object(object)
            }
        }
    }

    /// Bytes this item takes, its place in the table included; an estimate for large ones.
    pub(crate) fn bytes(&self) -> usize {
        const TABLE_SHARE: usize = 28;
        TABLE_SHARE
            + match self {
                Item::Short(bytes) => bytes.len().next_multiple_of(8),
                Item::Object(object) => {
                    let holds = match &object.holds {
                        Holds::Text(text) => text.capacity(),
                        Holds::Fields(fields) => fields.bytes(),
                        Holds::Members(members) => members.bytes(),
                        Holds::Ranking(ranking) => ranking.bytes(),
                        Holds::Sequence(sequence) => sequence.bytes(),
                    };
                    size_of::<Object>() + object.key.len() + holds
                }
            }
    }
}
