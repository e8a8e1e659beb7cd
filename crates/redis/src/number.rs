//! Numbers as Redis reads and prints them, where `wire` is too strict or too plain.

use kumiko_wire::resp::number;

/// Reads a double as C's `strtod` does: leading space is skipped, too large becomes infinite,
/// nothing at all is zero, and a zero byte ends the text. Ranges of sorted sets and SORT read
/// numbers this way.
pub(crate) fn parse_f64_loose(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default().trim_ascii_start();
    if text.is_empty() {
        return Some(0.0);
    }
    number::parse_float(text).or_else(|| {
        // What the strict form refuses and this one takes is a number that is too large.
        let decimal = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let text = std::str::from_utf8(text).ok().filter(|it| it.bytes().all(|it| decimal(&it)));
        text?.parse().ok()
    })
}

/// A score as it is stored in text: a whole number is printed whole, the rest as in replies.
pub(crate) fn format_score(value: f64) -> String {
    // Past 2^62 the conversion may round, and then the text would differ.
    if value != 0.0 && value.fract() == 0.0 && value.abs() < 4.0e18 {
        return (value as i64).to_string();
    }
    String::from_utf8_lossy(&number::float_text(value)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{format_score, parse_f64_loose};

    #[test]
    fn loose_numbers() {
        let rows = [
            (" 1", Some(1.0)),
            ("", Some(0.0)),
            ("-1.5e1", Some(-15.0)),
            ("1e999", Some(f64::INFINITY)),
            ("-1e999", Some(f64::NEG_INFINITY)),
            ("inf", Some(f64::INFINITY)),
            ("\0x", Some(0.0)),
            ("nan", None),
            ("1x", None),
            ("1 ", None),
            ("--1", None),
        ];
        for (text, value) in rows {
            assert_eq!(parse_f64_loose(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn scores() {
        assert_eq!(format_score(1e17), "100000000000000000");
        assert_eq!(format_score(0.5), "0.5");
        assert_eq!(format_score(-3.0), "-3");
        assert_eq!(format_score(1e300), "1.0000000000000001e+300");
        assert_eq!(format_score(f64::INFINITY), "inf");
    }
}
