//! All commands, family by family.
//!
//! To add a command: write its function, add its row to the family's table. The table knows its
//! arity, so a function may use the arguments that the arity guarantees without looking.

#![allow(clippy::unnecessary_wraps, reason = "the functions of a table have one type")]

pub mod bits;
pub mod blocking;
pub mod connection;
mod data;
pub mod expiry;
pub mod hash;
pub mod keyspace;
pub mod list;
pub mod pattern;
mod pick;
pub mod pubsub;
pub mod scan;
pub mod set;
pub mod sort;
pub mod string;
pub mod transaction;
pub mod zset;

use crate::command::Command;

/// The families, each with its name and its commands.
pub static FAMILIES: &[(&str, &[Command])] = &[
    ("connection", connection::COMMANDS),
    ("transaction", transaction::COMMANDS),
    ("pubsub", pubsub::COMMANDS),
    ("generic", keyspace::COMMANDS),
    ("generic", expiry::COMMANDS),
    ("generic", scan::COMMANDS),
    ("generic", sort::COMMANDS),
    ("string", string::COMMANDS),
    ("bitmap", bits::COMMANDS),
    ("hash", hash::COMMANDS),
    ("set", set::COMMANDS),
    ("sorted-set", zset::COMMANDS),
    ("list", list::COMMANDS),
    ("list", blocking::COMMANDS),
];
