//! `kumiko export`: writes the documents of a collection, one extended JSON object per line.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use kumiko_document::{Cursor, Plan, catalog};
use kumiko_kv::Read;
use kumiko_lang::json::{self, Style};
use kumiko_node::Error;

use crate::import::namespace;
use crate::progress::Progress;
use crate::store;

/// The flags of `export`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    store: store::Args,
    /// The collection, as DATABASE.COLLECTION
    #[arg(value_name = "DATABASE.COLLECTION")]
    from: String,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write every number with its type, so that nothing is lost
    #[arg(long)]
    canonical: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let (database, name) = namespace(&args.from)?;
    let engine = args.store.open()?;
    let style = if args.canonical { Style::Canonical } else { Style::Relaxed };
    let out: Box<dyn Write> = match &args.out {
        Some(path) => Box::new(File::create(path)?),
        None => Box::new(std::io::stdout()),
    };
    let mut out = BufWriter::new(out);
    let mut txn = engine.begin()?;
    let collection = catalog::load(txn.as_mut(), database, name)?;
    let mut cursor = Cursor::new(&collection, &Plan::all(), Read::Snapshot);
    let mut progress = Progress::new("documents", None);
    let mut count = 0;
    while let Some(document) = cursor.next(txn.as_mut())? {
        writeln!(out, "{}", json::show(&document, style))?;
        count += 1;
        progress.at(count);
    }
    progress.end();
    out.flush()?;
    eprintln!("{count} documents from {database}.{name}");
    Ok(())
}
