//! Redis commands over the lattice store, without sockets.
//!
//! One thread owns a [`Server`] and everything in it: the data, the clients, the subscriptions.
//! It hands in requests ([`Server::execute`]) and the time ([`Server::set_time`]), and sends
//! what appears in the clients' output buffers. So a command, a transaction and a merge from a peer are atomic
//! because nothing else runs meanwhile. Sockets, threads, files and clocks are in `node`.
//!
//! Read [`command`] (what a command is), then [`context`] (what it may do), [`args`] and
//! [`fail`], then any file of [`commands`]. [`testing`] runs commands in tests and golden scripts.

pub mod acl;
pub mod args;
pub mod client;
pub mod command;
pub mod commands;
pub mod config;
pub mod context;
pub mod eventlog;
mod extended;
pub mod fail;
pub mod info;
pub mod notify;
mod number;
mod ranges;
mod rdb;
pub mod server;
pub mod testing;

pub use args::Args;
pub use client::{Client, Slot};
pub use command::{Command, Keys, Meaning};
pub use context::{Context, Outcome};
pub use fail::Fail;
pub use kumiko_wire::resp::{Version, Writer};
pub use server::Server;
