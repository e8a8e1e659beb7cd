//! Snapshots in the background: the executor writes the parts, a thread keeps them.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kumiko_lattice::live::SnapshotStep;
use kumiko_redis::Server;

use super::journal::Progress;
use super::store::{Part, Store};
use crate::Error;

/// The size of one part; some milliseconds of the executor's time.
const PART_BYTES: usize = 256 * 1024;
/// So many parts may wait for the disk.
const PARTS_WAITING_MAX: usize = 8;

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// There is more to do now.
    Busy,
    /// The disk must catch up, or is about to finish.
    Waiting,
    /// It is over.
    Done,
}

/// A snapshot that is being made.
pub(super) struct Run {
    sender: Option<SyncSender<Part>>,
    pending: VecDeque<Part>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    /// Begin again when this one is cleared away: a database was emptied in the middle.
    restart: bool,
}

impl Run {
    /// Begins a snapshot of the state after event `id`, which is batch `number` of the journal.
    pub(super) fn begin(
        server: &mut Server,
        store: &Store,
        id: u64,
        number: u64,
        progress: Progress,
    ) -> Result<Run, Error> {
        server.live.snapshot_begin(id);
        server.facts.snapshot_runs = true;
        let (sender, receiver) = sync_channel(PARTS_WAITING_MAX);
        let store = store.clone();
        let thread = thread::Builder::new().name("snapshot".into()).spawn(move || {
            while progress.written() < number {
                if progress.failed() {
                    return Err(Error::invalid("the journal cannot be written"));
                }
                thread::sleep(Duration::from_millis(1));
            }
            store.snapshot(id, receiver)
        })?;
        Ok(Run {
            sender: Some(sender),
            pending: VecDeque::new(),
            thread: Some(thread),
            restart: false,
        })
    }

    /// Writes one more part, or looks whether the thread is done.
    pub(super) fn step(&mut self, server: &mut Server) -> Stepped {
        let Some(sender) = &self.sender else { return self.join(server) };
        if self.pending.is_empty() {
            match server.live.snapshot_step(PART_BYTES, server.now_ms) {
                SnapshotStep::Part(records) => self.pending.push_back(Part::Records(records)),
                SnapshotStep::Last(records) => {
                    self.pending.extend([Part::Records(records), Part::End]);
                }
                SnapshotStep::Restart => {
                    self.restart = true;
                    self.sender = None;
                    return Stepped::Waiting;
                }
            }
        }
        let Some(part) = self.pending.pop_front() else { return Stepped::Busy };
        let last = matches!(part, Part::End);
        match sender.try_send(part) {
            Ok(()) if last => {
                self.sender = None;
                Stepped::Waiting
            }
            Ok(()) => Stepped::Busy,
            Err(TrySendError::Full(part)) => {
                self.pending.push_front(part);
                Stepped::Waiting
            }
            Err(TrySendError::Disconnected(_)) => {
                self.sender = None;
                Stepped::Waiting
            }
        }
    }

    fn join(&mut self, server: &mut Server) -> Stepped {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Stepped::Waiting;
        }
        let result = self.thread.take().map(JoinHandle::join);
        server.facts.snapshot_runs = false;
        match result {
            Some(Ok(Ok(()))) => {
                server.facts.snapshot_failed = false;
                server.facts.snapshots += 1;
                server.facts.last_snapshot_ms = server.now_ms;
                server.stats.dirty = 0;
            }
            Some(Ok(Err(error))) if !self.restart => {
                eprintln!("kumiko: the snapshot failed: {error}");
                server.facts.snapshot_failed = true;
            }
            _ => {}
        }
        Stepped::Done
    }

    /// Whether it has to begin again.
    pub(super) fn restarts(&self) -> bool {
        self.restart
    }
}
