//! Updates: statements of the update command, and findAndModify.

use kumiko_base::Value;
use kumiko_document::path::field;
use kumiko_document::{Collection, Operation, Work, catalog, documents};
use kumiko_kv::Read;
use kumiko_lang::update::{array_filters, seed};
use kumiko_lang::{Code, Match, Situation, Update, types};

use crate::call::{self, Call};
use crate::find::{Want, map_field};
use crate::read::number;
use crate::write::{self, CHUNK_DOCUMENTS, Rules, candidates, first, is_fatal, statement_number};
use crate::{Failure, repeat};

/// One update, parsed.
struct Statement {
    want: Want,
    update: Update,
    filters: Vec<(String, Match)>,
    upsert: bool,
    rules: Rules,
    /// For a new document that has none.
    fresh_id: Value,
}

/// What an update did.
#[derive(Default)]
struct Outcome {
    matched: u64,
    modified: u64,
    upserted: Option<Value>,
}

impl Outcome {
    fn to_value(&self) -> Value {
        doc! {
            "m" => number(self.matched),
            "c" => number(self.modified),
            "u" => self.upserted.clone().map_or(Value::Array(Vec::new()), |id| Value::Array(vec![id])),
        }
    }

    fn from_value(value: &Value) -> Outcome {
        let count = |name: &str| field(value, name).and_then(types::integer).unwrap_or(0) as u64;
        let upserted = match field(value, "u") {
            Some(Value::Array(list)) => list.first().cloned(),
            _ => None,
        };
        Outcome { matched: count("m"), modified: count("c"), upserted }
    }
}

impl Statement {
    fn situation(&self, insert: bool, document: &Value, now_ms: i64) -> Situation<'_> {
        Situation {
            insert,
            found: self.want.filter.position(document),
            filters: &self.filters,
            now_ms,
            variables: &self.want.variables,
        }
    }

    /// Changes a document that was just read. Says what it is now, and whether that differs.
    fn change(
        &self,
        work: &mut Work<'_>,
        collection: &mut Collection,
        old: &Value,
    ) -> Result<(Value, bool), Failure> {
        let new = self.update.apply(old, &self.situation(false, old, work.now_ms))?;
        if new == *old {
            return Ok((new, false));
        }
        self.rules.check(collection, &new)?;
        let operation = match self.update {
            Update::Replace(_) => Operation::Replace,
            _ => Operation::Update,
        };
        documents::replace(work, collection, old, &new, operation)
            .map_err(|error| Failure::from(error).in_collection(&collection.namespace()))?;
        Ok((new, true))
    }

    /// Inserts what the filter and the update say.
    fn insert(&self, work: &mut Work<'_>, collection: &mut Collection) -> Result<Value, Failure> {
        let start = match &self.update {
            // A replacement takes nothing from the filter but the id.
            Update::Replace(_) => match field(&seed(&self.want.filter)?, "_id") {
                Some(id) => doc! { "_id" => id.clone() },
                None => doc! {},
            },
            _ => seed(&self.want.filter)?,
        };
        let new = self.update.apply(&start, &self.situation(true, &start, work.now_ms))?;
        let Value::Map(fields) = &new else {
            return Err(Failure::bad("an upsert needs a document"));
        };
        let id = field(&new, "_id").cloned().unwrap_or_else(|| self.fresh_id.clone());
        let rest = fields.iter().filter(|(name, _)| name != "_id").cloned();
        let new = Value::Map(std::iter::once(("_id".to_string(), id)).chain(rest).collect());
        self.rules.check(collection, &new)?;
        documents::insert(work, collection, &new)
            .map_err(|error| Failure::from(error).in_collection(&collection.namespace()))?;
        Ok(new)
    }
}

pub(crate) fn update(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let list = write::statements(call, "updates")?;
    let (mut matched, mut modified) = (0, 0);
    let (mut upserted, mut errors) = (Vec::new(), Vec::new());
    for (n, statement) in list.iter().enumerate() {
        match update_statement(call, &name, statement, n) {
            Ok(outcome) => {
                matched += outcome.matched + u64::from(outcome.upserted.is_some());
                modified += outcome.modified;
                upserted.extend(outcome.upserted.map(|id| {
                    doc! { "index" => Value::I32(n as i32), "_id" => id }
                }));
            }
            Err(failure) if is_fatal(call, &failure) => return Err(failure),
            Err(failure) => {
                errors.push(failure.to_write_error(n));
                if write::is_ordered(call) {
                    break;
                }
            }
        }
    }
    let mut fields =
        vec![("n".to_string(), number(matched)), ("nModified".into(), number(modified))];
    if !upserted.is_empty() {
        fields.push(("upserted".into(), Value::Array(upserted)));
    }
    Ok(write::answer(fields, errors))
}

