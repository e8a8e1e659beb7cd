//! Channels, patterns and who hears them.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use kumiko_wire::resp::Writer;

use super::Server;
use crate::client::{Client, Slot};
use crate::commands::pattern;

/// Who hears which channel.
#[derive(Debug, Default)]
pub struct PubSub {
    /// Subscribers by channel.
    pub channels: HashMap<Vec<u8>, BTreeSet<Slot>>,
    /// Subscribers by pattern.
    pub patterns: BTreeMap<Vec<u8>, BTreeSet<Slot>>,
    /// Subscribers by shard channel.
    pub shards: HashMap<Vec<u8>, BTreeSet<Slot>>,
}

impl PubSub {
    /// A client hears nothing any more.
    pub fn clear(&mut self, client: &mut Client) {
        let slot = Slot(client.slot);
        for channel in std::mem::take(&mut client.channels) {
            leave(&mut self.channels, &channel, slot);
        }
        for channel in std::mem::take(&mut client.shard_channels) {
            leave(&mut self.shards, &channel, slot);
        }
        for pattern in std::mem::take(&mut client.patterns) {
            self.leave_pattern(&pattern, slot);
        }
    }

    /// A client no longer hears a pattern.
    pub fn leave_pattern(&mut self, pattern: &[u8], slot: Slot) {
        if let Some(slots) = self.patterns.get_mut(pattern) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.patterns.remove(pattern);
            }
        }
    }
}

/// A client no longer hears a channel.
pub fn leave(map: &mut HashMap<Vec<u8>, BTreeSet<Slot>>, channel: &[u8], slot: Slot) {
    if let Some(slots) = map.get_mut(channel) {
        slots.remove(&slot);
        if slots.is_empty() {
            map.remove(channel);
        }
    }
}

impl Server {
    /// Sends a message to all that hear `channel`, and returns how many they are.
    pub fn publish(
        &mut self,
        channel: &[u8],
        message: &[u8],
        mut current: Option<&mut Client>,
    ) -> usize {
        let mut count = 0;
        if let Some(slots) = self.pubsub.channels.get(channel) {
            for slot in slots.clone() {
                let parts: [&[u8]; 3] = [b"message", channel, message];
                self.deliver(slot, &parts, current.as_deref_mut());
                count += 1;
            }
        }
        if self.pubsub.patterns.is_empty() {
            return count;
        }
        let hearing: Vec<(Vec<u8>, Vec<Slot>)> = self
            .pubsub
            .patterns
            .iter()
            .filter(|(pattern, _)| pattern::matches(pattern, channel))
            .map(|(pattern, slots)| (pattern.clone(), slots.iter().copied().collect()))
            .collect();
        for (pattern, slots) in hearing {
            for slot in slots {
                let parts: [&[u8]; 4] = [b"pmessage", &pattern, channel, message];
                self.deliver(slot, &parts, current.as_deref_mut());
                count += 1;
            }
        }
        count
    }

    /// Sends a message to all that hear the shard channel, and returns how many they are.
    pub fn publish_shard(
        &mut self,
        channel: &[u8],
        message: &[u8],
        mut current: Option<&mut Client>,
    ) -> usize {
        let slots = self.pubsub.shards.get(channel).cloned().unwrap_or_default();
        for slot in &slots {
            let parts: [&[u8]; 3] = [b"smessage", channel, message];
            self.deliver(*slot, &parts, current.as_deref_mut());
        }
        slots.len()
    }

    /// Sends a push message of strings to one client.
    pub fn deliver(&mut self, slot: Slot, parts: &[&[u8]], current: Option<&mut Client>) {
        self.push_to(slot, current, |writer| {
            writer.push(parts.len());
            for part in parts {
                writer.bulk(part);
            }
        });
    }

    /// Sends whatever `write` writes to one client, outside of any reply.
    pub fn push_to(
        &mut self,
        slot: Slot,
        current: Option<&mut Client>,
        write: impl FnOnce(&mut Writer),
    ) {
        if let Some(client) = current
            && client.slot == slot.0
        {
            let out = std::mem::take(&mut client.pushes);
            let mut writer = Writer { out, version: client.version };
            write(&mut writer);
            client.pushes = writer.out;
            return;
        }
        let Some(client) = self.clients.get_mut(slot) else { return };
        let mut writer = Writer { out: std::mem::take(&mut client.out), version: client.version };
        write(&mut writer);
        client.out = writer.out;
        self.woken.push(slot);
    }
}
