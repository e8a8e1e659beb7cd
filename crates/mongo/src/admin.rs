//! Databases and collections: make, list, rename, drop, measure.

use kumiko_base::Value;
use kumiko_document::path::field;
use kumiko_document::{Collection, State, catalog, check, index};
use kumiko_kv::{Flow, Range, Read, Scan, Txn};
use kumiko_lang::{Code, Match, types};

use crate::call::{self, Call};
use crate::read::{cursor_answer, number, rows};
use crate::{Failure, indexes};

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// Options of a collection that we keep and follow.
const OPTIONS: &[&str] = &["validator", "validationLevel", "validationAction"];
/// Options that ask for something else than a plain collection.
const REFUSED: &[&str] = &["capped", "viewOn", "timeseries", "clusteredIndex", "encryptedFields"];

fn options(call: &Call<'_>) -> Result<Value, Failure> {
    call::check_options(call.command)?;
    let Value::Map(fields) = call.command else { return Ok(doc! {}) };
    if let Some(name) = REFUSED.iter().find(|it| types::truth(call.field(it))) {
        let message = format!("'{name}' is not offered by this server");
        return Err(Failure::new(Code::NOT_IMPLEMENTED, message));
    }
    let kept: Vec<(String, Value)> =
        fields.iter().filter(|(name, _)| OPTIONS.contains(&name.as_str())).cloned().collect();
    let kept = Value::Map(kept);
    if let Some(validator) = field(&kept, "validator") {
        Match::parse(validator)?;
    }
    Ok(kept)
}

pub(crate) fn create(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let options = options(call)?;
    let (database, uuid, namespace) =
        (call.database.clone(), call.server.uuid(), call.namespace(&name));
    call.write(|work| {
        let made = catalog::create(work, &database, &name, options.clone(), uuid);
        made.map_err(|error| match error {
            kumiko_document::Error::Exists(_) => {
                let message = format!("Collection {namespace} already exists.");
                Failure::new(Code::NAMESPACE_EXISTS, message)
            }
            kumiko_document::Error::Invalid(why) => Failure::new(Code::INVALID_NAMESPACE, why),
            other => other.into(),
        })
    })?;
    Ok(doc! {})
}

pub(crate) fn modify(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let changes = options(call)?;
    let change = call.field("index").cloned();
    let database = call.database.clone();
    call.write(|work| {
        let mut collection = catalog::load(work.txn, &database, &name)?;
        if let (Value::Map(kept), Value::Map(new)) = (&mut collection.options, &changes) {
            for (name, value) in new {
                kept.retain(|(it, _)| it != name);
                kept.push((name.clone(), value.clone()));
            }
        }
        if let Some(change) = &change {
            modify_index(&mut collection, change)?;
        }
        Ok(catalog::record(work, &collection)?)
    })?;
    Ok(doc! {})
}

fn modify_index(collection: &mut Collection, change: &Value) -> Result<(), Failure> {
    let by_name = |index: &kumiko_document::Index| {
        field(change, "name") == Some(&Value::Text(index.name.clone()))
            || field(change, "keyPattern") == Some(&indexes::pattern(index))
    };
    let Some(index) = collection.indexes.iter_mut().find(|it| by_name(it)) else {
        return Err(Failure::new(Code::INDEX_NOT_FOUND, "cannot find that index"));
    };
    let Value::Map(spec) = &mut index.spec else { return Ok(()) };
    if let Some(seconds) = field(change, "expireAfterSeconds") {
        index.expire_s = types::integer(seconds);
        spec.retain(|(name, _)| name != "expireAfterSeconds");
        spec.push(("expireAfterSeconds".into(), seconds.clone()));
    }
    if let Some(hidden) = field(change, "hidden") {
        index.hidden = types::truth(Some(hidden));
        spec.retain(|(name, _)| name != "hidden");
        if index.hidden {
            spec.push(("hidden".into(), Value::Bool(true)));
        }
    }
    Ok(())
}

pub(crate) fn drop(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let (database, namespace) = (call.database.clone(), call.namespace(&name));
    let was = call.write(|work| {
        let was = catalog::get(work.txn, &database, &name)?.map_or(0, |it| it.indexes.len() + 1);
        Ok(if catalog::drop(work, &database, &name)? { Some(was) } else { None })
    })?;
    match was {
        Some(was) => {
            Ok(doc! { "nIndexesWas" => Value::I32(was as i32), "ns" => Value::Text(namespace) })
        }
        None => Err(Failure::new(Code::NAMESPACE_NOT_FOUND, "ns not found")),
    }
}

pub(crate) fn drop_database(call: &mut Call<'_>) -> Result<Value, Failure> {
    let database = call.database.clone();
    let there = call.write(|work| Ok(catalog::drop_database(work, &database)?))?;
    Ok(if there {
        doc! { "dropped" => Value::Text(database) }
    } else {
        doc! {}
    })
}

