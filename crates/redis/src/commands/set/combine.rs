//! Sets of sets: what they share, what any has, what only the first has.

use hashbrown::HashSet;

use crate::commands::data::{self, Data, Type};
use crate::commands::pick;
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome, notify};

const NO_KEYS: Fail = Fail::new("ERR numkeys should be greater than 0");
const TOO_FEW_KEYS: Fail = Fail::new("ERR Number of keys can't be greater than number of args");
const LIMIT_NEGATIVE: Fail = Fail::new("ERR LIMIT can't be negative");

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Inter,
    Union,
    Diff,
}

pub(super) fn sinter(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Way::Inter)
}

pub(super) fn sunion(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Way::Union)
}

pub(super) fn sdiff(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    show(ctx, args, Way::Diff)
}

pub(super) fn sinterstore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    store(ctx, args, Way::Inter, "sinterstore")
}

pub(super) fn sunionstore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    store(ctx, args, Way::Union, "sunionstore")
}

pub(super) fn sdiffstore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    store(ctx, args, Way::Diff, "sdiffstore")
}

fn show(ctx: &mut Context<'_>, args: &Args<'_>, way: Way) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    let keys: Vec<&[u8]> = args.from(1).collect();
    let members = combine(&mut data, &keys, way, usize::MAX)?;
    reply.set(members.len());
    for member in &members {
        reply.bulk(member);
    }
    Ok(())
}

fn store(ctx: &mut Context<'_>, args: &Args<'_>, way: Way, event: &str) -> Outcome {
    let target = args.get(1);
    let (mut data, reply) = data::open(ctx);
    let keys: Vec<&[u8]> = args.from(2).collect();
    let members = combine(&mut data, &keys, way, usize::MAX)?;
    reply.count(members.len());
    let existed = data.del(target);
    for member in &members {
        data.set_add(target, member)?;
    }
    if !members.is_empty() {
        ctx.wrote(target, notify::SET, event);
    } else if existed {
        ctx.wrote(target, notify::GENERIC, "del");
    }
    Ok(())
}

pub(super) fn sintercard(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let count = pick::count_or(args, 1, NO_KEYS)?;
    if count == 0 {
        return Err(NO_KEYS);
    }
    if args.len() - 2 < count {
        return Err(TOO_FEW_KEYS);
    }
    let mut limit = 0;
    let mut at = 2 + count;
    while at < args.len() {
        if !args.is(at, "limit") || args.len() <= at + 1 {
            return Err(fail::SYNTAX);
        }
        limit = pick::count_or(args, at + 1, LIMIT_NEGATIVE)?;
        at += 2;
    }
    let (mut data, reply) = data::open(ctx);
    let keys: Vec<&[u8]> = args.slice(2..2 + count).from(0).collect();
    let limit = if limit == 0 { usize::MAX } else { limit };
    reply.count(combine(&mut data, &keys, Way::Inter, limit)?.len());
    Ok(())
}

/// The members of the combination, at most `limit` of an intersection.
fn combine(
    data: &mut Data<'_>,
    keys: &[&[u8]],
    way: Way,
    limit: usize,
) -> Result<Vec<Vec<u8>>, Fail> {
    // Every key's type is looked at, even if the answer is known before.
    for key in keys {
        data.check(key, Type::Set)?;
    }
    match way {
        Way::Union => {
            let mut members = Vec::new();
            let mut seen: HashSet<Vec<u8>> = HashSet::new();
            for key in keys {
                data.set_each(key, |member| {
                    if seen.insert(member.to_vec()) {
                        members.push(member.to_vec());
                    }
                })?;
            }
            Ok(members)
        }
        Way::Diff => {
            let mut members = data.set_members(keys[0])?;
            for key in &keys[1..] {
                retain(&mut members, |member| Ok(!data.set_has(key, member)?))?;
            }
            Ok(members)
        }
        Way::Inter => {
            let mut order = Vec::with_capacity(keys.len());
            for key in keys {
                order.push((data.set_len(key)?, *key));
            }
            // The smallest set first: nothing outside of it can be in the answer.
            order.sort_by_key(|(length, _)| *length);
            let mut members = data.set_members(order[0].1)?;
            for (_, key) in &order[1..] {
                retain(&mut members, |member| data.set_has(key, member))?;
            }
            members.truncate(limit);
            Ok(members)
        }
    }
}

fn retain(
    members: &mut Vec<Vec<u8>>,
    mut keep: impl FnMut(&[u8]) -> Result<bool, Fail>,
) -> Result<(), Fail> {
    let mut refused = None;
    members.retain(|member| match keep(member) {
        Ok(keep) => keep,
        Err(fail) => {
            refused = Some(fail);
            true
        }
    });
    refused.map_or(Ok(()), Err)
}
