//! Updates from their documents.

use std::cmp::Ordering;

use kumiko_base::Value;
use kumiko_document::path::{field, place};

use super::{Operator, Update, array, conflict, walk};
use crate::pipeline::Pipeline;
use crate::types;
use crate::{Code, Error};

pub(super) fn update(update: &Value) -> Result<Update, Error> {
    match update {
        Value::Array(stages) => {
            let known = |stage: &Value| {
                let names =
                    ["$set", "$addFields", "$unset", "$project", "$replaceRoot", "$replaceWith"];
                names.iter().any(|name| field(stage, name).is_some())
            };
            if let Some(stage) = stages.iter().find(|it| !known(it)) {
                let name = match stage {
                    Value::Map(fields) => fields.first().map_or("", |(name, _)| name.as_str()),
                    _ => "",
                };
                let message = format!("{name} is not allowed to be used within an update");
                return Err(Error::new(Code::INVALID_OPTIONS, message));
            }
            Ok(Update::Pipeline(Pipeline::parse(stages)?))
        }
        Value::Map(fields) => match fields.iter().find(|(name, _)| name.starts_with('$')) {
            None => Ok(Update::Replace(update.clone())),
            Some(_) => operators(fields),
        },
        _ => {
            let message = "Update argument must be either an object or an array";
            Err(Error::new(Code::FAILED_TO_PARSE, message))
        }
    }
}

fn operators(fields: &[(String, Value)]) -> Result<Update, Error> {
    let mut all: Vec<(String, Operator)> = Vec::new();
    for (name, value) in fields {
        let Value::Map(targets) = value else {
            if !name.starts_with('$') {
                return Err(Error::new(
                    Code::FAILED_TO_PARSE,
                    format!(
                        "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
                    ),
                ));
            }
            let message =
                format!("Modifiers operate on fields but we found another type for {name}");
            return Err(Error::new(Code::FAILED_TO_PARSE, message));
        };
        for (path, value) in targets {
            check_path(path)?;
            if let Some(operator) = operator(name, path, value)? {
                check_free(&all, path)?;
                // What is renamed takes its place in the order by its new name.
                let at = match &operator {
                    Operator::Rename(_) => rename_target(value)?,
                    _ => path.clone(),
                };
                check_free(&all, &at)?;
                all.push((at, operator));
            }
        }
        // An operator without fields is fine; an unknown one is not.
        operator(name, "a", &Value::I32(1)).or_else(|error| {
            if error.message.starts_with("Unknown modifier") { Err(error) } else { Ok(None) }
        })?;
    }
    all.sort_by(|a, b| compare_paths(&a.0, &b.0));
    Ok(Update::Operators(all))
}

fn check_path(path: &str) -> Result<(), Error> {
    if path.is_empty() {
        let message = "An empty update path is not valid.";
        return Err(Error::new(Code::EMPTY_FIELD, message));
    }
    if path.split('.').any(str::is_empty) {
        let message =
            format!("The update path '{path}' contains an empty field name, which is not allowed.");
        return Err(Error::new(Code::EMPTY_FIELD, message));
    }
    if path.starts_with("$[") || path == "$" || path.starts_with("$.") {
        return Err(Error::bad(
            "Cannot have positional (i.e. '$') element in the first position in path",
        ));
    }
    Ok(())
}

fn check_free(all: &[(String, Operator)], path: &str) -> Result<(), Error> {
    let touches = |other: &str| {
        other == path
            || walk::is_below(path, other)
            || walk::is_below(other, path)
            || mixes(path, other)
    };
    let taken = all.iter().any(|(other, operator)| {
        touches(other) || matches!(operator, Operator::Rename(from) if touches(from))
    });
    if taken { Err(conflict(path)) } else { Ok(()) }
}

/// Whether one path names all elements of an array where the other names one of them.
fn mixes(a: &str, b: &str) -> bool {
    let differ = a.split('.').zip(b.split('.')).find(|(a, b)| a != b);
    differ.is_some_and(|(a, b)| a.starts_with("$[") != b.starts_with("$["))
}

