//! Between the live structure and the replicated state.
//!
//! Each database has an [`Index`] of entries beside its table: what this node publishes. *Folding*
//! brings it up to what commands did since; *absorbing* merges what another owner holds into it and
//! shows the result to commands. Both cost what changed, not what there is.
//!
//! Both are journaled as the least entry that makes the difference, so that a restart has the same
//! stamps. Without replication none of this exists.

use super::item::Holds;
use super::{Change, Database, Db, DbId, Item, Live, Touch, fields, image, ranking, sequence};
use crate::Error;
use crate::cell::{View, message};
use crate::entry::{self, Entry, Fold, Found, Shape, Stamp};
use crate::index::{Batch, Difference, Index};
use crate::replica::absorb::{absorb, may_speak};
use crate::replica::publish::is_reserved;
use crate::replica::{Layout, Store, Verdict};
use crate::sign::Owner;

/// How far a foreign stamp may lie ahead of our clock before it has to wait.
pub const AHEAD_MAX_MS: u64 = 30_000;

/// What absorbing one owner's database did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The keys that commands see changed.
    pub keys: Vec<Vec<u8>>,
    /// How many keys were refused.
    pub refused: u64,
    /// The first of them, with the reason.
    pub refused_keys: Vec<(Vec<u8>, &'static str)>,
    /// The earliest time at which something that was left alone should be absorbed again.
    pub later_ms: Option<u64>,
}

/// Whom the entries come from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The owner.
    pub owner: &'a Owner,
    /// The layout of its slot.
    pub layout: Layout,
    /// How far its stamps may lie ahead of our clock.
    pub ahead_max_ms: u64,
}

fn decode(index: &Index, key: &[u8]) -> Result<Entry, Error> {
    match index.get(key)? {
        Some(view) => Entry::decode(view),
        None => Ok(Entry::default()),
    }
}

impl Live {
    /// The replicated state of a database as of the last fold.
    pub fn state(&self, id: DbId) -> &Index {
        &self.databases[id.0 as usize].index
    }

    /// How many keys wait for the next fold.
    pub fn unfolded(&self, id: DbId) -> usize {
        let touched = &self.databases[id.0 as usize].touched;
        touched.keys.len() + usize::from(touched.everything_ms.is_some())
    }

    /// Brings the replicated state up to what commands did; returns how many entries changed. To
    /// be called before [`Live::state`] is published.
    ///
    /// # Errors
    ///
    /// `Missing` or `Encoding` if the replicated state is damaged. What was not folded stays noted.
    pub fn fold(&mut self, id: DbId, now_ms: u64) -> Result<usize, Error> {
        if !self.shared.settings.replication {
            return Ok(0);
        }
        self.db(id, now_ms).fold()
    }

