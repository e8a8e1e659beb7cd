//! SORT: the elements of a list, set or sorted set, by themselves or by other keys.

use std::cmp::Ordering;

use super::data::{self, Data, Type};
use super::list::End;
use crate::command::{DENYOOM, READONLY, WRITE, acl};
use crate::fail::{self, Fail};
use crate::number;
use crate::{Args, Command, Context, Keys, Meaning, Outcome, notify};

const CATEGORIES: u32 = acl::SET | acl::SORTEDSET | acl::LIST | acl::DANGEROUS;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::new("sort", -2, sort)
        .flags(WRITE | DENYOOM)
        .acl(CATEGORIES)
        .keys_by(Keys::Find(find_keys))
        .meaning(Meaning::ReadThenWrite)
        .summary("Sort the elements of a list, a set or a sorted set"),
    Command::new("sort_ro", -2, sort_ro)
        .flags(READONLY)
        .acl(CATEGORIES)
        .keys(1, 1, 1)
        .movable()
        .meaning(Meaning::Read)
        .summary("Sort the elements of a list, a set or a sorted set"),
];

const NOT_NUMBERS: Fail = Fail::new("ERR One or more scores can't be converted into double");

/// The key itself, and the key of the last STORE.
fn find_keys(args: &Args<'_>, found: &mut Vec<usize>) -> Option<()> {
    found.push(1);
    let mut target = None;
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "limit") {
            at += 2;
        } else if args.is(at, "get") || args.is(at, "by") {
            at += 1;
        } else if args.is(at, "store") && at + 1 < args.len() {
            target = Some(at + 1);
            at += 1;
        }
        at += 1;
    }
    found.extend(target);
    Some(())
}

#[derive(Default)]
struct Query<'a> {
    descending: bool,
    alpha: bool,
    start: i64,
    count: Option<i64>,
    by: Option<&'a [u8]>,
    gets: Vec<&'a [u8]>,
    store: Option<&'a [u8]>,
}

