//! Reading: visits, pages in both directions, one event as a stream, and following.
//!
//! A read never shows an event past `latest` or before the first that is kept, and checks every
//! record by the strict machine. An event that is larger than the caller wants to hold is shown by
//! its size alone; [`EventReader`] streams it.

use std::collections::VecDeque;
use std::time::Duration;

use kumiko_kv::{Engine, Flow, Range, Read, Scan, Txn};

use crate::key::Record;
use crate::log::{Bounds, Log};
use crate::machine::{Damage, Machine, Piece};
use crate::{Error, EventId};

/// What is in the place of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// An event.
    Event(&'a [u8]),
    /// A special record with its descriptor.
    Special(u8, &'a [u8]),
    /// An event of this many bytes, more than was to be held.
    Large(u64),
}

/// The content of one id, held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An event.
    Event(Vec<u8>),
    /// A special record with its descriptor.
    Special(u8, Vec<u8>),
    /// An event of this many bytes, too large for the page: read it with an [`EventReader`].
    Large(u64),
}

impl Content {
    /// The size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Content::Event(bytes) | Content::Special(_, bytes) => bytes.len() as u64,
            Content::Large(size) => *size,
        }
    }

    /// The bytes that it takes in memory.
    fn held(&self) -> usize {
        match self {
            Content::Event(bytes) | Content::Special(_, bytes) => bytes.len(),
            Content::Large(_) => 0,
        }
    }
}

impl From<Seen<'_>> for Content {
    fn from(seen: Seen<'_>) -> Content {
        match seen {
            Seen::Event(bytes) => Content::Event(bytes.to_vec()),
            Seen::Special(descriptor, bytes) => Content::Special(descriptor, bytes.to_vec()),
            Seen::Large(size) => Content::Large(size),
        }
    }
}

/// Some events in order, and where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events, in the order that was asked for.
    pub events: Vec<(EventId, Content)>,
    /// The event to ask for next; `None` if there is none now.
    pub next: Option<EventId>,
    /// Which events there were, in the state that the page shows.
    pub bounds: Bounds,
}

/// How much a page holds at most. The event that reaches `bytes_max` is still given, so a page
/// holds less than twice that.
#[derive(Clone, Copy, Debug)]
pub struct PageMax {
    /// The most events.
    pub events: usize,
    /// The page ends with the event that reaches this many bytes.
    pub bytes: usize,
}

impl Default for PageMax {
    fn default() -> PageMax {
        PageMax { events: 10_000, bytes: 1_000_000 }
    }
}

impl Log {
    /// Shows the events from `from` to `to`, both included, without copying those that are stored
    /// whole. Returns the event to go on with. The caller has compared `to` with the bounds.
    ///
    /// Events of more than `hold_max` bytes are shown as [`Seen::Large`].
    pub fn visit(
        &self,
        txn: &mut dyn Txn,
        from: EventId,
        to: EventId,
        hold_max: usize,
        each: &mut dyn FnMut(EventId, Seen<'_>) -> Flow,
    ) -> Result<EventId, Error> {
        let mut visit =
            Visit { machine: Machine::new(from), held: Vec::new(), stop: None, hold_max, each };
        while visit.machine.expected() <= to {
            let range = self.keys.ids(visit.machine.expected(), to);
            let scan = Scan::new(range).snapshot();
            txn.visit(&scan, &mut |key, value| {
                // Nearly all records of nearly all logs: a short event in its place.
                let id = visit.machine.expected();
                let short = value.len() <= hold_max && self.keys.is_whole(key, id);
                if short && visit.machine.step_whole() {
                    return visit.show(id, Seen::Event(value));
                }
                visit.row(self.keys.unpack(key), value)
            })?;
            match visit.stop.take() {
                Some(Stop::Enough) => return Ok(visit.machine.expected()),
                Some(Stop::Past(next)) => visit.machine.skip_to(next),
                Some(Stop::Failed(error)) => return Err(error),
                None => {
                    let at = visit.machine.expected();
                    visit.machine.finish(to.next()).map_err(|it| Error::corrupt(at, it.words()))?;
                }
            }
        }
        Ok(visit.machine.expected())
    }

    /// The events from `from` on.
    ///
    /// # Errors
    ///
    /// `Truncated` if `from` is before the first event that is kept.
    pub fn page(&self, txn: &mut dyn Txn, from: EventId, max: PageMax) -> Result<Page, Error> {
        let bounds = self.bounds(txn, Read::Snapshot)?;
        let from = from.max(EventId::FIRST);
        if from < bounds.first {
            return Err(Error::Truncated { id: from, first: bounds.first });
        }
        let mut page = Page { events: Vec::new(), next: None, bounds };
        if bounds.latest < from || max.events == 0 {
            return Ok(page);
        }
        let mut size = 0;
        let to = bounds.latest.min(from.plus(max.events as u64).prior());
        let next = self.visit(txn, from, to, max.bytes, &mut |id, seen| {
            let content = Content::from(seen);
            size += content.held();
            page.events.push((id, content));
            if max.bytes <= size { Flow::Stop } else { Flow::Go }
        })?;
        page.next = Some(next).filter(|next| *next <= bounds.latest);
        Ok(page)
    }

    /// The events from `from` back, newest first. `from` past the latest begins at the latest.
    pub fn page_back(&self, txn: &mut dyn Txn, from: EventId, max: PageMax) -> Result<Page, Error> {
        let bounds = self.bounds(txn, Read::Snapshot)?;
        let mut page = Page { events: Vec::new(), next: None, bounds };
        let mut at = from.min(bounds.latest);
        let mut size = 0;
        while bounds.first <= at && page.events.len() < max.events && size < max.bytes {
            let reach = 64.min(max.events - page.events.len()) as u64;
            let low = EventId::new((at.get() + 1).saturating_sub(reach)).unwrap_or(at);
            let low = low.max(bounds.first);
            let events = self.window(txn, low, at, max.bytes, max.bytes - size)?;
            for (id, content) in events.into_iter().rev() {
                size += content.held();
                page.events.push((id, content));
                at = id.prior();
                if max.bytes <= size {
                    break;
                }
            }
        }
        page.next = Some(at).filter(|at| bounds.first <= *at);
        Ok(page)
    }

    /// The events at the end of `low..=high` that fit into `bytes_max`, at least the last.
    fn window(
        &self,
        txn: &mut dyn Txn,
        low: EventId,
        high: EventId,
        hold_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<(EventId, Content)>, Error> {
        let mut events = VecDeque::new();
        let mut size = 0;
        self.visit(txn, low, high, hold_max, &mut |id, seen| {
            let content = Content::from(seen);
            size += content.held();
            events.push_back((id, content));
            // What is furthest from the end makes room for what is nearer.
            while bytes_max < size && 1 < events.len() {
                if let Some((_, gone)) = events.pop_front() {
                    size -= gone.held();
                }
            }
            Flow::Go
        })?;
        Ok(events.into())
    }
}

enum Stop {
    Enough,
    Past(EventId),
    Failed(Error),
}

struct Visit<'a> {
    machine: Machine,
    held: Vec<u8>,
    stop: Option<Stop>,
    hold_max: usize,
    each: &'a mut dyn FnMut(EventId, Seen<'_>) -> Flow,
}

