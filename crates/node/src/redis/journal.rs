//! The thread that makes changes durable.
//!
//! The executor hands over what one turn changed as one batch. This thread takes all batches that
//! wait, writes them together and then says up to which one all is safe: the group commit. With
//! `always`, answers to writes wait for that; with `everysecond` and `never` they do not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::Error;

/// How many bytes of waiting batches are written in one go.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Keeps batches of changes in their order.
pub trait Journal: Send {
    /// Writes the batches; when this returns they are as safe as the setting promises.
    fn append(&mut self, batches: &[Vec<u8>]) -> Result<(), Error>;
}

/// How far the thread is, for other threads.
#[derive(Clone, Default)]
pub(super) struct Progress {
    written: Arc<AtomicU64>,
    failed: Arc<Mutex<Option<String>>>,
}

impl Progress {
    /// The number of the last batch that is safe.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Whether the journal stopped because of an error.
    pub(super) fn failed(&self) -> bool {
        self.failed.lock().is_ok_and(|text| text.is_some())
    }
}

/// What the executor knows about the thread.
pub(super) struct Writer {
    sender: Option<Sender<(u64, Vec<u8>)>>,
    progress: Progress,
    thread: Option<JoinHandle<()>>,
    last: u64,
}

impl Writer {
    /// Starts the thread. `wake` is called after every group.
    pub(super) fn start(
        journal: Box<dyn Journal>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Writer, Error> {
        let (sender, receiver) = channel();
        let progress = Progress::default();
        let shared = progress.clone();
        let thread = thread::Builder::new()
            .name("journal".into())
            .spawn(move || write_all(journal, &receiver, &shared, &wake))?;
        Ok(Writer { sender: Some(sender), progress, thread: Some(thread), last: 0 })
    }

    /// Hands over one batch and returns its number.
    pub(super) fn push(&mut self, batch: Vec<u8>) -> u64 {
        self.last += 1;
        if let Some(sender) = &self.sender {
            // The thread ends only when it failed, and then `failure` tells.
            let _ = sender.send((self.last, batch));
        }
        self.last
    }

    /// The number of the last batch that is safe.
    pub(super) fn written(&self) -> u64 {
        self.progress.written()
    }

    /// How far the thread is, for other threads.
    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// The number of the last batch that was handed over.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// How many batches wait.
    pub(super) fn waiting(&self) -> u64 {
        self.last - self.written()
    }

    /// Why the journal stopped, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.progress.failed.lock().ok().and_then(|text| text.clone())
    }

    /// Writes what waits and ends the thread.
    pub(super) fn stop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(
    mut journal: Box<dyn Journal>,
    receiver: &Receiver<(u64, Vec<u8>)>,
    progress: &Progress,
    wake: &dyn Fn(),
) {
    while let Ok((number, batch)) = receiver.recv() {
        let (mut last, mut size) = (number, batch.len());
        let mut group = vec![batch];
        while size < GROUP_BYTES_MAX
            && let Ok((number, batch)) = receiver.try_recv()
        {
            last = number;
            size += batch.len();
            group.push(batch);
        }
        if let Err(error) = journal.append(&group) {
            if let Ok(mut text) = progress.failed.lock() {
                *text = Some(error.to_string());
            }
            wake();
            return;
        }
        progress.written.store(last, Ordering::Release);
        wake();
    }
}
