//! A pipeline under way.

use kumiko_base::Value;
use kumiko_document::order;
use kumiko_document::path;

use super::{Host, Lookup, MEMORY_BYTES_MAX, Pipeline, Stage};
use crate::expr::Context;
use crate::group::Groups;
use crate::matcher::{Leaf, Match};
use crate::sort::Sort;
use crate::{Code, Error, types};

/// A sort with a limit drops the rest whenever it holds this many times the limit.
const SORT_SLACK: u64 = 4;

/// What a stage keeps between documents.
#[derive(Debug)]
enum Kept {
    Nothing,
    Count(u64),
    Documents(Vec<Value>, usize),
    Groups(Box<Groups>),
    /// The other collection of a lookup whose filter depends on no document.
    Other(Option<Vec<Value>>),
}

/// A pipeline under way.
#[derive(Debug)]
pub struct Run<'a> {
    stages: &'a [Stage],
    kept: Vec<Kept>,
    context: Context<'a>,
    out: Vec<Value>,
    bytes: usize,
    full: bool,
}

impl<'a> Run<'a> {
    /// Begins to run `stages`.
    pub fn new(stages: &'a [Stage], context: &Context<'a>) -> Run<'a> {
        let kept = stages.iter().map(|stage| match stage {
            Stage::Limit(_) | Stage::Skip(_) | Stage::Count(_) => Kept::Count(0),
            Stage::Sort(..) | Stage::Facet(_) | Stage::Sample(_) => Kept::Documents(Vec::new(), 0),
            Stage::Group(_) => Kept::Groups(Box::default()),
            Stage::Lookup(_) => Kept::Other(None),
            _ => Kept::Nothing,
        });
        Run {
            stages,
            kept: kept.collect(),
            context: context.clone(),
            out: Vec::new(),
            bytes: 0,
            full: false,
        }
    }

    /// Takes in one document. False if no more are needed.
    pub fn push(&mut self, host: &mut dyn Host, document: Value) -> Result<bool, Error> {
        self.step(host, 0, document)?;
        Ok(!self.full)
    }

    /// Ends: what came out, in order.
    pub fn finish(mut self, host: &mut dyn Host) -> Result<Vec<Value>, Error> {
        for at in 0..self.stages.len() {
            self.end(host, at)?;
        }
        Ok(self.out)
    }

    /// Takes what came out so far.
    pub fn take(&mut self) -> Vec<Value> {
        self.bytes = 0;
        std::mem::take(&mut self.out)
    }

    fn step(&mut self, host: &mut dyn Host, at: usize, document: Value) -> Result<(), Error> {
        let stages = self.stages;
        let Some(stage) = stages.get(at) else {
            self.bytes += types::size(&document);
            self.out.push(document);
            return check_memory(self.bytes);
        };
        let next = match stage {
            Stage::Match(filter) => {
                if !filter.matches_with(&document, &self.context)? {
                    return Ok(());
                }
                document
            }
            Stage::Project(projection) => projection.apply(&document, &self.context, None)?,
            Stage::Add(additions) => additions.apply(document, &self.context)?,
            Stage::Replace(expr) => match expr.eval(&self.context.with_root(&document))? {
                Some(map @ Value::Map(_)) => map,
                other => {
                    let kind = types::type_name(other.as_ref());
                    let message = format!(
                        "'newRoot' expression must evaluate to an object, but resulting value was of type {kind}"
                    );
                    return Err(Error::location(40228, message));
                }
            },
            Stage::Lookup(lookup) => self.look_up(host, at, lookup, document)?,
            Stage::Unwind { path, keep_empty, index } => {
                return self.unwind(host, at, document, path, *keep_empty, index.as_deref());
            }
            Stage::Union(..) | Stage::Write(..) => document,
            _ => match self.keep(at, stage, document)? {
                Some(document) => document,
                None => return Ok(()),
            },
        };
        self.step(host, at + 1, next)
    }

    /// Stages that count or collect: the document if it goes on at once.
    fn keep(&mut self, at: usize, stage: &Stage, document: Value) -> Result<Option<Value>, Error> {
        match (stage, &mut self.kept[at]) {
            (Stage::Limit(limit), Kept::Count(count)) => {
                *count += 1;
                let last = *limit <= *count;
                let within = *count <= *limit;
                // Only if nothing before still has to see documents may the source stop.
                if last && self.stages[..at].iter().all(passes) {
                    self.full = true;
                }
                Ok(within.then_some(document))
            }
            (Stage::Skip(skip), Kept::Count(count)) => {
                *count += 1;
                Ok((*skip < *count).then_some(document))
            }
            (Stage::Count(_), Kept::Count(count)) => {
                *count += 1;
                Ok(None)
            }
            (Stage::Group(group), Kept::Groups(groups)) => {
                groups.take(group, &document, &self.context)?;
                check_memory(groups.bytes)?;
                Ok(None)
            }
            (stage, Kept::Documents(documents, bytes)) => {
                *bytes += types::size(&document);
                documents.push(document);
                if let Stage::Sort(sort, Some(limit)) = stage
                    && limit.saturating_mul(SORT_SLACK).max(1000) < documents.len() as u64
                {
                    sort_and_keep(sort, Some(*limit), documents);
                    *bytes = documents.iter().map(types::size).sum();
                }
                check_memory(*bytes)?;
                Ok(None)
            }
            _ => Ok(Some(document)),
        }
    }

    fn end(&mut self, host: &mut dyn Host, at: usize) -> Result<(), Error> {
        let stages = self.stages;
        let kept = std::mem::replace(&mut self.kept[at], Kept::Nothing);
        match (&stages[at], kept) {
            (Stage::Sort(sort, limit), Kept::Documents(mut documents, _)) => {
                sort_and_keep(sort, *limit, &mut documents);
                documents.into_iter().try_for_each(|it| self.step(host, at + 1, it))
            }
            (Stage::Sample(size), Kept::Documents(mut documents, _)) => {
                let size = (*size as usize).min(documents.len());
                for n in 0..size {
                    let other = n as u64 + host.random() % (documents.len() - n) as u64;
                    documents.swap(n, other as usize);
                }
                documents.truncate(size);
                documents.into_iter().try_for_each(|it| self.step(host, at + 1, it))
            }
            (Stage::Facet(facets), Kept::Documents(documents, _)) => {
                let mut fields = Vec::new();
                for (name, pipeline) in facets {
                    let context = self.context.clone();
                    let found = run_all(host, pipeline, &documents, &context)?;
                    fields.push((name.clone(), Value::Array(found)));
                }
                self.step(host, at + 1, Value::Map(fields))
            }
            (Stage::Group(group), Kept::Groups(groups)) => {
                groups.finish(group).try_for_each(|it| self.step(host, at + 1, it))
            }
            (Stage::Count(name), Kept::Count(count)) if 0 < count => {
                let count = i32::try_from(count).map_or(Value::I64(count as i64), Value::I32);
                self.step(host, at + 1, Value::Map(vec![(name.clone(), count)]))
            }
            (Stage::Union(collection, pipeline), _) => {
                let (filter, lead) = pipeline.lead();
                let documents = host.find(collection, &filter)?;
                let rest = Pipeline { stages: pipeline.stages[lead..].to_vec() };
                let context = self.context.clone();
                let found = run_all(host, &rest, &documents, &context)?;
                found.into_iter().try_for_each(|it| self.step(host, at + 1, it))
            }
            _ => Ok(()),
        }
    }

    fn unwind(
        &mut self,
        host: &mut dyn Host,
        at: usize,
        document: Value,
        path: &str,
        keep_empty: bool,
        index: Option<&str>,
    ) -> Result<(), Error> {
        let indexed = |mut document: Value, place: Value| {
            if let Some(name) = index {
                set(&mut document, name, Some(place));
            }
            document
        };
        match path::plain_maps(&document, path).cloned() {
            Some(Value::Array(elements)) if !elements.is_empty() => {
                for (n, element) in elements.into_iter().enumerate() {
                    let mut one = document.clone();
                    set(&mut one, path, Some(element));
                    self.step(host, at + 1, indexed(one, Value::I64(n as i64)))?;
                }
                Ok(())
            }
            Some(Value::Array(_)) if keep_empty => {
                let mut one = document;
                set(&mut one, path, None);
                self.step(host, at + 1, indexed(one, Value::Null))
            }
            None | Some(Value::Null) if keep_empty => {
                self.step(host, at + 1, indexed(document, Value::Null))
            }
            None | Some(Value::Null | Value::Array(_)) => Ok(()),
            Some(_) => self.step(host, at + 1, indexed(document, Value::Null)),
        }
    }

    fn look_up(
        &mut self,
        host: &mut dyn Host,
        at: usize,
        lookup: &Lookup,
        mut document: Value,
    ) -> Result<Value, Error> {
        let empty = Pipeline::default();
        let pipeline = lookup.pipeline.as_ref().unwrap_or(&empty);
        let found = match (&lookup.local, &lookup.foreign) {
            (Some(local), Some(foreign)) => {
                let filter = equal_to(&document, local, foreign);
                host.find(&lookup.from, &filter)?
            }
            _ => {
                if let Kept::Other(other @ None) = &mut self.kept[at] {
                    let (filter, _) = pipeline.lead();
                    let plain = !mentions_expression(&filter);
                    let filter = if plain { filter } else { Match::All(Vec::new()) };
                    *other = Some(host.find(&lookup.from, &filter)?);
                }
                match &self.kept[at] {
                    Kept::Other(Some(documents)) => documents.clone(),
                    _ => Vec::new(),
                }
            }
        };
        let found = if pipeline.stages.is_empty() {
            found
        } else {
            let context = self.context.with_root(&document);
            let mut variables = Vec::new();
            for (name, expr) in &lookup.variables {
                variables.push((name.clone(), expr.eval(&context)?.unwrap_or(Value::Null)));
            }
            let empty = Value::Map(Vec::new());
            let context = context.with(variables).with_root(&empty);
            run_all(host, pipeline, &found, &context)?
        };
        set(&mut document, &lookup.into, Some(Value::Array(found)));
        Ok(document)
    }
}

