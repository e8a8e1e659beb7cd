//! Transactions: MULTI queues commands, EXEC runs them with nothing between.

use crate::command::acl::TRANSACTION;
use crate::command::{ALLOW_BUSY, Command, FAST, LOADING, NOSCRIPT, STALE};
use crate::{Args, Context, Fail, Outcome, fail};

const FLAGS: u32 = NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY;

/// The commands of this family.
pub static COMMANDS: &[Command] = &[
    Command::new("multi", 1, multi).flags(FLAGS).acl(TRANSACTION).summary("Opens a transaction"),
    Command::new("exec", 1, exec)
        .flags(NOSCRIPT | LOADING | STALE)
        .acl(TRANSACTION)
        .summary("Runs the queued commands with nothing between them"),
    Command::new("discard", 1, discard)
        .flags(FLAGS)
        .acl(TRANSACTION)
        .summary("Forgets the queued commands"),
    Command::new("watch", -2, watch)
        .flags(FLAGS)
        .acl(TRANSACTION)
        .keys(1, -1, 1)
        .summary("Makes EXEC refuse if a key was changed, here or by a merge"),
    Command::new("unwatch", 1, unwatch)
        .flags(FLAGS)
        .acl(TRANSACTION)
        .summary("Forgets the watched keys"),
];

fn multi(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    if ctx.client.multi.is_some() {
        return Err(Fail::new("ERR MULTI calls can not be nested"));
    }
    ctx.client.multi = Some(crate::client::Multi::default());
    ctx.reply.ok();
    Ok(())
}

fn exec(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    let Some(multi) = ctx.client.multi.take() else {
        return Err(Fail::new("ERR EXEC without MULTI"));
    };
    ctx.server.expire_watched(ctx.client);
    let touched = ctx.client.watches.touched;
    ctx.server.watching.clear(ctx.client);
    if multi.broken {
        return Err(fail::EXEC_ABORT);
    }
    if touched {
        ctx.reply.null_array();
        return Ok(());
    }
    ctx.reply.array(multi.queue.len());
    for (row, args) in &multi.queue {
        let reply = std::mem::take(&mut ctx.reply);
        let mut reply = match ctx.server.permit(ctx.client, row, &args.args(), true) {
            Ok(()) => ctx.server.call(ctx.client, reply, row, &args.args(), None, true).0,
            Err(refused) => {
                let mut reply = reply;
                reply.error(refused.as_str());
                reply
            }
        };
        // HELLO inside a transaction changes the version of what follows.
        reply.version = ctx.client.version;
        ctx.reply = reply;
    }
    Ok(())
}

fn discard(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    if ctx.client.multi.take().is_none() {
        return Err(Fail::new("ERR DISCARD without MULTI"));
    }
    ctx.server.watching.clear(ctx.client);
    ctx.reply.ok();
    Ok(())
}

fn watch(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    if ctx.client.multi.is_some() {
        return Err(Fail::new("ERR WATCH inside MULTI is not allowed"));
    }
    let db = ctx.client.db;
    for key in args.from(1) {
        // A key that is past its time is gone before the watch begins.
        ctx.live().exists(key);
        ctx.server.report_expired(Some(ctx.client));
        ctx.server.watching.add(ctx.client, db, key);
    }
    ctx.reply.ok();
    Ok(())
}

fn unwatch(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.server.watching.clear(ctx.client);
    ctx.reply.ok();
    Ok(())
}
