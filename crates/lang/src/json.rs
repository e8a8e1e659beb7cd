//! Values as extended JSON: what MongoDB's tools read and write, one document per line.
//!
//! Relaxed text shows numbers and dates as people write them and loses widths; canonical text loses
//! nothing. Both are read.

use kumiko_base::{Value, hex, time};
use kumiko_document::number::{decimal_parse, decimal_text};
use serde_json::Value as Json;

use crate::{Code, Error};

/// How much the text says about types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Numbers and dates as people write them.
    Relaxed,
    /// Nothing is lost.
    Canonical,
}

/// Reads one value.
///
/// # Errors
///
/// `FailedToParse` if the text is not JSON or a `$`-object is wrong.
pub fn parse(text: &str) -> Result<Value, Error> {
    let json: Json = serde_json::from_str(text)
        .map_err(|error| Error::new(Code::FAILED_TO_PARSE, format!("not JSON: {error}")))?;
    from_json(&json)
}

/// Writes one value on one line.
pub fn show(value: &Value, style: Style) -> String {
    to_json(value, style).to_string()
}

fn from_json(json: &Json) -> Result<Value, Error> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(it) => Value::Bool(*it),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => i32::try_from(whole).map_or(Value::I64(whole), Value::I32),
            (None, Some(float)) => Value::F64(float),
            (None, None) => return Err(bad("a number is out of range")),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(list) => Value::Array(list.iter().map(from_json).collect::<Result<_, _>>()?),
        Json::Object(fields) => {
            if let Some(special) = special(fields)? {
                return Ok(special);
            }
            let fields = fields.iter().map(|(name, value)| Ok((name.clone(), from_json(value)?)));
            Value::Map(fields.collect::<Result<_, Error>>()?)
        }
    })
}

fn bad(why: &str) -> Error {
    Error::new(Code::FAILED_TO_PARSE, why)
}

/// The value that a `$`-object stands for; `None` if it is an ordinary map.
fn special(fields: &serde_json::Map<String, Json>) -> Result<Option<Value>, Error> {
    let Some((name, inside)) = fields.iter().next() else { return Ok(None) };
    let text = inside.as_str();
    let wrong = || bad(&format!("the value of {name} is wrong"));
    if fields.len() == 2 && name == "$binary" {
        return Err(wrong());
    }
    if fields.len() != 1 {
        return Ok(None);
    }
    let value = match (name.as_str(), text) {
        ("$oid", Some(text)) => {
            hex::parse(text).and_then(|bytes| <[u8; 12]>::try_from(bytes).ok()).map(Value::ObjectId)
        }
        ("$numberInt", Some(text)) => text.parse().ok().map(Value::I32),
        ("$numberLong", Some(text)) => text.parse().ok().map(Value::I64),
        ("$numberDouble", Some(text)) => text.parse().ok().map(Value::F64),
        ("$numberDecimal", Some(text)) => decimal_parse(text).map(Value::Decimal),
        ("$uuid", Some(text)) => hex::parse_uuid(text).map(Value::Uuid),
        ("$code", Some(text)) => Some(Value::Code(text.into())),
        ("$symbol", Some(text)) => Some(Value::Text(text.into())),
        ("$date", Some(text)) => time::parse(text).map(Value::DateTime),
        ("$date", None) => match from_json(inside)? {
            Value::I64(ms) => Some(Value::DateTime(ms)),
            Value::I32(ms) => Some(Value::DateTime(i64::from(ms))),
            _ => None,
        },
        ("$minKey", _) => Some(Value::MinKey),
        ("$maxKey", _) => Some(Value::MaxKey),
        ("$timestamp", _) => {
            let part =
                |name: &str| inside.get(name)?.as_u64().and_then(|it| u32::try_from(it).ok());
            part("t").zip(part("i")).map(|(seconds, counter)| Value::Timestamp(seconds, counter))
        }
        ("$regularExpression", _) => {
            let part = |name: &str| Some(inside.get(name)?.as_str()?.to_string());
            part("pattern").zip(part("options")).map(|(it, options)| Value::Regex(it, options))
        }
        ("$binary", _) => {
            let bytes = inside.get("base64").and_then(Json::as_str).and_then(base64_parse);
            let subtype = inside.get("subType").and_then(Json::as_str);
            let subtype = subtype.and_then(|it| u8::from_str_radix(it, 16).ok());
            bytes.zip(subtype).map(|(bytes, subtype)| binary(subtype, bytes))
        }
        _ => return Ok(None),
    };
    value.map(Some).ok_or_else(wrong)
}

