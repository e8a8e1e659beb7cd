//! Posting, pulling and discarding messages.
//!
//! A post reads the newest clock and inserts above it in one serializable transaction, so two posts
//! can never share a clock, and clocks grow in the order of commits. A pull reads everything above
//! the node's own cursor. The cursor is not the node's logical clock: taking one for the other is
//! what loses messages when several are pulled at once.
//!
//! A node may keep its cursor in memory and write it down from time to time: then a message may
//! come again after a crash. Where an effect must happen once, write the cursor in the transaction
//! of the effect.

use kumiko_base::clock::Lamport;
use kumiko_base::tuple::Element;
use kumiko_base::{Category, Value};
use kumiko_kv::{Range, Read, Scan, Txn};

use crate::member::{self, Status};
use crate::message::{Dialect, Draft, Message};
use crate::state::{self, StateType};
use crate::{Error, NodeId};

/// The most messages that one pull returns.
pub const PULL_MESSAGES_MAX: usize = 1_000;
/// The most messages that one discard looks at.
pub const DISCARD_MESSAGES_MAX: usize = 1_000;

/// A node's place in the order of messages.
#[derive(Clone, Debug)]
pub struct Mailbox {
    /// The node.
    pub node: NodeId,
    /// Its cluster.
    pub cluster: String,
    /// Its host.
    pub host: String,
    /// How messages are written.
    pub dialect: Dialect,
    clock: Lamport,
    cursor: u64,
}

/// What a pull or post would change in the mailbox. Apply it when the transaction has committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the mailbox moves only when this is applied after the commit"]
pub struct Moved {
    clock: Lamport,
    cursor: Option<u64>,
}

impl Mailbox {
    /// A node that has read nothing yet: its first pull returns everything that is kept.
    pub fn new(node: NodeId, cluster: &str, host: &str, dialect: Dialect) -> Mailbox {
        let (cluster, host) = (cluster.to_string(), host.to_string());
        Mailbox { node, cluster, host, dialect, clock: Lamport::default(), cursor: 0 }
    }

    /// Takes up the cursor that was stored, or, for a node that is new here, starts behind the
    /// newest message.
    pub fn resume(&mut self, txn: &mut dyn Txn) -> Result<(), Error> {
        let newest = newest(txn)?;
        self.clock = self.clock.pull(newest).map_err(|_| Error::ClockOverflow)?;
        self.cursor = self.stored_cursor(txn)?.unwrap_or(newest);
        Ok(())
    }

    /// The logical clock.
    pub fn clock(&self) -> u64 {
        self.clock.now()
    }

    /// The clock of the newest message that was pulled.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Moves on, after the transaction has committed.
    pub fn apply(&mut self, moved: Moved) {
        self.clock = self.clock.max(moved.clock);
        self.cursor = self.cursor.max(moved.cursor.unwrap_or(0));
    }

    /// Posts `drafts` in order. Returns the clock of the last.
    pub fn post(
        &self,
        txn: &mut dyn Txn,
        drafts: &[Draft],
        now_ms: i64,
    ) -> Result<(u64, Moved), Error> {
        let mut newest = newest(txn)?;
        if self.dialect == Dialect::Puzzle {
            // Nodes of PuzzleDB skip what is below their own clock: stand above all of them.
            for member in member::list(txn, &self.cluster)? {
                newest = newest.max(member.clock);
            }
        }
        let mut clock = self.clock;
        for draft in drafts {
            clock = clock.post(newest).map_err(|_| Error::ClockOverflow)?;
            newest = clock.now();
            self.insert(txn, draft, newest, now_ms)?;
        }
        state::put(
            txn,
            StateType::BELL,
            &[Element::Text(self.cluster.clone())],
            &Value::U64(newest),
        )?;
        Ok((newest, Moved { clock, cursor: None }))
    }

    fn insert(
        &self,
        txn: &mut dyn Txn,
        draft: &Draft,
        clock: u64,
        now_ms: i64,
    ) -> Result<(), Error> {
        let message = Message {
            from: self.node,
            cluster: self.cluster.clone(),
            host: self.host.clone(),
            clock,
            topic: draft.topic,
            event: draft.event,
            object: draft.object.clone(),
            time_ms: Some(now_ms),
        };
        let bytes = message.encode(self.dialect)?;
        txn.put(&Message::key(clock), &bytes)?;
        if self.dialect == Dialect::Puzzle {
            let time = Value::DateTime(now_ms);
            state::put(txn, StateType::TIME, &[Element::Int(clock.into())], &time)?;
        }
        let mut event = Category::Event.key().int(draft.topic.letter());
        for element in &draft.key {
            event = event.element(element).map_err(|error| Error::corrupt(&[], error))?;
        }
        Ok(txn.put(&event.finish(), &bytes)?)
    }

    /// The messages above the cursor, oldest first, at most [`PULL_MESSAGES_MAX`], including this
    /// node's own.
    pub fn pull(&self, txn: &mut dyn Txn) -> Result<(Vec<Message>, Moved), Error> {
        let messages = after(txn, self.cursor)?;
        let Some(last) = messages.last() else {
            return Ok((messages, Moved { clock: self.clock, cursor: None }));
        };
        let newest = last.clock;
        let clock = self.clock.pull(newest).map_err(|_| Error::ClockOverflow)?;
        Ok((messages, Moved { clock, cursor: Some(newest) }))
    }

