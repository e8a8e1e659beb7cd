//! Which crate may know which: dependencies point downward only.

use super::crate_of;
use crate::source::{Problem, Source};

const SERVICES_BELOW: &[&str] = &["base", "kv"];

/// Each crate and those of ours that it may depend on. A crate that is not here does not exist.
const LAYERS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("wire", &["base"]),
    ("kv", &["base"]),
    ("kv-disk", &["base", "kv"]),
    ("kv-postgres", &["base", "kv"]),
    ("eventlog", SERVICES_BELOW),
    ("lattice", SERVICES_BELOW),
    ("document", SERVICES_BELOW),
    ("coordinator", SERVICES_BELOW),
    ("lang", &["base", "kv", "document"]),
    ("sql", &["base", "kv", "lang", "document"]),
    ("redis", &["base", "kv", "wire", "lattice"]),
    ("mongo", &["base", "kv", "lang", "wire", "document"]),
    ("node", ALL_BUT_NODE),
    ("kumiko", ALL),
    // On top, because it is the program again with one engine more, built only on request.
    ("kv-fdb", &["base", "kv", "kumiko"]),
    ("sim", ALL),
    ("xtask", &[]),
];

const ALL_BUT_NODE: &[&str] = &[
    "base",
    "lang",
    "wire",
    "kv",
    "kv-disk",
    "kv-postgres",
    "eventlog",
    "lattice",
    "document",
    "coordinator",
    "sql",
    "redis",
    "mongo",
];

const ALL: &[&str] = &[
    "base",
    "lang",
    "wire",
    "kv",
    "kv-disk",
    "kv-postgres",
    "eventlog",
    "lattice",
    "document",
    "coordinator",
    "sql",
    "redis",
    "mongo",
    "node",
];

/// What tests alone may add: the engines, because every layer is tested on one.
const FOR_TESTS: &[&str] = &["base", "kv", "kv-disk", "kv-postgres"];

/// Crates outside the workspace, which name their versions themselves.
const OUTSIDE: &[&str] = &["kv-fdb"];

pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in sources {
        if let Some((name, "Cargo.toml")) = crate_of(&source.path) {
            check_manifest(source, name, &mut problems);
        }
    }
    problems
}

fn check_manifest(source: &Source, name: &str, problems: &mut Vec<Problem>) {
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        let what = format!("crate {name} is not in the table of layers (tools/xtask)");
        problems.push(source.problem(1, what));
        return;
    };
    let mut section = "";
    let mut lints = false;
    for (index, line) in source.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            lints |= section == "lints";
            continue;
        }
        let Some((dependency, rest)) = dependency(section, line) else { continue };
        if !OUTSIDE.contains(&name) && !format!("{dependency}{rest}").contains("workspace = true") {
            let what = format!("{dependency} must take its version from the root manifest");
            problems.push(source.problem(index + 1, what));
        }
        let ours = match dependency.strip_prefix("kumiko-") {
            Some(ours) => ours,
            None if dependency == "kumiko" => dependency,
            None => continue,
        };
        let tests = section.starts_with("dev-") && FOR_TESTS.contains(&ours);
        if !allowed.contains(&ours) && !tests {
            let what = format!("{name} must not know {ours}: dependencies point downward");
            problems.push(source.problem(index + 1, what));
        }
    }
    if !lints && !OUTSIDE.contains(&name) {
        problems.push(source.problem(1, "the lints of the workspace are not taken over"));
    }
}

/// The name of the dependency that a line of a manifest declares, and the rest of the line.
fn dependency<'a>(section: &str, line: &'a str) -> Option<(&'a str, &'a str)> {
    let kind = section.rsplit('.').next().unwrap_or(section);
    if !kind.ends_with("dependencies") || line.starts_with('#') {
        return None;
    }
    let end = line.find([' ', '.', '='])?;
    Some(line.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{source, words};

    #[test]
    fn upward_is_refused() {
        let text = "[dependencies]\nkumiko-base.workspace = true\nkumiko-lattice.workspace = true\n\
                    memchr = \"2\"\n[dev-dependencies]\nkumiko-kv-disk.workspace = true\n\
                    kumiko-node = { workspace = true }\n[lints]\nworkspace = true\n";
        let found = check(&[source("crates/document/Cargo.toml", text)]);
        assert_eq!(
            words(&found),
            [
                "crates/document/Cargo.toml:3: document must not know lattice: dependencies point \
                 downward",
                "crates/document/Cargo.toml:4: memchr must take its version from the root manifest",
                "crates/document/Cargo.toml:7: document must not know node: dependencies point \
                 downward",
            ]
        );
    }

    #[test]
    fn strangers_and_missing_lints_are_refused() {
        let found = check(&[
            source("crates/stranger/Cargo.toml", "[lints]\n"),
            source("crates/base/Cargo.toml", "[dependencies]\n"),
            source("crates/base/other.toml", "[dependencies]\nx = \"1\"\n"),
        ]);
        assert_eq!(
            words(&found),
            [
                "crates/stranger/Cargo.toml:1: crate stranger is not in the table of layers \
                 (tools/xtask)",
                "crates/base/Cargo.toml:1: the lints of the workspace are not taken over",
            ]
        );
    }

    /// The table itself points downward: whoever may be known is listed before.
    #[test]
    fn the_table_has_no_cycle() {
        for (index, (name, below)) in LAYERS.iter().enumerate() {
            for other in *below {
                let before = LAYERS[..index].iter().any(|(layer, _)| layer == other);
                assert!(before, "{name} may know {other}, which is not below it");
            }
        }
    }
}
