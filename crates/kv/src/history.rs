//! Proves that what committed is serializable, from the outside.
//!
//! Random transactions run at once, on threads or interleaved in one thread. Every key holds a list
//! of numbers; a write appends a number that nobody else appends. So the last state tells, for each
//! key, the order of all its writes, and each list that was read tells how far that order had got.
//! From these follow the edges of a graph:
//!
//! ```text
//! a -> b   b appended right behind a                      (write, write)
//! a -> b   b read a list that ends with a's number        (write, read)
//! a -> b   b appended the first number that a did not see (read, write)
//! a -> b   a was answered before b began                  (time)
//! ```
//!
//! The history is serializable, in an order that agrees with time, if and only if the graph has no
//! cycle. A number that a committed transaction appended and that is not there was lost; one that
//! is there although its transaction failed was leaked.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kumiko_base::Kind;
use kumiko_base::draw::Draw;

use crate::{Engine, Error, Range, Read, Scan, Txn};

mod graph;

use graph::Graph;

/// How many lists there are: few, so that transactions meet.
const KEYS: u8 = 6;
/// How many transactions are open at once.
const OPEN: usize = 4;
/// How many transactions one history has.
const TRANSACTIONS: usize = 160;
/// How often the last state is read again if the engine is away.
const ATTEMPTS_MAX: usize = 1000;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The commit was answered.
    Committed,
    /// It failed, and must have left nothing behind.
    Failed,
    /// Nobody knows.
    Unknown,
}

/// What one transaction saw and did.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The lists it read, without what it appended itself.
    pub reads: Vec<(u8, Vec<u64>)>,
    /// The numbers it appended.
    pub appends: Vec<(u8, u64)>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began, on a clock that all threads share.
    pub began: u64,
    /// When it was answered.
    pub ended: u64,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All transactions.
    pub transactions: Vec<Transaction>,
    /// The lists at the end.
    pub last: BTreeMap<u8, Vec<u64>>,
}

/// Why a history is not serializable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs `rounds` histories interleaved and as many on threads, each on a fresh engine, and checks
/// them.
///
/// # Panics
///
/// When a history is not serializable.
pub fn run(make: &dyn Fn() -> Arc<dyn Engine>, rounds: u64) {
    for seed in 0..rounds {
        if let Err(violation) = check(&interleaved(&*make(), seed)) {
            panic!("interleaved, seed {seed}: {violation}");
        }
        if let Err(violation) = check(&on_threads(&*make(), seed)) {
            panic!("on threads, seed {seed}: {violation}");
        }
    }
}

/// Runs transactions by turns in this thread. The seed fixes everything.
pub fn interleaved(engine: &dyn Engine, seed: u64) -> History {
    let mut draw = Draw::new(seed);
    let clock = AtomicU64::new(0);
    let mut transactions = Vec::new();
    let mut open: Vec<Session> = Vec::new();
    let mut begun = 0;
    while begun < TRANSACTIONS || !open.is_empty() {
        if begun < TRANSACTIONS && open.len() < OPEN {
            open.push(Session::begin(engine, &clock, begun as u64));
            begun += 1;
        }
        let index = draw.index(open.len());
        if open[index].is_over() || draw.one_in(5) {
            transactions.push(open.swap_remove(index).finish(&clock));
        } else {
            open[index].step(&mut draw);
        }
    }
    History { transactions, last: last(engine) }
}

/// Runs transactions on threads.
pub fn on_threads(engine: &dyn Engine, seed: u64) -> History {
    let clock = AtomicU64::new(0);
    let work = |thread: usize| {
        let mut draw = Draw::new(seed.wrapping_mul(1000).wrapping_add(thread as u64));
        let ids = (0..TRANSACTIONS / OPEN).map(|index| (index * OPEN + thread) as u64);
        let mut transactions = Vec::new();
        for id in ids {
            let mut session = Session::begin(engine, &clock, id);
            while !session.is_over() && !draw.one_in(5) {
                session.step(&mut draw);
                std::thread::yield_now();
            }
            transactions.push(session.finish(&clock));
        }
        transactions
    };
    let transactions = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..OPEN).map(|thread| scope.spawn(move || work(thread))).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("a worker panicked"));
        results.flatten().collect()
    });
    History { transactions, last: last(engine) }
}

