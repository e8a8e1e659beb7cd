//! The encoding, pinned by known values (`tests/vectors/cells.txt`, by number), and attacked with
//! wrong and random bytes.

use kumiko_base::draw::{self, Draw};

use super::message;
use super::{CELL_BYTES_MAX, Cell, DEPTH_MAX, Form, Id, Writer};

const VECTORS: &str = include_str!("../../tests/vectors/cells.txt");

pub(crate) struct Vector {
    pub(crate) number: usize,
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) embedded: bool,
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) id: String,
}

pub(crate) fn vectors() -> Vec<Vector> {
    let lines = VECTORS.lines().filter(|line| !line.starts_with('#'));
    let vectors: Vec<Vector> = lines
        .map(|line| {
            let fields: Vec<&str> = line.split(" | ").collect();
            let [number, name, size, place, bytes, id] = fields[..] else {
                panic!("a line has six fields: {line}")
            };
            let bytes = (bytes != "-").then(|| hex(bytes));
            let number = number.parse().unwrap();
            let size = size.parse().unwrap();
            Vector { number, name, size, embedded: place == "E", bytes, id: id.to_string() }
        })
        .collect();
    assert_eq!(vectors.len(), 155);
    vectors
}

pub(crate) fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Bytes that count up, as the vectors use them.
fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

fn ints(count: i64) -> Vec<Cell> {
    (0..count).map(Cell::int).collect()
}

