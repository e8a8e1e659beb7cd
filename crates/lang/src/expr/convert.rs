//! From one type to another.

use kumiko_base::{Value, hex, time};
use kumiko_document::number::{Number, decimal_parse, decimal_text};

use super::{NamedTable, Table, is_null};
use crate::Error;
use crate::types::{self, float, integer, type_name};

pub(super) const OPERATORS: Table = &[
    ("type", 1, 1, |it| Ok(Some(Value::Text(type_name(it[0].as_ref()).into())))),
    ("isNumber", 1, 1, |it| Ok(Some(Value::Bool(it[0].as_ref().is_some_and(types::is_number))))),
    ("toBool", 1, 1, |it| to(it, "bool")),
    ("toInt", 1, 1, |it| to(it, "int")),
    ("toLong", 1, 1, |it| to(it, "long")),
    ("toDouble", 1, 1, |it| to(it, "double")),
    ("toDecimal", 1, 1, |it| to(it, "decimal")),
    ("toString", 1, 1, |it| to(it, "string")),
    ("toDate", 1, 1, |it| to(it, "date")),
    ("toObjectId", 1, 1, |it| to(it, "objectId")),
];

pub(super) const NAMED: NamedTable =
    &[("convert", &["input", "to", "onError", "onNull"], |it| convert(it))];

type Given<'a> = &'a [Option<Value>];
type Result1 = Result<Option<Value>, Error>;

/// The code of a conversion that cannot be made.
const FAILURE: i32 = 241;

fn failure(message: impl Into<String>) -> Error {
    Error::location(FAILURE, message)
}

fn convert(given: Given<'_>) -> Result1 {
    let [input, to, on_error, on_null] = given else { return Ok(None) };
    let name = match to {
        Some(Value::Text(name)) => types::known_name(name),
        Some(number) => integer(number).and_then(types::name_of_number),
        None => None,
    };
    let Some(name) = name else { return Err(Error::bad("$convert: unknown type in 'to'")) };
    let Some(input) = input.as_ref().filter(|it| !is_null(Some(it))) else {
        return Ok(Some(on_null.clone().unwrap_or(Value::Null)));
    };
    match (change(input, name), on_error) {
        (Ok(value), _) => Ok(Some(value)),
        (Err(_), Some(value)) => Ok(Some(value.clone())),
        (Err(error), None) => Err(error),
    }
}

fn to(given: Given<'_>, name: &str) -> Result1 {
    match &given[0] {
        None | Some(Value::Null) => Ok(Some(Value::Null)),
        Some(value) => change(value, name).map(Some),
    }
}

fn change(value: &Value, name: &str) -> Result<Value, Error> {
    let from = type_name(Some(value));
    let unsupported = || {
        failure(format!(
            "Unsupported conversion from {from} to {name} in $convert with no onError value"
        ))
    };
    if from == name {
        return Ok(value.clone());
    }
    match name {
        "bool" => Ok(Value::Bool(types::truth(Some(value)))),
        "string" => text_of(value).map(Value::Text),
        "int" | "long" => whole(value, name).ok_or_else(unsupported)?,
        "double" => match value {
            Value::Text(text) => parse_float(text).map(Value::F64),
            Value::Bool(it) => Ok(Value::F64(f64::from(u8::from(*it)))),
            Value::DateTime(ms) => Ok(Value::F64(*ms as f64)),
            _ => float(value).map(Value::F64).ok_or_else(unsupported),
        },
        "decimal" => match value {
            Value::Text(text) => decimal_parse(text).map(Value::Decimal).ok_or_else(|| {
                failure(format!("Failed to parse number '{text}' in $convert with no onError value"))
            }),
            Value::Bool(it) => Ok(Value::Decimal(Number::from_i64(i64::from(*it)).to_decimal())),
            Value::DateTime(ms) => Ok(Value::Decimal(Number::from_i64(*ms).to_decimal())),
            _ => Number::of(value).map(|it| Value::Decimal(it.to_decimal())).ok_or_else(unsupported),
        },
        "date" => match value {
            Value::Text(text) => parse_date(text).map(Value::DateTime),
            Value::ObjectId(id) => {
                let seconds = u32::from_be_bytes([id[0], id[1], id[2], id[3]]);
                Ok(Value::DateTime(i64::from(seconds) * 1000))
            }
            Value::Timestamp(seconds, _) => Ok(Value::DateTime(i64::from(*seconds) * 1000)),
            Value::I64(_) | Value::F64(_) | Value::Decimal(_) => {
                float(value).map(|it| Value::DateTime(it as i64)).ok_or_else(unsupported)
            }
            _ => Err(unsupported()),
        },
        "objectId" => match value {
            Value::Text(text) => hex::parse(text)
                .and_then(|bytes| <[u8; 12]>::try_from(bytes).ok())
                .map(Value::ObjectId)
                .ok_or_else(|| {
                    failure(format!("Failed to parse objectId '{text}' in $convert with no onError value: Invalid string length for parsing to OID, expected 24 but found {}", text.len()))
                }),
            _ => Err(unsupported()),
        },
        _ => Err(unsupported()),
    }
}

