//! The data of the client's database, as commands see it.
//!
//! A thin layer over the live store: it lends the right database at the right time, turns the
//! store's errors into Redis's words, and keeps the borrowing short, so that a command can read
//! data and write its reply at once:
//!
//! ```text
//! let (mut data, reply) = data::open(ctx);
//! data.string(key, |value| reply.bulk_or_null(value))
//! ```

use std::ops::Range;

use kumiko_base::draw::Draw;
use kumiko_lattice::live::{self, Bound, Db, DbId, Error, Live, Ttl, ZaddRule};

use super::list::End;
use crate::fail::{self, Fail};
use crate::ranges::{LexEnd, LexRange, ScoreRange};
use crate::{Context, Writer};

pub(crate) use kumiko_lattice::live::Type;

/// The database of the client whose command runs.
pub(crate) struct Data<'a> {
    live: &'a mut Live,
    id: DbId,
    now_ms: u64,
    random: &'a mut Draw,
}

/// What becomes of a key's expiry when a string is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It goes.
    No,
    /// It stays.
    Yes,
    /// It is this time, in milliseconds since 1970.
    Until(i64),
}

/// Lends the client's database and its reply.
pub(crate) fn open<'c>(ctx: &'c mut Context<'_>) -> (Data<'c>, &'c mut Writer) {
    let id = ctx.server.db_id(ctx.client.db);
    let server = &mut *ctx.server;
    let data = Data { live: &mut server.live, id, now_ms: ctx.now_ms, random: &mut server.random };
    (data, &mut ctx.reply)
}

/// Lends another database than the client's.
pub(crate) fn open_at<'c>(ctx: &'c mut Context<'_>, db: usize) -> Data<'c> {
    let id = ctx.server.db_id(db);
    let server = &mut *ctx.server;
    Data { live: &mut server.live, id, now_ms: ctx.now_ms, random: &mut server.random }
}

/// The longest string a client may build.
pub(crate) fn bulk_bytes_max(ctx: &Context<'_>) -> usize {
    let set = usize::try_from(ctx.server.config.hot.bulk_bytes_max).unwrap_or(usize::MAX);
    set.min(live::VALUE_BYTES_MAX)
}

/// The store's errors in Redis's words.
pub(crate) fn refuse(error: Error) -> Fail {
    match error {
        Error::WrongType => fail::WRONG_TYPE,
        Error::NotInteger => fail::NOT_INTEGER,
        Error::Overflow => fail::OVERFLOW,
        Error::NotFloat => fail::NOT_FLOAT,
        Error::NoKey => fail::NO_KEY,
        Error::OutOfRange => fail::INDEX_OUT_OF_RANGE,
        Error::TooLong { what: "string", .. } => fail::STRING_TOO_LONG,
        other => Fail::text(format!("ERR {other}")),
    }
}

/// A score as text, in the form it has inside a reply of ZSCAN.
pub(crate) fn score_text(score: f64) -> String {
    crate::number::format_score(score)
}

fn live_end(end: End) -> live::End {
    match end {
        End::Left => live::End::Front,
        End::Right => live::End::Back,
    }
}

