//! Jobs that take effect once, whichever node runs them.
//!
//! ```text
//! J (job id)              the job, as a CBOR map
//! S (81, due ms, job id)  null: when to look at the job next
//! ```
//!
//! A waiting job is due at its time; a running one when its lease ends, because then its node is
//! gone and another may take it. Every claim draws a new token; renewing, failing and finishing ask
//! for it. Whoever writes a job's effect does so in the transaction that calls [`finish`]: a node
//! that lost the job cannot finish it, so the effect happens once.

use kumiko_base::tuple::Element;
use kumiko_base::{Category, Value, cbor};
use kumiko_kv::{Range, Read, Scan, Txn};

use crate::message::{field, int, limit, text, wrong};
use crate::state::{self, StateType};
use crate::{Error, NodeId};

mod record;

pub use record::{Entry, HISTORY_MAX, Job, JobState};

/// The longest id or kind: an id stands in keys.
pub const NAME_BYTES_MAX: usize = 256;
/// The longest arguments, progress or note of a job.
pub const PART_BYTES_MAX: usize = 20_000;
/// The most due jobs that one claim looks at: those of kinds that this node does not run are passed.
pub const CLAIM_JOBS_MAX: usize = 100;
/// The longest pause between two attempts.
pub const PAUSE_MS_MAX: i64 = 3_600_000;

/// Which job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub String);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A job to submit.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Its id. Submitting the same order twice is submitting it once.
    pub id: JobId,
    /// What is to be done; nodes claim the kinds they know.
    pub kind: String,
    /// With what.
    pub args: Value,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// Again and again, this far apart.
    pub every_ms: Option<i64>,
    /// How often it may be tried before it has failed.
    pub attempts_max: u32,
    /// The pause after the first failure; it doubles with every further one.
    pub pause_ms: i64,
}

impl Order {
    /// A job that runs now, once, with up to five attempts a second and more apart.
    pub fn new(id: impl Into<String>, kind: impl Into<String>, args: Value, now_ms: i64) -> Order {
        let (id, kind) = (JobId(id.into()), kind.into());
        Order { id, kind, args, at_ms: now_ms, every_ms: None, attempts_max: 5, pause_ms: 1_000 }
    }
}

/// A job that this node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The job.
    pub id: JobId,
    /// Proves that it is still ours.
    pub token: u64,
}

fn key(id: &JobId) -> Vec<u8> {
    Category::Job.key().text(&id.0).finish()
}

fn due_key(due_ms: i64, id: &JobId) -> [Element; 2] {
    [Element::Int(due_ms.into()), Element::Text(id.0.clone())]
}

/// The job of this id, if it is known.
pub fn get(txn: &mut dyn Txn, id: &JobId) -> Result<Option<Job>, Error> {
    let key = key(id);
    match txn.get(&key, Read::Serializable)? {
        None => Ok(None),
        Some(bytes) => Ok(Some(Job::decode(&key, &bytes)?)),
    }
}

fn load(txn: &mut dyn Txn, id: &JobId) -> Result<Job, Error> {
    get(txn, id)?.ok_or_else(|| Error::NoJob(id.0.clone()))
}

/// Stores `job` and moves its place in the order of due jobs.
fn store(txn: &mut dyn Txn, old: Option<&Job>, job: &Job) -> Result<(), Error> {
    if let Some(due) = old.and_then(Job::due_ms) {
        state::del(txn, StateType::DUE, &due_key(due, &job.id))?;
    }
    if let Some(due) = job.due_ms() {
        state::put(txn, StateType::DUE, &due_key(due, &job.id), &Value::Null)?;
    }
    Ok(txn.put(&key(&job.id), &job.encode()?)?)
}

/// Submits a job. True if it is new; false if the same order was submitted before.
pub fn submit(txn: &mut dyn Txn, order: &Order, now_ms: i64) -> Result<bool, Error> {
    limit("the id of a job", order.id.0.len(), NAME_BYTES_MAX)?;
    limit("the kind of a job", order.kind.len(), NAME_BYTES_MAX)?;
    if let Some(known) = get(txn, &order.id)? {
        let same = known.kind == order.kind && known.args == order.args;
        return if same { Ok(false) } else { Err(Error::JobExists(order.id.0.clone())) };
    }
    let mut job = Job::of_order(order, now_ms);
    job.note_down(now_ms, None, "submitted");
    store(txn, None, &job)?;
    Ok(true)
}

/// Takes the first due job whose kind `wanted` says yes to, for `lease_ms`.
pub fn claim(
    txn: &mut dyn Txn,
    node: NodeId,
    wanted: &dyn Fn(&str) -> bool,
    now_ms: i64,
    lease_ms: i64,
) -> Result<Option<Job>, Error> {
    let start = state::key(StateType::DUE, &[])?;
    let end = state::key(StateType::DUE, &[Element::Int(i128::from(now_ms) + 1)])?;
    // Which jobs are due may change while we look; the one that is taken may not.
    let page = txn.scan(&Scan::new(Range::new(start, end)).rows(CLAIM_JOBS_MAX).snapshot())?;
    for (due, _) in page.rows {
        let id = id_of_due(&due)?;
        let Some(old) = get(txn, &id)? else {
            txn.del(&due)?;
            continue;
        };
        if !wanted(&old.kind) || old.due_ms().is_none_or(|due_ms| now_ms < due_ms) {
            continue;
        }
        let mut job = old.clone();
        let taken_over = job.state == JobState::Running;
        job.state = JobState::Running;
        job.attempts += 1;
        job.token += 1;
        job.holder = Some(node);
        job.lease_ms = now_ms.saturating_add(lease_ms);
        job.note_down(now_ms, Some(node), if taken_over { "taken over" } else { "claimed" });
        store(txn, Some(&old), &job)?;
        return Ok(Some(job));
    }
    Ok(None)
}

