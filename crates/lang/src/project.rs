//! Projections: which fields of a document are shown, and new ones made from it.

use kumiko_base::Value;
use kumiko_document::path::field;

use crate::expr::{Context, Expr};
use crate::matcher::Match;
use crate::{Error, types};

/// How deep a projection may nest.
const DEPTH_MAX: usize = 100;

#[derive(Clone, Debug)]
enum Node {
    /// Shown, or hidden, depending on the mode.
    Leaf,
    /// Made by an expression.
    Made(Expr),
    /// Part of an array: how many to skip (from the end if negative), how many to show.
    Slice(Option<i64>, i64),
    /// The first element that passes.
    Element(Match),
    /// Fields below.
    Below(Vec<(String, Node)>),
}

/// A parsed projection.
#[derive(Clone, Debug)]
pub struct Projection {
    fields: Vec<(String, Node)>,
    /// Named fields are shown and others hidden, or the other way round.
    include: bool,
    id: bool,
    /// The path before `.$`: only the element that the filter found.
    positional: Option<String>,
}

/// Where a projection is used: the rules differ a little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a find command.
    Find,
    /// In a `$project` stage.
    Stage,
}

#[derive(Default)]
struct Seen {
    include: Option<String>,
    exclude: Option<String>,
    slice: bool,
}

impl Projection {
    /// Parses a projection.
    pub fn parse(spec: &Value, place: Place) -> Result<Projection, Error> {
        let Value::Map(fields) = spec else {
            return Err(Error::location(15969, "$project specification must be an object"));
        };
        if fields.is_empty() && place == Place::Stage {
            let message = "Invalid $project :: caused by :: projection specification must have at least one field";
            return Err(Error::location(51272, message));
        }
        let mut seen = Seen::default();
        let mut nodes = Vec::new();
        let mut id = None;
        let mut positional = None;
        for (path, value) in fields {
            if path.is_empty() || path.starts_with('$') || path.ends_with('.') {
                let message =
                    format!("FieldPath field names may not start with '$' or be empty: {path}");
                return Err(Error::location(16410, message));
            }
            if let Some(stem) = path.strip_suffix(".$").filter(|_| place == Place::Find) {
                positional = Some(stem.to_string());
                seen.include = Some(stem.into());
                insert(&mut nodes, stem, Node::Leaf)?;
                continue;
            }
            if path == "_id" && (types::is_number(value) || matches!(value, Value::Bool(_))) {
                id = Some(types::truth(Some(value)));
                continue;
            }
            let node = node(path, value, place, &mut seen, 0)?;
            insert(&mut nodes, path, node)?;
        }
        if let (Some(_), Some(excluded)) = (&seen.include, &seen.exclude) {
            let message =
                format!("Cannot do exclusion on field {excluded} in inclusion projection");
            return Err(Error::location(31254, message));
        }
        let made = nodes.iter().any(|(_, node)| !matches!(node, Node::Leaf | Node::Below(_)));
        let include = seen.include.is_some()
            || (seen.exclude.is_none()
                && match id {
                    Some(id) if nodes.is_empty() => id,
                    _ => made && !seen.slice,
                });
        if include && seen.exclude.is_some() {
            return Err(Error::location(31254, "Cannot do exclusion in inclusion projection"));
        }
        Ok(Projection { fields: nodes, include, id: id.unwrap_or(true), positional })
    }

    /// The fields that are hidden: `$unset`.
    pub fn without(paths: &[String]) -> Result<Projection, Error> {
        let mut nodes = Vec::new();
        let mut id = true;
        for path in paths {
            if path == "_id" {
                id = false;
            } else {
                insert(&mut nodes, path, Node::Leaf)?;
            }
        }
        Ok(Projection { fields: nodes, include: false, id, positional: None })
    }

    /// Whether everything is shown as it is.
    pub fn is_identity(&self) -> bool {
        !self.include && self.fields.is_empty() && self.id
    }

    /// The top-level fields that the result depends on; `None` if it is all of them.
    pub fn needs(&self) -> Option<Vec<String>> {
        if !self.include || self.positional.is_some() {
            return None;
        }
        let mut needs: Vec<String> = Vec::new();
        if self.id {
            needs.push("_id".into());
        }
        for (name, node) in &self.fields {
            match node {
                Node::Leaf => needs.push(name.clone()),
                Node::Made(expr) if expr.fields(&mut needs) => {}
                _ => return None,
            }
        }
        Some(needs)
    }