/// Keys of any type.
impl Data<'_> {
    fn db(&mut self) -> Db<'_> {
        self.live.db(self.id, self.now_ms)
    }

    /// Random numbers.
    pub(crate) fn random(&mut self) -> &mut Draw {
        self.random
    }

    /// The time of the command.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// How many keys there are.
    pub(crate) fn len(&mut self) -> usize {
        self.db().len()
    }

    /// The type of a key, if it is there.
    pub(crate) fn kind(&mut self, key: &[u8]) -> Option<Type> {
        self.db().type_of(key)
    }

    /// True if the key is there.
    pub(crate) fn exists(&mut self, key: &[u8]) -> bool {
        self.db().exists(key)
    }

    /// True if the key is there and holds the type; refused if it holds another one.
    pub(crate) fn check(&mut self, key: &[u8], kind: Type) -> Result<bool, Fail> {
        match self.db().type_of(key) {
            None => Ok(false),
            Some(found) if found == kind => Ok(true),
            Some(_) => Err(fail::WRONG_TYPE),
        }
    }

    /// Marks a key as used; true if it is there.
    pub(crate) fn touch(&mut self, key: &[u8]) -> bool {
        self.db().touch(key)
    }

    /// Deletes a key; true if it was there.
    pub(crate) fn del(&mut self, key: &[u8]) -> bool {
        self.db().del(key)
    }

    /// When the key expires, in milliseconds, if it does.
    pub(crate) fn expiry(&mut self, key: &[u8]) -> Option<i64> {
        self.db().expiry_ms(key).filter(|at_ms| *at_ms != 0).map(|at_ms| at_ms as i64)
    }

    /// Sets when a key expires, or that it does not.
    pub(crate) fn expire_at(&mut self, key: &[u8], at_ms: Option<i64>) {
        match at_ms {
            Some(at_ms) => self.db().expire_at(key, at_ms.max(0) as u64),
            None => self.db().persist(key),
        };
    }

    /// Renames a key that is there, over whatever has the new name.
    pub(crate) fn rename(&mut self, key: &[u8], to: &[u8]) -> Result<(), Fail> {
        self.db().rename(key, to, true).map(drop).map_err(refuse)
    }

    /// The whole value of a key with its expiry, for [`Data::put`].
    pub(crate) fn image(&mut self, key: &[u8]) -> Option<(Vec<u8>, u64)> {
        self.db().image(key)
    }

    /// Puts a whole value under a key, over whatever is there.
    pub(crate) fn put(&mut self, key: &[u8], image: &(Vec<u8>, u64)) -> Result<(), Fail> {
        self.db().put(key, &image.0, image.1).map_err(refuse)
    }

    /// A random key.
    pub(crate) fn random_key(&mut self) -> Option<Vec<u8>> {
        let Data { live, id, now_ms, random } = self;
        live.db(*id, *now_ms).random_key(&mut |below| random.below(below))
    }

    /// What OBJECT and MEMORY tell.
    pub(crate) fn facts(&mut self, key: &[u8]) -> Option<live::Facts> {
        self.db().facts(key)
    }

    /// Makes a key look as if it was last used so many seconds ago, if that is what is kept.
    pub(crate) fn set_idle(&mut self, key: &[u8], idle_s: u64) {
        self.db().set_idle(key, idle_s);
    }

    /// Makes a key look as if it was used so often, if that is what is kept.
    pub(crate) fn set_uses(&mut self, key: &[u8], uses: u8) {
        self.db().set_uses(key, uses);
    }

    /// Shows every key.
    pub(crate) fn each_key(&mut self, visit: impl FnMut(&[u8])) {
        self.db().each_key(visit);
    }

    /// Shows about `count` keys with their types and answers the next cursor.
    pub(crate) fn scan_keys(
        &mut self,
        cursor: u64,
        count: usize,
        visit: impl FnMut(&[u8], Type),
    ) -> u64 {
        self.db().scan(cursor, count, visit)
    }
}

