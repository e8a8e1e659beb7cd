//! Aggregation expressions.
//!
//! An expression gives a value or nothing; nothing and null are told apart. Operators whose
//! arguments are all evaluated first live in tables (`math`, `array`, `text`, `date`, `convert`);
//! those that decide what to evaluate are variants of [`Expr`].

mod array;
mod convert;
mod date;
mod math;
mod parse;
mod text;

use kumiko_base::Value;
use kumiko_document::order;
use kumiko_document::path::field;

use crate::{Error, types};
pub use convert::text_of;
pub use math::{add, multiply};

/// An operator on values that are known.
pub type Operator = fn(&[Option<Value>]) -> Result<Option<Value>, Error>;

/// A parsed expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A value.
    Constant(Value),
    /// A variable, and a path below it.
    Path(String, Vec<String>),
    /// A map; fields that give nothing are left out.
    Map(Vec<(String, Expr)>),
    /// An array; elements that give nothing are null.
    Array(Vec<Expr>),
    /// An operator on values.
    Call(Operator, Vec<Expr>),
    /// All are true.
    And(Vec<Expr>),
    /// One is true.
    Or(Vec<Expr>),
    /// The first that is neither null nor nothing; the last if all are.
    IfNull(Vec<Expr>),
    /// The value of the first branch whose condition is true, or the default.
    Switch(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    /// A value with variables.
    Let(Vec<(String, Expr)>, Box<Expr>),
    /// Each element of the first, as a variable, in the second.
    MapOver(Box<Expr>, String, Box<Expr>),
    /// The elements of the first for which the second is true; at most so many.
    Keep(Box<Expr>, String, Box<Expr>, Option<Box<Expr>>),
    /// From a first value over all elements, with `$$value` and `$$this`.
    Reduce(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// What an expression may refer to.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    root: &'a Value,
    variables: Vec<(String, Value)>,
    /// What time it is, for `$$NOW`.
    pub now_ms: i64,
}

impl<'a> Context<'a> {
    /// A document and nothing else.
    pub fn new(root: &'a Value) -> Context<'a> {
        Context { root, variables: Vec::new(), now_ms: 0 }
    }

    /// The same variables with another document.
    pub fn with_root<'b>(&self, root: &'b Value) -> Context<'b> {
        Context { root, variables: self.variables.clone(), now_ms: self.now_ms }
    }

    /// The same with further variables.
    pub fn with(&self, variables: impl IntoIterator<Item = (String, Value)>) -> Context<'a> {
        let mut next = self.clone();
        next.variables.extend(variables);
        next
    }

    /// The variables.
    pub fn variables(&self) -> &[(String, Value)] {
        &self.variables
    }

    fn variable(&self, name: &str) -> Option<Value> {
        let own = self.variables.iter().rev().find(|(it, _)| it == name);
        if let Some((_, value)) = own {
            return Some(value.clone());
        }
        match name {
            "ROOT" | "CURRENT" => Some(self.root.clone()),
            "NOW" => Some(Value::DateTime(self.now_ms)),
            _ => None,
        }
    }
}

impl Expr {
    /// Parses an expression.
    pub fn parse(value: &Value) -> Result<Expr, Error> {
        parse::expression(value, 0)
    }

