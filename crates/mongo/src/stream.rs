//! Change streams: following the change log.
//!
//! A resume token is `{_data: hex}`: the number of a change in the log, and a mark for the event
//! that ends a stream. The first stream of all switches the log on; what was written before that is
//! not in it.

use std::time::Duration;

use kumiko_base::Value;
use kumiko_document::path::field;
use kumiko_document::{Change, Operation, catalog, documents, feed};
use kumiko_kv::{Engine, Read, Retry, Txn};
use kumiko_lang::{Code, Context, Pipeline, Run, types};

use crate::call::Call;
use crate::cursors::{Batch, Cursor, Source};
use crate::read::cursor_answer;
use crate::{Failure, Server};

/// How long a getMore waits for a change if the client does not say.
const WAIT_MS: i64 = 1_000;
/// The longest that one answer waits.
const WAIT_MS_MAX: i64 = 60_000;
/// About how much of the log is read at a time.
const READ_BYTES: usize = 4_000_000;
/// How long changes are kept.
pub const KEEP_MS: i64 = 24 * 3_600_000;

/// What a stream follows.
#[derive(Clone, Debug, PartialEq)]
enum Scope {
    Collection(String, String),
    Database(String),
    All,
}

/// A stream under way.
#[derive(Debug)]
pub(crate) struct Stream {
    scope: Scope,
    after: u64,
    look_up: bool,
    pipeline: Pipeline,
    /// The collection is gone: one last event, then the end.
    ended: bool,
}

/// Whether the command opens a change stream.
pub(crate) fn is_wanted(call: &Call<'_>) -> bool {
    let Some(Value::Array(stages)) = call.field("pipeline") else { return false };
    stages.first().is_some_and(|it| field(it, "$changeStream").is_some())
}

fn token(number: u64, ended: bool) -> Value {
    let mark = if ended { "ff" } else { "" };
    doc! { "_data" => Value::Text(format!("82{number:016x}{mark}")) }
}

fn parse_token(token: &Value) -> Result<(u64, bool), Failure> {
    let bad = || Failure::location(260, "Invalid resume token");
    let Some(Value::Text(text)) = field(token, "_data") else { return Err(bad()) };
    let digits = text.strip_prefix("82").and_then(|it| it.get(..16)).ok_or_else(bad)?;
    let number = u64::from_str_radix(digits, 16).map_err(|_| bad())?;
    Ok((number, text.ends_with("ff") && text.len() == 20))
}

pub(crate) fn open(call: &mut Call<'_>) -> Result<Value, Failure> {
    if call.in_transaction {
        let message = "$changeStream cannot be used in a transaction";
        return Err(Failure::new(Code::NOT_IN_TRANSACTION, message));
    }
    let stages = call.list("pipeline")?;
    let spec = stages.first().and_then(|it| field(it, "$changeStream"));
    let Some(spec @ Value::Map(_)) = spec else {
        return Err(Failure::bad("$changeStream takes an object"));
    };
    let scope = match call.field("aggregate") {
        Some(Value::Text(name)) => Scope::Collection(call.database.clone(), name.clone()),
        _ if types::truth(field(spec, "allChangesForCluster")) => Scope::All,
        _ => Scope::Database(call.database.clone()),
    };
    let pipeline = Pipeline::parse(&stages[1..])?;
    let look_up = match field(spec, "fullDocument") {
        None => false,
        Some(Value::Text(word)) => match word.as_str() {
            "default" => false,
            "updateLookup" => true,
            other => {
                let message = format!("fullDocument: {other} is not offered by this server");
                return Err(Failure::new(Code::NOT_IMPLEMENTED, message));
            }
        },
        Some(_) => return Err(Failure::wrong_type("$changeStream.fullDocument", "string")),
    };
    if let Some(Value::Text(word)) = field(spec, "fullDocumentBeforeChange")
        && word != "off"
    {
        let message = "fullDocumentBeforeChange is not offered by this server";
        return Err(Failure::new(Code::NOT_IMPLEMENTED, message));
    }
    let after = start(call, spec)?;
    let namespace = match &scope {
        Scope::Collection(database, name) => format!("{database}.{name}"),
        Scope::Database(_) | Scope::All => format!("{}.$cmd.aggregate", call.database),
    };
    let stream = Stream { scope, after, look_up, pipeline, ended: false };
    let id = call.server.random_i64();
    let mut cursor = Cursor::new(namespace.clone(), Source::Stream(Box::new(stream)));
    cursor.session.clone_from(&call.session);
    call.server.cursors.add(id, cursor, call.server.world.now_ms())?;
    let answer = cursor_answer(id, &namespace, "firstBatch", Vec::new());
    Ok(with_token(answer, after, call.server.world.now_ms()))
}

fn with_token(answer: Value, number: u64, now_ms: i64) -> Value {
    let Value::Map(mut fields) = answer else { return answer };
    if let Some((_, Value::Map(cursor))) = fields.first_mut() {
        cursor.push(("postBatchResumeToken".into(), token(number, false)));
    }
    fields.push(("operationTime".into(), Value::Timestamp((now_ms / 1000) as u32, 1)));
    Value::Map(fields)
}

