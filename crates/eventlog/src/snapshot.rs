//! Snapshots: the state after an event, kept beside the events.
//!
//! The special record with descriptor 03 at an id says that a snapshot of the state after that
//! event exists, and points to a blob. A blob is written piece by piece under a number of its own
//! and becomes part of the log by one transaction, together with the special record.
//!
//! ```text
//! special record 03    01 number (8, BE) size (8, LE) crc32 (4, LE)
//! head of a blob       01 state (0 open, 1 done) id (8, BE) size (8, LE) crc32 (4, LE)
//! ```
//!
//! The heads are the list of snapshots. An open head is a snapshot under way, or what a dead
//! writer left; the next snapshot removes it.

use std::collections::VecDeque;
use std::io;

use kumiko_kv::{Engine, Flow, Read, Scan, Txn, range};

use crate::key::{self, Record};
use crate::log::Log;
use crate::writer::{Writer, fill};
use crate::{Error, EventId};

/// The descriptor of a snapshot: special (bit 0) and a note on its event (bit 1).
pub const SNAPSHOT: u8 = 0x03;

const VERSION: u8 = 1;
const OPEN: u8 = 0;
const DONE: u8 = 1;

/// A finished snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The event after which the state was taken.
    pub id: EventId,
    /// The blob that holds it.
    pub number: u64,
    /// Its bytes.
    pub size: u64,
    /// Their CRC-32.
    pub crc: u32,
}

