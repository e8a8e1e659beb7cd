//! Where things are in the keyspace.
//!
//! ```text
//! D 11  database                                      options
//! C 11  database, collection                          the catalog's record
//! O 11  database, stored name, "_id", id              a document whose id a tuple can carry
//! O 13  database, stored name, "_id" | id bytes       a document with any other id
//! O 12  database, stored name, place, n |                    fragment n of the document at place
//! I 13  database, stored name, index | parts | place | length of place (2, BE)
//! I 14  database, stored name, index                  how far a build has come
//! ```
//!
//! What stands behind the bar is outside the tuple. Ids that a tuple carries are null, text and
//! integral numbers of any type, which all become integers: 1, 1.0 and decimal 1.00 are one id. Id
//! bytes are those of `order`. A *place* is 11 or 13 and what follows the prefix of that kind: it
//! names a document inside its collection.

use kumiko_base::Value;
use kumiko_base::limits::KEY_BYTES_MAX;
use kumiko_base::tuple::Writer;
use kumiko_kv::Range;

use crate::number::Number;
use crate::{Error, order};

const VERSION: u8 = 0x10;
/// Documents and index entries that PuzzleDB writes too.
const PLAIN: u8 = VERSION | 1;
const FRAGMENT: u8 = VERSION | 2;
const ORDERED: u8 = VERSION | 3;
const FOREIGN_INDEX: u8 = VERSION | 2;
const INDEX: u8 = VERSION | 3;
const PROGRESS: u8 = VERSION | 4;

/// The longest key of an index entry or document: room is left for what engines add.
pub const PLACE_BYTES_MAX: usize = 4_000;

fn header(letter: u8, format: u8) -> Writer {
    Writer::new().bytes(&[letter, format])
}

/// The key of a database.
pub fn database(name: &str) -> Vec<u8> {
    header(b'D', PLAIN).text(name).finish()
}

/// All databases.
pub fn databases() -> Range {
    Range::prefix(&header(b'D', PLAIN).finish())
}

/// The key of a collection.
pub fn collection(database: &str, name: &str) -> Vec<u8> {
    header(b'C', PLAIN).text(database).text(name).finish()
}

/// All collections of a database.
pub fn collections(database: &str) -> Range {
    Range::prefix(&header(b'C', PLAIN).text(database).finish())
}

/// All documents of a database, of every kind of id, and what belongs to them.
pub fn database_ranges(database: &str) -> Vec<Range> {
    let of = |(letter, format)| Range::prefix(&header(letter, format).text(database).finish());
    ROWS.into_iter().map(of).collect()
}

/// All documents of a collection, of every kind of id, and what belongs to them.
pub fn collection_ranges(database: &str, stored: &str) -> Vec<Range> {
    let of = |(letter, format)| {
        Range::prefix(&header(letter, format).text(database).text(stored).finish())
    };
    ROWS.into_iter().map(of).collect()
}

const ROWS: [(u8, u8); 6] = [
    (b'O', PLAIN),
    (b'O', FRAGMENT),
    (b'O', ORDERED),
    (b'I', FOREIGN_INDEX),
    (b'I', INDEX),
    (b'I', PROGRESS),
];

/// The entries that PuzzleDB wrote for a collection.
pub fn foreign_entries(database: &str, stored: &str) -> Range {
    Range::prefix(&header(b'I', FOREIGN_INDEX).text(database).text(stored).finish())
}

/// What all entries of an index begin with.
pub fn index(database: &str, stored: &str, index: &str) -> Vec<u8> {
    header(b'I', INDEX).text(database).text(stored).text(index).finish()
}

/// The key of an index build's progress.
pub fn progress(database: &str, stored: &str, index: &str) -> Vec<u8> {
    header(b'I', PROGRESS).text(database).text(stored).text(index).finish()
}

/// Names one document inside its collection, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub Vec<u8>);

