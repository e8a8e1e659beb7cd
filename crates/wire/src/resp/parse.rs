//! Requests, taken out of a connection's input in place.
//!
//! A request is an array of bulk strings, or one line of words ("inline"). The parser is called
//! with all bytes of the connection that no earlier request used up, and remembers how far it came:
//! a request that arrives in a thousand pieces is looked at once, not a thousand times. The
//! arguments of an array are [`Span`]s of the input. Those of an inline request may have had
//! quotes, so they are spans of a buffer that the parser keeps.
//!
//! Every length is checked against [`Limits`] before anything is set aside for it.

use super::number::parse_int;

/// The longest line: an inline request, or the line of a length. What Redis allows.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// Before a client has authenticated, it may send this many arguments.
pub const STRANGER_ARGUMENTS_MAX: i64 = 10;
/// Before a client has authenticated, an argument may have this many bytes.
pub const STRANGER_BULK_BYTES_MAX: i64 = 16_384;
/// The most arguments a request may announce. Space is taken as they arrive, not before.
pub const ARGUMENTS_MAX: i64 = i32::MAX as i64;

/// What a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest argument.
    pub bulk_bytes_max: i64,
    /// The client has not authenticated although it must: it gets the small limits.
    pub stranger: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bulk_bytes_max: 512 * 1024 * 1024, stranger: false }
    }
}

/// A part of the input: from `start` up to, and without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it starts.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

impl Span {
    /// The bytes of `buffer` that this span names.
    pub fn of(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start as usize..self.end as usize]
    }
}

/// What one call found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The input holds no whole request yet. It takes at least this many more bytes.
    Need(usize),
    /// A request, which used up this many bytes. Its arguments are [`Parser::spans`] of the input.
    Array(usize),
    /// A request, which used up this many bytes. Its arguments are [`Parser::spans`] of
    /// [`Parser::line`].
    Line(usize),
}

/// Why a connection must be closed: the text of the error, without its code.
pub type Refused = String;

/// The state of one connection's requests.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    spans: Vec<Span>,
    line: Vec<u8>,
    /// How far the request was looked at.
    at: usize,
    /// How many arguments are still to come, once the head was read.
    left: i64,
    /// The length of the argument whose bytes come next, once it was read.
    bulk: Option<usize>,
    /// A request has begun and is not whole yet.
    begun: bool,
}

impl Parser {
    /// A connection that has sent nothing.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// The arguments of the request that was found last. An empty request has none.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The words of the last inline request, without their quotes.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// How many arguments are still missing of the request that has begun.
    pub fn missing(&self) -> i64 {
        if self.begun { self.left } else { 0 }
    }

    /// Looks for one request at the start of `input`.
    ///
    /// After `Need`, call again with the same bytes and more behind them. After a request, cut the
    /// bytes it used up.
    ///
    /// # Errors
    ///
    /// The client does not speak the protocol or broke a limit; the text says how.
    pub fn next(&mut self, input: &[u8], limits: &Limits) -> Result<Parsed, Refused> {
        if !self.begun {
            self.spans.clear();
            self.at = 0;
            self.bulk = None;
            match input.first() {
                None => return Ok(Parsed::Need(1)),
                Some(b'*') => {}
                Some(_) => return self.inline(input),
            }
            let Some((count, after)) = read_length(input, 1, "too big mbulk count string")? else {
                return Ok(Parsed::Need(1));
            };
            let count = count
                .filter(|count| *count <= ARGUMENTS_MAX)
                .ok_or("Protocol error: invalid multibulk length")?;
            if limits.stranger && STRANGER_ARGUMENTS_MAX < count {
                return Err("Protocol error: unauthenticated multibulk length".to_owned());
            }
            if count <= 0 {
                return Ok(Parsed::Array(after));
            }
            self.left = count;
            self.at = after;
            self.begun = true;
        }
        self.arguments(input, limits)
    }

    fn arguments(&mut self, input: &[u8], limits: &Limits) -> Result<Parsed, Refused> {
        while 0 < self.left {
            let size = match self.bulk {
                Some(size) => size,
                None => match self.bulk_size(input, limits)? {
                    Some(size) => size,
                    None => return Ok(Parsed::Need(1)),
                },
            };
            let end = self.at + size;
            if input.len() < end + 2 {
                self.bulk = Some(size);
                return Ok(Parsed::Need(end + 2 - input.len()));
            }
            let span = u32::try_from(self.at).ok().zip(u32::try_from(end).ok());
            let (start, stop) = span.ok_or("Protocol error: too big request")?;
            self.spans.push(Span { start, end: stop });
            self.bulk = None;
            self.at = end + 2;
            self.left -= 1;
        }
        self.begun = false;
        Ok(Parsed::Array(self.at))
    }

