//! The thread that says that this node lives, and looks after those that do not.

use kumiko_coordinator::{Error, Member, Status, job, mailbox, member};
use kumiko_kv::{Retry, Txn, run};

use super::{
    BEAT_EVERY, BEAT_EVERY_ALONE, DOWN_MS, JOB_AGE_MS, MESSAGE_AGE_MS, Shared, UNREACHABLE_MS, lock,
};
use crate::clock;

/// Every so many beats, what is old is tidied up.
const TIDY_EVERY: u64 = 60;
/// How many jobs one step of tidying looks at.
const PRUNE_JOBS: usize = 500;

pub(super) struct Beat {
    member: Member,
}

impl Beat {
    /// Enters the cluster: joining, with a new incarnation.
    pub(super) fn join(shared: &Shared) -> Result<Beat, Error> {
        let it = &shared.identity;
        run(shared.engine.as_ref(), Retry { unknown: true, ..Retry::default() }, |txn| {
            let now_ms = clock::now_ms();
            let known = member::get(txn, &it.cluster, it.node)?;
            let member = Member {
                id: it.node,
                cluster: it.cluster.clone(),
                host: it.host.clone(),
                clock: mailbox::newest(txn)?,
                time_ms: now_ms,
                status: Status::Joining,
                beat_ms: now_ms,
                incarnation: known.map_or(0, |it| it.incarnation) + 1,
            };
            member::put(txn, &member)?;
            Ok(Beat { member })
        })
    }

    pub(super) fn run(mut self, shared: &Shared) {
        let mut beats = 0;
        let every = if shared.engine.shared() { BEAT_EVERY } else { BEAT_EVERY_ALONE };
        while !shared.is_stopping() {
            if let Err(error) = self.beat(shared) {
                eprintln!("kumiko: the cluster could not be reached: {error}");
            }
            if beats % TIDY_EVERY == 0
                && let Err(error) = tidy(shared)
            {
                eprintln!("kumiko: old messages and jobs stay for now: {error}");
            }
            beats += 1;
            shared.pause(every);
        }
        // Two steps, so that whoever watches sees a node leave rather than vanish.
        for status in [Status::Leaving, Status::Down] {
            self.member.status = status;
            let _ = self.put(shared);
        }
    }

    fn beat(&mut self, shared: &Shared) -> Result<(), Error> {
        self.member.status = Status::Up;
        self.put(shared)?;
        if !shared.engine.shared() {
            return Ok(());
        }
        let it = &shared.identity;
        let changed = run(shared.engine.as_ref(), Retry::default(), |txn| {
            member::sweep(txn, &it.cluster, clock::now_ms(), UNREACHABLE_MS, DOWN_MS)
        })?;
        for member in changed {
            eprintln!("kumiko: the node {} is {}", member.id, member.status.word());
        }
        Ok(())
    }

    fn put(&mut self, shared: &Shared) -> Result<(), Error> {
        let cursor = *lock(&shared.cursor);
        let mailbox = shared.mailbox();
        self.member.beat_ms = clock::now_ms();
        self.member.time_ms = self.member.beat_ms;
        let engine = shared.engine.as_ref();
        run(engine, Retry { unknown: true, ..Retry::default() }, |txn| {
            self.name_twin(txn)?;
            self.member.clock = self.member.clock.max(cursor);
            member::put(txn, &self.member)?;
            mailbox.store_cursor(txn, cursor)
        })
    }

    /// Another process with our id has a higher incarnation than the one we drew.
    fn name_twin(&self, txn: &mut dyn Txn) -> Result<(), Error> {
        let known = member::get(txn, &self.member.cluster, self.member.id)?;
        if known.as_ref().is_some_and(|it| self.member.incarnation < it.incarnation) {
            let host = known.map(|it| it.host).unwrap_or_default();
            eprintln!(
                "kumiko: another process uses the id of this node, at {host}; stop one of them"
            );
        }
        Ok(())
    }
}

fn tidy(shared: &Shared) -> Result<(), Error> {
    let engine = shared.engine.as_ref();
    let it = &shared.identity;
    loop {
        let count = run(engine, Retry::default(), |txn| {
            mailbox::discard(txn, &it.cluster, clock::now_ms(), MESSAGE_AGE_MS)
        })?;
        if count < mailbox::DISCARD_MESSAGES_MAX || shared.is_stopping() {
            break;
        }
    }
    let mut after = None;
    loop {
        after = run(engine, Retry::default(), |txn| {
            job::prune(txn, after.as_ref(), clock::now_ms() - JOB_AGE_MS, PRUNE_JOBS)
        })?;
        if after.is_none() || shared.is_stopping() {
            return Ok(());
        }
    }
}
