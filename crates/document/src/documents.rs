//! Documents: read one, insert, replace, remove; their index entries follow in the same transaction.
//!
//! A document that fits one value is stored as its CBOR. A longer one leaves a note at its key, and
//! its CBOR lies in fragments:
//!
//! ```text
//! FF 01 size (4, BE) count (4, BE)
//! ```
//!
//! No CBOR begins with FF.

use kumiko_base::limits::VALUE_BYTES_MAX;
use kumiko_base::{Value, cbor, tuple};
use kumiko_kv::{Read, Scan, Txn};

use crate::catalog::{Collection, PRIMARY};
use crate::feed::{Change, Operation};
use crate::keys::Place;
use crate::path::field;
use crate::{Error, Work, index};

/// The payload of one fragment: under the engine's limit, with room for what it adds.
pub const FRAGMENT_BYTES: usize = 90_000;
/// The longest document, as CBOR. One transaction must hold it with its keys and index entries; a
/// document this long is not repeated in the change log.
pub const DOCUMENT_BYTES_MAX: usize = 9_000_000;

const NOTE: [u8; 2] = [0xFF, 0x01];

const _: () = {
    assert!(FRAGMENT_BYTES < VALUE_BYTES_MAX);
    assert!(DOCUMENT_BYTES_MAX < kumiko_base::limits::TXN_BYTES_MAX);
    assert!(crate::feed::IMAGE_BYTES_MAX < DOCUMENT_BYTES_MAX);
};

/// The id of a document, which must have one.
pub fn id(document: &Value) -> Result<&Value, Error> {
    field(document, "_id").ok_or_else(|| Error::Invalid("a document needs an _id".into()))
}

/// The document with this id.
pub fn get(
    txn: &mut dyn Txn,
    collection: &Collection,
    id: &Value,
    read: Read,
) -> Result<Option<Value>, Error> {
    at(txn, collection, &Place::of(id)?, read)
}

/// The document at this place.
pub fn at(
    txn: &mut dyn Txn,
    collection: &Collection,
    place: &Place,
    read: Read,
) -> Result<Option<Value>, Error> {
    let key = collection.prefixes().document(place);
    match txn.get(&key, read)? {
        Some(bytes) => join(txn, collection, &key, &bytes, read).map(Some),
        None => Ok(None),
    }
}

/// The document whose row is `key` and `bytes`: reads its fragments, if it has any.
pub fn join(
    txn: &mut dyn Txn,
    collection: &Collection,
    key: &[u8],
    bytes: &[u8],
    read: Read,
) -> Result<Value, Error> {
    let Some(note) = bytes.strip_prefix(&NOTE) else { return decode(collection, key, bytes) };
    let short = || Error::Corrupt("a document's fragments do not add up to its size".into());
    let place = collection.prefixes().place(key).ok_or_else(short)?;
    let size = note.first_chunk::<4>().map(|size| u32::from_be_bytes(*size)).ok_or_else(short)?;
    let mut scan = Scan::new(collection.prefixes().fragments(&place));
    scan.read = read;
    let mut whole = Vec::new();
    txn.visit(&scan, &mut |_, fragment| {
        whole.extend_from_slice(fragment);
        kumiko_kv::Flow::Go
    })?;
    if whole.len() != size as usize {
        return Err(short());
    }
    decode(collection, key, &whole)
}

fn decode(collection: &Collection, key: &[u8], bytes: &[u8]) -> Result<Value, Error> {
    let document = cbor::decode(bytes)?;
    if !matches!(document, Value::Map(_)) {
        return Err(Error::Corrupt("a stored document is not a map".into()));
    }
    if !collection.foreign || field(&document, "_id").is_some() {
        return Ok(document);
    }
    // A table's row has its primary elements in its key; one of them is the id, several are a map.
    let Value::Map(mut fields) = document else { return Ok(document) };
    let elements = tuple::unpack(key)?;
    let names = elements.get(3..).unwrap_or_default().chunks(2);
    let mut ids: Vec<(String, Value)> = names
        .filter_map(|pair| pair.first()?.as_text())
        .filter_map(|name| Some((name.into(), field_of(&fields, name)?.clone())))
        .collect();
    let id = if ids.len() == 1 { ids.remove(0).1 } else { Value::Map(ids) };
    fields.insert(0, ("_id".into(), id));
    Ok(Value::Map(fields))
}

