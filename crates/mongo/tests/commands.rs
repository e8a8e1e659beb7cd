//! Commands in, answers out, on a store in memory.
#![expect(clippy::unwrap_used, reason = "a test may stop at any surprise")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kumiko_base::Value;
use kumiko_base::draw::{self, Draw};
use kumiko_kv::Memory;
use kumiko_lang::json::{Style, parse, show};
use kumiko_mongo::{Connection, Options, Server, World};
use kumiko_wire::mongo::Request;

/// Time that stands still, and numbers that count.
#[derive(Default)]
struct Still(AtomicU64);

impl World for Still {
    fn now_ms(&self) -> i64 {
        1_600_000_000_000
    }

    fn random(&self) -> [u8; 32] {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let mut draw = Draw::new(number);
        std::array::from_fn(|_| draw.bits() as u8)
    }
}

struct Client {
    server: Server,
    connection: Connection,
}

impl Client {
    fn on(engine: &Memory) -> Client {
        let world = Arc::new(Still::default());
        let server = Server::new(Arc::new(engine.clone()), world, Options::default());
        let connection = server.connect();
        Client { server, connection }
    }

    fn run(&mut self, command: &Value) -> Value {
        let request = Request { id: 1, command: command.clone(), silent: false, old: false };
        self.server.run(&mut self.connection, &request).unwrap()
    }

    fn text(&mut self, command: &str) -> String {
        let answer = self.run(&parse(command).unwrap());
        show(&answer, Style::Relaxed)
    }
}

const SESSION: &str =
    r#""lsid": {"id": {"$uuid": "00000000-0000-4000-8000-000000000001"}}, "$db": "d""#;

