//! How a request becomes a reply.
//!
//! [`Server::execute`] looks the command up, asks whether this client may run it now, queues it if
//! a transaction is open, and else runs it. Afterwards it serves the clients that waited for a key
//! which the command changed.
//!
//! The client whose command runs is taken out of its place meanwhile, so that the command can
//! change it and the server at once; messages to itself are kept in `pushes` until its reply is
//! complete.

use kumiko_wire::resp::Writer;

use super::table::Row;
use super::{Server, SlowEntry};
use crate::Args;
use crate::acl::Denied;
use crate::client::{Blocked, Client, Multi, ReplyMode, Slot, TimedOut, Wanted};
use crate::command::{self, Command};
use crate::context::{Context, write_timed_out};
use crate::fail::{self, Fail};

/// How many arguments of a slow command are kept.
const SLOW_WORDS_MAX: usize = 32;
/// How many bytes of each of them.
const SLOW_WORD_BYTES_MAX: usize = 128;
/// How many spikes of one event are kept.
const SPIKES_MAX: usize = 160;

/// What the rim has to do after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Go on with the client's next request.
    Next,
    /// The client waits: read no further request of it until it is woken.
    Blocked,
    /// Send what is there, then close.
    Close,
}

impl Server {
    /// Runs one request of a client and appends the reply to its output.
    pub fn execute(&mut self, slot: Slot, args: &Args<'_>) -> After {
        if args.is_empty() {
            return After::Next;
        }
        let Some(mut client) = self.clients.take(slot) else { return After::Close };
        client.active_ms = self.now_ms;
        let changes = self.live.changes();
        let waits = self.run(&mut client, args);
        let closing = client.closing || client.killed;
        self.clients.put_back(slot, client);
        if self.live.changes() != changes && self.writers.last() != Some(&slot) {
            self.writers.push(slot);
        }
        self.report_expired(None);
        if !self.blocking.is_empty() {
            self.serve_ready();
        }
        match (closing, waits) {
            (true, _) => After::Close,
            (false, true) if self.clients.get(slot).is_some_and(|it| it.blocked.is_some()) => {
                After::Blocked
            }
            (false, _) => After::Next,
        }
    }

    /// Runs a request of a client that was taken out. True if it waits now.
    fn run(&mut self, client: &mut Client, args: &Args<'_>) -> bool {
        let reply = Writer { out: std::mem::take(&mut client.out), version: client.version };
        let mark = reply.mark();
        let (mut reply, waits) = self.dispatch(client, reply, args);
        // What a listener hears of its channels is no reply, so it is never left out.
        let listens = client.last_command.is_some_and(changes_subscriptions);
        match client.reply_mode {
            _ if listens => {}
            ReplyMode::On => {}
            ReplyMode::Off => reply.rewind(mark),
            ReplyMode::SkipNext => {
                reply.rewind(mark);
                client.reply_mode = ReplyMode::Skip;
            }
            ReplyMode::Skip => {
                reply.rewind(mark);
                client.reply_mode = ReplyMode::On;
            }
        }
        client.out = reply.out;
        take_pushes(client);
        waits
    }

    /// Decides what becomes of a request. The second result tells whether the client waits now.
    fn dispatch(
        &mut self,
        client: &mut Client,
        mut reply: Writer,
        args: &Args<'_>,
    ) -> (Writer, bool) {
        let row = match self.table.find_row(args) {
            Ok(row) => row,
            Err(refused) => return (self.reject(client, reply, None, &refused), false),
        };
        client.last_command = Some(row.command);
        if let Err(refused) = self.admit(client, row, args) {
            return (self.reject(client, reply, Some(row), &refused), false);
        }
        if self.paused.is_some() && self.must_pause(client, row.command) {
            self.postpone(client, row, args);
            return (reply, true);
        }
        if let Some(multi) = &mut client.multi
            && !is_transaction_control(row.command)
        {
            multi.queue.push((row, args.to_owned()));
            reply.simple("QUEUED");
            return (reply, false);
        }
        self.call(client, reply, row, args, None, false)
    }

