//! `$group`: documents by a key, and what is made of each group.

use std::cmp::Ordering;
use std::collections::HashMap;

use kumiko_base::Value;
use kumiko_document::order;

use crate::expr::{Context, Expr, add};
use crate::{Code, Error, types};

/// How the values of a group become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Average,
    Min,
    Max,
    First,
    Last,
    Push,
    AddToSet,
    Merge,
    DeviationOfAll,
    DeviationOfSample,
}

/// A parsed `$group`.
#[derive(Clone, Debug)]
pub struct Group {
    id: Expr,
    fields: Vec<(String, Kind, Expr)>,
}

impl Group {
    /// Parses `{_id: expression, field: {accumulator: expression}}`.
    pub fn parse(spec: &Value) -> Result<Group, Error> {
        let Value::Map(fields) = spec else {
            let message = "a group's fields must be specified in an object";
            return Err(Error::location(15947, message));
        };
        let mut id = None;
        let mut parsed = Vec::new();
        for (name, value) in fields {
            if name == "_id" {
                id = Some(whole_id(Expr::parse(value)?));
                continue;
            }
            if name.contains('.') || name.starts_with('$') {
                let message =
                    format!("The field name '{name}' cannot contain '.' or begin with '$'");
                return Err(Error::location(40235, message));
            }
            let (kind, expr) = accumulator(name, value)?;
            parsed.push((name.clone(), kind, expr));
        }
        let id =
            id.ok_or_else(|| Error::location(15955, "a group specification must include an _id"))?;
        Ok(Group { id, fields: parsed })
    }

    /// `{_id: expression, count: {$sum: 1}}`.
    pub fn count_by(expr: &Value) -> Result<Group, Error> {
        let fields = vec![("count".into(), Kind::Sum, Expr::Constant(Value::I32(1)))];
        Ok(Group { id: Expr::parse(expr)?, fields })
    }

    /// The same accumulators with another key, from `output`; a count if there is none.
    pub fn with_output(id: Expr, output: Option<&Value>) -> Result<Group, Error> {
        let Some(Value::Map(fields)) = output else {
            let fields = vec![("count".into(), Kind::Sum, Expr::Constant(Value::I32(1)))];
            return Ok(Group { id, fields });
        };
        let fields = fields.iter().map(|(name, value)| {
            let (kind, expr) = accumulator(name, value)?;
            Ok((name.clone(), kind, expr))
        });
        Ok(Group { id, fields: fields.collect::<Result<_, Error>>()? })
    }
}

/// The fields of an id that is a map are null where they would be nothing.
fn whole_id(id: Expr) -> Expr {
    let Expr::Map(fields) = id else { return id };
    let null = || Expr::Constant(Value::Null);
    let filled = fields.into_iter().map(|(name, it)| (name, Expr::IfNull(vec![it, null()])));
    Expr::Map(filled.collect())
}

fn accumulator(name: &str, value: &Value) -> Result<(Kind, Expr), Error> {
    let bad =
        || Error::location(40234, format!("The field '{name}' must be an accumulator object"));
    let Value::Map(fields) = value else { return Err(bad()) };
    let [(word, inside)] = fields.as_slice() else {
        let message = format!("The field '{name}' must specify one accumulator");
        return Err(Error::location(40238, message));
    };
    let kind = match word.as_str() {
        "$sum" => Kind::Sum,
        "$avg" => Kind::Average,
        "$min" => Kind::Min,
        "$max" => Kind::Max,
        "$first" => Kind::First,
        "$last" => Kind::Last,
        "$push" => Kind::Push,
        "$addToSet" => Kind::AddToSet,
        "$mergeObjects" => Kind::Merge,
        "$stdDevPop" => Kind::DeviationOfAll,
        "$stdDevSamp" => Kind::DeviationOfSample,
        "$count" => {
            if *inside != Value::Map(Vec::new()) {
                let message = "$count takes no arguments, i.e. $count:{}";
                return Err(Error::new(Code::TYPE_MISMATCH, message));
            }
            return Ok((Kind::Sum, Expr::Constant(Value::I32(1))));
        }
        _ if word.starts_with('$') => {
            return Err(Error::location(15952, format!("unknown group operator '{word}'")));
        }
        _ => return Err(bad()),
    };
    Ok((kind, Expr::parse(inside)?))
}

/// What one accumulator has so far.
#[derive(Clone, Debug)]
enum So {
    One(Option<Value>),
    Sum(Value, i64),
    List(Vec<Value>),
    /// Count, mean and sum of squared differences.
    Spread(f64, f64, f64),
}

/// Groups that are being filled.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    places: HashMap<Vec<u8>, usize>,
    rows: Vec<(Value, Vec<So>)>,
    /// About how many bytes they take.
    pub(crate) bytes: usize,
}

