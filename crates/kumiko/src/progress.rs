//! Shows how far long work is: a line that is redrawn on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a terminal is redrawn, and how often another output gets a line.
const REDRAW_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The width of the bar.
const BAR_WIDTH: u64 = 30;

/// One piece of long work.
pub(crate) struct Progress {
    what: &'static str,
    total: Option<u64>,
    terminal: bool,
    begun: Instant,
    shown: Instant,
    drawn: bool,
}

impl Progress {
    /// Work that counts `what`, up to `total` if that is known.
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Progress {
        let now = Instant::now();
        let terminal = std::io::stderr().is_terminal();
        Progress { what, total, terminal, begun: now, shown: now, drawn: false }
    }

    /// The work has reached `count`.
    pub(crate) fn at(&mut self, count: u64) {
        let every = if self.terminal { REDRAW_EVERY } else { LINE_EVERY };
        if self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        self.drawn = true;
        let text = self.text(count);
        if self.terminal {
            eprint!("\r{text}\x1b[K");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{text}");
        }
    }

    /// The work is over, well or not.
    pub(crate) fn end(self) {
        if self.terminal && self.drawn {
            eprintln!();
        }
    }

    fn text(&self, count: u64) -> String {
        let rate = count as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let what = self.what;
        match self.total.filter(|total| *total != 0) {
            None => format!("{count} {what}, {rate:.0} a second"),
            Some(total) => {
                let done = (count.min(total) * BAR_WIDTH / total) as usize;
                let bar = "#".repeat(done) + &"-".repeat(BAR_WIDTH as usize - done);
                format!("[{bar}] {count}/{total} {what}, {rate:.0} a second")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn text_with_and_without_a_total() {
        let text = Progress::new("rows", None).text(5);
        assert!(text.starts_with("5 rows, "), "{text}");
        let text = Progress::new("rows", Some(10)).text(5);
        assert!(text.starts_with("[###############---------------] 5/10 rows"), "{text}");
    }
}
