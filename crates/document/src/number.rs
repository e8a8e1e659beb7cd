//! One number line for integers, floats and decimals.
//!
//! A number is a sign, a coefficient of at most 34 decimal digits and a power of ten. Integers and
//! decimals are exact in that form; a float is rounded to 34 digits, which keeps all floats apart
//! and in order. So equal numbers of different types are equal, and give equal key bytes:
//!
//! ```text
//! 01                                       NaN
//! 20                                       zero
//! 21 exponent (2, BE, + 4000) digits       below one
//! 22..29 integer part (1..8, BE) fraction  from one up to 2^64
//! 2A exponent (2, BE, + 4000) digits       from 2^64
//! 2B                                       infinity
//! ```
//!
//! `digits` are pairs of decimal digits, each a byte of pair + 1, closed by 00. `fraction` is 00, or
//! 01 and the digits after the point. A negative number is 20 - (first byte - 20), and the other
//! bytes complemented.

use std::cmp::Ordering;

use kumiko_base::Value;

/// The most digits a coefficient has: those of a 128-bit decimal.
pub const DIGITS_MAX: u32 = 34;
const EXPONENT_BIAS: i32 = 0x4000;
/// The smallest and largest power of ten of a 128-bit decimal's last digit.
const DECIMAL_EXPONENT_MIN: i32 = -6176;
const DECIMAL_EXPONENT_MAX: i32 = 6111;
/// The largest coefficient of a 128-bit decimal.
const COEFFICIENT_MAX: u128 = 10_u128.pow(DIGITS_MAX) - 1;

/// A number of any type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Not a number. Equal to itself and below all others.
    NaN,
    /// Infinity; true for the negative one.
    Infinite(bool),
    /// `(-1)^negative * coefficient * 10^exponent`.
    Finite {
        /// Whether it is below zero; zero may have the sign too, and equals zero.
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// The power of ten of the last digit.
        exponent: i32,
    },
}

impl Number {
    /// The number in `value`, if it is one.
    pub fn of(value: &Value) -> Option<Number> {
        Some(match value {
            Value::I8(it) => Number::from_i64(i64::from(*it)),
            Value::U8(it) => Number::from_i64(i64::from(*it)),
            Value::I16(it) => Number::from_i64(i64::from(*it)),
            Value::U16(it) => Number::from_i64(i64::from(*it)),
            Value::I32(it) => Number::from_i64(i64::from(*it)),
            Value::U32(it) => Number::from_i64(i64::from(*it)),
            Value::I64(it) => Number::from_i64(*it),
            Value::U64(it) => {
                Number::Finite { negative: false, coefficient: u128::from(*it), exponent: 0 }
            }
            Value::F32(it) => Number::from_f64(f64::from(*it)),
            Value::F64(it) => Number::from_f64(*it),
            Value::Decimal(bytes) => Number::from_decimal(bytes),
            _ => return None,
        })
    }

    /// An integer.
    pub fn from_i64(it: i64) -> Number {
        Number::Finite { negative: it < 0, coefficient: u128::from(it.unsigned_abs()), exponent: 0 }
    }

    /// A float, rounded to 34 digits.
    pub fn from_f64(it: f64) -> Number {
        if it.is_nan() {
            return Number::NaN;
        }
        if it.is_infinite() {
            return Number::Infinite(it < 0.0);
        }
        if it.fract() == 0.0 && it.abs() < 9.0e18 {
            return Number::from_i64(it as i64);
        }
        let text = format!("{:.33e}", it.abs());
        let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
        let coefficient = digits
            .bytes()
            .filter(u8::is_ascii_digit)
            .fold(0_u128, |sum, digit| sum * 10 + u128::from(digit - b'0'));
        let exponent: i32 = exponent.parse().expect("the exponent of a float is short");
        Number::Finite { negative: it < 0.0, coefficient, exponent: exponent - 33 }.normal()
    }

    /// A 128-bit decimal in BID form, little-endian.
    pub fn from_decimal(bytes: &[u8; 16]) -> Number {
        let bits = u128::from_le_bytes(*bytes);
        let negative = bits >> 127 == 1;
        let combination = (bits >> 122) & 0x1F;
        match combination {
            0x1F => return Number::NaN,
            0x1E => return Number::Infinite(negative),
            _ => {}
        }
        let (exponent, coefficient) = if combination >> 3 == 3 {
            // The long form names coefficients above the largest one: all of them mean zero.
            (((bits >> 111) & 0x3FFF) as i32, 0)
        } else {
            (((bits >> 113) & 0x3FFF) as i32, bits & ((1 << 113) - 1))
        };
        let coefficient = if COEFFICIENT_MAX < coefficient { 0 } else { coefficient };
        Number::Finite { negative, coefficient, exponent: exponent + DECIMAL_EXPONENT_MIN }
    }

