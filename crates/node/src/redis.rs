//! The Redis front: sockets around the commands of `kumiko_redis`.
//!
//! One thread, the executor, owns all data and all connections. It waits for sockets, reads, runs
//! what it read and writes the answers; nothing is shared, so a command, a transaction and a merge
//! are atomic for free. A second thread writes the journal ([`journal`]).
//!
//! Other threads reach the data through [`Handle::run`]: a closure that the executor runs between
//! two turns.

pub mod journal;
pub mod setup;
pub mod store;

mod connection;
mod executor;
mod points;
mod process;
mod snapshot;
mod stream;
mod users;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use kumiko_redis::Server;
use mio::Waker;

use crate::{Error, Service};

pub use journal::Journal;

/// Work for the executor.
pub type Job = Box<dyn FnOnce(&mut Server) + Send>;

/// What the front needs to start.
pub struct Options {
    /// Where to listen: HOST:PORT, port 0 picks one.
    pub address: String,
    /// The server with its data, ready to serve.
    pub server: Server,
    /// Where changes are kept, if they are kept.
    pub store: Option<store::Store>,
    /// Answers to writes wait for the journal.
    pub hold_answers: bool,
    /// TLS, if it is wanted.
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

/// Reaches the executor from other threads.
#[derive(Clone)]
pub struct Handle {
    jobs: Sender<Job>,
    waker: Arc<Waker>,
}

impl Handle {
    /// Runs `job` on the executor's thread, between two turns. False if the executor has stopped.
    pub fn run(&self, job: Job) -> bool {
        self.jobs.send(job).is_ok() && self.waker.wake().is_ok()
    }

    /// Runs `ask` on the executor's thread and waits for what it returns. `None` if the executor
    /// has stopped.
    pub fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Server) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = channel();
        let job: Job = Box::new(move |server| {
            let _ = sender.send(ask(server));
        });
        if self.run(job) { receiver.recv().ok() } else { None }
    }
}

/// Starts the front: listens, and serves on threads of its own.
///
/// # Errors
///
/// The address cannot be used, or it can be reached from other machines although neither a password
/// nor TLS protects the data.
pub fn start(options: Options) -> Result<(Service, Handle), Error> {
    let listener = listen(&options)?;
    let bound = listener.local_addr()?;
    let (jobs, inbox) = channel();
    let (loaded, load) = channel();
    let mut executor = executor::Executor::new(listener, options, inbox, bound, loaded)?;
    let waker = executor.waker();
    let handle = Handle { jobs: jobs.clone(), waker: Arc::clone(&waker) };
    let stop_flag = executor.stop_flag();
    let thread = thread::Builder::new().name("redis".into()).spawn(move || executor.run())?;
    let stop = move || {
        stop_flag.store(true, std::sync::atomic::Ordering::SeqCst);
        let _ = waker.wake();
        let _ = thread.join();
    };
    // Clients are answered LOADING meanwhile.
    match load.recv() {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(Error::invalid("the Redis front stopped while it started")),
    }
    let service = Service { name: "redis", address: Some(bound), stop: Box::new(stop) };
    Ok((service, handle))
}

fn listen(options: &Options) -> Result<mio::net::TcpListener, Error> {
    use std::net::ToSocketAddrs;
    let address = &options.address;
    let during = |error: std::io::Error| {
        Error::from(error).during(&format!("cannot listen for Redis clients on {address}"))
    };
    let found: Vec<SocketAddr> = address.to_socket_addrs().map_err(during)?.collect();
    let open = found.iter().any(|it| !it.ip().is_loopback());
    if open && options.tls.is_none() && !options.server.acl.has_password() {
        return Err(Error::invalid(format!(
            "refusing to listen on {address} without a password or TLS: other machines could read \
             and write everything; set redis-password, or redis-tls-cert and redis-tls-key"
        )));
    }
    let listener = std::net::TcpListener::bind(&found[..]).map_err(during)?;
    listener.set_nonblocking(true)?;
    Ok(mio::net::TcpListener::from_std(listener))
}
