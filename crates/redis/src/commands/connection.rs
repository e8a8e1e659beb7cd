//! The connection itself: greeting, login, database, protocol version.

use crate::client::{Client, ReplyMode};
use crate::command::acl::CONNECTION;
use crate::command::{ALLOW_BUSY, Command, FAST, LOADING, NO_AUTH, NOSCRIPT, STALE};
use crate::{Args, Context, Fail, Outcome, Version, fail};

const ALWAYS: u32 = NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY;

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
    Command::new("auth", -2, auth).flags(ALWAYS).acl(CONNECTION).summary("Logs in"),
    Command::new("hello", -1, hello)
        .flags(ALWAYS)
        .acl(CONNECTION)
        .summary("Chooses the protocol version, logs in and tells about the server"),
    Command::new("select", 2, select)
        .flags(LOADING | STALE | FAST)
        .acl(CONNECTION)
        .summary("Chooses the database, by number or by name"),
    Command::new("quit", -1, quit).flags(ALWAYS).acl(CONNECTION).summary("Closes the connection"),
    Command::new("reset", 1, reset)
        .flags(ALWAYS)
        .acl(CONNECTION)
        .summary("Brings the connection back to its first state"),
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

fn log_in(ctx: &mut Context<'_>, name: &[u8], password: &[u8]) -> Outcome {
    let name = String::from_utf8_lossy(name).into_owned();
    if ctx.server.acl.check_password(&name, password) {
        ctx.client.user = name;
        ctx.client.authenticated = true;
        return Ok(());
    }
    ctx.server.note_denied(ctx.client, "auth", "AUTH".to_owned(), &name, ctx.in_multi);
    Err(Fail::new("WRONGPASS invalid username-password pair or user is disabled."))
}

fn auth(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if 3 < args.len() {
        return Err(fail::SYNTAX);
    }
    let (name, password): (&[u8], &[u8]) = if let Some(password) = args.try_get(2) {
        (args.get(1), password)
    } else {
        if ctx.server.acl.open_door() {
            return Err(Fail::new(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ));
        }
        (b"default", args.get(1))
    };
    log_in(ctx, name, password)?;
    ctx.reply.ok();
    Ok(())
}

fn hello(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let mut version = ctx.client.version;
    if 1 < args.len() {
        version = match kumiko_wire::resp::number::parse_int(args.get(1)) {
            None => {
                return Err(Fail::new("ERR Protocol version is not an integer or out of range"));
            }
            Some(2) => Version::Resp2,
            Some(3) => Version::Resp3,
            Some(_) => return Err(Fail::new("NOPROTO unsupported protocol version")),
        };
    }
    let mut at = 2;
    let mut name = None;
    while at < args.len() {
        if args.is(at, "auth") && at + 2 < args.len() {
            log_in(ctx, args.get(at + 1), args.get(at + 2))?;
            at += 3;
        } else if args.is(at, "setname") && at + 1 < args.len() {
            name = Some(args.get(at + 1));
            at += 2;
        } else {
            return Err(Fail::text(format!(
                "ERR Syntax error in HELLO option '{}'",
                args.text(at)
            )));
        }
    }
    if !ctx.client.authenticated {
        return Err(Fail::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        super::client::set_name(ctx.client, name)?;
    }
    ctx.client.version = version;
    ctx.reply.version = version;
    let pairs: [(&str, &str); 2] = [("server", "redis"), ("version", crate::server::REDIS_VERSION)];
    ctx.reply.map(7);
    for (key, value) in pairs {
        ctx.reply.bulk(key.as_bytes());
        ctx.reply.bulk(value.as_bytes());
    }
    ctx.reply.bulk(b"proto");
    ctx.reply.int(if version == Version::Resp3 { 3 } else { 2 });
    ctx.reply.bulk(b"id");
    ctx.reply.int(ctx.client.id as i64);
    for (key, value) in [("mode", "standalone"), ("role", "master")] {
        ctx.reply.bulk(key.as_bytes());
        ctx.reply.bulk(value.as_bytes());
    }
    ctx.reply.bulk(b"modules");
    ctx.reply.array(0);
    Ok(())
}

fn select(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    ctx.client.db = ctx.server.open_database(args.get(1))?;
    ctx.reply.ok();
    Ok(())
}

fn quit(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.client.closing = true;
    ctx.reply.ok();
    Ok(())
}

fn reset(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.client.multi = None;
    ctx.server.forget(ctx.client);
    let door = ctx.server.acl.open_door();
    let client: &mut Client = ctx.client;
    client.db = 0;
    client.version = Version::Resp2;
    client.name.clear();
    client.reply_mode = ReplyMode::On;
    client.no_evict = false;
    client.no_touch = false;
    "default".clone_into(&mut client.user);
    client.authenticated = door;
    ctx.reply.version = Version::Resp2;
    ctx.reply.simple("RESET");
    Ok(())
}
