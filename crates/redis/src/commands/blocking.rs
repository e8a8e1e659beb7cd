//! Commands that wait for a list or a sorted set.

use crate::command::Command;

/// The commands of this family.
pub static COMMANDS: &[Command] = &[];