fn parsed(
    call: &Call<'_>,
    of: &Value,
    filter: &Value,
    update: &Value,
) -> Result<Statement, Failure> {
    call::check_options(of)?;
    let mut want = Want::new(filter)?;
    want.hint = field(of, "hint").cloned();
    want.now_ms = call.server.world.now_ms();
    want.variables = call::variables(call.command)?;
    if let Some(Value::Map(constants)) = field(of, "c") {
        want.variables.extend(constants.iter().cloned());
    }
    let filters = match field(of, "arrayFilters") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(filters)) => array_filters(filters)?,
        Some(_) => return Err(Failure::wrong_type("arrayFilters", "array")),
    };
    let update = Update::parse(update)?;
    if let Update::Replace(Value::Map(fields)) = &update
        && let Some((name, _)) = fields.iter().find(|(name, _)| name.starts_with('$'))
    {
        let message = format!("The dollar ($) prefixed field '{name}' is not allowed");
        return Err(Failure::new(Code::DOLLAR_PREFIXED, message));
    }
    Ok(Statement {
        want,
        update,
        filters,
        upsert: types::truth(field(of, "upsert")),
        rules: Rules::of(call),
        fresh_id: call.server.object_id(),
    })
}

fn update_statement(
    call: &mut Call<'_>,
    name: &str,
    statement: &Value,
    n: usize,
) -> Result<Outcome, Failure> {
    let Some(update) = field(statement, "u") else {
        let message = "BSON field 'update.updates.u' is missing but a required field";
        return Err(Failure::new(Code::UNKNOWN_FIELD, message));
    };
    let many = types::truth(field(statement, "multi"));
    let parsed = parsed(call, statement, map_field(statement, "q")?, update)?;
    if many && parsed.update.is_replacement() {
        let message = "multi update is not supported for replacement-style update";
        return Err(Failure::new(Code::FAILED_TO_PARSE, message));
    }
    if many {
        let done = update_many(call, name, &parsed)?;
        if 0 < done.matched || !parsed.upsert {
            return Ok(done);
        }
    }
    update_one(call, name, &parsed, statement_number(call, n))
}

fn update_one(
    call: &mut Call<'_>,
    name: &str,
    statement: &Statement,
    number: i64,
) -> Result<Outcome, Failure> {
    let repeatable = call.repeatable();
    let (database, uuid) = (call.database.clone(), call.server.uuid());
    call.write(|work| {
        if let Some((session, txn)) = &repeatable
            && let Some(done) = repeat::find(work.txn, session, *txn, number)?
        {
            return Ok(Outcome::from_value(&done));
        }
        let Some(mut collection) = target(work, &database, name, uuid, statement.upsert)? else {
            return Ok(Outcome::default());
        };
        let outcome = match first(work, &collection, &statement.want)? {
            Some(old) => {
                let (_, changed) = statement.change(work, &mut collection, &old)?;
                Outcome { matched: 1, modified: u64::from(changed), upserted: None }
            }
            None if statement.upsert => {
                let new = statement.insert(work, &mut collection)?;
                Outcome { upserted: field(&new, "_id").cloned(), ..Outcome::default() }
            }
            None => Outcome::default(),
        };
        if let Some((session, txn)) = &repeatable {
            let (now_ms, done) = (work.now_ms, outcome.to_value());
            repeat::keep(work.txn, session, *txn, (number, number), &done, now_ms)?;
        }
        Ok(outcome)
    })
}

/// The collection; made only if a document may come into it.
fn target(
    work: &mut Work<'_>,
    database: &str,
    name: &str,
    uuid: [u8; 16],
    make: bool,
) -> Result<Option<Collection>, Failure> {
    if make {
        return write::open(work, database, name, uuid).map(Some);
    }
    Ok(catalog::get(work.txn, database, name)?)
}

