//! What we know of one connection.

use std::collections::VecDeque;

use super::pull::Pull;
use super::{CHALLENGE_CONTEXT, Settings};
use crate::cell::{Cell, Form, Id};
use crate::replica::Layout;
use crate::sign::{self, Owner, Signer};

/// The most acknowledgements that are waited for. Older ones count as lost.
const ACKS_MAX: usize = 64;

/// One connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) expected: Option<Owner>,
    pub(super) layout: Layout,
    token: [u8; 32],
    /// The number of our challenge until it is answered, and when it is late, unless it is already.
    pub(super) challenge: Option<(i64, Option<u64>)>,
    /// The key that the peer proved.
    pub(super) proved: Option<Owner>,
    /// Whether we proved ours. Only then will the peer take what is not complete.
    pub(super) answered: bool,
    /// The generation of the root that the peer was sent last.
    pub(super) sent: Option<u64>,
    /// The root that the peer told us last.
    pub(super) told: Option<Id>,
    /// Whether a value is on its way.
    pub(super) sending: bool,
    /// Whether there is a newer root than the one on its way.
    pub(super) dirty: bool,
    pub(super) rejects: u32,
    pub(super) heard_ms: u64,
    pub(super) announced_ms: u64,
    pub(super) pull: Option<Pull>,
    /// Values that are not acknowledged: the number and the generation.
    pub(super) acks: VecDeque<(i64, u64)>,
}

impl Peer {
    pub(super) fn new(
        expected: Option<Owner>,
        layout: Layout,
        token: [u8; 32],
        now_ms: u64,
    ) -> Peer {
        Peer {
            expected,
            layout,
            token,
            challenge: None,
            proved: None,
            answered: false,
            sent: None,
            told: None,
            sending: false,
            dirty: false,
            rejects: 0,
            heard_ms: now_ms,
            announced_ms: now_ms,
            pull: None,
            acks: VecDeque::new(),
        }
    }

    /// Whether each side knows whom it talks to.
    pub(super) fn is_verified(&self) -> bool {
        self.proved.is_some() && self.answered
    }

    /// Whether it is settled that the peer stays a stranger: nobody in particular was expected, and
    /// it has not proved a key in time, or has not asked for ours. A late answer still counts.
    pub(super) fn is_stranger(&self) -> bool {
        let is_settled = self.challenge.is_none_or(|it| it.1.is_none());
        self.expected.is_none() && is_settled && !self.is_verified()
    }

    /// The longest body that this peer may send.
    pub(super) fn body_bytes_max(&self, settings: &Settings) -> usize {
        if self.proved.is_some() { super::BODY_BYTES_MAX } else { settings.message_bytes_max }
    }

    pub(super) fn expect_ack(&mut self, id: i64, generation: u64) {
        if self.acks.len() == ACKS_MAX {
            self.acks.pop_front();
        }
        self.acks.push_back((id, generation));
    }

    /// The generation that an answer acknowledges. What was sent before it is acknowledged too.
    pub(super) fn take_ack(&mut self, id: i64) -> Option<u64> {
        let at = self.acks.iter().position(|ack| ack.0 == id)?;
        self.acks.drain(..=at).next_back().map(|ack| ack.1)
    }

    /// Our challenge to this peer.
    pub(super) fn challenge(&self, signer: &Signer) -> Cell {
        let target = self.expected.map_or_else(Cell::nil, |it| it.cell());
        signer.sign(&Cell::vector(&[
            Cell::blob(self.token),
            target,
            Cell::string(CHALLENGE_CONTEXT),
        ]))
    }

    /// The owner that an answer to our challenge proves.
    pub(super) fn check_answer(&self, answer: &Cell, me: &Owner) -> Option<Owner> {
        let (owner, value) = sign::verify(answer.view()).ok()?;
        let wanted =
            Cell::vector(&[Cell::blob(self.token), me.cell(), Cell::string(CHALLENGE_CONTEXT)]);
        let is_other = self.expected.is_none_or(|expected| expected == owner);
        // A peer that signs with our own key is ourselves, or a thief.
        (value.view().ok()? == wanted.view() && is_other && owner != *me).then_some(owner)
    }
}

/// Our answer to a challenge, or why there is none.
pub(super) fn answer_challenge(signed: &Cell, signer: &Signer) -> Result<Cell, &'static str> {
    let (challenger, value) = sign::verify(signed.view()).map_err(|_| "Invalid signature")?;
    let value = value.view().map_err(|_| "Incomplete challenge")?;
    let Form::Vector(3) = value.form() else {
        return Err("Challenge without context");
    };
    let fields = value.elements(3).map_err(|_| "Incomplete challenge")?;
    let token = fields[0].as_blob32().ok_or("Malformed token")?;
    let context = Cell::string(CHALLENGE_CONTEXT);
    if fields[2] != context.view() {
        return Err("Wrong context");
    }
    if !fields[1].is_nil() && fields[1].as_blob32() != Some(signer.owner().as_bytes()) {
        return Err("Wrong target key");
    }
    Ok(signer.sign(&Cell::vector(&[Cell::blob(token), challenger.cell(), context])))
}
