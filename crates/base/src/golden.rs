//! Golden scripts: tests whose expected output stands beside the commands.
//!
//! A script is a text file that ends in `.golden`, made of blocks with a blank line between them:
//!
//! ```text
//! # A comment, anywhere before the commands.
//! first command
//! second command
//! ---
//! what both print
//! ```
//!
//! A line of output that is empty is written as a single full stop, because a blank line ends the
//! block. With `UPDATE=1` in the environment the outputs are written anew; read the difference
//! before you keep it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs every script of a directory, each in a session of its own.
///
/// `begin` begins a session: a function from a command to its output. `dir` is relative to the
/// crate whose test this is.
///
/// # Panics
///
/// If an output differs from what the script says, or there is no script.
pub fn run_dir<S>(dir: impl AsRef<Path>, mut begin: impl FnMut() -> S)
where
    S: FnMut(&str) -> String,
{
    let dir = dir.as_ref();
    let paths = scripts(dir);
    assert!(!paths.is_empty(), "there is no .golden file in {}", dir.display());
    for path in paths {
        run_file(&path, begin());
    }
}

/// Runs one script.
///
/// # Panics
///
/// If an output differs from what the script says, or the file cannot be read.
pub fn run_file(path: &Path, session: impl FnMut(&str) -> String) {
    let before = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let after = run_text(&before, session);
    if before == after {
        return;
    }
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        fs::write(path, after)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        return;
    }
    panic!(
        "{}\n(UPDATE=1 writes the outputs anew)",
        difference(&path.display().to_string(), &before, &after)
    );
}

/// The script `text` with the outputs that the session really gives.
pub fn run_text(text: &str, mut session: impl FnMut(&str) -> String) -> String {
    let mut result = String::new();
    let mut lines = text.lines();
    let mut output = String::new();
    while let Some(line) = lines.next() {
        result.push_str(line);
        result.push('\n');
        if line == "---" {
            result.push_str(&escape_blank_lines(&output));
            output.clear();
            // The old output is skipped; the blank line behind it stays.
            if lines.by_ref().any(str::is_empty) {
                result.push('\n');
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            let printed = session(line);
            if !printed.is_empty() {
                output.push_str(printed.trim_end_matches('\n'));
                output.push('\n');
            }
        }
    }
    assert!(output.is_empty(), "the last block of the script has no '---'");
    result
}

fn scripts(dir: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(dir).unwrap_or_else(|error| panic!("cannot read {}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "golden"))
        .collect();
    paths.sort();
    paths
}

fn escape_blank_lines(output: &str) -> String {
    let mut escaped = String::with_capacity(output.len());
    for line in output.lines() {
        escaped.push_str(if line.is_empty() { "." } else { line });
        escaped.push('\n');
    }
    escaped
}

/// The first place where the two differ, with a few lines before it.
fn difference(name: &str, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let mut text = format!("{name}:{}: the output differs\n", same + 1);
    for line in old.iter().take(same).skip(same.saturating_sub(6)) {
        writeln!(text, "  {line}").expect("writing to a string cannot fail");
    }
    for (sign, lines) in [('-', &old), ('+', &new)] {
        for line in lines.iter().skip(same).take_while(|line| !line.is_empty()).take(10) {
            writeln!(text, "{sign} {line}").expect("writing to a string cannot fail");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(line: &str) -> String {
        match line {
            "quiet" => String::new(),
            "gap" => "a\n\nb\n".into(),
            line => format!("did {line}"),
        }
    }

    #[test]
    fn outputs_are_put_where_they_belong() {
        let script =
            "# head\n\none\nquiet\ntwo\n---\nold\nolder\n\n# why\ngap\n---\n\nquiet\n---\n";
        let done = "# head\n\none\nquiet\ntwo\n---\ndid one\ndid two\n\n# why\ngap\n---\na\n.\nb\n\n\
                    quiet\n---\n";
        assert_eq!(run_text(script, session), done);
        assert_eq!(run_text(done, session), done);
    }

    #[test]
    fn a_difference_names_its_line() {
        let text = difference("x.golden", "a\n---\nb\n", "a\n---\nc\nd\n");
        assert_eq!(text, "x.golden:3: the output differs\n  a\n  ---\n- b\n+ c\n+ d\n");
    }

    #[test]
    #[should_panic(expected = "no '---'")]
    fn a_forgotten_output_is_not_passed_over() {
        run_text("one\n", session);
    }
}
