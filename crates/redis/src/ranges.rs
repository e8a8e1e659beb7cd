//! Ranges of sorted sets: by score, by member, by rank.

use crate::number;

/// Scores from `min` to `max`, each end in or out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoreRange {
    /// The lower end.
    pub(crate) min: f64,
    /// True if `min` itself is outside.
    pub(crate) min_out: bool,
    /// The upper end.
    pub(crate) max: f64,
    /// True if `max` itself is outside.
    pub(crate) max_out: bool,
}

impl ScoreRange {
    /// Reads `5`, `(5`, `-inf` and the like. `None` if an end is no number.
    pub(crate) fn parse(min: &[u8], max: &[u8]) -> Option<ScoreRange> {
        let (min, min_out) = score_end(min)?;
        let (max, max_out) = score_end(max)?;
        Some(ScoreRange { min, min_out, max, max_out })
    }

    /// True if no score can be inside.
    pub(crate) fn is_empty(&self) -> bool {
        self.max < self.min || (self.max <= self.min && (self.min_out || self.max_out))
    }
}

fn score_end(text: &[u8]) -> Option<(f64, bool)> {
    match text {
        [b'(', rest @ ..] => Some((number::parse_f64_loose(rest)?, true)),
        _ => Some((number::parse_f64_loose(text)?, false)),
    }
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexEnd<'a> {
    /// `-`: before every member.
    First,
    /// `[x`: x itself is inside.
    In(&'a [u8]),
    /// `(x`: x itself is outside.
    Out(&'a [u8]),
    /// `+`: behind every member.
    Last,
}

impl<'a> LexEnd<'a> {
    /// Reads `-`, `+`, `[x` or `(x`.
    pub(crate) fn parse(text: &'a [u8]) -> Option<LexEnd<'a>> {
        match text {
            [b'-'] => Some(LexEnd::First),
            [b'+'] => Some(LexEnd::Last),
            [b'[', rest @ ..] => Some(LexEnd::In(rest)),
            [b'(', rest @ ..] => Some(LexEnd::Out(rest)),
            _ => None,
        }
    }
}

/// Members from `min` to `max` in byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LexRange<'a> {
    /// The lower end.
    pub(crate) min: LexEnd<'a>,
    /// The upper end.
    pub(crate) max: LexEnd<'a>,
}

impl<'a> LexRange<'a> {
    /// Reads both ends.
    pub(crate) fn parse(min: &'a [u8], max: &'a [u8]) -> Option<LexRange<'a>> {
        Some(LexRange { min: LexEnd::parse(min)?, max: LexEnd::parse(max)? })
    }
}

/// Turns ranks that may count from the end into `[start, end)` of a sequence of `count`.
pub(crate) fn ranks(start: i64, stop: i64, count: usize) -> std::ops::Range<usize> {
    let count = count as i64;
    let from_end = |rank: i64| if rank < 0 { (rank + count).max(-1) } else { rank };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(count - 1));
    if stop < start || count <= start {
        return 0..0;
    }
    start as usize..stop as usize + 1
}

#[cfg(test)]
mod tests {
    use super::{LexEnd, LexRange, ScoreRange, ranks};

    #[test]
    fn score_ranges() {
        let range = ScoreRange::parse(b"(1", b"2").expect("a range");
        assert_eq!((range.min, range.min_out, range.max, range.max_out), (1.0, true, 2.0, false));
        let all = ScoreRange::parse(b"-inf", b"+inf").expect("a range");
        assert!(all.min == f64::NEG_INFINITY && all.max == f64::INFINITY && !all.is_empty());
        assert!(ScoreRange::parse(b"(1", b"(1").expect("a range").is_empty());
        assert!(ScoreRange::parse(b"2", b"1").expect("a range").is_empty());
        for bad in ["str", "nan", "(nan", "1x", "[1"] {
            assert_eq!(ScoreRange::parse(bad.as_bytes(), b"1"), None, "{bad}");
        }
    }

    #[test]
    fn lex_ranges() {
        let range = LexRange::parse(b"[b", b"(d").expect("a range");
        assert_eq!(range, LexRange { min: LexEnd::In(b"b"), max: LexEnd::Out(b"d") });
        let none = LexRange::parse(b"+", b"-").expect("a range");
        assert_eq!(none, LexRange { min: LexEnd::Last, max: LexEnd::First });
        for bad in ["", "a", "--", "++"] {
            assert_eq!(LexRange::parse(bad.as_bytes(), b"+"), None, "{bad}");
        }
    }

    #[test]
    fn rank_ranges() {
        // start, stop, count, what is left
        let rows = [
            (0, -1, 3, 0..3),
            (0, 0, 3, 0..1),
            (1, 5, 3, 1..3),
            (-2, -1, 3, 1..3),
            (-100, 1, 3, 0..2),
            (2, 1, 3, 0..0),
            (3, 9, 3, 0..0),
            (0, -4, 3, 0..0),
            (i64::MIN, i64::MAX, 3, 0..3),
            (0, -1, 0, 0..0),
        ];
        for (start, stop, count, expected) in rows {
            assert_eq!(ranks(start, stop, count), expected, "{start} {stop} of {count}");
        }
    }
}