fn id_of_due(due: &[u8]) -> Result<JobId, Error> {
    let corrupt = |error| Error::corrupt(due, error);
    let mut reader = kumiko_base::category::open_as(Category::State, due).map_err(corrupt)?;
    reader.int::<u8>().map_err(corrupt)?;
    reader.int::<i64>().map_err(corrupt)?;
    reader.text().map(JobId).map_err(corrupt)
}

/// Loads a job that must still be held.
fn load_held(txn: &mut dyn Txn, held: &Held) -> Result<Job, Error> {
    let job = load(txn, &held.id)?;
    if job.state != JobState::Running || job.token != held.token {
        return Err(Error::Lost(held.id.0.clone()));
    }
    Ok(job)
}

/// Prolongs the lease and writes down how far the work is. Every step of a job may write its part
/// of the effect in the same transaction.
pub fn renew(
    txn: &mut dyn Txn,
    held: &Held,
    progress: &Value,
    now_ms: i64,
    lease_ms: i64,
) -> Result<(), Error> {
    let old = load_held(txn, held)?;
    let mut job = old.clone();
    job.lease_ms = now_ms.saturating_add(lease_ms);
    job.progress = progress.clone();
    store(txn, Some(&old), &job)
}

/// Ends a job well. One that is repeated waits for its next time, which is never in the past.
pub fn finish(txn: &mut dyn Txn, held: &Held, note: &str, now_ms: i64) -> Result<(), Error> {
    let old = load_held(txn, held)?;
    let mut job = old.clone();
    let node = job.holder.take();
    job.note_down(now_ms, node, &format!("finished: {note}"));
    job.note = note.to_string();
    job.attempts = 0;
    if let Some(every_ms) = job.every_ms.map(|it| it.max(1)) {
        let missed = now_ms.saturating_sub(job.at_ms).max(0) / every_ms;
        job.at_ms = job.at_ms.saturating_add((missed + 1).saturating_mul(every_ms));
        job.state = JobState::Waiting;
        job.progress = Value::Null;
    } else {
        job.state = JobState::Done;
        job.ended_ms = Some(now_ms);
    }
    store(txn, Some(&old), &job)
}

/// Ends an attempt badly: the job waits for the next one, or has failed.
pub fn fail(txn: &mut dyn Txn, held: &Held, why: &str, now_ms: i64) -> Result<(), Error> {
    let old = load_held(txn, held)?;
    let mut job = old.clone();
    let node = job.holder.take();
    job.note_down(now_ms, node, &format!("failed: {why}"));
    job.note = why.to_string();
    if job.attempts < job.attempts_max {
        let doubled = 1_i64 << (job.attempts - 1).min(30);
        let pause = job.pause_ms.saturating_mul(doubled).min(PAUSE_MS_MAX);
        job.state = JobState::Waiting;
        job.at_ms = now_ms.saturating_add(pause);
    } else {
        job.state = JobState::Failed;
        job.ended_ms = Some(now_ms);
    }
    store(txn, Some(&old), &job)
}

/// Cancels a job that has not ended. A node that works on it loses it.
pub fn cancel(txn: &mut dyn Txn, id: &JobId, now_ms: i64) -> Result<(), Error> {
    let old = load(txn, id)?;
    if old.due_ms().is_none() {
        return Err(Error::Ended(id.0.clone()));
    }
    let mut job = old.clone();
    job.state = JobState::Cancelled;
    job.holder = None;
    job.token += 1;
    job.ended_ms = Some(now_ms);
    job.note_down(now_ms, None, "cancelled");
    store(txn, Some(&old), &job)
}

/// The jobs after `after`, by id, at most `rows_max`.
pub fn list(txn: &mut dyn Txn, after: Option<&JobId>, rows_max: usize) -> Result<Vec<Job>, Error> {
    let mut range = Range::prefix(&Category::Job.prefix());
    if let Some(after) = after {
        range.start = kumiko_kv::range::after(&key(after));
    }
    let page = txn.scan(&Scan::new(range).rows(rows_max).snapshot())?;
    page.rows.iter().map(|(key, value)| Job::decode(key, value)).collect()
}

/// Drops the history of jobs that ended before `before_ms`, looking at up to `rows_max` jobs after
/// `after`. Returns where to go on, if there may be more.
pub fn prune(
    txn: &mut dyn Txn,
    after: Option<&JobId>,
    before_ms: i64,
    rows_max: usize,
) -> Result<Option<JobId>, Error> {
    let jobs = list(txn, after, rows_max)?;
    for job in &jobs {
        if job.ended_ms.is_some_and(|ended| ended < before_ms) {
            txn.del(&key(&job.id))?;
        }
    }
    Ok(jobs.last().filter(|_| jobs.len() == rows_max).map(|job| job.id.clone()))
}

#[cfg(test)]
mod tests;