    /// What is shown of `document`. `found` is the element that the filter found, for `.$`.
    pub fn apply(
        &self,
        document: &Value,
        context: &Context<'_>,
        found: Option<usize>,
    ) -> Result<Value, Error> {
        let Value::Map(fields) = document else { return Ok(document.clone()) };
        let mut shown = Vec::with_capacity(fields.len());
        // An id made by an expression takes the place of the document's own.
        let node = self.fields.iter().find(|(it, _)| it == "_id").map(|(_, node)| node);
        let id = match node {
            Some(Node::Made(_)) => None,
            Some(Node::Below(_)) => {
                field(document, "_id").and_then(|id| show(node, id, self.include))
            }
            _ => field(document, "_id").cloned(),
        };
        if let (true, Some(id)) = (self.id, id) {
            shown.push(("_id".to_string(), id));
        }
        for (name, value) in fields.iter().filter(|(name, _)| name != "_id") {
            if let Some(value) = self.show(name, value) {
                shown.push((name.clone(), value));
            }
        }
        let mut shown = Value::Map(shown);
        if let Some(path) = &self.positional {
            let Some(at) = found else {
                let message = "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array";
                return Err(Error::location(51246, message));
            };
            keep_one(&mut shown, path, at);
        }
        make(&self.fields, &mut shown, &context.with_root(document))?;
        Ok(shown)
    }

    fn show(&self, name: &str, value: &Value) -> Option<Value> {
        let node = self.fields.iter().find(|(it, _)| it == name).map(|(_, node)| node);
        show(node, value, self.include)
    }
}

fn show(node: Option<&Node>, value: &Value, include: bool) -> Option<Value> {
    match node {
        None => (!include).then(|| value.clone()),
        Some(Node::Leaf) => include.then(|| value.clone()),
        // What an expression makes comes later, at the end of the document or in this place.
        Some(Node::Made(_)) => (!include).then(|| value.clone()),
        Some(Node::Slice(skip, count)) => Some(slice(value, *skip, *count)),
        Some(Node::Element(wanted)) => element(value, wanted),
        Some(Node::Below(below)) => match value {
            Value::Map(fields) => {
                let inside = fields.iter().filter_map(|(name, value)| {
                    let node = below.iter().find(|(it, _)| it == name).map(|(_, node)| node);
                    Some((name.clone(), show(node, value, include)?))
                });
                Some(Value::Map(inside.collect()))
            }
            Value::Array(elements) => {
                let inside = elements.iter().filter_map(|it| show(node, it, include));
                Some(Value::Array(inside.collect()))
            }
            _ => (!include).then(|| value.clone()),
        },
    }
}

fn slice(value: &Value, skip: Option<i64>, count: i64) -> Value {
    let Value::Array(elements) = value else { return value.clone() };
    let length = elements.len() as i64;
    let (from, count) = match skip {
        Some(skip) if skip < 0 => ((length + skip).max(0), count),
        Some(skip) => (skip.min(length), count),
        None if count < 0 => ((length + count).max(0), length),
        None => (0, count),
    };
    Value::Array(elements.iter().skip(from as usize).take(count as usize).cloned().collect())
}

fn element(value: &Value, wanted: &Match) -> Option<Value> {
    let Value::Array(elements) = value else { return None };
    let found = elements.iter().find(|it| {
        let whole = Value::Map(vec![("e".into(), Value::Array(vec![(*it).clone()]))]);
        wanted.matches(&whole) == Ok(true)
    });
    found.map(|it| Value::Array(vec![it.clone()]))
}

fn keep_one(document: &mut Value, path: &str, at: usize) {
    let mut here = document;
    for part in path.split('.') {
        let Value::Map(fields) = here else { return };
        match fields.iter_mut().find(|(name, _)| name == part) {
            Some((_, next)) => here = next,
            None => return,
        }
        if let Value::Array(elements) = here {
            let kept = elements.get(at).cloned();
            *elements = kept.into_iter().collect();
            return;
        }
    }
}

/// Sets what expressions make.
fn make(nodes: &[(String, Node)], into: &mut Value, context: &Context<'_>) -> Result<(), Error> {
    for (name, node) in nodes {
        match node {
            Node::Made(expr) => {
                let value = expr.eval(context)?;
                set(into, name, value);
            }
            Node::Below(below) if makes(below) => make_below(name, below, into, context)?,
            _ => {}
        }
    }
    Ok(())
}

fn makes(nodes: &[(String, Node)]) -> bool {
    nodes.iter().any(|(_, node)| match node {
        Node::Made(_) => true,
        Node::Below(below) => makes(below),
        _ => false,
    })
}

fn make_below(
    name: &str,
    below: &[(String, Node)],
    into: &mut Value,
    context: &Context<'_>,
) -> Result<(), Error> {
    let Value::Map(fields) = into else { return Ok(()) };
    let at = fields.iter().position(|(it, _)| it == name).unwrap_or_else(|| {
        fields.push((name.into(), Value::Map(Vec::new())));
        fields.len() - 1
    });
    make_in(&mut fields[at].1, below, context)
}

fn make_in(
    value: &mut Value,
    below: &[(String, Node)],
    context: &Context<'_>,
) -> Result<(), Error> {
    if let Value::Array(elements) = value {
        return elements.iter_mut().try_for_each(|it| make_in(it, below, context));
    }
    if !matches!(value, Value::Map(_)) {
        *value = Value::Map(Vec::new());
    }
    make(below, value, context)
}

