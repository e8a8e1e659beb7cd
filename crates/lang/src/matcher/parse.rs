//! Filters from their documents.

use kumiko_base::Value;
use kumiko_document::Test;

use super::{Bits, Leaf, Match};
use crate::expr::Expr;
use crate::pattern::Pattern;
use crate::{Code, Error, types};

/// How deep filters may nest.
const DEPTH_MAX: usize = 100;

pub(super) fn filter(filter: &Value) -> Result<Match, Error> {
    parse(filter, 0)
}

fn parse(filter: &Value, depth: usize) -> Result<Match, Error> {
    if DEPTH_MAX < depth {
        return Err(Error::bad("the filter is nested too deep"));
    }
    let Value::Map(fields) = filter else {
        return Err(Error::bad("a filter must be an object"));
    };
    let mut all = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        match name.strip_prefix('$') {
            Some(operator) => all.extend(top_level(operator, value, depth)?),
            None => all.extend(of_path(name, value, depth)?),
        }
    }
    Ok(Match::All(all))
}

fn top_level(operator: &str, value: &Value, depth: usize) -> Result<Option<Match>, Error> {
    let list = || match value {
        Value::Array(list) if list.is_empty() => {
            Err(Error::bad("$and/$or/$nor must be a nonempty array"))
        }
        Value::Array(list) => list
            .iter()
            .map(|it| match it {
                Value::Map(_) => parse(it, depth + 1),
                _ => Err(Error::bad("$or/$and/$nor entries need to be full objects")),
            })
            .collect::<Result<Vec<Match>, Error>>(),
        _ => Err(Error::bad(format!("${operator} must be an array"))),
    };
    Ok(Some(match operator {
        "and" => Match::All(list()?),
        "or" => Match::Any(list()?),
        "nor" => Match::None(list()?),
        "expr" => Match::Expr(Box::new(Expr::parse(value)?)),
        "comment" => return Ok(None),
        "alwaysTrue" => return Ok(None),
        "alwaysFalse" => Match::Any(Vec::new()),
        "text" | "where" | "jsonSchema" | "sampleRate" => {
            return Err(Error::new(
                Code::NOT_IMPLEMENTED,
                format!("${operator} is not offered by this server"),
            ));
        }
        _ => {
            return Err(Error::bad(format!(
                "unknown top level operator: ${operator}. If you have a field name that starts \
                 with a '$' symbol, consider using $getField or $setField."
            )));
        }
    }))
}

fn of_path(path: &str, value: &Value, depth: usize) -> Result<Vec<Match>, Error> {
    let leaf = |leaf| Match::Leaf(path.into(), leaf);
    match value {
        Value::Regex(source, options) => {
            Ok(vec![leaf(Leaf::Regex(Pattern::new(source, options)?))])
        }
        Value::Map(fields) if fields.first().is_some_and(|(name, _)| name.starts_with('$')) => {
            if matches!(fields[0].0.as_str(), "$ref" | "$id" | "$db") {
                return Ok(vec![leaf(Leaf::Test(Test::Eq(value.clone())))]);
            }
            Ok(leaves(fields, depth)?.into_iter().map(leaf).collect())
        }
        _ => Ok(vec![leaf(Leaf::Test(Test::Eq(value.clone())))]),
    }
}

/// The tests of `{$gt: 1, $lt: 5}`.
pub(super) fn leaves(fields: &[(String, Value)], depth: usize) -> Result<Vec<Leaf>, Error> {
    if DEPTH_MAX < depth {
        return Err(Error::bad("the filter is nested too deep"));
    }
    let mut leaves = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        match name.as_str() {
            "$regex" => {
                let options = fields.iter().find(|(it, _)| it == "$options").map(|(_, it)| it);
                leaves.push(regex(value, options)?);
            }
            "$options" => {
                if !fields.iter().any(|(it, _)| it == "$regex") {
                    return Err(Error::bad("$options needs a $regex"));
                }
            }
            "$all" => leaves.extend(all(value, depth)?),
            _ => leaves.push(operator(name, value, depth)?),
        }
    }
    Ok(leaves)
}

