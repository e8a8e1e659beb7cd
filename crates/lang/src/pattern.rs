//! Regular expressions.

use regex::{Regex, RegexBuilder};

use crate::Error;

/// The longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 32_764;
/// How much memory a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 4_000_000;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The text it was made from.
    pub source: String,
    /// Its options: letters of `imsx`.
    pub options: String,
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.source == other.source && self.options == other.options
    }
}

impl Pattern {
    /// Compiles a pattern.
    pub fn new(source: &str, options: &str) -> Result<Pattern, Error> {
        if PATTERN_BYTES_MAX < source.len() {
            return Err(Error::location(51091, "Regular expression is too long"));
        }
        if let Some(other) = options.chars().find(|it| !"imsxu".contains(*it)) {
            return Err(Error::location(51108, format!("invalid flag in regex options: {other}")));
        }
        let regex = RegexBuilder::new(source)
            .case_insensitive(options.contains('i'))
            .multi_line(options.contains('m'))
            .dot_matches_new_line(options.contains('s'))
            .ignore_whitespace(options.contains('x'))
            .size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|_| {
                Error::location(51091, format!("Regular expression is invalid: {source}"))
            })?;
        Ok(Pattern { source: source.into(), options: options.into(), regex })
    }

    /// Whether some part of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The compiled pattern.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// What every match begins with, if the pattern says so plainly: `^abc`.
    pub fn prefix(&self) -> Option<String> {
        if self.options.contains(['i', 'm', 'x']) {
            return None;
        }
        let body = self.source.strip_prefix('^')?;
        if body.contains('|') {
            return None;
        }
        let special = |it: char| "\\^$.|?*+()[]{}".contains(it);
        let end = body.find(special).unwrap_or(body.len());
        let mut prefix: String = body[..end].into();
        // A repetition is about the last character: it may not be there at all.
        if body[end..].starts_with(['?', '*', '{']) {
            prefix.pop();
        }
        (!prefix.is_empty()).then_some(prefix)
    }
}
