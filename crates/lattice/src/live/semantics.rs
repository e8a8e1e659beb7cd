//! `docs/semantics.md`, row by row: the table is the test.
//!
//! A row has a state that both nodes share, what A does, what B does without having seen it, and
//! what both see once they have heard of each other. B's clock is 10 ms later unless its commands
//! start with `@` and a number of milliseconds.

use super::converge::Node;
use super::tests::Plain;
use super::{DbId, End, Error, Live, Ttl, ZaddRule};

const TABLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/semantics.md"));
const START_MS: u64 = 1_000_000;

fn number(word: &str) -> i64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

/// Runs one command; panics if the table has one that is not known.
fn run(live: &mut Live, id: DbId, now_ms: u64, command: &str) -> Result<(), Error> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let mut db = live.db(id, now_ms);
    let bytes = |at: usize| words[at].as_bytes();
    match words[0] {
        "SET" if words.len() == 5 => {
            db.set(bytes(1), bytes(2), Ttl::At(START_MS + number(words[4]) as u64))
        }
        "SET" => db.set(bytes(1), bytes(2), Ttl::Clear),
        "SETNX" if db.exists(bytes(1)) => Ok(()),
        "SETNX" => db.set(bytes(1), bytes(2), Ttl::Clear),
        "APPEND" => db.append(bytes(1), bytes(2)).map(drop),
        "SETRANGE" => db.set_range(bytes(1), number(words[2]) as usize, bytes(3)).map(drop),
        "INCRBY" => db.incr(bytes(1), number(words[2])).map(drop),
        "DEL" => {
            db.del(bytes(1));
            Ok(())
        }
        "EXPIRE" => {
            db.expire_at(bytes(1), START_MS + number(words[2]) as u64);
            Ok(())
        }
        "PERSIST" => {
            db.persist(bytes(1));
            Ok(())
        }
        "RENAME" => db.rename(bytes(1), bytes(2), true).map(drop),
        "FLUSHDB" => {
            db.flush();
            Ok(())
        }
        "HSET" => db.hset(bytes(1), bytes(2), bytes(3)).map(drop),
        "HDEL" => db.hdel(bytes(1), bytes(2)).map(drop),
        "HINCRBY" => db.hincr(bytes(1), bytes(2), number(words[3])).map(drop),
        "SADD" => db.sadd(bytes(1), bytes(2)).map(drop),
        "SREM" | "SPOP" => db.srem(bytes(1), bytes(2)).map(drop),
        "ZADD" => {
            let score = number(words[2]) as f64;
            db.zadd(bytes(1), bytes(3), score, ZaddRule::default()).map(drop)
        }
        "ZINCRBY" => {
            let rule = ZaddRule { increment: true, ..ZaddRule::default() };
            db.zadd(bytes(1), bytes(3), number(words[2]) as f64, rule).map(drop)
        }
        "ZREM" => db.zrem(bytes(1), bytes(2)).map(drop),
        "ZPOPMIN" => db.zpop(bytes(1), false).map(drop),
        "LPUSH" => words[2..].iter().try_for_each(|it| {
            let value = it.as_bytes();
            db.push(words[1].as_bytes(), End::Front, value).map(drop)
        }),
        "RPUSH" => words[2..].iter().try_for_each(|it| {
            let value = it.as_bytes();
            db.push(words[1].as_bytes(), End::Back, value).map(drop)
        }),
        "LPOP" => db.pop(bytes(1), End::Front).map(drop),
        "RPOP" => db.pop(bytes(1), End::Back).map(drop),
        "LSET" => db.lset(bytes(1), number(words[2]) as usize, bytes(3)),
        "LINSERT" => db.linsert(bytes(1), number(words[2]) as usize, bytes(3)).map(drop),
        "LREM" => db.lrem(bytes(1), bytes(2), usize::MAX, End::Front).map(drop),
        "LTRIM" => db.ltrim(bytes(1), number(words[2]) as usize, number(words[3]) as usize + 1),
        other => panic!("the table has an unknown command {other}"),
    }
}

fn words(list: &[Vec<u8>]) -> String {
    let words: Vec<_> = list.iter().map(|it| String::from_utf8_lossy(it)).collect();
    words.join(" ")
}

/// What a node holds, as the table writes it.
fn show(node: &mut Node) -> String {
    let mut all = Vec::new();
    for (key, (held, expire_ms)) in node.plain() {
        let value = match held {
            Plain::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            Plain::Hash(fields) => {
                let pairs = fields.iter().map(|it| words(&[it.0.clone(), it.1.clone()]));
                format!(
                    "{{{}}}",
                    pairs.map(|it| it.replace(' ', "=")).collect::<Vec<_>>().join(" ")
                )
            }
            Plain::Set(members) => {
                format!("{{{}}}", words(&members.into_iter().collect::<Vec<_>>()))
            }
            Plain::Zset(members) => {
                let pairs = members
                    .iter()
                    .map(|it| format!("{}={}", words(std::slice::from_ref(it.0)), it.1));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(" "))
            }
            Plain::List(elements) => format!("[{}]", words(&elements)),
        };
        let ttl =
            if expire_ms == 0 { String::new() } else { format!(" until {}", expire_ms - START_MS) };
        all.push(format!("{} {value}{ttl}", String::from_utf8_lossy(&key)));
    }
    if all.is_empty() { "nothing".to_string() } else { all.join("; ") }
}

