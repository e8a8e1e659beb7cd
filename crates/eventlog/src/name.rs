//! Names of points in the @p form: syllables that a person can read out.
//!
//! A number is scrambled first, so that neighbours get unlike names, then spelled in groups of two
//! bytes. Only the low 32 bits are scrambled, and only where they are 0x10000 or more; numbers of
//! more than 64 bits are spelled as they are. The scrambling is a Feistel network of four rounds
//! over pairs of a remainder and a quotient by 65535, which is why the moduli alternate.
//!
//! Parsing is strict: a text is a name only if printing its number gives the same text.

mod syllables;
#[cfg(test)]
pub(crate) mod vectors;

use crate::Error;
use syllables::{PREFIXES, SUFFIXES};

/// The longest name: eight groups, their separators and the tilde.
pub const NAME_BYTES_MAX: usize = 57;

const SEEDS: [u32; 4] = [0xb76d5eed, 0xee281300, 0x85bcae01, 0x4b387af7];
const A: u32 = 65_535;
const B: u32 = 65_536;

/// The name of a number.
pub fn print(number: u128) -> String {
    let scrambled = scramble(number);
    let mut name = String::with_capacity(NAME_BYTES_MAX);
    name.push('~');
    if scrambled < 0x100 {
        name.push_str(syllable(SUFFIXES, scrambled as u8));
        return name;
    }
    let groups = (128 - scrambled.leading_zeros()).div_ceil(16);
    for group in (0..groups).rev() {
        let pair = (scrambled >> (16 * group)) as u16;
        name.push_str(syllable(PREFIXES, (pair >> 8) as u8));
        name.push_str(syllable(SUFFIXES, pair as u8));
        if group != 0 {
            // Four groups make a line of 64 bits; lines are set apart by a double dash.
            name.push_str(if group % 4 == 0 { "--" } else { "-" });
        }
    }
    name
}

/// The number of a canonical name.
///
/// # Errors
///
/// `Invalid` for anything else, other spellings of a number included.
pub fn parse(name: &str) -> Result<u128, Error> {
    let invalid = || {
        let shown: String = name.chars().take(NAME_BYTES_MAX + 1).collect();
        Error::Invalid(format!("{shown:?} is not the name of a point, like ~sampel-palnet"))
    };
    if NAME_BYTES_MAX < name.len() {
        return Err(invalid());
    }
    let spelled = name.strip_prefix('~').ok_or_else(invalid)?;
    let mut scrambled: u128 = 0;
    for (index, group) in spelled.split('-').filter(|group| !group.is_empty()).enumerate() {
        let (high, low) = match (group.get(..3), group.get(3..)) {
            // A single syllable stands alone or not at all; printing again finds that out.
            (Some(low), Some("")) if index == 0 => (0, find(SUFFIXES, low)),
            (Some(high), Some(low)) => {
                (find(PREFIXES, high).ok_or_else(invalid)?, find(SUFFIXES, low))
            }
            _ => return Err(invalid()),
        };
        let low = low.ok_or_else(invalid)?;
        scrambled = (scrambled << 16) | (u128::from(high) << 8) | u128::from(low);
    }
    let number = unscramble(scrambled);
    if print(number) == name { Ok(number) } else { Err(invalid()) }
}

