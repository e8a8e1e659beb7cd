//! The one order of all values, and key bytes that sort the same way.
//!
//! The classes, low to high, are those of MongoDB: MinKey, the empty array as an index sees it,
//! null, numbers, text, maps, arrays, bytes, object ids, booleans, dates, timestamps, regular
//! expressions, code, MaxKey. Numbers of all types share one line. A value's key bytes are its class
//! byte and then:
//!
//! ```text
//! number           see `number`
//! text, code       UTF-8, 00 as 00 FF, end 00
//! map              per field: class byte of its value, name, value; end 00
//! array            per element: value; end 00
//! bytes            length (4, BE), subtype, bytes
//! object id        12 bytes
//! boolean          00 or 01
//! date             8 bytes, BE, sign flipped
//! timestamp        seconds (4, BE), counter (4, BE)
//! regex            pattern, options, each like text
//! ```
//!
//! No value's bytes are the beginning of another's, so components may follow each other. In a
//! descending component every byte is complemented.

use std::cmp::Ordering;

use kumiko_base::Value;

use crate::number::{self, Number};

const MIN_KEY: u8 = 0x05;
/// How an index sees an empty array.
const UNDEFINED: u8 = 0x08;
const NULL: u8 = 0x0A;
const NUMBER: u8 = 0x14;
const TEXT: u8 = 0x1E;
const MAP: u8 = 0x28;
const ARRAY: u8 = 0x32;
const BYTES: u8 = 0x3C;
const OBJECT_ID: u8 = 0x46;
const BOOL: u8 = 0x50;
const DATE: u8 = 0x5A;
const TIMESTAMP: u8 = 0x64;
const REGEX: u8 = 0x6E;
const CODE: u8 = 0x78;
const MAX_KEY: u8 = 0x82;

/// How deep values may nest, in documents and in keys.
pub const DEPTH_MAX: usize = 100;

fn class_byte(value: &Value) -> u8 {
    match value {
        Value::MinKey => MIN_KEY,
        Value::Null => NULL,
        Value::Text(_) | Value::RawText(_) => TEXT,
        Value::Map(_) | Value::Pairs(_) => MAP,
        Value::Array(_) => ARRAY,
        Value::Bytes(_) | Value::Binary(..) | Value::Uuid(_) => BYTES,
        Value::ObjectId(_) => OBJECT_ID,
        Value::Bool(_) => BOOL,
        Value::DateTime(_) => DATE,
        Value::Timestamp(..) => TIMESTAMP,
        Value::Regex(..) => REGEX,
        Value::Code(_) => CODE,
        Value::MaxKey => MAX_KEY,
        _ => NUMBER,
    }
}

/// The class of a value; only values of one class are compared by `<` in a query.
pub fn class(value: &Value) -> u8 {
    class_byte(value)
}

/// The first key byte and the first byte past the class of `value`.
pub fn class_bounds(value: &Value) -> (u8, u8) {
    let class = class_byte(value);
    (class, class + 1)
}

/// The order of all values.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    // The common pairs first.
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => return a.as_bytes().cmp(b.as_bytes()),
        (Value::I32(a), Value::I32(b)) => return a.cmp(b),
        (Value::ObjectId(a), Value::ObjectId(b)) => return a.cmp(b),
        _ => {}
    }
    class_byte(a).cmp(&class_byte(b)).then_with(|| compare_same(a, b))
}

/// Whether the two are the same value in a query's eyes: 1 is 1.0.
pub fn equal(a: &Value, b: &Value) -> bool {
    compare(a, b) == Ordering::Equal
}

fn compare_same(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
            first_difference(pairs).then(a.len().cmp(&b.len()))
        }
        (Value::Map(a), Value::Map(b)) => {
            let pairs = a.iter().zip(b).map(|((an, av), (bn, bv))| {
                let classes = class_byte(av).cmp(&class_byte(bv));
                classes.then_with(|| an.cmp(bn)).then_with(|| compare_same(av, bv))
            });
            first_difference(pairs).then(a.len().cmp(&b.len()))
        }
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Timestamp(a, ai), Value::Timestamp(b, bi)) => (a, ai).cmp(&(b, bi)),
        (Value::Regex(a, ao), Value::Regex(b, bo)) => (a, ao).cmp(&(b, bo)),
        (Value::Code(a), Value::Code(b)) => a.cmp(b),
        (Value::ObjectId(a), Value::ObjectId(b)) => a.cmp(b),
        _ => match (text_bytes(a), text_bytes(b)) {
            (Some(a), Some(b)) => a.cmp(b),
            _ => match (binary(a), binary(b)) {
                (Some((at, a)), Some((bt, b))) => (a.len(), at, a).cmp(&(b.len(), bt, b)),
                _ => compare_numbers(a, b),
            },
        },
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
}

