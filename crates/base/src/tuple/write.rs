//! Packs elements one after another.

use super::{DEPTH_MAX, Element, code};
use crate::Error;

/// Packs a tuple, element by element, without building the elements first.
///
/// ```
/// use kumiko_base::tuple::Writer;
/// let key = Writer::new().text("id").int(42).finish();
/// assert_eq!(key, [0x02, b'i', b'd', 0x00, 0x15, 42]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty tuple.
    pub fn new() -> Writer {
        Writer { bytes: Vec::with_capacity(64) }
    }

    /// Goes on after a tuple that was packed before.
    pub fn after(packed: &[u8]) -> Writer {
        let mut bytes = Vec::with_capacity(packed.len() + 32);
        bytes.extend_from_slice(packed);
        Writer { bytes }
    }

    /// Adds a null.
    pub fn null(mut self) -> Writer {
        self.bytes.push(code::NULL);
        self
    }

    /// Adds a byte string.
    pub fn bytes(mut self, bytes: &[u8]) -> Writer {
        put_escaped(&mut self.bytes, code::BYTES, bytes);
        self
    }

    /// Adds text.
    pub fn text(self, text: &str) -> Writer {
        self.text_bytes(text.as_bytes())
    }

    /// Adds text whose bytes need not be UTF-8.
    pub fn text_bytes(mut self, bytes: &[u8]) -> Writer {
        put_escaped(&mut self.bytes, code::TEXT, bytes);
        self
    }

    /// Adds an integer of any width.
    pub fn int(mut self, number: impl Into<i128>) -> Writer {
        put_int(&mut self.bytes, number.into());
        self
    }

    /// Adds a float of 32 bits.
    pub fn f32(mut self, number: f32) -> Writer {
        put_f32(&mut self.bytes, number);
        self
    }

    /// Adds a float of 64 bits.
    pub fn f64(mut self, number: f64) -> Writer {
        put_f64(&mut self.bytes, number);
        self
    }

    /// Adds true or false.
    pub fn bool(mut self, truth: bool) -> Writer {
        self.bytes.push(if truth { code::TRUE } else { code::FALSE });
        self
    }

    /// Adds a UUID.
    pub fn uuid(mut self, uuid: &[u8; 16]) -> Writer {
        self.bytes.push(code::UUID);
        self.bytes.extend_from_slice(uuid);
        self
    }

    /// Adds one element.
    ///
    /// # Errors
    ///
    /// `TooDeep` if it nests tuples deeper than `DEPTH_MAX`.
    pub fn element(mut self, element: &Element) -> Result<Writer, Error> {
        put(&mut self.bytes, element, 0)?;
        Ok(self)
    }

    /// The bytes so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The packed tuple.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Packs a whole tuple.
///
/// # Errors
///
/// `TooDeep` if an element nests tuples deeper than `DEPTH_MAX`.
pub fn pack(elements: &[Element]) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(elements.len() * 16);
    for element in elements {
        put(&mut bytes, element, 0)?;
    }
    Ok(bytes)
}

fn put(to: &mut Vec<u8>, element: &Element, depth: usize) -> Result<(), Error> {
    match element {
        Element::Null if depth == 0 => to.push(code::NULL),
        Element::Null => to.extend_from_slice(&[code::NULL, code::ESCAPE]),
        Element::Bytes(bytes) => put_escaped(to, code::BYTES, bytes),
        Element::Text(text) => put_escaped(to, code::TEXT, text.as_bytes()),
        Element::RawText(bytes) => put_escaped(to, code::TEXT, bytes),
        Element::Tuple(elements) => {
            if DEPTH_MAX <= depth {
                return Err(Error::TooDeep { depth_max: DEPTH_MAX });
            }
            to.push(code::TUPLE);
            for element in elements {
                put(to, element, depth + 1)?;
            }
            to.push(0);
        }
        Element::Int(number) => put_int(to, *number),
        Element::F32(number) => put_f32(to, *number),
        Element::F64(number) => put_f64(to, *number),
        Element::Bool(truth) => to.push(if *truth { code::TRUE } else { code::FALSE }),
        Element::Uuid(bytes) => {
            to.push(code::UUID);
            to.extend_from_slice(bytes);
        }
        Element::Versionstamp(bytes) => {
            to.push(code::VERSIONSTAMP);
            to.extend_from_slice(bytes);
        }
    }
    Ok(())
}

fn put_escaped(to: &mut Vec<u8>, code: u8, bytes: &[u8]) {
    to.push(code);
    if bytes.contains(&0) {
        for byte in bytes {
            to.push(*byte);
            if *byte == 0 {
                to.push(code::ESCAPE);
            }
        }
    } else {
        to.extend_from_slice(bytes);
    }
    to.push(0);
}

fn put_int(to: &mut Vec<u8>, number: i128) {
    let magnitude = number.unsigned_abs();
    let size = (128 - magnitude.leading_zeros()).div_ceil(8) as usize;
    let flip = if number < 0 { 0xFF } else { 0x00 };
    match (size, number < 0) {
        (0..=8, false) => to.push(code::INT_ZERO + size as u8),
        (0..=8, true) => to.push(code::INT_ZERO - size as u8),
        (_, false) => to.extend_from_slice(&[code::INT_BIG_POSITIVE, size as u8]),
        (_, true) => to.extend_from_slice(&[code::INT_BIG_NEGATIVE, size as u8 ^ flip]),
    }
    let bytes = magnitude.to_be_bytes();
    to.extend(bytes.iter().skip(bytes.len() - size).map(|byte| byte ^ flip));
}

fn put_f32(to: &mut Vec<u8>, number: f32) {
    let bits = number.to_bits();
    let sign = 1 << 31;
    let ordered = if bits & sign == 0 { bits | sign } else { !bits };
    to.push(code::F32);
    to.extend_from_slice(&ordered.to_be_bytes());
}

fn put_f64(to: &mut Vec<u8>, number: f64) {
    let bits = number.to_bits();
    let sign = 1 << 63;
    let ordered = if bits & sign == 0 { bits | sign } else { !bits };
    to.push(code::F64);
    to.extend_from_slice(&ordered.to_be_bytes());
}
