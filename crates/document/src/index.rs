//! Index entries: kept by writers, built in steps, dropped, and expired.
//!
//! The value of an entry is empty if its key says exactly which values the document has. Otherwise,
//! where the key cannot tell 1 from 1.0 or null from nothing, it is a CBOR map: the n-th part under
//! the text n, the id under "i". That is what lets an index answer without the document.

use std::collections::BTreeMap;

use kumiko_base::tuple::{Element, Reader};
use kumiko_base::{Value, cbor};
use kumiko_kv::{Range, Read, Scan};

use crate::catalog::{self, Collection, INDEXES_MAX, Index, PATHS_MAX, PRIMARY, State};
use crate::keys::{self, Place};
use crate::path::{self, Part, field};
use crate::{Error, Work, documents, order};

/// A collection with no more documents than this has its index built at once.
pub const INLINE_DOCUMENTS_MAX: usize = 200;

/// The entries of one document in one index: key bytes behind the index's prefix and place apart,
/// and values.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The entries of `document` in `index`, and which paths met an array.
pub fn entries(
    index: &Index,
    place: &Place,
    document: &Value,
) -> Result<(Entries, Vec<bool>), Error> {
    if index.partial.as_ref().is_some_and(|filter| !filter.matches(document)) {
        return Ok((Entries::new(), vec![false; index.paths.len()]));
    }
    let paths: Vec<&str> = index.paths.iter().map(|(path, _)| path.as_str()).collect();
    let found = path::parts(document, &paths)?;
    let many = found.multikey.iter().any(|it| *it);
    let mut entries = Entries::new();
    for row in &found.rows {
        if index.sparse && row.iter().all(|part| *part == Part::Missing) {
            continue;
        }
        let mut bytes = Vec::new();
        for (part, (_, down)) in row.iter().zip(&index.paths) {
            encode_part(*part, *down, &mut bytes);
        }
        let value = if many { Vec::new() } else { exact(row, &bytes, index, place, document)? };
        entries.insert(bytes, value);
    }
    Ok((entries, found.multikey))
}

/// Appends one component of a key.
pub(crate) fn encode_part(part: Part<'_>, down: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match part {
        Part::Missing => order::encode(&Value::Null, out),
        Part::Empty => order::encode_undefined(out),
        Part::Is(value) => order::encode(value, out),
    }
    if down {
        order::complement(out, start);
    }
}

