//! A client's socket: plain, or with TLS around it.

use std::io::{self, Read, Write};

use mio::net::TcpStream;
use rustls::ServerConnection;

/// A socket that never waits.
pub(super) enum Stream {
    /// Bytes as they are.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<Tls>),
}

/// A socket with its TLS state.
pub(super) struct Tls {
    socket: TcpStream,
    session: ServerConnection,
}

impl Stream {
    /// A stream over `socket`, with TLS if there is a session for it.
    pub(super) fn new(socket: TcpStream, session: Option<ServerConnection>) -> Stream {
        match session {
            None => Stream::Plain(socket),
            Some(session) => Stream::Tls(Box::new(Tls { socket, session })),
        }
    }

    /// The socket, to register it.
    pub(super) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &mut tls.socket,
        }
    }

    /// Reads what is there. `Ok(0)` means that the client closed.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(into),
            Stream::Tls(tls) => tls.read(into),
        }
    }

    /// Writes what the socket takes.
    pub(super) fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(from),
            Stream::Tls(tls) => tls.write(from),
        }
    }

    /// Sends what TLS keeps back: handshakes, alerts, the rest of a record.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.send(),
        }
    }
}

impl Tls {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.session.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            if let Err(error) = self.session.process_new_packets() {
                // The alert tells the client why; the connection is over in any case.
                let _ = self.send();
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            match self.send() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.send()?;
        let count = self.session.writer().write(from)?;
        match self.send() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}
