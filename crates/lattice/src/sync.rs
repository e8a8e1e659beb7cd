//! Replication as steps: an event comes in, effects go out. Sockets, clocks and threads are the
//! caller's.
//!
//! A [`Sync`] holds the region of a node and one session per connection. Whatever arrives is checked
//! before it is believed, what is new is kept and passed on, and the caller is told which slots to
//! take into its own state. The protocol is that of lattice nodes; `docs/replication.md` tells it.
//!
//! - **Strangers** get complete values within a size limit, and may send such.
//! - **Verified peers**, who proved their key in a challenge, get what is new since the last root
//!   they were sent, and may leave out what we have. What neither side has at hand is fetched by id.
//! - **Back-pressure.** One value is on its way to a peer at a time. What changes meanwhile is not
//!   queued: the next value is the newest root, with what is new since the last one.
//! - **Repair.** The root is announced every 30 seconds even if nothing changed. A peer fetches what
//!   differs, and only that, level by level.
//!
//! Nothing a peer sends is ever signed, except the answer to its challenge, whose form no slot has.
//!
//! Read [`Event`] and [`Effect`], then [`message`], [`session`](Sync), [`pull`](Settings).

mod agent;
pub mod message;
mod path;
mod peer;
mod pull;
mod shelf;
mod step;

#[cfg(test)]
mod tests;

use crate::replica::{Layout, Place, Refusal, Verified};
use crate::sign::Owner;

pub use agent::{Agent, State};
pub use message::{Code, Message};
pub use shelf::Shelf;
pub use step::Sync;

/// The context that every challenge names, so that no other signed vector can pass for one.
pub const CHALLENGE_CONTEXT: &str = "convex-lattice-peer-v1";
/// The most cells that one request may ask for, and one batch may carry.
pub const CELLS_MAX: usize = 254;
/// The longest body of a frame from a verified peer. The protocol fixes it.
pub const BODY_BYTES_MAX: usize = 50_000_000;

/// How replication behaves.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The longest body from or to a stranger, and the most novelty sent along with a root.
    pub message_bytes_max: usize,
    /// The most bytes fetched to complete one value.
    pub pull_bytes_max: usize,
    /// How often the root is announced though nothing changed.
    pub announce_ms: u64,
    /// How long a challenge may take.
    pub challenge_ms: u64,
    /// How long an answer to a request for cells may take.
    pub request_ms: u64,
    /// After this long without a word a peer is asked for a sign of life; after four times that it
    /// is let go.
    pub silence_ms: u64,
    /// How many refused messages in a row end a connection.
    pub rejects_max: u32,
    /// The most connections.
    pub sessions_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            message_bytes_max: 4 << 20,
            pull_bytes_max: 1 << 30,
            announce_ms: 30_000,
            challenge_ms: 5_000,
            request_ms: 10_000,
            silence_ms: 30_000,
            rejects_max: 100,
            sessions_max: 256,
        }
    }
}

/// A connection, as the caller numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// What happened.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A connection is open, whoever opened it.
    Opened {
        /// The connection.
        peer: PeerId,
        /// The key that the other side must have, if we know whom we called.
        expected: Option<Owner>,
        /// What the other side understands.
        layout: Layout,
        /// Drawn at random for this connection.
        token: [u8; 32],
    },
    /// The body of a frame arrived.
    Received {
        /// The connection.
        peer: PeerId,
        /// The body, without its length.
        body: &'a [u8],
    },
    /// All that was to be sent is with the network.
    Drained {
        /// The connection.
        peer: PeerId,
    },
    /// A connection is gone.
    Closed {
        /// The connection.
        peer: PeerId,
    },
    /// We published. One slot per database that changed.
    Published {
        /// Slots that we signed.
        slots: Vec<Verified>,
    },
    /// Time passed. To be called about once a second.
    Tick,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a frame with this body.
    Send {
        /// The connection.
        peer: PeerId,
        /// The body, without its length.
        body: Vec<u8>,
    },
    /// End a connection. There is no `Closed` event for it.
    Close {
        /// The connection.
        peer: PeerId,
        /// Why, for the log.
        reason: &'static str,
    },
    /// A peer proved its key.
    Proved {
        /// The connection.
        peer: PeerId,
        /// The key.
        owner: Owner,
    },
    /// A newer slot is in the region. Take it into our own state if its owner is trusted. If it is
    /// our own, which happens only before the first publication, go on from it.
    Taken {
        /// Which slot.
        place: Place,
    },
    /// A slot was refused.
    Refused {
        /// Who sent it.
        peer: PeerId,
        /// Whose slot, and why.
        refusal: Refusal,
    },
    /// An owner signed two states of which neither follows the other.
    Forked {
        /// Which slot.
        place: Place,
    },
    /// Somebody else publishes with our key.
    Twin {
        /// Which of our slots.
        place: Place,
    },
    /// A peer has merged everything that was in the region at this generation.
    Acked {
        /// The connection.
        peer: PeerId,
        /// See [`Sync::generation`].
        generation: u64,
    },
}
