//! Everything that all clients share, and how a request becomes a reply.
//!
//! [`Server::execute`] looks the command up, asks whether this client may run it now, queues it if
//! a transaction is open, and else runs it. Afterwards it serves the clients that waited for a key
//! which the command changed.
//!
//! The client whose command runs is taken out of its place meanwhile, so that the command can
//! change it and the server at once; messages to itself are kept in `pushes` until its reply is
//! complete.

pub mod blocking;
pub mod clients;
pub mod pubsub;
pub mod stats;
pub mod table;
pub mod watching;

use kumiko_base::draw::Draw;
use kumiko_lattice::live::{DbId, Live, Settings};
use kumiko_wire::resp::Writer;

use crate::Args;
use crate::args::OwnedArgs;
use crate::client::{Client, ReplyMode, Slot};
use crate::command::{self, Command};
use crate::context::Context;
use crate::fail::{self, Fail};

pub use blocking::Blocking;
pub use clients::Clients;
pub use pubsub::PubSub;
pub use stats::Stats;
pub use table::Table;
pub use watching::Watching;

/// Everything that all clients share.
#[derive(Debug)]
pub struct Server {
    /// The commands by name.
    pub table: &'static Table,
    /// The connections.
    pub clients: Clients,
    /// Who hears which channel.
    pub pubsub: PubSub,
    /// Who waits for which key.
    pub blocking: Blocking,
    /// Who watches which key.
    pub watching: Watching,
    /// Counters for `INFO`.
    pub stats: Stats,
    /// Random numbers, from the seed that the server was made with.
    pub random: Draw,
    /// The time of this turn, in milliseconds since 1970.
    pub now_ms: u64,
    /// Clients other than the running one that got output.
    pub woken: Vec<Slot>,
    /// The classes of keyspace events that are published.
    pub notify: u32,
    /// The data.
    pub live: Live,
    /// The databases that clients have selected, by [`Client::db`]; the first are the numbered ones.
    pub dbs: Vec<DbId>,
}

