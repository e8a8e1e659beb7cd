//! LOG: the event log of a point.
//!
//! An append is one transaction of the engine and is answered when it is durable; other clients
//! wait for that long, so a writer of many events sends them in one command.

use crate::command::{Command, DENYOOM, FAST, Meaning, READONLY, WRITE};
use crate::eventlog::EventLog;
use crate::{Args, Context, Fail, Outcome, fail};

/// How many events one LOG.READ gives if it is not told.
const EVENTS_DEFAULT: i64 = 100;
/// How many events one LOG.READ gives at most.
const EVENTS_MAX: i64 = 10_000;
/// How many points LOG.POINTS gives at most.
const POINTS_MAX: usize = 10_000;

/// The commands of this family.
pub static COMMANDS: &[Command] = &[
    Command::new("log.append", -3, append)
        .flags(WRITE | DENYOOM)
        .meaning(Meaning::Local)
        .summary("Appends events to the log of a point, all or none; answers the first id"),
    Command::new("log.read", -3, read)
        .flags(READONLY)
        .meaning(Meaning::Local)
        .summary("The events of a point from an id on: LOG.READ point id [COUNT n]"),
    Command::new("log.latest", 2, latest)
        .flags(READONLY | FAST)
        .meaning(Meaning::Local)
        .summary("The id of the latest event of a point, 0 if there is none"),
    Command::new("log.extent", 2, extent)
        .flags(READONLY | FAST)
        .meaning(Meaning::Local)
        .summary("The first event that is kept and the latest"),
    Command::new("log.points", 1, points)
        .flags(READONLY)
        .meaning(Meaning::Local)
        .summary("The points that have a log"),
];

fn log<'c>(ctx: &'c mut Context<'_>) -> Result<&'c mut dyn EventLog, Fail> {
    match &mut ctx.server.event_log {
        Some(log) => Ok(log.as_mut()),
        None => Err(Fail::new("ERR this server keeps no event log")),
    }
}

fn told(text: String) -> Fail {
    Fail::text(format!("ERR {text}"))
}

fn append(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let events: Vec<&[u8]> = args.from(2).collect();
    let first = log(ctx)?.append(&args.text(1), &events).map_err(told)?;
    ctx.reply.int(first as i64);
    Ok(())
}

fn read(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let count = match args.len() {
        3 => EVENTS_DEFAULT,
        5 if args.is(3, "count") => args.int_within(4, 1, EVENTS_MAX, fail::OUT_OF_RANGE)?,
        _ => return Err(fail::SYNTAX),
    };
    let from = args.int_within(2, 0, i64::MAX, fail::OUT_OF_RANGE)? as u64;
    let events = log(ctx)?.read(&args.text(1), from, count as usize).map_err(told)?;
    ctx.reply.array(events.len());
    for (id, bytes) in events {
        ctx.reply.array(2);
        ctx.reply.int(id as i64);
        ctx.reply.bulk(&bytes);
    }
    Ok(())
}

fn latest(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let extent = log(ctx)?.extent(&args.text(1)).map_err(told)?;
    ctx.reply.int(extent.latest as i64);
    Ok(())
}

fn extent(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let extent = log(ctx)?.extent(&args.text(1)).map_err(told)?;
    ctx.reply.array(2);
    ctx.reply.int(extent.first as i64);
    ctx.reply.int(extent.latest as i64);
    Ok(())
}

fn points(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let names = log(ctx)?.points(POINTS_MAX).map_err(told)?;
    ctx.reply.array(names.len());
    for name in names {
        ctx.reply.bulk(name.as_bytes());
    }
    Ok(())
}
