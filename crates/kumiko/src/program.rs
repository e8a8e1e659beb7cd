//! The program `kumiko`. Each subcommand has a file of its own, with its `Args` and its `run`.
//!
//! It stands in the library so that a build with another engine can be the same program.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::{backup, bench, check, cluster, dump, export, import, log, serve};

/// One database, four services, one ordered transactional keyspace.
#[derive(Parser)]
#[command(name = "kumiko", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server until SIGTERM or Ctrl-C
    #[command(after_help = serve::AFTER_HELP)]
    Serve(serve::Args),
    /// Measure this machine: writes, reads and scans of the keyspace
    Bench(bench::Args),
    /// Write the whole keyspace to a file
    Backup(backup::BackupArgs),
    /// Read a backup into a new store
    Restore(backup::RestoreArgs),
    /// Walk a store and prove that everything in it can be read and fits together
    Check(check::Args),
    /// Show the nodes, messages and jobs of a cluster
    Cluster(cluster::Args),
    /// Work on the event logs of points
    Log(log::Args),
    /// Print the keyspace by category, readable
    Dump(dump::Args),
    /// Read documents into a collection, one JSON object per line
    Import(import::Args),
    /// Write the documents of a collection, one JSON object per line
    Export(export::Args),
}

/// Runs the program on the arguments of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::from_arg_matches(&Cli::command().get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let result = match cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Bench(args) => bench::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => backup::run_restore(&args),
        Command::Check(args) => check::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kumiko: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        super::Cli::command().debug_assert();
    }
}