    /// Merges what an owner holds of a database into ours. One owner's bad entries are refused one
    /// by one and change nothing else.
    ///
    /// Absorbing our own slot, kept by a peer, gives a wiped node its state back.
    ///
    /// # Errors
    ///
    /// `Missing` if something that differs is not here.
    pub fn absorb(
        &mut self,
        id: DbId,
        source: Source<'_>,
        store: &Store,
        now_ms: u64,
    ) -> Result<Merged, Error> {
        self.fold(id, now_ms)?;
        let base = &self.databases[id.0 as usize];
        let horizon = base.collected_before;
        let stamp_max = i64::try_from(now_ms.saturating_add(source.ahead_max_ms));
        let stamp_max = stamp_max.unwrap_or(i64::MAX);
        let mut judge = |it: &Difference<'_>| match judge(it, source, stamp_max, horizon) {
            Err(Error::Encoding { reason }) => Ok(Verdict::Refuse(reason)),
            other => other,
        };
        let done = absorb(&base.index, source.owner, source.layout, store, &mut judge)?;
        let keys = self.adopt(id, &done.index, now_ms)?;
        // A stamp may be used once our clock is near enough.
        let later_ms = done.later.map(|it| it.saturating_sub(source.ahead_max_ms));
        Ok(Merged { keys, refused: done.refused, refused_keys: done.refused_keys, later_ms })
    }

    /// Takes another replicated state, which must be above ours, and shows it to commands.
    fn adopt(&mut self, id: DbId, index: &Index, now_ms: u64) -> Result<Vec<Vec<u8>>, Error> {
        let old = self.state(id).clone();
        let mut keys = Vec::new();
        let mut db = self.db(id, now_ms);
        old.diff(index, &mut |it| {
            let key = it.key_bytes()?;
            let quiet = !db.shared.settings.journal;
            if let (true, None, Some((text, _, 0))) =
                (quiet, it.own, it.theirs.and_then(entry::plain_text))
            {
                // A new string, and nobody keeps a journal.
                let hash = db.hash(&key);
                let value = entry::text_of(text)?;
                db.set_raw(hash, &key, &value, 0);
                db.shown(&Change::Set { key: &key, value: &value, expire_ms: 0 });
                keys.push(key.into_owned());
                return Ok(());
            }
            let before = it.own.map_or(Ok(Entry::default()), Entry::decode)?;
            let after = it.theirs.map_or(Ok(Entry::default()), Entry::decode)?;
            if db.show(&key, &before, &after)? {
                keys.push(key.to_vec());
            }
            db.journal_entry(&key, &before, &after)
        })?;
        db.base.index = index.clone();
        Ok(keys)
    }

    /// Forgets what was removed before `safe_before_ms`, and keys that were deleted before it;
    /// returns how many records and keys went.
    ///
    /// Safe only when every trusted owner is known to have merged our state up to that time, or has
    /// been away for so long that it must start anew: a replica that has not seen a removal would
    /// bring the removed thing back. Counts are never forgotten.
    ///
    /// # Errors
    ///
    /// `Missing` or `Encoding` if the replicated state is damaged.
    pub fn collect(&mut self, id: DbId, safe_before_ms: u64, now_ms: u64) -> Result<usize, Error> {
        self.fold(id, now_ms)?;
        let horizon = i64::try_from(safe_before_ms).unwrap_or(i64::MAX);
        let (index, count) = collected(self.state(id), horizon)?;
        let mut db = self.db(id, now_ms);
        db.base.index = index;
        db.base.collected_before = db.base.collected_before.max(horizon);
        if 0 < count {
            db.journal_only(&Change::Collect { before_ms: safe_before_ms });
        }
        Ok(count)
    }
}

/// Without removed things from before `horizon`, and how many there were.
pub(super) fn collected(index: &Index, horizon: Stamp) -> Result<(Index, usize), Error> {
    let mut batch = Batch::new();
    let mut count = 0;
    for it in index {
        let it = it?;
        let key = it.key_bytes()?;
        if is_reserved(&key) {
            continue;
        }
        let mut entry = Entry::decode(it.value)?;
        let gone = entry.collect(horizon)?;
        count += gone;
        if entry.is_bare() && entry.newest() < horizon {
            batch.remove(&key);
            count += 1;
        } else if 0 < gone {
            let cell = entry.encode()?;
            batch.put(it.key, |writer| writer.cell(&cell))?;
        }
    }
    Ok((index.update(&batch)?, count))
}

/// What becomes of one key that differs.
fn judge(
    it: &Difference<'_>,
    source: Source<'_>,
    stamp_max: Stamp,
    horizon: Stamp,
) -> Result<Verdict, Error> {
    let Some(view) = it.theirs else { return Ok(Verdict::Keep) };
    if let (None, Some((_, stamp, _))) = (it.own, entry::plain_text(view))
        && stamp <= stamp_max
    {
        // A new string: what they have is what we would write.
        return Ok(Verdict::Take);
    }
    let mut theirs = Entry::decode(view)?;
    if stamp_max < theirs.newest() {
        return Ok(Verdict::Later(theirs.newest() as u64));
    }
    theirs.keep_columns(&|name| may_speak(source.owner, source.layout, name))?;
    let own = it.own.map_or(Ok(Entry::default()), Entry::decode)?;
    if 0 < horizon {
        // What we have forgotten as removed does not come back as a removal. The merge checks
        // every record first.
        theirs = entry::merge(&Entry::default(), &theirs)?;
        theirs.collect(horizon)?;
        if it.own.is_none() && theirs.is_bare() && theirs.newest() < horizon {
            return Ok(Verdict::Keep);
        }
    }
    let joined = entry::merge(&own, &theirs)?;
    if it.own.is_some() && joined == own {
        return Ok(Verdict::Keep);
    }
    joined.encode().map(Verdict::Join)
}

