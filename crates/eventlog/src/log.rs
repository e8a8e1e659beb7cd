//! One log under one prefix: its bounds, and the append in a transaction that the caller owns.
//!
//! An event exists if and only if its id is between the first that is kept and `latest`. Appending
//! reads `latest` and the writer fence, puts the records and moves `latest`, all in one
//! transaction; two writers that race conflict on `latest`, and the loser finds its id taken.
//!
//! Nothing here begins or commits a transaction. [`crate::Writer`] does, and takes events that are
//! larger than one.

use kumiko_base::limits::{TXN_BYTES_MAX, VALUE_BYTES_MAX};
use kumiko_kv::{Flow, Read, Scan, Txn};

use crate::fence::{Fence, Guard};
use crate::key::{self, Keys, Record};
use crate::read::Seen;
use crate::{Error, EventId, Point};

/// The most that the events of one append may have together, keys included. Longer events are
/// streamed, longer batches are cut by the caller.
pub const BATCH_BYTES_MAX: usize = 8_000_000;
/// The longest event.
pub const EVENT_BYTES_MAX: u64 = 1 << 32;
/// What is added per record when a batch is measured: the longest prefix of a point and the
/// longest key behind it.
const RECORD_BYTES: usize = 64;

const _: () = {
    assert!(BATCH_BYTES_MAX + 1_000_000 < TXN_BYTES_MAX);
};

/// How events are cut. The defaults are right except in tests of the cutting itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The longest event that is stored whole, and the size of a fragment.
    pub fragment: usize,
    /// The most that one transaction of a streamed event writes.
    pub body: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { fragment: VALUE_BYTES_MAX, body: BATCH_BYTES_MAX }
    }
}

/// Which events exist: from `first` to `latest`, both included; none if `latest` is before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first event that is kept.
    pub first: EventId,
    /// The latest event.
    pub latest: EventId,
}

impl Bounds {
    /// How many events there are.
    pub fn count(self) -> u64 {
        (self.latest.get() + 1).saturating_sub(self.first.get())
    }

    /// Whether the event is there.
    pub fn contains(self, id: EventId) -> bool {
        self.first <= id && id <= self.latest
    }
}

/// One event to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The event, or the special record in its place.
    pub bytes: &'a [u8],
    /// 0 for an event; else the descriptor of a special record that replaces one.
    pub descriptor: u8,
    /// The hour since 1970 in which the event counts in the statistics; 0 counts nowhere.
    pub hour: u32,
}

impl<'a> Item<'a> {
    /// An event.
    pub fn event(bytes: &'a [u8]) -> Item<'a> {
        Item { bytes, descriptor: 0, hour: 0 }
    }

    /// A special record in place of an event.
    pub fn special(descriptor: u8, bytes: &'a [u8]) -> Item<'a> {
        Item { bytes, descriptor, hour: 0 }
    }

    /// Counts it in the hour of this time, in ms since 1970.
    pub fn at_ms(mut self, time_ms: u64) -> Item<'a> {
        self.hour = u32::try_from(time_ms / 3_600_000).unwrap_or(0);
        self
    }
}

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The id of the last event of the batch.
    pub last: EventId,
    /// How many events were written now; the others were there already with the same bytes.
    pub fresh: u64,
}

/// One log under one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub(crate) keys: Keys,
    pub(crate) latest_key: Vec<u8>,
    pub(crate) writer_key: Vec<u8>,
    pub(crate) sizes: Sizes,
}

impl Log {
    /// The log whose keys begin with `prefix`. No other key of the store may begin with it.
    pub fn new(prefix: impl Into<Vec<u8>>) -> Log {
        Log::with_keys(Keys::new(prefix.into()))
    }

    pub(crate) fn with_keys(keys: Keys) -> Log {
        let (latest_key, writer_key) = (keys.meta(key::META_LATEST), keys.meta(key::META_WRITER));
        Log { keys, latest_key, writer_key, sizes: Sizes::default() }
    }

    /// The log of a point.
    pub fn of(point: Point) -> Log {
        Log::new(point.prefix())
    }

    /// The same log, whose events are cut in another way from now on. Readers need not know.
    pub fn with_sizes(mut self, sizes: Sizes) -> Log {
        assert!(0 < sizes.fragment, "a fragment holds something");
        assert!(sizes.fragment <= VALUE_BYTES_MAX, "a fragment is one value");
        assert!(sizes.body <= BATCH_BYTES_MAX, "a body is one transaction");
        self.sizes = sizes;
        self
    }

    /// The keys of this log.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The key that changes with every append, to be watched.
    pub fn latest_key(&self) -> &[u8] {
        &self.latest_key
    }

    /// Which events exist, for a transaction that must fail if that changes.
    pub fn bounds(&self, txn: &mut dyn Txn, read: Read) -> Result<Bounds, Error> {
        let latest = self.latest(txn, read)?.unwrap_or(EventId::ZERO);
        Ok(Bounds { first: self.first(txn, read)?, latest })
    }