    fn bulk_size(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, Refused> {
        match input.get(self.at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(byte) => {
                let got = char::from(*byte);
                return Err(format!("Protocol error: expected '$', got '{got}'"));
            }
        }
        let Some((size, after)) = read_length(input, self.at + 1, "too big bulk count string")?
        else {
            return Ok(None);
        };
        let size = size
            .filter(|size| (0..=limits.bulk_bytes_max).contains(size))
            .ok_or("Protocol error: invalid bulk length")?;
        if limits.stranger && STRANGER_BULK_BYTES_MAX < size {
            return Err("Protocol error: unauthenticated bulk length".to_owned());
        }
        self.at = after;
        Ok(Some(size as usize))
    }

    fn inline(&mut self, input: &[u8]) -> Result<Parsed, Refused> {
        let Some(end) = memchr::memchr(b'\n', input) else {
            if LINE_BYTES_MAX < input.len() {
                return Err("Protocol error: too big inline request".to_owned());
            }
            return Ok(Parsed::Need(1));
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        if LINE_BYTES_MAX < line.len() {
            return Err("Protocol error: too big inline request".to_owned());
        }
        self.line.clear();
        split_words(line, &mut self.line, &mut self.spans)
            .ok_or("Protocol error: unbalanced quotes in request")?;
        Ok(Parsed::Line(end + 1))
    }
}

/// A length, if its line is whole, and the place behind that line.
type Length = Option<(Option<i64>, usize)>;

/// Reads the number on the line that starts at `at`.
fn read_length(input: &[u8], at: usize, too_long: &str) -> Result<Length, Refused> {
    let rest = &input[at.min(input.len())..];
    // Lengths are short: looking byte by byte beats a call of memchr here.
    let window = &rest[..rest.len().min(24)];
    let end = match window.iter().position(|byte| *byte == b'\r') {
        Some(end) => Some(end),
        None => memchr::memchr(b'\r', rest),
    };
    let Some(end) = end else {
        if LINE_BYTES_MAX < rest.len() {
            return Err(format!("Protocol error: {too_long}"));
        }
        return Ok(None);
    };
    if rest.len() < end + 2 {
        return Ok(None);
    }
    Ok(Some((parse_int(&rest[..end]), at + end + 2)))
}

/// Splits a line into words. Double quotes understand escapes, single quotes only `\'`.
///
/// `None` if a quote is not closed, or something other than a space follows a closing quote.
pub fn split_words(line: &[u8], out: &mut Vec<u8>, spans: &mut Vec<Span>) -> Option<()> {
    let mut rest = line;
    loop {
        while let [first, tail @ ..] = rest
            && is_space(*first)
        {
            rest = tail;
        }
        if rest.is_empty() {
            return Some(());
        }
        let start = out.len() as u32;
        rest = word(rest, out)?;
        spans.push(Span { start, end: out.len() as u32 });
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C | 0)
}

/// Appends the first word of `rest` to `out` and returns what follows it.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return Some(rest),
            [byte, ..] if is_space(*byte) => return Some(rest),
            [b'"', tail @ ..] => return closed(double_quoted(tail, out)?),
            [b'\'', tail @ ..] => return closed(single_quoted(tail, out)?),
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
}

/// What follows a closing quote: a space or nothing.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    match rest.first() {
        None => Some(rest),
        Some(byte) if is_space(*byte) => Some(rest),
        Some(_) => None,
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
                out.push(digit(*high) * 16 + digit(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                rest = tail;
            }
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'\'', tail @ ..] => return Some(tail),
            [b'\\', b'\'', tail @ ..] => {
                out.push(b'\'');
                rest = tail;
            }
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kumiko_base::draw::{self, Draw};

    use super::{LINE_BYTES_MAX, Limits, Parsed, Parser};

    /// All requests in `input`, given to the parser in pieces that end at `cuts`.
    fn requests(
        input: &[u8],
        cuts: &[usize],
        limits: &Limits,
    ) -> Result<Vec<Vec<Vec<u8>>>, String> {
        let mut parser = Parser::new();
        let mut found = Vec::new();
        let mut from = 0;
        for end in cuts.iter().copied().chain([input.len()]) {
            loop {
                let (used, line) = match parser.next(&input[from..end], limits)? {
                    Parsed::Need(_) => break,
                    Parsed::Array(used) => (used, false),
                    Parsed::Line(used) => (used, true),
                };
                let buffer = if line { parser.line() } else { &input[from..] };
                found.push(parser.spans().iter().map(|span| span.of(buffer).to_vec()).collect());
                from += used;
            }
        }
        Ok(found)
    }

