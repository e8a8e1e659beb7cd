//! Carries what Redis clients publish to the subscribers on the other nodes.
//!
//! A user message with the event `P` (or `S` for a shard channel) and, as its object, CBOR:
//!
//! ```text
//! [number of this publication, index of the part, count of parts, channel, bytes]
//! ```
//!
//! Messages of a node arrive in the order in which it posted them, so the parts of a publication are
//! put together as they come.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use kumiko_base::Value;
use kumiko_base::cbor::{self, Encoder};
use kumiko_coordinator::message::OBJECT_BYTES_MAX;
use kumiko_coordinator::{Draft, Event, Message, NodeId, Topic};
use kumiko_redis::server::{Published, Relay};

use super::Handle;
use crate::redis;

const CHANNEL: u8 = b'P';
const SHARD: u8 = b'S';
/// The bytes of one part; the rest of an object is for the numbers and the channel.
const PART_BYTES: usize = 60_000;
/// The longest channel that is carried.
const CHANNEL_BYTES_MAX: usize = 20_000;
/// The longest message that is put together again.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

const _: () = assert!(PART_BYTES + CHANNEL_BYTES_MAX + 100 < OBJECT_BYTES_MAX);

/// Joins the Redis front with the cluster, both ways.
pub fn join(front: &redis::Handle, cluster: &Handle) {
    let out = cluster.clone();
    let number = AtomicU64::new(0);
    let relay = move |published: Published<'_>| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        for draft in drafts(number, published) {
            if let Err(error) = out.post_soon(draft) {
                eprintln!("kumiko: a published message did not leave this node: {error}");
                return;
            }
        }
    };
    front.run(Box::new(move |server| server.relay = Some(Relay(Box::new(relay)))));
    let (front, me) = (front.clone(), cluster.identity().node);
    let parts = std::sync::Mutex::new(Parts::default());
    cluster.observe(move |message| {
        if message.from == me || message.topic != Topic::User {
            return;
        }
        let Some((shard, channel, bytes)) = super::lock(&parts).take(message) else { return };
        front.run(Box::new(move |server| {
            if shard {
                server.publish_shard(&channel, &bytes, None);
            } else {
                server.publish(&channel, &bytes, None);
            }
        }));
    });
}

fn drafts(number: u64, published: Published<'_>) -> Vec<Draft> {
    let Published { shard, channel, message } = published;
    if CHANNEL_BYTES_MAX < channel.len() || MESSAGE_BYTES_MAX < message.len() {
        eprintln!("kumiko: a published message is too long for other nodes");
        return Vec::new();
    }
    let count = message.len().div_ceil(PART_BYTES).max(1);
    let mut chunks = message.chunks(PART_BYTES);
    let event = if shard { SHARD } else { CHANNEL };
    let draft = |index| {
        let mut encoder = Encoder::new();
        encoder.array(5).u64(number).u64(index as u64).u64(count as u64);
        encoder.bytes(channel).bytes(chunks.next().unwrap_or_default());
        Draft::user(event, vec![], encoder.finish())
    };
    (0..count).map(draft).collect()
}

/// Publications of which some parts have come.
#[derive(Default)]
struct Parts {
    begun: HashMap<NodeId, (u64, Vec<u8>)>,
}

impl Parts {
    /// Takes in a message; gives the publication when it is whole.
    fn take(&mut self, message: &Message) -> Option<(bool, Vec<u8>, Vec<u8>)> {
        let shard = match message.event {
            Event::Other(CHANNEL) => false,
            Event::Other(SHARD) => true,
            _ => return None,
        };
        let Ok(Value::Array(fields)) = cbor::decode(&message.object) else { return None };
        let Ok([number, index, count, Value::Bytes(channel), Value::Bytes(part)]) =
            <[Value; 5]>::try_from(fields)
        else {
            return None;
        };
        let number = u64::try_from(number.as_int()?).ok()?;
        let (index, count) = (index.as_int()?, count.as_int()?);
        let mut bytes = match self.begun.remove(&message.from) {
            Some((same, bytes)) if same == number && index != 0 => bytes,
            // The beginning was before this node listened.
            _ if index != 0 => return None,
            _ => Vec::new(),
        };
        bytes.extend_from_slice(&part);
        if index + 1 == count {
            return Some((shard, channel, bytes));
        }
        if bytes.len() <= MESSAGE_BYTES_MAX {
            self.begun.insert(message.from, (number, bytes));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::draw;

    fn message(from: u8, draft: Draft) -> Message {
        Message {
            from: NodeId([from; 16]),
            cluster: String::new(),
            host: String::new(),
            clock: 1,
            topic: draft.topic,
            event: draft.event,
            object: draft.object,
            time_ms: None,
        }
    }

    #[test]
    fn long_messages_come_in_parts_and_are_put_together() {
        for size in [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 7] {
            let text: Vec<u8> = (0..size).map(|it| it as u8).collect();
            let published = Published { shard: size == 1, channel: b"news", message: &text };
            let mut parts = Parts::default();
            let mut whole = Vec::new();
            for draft in drafts(7, published) {
                assert!(draft.object.len() <= OBJECT_BYTES_MAX);
                whole.extend(parts.take(&message(1, draft)));
            }
            assert_eq!(whole, [(size == 1, b"news".to_vec(), text)], "{size}");
        }
    }

    #[test]
    fn parts_of_two_nodes_do_not_mix_and_a_late_listener_skips_the_rest() {
        let text = vec![1; PART_BYTES + 1];
        let published = Published { shard: false, channel: b"c", message: &text };
        let (one, two) = (drafts(1, published), drafts(1, published));
        let mut parts = Parts::default();
        assert!(parts.take(&message(1, one[0].clone())).is_none());
        assert!(parts.take(&message(2, two[1].clone())).is_none());
        assert!(parts.take(&message(1, one[1].clone())).is_some());
    }

    #[test]
    fn no_object_makes_it_panic() {
        draw::check("no_object_makes_it_panic", 2000, |draw| {
            let mut parts = Parts::default();
            let mut draft =
                drafts(1, Published { shard: false, channel: b"c", message: b"text" }).remove(0);
            for _ in 0..draw.below(4) {
                let at = draw.index(draft.object.len());
                draft.object[at] = draw.bits() as u8;
            }
            let _ = parts.take(&message(1, draft));
        });
    }
}
