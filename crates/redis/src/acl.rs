//! Users, and what each of them may do.
//!
//! A user has passwords (kept as SHA-256), commands, patterns of keys and patterns of channels, all
//! given as rules in Redis's language: `on >secret ~app:* &news:* +@read -keys`. Further sets of
//! commands, keys and channels are selectors, `(+get ~public:*)`: a command is allowed if any one
//! of them allows all of it.

pub mod rules;

use std::collections::{BTreeMap, VecDeque};

use sha2::{Digest, Sha256};

use crate::Args;
use crate::command::Command;
use crate::commands::pattern;
use crate::fail::Fail;
use crate::server::Table;

/// The most rules one user may have; a rule is a few bytes, and every command looks at them.
pub const RULES_MAX: usize = 10_000;

/// A pattern of keys, and what is allowed with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    /// The pattern.
    pub pattern: Vec<u8>,
    /// Reading is allowed.
    pub read: bool,
    /// Writing is allowed.
    pub write: bool,
}

/// A set of commands with the keys and channels they may be used on.
#[derive(Clone, Debug)]
pub struct Selector {
    /// By the number of the command.
    pub commands: Vec<bool>,
    /// Rules for single first arguments: "+select|0".
    pub first_words: Vec<(usize, Vec<u8>)>,
    /// The rules about commands, the newest about each thing.
    pub rules: Vec<String>,
    /// The patterns of keys.
    pub keys: Vec<KeyPattern>,
    /// Every key is allowed.
    pub all_keys: bool,
    /// The patterns of channels.
    pub channels: Vec<Vec<u8>>,
    /// Every channel is allowed.
    pub all_channels: bool,
}

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    /// It may log in.
    pub enabled: bool,
    /// Any password will do.
    pub no_password: bool,
    /// SHA-256 of the passwords, in hexadecimal.
    pub passwords: Vec<String>,
    /// The rules outside of parentheses.
    pub root: Selector,
    /// The rules in parentheses.
    pub selectors: Vec<Selector>,
}

/// Why something is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The command.
    Command,
    /// The key at this argument.
    Key(usize),
    /// The channel at this argument.
    Channel(usize),
}

/// An entry of `ACL LOG`.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// Its number.
    pub id: u64,
    /// How often it happened.
    pub count: u64,
    /// "command", "key", "channel" or "auth".
    pub reason: &'static str,
    /// "toplevel" or "multi".
    pub context: &'static str,
    /// What was denied.
    pub object: String,
    /// Who tried.
    pub user: String,
    /// From where.
    pub client: String,
    /// First time.
    pub created_ms: u64,
    /// Last time.
    pub updated_ms: u64,
}

/// All users.
#[derive(Debug)]
pub struct Acl {
    /// By name. "default" is always there.
    pub users: BTreeMap<String, User>,
    /// Denials, the newest first.
    pub log: VecDeque<LogEntry>,
    /// The number of the next denial.
    pub next_log_id: u64,
    /// Every user may do everything, so that no command need be looked at.
    open: bool,
}

impl Default for Acl {
    fn default() -> Acl {
        let mut acl =
            Acl { users: BTreeMap::new(), log: VecDeque::new(), next_log_id: 0, open: true };
        acl.users.insert("default".to_owned(), User::default_user());
        acl
    }
}

/// SHA-256 of `password`, in hexadecimal.
pub fn digest(password: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(password) {
        text.extend(
            [byte >> 4, byte & 15].map(|it| char::from_digit(it.into(), 16).unwrap_or('0')),
        );
    }
    text
}

/// Whether two digests are equal, looking at all of both, so that the time tells nothing.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |sum, (x, y)| sum | (x ^ y)) == 0
}

impl Acl {
    /// Whether a password is needed for the default user.
    pub fn has_password(&self) -> bool {
        self.users.get("default").is_some_and(|user| !user.no_password || !user.enabled)
    }

    /// Whether a new connection is the default user without a password.
    pub fn open_door(&self) -> bool {
        self.users.get("default").is_some_and(|user| user.no_password && user.enabled)
    }

    /// Whether the password is the user's.
    pub fn check_password(&self, name: &str, password: &[u8]) -> bool {
        let given = digest(password);
        self.users.get(name).is_some_and(|user| {
            let known = user.passwords.iter().any(|it| same(it, &given));
            user.enabled && (user.no_password || known)
        })
    }

