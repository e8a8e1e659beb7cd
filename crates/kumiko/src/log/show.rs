//! What only reads: points, read, tail, latest, stat, snapshots.

use std::io::Write;
use std::time::Duration;

use kumiko_base::hex;
use kumiko_eventlog::stat::{CLASS_BYTES, Stat};
use kumiko_eventlog::{
    Content, EventId, EventReader, Follow, Log, Page, PageMax, Point, SnapshotReader, point,
};
use kumiko_kv::{Engine, Read as Mode};
use kumiko_node::Error;
use serde_json::json;

use super::{Bar, event_id};

/// How many points one transaction lists.
const POINTS_MAX: usize = 1_000;
/// How many bytes of an event are shown to a person.
const SHOWN_BYTES: usize = 32;

/// Every point of the store.
pub(super) fn all_points(engine: &dyn Engine) -> Result<Vec<Point>, Error> {
    let mut all: Vec<Point> = Vec::new();
    let mut from = Some(Point::new(0));
    while let Some(start) = from {
        let page = point::list(engine.begin()?.as_mut(), start, POINTS_MAX)?;
        let last = page.last().copied().filter(|_| page.len() == POINTS_MAX);
        from = last.and_then(|it| it.number().checked_add(1)).map(Point::new);
        all.extend(page);
    }
    Ok(all)
}

fn bounds(engine: &dyn Engine, point: Point) -> Result<kumiko_eventlog::Bounds, Error> {
    Ok(Log::of(point).bounds(engine.begin()?.as_mut(), Mode::Snapshot)?)
}

pub(super) fn points(engine: &dyn Engine, json: bool) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    for point in all_points(engine)? {
        let bounds = bounds(engine, point)?;
        let (first, latest, count) = (bounds.first.get(), bounds.latest.get(), bounds.count());
        if json {
            let number = point.number().to_string();
            let point = point.to_string();
            let row = json!({"point": point, "number": number, "first": first, "latest": latest,
                "events": count});
            writeln!(out, "{row}")?;
        } else {
            writeln!(out, "{point}  {first}..{latest}  {count} events")?;
        }
    }
    Ok(())
}

pub(super) fn latest(engine: &dyn Engine, point: Point, json: bool) -> Result<(), Error> {
    let bounds = bounds(engine, point)?;
    let mut out = std::io::stdout().lock();
    if json {
        let (first, latest) = (bounds.first.get(), bounds.latest.get());
        writeln!(out, "{}", json!({"latest": latest, "first": first, "events": bounds.count()}))?;
    } else {
        writeln!(out, "{}", bounds.latest)?;
    }
    Ok(())
}

/// The flags of `log read`.
#[derive(clap::Args, Debug)]
pub(super) struct Read {
    /// The point, like ~sampel-palnet
    point: Point,
    /// Begin with this event; the first that is kept, or with --back the latest
    #[arg(long, value_parser = event_id)]
    from: Option<EventId>,
    /// Print at most this many events
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
    /// Write the bytes of the events and nothing else
    #[arg(long)]
    raw: bool,
    /// Print the newest event first
    #[arg(long)]
    back: bool,
}

impl Read {
    pub(super) fn run(&self, engine: &dyn Engine, json: bool) -> Result<(), Error> {
        let log = Log::of(self.point);
        let mut next = match (self.from, self.back) {
            (Some(from), _) => Some(from),
            (None, true) => Some(EventId::MAX),
            (None, false) => Some(bounds(engine, self.point)?.first),
        };
        let mut left = self.limit;
        let mut printer = Printer::new(engine, &log, json, self.raw);
        while let Some(from) = next.filter(|_| 0 < left) {
            let events = usize::try_from(left).unwrap_or(usize::MAX);
            let max =
                PageMax { events: PageMax::default().events.min(events), ..PageMax::default() };
            let mut txn = engine.begin()?;
            let page = if self.back {
                log.page_back(txn.as_mut(), from, max)
            } else {
                log.page(txn.as_mut(), from, max)
            };
            drop(txn);
            let page = page?;
            left -= page.events.len() as u64;
            next = page.next;
            printer.page(page)?;
        }
        Ok(())
    }
}

/// The flags of `log tail`.
#[derive(clap::Args, Debug)]
pub(super) struct Tail {
    /// The point, like ~sampel-palnet
    point: Point,
    /// Begin with this event; the one after the latest if it is left out
    #[arg(long, value_parser = event_id)]
    from: Option<EventId>,
    /// Stop after this many events
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
    /// Write the bytes of the events and nothing else
    #[arg(long)]
    raw: bool,
}

