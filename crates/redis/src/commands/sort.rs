//! SORT.

use crate::command::Command;

/// The commands of this family.
pub static COMMANDS: &[Command] = &[];
