//! Expressions from their documents.

use kumiko_base::Value;
use kumiko_document::path::field;

use super::{Expr, date, named_operator, operator};
use crate::{Code, Error};

/// How deep expressions may nest.
const DEPTH_MAX: usize = 100;

pub(super) fn expression(value: &Value, depth: usize) -> Result<Expr, Error> {
    if DEPTH_MAX < depth {
        return Err(Error::bad("the expression is nested too deep"));
    }
    match value {
        Value::Text(text) => variable(text),
        Value::Array(elements) => {
            let elements = elements.iter().map(|it| expression(it, depth + 1));
            Ok(Expr::Array(elements.collect::<Result<_, Error>>()?))
        }
        Value::Map(fields) => map(fields, depth),
        _ => Ok(Expr::Constant(value.clone())),
    }
}

fn variable(text: &str) -> Result<Expr, Error> {
    let path = |text: &str| -> Result<Vec<String>, Error> {
        let parts: Vec<String> = text.split('.').map(Into::into).collect();
        if parts.iter().any(String::is_empty) {
            let message = "FieldPath must not end with a '.' or hold an empty field name.";
            return Err(Error::location(40353, message));
        }
        Ok(parts)
    };
    if let Some(name) = text.strip_prefix("$$") {
        let (name, rest) = name.split_once('.').map_or((name, None), |(it, rest)| (it, Some(rest)));
        if name.is_empty() {
            return Err(Error::new(Code::FAILED_TO_PARSE, "empty variable names are not allowed"));
        }
        let known = name.starts_with(|it: char| it.is_ascii_lowercase() || !it.is_ascii())
            || matches!(name, "ROOT" | "CURRENT" | "NOW" | "REMOVE" | "CLUSTER_TIME")
            || matches!(name, "KEEP" | "PRUNE" | "DESCEND" | "USER_ROLES");
        if !known {
            let message = format!("'{name}' starts with an invalid character for a variable name");
            return Err(Error::new(Code::FAILED_TO_PARSE, message));
        }
        return Ok(Expr::Path(name.into(), rest.map(path).transpose()?.unwrap_or_default()));
    }
    match text.strip_prefix('$') {
        Some("") => Err(Error::location(16872, "'$' by itself is not a valid FieldPath")),
        Some(rest) => Ok(Expr::Path("CURRENT".into(), path(rest)?)),
        None => Ok(Expr::Constant(Value::Text(text.into()))),
    }
}

fn map(fields: &[(String, Value)], depth: usize) -> Result<Expr, Error> {
    if let Some((name, value)) = fields.iter().find(|(name, _)| name.starts_with('$')) {
        if fields.len() != 1 {
            let message =
                format!("an object representing an expression must have exactly one field: {name}");
            return Err(Error::location(15983, message));
        }
        return call(&name[1..], value, depth);
    }
    let fields = fields.iter().map(|(name, value)| {
        if name.contains('.') {
            let message = "FieldPath field names may not contain '.' in an object expression";
            return Err(Error::location(16412, message));
        }
        Ok((name.clone(), expression(value, depth + 1)?))
    });
    Ok(Expr::Map(fields.collect::<Result<_, Error>>()?))
}

fn call(name: &str, value: &Value, depth: usize) -> Result<Expr, Error> {
    let list = || match value {
        Value::Array(elements) => elements.iter().map(|it| expression(it, depth + 1)).collect(),
        _ => Ok(vec![expression(value, depth + 1)?]),
    };
    match name {
        "literal" | "const" => Ok(Expr::Constant(value.clone())),
        "and" => Ok(Expr::And(list()?)),
        "or" => Ok(Expr::Or(list()?)),
        "ifNull" => {
            let all: Vec<Expr> = list()?;
            if all.len() < 2 {
                let message = format!("$ifNull needs at least two arguments, had: {}", all.len());
                return Err(Error::location(1_257_300, message));
            }
            Ok(Expr::IfNull(all))
        }
        "cond" => condition(value, depth),
        "switch" => switch(value, depth),
        "let" => with_variables(value, depth),
        "map" | "filter" | "reduce" => over(name, value, depth),
        "getField" if field(value, "input").is_none() => {
            let name = field(value, "field").unwrap_or(value);
            let current = Value::Text("$$CURRENT".into());
            let whole = [("field".into(), name.clone()), ("input".into(), current)];
            known("getField", &Value::Map(whole.to_vec()), list)
        }
        _ => known(name, value, list),
    }
}

