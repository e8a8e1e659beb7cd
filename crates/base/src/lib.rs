//! What every other crate of Kumiko agrees on: the value model, keys, limits, clocks, error kinds.
//!
//! Pure: no file, socket, thread, clock or random number (`golden`, which tests alone use, reads
//! its scripts). It does not know engines or services.
//!
//! Read [`kind`] and [`limits`] first, then [`value`] with [`cbor`], which stores values, and
//! [`tuple`] with [`category`], which make keys. [`draw`] and [`golden`] are for tests.

pub mod category;
pub mod cbor;
pub mod clock;
pub mod draw;
pub mod error;
pub mod golden;
pub mod hex;
pub mod kind;
pub mod limits;
pub mod show;
pub mod time;
pub mod tuple;
pub mod value;

pub use category::Category;
pub use error::Error;
pub use kind::Kind;
pub use tuple::Element;
pub use value::Value;
