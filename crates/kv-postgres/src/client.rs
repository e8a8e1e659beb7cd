//! A small client of the PostgreSQL protocol, version 3: prepared statements, binary parameters and
//! results, several statements in one round trip.
//!
//! Every message is a letter, a length and a body. Lengths come from the server and are checked
//! against [`MESSAGE_BYTES_MAX`] before anything is allocated.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::scram::Scram;

/// The longest message that we take: a row has a key and a value, both far smaller.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Where a server is and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// A host name, or the directory of a socket if it starts with a slash.
    pub host: String,
    /// The port; it names the socket too.
    pub port: u16,
    /// The user.
    pub user: String,
    /// The password; empty if none.
    pub password: String,
    /// The database.
    pub database: String,
}

impl Url {
    /// Parses `[postgres://]user[:password]@host[:port]/database[?host=/socket/dir]`.
    pub fn parse(text: &str) -> Result<Url, String> {
        let text =
            text.strip_prefix("postgresql:").or(text.strip_prefix("postgres:")).unwrap_or(text);
        let text = text.strip_prefix("//").unwrap_or(text);
        let (text, query) = text.split_once('?').unwrap_or((text, ""));
        let (server, database) = text.split_once('/').unwrap_or((text, ""));
        let (user, address) = server.rsplit_once('@').unwrap_or(("postgres", server));
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => {
                (host, port.parse().map_err(|_| format!("\"{port}\" is not a port"))?)
            }
            None => (address, 5432),
        };
        let mut url = Url {
            host: unescape(if host.is_empty() { "127.0.0.1" } else { host }),
            port,
            user: unescape(user),
            password: unescape(password),
            database: unescape(if database.is_empty() { user } else { database }),
        };
        for pair in query.split('&').filter(|it| !it.is_empty()) {
            match pair.split_once('=') {
                Some(("host", value)) => url.host = unescape(value),
                Some(("sslmode", "disable" | "prefer" | "allow")) => {}
                _ => return Err(format!("the option \"{pair}\" is not offered")),
            }
        }
        Ok(url)
    }
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        if let (b'%', Some(byte)) = (first, hex.and_then(|it| u8::from_str_radix(it, 16).ok())) {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the server, or the way to it, answered.
#[derive(Debug)]
pub enum Error {
    /// The server refused a statement. The connection goes on.
    Server {
        /// The five letters of SQLSTATE.
        code: String,
        /// What the server says.
        message: String,
    },
    /// The connection is lost. Whether the last statement took effect is unknown.
    Lost(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Server { code, message } => write!(f, "{message} (SQLSTATE {code})"),
            Error::Lost(error) => write!(f, "the connection to PostgreSQL is lost: {error}"),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Lost(error)
    }
}

fn broken(what: &str) -> Error {
    Error::Lost(io::Error::new(io::ErrorKind::InvalidData, what.to_string()))
}

/// One value of a row; none is SQL's null.
pub type Column = Option<Vec<u8>>;

/// A statement with its parameters, all in binary form.
#[derive(Debug)]
pub struct Statement {
    /// The text, which is prepared once per connection.
    pub sql: &'static str,
    /// The parameters.
    pub params: Vec<Vec<u8>>,
}

impl Statement {
    /// A statement and its parameters.
    pub fn new(sql: &'static str, params: Vec<Vec<u8>>) -> Statement {
        Statement { sql, params }
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(to),
            Stream::Unix(stream) => stream.read(to),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(from),
            Stream::Unix(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One connection.
pub struct Client {
    stream: BufReader<Stream>,
    out: Vec<u8>,
    prepared: HashMap<&'static str, u64>,
    /// The number in the name of the next prepared statement. Names are never used again.
    prepared_next: u64,
    notices: Vec<String>,
}

impl Client {
    /// Connects and logs in. `nonce` must never have been used before.
    pub fn connect(url: &Url, nonce: String, timeout: Duration) -> Result<Client, Error> {
        let stream = open(url, timeout)?;
        let mut client = Client {
            stream: BufReader::with_capacity(64 << 10, stream),
            out: Vec::new(),
            prepared: HashMap::new(),
            prepared_next: 0,
            notices: Vec::new(),
        };
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", &url.user, "database", &url.database, "application_name", "kumiko", ""]
        {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        let size = (body.len() + 4) as u32;
        client.out.extend_from_slice(&size.to_be_bytes());
        client.out.extend_from_slice(&body);
        client.flush()?;
        client.log_in(url, nonce)?;
        Ok(client)
    }

    fn log_in(&mut self, url: &Url, nonce: String) -> Result<(), Error> {
        let mut scram = Scram::new(&url.password, nonce);
        loop {
            let (letter, body) = self.receive()?;
            let (code, rest) = match letter {
                b'R' => split_u32(&body).ok_or_else(|| broken("a short login message"))?,
                b'Z' => return Ok(()),
                b'E' => return Err(server_error(&body)),
                _ => continue,
            };
            let text = String::from_utf8_lossy(rest).into_owned();
            match code {
                0 => {}
                3 => self.send(b'p', &[url.password.as_bytes(), &[0]].concat()),
                10 if text.split('\0').any(|it| it == "SCRAM-SHA-256") => {
                    let first = scram.first();
                    let size = (first.len() as u32).to_be_bytes();
                    self.send(b'p', &[b"SCRAM-SHA-256\0", &size[..], first.as_bytes()].concat());
                }
                11 => {
                    let answer = scram.answer(&text).map_err(|why| broken(&why))?;
                    self.send(b'p', answer.as_bytes());
                }
                12 => scram.verify(&text).map_err(|why| broken(&why))?,
                _ => {
                    return Err(Error::Server {
                        code: "28000".into(),
                        message: "the server asks for a login that we do not speak; \
                                  use scram-sha-256, password or trust"
                            .into(),
                    });
                }
            }
            self.flush()?;
        }
    }

    /// Runs the statements in one round trip. After the first that fails, none runs.
    pub fn run(&mut self, statements: &[Statement]) -> Result<Vec<Vec<Vec<Column>>>, Error> {
        for statement in statements {
            self.queue(statement);
        }
        self.send(b'S', &[]);
        self.flush()?;
        let mut results: Vec<Vec<Vec<Column>>> = Vec::with_capacity(statements.len());
        let mut rows = Vec::new();
        let mut failed = None;
        loop {
            let (letter, body) = self.receive()?;
            match letter {
                b'D' => rows.push(row(&body).ok_or_else(|| broken("a malformed row"))?),
                b'C' | b'I' => results.push(std::mem::take(&mut rows)),
                b'E' => failed = failed.or(Some(server_error(&body))),
                b'Z' => break,
                _ => {}
            }
        }
        match failed {
            Some(error) => {
                // Which of them were prepared before the failure is not known.
                self.prepared.clear();
                Err(error)
            }
            None => Ok(results),
        }
    }

    /// Runs statements that take no parameters and give no rows, separated by semicolons.
    pub fn execute(&mut self, sql: &str) -> Result<(), Error> {
        self.send(b'Q', &[sql.as_bytes(), &[0]].concat());
        self.flush()?;
        let mut failed = None;
        loop {
            let (letter, body) = self.receive()?;
            match letter {
                b'E' => failed = failed.or(Some(server_error(&body))),
                b'Z' => return failed.map_or(Ok(()), Err),
                _ => {}
            }
        }
    }

    /// Waits for a notification and returns its text; none if `timeout` passes.
    pub fn notified(&mut self, timeout: Duration) -> Result<Option<String>, Error> {
        if let Some(text) = self.notices.pop() {
            return Ok(Some(text));
        }
        self.set_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        let result = self.receive();
        self.set_timeout(None)?;
        match result {
            Ok(_) => Ok(self.notices.pop()),
            Err(Error::Lost(error))
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn queue(&mut self, statement: &Statement) {
        let known = self.prepared.get(statement.sql).copied();
        let name = format!("s{}\0", known.unwrap_or(self.prepared_next));
        if known.is_none() {
            self.prepared.insert(statement.sql, self.prepared_next);
            self.prepared_next += 1;
            let body = [name.as_bytes(), statement.sql.as_bytes(), &[0, 0, 0]].concat();
            self.send(b'P', &body);
        }
        // Unnamed portal, all parameters binary, all results binary.
        let mut bind = vec![0];
        bind.extend_from_slice(name.as_bytes());
        bind.extend_from_slice(&[0, 1, 0, 1]);
        bind.extend_from_slice(&(statement.params.len() as u16).to_be_bytes());
        for param in &statement.params {
            bind.extend_from_slice(&(param.len() as u32).to_be_bytes());
            bind.extend_from_slice(param);
        }
        bind.extend_from_slice(&[0, 1, 0, 1]);
        self.send(b'B', &bind);
        self.send(b'E', &[0, 0, 0, 0, 0]);
    }

    fn send(&mut self, letter: u8, body: &[u8]) {
        self.out.push(letter);
        self.out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        self.out.extend_from_slice(body);
    }

    fn flush(&mut self) -> Result<(), Error> {
        let out = std::mem::take(&mut self.out);
        self.stream.get_mut().write_all(&out)?;
        Ok(())
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>), Error> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let [letter, size @ ..] = head;
        let size = u32::from_be_bytes(size) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&size) {
            return Err(broken("a message of impossible length"));
        }
        let mut body = vec![0; size - 4];
        self.stream.read_exact(&mut body)?;
        if letter == b'A' {
            // Process id, channel, text.
            let text = body.get(4..).unwrap_or_default().split(|byte| *byte == 0).nth(1);
            self.notices.push(String::from_utf8_lossy(text.unwrap_or_default()).into_owned());
        }
        Ok((letter, body))
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        match self.stream.get_ref() {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout)?,
            Stream::Unix(stream) => stream.set_read_timeout(timeout)?,
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.send(b'X', &[]);
        // The server notices a closed connection anyway; this spares it a line in its log.
        let _ = self.flush();
    }
}

fn open(url: &Url, timeout: Duration) -> Result<Stream, Error> {
    if url.host.starts_with('/') {
        let path = format!("{}/.s.PGSQL.{}", url.host, url.port);
        return Ok(Stream::Unix(UnixStream::connect(path)?));
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in std::net::ToSocketAddrs::to_socket_addrs(&(url.host.as_str(), url.port))? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(Stream::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(Error::Lost(last))
}

fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*head), rest))
}

fn row(body: &[u8]) -> Option<Vec<Column>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (size, after) = split_u32(rest)?;
        if size == u32::MAX {
            columns.push(None);
            rest = after;
        } else {
            let (value, after) = after.split_at_checked(size as usize)?;
            columns.push(Some(value.to_vec()));
            rest = after;
        }
    }
    Some(columns)
}

fn server_error(body: &[u8]) -> Error {
    let (mut code, mut message) = (String::new(), String::new());
    for field in body.split(|byte| *byte == 0) {
        match field.split_first() {
            Some((b'C', text)) => code = String::from_utf8_lossy(text).into_owned(),
            Some((b'M', text)) => message = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
    }
    Error::Server { code, message }
}

/// The binary form of an array of `bytea`.
pub fn bytea_array<'a>(items: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for number in [u32::from(items.len() != 0), 0, 17] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    if items.len() != 0 {
        out.extend_from_slice(&(items.len() as u32).to_be_bytes());
        out.extend_from_slice(&1_u32.to_be_bytes());
    }
    for item in items {
        out.extend_from_slice(&(item.len() as u32).to_be_bytes());
        out.extend_from_slice(item);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::draw;

    #[test]
    fn addresses() {
        let url = Url::parse("postgres://me:p%40ss@db.example:6000/shop").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("db.example", 6000));
        assert_eq!((url.user.as_str(), url.password.as_str()), ("me", "p@ss"));
        assert_eq!(url.database, "shop");
        let url = Url::parse("//me@/shop?host=/var/run").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.password.as_str()), ("/var/run", 5432, ""));
        assert!(Url::parse("postgres://me@host:x/db").is_err());
        assert!(Url::parse("postgres://me@host/db?sslmode=require").is_err());
    }

    #[test]
    fn no_row_makes_the_decoder_panic() {
        assert_eq!(row(&[0, 1, 0xFF, 0xFF, 0xFF, 0xFF]), Some(vec![None]));
        assert_eq!(row(&[0, 1, 0, 0, 0, 2, 7, 8]), Some(vec![Some(vec![7, 8])]));
        draw::check("no_row_makes_the_decoder_panic", 2000, |draw| {
            let bytes = draw.bytes(40);
            let _ = row(&bytes);
            let _ = server_error(&bytes);
        });
    }
}
