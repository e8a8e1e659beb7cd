//! BSON documents as values.
//!
//! ```text
//! length (4, LE)  (type (1)  name 00  value)...  00
//! ```
//!
//! Widths stay as they are. Symbols become text and undefined becomes null, as MongoDB's own tools
//! treat them; code with a scope and pointers into other databases are refused.

use kumiko_base::Value;

use super::{DOCUMENT_BYTES_MAX, Error};

/// How deep documents may nest.
pub const DEPTH_MAX: usize = 100;

fn bad(why: &str) -> Error {
    Error(format!("BSON: {why}"))
}

fn short() -> Error {
    bad("a document ends too early")
}

/// Reads the document at the start of `bytes`; says how long it is.
pub fn decode_some(bytes: &[u8]) -> Result<(Value, usize), Error> {
    let (document, rest) = map(bytes, 0)?;
    Ok((document, bytes.len() - rest.len()))
}

/// The bytes of one document's fields, and what comes behind the document.
fn body(bytes: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let length = bytes.first_chunk::<4>().ok_or_else(short)?;
    let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| short())?;
    // A command may carry a document of the greatest length with something around it.
    if DOCUMENT_BYTES_MAX + 16 * 1024 < length {
        return Err(bad("a document is longer than 16 MiB"));
    }
    let (document, rest) = bytes.split_at_checked(length).ok_or_else(short)?;
    match document.get(4..) {
        Some([body @ .., 0]) => Ok((body, rest)),
        _ => Err(bad("a document does not end with a zero")),
    }
}

fn map(bytes: &[u8], depth: usize) -> Result<(Value, &[u8]), Error> {
    let (mut body, rest) = body(bytes)?;
    let mut fields = Vec::new();
    while let Some((kind, after)) = body.split_first() {
        let (name, after) = name(after)?;
        let (value, after) = value(*kind, after, depth)?;
        fields.push((name.to_string(), value));
        body = after;
    }
    Ok((Value::Map(fields), rest))
}

fn array(bytes: &[u8], depth: usize) -> Result<(Value, &[u8]), Error> {
    let (mut body, rest) = body(bytes)?;
    let mut elements = Vec::new();
    while let Some((kind, after)) = body.split_first() {
        // The names are places, and nobody looks at them.
        let (_, after) = name(after)?;
        let (value, after) = value(*kind, after, depth)?;
        elements.push(value);
        body = after;
    }
    Ok((Value::Array(elements), rest))
}

fn name(bytes: &[u8]) -> Result<(&str, &[u8]), Error> {
    let end = bytes.iter().position(|it| *it == 0).ok_or_else(short)?;
    let name = std::str::from_utf8(&bytes[..end]).map_err(|_| bad("a name is not UTF-8"))?;
    Ok((name, &bytes[end + 1..]))
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), Error> {
    let (taken, rest) = bytes.split_first_chunk::<N>().ok_or_else(short)?;
    Ok((*taken, rest))
}

fn text(bytes: &[u8]) -> Result<(Value, &[u8]), Error> {
    let (length, rest) = fixed::<4>(bytes)?;
    let length = usize::try_from(i32::from_le_bytes(length)).map_err(|_| short())?;
    let (taken, rest) = rest.split_at_checked(length).ok_or_else(short)?;
    let [text @ .., 0] = taken else { return Err(bad("text does not end with a zero")) };
    let value = match std::str::from_utf8(text) {
        Ok(text) => Value::Text(text.into()),
        Err(_) => Value::RawText(text.to_vec()),
    };
    Ok((value, rest))
}

fn value(kind: u8, bytes: &[u8], depth: usize) -> Result<(Value, &[u8]), Error> {
    if DEPTH_MAX < depth {
        return Err(bad("documents are nested more than 100 levels deep"));
    }
    Ok(match kind {
        0x01 => {
            let (taken, rest) = fixed::<8>(bytes)?;
            (Value::F64(f64::from_le_bytes(taken)), rest)
        }
        0x02 | 0x0E => text(bytes)?,
        0x03 => map(bytes, depth + 1)?,
        0x04 => array(bytes, depth + 1)?,
        0x05 => binary(bytes)?,
        0x06 | 0x0A => (Value::Null, bytes),
        0x07 => {
            let (taken, rest) = fixed::<12>(bytes)?;
            (Value::ObjectId(taken), rest)
        }
        0x08 => match fixed::<1>(bytes)? {
            ([0], rest) => (Value::Bool(false), rest),
            ([1], rest) => (Value::Bool(true), rest),
            _ => return Err(bad("a truth is neither 0 nor 1")),
        },
        0x09 => {
            let (taken, rest) = fixed::<8>(bytes)?;
            (Value::DateTime(i64::from_le_bytes(taken)), rest)
        }
        0x0B => {
            let (pattern, rest) = name(bytes)?;
            let (options, rest) = name(rest)?;
            (Value::Regex(pattern.into(), options.into()), rest)
        }
        0x0D => match text(bytes)? {
            (Value::Text(code), rest) => (Value::Code(code), rest),
            _ => return Err(bad("code is not UTF-8")),
        },
        0x10 => {
            let (taken, rest) = fixed::<4>(bytes)?;
            (Value::I32(i32::from_le_bytes(taken)), rest)
        }
        0x11 => {
            let (counter, rest) = fixed::<4>(bytes)?;
            let (seconds, rest) = fixed::<4>(rest)?;
            (Value::Timestamp(u32::from_le_bytes(seconds), u32::from_le_bytes(counter)), rest)
        }
        0x12 => {
            let (taken, rest) = fixed::<8>(bytes)?;
            (Value::I64(i64::from_le_bytes(taken)), rest)
        }
        0x13 => {
            let (taken, rest) = fixed::<16>(bytes)?;
            (Value::Decimal(taken), rest)
        }
        0xFF => (Value::MinKey, bytes),
        0x7F => (Value::MaxKey, bytes),
        other => return Err(bad(&format!("type {other:02x} is not supported"))),
    })
}

