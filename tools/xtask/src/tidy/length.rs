//! How long files and functions are. (Lines are rustfmt's business.)

use super::test_files;
use crate::code::{block_end, line_of, strip, without_tests, words_at};
use crate::source::{Problem, Source};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let tests = test_files(sources);
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let lines = source.text.lines().count();
        if FILE_LINES_MAX < lines {
            let what = format!("the file has {lines} lines, the limit is {FILE_LINES_MAX}");
            problems.push(source.problem(1, what));
        }
        // A test may hold a table of cases, and a table is data.
        if !tests.contains(&source.path) {
            check_functions(source, &mut problems);
        }
    }
    problems
}

fn check_functions(source: &Source, problems: &mut Vec<Problem>) {
    let code = without_tests(&strip(&source.text));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{source, words};

    fn function(lines: usize) -> String {
        format!("/// fn\nfn long() {{\n{}}}\n", "    let _ = \"{\";\n".repeat(lines - 2))
    }

    #[test]
    fn functions_have_a_limit() {
        let long = function(FUNCTION_LINES_MAX + 1);
        assert_eq!(check(&[source("x/src/a.rs", &function(FUNCTION_LINES_MAX))]), []);
        let found = check(&[source("x/src/a.rs", &long)]);
        assert_eq!(words(&found), ["x/src/a.rs:2: fn long has 71 lines, the limit is 70"]);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert_eq!(check(&[source("x/src/a.rs", &tests), source("x/tests/a.rs", &long)]), []);
    }

    #[test]
    fn files_have_a_limit() {
        assert_eq!(check(&[source("a.rs", &"\n".repeat(FILE_LINES_MAX))]), []);
        let found = check(&[source("a.rs", &"\n".repeat(FILE_LINES_MAX + 1))]);
        assert_eq!(words(&found), ["a.rs:1: the file has 801 lines, the limit is 800"]);
        assert_eq!(check(&[source("a.md", &"\n".repeat(FILE_LINES_MAX + 1))]), []);
    }
}
