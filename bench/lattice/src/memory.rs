//! Bytes per key: alone, replicated, and in redis-server.

use std::io::{BufWriter, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use kumiko_lattice::live::{DbId, End, Live, Settings, Ttl, ZaddRule};

use crate::{NOW_MS, key};

const SHAPES: [&str; 8] = [
    "string",
    "string with expiry",
    "counter",
    "hash of one field",
    "field of one hash",
    "member of one set",
    "member of one zset",
    "element of one list",
];

fn fill(live: &mut Live, id: DbId, shape: usize, n: usize) {
    let mut db = live.db(id, NOW_MS);
    let (name, value) = (key(n), [b'v'; 16]);
    match shape {
        0 => db.set(&name, &value, Ttl::Clear).expect("it fits"),
        1 => db.set(&name, &value, Ttl::At(NOW_MS + 3_600_000 + n as u64)).expect("it fits"),
        2 => drop(db.incr(&name, 1).expect("an integer")),
        3 => drop(db.hset(&name, b"f", &value).expect("it fits")),
        4 => drop(db.hset(b"hash", &name, &value).expect("it fits")),
        5 => drop(db.sadd(b"set", &name).expect("it fits")),
        6 => drop(db.zadd(b"zset", &name, n as f64, ZaddRule::default()).expect("it fits")),
        _ => drop(db.push(b"list", End::Back, &name).expect("it fits")),
    }
}

/// The same as a command for redis-server.
fn command(shape: usize, n: usize) -> Vec<Vec<u8>> {
    let (name, value) = (key(n).to_vec(), vec![b'v'; 16]);
    let word = |it: &str| it.as_bytes().to_vec();
    match shape {
        0 => vec![word("SET"), name, value],
        1 => vec![word("SET"), name, value, word("EX"), word("3600")],
        2 => vec![word("INCR"), name],
        3 => vec![word("HSET"), name, word("f"), value],
        4 => vec![word("HSET"), word("hash"), name, value],
        5 => vec![word("SADD"), word("set"), name],
        6 => vec![word("ZADD"), word("zset"), n.to_string().into_bytes(), name],
        _ => vec![word("RPUSH"), word("list"), name],
    }
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|it| it.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Resident bytes per key, in a process of its own so that nothing is left over from before.
fn ours(count: usize, shape: usize, replicated: bool) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let arguments = ["memory", &count.to_string(), &shape.to_string(), &replicated.to_string()]
        .map(str::to_string);
    let output = Command::new(program).args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// The child of `ours`.
pub(crate) fn child(count: usize, shape: usize, replicated: bool) {
    let column = b"0123456789abcdef0123456789abcdef.1".to_vec();
    let settings = Settings { replication: replicated, column, seed: 5, ..Settings::default() };
    let mut live = Live::new(settings);
    let id = live.open(b"0");
    let before = resident();
    for n in 0..count {
        fill(&mut live, id, shape, n);
        if replicated && n % 10_000 == 9_999 {
            live.fold(id, NOW_MS).expect("our own state");
        }
    }
    live.fold(id, NOW_MS).expect("our own state");
    println!("{:.1}", (resident() - before) as f64 / count as f64);
    assert!(!live.db(id, NOW_MS).is_empty());
}

struct Redis {
    server: std::process::Child,
    stream: TcpStream,
}

impl Redis {
    fn start() -> Option<Redis> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let server = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(50));
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                return Some(Redis { server, stream });
            }
        }
        None
    }

    fn send(&mut self, commands: impl Iterator<Item = Vec<Vec<u8>>>) -> std::io::Result<()> {
        let mut reader = self.stream.try_clone()?;
        let drain = std::thread::spawn(move || {
            let mut seen = Vec::new();
            let mut buffer = [0; 65536];
            while !seen.ends_with(b"$4\r\ndone\r\n") {
                let size = reader.read(&mut buffer)?;
                if size == 0 {
                    break;
                }
                seen.extend_from_slice(&buffer[..size]);
                let keep = seen.len().saturating_sub(8192);
                seen.drain(..keep);
            }
            std::io::Result::Ok(seen)
        });
        let mut writer = BufWriter::new(&self.stream);
        for words in commands.chain([vec![b"ECHO".to_vec(), b"done".to_vec()]]) {
            write!(writer, "*{}\r\n", words.len())?;
            for word in words {
                write!(writer, "${}\r\n", word.len())?;
                writer.write_all(&word)?;
                writer.write_all(b"\r\n")?;
            }
        }
        writer.flush()?;
        drop(writer);
        drain.join().expect("the reader does not panic")?;
        Ok(())
    }

    fn used(&mut self) -> std::io::Result<usize> {
        self.stream.write_all(b"INFO memory\r\n")?;
        let mut text = Vec::new();
        let mut buffer = [0; 16384];
        while !String::from_utf8_lossy(&text).contains("\r\nmem_clients_normal") {
            let size = self.stream.read(&mut buffer)?;
            if size == 0 {
                break;
            }
            text.extend_from_slice(&buffer[..size]);
        }
        std::thread::sleep(Duration::from_millis(50));
        self.stream.set_nonblocking(true)?;
        while self.stream.read(&mut buffer).is_ok_and(|it| 0 < it) {}
        self.stream.set_nonblocking(false)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let rest = text.split("used_memory:").nth(1).unwrap_or("0\r");
        Ok(rest.split('\r').next().and_then(|it| it.parse().ok()).unwrap_or(0))
    }

    fn per_key(&mut self, count: usize, shape: usize) -> std::io::Result<f64> {
        self.send([vec![b"FLUSHALL".to_vec()]].into_iter())?;
        let before = self.used()?;
        self.send((0..count).map(|n| command(shape, n)))?;
        Ok((self.used()? as f64 - before as f64) / count as f64)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

pub(crate) fn run(count: usize) {
    println!("\nbytes per key, {count} of them; ours resident, redis by its own account");
    println!(
        "{:<24} {:>8} {:>12} {:>8} {:>14}",
        "", "alone", "replicated", "redis", "alone / redis"
    );
    let mut redis = Redis::start();
    for (shape, name) in SHAPES.iter().enumerate() {
        let alone = ours(count, shape, false).unwrap_or(f64::NAN);
        // A list is walked at each fold; what it costs in memory shows at a tenth of the size.
        let replicated = ours(count / 10, shape, true).unwrap_or(f64::NAN);
        let theirs = redis.as_mut().and_then(|it| it.per_key(count, shape).ok());
        let (shown, ratio) = match theirs {
            Some(it) => (format!("{it:.1}"), format!("{:.2}", alone / it)),
            None => ("-".to_string(), "-".to_string()),
        };
        println!("{name:<24} {alone:>8.1} {replicated:>12.1} {shown:>8} {ratio:>14}");
    }
}
