//! The parameters of `CONFIG GET` and `CONFIG SET`.
//!
//! Clients, tools and test suites know Redis's parameters by name. Those that steer something here
//! take effect at once; those marked as kept are there because programs ask for them, and keep
//! whatever is set. `docs/redis.md` lists both.

pub mod table;

use std::collections::BTreeMap;

use crate::commands::pattern;
use crate::fail::Fail;
use crate::notify;

pub use table::{Kind, PARAMETERS, Parameter};

/// What to do when memory is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Refuse writes.
    #[default]
    NoEviction,
    /// Drop any key, the longest unused first.
    AllKeysLru,
    /// Drop any key, the least used first.
    AllKeysLfu,
    /// Drop any key.
    AllKeysRandom,
    /// Drop a key that expires, the longest unused first.
    VolatileLru,
    /// Drop a key that expires, the least used first.
    VolatileLfu,
    /// Drop any key that expires.
    VolatileRandom,
    /// Drop the key that expires first.
    VolatileTtl,
}

/// How much unsent output a class of clients may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Closed at once above this; 0 is no limit.
    pub hard_bytes: u64,
    /// Closed when above this for too long; 0 is no limit.
    pub soft_bytes: u64,
    /// How long is too long.
    pub soft_seconds: u64,
}

/// The parameters that are looked at often, as numbers.
#[derive(Clone, Debug, Default)]
pub struct Hot {
    /// `proto-max-bulk-len`.
    pub bulk_bytes_max: i64,
    /// `client-query-buffer-limit`.
    pub query_buffer_bytes_max: u64,
    /// `maxclients`.
    pub clients_max: u64,
    /// `timeout`: idle clients are closed after so many seconds; 0 never.
    pub idle_seconds_max: u64,
    /// `maxmemory`: 0 is no limit.
    pub memory_bytes_max: u64,
    /// `maxmemory-policy`.
    pub policy: Policy,
    /// `maxmemory-samples`.
    pub eviction_samples: usize,
    /// `notify-keyspace-events`.
    pub notify: u32,
    /// `slowlog-log-slower-than`, in microseconds; negative is off.
    pub slow_micros: i64,
    /// `slowlog-max-len`.
    pub slow_entries_max: usize,
    /// `latency-monitor-threshold`, in milliseconds; 0 is off.
    pub latency_ms: u64,
    /// `client-output-buffer-limit normal`.
    pub output_normal: OutputLimit,
    /// `client-output-buffer-limit pubsub`.
    pub output_pubsub: OutputLimit,
    /// `acllog-max-len`.
    pub acl_log_entries_max: usize,
}

/// The values of all parameters.
#[derive(Clone, Debug)]
pub struct Config {
    values: BTreeMap<&'static str, String>,
    /// The ones that are looked at often.
    pub hot: Hot,
}

impl Default for Config {
    fn default() -> Config {
        let values = PARAMETERS.iter().map(|it| (it.name, it.default.to_owned())).collect();
        let mut config = Config { values, hot: Hot::default() };
        config.refresh();
        config
    }
}

impl Config {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> &str {
        let name = table::find(name.as_bytes()).map_or(name, |it| it.name);
        self.values.get(name).map_or("", String::as_str)
    }

