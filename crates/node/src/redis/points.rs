//! The event log as Redis commands see it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kumiko_eventlog::{
    Content, EventId, EventReader, Item, Log, PageMax, Point, Take, Writer, point,
};
use kumiko_kv::{Engine, Read};
use kumiko_redis::eventlog::{EventLog, Extent};

use crate::clock;

/// The most bytes of events one read gives; one event more than that may come.
const READ_BYTES_MAX: usize = 8_000_000;
/// The largest event that a Redis client can read in one piece.
const EVENT_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// How many writers are kept open.
const WRITERS_MAX: usize = 10_000;

/// The logs of all points of an engine.
pub(super) struct Points {
    engine: Arc<dyn Engine>,
    owner: String,
    writers: HashMap<Point, Writer>,
}

impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Points of {}", self.owner)
    }
}

fn told(error: &kumiko_eventlog::Error) -> String {
    error.to_string()
}

fn parse(text: &str) -> Result<Point, String> {
    text.parse().map_err(|error: kumiko_eventlog::Error| told(&error))
}

impl Points {
    pub(super) fn new(engine: Arc<dyn Engine>, owner: String) -> Points {
        Points { engine, owner, writers: HashMap::new() }
    }

    fn latest(&self, log: &Log) -> Result<EventId, String> {
        let mut txn = self.engine.begin().map_err(|error| error.to_string())?;
        let latest = log.latest(txn.as_mut(), Read::Snapshot).map_err(|error| told(&error))?;
        Ok(latest.unwrap_or(EventId::ZERO))
    }

    fn large(&self, log: &Log, id: EventId, size: u64) -> Result<Vec<u8>, String> {
        if EVENT_BYTES_MAX < size {
            return Err(format!("event {id} has {size} bytes: read it with kumiko log read"));
        }
        let mut bytes = Vec::new();
        let mut reader = EventReader::new(log, id);
        while let Some(part) = reader.next(self.engine.as_ref()).map_err(|error| told(&error))? {
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }
}

impl EventLog for Points {
    fn append(&mut self, point: &str, events: &[&[u8]]) -> Result<u64, String> {
        let point = parse(point)?;
        let engine = Arc::clone(&self.engine);
        if WRITERS_MAX <= self.writers.len() {
            self.writers.clear();
        }
        let writer = match self.writers.remove(&point) {
            Some(writer) => writer,
            None => Writer::open(engine.as_ref(), &Log::of(point), &self.owner, Take::IfFree)
                .map_err(|error| told(&error))?,
        };
        let first = self.latest(writer.log())?.next();
        let now_ms = u64::try_from(clock::now_ms()).unwrap_or(0);
        let items: Vec<Item<'_>> =
            events.iter().map(|bytes| Item::event(bytes).at_ms(now_ms)).collect();
        // A writer whose append failed may have lost the log to another: it is opened afresh.
        writer.append(engine.as_ref(), first, &items).map_err(|error| told(&error))?;
        self.writers.insert(point, writer);
        Ok(first.get())
    }

    fn read(
        &mut self,
        point: &str,
        from: u64,
        count: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, String> {
        let log = Log::of(parse(point)?);
        let from = EventId::new(from).ok_or("there is no such event")?;
        let max = PageMax { events: count, bytes: READ_BYTES_MAX };
        let mut txn = self.engine.begin().map_err(|error| error.to_string())?;
        let page = log.page(txn.as_mut(), from, max).map_err(|error| told(&error))?;
        drop(txn);
        let mut events = Vec::with_capacity(page.events.len());
        for (id, content) in page.events {
            let bytes = match content {
                Content::Event(bytes) | Content::Special(_, bytes) => bytes,
                Content::Large(size) => self.large(&log, id, size)?,
            };
            events.push((id.get(), bytes));
        }
        Ok(events)
    }

    fn extent(&mut self, point: &str) -> Result<Extent, String> {
        let log = Log::of(parse(point)?);
        let mut txn = self.engine.begin().map_err(|error| error.to_string())?;
        let bounds = log.bounds(txn.as_mut(), Read::Snapshot).map_err(|error| told(&error))?;
        Ok(Extent { first: bounds.first.get(), latest: bounds.latest.get() })
    }

    fn points(&mut self, count: usize) -> Result<Vec<String>, String> {
        let mut txn = self.engine.begin().map_err(|error| error.to_string())?;
        let found =
            point::list(txn.as_mut(), Point::new(0), count).map_err(|error| told(&error))?;
        Ok(found.iter().map(ToString::to_string).collect())
    }
}
