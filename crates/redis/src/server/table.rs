//! The command table: every command by its name, in any case of letters.

use std::sync::OnceLock;

use hashbrown::HashMap;

use crate::command::Command;
use crate::fail::{self, Fail};
use crate::{Args, commands};

/// The longest name of a command or subcommand that is looked up.
const NAME_BYTES_MAX: usize = 32;

/// Every command and subcommand, each with a number of its own.
#[derive(Debug)]
pub struct Table {
    by_name: HashMap<&'static [u8], usize, foldhash::fast::FixedState>,
    rows: Vec<Row>,
}

/// A command, and the family it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The command.
    pub command: &'static Command,
    /// The name of its family: "string", "list", ...
    pub family: &'static str,
    /// Its number in the table.
    pub number: usize,
    /// It is a subcommand of a container.
    pub nested: bool,
}

impl Table {
    /// The table of this program, built once.
    pub fn shared() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(Table::build)
    }

    fn build() -> Table {
        let mut table = Table { by_name: HashMap::default(), rows: Vec::new() };
        for (family, commands) in commands::FAMILIES {
            for command in *commands {
                table.add(command, family, false);
                for nested in command.subcommands {
                    table.add(nested, family, true);
                }
            }
        }
        table
    }

    fn add(&mut self, command: &'static Command, family: &'static str, nested: bool) {
        assert!(command.name.len() <= NAME_BYTES_MAX, "{} is too long", command.name);
        let number = self.rows.len();
        let known = self.by_name.insert(command.name.as_bytes(), number);
        assert!(known.is_none(), "{} is there twice", command.name);
        self.rows.push(Row { command, family, number, nested });
    }

    /// How many commands and subcommands there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All commands and subcommands.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The number of a command.
    pub fn number(&self, command: &Command) -> usize {
        self.by_name[command.name.as_bytes()]
    }

    /// The row of this full name ("get", "config|get"), in any case of letters.
    pub fn row(&'static self, name: &[u8]) -> Option<&'static Row> {
        let mut lower = [0_u8; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower).map(|number| &self.rows[*number])
    }

    /// The command of this full name.
    pub fn get(&'static self, name: &[u8]) -> Option<&'static Command> {
        self.row(name).map(|row| row.command)
    }

    /// The command that a request names; for a container, its subcommand.
    pub fn find(&'static self, args: &Args<'_>) -> Result<&'static Command, Fail> {
        self.find_row(args).map(|row| row.command)
    }

    /// The row that a request names; for a container, that of its subcommand.
    pub fn find_row(&'static self, args: &Args<'_>) -> Result<&'static Row, Fail> {
        let name = args.get(0);
        let row = self
            .row(name)
            .filter(|row| !row.nested)
            .ok_or_else(|| fail::unknown_command(name, args.from(1)))?;
        let nested = row.command.subcommands;
        if nested.is_empty() {
            return Ok(row);
        }
        let Some(word) = args.try_get(1) else { return Ok(row) };
        let found = nested.iter().position(|nested| {
            let short = nested.name.rsplit('|').next().unwrap_or(nested.name);
            word.eq_ignore_ascii_case(short.as_bytes())
        });
        match found {
            // Subcommands stand right behind their container.
            Some(index) => Ok(&self.rows[row.number + 1 + index]),
            None => Err(fail::unknown_subcommand(row.command.name, word)),
        }
    }
}
