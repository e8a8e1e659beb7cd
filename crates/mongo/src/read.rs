//! Commands that read: find, getMore, count, distinct, aggregate, explain.

use kumiko_base::Value;
use kumiko_document::path::{self, field};
use kumiko_document::{Collection, Cursor as StoreCursor, Plan, catalog, order};
use kumiko_kv::{Flow, Read, Scan as KvScan, Txn};
use kumiko_lang::{Code, Context, Error as LangError, Host, Match, Pipeline, Run, Stage, types};

use crate::call::{self, Call};
use crate::cursors::{Batch, Cursor, FIRST_BATCH, Source};
use crate::find::{self, Want};
use crate::{Failure, stream, write};

/// How many documents an answer may hold at most.
const BATCH_MAX: i64 = 1_000_000;

pub(crate) fn find(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let namespace = call.namespace(&name);
    let want = wanted(call)?;
    let first = match call.number_field("batchSize")? {
        Some(size) if size < 0 => {
            return Err(Failure::location(51_024, "batchSize must not be negative"));
        }
        Some(size) => size.min(BATCH_MAX) as usize,
        None => FIRST_BATCH,
    };
    let single = call.truth("singleBatch") || call.number_field("limit")?.is_some_and(|it| it < 0);
    let (database, mode) = (call.database.clone(), call.mode());
    let (source, batch) = call.read(|txn| {
        let Some(collection) = catalog::get(txn, &database, &name)? else {
            return Ok((None, Batch::new(first)));
        };
        let mut source = find::source(txn, &collection, want.clone(), mode)?;
        let mut batch = Batch::new(first);
        let more = fill(txn, &mut source, &mut batch)?;
        Ok((more.then_some(source), batch))
    })?;
    let source = source.filter(|_| !single);
    answer(call, &namespace, source, batch, "firstBatch")
}

impl Failure {
    pub(crate) fn location(code: i32, message: &str) -> Failure {
        Failure::new(Code(code), message)
    }
}

fn wanted(call: &Call<'_>) -> Result<Want, Failure> {
    call::check_options(call.command)?;
    for name in ["min", "max", "returnKey", "showRecordId", "tailable"] {
        if types::truth(call.field(name)) {
            let message = format!("'{name}' is not offered by this server");
            return Err(Failure::new(Code::NOT_IMPLEMENTED, message));
        }
    }
    let mut want = Want::new(&call.map("filter")?)?
        .projected(call.field("projection"))?
        .sorted(call.field("sort"))?;
    want.skip = positive(call, "skip")?.unwrap_or(0);
    want.limit = call.number_field("limit")?.map(i64::unsigned_abs).filter(|it| *it != 0);
    want.hint = want.hint.or_else(|| call.field("hint").cloned());
    want.variables = call::variables(call.command)?;
    want.now_ms = call.server.world.now_ms();
    Ok(want)
}

fn positive(call: &Call<'_>, name: &str) -> Result<Option<u64>, Failure> {
    match call.number_field(name)? {
        Some(number) if number < 0 => {
            let message =
                format!("BSON field '{name}' value must be >= 0, actual value '{number}'");
            Err(Failure::location(51_024, &message))
        }
        other => Ok(other.map(i64::unsigned_abs)),
    }
}

