//! One transaction.

use foundationdb::options::{ConflictRangeType, MutationType, StreamingMode};
use foundationdb::{FdbError, KeySelector, RangeOption, Transaction};
use kumiko_kv::buffer::{check_key, check_range};
use kumiko_kv::{Committed, Error, Flow, Range, Read, Scan, Txn, range};

use crate::engine::{of_commit, outside};
use crate::wait::wait;

pub(crate) struct FdbTxn {
    txn: Transaction,
    /// Bytes of the writes so far, as every engine of ours counts them.
    size: usize,
    wrote: bool,
}

impl FdbTxn {
    pub(crate) fn new(txn: Transaction) -> FdbTxn {
        FdbTxn { txn, size: 0, wrote: false }
    }

    fn grow(&mut self, by: usize) -> Result<(), Error> {
        let (size, size_max) = (self.size + by, kumiko::base::limits::TXN_BYTES_MAX);
        if size_max < size {
            return Err(Error::TooLarge { what: "transaction", size, size_max });
        }
        self.size = size;
        self.wrote = true;
        Ok(())
    }

    fn conflict(&self, range: &Range, kind: ConflictRangeType) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        self.txn.add_conflict_range(&range.start, &range.end, kind).map_err(outside)
    }
}

impl Txn for FdbTxn {
    fn get(&mut self, key: &[u8], read: Read) -> Result<Option<Vec<u8>>, Error> {
        check_key(key)?;
        let value = wait(self.txn.get(key, read == Read::Snapshot)).map_err(outside)?;
        Ok(value.map(|it| it.to_vec()))
    }

    fn visit(
        &mut self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error> {
        check_range(&scan.range)?;
        let mut left = scan.range.clone();
        let (mut rows, mut bytes, mut iteration) = (0, 0, 1);
        let mut done = scan.rows_max == 0 || scan.bytes_max == 0;
        while !done && !left.is_empty() {
            let (begin, end) = (left.start.clone(), left.end.clone());
            let option = RangeOption {
                begin: KeySelector::first_greater_or_equal(&begin),
                end: KeySelector::first_greater_or_equal(&end),
                limit: Some((scan.rows_max - rows).min(1 << 20)),
                mode: StreamingMode::Iterator,
                reverse: scan.reverse,
                ..RangeOption::default()
            };
            // Without a conflict here: a batch may hold more than is shown.
            let batch = wait(self.txn.get_range(&option, iteration, true)).map_err(outside)?;
            iteration += 1;
            for row in &batch {
                rows += 1;
                bytes += row.key().len() + row.value().len();
                let stop = each(row.key(), row.value()) == Flow::Stop;
                if scan.reverse {
                    left.end = row.key().to_vec();
                } else {
                    left.start = range::after(row.key());
                }
                done = stop || scan.rows_max <= rows || scan.bytes_max <= bytes;
                if done {
                    break;
                }
            }
            if !done && !batch.more() {
                left.start.clone_from(&left.end);
            }
        }
        let rest = Some(left).filter(|it| !it.is_empty());
        if scan.read == Read::Serializable {
            let mut seen = scan.range.clone();
            match (&rest, scan.reverse) {
                (None, _) => {}
                (Some(rest), false) => seen.end.clone_from(&rest.start),
                (Some(rest), true) => seen.start.clone_from(&rest.end),
            }
            self.conflict(&seen, ConflictRangeType::Read)?;
        }
        Ok(rest)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        check_key(key)?;
        let (size, size_max) = (value.len(), kumiko::base::limits::VALUE_BYTES_MAX);
        if size_max < size {
            return Err(Error::TooLarge { what: "value", size, size_max });
        }
        self.grow(key.len() + value.len())?;
        self.txn.set(key, value);
        Ok(())
    }

    fn del(&mut self, key: &[u8]) -> Result<(), Error> {
        check_key(key)?;
        self.grow(key.len())?;
        self.txn.clear(key);
        Ok(())
    }

    fn clear(&mut self, range: &Range) -> Result<(), Error> {
        check_range(range)?;
        self.grow(range.start.len() + range.end.len())?;
        if !range.is_empty() {
            self.txn.clear_range(&range.start, &range.end);
        }
        Ok(())
    }

    fn add(&mut self, key: &[u8], delta: i64) -> Result<(), Error> {
        check_key(key)?;
        self.grow(key.len() + 8)?;
        self.txn.atomic_op(key, &delta.to_le_bytes(), MutationType::Add);
        Ok(())
    }

    fn read_conflict(&mut self, range: &Range) -> Result<(), Error> {
        check_range(range)?;
        self.conflict(range, ConflictRangeType::Read)
    }

    fn write_conflict(&mut self, range: &Range) -> Result<(), Error> {
        check_range(range)?;
        self.grow(range.start.len() + range.end.len())?;
        self.conflict(range, ConflictRangeType::Write)
    }

    fn size(&self) -> usize {
        self.size
    }

    fn commit(self: Box<Self>) -> Result<Committed, Error> {
        if !self.wrote {
            let version = wait(self.txn.get_read_version()).map_err(outside)?;
            return Ok(Committed { version: version as u64 });
        }
        let committed = wait(self.txn.commit()).map_err(|it| of_commit(FdbError::from(it)))?;
        let version = committed.committed_version().map_err(outside)?;
        Ok(Committed { version: version as u64 })
    }
}
