//! What a command is: a row of a table.
//!
//! ```text
//! Command::new("get", 2, get).flags(READONLY | FAST).acl(STRING).keys(1, 1, 1)
//!     .meaning(Meaning::Register).summary("The value of a key")
//! ```
//!
//! A command with subcommands (`CONFIG GET`) is a container: its subcommands are rows of their own
//! whose names are "config|get".

use crate::{Args, Context, Outcome};

/// The command changes data.
pub const WRITE: u32 = 1;
/// The command only reads data.
pub const READONLY: u32 = 1 << 1;
/// Refused while memory is used up.
pub const DENYOOM: u32 = 1 << 2;
/// For administrators.
pub const ADMIN: u32 = 1 << 3;
/// Has to do with publish and subscribe.
pub const PUBSUB: u32 = 1 << 4;
/// Not inside scripts.
pub const NOSCRIPT: u32 = 1 << 5;
/// May block the client.
pub const BLOCKING: u32 = 1 << 6;
/// Allowed while the journal is read.
pub const LOADING: u32 = 1 << 7;
/// Allowed on a replica whose data is old. Kept because tools read it.
pub const STALE: u32 = 1 << 8;
/// Not shown to monitors.
pub const SKIP_MONITOR: u32 = 1 << 9;
/// Not in the slow log.
pub const SKIP_SLOWLOG: u32 = 1 << 10;
/// Constant or logarithmic time.
pub const FAST: u32 = 1 << 11;
/// Allowed before authentication.
pub const NO_AUTH: u32 = 1 << 12;
/// Not inside MULTI.
pub const NO_MULTI: u32 = 1 << 13;
/// The keys cannot all be named by positions.
pub const MOVABLE_KEYS: u32 = 1 << 14;
/// May wake clients: the data it writes may be what they wait for.
pub const ALLOW_BUSY: u32 = 1 << 15;

/// The names of the flags, as `COMMAND INFO` shows them.
pub const FLAG_NAMES: &[(u32, &str)] = &[
    (WRITE, "write"),
    (READONLY, "readonly"),
    (DENYOOM, "denyoom"),
    (ADMIN, "admin"),
    (PUBSUB, "pubsub"),
    (NOSCRIPT, "noscript"),
    (BLOCKING, "blocking"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (SKIP_MONITOR, "skip_monitor"),
    (SKIP_SLOWLOG, "skip_slowlog"),
    (FAST, "fast"),
    (NO_AUTH, "no_auth"),
    (NO_MULTI, "no_multi"),
    (MOVABLE_KEYS, "movablekeys"),
    (ALLOW_BUSY, "allow_busy"),
];

/// Access categories of users: `ACL SETUSER x +@string`. Some follow from the flags.
pub mod acl {
    /// Keys as such.
    pub const KEYSPACE: u32 = 1;
    /// Reading.
    pub const READ: u32 = 1 << 1;
    /// Writing.
    pub const WRITE: u32 = 1 << 2;
    /// Sets.
    pub const SET: u32 = 1 << 3;
    /// Sorted sets.
    pub const SORTEDSET: u32 = 1 << 4;
    /// Lists.
    pub const LIST: u32 = 1 << 5;
    /// Hashes.
    pub const HASH: u32 = 1 << 6;
    /// Strings.
    pub const STRING: u32 = 1 << 7;
    /// Bits of strings.
    pub const BITMAP: u32 = 1 << 8;
    /// Counting distinct elements.
    pub const HYPERLOGLOG: u32 = 1 << 9;
    /// Geography.
    pub const GEO: u32 = 1 << 10;
    /// Streams.
    pub const STREAM: u32 = 1 << 11;
    /// Publish and subscribe.
    pub const PUBSUB: u32 = 1 << 12;
    /// Administration.
    pub const ADMIN: u32 = 1 << 13;
    /// Quick commands.
    pub const FAST: u32 = 1 << 14;
    /// All others.
    pub const SLOW: u32 = 1 << 15;
    /// Commands that may block.
    pub const BLOCKING: u32 = 1 << 16;
    /// Commands that can hurt.
    pub const DANGEROUS: u32 = 1 << 17;
    /// The connection itself.
    pub const CONNECTION: u32 = 1 << 18;
    /// Transactions.
    pub const TRANSACTION: u32 = 1 << 19;
    /// Scripts.
    pub const SCRIPTING: u32 = 1 << 20;

    /// The names of the categories, in the order in which `ACL CAT` shows them.
    pub const NAMES: &[(u32, &str)] = &[
        (KEYSPACE, "keyspace"),
        (READ, "read"),
        (WRITE, "write"),
        (SET, "set"),
        (SORTEDSET, "sortedset"),
        (LIST, "list"),
        (HASH, "hash"),
        (STRING, "string"),
        (BITMAP, "bitmap"),
        (HYPERLOGLOG, "hyperloglog"),
        (GEO, "geo"),
        (STREAM, "stream"),
        (PUBSUB, "pubsub"),
        (ADMIN, "admin"),
        (FAST, "fast"),
        (SLOW, "slow"),
        (BLOCKING, "blocking"),
        (DANGEROUS, "dangerous"),
        (CONNECTION, "connection"),
        (TRANSACTION, "transaction"),
        (SCRIPTING, "scripting"),
    ];
}

/// Where the keys are among the arguments.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// There are none.
    None,
    /// From `first` to `last` by `step`; a negative `last` counts from the end.
    Range {
        /// The first key.
        first: usize,
        /// The last key.
        last: i32,
        /// How far the keys are apart.
        step: usize,
    },
    /// Argument `at` says how many keys follow it.
    Counted {
        /// Where the number is.
        at: usize,
    },
    /// Argument 1 is a key, argument `at` says how many more follow it.
    CountedAnd {
        /// Where the number is.
        at: usize,
    },
    /// Only the command itself knows. Appends the positions; `None` if the arguments are invalid.
    Find(fn(&Args<'_>, &mut Vec<usize>) -> Option<()>),
}

/// What a command means when several replicas run it at once: a paragraph of `docs/redis.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Only reads; sees what was merged so far.
    Read,
    /// Writes a whole value: the last writer wins.
    Register,
    /// Adds to a counter: the sums of all replicas add up.
    Counter,
    /// Decides on what this replica knows, then writes a register: two sites can both succeed.
    LocalDecision,
    /// Adds to or changes members: they are united; a member's own last writer wins.
    Members,
    /// Removes what this replica has seen; what it had not seen stays.
    ObservedRemove,
    /// Takes elements out: two sites may take the same one.
    AtLeastOnce,
    /// Changes an ordered list.
    List,
    /// Reads here, then writes the result whole.
    ReadThenWrite,
    /// Sets the time of expiry: a write with its own stamp.
    Expiry,
    /// Touches this node alone.
    Local,
    /// A message: not state, never merged.
    Message,
}

/// The function of a command.
pub type Run = fn(&mut Context<'_>, &Args<'_>) -> Outcome;

/// A row of the command table.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// In lower case; a subcommand is "container|name".
    pub name: &'static str,
    /// How many arguments with the name; if negative, at least so many.
    pub arity: i32,
    /// What it does and where it is allowed.
    pub flags: u32,
    /// The access categories it is in, without those that follow from the flags.
    pub categories: u32,
    /// Where its keys are.
    pub keys: Keys,
    /// Its function.
    pub run: Run,
    /// Its meaning under concurrency.
    pub meaning: Meaning,
    /// One line for `COMMAND DOCS` and the documentation.
    pub summary: &'static str,
    /// The rows of its subcommands, if it is a container.
    pub subcommands: &'static [Command],
}

