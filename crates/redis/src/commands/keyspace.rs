//! Keys as such: deleting, renaming, copying, listing them.

mod dump;
mod object;
mod whole;

use super::data;
use super::pattern;
use crate::command::{DENYOOM, FAST, Keys, READONLY, WRITE, acl};
use crate::fail::{self, Fail};
use crate::server::NUMBERED_DBS;
use crate::{Args, Command, Context, Meaning, Outcome, notify};
use kumiko_wire::resp::number;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("del", -2, del, WRITE, Meaning::ObservedRemove).keys(1, -1, 1).summary("Delete keys"),
    row("unlink", -2, del, WRITE | FAST, Meaning::ObservedRemove)
        .keys(1, -1, 1)
        .summary("Delete keys"),
    row("exists", -2, exists, READONLY | FAST, Meaning::Read)
        .keys(1, -1, 1)
        .summary("Count which of the keys exist"),
    row("touch", -2, touch, READONLY | FAST, Meaning::Local)
        .keys(1, -1, 1)
        .summary("Mark keys as used"),
    row("type", 2, kind, READONLY | FAST, Meaning::Read).summary("The type of a key"),
    row("rename", 3, rename, WRITE, Meaning::ReadThenWrite).keys(1, 2, 1).summary("Rename a key"),
    row("renamenx", 3, renamenx, WRITE | FAST, Meaning::LocalDecision)
        .keys(1, 2, 1)
        .summary("Rename a key, if the new name is free"),
    row("copy", -3, copy, WRITE | DENYOOM, Meaning::ReadThenWrite)
        .keys(1, 2, 1)
        .summary("Copy a key"),
    row("move", 3, move_key, WRITE | FAST, Meaning::ReadThenWrite)
        .summary("Move a key to another database"),
    row("dump", 2, dump::dump, READONLY, Meaning::Read).summary("A value as bytes"),
    row("restore", -4, dump::restore, WRITE | DENYOOM, Meaning::Register)
        .acl(acl::KEYSPACE | acl::DANGEROUS)
        .summary("Make a key of the bytes of a value"),
    plain("keys", 2, keys, READONLY, acl::KEYSPACE | acl::DANGEROUS, Meaning::Read)
        .summary("All keys that match a pattern"),
    plain("randomkey", 1, randomkey, READONLY, acl::KEYSPACE, Meaning::Read)
        .summary("A random key"),
    plain("dbsize", 1, dbsize, READONLY | FAST, acl::KEYSPACE, Meaning::Read)
        .summary("Count the keys"),
    plain("flushdb", -1, whole::flushdb, WRITE, WHOLE, Meaning::ObservedRemove)
        .summary("Delete all keys of this database"),
    plain("flushall", -1, whole::flushall, WRITE, WHOLE, Meaning::ObservedRemove)
        .summary("Delete all keys of all databases"),
    plain("swapdb", 3, whole::swapdb, WRITE | FAST, WHOLE, Meaning::ReadThenWrite)
        .summary("Exchange two databases"),
    Command::new("object", -2, object::container)
        .meaning(Meaning::Read)
        .summary("What is known about a key")
        .with(object::SUBCOMMANDS),
];

const WHOLE: u32 = acl::KEYSPACE | acl::DANGEROUS;

const fn row(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    meaning: Meaning,
) -> Command {
    plain(name, arity, run, flags, acl::KEYSPACE, meaning).keys(1, 1, 1)
}

const fn plain(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    categories: u32,
    meaning: Meaning,
) -> Command {
    let command = Command::new(name, arity, run).flags(flags).acl(categories);
    assert!(matches!(command.keys, Keys::None));
    command.meaning(meaning)
}

const SAME_OBJECT: Fail = Fail::new("ERR source and destination objects are the same");

fn del(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let mut gone = 0;
    for key in args.from(1) {
        let (mut data, _) = data::open(ctx);
        if data.del(key) {
            gone += 1;
            ctx.wrote(key, notify::GENERIC, "del");
        }
    }
    ctx.reply.count(gone);
    Ok(())
}

