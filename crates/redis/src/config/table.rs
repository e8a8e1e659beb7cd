//! The table of parameters.

use crate::notify;

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `yes` or `no`.
    Switch,
    /// An integer between the two, both included.
    Number(i64, i64),
    /// A size, with a unit if wanted: `10mb`.
    Memory,
    /// A size, or a part of the memory limit: `5%`.
    MemoryOrPercent,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// Letters of keyspace events.
    Events,
    /// Classes of clients with their limits.
    OutputLimits,
    /// Pairs of seconds and changes.
    Save,
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its older name.
    pub alias: Option<&'static str>,
    /// What it holds.
    pub kind: Kind,
    /// Its first value.
    pub default: &'static str,
    /// Clients may change it.
    pub mutable: bool,
    /// It steers something; otherwise it is only kept.
    pub live: bool,
}

const fn live(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, alias: None, kind, default, mutable: true, live: true }
}

const fn kept(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, alias: None, kind, default, mutable: true, live: false }
}

const fn fixed(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, alias: None, kind, default, mutable: false, live: true }
}

const fn renamed(
    name: &'static str,
    alias: &'static str,
    kind: Kind,
    default: &'static str,
) -> Parameter {
    Parameter { name, alias: Some(alias), kind, default, mutable: true, live: true }
}

const INT: Kind = Kind::Number(0, i32::MAX as i64);
const LONG: Kind = Kind::Number(0, i64::MAX);
const POLICIES: &[&str] = &[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

/// Every parameter.
pub const PARAMETERS: &[Parameter] = &[
    live("maxmemory", Kind::Memory, "0"),
    live("maxmemory-policy", Kind::Word(POLICIES), "noeviction"),
    live("maxmemory-samples", Kind::Number(1, i32::MAX as i64), "5"),
    kept("maxmemory-eviction-tenacity", Kind::Number(0, 100), "10"),
    kept("maxmemory-clients", Kind::MemoryOrPercent, "0"),
    live("maxclients", Kind::Number(1, u32::MAX as i64), "10000"),
    live("timeout", INT, "0"),
    kept("tcp-keepalive", INT, "300"),
    kept("hz", INT, "10"),
    kept("dynamic-hz", Kind::Switch, "yes"),
    live("notify-keyspace-events", Kind::Events, ""),
    live("slowlog-log-slower-than", Kind::Number(-1, i64::MAX), "10000"),
    live("slowlog-max-len", LONG, "128"),
    live("latency-monitor-threshold", LONG, "0"),
    kept("latency-tracking", Kind::Switch, "yes"),
    kept("latency-tracking-info-percentiles", Kind::Text, "50 99 99.9"),
    renamed("hash-max-listpack-entries", "hash-max-ziplist-entries", LONG, "512"),
    renamed("hash-max-listpack-value", "hash-max-ziplist-value", LONG, "64"),
    renamed(
        "list-max-listpack-size",
        "list-max-ziplist-size",
        Kind::Number(i32::MIN as i64, i32::MAX as i64),
        "-2",
    ),
    kept("list-compress-depth", INT, "0"),
    live("set-max-intset-entries", LONG, "512"),
    renamed("zset-max-listpack-entries", "zset-max-ziplist-entries", LONG, "128"),
    renamed("zset-max-listpack-value", "zset-max-ziplist-value", LONG, "64"),
    kept("hll-sparse-max-bytes", LONG, "3000"),
    kept("stream-node-max-bytes", LONG, "4096"),
    kept("stream-node-max-entries", LONG, "100"),
    live("proto-max-bulk-len", Kind::Memory, "536870912"),
    live("client-query-buffer-limit", Kind::Memory, "1073741824"),
    live(
        "client-output-buffer-limit",
        Kind::OutputLimits,
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
    ),
    live("requirepass", Kind::Text, ""),
    live("acllog-max-len", LONG, "128"),
    live("acl-pubsub-default", Kind::Word(&["allchannels", "resetchannels"]), "resetchannels"),
    kept("tracking-table-max-keys", LONG, "1000000"),
    fixed("databases", Kind::Number(1, i32::MAX as i64), "16"),
    fixed("port", Kind::Number(0, 65535), "6379"),
    fixed("tls-port", Kind::Number(0, 65535), "0"),
    kept("bind", Kind::Text, "127.0.0.1"),
    kept("protected-mode", Kind::Switch, "yes"),
    kept("save", Kind::Save, "3600 1 300 100 60 10000"),
    fixed("dir", Kind::Text, "."),
    fixed("dbfilename", Kind::Text, ""),
    kept("appendonly", Kind::Switch, "no"),
    fixed("appendfsync", Kind::Word(&["always", "everysec", "no"]), "no"),
    kept("no-appendfsync-on-rewrite", Kind::Switch, "no"),
    kept("auto-aof-rewrite-percentage", INT, "100"),
    kept("auto-aof-rewrite-min-size", Kind::Memory, "67108864"),
    kept("aof-use-rdb-preamble", Kind::Switch, "yes"),
    kept("stop-writes-on-bgsave-error", Kind::Switch, "yes"),
    kept("rdbcompression", Kind::Switch, "yes"),
    fixed("rdbchecksum", Kind::Switch, "yes"),
    kept("rdb-key-save-delay", Kind::Number(i32::MIN as i64, i32::MAX as i64), "0"),
    kept("key-load-delay", Kind::Number(i32::MIN as i64, i32::MAX as i64), "0"),
    kept("sanitize-dump-payload", Kind::Word(&["no", "yes", "clients"]), "no"),
    kept("activerehashing", Kind::Switch, "yes"),
    kept("activedefrag", Kind::Switch, "no"),
    kept("active-expire-effort", Kind::Number(1, 10), "1"),
    kept("lazyfree-lazy-eviction", Kind::Switch, "no"),
    kept("lazyfree-lazy-expire", Kind::Switch, "no"),
    kept("lazyfree-lazy-server-del", Kind::Switch, "no"),
    kept("lazyfree-lazy-user-del", Kind::Switch, "no"),
    kept("lazyfree-lazy-user-flush", Kind::Switch, "no"),
    kept("lfu-log-factor", INT, "10"),
    kept("lfu-decay-time", INT, "1"),
    Parameter {
        name: "busy-reply-threshold",
        alias: Some("lua-time-limit"),
        kind: LONG,
        default: "5000",
        mutable: true,
        live: false,
    },
    Parameter {
        name: "replica-serve-stale-data",
        alias: Some("slave-serve-stale-data"),
        kind: Kind::Switch,
        default: "yes",
        mutable: true,
        live: false,
    },
    Parameter {
        name: "min-replicas-to-write",
        alias: Some("min-slaves-to-write"),
        kind: Kind::Number(0, 0),
        default: "0",
        mutable: true,
        live: false,
    },
    kept("repl-backlog-size", Kind::Memory, "1048576"),
    kept("repl-timeout", Kind::Number(1, i32::MAX as i64), "60"),
    kept("loglevel", Kind::Word(&["debug", "verbose", "notice", "warning"]), "notice"),
    fixed("daemonize", Kind::Switch, "no"),
    Parameter {
        name: "replicaof",
        alias: Some("slaveof"),
        kind: Kind::Text,
        default: "",
        mutable: false,
        live: true,
    },
    fixed("cluster-enabled", Kind::Switch, "no"),
    fixed("io-threads", Kind::Number(1, 128), "1"),
    fixed("enable-debug-command", Kind::Word(&["no", "yes", "local"]), "yes"),
    fixed("aclfile", Kind::Text, ""),
];

/// Parameters that only tests use: a pattern does not find them.
pub const HIDDEN: &[&str] = &["rdb-key-save-delay", "key-load-delay"];

/// The parameter of this name or older name, in any case of letters.
pub fn find(name: &[u8]) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| {
        std::iter::once(parameter.name)
            .chain(parameter.alias)
            .any(|it| it.as_bytes().eq_ignore_ascii_case(name))
    })
}

