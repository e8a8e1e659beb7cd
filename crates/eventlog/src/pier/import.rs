//! From a pier into a log.

use std::io::Read as _;

use kumiko_kv::{Engine, Read, Txn};

use super::{
    EVENT_BYTES_LEAST, Epoch, FileRead, LOG_DIR, PierDir, Progress, TEXT_BYTES_MAX, Table,
    encode_table, event_ms,
};
use crate::key;
use crate::lmdb::{Cursor, Db, Env, ReadAt, Value};
use crate::log::{Bounds, Item};
use crate::{Error, EventId, Point, Writer};

/// A batch is sent to the log once it has this many bytes.
const BATCH_BYTES: usize = 1_000_000;
/// Or this many events.
const BATCH_EVENTS: usize = 5_000;
/// Events from this size on are streamed.
const STREAM_BYTES: u64 = 1_000_000;

/// What a pier holds, found out without reading its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// The ship.
    pub point: Point,
    /// Whether it is a fake one.
    pub fake: bool,
    /// How many of its first events are boot events.
    pub life: u64,
    /// The epochs, oldest first: the first and last event, and whether the state before is there.
    pub epochs: Vec<(EventId, EventId, bool)>,
}

/// What an import did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Which events the log has now.
    pub bounds: Bounds,
    /// The events written in this run.
    pub fresh: u64,
    /// The snapshots written or found.
    pub snapshots: u64,
}

struct Part {
    epoch: Epoch,
    file: Box<dyn ReadAt>,
    image: Option<Box<dyn ReadAt>>,
    first: EventId,
    last: EventId,
}

/// What the pier holds.
pub fn inspect(dir: &dyn PierDir) -> Result<Inspected, Error> {
    let (_, parts) = open(dir)?;
    let newest = &parts.last().expect("a pier has an epoch").epoch.table;
    Ok(Inspected {
        point: newest.point().ok_or_else(|| Error::Pier("META does not say who".into()))?,
        fake: newest.fake().unwrap_or(false),
        life: newest.number("life").unwrap_or(0) as u64,
        epochs: parts.iter().map(|part| (part.first, part.last, part.image.is_some())).collect(),
    })
}

