//! The table of settings.

/// One setting.
pub struct Setting {
    /// The name, as on the command line without the dashes.
    pub name: &'static str,
    /// What stands behind the name in the help text.
    pub value: &'static str,
    /// The value if no source names one. Empty means: none.
    pub default: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Whether it may be given several times.
    pub many: bool,
    /// Says what is wrong with a value.
    pub check: fn(&str) -> Result<(), String>,
}

impl Setting {
    pub(super) fn default_values(&self) -> Vec<String> {
        if self.default.is_empty() { Vec::new() } else { vec![self.default.to_string()] }
    }
}

/// The setting of this name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|it| it.name == name)
}

const fn one(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    check: fn(&str) -> Result<(), String>,
    help: &'static str,
) -> Setting {
    Setting { name, value, default, help, many: false, check }
}

/// Every setting, in the order of the help text.
pub const SETTINGS: &[Setting] = &[
    one("config", "FILE", "", any, "Read settings from this file"),
    one("dir", "DIR", "./kumiko-data", any, "Keep the store and its files in this directory"),
    one(
        "engine",
        "ENGINE",
        "",
        engine,
        "Where the keyspace lives: memory, disk:DIR or postgres:URL; disk in --dir if not named",
    ),
    one(
        "durability",
        "WHEN",
        "always",
        durability,
        "When an answered write is safe from power loss: always, everysecond or never",
    ),
    one("redis", "ADDRESS", "127.0.0.1:6379", listen, "Listen for Redis clients here, or off"),
    one("redis-password", "PASSWORD", "", any, "The password of Redis's default user"),
    one("redis-tls-cert", "FILE", "", any, "Certificates for Redis clients, in PEM; makes TLS on"),
    one("redis-tls-key", "FILE", "", any, "The key of the certificate, in PEM"),
    one(
        "redis-tls-ca",
        "FILE",
        "",
        any,
        "Redis clients must show a certificate signed by one of these, in PEM",
    ),
    one("max-memory", "SIZE", "0", number, "The most memory for Redis data; 0 is no limit"),
    one(
        "max-memory-policy",
        "POLICY",
        "noeviction",
        word,
        "What to do at that limit: noeviction refuses writes; the others are those of Redis",
    ),
    one(
        "repair",
        "HOW",
        "off",
        repair,
        "A damaged journal: show tells what a repair would lose, apply loses it",
    ),
    one("mongo", "ADDRESS", "127.0.0.1:27017", listen, "Listen for MongoDB clients here, or off"),
    one(
        "mongo-replica-set",
        "NAME",
        "",
        any,
        "Tell MongoDB clients that this node is the one member of this replica set",
    ),
    one("http", "ADDRESS", "127.0.0.1:8080", listen, "Answer /health and /metrics here, or off"),
    one("cluster", "NAME", "kumiko", word, "The cluster that this node belongs to"),
    one(
        "cluster-dialect",
        "DIALECT",
        "kumiko",
        dialect,
        "How messages are written: kumiko, or puzzledb where nodes of PuzzleDB share the cluster",
    ),
    one("host", "HOST:PORT", "", any, "This node's address as others see it; --redis if not named"),
    Setting {
        name: "peer",
        value: "HOST:PORT[=KEY]",
        default: "",
        help: "Replicate with this node; may be repeated",
        many: true,
        check: any,
    },
];

fn any(text: &str) -> Result<(), String> {
    if text.contains('\0') { Err("it holds a zero byte".into()) } else { Ok(()) }
}

fn engine(text: &str) -> Result<(), String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    match (kind, rest) {
        ("memory", "") => Ok(()),
        ("disk" | "postgres" | "fdb", rest) if !rest.is_empty() => Ok(()),
        _ => Err("use memory, disk:DIR, postgres:URL or fdb:CLUSTER_FILE".into()),
    }
}

fn durability(text: &str) -> Result<(), String> {
    match text {
        "always" | "everysecond" | "never" => Ok(()),
        _ => Err("use always, everysecond or never".into()),
    }
}

fn number(text: &str) -> Result<(), String> {
    parse_number(text).map(drop)
}

fn repair(text: &str) -> Result<(), String> {
    match text {
        "off" | "show" | "apply" => Ok(()),
        _ => Err("use off, show or apply".into()),
    }
}

fn dialect(text: &str) -> Result<(), String> {
    match text {
        "kumiko" | "puzzledb" => Ok(()),
        _ => Err("use kumiko or puzzledb".into()),
    }
}

fn listen(text: &str) -> Result<(), String> {
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    match (text, port) {
        ("off", _) | (_, Some(_)) => Ok(()),
        _ => Err("use HOST:PORT, or off".into()),
    }
}

fn word(text: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || 64 < text.len() || !text.chars().all(good) {
        return Err("use 1 to 64 letters, digits, - _ or .".into());
    }
    Ok(())
}

/// A number with an optional unit: k, kb, m, mb, g, gb for sizes; ms, s, min, h, d for time, which
/// come out as milliseconds.
pub fn parse_number(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let number: u64 = digits.parse().map_err(|_| format!("\"{text}\" is not a number"))?;
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "ms" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(format!("\"{unit}\" is not a unit of size or time")),
    };
    number.checked_mul(scale).ok_or_else(|| format!("\"{text}\" is too large"))
}

#[cfg(test)]
mod tests {
    use super::{SETTINGS, parse_number};

    #[test]
    fn every_default_is_a_value_that_the_check_takes() {
        for setting in SETTINGS {
            for value in setting.default_values() {
                assert_eq!((setting.check)(&value), Ok(()), "{}", setting.name);
            }
        }
    }

    #[test]
    fn numbers_and_units() {
        let rows = [("7", 7), ("1kb", 1024), ("2k", 2000), ("5s", 5000), ("1d", 86_400_000)];
        for (text, expected) in rows {
            assert_eq!(parse_number(text), Ok(expected), "{text}");
        }
        for text in ["", "x", "1parsec", "99999999999999999999", "18446744073709551615k"] {
            assert!(parse_number(text).is_err(), "{text}");
        }
    }
}
