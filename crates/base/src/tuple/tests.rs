use super::*;
use crate::draw::{self, Draw};
use crate::{Error, Kind};

/// Few distinct bytes on purpose: zeroes, FF and common prefixes are where order breaks.
fn string(draw: &mut Draw) -> Vec<u8> {
    (0..draw.below(4)).map(|_| draw.one_of(&[0x00, 0x01, b'a', 0xFE, 0xFF])).collect()
}

fn int(draw: &mut Draw) -> i128 {
    let edge = 1_i128 << draw.below(127);
    let near = edge + draw.one_of(&[-1, 0, 1]);
    let any = i128::from(draw.bits());
    draw.one_of(&[near, -near, 0, any, i128::MAX, i128::MIN])
}

fn element(draw: &mut Draw, depth: usize) -> Element {
    match draw.below(if depth < 3 { 11 } else { 10 }) {
        0 => Element::Null,
        1 => Element::Bytes(string(draw)),
        2 => match String::from_utf8(string(draw)) {
            Ok(text) => Element::Text(text),
            Err(error) => Element::RawText(error.into_bytes()),
        },
        3 => Element::Int(int(draw)),
        4 => Element::Int(i128::from(draw.below(5)) - 2),
        5 => Element::F32(f32::from_bits(draw.bits() as u32)),
        6 => Element::F64(f64::from_bits(draw.bits())),
        7 => Element::F64(draw.one_of(&[0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NAN])),
        8 => Element::Bool(draw.one_in(2)),
        9 => draw.one_of(&[Element::Uuid([7; 16]), Element::Versionstamp([9; 12])]),
        _ => Element::Tuple(tuple(draw, depth + 1)),
    }
}

fn tuple(draw: &mut Draw, depth: usize) -> Vec<Element> {
    (0..draw.below(4)).map(|_| element(draw, depth)).collect()
}

#[test]
fn unpack_undoes_pack() {
    draw::check("unpack_undoes_pack", 20_000, |draw| {
        let elements = tuple(draw, 0);
        let packed = pack(&elements).unwrap();
        assert_eq!(unpack(&packed).unwrap(), elements);
    });
}

#[test]
fn pack_order_is_tuple_order() {
    draw::check("pack_order_is_tuple_order", 40_000, |draw| {
        let a = tuple(draw, 0);
        let mut b = tuple(draw, 0);
        if draw.one_in(2) {
            // A common front, so that the difference lies deeper.
            b.splice(0..0, a.iter().take(draw.index(a.len() + 1)).cloned());
        }
        let (packed_a, packed_b) = (pack(&a).unwrap(), pack(&b).unwrap());
        assert_eq!(packed_a.cmp(&packed_b), a.cmp(&b), "{a:?} and {b:?}");
    });
}

/// The children of a prefix, and nothing else, lie in its range.
#[test]
fn a_prefix_range_holds_exactly_the_children() {
    draw::check("a_prefix_range_holds_exactly_the_children", 20_000, |draw| {
        let parent = tuple(draw, 0);
        let mut other = tuple(draw, 0);
        if draw.one_in(2) {
            other.splice(0..0, parent.iter().cloned());
        }
        let (prefix, key) = (pack(&parent).unwrap(), pack(&other).unwrap());
        let inside = prefix <= key && key < prefix_end(&prefix);
        assert_eq!(inside, other.starts_with(&parent), "{parent:?} and {other:?}");
    });
}

/// Whatever the bytes, there is an answer, and what is accepted has exactly one form.
#[test]
fn any_bytes_unpack_or_are_refused() {
    draw::check("any_bytes_unpack_or_are_refused", 40_000, |draw| {
        let mut bytes =
            if draw.one_in(2) { pack(&tuple(draw, 0)).unwrap() } else { draw.bytes(40) };
        if !bytes.is_empty() && draw.one_in(2) {
            let index = draw.index(bytes.len());
            bytes[index] = draw.bits() as u8;
        }
        if let Ok(elements) = unpack(&bytes) {
            assert_eq!(pack(&elements).unwrap(), bytes);
        }
        let mut reader = Reader::new(&bytes);
        let _ = (reader.text(), reader.int::<u64>(), reader.bytes());
        let _ = unpack_some(&bytes, draw.index(4));
    });
}

