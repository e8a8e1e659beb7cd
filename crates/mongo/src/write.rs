//! Commands that write: insert and delete, and what the others share.

use kumiko_base::Value;
use kumiko_document::path::field;
use kumiko_document::{Collection, Cursor, Work, catalog, documents};
use kumiko_kv::Read;
use kumiko_lang::{Code, Match, types};
use kumiko_wire::mongo::{DOCUMENT_BYTES_MAX, bson};

use crate::call::{self, Call};
use crate::find::{Want, map_field};
use crate::{Failure, repeat};

/// How many statements one command may have.
const STATEMENTS_MAX: usize = 100_000;
/// How many documents go into one transaction of the store.
pub(crate) const CHUNK_DOCUMENTS: usize = 500;
/// About how many bytes of documents go into one transaction of the store.
const CHUNK_BYTES: usize = 1_000_000;

/// The statements of a write command.
pub(crate) fn statements<'a>(call: &Call<'a>, name: &str) -> Result<&'a [Value], Failure> {
    let list = call.list(name)?;
    if list.is_empty() || STATEMENTS_MAX < list.len() {
        let message = format!(
            "Write batch sizes must be between 1 and {STATEMENTS_MAX}. Got {} operations.",
            list.len()
        );
        return Err(Failure::new(Code::INVALID_LENGTH, message));
    }
    Ok(list)
}

/// The number of a statement: the client's own, or its place.
pub(crate) fn statement_number(call: &Call<'_>, place: usize) -> i64 {
    let own = match call.field("stmtIds") {
        Some(Value::Array(ids)) => ids.get(place).and_then(types::integer),
        _ => None,
    };
    let first = call.field("stmtId").and_then(types::integer).unwrap_or(0);
    own.unwrap_or(first + place as i64)
}

/// Whether statements after a failed one are left out.
pub(crate) fn is_ordered(call: &Call<'_>) -> bool {
    call.field("ordered").is_none_or(|it| types::truth(Some(it)))
}

/// The answer of a write, with the statements that failed.
pub(crate) fn answer(mut fields: Vec<(String, Value)>, errors: Vec<Value>) -> Value {
    if !errors.is_empty() {
        fields.push(("writeErrors".into(), Value::Array(errors)));
    }
    Value::Map(fields)
}

/// Whether a failure ends the whole command rather than one statement.
pub(crate) fn is_fatal(call: &Call<'_>, failure: &Failure) -> bool {
    use kumiko_base::Kind;
    call.in_transaction
        || matches!(
            failure.kind,
            Kind::Conflict | Kind::Unknown | Kind::Unavailable | Kind::Full | Kind::Corrupt
        )
        || failure.code == Code::TRANSACTION_TOO_OLD
}

/// The document as it is stored: with an id, which comes first.
pub(crate) fn with_id(call: &Call<'_>, document: &Value) -> Result<Value, Failure> {
    let Value::Map(fields) = document else {
        return Err(Failure::wrong_type("documents", "object"));
    };
    let size = bson::size(document);
    if DOCUMENT_BYTES_MAX < size {
        let message = format!(
            "object to insert too large. size in bytes: {size}, max size: {DOCUMENT_BYTES_MAX}"
        );
        return Err(Failure::bad(message));
    }
    let id = match field(document, "_id") {
        None => call.server.object_id(),
        Some(Value::Array(_)) => {
            let message = "The '_id' value cannot be of type array";
            return Err(Failure::new(Code::INVALID_ID, message));
        }
        Some(Value::Regex(..)) => {
            let message = "The '_id' value cannot be of type regex";
            return Err(Failure::new(Code::INVALID_ID, message));
        }
        Some(id) => id.clone(),
    };
    if fields.first().is_some_and(|(name, _)| name == "_id") {
        return Ok(document.clone());
    }
    let rest = fields.iter().filter(|(name, _)| name != "_id").cloned();
    Ok(Value::Map(std::iter::once(("_id".to_string(), id)).chain(rest).collect()))
}

