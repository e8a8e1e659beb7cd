//! What find, count, distinct, update and delete have in common: finding documents.

use std::collections::VecDeque;

use kumiko_base::Value;
use kumiko_document::path::field;
use kumiko_document::{Collection, Cursor, Plan, Query, plan};
use kumiko_kv::{Read, Txn};
use kumiko_lang::pipeline::MEMORY_BYTES_MAX;
use kumiko_lang::{Code, Context, Match, Projection, Sort, project, types};

use crate::Failure;
use crate::cursors::Source;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) filter: Match,
    pub(crate) sort: Sort,
    pub(crate) projection: Option<Projection>,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) hint: Option<Value>,
    pub(crate) variables: Vec<(String, Value)>,
    pub(crate) now_ms: i64,
}

impl Want {
    pub(crate) fn new(filter: &Value) -> Result<Want, Failure> {
        Ok(Want {
            filter: Match::parse(filter)?,
            sort: Sort::default(),
            projection: None,
            skip: 0,
            limit: None,
            hint: None,
            variables: Vec::new(),
            now_ms: 0,
        })
    }

    pub(crate) fn projected(mut self, spec: Option<&Value>) -> Result<Want, Failure> {
        if let Some(spec) = spec {
            let parsed = Projection::parse(spec, project::Place::Find)?;
            self.projection = Some(parsed).filter(|it| !it.is_identity());
        }
        Ok(self)
    }

    pub(crate) fn sorted(mut self, spec: Option<&Value>) -> Result<Want, Failure> {
        if let Some(spec) = spec {
            if let Value::Map(fields) = spec
                && let [(name, way)] = fields.as_slice()
                && name == "$natural"
            {
                self.hint = Some(Value::Text("$natural".into()));
                if types::integer(way) == Some(-1) {
                    self.sort = Sort { paths: vec![("_id".into(), true)] };
                }
                return Ok(self);
            }
            self.sort = Sort::parse(spec)?;
        }
        Ok(self)
    }

    /// The plan for this.
    pub(crate) fn plan(&self, collection: &Collection) -> Result<Plan, Failure> {
        let mut query = Query::new(self.filter.to_filter());
        query.sort.clone_from(&self.sort.paths);
        query.hint = self.hint.as_ref().map(|it| hint(collection, it)).transpose()?;
        query.fields = self.fields();
        Ok(plan::plan(collection, &query)?)
    }

    /// The top-level fields that anything here looks at, if that can be told.
    fn fields(&self) -> Option<Vec<String>> {
        let mut fields = self.projection.as_ref()?.needs()?;
        if !self.filter.fields(&mut fields) {
            return None;
        }
        let roots = self.sort.paths.iter().map(|(path, _)| path.split('.').next().unwrap_or(path));
        fields.extend(roots.map(Into::into));
        Some(fields)
    }

    pub(crate) fn passes(&self, document: &Value) -> Result<bool, Failure> {
        let mut context = Context::new(document);
        context.now_ms = self.now_ms;
        let context = context.with(self.variables.iter().cloned());
        Ok(self.filter.matches_with(document, &context)?)
    }

    pub(crate) fn show(&self, document: Value) -> Result<Value, Failure> {
        let Some(projection) = &self.projection else { return Ok(document) };
        let mut context = Context::new(&document);
        context.now_ms = self.now_ms;
        let context = context.with(self.variables.iter().cloned());
        Ok(projection.apply(&document, &context, self.filter.position(&document))?)
    }
}

/// The name of the index that a hint names, by its name or its key.
fn hint(collection: &Collection, hint: &Value) -> Result<String, Failure> {
    let missing = || {
        let message = "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index";
        Failure::bad(message)
    };
    match hint {
        Value::Text(name) => Ok(name.clone()),
        Value::Map(keys) => {
            let names: Vec<(&str, bool)> = keys
                .iter()
                .map(|(path, way)| (path.as_str(), types::integer(way) == Some(-1)))
                .collect();
            if let [(path, _)] = names.as_slice() {
                match *path {
                    "$natural" => return Ok("$natural".into()),
                    "_id" => return Ok("_id_".into()),
                    _ => {}
                }
            }
            let same = |paths: &[(String, bool)]| {
                paths.len() == names.len()
                    && paths.iter().zip(&names).all(|(a, b)| a.0 == b.0 && a.1 == b.1)
            };
            let found = collection.indexes.iter().find(|it| same(&it.paths));
            found.map(|it| it.name.clone()).ok_or_else(missing)
        }
        _ => Err(Failure::bad("a hint must be a string or an object")),
    }
}

/// Documents that pass, read as they are wanted.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) cursor: Cursor,
    want: Want,
    skip: u64,
    left: Option<u64>,
    /// Read, and not yet given out.
    back: Option<Value>,
}

impl Scan {
    pub(crate) fn new(collection: &Collection, plan: &Plan, want: Want, read: Read) -> Scan {
        let cursor = Cursor::new(collection, plan, read);
        Scan { cursor, skip: want.skip, left: want.limit, want, back: None }
    }

    /// Gives back a document that did not fit: it is the next one again.
    pub(crate) fn unread(&mut self, document: Value) {
        self.back = Some(document);
    }

    /// The next document, as it is shown.
    pub(crate) fn next(&mut self, txn: &mut dyn Txn) -> Result<Option<Value>, Failure> {
        if let Some(document) = self.back.take() {
            return Ok(Some(document));
        }
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            let Some(document) = self.cursor.next(txn)? else { return Ok(None) };
            if !self.want.passes(&document)? {
                continue;
            }
            if 0 < self.skip {
                self.skip -= 1;
                continue;
            }
            self.left = self.left.map(|left| left - 1);
            return self.want.show(document).map(Some);
        }
    }
}

