//! Indexes: make, list, drop.

use kumiko_base::Value;
use kumiko_document::index::{self, Step};
use kumiko_document::path::field;
use kumiko_document::{Collection, Index, State, Work, catalog};
use kumiko_kv::{Range, Scan};
use kumiko_lang::{Code, Match, types};

use crate::call::{self, Call};
use crate::read::cursor_answer;
use crate::{Failure, write};

/// How many documents one step of a build takes in.
const BUILD_DOCUMENTS: usize = 200;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// `{a: 1, b: -1}`.
pub(crate) fn pattern(index: &Index) -> Value {
    let way = |down: bool| Value::I32(if down { -1 } else { 1 });
    Value::Map(index.paths.iter().map(|(path, down)| (path.clone(), way(*down))).collect())
}

/// An index as it is listed.
fn listed(index: &Index) -> Value {
    let mut fields = vec![
        ("v".to_string(), Value::I32(2)),
        ("key".into(), pattern(index)),
        ("name".into(), Value::Text(index.name.clone())),
    ];
    if let Value::Map(spec) = &index.spec {
        fields.extend(spec.iter().cloned());
    }
    Value::Map(fields)
}

fn primary() -> Value {
    doc! { "v" => Value::I32(2), "key" => doc! { "_id" => Value::I32(1) }, "name" => text("_id_") }
}

/// Options that change nothing in what an index holds.
const KNOWN: &[&str] = &[
    "key",
    "name",
    "v",
    "ns",
    "unique",
    "sparse",
    "expireAfterSeconds",
    "partialFilterExpression",
    "hidden",
    "background",
    "collation",
    "comment",
];

fn parse(spec: &Value) -> Result<Index, Failure> {
    call::check_options(spec)?;
    let refuse = |why: String| Err(Failure::new(Code::CANNOT_CREATE_INDEX, why));
    let (Some(Value::Map(keys)), Value::Map(fields)) = (field(spec, "key"), spec) else {
        let message = "The 'key' field is a required property of an index specification";
        return Err(Failure::new(Code::FAILED_TO_PARSE, message));
    };
    if let Some((name, _)) = fields.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
        let message = format!("The field '{name}' is not valid for an index specification");
        return Err(Failure::new(Code(197), message));
    }
    if keys.is_empty() {
        return refuse("Index keys cannot be an empty object".into());
    }
    let mut paths = Vec::new();
    for (path, way) in keys {
        let number = types::float(way).filter(|it| *it != 0.0 && !it.is_nan());
        let Some(number) = number.filter(|_| types::is_number(way)) else {
            let shown = kumiko_lang::json::show(way, kumiko_lang::json::Style::Relaxed);
            return refuse(format!("Index type {shown} of '{path}' is not offered by this server"));
        };
        if path.is_empty() || path.starts_with('$') || path.contains("$**") {
            return refuse(format!("Index key '{path}' is not a path"));
        }
        paths.push((path.as_str(), number < 0.0));
    }
    let name = match field(spec, "name") {
        Some(Value::Text(name)) if !name.is_empty() => name.clone(),
        Some(_) => return refuse("an index name cannot be empty".into()),
        None => {
            let part =
                |(path, down): &(&str, bool)| format!("{path}_{}", if *down { -1 } else { 1 });
            paths.iter().map(part).collect::<Vec<_>>().join("_")
        }
    };
    let mut index = Index::new(&name, &paths);
    index.unique = types::truth(field(spec, "unique"));
    index.sparse = types::truth(field(spec, "sparse"));
    index.hidden = types::truth(field(spec, "hidden"));
    if let Some(seconds) = field(spec, "expireAfterSeconds") {
        match types::integer(seconds) {
            Some(seconds @ 0..=2_147_483_647) if paths.len() == 1 => index.expire_s = Some(seconds),
            _ => {
                return refuse(
                    "TTL indexes are single-field indexes with a time from 0 to 2147483647 seconds"
                        .into(),
                );
            }
        }
    }
    if let Some(partial) = field(spec, "partialFilterExpression") {
        if index.sparse {
            return refuse("cannot mix 'partialFilterExpression' and 'sparse'".into());
        }
        let filter = Match::parse(partial)?.to_filter();
        if !filter.is_complete() || filter.to_value().is_err() {
            return refuse("unsupported expression in partial index".into());
        }
        index.partial = Some(filter);
    }
    let kept = ["unique", "sparse", "expireAfterSeconds", "partialFilterExpression", "hidden"];
    let said = fields.iter().filter(|(name, value)| {
        kept.contains(&name.as_str()) && (types::truth(Some(value)) || name == "expireAfterSeconds")
    });
    index.spec = Value::Map(said.cloned().collect());
    Ok(index)
}

