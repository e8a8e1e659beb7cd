use super::*;
use crate::draw::{self, Draw};
use crate::{Error, Kind, Value};

fn text(draw: &mut Draw) -> String {
    let length = draw.one_of(&[0, 1, 3, 23, 24, 254, 255, 256]);
    (0..length).map(|_| draw.one_of(&['a', '\0', 'e', '\u{e9}', '\u{1F600}'])).collect()
}

fn number(draw: &mut Draw) -> Value {
    let bits = draw.bits() >> draw.below(64);
    let bits = if draw.one_in(2) { bits } else { !bits };
    draw.one_of(&[
        Value::I8(bits as i8),
        Value::U8(bits as u8),
        Value::I16(bits as i16),
        Value::U16(bits as u16),
        Value::I32(bits as i32),
        Value::U32(bits as u32),
        Value::I64(bits as i64),
        Value::U64(bits),
    ])
}

/// A value of any type, nested a little.
fn value(draw: &mut Draw, depth: usize) -> Value {
    let kinds = if depth < 4 { 18 } else { 15 };
    match draw.below(kinds) {
        0 => draw.one_of(&[Value::Null, Value::MinKey, Value::MaxKey]),
        1 => Value::Bool(draw.one_in(2)),
        2..=4 => number(draw),
        5 => Value::F32(draw.one_of(&[0.0, -0.0, 1.1, f32::MIN, f32::INFINITY])),
        6 => Value::F64(draw.one_of(&[0.0, -0.0, 2.2, f64::MAX, f64::NEG_INFINITY])),
        7 => Value::Text(text(draw)),
        8 => Value::RawText([draw.bytes(20), vec![0xFF]].concat()),
        9 => {
            let binary = Value::Binary(draw.bits() as u8, draw.bytes(300));
            draw.one_of(&[Value::Bytes(vec![7; 255]), Value::Bytes(Vec::new()), binary])
        }
        10 => Value::DateTime(draw.bits() as i64 >> draw.below(64)),
        11 => draw.one_of(&[Value::ObjectId([3; 12]), Value::Decimal([4; 16])]),
        12 => Value::Uuid([draw.bits() as u8; 16]),
        13 => Value::Timestamp(draw.bits() as u32, draw.bits() as u32),
        14 => {
            let text = text(draw);
            draw.one_of(&[Value::Regex(text.clone(), "i".into()), Value::Code(text)])
        }
        15 => Value::Array((0..draw.below(5)).map(|_| value(draw, depth + 1)).collect()),
        16 => {
            Value::Map((0..draw.below(5)).map(|_| (text(draw), value(draw, depth + 1))).collect())
        }
        _ => {
            let mut pairs = vec![(number(draw), value(draw, depth + 1))];
            for _ in 0..draw.below(3) {
                pairs.insert(draw.index(pairs.len() + 1), (value(draw, depth + 1), Value::Null));
            }
            Value::Pairs(pairs)
        }
    }
}

/// The heap that a value holds on to.
fn heap(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Code(text) => text.capacity(),
        Value::Regex(pattern, options) => pattern.capacity() + options.capacity(),
        Value::RawText(bytes) | Value::Bytes(bytes) | Value::Binary(_, bytes) => bytes.capacity(),
        Value::Array(items) => {
            items.capacity() * size_of::<Value>() + items.iter().map(heap).sum::<usize>()
        }
        Value::Map(fields) => {
            let inner = fields.iter().map(|(name, field)| name.capacity() + heap(field));
            fields.capacity() * size_of::<(String, Value)>() + inner.sum::<usize>()
        }
        Value::Pairs(pairs) => {
            let inner = pairs.iter().map(|(key, field)| heap(key) + heap(field));
            pairs.capacity() * size_of::<(Value, Value)>() + inner.sum::<usize>()
        }
        _ => 0,
    }
}

#[test]
fn decode_undoes_encode() {
    draw::check("decode_undoes_encode", 20_000, |draw| {
        let value = value(draw, 0);
        let bytes = encode(&value).unwrap();
        assert_eq!(decode(&bytes).unwrap(), value);
        let mut decoder = Decoder::new(&bytes);
        decoder.skip().unwrap();
        decoder.done().unwrap();
        // What we wrote has one form only.
        assert_eq!(encode(&decode(&bytes).unwrap()).unwrap(), bytes);
        assert_eq!(decode_some(&[bytes, vec![1, 2]].concat()).unwrap(), (value, [1, 2].as_slice()));
    });
}

/// NaN equals nothing, so its bits are compared.
#[test]
fn the_bits_of_a_nan_survive() {
    let quiet = f64::from_bits(0x7FF8_0000_0000_0001);
    let bytes = encode(&Value::F64(quiet)).unwrap();
    assert_eq!(crate::hex::show(&bytes), "fb7ff8000000000001");
    let Value::F64(back) = decode(&bytes).unwrap() else { panic!("not a float") };
    assert_eq!(back.to_bits(), quiet.to_bits());
}