    /// The number that a parameter holds.
    pub fn number(&self, name: &str) -> i64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// Whether a parameter is "yes".
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == "yes"
    }

    /// Sets a parameter without asking whether clients may: for the program itself.
    pub fn force(&mut self, name: &'static str, value: String) {
        self.values.insert(name, value);
        self.refresh();
    }

    /// The parameters whose names match one of the patterns, by the names they were asked for.
    pub fn matching<'p>(
        &self,
        patterns: impl Iterator<Item = &'p [u8]>,
    ) -> BTreeMap<&'static str, &str> {
        let mut found = BTreeMap::new();
        for wanted in patterns {
            for parameter in PARAMETERS {
                let names = std::iter::once(parameter.name).chain(parameter.alias);
                for name in names {
                    // Those of tests are found by their names alone.
                    let hidden = table::HIDDEN.contains(&name) && wanted != name.as_bytes();
                    if !hidden && pattern::matches_any_case(wanted, name.as_bytes()) {
                        found.insert(name, self.get(parameter.name));
                    }
                }
            }
        }
        found
    }

    /// Sets all the pairs, or none of them.
    ///
    /// # Errors
    ///
    /// The first pair that cannot be set, in Redis's words.
    pub fn set(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<&'static str>, Fail> {
        let mut fresh: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in pairs {
            let shown = String::from_utf8_lossy(name).into_owned();
            let Some(parameter) = table::find(name) else {
                return Err(Fail::text(format!(
                    "ERR Unknown option or number of arguments for CONFIG SET - '{shown}'"
                )));
            };
            let failed = |why: &str| {
                Fail::text(format!(
                    "ERR CONFIG SET failed (possibly related to argument '{shown}') - {why}"
                ))
            };
            if fresh.iter().any(|(it, _)| *it == parameter.name) {
                return Err(failed("duplicate parameter"));
            }
            let text = String::from_utf8_lossy(value);
            let parsed =
                parameter.parse(&text, self.get(parameter.name)).map_err(|why| failed(&why))?;
            if !parameter.mutable && parsed != self.get(parameter.name) {
                return Err(failed("can't set immutable config"));
            }
            fresh.push((parameter.name, parsed));
        }
        let names = fresh.iter().map(|(name, _)| *name).collect();
        self.values.extend(fresh);
        self.refresh();
        Ok(names)
    }

    fn refresh(&mut self) {
        let number = |name: &str| self.number(name);
        let at_least_zero = |name: &str| u64::try_from(number(name)).unwrap_or(0);
        self.hot = Hot {
            bulk_bytes_max: number("proto-max-bulk-len"),
            query_buffer_bytes_max: at_least_zero("client-query-buffer-limit"),
            clients_max: at_least_zero("maxclients"),
            idle_seconds_max: at_least_zero("timeout"),
            memory_bytes_max: at_least_zero("maxmemory"),
            policy: policy(self.get("maxmemory-policy")),
            eviction_samples: at_least_zero("maxmemory-samples") as usize,
            notify: notify::parse(self.get("notify-keyspace-events").as_bytes()).unwrap_or(0),
            slow_micros: number("slowlog-log-slower-than"),
            slow_entries_max: at_least_zero("slowlog-max-len") as usize,
            latency_ms: at_least_zero("latency-monitor-threshold"),
            output_normal: self.output_limit("normal"),
            output_pubsub: self.output_limit("pubsub"),
            acl_log_entries_max: at_least_zero("acllog-max-len") as usize,
        };
    }

    fn output_limit(&self, class: &str) -> OutputLimit {
        let words: Vec<&str> = self.get("client-output-buffer-limit").split(' ').collect();
        for limit in words.chunks(4) {
            if let [name, hard, soft, seconds] = limit
                && *name == class
            {
                return OutputLimit {
                    hard_bytes: hard.parse().unwrap_or(0),
                    soft_bytes: soft.parse().unwrap_or(0),
                    soft_seconds: seconds.parse().unwrap_or(0),
                };
            }
        }
        OutputLimit::default()
    }
}

fn policy(name: &str) -> Policy {
    match name {
        "allkeys-lru" => Policy::AllKeysLru,
        "allkeys-lfu" => Policy::AllKeysLfu,
        "allkeys-random" => Policy::AllKeysRandom,
        "volatile-lru" => Policy::VolatileLru,
        "volatile-lfu" => Policy::VolatileLfu,
        "volatile-random" => Policy::VolatileRandom,
        "volatile-ttl" => Policy::VolatileTtl,
        _ => Policy::NoEviction,
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, PARAMETERS, table};

    fn set(config: &mut Config, name: &str, value: &str) -> String {
        match config.set(&[(name.as_bytes(), value.as_bytes())]) {
            Ok(_) => config.get(name).to_owned(),
            Err(refused) => refused.as_str().to_owned(),
        }
    }

    #[test]
    fn every_default_may_be_set_again() {
        let mut config = Config::default();
        for parameter in PARAMETERS {
            assert!(table::find(parameter.name.as_bytes()).is_some());
            assert_eq!(set(&mut config, parameter.name, parameter.default), parameter.default);
        }
    }

    #[test]
    fn values_and_refusals() {
        let failed = |name: &str, why: &str| {
            format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
        };
        let mut config = Config::default();
        // name, value, what CONFIG GET or the refusal says
        let rows = [
            ("maxmemory", "10mb", "10485760".to_owned()),
            ("MAXMEMORY", "0", "0".to_owned()),
            ("maxmemory", "x", failed("maxmemory", "argument must be a memory value")),
            ("maxclients", "10", "10".to_owned()),
            (
                "maxclients",
                "a",
                failed("maxclients", "argument couldn't be parsed into an integer"),
            ),
            (
                "maxclients",
                "0",
                failed("maxclients", "argument must be between 1 and 4294967295 inclusive"),
            ),
            ("notify-keyspace-events", "KEA", "AKE".to_owned()),
            ("hash-max-ziplist-entries", "5", "5".to_owned()),
            ("databases", "17", failed("databases", "can't set immutable config")),
            (
                "nosuch",
                "1",
                "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'".to_owned(),
            ),
        ];
        for (name, value, wanted) in rows {
            assert_eq!(set(&mut config, name, value), wanted, "{name} {value}");
        }
        assert_eq!(config.get("hash-max-listpack-entries"), "5");
        assert_eq!(config.hot.clients_max, 10);
    }
}
