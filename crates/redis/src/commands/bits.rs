//! Bits of strings. Bit 0 is the highest bit of the first byte.
//!
//! A string is a register, so a changed bit writes the whole string: of two sites that set
//! different bits at once, one survives.

mod field;

use super::data::{self, Keep, Type};
use crate::command::{DENYOOM, FAST, READONLY, WRITE, acl};
use crate::fail::{self, Fail};
use crate::{Args, Command, Context, Meaning, Outcome, notify};
use kumiko_wire::resp::number;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("setbit", 4, setbit, WRITE | DENYOOM, Meaning::ReadThenWrite).summary("Set a bit"),
    row("getbit", 3, getbit, READONLY | FAST, Meaning::Read).summary("Get a bit"),
    row("bitcount", -2, bitcount, READONLY, Meaning::Read).summary("Count the bits that are set"),
    row("bitpos", -3, bitpos, READONLY, Meaning::Read)
        .summary("Find the first bit that is set or clear"),
    row("bitop", -4, bitop, WRITE | DENYOOM, Meaning::ReadThenWrite)
        .keys(2, -1, 1)
        .summary("Combine strings bit by bit"),
    row("bitfield", -2, field::bitfield, WRITE | DENYOOM, Meaning::ReadThenWrite)
        .summary("Read and change integers of any width inside a string"),
    row("bitfield_ro", -2, field::bitfield_ro, READONLY | FAST, Meaning::Read)
        .summary("Read integers of any width inside a string"),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    meaning: Meaning,
) -> Command {
    Command::new(name, arity, run).flags(flags).acl(acl::BITMAP).keys(1, 1, 1).meaning(meaning)
}

const OFFSET: Fail = Fail::new("ERR bit offset is not an integer or out of range");
const NOT_A_BIT: Fail = Fail::new("ERR bit is not an integer or out of range");
const POSITION_OF_WHAT: Fail = Fail::new("ERR The bit argument must be 1 or 0.");
const NOT_TAKES_ONE: Fail = Fail::new("ERR BITOP NOT must be called with a single source key.");

/// A bit's place. With `width`, `#n` is the place of the n-th field of that many bits.
fn offset(text: &[u8], width: Option<u32>, size_max: usize) -> Result<u64, Fail> {
    let (text, factor) = match (text, width) {
        ([b'#', rest @ ..], Some(width)) => (rest, i64::from(width)),
        _ => (text, 1),
    };
    let place = number::parse_int(text).and_then(|it| it.checked_mul(factor)).ok_or(OFFSET)?;
    let place = u64::try_from(place).map_err(|_| OFFSET)?;
    if size_max as u64 <= place >> 3 { Err(OFFSET) } else { Ok(place) }
}

fn bit_of(value: &[u8], place: u64) -> bool {
    let byte = value.get((place >> 3) as usize).copied().unwrap_or(0);
    byte >> (7 - (place & 7)) & 1 == 1
}

fn setbit(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let place = offset(args.get(2), None, data::bulk_bytes_max(ctx))?;
    let on = match number::parse_int(args.get(3)) {
        Some(bit @ (0 | 1)) => bit == 1,
        _ => return Err(NOT_A_BIT),
    };
    let (mut data, reply) = data::open(ctx);
    let at = (place >> 3) as usize;
    let mut byte = None;
    data.string(key, |value| byte = value.and_then(|value| value.get(at).copied()))?;
    let mask = 0x80 >> (place & 7);
    let old = byte.unwrap_or(0);
    reply.int(i64::from(old & mask != 0));
    let new = if on { old | mask } else { old & !mask };
    if byte != Some(new) {
        data.set_range(key, at, &[new])?;
        ctx.wrote(key, notify::STRING, "setbit");
    }
    Ok(())
}

fn getbit(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let place = offset(args.get(2), None, data::bulk_bytes_max(ctx))?;
    let (mut data, reply) = data::open(ctx);
    data.string(args.get(1), |value| {
        reply.int(i64::from(bit_of(value.unwrap_or_default(), place)));
    })
}

/// Bits from `start` to `end`, both inside; empty if `end < start`.
struct Span {
    start: i64,
    end: i64,
}

/// The span that `start end [BYTE|BIT]` names; `end` counts to the end if it is missing.
fn span(start: i64, end: Option<i64>, in_bits: bool, size: usize) -> Span {
    let total = if in_bits { size as i64 * 8 } else { size as i64 };
    let place = |at: i64| if at < 0 { at.saturating_add(total).max(0) } else { at };
    let (start, end) = (place(start), end.map_or(total - 1, place).min(total - 1));
    if end < start {
        Span { start: 1, end: 0 }
    } else if in_bits {
        Span { start, end }
    } else {
        Span { start: start * 8, end: end * 8 + 7 }
    }
}

fn in_bits(args: &Args<'_>, at: usize) -> Result<bool, Fail> {
    match () {
        () if args.len() <= at => Ok(false),
        () if args.is(at, "bit") => Ok(true),
        () if args.is(at, "byte") => Ok(false),
        () => Err(fail::SYNTAX),
    }
}

