//! The systems that are measured, each with the operations that the tables need.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, IntegerComparator, PutFlags, WithoutTls};
use kumiko_eventlog::{EventId, Item, Log, Point, Take, Writer};
use kumiko_kv_disk::{Disk, Options};

/// One log that batches are appended to, by one thread.
pub(crate) trait Appender: Send {
    /// Appends `count` copies of `event`, durably.
    fn append(&mut self, event: &[u8], count: usize);
    /// How many events there are, asked of the system.
    fn count(&mut self) -> u64;
}

pub(crate) struct Ours {
    engine: Disk,
    writer: Writer,
    next: EventId,
}

pub(crate) fn open_disk(dir: &Path) -> Disk {
    Disk::open(dir, Options::default()).expect("the store opens")
}

impl Ours {
    pub(crate) fn new(engine: &Disk, point: u128) -> Ours {
        let log = Log::of(Point::new(point));
        let writer = Writer::open(engine, &log, "bench", Take::Over).expect("the log is free");
        Ours { engine: engine.clone(), writer, next: EventId::FIRST }
    }
}

impl Appender for Ours {
    fn append(&mut self, event: &[u8], count: usize) {
        let items = vec![Item::event(event); count];
        let done = self.writer.append(&self.engine, self.next, &items).expect("append");
        self.next = done.last.next();
    }

    fn count(&mut self) -> u64 {
        let mut txn = kumiko_kv::Engine::begin(&self.engine).expect("begin");
        let log = self.writer.log();
        log.bounds(txn.as_mut(), kumiko_kv::Read::Snapshot).expect("bounds").count()
    }
}

/// EVENTS of an environment, as vere opens it.
pub(crate) type Events = Database<'static, Bytes, Bytes, IntegerComparator>;

/// LMDB as vere drives it: an environment per ship, native integer keys, no overwriting, a full
/// sync at every commit.
pub(crate) struct Lmdb {
    pub(crate) env: &'static Env<WithoutTls>,
    pub(crate) events: Events,
    next: u64,
}

impl Lmdb {
    pub(crate) fn new(dir: &Path) -> Lmdb {
        std::fs::create_dir_all(dir).expect("the directory can be made");
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(16 << 30).max_dbs(4);
        // SAFETY: the directory is new and nobody else maps the file.
        let env = unsafe { options.open(dir) }.expect("LMDB opens");
        // The database borrows it; both live as long as this process measures.
        let env: &'static Env<WithoutTls> = Box::leak(Box::new(env));
        let txn = env.write_txn().expect("write_txn");
        let events = env
            .create_databases_and_commit(txn, |options, txn| {
                options
                    .database_options()
                    .types::<Bytes, Bytes>()
                    .key_comparator::<IntegerComparator>()
                    .name("EVENTS")
                    .create(txn)
                    .map(CommitOrAbort::<_, ()>::Commit)
            })
            .expect("EVENTS")
            .unwrap_commit();
        Lmdb { env, events, next: 1 }
    }
}

impl Appender for Lmdb {
    fn append(&mut self, event: &[u8], count: usize) {
        let mut txn = self.env.write_txn().expect("write_txn");
        for _ in 0..count {
            let key = self.next.to_ne_bytes();
            self.events.put_with_flags(&mut txn, PutFlags::NO_OVERWRITE, &key, event).expect("put");
            self.next += 1;
        }
        txn.commit().expect("commit");
    }

    fn count(&mut self) -> u64 {
        let txn = self.env.read_txn().expect("read_txn");
        self.events.len(&txn).expect("len")
    }
}

/// A Redis server of our own, which syncs every write.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// `None` if the program is not installed.
    pub(crate) fn start(dir: &Path) -> Option<Server> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--auto-aof-rewrite-percentage", "0", "--dir"])
            .arg(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let server = Server { child, port };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    pub(crate) fn stream(&self, name: String) -> Stream {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).expect("redis answers");
        socket.set_nodelay(true).expect("nodelay");
        let reader = BufReader::new(socket.try_clone().expect("a second handle"));
        Stream { socket, reader, name }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One stream of the server, over a connection of its own.
pub(crate) struct Stream {
    socket: TcpStream,
    reader: BufReader<TcpStream>,
    name: String,
}

impl Stream {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("redis answers");
        assert!(!line.starts_with('-'), "redis: {line}");
        line
    }
}

impl Appender for Stream {
    fn append(&mut self, event: &[u8], count: usize) {
        let mut request = Vec::with_capacity(count * (event.len() + 80));
        for _ in 0..count {
            let name = &self.name;
            write!(
                request,
                "*5\r\n$4\r\nXADD\r\n${}\r\n{name}\r\n$1\r\n*\r\n$1\r\ne\r\n${}\r\n",
                name.len(),
                event.len()
            )
            .expect("writing to memory");
            request.extend_from_slice(event);
            request.extend_from_slice(b"\r\n");
        }
        self.socket.write_all(&request).expect("redis reads");
        for _ in 0..count {
            let head = self.line();
            let size: usize = head[1..].trim().parse().expect("a bulk string");
            let mut id = vec![0; size + 2];
            self.reader.read_exact(&mut id).expect("the id");
        }
    }

    fn count(&mut self) -> u64 {
        let request = format!("*2\r\n$4\r\nXLEN\r\n${}\r\n{}\r\n", self.name.len(), self.name);
        self.socket.write_all(request.as_bytes()).expect("redis reads");
        self.line()[1..].trim().parse().expect("a number")
    }
}