impl Visit<'_> {
    fn row(&mut self, record: Option<Record>, value: &[u8]) -> Flow {
        let Some(record) = record else {
            return self.fail(self.machine.expected(), "a foreign key among the records");
        };
        let id = record.id();
        let size = value.len();
        let flow = match self.machine.step(record, size) {
            Ok(Piece::Whole) if self.hold_max < size => (self.each)(id, Seen::Large(size as u64)),
            Ok(Piece::Whole) => (self.each)(id, Seen::Event(value)),
            Ok(Piece::Open(total)) if (self.hold_max as u64) < total => {
                self.stop = Some(match (self.each)(id, Seen::Large(total)) {
                    Flow::Go => Stop::Past(id.next()),
                    Flow::Stop => Stop::Enough,
                });
                self.machine.skip_to(id.next());
                return Flow::Stop;
            }
            Ok(Piece::Open(_)) => {
                self.held.clear();
                self.held.extend_from_slice(value);
                Flow::Go
            }
            Ok(Piece::More) => {
                self.held.extend_from_slice(value);
                Flow::Go
            }
            Ok(Piece::Last) if matches!(record, Record::First(..)) => {
                (self.each)(id, Seen::Event(value))
            }
            Ok(Piece::Last) => {
                self.held.extend_from_slice(value);
                (self.each)(id, Seen::Event(&self.held))
            }
            Ok(Piece::Instead(descriptor)) => (self.each)(id, Seen::Special(descriptor, value)),
            Ok(Piece::Note(_)) => Flow::Go,
            Err(damage) => return self.fail(id, damage.words()),
        };
        if flow == Flow::Stop {
            self.stop = Some(Stop::Enough);
        }
        flow
    }

    fn show(&mut self, id: EventId, seen: Seen<'_>) -> Flow {
        let flow = (self.each)(id, seen);
        if flow == Flow::Stop {
            self.stop = Some(Stop::Enough);
        }
        flow
    }

    fn fail(&mut self, id: EventId, why: &str) -> Flow {
        self.stop = Some(Stop::Failed(Error::corrupt(id, why)));
        Flow::Stop
    }
}

/// What one transaction of a stream reads at most: far below what takes five seconds.
const STREAM_BYTES: usize = 2_000_000;

/// Streams one event, a few fragments at a time, so that its size does not matter.
///
/// Takes a transaction of its own for every part. That is sound because a visible event never
/// changes; it can only be truncated, and that is noticed.
#[derive(Debug)]
pub struct EventReader {
    log: Log,
    id: EventId,
    range: Range,
    machine: Machine,
    parts: VecDeque<Vec<u8>>,
    done: bool,
}

