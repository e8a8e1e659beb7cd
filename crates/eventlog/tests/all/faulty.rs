//! An engine that fails as real ones do: conflicts, lost answers, a crash after some transactions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kumiko_base::draw::Draw;
use kumiko_kv::{Committed, Engine, Error, Flow, Memory, Range, Read, Scan, Txn, Watch};

pub(crate) struct Faulty {
    pub(crate) inner: Memory,
    draw: Arc<Mutex<Draw>>,
    /// One commit in this many fails in some way; 0 for never.
    pub(crate) rate: AtomicU64,
    /// Transactions until the engine is gone; `u64::MAX` for never.
    pub(crate) left: AtomicU64,
}

impl Faulty {
    pub(crate) fn new(inner: Memory, seed: u64, rate: u64) -> Faulty {
        Faulty {
            inner,
            draw: Arc::new(Mutex::new(Draw::new(seed))),
            rate: AtomicU64::new(rate),
            left: AtomicU64::new(u64::MAX),
        }
    }
}

impl Engine for Faulty {
    fn begin(&self) -> Result<Box<dyn Txn>, Error> {
        match self.left.load(Ordering::SeqCst) {
            u64::MAX => {}
            0 => return Err(Error::Unavailable("crashed".into())),
            left => self.left.store(left - 1, Ordering::SeqCst),
        }
        Ok(Box::new(FaultyTxn {
            inner: self.inner.begin()?,
            draw: Arc::clone(&self.draw),
            rate: self.rate.load(Ordering::SeqCst),
        }))
    }

    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        self.inner.watch(key)
    }

    fn sync(&self) -> Result<(), Error> {
        self.inner.sync()
    }

    fn name(&self) -> &'static str {
        "faulty"
    }
}

struct FaultyTxn {
    inner: Box<dyn Txn>,
    draw: Arc<Mutex<Draw>>,
    rate: u64,
}

impl Txn for FaultyTxn {
    fn get(&mut self, key: &[u8], read: Read) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get(key, read)
    }

    fn visit(
        &mut self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error> {
        self.inner.visit(scan, each)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.inner.put(key, value)
    }

    fn del(&mut self, key: &[u8]) -> Result<(), Error> {
        self.inner.del(key)
    }

    fn clear(&mut self, range: &Range) -> Result<(), Error> {
        self.inner.clear(range)
    }

    fn add(&mut self, key: &[u8], delta: i64) -> Result<(), Error> {
        self.inner.add(key, delta)
    }

    fn read_conflict(&mut self, range: &Range) -> Result<(), Error> {
        self.inner.read_conflict(range)
    }

    fn write_conflict(&mut self, range: &Range) -> Result<(), Error> {
        self.inner.write_conflict(range)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn commit(self: Box<Self>) -> Result<Committed, Error> {
        let draw = |bound| self.draw.lock().unwrap().below(bound);
        if self.rate != 0 && draw(self.rate) == 0 {
            return match draw(3) {
                0 => Err(Error::Conflict),
                1 => Err(Error::Unknown("it did not happen".into())),
                _ => {
                    self.inner.commit()?;
                    Err(Error::Unknown("it did happen".into()))
                }
            };
        }
        self.inner.commit()
    }
}
