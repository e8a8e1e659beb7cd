//! The payload of DUMP and RESTORE: one value in the format of a Redis dump file.
//!
//! ```text
//! type (1)  value (..)  version (2, LE)  CRC-64 of all before it (8, LE)
//! ```
//!
//! We write the plain forms, which every Redis since 4.0 reads: strings, lists, sets and hashes as
//! a count with strings behind it, sorted sets with binary scores. We read these and the packed
//! forms of Redis 2.6 to 7.0 (`rdb/pack.rs`). Streams and modules are refused.

mod crc64;
mod pack;
mod read;

use kumiko_wire::resp::number;
use read::Reader;

/// The version we write, that of Redis 7.0. Payloads of newer versions are refused.
pub(crate) const VERSION: u16 = 10;
/// Bytes behind the value: the version and the checksum.
const FOOTER_BYTES: usize = 10;

/// A value as it travels in a payload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Dumped {
    /// A string.
    String(Vec<u8>),
    /// A list, head first.
    List(Vec<Vec<u8>>),
    /// A set, in no order.
    Set(Vec<Vec<u8>>),
    /// A sorted set: members with scores.
    Sorted(Vec<(Vec<u8>, f64)>),
    /// A hash: fields with values.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
}

/// Why a payload was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The footer does not fit: a newer version, or bytes that were changed on the way.
    Footer,
    /// The footer fits but the value cannot be read.
    Value,
}

/// The payload of `value`.
pub(crate) fn dump(value: &Dumped) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Dumped::String(text) => {
            out.push(0);
            put_string(&mut out, text);
        }
        Dumped::List(items) | Dumped::Set(items) => {
            out.push(if matches!(value, Dumped::List(_)) { 1 } else { 2 });
            put_length(&mut out, items.len());
            for item in items {
                put_string(&mut out, item);
            }
        }
        Dumped::Sorted(members) => {
            out.push(5);
            put_length(&mut out, members.len());
            for (member, score) in members {
                put_string(&mut out, member);
                out.extend_from_slice(&score.to_le_bytes());
            }
        }
        Dumped::Hash(fields) => {
            out.push(4);
            put_length(&mut out, fields.len());
            for (field, value) in fields {
                put_string(&mut out, field);
                put_string(&mut out, value);
            }
        }
    }
    out.extend_from_slice(&VERSION.to_le_bytes());
    let sum = crc64::of(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// Reads a payload of ours or of Redis.
pub(crate) fn restore(payload: &[u8]) -> Result<Dumped, Refused> {
    let cut = payload.len().checked_sub(FOOTER_BYTES).ok_or(Refused::Footer)?;
    let (value, footer) = payload.split_at(cut);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let sum = u64::from_le_bytes(footer[2..].try_into().expect("eight bytes are left"));
    // A sum of zero means that the sender does not use checksums.
    if VERSION < version || (sum != 0 && sum != crc64::of(&payload[..cut + 2])) {
        return Err(Refused::Footer);
    }
    let mut reader = Reader::new(value);
    let value = load(&mut reader).ok_or(Refused::Value)?;
    if reader.is_empty() && !is_vain(&value) { Ok(value) } else { Err(Refused::Value) }
}

/// Empty collections, double members and scores that are no number do not exist.
fn is_vain(value: &Dumped) -> bool {
    let mut names: Vec<&[u8]> = match value {
        Dumped::String(_) => return false,
        Dumped::List(items) => return items.is_empty(),
        Dumped::Set(items) => items.iter().map(Vec::as_slice).collect(),
        Dumped::Sorted(members) => {
            if members.iter().any(|(_, score)| score.is_nan()) {
                return true;
            }
            members.iter().map(|(member, _)| member.as_slice()).collect()
        }
        Dumped::Hash(fields) => fields.iter().map(|(field, _)| field.as_slice()).collect(),
    };
    names.sort_unstable();
    names.is_empty() || names.windows(2).any(|pair| pair[0] == pair[1])
}

fn load(reader: &mut Reader) -> Option<Dumped> {
    let kind = reader.byte()?;
    match kind {
        0 => reader.string().map(Dumped::String),
        1 => strings(reader, 1).map(Dumped::List),
        2 => strings(reader, 1).map(Dumped::Set),
        3 | 5 => {
            let count = reader.length()?;
            let mut members = Vec::new();
            for _ in 0..count {
                let member = reader.string()?;
                let score = if kind == 5 { reader.double()? } else { reader.double_text()? };
                members.push((member, score));
            }
            Some(Dumped::Sorted(members))
        }
        4 => strings(reader, 2).and_then(pairs).map(Dumped::Hash),
        10 => pack::ziplist(&reader.string()?).map(Dumped::List),
        11 => pack::intset(&reader.string()?).map(Dumped::Set),
        12 => pack::ziplist(&reader.string()?).and_then(scores).map(Dumped::Sorted),
        13 => pack::ziplist(&reader.string()?).and_then(pairs).map(Dumped::Hash),
        14 | 18 => quicklist(reader, kind == 18).map(Dumped::List),
        16 => pack::listpack(&reader.string()?).and_then(pairs).map(Dumped::Hash),
        17 => pack::listpack(&reader.string()?).and_then(scores).map(Dumped::Sorted),
        _ => None,
    }
}

fn strings(reader: &mut Reader, each: usize) -> Option<Vec<Vec<u8>>> {
    let count = reader.length()?.checked_mul(each)?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(reader.string()?);
    }
    Some(items)
}

