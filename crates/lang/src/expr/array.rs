//! Arrays, sets and maps.

use kumiko_base::Value;
use kumiko_document::order;
use kumiko_document::path::field;

use super::{NamedTable, Table, is_null};
use crate::sort::Sort;
use crate::types::{self, integer, type_name};
use crate::{Code, Error};

pub(super) const OPERATORS: Table = &[
    ("size", 1, 1, |it| size(it)),
    ("arrayElemAt", 2, 2, |it| element_at(it)),
    ("first", 1, 1, |it| end(it, "$first", <[Value]>::first)),
    ("last", 1, 1, |it| end(it, "$last", <[Value]>::last)),
    ("concatArrays", 0, usize::MAX, |it| concat(it)),
    ("in", 2, 2, |it| contains(it)),
    ("indexOfArray", 2, 4, |it| index_of(it)),
    ("isArray", 1, 1, |it| Ok(Some(Value::Bool(matches!(it[0], Some(Value::Array(_))))))),
    ("reverseArray", 1, 1, |it| reverse(it)),
    ("slice", 2, 3, |it| slice(it)),
    ("range", 2, 3, |it| range(it)),
    ("objectToArray", 1, 1, |it| object_to_array(it)),
    ("arrayToObject", 1, 1, |it| array_to_object(it)),
    ("mergeObjects", 0, usize::MAX, |it| merge(it)),
    ("setUnion", 0, usize::MAX, |it| set_union(it)),
    ("setIntersection", 0, usize::MAX, |it| set_intersection(it)),
    ("setDifference", 2, 2, |it| set_difference(it)),
    ("setEquals", 2, usize::MAX, |it| set_equals(it)),
    ("setIsSubset", 2, 2, |it| set_is_subset(it)),
    ("anyElementTrue", 1, 1, |it| elements_true(it, "$anyElementTrue", false)),
    ("allElementsTrue", 1, 1, |it| elements_true(it, "$allElementsTrue", true)),
];

pub(super) const NAMED: NamedTable = &[
    ("sortArray", &["input", "sortBy"], |it| sort_array(it)),
    ("zip", &["inputs", "useLongestLength", "defaults"], |it| zip(it)),
    ("getField", &["field", "input"], |it| get_field(it)),
    ("setField", &["field", "input", "value"], |it| set_field(it)),
    ("unsetField", &["field", "input"], |it| set_field(&[it[0].clone(), it[1].clone(), None])),
];

type Given<'a> = &'a [Option<Value>];
type Result1 = Result<Option<Value>, Error>;
const NULL: Result1 = Ok(Some(Value::Null));

/// An array, or `None` for null and nothing.
fn array<'a>(
    value: Option<&'a Value>,
    name: &str,
    code: i32,
) -> Result<Option<&'a [Value]>, Error> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(elements)) => Ok(Some(elements)),
        Some(other) => {
            let kind = type_name(Some(other));
            let message = format!("{name} needs an array, and got {kind}");
            Err(Error::location(code, message))
        }
    }
}

fn size(given: Given<'_>) -> Result1 {
    match &given[0] {
        Some(Value::Array(elements)) => Ok(Some(Value::I32(elements.len() as i32))),
        other => {
            let kind = type_name(other.as_ref());
            let message =
                format!("The argument to $size must be an array, but was of type: {kind}");
            Err(Error::location(17124, message))
        }
    }
}

fn element_at(given: Given<'_>) -> Result1 {
    if is_null(given[1].as_ref()) {
        return NULL;
    }
    let Some(elements) = array(given[0].as_ref(), "$arrayElemAt", 28689)? else { return NULL };
    let Some(at) = given[1].as_ref().and_then(integer) else {
        let message = "$arrayElemAt's second argument must be a 32-bit integer";
        return Err(Error::location(28690, message));
    };
    let at = if at < 0 { at + elements.len() as i64 } else { at };
    Ok(usize::try_from(at).ok().and_then(|at| elements.get(at)).cloned())
}

