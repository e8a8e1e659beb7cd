//! MongoDB's language on values: filters, updates, projections, sorts, expressions and pipelines.
//!
//! Pure: a pipeline that reads another collection asks its caller, and time and randomness are
//! arguments. Nothing here knows a store, a socket or BSON. Errors carry the codes that MongoDB's
//! clients look at.
//!
//! Read [`matcher`] first, then [`expr`], [`project`], [`update`] and [`pipeline`].
#![expect(clippy::single_match_else, reason = "two-armed matches read as tables")]

pub mod error;
pub mod expr;
pub mod group;
pub mod json;
pub mod matcher;
pub mod pattern;
pub mod pipeline;
pub mod project;
pub mod sort;
pub mod types;
pub mod update;

pub use error::{Code, Error};
pub use expr::{Context, Expr};
pub use matcher::Match;
pub use pipeline::{Host, Pipeline, Run, Stage};
pub use project::Projection;
pub use sort::Sort;
pub use update::{Situation, Update};