impl EventReader {
    /// Before the first byte of the event.
    pub fn new(log: &Log, id: EventId) -> EventReader {
        EventReader {
            log: log.clone(),
            id,
            range: log.keys.ordinary(id),
            machine: Machine::new(id),
            parts: VecDeque::new(),
            done: false,
        }
    }

    /// The next bytes of the event; `None` after the last. Empty parts do not occur, except that
    /// an empty event is one empty part.
    pub fn next(&mut self, engine: &dyn Engine) -> Result<Option<Vec<u8>>, Error> {
        if self.parts.is_empty() && !self.done {
            let mut txn = engine.begin()?;
            self.fill(txn.as_mut())?;
        }
        Ok(self.parts.pop_front())
    }

    fn fill(&mut self, txn: &mut dyn Txn) -> Result<(), Error> {
        let bounds = self.log.bounds(txn, Read::Snapshot)?;
        if self.id < bounds.first {
            return Err(Error::Truncated { id: self.id, first: bounds.first });
        }
        if !bounds.contains(self.id) {
            return Err(Error::NotFound(format!("there is no event {}", self.id)));
        }
        let mut damage = None;
        let scan = Scan::new(self.range.clone()).bytes(STREAM_BYTES).snapshot();
        let (machine, parts, keys) = (&mut self.machine, &mut self.parts, &self.log.keys);
        let rest = txn.visit(&scan, &mut |key, value| {
            let step = keys.unpack(key).ok_or("a foreign key among the records");
            match step.and_then(|it| machine.step(it, value.len()).map_err(Damage::words)) {
                Ok(_) => parts.push_back(value.to_vec()),
                Err(why) => damage = Some(why),
            }
            if damage.is_some() { Flow::Stop } else { Flow::Go }
        })?;
        if let Some(why) = damage {
            return Err(Error::corrupt(self.id, why));
        }
        if let Some(rest) = rest {
            self.range = rest;
            return Ok(());
        }
        self.done = true;
        self.finish(txn)
    }

    fn finish(&mut self, txn: &mut dyn Txn) -> Result<(), Error> {
        if self.machine.expected() != self.id {
            return Ok(());
        }
        if self.machine.finish(self.id).is_err() {
            return Err(Error::corrupt(self.id, Damage::Torn.words()));
        }
        // Nothing ordinary is there: a special record stands in its place, or the event is lost.
        let mut special = None;
        let range = self.log.keys.ids(self.id, self.id);
        txn.visit(&Scan::new(range).snapshot(), &mut |key, value| {
            if let Some(Record::Special(_, descriptor)) = self.log.keys.unpack(key) {
                special = special
                    .take()
                    .or((!crate::machine::is_note(descriptor)).then(|| value.to_vec()));
            }
            Flow::Go
        })?;
        let special = special.ok_or_else(|| Error::corrupt(self.id, "the event is missing"))?;
        self.parts.push_back(special);
        Ok(())
    }
}

impl EventReader {
    /// The rest of the event as a stream of bytes.
    pub fn stream(self, engine: &dyn Engine) -> EventStream<'_> {
        EventStream { engine, reader: self, part: Vec::new(), at: 0 }
    }
}

/// One event as a stream of bytes.
pub struct EventStream<'a> {
    engine: &'a dyn Engine,
    reader: EventReader,
    part: Vec<u8>,
    at: usize,
}

impl std::io::Read for EventStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.part.len() {
            let part = self.reader.next(self.engine).map_err(std::io::Error::other)?;
            (self.part, self.at) = (part.unwrap_or_default(), 0);
        }
        let count = buffer.len().min(self.part.len() - self.at);
        buffer[..count].copy_from_slice(&self.part[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Waits for events as they are appended.
#[derive(Debug)]
pub struct Follow {
    log: Log,
    next: EventId,
    max: PageMax,
}

impl Follow {
    /// Begins with the event `from`, which need not be there yet.
    pub fn new(log: &Log, from: EventId, max: PageMax) -> Follow {
        Follow { log: log.clone(), next: from.max(EventId::FIRST), max }
    }

    /// The event that comes next.
    pub fn next_id(&self) -> EventId {
        self.next
    }

    /// The next events, at once if there are any, else as soon as an append brings some; an empty
    /// page if `timeout` passes before.
    pub fn next(&mut self, engine: &dyn Engine, timeout: Duration) -> Result<Page, Error> {
        // The watch comes first: what is appended after the read wakes it.
        let mut watch = engine.watch(&self.log.latest_key)?;
        let page = self.read(engine)?;
        if !page.events.is_empty() || !watch.wait(timeout)? {
            return Ok(page);
        }
        self.read(engine)
    }

    fn read(&mut self, engine: &dyn Engine) -> Result<Page, Error> {
        let mut txn = engine.begin()?;
        let page = self.log.page(txn.as_mut(), self.next, self.max)?;
        if let Some((last, _)) = page.events.last() {
            self.next = last.next();
        }
        Ok(page)
    }
}
