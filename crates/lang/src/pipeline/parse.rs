//! Pipelines from their documents.

use kumiko_base::Value;
use kumiko_document::path::field;

use super::{Lookup, Pipeline, Stage};
use crate::expr::Expr;
use crate::group::Group;
use crate::matcher::Match;
use crate::project::{Additions, Place, Projection};
use crate::sort::Sort;
use crate::{Code, Error, types};

/// How deep pipelines may nest.
const DEPTH_MAX: usize = 20;
/// The most stages.
const STAGES_MAX: usize = 1_000;

pub(super) fn pipeline(stages: &[Value], depth: usize) -> Result<Pipeline, Error> {
    if DEPTH_MAX < depth {
        return Err(Error::location(51047, "pipelines are nested too deep"));
    }
    if STAGES_MAX < stages.len() {
        let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages");
        return Err(Error::location(7_749_501, message));
    }
    let mut parsed: Vec<Stage> = Vec::new();
    for stage in stages {
        let Value::Map(fields) = stage else {
            let message = "Each element of the 'pipeline' array must be an object";
            return Err(Error::new(Code::TYPE_MISMATCH, message));
        };
        let [(name, spec)] = fields.as_slice() else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Error::location(40323, message));
        };
        if matches!(parsed.last(), Some(Stage::Write(..))) {
            let message = "$out and $merge can only be the final stage in the pipeline";
            return Err(Error::location(40601, message));
        }
        one(name, spec, depth, &mut parsed)?;
    }
    Ok(Pipeline { stages: join_sorts(parsed) })
}

/// A limit right after a sort is the sort's: it need not keep more.
fn join_sorts(stages: Vec<Stage>) -> Vec<Stage> {
    let mut joined: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages {
        if let (Some(Stage::Sort(_, keep @ None)), Stage::Limit(count)) =
            (joined.last_mut(), &stage)
        {
            *keep = Some(*count);
        }
        joined.push(stage);
    }
    joined
}

fn one(name: &str, spec: &Value, depth: usize, into: &mut Vec<Stage>) -> Result<(), Error> {
    let stage = match name {
        "$match" => match spec {
            Value::Map(_) => Stage::Match(Match::parse(spec)?),
            _ => {
                let message = "the match filter must be an expression in an object";
                return Err(Error::location(15959, message));
            }
        },
        "$project" => Stage::Project(Projection::parse(spec, Place::Stage)?),
        "$addFields" | "$set" => Stage::Add(Additions::parse(spec)?),
        "$unset" => Stage::Project(Projection::without(&names(spec)?)?),
        "$sort" => match spec {
            Value::Map(fields) if fields.is_empty() => {
                return Err(Error::location(15976, "$sort stage must have at least one sort key"));
            }
            _ => Stage::Sort(Sort::parse(spec)?, None),
        },
        "$limit" => match count(spec) {
            Some(0) => return Err(Error::location(15958, "the limit must be positive")),
            Some(count) => Stage::Limit(count),
            None => {
                let message = "invalid argument to $limit stage: Expected a non-negative number";
                return Err(Error::location(5_107_201, message));
            }
        },
        "$skip" => match count(spec) {
            Some(count) => Stage::Skip(count),
            None => {
                let message = "invalid argument to $skip stage: Expected a non-negative number";
                return Err(Error::location(5_107_200, message));
            }
        },
        "$group" => Stage::Group(Group::parse(spec)?),
        "$unwind" => unwind(spec)?,
        "$lookup" => Stage::Lookup(lookup(spec, depth)?),
        "$count" => count_stage(spec)?,
        "$facet" => facet(spec, depth)?,
        "$replaceRoot" => match field(spec, "newRoot") {
            Some(root) => Stage::Replace(Expr::parse(root)?),
            None => return Err(Error::location(40231, "no newRoot specified for $replaceRoot")),
        },
        "$replaceWith" => Stage::Replace(Expr::parse(spec)?),
        "$sample" => match field(spec, "size").and_then(count) {
            Some(size) if 0 < size => Stage::Sample(size),
            _ => return Err(Error::location(28747, "size argument to $sample must be positive")),
        },
        "$sortByCount" => {
            into.push(Stage::Group(Group::count_by(spec)?));
            Stage::Sort(Sort { paths: vec![("count".into(), true)] }, None)
        }
        "$bucket" => return bucket(spec, into),
        "$unionWith" => union(spec, depth)?,
        "$out" | "$merge" => Stage::Write(name.into(), spec.clone()),
        _ => {
            let message = format!("Unrecognized pipeline stage name: '{name}'");
            return Err(Error::location(40324, message));
        }
    };
    into.push(stage);
    Ok(())
}

