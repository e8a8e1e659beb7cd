//! What a reader sees of an entry.

use super::join::Kind;
use super::record::{Member, Record, Register, Scored, text_of};
use super::{Entry, Stamp};
use crate::Error;
use crate::index::Index;
use crate::live::{Type, parse_int};

/// What a reader sees.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// A string.
    Text(Vec<u8>),
    /// Fields and values, by field.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// Members.
    Set(Vec<Vec<u8>>),
    /// Members with scores.
    Zset(Vec<(Vec<u8>, f64)>),
    /// Elements in order.
    List(Vec<Vec<u8>>),
}

/// The parts of an entry that hold values, by the type they show as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// The string or the counter.
    Text,
    /// The hash.
    Hash,
    /// The set.
    Set,
    /// The sorted set.
    Zset,
    /// The list.
    List,
}

impl Shape {
    /// The type that a client is told.
    pub fn kind(self) -> Type {
        match self {
            Shape::Text => Type::String,
            Shape::Hash => Type::Hash,
            Shape::Set => Type::Set,
            Shape::Zset => Type::Zset,
            Shape::List => Type::List,
        }
    }
}

/// The newest stamp of a visible record. With `any`, the first one found will do.
fn newest_shown<K: Kind>(index: &Index, any: bool) -> Result<Option<Stamp>, Error> {
    let mut newest = None;
    for it in index {
        let it = it?;
        let shown = K::Of::read(&it.key_bytes()?, it.value)?.shown();
        newest = newest.max(shown);
        if any && newest.is_some() {
            break;
        }
    }
    Ok(newest)
}

impl Entry {
    /// The type that shows, whatever the time is: of those that hold something, the one that
    /// changed last; at a tie the later in the order of [`Shape`].
    ///
    /// # Errors
    ///
    /// `Missing` if a cell is not here, `Encoding` if a record is malformed.
    pub fn shape(&self) -> Result<Option<Shape>, Error> {
        let filled = [&self.hash, &self.set, &self.zset, &self.list];
        let filled = filled.iter().filter(|it| !it.is_empty()).count();
        let alone = filled + usize::from(self.text.is_some() || !self.columns.is_empty()) <= 1;
        Ok(self.candidates(alone)?.max().map(|it| it.1))
    }

    /// The types that hold something, with the newest stamp of each; with `any`, some stamp of each.
    fn candidates(&self, any: bool) -> Result<impl Iterator<Item = (Stamp, Shape)>, Error> {
        let count = self.count()?;
        let text_stamp = self.text.as_ref().map(|it| it.0);
        let count_stamp = count.map(|_| self.counted);
        let candidates = [
            (text_stamp.max(count_stamp), Shape::Text),
            (newest_shown::<Register<'_>>(&self.hash, any)?, Shape::Hash),
            (newest_shown::<Member<'_>>(&self.set, any)?, Shape::Set),
            (newest_shown::<Scored<'_>>(&self.zset, any)?, Shape::Zset),
            (newest_shown::<Register<'_>>(&self.list, any)?, Shape::List),
        ];
        Ok(candidates.into_iter().filter_map(|(stamp, shape)| Some((stamp?, shape))))
    }

    /// Every type that holds something, with the newest stamp of what it shows.
    pub(crate) fn shapes(&self) -> Result<Vec<(Shape, Stamp)>, Error> {
        Ok(self.candidates(false)?.map(|(stamp, shape)| (shape, stamp)).collect())
    }

    /// Whether the key has expired.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        let at_ms = self.expiry.1;
        at_ms != 0 && at_ms <= i64::try_from(now_ms).unwrap_or(i64::MAX)
    }

    /// The string that shows, if the string shows.
    pub(crate) fn shown_text(&self) -> Result<Option<Vec<u8>>, Error> {
        let clamp = |n: i128| n.clamp(i64::MIN.into(), i64::MAX.into()).to_string().into_bytes();
        let count = self.count()?;
        let Some((_, cell)) = &self.text else { return Ok(count.map(clamp)) };
        let text = text_of(cell.view())?;
        Ok(Some(match (parse_int(&text), count) {
            (Some(base), Some(count)) => clamp(i128::from(base) + count),
            _ => text.into_owned(),
        }))
    }

    /// What a reader sees at `now_ms`.
    ///
    /// # Errors
    ///
    /// `Missing` if a cell is not here, `Encoding` if a record is malformed.
    pub fn shown(&self, now_ms: u64) -> Result<Option<Shown>, Error> {
        if self.is_expired(now_ms) {
            return Ok(None);
        }
        let Some(shape) = self.shape()? else { return Ok(None) };
        Ok(Some(match shape {
            Shape::Text => Shown::Text(self.shown_text()?.unwrap_or_default()),
            Shape::Hash => {
                let mut fields = Vec::new();
                self.each_field(|field, value| fields.push((field.to_vec(), value.to_vec())))?;
                Shown::Hash(fields)
            }
            Shape::Set => {
                let mut members = Vec::new();
                self.each_member(|member| members.push(member.to_vec()))?;
                members.sort();
                Shown::Set(members)
            }
            Shape::Zset => {
                let mut members = Vec::new();
                self.each_scored(|member, score| members.push((member.to_vec(), score)))?;
                members.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
                Shown::Zset(members)
            }
            Shape::List => {
                let mut elements = Vec::new();
                self.each_element(|_, element| elements.push(element.to_vec()))?;
                Shown::List(elements)
            }
        }))
    }

    /// The visible fields.
    pub(crate) fn each_field(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Error> {
        each_register(&self.hash, &mut visit)
    }

    /// The visible elements, with their positions, in order.
    pub(crate) fn each_element(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Error> {
        each_register(&self.list, &mut visit)
    }

    /// The visible members.
    pub(crate) fn each_member(&self, mut visit: impl FnMut(&[u8])) -> Result<(), Error> {
        for it in &self.set {
            let it = it?;
            let record = Member::read(&it.key_bytes()?, it.value)?;
            if record.is_present() {
                visit(&text_of(record.member)?);
            }
        }
        Ok(())
    }

    /// The visible members with their scores.
    pub(crate) fn each_scored(&self, mut visit: impl FnMut(&[u8], f64)) -> Result<(), Error> {
        for it in &self.zset {
            let it = it?;
            let record = Scored::read(&it.key_bytes()?, it.value)?;
            if record.is_present() {
                visit(&text_of(record.member)?, record.score);
            }
        }
        Ok(())
    }
}

fn each_register(index: &Index, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
    for it in index {
        let it = it?;
        let key = it.key_bytes()?;
        if let Some(value) = Register::read(&key, it.value)?.value {
            visit(&key, &text_of(value)?);
        }
    }
    Ok(())
}
