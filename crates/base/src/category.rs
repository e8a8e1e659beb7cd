//! The register of key categories: who owns which part of the keyspace.
//!
//! Every key is a tuple whose first element is a header of two bytes, as a byte string:
//!
//! ```text
//! 01 letter version|format 00 ...
//! ```
//!
//! The high nibble of the second byte is the version, the low nibble the format of the value. Each
//! has three bits: bit 7 and bit 3 are zero. [`REGISTER`] is the one table of letters in use, and
//! `docs/format/keys.md` says the same in words.

use crate::Error;
use crate::tuple::{Reader, Writer};

/// The version that we write, and the only one there is.
pub const VERSION: u8 = 1;

/// The format of a value that is CBOR, and of all values that need no other number.
const FORMAT_PLAIN: u8 = 1;
/// The format of an index key: the entry of a secondary index. 1 was a primary index, long gone.
const FORMAT_SECONDARY: u8 = 2;

/// What a key is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// A database and its options.
    Database,
    /// A collection and its schema.
    Collection,
    /// A document.
    Document,
    /// An entry of a secondary index.
    Index,
    /// A message of the coordinator.
    Message,
    /// A state that the coordinator keeps, such as a node's.
    State,
    /// A job.
    Job,
    /// A node, by its address.
    Node,
    /// The newest event for a key.
    Event,
    /// A point of the event log.
    Point,
    /// A journal of the lattice database.
    Lattice,
    /// The change log of the document store.
    Feed,
    /// What a client's retried write is answered from.
    Retry,
    /// A user and the verifiers of its password.
    User,
}

/// One row of the register.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// The category.
    pub category: Category,
    /// The first byte of its header.
    pub letter: u8,
    /// The format of its values.
    pub format: u8,
    /// The last format that its owner writes beside; `format` if there is one only.
    pub format_last: u8,
    /// The crate that alone reads and writes these keys.
    pub owner: &'static str,
    /// The elements after the header, in words.
    pub elements: &'static str,
    /// What is stored under the key, in words.
    pub value: &'static str,
}

const fn row(
    category: Category,
    letter: u8,
    format: u8,
    [owner, elements, value]: [&'static str; 3],
) -> Registered {
    Registered { category, letter, format, format_last: format, owner, elements, value }
}

const fn up_to(format_last: u8, row: Registered) -> Registered {
    Registered { format_last, ..row }
}

use Category as C;

/// Every category, in the order of the enum.
#[rustfmt::skip]
pub const REGISTER: [Registered; 14] = [
    row(C::Database,   b'D', FORMAT_PLAIN, ["document", "database", "CBOR options"]),
    row(C::Collection, b'C', FORMAT_PLAIN, ["document", "database, collection", "CBOR schema"]),
    up_to(3, row(C::Document, b'O', FORMAT_PLAIN, ["document", "database, collection, (primary name, value)...", "CBOR object"])),
    up_to(4, row(C::Index, b'I', FORMAT_SECONDARY, ["document", "database, collection, (secondary name, value)..., (primary name, value)...", "empty"])),
    row(C::Message,    b'M', FORMAT_PLAIN, ["coordinator", "logical clock", "CBOR message"]),
    row(C::State,      b'S', FORMAT_PLAIN, ["coordinator", "state type, key...", "CBOR state"]),
    row(C::Job,        b'J', FORMAT_PLAIN, ["coordinator", "job id", "CBOR job"]),
    row(C::Node,       b'N', FORMAT_PLAIN, ["coordinator", "host", "CBOR state"]),
    row(C::Event,      b'E', FORMAT_PLAIN, ["coordinator", "event type, key...", "CBOR message"]),
    row(C::Point,      b'P', FORMAT_PLAIN, ["eventlog", "point, then outside the tuple a schema-0 key", "schema-0 value"]),
    row(C::Lattice,    b'L', FORMAT_PLAIN, ["lattice", "owner, database, then outside the tuple a schema-0 key", "schema-0 value"]),
    up_to(3, row(C::Feed, b'F', FORMAT_PLAIN, ["document", "setting, or clock or number, and chunk", "counter, or CBOR change"])),
    row(C::Retry,      b'R', FORMAT_PLAIN, ["mongo", "session id", "CBOR answers"]),
    row(C::User,       b'U', FORMAT_PLAIN, ["mongo", "database, user", "CBOR verifiers"]),
];

const _: () = {
    let mut index = 0;
    while index < REGISTER.len() {
        assert!(REGISTER[index].category as usize == index, "the register follows the enum");
        assert!(REGISTER[index].format <= REGISTER[index].format_last, "formats go up");
        assert!(
            0 < REGISTER[index].format && REGISTER[index].format_last < 8,
            "a format has three bits"
        );
        let mut other = 0;
        while other < index {
            assert!(REGISTER[index].letter != REGISTER[other].letter, "a letter has one owner");
            other += 1;
        }
        index += 1;
    }
};

impl Category {
    /// The row of this category in the register.
    pub const fn registered(self) -> &'static Registered {
        &REGISTER[self as usize]
    }

    /// The letter, as ASCII.
    pub const fn letter(self) -> u8 {
        self.registered().letter
    }

    /// The crate that alone reads and writes these keys.
    pub const fn owner(self) -> &'static str {
        self.registered().owner
    }

    /// The two bytes of the header.
    pub const fn header(self) -> [u8; 2] {
        [self.letter(), VERSION << 4 | self.registered().format]
    }

    /// The category of a letter.
    pub fn of_letter(letter: u8) -> Option<Category> {
        REGISTER.iter().find(|row| row.letter == letter).map(|row| row.category)
    }

    /// The category of a header.
    ///
    /// # Errors
    ///
    /// `Shape` if the letter, the version or the format is not in the register.
    pub fn of_header(header: &[u8]) -> Result<Category, Error> {
        let [letter, numbers] = *header else {
            return Err(Error::Shape("a key header has two bytes"));
        };
        let Some(category) = Category::of_letter(letter) else {
            return Err(Error::Shape("the category letter is not in the register"));
        };
        if numbers & 0x88 != 0 {
            return Err(Error::Shape("bit 7 and bit 3 of a key header must be zero"));
        }
        if numbers >> 4 != VERSION {
            return Err(Error::Shape("the key has a version that this program does not know"));
        }
        let row = category.registered();
        if !(row.format..=row.format_last).contains(&(numbers & 0x0F)) {
            return Err(Error::Shape("the key has a format that this program does not know"));
        }
        Ok(category)
    }

    /// Begins a key of this category: a tuple that holds the header so far.
    pub fn key(self) -> Writer {
        Writer::new().bytes(&self.header())
    }

    /// Begins a key of this category in another format of its row than the first.
    pub fn key_in(self, format: u8) -> Writer {
        let row = self.registered();
        assert!(row.format <= format && format <= row.format_last, "the register has the format");
        Writer::new().bytes(&[row.letter, VERSION << 4 | format])
    }

    /// What all keys of this category in its first format begin with: four bytes.
    pub fn prefix(self) -> Vec<u8> {
        self.key().finish()
    }
}

