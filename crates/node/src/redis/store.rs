//! The journal of the Redis front, kept by the event log.
//!
//! The log of this node lives under the key (L, node id, "*"). Each event is one batch of changes;
//! a snapshot is the state after an event, as parts in the form that the live store writes:
//!
//! ```text
//! part    size (4, LE) batch
//! ```
//!
//! A snapshot is made while writers go on: it begins at event N, and batches after N say which of
//! their records it had still to write. So the state is: the parts, then every batch after N.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use kumiko_base::category::Category;
use kumiko_eventlog::{
    Content, Error as LogError, EventId, EventReader, Item, Log, PageMax, SnapshotReader, Take,
    Writer,
};
use kumiko_kv::{Engine, Read};
use kumiko_redis::Server;

use super::journal::Journal;
use crate::Error;

/// A batch up to this size is appended together with others; a larger one goes alone.
const APPEND_BYTES_MAX: usize = 4_000_000;
/// How much one step of loading reads.
const LOAD_BYTES: usize = 1_000_000;
/// The largest part of a snapshot; ours are a few hundred kilobytes, single values excepted.
const PART_BYTES_MAX: usize = 1 << 30;

/// Where the journal of a node is.
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    writer: Writer,
    latest: EventId,
}

fn told(error: &LogError) -> Error {
    Error::new(error.kind(), error.to_string()).during("the journal")
}

/// The log that holds the journal of the node with this id.
pub fn log_of(node: &[u8]) -> Log {
    Log::new(Category::Lattice.key().bytes(node).text("*").finish())
}

impl Store {
    /// Takes the journal of the node. Whoever had it before is cut off: a node has one process.
    pub fn open(engine: Arc<dyn Engine>, node: &[u8], owner: &str) -> Result<Store, Error> {
        let log = log_of(node);
        let writer =
            Writer::open(engine.as_ref(), &log, owner, Take::Over).map_err(|error| told(&error))?;
        let mut txn = engine.begin()?;
        let latest = log.latest(txn.as_mut(), Read::Snapshot).map_err(|error| told(&error))?;
        drop(txn);
        Ok(Store { engine, writer, latest: latest.unwrap_or(EventId::ZERO) })
    }

    /// The latest event when the journal was opened.
    pub fn latest(&self) -> u64 {
        self.latest.get()
    }

    /// Reads the journal from its start.
    pub fn loader(&self) -> Result<Loader, Error> {
        let log = self.writer.log().clone();
        let mut txn = self.engine.begin()?;
        let bounds = log.bounds(txn.as_mut(), Read::Snapshot).map_err(|error| told(&error))?;
        let newest =
            log.snapshot_before(txn.as_mut(), bounds.latest).map_err(|error| told(&error))?;
        drop(txn);
        let number = newest.map(|it| it.id.get());
        let next = newest.map_or(bounds.first, |it| it.id.next());
        Ok(Loader {
            engine: Arc::clone(&self.engine),
            snapshot: newest.map(|it| SnapshotReader::new(&log, it)),
            snapshot_bytes: newest.map_or(0, |it| it.size),
            log,
            number,
            next,
            latest: bounds.latest,
            first: next,
            input: Vec::new(),
            read_bytes: 0,
        })
    }

    /// Keeps what the receiver gives as the snapshot after event `id`, then drops what it covers.
    pub(super) fn snapshot(&self, id: u64, parts: Receiver<Part>) -> Result<(), Error> {
        let id = EventId::new(id).ok_or_else(|| Error::invalid("there is no such event"))?;
        let engine = self.engine.as_ref();
        let mut source = Parts { receiver: parts, rest: Vec::new(), at: 0, ended: false };
        self.writer.snapshot(engine, id, &mut source).map_err(|error| told(&error))?;
        self.writer.truncate(engine, id).map_err(|error| told(&error))?;
        Ok(())
    }
}

impl Journal for Store {
    fn append(&mut self, batches: &[Vec<u8>]) -> (usize, Result<(), Error>) {
        let mut at = 0;
        while at < batches.len() {
            match self.append_some(&batches[at..]) {
                Ok(count) => at += count,
                Err(error) => return (at, Err(error)),
            }
        }
        (at, Ok(()))
    }
}

impl Store {
    /// Appends as many batches as fit one transaction, at least one, and says how many. Appending the
    /// same again after an error is harmless: the log knows an event by its id and bytes.
    fn append_some(&mut self, batches: &[Vec<u8>]) -> Result<usize, Error> {
        let engine = self.engine.as_ref();
        let first = self.latest.next();
        if let Some(batch) = batches.first().filter(|it| APPEND_BYTES_MAX < it.len()) {
            let mut source = &batch[..];
            self.writer.append_from(engine, first, &mut source, 0).map_err(|error| told(&error))?;
            self.latest = first;
            return Ok(1);
        }
        let mut size = 0;
        let mut items = Vec::new();
        for batch in batches {
            size += batch.len() + 64;
            if APPEND_BYTES_MAX < size && !items.is_empty() {
                break;
            }
            items.push(Item::event(batch));
        }
        self.writer.append(engine, first, &items).map_err(|error| told(&error))?;
        self.latest = first.plus(items.len() as u64 - 1);
        Ok(items.len())
    }
}

