//! ACL: users and their rights.

use crate::acl::{Denied, Selector, User};
use crate::command::acl::NAMES;
use crate::command::{ADMIN, Command, LOADING, NOSCRIPT, STALE};
use crate::{Args, Context, Fail, Outcome, fail};

/// The commands of this family.
pub static COMMANDS: &[Command] =
    &[Command::new("acl", -2, super::needs_word).with(NESTED).summary("About users")];

const fn admin(name: &'static str, arity: i32, run: crate::command::Run) -> Command {
    Command::new(name, arity, run).flags(NOSCRIPT | LOADING | STALE | ADMIN)
}

const fn row(name: &'static str, arity: i32, run: crate::command::Run) -> Command {
    Command::new(name, arity, run).flags(NOSCRIPT | LOADING | STALE)
}

static NESTED: &[Command] = &[
    row("acl|whoami", 2, whoami).summary("The user of this connection"),
    row("acl|cat", -2, cat).summary("The categories, or the commands of one"),
    row("acl|genpass", -2, genpass).summary("A password that nobody guesses"),
    admin("acl|users", 2, users).summary("The names of all users"),
    admin("acl|list", 2, list).summary("All users with their rules"),
    admin("acl|getuser", 3, getuser).summary("The rules of a user"),
    admin("acl|setuser", -3, setuser).summary("Makes or changes a user"),
    admin("acl|deluser", -3, deluser).summary("Removes users"),
    admin("acl|dryrun", -4, dryrun).summary("Whether a user might run a command"),
    admin("acl|log", -2, log).summary("What was denied"),
    admin("acl|save", 2, save).summary("Writes all users to the users' file"),
    admin("acl|load", 2, load).summary("Reads all users from the users' file"),
    row("acl|help", 2, help).summary("What ACL can do"),
];

fn whoami(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.bulk(ctx.client.user.as_bytes());
    Ok(())
}

fn cat(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    match args.len() {
        2 => {
            ctx.reply.array(NAMES.len());
            for (_, name) in NAMES {
                ctx.reply.bulk(name.as_bytes());
            }
            Ok(())
        }
        3 => {
            let word = args.text(2).to_ascii_lowercase();
            let Some((bit, _)) = NAMES.iter().find(|(_, name)| *name == word) else {
                return Err(Fail::text(format!("ERR Unknown category '{}'", args.text(2))));
            };
            let found: Vec<&str> = ctx
                .server
                .table
                .rows()
                .iter()
                .filter(|row| row.command.all_categories() & bit != 0)
                .map(|row| row.command.name)
                .collect();
            ctx.reply.array(found.len());
            for name in found {
                ctx.reply.bulk(name.as_bytes());
            }
            Ok(())
        }
        _ => Err(fail::arity("acl|cat")),
    }
}

fn genpass(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if 3 < args.len() {
        return Err(fail::arity("acl|genpass"));
    }
    let bits = if args.len() == 3 { args.int(2)? } else { 256 };
    if !(1..=4096).contains(&bits) {
        return Err(Fail::new(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to 4096",
        ));
    }
    let letters = (bits as usize).div_ceil(4);
    let mut text = String::new();
    while text.len() < letters {
        text.push_str(&ctx.server.secret());
    }
    text.truncate(letters);
    ctx.reply.bulk(text.as_bytes());
    Ok(())
}

fn users(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.array(ctx.server.acl.users.len());
    for name in ctx.server.acl.users.keys() {
        ctx.reply.bulk(name.as_bytes());
    }
    Ok(())
}

fn list(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let lines = ctx.server.acl.lines();
    ctx.reply.array(lines.len());
    for line in lines {
        ctx.reply.bulk(line.as_bytes());
    }
    Ok(())
}

fn write_selector(ctx: &mut Context<'_>, selector: &Selector) {
    let texts = [
        ("commands", selector.commands_text()),
        ("keys", selector.keys_text()),
        ("channels", selector.channels_text()),
    ];
    for (name, text) in texts {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.bulk(text.as_bytes());
    }
}

fn getuser(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let Some(user) = ctx.server.acl.users.get(&*args.text(2)).cloned() else {
        ctx.reply.null();
        return Ok(());
    };
    ctx.reply.map(6);
    ctx.reply.bulk(b"flags");
    let flags = user.flags();
    ctx.reply.set(flags.len());
    for flag in flags {
        ctx.reply.bulk(flag.as_bytes());
    }
    ctx.reply.bulk(b"passwords");
    ctx.reply.array(user.passwords.len());
    for digest in &user.passwords {
        ctx.reply.bulk(digest.as_bytes());
    }
    write_selector(ctx, &user.root);
    ctx.reply.bulk(b"selectors");
    ctx.reply.array(user.selectors.len());
    for selector in &user.selectors {
        ctx.reply.map(3);
        write_selector(ctx, selector);
    }
    Ok(())
}