/// All that pass, in chunks: each chunk at once, each document looked at again.
fn update_many(call: &mut Call<'_>, name: &str, statement: &Statement) -> Result<Outcome, Failure> {
    let ids = candidates(call, name, &statement.want)?;
    let database = call.database.clone();
    let mut total = Outcome::default();
    for chunk in ids.chunks(CHUNK_DOCUMENTS) {
        let (matched, modified) = call.write(|work| {
            let Some(mut collection) = catalog::get(work.txn, &database, name)? else {
                return Ok((0, 0));
            };
            let (mut matched, mut modified) = (0, 0);
            for id in chunk {
                let found = documents::get(work.txn, &collection, id, Read::Serializable)?;
                let Some(old) = found else { continue };
                if statement.want.passes(&old)? {
                    matched += 1;
                    modified += u64::from(statement.change(work, &mut collection, &old)?.1);
                }
            }
            Ok((matched, modified))
        })?;
        total.matched += matched;
        total.modified += modified;
    }
    Ok(total)
}

pub(crate) fn find_and_modify(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let filter = call.map("query")?;
    let remove = call.truth("remove");
    let change = call.field("update");
    if remove == change.is_some() {
        let message = "Either an update or remove=true must be specified";
        return Err(Failure::new(Code::FAILED_TO_PARSE, message));
    }
    if remove && (call.truth("upsert") || call.truth("new")) {
        let message = "Cannot specify both upsert=true or new=true and remove=true";
        return Err(Failure::new(Code::FAILED_TO_PARSE, message));
    }
    let nothing = Value::Map(Vec::new());
    let mut statement = parsed(call, call.command, &filter, change.unwrap_or(&nothing))?;
    let fields = call.field("fields").or_else(|| call.field("projection"));
    statement.want = statement.want.projected(fields)?.sorted(call.field("sort"))?;
    let wants_new = call.truth("new");
    let number = statement_number(call, 0);
    let repeatable = call.repeatable();
    let (database, uuid) = (call.database.clone(), call.server.uuid());
    call.write(|work| {
        if let Some((session, txn)) = &repeatable
            && let Some(done) = repeat::find(work.txn, session, *txn, number)?
        {
            return Ok(done);
        }
        let collection = target(work, &database, &name, uuid, statement.upsert)?;
        let done = match collection {
            None => modified(None, 0, &Outcome::default(), remove),
            Some(mut it) => modify_one(work, &mut it, &statement, remove, wants_new)?,
        };
        if let Some((session, txn)) = &repeatable {
            let now_ms = work.now_ms;
            repeat::keep(work.txn, session, *txn, (number, number), &done, now_ms)?;
        }
        Ok(done)
    })
}

fn modify_one(
    work: &mut Work<'_>,
    collection: &mut Collection,
    statement: &Statement,
    remove: bool,
    wants_new: bool,
) -> Result<Value, Failure> {
    let found = first(work, collection, &statement.want)?;
    match found {
        Some(old) if remove => {
            documents::remove(work, collection, &old)?;
            let shown = statement.want.show(old)?;
            Ok(modified(Some(shown), 1, &Outcome::default(), true))
        }
        Some(old) => {
            let (new, _) = statement.change(work, collection, &old)?;
            let shown = statement.want.show(if wants_new { new } else { old })?;
            Ok(modified(Some(shown), 1, &Outcome { matched: 1, ..Outcome::default() }, false))
        }
        None if statement.upsert => {
            let new = statement.insert(work, collection)?;
            let upserted = field(&new, "_id").cloned();
            let shown = if wants_new { Some(statement.want.show(new)?) } else { None };
            Ok(modified(shown, 1, &Outcome { upserted, ..Outcome::default() }, false))
        }
        None => Ok(modified(None, 0, &Outcome::default(), remove)),
    }
}

fn modified(shown: Option<Value>, count: i32, outcome: &Outcome, remove: bool) -> Value {
    let mut last = vec![("n".to_string(), Value::I32(count))];
    if !remove {
        last.push(("updatedExisting".into(), Value::Bool(0 < outcome.matched)));
        last.extend(outcome.upserted.clone().map(|id| ("upserted".to_string(), id)));
    }
    doc! { "lastErrorObject" => Value::Map(last), "value" => shown.unwrap_or(Value::Null) }
}
