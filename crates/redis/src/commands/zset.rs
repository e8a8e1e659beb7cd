//! Sorted sets: members with a score, in the order of score, then member.
//!
//! Members are united across replicas; of two scores for one member the later write wins. A sorted
//! set without members does not exist.

mod add;
mod combine;
mod range;
mod remove;

use super::data::{self, Type};
use super::pick::Picks;
pub(super) use remove::{Side, pop_members, write_popped};

use crate::command::{DENYOOM, FAST, READONLY, WRITE, acl};
use crate::fail;
use crate::ranges::{LexRange, ScoreRange};
use crate::{Args, Command, Context, Keys, Meaning, Outcome, Version, Writer};

const READ_FAST: u32 = READONLY | FAST;
const GROW_FAST: u32 = WRITE | DENYOOM | FAST;
const STORE: u32 = WRITE | DENYOOM;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    row("zadd", -4, add::zadd, GROW_FAST, Meaning::Members)
        .summary("Add members, or change scores"),
    row("zincrby", 4, add::zincrby, GROW_FAST, Meaning::Members).summary("Add to a score"),
    row("zrem", -3, remove::zrem, WRITE | FAST, Meaning::ObservedRemove).summary("Remove members"),
    row("zremrangebyrank", 4, remove::by_rank, WRITE, Meaning::ObservedRemove)
        .summary("Remove members by rank"),
    row("zremrangebyscore", 4, remove::by_score, WRITE, Meaning::ObservedRemove)
        .summary("Remove members by score"),
    row("zremrangebylex", 4, remove::by_lex, WRITE, Meaning::ObservedRemove)
        .summary("Remove members by name"),
    row("zpopmin", -2, remove::zpopmin, WRITE | FAST, Meaning::AtLeastOnce)
        .summary("Take the members with the lowest scores"),
    row("zpopmax", -2, remove::zpopmax, WRITE | FAST, Meaning::AtLeastOnce)
        .summary("Take the members with the highest scores"),
    row("zmpop", -4, remove::zmpop, WRITE, Meaning::AtLeastOnce)
        .keys_by(Keys::Counted { at: 1 })
        .summary("Take members from the first sorted set that has some"),
    row("zcard", 2, zcard, READ_FAST, Meaning::Read).summary("Count the members"),
    row("zscore", 3, zscore, READ_FAST, Meaning::Read).summary("The score of a member"),
    row("zmscore", -3, zmscore, READ_FAST, Meaning::Read).summary("The scores of many members"),
    row("zrank", 3, zrank, READ_FAST, Meaning::Read).summary("The rank of a member"),
    row("zrevrank", 3, zrevrank, READ_FAST, Meaning::Read)
        .summary("The rank of a member, from the highest score"),
    row("zcount", 4, zcount, READ_FAST, Meaning::Read).summary("Count members by score"),
    row("zlexcount", 4, zlexcount, READ_FAST, Meaning::Read).summary("Count members by name"),
    row("zrandmember", -2, zrandmember, READONLY, Meaning::Read).summary("Pick members at random"),
    row("zrange", -4, range::zrange, READONLY, Meaning::Read).summary("Get a range of members"),
    row("zrevrange", -4, range::zrevrange, READONLY, Meaning::Read)
        .summary("Get members by rank, from the highest score"),
    row("zrangebyscore", -4, range::zrangebyscore, READONLY, Meaning::Read)
        .summary("Get members by score"),
    row("zrevrangebyscore", -4, range::zrevrangebyscore, READONLY, Meaning::Read)
        .summary("Get members by score, from the highest"),
    row("zrangebylex", -4, range::zrangebylex, READONLY, Meaning::Read)
        .summary("Get members by name"),
    row("zrevrangebylex", -4, range::zrevrangebylex, READONLY, Meaning::Read)
        .summary("Get members by name, from the last"),
    row("zrangestore", -5, range::zrangestore, STORE, Meaning::ReadThenWrite)
        .keys(1, 2, 1)
        .summary("Store a range of members"),
    row("zunion", -3, combine::zunion, READONLY, Meaning::Read)
        .keys_by(Keys::Counted { at: 1 })
        .summary("What any of the sorted sets has"),
    row("zinter", -3, combine::zinter, READONLY, Meaning::Read)
        .keys_by(Keys::Counted { at: 1 })
        .summary("What all sorted sets share"),
    row("zdiff", -3, combine::zdiff, READONLY, Meaning::Read)
        .keys_by(Keys::Counted { at: 1 })
        .summary("What only the first sorted set has"),
    row("zintercard", -3, combine::zintercard, READONLY, Meaning::Read)
        .keys_by(Keys::Counted { at: 1 })
        .summary("How much all sorted sets share"),
    row("zunionstore", -4, combine::zunionstore, STORE, Meaning::ReadThenWrite)
        .keys_by(Keys::CountedAnd { at: 2 })
        .summary("Store what any of the sorted sets has"),
    row("zinterstore", -4, combine::zinterstore, STORE, Meaning::ReadThenWrite)
        .keys_by(Keys::CountedAnd { at: 2 })
        .summary("Store what all sorted sets share"),
    row("zdiffstore", -4, combine::zdiffstore, STORE, Meaning::ReadThenWrite)
        .keys_by(Keys::CountedAnd { at: 2 })
        .summary("Store what only the first sorted set has"),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: crate::command::Run,
    flags: u32,
    meaning: Meaning,
) -> Command {
    Command::new(name, arity, run).flags(flags).acl(acl::SORTEDSET).keys(1, 1, 1).meaning(meaning)
}

