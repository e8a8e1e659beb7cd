//! Databases, collections and the definitions of their indexes.
//!
//! A collection's record holds everything that a writer must know, and every writer reads it: a
//! change of the record makes writers that saw the old one run again. A collection's rows lie under
//! its *stored* name, which is the name it was created with; renaming changes the record alone.
//! Dropping clears the ranges of the rows in the same transaction.

use kumiko_base::{Value, cbor};
use kumiko_kv::{Range, Read, Scan, Txn};

use crate::feed::{Change, Operation};
use crate::keys::{self, Prefixes};
use crate::path::field;
use crate::{Error, Filter, Work};

/// The longest name of a database, in bytes.
pub const DATABASE_BYTES_MAX: usize = 63;
/// The longest `database.collection`, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 255;
/// The most indexes of one collection, the primary one included.
pub const INDEXES_MAX: usize = 64;
/// The most paths of one index.
pub const PATHS_MAX: usize = 32;
/// The name of the primary index, which needs no definition.
pub const PRIMARY: &str = "_id_";

/// Whether an index may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Kept by writers, not yet complete.
    Building,
    /// Complete.
    Ready,
}

/// The definition of a secondary index.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Its name, unique in the collection.
    pub name: String,
    /// The paths, and whether each is descending.
    pub paths: Vec<(String, bool)>,
    /// No two documents have the same parts.
    pub unique: bool,
    /// Documents that have none of the paths are left out.
    pub sparse: bool,
    /// Documents that do not pass are left out.
    pub partial: Option<Filter>,
    /// Documents go this many seconds after the date at the first path.
    pub expire_s: Option<i64>,
    /// Kept, and never chosen by the planner.
    pub hidden: bool,
    /// Which paths met an array in some document. Never goes back.
    pub multikey: Vec<bool>,
    /// Whether it may be read.
    pub state: State,
    /// What the user asked for, in the words of the user's language.
    pub spec: Value,
}

impl Index {
    /// A ready index over `paths`, with no further property.
    pub fn new(name: &str, paths: &[(&str, bool)]) -> Index {
        Index {
            name: name.into(),
            paths: paths.iter().map(|(path, down)| ((*path).into(), *down)).collect(),
            unique: false,
            sparse: false,
            partial: None,
            expire_s: None,
            hidden: false,
            multikey: vec![false; paths.len()],
            state: State::Ready,
            spec: Value::Map(Vec::new()),
        }
    }

    fn to_value(&self) -> Result<Value, Error> {
        let paths = self
            .paths
            .iter()
            .map(|(path, down)| Value::Array(vec![Value::Text(path.clone()), Value::Bool(*down)]));
        let mut fields = vec![
            ("name".into(), Value::Text(self.name.clone())),
            ("paths".into(), Value::Array(paths.collect())),
            ("unique".into(), Value::Bool(self.unique)),
            ("sparse".into(), Value::Bool(self.sparse)),
            ("hidden".into(), Value::Bool(self.hidden)),
            (
                "multikey".into(),
                Value::Array(self.multikey.iter().map(|it| Value::Bool(*it)).collect()),
            ),
            ("ready".into(), Value::Bool(self.state == State::Ready)),
            ("spec".into(), self.spec.clone()),
        ];
        if let Some(partial) = &self.partial {
            fields.push(("partial".into(), partial.to_value()?));
        }
        if let Some(seconds) = self.expire_s {
            fields.push(("expire_s".into(), Value::I64(seconds)));
        }
        Ok(Value::Map(fields))
    }

