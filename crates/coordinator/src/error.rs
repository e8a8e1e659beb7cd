//! What can go wrong in the coordinator.

use std::fmt;

use kumiko_base::Kind;
use kumiko_kv::retry::AsKind;

/// What can go wrong in the coordinator. A variant exists only where some caller acts on it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A message, state or job exceeds its limit. Nothing was written.
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        size_max: usize,
    },
    /// The job is not there. It was never submitted, or its history has been dropped.
    NoJob(String),
    /// Another node holds the job now, or it ended. Stop working on it; nothing was written.
    Lost(String),
    /// A job with this id is there already, with other contents.
    JobExists(String),
    /// The job has ended and cannot be cancelled.
    Ended(String),
    /// Stored bytes break the format. The text names the key.
    Corrupt(String),
    /// The logical clock has no number left. The cluster must be set up anew.
    ClockOverflow,
    /// The engine below us failed; its kind says what to do.
    Kv(kumiko_kv::Error),
}

impl Error {
    /// The kind decides the retry, and the code each wire protocol answers with.
    pub fn kind(&self) -> Kind {
        match self {
            Error::TooLarge { .. } => Kind::TooLarge,
            Error::NoJob(_) => Kind::NotFound,
            Error::Lost(_) => Kind::Denied,
            Error::JobExists(_) => Kind::Exists,
            Error::Ended(_) => Kind::Invalid,
            Error::Corrupt(_) => Kind::Corrupt,
            Error::ClockOverflow => Kind::Internal,
            Error::Kv(error) => error.kind(),
        }
    }

    pub(crate) fn corrupt(key: &[u8], why: impl fmt::Display) -> Error {
        Error::Corrupt(format!("under the key {}: {why}", kumiko_base::hex::show(key)))
    }
}

impl AsKind for Error {
    fn as_kind(&self) -> Kind {
        self.kind()
    }
}

impl From<kumiko_kv::Error> for Error {
    fn from(error: kumiko_kv::Error) -> Error {
        Error::Kv(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLarge { what, size, size_max } => {
                write!(f, "{what} has {size} bytes, the limit is {size_max}")
            }
            Error::NoJob(id) => write!(f, "there is no job {id}"),
            Error::Lost(id) => write!(f, "the job {id} is not held by this node any more"),
            Error::JobExists(id) => write!(f, "the job {id} is there already, and differs"),
            Error::Ended(id) => write!(f, "the job {id} has ended"),
            Error::Corrupt(why) => f.write_str(why),
            Error::ClockOverflow => {
                f.write_str("the cluster's logical clock has no number left; set it up anew")
            }
            Error::Kv(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
