//! The subspace form: its keys, its fault, and the copies in both directions.

use kumiko_base::{Kind, draw};
use kumiko_eventlog::key::Record;
use kumiko_eventlog::subspace::{self, HAZARD_CEILING, Row, hazards, pack, unpack};
use kumiko_eventlog::{EventId, Item, Log, PageMax, Point, Sizes, Take, Writer};
use kumiko_kv::{Engine, Memory};

use crate::{bytes, id, read_all};

fn point(name: &str) -> Point {
    name.parse().unwrap()
}

#[test]
fn keys_to_the_byte() {
    let planet = point("~midlyx-hatrys");
    let rows = [
        (planet, Row::Record(Record::Whole(id(1))), "0000042d0000000000000001"),
        (
            planet,
            Row::Record(Record::First(id(2), 25_000)),
            "0000042d0000000000000002000000000000000000a861000000000000",
        ),
        (
            planet,
            Row::Record(Record::Fragment(id(2), 1)),
            "0000042d0000000000000002000000000000000001",
        ),
        (planet, Row::Latest, "0000042d6d6574612f6c6174657374"),
        (planet, Row::Schema, "0000042d6d6574612f736368656d612d76657273696f6e"),
        (point("~zod"), Row::Record(Record::Whole(id(1))), "000000000000000001"),
        (point("~nec"), Row::Record(Record::Whole(id(1))), "00010000000000000001"),
    ];
    for (point, row, hex) in rows {
        let key = pack(point, row).unwrap();
        assert_eq!(kumiko_base::hex::show(&key), hex);
        assert_eq!(unpack(&key), Some((point, row)));
    }
    for record in [Record::Special(id(3), 1), Record::Whole(id(1 << 56))] {
        assert_eq!(pack(planet, Row::Record(record)).unwrap_err().kind(), Kind::Invalid);
    }
}

/// Every legal key has one reading, over all points.
#[test]
fn keys_have_one_reading() {
    draw::check("keys_have_one_reading", 40_000, |draw| {
        let size = draw.below(17) as u32;
        let mut number = 0u128;
        for _ in 0..size {
            let byte = draw.one_of(&[0, 0, 0, 1, 1, 2, 0x6d, 0xff, draw.clone().bits() as u8]);
            number = number << 8 | u128::from(byte);
        }
        let number_of = |draw: &mut draw::Draw, most: u64| {
            let wide = draw.bits() >> draw.one_of(&[8, 24, 48, 56, 62]);
            1 + wide % (most - 1)
        };
        let at = id(number_of(draw, 1 << 56));
        let row = match draw.below(5) {
            0 => Row::Latest,
            1 => Row::Schema,
            2 => Row::Record(Record::Whole(at)),
            3 => Row::Record(Record::First(at, draw.bits() >> draw.one_of(&[0, 32, 56]))),
            _ => Row::Record(Record::Fragment(at, number_of(draw, u64::MAX))),
        };
        let point = Point::new(number);
        let key = pack(point, row).unwrap();
        assert_eq!(unpack(&key), Some((point, row)));
    });
}

#[test]
fn random_keys_do_not_panic() {
    draw::check("random_keys_do_not_panic", 20_000, |draw| {
        let mut key = draw.bytes(50);
        if let Some(first) = key.first_mut() {
            *first = draw.one_of(&[0, 0, 0, 1]);
        }
        if let Some((point, row)) = unpack(&key) {
            assert_eq!(pack(point, row).unwrap(), key);
        }
    });
}

#[test]
fn where_points_interleave() {
    let rows = [
        ("~zod", "~marzod", 1 << 48),
        ("~zod", "~dapnep-ronmyl", 1 << 40),
        ("~zod", "~doznec-dozzod-dozzod", 16_777_216),
        ("~zod", "~marzod-dozzod-dozzod-dozzod", 1),
        ("~nec", "~marnec", 1 << 56),
        ("~midlyx-hatrys", "~marzod-dozzod-midlyx-hatrys", 16_777_216),
    ];
    for (above, below, first_id) in rows {
        let (above, below) = (point(above), point(below));
        let found = hazards(&[below, above], u64::MAX);
        assert_eq!(found.len(), 1, "{below}");
        assert_eq!((found[0].above, found[0].below, found[0].first_id), (above, below, first_id));
        assert_eq!(hazards(&[above, below], HAZARD_CEILING).len(), usize::from(first_id < 1 << 40));
    }
    assert_eq!(hazards(&[point("~nec"), point("~bud")], u64::MAX), []);
}

#[test]
fn there_and_back() {
    let engine = Memory::new();
    let planet = point("~midlyx-hatrys");
    let log = Log::of(planet).with_sizes(Sizes { fragment: 1_000, body: 10_000 });
    let writer = Writer::open(&engine, &log, "test", Take::IfFree).unwrap();
    let events: Vec<Vec<u8>> = (1..400).map(|it| bytes(it, (it * 37 % 3_000) as usize)).collect();
    for (first, chunk) in (0..).zip(events.chunks(50)) {
        let items: Vec<Item<'_>> = chunk.iter().map(|it| Item::event(it)).collect();
        writer.append(&engine, id(first * 50 + 1), &items).unwrap();
    }
    let large = bytes(7, 6_000_000);
    writer.append_from(&engine, id(400), &mut large.as_slice(), 0).unwrap();
    let shared = Memory::new();
    let last = subspace::export(&engine, &log, planet, &shared, &[point("~zod")]).unwrap();
    assert_eq!(last, id(400));
    // Neighbours whose keys lie around, and one whose keys would lie between.
    let moon = point("~marzod-dozzod-midlyx-hatrys");
    let error = subspace::export(&engine, &log, moon, &shared, &[planet]).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    subspace::export(&engine, &log, point("~samzod"), &shared, &[planet]).unwrap();
    let back = Memory::new();
    let copy = Writer::open(&back, &Log::of(planet), "test", Take::IfFree).unwrap();
    assert_eq!(subspace::import(&shared, planet, &back, &copy), Ok(last));
    assert_eq!(subspace::import(&shared, planet, &back, &copy), Ok(last), "again is harmless");
    let page = PageMax::default();
    assert!(read_all(&back, copy.log(), page) == read_all(&engine, &log, page));
    assert_eq!(subspace::import(&shared, point("~nec"), &back, &copy), Ok(EventId::ZERO));
}

#[test]
fn a_foreign_key_stops_an_import() {
    let shared = Memory::new();
    let engine = Memory::new();
    let zod = point("~zod");
    let writer = Writer::open(&engine, &Log::of(zod), "test", Take::IfFree).unwrap();
    writer.append(&engine, id(1), &[Item::event(b"a"), Item::event(b"b")]).unwrap();
    subspace::export(&engine, &Log::of(zod), zod, &shared, &[]).unwrap();
    let moon = point("~marzod-dozzod-dozzod-dozzod");
    let mut txn = shared.begin().unwrap();
    txn.put(&pack(moon, Row::Record(Record::Whole(id(1)))).unwrap(), b"m").unwrap();
    txn.commit().unwrap();
    let other = Memory::new();
    let copy = Writer::open(&other, &Log::of(zod), "test", Take::IfFree).unwrap();
    assert_eq!(subspace::import(&shared, zod, &other, &copy).unwrap_err().kind(), Kind::Corrupt);
}
