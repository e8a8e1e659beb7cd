//! Every setting exists as a flag, as an environment variable and as a line of `kumiko.toml`, in
//! that order of precedence.
//!
//! ```text
//! --max-memory 1gb        KUMIKO_MAX_MEMORY=1gb        max-memory = "1gb"
//! ```
//!
//! The table in [`table`] is the only place that names them; the flags of `kumiko serve`, the
//! checks below and `docs/settings.md` are made from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Error;

pub mod table;

pub use table::{SETTINGS, Setting};

/// The settings of one node. Every value has been looked at: a getter cannot fail.
#[derive(Clone, Debug)]
pub struct Settings {
    values: BTreeMap<&'static str, Vec<String>>,
}

impl Default for Settings {
    /// Every setting at its default.
    fn default() -> Settings {
        let values = SETTINGS.iter().map(|it| (it.name, it.default_values())).collect();
        Settings { values }
    }
}

impl Settings {
    /// Reads all sources: `flags` win over `environment`, which wins over the file that the
    /// setting `config` names, which wins over the defaults.
    pub fn read(
        flags: &[(String, String)],
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Settings, Error> {
        let environment = from_environment(environment);
        let named = |from: &[(String, String)]| {
            from.iter().find(|(name, _)| name == "config").map(|(_, value)| PathBuf::from(value))
        };
        let mut settings = Settings::default();
        if let Some(path) = named(flags).or_else(|| named(&environment)) {
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Error::from(error).during(&format!("cannot read the file {}", path.display()))
            })?;
            let lines = from_toml(&text)
                .map_err(|error| error.during(&format!("in the file {}", path.display())))?;
            settings.apply(&lines)?;
        }
        settings.apply(&environment)?;
        settings.apply(flags)?;
        Ok(settings)
    }

    /// Sets the named values, each checked. A repeated name of a list setting adds to the list.
    pub fn apply(&mut self, pairs: &[(String, String)]) -> Result<(), Error> {
        let mut fresh: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for (name, value) in pairs {
            let setting = table::find(name)
                .ok_or_else(|| Error::invalid(format!("there is no setting named {name}")))?;
            (setting.check)(value).map_err(|why| {
                Error::invalid(format!("the setting {name} cannot be \"{value}\": {why}"))
            })?;
            let values = fresh.entry(setting.name).or_default();
            if !setting.many {
                values.clear();
            }
            values.push(value.clone());
        }
        self.values.extend(fresh);
        Ok(())
    }

    /// The value of a setting that is a single word.
    pub fn text(&self, name: &str) -> &str {
        self.list(name).first().map_or("", String::as_str)
    }

    /// The values of a setting that may be given several times.
    pub fn list(&self, name: &str) -> &[String] {
        let values = self.values.get(name);
        values.unwrap_or_else(|| panic!("the table has no setting {name}"))
    }

    /// The value of a setting that is a number, a size or a span of time in milliseconds.
    pub fn number(&self, name: &str) -> u64 {
        table::parse_number(self.text(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// The value of a setting that is on or off.
    pub fn is_on(&self, name: &str) -> bool {
        self.text(name) == "on"
    }

    /// Where to listen, or `None` if the listener is off.
    pub fn address(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| *text != "off")
    }

    /// The directory of the store and of the files beside it.
    pub fn dir(&self) -> &Path {
        Path::new(self.text("dir"))
    }

    /// The engine, as `--engine` takes it; from `--dir` if no engine is named.
    pub fn engine(&self) -> String {
        match self.text("engine") {
            "" => format!("disk:{}", self.text("dir")),
            engine => engine.to_string(),
        }
    }
}

fn from_environment(environment: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = environment
        .filter_map(|(name, value)| {
            let name = name.strip_prefix("KUMIKO_")?.to_ascii_lowercase().replace('_', "-");
            // Foreign variables may share the prefix: only names of the table count.
            let setting = table::find(&name)?;
            Some((setting, value))
        })
        .flat_map(|(setting, value)| {
            let values: Vec<String> = if setting.many {
                value.split(',').map(|it| it.trim().to_string()).collect()
            } else {
                vec![value]
            };
            values.into_iter().map(|value| (setting.name.to_string(), value))
        })
        .collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs
}

fn from_toml(text: &str) -> Result<Vec<(String, String)>, Error> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        Error::invalid(error.to_string().trim_end().to_string())
    })?;
    let mut pairs = Vec::new();
    for (name, value) in table {
        let values = match value {
            toml::Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Boolean(true) => "on".to_string(),
                toml::Value::Boolean(false) => "off".to_string(),
                toml::Value::Integer(number) => number.to_string(),
                other => {
                    return Err(Error::invalid(format!(
                        "{name} must be a text, a number or true/false, not a {}",
                        other.type_str()
                    )));
                }
            };
            pairs.push((name.clone(), value));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_string(), (*b).to_string())).collect()
    }

    #[test]
    fn flags_win_over_environment_and_environment_over_the_file() {
        let dir = std::env::temp_dir().join(format!("kumiko-settings-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("kumiko.toml");
        std::fs::write(&path, "redis = \"127.0.0.1:1\"\nhttp = \"off\"\ndir = \"file\"\n").unwrap();
        let flags = pairs(&[("config", path.to_str().unwrap()), ("redis", "127.0.0.1:3")]);
        let environment = pairs(&[
            ("KUMIKO_REDIS", "127.0.0.1:2"),
            ("KUMIKO_DIR", "env"),
            ("KUMIKO_UNRELATED", "x"),
            ("PATH", "y"),
        ]);
        let settings = Settings::read(&flags, environment.into_iter()).unwrap();
        assert_eq!(settings.text("redis"), "127.0.0.1:3");
        assert_eq!(settings.text("dir"), "env");
        assert_eq!(settings.address("http"), None);
        assert_eq!(settings.engine(), "disk:env");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn wrong_settings_are_named() {
        let rows = [
            ("speed", "9", "there is no setting named speed"),
            ("redis", "here", "the setting redis cannot be \"here\""),
            ("durability", "maybe", "the setting durability cannot be \"maybe\""),
        ];
        for (name, value, expected) in rows {
            let error = Settings::default().apply(&pairs(&[(name, value)])).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn lists_add_up_within_one_source() {
        let mut settings = Settings::default();
        settings.apply(&pairs(&[("peer", "a:1"), ("peer", "b:2")])).unwrap();
        assert_eq!(settings.list("peer"), ["a:1", "b:2"]);
        settings.apply(&pairs(&[("peer", "c:3")])).unwrap();
        assert_eq!(settings.list("peer"), ["c:3"]);
    }
}
