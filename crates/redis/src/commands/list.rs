//! Lists: elements in order, pushed and popped at both ends.
//!
//! Elements have an identity of their own across replicas: concurrent pushes all stay, and a pop
//! takes away the element it saw. A list without elements does not exist.

mod edit;
mod pop;

use super::data::{self, Type};
pub(super) use pop::{End, Popped, many_options, move_element, pop_many, write_popped};

use crate::command::{DENYOOM, FAST, READONLY, WRITE, acl};
use crate::ranges::ranks;
use crate::{Args, Command, Context, Keys, Meaning, Outcome, notify};

const GROW_FAST: u32 = WRITE | DENYOOM | FAST;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("lpush", -3, lpush, GROW_FAST, Meaning::List).summary("Add elements at the head"),
    row("rpush", -3, rpush, GROW_FAST, Meaning::List).summary("Add elements at the tail"),
    row("lpushx", -3, lpushx, GROW_FAST, Meaning::List)
        .summary("Add elements at the head, if the list exists"),
    row("rpushx", -3, rpushx, GROW_FAST, Meaning::List)
        .summary("Add elements at the tail, if the list exists"),
    row("lpop", -2, pop::lpop, WRITE | FAST, Meaning::AtLeastOnce)
        .summary("Take elements from the head"),
    row("rpop", -2, pop::rpop, WRITE | FAST, Meaning::AtLeastOnce)
        .summary("Take elements from the tail"),
    row("lmpop", -4, pop::lmpop, WRITE, Meaning::AtLeastOnce)
        .keys_by(Keys::Counted { at: 1 })
        .summary("Take elements from the first list that has some"),
    row("lmove", 5, pop::lmove, WRITE | DENYOOM, Meaning::AtLeastOnce)
        .keys(1, 2, 1)
        .summary("Move an element from one list to another"),
    row("rpoplpush", 3, pop::rpoplpush, WRITE | DENYOOM, Meaning::AtLeastOnce)
        .keys(1, 2, 1)
        .summary("Move the last element of a list to the head of another"),
    row("llen", 2, llen, READONLY | FAST, Meaning::Read).summary("Count the elements"),
    row("lindex", 3, lindex, READONLY, Meaning::Read).summary("Get an element by its index"),
    row("lrange", 4, lrange, READONLY, Meaning::Read).summary("Get a range of elements"),
    row("lpos", -3, edit::lpos, READONLY, Meaning::Read).summary("Find elements by their value"),
    row("lset", 4, edit::lset, WRITE | DENYOOM, Meaning::List).summary("Replace an element"),
    row("linsert", 5, edit::linsert, WRITE | DENYOOM, Meaning::List)
        .summary("Add an element before or behind another"),
    row("lrem", 4, edit::lrem, WRITE, Meaning::ObservedRemove)
        .summary("Remove elements by their value"),
    row("ltrim", 4, edit::ltrim, WRITE, Meaning::ObservedRemove)
        .summary("Remove all but a range of elements"),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    meaning: Meaning,
) -> Command {
    Command::new(name, arity, run).flags(flags).acl(acl::LIST).keys(1, 1, 1).meaning(meaning)
}

fn lpush(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    push(ctx, args, End::Left, false)
}

fn rpush(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    push(ctx, args, End::Right, false)
}

fn lpushx(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    push(ctx, args, End::Left, true)
}

fn rpushx(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    push(ctx, args, End::Right, true)
}

fn push(ctx: &mut Context<'_>, args: &Args<'_>, end: End, only_if_there: bool) -> Outcome {
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    if only_if_there && !data.check(key, Type::List)? {
        reply.int(0);
        return Ok(());
    }
    let mut length = 0;
    for element in args.from(2) {
        length = data.list_push(key, end, element)?;
    }
    reply.count(length);
    ctx.wrote(key, notify::LIST, end.push_event());
    Ok(())
}

fn llen(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.count(data.list_len(args.get(1))?);
    Ok(())
}

fn lindex(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    let length = data.list_len(key)?;
    if length == 0 {
        reply.null();
        return Ok(());
    }
    let element = match place(args.int(2)?, length) {
        Some(at) => data.list_get(key, at)?,
        None => None,
    };
    reply.bulk_or_null(element.as_deref());
    Ok(())
}

/// The place of an index that may count from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    let at = if index < 0 { index.checked_add(length as i64)? } else { index };
    usize::try_from(at).ok().filter(|at| *at < length)
}

fn lrange(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (start, stop) = (args.int(2)?, args.int(3)?);
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    let range = ranks(start, stop, data.list_len(key)?);
    reply.array(range.len());
    data.list_each(key, range, |element| reply.bulk(element))
}
