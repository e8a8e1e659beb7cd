//! Dates. Zones are UTC or an offset such as +02:00; names of places are not known.

use kumiko_base::{Value, time};

use super::{NamedTable, Operator, is_null};
use crate::Error;
use crate::types::{integer, type_name};

const DAY_MS: i64 = 86_400_000;

pub(super) const NAMED: NamedTable = &[
    ("dateToString", &["date", "format", "timezone", "onNull"], |it| to_text(it)),
    ("dateFromString", &["dateString", "format", "timezone", "onError", "onNull"], |it| {
        from_text(it)
    }),
    ("dateAdd", &["startDate", "unit", "amount", "timezone"], |it| shift(it, 1)),
    ("dateSubtract", &["startDate", "unit", "amount", "timezone"], |it| shift(it, -1)),
    ("dateDiff", &["startDate", "endDate", "unit", "timezone", "startOfWeek"], |it| difference(it)),
    ("dateTrunc", &["date", "unit", "binSize", "timezone", "startOfWeek"], |it| truncate(it)),
    (
        "dateFromParts",
        &["year", "month", "day", "hour", "minute", "second", "millisecond", "timezone"],
        |it| from_parts(it),
    ),
    ("dateToParts", &["date", "timezone"], |it| to_parts(it)),
    ("year", PART, |it| one(it, |at| at.year)),
    ("month", PART, |it| one(it, |at| i64::from(at.month))),
    ("dayOfMonth", PART, |it| one(it, |at| i64::from(at.day))),
    ("hour", PART, |it| one(it, |at| at.of_day_ms / 3_600_000)),
    ("minute", PART, |it| one(it, |at| at.of_day_ms / 60_000 % 60)),
    ("second", PART, |it| one(it, |at| at.of_day_ms / 1000 % 60)),
    ("millisecond", PART, |it| one(it, |at| at.of_day_ms % 1000)),
    ("dayOfWeek", PART, |it| one(it, Moment::day_of_week)),
    ("dayOfYear", PART, |it| one(it, Moment::day_of_year)),
];

const PART: &[&str] = &["date", "timezone"];

/// The operator that takes one part of a date given as its only argument.
pub(super) fn part(name: &str) -> Option<Operator> {
    NAMED.iter().find(|(it, names, _)| *it == name && *names == PART).map(|(_, _, it)| *it)
}

type Given<'a> = &'a [Option<Value>];
type Result1 = Result<Option<Value>, Error>;
const NULL: Result1 = Ok(Some(Value::Null));

struct Moment {
    days: i64,
    year: i64,
    month: u32,
    day: u32,
    of_day_ms: i64,
    offset_ms: i64,
}

impl Moment {
    fn new(ms: i64, offset_ms: i64) -> Moment {
        let local = ms.saturating_add(offset_ms);
        let days = local.div_euclid(DAY_MS);
        let (year, month, day) = time::civil(days);
        Moment { days, year, month, day, of_day_ms: local.rem_euclid(DAY_MS), offset_ms }
    }

    /// 1 is Sunday.
    fn day_of_week(&self) -> i64 {
        (self.days + 4).rem_euclid(7) + 1
    }

    fn day_of_year(&self) -> i64 {
        self.days - time::days(self.year, 1, 1) + 1
    }
}

/// A date, an object id or a timestamp as milliseconds; `None` for null and nothing.
fn moment(value: Option<&Value>) -> Result<Option<i64>, Error> {
    Ok(Some(match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::DateTime(ms)) => *ms,
        Some(Value::Timestamp(seconds, _)) => i64::from(*seconds) * 1000,
        Some(Value::ObjectId(id)) => {
            i64::from(u32::from_be_bytes([id[0], id[1], id[2], id[3]])) * 1000
        }
        Some(other) => {
            let kind = type_name(Some(other));
            return Err(Error::location(16006, format!("can't convert from {kind} to Date")));
        }
    }))
}

fn offset(value: Option<&Value>) -> Result<i64, Error> {
    let unknown = || Error::location(40485, "unrecognized time zone identifier");
    let text = match value {
        None | Some(Value::Null) => return Ok(0),
        Some(Value::Text(text)) => text.as_str(),
        Some(_) => return Err(Error::location(40533, "a time zone must be a string")),
    };
    if matches!(text, "UTC" | "GMT" | "Z" | "Etc/UTC") {
        return Ok(0);
    }
    let sign = match text.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Err(unknown()),
    };
    let digits: String = text[1..].chars().filter(|it| *it != ':').collect();
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return Err(unknown());
    }
    let number = |part: &str| part.parse::<i64>().unwrap_or(0);
    let minutes = number(&digits[..2]) * 60 + digits.get(2..4).map_or(0, number);
    Ok(sign * minutes * 60_000)
}

