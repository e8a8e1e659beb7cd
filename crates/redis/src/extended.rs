//! Extended floats for INCRBYFLOAT and HINCRBYFLOAT: 64 bits of mantissa, in software.
//!
//! Redis computes these two commands in the 80-bit format of the x87, so that `3 + 1.1` prints as
//! `4.1`. A double would print `4.09999999999999964`. The format here is the same number model,
//! `mantissa * 2^exponent` with a mantissa below 2^64 and rounding half to even, on every machine.
//! Values stay small in practice; a big integer carries the exact middle steps.

/// The longest text that is read as a number.
pub(crate) const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// The largest binary exponent of a finite value, seen from the mantissa's top bit.
const EXPONENT_MAX: i64 = 16_383;
/// The smallest power of two that is not zero, subnormals included.
const EXPONENT_MIN: i64 = -16_445;
/// Digits behind the point when printed.
const PRINTED_DIGITS: u32 = 17;

/// A finite extended float, or an infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extended {
    negative: bool,
    infinite: bool,
    /// Zero, or normalised so that the top bit is set.
    mantissa: u64,
    exponent: i64,
}

impl Extended {
    /// Reads a decimal number or an infinity; the whole text must be one.
    pub(crate) fn parse(text: &[u8]) -> Option<Extended> {
        if TEXT_BYTES_MAX < text.len() {
            return None;
        }
        let (negative, bare) = match text {
            [b'-', bare @ ..] => (true, bare),
            [b'+', bare @ ..] => (false, bare),
            bare => (false, bare),
        };
        if bare.eq_ignore_ascii_case(b"inf") || bare.eq_ignore_ascii_case(b"infinity") {
            return Some(Extended { negative, infinite: true, mantissa: 0, exponent: 0 });
        }
        if matches!(bare, [b'0', b'x' | b'X', ..]) {
            return kumiko_wire::resp::number::parse_float(text).map(Extended::from_f64);
        }
        let (digits, exponent) = decimal(bare)?;
        let number = Big::from_decimal(&digits);
        if number.is_zero() {
            return Some(Extended { negative, infinite: false, mantissa: 0, exponent: 0 });
        }
        // Far outside the range the answer is known without the powers of ten.
        let size = digits.len() as i64 + exponent;
        if !(-5_100..=5_100).contains(&size) {
            return None;
        }
        let value = if 0 <= exponent {
            let mut product = number;
            product.multiply_ten_to(exponent as u32);
            Extended::round(negative, &product, 0, false)
        } else {
            let mut divisor = Big::from_u64(1);
            divisor.multiply_ten_to(exponent.unsigned_abs() as u32);
            Extended::divide(negative, number, &divisor)
        };
        (!value.infinite && value.mantissa != 0).then_some(value)
    }