impl Tail {
    pub(super) fn run(&self, engine: &dyn Engine, json: bool) -> Result<(), Error> {
        let log = Log::of(self.point);
        let from = match self.from {
            Some(from) => from,
            None => bounds(engine, self.point)?.latest.next(),
        };
        let mut left = self.limit;
        let mut printer = Printer::new(engine, &log, json, self.raw);
        let mut next = from;
        while 0 < left {
            let events = PageMax::default().events.min(usize::try_from(left).unwrap_or(usize::MAX));
            let max = PageMax { events, ..PageMax::default() };
            let mut follow = Follow::new(&log, next, max);
            let page = follow.next(engine, Duration::from_secs(10))?;
            next = follow.next_id();
            left -= page.events.len() as u64;
            printer.page(page)?;
        }
        Ok(())
    }
}

/// Prints events in one of three forms.
struct Printer<'a> {
    engine: &'a dyn Engine,
    log: &'a Log,
    json: bool,
    raw: bool,
    out: std::io::BufWriter<std::io::StdoutLock<'static>>,
}

impl<'a> Printer<'a> {
    fn new(engine: &'a dyn Engine, log: &'a Log, json: bool, raw: bool) -> Printer<'a> {
        let out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
        Printer { engine, log, json, raw, out }
    }

    fn page(&mut self, page: Page) -> Result<(), Error> {
        for (id, content) in page.events {
            if self.raw {
                self.bytes(id, content, Printer::write)?;
            } else if self.json {
                self.json(id, content)?;
            } else {
                self.line(id, &content)?;
            }
        }
        Ok(self.out.flush()?)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.out.write_all(bytes)?)
    }

    /// All bytes of an event, piece by piece if it is large.
    fn bytes(
        &mut self,
        id: EventId,
        content: Content,
        mut each: impl FnMut(&mut Printer<'a>, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match content {
            Content::Event(bytes) | Content::Special(_, bytes) => each(self, &bytes),
            Content::Large(_) => {
                let mut reader = EventReader::new(self.log, id);
                while let Some(part) = reader.next(self.engine)? {
                    each(self, &part)?;
                }
                Ok(())
            }
        }
    }

    fn json(&mut self, id: EventId, content: Content) -> Result<(), Error> {
        let special = match &content {
            Content::Special(descriptor, _) => format!(",\"special\":{descriptor}"),
            Content::Event(_) | Content::Large(_) => String::new(),
        };
        let size = content.size();
        write!(self.out, "{{\"id\":{id},\"size\":{size}{special},\"hex\":\"")?;
        self.bytes(id, content, |printer, bytes| printer.write(hex::show(bytes).as_bytes()))?;
        Ok(self.out.write_all(b"\"}\n")?)
    }

    fn line(&mut self, id: EventId, content: &Content) -> Result<(), Error> {
        let size = content.size();
        let shown = match content {
            Content::Event(bytes) => preview(bytes),
            Content::Special(descriptor, bytes) => {
                format!("special {descriptor:02x} {}", preview(bytes))
            }
            Content::Large(_) => "(large)".into(),
        };
        Ok(writeln!(self.out, "{id}  {size} bytes  {shown}")?)
    }
}

/// Text if it is text, else digits; cut short.
fn preview(bytes: &[u8]) -> String {
    let part = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let more = if part.len() < bytes.len() { ".." } else { "" };
    match std::str::from_utf8(part) {
        Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}{more}"),
        _ => format!("{}{more}", hex::show(part)),
    }
}

pub(super) fn stat(engine: &dyn Engine, point: Option<Point>, json: bool) -> Result<(), Error> {
    let points = point.map_or_else(|| all_points(engine), |point| Ok(vec![point]))?;
    for point in points {
        let mut progress = Bar::default();
        let stat = kumiko_eventlog::stat::stat(engine, &Log::of(point), &mut |done, all| {
            progress.tell(done, all);
        });
        drop(progress);
        let stat = stat?;
        if json { stat_json(point, &stat)? } else { stat_text(point, &stat)? }
    }
    Ok(())
}

