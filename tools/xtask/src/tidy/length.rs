//! How long files, functions and lines are.

use crate::code::{block_end, line_of, strip, words_at};
use crate::source::{Problem, Source};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let lines = source.text.lines().count();
        if FILE_LINES_MAX < lines {
            let what = format!("the file has {lines} lines, the limit is {FILE_LINES_MAX}");
            problems.push(source.problem(1, what));
        }
        check_functions(source, &mut problems);
        check_columns(source, &mut problems);
    }
    problems
}

fn check_functions(source: &Source, problems: &mut Vec<Problem>) {
    let code = strip(&source.text);
    for at in words_at(&code, "fn") {
        // `fn(u8)` is a type.
        let rest = code[at + 2..].trim_start();
        if !rest.starts_with(|first: char| first.is_alphabetic() || first == '_') {
            continue;
        }
        let Some(end) = block_end(&code, at) else { continue };
        let first = line_of(&code, at);
        let lines = line_of(&code, end - 1) - first + 1;
        if FUNCTION_LINES_MAX < lines {
            let name: String =
                rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
            let what = format!("fn {name} has {lines} lines, the limit is {FUNCTION_LINES_MAX}");
            problems.push(source.problem(first, what));
        }
    }
}

/// Tables may be wider: where rustfmt is told to keep off, so is this.
fn check_columns(source: &Source, problems: &mut Vec<Problem>) {
    if source.text.contains("rustfmt::skip") {
        return;
    }
    for (index, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        // What rustfmt cannot break is a long string, and that is data.
        if COLUMNS_MAX < columns && !line.contains('"') && !line.contains("://") {
            let what = format!("the line has {columns} columns, the limit is {COLUMNS_MAX}");
            problems.push(source.problem(index + 1, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{source, words};

    fn function(lines: usize) -> String {
        format!("/// fn\nfn long() {{\n{}}}\n", "    let _ = \"{\";\n".repeat(lines - 2))
    }

    #[test]
    fn functions_have_a_limit() {
        assert_eq!(check(&[source("a.rs", &function(FUNCTION_LINES_MAX))]), []);
        let found = check(&[source("a.rs", &function(FUNCTION_LINES_MAX + 1))]);
        assert_eq!(words(&found), ["a.rs:2: fn long has 71 lines, the limit is 70"]);
    }

    #[test]
    fn files_have_a_limit() {
        assert_eq!(check(&[source("a.rs", &"\n".repeat(FILE_LINES_MAX))]), []);
        let found = check(&[source("a.rs", &"\n".repeat(FILE_LINES_MAX + 1))]);
        assert_eq!(words(&found), ["a.rs:1: the file has 801 lines, the limit is 800"]);
        assert_eq!(check(&[source("a.md", &"\n".repeat(FILE_LINES_MAX + 1))]), []);
    }

    #[test]
    fn lines_have_a_limit() {
        assert_eq!(check(&[source("a.rs", &"/".repeat(COLUMNS_MAX))]), []);
        let found = check(&[source("a.rs", &"/".repeat(COLUMNS_MAX + 1))]);
        assert_eq!(words(&found), ["a.rs:1: the line has 101 columns, the limit is 100"]);
    }
}