    /// The latest event; `None` if nothing was ever appended.
    pub fn latest(&self, txn: &mut dyn Txn, read: Read) -> Result<Option<EventId>, Error> {
        let value = txn.get(&self.latest_key, read)?;
        value.map(|value| decode_id(&value, "meta/latest")).transpose()
    }

    /// The first event that is kept.
    pub fn first(&self, txn: &mut dyn Txn, read: Read) -> Result<EventId, Error> {
        let value = txn.get(&self.keys.meta(key::META_FIRST), read)?;
        let first = value.map(|value| decode_id(&value, "meta/first")).transpose()?;
        Ok(first.unwrap_or(EventId::FIRST))
    }

    /// Who writes.
    pub fn fence(&self, txn: &mut dyn Txn, read: Read) -> Result<Fence, Error> {
        Fence::decode(txn.get(&self.writer_key, read)?.as_deref())
    }

    /// Refuses a log of another version of the format. A [`crate::Writer`] does this when it opens;
    /// those who append in their own transactions do it once.
    pub fn check_schema(&self, txn: &mut dyn Txn) -> Result<(), Error> {
        let value = txn.get(&self.keys.meta(key::META_SCHEMA), Read::Serializable)?;
        let Some(value) = value else {
            // Legal only while there is nothing that a version could describe.
            return match self.latest(txn, Read::Serializable)? {
                None => Ok(()),
                Some(_) => Err(Error::Schema("the log has events but no schema version".into())),
            };
        };
        let zeros = value.len() <= 8 && value.iter().all(|byte| *byte == 0);
        if value == b"0" || zeros {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(&value[..value.len().min(16)]).into_owned();
        Err(Error::Schema(format!("the log has schema version {shown:?}, this program knows 0")))
    }

    /// Appends `items`, the first of which gets the id `first`.
    ///
    /// Idempotent by content: items that are there already with the same bytes are passed over, so
    /// repeating an append whose result is unknown is harmless.
    ///
    /// # Errors
    ///
    /// `Gap` if `first` leaves out ids, `Fork` if an id is taken by other bytes, `Stale` or `Held`
    /// if `guard` is not the right to write, `TooLarge` beyond [`BATCH_BYTES_MAX`].
    pub fn append(
        &self,
        txn: &mut dyn Txn,
        guard: Guard,
        first: EventId,
        items: &[Item<'_>],
    ) -> Result<Appended, Error> {
        check_items(items)?;
        let latest = self.latest(txn, Read::Serializable)?;
        let fence = self.fence(txn, Read::Serializable)?;
        guard.check(&fence)?;
        let latest = match latest {
            Some(latest) => latest,
            None => self.begin_log(txn)?,
        };
        let last = first.plus(items.len() as u64 - 1);
        if !first.is_event() || !last.is_event() {
            return Err(Error::Invalid(format!("{first} to {last} are not ids of events")));
        }
        if latest.next() < first {
            return Err(Error::Gap { expected: latest.next(), given: first });
        }
        let known = (latest.next().get() - first.get()).min(items.len() as u64) as usize;
        if known != 0 {
            self.compare(txn, first, &items[..known])?;
        }
        let fresh = &items[known..];
        if !fresh.is_empty() {
            if fence.body != EventId::ZERO {
                self.clear_body(txn, latest, &fence)?;
            }
            self.put_items(txn, latest.next(), fresh)?;
            txn.put(&self.latest_key, &last.get().to_be_bytes())?;
        }
        Ok(Appended { last, fresh: fresh.len() as u64 })
    }

    /// Makes an empty log begin at `first` instead of 1, for a history whose start is elsewhere.
    pub fn start_at(&self, txn: &mut dyn Txn, guard: Guard, first: EventId) -> Result<(), Error> {
        if !first.is_event() {
            return Err(Error::Invalid(format!("{first} is not the id of an event")));
        }
        let fence = self.fence(txn, Read::Serializable)?;
        guard.check(&fence)?;
        let bounds = self.bounds(txn, Read::Serializable)?;
        if bounds == (Bounds { first, latest: first.prior() }) {
            return Ok(());
        }
        if self.latest(txn, Read::Serializable)?.is_some() {
            return Err(Error::Exists(format!("the log has events up to {}", bounds.latest)));
        }
        self.begin_log(txn)?;
        txn.put(&self.keys.meta(key::META_FIRST), &first.get().to_be_bytes())?;
        txn.put(&self.latest_key, &first.prior().get().to_be_bytes())?;
        Ok(())
    }

    /// The first append of all: nothing may be there, and the version is written down.
    pub(crate) fn begin_log(&self, txn: &mut dyn Txn) -> Result<EventId, Error> {
        self.check_schema(txn)?;
        let mut found = None;
        txn.visit(&Scan::new(self.keys.events()).rows(1), &mut |key, _| {
            found = self.keys.unpack(key).map(Record::id).or(Some(EventId::ZERO));
            Flow::Stop
        })?;
        let fence = self.fence(txn, Read::Serializable)?;
        match found {
            // What a first event that was never finished left behind.
            Some(id) if fence.body != EventId::ZERO && fence.body <= id => {}
            Some(id) => return Err(Error::corrupt(id, "there are records but no meta/latest")),
            None => {}
        }
        txn.put(&self.keys.meta(key::META_SCHEMA), b"0")?;
        Ok(EventId::ZERO)
    }

    /// Removes what an event that was never finished left behind `latest`.
    pub(crate) fn clear_body(
        &self,
        txn: &mut dyn Txn,
        latest: EventId,
        fence: &Fence,
    ) -> Result<(), Error> {
        txn.clear(&self.keys.ids(latest.next(), EventId::MAX))?;
        let fence = Fence { body: EventId::ZERO, ..fence.clone() };
        txn.put(&self.writer_key, &fence.encode())?;
        Ok(())
    }

    /// Whether the stored events from `first` on are `items`.
    fn compare(&self, txn: &mut dyn Txn, first: EventId, items: &[Item<'_>]) -> Result<(), Error> {
        let kept = self.first(txn, Read::Serializable)?;
        if first < kept {
            return Err(Error::Truncated { id: first, first: kept });
        }
        let hold_max = items.iter().map(|item| item.bytes.len()).max().unwrap_or(0);
        let mut fork = None;
        let last = first.plus(items.len() as u64).prior();
        self.visit(txn, first, last, hold_max, &mut |id, seen| {
            let item = &items[(id.get() - first.get()) as usize];
            let same = match seen {
                Seen::Event(bytes) => item.descriptor == 0 && bytes == item.bytes,
                Seen::Special(descriptor, bytes) => {
                    item.descriptor == descriptor && bytes == item.bytes
                }
                Seen::Large(_) => false,
            };
            if same {
                return Flow::Go;
            }
            fork = Some(id);
            Flow::Stop
        })?;
        fork.map_or(Ok(()), |id| Err(Error::Fork { id }))
    }

    fn put_items(
        &self,
        txn: &mut dyn Txn,
        first: EventId,
        items: &[Item<'_>],
    ) -> Result<(), Error> {
        let mut key = Vec::with_capacity(self.keys.prefix().len() + 26);
        let mut id = first;
        let mut tally = Tally::default();
        for item in items {
            if item.descriptor != 0 {
                self.keys.record_into(Record::Special(id, item.descriptor), &mut key);
                txn.put(&key, item.bytes)?;
            } else if item.bytes.len() <= self.sizes.fragment {
                self.keys.record_into(Record::Whole(id), &mut key);
                txn.put(&key, item.bytes)?;
            } else {
                let size = item.bytes.len() as u64;
                for (index, fragment) in item.bytes.chunks(self.sizes.fragment).enumerate() {
                    let record = match index as u64 {
                        0 => Record::First(id, size),
                        index => Record::Fragment(id, index),
                    };
                    self.keys.record_into(record, &mut key);
                    txn.put(&key, fragment)?;
                }
            }
            if item.hour != 0 && item.hour != tally.hour {
                tally.put(self, txn)?;
                tally = Tally { hour: item.hour, ..Tally::default() };
            }
            if item.hour != 0 {
                tally.events += 1;
                tally.bytes += item.bytes.len() as u64;
            }
            id = id.next();
        }
        tally.put(self, txn)
    }
}

/// What was appended in one hour.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) hour: u32,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl Tally {
    /// Adds it to what is stored, without reading.
    pub(crate) fn put(&self, log: &Log, txn: &mut dyn Txn) -> Result<(), Error> {
        if self.hour == 0 || self.events == 0 {
            return Ok(());
        }
        for (what, amount) in [(b'n', self.events), (b's', self.bytes)] {
            let name = [key::META_HOUR, &self.hour.to_be_bytes(), &[what]].concat();
            txn.add(&log.keys.meta(&name), amount as i64)?;
        }
        Ok(())
    }
}

/// An id as metadata holds it.
pub(crate) fn decode_id(value: &[u8], name: &str) -> Result<EventId, Error> {
    let number: Option<[u8; 8]> = value.try_into().ok();
    number
        .and_then(|number| EventId::new(u64::from_be_bytes(number)))
        .ok_or_else(|| Error::corrupt(EventId::ZERO, format!("{name} is not an id")))
}

fn check_items(items: &[Item<'_>]) -> Result<(), Error> {
    let mut size = 0;
    for item in items {
        let fragments = item.bytes.len() / VALUE_BYTES_MAX + 1;
        size += item.bytes.len() + fragments * RECORD_BYTES;
        if item.descriptor != 0 {
            if item.descriptor & 1 == 0 || crate::machine::is_note(item.descriptor) {
                let why = format!("descriptor {:02x} does not replace an event", item.descriptor);
                return Err(Error::Invalid(why));
            }
            if VALUE_BYTES_MAX < item.bytes.len() {
                let (size, size_max) = (item.bytes.len() as u64, VALUE_BYTES_MAX as u64);
                return Err(Error::TooLarge { what: "special record", size, size_max });
            }
        }
    }
    if items.is_empty() {
        return Err(Error::Invalid("an append needs at least one event".into()));
    }
    if BATCH_BYTES_MAX < size {
        let (size, size_max) = (size as u64, BATCH_BYTES_MAX as u64);
        return Err(Error::TooLarge { what: "append", size, size_max });
    }
    Ok(())
}
