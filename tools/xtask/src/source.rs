//! The files of the tree, and what is found wrong with them.

use std::fmt;
use std::path::Path;
use std::{fs, io};

/// Directories that hold what was built or fetched, never what was written.
const SKIPPED: [&str; 3] = ["target", ".git", "node_modules"];

/// One file. A file that is not UTF-8 is known by its name only.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// From the root, with slashes.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) text: String,
}

impl Source {
    /// The part of the path after the last full stop.
    pub(crate) fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Whether this is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == "rs"
    }

    /// A problem at a line, which starts at one.
    pub(crate) fn problem(&self, line: usize, what: impl Into<String>) -> Problem {
        Problem { path: self.path.clone(), line, what: what.into() }
    }
}

/// Something that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    path: String,
    line: usize,
    what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Every file below `root`, by path.
pub(crate) fn load(root: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    load_dir(root, "", &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn load_dir(dir: &Path, prefix: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            load_dir(&entry.path(), &format!("{path}/"), sources)?;
        } else if kind.is_file() {
            let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
            sources.push(Source { path, text });
        }
    }
    Ok(())
}

/// A file for a test.
#[cfg(test)]
pub(crate) fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

/// Problems in words, for a test.
#[cfg(test)]
pub(crate) fn words(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
