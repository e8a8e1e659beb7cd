//! Numbers, comparisons and truth.

use std::cmp::Ordering;

use kumiko_base::Value;
use kumiko_document::number::Number;

use super::{Table, is_null, same};
use crate::types::{self, float, integer, type_name};
use crate::{Code, Error};

pub(super) const OPERATORS: Table = &[
    ("add", 0, usize::MAX, |it| sum_up(it)),
    ("subtract", 2, 2, |it| subtract(it)),
    ("multiply", 0, usize::MAX, |it| product(it)),
    ("divide", 2, 2, |it| divide(it)),
    ("mod", 2, 2, |it| modulo(it)),
    ("abs", 1, 1, |it| rounded(it, "$abs", f64::abs)),
    ("ceil", 1, 1, |it| rounded(it, "$ceil", f64::ceil)),
    ("floor", 1, 1, |it| rounded(it, "$floor", f64::floor)),
    ("round", 1, 2, |it| to_places(it, "$round", round_half_even)),
    ("trunc", 1, 2, |it| to_places(it, "$trunc", f64::trunc)),
    ("sqrt", 1, 1, |it| sqrt(it)),
    ("exp", 1, 1, |it| real(it, "$exp", f64::exp)),
    ("ln", 1, 1, |it| real(it, "$ln", f64::ln)),
    ("log10", 1, 1, |it| real(it, "$log10", f64::log10)),
    ("log", 2, 2, |it| two(it, "$log", f64::log)),
    ("pow", 2, 2, |it| pow(it)),
    ("eq", 2, 2, |it| Ok(Some(compared(it, Ordering::is_eq)))),
    ("ne", 2, 2, |it| Ok(Some(compared(it, Ordering::is_ne)))),
    ("gt", 2, 2, |it| Ok(Some(compared(it, Ordering::is_gt)))),
    ("gte", 2, 2, |it| Ok(Some(compared(it, Ordering::is_ge)))),
    ("lt", 2, 2, |it| Ok(Some(compared(it, Ordering::is_lt)))),
    ("lte", 2, 2, |it| Ok(Some(compared(it, Ordering::is_le)))),
    ("cmp", 2, 2, |it| Ok(Some(Value::I32(same(it[0].as_ref(), it[1].as_ref()) as i32)))),
    ("not", 1, 1, |it| Ok(Some(Value::Bool(!types::truth(it[0].as_ref()))))),
    ("sum", 0, usize::MAX, |it| Ok(Some(sum_of(&flat(it))))),
    ("avg", 0, usize::MAX, |it| Ok(Some(average_of(&flat(it))))),
    ("min", 0, usize::MAX, |it| Ok(Some(extreme_of(&flat(it), Ordering::Less)))),
    ("max", 0, usize::MAX, |it| Ok(Some(extreme_of(&flat(it), Ordering::Greater)))),
];

type Given<'a> = &'a [Option<Value>];
type Result1 = Result<Option<Value>, Error>;

fn any_null(given: Given<'_>) -> bool {
    given.iter().any(|it| is_null(it.as_ref()))
}

const NULL: Result1 = Ok(Some(Value::Null));

fn compared(given: Given<'_>, wanted: fn(Ordering) -> bool) -> Value {
    Value::Bool(wanted(same(given[0].as_ref(), given[1].as_ref())))
}

/// Which of int, long, double and decimal a number is.
fn rank(value: &Value) -> u8 {
    match type_name(Some(value)) {
        "int" => 0,
        "long" => 1,
        "double" => 2,
        _ => 3,
    }
}

fn whole(number: i64, narrow: bool) -> Value {
    match i32::try_from(number) {
        Ok(number) if narrow => Value::I32(number),
        _ => Value::I64(number),
    }
}

fn arithmetic(
    a: &Value,
    b: &Value,
    integers: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
    decimals: fn(Number, Number) -> Number,
) -> Option<Value> {
    let (na, nb) = (Number::of(a)?, Number::of(b)?);
    Some(match rank(a).max(rank(b)) {
        3 => Value::Decimal(decimals(na, nb).to_decimal()),
        2 => Value::F64(floats(float(a)?, float(b)?)),
        wide => match integers(integer(a)?, integer(b)?) {
            Some(number) => whole(number, wide == 0),
            None => Value::F64(floats(float(a)?, float(b)?)),
        },
    })
}

/// The sum of two numbers, in the wider of their types. `None` if one is none.
pub fn add(a: &Value, b: &Value) -> Option<Value> {
    arithmetic(a, b, i64::checked_add, |a, b| a + b, Number::plus)
}

/// The product of two numbers, in the wider of their types. `None` if one is none.
pub fn multiply(a: &Value, b: &Value) -> Option<Value> {
    arithmetic(a, b, i64::checked_mul, |a, b| a * b, Number::times)
}

