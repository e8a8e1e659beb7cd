//! Text.

use kumiko_base::Value;

use super::{NamedTable, Table, convert, is_null};
use crate::Error;
use crate::pattern::Pattern;
use crate::types::{integer, type_name};

pub(super) const OPERATORS: Table = &[
    ("concat", 0, usize::MAX, |it| concat(it)),
    ("toLower", 1, 1, |it| cased(it, "$toLower", str::to_lowercase)),
    ("toUpper", 1, 1, |it| cased(it, "$toUpper", str::to_uppercase)),
    ("split", 2, 2, |it| split(it)),
    ("strLenBytes", 1, 1, |it| length(it, "$strLenBytes", str::len)),
    ("strLenCP", 1, 1, |it| length(it, "$strLenCP", |text| text.chars().count())),
    ("substr", 3, 3, |it| substring_bytes(it)),
    ("substrBytes", 3, 3, |it| substring_bytes(it)),
    ("substrCP", 3, 3, |it| substring_characters(it)),
    ("strcasecmp", 2, 2, |it| compare_folded(it)),
    ("indexOfBytes", 2, 4, |it| index_of(it, false)),
    ("indexOfCP", 2, 4, |it| index_of(it, true)),
];

pub(super) const NAMED: NamedTable = &[
    ("trim", &["input", "chars"], |it| trim(it, true, true)),
    ("ltrim", &["input", "chars"], |it| trim(it, true, false)),
    ("rtrim", &["input", "chars"], |it| trim(it, false, true)),
    ("replaceOne", &["input", "find", "replacement"], |it| replace(it, "$replaceOne", 1)),
    ("replaceAll", &["input", "find", "replacement"], |it| replace(it, "$replaceAll", usize::MAX)),
    ("regexMatch", &["input", "regex", "options"], |it| {
        let found = find(it, "$regexMatch", 1)?;
        Ok(Some(Value::Bool(!found.is_empty())))
    }),
    ("regexFind", &["input", "regex", "options"], |it| {
        Ok(Some(find(it, "$regexFind", 1)?.pop().unwrap_or(Value::Null)))
    }),
    ("regexFindAll", &["input", "regex", "options"], |it| {
        Ok(Some(Value::Array(find(it, "$regexFindAll", usize::MAX)?)))
    }),
];

type Given<'a> = &'a [Option<Value>];
type Result1 = Result<Option<Value>, Error>;
const NULL: Result1 = Ok(Some(Value::Null));

fn text<'a>(value: Option<&'a Value>, name: &str, code: i32) -> Result<Option<&'a str>, Error> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(other) => {
            let kind = type_name(Some(other));
            Err(Error::location(code, format!("{name} only supports strings, not {kind}")))
        }
    }
}

fn concat(given: Given<'_>) -> Result1 {
    let mut all = String::new();
    for it in given {
        match text(it.as_ref(), "$concat", 16702)? {
            Some(part) => all.push_str(part),
            None => return NULL,
        }
    }
    Ok(Some(Value::Text(all)))
}

fn cased(given: Given<'_>, _name: &str, change: fn(&str) -> String) -> Result1 {
    let text = match &given[0] {
        None | Some(Value::Null) => String::new(),
        Some(value) => convert::text_of(value)?,
    };
    Ok(Some(Value::Text(change(&text))))
}

fn split(given: Given<'_>) -> Result1 {
    let (Some(whole), Some(by)) =
        (text(given[0].as_ref(), "$split", 40085)?, text(given[1].as_ref(), "$split", 40086)?)
    else {
        return NULL;
    };
    if by.is_empty() {
        return Err(Error::location(40087, "$split requires a non-empty separator"));
    }
    Ok(Some(Value::Array(whole.split(by).map(|it| Value::Text(it.into())).collect())))
}

fn length(given: Given<'_>, name: &str, measure: fn(&str) -> usize) -> Result1 {
    match &given[0] {
        Some(Value::Text(text)) => Ok(Some(Value::I32(measure(text) as i32))),
        other => {
            let kind = type_name(other.as_ref());
            let message = format!("{name} requires a string argument, found: {kind}");
            Err(Error::location(34473, message))
        }
    }
}

fn bounds(given: Given<'_>) -> Result<(i64, i64), Error> {
    let number = |n: usize| {
        given[n]
            .as_ref()
            .and_then(integer)
            .ok_or_else(|| Error::location(16034, "the bounds of a substring must be numbers"))
    };
    Ok((number(1)?, number(2)?))
}

fn as_text(value: Option<&Value>) -> Result<String, Error> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(value) => convert::text_of(value),
    }
}