/// The collection to write to, made if need be.
pub(crate) fn open(
    work: &mut Work<'_>,
    database: &str,
    name: &str,
    uuid: [u8; 16],
) -> Result<Collection, Failure> {
    catalog::open(work, database, name, uuid).map_err(|error| match error {
        kumiko_document::Error::Invalid(why) => Failure::new(Code::INVALID_NAMESPACE, why),
        other => other.into(),
    })
}

pub(crate) fn insert(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let list = statements(call, "documents")?;
    let ordered = is_ordered(call);
    let (mut done, mut errors) = (0_i64, Vec::new());
    let mut at = 0;
    while at < list.len() {
        let end = chunk_end(list, at, if ordered { CHUNK_DOCUMENTS } else { 100 });
        let (count, failed) = insert_chunk(call, &name, list, at, end)?;
        done += count as i64;
        at += count;
        if let Some(failure) = failed {
            errors.push(failure.to_write_error(at));
            at += 1;
            if ordered {
                break;
            }
        }
    }
    Ok(answer(vec![("n".into(), Value::I32(done as i32))], errors))
}

fn chunk_end(list: &[Value], at: usize, count_max: usize) -> usize {
    let mut bytes = 0;
    let fits = list[at..].iter().take(count_max).take_while(|it| {
        let fits = bytes < CHUNK_BYTES;
        bytes += bson::size(it);
        fits
    });
    at + fits.count().max(1)
}

/// Inserts statements `at..end` in one transaction, as far as they go. Says how many were done, and
/// why the next one was not.
fn insert_chunk(
    call: &mut Call<'_>,
    name: &str,
    list: &[Value],
    at: usize,
    end: usize,
) -> Result<(usize, Option<Failure>), Failure> {
    let (namespace, database, uuid) =
        (call.namespace(name), call.database.clone(), call.server.uuid());
    let mut end = end;
    let mut failed: Option<Failure> = None;
    let fresh: Vec<Result<Value, Failure>> =
        list[at..end].iter().map(|it| with_id(call, it)).collect();
    loop {
        let repeatable = call.repeatable();
        let numbers = (statement_number(call, at), statement_number(call, end.max(at + 1) - 1));
        let mut bad: Option<usize> = None;
        let rules = Rules::of(call);
        let result = call.write(|work| {
            bad = None;
            if let Some((session, number)) = &repeatable
                && repeat::find(work.txn, session, *number, numbers.0)?.is_some()
            {
                return Ok(());
            }
            let mut collection = open(work, &database, name, uuid)?;
            for (n, document) in fresh[..end - at].iter().enumerate() {
                let one = document.clone().and_then(|document| {
                    rules.check(&collection, &document)?;
                    Ok(documents::insert(work, &mut collection, &document)?)
                });
                one.map_err(|failure| {
                    bad = Some(n);
                    failure.in_collection(&namespace)
                })?;
            }
            if let Some((session, number)) = &repeatable
                && at < end
            {
                let now_ms = work.now_ms;
                repeat::keep(work.txn, session, *number, numbers, &Value::Null, now_ms)?;
            }
            Ok(())
        });
        match (result, bad) {
            (Ok(()), _) => return Ok((end - at, failed)),
            (Err(failure), Some(n)) if !is_fatal(call, &failure) => {
                failed = Some(failure);
                end = at + n;
                if n == 0 {
                    return Ok((0, failed));
                }
            }
            (Err(failure), _) => return Err(failure),
        }
    }
}

/// What a document is checked against, apart from the call that is busy with its transaction.
pub(crate) struct Rules {
    bypass: bool,
}

impl Rules {
    pub(crate) fn of(call: &Call<'_>) -> Rules {
        Rules { bypass: call.truth("bypassDocumentValidation") }
    }

    /// Refuses a document that its collection's validator does not let through.
    pub(crate) fn check(&self, collection: &Collection, document: &Value) -> Result<(), Failure> {
        let option = |name: &str| field(&collection.options, name);
        let is =
            |name: &str, word: &str| matches!(option(name), Some(Value::Text(it)) if it == word);
        let Some(validator) = option("validator") else { return Ok(()) };
        let off = self.bypass || is("validationLevel", "off") || is("validationAction", "warn");
        if off || Match::parse(validator)?.matches(document)? {
            return Ok(());
        }
        let mut failure = Failure::new(Code::DOCUMENT_VALIDATION, "Document failed validation");
        let id = field(document, "_id").cloned().unwrap_or(Value::Null);
        failure.extra.push((
            "errInfo".into(),
            doc! {
                "failingDocumentId" => id,
                "details" => doc! { "operatorName" => Value::Text("validator".into()) },
            },
        ));
        Err(failure)
    }
}