    /// The same value; a double is an extended float already.
    pub(crate) fn from_f64(value: f64) -> Extended {
        let negative = value.is_sign_negative();
        if value.is_infinite() {
            return Extended { negative, infinite: true, mantissa: 0, exponent: 0 };
        }
        let bits = value.to_bits();
        let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7FF) as i64);
        let (mantissa, exponent) =
            if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        Extended::round(negative, &Big::from_u64(mantissa), exponent, false)
    }

    /// True for the two infinities.
    pub(crate) fn is_infinite(self) -> bool {
        self.infinite
    }

    /// The sum, rounded half to even. `None` if it is no finite number.
    pub(crate) fn add(self, other: Extended) -> Option<Extended> {
        if self.infinite || other.infinite {
            return None;
        }
        if self.mantissa == 0 {
            return Some(other);
        }
        if other.mantissa == 0 {
            return Some(self);
        }
        let (high, low) =
            if self.exponent < other.exponent { (other, self) } else { (self, other) };
        let mut left = Big::from_u64(high.mantissa);
        left.shift_left((high.exponent - low.exponent) as u32);
        let right = Big::from_u64(low.mantissa);
        let sum = if high.negative == low.negative {
            left.add(&right);
            Extended::round(high.negative, &left, low.exponent, false)
        } else if left.less_than(&right) {
            let mut difference = right;
            difference.subtract(&left);
            Extended::round(low.negative, &difference, low.exponent, false)
        } else {
            left.subtract(&right);
            Extended::round(high.negative, &left, low.exponent, false)
        };
        (!sum.infinite).then_some(sum)
    }

    /// Prints up to 17 digits behind the point, without trailing zeros.
    pub(crate) fn print(self) -> String {
        let sign = if self.negative { "-" } else { "" };
        if self.infinite {
            return format!("{sign}inf");
        }
        let mut scaled = Big::from_u64(self.mantissa);
        scaled.multiply_ten_to(PRINTED_DIGITS);
        if 0 <= self.exponent {
            scaled.shift_left(self.exponent as u32);
        } else {
            scaled.shift_right_rounding(self.exponent.unsigned_abs() as u32);
        }
        let mut digits = scaled.to_decimal();
        while digits.len() <= PRINTED_DIGITS as usize {
            digits.insert(0, '0');
        }
        let (whole, part) = digits.split_at(digits.len() - PRINTED_DIGITS as usize);
        let part = part.trim_end_matches('0');
        match (whole, part) {
            ("0", "") => "0".to_owned(),
            (_, "") => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{part}"),
        }
    }

    /// `dividend / divisor` to 64 bits, by long division in base two.
    fn divide(negative: bool, mut dividend: Big, divisor: &Big) -> Extended {
        let wanted = 66 + i64::from(divisor.bits());
        let shift = (wanted - i64::from(dividend.bits())).max(0);
        dividend.shift_left(shift as u32);
        let mut quotient = Big::from_u64(0);
        let places = dividend.bits() - divisor.bits();
        let mut part = divisor.clone();
        part.shift_left(places);
        for place in (0..=places).rev() {
            if !dividend.less_than(&part) {
                dividend.subtract(&part);
                quotient.set_bit(place);
            }
            part.shift_right_one();
        }
        Extended::round(negative, &quotient, -shift, !dividend.is_zero())
    }

    /// Keeps the top 64 bits of `number * 2^exponent`; `sticky` says that something smaller follows.
    fn round(negative: bool, number: &Big, exponent: i64, sticky: bool) -> Extended {
        let bits = number.bits();
        if bits == 0 {
            return Extended { negative: false, infinite: false, mantissa: 0, exponent: 0 };
        }
        let mut exponent = exponent;
        let mut mantissa;
        if bits <= 64 {
            mantissa = number.low_u64() << (64 - bits);
            exponent -= i64::from(64 - bits);
        } else {
            let drop = bits - 64;
            let mut top = number.clone();
            top.shift_right(drop);
            mantissa = top.low_u64();
            exponent += i64::from(drop);
            let half = number.bit(drop - 1);
            let below = sticky || number.any_below(drop - 1);
            if half && (below || mantissa & 1 == 1) {
                mantissa = mantissa.wrapping_add(1);
                if mantissa == 0 {
                    mantissa = 1 << 63;
                    exponent += 1;
                }
            }
        }
        let top = exponent + 63;
        if EXPONENT_MAX < top {
            return Extended { negative, infinite: true, mantissa: 0, exponent: 0 };
        }
        if top < EXPONENT_MIN {
            return Extended { negative: false, infinite: false, mantissa: 0, exponent: 0 };
        }
        Extended { negative, infinite: false, mantissa, exponent }
    }
}

/// Splits decimal text into its digits and the power of ten behind them.
fn decimal(text: &[u8]) -> Option<(Vec<u8>, i64)> {
    let cut = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (figures, exponent) = match cut {
        Some(at) => {
            let written = std::str::from_utf8(&text[at + 1..]).ok()?;
            (&text[..at], written.parse::<i32>().ok()?)
        }
        None => (text, 0),
    };
    let mut digits = Vec::with_capacity(figures.len());
    let mut point = None;
    for byte in figures {
        match byte {
            b'0'..=b'9' => digits.push(byte - b'0'),
            b'.' if point.is_none() => point = Some(digits.len()),
            _ => return None,
        }
    }
    if digits.is_empty() {
        return None;
    }
    let behind = point.map_or(0, |at| digits.len() - at);
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..zeros.min(digits.len() - 1));
    Some((digits, i64::from(exponent) - behind as i64))
}