/// Each command and a part of its answer.
#[test]
fn commands() {
    let mut client = Client::on(&Memory::new());
    let rows = [
        (r#"{"hello": 1}"#, r#""msg":"isdbgrid""#),
        (r#"{"nope": 1}"#, r#""code":59,"codeName":"CommandNotFound""#),
        (
            r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}], "$db": "d"}"#,
            r#""n":2"#,
        ),
        (
            r#"{"insert": "c", "documents": [{"_id": 3}, {"_id": 1}, {"_id": 4}], "$db": "d"}"#,
            r#"{"n":1,"writeErrors":[{"index":1,"code":11000"#,
        ),
        (
            r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 4}], "ordered": false, "$db": "d"}"#,
            r#"{"n":1,"writeErrors":[{"index":0"#,
        ),
        (
            r#"{"find": "c", "filter": {"a": {"$gt": 1}}, "$db": "d"}"#,
            r#""firstBatch":[{"_id":2,"a":2}]"#,
        ),
        (
            r#"{"find": "c", "sort": {"_id": -1}, "limit": 1, "projection": {"_id": 1}, "$db": "d"}"#,
            r#"[{"_id":4}]"#,
        ),
        (r#"{"count": "c", "$db": "d"}"#, r#""n":4"#),
        (
            r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 5}}}], "$db": "d"}"#,
            r#"{"n":1,"nModified":1"#,
        ),
        (
            r#"{"update": "c", "updates": [{"q": {"_id": 9}, "u": {"x": 1}, "upsert": true}], "$db": "d"}"#,
            r#""upserted":[{"index":0,"_id":9}]"#,
        ),
        (
            r#"{"update": "c", "updates": [{"q": {}, "u": {"$set": {"m": 1}}, "multi": true}], "$db": "d"}"#,
            r#"{"n":5,"nModified":5"#,
        ),
        (
            r#"{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 0}}, "new": true, "fields": {"a": 1}, "$db": "d"}"#,
            r#""value":{"_id":1,"a":0}"#,
        ),
        (
            r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1", "unique": true, "sparse": true}], "$db": "d"}"#,
            r#""numIndexesAfter":2"#,
        ),
        (
            r#"{"insert": "c", "documents": [{"_id": 20, "a": 2}], "$db": "d"}"#,
            "E11000 duplicate key error collection: d.c index: a_1 dup key: { a: 2 }",
        ),
        (
            r#"{"explain": {"find": "c", "filter": {"a": 2}}, "verbosity": "queryPlanner", "$db": "d"}"#,
            r#""indexName":"a_1""#,
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$group": {"_id": null, "n": {"$sum": 1}}}], "cursor": {}, "$db": "d"}"#,
            r#"[{"_id":null,"n":5}]"#,
        ),
        (r#"{"distinct": "c", "key": "m", "$db": "d"}"#, r#""values":[1]"#),
        (r#"{"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1}], "$db": "d"}"#, r#""n":1"#),
        (r#"{"validate": "c", "$db": "d"}"#, r#""valid":true"#),
        (r#"{"renameCollection": "d.c", "to": "d.e", "$db": "admin"}"#, r#""ok":1.0"#),
        (
            r#"{"listCollections": 1, "nameOnly": true, "$db": "d"}"#,
            r#"[{"name":"e","type":"collection"}]"#,
        ),
        (r#"{"create": "v", "validator": {"n": {"$gt": 0}}, "$db": "d"}"#, r#""ok":1.0"#),
        (r#"{"insert": "v", "documents": [{"n": 0}], "$db": "d"}"#, r#""code":121"#),
        (r#"{"create": "w", "capped": true, "size": 1000, "$db": "d"}"#, r#""code":238"#),
        (r#"{"find": "e", "collation": {"locale": "de"}, "$db": "d"}"#, r#""code":238"#),
        (r#"{"getMore": {"$numberLong": "5"}, "collection": "e", "$db": "d"}"#, r#""code":43"#),
        (r#"{"dropDatabase": 1, "$db": "d"}"#, r#""dropped":"d""#),
    ];
    for (command, wanted) in rows {
        let answer = client.text(command);
        assert!(answer.contains(wanted), "{command}\n{answer}\nlacks {wanted}");
    }
}

/// A write that is repeated, even to a server that was started again, is done once.
#[test]
fn repeated_writes_across_a_restart() {
    let engine = Memory::new();
    let update = format!(
        r#"{{"update": "c", "updates": [{{"q": {{"_id": 1}}, "u": {{"$inc": {{"n": 1}}}}, "upsert": true}}], "txnNumber": {{"$numberLong": "7"}}, {SESSION}}}"#
    );
    let first = Client::on(&engine).text(&update);
    assert!(first.contains("upserted"));
    assert_eq!(Client::on(&engine).text(&update), first);
    let older = update.replace("\"7\"", "\"6\"");
    assert!(Client::on(&engine).text(&older).contains("\"code\":225"));
    let found = Client::on(&engine).text(r#"{"find": "c", "$db": "d"}"#);
    assert!(found.contains(r#"[{"_id":1,"n":1}]"#), "{found}");
}

/// Two transactions that write the same document: one commits, the other is told to run again. A
/// commit that is repeated is fine, also after a restart.
#[test]
fn transactions() {
    let engine = Memory::new();
    let mut client = Client::on(&engine);
    client.text(r#"{"insert": "c", "documents": [{"_id": 1, "n": 0}], "$db": "d"}"#);
    let in_txn = |session: u8, start: bool, body: &str| {
        let start = if start { r#""startTransaction": true, "# } else { "" };
        format!(
            r#"{{{body}, {start}"autocommit": false, "txnNumber": {{"$numberLong": "1"}}, "lsid": {{"id": {{"$uuid": "00000000-0000-4000-8000-00000000000{session}"}}}}, "$db": "d"}}"#
        )
    };
    let change = r#""update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]"#;
    assert!(client.text(&in_txn(1, true, change)).contains("\"nModified\":1"));
    assert!(client.text(&in_txn(2, true, change)).contains("\"nModified\":1"));
    assert!(client.text(r#"{"find": "c", "$db": "d"}"#).contains("\"n\":0"));
    let commit = r#""commitTransaction": 1"#;
    assert!(client.text(&in_txn(1, false, commit)).contains("\"ok\":1.0"));
    let lost = client.text(&in_txn(2, false, commit));
    assert!(lost.contains("\"code\":112") && lost.contains("TransientTransactionError"), "{lost}");
    assert!(client.text(&in_txn(1, false, commit)).contains("\"ok\":1.0"));
    assert!(Client::on(&engine).text(&in_txn(1, false, commit)).contains("\"ok\":1.0"));
    assert!(client.text(&in_txn(2, false, change)).contains("\"code\":251"));
    assert!(client.text(r#"{"find": "c", "$db": "d"}"#).contains("\"n\":1"));
}

/// A stream shows what was committed after it was opened, and goes on behind a token.
#[test]
fn change_streams() {
    let mut client = Client::on(&Memory::new());
    let open = client.run(
        &parse(
            r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}, "$db": "d"}"#,
        )
        .unwrap(),
    );
    let Some(Value::I64(id)) = open.field("cursor").and_then(|it| it.field("id")) else {
        panic!("no cursor in {open:?}")
    };
    client.text(r#"{"insert": "c", "documents": [{"_id": 1}], "$db": "d"}"#);
    client.text(
        r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}], "$db": "d"}"#,
    );
    let more = format!(
        r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c", "maxTimeMS": 0, "$db": "d"}}"#
    );
    let events = client.text(&more);
    assert!(events.contains(r#""operationType":"insert""#), "{events}");
    assert!(events.contains(r#""updatedFields":{"a":1}"#), "{events}");
    assert!(client.text(&more).contains(r#""nextBatch":[]"#));
}

/// Whatever a client sends, it gets an answer.
#[test]
fn any_command_is_answered() {
    let names = [
        "insert",
        "find",
        "update",
        "delete",
        "aggregate",
        "findAndModify",
        "count",
        "distinct",
        "createIndexes",
        "dropIndexes",
        "getMore",
        "create",
        "collMod",
        "saslStart",
        "saslContinue",
        "explain",
        "renameCollection",
        "listCollections",
        "commitTransaction",
        "createUser",
    ];
    let words = [
        "documents",
        "updates",
        "deletes",
        "q",
        "u",
        "limit",
        "filter",
        "pipeline",
        "cursor",
        "query",
        "key",
        "indexes",
        "name",
        "_id",
        "a",
        "$set",
        "$match",
        "$group",
        "lsid",
        "txnNumber",
        "autocommit",
        "startTransaction",
        "payload",
        "mechanism",
        "sort",
        "projection",
        "c",
        "multi",
        "upsert",
    ];
    fn any(draw: &mut Draw, words: &[&str], depth: u32) -> Value {
        match draw.below(if depth == 0 { 5 } else { 9 }) {
            0 => Value::I32(draw.below(4) as i32 - 1),
            1 | 2 => Value::Text(draw.one_of(words).into()),
            3 => Value::Bool(draw.one_in(2)),
            4 => Value::Null,
            5 | 6 => {
                Value::Array((0..draw.below(3)).map(|_| any(draw, words, depth - 1)).collect())
            }
            _ => Value::Map(
                (0..draw.below(4))
                    .map(|_| (draw.one_of(words).to_string(), any(draw, words, depth - 1)))
                    .collect(),
            ),
        }
    }
    let mut client = Client::on(&Memory::new());
    draw::check("any_command_is_answered", 5_000, |draw| {
        let mut fields = vec![(draw.one_of(&names).to_string(), any(draw, &words, 2))];
        for _ in 0..draw.below(5) {
            fields.push((draw.one_of(&words).to_string(), any(draw, &words, 3)));
        }
        let answer = client.run(&Value::Map(fields));
        assert!(answer.field("ok").is_some());
    });
}
