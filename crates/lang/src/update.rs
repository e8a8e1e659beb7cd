//! Updates: operators, replacements and pipelines.
//!
//! The paths of all operators are put in order and applied one after another; two that touch each
//! other are refused. `$`, `$[]` and `$[name]` are replaced by places before anything is changed.

mod array;
mod parse;
mod walk;

use kumiko_base::Value;
use kumiko_document::order;
use kumiko_document::path::field;

use crate::expr::{Context, add, multiply};
use crate::matcher::Match;
use crate::pipeline::Pipeline;
use crate::types::type_name;
use crate::{Code, Error};
use walk::{Change, modify};

/// A parsed update.
#[derive(Clone, Debug)]
pub enum Update {
    /// The new document.
    Replace(Value),
    /// Operators, in the order of their paths.
    Operators(Vec<(String, Operator)>),
    /// A pipeline on the one document.
    Pipeline(Pipeline),
}

/// What happens at one path.
#[derive(Clone, Debug)]
pub enum Operator {
    /// It gets this value.
    Set(Value),
    /// It gets this value if the document is new.
    SetOnInsert(Value),
    /// It goes.
    Unset,
    /// This is added.
    Increment(Value),
    /// It is multiplied by this.
    Multiply(Value),
    /// It gets this value if that is less.
    Min(Value),
    /// It gets this value if that is greater.
    Max(Value),
    /// It gets the time: as a date, or as a timestamp.
    Now(bool),
    /// It gets what is at this other path, which goes.
    Rename(String),
    /// Elements are added.
    Push(array::Push),
    /// Elements are added unless they are there.
    AddToSet(Vec<Value>),
    /// Elements that pass go.
    Pull(array::Pull),
    /// The first, or the last, element goes.
    Pop(bool),
    /// Bits are changed: "and", "or" or "xor".
    Bits(String, Value),
}

/// What an update needs to know beside the document.
#[derive(Debug, Default)]
pub struct Situation<'a> {
    /// The document is new.
    pub insert: bool,
    /// Which element the filter found: `$`.
    pub found: Option<usize>,
    /// The filters that `$[name]` refers to.
    pub filters: &'a [(String, Match)],
    /// What time it is.
    pub now_ms: i64,
    /// Variables for a pipeline.
    pub variables: &'a [(String, Value)],
}

impl Update {
    /// Parses an update.
    pub fn parse(update: &Value) -> Result<Update, Error> {
        parse::update(update)
    }

    /// Whether it replaces the whole document.
    pub fn is_replacement(&self) -> bool {
        matches!(self, Update::Replace(_))
    }

    /// The document after the update.
    ///
    /// # Errors
    ///
    /// Nothing is changed then.
    pub fn apply(&self, document: &Value, situation: &Situation<'_>) -> Result<Value, Error> {
        let new = match self {
            Update::Replace(new) => replaced(document, new),
            Update::Pipeline(pipeline) => {
                let mut context = Context::new(document);
                context.now_ms = situation.now_ms;
                let context = context.with(situation.variables.iter().cloned());
                pipeline.one(document.clone(), &context)?
            }
            Update::Operators(operators) => {
                let mut new = document.clone();
                let mut done: Vec<String> = Vec::new();
                for (path, operator) in operators {
                    for path in walk::places(&new, path, situation)? {
                        if done.contains(&path) {
                            return Err(conflict(&path));
                        }
                        operator.apply(&mut new, &path, situation)?;
                        done.push(path);
                    }
                }
                new
            }
        };
        check_id(document, &new)?;
        Ok(new)
    }
}

fn replaced(document: &Value, new: &Value) -> Value {
    let Value::Map(fields) = new else { return new.clone() };
    let id = field(new, "_id").or_else(|| field(document, "_id")).cloned();
    let rest = fields.iter().filter(|(name, _)| name != "_id").cloned();
    Value::Map(id.map(|id| ("_id".to_string(), id)).into_iter().chain(rest).collect())
}

fn check_id(old: &Value, new: &Value) -> Result<(), Error> {
    let same = match (field(old, "_id"), field(new, "_id")) {
        (Some(old), Some(new)) => order::equal(old, new),
        (None, _) => true,
        (Some(_), None) => false,
    };
    if same {
        return Ok(());
    }
    let message = "Performing an update on the path '_id' would modify the immutable field '_id'";
    Err(Error::new(Code::IMMUTABLE_FIELD, message))
}

/// Two operators that touch the same path.
fn conflict(path: &str) -> Error {
    let message = format!("Updating the path '{path}' would create a conflict at '{path}'");
    Error::new(Code::CONFLICTING_UPDATE, message)
}

impl Operator {
    fn apply(
        &self,
        document: &mut Value,
        path: &str,
        situation: &Situation<'_>,
    ) -> Result<(), Error> {
        match self {
            Operator::Rename(from) => rename(document, from, path),
            Operator::SetOnInsert(_) if !situation.insert => Ok(()),
            _ => modify(document, path, &mut |old| self.change(old, path, situation)),
        }
    }

