//! Removing members, by name, by range, or from one of the two ends.

use std::ops::Range;

use super::{Scored, write_members};
use crate::commands::data::{self, Type};
use crate::commands::list::many_options;
use crate::commands::pick;
use crate::fail::{self, Fail};
use crate::ranges::{LexRange, ScoreRange, ranks};
use crate::{Args, Context, Outcome, Writer, notify};

/// The two ends of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The lowest score.
    Min,
    /// The highest score.
    Max,
}

impl Side {
    /// Reads MIN or MAX.
    pub(crate) fn parse(text: &[u8]) -> Result<Side, Fail> {
        match text.to_ascii_lowercase().as_slice() {
            b"min" => Ok(Side::Min),
            b"max" => Ok(Side::Max),
            _ => Err(fail::SYNTAX),
        }
    }

    fn event(self) -> &'static str {
        match self {
            Side::Min => "zpopmin",
            Side::Max => "zpopmax",
        }
    }
}

pub(super) fn zrem(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    let mut gone = 0;
    for member in args.from(2) {
        gone += usize::from(data.sorted_del(key, member)?);
    }
    reply.count(gone);
    tell(ctx, key, gone, "zrem");
    Ok(())
}

fn tell(ctx: &mut Context<'_>, key: &[u8], gone: usize, event: &str) {
    if gone == 0 {
        return;
    }
    let (mut data, _) = data::open(ctx);
    let emptied = !data.exists(key);
    ctx.wrote(key, notify::ZSET, event);
    if emptied {
        ctx.notify(notify::GENERIC, "del", key);
    }
}

pub(super) fn by_rank(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (start, stop) = (args.int(2)?, args.int(3)?);
    let (mut data, _) = data::open(ctx);
    let range = ranks(start, stop, data.sorted_len(args.get(1))?);
    remove_range(ctx, args.get(1), range, "zremrangebyrank")
}

pub(super) fn by_score(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let range = ScoreRange::parse(args.get(2), args.get(3)).ok_or(fail::NOT_FLOAT_RANGE)?;
    let (mut data, _) = data::open(ctx);
    let range = data.sorted_by_score(args.get(1), &range)?;
    remove_range(ctx, args.get(1), range, "zremrangebyscore")
}

pub(super) fn by_lex(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let range = LexRange::parse(args.get(2), args.get(3)).ok_or(fail::NOT_LEX_RANGE)?;
    let (mut data, _) = data::open(ctx);
    let range = data.sorted_by_name(args.get(1), &range)?;
    remove_range(ctx, args.get(1), range, "zremrangebylex")
}

fn remove_range(ctx: &mut Context<'_>, key: &[u8], range: Range<usize>, event: &str) -> Outcome {
    let gone = take(ctx, key, range, false)?.len();
    ctx.reply.count(gone);
    tell(ctx, key, gone, event);
    Ok(())
}

/// Removes the members of a range of ranks and answers them in order.
fn take(
    ctx: &mut Context<'_>,
    key: &[u8],
    range: Range<usize>,
    reverse: bool,
) -> Result<Vec<Scored>, Fail> {
    let (mut data, _) = data::open(ctx);
    let mut members = Vec::with_capacity(range.len());
    data.sorted_each(key, range, reverse, |member, score| {
        members.push((member.to_vec(), score));
    })?;
    for (member, _) in &members {
        data.sorted_del(key, member)?;
    }
    Ok(members)
}

/// Takes up to `count` members out at one side and tells of it.
pub(crate) fn pop_members(
    ctx: &mut Context<'_>,
    key: &[u8],
    side: Side,
    count: usize,
) -> Result<Vec<Scored>, Fail> {
    let (mut data, _) = data::open(ctx);
    let total = data.sorted_len(key)?;
    let count = count.min(total);
    let members = match side {
        Side::Min => take(ctx, key, 0..count, false)?,
        Side::Max => take(ctx, key, total - count..total, true)?,
    };
    tell(ctx, key, members.len(), side.event());
    Ok(members)
}

pub(super) fn zpopmin(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    pop(ctx, args, Side::Min)
}

pub(super) fn zpopmax(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    pop(ctx, args, Side::Max)
}

fn pop(ctx: &mut Context<'_>, args: &Args<'_>, side: Side) -> Outcome {
    if 3 < args.len() {
        return Err(fail::SYNTAX);
    }
    let count = if args.len() == 3 { Some(pick::count(args, 2)?) } else { None };
    let members = pop_members(ctx, args.get(1), side, count.unwrap_or(1))?;
    let reply = &mut ctx.reply;
    if count.is_some() || members.is_empty() {
        write_members(reply, &members, true);
    } else {
        // A single pop is flat in both versions.
        reply.array(2);
        for (member, score) in &members {
            reply.bulk(member);
            reply.double(*score);
        }
    }
    Ok(())
}

/// Answers a key and the members taken from it: pairs in both versions.
pub(crate) fn write_popped(reply: &mut Writer, key: &[u8], members: &[Scored]) {
    reply.array(2);
    reply.bulk(key);
    reply.array(members.len());
    for (member, score) in members {
        reply.array(2);
        reply.bulk(member);
        reply.double(*score);
    }
}

pub(super) fn zmpop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (keys, side, count) = many_options(args, 1, Side::parse)?;
    for key in keys.from(0) {
        let (mut data, _) = data::open(ctx);
        if data.check(key, Type::Zset)? {
            let members = pop_members(ctx, key, side, count)?;
            write_popped(&mut ctx.reply, key, &members);
            return Ok(());
        }
    }
    ctx.reply.null_array();
    Ok(())
}
