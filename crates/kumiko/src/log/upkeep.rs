//! What keeps logs in order: verify, repair, truncate.

use std::io::Write;

use kumiko_base::Kind;
use kumiko_eventlog::repair::Allow;
use kumiko_eventlog::verify::Report;
use kumiko_eventlog::{EventId, Log, Point};
use kumiko_kv::Engine;
use kumiko_node::Error;
use serde_json::{Value as Json, json};

use super::{Args, Bar, OWNER, event_id, show, write};

pub(super) fn verify(engine: &dyn Engine, point: Option<Point>, json: bool) -> Result<(), Error> {
    let points = point.map_or_else(|| show::all_points(engine), |point| Ok(vec![point]))?;
    let mut wrong = 0;
    for point in &points {
        let mut progress = Bar::default();
        let report = kumiko_eventlog::verify::verify(engine, &Log::of(*point), &mut |done, all| {
            progress.tell(done.get(), all.get());
        });
        drop(progress);
        let report = report?;
        wrong += report.findings_count;
        print(*point, &report, json)?;
    }
    if wrong != 0 {
        return Err(Error::new(Kind::Corrupt, format!("{wrong} findings; see kumiko log repair")));
    }
    Ok(())
}

fn report_json(report: &Report) -> Json {
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    json!({
        "first": report.first.get(),
        "latest": report.latest.get(),
        "events": report.events,
        "bytes": report.bytes,
        "records": report.records,
        "snapshots": report.snapshots,
        "findings_count": report.findings_count,
        "findings": findings,
    })
}

fn print(point: Point, report: &Report, json: bool) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    if json {
        let mut row = report_json(report);
        row["point"] = point.to_string().into();
        return Ok(writeln!(out, "{row}")?);
    }
    let Report { first, latest, events, bytes, records, snapshots, .. } = report;
    let state = if report.is_clean() { "ok" } else { "DAMAGED" };
    writeln!(
        out,
        "{point}  {state}  {first}..{latest}  {events} events, {bytes} bytes, {records} records, \
         {snapshots} snapshots"
    )?;
    for finding in &report.findings {
        writeln!(out, "  {finding}")?;
    }
    let more = report.findings_count - report.findings.len() as u64;
    if more != 0 {
        writeln!(out, "  and {more} more")?;
    }
    Ok(())
}

/// The flags of `log repair`.
#[derive(clap::Args, Debug)]
pub(super) struct Repair {
    /// The point, like ~sampel-palnet
    point: Point,
    /// Cut the log before its first damaged event; what comes after is lost
    #[arg(long)]
    cut: bool,
    /// Remove keys that are not of the format
    #[arg(long)]
    foreign: bool,
}

impl Repair {
    pub(super) fn run(&self, engine: &dyn Engine, args: &Args) -> Result<(), Error> {
        let allow = Allow { foreign: self.foreign, cut: self.cut, take_over: args.take_over };
        let log = Log::of(self.point);
        let done = kumiko_eventlog::repair::repair(engine, &log, OWNER, allow)?;
        let mut out = std::io::stdout().lock();
        if args.json {
            let row = json!({
                "point": self.point.to_string(),
                "before": report_json(&done.before),
                "actions": done.actions,
                "after": report_json(&done.after),
            });
            writeln!(out, "{row}")?;
        } else {
            for action in &done.actions {
                writeln!(out, "{action}")?;
            }
            drop(out);
            print(self.point, &done.after, false)?;
        }
        if done.after.is_clean() {
            return Ok(());
        }
        let left = done.after.findings_count;
        Err(Error::new(Kind::Corrupt, format!("{left} findings are left")))
    }
}

/// The flags of `log truncate`.
#[derive(clap::Args, Debug)]
pub(super) struct Truncate {
    /// The point, like ~sampel-palnet
    point: Point,
    /// The last event to remove; a snapshot must exist at it or after it
    #[arg(long, value_parser = event_id)]
    to: EventId,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

impl Truncate {
    pub(super) fn run(&self, engine: &dyn Engine, args: &Args) -> Result<(), Error> {
        let done = write::hold(engine, args, self.point, |writer| {
            if self.dry_run {
                writer.can_truncate(engine, self.to)
            } else {
                writer.truncate(engine, self.to)
            }
        })?;
        let mut out = std::io::stdout().lock();
        let snapshot = done.snapshot.map(|it| it.id.get());
        if args.json {
            let row = json!({"first": done.first.get(), "removed": done.events,
                "snapshot": snapshot, "dry_run": self.dry_run});
            writeln!(out, "{row}")?;
        } else {
            let would = if self.dry_run { "would remove" } else { "removed" };
            writeln!(out, "{would} {} events, the first kept is {}", done.events, done.first)?;
        }
        Ok(())
    }
}
