//! Sorting documents by paths.
//!
//! An array counts as its least element when ascending and its greatest when descending; an empty
//! one stands before null. Nothing counts as null.

use std::cmp::Ordering;

use kumiko_base::Value;
use kumiko_document::{order, path};

use crate::{Error, types};

/// The most paths of a sort.
const PATHS_MAX: usize = 32;

/// A parsed sort.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sort {
    /// The paths, and whether each is descending.
    pub paths: Vec<(String, bool)>,
}

impl Sort {
    /// Parses `{a: 1, b: -1}`.
    pub fn parse(sort: &Value) -> Result<Sort, Error> {
        let Value::Map(fields) = sort else {
            return Err(Error::location(15973, "the $sort key specification must be an object"));
        };
        if PATHS_MAX < fields.len() {
            return Err(Error::bad(format!("a sort has at most {PATHS_MAX} paths")));
        }
        let mut paths = Vec::new();
        for (path, way) in fields {
            if path.is_empty() || path.starts_with('$') {
                return Err(Error::bad("a sort needs names of fields"));
            }
            let down = match types::integer(way).filter(|_| types::is_number(way)) {
                Some(1) => false,
                Some(-1) => true,
                _ if matches!(way, Value::Map(_)) => {
                    return Err(Error::location(31138, "Illegal $meta sort: not offered"));
                }
                _ if types::is_number(way) => {
                    let message =
                        "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
                    return Err(Error::location(15975, message));
                }
                _ => {
                    let message = format!("Illegal key in $sort specification: {path}");
                    return Err(Error::location(15974, message));
                }
            };
            paths.push((path.clone(), down));
        }
        Ok(Sort { paths })
    }

    /// The order of two documents.
    pub fn compare(&self, a: &Value, b: &Value) -> Ordering {
        for (path, down) in &self.paths {
            let [a, b] = [a, b].map(|it| key(it, path, *down));
            let order = compare_keys(a.as_ref(), b.as_ref());
            if order != Ordering::Equal {
                return if *down { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }

    /// Sorts, keeping equal documents in their order.
    pub fn sort(&self, documents: &mut [Value]) {
        documents.sort_by(|a, b| self.compare(a, b));
    }
}

/// `None` is an empty array.
fn key(document: &Value, path: &str, down: bool) -> Option<Value> {
    let mut best: Option<Option<Value>> = None;
    let mut take = |value: Option<Value>| {
        let better = match &best {
            None => true,
            Some(best) => {
                let order = compare_keys(value.as_ref(), best.as_ref());
                order == if down { Ordering::Greater } else { Ordering::Less }
            }
        };
        if better {
            best = Some(value);
        }
    };
    path::visit(document, path, &mut |value| {
        match value {
            None => take(Some(Value::Null)),
            Some(Value::Array(elements)) if elements.is_empty() => take(None),
            Some(Value::Array(elements)) => {
                for element in elements {
                    take(Some(element.clone()));
                }
            }
            Some(value) => take(Some(value.clone())),
        }
        false
    });
    best.unwrap_or(Some(Value::Null))
}

fn compare_keys(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(Value::MinKey)) => Ordering::Greater,
        (Some(Value::MinKey), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a), Some(b)) => order::compare(a, b),
    }
}
