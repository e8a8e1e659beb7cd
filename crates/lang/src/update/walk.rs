//! Ways into a document that is being changed.

use kumiko_base::Value;
use kumiko_document::path::{field, place};

use super::Situation;
use crate::{Code, Error};

/// The longest array that an update may make by naming a place beyond its end.
const PADDING_MAX: usize = 1_500_000;

/// What happens to the value at a path.
pub(super) enum Change {
    Keep,
    Set(Value),
    Remove,
}

type Changer<'a> = &'a mut dyn FnMut(Option<&Value>) -> Result<Change, Error>;

/// Changes what is at `path`; makes the maps on the way if something is set there.
pub(super) fn modify(value: &mut Value, path: &str, change: Changer<'_>) -> Result<(), Error> {
    let (part, rest) = match path.split_once('.') {
        Some((part, rest)) => (part, Some(rest)),
        None => (path, None),
    };
    match value {
        Value::Map(fields) => {
            let at = fields.iter().position(|(name, _)| name == part);
            match (at, rest) {
                (Some(at), Some(rest)) => modify(&mut fields[at].1, rest, change),
                (Some(at), None) => {
                    match change(Some(&fields[at].1))? {
                        Change::Keep => {}
                        Change::Set(new) => fields[at].1 = new,
                        Change::Remove => drop(fields.remove(at)),
                    }
                    Ok(())
                }
                (None, rest) => {
                    if let Change::Set(new) = change(None)? {
                        fields.push((part.into(), wrapped(rest, new)));
                    }
                    Ok(())
                }
            }
        }
        Value::Array(elements) => in_array(elements, part, rest, change),
        _ => blocked(part, change),
    }
}

/// The path leads through something that has no parts. Only removing nothing is fine there.
fn blocked(part: &str, change: Changer<'_>) -> Result<(), Error> {
    match change(None)? {
        Change::Remove => Ok(()),
        Change::Set(_) | Change::Keep => Err(not_viable(part)),
    }
}

fn in_array(
    elements: &mut Vec<Value>,
    part: &str,
    rest: Option<&str>,
    change: Changer<'_>,
) -> Result<(), Error> {
    let Some(at) = place(part) else { return blocked(part, change) };
    match (elements.get_mut(at), rest) {
        (Some(element), Some(rest)) => modify(element, rest, change),
        (Some(element), None) => {
            match change(Some(element))? {
                Change::Keep => {}
                Change::Set(new) => *element = new,
                Change::Remove => *element = Value::Null,
            }
            Ok(())
        }
        (None, rest) => {
            if let Change::Set(new) = change(None)? {
                if PADDING_MAX < at - elements.len() {
                    let message = "can't backfill array to larger than 1500000 elements";
                    return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
                }
                elements.resize(at, Value::Null);
                elements.push(wrapped(rest, new));
            }
            Ok(())
        }
    }
}

fn wrapped(rest: Option<&str>, value: Value) -> Value {
    match rest {
        None => value,
        Some(rest) => {
            rest.rsplit('.').fold(value, |inside, name| Value::Map(vec![(name.into(), inside)]))
        }
    }
}

fn not_viable(part: &str) -> Error {
    let message = format!("Cannot create field '{part}' in an element that is no document");
    Error::new(Code::PATH_NOT_VIABLE, message)
}

/// Whether `path` is below `other`.
pub(super) fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether an array is on the way to `path`.
pub(super) fn meets_array(document: &Value, path: &str) -> bool {
    let mut here = document;
    for part in path.split('.') {
        match here {
            Value::Array(_) => return true,
            _ => match field(here, part) {
                Some(next) => here = next,
                None => return false,
            },
        }
    }
    false
}

/// The paths that `path` stands for, with places in place of `$`, `$[]` and `$[name]`.
pub(super) fn places(
    document: &Value,
    path: &str,
    situation: &Situation<'_>,
) -> Result<Vec<String>, Error> {
    if !path.contains('$') {
        return Ok(vec![path.into()]);
    }
    let mut found: Vec<(String, Option<&Value>)> = vec![(String::new(), Some(document))];
    for part in path.split('.') {
        let mut next = Vec::new();
        for (so_far, value) in found {
            step(part, &so_far, value, path, situation, &mut next)?;
        }
        found = next;
    }
    Ok(found.into_iter().map(|(path, _)| path).collect())
}

fn step<'a>(
    part: &str,
    so_far: &str,
    value: Option<&'a Value>,
    path: &str,
    situation: &Situation<'_>,
    next: &mut Vec<(String, Option<&'a Value>)>,
) -> Result<(), Error> {
    let join = |part: &str| match so_far {
        "" => part.to_string(),
        _ => format!("{so_far}.{part}"),
    };
    let below = |part: &str| match value {
        Some(Value::Array(elements)) => place(part).and_then(|at| elements.get(at)),
        Some(value) => field(value, part),
        None => None,
    };
    if part == "$" {
        let Some(at) = situation.found else {
            let message = "The positional operator did not find the match needed from the query.";
            return Err(Error::bad(message));
        };
        let part = at.to_string();
        next.push((join(&part), below(&part)));
        return Ok(());
    }
    let Some(name) = part.strip_prefix("$[").and_then(|it| it.strip_suffix(']')) else {
        next.push((join(part), below(part)));
        return Ok(());
    };
    let elements = match value {
        Some(Value::Array(elements)) => elements,
        Some(_) => {
            let message = format!("Cannot apply array updates to non-array element {so_far}");
            return Err(Error::bad(message));
        }
        None => {
            let message = format!(
                "The path '{so_far}' must exist in the document in order to apply array updates."
            );
            return Err(Error::bad(message));
        }
    };
    let filter = match name {
        "" => None,
        _ => match situation.filters.iter().find(|(it, _)| it == name) {
            Some((_, filter)) => Some(filter),
            None => {
                let message =
                    format!("No array filter found for identifier '{name}' in path '{path}'");
                return Err(Error::bad(message));
            }
        },
    };
    for (at, element) in elements.iter().enumerate() {
        let wanted = match filter {
            None => true,
            Some(filter) => filter.matches(&Value::Map(vec![(name.into(), element.clone())]))?,
        };
        if wanted {
            next.push((join(&at.to_string()), Some(element)));
        }
    }
    Ok(())
}
