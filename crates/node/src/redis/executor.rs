//! The thread that owns the data: waits for sockets, runs requests, sends answers.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kumiko_redis::{Server, Slot};
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::{Connection, Next};
use super::journal::Writer;
use super::process;
use super::snapshot::{Run, Stepped};
use super::store::{Loader, Store};
use super::stream::Stream;
use super::{Job, Options};
use crate::Error;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
/// How many sockets one poll reports.
const EVENTS_MAX: usize = 1024;
/// How many clients are let in before those inside have their turn.
const ACCEPTS_PER_TURN: usize = 256;
/// One read takes at most this much.
const SCRATCH_BYTES: usize = 64 * 1024;
/// How often the regular work (expiry, timeouts, statistics) is done, at least.
const TICK: Duration = Duration::from_millis(100);
/// When all unsent answers together exceed this, clients that read slowly are not read from.
const UNSENT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A client with fewer unsent bytes than this is never slow.
const UNSENT_BYTES_PER_CLIENT: usize = 1024 * 1024;
/// How long to wait for the disk before a snapshot goes on.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(1);
/// How long one step of loading may take, so that clients are answered meanwhile.
const LOAD_STEP: Duration = Duration::from_millis(20);
/// When the batches since the last snapshot exceed this, and what the data takes, a new one is made.
const SNAPSHOT_AFTER_BYTES: u64 = 64 * 1024 * 1024;
/// Facts about the process are read every so many ticks.
const TICKS_PER_MEASURE: u64 = 10;
/// How often the progress of loading is told.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// So long an answer may wait for a journal that cannot be written; then its connection is closed.
const HELD_TIME_MAX: Duration = Duration::from_secs(5);
/// So many batches may wait for the journal before writers wait too.
const BATCHES_WAITING_MAX: u64 = 4096;

/// The executor.
pub(super) struct Executor {
    server: Server,
    poll: Poll,
    waker: Arc<Waker>,
    listener: TcpListener,
    bound: SocketAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
    connections: Vec<Option<Connection>>,
    journal: Option<Writer>,
    store: Option<Store>,
    loader: Option<Loader>,
    loaded: Option<Sender<Result<(), Error>>>,
    snapshot: Option<Run>,
    snapshot_waits: bool,
    /// Bytes of batches since the last snapshot.
    bytes_since_snapshot: u64,
    hold_answers: bool,
    inbox: Receiver<Job>,
    stopping: Arc<AtomicBool>,
    scratch: Vec<u8>,
    /// Connections that want another turn without a new event.
    again: VecDeque<Slot>,
    /// Connections with output.
    flush: Vec<Slot>,
    /// Connections whose answers wait for the journal.
    held: Vec<Slot>,
    /// Since when the journal cannot be written.
    failing_since: Option<Instant>,
    /// Connections that are not read from because they do not read.
    slow: Vec<Slot>,
    accept_again: bool,
    last_tick: Instant,
    ticks: u64,
    last_progress: Instant,
}

impl Executor {
    pub(super) fn new(
        mut listener: TcpListener,
        options: Options,
        inbox: Receiver<Job>,
        bound: SocketAddr,
        loaded: Sender<Result<(), Error>>,
    ) -> Result<Executor, Error> {
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let wake = Arc::clone(&waker);
        let (journal, loader) = match &options.store {
            None => (None, None),
            Some(store) => {
                let journal = Writer::start(Box::new(store.clone()), move || {
                    let _ = wake.wake();
                })?;
                (Some(journal), Some(store.loader()?))
            }
        };
        let mut server = options.server;
        server.clock = micros;
        server.sleep = |ms| std::thread::sleep(Duration::from_millis(ms));
        server.set_time(now_ms());
        server.facts.port = bound.port();
        server.facts.process_id = std::process::id();
        server.facts.started_ms = server.now_ms;
        server.facts.last_snapshot_ms = server.now_ms;
        server.facts.journal = journal.is_some();
        server.facts.loading = loader.is_some();
        process::measure(&mut server.facts);
        Ok(Executor {
            server,
            poll,
            waker,
            listener,
            bound,
            tls: options.tls,
            connections: Vec::new(),
            journal,
            store: options.store,
            loader,
            loaded: Some(loaded),
            snapshot: None,
            snapshot_waits: false,
            bytes_since_snapshot: 0,
            hold_answers: options.hold_answers,
            inbox,
            stopping: Arc::new(AtomicBool::new(false)),
            scratch: vec![0; SCRATCH_BYTES],
            again: VecDeque::new(),
            flush: Vec::new(),
            held: Vec::new(),
            failing_since: None,
            slow: Vec::new(),
            accept_again: false,
            last_tick: Instant::now(),
            ticks: 0,
            last_progress: Instant::now(),
        })
    }

