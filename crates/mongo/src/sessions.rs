//! Sessions and the transactions that are open in them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kumiko_base::Value;
use kumiko_document::Notes;
use kumiko_document::path::field;
use kumiko_kv::Txn;

/// How long a transaction may be open without a command, in milliseconds.
pub(crate) const IDLE_MS_MAX: i64 = 60_000;
/// How many transactions may be open at once.
pub(crate) const OPEN_MAX: usize = 1_000;

/// A transaction of several commands.
pub(crate) struct Open {
    pub(crate) number: i64,
    pub(crate) txn: Box<dyn Txn>,
    pub(crate) notes: Notes,
    pub(crate) used_ms: i64,
}

/// The open transactions, by session.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<Vec<u8>, Open>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the open transaction out while a command uses it.
    pub(crate) fn take(&self, session: &[u8]) -> Option<Open> {
        self.lock().remove(session)
    }

    /// Puts it back.
    pub(crate) fn put(&self, session: &[u8], open: Open) {
        self.lock().insert(session.to_vec(), open);
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Ends the sessions in a list of `{id}`: their transactions are dropped.
    pub(crate) fn end(&self, list: Option<&Value>) {
        let Some(Value::Array(list)) = list else { return };
        for session in list.iter().filter_map(id_of) {
            self.lock().remove(&session);
        }
    }

    pub(crate) fn tidy(&self, now_ms: i64) {
        self.lock().retain(|_, open| now_ms < open.used_ms + IDLE_MS_MAX);
    }
}

/// The bytes of `{id: uuid}`.
pub(crate) fn id_of(session: &Value) -> Option<Vec<u8>> {
    match field(session, "id")? {
        Value::Uuid(id) => Some(id.to_vec()),
        Value::Binary(_, bytes) | Value::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    }
}
