//! The threads of an open store: one writes memtables out, one merges tables, one keeps time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kumiko_kv::Error;

use crate::Durability;
use crate::files;
use crate::store::Store;

/// How often the log is synced with `EverySecond`, and failed background work tried again.
const TICK: Duration = Duration::from_secs(1);

/// The running threads; dropping this ends them and closes the store.
#[derive(Debug)]
pub(crate) struct Threads {
    store: Arc<Store>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    pub(crate) fn start(store: &Arc<Store>) -> Result<Threads, Error> {
        let threads = Threads { store: Arc::clone(store), handles: Mutex::default() };
        if store.threads {
            threads.spawn("kumiko-flush", Store::run_flush)?;
            threads.spawn("kumiko-compact", Store::run_compact)?;
            threads.spawn("kumiko-tick", Store::run_tick)?;
        }
        Ok(threads)
    }

    fn spawn(&self, name: &str, body: fn(&Store)) -> Result<(), Error> {
        let store = Arc::clone(&self.store);
        let thread = thread::Builder::new().name(name.into()).spawn(move || body(&store));
        let dir = &self.store.dir;
        let handle =
            thread.map_err(|error| files::error("cannot start a thread for", dir, &error))?;
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let store = &self.store;
        store.stop.store(true, Ordering::Relaxed);
        for signal in [&store.flush, &store.compact, &store.tick] {
            signal.raise();
        }
        let handles = self.handles.get_mut().unwrap_or_else(PoisonError::into_inner);
        for handle in handles.drain(..) {
            let _ = handle.join();
        }
        store.queue().close(Error::Unavailable("the store is closed".into()));
        store.room.notify_all();
        // Nobody is left to be told; what the settings promised was done before the answers.
        let _ = store.mark();
        if store.options.durability != Durability::Never {
            let _ = store.sync();
        }
    }
}

impl Store {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn run_flush(&self) {
        while !self.stopped() {
            self.flush.wait(TICK);
            while !self.stopped() && self.flush_step() {}
        }
    }

    /// Writes one memtable out and lets the writers know how it went. Says whether to go on.
    fn flush_step(&self) -> bool {
        let result = self.flush_one();
        let mut queue = self.queue();
        let more = matches!(result, Ok(true));
        if more || queue.flush_error.is_some() {
            queue.flush_error = result.err();
        } else if let Err(error) = result {
            queue.flush_error = Some(error);
        }
        drop(queue);
        self.room.notify_all();
        if more {
            self.compact.raise();
        }
        more
    }

    fn run_compact(&self) {
        let mut version = 0;
        while !self.stopped() {
            self.compact.wait(TICK);
            let now = self.front().published();
            let idle = now == version;
            version = now;
            // After an error the tables are as they were; the next tick tries again.
            while !self.stopped() && matches!(self.compact_one(idle), Ok(true)) {
                self.room.notify_all();
            }
        }
    }

    fn run_tick(&self) {
        let mut offset = 0;
        while !self.stopped() {
            self.tick.wait(TICK);
            if self.options.durability == Durability::EverySecond {
                // A failure closes the store to commits, which tells everybody.
                let _ = self.sync();
            }
            // Idle for a whole tick: the last commit gets a mark behind it.
            let now = self.wal().offset;
            if now == offset {
                let _ = self.mark();
            }
            offset = now;
        }
    }

    /// Does the background work that is due; for stores without threads. What fails is tried again
    /// after the next commit, which it does not concern.
    pub(crate) fn work_inline(&self) {
        while matches!(self.flush_one(), Ok(true)) {}
        while matches!(self.compact_one(false), Ok(true)) {}
    }

    /// Writes all memtables out and merges what is due.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        self.rotate_now()?;
        while self.flush_one()? {}
        while self.compact_one(true)? {}
        self.room.notify_all();
        Ok(())
    }
}
