//! Tests of the id as ranges of documents.
//!
//! Integers and text lie among the tuple keys, all other ids among the ordered ones (see `keys`).
//! The segments follow the order of all values, so that a scan of them is sorted by id.

use kumiko_base::Value;
use kumiko_base::tuple::Writer;
use kumiko_kv::Range;

use super::Segment;
use crate::keys::{Place, Prefixes};
use crate::number::Number;
use crate::{Test, order};

const TUPLE_NULL: u8 = 0x00;
const TUPLE_TEXT: u8 = 0x02;
const TUPLE_INTEGER: (u8, u8) = (0x0B, 0x1E);

/// All documents, in id order.
pub(super) fn all(prefixes: &Prefixes) -> Vec<Segment> {
    let (null, past_null) = order::class_bounds(&Value::Null);
    let (number, past_number) = order::class_bounds(&Value::I32(0));
    assert_eq!(past_null.max(number), number, "numbers come after null");
    let (text, past_text) = order::class_bounds(&Value::Text(String::new()));
    assert!(past_number <= text, "text comes after numbers");
    vec![
        Segment::Rows(prefixes.ordered(&[], &[null])),
        Segment::Rows(prefixes.plain(&[TUPLE_NULL], &[TUPLE_NULL + 1])),
        Segment::Numbers(
            prefixes.plain(&[TUPLE_INTEGER.0], &[TUPLE_INTEGER.1]),
            prefixes.ordered(&[number], &[past_number]),
        ),
        Segment::Rows(prefixes.plain(&[TUPLE_TEXT], &[TUPLE_TEXT + 1])),
        Segment::Rows(prefixes.ordered(&[past_text], &[0xFF])),
    ]
}

/// The documents that pass all of `tests`, and whether they are named one by one. `None` if the
/// tests bound nothing.
pub(super) fn segments(prefixes: &Prefixes, tests: &[&Test]) -> Option<(Vec<Segment>, bool)> {
    // Points win: each is looked up, and the caller tests the rest.
    let named = |test: &&&Test| matches!(test, Test::Eq(_) | Test::In(_));
    if let Some(test) = tests.iter().find(named) {
        return points(prefixes, test).map(|it| (it, true));
    }
    let mut bounded: Option<Vec<Segment>> = None;
    for test in tests {
        let Some(next) = range(prefixes, test) else { continue };
        bounded = Some(match bounded {
            None => next,
            Some(so_far) => intersect(&so_far, &next),
        });
    }
    bounded.map(|it| (it, false))
}

fn points(prefixes: &Prefixes, test: &Test) -> Option<Vec<Segment>> {
    let mut values: Vec<&Value> = match test {
        Test::Eq(value) => vec![value],
        Test::In(values) => values.iter().collect(),
        _ => return None,
    };
    values.sort_by(|a, b| order::compare(a, b));
    values.dedup_by(|a, b| order::equal(a, b));
    // An id that is too long for a key is not there.
    let places = values.into_iter().filter_map(|value| Place::of(value).ok());
    Some(places.map(|it| Segment::Rows(Range::one(&prefixes.document(&it)))).collect())
}

fn range(prefixes: &Prefixes, test: &Test) -> Option<Vec<Segment>> {
    let (limit, below, with) = match test {
        Test::Lt(limit) => (limit, true, false),
        Test::Le(limit) => (limit, true, true),
        Test::Gt(limit) => (limit, false, false),
        Test::Ge(limit) => (limit, false, true),
        Test::Prefix(text) => {
            let mut low = Writer::new().text(text).finish();
            low.pop();
            let high = [low.as_slice(), &[0xFF]].concat();
            return Some(vec![Segment::Rows(prefixes.plain(&low, &high))]);
        }
        Test::Eq(_) | Test::In(_) | Test::Exists(_) => return None,
    };
    Some(match limit {
        Value::Array(_) | Value::Null => return None,
        Value::Text(text) => {
            let at = Writer::new().text(text).finish();
            let past = [at.as_slice(), &[0xFF]].concat();
            let edge = if below == with { past } else { at };
            vec![Segment::Rows(if below {
                prefixes.plain(&[TUPLE_TEXT], &edge)
            } else {
                prefixes.plain(&edge, &[TUPLE_TEXT + 1])
            })]
        }
        _ => {
            let others = ordered(prefixes, limit, below, with);
            match Number::of(limit) {
                Some(number) => vec![integers(prefixes, number, below, others)],
                None => vec![Segment::Rows(others)],
            }
        }
    })
}

fn ordered(prefixes: &Prefixes, limit: &Value, below: bool, with: bool) -> Range {
    let (first, past) = order::class_bounds(limit);
    let mut edge = Vec::new();
    order::encode(limit, &mut edge);
    if below == with {
        edge.push(0xFF);
    }
    if below { prefixes.ordered(&[first], &edge) } else { prefixes.ordered(&edge, &[past]) }
}

/// The integers on one side of `number`, the number itself included: the caller tests again.
fn integers(prefixes: &Prefixes, number: Number, below: bool, others: Range) -> Segment {
    let float = number.to_f64();
    // Beyond 2^53 a float may stand beside the number: a few integers more do no harm.
    let slack = if float.abs() < 9.0e15 { 1 } else { 4096 };
    let near = float as i64;
    let rows = if float.is_nan() {
        prefixes.plain(&[TUPLE_INTEGER.0], &[TUPLE_INTEGER.1])
    } else if below {
        let edge = Writer::new().int(i128::from(near) + slack).finish();
        prefixes.plain(&[TUPLE_INTEGER.0], &edge)
    } else {
        let edge = Writer::new().int(i128::from(near) - slack).finish();
        prefixes.plain(&edge, &[TUPLE_INTEGER.1])
    };
    Segment::Numbers(rows, others)
}

fn intersect(a: &[Segment], b: &[Segment]) -> Vec<Segment> {
    let both = |a: &Range, b: &Range| {
        let start = a.start.clone().max(b.start.clone());
        Range::new(start, a.end.clone().min(b.end.clone()))
    };
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    pairs
        .filter_map(|pair| match pair {
            (Segment::Rows(a), Segment::Rows(b)) => Some(Segment::Rows(both(a, b))),
            (Segment::Numbers(a, ao), Segment::Numbers(b, bo)) => {
                Some(Segment::Numbers(both(a, b), both(ao, bo)))
            }
            _ => None,
        })
        .filter(|it| match it {
            Segment::Rows(range) => !range.is_empty(),
            Segment::Numbers(a, b) => !a.is_empty() || !b.is_empty(),
        })
        .collect()
}
