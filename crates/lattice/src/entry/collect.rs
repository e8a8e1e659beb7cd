//! Forgetting what was removed, and listing what changed.

use super::fold::Found;
use super::join::Kind;
use super::record::{Member, Record, Register, Scored, text_of};
use super::{Entry, Shape, Stamp};
use crate::Error;
use crate::index::{Batch, Index};

/// Without removed records from before `horizon`, and how many there were.
fn sweep<K: Kind>(index: &Index, horizon: Stamp) -> Result<(Index, usize), Error> {
    let mut batch = Batch::new();
    for it in index {
        let it = it?;
        let key = it.key_bytes()?;
        let record = K::Of::read(&key, it.value)?;
        if record.shown().is_none() && record.newest() < horizon {
            batch.remove(&key);
        }
    }
    Ok((index.update(&batch)?, batch.count()))
}

impl Entry {
    /// Drops removed fields, members and elements from before `horizon`; returns how many. Counts
    /// and resets stay: a column never starts again.
    pub(crate) fn collect(&mut self, horizon: Stamp) -> Result<usize, Error> {
        let mut count = 0;
        let mut keep = |(index, gone): (Index, usize)| {
            count += gone;
            index
        };
        self.hash = keep(sweep::<Register<'_>>(&self.hash, horizon)?);
        self.set = keep(sweep::<Member<'_>>(&self.set, horizon)?);
        self.zset = keep(sweep::<Scored<'_>>(&self.zset, horizon)?);
        self.list = keep(sweep::<Register<'_>>(&self.list, horizon)?);
        Ok(count)
    }

    /// Hands every field or member that a reader may see otherwise than in `before` to `visit`.
    pub(crate) fn each_change(
        &self,
        before: &Entry,
        shape: Shape,
        visit: &mut dyn FnMut(&[u8], Option<Found>),
    ) -> Result<(), Error> {
        let (old, new) = match shape {
            Shape::Hash => (&before.hash, &self.hash),
            Shape::Set => (&before.set, &self.set),
            _ => (&before.zset, &self.zset),
        };
        // Two cells may spell one text; what is there now comes last.
        let mut present: Vec<(Vec<u8>, Found)> = Vec::new();
        old.diff(new, &mut |it| {
            let key = it.key_bytes()?;
            let (name, now) = match shape {
                Shape::Hash => {
                    let now = it.theirs.map(|view| Register::read(&key, view)).transpose()?;
                    let value = now.and_then(|it| it.value).map(text_of).transpose()?;
                    (key.into_owned(), value.map(|it| Found::Value(it.into_owned())))
                }
                Shape::Set => {
                    let either = it.theirs.or(it.own).expect("one side differs");
                    let name = text_of(Member::read(&key, either)?.member)?.into_owned();
                    let now = it.theirs.map(|view| Member::read(&key, view)).transpose()?;
                    (name, now.filter(Member::is_present).map(|_| Found::Present))
                }
                _ => {
                    let either = it.theirs.or(it.own).expect("one side differs");
                    let name = text_of(Scored::read(&key, either)?.member)?.into_owned();
                    let now = it.theirs.map(|view| Scored::read(&key, view)).transpose()?;
                    (name, now.filter(Scored::is_present).map(|it| Found::Score(it.score)))
                }
            };
            match now {
                Some(found) => present.push((name, found)),
                None => visit(&name, None),
            }
            Ok(())
        })?;
        for (name, found) in present {
            visit(&name, Some(found));
        }
        Ok(())
    }
}
