//! What every service of a running node looks like from outside.

use std::net::SocketAddr;

/// A service that runs on threads of its own until it is stopped.
pub struct Service {
    /// The name of its listener, as in the settings.
    pub name: &'static str,
    /// Where it listens, if it does.
    pub address: Option<SocketAddr>,
    /// Stops it: no new work, what was answered made safe, threads joined.
    pub stop: Box<dyn FnOnce() + Send>,
}