impl Groups {
    pub(crate) fn take(
        &mut self,
        group: &Group,
        document: &Value,
        context: &Context<'_>,
    ) -> Result<(), Error> {
        let context = context.with_root(document);
        let id = group.id.eval(&context)?.unwrap_or(Value::Null);
        let mut key = Vec::new();
        order::encode(&id, &mut key);
        let at = match self.places.get(&key) {
            Some(at) => *at,
            None => {
                self.bytes += key.len() + types::size(&id) + 64 * (1 + group.fields.len());
                let fresh = group.fields.iter().map(|(_, kind, _)| fresh(*kind)).collect();
                self.rows.push((id, fresh));
                self.places.insert(key, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        for (so_far, (_, kind, expr)) in self.rows[at].1.iter_mut().zip(&group.fields) {
            let value = expr.eval(&context)?;
            self.bytes += so_far.add(*kind, value)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self, group: &Group) -> impl Iterator<Item = Value> {
        let names: Vec<(String, Kind)> =
            group.fields.iter().map(|(name, kind, _)| (name.clone(), *kind)).collect();
        self.rows.into_iter().map(move |(id, all)| {
            let fields = all.into_iter().zip(&names);
            let fields = fields.map(|(so_far, (name, kind))| (name.clone(), so_far.end(*kind)));
            Value::Map(std::iter::once(("_id".to_string(), id)).chain(fields).collect())
        })
    }
}

fn fresh(kind: Kind) -> So {
    match kind {
        Kind::Sum | Kind::Average => So::Sum(Value::I32(0), 0),
        Kind::Min | Kind::Max | Kind::First | Kind::Last => So::One(None),
        Kind::Merge => So::One(Some(Value::Map(Vec::new()))),
        Kind::Push | Kind::AddToSet => So::List(Vec::new()),
        Kind::DeviationOfAll | Kind::DeviationOfSample => So::Spread(0.0, 0.0, 0.0),
    }
}

impl So {
    /// Takes a value in; says by how many bytes it grew.
    fn add(&mut self, kind: Kind, value: Option<Value>) -> Result<usize, Error> {
        match self {
            So::Sum(sum, count) => {
                if let Some(next) = value.as_ref().and_then(|it| add(sum, it)) {
                    *sum = next;
                    *count += 1;
                }
            }
            So::Spread(count, mean, squares) => {
                if let Some(number) = value.as_ref().and_then(types::float) {
                    *count += 1.0;
                    let away = number - *mean;
                    *mean += away / *count;
                    *squares += away * (number - *mean);
                }
            }
            So::List(list) => {
                let Some(value) = value else { return Ok(0) };
                if kind == Kind::AddToSet && list.iter().any(|it| order::equal(it, &value)) {
                    return Ok(0);
                }
                let grown = types::size(&value);
                list.push(value);
                return Ok(grown);
            }
            So::One(best) => one(best, kind, value)?,
        }
        Ok(0)
    }

    fn end(self, kind: Kind) -> Value {
        match self {
            So::One(value) => value.unwrap_or(Value::Null),
            So::List(list) => Value::Array(list),
            So::Sum(_, 0) if kind == Kind::Average => Value::Null,
            So::Sum(sum, count) if kind == Kind::Average => mean(&sum, count),
            So::Sum(sum, _) => sum,
            So::Spread(count, _, squares) => {
                let by = if kind == Kind::DeviationOfAll { count } else { count - 1.0 };
                if by <= 0.0 { Value::Null } else { Value::F64((squares / by).sqrt()) }
            }
        }
    }
}

fn mean(sum: &Value, count: i64) -> Value {
    use kumiko_document::number::Number;
    match sum {
        Value::Decimal(bytes) => {
            let mean = Number::from_decimal(bytes).over(Number::from_i64(count));
            Value::Decimal(mean.to_decimal())
        }
        _ => Value::F64(types::float(sum).unwrap_or(f64::NAN) / count as f64),
    }
}

fn one(best: &mut Option<Value>, kind: Kind, value: Option<Value>) -> Result<(), Error> {
    match kind {
        Kind::First => {
            if best.is_none() {
                *best = Some(value.unwrap_or(Value::Null));
            }
        }
        Kind::Last => *best = Some(value.unwrap_or(Value::Null)),
        Kind::Merge => match (best, value) {
            (_, None | Some(Value::Null)) => {}
            (Some(Value::Map(fields)), Some(Value::Map(more))) => {
                for (name, value) in more {
                    match fields.iter_mut().find(|(it, _)| *it == name) {
                        Some((_, old)) => *old = value,
                        None => fields.push((name, value)),
                    }
                }
            }
            _ => return Err(Error::location(40400, "$mergeObjects requires object inputs")),
        },
        _ => {
            let Some(value) = value.filter(|it| *it != Value::Null) else { return Ok(()) };
            let wanted = if kind == Kind::Min { Ordering::Less } else { Ordering::Greater };
            if best.as_ref().is_none_or(|best| order::compare(&value, best) == wanted) {
                *best = Some(value);
            }
        }
    }
    Ok(())
}