    /// Sets the password of the default user, as the parameter `requirepass` does.
    pub fn require(&mut self, password: &str) {
        if let Some(user) = self.users.get_mut("default") {
            user.passwords.clear();
            user.no_password = password.is_empty();
            if !password.is_empty() {
                user.passwords.push(digest(password.as_bytes()));
            }
        }
    }

    /// Applies the rules to a user, which is made if it is new. All of them, or none.
    pub fn set_user(&mut self, name: &str, rules: &[&[u8]], open: bool) -> Result<(), Fail> {
        let mut user = self.users.get(name).cloned().unwrap_or_else(|| User::fresh(open));
        rules::apply(&mut user, rules)?;
        self.users.insert(name.to_owned(), user);
        self.refresh();
        Ok(())
    }

    /// Removes a user. False if there was none.
    pub fn remove(&mut self, name: &str) -> bool {
        let found = self.users.remove(name).is_some();
        self.refresh();
        found
    }

    /// Looks again whether everyone may do everything.
    pub fn refresh(&mut self) {
        self.open = self.users.values().all(|user| user.root.is_open());
    }

    /// Whether `name` may run the command.
    pub fn check(&self, name: &str, command: &Command, args: &Args<'_>) -> Result<(), Denied> {
        if self.open {
            return Ok(());
        }
        let Some(user) = self.users.get(name) else { return Err(Denied::Command) };
        user.check(command, args)
    }

    /// Keeps a denial for `ACL LOG`.
    pub fn note(&mut self, entry: LogEntry, entries_max: usize) {
        let alike = self.log.iter().position(|it| {
            it.reason == entry.reason
                && it.context == entry.context
                && it.object == entry.object
                && it.user == entry.user
                && entry.updated_ms.saturating_sub(it.updated_ms) <= 60_000
        });
        if let Some(mut known) = alike.and_then(|at| self.log.remove(at)) {
            known.count += 1;
            known.updated_ms = entry.updated_ms;
            known.client = entry.client;
            self.log.push_front(known);
            return;
        }
        let id = self.next_log_id;
        self.next_log_id += 1;
        self.log.push_front(LogEntry { id, ..entry });
        self.log.truncate(entries_max);
    }

    /// All users as lines of `ACL LIST`.
    pub fn lines(&self) -> Vec<String> {
        self.users.iter().map(|(name, user)| format!("user {name} {}", user.describe())).collect()
    }

    /// Replaces all users by those of `text`, lines of `ACL LIST`.
    ///
    /// # Errors
    ///
    /// The first line that is wrong; nothing is changed then.
    pub fn load(&mut self, text: &str) -> Result<(), String> {
        let mut users = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let number = index + 1;
            let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
            let ["user", name] = line.splitn(3, ' ').take(2).collect::<Vec<_>>()[..] else {
                return Err(format!("line {number}: a line is \"user NAME RULES\""));
            };
            if users.contains_key(name) {
                return Err(format!("line {number}: user {name} is there twice"));
            }
            let mut user = User::fresh(false);
            rules::apply(&mut user, &words[2..])
                .map_err(|refused| format!("line {number}: {}", refused.as_str()))?;
            users.insert(name.to_owned(), user);
        }
        users.entry("default".to_owned()).or_insert_with(User::default_user);
        self.users = users;
        self.refresh();
        Ok(())
    }
}

impl Selector {
    /// Nothing is allowed, but all channels if `all_channels`.
    pub fn closed(all_channels: bool) -> Selector {
        Selector {
            commands: vec![false; Table::shared().len()],
            first_words: Vec::new(),
            rules: vec!["-@all".to_owned()],
            keys: Vec::new(),
            all_keys: false,
            channels: Vec::new(),
            all_channels,
        }
    }

    fn open() -> Selector {
        Selector {
            commands: vec![true; Table::shared().len()],
            rules: vec!["+@all".to_owned()],
            all_keys: true,
            ..Selector::closed(true)
        }
    }

    fn is_open(&self) -> bool {
        self.all_keys && self.all_channels && self.rules == ["+@all"]
    }

    fn allows_command(&self, command: &Command, args: &Args<'_>) -> bool {
        let number = Table::shared().number(command);
        self.commands[number]
            || self.first_words.iter().any(|(allowed, word)| {
                *allowed == number
                    && args.try_get(1).is_some_and(|it| it.eq_ignore_ascii_case(word))
            })
    }

