//! Cells: immutable values with one canonical encoding and an id that is the hash of it.

pub mod vlq;