/// Fills a batch; says whether there may be more.
fn fill(txn: &mut dyn Txn, source: &mut Source, batch: &mut Batch) -> Result<bool, Failure> {
    match source {
        Source::Ready(documents) => {
            while let Some(document) = documents.pop_front() {
                if let Some(back) = batch.push(document) {
                    documents.push_front(back);
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Source::Scan(scan) => {
            while !batch.is_full() {
                let Some(document) = scan.next(txn)? else { return Ok(false) };
                if let Some(back) = batch.push(document) {
                    scan.unread(back);
                    return Ok(true);
                }
            }
            Ok(true)
        }
        Source::Stream(_) => Ok(true),
    }
}

/// The answer of a command that opens a cursor, or goes on with one.
fn answer(
    call: &Call<'_>,
    namespace: &str,
    source: Option<Source>,
    batch: Batch,
    name: &str,
) -> Result<Value, Failure> {
    let id = match source {
        None => 0,
        Some(source) => {
            let id = call.server.random_i64();
            let mut cursor = Cursor::new(namespace.into(), source);
            cursor.session.clone_from(&call.session);
            cursor.number = call.number.filter(|_| call.in_transaction);
            call.server.cursors.add(id, cursor, call.server.world.now_ms())?;
            id
        }
    };
    Ok(cursor_answer(id, namespace, name, batch.documents))
}

/// `{cursor: {id, ns, firstBatch}}`.
pub(crate) fn cursor_answer(id: i64, namespace: &str, name: &str, documents: Vec<Value>) -> Value {
    doc! { "cursor" => doc! {
        name => Value::Array(documents),
        "id" => Value::I64(id),
        "ns" => Value::Text(namespace.into()),
    } }
}

pub(crate) fn get_more(call: &mut Call<'_>) -> Result<Value, Failure> {
    let Some(id) = call.number_field("getMore")? else {
        return Err(Failure::wrong_type("getMore.getMore", "long"));
    };
    let size = match call.number_field("batchSize")? {
        Some(size) if 0 < size => size.min(BATCH_MAX) as usize,
        Some(size) if size < 0 => {
            return Err(Failure::location(51_024, "batchSize must not be negative"));
        }
        _ => usize::MAX,
    };
    let mut cursor = call.server.cursors.take(id)?;
    let mine = match (call.field("collection"), cursor.namespace.split_once('.')) {
        (Some(Value::Text(name)), Some((database, collection))) => {
            name == collection && call.database == database
        }
        _ => false,
    };
    if !mine {
        let namespace = cursor.namespace.clone();
        call.server.cursors.put(id, cursor, call.server.world.now_ms());
        let message =
            format!("Requested getMore on another namespace than the cursor's, {namespace}");
        return Err(Failure::new(Code::UNAUTHORIZED, message));
    }
    if let Source::Stream(_) = cursor.source {
        return stream::get_more(call, id, cursor, size);
    }
    let mut batch = Batch::new(size);
    let result = call.read(|txn| {
        check_alive(txn, &cursor)?;
        fill(txn, &mut cursor.source, &mut batch)
    });
    let namespace = cursor.namespace.clone();
    match result {
        Ok(true) => {
            call.server.cursors.put(id, cursor, call.server.world.now_ms());
            Ok(cursor_answer(id, &namespace, "nextBatch", batch.documents))
        }
        Ok(false) => {
            call.server.cursors.kill(id);
            Ok(cursor_answer(0, &namespace, "nextBatch", batch.documents))
        }
        Err(failure) => {
            call.server.cursors.kill(id);
            Err(failure)
        }
    }
}

/// A scan must not go on in a collection that was dropped, or whose index was.
fn check_alive(txn: &mut dyn Txn, cursor: &Cursor) -> Result<(), Failure> {
    let Source::Scan(scan) = &cursor.source else { return Ok(()) };
    let was = scan.cursor.collection();
    let is = catalog::get(txn, &was.database, &was.name)?;
    let same = is.is_some_and(|is| {
        let names =
            |of: &Collection| of.indexes.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        is.uuid == was.uuid && names(was).iter().all(|it| names(&is).contains(it))
    });
    if same {
        return Ok(());
    }
    let message = "collection dropped or renamed between getMore calls";
    Err(Failure::new(Code::QUERY_PLAN_KILLED, message))
}

pub(crate) fn kill_cursors(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (mut killed, mut missing) = (Vec::new(), Vec::new());
    for id in call.list("cursors")? {
        let number = types::integer(id).unwrap_or(0);
        let list = if call.server.cursors.kill(number) { &mut killed } else { &mut missing };
        list.push(Value::I64(number));
    }
    Ok(doc! {
        "cursorsKilled" => Value::Array(killed),
        "cursorsNotFound" => Value::Array(missing),
        "cursorsAlive" => Value::Array(Vec::new()),
        "cursorsUnknown" => Value::Array(Vec::new()),
    })
}

pub(crate) fn count(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    call::check_options(call.command)?;
    let mut want = Want::new(&call.map("query")?)?;
    want.skip = positive(call, "skip")?.unwrap_or(0);
    want.limit = call.number_field("limit")?.map(i64::unsigned_abs).filter(|it| *it != 0);
    want.hint = call.field("hint").cloned();
    let (database, mode) = (call.database.clone(), call.mode());
    let count = call.read(|txn| {
        let Some(collection) = catalog::get(txn, &database, &name)? else { return Ok(0) };
        if want.filter.is_all() && want.hint.is_none() {
            let all = rows(txn, &collection, mode)?.saturating_sub(want.skip);
            return Ok(want.limit.map_or(all, |limit| all.min(limit)));
        }
        let plan = want.plan(&collection)?;
        let mut scan = find::Scan::new(&collection, &plan, want.clone(), mode);
        let mut count = 0;
        while scan.next(txn)?.is_some() {
            count += 1;
        }
        Ok(count)
    })?;
    Ok(doc! { "n" => number(count) })
}

/// How many documents a collection has: their keys are counted and their values not looked at.
pub(crate) fn rows(txn: &mut dyn Txn, collection: &Collection, read: Read) -> Result<u64, Failure> {
    let mut count = 0;
    for range in collection.prefixes().all() {
        let mut scan = KvScan::new(range);
        scan.read = read;
        txn.visit(&scan, &mut |_, _| {
            count += 1;
            Flow::Go
        })?;
    }
    Ok(count)
}

/// A count as clients expect it: as narrow as it fits.
pub(crate) fn number(count: u64) -> Value {
    i32::try_from(count).map_or(Value::I64(count as i64), Value::I32)
}

pub(crate) fn distinct(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    call::check_options(call.command)?;
    let Some(Value::Text(key)) = call.field("key") else {
        return Err(Failure::wrong_type("distinct.key", "string"));
    };
    let want = Want::new(&call.map("query")?)?;
    let (database, mode) = (call.database.clone(), call.mode());
    let mut values: Vec<Value> = Vec::new();
    call.read(|txn| {
        let Some(collection) = catalog::get(txn, &database, &name)? else { return Ok(()) };
        let plan = want.plan(&collection)?;
        let mut cursor = StoreCursor::new(&collection, &plan, mode);
        while let Some(document) = cursor.next(txn)? {
            if !want.passes(&document)? {
                continue;
            }
            path::visit(&document, key, &mut |value| {
                match value {
                    Some(Value::Array(elements)) => values.extend(elements.iter().cloned()),
                    Some(value) => values.push(value.clone()),
                    None => {}
                }
                false
            });
            if 100_000 < values.len() {
                squeeze(&mut values);
            }
        }
        Ok(())
    })?;
    squeeze(&mut values);
    Ok(doc! { "values" => Value::Array(values) })
}

fn squeeze(values: &mut Vec<Value>) {
    values.sort_by(order::compare);
    values.dedup_by(|a, b| order::equal(a, b));
}

/// Reads other collections for a pipeline, in the transaction of the command.
struct Reader<'a> {
    txn: &'a mut dyn Txn,
    database: &'a str,
    read: Read,
    random: u64,
}

impl Host for Reader<'_> {
    fn find(&mut self, collection: &str, filter: &Match) -> Result<Vec<Value>, LangError> {
        let lang = |failure: Failure| LangError::new(failure.code, failure.message);
        let found = catalog::get(self.txn, self.database, collection);
        let Some(collection) = found.map_err(|error| lang(error.into()))? else {
            return Ok(Vec::new());
        };
        let mut want = Want::new(&Value::Map(Vec::new())).map_err(lang)?;
        want.filter = filter.clone();
        find::all(self.txn, &collection, want, self.read).map_err(lang)
    }

    fn random(&mut self) -> u64 {
        // A step of a generator whose start came from the world.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random >> 16
    }
}

pub(crate) fn aggregate(call: &mut Call<'_>) -> Result<Value, Failure> {
    call::check_options(call.command)?;
    let stages = call.list("pipeline")?;
    let first = match call.map("cursor")? {
        cursor if field(&cursor, "batchSize").is_some() => {
            let size = field(&cursor, "batchSize").and_then(types::integer).unwrap_or(101);
            size.clamp(0, BATCH_MAX) as usize
        }
        _ => FIRST_BATCH,
    };
    let name = match call.field("aggregate") {
        Some(Value::Text(name)) => name.clone(),
        Some(_) => "$cmd.aggregate".into(),
        None => return Err(Failure::wrong_type("aggregate.aggregate", "string")),
    };
    let namespace = call.namespace(&name);
    let documents = match special(call, &name, stages)? {
        Some((documents, used)) => through(call, documents, &stages[used..])?,
        None => run(call, &name, stages)?,
    };
    let mut source = Source::Ready(documents.into());
    let mut batch = Batch::new(first);
    let more = call.read(|txn| fill(txn, &mut source, &mut batch))?;
    answer(call, &namespace, more.then_some(source), batch, "firstBatch")
}

/// Stages that tell about the server rather than read documents; how many stages were used up.
fn special(
    call: &mut Call<'_>,
    name: &str,
    stages: &[Value],
) -> Result<Option<(Vec<Value>, usize)>, Failure> {
    let Some(Value::Map(fields)) = stages.first() else { return Ok(None) };
    let Some((stage, spec)) = fields.first() else { return Ok(None) };
    let documents = match stage.as_str() {
        "$collStats" => vec![crate::admin::stats_stage(call, name, spec)?],
        "$indexStats" => crate::indexes::stats(call, name)?,
        "$currentOp" | "$listLocalSessions" | "$listSessions" => Vec::new(),
        "$documents" => match spec {
            Value::Array(list) => list.clone(),
            _ => return Err(Failure::bad("$documents takes an array")),
        },
        _ => return Ok(None),
    };
    Ok(Some((documents, 1)))
}

/// Runs stages on documents that are here already.
fn through(
    call: &mut Call<'_>,
    documents: Vec<Value>,
    stages: &[Value],
) -> Result<Vec<Value>, Failure> {
    let pipeline = Pipeline::parse(stages)?;
    let (variables, now_ms) = (call::variables(call.command)?, call.server.world.now_ms());
    let (database, read, random) = (call.database.clone(), call.mode(), call.server.random_i64());
    call.read(|txn| {
        let nothing = Value::Map(Vec::new());
        let mut context = Context::new(&nothing);
        context.now_ms = now_ms;
        let context = context.with(variables.clone());
        let mut host = Reader { txn, database: &database, read, random: random as u64 };
        let mut run = Run::new(&pipeline.stages, &context);
        for document in documents {
            if !run.push(&mut host, document)? {
                break;
            }
        }
        Ok(run.finish(&mut host)?)
    })
}

fn run(call: &mut Call<'_>, name: &str, stages: &[Value]) -> Result<Vec<Value>, Failure> {
    let pipeline = Pipeline::parse(stages)?;
    let (variables, now_ms) = (call::variables(call.command)?, call.server.world.now_ms());
    let (database, read, random) = (call.database.clone(), call.mode(), call.server.random_i64());
    let hint = call.field("hint").cloned();
    let documents = call.read(|txn| {
        let nothing = Value::Map(Vec::new());
        let mut context = Context::new(&nothing);
        context.now_ms = now_ms;
        let context = context.with(variables.clone());
        let collection = catalog::get(txn, &database, name)?;
        let (want, lead, plan) = lead(&pipeline, collection.as_ref(), &variables, now_ms, hint)?;
        let mut run = Run::new(&pipeline.stages[lead..], &context);
        let mut cursor = collection.as_ref().map(|it| StoreCursor::new(it, &plan, read));
        while let Some(document) = match &mut cursor {
            Some(cursor) => cursor.next(txn)?,
            None => None,
        } {
            if !want.passes(&document)? {
                continue;
            }
            let mut host = Reader { txn, database: &database, read, random: random as u64 };
            if !run.push(&mut host, document)? {
                break;
            }
        }
        let mut host = Reader { txn, database: &database, read, random: random as u64 };
        Ok(run.finish(&mut host)?)
    })?;
    match pipeline.target() {
        Some((stage, spec)) => {
            write::store_result(call, stage, spec, documents)?;
            Ok(Vec::new())
        }
        None => Ok(documents),
    }
}

/// What the store does for the first stages, and how many they are.
fn lead(
    pipeline: &Pipeline,
    collection: Option<&Collection>,
    variables: &[(String, Value)],
    now_ms: i64,
    hint: Option<Value>,
) -> Result<(Want, usize, Plan), Failure> {
    let (filter, mut lead) = pipeline.lead();
    let mut want = Want::new(&Value::Map(Vec::new()))?;
    want.filter = filter;
    want.variables = variables.to_vec();
    want.now_ms = now_ms;
    want.hint = hint;
    let Some(collection) = collection else { return Ok((want, lead, Plan::all())) };
    if let Some(Stage::Sort(sort, _)) = pipeline.stages.get(lead) {
        want.sort = sort.clone();
    }
    let plan = want.plan(collection)?;
    if plan.sorted {
        lead += 1;
    }
    Ok((want, lead, plan))
}

pub(crate) fn explain(call: &mut Call<'_>) -> Result<Value, Failure> {
    let inner = call.map("explain")?;
    let Value::Map(fields) = &inner else { return Ok(doc! {}) };
    let Some((kind, Value::Text(name))) = fields.first() else {
        return Err(Failure::bad("explain needs a command on a collection"));
    };
    let mut want = explained(kind, &inner)?;
    want.now_ms = call.server.world.now_ms();
    let verbosity = match call.field("verbosity") {
        Some(Value::Text(word)) => word.clone(),
        _ => "allPlansExecution".into(),
    };
    let (database, mode) = (call.database.clone(), call.mode());
    let namespace = call.namespace(name);
    call.read(|txn| {
        let collection = catalog::get(txn, &database, name)?;
        let empty = Collection::new(&database, name, name, [0; 16]);
        let collection = collection.as_ref().unwrap_or(&empty);
        let plan = want.plan(collection)?;
        let mut fields = vec![
            ("explainVersion".to_string(), Value::Text("1".into())),
            (
                "queryPlanner".into(),
                doc! {
                    "namespace" => Value::Text(namespace.clone()),
                    "indexFilterSet" => Value::Bool(false),
                    "winningPlan" => find::explain_plan(collection, &plan, &want),
                    "rejectedPlans" => Value::Array(Vec::new()),
                },
            ),
        ];
        if verbosity != "queryPlanner" {
            let mut scan = find::Scan::new(collection, &plan, want.clone(), mode);
            let mut count = 0;
            while scan.next(txn)?.is_some() {
                count += 1;
            }
            fields.push((
                "executionStats".into(),
                doc! {
                    "executionSuccess" => Value::Bool(true),
                    "nReturned" => number(count),
                    "executionTimeMillis" => Value::I32(0),
                    "totalKeysExamined" => number(scan.cursor.keys_examined),
                    "totalDocsExamined" => number(scan.cursor.documents_examined),
                    "executionStages" => find::explain_plan(collection, &plan, &want),
                },
            ));
        }
        fields.push(("serverInfo".into(), doc! { "version" => Value::Text("6.0.5".into()) }));
        Ok(Value::Map(fields))
    })
}

fn explained(kind: &str, inner: &Value) -> Result<Want, Failure> {
    let empty = Value::Map(Vec::new());
    let of = |name: &str| field(inner, name).unwrap_or(&empty);
    let statement = |list: &str| match field(inner, list) {
        Some(Value::Array(list)) => list.first().and_then(|it| field(it, "q")).cloned(),
        _ => None,
    };
    match kind {
        "find" => {
            let mut want = Want::new(of("filter"))?
                .projected(field(inner, "projection"))?
                .sorted(field(inner, "sort"))?;
            want.limit = field(inner, "limit").and_then(types::integer).map(i64::unsigned_abs);
            want.limit = want.limit.filter(|it| *it != 0);
            want.skip = field(inner, "skip").and_then(types::integer).unwrap_or(0).unsigned_abs();
            want.hint = want.hint.or_else(|| field(inner, "hint").cloned());
            Ok(want)
        }
        "count" | "distinct" | "findAndModify" => Want::new(of("query")),
        "update" => Want::new(&statement("updates").unwrap_or(empty)),
        "delete" => Want::new(&statement("deletes").unwrap_or(empty)),
        "aggregate" => {
            let stages = match field(inner, "pipeline") {
                Some(Value::Array(stages)) => stages.as_slice(),
                _ => &[],
            };
            let pipeline = Pipeline::parse(stages)?;
            let (filter, lead) = pipeline.lead();
            let mut want = Want::new(&empty)?;
            want.filter = filter;
            if let Some(Stage::Sort(sort, _)) = pipeline.stages.get(lead) {
                want.sort = sort.clone();
            }
            Ok(want)
        }
        other => {
            let message = format!("Explain failed due to unknown command: {other}");
            Err(Failure::new(Code::COMMAND_NOT_FOUND, message))
        }
    }
}