/// Strings.
impl Data<'_> {
    /// Shows the string under a key.
    pub(crate) fn string(
        &mut self,
        key: &[u8],
        show: impl FnOnce(Option<&[u8]>),
    ) -> Result<(), Fail> {
        show(self.db().get(key).map_err(refuse)?);
        Ok(())
    }

    /// A copy of the string under a key.
    pub(crate) fn string_owned(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Fail> {
        Ok(self.db().get(key).map_err(refuse)?.map(<[u8]>::to_vec))
    }

    /// Puts a string under a key, whatever was there.
    pub(crate) fn set_string(&mut self, key: &[u8], value: &[u8], keep: Keep) -> Result<(), Fail> {
        let ttl = match keep {
            Keep::No => Ttl::Clear,
            Keep::Yes => Ttl::Keep,
            Keep::Until(at_ms) => Ttl::At(at_ms.max(0) as u64),
        };
        self.db().set(key, value, ttl).map_err(refuse)
    }

    /// Replaces the content of a string and keeps its expiry.
    pub(crate) fn write_string(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fail> {
        self.db().write(key, value).map_err(refuse)
    }

    /// Adds bytes behind a string; answers the new length.
    pub(crate) fn append(&mut self, key: &[u8], tail: &[u8]) -> Result<usize, Fail> {
        self.db().append(key, tail).map_err(refuse)
    }

    /// Overwrites bytes of a string from `offset` on; answers the new length.
    pub(crate) fn set_range(
        &mut self,
        key: &[u8],
        offset: usize,
        bytes: &[u8],
    ) -> Result<usize, Fail> {
        self.db().set_range(key, offset, bytes).map_err(refuse)
    }

    /// The length of the string under a key.
    pub(crate) fn string_len(&mut self, key: &[u8]) -> Result<usize, Fail> {
        self.db().strlen(key).map_err(refuse)
    }

    /// Adds to the integer under a key.
    pub(crate) fn add(&mut self, key: &[u8], delta: i64) -> Result<i64, Fail> {
        self.db().incr(key, delta).map_err(refuse)
    }
}

/// Hashes.
impl Data<'_> {
    /// How many fields there are.
    pub(crate) fn hash_len(&mut self, key: &[u8]) -> Result<usize, Fail> {
        self.db().hlen(key).map_err(refuse)
    }

    /// Shows the value of a field.
    pub(crate) fn hash_get(
        &mut self,
        key: &[u8],
        field: &[u8],
        show: impl FnOnce(Option<&[u8]>),
    ) -> Result<(), Fail> {
        show(self.db().hget(key, field).map_err(refuse)?);
        Ok(())
    }

    /// A copy of the value of a field.
    pub(crate) fn hash_get_owned(
        &mut self,
        key: &[u8],
        field: &[u8],
    ) -> Result<Option<Vec<u8>>, Fail> {
        Ok(self.db().hget(key, field).map_err(refuse)?.map(<[u8]>::to_vec))
    }

    /// Sets a field; true if it is new.
    pub(crate) fn hash_set(
        &mut self,
        key: &[u8],
        field: &[u8],
        value: &[u8],
    ) -> Result<bool, Fail> {
        self.db().hset(key, field, value).map_err(refuse)
    }

    /// Deletes a field; true if it was there.
    pub(crate) fn hash_del(&mut self, key: &[u8], field: &[u8]) -> Result<bool, Fail> {
        self.db().hdel(key, field).map_err(refuse)
    }

    /// Adds to the integer in a field.
    pub(crate) fn hash_add(&mut self, key: &[u8], field: &[u8], delta: i64) -> Result<i64, Fail> {
        self.db().hincr(key, field, delta).map_err(|error| match error {
            Error::NotInteger => Fail::new("ERR hash value is not an integer"),
            other => refuse(other),
        })
    }

    /// Shows all fields.
    pub(crate) fn hash_each(
        &mut self,
        key: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Fail> {
        let mut db = self.db();
        db.hiter(key).map_err(refuse)?.for_each(|(field, value)| visit(field, value));
        Ok(())
    }

    /// A random field.
    pub(crate) fn hash_random(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Fail> {
        let Data { live, id, now_ms, random } = self;
        let mut db = live.db(*id, *now_ms);
        let picked = db.hrandom(key, &mut |below| random.below(below)).map_err(refuse)?;
        Ok(picked.map(|(field, _)| field.to_vec()))
    }

    /// Shows about `count` fields and answers the next cursor.
    pub(crate) fn scan_hash(
        &mut self,
        key: &[u8],
        cursor: u64,
        count: usize,
        visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64, Fail> {
        self.db().hscan(key, cursor, count, visit).map_err(refuse)
    }
}

/// Sets.
impl Data<'_> {
    /// How many members there are.
    pub(crate) fn set_len(&mut self, key: &[u8]) -> Result<usize, Fail> {
        self.db().scard(key).map_err(refuse)
    }

    /// Adds a member; true if it is new.
    pub(crate) fn set_add(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Fail> {
        self.db().sadd(key, member).map_err(refuse)
    }

    /// Removes a member; true if it was there.
    pub(crate) fn set_del(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Fail> {
        self.db().srem(key, member).map_err(refuse)
    }

    /// True if it is a member.
    pub(crate) fn set_has(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Fail> {
        self.db().sismember(key, member).map_err(refuse)
    }

    /// Shows all members.
    pub(crate) fn set_each(&mut self, key: &[u8], visit: impl FnMut(&[u8])) -> Result<(), Fail> {
        self.db().smembers(key, visit).map_err(refuse)
    }

    /// A copy of all members.
    pub(crate) fn set_members(&mut self, key: &[u8]) -> Result<Vec<Vec<u8>>, Fail> {
        let mut members = Vec::new();
        self.set_each(key, |member| members.push(member.to_vec()))?;
        Ok(members)
    }

    /// A random member.
    pub(crate) fn set_random(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Fail> {
        let Data { live, id, now_ms, random } = self;
        live.db(*id, *now_ms).srandom(key, &mut |below| random.below(below)).map_err(refuse)
    }

    /// Shows about `count` members and answers the next cursor.
    pub(crate) fn scan_set(
        &mut self,
        key: &[u8],
        cursor: u64,
        count: usize,
        visit: impl FnMut(&[u8]),
    ) -> Result<u64, Fail> {
        self.db().sscan(key, cursor, count, visit).map_err(refuse)
    }
}

/// Sorted sets.
impl Data<'_> {
    /// How many members there are.
    pub(crate) fn sorted_len(&mut self, key: &[u8]) -> Result<usize, Fail> {
        self.db().zcard(key).map_err(refuse)
    }

    /// The score of a member.
    pub(crate) fn sorted_score(&mut self, key: &[u8], member: &[u8]) -> Result<Option<f64>, Fail> {
        self.db().zscore(key, member).map_err(refuse)
    }

    /// Adds a member, or gives it another score.
    pub(crate) fn sorted_set(&mut self, key: &[u8], member: &[u8], score: f64) -> Result<(), Fail> {
        self.sorted_add(key, member, score, ZaddRule::default()).map(drop).map_err(refuse)
    }

    /// Adds a member or changes its score, as the rule says.
    pub(crate) fn sorted_add(
        &mut self,
        key: &[u8],
        member: &[u8],
        score: f64,
        rule: ZaddRule,
    ) -> Result<live::Added, Error> {
        // Negative zero becomes zero, as in the small sorted sets of Redis.
        self.db().zadd(key, member, score + 0.0, rule)
    }

    /// Removes a member; true if it was there.
    pub(crate) fn sorted_del(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Fail> {
        self.db().zrem(key, member).map_err(refuse)
    }

    /// The rank of a member, from the lowest score.
    pub(crate) fn sorted_rank(&mut self, key: &[u8], member: &[u8]) -> Result<Option<usize>, Fail> {
        Ok(self.db().zrank(key, member).map_err(refuse)?.map(|(rank, _)| rank))
    }

    /// The ranks of the scores in a range.
    pub(crate) fn sorted_by_score(
        &mut self,
        key: &[u8],
        range: &ScoreRange,
    ) -> Result<Range<usize>, Fail> {
        let end = |value, out| if out { Bound::Without(value) } else { Bound::With(value) };
        let (min, max) = (end(range.min, range.min_out), end(range.max, range.max_out));
        let (start, end) = self.db().zrange_by_score(key, min, max).map_err(refuse)?;
        Ok(if range.is_empty() { 0..0 } else { start..end.max(start) })
    }

    /// The ranks of the members in a range.
    pub(crate) fn sorted_by_name(
        &mut self,
        key: &[u8],
        range: &LexRange<'_>,
    ) -> Result<Range<usize>, Fail> {
        let (min, max) = (lex_bound(range.min), lex_bound(range.max));
        let (start, end) = self.db().zrange_by_lex(key, min, max).map_err(refuse)?;
        Ok(start..end.max(start))
    }

    /// Shows the members with these ranks, the highest first if `reverse`.
    pub(crate) fn sorted_each(
        &mut self,
        key: &[u8],
        range: Range<usize>,
        reverse: bool,
        mut visit: impl FnMut(&[u8], f64),
    ) -> Result<(), Fail> {
        let mut db = self.db();
        let members = db.zrange(key, range.start, range.end, reverse).map_err(refuse)?;
        members.for_each(|(member, score)| visit(member, score));
        Ok(())
    }

    /// Shows about `count` members and answers the next cursor.
    pub(crate) fn scan_sorted(
        &mut self,
        key: &[u8],
        cursor: u64,
        count: usize,
        visit: impl FnMut(&[u8], f64),
    ) -> Result<u64, Fail> {
        self.db().zscan(key, cursor, count, visit).map_err(refuse)
    }
}

fn lex_bound(end: LexEnd<'_>) -> Bound<&[u8]> {
    match end {
        LexEnd::First => Bound::Low,
        LexEnd::In(member) => Bound::With(member),
        LexEnd::Out(member) => Bound::Without(member),
        LexEnd::Last => Bound::High,
    }
}

/// Lists.
impl Data<'_> {
    /// How many elements there are.
    pub(crate) fn list_len(&mut self, key: &[u8]) -> Result<usize, Fail> {
        self.db().llen(key).map_err(refuse)
    }

    /// Adds an element at an end; answers the new length.
    pub(crate) fn list_push(
        &mut self,
        key: &[u8],
        end: End,
        element: &[u8],
    ) -> Result<usize, Fail> {
        self.db().push(key, live_end(end), element).map_err(refuse)
    }

    /// Takes an element from an end.
    pub(crate) fn list_pop(&mut self, key: &[u8], end: End) -> Result<Option<Vec<u8>>, Fail> {
        self.db().pop(key, live_end(end)).map_err(refuse)
    }

    /// A copy of an element.
    pub(crate) fn list_get(&mut self, key: &[u8], at: usize) -> Result<Option<Vec<u8>>, Fail> {
        Ok(self.db().lindex(key, at).map_err(refuse)?.map(<[u8]>::to_vec))
    }

    /// Shows a range of elements.
    pub(crate) fn list_each(
        &mut self,
        key: &[u8],
        range: Range<usize>,
        visit: impl FnMut(&[u8]),
    ) -> Result<(), Fail> {
        let mut db = self.db();
        db.lrange(key, range.start).map_err(refuse)?.take(range.len()).for_each(visit);
        Ok(())
    }

    /// A copy of all elements.
    pub(crate) fn list_items(&mut self, key: &[u8]) -> Result<Vec<Vec<u8>>, Fail> {
        Ok(self.db().lrange(key, 0).map_err(refuse)?.map(<[u8]>::to_vec).collect())
    }

    /// The index of the first element with this value.
    pub(crate) fn list_find(&mut self, key: &[u8], value: &[u8]) -> Result<Option<usize>, Fail> {
        Ok(self.db().lrange(key, 0).map_err(refuse)?.position(|element| element == value))
    }

    /// Replaces an element.
    pub(crate) fn list_set(&mut self, key: &[u8], at: usize, element: &[u8]) -> Result<(), Fail> {
        self.db().lset(key, at, element).map_err(refuse)
    }

    /// Adds an element in front of the one at `at`; answers the new length.
    pub(crate) fn list_insert(
        &mut self,
        key: &[u8],
        at: usize,
        element: &[u8],
    ) -> Result<usize, Fail> {
        self.db().linsert(key, at, element).map_err(refuse)
    }

    /// Removes up to `count` elements of this value, from one end; answers how many.
    pub(crate) fn list_remove(
        &mut self,
        key: &[u8],
        value: &[u8],
        count: usize,
        from: End,
    ) -> Result<usize, Fail> {
        self.db().lrem(key, value, count, live_end(from)).map_err(refuse)
    }

    /// Removes all but a range of elements.
    pub(crate) fn list_trim(&mut self, key: &[u8], keep: Range<usize>) -> Result<(), Fail> {
        self.db().ltrim(key, keep.start, keep.end).map_err(refuse)
    }
}
