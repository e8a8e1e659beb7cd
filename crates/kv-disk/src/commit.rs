//! Group commit: many commits, one write, one sync.
//!
//! A commit takes the queue's lock, checks its conflicts, gets its version, adds its record to the
//! frame under way and its writes to the memtable, where no snapshot sees them yet. The first one
//! to find nobody writing becomes the leader: it writes the frame and syncs it while others gather
//! behind it in the next one. When the frame is durable its versions are published, its commits
//! answered, and one of those who gathered leads next.
//!
//! If a frame cannot be written, it and everything behind it is taken out of the memtable again and
//! answered with the error. After a failed sync nobody knows what the file holds, so the store
//! takes no more commits until it is opened again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use kumiko_kv::buffer::{self, Buffer, Write};
use kumiko_kv::conflict::Reads;
use kumiko_kv::{Committed, Error};

use crate::Durability;
use crate::frame::{self, FRAME_HEADER, FrameKind, Op};
use crate::mem::{Found, Mem};
use crate::store::{self, Store};
use crate::wal::{Failure, Wal};

/// How many memtables may wait to be written before writers wait.
const FROZEN_MAX: usize = 2;
/// How many tables may be on level 0 before writers wait.
const ZERO_MAX: usize = 24;
/// A frame is ended at this size; the next commit starts another.
const FRAME_BYTES: usize = 16 << 20;
/// How long a leader waits for those who committed lately. A sync takes longer than this on any
/// disk; measured with sixteen threads on two cores, groups grow from eight to thirteen.
const GATHER: Duration = Duration::from_micros(40);
/// How many frames one leader writes before it hands the lead on and its own caller goes on.
const ROUNDS_MAX: usize = 16;

const WAITING: u8 = 0;
const LEADING: u8 = 1;
const DONE: u8 = 2;

/// One commit that waits for its answer.
#[derive(Debug)]
pub(crate) struct Waiter {
    thread: Thread,
    state: AtomicU8,
    result: OnceLock<Result<(), Error>>,
}

impl Waiter {
    fn new() -> Arc<Waiter> {
        let (state, result) = (AtomicU8::new(WAITING), OnceLock::new());
        Arc::new(Waiter { thread: thread::current(), state, result })
    }

    fn answer(&self, result: Result<(), Error>) {
        let _ = self.result.set(result);
        self.wake(DONE);
    }

    fn wake(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits for something to happen and says what.
    fn wait(&self) -> u8 {
        loop {
            match self.state.load(Ordering::Acquire) {
                WAITING => thread::park(),
                state => return state,
            }
        }
    }
}

/// Commits that go into one frame.
#[derive(Debug)]
struct Batch {
    mem: Arc<Mem>,
    frame: Vec<u8>,
    version: u64,
    waiters: Vec<Arc<Waiter>>,
}

/// The commits under way.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The newest version given out.
    pub(crate) version: u64,
    pub(crate) active: Arc<Mem>,
    batches: VecDeque<Batch>,
    /// Whether somebody writes a frame.
    leading: bool,
    /// How many commits the last two frames held: about as many threads are committing.
    recent: [usize; 2],
    /// A frame that was written, for its memory.
    spare: Vec<u8>,
    /// Why no commit is taken any more.
    broken: Option<Error>,
    /// Why the last memtable could not be written.
    pub(crate) flush_error: Option<Error>,
}

impl Queue {
    pub(crate) fn new(version: u64, active: Arc<Mem>) -> Queue {
        Queue {
            version,
            active,
            batches: VecDeque::new(),
            leading: false,
            recent: [0; 2],
            spare: Vec::new(),
            broken: None,
            flush_error: None,
        }
    }

    /// Takes no more commits.
    pub(crate) fn close(&mut self, why: Error) {
        self.broken.get_or_insert(why);
    }

    /// The batch that the next commit joins.
    fn batch(&mut self) -> &mut Batch {
        let joins = self.batches.back().is_some_and(|batch| {
            Arc::ptr_eq(&batch.mem, &self.active) && batch.frame.len() < FRAME_BYTES
        });
        if !joins {
            let (mem, mut frame) = (Arc::clone(&self.active), std::mem::take(&mut self.spare));
            frame.clear();
            frame.resize(FRAME_HEADER, 0);
            self.batches.push_back(Batch { mem, frame, version: 0, waiters: Vec::new() });
        }
        self.batches.back_mut().expect("there is one now")
    }
}

