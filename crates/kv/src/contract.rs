//! What an engine promises.
//!
//! * **Serializable.** Committed transactions behave as if they ran one after another. A
//!   transaction that read ([`Read::Serializable`]) what another one wrote and committed in the
//!   meantime fails with [`Error::Conflict`].
//! * **Snapshot.** All reads of a transaction see one state: what was committed when it began, with
//!   its own writes on top.
//! * **Atomic.** All writes of a transaction become visible, and durable, at once or never.
//! * **Exact.** Nothing else conflicts: not two blind writes, not two adds, not a snapshot read,
//!   not a transaction that writes nothing. Only whether a read of one's own write counts as a read
//!   of what is stored under it is left to the engine.
//! * **Durable** as the engine's setting says; with `always`, an answered commit survives power
//!   loss.
//! * **Limits** of `kumiko_base::limits` hold on every engine. Keys are below FF: they start with
//!   a byte other than FF, and are not empty.

use std::time::Duration;

use crate::{Error, Range};

/// How a read takes part in conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// What is read must not change before the commit.
    Serializable,
    /// What is read may change; no conflict follows from it.
    Snapshot,
}

/// Whether a visit goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Show the next row.
    Go,
    /// Show no more. The row just shown counts as read.
    Stop,
}

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// Which rows to read, in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The keys to look at.
    pub range: Range,
    /// From the last key to the first.
    pub reverse: bool,
    /// Stop after this many rows.
    pub rows_max: usize,
    /// Stop once the keys and values add up to this many bytes or more.
    pub bytes_max: usize,
    /// How the scan takes part in conflicts. Only the part that was looked at does.
    pub read: Read,
}

impl Scan {
    /// Forward, serializable, without bounds of its own.
    pub fn new(range: Range) -> Scan {
        Scan {
            range,
            reverse: false,
            rows_max: usize::MAX,
            bytes_max: usize::MAX,
            read: Read::Serializable,
        }
    }

    /// From the last key to the first.
    pub fn reverse(mut self) -> Scan {
        self.reverse = true;
        self
    }

    /// At most `rows_max` rows.
    pub fn rows(mut self, rows_max: usize) -> Scan {
        self.rows_max = rows_max;
        self
    }

    /// At most about `bytes_max` bytes; the row that reaches the bound is still given.
    pub fn bytes(mut self, bytes_max: usize) -> Scan {
        self.bytes_max = bytes_max;
        self
    }

    /// Without conflicts.
    pub fn snapshot(mut self) -> Scan {
        self.read = Read::Snapshot;
        self
    }
}

/// The rows of one scan, and what is left of its range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The rows, in the order of the scan.
    pub rows: Vec<Row>,
    /// What the scan did not look at, if a bound stopped it. It may hold no row.
    pub rest: Option<Range>,
}

/// What a commit answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Grows with every commit that wrote something, on this engine, in this process or cluster.
    pub version: u64,
}

/// One transaction. Dropping it without `commit` writes nothing.
pub trait Txn: Send {
    /// The value under `key`, if there is one.
    fn get(&mut self, key: &[u8], read: Read) -> Result<Option<Vec<u8>>, Error>;

    /// Shows the rows of `scan` in order, without copying them. Returns what is left of the range
    /// if a bound or [`Flow::Stop`] ended the visit.
    fn visit(
        &mut self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error>;

    /// Puts `value` under `key`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Removes `key`, if it is there.
    fn del(&mut self, key: &[u8]) -> Result<(), Error>;

    /// Removes every key of the range.
    fn clear(&mut self, range: &Range) -> Result<(), Error>;

    /// Adds `delta` to the little-endian 64-bit integer under `key`, wrapping; a missing value is
    /// zero, a shorter one is padded, a longer one is cut. Reads nothing, so it conflicts with no
    /// other `add`.
    fn add(&mut self, key: &[u8], delta: i64) -> Result<(), Error>;

    /// Makes this transaction fail if another writes into `range` before it commits.
    fn read_conflict(&mut self, range: &Range) -> Result<(), Error>;

    /// Makes every other transaction that read in `range` fail, as if this one wrote there.
    fn write_conflict(&mut self, range: &Range) -> Result<(), Error>;

    /// How many bytes the writes of this transaction take so far, as the limit counts them.
    fn size(&self) -> usize;

    /// Makes the writes visible and durable at once, or answers why not.
    fn commit(self: Box<Self>) -> Result<Committed, Error>;

    /// The rows of `scan`, copied.
    fn scan(&mut self, scan: &Scan) -> Result<Page, Error> {
        let mut rows = Vec::new();
        let rest = self.visit(scan, &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            Flow::Go
        })?;
        Ok(Page { rows, rest })
    }
}

/// Waits for one key to change.
pub trait Watch: Send {
    /// Waits until the key was written after the watch was made, or `timeout` has passed. True if
    /// it was written. May also answer true for no reason: look at the key.
    fn wait(&mut self, timeout: Duration) -> Result<bool, Error>;
}

/// An ordered keyspace.
pub trait Engine: Send + Sync {
    /// Begins a transaction on the newest state.
    fn begin(&self) -> Result<Box<dyn Txn>, Error>;

    /// Starts to watch `key`. Make the watch first, then read the key, then wait.
    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error>;

    /// Makes everything that was committed so far durable, whatever the durability setting.
    fn sync(&self) -> Result<(), Error>;

    /// A short name: "memory", "disk", "postgres", "foundationdb".
    fn name(&self) -> &'static str;

    /// Whether other processes may share this engine at the same time.
    fn shared(&self) -> bool {
        false
    }
}
