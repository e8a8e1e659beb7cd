//! Open cursors.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kumiko_base::Value;
use kumiko_wire::mongo::bson;

use crate::Failure;
use crate::find::Scan;
use crate::stream::Stream;
use kumiko_lang::Code;

/// How many documents the first answer holds if the client does not say.
pub(crate) const FIRST_BATCH: usize = 101;
/// About how many bytes one answer holds.
pub(crate) const BATCH_BYTES: usize = 16 * 1024 * 1024 - 64 * 1024;
/// How many cursors may be open at once.
const CURSORS_MAX: usize = 10_000;
/// How long a cursor lives unused.
const IDLE_MS_MAX: i64 = 600_000;

/// Where the documents come from.
pub(crate) enum Source {
    /// They are all here.
    Ready(VecDeque<Value>),
    /// They are read as they are wanted.
    Scan(Box<Scan>),
    /// They are changes yet to come.
    Stream(Box<Stream>),
}

/// An open cursor.
pub(crate) struct Cursor {
    pub(crate) namespace: String,
    pub(crate) source: Source,
    /// The transaction it belongs to.
    pub(crate) number: Option<i64>,
    pub(crate) session: Option<Vec<u8>>,
    used_ms: i64,
}

impl Cursor {
    pub(crate) fn new(namespace: String, source: Source) -> Cursor {
        Cursor { namespace, source, number: None, session: None, used_ms: 0 }
    }
}

/// All open cursors.
#[derive(Default)]
pub(crate) struct Cursors {
    /// `None` while a command uses it.
    open: Mutex<HashMap<i64, Option<Cursor>>>,
}

impl Cursors {
    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Option<Cursor>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a new cursor.
    pub(crate) fn add(&self, id: i64, mut cursor: Cursor, now_ms: i64) -> Result<(), Failure> {
        let mut open = self.lock();
        if CURSORS_MAX <= open.len() {
            let message = format!("there are {CURSORS_MAX} open cursors already");
            return Err(Failure::new(Code::INTERNAL, message));
        }
        cursor.used_ms = now_ms;
        open.insert(id, Some(cursor));
        Ok(())
    }

    /// Takes a cursor out while a command uses it.
    pub(crate) fn take(&self, id: i64) -> Result<Cursor, Failure> {
        let gone = || Failure::new(Code::CURSOR_NOT_FOUND, format!("cursor id {id} not found"));
        match self.lock().get_mut(&id) {
            Some(place) => place.take().ok_or_else(|| {
                Failure::new(Code(12_051), format!("cursor id {id} is already in use"))
            }),
            None => Err(gone()),
        }
    }

    /// Puts a cursor back, unless it was killed meanwhile.
    pub(crate) fn put(&self, id: i64, mut cursor: Cursor, now_ms: i64) {
        cursor.used_ms = now_ms;
        if let Some(place) = self.lock().get_mut(&id) {
            *place = Some(cursor);
        }
    }

    /// Removes a cursor. Says whether it was there.
    pub(crate) fn kill(&self, id: i64) -> bool {
        self.lock().remove(&id).is_some()
    }

    /// Whether a cursor that a command uses has been killed.
    pub(crate) fn is_killed(&self, id: i64) -> bool {
        !self.lock().contains_key(&id)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn tidy(&self, now_ms: i64) {
        self.lock()
            .retain(|_, cursor| cursor.as_ref().is_none_or(|it| now_ms < it.used_ms + IDLE_MS_MAX));
    }
}

/// Documents for one answer, up to a count and a size.
pub(crate) struct Batch {
    pub(crate) documents: Vec<Value>,
    count_max: usize,
    bytes: usize,
}

impl Batch {
    pub(crate) fn new(count_max: usize) -> Batch {
        Batch { documents: Vec::new(), count_max, bytes: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count_max <= self.documents.len()
    }

    /// Takes a document in; gives it back if it does not fit any more.
    pub(crate) fn push(&mut self, document: Value) -> Option<Value> {
        let size = bson::size(&document);
        if self.is_full() || (!self.documents.is_empty() && BATCH_BYTES < self.bytes + size) {
            return Some(document);
        }
        self.bytes += size;
        self.documents.push(document);
        None
    }
}