/// The head of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) done: bool,
    pub(crate) id: EventId,
    pub(crate) size: u64,
    pub(crate) crc: u32,
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = vec![VERSION, if self.done { DONE } else { OPEN }];
        value.extend_from_slice(&self.id.get().to_be_bytes());
        value.extend_from_slice(&self.size.to_le_bytes());
        value.extend_from_slice(&self.crc.to_le_bytes());
        value
    }

    pub(crate) fn decode(value: &[u8]) -> Option<Head> {
        let (&[VERSION, state], rest) = value.split_first_chunk::<2>()? else { return None };
        let (id, rest) = rest.split_first_chunk::<8>()?;
        let (size, rest) = rest.split_first_chunk::<8>()?;
        if DONE < state {
            return None;
        }
        Some(Head {
            done: state == DONE,
            id: EventId::new(u64::from_be_bytes(*id))?,
            size: u64::from_le_bytes(*size),
            crc: u32::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

/// What the special record says: the blob, its size, its CRC-32.
pub(crate) fn decode_note(value: &[u8]) -> Option<(u64, u64, u32)> {
    let (&VERSION, rest) = value.split_first()? else { return None };
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let crc = u32::from_le_bytes(rest.try_into().ok()?);
    Some((u64::from_be_bytes(*number), u64::from_le_bytes(*size), crc))
}

fn encode_note(number: u64, size: u64, crc: u32) -> Vec<u8> {
    let mut value = vec![VERSION];
    value.extend_from_slice(&number.to_be_bytes());
    value.extend_from_slice(&size.to_le_bytes());
    value.extend_from_slice(&crc.to_le_bytes());
    value
}

impl Log {
    /// The finished snapshots, oldest state first.
    pub fn snapshots(&self, txn: &mut dyn Txn) -> Result<Vec<Snapshot>, Error> {
        let mut snapshots: Vec<Snapshot> = self
            .heads(txn, Read::Snapshot)?
            .into_iter()
            .filter(|(_, head)| head.done)
            .map(|(number, Head { id, size, crc, .. })| Snapshot { id, number, size, crc })
            .collect();
        snapshots.sort_by_key(|snapshot| snapshot.id);
        Ok(snapshots)
    }

    /// The newest snapshot of a state not after `id`.
    pub fn snapshot_before(
        &self,
        txn: &mut dyn Txn,
        id: EventId,
    ) -> Result<Option<Snapshot>, Error> {
        Ok(self.snapshots(txn)?.into_iter().rfind(|snapshot| snapshot.id <= id))
    }

    pub(crate) fn heads(&self, txn: &mut dyn Txn, read: Read) -> Result<Vec<(u64, Head)>, Error> {
        let scan = Scan { read, ..Scan::new(self.keys.blob_heads()) };
        let mut heads = Vec::new();
        for (key, value) in txn.scan(&scan)?.rows {
            let number = self.keys.strip(&key).and_then(|rest| rest.get(1..)?.try_into().ok());
            match (number.map(u64::from_be_bytes), Head::decode(&value)) {
                (Some(number), Some(head)) => heads.push((number, head)),
                _ => return Err(Error::corrupt(EventId::ZERO, "the head of a blob is damaged")),
            }
        }
        Ok(heads)
    }

    /// Removes a blob: head and pieces.
    pub(crate) fn clear_blob(&self, txn: &mut dyn Txn, number: u64) -> Result<(), Error> {
        txn.del(&self.keys.blob_head(number))?;
        txn.clear(&self.keys.blob_pieces(number, 0))?;
        Ok(())
    }
}

impl Writer {
    /// Keeps what `source` gives as the snapshot of the state after event `id`.
    ///
    /// Idempotent by content: the same bytes again change nothing.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such event, `Exists` if it has another snapshot.
    pub fn snapshot(
        &self,
        engine: &dyn Engine,
        id: EventId,
        source: &mut dyn io::Read,
    ) -> Result<Snapshot, Error> {
        let log = self.log();
        let number = self.run(engine, |txn, _| begin(log, txn, id))?;
        let result = self.snapshot_body(engine, id, number, source);
        if result.is_err() {
            // Best effort: if this fails too, the next snapshot removes the pieces.
            let _ = self.run(engine, |txn, _| log.clear_blob(txn, number));
        }
        result
    }

    fn snapshot_body(
        &self,
        engine: &dyn Engine,
        id: EventId,
        number: u64,
        source: &mut dyn io::Read,
    ) -> Result<Snapshot, Error> {
        let log = self.log();
        let mut size = 0;
        let mut crc = crc32fast::Hasher::new();
        let mut index = 0;
        let mut buffer = vec![0; log.sizes.body / log.sizes.fragment * log.sizes.fragment];
        loop {
            let got = fill(source, &mut buffer)?;
            if got == 0 {
                break;
            }
            crc.update(&buffer[..got]);
            size += got as u64;
            self.run(engine, |txn, _| put(log, txn, number, index, &buffer[..got]))?;
            index += got.div_ceil(log.sizes.fragment) as u64;
        }
        let snapshot = Snapshot { id, number, size, crc: crc.finalize() };
        self.run(engine, |txn, _| finish(log, txn, snapshot))
    }

    /// Removes the snapshot at `id`. Refused for the one that a truncated log begins with.
    pub fn del_snapshot(&self, engine: &dyn Engine, id: EventId) -> Result<(), Error> {
        let log = self.log();
        self.run(engine, |txn, _| {
            let bounds = log.bounds(txn, Read::Serializable)?;
            let heads = log.heads(txn, Read::Serializable)?;
            let at = |(number, head): &(u64, Head)| (head.id == id).then_some(*number);
            let number = heads.iter().filter(|(_, head)| head.done).find_map(at);
            let number =
                number.ok_or_else(|| Error::NotFound(format!("there is no snapshot at {id}")))?;
            let usable = |head: &Head| head.done && bounds.first.prior() <= head.id;
            let others = heads.iter().any(|(other, head)| *other != number && usable(head));
            if EventId::FIRST < bounds.first && !others {
                return Err(Error::Uncovered { cut: bounds.first.prior(), snapshot: Some(id) });
            }
            txn.del(&log.keys.record(Record::Special(id, SNAPSHOT)))?;
            log.clear_blob(txn, number)
        })
    }
}

fn begin(log: &Log, txn: &mut dyn Txn, id: EventId) -> Result<u64, Error> {
    let bounds = log.bounds(txn, Read::Serializable)?;
    if !id.is_event() || id < bounds.first.prior() || bounds.latest < id {
        return Err(Error::NotFound(format!("there is no event {id}")));
    }
    for (number, head) in log.heads(txn, Read::Serializable)? {
        if !head.done {
            log.clear_blob(txn, number)?;
        }
    }
    let counter = log.keys.meta(key::META_BLOBS);
    let number = match txn.get(&counter, Read::Serializable)? {
        Some(value) => crate::log::decode_id(&value, "meta/blobs")?.get(),
        None => 0,
    };
    txn.put(&counter, &(number + 1).to_be_bytes())?;
    txn.put(&log.keys.blob_head(number), &Head { done: false, id, size: 0, crc: 0 }.encode())?;
    Ok(number)
}

fn require_open(log: &Log, txn: &mut dyn Txn, number: u64) -> Result<(), Error> {
    let value = txn.get(&log.keys.blob_head(number), Read::Serializable)?;
    match value.as_deref().and_then(Head::decode) {
        Some(head) if !head.done => Ok(()),
        _ => Err(Error::Exists("another snapshot was begun meanwhile".into())),
    }
}

fn put(log: &Log, txn: &mut dyn Txn, number: u64, index: u64, bytes: &[u8]) -> Result<(), Error> {
    require_open(log, txn, number)?;
    for (offset, piece) in bytes.chunks(log.sizes.fragment).enumerate() {
        txn.put(&log.keys.blob_piece(number, index + offset as u64), piece)?;
    }
    Ok(())
}

fn finish(log: &Log, txn: &mut dyn Txn, made: Snapshot) -> Result<Snapshot, Error> {
    let Snapshot { id, number, size, crc } = made;
    let note = log.keys.record(Record::Special(id, SNAPSHOT));
    if let Some(value) = txn.get(&note, Read::Serializable)? {
        // The same state was kept before, perhaps by this very commit, whose answer was lost.
        return match decode_note(&value) {
            Some((kept, old_size, old_crc)) if (old_size, old_crc) == (size, crc) => {
                if kept != number {
                    log.clear_blob(txn, number)?;
                }
                Ok(Snapshot { number: kept, ..made })
            }
            _ => Err(Error::Exists(format!("event {id} has another snapshot"))),
        };
    }
    require_open(log, txn, number)?;
    let bounds = log.bounds(txn, Read::Serializable)?;
    if id < bounds.first.prior() {
        return Err(Error::Truncated { id, first: bounds.first });
    }
    txn.put(&log.keys.blob_head(number), &Head { done: true, id, size, crc }.encode())?;
    txn.put(&note, &encode_note(number, size, crc))?;
    Ok(made)
}

/// What one transaction of a reader takes at most.
const STREAM_BYTES: usize = 2_000_000;

/// Streams a snapshot, and compares its size and CRC-32 at the end.
#[derive(Debug)]
pub struct SnapshotReader {
    log: Log,
    snapshot: Snapshot,
    range: Option<kumiko_kv::Range>,
    index: u64,
    got: u64,
    crc: crc32fast::Hasher,
    parts: VecDeque<Vec<u8>>,
}

impl SnapshotReader {
    /// Before the first byte.
    pub fn new(log: &Log, snapshot: Snapshot) -> SnapshotReader {
        SnapshotReader {
            log: log.clone(),
            snapshot,
            range: Some(log.keys.blob_pieces(snapshot.number, 0)),
            index: 0,
            got: 0,
            crc: crc32fast::Hasher::new(),
            parts: VecDeque::new(),
        }
    }

    /// The next bytes; `None` after the last, once they are known to be right.
    ///
    /// # Errors
    ///
    /// `Corrupt` if a piece is missing or a byte is wrong; what was given before is void then.
    pub fn next(&mut self, engine: &dyn Engine) -> Result<Option<Vec<u8>>, Error> {
        while self.parts.is_empty() {
            let Some(range) = self.range.take() else { return self.finish().map(|()| None) };
            let mut txn = engine.begin()?;
            let scan = Scan::new(range).bytes(STREAM_BYTES).snapshot();
            let mut contiguous = true;
            let rest = txn.visit(&scan, &mut |key, value| {
                let wanted = self.log.keys.blob_piece(self.snapshot.number, self.index);
                contiguous = contiguous && key == wanted.as_slice();
                self.index += 1;
                self.got += value.len() as u64;
                self.crc.update(value);
                self.parts.push_back(value.to_vec());
                if contiguous { Flow::Go } else { Flow::Stop }
            })?;
            if !contiguous {
                let why = format!("piece {} of the snapshot is missing", self.index - 1);
                return Err(Error::corrupt(self.snapshot.id, why));
            }
            self.range = rest;
        }
        Ok(self.parts.pop_front())
    }

    fn finish(&self) -> Result<(), Error> {
        if self.got != self.snapshot.size || self.crc.clone().finalize() != self.snapshot.crc {
            let why = format!(
                "the snapshot has {} of {} bytes, or a byte is wrong",
                self.got, self.snapshot.size
            );
            return Err(Error::corrupt(self.snapshot.id, why));
        }
        Ok(())
    }
}

/// What a truncation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// The first event that is kept.
    pub first: EventId,
    /// The events that went.
    pub events: u64,
    /// The snapshot that covers them.
    pub snapshot: Option<Snapshot>,
}

/// How many rows one step of a truncation removes.
const CLEAR_ROWS: usize = 5_000;
/// How many bytes of rows one step of a truncation passes over.
const CLEAR_BYTES: usize = 16_000_000;

impl Writer {
    /// Removes the events up to and with `cut`, and the snapshots before it.
    ///
    /// Only what a snapshot covers can go: there must be one at or after `cut`, and its bytes are
    /// read and compared before anything is removed. A truncation that was interrupted is
    /// invisible to readers, and the next one finishes it.
    ///
    /// # Errors
    ///
    /// `Uncovered` without such a snapshot, `Corrupt` if it is damaged.
    pub fn truncate(&self, engine: &dyn Engine, cut: EventId) -> Result<Truncated, Error> {
        let covered = self.can_truncate(engine, cut)?;
        if covered.events != 0 {
            let snapshot = covered.snapshot.expect("whoever cuts events has a snapshot");
            let mut reader = SnapshotReader::new(self.log(), snapshot);
            while reader.next(engine)?.is_some() {}
            self.run(engine, |txn, _| set_first(self.log(), txn, cut, snapshot))?;
        }
        self.clear_front(engine)?;
        Ok(covered)
    }

    /// What [`Writer::truncate`] would do, without reading the snapshot through.
    pub fn can_truncate(&self, engine: &dyn Engine, cut: EventId) -> Result<Truncated, Error> {
        self.run(engine, |txn, _| {
            let bounds = self.log().bounds(txn, Read::Snapshot)?;
            if bounds.latest < cut {
                return Err(Error::NotFound(format!("there is no event {cut}")));
            }
            if cut < bounds.first {
                return Ok(Truncated { first: bounds.first, events: 0, snapshot: None });
            }
            let snapshots = self.log().snapshots(txn)?;
            let Some(snapshot) = snapshots.iter().copied().find(|it| cut <= it.id) else {
                let newest = snapshots.last().map(|it| it.id);
                return Err(Error::Uncovered { cut, snapshot: newest });
            };
            let events = cut.get() + 1 - bounds.first.get();
            Ok(Truncated { first: cut.next(), events, snapshot: Some(snapshot) })
        })
    }

    /// Removes everything before the first event that is kept, in small steps.
    pub(crate) fn clear_front(&self, engine: &dyn Engine) -> Result<(), Error> {
        let log = self.log();
        let first = self.run(engine, |txn, _| log.first(txn, Read::Serializable))?;
        if first == EventId::FIRST {
            return Ok(());
        }
        let cut = first.prior();
        // Notes on the last event that goes are kept: the snapshot is one of them.
        let whole = kumiko_kv::Range::new(log.keys.events().start, log.keys.ordinary(cut).end);
        while self.run(engine, |txn, _| clear_some(txn, &whole))? {}
        self.run(engine, |txn, _| {
            for (key, _) in txn.scan(&Scan::new(log.keys.ids(cut, cut)))?.rows {
                let note = matches!(log.keys.unpack(&key),
                    Some(Record::Special(_, descriptor)) if crate::machine::is_note(descriptor));
                if !note {
                    txn.del(&key)?;
                }
            }
            for (number, head) in log.heads(txn, Read::Serializable)? {
                if head.done && head.id < cut {
                    log.clear_blob(txn, number)?;
                }
            }
            Ok(())
        })
    }
}

fn set_first(log: &Log, txn: &mut dyn Txn, cut: EventId, snapshot: Snapshot) -> Result<(), Error> {
    let bounds = log.bounds(txn, Read::Serializable)?;
    if cut < bounds.first {
        return Ok(());
    }
    let value = txn.get(&log.keys.blob_head(snapshot.number), Read::Serializable)?;
    let head = value.as_deref().and_then(Head::decode);
    if bounds.latest < cut || !head.is_some_and(|head| head.done && head.id == snapshot.id) {
        return Err(Error::Uncovered { cut, snapshot: None });
    }
    txn.put(&log.keys.meta(key::META_FIRST), &cut.next().get().to_be_bytes())?;
    Ok(())
}

/// Clears some rows at the start of the range; true if more may be left.
fn clear_some(txn: &mut dyn Txn, whole: &kumiko_kv::Range) -> Result<bool, Error> {
    let mut bounds: Option<(Vec<u8>, Vec<u8>)> = None;
    let scan = Scan::new(whole.clone()).rows(CLEAR_ROWS).bytes(CLEAR_BYTES).snapshot();
    let rest = txn.visit(&scan, &mut |key, _| {
        match &mut bounds {
            Some((_, last)) => key.clone_into(last),
            None => bounds = Some((key.to_vec(), key.to_vec())),
        }
        Flow::Go
    })?;
    if let Some((start, last)) = bounds {
        txn.clear(&kumiko_kv::Range::new(start, range::after(&last)))?;
    }
    Ok(rest.is_some())
}
