//! This node as a member of its cluster: it beats, posts and pulls messages, and runs jobs.
//!
//! Nodes that share an engine form a cluster. A node alone is a cluster of one, and does the same:
//! its jobs run through the same code. Four threads do the work, and each goes on by itself when the
//! engine comes back after an outage:
//!
//! ```text
//! mail-out   takes what was posted since it last looked and posts it in one transaction
//! mail-in    waits for the bell, pulls, and shows every message to the observers, in order
//! beat       says "I live", looks for those who do not, and tidies up
//! jobs       claims due jobs of the kinds that were registered, and runs them
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kumiko_coordinator::job::Order;
use kumiko_coordinator::{Dialect, Draft, Mailbox, Message, NodeId};
use kumiko_kv::{Engine, Retry, run};

use crate::{Error, Service, clock};

mod beat;
pub mod channels;
mod jobs;
mod mail;
pub mod report;

pub use jobs::{Runner, Work};

/// How often a node says that it lives.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// The same on an engine that nobody shares: nobody else could notice its silence.
pub const BEAT_EVERY_ALONE: Duration = Duration::from_secs(30);
/// A node that is silent this long is unreachable.
pub const UNREACHABLE_MS: i64 = 5_000;
/// A node that is silent this long is down, and does not hold back the discarding of messages.
pub const DOWN_MS: i64 = 60_000;
/// Messages are kept this long, and longer while a live node has not read them.
pub const MESSAGE_AGE_MS: i64 = 24 * 3_600_000;
/// The history of jobs that ended is kept this long.
pub const JOB_AGE_MS: i64 = 7 * 24 * 3_600_000;
/// How long a node may hold a job without renewing it.
pub const LEASE_MS: i64 = 10_000;
/// The most drafts that wait to be posted. More are refused: the engine is away or too slow.
pub const OUTBOX_MAX: usize = 10_000;

/// Who this node is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its id, the same after a restart.
    pub node: NodeId,
    /// The name of its cluster.
    pub cluster: String,
    /// Its address, as others see it.
    pub host: String,
    /// How messages are written.
    pub dialect: Dialect,
}

type Observer = Box<dyn Fn(&Message) + Send>;
type Posted = Result<u64, String>;

struct Shared {
    engine: Arc<dyn Engine>,
    identity: Identity,
    outbox: Mutex<Vec<(Draft, Option<Sender<Posted>>)>>,
    outbox_filled: Condvar,
    observers: Mutex<Vec<Observer>>,
    runners: Mutex<HashMap<String, Arc<dyn Runner>>>,
    /// How far the observers have seen the messages.
    cursor: Mutex<u64>,
    stopping: AtomicBool,
    stopped: Condvar,
    stop_lock: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Waits, or returns early when the node stops.
    fn pause(&self, time: Duration) {
        let guard = lock(&self.stop_lock);
        if !self.is_stopping() {
            let _ = self.stopped.wait_timeout(guard, time);
        }
    }

    fn mailbox(&self) -> Mailbox {
        let it = &self.identity;
        Mailbox::new(it.node, &it.cluster, &it.host, it.dialect)
    }
}

/// How the services of this node reach the cluster.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.shared.identity
    }

    /// Posts a message and waits until it is safe. Returns its clock.
    pub fn post(&self, draft: Draft) -> Result<u64, Error> {
        let (sender, receiver) = channel();
        self.enqueue(draft, Some(sender))?;
        match receiver.recv() {
            Ok(Ok(clock)) => Ok(clock),
            Ok(Err(why)) => Err(Error::new(kumiko_base::Kind::Unavailable, why)),
            Err(_) => Err(Error::new(kumiko_base::Kind::Unavailable, "the node is stopping")),
        }
    }

    /// Posts a message soon, and does not wait.
    pub fn post_soon(&self, draft: Draft) -> Result<(), Error> {
        self.enqueue(draft, None)
    }

    fn enqueue(&self, draft: Draft, answer: Option<Sender<Posted>>) -> Result<(), Error> {
        let mut outbox = lock(&self.shared.outbox);
        if OUTBOX_MAX <= outbox.len() || self.shared.is_stopping() {
            let text = format!("{OUTBOX_MAX} messages wait to be posted already");
            return Err(Error::new(kumiko_base::Kind::Unavailable, text));
        }
        outbox.push((draft, answer));
        self.shared.outbox_filled.notify_one();
        Ok(())
    }

    /// Shows every message from now on, in order, this node's own included.
    pub fn observe(&self, observer: impl Fn(&Message) + Send + 'static) {
        lock(&self.shared.observers).push(Box::new(observer));
    }

    /// Lets this node run jobs of `kind`.
    pub fn register(&self, kind: &str, runner: Arc<dyn Runner>) {
        lock(&self.shared.runners).insert(kind.to_string(), runner);
    }

    /// Submits a job. False if the same one was submitted before.
    pub fn submit(&self, order: &Order) -> Result<bool, Error> {
        let engine = self.shared.engine.as_ref();
        let retry = Retry { unknown: true, ..Retry::default() };
        run(engine, retry, |txn| kumiko_coordinator::job::submit(txn, order, clock::now_ms()))
            .map_err(Error::from)
    }
}

/// Joins the cluster and starts the threads.
pub fn start(engine: Arc<dyn Engine>, identity: Identity) -> Result<(Handle, Service), Error> {
    let shared = Arc::new(Shared {
        engine,
        identity,
        outbox: Mutex::default(),
        outbox_filled: Condvar::new(),
        observers: Mutex::default(),
        runners: Mutex::default(),
        cursor: Mutex::new(0),
        stopping: AtomicBool::new(false),
        stopped: Condvar::new(),
        stop_lock: Mutex::default(),
    });
    let mut mailbox = shared.mailbox();
    let beat = beat::Beat::join(&shared)?;
    run(shared.engine.as_ref(), Retry::default(), |txn| mailbox.resume(txn))?;
    *lock(&shared.cursor) = mailbox.cursor();
    let threads = vec![
        spawn("mail-out", &shared, mail::send)?,
        spawn("mail-in", &shared, move |shared| mail::receive(shared, mailbox))?,
        spawn("beat", &shared, move |shared| beat.run(shared))?,
        spawn("jobs", &shared, jobs::serve)?,
    ];
    let handle = Handle { shared: Arc::clone(&shared) };
    let stop = move || stop(&shared, threads);
    Ok((handle, Service { name: "cluster", address: None, stop: Box::new(stop) }))
}

fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    body: impl FnOnce(&Shared) + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    let shared = Arc::clone(shared);
    let thread = std::thread::Builder::new().name(name.into());
    Ok(thread.spawn(move || body(&shared))?)
}

fn stop(shared: &Shared, threads: Vec<JoinHandle<()>>) {
    {
        let _guard = lock(&shared.stop_lock);
        shared.stopping.store(true, Ordering::SeqCst);
        shared.stopped.notify_all();
    }
    {
        let _guard = lock(&shared.outbox);
        shared.outbox_filled.notify_all();
    }
    for thread in threads {
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests;
