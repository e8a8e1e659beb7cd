//! The connection itself: greeting, database, protocol version.

use crate::client::Client;
use crate::command::acl::CONNECTION;
use crate::command::{Command, FAST, LOADING, STALE};
use crate::{Args, Context, Outcome, Version, fail};

/// The commands of this family.
pub static COMMANDS: &[Command] = &[
    Command::new("ping", -1, ping)
        .flags(FAST)
        .acl(CONNECTION)
        .summary("Answers PONG, or its argument"),
    Command::new("echo", 2, echo)
        .flags(LOADING | STALE | FAST)
        .acl(CONNECTION)
        .summary("Answers its argument"),
];

fn ping(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if 2 < args.len() {
        return Err(fail::arity("ping"));
    }
    if ctx.client.only_subscribes() {
        ctx.reply.array(2);
        ctx.reply.bulk(b"pong");
        ctx.reply.bulk(args.try_get(1).unwrap_or(b""));
        return Ok(());
    }
    match args.try_get(1) {
        Some(text) => ctx.reply.bulk(text),
        None => ctx.reply.simple("PONG"),
    }
    Ok(())
}

fn echo(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    ctx.reply.bulk(args.get(1));
    Ok(())
}

/// Whether replies to this client may use the types of version 3.
pub fn speaks_resp3(client: &Client) -> bool {
    client.version == Version::Resp3
}

/// Answers the subcommands of a container, one line each.
pub fn help(ctx: &mut Context<'_>, container: &str, nested: &[Command]) {
    ctx.reply.array(nested.len() * 2 + 1);
    ctx.reply
        .simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for command in nested {
        let name = command.name.rsplit('|').next().unwrap_or(command.name);
        ctx.reply.simple(&name.to_ascii_uppercase());
        ctx.reply.simple(&format!("    {}.", command.summary));
    }
}