fn setuser(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let name = args.text(2).into_owned();
    if name.is_empty() || name.contains(|letter: char| letter.is_whitespace() || letter == '\0') {
        return Err(Fail::new("ERR Usernames can't contain spaces or null characters"));
    }
    let rules: Vec<&[u8]> = args.from(3).collect();
    let open = ctx.server.config.get("acl-pubsub-default") == "allchannels";
    ctx.server.acl.set_user(&name, &rules, open)?;
    close_strangers(ctx);
    ctx.server.keep_users()?;
    ctx.reply.ok();
    Ok(())
}

/// A connection whose user may no longer log in, or is gone, is closed.
fn close_strangers(ctx: &mut Context<'_>) {
    let users = &ctx.server.acl.users;
    let mut gone = Vec::new();
    for client in ctx.server.clients.iter_mut() {
        if client.authenticated && !users.contains_key(&client.user) {
            client.killed = true;
            gone.push(crate::Slot(client.slot));
        }
    }
    if !users.contains_key(&ctx.client.user) {
        ctx.client.closing = true;
    }
    ctx.server.woken.extend(gone);
}

fn deluser(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if (2..args.len()).any(|at| args.get(at) == b"default") {
        return Err(Fail::new("ERR The 'default' user cannot be removed"));
    }
    let mut count = 0;
    for at in 2..args.len() {
        count += usize::from(ctx.server.acl.remove(&args.text(at)));
    }
    close_strangers(ctx);
    ctx.server.keep_users()?;
    ctx.reply.count(count);
    Ok(())
}

fn dryrun(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let name = args.text(2).into_owned();
    let Some(user) = ctx.server.acl.users.get(&name) else {
        return Err(Fail::text(format!("ERR User '{name}' not found")));
    };
    let request = args.slice(3..args.len());
    let Ok(command) = ctx.server.table.find(&request) else {
        return Err(Fail::text(format!("ERR Command '{}' not found", args.text(3))));
    };
    if !command.fits(request.len()) {
        return Err(fail::arity(command.name));
    }
    let user: &User = user;
    match user.check(command, &request) {
        Ok(()) => ctx.reply.ok(),
        Err(denied) => {
            let text = match denied {
                Denied::Command => {
                    format!("User {name} has no permissions to run the '{}' command", command.name)
                }
                Denied::Key(at) => format!(
                    "User {name} has no permissions to access the '{}' key",
                    request.text(at)
                ),
                Denied::Channel(at) => format!(
                    "User {name} has no permissions to access the '{}' channel",
                    request.text(at)
                ),
            };
            ctx.reply.bulk(text.as_bytes());
        }
    }
    Ok(())
}

fn log(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let mut count = 10;
    if args.len() == 3 {
        if args.is(2, "reset") {
            ctx.server.acl.log.clear();
            ctx.reply.ok();
            return Ok(());
        }
        count = args.int(2)?.max(0) as usize;
    } else if args.len() != 2 {
        return Err(fail::arity("acl|log"));
    }
    let entries: Vec<_> = ctx.server.acl.log.iter().take(count).cloned().collect();
    ctx.reply.array(entries.len());
    for entry in entries {
        ctx.reply.map(10);
        ctx.reply.bulk(b"count");
        ctx.reply.int(entry.count as i64);
        let texts = [
            ("reason", entry.reason.to_owned()),
            ("context", entry.context.to_owned()),
            ("object", entry.object),
            ("username", entry.user),
        ];
        for (name, text) in texts {
            ctx.reply.bulk(name.as_bytes());
            ctx.reply.bulk(text.as_bytes());
        }
        ctx.reply.bulk(b"age-seconds");
        ctx.reply.double(ctx.now_ms.saturating_sub(entry.updated_ms) as f64 / 1000.0);
        ctx.reply.bulk(b"client-info");
        ctx.reply.bulk(entry.client.as_bytes());
        let numbers = [
            ("entry-id", entry.id),
            ("timestamp-created", entry.created_ms),
            ("timestamp-last-updated", entry.updated_ms),
        ];
        for (name, number) in numbers {
            ctx.reply.bulk(name.as_bytes());
            ctx.reply.int(number as i64);
        }
    }
    Ok(())
}

fn save(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    if ctx.server.users_file.is_none() {
        return Err(Fail::new(
            "ERR This server keeps its data in memory only and has no users file",
        ));
    }
    ctx.server.keep_users()?;
    ctx.reply.ok();
    Ok(())
}

fn load(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let Some(file) = &mut ctx.server.users_file else {
        return Err(Fail::new(
            "ERR This server keeps its data in memory only and has no users file",
        ));
    };
    let text = file.load().map_err(|why| Fail::text(format!("ERR cannot read users: {why}")))?;
    ctx.server.acl.load(&text).map_err(|why| Fail::text(format!("ERR {why}")))?;
    close_strangers(ctx);
    ctx.reply.ok();
    Ok(())
}

fn help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    super::help(ctx, "ACL", NESTED);
    Ok(())
}