pub(crate) fn rename(call: &mut Call<'_>) -> Result<Value, Failure> {
    let from = call.collection()?;
    let Some(Value::Text(to)) = call.field("to") else {
        return Err(Failure::wrong_type("renameCollection.to", "string"));
    };
    let bad = || Failure::new(Code::INVALID_NAMESPACE, "Invalid namespace specified");
    let (database, from) = from.split_once('.').ok_or_else(bad)?;
    let (target, to) = to.split_once('.').ok_or_else(bad)?;
    if database != target {
        let message = "a collection cannot be renamed into another database";
        return Err(Failure::new(Code::ILLEGAL_OPERATION, message));
    }
    let drop_target = call.truth("dropTarget");
    call.write(|work| {
        catalog::rename(work, database, from, to, drop_target).map_err(|error| match error {
            kumiko_document::Error::NotFound(what) => {
                let message = format!("Source collection {what} does not exist");
                Failure::new(Code::NAMESPACE_NOT_FOUND, message)
            }
            kumiko_document::Error::Exists(_) => {
                Failure::new(Code::NAMESPACE_EXISTS, "target namespace exists")
            }
            kumiko_document::Error::Invalid(why) => Failure::new(Code::INVALID_NAMESPACE, why),
            other => other.into(),
        })
    })?;
    Ok(doc! {})
}

/// The keys and the bytes of some ranges.
fn measure(txn: &mut dyn Txn, ranges: &[Range]) -> Result<(u64, u64), Failure> {
    let (mut keys, mut bytes) = (0, 0);
    for range in ranges {
        txn.visit(&Scan::new(range.clone()).snapshot(), &mut |key, value| {
            keys += 1;
            bytes += (key.len() + value.len()) as u64;
            Flow::Go
        })?;
    }
    Ok((keys, bytes))
}

pub(crate) fn list_databases(call: &mut Call<'_>) -> Result<Value, Failure> {
    let names_only = call.truth("nameOnly");
    let filter = Match::parse(&call.map("filter")?)?;
    let databases = call.read(|txn| {
        let mut rows = Vec::new();
        for name in catalog::databases(txn)? {
            let size = if names_only {
                0
            } else {
                measure(txn, &kumiko_document::keys::database_ranges(&name))?.1
            };
            let empty = catalog::collections(txn, &name)?.is_empty();
            rows.push(doc! {
                "name" => Value::Text(name),
                "sizeOnDisk" => Value::I64(size as i64),
                "empty" => Value::Bool(empty),
            });
        }
        Ok(rows)
    })?;
    let mut shown = Vec::new();
    let mut total = 0;
    for row in databases {
        // A database without collections is not there, in a client's eyes.
        if field(&row, "empty") == Some(&Value::Bool(true)) || !filter.matches(&row)? {
            continue;
        }
        total += field(&row, "sizeOnDisk").and_then(types::integer).unwrap_or(0);
        shown.push(match (names_only, &row) {
            (true, Value::Map(fields)) => Value::Map(fields[..1].to_vec()),
            _ => row,
        });
    }
    let mut fields = vec![("databases".to_string(), Value::Array(shown))];
    if !names_only {
        fields.push(("totalSize".into(), Value::I64(total)));
        fields.push(("totalSizeMb".into(), Value::I64(total / 1_000_000)));
    }
    Ok(Value::Map(fields))
}

pub(crate) fn list_collections(call: &mut Call<'_>) -> Result<Value, Failure> {
    let names_only = call.truth("nameOnly");
    let filter = Match::parse(&call.map("filter")?)?;
    let database = call.database.clone();
    let all = call.read(|txn| Ok(catalog::collections(txn, &database)?))?;
    let mut shown = Vec::new();
    for collection in all {
        let row = doc! {
            "name" => Value::Text(collection.name),
            "type" => text("collection"),
            "options" => collection.options,
            "info" => doc! {
                "readOnly" => Value::Bool(collection.foreign),
                "uuid" => Value::Uuid(collection.uuid),
            },
            "idIndex" => doc! {
                "v" => Value::I32(2),
                "key" => doc! { "_id" => Value::I32(1) },
                "name" => text("_id_"),
            },
        };
        if filter.matches(&row)? {
            shown.push(match (names_only, row) {
                (true, Value::Map(fields)) => Value::Map(fields[..2].to_vec()),
                (_, row) => row,
            });
        }
    }
    let namespace = format!("{}.$cmd.listCollections", call.database);
    Ok(cursor_answer(0, &namespace, "firstBatch", shown))
}

struct Size {
    count: u64,
    bytes: u64,
    index_bytes: Vec<(String, Value)>,
    indexes_total: u64,
}

fn size_of(txn: &mut dyn Txn, collection: &Collection) -> Result<Size, Failure> {
    let (count, bytes) = measure(txn, &collection.prefixes().all())?;
    let mut indexes_total = 0;
    let mut index_bytes = vec![("_id_".to_string(), Value::I32(0))];
    for index in &collection.indexes {
        let range = Range::prefix(&collection.index_prefix(&index.name));
        let (_, bytes) = measure(txn, &[range])?;
        indexes_total += bytes;
        index_bytes.push((index.name.clone(), number(bytes)));
    }
    Ok(Size { count, bytes, index_bytes, indexes_total })
}

