//! What appends: events and snapshots.

use std::io::{BufRead, Write};

use kumiko_eventlog::{EventId, Item, Log, Point, Take, Writer};
use kumiko_kv::{Engine, Read};
use kumiko_node::Error;
use serde_json::json;

use super::{Args, OWNER, Source, event_id, now_ms};

/// A batch of lines is sent once it has this many bytes or lines.
const BATCH_BYTES: usize = 1_000_000;
const BATCH_LINES: usize = 1_000;

/// Holds the log of `point` while `body` runs.
pub(super) fn hold<T>(
    engine: &dyn Engine,
    args: &Args,
    point: Point,
    body: impl FnOnce(&Writer) -> Result<T, kumiko_eventlog::Error>,
) -> Result<T, Error> {
    let take = if args.take_over { Take::Over } else { Take::IfFree };
    let writer = Writer::open(engine, &Log::of(point), OWNER, take)?;
    let result = body(&writer);
    let released = writer.release(engine);
    let value = result?;
    released?;
    Ok(value)
}

fn next_id(engine: &dyn Engine, log: &Log) -> Result<EventId, kumiko_eventlog::Error> {
    Ok(log.bounds(engine.begin()?.as_mut(), Read::Snapshot)?.latest.next())
}

/// The flags of `log append`.
#[derive(clap::Args, Debug)]
pub(super) struct Append {
    /// The point, like ~sampel-palnet
    point: Point,
    /// The file with the event, or "-" for stdin
    file: Source,
    /// The id that the event must get; the next one if it is left out
    #[arg(long, value_parser = event_id)]
    id: Option<EventId>,
    /// Every line is an event; prints the id of the last
    #[arg(long)]
    lines: bool,
}

impl Append {
    pub(super) fn run(&self, engine: &dyn Engine, args: &Args) -> Result<(), Error> {
        let mut source = self.file.open()?;
        let (last, count) = hold(engine, args, self.point, |writer| {
            let first = match self.id {
                Some(id) => id,
                None => next_id(engine, writer.log())?,
            };
            if self.lines {
                return append_lines(engine, writer, first, source.as_mut());
            }
            let hour = Item::event(&[]).at_ms(now_ms()).hour;
            writer.append_from(engine, first, source.as_mut(), hour)?;
            Ok((first, 1))
        })?;
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{}", json!({"id": last.get(), "events": count}))?;
        } else {
            writeln!(out, "{last}")?;
        }
        Ok(())
    }
}

fn append_lines(
    engine: &dyn Engine,
    writer: &Writer,
    first: EventId,
    source: &mut dyn std::io::Read,
) -> Result<(EventId, u64), kumiko_eventlog::Error> {
    let mut lines = std::io::BufReader::new(source);
    let mut next = first;
    let mut count = 0;
    loop {
        let mut batch: Vec<Vec<u8>> = Vec::new();
        let mut size = 0;
        while size < BATCH_BYTES && batch.len() < BATCH_LINES {
            let mut line = Vec::new();
            // One byte more than fits, so that a longer line is noticed and not cut.
            let limit = kumiko_eventlog::log::BATCH_BYTES_MAX as u64;
            if std::io::Read::take(&mut lines, limit).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            size += line.len();
            batch.push(line);
        }
        if batch.is_empty() {
            return Ok((next.prior(), count));
        }
        let items: Vec<Item<'_>> =
            batch.iter().map(|line| Item::event(line).at_ms(now_ms())).collect();
        next = writer.append(engine, next, &items)?.last.next();
        count += items.len() as u64;
    }
}

/// The flags of `log snapshot`.
#[derive(clap::Args, Debug)]
pub(super) struct Snapshot {
    /// The point, like ~sampel-palnet
    point: Point,
    /// The file with the state, or "-" for stdin
    file: Source,
    /// The event after which the state was taken; the latest if it is left out
    #[arg(long, value_parser = event_id)]
    at: Option<EventId>,
}

impl Snapshot {
    pub(super) fn run(&self, engine: &dyn Engine, args: &Args) -> Result<(), Error> {
        let mut source = self.file.open()?;
        let made = hold(engine, args, self.point, |writer| {
            let at = match self.at {
                Some(at) => at,
                None => next_id(engine, writer.log())?.prior(),
            };
            writer.snapshot(engine, at, source.as_mut())
        })?;
        let mut out = std::io::stdout().lock();
        if args.json {
            let crc = format!("{:08x}", made.crc);
            writeln!(out, "{}", json!({"id": made.id.get(), "size": made.size, "crc32": crc}))?;
        } else {
            writeln!(out, "after event {}  {} bytes", made.id, made.size)?;
        }
        Ok(())
    }
}
