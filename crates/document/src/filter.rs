//! The part of a query that an index can serve.
//!
//! A filter is made of conditions on paths. A query language translates what it can and says
//! [`Filter::Other`] for the rest: the planner uses a filter to find candidates, and the language
//! looks at each candidate again. Partial indexes keep a filter without `Other`.

use kumiko_base::Value;

use crate::order;
use crate::path;
use crate::{Error, path::field};

/// A condition, or several.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of them hold; none means always.
    All(Vec<Filter>),
    /// One of them holds.
    Any(Vec<Filter>),
    /// Some value that the path finds passes the test.
    Test(String, Test),
    /// All these tests hold for one and the same element of the array at the path.
    Element(String, Vec<Test>),
    /// Something that no index can serve.
    Other,
}

/// A test of one value. Comparisons hold between values of one class only.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Equal; null also means that nothing is there.
    Eq(Value),
    /// Below.
    Lt(Value),
    /// Below or equal.
    Le(Value),
    /// Above.
    Gt(Value),
    /// Above or equal.
    Ge(Value),
    /// Equal to one of these.
    In(Vec<Value>),
    /// Text that begins with this.
    Prefix(String),
    /// Something is there, null included; or nothing is there.
    Exists(bool),
}

impl Test {
    /// Whether `value` itself, not its elements, passes. `None` is a missing value.
    pub fn holds(&self, value: Option<&Value>) -> bool {
        let compared = |limit: &Value, wanted: fn(std::cmp::Ordering) -> bool| {
            value.is_some_and(|value| {
                let alike = order::class(value) == order::class(limit) && !nan(value, limit);
                alike && wanted(order::compare(value, limit))
            })
        };
        match self {
            Test::Le(Value::Null) | Test::Ge(Value::Null) => {
                matches!(value, None | Some(Value::Null))
            }
            Test::Eq(wanted) => match value {
                None => matches!(wanted, Value::Null),
                Some(value) => order::equal(value, wanted),
            },
            Test::Lt(limit) => compared(limit, std::cmp::Ordering::is_lt),
            Test::Le(limit) => compared(limit, std::cmp::Ordering::is_le) || same_nan(value, limit),
            Test::Gt(limit) => compared(limit, std::cmp::Ordering::is_gt),
            Test::Ge(limit) => compared(limit, std::cmp::Ordering::is_ge) || same_nan(value, limit),
            Test::In(wanted) => wanted.iter().any(|wanted| Test::Eq(wanted.clone()).holds(value)),
            Test::Prefix(prefix) => {
                matches!(value, Some(Value::Text(text)) if text.starts_with(prefix.as_str()))
            }
            Test::Exists(wanted) => value.is_some() == *wanted,
        }
    }
}

fn is_nan(value: &Value) -> bool {
    match value {
        Value::F64(it) => it.is_nan(),
        Value::F32(it) => it.is_nan(),
        Value::Decimal(_) => {
            matches!(crate::number::Number::of(value), Some(crate::number::Number::NaN))
        }
        _ => false,
    }
}

/// NaN is neither below nor above any number.
fn nan(a: &Value, b: &Value) -> bool {
    is_nan(a) || is_nan(b)
}

fn same_nan(value: Option<&Value>, limit: &Value) -> bool {
    is_nan(limit) && value.is_some_and(is_nan)
}

impl Filter {
    /// Whether `document` passes. `Other` always does: it is somebody else's to decide.
    pub fn matches(&self, document: &Value) -> bool {
        match self {
            Filter::All(all) => all.iter().all(|filter| filter.matches(document)),
            Filter::Any(any) => any.iter().any(|filter| filter.matches(document)),
            Filter::Test(path, Test::Exists(false)) => {
                !path::visit(document, path, &mut |value| value.is_some())
            }
            Filter::Test(path, test) => {
                path::visit(document, path, &mut |value| test_leaf(test, value))
            }
            Filter::Element(path, tests) => path::visit(document, path, &mut |value| {
                let Some(Value::Array(elements)) = value else { return false };
                elements.iter().any(|element| tests.iter().all(|test| test.holds(Some(element))))
            }),
            Filter::Other => true,
        }
    }

    /// Whether `Other` is nowhere inside.
    pub fn is_complete(&self) -> bool {
        match self {
            Filter::All(inside) | Filter::Any(inside) => inside.iter().all(Filter::is_complete),
            Filter::Test(..) | Filter::Element(..) => true,
            Filter::Other => false,
        }
    }