/// Whether an index like this is there already.
fn is_there(collection: &Collection, wanted: &Index) -> Result<bool, Failure> {
    for index in &collection.indexes {
        let same_paths = index.paths == wanted.paths;
        let same_rest = index.unique == wanted.unique
            && index.sparse == wanted.sparse
            && index.partial == wanted.partial
            && index.expire_s == wanted.expire_s;
        if index.name == wanted.name {
            if same_paths && same_rest {
                return Ok(true);
            }
            let (code, what) = if same_paths {
                (Code::INDEX_OPTIONS_CONFLICT, "options")
            } else {
                (Code::INDEX_KEY_SPECS_CONFLICT, "keys")
            };
            let message = format!(
                "An existing index has the same name as the requested index but different {what}: {}",
                index.name
            );
            return Err(Failure::new(code, message));
        }
        if same_paths && index.partial == wanted.partial {
            let message = format!("Index already exists with a different name: {}", index.name);
            return Err(Failure::new(Code::INDEX_OPTIONS_CONFLICT, message));
        }
    }
    Ok(false)
}

pub(crate) fn create(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let specs = call.list("indexes")?;
    if specs.is_empty() {
        return Err(Failure::bad("Must specify at least one index to create"));
    }
    let wanted: Vec<Index> = specs.iter().map(parse).collect::<Result<_, _>>()?;
    let (database, uuid, namespace) =
        (call.database.clone(), call.server.uuid(), call.namespace(&name));
    let (before, made, building) = call.write(|work| {
        let made = catalog::get(work.txn, &database, &name)?.is_none();
        let mut collection = write::open(work, &database, &name, uuid)?;
        let before = collection.indexes.len();
        let mut building = Vec::new();
        for index in &wanted {
            let is_primary = matches!(index.paths.as_slice(), [(path, _)] if path == "_id");
            if is_primary || is_there(&collection, index)? {
                continue;
            }
            let state = index::create(work, &mut collection, index.clone())
                .map_err(|error| Failure::from(error).in_collection(&namespace))?;
            if state == State::Building {
                building.push(index.name.clone());
            }
        }
        Ok((before, made, building))
    })?;
    for index in &building {
        build(call, &name, index)?;
    }
    let after = before + wanted.len();
    let mut fields = vec![
        ("numIndexesBefore".to_string(), Value::I32(before as i32 + 1)),
        ("numIndexesAfter".into(), Value::I32(count(call, &name)? as i32 + 1)),
        ("createdCollectionAutomatically".into(), Value::Bool(made)),
    ];
    if field(&Value::Map(fields.clone()), "numIndexesAfter") == Some(&Value::I32(before as i32 + 1))
        && before < after
    {
        fields.push(("note".into(), text("all indexes already exist")));
    }
    Ok(Value::Map(fields))
}

fn count(call: &mut Call<'_>, name: &str) -> Result<usize, Failure> {
    let database = call.database.clone();
    call.read(|txn| Ok(catalog::get(txn, &database, name)?.map_or(0, |it| it.indexes.len())))
}

/// Builds an index in small steps, while others write. If values clash, it goes again.
fn build(call: &mut Call<'_>, name: &str, index: &str) -> Result<(), Failure> {
    let database = call.database.clone();
    let namespace = call.namespace(name);
    loop {
        let step = call.write(|work| {
            index::build_step(work, &database, name, index, BUILD_DOCUMENTS)
                .map_err(|error| Failure::from(error).in_collection(&namespace))
        });
        match step {
            Ok(Step::Done) => return Ok(()),
            Ok(Step::More { .. }) => {}
            Err(failure) => {
                call.write(|work| drop_one(work, &database, name, index))?;
                return Err(failure);
            }
        }
    }
}

