//! Verifying a log: every key under its prefix is looked at, and nothing is taken on trust.

use std::collections::BTreeMap;
use std::fmt;

use kumiko_kv::{Engine, Flow, Read, Scan};

use crate::fence::Fence;
use crate::key::{self, Record};
use crate::log::{Bounds, Log, decode_id};
use crate::machine::{Damage, Machine, Piece, is_note};
use crate::snapshot::{self, Head, SNAPSHOT};
use crate::{Error, EventId};

/// How many findings a report names; the rest is counted.
pub const FINDINGS_MAX: usize = 1_000;

/// What one transaction looks at.
const STEP_BYTES: usize = 8_000_000;

/// Something that should not be so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// An event that should be there is damaged or missing.
    Event {
        /// The first event concerned.
        id: EventId,
        /// What is wrong.
        damage: Damage,
    },
    /// A key that is not of the format.
    Foreign(Vec<u8>),
    /// The schema version is missing or another one.
    Schema(String),
    /// There are records but no latest id.
    NoLatest,
    /// Metadata that cannot be read.
    Meta(&'static str),
    /// Records after the latest event: an append under way, or what a dead writer left.
    After(EventId),
    /// Records before the first event that is kept: a truncation that was interrupted.
    Before(EventId),
    /// A snapshot whose bytes are missing or wrong.
    Snapshot(EventId),
    /// A blob that no snapshot uses: one under way, or what a dead writer left.
    Blob(u64),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Event { id, damage } => write!(f, "event {id}: {}", damage.words()),
            Finding::Foreign(key) => write!(f, "foreign key {}", crate::hex(key)),
            Finding::Schema(why) => f.write_str(why),
            Finding::NoLatest => f.write_str("there are records but no meta/latest"),
            Finding::Meta(name) => write!(f, "{name} cannot be read"),
            Finding::After(id) => write!(f, "records of event {id}, which is after the latest"),
            Finding::Before(id) => write!(f, "records of event {id}, which was truncated"),
            Finding::Snapshot(id) => write!(f, "the snapshot at event {id} is damaged"),
            Finding::Blob(number) => write!(f, "blob {number} belongs to no snapshot"),
        }
    }
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first event that is kept.
    pub first: EventId,
    /// The latest event.
    pub latest: EventId,
    /// The events that were seen whole.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Every record that was looked at.
    pub records: u64,
    /// The finished snapshots.
    pub snapshots: u64,
    /// What is wrong, the first [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// How much is wrong.
    pub findings_count: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings_count == 0
    }

    /// The first event that is damaged or missing.
    pub fn damaged(&self) -> Option<EventId> {
        let id = |finding: &Finding| match finding {
            Finding::Event { id, .. } => Some(*id),
            _ => None,
        };
        self.findings.iter().filter_map(id).min()
    }

    fn find(&mut self, finding: Finding) {
        // Records of one piece of debris are one finding.
        if self.findings.last() == Some(&finding) {
            return;
        }
        self.findings_count += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

/// Looks at every key of the log. `progress` is told after each step which event was reached.
///
/// # Errors
///
/// Only those of the engine: what is wrong with the log is in the report.
pub fn verify(
    engine: &dyn Engine,
    log: &Log,
    progress: &mut dyn FnMut(EventId, EventId),
) -> Result<Report, Error> {
    let mut walk = Walk::begin(engine, log)?;
    let mut range = Some(log.keys().all());
    while let Some(part) = range {
        let mut txn = engine.begin()?;
        if let Ok(first) = log.first(txn.as_mut(), Read::Snapshot) {
            walk.truncated(first);
        }
        let scan = Scan::new(part).bytes(STEP_BYTES).snapshot();
        range = txn.visit(&scan, &mut |key, value| {
            walk.row(key, value);
            Flow::Go
        })?;
        progress(walk.machine.expected().prior(), walk.bounds.latest);
    }
    Ok(walk.finish())
}

struct Blob {
    head: Option<Head>,
    next: u64,
    size: u64,
    crc: crc32fast::Hasher,
    broken: bool,
}

struct Walk<'a> {
    log: &'a Log,
    bounds: Bounds,
    machine: Machine,
    /// The event whose records are passed over, because its damage was reported.
    passed: EventId,
    open_bytes: u64,
    blobs: BTreeMap<u64, Blob>,
    notes: BTreeMap<EventId, Option<(u64, u64, u32)>>,
    report: Report,
}