fn end(given: Given<'_>, name: &str, of: fn(&[Value]) -> Option<&Value>) -> Result1 {
    let Some(elements) = array(given[0].as_ref(), name, 28689)? else { return NULL };
    Ok(of(elements).cloned())
}

fn concat(given: Given<'_>) -> Result1 {
    let mut all = Vec::new();
    for it in given {
        match array(it.as_ref(), "$concatArrays", 28664)? {
            Some(elements) => all.extend_from_slice(elements),
            None => return NULL,
        }
    }
    Ok(Some(Value::Array(all)))
}

fn contains(given: Given<'_>) -> Result1 {
    let Some(Value::Array(elements)) = &given[1] else {
        let kind = type_name(given[1].as_ref());
        let message = format!("$in requires an array as a second argument, found: {kind}");
        return Err(Error::location(40081, message));
    };
    let found = given[0].as_ref().is_some_and(|it| elements.iter().any(|e| order::equal(e, it)));
    Ok(Some(Value::Bool(found)))
}

fn index_of(given: Given<'_>) -> Result1 {
    let Some(elements) = array(given[0].as_ref(), "$indexOfArray", 40090)? else { return NULL };
    let bound = |n: usize, default: usize| {
        let given = given.get(n).and_then(Option::as_ref).and_then(integer);
        given.map_or(default, |it| it.max(0) as usize).min(elements.len())
    };
    let (from, to) = (bound(2, 0), bound(3, elements.len()));
    let found =
        (from..to).find(|n| given[1].as_ref().is_some_and(|it| order::equal(it, &elements[*n])));
    Ok(Some(Value::I32(found.map_or(-1, |n| n as i32))))
}

fn reverse(given: Given<'_>) -> Result1 {
    let Some(elements) = array(given[0].as_ref(), "$reverseArray", 34435)? else { return NULL };
    Ok(Some(Value::Array(elements.iter().rev().cloned().collect())))
}

fn slice(given: Given<'_>) -> Result1 {
    if given.iter().any(|it| is_null(it.as_ref())) {
        return NULL;
    }
    let Some(elements) = array(given[0].as_ref(), "$slice", 28724)? else { return NULL };
    let number = |n: usize| {
        given[n].as_ref().and_then(integer).ok_or_else(|| {
            Error::location(28725, "the arguments of $slice must be 32-bit integers")
        })
    };
    let length = elements.len() as i64;
    let (from, count) = if given.len() == 3 {
        let (from, count) = (number(1)?, number(2)?);
        if count <= 0 {
            return Err(Error::location(28729, "the third argument of $slice must be positive"));
        }
        (if from < 0 { (length + from).max(0) } else { from.min(length) }, count)
    } else {
        let count = number(1)?;
        if count < 0 { ((length + count).max(0), length) } else { (0, count) }
    };
    let kept = elements.iter().skip(from as usize).take(count as usize);
    Ok(Some(Value::Array(kept.cloned().collect())))
}

/// The most elements that `$range` makes.
const RANGE_MAX: i64 = 1_000_000;

fn range(given: Given<'_>) -> Result1 {
    let number = |n: usize, default: i64| match given.get(n) {
        None => Ok(default),
        Some(it) => it.as_ref().and_then(integer).ok_or_else(|| {
            Error::location(34443, "$range requires numeric arguments that are 32-bit integers")
        }),
    };
    let (from, to, step) = (number(0, 0)?, number(1, 0)?, number(2, 1)?);
    if step == 0 {
        return Err(Error::location(34449, "$range requires a non-zero step value"));
    }
    if RANGE_MAX < (to - from) / step {
        return Err(Error::new(Code::MEMORY_EXCEEDED, "$range makes too many elements"));
    }
    let mut values = Vec::new();
    let mut at = from;
    while (0 < step && at < to) || (step < 0 && to < at) {
        values.push(Value::I32(at as i32));
        at += step;
    }
    Ok(Some(Value::Array(values)))
}

