//! `kumiko cluster`: the nodes, messages and jobs of a cluster, once or live.
//!
//! A running node is asked over HTTP; with `--dir` or `--engine` the store itself is read, which
//! needs no node but, for an embedded store, that none runs.

use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use clap::Subcommand;
use kumiko_base::Kind;
use kumiko_kv::Engine;
use kumiko_node::cluster::report;
use kumiko_node::engine::{self, Missing};
use kumiko_node::{Error, http};
use serde_json::Value as Json;

/// How often `watch` looks.
const WATCH_EVERY: Duration = Duration::from_millis(500);

/// The flags of `cluster`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// Ask the node that answers HTTP here
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        env = "KUMIKO_HTTP"
    )]
    http: String,
    /// Read this store instead of asking a node: disk:DIR or postgres:URL
    #[arg(long, global = true, value_name = "ENGINE")]
    engine: Option<String>,
    /// The name of the cluster, with --engine
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        default_value = "kumiko",
        env = "KUMIKO_CLUSTER"
    )]
    cluster: String,
    /// One JSON object per line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug, Clone, Copy)]
enum What {
    /// The nodes, and whether they live
    Nodes,
    /// The messages that are kept, oldest first
    Messages,
    /// The jobs, with their history in --json
    Jobs,
    /// Messages as they come, and nodes whose status changes, until Ctrl-C
    Watch,
}

enum Source {
    Http(SocketAddr),
    Store(std::sync::Arc<dyn Engine>, String),
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let source = match &args.engine {
        Some(spec) => {
            Source::Store(engine::open(spec, "always", Missing::Refuse)?, args.cluster.clone())
        }
        None => Source::Http(resolve(&args.http)?),
    };
    match args.what {
        What::Nodes => {
            show(&source.nodes()?, args.json, &["id", "host", "status", "clock", "beat"])
        }
        What::Messages => messages(&source, args.json),
        What::Jobs => show(
            &source.jobs()?,
            args.json,
            &["id", "kind", "state", "attempts", "holder", "progress", "note"],
        ),
        What::Watch => watch(&source, args.json),
    }
}

fn resolve(address: &str) -> Result<SocketAddr, Error> {
    let found = address.to_socket_addrs().ok().and_then(|mut it| it.next());
    found.ok_or_else(|| Error::invalid(format!("\"{address}\" is not an address")))
}

impl Source {
    fn nodes(&self) -> Result<Vec<Json>, Error> {
        match self {
            Source::Http(address) => fetch(*address, "/cluster/nodes"),
            Source::Store(engine, cluster) => Ok(report::nodes(engine.begin()?.as_mut(), cluster)?),
        }
    }

    fn messages(&self, after: u64) -> Result<Vec<Json>, Error> {
        match self {
            Source::Http(address) => fetch(*address, &format!("/cluster/messages?after={after}")),
            Source::Store(engine, _) => Ok(report::messages(engine.begin()?.as_mut(), after)?),
        }
    }

    fn jobs(&self) -> Result<Vec<Json>, Error> {
        match self {
            Source::Http(address) => fetch(*address, "/cluster/jobs"),
            Source::Store(engine, _) => Ok(report::jobs(engine.begin()?.as_mut(), None, 1_000)?),
        }
    }
}

fn fetch(address: SocketAddr, path: &str) -> Result<Vec<Json>, Error> {
    let text = http::fetch(address, path).map_err(|error| {
        let doing = format!("no node answers HTTP on {address}; name one with --http");
        Error::from(error).during(&doing)
    })?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    if !head.starts_with("HTTP/1.1 200") {
        return Err(Error::new(Kind::Unavailable, body.trim().to_string()));
    }
    body.lines().map(parse).collect()
}

fn parse(line: &str) -> Result<Json, Error> {
    serde_json::from_str(line).map_err(|error| {
        Error::new(Kind::Corrupt, format!("the node's answer is not JSON: {error}"))
    })
}

fn messages(source: &Source, json: bool) -> Result<(), Error> {
    let mut after = 0;
    loop {
        let page = source.messages(after)?;
        let Some(clock) = page.last().and_then(|it| it["clock"].as_u64()) else { return Ok(()) };
        after = clock;
        show(&page, json, MESSAGE_COLUMNS)?;
    }
}

const MESSAGE_COLUMNS: &[&str] = &["clock", "topic", "event", "from", "time", "object"];

fn watch(source: &Source, json: bool) -> Result<(), Error> {
    let mut after = 0;
    loop {
        let page = source.messages(after)?;
        match page.last().and_then(|it| it["clock"].as_u64()) {
            Some(clock) => after = clock,
            None => break,
        }
    }
    let mut known: Vec<Json> = Vec::new();
    loop {
        let nodes = source.nodes()?;
        let changed = |node: &&Json| {
            let same = |it: &Json| it["id"] == node["id"] && it["status"] == node["status"];
            !known.iter().any(same)
        };
        let news: Vec<Json> = nodes.iter().filter(changed).cloned().collect();
        show(&news, json, &["id", "host", "status"])?;
        known = nodes;
        let page = source.messages(after)?;
        show(&page, json, MESSAGE_COLUMNS)?;
        after = page.last().and_then(|it| it["clock"].as_u64()).unwrap_or(after);
        std::thread::sleep(WATCH_EVERY);
    }
}

fn show(objects: &[Json], json: bool, columns: &[&str]) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    for object in objects {
        if json {
            writeln!(out, "{object}")?;
            continue;
        }
        let cells: Vec<String> = columns
            .iter()
            .filter(|column| !object[**column].is_null())
            .map(|column| match &object[*column] {
                Json::String(text) => format!("{column}={text}"),
                other => format!("{column}={other}"),
            })
            .collect();
        writeln!(out, "{}", cells.join("  "))?;
    }
    out.flush()?;
    Ok(())
}