/// Where a stream begins: behind a token, or behind what is there now.
fn start(call: &mut Call<'_>, spec: &Value) -> Result<u64, Failure> {
    call.write(|work| Ok(feed::switch_on(work.txn)?))?;
    sequence(call.server.engine.as_ref())?;
    let resume = field(spec, "resumeAfter").or_else(|| field(spec, "startAfter"));
    if let Some(resume) = resume {
        let (number, ended) = parse_token(resume)?;
        if ended && field(spec, "resumeAfter").is_some() {
            let message = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.";
            return Err(Failure::location(260, message));
        }
        call.read(|txn| Ok(feed::read(txn, number, 1)?))?;
        return Ok(number);
    }
    if let Some(Value::Timestamp(seconds, _)) = field(spec, "startAtOperationTime") {
        return at_time(call, i64::from(*seconds) * 1000);
    }
    call.read(|txn| Ok(feed::newest(txn)?))
}

/// The number of the last change before a time.
fn at_time(call: &mut Call<'_>, ms: i64) -> Result<u64, Failure> {
    call.read(|txn| {
        let newest = feed::newest(txn)?;
        let mut after = feed::trimmed(txn)?;
        loop {
            let changes = feed::read(txn, after, READ_BYTES)?;
            let Some((last, _)) = changes.last() else { return Ok(newest) };
            let last = *last;
            if let Some((first, _)) = changes.iter().find(|(_, change)| ms <= change.time_ms) {
                return Ok(first - 1);
            }
            after = last;
        }
    })
}

/// Moves what writers left into the log.
pub(crate) fn sequence(engine: &dyn Engine) -> Result<(), Failure> {
    loop {
        let count = kumiko_kv::run(engine, Retry::default(), |txn: &mut dyn Txn| {
            feed::sequence(txn, READ_BYTES).map_err(Failure::from)
        })?;
        if count == 0 {
            return Ok(());
        }
    }
}

impl Server {
    /// Moves changes into the log and discards old ones, if changes are kept. Call it now and then.
    pub fn keep_log(&self) -> Result<(), Failure> {
        let mut txn = self.engine.begin()?;
        if !feed::is_on(txn.as_mut())? {
            return Ok(());
        }
        drop(txn);
        sequence(self.engine.as_ref())?;
        let before = self.world.now_ms() - KEEP_MS;
        loop {
            let count =
                kumiko_kv::run(self.engine.as_ref(), Retry::default(), |txn: &mut dyn Txn| {
                    feed::trim(txn, before, READ_BYTES).map_err(Failure::from)
                })?;
            if count == 0 {
                return Ok(());
            }
        }
    }
}

/// Goes on with a stream: waits for changes, at most as long as the client wants.
pub(crate) fn get_more(
    call: &mut Call<'_>,
    id: i64,
    mut cursor: Cursor,
    size: usize,
) -> Result<Value, Failure> {
    let wait_ms = call.number_field("maxTimeMS")?.unwrap_or(WAIT_MS).clamp(0, WAIT_MS_MAX);
    let end_ms = call.server.world.now_ms() + wait_ms;
    let namespace = cursor.namespace.clone();
    let Source::Stream(stream) = &mut cursor.source else {
        return Err(Failure::new(Code::CURSOR_NOT_FOUND, "the cursor is no stream"));
    };
    let mut batch = Batch::new(size);
    let result = loop {
        // The watch comes first, so that no change falls between reading and waiting.
        let mut watch = call.server.engine.watch(&feed::clock_key())?;
        if let Err(failure) = stream.fill(call.server, &mut batch) {
            break Err(failure);
        }
        let left_ms = end_ms - call.server.world.now_ms();
        let killed = call.server.cursors.is_killed(id);
        if !batch.documents.is_empty() || left_ms <= 0 || killed || stream.ended {
            break Ok(());
        }
        // Short waits, so that a killed cursor and a stopping server are noticed.
        watch.wait(Duration::from_millis(left_ms.min(250).unsigned_abs()))?;
    };
    let (after, ended) = (stream.after, stream.ended);
    if let Err(failure) = result {
        call.server.cursors.kill(id);
        return Err(failure);
    }
    let now_ms = call.server.world.now_ms();
    let next = if ended {
        call.server.cursors.kill(id);
        0
    } else {
        call.server.cursors.put(id, cursor, now_ms);
        id
    };
    let answer = cursor_answer(next, &namespace, "nextBatch", batch.documents);
    Ok(with_token(answer, after, now_ms))
}

