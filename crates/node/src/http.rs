//! A small HTTP listener for those who watch a node: `/health`, `/metrics`, and what the services add.
//!
//! One request per connection, GET only, bounded in size and time: it is for probes and scrapers,
//! not for data.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kumiko_kv::{Engine, Read as KvRead};

use crate::{Error, Service};

/// The longest request head; a scraper sends a few hundred bytes.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;
/// How long one client may take to send its request or to read the answer.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(5);

/// What a path answers, given the text behind the question mark: JSON, or why not.
pub type Answer = Box<dyn Fn(&str) -> Result<String, Error> + Send + Sync>;
/// Writes the metrics of one service in the text format of Prometheus.
pub type Metrics = Box<dyn Fn(&mut String) + Send + Sync>;

/// What the services add to the listener.
#[derive(Default)]
pub struct Routes {
    /// Paths and what they answer.
    pub answers: Vec<(&'static str, Answer)>,
    /// What `/metrics` shows beside the engine.
    pub metrics: Vec<Metrics>,
}

/// Starts the listener.
pub fn start(address: &str, engine: Arc<dyn Engine>, routes: Routes) -> Result<Service, Error> {
    let listener = TcpListener::bind(address).map_err(|error| {
        Error::from(error).during(&format!("cannot listen for HTTP on {address}"))
    })?;
    let bound = listener.local_addr()?;
    let stopping = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stopping);
    let thread = thread::Builder::new()
        .name("http".into())
        .spawn(move || serve(&listener, &seen, engine.as_ref(), &routes))?;
    let stop = move || {
        stopping.store(true, Ordering::SeqCst);
        // The accept call returns for this connection and sees the flag.
        let _ = TcpStream::connect_timeout(&bound, Duration::from_secs(1));
        let _ = thread.join();
    };
    Ok(Service { name: "http", address: Some(bound), stop: Box::new(stop) })
}

fn serve(listener: &TcpListener, stopping: &AtomicBool, engine: &dyn Engine, routes: &Routes) {
    for stream in listener.incoming() {
        if stopping.load(Ordering::SeqCst) {
            return;
        }
        if let Ok(stream) = stream {
            // A client that goes away in the middle costs only itself.
            let _ = answer(stream, engine, routes);
        }
    }
}

fn answer(mut stream: TcpStream, engine: &dyn Engine, routes: &Routes) -> std::io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_TIME_MAX))?;
    stream.set_write_timeout(Some(CLIENT_TIME_MAX))?;
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        head.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if HEAD_BYTES_MAX < head.len() {
            return respond(&mut stream, "431 Request Header Fields Too Large", "too long\n");
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    if method != "GET" {
        return respond(&mut stream, "405 Method Not Allowed", "only GET\n");
    }
    if let Some((_, answer)) = routes.answers.iter().find(|(it, _)| *it == path) {
        return match answer(query) {
            Ok(text) => respond(&mut stream, "200 OK", &text),
            Err(error) => respond(&mut stream, "503 Service Unavailable", &format!("{error}\n")),
        };
    }
    match path {
        "/health" => match health(engine) {
            Ok(()) => respond(&mut stream, "200 OK", "ok\n"),
            Err(error) => respond(&mut stream, "503 Service Unavailable", &format!("{error}\n")),
        },
        "/metrics" => respond(&mut stream, "200 OK", &metrics(engine, routes)),
        _ => respond(&mut stream, "404 Not Found", "try /health or /metrics\n"),
    }
}

/// Reads through the engine: a node whose engine is gone is not healthy.
fn health(engine: &dyn Engine) -> Result<(), kumiko_kv::Error> {
    engine.begin()?.get(&[1], KvRead::Snapshot).map(drop)
}

fn metrics(engine: &dyn Engine, routes: &Routes) -> String {
    let up = u8::from(health(engine).is_ok());
    let mut text = format!(
        "# HELP kumiko_up Whether the engine answers.\n# TYPE kumiko_up gauge\n\
         kumiko_up{{engine=\"{}\"}} {up}\n",
        engine.name()
    );
    for metrics in &routes.metrics {
        metrics(&mut text);
    }
    text
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let size = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {size}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Fetches `path` from a listener of ours, for tests and probes.
pub fn fetch(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, CLIENT_TIME_MAX)?;
    stream.set_read_timeout(Some(CLIENT_TIME_MAX))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: kumiko\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_kv::Memory;

    #[test]
    fn health_metrics_and_wrong_requests() {
        let mut routes = Routes::default();
        routes.answers.push(("/echo", Box::new(|query| Ok(format!("[{query}]\n")))));
        routes.answers.push(("/no", Box::new(|_| Err(Error::invalid("no luck")))));
        routes.metrics.push(Box::new(|text| text.push_str("kumiko_more 2\n")));
        let service = start("127.0.0.1:0", Arc::new(Memory::new()), routes).unwrap();
        let address = service.address.unwrap();
        let rows = [
            ("/health", "HTTP/1.1 200 OK", "ok\n"),
            ("/metrics", "HTTP/1.1 200 OK", "kumiko_up{engine=\"memory\"} 1\nkumiko_more 2\n"),
            ("/echo?a=b", "HTTP/1.1 200 OK", "[a=b]\n"),
            ("/no", "HTTP/1.1 503 Service Unavailable", "no luck\n"),
            ("/other", "HTTP/1.1 404 Not Found", "try /health or /metrics\n"),
        ];
        for (path, status, end) in rows {
            let text = fetch(address, path).unwrap();
            assert!(text.starts_with(status) && text.ends_with(end), "{path}: {text}");
        }
        (service.stop)();
    }
}
