//! The engine: a database handle.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use foundationdb::options::DatabaseOption;
use foundationdb::{Database, FdbError, FdbResult};
use kumiko_kv::{Engine, Error, Txn, Watch};

use crate::boot::boot;
use crate::txn::FdbTxn;
use crate::wait::{wait, wait_for};

/// How long any call may wait for a cluster that does not answer.
const TIMEOUT_MS: i32 = 10_000;

/// The keyspace in a FoundationDB cluster.
pub struct FoundationDb {
    database: Arc<Database>,
}

impl FoundationDb {
    /// Connects to the cluster that `cluster_file` names.
    pub fn open(cluster_file: &str) -> Result<FoundationDb, Error> {
        boot();
        let database = Database::from_path(cluster_file).map_err(outside)?;
        database.set_option(DatabaseOption::TransactionTimeout(TIMEOUT_MS)).map_err(outside)?;
        Ok(FoundationDb { database: Arc::new(database) })
    }
}

impl Engine for FoundationDb {
    fn begin(&self) -> Result<Box<dyn Txn>, Error> {
        let txn = self.database.create_trx().map_err(outside)?;
        // The contract fixes the snapshot now, not at the first read.
        wait(txn.get_read_version()).map_err(outside)?;
        Ok(Box::new(FdbTxn::new(txn)))
    }

    fn watch(&self, key: &[u8]) -> Result<Box<dyn Watch>, Error> {
        let txn = self.database.create_trx().map_err(outside)?;
        let fired = txn.watch(key);
        wait(txn.commit()).map_err(|error| outside(FdbError::from(error)))?;
        Ok(Box::new(FdbWatch { fired: Box::pin(fired), done: false }))
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(())
    }

    fn name(&self) -> &'static str {
        "foundationdb"
    }

    fn shared(&self) -> bool {
        true
    }
}

struct FdbWatch {
    fired: Pin<Box<dyn Future<Output = FdbResult<()>> + Send>>,
    done: bool,
}

impl Watch for FdbWatch {
    fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        if self.done {
            return Ok(true);
        }
        match wait_for(&mut self.fired, timeout) {
            None => Ok(false),
            Some(result) => {
                self.done = true;
                result.map_err(outside)?;
                Ok(true)
            }
        }
    }
}

/// What an error outside a commit means: nothing was written.
pub(crate) fn outside(error: FdbError) -> Error {
    translate(error, false)
}

/// What an error of a commit means.
pub(crate) fn of_commit(error: FdbError) -> Error {
    translate(error, true)
}

fn translate(error: FdbError, committing: bool) -> Error {
    let text = || format!("{} (FoundationDB error {})", error.message(), error.code());
    match error.code() {
        1020 => Error::Conflict,
        1007 => Error::TooOld,
        2101 => too_large("transaction", kumiko::base::limits::TXN_BYTES_MAX),
        2102 => too_large("key", kumiko::base::limits::KEY_BYTES_MAX),
        2103 => too_large("value", kumiko::base::limits::VALUE_BYTES_MAX),
        1021 | 1031 | 1039 if committing => Error::Unknown(text()),
        _ if error.is_retryable_not_committed() => Error::Conflict,
        _ => Error::Unavailable(text()),
    }
}

fn too_large(what: &'static str, size_max: usize) -> Error {
    Error::TooLarge { what, size: size_max + 1, size_max }
}
