//! Strings and integers.

use super::fields::{int_text, parse_int};
use super::item::{Item, TEXT_BYTES_MAX};
use super::{Change, Db, Error, VALUE_BYTES_MAX};

/// What a SET does with the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The key will not expire.
    Clear,
    /// The key keeps the expiry it has.
    Keep,
    /// The key expires at this time, in milliseconds. A time that has passed deletes it.
    At(u64),
}

impl Db<'_> {
    /// The string under a key.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    #[inline]
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        let hash = self.hash(key);
        match self.used(hash, key) {
            None => Ok(None),
            Some(item) => item.as_text().map(Some).ok_or(Error::WrongType),
        }
    }

    /// Puts a string under a key, whatever was there.
    ///
    /// # Errors
    ///
    /// `TooLong` if the value, or a key to be replicated, is.
    pub fn set(&mut self, key: &[u8], value: &[u8], ttl: Ttl) -> Result<(), Error> {
        check_size(value.len())?;
        let hash = self.hash(key);
        let now_ms = self.now_ms;
        let old = self.base.table.find(hash, |it| it.key() == key);
        let kept_ms = old.map(Item::expire_ms);
        let was_text = old.is_some_and(|it| it.as_text().is_some());
        let expire_ms = match ttl {
            Ttl::Clear => 0,
            Ttl::Keep => kept_ms.filter(|it| *it == 0 || now_ms < *it).unwrap_or(0),
            Ttl::At(at_ms) if at_ms <= now_ms => {
                self.del(key);
                return Ok(());
            }
            Ttl::At(at_ms) => at_ms,
        };
        if kept_ms.is_none() {
            self.check_key("key", key)?;
        }
        self.set_raw(hash, key, value, expire_ms);
        if was_text && ttl == Ttl::Keep && expire_ms != 0 {
            self.changed(&Change::Write { key, value });
        } else {
            self.changed(&Change::Set { key, value, expire_ms });
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn set_raw(&mut self, hash: u64, key: &[u8], value: &[u8], expire_ms: u64) {
        let now_ms = self.now_ms;
        let Some(item) = self.base.table.find_mut(hash, |it| it.key() == key) else {
            return self.insert(hash, Item::text(key, value, expire_ms, 0));
        };
        let old_ms = item.expire_ms();
        let access = self.shared.access(item.access(), now_ms);
        item.set_text(value, expire_ms);
        item.set_access(access);
        if old_ms != expire_ms {
            self.base.note_expiry(hash, old_ms, expire_ms);
        }
    }

    /// Replaces the content of a string and keeps its expiry; makes the key if it is not there.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else; `TooLong` as with `set`.
    pub fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        check_size(value.len())?;
        let hash = self.hash(key);
        if let Some(item) = self.used(hash, key) {
            item.as_text().ok_or(Error::WrongType)?;
            let expire_ms = item.expire_ms();
            item.set_text(value, expire_ms);
        } else {
            self.check_key("key", key)?;
            self.insert(hash, Item::text(key, value, 0, 0));
        }
        self.changed(&Change::Write { key, value });
        Ok(())
    }

    /// The length of the string under a key, zero if there is none.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn strlen(&mut self, key: &[u8]) -> Result<usize, Error> {
        Ok(self.get(key)?.map_or(0, <[u8]>::len))
    }

    /// Adds bytes behind a string; returns the new length.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else; `TooLong` if the result would be.
    pub fn append(&mut self, key: &[u8], tail: &[u8]) -> Result<usize, Error> {
        let hash = self.hash(key);
        let size = if let Some(item) = self.used(hash, key) {
            let size = item.as_text().ok_or(Error::WrongType)?.len() + tail.len();
            check_size(size)?;
            item.text_mut().ok_or(Error::WrongType)?.extend_from_slice(tail);
            size
        } else {
            check_size(tail.len())?;
            self.check_key("key", key)?;
            self.insert(hash, Item::text(key, tail, 0, 0));
            tail.len()
        };
        self.changed(&Change::Append { key, tail });
        Ok(size)
    }

    /// Overwrites bytes from `offset` on, with zeros up to it; returns the new length. Writing no
    /// bytes changes nothing.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else; `TooLong` if the result would be.
    pub fn set_range(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<usize, Error> {
        if bytes.is_empty() {
            return self.strlen(key);
        }
        let end = offset.saturating_add(bytes.len());
        check_size(end)?;
        let hash = self.hash(key);
        if self.used(hash, key).is_none() {
            self.check_key("key", key)?;
            self.insert(hash, Item::text(key, b"", 0, 0));
        }
        let item = self.used(hash, key).expect("it is there or was made");
        item.as_text().ok_or(Error::WrongType)?;
        let text = item.text_mut().ok_or(Error::WrongType)?;
        if text.len() < end {
            text.resize(end, 0);
        }
        text[offset..end].copy_from_slice(bytes);
        let size = text.len();
        self.changed(&Change::SetRange { key, offset: offset as u64, bytes });
        Ok(size)
    }

    /// Adds to the integer under a key, which counts as zero if it is not there. Concurrent
    /// increments at other nodes add up.
    ///
    /// # Errors
    ///
    /// `NotInteger` if the string is no integer, `Overflow` if the sum is none, `WrongType`.
    pub fn incr(&mut self, key: &[u8], by: i64) -> Result<i64, Error> {
        let hash = self.hash(key);
        let sum = if let Some(item) = self.used(hash, key) {
            let text = item.as_text().ok_or(Error::WrongType)?;
            let old = parse_int(text).ok_or(Error::NotInteger)?;
            let sum = old.checked_add(by).ok_or(Error::Overflow)?;
            let expire_ms = item.expire_ms();
            item.set_text(int_text(sum, &mut [0; 20]), expire_ms);
            sum
        } else {
            self.check_key("key", key)?;
            self.insert(hash, Item::text(key, int_text(by, &mut [0; 20]), 0, 0));
            by
        };
        self.changed(&Change::Incr { key, by });
        Ok(sum)
    }

    /// Takes the string under a key away and returns it.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn get_del(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let Some(value) = self.get(key)?.map(<[u8]>::to_vec) else { return Ok(None) };
        self.del(key);
        Ok(Some(value))
    }
}

fn check_size(size: usize) -> Result<(), Error> {
    if VALUE_BYTES_MAX < size {
        return Err(Error::TooLong { what: "string", size, size_max: VALUE_BYTES_MAX });
    }
    Ok(())
}

const _: () = assert!(TEXT_BYTES_MAX < VALUE_BYTES_MAX);
