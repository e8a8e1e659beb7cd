//! COMMAND: the command table, as clients and tools ask for it.

use crate::command::acl::{CONNECTION, NAMES};
use crate::command::{Command, FLAG_NAMES, Keys, LOADING, READONLY, STALE, WRITE};
use crate::commands::pattern;
use crate::{Args, Context, Fail, Outcome, fail};

/// The commands of this family.
pub static COMMANDS: &[Command] = &[Command::new("command", -1, all)
    .flags(LOADING | STALE)
    .acl(CONNECTION)
    .with(NESTED)
    .summary("All commands")];

const fn row(name: &'static str, arity: i32, run: crate::command::Run) -> Command {
    Command::new(name, arity, run).flags(LOADING | STALE).acl(CONNECTION)
}

static NESTED: &[Command] = &[
    row("command|count", 2, count).summary("How many commands there are"),
    row("command|info", -2, info).summary("Facts about commands"),
    row("command|docs", -2, docs).summary("What commands are for"),
    row("command|list", -2, list).summary("The names of commands"),
    row("command|getkeys", -3, getkeys).summary("The keys in a request"),
    row("command|getkeysandflags", -3, getkeysandflags)
        .summary("The keys in a request, and what is done with them"),
    row("command|help", 2, help).summary("What COMMAND can do"),
];

fn top_level(ctx: &Context<'_>) -> Vec<&'static Command> {
    let rows = ctx.server.table.rows().iter().filter(|row| !row.nested);
    rows.map(|row| row.command).collect()
}

fn all(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let commands = top_level(ctx);
    ctx.reply.array(commands.len());
    for command in commands {
        write_info(ctx, command);
    }
    Ok(())
}

fn count(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.count(top_level(ctx).len());
    Ok(())
}

fn write_names(ctx: &mut Context<'_>, names: &[String], simple: bool) {
    ctx.reply.set(names.len());
    for name in names {
        if simple {
            ctx.reply.simple(name);
        } else {
            ctx.reply.bulk(name.as_bytes());
        }
    }
}

fn write_info(ctx: &mut Context<'_>, command: &'static Command) {
    let flags: Vec<String> = FLAG_NAMES
        .iter()
        .filter(|(flag, _)| command.has(*flag))
        .map(|(_, name)| (*name).to_owned())
        .collect();
    let categories: Vec<String> = NAMES
        .iter()
        .filter(|(bit, _)| command.all_categories() & bit != 0)
        .map(|(_, name)| format!("@{name}"))
        .collect();
    let (first, last, step) = match command.keys {
        Keys::Range { first, last, step } => (first as i64, i64::from(last), step as i64),
        Keys::CountedAnd { .. } => (1, 1, 1),
        Keys::None | Keys::Counted { .. } | Keys::Find(_) => (0, 0, 0),
    };
    ctx.reply.array(10);
    ctx.reply.bulk(command.name.as_bytes());
    ctx.reply.int(i64::from(command.arity));
    write_names(ctx, &flags, true);
    ctx.reply.int(first);
    ctx.reply.int(last);
    ctx.reply.int(step);
    write_names(ctx, &categories, true);
    ctx.reply.array(0);
    write_key_specs(ctx, command);
    ctx.reply.array(command.subcommands.len());
    for nested in command.subcommands {
        write_info(ctx, nested);
    }
}

/// How clients find the keys: only the simple forms have a machine-readable one.
fn write_key_specs(ctx: &mut Context<'_>, command: &Command) {
    let Keys::Range { first, last, step } = command.keys else {
        ctx.reply.set(0);
        return;
    };
    ctx.reply.set(1);
    ctx.reply.map(3);
    ctx.reply.bulk(b"flags");
    let flags = access(command, first);
    ctx.reply.set(flags.len());
    for flag in flags {
        ctx.reply.simple(flag);
    }
    ctx.reply.bulk(b"begin_search");
    ctx.reply.map(2);
    ctx.reply.bulk(b"type");
    ctx.reply.bulk(b"index");
    ctx.reply.bulk(b"spec");
    ctx.reply.map(1);
    ctx.reply.bulk(b"index");
    ctx.reply.count(first);
    ctx.reply.bulk(b"find_keys");
    ctx.reply.map(2);
    ctx.reply.bulk(b"type");
    ctx.reply.bulk(b"range");
    ctx.reply.bulk(b"spec");
    ctx.reply.map(3);
    ctx.reply.bulk(b"lastkey");
    ctx.reply.int(if last < 0 { i64::from(last) } else { i64::from(last) - first as i64 });
    ctx.reply.bulk(b"keystep");
    ctx.reply.count(step);
    ctx.reply.bulk(b"limit");
    ctx.reply.int(0);
}

/// What is done with the key at an argument.
fn access(command: &Command, at: usize) -> Vec<&'static str> {
    match (command.name, at) {
        ("set" | "mset" | "setex" | "psetex", _) => return vec!["OW", "update"],
        ("lmove" | "rpoplpush" | "blmove" | "brpoplpush", 1) => {
            return vec!["RW", "access", "delete"];
        }
        ("lmove" | "rpoplpush" | "blmove" | "brpoplpush", _) => return vec!["RW", "insert"],
        ("sort", 1) => return vec!["RO", "access"],
        ("sort", _) => return vec!["OW", "update"],
        _ => {}
    }
    if command.has(WRITE) {
        vec!["RW", "access", "update"]
    } else if command.has(READONLY) {
        vec!["RO", "access"]
    } else {
        vec!["RO"]
    }
}