fn syllable(table: &'static str, byte: u8) -> &'static str {
    let start = 3 * usize::from(byte);
    &table[start..start + 3]
}

fn find(table: &str, syllable: &str) -> Option<u8> {
    let wanted = syllable.as_bytes();
    let place = table.as_bytes().chunks_exact(3).position(|entry| entry == wanted)?;
    u8::try_from(place).ok()
}

/// What is spelled for a number.
pub fn scramble(number: u128) -> u128 {
    low_half(number, encipher)
}

/// The number for what is spelled.
pub fn unscramble(scrambled: u128) -> u128 {
    low_half(scrambled, decipher)
}

fn low_half(number: u128, cipher: fn(u32) -> u32) -> u128 {
    let low = number as u32;
    if number >> 64 != 0 || low < 0x10000 {
        return number;
    }
    (number >> 32 << 32) | u128::from(0x10000 + cipher(low - 0x10000))
}

fn modulus(round: usize) -> u32 {
    if round.is_multiple_of(2) { A } else { B }
}

fn encipher(m: u32) -> u32 {
    let (mut l, mut r) = (m % A, m / A);
    for (round, seed) in SEEDS.iter().enumerate() {
        let sum = u64::from(l) + u64::from(hash(*seed, r as u16));
        (l, r) = (r, (sum % u64::from(modulus(round))) as u32);
    }
    // A right half of A would spill over; swapping the halves keeps the cipher one to one.
    if r == A { A * r + l } else { A * l + r }
}

fn decipher(c: u32) -> u32 {
    let (mut l, mut r) = (c / A, c % A);
    if l == A {
        (l, r) = (r, l);
    }
    for (round, seed) in SEEDS.iter().enumerate().rev() {
        let modulus = u64::from(modulus(round));
        let taken = u64::from(hash(*seed, l as u16)) % modulus;
        (r, l) = (l, ((u64::from(r) + modulus - taken) % modulus) as u32);
    }
    A * r + l
}

/// MurmurHash3 (x86, 32 bits) of the two bytes of `key`, little-endian.
fn hash(seed: u32, key: u16) -> u32 {
    // Two bytes are less than a block: they are mixed in as a tail, then the size, 2.
    let tail = u32::from(key).wrapping_mul(0xcc9e2d51).rotate_left(15).wrapping_mul(0x1b873593);
    let mut h = seed ^ tail ^ 2;
    h = (h ^ (h >> 16)).wrapping_mul(0x85ebca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2ae35);
    h ^ (h >> 16)
}

#[cfg(test)]
mod tests {
    use super::vectors::{REFUSED, VECTORS};
    use super::*;
    use kumiko_base::{Kind, draw};

    #[test]
    fn all_vectors() {
        for (name, number, scrambled, ..) in VECTORS {
            assert_eq!(scramble(*number), *scrambled, "{name}");
            assert_eq!(unscramble(*scrambled), *number, "{name}");
            assert_eq!(print(*number), *name);
            assert_eq!(parse(name).unwrap(), *number);
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for name in REFUSED {
            assert_eq!(parse(name).unwrap_err().kind(), Kind::Invalid, "{name}");
        }
    }

    #[test]
    fn hashes() {
        let rows = [
            (0, 0x0101, 0x42081a9b),
            (0, 0x0201, 0x64c7667e),
            (0, 0x4812, 0xa30782dc),
            (0xb76d5eed, 0, 0xbe0423ff),
            (0xb76d5eed, 1, 0x746267cc),
            (0xee281300, 0, 0x319727ba),
            (0x85bcae01, 0xffff, 0xe453cc35),
            (0x4b387af7, 0x1234, 0x4fe6b307),
        ];
        for (seed, key, expected) in rows {
            assert_eq!(hash(seed, key), expected, "seed {seed:x} key {key:x}");
        }
    }

    #[test]
    fn every_number_has_one_name() {
        draw::check("every_number_has_one_name", 20_000, |draw| {
            let bits = draw.one_of(&[8, 16, 17, 32, 33, 64, 65, 128]);
            let number = (u128::from(draw.bits()) << 64 | u128::from(draw.bits())) >> (128 - bits);
            let name = print(number);
            assert!(name.len() <= NAME_BYTES_MAX);
            assert_eq!(parse(&name).unwrap(), number);
        });
    }

    /// Whatever is accepted is canonical, and nothing makes the parser panic.
    #[test]
    fn mutated_names() {
        draw::check("mutated_names", 20_000, |draw| {
            let mut text: Vec<char> = draw.one_of(VECTORS).0.chars().collect();
            for _ in 0..=draw.below(3) {
                let at = draw.index(text.len() + 1);
                match draw.below(4) {
                    0 if at < text.len() => drop(text.remove(at)),
                    1 => text.insert(at, draw.one_of(&['-', '~', 'z', 'Z', '\u{e9}', '\u{1f600}'])),
                    _ if at < text.len() => text[at] = draw.one_of(&['a', 'o', 'd', '-', 'z']),
                    _ => text.extend("-zod".chars()),
                }
            }
            let text: String = text.into_iter().collect();
            if let Ok(number) = parse(&text) {
                assert_eq!(print(number), text);
            }
        });
    }
}