fn drop_one(work: &mut Work<'_>, database: &str, name: &str, index: &str) -> Result<(), Failure> {
    let mut collection = catalog::load(work.txn, database, name)?;
    Ok(index::drop(work, &mut collection, index)?)
}

pub(crate) fn list(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let (database, namespace) = (call.database.clone(), call.namespace(&name));
    let indexes = call.read(|txn| {
        let Some(collection) = catalog::get(txn, &database, &name)? else {
            let message = format!("ns does not exist: {namespace}");
            return Err(Failure::new(Code::NAMESPACE_NOT_FOUND, message));
        };
        let ready = collection.indexes.iter().filter(|it| it.state == State::Ready);
        Ok(std::iter::once(primary()).chain(ready.map(listed)).collect::<Vec<_>>())
    })?;
    let namespace = format!("{}.{name}", call.database);
    Ok(cursor_answer(0, &namespace, "firstBatch", indexes))
}

pub(crate) fn drop(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let wanted: Vec<Value> = match call.field("index") {
        Some(Value::Array(list)) => list.clone(),
        Some(other) => vec![other.clone()],
        None => return Err(Failure::wrong_type("dropIndexes.index", "string")),
    };
    let (database, namespace) = (call.database.clone(), call.namespace(&name));
    let before = call.write(|work| {
        let Some(mut collection) = catalog::get(work.txn, &database, &name)? else {
            let message = format!("ns not found {namespace}");
            return Err(Failure::new(Code::NAMESPACE_NOT_FOUND, message));
        };
        let before = collection.indexes.len();
        for it in &wanted {
            for index in named(&collection, it)? {
                index::drop(work, &mut collection, &index)?;
            }
        }
        Ok(before)
    })?;
    Ok(doc! { "nIndexesWas" => Value::I32(before as i32 + 1) })
}

fn named(collection: &Collection, wanted: &Value) -> Result<Vec<String>, Failure> {
    let missing = |what: String| {
        Err(Failure::new(Code::INDEX_NOT_FOUND, format!("index not found with {what}")))
    };
    match wanted {
        Value::Text(name) if name == "*" => {
            Ok(collection.indexes.iter().map(|it| it.name.clone()).collect())
        }
        Value::Text(name) if name == "_id_" => {
            Err(Failure::new(Code::INVALID_OPTIONS, "cannot drop _id index"))
        }
        Value::Text(name) => match collection.index(name) {
            Some(index) => Ok(vec![index.name.clone()]),
            None => missing(format!("name [{name}]")),
        },
        Value::Map(keys) => {
            let same = |index: &&Index| {
                index.paths.len() == keys.len()
                    && index.paths.iter().zip(keys).all(|((path, down), (name, way))| {
                        path == name && *down == (types::float(way).unwrap_or(1.0) < 0.0)
                    })
            };
            match collection.indexes.iter().find(same) {
                Some(index) => Ok(vec![index.name.clone()]),
                None if matches!(keys.as_slice(), [(name, _)] if name == "_id") => {
                    Err(Failure::new(Code::INVALID_OPTIONS, "cannot drop _id index"))
                }
                None => missing("that key".into()),
            }
        }
        _ => Err(Failure::wrong_type("dropIndexes.index", "string")),
    }
}

/// `$indexStats`: how many entries each index has.
pub(crate) fn stats(call: &mut Call<'_>, name: &str) -> Result<Vec<Value>, Failure> {
    let database = call.database.clone();
    call.read(|txn| {
        let Some(collection) = catalog::get(txn, &database, name)? else { return Ok(Vec::new()) };
        let mut rows =
            vec![doc! { "name" => text("_id_"), "key" => doc! { "_id" => Value::I32(1) } }];
        for index in &collection.indexes {
            let mut entries = 0;
            let range = Range::prefix(&collection.index_prefix(&index.name));
            txn.visit(&Scan::new(range).snapshot(), &mut |_, _| {
                entries += 1;
                kumiko_kv::Flow::Go
            })?;
            rows.push(doc! {
                "name" => Value::Text(index.name.clone()),
                "key" => pattern(index),
                "entries" => crate::read::number(entries),
                "building" => Value::Bool(index.state == State::Building),
            });
        }
        Ok(rows)
    })
}
