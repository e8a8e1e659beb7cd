//! What a command may do: read and write data, answer, wait, tell others.

use kumiko_base::draw::Draw;
use kumiko_wire::resp::Writer;

use crate::Args;
use kumiko_lattice::live::Db;

use crate::client::{Blocked, Client, TimedOut, Wanted};
use crate::command::Command;
use crate::fail::{self, Fail};
use crate::notify;
use crate::server::Server;
use crate::server::table::Row;

/// What a command returns: its reply is already written, or it was refused.
pub type Outcome = Result<(), Fail>;

/// The world of one running command.
pub struct Context<'a> {
    /// Everything that is shared by all clients.
    pub server: &'a mut Server,
    /// The client that asked.
    pub client: &'a mut Client,
    /// Where the answer goes.
    pub reply: Writer,
    /// The command that runs.
    pub command: &'static Command,
    /// Its row in the table.
    pub(crate) row: &'static Row,
    /// The time of this turn, in milliseconds since 1970. It does not change inside a transaction.
    pub now_ms: u64,
    /// The command runs again because this key is ready.
    pub(crate) woken_by: Option<Vec<u8>>,
    /// Waiting is not allowed: inside MULTI.
    pub(crate) in_multi: bool,
    /// The command waits; it has no reply yet.
    pub(crate) waits: bool,
}

impl Context<'_> {
    /// The index of the client's database.
    pub fn db(&self) -> usize {
        self.client.db
    }

    /// The client's database.
    pub fn live(&mut self) -> Db<'_> {
        let id = self.server.db_id(self.client.db);
        self.server.live.db(id, self.now_ms)
    }

    /// Random numbers.
    pub fn random(&mut self) -> &mut Draw {
        &mut self.server.random
    }

    /// Tells that `key` was changed: watchers, waiting clients and caches hear of it.
    ///
    /// Every command that changes a key calls this once per key, after the change.
    pub fn modified(&mut self, key: &[u8]) {
        let db = self.client.db;
        self.server.key_modified(db, key, Some(self.client));
    }

    /// As [`Context::modified`], for a key of another database.
    pub fn modified_in(&mut self, db: usize, key: &[u8]) {
        self.server.key_modified(db, key, Some(self.client));
    }

    /// Publishes a keyspace event if the setting wants it. `class` is one of [`crate::notify`].
    pub fn notify(&mut self, class: u32, event: &str, key: &[u8]) {
        self.notify_in(self.client.db, class, event, key);
    }

    /// As [`Context::notify`], for a key of another database.
    pub fn notify_in(&mut self, db: usize, class: u32, event: &str, key: &[u8]) {
        let wanted = self.server.notify_classes();
        if wanted & class == 0 || wanted & (notify::KEYSPACE | notify::KEYEVENT) == 0 {
            return;
        }
        self.server.publish_event(db, event, key, Some(self.client));
    }

    /// [`Context::modified`] and [`Context::notify`] in one call, which is what most writes need.
    pub fn wrote(&mut self, key: &[u8], class: u32, event: &str) {
        self.modified(key);
        self.notify(class, event, key);
    }

    /// Whether the command may wait: not inside MULTI.
    pub fn may_block(&self) -> bool {
        !self.in_multi
    }

    /// The key whose change made a waiting command run again. Only this key is to be looked at:
    /// the others had nothing before and were not changed.
    pub fn woken_by(&self) -> Option<&[u8]> {
        self.woken_by.as_deref()
    }

    /// Which of `keys` the command is to try, in order: all of them at first, only the ready one
    /// when it runs again.
    pub fn keys_to_try<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Vec<&'k [u8]> {
        match &self.woken_by {
            None => keys.collect(),
            Some(ready) => keys.filter(|key| key == ready).take(1).collect(),
        }
    }

    /// Makes the client wait until one of `keys` is changed and holds what is `wanted`; the command
    /// then runs again from its start. `timeout_ms` 0 waits for ever. When the time is up, the
    /// client gets `timed_out`. Inside MULTI the client gets `timed_out` at once.
    ///
    /// The command writes no reply of its own after this.
    pub fn block<'k>(
        &mut self,
        args: &Args<'_>,
        keys: impl Iterator<Item = &'k [u8]>,
        wanted: Wanted,
        timeout_ms: u64,
        timed_out: TimedOut,
    ) {
        if self.in_multi {
            write_timed_out(&mut self.reply, timed_out);
            return;
        }
        self.waits = true;
        if self.client.blocked.is_some() {
            // It ran again in vain: it keeps its place, its deadline and its keys.
            return;
        }
        let mut unique: Vec<Vec<u8>> = Vec::new();
        for key in keys {
            if !unique.iter().any(|it| it == key) {
                unique.push(key.to_vec());
            }
        }
        let blocked = Blocked {
            row: self.row,
            args: args.to_owned(),
            keys: unique,
            wanted,
            deadline_ms: (0 < timeout_ms).then(|| self.now_ms.saturating_add(timeout_ms)),
            timed_out,
            since_ms: self.now_ms,
        };
        self.server.blocking.add(self.client.slot, self.client.db, &blocked);
        self.client.blocked = Some(Box::new(blocked));
    }

    /// The timeout in seconds at argument `index`, in milliseconds, with Redis's refusals.
    pub fn timeout_ms(&self, args: &Args<'_>, index: usize) -> Result<u64, Fail> {
        let seconds = kumiko_wire::resp::number::parse_float(args.get(index))
            .filter(|seconds| seconds.is_finite())
            .ok_or(fail::TIMEOUT_NOT_FLOAT)?;
        let ms = (seconds * 1000.0).ceil();
        if ms < 0.0 {
            return Err(fail::TIMEOUT_NEGATIVE);
        }
        if (i64::MAX as f64) - (self.now_ms as f64) <= ms {
            return Err(fail::TIMEOUT_OUT_OF_RANGE);
        }
        Ok(ms as u64)
    }
}

/// Writes what a client gets when its time is up.
pub(crate) fn write_timed_out(reply: &mut Writer, timed_out: TimedOut) {
    match timed_out {
        TimedOut::Null => reply.null(),
        TimedOut::NullArray => reply.null_array(),
        TimedOut::Int(value) => reply.int(value),
        TimedOut::Rerun => {}
    }
}