    /// Whether every document that passes `self` passes `other` too, as far as it is plain to see.
    pub fn implies(&self, other: &Filter) -> bool {
        if self == other {
            return true;
        }
        match other {
            Filter::All(all) => return all.iter().all(|it| self.implies(it)),
            Filter::Any(any) if any.iter().any(|it| self.implies(it)) => return true,
            _ => {}
        }
        match (self, other) {
            (Filter::All(all), _) => all.iter().any(|it| it.implies(other)),
            (Filter::Any(any), _) => !any.is_empty() && any.iter().all(|it| it.implies(other)),
            (Filter::Test(path, mine), Filter::Test(theirs, wanted)) if path == theirs => {
                test_implies(mine, wanted)
            }
            _ => false,
        }
    }

    /// As a value, to be stored. `Other` cannot be.
    pub fn to_value(&self) -> Result<Value, Error> {
        let list = |name: &str, inside: &[Filter]| {
            let inside: Result<Vec<Value>, Error> = inside.iter().map(Filter::to_value).collect();
            Ok(Value::Map(vec![(name.into(), Value::Array(inside?))]))
        };
        let (path, test) = match self {
            Filter::All(inside) => return list("all", inside),
            Filter::Any(inside) => return list("any", inside),
            Filter::Test(path, test) => (path, test),
            Filter::Element(..) | Filter::Other => {
                return Err(Error::Invalid("this condition cannot be kept in an index".into()));
            }
        };
        let (name, value) = match test {
            Test::Eq(value) => ("eq", value.clone()),
            Test::Lt(value) => ("lt", value.clone()),
            Test::Le(value) => ("le", value.clone()),
            Test::Gt(value) => ("gt", value.clone()),
            Test::Ge(value) => ("ge", value.clone()),
            Test::In(values) => ("in", Value::Array(values.clone())),
            Test::Prefix(text) => ("prefix", Value::Text(text.clone())),
            Test::Exists(wanted) => ("exists", Value::Bool(*wanted)),
        };
        Ok(Value::Map(vec![("path".into(), Value::Text(path.clone())), (name.into(), value)]))
    }

    /// What `to_value` made.
    pub fn from_value(value: &Value) -> Result<Filter, Error> {
        let bad = || Error::Corrupt("a stored filter is not one".into());
        let list = |value: &Value| match value {
            Value::Array(inside) => inside.iter().map(Filter::from_value).collect(),
            _ => Err(bad()),
        };
        if let Some(all) = field(value, "all") {
            return Ok(Filter::All(list(all)?));
        }
        if let Some(any) = field(value, "any") {
            return Ok(Filter::Any(list(any)?));
        }
        let Value::Map(fields) = value else { return Err(bad()) };
        let [(_, Value::Text(path)), (name, value)] = fields.as_slice() else { return Err(bad()) };
        let value = value.clone();
        let test = match (name.as_str(), value) {
            ("eq", value) => Test::Eq(value),
            ("lt", value) => Test::Lt(value),
            ("le", value) => Test::Le(value),
            ("gt", value) => Test::Gt(value),
            ("ge", value) => Test::Ge(value),
            ("in", Value::Array(values)) => Test::In(values),
            ("prefix", Value::Text(text)) => Test::Prefix(text),
            ("exists", Value::Bool(wanted)) => Test::Exists(wanted),
            _ => return Err(bad()),
        };
        Ok(Filter::Test(path.clone(), test))
    }
}

/// Tests a value that a path found: the value itself or, if it is an array, one of its elements.
pub fn test_leaf(test: &Test, value: Option<&Value>) -> bool {
    if test.holds(value) {
        return true;
    }
    match (test, value) {
        (Test::Exists(_), _) => false,
        (_, Some(Value::Array(elements))) => {
            elements.iter().any(|element| test.holds(Some(element)))
        }
        _ => false,
    }
}

fn test_implies(mine: &Test, wanted: &Test) -> bool {
    match (mine, wanted) {
        (Test::Exists(false), _) | (_, Test::Exists(false)) => mine == wanted,
        (Test::Eq(Value::Null), Test::Exists(true)) => false,
        (Test::In(values), Test::Exists(true)) => !values.contains(&Value::Null),
        (_, Test::Exists(true)) => true,
        (Test::Eq(value), _) => !matches!(value, Value::Array(_)) && wanted.holds(Some(value)),
        (Test::In(values), _) => {
            values.iter().all(|it| !matches!(it, Value::Array(_)) && wanted.holds(Some(it)))
        }
        (Test::Lt(a), Test::Lt(_)) | (Test::Le(a), Test::Le(_) | Test::Lt(_)) => {
            wanted.holds(Some(a)) || mine == wanted
        }
        (Test::Gt(a), Test::Gt(_)) | (Test::Ge(a), Test::Ge(_) | Test::Gt(_)) => {
            wanted.holds(Some(a)) || mine == wanted
        }
        (Test::Lt(a), Test::Le(b)) | (Test::Gt(a), Test::Ge(b)) => {
            wanted.holds(Some(a)) || order::equal(a, b)
        }
        _ => false,
    }
}
