//! For whoever looks after the server: MONITOR, SLOWLOG, LATENCY, MEMORY.

use crate::command::acl::READ;
use crate::command::{ADMIN, Command, LOADING, Meaning, NOSCRIPT, READONLY, STALE};
use crate::{Args, Context, Fail, Outcome, fail};

/// The commands of this family.
pub static COMMANDS: &[Command] = &[
    Command::new("monitor", 1, monitor)
        .flags(ADMIN | NOSCRIPT | LOADING | STALE)
        .summary("Shows every command as it runs"),
    Command::new("slowlog", -2, super::needs_word).with(SLOWLOG).summary("Commands that took long"),
    Command::new("latency", -2, super::needs_word).with(LATENCY).summary("Spikes of waiting time"),
    Command::new("memory", -2, super::needs_word).with(MEMORY).summary("What takes memory"),
];

const ADMIN_FLAGS: u32 = ADMIN | NOSCRIPT | LOADING | STALE;

static SLOWLOG: &[Command] = &[
    Command::new("slowlog|get", -2, slowlog_get)
        .flags(ADMIN | LOADING | STALE)
        .summary("The slowest"),
    Command::new("slowlog|len", 2, slowlog_len).flags(ADMIN | LOADING | STALE).summary("How many"),
    Command::new("slowlog|reset", 2, slowlog_reset)
        .flags(ADMIN | LOADING | STALE)
        .summary("Forgets them"),
    Command::new("slowlog|help", 2, slowlog_help)
        .flags(LOADING | STALE)
        .summary("What SLOWLOG can do"),
];

static LATENCY: &[Command] = &[
    Command::new("latency|latest", 2, latency_latest)
        .flags(ADMIN_FLAGS)
        .summary("The newest spikes"),
    Command::new("latency|history", 3, latency_history)
        .flags(ADMIN_FLAGS)
        .summary("The spikes of one event"),
    Command::new("latency|reset", -2, latency_reset).flags(ADMIN_FLAGS).summary("Forgets spikes"),
    Command::new("latency|doctor", 2, latency_doctor).flags(ADMIN_FLAGS).summary("What they tell"),
    Command::new("latency|help", 2, latency_help)
        .flags(LOADING | STALE)
        .summary("What LATENCY can do"),
];

static MEMORY: &[Command] = &[
    Command::new("memory|usage", -3, memory_usage)
        .flags(READONLY)
        .acl(READ)
        .keys(2, 2, 1)
        .meaning(Meaning::Read)
        .summary("How much memory a key takes"),
    Command::new("memory|stats", 2, memory_stats).summary("Where memory goes"),
    Command::new("memory|doctor", 2, memory_doctor).summary("Whether memory is in order"),
    Command::new("memory|purge", 2, memory_purge).summary("Gives memory back"),
    Command::new("memory|malloc-stats", 2, memory_malloc_stats)
        .summary("What the allocator tells: nothing"),
    Command::new("memory|help", 2, memory_help)
        .flags(LOADING | STALE)
        .summary("What MEMORY can do"),
];

