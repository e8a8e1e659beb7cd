//! Channels: messages to whoever listens now. Nothing is kept.

use std::collections::BTreeSet;

use crate::client::Slot;
use crate::command::{ALLOW_BUSY, Command, FAST, LOADING, Meaning, NOSCRIPT, PUBSUB, STALE};
use crate::commands::pattern;
use crate::server::Published;
use crate::server::pubsub::leave;
use crate::{Args, Context, Outcome};

const LISTEN: u32 = PUBSUB | NOSCRIPT | LOADING | STALE;
const SEND: u32 = PUBSUB | LOADING | STALE | FAST | ALLOW_BUSY;

/// The commands of this family.
pub static COMMANDS: &[Command] = &[
    Command::new("subscribe", -2, subscribe).flags(LISTEN).summary("Listens to channels"),
    Command::new("unsubscribe", -1, unsubscribe)
        .flags(LISTEN)
        .summary("Stops listening to channels"),
    Command::new("psubscribe", -2, psubscribe)
        .flags(LISTEN)
        .summary("Listens to patterns of channels"),
    Command::new("punsubscribe", -1, punsubscribe)
        .flags(LISTEN)
        .summary("Stops listening to patterns of channels"),
    Command::new("ssubscribe", -2, ssubscribe)
        .flags(LISTEN)
        .keys(1, -1, 1)
        .summary("Listens to shard channels"),
    Command::new("sunsubscribe", -1, sunsubscribe)
        .flags(LISTEN)
        .keys(1, -1, 1)
        .summary("Stops listening to shard channels"),
    Command::new("publish", 3, publish)
        .flags(SEND)
        .meaning(Meaning::Message)
        .summary("Sends a message to a channel"),
    Command::new("spublish", 3, spublish)
        .flags(SEND)
        .keys(1, 1, 1)
        .meaning(Meaning::Message)
        .summary("Sends a message to a shard channel"),
    Command::new("pubsub", -2, super::needs_word).with(NESTED).summary("Tells about channels"),
];

static NESTED: &[Command] = &[
    Command::new("pubsub|channels", -2, channels)
        .flags(PUBSUB | LOADING | STALE)
        .summary("Channels with listeners"),
    Command::new("pubsub|numsub", -2, numsub)
        .flags(PUBSUB | LOADING | STALE)
        .summary("How many listen to channels"),
    Command::new("pubsub|numpat", 2, numpat)
        .flags(PUBSUB | LOADING | STALE)
        .summary("How many patterns are listened to"),
    Command::new("pubsub|shardchannels", -2, shard_channels)
        .flags(PUBSUB | LOADING | STALE)
        .summary("Shard channels with listeners"),
    Command::new("pubsub|shardnumsub", -2, shard_numsub)
        .flags(PUBSUB | LOADING | STALE)
        .summary("How many listen to shard channels"),
    Command::new("pubsub|help", 2, help).flags(LOADING | STALE).summary("What PUBSUB can do"),
];

fn confirm(ctx: &mut Context<'_>, kind: &str, channel: Option<&[u8]>, count: usize) {
    ctx.reply.push(3);
    ctx.reply.bulk(kind.as_bytes());
    ctx.reply.bulk_or_null(channel);
    ctx.reply.count(count);
}

fn subscribe(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let slot = Slot(ctx.client.slot);
    for channel in args.from(1) {
        if ctx.client.channels.insert(channel.to_vec()) {
            ctx.server.pubsub.channels.entry(channel.to_vec()).or_default().insert(slot);
        }
        let count = ctx.client.subscriptions();
        confirm(ctx, "subscribe", Some(channel), count);
    }
    Ok(())
}

fn psubscribe(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let slot = Slot(ctx.client.slot);
    for pattern in args.from(1) {
        if ctx.client.patterns.insert(pattern.to_vec()) {
            ctx.server.pubsub.patterns.entry(pattern.to_vec()).or_default().insert(slot);
        }
        let count = ctx.client.subscriptions();
        confirm(ctx, "psubscribe", Some(pattern), count);
    }
    Ok(())
}

fn ssubscribe(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let slot = Slot(ctx.client.slot);
    for channel in args.from(1) {
        if ctx.client.shard_channels.insert(channel.to_vec()) {
            ctx.server.pubsub.shards.entry(channel.to_vec()).or_default().insert(slot);
        }
        let count = ctx.client.shard_channels.len();
        confirm(ctx, "ssubscribe", Some(channel), count);
    }
    Ok(())
}