impl Db<'_> {
    fn fold(&mut self) -> Result<usize, Error> {
        self.spread_everything()?;
        let keys = std::mem::take(&mut self.base.touched.keys);
        let fold = Fold::new(&self.shared.settings.column);
        let mut batch = Batch::new();
        let mut changed = 0;
        for (key, touch) in &keys {
            match self.fold_key(&fold, key, touch, &mut batch) {
                Ok(true) => changed += 1,
                Ok(false) => {}
                Err(error) => {
                    self.base.touched.keys = keys;
                    return Err(error);
                }
            }
        }
        self.base.index = self.base.index.update(&batch)?;
        if !keys.is_empty() {
            self.journal_only(&Change::Folded);
        }
        Ok(changed)
    }

    /// After FLUSHDB and SWAPDB, every key that was or is there counts as replaced.
    fn spread_everything(&mut self) -> Result<(), Error> {
        let Some(at_ms) = self.base.touched.everything_ms.take() else { return Ok(()) };
        let mut names: Vec<Vec<u8>> = Vec::new();
        for it in &self.base.index {
            names.push(it?.key_bytes()?.into_owned());
        }
        names.extend(self.base.table.iter().map(|it| it.key().to_vec()));
        for name in names {
            let touch = self.base.touched.keys.entry(name).or_default();
            touch.at_ms = touch.at_ms.max(at_ms);
            touch.reset = true;
        }
        Ok(())
    }

    /// Adds the next entry of a key to the batch; false if it has not changed.
    fn fold_key(
        &mut self,
        fold: &Fold,
        key: &[u8],
        touch: &Touch,
        batch: &mut Batch,
    ) -> Result<bool, Error> {
        if is_reserved(key) {
            return Ok(false);
        }
        let Database { table, index, .. } = &*self.base;
        let hashing = &self.shared.hashing;
        let item = table.find(hashing.of(key), |it| it.key() == key);
        let known = index.get(key)?;
        if known.is_none() && item.is_none() {
            // It came and went without anybody else seeing it.
            return Ok(false);
        }
        if !self.shared.settings.journal
            && let Some((text, stamp, expire_ms)) = plain_set(known, touch, item)
        {
            let text = |writer: &mut crate::cell::Writer| entry::write_text(writer, text);
            batch.put_string(key, |writer| entry::write_plain(writer, text, stamp, expire_ms));
            return Ok(true);
        }
        let old = known.map_or(Ok(Entry::default()), Entry::decode)?;
        let find = |item: &Item, member: &[u8]| find(item, hashing, member);
        let new = fold.fold(&old, touch, item, &find)?;
        if new == old {
            return Ok(false);
        }
        self.journal_entry(key, &old, &new)?;
        let cell = new.encode()?;
        batch.put_string(key, |writer| writer.cell(&cell));
        Ok(true)
    }

    /// Records what must be merged into `old` to get `new`.
    fn journal_entry(&mut self, key: &[u8], old: &Entry, new: &Entry) -> Result<(), Error> {
        if !self.shared.settings.journal || self.shared.replay_ms.is_some() {
            return Ok(());
        }
        let mut cells = Vec::new();
        message::encode(&new.delta(old)?.encode()?, &mut cells);
        self.journal_only(&Change::Entry { key, cells: &cells });
        Ok(())
    }

    fn journal_only(&mut self, change: &Change<'_>) {
        if self.shared.settings.journal && self.shared.replay_ms.is_none() {
            self.shared.journal.add(&self.base.name, self.now_ms, change, None);
        }
    }

    /// Merges a journaled entry into the replicated state.
    pub(super) fn replay_entry(&mut self, key: &[u8], cells: &[u8]) -> Result<(), super::Error> {
        let corrupt = |_| super::Error::Corrupt { reason: "an entry's cells are broken" };
        let cell = message::decode_complete(cells).map_err(corrupt)?;
        let delta = Entry::decode(cell.view()).map_err(corrupt)?;
        let old = decode(&self.base.index, key).map_err(corrupt)?;
        let new = entry::merge(&old, &delta).and_then(|it| it.encode()).map_err(corrupt)?;
        let mut batch = Batch::new();
        batch.put_string(key, |writer| writer.cell(&new));
        self.base.index = self.base.index.update(&batch).map_err(corrupt)?;
        self.base.touched.keys.remove(key);
        Ok(())
    }

    /// Repeats a journaled collection.
    pub(super) fn replay_collect(&mut self, before_ms: u64) -> Result<(), super::Error> {
        let corrupt = |_| super::Error::Corrupt { reason: "the replicated state is broken" };
        let horizon = i64::try_from(before_ms).unwrap_or(i64::MAX);
        self.base.index = collected(&self.base.index, horizon).map_err(corrupt)?.0;
        self.base.collected_before = self.base.collected_before.max(horizon);
        Ok(())
    }

    /// Notes a change that came from elsewhere: recorded and seen by watchers, not folded again.
    fn shown(&mut self, change: &Change<'_>) {
        self.shared.change(self.id, &self.base.name, self.now_ms, change);
    }

    /// Shows the next state of a key to commands; false if they see no difference.
    fn show(&mut self, key: &[u8], before: &Entry, after: &Entry) -> Result<bool, Error> {
        let hash = self.hash(key);
        let shape = if after.is_expired(self.now_ms) { None } else { after.shape()? };
        let Some(shape) = shape else {
            if self.take(hash, key).is_none() {
                return Ok(false);
            }
            self.shown(&Change::Del { key });
            return Ok(true);
        };
        let expire_ms = after.expiry().1 as u64;
        let there = self.base.table.find(hash, |it| it.key() == key);
        let same = there.is_some_and(|it| it.kind() == shape.kind());
        let old_ms = there.map_or(0, Item::expire_ms);
        if shape == Shape::Text {
            return self.show_text(hash, key, after, expire_ms);
        }
        let mut changed = false;
        if same && shape != Shape::List && before.shape()? == Some(shape) {
            changed |= self.show_members(key, shape, before, after)?;
        } else if !same || before.list != after.list {
            let (limits, hashing) = (self.shared.settings.thresholds, self.shared.hashing.clone());
            let holds = holds(shape, after, &hashing, &limits)?;
            self.put_raw(key, holds, expire_ms);
            let item = self.base.table.find(hash, |it| it.key() == key).expect("it was put");
            let image = image::encode(item);
            self.shown(&Change::Put { key, expire_ms, image: &image });
            return Ok(true);
        }
        if old_ms != expire_ms {
            let item = self.base.table.find_mut(hash, |it| it.key() == key);
            item.expect("it is there and has the type").set_expire_ms(expire_ms);
            self.base.note_expiry(hash, old_ms, expire_ms);
            self.shown(&Change::Expire { key, at_ms: expire_ms });
            changed = true;
        }
        Ok(changed)
    }

    fn show_text(
        &mut self,
        hash: u64,
        key: &[u8],
        after: &Entry,
        expire_ms: u64,
    ) -> Result<bool, Error> {
        let value = after.shown_text()?.unwrap_or_default();
        let there = self.base.table.find(hash, |it| it.key() == key);
        if there.is_some_and(|it| it.as_text() == Some(&value) && it.expire_ms() == expire_ms) {
            return Ok(false);
        }
        self.set_raw(hash, key, &value, expire_ms);
        self.shown(&Change::Set { key, value: &value, expire_ms });
        Ok(true)
    }

    /// Applies only the fields or members that differ.
    fn show_members(
        &mut self,
        key: &[u8],
        shape: Shape,
        before: &Entry,
        after: &Entry,
    ) -> Result<bool, Error> {
        let mut changed = false;
        after.each_change(before, shape, &mut |member, found| {
            changed |= match found {
                Some(Found::Value(value)) => self.show_field(key, member, &value),
                Some(Found::Present) => self.show_member(key, member),
                Some(Found::Score(score)) => self.show_score(key, member, score),
                None => self.show_gone(key, shape, member),
            };
        })?;
        Ok(changed)
    }

    fn show_field(&mut self, key: &[u8], field: &[u8], value: &[u8]) -> bool {
        let (limits, hashing) = (self.shared.settings.thresholds, self.shared.hashing.clone());
        let Ok(Some(fields)) = self.fields(key) else { return false };
        if fields.get(&hashing, field) == Some(value) {
            return false;
        }
        fields.set(&hashing, &limits, field, value);
        self.shown(&Change::HashSet { key, field, value });
        true
    }

    fn show_member(&mut self, key: &[u8], member: &[u8]) -> bool {
        let (limits, hashing) = (self.shared.settings.thresholds, self.shared.hashing.clone());
        let Ok(Some(members)) = self.members(key) else { return false };
        if !members.add(&hashing, &limits, member) {
            return false;
        }
        self.shown(&Change::SetAdd { key, member });
        true
    }

    fn show_score(&mut self, key: &[u8], member: &[u8], score: f64) -> bool {
        let (limits, hashing) = (self.shared.settings.thresholds, self.shared.hashing.clone());
        let Ok(Some(ranking)) = self.ranking(key) else { return false };
        if ranking.score(&hashing, member).is_some_and(|it| it.to_bits() == score.to_bits()) {
            return false;
        }
        ranking.set(&hashing, &limits, member, score);
        self.shown(&Change::ZsetSet { key, member, score });
        true
    }

    fn show_gone(&mut self, key: &[u8], shape: Shape, member: &[u8]) -> bool {
        let hashing = self.shared.hashing.clone();
        let gone = match shape {
            Shape::Hash => self.fields(key).ok().flatten().map(|it| it.del(&hashing, member)),
            Shape::Set => self.members(key).ok().flatten().map(|it| it.del(&hashing, member)),
            _ => self.ranking(key).ok().flatten().map(|it| it.del(&hashing, member)),
        };
        let gone = gone.unwrap_or(false);
        if gone {
            self.shown(&match shape {
                Shape::Hash => Change::HashDel { key, field: member },
                Shape::Set => Change::SetDel { key, member },
                _ => Change::ZsetDel { key, member },
            });
        }
        gone
    }
}