impl<'a> Query<'a> {
    fn parse(args: &Args<'a>, may_store: bool) -> Result<Query<'a>, Fail> {
        let mut query = Query::default();
        let mut at = 2;
        while at < args.len() {
            let left = args.len() - at - 1;
            if args.is(at, "asc") {
                query.descending = false;
            } else if args.is(at, "desc") {
                query.descending = true;
            } else if args.is(at, "alpha") {
                query.alpha = true;
            } else if args.is(at, "limit") && 2 <= left {
                query.start = args.int(at + 1)?;
                query.count = Some(args.int(at + 2)?);
                at += 2;
            } else if args.is(at, "store") && 1 <= left && may_store {
                query.store = Some(args.get(at + 1));
                at += 1;
            } else if args.is(at, "by") && 1 <= left {
                query.by = Some(args.get(at + 1));
                at += 1;
            } else if args.is(at, "get") && 1 <= left {
                query.gets.push(args.get(at + 1));
                at += 1;
            } else {
                return Err(fail::SYNTAX);
            }
            at += 1;
        }
        Ok(query)
    }

    /// The part of `total` elements that LIMIT leaves.
    fn limits(&self, total: usize) -> std::ops::Range<usize> {
        let start = usize::try_from(self.start).unwrap_or(0).min(total);
        let count = self.count.and_then(|count| usize::try_from(count).ok());
        start..start + count.unwrap_or(total).min(total - start)
    }
}

fn sort(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let query = Query::parse(args, true)?;
    run(ctx, args.get(1), query)
}

fn sort_ro(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let query = Query::parse(args, false)?;
    run(ctx, args.get(1), query)
}

fn run(ctx: &mut Context<'_>, key: &[u8], mut query: Query<'_>) -> Outcome {
    let (mut data, _) = data::open(ctx);
    let kind = data.kind(key);
    let mut elements = load(&mut data, key, kind)?;
    // A constant BY asks for the order there is. A set has none, so a stored one is made.
    let mut sorted = query.by.is_none_or(|by| by.contains(&b'*'));
    if !sorted && kind == Some(Type::Set) && query.store.is_some() {
        (sorted, query.alpha, query.by) = (true, true, None);
    }
    if sorted {
        elements = order(&mut data, elements, &query)?;
    } else if query.descending && matches!(kind, Some(Type::List | Type::Zset)) {
        elements.reverse();
    }
    let range = query.limits(elements.len());
    let mut results = Vec::new();
    for element in &elements[range] {
        if query.gets.is_empty() {
            results.push(Some(element.clone()));
        }
        for pattern in &query.gets {
            results.push(lookup(&mut data, pattern, element));
        }
    }
    let Some(target) = query.store else {
        ctx.reply.array(results.len());
        for result in results {
            ctx.reply.bulk_or_null(result.as_deref());
        }
        return Ok(());
    };
    let existed = data.del(target);
    for result in &results {
        data.list_push(target, End::Right, result.as_deref().unwrap_or_default())?;
    }
    ctx.reply.count(results.len());
    if !results.is_empty() {
        ctx.wrote(target, notify::LIST, "sortstore");
    } else if existed {
        ctx.wrote(target, notify::GENERIC, "del");
    }
    Ok(())
}

fn load(data: &mut Data<'_>, key: &[u8], kind: Option<Type>) -> Result<Vec<Vec<u8>>, Fail> {
    match kind {
        None => Ok(Vec::new()),
        Some(Type::List) => data.list_items(key),
        Some(Type::Set) => data.set_members(key),
        Some(Type::Zset) => {
            let (mut members, count) = (Vec::new(), data.sorted_len(key)?);
            data.sorted_each(key, 0..count, false, |member, _| members.push(member.to_vec()))?;
            Ok(members)
        }
        Some(Type::String | Type::Hash) => Err(fail::WRONG_TYPE),
    }
}

/// Sorts by the elements themselves, or by what BY finds for each.
fn order(
    data: &mut Data<'_>,
    elements: Vec<Vec<u8>>,
    query: &Query<'_>,
) -> Result<Vec<Vec<u8>>, Fail> {
    let weight = |element: &Vec<u8>, data: &mut Data<'_>| match query.by {
        Some(pattern) => lookup(data, pattern, element),
        None => Some(element.clone()),
    };
    let turn = |order: Ordering| if query.descending { order.reverse() } else { order };
    if query.alpha {
        let mut weighed: Vec<(Option<Vec<u8>>, Vec<u8>)> =
            elements.into_iter().map(|it| (weight(&it, data), it)).collect();
        weighed.sort_by(|a, b| turn(a.0.cmp(&b.0)));
        return Ok(weighed.into_iter().map(|(_, element)| element).collect());
    }
    let mut weighed: Vec<(f64, Vec<u8>)> = Vec::with_capacity(elements.len());
    for element in elements {
        let score = match weight(&element, data) {
            Some(text) => number::parse_f64_loose(&text).ok_or(NOT_NUMBERS)?,
            None => 0.0,
        };
        weighed.push((score, element));
    }
    // Equal weights fall back to the elements, so that the order is always the same.
    let compare = |a: &(f64, Vec<u8>), b: &(f64, Vec<u8>)| {
        a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal).then_with(|| a.1.cmp(&b.1))
    };
    weighed.sort_by(|a, b| turn(compare(a, b)));
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

/// What a pattern names for an element: `#` is the element, `*` stands for it in a key, and
/// `->field` behind the key asks for a field of a hash. Other types than these have no value.
fn lookup(data: &mut Data<'_>, pattern: &[u8], element: &[u8]) -> Option<Vec<u8>> {
    if pattern == b"#" {
        return Some(element.to_vec());
    }
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let arrow = pattern[star + 1..].windows(2).position(|pair| pair == b"->");
    let arrow = arrow.map(|at| star + 1 + at).filter(|at| at + 2 < pattern.len());
    let (tail, field) = match arrow {
        Some(at) => (&pattern[star + 1..at], Some(&pattern[at + 2..])),
        None => (&pattern[star + 1..], None),
    };
    let key = [&pattern[..star], element, tail].concat();
    match field {
        Some(field) => data.hash_get_owned(&key, field).ok()?,
        None => data.string_owned(&key).ok()?,
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn limits() {
        // start, count, what is left of 5
        let rows = [
            (0, None, 0..5),
            (1, Some(2), 1..3),
            (3, Some(9), 3..5),
            (-2, Some(2), 0..2),
            (9, Some(2), 5..5),
            (0, Some(0), 0..0),
            (1, Some(-1), 1..5),
            (i64::MAX, Some(i64::MAX), 5..5),
        ];
        for (start, count, expected) in rows {
            let query = Query { start, count, ..Query::default() };
            assert_eq!(query.limits(5), expected, "{start} {count:?}");
        }
    }
}
