//! Sets of members under one key.

use super::fields::Members;
use super::item::{Holds, Item};
use super::{Below, Change, Db, Error};

impl Db<'_> {
    pub(crate) fn members(&mut self, key: &[u8]) -> Result<Option<&mut Members>, Error> {
        let hash = self.hash(key);
        match self.used(hash, key) {
            None => Ok(None),
            Some(Item::Object(object)) => match &mut object.holds {
                Holds::Members(members) => Ok(Some(members)),
                _ => Err(Error::WrongType),
            },
            Some(Item::Short(_)) => Err(Error::WrongType),
        }
    }

    /// Adds a member; true if it is new.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else; `TooLong` for a key to be replicated.
    pub fn sadd(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Error> {
        let hashing = self.shared.hashing.clone();
        let limits = self.shared.settings.thresholds;
        if let Some(members) = self.members(key)? {
            if !members.add(&hashing, &limits, member) {
                self.repeated(&Change::SetAdd { key, member });
                return Ok(false);
            }
        } else {
            self.check_key("key", key)?;
            let mut members = Members::new();
            members.add(&hashing, &limits, member);
            self.insert(hashing.of(key), Item::object(key, Holds::Members(members), 0, 0));
        }
        self.changed(&Change::SetAdd { key, member });
        Ok(true)
    }

    /// Removes a member; true if it was there. The key goes with its last member.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn srem(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Error> {
        let hashing = self.shared.hashing.clone();
        let Some(members) = self.members(key)? else { return Ok(false) };
        if !members.del(&hashing, member) {
            return Ok(false);
        }
        if members.len() == 0 {
            self.take(hashing.of(key), key);
        }
        self.changed(&Change::SetDel { key, member });
        Ok(true)
    }

    /// True if the member is in the set.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn sismember(&mut self, key: &[u8], member: &[u8]) -> Result<bool, Error> {
        let hashing = self.shared.hashing.clone();
        Ok(self.members(key)?.is_some_and(|it| it.has(&hashing, member)))
    }

    /// How many members there are.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn scard(&mut self, key: &[u8]) -> Result<usize, Error> {
        Ok(self.members(key)?.map_or(0, |it| it.len()))
    }

    /// Calls `visit` for every member, in no order; integers in a small set come sorted.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn smembers(&mut self, key: &[u8], visit: impl FnMut(&[u8])) -> Result<(), Error> {
        if let Some(members) = self.members(key)? {
            members.each(visit);
        }
        Ok(())
    }

    /// Walks the members as `scan` walks keys.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn sscan(
        &mut self,
        key: &[u8],
        cursor: u64,
        count: usize,
        visit: impl FnMut(&[u8]),
    ) -> Result<u64, Error> {
        let hashing = self.shared.hashing.clone();
        Ok(self.members(key)?.map_or(0, |it| it.scan(&hashing, cursor, count, visit)))
    }

    /// A random member, which stays. SPOP is this and `srem`.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn srandom(&mut self, key: &[u8], below: Below<'_>) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.members(key)?.and_then(|it| it.random(below)))
    }
}
