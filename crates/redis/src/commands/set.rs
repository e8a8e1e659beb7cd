//! Sets: members under one key, in no order.
//!
//! Members are united across replicas; a removal takes away what it has seen. A set without members
//! does not exist.

mod combine;

use super::data::{self, Type};
use super::pick::{self, Picks};
use crate::command::{DENYOOM, FAST, READONLY, WRITE, acl};
use crate::fail;
use crate::{Args, Command, Context, Keys, Meaning, Outcome, notify};

const READ_FAST: u32 = READONLY | FAST;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("sadd", -3, sadd, WRITE | DENYOOM | FAST, Meaning::Members).summary("Add members to a set"),
    row("srem", -3, srem, WRITE | FAST, Meaning::ObservedRemove)
        .summary("Remove members from a set"),
    row("smove", 4, smove, WRITE | FAST, Meaning::ReadThenWrite)
        .keys(1, 2, 1)
        .summary("Move a member from one set to another"),
    row("sismember", 3, sismember, READ_FAST, Meaning::Read).summary("Tell whether it is a member"),
    row("smismember", -3, smismember, READ_FAST, Meaning::Read)
        .summary("Tell which of them are members"),
    row("scard", 2, scard, READ_FAST, Meaning::Read).summary("Count the members of a set"),
    row("smembers", 2, smembers, READONLY, Meaning::Read).summary("Get all members of a set"),
    row("spop", -2, spop, WRITE | FAST, Meaning::AtLeastOnce)
        .summary("Take random members out of a set"),
    row("srandmember", -2, srandmember, READONLY, Meaning::Read)
        .summary("Pick random members of a set"),
    row("sinter", -2, combine::sinter, READONLY, Meaning::Read)
        .keys(1, -1, 1)
        .summary("What all sets share"),
    row("sunion", -2, combine::sunion, READONLY, Meaning::Read)
        .keys(1, -1, 1)
        .summary("What any of the sets has"),
    row("sdiff", -2, combine::sdiff, READONLY, Meaning::Read)
        .keys(1, -1, 1)
        .summary("What only the first set has"),
    row("sintercard", -3, combine::sintercard, READONLY, Meaning::Read)
        .keys_by(Keys::Counted { at: 1 })
        .summary("How much all sets share"),
    row("sinterstore", -3, combine::sinterstore, WRITE | DENYOOM, Meaning::ReadThenWrite)
        .keys(1, -1, 1)
        .summary("Store what all sets share"),
    row("sunionstore", -3, combine::sunionstore, WRITE | DENYOOM, Meaning::ReadThenWrite)
        .keys(1, -1, 1)
        .summary("Store what any of the sets has"),
    row("sdiffstore", -3, combine::sdiffstore, WRITE | DENYOOM, Meaning::ReadThenWrite)
        .keys(1, -1, 1)
        .summary("Store what only the first set has"),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    meaning: Meaning,
) -> Command {
    Command::new(name, arity, run).flags(flags).acl(acl::SET).keys(1, 1, 1).meaning(meaning)
}

fn sadd(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    let mut added = 0;
    for member in args.from(2) {
        added += usize::from(data.set_add(key, member)?);
    }
    reply.count(added);
    if 0 < added {
        ctx.wrote(key, notify::SET, "sadd");
    }
    Ok(())
}

fn srem(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    let mut gone = 0;
    for member in args.from(2) {
        gone += usize::from(data.set_del(key, member)?);
    }
    reply.count(gone);
    if 0 < gone {
        let emptied = !data.exists(key);
        ctx.wrote(key, notify::SET, "srem");
        if emptied {
            ctx.notify(notify::GENERIC, "del", key);
        }
    }
    Ok(())
}

fn smove(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (source, target, member) = (args.get(1), args.get(2), args.get(3));
    let (mut data, reply) = data::open(ctx);
    if !data.exists(source) {
        reply.int(0);
        return Ok(());
    }
    data.check(source, Type::Set)?;
    data.check(target, Type::Set)?;
    if source == target {
        reply.int(i64::from(data.set_has(source, member)?));
        return Ok(());
    }
    if !data.set_del(source, member)? {
        reply.int(0);
        return Ok(());
    }
    let emptied = !data.exists(source);
    let added = data.set_add(target, member)?;
    reply.int(1);
    ctx.wrote(source, notify::SET, "srem");
    if emptied {
        ctx.notify(notify::GENERIC, "del", source);
    }
    if added {
        ctx.wrote(target, notify::SET, "sadd");
    }
    Ok(())
}

fn sismember(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.int(i64::from(data.set_has(args.get(1), args.get(2))?));
    Ok(())
}

fn smismember(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    data.check(args.get(1), Type::Set)?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        reply.int(i64::from(data.set_has(args.get(1), member)?));
    }
    Ok(())
}

fn scard(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.count(data.set_len(args.get(1))?);
    Ok(())
}

fn smembers(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.set(data.set_len(args.get(1))?);
    data.set_each(args.get(1), |member| reply.bulk(member))
}

fn spop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    if 3 < args.len() {
        return Err(fail::SYNTAX);
    }
    if args.len() == 2 {
        let (mut data, reply) = data::open(ctx);
        let Some(member) = data.set_random(key)? else {
            reply.null();
            return Ok(());
        };
        data.set_del(key, &member)?;
        reply.bulk(&member);
    } else {
        let count = pick::count(args, 2)?;
        let (mut data, reply) = data::open(ctx);
        let members = data.set_members(key)?;
        let indexes = Picks::Distinct(count).indexes(members.len(), data.random());
        reply.set(indexes.len());
        if indexes.is_empty() {
            return Ok(());
        }
        if indexes.len() == members.len() {
            data.del(key);
        }
        for at in indexes {
            reply.bulk(&members[at]);
            data.set_del(key, &members[at])?;
        }
    }
    let (mut data, _) = data::open(ctx);
    let emptied = !data.exists(key);
    ctx.wrote(key, notify::SET, "spop");
    if emptied {
        ctx.notify(notify::GENERIC, "del", key);
    }
    Ok(())
}

fn srandmember(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    match args.len() {
        2 => {
            let (mut data, reply) = data::open(ctx);
            let member = data.set_random(key)?;
            reply.bulk_or_null(member.as_deref());
        }
        3 => {
            let picks = Picks::parse(args, 2, false)?;
            let (mut data, reply) = data::open(ctx);
            let members = data.set_members(key)?;
            let indexes = picks.indexes(members.len(), data.random());
            reply.array(indexes.len());
            for at in indexes {
                reply.bulk(&members[at]);
            }
        }
        _ => return Err(fail::SYNTAX),
    }
    Ok(())
}
