//! An engine that fails on purpose, by a seed.
//!
//! It stands before a sound engine and never breaks its promise: what it answers is what an engine
//! under stress may answer. The code above must live with it.

use std::sync::{Arc, Mutex, PoisonError};

use kumiko_base::draw::Draw;

use crate::{Committed, Engine, Error, Flow, Range, Read, Scan, Txn, Watch};

/// How often each fault happens: once in so many times, never if zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Odds {
    /// A commit answers `Conflict`, and writes nothing.
    pub conflict: u64,
    /// A commit answers `Unknown`, and has written.
    pub unknown_applied: u64,
    /// A commit answers `Unknown`, and has written nothing.
    pub unknown_not_applied: u64,
    /// A begin, a read or a commit answers `Unavailable`; nothing is written.
    pub unavailable: u64,
    /// A commit that writes answers `Full`, and writes nothing.
    pub full: u64,
}

impl Odds {
    /// Each fault once in `n` times.
    pub const fn every(n: u64) -> Odds {
        Odds { conflict: n, unknown_applied: n, unknown_not_applied: n, unavailable: n, full: n }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Conflict,
    UnknownApplied,
    UnknownNotApplied,
    Unavailable,
    Full,
}

#[derive(Debug)]
struct Dice {
    draw: Mutex<Draw>,
    odds: Mutex<Odds>,
}

impl Dice {
    fn hits(&self, odds: u64) -> bool {
        odds != 0 && self.draw.lock().unwrap_or_else(PoisonError::into_inner).one_in(odds)
    }

    fn odds(&self) -> Odds {
        *self.odds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unavailable(&self) -> Result<(), Error> {
        if self.hits(self.odds().unavailable) { Err(unavailable()) } else { Ok(()) }
    }

    fn at_commit(&self) -> Option<Fault> {
        let odds = self.odds();
        [
            (odds.conflict, Fault::Conflict),
            (odds.unknown_applied, Fault::UnknownApplied),
            (odds.unknown_not_applied, Fault::UnknownNotApplied),
            (odds.unavailable, Fault::Unavailable),
            (odds.full, Fault::Full),
        ]
        .into_iter()
        .find_map(|(odds, fault)| self.hits(odds).then_some(fault))
    }
}

fn unavailable() -> Error {
    Error::Unavailable("the engine is away (on purpose)".into())
}

/// An engine with faults.
pub struct Faults {
    engine: Arc<dyn Engine>,
    dice: Arc<Dice>,
}

impl Faults {
    /// Puts faults before `engine`. One seed gives one sequence of faults; with several threads,
    /// who meets which of them is for the threads to find out.
    pub fn new(engine: Arc<dyn Engine>, seed: u64, odds: Odds) -> Faults {
        let dice = Dice { draw: Mutex::new(Draw::new(seed)), odds: Mutex::new(odds) };
        Faults { engine, dice: Arc::new(dice) }
    }

    /// Changes the odds from now on, for open transactions too.
    pub fn set(&self, odds: Odds) {
        *self.dice.odds.lock().unwrap_or_else(PoisonError::into_inner) = odds;
    }
}

impl Engine for Faults {
    fn begin(&self) -> Result<Box<dyn Txn>, Error> {
        self.dice.unavailable()?;
        let txn = self.engine.begin()?;
        Ok(Box::new(FaultsTxn { txn, dice: Arc::clone(&self.dice) }))
    }

    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        self.engine.watch(key)
    }

    fn sync(&self) -> Result<(), Error> {
        self.dice.unavailable()?;
        self.engine.sync()
    }

    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn shared(&self) -> bool {
        self.engine.shared()
    }
}

struct FaultsTxn {
    txn: Box<dyn Txn>,
    dice: Arc<Dice>,
}

impl Txn for FaultsTxn {
    fn get(&mut self, key: &[u8], read: Read) -> Result<Option<Vec<u8>>, Error> {
        self.dice.unavailable()?;
        self.txn.get(key, read)
    }

    fn visit(
        &mut self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error> {
        self.dice.unavailable()?;
        self.txn.visit(scan, each)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.txn.put(key, value)
    }

    fn del(&mut self, key: &[u8]) -> Result<(), Error> {
        self.txn.del(key)
    }

    fn clear(&mut self, range: &Range) -> Result<(), Error> {
        self.txn.clear(range)
    }

    fn add(&mut self, key: &[u8], delta: i64) -> Result<(), Error> {
        self.txn.add(key, delta)
    }

    fn read_conflict(&mut self, range: &Range) -> Result<(), Error> {
        self.txn.read_conflict(range)
    }

    fn write_conflict(&mut self, range: &Range) -> Result<(), Error> {
        self.txn.write_conflict(range)
    }

    fn size(&self) -> usize {
        self.txn.size()
    }

    fn commit(self: Box<Self>) -> Result<Committed, Error> {
        // A transaction that writes nothing has nothing to lose.
        if self.txn.size() == 0 {
            self.dice.unavailable()?;
            return self.txn.commit();
        }
        match self.dice.at_commit() {
            None => self.txn.commit(),
            Some(Fault::Conflict) => Err(Error::Conflict),
            Some(Fault::UnknownApplied) => {
                self.txn.commit()?;
                Err(Error::Unknown("the answer was lost (on purpose)".into()))
            }
            Some(Fault::UnknownNotApplied) => {
                Err(Error::Unknown("the request was lost (on purpose)".into()))
            }
            Some(Fault::Unavailable) => Err(unavailable()),
            Some(Fault::Full) => Err(Error::Full("no room is left (on purpose)".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    fn write(engine: &dyn Engine) -> Result<Committed, Error> {
        let mut txn = engine.begin()?;
        txn.put(b"a", b"1")?;
        txn.commit()
    }

    fn written(memory: &Memory) -> bool {
        let mut txn = memory.begin().unwrap();
        txn.get(b"a", Read::Snapshot).unwrap().is_some()
    }

    #[test]
    fn each_fault_does_what_it_says() {
        let none = Odds::default();
        // odds, the error in a word, whether the write happened
        let rows = [
            (Odds { conflict: 1, ..none }, "conflict", false),
            (Odds { unknown_applied: 1, ..none }, "unknown", true),
            (Odds { unknown_not_applied: 1, ..none }, "unknown", false),
            (Odds { unavailable: 1, ..none }, "unavailable", false),
            (Odds { full: 1, ..none }, "full", false),
        ];
        for (odds, word, happened) in rows {
            let memory = Memory::new();
            let faults = Faults::new(Arc::new(memory.clone()), 0, odds);
            assert_eq!(write(&faults).unwrap_err().kind().word(), word);
            assert_eq!(written(&memory), happened, "{word}");
            faults.set(none);
            assert!(write(&faults).is_ok());
        }
    }

    #[test]
    fn a_seed_fixes_the_faults() {
        let sequence = |seed| {
            let faults = Faults::new(Arc::new(Memory::new()), seed, Odds::every(4));
            let words = (0..200).map(|_| write(&faults).map_err(|error| error.kind()));
            words.map(|result| result.map(|_| ())).collect::<Vec<_>>()
        };
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
        assert!(sequence(7).contains(&Ok(())));
    }
}