/// Reads the header of a packed key; the reader that comes back stands behind it.
///
/// # Errors
///
/// `Shape` or `Corrupt` if the key does not begin with a header of the register.
pub fn open(key: &[u8]) -> Result<(Category, Reader<'_>), Error> {
    let mut reader = Reader::new(key);
    let header = reader.bytes()?;
    Ok((Category::of_header(&header)?, reader))
}

/// Reads the header of a packed key that must be of `category`.
///
/// # Errors
///
/// As [`open`], and `Shape` if the key is of another category.
pub fn open_as(category: Category, key: &[u8]) -> Result<Reader<'_>, Error> {
    match open(key)? {
        (found, reader) if found == category => Ok(reader),
        _ => Err(Error::Shape("the key is of another category")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let shown: Vec<String> = REGISTER
            .iter()
            .map(|row| {
                let [letter, numbers] = row.category.header();
                format!("{}{numbers:02x}", letter as char)
            })
            .collect();
        assert_eq!(shown.join(" "), "D11 C11 O11 I12 M11 S11 J11 N11 E11 P11 L11 F11 R11 U11");
        for row in REGISTER {
            let header = row.category.header();
            assert_eq!(Category::of_header(&header), Ok(row.category));
            assert_eq!(row.category.prefix(), [1, header[0], header[1], 0]);
            let last = row.category.key_in(row.format_last).finish();
            assert_eq!(open(&last).unwrap().0, row.category);
            let key = row.category.key().int(7).finish();
            assert_eq!(open_as(row.category, &key).unwrap().int::<u8>(), Ok(7));
            assert_eq!(open(&key).unwrap().0.owner(), row.owner);
        }
    }

    #[test]
    fn headers_that_are_refused() {
        // header, message
        let rows: [(&[u8], &str); 8] = [
            (b"", "a key header has two bytes"),
            (b"D\x11\x11", "a key header has two bytes"),
            (b"X\x11", "the category letter is not in the register"),
            (b"D\x91", "bit 7 and bit 3 of a key header must be zero"),
            (b"D\x19", "bit 7 and bit 3 of a key header must be zero"),
            (b"D\x21", "the key has a version that this program does not know"),
            (b"D\x12", "the key has a format that this program does not know"),
            (b"I\x11", "the key has a format that this program does not know"),
        ];
        for (header, message) in rows {
            assert_eq!(Category::of_header(header).unwrap_err().to_string(), message);
        }
        let key = Category::Job.key().finish();
        assert!(open_as(Category::Event, &key).is_err());
        assert!(open(b"").is_err());
        assert!(open(&[0x15, 1]).is_err());
    }
}
