//! A peer that lies: it sends what it heard again, damaged, cut and mixed, forges slots, and makes
//! up messages.

use kumiko_base::draw::Draw;
use kumiko_lattice::cell::{Cell, message};
use kumiko_lattice::index::Index;
use kumiko_lattice::sign::Signer;
use kumiko_lattice::sync::Message;

/// How many bodies it remembers.
const HEARD_MAX: usize = 50;

/// A hostile peer.
pub struct Hostile {
    signer: Signer,
    heard: Vec<Vec<u8>>,
}

impl Hostile {
    /// With a key that nobody trusts.
    pub fn new() -> Hostile {
        Hostile { signer: Signer::from_seed(&[250; 32]), heard: Vec::new() }
    }

    /// Remembers what it was sent, to play it again.
    pub fn hear(&mut self, draw: &mut Draw, body: &[u8]) {
        if self.heard.len() < HEARD_MAX {
            self.heard.push(body.to_vec());
        } else {
            let at = draw.index(HEARD_MAX);
            self.heard[at] = body.to_vec();
        }
    }

    /// The next body to send.
    pub fn attack(&self, draw: &mut Draw) -> Vec<u8> {
        if self.heard.is_empty() || draw.one_in(4) {
            return self.forge(draw);
        }
        let mut body = draw.one_of(&self.heard);
        match draw.below(4) {
            0 => {}
            1 => body.truncate(draw.index(body.len()) + 1),
            _ => {
                for _ in 0..=draw.below(4) {
                    let at = draw.index(body.len());
                    body[at] = draw.bits() as u8;
                }
            }
        }
        body
    }

    fn forge(&self, draw: &mut Draw) -> Vec<u8> {
        let victim = Signer::from_seed(&[1 + draw.below(3) as u8; 32]).owner();
        let far = Cell::vector(&[Cell::int(1), Cell::int(0), Cell::int(i64::MAX), Cell::int(0)]);
        let index: Index = (0..draw.below(20))
            .map(|at| (Cell::string(format!("key {at}")), far.clone()))
            .collect();
        let signed = self.signer.sign(index.cell());
        let owner = if draw.one_in(2) { victim } else { self.signer.owner() };
        let owners = Cell::map([(owner.cell(), signed)]);
        let path = vec![Cell::keyword("kv"), Cell::string("0")];
        let below = [path.clone(), vec![owner.cell(), Cell::keyword("value")]].concat();
        let sent = match draw.below(5) {
            0 => Message::Value { id: Some(1), path, value: owners },
            1 => Message::Value { id: Some(1), path: below, value: index.cell().clone() },
            2 => Message::Challenge { id: 1, signed: self.signer.sign(&index.cell().clone()) },
            3 => Message::Fetch { id: 1, ids: vec![index.id(); draw.index(254) + 1] },
            _ => Message::Answer { id: Some(draw.below(9) as i64), result: Ok(owners) },
        };
        let mut body = Vec::new();
        message::encode(&sent.cell(), &mut body);
        body
    }
}

impl Default for Hostile {
    fn default() -> Hostile {
        Hostile::new()
    }
}
