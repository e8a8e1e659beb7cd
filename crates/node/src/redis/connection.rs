//! One client: its socket, the bytes that wait, and where it stands.

use std::io;

use kumiko_redis::server::After;
use kumiko_redis::{Args, Server, Slot};
use kumiko_wire::resp::{Limits, Parsed, Parser};

use super::stream::Stream;

/// How much one client may send before others have their turn.
const TURN_BYTES_MAX: usize = 1024 * 1024;

/// What is to be done with a connection after it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Wait for the socket.
    Wait,
    /// There is more to read or to run: come back in the next turn.
    Again,
    /// Send what is there, then close.
    Close,
}

/// One client.
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) slot: Slot,
    parser: Parser,
    /// What was read and not yet used up. Empty most of the time: requests are run right from the
    /// buffer that all connections share.
    input: Vec<u8>,
    /// How much of the client's output was sent.
    sent: usize,
    /// Its answers wait until the journal has written this batch.
    pub(super) held_until: u64,
    /// It is already in the list of those that want another turn.
    pub(super) listed: bool,
    /// It is in the list of those with output.
    pub(super) to_flush: bool,
    /// Close it once all is sent.
    pub(super) closing: bool,
    /// The socket said it would take more.
    pub(super) read_ready: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, slot: Slot) -> Connection {
        Connection {
            stream,
            slot,
            parser: Parser::new(),
            input: Vec::new(),
            sent: 0,
            held_until: 0,
            listed: false,
            to_flush: false,
            closing: false,
            read_ready: false,
        }
    }

    /// Reads and runs requests until the socket has no more, the turn is over or the client waits.
    pub(super) fn serve(&mut self, server: &mut Server, scratch: &mut [u8]) -> Next {
        let mut taken = 0;
        // What an earlier turn left behind comes first.
        if !self.input.is_empty() && !self.is_blocked(server) {
            match self.run_kept(server) {
                After::Next => {}
                After::Blocked => return Next::Wait,
                After::Close => return Next::Close,
            }
        }
        while self.read_ready {
            if self.is_blocked(server) && INPUT_BYTES_WHILE_BLOCKED < self.input.len() {
                return Next::Wait;
            }
            if TURN_BYTES_MAX <= taken {
                return Next::Again;
            }
            let count = match self.stream.read(scratch) {
                Ok(0) => return Next::Close,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.read_ready = false;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Next::Close,
            };
            taken += count;
            server.stats.input_bytes += count as u64;
            let short = count < scratch.len();
            match self.take(server, &scratch[..count]) {
                After::Next | After::Blocked => {}
                After::Close => return Next::Close,
            }
            // A short read emptied a plain socket: the next one would only say so. The poll tells
            // when there is more.
            if short && matches!(self.stream, Stream::Plain(_)) {
                self.read_ready = false;
            }
        }
        Next::Wait
    }

    fn is_blocked(&self, server: &Server) -> bool {
        server.clients.get(self.slot).is_some_and(|client| client.blocked.is_some())
    }

    /// Runs the requests in fresh bytes.
    fn take(&mut self, server: &mut Server, fresh: &[u8]) -> After {
        if !self.input.is_empty() || self.is_blocked(server) {
            self.input.extend_from_slice(fresh);
            return if self.is_blocked(server) { After::Blocked } else { self.run_kept(server) };
        }
        let (used, after, need) = run(&mut self.parser, self.slot, server, fresh);
        if used < fresh.len() {
            // A large argument is on its way: make room once, not many times.
            self.input.reserve(fresh.len() - used + need.min(NEED_BYTES_MAX));
            self.input.extend_from_slice(&fresh[used..]);
        }
        self.note_input(server);
        self.check_input(server, after)
    }

    /// Runs the requests that are kept.
    fn run_kept(&mut self, server: &mut Server) -> After {
        let input = std::mem::take(&mut self.input);
        let (used, after, need) = run(&mut self.parser, self.slot, server, &input);
        self.input = input;
        self.input.drain(..used);
        if self.input.is_empty() {
            self.input = Vec::new();
        } else {
            self.input.reserve(need.min(NEED_BYTES_MAX));
        }
        self.note_input(server);
        self.check_input(server, after)
    }

    fn note_input(&self, server: &mut Server) {
        if let Some(client) = server.clients.get_mut(self.slot) {
            client.input_bytes = self.input.len();
        }
    }

    fn check_input(&self, server: &Server, after: After) -> After {
        let over = server.config.hot.query_buffer_bytes_max < self.input.len() as u64;
        if over { After::Close } else { after }
    }

    /// Sends what the socket takes. True if something is left.
    pub(super) fn flush(&mut self, server: &mut Server) -> io::Result<bool> {
        let Some(client) = server.clients.get_mut(self.slot) else { return Ok(false) };
        while self.sent < client.out.len() {
            match self.stream.write(&client.out[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.sent += count;
                    server.stats.output_bytes += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.cut_sent(&mut client.out);
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        if OUTPUT_BYTES_KEPT < client.out.capacity() {
            client.out = Vec::new();
        } else {
            client.out.clear();
        }
        match self.stream.flush() {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Drops sent bytes from the front once they are the larger half, so that the work is bounded
    /// by what was sent.
    fn cut_sent(&mut self, out: &mut Vec<u8>) {
        if out.len() / 2 < self.sent {
            out.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// While a client waits for a key, this much of what it sends further is kept.
const INPUT_BYTES_WHILE_BLOCKED: usize = 1024 * 1024;
/// The most room that is made ahead for one argument.
const NEED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// An empty output buffer larger than this is given back.
const OUTPUT_BYTES_KEPT: usize = 64 * 1024;

/// Runs all whole requests in `input`. Returns how many bytes they took, what to do next, and how
/// many bytes the next request still needs.
fn run(
    parser: &mut Parser,
    slot: Slot,
    server: &mut Server,
    input: &[u8],
) -> (usize, After, usize) {
    let mut used = 0;
    loop {
        let limits = Limits {
            bulk_bytes_max: server.config.hot.bulk_bytes_max,
            stranger: server.clients.get(slot).is_some_and(|client| !client.authenticated),
        };
        let rest = &input[used..];
        server.request_bytes = rest.len();
        let (size, after) = match parser.next(rest, &limits) {
            Ok(Parsed::Need(need)) => return (used, After::Next, need),
            Ok(Parsed::Array(size)) => {
                (size, server.execute(slot, &Args::new(rest, parser.spans())))
            }
            Ok(Parsed::Line(size)) => {
                (size, server.execute(slot, &Args::new(parser.line(), parser.spans())))
            }
            Err(text) => {
                server.refuse(slot, &format!("ERR {text}"));
                return (input.len(), After::Close, 0);
            }
        };
        used += size;
        if after != After::Next {
            return (used, after, 0);
        }
    }
}