fn known(
    name: &str,
    value: &Value,
    list: impl Fn() -> Result<Vec<Expr>, Error>,
) -> Result<Expr, Error> {
    if let Some((operator, names)) = named_operator(name)
        && let Value::Map(fields) = value
        && (fields.iter().any(|(it, _)| names.contains(&it.as_str()))
            || self::operator(name).is_none())
    {
        if let Some((other, _)) = fields.iter().find(|(it, _)| !names.contains(&it.as_str())) {
            let message = format!("unrecognized argument to ${name}: {other}");
            return Err(Error::location(31_022, message));
        }
        let argument = |it: &&str| match field(value, it) {
            Some(value) => expression(value, 1),
            None => Ok(Expr::Path("REMOVE".into(), Vec::new())),
        };
        return Ok(Expr::Call(operator, names.iter().map(argument).collect::<Result<_, Error>>()?));
    }
    if let Some(operator) = date::part(name) {
        let arguments = list()?;
        return Ok(Expr::Call(operator, arguments));
    }
    let Some((operator, min, max)) = operator(name) else {
        let message = format!("Unrecognized expression '${name}'");
        return Err(Error::location(168, message));
    };
    let arguments = list()?;
    let count = arguments.len();
    if count < min || max < count {
        let message = if min == max {
            format!("Expression ${name} takes exactly {min} arguments. {count} were passed in.")
        } else {
            format!(
                "Expression ${name} takes at least {min} arguments, and at most {max}, but {count} \
                 were passed in."
            )
        };
        return Err(Error::location(if min == max { 16020 } else { 28667 }, message));
    }
    Ok(Expr::Call(operator, arguments))
}

fn part(value: &Value, owner: &str, name: &str, depth: usize) -> Result<Expr, Error> {
    match field(value, name) {
        Some(part) => expression(part, depth + 1),
        None => Err(Error::location(16_879, format!("Missing '{name}' parameter to ${owner}"))),
    }
}

fn condition(value: &Value, depth: usize) -> Result<Expr, Error> {
    let (when, then, otherwise) = match value {
        Value::Array(parts) => match parts.as_slice() {
            [when, then, otherwise] => (
                expression(when, depth + 1)?,
                expression(then, depth + 1)?,
                expression(otherwise, depth + 1)?,
            ),
            _ => {
                let count = parts.len();
                let message =
                    format!("Expression $cond takes exactly 3 arguments. {count} were passed in.");
                return Err(Error::location(16020, message));
            }
        },
        Value::Map(fields) => {
            let known = |name: &str| matches!(name, "if" | "then" | "else");
            if let Some((name, _)) = fields.iter().find(|(name, _)| !known(name)) {
                let message = format!("Unrecognized parameter to $cond: {name}");
                return Err(Error::location(17083, message));
            }
            (
                part(value, "cond", "if", depth)?,
                part(value, "cond", "then", depth)?,
                part(value, "cond", "else", depth)?,
            )
        }
        _ => {
            let message = "Expression $cond takes exactly 3 arguments. 1 were passed in.";
            return Err(Error::location(16020, message));
        }
    };
    Ok(Expr::Switch(vec![(when, then)], Some(Box::new(otherwise))))
}

fn switch(value: &Value, depth: usize) -> Result<Expr, Error> {
    let Some(Value::Array(branches)) = field(value, "branches") else {
        return Err(Error::location(40061, "$switch expected an array for 'branches'"));
    };
    if branches.is_empty() {
        return Err(Error::location(40068, "$switch requires at least one branch."));
    }
    let branches = branches.iter().map(|branch| {
        Ok((part(branch, "switch", "case", depth)?, part(branch, "switch", "then", depth)?))
    });
    let branches = branches.collect::<Result<_, Error>>()?;
    let default = field(value, "default").map(|it| expression(it, depth + 1)).transpose()?;
    Ok(Expr::Switch(branches, default.map(Box::new)))
}

fn with_variables(value: &Value, depth: usize) -> Result<Expr, Error> {
    let Some(Value::Map(variables)) = field(value, "vars") else {
        return Err(Error::location(16876, "Missing 'vars' parameter to $let"));
    };
    let variables = variables
        .iter()
        .map(|(name, value)| Ok((name.clone(), expression(value, depth + 1)?)))
        .collect::<Result<_, Error>>()?;
    Ok(Expr::Let(variables, Box::new(part(value, "let", "in", depth)?)))
}

fn over(name: &str, value: &Value, depth: usize) -> Result<Expr, Error> {
    let input = Box::new(part(value, name, "input", depth)?);
    let variable = match field(value, "as") {
        Some(Value::Text(name)) => name.clone(),
        _ => "this".into(),
    };
    Ok(match name {
        "map" => Expr::MapOver(input, variable, Box::new(part(value, name, "in", depth)?)),
        "filter" => {
            let limit = field(value, "limit").map(|it| expression(it, depth + 1)).transpose()?;
            let condition = Box::new(part(value, name, "cond", depth)?);
            Expr::Keep(input, variable, condition, limit.map(Box::new))
        }
        _ => Expr::Reduce(
            input,
            Box::new(part(value, name, "initialValue", depth)?),
            Box::new(part(value, name, "in", depth)?),
        ),
    })
}
