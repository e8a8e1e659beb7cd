//! The coordinator: messages in one total order, who is alive, and jobs that take effect once.
//!
//! Everything here is a step inside a transaction that the caller opens and commits; time, node ids
//! and random numbers come in as arguments. It knows neither sockets nor the other services.
//!
//! Read [`message`] and [`mailbox`] first, then [`state`], [`member`] and [`job`].

pub mod check;
pub mod error;
pub mod job;
pub mod mailbox;
pub mod member;
pub mod message;
pub mod state;

pub use error::Error;
pub use job::{Job, JobId};
pub use mailbox::Mailbox;
pub use member::{Member, Status};
pub use message::{Dialect, Draft, Event, Message, Topic};

/// Which node: 16 bytes that survive a restart of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 16]);

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&kumiko_base::hex::uuid(&self.0))
    }
}

impl NodeId {
    /// Parses the canonical text of a UUID.
    pub fn parse(text: &str) -> Option<NodeId> {
        kumiko_base::hex::parse_uuid(text).map(NodeId)
    }
}