fn run_all(
    host: &mut dyn Host,
    pipeline: &Pipeline,
    documents: &[Value],
    context: &Context<'_>,
) -> Result<Vec<Value>, Error> {
    let mut run = Run::new(&pipeline.stages, context);
    for document in documents {
        if !run.push(host, document.clone())? {
            break;
        }
    }
    run.finish(host)
}

fn passes(stage: &Stage) -> bool {
    !matches!(
        stage,
        Stage::Sort(..)
            | Stage::Group(_)
            | Stage::Facet(_)
            | Stage::Sample(_)
            | Stage::Count(_)
            | Stage::Union(..)
    )
}

fn sort_and_keep(sort: &Sort, limit: Option<u64>, documents: &mut Vec<Value>) {
    sort.sort(documents);
    if let Some(limit) = limit {
        documents.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
}

fn check_memory(bytes: usize) -> Result<(), Error> {
    if MEMORY_BYTES_MAX < bytes {
        let message = format!("a stage needs more than {MEMORY_BYTES_MAX} bytes of memory");
        return Err(Error::new(Code::MEMORY_EXCEEDED, message));
    }
    Ok(())
}

/// The filter for documents whose `foreign` equals what `local` finds, or one of its elements.
fn equal_to(document: &Value, local: &str, foreign: &str) -> Match {
    let mut values: Vec<Value> = Vec::new();
    path::visit(document, local, &mut |value| {
        match value {
            None => values.push(Value::Null),
            Some(Value::Array(elements)) => values.extend(elements.iter().cloned()),
            Some(value) => values.push(value.clone()),
        }
        false
    });
    if values.is_empty() && !matches!(path::plain(document, local), Some(Value::Array(_))) {
        values.push(Value::Null);
    }
    values.sort_by(order::compare);
    values.dedup_by(|a, b| order::equal(a, b));
    Match::Leaf(foreign.into(), Leaf::In(values, Vec::new()))
}

fn mentions_expression(filter: &Match) -> bool {
    match filter {
        Match::All(all) | Match::Any(all) | Match::None(all) => all.iter().any(mentions_expression),
        Match::Leaf(..) => false,
        Match::Expr(_) => true,
    }
}

/// Sets or removes what is at a dotted path, making maps on the way.
fn set(document: &mut Value, path: &str, value: Option<Value>) {
    let Value::Map(fields) = document else { return };
    let (part, rest) = path.split_once('.').map_or((path, None), |(it, rest)| (it, Some(rest)));
    let at = fields.iter().position(|(name, _)| name == part);
    match (at, rest, value) {
        (Some(at), None, Some(value)) => fields[at].1 = value,
        (Some(at), None, None) => drop(fields.remove(at)),
        (Some(at), Some(rest), value) => {
            if !matches!(fields[at].1, Value::Map(_)) && value.is_some() {
                fields[at].1 = Value::Map(Vec::new());
            }
            set(&mut fields[at].1, rest, value);
        }
        (None, None, Some(value)) => fields.push((part.into(), value)),
        (None, Some(rest), Some(value)) => {
            let mut inside = Value::Map(Vec::new());
            set(&mut inside, rest, Some(value));
            fields.push((part.into(), inside));
        }
        (None, _, None) => {}
    }
}