fn monitor(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    if ctx.in_multi {
        return Err(Fail::new("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    if !ctx.client.monitor {
        ctx.client.monitor = true;
        ctx.server.monitors += 1;
    }
    ctx.reply.ok();
    Ok(())
}

fn slowlog_get(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if 3 < args.len() {
        return Err(fail::SYNTAX);
    }
    let count = if args.len() == 3 {
        let bad = Fail::new("ERR count should be greater than or equal to -1");
        args.int(2)?;
        args.int_within(2, -1, i64::MAX, bad)?
    } else {
        10
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let entries: Vec<_> = ctx.server.slow.iter().take(count).cloned().collect();
    ctx.reply.array(entries.len());
    for entry in entries {
        ctx.reply.array(6);
        ctx.reply.int(entry.id as i64);
        ctx.reply.int((entry.at_ms / 1000) as i64);
        ctx.reply.int(entry.micros as i64);
        ctx.reply.array(entry.words.len());
        for word in &entry.words {
            ctx.reply.bulk(word);
        }
        ctx.reply.bulk(entry.peer.as_bytes());
        ctx.reply.bulk(&entry.name);
    }
    Ok(())
}

fn slowlog_len(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.count(ctx.server.slow.len());
    Ok(())
}

fn slowlog_reset(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.server.slow.clear();
    ctx.reply.ok();
    Ok(())
}

fn slowlog_help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    super::help(ctx, "SLOWLOG", SLOWLOG);
    Ok(())
}

fn latency_latest(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let spikes: Vec<_> = ctx
        .server
        .spikes
        .iter()
        .filter_map(|(event, list)| {
            let worst = list.iter().map(|it| it.1).max()?;
            list.back().map(|last| (*event, *last, worst))
        })
        .collect();
    ctx.reply.array(spikes.len());
    for (event, (at_s, ms), worst) in spikes {
        ctx.reply.array(4);
        ctx.reply.bulk(event.as_bytes());
        ctx.reply.int(at_s as i64);
        ctx.reply.int(ms as i64);
        ctx.reply.int(worst as i64);
    }
    Ok(())
}

fn latency_history(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let list = ctx.server.spikes.get(&*args.text(2)).cloned().unwrap_or_default();
    ctx.reply.array(list.len());
    for (at_s, ms) in list {
        ctx.reply.array(2);
        ctx.reply.int(at_s as i64);
        ctx.reply.int(ms as i64);
    }
    Ok(())
}

fn latency_reset(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let mut count = 0;
    if args.len() == 2 {
        count = ctx.server.spikes.len();
        ctx.server.spikes.clear();
    }
    for at in 2..args.len() {
        count += usize::from(ctx.server.spikes.remove(&*args.text(at)).is_some());
    }
    ctx.reply.count(count);
    Ok(())
}

fn latency_doctor(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let text = if ctx.server.config.hot.latency_ms == 0 {
        "Latency monitoring is disabled: set latency-monitor-threshold to a number of milliseconds."
            .to_owned()
    } else if ctx.server.spikes.is_empty() {
        "No latency spike was observed.".to_owned()
    } else {
        let lines: Vec<String> = ctx
            .server
            .spikes
            .iter()
            .map(|(event, list)| {
                let worst = list.iter().map(|it| it.1).max().unwrap_or(0);
                format!("{event}: {} spikes, the longest {worst} ms", list.len())
            })
            .collect();
        lines.join("\n")
    };
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn latency_help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    super::help(ctx, "LATENCY", LATENCY);
    Ok(())
}

fn memory_usage(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    match args.len() {
        3 => {}
        5 if args.is(3, "samples") => {
            if args.int(4)? < 0 {
                return Err(fail::SYNTAX);
            }
        }
        _ => return Err(fail::SYNTAX),
    }
    let facts = ctx.live().facts(args.get(2));
    match facts {
        Some(facts) => ctx.reply.count(facts.bytes),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn memory_stats(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let keys: usize = ctx.server.live.databases().map(|(_, _, keys)| keys).sum();
    let data = ctx.server.live.bytes();
    let buffers = ctx.server.unsent_bytes;
    let numbers = [
        ("peak.allocated", ctx.server.stats.memory_peak as usize),
        ("total.allocated", ctx.server.used_memory() as usize),
        ("startup.allocated", 0),
        ("clients.normal", buffers),
        ("dataset.bytes", data),
        ("keys.count", keys),
        ("keys.bytes-per-key", data.checked_div(keys).unwrap_or(0)),
    ];
    ctx.reply.map(numbers.len());
    for (name, number) in numbers {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.count(number);
    }
    Ok(())
}

fn memory_doctor(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let max = ctx.server.config.hot.memory_bytes_max;
    let used = ctx.server.used_memory();
    let text = if 0 < max && max < used {
        format!("The data takes {used} bytes, more than maxmemory ({max}): writes are refused.")
    } else {
        "Nothing to report: the memory in use is what the keys and the clients need.".to_owned()
    };
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn memory_purge(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.ok();
    Ok(())
}

fn memory_malloc_stats(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.bulk(b"Stats not supported for the current allocator");
    Ok(())
}

fn memory_help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    super::help(ctx, "MEMORY", MEMORY);
    Ok(())
}