/// A member and its score.
pub(crate) type Scored = (Vec<u8>, f64);

/// Answers members; with scores they are pairs in version 3 and one flat array in version 2.
fn write_members(reply: &mut Writer, members: &[Scored], with_scores: bool) {
    let nested = with_scores && reply.version == Version::Resp3;
    reply.array(if with_scores && !nested { 2 * members.len() } else { members.len() });
    for (member, score) in members {
        if nested {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(*score);
        }
    }
}

fn zcard(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    reply.count(data.sorted_len(args.get(1))?);
    Ok(())
}

fn zscore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    match data.sorted_score(args.get(1), args.get(2))? {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    Ok(())
}

fn zmscore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    data.check(args.get(1), Type::Zset)?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        match data.sorted_score(args.get(1), member)? {
            Some(score) => reply.double(score),
            None => reply.null(),
        }
    }
    Ok(())
}

fn zrank(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    rank(ctx, args, false)
}

fn zrevrank(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    rank(ctx, args, true)
}

fn rank(ctx: &mut Context<'_>, args: &Args<'_>, from_last: bool) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    match data.sorted_rank(args.get(1), args.get(2))? {
        Some(rank) if from_last => reply.count(data.sorted_len(args.get(1))? - 1 - rank),
        Some(rank) => reply.count(rank),
        None => reply.null(),
    }
    Ok(())
}

fn zcount(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let range = ScoreRange::parse(args.get(2), args.get(3)).ok_or(fail::NOT_FLOAT_RANGE)?;
    let (mut data, reply) = data::open(ctx);
    reply.count(data.sorted_by_score(args.get(1), &range)?.len());
    Ok(())
}

fn zlexcount(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let range = LexRange::parse(args.get(2), args.get(3)).ok_or(fail::NOT_LEX_RANGE)?;
    let (mut data, reply) = data::open(ctx);
    reply.count(data.sorted_by_name(args.get(1), &range)?.len());
    Ok(())
}

fn zrandmember(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let with_scores = args.len() == 4 && args.is(3, "withscores");
    let picks = if args.len() == 2 {
        Picks::Distinct(1)
    } else {
        args.int(2)?;
        if 4 < args.len() || (args.len() == 4 && !with_scores) {
            return Err(fail::SYNTAX);
        }
        Picks::parse(args, 2, with_scores)?
    };
    let (mut data, reply) = data::open(ctx);
    let count = data.sorted_len(key)?;
    let indexes = picks.indexes(count, data.random());
    let mut picked = Vec::with_capacity(indexes.len());
    for at in indexes {
        data.sorted_each(key, at..at + 1, false, |member, score| {
            picked.push((member.to_vec(), score));
        })?;
    }
    if args.len() == 2 {
        reply.bulk_or_null(picked.first().map(|(member, _)| member.as_slice()));
    } else {
        write_members(reply, &picked, with_scores);
    }
    Ok(())
}
