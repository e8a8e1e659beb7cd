//! Tests as intervals of key bytes.
//!
//! A bound is a position before, or after, all keys that begin with some bytes. Positions turn
//! around cleanly when a component is descending, which plain byte bounds do not.

use kumiko_base::Value;

use super::Group;
use crate::{Test, order};

/// A position in the key bytes of one component.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    bytes: Vec<u8>,
    after: bool,
}

impl Bound {
    /// The first key bytes that are not before this position.
    fn key(&self) -> Vec<u8> {
        let mut key = self.bytes.clone();
        if self.after {
            // What follows may be any byte, FF included: the end of text in a descending path.
            while key.pop_if(|last| *last == 0xFF).is_some() {}
            *key.last_mut().expect("no component is FF alone") += 1;
        }
        key
    }

    fn turned(&self) -> Bound {
        Bound { bytes: self.bytes.iter().map(|byte| !byte).collect(), after: !self.after }
    }
}

/// The values from one position to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Interval {
    low: Bound,
    high: Bound,
    /// Whether it holds one value.
    point: bool,
    /// The interval in words.
    pub(crate) shown: String,
}

impl Interval {
    pub(crate) fn is_point(&self) -> bool {
        self.point
    }

    fn point(value: &Value) -> Interval {
        let mut bytes = Vec::new();
        order::encode(value, &mut bytes);
        let shown = format!("[{0}, {0}]", show(value));
        Interval::of(bytes, shown)
    }

    fn of(bytes: Vec<u8>, shown: String) -> Interval {
        let low = Bound { bytes: bytes.clone(), after: false };
        Interval { low, high: Bound { bytes, after: true }, point: true, shown }
    }

    fn intersect(&self, other: &Interval) -> Option<Interval> {
        let (low_mine, low_other) = (self.low.key(), other.low.key());
        let (high_mine, high_other) = (self.high.key(), other.high.key());
        let low = if low_mine < low_other { &other.low } else { &self.low };
        let high = if high_mine < high_other { &self.high } else { &other.high };
        if high.key() <= low.key() {
            return None;
        }
        let shown = if self.shown == other.shown {
            self.shown.clone()
        } else {
            format!("{} and {}", self.shown, other.shown)
        };
        let point = self.point || other.point;
        Some(Interval { low: low.clone(), high: high.clone(), point, shown })
    }
}

/// The intervals of `path`, in order. `None` if no test bounds it. On a path that meets arrays,
/// tests that are not of one group may be met by different elements, so only one group counts.
pub(crate) fn of(tests: &[(&str, Group<'_>)], path: &str, multikey: bool) -> Option<Vec<Interval>> {
    let groups = tests.iter().filter(|(it, _)| *it == path).filter_map(|(_, group)| all(group));
    if multikey {
        // Fewer and narrower first: points before ranges.
        return groups.min_by_key(|it| (!it.iter().all(Interval::is_point), it.len()));
    }
    groups.reduce(|a, b| intersect(&a, &b))
}

fn all(group: &Group<'_>) -> Option<Vec<Interval>> {
    group.iter().filter_map(|test| of_test(test)).reduce(|a, b| intersect(&a, &b))
}

fn intersect(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    a.iter().flat_map(|a| b.iter().filter_map(move |b| a.intersect(b))).collect()
}

fn of_test(test: &Test) -> Option<Vec<Interval>> {
    Some(match test {
        Test::Eq(value) => sorted(points(value)),
        Test::In(values) => sorted(values.iter().flat_map(points).collect()),
        Test::Exists(false) => vec![Interval::point(&Value::Null)],
        Test::Exists(true) => return None,
        Test::Prefix(prefix) => {
            let mut bytes = Vec::new();
            order::encode(&Value::Text(prefix.clone()), &mut bytes);
            bytes.pop();
            let shown = format!("[{prefix:?}.., {prefix:?}..]");
            vec![Interval { point: false, ..Interval::of(bytes, shown) }]
        }
        Test::Lt(limit) | Test::Le(limit) | Test::Gt(limit) | Test::Ge(limit) => {
            vec![range(test, limit)?]
        }
    })
}

/// Where documents that equal `value` have their entries. An array has them at its elements.
fn points(value: &Value) -> Vec<Interval> {
    let mut points = vec![Interval::point(value)];
    let Value::Array(elements) = value else { return points };
    if let Some(first) = elements.first() {
        points.push(Interval::point(first));
    } else {
        let mut bytes = Vec::new();
        order::encode_undefined(&mut bytes);
        points.push(Interval::of(bytes, "[[], []]".into()));
    }
    points
}

fn sorted(mut points: Vec<Interval>) -> Vec<Interval> {
    points.sort_by_key(|it| it.low.key());
    points.dedup_by(|a, b| a.low == b.low);
    points
}

fn range(test: &Test, limit: &Value) -> Option<Interval> {
    if matches!(limit, Value::Array(_)) {
        return None;
    }
    if *limit == Value::Null {
        return Some(Interval::point(limit));
    }
    let mut bytes = Vec::new();
    order::encode(limit, &mut bytes);
    let (first, past) = order::class_bounds(limit);
    let class_low = Bound { bytes: vec![first], after: false };
    let class_high = Bound { bytes: vec![past - 1], after: true };
    let at = |after| Bound { bytes: bytes.clone(), after };
    let (low, high, shown) = match test {
        Test::Lt(_) => (class_low, at(false), format!("(-inf, {})", show(limit))),
        Test::Le(_) => (class_low, at(true), format!("(-inf, {}]", show(limit))),
        Test::Gt(_) => (at(true), class_high, format!("({}, inf)", show(limit))),
        _ => (at(false), class_high, format!("[{}, inf)", show(limit))),
    };
    Some(Interval { low, high, point: false, shown })
}

/// Every way to go on from `keys` into `intervals`, in key order. An empty high end is open.
pub(crate) fn extend(
    keys: &[(Vec<u8>, Vec<u8>)],
    intervals: &[Interval],
    down: bool,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut ends: Vec<(Vec<u8>, Vec<u8>)> = intervals
        .iter()
        .map(|it| {
            if down {
                (it.high.turned().key(), it.low.turned().key())
            } else {
                (it.low.key(), it.high.key())
            }
        })
        .collect();
    ends.sort();
    // Only points have been taken so far, so the low key without a mark is the value itself.
    keys.iter()
        .flat_map(|(prefix, _)| {
            ends.iter().map(move |(low, high)| {
                ([prefix.as_slice(), low].concat(), [prefix.as_slice(), high].concat())
            })
        })
        .collect()
}

/// A value in a few characters.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(it) => it.to_string(),
        Value::I32(it) => it.to_string(),
        Value::I64(it) => it.to_string(),
        Value::F64(it) => it.to_string(),
        Value::Text(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
        Value::DateTime(ms) => format!("date {ms}"),
        Value::ObjectId(id) => format!("ObjectId({})", kumiko_base::hex::show(id)),
        Value::Decimal(bytes) => crate::number::decimal_text(bytes),
        Value::Array(_) => "array".into(),
        Value::Map(_) => "object".into(),
        _ => "value".into(),
    }
}
