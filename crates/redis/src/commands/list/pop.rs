//! Taking elements out of lists, and moving them between lists.

use crate::commands::data::{self, Type};
use crate::commands::pick;
use crate::fail::{self, Fail};
use crate::{Args, Context, Outcome, Writer, notify};

const NO_KEYS: Fail = Fail::new("ERR numkeys should be greater than 0");
const NO_COUNT: Fail = Fail::new("ERR count should be greater than 0");

/// The two ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The head: index 0.
    Left,
    /// The tail.
    Right,
}

impl End {
    /// Reads LEFT or RIGHT.
    pub(crate) fn parse(text: &[u8]) -> Result<End, Fail> {
        match text.to_ascii_lowercase().as_slice() {
            b"left" => Ok(End::Left),
            b"right" => Ok(End::Right),
            _ => Err(fail::SYNTAX),
        }
    }

    pub(crate) fn push_event(self) -> &'static str {
        match self {
            End::Left => "lpush",
            End::Right => "rpush",
        }
    }

    pub(crate) fn pop_event(self) -> &'static str {
        match self {
            End::Left => "lpop",
            End::Right => "rpop",
        }
    }
}

pub(super) fn lpop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    pop(ctx, args, End::Left)
}

pub(super) fn rpop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    pop(ctx, args, End::Right)
}

fn pop(ctx: &mut Context<'_>, args: &Args<'_>, end: End) -> Outcome {
    if 3 < args.len() {
        return Err(fail::arity(ctx.command.name));
    }
    let key = args.get(1);
    let count = if args.len() == 3 { Some(pick::count(args, 2)?) } else { None };
    let (mut data, reply) = data::open(ctx);
    if !data.check(key, Type::List)? {
        match count {
            Some(_) => reply.null_array(),
            None => reply.null(),
        }
        return Ok(());
    }
    if count == Some(0) {
        reply.array(0);
        return Ok(());
    }
    let elements = pop_many(ctx, key, end, count.unwrap_or(1))?;
    match count {
        Some(_) => write_elements(&mut ctx.reply, &elements),
        None => ctx.reply.bulk_or_null(elements.first().map(Vec::as_slice)),
    }
    Ok(())
}

fn write_elements(reply: &mut Writer, elements: &[Vec<u8>]) {
    reply.array(elements.len());
    for element in elements {
        reply.bulk(element);
    }
}

/// Takes up to `count` elements out and tells of it. An empty answer changed nothing.
pub(crate) fn pop_many(
    ctx: &mut Context<'_>,
    key: &[u8],
    end: End,
    count: usize,
) -> Result<Vec<Vec<u8>>, Fail> {
    let (mut data, _) = data::open(ctx);
    let count = count.min(data.list_len(key)?);
    let mut elements = Vec::with_capacity(count);
    while elements.len() < count {
        let Some(element) = data.list_pop(key, end)? else { break };
        elements.push(element);
    }
    if !elements.is_empty() {
        let emptied = !data.exists(key);
        ctx.wrote(key, notify::LIST, end.pop_event());
        if emptied {
            ctx.notify(notify::GENERIC, "del", key);
        }
    }
    Ok(elements)
}

/// What LMPOP and ZMPOP found: the key, and what was taken out.
pub(crate) struct Popped<'a> {
    /// Where.
    pub(crate) key: &'a [u8],
    /// What.
    pub(crate) elements: Vec<Vec<u8>>,
}

/// Answers the key and its elements, or null.
pub(crate) fn write_popped(reply: &mut Writer, popped: Option<&Popped<'_>>) {
    let Some(popped) = popped else {
        reply.null_array();
        return;
    };
    reply.array(2);
    reply.bulk(popped.key);
    write_elements(reply, &popped.elements);
}

/// Reads `numkeys key .. WHERE [COUNT n]`, with the number at `at`: the keys, where, how many.
pub(crate) fn many_options<'a, T>(
    args: &Args<'a>,
    at: usize,
    parse: fn(&[u8]) -> Result<T, Fail>,
) -> Result<(Args<'a>, T, usize), Fail> {
    let keys = pick::count_or(args, at, NO_KEYS)?;
    if keys == 0 {
        return Err(NO_KEYS);
    }
    let place = at.checked_add(keys).and_then(|it| it.checked_add(1)).ok_or(fail::SYNTAX)?;
    if args.len() <= place {
        return Err(fail::SYNTAX);
    }
    let end = parse(args.get(place))?;
    let count = match args.len() - place - 1 {
        0 => 1,
        2 if args.is(place + 1, "count") => pick::count_or(args, place + 2, NO_COUNT)?,
        _ => return Err(fail::SYNTAX),
    };
    if count == 0 {
        return Err(NO_COUNT);
    }
    Ok((args.slice(at + 1..place), end, count))
}

pub(super) fn lmpop(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (keys, end, count) = many_options(args, 1, End::parse)?;
    for key in keys.from(0) {
        let elements = pop_many(ctx, key, end, count)?;
        if !elements.is_empty() {
            write_popped(&mut ctx.reply, Some(&Popped { key, elements }));
            return Ok(());
        }
    }
    write_popped(&mut ctx.reply, None);
    Ok(())
}

pub(super) fn lmove(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let (from, to) = (End::parse(args.get(3))?, End::parse(args.get(4))?);
    let element = move_element(ctx, (args.get(1), from), (args.get(2), to))?;
    ctx.reply.bulk_or_null(element.as_deref());
    Ok(())
}

pub(super) fn rpoplpush(ctx: &mut Context<'_>, args: &Args<'_>) -> Outcome {
    let element = move_element(ctx, (args.get(1), End::Right), (args.get(2), End::Left))?;
    ctx.reply.bulk_or_null(element.as_deref());
    Ok(())
}

/// Moves one element and tells of it; `None` if the source has none.
pub(crate) fn move_element(
    ctx: &mut Context<'_>,
    from: (&[u8], End),
    to: (&[u8], End),
) -> Result<Option<Vec<u8>>, Fail> {
    let (mut data, _) = data::open(ctx);
    if !data.check(from.0, Type::List)? {
        return Ok(None);
    }
    data.check(to.0, Type::List)?;
    let length = data.list_len(from.0)?;
    let element = if from.0 == to.0 && length == 1 {
        // Taking the only element out and putting it back would lose the time to live.
        data.list_get(from.0, 0)?
    } else {
        let element = data.list_pop(from.0, from.1)?;
        if let Some(element) = &element {
            data.list_push(to.0, to.1, element)?;
        }
        element
    };
    let emptied = !data.exists(from.0);
    ctx.wrote(to.0, notify::LIST, to.1.push_event());
    ctx.wrote(from.0, notify::LIST, from.1.pop_event());
    if emptied {
        ctx.notify(notify::GENERIC, "del", from.0);
    }
    Ok(element)
}