fn exact(
    row: &[Part<'_>],
    bytes: &[u8],
    index: &Index,
    place: &Place,
    document: &Value,
) -> Result<Vec<u8>, Error> {
    let id = documents::id(document)?;
    let said = decode_parts(index, bytes);
    let same = said.is_some_and(|said| {
        said.iter().zip(row).all(|(said, part)| matches!(part, Part::Is(value) if *value == said))
    });
    if same && decode_place(place).as_ref() == Some(id) {
        return Ok(Vec::new());
    }
    let mut fields = vec![("i".to_string(), id.clone())];
    for (n, part) in row.iter().enumerate() {
        if let Part::Is(value) = part {
            fields.push((n.to_string(), (*value).clone()));
        }
    }
    Ok(cbor::encode(&Value::Map(fields))?)
}

fn decode_parts(index: &Index, bytes: &[u8]) -> Option<Vec<Value>> {
    let mut rest = bytes.to_vec();
    let mut values = Vec::new();
    for (_, down) in &index.paths {
        if *down {
            order::complement(&mut rest, 0);
        }
        let (value, size) = order::decode_simple(&rest)?;
        rest.drain(..size);
        if *down {
            order::complement(&mut rest, 0);
        }
        values.push(value);
    }
    rest.is_empty().then_some(values)
}

fn decode_place(place: &Place) -> Option<Value> {
    let (kind, rest) = place.0.split_first()?;
    if *kind == 0x13 {
        return order::decode_simple(rest).map(|(value, _)| value);
    }
    Some(match Reader::new(rest).element().ok()?? {
        Element::Null => Value::Null,
        element => match (element.as_text(), element.as_i64()) {
            (Some(text), _) => Value::Text(text.into()),
            (_, Some(whole)) => i32::try_from(whole).map_or(Value::I64(whole), Value::I32),
            _ => return None,
        },
    })
}

/// What an entry says of its document: the top-level fields that the index is over, and the id.
/// `None` if it cannot tell.
pub(crate) fn covered(index: &Index, parts: &[u8], place: &Place, value: &[u8]) -> Option<Value> {
    let mut fields = Vec::new();
    if value.is_empty() {
        fields.push(("_id".to_string(), decode_place(place)?));
        let values = decode_parts(index, parts)?;
        fields.extend(index.paths.iter().map(|(path, _)| path.clone()).zip(values));
    } else {
        let stored = cbor::decode(value).ok()?;
        fields.push(("_id".to_string(), field(&stored, "i")?.clone()));
        for (n, (path, _)) in index.paths.iter().enumerate() {
            if let Some(value) = field(&stored, &n.to_string()) {
                fields.push((path.clone(), value.clone()));
            }
        }
    }
    Some(Value::Map(fields))
}

/// Brings all entries of one document from `old` to `new`.
///
/// # Errors
///
/// `Duplicate` if a unique index holds the new value for another document.
pub fn keep(
    work: &mut Work<'_>,
    collection: &mut Collection,
    place: &Place,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<(), Error> {
    let mut flags_changed = false;
    for n in 0..collection.indexes.len() {
        let index = &collection.indexes[n];
        if untouched(index, old, new) {
            continue;
        }
        let none = || (Entries::new(), vec![false; index.paths.len()]);
        let (before, _) = old.map_or_else(|| Ok(none()), |old| entries(index, place, old))?;
        let (after, multikey) = new.map_or_else(|| Ok(none()), |new| entries(index, place, new))?;
        let prefix = collection.index_prefix(&index.name);
        for (parts, _) in before.iter().filter(|(parts, _)| !after.contains_key(*parts)) {
            work.txn.del(&keys::entry(&prefix, parts, place)?)?;
        }
        for (parts, value) in &after {
            if before.get(parts) == Some(value) {
                continue;
            }
            if index.unique && !before.contains_key(parts) {
                check_unique(work, collection, index, parts, place, new)?;
            }
            work.txn.put(&keys::entry(&prefix, parts, place)?, value)?;
        }
        flags_changed |= join_flags(&mut collection.indexes[n], &multikey);
    }
    if flags_changed {
        catalog::record(work, collection)?;
    }
    Ok(())
}

fn join_flags(index: &mut Index, multikey: &[bool]) -> bool {
    let mut changed = false;
    for (flag, now) in index.multikey.iter_mut().zip(multikey) {
        changed |= *now && !*flag;
        *flag |= now;
    }
    changed
}

/// Whether nothing that the index looks at differs.
fn untouched(index: &Index, old: Option<&Value>, new: Option<&Value>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return false };
    if index.partial.is_some() {
        return false;
    }
    index.paths.iter().all(|(path, _)| {
        let root = path.split('.').next().unwrap_or(path);
        field(old, root) == field(new, root)
    })
}

fn check_unique(
    work: &mut Work<'_>,
    collection: &Collection,
    index: &Index,
    parts: &[u8],
    place: &Place,
    document: Option<&Value>,
) -> Result<(), Error> {
    let prefix = collection.index_prefix(&index.name);
    let range = Range::prefix(&[prefix.as_slice(), parts].concat());
    for (key, _) in work.txn.scan(&Scan::new(range).rows(2))?.rows {
        let other = keys::split_entry(&key[prefix.len()..]);
        // A longer entry that merely begins with the same bytes does not clash: no part is the
        // beginning of another, so lengths decide.
        if other.is_some_and(|(others, at)| others == parts && at != *place) {
            let value = |path: &str| {
                document.and_then(|it| path::plain(it, path)).cloned().unwrap_or(Value::Null)
            };
            let key = index.paths.iter().map(|(path, _)| (path.clone(), value(path)));
            let key = Value::Map(key.collect());
            return Err(Error::Duplicate { index: index.name.clone(), key });
        }
    }
    Ok(())
}

/// Adds an index to a collection. It is complete at once if the collection is small; otherwise
/// writers keep it from now on, and [`build_step`] must be called until it is ready.
pub fn create(
    work: &mut Work<'_>,
    collection: &mut Collection,
    mut index: Index,
) -> Result<State, Error> {
    if index.paths.is_empty() || PATHS_MAX < index.paths.len() {
        let why = format!("an index has 1 to {PATHS_MAX} paths");
        return Err(Error::Invalid(why));
    }
    if index.name == PRIMARY || collection.index(&index.name).is_some() {
        return Err(Error::Exists(format!("index {}", index.name)));
    }
    if INDEXES_MAX <= collection.indexes.len() + 1 {
        let size = collection.indexes.len() + 2;
        return Err(Error::TooLarge { what: "indexes", size, size_max: INDEXES_MAX });
    }
    index.state = State::Building;
    index.multikey = vec![false; index.paths.len()];
    let name = index.name.clone();
    collection.indexes.push(index);
    catalog::record(work, collection)?;
    match build(work, collection, &name, INLINE_DOCUMENTS_MAX)? {
        Step::Done => Ok(State::Ready),
        Step::More { .. } => Ok(State::Building),
    }
}

/// How a step of an index build ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The index is ready.
    Done,
    /// Call again.
    More {
        /// How many documents have been taken in so far.
        documents: u64,
    },
}

