//! A writer: the one who holds a log, and runs the transactions that write it.
//!
//! Opening a writer takes the fence. Each of its transactions checks the fence, so that after
//! another writer took over, this one gets [`Error::Stale`] and nothing else.
//!
//! An event that does not fit into one transaction is written in three kinds of them:
//!
//! 1. *Begin*: clears what may be left behind `latest`, and notes the id in the fence.
//! 2. *Body*: fragments 1, 2, .., as many as fit. None is visible, because `latest` is before them.
//! 3. *Commit*: fragment 0, whose key carries the size, and `latest`. Now the event is there.
//!
//! If the writer dies before the last, the next append finds the note and removes the fragments.

use std::io;

use kumiko_kv::{Engine, Read, Retry, Txn, retry};

use crate::fence::{Fence, Guard, OWNER_BYTES_MAX};
use crate::key::Record;
use crate::log::{Appended, EVENT_BYTES_MAX, Item, Log, Tally};
use crate::read::EventReader;
use crate::{Error, EventId};

/// What to do if somebody else holds the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Refuse.
    IfFree,
    /// Take it over if the holder's lease ended before this time, in ms since 1970.
    IfExpired(u64),
    /// Take it over. The other writer is cut off in the middle of whatever it does.
    Over,
}

/// The one who holds a log.
#[derive(Clone, Debug)]
pub struct Writer {
    log: Log,
    fence: Fence,
    retry: Retry,
}

/// Repeats what is harmless to repeat: everything that this crate commits is.
pub(crate) fn retry_all() -> Retry {
    Retry { unknown: true, ..Retry::default() }
}

impl Writer {
    /// Takes the log for `owner`, whose name should be unique to the machine or ship that writes.
    /// The same owner may come back at any time, which cuts off its own earlier writer.
    ///
    /// # Errors
    ///
    /// `Held` if another owner has the log and `take` does not say to take it over.
    pub fn open(engine: &dyn Engine, log: &Log, owner: &str, take: Take) -> Result<Writer, Error> {
        Writer::open_until(engine, log, owner, take, 0)
    }

    /// As [`Writer::open`], with a lease: after that time others may take over unless it is
    /// renewed. 0 is no lease.
    pub fn open_until(
        engine: &dyn Engine,
        log: &Log,
        owner: &str,
        take: Take,
        lease_until_ms: u64,
    ) -> Result<Writer, Error> {
        if owner.is_empty() || OWNER_BYTES_MAX < owner.len() {
            let why = format!("an owner's name has 1 to {OWNER_BYTES_MAX} bytes");
            return Err(Error::Invalid(why));
        }
        let fence = retry::run(engine, retry_all(), |txn| {
            log.check_schema(txn)?;
            let found = log.fence(txn, Read::Serializable)?;
            let free = match take {
                Take::Over => true,
                Take::IfFree => false,
                Take::IfExpired(now) => found.lease_until_ms != 0 && found.lease_until_ms < now,
            };
            if found.is_held() && found.owner != owner && !free {
                return Err(found.held());
            }
            let epoch = found.epoch + 1;
            let mut fence = Fence { epoch, owner: owner.into(), lease_until_ms, ..found };
            // What the writer before us left unfinished goes now: it can never be finished.
            if fence.body != EventId::ZERO {
                let latest = log.latest(txn, Read::Serializable)?.unwrap_or(EventId::ZERO);
                log.clear_body(txn, latest, &fence)?;
                fence.body = EventId::ZERO;
            }
            txn.put(&log.writer_key, &fence.encode())?;
            Ok(fence)
        })?;
        Ok(Writer { log: log.clone(), fence, retry: retry_all() })
    }

    /// The log that is held.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The right of this writer, for those who append in their own transactions.
    pub fn guard(&self) -> Guard {
        Guard::Epoch(self.fence.epoch)
    }

    /// The epoch of this writer.
    pub fn epoch(&self) -> u64 {
        self.fence.epoch
    }

    /// Moves the end of the lease.
    pub fn renew(&mut self, engine: &dyn Engine, lease_until_ms: u64) -> Result<(), Error> {
        self.fence.lease_until_ms = lease_until_ms;
        self.put_fence(engine, &self.fence)
    }