#[test]
fn nesting_has_a_limit_on_both_ways() {
    let nest =
        |depth: usize| (0..depth).fold(Element::Null, |inner, _| Element::Tuple(vec![inner]));
    let deepest = pack(&[nest(DEPTH_MAX)]).unwrap();
    assert_eq!(unpack(&deepest).unwrap(), [nest(DEPTH_MAX)]);
    assert_eq!(pack(&[nest(DEPTH_MAX + 1)]).unwrap_err().kind(), Kind::TooLarge);
    let deeper: Vec<u8> = std::iter::repeat_n(0x05, DEPTH_MAX + 1).chain([0x00; 99]).collect();
    assert_eq!(unpack(&deeper).unwrap_err(), Error::TooDeep { depth_max: DEPTH_MAX });
    let endless = vec![0x05; 1_000_000];
    assert_eq!(unpack(&endless).unwrap_err(), Error::TooDeep { depth_max: DEPTH_MAX });
}

#[test]
fn integers() {
    // number, packed
    let rows: [(i128, &str); 18] = [
        (0, "14"),
        (1, "1501"),
        (255, "15ff"),
        (256, "160100"),
        (300, "16012c"),
        (-1, "13fe"),
        (-255, "1300"),
        (-256, "12feff"),
        (i128::from(i64::MAX), "1c7fffffffffffffff"),
        (i128::from(i64::MIN), "0c7fffffffffffffff"),
        (i128::from(u64::MAX), "1cffffffffffffffff"),
        (-i128::from(u64::MAX), "0c0000000000000000"),
        (1 << 64, "1d09010000000000000000"),
        (-(1 << 64), "0bf6feffffffffffffffff"),
        (i128::MAX, "1d107fffffffffffffffffffffffffffffff"),
        (i128::MIN, "0bef7fffffffffffffffffffffffffffffff"),
        (-2, "13fd"),
        (65_536, "17010000"),
    ];
    for (number, hex) in rows {
        let packed = pack(&[Element::Int(number)]).unwrap();
        assert_eq!(crate::hex::show(&packed), hex, "{number}");
        assert_eq!(unpack(&packed).unwrap(), [Element::Int(number)]);
    }
}

#[test]
fn what_is_refused_says_why() {
    // hex, message
    let rows = [
        ("03", "unknown tuple type code at byte 0"),
        ("0161", "a string in a key has no end at byte 1"),
        ("051501", "a tuple inside a key has no end at byte 3"),
        ("1600", "an integer with leading zeroes at byte 1"),
        ("1601", "an integer is cut off at byte 1"),
        ("1d0801", "a short integer in the long form at byte 1"),
        ("1d11", "an integer of more than 128 bits at byte 1 is not supported"),
        (
            "1d1080000000000000000000000000000000",
            "an integer of more than 128 bits at byte 2 is not supported",
        ),
        ("2000", "a tuple element is cut off at byte 1"),
        ("ff", "unknown tuple type code at byte 0"),
    ];
    for (hex, message) in rows {
        let bytes = crate::hex::parse(hex).unwrap();
        assert_eq!(unpack(&bytes).unwrap_err().to_string(), message, "{hex}");
    }
}

#[test]
fn the_writer_packs_as_the_elements_do() {
    let uuid = [3; 16];
    let written = Writer::new()
        .null()
        .bytes(b"a\0b")
        .text("text")
        .text_bytes(b"\xC0")
        .int(-7_i8)
        .int(u64::MAX)
        .f32(1.5)
        .f64(-2.5)
        .bool(true)
        .bool(false)
        .uuid(&uuid)
        .element(&Element::Tuple(vec![Element::Null]))
        .unwrap()
        .finish();
    let elements = [
        Element::Null,
        b"a\0b".as_slice().into(),
        "text".into(),
        Element::RawText(b"\xC0".to_vec()),
        (-7_i8).into(),
        u64::MAX.into(),
        1.5_f32.into(),
        (-2.5).into(),
        true.into(),
        false.into(),
        Element::Uuid(uuid),
        vec![Element::Null].into(),
    ];
    assert_eq!(written, pack(&elements).unwrap());
    assert_eq!(Writer::after(&written).null().finish(), [written.as_slice(), &[0]].concat());
    let shown: Vec<String> = elements.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown.join(" "),
        "null x'610062' \"text\" \"\\xc0\" -7 18446744073709551615 1.5f32 -2.5f64 true false \
         uuid'03030303-0303-0303-0303-030303030303' (null)"
    );
}
