//! A whole value as bytes: for snapshots, copies between databases, and dumps.
//!
//! ```text
//! type (1) then   string: the bytes to the end
//!                 else: count (varint) and, per item, byte strings:
//!                 hash: field value; set: member; list: element; zset: score (8, LE) member
//! ```

use super::error::Error;
use super::fields::{Fields, Members, Thresholds};
use super::hashing::Hashing;
use super::item::{Holds, Item};
use super::pack::{get_bytes, get_varint, put_bytes, put_varint};
use super::ranking::Ranking;
use super::sequence::Sequence;
use super::{Change, Db};

pub(crate) fn encode(item: &Item) -> Vec<u8> {
    let mut to = Vec::new();
    let object = match item {
        Item::Short(_) => {
            to.push(0);
            to.extend_from_slice(item.as_text().expect("short items are strings"));
            return to;
        }
        Item::Object(object) => object,
    };
    let count = object.holds.len() as u64;
    match &object.holds {
        Holds::Text(text) => {
            to.push(0);
            to.extend_from_slice(text);
        }
        Holds::Fields(fields) => {
            to.push(1);
            put_varint(&mut to, count);
            for (field, value) in fields.iter() {
                put_bytes(&mut to, field);
                put_bytes(&mut to, value);
            }
        }
        Holds::Members(members) => {
            to.push(2);
            put_varint(&mut to, count);
            members.each(|member| put_bytes(&mut to, member));
        }
        Holds::Ranking(ranking) => {
            to.push(3);
            put_varint(&mut to, count);
            for (member, score) in ranking.range(0, ranking.len()) {
                to.extend_from_slice(&score.to_bits().to_le_bytes());
                put_bytes(&mut to, member);
            }
        }
        Holds::Sequence(sequence) => {
            to.push(4);
            put_varint(&mut to, count);
            sequence.iter().for_each(|element| put_bytes(&mut to, element));
        }
    }
    to
}

pub(crate) fn decode(hashing: &Hashing, limits: &Thresholds, image: &[u8]) -> Result<Holds, Error> {
    let corrupt = |reason| Error::Corrupt { reason };
    let (kind, rest) = image.split_first().ok_or(corrupt("an image is empty"))?;
    if *kind == 0 {
        return Ok(Holds::Text(rest.to_vec()));
    }
    let (count, mut at) = get_varint(rest, 0).ok_or(corrupt("an image has no count"))?;
    let mut bytes = |skip: usize| {
        let (item, end) = get_bytes(rest, at + skip).ok_or(corrupt("an image is cut short"))?;
        let skipped = &rest[at..at + skip];
        at = end;
        Ok((skipped, item))
    };
    if count == 0 {
        return Err(corrupt("an image holds an empty collection"));
    }
    let holds = match kind {
        1 => {
            let mut fields = Fields::new();
            for _ in 0..count {
                let field = bytes(0)?.1;
                fields.set(hashing, limits, field, bytes(0)?.1);
            }
            Holds::Fields(fields)
        }
        2 => {
            let mut members = Members::new();
            for _ in 0..count {
                members.add(hashing, limits, bytes(0)?.1);
            }
            Holds::Members(members)
        }
        3 => {
            let mut ranking = Ranking::new();
            for _ in 0..count {
                let (score, member) = bytes(8)?;
                let score = score.try_into().map_err(|_| corrupt("a score is cut short"))?;
                let score = f64::from_bits(u64::from_le_bytes(score));
                if score.is_nan() {
                    return Err(corrupt("a score is not a number"));
                }
                ranking.set(hashing, limits, member, score);
            }
            Holds::Ranking(ranking)
        }
        4 => {
            let mut sequence = Sequence::default();
            for _ in 0..count {
                sequence.push_back(bytes(0)?.1);
            }
            Holds::Sequence(sequence)
        }
        _ => return Err(corrupt("unknown type of an image")),
    };
    if at != rest.len() {
        return Err(corrupt("an image has bytes behind its end"));
    }
    Ok(holds)
}

impl Db<'_> {
    /// The whole value of a key as bytes that [`Db::put`] takes, with its expiry.
    pub fn image(&mut self, key: &[u8]) -> Option<(Vec<u8>, u64)> {
        let hash = self.hash(key);
        self.item(hash, key).map(|it| (encode(it), it.expire_ms()))
    }

    /// Puts a whole value under a key, whatever was there. An expiry of zero is none; one that has
    /// passed deletes the key.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the bytes are no image; `TooLong` for a key to be replicated.
    pub fn put(&mut self, key: &[u8], image: &[u8], expire_ms: u64) -> Result<(), Error> {
        self.check_key("key", key)?;
        let holds = decode(&self.shared.hashing, &self.shared.settings.thresholds, image)?;
        if let Holds::Fields(fields) = &holds {
            for (field, _) in fields.iter() {
                self.check_key("field", field)?;
            }
        }
        if expire_ms != 0 && expire_ms <= self.now_ms {
            self.del(key);
            return Ok(());
        }
        self.put_raw(key, holds, expire_ms);
        self.changed(&Change::Put { key, expire_ms, image });
        Ok(())
    }

    pub(crate) fn put_raw(&mut self, key: &[u8], holds: Holds, expire_ms: u64) {
        let hash = self.hash(key);
        self.take(hash, key);
        let item = match holds {
            Holds::Text(text) => Item::text(key, &text, expire_ms, 0),
            other => Item::object(key, other, expire_ms, 0),
        };
        self.insert(hash, item);
    }
}