    fn reject(
        &mut self,
        client: &mut Client,
        mut reply: Writer,
        row: Option<&'static Row>,
        refused: &Fail,
    ) -> Writer {
        self.stats.refused(row.map(|it| it.number), refused);
        if let Some(multi) = &mut client.multi {
            multi.broken = true;
        }
        if row.is_some_and(|it| it.command.name == "exec") && client.multi.is_some() {
            // Refused before it ran: the transaction is over all the same.
            client.multi = None;
            self.watching.clear(client);
            let text = refused.as_str().trim_start_matches("ERR ");
            reply.error(&format!("EXECABORT Transaction discarded because of: {text}"));
        } else {
            reply.error(refused.as_str());
        }
        reply
    }

    /// Whether this client may run this request now.
    fn admit(&mut self, client: &Client, row: &Row, args: &Args<'_>) -> Result<(), Fail> {
        let command = row.command;
        if !command.fits(args.len()) {
            return Err(fail::arity(command.name));
        }
        if !client.authenticated && !command.has(command::NO_AUTH) {
            return Err(fail::NO_AUTH);
        }
        if client.only_subscribes() && !allowed_while_subscribed(command) {
            let name = command.name;
            return Err(Fail::text(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / \
                 QUIT / RESET are allowed in this context"
            )));
        }
        if client.multi.is_some() && command.has(command::NO_MULTI) {
            return Err(Fail::new("ERR Command not allowed inside a transaction"));
        }
        if command.name == "exec"
            && self.config.hot.memory_bytes_max != 0
            && client.multi.as_ref().is_some_and(|it| it.writes(&|it| it.has(command::DENYOOM)))
        {
            self.make_room()?;
        }
        self.permit(client, row, args, client.multi.is_some())
    }

    /// Whether rights, memory and the state of the journal allow a command.
    pub(crate) fn permit(
        &mut self,
        client: &Client,
        row: &Row,
        args: &Args<'_>,
        in_multi: bool,
    ) -> Result<(), Fail> {
        let command = row.command;
        if let Err(denied) = self.acl.check(&client.user, command, args) {
            return Err(self.denied(client, command, args, &denied, in_multi));
        }
        if self.facts.loading && !command.has(command::LOADING) {
            return Err(fail::LOADING);
        }
        if self.facts.journal_failed && command.has(command::WRITE) {
            return Err(Fail::new(
                "MISCONF the journal cannot be written, so writes are refused; the log of the \
                 server says why",
            ));
        }
        if self.config.hot.memory_bytes_max != 0 && command.has(command::DENYOOM) {
            self.make_room()?;
        }
        Ok(())
    }

    fn denied(
        &mut self,
        client: &Client,
        command: &Command,
        args: &Args<'_>,
        denied: &Denied,
        in_multi: bool,
    ) -> Fail {
        let (reason, object, text) = match denied {
            Denied::Command => (
                "command",
                command.name.to_owned(),
                format!(
                    "NOPERM this user has no permissions to run the '{}' command",
                    command.name
                ),
            ),
            Denied::Key(at) => (
                "key",
                args.text(*at).into_owned(),
                "NOPERM this user has no permissions to access one of the keys used as arguments"
                    .to_owned(),
            ),
            Denied::Channel(at) => (
                "channel",
                args.text(*at).into_owned(),
                "NOPERM this user has no permissions to access one of the channels used as \
                 arguments"
                    .to_owned(),
            ),
        };
        self.note_denied(client, reason, object, &client.user, in_multi);
        Fail::text(text)
    }

    /// Runs a command and returns its reply, and whether it waits.
    pub(crate) fn call(
        &mut self,
        client: &mut Client,
        reply: Writer,
        row: &'static Row,
        args: &Args<'_>,
        woken_by: Option<Vec<u8>>,
        in_multi: bool,
    ) -> (Writer, bool) {
        // EXEC is shown after what it ran.
        let late = row.command.name == "exec";
        if 0 < self.monitors && !late {
            self.show_monitors(client, row.command, args);
        }
        let now_ms = self.now_ms;
        let mark = reply.mark();
        let mut context = Context {
            server: self,
            client,
            reply,
            command: row.command,
            row,
            now_ms,
            woken_by,
            in_multi,
            waits: false,
        };
        let outcome = (row.command.run)(&mut context, args);
        let Context { mut reply, waits, .. } = context;
        if 0 < self.monitors && late {
            self.show_monitors(client, row.command, args);
        }
        let ended = (self.clock)();
        let micros = ended.saturating_sub(self.last_micros);
        self.last_micros = ended;
        self.stats.called(row.number, micros);
        if let Err(refused) = outcome {
            self.stats.failed(row.number, &refused);
            reply.rewind(mark);
            reply.error(refused.as_str());
        }
        let slow = self.config.hot.slow_micros;
        if 0 <= slow && slow as u64 <= micros {
            self.note_slow(client, row.command, args, micros);
        }
        let spike_ms = self.config.hot.latency_ms;
        if 0 < spike_ms && spike_ms * 1000 <= micros {
            self.note_spike(row.command, micros / 1000);
        }
        (reply, waits)
    }

    fn note_slow(&mut self, client: &Client, command: &Command, args: &Args<'_>, micros: u64) {
        if command.has(command::SKIP_SLOWLOG) {
            return;
        }
        let mut words: Vec<Vec<u8>> = args
            .from(0)
            .take(SLOW_WORDS_MAX)
            .map(|word| {
                if word.len() <= SLOW_WORD_BYTES_MAX {
                    return word.to_vec();
                }
                let rest = word.len() - SLOW_WORD_BYTES_MAX;
                let mut cut = word[..SLOW_WORD_BYTES_MAX].to_vec();
                cut.extend_from_slice(format!("... ({rest} more bytes)").as_bytes());
                cut
            })
            .collect();
        if SLOW_WORDS_MAX < args.len() {
            let rest = args.len() - SLOW_WORDS_MAX + 1;
            words[SLOW_WORDS_MAX - 1] = format!("... ({rest} more arguments)").into_bytes();
        }
        let entry = SlowEntry {
            id: self.next_slow_id,
            at_ms: self.now_ms,
            micros,
            words,
            peer: client.peer.clone(),
            name: client.name.clone(),
        };
        self.next_slow_id += 1;
        self.slow.push_front(entry);
        self.slow.truncate(self.config.hot.slow_entries_max);
    }

    fn note_spike(&mut self, command: &Command, ms: u64) {
        let event = if command.has(command::FAST) { "fast-command" } else { "command" };
        let list = self.spikes.entry(event).or_default();
        list.push_back((self.now_ms / 1000, ms));
        if SPIKES_MAX < list.len() {
            list.pop_front();
        }
    }

    fn show_monitors(&mut self, client: &mut Client, command: &Command, args: &Args<'_>) {
        if command.flags & (command::SKIP_MONITOR | command::ADMIN) != 0 {
            return;
        }
        let micros = self.micros();
        let name = String::from_utf8_lossy(self.live.name(self.dbs[client.db])).into_owned();
        let mut line =
            format!("{}.{:06} [{name} {}]", micros / 1_000_000, micros % 1_000_000, client.peer);
        let secret = matches!(command.name, "auth" | "hello");
        for (index, word) in args.from(0).enumerate() {
            let shown = if secret && 0 < index { b"(redacted)" } else { word };
            line = format!("{line} \"{}\"", shown.escape_ascii());
        }
        let slots: Vec<Slot> =
            self.clients.iter().filter(|it| it.monitor).map(|it| Slot(it.slot)).collect();
        for slot in slots {
            self.push_to(slot, None, |writer| writer.simple(&line));
        }
        if client.monitor {
            self.push_to(Slot(client.slot), Some(client), |writer| writer.simple(&line));
        }
    }

    /// Serves the clients that wait for keys which were changed, first come, first served, until
    /// no change is left. What they do may make further keys ready.
    pub fn serve_ready(&mut self) {
        while let Some((db, key)) = self.blocking.next_ready() {
            for slot in self.blocking.waiting(db, &key) {
                self.wake(slot, &key);
            }
        }
    }

    /// Runs a waiting command again because `key` is ready.
    fn wake(&mut self, slot: Slot, key: &[u8]) {
        let Some(mut client) = self.clients.take(slot) else { return };
        let Some(blocked) = client.blocked.clone() else {
            self.clients.put_back(slot, client);
            return;
        };
        let changes = self.live.changes();
        let reply = Writer { out: std::mem::take(&mut client.out), version: client.version };
        let args = blocked.args.args();
        let (reply, waits) =
            self.call(&mut client, reply, blocked.row, &args, Some(key.to_vec()), false);
        client.out = reply.out;
        if !waits {
            self.unblock(&mut client);
            self.woken.push(slot);
        }
        if self.live.changes() != changes {
            self.writers.push(slot);
        }
        take_pushes(&mut client);
        self.clients.put_back(slot, client);
    }

    /// The client waits no more.
    pub(crate) fn unblock(&mut self, client: &mut Client) {
        if let Some(blocked) = client.blocked.take() {
            self.blocking.remove(client.slot, client.db, &blocked.keys);
        }
    }

    /// Gives up the waits whose time is up.
    pub fn time_out(&mut self) {
        for slot in self.blocking.timed_out(self.now_ms) {
            self.end_wait(slot, false);
        }
    }

    /// Ends the wait of a client. False if it does not wait.
    pub fn end_wait(&mut self, slot: Slot, with_error: bool) -> bool {
        let Some(mut client) = self.clients.take(slot) else { return false };
        let Some(blocked) = client.blocked.clone() else {
            self.clients.put_back(slot, client);
            return false;
        };
        self.unblock(&mut client);
        if blocked.timed_out == TimedOut::Rerun {
            // It was held back by a pause; it runs as if it came now.
            self.run(&mut client, &blocked.args.args());
            self.writers.push(slot);
        } else {
            let out = std::mem::take(&mut client.out);
            let mut reply = Writer { out, version: client.version };
            if with_error {
                reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
            } else {
                write_timed_out(&mut reply, blocked.timed_out);
            }
            client.out = reply.out;
        }
        self.woken.push(slot);
        self.clients.put_back(slot, client);
        true
    }

    fn must_pause(&self, client: &Client, command: &Command) -> bool {
        let Some((until_ms, writes_only)) = self.paused else { return false };
        if until_ms <= self.now_ms {
            return false;
        }
        let unpauses = command.name.starts_with("client|") || command.name == "client";
        if !writes_only {
            return !unpauses;
        }
        let writes = |it: &Command| it.has(command::WRITE) || it.name.ends_with("publish");
        match (&client.multi, command.name) {
            (Some(multi), "exec") => Multi::writes(multi, &writes),
            (Some(_), _) => false,
            (None, _) => writes(command),
        }
    }

    fn postpone(&mut self, client: &mut Client, row: &'static Row, args: &Args<'_>) {
        let blocked = Blocked {
            row,
            args: args.to_owned(),
            keys: Vec::new(),
            wanted: Wanted::Time,
            deadline_ms: self.paused.map(|(until_ms, _)| until_ms),
            timed_out: TimedOut::Rerun,
            since_ms: self.now_ms,
        };
        self.blocking.add(client.slot, client.db, &blocked);
        client.blocked = Some(Box::new(blocked));
    }

    /// Makes requests wait until `until_ms`: all of them, or only writes. A longer or stricter
    /// pause that is already on stays.
    pub fn pause(&mut self, until_ms: u64, writes_only: bool) {
        let now_ms = self.now_ms;
        let (until_ms, writes_only) = match self.paused.filter(|(until, _)| now_ms < *until) {
            None => (until_ms, writes_only),
            Some((until, writes)) => (until.max(until_ms), writes && writes_only),
        };
        self.paused = Some((until_ms, writes_only));
    }

    /// Ends a pause: what waited runs now.
    pub fn unpause(&mut self) {
        self.paused = None;
        let waiting: Vec<Slot> = self
            .clients
            .iter()
            .filter(|client| {
                client.blocked.as_ref().is_some_and(|it| it.timed_out == TimedOut::Rerun)
            })
            .map(|client| Slot(client.slot))
            .collect();
        for slot in waiting {
            self.end_wait(slot, false);
        }
    }
}

fn take_pushes(client: &mut Client) {
    if !client.pushes.is_empty() {
        let pushes = std::mem::take(&mut client.pushes);
        client.out.extend_from_slice(&pushes);
    }
}

fn is_transaction_control(command: &Command) -> bool {
    matches!(command.name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset")
}

fn changes_subscriptions(command: &Command) -> bool {
    command.has(command::PUBSUB) && command.name.ends_with("subscribe")
}

fn allowed_while_subscribed(command: &Command) -> bool {
    changes_subscriptions(command) || matches!(command.name, "ping" | "quit" | "reset")
}
