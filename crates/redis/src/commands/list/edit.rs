//! Changing lists in the middle, and finding elements by their value.

use super::{End, place};
use crate::commands::data::{self, Type};
use crate::commands::pick;
use crate::fail::{self, Fail};
use crate::ranges::ranks;
use crate::{Args, Context, Outcome, notify};

const RANK_ZERO: Fail = Fail::new(
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use \
     negative to start from the end of the list",
);
const COUNT_NEGATIVE: Fail = Fail::new("ERR COUNT can't be negative");
const MAXLEN_NEGATIVE: Fail = Fail::new("ERR MAXLEN can't be negative");

pub(super) fn lset(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    if !data.check(key, Type::List)? {
        return Err(fail::NO_KEY);
    }
    let at = place(args.int(2)?, data.list_len(key)?).ok_or(fail::INDEX_OUT_OF_RANGE)?;
    data.list_set(key, at, args.get(3))?;
    reply.ok();
    ctx.wrote(key, notify::LIST, "lset");
    Ok(())
}

pub(super) fn linsert(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let behind = match args.get(2).to_ascii_lowercase().as_slice() {
        b"before" => 0,
        b"after" => 1,
        _ => return Err(fail::SYNTAX),
    };
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    if !data.check(key, Type::List)? {
        reply.int(0);
        return Ok(());
    }
    let Some(pivot) = data.list_find(key, args.get(3))? else {
        reply.int(-1);
        return Ok(());
    };
    reply.count(data.list_insert(key, pivot + behind, args.get(4))?);
    ctx.wrote(key, notify::LIST, "linsert");
    Ok(())
}

pub(super) fn lrem(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (key, count) = (args.get(1), args.int(2)?);
    let (mut data, reply) = data::open(ctx);
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let wanted = if wanted == 0 { usize::MAX } else { wanted };
    let from = if count < 0 { End::Right } else { End::Left };
    let gone = data.list_remove(key, args.get(3), wanted, from)?;
    reply.count(gone);
    if 0 < gone {
        let emptied = !data.exists(key);
        ctx.wrote(key, notify::LIST, "lrem");
        if emptied {
            ctx.notify(notify::GENERIC, "del", key);
        }
    }
    Ok(())
}

pub(super) fn ltrim(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (start, stop) = (args.int(2)?, args.int(3)?);
    let key = args.get(1);
    let (mut data, reply) = data::open(ctx);
    reply.ok();
    if !data.check(key, Type::List)? {
        return Ok(());
    }
    let keep = ranks(start, stop, data.list_len(key)?);
    data.list_trim(key, keep)?;
    let emptied = !data.exists(key);
    ctx.wrote(key, notify::LIST, "ltrim");
    if emptied {
        ctx.notify(notify::GENERIC, "del", key);
    }
    Ok(())
}

struct Search {
    rank: i64,
    /// Answer an array of so many; zero is "all".
    count: Option<usize>,
    /// Look at no more than so many elements; zero is "all".
    looks_max: usize,
}

impl Search {
    fn parse(args: &Args<'_>) -> Result<Search, Fail> {
        let mut search = Search { rank: 1, count: None, looks_max: 0 };
        let mut at = 3;
        while at < args.len() {
            if args.len() <= at + 1 {
                return Err(fail::SYNTAX);
            }
            if args.is(at, "rank") {
                search.rank = args.int(at + 1)?;
                if search.rank == 0 {
                    return Err(RANK_ZERO);
                }
            } else if args.is(at, "count") {
                search.count = Some(pick::count_or(args, at + 1, COUNT_NEGATIVE)?);
            } else if args.is(at, "maxlen") {
                search.looks_max = pick::count_or(args, at + 1, MAXLEN_NEGATIVE)?;
            } else {
                return Err(fail::SYNTAX);
            }
            at += 2;
        }
        Ok(search)
    }

    /// The places of the matches that are wanted, in the order of the search.
    fn run(&self, items: &[Vec<u8>], wanted: &[u8]) -> Vec<usize> {
        let looks = if self.looks_max == 0 { usize::MAX } else { self.looks_max };
        let skip = usize::try_from(self.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
        let take = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count,
        };
        let places: Box<dyn Iterator<Item = usize>> =
            if self.rank < 0 { Box::new((0..items.len()).rev()) } else { Box::new(0..items.len()) };
        places.take(looks).filter(|at| items[*at] == wanted).skip(skip).take(take).collect()
    }
}

pub(super) fn lpos(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let search = Search::parse(args)?;
    let (mut data, reply) = data::open(ctx);
    let places = search.run(&data.list_items(args.get(1))?, args.get(2));
    match (search.count, places.first()) {
        (Some(_), _) => {
            reply.array(places.len());
            for at in places {
                reply.count(at);
            }
        }
        (None, Some(at)) => reply.count(*at),
        (None, None) => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Search;

    #[test]
    fn searches() {
        let items: Vec<Vec<u8>> = b"abc123cc".iter().map(|byte| vec![*byte]).collect();
        // rank, count, looks, places
        let rows: [(i64, Option<usize>, usize, &[usize]); 9] = [
            (1, None, 0, &[2]),
            (2, None, 0, &[6]),
            (-1, None, 0, &[7]),
            (4, None, 0, &[]),
            (1, Some(0), 0, &[2, 6, 7]),
            (-1, Some(2), 0, &[7, 6]),
            (2, Some(0), 0, &[6, 7]),
            (1, Some(0), 3, &[2]),
            (i64::MIN, Some(0), 0, &[]),
        ];
        for (rank, count, looks_max, expected) in rows {
            let search = Search { rank, count, looks_max };
            assert_eq!(search.run(&items, b"c"), expected, "{rank} {count:?} {looks_max}");
        }
    }
}