fn one(given: Given<'_>, part: fn(&Moment) -> i64) -> Result1 {
    let Some(ms) = moment(given[0].as_ref())? else { return NULL };
    let zone = offset(given.get(1).and_then(Option::as_ref))?;
    Ok(Some(Value::I32(part(&Moment::new(ms, zone)) as i32)))
}

fn to_text(given: Given<'_>) -> Result1 {
    let Some(ms) = moment(given[0].as_ref())? else {
        return Ok(Some(given[3].clone().unwrap_or(Value::Null)));
    };
    let zone = offset(given[2].as_ref())?;
    let format = match &given[1] {
        None if zone == 0 && is_null(given[2].as_ref()) => "%Y-%m-%dT%H:%M:%S.%LZ",
        None => "%Y-%m-%dT%H:%M:%S.%L%z",
        Some(Value::Null) => return NULL,
        Some(Value::Text(text)) => text,
        Some(_) => {
            return Err(Error::location(18533, "$dateToString requires that 'format' be a string"));
        }
    };
    let at = Moment::new(ms, zone);
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some(letter) => text.push_str(&field(&at, letter)?),
            None => return Err(Error::location(18535, "Unmatched '%' at end of format string")),
        }
    }
    Ok(Some(Value::Text(text)))
}

fn field(at: &Moment, letter: char) -> Result<String, Error> {
    let minutes = at.offset_ms.abs() / 60_000;
    let sign = if at.offset_ms < 0 { '-' } else { '+' };
    Ok(match letter {
        'Y' => format!("{:04}", at.year),
        'm' => format!("{:02}", at.month),
        'd' => format!("{:02}", at.day),
        'H' => format!("{:02}", at.of_day_ms / 3_600_000),
        'M' => format!("{:02}", at.of_day_ms / 60_000 % 60),
        'S' => format!("{:02}", at.of_day_ms / 1000 % 60),
        'L' => format!("{:03}", at.of_day_ms % 1000),
        'j' => format!("{:03}", at.day_of_year()),
        'w' => at.day_of_week().to_string(),
        'u' => ((at.day_of_week() + 5) % 7 + 1).to_string(),
        'z' => format!("{sign}{:02}{:02}", minutes / 60, minutes % 60),
        'Z' => format!("{sign}{minutes:03}"),
        '%' => "%".into(),
        other => {
            let message = format!("Invalid format character '%{other}' in format string");
            return Err(Error::location(18536, message));
        }
    })
}

fn from_text(given: Given<'_>) -> Result1 {
    let text = match &given[0] {
        None | Some(Value::Null) => return Ok(Some(given[4].clone().unwrap_or(Value::Null))),
        Some(Value::Text(text)) => text,
        Some(_) => return Err(Error::location(241, "$dateFromString requires a string")),
    };
    if given[1].is_some() {
        return Err(Error::location(238, "$dateFromString knows no 'format'"));
    }
    match (super::convert::parse_date(text), &given[3]) {
        (Ok(ms), _) => Ok(Some(Value::DateTime(ms - offset(given[2].as_ref())?))),
        (Err(_), Some(value)) => Ok(Some(value.clone())),
        (Err(error), None) => Err(error),
    }
}

fn unit(value: Option<&Value>) -> Result<&str, Error> {
    match value {
        Some(Value::Text(unit)) => Ok(unit),
        _ => Err(Error::location(5_166_400, "a unit of time must be a string")),
    }
}

/// The length of a unit of fixed length.
fn unit_ms(unit: &str) -> Option<i64> {
    Some(match unit {
        "millisecond" => 1,
        "second" => 1000,
        "minute" => 60_000,
        "hour" => 3_600_000,
        "day" => DAY_MS,
        "week" => 7 * DAY_MS,
        _ => return None,
    })
}

fn months(unit: &str) -> Result<i64, Error> {
    match unit {
        "month" => Ok(1),
        "quarter" => Ok(3),
        "year" => Ok(12),
        _ => Err(Error::new(
            crate::Code::FAILED_TO_PARSE,
            format!("unknown time unit value: {unit}"),
        )),
    }
}

