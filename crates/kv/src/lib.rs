//! The engine contract: one ordered keyspace with serializable transactions.
//!
//! An [`Engine`] begins transactions; a [`Txn`] reads a snapshot, buffers its writes and commits
//! them at once or not at all. The promise is the same on every engine: what commits is equivalent
//! to some serial order, and reads that asked for [`Read::Snapshot`] take part in no conflict.
//!
//! This crate knows nothing of categories, values or services: keys and values are bytes.
//!
//! Read [`contract`] first, then [`retry`]; [`buffer`] and [`conflict`] are the parts that the
//! engines of ours share, and [`memory`] is the smallest engine made of them.
//!
//! An engine shows that it keeps the promise by three suites, which its tests call:
//! [`conformance`] goes through the contract sentence by sentence, [`mirror`] compares two engines
//! on random programs, [`history`] proves that what committed is serializable. [`faults`] breaks an
//! engine on purpose, for the tests of everything above.

pub mod buffer;
pub mod conflict;
pub mod conformance;
pub mod contract;
pub mod error;
pub mod faults;
pub mod history;
pub mod memory;
pub mod mirror;
pub mod range;
pub mod retry;
pub mod watch;
#[cfg(test)]
mod wrong;

pub use contract::{Committed, Engine, Flow, Page, Read, Row, Scan, Txn, Watch};
pub use error::Error;
pub use memory::Memory;
pub use range::Range;
pub use retry::{Retry, run};
