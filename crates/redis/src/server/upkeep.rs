//! What time brings: expiry, timeouts, eviction, statistics, and parameters that take effect.

use super::Server;
use crate::client::{Client, Slot};
use crate::config::Policy;
use crate::fail::{self, Fail};
use crate::notify;

/// How many keys one step of expiry removes at most; some hundred microseconds of work.
const EXPIRE_PER_TICK: usize = 1000;
/// How many keys are given up for one write at most. A larger excess is worked off by many writes.
const EVICT_PER_WRITE: usize = 64;
/// After so many writes the memory is measured again.
const WRITES_PER_MEASURE: u64 = 32;

/// What is known about memory, without measuring it at every write.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    used_bytes: u64,
    measured_at_change: Option<u64>,
}

impl Server {
    /// Regular work; called about ten times a second, and more often while [`Server::busy`].
    pub fn tick(&mut self) {
        if self.active_expiry {
            let count = self.live.expire_step(self.now_ms, EXPIRE_PER_TICK);
            self.more_expired = EXPIRE_PER_TICK <= count;
        }
        self.report_expired(None);
        self.serve_ready();
        self.measure_clients();
        let used = self.used_memory();
        self.stats.memory_peak = self.stats.memory_peak.max(used);
        if self.config.hot.memory_bytes_max != 0 {
            // A limit that was lowered takes effect without waiting for a write.
            let _ = self.make_room();
        }
        let second = self.now_ms / 1000;
        if self.second.0 != second {
            let elapsed = second.saturating_sub(self.second.0).max(1);
            let fresh = self.stats.commands.saturating_sub(self.second.1);
            self.stats.commands_per_second = fresh / elapsed;
            self.second = (second, self.stats.commands);
        }
        if self.paused.is_some_and(|(until_ms, _)| until_ms <= self.now_ms) {
            self.unpause();
        }
    }

    /// There is work that should not wait for the next tick.
    pub fn busy(&self) -> bool {
        self.more_expired
    }

    /// Closes idle clients and adds up what was not sent.
    fn measure_clients(&mut self) {
        let idle_ms = self.config.hot.idle_seconds_max * 1000;
        let now_ms = self.now_ms;
        let mut unsent = 0;
        for client in self.clients.iter_mut() {
            unsent += client.out.len();
            let listens = 0 < client.subscriptions() + client.shard_channels.len();
            let waits = client.blocked.is_some() || client.monitor || listens;
            if 0 < idle_ms && !waits && client.active_ms + idle_ms < now_ms {
                client.killed = true;
            }
        }
        self.unsent_bytes = unsent;
    }

    /// Whether a client has more unsent output than its class allows, so that it must be closed.
    pub fn output_too_large(&mut self, slot: Slot) -> bool {
        let hot = &self.config.hot;
        let Some(client) = self.clients.get_mut(slot) else { return false };
        let listens = 0 < client.subscriptions() + client.shard_channels.len();
        let limit = if listens { hot.output_pubsub } else { hot.output_normal };
        let unsent = client.out.len() as u64;
        let hard = 0 < limit.hard_bytes && limit.hard_bytes < unsent;
        let over = 0 < limit.soft_bytes && limit.soft_bytes < unsent;
        if over {
            client.soft_limit_since_ms.get_or_insert(self.now_ms);
        } else {
            client.soft_limit_since_ms = None;
        }
        let since_ms = client.soft_limit_since_ms.unwrap_or(self.now_ms);
        let soft = over && limit.soft_seconds * 1000 < self.now_ms.saturating_sub(since_ms);
        if hard || soft {
            self.stats.clients_dropped += 1;
        }
        hard || soft
    }

    /// Tells watchers, waiting clients and listeners of the keys that expired.
    #[inline]
    pub fn report_expired(&mut self, current: Option<&mut Client>) {
        let expired = self.live.take_expired();
        if !expired.is_empty() {
            self.report(expired, current);
        }
    }

    fn report(
        &mut self,
        expired: Vec<(kumiko_lattice::live::DbId, Box<[u8]>)>,
        mut current: Option<&mut Client>,
    ) {
        for (id, key) in expired {
            self.stats.expired_keys += 1;
            let Some(db) = self.dbs.iter().position(|it| *it == id) else { continue };
            self.key_modified(db, &key, current.as_deref_mut());
            self.notify_outside(db, notify::EXPIRED, "expired", &key, current.as_deref_mut());
        }
    }