/// Checks a history.
///
/// # Errors
///
/// The first violation found, in words.
pub fn check(history: &History) -> Result<(), Violation> {
    let transactions = &history.transactions;
    let mut writer: HashMap<u64, usize> = HashMap::new();
    for (index, transaction) in transactions.iter().enumerate() {
        for (_, number) in &transaction.appends {
            writer.insert(*number, index);
        }
    }
    let mut present = vec![false; transactions.len()];
    for (key, list) in &history.last {
        check_list(*key, list, transactions, &writer, &mut present)?;
    }
    for (index, transaction) in transactions.iter().enumerate() {
        check_transaction(index, transaction, history, present[index])?;
        present[index] |= transaction.outcome == Outcome::Committed;
    }
    match graph_of(history, &writer, &present).cycle() {
        None => Ok(()),
        Some(cycle) => Err(Violation(format!("cycle: {cycle}"))),
    }
}

/// Numbers at the end must have been appended, once, by somebody who did not fail.
fn check_list(
    key: u8,
    list: &[u64],
    transactions: &[Transaction],
    writer: &HashMap<u64, usize>,
    present: &mut [bool],
) -> Result<(), Violation> {
    for (place, number) in list.iter().enumerate() {
        let Some(index) = writer.get(number).copied() else {
            return Err(Violation(format!("key {key} holds {number}, which nobody appended")));
        };
        if list[..place].contains(number) {
            return Err(Violation(format!("key {key} holds {number} twice")));
        }
        if transactions[index].outcome == Outcome::Failed {
            return Err(Violation(format!("transaction {index} failed, but left {number}")));
        }
        present[index] = true;
    }
    Ok(())
}

/// What a transaction appended is there as a whole or not at all, and what it read once was true.
fn check_transaction(
    index: usize,
    transaction: &Transaction,
    history: &History,
    present: bool,
) -> Result<(), Violation> {
    let last = |key: &u8| history.last.get(key).map(Vec::as_slice).unwrap_or_default();
    let must = transaction.outcome == Outcome::Committed || present;
    for (key, number) in &transaction.appends {
        if must && !last(key).contains(number) {
            return Err(Violation(format!("{number} of transaction {index} was lost")));
        }
    }
    for (key, list) in &transaction.reads {
        if !last(key).starts_with(list) {
            let text = format!("transaction {index} read {list:?} of key {key}, which never was");
            return Err(Violation(text));
        }
    }
    Ok(())
}

fn graph_of(history: &History, writer: &HashMap<u64, usize>, present: &[bool]) -> Graph {
    let transactions = &history.transactions;
    let mut graph = Graph::new(transactions.len());
    for list in history.last.values() {
        for pair in list.windows(2) {
            graph.edge(writer[&pair[0]], writer[&pair[1]], "appended before");
        }
    }
    for (index, transaction) in transactions.iter().enumerate() {
        if !present[index] {
            continue;
        }
        for (key, list) in &transaction.reads {
            if let Some(number) = list.last() {
                graph.edge(writer[number], index, "was read by");
            }
            if let Some(number) = history.last.get(key).and_then(|last| last.get(list.len())) {
                graph.edge(index, writer[number], "did not see");
            }
        }
        // A commit whose answer was lost may take effect at any time after it began.
        let known = transaction.outcome == Outcome::Committed;
        graph.time(index, transaction.began, known.then_some(transaction.ended));
    }
    graph
}

