//! Reads CBOR items one after another, from bytes that nobody vouches for.
//!
//! Accepted: definite lengths in any width, integers in any width, floats of 32 and 64 bits, the
//! tags of [`tag`]. Refused: indefinite lengths, floats of 16 bits, other simple values and tags.
//! PuzzleDB refuses and never writes those.

use super::{DEPTH_MAX, tag};
use crate::{Error, Value, time};

/// How many items are given room before the first one has been read. A length is a claim; the
/// items are the proof.
const ROOM_ITEMS_MAX: usize = 8;

/// The head of one item, with the item itself unless it holds others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// Null.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer, and how many bytes its number took: 1, 2, 4 or 8.
    Int(i128, u8),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// Text. Its bytes may not be UTF-8.
    Text(&'a [u8]),
    /// A byte string.
    Bytes(&'a [u8]),
    /// An array of this many items, which follow.
    Array(usize),
    /// A map of this many keys and values, which follow.
    Map(usize),
    /// A tag, whose item follows.
    Tag(u64),
}

/// Reads items from the front of some bytes.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// Reads `bytes` from the front.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes, at: 0 }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Refuses bytes behind the last item.
    pub fn done(&self) -> Result<(), Error> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.corrupt("bytes behind the value")) }
    }

    /// The next item, which must be text in UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Error> {
        let before = self.at;
        let Token::Text(bytes) = self.token()? else { return Err(unlike(before)) };
        std::str::from_utf8(bytes)
            .map_err(|_| Error::Corrupt { offset: before, reason: "text is not UTF-8" })
    }

    /// The next item, which must be a byte string.
    pub fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let before = self.at;
        let Token::Bytes(bytes) = self.token()? else { return Err(unlike(before)) };
        Ok(bytes)
    }

    /// The next item, which must be text or a byte string.
    pub fn text_or_bytes(&mut self) -> Result<&'a [u8], Error> {
        let before = self.at;
        match self.token()? {
            Token::Text(bytes) | Token::Bytes(bytes) => Ok(bytes),
            _ => Err(unlike(before)),
        }
    }

    /// The next item, which must be an integer that fits `T`, in whatever width.
    pub fn int<T: TryFrom<i128>>(&mut self) -> Result<T, Error> {
        let before = self.at;
        let Token::Int(number, _) = self.token()? else { return Err(unlike(before)) };
        T::try_from(number)
            .map_err(|_| Error::Corrupt { offset: before, reason: "a number is out of range" })
    }

    /// The next item, which must be true or false.
    pub fn bool(&mut self) -> Result<bool, Error> {
        let before = self.at;
        let Token::Bool(truth) = self.token()? else { return Err(unlike(before)) };
        Ok(truth)
    }

    /// The next item, which must be an array: how many items follow.
    pub fn array(&mut self) -> Result<usize, Error> {
        let before = self.at;
        let Token::Array(count) = self.token()? else { return Err(unlike(before)) };
        Ok(count)
    }

    /// The next item, which must be a map: how many keys and values follow.
    pub fn map(&mut self) -> Result<usize, Error> {
        let before = self.at;
        let Token::Map(count) = self.token()? else { return Err(unlike(before)) };
        Ok(count)
    }

    /// The next item, whatever it is, as a value.
    ///
    /// # Errors
    ///
    /// `Corrupt`, `Unsupported` or `TooDeep`.
    pub fn value(&mut self) -> Result<Value, Error> {
        self.take(0)
    }

    /// Passes over the next item, whatever it holds, without keeping any of it.
    pub fn skip(&mut self) -> Result<(), Error> {
        // Each item takes at least one byte, so this cannot overflow.
        let mut left: usize = 1;
        while 0 < left {
            left -= 1;
            match self.token()? {
                Token::Array(count) => left += count,
                Token::Map(count) => left += 2 * count,
                Token::Tag(_) => left += 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// The head of the next item.
    ///
    /// # Errors
    ///
    /// `Corrupt` or `Unsupported`. A length that exceeds the bytes that are left is corrupt.
    pub fn token(&mut self) -> Result<Token<'a>, Error> {
        let start = self.at;
        let [first] = self.take_array()?;
        let unsupported = |what| Err(Error::Unsupported { offset: start, what });
        let (number, width) = match first & 0x1F {
            small @ 0..24 => (u64::from(small), 1),
            24 => (u64::from(u8::from_be_bytes(self.take_array()?)), 1),
            25 => (u64::from(u16::from_be_bytes(self.take_array()?)), 2),
            26 => (u64::from(u32::from_be_bytes(self.take_array()?)), 4),
            27 => (u64::from_be_bytes(self.take_array()?), 8),
            31 => return unsupported("an indefinite length"),
            _ => return Err(Error::Corrupt { offset: start, reason: "a reserved length" }),
        };
        Ok(match first >> 5 {
            0 => Token::Int(i128::from(number), width),
            1 => Token::Int(-1 - i128::from(number), width),
            2 => Token::Bytes(self.take_bytes(number, start)?),
            3 => Token::Text(self.take_bytes(number, start)?),
            4 => Token::Array(self.count(number, 1, start)?),
            5 => Token::Map(self.count(number, 2, start)?),
            6 => Token::Tag(number),
            _ => match first {
                0xF4 => Token::Bool(false),
                0xF5 => Token::Bool(true),
                0xF6 => Token::Null,
                0xFA => Token::F32(f32::from_bits(number as u32)),
                0xFB => Token::F64(f64::from_bits(number)),
                0xF9 => return unsupported("a float of 16 bits"),
                _ => return unsupported("a simple value"),
            },
        })
    }

    fn corrupt(&self, reason: &'static str) -> Error {
        Error::Corrupt { offset: self.at, reason }
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.rest().first_chunk::<N>();
        let bytes = *bytes.ok_or_else(|| self.corrupt("the value is cut off"))?;
        self.at += N;
        Ok(bytes)
    }

    fn take_bytes(&mut self, length: u64, start: usize) -> Result<&'a [u8], Error> {
        let length = self.count(length, 1, start)?;
        let bytes = self.rest().get(..length).unwrap_or_default();
        self.at += length;
        Ok(bytes)
    }

    /// A count of things, each of which takes at least `size_min` of the bytes left.
    fn count(&self, count: u64, size_min: usize, offset: usize) -> Result<usize, Error> {
        let count_max = self.rest().len() / size_min;
        match usize::try_from(count) {
            Ok(count) if count <= count_max => Ok(count),
            _ => Err(Error::Corrupt { offset, reason: "a length exceeds what is left" }),
        }
    }

    fn take(&mut self, depth: usize) -> Result<Value, Error> {
        let offset = self.at;
        Ok(match self.token()? {
            Token::Null => Value::Null,
            Token::Bool(truth) => Value::Bool(truth),
            Token::Int(number, width) => integer(number, width, offset)?,
            Token::F32(number) => Value::F32(number),
            Token::F64(number) => Value::F64(number),
            Token::Text(bytes) => text(bytes),
            Token::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Token::Array(count) => {
                let depth = deeper(depth)?;
                let mut items = Vec::with_capacity(count.min(ROOM_ITEMS_MAX));
                for _ in 0..count {
                    items.push(self.take(depth)?);
                }
                Value::Array(items)
            }
            Token::Map(count) => self.take_map(count, deeper(depth)?)?,
            Token::Tag(tag) => self.take_tagged(tag, offset)?,
        })
    }

    fn take_map(&mut self, count: usize, depth: usize) -> Result<Value, Error> {
        let mut fields = Vec::with_capacity(count.min(ROOM_ITEMS_MAX));
        for index in 0..count {
            match self.take(depth)? {
                Value::Text(name) => fields.push((name, self.take(depth)?)),
                // Only foreign records have such keys, so starting over costs nobody anything.
                key => return self.take_pairs(fields, key, count - index, depth),
            }
        }
        Ok(Value::Map(fields))
    }

    fn take_pairs(
        &mut self,
        fields: Vec<(String, Value)>,
        key: Value,
        left: usize,
        depth: usize,
    ) -> Result<Value, Error> {
        let texts = fields.into_iter().map(|(name, field)| (Value::Text(name), field));
        let mut pairs: Vec<(Value, Value)> = texts.collect();
        pairs.push((key, self.take(depth)?));
        for _ in 1..left {
            pairs.push((self.take(depth)?, self.take(depth)?));
        }
        Ok(Value::Pairs(pairs))
    }

    fn take_tagged(&mut self, tag: u64, offset: usize) -> Result<Value, Error> {
        Ok(match tag {
            tag::DATE_TIME => {
                let ms = time::parse(self.text()?);
                let reason = "a moment is not RFC 3339";
                Value::DateTime(ms.ok_or(Error::Corrupt { offset, reason })?)
            }
            tag::FAR_DATE_TIME => Value::DateTime(self.int()?),
            tag::UNSIGNED => self.take_unsigned(offset)?,
            tag::UUID => Value::Uuid(self.take_exactly()?),
            tag::DECIMAL => Value::Decimal(self.take_exactly()?),
            tag::OBJECT_ID => Value::ObjectId(self.take_exactly()?),
            tag::BINARY => match self.bytes()? {
                [subtype, bytes @ ..] => Value::Binary(*subtype, bytes.to_vec()),
                [] => return Err(Error::Corrupt { offset, reason: "a binary has no subtype" }),
            },
            tag::TIMESTAMP => {
                let [a, b, c, d, e, f, g, h] = self.take_exactly()?;
                let (seconds, counter) = ([a, b, c, d], [e, f, g, h]);
                Value::Timestamp(u32::from_be_bytes(seconds), u32::from_be_bytes(counter))
            }
            tag::REGEX => {
                if self.array()? != 2 {
                    return Err(unlike(offset));
                }
                Value::Regex(self.text()?.to_owned(), self.text()?.to_owned())
            }
            tag::CODE => Value::Code(self.text()?.to_owned()),
            tag::MIN_KEY if self.token()? == Token::Null => Value::MinKey,
            tag::MAX_KEY if self.token()? == Token::Null => Value::MaxKey,
            tag::MIN_KEY | tag::MAX_KEY => return Err(unlike(offset)),
            _ => return Err(Error::Unsupported { offset, what: "a tag" }),
        })
    }

    fn take_exactly<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let offset = self.at;
        self.bytes()?.try_into().map_err(|_| unlike(offset))
    }

    fn take_unsigned(&mut self, offset: usize) -> Result<Value, Error> {
        let Token::Int(number, width) = self.token()? else { return Err(unlike(offset)) };
        // The width bounds the number from above.
        match (u64::try_from(number), width) {
            (Ok(number), 1) => Ok(Value::U8(number as u8)),
            (Ok(number), 2) => Ok(Value::U16(number as u16)),
            (Ok(number), 4) => Ok(Value::U32(number as u32)),
            (Ok(number), _) => Ok(Value::U64(number)),
            (Err(_), _) => Err(unlike(offset)),
        }
    }
}