    /// The constant, if it is one.
    pub fn constant(&self) -> Option<&Value> {
        match self {
            Expr::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The value; `None` is nothing.
    pub fn eval(&self, context: &Context<'_>) -> Result<Option<Value>, Error> {
        match self {
            Expr::Constant(value) => Ok(Some(value.clone())),
            Expr::Path(variable, path) => Ok(lookup(variable, path, context)),
            Expr::Map(fields) => {
                let mut map = Vec::with_capacity(fields.len());
                for (name, expr) in fields {
                    if let Some(value) = expr.eval(context)? {
                        map.push((name.clone(), value));
                    }
                }
                Ok(Some(Value::Map(map)))
            }
            Expr::Array(elements) => {
                let values = elements.iter().map(|it| Ok(it.eval(context)?.unwrap_or(Value::Null)));
                Ok(Some(Value::Array(values.collect::<Result<_, Error>>()?)))
            }
            Expr::Call(operator, arguments) => {
                let values: Result<Vec<_>, Error> =
                    arguments.iter().map(|it| it.eval(context)).collect();
                operator(&values?)
            }
            Expr::And(all) => {
                for it in all {
                    if !types::truth(it.eval(context)?.as_ref()) {
                        return Ok(Some(Value::Bool(false)));
                    }
                }
                Ok(Some(Value::Bool(true)))
            }
            Expr::Or(any) => {
                for it in any {
                    if types::truth(it.eval(context)?.as_ref()) {
                        return Ok(Some(Value::Bool(true)));
                    }
                }
                Ok(Some(Value::Bool(false)))
            }
            Expr::IfNull(all) => {
                let mut last = None;
                for it in all {
                    last = it.eval(context)?;
                    if !is_null(last.as_ref()) {
                        break;
                    }
                }
                Ok(last)
            }
            Expr::Switch(branches, default) => switch(branches, default.as_deref(), context),
            Expr::Let(variables, inside) => {
                let mut values = Vec::new();
                for (name, expr) in variables {
                    // A variable that is nothing hides an outer one; its paths give nothing.
                    let value = expr.eval(context)?.unwrap_or(Value::Map(Vec::new()));
                    values.push((name.clone(), value));
                }
                inside.eval(&context.with(values))
            }
            Expr::MapOver(..) | Expr::Keep(..) | Expr::Reduce(..) => self.over(context),
        }
    }

    fn over(&self, context: &Context<'_>) -> Result<Option<Value>, Error> {
        let elements = |input: &Expr, name: &str| match input.eval(context)? {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(elements)) => Ok(Some(elements)),
            Some(_) => Err(Error::location(28651, format!("input to {name} must be an array"))),
        };
        match self {
            Expr::MapOver(input, variable, inside) => {
                let Some(elements) = elements(input, "$map")? else { return Ok(Some(Value::Null)) };
                let mut values = Vec::with_capacity(elements.len());
                for element in elements {
                    let value = inside.eval(&context.with([(variable.clone(), element)]))?;
                    values.push(value.unwrap_or(Value::Null));
                }
                Ok(Some(Value::Array(values)))
            }
            Expr::Keep(input, variable, condition, limit) => {
                let Some(elements) = elements(input, "$filter")? else {
                    return Ok(Some(Value::Null));
                };
                let limit = match limit {
                    Some(limit) => limit.eval(context)?.as_ref().and_then(types::integer),
                    None => None,
                };
                let limit = limit.map_or(usize::MAX, |it| it.max(0) as usize);
                let mut kept = Vec::new();
                for element in elements {
                    let inside = context.with([(variable.clone(), element.clone())]);
                    if kept.len() < limit && types::truth(condition.eval(&inside)?.as_ref()) {
                        kept.push(element);
                    }
                }
                Ok(Some(Value::Array(kept)))
            }
            Expr::Reduce(input, first, inside) => {
                let Some(elements) = elements(input, "$reduce")? else {
                    return Ok(Some(Value::Null));
                };
                let mut value = first.eval(context)?;
                for element in elements {
                    let so_far = value.unwrap_or(Value::Null);
                    let variables = [("value".into(), so_far), ("this".into(), element)];
                    value = inside.eval(&context.with(variables))?;
                }
                Ok(value)
            }
            _ => Ok(None),
        }
    }

    /// Adds the top-level fields that the expression looks at. False if it cannot tell.
    pub fn fields(&self, into: &mut Vec<String>) -> bool {
        match self {
            Expr::Constant(_) => true,
            Expr::Path(variable, path) if matches!(variable.as_str(), "ROOT" | "CURRENT") => {
                into.extend(path.first().cloned());
                !path.is_empty()
            }
            Expr::Map(fields) => fields.iter().all(|(_, it)| it.fields(into)),
            Expr::Array(all)
            | Expr::Call(_, all)
            | Expr::And(all)
            | Expr::Or(all)
            | Expr::IfNull(all) => all.iter().all(|it| it.fields(into)),
            _ => false,
        }
    }
}

fn switch(
    branches: &[(Expr, Expr)],
    default: Option<&Expr>,
    context: &Context<'_>,
) -> Result<Option<Value>, Error> {
    for (condition, value) in branches {
        if types::truth(condition.eval(context)?.as_ref()) {
            return value.eval(context);
        }
    }
    match default {
        Some(value) => value.eval(context),
        None => Err(Error::location(
            40066,
            "$switch could not find a matching branch for an input, and no default was specified.",
        )),
    }
}

/// Whether this is null or nothing.
pub fn is_null(value: Option<&Value>) -> bool {
    matches!(value, None | Some(Value::Null))
}

fn lookup(variable: &str, path: &[String], context: &Context<'_>) -> Option<Value> {
    if matches!(variable, "ROOT" | "CURRENT")
        && !context.variables.iter().any(|(it, _)| it == variable)
    {
        return below(context.root, path);
    }
    below(&context.variable(variable)?, path)
}

/// What a path finds; over an array, an array of what it finds in each map of it.
fn below(value: &Value, path: &[String]) -> Option<Value> {
    let Some((name, rest)) = path.split_first() else { return Some(value.clone()) };
    match value {
        Value::Map(_) => below(field(value, name)?, rest),
        Value::Array(elements) => {
            // Only maps right in the array: an array inside the array is not looked into.
            let maps = elements.iter().filter(|it| matches!(it, Value::Map(_)));
            Some(Value::Array(maps.filter_map(|it| below(it, path)).collect()))
        }
        _ => None,
    }
}

/// Whether two results are the same; nothing is only like nothing.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> std::cmp::Ordering {
    match (a, b) {
        (None, None) => std::cmp::Ordering::Equal,
        // Nothing stands before everything but the least key.
        (None, Some(_)) => std::cmp::Ordering::Less,
        (Some(_), None) => std::cmp::Ordering::Greater,
        (Some(a), Some(b)) => order::compare(a, b),
    }
}

/// The operator, and the least and most arguments, of this name.
fn operator(name: &str) -> Option<(Operator, usize, usize)> {
    let tables = [math::OPERATORS, array::OPERATORS, text::OPERATORS, convert::OPERATORS];
    let (_, min, max, operator) = tables.into_iter().flatten().find(|(it, ..)| *it == name)?;
    Some((*operator, *min, *max))
}

/// The operator of this name with named arguments, and their names.
fn named_operator(name: &str) -> Option<(Operator, &'static [&'static str])> {
    let tables = [date::NAMED, text::NAMED, array::NAMED, convert::NAMED];
    let (_, names, operator) = tables.into_iter().flatten().find(|(it, ..)| *it == name)?;
    Some((*operator, names))
}

/// A table of operators: name, least and most arguments, function.
type Table = &'static [(&'static str, usize, usize, Operator)];
/// A table of operators with named arguments.
type NamedTable = &'static [(&'static str, &'static [&'static str], Operator)];
