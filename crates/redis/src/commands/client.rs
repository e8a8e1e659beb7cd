//! CLIENT: what a connection may know and say about itself and others.

use crate::client::{Client, ReplyMode, Slot};
use crate::command::acl::CONNECTION;
use crate::command::{ADMIN, Command, LOADING, NOSCRIPT, STALE};
use crate::{Args, Context, Fail, Outcome, Version, fail};

const FLAGS: u32 = NOSCRIPT | LOADING | STALE;

/// The commands of this family.
pub static COMMANDS: &[Command] = &[Command::new("client", -2, super::needs_word)
    .with(NESTED)
    .acl(CONNECTION)
    .summary("About connections")];

const fn row(name: &'static str, arity: i32, run: crate::command::Run) -> Command {
    Command::new(name, arity, run).flags(FLAGS).acl(CONNECTION)
}

const fn admin(name: &'static str, arity: i32, run: crate::command::Run) -> Command {
    Command::new(name, arity, run).flags(FLAGS | ADMIN).acl(CONNECTION)
}

static NESTED: &[Command] = &[
    row("client|id", 2, id).summary("The number of this connection"),
    row("client|getname", 2, getname).summary("The name of this connection"),
    row("client|setname", 3, setname).summary("Names this connection"),
    row("client|setinfo", 4, setinfo).summary("Names the library behind this connection"),
    row("client|info", 2, info).summary("Facts about this connection"),
    admin("client|list", -2, list).summary("Facts about all connections"),
    admin("client|kill", -3, kill).summary("Closes connections"),
    row("client|reply", 3, reply).summary("Which replies this connection gets"),
    admin("client|unblock", -3, unblock).summary("Ends the wait of another connection"),
    admin("client|pause", -3, pause).summary("Makes the requests of all clients wait"),
    admin("client|unpause", 2, unpause).summary("Ends a pause"),
    admin("client|no-evict", 3, no_evict).summary("Keeps this connection when memory is short"),
    row("client|no-touch", 3, no_touch).summary("Reads do not change the age of keys"),
    row("client|getredir", 2, getredir).summary("Where invalidations of this connection go"),
    row("client|trackinginfo", 2, trackinginfo).summary("Whether invalidations are sent"),
    row("client|help", 2, help).summary("What CLIENT can do"),
];

fn id(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.int(ctx.client.id as i64);
    Ok(())
}

fn getname(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    if ctx.client.name.is_empty() {
        ctx.reply.null();
    } else {
        ctx.reply.bulk(&ctx.client.name);
    }
    Ok(())
}

/// Sets the name of a connection, which has no blanks.
pub(crate) fn set_name(client: &mut Client, name: &[u8]) -> Outcome {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(Fail::new(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    client.name = name.to_vec();
    Ok(())
}

fn setname(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    set_name(ctx.client, args.get(2))?;
    ctx.reply.ok();
    Ok(())
}

fn setinfo(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let value = args.get(3);
    let word = args.text(2).to_ascii_lowercase();
    if !value.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(Fail::text(format!(
            "ERR {word} cannot contain spaces, newlines or special characters."
        )));
    }
    let value = args.text(3).into_owned();
    match word.as_str() {
        "lib-name" => ctx.client.library = value,
        "lib-ver" => ctx.client.library_version = value,
        _ => return Err(Fail::text(format!("ERR Unrecognized option '{}'", args.text(2)))),
    }
    ctx.reply.ok();
    Ok(())
}

/// The line of `CLIENT LIST` about one connection.
pub(crate) fn describe(client: &Client, now_ms: u64, input: usize) -> String {
    let multi = client.multi.as_ref();
    let queued = multi.map_or(-1, |it| it.queue.len() as i64);
    let multi_bytes: usize =
        multi.map_or(0, |it| it.queue.iter().map(|(_, args)| args.size()).sum());
    let flags = flags(client);
    let name = String::from_utf8_lossy(&client.name);
    let command = client.last_command.map_or("NULL", |it| it.name);
    let age = now_ms.saturating_sub(client.since_ms) / 1000;
    let idle = now_ms.saturating_sub(client.active_ms) / 1000;
    let out = client.out.len();
    let total = out + input + multi_bytes + size_of::<Client>();
    let resp = if client.version == Version::Resp3 { 3 } else { 2 };
    format!(
        "id={} addr={} laddr={} fd={} name={name} age={age} idle={idle} flags={flags} db={} \
         sub={} psub={} ssub={} multi={queued} qbuf={input} qbuf-free=0 argv-mem=0 \
         multi-mem={multi_bytes} rbs={} rbp={out} obl={out} oll=0 omem=0 tot-mem={total} events=r \
         cmd={command} user={} redir=-1 resp={resp} lib-name={} lib-ver={}",
        client.id,
        client.peer,
        client.local,
        client.slot + 8,
        client.db,
        client.channels.len(),
        client.patterns.len(),
        client.shard_channels.len(),
        client.out.capacity(),
        client.user,
        client.library,
        client.library_version,
    )
}

fn flags(client: &Client) -> String {
    let rows = [
        (client.monitor, 'O'),
        (client.multi.is_some(), 'x'),
        (client.blocked.is_some(), 'b'),
        (client.watches.touched, 'd'),
        (client.closing, 'c'),
        (0 < client.subscriptions() + client.shard_channels.len(), 'P'),
        (client.no_evict, 'e'),
        (client.no_touch, 'T'),
    ];
    let found: String = rows.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter).collect();
    if found.is_empty() { "N".to_owned() } else { found }
}