/// Reads a date as people write it: RFC 3339, with or without time and zone.
pub(super) fn parse_date(text: &str) -> Result<i64, Error> {
    let plain = text.replace(' ', "T");
    let candidates = [plain.clone(), format!("{plain}Z"), format!("{plain}T00:00:00Z")];
    candidates.iter().find_map(|it| time::parse(it)).ok_or_else(|| {
        let message = format!("Error parsing date string '{text}'; the format is not known");
        failure(message)
    })
}

fn parse_float(text: &str) -> Result<f64, Error> {
    let plain = text.bytes().all(|it| it.is_ascii_digit() || b"+-.eE".contains(&it));
    text.parse()
        .ok()
        .filter(|_| plain || matches!(text, "NaN" | "Infinity" | "-Infinity"))
        .ok_or_else(|| {
            failure(format!("Failed to parse number '{text}' in $convert with no onError value"))
        })
}

fn whole(value: &Value, name: &str) -> Option<Result<Value, Error>> {
    let number = match value {
        Value::Text(text) => match text.parse::<i64>() {
            Ok(number) => Some(number),
            Err(_) => {
                return Some(Err(failure(format!(
                    "Failed to parse number '{text}' in $convert with no onError value"
                ))));
            }
        },
        Value::Bool(it) => Some(i64::from(*it)),
        Value::DateTime(ms) if name == "long" => Some(*ms),
        _ if types::is_number(value) => {
            let cut = float(value).filter(|it| it.abs() < 9.3e18).map(|it| it.trunc() as i64);
            integer(value).or(cut)
        }
        _ => return None,
    };
    let fitting = number.and_then(|it| match name {
        "int" => i32::try_from(it).ok().map(Value::I32),
        _ => Some(Value::I64(it)),
    });
    let message = "Conversion would overflow target type in $convert with no onError value";
    Some(fitting.ok_or_else(|| failure(message)))
}

/// A value as text, as `$toString` writes it.
pub fn text_of(value: &Value) -> Result<String, Error> {
    Ok(match value {
        Value::Text(text) => text.clone(),
        Value::Bool(it) => it.to_string(),
        Value::F64(it) => float_text(*it),
        Value::F32(it) => float_text(f64::from(*it)),
        Value::Decimal(bytes) => decimal_text(bytes),
        Value::ObjectId(id) => hex::show(id),
        Value::DateTime(ms) => date_text(*ms),
        _ => match integer(value).filter(|_| types::is_number(value)) {
            Some(number) => number.to_string(),
            None => {
                let from = type_name(Some(value));
                let message = format!(
                    "Unsupported conversion from {from} to string in $convert with no onError value"
                );
                return Err(failure(message));
            }
        },
    })
}

fn date_text(ms: i64) -> String {
    // Always with three digits of milliseconds.
    match time::show(ms - ms.rem_euclid(1000)) {
        Some(text) => {
            let stem = text.trim_end_matches('Z');
            let stem = stem.split('.').next().unwrap_or(stem);
            format!("{stem}.{:03}Z", ms.rem_euclid(1000))
        }
        None => ms.to_string(),
    }
}

fn float_text(it: f64) -> String {
    if it.is_nan() {
        return "NaN".into();
    }
    if it.is_infinite() {
        return if it < 0.0 { "-Infinity".into() } else { "Infinity".into() };
    }
    if it != 0.0 && (it.abs() < 1e-4 || 1e15 <= it.abs()) {
        format!("{it:e}")
    } else {
        it.to_string()
    }
}