fn stat_json(point: Point, stat: &Stat) -> Result<(), Error> {
    let bound = |index: usize| CLASS_BYTES.get(index).copied();
    let classes: Vec<_> = (0..).zip(&stat.classes).map(|(index, amount)| {
        json!({"bytes_max": bound(index), "events": amount.events, "bytes": amount.bytes})
    }).collect();
    let hours: Vec<_> = stat
        .hours
        .iter()
        .map(|(hour, amount)| {
            let hour_ms = u64::from(*hour) * 3_600_000;
            json!({"hour_ms": hour_ms, "events": amount.events, "bytes": amount.bytes})
        })
        .collect();
    let largest: Vec<_> =
        stat.largest.iter().map(|(id, size)| json!({"id": id.get(), "bytes": size})).collect();
    let row = json!({
        "point": point.to_string(),
        "first": stat.bounds.first.get(),
        "latest": stat.bounds.latest.get(),
        "events": stat.total.events,
        "bytes": stat.total.bytes,
        "specials": stat.specials.events,
        "snapshot_bytes": stat.snapshot_bytes,
        "classes": classes,
        "hours": hours,
        "largest": largest,
    });
    Ok(writeln!(std::io::stdout().lock(), "{row}")?)
}

fn stat_text(point: Point, stat: &Stat) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    let (first, latest) = (stat.bounds.first, stat.bounds.latest);
    writeln!(out, "{point}  events {first}..{latest}")?;
    writeln!(out, "{:>14} events {:>16} bytes", stat.total.events, stat.total.bytes)?;
    writeln!(out, "{:>14} special records", stat.specials.events)?;
    writeln!(out, "{:>38} bytes in snapshots", stat.snapshot_bytes)?;
    writeln!(out, "by size")?;
    for (index, amount) in stat.classes.iter().enumerate().filter(|(_, it)| it.events != 0) {
        let class = match CLASS_BYTES.get(index) {
            Some(bound) => format!("up to {bound}"),
            None => "larger".into(),
        };
        writeln!(out, "  {class:<16} {:>12} events {:>16} bytes", amount.events, amount.bytes)?;
    }
    if !stat.hours.is_empty() {
        writeln!(out, "by day, as appended")?;
    }
    let mut days = std::collections::BTreeMap::<u32, (u64, u64)>::new();
    for (hour, amount) in &stat.hours {
        let day = days.entry(hour / 24).or_default();
        *day = (day.0 + amount.events, day.1 + amount.bytes);
    }
    for (day, (events, bytes)) in days {
        writeln!(out, "  {:<16} {events:>12} events {bytes:>16} bytes", date(day))?;
    }
    writeln!(out, "largest")?;
    for (id, size) in &stat.largest {
        writeln!(out, "  event {id:<20} {size:>16} bytes")?;
    }
    Ok(())
}

/// A day since 1970 as a date, by the usual count of eras of 400 years.
fn date(day: u32) -> String {
    let shifted = u64::from(day) + 719_468;
    let (era, in_era) = (shifted / 146_097, shifted % 146_097);
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let in_month = in_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{in_month:02}")
}

/// The flags of `log snapshots`.
#[derive(clap::Args, Debug)]
pub(super) struct Snapshots {
    /// The point, like ~sampel-palnet
    point: Point,
    /// Write the bytes of the snapshot at this event, and nothing else
    #[arg(long, value_parser = event_id)]
    raw: Option<EventId>,
}

impl Snapshots {
    pub(super) fn run(&self, engine: &dyn Engine, json: bool) -> Result<(), Error> {
        let log = Log::of(self.point);
        let snapshots = log.snapshots(engine.begin()?.as_mut())?;
        let mut out = std::io::stdout().lock();
        if let Some(at) = self.raw {
            let found = snapshots.into_iter().find(|it| it.id == at);
            let missing = || kumiko_eventlog::Error::NotFound(format!("no snapshot at {at}"));
            let mut reader = SnapshotReader::new(&log, found.ok_or_else(missing)?);
            while let Some(part) = reader.next(engine)? {
                out.write_all(&part)?;
            }
            return Ok(());
        }
        for it in snapshots {
            let (id, size, crc) = (it.id.get(), it.size, it.crc);
            if json {
                writeln!(
                    out,
                    "{}",
                    json!({"id": id, "size": size, "crc32": format!("{crc:08x}")})
                )?;
            } else {
                writeln!(out, "after event {id}  {size} bytes  crc32 {crc:08x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates() {
        let rows =
            [(0, "1970-01-01"), (59, "1970-03-01"), (789, "1972-02-29"), (20_000, "2024-10-04")];
        for (day, text) in rows {
            assert_eq!(date(day), text);
        }
    }
}