fn stats_of(size: &Size) -> Vec<(String, Value)> {
    let mean = size.bytes.checked_div(size.count).unwrap_or(0);
    vec![
        ("size".into(), number(size.bytes)),
        ("count".into(), number(size.count)),
        ("avgObjSize".into(), number(mean)),
        ("storageSize".into(), number(size.bytes)),
        ("capped".into(), Value::Bool(false)),
        ("nindexes".into(), Value::I32(size.index_bytes.len() as i32)),
        ("totalIndexSize".into(), number(size.indexes_total)),
        ("totalSize".into(), number(size.bytes + size.indexes_total)),
        ("indexSizes".into(), Value::Map(size.index_bytes.clone())),
        ("scaleFactor".into(), Value::I32(1)),
    ]
}

fn size_by_name(call: &mut Call<'_>, name: &str) -> Result<Size, Failure> {
    let database = call.database.clone();
    call.read(|txn| match catalog::get(txn, &database, name)? {
        Some(collection) => size_of(txn, &collection),
        None => {
            let index_bytes = Vec::new();
            Ok(Size { count: 0, bytes: 0, index_bytes, indexes_total: 0 })
        }
    })
}

pub(crate) fn collection_stats(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let size = size_by_name(call, &name)?;
    let mut fields = vec![("ns".to_string(), Value::Text(call.namespace(&name)))];
    fields.extend(stats_of(&size));
    Ok(Value::Map(fields))
}

/// `$collStats`.
pub(crate) fn stats_stage(call: &mut Call<'_>, name: &str, spec: &Value) -> Result<Value, Failure> {
    let size = size_by_name(call, name)?;
    let mut fields = vec![
        ("ns".to_string(), Value::Text(call.namespace(name))),
        ("localTime".into(), Value::DateTime(call.server.world.now_ms())),
    ];
    if field(spec, "storageStats").is_some() {
        fields.push(("storageStats".into(), Value::Map(stats_of(&size))));
    }
    if field(spec, "count").is_some() {
        fields.push(("count".into(), number(size.count)));
    }
    Ok(Value::Map(fields))
}

pub(crate) fn database_stats(call: &mut Call<'_>) -> Result<Value, Failure> {
    let database = call.database.clone();
    let (collections, mut total) = call.read(|txn| {
        let all = catalog::collections(txn, &database)?;
        let mut total = (0, 0, 0, 0);
        for collection in &all {
            let size = size_of(txn, collection)?;
            total.0 += size.count;
            total.1 += size.bytes;
            total.2 += size.index_bytes.len() as u64;
            total.3 += size.indexes_total;
        }
        Ok((all.len(), total))
    })?;
    let mean = total.1.checked_div(total.0.max(1)).unwrap_or(0);
    total.2 = total.2.max(collections as u64);
    Ok(doc! {
        "db" => Value::Text(call.database.clone()),
        "collections" => Value::I32(collections as i32),
        "views" => Value::I32(0),
        "objects" => number(total.0),
        "avgObjSize" => Value::F64(mean as f64),
        "dataSize" => Value::F64(total.1 as f64),
        "storageSize" => Value::F64(total.1 as f64),
        "indexes" => number(total.2),
        "indexSize" => Value::F64(total.3 as f64),
        "totalSize" => Value::F64((total.1 + total.3) as f64),
        "scaleFactor" => Value::F64(1.0),
    })
}

pub(crate) fn validate(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.collection()?;
    let (database, namespace) = (call.database.clone(), call.namespace(&name));
    call.read(|txn| {
        let collection = catalog::load(txn, &database, &name)?;
        let report = check::collection(txn, &collection)?;
        Ok(doc! {
            "ns" => Value::Text(namespace.clone()),
            "nrecords" => number(report.documents),
            "nIndexes" => Value::I32(collection.indexes.len() as i32 + 1),
            "valid" => Value::Bool(report.faults.is_empty()),
            "errors" => Value::Array(report.faults.iter().map(|it| text(it)).collect()),
            "warnings" => Value::Array(Vec::new()),
        })
    })
}

/// What goes on for long: index builds, with how far they have come.
pub(crate) fn current_operations(call: &mut Call<'_>) -> Result<Value, Failure> {
    let running = call.read(|txn| {
        let mut running = Vec::new();
        for database in catalog::databases(txn)? {
            for collection in catalog::collections(txn, &database)? {
                let building = collection.indexes.iter().filter(|it| it.state == State::Building);
                for index in building {
                    let done = index::progress(txn, &collection, &index.name)?.unwrap_or(0);
                    let total = rows(txn, &collection, Read::Snapshot)?;
                    running.push(doc! {
                        "type" => text("op"),
                        "op" => text("command"),
                        "ns" => Value::Text(collection.namespace()),
                        "msg" => text("Index Build"),
                        "command" => doc! { "createIndexes" => Value::Text(collection.name.clone()) },
                        "progress" => doc! { "done" => number(done), "total" => number(total) },
                    });
                }
            }
        }
        Ok(running)
    })?;
    Ok(doc! { "inprog" => Value::Array(running) })
}
