//! What can go wrong in the lattice database.

use std::fmt;

use kumiko_base::Kind;

use crate::cell::Id;

/// What can go wrong in the lattice database. A variant exists only where some caller acts on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Bytes break the encoding of cells. Drop them; whoever sent them is broken or hostile.
    Encoding {
        /// What is wrong.
        reason: &'static str,
    },
    /// A limit is exceeded. Nothing was changed.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        size_max: usize,
    },
    /// A branch is not here. Fetch it by its id, then try again.
    Missing {
        /// The id of the absent cell.
        id: Id,
    },
    /// A signature does not hold, or there is none. Drop what it came with.
    Signature {
        /// What is wrong.
        reason: &'static str,
    },
    /// A key file cannot be used. Take it from a backup, or make a new key.
    KeyFile {
        /// What is wrong.
        reason: &'static str,
    },
    /// A key file needs a passphrase. Ask for it, again if one was given.
    Passphrase {
        /// Whether one was given, and is wrong.
        given: bool,
    },
}

impl Error {
    /// The kind decides the retry, and the code each wire protocol answers with.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Encoding { .. } => Kind::Corrupt,
            Error::TooLarge { .. } => Kind::TooLarge,
            Error::Missing { .. } => Kind::NotFound,
            Error::Signature { .. } | Error::Passphrase { .. } => Kind::Denied,
            Error::KeyFile { .. } => Kind::Invalid,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Encoding { reason } => write!(to, "not a valid cell: {reason}"),
            Error::TooLarge { what, size, size_max } => {
                write!(to, "{what} has size {size}, the limit is {size_max}")
            }
            Error::Missing { id } => write!(to, "cell {id} is not here"),
            Error::Signature { reason } => write!(to, "refused: {reason}"),
            Error::KeyFile { reason } => write!(to, "cannot use the key file: {reason}"),
            Error::Passphrase { given: true } => write!(to, "wrong passphrase"),
            Error::Passphrase { given: false } => write!(to, "the key file needs a passphrase"),
        }
    }
}

impl std::error::Error for Error {}