    /// As a 128-bit decimal; beyond its range it becomes infinite or zero.
    pub fn to_decimal(self) -> [u8; 16] {
        let bits = match self {
            Number::NaN => 0x1F << 122,
            Number::Infinite(negative) => (u128::from(negative) << 127) | (0x1E << 122),
            Number::Finite { negative, coefficient, exponent } => {
                let sign = u128::from(negative) << 127;
                match fit(coefficient, exponent) {
                    Some((coefficient, exponent)) => {
                        let biased = (exponent - DECIMAL_EXPONENT_MIN) as u128;
                        sign | (biased << 113) | coefficient
                    }
                    None => sign | (0x1E << 122),
                }
            }
        };
        bits.to_le_bytes()
    }

    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::NaN => f64::NAN,
            Number::Infinite(true) => f64::NEG_INFINITY,
            Number::Infinite(false) => f64::INFINITY,
            Number::Finite { negative, coefficient, exponent } => {
                let sign = if negative { "-" } else { "" };
                // Parsing rounds correctly, which arithmetic with powers of ten does not.
                format!("{sign}{coefficient}e{exponent}").parse().unwrap_or(f64::NAN)
            }
        }
    }

    /// As an integer, if it is one and fits.
    pub fn to_i64(self) -> Option<i64> {
        let Number::Finite { negative, coefficient, exponent } = self.normal() else { return None };
        if !(0..=19).contains(&exponent) {
            return None;
        }
        let whole = coefficient.checked_mul(10_u128.pow(exponent as u32))?;
        let whole = i128::try_from(whole).ok()?;
        i64::try_from(if negative { -whole } else { whole }).ok()
    }

    /// Without trailing zeros, and zero without a sign: equal numbers have equal normal forms.
    pub fn normal(self) -> Number {
        let Number::Finite { negative, mut coefficient, mut exponent } = self else { return self };
        if coefficient == 0 {
            return Number::Finite { negative: false, coefficient: 0, exponent: 0 };
        }
        while coefficient % 10 == 0 {
            coefficient /= 10;
            exponent += 1;
        }
        Number::Finite { negative, coefficient, exponent }
    }

    /// The order on the number line, NaN first.
    pub fn compare(self, other: Number) -> Ordering {
        self.rank().cmp(&other.rank()).then_with(|| match (self, other) {
            (
                Number::Finite { negative, coefficient: a, exponent: ax },
                Number::Finite { coefficient: b, exponent: bx, .. },
            ) if a != 0 => {
                let order = compare_magnitude((a, ax), (b, bx));
                if negative { order.reverse() } else { order }
            }
            _ => Ordering::Equal,
        })
    }

    fn rank(self) -> u8 {
        match self {
            Number::NaN => 0,
            Number::Infinite(true) => 1,
            Number::Finite { coefficient: 0, .. } => 3,
            Number::Finite { negative: true, .. } => 2,
            Number::Finite { .. } => 4,
            Number::Infinite(false) => 5,
        }
    }

    /// The sum. Exact up to 34 digits, then rounded down.
    pub fn plus(self, other: Number) -> Number {
        let (a, b) = match (self, other) {
            (Number::NaN, _) | (_, Number::NaN) => return Number::NaN,
            (Number::Infinite(a), Number::Infinite(b)) if a != b => return Number::NaN,
            (Number::Infinite(a), _) | (_, Number::Infinite(a)) => return Number::Infinite(a),
            (a, b) => (a.parts(), b.parts()),
        };
        // The larger exponent is brought down as far as 38 digits allow, then the smaller one up.
        let (high, low) = if b.1 <= a.1 { (a, b) } else { (b, a) };
        let mut high = high;
        while low.1 < high.1 && high.0.unsigned_abs() < 10_u128.pow(36) {
            high = (high.0 * 10, high.1 - 1);
        }
        let mut low = low;
        while low.1 < high.1 {
            low = (low.0 / 10, low.1 + 1);
        }
        round(high.0 + low.0, high.1)
    }

    /// The product. Exact up to 34 digits, then rounded down.
    pub fn times(self, other: Number) -> Number {
        let (mut a, mut b) = match (self, other) {
            (Number::NaN, _) | (_, Number::NaN) => return Number::NaN,
            (Number::Infinite(sign), it) | (it, Number::Infinite(sign)) => {
                return match it {
                    Number::Finite { coefficient: 0, .. } | Number::NaN => Number::NaN,
                    Number::Finite { negative, .. } | Number::Infinite(negative) => {
                        Number::Infinite(negative != sign)
                    }
                };
            }
            (a, b) => (a.parts(), b.parts()),
        };
        loop {
            if let Some(product) = a.0.checked_mul(b.0) {
                return round(product, a.1 + b.1);
            }
            let longer = if a.0.unsigned_abs() < b.0.unsigned_abs() { &mut b } else { &mut a };
            *longer = (longer.0 / 10, longer.1 + 1);
        }
    }

    /// The quotient, rounded down to 34 digits; by zero it is infinite or not a number.
    pub fn over(self, other: Number) -> Number {
        let (a, b) = match (self, other) {
            (Number::NaN, _) | (_, Number::NaN) => return Number::NaN,
            (Number::Infinite(_), Number::Infinite(_)) => return Number::NaN,
            (Number::Infinite(a), b) => return Number::Infinite(a != (b.parts().0 < 0)),
            (_, Number::Infinite(_)) => return Number::from_i64(0),
            (a, b) => (a.parts(), b.parts()),
        };
        if b.0 == 0 {
            return if a.0 == 0 { Number::NaN } else { Number::Infinite(a.0 < 0) };
        }
        let (mut rest, mut quotient, mut exponent) = (a.0, 0_i128, a.1 - b.1);
        quotient += rest / b.0;
        rest %= b.0;
        while rest != 0 && quotient.unsigned_abs() < 10_u128.pow(33) {
            let Some(next) = rest.checked_mul(10) else { break };
            quotient = quotient * 10 + next / b.0;
            rest = next % b.0;
            exponent -= 1;
        }
        round(quotient, exponent)
    }

    fn parts(self) -> (i128, i32) {
        match self {
            Number::Finite { negative, coefficient, exponent } => {
                let it = coefficient as i128;
                (if negative { -it } else { it }, exponent)
            }
            Number::NaN | Number::Infinite(_) => (0, 0),
        }
    }

    /// Appends the key bytes.
    pub fn encode(self, out: &mut Vec<u8>) {
        let (negative, coefficient, exponent) = match self.normal() {
            Number::NaN => return out.push(0x01),
            Number::Infinite(true) => return out.push(0x20 - 11),
            Number::Infinite(false) => return out.push(0x20 + 11),
            Number::Finite { coefficient: 0, .. } => return out.push(0x20),
            Number::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let start = out.len();
        let class = encode_magnitude(coefficient, exponent, out);
        if negative {
            out[start] = 0x20 - class;
            out[start + 1..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// Writes the bytes of a positive number and says its class (first byte - 20).
fn encode_magnitude(coefficient: u128, exponent: i32, out: &mut Vec<u8>) -> u8 {
    let adjusted = exponent + digit_count(coefficient) as i32 - 1;
    let whole = if !(0..=19).contains(&adjusted) {
        None
    } else if 0 <= exponent {
        let whole = coefficient * 10_u128.pow(exponent as u32);
        u64::try_from(whole).ok().map(|whole| (whole, 0))
    } else {
        let unit = 10_u128.pow(exponent.unsigned_abs());
        u64::try_from(coefficient / unit).ok().map(|whole| (whole, coefficient % unit))
    };
    let Some((whole, fraction)) = whole else {
        let class = if adjusted < 0 { 1 } else { 10 };
        out.push(0x20 + class);
        out.extend_from_slice(&((adjusted + EXPONENT_BIAS) as u16).to_be_bytes());
        encode_digits(&coefficient.to_string(), out);
        return class;
    };
    let bytes = whole.to_be_bytes();
    let skip = (whole.leading_zeros() / 8) as usize;
    let class = (9 - skip) as u8;
    out.push(0x20 + class);
    out.extend_from_slice(&bytes[skip..]);
    if fraction == 0 {
        out.push(0);
    } else {
        out.push(1);
        let width = exponent.unsigned_abs() as usize;
        encode_digits(&format!("{fraction:0width$}"), out);
    }
    class
}

fn encode_digits(digits: &str, out: &mut Vec<u8>) {
    let digits = digits.trim_end_matches('0').as_bytes();
    for pair in digits.chunks(2) {
        let low = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push((pair[0] - b'0') * 10 + low + 1);
    }
    out.push(0);
}

/// Reads the key bytes of an integer: its value and their count. `None` for all other numbers.
pub fn decode_integer(bytes: &[u8]) -> Option<(i64, usize)> {
    let class = *bytes.first()?;
    if class == 0x20 {
        return Some((0, 1));
    }
    let negative = class < 0x20;
    let length = usize::from(class.abs_diff(0x20)).checked_sub(1)?;
    if length == 0 || 8 < length {
        return None;
    }
    let body = bytes.get(1..length + 2)?;
    let flip = if negative { 0xFF } else { 0 };
    if body[length] ^ flip != 0 {
        return None;
    }
    let whole =
        body[..length].iter().fold(0_i128, |sum, byte| (sum << 8) | i128::from(*byte ^ flip));
    let whole = i64::try_from(if negative { -whole } else { whole }).ok()?;
    Some((whole, length + 2))
}

/// How many bytes of `bytes` one number takes. `None` if they are cut short.
pub fn skip(bytes: &[u8]) -> Option<usize> {
    let class = *bytes.first()?;
    let flip = if class < 0x20 { 0xFF } else { 0 };
    let digits_end = |from: usize| {
        let tail = bytes.get(from..)?;
        tail.iter().position(|byte| *byte == flip).map(|at| from + at + 1)
    };
    match class.abs_diff(0x20) {
        0 | 11 | 0x1F => Some(1),
        1 | 10 => digits_end(3),
        length @ 2..=9 => {
            let at = usize::from(length);
            match bytes.get(at)? ^ flip {
                0 => Some(at + 1),
                _ => digits_end(at + 1),
            }
        }
        _ => None,
    }
}

fn compare_magnitude((a, ax): (u128, i32), (b, bx): (u128, i32)) -> Ordering {
    if ax == bx {
        return a.cmp(&b);
    }
    let (an, bn) = (digit_count(a), digit_count(b));
    let adjusted = (ax + an as i32).cmp(&(bx + bn as i32));
    adjusted.then_with(|| {
        let widest = an.max(bn);
        (a * 10_u128.pow(widest - an)).cmp(&(b * 10_u128.pow(widest - bn)))
    })
}

fn digit_count(coefficient: u128) -> u32 {
    coefficient.checked_ilog10().map_or(1, |log| log + 1)
}

fn round(signed: i128, mut exponent: i32) -> Number {
    let mut coefficient = signed.unsigned_abs();
    while COEFFICIENT_MAX < coefficient {
        coefficient /= 10;
        exponent += 1;
    }
    Number::Finite { negative: signed < 0, coefficient, exponent }
}

/// Brings the exponent into the range of a 128-bit decimal. `None` if the number is too large.
fn fit(mut coefficient: u128, mut exponent: i32) -> Option<(u128, i32)> {
    if coefficient == 0 {
        return Some((0, exponent.clamp(DECIMAL_EXPONENT_MIN, DECIMAL_EXPONENT_MAX)));
    }
    while exponent < DECIMAL_EXPONENT_MIN {
        coefficient /= 10;
        exponent += 1;
        if coefficient == 0 {
            return Some((0, DECIMAL_EXPONENT_MIN));
        }
    }
    while DECIMAL_EXPONENT_MAX < exponent {
        coefficient = coefficient.checked_mul(10).filter(|it| *it <= COEFFICIENT_MAX)?;
        exponent -= 1;
    }
    while COEFFICIENT_MAX < coefficient {
        coefficient /= 10;
        exponent += 1;
    }
    Some((coefficient, exponent))
}

/// The text of a decimal, as its standard writes it: scientific form for far exponents.
pub fn decimal_text(bytes: &[u8; 16]) -> String {
    let (negative, coefficient, exponent) = match Number::from_decimal(bytes) {
        Number::NaN => return "NaN".into(),
        Number::Infinite(negative) => {
            return if negative { "-Infinity".into() } else { "Infinity".into() };
        }
        Number::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    let digits = coefficient.to_string();
    let sign = if negative { "-" } else { "" };
    let adjusted = exponent + digits.len() as i32 - 1;
    if 0 < exponent || adjusted < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E{adjusted:+}");
    }
    if exponent == 0 {
        return format!("{sign}{digits}");
    }
    let places = exponent.unsigned_abs() as usize;
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{sign}{whole}.{fraction}")
}

/// Reads the text of a decimal. `None` if it is not a number or has more than 34 digits.
pub fn decimal_parse(text: &str) -> Option<[u8; 16]> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if body.eq_ignore_ascii_case("nan") {
        return Some(Number::NaN.to_decimal());
    }
    if body.eq_ignore_ascii_case("infinity") || body.eq_ignore_ascii_case("inf") {
        return Some(Number::Infinite(negative).to_decimal());
    }
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], body[at + 1..].parse::<i32>().ok()?),
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    if (DIGITS_MAX as usize) < significant.len() {
        return None;
    }
    let coefficient = if significant.is_empty() { 0 } else { significant.parse().ok()? };
    let exponent = exponent.checked_sub(fraction.len() as i32)?;
    fit(coefficient, exponent)
        .map(|(coefficient, exponent)| Number::Finite { negative, coefficient, exponent })
        .map(Number::to_decimal)
}

#[cfg(test)]
mod tests {
    use kumiko_base::draw::{self, Draw};

    use super::*;

    fn number(draw: &mut Draw) -> Value {
        let small = draw.below(7) as i64 - 3;
        match draw.below(8) {
            0 => Value::I32(small as i32),
            1 => Value::I64(draw.bits() as i64 >> draw.below(64)),
            2 => Value::F64(small as f64 / 4.0),
            3 => Value::F64(f64::from_bits(draw.bits())),
            4 => Value::F64((draw.bits() as i64 >> draw.below(64)) as f64),
            5 => Value::Decimal(
                Number::Finite {
                    negative: draw.one_in(2),
                    coefficient: u128::from(draw.bits() >> draw.below(64)),
                    exponent: draw.below(60) as i32 - 40,
                }
                .to_decimal(),
            ),
            6 => Value::Decimal(
                Number::Finite { negative: small < 0, coefficient: 250, exponent: -2 }.to_decimal(),
            ),
            _ => Value::U64(draw.bits()),
        }
    }

    #[test]
    fn key_bytes_keep_the_order() {
        draw::check("key_bytes_keep_the_order", 20_000, |draw| {
            let [a, b] = [number(draw), number(draw)].map(|it| Number::of(&it).unwrap());
            let [mut x, mut y] = [Vec::new(), Vec::new()];
            a.encode(&mut x);
            b.encode(&mut y);
            assert_eq!(a.compare(b), x.cmp(&y), "{a:?} {b:?} {x:x?} {y:x?}");
            x.extend_from_slice(&y);
            assert_eq!(skip(&x), Some(x.len() - y.len()), "{a:?} {x:x?}");
            if let Some(whole) = a.to_i64() {
                assert_eq!(decode_integer(&x), Some((whole, x.len() - y.len())));
            }
        });
    }

    #[test]
    fn equal_across_types() {
        let one = [
            Value::I32(1),
            Value::F64(1.0),
            Value::I64(1),
            Value::Decimal(decimal_parse("1.00").unwrap()),
        ];
        for value in &one {
            let mut bytes = Vec::new();
            Number::of(value).unwrap().encode(&mut bytes);
            assert_eq!(bytes, [0x22, 1, 0], "{value:?}");
        }
    }

    #[test]
    fn decimal_texts() {
        for text in ["0", "1.00", "-1.50", "1E+3", "1.2E-10", "0.000001", "NaN", "-Infinity"] {
            assert_eq!(decimal_text(&decimal_parse(text).unwrap()), text);
        }
        assert_eq!(decimal_parse(&"9".repeat(35)), None);
        assert!(decimal_parse(&"9".repeat(34)).is_some());
        assert_eq!(decimal_parse("1x"), None);
    }

    #[test]
    fn arithmetic() {
        let d = |text: &str| Number::from_decimal(&decimal_parse(text).unwrap());
        let show = |it: Number| decimal_text(&it.to_decimal());
        assert_eq!(show(d("1.10").plus(d("1.10"))), "2.20");
        assert_eq!(show(d("1.5").times(d("-4"))), "-6.0");
        assert_eq!(show(d("1").over(d("8"))), "0.125");
        assert_eq!(show(d("1").over(d("0"))), "Infinity");
        assert_eq!(d("0.1").compare(Number::from_f64(0.1)), Ordering::Less);
    }
}
