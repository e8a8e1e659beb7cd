//! Engines that are broken on purpose: the suites must find them out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::{Committed, Engine, Error, Flow, Memory, Range, Read, Scan, Txn, Watch};

/// How an engine is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Not,
    /// Reads of single keys take part in no conflict.
    Keys,
    /// Scans take part in no conflict.
    Scans,
    /// A transaction begins on a state that is a little old.
    Old,
    /// Now and then a commit is answered and forgotten.
    Forgets,
    /// Now and then a commit is refused and yet made.
    Leaks,
}

pub(crate) struct Wrong {
    memory: Memory,
    broken: Broken,
    next: Mutex<Option<Box<dyn Txn>>>,
    commits: Arc<AtomicU64>,
}

impl Wrong {
    pub(crate) fn new(broken: Broken) -> Wrong {
        Wrong { memory: Memory::new(), broken, next: Mutex::default(), commits: Arc::default() }
    }
}

impl Engine for Wrong {
    fn begin(&self) -> Result<Box<dyn Txn>, Error> {
        let mut txn = self.memory.begin()?;
        if self.broken == Broken::Old {
            let waiting = self.next.lock().unwrap().replace(txn);
            txn = match waiting {
                Some(waiting) => waiting,
                None => self.memory.begin()?,
            };
        }
        Ok(Box::new(WrongTxn { txn, broken: self.broken, commits: Arc::clone(&self.commits) }))
    }

    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        self.memory.watch(key)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(())
    }

    fn name(&self) -> &'static str {
        "wrong"
    }
}

struct WrongTxn {
    txn: Box<dyn Txn>,
    broken: Broken,
    commits: Arc<AtomicU64>,
}

impl Txn for WrongTxn {
    fn get(&mut self, key: &[u8], read: Read) -> Result<Option<Vec<u8>>, Error> {
        self.txn.get(key, if self.broken == Broken::Keys { Read::Snapshot } else { read })
    }

    fn visit(
        &mut self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error> {
        match self.broken {
            Broken::Scans => self.txn.visit(&scan.clone().snapshot(), each),
            _ => self.txn.visit(scan, each),
        }
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
        let tenth = self.commits.fetch_add(1, Ordering::SeqCst) % 10 == 9;
        match self.broken {
            Broken::Forgets if tenth && 0 < self.txn.size() => Ok(Committed { version: 0 }),
            Broken::Leaks if tenth => self.txn.commit().and(Err(Error::Conflict)),
            _ => self.txn.commit(),
        }
    }
}

#[test]
fn every_suite_finds_them_out() {
    type Suite = fn(&dyn Fn() -> Arc<dyn Engine>);
    let sound = || -> Arc<dyn Engine> { Arc::new(Memory::new()) };
    let conformance: Suite = |make| crate::conformance::run(make);
    let mirror: Suite = |make| crate::mirror::run(50, make, &|| Arc::new(Memory::new()));
    let passes = |suite: Suite, make: &dyn Fn() -> Arc<dyn Engine>| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| suite(make))).is_ok()
    };
    for suite in [conformance, mirror] {
        assert!(passes(suite, &sound));
        for broken in [Broken::Keys, Broken::Scans, Broken::Old, Broken::Forgets, Broken::Leaks] {
            assert!(!passes(suite, &|| Arc::new(Wrong::new(broken))), "{broken:?}");
        }
    }
}