fn object_to_array(given: Given<'_>) -> Result1 {
    match &given[0] {
        None | Some(Value::Null) => NULL,
        Some(Value::Map(fields)) => {
            let pairs = fields.iter().map(|(name, value)| {
                Value::Map(vec![
                    ("k".into(), Value::Text(name.clone())),
                    ("v".into(), value.clone()),
                ])
            });
            Ok(Some(Value::Array(pairs.collect())))
        }
        Some(other) => {
            let kind = type_name(Some(other));
            let message = format!("$objectToArray requires a document input, found: {kind}");
            Err(Error::location(40390, message))
        }
    }
}

fn array_to_object(given: Given<'_>) -> Result1 {
    let Some(elements) = array(given[0].as_ref(), "$arrayToObject", 40386)? else { return NULL };
    let mut fields: Vec<(String, Value)> = Vec::new();
    for element in elements {
        let (name, value) = match element {
            Value::Array(pair) if pair.len() == 2 => (Some(&pair[0]), Some(&pair[1])),
            Value::Map(_) => (field(element, "k"), field(element, "v")),
            _ => (None, None),
        };
        let (Some(Value::Text(name)), Some(value)) = (name, value) else {
            let message = "$arrayToObject needs pairs of a string and a value";
            return Err(Error::location(40392, message));
        };
        put(&mut fields, name, value.clone());
    }
    Ok(Some(Value::Map(fields)))
}

fn put(fields: &mut Vec<(String, Value)>, name: &str, value: Value) {
    match fields.iter_mut().find(|(it, _)| it == name) {
        Some((_, old)) => *old = value,
        None => fields.push((name.into(), value)),
    }
}

fn merge(given: Given<'_>) -> Result1 {
    let all: Vec<Option<&Value>> = match given {
        [Some(Value::Array(list))] => list.iter().map(Some).collect(),
        _ => given.iter().map(Option::as_ref).collect(),
    };
    let mut fields = Vec::new();
    for it in all {
        match it {
            None | Some(Value::Null) => {}
            Some(Value::Map(more)) => {
                for (name, value) in more {
                    put(&mut fields, name, value.clone());
                }
            }
            Some(other) => {
                let kind = type_name(Some(other));
                let message = format!("$mergeObjects requires object inputs, but got {kind}");
                return Err(Error::location(40400, message));
            }
        }
    }
    Ok(Some(Value::Map(fields)))
}

fn sets<'a>(given: Given<'a>, name: &str) -> Result<Option<Vec<&'a [Value]>>, Error> {
    given.iter().map(|it| array(it.as_ref(), name, 17043)).collect()
}

fn distinct<'a>(values: impl IntoIterator<Item = &'a Value>) -> Vec<Value> {
    let mut set: Vec<Value> = values.into_iter().cloned().collect();
    set.sort_by(order::compare);
    set.dedup_by(|a, b| order::equal(a, b));
    set
}

fn has(set: &[Value], value: &Value) -> bool {
    set.iter().any(|it| order::equal(it, value))
}

fn set_union(given: Given<'_>) -> Result1 {
    let Some(sets) = sets(given, "$setUnion")? else { return NULL };
    Ok(Some(Value::Array(distinct(sets.into_iter().flatten()))))
}

fn set_intersection(given: Given<'_>) -> Result1 {
    let Some(sets) = sets(given, "$setIntersection")? else { return NULL };
    let Some((first, rest)) = sets.split_first() else { return Ok(Some(Value::Array(Vec::new()))) };
    let common = first.iter().filter(|it| rest.iter().all(|set| has(set, it)));
    Ok(Some(Value::Array(distinct(common))))
}

fn set_difference(given: Given<'_>) -> Result1 {
    let Some(sets) = sets(given, "$setDifference")? else { return NULL };
    let mut left: Vec<Value> = Vec::new();
    for value in sets[0] {
        if !has(sets[1], value) && !has(&left, value) {
            left.push(value.clone());
        }
    }
    Ok(Some(Value::Array(left)))
}