fn exists(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.count(args.from(1).filter(|key| data.exists(key)).count());
    Ok(())
}

fn touch(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.count(args.from(1).filter(|key| data.touch(key)).count());
    Ok(())
}

fn kind(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.simple(data.kind(args.get(1)).map_or("none", |kind| kind.word()));
    Ok(())
}

fn rename(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    rename_key(ctx, args, true)?;
    ctx.reply.ok();
    Ok(())
}

fn renamenx(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let renamed = rename_key(ctx, args, false)?;
    ctx.reply.int(i64::from(renamed));
    Ok(())
}

fn rename_key(ctx: &mut Context<'_>, args: &Args<'_>, replace: bool) -> Result<bool, Fail> {
    let (key, to) = (args.get(1), args.get(2));
    let (mut data, _) = data::open(ctx);
    if !data.exists(key) {
        return Err(fail::NO_KEY);
    }
    if key == to || (!replace && data.exists(to)) {
        return Ok(false);
    }
    data.rename(key, to)?;
    ctx.wrote(key, notify::GENERIC, "rename_from");
    ctx.wrote(to, notify::GENERIC, "rename_to");
    Ok(true)
}

/// A numbered database.
fn db_index(text: &[u8]) -> Result<usize, Fail> {
    let index = number::parse_int(text).and_then(|it| i32::try_from(it).ok());
    let index = usize::try_from(index.ok_or(fail::NOT_INTEGER)?).map_err(|_| fail::DB_INDEX)?;
    if index < NUMBERED_DBS { Ok(index) } else { Err(fail::DB_INDEX) }
}

fn copy(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (key, to) = (args.get(1), args.get(2));
    let (mut target, mut replace) = (ctx.db(), false);
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "replace") {
            replace = true;
        } else if args.is(at, "db") && at + 1 < args.len() {
            target = db_index(args.get(at + 1))?;
            at += 1;
        } else {
            return Err(fail::SYNTAX);
        }
        at += 1;
    }
    if target == ctx.db() && key == to {
        return Err(SAME_OBJECT);
    }
    let (mut data, reply) = data::open(ctx);
    let Some(image) = data.image(key) else {
        reply.int(0);
        return Ok(());
    };
    let mut data = data::open_at(ctx, target);
    if !replace && data.exists(to) {
        ctx.reply.int(0);
        return Ok(());
    }
    data.put(to, &image)?;
    ctx.reply.int(1);
    ctx.modified_in(target, to);
    ctx.notify_in(target, notify::GENERIC, "copy_to", to);
    Ok(())
}

fn move_key(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (key, source) = (args.get(1), ctx.db());
    let target = db_index(args.get(2))?;
    if source == target {
        return Err(SAME_OBJECT);
    }
    let taken = data::open_at(ctx, target).exists(key);
    let (mut data, reply) = data::open(ctx);
    let image = data.image(key).filter(|_| !taken);
    let Some(image) = image else {
        reply.int(0);
        return Ok(());
    };
    data::open_at(ctx, target).put(key, &image)?;
    data::open_at(ctx, source).del(key);
    ctx.reply.int(1);
    ctx.modified_in(source, key);
    ctx.modified_in(target, key);
    ctx.notify_in(source, notify::GENERIC, "move_from", key);
    ctx.notify_in(target, notify::GENERIC, "move_to", key);
    Ok(())
}

fn keys(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let wanted = args.get(1);
    let (mut data, reply) = data::open(ctx);
    let mark = reply.mark();
    let mut count = 0;
    data.each_key(|key| {
        if wanted == b"*" || pattern::matches(wanted, key) {
            reply.bulk(key);
            count += 1;
        }
    });
    reply.array_at(mark, count);
    Ok(())
}

fn randomkey(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let key = data.random_key();
    reply.bulk_or_null(key.as_deref());
    Ok(())
}

fn dbsize(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.count(data.len());
    Ok(())
}
