//! vere piers on disk: import and export.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use kumiko_eventlog::lmdb::{ReadAt, WriteAt};
use kumiko_eventlog::pier::{self, Missing, PierDir};
use kumiko_eventlog::{Log, Point};
use kumiko_kv::Engine;
use kumiko_node::Error;
use serde_json::json;

use super::{Args, Bar, write};

/// A directory of the file system. Files of a pier are opened for reading only, and no lock file
/// is touched.
struct Dir(PathBuf);

struct Place(RefCell<File>);

impl ReadAt for Place {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.borrow().metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut file = self.0.borrow_mut();
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

impl WriteAt for Place {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = self.0.get_mut();
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.get_mut().sync_all()
    }
}

/// What is not there is not an error.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl PierDir for Dir {
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let Some(entries) = found(std::fs::read_dir(self.0.join(path)))? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, path: &str) -> io::Result<Option<Box<dyn ReadAt>>> {
        let file = found(File::open(self.0.join(path)))?;
        Ok(file.map(|file| Box::new(Place(RefCell::new(file))) as Box<dyn ReadAt>))
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn WriteAt>> {
        let path = self.0.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(Box::new(Place(RefCell::new(File::create(path)?))))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let to = self.0.join(to);
        std::fs::rename(self.0.join(from), &to)?;
        // The new name must survive a power loss as well as the bytes.
        to.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }
}

/// Refuses a pier whose ship runs: without its lock, what is read could change meanwhile.
fn check_idle(path: &Path) -> Result<(), Error> {
    let Some(text) = found(std::fs::read_to_string(path.join(".vere.lock")))? else {
        return Ok(());
    };
    let pid = text.trim().parse::<u32>().ok();
    let running = pid.filter(|pid| Path::new("/proc").join(pid.to_string()).exists());
    match running {
        Some(pid) => {
            Err(Error::invalid(format!("the pier is in use by process {pid}; stop it first")))
        }
        None => Ok(()),
    }
}

/// The flags of `log import-pier`.
#[derive(clap::Args, Debug)]
pub(super) struct Import {
    /// The directory of the pier; it is only read
    pier: PathBuf,
    /// The point to import into; it must be the pier's own, which is taken if this is left out
    #[arg(long)]
    point: Option<Point>,
    /// Leave the states of the epochs behind, except one that the events need
    #[arg(long)]
    no_images: bool,
}

impl Import {
    pub(super) fn run(&self, engine: &dyn Engine, args: &Args) -> Result<(), Error> {
        check_idle(&self.pier)?;
        let dir = Dir(self.pier.clone());
        let found = pier::inspect(&dir)?;
        let point = self.point.unwrap_or(found.point);
        if point != found.point {
            return Err(Error::invalid(format!("the pier is of {}, not {point}", found.point)));
        }
        let mut progress = Bar::default();
        let done = write::hold(engine, args, point, |writer| {
            pier::import(engine, writer, &dir, !self.no_images, &mut |it| {
                progress.tell(it.events, it.events_all);
            })
        });
        drop(progress);
        let done = done?;
        let (first, latest, fresh) = (done.bounds.first, done.bounds.latest, done.fresh);
        let mut out = io::stdout().lock();
        if args.json {
            let row = json!({"point": point.to_string(), "first": first.get(),
                "latest": latest.get(), "imported": fresh, "snapshots": done.snapshots,
                "epochs": found.epochs.len()});
            writeln!(out, "{row}")?;
        } else {
            let snapshots = done.snapshots;
            writeln!(
                out,
                "{point}  imported {fresh} events, the log has {first}..{latest}, \
                 {snapshots} snapshots"
            )?;
        }
        Ok(())
    }
}

/// The flags of `log export-pier`.
#[derive(clap::Args, Debug)]
pub(super) struct Export {
    /// The point, like ~sampel-palnet
    point: Point,
    /// The directory to write the pier into; one that broke off is finished
    pier: PathBuf,
    /// For a log that was never a pier's: how many of its first events are boot events
    #[arg(long, value_name = "COUNT")]
    life: Option<u64>,
    /// For a log that was never a pier's: the ship is a fake one
    #[arg(long)]
    fake: bool,
    /// For a log that was never a pier's: the version of the runtime
    #[arg(long, value_name = "VERSION", default_value = "4.5")]
    vere: String,
}

impl Export {
    pub(super) fn run(&self, engine: &dyn Engine, args: &Args) -> Result<(), Error> {
        check_idle(&self.pier)?;
        let dir = Dir(self.pier.clone());
        let missing =
            self.life.map(|life| Missing { fake: self.fake, life, vere: self.vere.clone() });
        let point = self.point;
        let mut progress = Bar::default();
        let log = Log::of(point);
        let done = pier::export(engine, &log, point, &dir, missing.as_ref(), &mut |it| {
            progress.tell(it.events, it.events_all);
        });
        drop(progress);
        let done = done?;
        let (first, latest) = (done.bounds.first, done.bounds.latest);
        let mut out = io::stdout().lock();
        if args.json {
            let row = json!({"point": point.to_string(), "first": first.get(),
                "latest": latest.get(), "epochs": done.epochs, "epochs_kept": done.epochs_kept});
            writeln!(out, "{row}")?;
        } else {
            let all = done.epochs + done.epochs_kept;
            writeln!(out, "{point}  exported {first}..{latest} in {all} epochs")?;
        }
        Ok(())
    }
}
