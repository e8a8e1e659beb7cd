//! The fields of a hash and the members of a set: packed while small, a table when large.

use super::hashing::Hashing;
use super::pack::{Pack, get_bytes, put_bytes, sized};
use super::table::Table;

/// When a small form becomes a table. The defaults are those Redis users know.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// Most fields of a packed hash.
    pub hash_entries: usize,
    /// Longest field or value of a packed hash.
    pub hash_value: usize,
    /// Most members of a set of integers.
    pub set_ints: usize,
    /// Most members of a packed set.
    pub set_entries: usize,
    /// Longest member of a packed set.
    pub set_value: usize,
    /// Most members of a packed sorted set.
    pub zset_entries: usize,
    /// Longest member of a packed sorted set.
    pub zset_value: usize,
    /// Most elements of a list that calls itself a listpack; negative: by size, as Redis does.
    pub list_size: i64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            hash_entries: 128,
            hash_value: 64,
            set_ints: 512,
            set_entries: 128,
            set_value: 64,
            zset_entries: 128,
            zset_value: 64,
            list_size: -2,
        }
    }
}

/// A field and its value in one allocation: the field with its length, then the value.
type Pair = Box<[u8]>;

fn pair(field: &[u8], value: &[u8]) -> Pair {
    let mut bytes = Vec::with_capacity(sized(field.len()) + value.len());
    put_bytes(&mut bytes, field);
    bytes.extend_from_slice(value);
    bytes.into_boxed_slice()
}

fn split(pair: &[u8]) -> (&[u8], &[u8]) {
    let (field, end) = get_bytes(pair, 0).expect("pairs start with their field");
    (field, &pair[end..])
}

/// The fields of one hash.
#[derive(Debug)]
pub(crate) enum Fields {
    Small { count: usize, pack: Pack },
    Large(Box<Table<Pair>>),
}

impl Fields {
    pub(crate) fn new() -> Fields {
        Fields::Small { count: 0, pack: Pack::default() }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Fields::Small { count, .. } => *count,
            Fields::Large(table) => table.len(),
        }
    }

    pub(crate) fn get(&self, hashing: &Hashing, field: &[u8]) -> Option<&[u8]> {
        match self {
            Fields::Small { pack, .. } => {
                let (_, end) = pack.find(field, 2)?;
                Some(pack.item(end).0)
            }
            Fields::Large(table) => {
                table.find(hashing.of(field), |it| split(it).0 == field).map(|it| split(it).1)
            }
        }
    }

    /// Sets a field; true if it is new.
    pub(crate) fn set(
        &mut self,
        hashing: &Hashing,
        limits: &Thresholds,
        field: &[u8],
        value: &[u8],
    ) -> bool {
        let long = limits.hash_value < field.len().max(value.len());
        if let Fields::Small { count, .. } = self
            && (long || limits.hash_entries <= *count)
            && (long || self.get(hashing, field).is_none())
        {
            self.enlarge(hashing);
        }
        match self {
            Fields::Small { count, pack } => {
                if let Some((_, end)) = pack.find(field, 2) {
                    let value_end = pack.item(end).1;
                    pack.replace(end, value_end, value);
                    return false;
                }
                pack.push(field);
                pack.push(value);
                *count += 1;
                true
            }
            Fields::Large(table) => {
                let hash = hashing.of(field);
                if let Some(old) = table.find_mut(hash, |it| split(it).0 == field) {
                    let start = old.len() - split(old).1.len();
                    if old.len() - start == value.len() {
                        old[start..].copy_from_slice(value);
                    } else {
                        *old = pair(field, value);
                    }
                    return false;
                }
                table.insert(hash, pair(field, value), |it| hashing.of(split(it).0));
                true
            }
        }
    }

    pub(crate) fn del(&mut self, hashing: &Hashing, field: &[u8]) -> bool {
        match self {
            Fields::Small { count, pack } => {
                let Some((start, end)) = pack.find(field, 2) else { return false };
                let value_end = pack.item(end).1;
                pack.cut(start, value_end);
                *count -= 1;
                true
            }
            Fields::Large(table) => table
                .remove(hashing.of(field), |it| split(it).0 == field, |it| hashing.of(split(it).0))
                .is_some(),
        }
    }

    fn enlarge(&mut self, hashing: &Hashing) {
        let mut table = Table::new();
        for (field, value) in self.iter() {
            table
                .insert(hashing.of(field), pair(field, value), |it: &Pair| hashing.of(split(it).0));
        }
        *self = Fields::Large(Box::new(table));
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = (&[u8], &[u8])> + '_> {
        match self {
            Fields::Small { pack, .. } => {
                let mut items = pack.iter();
                Box::new(std::iter::from_fn(move || Some((items.next()?, items.next()?))))
            }
            Fields::Large(table) => Box::new(table.iter().map(|it| split(it))),
        }
    }

    /// As `Table::scan`; a small hash comes whole.
    pub(crate) fn scan(
        &self,
        hashing: &Hashing,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> u64 {
        match self {
            Fields::Small { .. } => {
                self.iter().for_each(|(field, value)| visit(field, value));
                0
            }
            Fields::Large(table) => table.scan(
                cursor,
                count,
                |it| hashing.of(split(it).0),
                |it| {
                    let (field, value) = split(it);
                    visit(field, value);
                },
            ),
        }
    }

    pub(crate) fn random(&self, below: &mut dyn FnMut(u64) -> u64) -> Option<(&[u8], &[u8])> {
        match self {
            Fields::Small { count: 0, .. } => None,
            Fields::Small { count, .. } => self.iter().nth(below(*count as u64) as usize),
            Fields::Large(table) => table.random(below).map(|it| split(it)),
        }
    }

    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Fields::Small { .. } => "listpack",
            Fields::Large(_) => "hashtable",
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Fields::Small { pack, .. } => pack.size(),
            Fields::Large(table) => {
                let heap = sampled(table, |it| it.len().next_multiple_of(8));
                table.bytes() + heap
            }
        }
    }
}