fn operator(name: &str, value: &Value, depth: usize) -> Result<Leaf, Error> {
    let compared = |make: fn(Value) -> Test| {
        let test = make(value.clone());
        match value {
            Value::MinKey | Value::MaxKey => Ok(Leaf::Edge(test)),
            Value::Regex(..) => {
                Err(Error::bad(format!("Can't have RegEx as arg to predicate over field '{name}'")))
            }
            _ => Ok(Leaf::Test(test)),
        }
    };
    match name {
        "$eq" => Ok(Leaf::Test(Test::Eq(value.clone()))),
        "$ne" => match value {
            Value::Regex(..) => Err(Error::bad("Can't have regex as arg to $ne.")),
            _ => Ok(Leaf::Not(vec![Leaf::Test(Test::Eq(value.clone()))])),
        },
        "$gt" => compared(Test::Gt),
        "$gte" => compared(Test::Ge),
        "$lt" => compared(Test::Lt),
        "$lte" => compared(Test::Le),
        "$in" => one_of(name, value),
        "$nin" => Ok(Leaf::Not(vec![one_of(name, value)?])),
        "$exists" => Ok(Leaf::Test(Test::Exists(types::truth(Some(value))))),
        "$type" => Ok(Leaf::Type(type_names(value)?)),
        "$size" => size(value),
        "$mod" => modulo(value),
        "$not" => not(value, depth),
        "$elemMatch" => element(value, depth),
        "$bitsAllSet" => Ok(Leaf::Bits(Bits::AllSet, mask(value)?)),
        "$bitsAllClear" => Ok(Leaf::Bits(Bits::AllClear, mask(value)?)),
        "$bitsAnySet" => Ok(Leaf::Bits(Bits::AnySet, mask(value)?)),
        "$bitsAnyClear" => Ok(Leaf::Bits(Bits::AnyClear, mask(value)?)),
        _ => Err(Error::bad(format!("unknown operator: {name}"))),
    }
}

fn one_of(name: &str, value: &Value) -> Result<Leaf, Error> {
    let Value::Array(list) = value else {
        return Err(Error::bad(format!("{name} needs an array")));
    };
    let (mut values, mut patterns) = (Vec::new(), Vec::new());
    for it in list {
        match it {
            Value::Regex(source, options) => patterns.push(Pattern::new(source, options)?),
            Value::Map(fields) if fields.first().is_some_and(|(it, _)| it.starts_with('$')) => {
                return Err(Error::bad(format!("cannot nest $ under {name}")));
            }
            _ => values.push(it.clone()),
        }
    }
    Ok(Leaf::In(values, patterns))
}

fn regex(value: &Value, options: Option<&Value>) -> Result<Leaf, Error> {
    let given = match options {
        None => None,
        Some(Value::Text(text)) => Some(text.as_str()),
        Some(_) => return Err(Error::bad("$options has to be a string")),
    };
    Ok(Leaf::Regex(match value {
        Value::Text(source) => Pattern::new(source, given.unwrap_or(""))?,
        Value::Regex(source, own) => {
            if given.is_some() && !own.is_empty() {
                let message = "options set in both $regex and $options";
                return Err(Error::location(51075, message));
            }
            Pattern::new(source, given.unwrap_or(own))?
        }
        _ => return Err(Error::bad("$regex has to be a string")),
    }))
}

fn all(value: &Value, depth: usize) -> Result<Vec<Leaf>, Error> {
    let Value::Array(list) = value else { return Err(Error::bad("$all needs an array")) };
    if list.is_empty() {
        // Nothing holds all of nothing.
        return Ok(vec![Leaf::In(Vec::new(), Vec::new())]);
    }
    list.iter()
        .map(|it| match it {
            Value::Map(fields) if fields.first().is_some_and(|(it, _)| it == "$elemMatch") => {
                element(&fields[0].1, depth)
            }
            Value::Map(fields) if fields.first().is_some_and(|(it, _)| it.starts_with('$')) => {
                Err(Error::bad("no $ expressions in $all"))
            }
            Value::Regex(source, options) => Ok(Leaf::Regex(Pattern::new(source, options)?)),
            _ => Ok(Leaf::Test(Test::Eq(it.clone()))),
        })
        .collect()
}

