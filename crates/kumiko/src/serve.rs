//! `kumiko serve`: runs a node until it is told to stop.

use std::io::Write;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use kumiko_node::settings::SETTINGS;
use kumiko_node::{Error, Node, Settings};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub(crate) const AFTER_HELP: &str = "\
Every setting is also an environment variable (--max-memory is KUMIKO_MAX_MEMORY) and a line of the
file that --config names (max-memory = \"1gb\"). A flag wins over the environment, the environment
over the file. Port 0 picks a free port; the bound address is printed.";

/// The flags of `serve`, one for each row of the table of settings.
#[derive(Debug)]
pub(crate) struct Args {
    flags: Vec<(String, String)>,
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().fold(command, |command, setting| {
            let action = if setting.many { ArgAction::Append } else { ArgAction::Set };
            let help = match setting.default {
                "" => setting.help.to_string(),
                default => format!("{} [default: {default}]", setting.help),
            };
            let arg = Arg::new(setting.name).long(setting.name).value_name(setting.value);
            command.arg(arg.help(help).action(action))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Args::augment_args(command)
    }
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, clap::Error> {
        let mut flags = Vec::new();
        for setting in SETTINGS {
            let values = matches.get_many::<String>(setting.name).into_iter().flatten();
            flags.extend(values.map(|value| (setting.name.to_string(), value.clone())));
        }
        Ok(Args { flags })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Args::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn run(args: Args) -> Result<(), Error> {
    // Before anything is started, so that a signal that comes early is not missed.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let settings = Settings::read(&args.flags, std::env::vars())?;
    let node = Node::start(&settings)?;
    let mut out = std::io::stdout().lock();
    for service in node.services() {
        if let Some(address) = service.address {
            writeln!(out, "{} on {address}", service.name)?;
        }
    }
    writeln!(out, "ready")?;
    out.flush()?;
    drop(out);
    let _ = signals.forever().next();
    eprintln!("kumiko: stopping");
    node.stop()
}
