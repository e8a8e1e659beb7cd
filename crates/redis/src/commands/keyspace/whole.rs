//! Commands on whole databases: emptying and exchanging them.

use std::cell::RefCell;

use super::db_index;
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome};

const FIRST_INDEX: Fail = Fail::new("ERR invalid first DB index");
const SECOND_INDEX: Fail = Fail::new("ERR invalid second DB index");

/// SYNC and ASYNC make no difference here: memory is given back as the old tables are dropped.
fn check_options(args: &Args<'_>) -> Outcome {
    let known = args.len() == 2 && (args.is(1, "sync") || args.is(1, "async"));
    if args.len() == 1 || known { Ok(()) } else { Err(fail::SYNTAX) }
}

pub(super) fn flushdb(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    check_options(args)?;
    let db = ctx.db();
    touch_watched(ctx, &[db]);
    let (id, now_ms) = (ctx.server.db_id(db), ctx.now_ms);
    ctx.server.live.db(id, now_ms).flush();
    ctx.server.blocking.make_all_ready(db);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn flushall(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    check_options(args)?;
    let all: Vec<usize> = (0..ctx.server.dbs.len()).collect();
    touch_watched(ctx, &all);
    ctx.server.live.flush_all(ctx.now_ms);
    for db in all {
        ctx.server.blocking.make_all_ready(db);
    }
    ctx.reply.ok();
    Ok(())
}

pub(super) fn swapdb(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let index = |at: usize, otherwise: Fail| match db_index(args.get(at)) {
        Err(fail) if fail == fail::NOT_INTEGER => Err(otherwise),
        other => other,
    };
    let (first, second) = (index(1, FIRST_INDEX), index(2, SECOND_INDEX));
    // An index that is no number is told before one that is out of range.
    if second == Err(SECOND_INDEX) && first != Err(FIRST_INDEX) {
        return Err(SECOND_INDEX);
    }
    let (first, second) = (first?, second?);
    touch_watched(ctx, &[first, second]);
    let (a, b) = (ctx.server.db_id(first), ctx.server.db_id(second));
    ctx.server.live.swap(a, b, ctx.now_ms);
    ctx.server.blocking.make_all_ready(first);
    ctx.server.blocking.make_all_ready(second);
    ctx.reply.ok();
    Ok(())
}

/// Marks the watched keys that are in one of the databases now: they are about to change.
fn touch_watched(ctx: &mut Context<'_>, dbs: &[usize]) {
    let server = &mut *ctx.server;
    if server.watching.is_empty() {
        return;
    }
    let (live, now_ms) = (RefCell::new(&mut server.live), ctx.now_ms);
    let ids: Vec<_> = dbs.iter().map(|db| server.dbs[*db]).collect();
    let there = |key: &[u8]| ids.iter().any(|id| live.borrow_mut().db(*id, now_ms).exists(key));
    let changed = |db: usize, key: &[u8]| dbs.contains(&db) && there(key);
    server.watching.touch_all(&mut server.clients, Some(ctx.client), &changed);
}
