//! `kumiko backup` and `kumiko restore`: the whole keyspace as one file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use kumiko_node::{Error, backup};

use crate::progress::Progress;
use crate::store;

/// The flags of `backup`.
#[derive(clap::Args, Debug)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    store: store::Args,
    /// Where to write the backup; the file must not exist
    file: PathBuf,
}

/// The flags of `restore`.
#[derive(clap::Args, Debug)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    store: store::Args,
    /// The backup to read
    file: PathBuf,
}

pub(crate) fn run(args: &BackupArgs) -> Result<(), Error> {
    let engine = args.store.open()?;
    let during = |error: Error| error.during(&format!("cannot write {}", args.file.display()));
    if args.file.exists() {
        return Err(during(Error::invalid("the file is there already")));
    }
    // Under another name until it is whole and on disk.
    let part = part_of(&args.file);
    let file = File::create(&part).map_err(|error| during(error.into()))?;
    let mut progress = Progress::new("rows written", None);
    let result = backup::write(engine.as_ref(), &file, &mut |count| progress.at(count))
        .and_then(|count| Ok(file.sync_all().map(|()| count)?))
        .and_then(|count| Ok(fs::rename(&part, &args.file).map(|()| count)?));
    progress.end();
    if result.is_err() {
        // What is left of it is of no use to anybody.
        let _ = fs::remove_file(&part);
    }
    let count = result.map_err(during)?;
    eprintln!("{count} rows in {}", args.file.display());
    Ok(())
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".part");
    PathBuf::from(name)
}

pub(crate) fn run_restore(args: &RestoreArgs) -> Result<(), Error> {
    let during = |error: Error| error.during(&format!("cannot restore {}", args.file.display()));
    let file = File::open(&args.file).map_err(|error| during(error.into()))?;
    let engine = args.store.create()?;
    let mut progress = Progress::new("rows restored", None);
    let result = backup::restore(engine.as_ref(), file, &mut |count| progress.at(count));
    progress.end();
    let count = result.map_err(during)?;
    eprintln!("{count} rows restored");
    Ok(())
}