/// The channels that the arguments name, or all of `mine`.
fn named(args: &Args<'_>, mine: &BTreeSet<Vec<u8>>) -> Vec<Vec<u8>> {
    if args.len() == 1 {
        mine.iter().cloned().collect()
    } else {
        args.from(1).map(<[u8]>::to_vec).collect()
    }
}

fn unsubscribe(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let names = named(args, &ctx.client.channels);
    for channel in &names {
        if ctx.client.channels.remove(channel) {
            leave(&mut ctx.server.pubsub.channels, channel, Slot(ctx.client.slot));
        }
        let count = ctx.client.subscriptions();
        confirm(ctx, "unsubscribe", Some(channel), count);
    }
    if names.is_empty() {
        let count = ctx.client.subscriptions();
        confirm(ctx, "unsubscribe", None, count);
    }
    Ok(())
}

fn punsubscribe(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let names = named(args, &ctx.client.patterns);
    for pattern in &names {
        if ctx.client.patterns.remove(pattern) {
            ctx.server.pubsub.leave_pattern(pattern, Slot(ctx.client.slot));
        }
        let count = ctx.client.subscriptions();
        confirm(ctx, "punsubscribe", Some(pattern), count);
    }
    if names.is_empty() {
        let count = ctx.client.subscriptions();
        confirm(ctx, "punsubscribe", None, count);
    }
    Ok(())
}

fn sunsubscribe(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let names = named(args, &ctx.client.shard_channels);
    for channel in &names {
        if ctx.client.shard_channels.remove(channel) {
            leave(&mut ctx.server.pubsub.shards, channel, Slot(ctx.client.slot));
        }
        let count = ctx.client.shard_channels.len();
        confirm(ctx, "sunsubscribe", Some(channel), count);
    }
    if names.is_empty() {
        confirm(ctx, "sunsubscribe", None, 0);
    }
    Ok(())
}

/// The answer counts those who hear it here; how many hear it on other nodes is not known.
fn relay(ctx: &Context<'_>, args: &Args<'_>, shard: bool) {
    if let Some(relay) = &ctx.server.relay {
        (relay.0)(Published { shard, channel: args.get(1), message: args.get(2) });
    }
}

fn publish(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    relay(ctx, args, false);
    let count = ctx.server.publish(args.get(1), args.get(2), Some(ctx.client));
    ctx.reply.count(count);
    Ok(())
}

fn spublish(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    relay(ctx, args, true);
    let count = ctx.server.publish_shard(args.get(1), args.get(2), Some(ctx.client));
    ctx.reply.count(count);
    Ok(())
}

fn list_names<'n>(
    ctx: &mut Context<'_>,
    args: &Args<'_>,
    names: impl Iterator<Item = &'n Vec<u8>>,
) -> Outcome {
    if 3 < args.len() {
        return Err(crate::fail::arity(ctx.command.name));
    }
    let wanted = args.try_get(2).unwrap_or(b"*");
    let mut names: Vec<&[u8]> =
        names.map(Vec::as_slice).filter(|name| pattern::matches(wanted, name)).collect();
    names.sort_unstable();
    ctx.reply.array(names.len());
    for name in names {
        ctx.reply.bulk(name);
    }
    Ok(())
}

fn channels(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let names: Vec<Vec<u8>> = ctx.server.pubsub.channels.keys().cloned().collect();
    list_names(ctx, args, names.iter())
}

fn shard_channels(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let names: Vec<Vec<u8>> = ctx.server.pubsub.shards.keys().cloned().collect();
    list_names(ctx, args, names.iter())
}

fn numsub(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    ctx.reply.array(2 * (args.len() - 2));
    for channel in args.from(2) {
        let count = ctx.server.pubsub.channels.get(channel).map_or(0, BTreeSet::len);
        ctx.reply.bulk(channel);
        ctx.reply.count(count);
    }
    Ok(())
}

fn shard_numsub(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    ctx.reply.array(2 * (args.len() - 2));
    for channel in args.from(2) {
        let count = ctx.server.pubsub.shards.get(channel).map_or(0, BTreeSet::len);
        ctx.reply.bulk(channel);
        ctx.reply.count(count);
    }
    Ok(())
}

fn numpat(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    ctx.reply.count(ctx.server.pubsub.patterns.len());
    Ok(())
}

fn help(ctx: &mut Context<'_>, _args: &Args<'_>) -> Outcome {
    super::help(ctx, "PUBSUB", NESTED);
    Ok(())
}