fn need<'a>(found: Option<Vec<&'a [Value]>>, name: &str) -> Result<Vec<&'a [Value]>, Error> {
    found.ok_or_else(|| Error::location(17044, format!("All operands of {name} must be arrays.")))
}

fn set_equals(given: Given<'_>) -> Result1 {
    let sets = need(sets(given, "$setEquals")?, "$setEquals")?;
    let first = distinct(sets[0]);
    let same = sets[1..].iter().all(|set| {
        let other = distinct(*set);
        other.len() == first.len() && other.iter().all(|it| has(&first, it))
    });
    Ok(Some(Value::Bool(same)))
}

fn set_is_subset(given: Given<'_>) -> Result1 {
    let sets = need(sets(given, "$setIsSubset")?, "$setIsSubset")?;
    Ok(Some(Value::Bool(sets[0].iter().all(|it| has(sets[1], it)))))
}

fn elements_true(given: Given<'_>, name: &str, all: bool) -> Result1 {
    let Some(elements) = array(given[0].as_ref(), name, 17041)? else {
        return Err(Error::location(17041, format!("{name}'s argument must be an array")));
    };
    let mut truths = elements.iter().map(|it| types::truth(Some(it)));
    Ok(Some(Value::Bool(if all { truths.all(|it| it) } else { truths.any(|it| it) })))
}

fn sort_array(given: Given<'_>) -> Result1 {
    let Some(elements) = array(given[0].as_ref(), "$sortArray", 2_942_504)? else { return NULL };
    let mut sorted = elements.to_vec();
    match &given[1] {
        Some(by @ Value::Map(_)) => {
            let sort = Sort::parse(by)?;
            sorted.sort_by(|a, b| sort.compare(a, b));
        }
        Some(by) if integer(by) == Some(1) => sorted.sort_by(order::compare),
        Some(by) if integer(by) == Some(-1) => sorted.sort_by(|a, b| order::compare(b, a)),
        _ => {
            return Err(Error::location(2_942_507, "$sortArray needs sortBy: 1, -1 or a document"));
        }
    }
    Ok(Some(Value::Array(sorted)))
}

fn zip(given: Given<'_>) -> Result1 {
    let Some(inputs) = array(given[0].as_ref(), "$zip", 34461)? else { return NULL };
    let mut lists = Vec::new();
    for input in inputs {
        match array(Some(input), "$zip", 34468)? {
            Some(elements) => lists.push(elements),
            None => return NULL,
        }
    }
    let lengths = lists.iter().map(|it| it.len());
    let longest = types::truth(given[1].as_ref());
    let length = if longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
    let defaults = array(given[2].as_ref(), "$zip", 34462)?.unwrap_or_default();
    let row = |n: usize| {
        let cell = |(at, list): (usize, &&[Value])| {
            list.get(n).or(defaults.get(at)).cloned().unwrap_or(Value::Null)
        };
        Value::Array(lists.iter().enumerate().map(cell).collect())
    };
    Ok(Some(Value::Array((0..length).map(row).collect())))
}

fn field_name(value: Option<&Value>) -> Result<&str, Error> {
    match value {
        Some(Value::Text(name)) => Ok(name),
        _ => Err(Error::location(5_654_602, "the name of a field must be a constant string")),
    }
}

fn get_field(given: Given<'_>) -> Result1 {
    let name = field_name(given[0].as_ref())?;
    match &given[1] {
        Some(Value::Null) => NULL,
        Some(map) => Ok(field(map, name).cloned()),
        None => Ok(None),
    }
}

fn set_field(given: Given<'_>) -> Result1 {
    let name = field_name(given[0].as_ref())?;
    let mut fields = match &given[1] {
        None | Some(Value::Null) => return NULL,
        Some(Value::Map(fields)) => fields.clone(),
        Some(_) => return Err(Error::location(4_161_105, "$setField requires an object input")),
    };
    match &given[2] {
        Some(value) => put(&mut fields, name, value.clone()),
        None => fields.retain(|(it, _)| it != name),
    }
    Ok(Some(Value::Map(fields)))
}
