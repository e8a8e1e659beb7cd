//! The subspace form of schema 0: all points side by side in one keyspace, for exchange only.
//!
//! ```text
//! 00 point (LE, without zeros at the end) event or metadata
//! ```
//!
//! The form has a fault that cannot be cured in it: a sponsor's bytes begin those of all points
//! below it, so a point's keys can lie between another's events. Hence the guards: keys are read
//! by their exact shape, special records and ids from 2^56 on do not exist here, which leaves every
//! key one reading; every scan is bounded by ids up to the latest; metadata is read by its exact
//! key; nothing is cleared; and a point is not written beside another one whose live events it
//! could get between. See [`hazards`].

use kumiko_kv::{Engine, Flow, Read, Scan, retry};

use crate::key::{self, Keys, ROOT, Record};
use crate::log::{Item, Log};
use crate::read::{Content, EventReader, PageMax};
use crate::writer::retry_all;
use crate::{Error, EventId, Point, Writer};

/// The last id of the subspace form: above, an event could be read as another point's.
pub const ID_LAST: EventId = match EventId::new((1 << 56) - 1) {
    Some(id) => id,
    None => panic!("it is below the last id of all"),
};

/// Interleaving that begins at an id from here on is harmless: no ship gets that far.
pub const HAZARD_CEILING: u64 = 1 << 40;

/// A key of the subspace form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A data record.
    Record(Record),
    /// `meta/latest`.
    Latest,
    /// `meta/schema-version`.
    Schema,
}

/// The log of a point in its subspace form.
fn log_of(point: Point) -> Log {
    Log::with_keys(Keys::subspace(&point.subspace(), ID_LAST))
}

/// The key of a row.
///
/// # Errors
///
/// `Invalid` for what the form does not have: special records and ids from 2^56 on.
pub fn pack(point: Point, row: Row) -> Result<Vec<u8>, Error> {
    let log = log_of(point);
    match row {
        Row::Latest => Ok(log.latest_key().to_vec()),
        Row::Schema => Ok(log.keys().meta(key::META_SCHEMA)),
        Row::Record(record) => {
            let key = log.keys().record(record);
            let found = log.keys().unpack(&key);
            let why = || Error::Invalid(format!("{record:?} has no subspace form"));
            found.map(|_| key).ok_or_else(why)
        }
    }
}

/// The one reading of a key; `None` if it has none.
pub fn unpack(key: &[u8]) -> Option<(Point, Row)> {
    let (&ROOT, rest) = key.split_first()? else { return None };
    let mut readings = (0..=16.min(rest.len())).filter_map(|size| {
        let (bytes, rest) = rest.split_at(size);
        // The last byte of a point's form is not zero, so every split names another point.
        if bytes.last() == Some(&0) {
            return None;
        }
        let number = bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        let row = match rest {
            key::META_LATEST => Row::Latest,
            key::META_SCHEMA => Row::Schema,
            _ => Row::Record(Keys::subspace(bytes, ID_LAST).unpack(key)?),
        };
        Some((Point::new(number), row))
    });
    let reading = readings.next()?;
    readings.next().is_none().then_some(reading)
}

/// Two points of which the second's keys lie between the first's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The point whose bytes begin the other's.
    pub above: Point,
    /// The point whose keys lie inside.
    pub below: Point,
    /// The event of `above` before or at which they lie.
    pub first_id: u64,
}

/// Every pair of points that interleave at an id below `ceiling`. None: the points are unambiguous.
pub fn hazards(points: &[Point], ceiling: u64) -> Vec<Hazard> {
    let mut found = Vec::new();
    for above in points {
        for below in points.iter().filter(|below| *below != above) {
            let (above_bytes, below_bytes) = (above.subspace(), below.subspace());
            let Some(tail) = below_bytes.strip_prefix(above_bytes.as_slice()) else { continue };
            let mut first = [0; 8];
            for (to, from) in first.iter_mut().zip(tail) {
                *to = *from;
            }
            let first_id = u64::from_be_bytes(first);
            if first_id < ceiling {
                found.push(Hazard { above: *above, below: *below, first_id });
            }
        }
    }
    found
}

