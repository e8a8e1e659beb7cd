//! Hashes: fields and values under one key.

use super::fields::Fields;
use super::item::{Holds, Item};
use super::{Below, Change, Db, Error};

/// A field and its value.
pub type Field<'a> = (&'a [u8], &'a [u8]);

impl Db<'_> {
    pub(crate) fn fields(&mut self, key: &[u8]) -> Result<Option<&mut Fields>, Error> {
        let hash = self.hash(key);
        match self.used(hash, key) {
            None => Ok(None),
            Some(Item::Object(object)) => match &mut object.holds {
                Holds::Fields(fields) => Ok(Some(fields)),
                _ => Err(Error::WrongType),
            },
            Some(Item::Short(_)) => Err(Error::WrongType),
        }
    }

    /// Sets a field; true if it is new.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else; `TooLong` for a key or field to be replicated.
    pub fn hset(&mut self, key: &[u8], field: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.check_key("field", field)?;
        let hashing = self.shared.hashing.clone();
        let limits = self.shared.settings.thresholds;
        let fresh = if let Some(fields) = self.fields(key)? {
            fields.set(&hashing, &limits, field, value)
        } else {
            self.check_key("key", key)?;
            let mut fields = Fields::new();
            fields.set(&hashing, &limits, field, value);
            self.insert(hashing.of(key), Item::object(key, Holds::Fields(fields), 0, 0));
            true
        };
        self.changed(&Change::HashSet { key, field, value });
        Ok(fresh)
    }

    /// The value of a field.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn hget(&mut self, key: &[u8], field: &[u8]) -> Result<Option<&[u8]>, Error> {
        let hashing = self.shared.hashing.clone();
        Ok(self.fields(key)?.and_then(|it| it.get(&hashing, field)))
    }

    /// Deletes a field; true if it was there. The key goes with its last field.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn hdel(&mut self, key: &[u8], field: &[u8]) -> Result<bool, Error> {
        let hashing = self.shared.hashing.clone();
        let Some(fields) = self.fields(key)? else { return Ok(false) };
        if !fields.del(&hashing, field) {
            return Ok(false);
        }
        if fields.len() == 0 {
            self.take(hashing.of(key), key);
        }
        self.changed(&Change::HashDel { key, field });
        Ok(true)
    }

    /// How many fields there are.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn hlen(&mut self, key: &[u8]) -> Result<usize, Error> {
        Ok(self.fields(key)?.map_or(0, |it| it.len()))
    }

    /// All fields and values, in no order.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn hiter(
        &mut self,
        key: &[u8],
    ) -> Result<impl Iterator<Item = (&[u8], &[u8])> + use<'_>, Error> {
        Ok(self.fields(key)?.map(|it| it.iter()).into_iter().flatten())
    }

    /// Adds to the integer in a field, which counts as zero if it is not there.
    ///
    /// # Errors
    ///
    /// `NotInteger`, `Overflow`, `WrongType`, `TooLong`.
    pub fn hincr(&mut self, key: &[u8], field: &[u8], by: i64) -> Result<i64, Error> {
        let old = match self.hget(key, field)? {
            Some(value) => super::parse_int(value).ok_or(Error::NotInteger)?,
            None => 0,
        };
        let sum = old.checked_add(by).ok_or(Error::Overflow)?;
        self.hset(key, field, super::fields::int_text(sum, &mut [0; 20]))?;
        Ok(sum)
    }

    /// Walks the fields as `scan` walks keys.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn hscan(
        &mut self,
        key: &[u8],
        cursor: u64,
        count: usize,
        visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64, Error> {
        let hashing = self.shared.hashing.clone();
        Ok(self.fields(key)?.map_or(0, |it| it.scan(&hashing, cursor, count, visit)))
    }

    /// A random field with its value.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn hrandom(&mut self, key: &[u8], below: Below<'_>) -> Result<Option<Field<'_>>, Error> {
        Ok(self.fields(key)?.and_then(|it| it.random(below)))
    }
}
