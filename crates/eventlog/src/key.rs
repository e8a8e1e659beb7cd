//! The keys of schema 0, behind a log's prefix.
//!
//! ```text
//! 00 id (8, BE)                                  a whole event
//! 00 id (8, BE) 00 00.. (8)       size (8, LE)   fragment 0, the only one to carry the size
//! 00 id (8, BE) 00 index (8, BE)                 fragment 1, 2, ..
//! 00 id (8, BE) d                                a special record; bit 0 of d is set
//! 00 "meta/" name                                metadata
//! 01 number (8, BE)                              the head of a blob (ours, not of schema 0)
//! 02 number (8, BE) index (8, BE)                a piece of a blob (ours, not of schema 0)
//! ```
//!
//! The first byte 00 is the one that schema 0 puts before all keys. Ids stay below 2^62, so that
//! every event sorts before the metadata and no name of ours can be read as an event.

use std::fmt;

use kumiko_kv::Range;

/// The number of an event. Events count from 1 without gaps; 0 means "before the first".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(u64);

impl EventId {
    /// Before the first event.
    pub const ZERO: EventId = EventId(0);
    /// The first event of a log that was never truncated.
    pub const FIRST: EventId = EventId(1);
    /// The last id: below 2^62, where the metadata would begin to interleave.
    pub const MAX: EventId = EventId((1 << 62) - 1);