impl<'a> Walk<'a> {
    fn begin(engine: &dyn Engine, log: &'a Log) -> Result<Walk<'a>, Error> {
        let mut txn = engine.begin()?;
        let mut report = Report::default();
        let mut get = |name| txn.get(&log.keys().meta(name), Read::Snapshot);
        let latest = get(key::META_LATEST)?.map(|value| decode_id(&value, "meta/latest"));
        let first = get(key::META_FIRST)?.map(|value| decode_id(&value, "meta/first"));
        if Fence::decode(get(key::META_WRITER)?.as_deref()).is_err() {
            report.find(Finding::Meta("meta/writer"));
        }
        match log.check_schema(txn.as_mut()) {
            Ok(()) => {}
            Err(Error::Kv(error)) => return Err(Error::Kv(error)),
            Err(error @ Error::Schema(_)) => report.find(Finding::Schema(error.to_string())),
            Err(_) => {}
        }
        let mut seen = None;
        txn.visit(&Scan::new(log.keys().events()).rows(1).snapshot(), &mut |_, _| {
            seen = Some(());
            Flow::Stop
        })?;
        let fence = log.fence(txn.as_mut(), Read::Snapshot).unwrap_or_default();
        let mut known = |id: Option<Result<EventId, Error>>, missing, name| match id {
            Some(Ok(id)) => id,
            Some(Err(_)) => {
                report.find(Finding::Meta(name));
                EventId::ZERO
            }
            None => missing,
        };
        let no_latest = latest.is_none() && seen.is_some() && fence.body == EventId::ZERO;
        // With the latest id unknown, every event counts as one that should be there.
        let unknown = if no_latest { EventId::MAX } else { EventId::ZERO };
        let bounds = Bounds {
            first: known(first, EventId::FIRST, "meta/first").max(EventId::FIRST),
            latest: known(latest, unknown, "meta/latest"),
        };
        if no_latest {
            report.find(Finding::NoLatest);
        }
        (report.first, report.latest) = (bounds.first, bounds.latest);
        Ok(Walk {
            log,
            bounds,
            machine: Machine::new(bounds.first),
            passed: EventId::ZERO,
            open_bytes: 0,
            blobs: BTreeMap::new(),
            notes: BTreeMap::new(),
            report,
        })
    }

    /// A truncation overtook the walk: what it took need not be there any more.
    fn truncated(&mut self, first: EventId) {
        if self.bounds.first < first {
            self.bounds.first = first;
            self.report.first = first;
            if self.machine.expected() < first {
                self.machine.skip_to(first);
            }
        }
    }

    fn row(&mut self, key: &[u8], value: &[u8]) {
        self.report.records += 1;
        match self.log.keys().strip(key).and_then(<[u8]>::split_first) {
            Some((&key::ROOT, rest)) if rest.starts_with(key::META) => {}
            Some((&key::ROOT, rest)) => match Record::unpack(rest) {
                Some(record) => self.record(record, value),
                None => self.report.find(Finding::Foreign(key.to_vec())),
            },
            Some((&key::BLOB_HEAD, rest)) if rest.len() == 8 => self.head(rest, value),
            Some((&key::BLOB_PIECE, rest)) if rest.len() == 16 => self.piece(rest, value),
            _ => self.report.find(Finding::Foreign(key.to_vec())),
        }
    }

    fn record(&mut self, record: Record, value: &[u8]) {
        let id = record.id();
        let note = matches!(record, Record::Special(_, descriptor) if is_note(descriptor));
        if note && id <= self.bounds.latest && self.bounds.first.prior() <= id {
            if record == Record::Special(id, SNAPSHOT) {
                self.notes.insert(id, snapshot::decode_note(value));
            }
        } else if id < self.bounds.first {
            return self.report.find(Finding::Before(id));
        } else if self.bounds.latest < id {
            return self.report.find(Finding::After(id));
        }
        if id == self.passed {
            return;
        }
        // Twice at most: an event that broke off before this record, then a gap before it.
        while let Err(damage) = self.step(record, value.len()) {
            let at = match damage {
                Damage::Gap { expected } => expected,
                Damage::Torn => self.machine.expected(),
                _ => id,
            };
            self.report.find(Finding::Event { id: at, damage });
            match damage {
                Damage::Gap { .. } => self.machine.skip_to(id),
                Damage::Torn if at < id => self.machine.skip_to(at.next()),
                _ => {
                    self.passed = id;
                    self.machine.skip_to(id.next().max(self.machine.expected()));
                    return;
                }
            }
        }
    }

    fn step(&mut self, record: Record, size: usize) -> Result<(), Damage> {
        match self.machine.step(record, size)? {
            Piece::Whole | Piece::Instead(_) => {
                self.report.events += 1;
                self.report.bytes += size as u64;
            }
            Piece::Open(_) => self.open_bytes = size as u64,
            Piece::More => self.open_bytes += size as u64,
            Piece::Last => {
                let before = if matches!(record, Record::First(..)) { 0 } else { self.open_bytes };
                self.report.events += 1;
                self.report.bytes += before + size as u64;
            }
            Piece::Note(_) => {}
        }
        Ok(())
    }

    fn blob(&mut self, number: &[u8]) -> &mut Blob {
        let number = number.try_into().map_or(u64::MAX, u64::from_be_bytes);
        self.blobs.entry(number).or_insert_with(|| Blob {
            head: None,
            next: 0,
            size: 0,
            crc: crc32fast::Hasher::new(),
            broken: false,
        })
    }

    fn head(&mut self, number: &[u8], value: &[u8]) {
        let head = Head::decode(value);
        let blob = self.blob(number);
        blob.broken = head.is_none();
        blob.head = head;
    }

    fn piece(&mut self, place: &[u8], value: &[u8]) {
        let (number, index) = place.split_at(8);
        let index = index.try_into().map_or(u64::MAX, u64::from_be_bytes);
        let blob = self.blob(number);
        blob.broken = blob.broken || index != blob.next;
        blob.next += 1;
        blob.size += value.len() as u64;
        blob.crc.update(value);
    }

    fn finish(mut self) -> Report {
        let end = if self.bounds.latest == EventId::MAX {
            // The latest id is missing, so the events end where they end.
            self.machine.expected()
        } else {
            self.bounds.latest.next()
        };
        if let Err(damage) = self.machine.finish(end) {
            let id = self.machine.expected();
            self.report.find(Finding::Event { id, damage });
            if damage == Damage::Torn && self.machine.expected().next() < end {
                let expected = id.next();
                self.report.find(Finding::Event { id: expected, damage: Damage::Gap { expected } });
            }
        }
        if self.bounds.latest == EventId::MAX {
            self.report.latest = self.machine.expected().prior();
        }
        self.finish_blobs();
        self.report
    }

    fn finish_blobs(&mut self) {
        for (number, blob) in std::mem::take(&mut self.blobs) {
            let Some(head) = blob.head.filter(|head| head.done) else {
                self.report.find(Finding::Blob(number));
                continue;
            };
            let noted = self.notes.remove(&head.id);
            let truncated = head.id < self.bounds.first.prior();
            if truncated {
                self.report.find(Finding::Blob(number));
                continue;
            }
            let whole = !blob.broken
                && blob.size == head.size
                && blob.crc.finalize() == head.crc
                && noted == Some(Some((number, head.size, head.crc)));
            if whole {
                self.report.snapshots += 1;
            } else {
                self.report.find(Finding::Snapshot(head.id));
            }
        }
        for id in std::mem::take(&mut self.notes).into_keys() {
            self.report.find(Finding::Snapshot(id));
        }
    }
}
