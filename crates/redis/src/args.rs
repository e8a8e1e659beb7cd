//! The arguments of one request, and numbers in them.

use kumiko_wire::resp::{Span, number};

use crate::fail::{self, Fail};

/// The arguments of a request: its name is argument 0.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buffer: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// The parts of `buffer` that `spans` name.
    pub fn new(buffer: &'a [u8], spans: &'a [Span]) -> Args<'a> {
        Args { buffer, spans }
    }

    /// How many there are, the name included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none at all.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Argument `index`, which must exist: the command's arity or a look at `len` says so.
    pub fn get(&self, index: usize) -> &'a [u8] {
        self.spans[index].of(self.buffer)
    }

    /// Argument `index`, if there is one.
    pub fn try_get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| span.of(self.buffer))
    }

    /// The arguments from `index` on.
    pub fn from(&self, index: usize) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a> {
        let buffer = self.buffer;
        self.spans.get(index..).unwrap_or(&[]).iter().map(move |span| span.of(buffer))
    }

    /// Arguments `range.start` up to, and without, `range.end`.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Args<'a> {
        Args { buffer: self.buffer, spans: &self.spans[range] }
    }

    /// Whether argument `index` is `word`, in any case of letters.
    pub fn is(&self, index: usize, word: &str) -> bool {
        self.try_get(index).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Argument `index` as a 64-bit integer, or "value is not an integer or out of range".
    pub fn int(&self, index: usize) -> Result<i64, Fail> {
        number::parse_int(self.get(index)).ok_or(fail::NOT_INTEGER)
    }

    /// Argument `index` as a floating point number, or "value is not a valid float".
    pub fn float(&self, index: usize) -> Result<f64, Fail> {
        number::parse_float(self.get(index)).ok_or(fail::NOT_FLOAT)
    }

    /// Argument `index` as a number from `low` to `high`, both included, or `otherwise`.
    pub fn int_within(
        &self,
        index: usize,
        low: i64,
        high: i64,
        otherwise: Fail,
    ) -> Result<i64, Fail> {
        let value = self.int(index)?;
        if (low..=high).contains(&value) { Ok(value) } else { Err(otherwise) }
    }

    /// Argument `index` as lossy text, for messages and names.
    pub fn text(&self, index: usize) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.get(index))
    }

    /// A copy that lives on its own.
    pub fn to_owned(&self) -> OwnedArgs {
        OwnedArgs::from_parts(self.from(0))
    }
}

/// Arguments that were kept: queued in a transaction, or waiting for a key.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    /// Copies the parts, the name first.
    pub fn from_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> OwnedArgs {
        let mut owned = OwnedArgs::default();
        for part in parts {
            let start = owned.buffer.len() as u32;
            owned.buffer.extend_from_slice(part);
            owned.spans.push(Span { start, end: owned.buffer.len() as u32 });
        }
        owned
    }

    /// The arguments.
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.buffer, &self.spans)
    }

    /// How much memory they take.
    pub fn size(&self) -> usize {
        self.buffer.capacity() + self.spans.capacity() * size_of::<Span>()
    }
}