fn compare_numbers(a: &Value, b: &Value) -> Ordering {
    if let (Some(a), Some(b)) = (small_integer(a), small_integer(b)) {
        return a.cmp(&b);
    }
    if let (Value::F64(a), Value::F64(b)) = (a, b)
        && let Some(order) = a.partial_cmp(b)
    {
        return order;
    }
    match (Number::of(a), Number::of(b)) {
        (Some(a), Some(b)) => a.compare(b),
        // Null, MinKey and MaxKey have one value each.
        _ => Ordering::Equal,
    }
}

fn small_integer(value: &Value) -> Option<i64> {
    match value {
        Value::I32(it) => Some(i64::from(*it)),
        Value::I64(it) => Some(*it),
        _ => None,
    }
}

fn text_bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::RawText(bytes) => Some(bytes),
        _ => None,
    }
}

fn binary(value: &Value) -> Option<(u8, &[u8])> {
    match value {
        Value::Bytes(bytes) => Some((0, bytes)),
        Value::Binary(subtype, bytes) => Some((*subtype, bytes)),
        Value::Uuid(bytes) => Some((4, bytes)),
        _ => None,
    }
}

/// Appends the key bytes of `value`.
pub fn encode(value: &Value, out: &mut Vec<u8>) {
    out.push(class_byte(value));
    encode_body(value, out);
}

/// Appends what an index holds for an empty array: below null, above MinKey.
pub fn encode_undefined(out: &mut Vec<u8>) {
    out.push(UNDEFINED);
}

/// Complements the bytes from `start`: a descending component.
pub fn complement(out: &mut [u8], start: usize) {
    out[start..].iter_mut().for_each(|byte| *byte = !*byte);
}

fn encode_body(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) | Value::Code(text) => encode_escaped(text.as_bytes(), out),
        Value::RawText(bytes) => encode_escaped(bytes, out),
        Value::Map(fields) => {
            for (name, value) in fields {
                out.push(class_byte(value));
                encode_escaped(name.as_bytes(), out);
                encode_body(value, out);
            }
            out.push(0);
        }
        Value::Array(elements) => {
            for element in elements {
                encode(element, out);
            }
            out.push(0);
        }
        // Never in a document, so its inside decides nothing.
        Value::Pairs(_) => out.push(0),
        Value::Bool(it) => out.push(u8::from(*it)),
        Value::ObjectId(id) => out.extend_from_slice(id),
        Value::DateTime(ms) => {
            out.extend_from_slice(&(ms.cast_unsigned() ^ (1 << 63)).to_be_bytes());
        }
        Value::Timestamp(seconds, counter) => {
            out.extend_from_slice(&seconds.to_be_bytes());
            out.extend_from_slice(&counter.to_be_bytes());
        }
        Value::Regex(pattern, options) => {
            encode_escaped(pattern.as_bytes(), out);
            encode_escaped(options.as_bytes(), out);
        }
        _ => {
            if let Some((subtype, bytes)) = binary(value) {
                out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                out.push(subtype);
                out.extend_from_slice(bytes);
            } else if let Some(number) = Number::of(value) {
                number.encode(out);
            }
        }
    }
}

fn encode_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xFF);
        }
    }
    out.push(0);
}

/// Reads one value from key bytes, for the classes whose bytes fix the value's type: null, text,
/// object ids, booleans, dates, and integers, which come back as `I32` if they fit, else `I64`.
/// `None` for all others, and for bytes that are not ours.
pub fn decode_simple(bytes: &[u8]) -> Option<(Value, usize)> {
    let (class, body) = bytes.split_first()?;
    Some(match *class {
        NULL => (Value::Null, 1),
        BOOL => (Value::Bool(*body.first()? != 0), 2),
        OBJECT_ID => (Value::ObjectId(body.first_chunk::<12>().copied()?), 13),
        DATE => {
            let bits = u64::from_be_bytes(body.first_chunk::<8>().copied()?);
            (Value::DateTime((bits ^ (1 << 63)).cast_signed()), 9)
        }
        NUMBER => {
            let (whole, size) = number::decode_integer(body)?;
            let value = i32::try_from(whole).map_or(Value::I64(whole), Value::I32);
            (value, size + 1)
        }
        TEXT => {
            let (text, size) = decode_escaped(body)?;
            (Value::Text(String::from_utf8(text).ok()?), size + 1)
        }
        _ => return None,
    })
}