/// Decodes bytes that hold exactly one value.
///
/// # Errors
///
/// `Corrupt`, `Unsupported` or `TooDeep`.
pub fn decode(bytes: &[u8]) -> Result<Value, Error> {
    let mut decoder = Decoder::new(bytes);
    let value = decoder.value()?;
    decoder.done()?;
    Ok(value)
}

/// Decodes the value at the front of `bytes`, and gives what stands behind it.
///
/// # Errors
///
/// As [`decode`].
pub fn decode_some(bytes: &[u8]) -> Result<(Value, &[u8]), Error> {
    let mut decoder = Decoder::new(bytes);
    let value = decoder.value()?;
    Ok((value, decoder.rest()))
}

fn deeper(depth: usize) -> Result<usize, Error> {
    if depth < DEPTH_MAX { Ok(depth + 1) } else { Err(Error::TooDeep { depth_max: DEPTH_MAX }) }
}

fn unlike(offset: usize) -> Error {
    Error::Corrupt { offset, reason: "another type than the record has here" }
}

fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::RawText(bytes.to_vec()),
    }
}

/// The width says the type; where the signed type is too small, the unsigned one of the same
/// width, or, for a negative number that others wrote in fewer bytes than its type has, the next
/// wider signed one.
fn integer(number: i128, width: u8, offset: usize) -> Result<Value, Error> {
    let signed = |width: u8| match width {
        1 => i8::try_from(number).ok().map(Value::I8),
        2 => i16::try_from(number).ok().map(Value::I16),
        4 => i32::try_from(number).ok().map(Value::I32),
        _ => i64::try_from(number).ok().map(Value::I64),
    };
    let unsigned = || match width {
        1 => u8::try_from(number).ok().map(Value::U8),
        2 => u16::try_from(number).ok().map(Value::U16),
        4 => u32::try_from(number).ok().map(Value::U32),
        _ => u64::try_from(number).ok().map(Value::U64),
    };
    let wider = if number < 0 { signed(width * 2) } else { unsigned() };
    signed(width)
        .or(wider)
        .ok_or(Error::Unsupported { offset, what: "an integer below the 64-bit range" })
}
