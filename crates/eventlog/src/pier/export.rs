//! From a log into a pier.

use kumiko_kv::{Engine, Read, Scan};

use super::{EVENT_BYTES_LEAST, Epoch, LOG_DIR, PierDir, Progress, Table, decode_table};
use crate::key;
use crate::lmdb::{Db, Env, EnvWriter, INTEGER_KEY, WriteAt};
use crate::log::{Bounds, Log};
use crate::read::{Content, EventReader, PageMax};
use crate::{Error, EventId, Point, Snapshot, SnapshotReader};

/// The version of the log that epochs belong to.
const LOG_VERSION: &[u8] = &[3];

/// What a log that never was a pier's cannot say of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Whether the ship is a fake one.
    pub fake: bool,
    /// How many of its first events are boot events.
    pub life: u64,
    /// The version of the runtime that computed the events.
    pub vere: String,
}

/// What an export did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Which events the pier has.
    pub bounds: Bounds,
    /// The epochs written in this run.
    pub epochs: u64,
    /// The epochs that an earlier run had finished.
    pub epochs_kept: u64,
}

/// Writes the log of `point` as a pier into `dir`. Files appear under their names when they are
/// whole, so an export that was interrupted goes on with the epoch it was at.
///
/// `missing` is used if the log was not imported from a pier.
pub fn export(
    engine: &dyn Engine,
    log: &Log,
    point: Point,
    dir: &dyn PierDir,
    missing: Option<&Missing>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Exported, Error> {
    let mut txn = engine.begin()?;
    let bounds = log.bounds(txn.as_mut(), Read::Snapshot)?;
    let snapshots = log.snapshots(txn.as_mut())?;
    let stored = txn.get(&log.keys().meta(key::META_PIER), Read::Snapshot)?;
    let damaged = || Error::corrupt(EventId::ZERO, "what is kept of the pier cannot be read");
    let top = stored.map(|value| decode_table(&value).ok_or_else(damaged)).transpose()?;
    let mut epochs = Vec::new();
    for (key, value) in txn.scan(&Scan::new(log.keys().metas(key::META_EPOCH)).snapshot())?.rows {
        let tail = log.keys().strip(&key).and_then(|it| it.get(1 + key::META_EPOCH.len()..));
        let number = tail.and_then(|it| it.try_into().ok()).map(u64::from_be_bytes);
        let epoch = number.and_then(|number| Epoch::decode(number, &value));
        epochs.push(epoch.ok_or_else(damaged)?);
    }
    drop(txn);
    let epochs = plan(epochs, bounds, point, missing)?;
    let top = top.unwrap_or_else(|| epochs[0].table.clone());
    let image = |number: u64| snapshots.iter().find(|it| it.id.get() == number);
    if EventId::FIRST < bounds.first && image(bounds.first.prior().get()).is_none() {
        let newest = snapshots.last().map(|it| it.id);
        return Err(Error::Uncovered { cut: bounds.first.prior(), snapshot: newest });
    }
    let progress_now = Progress { events: 0, events_all: bounds.count(), bytes: 0 };
    let mut work = Work { engine, log, dir, progress: progress_now, report: progress };
    let mut done = Exported { bounds, epochs: 0, epochs_kept: 0 };
    for (index, epoch) in epochs.iter().enumerate() {
        let next = epochs.get(index + 1).map_or(bounds.latest.get(), |next| next.number);
        let last = EventId::new(next).expect("ids come from the log");
        if work.epoch(epoch, last, image(epoch.number))? {
            done.epochs += 1;
        } else {
            done.epochs_kept += 1;
        }
    }
    work.file(&format!("{LOG_DIR}/data.mdb"), |file| {
        let mut env = EnvWriter::new(file);
        let meta = put_table(&mut env, &top)?;
        env.finish(&[(b"META", meta)])
    })?;
    if let Some(newest) = epochs.iter().rev().find_map(|epoch| image(epoch.number)) {
        work.image(".urb/chk/image.bin", newest)?;
    }
    Ok(done)
}

/// The epochs to write: those that the pier had, from the first event that is kept on.
fn plan(
    stored: Vec<Epoch>,
    bounds: Bounds,
    point: Point,
    missing: Option<&Missing>,
) -> Result<Vec<Epoch>, Error> {
    let start = bounds.first.prior().get();
    let before = stored.iter().rfind(|epoch| epoch.number <= start).cloned();
    let mut first = match (before, missing) {
        (Some(epoch), _) => epoch,
        (None, Some(missing)) => invent(point, missing),
        (None, None) => {
            let why = "the log was never a pier's: fake, life and runtime must be given";
            return Err(Error::Invalid(why.into()));
        }
    };
    if first.table.point() != Some(point) {
        return Err(Error::Invalid(format!("the pier's META does not name {point}")));
    }
    first.number = start;
    let inside = |epoch: &Epoch| start < epoch.number && epoch.number <= bounds.latest.get();
    Ok(std::iter::once(first).chain(stored.into_iter().filter(inside)).collect())
}

fn invent(point: Point, missing: &Missing) -> Epoch {
    let trimmed = |number: u128| Point::new(number).subspace();
    let entry = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
    let fake: &[u8] = if missing.fake { &[] } else { &[1] };
    Epoch {
        number: 0,
        epoc: Some(b"2".to_vec()),
        vere: Some(missing.vere.clone().into_bytes()),
        table: Table(vec![
            entry("fake", fake),
            entry("life", &trimmed(u128::from(missing.life))),
            entry("version", LOG_VERSION),
            entry("who", &trimmed(point.number())),
        ]),
    }
}

fn put_table(env: &mut EnvWriter<'_>, table: &Table) -> Result<Db, Error> {
    let mut tree = env.tree(0);
    for (name, value) in &table.0 {
        tree.put(name, value)?;
    }
    tree.finish()
}

struct Work<'a> {
    engine: &'a dyn Engine,
    log: &'a Log,
    dir: &'a dyn PierDir,
    progress: Progress,
    report: &'a mut dyn FnMut(Progress),
}