impl Place {
    /// The place of the document with this id.
    ///
    /// # Errors
    ///
    /// `TooLarge` if the id is too long for a key.
    pub fn of(id: &Value) -> Result<Place, Error> {
        let mut bytes = vec![PLAIN];
        let whole = Number::of(id).and_then(Number::to_i64);
        match (id, whole) {
            (Value::Text(text), _) => bytes.extend(Writer::new().text(text).finish()),
            (Value::RawText(text), _) => bytes.extend(Writer::new().text_bytes(text).finish()),
            (Value::Null, _) => bytes.extend(Writer::new().null().finish()),
            (_, Some(whole)) => bytes.extend(Writer::new().int(whole).finish()),
            _ => {
                bytes[0] = ORDERED;
                order::encode(id, &mut bytes);
            }
        }
        if PLACE_BYTES_MAX < bytes.len() {
            let (size, size_max) = (bytes.len(), PLACE_BYTES_MAX);
            return Err(Error::TooLarge { what: "id", size, size_max });
        }
        Ok(Place(bytes))
    }
}

/// The prefixes of one collection's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes {
    /// Every row of this kind, whatever its primary element is called.
    pub rows: Vec<u8>,
    plain: Vec<u8>,
    ordered: Vec<u8>,
    fragment: Vec<u8>,
}

impl Prefixes {
    /// The prefixes of a collection.
    pub fn new(database: &str, stored: &str) -> Prefixes {
        let of = |format| header(b'O', format).text(database).text(stored);
        Prefixes {
            rows: of(PLAIN).finish(),
            plain: of(PLAIN).text("_id").finish(),
            ordered: of(ORDERED).text("_id").finish(),
            fragment: of(FRAGMENT).finish(),
        }
    }

    /// The key of the document at `place`.
    pub fn document(&self, place: &Place) -> Vec<u8> {
        let (kind, rest) = place.0.split_first().expect("a place has its kind first");
        let prefix = if *kind == ORDERED { &self.ordered } else { &self.plain };
        [prefix, rest].concat()
    }

    /// The place of the document with this key. `None` if the key is another program's.
    pub fn place(&self, key: &[u8]) -> Option<Place> {
        let of = |kind: u8, prefix: &[u8]| {
            let rest = key.strip_prefix(prefix)?;
            Some(Place([&[kind], rest].concat()))
        };
        of(PLAIN, &self.plain).or_else(|| of(ORDERED, &self.ordered))
    }

    /// The key of fragment `n` of the document at `place`.
    pub fn fragment(&self, place: &Place, n: u32) -> Vec<u8> {
        // The place comes first, so that the fragments of a document lie together in order.
        let key = Writer::after(&self.fragment).bytes(&place.0);
        key.int(i64::from(n)).finish()
    }

    /// All fragments of the document at `place`.
    pub fn fragments(&self, place: &Place) -> Range {
        Range::prefix(&Writer::after(&self.fragment).bytes(&place.0).finish())
    }

    /// Every document, in no order that a user may count on.
    pub fn all(&self) -> Vec<Range> {
        vec![Range::prefix(&self.rows), Range::prefix(&self.ordered)]
    }

    /// The documents whose id's key bytes are in `[from, to)`, in order of the ids, as far as one
    /// range can be: integers, and other numbers, are apart. `from` and `to` are bytes of `order`.
    pub(crate) fn ordered(&self, from: &[u8], to: &[u8]) -> Range {
        Range::new([&self.ordered, from].concat(), [&self.ordered, to].concat())
    }

    /// The documents whose id is a tuple element with these bytes or up to them.
    pub(crate) fn plain(&self, from: &[u8], to: &[u8]) -> Range {
        Range::new([&self.plain, from].concat(), [&self.plain, to].concat())
    }
}

/// The key of an index entry.
///
/// # Errors
///
/// `TooLarge` if the parts are too long for a key.
pub fn entry(prefix: &[u8], parts: &[u8], place: &Place) -> Result<Vec<u8>, Error> {
    let size = prefix.len() + parts.len() + place.0.len() + 2;
    if KEY_BYTES_MAX < size {
        return Err(Error::TooLarge { what: "index key", size, size_max: KEY_BYTES_MAX });
    }
    let length = (place.0.len() as u16).to_be_bytes();
    Ok([prefix, parts, &place.0, &length].concat())
}

/// The parts and the place of an index entry whose key, without the index's prefix, is `rest`.
pub fn split_entry(rest: &[u8]) -> Option<(&[u8], Place)> {
    let (body, length) = rest.split_last_chunk::<2>()?;
    let at = body.len().checked_sub(usize::from(u16::from_be_bytes(*length)))?;
    let (parts, place) = body.split_at(at);
    match place.first() {
        Some(&PLAIN | &ORDERED) => Some((parts, Place(place.to_vec()))),
        _ => None,
    }
}
