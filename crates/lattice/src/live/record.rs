//! Changes as records: what the journal stores and what replays to the same state.
//!
//! A batch of records stands on its own. `docs/format/journal.md` describes the bytes:
//!
//! ```text
//! kind (1; bit 7: the key is that of the record before; bit 6: covered) [key] fields...
//! ```
//!
//! Numbers are varints, byte strings carry their length, scores are eight bytes (LE).
//!
//! A change of a key that a running snapshot has yet to write is *covered* by that snapshot: who
//! starts from it must leave the record out, who starts from an older one must not.

use super::error::Error;
use super::pack::{get_bytes, get_varint, put_bytes, put_varint};

/// The format's version, the first byte of every batch.
pub const RECORD_VERSION: u8 = 1;
const SAME_KEY: u8 = 0x80;
const COVERED: u8 = 0x40;

/// One change of one database. `key` is the key it is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// A string replaces whatever was there; an expiry of zero is none.
    Set {
        /// The key.
        key: &'a [u8],
        /// The whole new value.
        value: &'a [u8],
        /// When it expires, in milliseconds, or zero.
        expire_ms: u64,
    },
    /// A string gets another content and keeps its expiry.
    Write {
        /// The key.
        key: &'a [u8],
        /// The whole new value.
        value: &'a [u8],
    },
    /// Bytes are added behind a string.
    Append {
        /// The key.
        key: &'a [u8],
        /// What is added.
        tail: &'a [u8],
    },
    /// Bytes inside a string are overwritten, with zeros up to the offset.
    SetRange {
        /// The key.
        key: &'a [u8],
        /// Where they start.
        offset: u64,
        /// The new bytes.
        bytes: &'a [u8],
    },
    /// A number is added to an integer.
    Incr {
        /// The key.
        key: &'a [u8],
        /// How much.
        by: i64,
    },
    /// The key is gone.
    Del {
        /// The key.
        key: &'a [u8],
    },
    /// The key expires at another time, or never (zero).
    Expire {
        /// The key.
        key: &'a [u8],
        /// When, in milliseconds.
        at_ms: u64,
    },
    /// A field of a hash is set.
    HashSet {
        /// The key.
        key: &'a [u8],
        /// The field.
        field: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// A field of a hash is gone.
    HashDel {
        /// The key.
        key: &'a [u8],
        /// The field.
        field: &'a [u8],
    },
    /// A member comes into a set.
    SetAdd {
        /// The key.
        key: &'a [u8],
        /// The member.
        member: &'a [u8],
    },
    /// A member leaves a set.
    SetDel {
        /// The key.
        key: &'a [u8],
        /// The member.
        member: &'a [u8],
    },
    /// A member of a sorted set gets a score.
    ZsetSet {
        /// The key.
        key: &'a [u8],
        /// The member.
        member: &'a [u8],
        /// Its score.
        score: f64,
    },
    /// A member leaves a sorted set.
    ZsetDel {
        /// The key.
        key: &'a [u8],
        /// The member.
        member: &'a [u8],
    },
    /// An element comes into a list before the one at `index`.
    ListInsert {
        /// The key.
        key: &'a [u8],
        /// Where; the length of the list adds at its end.
        index: u64,
        /// The element.
        value: &'a [u8],
    },
    /// An element of a list is replaced.
    ListSet {
        /// The key.
        key: &'a [u8],
        /// Which.
        index: u64,
        /// The element.
        value: &'a [u8],
    },
    /// Elements leave a list.
    ListDel {
        /// The key.
        key: &'a [u8],
        /// The first of them.
        index: u64,
        /// How many.
        count: u64,
    },
    /// A key takes another name, and the place of what had that name.
    Rename {
        /// The old name.
        key: &'a [u8],
        /// The new name.
        to: &'a [u8],
    },
    /// A whole value replaces whatever was there. The bytes are an image.
    Put {
        /// The key.
        key: &'a [u8],
        /// When it expires, or zero.
        expire_ms: u64,
        /// The value as an image.
        image: &'a [u8],
    },
    /// What is to be merged into the replicated entry of a key, which then has all changes so far.
    Entry {
        /// The key.
        key: &'a [u8],
        /// An entry as a complete message of cells.
        cells: &'a [u8],
    },
    /// What was removed before a time is forgotten by the replicated state.
    Collect {
        /// Milliseconds since the epoch.
        before_ms: u64,
    },
    /// The replicated state has all changes of the database so far.
    Folded,
    /// The database is emptied.
    Flush,
    /// The database changes its content with another one.
    Swap {
        /// The other database.
        name: &'a [u8],
    },
    /// The following records are about this database.
    Database {
        /// Its name.
        name: &'a [u8],
    },
    /// The following records happened at this time.
    Time {
        /// Milliseconds since the epoch.
        ms: u64,
    },
    /// The following covered records are covered by this snapshot.
    Snapshot {
        /// Its number.
        number: u64,
    },
}