fn bitcount(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    if !data.check(key, Type::String)? {
        reply.int(0);
        return Ok(());
    }
    let (start, end, in_bits) = match args.len() {
        2 => (0, None, false),
        4 | 5 => {
            let (start, end) = (args.int(2)?, args.int(3)?);
            if start < 0 && end < 0 && end < start {
                reply.int(0);
                return Ok(());
            }
            (start, Some(end), in_bits(args, 4)?)
        }
        _ => return Err(fail::SYNTAX),
    };
    data.string(key, |value| {
        let value = value.unwrap_or_default();
        reply.int(count(value, &span(start, end, in_bits, value.len())));
    })
}

/// Counts whole bytes, then takes away what lies outside of the span in the first and the last.
fn count(value: &[u8], span: &Span) -> i64 {
    if span.end < span.start {
        return 0;
    }
    let (first, last) = (span.start as usize / 8, span.end as usize / 8);
    let whole: i64 = value[first..=last].iter().map(|byte| i64::from(byte.count_ones())).sum();
    let before = value[first] & !(0xFF >> (span.start & 7));
    let behind = value[last] & (0x7F_u8.checked_shr((span.end & 7) as u32).unwrap_or(0));
    whole - i64::from(before.count_ones()) - i64::from(behind.count_ones())
}

fn bitpos(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let wanted = match args.int(2)? {
        0 => false,
        1 => true,
        _ => return Err(POSITION_OF_WHAT),
    };
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    if !data.check(key, Type::String)? {
        reply.int(if wanted { -1 } else { 0 });
        return Ok(());
    }
    let end_given = 5 <= args.len();
    let (start, end, in_bits) = match args.len() {
        3 => (0, None, false),
        4..=6 => {
            let start = args.int(3)?;
            let in_bits = in_bits(args, 5)?;
            let end = if end_given { Some(args.int(4)?) } else { None };
            (start, end, in_bits)
        }
        _ => return Err(fail::SYNTAX),
    };
    data.string(key, |value| {
        let value = value.unwrap_or_default();
        let span = span(start, end, in_bits, value.len());
        reply.int(match position(value, &span, wanted) {
            Some(place) => place,
            // Behind an open end there are only zeros.
            None if !wanted && !end_given && span.start <= span.end => span.end + 1,
            None => -1,
        });
    })
}

fn position(value: &[u8], span: &Span, wanted: bool) -> Option<i64> {
    let full = if wanted { 0x00 } else { 0xFF };
    let mut place = span.start;
    while place <= span.end {
        if place % 8 == 0 && place + 7 <= span.end && value[place as usize / 8] == full {
            place += 8;
        } else if bit_of(value, place as u64) == wanted {
            return Some(place);
        } else {
            place += 1;
        }
    }
    None
}

fn bitop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let combine: fn(u8, u8) -> u8 = match args.get(1).to_ascii_lowercase().as_slice() {
        b"and" => |a, b| a & b,
        b"or" => |a, b| a | b,
        b"xor" => |a, b| a ^ b,
        b"not" if args.len() == 4 => |a, _| !a,
        b"not" => return Err(NOT_TAKES_ONE),
        _ => return Err(fail::SYNTAX),
    };
    let negate = args.is(1, "not");
    let (mut data, reply) = data::open(ctx);
    let mut sources = Vec::with_capacity(args.len() - 3);
    for key in args.from(3) {
        sources.push(data.string_owned(key)?.unwrap_or_default());
    }
    let size = sources.iter().map(Vec::len).max().unwrap_or(0);
    let byte = |source: &Vec<u8>, at: usize| source.get(at).copied().unwrap_or(0);
    let result: Vec<u8> = (0..size)
        .map(|at| {
            let first = byte(&sources[0], at);
            if negate {
                combine(first, 0)
            } else {
                sources[1..].iter().fold(first, |sum, source| combine(sum, byte(source, at)))
            }
        })
        .collect();
    let target = args.get(2);
    reply.count(size);
    if 0 < size {
        data.set_string(target, &result, Keep::No)?;
        ctx.wrote(target, notify::STRING, "set");
    } else if data.del(target) {
        ctx.wrote(target, notify::GENERIC, "del");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{bit_of, count, offset, position, span};
    use kumiko_base::draw;

    #[test]
    fn offsets() {
        assert_eq!(offset(b"7", None, 512), Ok(7));
        assert_eq!(offset(b"#2", Some(8), 512), Ok(16));
        assert_eq!(offset(b"4095", None, 512), Ok(4095));
        for bad in ["4096", "-1", "#1", "x", "9223372036854775807"] {
            assert!(offset(bad.as_bytes(), None, 512).is_err(), "{bad}");
        }
        assert!(offset(b"#9223372036854775807", Some(63), 512).is_err());
    }

    #[test]
    fn spans_agree_with_single_bits() {
        draw::check("bit_spans", 2_000, |draw| {
            let value = draw.bytes(6);
            let at = |draw: &mut draw::Draw| draw.below(120) as i64 - 60;
            let (start, end, in_bits) = (at(draw), at(draw), draw.one_in(2));
            let span = span(start, Some(end), in_bits, value.len());
            let places: Vec<i64> = (span.start..=span.end).collect();
            assert!(places.iter().all(|place| *place < value.len() as i64 * 8));
            let set = places.iter().filter(|place| bit_of(&value, **place as u64)).count();
            assert_eq!(count(&value, &span), set as i64);
            for wanted in [false, true] {
                let first = places.iter().find(|place| bit_of(&value, **place as u64) == wanted);
                assert_eq!(position(&value, &span, wanted), first.copied());
            }
        });
    }
}