fn commands(text: &str) -> (u64, Vec<&str>) {
    let text = text.trim().trim_matches('`').trim();
    let (late_ms, text) = match text.strip_prefix('@').and_then(|it| it.split_once(' ')) {
        Some((ms, rest)) => (number(ms) as u64, rest),
        None => (10, text),
    };
    (late_ms, text.split(';').map(str::trim).filter(|it| !it.is_empty()).collect())
}

#[test]
fn the_table_in_the_document_is_true() {
    let mut count = 0;
    for line in TABLE.lines().filter(|it| it.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        assert!(5 <= cells.len(), "row with too few cells: {line}");
        count += 1;
        let mut nodes = [Node::new(1, false), Node::new(2, false)];
        for command in commands(cells[0]).1.iter().filter(|it| **it != "-") {
            run(&mut nodes[0].live, nodes[0].id, START_MS, command).unwrap();
        }
        let [a, b] = &mut nodes;
        b.absorb(a.owner, &a.state());
        for (node, cell, late_ms) in [(&mut *a, cells[1], 0), (&mut *b, cells[2], 10)] {
            let (late_given_ms, list) = commands(cell);
            let late_ms = if late_ms == 0 { 0 } else { late_given_ms };
            node.now_ms = START_MS + 100 + late_ms;
            for command in list.iter().filter(|it| **it != "-") {
                run(&mut node.live, node.id, node.now_ms, command)
                    .unwrap_or_else(|error| panic!("{command} in {line}: {error}"));
            }
        }
        let (from_a, from_b) = (a.state(), b.state());
        a.absorb(b.owner, &from_b);
        b.absorb(a.owner, &from_a);
        let want = cells[3].trim().trim_matches('`').trim();
        assert_eq!(show(a), want, "at A: {line}");
        assert_eq!(show(b), want, "at B: {line}");
        assert_eq!(a.state().index.id(), b.state().index.id(), "{line}");
    }
    assert!(40 <= count, "the table has only {count} rows");
}

/// A stamp from far ahead waits, is reported, and counts when its time comes.
#[test]
fn far_future_stamps_wait() {
    let (mut a, mut b) = (Node::new(1, false), Node::new(2, false));
    run(&mut a.live, a.id, a.now_ms + 30_001, "SET late 1").unwrap();
    run(&mut a.live, a.id, a.now_ms + 30_000, "SET near 1").unwrap();
    let state = a.state();
    let merged = b.absorb(a.owner, &state);
    assert_eq!(show(&mut b), "near 1");
    assert_eq!(merged.later_ms, Some(b.now_ms + 1));
    b.now_ms += 1;
    let merged = b.absorb(a.owner, &state);
    assert_eq!((show(&mut b).as_str(), merged.later_ms), ("late 1; near 1", None));
}

/// Nobody can count for somebody else, and one bad entry stops no other.
#[test]
fn hearsay_and_bad_entries_are_left_out() {
    use crate::cell::Cell;
    use crate::index::Batch;
    let (mut a, mut b, mut c) = (Node::new(1, false), Node::new(2, false), Node::new(3, false));
    run(&mut a.live, a.id, a.now_ms, "INCRBY hits 5").unwrap();
    b.absorb(a.owner, &a.state());
    run(&mut b.live, b.id, b.now_ms, "INCRBY hits 2").unwrap();
    let mut state = b.state();
    c.absorb(b.owner, &state);
    assert_eq!(show(&mut c), "hits 2", "A's count comes from A alone");
    c.absorb(a.owner, &a.state());
    assert_eq!(show(&mut c), "hits 7");
    let mut batch = Batch::new();
    let bad = Cell::vector(&[Cell::int(1), Cell::int(1), Cell::int(5), Cell::int(0)]);
    batch.put_string(b"bad", |writer| writer.cell(&bad));
    let good = Cell::vector(&[Cell::string("x"), Cell::int(0), Cell::int(5), Cell::int(0)]);
    batch.put_string(b"good", |writer| writer.cell(&good));
    state.index = state.index.update(&batch).unwrap();
    let source = super::Source {
        owner: &b.owner,
        layout: crate::replica::Layout::Seed,
        ahead_max_ms: super::AHEAD_MAX_MS,
    };
    let merged = c.live.absorb(c.id, source, &state, c.now_ms).unwrap();
    assert_eq!(merged.refused_keys, vec![(b"bad".to_vec(), "the value is no Index")]);
    assert_eq!(show(&mut c), "good x; hits 7");
}

