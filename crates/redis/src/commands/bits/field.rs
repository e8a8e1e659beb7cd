//! BITFIELD: integers of 1 to 64 bits anywhere inside a string, with a choice at overflow.

use super::{bit_of, offset};
use crate::commands::data;
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome, notify};
use kumiko_wire::resp::number;

const TYPE: Fail = Fail::new(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
);
const OVERFLOW_TYPE: Fail = Fail::new("ERR Invalid OVERFLOW type specified");
const ONLY_GET: Fail = Fail::new("ERR BITFIELD_RO only supports the GET subcommand");

/// An integer type: `i` is signed and has up to 64 bits, `u` has up to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    signed: bool,
    bits: u32,
}

impl Kind {
    fn parse(text: &[u8]) -> Result<Kind, Fail> {
        let signed = match text.first() {
            Some(b'i') => true,
            Some(b'u') => false,
            _ => return Err(TYPE),
        };
        let bits = number::parse_int(&text[1..]).ok_or(TYPE)?;
        let bits_max = if signed { 64 } else { 63 };
        if (1..=bits_max).contains(&bits) {
            Ok(Kind { signed, bits: bits as u32 })
        } else {
            Err(TYPE)
        }
    }

    fn min(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    fn max(self) -> i128 {
        if self.signed { (1 << (self.bits - 1)) - 1 } else { (1 << self.bits) - 1 }
    }

    /// The lowest bits of `value` read as this type.
    fn wrap(self, value: i128) -> i128 {
        let low = value & ((1 << self.bits) - 1);
        if self.max() < low { low - (1 << self.bits) } else { low }
    }
}

/// What becomes of a value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl Overflow {
    /// The value to store, or `None` if the operation is to fail.
    fn fit(self, kind: Kind, value: i128) -> Option<i128> {
        if (kind.min()..=kind.max()).contains(&value) {
            return Some(value);
        }
        match self {
            Overflow::Wrap => Some(kind.wrap(value)),
            Overflow::Saturate => Some(value.clamp(kind.min(), kind.max())),
            Overflow::Fail => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

#[derive(Clone, Copy, Debug)]
struct Step {
    kind: Kind,
    place: u64,
    action: Action,
    overflow: Overflow,
}

pub(super) fn bitfield(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let steps = parse(args, data::bulk_bytes_max(ctx))?;
    run(ctx, args.get(1), &steps)
}

pub(super) fn bitfield_ro(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let steps = parse(args, data::bulk_bytes_max(ctx))?;
    if steps.iter().any(|step| step.action != Action::Get) {
        return Err(ONLY_GET);
    }
    run(ctx, args.get(1), &steps)
}

fn parse(args: &Args<'_>, size_max: usize) -> Result<Vec<Step>, Fail> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "overflow") && 1 <= left {
            overflow = match args.get(at + 1).to_ascii_lowercase().as_slice() {
                b"wrap" => Overflow::Wrap,
                b"sat" => Overflow::Saturate,
                b"fail" => Overflow::Fail,
                _ => return Err(OVERFLOW_TYPE),
            };
            at += 2;
            continue;
        }
        let get = args.is(at, "get") && 2 <= left;
        let set = args.is(at, "set") && 3 <= left;
        let add = args.is(at, "incrby") && 3 <= left;
        if !get && !set && !add {
            return Err(fail::SYNTAX);
        }
        let kind = Kind::parse(args.get(at + 1))?;
        let place = offset(args.get(at + 2), Some(kind.bits), size_max)?;
        let action = match (get, set) {
            (true, _) => Action::Get,
            (_, true) => Action::Set(args.int(at + 3)?),
            _ => Action::Add(args.int(at + 3)?),
        };
        steps.push(Step { kind, place, action, overflow });
        at += if get { 3 } else { 4 };
    }
    Ok(steps)
}

fn run(ctx: &mut Context<'_>, key: &[u8], steps: &[Step]) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let mut value = data.string_owned(key)?.unwrap_or_default();
    let writes = steps.iter().filter(|step| step.action != Action::Get);
    let end = writes.map(|step| (step.place + u64::from(step.kind.bits)).div_ceil(8)).max();
    let end = end.unwrap_or(0) as usize;
    let grows = value.len() < end;
    if grows {
        value.resize(end, 0);
    }
    let mut changed = false;
    reply.array(steps.len());
    for step in steps {
        let old = read(&value, step);
        let wanted = match step.action {
            Action::Get => {
                reply.int(old as i64);
                continue;
            }
            // An unsigned field reads a negative number as one that is far too large.
            Action::Set(new) if step.kind.signed => i128::from(new),
            Action::Set(new) => i128::from(new as u64),
            Action::Add(delta) => old + i128::from(delta),
        };
        let Some(new) = step.overflow.fit(step.kind, wanted) else {
            reply.null();
            continue;
        };
        let shown = if matches!(step.action, Action::Set(_)) { old } else { new };
        reply.int(shown as i64);
        write(&mut value, step, new);
        changed |= grows || old != new;
    }
    if changed || grows {
        data.write_string(key, &value)?;
    }
    if changed {
        ctx.wrote(key, notify::STRING, "setbit");
    }
    Ok(())
}

fn read(value: &[u8], step: &Step) -> i128 {
    let bits = (0..u64::from(step.kind.bits)).map(|at| bit_of(value, step.place + at));
    let raw = bits.fold(0_i128, |sum, bit| sum << 1 | i128::from(bit));
    step.kind.wrap(raw)
}

fn write(value: &mut [u8], step: &Step, new: i128) {
    for at in 0..step.kind.bits {
        let place = step.place + u64::from(at);
        let mask = 0x80_u8 >> (place & 7);
        let byte = &mut value[(place >> 3) as usize];
        let on = new >> (step.kind.bits - 1 - at) & 1 == 1;
        *byte = if on { *byte | mask } else { *byte & !mask };
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Kind, Overflow, Step, read, write};
    use kumiko_base::draw;

    #[test]
    fn types() {
        assert_eq!(Kind::parse(b"i64"), Ok(Kind { signed: true, bits: 64 }));
        assert_eq!(Kind::parse(b"u63"), Ok(Kind { signed: false, bits: 63 }));
        for bad in ["u64", "i65", "i0", "u0", "x8", "i", "", "i-1", "I8"] {
            assert!(Kind::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn overflow() {
        let (i8, u8) = (Kind { signed: true, bits: 8 }, Kind { signed: false, bits: 8 });
        // type, value, wrapped, saturated
        let rows = [
            (i8, 128, -128, 127),
            (i8, -129, 127, -128),
            (u8, 256, 0, 255),
            (u8, -1, 255, 0),
            (u8, 300, 44, 255),
            (i8, 5, 5, 5),
        ];
        for (kind, value, wrapped, saturated) in rows {
            assert_eq!(Overflow::Wrap.fit(kind, value), Some(wrapped));
            assert_eq!(Overflow::Saturate.fit(kind, value), Some(saturated));
            let fits = value == wrapped;
            assert_eq!(Overflow::Fail.fit(kind, value), fits.then_some(value));
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        draw::check("bitfield_round_trip", 2_000, |draw| {
            let signed = draw.one_in(2);
            let bits = 1 + draw.below(if signed { 64 } else { 63 }) as u32;
            let kind = Kind { signed, bits };
            let place = draw.below(40);
            let step = Step { kind, place, action: Action::Get, overflow: Overflow::Wrap };
            let new = kind.wrap(i128::from(draw.bits()));
            let before: Vec<u8> = (0..14).map(|_| draw.bits() as u8).collect();
            let mut value = before.clone();
            write(&mut value, &step, new);
            assert_eq!(read(&value, &step), new);
            let old = read(&before, &step);
            write(&mut value, &step, old);
            assert_eq!(value, before, "the bits around it stay");
        });
    }
}