    /// Gives the log free. What was taken over before stays fenced off.
    pub fn release(self, engine: &dyn Engine) -> Result<(), Error> {
        let fence = Fence { epoch: self.fence.epoch, ..Fence::default() };
        self.put_fence(engine, &fence)
    }

    fn put_fence(&self, engine: &dyn Engine, fence: &Fence) -> Result<(), Error> {
        self.run(engine, |txn, _| Ok(txn.put(&self.log.writer_key, &fence.encode())?))
    }

    /// Runs `body` in a transaction that fails unless this writer holds the log.
    pub(crate) fn run<T>(
        &self,
        engine: &dyn Engine,
        mut body: impl FnMut(&mut dyn Txn, Fence) -> Result<T, Error>,
    ) -> Result<T, Error> {
        retry::run(engine, self.retry, |txn| {
            let fence = self.log.fence(txn, Read::Serializable)?;
            self.guard().check(&fence)?;
            body(txn, fence)
        })
    }

    /// Appends `items`, the first of which gets the id `first`, in one transaction. As
    /// [`Log::append`], and repeats it after a lost race or an unknown result.
    pub fn append(
        &self,
        engine: &dyn Engine,
        first: EventId,
        items: &[Item<'_>],
    ) -> Result<Appended, Error> {
        retry::run(engine, self.retry, |txn| self.log.append(txn, self.guard(), first, items))
    }

    /// Appends the event that `source` gives, of any size up to [`EVENT_BYTES_MAX`], as `id`.
    /// Returns its size. Holds one transaction's worth of it at a time.
    ///
    /// # Errors
    ///
    /// As [`Writer::append`]; `Io` if `source` fails. Nothing is visible after an error.
    pub fn append_from(
        &self,
        engine: &dyn Engine,
        id: EventId,
        source: &mut dyn io::Read,
        hour: u32,
    ) -> Result<u64, Error> {
        self.append_from_max(engine, id, source, hour, EVENT_BYTES_MAX)
    }

    /// As [`Writer::append_from`], with a lower limit.
    pub fn append_from_max(
        &self,
        engine: &dyn Engine,
        id: EventId,
        source: &mut dyn io::Read,
        hour: u32,
        size_max: u64,
    ) -> Result<u64, Error> {
        let body = self.log.sizes.body.max(self.log.sizes.fragment + 1);
        let mut buffer = vec![0; body.min(1 << 16)];
        let mut got = 0;
        // Most sources are short: the buffer grows as they turn out longer.
        loop {
            got += fill(source, &mut buffer[got..])?;
            if got < buffer.len() || buffer.len() == body {
                break;
            }
            buffer.resize((2 * buffer.len()).min(body), 0);
        }
        if size_max < got as u64 {
            return Err(too_large(got as u64, size_max));
        }
        let overhead = 64 * (got / self.log.sizes.fragment + 1);
        if got < body && got + overhead <= crate::log::BATCH_BYTES_MAX {
            buffer.truncate(got);
            self.append(engine, id, &[Item { bytes: &buffer, descriptor: 0, hour }])?;
            return Ok(got as u64);
        }
        let latest = self.run(engine, |txn, _| self.log.latest(txn, Read::Serializable))?;
        if id <= latest.unwrap_or(EventId::ZERO) {
            return self.compare_from(engine, id, &buffer[..got], source);
        }
        let mut body = Body { writer: self, engine, id, hour, size: 0, size_max, index: 0 };
        let result = body.write(buffer, got, source);
        if result.is_err() {
            // Best effort: if this fails too, the next append removes the fragments.
            let _ = body.abandon();
        }
        result
    }

    /// Whether the stored event is what was read and what `source` gives after it.
    fn compare_from(
        &self,
        engine: &dyn Engine,
        id: EventId,
        start: &[u8],
        source: &mut dyn io::Read,
    ) -> Result<u64, Error> {
        let mut source = io::Read::chain(start, source);
        let mut reader = EventReader::new(&self.log, id);
        let mut size = 0;
        let mut given = Vec::new();
        while let Some(part) = reader.next(engine)? {
            given.resize(part.len(), 0);
            let got = fill(&mut source, &mut given)?;
            if got != part.len() || given != part {
                return Err(Error::Fork { id });
            }
            size += part.len() as u64;
        }
        if fill(&mut source, &mut [0])? != 0 {
            return Err(Error::Fork { id });
        }
        Ok(size)
    }
}

/// An event that is being written over several transactions.
struct Body<'a> {
    writer: &'a Writer,
    engine: &'a dyn Engine,
    id: EventId,
    hour: u32,
    size: u64,
    size_max: u64,
    /// The fragments written so far, fragment 0 counted though it comes last.
    index: u64,
}