/// Places by number, everything else by its bytes.
fn compare_paths(a: &str, b: &str) -> Ordering {
    let mut pairs = a.split('.').zip(b.split('.')).map(|(a, b)| match (place(a), place(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.cmp(b),
    });
    pairs.find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn operator(name: &str, path: &str, value: &Value) -> Result<Option<Operator>, Error> {
    let numeric = || {
        if types::is_number(value) {
            return Ok(value.clone());
        }
        let what = if name == "$inc" { "increment" } else { "multiply" };
        let message = format!("Cannot {what} with non-numeric argument: {{{path}: ...}}");
        Err(Error::new(Code::TYPE_MISMATCH, message))
    };
    Ok(Some(match name {
        "$set" => Operator::Set(value.clone()),
        "$setOnInsert" => Operator::SetOnInsert(value.clone()),
        "$unset" => Operator::Unset,
        "$inc" => Operator::Increment(numeric()?),
        "$mul" => Operator::Multiply(numeric()?),
        "$min" => Operator::Min(value.clone()),
        "$max" => Operator::Max(value.clone()),
        "$currentDate" => now(value)?,
        "$rename" => rename(path, value)?,
        "$push" => Operator::Push(array::Push::parse(value)?),
        "$addToSet" => Operator::AddToSet(each(value)?),
        "$pull" => Operator::Pull(array::Pull::parse(value)?),
        "$pullAll" => match value {
            Value::Array(values) => Operator::Pull(array::Pull::Values(values.clone())),
            _ => return Err(Error::bad("$pullAll requires an array argument")),
        },
        "$pop" => match types::integer(value) {
            Some(1) => Operator::Pop(false),
            Some(-1) => Operator::Pop(true),
            _ => {
                let message = "$pop expects 1 or -1";
                return Err(Error::new(Code::FAILED_TO_PARSE, message));
            }
        },
        "$bit" => bits(value)?,
        _ => {
            let message = format!(
                "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
            );
            return Err(Error::new(Code::FAILED_TO_PARSE, message));
        }
    }))
}

fn now(value: &Value) -> Result<Operator, Error> {
    match (value, field(value, "$type")) {
        (Value::Bool(_), _) => Ok(Operator::Now(false)),
        (_, Some(Value::Text(name))) if name == "date" => Ok(Operator::Now(false)),
        (_, Some(Value::Text(name))) if name == "timestamp" => Ok(Operator::Now(true)),
        _ => {
            let message = "$currentDate takes true, or {$type: 'date'} or {$type: 'timestamp'}";
            Err(Error::bad(message))
        }
    }
}

fn rename(path: &str, value: &Value) -> Result<Operator, Error> {
    let to = &rename_target(value)?;
    check_path(to)?;
    if to == path || walk::is_below(to, path) || walk::is_below(path, to) {
        let message = format!("The source and target field for $rename must differ: {path}");
        return Err(Error::bad(message));
    }
    if path.contains('$') || to.contains('$') {
        return Err(Error::bad("The fields of $rename may not be dynamic"));
    }
    Ok(Operator::Rename(path.into()))
}

fn rename_target(value: &Value) -> Result<String, Error> {
    match value {
        Value::Text(to) => Ok(to.clone()),
        _ => Err(Error::bad("The 'to' field for $rename must be a string")),
    }
}

fn each(value: &Value) -> Result<Vec<Value>, Error> {
    match (field(value, "$each"), value) {
        (Some(Value::Array(values)), _) => Ok(values.clone()),
        (Some(_), _) => {
            let message = "The argument to $each in $addToSet must be an array";
            Err(Error::new(Code::TYPE_MISMATCH, message))
        }
        (None, value) => Ok(vec![value.clone()]),
    }
}

fn bits(value: &Value) -> Result<Operator, Error> {
    if let Value::Map(fields) = value
        && let [(kind, by @ (Value::I32(_) | Value::I64(_)))] = fields.as_slice()
        && matches!(kind.as_str(), "and" | "or" | "xor")
    {
        return Ok(Operator::Bits(kind.clone(), by.clone()));
    }
    Err(Error::bad("$bit takes one of and, or, xor with an integer"))
}

/// The one name that an array filter is about.
pub(super) fn filter_name(fields: &[(String, Value)]) -> Option<String> {
    let mut name: Option<String> = None;
    for (path, value) in fields {
        let one = match (path.as_str(), value) {
            ("$and" | "$or" | "$nor", Value::Array(list)) => {
                list.iter().find_map(|it| match it {
                    Value::Map(fields) => filter_name(fields),
                    _ => None,
                })?
            }
            _ => path.split('.').next()?.to_string(),
        };
        if name.as_ref().is_some_and(|it| *it != one) {
            return None;
        }
        name = Some(one);
    }
    name
}