/// The next entry of a string that was set anew over nothing or over a string that was set: the
/// same as folding gives, without taking the entries apart.
fn plain_set<'a>(
    known: Option<View<'_>>,
    touch: &Touch,
    item: Option<&'a Item>,
) -> Option<(&'a [u8], Stamp, i64)> {
    let text = item?.as_text().filter(|_| touch.reset)?;
    let newest = match known {
        None => 0,
        Some(view) => entry::plain_text(view)?.1,
    };
    let stamp = i64::try_from(touch.at_ms).ok()?.max(newest + 1);
    Some((text, stamp, item?.expire_ms() as i64))
}

/// What a live collection says of one field or member.
fn find(item: &Item, hashing: &super::Hashing, member: &[u8]) -> Option<Found> {
    let Item::Object(object) = item else { return None };
    match &object.holds {
        Holds::Fields(fields) => fields.get(hashing, member).map(|it| Found::Value(it.to_vec())),
        Holds::Members(members) => members.has(hashing, member).then_some(Found::Present),
        Holds::Ranking(ranking) => ranking.score(hashing, member).map(Found::Score),
        Holds::Text(_) | Holds::Sequence(_) => None,
    }
}

/// The collection that an entry shows.
fn holds(
    shape: Shape,
    entry: &Entry,
    hashing: &super::Hashing,
    limits: &super::Thresholds,
) -> Result<Holds, Error> {
    Ok(match shape {
        Shape::Text => Holds::Text(entry.shown_text()?.unwrap_or_default()),
        Shape::Hash => {
            let mut fields = fields::Fields::new();
            entry.each_field(|field, value| {
                fields.set(hashing, limits, field, value);
            })?;
            Holds::Fields(fields)
        }
        Shape::Set => {
            let mut members = fields::Members::new();
            entry.each_member(|member| {
                members.add(hashing, limits, member);
            })?;
            Holds::Members(members)
        }
        Shape::Zset => {
            let mut ranking = ranking::Ranking::new();
            entry.each_scored(|member, score| {
                ranking.set(hashing, limits, member, score);
            })?;
            Holds::Ranking(ranking)
        }
        Shape::List => {
            let mut sequence = sequence::Sequence::default();
            entry.each_element(|_, element| sequence.push_back(element))?;
            Holds::Sequence(sequence)
        }
    })
}

/// The changes that bring a published Index up to the replicated state, for a publisher.
///
/// # Errors
///
/// `Missing` if something that differs is not here.
pub fn publication(published: &Index, state: &Index) -> Result<Batch, Error> {
    let mut batch = Batch::new();
    published.diff(state, &mut |it| {
        if is_reserved(&it.key_bytes()?) {
            return Ok(());
        }
        match it.theirs {
            Some(value) => batch.put(it.key, |writer| writer.view(value))?,
            None => batch.remove(&it.key_bytes()?),
        }
        Ok(())
    })?;
    Ok(batch)
}
