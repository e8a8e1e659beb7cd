//! Unpacks elements one after another.

use super::{DEPTH_MAX, Element, code};
use crate::Error;

/// Reads a packed tuple from its front.
///
/// The typed readers (`text`, `int`, `bytes`) refuse an element of another type, so that a key is
/// read in the shape that its category demands.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from the front.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Whether all was read.
    pub fn is_done(&self) -> bool {
        self.bytes.len() <= self.at
    }

    /// Whether all was read, as a result.
    ///
    /// # Errors
    ///
    /// `Shape` if something is left.
    pub fn done(&self) -> Result<(), Error> {
        if self.is_done() { Ok(()) } else { Err(Error::Shape("the key has too many elements")) }
    }

    /// The next element, or `None` at the end.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the bytes are no element, `Unsupported` if they are one that we do not have,
    /// `TooDeep` if tuples are nested deeper than `DEPTH_MAX`.
    pub fn element(&mut self) -> Result<Option<Element>, Error> {
        if self.is_done() { Ok(None) } else { self.take(0).map(Some) }
    }

    /// The next element, which must be text in UTF-8.
    pub fn text(&mut self) -> Result<String, Error> {
        match self.load()? {
            Element::Text(text) => Ok(text),
            _ => Err(Error::Shape("the key holds no text where text must be")),
        }
    }

    /// The next element, which must be a byte string.
    pub fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        match self.load()? {
            Element::Bytes(bytes) => Ok(bytes),
            _ => Err(Error::Shape("the key holds no byte string where one must be")),
        }
    }

    /// The next element, which must be an integer that fits `T`.
    pub fn int<T: TryFrom<i128>>(&mut self) -> Result<T, Error> {
        let wrong = Error::Shape("the key holds no fitting integer where one must be");
        match self.load()? {
            Element::Int(number) => T::try_from(number).map_err(|_| wrong),
            _ => Err(wrong),
        }
    }

    fn load(&mut self) -> Result<Element, Error> {
        self.element()?.ok_or(Error::Shape("the key has too few elements"))
    }

    fn corrupt(&self, reason: &'static str) -> Error {
        Error::Corrupt { offset: self.at, reason }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn take(&mut self, depth: usize) -> Result<Element, Error> {
        let code = self.peek(0).ok_or_else(|| self.corrupt("a tuple element is missing"))?;
        let start = self.at;
        self.at += 1;
        Ok(match code {
            code::NULL => Element::Null,
            code::BYTES => Element::Bytes(self.take_escaped()?),
            code::TEXT => match String::from_utf8(self.take_escaped()?) {
                Ok(text) => Element::Text(text),
                Err(error) => Element::RawText(error.into_bytes()),
            },
            code::TUPLE => Element::Tuple(self.take_tuple(depth)?),
            code::INT_NEGATIVE_8..=code::INT_POSITIVE_8 => {
                let size = usize::from(code.abs_diff(code::INT_ZERO));
                Element::Int(self.take_int(size, code < code::INT_ZERO)?)
            }
            code::INT_BIG_NEGATIVE | code::INT_BIG_POSITIVE => {
                Element::Int(self.take_big_int(code == code::INT_BIG_NEGATIVE)?)
            }
            code::F32 => {
                let bits = u32::from_be_bytes(self.take_array()?);
                let sign = 1 << 31;
                Element::F32(f32::from_bits(if bits & sign == 0 { !bits } else { bits ^ sign }))
            }
            code::F64 => {
                let bits = u64::from_be_bytes(self.take_array()?);
                let sign = 1 << 63;
                Element::F64(f64::from_bits(if bits & sign == 0 { !bits } else { bits ^ sign }))
            }
            code::FALSE => Element::Bool(false),
            code::TRUE => Element::Bool(true),
            code::UUID => Element::Uuid(self.take_array()?),
            code::VERSIONSTAMP => Element::Versionstamp(self.take_array()?),
            _ => {
                return Err(Error::Corrupt { offset: start, reason: "unknown tuple type code" });
            }
        })
    }

    fn take_escaped(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        loop {
            let rest = self.rest();
            let Some(zero) = rest.iter().position(|byte| *byte == 0) else {
                return Err(self.corrupt("a string in a key has no end"));
            };
            bytes.extend_from_slice(rest.get(..zero).unwrap_or_default());
            self.at += zero + 1;
            if self.peek(0) != Some(code::ESCAPE) {
                return Ok(bytes);
            }
            bytes.push(0);
            self.at += 1;
        }
    }

    fn take_tuple(&mut self, depth: usize) -> Result<Vec<Element>, Error> {
        if DEPTH_MAX <= depth {
            return Err(Error::TooDeep { depth_max: DEPTH_MAX });
        }
        let mut elements = Vec::new();
        loop {
            match (self.peek(0), self.peek(1)) {
                (None, _) => return Err(self.corrupt("a tuple inside a key has no end")),
                (Some(0), Some(code::ESCAPE)) => {
                    elements.push(Element::Null);
                    self.at += 2;
                }
                (Some(0), _) => {
                    self.at += 1;
                    return Ok(elements);
                }
                (Some(_), _) => elements.push(self.take(depth + 1)?),
            }
        }
    }

    fn take_big_int(&mut self, negative: bool) -> Result<i128, Error> {
        let offset = self.at;
        let [size] = self.take_array()?;
        let size = usize::from(if negative { !size } else { size });
        if size <= 8 {
            return Err(Error::Corrupt { offset, reason: "a short integer in the long form" });
        }
        if 16 < size {
            return Err(Error::Unsupported { offset, what: "an integer of more than 128 bits" });
        }
        self.take_int(size, negative)
    }

    /// `size` is at most 16.
    fn take_int(&mut self, size: usize, negative: bool) -> Result<i128, Error> {
        let offset = self.at;
        let mut magnitude: u128 = 0;
        for index in 0..size {
            let byte = self.peek(index).ok_or_else(|| self.corrupt("an integer is cut off"))?;
            let byte = if negative { !byte } else { byte };
            if index == 0 && byte == 0 {
                return Err(Error::Corrupt { offset, reason: "an integer with leading zeroes" });
            }
            magnitude = magnitude << 8 | u128::from(byte);
        }
        self.at += size;
        let number = if negative {
            0_i128.checked_sub_unsigned(magnitude)
        } else {
            i128::try_from(magnitude).ok()
        };
        number.ok_or(Error::Unsupported { offset, what: "an integer of more than 128 bits" })
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.rest().first_chunk::<N>() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.corrupt("a tuple element is cut off")),
        }
    }
}

/// Unpacks a whole tuple.
///
/// # Errors
///
/// As [`Reader::element`].
pub fn unpack(bytes: &[u8]) -> Result<Vec<Element>, Error> {
    let mut reader = Reader::new(bytes);
    let mut elements = Vec::new();
    while let Some(element) = reader.element()? {
        elements.push(element);
    }
    Ok(elements)
}

/// Unpacks the first `count` elements, and gives what stands behind them.
///
/// # Errors
///
/// As [`Reader::element`], and `Shape` if there are fewer elements.
pub fn unpack_some(bytes: &[u8], count: usize) -> Result<(Vec<Element>, &[u8]), Error> {
    let mut reader = Reader::new(bytes);
    let mut elements = Vec::new();
    for _ in 0..count {
        elements.push(reader.load()?);
    }
    Ok((elements, reader.rest()))
}