/// Whatever the bytes, there is an answer, it re-encodes, and it takes little room.
#[test]
fn any_bytes_decode_or_are_refused() {
    draw::check("any_bytes_decode_or_are_refused", 40_000, |draw| {
        let mut bytes = match draw.below(3) {
            0 => draw.bytes(60),
            _ => encode(&value(draw, 0)).unwrap(),
        };
        for _ in 0..draw.below(4) {
            if !bytes.is_empty() {
                let index = draw.index(bytes.len());
                bytes[index] = draw.bits() as u8;
            }
        }
        bytes.truncate(draw.index(bytes.len() + 1).max(bytes.len() / 2));
        if let Ok(value) = decode(&bytes) {
            let room = 16 * size_of::<Value>() * bytes.len().max(1);
            assert!(heap(&value) <= room, "{} bytes became {}", bytes.len(), heap(&value));
            assert!(encode(&value).is_ok());
        }
        let mut skipping = Decoder::new(&bytes);
        while skipping.skip().is_ok() {}
        let mut decoder = Decoder::new(&bytes);
        let _ = (decoder.map(), decoder.text(), decoder.int::<u8>(), decoder.array());
    });
}

#[test]
fn claims_of_length_cost_nothing() {
    // An array, a map, a byte string and a text that claim four milliards of things.
    for head in [0x9A, 0xBA, 0x5A, 0x7A] {
        let bytes = [head, 0xFF, 0xFF, 0xFF, 0xFF, 0x00];
        let error = decode(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "a length exceeds what is left at byte 0");
    }
    assert!(decode(&[0x9B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]).is_err());
    // The last of its kind that fits, and the first that does not.
    assert!(decode(&[0x82, 0x01, 0x02]).is_ok());
    assert!(decode(&[0x83, 0x01, 0x02]).is_err());
    assert!(decode(&[0xA1, 0x01, 0x02]).is_ok());
    assert!(decode(&[0xA2, 0x01, 0x02]).is_err());
}

#[test]
fn nesting_has_a_limit_on_both_ways() {
    let nest = |depth: usize| (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let deepest = nest(DEPTH_MAX);
    assert_eq!(decode(&encode(&deepest).unwrap()).unwrap(), deepest);
    assert_eq!(encode(&nest(DEPTH_MAX + 1)).unwrap_err().kind(), Kind::TooLarge);
    let bytes = [vec![0x81; DEPTH_MAX + 1], vec![0xF6]].concat();
    assert_eq!(decode(&bytes).unwrap_err(), Error::TooDeep { depth_max: DEPTH_MAX });
    assert!(decode(&[vec![0x81; 1_000_000], vec![0xF6]].concat()).is_err());
}

#[test]
fn widths_are_types() {
    // hex, value
    let rows = [
        ("00", Value::I8(0)),
        ("17", Value::I8(23)),
        ("1818", Value::I8(24)),
        ("187f", Value::I8(127)),
        ("1880", Value::U8(128)),
        ("20", Value::I8(-1)),
        ("387f", Value::I8(-128)),
        ("190001", Value::I16(1)),
        ("39ffff", Value::I32(-65_536)),
        ("398000", Value::I32(-32_769)),
        ("19ffff", Value::U16(65_535)),
        ("1a0000002a", Value::I32(42)),
        ("1affffffff", Value::U32(u32::MAX)),
        ("1b0000000000000001", Value::I64(1)),
        ("1bffffffffffffffff", Value::U64(u64::MAX)),
        ("3b7fffffffffffffff", Value::I64(i64::MIN)),
        ("38c7", Value::I16(-200)),
        ("d94b0005", Value::U8(5)),
        ("d94b00190005", Value::U16(5)),
        ("d94b001a00000005", Value::U32(5)),
        ("d94b001b0000000000000005", Value::U64(5)),
    ];
    for (hex, value) in rows {
        assert_eq!(decode(&crate::hex::parse(hex).unwrap()).unwrap(), value, "{hex}");
        assert_eq!(decode(&encode(&value).unwrap()).unwrap(), value, "{hex}");
    }
}

#[test]
fn what_is_refused_says_why() {
    // hex, message
    let rows = [
        ("", "the value is cut off at byte 0"),
        ("0000", "bytes behind the value at byte 1"),
        ("19", "the value is cut off at byte 1"),
        ("1c", "a reserved length at byte 0"),
        ("9f", "an indefinite length at byte 0 is not supported"),
        ("f93c00", "a float of 16 bits at byte 0 is not supported"),
        ("f7", "a simple value at byte 0 is not supported"),
        ("f818", "a simple value at byte 0 is not supported"),
        ("c1fb0000000000000000", "a tag at byte 0 is not supported"),
        ("c06161", "a moment is not RFC 3339 at byte 0"),
        ("3bffffffffffffffff", "an integer below the 64-bit range at byte 0 is not supported"),
        ("d94b0020", "another type than the record has here at byte 0"),
        ("d94b0340", "a binary has no subtype at byte 0"),
        ("d94b0241aa", "another type than the record has here at byte 3"),
        ("d94b0800", "another type than the record has here at byte 0"),
    ];
    for (hex, message) in rows {
        let bytes = crate::hex::parse(hex).unwrap();
        assert_eq!(decode(&bytes).unwrap_err().to_string(), message, "{hex}");
    }
}

#[test]
fn lengths_take_the_widths_that_puzzledb_gives_them() {
    // bytes of text, head
    let rows = [
        (0, "60"),
        (23, "77"),
        (24, "7818"),
        (254, "78fe"),
        (255, "7900ff"),
        (65_534, "79fffe"),
        (65_535, "7a0000ffff"),
    ];
    for (length, head) in rows {
        let bytes = encode(&Value::Text("x".repeat(length))).unwrap();
        assert_eq!(crate::hex::show(&bytes[..bytes.len() - length]), head, "{length}");
        assert_eq!(decode(&bytes).unwrap(), Value::Text("x".repeat(length)));
    }
}
