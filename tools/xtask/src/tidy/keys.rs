//! Key categories: registered once, in one place, and documented.

use std::collections::BTreeMap;

use crate::source::{Problem, Source};

const REGISTER: &str = "crates/base/src/category.rs";
const DOCUMENT: &str = "docs/format/keys.md";

pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut problems = headers_elsewhere(sources);
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    let Some(register) = find(REGISTER) else { return problems };
    let letters = registered(register);
    for (letter, lines) in &letters {
        if let [_, again, ..] = lines.as_slice() {
            let what = format!("category {letter} is registered twice");
            problems.push(register.problem(*again, what));
        }
    }
    let Some(document) = find(DOCUMENT) else {
        problems.push(register.problem(1, format!("{DOCUMENT} is missing")));
        return problems;
    };
    let documented = documented(document);
    for (letter, lines) in &letters {
        match documented.get(letter).map(Vec::as_slice) {
            None => {
                let what = format!("category {letter} is not in the table of {DOCUMENT}");
                problems.push(register.problem(lines[0], what));
            }
            Some([_, again, ..]) => {
                let what = format!("category {letter} is documented twice");
                problems.push(document.problem(*again, what));
            }
            Some(_) => {}
        }
    }
    for (letter, lines) in &documented {
        if !letters.contains_key(letter) {
            let what = format!("category {letter} is not in the register");
            problems.push(document.problem(lines[0], what));
        }
    }
    problems
}

type Letters = BTreeMap<char, Vec<usize>>;

/// The letters of rows such as `row(C::Database, b'D', ..`.
fn registered(source: &Source) -> Letters {
    let mut letters = Letters::new();
    for (index, line) in source.text.lines().enumerate() {
        let row = line.split_once("row(C::").and_then(|(_, row)| row.split_once("b'"));
        if let Some(letter) = row.and_then(|(_, rest)| rest.chars().next()) {
            letters.entry(letter).or_default().push(index + 1);
        }
    }
    letters
}

/// The letters of table rows whose first cell is a single capital, with or without backticks.
fn documented(source: &Source) -> Letters {
    let mut letters = Letters::new();
    for (index, line) in source.text.lines().enumerate() {
        let cell = line.strip_prefix('|').and_then(|row| row.split('|').next());
        let cell = cell.unwrap_or_default().trim().trim_matches('`');
        let mut chars = cell.chars();
        if let (Some(letter @ 'A'..='Z'), None) = (chars.next(), chars.next()) {
            letters.entry(letter).or_default().push(index + 1);
        }
    }
    letters
}

/// Headers written by hand: byte strings of a capital and the numbers that headers have.
fn headers_elsewhere(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let elsewhere = |source: &&Source| {
        source.is_rust()
            && source.path.contains("/src/")
            && !source.path.starts_with("crates/base/")
    };
    for source in sources.iter().filter(elsewhere) {
        for (index, line) in source.text.lines().enumerate() {
            let by_hand = ('A'..='Z').any(|letter| {
                [1, 2].iter().any(|format| line.contains(&format!("b\"{letter}\\x1{format}\"")))
            });
            if by_hand {
                let what = "a key header by hand: take it from base::Category";
                problems.push(source.problem(index + 1, what));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{source, words};

    const ROWS: &str = "    row(C::Database,   b'D', 1),\n    row(C::Index, b'I', 2),\n";

    #[test]
    fn register_and_document_agree() {
        let document = "| letter | owner |\n|---|---|\n| `D` | x |\n| I | y |\n";
        assert_eq!(check(&[source(REGISTER, ROWS), source(DOCUMENT, document)]), []);
    }

    #[test]
    fn differences_are_found() {
        let rows = format!("{ROWS}    row(C::Again, b'D', 1),\n");
        let found = check(&[source(REGISTER, &rows), source(DOCUMENT, "| D | x |\n| X | y |\n")]);
        assert_eq!(
            words(&found),
            [
                "crates/base/src/category.rs:3: category D is registered twice",
                "crates/base/src/category.rs:2: category I is not in the table of \
                 docs/format/keys.md",
                "docs/format/keys.md:2: category X is not in the register",
            ]
        );
        let found = check(&[source(REGISTER, ROWS)]);
        assert_eq!(
            words(&found),
            ["crates/base/src/category.rs:1: docs/format/keys.md is missing"]
        );
    }

    #[test]
    fn headers_by_hand_are_found() {
        let by_hand = source("crates/document/src/a.rs", "let h = b\"O\\x11\";\n");
        let what = "crates/document/src/a.rs:1: a key header by hand: take it from base::Category";
        assert_eq!(words(&check(&[by_hand])), [what]);
    }
}
