//! Relative links in documents, which must lead somewhere.

use std::collections::BTreeSet;

use crate::source::{Problem, Source};

pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for source in sources {
        let mut path = source.path.as_str();
        known.insert(path.to_owned());
        while let Some((dir, _)) = path.rsplit_once('/') {
            known.insert(dir.to_owned());
            path = dir;
        }
    }
    let documents: Vec<&Source> =
        sources.iter().filter(|source| source.extension() == "md").collect();
    let mut problems = Vec::new();
    for source in &documents {
        for (line, target) in links(&source.text) {
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let Some(full) = resolve(&source.path, path) else {
                problems.push(source.problem(line, format!("{target} leads out of the tree")));
                continue;
            };
            if !full.is_empty() && !known.contains(&full) {
                problems.push(source.problem(line, format!("{target} leads nowhere")));
                continue;
            }
            let document = documents.iter().find(|other| other.path == full);
            if let Some(document) = document
                && !anchor.is_empty()
                && !anchors(&document.text).contains(anchor)
            {
                problems.push(source.problem(line, format!("{target}: there is no such heading")));
            }
        }
    }
    problems
}

/// The relative links of a document, with their lines. Code is no link.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in prose(text) {
        let mut rest = line.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find([')', ' ']) else { break };
            let target = &rest[..end];
            let foreign = target.contains("://") || target.starts_with("mailto:");
            if !foreign && !target.is_empty() {
                found.push((index, target.to_owned()));
            }
        }
    }
    found
}

/// The lines outside fenced code, without what stands between backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let outside = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            lines.push((index + 1, outside));
        }
    }
    lines
}

/// The path from the root of a path relative to a document. None if it leaves the root.
fn resolve(document: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(document.to_owned());
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors that renderers give to the headings of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if !fenced && heading.len() < line.len() && heading.starts_with(' ') {
            let kept = |it: &char| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_');
            let slug: String = heading.trim().to_lowercase().chars().filter(kept).collect();
            anchors.insert(slug.replace(' ', "-"));
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{source, words};

    #[test]
    fn dead_links_are_found() {
        let text = "[a](other.md) [b](../README.md) [c](missing.md)\n\
                    [web](https://example.org/x) `[code](no.md)` [dir](../docs)\n\
                    ```text\n[fenced](no.md)\n```\n\
                    [head](other.md#the-one--only) [no](other.md#none) [self](#here)\n\
                    # Here\n[out](../../x)\n";
        let found = check(&[
            source("docs/page.md", text),
            source("docs/other.md", "# The one & only\n"),
            source("README.md", ""),
        ]);
        assert_eq!(
            words(&found),
            [
                "docs/page.md:1: missing.md leads nowhere",
                "docs/page.md:6: other.md#none: there is no such heading",
                "docs/page.md:8: ../../x leads out of the tree",
            ]
        );
    }
}