/// What the executor sends to the thread that writes a snapshot.
pub(super) enum Part {
    /// Some records.
    Records(Vec<u8>),
    /// That was all.
    End,
}

/// The parts as a stream of bytes. A sender that goes away before the end is an error, so that half
/// a snapshot never becomes one.
struct Parts {
    receiver: Receiver<Part>,
    rest: Vec<u8>,
    at: usize,
    ended: bool,
}

impl io::Read for Parts {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.rest.len() && !self.ended {
            match self.receiver.recv() {
                Ok(Part::Records(batch)) => {
                    self.rest = (batch.len() as u32).to_le_bytes().to_vec();
                    self.rest.extend_from_slice(&batch);
                    self.at = 0;
                }
                Ok(Part::End) => self.ended = true,
                Err(_) => return Err(io::Error::other("the snapshot was given up")),
            }
        }
        let count = into.len().min(self.rest.len() - self.at);
        into[..count].copy_from_slice(&self.rest[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Brings the data back, step by step.
pub struct Loader {
    engine: Arc<dyn Engine>,
    log: Log,
    snapshot: Option<SnapshotReader>,
    snapshot_bytes: u64,
    number: Option<u64>,
    first: EventId,
    next: EventId,
    latest: EventId,
    input: Vec<u8>,
    read_bytes: u64,
}

impl Loader {
    /// Loads some more. True when all is there.
    ///
    /// # Errors
    ///
    /// The journal is damaged; the text names the event.
    pub fn step(&mut self, server: &mut Server) -> Result<bool, Error> {
        if self.snapshot.is_some() {
            self.load_snapshot(server)?;
            return Ok(false);
        }
        if self.latest < self.next {
            return Ok(true);
        }
        let max = PageMax { events: 10_000, bytes: LOAD_BYTES };
        let mut txn = self.engine.begin()?;
        let page = self
            .log
            .page(txn.as_mut(), self.next, max)
            .map_err(|error| damaged(self.next, &error.to_string()))?;
        drop(txn);
        for (id, content) in page.events {
            let batch = match content {
                Content::Event(batch) => batch,
                Content::Special(..) => Vec::new(),
                Content::Large(size) => self.large(id, size)?,
            };
            if !batch.is_empty() {
                server
                    .live
                    .replay(&batch, self.number)
                    .map_err(|error| damaged(id, &error.to_string()))?;
            }
            self.next = id.next();
        }
        Ok(self.latest < self.next)
    }

    fn large(&self, id: EventId, size: u64) -> Result<Vec<u8>, Error> {
        let mut batch = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        let mut reader = EventReader::new(&self.log, id);
        while let Some(part) =
            reader.next(self.engine.as_ref()).map_err(|error| damaged(id, &error.to_string()))?
        {
            batch.extend_from_slice(&part);
        }
        Ok(batch)
    }

    fn load_snapshot(&mut self, server: &mut Server) -> Result<(), Error> {
        let at = self.first.prior();
        let fail = |why: &str| {
            Error::new(
                kumiko_base::Kind::Corrupt,
                format!("the journal's snapshot at event {at} is damaged: {why}"),
            )
        };
        let Some(reader) = &mut self.snapshot else { return Ok(()) };
        let more = reader.next(self.engine.as_ref()).map_err(|error| fail(&error.to_string()))?;
        let Some(bytes) = more else {
            self.snapshot = None;
            return if self.input.is_empty() { Ok(()) } else { Err(fail("it ends inside a part")) };
        };
        self.read_bytes += bytes.len() as u64;
        self.input.extend_from_slice(&bytes);
        let mut used = 0;
        while let Some((head, rest)) = self.input[used..].split_first_chunk::<4>() {
            let size = u32::from_le_bytes(*head) as usize;
            if PART_BYTES_MAX < size {
                return Err(fail("a part has an impossible size"));
            }
            let Some(batch) = rest.get(..size) else { break };
            if !batch.is_empty() {
                server.live.replay(batch, None).map_err(|error| fail(&error.to_string()))?;
            }
            used += 4 + size;
        }
        self.input.drain(..used);
        Ok(())
    }

    /// How much is done, in percent.
    pub fn percent(&self) -> u64 {
        let events = self.latest.get().saturating_sub(self.first.get()) + 1;
        let loaded = self.next.get().saturating_sub(self.first.get());
        let (all, done) = match self.snapshot_bytes {
            0 => (events, loaded),
            // Both halves count the same: which one is longer is not known ahead.
            bytes => (200, self.read_bytes * 100 / bytes + loaded * 100 / events.max(1)),
        };
        (done * 100 / all.max(1)).min(100)
    }

    /// How many events are to be read after the snapshot.
    pub fn events(&self) -> u64 {
        (self.latest.get() + 1).saturating_sub(self.first.get())
    }
}

fn damaged(id: EventId, why: &str) -> Error {
    Error::new(
        kumiko_base::Kind::Corrupt,
        format!(
            "the journal is damaged at event {id}: {why}; start with --repair show to see what \
             a repair would lose"
        ),
    )
}
