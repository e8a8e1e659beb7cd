//! Why a command was refused, in the words that Redis uses.
//!
//! Clients and test suites compare these texts, so they are in one place and change nowhere.

use std::borrow::Cow;

/// A refusal. Its text starts with a code: `ERR`, `WRONGTYPE`, ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail(Cow<'static, str>);

impl Fail {
    /// A refusal with a fixed text.
    pub const fn new(text: &'static str) -> Fail {
        Fail(Cow::Borrowed(text))
    }

    /// A refusal with a text that names something.
    pub fn text(text: String) -> Fail {
        Fail(Cow::Owned(text))
    }

    /// The whole text, code first.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The code: the first word.
    pub fn code(&self) -> &str {
        self.0.split(' ').next().unwrap_or("ERR")
    }
}

/// The key holds another type.
pub const WRONG_TYPE: Fail =
    Fail::new("WRONGTYPE Operation against a key holding the wrong kind of value");
/// The options make no sense together.
pub const SYNTAX: Fail = Fail::new("ERR syntax error");
/// An argument should have been an integer.
pub const NOT_INTEGER: Fail = Fail::new("ERR value is not an integer or out of range");
/// An argument should have been a floating point number.
pub const NOT_FLOAT: Fail = Fail::new("ERR value is not a valid float");
/// A bound of a score range is not a number.
pub const NOT_FLOAT_RANGE: Fail = Fail::new("ERR min or max is not a float");
/// A bound of a lexical range has no valid first letter.
pub const NOT_LEX_RANGE: Fail = Fail::new("ERR min or max not valid string range item");
/// A number is outside of what the command allows.
pub const OUT_OF_RANGE: Fail = Fail::new("ERR value is out of range");
/// A count must not be negative.
pub const NOT_POSITIVE: Fail = Fail::new("ERR value is out of range, must be positive");
/// There is no such key.
pub const NO_KEY: Fail = Fail::new("ERR no such key");
/// The index is behind the end of the list.
pub const INDEX_OUT_OF_RANGE: Fail = Fail::new("ERR index out of range");
/// An increment leaves the range of 64 bits.
pub const OVERFLOW: Fail = Fail::new("ERR increment or decrement would overflow");
/// An increment leads to no number.
pub const NAN_OR_INFINITY: Fail = Fail::new("ERR increment would produce NaN or Infinity");
/// A string would become longer than allowed.
pub const STRING_TOO_LONG: Fail =
    Fail::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
/// An offset is negative.
pub const OFFSET_OUT_OF_RANGE: Fail = Fail::new("ERR offset is out of range");
/// A cursor of a scan is no number.
pub const INVALID_CURSOR: Fail = Fail::new("ERR invalid cursor");
/// A timeout is no number.
pub const TIMEOUT_NOT_FLOAT: Fail = Fail::new("ERR timeout is not a float or out of range");
/// A timeout is too far in the future.
pub const TIMEOUT_OUT_OF_RANGE: Fail = Fail::new("ERR timeout is out of range");
/// A timeout is no integer.
pub const TIMEOUT_NOT_INTEGER: Fail = Fail::new("ERR timeout is not an integer or out of range");
/// A timeout is negative.
pub const TIMEOUT_NEGATIVE: Fail = Fail::new("ERR timeout is negative");
/// A database number is out of range.
pub const DB_INDEX: Fail = Fail::new("ERR DB index is out of range");
/// The client must authenticate first.
pub const NO_AUTH: Fail = Fail::new("NOAUTH Authentication required.");
/// The server is still reading its journal.
pub const LOADING: Fail = Fail::new("LOADING Redis is loading the dataset in memory");
/// Memory is used up, and the policy frees none.
pub const OUT_OF_MEMORY: Fail =
    Fail::new("OOM command not allowed when used memory > 'maxmemory'.");
/// A transaction held a refused command.
pub const EXEC_ABORT: Fail =
    Fail::new("EXECABORT Transaction discarded because of previous errors.");

/// The command got too few or too many arguments.
pub fn arity(full_name: &str) -> Fail {
    Fail::text(format!("ERR wrong number of arguments for '{full_name}' command"))
}

/// The expiry given to `full_name` is not in the future, or too far in it.
pub fn invalid_expire(full_name: &str) -> Fail {
    Fail::text(format!("ERR invalid expire time in '{full_name}' command"))
}

/// The container command has no such subcommand.
pub fn unknown_subcommand(container: &str, given: &[u8]) -> Fail {
    let given = String::from_utf8_lossy(&given[..given.len().min(128)]);
    let container = container.to_ascii_uppercase();
    Fail::text(format!("ERR unknown subcommand '{given}'. Try {container} HELP."))
}

/// There is no command of this name.
pub fn unknown_command<'a>(name: &[u8], rest: impl Iterator<Item = &'a [u8]>) -> Fail {
    let cut = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(128)]).into_owned();
    let mut shown = String::new();
    for argument in rest {
        if 128 <= shown.len() {
            break;
        }
        shown = format!("{shown}'{}' ", cut(argument));
    }
    Fail::text(format!("ERR unknown command '{}', with args beginning with: {shown}", cut(name)))
}