impl Parameter {
    /// The value in the form in which it is kept, or why it is none.
    pub fn parse(&self, text: &str, now: &str) -> Result<String, String> {
        match self.kind {
            Kind::Text => Ok(text.to_owned()),
            Kind::Switch => match text.to_ascii_lowercase().as_str() {
                word @ ("yes" | "no") => Ok(word.to_owned()),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Kind::Word(words) => {
                let word = text.to_ascii_lowercase();
                if words.contains(&word.as_str()) {
                    return Ok(word);
                }
                let all = words.join(", ");
                Err(format!("argument(s) must be one of the following: {all}"))
            }
            Kind::Number(low, high) => {
                let value = text
                    .parse::<i64>()
                    .map_err(|_| "argument couldn't be parsed into an integer".to_owned())?;
                if (low..=high).contains(&value) {
                    return Ok(value.to_string());
                }
                Err(format!("argument must be between {low} and {high} inclusive"))
            }
            Kind::Memory => memory(text)
                .map(|bytes| bytes.to_string())
                .ok_or_else(|| "argument must be a memory value".to_owned()),
            Kind::MemoryOrPercent => match text.strip_suffix('%').map(str::parse::<u32>) {
                Some(Ok(percent)) if percent <= 100 => Ok(text.to_owned()),
                Some(_) => Err("percentage argument must be less or equal to 100".to_owned()),
                None => memory(text)
                    .map(|bytes| bytes.to_string())
                    .ok_or_else(|| "argument must be a memory or percent value".to_owned()),
            },
            Kind::Events => match notify::parse(text.as_bytes()) {
                Some(classes) => Ok(notify::letters(classes)),
                None => Err("Invalid event class character. Use 'Ag$lszhxeKEtmdn'.".to_owned()),
            },
            Kind::OutputLimits => output_limits(text, now),
            Kind::Save => save(text),
        }
    }
}

/// A size in bytes: digits and a unit.
pub fn memory(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let scale: i64 = match unit.as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<i64>().ok().filter(|value| 0 <= *value)?.checked_mul(scale)
}

const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

fn output_limits(text: &str, now: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let old: Vec<&str> = now.split_whitespace().collect();
    let mut limits: Vec<String> = CLASSES
        .iter()
        .map(|class| {
            let kept = old.chunks(4).find(|limit| limit.first() == Some(class));
            kept.map_or_else(|| format!("{class} 0 0 0"), |limit| limit.join(" "))
        })
        .collect();
    for limit in words.chunks(4) {
        let class = limit[0].to_ascii_lowercase().replace("replica", "slave");
        let at = CLASSES
            .iter()
            .position(|it| *it == class)
            .ok_or("Invalid client class specified in buffer limit configuration.")?;
        let parsed = (memory(limit[1]), memory(limit[2]), limit[3].parse::<u32>());
        let (Some(hard), Some(soft), Ok(seconds)) = parsed else {
            return Err("Error in hard, soft or soft_seconds setting in buffer limit \
                        configuration."
                .to_owned());
        };
        limits[at] = format!("{class} {hard} {soft} {seconds}");
    }
    Ok(limits.join(" "))
}

fn save(text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let good = words.len().is_multiple_of(2)
        && words.chunks(2).all(|pair| {
            pair[0].parse::<u64>().is_ok_and(|it| 0 < it) && pair[1].parse::<u64>().is_ok()
        });
    if good { Ok(words.join(" ")) } else { Err("Invalid save parameters".to_owned()) }
}
