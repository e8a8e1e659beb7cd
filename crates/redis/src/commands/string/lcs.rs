//! LCS: the longest common subsequence of two strings, its length, or where its parts lie.

use crate::commands::data;
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome, Writer};

const NOT_STRINGS: Fail = Fail::new("ERR The specified keys must contain string values");
const LENGTH_AND_INDEXES: Fail =
    Fail::new("ERR If you want both the length and indexes, please just use IDX.");
const TABLE_TOO_LARGE: Fail =
    Fail::new("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");

#[derive(Default)]
struct Options {
    length: bool,
    indexes: bool,
    match_lengths: bool,
    match_min: i64,
}

/// A run that both strings share: where it ends in each (inclusive), and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    left: usize,
    right: usize,
    length: usize,
}

pub(super) fn lcs(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let size_max = data::bulk_bytes_max(ctx);
    let (mut data, reply) = data::open(ctx);
    let mut value = |key: &[u8]| data.string_owned(key).map_err(|_| NOT_STRINGS);
    let left = value(args.get(1))?.unwrap_or_default();
    let right = value(args.get(2))?.unwrap_or_default();
    let options = parse(args)?;
    let cells = (left.len() + 1).checked_mul(right.len() + 1);
    let fits = cells.and_then(|it| it.checked_mul(4)).is_some_and(|it| it <= size_max);
    if !fits {
        return Err(TABLE_TOO_LARGE);
    }
    let table = Table::new(&left, &right);
    if options.length {
        reply.count(table.length());
        return Ok(());
    }
    let (sequence, shared) = table.walk();
    if options.indexes {
        show_indexes(reply, &options, &shared, sequence.len());
    } else {
        reply.bulk(&sequence);
    }
    Ok(())
}

fn parse(args: &Args<'_>) -> Result<Options, Fail> {
    let mut options = Options::default();
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "idx") {
            options.indexes = true;
        } else if args.is(at, "len") {
            options.length = true;
        } else if args.is(at, "withmatchlen") {
            options.match_lengths = true;
        } else if args.is(at, "minmatchlen") && at + 1 < args.len() {
            options.match_min = args.int(at + 1)?.max(0);
            at += 1;
        } else {
            return Err(fail::SYNTAX);
        }
        at += 1;
    }
    if options.length && options.indexes {
        return Err(LENGTH_AND_INDEXES);
    }
    Ok(options)
}

fn show_indexes(reply: &mut Writer, options: &Options, shared: &[Shared], length: usize) {
    let wanted = |run: &&Shared| options.match_min <= run.length as i64;
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(shared.iter().filter(wanted).count());
    for run in shared.iter().filter(wanted) {
        reply.array(if options.match_lengths { 3 } else { 2 });
        for end in [run.left, run.right] {
            reply.array(2);
            reply.count(end + 1 - run.length);
            reply.count(end);
        }
        if options.match_lengths {
            reply.count(run.length);
        }
    }
    reply.bulk(b"len");
    reply.count(length);
}

/// The classic table: cell (i, j) is the answer for the first i and the first j bytes.
struct Table<'a> {
    left: &'a [u8],
    right: &'a [u8],
    cells: Vec<u32>,
}

impl<'a> Table<'a> {
    fn new(left: &'a [u8], right: &'a [u8]) -> Table<'a> {
        let width = right.len() + 1;
        let mut cells = vec![0; (left.len() + 1) * width];
        for (i, a) in left.iter().enumerate() {
            for (j, b) in right.iter().enumerate() {
                cells[(i + 1) * width + j + 1] = if a == b {
                    cells[i * width + j] + 1
                } else {
                    cells[i * width + j + 1].max(cells[(i + 1) * width + j])
                };
            }
        }
        Table { left, right, cells }
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.cells[i * (self.right.len() + 1) + j]
    }

    fn length(&self) -> usize {
        self.at(self.left.len(), self.right.len()) as usize
    }

    /// The sequence, and the runs that make it up, from the end to the start.
    fn walk(&self) -> (Vec<u8>, Vec<Shared>) {
        let (mut i, mut j) = (self.left.len(), self.right.len());
        let mut sequence = Vec::with_capacity(self.length());
        let mut shared: Vec<Shared> = Vec::new();
        while 0 < i && 0 < j {
            if self.left[i - 1] == self.right[j - 1] {
                sequence.push(self.left[i - 1]);
                match shared.last_mut() {
                    Some(run)
                        if run.left + 1 == i + run.length && run.right + 1 == j + run.length =>
                    {
                        run.length += 1;
                    }
                    _ => shared.push(Shared { left: i - 1, right: j - 1, length: 1 }),
                }
                i -= 1;
                j -= 1;
            } else if self.at(i, j - 1) < self.at(i - 1, j) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        sequence.reverse();
        (sequence, shared)
    }
}

#[cfg(test)]
mod tests {
    use super::{Shared, Table};
    use kumiko_base::draw;

    #[test]
    fn the_example_of_the_documentation() {
        let table = Table::new(b"ohmytext", b"mynewtext");
        let (sequence, shared) = table.walk();
        assert_eq!(sequence, b"mytext");
        let runs =
            [Shared { left: 7, right: 8, length: 4 }, Shared { left: 3, right: 1, length: 2 }];
        assert_eq!(shared, runs);
    }

    #[test]
    fn runs_spell_the_sequence() {
        draw::check("lcs_runs", 300, |draw| {
            let [left, right]: [Vec<u8>; 2] =
                std::array::from_fn(|_| (0..draw.index(20)).map(|_| draw.one_of(b"abc")).collect());
            let table = Table::new(&left, &right);
            let (sequence, shared) = table.walk();
            assert_eq!(sequence.len(), table.length());
            let spelt: Vec<u8> = shared
                .iter()
                .rev()
                .flat_map(|run| left[run.left + 1 - run.length..=run.left].to_vec())
                .collect();
            assert_eq!(spelt, sequence);
            for run in shared {
                let from_right = &right[run.right + 1 - run.length..=run.right];
                assert_eq!(&left[run.left + 1 - run.length..=run.left], from_right);
            }
        });
    }
}
