//! The keyspace in FoundationDB, for more than one machine.
//!
//! FoundationDB keeps the contract by itself: serializable, optimistic, snapshots, atomic add. This
//! crate translates: futures to waiting, error codes to errors, and a scan to pages whose conflict
//! range is exactly what was shown.
//!
//! It is a workspace of its own because linking needs `libfdb_c`; `cargo check` does not. Read
//! [`engine`] first.

pub mod boot;
pub mod engine;
mod txn;
mod wait;

pub use engine::FoundationDb;