fn info(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if args.len() == 2 {
        return all(ctx, args);
    }
    ctx.reply.array(args.len() - 2);
    for name in args.from(2) {
        match ctx.server.table.get(name) {
            Some(command) => write_info(ctx, command),
            None => ctx.reply.null_array(),
        }
    }
    Ok(())
}

fn docs(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let found: Vec<&'static Command> = if args.len() == 2 {
        top_level(ctx)
    } else {
        args.from(2).filter_map(|name| ctx.server.table.get(name)).collect()
    };
    ctx.reply.map(found.len());
    for command in found {
        ctx.reply.bulk(command.name.as_bytes());
        write_docs(ctx, command);
    }
    Ok(())
}

fn write_docs(ctx: &mut Context<'_>, command: &'static Command) {
    let number = ctx.server.table.number(command);
    let family = ctx.server.table.rows()[number].family;
    let nested = command.subcommands;
    ctx.reply.map(if nested.is_empty() { 3 } else { 4 });
    for (name, text) in [("summary", command.summary), ("since", "1.0.0"), ("group", family)] {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.bulk(text.as_bytes());
    }
    if !nested.is_empty() {
        ctx.reply.bulk(b"subcommands");
        ctx.reply.map(nested.len());
        for command in nested {
            ctx.reply.bulk(command.name.as_bytes());
            write_docs(ctx, command);
        }
    }
}

fn list(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let rows = ctx.server.table.rows().iter();
    let mut commands: Vec<&'static Command> = rows.map(|row| row.command).collect();
    if 2 < args.len() {
        if args.len() != 5 || !args.is(2, "filterby") {
            return Err(fail::SYNTAX);
        }
        let wanted = args.get(4);
        if args.is(3, "aclcat") {
            let word = args.text(4).to_ascii_lowercase();
            let bit = NAMES.iter().find(|(_, name)| *name == word).map_or(0, |(bit, _)| *bit);
            let rows = ctx.server.table.rows().iter().map(|row| row.command);
            commands = rows.filter(|it| it.all_categories() & bit != 0).collect();
        } else if args.is(3, "pattern") {
            let rows = ctx.server.table.rows().iter().map(|row| row.command);
            commands =
                rows.filter(|it| pattern::matches_any_case(wanted, it.name.as_bytes())).collect();
        } else if args.is(3, "module") {
            commands.clear();
        } else {
            return Err(fail::SYNTAX);
        }
    }
    let names: Vec<String> = commands.iter().map(|it| it.name.to_owned()).collect();
    write_names(ctx, &names, false);
    Ok(())
}

fn request<'a>(
    ctx: &Context<'_>,
    args: &Args<'a>,
) -> Result<(&'static Command, Args<'a>, Vec<usize>), Fail> {
    let request = args.slice(2..args.len());
    let command =
        ctx.server.table.find(&request).map_err(|_| Fail::new("ERR Invalid command specified"))?;
    if matches!(command.keys, Keys::None) {
        return Err(Fail::new("ERR The command has no key arguments"));
    }
    if !command.fits(request.len()) {
        return Err(Fail::new("ERR Invalid number of arguments specified for command"));
    }
    let positions = command
        .key_positions(&request)
        .ok_or(Fail::new("ERR Invalid arguments specified for command"))?;
    Ok((command, request, positions))
}

fn getkeys(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (_, request, positions) = request(ctx, args)?;
    ctx.reply.array(positions.len());
    for at in positions {
        ctx.reply.bulk(request.get(at));
    }
    Ok(())
}

fn getkeysandflags(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (command, request, positions) = request(ctx, args)?;
    ctx.reply.array(positions.len());
    for at in positions {
        ctx.reply.array(2);
        ctx.reply.bulk(request.get(at));
        let flags = access(command, at);
        ctx.reply.set(flags.len());
        for flag in flags {
            ctx.reply.simple(flag);
        }
    }
    Ok(())
}

fn help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    super::help(ctx, "COMMAND", NESTED);
    Ok(())
}
