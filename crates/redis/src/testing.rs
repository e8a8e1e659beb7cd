//! Runs commands in tests, without sockets: lines in, text out.
//!
//! A [`Harness`] is a server with as many clients as the test names. Replies are shown in the way
//! of redis-cli, so that golden scripts read like a session:
//!
//! ```text
//! SET a 1
//! @2 BLPOP queue 0
//! RPUSH queue x
//! ---
//! OK
//! (integer) 1
//! @2: 1) "queue"
//! @2: 2) "x"
//! ```
//!
//! `@2` runs the line as client 2. What other clients received is shown after the reply, marked by
//! their number. `+1500` lets 1500 milliseconds pass.

use std::collections::BTreeMap;

use kumiko_wire::resp::parse::split_words;

use crate::client::Slot;
use crate::{Args, Server};

/// The time at which a harness starts: some day in 2020, in milliseconds.
pub const START_MS: u64 = 1_600_000_000_000;

/// A server and its clients, for tests.
#[derive(Debug)]
pub struct Harness {
    /// The server.
    pub server: Server,
    clients: BTreeMap<u32, Slot>,
}

impl Default for Harness {
    fn default() -> Harness {
        Harness::new()
    }
}

impl Harness {
    /// A server without data, at [`START_MS`], with the random choices of seed 1.
    pub fn new() -> Harness {
        let mut server = Server::new(1);
        server.set_time(START_MS);
        Harness { server, clients: BTreeMap::new() }
    }

    /// Runs one line and returns what all clients received, as text without a final line break.
    pub fn run(&mut self, line: &str) -> String {
        if let Some(pause_ms) = line.strip_prefix('+').and_then(|ms| ms.parse::<u64>().ok()) {
            self.server.set_time(self.server.now_ms + pause_ms);
            self.server.time_out();
            self.server.tick();
            return self.collect(1);
        }
        let (number, line) = match line.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((number, rest)) => (number.parse().unwrap_or(1), rest),
            None => (1, line),
        };
        let (mut buffer, mut spans) = (Vec::new(), Vec::new());
        if split_words(line.as_bytes(), &mut buffer, &mut spans).is_none() {
            return "(unbalanced quotes)".to_owned();
        }
        let slot = self.slot(number);
        self.server.execute(slot, &Args::new(&buffer, &spans));
        self.collect(number)
    }

    /// Runs a request of any bytes as client 1 and returns the reply as it is sent.
    pub fn run_raw(&mut self, parts: &[&[u8]]) -> Vec<u8> {
        let owned = crate::args::OwnedArgs::from_parts(parts.iter().copied());
        let slot = self.slot(1);
        self.server.execute(slot, &owned.args());
        self.server.clients.get_mut(slot).map(|it| std::mem::take(&mut it.out)).unwrap_or_default()
    }

    /// The place of client `number`, which connects if it is new.
    pub fn slot(&mut self, number: u32) -> Slot {
        let server = &mut self.server;
        *self.clients.entry(number).or_insert_with(|| {
            server.connect(format!("127.0.0.1:{}", 50_000 + number), "127.0.0.1:6379".to_owned())
        })
    }

    fn collect(&mut self, first: u32) -> String {
        let mut lines: Vec<String> = Vec::new();
        let others = self.clients.keys().copied().filter(|number| *number != first);
        for number in std::iter::once(first).chain(others) {
            let Some(client) =
                self.clients.get(&number).and_then(|slot| self.server.clients.get_mut(*slot))
            else {
                continue;
            };
            let out = std::mem::take(&mut client.out);
            let mut rest = &out[..];
            while !rest.is_empty() {
                let mut shown = Vec::new();
                rest = show(rest, "", &mut shown);
                let mark = if number == first { String::new() } else { format!("@{number}: ") };
                lines.extend(shown.into_iter().map(|line| format!("{mark}{line}")));
            }
        }
        lines.join("\n")
    }
}

/// Shows one reply in the way of redis-cli and returns what follows it.
fn show<'a>(input: &'a [u8], indent: &str, lines: &mut Vec<String>) -> &'a [u8] {
    let end = input.windows(2).position(|it| it == b"\r\n").expect("a reply ends its lines");
    let head = String::from_utf8_lossy(&input[1..end]).into_owned();
    let rest = &input[end + 2..];
    let mut line = |text: String| lines.push(text);
    match input[0] {
        b'+' => line(head),
        b'-' => line(format!("(error) {head}")),
        b':' => line(format!("(integer) {head}")),
        b',' => line(format!("(double) {head}")),
        b'#' => line(format!("({})", if head == "t" { "true" } else { "false" })),
        b'(' => line(format!("(bignum) {head}")),
        b'_' => line("(nil)".to_owned()),
        b'$' | b'=' => {
            let Ok(size) = head.parse::<usize>() else {
                line("(nil)".to_owned());
                return rest;
            };
            line(format!("\"{}\"", rest[..size].escape_ascii()));
            return &rest[size + 2..];
        }
        sign => return show_many(sign, &head, rest, indent, lines),
    }
    rest
}

fn show_many<'a>(
    sign: u8,
    head: &str,
    mut rest: &'a [u8],
    indent: &str,
    lines: &mut Vec<String>,
) -> &'a [u8] {
    let Ok(count) = head.parse::<usize>() else {
        lines.push("(nil)".to_owned());
        return rest;
    };
    let (open, count) = match sign {
        b'%' => ("#", count),
        b'~' => ("~", count),
        b'>' => (">", count),
        _ => (")", count),
    };
    if count == 0 {
        lines.push(if sign == b'%' { "(empty map)" } else { "(empty array)" }.to_owned());
        return rest;
    }
    let deeper = format!("{indent}   ");
    for index in 1..=count {
        let mut inner = Vec::new();
        rest = show(rest, &deeper, &mut inner);
        if sign == b'%' {
            let mut value = Vec::new();
            rest = show(rest, &deeper, &mut value);
            let key = inner.join(" ");
            let mut value = value.into_iter();
            lines.push(format!("{index}# {key} => {}", value.next().unwrap_or_default()));
            lines.extend(value.map(|line| format!("   {line}")));
            continue;
        }
        let mut inner = inner.into_iter();
        lines.push(format!("{index}{open} {}", inner.next().unwrap_or_default()));
        lines.extend(inner.map(|line| format!("   {line}")));
    }
    rest
}

/// Runs a golden script: blocks of commands, `---`, and the output that is wanted; blank lines and
/// lines with `#` between blocks. Returns the script with the output that really came.
pub fn replay(script: &str) -> String {
    let mut harness = Harness::new();
    let mut out = String::new();
    let mut commands: Vec<&str> = Vec::new();
    let mut skipping = false;
    for line in script.lines() {
        if skipping {
            if line.is_empty() {
                skipping = false;
                out.push('\n');
            }
            continue;
        }
        out.push_str(line);
        out.push('\n');
        if line == "---" {
            for command in commands.drain(..) {
                let text = harness.run(command);
                if !text.is_empty() {
                    out.push_str(&text);
                    out.push('\n');
                }
            }
            skipping = true;
        } else if !line.is_empty() && !line.starts_with('#') {
            commands.push(line);
        }
    }
    out
}