fn shift(given: Given<'_>, sign: i64) -> Result1 {
    let Some(ms) = moment(given[0].as_ref())? else { return NULL };
    if is_null(given[1].as_ref()) || is_null(given[2].as_ref()) {
        return NULL;
    }
    let unit = unit(given[1].as_ref())?;
    let Some(amount) = given[2].as_ref().and_then(integer) else {
        return Err(Error::location(5_166_405, "the amount of a date shift must be an integer"));
    };
    let amount = amount.saturating_mul(sign);
    if let Some(length) = unit_ms(unit) {
        return Ok(Some(Value::DateTime(ms.saturating_add(amount.saturating_mul(length)))));
    }
    let at = Moment::new(ms, 0);
    let total = (at.year * 12 + i64::from(at.month) - 1)
        .saturating_add(amount.saturating_mul(months(unit)?));
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    if !(0..=9999).contains(&year) {
        return Err(Error::location(5_166_406, "the date is out of range"));
    }
    let day = at.day.min(time::days_of_month(year, month));
    Ok(Some(Value::DateTime(time::days(year, month, day) * DAY_MS + at.of_day_ms)))
}

fn difference(given: Given<'_>) -> Result1 {
    let (Some(from), Some(to)) = (moment(given[0].as_ref())?, moment(given[1].as_ref())?) else {
        return NULL;
    };
    let unit = unit(given[2].as_ref())?;
    let count = |length: i64| to.div_euclid(length) - from.div_euclid(length);
    Ok(Some(Value::I64(match unit_ms(unit) {
        // Weeks begin on Sunday; day 0 was a Thursday.
        Some(length) if unit == "week" => {
            (to + 4 * DAY_MS).div_euclid(length) - (from + 4 * DAY_MS).div_euclid(length)
        }
        Some(length) => count(length),
        None => {
            let size = months(unit)?;
            let place = |ms| {
                let at = Moment::new(ms, 0);
                (at.year * 12 + i64::from(at.month) - 1).div_euclid(size)
            };
            place(to) - place(from)
        }
    })))
}

fn truncate(given: Given<'_>) -> Result1 {
    let Some(ms) = moment(given[0].as_ref())? else { return NULL };
    let unit = unit(given[1].as_ref())?;
    let bins = given[2].as_ref().and_then(integer).unwrap_or(1).max(1);
    let zone = offset(given[3].as_ref())?;
    let local = ms + zone;
    // Bins are counted from the first of January 2000, which was a Saturday.
    let origin = time::days(2000, 1, 1) * DAY_MS + if unit == "week" { DAY_MS } else { 0 };
    let start = match unit_ms(unit) {
        Some(length) => {
            let length = length.saturating_mul(bins);
            origin + (local - origin).div_euclid(length) * length
        }
        None => {
            let size = months(unit)?.saturating_mul(bins);
            let at = Moment::new(local, 0);
            let total = (at.year - 2000) * 12 + i64::from(at.month) - 1;
            let total = total.div_euclid(size) * size + 2000 * 12;
            time::days(total.div_euclid(12), total.rem_euclid(12) as u32 + 1, 1) * DAY_MS
        }
    };
    Ok(Some(Value::DateTime(start - zone)))
}

fn from_parts(given: Given<'_>) -> Result1 {
    let number = |n: usize, default: i64| match &given[n] {
        None => Ok(Some(default)),
        Some(Value::Null) => Ok(None),
        Some(value) => integer(value)
            .map(Some)
            .ok_or_else(|| Error::location(40515, "the parts of a date must be integers")),
    };
    let defaults = [1970, 1, 1, 0, 0, 0, 0];
    let mut parts = [0; 7];
    for (n, default) in defaults.into_iter().enumerate() {
        match number(n, default)? {
            Some(number) => parts[n] = number,
            None => return NULL,
        }
    }
    let [year, month, day, hour, minute, second, ms] = parts;
    let total = year.saturating_mul(12).saturating_add(month - 1);
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    if !(1..=9999).contains(&year) {
        return Err(Error::location(40523, "'year' must evaluate to an integer from 1 to 9999"));
    }
    let days = time::days(year, month, 1) + day - 1;
    let clock = ((hour * 60 + minute) * 60 + second) * 1000 + ms;
    Ok(Some(Value::DateTime(days * DAY_MS + clock - offset(given[7].as_ref())?)))
}

fn to_parts(given: Given<'_>) -> Result1 {
    let Some(ms) = moment(given[0].as_ref())? else { return NULL };
    let at = Moment::new(ms, offset(given[1].as_ref())?);
    let parts = [
        ("year", at.year),
        ("month", i64::from(at.month)),
        ("day", i64::from(at.day)),
        ("hour", at.of_day_ms / 3_600_000),
        ("minute", at.of_day_ms / 60_000 % 60),
        ("second", at.of_day_ms / 1000 % 60),
        ("millisecond", at.of_day_ms % 1000),
    ];
    let parts = parts.map(|(name, part)| (name.to_string(), Value::I32(part as i32)));
    Ok(Some(Value::Map(parts.to_vec())))
}