fn set(into: &mut Value, name: &str, value: Option<Value>) {
    let Value::Map(fields) = into else { return };
    match (fields.iter().position(|(it, _)| it == name), value) {
        (Some(at), Some(value)) => fields[at].1 = value,
        (Some(at), None) => drop(fields.remove(at)),
        (None, Some(value)) if name == "_id" => fields.insert(0, (name.into(), value)),
        (None, Some(value)) => fields.push((name.into(), value)),
        (None, None) => {}
    }
}

fn insert(nodes: &mut Vec<(String, Node)>, path: &str, node: Node) -> Result<(), Error> {
    let collision = || Error::location(31250, format!("Path collision at {path}"));
    let Some((name, rest)) = path.split_once('.') else {
        if nodes.iter().any(|(it, _)| it == path) {
            return Err(collision());
        }
        nodes.push((path.into(), node));
        return Ok(());
    };
    if let Some((_, old)) = nodes.iter_mut().find(|(it, _)| it == name) {
        return match old {
            Node::Below(below) => insert(below, rest, node),
            _ => Err(collision()),
        };
    }
    let mut below = Vec::new();
    insert(&mut below, rest, node)?;
    nodes.push((name.into(), Node::Below(below)));
    Ok(())
}

fn node(
    path: &str,
    value: &Value,
    place: Place,
    seen: &mut Seen,
    depth: usize,
) -> Result<Node, Error> {
    if DEPTH_MAX < depth {
        return Err(Error::bad("the projection is nested too deep"));
    }
    if types::is_number(value) || matches!(value, Value::Bool(_)) {
        let side = if types::truth(Some(value)) { &mut seen.include } else { &mut seen.exclude };
        *side = Some(path.into());
        return Ok(Node::Leaf);
    }
    let Value::Map(fields) = value else {
        seen.include = Some(path.into());
        return Ok(Node::Made(Expr::parse(value)?));
    };
    match fields.first() {
        None => Err(Error::location(51270, "An empty sub-projection is not a valid value")),
        Some((name, inside)) if name.starts_with('$') => match (place, name.as_str()) {
            (Place::Find, "$slice") => {
                seen.slice = true;
                of_slice(inside)
            }
            (Place::Find, "$elemMatch") => {
                seen.include = Some(path.into());
                let wanted = Value::Map(vec![("$elemMatch".into(), inside.clone())]);
                let wanted = Match::parse(&Value::Map(vec![("e".into(), wanted)]))?;
                Ok(Node::Element(wanted))
            }
            (_, "$meta") => Err(Error::location(238, "$meta is not offered by this server")),
            _ => {
                seen.include = Some(path.into());
                Ok(Node::Made(Expr::parse(value)?))
            }
        },
        Some(_) => {
            let mut below = Vec::new();
            for (name, inside) in fields {
                let inside = node(&format!("{path}.{name}"), inside, place, seen, depth + 1)?;
                insert(&mut below, name, inside)?;
            }
            Ok(Node::Below(below))
        }
    }
}

fn of_slice(value: &Value) -> Result<Node, Error> {
    let bad = || Error::location(28667, "$slice takes a number or an array of two numbers");
    let number = |it: &Value| types::float(it).map(|it| it as i64).ok_or_else(bad);
    match value {
        Value::Array(pair) => match pair.as_slice() {
            [skip, count] => {
                let count = number(count)?;
                if count <= 0 {
                    return Err(Error::location(28729, "$slice limit must be positive"));
                }
                Ok(Node::Slice(Some(number(skip)?), count))
            }
            _ => Err(bad()),
        },
        _ => Ok(Node::Slice(None, number(value)?)),
    }
}

/// Parsed `$addFields`.
#[derive(Clone, Debug)]
pub struct Additions {
    fields: Vec<(String, Node)>,
}

impl Additions {
    /// Parses `{a: expression, "b.c": expression}`.
    pub fn parse(spec: &Value) -> Result<Additions, Error> {
        let Value::Map(fields) = spec else {
            let message = "$addFields specification stage must be an object";
            return Err(Error::location(40272, message));
        };
        let mut nodes = Vec::new();
        for (path, value) in fields {
            if path.is_empty() || path.starts_with('$') || path.ends_with('.') {
                let message = "FieldPath field names may not start with '$' or be empty.";
                return Err(Error::location(16410, message));
            }
            insert(&mut nodes, path, addition(value, 0)?)?;
        }
        Ok(Additions { fields: nodes })
    }

    /// `document` with the fields.
    pub fn apply(&self, mut document: Value, context: &Context<'_>) -> Result<Value, Error> {
        let before = document.clone();
        make(&self.fields, &mut document, &context.with_root(&before))?;
        Ok(document)
    }
}

fn addition(value: &Value, depth: usize) -> Result<Node, Error> {
    if DEPTH_MAX < depth {
        return Err(Error::bad("the stage is nested too deep"));
    }
    match value {
        Value::Map(fields)
            if !fields.is_empty() && !fields.iter().any(|(name, _)| name.starts_with('$')) =>
        {
            let mut below = Vec::new();
            for (name, inside) in fields {
                insert(&mut below, name, addition(inside, depth + 1)?)?;
            }
            Ok(Node::Below(below))
        }
        _ => Ok(Node::Made(Expr::parse(value)?)),
    }
}