/// How many databases have a number.
pub const NUMBERED_DBS: usize = 16;

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
    /// A server without data or clients. `seed` fixes its random choices.
    pub fn new(seed: u64) -> Server {
        let mut live = Live::new(Settings { seed, report_expired: true, ..Settings::default() });
        let dbs = (0..NUMBERED_DBS).map(|db| live.open(db.to_string().as_bytes())).collect();
        Server {
            table: Table::shared(),
            clients: Clients::default(),
            pubsub: PubSub::default(),
            blocking: Blocking::default(),
            watching: Watching::default(),
            stats: Stats::new(Table::shared().len()),
            random: Draw::new(seed),
            now_ms: 0,
            woken: Vec::new(),
            notify: 0,
            live,
            dbs,
        }
    }

    /// The store's name for the database at this index.
    pub fn db_id(&self, db: usize) -> DbId {
        self.dbs[db]
    }

    /// Sets the time of this turn.
    pub fn set_time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// The classes of keyspace events that are published.
    pub fn notify_classes(&self) -> u32 {
        self.notify
    }

    /// A new connection.
    pub fn connect(&mut self, peer: String, local: String) -> Slot {
        let client = Client {
            peer,
            local,
            authenticated: true,
            user: "default".to_owned(),
            since_ms: self.now_ms,
            active_ms: self.now_ms,
            ..Client::default()
        };
        self.stats.connections += 1;
        self.clients.add(client)
    }

    /// The connection is gone.
    pub fn disconnect(&mut self, slot: Slot) {
        let Some(mut client) = self.clients.remove(slot) else { return };
        self.forget(&mut client);
    }

    /// Takes a client out of all lists: it waits, watches and subscribes no more.
    pub fn forget(&mut self, client: &mut Client) {
        self.unblock(client);
        self.watching.clear(client);
        self.pubsub.clear(client);
        client.monitor = false;
    }

    /// Runs one request of a client and appends the reply to its output.
    pub fn execute(&mut self, slot: Slot, args: &Args<'_>) -> After {
        if args.is_empty() {
            return After::Next;
        }
        let Some(mut client) = self.clients.take(slot) else { return After::Close };
        client.active_ms = self.now_ms;
        let reply = Writer { out: std::mem::take(&mut client.out), version: client.version };
        let mark = reply.mark();
        let (mut reply, waits) = self.dispatch(&mut client, reply, args);
        match client.reply_mode {
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
        let pushes = std::mem::take(&mut client.pushes);
        client.out.extend_from_slice(&pushes);
        let closing = client.closing || client.killed;
        self.clients.put_back(slot, client);
        self.serve_ready();
        match (closing, waits) {
            (true, _) => After::Close,
            (false, true) if self.clients.get(slot).is_some_and(|it| it.blocked.is_some()) => {
                After::Blocked
            }
            (false, _) => After::Next,
        }
    }

    /// Decides what becomes of a request. The second result tells whether the client waits now.
    fn dispatch(
        &mut self,
        client: &mut Client,
        mut reply: Writer,
        args: &Args<'_>,
    ) -> (Writer, bool) {
        match self.admit(client, args) {
            Ok(command) => {
                client.last_command = Some(command);
                if let Some(multi) = &mut client.multi
                    && !is_transaction_control(command)
                {
                    multi.queue.push((command, args.to_owned()));
                    reply.simple("QUEUED");
                    return (reply, false);
                }
                self.call(client, reply, command, args, None, false)
            }
            Err((command, refused)) => {
                if let Some(multi) = &mut client.multi {
                    multi.broken = true;
                }
                if command.is_some_and(|it| it.name == "exec") {
                    // Refused before it ran: the transaction is over all the same.
                    client.multi = None;
                    self.watching.clear(client);
                    let text = refused.as_str().trim_start_matches("ERR ");
                    reply.error(&format!("EXECABORT Transaction discarded because of: {text}"));
                    return (reply, false);
                }
                self.stats.refused(self.table, command, &refused);
                reply.error(refused.as_str());
                (reply, false)
            }
        }
    }

    /// Whether this client may run this request now.
    fn admit(
        &mut self,
        client: &Client,
        args: &Args<'_>,
    ) -> Result<&'static Command, (Option<&'static Command>, Fail)> {
        let command = self.table.find(args).map_err(|refused| (None, refused))?;
        let refuse = |refused: Fail| Err((Some(command), refused));
        if !command.fits(args.len()) {
            return refuse(fail::arity(command.name));
        }
        if !client.authenticated && !command.has(command::NO_AUTH) {
            return refuse(fail::NO_AUTH);
        }
        if client.only_subscribes() && !allowed_while_subscribed(command) {
            let name = command.name;
            return refuse(Fail::text(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / \
                 QUIT / RESET are allowed in this context"
            )));
        }
        if client.multi.is_some() && command.has(command::NO_MULTI) {
            return refuse(Fail::new("ERR Command not allowed inside a transaction"));
        }
        Ok(command)
    }

    /// Runs a command and returns its reply, and whether it waits.
    pub(crate) fn call(
        &mut self,
        client: &mut Client,
        reply: Writer,
        command: &'static Command,
        args: &Args<'_>,
        woken_by: Option<Vec<u8>>,
        in_multi: bool,
    ) -> (Writer, bool) {
        let now_ms = self.now_ms;
        let mark = reply.mark();
        let mut context = Context {
            server: self,
            client,
            reply,
            command,
            now_ms,
            woken_by,
            in_multi,
            waits: false,
        };
        let outcome = (command.run)(&mut context, args);
        let Context { mut reply, waits, .. } = context;
        match outcome {
            Ok(()) => self.stats.called(self.table, command),
            Err(refused) => {
                self.stats.failed(self.table, command, &refused);
                reply.rewind(mark);
                reply.error(refused.as_str());
            }
        }
        (reply, waits)
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
        let reply = Writer { out: std::mem::take(&mut client.out), version: client.version };
        let args: &OwnedArgs = &blocked.args;
        let (reply, waits) =
            self.call(&mut client, reply, blocked.command, &args.args(), Some(key.to_vec()), false);
        client.out = reply.out;
        if !waits {
            self.unblock(&mut client);
            self.woken.push(slot);
        }
        let pushes = std::mem::take(&mut client.pushes);
        client.out.extend_from_slice(&pushes);
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
            let Some(mut client) = self.clients.take(slot) else { continue };
            let due = client.blocked.as_ref().is_some_and(|blocked| {
                blocked.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= self.now_ms)
            });
            if due && let Some(blocked) = client.blocked.clone() {
                self.unblock(&mut client);
                let mut reply =
                    Writer { out: std::mem::take(&mut client.out), version: client.version };
                crate::context::write_timed_out(&mut reply, blocked.timed_out);
                client.out = reply.out;
                self.woken.push(slot);
            }
            self.clients.put_back(slot, client);
        }
    }

    /// A key was changed: tells watchers and waiting clients.
    pub fn key_modified(&mut self, db: usize, key: &[u8], current: Option<&mut Client>) {
        self.stats.dirty += 1;
        if !self.watching.is_empty() {
            self.watching.touch(db, key, &mut self.clients, current);
        }
        if !self.blocking.is_empty() {
            self.blocking.make_ready(db, key);
        }
    }

    /// Publishes a keyspace event.
    pub fn publish_event(
        &mut self,
        db: usize,
        event: &str,
        key: &[u8],
        mut current: Option<&mut Client>,
    ) {
        let name = db.to_string();
        if self.notify & crate::notify::KEYSPACE != 0 {
            let channel = [b"__keyspace@", name.as_bytes(), b"__:", key].concat();
            self.publish(&channel, event.as_bytes(), current.as_deref_mut());
        }
        if self.notify & crate::notify::KEYEVENT != 0 {
            let channel = [b"__keyevent@", name.as_bytes(), b"__:", event.as_bytes()].concat();
            self.publish(&channel, key, current);
        }
    }
}

fn is_transaction_control(command: &Command) -> bool {
    matches!(command.name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset")
}

fn allowed_while_subscribed(command: &Command) -> bool {
    matches!(
        command.name,
        "subscribe"
            | "psubscribe"
            | "ssubscribe"
            | "unsubscribe"
            | "punsubscribe"
            | "sunsubscribe"
            | "ping"
            | "quit"
            | "reset"
    )
}