fn decode_escaped(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut text = Vec::new();
    let mut at = 0;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        if byte != 0 {
            text.push(byte);
        } else if bytes.get(at) == Some(&0xFF) {
            text.push(0);
            at += 1;
        } else {
            return Some((text, at));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use kumiko_base::draw::{self, Draw};

    use super::*;

    /// Few distinct values on purpose: ties and prefixes are where an order breaks.
    pub(crate) fn value(draw: &mut Draw, depth: u32) -> Value {
        let small = draw.below(5) as i32 - 2;
        match draw.below(if depth == 0 { 16 } else { 20 }) {
            0 => Value::Null,
            1 => Value::Bool(draw.one_in(2)),
            2 => Value::I32(small),
            3 => Value::I64(i64::from(small) * 3_000_000_000),
            4 => Value::F64(f64::from(small) / 2.0),
            5 => Value::Decimal(Number::from_i64(i64::from(small)).to_decimal()),
            6 | 7 => Value::Text(draw.one_of(&["", "a", "a\0", "a\0b", "ab", "b"]).into()),
            8 => Value::Bytes(draw.bytes(2)),
            9 => Value::Binary(draw.below(3) as u8 + 1, draw.bytes(2)),
            10 => Value::DateTime(i64::from(small)),
            11 => Value::ObjectId([small as u8; 12]),
            12 => Value::Timestamp(draw.below(2) as u32, draw.below(2) as u32),
            13 => Value::Regex("a".into(), draw.one_of(&["", "i"]).into()),
            14 => draw.one_of(&[Value::MinKey, Value::MaxKey]),
            15 => Value::Code(draw.one_of(&["x", "y"]).into()),
            16 | 17 => Value::Array((0..draw.below(3)).map(|_| value(draw, depth - 1)).collect()),
            _ => Value::Map(
                (0..draw.below(3))
                    .map(|_| (draw.one_of(&["", "a", "b", "c"]).into(), value(draw, depth - 1)))
                    .collect(),
            ),
        }
    }

    #[test]
    fn bytes_sort_like_values() {
        draw::check("bytes_sort_like_values", 20_000, |draw| {
            let [a, b] = [value(draw, 2), value(draw, 2)];
            let [mut x, mut y] = [Vec::new(), Vec::new()];
            encode(&a, &mut x);
            encode(&b, &mut y);
            assert_eq!(compare(&a, &b), x.cmp(&y), "{a:?} {b:?}");
            // What follows a component must not matter, in both directions.
            let size = x.len();
            x.push(0x05);
            y.push(0xFA);
            let order = if equal(&a, &b) { Ordering::Less } else { compare(&a, &b) };
            assert_eq!(x.cmp(&y), order, "{a:?} {b:?}");
            if let Some((back, used)) = decode_simple(&x) {
                assert!(equal(&back, &a), "{a:?} {back:?}");
                assert_eq!(used, size);
            }
            let length = y.len();
            complement(&mut x[..size], 0);
            complement(&mut y[..length - 1], 0);
            let order = if equal(&a, &b) { Ordering::Less } else { compare(&b, &a) };
            assert_eq!(x.cmp(&y), order, "{a:?} {b:?} descending");
        });
    }

    #[test]
    fn decode_survives_any_bytes() {
        draw::check("decode_survives_any_bytes", 5_000, |draw| {
            let bytes = draw.bytes(20);
            if let Some((_, used)) = decode_simple(&bytes) {
                assert!(used <= bytes.len());
            }
        });
    }

    #[test]
    fn classes_in_order() {
        let rows = [
            Value::MinKey,
            Value::Null,
            Value::F64(f64::NAN),
            Value::I32(1),
            Value::Text("a".into()),
            Value::Map(vec![]),
            Value::Array(vec![]),
            Value::Bytes(vec![]),
            Value::ObjectId([0; 12]),
            Value::Bool(false),
            Value::Bool(true),
            Value::DateTime(0),
            Value::Timestamp(0, 0),
            Value::Regex(String::new(), String::new()),
            Value::Code(String::new()),
            Value::MaxKey,
        ];
        for pair in rows.windows(2) {
            assert_eq!(compare(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