impl Stream {
    fn fill(&mut self, server: &Server, batch: &mut Batch) -> Result<(), Failure> {
        sequence(server.engine.as_ref())?;
        let mut txn = server.engine.begin()?;
        let changes = feed::read(txn.as_mut(), self.after, READ_BYTES)?;
        for (number, change) in changes {
            if batch.is_full() || self.ended {
                return Ok(());
            }
            let mut events = Vec::new();
            if self.is_about(&change) {
                events.push(self.event(txn.as_mut(), number, &change)?);
            }
            if self.ends_with(&change) {
                self.ended = true;
                events.push(doc! {
                    "_id" => token(number, true),
                    "operationType" => Value::Text("invalidate".into()),
                    "clusterTime" => cluster_time(number, &change),
                    "wallTime" => Value::DateTime(change.time_ms),
                });
            }
            for event in self.filtered(events, server.world.now_ms())? {
                if batch.push(event).is_some() {
                    return Ok(());
                }
            }
            self.after = number;
        }
        Ok(())
    }

    fn is_about(&self, change: &Change) -> bool {
        match &self.scope {
            Scope::Collection(database, name) => {
                change.database == *database && change.collection == *name
            }
            Scope::Database(database) => change.database == *database,
            Scope::All => true,
        }
    }

    fn ends_with(&self, change: &Change) -> bool {
        match &self.scope {
            Scope::Collection(database, name) => {
                let mine = change.database == *database;
                let same = mine && change.collection == *name;
                match change.operation {
                    Operation::Drop | Operation::Rename => same,
                    Operation::DropDatabase => mine,
                    _ => mine && change.to.as_ref() == Some(name),
                }
            }
            Scope::Database(database) => {
                change.database == *database && change.operation == Operation::DropDatabase
            }
            Scope::All => false,
        }
    }

    fn event(&self, txn: &mut dyn Txn, number: u64, change: &Change) -> Result<Value, Failure> {
        let namespace = |name: &str| {
            doc! { "db" => Value::Text(change.database.clone()), "coll" => Value::Text(name.into()) }
        };
        let mut fields = vec![
            ("_id".to_string(), token(number, false)),
            ("operationType".into(), Value::Text(change.operation.word().into())),
            ("clusterTime".into(), cluster_time(number, change)),
            ("wallTime".into(), Value::DateTime(change.time_ms)),
        ];
        if let Value::Map(note) = &change.note {
            fields.extend(note.iter().cloned());
        }
        let full = match change.operation {
            Operation::Insert | Operation::Replace => match &change.after {
                Some(after) => Some(after.clone()),
                None => Some(current(txn, change)?),
            },
            Operation::Update if self.look_up => Some(current(txn, change)?),
            _ => None,
        };
        fields.extend(full.map(|it| ("fullDocument".to_string(), it)));
        if change.operation == Operation::DropDatabase {
            fields.push(("ns".into(), doc! { "db" => Value::Text(change.database.clone()) }));
        } else {
            fields.push(("ns".into(), namespace(&change.collection)));
        }
        if let Some(to) = &change.to {
            fields.push(("to".into(), namespace(to)));
        }
        if let Some(id) = &change.id {
            fields.push(("documentKey".into(), doc! { "_id" => id.clone() }));
        }
        if change.operation == Operation::Update {
            let removed = change.removed.iter().map(|it| Value::Text(it.clone()));
            fields.push((
                "updateDescription".into(),
                doc! {
                    "updatedFields" => Value::Map(change.updated.clone()),
                    "removedFields" => Value::Array(removed.collect()),
                    "truncatedArrays" => Value::Array(Vec::new()),
                },
            ));
        }
        Ok(Value::Map(fields))
    }

    fn filtered(&self, events: Vec<Value>, now_ms: i64) -> Result<Vec<Value>, Failure> {
        if self.pipeline.stages.is_empty() || events.is_empty() {
            return Ok(events);
        }
        let nothing = Value::Map(Vec::new());
        let mut context = Context::new(&nothing);
        context.now_ms = now_ms;
        let mut run = Run::new(&self.pipeline.stages, &context);
        struct Nobody;
        impl kumiko_lang::Host for Nobody {
            fn find(
                &mut self,
                _: &str,
                _: &kumiko_lang::Match,
            ) -> Result<Vec<Value>, kumiko_lang::Error> {
                let message = "a change stream reads no other collection";
                Err(kumiko_lang::Error::new(Code::ILLEGAL_OPERATION, message))
            }
            fn random(&mut self) -> u64 {
                0
            }
        }
        for event in events {
            run.push(&mut Nobody, event)?;
        }
        let out = run.finish(&mut Nobody)?;
        if out.iter().any(|it| field(it, "_id").is_none()) {
            let message = "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline.";
            return Err(Failure::location(280, message));
        }
        Ok(out)
    }
}

fn cluster_time(number: u64, change: &Change) -> Value {
    Value::Timestamp((change.time_ms / 1000) as u32, number as u32)
}

/// The document as it is now, or null if it is gone.
fn current(txn: &mut dyn Txn, change: &Change) -> Result<Value, Failure> {
    let Some(id) = &change.id else { return Ok(Value::Null) };
    let Some(collection) = catalog::get(txn, &change.database, &change.collection)? else {
        return Ok(Value::Null);
    };
    let found = documents::get(txn, &collection, id, Read::Snapshot)?;
    Ok(found.unwrap_or(Value::Null))
}
