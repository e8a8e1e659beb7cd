//! Bytes as text: hexadecimal digits and UUIDs.

use std::fmt::Write;

/// The bytes as lower-case digits.
pub fn show(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

/// The bytes of hexadecimal digits, or `None` if there is an odd digit or something else. Spaces
/// may stand anywhere.
pub fn parse(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for digit in text.chars().filter(|digit| !digit.is_ascii_whitespace()) {
        let digit = digit.to_digit(16)? as u8;
        high = match high {
            None => Some(digit << 4),
            Some(high) => {
                bytes.push(high | digit);
                None
            }
        };
    }
    if high.is_none() { Some(bytes) } else { None }
}

/// The canonical lower-case form of a UUID.
pub fn uuid(bytes: &[u8; 16]) -> String {
    let mut text = show(bytes);
    for dash in [20, 16, 12, 8] {
        text.insert(dash, '-');
    }
    text
}

/// The bytes of a UUID in canonical form, in either case.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let dashes = text.char_indices().filter(|(_, it)| *it == '-').map(|(index, _)| index);
    if text.len() != 36 || !dashes.eq([8, 13, 18, 23]) {
        return None;
    }
    let digits: String = text.chars().filter(|it| *it != '-').collect();
    parse(&digits)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_back() {
        assert_eq!(show(&[0, 0x1F, 0xA0]), "001fa0");
        assert_eq!(parse("00 1F a0").unwrap(), [0, 0x1F, 0xA0]);
        assert_eq!(parse("001"), None);
        assert_eq!(parse("0g"), None);
    }

    #[test]
    fn uuids_and_back() {
        let bytes: [u8; 16] = std::array::from_fn(|index| index as u8 * 0x11);
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(uuid(&bytes), text);
        assert_eq!(parse_uuid(&text.to_uppercase()), Some(bytes));
        assert_eq!(parse_uuid("00112233-4455-6677-8899-aabbccddeef"), None);
        assert_eq!(parse_uuid("0011223344556677-8899-aabb-ccddeeff"), None);
    }
}
