//! What a command on the live structure can fail with.

use std::fmt;

use kumiko_base::Kind;

/// What a command can fail with. Nothing was changed when one of these comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The key holds another type than the command works on.
    WrongType,
    /// The value is not an integer of 64 bits in its canonical spelling.
    NotInteger,
    /// The result would leave the 64-bit integers.
    Overflow,
    /// The value is not a finite number, or the result would not be one.
    NotFloat,
    /// The key is not there.
    NoKey,
    /// The index lies outside the list or the string.
    OutOfRange,
    /// Something is longer than it may be.
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The limit.
        size_max: usize,
    },
    /// Journal or snapshot bytes break their format. Do not go on with them.
    Corrupt {
        /// What is wrong.
        reason: &'static str,
    },
}

impl Error {
    /// The kind decides the retry, and the code each wire protocol answers with.
    pub fn kind(&self) -> Kind {
        match self {
            Error::WrongType => Kind::WrongType,
            Error::NotInteger | Error::Overflow | Error::NotFloat | Error::OutOfRange => {
                Kind::Invalid
            }
            Error::NoKey => Kind::NotFound,
            Error::TooLong { .. } => Kind::TooLarge,
            Error::Corrupt { .. } => Kind::Corrupt,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::WrongType => write!(to, "the key holds another type of value"),
            Error::NotInteger => write!(to, "the value is not an integer or out of range"),
            Error::Overflow => write!(to, "the increment would overflow"),
            Error::NotFloat => write!(to, "the value is not a finite number"),
            Error::NoKey => write!(to, "there is no such key"),
            Error::OutOfRange => write!(to, "the index is out of range"),
            Error::TooLong { what, size, size_max } => {
                write!(to, "{what} has {size} bytes, the limit is {size_max}")
            }
            Error::Corrupt { reason } => write!(to, "broken record: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