/// The first document that passes, read in the transaction.
pub(crate) fn first(
    work: &mut Work<'_>,
    collection: &Collection,
    want: &Want,
) -> Result<Option<Value>, Failure> {
    let plan = want.plan(collection)?;
    if want.sort.paths.is_empty() || plan.sorted {
        let mut cursor = Cursor::new(collection, &plan, Read::Serializable);
        while let Some(document) = cursor.next(work.txn)? {
            if want.passes(&document)? {
                return Ok(Some(document));
            }
        }
        return Ok(None);
    }
    let mut one = want.clone();
    one.limit = Some(1);
    one.projection = None;
    let found = crate::find::all(work.txn, collection, one, Read::Serializable)?;
    Ok(found.into_iter().next())
}

/// The ids of all documents that pass, found without conflict: each is looked at again later.
pub(crate) fn candidates(
    call: &mut Call<'_>,
    name: &str,
    want: &Want,
) -> Result<Vec<Value>, Failure> {
    let (database, mode) = (call.database.clone(), call.mode());
    call.read(|txn| {
        let Some(collection) = catalog::get(txn, &database, name)? else { return Ok(Vec::new()) };
        let plan = want.plan(&collection)?;
        let mut cursor = Cursor::new(&collection, &plan, mode);
        let mut ids = Vec::new();
        while let Some(document) = cursor.next(txn)? {
            if want.passes(&document)? {
                ids.push(documents::id(&document)?.clone());
            }
        }
        Ok(ids)
    })
}

pub(crate) fn delete(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let list = statements(call, "deletes")?;
    let (mut done, mut errors) = (0_u64, Vec::new());
    for (n, statement) in list.iter().enumerate() {
        match delete_statement(call, &name, statement, n) {
            Ok(count) => done += count,
            Err(failure) if is_fatal(call, &failure) => return Err(failure),
            Err(failure) => {
                errors.push(failure.to_write_error(n));
                if is_ordered(call) {
                    break;
                }
            }
        }
    }
    Ok(answer(vec![("n".into(), crate::read::number(done))], errors))
}

fn delete_statement(
    call: &mut Call<'_>,
    name: &str,
    statement: &Value,
    n: usize,
) -> Result<u64, Failure> {
    call::check_options(statement)?;
    let mut want = Want::new(map_field(statement, "q")?)?;
    want.hint = field(statement, "hint").cloned();
    want.variables = call::variables(call.command)?;
    want.now_ms = call.server.world.now_ms();
    let one = match field(statement, "limit").and_then(types::integer) {
        Some(0) => false,
        Some(1) => true,
        _ => {
            let message = "The limit field in delete objects must be 0 or 1";
            return Err(Failure::new(Code::FAILED_TO_PARSE, message));
        }
    };
    let database = call.database.clone();
    if one {
        let number = statement_number(call, n);
        let repeatable = call.repeatable();
        return call.write(|work| {
            if let Some((session, txn)) = &repeatable
                && let Some(done) = repeat::find(work.txn, session, *txn, number)?
            {
                return Ok(types::integer(&done).unwrap_or(0).unsigned_abs());
            }
            let Some(mut collection) = catalog::get(work.txn, &database, name)? else {
                return Ok(0);
            };
            let found = first(work, &collection, &want)?;
            if let Some(old) = &found {
                documents::remove(work, &mut collection, old)?;
            }
            let count = u64::from(found.is_some());
            if let Some((session, txn)) = &repeatable {
                let (now_ms, count) = (work.now_ms, Value::I32(count as i32));
                repeat::keep(work.txn, session, *txn, (number, number), &count, now_ms)?;
            }
            Ok(count)
        });
    }
    let ids = candidates(call, name, &want)?;
    let mut count = 0;
    for chunk in ids.chunks(CHUNK_DOCUMENTS) {
        count += call.write(|work| {
            let Some(mut collection) = catalog::get(work.txn, &database, name)? else {
                return Ok(0);
            };
            let mut count = 0;
            for id in chunk {
                let found = documents::get(work.txn, &collection, id, Read::Serializable)?;
                let Some(old) = found else { continue };
                if want.passes(&old)? {
                    documents::remove(work, &mut collection, &old)?;
                    count += 1;
                }
            }
            Ok(count)
        })?;
    }
    Ok(count)
}

