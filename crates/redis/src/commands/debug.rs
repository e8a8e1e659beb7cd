//! DEBUG: what test suites and people who look for a fault need.

use crate::command::{ADMIN, Command, LOADING, NOSCRIPT, STALE};
use crate::commands::pattern;
use crate::server::Effect;
use crate::{Args, Context, Fail, Outcome, fail};

/// The commands of this family.
pub static COMMANDS: &[Command] = &[Command::new("debug", -2, debug)
    .flags(ADMIN | NOSCRIPT | LOADING | STALE)
    .summary("For tests: SLEEP, OBJECT, RELOAD and a few more")];

fn debug(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    match (args.text(1).to_ascii_lowercase().as_str(), args.len()) {
        ("sleep", 3) => {
            let seconds = args.float(2)?.clamp(0.0, 60.0);
            (ctx.server.sleep)((seconds * 1000.0) as u64);
        }
        ("object", 3) => return object(ctx, args),
        ("jmap", _) | ("quicklist-packed-threshold", 3) | ("change-repl-id", 2) => {}
        ("set-active-expire", 3) => ctx.server.active_expiry = args.int(2)? != 0,
        ("stringmatch-len", 4) => {
            let length = args.int_within(2, 0, 1 << 20, fail::OUT_OF_RANGE)?;
            let text = vec![b'a'; length as usize];
            let matched = pattern::matches(args.get(3), &text);
            ctx.reply.int(i64::from(matched));
            return Ok(());
        }
        ("reload", _) => ctx.server.effects.push(Effect::Snapshot),
        ("protocol", 3) => return protocol(ctx, args),
        ("log", 3) => {}
        (word, _) => {
            return Err(Fail::text(format!("ERR DEBUG {word} is not supported by this server")));
        }
    }
    ctx.reply.ok();
    Ok(())
}

fn object(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let Some(facts) = ctx.live().facts(args.get(2)) else { return Err(fail::NO_KEY) };
    let text = format!(
        "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:0 lru_seconds_idle:{}",
        facts.encoding, facts.bytes, facts.idle_s
    );
    ctx.reply.simple(&text);
    Ok(())
}

/// One reply of every type of the protocol.
#[expect(clippy::approx_constant, reason = "the suite wants this very number")]
fn protocol(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    match args.text(2).to_ascii_lowercase().as_str() {
        "string" => ctx.reply.bulk(b"Hello World"),
        "integer" => ctx.reply.int(12345),
        "double" => ctx.reply.double(3.141),
        "null" => ctx.reply.null(),
        "array" => write_three(ctx, kumiko_wire::resp::Writer::array),
        "set" => write_three(ctx, kumiko_wire::resp::Writer::set),
        "map" => {
            ctx.reply.map(3);
            for number in 0..3 {
                ctx.reply.int(number);
                ctx.reply.bool(number == 1);
            }
        }
        "push" => write_three(ctx, kumiko_wire::resp::Writer::push),
        "verbatim" => ctx.reply.verbatim("txt", b"This is a verbatim\nstring"),
        "bignum" => ctx.reply.big_number("1234567999999999999999999999999999999"),
        "true" => ctx.reply.bool(true),
        "false" => ctx.reply.bool(false),
        _ => return Err(fail::SYNTAX),
    }
    Ok(())
}

fn write_three(ctx: &mut Context<'_>, head: fn(&mut kumiko_wire::resp::Writer, usize)) {
    head(&mut ctx.reply, 3);
    for number in 0..3 {
        ctx.reply.int(number);
    }
}
