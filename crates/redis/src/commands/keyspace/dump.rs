//! DUMP and RESTORE: a value as bytes, in the format of Redis dump files.

use crate::commands::data::{self, Data, Keep, Type};
use crate::commands::list::End;
use crate::fail::{self, Fail};
use crate::rdb::{self, Dumped, Refused};
use crate::{Args, Context, Outcome, notify};

const BUSY_KEY: Fail = Fail::new("BUSYKEY Target key name already exists.");
const TTL_NEGATIVE: Fail = Fail::new("ERR Invalid TTL value, must be >= 0");
const IDLE_NEGATIVE: Fail = Fail::new("ERR Invalid IDLETIME value, must be >= 0");
const FREQ_RANGE: Fail = Fail::new("ERR Invalid FREQ value, must be >= 0 and <= 255");
const FOOTER: Fail = Fail::new("ERR DUMP payload version or checksum are wrong");
const FORMAT: Fail = Fail::new("ERR Bad data format");

pub(super) fn dump(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (mut data, reply) = data::open(ctx);
    match read(&mut data, args.get(1))? {
        Some(value) => reply.bulk(&rdb::dump(&value)),
        None => reply.null(),
    }
    Ok(())
}

fn read(data: &mut Data<'_>, key: &[u8]) -> Result<Option<Dumped>, Fail> {
    let Some(kind) = data.kind(key) else { return Ok(None) };
    Ok(Some(match kind {
        Type::String => Dumped::String(data.string_owned(key)?.unwrap_or_default()),
        Type::List => Dumped::List(data.list_items(key)?),
        Type::Set => Dumped::Set(data.set_members(key)?),
        Type::Zset => {
            let (mut members, count) = (Vec::new(), data.sorted_len(key)?);
            data.sorted_each(key, 0..count, false, |member, score| {
                members.push((member.to_vec(), score));
            })?;
            Dumped::Sorted(members)
        }
        Type::Hash => {
            let mut fields = Vec::new();
            data.hash_each(key, |field, value| fields.push((field.to_vec(), value.to_vec())))?;
            Dumped::Hash(fields)
        }
    }))
}

fn write(data: &mut Data<'_>, key: &[u8], value: &Dumped) -> Result<(), Fail> {
    match value {
        Dumped::String(text) => data.set_string(key, text, Keep::No)?,
        Dumped::List(items) => {
            for item in items {
                data.list_push(key, End::Right, item)?;
            }
        }
        Dumped::Set(members) => {
            for member in members {
                data.set_add(key, member)?;
            }
        }
        Dumped::Sorted(members) => {
            for (member, score) in members {
                data.sorted_set(key, member, *score)?;
            }
        }
        Dumped::Hash(fields) => {
            for (field, value) in fields {
                data.hash_set(key, field, value)?;
            }
        }
    }
    Ok(())
}

#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_s: Option<u64>,
    uses: Option<u8>,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Options, Fail> {
        let mut options = Options::default();
        let mut at = 4;
        while at < args.len() {
            let more = at + 1 < args.len();
            if args.is(at, "replace") {
                options.replace = true;
            } else if args.is(at, "absttl") {
                options.absolute = true;
            } else if args.is(at, "idletime") && more && options.uses.is_none() {
                let idle_s = u64::try_from(args.int(at + 1)?).map_err(|_| IDLE_NEGATIVE)?;
                options.idle_s = Some(idle_s);
                at += 1;
            } else if args.is(at, "freq") && more && options.idle_s.is_none() {
                options.uses = Some(args.int_within(at + 1, 0, 255, FREQ_RANGE)? as u8);
                at += 1;
            } else {
                return Err(fail::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }
}

pub(super) fn restore(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let key = args.get(1);
    let options = Options::parse(args)?;
    let (mut data, reply) = data::open(ctx);
    if !options.replace && data.exists(key) {
        return Err(BUSY_KEY);
    }
    let ttl = args.int(2)?;
    if ttl < 0 {
        return Err(TTL_NEGATIVE);
    }
    let value = rdb::restore(args.get(3)).map_err(|refused| match refused {
        Refused::Footer => FOOTER,
        Refused::Value => FORMAT,
    })?;
    let now_ms = data.now_ms() as i64;
    let at_ms = match ttl {
        0 => None,
        ttl if options.absolute => Some(ttl),
        ttl => Some(ttl.saturating_add(now_ms)),
    };
    let deleted = data.del(key);
    reply.ok();
    if at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        if deleted {
            ctx.wrote(key, notify::GENERIC, "del");
        }
        return Ok(());
    }
    write(&mut data, key, &value)?;
    if at_ms.is_some() {
        data.expire_at(key, at_ms);
    }
    if let Some(idle_s) = options.idle_s {
        data.set_idle(key, idle_s);
    }
    if let Some(uses) = options.uses {
        data.set_uses(key, uses);
    }
    ctx.wrote(key, notify::GENERIC, "restore");
    Ok(())
}
