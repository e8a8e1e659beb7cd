//! The one value model for BSON, SQL and Redis hash views.
//!
//! Widths are part of a value: an `I32` stays an `I32` through storage. Equality here is identity
//! of representation; comparing numbers across widths is the business of a query language.

use std::fmt::{self, Write as _};

use crate::{hex, time};

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
    /// A map whose keys are not all text, as records of a fixed shape and foreign writers have it.
    /// Never a document: with text alone for keys it is a `Map`.
    Pairs(Vec<(Value, Value)>),
}

impl Value {
    /// The byte as PuzzleDB writes and reads bytes: signed as long as it fits.
    pub fn byte(number: u8) -> Value {
        i8::try_from(number).map_or(Value::U8(number), Value::I8)
    }

    /// The number as PuzzleDB writes and reads 64-bit numbers: signed as long as it fits.
    pub fn number(number: u64) -> Value {
        i64::try_from(number).map_or(Value::U64(number), Value::I64)
    }

    /// The integer, whatever its width; `None` if this is none.
    pub fn as_int(&self) -> Option<i128> {
        match *self {
            Value::I8(number) => Some(number.into()),
            Value::U8(number) => Some(number.into()),
            Value::I16(number) => Some(number.into()),
            Value::U16(number) => Some(number.into()),
            Value::I32(number) => Some(number.into()),
            Value::U32(number) => Some(number.into()),
            Value::I64(number) => Some(number.into()),
            Value::U64(number) => Some(number.into()),
            _ => None,
        }
    }

    /// The text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The field of this name, if this is a map that has one.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(fields) => {
                fields.iter().find(|(found, _)| found == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// For people: every type can be told from every other, and text stays on its line.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::I8(number) => write!(f, "{number}i8"),
            Value::U8(number) => write!(f, "{number}u8"),
            Value::I16(number) => write!(f, "{number}i16"),
            Value::U16(number) => write!(f, "{number}u16"),
            Value::I32(number) => write!(f, "{number}i32"),
            Value::U32(number) => write!(f, "{number}u32"),
            Value::I64(number) => write!(f, "{number}i64"),
            Value::U64(number) => write!(f, "{number}u64"),
            Value::F32(number) => write!(f, "{number:?}f32"),
            Value::F64(number) => write!(f, "{number:?}f64"),
            Value::Decimal(bytes) => write!(f, "decimal'{}'", hex::show(bytes)),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::RawText(bytes) => write!(f, "raw\"{}\"", bytes.escape_ascii()),
            Value::Bytes(bytes) => write!(f, "x'{}'", hex::show(bytes)),
            Value::Binary(subtype, bytes) => write!(f, "x{subtype:02x}'{}'", hex::show(bytes)),
            Value::DateTime(ms) => match time::show(*ms) {
                Some(text) => write!(f, "date'{text}'"),
                None => write!(f, "date'{ms} ms'"),
            },
            Value::ObjectId(bytes) => write!(f, "oid'{}'", hex::show(bytes)),
            Value::Uuid(bytes) => write!(f, "uuid'{}'", hex::uuid(bytes)),
            Value::Timestamp(seconds, counter) => write!(f, "timestamp'{seconds}.{counter}'"),
            Value::Regex(pattern, options) => write!(f, "regex({pattern:?}, {options:?})"),
            Value::Code(text) => write!(f, "code({text:?})"),
            Value::MinKey => f.write_str("minkey"),
            Value::MaxKey => f.write_str("maxkey"),
            Value::Array(items) => {
                show_list(f, ['[', ']'], items.iter(), |f, item| write!(f, "{item}"))
            }
            Value::Map(fields) => show_list(f, ['{', '}'], fields.iter(), |f, (name, field)| {
                write!(f, "{name:?}: {field}")
            }),
            Value::Pairs(pairs) => show_list(f, ['{', '}'], pairs.iter(), |f, (key, field)| {
                write!(f, "{key}: {field}")
            }),
        }
    }
}

fn show_list<'a, T: 'a>(
    f: &mut fmt::Formatter<'_>,
    [open, close]: [char; 2],
    items: impl Iterator<Item = &'a T>,
    show: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_char(open)?;
    for (index, item) in items.enumerate() {
        if index != 0 {
            f.write_str(", ")?;
        }
        show(f, item)?;
    }
    f.write_char(close)
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn shown() {
        let value = Value::Map(vec![
            ("id".into(), Value::I32(42)),
            ("list".into(), Value::Array(vec![Value::U8(200), Value::Null, Value::F64(1.0)])),
            ("raw".into(), Value::RawText(vec![0xFF])),
            ("bin".into(), Value::Binary(5, vec![0xAB])),
            ("when".into(), Value::DateTime(0)),
            ("far".into(), Value::DateTime(i64::MAX)),
        ]);
        assert_eq!(
            value.to_string(),
            "{\"id\": 42i32, \"list\": [200u8, null, 1.0f64], \"raw\": raw\"\\xff\", \
             \"bin\": x05'ab', \"when\": date'1970-01-01T00:00:00Z', \
             \"far\": date'9223372036854775807 ms'}"
        );
        assert_eq!(Value::Pairs(vec![(Value::I8(0), Value::Null)]).to_string(), "{0i8: null}");
        assert_eq!(value.field("id").and_then(Value::as_int), Some(42));
        assert_eq!(value.field("no"), None);
        assert_eq!([Value::byte(127), Value::byte(128)], [Value::I8(127), Value::U8(128)]);
        assert_eq!(Value::number(u64::MAX), Value::U64(u64::MAX));
        assert_eq!(Value::number(7), Value::I64(7));
    }
}
