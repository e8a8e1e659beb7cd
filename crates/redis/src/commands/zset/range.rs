//! ZRANGE in all its forms, and ZRANGESTORE.

use std::ops::Range;

use super::{Scored, write_members};
use crate::commands::data::{self, Data};
use crate::fail::{self, Fail};
use crate::ranges::{LexRange, ScoreRange, ranks};
use crate::{Args, Context, Outcome, notify};

const LIMIT_BY_RANK: Fail = Fail::new(
    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
);
const SCORES_BY_LEX: Fail =
    Fail::new("ERR syntax error, WITHSCORES not supported in combination with BYLEX");

/// By what a range is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Name,
}

/// What a command leaves open for options to say.
#[derive(Clone, Copy)]
struct Form {
    by: Option<By>,
    reverse: Option<bool>,
    store: bool,
}

struct Query {
    by: By,
    reverse: bool,
    with_scores: bool,
    offset: i64,
    limit: i64,
}

pub(super) fn zrange(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Form { by: None, reverse: None, store: false })
}

pub(super) fn zrevrange(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Form { by: Some(By::Rank), reverse: Some(true), store: false })
}

pub(super) fn zrangebyscore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Form { by: Some(By::Score), reverse: Some(false), store: false })
}

pub(super) fn zrevrangebyscore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Form { by: Some(By::Score), reverse: Some(true), store: false })
}

pub(super) fn zrangebylex(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Form { by: Some(By::Name), reverse: Some(false), store: false })
}

pub(super) fn zrevrangebylex(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Form { by: Some(By::Name), reverse: Some(true), store: false })
}

fn show(ctx: &mut Context<'_>, args: &Args<'_>, form: Form) -> Outcome {
    let query = parse(args, 1, form)?;
    let (mut data, reply) = data::open(ctx);
    let members = select(&mut data, args, 1, &query)?;
    write_members(reply, &members, query.with_scores);
    Ok(())
}

pub(super) fn zrangestore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let target = args.get(1);
    let query = parse(args, 2, Form { by: None, reverse: None, store: true })?;
    let (mut data, reply) = data::open(ctx);
    let members = select(&mut data, args, 2, &query)?;
    reply.count(members.len());
    let existed = data.del(target);
    for (member, score) in &members {
        data.sorted_set(target, member, *score)?;
    }
    if !members.is_empty() {
        ctx.wrote(target, notify::ZSET, "zrangestore");
    } else if existed {
        ctx.wrote(target, notify::GENERIC, "del");
    }
    Ok(())
}

/// Reads the options behind `key min max`, where the key is argument `first`.
fn parse(args: &Args<'_>, first: usize, form: Form) -> Result<Query, Fail> {
    let (mut by, mut reverse) = (form.by, form.reverse);
    let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
    let mut at = first + 3;
    while at < args.len() {
        if args.is(at, "withscores") && !form.store {
            with_scores = true;
        } else if args.is(at, "limit") && at + 2 < args.len() {
            (offset, limit) = (args.int(at + 1)?, args.int(at + 2)?);
            at += 2;
        } else if args.is(at, "rev") && reverse.is_none() {
            reverse = Some(true);
        } else if args.is(at, "bylex") && by.is_none() {
            by = Some(By::Name);
        } else if args.is(at, "byscore") && by.is_none() {
            by = Some(By::Score);
        } else {
            return Err(fail::SYNTAX);
        }
        at += 1;
    }
    let (by, reverse) = (by.unwrap_or(By::Rank), reverse.unwrap_or(false));
    if limit != -1 && by == By::Rank {
        return Err(LIMIT_BY_RANK);
    }
    if with_scores && by == By::Name {
        return Err(SCORES_BY_LEX);
    }
    Ok(Query { by, reverse, with_scores, offset, limit })
}

/// The members of the range, in the order in which they are shown.
fn select(
    data: &mut Data<'_>,
    args: &Args<'_>,
    first: usize,
    query: &Query,
) -> Result<Vec<Scored>, Fail> {
    let key = args.get(first);
    // A reversed range by score or name is given with its upper end first.
    let (low, high) = match query {
        Query { by: By::Score | By::Name, reverse: true, .. } => (first + 2, first + 1),
        _ => (first + 1, first + 2),
    };
    let range = match query.by {
        By::Rank => {
            let (start, stop) = (args.int(low)?, args.int(high)?);
            let count = data.sorted_len(key)?;
            let range = ranks(start, stop, count);
            if query.reverse { count - range.end..count - range.start } else { range }
        }
        By::Score => {
            let range = ScoreRange::parse(args.get(low), args.get(high));
            let range = range.ok_or(fail::NOT_FLOAT_RANGE)?;
            limited(data.sorted_by_score(key, &range)?, query)
        }
        By::Name => {
            let range = LexRange::parse(args.get(low), args.get(high));
            let range = range.ok_or(fail::NOT_LEX_RANGE)?;
            limited(data.sorted_by_name(key, &range)?, query)
        }
    };
    let mut members = Vec::with_capacity(range.len());
    data.sorted_each(key, range, query.reverse, |member, score| {
        members.push((member.to_vec(), score));
    })?;
    Ok(members)
}

/// The part of the range that LIMIT leaves. A negative offset leaves nothing, a negative limit all.
fn limited(range: Range<usize>, query: &Query) -> Range<usize> {
    let Ok(offset) = usize::try_from(query.offset) else { return 0..0 };
    let offset = offset.min(range.len());
    let count = usize::try_from(query.limit).unwrap_or(usize::MAX).min(range.len() - offset);
    if query.reverse {
        let end = range.end - offset;
        end - count..end
    } else {
        let start = range.start + offset;
        start..start + count
    }
}

#[cfg(test)]
mod tests {
    use super::{By, Query, limited};

    #[test]
    fn limits() {
        // offset, limit, reverse, what is left of 2..7
        let rows = [
            (0, -1, false, 2..7),
            (1, 2, false, 3..5),
            (1, 2, true, 4..6),
            (0, 0, false, 2..2),
            (9, 2, false, 7..7),
            (4, 9, true, 2..3),
            (-1, 5, false, 0..0),
        ];
        for (offset, limit, reverse, expected) in rows {
            let query = Query { by: By::Score, reverse, with_scores: false, offset, limit };
            assert_eq!(limited(2..7, &query), expected, "{offset} {limit} {reverse}");
        }
    }
}