fn quicklist(reader: &mut Reader, second: bool) -> Option<Vec<Vec<u8>>> {
    let nodes = reader.length()?;
    let mut items = Vec::new();
    for _ in 0..nodes {
        let container = if second { reader.length()? } else { 0 };
        let bytes = reader.string()?;
        match container {
            0 => items.extend(pack::ziplist(&bytes)?),
            1 => items.push(bytes),
            2 => items.extend(pack::listpack(&bytes)?),
            _ => return None,
        }
    }
    Some(items)
}

fn pairs(items: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut pairs = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let Some(first) = items.next() {
        pairs.push((first, items.next()?));
    }
    Some(pairs)
}

fn scores(items: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, f64)>> {
    let read = |(member, score): (Vec<u8>, Vec<u8>)| Some((member, number::parse_float(&score)?));
    pairs(items)?.into_iter().map(read).collect()
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes()),
        _ => {
            if let Ok(short) = u32::try_from(length) {
                out.push(0x80);
                out.extend_from_slice(&short.to_be_bytes());
            } else {
                out.push(0x81);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
    }
}

/// A string; small integers take their short form, as Redis writes them.
fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    if let Some(value) = number::parse_int(text) {
        if let Ok(value) = i8::try_from(value) {
            out.push(0xC0);
            out.extend_from_slice(&value.to_le_bytes());
            return;
        }
        if let Ok(value) = i16::try_from(value) {
            out.push(0xC1);
            out.extend_from_slice(&value.to_le_bytes());
            return;
        }
        if let Ok(value) = i32::try_from(value) {
            out.push(0xC2);
            out.extend_from_slice(&value.to_le_bytes());
            return;
        }
    }
    put_length(out, text.len());
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::{Dumped, Refused, crc64, dump, restore};
    use kumiko_base::draw::{self, Draw};

    fn text(bytes: &str) -> Vec<u8> {
        bytes.as_bytes().to_vec()
    }

    fn value(draw: &mut Draw) -> Dumped {
        let count = 1 + draw.index(20);
        let name =
            |at: usize, draw: &mut Draw| [at.to_string().into_bytes(), draw.bytes(90)].concat();
        let names: Vec<Vec<u8>> = (0..count).map(|at| name(at, draw)).collect();
        match draw.below(5) {
            0 => Dumped::String(draw.bytes(20_000)),
            1 => Dumped::List(names),
            2 => Dumped::Set(names),
            3 => Dumped::Sorted(names.into_iter().map(|it| (it, draw.below(9) as f64)).collect()),
            _ => Dumped::Hash(names.into_iter().map(|it| (it, draw.bytes(5))).collect()),
        }
    }

    #[test]
    fn restore_undoes_dump_and_survives_mutation() {
        draw::check("rdb_round_trip", 500, |draw| {
            let value = value(draw);
            let mut payload = dump(&value);
            assert_eq!(restore(&payload), Ok(value));
            let at = draw.index(payload.len());
            payload[at] ^= 1 + draw.below(255) as u8;
            assert_eq!(restore(&payload), Err(Refused::Footer));
            // With a fitting sum the value itself is foreign bytes: any answer, no panic.
            payload.truncate(payload.len() - 8);
            let sum = crc64::of(&payload);
            payload.extend_from_slice(&sum.to_le_bytes());
            let _ = restore(&payload);
        });
    }

    #[test]
    fn random_bytes_never_panic() {
        draw::check("rdb_random", 3_000, |draw| {
            let mut payload = vec![draw.below(20) as u8];
            let inner = draw.bytes(60);
            payload.push(inner.len() as u8);
            payload.extend(inner);
            payload.extend([10, 0]);
            let sum = crc64::of(&payload);
            payload.extend_from_slice(&sum.to_le_bytes());
            let _ = restore(&payload);
        });
    }

    #[test]
    fn payloads_of_redis() {
        let list = ["a", "b", "-3", "4000", "70000", "99999999999", &"x".repeat(70)].map(text);
        // Each was printed by DUMP of Redis 7.0.15, in its different forms.
        let rows: [(&[u8], Dumped); 12] = [
            (TEN, Dumped::String(text("10"))),
            (b"\x00\xc2p\x11\x01\x00\x0a\x00\x01\xa4\x08\xfe\x950\x95\xa5", Dumped::String(text("70000"))),
            (b"\x00\xc0\xfb\x0a\x00I\xc4\xc6\xf4\xd7&?h", Dumped::String(text("-5"))),
            (
                b"\x00\xc3\x0a@g\x01aa\xe0Y\x00\x02xyz\x0a\x00\xeaE\xbb\xed<$\xd0\xc6",
                Dumped::String(text(&("a".repeat(100) + "xyz"))),
            ),
            (
                b"\x12\x01\x02\xc3+@k\x1ck\x00\x00\x00\x07\x00\x81a\x02\x81b\x02\xdf\xfd\x02\xcf\xa0\
                \x02\xf2p\x11\x01\x04\xf4\xff\xe7vH\x17 \x1b\x03\x09\xe0Fx\xe0<\x00\x01H\xff\x0a\x00\
                \x16\x92\xbd\xf1\x8f2\x18\x92",
                Dumped::List(list.to_vec()),
            ),
            (
                b"\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02\x00,\x01\x0a\x00\xe5\x10\xb2\
                \x8e{\x95)\xaa",
                Dumped::Set(["1", "2", "300"].map(text).to_vec()),
            ),
            (
                b"\x0b\x18\x08\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xff\xe7vH\
                \x17\x00\x00\x00\x0a\x00j\xb1qW\xb9E\x80\xf9",
                Dumped::Set(["1", "99999999999"].map(text).to_vec()),
            ),
            (
                b"\x02\x02\x01a\x01b\x0a\x00\xfed!%\xeb\x03=\x0d",
                Dumped::Set(["a", "b"].map(text).to_vec()),
            ),
            (
                b"\x11\x1c\x1c\x00\x00\x00\x06\x00\x81a\x02\x01\x01\x81b\x02\x832.5\x04\x81c\x02\x83inf\
                \x04\xff\x0a\x00k\x1d\xde\xdc\xe8\xe2\xc3\x99",
                Dumped::Sorted(vec![
                    (text("a"), 1.0),
                    (text("b"), 2.5),
                    (text("c"), f64::INFINITY),
                ]),
            ),
            (
                b"\x05\x02\x01a\x00\x00\x00\x00\x00\x00\xf0?\x01b\x00\x00\x00\x00\x00\x00\xe0\xbf\x0a\
                \x00\xb0z\x10\x18xt\x15\xc3",
                Dumped::Sorted(vec![(text("a"), 1.0), (text("b"), -0.5)]),
            ),
            (
                b"\x10\x13\x13\x00\x00\x00\x04\x00\x81f\x02\x81v\x02\x81n\x02\xd0`\x02\xff\x0a\x00~\xe7\
                \xb8%y\xe3B\x88",
                Dumped::Hash(vec![(text("f"), text("v")), (text("n"), text("-4000"))]),
            ),
            (
                b"\x04\x01\x01f\x01v\x0a\x00\xad\xf2CV\xb1\x86\x0e\xfc",
                Dumped::Hash(vec![(text("f"), text("v"))]),
            ),
        ];
        for (payload, expected) in rows {
            assert_eq!(restore(payload), Ok(expected));
        }
        assert_eq!(dump(&Dumped::String(text("10"))), TEN);
    }

    const TEN: &[u8] = b"\x00\xc0\x0a\x0a\x00\x6e\x9f\x57\x45\x0e\xae\x63\xbb";

    #[test]
    fn refusals() {
        assert_eq!(restore(b""), Err(Refused::Footer));
        let mut newer = dump(&Dumped::String(text("x")));
        let at = newer.len() - 10;
        newer[at] = 11;
        assert_eq!(restore(&newer), Err(Refused::Footer));
        assert_eq!(restore(&dump(&Dumped::Set(vec![]))), Err(Refused::Value));
        let twice = Dumped::Set(vec![text("a"), text("a")]);
        assert_eq!(restore(&dump(&twice)), Err(Refused::Value));
        let no_number = Dumped::Sorted(vec![(text("a"), f64::NAN)]);
        assert_eq!(restore(&dump(&no_number)), Err(Refused::Value));
    }
}
