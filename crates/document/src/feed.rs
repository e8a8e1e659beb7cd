//! The change log: what was committed, in commit order, for those who follow.
//!
//! Writers must not wait for each other, so the order is given in two steps. A writer reads a clock
//! without conflict, adds one to it (also without conflict) and leaves its changes under the reading:
//! whoever begins after it committed reads a later clock, and two that overlapped and both committed
//! wrote different documents. A *sequencer*, which any follower may be, moves what was left into the
//! log under gap-free numbers. What commits later gets a later number, so nothing appears behind a
//! follower's back.
//!
//! ```text
//! F 11  "on"                                   there if changes are kept
//! F 11  "clock"                                counts committed writers (8, LE)
//! F 11  "seq" / "trimmed"                      the newest number; the newest one discarded (8, LE)
//! F 12  clock, first place, ordinal, chunk     a change not yet in the log
//! F 13  number, chunk                          a change
//! ```
//!
//! A change is CBOR, cut into chunks that fit a value. Until somebody follows, nothing is kept.

use kumiko_base::tuple::{Reader, Writer};
use kumiko_base::{Value, cbor};
use kumiko_kv::{Range, Read, Scan, Txn};

use crate::catalog::Collection;
use crate::path::field;
use crate::{Error, documents};

/// A document larger than this is not kept in its change: a follower looks it up.
pub const IMAGE_BYTES_MAX: usize = 2_000_000;
const CHUNK_BYTES: usize = documents::FRAGMENT_BYTES;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A document is new.
    Insert,
    /// Fields of a document changed.
    Update,
    /// A document was replaced as a whole.
    Replace,
    /// A document is gone.
    Delete,
    /// A collection is gone.
    Drop,
    /// A collection has another name.
    Rename,
    /// A database is gone.
    DropDatabase,
}

impl Operation {
    const ALL: [Operation; 7] = [
        Operation::Insert,
        Operation::Update,
        Operation::Replace,
        Operation::Delete,
        Operation::Drop,
        Operation::Rename,
        Operation::DropDatabase,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Insert => "insert",
            Operation::Update => "update",
            Operation::Replace => "replace",
            Operation::Delete => "delete",
            Operation::Drop => "drop",
            Operation::Rename => "rename",
            Operation::DropDatabase => "dropDatabase",
        }
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What happened.
    pub operation: Operation,
    /// Where.
    pub database: String,
    /// Where; empty for a whole database.
    pub collection: String,
    /// The collection's uuid.
    pub uuid: [u8; 16],
    /// The document's id.
    pub id: Option<Value>,
    /// The document as it was; never stored.
    pub before: Option<Value>,
    /// The document as it is, for inserts and replacements.
    pub after: Option<Value>,
    /// For updates: paths with their new values.
    pub updated: Vec<(String, Value)>,
    /// For updates: paths that are gone.
    pub removed: Vec<String>,
    /// The new name of a collection.
    pub to: Option<String>,
    /// When, by the writer's clock.
    pub time_ms: i64,
    /// What the writer wants followers to know, such as its session.
    pub note: Value,
}

impl Change {
    /// A change of `collection`, with nothing else said yet.
    pub fn of(collection: &Collection, operation: Operation) -> Change {
        Change {
            operation,
            database: collection.database.clone(),
            collection: collection.name.clone(),
            uuid: collection.uuid,
            id: None,
            before: None,
            after: None,
            updated: Vec::new(),
            removed: Vec::new(),
            to: None,
            time_ms: 0,
            note: Value::Null,
        }
    }

    fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut fields = vec![
            ("op".to_string(), Value::Text(self.operation.word().into())),
            ("db".into(), Value::Text(self.database.clone())),
            ("coll".into(), Value::Text(self.collection.clone())),
            ("uuid".into(), Value::Uuid(self.uuid)),
            ("time".into(), Value::I64(self.time_ms)),
            ("note".into(), self.note.clone()),
        ];
        let mut put = |name: &str, value: Option<Value>| {
            fields.extend(value.map(|value| (name.to_string(), value)));
        };
        put("id", self.id.clone());
        put("after", self.after.clone());
        put("to", self.to.clone().map(Value::Text));
        if self.operation == Operation::Update {
            put("set", Some(Value::Map(self.updated.clone())));
            let removed = self.removed.iter().cloned().map(Value::Text).collect();
            put("gone", Some(Value::Array(removed)));
        }
        Ok(cbor::encode(&Value::Map(fields))?)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Change, Error> {
        let bad = || Error::Corrupt("a change in the log is damaged".into());
        let value = cbor::decode(bytes)?;
        let text = |name: &str| match field(&value, name) {
            Some(Value::Text(text)) => Ok(text.clone()),
            _ => Err(bad()),
        };
        let word = text("op")?;
        let operation = Operation::ALL.into_iter().find(|it| it.word() == word).ok_or_else(bad)?;
        let Some(Value::Uuid(uuid)) = field(&value, "uuid") else { return Err(bad()) };
        let Some(Value::I64(time_ms)) = field(&value, "time") else { return Err(bad()) };
        Ok(Change {
            operation,
            database: text("db")?,
            collection: text("coll")?,
            uuid: *uuid,
            id: field(&value, "id").cloned(),
            before: None,
            after: field(&value, "after").cloned(),
            updated: match field(&value, "set") {
                Some(Value::Map(fields)) => fields.clone(),
                _ => Vec::new(),
            },
            removed: match field(&value, "gone") {
                Some(Value::Array(gone)) => gone.iter().filter_map(text_of).collect(),
                _ => Vec::new(),
            },
            to: field(&value, "to").and_then(text_of),
            time_ms: *time_ms,
            note: field(&value, "note").cloned().unwrap_or(Value::Null),
        })
    }

