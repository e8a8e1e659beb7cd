//! Counters for `INFO`.

use std::collections::BTreeMap;

use crate::fail::Fail;

/// The most different error codes that are counted; more are one code, "ERRORSTATS_OVERFLOW".
pub const ERROR_CODES_MAX: usize = 128;

/// What one command did so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandStats {
    /// How often it ran.
    pub calls: u64,
    /// How long all runs took.
    pub micros: u64,
    /// How often it was refused before it ran.
    pub rejected: u64,
    /// How often it ran and was refused.
    pub failed: u64,
}

/// Counters since the start or `CONFIG RESETSTAT`.
#[derive(Debug, Default)]
pub struct Stats {
    /// Connections taken.
    pub connections: u64,
    /// Connections refused because there were too many.
    pub connections_refused: u64,
    /// Commands that ran.
    pub commands: u64,
    /// By the number of the command.
    pub by_command: Vec<CommandStats>,
    /// By the code of the error.
    pub errors: BTreeMap<String, u64>,
    /// All refusals.
    pub error_count: u64,
    /// Changes since the last snapshot.
    pub dirty: u64,
    /// Bytes received.
    pub input_bytes: u64,
    /// Bytes sent.
    pub output_bytes: u64,
    /// Keys that expired.
    pub expired_keys: u64,
    /// Keys that were evicted.
    pub evicted_keys: u64,
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Clients closed because they did not read.
    pub clients_dropped: u64,
    /// Commands in the last second.
    pub commands_per_second: u64,
    /// The most memory ever used.
    pub memory_peak: u64,
}

impl Stats {
    /// No counts, for `commands` commands.
    pub fn new(commands: usize) -> Stats {
        Stats { by_command: vec![CommandStats::default(); commands], ..Stats::default() }
    }

    /// All counts are zero again.
    pub fn reset(&mut self) {
        let kept = (self.dirty, self.memory_peak);
        *self = Stats::new(self.by_command.len());
        (self.dirty, self.memory_peak) = kept;
    }

    /// A command ran.
    #[inline]
    pub fn called(&mut self, number: usize, micros: u64) {
        self.commands += 1;
        let stats = &mut self.by_command[number];
        stats.calls += 1;
        stats.micros += micros;
    }

    /// A command ran and was refused.
    pub fn failed(&mut self, number: usize, refused: &Fail) {
        self.by_command[number].failed += 1;
        self.error(refused.code());
    }

    /// A request was refused before it ran.
    pub fn refused(&mut self, number: Option<usize>, refused: &Fail) {
        if let Some(number) = number {
            self.by_command[number].rejected += 1;
        }
        self.error(refused.code());
    }

    fn error(&mut self, code: &str) {
        self.error_count += 1;
        let room = self.errors.len() < ERROR_CODES_MAX || self.errors.contains_key(code);
        let code = if room { code } else { "ERRORSTATS_OVERFLOW" };
        *self.errors.entry(code.to_owned()).or_default() += 1;
    }
}
