//! OBJECT: what is known about a key besides its value.

use crate::command::{READONLY, acl};
use crate::commands::data;
use crate::fail::{self, Fail};
use crate::{Args, Command, Context, Meaning, Outcome};
use kumiko_lattice::live::Facts;

pub(super) const SUBCOMMANDS: &[Command] = &[
    row("object|encoding", encoding).summary("How a value is stored"),
    row("object|freq", freq).summary("How often a key is used"),
    row("object|idletime", idletime).summary("How long a key was not used"),
    row("object|refcount", refcount).summary("Always 1: values are not shared"),
    Command::new("object|help", 2, help).acl(acl::KEYSPACE).summary("What OBJECT can tell"),
];

const fn row(name: &'static str, run: crate::command::Run) -> Command {
    Command::new(name, 3, run)
        .flags(READONLY)
        .acl(acl::KEYSPACE)
        .keys(2, 2, 1)
        .meaning(Meaning::Local)
}

const COUNTS_USES: Fail = Fail::new(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
     switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const KEEPS_TIME: Fail = Fail::new(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
     when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);

const HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    The form in which the value is stored.",
    "FREQ <key>",
    "    How often the key was used lately, on a logarithmic scale.",
    "IDLETIME <key>",
    "    Seconds since the key was last used.",
    "REFCOUNT <key>",
    "    How many names share the value: always 1.",
    "HELP",
    "    Print this help.",
];

/// Runs if the subcommand is unknown.
pub(super) fn container(_ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    Err(fail::unknown_subcommand("object", args.get(1)))
}

fn facts(ctx: &mut Context<'_>, args: &Args<'_>) -> Option<Facts> {
    let (mut data, reply) = data::open(ctx);
    let facts = data.facts(args.get(2));
    if facts.is_none() {
        reply.null();
    }
    facts
}

fn encoding(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if let Some(facts) = facts(ctx, args) {
        ctx.reply.bulk(facts.encoding.as_bytes());
    }
    Ok(())
}

fn refcount(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if facts(ctx, args).is_some() {
        ctx.reply.int(1);
    }
    Ok(())
}

fn idletime(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let Some(facts) = facts(ctx, args) else { return Ok(()) };
    if ctx.server.live.settings().count_uses {
        return Err(COUNTS_USES);
    }
    ctx.reply.int(facts.idle_s as i64);
    Ok(())
}

fn freq(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let Some(facts) = facts(ctx, args) else { return Ok(()) };
    if !ctx.server.live.settings().count_uses {
        return Err(KEEPS_TIME);
    }
    ctx.reply.int(i64::from(facts.uses));
    Ok(())
}

fn help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.array(HELP.len());
    for line in HELP {
        ctx.reply.simple(line);
    }
    Ok(())
}