    fn from_value(value: &Value) -> Result<Index, Error> {
        let truth = |name: &str| matches!(field(value, name), Some(Value::Bool(true)));
        let paths = list(value, "paths")?.iter().map(|pair| match pair {
            Value::Array(pair) => match pair.as_slice() {
                [Value::Text(path), Value::Bool(down)] => Ok((path.clone(), *down)),
                _ => Err(bad()),
            },
            _ => Err(bad()),
        });
        let multikey = list(value, "multikey")?;
        Ok(Index {
            name: text(value, "name")?,
            paths: paths.collect::<Result<_, Error>>()?,
            unique: truth("unique"),
            sparse: truth("sparse"),
            hidden: truth("hidden"),
            partial: field(value, "partial").map(Filter::from_value).transpose()?,
            expire_s: match field(value, "expire_s") {
                Some(Value::I64(seconds)) => Some(*seconds),
                _ => None,
            },
            multikey: multikey.iter().map(|it| *it == Value::Bool(true)).collect(),
            state: if truth("ready") { State::Ready } else { State::Building },
            spec: field(value, "spec").cloned().unwrap_or(Value::Null),
        })
    }
}

/// A collection as its record describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// The database it is in.
    pub database: String,
    /// Its name.
    pub name: String,
    /// The name its rows are stored under.
    pub stored: String,
    /// Names this collection for ever, also after it was renamed.
    pub uuid: [u8; 16],
    /// What the user asked for when it was created.
    pub options: Value,
    /// The secondary indexes.
    pub indexes: Vec<Index>,
    /// Whether another program wrote it as a table: its rows are read and never written.
    pub foreign: bool,
    prefixes: Prefixes,
}

impl Collection {
    /// A collection that has no record yet.
    pub fn new(database: &str, name: &str, stored: &str, uuid: [u8; 16]) -> Collection {
        Collection {
            database: database.into(),
            name: name.into(),
            stored: stored.into(),
            uuid,
            options: Value::Map(Vec::new()),
            indexes: Vec::new(),
            foreign: false,
            prefixes: Prefixes::new(database, stored),
        }
    }

    /// Where its rows are.
    pub fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// `database.collection`.
    pub fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// The index of this name.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// What all entries of one of its indexes begin with.
    pub fn index_prefix(&self, name: &str) -> Vec<u8> {
        keys::index(&self.database, &self.stored, name)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let indexes: Result<Vec<Value>, Error> = self.indexes.iter().map(Index::to_value).collect();
        let record = Value::Map(vec![
            ("v".into(), Value::I32(1)),
            ("stored".into(), Value::Text(self.stored.clone())),
            ("uuid".into(), Value::Uuid(self.uuid)),
            ("options".into(), self.options.clone()),
            ("indexes".into(), Value::Array(indexes?)),
        ]);
        Ok(cbor::encode(&record)?)
    }

    fn from_bytes(database: &str, name: &str, bytes: &[u8]) -> Result<Collection, Error> {
        let record = cbor::decode(bytes)?;
        if !matches!(field(&record, "v"), Some(Value::I32(1))) {
            // PuzzleDB's schema is a map with integer keys.
            let mut collection = Collection::new(database, name, name, [0; 16]);
            collection.foreign = true;
            return Ok(collection);
        }
        let stored = text(&record, "stored")?;
        let Some(Value::Uuid(uuid)) = field(&record, "uuid") else { return Err(bad()) };
        let mut collection = Collection::new(database, name, &stored, *uuid);
        collection.options = field(&record, "options").cloned().ok_or_else(bad)?;
        let indexes = list(&record, "indexes")?.iter().map(Index::from_value);
        collection.indexes = indexes.collect::<Result<_, Error>>()?;
        Ok(collection)
    }
}

fn bad() -> Error {
    Error::Corrupt("a collection's record is damaged".into())
}

fn text(value: &Value, name: &str) -> Result<String, Error> {
    match field(value, name) {
        Some(Value::Text(text)) => Ok(text.clone()),
        _ => Err(bad()),
    }
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], Error> {
    match field(value, name) {
        Some(Value::Array(list)) => Ok(list),
        _ => Err(bad()),
    }
}

/// The names of all databases.
pub fn databases(txn: &mut dyn Txn) -> Result<Vec<String>, Error> {
    let page = txn.scan(&Scan::new(keys::databases()).snapshot())?;
    page.rows.iter().map(|(key, _)| last_text(key)).collect()
}