    /// The id of this number; `None` past the last one.
    pub const fn new(number: u64) -> Option<EventId> {
        if number <= EventId::MAX.0 { Some(EventId(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The id after this one; stays at one past the last, which no key can hold.
    pub const fn next(self) -> EventId {
        EventId(self.0 + 1)
    }

    /// The id before this one, at least zero.
    pub const fn prior(self) -> EventId {
        EventId(self.0.saturating_sub(1))
    }

    /// The id `count` further on, at most one past the last.
    pub const fn plus(self, count: u64) -> EventId {
        let sum = self.0.saturating_add(count);
        EventId(if EventId::MAX.0 < sum { EventId::MAX.0 + 1 } else { sum })
    }

    /// Whether an event may have this id.
    pub const fn is_event(self) -> bool {
        EventId::FIRST.0 <= self.0 && self.0 <= EventId::MAX.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the key of a data record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The value is the event.
    Whole(EventId),
    /// The value is the first fragment of an event of this many bytes.
    First(EventId, u64),
    /// The value is the fragment of this index, from 1.
    Fragment(EventId, u64),
    /// A special record with its descriptor.
    Special(EventId, u8),
}

impl Record {
    /// The event that the record belongs to.
    pub const fn id(self) -> EventId {
        match self {
            Record::Whole(id)
            | Record::First(id, _)
            | Record::Fragment(id, _)
            | Record::Special(id, _) => id,
        }
    }

    /// Reads what stands behind the prefix and the byte 00; `None` for anything that is not a data
    /// record to the byte.
    pub fn unpack(rest: &[u8]) -> Option<Record> {
        let (id, tail) = rest.split_first_chunk::<8>()?;
        let id = EventId::new(u64::from_be_bytes(*id))?;
        if !id.is_event() {
            return None;
        }
        match tail {
            [] => Some(Record::Whole(id)),
            [descriptor] if descriptor & 1 == 1 => Some(Record::Special(id, *descriptor)),
            [0, tail @ ..] => {
                let (index, tail) = tail.split_first_chunk::<8>()?;
                match (u64::from_be_bytes(*index), tail) {
                    (0, size) => Some(Record::First(id, u64::from_le_bytes(size.try_into().ok()?))),
                    (index, []) => Some(Record::Fragment(id, index)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Writes what stands behind the prefix and the byte 00.
    pub fn pack(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id().get().to_be_bytes());
        match self {
            Record::Whole(_) => {}
            Record::First(_, size) => {
                out.extend_from_slice(&[0; 9]);
                out.extend_from_slice(&size.to_le_bytes());
            }
            Record::Fragment(_, index) => {
                assert!(0 < index, "fragment 0 carries its size");
                out.push(0);
                out.extend_from_slice(&index.to_be_bytes());
            }
            Record::Special(_, descriptor) => {
                assert!(descriptor & 1 == 1, "a special record's descriptor is odd");
                out.push(descriptor);
            }
        }
    }
}

/// The byte before every key of schema 0.
pub const ROOT: u8 = 0x00;
/// The byte before the heads of blobs, outside of schema 0.
pub const BLOB_HEAD: u8 = 0x01;
/// The byte before the pieces of blobs, outside of schema 0.
pub const BLOB_PIECE: u8 = 0x02;
/// How every metadata key begins.
pub const META: &[u8] = b"meta/";

/// The schema, in ASCII.
pub const META_SCHEMA: &[u8] = b"meta/schema-version";
/// The latest event, BE64.
pub const META_LATEST: &[u8] = b"meta/latest";
/// The first event that is kept, BE64; absent means 1. Ours.
pub const META_FIRST: &[u8] = b"meta/first";
/// Who writes. Ours.
pub const META_WRITER: &[u8] = b"meta/writer";
/// The number of the next blob, BE64. Ours.
pub const META_BLOBS: &[u8] = b"meta/blobs";
/// How much was appended in one hour: then hour (4, BE) and 'n' (events) or 's' (bytes). Ours.
pub const META_HOUR: &[u8] = b"meta/hour/";
/// What a vere pier said of itself. Ours.
pub const META_PIER: &[u8] = b"meta/pier-meta";
/// What a vere pier said of one epoch: then its number (8, BE). Ours.
pub const META_EPOCH: &[u8] = b"meta/pier-epoch/";

/// The keys of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: Vec<u8>,
    /// What stands before an id and before metadata: the prefix and the byte 00, or in the
    /// subspace form the byte 00 and the point.
    head: Vec<u8>,
    /// The last id that may be used: fewer in the subspace form.
    id_last: EventId,
    /// Whether there are special records: not in the subspace form.
    special: bool,
}

impl Keys {
    /// Every key begins with `prefix`.
    pub fn new(prefix: Vec<u8>) -> Keys {
        let mut head = prefix.clone();
        head.push(ROOT);
        Keys { prefix, head, id_last: EventId::MAX, special: true }
    }

    /// The keys of the subspace form, `00 point ..`, which are not prefix-free: see
    /// [`crate::subspace`].
    pub(crate) fn subspace(point: &[u8], id_last: EventId) -> Keys {
        let mut head = vec![ROOT];
        head.extend_from_slice(point);
        Keys { prefix: head.clone(), head, id_last, special: false }
    }

    /// What every key begins with.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// A metadata key.
    pub fn meta(&self, name: &[u8]) -> Vec<u8> {
        self.rooted(&[name])
    }

    /// The key of a data record.
    pub fn record(&self, record: Record) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + 26);
        self.record_into(record, &mut key);
        key
    }

    /// The key of a data record, in place of what `key` held.
    pub fn record_into(&self, record: Record, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(&self.head);
        record.pack(key);
    }

    /// Where the records of `id` begin, and everything of earlier events ends.
    pub fn id(&self, id: EventId) -> Vec<u8> {
        self.rooted(&[&id.get().to_be_bytes()])
    }

    /// All records of the events from `from` to `to`, both included.
    pub fn ids(&self, from: EventId, to: EventId) -> Range {
        Range::new(self.id(from), self.id(to.next()))
    }

    /// The event itself at `id`: the whole record or the fragments, without special records.
    pub fn ordinary(&self, id: EventId) -> Range {
        let end = self.rooted(&[&id.get().to_be_bytes(), &[1]]);
        Range::new(self.id(id), end)
    }

    /// Where fragment 0 of `id` is, whatever its size.
    pub fn first_fragment(&self, id: EventId) -> Range {
        let at = |index: u64| self.rooted(&[&id.get().to_be_bytes(), &[0], &index.to_be_bytes()]);
        Range::new(at(0), at(1))
    }

    /// All records of all events.
    pub fn events(&self) -> Range {
        Range::new(self.rooted(&[]), self.id(EventId::MAX.next()))
    }

    /// Everything of the log.
    pub fn all(&self) -> Range {
        Range::prefix(&self.prefix)
    }

    /// Every metadata key that begins with `name`.
    pub fn metas(&self, name: &[u8]) -> Range {
        Range::prefix(&self.meta(name))
    }

    /// The head of a blob.
    pub fn blob_head(&self, number: u64) -> Vec<u8> {
        self.join(BLOB_HEAD, &[&number.to_be_bytes()])
    }

    /// The heads of all blobs.
    pub fn blob_heads(&self) -> Range {
        Range::new(self.join(BLOB_HEAD, &[]), self.join(BLOB_HEAD + 1, &[]))
    }

    /// A piece of a blob.
    pub fn blob_piece(&self, number: u64, index: u64) -> Vec<u8> {
        self.join(BLOB_PIECE, &[&number.to_be_bytes(), &index.to_be_bytes()])
    }

    /// The pieces of a blob, from `index` on.
    pub fn blob_pieces(&self, number: u64, index: u64) -> Range {
        Range::new(self.blob_piece(number, index), self.blob_piece(number + 1, 0))
    }

    /// What stands behind the prefix.
    pub fn strip<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.strip_prefix(self.prefix.as_slice())
    }

    /// The data record of `key`, if it is one.
    pub fn unpack(&self, key: &[u8]) -> Option<Record> {
        match Record::unpack(key.strip_prefix(self.head.as_slice())?)? {
            record if self.id_last < record.id() => None,
            Record::Special(..) if !self.special => None,
            record => Some(record),
        }
    }

    /// Whether `key` is the whole record of `id`. Only for keys between two of this log's: these
    /// share what the log's keys begin with, so it is not compared again.
    pub(crate) fn is_whole(&self, key: &[u8], id: EventId) -> bool {
        key.len() == self.head.len() + 8
            && key.last_chunk::<8>().is_some_and(|it| u64::from_be_bytes(*it) == id.get())
    }

    fn rooted(&self, parts: &[&[u8]]) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.head.len() + 26);
        key.extend_from_slice(&self.head);
        for part in parts {
            key.extend_from_slice(part);
        }
        key
    }

    fn join(&self, root: u8, parts: &[&[u8]]) -> Vec<u8> {
        let size = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut key = Vec::with_capacity(self.prefix.len() + 1 + size);
        key.extend_from_slice(&self.prefix);
        key.push(root);
        for part in parts {
            key.extend_from_slice(part);
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::draw;

    #[test]
    fn records_to_the_byte() {
        let id = |n| EventId::new(n).unwrap();
        let rows = [
            (Record::Whole(id(1)), "0000000000000001"),
            (Record::First(id(2), 25_000), "0000000000000002000000000000000000a861000000000000"),
            (Record::Fragment(id(2), 1), "0000000000000002000000000000000001"),
            (Record::Fragment(id(2), 2), "0000000000000002000000000000000002"),
            (Record::Special(id(3), 1), "000000000000000301"),
            (Record::Special(EventId::MAX, 0xff), "3fffffffffffffffff"),
        ];
        for (record, hex) in rows {
            let mut bytes = Vec::new();
            record.pack(&mut bytes);
            assert_eq!(crate::hex(&bytes), hex);
            assert_eq!(Record::unpack(&bytes), Some(record));
        }
    }

    #[test]
    fn what_is_not_a_record() {
        let rows: [&[u8]; 9] = [
            b"",
            &[0; 8],                                                 // id 0
            &[0x40, 0, 0, 0, 0, 0, 0, 0],                            // past the last id
            &[0, 0, 0, 0, 0, 0, 0, 1, 2],                            // even descriptor
            &[0, 0, 0, 0, 0, 0, 0, 1, 0],                            // descriptor 0 alone
            &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],    // 0 without a size
            &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], // 1 with a tail
            &[0, 0, 0, 0, 0, 0, 0, 1, 1, 0],                         // a long special
            b"meta/latest",
        ];
        for row in rows {
            assert_eq!(Record::unpack(row), None, "{row:?}");
        }
    }

    /// Whatever unpacks packs to the same bytes: no key has two readings, none is lenient.
    #[test]
    fn unpack_is_exact() {
        draw::check("unpack_is_exact", 20_000, |draw| {
            let mut bytes = vec![0; draw.one_of(&[7, 8, 9, 10, 16, 17, 18, 24, 25, 26])];
            for byte in &mut bytes {
                *byte = draw.one_of(&[0, 0, 0, 1, 2, 3, 0x3f, 0x40, 0xff]);
            }
            if let Some(record) = Record::unpack(&bytes) {
                let mut again = Vec::new();
                record.pack(&mut again);
                assert_eq!(again, bytes);
            }
        });
    }

    /// None of our names can be taken for an event by a reader that knows lengths only.
    #[test]
    fn names_are_not_shaped_like_events() {
        let hour: Vec<u8> = [META_HOUR, &[0; 5]].concat();
        let epoch: Vec<u8> = [META_EPOCH, &[0; 8]].concat();
        let names = [
            META_SCHEMA,
            META_LATEST,
            META_FIRST,
            META_WRITER,
            META_BLOBS,
            META_PIER,
            &hour,
            &epoch,
        ];
        for name in names {
            assert_ne!(name.len(), 8);
            assert!(name.len() != 9 || name[8] & 1 == 0);
            assert!((name.len() != 17 && name.len() != 25) || name[8] != 0);
            assert_eq!(Record::unpack(name), None);
        }
    }
}