/// Takes in up to `documents_max` further documents. May be stopped and resumed at any time, by
/// anybody; two at once cost one of them a conflict.
///
/// # Errors
///
/// `Duplicate` if the index is to be unique and two documents clash: drop it.
pub fn build_step(
    work: &mut Work<'_>,
    database: &str,
    name: &str,
    index: &str,
    documents_max: usize,
) -> Result<Step, Error> {
    let mut collection = catalog::load(work.txn, database, name)?;
    match collection.index(index) {
        None => Err(Error::NotFound(format!("index {index}"))),
        Some(index) if index.state == State::Ready => Ok(Step::Done),
        Some(_) => build(work, &mut collection, index, documents_max),
    }
}

fn build(
    work: &mut Work<'_>,
    collection: &mut Collection,
    name: &str,
    documents_max: usize,
) -> Result<Step, Error> {
    let at = keys::progress(&collection.database, &collection.stored, name);
    let mut progress = Progress::from_bytes(work.txn.get(&at, Read::Serializable)?.as_deref());
    let n = collection.indexes.iter().position(|it| it.name == name);
    let mut index = collection.indexes[n.expect("the caller found it")].clone();
    let ranges = collection.prefixes().all();
    let mut left = documents_max;
    while let Some(range) = ranges.get(progress.range as usize) {
        let start = range.start.clone().max(progress.next.clone());
        let scan = Scan::new(Range::new(start, range.end.clone())).rows(left);
        let page = work.txn.scan(&scan)?;
        left -= page.rows.len();
        for (key, bytes) in &page.rows {
            let read = Read::Serializable;
            let document = documents::join(work.txn, collection, key, bytes, read)?;
            let Some(place) = collection.prefixes().place(key) else { continue };
            take_in(work, collection, &mut index, &place, &document)?;
            progress.documents += 1;
        }
        if let Some(rest) = page.rest {
            progress.next = rest.start;
        } else {
            (progress.range, progress.next) = (progress.range + 1, Vec::new());
        }
        if left == 0 && (progress.range as usize) < ranges.len() {
            progress.multikey = index.multikey.clone();
            work.txn.put(&at, &progress.to_bytes()?)?;
            return Ok(Step::More { documents: progress.documents });
        }
    }
    for flags in [&index.multikey.clone(), &progress.multikey] {
        join_flags(&mut index, flags);
    }
    index.state = State::Ready;
    let n = n.expect("the caller found it");
    join_flags(&mut index, &collection.indexes[n].multikey.clone());
    collection.indexes[n] = index;
    catalog::record(work, collection)?;
    work.txn.del(&at)?;
    Ok(Step::Done)
}

fn take_in(
    work: &mut Work<'_>,
    collection: &Collection,
    index: &mut Index,
    place: &Place,
    document: &Value,
) -> Result<(), Error> {
    let (entries, multikey) = entries(index, place, document)?;
    let prefix = collection.index_prefix(&index.name);
    for (parts, value) in &entries {
        if index.unique {
            check_unique(work, collection, index, parts, place, Some(document))?;
        }
        work.txn.put(&keys::entry(&prefix, parts, place)?, value)?;
    }
    join_flags(index, &multikey);
    Ok(())
}

