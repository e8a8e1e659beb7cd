//! Messages posted and delivered per second, and how long the last of five nodes waits for one.
//!
//! ```text
//! bench-coordinator ENGINE SENDERS MESSAGES      one line: senders messages per_second p50_ms p99_ms
//! ```
//!
//! Every sender waits for each of its messages to be durable before it posts the next, as etcd's
//! clients do beside it; see the script `run`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use kumiko_coordinator::{Dialect, Draft, NodeId};
use kumiko_node::cluster::{self, Handle, Identity};
use kumiko_node::engine::{self, Missing};

/// How many nodes listen.
const NODES: u32 = 5;
/// How long to wait for the last delivery before something is wrong.
const DELIVERY_TIME_MAX: Duration = Duration::from_secs(60);

/// What is known of each message, by its number.
struct Flights {
    begun: Instant,
    sent_ns: Vec<AtomicU64>,
    seen: Vec<AtomicU32>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match args.as_slice() {
        [spec, senders, messages] => Some((spec, senders.parse().ok(), messages.parse().ok())),
        _ => None,
    };
    let Some((spec, Some(senders), Some(messages))) = parsed else {
        eprintln!("usage: bench-coordinator ENGINE SENDERS MESSAGES");
        return ExitCode::FAILURE;
    };
    match measure(spec, senders, messages) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-coordinator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(spec: &str, senders: usize, messages: usize) -> Result<String, kumiko_node::Error> {
    let shared = engine::open(spec, "always", Missing::Create)?;
    let flights = Arc::new(Flights {
        begun: Instant::now(),
        sent_ns: (0..messages).map(|_| AtomicU64::new(0)).collect(),
        seen: (0..messages).map(|_| AtomicU32::new(0)).collect(),
    });
    let (sender, receiver) = mpsc::channel();
    let mut nodes = Vec::new();
    for number in 1..=NODES {
        // An embedded store is shared inside the process; a server gets a connection pool per node.
        let engine = if shared.shared() {
            engine::open(spec, "always", Missing::Create)?
        } else {
            Arc::clone(&shared)
        };
        let identity = Identity {
            node: NodeId([number as u8; 16]),
            cluster: "bench".into(),
            host: format!("node-{number}"),
            dialect: Dialect::Own,
        };
        let (handle, service) = cluster::start(engine, identity)?;
        observe(&handle, &flights, &sender);
        nodes.push((handle, service));
    }
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for first in 0..senders {
            let (handle, flights) = (&nodes[first % nodes.len()].0, &flights);
            scope.spawn(move || send(handle, flights, first, senders));
        }
    });
    let mut waits: Vec<u64> = Vec::with_capacity(messages);
    while waits.len() < messages {
        match receiver.recv_timeout(DELIVERY_TIME_MAX) {
            Ok(wait) => waits.push(wait),
            Err(_) => return Err(kumiko_node::Error::invalid("a message was not delivered")),
        }
    }
    let span = begun.elapsed();
    for (_, service) in nodes {
        (service.stop)();
    }
    waits.sort_unstable();
    let at = |part: f64| waits[((messages - 1) as f64 * part) as usize] as f64 / 1e6;
    let rate = messages as f64 / span.as_secs_f64();
    Ok(format!("{senders} {messages} {rate:.0} {:.3} {:.3}", at(0.5), at(0.99)))
}

/// The node that sees a message last says how long it was under way.
fn observe(handle: &Handle, flights: &Arc<Flights>, sender: &mpsc::Sender<u64>) {
    let (flights, sender) = (Arc::clone(flights), sender.clone());
    handle.observe(move |message| {
        let Ok(number) = <[u8; 8]>::try_from(message.object.as_slice()) else { return };
        let number = u64::from_be_bytes(number) as usize;
        let Some(seen) = flights.seen.get(number) else { return };
        if seen.fetch_add(1, Ordering::SeqCst) + 1 == NODES {
            let now = flights.begun.elapsed().as_nanos() as u64;
            let _ = sender.send(now - flights.sent_ns[number].load(Ordering::SeqCst));
        }
    });
}

fn send(handle: &Handle, flights: &Flights, first: usize, senders: usize) {
    for number in (first..flights.sent_ns.len()).step_by(senders) {
        let now = flights.begun.elapsed().as_nanos() as u64;
        flights.sent_ns[number].store(now, Ordering::SeqCst);
        let draft = Draft::user(b'b', vec![], (number as u64).to_be_bytes().to_vec());
        handle.post(draft).unwrap_or_else(|error| panic!("message {number}: {error}"));
    }
}