fn minus(a: &Value, b: &Value) -> Option<Value> {
    let decimals = |a: Number, b: Number| a.plus(b.times(Number::from_i64(-1)));
    arithmetic(a, b, i64::checked_sub, |a, b| a - b, decimals)
}

fn sum_up(given: Given<'_>) -> Result1 {
    let mut sum = Value::I32(0);
    let mut date = None;
    if any_null(given) {
        return NULL;
    }
    for value in given.iter().flatten() {
        if let Value::DateTime(ms) = value {
            if date.replace(*ms).is_some() {
                return Err(Error::location(16612, "only one date allowed in an $add expression"));
            }
            continue;
        }
        sum = add(&sum, value).ok_or_else(|| {
            let name = type_name(Some(value));
            let message = format!("$add only supports numeric or date types, not {name}");
            Error::new(Code::TYPE_MISMATCH, message)
        })?;
    }
    Ok(Some(match date {
        Some(ms) => Value::DateTime(ms.saturating_add(float(&sum).unwrap_or(0.0).round() as i64)),
        None => sum,
    }))
}

fn subtract(given: Given<'_>) -> Result1 {
    if any_null(given) {
        return NULL;
    }
    let [Some(a), Some(b)] = given else { return NULL };
    let result = match (a, b) {
        (Value::DateTime(a), Value::DateTime(b)) => Some(Value::I64(a.saturating_sub(*b))),
        (Value::DateTime(a), b) => {
            float(b).map(|it| Value::DateTime(a.saturating_sub(it.round() as i64)))
        }
        _ => minus(a, b),
    };
    result.map(Some).ok_or_else(|| {
        let names = (type_name(Some(b)), type_name(Some(a)));
        let message = format!("can't $subtract {} from {}", names.0, names.1);
        Error::new(Code::TYPE_MISMATCH, message)
    })
}

fn product(given: Given<'_>) -> Result1 {
    if any_null(given) {
        return NULL;
    }
    let mut result = Value::I32(1);
    for value in given.iter().flatten() {
        result = multiply(&result, value).ok_or_else(|| {
            let name = type_name(Some(value));
            let message = format!("$multiply only supports numeric types, not {name}");
            Error::new(Code::TYPE_MISMATCH, message)
        })?;
    }
    Ok(Some(result))
}

fn numbers<'a>(given: Given<'a>, name: &str) -> Result<Option<(&'a Value, &'a Value)>, Error> {
    if any_null(given) {
        return Ok(None);
    }
    let [Some(a), Some(b)] = given else { return Ok(None) };
    if types::is_number(a) && types::is_number(b) {
        return Ok(Some((a, b)));
    }
    let (a, b) = (type_name(Some(a)), type_name(Some(b)));
    let message = format!("{name} only supports numeric types, not {a} and {b}");
    Err(Error::new(Code::TYPE_MISMATCH, message))
}

fn divide(given: Given<'_>) -> Result1 {
    let Some((a, b)) = numbers(given, "$divide")? else { return NULL };
    if float(b) == Some(0.0) {
        return Err(Error::bad("can't $divide by zero"));
    }
    if rank(a).max(rank(b)) == 3 {
        let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) else { return NULL };
        return Ok(Some(Value::Decimal(a.over(b).to_decimal())));
    }
    let (a, b) = (float(a).unwrap_or(f64::NAN), float(b).unwrap_or(f64::NAN));
    Ok(Some(Value::F64(a / b)))
}

fn modulo(given: Given<'_>) -> Result1 {
    let Some((a, b)) = numbers(given, "$mod")? else { return NULL };
    if float(b) == Some(0.0) {
        return Err(Error::location(16610, "can't $mod by zero"));
    }
    let wide = rank(a).max(rank(b));
    if let (0 | 1, Some(a), Some(b)) = (wide, integer(a), integer(b)) {
        return Ok(Some(whole(a.wrapping_rem(b), wide == 0)));
    }
    let (a, b) = (float(a).unwrap_or(f64::NAN), float(b).unwrap_or(f64::NAN));
    let rest = a % b;
    Ok(Some(if wide == 3 {
        Value::Decimal(Number::from_f64(rest).to_decimal())
    } else {
        Value::F64(rest)
    }))
}

fn numeric<'a>(given: Given<'a>, name: &str) -> Result<Option<&'a Value>, Error> {
    match &given[0] {
        None | Some(Value::Null) => Ok(None),
        Some(value) if types::is_number(value) => Ok(Some(value)),
        Some(value) => {
            let kind = type_name(Some(value));
            Err(Error::location(28765, format!("{name} only supports numeric types, not {kind}")))
        }
    }
}

