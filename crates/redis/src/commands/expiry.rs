//! Times to live: reading them, setting them, showing them.

use super::data;
use crate::command::{FAST, READONLY, WRITE, acl};
use crate::fail::{self, Fail};
use crate::{Args, Command, Context, Meaning, Outcome, notify};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("expire", -3, expire, WRITE).summary("Set a key's time to live in seconds"),
    row("pexpire", -3, pexpire, WRITE).summary("Set a key's time to live in milliseconds"),
    row("expireat", -3, expireat, WRITE).summary("Set when a key expires, in seconds since 1970"),
    row("pexpireat", -3, pexpireat, WRITE)
        .summary("Set when a key expires, in milliseconds since 1970"),
    row("persist", 2, persist, WRITE).summary("Make a key stay"),
    row("ttl", 2, ttl, READONLY).summary("A key's time to live in seconds"),
    row("pttl", 2, pttl, READONLY).summary("A key's time to live in milliseconds"),
    row("expiretime", 2, expiretime, READONLY).summary("When a key expires, in seconds since 1970"),
    row("pexpiretime", 2, pexpiretime, READONLY)
        .summary("When a key expires, in milliseconds since 1970"),
];

const fn row(name: &'static str, arity: i32, run: crate::command::Run, flags: u32) -> Command {
    let meaning = if flags == WRITE { Meaning::Expiry } else { Meaning::Read };
    Command::new(name, arity, run)
        .flags(flags | FAST)
        .acl(acl::KEYSPACE)
        .keys(1, 1, 1)
        .meaning(meaning)
}

const NX_WITH_OTHERS: Fail =
    Fail::new("ERR NX and XX, GT or LT options at the same time are not compatible");
const GT_WITH_LT: Fail = Fail::new("ERR GT and LT options at the same time are not compatible");

/// How a time to live is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// From now.
    Seconds,
    /// From now.
    Milliseconds,
    /// Since 1970.
    SecondsAt,
    /// Since 1970.
    MillisecondsAt,
}

impl Unit {
    /// The absolute time in milliseconds, unless it leaves 64 bits.
    fn absolute(self, value: i64, now_ms: u64) -> Option<i64> {
        let in_ms = match self {
            Unit::Seconds | Unit::SecondsAt => value.checked_mul(1000)?,
            Unit::Milliseconds | Unit::MillisecondsAt => value,
        };
        match self {
            Unit::Seconds | Unit::Milliseconds => in_ms.checked_add(now_ms as i64),
            Unit::SecondsAt | Unit::MillisecondsAt => Some(in_ms),
        }
    }
}

/// The deadline of SET, GETEX and SETEX: it must be positive as it was given.
pub(crate) fn deadline(value: i64, unit: Unit, now_ms: u64, name: &str) -> Result<i64, Fail> {
    if value <= 0 {
        return Err(fail::invalid_expire(name));
    }
    unit.absolute(value, now_ms).ok_or_else(|| fail::invalid_expire(name))
}

fn expire(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    set(ctx, args, Unit::Seconds)
}

fn pexpire(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    set(ctx, args, Unit::Milliseconds)
}

fn expireat(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    set(ctx, args, Unit::SecondsAt)
}

fn pexpireat(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    set(ctx, args, Unit::MillisecondsAt)
}

#[derive(Default)]
struct Conditions {
    if_none: bool,
    if_some: bool,
    if_greater: bool,
    if_less: bool,
}

fn conditions(args: &Args<'_>) -> Result<Conditions, Fail> {
    let mut found = Conditions::default();
    for word in args.from(3) {
        match word.to_ascii_uppercase().as_slice() {
            b"NX" => found.if_none = true,
            b"XX" => found.if_some = true,
            b"GT" => found.if_greater = true,
            b"LT" => found.if_less = true,
            _ => {
                let word = String::from_utf8_lossy(word);
                return Err(Fail::text(format!("ERR Unsupported option {word}")));
            }
        }
    }
    if found.if_none && (found.if_some || found.if_greater || found.if_less) {
        return Err(NX_WITH_OTHERS);
    }
    if found.if_greater && found.if_less {
        return Err(GT_WITH_LT);
    }
    Ok(found)
}

