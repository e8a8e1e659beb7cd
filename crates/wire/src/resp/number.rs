//! Decimal numbers as Redis reads and prints them.
//!
//! Integers are strict: no sign but a leading minus, no leading zero, no space. Floating point
//! numbers print as `%.17g` does, so 0.1 shows as `0.10000000000000001`, as in Redis 7.0: with an
//! exponent below 1e-4 and from 1e17 on.

/// Appends `value` in decimal.
pub fn push_int(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

/// The integer that `text` spells, if it is one in its canonical form.
pub fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        all => (false, all),
    };
    match digits {
        [] => return None,
        [b'0'] => return if negative { None } else { Some(0) },
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Nineteen digits stay below 10^19, which fits 64 bits without a sign.
        value = value * 10 + u64::from(digit - b'0');
    }
    if negative { 0_i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// The finite or infinite number that `text` spells. Not-a-number and stray spaces are refused.
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let body = match text {
        [b'+' | b'-', rest @ ..] => rest,
        all => all,
    };
    let infinite = body.eq_ignore_ascii_case(b"inf") || body.eq_ignore_ascii_case(b"infinity");
    if infinite {
        return Some(if text[0] == b'-' { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if let [b'0', b'x' | b'X', digits @ ..] = body {
        let value = parse_hex(digits)?;
        return Some(if text[0] == b'-' { -value } else { value });
    }
    match body.first() {
        Some(b'0'..=b'9' | b'.') => {}
        _ => return None,
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    // A number too large for the type is an error for Redis, not infinity.
    if value.is_finite() { Some(value) } else { None }
}

/// Hexadecimal digits as C's `strtod` takes them, without a binary exponent.
fn parse_hex(digits: &[u8]) -> Option<f64> {
    if digits.is_empty() {
        return None;
    }
    let mut value = 0.0;
    let mut scale = 0.0_f64;
    for digit in digits {
        if *digit == b'.' && scale == 0.0 {
            scale = 1.0;
            continue;
        }
        let number = f64::from((*digit as char).to_digit(16)?);
        if scale == 0.0 {
            value = value * 16.0 + number;
        } else {
            scale /= 16.0;
            value += number * scale;
        }
    }
    Some(value)
}

/// Appends `value` with up to 17 digits, without trailing zeros.
pub fn push_float(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"nan");
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
        return;
    }
    if value.fract() == 0.0 && value.abs() < 1e17 {
        if value == 0.0 && value.is_sign_negative() {
            out.push(b'-');
        }
        push_int(out, value as i64);
        return;
    }
    let scientific = format!("{:.16e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let figures: String = mantissa.chars().filter(|it| *it != '.').collect();
    let figures = figures.trim_end_matches('0');
    if value < 0.0 {
        out.push(b'-');
    }
    let text = match exponent {
        -4..0 => format!("0.{}{figures}", "0".repeat((-exponent - 1) as usize)),
        0..17 => {
            // Whole numbers were printed above, so there are figures behind the point.
            let (whole, part) = figures.split_at(exponent as usize + 1);
            format!("{whole}.{part}")
        }
        _ => {
            let (first, rest) = figures.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{first}{point}{rest}e{sign}{:02}", exponent.abs())
        }
    };
    out.extend_from_slice(text.as_bytes());
}

/// The text of [`push_float`].
pub fn float_text(value: f64) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    push_float(&mut out, value);
    out
}

/// The text of [`push_int`].
pub fn int_text(value: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(20);
    push_int(&mut out, value);
    out
}

#[cfg(test)]
mod tests {
    use super::{float_text, int_text, parse_float, parse_int};

    #[test]
    fn integers() {
        // text, value
        let rows: &[(&str, Option<i64>)] = &[
            ("0", Some(0)),
            ("-0", None),
            ("+1", None),
            ("01", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("-", None),
            ("12a", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
        ];
        for (text, value) in rows {
            assert_eq!(parse_int(text.as_bytes()), *value, "{text}");
            if let Some(value) = value {
                assert_eq!(int_text(*value), text.as_bytes(), "{text}");
            }
        }
    }

    #[test]
    fn floats() {
        // value, text
        let rows = [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.3, "3.2999999999999998"),
            (0.1, "0.10000000000000001"),
            (123456.5, "123456.5"),
            (-1.5, "-1.5"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (0.1 + 0.2, "0.30000000000000004"),
            (99999999999999984.0, "99999999999999984"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in rows {
            assert_eq!(String::from_utf8_lossy(&float_text(value)), text);
            assert_eq!(parse_float(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["", "nan", " 1", "1 ", "abc", "1e999", "+", "0x", "0xg", "--1"] {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_float(b"0x10"), Some(16.0));
        assert_eq!(parse_float(b"-0x1.8"), Some(-1.5));
        assert_eq!(parse_float(b"+Inf"), Some(f64::INFINITY));
    }
}
