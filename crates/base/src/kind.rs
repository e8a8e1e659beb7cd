//! The dozen kinds of error. A kind decides the retry and the code on each wire; the message says
//! the fact.

/// What a caller may do about an error, whatever crate it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The named thing is not there.
    NotFound,
    /// The named thing is there already.
    Exists,
    /// Another writer was first. Run the whole transaction again.
    Conflict,
    /// The commit may or may not have happened. Repeat it only if repeating is harmless.
    Unknown,
    /// The input exceeds a limit. Nothing was written.
    TooLarge,
    /// The input is wrong in itself. Do not repeat it.
    Invalid,
    /// A value has another type than the operation needs.
    WrongType,
    /// Stored or sent bytes break their format. Do not retry.
    Corrupt,
    /// The engine or the peer cannot be reached now. Try again later.
    Unavailable,
    /// No room is left: disk or memory. Free some, then repeat.
    Full,
    /// The caller may not do this.
    Denied,
    /// The request is understood and not offered.
    Unsupported,
    /// Our own fault.
    Internal,
}

impl Kind {
    /// Every kind, for tables that must be complete.
    pub const ALL: [Kind; 13] = [
        Kind::NotFound,
        Kind::Exists,
        Kind::Conflict,
        Kind::Unknown,
        Kind::TooLarge,
        Kind::Invalid,
        Kind::WrongType,
        Kind::Corrupt,
        Kind::Unavailable,
        Kind::Full,
        Kind::Denied,
        Kind::Unsupported,
        Kind::Internal,
    ];

    /// The stable, lower-case word for this kind, as printed before an error's message.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::NotFound => "not found",
            Kind::Exists => "exists",
            Kind::Conflict => "conflict",
            Kind::Unknown => "unknown",
            Kind::TooLarge => "too large",
            Kind::Invalid => "invalid",
            Kind::WrongType => "wrong type",
            Kind::Corrupt => "corrupt",
            Kind::Unavailable => "unavailable",
            Kind::Full => "full",
            Kind::Denied => "denied",
            Kind::Unsupported => "unsupported",
            Kind::Internal => "internal",
        }
    }

    /// Whether running the same transaction again from its start can succeed.
    pub const fn retryable(self) -> bool {
        matches!(self, Kind::Conflict)
    }
}
