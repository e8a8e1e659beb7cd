//! Golden dumps: the stored bytes of small logs.

use kumiko_eventlog::{Item, Log, Point, Sizes, Take, Writer};
use kumiko_kv::{Engine, Memory, Range, Scan};

use crate::id;

/// Every row, as hex of the key and text of the value.
fn dump(engine: &Memory) -> String {
    let mut txn = engine.begin().unwrap();
    let rows = txn.scan(&Scan::new(Range::all())).unwrap().rows;
    let hex = |bytes: &[u8]| -> String {
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap();
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    };
    rows.iter()
        .map(|(key, value)| match value.len() {
            0..40 => format!("{} -> {}\n", hex(key), hex(value)),
            size => format!("{} -> {size} bytes\n", hex(key)),
        })
        .collect()
}

#[test]
fn a_small_log_of_a_planet() {
    let engine = Memory::new();
    let point: Point = "~midlyx-hatrys".parse().unwrap();
    let sizes = Sizes { fragment: 10_000, body: 1_000_000 };
    let log = Log::of(point).with_sizes(sizes);
    let writer = Writer::open(&engine, &log, "host", Take::IfFree).unwrap();
    let large = vec![7; 25_000];
    let items = [
        Item::event(b"one"),
        Item::event(&large),
        Item::special(1, b"s3://x"),
        Item::event(b"").at_ms(1_700_000_000_000),
    ];
    writer.append(&engine, id(1), &items).unwrap();
    writer.snapshot(&engine, id(2), &mut &b"state"[..]).unwrap();
    writer.release(&engine).unwrap();
    let expected = "\
01501100172d0400000000000000000001 -> 6f6e65
01501100172d0400000000000000000002000000000000000000a861000000000000 -> 10000 bytes
01501100172d0400000000000000000002000000000000000001 -> 10000 bytes
01501100172d0400000000000000000002000000000000000002 -> 5000 bytes
01501100172d040000000000000000000203 -> 0100000000000000000500000000000000fbd293a3
01501100172d040000000000000000000301 -> 73333a2f2f78
01501100172d0400000000000000000004 -> 
01501100172d0400006d6574612f626c6f6273 -> 0000000000000001
01501100172d0400006d6574612f686f75722f0007349e6e -> 0100000000000000
01501100172d0400006d6574612f686f75722f0007349e73 -> 0000000000000000
01501100172d0400006d6574612f6c6174657374 -> 0000000000000004
01501100172d0400006d6574612f736368656d612d76657273696f6e -> 30
01501100172d0400006d6574612f777269746572 -> 01000000000000000100000000000000000000000000000000
01501100172d0400010000000000000000 -> 010100000000000000020500000000000000fbd293a3
01501100172d04000200000000000000000000000000000000 -> 7374617465
";
    assert_eq!(dump(&engine), expected);
}

#[test]
fn the_first_point_has_number_zero() {
    let engine = Memory::new();
    let zod: Point = "~zod".parse().unwrap();
    let writer = Writer::open(&engine, &Log::of(zod), "h", Take::IfFree).unwrap();
    writer.append(&engine, id(1), &[Item::event(b"e")]).unwrap();
    let expected = "\
0150110014000000000000000001 -> 65
0150110014006d6574612f6c6174657374 -> 0000000000000001
0150110014006d6574612f736368656d612d76657273696f6e -> 30
0150110014006d6574612f777269746572 -> 0100000000000000010000000000000000000000000000000068
";
    assert_eq!(dump(&engine), expected);
}
