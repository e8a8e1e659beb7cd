//! All commands, family by family.
//!
//! To add a command: write its function, add its row to the family's table. The table knows its
//! arity, so a function may use the arguments that the arity guarantees without looking.

#![allow(clippy::unnecessary_wraps, reason = "the functions of a table have one type")]

pub mod acl;
pub mod administration;
pub mod bits;
pub mod blocking;
pub mod client;
pub mod configuration;
pub mod connection;
mod data;
pub mod debug;
pub mod expiry;
pub mod hash;
pub mod keyspace;
pub mod list;
pub mod listing;
pub mod log;
pub mod pattern;
mod pick;
pub mod pubsub;
pub mod scan;
pub mod set;
pub mod sort;
pub mod string;
pub mod transaction;
pub mod watchers;
pub mod zset;

use crate::command::Command;
use crate::{Args, Context, Outcome, fail};

/// The families, each with its name and its commands.
pub static FAMILIES: &[(&str, &[Command])] = &[
    ("connection", connection::COMMANDS),
    ("connection", client::COMMANDS),
    ("transaction", transaction::COMMANDS),
    ("pubsub", pubsub::COMMANDS),
    ("server", administration::COMMANDS),
    ("server", acl::COMMANDS),
    ("server", configuration::COMMANDS),
    ("server", listing::COMMANDS),
    ("server", watchers::COMMANDS),
    ("server", debug::COMMANDS),
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
    ("event log", log::COMMANDS),
];

/// What a container answers when its subcommand is missing.
pub(crate) fn needs_word(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    Err(fail::arity(ctx.command.name))
}

/// Answers the subcommands of a container, with a line about each.
pub(crate) fn help(ctx: &mut Context<'_>, container: &str, nested: &[Command]) {
    ctx.reply.array(nested.len() * 2 + 1);
    let head = "<subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
    ctx.reply.simple(&format!("{container} {head}"));
    for command in nested {
        let name = command.name.rsplit('|').next().unwrap_or(command.name);
        ctx.reply.simple(&name.to_ascii_uppercase());
        ctx.reply.simple(&format!("    {}.", command.summary));
    }
}