impl Store {
    /// Commits what a transaction that read `reads` at `snapshot` wrote. The snapshot is open in the
    /// conflict log; `open` says afterwards whether it still is.
    pub(crate) fn commit(
        &self,
        snapshot: u64,
        reads: &Reads,
        buffer: &Buffer,
        open: &mut bool,
    ) -> Result<Committed, Error> {
        let mut queue = self.wait_for_room()?;
        // Not before the memtable's own log exists, or there would be a gap between the logs.
        let logged = self.wal_id.load(Ordering::Acquire) == queue.active.log();
        if logged && self.options.memtable_bytes <= queue.active.bytes() {
            self.freeze(&mut queue);
        }
        let adds = self.resolve(buffer)?;
        let version = queue.version + 1;
        let keep = {
            let mut front = self.front();
            if front.log.conflicts(snapshot, reads) {
                return Err(Error::Conflict);
            }
            front.log.closed(snapshot);
            *open = false;
            front.log.committed(version, buffer.touched());
            front.oldest()
        };
        queue.version = version;
        let batch = queue.batch();
        batch.version = version;
        encode(&mut batch.frame, version, buffer, &adds);
        batch.mem.apply(version, keep, ops(buffer, &adds));
        let waiter = Waiter::new();
        batch.waiters.push(Arc::clone(&waiter));
        self.gathered.fetch_add(1, Ordering::Relaxed);
        let lead = !std::mem::replace(&mut queue.leading, true);
        drop(queue);
        if lead {
            self.lead();
        }
        while waiter.wait() == LEADING {
            waiter.state.store(WAITING, Ordering::Relaxed);
            self.lead();
        }
        waiter.result.get().cloned().expect("an answered commit has a result")?;
        let ranges = buffer.cleared().collect::<Vec<_>>();
        self.watches.ring(buffer.writes().keys().map(Vec::as_slice), &ranges);
        Ok(Committed { version })
    }

    /// Waits while the background work is too far behind.
    fn wait_for_room(&self) -> Result<MutexGuard<'_, Queue>, Error> {
        let mut queue = self.queue();
        loop {
            if let Some(error) = &queue.broken {
                return Err(error.clone());
            }
            let behind = FROZEN_MAX <= self.frozen.load(Ordering::Relaxed)
                || ZERO_MAX <= self.zero.load(Ordering::Relaxed);
            let full = self.options.memtable_bytes <= queue.active.bytes();
            if !(self.threads && behind && full) {
                return Ok(queue);
            }
            if let Some(error) = &queue.flush_error {
                return Err(error.clone());
            }
            queue = self.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The values that this commit's additions come to. The queue is locked, so the newest state
    /// is the one before this commit.
    fn resolve(&self, buffer: &Buffer) -> Result<Vec<Vec<u8>>, Error> {
        let mut values = Vec::new();
        for (key, write) in buffer.writes() {
            let Write::Add(delta) = write else { continue };
            let view = Arc::clone(&self.front().view);
            let value = match view.get(key, u64::MAX, &self.cache)? {
                Found::Value(value) => Some(value),
                Found::Nothing | Found::Gone => None,
            };
            values.push(buffer::add(value.as_deref(), *delta));
        }
        Ok(values)
    }

    /// Writes batch after batch, for as long as commits wait and up to a bound. To wake another
    /// leader takes about as long as a sync, so the one that is awake goes on.
    fn lead(&self) {
        for _ in 0..ROUNDS_MAX {
            self.lead_once();
            let mut queue = self.queue();
            if queue.batches.is_empty() {
                queue.leading = false;
                return;
            }
        }
        hand_on(&mut self.queue());
    }

    /// Writes the first batch and answers its commits.
    fn lead_once(&self) {
        self.gather();
        let mut batch = self.queue().batches.pop_front().expect("a leader has a batch");
        self.gathered.fetch_sub(batch.waiters.len(), Ordering::Relaxed);
        let size = batch.frame.len();
        let result = self.write(&mut batch);
        batch.frame.truncate(size);
        let mut queue = self.queue();
        queue.recent = [batch.waiters.len(), queue.recent[0]];
        let mut waiters = batch.waiters;
        batch.waiters = Vec::new();
        let result = match result {
            Ok(()) => {
                self.front().publish(batch.version);
                Ok(())
            }
            Err(failure) => {
                let later = std::mem::take(&mut queue.batches);
                waiters.extend(later.iter().flat_map(|batch| batch.waiters.iter().cloned()));
                self.gathered.store(0, Ordering::Relaxed);
                // Newest first, so that every undo finds its version on top.
                for batch in later.iter().rev().chain([&batch]) {
                    undo(batch);
                }
                Err(self.fail(&mut queue, failure))
            }
        };
        queue.spare = batch.frame;
        drop(queue);
        for waiter in waiters {
            waiter.answer(result.clone());
        }
    }

    /// Starts a new memtable and a new log, so that everything before can become tables.
    pub(crate) fn rotate_now(&self) -> Result<(), Error> {
        let mut queue = loop {
            let queue = self.queue();
            if let Some(error) = &queue.broken {
                return Err(error.clone());
            }
            if !queue.leading {
                break queue;
            }
            drop(queue);
            thread::yield_now();
        };
        let logged = self.wal_id.load(Ordering::Acquire) == queue.active.log();
        if logged && queue.active.bytes() == 0 {
            return Ok(());
        }
        queue.leading = true;
        if logged {
            self.freeze(&mut queue);
        }
        let id = queue.active.log();
        drop(queue);
        let result = self.rotate(&mut self.wal(), id);
        let mut queue = self.queue();
        let result = result.map_err(|failure| self.fail(&mut queue, failure));
        hand_on(&mut queue);
        result
    }

    /// Waits a moment if more commits are likely to come.
    fn gather(&self) {
        let expected = {
            let queue = self.queue();
            if 1 < queue.batches.len() {
                return;
            }
            queue.recent[0] + queue.recent[1]
        };
        // Two commits in the last two frames are one thread's.
        if expected <= 2 {
            return;
        }
        let start = Instant::now();
        while self.gathered.load(Ordering::Relaxed) < expected && start.elapsed() < GATHER {
            thread::yield_now();
        }
    }

    fn write(&self, batch: &mut Batch) -> Result<(), Failure> {
        let mut wal = self.wal();
        if wal.id < batch.mem.log() {
            self.rotate(&mut wal, batch.mem.log())?;
        }
        wal.append(&mut batch.frame, FrameKind::Commits)?;
        match self.options.durability {
            Durability::Always => wal.sync(),
            Durability::EverySecond | Durability::Never => Ok(()),
        }
    }

    /// Goes over to the next log.
    fn rotate(&self, wal: &mut Wal, id: u64) -> Result<(), Failure> {
        let (files, bytes) = (self.files.as_ref(), self.options.memtable_bytes);
        let next =
            Wal::create(files, &self.dir, id, store::salt(id), bytes).map_err(Failure::Clean)?;
        wal.end(id)?;
        *wal = next;
        self.wal_id.store(id, Ordering::Release);
        self.flush.raise();
        Ok(())
    }

    /// What the commits of a failed batch are told.
    #[expect(clippy::unused_self, reason = "reads as one step of the store")]
    fn fail(&self, queue: &mut Queue, failure: Failure) -> Error {
        match failure {
            Failure::Clean(error) => error,
            Failure::Broken(error) => {
                let text = format!("the store must be opened again: {error}");
                queue.close(Error::Unavailable(text));
                Error::Unknown(error.to_string())
            }
        }
    }

    /// Makes everything durable that was answered so far.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let (id, file, offset) = {
            let wal = self.wal();
            if wal.synced == wal.offset {
                return Ok(());
            }
            (wal.id, Arc::clone(&wal.file), wal.offset)
        };
        if let Err(error) = file.sync() {
            let text = format!("cannot sync the log, the store must be opened again: {error}");
            self.queue().close(Error::Unavailable(text.clone()));
            return Err(Error::Unknown(text));
        }
        let mut wal = self.wal();
        if wal.id == id {
            wal.synced = wal.synced.max(offset);
        }
        Ok(())
    }

    /// Puts a mark behind the last commit, if there is none and nobody is writing. With it, damage
    /// to that commit is never taken for a torn tail.
    pub(crate) fn mark(&self) -> Result<(), Error> {
        let Ok(mut wal) = self.wal.try_lock() else { return Ok(()) };
        if !wal.open_ended {
            return Ok(());
        }
        match wal.append(&mut vec![0; FRAME_HEADER], FrameKind::Mark) {
            Ok(()) => Ok(()),
            Err(Failure::Clean(error)) => Err(error),
            Err(Failure::Broken(error)) => {
                drop(wal);
                let text = format!("the store must be opened again: {error}");
                self.queue().close(Error::Unavailable(text));
                Err(error)
            }
        }
    }
}

