//! When an event happened, as far as its bytes tell.
//!
//! An event of a pier is four bytes of state hash and a jammed noun, normally the cell of a date
//! and what happened. Jam packs bits from the lowest up: `10` for a cell, `0` for an atom, whose
//! size follows as a count of zeros, a one, and the size's own lower bits.

/// Seconds before 1970 in a date of 128 bits, whose upper half counts seconds.
const EPOCH: u64 = 0x8000_000c_ce9e_0d80;
/// Dates from here on (the year 2100) are taken for noise.
const SECONDS_MAX: u64 = 4_102_444_800;

/// The time of an event in ms since 1970, if it begins with a plausible date.
pub fn event_ms(event: &[u8]) -> Option<u64> {
    let mut bits = Bits { bytes: event.get(4..)?, at: 0 };
    // The cell, then the atom in its head.
    if !bits.next()? || bits.next()? || bits.next()? {
        return None;
    }
    let mut zeros = 0;
    while !bits.next()? {
        zeros += 1;
        if 8 < zeros {
            return None; // A size of more than eight bits: no date.
        }
    }
    if zeros == 0 {
        return None;
    }
    let size = bits.number(zeros - 1)? | 1 << (zeros - 1);
    if 128 < size {
        return None;
    }
    let date = bits.number(size as u32)?;
    let seconds = ((date >> 64) as u64).checked_sub(EPOCH)?;
    let fraction = (date >> 48) as u16;
    (seconds < SECONDS_MAX).then(|| seconds * 1_000 + u64::from(fraction) * 1_000 / 65_536)
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn next(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (self.at % 8) & 1;
        self.at += 1;
        Some(bit == 1)
    }

    fn number(&mut self, count: u32) -> Option<u128> {
        let mut number = 0;
        for place in 0..count {
            number |= u128::from(self.next()?) << place;
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::draw;

    /// Jams the cell of a date and zero, behind four bytes.
    fn event(date: u128) -> Vec<u8> {
        let mut bits = vec![true, false, false];
        let size = 128 - date.leading_zeros();
        let width = 32 - size.leading_zeros();
        bits.extend((0..width).map(|_| false).chain([true]));
        bits.extend((0..width - 1).map(|place| size >> place & 1 == 1));
        bits.extend((0..size).map(|place| date >> place & 1 == 1));
        bits.extend([false, true]);
        let mut bytes = vec![0; 4 + bits.len().div_ceil(8)];
        for (place, bit) in bits.into_iter().enumerate() {
            bytes[4 + place / 8] |= u8::from(bit) << (place % 8);
        }
        bytes
    }

    #[test]
    fn dates() {
        let date = |ms: u64| {
            let seconds = u128::from(EPOCH + ms / 1_000) << 64;
            seconds | u128::from(ms % 1_000 * 65_536 / 1_000 + 1) << 48
        };
        for ms in [0, 1_700_000_000_123, 4_102_444_799_000] {
            assert_eq!(event_ms(&event(date(ms))), Some(ms));
        }
        assert_eq!(event_ms(&event(date(4_102_444_800_000))), None);
        assert_eq!(event_ms(&event(7)), None);
        assert_eq!(event_ms(b""), None);
        assert_eq!(event_ms(b"1234"), None);
        draw::check("dates", 5_000, |draw| {
            let _ = event_ms(&draw.bytes(40));
        });
    }
}
