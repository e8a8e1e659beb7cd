//! What a cluster looks like from outside: nodes, messages and jobs as JSON.

use std::sync::Arc;

use kumiko_base::{cbor, hex, time};
use kumiko_coordinator::{Error, Event, JobId, Member, Message, job, mailbox, member};
use kumiko_kv::{Engine, Txn};
use serde_json::{Value as Json, json};

use super::Handle;
use crate::http::Routes;

/// The most jobs that one answer lists.
const JOBS_MAX: usize = 1_000;

/// Adds `/cluster/nodes`, `/cluster/messages?after=CLOCK` and `/cluster/jobs` to the listener.
pub fn add_routes(routes: &mut Routes, engine: &Arc<dyn Engine>, cluster: &Handle) {
    let (at, name) = (Arc::clone(engine), cluster.identity().cluster.clone());
    let answer = move |_: &str| Ok(lines(&nodes(at.begin()?.as_mut(), &name)?));
    routes.answers.push(("/cluster/nodes", Box::new(answer)));
    let at = Arc::clone(engine);
    let answer = move |query: &str| {
        let after = query.strip_prefix("after=").and_then(|it| it.parse().ok()).unwrap_or(0);
        Ok(lines(&messages(at.begin()?.as_mut(), after)?))
    };
    routes.answers.push(("/cluster/messages", Box::new(answer)));
    let at = Arc::clone(engine);
    let answer = move |_: &str| Ok(lines(&jobs(at.begin()?.as_mut(), None, JOBS_MAX)?));
    routes.answers.push(("/cluster/jobs", Box::new(answer)));
}

/// One JSON object per line.
pub fn lines(objects: &[Json]) -> String {
    let lines: Vec<String> = objects.iter().map(Json::to_string).chain([String::new()]).collect();
    lines.join("\n")
}

fn moment(ms: i64) -> Json {
    time::show(ms).map_or(json!(ms), Json::from)
}

/// The nodes of `cluster`, by id.
pub fn nodes(txn: &mut dyn Txn, cluster: &str) -> Result<Vec<Json>, Error> {
    Ok(member::list(txn, cluster)?.iter().map(node).collect())
}

fn node(member: &Member) -> Json {
    json!({
        "id": member.id.to_string(),
        "cluster": member.cluster,
        "host": member.host,
        "status": member.status.word(),
        "clock": member.clock,
        "beat": moment(member.beat_ms),
        "incarnation": member.incarnation,
    })
}

/// The messages above the clock `after`, oldest first, a page of them.
pub fn messages(txn: &mut dyn Txn, after: u64) -> Result<Vec<Json>, Error> {
    Ok(mailbox::after(txn, after)?.iter().map(message).collect())
}

fn message(message: &Message) -> Json {
    let event = match message.event {
        Event::Created => "created".to_string(),
        Event::Updated => "updated".to_string(),
        Event::Deleted => "deleted".to_string(),
        Event::Other(byte) => format!("{byte}"),
    };
    let object = match cbor::decode(&message.object) {
        Ok(value) => value.to_string(),
        Err(_) => hex::show(&message.object),
    };
    json!({
        "clock": message.clock,
        "topic": char::from(message.topic.letter()).to_string(),
        "event": event,
        "from": message.from.to_string(),
        "host": message.host,
        "time": message.time_ms.map(moment),
        "object": object,
    })
}

/// The jobs after `after`, by id, at most `rows_max`.
pub fn jobs(txn: &mut dyn Txn, after: Option<&JobId>, rows_max: usize) -> Result<Vec<Json>, Error> {
    Ok(job::list(txn, after, rows_max)?.iter().map(one_job).collect())
}

fn one_job(job: &job::Job) -> Json {
    let entry = |it: &job::Entry| {
        let node = it.node.map(|node| node.to_string());
        json!({"time": moment(it.time_ms), "node": node, "what": it.what})
    };
    json!({
        "id": job.id.0,
        "kind": job.kind,
        "state": job.state.word(),
        "due": job.due_ms().map(moment),
        "attempts": job.attempts,
        "holder": job.holder.map(|node| node.to_string()),
        "args": job.args.to_string(),
        "progress": job.progress.to_string(),
        "note": job.note,
        "ended": job.ended_ms.map(moment),
        "history": job.history.iter().map(entry).collect::<Vec<Json>>(),
    })
}