/// Copies the log of `point` from the subspace form in `from` to the log of `writer`, after what is
/// there already, which must be the same. Returns the latest event.
///
/// # Errors
///
/// `Corrupt` if a foreign key lies between the events: it is never passed over.
pub fn import(
    from: &dyn Engine,
    point: Point,
    engine: &dyn Engine,
    writer: &Writer,
) -> Result<EventId, Error> {
    let source = log_of(point);
    source.check_schema(from.begin()?.as_mut())?;
    let latest = |engine: &dyn Engine, log: &Log| -> Result<EventId, Error> {
        Ok(log.latest(engine.begin()?.as_mut(), Read::Snapshot)?.unwrap_or(EventId::ZERO))
    };
    let last = latest(from, &source)?;
    let mut next = latest(engine, writer.log())?.max(EventId::FIRST);
    while next <= last {
        let page = source.page(from.begin()?.as_mut(), next, PageMax::default())?;
        let mut batch: Vec<Vec<u8>> = Vec::new();
        let first = next;
        for (id, content) in page.events {
            match content {
                Content::Event(event) => batch.push(event),
                Content::Special(..) => return Err(Error::corrupt(id, "a special record")),
                Content::Large(_) if batch.is_empty() => {
                    let mut large = EventReader::new(&source, id).stream(from);
                    writer.append_from(engine, id, &mut large, 0)?;
                    next = id.next();
                    break;
                }
                Content::Large(_) => break,
            }
            next = id.next();
        }
        let items: Vec<Item<'_>> = batch.iter().map(|event| Item::event(event)).collect();
        if !items.is_empty() {
            writer.append(engine, first, &items)?;
        }
    }
    Ok(last)
}

/// Copies a log into the subspace form in `to`, beside the `registered` points that are there.
///
/// # Errors
///
/// `Invalid` if the point would interleave with a registered one, if the log was truncated, or if
/// it holds special records: the form has no place for these.
pub fn export(
    engine: &dyn Engine,
    log: &Log,
    point: Point,
    to: &dyn Engine,
    registered: &[Point],
) -> Result<EventId, Error> {
    let mut points = registered.to_vec();
    points.retain(|other| *other != point);
    points.push(point);
    if let Some(it) =
        hazards(&points, HAZARD_CEILING).iter().find(|it| it.above == point || it.below == point)
    {
        let Hazard { above, below, first_id } = it;
        let why = format!("keys of {below} would lie at event {first_id} of {above}");
        return Err(Error::Invalid(why));
    }
    let target = log_of(point);
    let bounds = log.bounds(engine.begin()?.as_mut(), Read::Snapshot)?;
    if EventId::FIRST < bounds.first || ID_LAST < bounds.latest {
        return Err(Error::Invalid("a truncated log has no subspace form".into()));
    }
    let mut next = {
        let mut txn = to.begin()?;
        target.check_schema(txn.as_mut())?;
        target.latest(txn.as_mut(), Read::Snapshot)?.unwrap_or(EventId::ZERO).next()
    };
    while next <= bounds.latest {
        next = copy_some(engine, log, to, &target, next)?;
    }
    Ok(bounds.latest)
}

/// The most that one transaction of an export holds.
const COPY_BYTES: usize = 4_000_000;

/// Copies records from the event `next` on, and moves `latest` past those that are whole.
fn copy_some(
    engine: &dyn Engine,
    log: &Log,
    to: &dyn Engine,
    target: &Log,
    next: EventId,
) -> Result<EventId, Error> {
    let bounds = log.bounds(engine.begin()?.as_mut(), Read::Snapshot)?;
    let mut range = Some(log.keys().ids(next, bounds.latest));
    let mut machine = crate::machine::Machine::new(next);
    // Records of one large event take several turns; `latest` moves when it is whole.
    while let (Some(part), true) = (range.take(), machine.expected() == next) {
        let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut wrong = None;
        let scan = Scan::new(part).bytes(COPY_BYTES).rows(20_000).snapshot();
        let rest = engine.begin()?.visit(&scan, &mut |key, value| {
            let record = log.keys().unpack(key);
            match record.map(|record| (record, machine.step(record, value.len()))) {
                Some((Record::Special(id, _), _)) => wrong = Some((id, "a special record")),
                Some((record, Ok(_))) => rows.push((target.keys().record(record), value.to_vec())),
                Some((record, Err(damage))) => wrong = Some((record.id(), damage.words())),
                None => wrong = Some((machine.expected(), "a foreign key")),
            }
            if wrong.is_some() { Flow::Stop } else { Flow::Go }
        })?;
        if let Some((id, why)) = wrong {
            return Err(Error::Invalid(format!("event {id} has no subspace form: {why}")));
        }
        let done = machine.expected().prior();
        retry::run(to, retry_all(), |txn| {
            txn.put(&target.keys().meta(key::META_SCHEMA), b"0")?;
            for (key, value) in &rows {
                txn.put(key, value)?;
            }
            if next <= done {
                txn.put(target.latest_key(), &done.get().to_be_bytes())?;
            }
            Ok::<_, Error>(())
        })?;
        range = rest;
    }
    if machine.expected() == next {
        return Err(Error::corrupt(next, "the event is missing"));
    }
    Ok(machine.expected())
}