impl Work<'_> {
    /// Writes a file under another name, then gives it its own.
    fn file(
        &self,
        path: &str,
        body: impl FnOnce(&mut dyn WriteAt) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let part = format!("{path}.part");
        let mut file = self.dir.create(&part)?;
        body(file.as_mut())?;
        drop(file);
        Ok(self.dir.rename(&part, path)?)
    }

    fn text(&self, path: &str, text: Option<&[u8]>) -> Result<(), Error> {
        let Some(text) = text else { return Ok(()) };
        self.file(path, |file| {
            file.write_at(0, text)?;
            Ok(file.finish()?)
        })
    }

    fn image(&self, path: &str, snapshot: &Snapshot) -> Result<(), Error> {
        self.file(path, |file| {
            let mut reader = SnapshotReader::new(self.log, *snapshot);
            let mut offset = 0;
            while let Some(part) = reader.next(self.engine)? {
                file.write_at(offset, &part)?;
                offset += part.len() as u64;
            }
            Ok(file.finish()?)
        })
    }

    /// Writes one epoch; false if it was finished before. Its events come last, so that an epoch
    /// with events has everything else too.
    fn epoch(
        &mut self,
        epoch: &Epoch,
        last: EventId,
        image: Option<&Snapshot>,
    ) -> Result<bool, Error> {
        let path = format!("{}/data.mdb", epoch.dir());
        let first = EventId::new(epoch.number).expect("ids come from the log").next();
        if self.is_finished(&path, (last.get() + 1).saturating_sub(first.get()))? {
            self.progress.events += (last.get() + 1).saturating_sub(first.get());
            (self.report)(self.progress);
            return Ok(false);
        }
        if let Some(snapshot) = image {
            self.image(&format!("{}/image.bin", epoch.dir()), snapshot)?;
        }
        self.text(&format!("{}/epoc.txt", epoch.dir()), epoch.epoc.as_deref())?;
        self.text(&format!("{}/vere.txt", epoch.dir()), epoch.vere.as_deref())?;
        let part = format!("{path}.part");
        let mut file = self.dir.create(&part)?;
        let mut env = EnvWriter::new(file.as_mut());
        let meta = put_table(&mut env, &epoch.table)?;
        let events = self.events(&mut env, first, last)?;
        env.finish(&[(b"EVENTS", events), (b"META", meta)])?;
        drop(file);
        self.dir.rename(&part, &path)?;
        Ok(true)
    }

    fn is_finished(&self, path: &str, events: u64) -> Result<bool, Error> {
        let Some(file) = self.dir.open(path)? else { return Ok(false) };
        let Ok(env) = Env::open(file.as_ref()) else { return Ok(false) };
        let db = env.named(b"EVENTS").unwrap_or(None);
        Ok(db.is_some_and(|db| db.entries() == events))
    }

    fn events(
        &mut self,
        env: &mut EnvWriter<'_>,
        first: EventId,
        last: EventId,
    ) -> Result<Db, Error> {
        let mut tree = env.tree(INTEGER_KEY);
        let mut next = first;
        while next <= last {
            let max = PageMax {
                events: 10_000.min((last.get() - next.get() + 1) as usize),
                ..PageMax::default()
            };
            let page = self.log.page(self.engine.begin()?.as_mut(), next, max)?;
            for (id, content) in page.events {
                let size = content.size();
                if size < EVENT_BYTES_LEAST {
                    let why = format!("event {id} of {size} bytes is too short for a pier");
                    return Err(Error::Invalid(why));
                }
                let key = id.get().to_le_bytes();
                match content {
                    Content::Event(event) => tree.put(&key, &event)?,
                    Content::Large(size) => {
                        let mut source = EventReader::new(self.log, id).stream(self.engine);
                        tree.put_from(&key, size, &mut source)?;
                    }
                    Content::Special(descriptor, _) => {
                        let why = format!("event {id} is special ({descriptor:02x}), not bytes");
                        return Err(Error::Invalid(why));
                    }
                }
                self.progress.events += 1;
                self.progress.bytes += size;
                next = id.next();
            }
            (self.report)(self.progress);
        }
        tree.finish()
    }
}