    /// Publishes a keyspace event that no command caused.
    fn notify_outside(
        &mut self,
        db: usize,
        class: u32,
        event: &str,
        key: &[u8],
        current: Option<&mut Client>,
    ) {
        let wanted = self.notify_classes();
        if wanted & class != 0 && wanted & (notify::KEYSPACE | notify::KEYEVENT) != 0 {
            self.publish_event(db, event, key, current);
        }
    }

    /// Looks whether a watched key is past its time, which counts as a change.
    pub(crate) fn expire_watched(&mut self, client: &mut Client) {
        let watched: Vec<(usize, Vec<u8>)> = client.watches.keys.clone();
        for (db, key) in watched {
            self.live.db(self.dbs[db], self.now_ms).exists(&key);
        }
        self.report_expired(Some(client));
    }

    /// Bytes of data and of unsent output.
    pub fn used_memory(&mut self) -> u64 {
        let changes = self.live.changes();
        let fresh = self.memory.measured_at_change == Some(changes);
        if !fresh {
            self.memory.used_bytes = self.live.bytes() as u64;
            self.memory.measured_at_change = Some(changes);
        }
        self.memory.used_bytes + self.unsent_bytes as u64
    }

    /// Makes room for a write if memory is used up and the policy allows it.
    pub(crate) fn make_room(&mut self) -> Result<(), Fail> {
        let max = self.config.hot.memory_bytes_max;
        let since = self.memory.measured_at_change.map_or(u64::MAX, |at| self.live.changes() - at);
        if since < WRITES_PER_MEASURE && self.memory.used_bytes <= max {
            return Ok(());
        }
        if self.used_memory() <= max {
            return Ok(());
        }
        for _ in 0..EVICT_PER_WRITE {
            if !self.evict_one() {
                break;
            }
            if self.used_memory() <= max {
                return Ok(());
            }
        }
        // Keys were given up, but not enough of them: the next write goes on with it.
        let evicts = self.config.hot.policy != Policy::NoEviction;
        if evicts && self.evict_one() { Ok(()) } else { Err(fail::OUT_OF_MEMORY) }
    }

    fn evict_one(&mut self) -> bool {
        let (expiring_only, by_expiry, random) = match self.config.hot.policy {
            Policy::NoEviction => return false,
            Policy::AllKeysLru | Policy::AllKeysLfu => (false, false, false),
            Policy::AllKeysRandom => (false, false, true),
            Policy::VolatileLru | Policy::VolatileLfu => (true, false, false),
            Policy::VolatileRandom => (true, false, true),
            Policy::VolatileTtl => (true, true, false),
        };
        let samples = if random { 1 } else { self.config.hot.eviction_samples };
        let now_ms = self.now_ms;
        let start = self.random.index(self.dbs.len());
        for step in 0..self.dbs.len() {
            let db = (start + step) % self.dbs.len();
            let random = &mut self.random;
            let mut lent = self.live.db(self.dbs[db], now_ms);
            let found = lent.eviction_candidate(samples, expiring_only, by_expiry, &mut |below| {
                random.below(below)
            });
            if let Some(key) = found {
                lent.del(&key);
                self.stats.evicted_keys += 1;
                self.key_modified(db, &key, None);
                self.notify_outside(db, notify::EVICTED, "evicted", &key, None);
                return true;
            }
        }
        false
    }

    /// Makes parameters take effect that are kept elsewhere too.
    pub fn apply_config(&mut self, names: &[&str]) {
        let number = |name: &str| usize::try_from(self.config.number(name)).unwrap_or(0);
        let mut thresholds = self.live.settings().thresholds;
        thresholds.hash_entries = number("hash-max-listpack-entries");
        thresholds.hash_value = number("hash-max-listpack-value");
        thresholds.set_ints = number("set-max-intset-entries");
        thresholds.zset_entries = number("zset-max-listpack-entries");
        thresholds.zset_value = number("zset-max-listpack-value");
        thresholds.list_size = self.config.number("list-max-listpack-size");
        let lfu = matches!(self.config.hot.policy, Policy::AllKeysLfu | Policy::VolatileLfu);
        let settings = self.live.settings_mut();
        settings.thresholds = thresholds;
        settings.count_uses = lfu;
        if names.contains(&"requirepass") {
            let password = self.config.get("requirepass").to_owned();
            self.acl.require(&password);
        }
        self.slow.truncate(self.config.hot.slow_entries_max);
        self.acl.log.truncate(self.config.hot.acl_log_entries_max);
    }

    /// The journal cannot be written: writes are refused from now on.
    pub fn journal_failed(&mut self) {
        self.facts.journal_failed = true;
    }

    /// The journal can be written again: writes are taken.
    pub fn journal_recovered(&mut self) {
        self.facts.journal_failed = false;
    }
}