const KINDS: [&str; 24] = [
    "", "set", "write", "append", "setrange", "incr", "del", "expire", "hset", "hdel", "sadd",
    "srem", "zadd", "zrem", "linsert", "lset", "ldel", "rename", "put", "entry", "flush", "swap",
    "collect", "folded",
];
const SNAPSHOT: u8 = 61;
const DATABASE: u8 = 62;
const TIME: u8 = 63;

impl<'a> Change<'a> {
    /// The key it is about, if it is about one.
    pub fn key(&self) -> Option<&'a [u8]> {
        match self {
            Change::Set { key, .. }
            | Change::Write { key, .. }
            | Change::Append { key, .. }
            | Change::SetRange { key, .. }
            | Change::Incr { key, .. }
            | Change::Del { key }
            | Change::Expire { key, .. }
            | Change::HashSet { key, .. }
            | Change::HashDel { key, .. }
            | Change::SetAdd { key, .. }
            | Change::SetDel { key, .. }
            | Change::ZsetSet { key, .. }
            | Change::ZsetDel { key, .. }
            | Change::ListInsert { key, .. }
            | Change::ListSet { key, .. }
            | Change::ListDel { key, .. }
            | Change::Rename { key, .. }
            | Change::Put { key, .. }
            | Change::Entry { key, .. } => Some(key),
            Change::Flush
            | Change::Folded
            | Change::Collect { .. }
            | Change::Swap { .. }
            | Change::Database { .. }
            | Change::Time { .. }
            | Change::Snapshot { .. } => None,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Change::Set { .. } => 1,
            Change::Write { .. } => 2,
            Change::Append { .. } => 3,
            Change::SetRange { .. } => 4,
            Change::Incr { .. } => 5,
            Change::Del { .. } => 6,
            Change::Expire { .. } => 7,
            Change::HashSet { .. } => 8,
            Change::HashDel { .. } => 9,
            Change::SetAdd { .. } => 10,
            Change::SetDel { .. } => 11,
            Change::ZsetSet { .. } => 12,
            Change::ZsetDel { .. } => 13,
            Change::ListInsert { .. } => 14,
            Change::ListSet { .. } => 15,
            Change::ListDel { .. } => 16,
            Change::Rename { .. } => 17,
            Change::Put { .. } => 18,
            Change::Entry { .. } => 19,
            Change::Flush => 20,
            Change::Swap { .. } => 21,
            Change::Collect { .. } => 22,
            Change::Folded => 23,
            Change::Database { .. } => DATABASE,
            Change::Time { .. } => TIME,
            Change::Snapshot { .. } => SNAPSHOT,
        }
    }

    /// The name of a record kind, for listings.
    pub fn word(&self) -> &'static str {
        match self.code() {
            DATABASE => "database",
            TIME => "time",
            SNAPSHOT => "snapshot",
            code => KINDS[usize::from(code)],
        }
    }

    fn put_rest(&self, to: &mut Vec<u8>) {
        match *self {
            Change::Set { value, expire_ms, .. } => {
                put_varint(to, expire_ms);
                put_bytes(to, value);
            }
            Change::Write { value, .. } => put_bytes(to, value),
            Change::Append { tail, .. } => put_bytes(to, tail),
            Change::SetRange { offset, bytes, .. } => {
                put_varint(to, offset);
                put_bytes(to, bytes);
            }
            Change::Incr { by, .. } => put_varint(to, ((by << 1) ^ (by >> 63)) as u64),
            Change::Del { .. } | Change::Flush | Change::Folded => {}
            Change::Expire { at_ms, .. } => put_varint(to, at_ms),
            Change::HashSet { field, value, .. } => {
                put_bytes(to, field);
                put_bytes(to, value);
            }
            Change::HashDel { field, .. } => put_bytes(to, field),
            Change::SetAdd { member, .. }
            | Change::SetDel { member, .. }
            | Change::ZsetDel { member, .. } => put_bytes(to, member),
            Change::ZsetSet { member, score, .. } => {
                to.extend_from_slice(&score.to_bits().to_le_bytes());
                put_bytes(to, member);
            }
            Change::ListInsert { index, value, .. } | Change::ListSet { index, value, .. } => {
                put_varint(to, index);
                put_bytes(to, value);
            }
            Change::ListDel { index, count, .. } => {
                put_varint(to, index);
                put_varint(to, count);
            }
            Change::Rename { to: name, .. } | Change::Swap { name } | Change::Database { name } => {
                put_bytes(to, name);
            }
            Change::Put { expire_ms, image, .. } => {
                put_varint(to, expire_ms);
                put_bytes(to, image);
            }
            Change::Entry { cells, .. } => put_bytes(to, cells),
            Change::Time { ms: number }
            | Change::Collect { before_ms: number }
            | Change::Snapshot { number } => put_varint(to, number),
        }
    }
}

