//! The lattice database: values that many sites write at once and that converge by themselves.
//!
//! Pure: time and randomness are arguments, nothing here opens a socket or a file.
//!
//! Read [`cell`] first (values, their one encoding, their ids), then [`live`] (what commands run on).

pub mod cell;
pub mod entry;
mod error;
pub mod index;
pub mod keyfile;
pub mod live;
pub mod replica;
pub mod sign;
pub mod sync;

pub use error::Error;
pub use index::Index;
