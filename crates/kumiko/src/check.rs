//! `kumiko check`: walks a store with the decoders that the services use.

use std::io::Write;
use std::sync::Arc;

use kumiko_base::{Category, Kind, category, show};
use kumiko_coordinator::check::{self, Found};
use kumiko_eventlog::{Log, Point, point, verify};
use kumiko_kv::{Engine, Range, Scan};
use kumiko_kv_disk::Disk;
use kumiko_node::Error;
use kumiko_node::engine::{self, Missing};

use crate::store;

/// How many rows one transaction looks at.
const STEP_ROWS: usize = 1_000;
/// How many faults of one part are printed; the rest is counted.
const SHOWN_MAX: usize = 20;

/// The flags of `check`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    store: store::Args,
    /// One JSON object per part
    #[arg(long)]
    json: bool,
}

/// What was found in one part of the store.
struct Part {
    name: String,
    records: u64,
    wrong: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let mut parts = Vec::new();
    let engine: Arc<dyn Engine> = match args.store.disk_dir() {
        Some(dir) => {
            let disk = engine::open_disk(&dir, "always", Missing::Refuse)?;
            parts.push(files(&disk));
            disk
        }
        None => args.store.open()?,
    };
    let engine = engine.as_ref();
    parts.push(headers(engine)?);
    for category in
        [Category::Message, Category::Event, Category::State, Category::Node, Category::Job]
    {
        parts.push(coordinator(engine, category)?);
    }
    points(engine, &mut parts)?;
    journals(engine, &mut parts)?;
    documents(engine, &mut parts)?;
    let mut out = std::io::stdout().lock();
    let mut wrong = 0;
    for part in &parts {
        wrong += part.wrong.len();
        print(&mut out, args.json, part)?;
    }
    out.flush()?;
    match wrong {
        0 => Ok(()),
        _ => Err(Error::new(Kind::Corrupt, format!("{wrong} things are wrong in this store"))),
    }
}

/// The files of an embedded store: checksums, order, levels.
fn files(disk: &Disk) -> Part {
    let report = disk.check();
    let records = report.rows + report.commits;
    Part { name: "files".into(), records, wrong: report.problems }
}

/// Every key has a header of the register.
fn headers(engine: &dyn Engine) -> Result<Part, Error> {
    let mut part = Part { name: "keyspace".into(), records: 0, wrong: Vec::new() };
    let mut left = Some(Range::all());
    while let Some(range) = left {
        let mut txn = engine.begin()?;
        left = txn.visit(&Scan::new(range).rows(20 * STEP_ROWS).snapshot(), &mut |key, _| {
            part.records += 1;
            if let Err(error) = category::open(key) {
                part.wrong.push(format!("the key {}: {error}", show::key(key)));
            }
            kumiko_kv::Flow::Go
        })?;
    }
    Ok(part)
}

fn coordinator(engine: &dyn Engine, category: Category) -> Result<Part, Error> {
    let mut found = Found::default();
    let mut left = Some(Range::prefix(&category.prefix()));
    while let Some(range) = left {
        left = check::step(engine.begin()?.as_mut(), category, range, STEP_ROWS, &mut found)?;
    }
    let name = format!("coordinator {}", char::from(category.letter()));
    Ok(Part { name, records: found.records, wrong: found.wrong })
}

fn points(engine: &dyn Engine, parts: &mut Vec<Part>) -> Result<(), Error> {
    let mut from = Point::new(0);
    loop {
        let page = point::list(engine.begin()?.as_mut(), from, STEP_ROWS)?;
        for point in &page {
            parts.push(log(engine, format!("point {point}"), &Log::of(*point))?);
        }
        match page.last().and_then(|last| last.number().checked_add(1)) {
            Some(next) if page.len() == STEP_ROWS => from = Point::new(next),
            _ => return Ok(()),
        }
    }
}

/// The logs under category L: one for each owner and database.
fn journals(engine: &dyn Engine, parts: &mut Vec<Part>) -> Result<(), Error> {
    let mut left = Range::prefix(&Category::Lattice.prefix());
    loop {
        let page = engine.begin()?.scan(&Scan::new(left.clone()).rows(1).snapshot())?;
        let Some((key, _)) = page.rows.first() else { return Ok(()) };
        let prefix = journal_prefix(key).map_err(|why| Error::new(Kind::Corrupt, why))?;
        parts.push(log(
            engine,
            format!("journal {}", show::key(&prefix)),
            &Log::new(prefix.clone()),
        )?);
        // What a log writes behind its prefix may start with any byte.
        left.start = next_prefix(prefix);
    }
}

fn journal_prefix(key: &[u8]) -> Result<Vec<u8>, String> {
    let mut reader = category::open_as(Category::Lattice, key).map_err(|it| it.to_string())?;
    for _ in 0..2 {
        reader.element().map_err(|error| format!("the key {}: {error}", show::key(key)))?;
    }
    let size = key.len() - reader.rest().len();
    Ok(key.get(..size).unwrap_or_default().to_vec())
}

fn next_prefix(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < 0xFF {
            prefix.push(last + 1);
            break;
        }
    }
    prefix
}

fn log(engine: &dyn Engine, name: String, log: &Log) -> Result<Part, Error> {
    let report = verify::verify(engine, log, &mut |_, _| {})?;
    let wrong = report.findings.iter().map(ToString::to_string).collect();
    Ok(Part { name, records: report.records, wrong })
}

fn documents(engine: &dyn Engine, parts: &mut Vec<Part>) -> Result<(), Error> {
    for (name, report) in kumiko_document::check::all(engine.begin()?.as_mut())? {
        let records = report.documents + report.entries;
        parts.push(Part { name: format!("collection {name}"), records, wrong: report.faults });
    }
    Ok(())
}

fn print(out: &mut impl Write, json: bool, part: &Part) -> std::io::Result<()> {
    if json {
        let object = serde_json::json!({
            "part": part.name, "records": part.records, "wrong": part.wrong,
        });
        return writeln!(out, "{object}");
    }
    let verdict = match part.wrong.len() {
        0 => "ok".to_string(),
        count => format!("{count} WRONG"),
    };
    writeln!(out, "{:<40} {:>12} records  {verdict}", part.name, part.records)?;
    for why in part.wrong.iter().take(SHOWN_MAX) {
        writeln!(out, "    {why}")?;
    }
    if let Some(more) = part.wrong.len().checked_sub(SHOWN_MAX).filter(|it| *it != 0) {
        writeln!(out, "    and {more} more")?;
    }
    Ok(())
}
