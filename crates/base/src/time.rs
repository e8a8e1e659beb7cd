//! Moments as text: RFC 3339, in milliseconds since 1970-01-01T00:00:00Z.
//!
//! The calendar is the Gregorian one, carried on before its beginning. Leap seconds do not exist;
//! a text that names one means the second after it.

use std::fmt::Write;

const DAY_MS: i64 = 86_400_000;
/// The days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
/// 0000-01-01T00:00:00Z: the first moment that the text can name.
pub const MS_MIN: i64 = -62_167_219_200_000;
/// 9999-12-31T23:59:59.999Z: the last one.
pub const MS_MAX: i64 = 253_402_300_799_999;

/// Year, month and day of a number of days since 1970-01-01.
///
/// Counts years from March on, so that the leap day is the last of its year.
pub fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = days + EPOCH_DAYS;
    let era = shifted.div_euclid(ERA_DAYS);
    let day_of_era = shifted.rem_euclid(ERA_DAYS);
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// The number of days from 1970-01-01 to a day that exists.
pub fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = i64::from(if month <= 2 { month + 9 } else { month - 3 });
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA_DAYS + day_of_era - EPOCH_DAYS
}

/// How many days a month has.
pub fn days_of_month(year: i64, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The text of a moment in UTC, with milliseconds only where there are some; `None` outside the
/// years 0 to 9999.
pub fn show(ms: i64) -> Option<String> {
    if !(MS_MIN..=MS_MAX).contains(&ms) {
        return None;
    }
    let (year, month, day) = civil(ms.div_euclid(DAY_MS));
    let in_day = ms.rem_euclid(DAY_MS);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, fraction) = (in_day / 1000 % 60, in_day % 1000);
    let mut text = String::with_capacity(24);
    let done = write!(text, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    done.expect("writing to a string cannot fail");
    if fraction != 0 {
        write!(text, ".{fraction:03}").expect("writing to a string cannot fail");
    }
    text.push('Z');
    Some(text)
}

/// The moment that a text names; digits past the millisecond are dropped. `None` if the text is
/// not RFC 3339 or names no moment.
pub fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, count: usize| digits(bytes.get(from..from + count)?);
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)? as u32, number(8, 2)? as u32);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let month_fits = (1..=12).contains(&month);
    if !month_fits || day < 1 || days_of_month(year, month) < day {
        return None;
    }
    if 23 < hour || 59 < minute || 60 < second {
        return None;
    }
    let mut zone = 19;
    let mut fraction = 0;
    if is(zone, b".") {
        let count = bytes.get(20..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return None;
        }
        for place in 0..3 {
            let digit = if place < count { number(20 + place, 1)? } else { 0 };
            fraction = fraction * 10 + digit;
        }
        zone = 20 + count;
    }
    let offset_minutes = parse_zone(bytes.get(zone..)?)?;
    let minutes = hour * 60 + minute - offset_minutes;
    Some(days(year, month, day) * DAY_MS + minutes * 60_000 + second * 1000 + fraction)
}

fn parse_zone(zone: &[u8]) -> Option<i64> {
    match *zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h0, b':', m1, m0] => {
            let (hours, minutes) = (digits(&[h1, h0])?, digits(&[m1, m0])?);
            if 23 < hours || 59 < minutes {
                return None;
            }
            let offset = hours * 60 + minutes;
            Some(if sign == b'+' { offset } else { -offset })
        }
        _ => None,
    }
}

/// At most four digits.
fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |number, byte| {
        if byte.is_ascii_digit() { Some(number * 10 + i64::from(byte - b'0')) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw;

    #[test]
    fn texts() {
        // text, milliseconds
        let rows = [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.999Z", -1),
            ("2000-02-29T12:34:56Z", 951_827_696_000),
            ("2024-12-11T08:00:00.250Z", 1_733_904_000_250),
            ("0000-01-01T00:00:00Z", MS_MIN),
            ("9999-12-31T23:59:59.999Z", MS_MAX),
        ];
        for (text, ms) in rows {
            assert_eq!(show(ms).as_deref(), Some(text));
            assert_eq!(parse(text), Some(ms), "{text}");
        }
        assert_eq!(show(MS_MIN - 1), None);
        assert_eq!(show(MS_MAX + 1), None);
        assert_eq!(show(i64::MAX), None);
    }

    #[test]
    fn texts_of_others() {
        assert_eq!(parse("1970-01-01T09:00:00+09:00"), Some(0));
        assert_eq!(parse("1969-12-31 19:30:00-04:30"), Some(0));
        assert_eq!(parse("1970-01-01t00:00:00.123456789z"), Some(123));
        assert_eq!(parse("1970-01-01T00:00:00.5Z"), Some(500));
        assert_eq!(parse("2016-12-31T23:59:60Z"), parse("2017-01-01T00:00:00Z"));
        for bad in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-13-01T00:00:00Z",
            "1970-00-01T00:00:00Z",
            "1970-02-29T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "1970-01-01T00:00:61Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00+24:00",
            "1970-01-01T00:00:00Zx",
            "+970-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn parse_undoes_show() {
        draw::check("parse_undoes_show", 20_000, |draw| {
            let ms = MS_MIN + draw.below((MS_MAX - MS_MIN + 1) as u64) as i64;
            assert_eq!(parse(&show(ms).unwrap()), Some(ms));
            let day = draw.below(2_000_000) as i64 - 1_000_000;
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), day);
            assert!(1 <= date && date <= days_of_month(year, month));
        });
    }

    #[test]
    fn any_text_parses_or_is_refused() {
        draw::check("any_text_parses_or_is_refused", 20_000, |draw| {
            let mut text = show(draw.below(MS_MAX as u64) as i64).unwrap().into_bytes();
            let index = draw.index(text.len());
            text[index] = draw.bits() as u8;
            text.truncate(draw.index(text.len() + 1));
            let _ = parse(&String::from_utf8_lossy(&text));
        });
    }
}
