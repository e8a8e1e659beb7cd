//! The language of rules: one word, one change to a user.

use super::{KeyPattern, RULES_MAX, Selector, User, digest};
use crate::command::acl::NAMES;
use crate::fail::Fail;
use crate::server::Table;

/// Applies rules in order.
///
/// # Errors
///
/// The first rule that cannot be applied, in Redis's words. The user may be half changed then.
pub fn apply(user: &mut User, rules: &[&[u8]]) -> Result<(), Fail> {
    let rules = join_parentheses(rules)?;
    for rule in &rules {
        let text = String::from_utf8_lossy(rule);
        one(user, rule).map_err(|why| {
            Fail::text(format!("ERR Error in ACL SETUSER modifier '{text}': {why}"))
        })?;
        if RULES_MAX < user.root.rules.len() + user.root.keys.len() + user.selectors.len() {
            return Err(Fail::new("ERR too many rules for one user"));
        }
    }
    Ok(())
}

/// A selector may come in several words: they are put together again.
fn join_parentheses(rules: &[&[u8]]) -> Result<Vec<Vec<u8>>, Fail> {
    let mut whole: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    for rule in rules {
        let word = match open.take() {
            None => rule.to_vec(),
            Some(before) => [&before[..], b" ", rule].concat(),
        };
        if word.starts_with(b"(") && !word.ends_with(b")") {
            open = Some(word);
        } else {
            whole.push(word);
        }
    }
    if let Some(word) = open {
        let text = String::from_utf8_lossy(&word);
        return Err(Fail::text(format!(
            "ERR Unmatched parenthesis in acl selector starting at '{text}'."
        )));
    }
    Ok(whole)
}

fn one(user: &mut User, rule: &[u8]) -> Result<(), String> {
    let lower = rule.to_ascii_lowercase();
    match &lower[..] {
        b"on" => user.enabled = true,
        b"off" => user.enabled = false,
        b"nopass" => {
            user.no_password = true;
            user.passwords.clear();
        }
        b"resetpass" => {
            user.no_password = false;
            user.passwords.clear();
        }
        b"sanitize-payload" | b"skip-sanitize-payload" => {}
        b"clearselectors" => user.selectors.clear(),
        b"reset" => *user = User::fresh(false),
        [b'>', ..] => add_password(user, digest(&rule[1..])),
        [b'<', ..] => remove_password(user, &digest(&rule[1..]))?,
        [b'#', ..] => add_password(user, checked_digest(&rule[1..])?),
        [b'!', ..] => remove_password(user, &checked_digest(&rule[1..])?)?,
        [b'(', .., b')'] => {
            let mut selector = Selector::closed(false);
            let inside = &rule[1..rule.len() - 1];
            for word in inside.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
                in_selector(&mut selector, word)?;
            }
            user.selectors.push(selector);
        }
        _ => in_selector(&mut user.root, rule)?,
    }
    Ok(())
}

fn add_password(user: &mut User, digest: String) {
    user.no_password = false;
    if !user.passwords.contains(&digest) {
        user.passwords.push(digest);
    }
}

fn remove_password(user: &mut User, digest: &str) -> Result<(), String> {
    let before = user.passwords.len();
    user.passwords.retain(|it| it != digest);
    if user.passwords.len() == before {
        return Err("The password you are trying to remove from the user does not exist".into());
    }
    Ok(())
}

fn checked_digest(text: &[u8]) -> Result<String, String> {
    let hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    if text.len() != 64 || !text.iter().all(hex) {
        return Err("The password hash must be exactly 64 characters and contain only lowercase \
                    hexadecimal characters"
            .into());
    }
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn in_selector(selector: &mut Selector, rule: &[u8]) -> Result<(), String> {
    let lower = rule.to_ascii_lowercase();
    match &lower[..] {
        b"allkeys" | b"~*" => {
            selector.all_keys = true;
            selector.keys.clear();
        }
        b"resetkeys" => {
            selector.all_keys = false;
            selector.keys.clear();
        }
        b"allchannels" | b"&*" => {
            selector.all_channels = true;
            selector.channels.clear();
        }
        b"resetchannels" => {
            selector.all_channels = false;
            selector.channels.clear();
        }
        b"allcommands" | b"+@all" => set_all(selector, true),
        b"nocommands" | b"-@all" => set_all(selector, false),
        [b'~', ..] => add_key(selector, &rule[1..], true, true)?,
        [b'%', ..] => {
            let end = rule.iter().position(|byte| *byte == b'~').ok_or("Syntax error")?;
            let access = lower[1..end].to_vec();
            let known = !access.is_empty() && access.iter().all(|it| matches!(it, b'r' | b'w'));
            if !known {
                return Err("Syntax error".into());
            }
            let (read, write) = (access.contains(&b'r'), access.contains(&b'w'));
            add_key(selector, &rule[end + 1..], read, write)?;
        }
        [b'&', ..] => add_channel(selector, &rule[1..])?,
        [sign @ (b'+' | b'-'), b'@', category @ ..] => {
            set_category(selector, *sign == b'+', category)?;
        }
        [sign @ (b'+' | b'-'), name @ ..] => set_command(selector, *sign == b'+', name)?,
        _ => return Err("Syntax error".into()),
    }
    Ok(())
}

fn has_blank(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0)
}