/// How far a build has come.
#[derive(Debug, Default)]
struct Progress {
    /// Which of the collection's ranges is being read.
    range: u32,
    /// The first key not yet read in it.
    next: Vec<u8>,
    documents: u64,
    multikey: Vec<bool>,
}

impl Progress {
    fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let multikey = self.multikey.iter().map(|it| Value::Bool(*it)).collect();
        Ok(cbor::encode(&Value::Array(vec![
            Value::I64(i64::from(self.range)),
            Value::Bytes(self.next.clone()),
            Value::I64(self.documents.cast_signed()),
            Value::Array(multikey),
        ]))?)
    }

    /// Progress that cannot be read starts over, which is slow and right.
    fn from_bytes(bytes: Option<&[u8]>) -> Progress {
        let Some(Ok(Value::Array(fields))) = bytes.map(cbor::decode) else {
            return Progress::default();
        };
        let [Value::I64(range), Value::Bytes(next), Value::I64(documents), Value::Array(multikey)] =
            fields.as_slice()
        else {
            return Progress::default();
        };
        Progress {
            range: *range as u32,
            next: next.clone(),
            documents: documents.cast_unsigned(),
            multikey: multikey.iter().map(|it| *it == Value::Bool(true)).collect(),
        }
    }
}

/// How many documents a build has taken in; `None` if there is no build under way.
pub fn progress(
    txn: &mut dyn kumiko_kv::Txn,
    collection: &Collection,
    index: &str,
) -> Result<Option<u64>, Error> {
    let at = keys::progress(&collection.database, &collection.stored, index);
    let bytes = txn.get(&at, Read::Snapshot)?;
    Ok(bytes.map(|bytes| Progress::from_bytes(Some(&bytes)).documents))
}

/// Removes an index and all its entries.
pub fn drop(work: &mut Work<'_>, collection: &mut Collection, name: &str) -> Result<(), Error> {
    let Some(n) = collection.indexes.iter().position(|it| it.name == name) else {
        return Err(Error::NotFound(format!("index {name}")));
    };
    collection.indexes.remove(n);
    catalog::record(work, collection)?;
    work.txn.clear(&Range::prefix(&collection.index_prefix(name)))?;
    Ok(work.txn.del(&keys::progress(&collection.database, &collection.stored, name))?)
}

/// Removes up to `documents_max` documents whose time has come by an expiring index. Says how many.
pub fn expire(
    work: &mut Work<'_>,
    collection: &mut Collection,
    name: &str,
    documents_max: usize,
) -> Result<usize, Error> {
    let Some(index) = collection.index(name) else { return Ok(0) };
    let (Some(seconds), [(path, down)]) = (index.expire_s, index.paths.as_slice()) else {
        return Ok(0);
    };
    let before = work.now_ms.saturating_sub(seconds.saturating_mul(1000));
    let (path, prefix) = (path.clone(), collection.index_prefix(name));
    let mut bounds = [i64::MIN, before].map(|ms| {
        let mut key = prefix.clone();
        encode_part(Part::Is(&Value::DateTime(ms)), *down, &mut key);
        key
    });
    bounds.sort();
    let [start, mut end] = bounds;
    end.push(0xFF);
    let page = work.txn.scan(&Scan::new(Range::new(start, end)).rows(documents_max))?;
    let mut removed = 0;
    for (key, _) in page.rows {
        let Some((_, place)) = keys::split_entry(&key[prefix.len()..]) else { continue };
        let read = Read::Serializable;
        let Some(old) = documents::at(work.txn, collection, &place, read)? else { continue };
        let due = path::visit(&old, &path, &mut |value| match value {
            Some(Value::DateTime(ms)) => *ms <= before,
            Some(Value::Array(list)) => {
                list.iter().any(|it| matches!(it, Value::DateTime(ms) if *ms <= before))
            }
            _ => false,
        });
        if due {
            documents::remove(work, collection, &old)?;
            removed += 1;
        }
    }
    Ok(removed)
}
