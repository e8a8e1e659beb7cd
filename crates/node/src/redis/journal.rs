//! The thread that makes changes durable.
//!
//! The executor hands over what one turn changed as one batch. This thread takes all batches that
//! wait, writes them together and then says up to which one all is safe: the group commit. With
//! `always`, answers to writes wait for that; with `everysecond` and `never` they do not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Error;

/// How long to wait before a batch that could not be written is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How many bytes of waiting batches are written in one go.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Keeps batches of changes in their order.
pub trait Journal: Send {
    /// Writes the batches. Says how many of them, from the first, are as safe as the setting promises,
    /// and why the next is not. A batch may be given again: it is kept once.
    fn append(&mut self, batches: &[Vec<u8>]) -> (usize, Result<(), Error>);
}

/// How far the thread is, for other threads.
#[derive(Clone, Default)]
pub(super) struct Progress {
    written: Arc<AtomicU64>,
    failed: Arc<Mutex<Option<String>>>,
    stopping: Arc<AtomicBool>,
}

impl Progress {
    /// The number of the last batch that is safe.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    fn set_failure(&self, failure: Option<String>) {
        if let Ok(mut text) = self.failed.lock() {
            *text = failure;
        }
    }

    /// Whether the journal cannot be written now.
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
            // The thread ends only when it is told to.
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

    /// Why the journal cannot be written now, if it cannot.
    pub(super) fn failure(&self) -> Option<String> {
        self.progress.failed.lock().ok().and_then(|text| text.clone())
    }

    /// Writes what waits, if it can be written, and ends the thread.
    pub(super) fn stop(&mut self) {
        self.progress.stopping.store(true, Ordering::SeqCst);
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
        if !write_group(journal.as_mut(), &group, progress, wake) {
            return;
        }
        progress.written.store(last, Ordering::Release);
        wake();
    }
}

/// Writes a group, again and again until it is safe: the engine may be away, or the disk full, for a
/// while. False if the node stops before that.
fn write_group(
    journal: &mut dyn Journal,
    group: &[Vec<u8>],
    progress: &Progress,
    wake: &dyn Fn(),
) -> bool {
    let mut rest = group;
    loop {
        let (done, result) = journal.append(rest);
        rest = rest.get(done..).unwrap_or_default();
        let Err(error) = result else {
            progress.set_failure(None);
            return true;
        };
        progress.set_failure(Some(error.to_string()));
        wake();
        if progress.stopping.load(Ordering::SeqCst) {
            return false;
        }
        thread::sleep(AGAIN_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes one batch a call, and fails every second call.
    struct Flaky {
        calls: usize,
        kept: Arc<Mutex<Vec<Vec<u8>>>>,
    }

    impl Journal for Flaky {
        fn append(&mut self, batches: &[Vec<u8>]) -> (usize, Result<(), Error>) {
            self.calls += 1;
            if self.calls.is_multiple_of(2) {
                return (0, Err(Error::invalid("no luck")));
            }
            self.kept.lock().unwrap().push(batches[0].clone());
            match batches.len() {
                1 => (1, Ok(())),
                _ => (1, Err(Error::invalid("no more luck"))),
            }
        }
    }

    /// An engine that goes away and comes back costs time and nothing else.
    #[test]
    fn batches_are_tried_again_and_kept_once_and_in_order() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let mut writer =
            Writer::start(Box::new(Flaky { calls: 0, kept: Arc::clone(&kept) }), || {}).unwrap();
        for number in 0..4 {
            writer.push(vec![number]);
        }
        while writer.written() < writer.last() {
            thread::yield_now();
        }
        assert_eq!(writer.failure(), None);
        writer.stop();
        assert_eq!(*kept.lock().unwrap(), [[0], [1], [2], [3]]);
    }
}
