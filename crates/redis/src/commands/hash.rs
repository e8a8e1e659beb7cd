//! Hashes: fields with values under one key.
//!
//! Fields are united across replicas; of two writes to one field the later wins; HINCRBY adds up. A
//! hash without fields does not exist.

use super::data::{self, Type};
use super::pick::Picks;
use crate::command::{DENYOOM, FAST, READONLY, WRITE, acl};
use crate::extended::Extended;
use crate::fail::{self, Fail};
use crate::{Args, Command, Context, Meaning, Outcome, Version, notify};

const READ_FAST: u32 = READONLY | FAST;
const GROW_FAST: u32 = WRITE | DENYOOM | FAST;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("hset", -4, hset, GROW_FAST, Meaning::Members).summary("Set fields of a hash"),
    row("hmset", -4, hmset, GROW_FAST, Meaning::Members).summary("The old name of HSET"),
    row("hsetnx", 4, hsetnx, GROW_FAST, Meaning::LocalDecision)
        .summary("Set a field of a hash, if it does not exist"),
    row("hget", 3, hget, READ_FAST, Meaning::Read).summary("Get the value of a field"),
    row("hmget", -3, hmget, READ_FAST, Meaning::Read).summary("Get the values of many fields"),
    row("hgetall", 2, hgetall, READONLY, Meaning::Read).summary("Get all fields and values"),
    row("hkeys", 2, hkeys, READONLY, Meaning::Read).summary("Get all fields"),
    row("hvals", 2, hvals, READONLY, Meaning::Read).summary("Get all values"),
    row("hdel", -3, hdel, WRITE | FAST, Meaning::ObservedRemove).summary("Delete fields"),
    row("hexists", 3, hexists, READ_FAST, Meaning::Read).summary("Tell whether a field exists"),
    row("hlen", 2, hlen, READ_FAST, Meaning::Read).summary("Count the fields"),
    row("hstrlen", 3, hstrlen, READ_FAST, Meaning::Read).summary("The length of a field's value"),
    row("hincrby", 4, hincrby, GROW_FAST, Meaning::Counter).summary("Add to the number in a field"),
    row("hincrbyfloat", 4, hincrbyfloat, GROW_FAST, Meaning::ReadThenWrite)
        .summary("Add to the floating point number in a field"),
    row("hrandfield", -2, hrandfield, READONLY, Meaning::Read).summary("Pick fields at random"),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    meaning: Meaning,
) -> Command {
    Command::new(name, arity, run).flags(flags).acl(acl::HASH).keys(1, 1, 1).meaning(meaning)
}

const FIELD_NOT_FLOAT: Fail = Fail::new("ERR hash value is not a float");
const NO_FINITE_NUMBER: Fail = Fail::new("ERR value is NaN or Infinity");

fn set_fields(ctx: &mut Context<'_>, args: &Args<'_>) -> Result<usize, Fail> {
    if !args.len().is_multiple_of(2) {
        return Err(fail::arity(ctx.command.name));
    }
    let key = args.get(1);
    let (mut data, _) = data::open(ctx);
    let mut created = 0;
    for at in (2..args.len()).step_by(2) {
        created += usize::from(data.hash_set(key, args.get(at), args.get(at + 1))?);
    }
    Ok(created)
}

fn hset(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let created = set_fields(ctx, args)?;
    ctx.reply.count(created);
    ctx.wrote(args.get(1), notify::HASH, "hset");
    Ok(())
}

fn hmset(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    set_fields(ctx, args)?;
    ctx.reply.ok();
    ctx.wrote(args.get(1), notify::HASH, "hset");
    Ok(())
}

fn hsetnx(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (key, field) = (args.get(1), args.get(2));
    let (mut data, reply) = data::open(ctx);
    if data.hash_get_owned(key, field)?.is_some() {
        reply.int(0);
        return Ok(());
    }
    data.hash_set(key, field, args.get(3))?;
    reply.int(1);
    ctx.wrote(key, notify::HASH, "hset");
    Ok(())
}

