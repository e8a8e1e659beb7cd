//! Counts as the encoding writes them: base 128, most significant group first, the high bit on
//! every byte but the last, shortest form only, at most 63 bits.

use crate::Error;

/// The longest count: nine groups of seven bits.
pub const VLQ_BYTES_MAX: usize = 9;

/// Appends `count`.
pub fn put(to: &mut Vec<u8>, count: u64) {
    assert!(count >> 63 == 0, "a count has at most 63 bits");
    for group in (1..size(count)).rev() {
        to.push(0x80 | (count >> (7 * group)) as u8);
    }
    to.push(count as u8 & 0x7f);
}

/// How many bytes `put` appends.
pub fn size(count: u64) -> usize {
    (64 - (count | 1).leading_zeros() as usize).div_ceil(7)
}

/// Reads a count from the start of `bytes`: the count and the bytes it took.
///
/// # Errors
///
/// `Encoding` if the count is cut off, not in its shortest form, or longer than 63 bits.
pub fn get(bytes: &[u8]) -> Result<(u64, usize), Error> {
    let mut count = 0_u64;
    for (index, &byte) in bytes.iter().take(VLQ_BYTES_MAX).enumerate() {
        if index == 0 && byte == 0x80 {
            return Err(Error::Encoding { reason: "count is not in its shortest form" });
        }
        count = count << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Ok((count, index + 1));
        }
    }
    let reason = if bytes.len() < VLQ_BYTES_MAX { "count is cut off" } else { "count is too long" };
    Err(Error::Encoding { reason })
}

#[cfg(test)]
mod tests {
    use super::{get, put, size};

    #[test]
    fn counts() {
        // count, bytes
        let rows: [(u64, &[u8]); 8] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0x81, 0]),
            (255, &[0x81, 0x7f]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x81, 0x80, 0]),
            (1 << 56, &[0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]),
            (i64::MAX as u64, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
        ];
        for (count, bytes) in rows {
            let mut put_bytes = Vec::new();
            put(&mut put_bytes, count);
            assert_eq!(put_bytes, bytes, "{count}");
            assert_eq!(size(count), bytes.len(), "{count}");
            assert_eq!(get(bytes), Ok((count, bytes.len())));
            assert!(get(&bytes[..bytes.len() - 1]).is_err(), "{count} cut off");
        }
        assert!(get(&[0x80, 0]).is_err());
        assert!(get(&[0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]).is_err());
    }
}
