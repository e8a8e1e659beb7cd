//! CONFIG: reading and changing parameters.

use crate::command::{ADMIN, Command, LOADING, NOSCRIPT, STALE};
use crate::{Args, Context, Fail, Outcome, fail};

/// The commands of this family.
pub static COMMANDS: &[Command] =
    &[Command::new("config", -2, super::needs_word).with(NESTED).summary("About parameters")];

const fn row(name: &'static str, arity: i32, run: crate::command::Run) -> Command {
    Command::new(name, arity, run).flags(ADMIN | NOSCRIPT | LOADING | STALE)
}

static NESTED: &[Command] = &[
    row("config|get", -3, get).summary("The parameters that match patterns"),
    row("config|set", -4, set).summary("Changes parameters, all or none"),
    row("config|resetstat", 2, resetstat).summary("Sets the counters of INFO to zero"),
    row("config|rewrite", 2, rewrite).summary("Writes the parameters to the settings file"),
    row("config|help", 2, help).summary("What CONFIG can do"),
];

fn get(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let found = ctx.server.config.matching(args.from(2));
    ctx.reply.map(found.len());
    for (name, value) in found {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.bulk(value.as_bytes());
    }
    Ok(())
}

fn set(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if !args.len().is_multiple_of(2) {
        return Err(fail::arity("config|set"));
    }
    let pairs: Vec<(&[u8], &[u8])> =
        (2..args.len()).step_by(2).map(|at| (args.get(at), args.get(at + 1))).collect();
    let names = ctx.server.config.set(&pairs)?;
    ctx.server.apply_config(&names);
    ctx.reply.ok();
    Ok(())
}

fn resetstat(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.server.stats.reset();
    ctx.reply.ok();
    Ok(())
}

/// Parameters set here last until the server stops: settings are in files and flags that belong to
/// whoever runs the server.
fn rewrite(_ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    Err(Fail::new("ERR The server is running without a config file"))
}

fn help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    super::help(ctx, "CONFIG", NESTED);
    Ok(())
}