fn count(value: &Value) -> Option<u64> {
    types::integer(value).filter(|_| types::is_number(value)).and_then(|it| u64::try_from(it).ok())
}

fn names(spec: &Value) -> Result<Vec<String>, Error> {
    let bad =
        || Error::location(31002, "$unset specification must be a string or an array of strings");
    match spec {
        Value::Text(name) => Ok(vec![name.clone()]),
        Value::Array(list) if !list.is_empty() => list
            .iter()
            .map(|it| match it {
                Value::Text(name) => Ok(name.clone()),
                _ => Err(bad()),
            })
            .collect(),
        _ => Err(bad()),
    }
}

fn unwind(spec: &Value) -> Result<Stage, Error> {
    let path = match spec {
        Value::Text(_) => Some(spec),
        _ => field(spec, "path"),
    };
    let Some(Value::Text(path)) = path else {
        return Err(Error::location(28812, "no path specified to $unwind stage"));
    };
    let Some(path) = path.strip_prefix('$').filter(|it| !it.is_empty()) else {
        let message = format!("path option to $unwind stage should be prefixed with a '$': {path}");
        return Err(Error::location(28818, message));
    };
    let index = match field(spec, "includeArrayIndex") {
        Some(Value::Text(name)) if !name.is_empty() && !name.starts_with('$') => Some(name.clone()),
        Some(_) => {
            let message = "includeArrayIndex option to $unwind stage must be a field name";
            return Err(Error::location(28810, message));
        }
        None => None,
    };
    let keep_empty = types::truth(field(spec, "preserveNullAndEmptyArrays"));
    Ok(Stage::Unwind { path: path.into(), keep_empty, index })
}

fn text(spec: &Value, name: &str) -> Result<Option<String>, Error> {
    match field(spec, name) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.clone())),
        Some(_) => {
            let message = format!("$lookup argument '{name}' must be a string");
            Err(Error::new(Code::FAILED_TO_PARSE, message))
        }
    }
}

fn lookup(spec: &Value, depth: usize) -> Result<Lookup, Error> {
    let missing = |what: &str| {
        Error::new(Code::FAILED_TO_PARSE, format!("must specify '{what}' field for a $lookup"))
    };
    let from = text(spec, "from")?.ok_or_else(|| missing("from"))?;
    let into = text(spec, "as")?.ok_or_else(|| missing("as"))?;
    let (local, foreign) = (text(spec, "localField")?, text(spec, "foreignField")?);
    let inside = match field(spec, "pipeline") {
        None => None,
        Some(Value::Array(stages)) => Some(pipeline(stages, depth + 1)?),
        Some(_) => {
            let message = "'pipeline' option must be specified as an array";
            return Err(Error::new(Code::TYPE_MISMATCH, message));
        }
    };
    if local.is_some() != foreign.is_some() || (local.is_none() && inside.is_none()) {
        let message =
            "$lookup requires both or neither of 'localField' and 'foreignField' to be specified";
        return Err(Error::new(Code::FAILED_TO_PARSE, message));
    }
    let variables = match field(spec, "let") {
        None => Vec::new(),
        Some(Value::Map(fields)) => fields
            .iter()
            .map(|(name, value)| Ok((name.clone(), Expr::parse(value)?)))
            .collect::<Result<_, Error>>()?,
        Some(_) => {
            let message = "$lookup argument 'let' must be an object";
            return Err(Error::new(Code::FAILED_TO_PARSE, message));
        }
    };
    Ok(Lookup { from, local, foreign, variables, pipeline: inside, into })
}

