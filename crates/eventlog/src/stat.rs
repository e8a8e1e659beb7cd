//! What fills a log: events by size and by the hour in which they came.

use std::collections::BTreeMap;

use kumiko_kv::{Engine, Flow, Read, Scan};

use crate::key;
use crate::log::{Bounds, Log};
use crate::read::Seen;
use crate::{Error, EventId};

/// The upper bounds of the size classes, in bytes, both included; one more class has the rest.
pub const CLASS_BYTES: [u64; 10] =
    [64, 128, 256, 1 << 10, 4 << 10, 16 << 10, 100_000, 1 << 20, 16 << 20, 256 << 20];

/// How many of the largest events are named.
pub const LARGEST_MAX: usize = 10;

/// How many events one transaction looks at.
const STEP_EVENTS: u64 = 100_000;

/// Some events and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub events: u64,
    /// Their bytes, without keys.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.events += 1;
        self.bytes += bytes;
    }
}

/// What fills a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Which events there are.
    pub bounds: Bounds,
    /// All of them.
    pub total: Amount,
    /// Those that are special records.
    pub specials: Amount,
    /// By size: one class per bound of [`CLASS_BYTES`], then the larger ones.
    pub classes: [Amount; CLASS_BYTES.len() + 1],
    /// By hour since 1970, as far as the appends said when they happened. Truncation does not
    /// change it: it tells what came, not what is left.
    pub hours: BTreeMap<u32, Amount>,
    /// The largest events, largest first.
    pub largest: Vec<(EventId, u64)>,
    /// The bytes of all finished snapshots.
    pub snapshot_bytes: u64,
}

/// Reads through the keys of a log. `progress` is told after each step how many events of how many
/// were seen.
pub fn stat(
    engine: &dyn Engine,
    log: &Log,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Stat, Error> {
    let mut txn = engine.begin()?;
    let bounds = log.bounds(txn.as_mut(), Read::Snapshot)?;
    let mut stat = Stat {
        bounds,
        total: Amount::default(),
        specials: Amount::default(),
        classes: Default::default(),
        hours: BTreeMap::new(),
        largest: Vec::new(),
        snapshot_bytes: log.snapshots(txn.as_mut())?.iter().map(|it| it.size).sum(),
    };
    for (key, value) in txn.scan(&Scan::new(log.keys().metas(key::META_HOUR)).snapshot())?.rows {
        let tail = log.keys().strip(&key).and_then(|rest| rest.get(1 + key::META_HOUR.len()..));
        let (Some(&[a, b, c, d, what]), Ok(value)) = (tail, value.try_into()) else {
            return Err(Error::corrupt(EventId::ZERO, "an hour of the statistics is damaged"));
        };
        let amount = stat.hours.entry(u32::from_be_bytes([a, b, c, d])).or_default();
        match what {
            b'n' => amount.events = u64::from_le_bytes(value),
            _ => amount.bytes = u64::from_le_bytes(value),
        }
    }
    drop(txn);
    let mut next = bounds.first;
    while next <= bounds.latest {
        let mut txn = engine.begin()?;
        // A truncation may overtake us; what it took is no longer of interest.
        next = next.max(log.first(txn.as_mut(), Read::Snapshot)?);
        let to = bounds.latest.min(next.plus(STEP_EVENTS));
        next = log.visit(txn.as_mut(), next, to, 0, &mut |id, seen| {
            stat.count(id, seen);
            Flow::Go
        })?;
        progress(next.get() - bounds.first.get(), bounds.count());
    }
    Ok(stat)
}

impl Stat {
    fn count(&mut self, id: EventId, seen: Seen<'_>) {
        let size = match seen {
            Seen::Event(bytes) => bytes.len() as u64,
            Seen::Special(_, bytes) => {
                self.specials.add(bytes.len() as u64);
                bytes.len() as u64
            }
            Seen::Large(size) => size,
        };
        self.total.add(size);
        self.classes[CLASS_BYTES.partition_point(|bound| *bound < size)].add(size);
        let least = self.largest.last().map_or(0, |(_, size)| *size);
        if self.largest.len() < LARGEST_MAX || least < size {
            let place = self.largest.partition_point(|(_, other)| size <= *other);
            self.largest.insert(place, (id, size));
            self.largest.truncate(LARGEST_MAX);
        }
    }
}