    fn change(
        &self,
        old: Option<&Value>,
        path: &str,
        situation: &Situation<'_>,
    ) -> Result<Change, Error> {
        let better = |value: &Value, wanted: std::cmp::Ordering| match old {
            Some(old) if order::compare(value, old) != wanted => Change::Keep,
            _ => Change::Set(value.clone()),
        };
        Ok(match self {
            Operator::Set(value) | Operator::SetOnInsert(value) => Change::Set(value.clone()),
            Operator::Unset => Change::Remove,
            Operator::Increment(by) => number(old, by, path, "$inc", add, by.clone())?,
            Operator::Multiply(by) => {
                let zero = multiply(by, &Value::I32(0)).unwrap_or(Value::I32(0));
                number(old, by, path, "$mul", multiply, zero)?
            }
            Operator::Min(value) => better(value, std::cmp::Ordering::Less),
            Operator::Max(value) => better(value, std::cmp::Ordering::Greater),
            Operator::Now(false) => Change::Set(Value::DateTime(situation.now_ms)),
            Operator::Now(true) => {
                Change::Set(Value::Timestamp((situation.now_ms / 1000) as u32, 1))
            }
            Operator::Push(push) => push.change(old, path)?,
            Operator::AddToSet(values) => array::add_to_set(old, values, path)?,
            Operator::Pull(pull) => pull.change(old, path)?,
            Operator::Pop(first) => array::pop(old, *first, path)?,
            Operator::Bits(kind, by) => bits(old, kind, by, path)?,
            // Done before anything is looked up.
            Operator::Rename(_) => Change::Keep,
        })
    }
}

fn number(
    old: Option<&Value>,
    by: &Value,
    path: &str,
    name: &str,
    operate: fn(&Value, &Value) -> Option<Value>,
    fresh: Value,
) -> Result<Change, Error> {
    let Some(old) = old else { return Ok(Change::Set(fresh)) };
    let leaf = path.rsplit('.').next().unwrap_or(path);
    let Some(new) = operate(old, by) else {
        let kind = type_name(Some(old));
        let message = format!(
            "Cannot apply {name} to a value of non-numeric type. The field '{leaf}' has the non-numeric type {kind}"
        );
        return Err(Error::new(Code::TYPE_MISMATCH, message));
    };
    let integers = |it: &Value| matches!(it, Value::I32(_) | Value::I64(_));
    if integers(old) && integers(by) && matches!(new, Value::F64(_)) {
        let message =
            format!("Failed to apply {name} operations to current value: it would overflow");
        return Err(Error::bad(message));
    }
    Ok(Change::Set(new))
}

fn bits(old: Option<&Value>, kind: &str, by: &Value, path: &str) -> Result<Change, Error> {
    let zero = Value::I32(0);
    let old = old.unwrap_or(&zero);
    let wide = matches!(old, Value::I64(_)) || matches!(by, Value::I64(_));
    let integer = |it: &Value| match it {
        Value::I32(it) => Some(i64::from(*it)),
        Value::I64(it) => Some(*it),
        _ => None,
    };
    let (Some(a), Some(b)) = (integer(old), integer(by)) else {
        let kind = type_name(Some(old));
        let message = format!(
            "Cannot apply $bit to a value of non-integral type. The field '{path}' has the type {kind}"
        );
        return Err(Error::bad(message));
    };
    let new = match kind {
        "and" => a & b,
        "or" => a | b,
        _ => a ^ b,
    };
    Ok(Change::Set(if wide { Value::I64(new) } else { Value::I32(new as i32) }))
}

fn rename(document: &mut Value, from: &str, to: &str) -> Result<(), Error> {
    for path in [from, to] {
        if walk::meets_array(document, path) {
            let message = format!("The path '{path}' of a $rename must not lead through an array");
            return Err(Error::bad(message));
        }
    }
    let mut moved = None;
    modify(document, from, &mut |old| {
        moved = old.cloned();
        Ok(Change::Remove)
    })?;
    match moved {
        Some(value) => modify(document, to, &mut |_| Ok(Change::Set(value.clone()))),
        None => Ok(()),
    }
}

/// The document that an upsert starts from: what the filter says is equal.
pub fn seed(filter: &Match) -> Result<Value, Error> {
    let mut equalities = Vec::new();
    filter.equalities(&mut equalities);
    let mut document = Value::Map(Vec::new());
    let mut done: Vec<&str> = Vec::new();
    for (path, value) in equalities {
        if done.iter().any(|it| *it == path || walk::is_below(path, it) || walk::is_below(it, path))
        {
            let message =
                format!("cannot infer query fields to set, path '{path}' is matched twice");
            return Err(Error::location(54, message));
        }
        modify(&mut document, path, &mut |_| Ok(Change::Set(value.clone())))?;
        done.push(path);
    }
    Ok(document)
}

/// Parses array filters: each is about one name.
pub fn array_filters(filters: &[Value]) -> Result<Vec<(String, Match)>, Error> {
    let mut parsed: Vec<(String, Match)> = Vec::new();
    for filter in filters {
        let Value::Map(fields) = filter else {
            return Err(Error::new(Code::FAILED_TO_PARSE, "an array filter must be an object"));
        };
        let name = parse::filter_name(fields).ok_or_else(|| {
            Error::new(Code::FAILED_TO_PARSE, "an array filter needs one top-level field name")
        })?;
        if parsed.iter().any(|(it, _)| *it == name) {
            let message =
                format!("Found multiple array filters with the same top-level field name {name}");
            return Err(Error::new(Code::FAILED_TO_PARSE, message));
        }
        parsed.push((name, Match::parse(filter)?));
    }
    Ok(parsed)
}