/// Writes a pipeline's result: `$out` replaces a collection, `$merge` puts documents into one.
pub(crate) fn store_result(
    call: &mut Call<'_>,
    stage: &str,
    spec: &Value,
    result: Vec<Value>,
) -> Result<(), Failure> {
    if call.in_transaction {
        let message = format!("{stage} cannot be used in a transaction");
        return Err(Failure::new(Code::NOT_IN_TRANSACTION, message));
    }
    let into = if stage == "$merge" { field(spec, "into").unwrap_or(spec) } else { spec };
    let (database, name) = match into {
        Value::Text(name) => (call.database.clone(), name.clone()),
        _ => match (field(into, "db"), field(into, "coll")) {
            (Some(Value::Text(database)), Some(Value::Text(name))) => {
                (database.clone(), name.clone())
            }
            _ => return Err(Failure::bad(format!("{stage} needs the name of a collection"))),
        },
    };
    let uuid = call.server.uuid();
    let result: Vec<Value> = result.iter().map(|it| with_id(call, it)).collect::<Result<_, _>>()?;
    if stage == "$out" {
        call.write(|work| {
            let mut collection = open(work, &database, &name, uuid)?;
            catalog::truncate(work, &collection)?;
            for document in &result {
                documents::insert(work, &mut collection, document)?;
            }
            Ok(())
        })?;
        return Ok(());
    }
    let word = |name: &str, default: &str| match field(spec, name) {
        Some(Value::Text(word)) => word.clone(),
        _ => default.to_string(),
    };
    let (matched, missing) = (word("whenMatched", "merge"), word("whenNotMatched", "insert"));
    for chunk in result.chunks(CHUNK_DOCUMENTS) {
        call.write(|work| {
            let mut collection = open(work, &database, &name, uuid)?;
            for document in chunk {
                merge_one(work, &mut collection, document, &matched, &missing)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn merge_one(
    work: &mut Work<'_>,
    collection: &mut Collection,
    document: &Value,
    matched: &str,
    missing: &str,
) -> Result<(), Failure> {
    use kumiko_document::Operation;
    let id = documents::id(document)?;
    let old = documents::get(work.txn, collection, id, Read::Serializable)?;
    match (old, matched, missing) {
        (Some(old), "replace", _) => {
            Ok(documents::replace(work, collection, &old, document, Operation::Replace)?)
        }
        (Some(old), "merge", _) => {
            let (Value::Map(fields), Value::Map(more)) = (&old, document) else { return Ok(()) };
            let mut fields = fields.clone();
            for (name, value) in more {
                match fields.iter_mut().find(|(it, _)| it == name) {
                    Some((_, place)) => *place = value.clone(),
                    None => fields.push((name.clone(), value.clone())),
                }
            }
            let new = Value::Map(fields);
            Ok(documents::replace(work, collection, &old, &new, Operation::Update)?)
        }
        (Some(_), "keepExisting", _) | (None, _, "discard") => Ok(()),
        (None, _, "insert") => Ok(documents::insert(work, collection, document)?),
        (Some(_), "fail", _) => {
            Err(Failure::new(Code::DUPLICATE_KEY, "$merge met a document that is there already"))
        }
        (None, _, "fail") => {
            Err(Failure::location(13_113, "$merge could not find a matching document"))
        }
        _ => Err(Failure::new(
            Code::NOT_IMPLEMENTED,
            "$merge knows replace, merge, keepExisting, fail; insert, discard, fail",
        )),
    }
}