/// The cell that a vector's name describes, for all names but those of Index and signed data.
fn make(name: &str) -> Option<Cell> {
    let (form, rest) = name.split_once(' ').unwrap_or((name, ""));
    let number = || rest.parse::<i64>().unwrap();
    let through = || number_after(rest, "0..");
    Some(match (form, rest) {
        ("nil", _) => Cell::nil(),
        ("false", _) => Cell::boolean(false),
        ("true", _) => Cell::boolean(true),
        ("int", _) => Cell::int(number()),
        ("double", "NaN") => Cell::double(f64::from_bits(0x7ff8_0000_0000_0000)),
        ("double", _) => Cell::double(rest.parse().unwrap()),
        ("string", r#""h\u00e9llo""#) => Cell::string("h\u{e9}llo"),
        ("string", _) if rest.starts_with('"') => Cell::string(rest.trim_matches('"')),
        ("string", _) => Cell::string("a".repeat(number_after(rest, "'a' x ") as usize)),
        ("blob", "empty") => Cell::blob(b""),
        ("blob", _) if rest.starts_with("pat") => {
            Cell::blob(pattern(number_after(rest.trim_end_matches(')'), "pat(") as usize))
        }
        ("blob", _) => Cell::blob(hex(rest)),
        ("keyword", "128 x k") => Cell::keyword(&"k".repeat(128)),
        ("keyword", _) => Cell::keyword(&rest[1..]),
        ("symbol", _) => Cell::symbol(rest),
        ("address", _) => Cell::address(number_after(rest, "#") as u64),
        ("vector", "[]") => Cell::vector(&[]),
        ("vector", "[1 2 3]") => Cell::vector(&ints(4)[1..]),
        ("vector", "[nil nil 0 nil]") => {
            Cell::vector(&[Cell::nil(), Cell::nil(), Cell::int(0), Cell::nil()])
        }
        ("vector", _) => Cell::vector(&ints(through() + 1)),
        ("list", "()") => Cell::list(&[]),
        ("list", _) => Cell::list(&ints(4)[1..]),
        ("map", "{}") => Cell::map([]),
        ("map", "{1 2}") => Cell::map([(Cell::int(1), Cell::int(2))]),
        ("map", "{:a 1, :b 2}") => {
            Cell::map([(Cell::keyword("a"), Cell::int(1)), (Cell::keyword("b"), Cell::int(2))])
        }
        ("map", _) => {
            Cell::map(ints(number_after(rest, "i->i, i<")).into_iter().map(|it| (it.clone(), it)))
        }
        ("set", "#{}") => Cell::set([]),
        ("set", "#{1 2 3}") => Cell::set(ints(4).into_iter().skip(1)),
        ("set", _) => Cell::set(ints(number_after(rest, "i<"))),
        _ => return None,
    })
}

fn number_after(text: &str, prefix: &str) -> i64 {
    text.strip_prefix(prefix).unwrap().parse().unwrap()
}

#[test]
fn vectors_are_met() {
    let mut made = 0;
    for Vector { number, name, size, embedded, bytes, id } in vectors() {
        if let Some(cell) = make(name) {
            made += 1;
            assert_eq!(cell.bytes().len(), size, "{number} {name}");
            assert_eq!(cell.is_embedded(), embedded, "{number} {name}");
            assert_eq!(cell.id().to_string(), id, "{number} {name}");
            if let Some(bytes) = &bytes {
                assert_eq!(cell.bytes(), bytes, "{number} {name}");
            }
            let mut sent = Vec::new();
            message::encode(&cell, &mut sent);
            let back = message::decode_complete(&sent).unwrap();
            assert_eq!(back, cell, "{number} {name}");
            assert_eq!(back.id().to_string(), id, "{number} {name}");
        }
        if let Some(bytes) = bytes {
            let cell = Cell::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(cell.id().to_string(), id, "{number} {name}");
        }
    }
    assert_eq!(made, 95);
}

#[test]
fn numbers_read_back() {
    for int in [0, 1, -1, 127, 128, -128, -129, 255, 32_768, i64::MAX, i64::MIN, 1 << 40] {
        assert_eq!(Cell::int(int).view().as_int(), Some(int));
        assert_eq!(Cell::int(int).view().form(), Form::Int(int));
    }
    assert_eq!(Cell::double(-0.0).view().as_double().unwrap().to_bits(), (-0.0_f64).to_bits());
    assert_eq!(Cell::decode(&hex("1909008000000000000000")).unwrap().view().as_int(), None);
}

#[test]
fn long_values_read_back() {
    for size in [0, 1, 137, 138, 4_096, 4_097, 65_536, 65_537, 1_100_000] {
        let bytes = pattern(size);
        let blob = Cell::blob(&bytes);
        assert_eq!(blob.view().as_blob(size).unwrap().unwrap(), bytes, "{size}");
        assert_eq!(blob.view().as_string(size), Ok(None));
        if 0 < size {
            assert!(blob.view().as_blob(size - 1).is_err(), "{size}");
        }
    }
    for count in [0, 1, 15, 16, 17, 31, 32, 33, 255, 256, 257, 272, 300, 4_096, 4_097, 5_000] {
        let cell = Cell::vector(&ints(count));
        let elements = cell.view().elements(count as usize).unwrap();
        let back: Vec<_> = elements.iter().map(|it| it.as_int().unwrap()).collect();
        assert_eq!(back, (0..count).collect::<Vec<_>>());
        let map = Cell::map(ints(count).into_iter().map(|it| (it.clone(), it)));
        assert_eq!(map.view().map_entries(count as usize).unwrap().len(), count as usize);
        for int in 0..count {
            let found = map.view().map_get(&Cell::int(int).id()).unwrap().unwrap();
            assert_eq!(found.as_int(), Some(int));
        }
        assert_eq!(map.view().map_get(&Cell::int(-1).id()), Ok(None));
        assert_eq!(
            Cell::set(ints(count)).view().set_elements(5_000).unwrap().len(),
            count as usize
        );
    }
}

#[test]
fn wrong_bytes_are_refused() {
    let rows = "318000 12007f 11ffff 13000fff 13ffffff 14ff800000 12123456 190017 190113 1909ffffff \
        1909ffffffffffffffffff 1909000000000000000000 3d0012 3f00123456 3d00ffff 3d110000 \
        881101820000 828041000000000000 83851d3ff0000000000000 1100 3300 3381 2000 20 ff a0 8001 \
        820211021102110111018202 8301 84 8402 840200000001 84023300 84038030016111010200408401300262 \
        84028030016111010200408401300262611102 840200010006840130016111018401300163110200 \
        8202110511051105110511 83021101 8301110111 90 dd05 e0 c011 1d00 30 3004414243";
    for row in rows.split_whitespace() {
        assert!(Cell::decode(&hex(row)).is_err(), "{row}");
    }
    assert!(Cell::decode(&[]).is_err());
    assert!(Cell::decode(&hex("20").into_iter().chain([7; 32]).collect::<Vec<_>>()).is_err());
    // Keys in the wrong order, twice the same key, a count that disagrees with the children, an
    // embedded value of 141 bytes.
    assert!(Cell::decode(&hex("820211011101110211 02".replace(' ', "").as_str())).is_err());
    assert!(Cell::decode(&hex("83021102110 2".replace(' ', "").as_str())).is_err());
    assert!(Cell::decode(&hex("8403000100068401300161110184013001621102")).is_err());
    let long = Cell::blob(pattern(138));
    let mut bytes = vec![0x80, 1];
    bytes.extend_from_slice(long.bytes());
    assert!(Cell::decode(&bytes).is_err());
    // The same keys in their places are fine.
    assert!(Cell::decode(&hex("8402000100068401300161110184013001621102")).is_ok());
}

#[test]
fn a_branch_must_fit_its_place() {
    // A vector of 32 whose second half is a blob.
    let half = Cell::vector(&vec![Cell::blob([7; 100]); 16]);
    let wrong = Cell::blob(pattern(500));
    let make = |second: &Cell| {
        Cell::write(|writer| {
            writer.bytes.extend_from_slice(&[0x80, 32]);
            writer.cell(&half);
            writer.cell(second);
        })
    };
    let mut sent = Vec::new();
    message::encode(&make(&wrong), &mut sent);
    assert!(message::decode_complete(&sent).is_err());
    sent.clear();
    message::encode(&make(&half), &mut sent);
    assert_eq!(message::decode_complete(&sent).unwrap(), make(&half));
    // Without its branches the cell is believed, and is not complete.
    let alone = Cell::decode(make(&wrong).bytes()).unwrap();
    assert!(!alone.is_complete());
    assert_eq!(message::missing(&alone, 10), [half.id(), wrong.id()]);
    let known = |id: &Id| [&half, &wrong].into_iter().find(|it| it.id() == *id).cloned();
    assert!(message::complete(&alone, &mut { known }).is_err());
}

#[test]
fn partial_messages_are_completed() {
    let top = Cell::vector(&(0..40).map(|at| Cell::blob(vec![at; 200])).collect::<Vec<_>>());
    let all = message::novelty(&top, &mut |_| false, usize::MAX);
    assert_eq!(all.len(), 40 + 2);
    let (sent, kept) = all.split_at(17);
    let mut bytes = Vec::new();
    message::encode_with(&top, sent, &mut bytes);
    let partial = message::decode(&bytes, &mut |_| None).unwrap();
    assert_eq!(partial, top);
    assert!(!partial.is_complete() && top.is_complete());
    let missing = message::missing(&partial, 1_000);
    assert!(!missing.is_empty() && missing.iter().all(|id| kept.iter().any(|it| it.id() == *id)));
    let mut known = |id: &Id| kept.iter().find(|it| it.id() == *id).cloned();
    let whole = message::complete(&partial, &mut known).unwrap();
    assert!(whole.is_complete());
    assert!(message::decode(&bytes, &mut known).unwrap().is_complete());
    assert_eq!(message::decode_complete(&bytes).unwrap_err().kind(), kumiko_base::Kind::NotFound);
}

#[test]
fn depth_has_a_limit() {
    let padding = Cell::blob([1; 120]);
    let deep = |levels: u16| {
        let mut cell = Cell::blob([2; 200]);
        for _ in 0..levels {
            cell = Cell::vector(&[padding.clone(), cell]);
        }
        let mut sent = Vec::new();
        message::encode(&cell, &mut sent);
        message::decode_complete(&sent)
    };
    assert_eq!(deep(DEPTH_MAX).unwrap().depth(), DEPTH_MAX);
    assert_eq!(deep(DEPTH_MAX + 1).unwrap_err().kind(), kumiko_base::Kind::TooLarge);
    assert_eq!(deep(20_000).unwrap_err().kind(), kumiko_base::Kind::TooLarge);
}

/// Sixteen cells spell out a vector of 16^16 elements. Nobody may walk it by mistake.
#[test]
fn a_vector_larger_than_memory_is_only_counted() {
    let mut cell = Cell::vector(&vec![Cell::blob([3; 100]); 16]);
    let mut count = 16_u64;
    for _ in 0..13 {
        count *= 16;
        cell = Cell::write(|writer| {
            writer.bytes.push(0x80);
            super::vlq::put(&mut writer.bytes, count);
            (0..16).for_each(|_| writer.cell(&cell));
        });
    }
    let mut sent = Vec::new();
    message::encode(&cell, &mut sent);
    assert!(sent.len() < 20_000);
    let back = message::decode_complete(&sent).unwrap();
    assert_eq!(back.view().form(), Form::Vector(count));
    assert_eq!(back.view().elements(1_000_000).unwrap_err().kind(), kumiko_base::Kind::TooLarge);
}

/// A value of every form that is made here, nested.
fn value(draw: &mut Draw, depth: u32) -> Cell {
    let count = |draw: &mut Draw| if draw.one_in(8) { draw.index(60) } else { draw.index(5) };
    let many = |draw: &mut Draw| -> Vec<Cell> {
        (0..count(draw)).map(|_| value(draw, depth - 1)).collect()
    };
    match draw.below(if depth == 0 { 8 } else { 13 }) {
        0 => Cell::nil(),
        1 => Cell::int(draw.bits() as i64 >> draw.below(64)),
        2 => Cell::double(f64::from_bits(draw.bits())),
        3 => Cell::boolean(draw.one_in(2)),
        4 => Cell::string(draw.bytes(20)),
        5 => Cell::blob(draw.bytes(300)),
        6 => Cell::keyword("key"),
        7 => Cell::address(draw.bits() >> 1),
        8 => Cell::vector(&many(draw)),
        9 => Cell::list(&many(draw)),
        10 => Cell::set(many(draw)),
        11 => Cell::record(0xdd, &many(draw)).unwrap(),
        _ => Cell::map(many(draw).into_iter().map(|it| (it, Cell::int(1)))),
    }
}

#[test]
fn messages_round_trip() {
    draw::check("messages_round_trip", 2_000, |draw| {
        let cell = value(draw, 3);
        let mut sent = Vec::new();
        message::encode(&cell, &mut sent);
        let back = message::decode_complete(&sent).unwrap();
        assert_eq!(back, cell);
        assert_eq!(back.view().to_cell().id(), cell.id());
        let mut writer = Writer::new();
        writer.view(back.view());
        assert_eq!(writer.finish(), cell);
    });
}

/// Whatever decodes must be exactly what it was decoded from, and be readable.
#[test]
fn random_and_damaged_bytes_never_panic() {
    draw::check("random_and_damaged_bytes_never_panic", 20_000, |draw| {
        let mut bytes = if draw.one_in(3) {
            draw.bytes(300)
        } else {
            let mut bytes = Vec::new();
            message::encode(&value(draw, 3), &mut bytes);
            bytes
        };
        for _ in 0..draw.below(4) {
            match draw.below(4) {
                0 => bytes.truncate(draw.index(bytes.len() + 1)),
                1 => bytes.insert(draw.index(bytes.len() + 1), draw.bits() as u8),
                _ if bytes.is_empty() => {}
                2 => {
                    let at = draw.index(bytes.len());
                    bytes[at] ^= 1 << draw.below(8);
                }
                _ => {
                    let at = draw.index(bytes.len());
                    bytes[at] = draw.one_of(&[0, 0x20, 0x80, 0x82, 0x84, 0x90, 0xff, 0x7f]);
                }
            }
        }
        if let Ok(cell) = message::decode(&bytes, &mut |_| None) {
            assert!(bytes.starts_with(cell.bytes()));
            read_all(&cell);
        }
        if let Ok(cell) = Cell::decode(&bytes) {
            assert_eq!(cell.bytes(), bytes);
            assert!(bytes.len() <= CELL_BYTES_MAX);
            read_all(&cell);
        }
    });
}

fn read_all(cell: &Cell) {
    let view = cell.view();
    let _ = (view.form(), view.as_int(), view.slots().count(), view.map_get(&cell.id()));
    let _ = (view.elements(1_000), view.map_entries(1_000), view.set_elements(1_000));
    let _ = (view.as_string(1_000), view.as_blob(1_000), message::missing(cell, 10));
}
