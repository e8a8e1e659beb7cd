//! `kumiko log`: the event logs of points, from the shell.

mod pier;
mod show;
mod upkeep;
mod write;

use std::path::PathBuf;

use clap::Subcommand;
use kumiko_eventlog::{EventId, Point};
use kumiko_node::Error;

use crate::progress::Progress;
use crate::store;

/// The name under which this program holds a log while it writes.
const OWNER: &str = "kumiko log";

/// The flags of `log`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    store: store::Args,
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    json: bool,
    /// Take the log over if another writer holds it, which cuts that writer off
    #[arg(long, global = true)]
    take_over: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// List the points that have a log
    Points,
    /// Append a file, or what comes in with "-", as one event; prints its id
    Append(write::Append),
    /// Print events
    Read(show::Read),
    /// Print events as they are appended, until Ctrl-C
    Tail(show::Tail),
    /// Print the id of the latest event
    Latest(OnePoint),
    /// Tell what fills the log: by size and by hour
    Stat(SomePoints),
    /// Look at every record of a point, or of all
    Verify(SomePoints),
    /// Mend what can be mended in a log, and say what was done
    Repair(upkeep::Repair),
    /// Keep a file, or what comes in with "-", as the state after an event
    Snapshot(write::Snapshot),
    /// List the snapshots of a log, or write one to stdout
    Snapshots(show::Snapshots),
    /// Remove events from the front, up to one that a snapshot covers
    Truncate(upkeep::Truncate),
    /// Copy the event log of a vere pier into the log of its point
    ImportPier(pier::Import),
    /// Write a log as a vere pier
    ExportPier(pier::Export),
}

/// A point by its name.
#[derive(clap::Args, Debug)]
struct OnePoint {
    /// The point, like ~sampel-palnet
    point: Point,
}

/// A point by its name, or all.
#[derive(clap::Args, Debug)]
struct SomePoints {
    /// The point, like ~sampel-palnet; all if it is left out
    point: Option<Point>,
}

/// A file, or "-" for stdin.
#[derive(Clone, Debug)]
enum Source {
    Stdin,
    File(PathBuf),
}

impl std::str::FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Source, Self::Err> {
        Ok(if text == "-" { Source::Stdin } else { Source::File(text.into()) })
    }
}

impl Source {
    fn open(&self) -> Result<Box<dyn std::io::Read>, Error> {
        match self {
            Source::Stdin => Ok(Box::new(std::io::stdin().lock())),
            Source::File(path) => {
                let file = std::fs::File::open(path);
                let file =
                    file.map_err(|it| Error::from(it).during(&path.display().to_string()))?;
                Ok(Box::new(file))
            }
        }
    }
}

/// How far a work on events is, once it is known how many there are.
#[derive(Default)]
struct Bar(Option<Progress>);

impl Bar {
    fn tell(&mut self, done: u64, all: u64) {
        self.0.get_or_insert_with(|| Progress::new("events", Some(all))).at(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(progress) = self.0.take() {
            progress.end();
        }
    }
}

fn event_id(text: &str) -> Result<EventId, String> {
    let number: u64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    let id = EventId::new(number).filter(|id| id.is_event());
    id.ok_or_else(|| format!("event ids go from 1 to {}", EventId::MAX))
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |it| it.as_millis() as u64)
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let makes = matches!(args.what, What::Append(_) | What::ImportPier(_));
    let engine = if makes { args.store.create()? } else { args.store.open()? };
    let engine = engine.as_ref();
    match &args.what {
        What::Points => show::points(engine, args.json),
        What::Append(append) => append.run(engine, args),
        What::Read(read) => read.run(engine, args.json),
        What::Tail(tail) => tail.run(engine, args.json),
        What::Latest(one) => show::latest(engine, one.point, args.json),
        What::Stat(some) => show::stat(engine, some.point, args.json),
        What::Verify(some) => upkeep::verify(engine, some.point, args.json),
        What::Repair(repair) => repair.run(engine, args),
        What::Snapshot(snapshot) => snapshot.run(engine, args),
        What::Snapshots(snapshots) => snapshots.run(engine, args.json),
        What::Truncate(truncate) => truncate.run(engine, args),
        What::ImportPier(import) => import.run(engine, args),
        What::ExportPier(export) => export.run(engine, args),
    }
}