/// Keeps the type: integers stay as they are but for their sign.
fn rounded(given: Given<'_>, name: &str, change: fn(f64) -> f64) -> Result1 {
    let Some(value) = numeric(given, name)? else { return NULL };
    let changed = |value: &Value| change(float(value).unwrap_or(f64::NAN));
    Ok(Some(match rank(value) {
        narrow @ (0 | 1) => match integer(value) {
            Some(number) if name == "$abs" => match number.checked_abs() {
                Some(number) => whole(number, narrow == 0),
                None => return Err(Error::location(28680, "can't take $abs of long long min")),
            },
            _ => value.clone(),
        },
        2 => Value::F64(changed(value)),
        _ => Value::Decimal(Number::from_f64(changed(value)).to_decimal()),
    }))
}

fn round_half_even(it: f64) -> f64 {
    it.round_ties_even()
}

fn to_places(given: Given<'_>, name: &str, change: fn(f64) -> f64) -> Result1 {
    let Some(value) = numeric(given, name)? else { return NULL };
    let places = match given.get(1) {
        None => 0,
        Some(None | Some(Value::Null)) => return NULL,
        Some(Some(places)) => match integer(places) {
            Some(places @ -20..=100) => places as i32,
            _ => {
                let message = format!("cannot apply {name} with precision value out of range");
                return Err(Error::location(51083, message));
            }
        },
    };
    let unit = 10_f64.powi(places.abs());
    let at = |it: f64| {
        let moved = if 0 <= places { change(it * unit) / unit } else { change(it / unit) * unit };
        if moved.is_finite() { moved } else { it }
    };
    Ok(Some(match rank(value) {
        narrow @ (0 | 1) => match integer(value) {
            Some(number) if places < 0 => whole(at(number as f64) as i64, narrow == 0),
            _ => value.clone(),
        },
        2 => Value::F64(at(float(value).unwrap_or(f64::NAN))),
        _ => Value::Decimal(Number::from_f64(at(float(value).unwrap_or(f64::NAN))).to_decimal()),
    }))
}

fn real(given: Given<'_>, name: &str, function: fn(f64) -> f64) -> Result1 {
    let Some(value) = numeric(given, name)? else { return NULL };
    let number = float(value).unwrap_or(f64::NAN);
    if name != "$exp" && number <= 0.0 {
        let message = format!("{name}'s argument must be a positive number, but is {number}");
        return Err(Error::location(28766, message));
    }
    Ok(Some(Value::F64(function(number))))
}

fn sqrt(given: Given<'_>) -> Result1 {
    let Some(value) = numeric(given, "$sqrt")? else { return NULL };
    let number = float(value).unwrap_or(f64::NAN);
    if number < 0.0 {
        let message = "$sqrt's argument must be greater than or equal to 0";
        return Err(Error::location(28714, message));
    }
    Ok(Some(Value::F64(number.sqrt())))
}

fn two(given: Given<'_>, name: &str, function: fn(f64, f64) -> f64) -> Result1 {
    let Some((a, b)) = numbers(given, name)? else { return NULL };
    Ok(Some(Value::F64(function(float(a).unwrap_or(f64::NAN), float(b).unwrap_or(f64::NAN)))))
}

fn pow(given: Given<'_>) -> Result1 {
    let Some((a, b)) = numbers(given, "$pow")? else { return NULL };
    let wide = rank(a).max(rank(b));
    if let (0 | 1, Some(a), Some(b)) = (wide, integer(a), integer(b))
        && let Ok(power) = u32::try_from(b)
        && let Some(number) = a.checked_pow(power)
    {
        return Ok(Some(whole(number, wide == 0)));
    }
    two(given, "$pow", f64::powf)
}

/// The arguments; a single array stands for its elements.
fn flat(given: Given<'_>) -> Vec<Value> {
    match given {
        [Some(Value::Array(elements))] => elements.clone(),
        _ => given.iter().flatten().cloned().collect(),
    }
}

/// The sum of the numbers among `values`.
pub(crate) fn sum_of(values: &[Value]) -> Value {
    values.iter().fold(Value::I32(0), |sum, value| add(&sum, value).unwrap_or(sum))
}

/// The mean of the numbers among `values`, or null.
pub(crate) fn average_of(values: &[Value]) -> Value {
    let count = values.iter().filter(|it| types::is_number(it)).count();
    if count == 0 {
        return Value::Null;
    }
    let sum = sum_of(values);
    match &sum {
        Value::Decimal(bytes) => {
            let count = Number::from_i64(count as i64);
            Value::Decimal(Number::from_decimal(bytes).over(count).to_decimal())
        }
        _ => Value::F64(float(&sum).unwrap_or(f64::NAN) / count as f64),
    }
}

/// The least or greatest of `values`, null and nothing aside.
pub(crate) fn extreme_of(values: &[Value], wanted: Ordering) -> Value {
    let real = values.iter().filter(|it| **it != Value::Null);
    let best =
        real.reduce(
            |best, it| {
                if kumiko_document::order::compare(it, best) == wanted { it } else { best }
            },
        );
    best.cloned().unwrap_or(Value::Null)
}
