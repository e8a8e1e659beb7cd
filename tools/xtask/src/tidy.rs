//! The checks, one file each. A check takes the whole tree and says what is wrong, and where.

use crate::source::{Problem, Source};

mod banned;
mod keys;
mod layers;
mod length;
mod links;
mod text;

/// Everything that is wrong, by path and line.
pub(crate) fn check(sources: &[Source]) -> Vec<Problem> {
    let checks =
        [layers::check, length::check, banned::check, links::check, keys::check, text::check];
    let mut problems: Vec<Problem> = checks.iter().flat_map(|check| check(sources)).collect();
    problems.sort();
    problems
}

/// The directory of a crate below `crates/` or `tools/`, and the path inside it.
fn crate_of(path: &str) -> Option<(&str, &str)> {
    let inside = path.strip_prefix("crates/").or_else(|| path.strip_prefix("tools/"))?;
    inside.split_once('/')
}
