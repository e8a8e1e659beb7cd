//! The thread that claims due jobs and runs them.

use std::sync::Arc;
use std::time::Duration;

use kumiko_base::Value;
use kumiko_coordinator::Error;
use kumiko_coordinator::job::{self, Held, Job};
use kumiko_kv::{Engine, Retry, Txn, run};

use super::{LEASE_MS, Shared, lock};
use crate::clock;

/// How long to wait when nothing is due.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What a kind of job does.
pub trait Runner: Send + Sync {
    /// Does the work, from the progress that `work` shows on. Returns what to note down.
    ///
    /// Effects belong into [`Work::step`], which fails once the job is held by another node.
    fn run(&self, work: &mut Work<'_>) -> Result<String, String>;
}

/// A job under way.
pub struct Work<'a> {
    engine: &'a dyn Engine,
    job: Job,
    held: Held,
    stopping: &'a dyn Fn() -> bool,
}

impl Work<'_> {
    /// The arguments of the job.
    pub fn args(&self) -> &Value {
        &self.job.args
    }

    /// How far an earlier attempt came; null at first.
    pub fn progress(&self) -> &Value {
        &self.job.progress
    }

    /// The engine, for reading.
    pub fn engine(&self) -> &dyn Engine {
        self.engine
    }

    /// Whether to end soon: the node stops, and another will go on from the progress.
    pub fn is_stopping(&self) -> bool {
        (self.stopping)()
    }

    /// Writes one part of the effect together with the progress, and prolongs the lease.
    pub fn step(
        &mut self,
        progress: Value,
        mut body: impl FnMut(&mut dyn Txn) -> Result<(), kumiko_kv::Error>,
    ) -> Result<(), String> {
        run(self.engine, Retry::default(), |txn| {
            body(txn)?;
            job::renew(txn, &self.held, &progress, clock::now_ms(), LEASE_MS)
        })
        .map_err(|error| error.to_string())?;
        self.job.progress = progress;
        Ok(())
    }
}

pub(super) fn serve(shared: &Shared) {
    while !shared.is_stopping() {
        match claim(shared) {
            Ok(Some(job)) => work(shared, job),
            Ok(None) => shared.pause(LOOK_EVERY),
            Err(error) => {
                eprintln!("kumiko: jobs could not be claimed: {error}");
                shared.pause(LOOK_EVERY * 4);
            }
        }
    }
}

fn claim(shared: &Shared) -> Result<Option<Job>, Error> {
    let kinds: Vec<String> = lock(&shared.runners).keys().cloned().collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    let wanted = |kind: &str| kinds.iter().any(|it| it == kind);
    let node = shared.identity.node;
    run(shared.engine.as_ref(), Retry::default(), |txn| {
        job::claim(txn, node, &wanted, clock::now_ms(), LEASE_MS)
    })
}

fn work(shared: &Shared, job: Job) {
    let runner = lock(&shared.runners).get(&job.kind).map(Arc::clone);
    let Some(runner) = runner else { return };
    let (held, id) = (job.held(), job.id.clone());
    let engine = shared.engine.as_ref();
    let stopping = || shared.is_stopping();
    let mut work = Work { engine, job, held: held.clone(), stopping: &stopping };
    let result = runner.run(&mut work);
    if shared.is_stopping() && result.is_err() {
        // Its lease runs out, and another node goes on where this one stopped.
        return;
    }
    let ended = run(engine, Retry::default(), |txn| match &result {
        Ok(note) => job::finish(txn, &held, note, clock::now_ms()),
        Err(why) => job::fail(txn, &held, why, clock::now_ms()),
    });
    if let Err(error) = ended {
        eprintln!("kumiko: the job {id} was not ended by this node: {error}");
    }
}