/// The sum of `size` over all items, estimated from a sample when there are many.
pub(crate) fn sampled<T>(table: &Table<T>, size: impl Fn(&T) -> usize) -> usize {
    const SAMPLE: usize = 1000;
    let taken = table.len().min(SAMPLE);
    let sum: usize = table.iter().take(SAMPLE).map(size).sum();
    if taken == 0 { 0 } else { (sum as u128 * table.len() as u128 / taken as u128) as usize }
}

/// The integer a byte string spells in the one canonical way, if it does.
pub fn parse_int(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    if digits.is_empty() || 19 < digits.len() {
        return None;
    }
    if digits[0] == b'0' && (1 < digits.len() || negative) {
        return None;
    }
    let mut n: i64 = 0;
    for byte in digits {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        if 9 < digit {
            return None;
        }
        n = n.checked_mul(10)?.checked_sub(digit)?;
    }
    if negative { Some(n) } else { n.checked_neg() }
}

/// Writes an integer's decimal text without going through the formatter.
pub(crate) fn int_text(n: i64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = n.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

/// The members of one set.
#[derive(Debug)]
pub(crate) enum Members {
    Ints(Vec<i64>),
    Small { count: usize, pack: Pack },
    Large(Box<Table<Box<[u8]>>>),
}

impl Members {
    pub(crate) fn new() -> Members {
        Members::Ints(Vec::new())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Members::Ints(ints) => ints.len(),
            Members::Small { count, .. } => *count,
            Members::Large(table) => table.len(),
        }
    }

    pub(crate) fn has(&self, hashing: &Hashing, member: &[u8]) -> bool {
        match self {
            Members::Ints(ints) => {
                parse_int(member).is_some_and(|n| ints.binary_search(&n).is_ok())
            }
            Members::Small { pack, .. } => pack.find(member, 1).is_some(),
            Members::Large(table) => table.find(hashing.of(member), |it| **it == *member).is_some(),
        }
    }

    /// Adds a member; true if it is new.
    pub(crate) fn add(&mut self, hashing: &Hashing, limits: &Thresholds, member: &[u8]) -> bool {
        if let Members::Ints(ints) = self {
            if let Some(n) = parse_int(member) {
                let Err(at) = ints.binary_search(&n) else { return false };
                if ints.len() < limits.set_ints {
                    ints.insert(at, n);
                    return true;
                }
            }
            self.widen(hashing, limits, member.len());
        }
        if let Members::Small { count, pack } = self {
            if pack.find(member, 1).is_some() {
                return false;
            }
            if *count < limits.set_entries && member.len() <= limits.set_value {
                pack.push(member);
                *count += 1;
                return true;
            }
            self.enlarge(hashing);
        }
        let Members::Large(table) = self else { unreachable!("the small forms returned") };
        let hash = hashing.of(member);
        if table.find(hash, |it| **it == *member).is_some() {
            return false;
        }
        table.insert(hash, member.into(), |it| hashing.of(it));
        true
    }

    pub(crate) fn del(&mut self, hashing: &Hashing, member: &[u8]) -> bool {
        match self {
            Members::Ints(ints) => {
                let Some(n) = parse_int(member) else { return false };
                let Ok(at) = ints.binary_search(&n) else { return false };
                ints.remove(at);
                true
            }
            Members::Small { count, pack } => {
                let Some((start, end)) = pack.find(member, 1) else { return false };
                pack.cut(start, end);
                *count -= 1;
                true
            }
            Members::Large(table) => table
                .remove(hashing.of(member), |it| **it == *member, |it| hashing.of(it))
                .is_some(),
        }
    }

    /// Leaves the form of integers for the packed one, or for a table if it would be too large.
    fn widen(&mut self, hashing: &Hashing, limits: &Thresholds, next_size: usize) {
        if limits.set_entries <= self.len() || limits.set_value < next_size {
            self.enlarge(hashing);
            return;
        }
        let mut pack = Pack::default();
        self.each(|member| pack.push(member));
        *self = Members::Small { count: self.len(), pack };
    }

    fn enlarge(&mut self, hashing: &Hashing) {
        let mut table: Table<Box<[u8]>> = Table::new();
        self.each(|member| table.insert(hashing.of(member), member.into(), |it| hashing.of(it)));
        *self = Members::Large(Box::new(table));
    }

    pub(crate) fn each(&self, mut visit: impl FnMut(&[u8])) {
        match self {
            Members::Ints(ints) => {
                let mut buffer = [0; 20];
                for n in ints {
                    visit(int_text(*n, &mut buffer));
                }
            }
            Members::Small { pack, .. } => pack.iter().for_each(visit),
            Members::Large(table) => table.iter().for_each(|it| visit(it)),
        }
    }

    /// As `Table::scan`; a small set comes whole.
    pub(crate) fn scan(
        &self,
        hashing: &Hashing,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8]),
    ) -> u64 {
        if let Members::Large(table) = self {
            return table.scan(cursor, count, |it| hashing.of(it), |it| visit(it));
        }
        self.each(visit);
        0
    }

    pub(crate) fn random(&self, below: &mut dyn FnMut(u64) -> u64) -> Option<Vec<u8>> {
        match self {
            Members::Ints(ints) if ints.is_empty() => None,
            Members::Ints(ints) => {
                let n = ints[below(ints.len() as u64) as usize];
                Some(int_text(n, &mut [0; 20]).to_vec())
            }
            Members::Small { count: 0, .. } => None,
            Members::Small { count, pack } => {
                pack.iter().nth(below(*count as u64) as usize).map(<[u8]>::to_vec)
            }
            Members::Large(table) => table.random(below).map(|it| it.to_vec()),
        }
    }

    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Members::Ints(_) => "intset",
            Members::Small { .. } => "listpack",
            Members::Large(_) => "hashtable",
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Members::Ints(ints) => ints.capacity() * 8,
            Members::Small { pack, .. } => pack.size(),
            Members::Large(table) => {
                table.bytes() + sampled(table, |it| it.len().next_multiple_of(8))
            }
        }
    }
}
