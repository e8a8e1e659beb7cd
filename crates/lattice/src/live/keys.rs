//! What works on any key: existence, expiry, names, walks, eviction.

use super::item::{Holds, Item, Type};
use super::{Below, Change, Db, Error, REPLICATED_KEY_BYTES_MAX};

/// What OBJECT and MEMORY tell about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its type.
    pub kind: Type,
    /// The name of its form, as Redis calls it.
    pub encoding: &'static str,
    /// Seconds since its last use; zero when uses are counted.
    pub idle_s: u64,
    /// How often it was used, on a logarithmic scale, when uses are counted.
    pub uses: u8,
    /// Bytes it takes, estimated for large values.
    pub bytes: usize,
}

/// What a rename did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// The key has its new name.
    Done,
    /// The new name was taken and was not to be replaced.
    Taken,
}

/// The use counter of Redis: eight bits that grow ever slower, and fall by one a minute.
pub(crate) fn count_use(old: u32, now_ms: u64) -> u32 {
    let minute = (now_ms / 60_000) as u32 & 0xFFFF;
    let idle = minute.wrapping_sub(old >> 8) & 0xFFFF;
    let count = (old & 0xFF).saturating_sub(idle);
    // Without randomness: an increment becomes due each time the clock passes the count's square.
    let grows = count < 255 && (now_ms.is_multiple_of(u64::from(count.saturating_sub(5)) * 10 + 1));
    (minute << 8) | (count + u32::from(grows))
}

