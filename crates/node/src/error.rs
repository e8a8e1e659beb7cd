//! What can go wrong in the process, outside the services' own errors.

use std::fmt;

use kumiko_base::Kind;

/// What can go wrong while a node starts, runs or stops. The text says what to do.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    text: String,
}

impl Error {
    /// An error of `kind`, told in `text`.
    pub fn new(kind: Kind, text: impl Into<String>) -> Error {
        Error { kind, text: text.into() }
    }

    /// The input is wrong.
    pub fn invalid(text: impl Into<String>) -> Error {
        Error::new(Kind::Invalid, text)
    }

    /// The kind decides the exit code.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The same error, with what was being done in front.
    pub fn during(self, doing: &str) -> Error {
        Error { kind: self.kind, text: format!("{doing}: {}", self.text) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<kumiko_kv::Error> for Error {
    fn from(error: kumiko_kv::Error) -> Error {
        Error::new(error.kind(), error.to_string())
    }
}

impl From<kumiko_coordinator::Error> for Error {
    fn from(error: kumiko_coordinator::Error) -> Error {
        Error::new(error.kind(), error.to_string())
    }
}

impl From<kumiko_eventlog::Error> for Error {
    fn from(error: kumiko_eventlog::Error) -> Error {
        Error::new(error.kind(), error.to_string())
    }
}

impl From<kumiko_document::Error> for Error {
    fn from(error: kumiko_document::Error) -> Error {
        Error::new(error.kind(), error.to_string())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => Kind::NotFound,
            std::io::ErrorKind::PermissionDenied => Kind::Denied,
            std::io::ErrorKind::StorageFull => Kind::Full,
            _ => Kind::Unavailable,
        };
        Error::new(kind, error.to_string())
    }
}