/// Collects records into one batch.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    database: Vec<u8>,
    key: Option<Vec<u8>>,
    time_ms: u64,
    snapshot: u64,
}

impl Writer {
    /// Adds a change of `database` that happened at `now_ms`, and the snapshot that covers it.
    pub fn add(
        &mut self,
        database: &[u8],
        now_ms: u64,
        change: &Change<'_>,
        covered_by: Option<u64>,
    ) {
        if self.bytes.is_empty() {
            self.bytes.push(RECORD_VERSION);
            self.put(&Change::Database { name: database }, 0);
            self.database.clear();
            self.database.extend_from_slice(database);
            self.put(&Change::Time { ms: now_ms }, 0);
            self.time_ms = now_ms;
            self.snapshot = 0;
        }
        if self.database != database {
            self.put(&Change::Database { name: database }, 0);
            self.database.clear();
            self.database.extend_from_slice(database);
        }
        if self.time_ms != now_ms {
            self.put(&Change::Time { ms: now_ms }, 0);
            self.time_ms = now_ms;
        }
        if let Some(number) = covered_by
            && self.snapshot != number
        {
            self.put(&Change::Snapshot { number }, 0);
            self.snapshot = number;
        }
        self.put(change, if covered_by.is_some() { COVERED } else { 0 });
    }

    fn put(&mut self, change: &Change<'_>, flags: u8) {
        let code = change.code() | flags;
        match change.key() {
            Some(key) if self.key.as_deref() == Some(key) => self.bytes.push(code | SAME_KEY),
            Some(key) => {
                self.bytes.push(code);
                put_bytes(&mut self.bytes, key);
                let kept = self.key.get_or_insert_default();
                kept.clear();
                kept.extend_from_slice(key);
            }
            None => self.bytes.push(code),
        }
        change.put_rest(&mut self.bytes);
    }

    /// Bytes collected so far.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The batch, which is empty if nothing was added; the next one starts afresh.
    pub fn take(&mut self) -> Vec<u8> {
        self.key = None;
        std::mem::take(&mut self.bytes)
    }
}

/// Reads the records of one batch.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    key: &'a [u8],
    snapshot: u64,
}

/// A record: the change, and the number of the snapshot that covers it, if one does.
pub type Record<'a> = (Change<'a>, Option<u64>);