fn hget(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    data.hash_get(args.get(1), args.get(2), |value| reply.bulk_or_null(value))
}

fn hmget(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    data.check(args.get(1), Type::Hash)?;
    reply.array(args.len() - 2);
    for field in args.from(2) {
        data.hash_get(args.get(1), field, |value| reply.bulk_or_null(value))?;
    }
    Ok(())
}

fn hgetall(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.map(data.hash_len(args.get(1))?);
    data.hash_each(args.get(1), |field, value| {
        reply.bulk(field);
        reply.bulk(value);
    })
}

fn hkeys(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.array(data.hash_len(args.get(1))?);
    data.hash_each(args.get(1), |field, _| reply.bulk(field))
}

fn hvals(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.array(data.hash_len(args.get(1))?);
    data.hash_each(args.get(1), |_, value| reply.bulk(value))
}

fn hdel(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    let mut gone = 0;
    for field in args.from(2) {
        gone += usize::from(data.hash_del(key, field)?);
    }
    reply.count(gone);
    if 0 < gone {
        let emptied = !data.exists(key);
        ctx.wrote(key, notify::HASH, "hdel");
        if emptied {
            ctx.notify(notify::GENERIC, "del", key);
        }
    }
    Ok(())
}

fn hexists(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    data.hash_get(args.get(1), args.get(2), |value| reply.int(i64::from(value.is_some())))
}

fn hlen(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.count(data.hash_len(args.get(1))?);
    Ok(())
}

fn hstrlen(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    data.hash_get(args.get(1), args.get(2), |value| reply.count(value.map_or(0, <[u8]>::len)))
}

fn hincrby(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let delta = args.int(3)?;
    let (mut data, reply) = data::open(ctx);
    let value = data.hash_add(key, args.get(2), delta)?;
    reply.int(value);
    ctx.wrote(key, notify::HASH, "hincrby");
    Ok(())
}

fn hincrbyfloat(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (key, field) = (args.get(1), args.get(2));
    let delta = Extended::parse(args.get(3)).ok_or(fail::NOT_FLOAT)?;
    if delta.is_infinite() {
        return Err(NO_FINITE_NUMBER);
    }
    let (mut data, reply) = data::open(ctx);
    let value = match data.hash_get_owned(key, field)? {
        Some(text) => Extended::parse(&text).ok_or(FIELD_NOT_FLOAT)?,
        None => Extended::from_f64(0.0),
    };
    let text = value.add(delta).ok_or(fail::NAN_OR_INFINITY)?.print();
    data.hash_set(key, field, text.as_bytes())?;
    reply.bulk(text.as_bytes());
    ctx.wrote(key, notify::HASH, "hincrbyfloat");
    Ok(())
}

fn hrandfield(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let with_values = args.len() == 4 && args.is(3, "withvalues");
    if args.len() == 2 {
        let (mut data, reply) = data::open(ctx);
        data.check(key, Type::Hash)?;
        let picked = data.hash_random(key)?;
        reply.bulk_or_null(picked.as_deref());
        return Ok(());
    }
    let picks = Picks::parse(args, 2, with_values);
    if 4 < args.len() || (args.len() == 4 && !with_values) {
        // An integer that is none is told first, as in Redis.
        args.int(2)?;
        return Err(fail::SYNTAX);
    }
    let picks = picks?;
    let (mut data, reply) = data::open(ctx);
    let mut pairs = Vec::new();
    data.hash_each(key, |field, value| pairs.push((field.to_vec(), value.to_vec())))?;
    let indexes = picks.indexes(pairs.len(), data.random());
    let nested = with_values && reply.version == Version::Resp3;
    let each = if with_values && !nested { 2 } else { 1 };
    reply.array(indexes.len() * each);
    for at in indexes {
        if nested {
            reply.array(2);
        }
        reply.bulk(&pairs[at].0);
        if with_values {
            reply.bulk(&pairs[at].1);
        }
    }
    Ok(())
}
