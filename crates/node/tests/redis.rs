//! The Redis front through its sockets: requests in pieces, refusals, restarts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use kumiko_eventlog::{EventId, Item, Take, Writer};
use kumiko_kv::{Engine, Memory};
use kumiko_node::Service;
use kumiko_node::redis::store::{Store, log_of};
use kumiko_node::redis::{Options, start};
use kumiko_redis::Server;

const NODE: [u8; 16] = [7; 16];

fn options(engine: Option<&Arc<dyn Engine>>) -> Options {
    let store = engine.map(|it| Store::open(Arc::clone(it), &NODE, "test").unwrap());
    Options {
        address: "127.0.0.1:0".to_owned(),
        server: Server::new(1),
        store,
        hold_answers: engine.is_some(),
        tls: None,
    }
}

fn serve(engine: Option<&Arc<dyn Engine>>) -> (Service, SocketAddr) {
    let (service, _) = start(options(engine)).unwrap();
    let address = service.address.unwrap();
    (service, address)
}

struct Client(TcpStream);

impl Client {
    fn new(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client(stream)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Reads exactly what is wanted.
    fn expect(&mut self, wanted: &str) {
        let mut found = vec![0; wanted.len()];
        self.0.read_exact(&mut found).unwrap();
        assert_eq!(String::from_utf8_lossy(&found), wanted);
    }

    fn ask(&mut self, line: &str, wanted: &str) {
        self.send(format!("{line}\r\n").as_bytes());
        self.expect(wanted);
    }

    /// What comes until the server closes.
    fn rest(&mut self) -> String {
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        text
    }

    fn set_big(&mut self, size: usize) {
        self.send(format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${size}\r\n").as_bytes());
        self.send(&vec![b'z'; size]);
        self.send(b"\r\n");
        self.expect("+OK\r\n");
        self.ask("STRLEN big", &format!(":{size}\r\n"));
    }

    /// Asks until the first snapshot is finished.
    fn wait_for_snapshot(&mut self) {
        for _ in 0..10_000 {
            self.send(b"INFO persistence\r\n");
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n") {
                self.0.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let size: usize = String::from_utf8_lossy(&head[1..head.len() - 2]).parse().unwrap();
            let mut body = vec![0; size + 2];
            self.0.read_exact(&mut body).unwrap();
            if String::from_utf8_lossy(&body).contains("rdb_saves:1\r\n") {
                return;
            }
        }
        panic!("the snapshot does not end");
    }
}

#[test]
fn pieces_pipelines_and_waiting() {
    let (service, address) = serve(None);
    let mut client = Client::new(address);
    for byte in b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\nx\r\ny\r\n" {
        client.send(&[*byte]);
    }
    client.expect("+OK\r\n");
    client.send(&b"INCR n\r\n".repeat(1000));
    for number in 1..=1000 {
        client.expect(&format!(":{number}\r\n"));
    }
    // A waiting client's later requests wait too.
    let mut waiting = Client::new(address);
    waiting.send(b"BLPOP q 0\r\nPING\r\n");
    client.ask("CLIENT LIST TYPE pubsub", "$0\r\n\r\n");
    client.ask("RPUSH q v", ":1\r\n");
    waiting.expect("*2\r\n$1\r\nq\r\n$1\r\nv\r\n+PONG\r\n");
    client.set_big(3_000_000);
    client.ask("GET big", &format!("$3000000\r\n{}\r\n", "z".repeat(3_000_000)));
    client.ask("QUIT", "+OK\r\n");
    assert_eq!(client.rest(), "");
    (service.stop)();
}

#[test]
fn strangers_harm_only_themselves() {
    let (service, address) = serve(None);
    let mut good = Client::new(address);
    let rows: [(&[u8], &str); 3] = [
        (b"*1\r\n$4x\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        (b"*3000000000\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (b"GET 'a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
    ];
    for (bytes, wanted) in rows {
        let mut bad = Client::new(address);
        bad.send(bytes);
        assert_eq!(bad.rest(), wanted);
        good.ask("PING", "+PONG\r\n");
    }
    good.ask("CONFIG SET maxclients 1", "+OK\r\n");
    assert_eq!(Client::new(address).rest(), "-ERR max number of clients reached\r\n");
    good.ask("PING", "+PONG\r\n");
    (service.stop)();
}

#[test]
fn an_open_door_is_refused() {
    let mut open = options(None);
    open.address = "0.0.0.0:0".to_owned();
    let error = start(open).err().unwrap();
    assert!(error.to_string().starts_with("refusing to listen on 0.0.0.0:0"), "{error}");
    let mut guarded = options(None);
    guarded.address = "0.0.0.0:0".to_owned();
    guarded.server.acl.require("secret");
    let (service, _) = start(guarded).unwrap();
    let port = service.address.unwrap().port();
    let mut client = Client::new(SocketAddr::from(([127, 0, 0, 1], port)));
    client.ask("GET a", "-NOAUTH Authentication required.\r\n");
    client.ask("AUTH secret", "+OK\r\n");
    client.ask("GET a", "$-1\r\n");
    (service.stop)();
}

/// Everything answered is there after a restart: from batches alone, from a snapshot and the
/// batches after it, and from a value that is larger than one append.
#[test]
fn a_restart_brings_everything_back() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let (service, address) = serve(Some(&engine));
    let mut client = Client::new(address);
    client.ask("SET a 1", "+OK\r\n");
    client.ask("RPUSH l x y", ":2\r\n");
    client.ask("SELECT orders", "+OK\r\n");
    client.ask("HSET h f v", ":1\r\n");
    (service.stop)();

    let (service, address) = serve(Some(&engine));
    let mut client = Client::new(address);
    client.ask("GET a", "$1\r\n1\r\n");
    client.ask("BGSAVE", "+Background saving started\r\n");
    client.ask("INCR a", ":2\r\n");
    client.wait_for_snapshot();
    client.ask("DEL l", ":1\r\n");
    client.set_big(5_000_000);
    (service.stop)();

    let (service, address) = serve(Some(&engine));
    let mut client = Client::new(address);
    client.ask("GET a", "$1\r\n2\r\n");
    client.ask("EXISTS l", ":0\r\n");
    client.ask("STRLEN big", ":5000000\r\n");
    client.ask("SELECT orders", "+OK\r\n");
    client.ask("HGET h f", "$1\r\nv\r\n");
    (service.stop)();
}

/// A batch that does not decode stops the start, and the error names the event.
#[test]
fn a_damaged_journal_names_the_event() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let (service, address) = serve(Some(&engine));
    Client::new(address).ask("SET a 1", "+OK\r\n");
    (service.stop)();
    let writer = Writer::open(engine.as_ref(), &log_of(&NODE), "test", Take::Over).unwrap();
    writer.append(engine.as_ref(), EventId::new(2).unwrap(), &[Item::event(b"\xFFbad")]).unwrap();
    let error = start(options(Some(&engine))).err().unwrap();
    assert!(error.to_string().contains("the journal is damaged at event 2"), "{error}");
}
