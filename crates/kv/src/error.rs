//! What can go wrong in an engine.

use std::fmt;

use kumiko_base::Kind;

/// What can go wrong in an engine. A variant exists only where some caller acts on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Another transaction wrote what this one read. Nothing was written; run it again.
    Conflict,
    /// The commit may or may not have happened. Repeat it only if repeating is harmless.
    Unknown(String),
    /// A key, value or transaction exceeds its limit. Nothing was written.
    TooLarge {
        /// What was too large: "key", "value" or "transaction".
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        size_max: usize,
    },
    /// The transaction is older than an engine keeps its snapshot. Run it again, in smaller steps.
    TooOld,
    /// The request is wrong in itself.
    Invalid(String),
    /// Stored bytes break the format. The text names the file and place.
    Corrupt(String),
    /// The engine cannot be reached, or is closed.
    Unavailable(String),
    /// Another process holds the store.
    Locked(String),
    /// No room is left on the device. What was answered before is safe.
    Full(String),
    /// Reading or writing failed otherwise.
    Io(String),
}

impl Error {
    /// The kind decides the retry, and the code each wire protocol answers with.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Conflict | Error::TooOld => Kind::Conflict,
            Error::Unknown(_) => Kind::Unknown,
            Error::TooLarge { .. } => Kind::TooLarge,
            Error::Invalid(_) => Kind::Invalid,
            Error::Corrupt(_) => Kind::Corrupt,
            Error::Unavailable(_) | Error::Locked(_) | Error::Io(_) => Kind::Unavailable,
            Error::Full(_) => Kind::Full,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Conflict => f.write_str("another transaction wrote what this one read"),
            Error::Unknown(why) => write!(f, "the commit may or may not have happened: {why}"),
            Error::TooLarge { what, size, size_max } => {
                write!(f, "{what} has {size} bytes, the limit is {size_max}")
            }
            Error::TooOld => f.write_str("the transaction is too old for its snapshot"),
            Error::Invalid(why)
            | Error::Corrupt(why)
            | Error::Unavailable(why)
            | Error::Locked(why)
            | Error::Full(why)
            | Error::Io(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