impl Command {
    /// A command without keys, flags or categories.
    pub const fn new(name: &'static str, arity: i32, run: Run) -> Command {
        Command {
            name,
            arity,
            flags: 0,
            categories: 0,
            keys: Keys::None,
            run,
            meaning: Meaning::Local,
            summary: "",
            subcommands: &[],
        }
    }

    /// Sets the flags.
    pub const fn flags(mut self, flags: u32) -> Command {
        self.flags = flags;
        self
    }

    /// Sets the access categories that do not follow from the flags.
    pub const fn acl(mut self, categories: u32) -> Command {
        self.categories = categories;
        self
    }

    /// Keys from `first` to `last` (negative: from the end) by `step`.
    pub const fn keys(mut self, first: usize, last: i32, step: usize) -> Command {
        self.keys = Keys::Range { first, last, step };
        self
    }

    /// Keys wherever `keys` says.
    pub const fn keys_by(mut self, keys: Keys) -> Command {
        self.keys = keys;
        self.flags |= MOVABLE_KEYS;
        self
    }

    /// Some of its keys are where no position tells: those that SORT's patterns name.
    pub const fn movable(mut self) -> Command {
        self.flags |= MOVABLE_KEYS;
        self
    }

    /// What concurrency makes of it.
    pub const fn meaning(mut self, meaning: Meaning) -> Command {
        self.meaning = meaning;
        self
    }

    /// What it is for, in one line.
    pub const fn summary(mut self, summary: &'static str) -> Command {
        self.summary = summary;
        self
    }

    /// Makes it a container.
    pub const fn with(mut self, subcommands: &'static [Command]) -> Command {
        self.subcommands = subcommands;
        self
    }

    /// Whether all of `flags` are set.
    pub const fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// All its access categories.
    pub fn all_categories(&self) -> u32 {
        let follows = [
            (WRITE, acl::WRITE),
            (READONLY, if matches!(self.keys, Keys::None) { 0 } else { acl::READ }),
            (ADMIN, acl::ADMIN | acl::DANGEROUS),
            (PUBSUB, acl::PUBSUB),
            (FAST, acl::FAST),
            (BLOCKING, acl::BLOCKING),
        ];
        let mut categories = self.categories;
        for (flag, category) in follows {
            if self.has(flag) {
                categories |= category;
            }
        }
        if self.has(FAST) { categories } else { categories | acl::SLOW }
    }

    /// Whether a request with `count` arguments, the name included, fits.
    pub fn fits(&self, count: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { wanted <= count } else { wanted == count }
    }

    /// The positions of the keys among `args`; `None` if the arguments are invalid.
    pub fn key_positions(&self, args: &Args<'_>) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        match self.keys {
            Keys::None => {}
            Keys::Range { first, last, step } => {
                let last = if last < 0 { args.len() as i64 + i64::from(last) } else { last.into() };
                let mut at = first;
                while (at as i64) <= last && at < args.len() {
                    found.push(at);
                    at += step;
                }
            }
            Keys::Counted { at } => counted(args, at, &mut found)?,
            Keys::CountedAnd { at } => {
                found.push(1);
                counted(args, at, &mut found)?;
            }
            Keys::Find(find) => find(args, &mut found)?,
        }
        Some(found)
    }
}

fn counted(args: &Args<'_>, at: usize, found: &mut Vec<usize>) -> Option<()> {
    let count = args.try_get(at).and_then(kumiko_wire::resp::number::parse_int)?;
    let count = usize::try_from(count).ok().filter(|count| 0 < *count)?;
    let last = at.checked_add(count)?;
    if args.len() <= last {
        return None;
    }
    found.extend(at + 1..=last);
    Some(())
}