impl<'a> Reader<'a> {
    /// A reader of `batch`, which may be empty.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the batch has another version.
    pub fn new(batch: &'a [u8]) -> Result<Reader<'a>, Error> {
        match batch.first() {
            None | Some(&RECORD_VERSION) => {
                Ok(Reader { bytes: batch, at: 1, key: &[], snapshot: 0 })
            }
            Some(_) => Err(Error::Corrupt { reason: "unknown version of the records" }),
        }
    }

    fn number(&mut self) -> Result<u64, Error> {
        let short = Error::Corrupt { reason: "a number is cut short" };
        let (n, end) = get_varint(self.bytes, self.at).ok_or(short)?;
        self.at = end;
        Ok(n)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let short = Error::Corrupt { reason: "a byte string is cut short" };
        let (bytes, end) = get_bytes(self.bytes, self.at).ok_or(short)?;
        self.at = end;
        Ok(bytes)
    }

    fn score(&mut self) -> Result<f64, Error> {
        let end = self.at.saturating_add(8);
        let eight = self.bytes.get(self.at..end).and_then(|it| it.try_into().ok());
        let eight = eight.ok_or(Error::Corrupt { reason: "a score is cut short" })?;
        self.at = end;
        let score = f64::from_bits(u64::from_le_bytes(eight));
        if score.is_nan() {
            return Err(Error::Corrupt { reason: "a score is not a number" });
        }
        Ok(score)
    }

    /// The next record; nothing at the end of the batch.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the bytes are not records.
    #[expect(clippy::should_implement_trait, reason = "it can fail, and callers use `?`")]
    pub fn next(&mut self) -> Result<Option<Record<'a>>, Error> {
        let Some(&first) = self.bytes.get(self.at) else { return Ok(None) };
        self.at += 1;
        let code = first & !SAME_KEY & !COVERED;
        if first & SAME_KEY == 0 && (1..=19).contains(&code) {
            self.key = self.bytes()?;
        }
        let change = self.rest(code)?;
        if let Change::Snapshot { number } = change {
            self.snapshot = number;
        }
        Ok(Some((change, (first & COVERED != 0).then_some(self.snapshot))))
    }

    fn rest(&mut self, code: u8) -> Result<Change<'a>, Error> {
        let key = self.key;
        Ok(match code {
            1 => {
                let expire_ms = self.number()?;
                Change::Set { key, expire_ms, value: self.bytes()? }
            }
            2 => Change::Write { key, value: self.bytes()? },
            3 => Change::Append { key, tail: self.bytes()? },
            4 => {
                let offset = self.number()?;
                Change::SetRange { key, offset, bytes: self.bytes()? }
            }
            5 => {
                let n = self.number()?;
                Change::Incr { key, by: ((n >> 1) as i64) ^ -((n & 1) as i64) }
            }
            6 => Change::Del { key },
            7 => Change::Expire { key, at_ms: self.number()? },
            8 => {
                let field = self.bytes()?;
                Change::HashSet { key, field, value: self.bytes()? }
            }
            9 => Change::HashDel { key, field: self.bytes()? },
            10 => Change::SetAdd { key, member: self.bytes()? },
            11 => Change::SetDel { key, member: self.bytes()? },
            12 => {
                let score = self.score()?;
                Change::ZsetSet { key, score, member: self.bytes()? }
            }
            13 => Change::ZsetDel { key, member: self.bytes()? },
            14 => {
                let index = self.number()?;
                Change::ListInsert { key, index, value: self.bytes()? }
            }
            15 => {
                let index = self.number()?;
                Change::ListSet { key, index, value: self.bytes()? }
            }
            16 => {
                let index = self.number()?;
                Change::ListDel { key, index, count: self.number()? }
            }
            17 => Change::Rename { key, to: self.bytes()? },
            18 => {
                let expire_ms = self.number()?;
                Change::Put { key, expire_ms, image: self.bytes()? }
            }
            19 => Change::Entry { key, cells: self.bytes()? },
            20 => Change::Flush,
            21 => Change::Swap { name: self.bytes()? },
            22 => Change::Collect { before_ms: self.number()? },
            23 => Change::Folded,
            DATABASE => Change::Database { name: self.bytes()? },
            TIME => Change::Time { ms: self.number()? },
            SNAPSHOT => Change::Snapshot { number: self.number()? },
            _ => return Err(Error::Corrupt { reason: "unknown kind of record" }),
        })
    }
}
