//! `docs/redis.md` lists every command and parameter exactly as the tables have them.
//!
//! `UPDATE=1` rewrites the lists; read the difference before it is committed.

use std::fs;
use std::path::Path;

use kumiko_redis::config::PARAMETERS;
use kumiko_redis::server::Table;
use kumiko_redis::{Command, Keys, Meaning};

#[test]
fn the_page_lists_what_is_there() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/redis.md");
    let page = fs::read_to_string(&path).unwrap();
    let page_now = replace(&replace(&page, "commands", &commands()), "parameters", &parameters());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, page_now).unwrap();
    } else {
        assert!(page == page_now, "docs/redis.md is not what the tables say: UPDATE=1");
    }
}

/// Puts `text` between the marks of `name`.
fn replace(page: &str, name: &str, text: &str) -> String {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = page.split_once(&open).expect("the page has the mark");
    let (_, after) = rest.split_once(&close).expect("the page has the end mark");
    format!("{before}{open}{text}{close}{after}")
}

const HEAD: &str = "| command | what for | under concurrency |\n|---|---|---|\n";

fn commands() -> String {
    let mut text = String::new();
    let mut family = "";
    for row in Table::shared().rows() {
        if row.family != family {
            family = row.family;
            text = format!("{text}\n### {family}\n\n{HEAD}");
        }
        let command = row.command;
        if command.subcommands.is_empty() {
            assert!(!command.summary.is_empty(), "{} has no summary", command.name);
            let name = command.name.to_uppercase().replace('|', " ");
            let summary = command.summary;
            text = format!("{text}| `{name}` | {summary} | {} |\n", meaning(command));
        }
    }
    text + "\n"
}

fn meaning(command: &Command) -> &'static str {
    match command.meaning {
        Meaning::Local if !matches!(command.keys, Keys::None) => "as its keys",
        Meaning::Read => "reads what was merged so far",
        Meaning::Register => "register: the last writer wins",
        Meaning::Counter => "counter: increments of all sites add up",
        Meaning::LocalDecision => "decided here: two sites can both succeed",
        Meaning::Members => "members are united; of one member the last writer wins",
        Meaning::ObservedRemove => "removes what this site has seen",
        Meaning::AtLeastOnce => "two sites may take the same element",
        Meaning::List => "list: elements of all sites are kept, in one order everywhere",
        Meaning::ReadThenWrite => "reads here, writes the result whole",
        Meaning::Expiry => "a write with its own stamp",
        Meaning::Local => "this node alone",
        Meaning::Message => "a message: not kept, not merged",
    }
}

fn parameters() -> String {
    let mut text = "\n| parameter | default | |\n|---|---|---|\n".to_owned();
    for parameter in PARAMETERS {
        let note = match (parameter.live, parameter.mutable) {
            (true, true) => "takes effect at once",
            (true, false) => "fixed while the server runs",
            (false, _) => "kept and shown, without effect",
        };
        let alias = parameter.alias.map(|it| format!(" (`{it}`)")).unwrap_or_default();
        let (name, default) = (parameter.name, parameter.default);
        text = format!("{text}| `{name}`{alias} | `{default}` | {note} |\n");
    }
    text + "\n"
}