fn element(value: &Value, depth: usize) -> Result<Leaf, Error> {
    let Value::Map(fields) = value else { return Err(Error::bad("$elemMatch needs an Object")) };
    let tests = fields.first().is_some_and(|(name, _)| {
        name.starts_with('$') && !matches!(name.as_str(), "$and" | "$or" | "$nor" | "$expr")
    });
    if tests {
        return Ok(Leaf::Element(leaves(fields, depth + 1)?));
    }
    Ok(Leaf::ElementMap(Box::new(parse(value, depth + 1)?)))
}

fn not(value: &Value, depth: usize) -> Result<Leaf, Error> {
    match value {
        Value::Regex(source, options) => {
            Ok(Leaf::Not(vec![Leaf::Regex(Pattern::new(source, options)?)]))
        }
        Value::Map(fields) if fields.is_empty() => Err(Error::bad("$not cannot be empty")),
        Value::Map(fields) => Ok(Leaf::Not(leaves(fields, depth + 1)?)),
        _ => Err(Error::bad("$not needs a regex or a document")),
    }
}

fn size(value: &Value) -> Result<Leaf, Error> {
    match types::integer(value) {
        _ if !types::is_number(value) => {
            Err(Error::bad("Failed to parse $size. Expected a number in: $size"))
        }
        Some(size) if size < 0 => {
            Err(Error::bad("Failed to parse $size. Expected a non-negative number in: $size"))
        }
        Some(size) => Ok(Leaf::Size(size)),
        None => Err(Error::bad("Failed to parse $size. Expected an integer: $size")),
    }
}

fn modulo(value: &Value) -> Result<Leaf, Error> {
    let Value::Array(pair) = value else {
        return Err(Error::bad("malformed mod, needs to be an array"));
    };
    let [divisor, remainder] = pair.as_slice() else {
        let which = if pair.len() < 2 { "not enough elements" } else { "too many elements" };
        return Err(Error::bad(format!("malformed mod, {which}")));
    };
    let number = |it: &Value| types::float(it).map(|it| it.trunc() as i64);
    match (number(divisor), number(remainder)) {
        (Some(0), _) => Err(Error::bad("divisor cannot be 0")),
        (Some(divisor), Some(remainder)) => Ok(Leaf::Mod(divisor, remainder)),
        (None, _) => Err(Error::bad("malformed mod, divisor not a number")),
        (_, None) => Err(Error::bad("malformed mod, remainder not a number")),
    }
}

fn type_names(value: &Value) -> Result<Vec<&'static str>, Error> {
    let one = |value: &Value| match value {
        Value::Text(name) => types::known_name(name)
            .ok_or_else(|| Error::bad(format!("Unknown type name alias: {name}"))),
        _ => match types::integer(value) {
            Some(number) if types::is_number(value) => types::name_of_number(number)
                .ok_or_else(|| Error::bad(format!("Invalid numerical type code: {number}"))),
            _ => {
                let message = "type must be represented as a number or a string";
                Err(Error::new(Code::TYPE_MISMATCH, message))
            }
        },
    };
    match value {
        Value::Array(list) => list.iter().map(one).collect(),
        _ => Ok(vec![one(value)?]),
    }
}

fn mask(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Array(positions) => {
            positions.iter().try_fold(0_i64, |mask, it| match types::integer(it) {
                Some(at @ 0..=63) => Ok(mask | (1_i64 << at)),
                _ => Err(Error::bad("bit positions must be from 0 to 63")),
            })
        }
        _ => types::integer(value)
            .filter(|it| 0 <= *it && types::is_number(value))
            .ok_or_else(|| Error::bad("a bit mask is a non-negative number or an array")),
    }
}
