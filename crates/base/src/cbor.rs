//! Values as CBOR: the bytes under most keys.
//!
//! The encoding is PuzzleDB's, so that either reads what the other wrote: the width of a number is
//! its type and is never shrunk, text is not checked for UTF-8, moments are tag 0 with RFC 3339
//! text. What PuzzleDB has no type for stands behind a tag of our own. `docs/format/cbor.md` has
//! the whole table.
//!
//! Invariant: `decode(encode(value)) == value` for every [`Value`] whose raw text is not UTF-8 and
//! whose pairs are not all keyed by text, as their comments demand.
//!
//! Read [`Encoder`] and [`Decoder`] for records with a shape of their own; [`encode`] and
//! [`decode`] for values.

mod read;
mod write;

pub use read::{Decoder, Token, decode, decode_some};
pub use write::{Encoder, encode};

/// How deep values may be nested. BSON stops at 100 levels; this leaves room for a record around.
pub const DEPTH_MAX: usize = 128;

/// The tags that stand before a value. Those from 4B00 on are our own.
pub mod tag {
    /// A moment as RFC 3339 text.
    pub const DATE_TIME: u64 = 0;
    /// A UUID as 16 bytes.
    pub const UUID: u64 = 37;
    /// An unsigned integer that would be read as a signed one without the tag.
    pub const UNSIGNED: u64 = 0x4B00;
    /// A decimal as 16 bytes.
    pub const DECIMAL: u64 = 0x4B01;
    /// An object id as 12 bytes.
    pub const OBJECT_ID: u64 = 0x4B02;
    /// A byte string whose first byte is a BSON subtype.
    pub const BINARY: u64 = 0x4B03;
    /// A moment outside the years 0 to 9999, as 64-bit milliseconds since 1970.
    pub const FAR_DATE_TIME: u64 = 0x4B04;
    /// A BSON timestamp as 8 bytes: seconds, then counter, big-endian.
    pub const TIMESTAMP: u64 = 0x4B05;
    /// A regular expression as an array of two texts: pattern, options.
    pub const REGEX: u64 = 0x4B06;
    /// JavaScript code as text.
    pub const CODE: u64 = 0x4B07;
    /// The least key: before null.
    pub const MIN_KEY: u64 = 0x4B08;
    /// The greatest key: before null.
    pub const MAX_KEY: u64 = 0x4B09;
}

#[cfg(test)]
mod tests;