    /// Writes down how far this node has read, so that others may discard what is below.
    pub fn store_cursor(&self, txn: &mut dyn Txn, cursor: u64) -> Result<(), Error> {
        state::put(txn, StateType::CURSOR, &self.address(), &Value::U64(cursor))
    }

    fn stored_cursor(&self, txn: &mut dyn Txn) -> Result<Option<u64>, Error> {
        let value = state::get(txn, StateType::CURSOR, &self.address())?;
        Ok(value.and_then(|it| u64::try_from(it.as_int()?).ok()))
    }

    fn address(&self) -> [Element; 2] {
        [Element::Text(self.cluster.clone()), Element::Text(self.node.to_string())]
    }
}

impl Moved {
    /// The clock of the newest message that was pulled, if one was.
    pub fn cursor(self) -> Option<u64> {
        self.cursor
    }
}

/// The key that every post of the cluster writes: watch it to wait for messages.
pub fn bell_key(cluster: &str) -> Result<Vec<u8>, Error> {
    state::key(StateType::BELL, &[Element::Text(cluster.into())])
}

/// The clock of the newest message; 0 if there is none. Serializable: whoever posts depends on it.
pub fn newest(txn: &mut dyn Txn) -> Result<u64, Error> {
    let range = Range::prefix(&Category::Message.prefix());
    let page = txn.scan(&Scan::new(range).reverse().rows(1))?;
    match page.rows.first() {
        None => Ok(0),
        Some((key, _)) => clock_of(key),
    }
}

/// The messages above the clock `after`, oldest first, at most [`PULL_MESSAGES_MAX`].
pub fn after(txn: &mut dyn Txn, after: u64) -> Result<Vec<Message>, Error> {
    let past = Range::prefix(&Category::Message.prefix()).end;
    let start = kumiko_kv::range::after(&Message::key(after));
    // A snapshot is enough: clocks grow in the order of commits, so nothing that commits later can
    // appear below what is seen here.
    let scan = Scan::new(Range::new(start, past)).rows(PULL_MESSAGES_MAX).snapshot();
    let rows = txn.scan(&scan)?.rows;
    rows.iter().map(|(key, value)| Message::decode(key, value)).collect()
}

/// The newest event of a topic under a key, for those who come late.
pub fn newest_event(
    txn: &mut dyn Txn,
    topic: crate::Topic,
    key: &[Element],
) -> Result<Option<Message>, Error> {
    let mut writer = Category::Event.key().int(topic.letter());
    for element in key {
        writer = writer.element(element).map_err(|error| Error::corrupt(&[], error))?;
    }
    let key = writer.finish();
    match txn.get(&key, Read::Serializable)? {
        None => Ok(None),
        Some(bytes) => Ok(Some(Message::decode(&key, &bytes)?)),
    }
}

/// Discards messages that are older than `age_ms` and below the cursor of every node that is not
/// down. The newest message always stays: the clock is found from it. Returns how many went; call
/// again while that is [`DISCARD_MESSAGES_MAX`].
pub fn discard(txn: &mut dyn Txn, cluster: &str, now_ms: i64, age_ms: i64) -> Result<usize, Error> {
    let mut below = newest(txn)?;
    let members = member::list(txn, cluster)?;
    for member in members.iter().filter(|it| !matches!(it.status, Status::Down | Status::Removed)) {
        let address = [Element::Text(cluster.into()), Element::Text(member.id.to_string())];
        let cursor = state::get(txn, StateType::CURSOR, &address)?;
        let cursor = cursor.and_then(|it| u64::try_from(it.as_int()?).ok());
        below = below.min(cursor.unwrap_or(0).saturating_add(1));
    }
    let range = Range::new(Category::Message.prefix(), Message::key(below));
    let scan = Scan::new(range).rows(DISCARD_MESSAGES_MAX).snapshot();
    let mut count = 0;
    for (key, value) in txn.scan(&scan)?.rows {
        let message = Message::decode(&key, &value)?;
        let clock = [Element::Int(message.clock.into())];
        let time = match message.time_ms {
            Some(time) => Some(time),
            None => match state::get(txn, StateType::TIME, &clock)? {
                Some(Value::DateTime(ms)) => Some(ms),
                _ => None,
            },
        };
        // A message of a foreign node that says no time is as old as the one after it.
        if time.is_some_and(|time| now_ms.saturating_sub(age_ms) < time) {
            break;
        }
        txn.del(&key)?;
        state::del(txn, StateType::TIME, &clock)?;
        count += 1;
    }
    Ok(count)
}

fn clock_of(key: &[u8]) -> Result<u64, Error> {
    let corrupt = |error| Error::corrupt(key, error);
    let mut reader = kumiko_base::category::open_as(Category::Message, key).map_err(corrupt)?;
    reader.int::<u64>().map_err(corrupt)
}