    fn show(input: &[u8]) -> String {
        match requests(input, &[], &Limits::default()) {
            Err(refused) => refused,
            Ok(found) => found
                .iter()
                .map(|words| {
                    let words: Vec<_> =
                        words.iter().map(|it| String::from_utf8_lossy(it)).collect();
                    words.join("|")
                })
                .collect::<Vec<_>>()
                .join(";"),
        }
    }

    #[test]
    fn forms() {
        // input, requests
        let rows: &[(&[u8], &str)] = &[
            (b"PING\r\n", "PING"),
            (b"SET a \"b c\"\n GET  'it\\'s' \n", "SET|a|b c;GET|it's"),
            (b"X \"\\x41\\n\"\r\n", "X|A\n"),
            (b"X \"a", ""),
            (b"X \"a\r\n", "Protocol error: unbalanced quotes in request"),
            (b"X \"a\"b\r\n", "Protocol error: unbalanced quotes in request"),
            (b"\r\n", ""),
            (b"*0\r\n*-1\r\nPING\r\n", ";;PING"),
            (b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$0\r\n\r\n", "GET|a;"),
            (b"*3000000000\r\n", "Protocol error: invalid multibulk length"),
            (b"*x\r\n", "Protocol error: invalid multibulk length"),
            (b"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"),
            (b"*1\r\n$536870913\r\n", "Protocol error: invalid bulk length"),
            (b"*1\r\nfoo\r\n", "Protocol error: expected '$', got 'f'"),
        ];
        for (input, found) in rows {
            assert_eq!(show(input), *found, "{}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn limits_on_both_sides() {
        let line = |size: usize| [vec![b'a'; size], b"\r\n".to_vec()].concat();
        assert_eq!(show(&line(LINE_BYTES_MAX)).len(), LINE_BYTES_MAX);
        assert_eq!(show(&line(LINE_BYTES_MAX + 1)), "Protocol error: too big inline request");
        let endless = vec![b'1'; LINE_BYTES_MAX + 2];
        assert_eq!(
            show(&[b"*", &endless[..]].concat()),
            "Protocol error: too big mbulk count string"
        );
        assert_eq!(
            show(&[b"*1\r\n$", &endless[..]].concat()),
            "Protocol error: too big bulk count string"
        );
        let stranger = Limits { stranger: true, ..Limits::default() };
        let check =
            |text: &str| requests(text.as_bytes(), &[], &stranger).err().unwrap_or_default();
        assert_eq!(check("*10\r\n"), "");
        assert_eq!(check("*11\r\n"), "Protocol error: unauthenticated multibulk length");
        assert_eq!(check("*1\r\n$16384\r\n"), "");
        assert_eq!(check("*1\r\n$16385\r\n"), "Protocol error: unauthenticated bulk length");
    }

    /// However the bytes arrive, the requests are the same.
    #[test]
    fn pieces_do_not_matter() {
        draw::check("pieces_do_not_matter", 500, |draw| {
            let mut input = Vec::new();
            let mut wanted = Vec::new();
            for _ in 0..draw.below(6) {
                let words: Vec<Vec<u8>> = (0..=draw.below(4)).map(|_| draw.bytes(40)).collect();
                input.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
                for word in &words {
                    input.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                    input.extend_from_slice(word);
                    input.extend_from_slice(b"\r\n");
                }
                wanted.push(words);
            }
            assert_eq!(requests(&input, &cuts(draw, input.len()), &Limits::default()), Ok(wanted));
        });
    }

    /// Random and damaged bytes end in requests, a wait or a refusal, the same for any pieces.
    #[test]
    fn any_bytes_are_survived() {
        let base = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n1234\r\nPING 'a' \"b\\x41\"\r\n*1\r\n$4\r\nPING\r\n";
        draw::check("any_bytes_are_survived", 3000, |draw| {
            let mut input = if draw.one_in(4) { draw.bytes(80) } else { base.to_vec() };
            for _ in 0..draw.below(5) {
                if input.is_empty() {
                    break;
                }
                let at = draw.index(input.len());
                input[at] = draw.one_of(b"*$\r\n-0129'\"\\ x\0\xFF");
            }
            let whole = requests(&input, &[], &Limits::default());
            let pieces = requests(&input, &cuts(draw, input.len()), &Limits::default());
            if whole.is_ok() {
                assert_eq!(whole, pieces);
            }
        });
    }

    fn cuts(draw: &mut Draw, size: usize) -> Vec<usize> {
        let mut cuts: Vec<usize> = (0..draw.below(20)).map(|_| draw.index(size + 1)).collect();
        cuts.sort_unstable();
        cuts
    }
}
