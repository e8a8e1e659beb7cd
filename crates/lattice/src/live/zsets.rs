//! Sorted sets: members in the order of their scores.

use super::item::{Holds, Item};
use super::ranking::{Bound, Ranking};
use super::{Change, Db, Error};

/// Which ZADD changes what.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZaddRule {
    /// Only adds, never changes a score.
    pub only_new: bool,
    /// Only changes scores, never adds.
    pub only_old: bool,
    /// Changes a score only to a greater one.
    pub greater: bool,
    /// Changes a score only to a smaller one.
    pub less: bool,
    /// Adds the given number to the score there is.
    pub increment: bool,
}

/// What a ZADD of one member did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Added {
    /// The member is new and has this score.
    New(f64),
    /// The member has another score now.
    Changed(f64),
    /// The member had this score already.
    Same(f64),
    /// The rule forbade it; the score there was, if any.
    Refused(Option<f64>),
}

impl Db<'_> {
    pub(crate) fn ranking(&mut self, key: &[u8]) -> Result<Option<&mut Ranking>, Error> {
        let hash = self.hash(key);
        match self.used(hash, key) {
            None => Ok(None),
            Some(Item::Object(object)) => match &mut object.holds {
                Holds::Ranking(ranking) => Ok(Some(ranking)),
                _ => Err(Error::WrongType),
            },
            Some(Item::Short(_)) => Err(Error::WrongType),
        }
    }

    /// Adds a member or changes its score, as the rule says.
    ///
    /// # Errors
    ///
    /// `NotFloat` if the score is or becomes NaN; `WrongType`; `TooLong` for a key.
    pub fn zadd(
        &mut self,
        key: &[u8],
        member: &[u8],
        score: f64,
        rule: ZaddRule,
    ) -> Result<Added, Error> {
        if score.is_nan() {
            return Err(Error::NotFloat);
        }
        let hashing = self.shared.hashing.clone();
        let old = self.ranking(key)?.and_then(|it| it.score(&hashing, member));
        let Some(old) = old else {
            if rule.only_old {
                return Ok(Added::Refused(None));
            }
            self.zset_raw(key, member, score)?;
            self.changed(&Change::ZsetSet { key, member, score });
            return Ok(Added::New(score));
        };
        if rule.only_new {
            return Ok(Added::Refused(Some(old)));
        }
        let score = if rule.increment { old + score } else { score };
        if score.is_nan() {
            return Err(Error::NotFloat);
        }
        if (rule.greater && score <= old) || (rule.less && old <= score) {
            return Ok(Added::Refused(Some(old)));
        }
        if score.to_bits() == old.to_bits() {
            self.repeated(&Change::ZsetSet { key, member, score });
            return Ok(Added::Same(old));
        }
        self.zset_raw(key, member, score)?;
        self.changed(&Change::ZsetSet { key, member, score });
        Ok(Added::Changed(score))
    }

    pub(crate) fn zset_raw(&mut self, key: &[u8], member: &[u8], score: f64) -> Result<(), Error> {
        let hashing = self.shared.hashing.clone();
        let limits = self.shared.settings.thresholds;
        if let Some(ranking) = self.ranking(key)? {
            ranking.set(&hashing, &limits, member, score);
            return Ok(());
        }
        self.check_key("key", key)?;
        let mut ranking = Ranking::new();
        ranking.set(&hashing, &limits, member, score);
        self.insert(hashing.of(key), Item::object(key, Holds::Ranking(ranking), 0, 0));
        Ok(())
    }

    /// Removes a member; true if it was there. The key goes with its last member.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zrem(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Error> {
        let hashing = self.shared.hashing.clone();
        let Some(ranking) = self.ranking(key)? else { return Ok(false) };
        if !ranking.del(&hashing, member) {
            return Ok(false);
        }
        if ranking.len() == 0 {
            self.take(hashing.of(key), key);
        }
        self.changed(&Change::ZsetDel { key, member });
        Ok(true)
    }

    /// The score of a member.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zscore(&mut self, key: &[u8], member: &[u8]) -> Result<Option<f64>, Error> {
        let hashing = self.shared.hashing.clone();
        Ok(self.ranking(key)?.and_then(|it| it.score(&hashing, member)))
    }

    /// How many members there are.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zcard(&mut self, key: &[u8]) -> Result<usize, Error> {
        Ok(self.ranking(key)?.map_or(0, |it| it.len()))
    }

    /// The rank of a member, counted from the lowest score, with its score. The rank from the
    /// other end is `zcard - 1 - rank`.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zrank(&mut self, key: &[u8], member: &[u8]) -> Result<Option<(usize, f64)>, Error> {
        let hashing = self.shared.hashing.clone();
        Ok(self.ranking(key)?.and_then(|it| {
            let score = it.score(&hashing, member)?;
            Some((it.rank(score, member), score))
        }))
    }

    /// The ranks of a range by score: the first inside, and the first behind.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zrange_by_score(
        &mut self,
        key: &[u8],
        start: Bound<f64>,
        end: Bound<f64>,
    ) -> Result<(usize, usize), Error> {
        Ok(self.ranking(key)?.map_or((0, 0), |it| it.score_range(start, end)))
    }

    /// The ranks of a range by member, as with `zrange_by_score`. All scores should be equal.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zrange_by_lex(
        &mut self,
        key: &[u8],
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<(usize, usize), Error> {
        Ok(self.ranking(key)?.map_or((0, 0), |it| it.member_range(start, end)))
    }

    /// The members from rank `start` up to, and without, `end`; `back` shows the highest first.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zrange(
        &mut self,
        key: &[u8],
        start: usize,
        end: usize,
        back: bool,
    ) -> Result<impl Iterator<Item = (&[u8], f64)> + use<'_>, Error> {
        let ranking = self.ranking(key)?;
        let walk =
            ranking.map(|it| if back { it.range_back(start, end) } else { it.range(start, end) });
        Ok(walk.into_iter().flatten())
    }

    /// Removes the members from rank `start` up to, and without, `end`; returns how many.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zrem_range(&mut self, key: &[u8], start: usize, end: usize) -> Result<usize, Error> {
        let gone: Vec<Vec<u8>> =
            self.zrange(key, start, end, false)?.map(|it| it.0.to_vec()).collect();
        for member in &gone {
            self.zrem(key, member)?;
        }
        Ok(gone.len())
    }

    /// Takes the member with the lowest score away, or with the highest.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zpop(&mut self, key: &[u8], highest: bool) -> Result<Option<(Vec<u8>, f64)>, Error> {
        let Some(ranking) = self.ranking(key)? else { return Ok(None) };
        let rank = if highest { ranking.len() - 1 } else { 0 };
        let (member, score) = ranking.at(rank).expect("an empty set does not exist");
        let member = member.to_vec();
        self.zrem(key, &member)?;
        Ok(Some((member, score)))
    }

    /// Walks the members as `scan` walks keys.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn zscan(
        &mut self,
        key: &[u8],
        cursor: u64,
        count: usize,
        visit: impl FnMut(&[u8], f64),
    ) -> Result<u64, Error> {
        let hashing = self.shared.hashing.clone();
        Ok(self.ranking(key)?.map_or(0, |it| it.scan(&hashing, cursor, count, visit)))
    }
}
