//! SCAN and its relatives: walks in steps that stay right while the data changes.
//!
//! A cursor is a position in the store's own order, so an item that is there from the first call to
//! the last is seen, whatever is added or removed meanwhile.

use super::data::{self, Type};
use super::pattern;
use crate::command::{READONLY, acl};
use crate::fail::{self, Fail};
use crate::{Args, Command, Context, Meaning, Outcome, Writer};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::new("scan", -2, scan)
        .flags(READONLY)
        .acl(acl::KEYSPACE)
        .meaning(Meaning::Read)
        .summary("Walk through the keys"),
    row("hscan", hscan, acl::HASH).summary("Walk through the fields of a hash"),
    row("sscan", sscan, acl::SET).summary("Walk through the members of a set"),
    row("zscan", zscan, acl::SORTEDSET).summary("Walk through the members of a sorted set"),
];

const fn row(name: &'static str, run: crate::command::Run, category: u32) -> Command {
    Command::new(name, -3, run).flags(READONLY).acl(category).keys(1, 1, 1).meaning(Meaning::Read)
}

/// How many items a step looks at if the client does not say.
const COUNT_DEFAULT: usize = 10;
/// The largest step: more in one call would only stall the others.
const COUNT_MAX: i64 = 1_000_000;

struct Options<'a> {
    cursor: u64,
    count: usize,
    pattern: Option<&'a [u8]>,
    /// Only keys of this type; the name need not be one that exists.
    kind: Option<&'a [u8]>,
}

impl Options<'_> {
    fn wants(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| pattern::matches(pattern, name))
    }
}

/// Reads a cursor as C's `strtoul` does: nothing is zero, and a minus counts from the end.
fn cursor(text: &[u8]) -> Result<u64, Fail> {
    if text.is_empty() {
        return Ok(0);
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let plain = digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| plain);
    let value: u64 = digits.and_then(|it| it.parse().ok()).ok_or(fail::INVALID_CURSOR)?;
    Ok(if negative { value.wrapping_neg() } else { value })
}

/// Reads the options from argument `first` on. Only SCAN itself takes TYPE.
fn parse<'a>(args: &Args<'a>, first: usize, keys: bool) -> Result<Options<'a>, Fail> {
    let cursor = cursor(args.get(first - 1))?;
    let mut options = Options { cursor, count: COUNT_DEFAULT, pattern: None, kind: None };
    let mut at = first;
    while at < args.len() {
        let more = at + 1 < args.len();
        if args.is(at, "count") && more {
            let count = args.int(at + 1)?;
            if count < 1 {
                return Err(fail::SYNTAX);
            }
            options.count = count.min(COUNT_MAX) as usize;
        } else if args.is(at, "match") && more {
            let pattern = args.get(at + 1);
            options.pattern = (pattern != b"*").then_some(pattern);
        } else if args.is(at, "type") && more && keys {
            options.kind = Some(args.get(at + 1));
        } else {
            return Err(fail::SYNTAX);
        }
        at += 2;
    }
    Ok(options)
}

/// Writes the next cursor and the items that were found.
fn answer(reply: &mut Writer, cursor: u64, items: &[Vec<u8>]) {
    reply.array(2);
    reply.bulk(cursor.to_string().as_bytes());
    reply.array(items.len());
    for item in items {
        reply.bulk(item);
    }
}

fn scan(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let options = parse(args, 2, true)?;
    let (mut data, reply) = data::open(ctx);
    let mut keys = Vec::new();
    let next = data.scan_keys(options.cursor, options.count, |key, kind| {
        let wanted = options.kind;
        let fits = wanted.is_none_or(|it| it.eq_ignore_ascii_case(kind.word().as_bytes()));
        if fits && options.wants(key) {
            keys.push(key.to_vec());
        }
    });
    answer(reply, next, &keys);
    Ok(())
}

fn hscan(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    inside(ctx, args, Type::Hash)
}

fn sscan(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    inside(ctx, args, Type::Set)
}

fn zscan(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    inside(ctx, args, Type::Zset)
}

fn inside(ctx: &mut Context<'_>, args: &Args<'_>, kind: Type) -> Outcome {
    // Redis looks at the cursor, then at the key, then at the options.
    let cursor = cursor(args.get(2))?;
    let (mut data, reply) = data::open(ctx);
    let key = args.get(1);
    if !data.check(key, kind)? {
        answer(reply, 0, &[]);
        return Ok(());
    }
    let options = parse(args, 3, false)?;
    let mut items = Vec::new();
    let mut visit = |name: &[u8], value: Option<&[u8]>| {
        if options.wants(name) {
            items.push(name.to_vec());
            items.extend(value.map(<[u8]>::to_vec));
        }
    };
    let next = match kind {
        Type::Hash => data.scan_hash(key, cursor, options.count, |field, value| {
            visit(field, Some(value));
        })?,
        Type::Set => data.scan_set(key, cursor, options.count, |member| visit(member, None))?,
        _ => data.scan_sorted(key, cursor, options.count, |member, score| {
            visit(member, Some(data::score_text(score).as_bytes()));
        })?,
    };
    answer(reply, next, &items);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::cursor;

    #[test]
    fn cursors() {
        assert_eq!(cursor(b"0"), Ok(0));
        assert_eq!(cursor(b""), Ok(0));
        assert_eq!(cursor(b"-5"), Ok(u64::MAX - 4));
        assert_eq!(cursor(b"18446744073709551615"), Ok(u64::MAX));
        for bad in ["-", " 1", "1 ", "x", "18446744073709551616"] {
            assert!(cursor(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
