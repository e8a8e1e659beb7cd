//! Lists: elements in order, cheap at both ends.

use super::item::{Holds, Item};
use super::sequence::Sequence;
use super::{Change, Db, Error};

/// One end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The left end, where index zero is.
    Front,
    /// The right end.
    Back,
}

impl Db<'_> {
    pub(crate) fn sequence(&mut self, key: &[u8]) -> Result<Option<&mut Sequence>, Error> {
        let hash = self.hash(key);
        match self.used(hash, key) {
            None => Ok(None),
            Some(Item::Object(object)) => match &mut object.holds {
                Holds::Sequence(sequence) => Ok(Some(sequence)),
                _ => Err(Error::WrongType),
            },
            Some(Item::Short(_)) => Err(Error::WrongType),
        }
    }

    /// Adds an element at one end; returns the new length.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else; `TooLong` for a key to be replicated.
    pub fn push(&mut self, key: &[u8], end: End, value: &[u8]) -> Result<usize, Error> {
        let hash = self.hash(key);
        let length = if let Some(sequence) = self.sequence(key)? {
            match end {
                End::Front => sequence.push_front(value),
                End::Back => sequence.push_back(value),
            }
            sequence.len()
        } else {
            self.check_key("key", key)?;
            let mut sequence = Sequence::default();
            sequence.push_back(value);
            self.insert(hash, Item::object(key, Holds::Sequence(sequence), 0, 0));
            1
        };
        let index = if end == End::Front { 0 } else { length as u64 - 1 };
        self.changed(&Change::ListInsert { key, index, value });
        Ok(length)
    }

    /// Takes the element at one end away. The key goes with its last element.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn pop(&mut self, key: &[u8], end: End) -> Result<Option<Vec<u8>>, Error> {
        let Some(sequence) = self.sequence(key)? else { return Ok(None) };
        let index = if end == End::Front { 0 } else { sequence.len() - 1 };
        let element = sequence.remove(index);
        self.list_gone(key, index, 1)?;
        Ok(Some(element))
    }

    /// Notes that elements went, and drops an empty list.
    fn list_gone(&mut self, key: &[u8], index: usize, count: usize) -> Result<(), Error> {
        let hash = self.hash(key);
        if self.sequence(key)?.is_some_and(|it| it.len() == 0) {
            self.take(hash, key);
        }
        self.changed(&Change::ListDel { key, index: index as u64, count: count as u64 });
        Ok(())
    }

    /// The number of elements.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn llen(&mut self, key: &[u8]) -> Result<usize, Error> {
        Ok(self.sequence(key)?.map_or(0, |it| it.len()))
    }

    /// The element at an index.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn lindex(&mut self, key: &[u8], index: usize) -> Result<Option<&[u8]>, Error> {
        Ok(self.sequence(key)?.and_then(|it| it.get(index)))
    }

    /// The elements from `start` on.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn lrange(
        &mut self,
        key: &[u8],
        start: usize,
    ) -> Result<impl Iterator<Item = &[u8]> + use<'_>, Error> {
        Ok(self.sequence(key)?.map(|it| it.range(start)).into_iter().flatten())
    }

    /// The elements from the last to the first.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn lrange_back(
        &mut self,
        key: &[u8],
    ) -> Result<impl Iterator<Item = &[u8]> + use<'_>, Error> {
        Ok(self.sequence(key)?.map(|it| it.iter_back()).into_iter().flatten())
    }

    /// Replaces the element at an index.
    ///
    /// # Errors
    ///
    /// `NoKey`, `OutOfRange`, `WrongType`.
    pub fn lset(&mut self, key: &[u8], index: usize, value: &[u8]) -> Result<(), Error> {
        let sequence = self.sequence(key)?.ok_or(Error::NoKey)?;
        if sequence.len() <= index {
            return Err(Error::OutOfRange);
        }
        sequence.set(index, value);
        self.changed(&Change::ListSet { key, index: index as u64, value });
        Ok(())
    }

    /// Puts an element before the one at `index`, or at the end if that is the length; returns the
    /// new length.
    ///
    /// # Errors
    ///
    /// `NoKey`, `OutOfRange`, `WrongType`.
    pub fn linsert(&mut self, key: &[u8], index: usize, value: &[u8]) -> Result<usize, Error> {
        let sequence = self.sequence(key)?.ok_or(Error::NoKey)?;
        if sequence.len() < index {
            return Err(Error::OutOfRange);
        }
        sequence.insert(index, value);
        let length = sequence.len();
        self.changed(&Change::ListInsert { key, index: index as u64, value });
        Ok(length)
    }

    /// Removes `count` elements from `index` on, as far as there are; returns how many.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn lremove(&mut self, key: &[u8], index: usize, count: usize) -> Result<usize, Error> {
        let Some(sequence) = self.sequence(key)? else { return Ok(0) };
        let count = count.min(sequence.len().saturating_sub(index));
        if count == 0 {
            return Ok(0);
        }
        for offset in (0..count).rev() {
            sequence.remove(index + offset);
        }
        self.list_gone(key, index, count)?;
        Ok(count)
    }

    /// Removes elements equal to `value`: up to `count_max` of them from the front or from the
    /// back; returns how many.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn lrem(
        &mut self,
        key: &[u8],
        value: &[u8],
        count_max: usize,
        from: End,
    ) -> Result<usize, Error> {
        let Some(sequence) = self.sequence(key)? else { return Ok(0) };
        let length = sequence.len();
        let mut found: Vec<usize> = match from {
            End::Front => {
                let all = sequence.iter().enumerate().filter(|it| it.1 == value);
                all.map(|it| it.0).take(count_max).collect()
            }
            End::Back => {
                let all = sequence.iter_back().enumerate().filter(|it| it.1 == value);
                all.map(|it| length - 1 - it.0).take(count_max).collect()
            }
        };
        found.sort_unstable_by(|a, b| b.cmp(a));
        for index in &found {
            self.lremove(key, *index, 1)?;
        }
        Ok(found.len())
    }

    /// Keeps the elements from `start` up to, and without, `end`.
    ///
    /// # Errors
    ///
    /// `WrongType` if the key holds something else.
    pub fn ltrim(&mut self, key: &[u8], start: usize, end: usize) -> Result<(), Error> {
        let length = self.llen(key)?;
        let end = end.min(length);
        if end <= start {
            self.lremove(key, 0, length)?;
            return Ok(());
        }
        self.lremove(key, end, length - end)?;
        self.lremove(key, 0, start)?;
        Ok(())
    }
}
