//! The Redis serialization protocol, versions 2 and 3.
//!
//! [`parse`] takes requests out of a connection's input buffer in place: the arguments are ranges
//! of that buffer, nothing is copied. [`write`] appends replies to an output buffer, in the form
//! of the protocol version that the client asked for. [`number`] has the decimal forms that both
//! sides use, exactly as Redis reads and prints them.

pub mod number;
pub mod parse;
pub mod write;

pub use parse::{Limits, Parsed, Parser, Span};
pub use write::{Mark, Version, Writer};