fn substring_bytes(given: Given<'_>) -> Result1 {
    let whole = as_text(given[0].as_ref())?;
    let (from, count) = bounds(given)?;
    let Ok(from) = usize::try_from(from) else {
        return Err(Error::location(50752, "$substrBytes: starting index must be non-negative"));
    };
    let end = usize::try_from(count).map_or(whole.len(), |it| from.saturating_add(it));
    let (from, end) = (from.min(whole.len()), end.min(whole.len()));
    match whole.get(from..end) {
        Some(part) => Ok(Some(Value::Text(part.into()))),
        None => Err(Error::location(28656, "$substrBytes: a bound is inside a UTF-8 character")),
    }
}

fn substring_characters(given: Given<'_>) -> Result1 {
    let whole = as_text(given[0].as_ref())?;
    let (from, count) = bounds(given)?;
    let (Ok(from), Ok(count)) = (usize::try_from(from), usize::try_from(count)) else {
        return Err(Error::location(34455, "$substrCP: the bounds must be non-negative"));
    };
    Ok(Some(Value::Text(whole.chars().skip(from).take(count).collect())))
}

fn compare_folded(given: Given<'_>) -> Result1 {
    let (a, b) = (as_text(given[0].as_ref())?, as_text(given[1].as_ref())?);
    Ok(Some(Value::I32(a.to_uppercase().cmp(&b.to_uppercase()) as i32)))
}

fn index_of(given: Given<'_>, characters: bool) -> Result1 {
    let Some(whole) = text(given[0].as_ref(), "$indexOf", 40091)? else { return NULL };
    let Some(part) = text(given[1].as_ref(), "$indexOf", 40092)? else {
        return Err(Error::location(40092, "$indexOf requires a string as the second argument"));
    };
    let length = if characters { whole.chars().count() } else { whole.len() };
    let bound = |n: usize, default: usize| {
        let given = given.get(n).and_then(Option::as_ref).and_then(integer);
        given.map_or(default, |it| it.max(0) as usize)
    };
    let (from, to) = (bound(2, 0), bound(3, length).min(length));
    let byte = |at: usize| {
        if !characters {
            return at;
        }
        whole.char_indices().nth(at).map_or(whole.len(), |(byte, _)| byte)
    };
    if to < from {
        return Ok(Some(Value::I32(-1)));
    }
    let (start, end) = (byte(from), byte(to));
    let found = whole.get(start..end).and_then(|it| it.find(part)).map(|at| at + start);
    let place = |at: usize| if characters { whole[..at].chars().count() } else { at };
    Ok(Some(Value::I32(found.map_or(-1, |at| place(at) as i32))))
}

fn trim(given: Given<'_>, start: bool, end: bool) -> Result1 {
    let Some(whole) = text(given[0].as_ref(), "$trim", 50699)? else { return NULL };
    let own = match &given[1] {
        None => None,
        Some(Value::Null) => return NULL,
        Some(value) => text(Some(value), "$trim", 50700)?,
    };
    let gone = |it: char| match own {
        Some(own) => own.contains(it),
        None => it.is_whitespace() || it == '\0',
    };
    let mut kept = whole;
    if start {
        kept = kept.trim_start_matches(gone);
    }
    if end {
        kept = kept.trim_end_matches(gone);
    }
    Ok(Some(Value::Text(kept.into())))
}

fn replace(given: Given<'_>, name: &str, count: usize) -> Result1 {
    let input = text(given[0].as_ref(), name, 51746)?;
    let find = text(given[1].as_ref(), name, 51745)?;
    let by = text(given[2].as_ref(), name, 51744)?;
    let (Some(input), Some(find), Some(by)) = (input, find, by) else { return NULL };
    Ok(Some(Value::Text(input.replacen(find, by, count))))
}

fn find(given: Given<'_>, name: &str, count: usize) -> Result<Vec<Value>, Error> {
    let Some(input) = text(given[0].as_ref(), name, 51104)? else { return Ok(Vec::new()) };
    let options = text(given[2].as_ref(), name, 51106)?;
    let pattern = match &given[1] {
        Some(Value::Text(source)) => Pattern::new(source, options.unwrap_or(""))?,
        Some(Value::Regex(source, own)) => Pattern::new(source, options.unwrap_or(own))?,
        other if is_null(other.as_ref()) => return Ok(Vec::new()),
        _ => {
            return Err(Error::location(
                51105,
                format!("{name} needs 'regex' to be a string or regex"),
            ));
        }
    };
    let show = |found: regex::Captures<'_>| {
        let whole = found.get(0).map(|it| (it.as_str(), it.start())).unwrap_or_default();
        let index = input[..whole.1].chars().count() as i32;
        let captures = found.iter().skip(1).map(|it| match it {
            Some(it) => Value::Text(it.as_str().into()),
            None => Value::Null,
        });
        Value::Map(vec![
            ("match".into(), Value::Text(whole.0.into())),
            ("idx".into(), Value::I32(index)),
            ("captures".into(), Value::Array(captures.collect())),
        ])
    };
    Ok(pattern.regex().captures_iter(input).take(count).map(show).collect())
}
