//! Sorted sets of sorted sets: unions, intersections and differences, with weights.
//!
//! Plain sets take part too; their members count with score 1.

use hashbrown::HashMap;

use super::{Scored, write_members};
use crate::commands::data::{self, Data, Type};
use crate::commands::pick;
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome, notify};
use kumiko_wire::resp::number;

const WEIGHT: Fail = Fail::new("ERR weight value is not a float");
const LIMIT_NEGATIVE: Fail = Fail::new("ERR LIMIT can't be negative");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Union,
    Inter,
    Diff,
    /// An intersection of which only the size is wanted.
    Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Aggregate::Sum => {
                // The sum of opposite infinities is zero here.
                let sum = left + right;
                if sum.is_nan() { 0.0 } else { sum }
            }
            Aggregate::Min => left.min(right),
            Aggregate::Max => left.max(right),
        }
    }
}

struct Plan<'a> {
    way: Way,
    sources: Vec<(&'a [u8], f64)>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: usize,
}

pub(super) fn zunion(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Way::Union)
}

pub(super) fn zinter(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Way::Inter)
}

pub(super) fn zdiff(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Way::Diff)
}

pub(super) fn zunionstore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    store(ctx, args, Way::Union, "zunionstore")
}

pub(super) fn zinterstore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    store(ctx, args, Way::Inter, "zinterstore")
}

pub(super) fn zdiffstore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    store(ctx, args, Way::Diff, "zdiffstore")
}

pub(super) fn zintercard(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, _) = data::open(ctx);
    let plan = parse(&mut data, args, 1, Way::Count, false, "zintercard")?;
    let members = combine(&mut data, &plan)?;
    ctx.reply.count(members.len());
    Ok(())
}

fn show(ctx: &mut Context<'_>, args: &Args<'_>, way: Way) -> Outcome {
    let name = ctx.command.name;
    let (mut data, reply) = data::open(ctx);
    let plan = parse(&mut data, args, 1, way, false, name)?;
    let members = combine(&mut data, &plan)?;
    write_members(reply, &members, plan.with_scores);
    Ok(())
}

fn store(ctx: &mut Context<'_>, args: &Args<'_>, way: Way, event: &str) -> Outcome {
    let target = args.get(1);
    let (mut data, reply) = data::open(ctx);
    let plan = parse(&mut data, args, 2, way, true, event)?;
    let members = combine(&mut data, &plan)?;
    reply.count(members.len());
    let existed = data.del(target);
    for (member, score) in &members {
        data.sorted_set(target, member, *score)?;
    }
    if !members.is_empty() {
        ctx.wrote(target, notify::ZSET, event);
    } else if existed {
        ctx.wrote(target, notify::GENERIC, "del");
    }
    Ok(())
}

/// Reads `numkeys key .. [WEIGHTS ..] [AGGREGATE ..] [WITHSCORES] [LIMIT ..]`, the number at `at`.
fn parse<'a>(
    data: &mut Data<'_>,
    args: &Args<'a>,
    at: usize,
    way: Way,
    stores: bool,
    name: &str,
) -> Result<Plan<'a>, Fail> {
    let count = args.int(at)?;
    if count < 1 {
        let text = format!("ERR at least 1 input key is needed for '{name}' command");
        return Err(Fail::text(text));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if args.len() - at - 1 < count {
        return Err(fail::SYNTAX);
    }
    let keys = args.slice(at + 1..at + 1 + count);
    for key in keys.from(0) {
        if !matches!(data.kind(key), None | Some(Type::Set | Type::Zset)) {
            return Err(fail::WRONG_TYPE);
        }
    }
    let sources = keys.from(0).map(|key| (key, 1.0)).collect();
    let mut plan =
        Plan { way, sources, aggregate: Aggregate::Sum, with_scores: false, limit: usize::MAX };
    let weighs = matches!(way, Way::Union | Way::Inter);
    let mut at = at + 1 + count;
    while at < args.len() {
        let left = args.len() - at;
        if weighs && count < left && args.is(at, "weights") {
            for (index, source) in plan.sources.iter_mut().enumerate() {
                source.1 = number::parse_float(args.get(at + 1 + index)).ok_or(WEIGHT)?;
            }
            at += 1 + count;
        } else if weighs && 2 <= left && args.is(at, "aggregate") {
            plan.aggregate = match args.get(at + 1).to_ascii_lowercase().as_slice() {
                b"sum" => Aggregate::Sum,
                b"min" => Aggregate::Min,
                b"max" => Aggregate::Max,
                _ => return Err(fail::SYNTAX),
            };
            at += 2;
        } else if !stores && way != Way::Count && args.is(at, "withscores") {
            plan.with_scores = true;
            at += 1;
        } else if way == Way::Count && 2 <= left && args.is(at, "limit") {
            let limit = pick::count_or(args, at + 1, LIMIT_NEGATIVE)?;
            plan.limit = if limit == 0 { usize::MAX } else { limit };
            at += 2;
        } else {
            return Err(fail::SYNTAX);
        }
    }
    Ok(plan)
}

