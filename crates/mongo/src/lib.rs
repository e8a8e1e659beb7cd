//! MongoDB's commands on the document store.
//!
//! A [`Server`] answers commands; it opens no socket, starts no thread, and time and randomness
//! come from the [`World`]. It says it is a `mongos`: drivers then use sessions, retried writes,
//! transactions and change streams, and keep to the address they were given.
//!
//! Read [`server`] first, then [`call`], [`write`](mod@write) and [`read`](mod@read), [`stream`]
//! and [`auth`].
#![expect(clippy::single_match_else, reason = "two-armed matches read as tables")]

/// A map from names and values: `doc! { "n" => Value::I32(1) }`.
macro_rules! doc {
    ($($name:expr => $value:expr),* $(,)?) => {
        kumiko_base::Value::Map(vec![$(($name.to_string(), $value)),*])
    };
}

mod admin;
pub mod auth;
pub mod call;
mod cursors;
pub mod failure;
mod find;
mod hello;
mod indexes;
pub mod read;
mod repeat;
pub mod server;
mod sessions;
pub mod stream;
mod update;
pub mod write;

pub use failure::Failure;
pub use server::{Connection, Options, Server, World};