fn binary(bytes: &[u8]) -> Result<(Value, &[u8]), Error> {
    let (length, rest) = fixed::<4>(bytes)?;
    let length = usize::try_from(i32::from_le_bytes(length)).map_err(|_| short())?;
    let ([subtype], rest) = fixed::<1>(rest)?;
    let (taken, rest) = rest.split_at_checked(length).ok_or_else(short)?;
    let value = match (subtype, <[u8; 16]>::try_from(taken)) {
        (4, Ok(uuid)) => Value::Uuid(uuid),
        (0, _) => Value::Bytes(taken.to_vec()),
        _ => Value::Binary(subtype, taken.to_vec()),
    };
    Ok((value, rest))
}

/// Appends a document. Only maps are documents: anything else becomes an empty one.
pub fn encode(document: &Value, out: &mut Vec<u8>) {
    match document {
        Value::Map(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.as_str(), value));
            write_map(fields, out);
        }
        _ => write_map(std::iter::empty(), out),
    }
}

/// How many bytes a document takes.
pub fn size(document: &Value) -> usize {
    let inside = |value: &Value| match value {
        Value::Null | Value::MinKey | Value::MaxKey | Value::Pairs(_) => 0,
        Value::Bool(_) => 1,
        Value::I8(_) | Value::U8(_) | Value::I16(_) | Value::U16(_) | Value::I32(_) => 4,
        Value::Text(text) | Value::Code(text) => text.len() + 5,
        Value::RawText(bytes) | Value::Bytes(bytes) | Value::Binary(_, bytes) => bytes.len() + 5,
        Value::Uuid(_) => 21,
        Value::Decimal(_) => 16,
        Value::ObjectId(_) => 12,
        Value::Regex(pattern, options) => pattern.len() + options.len() + 2,
        Value::Array(_) | Value::Map(_) => size(value),
        _ => 8,
    };
    match document {
        Value::Map(fields) => {
            5 + fields.iter().map(|(name, value)| 2 + name.len() + inside(value)).sum::<usize>()
        }
        Value::Array(elements) => {
            let digits = |n: usize| n.checked_ilog10().unwrap_or(0) as usize + 1;
            let each = elements.iter().enumerate();
            5 + each.map(|(n, value)| 2 + digits(n) + inside(value)).sum::<usize>()
        }
        _ => 5,
    }
}

fn write_map<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, value) in fields {
        write_field(name, value, out);
    }
    out.push(0);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn write_field(name: &str, value: &Value, out: &mut Vec<u8>) {
    let at = out.len();
    out.push(0);
    // A name ends at its first zero: what follows one could not be read back.
    out.extend(name.bytes().take_while(|it| *it != 0));
    out.push(0);
    out[at] = write_value(value, out);
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
    out.extend_from_slice(text);
    out.push(0);
}

fn write_binary(subtype: u8, bytes: &[u8], out: &mut Vec<u8>) -> u8 {
    out.extend_from_slice(&(bytes.len() as i32).to_le_bytes());
    out.push(subtype);
    out.extend_from_slice(bytes);
    0x05
}

fn write_i32(number: i32, out: &mut Vec<u8>) -> u8 {
    out.extend_from_slice(&number.to_le_bytes());
    0x10
}

