//! A point: the entity that a log belongs to, and where its log lives.
//!
//! A point is a number of up to 128 bits with a name in the @p form (see [`crate::name`]). Its log
//! lives under a tuple of the header of category P and the number, which no other point's tuple
//! begins with, so one point's range never holds another's keys:
//!
//! ```text
//! 01 'P' 11 00  T(point)      T(0) = 14, T(n) = (14 + size) and size bytes (BE) for 1..8 bytes,
//!                             1d size and size bytes (BE) for 9..16 bytes
//! ```

use std::fmt;
use std::str::FromStr;

use kumiko_kv::{Range, Scan, Txn};

use crate::{Error, name};

/// The header of category P, version 1, format 1, as a tuple element.
const HEADER: [u8; 4] = [0x01, b'P', 0x11, 0x00];

/// The entity that a log belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(u128);

impl Point {
    /// The point of this number.
    pub const fn new(number: u128) -> Point {
        Point(number)
    }

    /// The number.
    pub const fn number(self) -> u128 {
        self.0
    }

    /// What every key of the point's log begins with.
    pub fn prefix(self) -> Vec<u8> {
        let mut prefix = HEADER.to_vec();
        prefix.extend_from_slice(&self.tuple());
        prefix
    }

    /// The number as an element of a tuple.
    pub fn tuple(self) -> Vec<u8> {
        let bytes = self.0.to_be_bytes();
        let significant = &bytes[self.0.leading_zeros() as usize / 8..];
        let size = significant.len() as u8;
        let mut tuple = if size <= 8 { vec![0x14 + size] } else { vec![0x1d, size] };
        tuple.extend_from_slice(significant);
        tuple
    }

    /// Reads the element at the start of `bytes`; canonical form only. Gives the rest too.
    pub fn from_tuple(bytes: &[u8]) -> Option<(Point, &[u8])> {
        let (size, rest) = match bytes {
            [code @ 0x14..=0x1c, rest @ ..] => (usize::from(code - 0x14), rest),
            [0x1d, size @ 9..=16, rest @ ..] => (usize::from(*size), rest),
            _ => return None,
        };
        let (digits, rest) = rest.split_at_checked(size)?;
        if digits.first() == Some(&0) {
            return None;
        }
        let number = digits.iter().fold(0, |sum, digit| (sum << 8) | u128::from(*digit));
        Some((Point(number), rest))
    }

    /// The bytes that schema 0 puts before the keys of a point in its subspace form:
    /// little-endian, without the zeros at the end.
    pub fn subspace(self) -> Vec<u8> {
        let size = 16 - self.0.leading_zeros() as usize / 8;
        self.0.to_le_bytes()[..size].to_vec()
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name::print(self.0))
    }
}

impl FromStr for Point {
    type Err = Error;

    /// Takes the canonical name only, so that no point has two.
    fn from_str(text: &str) -> Result<Point, Error> {
        name::parse(text).map(Point)
    }
}

/// The points that have a log, in order of their numbers, from `from` on, at most `count_max`.
///
/// # Errors
///
/// `Corrupt` if a key of category P is not a point's.
pub fn list(txn: &mut dyn Txn, from: Point, count_max: usize) -> Result<Vec<Point>, Error> {
    let mut points = Vec::new();
    let end = Range::prefix(&HEADER).end;
    let mut start = from.prefix();
    while points.len() < count_max {
        let scan = Scan::new(Range::new(start, end.as_slice())).rows(1).snapshot();
        let Some((key, _)) = txn.scan(&scan)?.rows.pop() else { break };
        let point = key.strip_prefix(&HEADER).and_then(Point::from_tuple).map(|(point, _)| point);
        let Some(point) = point else {
            let why = format!("key {} is under the points but names none", crate::hex(&key));
            return Err(Error::corrupt(crate::EventId::ZERO, why));
        };
        points.push(point);
        start = Range::prefix(&point.prefix()).end;
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::vectors::VECTORS;
    use kumiko_kv::{Engine, Memory};

    #[test]
    fn prefixes_of_all_vectors() {
        for (name, number, _, subspace, tuple) in VECTORS {
            let point = Point::new(*number);
            assert_eq!(point.to_string(), *name);
            assert_eq!(name.parse::<Point>().unwrap(), point);
            assert_eq!(crate::hex(&point.subspace()), *subspace, "{name}");
            assert_eq!(crate::hex(&point.tuple()), *tuple, "{name}");
            let bytes = point.tuple();
            assert_eq!(Point::from_tuple(&bytes), Some((point, &[][..])));
        }
    }

    #[test]
    fn prefixes_are_tuples() {
        assert_eq!(kumiko_base::Category::Point.prefix(), HEADER);
        for (_, number, ..) in VECTORS {
            // The tuple layer has no integer of 128 bits without a sign.
            if let Ok(number) = i128::try_from(*number) {
                let tuple = kumiko_base::tuple::Writer::new().int(number).finish();
                assert_eq!(Point::new(number as u128).tuple(), tuple);
            }
        }
    }

    #[test]
    fn only_the_canonical_element_is_read() {
        let bad: [&[u8]; 6] = [
            b"",
            &[0x15],
            &[0x15, 0],
            &[0x1d, 8, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x1d, 17, 1],
            &[0x13, 1],
        ];
        for bytes in bad {
            assert_eq!(Point::from_tuple(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn points_are_listed_in_order_and_only_once() {
        let engine = Memory::new();
        let mut txn = engine.begin().unwrap();
        for (_, number, ..) in VECTORS {
            for tail in [&b"\0meta/latest"[..], b"\0\0\0\0\0\0\0\0\x01"] {
                txn.put(&[&Point::new(*number).prefix(), tail].concat(), b"").unwrap();
            }
        }
        txn.put(b"\x01Q\x11\x00\x14", b"").unwrap();
        let mut numbers: Vec<u128> = VECTORS.iter().map(|row| row.1).collect();
        numbers.sort_unstable();
        let found = list(txn.as_mut(), Point::new(0), usize::MAX).unwrap();
        assert_eq!(found.iter().map(|point| point.number()).collect::<Vec<_>>(), numbers);
        let found = list(txn.as_mut(), Point::new(0x101), 2).unwrap();
        assert_eq!(found, [Point::new(0x101), Point::new(0x200)]);
        txn.put(b"\x01P\x11\x00\x13", b"").unwrap();
        assert!(list(txn.as_mut(), Point::new(0), 1).is_ok());
    }
}