/// Shows the members of a sorted set or of a set.
fn each(data: &mut Data<'_>, key: &[u8], mut visit: impl FnMut(&[u8], f64)) -> Result<(), Fail> {
    if data.kind(key) == Some(Type::Set) {
        return data.set_each(key, |member| visit(member, 1.0));
    }
    let count = data.sorted_len(key)?;
    data.sorted_each(key, 0..count, false, visit)
}

fn score(data: &mut Data<'_>, key: &[u8], member: &[u8]) -> Result<Option<f64>, Fail> {
    if data.kind(key) == Some(Type::Set) {
        return Ok(data.set_has(key, member)?.then_some(1.0));
    }
    data.sorted_score(key, member)
}

fn length(data: &mut Data<'_>, key: &[u8]) -> Result<usize, Fail> {
    if data.kind(key) == Some(Type::Set) { data.set_len(key) } else { data.sorted_len(key) }
}

/// A member's weighted score; infinity times zero is zero.
fn weigh(score: f64, weight: f64) -> f64 {
    let weighed = score * weight;
    if weighed.is_nan() { 0.0 } else { weighed }
}

/// The members of the result, in order.
fn combine(data: &mut Data<'_>, plan: &Plan<'_>) -> Result<Vec<Scored>, Fail> {
    let mut sources = plan.sources.clone();
    let mut members: Vec<Scored> = Vec::new();
    if plan.way != Way::Diff {
        // The smallest first, as Redis adds up in this order and sums of doubles depend on it.
        let mut sized = Vec::with_capacity(sources.len());
        for source in sources {
            sized.push((length(data, source.0)?, source));
        }
        sized.sort_by_key(|(size, _)| *size);
        sources = sized.into_iter().map(|(_, source)| source).collect();
    }
    if plan.way == Way::Union {
        let mut sums: HashMap<Vec<u8>, f64> = HashMap::new();
        for (key, weight) in sources {
            each(data, key, |member, score| {
                let score = weigh(score, weight);
                let sum = sums.entry_ref(member).and_modify(|sum| {
                    *sum = plan.aggregate.apply(*sum, score);
                });
                sum.or_insert(score);
            })?;
        }
        members.extend(sums);
    } else {
        let (first, weight) = sources[0];
        each(data, first, |member, score| members.push((member.to_vec(), score)))?;
        if plan.way != Way::Diff {
            for (_, score) in &mut members {
                *score = weigh(*score, weight);
            }
        }
        for (key, weight) in &sources[1..] {
            let mut kept = Vec::with_capacity(members.len());
            for (member, sum) in members {
                match (score(data, key, &member)?, plan.way) {
                    (Some(_), Way::Diff) | (None, Way::Inter | Way::Count | Way::Union) => {}
                    (None, Way::Diff) => kept.push((member, sum)),
                    (Some(score), _) => {
                        kept.push((member, plan.aggregate.apply(sum, score * weight)));
                    }
                }
            }
            members = kept;
        }
        members.truncate(plan.limit);
    }
    members.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    Ok(members)
}
