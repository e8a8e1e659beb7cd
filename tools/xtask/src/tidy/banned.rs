//! What must not be called: the world below `node`, and unfinished work anywhere.

use super::{crate_of, test_files};
use crate::code::{line_of, strip, without_tests, words_at};
use crate::source::{Problem, Source};

/// Crates that get files, sockets, threads, time and randomness as arguments or not at all.
const PURE: &[&str] = &[
    "base",
    "lang",
    "wire",
    "kv",
    "eventlog",
    "lattice",
    "document",
    "coordinator",
    "sql",
    "redis",
    "mongo",
];

/// The call, and what to do instead.
const WORLD: &[(&str, &str)] = &[
    ("std::thread", "node starts threads"),
    ("thread::spawn", "node starts threads"),
    ("std::net", "node opens sockets"),
    ("std::fs", "engines and node touch files"),
    ("File::open", "engines and node touch files"),
    ("SystemTime::now", "time comes in as an argument"),
    ("Instant::now", "time comes in as an argument"),
    ("getrandom", "randomness comes in as an argument"),
    ("std::process", "node ends the process"),
];

/// Files of pure crates that may, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/base/src/golden.rs", "reads the scripts of tests"),
    ("crates/kv/src/conformance", "runs many transactions at once"),
    ("crates/kv/src/history.rs", "runs many transactions at once"),
    ("crates/kv/src/retry.rs", "names the pause that callers may replace"),
];

/// Macros and attributes that say: not done.
const UNFINISHED: &[(&str, &str)] = &[
    ("todo!", "unfinished work"),
    ("unimplemented!", "unfinished work"),
    ("dbg!", "left over from a search"),
    ("#[ignore", "a test that does not run"),
];

pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let tests = test_files(sources);
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let code = strip(&source.text);
        for (call, why) in UNFINISHED {
            for at in words_at(&code, call) {
                problems.push(source.problem(line_of(&code, at), format!("{call}: {why}")));
            }
        }
        let Some((name, _)) = crate_of(&source.path) else { continue };
        let excepted = EXCEPTIONS.iter().any(|(path, _)| source.path.starts_with(path));
        let tested = tests.contains(&source.path);
        if !PURE.contains(&name) || excepted || tested {
            continue;
        }
        let code = without_tests(&code);
        for (call, instead) in WORLD {
            for at in words_at(&code, call) {
                let what = format!("{call} is not for {name}: {instead}");
                problems.push(source.problem(line_of(&code, at), what));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{source, words};

    #[test]
    fn the_world_is_not_for_pure_crates() {
        let text = "//! std::fs\nuse std::fs;\nfn now() { Instant::now(); }\n\
                    #[cfg(test)]\nmod tests {\n    use std::thread;\n}\n";
        let found = check(&[
            source("crates/document/src/lib.rs", text),
            source("crates/kv-disk/src/lib.rs", text),
            source("crates/document/tests/all.rs", text),
            source("crates/kv/src/conformance/x.rs", text),
        ]);
        assert_eq!(
            words(&found),
            [
                "crates/document/src/lib.rs:2: std::fs is not for document: engines and node touch \
                 files",
                "crates/document/src/lib.rs:3: Instant::now is not for document: time comes in as \
                 an argument",
            ]
        );
    }

    #[test]
    fn files_of_tests_may() {
        let found = check(&[
            source("crates/kv/src/lib.rs", "#[cfg(test)]\nmod wrong;\nmod right;\n"),
            source("crates/kv/src/wrong.rs", "use std::thread;\n"),
            source("crates/kv/src/wrong/more.rs", "use std::thread;\n"),
            source("crates/kv/src/right.rs", "#[cfg(test)]\nmod tests;\nuse std::thread;\n"),
            source("crates/kv/src/right/tests.rs", "use std::net;\n"),
        ]);
        let what = "crates/kv/src/right.rs:3: std::thread is not for kv: node starts threads";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn unfinished_work_is_found_everywhere() {
        let text = "fn a() { todo!() }\n#[ignore]\nfn b() { unimplemented!() } // todo!\n";
        let found = check(&[source("crates/node/src/a.rs", text)]);
        assert_eq!(
            words(&found),
            [
                "crates/node/src/a.rs:1: todo!: unfinished work",
                "crates/node/src/a.rs:3: unimplemented!: unfinished work",
                "crates/node/src/a.rs:2: #[ignore: a test that does not run",
            ]
        );
    }
}