/// Documents as a cursor gives them: at once if they must be sorted first, else as they are wanted.
pub(crate) fn source(
    txn: &mut dyn Txn,
    collection: &Collection,
    want: Want,
    read: Read,
) -> Result<Source, Failure> {
    let plan = want.plan(collection)?;
    if want.sort.paths.is_empty() || plan.sorted {
        return Ok(Source::Scan(Box::new(Scan::new(collection, &plan, want, read))));
    }
    let found = sorted(txn, collection, &plan, &want, read)?;
    let shown = found.into_iter().map(|it| want.show(it)).collect::<Result<_, Failure>>()?;
    Ok(Source::Ready(shown))
}

fn sorted(
    txn: &mut dyn Txn,
    collection: &Collection,
    plan: &Plan,
    want: &Want,
    read: Read,
) -> Result<VecDeque<Value>, Failure> {
    let keep = want.limit.map(|limit| limit.saturating_add(want.skip) as usize);
    let mut cursor = Cursor::new(collection, plan, read);
    let mut found: Vec<Value> = Vec::new();
    let mut bytes = 0;
    while let Some(document) = cursor.next(txn)? {
        if !want.passes(&document)? {
            continue;
        }
        bytes += types::size(&document);
        found.push(document);
        if let Some(keep) = keep
            && keep.saturating_mul(4).max(1_000) < found.len()
        {
            want.sort.sort(&mut found);
            found.truncate(keep);
            bytes = found.iter().map(types::size).sum();
        }
        if MEMORY_BYTES_MAX < bytes {
            let message = "Executor error during find command :: caused by :: Sort exceeded memory limit; an index on the sort's fields would help";
            return Err(Failure::new(Code::MEMORY_EXCEEDED, message));
        }
    }
    want.sort.sort(&mut found);
    if let Some(keep) = keep {
        found.truncate(keep);
    }
    Ok(found.into_iter().skip(want.skip as usize).collect())
}

/// Every document that passes, at once.
pub(crate) fn all(
    txn: &mut dyn Txn,
    collection: &Collection,
    want: Want,
    read: Read,
) -> Result<Vec<Value>, Failure> {
    match source(txn, collection, want, read)? {
        Source::Ready(documents) => Ok(documents.into()),
        Source::Scan(mut scan) => {
            let mut found = Vec::new();
            let mut bytes = 0;
            while let Some(document) = scan.next(txn)? {
                bytes += types::size(&document);
                if MEMORY_BYTES_MAX < bytes {
                    let message = "the result does not fit into memory";
                    return Err(Failure::new(Code::MEMORY_EXCEEDED, message));
                }
                found.push(document);
            }
            Ok(found)
        }
        Source::Stream(_) => Ok(Vec::new()),
    }
}

/// How a plan is shown.
pub(crate) fn explain_plan(collection: &Collection, plan: &Plan, want: &Want) -> Value {
    use kumiko_document::plan::Access;
    let direction = Value::Text(if plan.reverse { "backward" } else { "forward" }.into());
    let scan = |access: &Access| match access {
        Access::All => doc! { "stage" => text("COLLSCAN"), "direction" => direction.clone() },
        Access::Ids(segments) => doc! {
            "stage" => text("IXSCAN"),
            "indexName" => text("_id_"),
            "keyPattern" => doc! { "_id" => Value::I32(1) },
            "isMultiKey" => Value::Bool(false),
            "direction" => direction.clone(),
            "ranges" => Value::I32(segments.len() as i32),
        },
        Access::Index { name, ranges, bounds } => {
            index_stage(collection, name, ranges.len(), bounds, &direction)
        }
        Access::Union(inside) => {
            let stages = inside.iter().map(|it| match it {
                Access::Index { name, ranges, bounds } => {
                    index_stage(collection, name, ranges.len(), bounds, &direction)
                }
                _ => doc! { "stage" => text("IXSCAN"), "indexName" => text("_id_") },
            });
            doc! { "stage" => text("OR"), "inputStages" => Value::Array(stages.collect()) }
        }
    };
    let mut stage = scan(&plan.access);
    let wrap = |name: &str, inside: Value| doc! { "stage" => text(name), "inputStage" => inside };
    if plan.access != kumiko_document::plan::Access::All && !plan.covered {
        stage = wrap("FETCH", stage);
    }
    if !want.sort.paths.is_empty() && !plan.sorted {
        stage = wrap("SORT", stage);
    }
    if want.projection.is_some() {
        stage = wrap(if plan.covered { "PROJECTION_COVERED" } else { "PROJECTION_DEFAULT" }, stage);
    }
    stage
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn index_stage(
    collection: &Collection,
    name: &str,
    ranges: usize,
    bounds: &[(String, Vec<String>)],
    direction: &Value,
) -> Value {
    let index = collection.index(name);
    let pattern = index.map_or(Value::Null, crate::indexes::pattern);
    let bounds = bounds.iter().map(|(path, shown)| {
        (path.clone(), Value::Array(shown.iter().map(|it| text(it)).collect()))
    });
    doc! {
        "stage" => text("IXSCAN"),
        "indexName" => text(name),
        "keyPattern" => pattern,
        "isMultiKey" => Value::Bool(index.is_some_and(|it| it.multikey.iter().any(|it| *it))),
        "isUnique" => Value::Bool(index.is_some_and(|it| it.unique)),
        "direction" => direction.clone(),
        "ranges" => Value::I32(ranges as i32),
        "indexBounds" => Value::Map(bounds.collect()),
    }
}

/// A field of a statement that must be a map.
pub(crate) fn map_field<'a>(statement: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    match field(statement, name) {
        Some(map @ Value::Map(_)) => Ok(map),
        _ => Err(Failure::wrong_type(name, "object")),
    }
}
