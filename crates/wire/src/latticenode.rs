//! Frames of the lattice-node protocol.
//!
//! ```text
//! count of bytes (base 128, most significant group first, high bit on all but the last), body
//! ```
//!
//! What is in a body is the business of `lattice`. Here bodies are cut from the stream as it
//! arrives: a length is checked before a byte of its body is kept, so a peer can make us hold at most
//! one body within the limit, and the limit can be raised once the peer is known.

use std::fmt;

/// The longest body that the protocol knows.
pub const BODY_BYTES_MAX: usize = 50_000_000;
/// The longest count: a body's length has at most 28 bits.
const COUNT_BYTES_MAX: usize = 4;

const _: () = assert!(BODY_BYTES_MAX < 1 << (7 * COUNT_BYTES_MAX));

/// Why a stream cannot be read on. The connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The count is not in its shortest form.
    Count,
    /// A body of no bytes.
    Empty,
    /// A body longer than the limit.
    TooLong {
        /// The limit.
        size_max: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Count => write!(to, "the length of a frame is not in its shortest form"),
            Error::Empty => write!(to, "a frame is empty"),
            Error::TooLong { size_max } => write!(to, "a frame is longer than {size_max} bytes"),
        }
    }
}

impl std::error::Error for Error {}

/// Cuts a stream into bodies.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the next frame starts.
    start: usize,
    size_max: usize,
}

impl Frames {
    /// A stream whose bodies have at most `size_max` bytes.
    pub fn new(size_max: usize) -> Frames {
        Frames { bytes: Vec::new(), start: 0, size_max: size_max.min(BODY_BYTES_MAX) }
    }

    /// Changes the limit for the bodies to come.
    pub fn set_limit(&mut self, size_max: usize) {
        self.size_max = size_max.min(BODY_BYTES_MAX);
    }

    /// Takes in bytes as they arrived. Call [`Frames::next`] until it has nothing before the next
    /// call, or memory grows with what the peer sends.
    pub fn push(&mut self, bytes: &[u8]) {
        if 0 < self.start {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next body, if all of it is here.
    ///
    /// # Errors
    ///
    /// The stream is broken for good.
    #[expect(clippy::should_implement_trait, reason = "it can fail, and more may come after None")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        let rest = &self.bytes[self.start..];
        let Some((size, prefix)) = self.length(rest)? else {
            return Ok(None);
        };
        if rest.len() < prefix + size {
            return Ok(None);
        }
        let from = self.start + prefix;
        self.start = from + size;
        Ok(Some(&self.bytes[from..from + size]))
    }

    /// The length of the body and of the count before it, if the count is here.
    fn length(&self, rest: &[u8]) -> Result<Option<(usize, usize)>, Error> {
        let mut size = 0;
        for (at, &byte) in rest.iter().enumerate() {
            if at == 0 && byte == 0x80 {
                return Err(Error::Count);
            }
            size = size << 7 | usize::from(byte & 0x7f);
            if self.size_max < size || COUNT_BYTES_MAX <= at {
                return Err(Error::TooLong { size_max: self.size_max });
            }
            if byte < 0x80 {
                return if size == 0 { Err(Error::Empty) } else { Ok(Some((size, at + 1))) };
            }
        }
        Ok(None)
    }
}

/// Appends a frame.
pub fn put(body: &[u8], to: &mut Vec<u8>) {
    assert!(!body.is_empty() && body.len() <= BODY_BYTES_MAX, "a body is within its bounds");
    let size = body.len();
    for group in (1..COUNT_BYTES_MAX).rev() {
        if size >> (7 * group) != 0 {
            to.push(0x80 | (size >> (7 * group)) as u8);
        }
    }
    to.push(size as u8 & 0x7f);
    to.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use kumiko_base::draw;

    use super::{BODY_BYTES_MAX, Error, Frames, put};

    #[test]
    fn recorded_frames() {
        let ping = [0x80, 2, 0x33, 4, b'P', b'I', b'N', b'G', 0x11, 1];
        let mut stream = Vec::new();
        put(&ping, &mut stream);
        assert_eq!(stream[0], 0x0a);
        let mut long = Vec::new();
        put(&[7; 205], &mut long);
        assert_eq!(long[..2], [0x81, 0x4d]);
        stream.append(&mut long);
        let mut frames = Frames::new(1_000);
        for byte in &stream[..11] {
            assert_eq!(frames.next(), Ok(None));
            frames.push(&[*byte]);
        }
        assert_eq!(frames.next(), Ok(Some(&ping[..])));
        frames.push(&stream[11..]);
        assert_eq!(frames.next(), Ok(Some(&[7; 205][..])));
        assert_eq!(frames.next(), Ok(None));
    }

    #[test]
    fn limits() {
        let next = |size_max: usize, bytes: &[u8]| {
            let mut frames = Frames::new(size_max);
            frames.push(bytes);
            frames.next().map(|it| it.map(<[u8]>::len))
        };
        let body = |size: usize| {
            let mut stream = Vec::new();
            put(&vec![1; size], &mut stream);
            stream
        };
        assert_eq!(next(100, &body(100)), Ok(Some(100)));
        assert_eq!(next(100, &body(101)), Err(Error::TooLong { size_max: 100 }));
        // A length beyond the limit is refused before its body comes.
        assert_eq!(next(100, &[0x81]), Ok(None));
        assert_eq!(next(100, &[0x81, 0x7f]), Err(Error::TooLong { size_max: 100 }));
        assert_eq!(next(usize::MAX, &[0xff; 9]), Err(Error::TooLong { size_max: BODY_BYTES_MAX }));
        assert_eq!(next(100, &[0]), Err(Error::Empty));
        assert_eq!(next(100, &[0x80, 1]), Err(Error::Count));
        let mut frames = Frames::new(10);
        frames.set_limit(100);
        frames.push(&body(100));
        assert!(frames.next().unwrap().is_some());
    }

    #[test]
    fn any_cut_gives_the_same_bodies() {
        draw::check("any_cut_gives_the_same_bodies", 300, |draw| {
            let bodies: Vec<Vec<u8>> =
                (0..draw.below(6)).map(|_| [vec![1], draw.bytes(400)].concat()).collect();
            let mut stream = Vec::new();
            for body in &bodies {
                put(body, &mut stream);
            }
            let mut frames = Frames::new(1_000);
            let mut found = Vec::new();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(1 + draw.index(rest.len()));
                frames.push(now);
                while let Some(body) = frames.next().unwrap() {
                    found.push(body.to_vec());
                }
                rest = later;
            }
            assert_eq!(found, bodies);
            let mut random = Frames::new(1_000);
            random.push(&draw.bytes(50));
            while let Ok(Some(_)) = random.next() {}
        });
    }
}