fn last_text(key: &[u8]) -> Result<String, Error> {
    let elements = kumiko_base::tuple::unpack(key)?;
    let name = elements.last().and_then(|element| element.as_text());
    name.map(Into::into).ok_or_else(|| Error::Corrupt("a catalog key holds no name".into()))
}

/// All collections of a database, by name.
pub fn collections(txn: &mut dyn Txn, database: &str) -> Result<Vec<Collection>, Error> {
    let page = txn.scan(&Scan::new(keys::collections(database)))?;
    let of = |(key, bytes): &(Vec<u8>, Vec<u8>)| {
        Collection::from_bytes(database, &last_text(key)?, bytes)
    };
    page.rows.iter().map(of).collect()
}

/// The collection, if it is there. A collection that PuzzleDB filled through its MongoDB side has
/// rows and no record; it is found too.
pub fn get(txn: &mut dyn Txn, database: &str, name: &str) -> Result<Option<Collection>, Error> {
    if let Some(bytes) = txn.get(&keys::collection(database, name), Read::Serializable)? {
        return Collection::from_bytes(database, name, &bytes).map(Some);
    }
    let unrecorded = Collection::new(database, name, name, [0; 16]);
    let rows = Range::prefix(&unrecorded.prefixes.rows);
    if txn.scan(&Scan::new(rows).rows(1))?.rows.is_empty() {
        return Ok(None);
    }
    // The rows may be those of a collection that was renamed away from this name.
    let taken = collections(txn, database)?.iter().any(|it| it.stored == name);
    Ok(if taken { None } else { Some(unrecorded) })
}

/// The collection, which must be there.
pub fn load(txn: &mut dyn Txn, database: &str, name: &str) -> Result<Collection, Error> {
    get(txn, database, name)?.ok_or_else(|| Error::NotFound(format!("{database}.{name}")))
}

/// Refuses names that would be unclear in `database.collection`.
pub fn check_names(database: &str, name: &str) -> Result<(), Error> {
    let bad = |why: &str| Err(Error::Invalid(format!("Invalid namespace specified: {why}")));
    if database.is_empty() || DATABASE_BYTES_MAX < database.len() {
        return bad("a database name has 1 to 63 bytes");
    }
    if database.contains(['/', '\\', '.', ' ', '"', '$', '\0']) {
        return bad("a database name holds none of / \\ . space \" $ and NUL");
    }
    if name.is_empty() || name.starts_with('.') || name.ends_with('.') {
        return bad("a collection name is not empty and has no dot at its ends");
    }
    if name.contains(['$', '\0']) {
        return bad("a collection name holds neither $ nor NUL");
    }
    if NAMESPACE_BYTES_MAX < database.len() + 1 + name.len() {
        return bad("database and collection have at most 255 bytes together");
    }
    Ok(())
}

/// Creates a collection; its database too, if need be. `uuid` must be new.
///
/// # Errors
///
/// `Exists` if it is there; `Invalid` for a bad name.
pub fn create(
    work: &mut Work<'_>,
    database: &str,
    name: &str,
    options: Value,
    uuid: [u8; 16],
) -> Result<Collection, Error> {
    check_names(database, name)?;
    if get(work.txn, database, name)?.is_some() {
        return Err(Error::Exists(format!("{database}.{name}")));
    }
    let others = collections(work.txn, database)?;
    let mut stored = name.to_string();
    let mut n = 1;
    while others.iter().any(|it| it.stored == stored) {
        n += 1;
        // No user's name holds a $.
        stored = format!("{name}${n}");
    }
    let mut collection = Collection::new(database, name, &stored, uuid);
    collection.options = options;
    record(work, &collection)?;
    Ok(collection)
}

