//! Commands that write whole strings: SET with its options, and its relatives.

use super::reply_value;
use crate::commands::data::{self, Keep};
use crate::commands::expiry::{self, Unit};
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome, notify};

/// What `SET` and `GETEX` may be told besides the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    if_missing: bool,
    if_present: bool,
    keep_ttl: bool,
    persist: bool,
    get: bool,
    /// The unit, and where the number stands.
    expire: Option<(Unit, usize)>,
}

/// Which of the two commands is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    Set,
    GetEx,
}

fn parse(args: &Args<'_>, first: usize, whom: For) -> Result<Options, Fail> {
    let mut options = Options::default();
    let mut at = first;
    while at < args.len() {
        let set = whom == For::Set;
        let free = !options.keep_ttl && !options.persist && options.expire.is_none();
        let word = args.get(at).to_ascii_uppercase();
        let unit = match word.as_slice() {
            b"EX" => Some(Unit::Seconds),
            b"PX" => Some(Unit::Milliseconds),
            b"EXAT" => Some(Unit::SecondsAt),
            b"PXAT" => Some(Unit::MillisecondsAt),
            _ => None,
        };
        match (word.as_slice(), unit) {
            (b"NX", _) if set && !options.if_present => options.if_missing = true,
            (b"XX", _) if set && !options.if_missing => options.if_present = true,
            (b"GET", _) if set => options.get = true,
            (b"KEEPTTL", _) if set && !options.persist && options.expire.is_none() => {
                options.keep_ttl = true;
            }
            (b"PERSIST", _) if !set && !options.keep_ttl && options.expire.is_none() => {
                options.persist = true;
            }
            (_, Some(unit)) if free && at + 1 < args.len() => {
                options.expire = Some((unit, at + 1));
                at += 1;
            }
            _ => return Err(fail::SYNTAX),
        }
        at += 1;
    }
    Ok(options)
}

pub(super) fn set(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (key, value) = (args.get(1), args.get(2));
    if args.len() == 3 {
        let (mut data, reply) = data::open(ctx);
        data.set_string(key, value, Keep::No)?;
        reply.ok();
        ctx.wrote(key, notify::STRING, "set");
        return Ok(());
    }
    let options = parse(args, 3, For::Set)?;
    let deadline = match options.expire {
        Some((unit, at)) => Some(expiry::deadline(args.int(at)?, unit, ctx.now_ms, "set")?),
        None => None,
    };
    let (mut data, reply) = data::open(ctx);
    if options.get {
        reply_value(&mut data, reply, key)?;
    }
    let found = (options.if_missing || options.if_present) && data.exists(key);
    if (options.if_missing && found) || (options.if_present && !found) {
        if !options.get {
            reply.null();
        }
        return Ok(());
    }
    let keep = match deadline {
        Some(at_ms) => Keep::Until(at_ms),
        None if options.keep_ttl => Keep::Yes,
        None => Keep::No,
    };
    data.set_string(key, value, keep)?;
    if !options.get {
        reply.ok();
    }
    ctx.wrote(key, notify::STRING, "set");
    if deadline.is_some() {
        ctx.notify(notify::GENERIC, "expire", key);
    }
    Ok(())
}

pub(super) fn setnx(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    if data.exists(key) {
        reply.int(0);
        return Ok(());
    }
    data.set_string(key, args.get(2), Keep::No)?;
    reply.int(1);
    ctx.wrote(key, notify::STRING, "set");
    Ok(())
}

pub(super) fn setex(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    set_until(ctx, args, Unit::Seconds, "setex")
}

pub(super) fn psetex(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    set_until(ctx, args, Unit::Milliseconds, "psetex")
}

fn set_until(ctx: &mut Context<'_>, args: &Args<'_>, unit: Unit, name: &str) -> Outcome {
    let key = args.get(1);
    let at_ms = expiry::deadline(args.int(2)?, unit, ctx.now_ms, name)?;
    let (mut data, reply) = data::open(ctx);
    data.set_string(key, args.get(3), Keep::Until(at_ms))?;
    reply.ok();
    ctx.wrote(key, notify::STRING, "set");
    ctx.notify(notify::GENERIC, "expire", key);
    Ok(())
}

pub(super) fn getset(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    reply_value(&mut data, reply, key)?;
    data.set_string(key, args.get(2), Keep::No)?;
    ctx.wrote(key, notify::STRING, "set");
    Ok(())
}

pub(super) fn getdel(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    if reply_value(&mut data, reply, key)? {
        data.del(key);
        ctx.wrote(key, notify::GENERIC, "del");
    }
    Ok(())
}

pub(super) fn getex(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let options = parse(args, 2, For::GetEx)?;
    {
        // The order of refusals is that of Redis: the type, then the time.
        let (mut data, _) = data::open(ctx);
        let mut found = false;
        data.string(key, |value| found = value.is_some())?;
        if !found {
            ctx.reply.null();
            return Ok(());
        }
    }
    let deadline = match options.expire {
        Some((unit, at)) => Some(expiry::deadline(args.int(at)?, unit, ctx.now_ms, "getex")?),
        None => None,
    };
    let (mut data, reply) = data::open(ctx);
    reply_value(&mut data, reply, key)?;
    match deadline {
        Some(at_ms) if at_ms <= data.now_ms() as i64 => {
            data.del(key);
            ctx.wrote(key, notify::GENERIC, "del");
        }
        Some(at_ms) => {
            data.expire_at(key, Some(at_ms));
            ctx.wrote(key, notify::GENERIC, "expire");
        }
        None if options.persist && data.expiry(key).is_some() => {
            data.expire_at(key, None);
            ctx.wrote(key, notify::GENERIC, "persist");
        }
        None => {}
    }
    Ok(())
}

pub(super) fn mset(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    write_pairs(ctx, args, "mset")?;
    ctx.reply.ok();
    Ok(())
}

pub(super) fn msetnx(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if args.len().is_multiple_of(2) {
        return Err(fail::arity("msetnx"));
    }
    let (mut data, reply) = data::open(ctx);
    if args.from(1).step_by(2).any(|key| data.exists(key)) {
        reply.int(0);
        return Ok(());
    }
    write_pairs(ctx, args, "msetnx")?;
    ctx.reply.int(1);
    Ok(())
}

fn write_pairs(ctx: &mut Context<'_>, args: &Args<'_>, name: &str) -> Outcome {
    if args.len().is_multiple_of(2) {
        return Err(fail::arity(name));
    }
    let mut at = 1;
    while at < args.len() {
        let (mut data, _) = data::open(ctx);
        data.set_string(args.get(at), args.get(at + 1), Keep::No)?;
        ctx.wrote(args.get(at), notify::STRING, "set");
        at += 2;
    }
    Ok(())
}
