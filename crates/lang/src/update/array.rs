//! What updates do to arrays.

use kumiko_base::Value;
use kumiko_document::order;
use kumiko_document::path::field;

use super::walk::Change;
use crate::matcher::Match;
use crate::sort::Sort;
use crate::types::{self, type_name};
use crate::{Code, Error};

/// Elements to be added, and what happens to the array then.
#[derive(Clone, Debug)]
pub struct Push {
    each: Vec<Value>,
    position: Option<i64>,
    sort: Option<Order>,
    slice: Option<i64>,
}

#[derive(Clone, Debug)]
enum Order {
    Whole(bool),
    By(Sort),
}

fn elements<'a>(old: Option<&'a Value>, path: &str, name: &str) -> Result<&'a [Value], Error> {
    match old {
        None => Ok(&[]),
        Some(Value::Array(elements)) => Ok(elements),
        Some(other) => {
            let kind = type_name(Some(other));
            let message = format!(
                "The field '{path}' must be an array but is of type {kind}; {name} needs one"
            );
            Err(Error::bad(message))
        }
    }
}

impl Push {
    pub(super) fn parse(value: &Value) -> Result<Push, Error> {
        let plain = |each| Push { each, position: None, sort: None, slice: None };
        let Some(each) = field(value, "$each") else { return Ok(plain(vec![value.clone()])) };
        let (Value::Array(each), Value::Map(fields)) = (each, value) else {
            let message = "The argument to $each in $push must be an array";
            return Err(Error::bad(message));
        };
        let mut push = plain(each.clone());
        for (name, value) in fields {
            let number = || {
                types::integer(value).filter(|_| types::is_number(value)).ok_or_else(|| {
                    Error::bad(format!("The value for {name} must be an integer value"))
                })
            };
            match name.as_str() {
                "$each" => {}
                "$position" => push.position = Some(number()?),
                "$slice" => push.slice = Some(number()?),
                "$sort" => push.sort = Some(order(value)?),
                _ => {
                    return Err(Error::bad(format!("Unrecognized clause in $push: {name}")));
                }
            }
        }
        Ok(push)
    }

    pub(super) fn change(&self, old: Option<&Value>, path: &str) -> Result<Change, Error> {
        let mut all = elements(old, path, "$push")?.to_vec();
        let length = all.len() as i64;
        let at = match self.position {
            None => length,
            Some(at) if at < 0 => (length + at).max(0),
            Some(at) => at.min(length),
        };
        all.splice(at as usize..at as usize, self.each.iter().cloned());
        match &self.sort {
            None => {}
            Some(Order::Whole(down)) => all.sort_by(|a, b| {
                let order = order::compare(a, b);
                if *down { order.reverse() } else { order }
            }),
            Some(Order::By(sort)) => sort.sort(&mut all),
        }
        match self.slice {
            None => {}
            Some(keep) if keep < 0 => {
                let gone = all.len().saturating_sub(keep.unsigned_abs() as usize);
                all.drain(..gone);
            }
            Some(keep) => all.truncate(keep as usize),
        }
        Ok(Change::Set(Value::Array(all)))
    }
}

fn order(value: &Value) -> Result<Order, Error> {
    match value {
        Value::Map(_) => Ok(Order::By(Sort::parse(value)?)),
        _ => match types::integer(value) {
            Some(1) => Ok(Order::Whole(false)),
            Some(-1) => Ok(Order::Whole(true)),
            _ => Err(Error::bad("The $sort element value must be either 1 or -1")),
        },
    }
}

pub(super) fn add_to_set(
    old: Option<&Value>,
    values: &[Value],
    path: &str,
) -> Result<Change, Error> {
    let mut all = elements(old, path, "$addToSet")?.to_vec();
    for value in values {
        if !all.iter().any(|it| order::equal(it, value)) {
            all.push(value.clone());
        }
    }
    Ok(Change::Set(Value::Array(all)))
}

pub(super) fn pop(old: Option<&Value>, first: bool, path: &str) -> Result<Change, Error> {
    let Some(old) = old else { return Ok(Change::Keep) };
    if !matches!(old, Value::Array(_)) {
        let kind = type_name(Some(old));
        let message = format!("Path '{path}' contains an element of non-array type '{kind}'");
        return Err(Error::new(Code::TYPE_MISMATCH, message));
    }
    let mut all = elements(Some(old), path, "$pop")?.to_vec();
    if first && !all.is_empty() {
        all.remove(0);
    } else {
        all.pop();
    }
    Ok(Change::Set(Value::Array(all)))
}

/// Which elements go.
#[derive(Clone, Debug)]
pub enum Pull {
    /// Those that equal one of these.
    Values(Vec<Value>),
    /// Maps that pass.
    Maps(Match),
    /// Elements that pass: the filter is about a field "e" that holds the element.
    Tests(Match),
}

impl Pull {
    pub(super) fn parse(value: &Value) -> Result<Pull, Error> {
        let tested = |test: &Value| {
            Ok(Pull::Tests(Match::parse(&Value::Map(vec![("e".into(), test.clone())]))?))
        };
        match value {
            Value::Map(fields) if fields.first().is_some_and(|(name, _)| is_test(name)) => {
                tested(value)
            }
            Value::Map(_) => Ok(Pull::Maps(Match::parse(value)?)),
            Value::Regex(..) => tested(value),
            _ => Ok(Pull::Values(vec![value.clone()])),
        }
    }

    pub(super) fn change(&self, old: Option<&Value>, path: &str) -> Result<Change, Error> {
        let Some(old) = old else { return Ok(Change::Keep) };
        let Value::Array(elements) = old else {
            let message = format!("Cannot apply $pull to a non-array value at '{path}'");
            return Err(Error::bad(message));
        };
        let mut kept = Vec::new();
        for element in elements {
            let goes = match self {
                Pull::Values(values) => values.iter().any(|it| order::equal(it, element)),
                Pull::Maps(filter) => {
                    matches!(element, Value::Map(_)) && filter.matches(element)?
                }
                Pull::Tests(filter) => {
                    filter.matches(&Value::Map(vec![("e".into(), element.clone())]))?
                }
            };
            if !goes {
                kept.push(element.clone());
            }
        }
        Ok(Change::Set(Value::Array(kept)))
    }
}

fn is_test(name: &str) -> bool {
    name.starts_with('$') && !matches!(name, "$and" | "$or" | "$nor" | "$expr")
}
