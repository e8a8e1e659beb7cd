//! The CRC-64 of Redis dumps: the polynomial of Jones, reflected, starting from zero.

const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;

const TABLE: [u64; 256] = {
    let mut table = [0u64; 256];
    let mut at = 0;
    while at < 256 {
        let mut sum = at as u64;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
};

/// The checksum of `bytes`.
pub(super) fn of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| TABLE[(sum as u8 ^ byte) as usize] ^ sum >> 8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_usual_nine_digits() {
        assert_eq!(super::of(b"123456789"), 0xE9C6_D914_C4B8_D9CA);
        assert_eq!(super::of(b""), 0);
    }
}