/// An unsigned integer of any size: 32-bit limbs, the smallest first, no leading zero limb.
#[derive(Clone, Debug)]
struct Big {
    limbs: Vec<u32>,
}

impl Big {
    fn from_u64(value: u64) -> Big {
        let mut big = Big { limbs: vec![value as u32, (value >> 32) as u32] };
        big.trim();
        big
    }

    fn from_decimal(digits: &[u8]) -> Big {
        let mut big = Big { limbs: Vec::new() };
        for digit in digits {
            big.multiply_add(10, u32::from(*digit));
        }
        big
    }

    fn to_decimal(mut self: Big) -> String {
        let mut parts = Vec::new();
        while !self.is_zero() {
            let mut rest = 0u64;
            for limb in self.limbs.iter_mut().rev() {
                let value = rest << 32 | u64::from(*limb);
                *limb = (value / 1_000_000_000) as u32;
                rest = value % 1_000_000_000;
            }
            self.trim();
            parts.push(rest);
        }
        let Some(first) = parts.pop() else { return "0".to_owned() };
        let rest = parts.iter().rev().map(|part| format!("{part:09}"));
        std::iter::once(first.to_string()).chain(rest).collect()
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    fn bits(&self) -> u32 {
        self.limbs.last().map_or(0, |top| self.limbs.len() as u32 * 32 - top.leading_zeros())
    }

    fn bit(&self, index: u32) -> bool {
        self.limbs.get(index as usize / 32).is_some_and(|limb| limb >> (index % 32) & 1 == 1)
    }

    fn any_below(&self, index: u32) -> bool {
        let whole = index as usize / 32;
        self.limbs.iter().take(whole).any(|limb| *limb != 0)
            || (whole as u32 * 32..index).any(|at| self.bit(at))
    }

    fn set_bit(&mut self, index: u32) {
        let limb = index as usize / 32;
        if self.limbs.len() <= limb {
            self.limbs.resize(limb + 1, 0);
        }
        self.limbs[limb] |= 1 << (index % 32);
    }

    fn low_u64(&self) -> u64 {
        let limb = |at: usize| u64::from(self.limbs.get(at).copied().unwrap_or(0));
        limb(0) | limb(1) << 32
    }

    fn less_than(&self, other: &Big) -> bool {
        let lengths = self.limbs.len().cmp(&other.limbs.len());
        lengths.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev())).is_lt()
    }

    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.limbs {
            let value = u64::from(*limb) * u64::from(factor) + carry;
            *limb = value as u32;
            carry = value >> 32;
        }
        if carry != 0 {
            self.limbs.push(carry as u32);
        }
    }

    fn multiply_ten_to(&mut self, power: u32) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10u32.pow(power % 9), 0);
    }

    fn add(&mut self, other: &Big) {
        let length = self.limbs.len().max(other.limbs.len());
        self.limbs.resize(length, 0);
        let mut carry = 0u64;
        for (at, limb) in self.limbs.iter_mut().enumerate() {
            let right = other.limbs.get(at).copied().unwrap_or(0);
            let value = u64::from(*limb) + u64::from(right) + carry;
            *limb = value as u32;
            carry = value >> 32;
        }
        if carry != 0 {
            self.limbs.push(carry as u32);
        }
    }

    /// `other` must not be larger.
    fn subtract(&mut self, other: &Big) {
        let mut borrow = 0i64;
        for (at, limb) in self.limbs.iter_mut().enumerate() {
            let right = i64::from(other.limbs.get(at).copied().unwrap_or(0));
            let value = i64::from(*limb) - right - borrow;
            borrow = i64::from(value < 0);
            *limb = value as u32;
        }
        assert_eq!(borrow, 0, "the larger number is on the left");
        self.trim();
    }

    fn shift_left(&mut self, count: u32) {
        if self.is_zero() {
            return;
        }
        self.limbs.push(0);
        let bits = count % 32;
        if bits != 0 {
            for at in (0..self.limbs.len()).rev() {
                let below = if at == 0 { 0 } else { self.limbs[at - 1] >> (32 - bits) };
                self.limbs[at] = self.limbs[at] << bits | below;
            }
        }
        let zeros = std::iter::repeat_n(0, count as usize / 32);
        self.limbs.splice(0..0, zeros);
        self.trim();
    }

    fn shift_right(&mut self, count: u32) {
        let whole = (count as usize / 32).min(self.limbs.len());
        self.limbs.drain(..whole);
        let bits = count % 32;
        if bits != 0 {
            for at in 0..self.limbs.len() {
                let above = self.limbs.get(at + 1).copied().unwrap_or(0) << (32 - bits);
                self.limbs[at] = self.limbs[at] >> bits | above;
            }
        }
        self.trim();
    }

    fn shift_right_one(&mut self) {
        self.shift_right(1);
    }

    fn shift_right_rounding(&mut self, count: u32) {
        let half = self.bit(count - 1);
        let below = self.any_below(count - 1);
        self.shift_right(count);
        if half && (below || self.bit(0)) {
            self.add(&Big::from_u64(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Extended, TEXT_BYTES_MAX};
    use kumiko_base::draw;

    fn sum(left: &str, right: &str) -> Option<String> {
        let (left, right) = (Extended::parse(left.as_bytes())?, Extended::parse(right.as_bytes())?);
        left.add(right).map(Extended::print)
    }

    #[test]
    fn sums() {
        // The right column was printed by Redis 7.0.15 on x86-64.
        let rows = [
            ("3", "1.1", "4.1"),
            ("10.5", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("0", "1.23", "1.23"),
            ("17179869184", "1.5", "17179869185.5"),
            ("-1.1", "1.1", "0"),
            ("0", "-0.5", "-0.5"),
            ("1", "1e-18", "1"),
            ("1e20", "0.1", "100000000000000000000"),
            ("1e15", "0.3", "1000000000000000.29998779296875"),
            ("1.23456789", "9.87654321e-5", "1.2346666554321"),
            ("99999999999999.99", "0.01", "100000000000000"),
            ("3.3", "1e-17", "3.30000000000000001"),
            ("123456789.123456789", "0.000000001", "123456789.12345678999554366"),
            ("0", "1e25", "10000000000000000000000000"),
            ("0.1", "0.2", "0.3"),
            ("1", "0x10", "17"),
            ("-0", "0", "0"),
        ];
        for (left, right, expected) in rows {
            let printed = sum(left, right).expect("a finite sum");
            assert_eq!(printed, expected, "{left} + {right}");
        }
        for bad in ["", "abc", "1 ", " 1", "1e", "1e99999", "1e-99999", "nan", "1.2.3", "--1"] {
            assert_eq!(Extended::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(sum("inf", "1"), None);
        assert_eq!(sum("1e4932", "1e4932"), None);
        assert!(Extended::parse(&vec![b'1'; TEXT_BYTES_MAX + 1]).is_none());
        assert!(Extended::parse(&vec![b'0'; TEXT_BYTES_MAX]).is_some());
    }

    #[test]
    fn doubles_pass_through() {
        draw::check("extended_doubles", 500, |draw| {
            let value = (draw.bits() as i64 >> draw.index(60)) as f64 / 1024.0;
            let text = Extended::from_f64(value).print();
            assert_eq!(text.parse(), Ok(value));
            let parsed = Extended::parse(text.as_bytes()).expect("our own text");
            assert_eq!(parsed.print(), text);
            Extended::parse(&draw.bytes(10));
        });
    }
}