    fn allows_key(&self, key: &[u8], read: bool, write: bool) -> bool {
        self.all_keys
            || self.keys.iter().any(|it| {
                (!read || it.read) && (!write || it.write) && pattern::matches(&it.pattern, key)
            })
    }

    fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self
                .channels
                .iter()
                .any(|it| if is_pattern { it == channel } else { pattern::matches(it, channel) })
    }

    fn check(&self, command: &Command, args: &Args<'_>) -> Result<(), Denied> {
        use crate::command::{READONLY, WRITE};
        if !self.allows_command(command, args) {
            return Err(Denied::Command);
        }
        let shard = matches!(command.name, "ssubscribe" | "sunsubscribe" | "spublish");
        if !self.all_keys && !shard {
            for at in command.key_positions(args).unwrap_or_default() {
                let (read, write) = (command.has(READONLY), command.has(WRITE));
                if !self.allows_key(args.get(at), read, write) {
                    return Err(Denied::Key(at));
                }
            }
        }
        let (last, is_pattern) = match command.name {
            "publish" | "spublish" => (2, false),
            "subscribe" | "ssubscribe" => (args.len(), false),
            "psubscribe" => (args.len(), true),
            _ => (0, false),
        };
        for at in 1..last {
            if !self.allows_channel(args.get(at), is_pattern) {
                return Err(Denied::Channel(at));
            }
        }
        Ok(())
    }

    /// The rules about keys, as `ACL LIST` shows them.
    pub fn keys_text(&self) -> String {
        if self.all_keys {
            return "~*".to_owned();
        }
        let words: Vec<String> = self
            .keys
            .iter()
            .map(|key| {
                let sign = match (key.read, key.write) {
                    (true, false) => "%R~",
                    (false, true) => "%W~",
                    _ => "~",
                };
                format!("{sign}{}", String::from_utf8_lossy(&key.pattern))
            })
            .collect();
        words.join(" ")
    }

    /// The rules about channels, as `ACL LIST` shows them.
    pub fn channels_text(&self) -> String {
        if self.all_channels {
            return "&*".to_owned();
        }
        let words: Vec<String> = self
            .channels
            .iter()
            .map(|channel| format!("&{}", String::from_utf8_lossy(channel)))
            .collect();
        words.join(" ")
    }

    /// The rules about commands.
    pub fn commands_text(&self) -> String {
        self.rules.join(" ")
    }

    fn describe(&self) -> String {
        let mut words = Vec::new();
        let keys = self.keys_text();
        if !keys.is_empty() {
            words.push(keys);
        }
        if !self.all_channels {
            words.push("resetchannels".to_owned());
        }
        let channels = self.channels_text();
        if !channels.is_empty() {
            words.push(channels);
        }
        words.push(self.commands_text());
        words.join(" ")
    }
}

impl User {
    /// The user that a connection is before it says another name: may do everything.
    pub fn default_user() -> User {
        User {
            enabled: true,
            no_password: true,
            passwords: Vec::new(),
            root: Selector::open(),
            selectors: Vec::new(),
        }
    }

    /// A new user: off, without a password, without any right.
    pub fn fresh(all_channels: bool) -> User {
        User {
            enabled: false,
            no_password: false,
            passwords: Vec::new(),
            root: Selector::closed(all_channels),
            selectors: Vec::new(),
        }
    }

    /// Whether the user may run the command.
    pub fn check(&self, command: &Command, args: &Args<'_>) -> Result<(), Denied> {
        use crate::command::NO_AUTH;
        if command.has(NO_AUTH) {
            return Ok(());
        }
        let mut worst = match self.root.check(command, args) {
            Ok(()) => return Ok(()),
            Err(denied) => denied,
        };
        for selector in &self.selectors {
            match selector.check(command, args) {
                Ok(()) => return Ok(()),
                // The denial that came furthest is the one that helps the user most.
                Err(denied) if worst == Denied::Command => worst = denied,
                Err(_) => {}
            }
        }
        Err(worst)
    }

    /// Its flags, as `ACL GETUSER` shows them.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.enabled { "on" } else { "off" }];
        if self.no_password {
            flags.push("nopass");
        }
        flags
    }

    fn describe(&self) -> String {
        let mut words: Vec<String> = self.flags().into_iter().map(str::to_owned).collect();
        words.extend(self.passwords.iter().map(|digest| format!("#{digest}")));
        words.push(self.root.describe());
        words.extend(self.selectors.iter().map(|selector| format!("({})", selector.describe())));
        words.join(" ")
    }
}