/// Writes a value that is always of one size; says its type.
fn write_fixed(kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> u8 {
    out.extend_from_slice(bytes);
    kind
}

/// Writes a value; says its type.
fn write_value(value: &Value, out: &mut Vec<u8>) -> u8 {
    match value {
        Value::Bool(it) => {
            out.push(u8::from(*it));
            0x08
        }
        Value::I8(it) => write_i32(i32::from(*it), out),
        Value::U8(it) => write_i32(i32::from(*it), out),
        Value::I16(it) => write_i32(i32::from(*it), out),
        Value::U16(it) => write_i32(i32::from(*it), out),
        Value::I32(it) => write_i32(*it, out),
        Value::U32(it) => write_value(&Value::I64(i64::from(*it)), out),
        Value::U64(it) => match i64::try_from(*it) {
            Ok(it) => write_value(&Value::I64(it), out),
            Err(_) => write_value(&Value::F64(*it as f64), out),
        },
        Value::I64(it) => write_fixed(0x12, &it.to_le_bytes(), out),
        Value::F32(it) => write_value(&Value::F64(f64::from(*it)), out),
        Value::F64(it) => write_fixed(0x01, &it.to_le_bytes(), out),
        Value::Decimal(bytes) => write_fixed(0x13, bytes, out),
        Value::Text(text) => {
            write_text(text.as_bytes(), out);
            0x02
        }
        Value::RawText(bytes) => {
            write_text(bytes, out);
            0x02
        }
        Value::Bytes(bytes) => write_binary(0, bytes, out),
        Value::Binary(subtype, bytes) => write_binary(*subtype, bytes, out),
        Value::Uuid(bytes) => write_binary(4, bytes, out),
        Value::DateTime(ms) => write_fixed(0x09, &ms.to_le_bytes(), out),
        Value::ObjectId(id) => write_fixed(0x07, id, out),
        Value::Timestamp(seconds, counter) => {
            out.extend_from_slice(&counter.to_le_bytes());
            out.extend_from_slice(&seconds.to_le_bytes());
            0x11
        }
        Value::Regex(pattern, options) => {
            for text in [pattern, options] {
                out.extend(text.bytes().take_while(|it| *it != 0));
                out.push(0);
            }
            0x0B
        }
        Value::Code(code) => {
            write_text(code.as_bytes(), out);
            0x0D
        }
        Value::MinKey => 0xFF,
        Value::MaxKey => 0x7F,
        Value::Array(elements) => {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            for (n, element) in elements.iter().enumerate() {
                write_field(&n.to_string(), element, out);
            }
            out.push(0);
            let length = (out.len() - start) as i32;
            out[start..start + 4].copy_from_slice(&length.to_le_bytes());
            0x04
        }
        Value::Map(fields) => {
            write_map(fields.iter().map(|(name, value)| (name.as_str(), value)), out);
            0x03
        }
        _ => 0x0A,
    }
}

#[cfg(test)]
mod tests {
    use kumiko_base::draw::{self, Draw};

    use super::*;

    fn any(draw: &mut Draw, depth: u32) -> Value {
        match draw.below(if depth == 0 { 16 } else { 18 }) {
            0 => Value::Null,
            1 => Value::Bool(draw.one_in(2)),
            2 => Value::I32(draw.bits() as i32),
            3 => Value::I64(draw.bits() as i64),
            4 => Value::F64(draw.below(100) as f64 / 8.0),
            5 => Value::Decimal([draw.bits() as u8; 16]),
            6 => Value::Text(draw.one_of(&["", "a", "a\0b"]).into()),
            7 => Value::Bytes(draw.bytes(20)),
            8 => Value::Binary(draw.below(3) as u8 + 5, draw.bytes(20)),
            9 => Value::Uuid([draw.bits() as u8; 16]),
            10 => Value::DateTime(draw.bits() as i64),
            11 => Value::ObjectId([draw.bits() as u8; 12]),
            12 => Value::Timestamp(draw.bits() as u32, draw.bits() as u32),
            13 => Value::Regex("a".into(), "i".into()),
            14 => draw.one_of(&[Value::MinKey, Value::MaxKey]),
            15 => Value::Code("x".into()),
            16 => Value::Array((0..draw.below(12)).map(|_| any(draw, depth - 1)).collect()),
            _ => map_of(draw, depth - 1),
        }
    }

    fn map_of(draw: &mut Draw, depth: u32) -> Value {
        let fields = (0..draw.below(4)).map(|n| (format!("f{n}"), any(draw, depth)));
        Value::Map(fields.collect())
    }

    #[test]
    fn documents_come_back() {
        draw::check("documents_come_back", 5_000, |draw| {
            let document = map_of(draw, 3);
            let mut bytes = Vec::new();
            encode(&document, &mut bytes);
            assert_eq!(bytes.len(), size(&document));
            assert_eq!(decode_some(&bytes), Ok((document, bytes.len())));
            let at = draw.index(bytes.len());
            bytes[at] = draw.bits() as u8;
            let _ = decode_some(&bytes);
            let _ = decode_some(&bytes[..at]);
        });
    }

    #[test]
    fn depth() {
        let nested = |depth: usize| {
            (0..depth).fold(Value::Null, |inside, _| Value::Map(vec![("a".into(), inside)]))
        };
        let read = |depth| {
            let mut bytes = Vec::new();
            encode(&nested(depth), &mut bytes);
            decode_some(&bytes).is_ok()
        };
        assert!(read(DEPTH_MAX + 1));
        assert!(!read(DEPTH_MAX + 2));
    }
}
