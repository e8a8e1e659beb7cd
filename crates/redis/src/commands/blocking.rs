//! Commands that wait: pops and moves that block until there is something.
//!
//! Such a command first tries like its relative that does not wait. If there is nothing, the client
//! waits for its keys, and the command runs again from the start when one of them was changed. So
//! what a merge from a peer brings wakes clients just as a local push does.

use super::data::{self, Type};
use super::list::{self, End, Popped, many_options, move_element, pop_many, write_popped};
use super::zset::{self, Side};
use crate::client::{TimedOut, Wanted};
use crate::command::{BLOCKING, DENYOOM, FAST, NOSCRIPT, WRITE, acl};
use crate::fail::Fail;
use crate::{Args, Command, Context, Keys, Meaning, Outcome};

const LISTS: u32 = acl::LIST;
const SORTED: u32 = acl::SORTEDSET;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("blpop", -3, blpop, NOSCRIPT, LISTS)
        .keys(1, -2, 1)
        .summary("Take the first element, or wait for one"),
    row("brpop", -3, brpop, NOSCRIPT, LISTS)
        .keys(1, -2, 1)
        .summary("Take the last element, or wait for one"),
    row("blmpop", -5, blmpop, 0, LISTS)
        .keys_by(Keys::Counted { at: 2 })
        .summary("Take elements from the first list that has some, or wait"),
    row("blmove", 6, blmove, DENYOOM | NOSCRIPT, LISTS)
        .keys(1, 2, 1)
        .summary("Move an element from one list to another, or wait for one"),
    row("brpoplpush", 4, brpoplpush, DENYOOM | NOSCRIPT, LISTS)
        .keys(1, 2, 1)
        .summary("Move the last element of a list to the head of another, or wait for one"),
    row("bzpopmin", -3, bzpopmin, NOSCRIPT | FAST, SORTED)
        .keys(1, -2, 1)
        .summary("Take the member with the lowest score, or wait for one"),
    row("bzpopmax", -3, bzpopmax, NOSCRIPT | FAST, SORTED)
        .keys(1, -2, 1)
        .summary("Take the member with the highest score, or wait for one"),
    row("bzmpop", -5, bzmpop, 0, SORTED)
        .keys_by(Keys::Counted { at: 2 })
        .summary("Take members from the first sorted set that has some, or wait"),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    category: u32,
) -> Command {
    Command::new(name, arity, run)
        .flags(flags | WRITE | BLOCKING)
        .acl(category)
        .meaning(Meaning::AtLeastOnce)
}

/// The first of `keys` that holds something of the wanted type. A key of another type is refused
/// at first, but does not disturb a client that waits already.
fn first_ready<'k>(
    ctx: &mut Context<'_>,
    keys: &Args<'k>,
    kind: Type,
) -> Result<Option<&'k [u8]>, Fail> {
    let waits = ctx.woken_by().is_some();
    let to_try = ctx.keys_to_try(keys.from(0));
    let (mut data, _) = data::open(ctx);
    for key in to_try {
        match data.check(key, kind) {
            Ok(true) => return Ok(Some(key)),
            Ok(false) => {}
            Err(_) if waits => {}
            Err(fail) => return Err(fail),
        }
    }
    Ok(None)
}

fn blpop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    pop_one(ctx, args, End::Left)
}

fn brpop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    pop_one(ctx, args, End::Right)
}

fn pop_one(ctx: &mut Context<'_>, args: &Args<'_>, end: End) -> Outcome {
    let timeout_ms = ctx.timeout_ms(args, args.len() - 1)?;
    let keys = args.slice(1..args.len() - 1);
    let Some(key) = first_ready(ctx, &keys, Type::List)? else {
        ctx.block(args, keys.from(0), Wanted::List, timeout_ms, TimedOut::NullArray);
        return Ok(());
    };
    let elements = pop_many(ctx, key, end, 1)?;
    ctx.reply.array(2);
    ctx.reply.bulk(key);
    ctx.reply.bulk_or_null(elements.first().map(Vec::as_slice));
    Ok(())
}

fn blmpop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (keys, end, count) = many_options(args, 2, End::parse)?;
    let timeout_ms = ctx.timeout_ms(args, 1)?;
    let Some(key) = first_ready(ctx, &keys, Type::List)? else {
        ctx.block(args, keys.from(0), Wanted::List, timeout_ms, TimedOut::NullArray);
        return Ok(());
    };
    let elements = pop_many(ctx, key, end, count)?;
    write_popped(&mut ctx.reply, Some(&Popped { key, elements }));
    Ok(())
}

fn blmove(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (from, to) = (End::parse(args.get(3))?, End::parse(args.get(4))?);
    move_or_wait(ctx, args, from, to, 5)
}

fn brpoplpush(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    move_or_wait(ctx, args, End::Right, End::Left, 3)
}

fn move_or_wait(
    ctx: &mut Context<'_>,
    args: &Args<'_>,
    from: End,
    to: End,
    timeout_at: usize,
) -> Outcome {
    let timeout_ms = ctx.timeout_ms(args, timeout_at)?;
    let keys = args.slice(1..2);
    if first_ready(ctx, &keys, Type::List)?.is_none() {
        if ctx.may_block() {
            // Redis answers the null of an array here, but that of a string inside MULTI.
            ctx.block(args, keys.from(0), Wanted::List, timeout_ms, TimedOut::NullArray);
        } else {
            ctx.reply.null();
        }
        return Ok(());
    }
    let element = move_element(ctx, (args.get(1), from), (args.get(2), to))?;
    ctx.reply.bulk_or_null(element.as_deref());
    Ok(())
}

fn bzpopmin(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    pop_member(ctx, args, Side::Min)
}

fn bzpopmax(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    pop_member(ctx, args, Side::Max)
}

fn pop_member(ctx: &mut Context<'_>, args: &Args<'_>, side: Side) -> Outcome {
    let timeout_ms = ctx.timeout_ms(args, args.len() - 1)?;
    let keys = args.slice(1..args.len() - 1);
    let Some(key) = first_ready(ctx, &keys, Type::Zset)? else {
        ctx.block(args, keys.from(0), Wanted::SortedSet, timeout_ms, TimedOut::NullArray);
        return Ok(());
    };
    let members = zset::pop_members(ctx, key, side, 1)?;
    ctx.reply.array(3);
    ctx.reply.bulk(key);
    for (member, score) in members {
        ctx.reply.bulk(&member);
        ctx.reply.double(score);
    }
    Ok(())
}

fn bzmpop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (keys, side, count) = list::many_options(args, 2, Side::parse)?;
    let timeout_ms = ctx.timeout_ms(args, 1)?;
    let Some(key) = first_ready(ctx, &keys, Type::Zset)? else {
        ctx.block(args, keys.from(0), Wanted::SortedSet, timeout_ms, TimedOut::NullArray);
        return Ok(());
    };
    let members = zset::pop_members(ctx, key, side, count)?;
    zset::write_popped(&mut ctx.reply, key, &members);
    Ok(())
}