fn last(engine: &dyn Engine) -> BTreeMap<u8, Vec<u64>> {
    let read = || -> Result<BTreeMap<u8, Vec<u64>>, Error> { all_lists(&mut *engine.begin()?) };
    for _ in 0..ATTEMPTS_MAX {
        match read() {
            Ok(lists) => return lists,
            Err(error) => assert_eq!(error.kind(), Kind::Unavailable, "{error}"),
        }
    }
    panic!("the engine stayed away");
}

fn key_of(list: u8) -> [u8; 2] {
    [0x01, list]
}

fn all_lists(txn: &mut dyn Txn) -> Result<BTreeMap<u8, Vec<u64>>, Error> {
    let page = txn.scan(&Scan::new(Range::new(key_of(0), key_of(KEYS))))?;
    Ok(page.rows.iter().map(|(key, value)| (key[1], numbers(value))).collect())
}

fn numbers(value: &[u8]) -> Vec<u64> {
    let (chunks, rest) = value.as_chunks::<8>();
    assert!(rest.is_empty(), "a list is made of whole numbers");
    chunks.iter().map(|bytes| u64::from_be_bytes(*bytes)).collect()
}

/// A transaction under way.
struct Session {
    /// None once something failed.
    txn: Option<Box<dyn Txn>>,
    id: u64,
    /// The lists as this transaction sees them, its own numbers included.
    seen: BTreeMap<u8, Vec<u64>>,
    record: Transaction,
}

impl Session {
    fn begin(engine: &dyn Engine, clock: &AtomicU64, id: u64) -> Session {
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let record = Transaction {
            reads: Vec::new(),
            appends: Vec::new(),
            outcome: Outcome::Failed,
            began,
            ended: began,
        };
        Session { txn: engine.begin().ok(), id, seen: BTreeMap::new(), record }
    }

    fn is_over(&self) -> bool {
        self.txn.is_none()
    }

    fn step(&mut self, draw: &mut Draw) {
        let list = draw.below(u64::from(KEYS)) as u8;
        let result = match draw.below(6) {
            0 => self.see_all(),
            1..=2 => self.see(list),
            _ => self.append(list),
        };
        if result.is_err() {
            self.txn = None;
        }
    }

    fn see(&mut self, list: u8) -> Result<(), Error> {
        let Some(txn) = &mut self.txn else { return Ok(()) };
        if !self.seen.contains_key(&list) {
            let value = txn.get(&key_of(list), Read::Serializable)?;
            let numbers = numbers(&value.unwrap_or_default());
            self.record.reads.push((list, numbers.clone()));
            self.seen.insert(list, numbers);
        }
        Ok(())
    }

    fn see_all(&mut self) -> Result<(), Error> {
        let Some(txn) = &mut self.txn else { return Ok(()) };
        let found = all_lists(&mut **txn)?;
        for list in 0..KEYS {
            let numbers = found.get(&list).cloned().unwrap_or_default();
            if let Some(before) = self.seen.get(&list) {
                assert_eq!(*before, numbers, "one transaction, one state");
            } else {
                self.record.reads.push((list, numbers.clone()));
                self.seen.insert(list, numbers);
            }
        }
        Ok(())
    }

    fn append(&mut self, list: u8) -> Result<(), Error> {
        if self.record.appends.iter().any(|(key, _)| *key == list) {
            return Ok(());
        }
        self.see(list)?;
        let Some(txn) = &mut self.txn else { return Ok(()) };
        let number = self.id * u64::from(KEYS) + u64::from(list);
        let numbers = self.seen.entry(list).or_default();
        numbers.push(number);
        let value: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        txn.put(&key_of(list), &value)?;
        self.record.appends.push((list, number));
        Ok(())
    }

    fn finish(mut self, clock: &AtomicU64) -> Transaction {
        if let Some(txn) = self.txn {
            self.record.outcome = match txn.commit() {
                Ok(_) => Outcome::Committed,
                Err(Error::Unknown(_)) => Outcome::Unknown,
                Err(_) => Outcome::Failed,
            };
        }
        self.record.ended = clock.fetch_add(1, Ordering::SeqCst);
        self.record
    }
}

#[cfg(test)]
mod tests;