impl Conditions {
    fn allow(&self, current: Option<i64>, wanted: i64) -> bool {
        // No expiry counts as one that is infinitely far away.
        let later = current.is_some_and(|current| current < wanted);
        let sooner = current.is_none_or(|current| wanted < current);
        !(self.if_none && current.is_some()
            || self.if_some && current.is_none()
            || self.if_greater && !later
            || self.if_less && !sooner)
    }
}

fn set(ctx: &mut Context<'_>, args: &Args<'_>, unit: Unit) -> Outcome {
    let key = args.get(1);
    let conditions = conditions(args)?;
    let value = args.int(2)?;
    let invalid = || fail::invalid_expire(ctx.command.name);
    let at_ms = unit.absolute(value, ctx.now_ms).ok_or_else(invalid)?;
    let now_ms = ctx.now_ms as i64;
    let (mut data, reply) = data::open(ctx);
    if !data.exists(key) || !conditions.allow(data.expiry(key), at_ms) {
        reply.int(0);
        return Ok(());
    }
    reply.int(1);
    if at_ms <= now_ms {
        data.del(key);
        ctx.wrote(key, notify::GENERIC, "del");
    } else {
        data.expire_at(key, Some(at_ms));
        ctx.wrote(key, notify::GENERIC, "expire");
    }
    Ok(())
}

fn persist(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    if !data.exists(key) || data.expiry(key).is_none() {
        reply.int(0);
        return Ok(());
    }
    data.expire_at(key, None);
    reply.int(1);
    ctx.wrote(key, notify::GENERIC, "persist");
    Ok(())
}

fn ttl(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, |at_ms, now_ms| ((at_ms - now_ms).max(0) + 500) / 1000)
}

fn pttl(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, |at_ms, now_ms| (at_ms - now_ms).max(0))
}

fn expiretime(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, |at_ms, _| (at_ms + 500) / 1000)
}

fn pexpiretime(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, |at_ms, _| at_ms)
}

fn show(ctx: &mut Context<'_>, args: &Args<'_>, form: fn(i64, i64) -> i64) -> Outcome {
    let now_ms = ctx.now_ms as i64;
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    match data.expiry(key) {
        _ if !data.exists(key) => reply.int(-2),
        None => reply.int(-1),
        Some(at_ms) => reply.int(form(at_ms, now_ms)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Conditions, Unit, deadline};

    #[test]
    fn deadlines_stay_in_range() {
        let now = 1_000_000;
        assert_eq!(deadline(10, Unit::Seconds, now, "set"), Ok(1_010_000));
        assert_eq!(deadline(10, Unit::MillisecondsAt, now, "set"), Ok(10));
        for (value, unit) in [
            (0, Unit::Seconds),
            (-1, Unit::MillisecondsAt),
            (i64::MAX, Unit::Seconds),
            (i64::MAX / 1000, Unit::Seconds),
            (i64::MAX, Unit::Milliseconds),
        ] {
            assert!(deadline(value, unit, now, "set").is_err(), "{value} {unit:?}");
        }
        assert_eq!(deadline(i64::MAX, Unit::MillisecondsAt, now, "set"), Ok(i64::MAX));
    }

    #[test]
    fn conditions_compare_with_infinity() {
        let none = Conditions::default();
        assert!(none.allow(None, 5) && none.allow(Some(9), 5));
        let greater = Conditions { if_greater: true, ..Conditions::default() };
        assert!(!greater.allow(None, 5) && greater.allow(Some(4), 5) && !greater.allow(Some(5), 5));
        let less = Conditions { if_less: true, ..Conditions::default() };
        assert!(less.allow(None, 5) && less.allow(Some(6), 5) && !less.allow(Some(5), 5));
    }
}
