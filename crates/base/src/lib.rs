//! What every other crate of Kumiko agrees on: the value model, keys, limits, clocks, error kinds.
//!
//! Pure: no file, socket, thread, clock or random number. It does not know engines or services.
//!
//! Read [`kind`] and [`limits`] first, then [`value`].

pub mod draw;
pub mod kind;
pub mod limits;
pub mod value;

pub use kind::Kind;
pub use value::Value;
