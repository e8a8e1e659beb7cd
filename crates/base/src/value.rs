//! The one value model for BSON, SQL and Redis hash views.
//!
//! Widths are part of a value: an `I32` stays an `I32` through storage. Equality here is identity
//! of representation; comparing numbers across widths is the business of a query language.

/// A value as documents hold it and CBOR stores it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Null.
    Null,
    /// True or false.
    Bool(bool),
    /// A signed integer of 8 bits.
    I8(i8),
    /// An unsigned integer of 8 bits.
    U8(u8),
    /// A signed integer of 16 bits.
    I16(i16),
    /// An unsigned integer of 16 bits.
    U16(u16),
    /// A signed integer of 32 bits.
    I32(i32),
    /// An unsigned integer of 32 bits.
    U32(u32),
    /// A signed integer of 64 bits.
    I64(i64),
    /// An unsigned integer of 64 bits.
    U64(u64),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// An IEEE 754-2008 decimal of 128 bits, in BID form, little-endian as BSON carries it.
    Decimal([u8; 16]),
    /// Text.
    Text(String),
    /// Text whose bytes are not UTF-8, as foreign writers leave it behind.
    RawText(Vec<u8>),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Bytes with a BSON subtype other than 0 (and other than UUID).
    Binary(u8, Vec<u8>),
    /// Milliseconds since 1970-01-01T00:00:00Z.
    DateTime(i64),
    /// A BSON object id.
    ObjectId([u8; 12]),
    /// A UUID.
    Uuid([u8; 16]),
    /// A BSON timestamp: seconds, then a counter within the second.
    Timestamp(u32, u32),
    /// A regular expression and its options.
    Regex(String, String),
    /// JavaScript code, kept and never run.
    Code(String),
    /// Sorts before everything.
    MinKey,
    /// Sorts after everything.
    MaxKey,
    /// A list.
    Array(Vec<Value>),
    /// Fields in the order in which they were written.
    Map(Vec<(String, Value)>),
}
