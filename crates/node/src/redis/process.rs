//! What the operating system knows about this process, for INFO.

use kumiko_redis::server::Facts;

/// Clock ticks per second in /proc; the same on every Linux this runs on.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGE_BYTES: u64 = 4096;

/// Reads time and memory of the process. Where there is no /proc, nothing changes.
pub(super) fn measure(facts: &mut Facts) {
    if let Ok(text) = std::fs::read_to_string("/proc/self/stat") {
        // The name in parentheses may hold blanks; what follows the last one is numbers.
        let fields: Vec<&str> =
            text.rsplit_once(')').map_or("", |it| it.1).split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|it| it.parse::<f64>().ok());
        if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
            facts.cpu_user_s = user / TICKS_PER_SECOND;
            facts.cpu_system_s = system / TICKS_PER_SECOND;
        }
    }
    if let Ok(text) = std::fs::read_to_string("/proc/self/statm") {
        let pages = text.split_whitespace().nth(1).and_then(|it| it.parse::<u64>().ok());
        facts.rss_bytes = pages.unwrap_or(0) * PAGE_BYTES;
    }
}