/// Gives the lead to one of those who gathered, if anybody did.
fn hand_on(queue: &mut Queue) {
    match queue.batches.front().and_then(|batch| batch.waiters.first()) {
        Some(next) => next.wake(LEADING),
        None => queue.leading = false,
    }
}

/// The writes of a commit, clears first. `adds` are the sums, in key order.
fn ops<'a>(buffer: &'a Buffer, adds: &'a [Vec<u8>]) -> impl Iterator<Item = Op<'a>> {
    let mut adds = adds.iter();
    let clears = buffer.clears().map(|(start, end)| Op::Clear(start, end));
    clears.chain(buffer.writes().iter().map(move |(key, write)| match write {
        Write::Put(value) => Op::Put(key, value),
        Write::Del => Op::Del(key),
        Write::Add(_) => Op::Put(key, adds.next().expect("one sum per addition")),
    }))
}

fn encode(frame: &mut Vec<u8>, version: u64, buffer: &Buffer, adds: &[Vec<u8>]) {
    let start = frame::begin_commit(frame, version);
    let mut count = 0;
    for op in ops(buffer, adds) {
        frame::push_op(frame, op);
        count += 1;
    }
    frame::end_commit(frame, start, count);
}

/// Takes a batch out of its memtable again.
fn undo(batch: &Batch) {
    let body = &batch.frame[FRAME_HEADER..];
    let commits = frame::decode_commits(body).expect("we encoded it ourselves");
    for commit in commits.iter().rev() {
        batch.mem.undo(commit.version, commit.ops.iter().copied());
    }
}
