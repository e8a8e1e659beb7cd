//! Replies, appended to an output buffer in the client's protocol version.
//!
//! The caller says what a reply means (a map, a set, a double, a null); the writer turns it into
//! what the version can express. Version 2 has no maps, sets, doubles, booleans, pushes or big
//! numbers: a map becomes an array of twice the length, a double becomes a bulk string, and so on.

use super::number::{push_float, push_int};

/// Which form a client understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// The form of all clients that never said `HELLO 3`.
    #[default]
    Resp2,
    /// Types of their own for maps, sets, doubles, booleans, nulls and pushes.
    Resp3,
}

/// A place in the output where a header of unknown length is to be put in.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

/// Appends replies to a buffer.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// What was written so far.
    pub out: Vec<u8>,
    /// The form of the replies.
    pub version: Version,
}

impl Writer {
    /// An empty buffer for replies of `version`.
    pub fn new(version: Version) -> Writer {
        Writer { out: Vec::new(), version }
    }

    fn resp3(&self) -> bool {
        self.version == Version::Resp3
    }

    fn header(&mut self, sign: u8, number: i64) {
        self.out.push(sign);
        push_int(&mut self.out, number);
        self.out.extend_from_slice(b"\r\n");
    }

    /// `+text`. The text has no line break.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// `+OK`.
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// `-text`, where the text starts with its code. Line breaks become spaces.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        let clean = text.trim_end_matches(['\r', '\n']).bytes();
        self.out.extend(clean.map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    /// A string of any bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.out.reserve(bytes.len() + 16);
        self.header(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A string, or null.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// An integer as a string of its digits.
    pub fn bulk_int(&mut self, value: i64) {
        let mut digits = Vec::with_capacity(20);
        push_int(&mut digits, value);
        self.bulk(&digits);
    }

    /// A number as a string of its digits, in both versions.
    pub fn bulk_double(&mut self, value: f64) {
        let mut digits = Vec::with_capacity(24);
        push_float(&mut digits, value);
        self.bulk(&digits);
    }

    /// An integer.
    pub fn int(&mut self, value: i64) {
        self.header(b':', value);
    }

    /// A count, as an integer.
    pub fn count(&mut self, value: usize) {
        self.header(b':', value as i64);
    }

    /// No value, where a string was asked for.
    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.resp3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// No value, where an array was asked for.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(if self.resp3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// The head of an array; its elements follow.
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count as i64);
    }

    /// The head of a map; `pairs` times a key and a value follow.
    pub fn map(&mut self, pairs: usize) {
        if self.resp3() {
            self.header(b'%', pairs as i64);
        } else {
            self.header(b'*', 2 * pairs as i64);
        }
    }

    /// The head of a set; its members follow.
    pub fn set(&mut self, count: usize) {
        self.header(if self.resp3() { b'~' } else { b'*' }, count as i64);
    }

    /// The head of a message that answers no request; its elements follow.
    pub fn push(&mut self, count: usize) {
        self.header(if self.resp3() { b'>' } else { b'*' }, count as i64);
    }

    /// A floating point number; a string in version 2.
    pub fn double(&mut self, value: f64) {
        if self.resp3() {
            self.out.push(b',');
            push_float(&mut self.out, value);
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk_double(value);
        }
    }

    /// True or false; 1 or 0 in version 2.
    pub fn bool(&mut self, value: bool) {
        match (self.resp3(), value) {
            (true, true) => self.out.extend_from_slice(b"#t\r\n"),
            (true, false) => self.out.extend_from_slice(b"#f\r\n"),
            (false, _) => self.int(i64::from(value)),
        }
    }

    /// Text with its format of three letters ("txt", "mkd"); a string in version 2.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        assert_eq!(format.len(), 3, "the format of a verbatim string has three letters");
        if !self.resp3() {
            return self.bulk(text);
        }
        self.header(b'=', text.len() as i64 + 4);
        self.out.extend_from_slice(format.as_bytes());
        self.out.push(b':');
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer of any size, given by its digits; a string in version 2.
    pub fn big_number(&mut self, digits: &str) {
        if !self.resp3() {
            return self.bulk(digits.as_bytes());
        }
        self.out.push(b'(');
        self.out.extend_from_slice(digits.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// Remembers this place, to put a header there when the count is known.
    pub fn mark(&self) -> Mark {
        Mark(self.out.len())
    }

    /// Makes what was written since `mark` an array of `count` elements.
    pub fn array_at(&mut self, mark: Mark, count: usize) {
        self.insert(mark, b'*', count);
    }

    /// Makes what was written since `mark` a set of `count` members.
    pub fn set_at(&mut self, mark: Mark, count: usize) {
        self.insert(mark, if self.resp3() { b'~' } else { b'*' }, count);
    }

    /// Makes what was written since `mark` a map of `pairs` keys and values.
    pub fn map_at(&mut self, mark: Mark, pairs: usize) {
        if self.resp3() {
            self.insert(mark, b'%', pairs);
        } else {
            self.insert(mark, b'*', 2 * pairs);
        }
    }

    /// Takes back what was written since `mark`.
    pub fn rewind(&mut self, mark: Mark) {
        self.out.truncate(mark.0);
    }

    /// Whether anything was written since `mark`.
    pub fn wrote_since(&self, mark: Mark) -> bool {
        mark.0 < self.out.len()
    }

    fn insert(&mut self, mark: Mark, sign: u8, count: usize) {
        let mut header = Vec::with_capacity(24);
        header.push(sign);
        push_int(&mut header, count as i64);
        header.extend_from_slice(b"\r\n");
        self.out.splice(mark.0..mark.0, header);
    }
}

#[cfg(test)]
mod tests {
    use super::{Version, Writer};

    /// One of everything, in both versions.
    #[test]
    fn every_type_in_both_versions() {
        fn all(version: Version) -> String {
            let mut reply = Writer::new(version);
            reply.simple("PONG");
            reply.error("ERR two\nlines");
            reply.bulk(b"a\0b");
            reply.int(-7);
            reply.null();
            reply.null_array();
            let mark = reply.mark();
            reply.bulk_int(12);
            reply.double(2.5);
            reply.array_at(mark, 2);
            reply.map(1);
            reply.set(1);
            reply.push(1);
            reply.bool(true);
            reply.verbatim("txt", b"hi");
            reply.big_number("123");
            String::from_utf8(reply.out).unwrap().replace("\r\n", " ").replace('\0', "0")
        }
        assert_eq!(
            all(Version::Resp2),
            "+PONG -ERR two lines $3 a0b :-7 $-1 *-1 *2 $2 12 $3 2.5 *2 *1 *1 :1 $2 hi $3 123 "
        );
        assert_eq!(
            all(Version::Resp3),
            "+PONG -ERR two lines $3 a0b :-7 _ _ *2 $2 12 ,2.5 %1 ~1 >1 #t =6 txt:hi (123 "
        );
    }
}
