//! The document store: collections of documents with secondary indexes, on an ordered keyspace.
//!
//! Everything takes a transaction and neither opens nor commits one; time and randomness are
//! arguments. Nothing here knows BSON, SQL or a socket: a query language hands the [`plan`] a
//! [`Filter`] and looks at each candidate again.
//!
//! Read [`order`] and [`keys`] first, then [`catalog`], [`documents`], [`index`], [`plan`],
//! [`mod@read`] and [`feed`].

pub mod catalog;
pub mod check;
pub mod documents;
pub mod error;
pub mod feed;
pub mod filter;
pub mod index;
pub mod keys;
pub mod number;
pub mod order;
pub mod path;
pub mod plan;
pub mod read;

use kumiko_kv::Txn;

pub use catalog::{Collection, Index, State};
pub use error::Error;
pub use feed::{Change, Notes, Operation};
pub use filter::{Filter, Test};
pub use keys::Place;
pub use plan::{Plan, Query};
pub use read::Cursor;

/// A transaction that writes documents, with what their changes need.
pub struct Work<'a> {
    /// The transaction.
    pub txn: &'a mut dyn Txn,
    /// What time it is.
    pub now_ms: i64,
    /// What the transaction has noted for the change log so far.
    pub notes: &'a mut Notes,
}

impl<'a> Work<'a> {
    /// Begins to write in `txn`. `notes` is new for a new transaction.
    pub fn new(txn: &'a mut dyn Txn, now_ms: i64, notes: &'a mut Notes) -> Work<'a> {
        Work { txn, now_ms, notes }
    }

    pub(crate) fn note(&mut self, change: Change) -> Result<(), Error> {
        self.note_with(change, |_| {})
    }

    pub(crate) fn note_with(
        &mut self,
        change: Change,
        fill: impl FnOnce(&mut Change),
    ) -> Result<(), Error> {
        self.notes.note(self.txn, self.now_ms, change, fill)
    }
}