/// Bytes with a subtype, in the form that values have.
pub fn binary(subtype: u8, bytes: Vec<u8>) -> Value {
    match (subtype, <[u8; 16]>::try_from(bytes)) {
        (4, Ok(uuid)) => Value::Uuid(uuid),
        (0, Ok(bytes)) => Value::Bytes(bytes.to_vec()),
        (0, Err(bytes)) => Value::Bytes(bytes),
        (subtype, Ok(bytes)) => Value::Binary(subtype, bytes.to_vec()),
        (subtype, Err(bytes)) => Value::Binary(subtype, bytes),
    }
}

fn to_json(value: &Value, style: Style) -> Json {
    let one =
        |name: &str, inside: Json| Json::Object([(name.to_string(), inside)].into_iter().collect());
    let text = |name: &str, inside: String| one(name, Json::String(inside));
    let bytes = |subtype: u8, bytes: &[u8]| {
        let inside = [
            ("base64".to_string(), Json::String(base64_show(bytes))),
            ("subType".to_string(), Json::String(format!("{subtype:02x}"))),
        ];
        one("$binary", Json::Object(inside.into_iter().collect()))
    };
    let canonical = style == Style::Canonical;
    match value {
        Value::Null => Json::Null,
        Value::Bool(it) => Json::Bool(*it),
        Value::Text(it) => Json::String(it.clone()),
        Value::RawText(it) => Json::String(String::from_utf8_lossy(it).into_owned()),
        Value::I64(it) if canonical => text("$numberLong", it.to_string()),
        Value::F64(it) => float(*it, canonical),
        Value::F32(it) => float(f64::from(*it), canonical),
        Value::Decimal(bytes) => text("$numberDecimal", decimal_text(bytes)),
        Value::Bytes(it) => bytes(0, it),
        Value::Binary(subtype, it) => bytes(*subtype, it),
        Value::Uuid(it) => bytes(4, it),
        Value::ObjectId(it) => text("$oid", hex::show(it)),
        Value::DateTime(ms) => match time::show(*ms).filter(|_| !canonical && 0 <= *ms) {
            Some(shown) => text("$date", shown),
            None => one("$date", text("$numberLong", ms.to_string())),
        },
        Value::Timestamp(seconds, counter) => {
            let inside =
                [("t".to_string(), (*seconds).into()), ("i".to_string(), (*counter).into())];
            one("$timestamp", Json::Object(inside.into_iter().collect()))
        }
        Value::Regex(pattern, options) => {
            let inside = [
                ("pattern".to_string(), Json::String(pattern.clone())),
                ("options".to_string(), Json::String(options.clone())),
            ];
            one("$regularExpression", Json::Object(inside.into_iter().collect()))
        }
        Value::Code(it) => text("$code", it.clone()),
        Value::MinKey => one("$minKey", 1.into()),
        Value::MaxKey => one("$maxKey", 1.into()),
        Value::Array(list) => Json::Array(list.iter().map(|it| to_json(it, style)).collect()),
        Value::Map(fields) => Json::Object(
            fields.iter().map(|(name, value)| (name.clone(), to_json(value, style))).collect(),
        ),
        _ => match value.as_int() {
            Some(whole) if canonical => text("$numberInt", whole.to_string()),
            Some(whole) => i64::try_from(whole).map_or(Json::Null, Into::into),
            None => Json::Null,
        },
    }
}

fn float(it: f64, canonical: bool) -> Json {
    let shown = match it {
        it if it.is_nan() => "NaN".to_string(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        it if canonical => format!("{it:?}"),
        it => return serde_json::Number::from_f64(it).map_or(Json::Null, Json::Number),
    };
    Json::Object([("$numberDouble".to_string(), Json::String(shown))].into_iter().collect())
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as base64, padded.
pub fn base64_show(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        for n in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * n)) as usize & 0x3F];
            text.push(if n <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Bytes from base64. `None` if it is none.
pub fn base64_parse(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if !text.len().is_multiple_of(4) || 2 < text.len() - digits.len() || digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.chunks(4) {
        let mut bits = 0_u32;
        for digit in chunk {
            let value = ALPHABET.iter().position(|it| it == digit)?;
            bits = (bits << 6) | value as u32;
        }
        bits <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}
