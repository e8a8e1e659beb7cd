//! Writes CBOR items one after another.

use super::{DEPTH_MAX, tag};
use crate::{Error, Value, time};

/// The major types, already in the upper three bits.
mod major {
    pub(super) const UNSIGNED: u8 = 0x00;
    pub(super) const NEGATIVE: u8 = 0x20;
    pub(super) const BYTES: u8 = 0x40;
    pub(super) const TEXT: u8 = 0x60;
    pub(super) const ARRAY: u8 = 0x80;
    pub(super) const MAP: u8 = 0xA0;
    pub(super) const TAG: u8 = 0xC0;
}

/// Writes items in the order in which they are told. An array or a map is its length, then its
/// items; the caller counts.
///
/// The widths are those that a reader of PuzzleDB expects of each type, so that `i32(7)` takes five
/// bytes and `i8(7)` one. An unsigned number is written plainly, without the tag that would bring
/// it back unsigned: records have a shape, and their reader asks for the number it wants.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Nothing written yet.
    pub fn new() -> Encoder {
        Encoder { bytes: Vec::with_capacity(64) }
    }

    /// The bytes so far.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Null.
    pub fn null(&mut self) -> &mut Encoder {
        self.byte(0xF6)
    }

    /// True or false.
    pub fn bool(&mut self, truth: bool) -> &mut Encoder {
        self.byte(if truth { 0xF5 } else { 0xF4 })
    }

    /// A signed integer of 8 bits.
    pub fn i8(&mut self, number: i8) -> &mut Encoder {
        let (major, rest) = signed(i64::from(number));
        self.one_byte(major, rest as u8)
    }

    /// A signed integer of 16 bits.
    pub fn i16(&mut self, number: i16) -> &mut Encoder {
        let (major, rest) = signed(i64::from(number));
        self.byte(major | 0x19).raw(&(rest as u16).to_be_bytes())
    }

    /// A signed integer of 32 bits.
    pub fn i32(&mut self, number: i32) -> &mut Encoder {
        let (major, rest) = signed(i64::from(number));
        self.byte(major | 0x1A).raw(&(rest as u32).to_be_bytes())
    }

    /// A signed integer of 64 bits.
    pub fn i64(&mut self, number: i64) -> &mut Encoder {
        let (major, rest) = signed(number);
        self.byte(major | 0x1B).raw(&rest.to_be_bytes())
    }

    /// An unsigned integer of 8 bits.
    pub fn u8(&mut self, number: u8) -> &mut Encoder {
        self.one_byte(major::UNSIGNED, number)
    }

    /// An unsigned integer of 16 bits.
    pub fn u16(&mut self, number: u16) -> &mut Encoder {
        self.byte(major::UNSIGNED | 0x19).raw(&number.to_be_bytes())
    }

    /// An unsigned integer of 32 bits.
    pub fn u32(&mut self, number: u32) -> &mut Encoder {
        self.byte(major::UNSIGNED | 0x1A).raw(&number.to_be_bytes())
    }

    /// An unsigned integer of 64 bits.
    pub fn u64(&mut self, number: u64) -> &mut Encoder {
        self.byte(major::UNSIGNED | 0x1B).raw(&number.to_be_bytes())
    }

    /// A float of 32 bits.
    pub fn f32(&mut self, number: f32) -> &mut Encoder {
        self.byte(0xFA).raw(&number.to_bits().to_be_bytes())
    }

    /// A float of 64 bits.
    pub fn f64(&mut self, number: f64) -> &mut Encoder {
        self.byte(0xFB).raw(&number.to_bits().to_be_bytes())
    }

    /// Text.
    pub fn text(&mut self, text: &str) -> &mut Encoder {
        self.text_bytes(text.as_bytes())
    }

    /// Text whose bytes need not be UTF-8.
    pub fn text_bytes(&mut self, bytes: &[u8]) -> &mut Encoder {
        self.length(major::TEXT, bytes.len()).raw(bytes)
    }

    /// A byte string.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Encoder {
        self.length(major::BYTES, bytes.len()).raw(bytes)
    }

    /// The head of an array: `count` items follow.
    pub fn array(&mut self, count: usize) -> &mut Encoder {
        self.length(major::ARRAY, count)
    }

    /// The head of a map: `count` times a key and a value follow.
    pub fn map(&mut self, count: usize) -> &mut Encoder {
        self.length(major::MAP, count)
    }

    /// A tag: one item follows.
    pub fn tag(&mut self, tag: u64) -> &mut Encoder {
        self.length(major::TAG, tag as usize)
    }

    /// A moment, in milliseconds since 1970.
    pub fn date_time(&mut self, ms: i64) -> &mut Encoder {
        match time::show(ms) {
            Some(text) => self.tag(tag::DATE_TIME).text(&text),
            None => self.tag(tag::FAR_DATE_TIME).i64(ms),
        }
    }

    /// A whole value.
    ///
    /// # Errors
    ///
    /// `TooDeep` if it is nested deeper than `DEPTH_MAX`.
    pub fn value(&mut self, value: &Value) -> Result<&mut Encoder, Error> {
        self.put(value, 0)?;
        Ok(self)
    }

    fn byte(&mut self, byte: u8) -> &mut Encoder {
        self.bytes.push(byte);
        self
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut Encoder {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn one_byte(&mut self, major: u8, number: u8) -> &mut Encoder {
        if number < 24 { self.byte(major | number) } else { self.byte(major | 0x18).byte(number) }
    }

    /// PuzzleDB leaves the largest number of each width to the next one, and so do we: the bytes
    /// are the same.
    fn length(&mut self, major: u8, length: usize) -> &mut Encoder {
        if length < 0xFF {
            self.one_byte(major, length as u8)
        } else if length < 0xFFFF {
            self.byte(major | 0x19).raw(&(length as u16).to_be_bytes())
        } else if length < 0xFFFF_FFFF {
            self.byte(major | 0x1A).raw(&(length as u32).to_be_bytes())
        } else {
            self.byte(major | 0x1B).raw(&(length as u64).to_be_bytes())
        }
    }

    fn put(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value {
            Value::Null => self.null(),
            Value::Bool(truth) => self.bool(*truth),
            Value::I8(number) => self.i8(*number),
            Value::I16(number) => self.i16(*number),
            Value::I32(number) => self.i32(*number),
            Value::I64(number) => self.i64(*number),
            Value::U8(number) => self.unsigned(i8::try_from(*number).is_ok()).u8(*number),
            Value::U16(number) => self.unsigned(i16::try_from(*number).is_ok()).u16(*number),
            Value::U32(number) => self.unsigned(i32::try_from(*number).is_ok()).u32(*number),
            Value::U64(number) => self.unsigned(i64::try_from(*number).is_ok()).u64(*number),
            Value::F32(number) => self.f32(*number),
            Value::F64(number) => self.f64(*number),
            Value::Decimal(bytes) => self.tag(tag::DECIMAL).bytes(bytes),
            Value::Text(text) => self.text(text),
            Value::RawText(bytes) => self.text_bytes(bytes),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Binary(subtype, bytes) => {
                self.tag(tag::BINARY).length(major::BYTES, bytes.len() + 1);
                self.byte(*subtype).raw(bytes)
            }
            Value::DateTime(ms) => self.date_time(*ms),
            Value::ObjectId(bytes) => self.tag(tag::OBJECT_ID).bytes(bytes),
            Value::Uuid(bytes) => self.tag(tag::UUID).bytes(bytes),
            Value::Timestamp(seconds, counter) => {
                self.tag(tag::TIMESTAMP).length(major::BYTES, 8);
                self.raw(&seconds.to_be_bytes()).raw(&counter.to_be_bytes())
            }
            Value::Regex(pattern, options) => {
                self.tag(tag::REGEX).array(2).text(pattern).text(options)
            }
            Value::Code(text) => self.tag(tag::CODE).text(text),
            Value::MinKey => self.tag(tag::MIN_KEY).null(),
            Value::MaxKey => self.tag(tag::MAX_KEY).null(),
            Value::Array(_) | Value::Map(_) | Value::Pairs(_) => {
                return self.put_many(value, depth);
            }
        };
        Ok(())
    }

    fn put_many(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if DEPTH_MAX <= depth {
            return Err(Error::TooDeep { depth_max: DEPTH_MAX });
        }
        match value {
            Value::Array(items) => {
                self.array(items.len());
                for item in items {
                    self.put(item, depth + 1)?;
                }
            }
            Value::Map(fields) => {
                self.map(fields.len());
                for (name, field) in fields {
                    self.text(name);
                    self.put(field, depth + 1)?;
                }
            }
            Value::Pairs(pairs) => {
                self.map(pairs.len());
                for (key, field) in pairs {
                    self.put(key, depth + 1)?;
                    self.put(field, depth + 1)?;
                }
            }
            _ => self.put(value, depth)?,
        }
        Ok(())
    }

    fn unsigned(&mut self, ambiguous: bool) -> &mut Encoder {
        if ambiguous { self.tag(tag::UNSIGNED) } else { self }
    }
}

/// The bytes of a value.
///
/// # Errors
///
/// `TooDeep` if it is nested deeper than `DEPTH_MAX`.
pub fn encode(value: &Value) -> Result<Vec<u8>, Error> {
    let mut encoder = Encoder::new();
    encoder.put(value, 0)?;
    Ok(encoder.finish())
}

/// The major type of a number, and what is written behind it.
fn signed(number: i64) -> (u8, u64) {
    if number < 0 { (major::NEGATIVE, !number as u64) } else { (major::UNSIGNED, number as u64) }
}