    /// Keeps what followers need: for an update the difference, for the others the document.
    fn settle(&mut self) {
        if self.operation == Operation::Update {
            if let (Some(before), Some(after)) = (&self.before, &self.after) {
                difference(before, after, "", &mut self.updated, &mut self.removed);
            }
            self.after = None;
        }
        self.before = None;
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// The paths that differ: maps are looked into, everything else is taken whole.
fn difference(
    before: &Value,
    after: &Value,
    prefix: &str,
    updated: &mut Vec<(String, Value)>,
    removed: &mut Vec<String>,
) {
    let (Value::Map(old), Value::Map(new)) = (before, after) else { return };
    for (name, _) in old {
        if field(after, name).is_none() {
            removed.push(format!("{prefix}{name}"));
        }
    }
    for (name, value) in new {
        match field(before, name) {
            Some(old) if old == value => {}
            Some(old @ Value::Map(_)) if matches!(value, Value::Map(_)) => {
                difference(old, value, &format!("{prefix}{name}."), updated, removed);
            }
            _ => updated.push((format!("{prefix}{name}"), value.clone())),
        }
    }
}

/// What one transaction has noted so far. A transaction of several statements keeps it between them.
#[derive(Debug, Default)]
pub struct Notes {
    /// Stored with every change of this transaction.
    pub note: Option<Value>,
    on: Option<bool>,
    clock: i64,
    first: Vec<u8>,
    count: u64,
}

const ON: &str = "on";
const CLOCK: &str = "clock";
const SEQUENCE: &str = "seq";
const TRIMMED: &str = "trimmed";

fn setting(name: &str) -> Vec<u8> {
    Writer::new().bytes(&[b'F', 0x11]).text(name).finish()
}

fn pending() -> Writer {
    Writer::new().bytes(&[b'F', 0x12])
}

fn log() -> Writer {
    Writer::new().bytes(&[b'F', 0x13])
}

/// The key that every commit with a change writes: watch it to follow.
pub fn clock_key() -> Vec<u8> {
    setting(CLOCK)
}

fn counter(txn: &mut dyn Txn, name: &str, read: Read) -> Result<u64, Error> {
    let bytes = txn.get(&setting(name), read)?.unwrap_or_default();
    Ok(bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}

/// Whether changes are kept.
pub fn is_on(txn: &mut dyn Txn) -> Result<bool, Error> {
    Ok(txn.get(&setting(ON), Read::Serializable)?.is_some())
}

/// From the commit of this transaction on, changes are kept.
pub fn switch_on(txn: &mut dyn Txn) -> Result<(), Error> {
    if !is_on(txn)? {
        txn.put(&setting(ON), &[1])?;
    }
    Ok(())
}

impl Notes {
    fn is_on(&mut self, txn: &mut dyn Txn) -> Result<bool, Error> {
        if let Some(on) = self.on {
            return Ok(on);
        }
        let on = is_on(txn)?;
        self.on = Some(on);
        if on {
            self.clock = counter(txn, CLOCK, Read::Snapshot)?.cast_signed();
        }
        Ok(on)
    }

    /// Notes a change; `fill` adds what costs a copy, and is not called if nothing is kept.
    pub(crate) fn note(
        &mut self,
        txn: &mut dyn Txn,
        now_ms: i64,
        mut change: Change,
        fill: impl FnOnce(&mut Change),
    ) -> Result<(), Error> {
        if !self.is_on(txn)? {
            return Ok(());
        }
        fill(&mut change);
        change.settle();
        change.time_ms = now_ms;
        change.note = self.note.clone().unwrap_or(Value::Null);
        let mut bytes = change.to_bytes()?;
        if IMAGE_BYTES_MAX < bytes.len() {
            change.after = None;
            change.updated.clear();
            bytes = change.to_bytes()?;
        }
        if self.count == 0 {
            // Unique among writers that overlap: they wrote different documents.
            let id = change.id.as_ref().map(crate::keys::Place::of).transpose()?;
            let place = id.map(|place| place.0).unwrap_or_default();
            let name = Writer::new().text(&change.database).text(&change.collection);
            self.first = name.bytes(&place).finish();
            txn.add(&setting(CLOCK), 1)?;
        }
        let key = pending().int(self.clock).bytes(&self.first).int(self.count).finish();
        for (n, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
            txn.put(&Writer::after(&key).int(n as i64).finish(), chunk)?;
        }
        self.count += 1;
        Ok(())
    }
}

/// Moves changes that are not yet in the log into it, about `bytes_max` bytes of them. Says how
/// many; zero means that none was left.
pub fn sequence(txn: &mut dyn Txn, bytes_max: usize) -> Result<u64, Error> {
    let range = Range::prefix(&pending().finish());
    let page = txn.scan(&Scan::new(range).snapshot().bytes(bytes_max))?;
    if page.rows.is_empty() {
        return Ok(0);
    }
    // Of two sequencers one loses here.
    let start = counter(txn, SEQUENCE, Read::Serializable)?;
    let mut number = start;
    let mut last = Vec::new();
    let mut chunk = 0_i64;
    for (key, value) in &page.rows {
        let stem = stem(key)?;
        if stem == last {
            chunk += 1;
        } else {
            (number, chunk, last) = (number + 1, 0, stem);
        }
        txn.put(&log().int(number).int(chunk).finish(), value)?;
        txn.del(key)?;
    }
    // The page may have cut the last change between two chunks.
    if page.rest.is_some() {
        let rest = Scan::new(Range::prefix(&last)).snapshot();
        for (key, value) in txn.scan(&rest)?.rows {
            if page.rows.iter().any(|(done, _)| *done == key) {
                continue;
            }
            chunk += 1;
            txn.put(&log().int(number).int(chunk).finish(), &value)?;
            txn.del(&key)?;
        }
    }
    txn.put(&setting(SEQUENCE), &number.to_le_bytes())?;
    Ok(number - start)
}

/// A pending key without its chunk number.
fn stem(key: &[u8]) -> Result<Vec<u8>, Error> {
    let mut reader = Reader::new(key);
    for _ in 0..4 {
        reader.element()?;
    }
    Ok(key[..key.len() - reader.rest().len()].to_vec())
}

/// The number of the newest change in the log.
pub fn newest(txn: &mut dyn Txn) -> Result<u64, Error> {
    counter(txn, SEQUENCE, Read::Snapshot)
}

/// The number of the newest change that was discarded.
pub fn trimmed(txn: &mut dyn Txn) -> Result<u64, Error> {
    counter(txn, TRIMMED, Read::Snapshot)
}

/// The changes after number `after`, at most about `bytes_max` bytes of them, each with its number.
///
/// # Errors
///
/// `HistoryLost` if some of them were discarded.
pub fn read(txn: &mut dyn Txn, after: u64, bytes_max: usize) -> Result<Vec<(u64, Change)>, Error> {
    if after < counter(txn, TRIMMED, Read::Snapshot)? {
        return Err(Error::HistoryLost);
    }
    let range = Range::new(log().int(after + 1).finish(), [log().as_bytes(), &[0xFF]].concat());
    let page = txn.scan(&Scan::new(range).snapshot().bytes(bytes_max))?;
    let mut changes: Vec<(u64, Vec<u8>)> = Vec::new();
    for (key, value) in &page.rows {
        let mut reader = Reader::new(key);
        reader.bytes()?;
        let number = reader.int::<u64>()?;
        match changes.last_mut() {
            Some((last, bytes)) if *last == number => bytes.extend_from_slice(value),
            _ => changes.push((number, value.clone())),
        }
    }
    if page.rest.is_some()
        && let Some((number, bytes)) = changes.last_mut()
    {
        let whole = txn.scan(&Scan::new(Range::prefix(&log().int(*number).finish())).snapshot())?;
        *bytes = whole.rows.into_iter().flat_map(|(_, value)| value).collect();
    }
    let decode = |(number, bytes): (u64, Vec<u8>)| Ok((number, Change::from_bytes(&bytes)?));
    changes.into_iter().map(decode).collect()
}

/// Discards changes older than `before_ms`, about `bytes_max` bytes of them at most. Says how many.
pub fn trim(txn: &mut dyn Txn, before_ms: i64, bytes_max: usize) -> Result<u64, Error> {
    let trimmed = counter(txn, TRIMMED, Read::Serializable)?;
    let old: Vec<u64> = read(txn, trimmed, bytes_max)?
        .into_iter()
        .take_while(|(_, change)| change.time_ms < before_ms)
        .map(|(number, _)| number)
        .collect();
    let Some(last) = old.last() else { return Ok(0) };
    let end = log().int(*last + 1).finish();
    txn.clear(&Range::new(log().finish(), end))?;
    txn.put(&setting(TRIMMED), &last.to_le_bytes())?;
    Ok(old.len() as u64)
}
