//! Reads the scalars of a dump: lengths, strings in their four forms, doubles.
//!
//! The bytes are foreign: nothing is allocated for a length that the bytes at hand do not back.

use kumiko_wire::resp::number;

/// A place in foreign bytes.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

/// A length, or the form of a string that has none.
enum Length {
    Plain(usize),
    Form(u8),
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        match self.any_length()? {
            Length::Plain(length) => Some(length),
            Length::Form(_) => None,
        }
    }

    fn any_length(&mut self) -> Option<Length> {
        let first = self.byte()?;
        let low = first & 0x3F;
        match first >> 6 {
            0 => Some(Length::Plain(usize::from(low))),
            1 => Some(Length::Plain(usize::from(low) << 8 | usize::from(self.byte()?))),
            2 if low == 0 => Some(Length::Plain(u32::from_be_bytes(self.array()?) as usize)),
            2 if low == 1 => {
                usize::try_from(u64::from_be_bytes(self.array()?)).ok().map(Length::Plain)
            }
            3 => Some(Length::Form(low)),
            _ => None,
        }
    }

    pub(super) fn string(&mut self) -> Option<Vec<u8>> {
        match self.any_length()? {
            Length::Plain(length) => self.take(length).map(<[u8]>::to_vec),
            Length::Form(0) => Some(i8::from_le_bytes(self.array()?).to_string().into_bytes()),
            Length::Form(1) => Some(i16::from_le_bytes(self.array()?).to_string().into_bytes()),
            Length::Form(2) => Some(i32::from_le_bytes(self.array()?).to_string().into_bytes()),
            Length::Form(3) => {
                let (packed, plain) = (self.length()?, self.length()?);
                unpack(self.take(packed)?, plain)
            }
            Length::Form(_) => None,
        }
    }

    pub(super) fn double(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }

    /// The oldest form of a score: a length and decimal text, with three lengths for the rest.
    pub(super) fn double_text(&mut self) -> Option<f64> {
        match self.byte()? {
            255 => Some(f64::NEG_INFINITY),
            254 => Some(f64::INFINITY),
            253 => None,
            length => number::parse_float(self.take(usize::from(length))?),
        }
    }
}

/// Undoes LZF. Three packed bytes give at most 264 plain ones, so the input bounds the output.
fn unpack(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut reader = Reader::new(packed);
    let mut plain: Vec<u8> = Vec::new();
    while !reader.is_empty() {
        let control = usize::from(reader.byte()?);
        if control < 32 {
            plain.extend_from_slice(reader.take(control + 1)?);
        } else {
            let mut length = control >> 5;
            if length == 7 {
                length += usize::from(reader.byte()?);
            }
            let back = (control & 0x1F) << 8 | usize::from(reader.byte()?);
            let start = plain.len().checked_sub(back + 1)?;
            // Source and target may overlap, so byte by byte.
            for at in start..start + length + 2 {
                plain.push(plain[at]);
            }
        }
        if size < plain.len() {
            return None;
        }
    }
    (plain.len() == size).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::{Reader, unpack};

    #[test]
    fn lengths() {
        let rows: [(&[u8], Option<usize>); 7] = [
            (b"\x3f", Some(63)),
            (b"\x41\x00", Some(256)),
            (b"\x80\x00\x01\x00\x00", Some(65536)),
            (b"\x81\x00\x00\x00\x00\x00\x00\x00\x09", Some(9)),
            (b"\x82", None),
            (b"\xc0", None),
            (b"", None),
        ];
        for (bytes, expected) in rows {
            assert_eq!(Reader::new(bytes).length(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn lzf() {
        // One literal, then a run that copies itself.
        assert_eq!(unpack(b"\x00a\xe0\x01\x00", 11), Some(vec![b'a'; 11]));
        assert_eq!(unpack(b"\x00a\xe0\x01\x00", 10), None);
        assert_eq!(unpack(b"\x20\x00", 3), None);
        assert_eq!(unpack(b"\x05ab", 6), None);
    }
}
