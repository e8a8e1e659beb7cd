//! What can go wrong in an event log.

use std::fmt;

use kumiko_base::Kind;
use kumiko_kv::retry::AsKind;

use crate::EventId;

/// What can go wrong in an event log. A variant exists only where some caller acts on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The append does not follow the latest event. Read the latest id, send what is missing.
    Gap {
        /// The id that may be appended now.
        expected: EventId,
        /// The id that was given.
        given: EventId,
    },
    /// The id is taken by an event with other bytes: two histories. Nothing was written, and no
    /// retry helps; one of the two writers must stop.
    Fork {
        /// The first event at which the histories differ.
        id: EventId,
    },
    /// Another writer took the log over. This one must stop.
    Stale {
        /// The epoch this writer had.
        epoch: u64,
        /// The epoch that holds the log now.
        holder_epoch: u64,
        /// Who holds it now; empty if it was released.
        holder: String,
    },
    /// Another writer holds the log. Wait for it, or take over on purpose.
    Held {
        /// Who holds it.
        holder: String,
        /// Its epoch.
        epoch: u64,
        /// When its lease ends, in ms since 1970; 0 if never.
        lease_until_ms: u64,
    },
    /// The event was removed by a truncation. Start from `first`, with the snapshot before it.
    Truncated {
        /// The id that was asked for.
        id: EventId,
        /// The first event that is kept.
        first: EventId,
    },
    /// The event, snapshot or log is not there.
    NotFound(String),
    /// The log is not empty, or the snapshot is there already with other bytes.
    Exists(String),
    /// A truncation would cut events that no snapshot covers. Make a snapshot first.
    Uncovered {
        /// The last event that was to be removed.
        cut: EventId,
        /// The newest usable snapshot, if there is any.
        snapshot: Option<EventId>,
    },
    /// The input exceeds a limit. Nothing became visible.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size, or as much of it as was seen.
        size: u64,
        /// The limit.
        size_max: u64,
    },
    /// The input is wrong in itself: a name, an id, a descriptor.
    Invalid(String),
    /// Stored bytes break the format. `verify` names every place, `repair` mends what can be.
    Corrupt {
        /// The event at or after which the damage is.
        id: EventId,
        /// What is wrong.
        why: String,
    },
    /// Another version of the format, which this program must neither read nor write.
    Schema(String),
    /// Bytes of a pier or an LMDB file break their format.
    Pier(String),
    /// Reading the given source, or writing to the given sink, failed.
    Io(String),
    /// The engine below failed; its kind says what to do.
    Kv(kumiko_kv::Error),
}

impl Error {
    /// The kind decides the retry, and the code each wire protocol answers with.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Gap { .. } | Error::Invalid(_) | Error::Uncovered { .. } => Kind::Invalid,
            Error::Fork { .. } | Error::Exists(_) => Kind::Exists,
            Error::Stale { .. } | Error::Held { .. } => Kind::Denied,
            Error::Truncated { .. } | Error::NotFound(_) => Kind::NotFound,
            Error::TooLarge { .. } => Kind::TooLarge,
            Error::Corrupt { .. } | Error::Pier(_) => Kind::Corrupt,
            Error::Schema(_) => Kind::Unsupported,
            Error::Io(_) => Kind::Unavailable,
            Error::Kv(error) => error.kind(),
        }
    }

    pub(crate) fn corrupt(id: EventId, why: impl Into<String>) -> Error {
        Error::Corrupt { id, why: why.into() }
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

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::Io(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Gap { expected, given } => {
                write!(f, "the next event is {expected}, not {given}")
            }
            Error::Fork { id } => {
                write!(f, "event {id} is there already with other bytes: the histories fork")
            }
            Error::Stale { epoch, holder_epoch, holder } => write!(
                f,
                "writer of epoch {epoch} was replaced by {holder:?} of epoch {holder_epoch}"
            ),
            Error::Held { holder, epoch, lease_until_ms: 0 } => {
                write!(f, "the log is held by writer {holder:?} of epoch {epoch}")
            }
            Error::Held { holder, epoch, lease_until_ms } => write!(
                f,
                "the log is held by writer {holder:?} of epoch {epoch} until {lease_until_ms} ms"
            ),
            Error::Truncated { id, first } => {
                write!(f, "event {id} was truncated; the first kept is {first}")
            }
            Error::Uncovered { cut, snapshot: None } => {
                write!(f, "cannot truncate up to {cut}: there is no snapshot")
            }
            Error::Uncovered { cut, snapshot: Some(at) } => {
                write!(f, "cannot truncate up to {cut}: the newest snapshot is at {at}")
            }
            Error::TooLarge { what, size, size_max } => {
                write!(f, "{what} has {size} bytes, the limit is {size_max}")
            }
            Error::Corrupt { id, why } => write!(f, "damage at event {id}: {why}"),
            Error::NotFound(why)
            | Error::Exists(why)
            | Error::Invalid(why)
            | Error::Schema(why)
            | Error::Pier(why)
            | Error::Io(why) => f.write_str(why),
            Error::Kv(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
