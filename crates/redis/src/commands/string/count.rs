//! Numbers in strings: INCR and its relatives.

use crate::commands::data;
use crate::extended::Extended;
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome, notify};

const DECREMENT_OVERFLOW: Fail = Fail::new("ERR decrement would overflow");

pub(super) fn incr(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    add(ctx, args.get(1), 1)
}

pub(super) fn decr(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    add(ctx, args.get(1), -1)
}

pub(super) fn incrby(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    add(ctx, args.get(1), args.int(2)?)
}

pub(super) fn decrby(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let delta = args.int(2)?.checked_neg().ok_or(DECREMENT_OVERFLOW)?;
    add(ctx, args.get(1), delta)
}

fn add(ctx: &mut Context<'_>, key: &[u8], delta: i64) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let value = data.add(key, delta)?;
    reply.int(value);
    ctx.wrote(key, notify::STRING, "incrby");
    Ok(())
}

pub(super) fn incrbyfloat(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    let value = match data.string_owned(key)? {
        Some(text) => Extended::parse(&text).ok_or(fail::NOT_FLOAT)?,
        None => Extended::from_f64(0.0),
    };
    let delta = Extended::parse(args.get(2)).ok_or(fail::NOT_FLOAT)?;
    let text = value.add(delta).ok_or(fail::NAN_OR_INFINITY)?.print();
    data.write_string(key, text.as_bytes())?;
    reply.bulk(text.as_bytes());
    ctx.wrote(key, notify::STRING, "incrbyfloat");
    Ok(())
}