fn info(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let line = describe(ctx.client, ctx.now_ms, ctx.server.request_bytes);
    ctx.reply.verbatim("txt", format!("{line}\n").as_bytes());
    Ok(())
}

fn type_matches(client: &Client, wanted: &str) -> bool {
    let listens = 0 < client.subscriptions() + client.shard_channels.len();
    match wanted {
        "normal" => !listens,
        "pubsub" => listens,
        _ => false,
    }
}

fn checked_type(word: &str) -> Result<String, Fail> {
    let word = word.to_ascii_lowercase();
    match word.as_str() {
        "normal" | "pubsub" | "master" | "replica" | "slave" => Ok(word),
        _ => Err(Fail::text(format!("ERR Unknown client type '{word}'"))),
    }
}

fn list(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let mut wanted_type = None;
    let mut wanted_ids: Option<Vec<u64>> = None;
    if args.len() == 4 && args.is(2, "type") {
        wanted_type = Some(checked_type(&args.text(3))?);
    } else if 3 < args.len() && args.is(2, "id") {
        let ids: Result<Vec<u64>, Fail> = (3..args.len())
            .map(|index| {
                let id = args.int(index).ok().and_then(|id| u64::try_from(id).ok());
                id.filter(|id| 0 < *id).ok_or(Fail::new("ERR Invalid client ID"))
            })
            .collect();
        wanted_ids = Some(ids?);
    } else if 2 < args.len() {
        return Err(fail::SYNTAX);
    }
    let now_ms = ctx.now_ms;
    let own = describe(ctx.client, now_ms, ctx.server.request_bytes);
    let wanted = |client: &Client| {
        wanted_type.as_ref().is_none_or(|it| type_matches(client, it))
            && wanted_ids.as_ref().is_none_or(|it| it.contains(&client.id))
    };
    let mut lines: Vec<(u64, String)> = Vec::new();
    if wanted(ctx.client) {
        lines.push((ctx.client.id, own));
    }
    for client in ctx.server.clients.iter().filter(|client| wanted(client)) {
        lines.push((client.id, describe(client, now_ms, client.input_bytes)));
    }
    lines.sort();
    let text: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Which connections `CLIENT KILL` means.
struct Victims {
    address: Option<String>,
    local: Option<String>,
    id: Option<u64>,
    kind: Option<String>,
    user: Option<String>,
    skip_me: bool,
    age_min_s: Option<u64>,
}

fn victims(ctx: &Context<'_>, args: &Args<'_>) -> Result<Victims, Fail> {
    let mut victims = Victims {
        address: None,
        local: None,
        id: None,
        kind: None,
        user: None,
        skip_me: true,
        age_min_s: None,
    };
    if args.len() == 3 {
        victims.address = Some(args.text(2).into_owned());
        victims.skip_me = false;
        return Ok(victims);
    }
    if !args.len().is_multiple_of(2) {
        return Err(fail::SYNTAX);
    }
    for at in (2..args.len()).step_by(2) {
        let value = args.text(at + 1).into_owned();
        match args.text(at).to_ascii_lowercase().as_str() {
            "id" => {
                let id = args.int(at + 1).ok().filter(|id| 0 < *id);
                let bad = Fail::new("ERR client-id should be greater than 0");
                victims.id = Some(id.ok_or(bad)? as u64);
            }
            "addr" => victims.address = Some(value),
            "laddr" => victims.local = Some(value),
            "type" => victims.kind = Some(checked_type(&value)?),
            "maxage" => victims.age_min_s = Some(args.int(at + 1)?.max(0) as u64),
            "user" => {
                if !ctx.server.acl.users.contains_key(&value) {
                    return Err(Fail::text(format!("ERR No such user '{value}'")));
                }
                victims.user = Some(value);
            }
            "skipme" => {
                victims.skip_me = match value.to_ascii_lowercase().as_str() {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(fail::SYNTAX),
                }
            }
            _ => return Err(fail::SYNTAX),
        }
    }
    Ok(victims)
}

fn kill(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let victims = victims(ctx, args)?;
    let now_ms = ctx.now_ms;
    let hit = |client: &Client| {
        let age_s = now_ms.saturating_sub(client.since_ms) / 1000;
        victims.address.as_ref().is_none_or(|it| *it == client.peer)
            && victims.local.as_ref().is_none_or(|it| *it == client.local)
            && victims.id.is_none_or(|it| it == client.id)
            && victims.kind.as_ref().is_none_or(|it| type_matches(client, it))
            && victims.user.as_ref().is_none_or(|it| *it == client.user)
            && victims.age_min_s.is_none_or(|it| it <= age_s)
    };
    let mut count = 0;
    let mut killed = Vec::new();
    for client in ctx.server.clients.iter_mut().filter(|client| hit(client)) {
        client.killed = true;
        killed.push(Slot(client.slot));
        count += 1;
    }
    ctx.server.woken.extend(killed);
    if !victims.skip_me && hit(ctx.client) {
        ctx.client.closing = true;
        count += 1;
    }
    if args.len() == 3 {
        if count == 0 {
            return Err(Fail::new("ERR No such client"));
        }
        ctx.reply.ok();
    } else {
        ctx.reply.int(count);
    }
    Ok(())
}

fn reply(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    match args.text(2).to_ascii_lowercase().as_str() {
        "on" => {
            ctx.client.reply_mode = ReplyMode::On;
            ctx.reply.ok();
        }
        "off" => ctx.client.reply_mode = ReplyMode::Off,
        "skip" => {
            if ctx.client.reply_mode == ReplyMode::On {
                ctx.client.reply_mode = ReplyMode::SkipNext;
            }
        }
        _ => return Err(fail::SYNTAX),
    }
    Ok(())
}

fn unblock(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let with_error = match args.try_get(3) {
        None => false,
        Some(word) if word.eq_ignore_ascii_case(b"timeout") => false,
        Some(word) if word.eq_ignore_ascii_case(b"error") => true,
        Some(_) => {
            return Err(Fail::new("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
    };
    let id = args.int(2)?;
    let slot = u64::try_from(id).ok().and_then(|id| ctx.server.clients.slot_of(id));
    let done = slot.is_some_and(|slot| ctx.server.end_wait(slot, with_error));
    ctx.reply.int(i64::from(done));
    Ok(())
}

fn pause(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if 4 < args.len() {
        return Err(fail::SYNTAX);
    }
    let timeout = args.int(2).map_err(|_| fail::TIMEOUT_NOT_INTEGER)?;
    let timeout = u64::try_from(timeout).map_err(|_| fail::TIMEOUT_NEGATIVE)?;
    let writes_only = match args.try_get(3) {
        None => false,
        Some(word) if word.eq_ignore_ascii_case(b"all") => false,
        Some(word) if word.eq_ignore_ascii_case(b"write") => true,
        Some(_) => return Err(fail::SYNTAX),
    };
    let until_ms = ctx.now_ms.saturating_add(timeout);
    ctx.server.pause(until_ms, writes_only);
    ctx.reply.ok();
    Ok(())
}

fn unpause(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.server.unpause();
    ctx.reply.ok();
    Ok(())
}

fn switch(args: &Args<'_>) -> Result<bool, Fail> {
    match args.text(2).to_ascii_lowercase().as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(fail::SYNTAX),
    }
}

fn no_evict(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    ctx.client.no_evict = switch(args)?;
    ctx.reply.ok();
    Ok(())
}

fn no_touch(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    ctx.client.no_touch = switch(args)?;
    ctx.reply.ok();
    Ok(())
}

fn getredir(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.int(-1);
    Ok(())
}

fn trackinginfo(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.map(3);
    ctx.reply.bulk(b"flags");
    ctx.reply.set(1);
    ctx.reply.bulk(b"off");
    ctx.reply.bulk(b"redirect");
    ctx.reply.int(-1);
    ctx.reply.bulk(b"prefixes");
    ctx.reply.array(0);
    Ok(())
}

fn help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    super::help(ctx, "CLIENT", NESTED);
    Ok(())
}
