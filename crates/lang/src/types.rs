//! Names and numbers of types, truth, and integers out of numbers of any type.

use kumiko_base::Value;
use kumiko_document::number::Number;

/// The name that `$type` gives a value; missing values have the name "missing".
pub fn type_name(value: Option<&Value>) -> &'static str {
    let Some(value) = value else { return "missing" };
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::I8(_) | Value::U8(_) | Value::I16(_) | Value::U16(_) | Value::I32(_) => "int",
        Value::U32(_) | Value::I64(_) | Value::U64(_) => "long",
        Value::F32(_) | Value::F64(_) => "double",
        Value::Decimal(_) => "decimal",
        Value::Text(_) | Value::RawText(_) => "string",
        Value::Bytes(_) | Value::Binary(..) | Value::Uuid(_) => "binData",
        Value::DateTime(_) => "date",
        Value::ObjectId(_) => "objectId",
        Value::Timestamp(..) => "timestamp",
        Value::Regex(..) => "regex",
        Value::Code(_) => "javascript",
        Value::MinKey => "minKey",
        Value::MaxKey => "maxKey",
        Value::Array(_) => "array",
        _ => "object",
    }
}

/// The name of a type's number.
pub fn name_of_number(number: i64) -> Option<&'static str> {
    Some(match number {
        -1 => "minKey",
        1 => "double",
        2 => "string",
        3 => "object",
        4 => "array",
        5 => "binData",
        6 => "undefined",
        7 => "objectId",
        8 => "bool",
        9 => "date",
        10 => "null",
        11 => "regex",
        12 => "dbPointer",
        13 => "javascript",
        14 => "symbol",
        15 => "javascriptWithScope",
        16 => "int",
        17 => "timestamp",
        18 => "long",
        19 => "decimal",
        127 => "maxKey",
        _ => return None,
    })
}

/// A known type's name, as a static text; "number" stands for four of them.
pub fn known_name(name: &str) -> Option<&'static str> {
    if name == "number" {
        return Some("number");
    }
    (-1..=127).filter_map(name_of_number).find(|it| *it == name)
}

/// Whether a condition with this value holds.
pub fn truth(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(value) => match Number::of(value) {
            Some(number) => number.compare(Number::from_i64(0)).is_ne(),
            None => true,
        },
    }
}

/// Whether this is a number.
pub fn is_number(value: &Value) -> bool {
    matches!(type_name(Some(value)), "int" | "long" | "double" | "decimal")
}

/// The integer that a number of any type holds.
pub fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::I32(it) => Some(i64::from(*it)),
        Value::I64(it) => Some(*it),
        _ => Number::of(value).and_then(Number::to_i64),
    }
}

/// The number as a float.
pub fn float(value: &Value) -> Option<f64> {
    match value {
        Value::F64(it) => Some(*it),
        Value::I32(it) => Some(f64::from(*it)),
        Value::I64(it) => Some(*it as f64),
        _ => Number::of(value).map(Number::to_f64),
    }
}

/// About how many bytes a value takes in memory.
pub fn size(value: &Value) -> usize {
    let inside = match value {
        Value::Text(text) | Value::Code(text) => text.len(),
        Value::RawText(bytes) | Value::Bytes(bytes) | Value::Binary(_, bytes) => bytes.len(),
        Value::Array(elements) => elements.iter().map(size).sum(),
        Value::Map(fields) => {
            fields.iter().map(|(name, value)| name.len() + 24 + size(value)).sum()
        }
        _ => 0,
    };
    32 + inside
}