impl Body<'_> {
    fn write(
        &mut self,
        mut buffer: Vec<u8>,
        mut got: usize,
        source: &mut dyn io::Read,
    ) -> Result<u64, Error> {
        let fragment = self.writer.log.sizes.fragment;
        assert!(fragment < got, "a short event needs no body");
        self.begin()?;
        let head = buffer[..fragment].to_vec();
        let mut start = fragment;
        self.index = 1;
        self.size = fragment as u64;
        loop {
            self.size += (got - start) as u64;
            if self.size_max < self.size {
                return Err(too_large(self.size, self.size_max));
            }
            self.put(&buffer[start..got])?;
            if got < buffer.len() {
                break;
            }
            start = 0;
            // Whole fragments only, except in the last transaction.
            buffer.truncate(buffer.len() / fragment * fragment);
            got = fill(source, &mut buffer)?;
            if got == 0 {
                break;
            }
        }
        self.commit(&head)?;
        Ok(self.size)
    }

    /// Runs `body` while the event is the one under way.
    fn step(
        &self,
        mut body: impl FnMut(&mut dyn Txn, Fence) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.writer.run(self.engine, |txn, fence| {
            let latest = self.writer.log.latest(txn, Read::Serializable)?;
            if latest == Some(self.id) && fence.body == EventId::ZERO {
                // Our own commit, whose answer was lost: nobody else has this epoch.
                return Ok(());
            }
            if latest.unwrap_or(EventId::ZERO).next() != self.id || fence.body != self.id {
                let expected = latest.unwrap_or(EventId::ZERO).next();
                return Err(Error::Gap { expected, given: self.id });
            }
            body(txn, fence)
        })
    }

    fn begin(&self) -> Result<(), Error> {
        let log = &self.writer.log;
        self.writer.run(self.engine, |txn, fence| {
            let latest = match log.latest(txn, Read::Serializable)? {
                Some(latest) => latest,
                None => log.begin_log(txn)?,
            };
            if latest.next() != self.id {
                return Err(Error::Gap { expected: latest.next(), given: self.id });
            }
            log.clear_body(txn, latest, &fence)?;
            let fence = Fence { body: self.id, ..fence };
            Ok(txn.put(&log.writer_key, &fence.encode())?)
        })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let log = &self.writer.log;
        let mut key = Vec::new();
        self.step(|txn, _| {
            for (offset, fragment) in bytes.chunks(log.sizes.fragment).enumerate() {
                let index = self.index + offset as u64;
                log.keys.record_into(Record::Fragment(self.id, index), &mut key);
                txn.put(&key, fragment)?;
            }
            Ok(())
        })?;
        self.index += bytes.len().div_ceil(log.sizes.fragment) as u64;
        Ok(())
    }

    fn commit(&self, head: &[u8]) -> Result<(), Error> {
        let log = &self.writer.log;
        self.step(|txn, fence| {
            txn.put(&log.keys.record(Record::First(self.id, self.size)), head)?;
            txn.put(&log.latest_key, &self.id.get().to_be_bytes())?;
            let fence = Fence { body: EventId::ZERO, ..fence };
            txn.put(&log.writer_key, &fence.encode())?;
            Tally { hour: self.hour, events: 1, bytes: self.size }.put(log, txn)
        })
    }

    fn abandon(&self) -> Result<(), Error> {
        let log = &self.writer.log;
        self.writer.run(self.engine, |txn, fence| {
            if fence.body == EventId::ZERO {
                return Ok(());
            }
            let latest = log.latest(txn, Read::Serializable)?.unwrap_or(EventId::ZERO);
            log.clear_body(txn, latest, &fence)
        })
    }
}

fn too_large(size: u64, size_max: u64) -> Error {
    Error::TooLarge { what: "event", size, size_max }
}

/// Reads until `buffer` is full or the source has no more.
pub(crate) fn fill(source: &mut dyn io::Read, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut got = 0;
    while got < buffer.len() {
        match source.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(got)
}
