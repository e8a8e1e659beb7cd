//! ZADD with its options, and ZINCRBY.

use kumiko_lattice::live::{Added, Error, ZaddRule};

use crate::commands::data;
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome, notify};

const NX_WITH_XX: Fail = Fail::new("ERR XX and NX options at the same time are not compatible");
const GT_LT_NX: Fail =
    Fail::new("ERR GT, LT, and/or NX options at the same time are not compatible");
const ONE_INCREMENT: Fail = Fail::new("ERR INCR option supports a single increment-element pair");
const NOT_A_NUMBER: Fail = Fail::new("ERR resulting score is not a number (NaN)");

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    if_missing: bool,
    if_present: bool,
    if_greater: bool,
    if_less: bool,
    count_changed: bool,
    increment: bool,
}

impl Options {
    /// Reads the options and answers where the scores start.
    fn parse(args: &Args<'_>) -> Result<(Options, usize), Fail> {
        let mut options = Options::default();
        let mut at = 2;
        while at < args.len() {
            match args.get(at).to_ascii_lowercase().as_slice() {
                b"nx" => options.if_missing = true,
                b"xx" => options.if_present = true,
                b"gt" => options.if_greater = true,
                b"lt" => options.if_less = true,
                b"ch" => options.count_changed = true,
                b"incr" => options.increment = true,
                _ => break,
            }
            at += 1;
        }
        let pairs = args.len() - at;
        if pairs == 0 || !pairs.is_multiple_of(2) {
            return Err(fail::SYNTAX);
        }
        if options.if_missing && options.if_present {
            return Err(NX_WITH_XX);
        }
        let compares = usize::from(options.if_greater) + usize::from(options.if_less);
        if 1 < compares + usize::from(options.if_missing && 0 < compares) {
            return Err(GT_LT_NX);
        }
        if options.increment && 2 < pairs {
            return Err(ONE_INCREMENT);
        }
        Ok((options, at))
    }

    fn rule(self) -> ZaddRule {
        ZaddRule {
            only_new: self.if_missing,
            only_old: self.if_present,
            greater: self.if_greater,
            less: self.if_less,
            increment: self.increment,
        }
    }
}

pub(super) fn zadd(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (options, first) = Options::parse(args)?;
    add(ctx, args, options, first)
}

pub(super) fn zincrby(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let options = Options { increment: true, ..Options::default() };
    add(ctx, args, options, 2)
}

fn add(ctx: &mut Context<'_>, args: &Args<'_>, options: Options, first: usize) -> Outcome {
    let key = args.get(1);
    let mut scores = Vec::with_capacity((args.len() - first) / 2);
    for at in (first..args.len()).step_by(2) {
        scores.push(args.float(at)?);
    }
    let (mut data, _) = data::open(ctx);
    let (mut added, mut changed, mut shown, mut refused) = (0, 0, None, None);
    for (index, given) in scores.into_iter().enumerate() {
        let member = args.get(first + 2 * index + 1);
        match data.sorted_add(key, member, given, options.rule()) {
            Ok(Added::New(score)) => {
                added += 1;
                shown = Some(score);
            }
            Ok(Added::Changed(score)) => {
                changed += 1;
                shown = Some(score);
            }
            Ok(Added::Same(score)) => shown = Some(score),
            Ok(Added::Refused(_)) => {}
            Err(Error::NotFloat) => {
                refused = Some(NOT_A_NUMBER);
                break;
            }
            Err(error) => return Err(data::refuse(error)),
        }
    }
    let reply = &mut ctx.reply;
    match (options.increment, shown) {
        (true, Some(score)) => reply.double(score),
        (true, None) => reply.null(),
        (false, _) => reply.count(if options.count_changed { added + changed } else { added }),
    }
    if 0 < added + changed {
        ctx.wrote(key, notify::ZSET, if options.increment { "zincr" } else { "zadd" });
    }
    refused.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::args::OwnedArgs;

    #[test]
    fn options_that_fit_together() {
        let parse = |line: &str| {
            let owned = OwnedArgs::from_parts(line.split(' ').map(str::as_bytes));
            Options::parse(&owned.args()).map(|(_, at)| at).map_err(|it| it.as_str().to_owned())
        };
        assert_eq!(parse("zadd k 1 a"), Ok(2));
        assert_eq!(parse("zadd k xx gt ch incr 1 a"), Ok(6));
        assert!(parse("zadd k nx xx 1 a").is_err_and(|it| it.contains("XX and NX")));
        assert!(parse("zadd k nx gt 1 a").is_err_and(|it| it.contains("GT, LT")));
        assert!(parse("zadd k gt lt 1 a").is_err_and(|it| it.contains("GT, LT")));
        assert!(parse("zadd k incr 1 a 2 b").is_err_and(|it| it.contains("single increment")));
        assert!(parse("zadd k 1").is_err() && parse("zadd k nx").is_err());
    }
}
