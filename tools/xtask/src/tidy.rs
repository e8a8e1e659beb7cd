//! The checks, one file each. A check takes the whole tree and says what is wrong, and where.

use std::collections::BTreeSet;

use crate::code::strip;
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

/// The files of tests: below `tests/`, and those that `#[cfg(test)] mod name;` brings in.
fn test_files(sources: &[Source]) -> BTreeSet<String> {
    let outside = |source: &&Source| !source.path.contains("/src/");
    let mut files: BTreeSet<String> =
        sources.iter().filter(outside).map(|source| source.path.clone()).collect();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let code = strip(&source.text);
        for (at, attribute) in code.match_indices("#[cfg(test)]") {
            let rest = code[at + attribute.len()..].trim_start();
            let rest = rest.strip_prefix("pub(crate) ").unwrap_or(rest);
            let Some(rest) = rest.strip_prefix("mod ") else { continue };
            let Some(end) = rest.find([';', '{']) else { continue };
            if rest[end..].starts_with(';') {
                let module = format!("{}{}", children_of(&source.path), rest[..end].trim());
                let below = format!("{module}/");
                files.insert(format!("{module}.rs"));
                let inside = sources.iter().filter(|other| other.path.starts_with(&below));
                files.extend(inside.map(|other| other.path.clone()));
            }
        }
    }
    files
}

/// Where the modules of a file are.
fn children_of(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((dir, "lib.rs" | "main.rs")) => format!("{dir}/"),
        _ => format!("{}/", path.trim_end_matches(".rs")),
    }
}
