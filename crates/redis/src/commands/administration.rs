//! The server as a whole: facts, saving, stopping, databases.

use crate::client::{TimedOut, Wanted};
use crate::command::acl::{BLOCKING as BLOCKS, CONNECTION, DANGEROUS};
use crate::command::{
    ADMIN, ALLOW_BUSY, BLOCKING, Command, FAST, LOADING, NO_MULTI, NOSCRIPT, READONLY, STALE, WRITE,
};
use crate::server::Effect;
use crate::{Args, Context, Fail, Outcome, fail};

/// The commands of this family.
pub static COMMANDS: &[Command] = &[
    Command::new("info", -1, info)
        .flags(LOADING | STALE)
        .acl(DANGEROUS)
        .summary("Facts and counters"),
    Command::new("time", 1, time).flags(LOADING | STALE | FAST).summary("The time of the server"),
    Command::new("lastsave", 1, lastsave)
        .flags(LOADING | STALE | FAST)
        .acl(crate::command::acl::ADMIN | DANGEROUS)
        .summary("When the last snapshot was finished"),
    Command::new("save", 1, save)
        .flags(ADMIN | NOSCRIPT | NO_MULTI)
        .summary("Makes a snapshot of all data in the journal"),
    Command::new("bgsave", -1, bgsave)
        .flags(ADMIN | NOSCRIPT)
        .summary("Makes a snapshot of all data in the journal, in the background"),
    Command::new("bgrewriteaof", 1, bgrewriteaof)
        .flags(ADMIN | NOSCRIPT)
        .summary("Makes a snapshot, which lets the journal drop what is older"),
    Command::new("shutdown", -1, shutdown)
        .flags(ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY)
        .summary("Stops the server; all that was answered is in the journal"),
    Command::new("role", 1, role)
        .flags(NOSCRIPT | LOADING | STALE | FAST)
        .acl(crate::command::acl::ADMIN | DANGEROUS)
        .summary("Every node is a master: it takes writes"),
    Command::new("replicaof", 3, replicaof)
        .flags(ADMIN | NOSCRIPT | STALE)
        .summary("Refused: nodes converge by merging"),
    Command::new("slaveof", 3, replicaof)
        .flags(ADMIN | NOSCRIPT | STALE)
        .summary("Refused: nodes converge by merging"),
    Command::new("failover", -1, failover)
        .flags(ADMIN | NOSCRIPT | STALE)
        .summary("Refused: there is no primary to replace"),
    Command::new("wait", 3, wait)
        .flags(BLOCKING)
        .acl(CONNECTION | BLOCKS)
        .summary("How many peers have this client's writes"),
    Command::new("cluster", -2, cluster)
        .flags(STALE)
        .summary("Refused: the nodes of a cluster are asked by kumiko cluster"),
    Command::new("lolwut", -1, lolwut)
        .flags(READONLY | FAST)
        .summary("A small picture and the version"),
    Command::new("function", -2, super::needs_word)
        .with(FUNCTION)
        .summary("About functions: there are none"),
];

static FUNCTION: &[Command] = &[
    Command::new("function|flush", -2, function_flush)
        .flags(WRITE | NOSCRIPT)
        .summary("Removes all functions: there are none"),
    Command::new("function|list", -2, function_list)
        .flags(NOSCRIPT)
        .summary("All functions: there are none"),
];

fn info(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let sections: Vec<String> =
        (1..args.len()).map(|at| args.text(at).to_ascii_lowercase()).collect();
    let text = crate::info::text(ctx.server, ctx.client, &sections);
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn time(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let micros = ctx.server.micros();
    ctx.reply.array(2);
    ctx.reply.bulk_int((micros / 1_000_000) as i64);
    ctx.reply.bulk_int((micros % 1_000_000) as i64);
    Ok(())
}

fn lastsave(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.int((ctx.server.facts.last_snapshot_ms / 1000) as i64);
    Ok(())
}

fn save(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    if ctx.server.facts.snapshot_runs {
        return Err(Fail::new("ERR Background save already in progress"));
    }
    ctx.server.effects.push(Effect::Snapshot);
    ctx.reply.ok();
    Ok(())
}

fn bgsave(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if 2 < args.len() || (args.len() == 2 && !args.is(1, "schedule")) {
        return Err(fail::SYNTAX);
    }
    if ctx.server.facts.snapshot_runs {
        return Err(Fail::new("ERR Background save already in progress"));
    }
    ctx.server.effects.push(Effect::Snapshot);
    ctx.reply.simple("Background saving started");
    Ok(())
}

fn bgrewriteaof(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    if ctx.server.facts.snapshot_runs {
        return Err(Fail::new("ERR Background append only file rewriting already in progress"));
    }
    ctx.server.effects.push(Effect::Snapshot);
    ctx.reply.simple("Background append only file rewriting started");
    Ok(())
}

fn shutdown(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let mut abort = false;
    for at in 1..args.len() {
        match args.text(at).to_ascii_lowercase().as_str() {
            "save" | "nosave" | "now" | "force" => {}
            "abort" => abort = true,
            _ => return Err(fail::SYNTAX),
        }
    }
    if abort {
        if args.len() != 2 {
            return Err(fail::SYNTAX);
        }
        return Err(Fail::new("ERR No shutdown in progress."));
    }
    ctx.server.stopping = true;
    ctx.client.closing = true;
    Ok(())
}

fn role(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.array(3);
    ctx.reply.bulk(b"master");
    ctx.reply.int(0);
    ctx.reply.array(0);
    Ok(())
}

fn replicaof(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if args.is(1, "no") && args.is(2, "one") {
        ctx.reply.ok();
        return Ok(());
    }
    Err(Fail::new(
        "ERR this server follows no primary: add the other node as a peer, and both converge",
    ))
}

fn failover(_ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    Err(Fail::new("ERR FAILOVER requires connected replicas."))
}

fn wait(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let wanted = args.int(1)?;
    let bad = fail::TIMEOUT_NOT_INTEGER;
    let timeout = args.int(2).map_err(|_| bad)?;
    let timeout = u64::try_from(timeout).map_err(|_| fail::TIMEOUT_NEGATIVE)?;
    let acknowledged = ctx.server.facts.peers_acknowledged as i64;
    if wanted <= acknowledged || !ctx.may_block() {
        ctx.reply.int(acknowledged);
        return Ok(());
    }
    let nothing: [&[u8]; 0] = [];
    ctx.block(args, nothing.into_iter(), Wanted::Time, timeout, TimedOut::Int(acknowledged));
    Ok(())
}

fn cluster(_ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    Err(Fail::new("ERR This instance has cluster support disabled"))
}

fn lolwut(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let mut text = String::new();
    for row in 0..6 {
        for column in 0..24 {
            let joined = (row + column) % 2 == 0 || ctx.server.random.one_in(5);
            text.push_str(if joined { "/\\" } else { "\\/" });
        }
        text.push('\n');
    }
    let text = format!("{text}Redis ver. {}\n", crate::server::REDIS_VERSION);
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn function_flush(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if 3 < args.len() || (args.len() == 3 && !args.is(2, "sync") && !args.is(2, "async")) {
        return Err(Fail::new("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    ctx.reply.ok();
    Ok(())
}

fn function_list(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.array(0);
    Ok(())
}