    pub(super) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    pub(super) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopping)
    }

    /// Serves until it is told to stop. All that was answered is in the journal then.
    pub(super) fn run(&mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        if self.loader.is_none() {
            self.finish_loading(Ok(()));
        }
        while !self.stopping.load(Ordering::SeqCst) && !self.server.stopping {
            let wait = self.wait_time();
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => {}
            }
            self.server.set_time(now_ms());
            self.turn(&events);
        }
        self.finish();
    }

    fn wait_time(&self) -> Duration {
        let runs = self.snapshot.is_some() && !self.snapshot_waits;
        if !self.again.is_empty()
            || self.accept_again
            || self.server.busy()
            || self.loader.is_some()
            || runs
        {
            return Duration::ZERO;
        }
        if self.snapshot.is_some() {
            return SNAPSHOT_WAIT;
        }
        let until_tick = TICK.saturating_sub(self.last_tick.elapsed());
        match self.server.blocking.next_deadline_ms() {
            None => until_tick,
            Some(deadline_ms) => {
                let left = deadline_ms.saturating_sub(now_ms());
                until_tick.min(Duration::from_millis(left))
            }
        }
    }

    fn turn(&mut self, events: &Events) {
        for _ in 0..self.again.len() {
            if let Some(slot) = self.again.pop_front() {
                self.serve(slot);
            }
        }
        for event in events {
            match event.token() {
                LISTENER => self.accept_again = true,
                WAKER => {}
                Token(place) => {
                    let slot = Slot(place as u32);
                    if event.is_writable() {
                        self.list_flush(slot);
                    }
                    if event.is_readable() || event.is_read_closed() || event.is_error() {
                        if let Some(connection) = self.connection(slot) {
                            connection.read_ready = true;
                        }
                        self.serve(slot);
                    }
                }
            }
        }
        if self.accept_again {
            self.accept();
        }
        while let Ok(job) = self.inbox.try_recv() {
            job(&mut self.server);
            self.server.serve_ready();
        }
        self.server.time_out();
        if TICK <= self.last_tick.elapsed() || self.server.busy() {
            self.last_tick = Instant::now();
            self.server.tick();
            self.close_killed();
            self.ticks += 1;
            if self.ticks.is_multiple_of(TICKS_PER_MEASURE) {
                process::measure(&mut self.server.facts);
            }
        }
        self.load_some();
        self.resume_woken();
        self.hand_over();
        self.snapshot_some();
        self.release_held();
        self.flush_all();
        self.read_slow_again();
    }

    fn connection(&mut self, slot: Slot) -> Option<&mut Connection> {
        self.connections.get_mut(slot.0 as usize)?.as_mut()
    }

    fn serve(&mut self, slot: Slot) {
        let Some(place) = self.connections.get_mut(slot.0 as usize) else { return };
        let Some(mut connection) = place.take() else { return };
        connection.listed = false;
        let next = if connection.closing || self.is_slow(slot) {
            Next::Wait
        } else {
            connection.serve(&mut self.server, &mut self.scratch)
        };
        match next {
            Next::Wait => {}
            Next::Again => {
                connection.listed = true;
                self.again.push_back(slot);
            }
            Next::Close => connection.closing = true,
        }
        self.connections[slot.0 as usize] = Some(connection);
        self.list_flush(slot);
    }

    fn is_slow(&mut self, slot: Slot) -> bool {
        let unsent = self.server.clients.get(slot).map_or(0, |client| client.out.len());
        let slow = UNSENT_BYTES_PER_CLIENT < unsent
            && (UNSENT_BYTES_MAX < unsent || UNSENT_BYTES_MAX < self.server.unsent_bytes);
        if slow {
            self.slow.push(slot);
        }
        slow
    }

    fn list_flush(&mut self, slot: Slot) {
        if let Some(connection) = self.connection(slot)
            && !connection.to_flush
        {
            connection.to_flush = true;
            self.flush.push(slot);
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listener.accept() {
                Ok((socket, peer)) => {
                    // A client that is gone again, or a limit of the system, harms nobody else.
                    let _ = self.welcome(socket, peer);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.accept_again = false;
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, mut socket: mio::net::TcpStream, peer: SocketAddr) -> io::Result<()> {
        if self.server.config.hot.clients_max <= self.server.clients.len() as u64 {
            self.server.stats.connections_refused += 1;
            let _ = io::Write::write(&mut socket, b"-ERR max number of clients reached\r\n");
            return Ok(());
        }
        let _ = socket.set_nodelay(true);
        let session = match &self.tls {
            None => None,
            Some(config) => {
                Some(rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?)
            }
        };
        let slot = self.server.connect(peer.to_string(), self.bound.to_string());
        let mut stream = Stream::new(socket, session);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let token = Token(slot.0 as usize);
        if let Err(error) = self.poll.registry().register(stream.socket(), token, interest) {
            self.server.disconnect(slot);
            return Err(error);
        }
        let place = slot.0 as usize;
        if self.connections.len() <= place {
            self.connections.resize_with(place + 1, || None);
        }
        self.connections[place] = Some(Connection::new(stream, slot));
        Ok(())
    }

    fn close(&mut self, slot: Slot) {
        if let Some(mut connection) =
            self.connections.get_mut(slot.0 as usize).and_then(Option::take)
        {
            let _ = self.poll.registry().deregister(connection.stream.socket());
        }
        self.server.disconnect(slot);
    }

    fn close_killed(&mut self) {
        let killed: Vec<Slot> = self
            .server
            .clients
            .iter()
            .filter(|client| client.killed)
            .map(|client| Slot(client.slot))
            .collect();
        for slot in killed {
            self.close(slot);
        }
    }

    /// Clients that got output from somebody else's command, or wait no more.
    fn resume_woken(&mut self) {
        let mut at = 0;
        // Serving one may wake further ones, which are appended meanwhile.
        while at < self.server.woken.len() {
            let slot = self.server.woken[at];
            at += 1;
            if self.server.clients.get(slot).is_some_and(|client| client.killed) {
                self.close(slot);
                continue;
            }
            self.list_flush(slot);
            let waits = self.server.clients.get(slot).is_none_or(|it| it.blocked.is_some());
            if !waits {
                self.serve(slot);
            }
        }
        self.server.woken.clear();
    }

    /// Gives what this turn changed to the journal.
    fn hand_over(&mut self) {
        let Some(journal) = &mut self.journal else {
            self.server.writers.clear();
            return;
        };
        if let Some(batch) = self.server.take_changes() {
            self.bytes_since_snapshot += batch.len() as u64;
            self.server.facts.journal_batches += 1;
            self.server.facts.journal_bytes += batch.len() as u64;
            let number = journal.push(batch);
            let hold = self.hold_answers || BATCHES_WAITING_MAX < journal.waiting();
            for slot in self.server.writers.drain(..) {
                let connection = self.connections.get_mut(slot.0 as usize).and_then(Option::as_mut);
                if hold && let Some(connection) = connection {
                    connection.held_until = number;
                    self.held.push(slot);
                }
            }
        }
        self.server.writers.clear();
        self.look_at_journal();
    }

    /// Refuses writes while the journal cannot be written, and takes them again afterwards.
    fn look_at_journal(&mut self) {
        let failure = self.journal.as_ref().and_then(Writer::failure);
        match (failure, self.failing_since) {
            (Some(text), None) => {
                eprintln!("kumiko: the journal cannot be written, so writes are refused: {text}");
                self.server.journal_failed();
                self.failing_since = Some(Instant::now());
            }
            // Whether the writes take effect is not known, and those who wait must not wait for ever.
            (Some(_), Some(since)) if HELD_TIME_MAX <= since.elapsed() => {
                for slot in std::mem::take(&mut self.held) {
                    self.close(slot);
                }
            }
            (None, Some(_)) => {
                eprintln!("kumiko: the journal is written again, and writes are taken");
                self.server.journal_recovered();
                self.failing_since = None;
            }
            _ => {}
        }
    }

    /// Loads some of the journal, if it is not all there yet.
    fn load_some(&mut self) {
        let Some(loader) = &mut self.loader else { return };
        let began = Instant::now();
        let result = loop {
            match loader.step(&mut self.server) {
                Ok(true) => break Ok(()),
                Ok(false) if began.elapsed() < LOAD_STEP => {}
                Ok(false) => {
                    if PROGRESS_EVERY <= self.last_progress.elapsed() {
                        self.last_progress = Instant::now();
                        eprintln!("kumiko: loading the journal: {} %", loader.percent());
                    }
                    return;
                }
                Err(error) => break Err(error),
            }
        };
        self.loader = None;
        self.server.facts.loading = false;
        if result.is_err() {
            self.stopping.store(true, Ordering::SeqCst);
        }
        self.finish_loading(result);
    }

    fn finish_loading(&mut self, result: Result<(), Error>) {
        if result.is_ok() {
            // Replaying is not recorded; from now on every change is.
            self.server.live.settings_mut().journal = self.journal.is_some();
        }
        if let Some(loaded) = self.loaded.take() {
            let _ = loaded.send(result);
        }
    }

    /// Begins a snapshot if one is wanted, and writes a part of the one that runs.
    fn snapshot_some(&mut self) {
        let asked = self.server.effects.drain(..).count() != 0;
        let (Some(store), Some(journal)) = (&self.store, &self.journal) else { return };
        if let Some(run) = &mut self.snapshot {
            match run.step(&mut self.server) {
                Stepped::Busy => self.snapshot_waits = false,
                Stepped::Waiting => self.snapshot_waits = true,
                Stepped::Done => {
                    let again = run.restarts();
                    self.snapshot = None;
                    if again {
                        self.server.effects.push(kumiko_redis::server::Effect::Snapshot);
                    }
                }
            }
            return;
        }
        let data = self.server.facts.journal_bytes.min(SNAPSHOT_AFTER_BYTES);
        let full = SNAPSHOT_AFTER_BYTES.max(data) < self.bytes_since_snapshot;
        let id = store.latest() + journal.last();
        if !(asked || full) || self.server.facts.loading || id == 0 {
            return;
        }
        self.bytes_since_snapshot = 0;
        self.snapshot_waits = false;
        match Run::begin(&mut self.server, store, id, journal.last(), journal.progress()) {
            Ok(run) => self.snapshot = Some(run),
            Err(error) => eprintln!("kumiko: cannot begin a snapshot: {error}"),
        }
    }

    fn release_held(&mut self) {
        let Some(journal) = &self.journal else { return };
        let written = journal.written();
        for slot in std::mem::take(&mut self.held) {
            match self.connection(slot).map(|connection| connection.held_until) {
                Some(number) if written < number => self.held.push(slot),
                Some(_) => self.list_flush(slot),
                None => {}
            }
        }
    }

    fn flush_all(&mut self) {
        let written = self.journal.as_ref().map_or(u64::MAX, Writer::written);
        for slot in std::mem::take(&mut self.flush) {
            let Some(connection) =
                self.connections.get_mut(slot.0 as usize).and_then(Option::as_mut)
            else {
                continue;
            };
            connection.to_flush = false;
            if written < connection.held_until {
                // Answers that say more than the journal knows do not leave.
                self.check_output(slot);
                continue;
            }
            match connection.flush(&mut self.server) {
                Ok(false) if connection.closing => self.close(slot),
                Ok(false) => {}
                Ok(true) => self.check_output(slot),
                Err(_) => self.close(slot),
            }
        }
    }

    fn check_output(&mut self, slot: Slot) {
        if self.server.output_too_large(slot) {
            self.close(slot);
        }
    }

    fn read_slow_again(&mut self) {
        for slot in std::mem::take(&mut self.slow) {
            if self.is_slow(slot) {
                continue;
            }
            if let Some(connection) = self.connection(slot)
                && !connection.listed
            {
                connection.listed = true;
                self.again.push_back(slot);
            }
        }
    }

    /// Writes the journal to its end and sends the answers that waited for it.
    fn finish(&mut self) {
        self.hand_over();
        if let Some(journal) = &mut self.journal {
            journal.stop();
        }
        self.release_held();
        let slots: Vec<Slot> = self.server.clients.iter().map(|client| Slot(client.slot)).collect();
        for slot in slots {
            self.list_flush(slot);
        }
        self.flush_all();
    }
}

/// The wall clock, in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_millis() as u64)
}

/// The wall clock, in microseconds since 1970.
fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_micros() as u64)
}