/// Forgetting what everybody has seen removed never brings it back.
#[test]
fn collecting_never_resurrects() {
    let (mut a, mut b) = (Node::new(1, false), Node::new(2, false));
    let all = [
        "SET s 1",
        "HSET h f 1",
        "HSET h g 1",
        "SADD m x",
        "SADD m y",
        "RPUSH l 1 2",
        "INCRBY n 4",
    ];
    for command in all {
        run(&mut a.live, a.id, a.now_ms, command).unwrap();
    }
    b.absorb(a.owner, &a.state());
    a.now_ms += 100;
    for command in ["DEL s", "HDEL h f", "SREM m x", "LPOP l", "DEL n"] {
        run(&mut a.live, a.id, a.now_ms, command).unwrap();
    }
    b.absorb(a.owner, &a.state());
    let want = "h {g=1}; l [2]; m {y}";
    assert_eq!((show(&mut a).as_str(), show(&mut b).as_str()), (want, want));
    let before = a.state();
    let horizon = a.now_ms + 50;
    a.now_ms += 200;
    b.now_ms = a.now_ms;
    assert_eq!(a.live.collect(a.id, horizon, a.now_ms).unwrap(), 4);
    assert_eq!(show(&mut a), want);
    // B still has the removals, and an old copy of A's state goes round: nothing comes back.
    let old = b.state();
    a.absorb(b.owner, &old);
    a.absorb(a.owner, &before);
    assert_eq!(show(&mut a), want);
    b.live.collect(b.id, horizon, b.now_ms).unwrap();
    b.absorb(a.owner, &a.state());
    a.absorb(b.owner, &b.state());
    assert_eq!((show(&mut a).as_str(), show(&mut b).as_str()), (want, want));
    assert_eq!(a.state().index.id(), b.state().index.id());
    // A count that starts again after its delete is whole everywhere.
    run(&mut a.live, a.id, a.now_ms, "INCRBY n 1").unwrap();
    b.absorb(a.owner, &a.state());
    assert_eq!(show(&mut b), format!("{want}; n 1"));
}

#[test]
fn an_explanation_names_the_reasons() {
    let (mut a, mut b) = (Node::new(1, false), Node::new(2, false));
    run(&mut a.live, a.id, a.now_ms, "INCRBY k 5").unwrap();
    b.absorb(a.owner, &a.state());
    b.now_ms += 10;
    run(&mut b.live, b.id, b.now_ms, "DEL k").unwrap();
    run(&mut b.live, b.id, b.now_ms, "HSET k f 1").unwrap();
    let theirs = a.state();
    let mine = b.state();
    let told = b.live.explain(b.id, b"k", b.now_ms, &[(a.owner, &theirs.index)]).unwrap().unwrap();
    assert_eq!(told.types.len(), 1);
    assert_eq!((told.columns[0].counted, told.columns[0].reset), ((5, 0), (5, 0)));
    assert_eq!(told.owners, vec![(a.owner, Some(1_000_000), false)]);
    let text = told.to_string();
    assert!(text.starts_with("shows a hash: nothing else is above the floor\n"), "{text}");
    assert!(text.contains("+5 -0, reset +5 -0"), "{text}");
    assert_eq!(b.live.explain(b.id, b"none", 0, &[]).unwrap(), None);
    a.absorb(b.owner, &mine);
    let same = a.live.explain(a.id, b"k", a.now_ms, &[(b.owner, &mine.index)]).unwrap().unwrap();
    assert!(same.owners[0].2);
}

/// The short cuts for plain strings give what the long way gives: a journal takes the long way.
#[test]
fn plain_strings_fold_alike() {
    kumiko_base::draw::check("plain_strings_fold_alike", 200, |draw| {
        let (mut short, mut long) = (Node::new(1, false), Node::new(1, true));
        for _ in 0..20 {
            let command = match draw.below(5) {
                0 => format!("SET k{} {}", draw.below(3), draw.below(5)),
                1 => format!("SET k{} {} PX 900", draw.below(3), draw.below(5)),
                2 => format!("INCRBY n{} 1", draw.below(2)),
                3 => format!("DEL k{}", draw.below(3)),
                _ => format!("SET n{} 4", draw.below(2)),
            };
            for node in [&mut short, &mut long] {
                run(&mut node.live, node.id, node.now_ms, &command).unwrap();
            }
            if draw.one_in(3) {
                assert_eq!(short.state().index.id(), long.state().index.id());
            }
        }
        let (state, owner) = (short.state(), short.owner);
        let (mut quiet, mut loud) = (Node::new(2, false), Node::new(2, true));
        quiet.absorb(owner, &state);
        loud.absorb(owner, &state);
        assert_eq!(quiet.plain(), loud.plain());
        assert_eq!(quiet.state().index.id(), loud.state().index.id());
    });
}
