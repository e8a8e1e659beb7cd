//! Byte strings end to end: the form of small collections, and the varint that all forms share.
//!
//! ```text
//! length (varint: seven bits a byte, low first) bytes
//! ```

/// Appends `n` in as few bytes as it needs.
pub(crate) fn put_varint(to: &mut Vec<u8>, mut n: u64) {
    while 0x80 <= n {
        to.push((n as u8) | 0x80);
        n >>= 7;
    }
    to.push(n as u8);
}

/// The number at `at` and where it ends; nothing if the bytes stop short or run too long.
pub(crate) fn get_varint(from: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *from.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    let mut n = u64::from(first & 0x7F);
    for (index, byte) in from.get(at + 1..)?.iter().take(9).enumerate() {
        let shift = 7 * (index as u32 + 1);
        let bits = u64::from(byte & 0x7F);
        if shift == 63 && 1 < bits {
            return None;
        }
        n |= bits << shift;
        if *byte < 0x80 {
            return Some((n, at + index + 2));
        }
    }
    None
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// The byte string at `at` and where it ends.
pub(crate) fn get_bytes(from: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (size, start) = get_varint(from, at)?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    Some((from.get(start..end)?, end))
}

/// Bytes that `put_bytes` needs for `size` bytes.
pub(crate) fn sized(size: usize) -> usize {
    let bits = usize::BITS - (size | 1).leading_zeros();
    size + bits.div_ceil(7) as usize
}

/// A short sequence of byte strings, searched from its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pack {
    bytes: Vec<u8>,
}

impl Pack {
    pub(crate) fn iter(&self) -> Items<'_> {
        Items { bytes: &self.bytes, at: 0 }
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes.capacity()
    }

    /// The start and end of the first item among each `step`-th that equals `wanted`.
    pub(crate) fn find(&self, wanted: &[u8], step: usize) -> Option<(usize, usize)> {
        let mut at = 0;
        let mut index = 0;
        while at < self.bytes.len() {
            let (item, end) = get_bytes(&self.bytes, at).expect("packs hold whole items");
            if index % step == 0 && item == wanted {
                return Some((at, end));
            }
            at = end;
            index += 1;
        }
        None
    }

    /// The item that starts at `at`, and its end.
    pub(crate) fn item(&self, at: usize) -> (&[u8], usize) {
        get_bytes(&self.bytes, at).expect("packs hold whole items")
    }

    pub(crate) fn push(&mut self, item: &[u8]) {
        self.bytes.reserve_exact(sized(item.len()));
        put_bytes(&mut self.bytes, item);
    }

    /// Puts `item` where the bytes from `start` to `end` were.
    pub(crate) fn replace(&mut self, start: usize, end: usize, item: &[u8]) {
        let mut fresh = Vec::with_capacity(sized(item.len()));
        put_bytes(&mut fresh, item);
        self.bytes.splice(start..end, fresh);
    }

    pub(crate) fn cut(&mut self, start: usize, end: usize) {
        self.bytes.drain(start..end);
    }
}

/// The items of a pack in order.
#[derive(Clone, Debug)]
pub(crate) struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.at == self.bytes.len() {
            return None;
        }
        let (item, end) = get_bytes(self.bytes, self.at).expect("packs hold whole items");
        self.at = end;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::{get_bytes, get_varint, put_bytes, put_varint, sized};
    use kumiko_base::draw;

    #[test]
    fn varints_come_back() {
        draw::check("varints_come_back", 2000, |draw| {
            let n = draw.bits() >> draw.below(64);
            let mut to = vec![7];
            put_varint(&mut to, n);
            assert_eq!(get_varint(&to, 1), Some((n, to.len())));
            assert_eq!(get_varint(&to[..to.len() - 1], 1), None);
            let bytes = draw.bytes(300);
            let mut packed = Vec::new();
            put_bytes(&mut packed, &bytes);
            assert_eq!(packed.len(), sized(bytes.len()));
            assert_eq!(get_bytes(&packed, 0), Some((&bytes[..], packed.len())));
            let noise = draw.bytes(12);
            if let Some((_, end)) = get_bytes(&noise, 0) {
                assert!(end <= noise.len());
            }
        });
        assert_eq!(get_varint(&[0xFF; 11], 0), None);
    }
}