fn add_key(selector: &mut Selector, pattern: &[u8], read: bool, write: bool) -> Result<(), String> {
    if selector.all_keys {
        return Err(
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and \
                    does not have any effect. Try 'resetkeys' to start with an empty list of \
                    patterns"
                .into(),
        );
    }
    if has_blank(pattern) {
        return Err("Syntax error".into());
    }
    match selector.keys.iter_mut().find(|key| key.pattern == pattern) {
        Some(known) => {
            known.read |= read;
            known.write |= write;
        }
        None => selector.keys.push(KeyPattern { pattern: pattern.to_vec(), read, write }),
    }
    Ok(())
}

fn add_channel(selector: &mut Selector, pattern: &[u8]) -> Result<(), String> {
    if selector.all_channels {
        return Err(
            "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid \
                    and does not have any effect. Try 'resetchannels' to start with an empty list \
                    of channels"
                .into(),
        );
    }
    if has_blank(pattern) {
        return Err("Syntax error".into());
    }
    if !selector.channels.iter().any(|it| it == pattern) {
        selector.channels.push(pattern.to_vec());
    }
    Ok(())
}

fn set_all(selector: &mut Selector, allowed: bool) {
    selector.commands.fill(allowed);
    selector.first_words.clear();
    selector.rules = vec![if allowed { "+@all" } else { "-@all" }.to_owned()];
}

/// Remembers a rule, and forgets an older one about the same thing.
fn remember(selector: &mut Selector, allowed: bool, name: &str) {
    selector.rules.retain(|rule| rule[1..] != *name || rule[1..] == *"@all");
    selector.rules.push(format!("{}{name}", if allowed { '+' } else { '-' }));
}

fn set_category(selector: &mut Selector, allowed: bool, category: &[u8]) -> Result<(), String> {
    let (bit, name) = NAMES
        .iter()
        .find(|(_, name)| name.as_bytes() == category)
        .ok_or("Unknown command or category name in ACL")?;
    for (number, row) in Table::shared().rows().iter().enumerate() {
        if row.command.all_categories() & bit != 0 {
            selector.commands[number] = allowed;
            if !allowed {
                selector.first_words.retain(|(it, _)| *it != number);
            }
        }
    }
    remember(selector, allowed, &format!("@{name}"));
    Ok(())
}

fn set_command(selector: &mut Selector, allowed: bool, name: &[u8]) -> Result<(), String> {
    let table = Table::shared();
    let unknown = "Unknown command or category name in ACL";
    let text = String::from_utf8_lossy(name).into_owned();
    if let Some(command) = table.get(name) {
        for it in std::iter::once(command).chain(command.subcommands) {
            let number = table.number(it);
            selector.commands[number] = allowed;
            selector.first_words.retain(|(it, _)| *it != number);
        }
        remember(selector, allowed, &text);
        return Ok(());
    }
    // "+select|0": one first argument of a command without subcommands.
    let (container, word) = text.split_once('|').ok_or(unknown)?;
    let command = table.get(container.as_bytes()).ok_or(unknown)?;
    if !command.subcommands.is_empty() {
        return Err(unknown.into());
    }
    if word.contains('|') {
        return Err("Allowing first-arg of a subcommand is not supported".into());
    }
    if !allowed {
        return Err("Allowing first-arg is only supported with the + sign".into());
    }
    selector.first_words.push((table.number(command), word.as_bytes().to_vec()));
    remember(selector, true, &text);
    Ok(())
}
