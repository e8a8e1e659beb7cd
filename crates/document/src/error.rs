//! What can go wrong in the document store.

use std::fmt;

use kumiko_base::{Kind, Value};

/// What can go wrong in the document store. A variant exists only where some caller acts on it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There is no such database, collection or index.
    NotFound(String),
    /// A collection or index of this name is there already, with other options.
    Exists(String),
    /// A unique index, or the primary one, holds this value already.
    Duplicate {
        /// The index's name; `_id_` is the primary one.
        index: String,
        /// The paths and the values that clash.
        key: Value,
    },
    /// Two paths of one index look through different arrays of a document.
    ParallelArrays,
    /// The request is wrong in itself.
    Invalid(String),
    /// Something exceeds its limit. Nothing was written.
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        size_max: usize,
    },
    /// A table that another program wrote; it is read and never written.
    ReadOnly(String),
    /// What a change stream wants to go on from was discarded.
    HistoryLost,
    /// Stored bytes break their format.
    Corrupt(String),
    /// The engine below us failed; its kind says what to do.
    Kv(kumiko_kv::Error),
}

impl Error {
    /// The kind decides the retry, and the code each wire protocol answers with.
    pub fn kind(&self) -> Kind {
        match self {
            Error::NotFound(_) | Error::HistoryLost => Kind::NotFound,
            Error::Exists(_) | Error::Duplicate { .. } => Kind::Exists,
            Error::ParallelArrays | Error::Invalid(_) => Kind::Invalid,
            Error::TooLarge { .. } => Kind::TooLarge,
            Error::ReadOnly(_) => Kind::Unsupported,
            Error::Corrupt(_) => Kind::Corrupt,
            Error::Kv(error) => error.kind(),
        }
    }
}

impl kumiko_kv::retry::AsKind for Error {
    fn as_kind(&self) -> Kind {
        self.kind()
    }
}

impl From<kumiko_kv::Error> for Error {
    fn from(error: kumiko_kv::Error) -> Error {
        Error::Kv(error)
    }
}

impl From<kumiko_base::Error> for Error {
    fn from(error: kumiko_base::Error) -> Error {
        Error::Corrupt(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound(what) => write!(f, "{what} does not exist"),
            Error::Exists(what) => write!(f, "{what} exists already"),
            Error::Duplicate { index, .. } => write!(f, "index {index} already holds this value"),
            Error::ParallelArrays => f.write_str("cannot index parallel arrays"),
            Error::Invalid(why) | Error::Corrupt(why) => f.write_str(why),
            Error::TooLarge { what, size, size_max } => {
                write!(f, "{what}: {size}, the limit is {size_max}")
            }
            Error::ReadOnly(what) => write!(f, "{what} was written by another program: read only"),
            Error::HistoryLost => f.write_str("the changes since then are no longer kept"),
            Error::Kv(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
