//! Aggregation pipelines.
//!
//! Documents are pushed through the stages one by one; a stage that must see all of them first
//! (`$sort`, `$group`, `$facet`, `$sample`) keeps what it needs and goes on at the end. A stage that
//! reads other collections asks the [`Host`].

mod parse;
mod run;

use kumiko_base::Value;

use crate::expr::{Context, Expr};
use crate::group::Group;
use crate::matcher::Match;
use crate::project::{Additions, Projection};
use crate::sort::Sort;
use crate::{Code, Error};
pub use run::Run;

/// How much a stage, or the result, may hold in memory.
pub const MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a pipeline needs of the world around it.
pub trait Host {
    /// The documents of a collection of the same database that pass `filter`.
    fn find(&mut self, collection: &str, filter: &Match) -> Result<Vec<Value>, Error>;

    /// Random bits, for `$sample`.
    fn random(&mut self) -> u64;
}

/// One stage.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Lets documents through that pass.
    Match(Match),
    /// Shows fields.
    Project(Projection),
    /// Adds fields.
    Add(Additions),
    /// Puts in order; keeps so many.
    Sort(Sort, Option<u64>),
    /// Lets so many through.
    Limit(u64),
    /// Leaves so many out.
    Skip(u64),
    /// Groups.
    Group(Group),
    /// One document for each element of an array.
    Unwind {
        /// The array.
        path: String,
        /// Documents without elements go through too.
        keep_empty: bool,
        /// The field that gets the element's place.
        index: Option<String>,
    },
    /// Puts documents of another collection into an array.
    Lookup(Lookup),
    /// Counts.
    Count(String),
    /// Several pipelines on the same documents.
    Facet(Vec<(String, Pipeline)>),
    /// A part of the document in place of it.
    Replace(Expr),
    /// So many at random.
    Sample(u64),
    /// Then the documents of another collection.
    Union(String, Pipeline),
    /// Writes the result to a collection; always last. The caller does it.
    Write(String, Value),
}

/// A parsed `$lookup`.
#[derive(Clone, Debug)]
pub struct Lookup {
    from: String,
    local: Option<String>,
    foreign: Option<String>,
    variables: Vec<(String, Expr)>,
    pipeline: Option<Pipeline>,
    into: String,
}

/// A parsed pipeline.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// The stages, in order.
    pub stages: Vec<Stage>,
}

impl Pipeline {
    /// Parses a pipeline.
    pub fn parse(stages: &[Value]) -> Result<Pipeline, Error> {
        parse::pipeline(stages, 0)
    }

    /// The filter that the first stages are, and how many they are. What it lets through need not be
    /// looked at again by those stages.
    pub fn lead(&self) -> (Match, usize) {
        let filters: Vec<Match> = self
            .stages
            .iter()
            .map_while(|stage| match stage {
                Stage::Match(filter) => Some(filter.clone()),
                _ => None,
            })
            .collect();
        let count = filters.len();
        (Match::All(filters), count)
    }

    /// Where the result is to be written, if it is: the stage's name and its document.
    pub fn target(&self) -> Option<(&str, &Value)> {
        match self.stages.last() {
            Some(Stage::Write(name, spec)) => Some((name, spec)),
            _ => None,
        }
    }

    /// What the pipeline makes of one document, for updates.
    pub fn one(&self, document: Value, context: &Context<'_>) -> Result<Value, Error> {
        struct Alone;
        impl Host for Alone {
            fn find(&mut self, _: &str, _: &Match) -> Result<Vec<Value>, Error> {
                Err(Error::new(Code::NOT_IMPLEMENTED, "an update reads no other collection"))
            }
            fn random(&mut self) -> u64 {
                0
            }
        }
        let mut run = Run::new(&self.stages, context);
        run.push(&mut Alone, document)?;
        let mut all = run.finish(&mut Alone)?;
        match (all.pop(), all.is_empty()) {
            (Some(new), true) => Ok(new),
            _ => Err(Error::bad("an update's pipeline must give one document")),
        }
    }
}
