//! `cargo xtask tidy`: checks of the house that a program can make.
//!
//! What is checked, and how, stands in [`tidy`], one file per check.

use std::path::Path;
use std::process::ExitCode;

mod code;
mod source;
mod tidy;

const USAGE: &str = "usage: cargo xtask tidy\n\n\
    Checks dependency directions, file and function length, banned calls, ASCII source,\n\
    dead links, the register of key categories, and what must not be in the tree.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => run_tidy(),
        ["--help" | "-h" | "help"] => {
            eprintln!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run_tidy() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = match source::load(&root) {
        Ok(sources) => sources,
        Err(error) => {
            eprintln!("cannot read the tree: {error}");
            return ExitCode::from(2);
        }
    };
    let problems = tidy::check(&sources);
    for problem in &problems {
        eprintln!("{problem}");
    }
    eprintln!("tidy: {} files, {} problems", sources.len(), problems.len());
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
