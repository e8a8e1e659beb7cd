//! Strings: whole values, parts of them, and numbers in them.
//!
//! A string is a register: the last writer wins, and a command that changes a part writes the whole
//! result. INCR and its relatives are counters, which add up across replicas.

mod count;
mod lcs;
mod set;

use super::data::{self, Data, Type};
use crate::command::{DENYOOM, FAST, READONLY, WRITE, acl};
use crate::fail::{self, Fail};
use crate::{Args, Command, Context, Meaning, Outcome, notify};

const READ_FAST: u32 = READONLY | FAST;
const GROW_FAST: u32 = WRITE | DENYOOM | FAST;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("get", 2, get, READ_FAST, Meaning::Read).summary("Get the value of a key"),
    row("set", -3, set::set, WRITE | DENYOOM, Meaning::Register).summary("Set the value of a key"),
    row("setnx", 3, set::setnx, GROW_FAST, Meaning::LocalDecision)
        .summary("Set the value of a key, if it does not exist"),
    row("setex", 4, set::setex, WRITE | DENYOOM, Meaning::Register)
        .summary("Set the value of a key, and its time to live in seconds"),
    row("psetex", 4, set::psetex, WRITE | DENYOOM, Meaning::Register)
        .summary("Set the value of a key, and its time to live in milliseconds"),
    row("getset", 3, set::getset, GROW_FAST, Meaning::Register)
        .summary("Set the value of a key and return the old one"),
    row("getdel", 2, set::getdel, WRITE | FAST, Meaning::ObservedRemove)
        .summary("Get the value of a key and delete the key"),
    row("getex", -2, set::getex, WRITE | FAST, Meaning::Expiry)
        .summary("Get the value of a key and change its expiry"),
    row("mget", -2, mget, READ_FAST, Meaning::Read).keys(1, -1, 1).summary("Get many values"),
    row("mset", -3, set::mset, WRITE | DENYOOM, Meaning::Register)
        .keys(1, -1, 2)
        .summary("Set many values"),
    row("msetnx", -3, set::msetnx, WRITE | DENYOOM, Meaning::LocalDecision)
        .keys(1, -1, 2)
        .summary("Set many values, if none of the keys exists"),
    row("append", 3, append, GROW_FAST, Meaning::ReadThenWrite)
        .summary("Append to the value of a key"),
    row("strlen", 2, strlen, READ_FAST, Meaning::Read).summary("The length of a value"),
    row("setrange", 4, setrange, WRITE | DENYOOM, Meaning::ReadThenWrite)
        .summary("Overwrite a part of a value"),
    row("getrange", 4, getrange, READONLY, Meaning::Read).summary("Get a part of a value"),
    row("substr", 4, getrange, READONLY, Meaning::Read).summary("The old name of GETRANGE"),
    row("incr", 2, count::incr, GROW_FAST, Meaning::Counter).summary("Add one to a number"),
    row("decr", 2, count::decr, GROW_FAST, Meaning::Counter).summary("Take one from a number"),
    row("incrby", 3, count::incrby, GROW_FAST, Meaning::Counter).summary("Add to a number"),
    row("decrby", 3, count::decrby, GROW_FAST, Meaning::Counter).summary("Take from a number"),
    row("incrbyfloat", 3, count::incrbyfloat, GROW_FAST, Meaning::ReadThenWrite)
        .summary("Add to a floating point number"),
    row("lcs", -3, lcs::lcs, READONLY, Meaning::Read)
        .keys(1, 2, 1)
        .summary("The longest common subsequence of two values"),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    meaning: Meaning,
) -> Command {
    Command::new(name, arity, run).flags(flags).acl(acl::STRING).keys(1, 1, 1).meaning(meaning)
}

fn get(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    data.string(args.get(1), |value| reply.bulk_or_null(value))
}

fn mget(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.array(args.len() - 1);
    for key in args.from(1) {
        // A value of another type is as good as none here.
        if data.string(key, |value| reply.bulk_or_null(value)).is_err() {
            reply.null();
        }
    }
    Ok(())
}

fn strlen(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    data.string(args.get(1), |value| reply.count(value.map_or(0, <[u8]>::len)))
}

fn append(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let size_max = data::bulk_bytes_max(ctx);
    let (mut data, _) = data::open(ctx);
    let key = args.get(1);
    if size_max < data.string_len(key)? + args.get(2).len() {
        return Err(fail::STRING_TOO_LONG);
    }
    let size = data.append(key, args.get(2))?;
    ctx.reply.count(size);
    ctx.wrote(key, notify::STRING, "append");
    Ok(())
}

fn setrange(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let size_max = data::bulk_bytes_max(ctx);
    let (mut data, reply) = data::open(ctx);
    let (key, patch) = (args.get(1), args.get(3));
    let offset = usize::try_from(args.int(2)?).map_err(|_| fail::OFFSET_OUT_OF_RANGE)?;
    if patch.is_empty() {
        reply.count(data.string_len(key)?);
        return Ok(());
    }
    data.check(key, Type::String)?;
    if offset.checked_add(patch.len()).is_none_or(|end| size_max < end) {
        return Err(fail::STRING_TOO_LONG);
    }
    reply.count(data.set_range(key, offset, patch)?);
    ctx.wrote(key, notify::STRING, "setrange");
    Ok(())
}

fn getrange(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (start, end) = (args.int(2)?, args.int(3)?);
    let (mut data, reply) = data::open(ctx);
    data.string(args.get(1), |value| {
        let value = value.unwrap_or_default();
        reply.bulk(&value[byte_range(start, end, value.len())]);
    })
}

/// Both ends are inside and may count from the end; what lies outside is cut off.
fn byte_range(start: i64, end: i64, size: usize) -> std::ops::Range<usize> {
    if start < 0 && end < 0 && end < start {
        return 0..0;
    }
    let size = size as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(size).max(0) } else { at };
    let (start, end) = (place(start), place(end).min(size - 1));
    if size == 0 || end < start {
        return 0..0;
    }
    start as usize..end as usize + 1
}

/// Answers the value of a string key in full, or null. Shared by the commands that also change it.
fn reply_value(data: &mut Data<'_>, reply: &mut crate::Writer, key: &[u8]) -> Result<bool, Fail> {
    let mut found = false;
    data.string(key, |value| {
        found = value.is_some();
        reply.bulk_or_null(value);
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::byte_range;

    #[test]
    fn byte_ranges() {
        // start, end, size, what is left
        let rows = [
            (0, 3, 11, 0..4),
            (0, -1, 11, 0..11),
            (-4, -1, 11, 7..11),
            (5, 3, 11, 0..0),
            (5, 5000, 11, 5..11),
            (-5000, 10000, 11, 0..11),
            (0, -100, 3, 0..1),
            (-1, -100, 3, 0..0),
            (0, -1, 0, 0..0),
            (i64::MIN, i64::MAX, 3, 0..3),
        ];
        for (start, end, size, expected) in rows {
            assert_eq!(byte_range(start, end, size), expected, "{start} {end} of {size}");
        }
    }
}
