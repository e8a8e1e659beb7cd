//! What must not stand in a file, whatever its language.

use crate::source::{Problem, Source};

/// Where people's machines keep people's files. Written in two parts, so that this line is fine.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

const TEXTS: &[&str] = &["rs", "md", "toml", "sh", "yml", "yaml", "json", "py", "golden"];
const ASCII: &[&str] = &["rs", "toml", "sh"];

pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in sources {
        if source.path.ends_with("/mod.rs") {
            problems.push(source.problem(1, "mod.rs: name the file after its module instead"));
        }
        if TEXTS.contains(&source.extension()) || source.path.contains(".ci/") {
            check_lines(source, &mut problems);
        }
    }
    problems
}

fn check_lines(source: &Source, problems: &mut Vec<Problem>) {
    for (index, line) in source.text.lines().enumerate() {
        let number = index + 1;
        if ASCII.contains(&source.extension())
            && let Some(strange) = line.chars().find(|it| !it.is_ascii())
        {
            let what = format!("{} is not ASCII", strange.escape_unicode());
            problems.push(source.problem(number, what));
        }
        for path in MACHINE_PATHS {
            let stands_alone = |at: usize| {
                let before = line[..at].chars().next_back();
                before
                    .is_none_or(|it| !it.is_alphanumeric() && !matches!(it, '.' | '_' | '-' | '}'))
            };
            if line.match_indices(path).any(|(at, _)| stands_alone(at)) {
                let what = format!("{path} is a path of somebody's machine");
                problems.push(source.problem(number, what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{source, words};

    #[test]
    fn what_must_not_stand_in_a_file() {
        let home = MACHINE_PATHS[0];
        let found = check(&[
            source("crates/x/src/a/mod.rs", ""),
            source("crates/x/src/b.rs", "fn f() {}\n// caf\u{e9}\n"),
            source("docs/a.md", &format!("caf\u{e9}\nsee {home}me/x\nsee example.org{home}page\n")),
            source("image.png", home),
        ]);
        assert_eq!(
            words(&found),
            [
                "crates/x/src/a/mod.rs:1: mod.rs: name the file after its module instead",
                "crates/x/src/b.rs:2: \\u{e9} is not ASCII",
                &format!("docs/a.md:2: {home} is a path of somebody's machine"),
            ]
        );
    }
}