impl Db<'_> {
    /// The time of this call.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.shared.hashing.of(key)
    }

    /// Notes a change of this database.
    #[inline]
    pub(crate) fn changed(&mut self, change: &Change<'_>) {
        self.shared.change(self.id, &self.base.name, self.now_ms, change);
        if self.shared.settings.replication {
            let at_ms = self.shared.replay_ms.unwrap_or(self.now_ms);
            self.base.touched.note(at_ms, change);
        }
    }

    /// Notes a write that changes nothing here and yet counts against removals elsewhere.
    #[inline]
    pub(crate) fn repeated(&mut self, change: &Change<'_>) {
        if self.shared.settings.replication {
            if self.shared.settings.journal && self.shared.replay_ms.is_none() {
                self.shared.record(self.id, &self.base.name, self.now_ms, change);
            }
            let at_ms = self.shared.replay_ms.unwrap_or(self.now_ms);
            self.base.touched.note(at_ms, change);
        }
    }

    /// The item of a key that is there now. Expires it if its time has come.
    #[inline]
    pub(crate) fn item(&mut self, hash: u64, key: &[u8]) -> Option<&mut Item> {
        if self.base.next_expiry <= self.now_ms {
            self.expire_if_due(hash, key);
        }
        self.base.table.find_mut(hash, |it| it.key() == key)
    }

    /// As `item`, and counts as a use.
    #[inline]
    pub(crate) fn used(&mut self, hash: u64, key: &[u8]) -> Option<&mut Item> {
        if self.base.next_expiry <= self.now_ms {
            self.expire_if_due(hash, key);
        }
        let item = self.base.table.find_mut(hash, |it| it.key() == key)?;
        let access = self.shared.access(item.access(), self.now_ms);
        item.set_access(access);
        Some(item)
    }

    /// Adds an item under a key that is not there.
    pub(crate) fn insert(&mut self, hash: u64, mut item: Item) {
        let start = if self.shared.settings.count_uses {
            ((self.now_ms / 60_000) as u32 & 0xFFFF) << 8 | 5
        } else {
            (self.now_ms / 1000) as u32 & 0xFF_FFFF
        };
        item.set_access(start);
        self.base.note_expiry(hash, 0, item.expire_ms());
        let hashing = &self.shared.hashing;
        self.base.table.insert(hash, item, |it| hashing.of(it.key()));
    }

    /// Takes an item out, without noting a change.
    pub(crate) fn take(&mut self, hash: u64, key: &[u8]) -> Option<Item> {
        let hashing = &self.shared.hashing;
        let removed = self.base.table.remove(hash, |it| it.key() == key, |it| hashing.of(it.key()));
        if let Some(item) = &removed {
            self.base.note_expiry(hash, item.expire_ms(), 0);
        }
        removed
    }

    /// Refuses a key that could not be replicated.
    pub(crate) fn check_key(&self, what: &'static str, key: &[u8]) -> Result<(), Error> {
        if self.shared.settings.replication && REPLICATED_KEY_BYTES_MAX < key.len() {
            let size_max = REPLICATED_KEY_BYTES_MAX;
            return Err(Error::TooLong { what, size: key.len(), size_max });
        }
        Ok(())
    }

    #[cold]
    fn expire_if_due(&mut self, hash: u64, key: &[u8]) {
        let item = self.base.table.find(hash, |it| it.key() == key);
        if item.is_some_and(|it| it.expire_ms() != 0 && it.expire_ms() <= self.now_ms) {
            self.expire_now(hash, key);
        }
    }

    fn expire_now(&mut self, hash: u64, key: &[u8]) {
        self.take(hash, key);
        self.changed(&Change::Del { key });
        if self.shared.settings.report_expired {
            self.shared.expired.push((self.id, key.into()));
        }
    }

    /// Expires up to `keys_max` keys that are due; returns how many.
    pub(crate) fn expire_due(&mut self, keys_max: usize) -> usize {
        let mut count = 0;
        while count < keys_max {
            let Some(&(due_ms, hash)) = self.base.expiring.first() else { break };
            if self.now_ms < due_ms {
                break;
            }
            let item = self.base.table.find(hash, |it| {
                it.expire_ms() == due_ms && self.shared.hashing.of(it.key()) == hash
            });
            let key: Box<[u8]> = item.expect("every noted expiry has its key").key().into();
            // Two keys may share a hash and a time; the second is noted again.
            self.expire_now(hash, &key);
            let twin = self.base.table.find(hash, |it| {
                it.expire_ms() == due_ms && self.shared.hashing.of(it.key()) == hash
            });
            if twin.is_some() {
                self.base.note_expiry(hash, 0, due_ms);
            }
            count += 1;
        }
        count
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.base.table.len()
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys will expire.
    pub fn expiring(&self) -> usize {
        self.base.expiring.len()
    }

    /// True if the key is there.
    pub fn exists(&mut self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        self.item(hash, key).is_some()
    }

    /// The type of what the key holds.
    pub fn type_of(&mut self, key: &[u8]) -> Option<Type> {
        let hash = self.hash(key);
        self.item(hash, key).map(|it| it.kind())
    }

    /// Counts as a use of the key; true if it is there.
    pub fn touch(&mut self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        self.used(hash, key).is_some()
    }

    /// Deletes a key; true if it was there.
    pub fn del(&mut self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        if self.item(hash, key).is_none() {
            return false;
        }
        self.take(hash, key);
        self.changed(&Change::Del { key });
        true
    }

    /// When the key expires: nothing if it is not there, zero if it never does.
    pub fn expiry_ms(&mut self, key: &[u8]) -> Option<u64> {
        let hash = self.hash(key);
        self.item(hash, key).map(|it| it.expire_ms())
    }

    /// Sets when the key expires; a time that has passed deletes it. False if it is not there.
    pub fn expire_at(&mut self, key: &[u8], at_ms: u64) -> bool {
        let hash = self.hash(key);
        let now_ms = self.now_ms;
        let Some(item) = self.item(hash, key) else { return false };
        if at_ms <= now_ms {
            self.take(hash, key);
            self.changed(&Change::Del { key });
            return true;
        }
        let old_ms = item.expire_ms();
        item.set_expire_ms(at_ms);
        self.base.note_expiry(hash, old_ms, at_ms);
        self.changed(&Change::Expire { key, at_ms });
        true
    }

    /// Makes the key stay for ever; false if it is not there or already does.
    pub fn persist(&mut self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        let Some(item) = self.item(hash, key) else { return false };
        let old_ms = item.expire_ms();
        if old_ms == 0 {
            return false;
        }
        item.set_expire_ms(0);
        self.base.note_expiry(hash, old_ms, 0);
        self.changed(&Change::Expire { key, at_ms: 0 });
        true
    }

    /// Gives a key another name, with its expiry. `replace` takes the place of what had that name.
    ///
    /// # Errors
    ///
    /// `NoKey` if the key is not there; `TooLong` if the new name is too long.
    pub fn rename(&mut self, key: &[u8], to: &[u8], replace: bool) -> Result<Rename, Error> {
        self.check_key("key", to)?;
        let hash = self.hash(key);
        if self.item(hash, key).is_none() {
            return Err(Error::NoKey);
        }
        let to_hash = self.hash(to);
        if !replace && self.item(to_hash, to).is_some() {
            return Ok(Rename::Taken);
        }
        if key == to {
            return Ok(Rename::Done);
        }
        if self.shared.snapshot.is_some() {
            // A running snapshot may have one name behind it and the other before it.
            let (image, expire_ms) = self.image(key).expect("it was found above");
            self.del(key);
            self.put(to, &image, expire_ms)?;
            return Ok(Rename::Done);
        }
        self.rename_raw(key, to);
        self.changed(&Change::Rename { key, to });
        Ok(Rename::Done)
    }

    pub(crate) fn rename_raw(&mut self, key: &[u8], to: &[u8]) {
        let (hash, to_hash) = (self.hash(key), self.hash(to));
        if let Some(item) = self.take(hash, key) {
            self.take(to_hash, to);
            self.insert(to_hash, item.renamed(to));
        }
    }

    /// A random key.
    pub fn random_key(&mut self, below: Below<'_>) -> Option<Vec<u8>> {
        self.base.table.random(below).map(|it| it.key().to_vec())
    }

    /// Walks the keys: calls `visit` for about `count` of them and returns the next cursor, zero at
    /// the end. A key that is there throughout is seen exactly once, whatever else changes.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8], Type)) -> u64 {
        let hashing = &self.shared.hashing;
        let now_ms = self.now_ms;
        self.base.table.scan(
            cursor,
            count,
            |it| hashing.of(it.key()),
            |it| {
                if it.expire_ms() == 0 || now_ms < it.expire_ms() {
                    visit(it.key(), it.kind());
                }
            },
        )
    }

    /// Calls `visit` for every key.
    pub fn each_key(&self, mut visit: impl FnMut(&[u8])) {
        let alive = |it: &&Item| it.expire_ms() == 0 || self.now_ms < it.expire_ms();
        self.base.table.iter().filter(alive).for_each(|it| visit(it.key()));
    }

    /// Deletes every key; returns how many there were.
    pub fn flush(&mut self) -> usize {
        let count = self.len();
        if count == 0 {
            return 0;
        }
        self.flush_raw();
        self.changed(&Change::Flush);
        count
    }

    pub(crate) fn flush_raw(&mut self) {
        self.base.table = super::Table::new();
        self.base.expiring.clear();
        self.base.next_expiry = u64::MAX;
    }

    /// Makes a key look as if it was last used so many seconds ago.
    pub fn set_idle(&mut self, key: &[u8], idle_s: u64) {
        let clock = (self.now_ms / 1000).saturating_sub(idle_s) as u32 & 0xFF_FFFF;
        let (hash, count_uses) = (self.hash(key), self.shared.settings.count_uses);
        if let Some(item) = self.item(hash, key).filter(|_| !count_uses) {
            item.set_access(clock);
        }
    }

    /// Makes a key look as if it was used so often, on the scale of [`Facts::uses`].
    pub fn set_uses(&mut self, key: &[u8], uses: u8) {
        let minute = (self.now_ms / 60_000) as u32 & 0xFFFF;
        let (hash, count_uses) = (self.hash(key), self.shared.settings.count_uses);
        if let Some(item) = self.item(hash, key).filter(|_| count_uses) {
            item.set_access((minute << 8) | u32::from(uses));
        }
    }

    /// What OBJECT and MEMORY tell about a key, which does not count as a use.
    pub fn facts(&mut self, key: &[u8]) -> Option<Facts> {
        let hash = self.hash(key);
        let count_uses = self.shared.settings.count_uses;
        let list_size = self.shared.settings.thresholds.list_size;
        let clock = (self.now_ms / 1000) as u32 & 0xFF_FFFF;
        let item = self.item(hash, key)?;
        let encoding = match &*item {
            Item::Short(_) => text_encoding(item.as_text().expect("short items are strings")),
            Item::Object(object) => match &object.holds {
                Holds::Text(_) => "raw",
                Holds::Fields(fields) => fields.encoding(),
                Holds::Members(members) => members.encoding(),
                Holds::Ranking(ranking) => ranking.encoding(),
                Holds::Sequence(sequence) => sequence.encoding(list_size),
            },
        };
        let access = item.access();
        let idle_s = clock.wrapping_sub(access) & 0xFF_FFFF;
        Some(Facts {
            kind: item.kind(),
            encoding,
            idle_s: if count_uses { 0 } else { u64::from(idle_s) },
            uses: if count_uses { access as u8 } else { 0 },
            bytes: item.bytes(),
        })
    }

    /// The best of `samples` random keys to give up: the one idle longest or used least, or, with
    /// `by_expiry`, the one that expires first. With `expiring_only`, keys that never expire stay.
    pub fn eviction_candidate(
        &mut self,
        samples: usize,
        expiring_only: bool,
        by_expiry: bool,
        below: Below<'_>,
    ) -> Option<Vec<u8>> {
        let clock = (self.now_ms / 1000) as u32 & 0xFF_FFFF;
        let count_uses = self.shared.settings.count_uses;
        let mut best: Option<(u64, &Item)> = None;
        for _ in 0..samples {
            let item = if expiring_only {
                let first = self.base.expiring.first()?.0;
                let last = self.base.expiring.last()?.0;
                let from = (first + below(last - first + 1), 0);
                let due = *self.base.expiring.range(from..).next()?;
                self.base.table.find(due.1, |it| it.expire_ms() == due.0)?
            } else {
                self.base.table.random(below)?
            };
            let worth = if by_expiry {
                u64::MAX - item.expire_ms()
            } else if count_uses {
                255 - u64::from(item.access() & 0xFF)
            } else {
                u64::from(clock.wrapping_sub(item.access()) & 0xFF_FFFF)
            };
            if best.is_none_or(|it| it.0 < worth) {
                best = Some((worth, item));
            }
        }
        best.map(|it| it.1.key().to_vec())
    }
}

fn text_encoding(text: &[u8]) -> &'static str {
    if super::parse_int(text).is_some() {
        "int"
    } else if text.len() <= 44 {
        "embstr"
    } else {
        "raw"
    }
}
