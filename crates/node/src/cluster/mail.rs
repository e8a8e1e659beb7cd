//! The two threads that post and pull.

use std::time::Duration;

use kumiko_coordinator::{Draft, Mailbox, mailbox};
use kumiko_kv::{Retry, run};

use super::{Posted, Sender, Shared, lock};
use crate::clock;

/// How long to wait before asking an engine again that did not answer.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How long to wait for the bell before looking anyway.
const BELL_TIME_MAX: Duration = Duration::from_millis(500);
/// The most drafts, and bytes of objects, of one transaction.
const BATCH_MAX: usize = 500;
const BATCH_BYTES_MAX: usize = 4_000_000;

/// Posts what waits in the outbox, until the node stops and the outbox is empty.
pub(super) fn send(shared: &Shared) {
    let mut mailbox = shared.mailbox();
    while let Some(batch) = take(shared) {
        let (drafts, answers): (Vec<Draft>, Vec<Option<Sender<Posted>>>) =
            batch.into_iter().unzip();
        // A commit whose result is unknown is not repeated: the message could come twice.
        let result = run(shared.engine.as_ref(), Retry::default(), |txn| {
            mailbox.post(txn, &drafts, clock::now_ms())
        });
        let posted = match result {
            Ok((clock, moved)) => {
                mailbox.apply(moved);
                Ok(clock)
            }
            Err(error) => {
                eprintln!("kumiko: {} messages were not posted: {error}", drafts.len());
                Err(error.to_string())
            }
        };
        for answer in answers.into_iter().flatten() {
            // Whoever asked may be gone.
            let _ = answer.send(posted.clone());
        }
    }
}

/// The drafts that wait; none when the node stops and nothing waits.
fn take(shared: &Shared) -> Option<Vec<(Draft, Option<Sender<Posted>>)>> {
    let mut outbox = lock(&shared.outbox);
    while outbox.is_empty() {
        if shared.is_stopping() {
            return None;
        }
        outbox =
            shared.outbox_filled.wait(outbox).unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    let mut bytes = 0;
    let fits = |(draft, _): &&(Draft, Option<Sender<Posted>>)| {
        bytes += draft.object.len();
        bytes <= BATCH_BYTES_MAX
    };
    let count = outbox.iter().take(BATCH_MAX).take_while(fits).count().max(1);
    Some(outbox.drain(..count).collect())
}

/// Shows every message to the observers, in order, until the node stops.
pub(super) fn receive(shared: &Shared, mut mailbox: Mailbox) {
    while !shared.is_stopping() {
        if let Err(error) = receive_once(shared, &mut mailbox) {
            eprintln!("kumiko: messages could not be pulled: {error}");
            shared.pause(AGAIN_AFTER);
        }
    }
}

fn receive_once(shared: &Shared, mailbox: &mut Mailbox) -> Result<(), kumiko_coordinator::Error> {
    let bell = mailbox::bell_key(&shared.identity.cluster)?;
    // The watch first, then the look: a message that comes in between rings the bell.
    let mut watch = shared.engine.watch(&bell)?;
    let mut txn = shared.engine.begin()?;
    let (messages, moved) = mailbox.pull(txn.as_mut())?;
    drop(txn);
    if messages.is_empty() {
        watch.wait(BELL_TIME_MAX)?;
        return Ok(());
    }
    for message in &messages {
        for observer in lock(&shared.observers).iter() {
            observer(message);
        }
    }
    mailbox.apply(moved);
    *lock(&shared.cursor) = mailbox.cursor();
    Ok(())
}