fn count_stage(spec: &Value) -> Result<Stage, Error> {
    match spec {
        Value::Text(name) if !name.is_empty() && !name.starts_with('$') && !name.contains('.') => {
            Ok(Stage::Count(name.clone()))
        }
        _ => Err(Error::location(40156, "the count field must be a non-empty string")),
    }
}

fn facet(spec: &Value, depth: usize) -> Result<Stage, Error> {
    let Value::Map(fields) = spec else {
        let message = "the $facet specification must be a non-empty object";
        return Err(Error::location(40169, message));
    };
    if fields.is_empty() {
        let message = "the $facet specification must be a non-empty object";
        return Err(Error::location(40169, message));
    }
    let facets = fields.iter().map(|(name, stages)| match stages {
        Value::Array(stages) => Ok((name.clone(), pipeline(stages, depth + 1)?)),
        _ => Err(Error::location(40170, "arguments to $facet must be arrays")),
    });
    Ok(Stage::Facet(facets.collect::<Result<_, Error>>()?))
}

fn union(spec: &Value, depth: usize) -> Result<Stage, Error> {
    if let Value::Text(name) = spec {
        return Ok(Stage::Union(name.clone(), Pipeline::default()));
    }
    let inside = match field(spec, "pipeline") {
        Some(Value::Array(stages)) => pipeline(stages, depth + 1)?,
        _ => Pipeline::default(),
    };
    match field(spec, "coll") {
        Some(Value::Text(name)) => Ok(Stage::Union(name.clone(), inside)),
        _ => Err(Error::new(Code::FAILED_TO_PARSE, "$unionWith needs a collection")),
    }
}

/// `$bucket` is a group by the lower bound of each document's bucket.
fn bucket(spec: &Value, into: &mut Vec<Stage>) -> Result<(), Error> {
    let (Some(by), Some(Value::Array(bounds))) =
        (field(spec, "groupBy"), field(spec, "boundaries"))
    else {
        let message = "$bucket requires 'groupBy' and 'boundaries' to be specified.";
        return Err(Error::location(40198, message));
    };
    let rising = |pair: &[Value]| kumiko_document::order::compare(&pair[0], &pair[1]).is_lt();
    if bounds.len() < 2 || !bounds.windows(2).all(rising) {
        let message =
            "The $bucket 'boundaries' field must have at least 2 values, in ascending order";
        return Err(Error::location(40192, message));
    }
    let literal = |value: &Value| Value::Map(vec![("$literal".into(), value.clone())]);
    let call = |name: &str, a: &Value, b: Value| {
        Value::Map(vec![(name.into(), Value::Array(vec![a.clone(), b]))])
    };
    let branches = bounds.windows(2).map(|pair| {
        let inside = vec![call("$gte", by, literal(&pair[0])), call("$lt", by, literal(&pair[1]))];
        Value::Map(vec![
            ("case".into(), Value::Map(vec![("$and".into(), Value::Array(inside))])),
            ("then".into(), literal(&pair[0])),
        ])
    });
    let mut switch = vec![("branches".to_string(), Value::Array(branches.collect()))];
    if let Some(default) = field(spec, "default") {
        switch.push(("default".into(), literal(default)));
    }
    let id = Expr::parse(&Value::Map(vec![("$switch".into(), Value::Map(switch))]))?;
    into.push(Stage::Group(Group::with_output(id, field(spec, "output"))?));
    into.push(Stage::Sort(Sort { paths: vec![("_id".into(), false)] }, None));
    Ok(())
}