fn field_of<'a>(fields: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    fields.iter().find(|(it, _)| it == name).map(|(_, value)| value)
}

/// Puts a new document.
///
/// # Errors
///
/// `Duplicate` if its id, or a unique index's value, is there already.
pub fn insert(
    work: &mut Work<'_>,
    collection: &mut Collection,
    document: &Value,
) -> Result<(), Error> {
    writable(collection)?;
    let id = id(document)?;
    if matches!(id, Value::Array(_) | Value::Regex(..)) {
        return Err(Error::Invalid("an _id is neither an array nor a regular expression".into()));
    }
    let place = Place::of(id)?;
    if work.txn.get(&collection.prefixes().document(&place), Read::Serializable)?.is_some() {
        let key = Value::Map(vec![("_id".into(), id.clone())]);
        return Err(Error::Duplicate { index: PRIMARY.into(), key });
    }
    index::keep(work, collection, &place, None, Some(document))?;
    put(work, collection, &place, document)?;
    let mut change = Change::of(collection, Operation::Insert);
    change.id = Some(id.clone());
    work.note_with(change, |change| change.after = Some(document.clone()))
}

/// Puts `new` in place of `old`, which the caller has just read in this transaction. The ids are
/// equal. Says what the change log should call it by `operation`.
pub fn replace(
    work: &mut Work<'_>,
    collection: &mut Collection,
    old: &Value,
    new: &Value,
    operation: Operation,
) -> Result<(), Error> {
    writable(collection)?;
    let place = Place::of(id(old)?)?;
    assert_eq!(place, Place::of(id(new)?)?, "a document keeps its id");
    index::keep(work, collection, &place, Some(old), Some(new))?;
    erase_fragments(work, collection, &place)?;
    put(work, collection, &place, new)?;
    let mut change = Change::of(collection, operation);
    change.id = Some(id(new)?.clone());
    work.note_with(change, |change| {
        change.before = Some(old.clone());
        change.after = Some(new.clone());
    })
}

/// Removes `old`, which the caller has just read in this transaction.
pub fn remove(work: &mut Work<'_>, collection: &mut Collection, old: &Value) -> Result<(), Error> {
    writable(collection)?;
    let place = Place::of(id(old)?)?;
    index::keep(work, collection, &place, Some(old), None)?;
    erase_fragments(work, collection, &place)?;
    work.txn.del(&collection.prefixes().document(&place))?;
    let mut change = Change::of(collection, Operation::Delete);
    change.id = Some(id(old)?.clone());
    work.note(change)
}

fn writable(collection: &Collection) -> Result<(), Error> {
    if collection.foreign { Err(Error::ReadOnly(collection.namespace())) } else { Ok(()) }
}

fn put(
    work: &mut Work<'_>,
    collection: &Collection,
    place: &Place,
    document: &Value,
) -> Result<(), Error> {
    let bytes = cbor::encode(document).map_err(|error| Error::Invalid(error.to_string()))?;
    let key = collection.prefixes().document(place);
    if bytes.len() <= FRAGMENT_BYTES {
        return Ok(work.txn.put(&key, &bytes)?);
    }
    let size = bytes.len();
    if DOCUMENT_BYTES_MAX < size {
        return Err(Error::TooLarge { what: "document", size, size_max: DOCUMENT_BYTES_MAX });
    }
    let mut count = 0_u32;
    for fragment in bytes.chunks(FRAGMENT_BYTES) {
        work.txn.put(&collection.prefixes().fragment(place, count), fragment)?;
        count += 1;
    }
    let note = [&NOTE, (size as u32).to_be_bytes().as_slice(), &count.to_be_bytes()].concat();
    Ok(work.txn.put(&key, &note)?)
}

fn erase_fragments(
    work: &mut Work<'_>,
    collection: &Collection,
    place: &Place,
) -> Result<(), Error> {
    let key = collection.prefixes().document(place);
    let long = work.txn.get(&key, Read::Snapshot)?.is_some_and(|it| it.starts_with(&NOTE));
    if long {
        work.txn.clear(&collection.prefixes().fragments(place))?;
    }
    Ok(())
}