/// Writes a collection's record, and its database's if need be.
pub fn record(work: &mut Work<'_>, collection: &Collection) -> Result<(), Error> {
    if collection.foreign {
        return Err(Error::ReadOnly(collection.namespace()));
    }
    let database = keys::database(&collection.database);
    if work.txn.get(&database, Read::Serializable)?.is_none() {
        work.txn.put(&database, &[0xA0])?;
    }
    let key = keys::collection(&collection.database, &collection.name);
    Ok(work.txn.put(&key, &collection.to_bytes()?)?)
}

/// The collection to write to: created, or given its record, if need be.
pub fn open(
    work: &mut Work<'_>,
    database: &str,
    name: &str,
    uuid: [u8; 16],
) -> Result<Collection, Error> {
    match get(work.txn, database, name)? {
        Some(collection) if collection.foreign => Err(Error::ReadOnly(collection.namespace())),
        Some(mut collection) if collection.uuid == [0; 16] => {
            collection.uuid = uuid;
            // Entries that nobody would keep from now on.
            work.txn.clear(&keys::foreign_entries(database, name))?;
            record(work, &collection)?;
            Ok(collection)
        }
        Some(collection) => Ok(collection),
        None => create(work, database, name, Value::Map(Vec::new()), uuid),
    }
}

/// Removes a collection with all its documents and entries. Says whether it was there.
pub fn drop(work: &mut Work<'_>, database: &str, name: &str) -> Result<bool, Error> {
    let Some(collection) = get(work.txn, database, name)? else { return Ok(false) };
    remove(work, &collection)?;
    work.note(Change::of(&collection, Operation::Drop))?;
    Ok(true)
}

fn remove(work: &mut Work<'_>, collection: &Collection) -> Result<(), Error> {
    work.txn.del(&keys::collection(&collection.database, &collection.name))?;
    clear_rows(work, collection)
}

fn clear_rows(work: &mut Work<'_>, collection: &Collection) -> Result<(), Error> {
    for range in keys::collection_ranges(&collection.database, &collection.stored) {
        work.txn.clear(&range)?;
    }
    Ok(())
}

/// Removes all documents of a collection; its record and indexes stay.
pub fn truncate(work: &mut Work<'_>, collection: &Collection) -> Result<(), Error> {
    if collection.foreign {
        return Err(Error::ReadOnly(collection.namespace()));
    }
    // Whoever reads or writes a document has read the record: it must be written to be in conflict.
    record(work, collection)?;
    clear_rows(work, collection)
}

/// Gives a collection another name, in the same database. Its rows stay where they are.
///
/// # Errors
///
/// `Exists` if the new name is taken and `drop_target` is false.
pub fn rename(
    work: &mut Work<'_>,
    database: &str,
    from: &str,
    to: &str,
    drop_target: bool,
) -> Result<Collection, Error> {
    check_names(database, to)?;
    let mut collection = load(work.txn, database, from)?;
    if collection.foreign {
        return Err(Error::ReadOnly(collection.namespace()));
    }
    if let Some(target) = get(work.txn, database, to)? {
        if !drop_target || from == to {
            return Err(Error::Exists("target namespace".into()));
        }
        remove(work, &target)?;
    }
    work.txn.del(&keys::collection(database, from))?;
    let mut change = Change::of(&collection, Operation::Rename);
    change.to = Some(to.into());
    collection.name = to.into();
    record(work, &collection)?;
    work.note(change)?;
    Ok(collection)
}

/// Removes a database with everything in it. Says whether it was there.
pub fn drop_database(work: &mut Work<'_>, database: &str) -> Result<bool, Error> {
    let key = keys::database(database);
    let there = work.txn.get(&key, Read::Serializable)?.is_some();
    for collection in collections(work.txn, database)? {
        work.note(Change::of(&collection, Operation::Drop))?;
    }
    work.txn.del(&key)?;
    work.txn.clear(&keys::collections(database))?;
    for range in keys::database_ranges(database) {
        work.txn.clear(&range)?;
    }
    if there {
        let nameless = Collection::new(database, "", "", [0; 16]);
        work.note(Change::of(&nameless, Operation::DropDatabase))?;
    }
    Ok(there)
}
