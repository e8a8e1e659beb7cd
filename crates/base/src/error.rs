//! What can go wrong when keys and values are packed, unpacked, encoded and decoded.

use std::fmt;

use crate::Kind;

/// What can go wrong in this crate. A variant exists only where some caller acts on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes break their format. Do not retry.
    Corrupt {
        /// Where in the input, counted from its first byte.
        offset: usize,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A value or a tuple is nested too deep to be stored. Nothing was written.
    TooDeep {
        /// The limit.
        depth_max: usize,
    },
    /// The bytes are well formed and hold something that we do not store.
    Unsupported {
        /// Where in the input.
        offset: usize,
        /// What stands there.
        what: &'static str,
    },
    /// A key has another shape than its category demands.
    Shape(&'static str),
    /// A logical clock has no number left. The cluster must be set up anew.
    ClockOverflow,
}

impl Error {
    /// The kind decides the retry, and the code each wire protocol answers with.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Corrupt { .. } | Error::Shape(_) => Kind::Corrupt,
            Error::TooDeep { .. } => Kind::TooLarge,
            Error::Unsupported { .. } => Kind::Unsupported,
            Error::ClockOverflow => Kind::Internal,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Corrupt { offset, reason } => write!(f, "{reason} at byte {offset}"),
            Error::TooDeep { depth_max } => {
                write!(f, "nested too deep, the limit is {depth_max} levels")
            }
            Error::Unsupported { offset, what } => {
                write!(f, "{what} at byte {offset} is not supported")
            }
            Error::Shape(reason) => f.write_str(reason),
            Error::ClockOverflow => f.write_str("the logical clock has no number left"),
        }
    }
}

impl std::error::Error for Error {}
