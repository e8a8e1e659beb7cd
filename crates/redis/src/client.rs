//! One connection, as the commands see it.

use std::collections::BTreeSet;

use kumiko_wire::resp::Version;

use crate::args::OwnedArgs;
use crate::command::Command;
use crate::server::table::Row;

/// Where a client is kept: small, and used again after it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Which replies a client wants: `CLIENT REPLY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// All of them.
    #[default]
    On,
    /// None.
    Off,
    /// None to the command that runs now: `CLIENT REPLY SKIP` itself.
    SkipNext,
    /// None to this one command.
    Skip,
}

/// What a blocked client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A list with an element.
    List,
    /// A sorted set with a member.
    SortedSet,
    /// Nothing but the time: `WAIT`, `DEBUG SLEEP`, a pause.
    Time,
}

/// What a client gets when its time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    /// Null where a string was expected.
    Null,
    /// Null where an array was expected.
    NullArray,
    /// An integer.
    Int(i64),
    /// The command runs again.
    Rerun,
}

/// A command that waits.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The command that runs again when a key is ready.
    pub row: &'static Row,
    /// Its arguments.
    pub args: OwnedArgs,
    /// The keys that it waits for, in the client's database.
    pub keys: Vec<Vec<u8>>,
    /// What kind of value must appear there.
    pub wanted: Wanted,
    /// When it gives up, if ever.
    pub deadline_ms: Option<u64>,
    /// What it answers then.
    pub timed_out: TimedOut,
    /// When it began.
    pub since_ms: u64,
}

/// A transaction that is being queued.
#[derive(Clone, Debug, Default)]
pub struct Multi {
    /// The commands so far.
    pub queue: Vec<(&'static Row, OwnedArgs)>,
    /// A command was refused, so EXEC will refuse all.
    pub broken: bool,
}

/// The keys a client watches: EXEC refuses if one was changed.
#[derive(Clone, Debug, Default)]
pub struct Watches {
    /// Database and key.
    pub keys: Vec<(usize, Vec<u8>)>,
    /// One of them was changed.
    pub touched: bool,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Client {
    /// Never used again.
    pub id: u64,
    /// Where the client is kept.
    pub slot: u32,
    /// The address of the other end.
    pub peer: String,
    /// Our address.
    pub local: String,
    /// The name given by `CLIENT SETNAME`.
    pub name: Vec<u8>,
    /// The library's name, by `CLIENT SETINFO`.
    pub library: String,
    /// The library's version, by `CLIENT SETINFO`.
    pub library_version: String,
    /// The database it uses: an index into the server's databases.
    pub db: usize,
    /// The protocol version.
    pub version: Version,
    /// What is to be sent.
    pub out: Vec<u8>,
    /// Messages that arrived while its own command runs; they go out after the reply.
    pub pushes: Vec<u8>,
    /// The user's name; empty before authentication.
    pub user: String,
    /// It may run commands.
    pub authenticated: bool,
    /// The transaction being queued, if there is one.
    pub multi: Option<Multi>,
    /// The watched keys.
    pub watches: Watches,
    /// The waiting command, if there is one.
    pub blocked: Option<Box<Blocked>>,
    /// Channels.
    pub channels: BTreeSet<Vec<u8>>,
    /// Patterns of channels.
    pub patterns: BTreeSet<Vec<u8>>,
    /// Shard channels.
    pub shard_channels: BTreeSet<Vec<u8>>,
    /// It sees every command.
    pub monitor: bool,
    /// Which replies it gets.
    pub reply_mode: ReplyMode,
    /// It is to be closed once its output is sent.
    pub closing: bool,
    /// It is to be closed at once.
    pub killed: bool,
    /// It is not to be evicted when memory is short.
    pub no_evict: bool,
    /// Reads do not touch the age of keys.
    pub no_touch: bool,
    /// When it connected.
    pub since_ms: u64,
    /// When it last sent something.
    pub active_ms: u64,
    /// The command that it ran last.
    pub last_command: Option<&'static Command>,
    /// Bytes of requests not yet used up, for `CLIENT LIST`.
    pub input_bytes: usize,
    /// The output passed the soft limit at this time.
    pub soft_limit_since_ms: Option<u64>,
}

impl Client {
    /// How many channels and patterns it subscribes to.
    pub fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// In protocol version 2, a subscribed client may only change its subscriptions.
    pub fn only_subscribes(&self) -> bool {
        self.version == Version::Resp2
            && 0 < self.channels.len() + self.patterns.len() + self.shard_channels.len()
    }
}

impl Multi {
    /// Whether one of the queued commands is what `writes` says.
    pub(crate) fn writes(&self, writes: &dyn Fn(&Command) -> bool) -> bool {
        self.queue.iter().any(|(row, _)| writes(row.command))
    }
}