/// Copies the events of a pier into the log of `writer`, after those that are there already. What
/// is there must be the same: the latest event is compared, and every one that is sent again.
///
/// The states of the epochs become snapshots if `images` says so; the oldest does in any case if
/// the pier does not begin with event 1, because without it the events are worth nothing.
pub fn import(
    engine: &dyn Engine,
    writer: &Writer,
    dir: &dyn PierDir,
    images: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Imported, Error> {
    let (top, parts) = open(dir)?;
    let start = parts.first().expect("a pier has an epoch").first;
    let last = parts.last().expect("a pier has an epoch").last;
    writer.run(engine, |txn, _| {
        let log = writer.log();
        if EventId::FIRST < start && log.latest(txn, Read::Serializable)?.is_none() {
            log.start_at(txn, writer.guard(), start)?;
        }
        if let Some(table) = &top {
            txn.put(&log.keys().meta(key::META_PIER), &encode_table(table))?;
        }
        parts.iter().try_for_each(|part| put_epoch(writer, txn, &part.epoch))
    })?;
    let bounds = |txn: &mut dyn Txn| writer.log().bounds(txn, Read::Snapshot);
    let before = bounds(engine.begin()?.as_mut())?;
    // From the latest event on, which is compared, unless it was truncated.
    let from = if before.count() == 0 { before.latest.next() } else { before.latest };
    if from < start {
        return Err(Error::Pier(format!("the pier begins at event {start}, the log ends before")));
    }
    let mut copy = Copy {
        engine,
        writer,
        next: from.max(start),
        batch: Batch::default(),
        progress: Progress {
            events: from.get() - start.get(),
            events_all: (last.get() + 1).saturating_sub(start.get()),
            bytes: 0,
        },
        report: progress,
        fresh: 0,
    };
    let mut snapshots = 0;
    for (index, part) in parts.iter().enumerate() {
        let needed = images || (index == 0 && EventId::FIRST < part.first);
        if let Some(image) = part.image.as_deref().filter(|_| needed) {
            snapshots += u64::from(copy.image(part.first.prior(), image)?);
        }
        if copy.next <= part.last {
            copy.epoch(part)?;
        }
    }
    let fresh = copy.fresh;
    Ok(Imported { bounds: bounds(engine.begin()?.as_mut())?, fresh, snapshots })
}

fn put_epoch(writer: &Writer, txn: &mut dyn Txn, epoch: &Epoch) -> Result<(), Error> {
    let name = [key::META_EPOCH, &epoch.number.to_be_bytes()].concat();
    Ok(txn.put(&writer.log().keys().meta(&name), &epoch.encode())?)
}

/// The META of the top and the epochs in order, each following the one before.
fn open(dir: &dyn PierDir) -> Result<(Option<Table>, Vec<Part>), Error> {
    let top_file = dir.open(&format!("{LOG_DIR}/data.mdb"))?;
    let top = top_file.as_deref().map(|file| Table::read(&Env::open(file)?)).transpose()?;
    let mut numbers: Vec<u64> = dir
        .list(LOG_DIR)?
        .iter()
        .filter_map(|name| name.strip_prefix("0i")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let mut parts: Vec<Part> = Vec::new();
    for number in numbers {
        let epoch = Epoch { number, ..Epoch::default() };
        let path = format!("{}/data.mdb", epoch.dir());
        let missing = || Error::Pier(format!("{path} is missing"));
        let file = dir.open(&path)?.ok_or_else(missing)?;
        let epoch = Epoch {
            epoc: text(dir, &format!("{}/epoc.txt", epoch.dir()))?,
            vere: text(dir, &format!("{}/vere.txt", epoch.dir()))?,
            ..epoch
        };
        let image = dir.open(&format!("{}/image.bin", epoch.dir()))?;
        parts.push(part(epoch, file, image)?);
    }
    if let (true, Some(file)) = (parts.is_empty(), top_file) {
        // Before epochs there was one file for all.
        parts.push(part(Epoch::default(), file, None)?);
    }
    for (before, after) in parts.iter().zip(parts.iter().skip(1)) {
        if before.last.next() != after.first {
            return Err(Error::Pier(format!(
                "the epoch before {} ends at event {}",
                after.first, before.last
            )));
        }
    }
    if parts.is_empty() {
        return Err(Error::Pier("this is no pier: it has no event log".into()));
    }
    Ok((top, parts))
}

fn text(dir: &dyn PierDir, path: &str) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = dir.open(path)? else { return Ok(None) };
    let size = file.size()?;
    if (TEXT_BYTES_MAX as u64) < size {
        let size_max = TEXT_BYTES_MAX as u64;
        return Err(Error::TooLarge { what: "text file of the pier", size, size_max });
    }
    let mut bytes = Vec::new();
    FileRead::new(file.as_ref())?.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn part(
    mut epoch: Epoch,
    file: Box<dyn ReadAt>,
    image: Option<Box<dyn ReadAt>>,
) -> Result<Part, Error> {
    let env = Env::open(file.as_ref())?;
    epoch.table = Table::read(&env)?;
    let prior = EventId::new(epoch.number);
    let prior = prior.ok_or_else(|| Error::Pier(format!("epoch {} is past all", epoch.number)))?;
    let db = events(&env)?;
    // Ids follow each other, so the count names the last one; the copy checks each of them.
    let last = prior.plus(db.entries());
    if !last.is_event() && last != EventId::ZERO {
        return Err(Error::Pier(format!("{} events after {prior} are past all", db.entries())));
    }
    Ok(Part { epoch, file, image, first: prior.next(), last })
}

fn events(env: &Env<'_>) -> Result<Db, Error> {
    let db = env.named(b"EVENTS")?;
    db.ok_or_else(|| Error::Pier("the LMDB file has no EVENTS".into()))
}

#[derive(Default)]
struct Batch {
    events: Vec<Vec<u8>>,
    size: usize,
}

struct Copy<'a> {
    engine: &'a dyn Engine,
    writer: &'a Writer,
    /// The event that comes next from the pier.
    next: EventId,
    batch: Batch,
    progress: Progress,
    report: &'a mut dyn FnMut(Progress),
    fresh: u64,
}

impl Copy<'_> {
    fn epoch(&mut self, part: &Part) -> Result<(), Error> {
        let env = Env::open(part.file.as_ref())?;
        let db = events(&env)?;
        let target = self.next.get();
        let number = |key: &[u8]| Some(u64::from_le_bytes(key.try_into().ok()?));
        let mut cursor = Cursor::seek(&env, &db, &|key| number(key).cmp(&Some(target)))?;
        while let Some((key, value)) = cursor.step()? {
            if number(&key) != Some(self.next.get()) {
                return Err(Error::Pier(format!("event {} is missing in the pier", self.next)));
            }
            if value.size() < EVENT_BYTES_LEAST {
                let why = format!("event {} has {} bytes", self.next, value.size());
                return Err(Error::Pier(why));
            }
            self.event(&env, &value)?;
        }
        self.send()?;
        if self.next != part.last.next() {
            let why = format!("the epoch ends at event {}, not {}", self.next.prior(), part.last);
            return Err(Error::Pier(why));
        }
        Ok(())
    }

    fn event(&mut self, env: &Env<'_>, value: &Value) -> Result<(), Error> {
        if value.size() < STREAM_BYTES {
            let event = env.load(value, STREAM_BYTES)?;
            self.batch.size += event.len();
            self.batch.events.push(event);
            self.next = self.next.next();
            if BATCH_BYTES <= self.batch.size || BATCH_EVENTS <= self.batch.events.len() {
                self.send()?;
            }
            return Ok(());
        }
        self.send()?;
        let mut start = vec![0; 64];
        env.stream(value).read_exact(&mut start)?;
        let hour = Item::event(&[]).at_ms(event_ms(&start).unwrap_or(0)).hour;
        let latest = self.latest()?;
        self.writer.append_from(self.engine, self.next, &mut *env.stream(value), hour)?;
        self.fresh += u64::from(latest < self.next);
        self.next = self.next.next();
        self.progress.events += 1;
        self.progress.bytes += value.size();
        (self.report)(self.progress);
        Ok(())
    }

    fn latest(&self) -> Result<EventId, Error> {
        let mut txn = self.engine.begin()?;
        Ok(self.writer.log().bounds(txn.as_mut(), Read::Snapshot)?.latest)
    }

    fn send(&mut self) -> Result<(), Error> {
        if self.batch.events.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let item = |event: &'_ Vec<u8>| event_ms(event).unwrap_or(0);
        let items: Vec<Item<'_>> =
            batch.events.iter().map(|event| Item::event(event).at_ms(item(event))).collect();
        let count = items.len() as u64;
        let first = EventId::new(self.next.get() - count).expect("ids below one that exists");
        self.fresh += self.writer.append(self.engine, first, &items)?.fresh;
        self.progress.events += count;
        self.progress.bytes += batch.size as u64;
        (self.report)(self.progress);
        Ok(())
    }

    /// Keeps a state; false if it cannot be kept because its event is not there.
    fn image(&mut self, at: EventId, image: &dyn ReadAt) -> Result<bool, Error> {
        let mut txn = self.engine.begin()?;
        let bounds = self.writer.log().bounds(txn.as_mut(), Read::Snapshot)?;
        let kept = self.writer.log().snapshots(txn.as_mut())?;
        drop(txn);
        if at < bounds.first.prior() || at == EventId::ZERO {
            return Ok(false);
        }
        if kept.iter().any(|it| it.id == at && Ok(it.size) == image.size().map_err(|_| ())) {
            return Ok(true);
        }
        self.writer.snapshot(self.engine, at, &mut FileRead::new(image)?)?;
        Ok(true)
    }
}
