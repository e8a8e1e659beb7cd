//! Counts in arguments, and random picks by them.

use kumiko_base::draw::Draw;
use kumiko_wire::resp::number;

use crate::Args;
use crate::fail::{self, Fail};

/// The most picks with repetition that one command answers, so that a reply stays in memory.
pub(crate) const PICKS_MAX: u64 = 1 << 24;

/// Argument `at` as a count that is not negative, with `otherwise` for anything else.
pub(crate) fn count_or(args: &Args<'_>, at: usize, otherwise: Fail) -> Result<usize, Fail> {
    let count = number::parse_int(args.get(at)).and_then(|it| usize::try_from(it).ok());
    count.ok_or(otherwise)
}

/// Argument `at` as a count that is not negative.
pub(crate) fn count(args: &Args<'_>, at: usize) -> Result<usize, Fail> {
    count_or(args, at, fail::NOT_POSITIVE)
}

/// How many random members a command wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picks {
    /// So many different ones, or all if there are fewer.
    Distinct(usize),
    /// Exactly so many, the same one possibly twice.
    Repeated(usize),
}

impl Picks {
    /// Reads a count: negative ones ask for repetition. Pairs take half of the range.
    pub(crate) fn parse(args: &Args<'_>, at: usize, pairs: bool) -> Result<Picks, Fail> {
        let count = args.int(at)?;
        if count == i64::MIN {
            let max = i64::MAX;
            let text = format!("ERR value is out of range, value must between -{max} and {max}");
            return Err(Fail::text(text));
        }
        if pairs && !(-(i64::MAX / 2)..=i64::MAX / 2).contains(&count) {
            return Err(fail::OUT_OF_RANGE);
        }
        if 0 <= count {
            return Ok(Picks::Distinct(count as usize));
        }
        if PICKS_MAX < count.unsigned_abs() {
            return Err(fail::OUT_OF_RANGE);
        }
        Ok(Picks::Repeated(count.unsigned_abs() as usize))
    }

    /// The indexes of the picks among `total` items.
    pub(crate) fn indexes(self, total: usize, draw: &mut Draw) -> Vec<usize> {
        match self {
            _ if total == 0 => Vec::new(),
            Picks::Repeated(count) => (0..count).map(|_| draw.index(total)).collect(),
            Picks::Distinct(count) => {
                let mut indexes: Vec<usize> = (0..total).collect();
                let count = count.min(total);
                if count < total {
                    for at in 0..count {
                        indexes.swap(at, at + draw.index(total - at));
                    }
                }
                indexes.truncate(count);
                indexes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PICKS_MAX, Picks};
    use crate::args::OwnedArgs;
    use kumiko_base::draw;
    use std::collections::BTreeSet;

    #[test]
    fn counts() {
        let parse = |text: &str, pairs| {
            Picks::parse(&OwnedArgs::from_parts([text.as_bytes()]).args(), 0, pairs)
        };
        assert_eq!(parse("3", false), Ok(Picks::Distinct(3)));
        assert_eq!(parse("-3", true), Ok(Picks::Repeated(3)));
        assert_eq!(parse(&format!("-{PICKS_MAX}"), false), Ok(Picks::Repeated(PICKS_MAX as usize)));
        assert!(parse(&format!("-{}", PICKS_MAX + 1), false).is_err());
        assert!(parse("9223372036854775807", false).is_ok());
        assert!(parse("9223372036854775807", true).is_err());
        assert!(parse("-9223372036854775808", false).is_err());
        assert!(parse("x", false).is_err());
    }

    #[test]
    fn picks_are_inside_and_distinct() {
        draw::check("picks", 500, |draw| {
            let (total, count) = (draw.index(20), draw.index(30));
            let distinct = Picks::Distinct(count).indexes(total, draw);
            assert_eq!(distinct.len(), count.min(total));
            assert_eq!(distinct.iter().collect::<BTreeSet<_>>().len(), distinct.len());
            let repeated = Picks::Repeated(count).indexes(total, draw);
            assert_eq!(repeated.len(), if total == 0 { 0 } else { count });
            assert!(distinct.iter().chain(&repeated).all(|at| *at < total));
        });
    }
}
