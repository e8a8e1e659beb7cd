//! The MongoDB protocol: messages of BSON documents.
//!
//! ```text
//! length (4, LE)  request (4)  response to (4)  operation (4)  body
//!
//! 2013 message      flags (4), sections, checksum (4) if flag 1
//!                   section 0: one document; section 1: length (4), name, documents
//! 2004 query        flags (4), namespace, skip (4), count (4), document: only for a first hello
//! 1    reply        flags (4), cursor (8), from (4), count (4), documents: answers a query
//! 2012 compressed   operation (4), size (4), compressor (1), body: only compressor 0, which is none
//! ```
//!
//! The documents of a section 1 become an array field of the command, so that a command has one
//! form whichever way it came.

pub mod bson;

use std::fmt;

use kumiko_base::{Kind, Value};

/// The longest message, as we tell clients.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// The longest document, as we tell clients.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most documents in one message.
const DOCUMENTS_MAX: usize = 200_000;

const HEADER_BYTES: usize = 16;
const REPLY: i32 = 1;
const QUERY: i32 = 2004;
const COMPRESSED: i32 = 2012;
const MESSAGE: i32 = 2013;

const FLAG_CHECKSUM: u32 = 1;
const FLAG_MORE_TO_COME: u32 = 2;
/// Flags that a server must know to go on.
const FLAGS_REQUIRED: u32 = 0xFFFF;

/// What is wrong with bytes from a client. The connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl Error {
    /// The kind decides what is logged.
    pub fn kind(&self) -> Kind {
        Kind::Corrupt
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

fn bad(why: impl Into<String>) -> Error {
    Error(why.into())
}

/// A command from a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The client's number for it.
    pub id: i32,
    /// The command, a map.
    pub command: Value,
    /// The client wants no answer.
    pub silent: bool,
    /// It came as a query, and wants a reply of that time.
    pub old: bool,
}

/// How long the message at the start of `bytes` is; `None` if that cannot be told yet.
///
/// # Errors
///
/// If no message can be that long.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = i32::from_le_bytes(*length);
    match usize::try_from(length) {
        Ok(length) if (HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) => Ok(Some(length)),
        _ => Err(bad(format!("a message cannot have {length} bytes"))),
    }
}

/// Reads one whole message.
pub fn decode(message: &[u8]) -> Result<Request, Error> {
    let mut reader = Reader { bytes: message };
    let length = reader.i32()?;
    if usize::try_from(length) != Ok(message.len()) {
        return Err(bad("a message has another length than it says"));
    }
    let id = reader.i32()?;
    reader.i32()?;
    let mut operation = reader.i32()?;
    if operation == COMPRESSED {
        operation = reader.i32()?;
        let size = reader.i32()?;
        if reader.take(1)? != [0] || usize::try_from(size) != Ok(reader.bytes.len()) {
            return Err(bad("a message is compressed, which was not agreed on"));
        }
    }
    match operation {
        MESSAGE => sections(&mut reader, id),
        QUERY => {
            reader.i32()?;
            reader.text()?;
            reader.i32()?;
            reader.i32()?;
            let command = reader.document()?;
            Ok(Request { id, command, silent: false, old: true })
        }
        other => Err(bad(format!("operation {other} is not known"))),
    }
}

fn sections(reader: &mut Reader<'_>, id: i32) -> Result<Request, Error> {
    let flags = reader.i32()?.cast_unsigned();
    if flags & FLAGS_REQUIRED & !(FLAG_CHECKSUM | FLAG_MORE_TO_COME) != 0 {
        return Err(bad("a message has a flag that is not known"));
    }
    if flags & FLAG_CHECKSUM != 0 {
        let size = reader.bytes.len().checked_sub(4).ok_or_else(short)?;
        reader.bytes = &reader.bytes[..size];
    }
    let mut body = None;
    let mut lists: Vec<(String, Value)> = Vec::new();
    while !reader.bytes.is_empty() {
        match reader.take(1)? {
            [0] => {
                if body.replace(reader.document()?).is_some() {
                    return Err(bad("a message has two bodies"));
                }
            }
            [1] => lists.push(list(reader)?),
            _ => return Err(bad("a message has a section that is not known")),
        }
    }
    let Some(Value::Map(mut fields)) = body else { return Err(bad("a message has no body")) };
    for (name, documents) in lists {
        if fields.iter().any(|(it, _)| *it == name) {
            return Err(bad("a message has a field twice"));
        }
        fields.push((name, documents));
    }
    let silent = flags & FLAG_MORE_TO_COME != 0;
    Ok(Request { id, command: Value::Map(fields), silent, old: false })
}

fn list(reader: &mut Reader<'_>) -> Result<(String, Value), Error> {
    let size = usize::try_from(reader.i32()?).map_err(|_| short())?;
    let size = size.checked_sub(4).ok_or_else(short)?;
    let mut inside = Reader { bytes: reader.take(size)? };
    let name = inside.text()?;
    let mut documents = Vec::new();
    while !inside.bytes.is_empty() {
        if DOCUMENTS_MAX <= documents.len() {
            return Err(bad(format!("a message has more than {DOCUMENTS_MAX} documents")));
        }
        documents.push(inside.document()?);
    }
    Ok((name, Value::Array(documents)))
}

fn short() -> Error {
    bad("a message ends too early")
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(short)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn i32(&mut self) -> Result<i32, Error> {
        let (taken, rest) = self.bytes.split_first_chunk::<4>().ok_or_else(short)?;
        self.bytes = rest;
        Ok(i32::from_le_bytes(*taken))
    }

    /// Text up to a zero byte.
    fn text(&mut self) -> Result<String, Error> {
        let end = self.bytes.iter().position(|it| *it == 0).ok_or_else(short)?;
        let text = self.take(end)?;
        self.take(1)?;
        String::from_utf8(text.to_vec()).map_err(|_| bad("a name is not UTF-8"))
    }

    fn document(&mut self) -> Result<Value, Error> {
        let (document, size) = bson::decode_some(self.bytes)?;
        self.take(size)?;
        Ok(document)
    }
}

/// Appends the answer to `request`.
pub fn encode_reply(request: &Request, id: i32, answer: &Value, out: &mut Vec<u8>) {
    let start = out.len();
    let operation = if request.old { REPLY } else { MESSAGE };
    for number in [0, id, request.id, operation] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    if request.old {
        // Flags: can wait for data. No cursor, from zero, one document.
        out.extend_from_slice(&8_i32.to_le_bytes());
        out.extend_from_slice(&[0; 12]);
        out.extend_from_slice(&1_i32.to_le_bytes());
    } else {
        out.extend_from_slice(&[0; 5]);
    }
    bson::encode(answer, out);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use kumiko_base::draw;

    use super::*;

    fn message(flags: u32, sections: &[u8]) -> Vec<u8> {
        let length = (HEADER_BYTES + 4 + sections.len()) as i32;
        let head = [length, 7, 0, MESSAGE, flags.cast_signed()];
        let mut bytes: Vec<u8> = head.iter().flat_map(|it| it.to_le_bytes()).collect();
        bytes.extend_from_slice(sections);
        bytes
    }

    fn ping() -> Value {
        Value::Map(vec![("ping".into(), Value::I32(1))])
    }

    #[test]
    fn messages() {
        let mut sections = vec![0];
        bson::encode(&ping(), &mut sections);
        let plain = message(0, &sections);
        assert_eq!(length(&plain), Ok(Some(plain.len())));
        let request = decode(&plain).unwrap();
        assert_eq!(request, Request { id: 7, command: ping(), silent: false, old: false });
        let mut inside = b"docs\0".to_vec();
        bson::encode(&ping(), &mut inside);
        bson::encode(&ping(), &mut inside);
        sections.push(1);
        sections.extend_from_slice(&(inside.len() as i32 + 4).to_le_bytes());
        sections.extend_from_slice(&inside);
        let request = decode(&message(FLAG_MORE_TO_COME, &sections)).unwrap();
        assert!(request.silent);
        assert_eq!(request.command.field("docs"), Some(&Value::Array(vec![ping(), ping()])));
        let mut reply = Vec::new();
        encode_reply(&request, 9, &ping(), &mut reply);
        assert_eq!(length(&reply), Ok(Some(reply.len())));
        assert!(decode(&message(4, &[])).is_err());
        assert!(decode(&message(0, &[])).is_err());
        assert_eq!(length(&[0, 0, 0]), Ok(None));
        assert!(length(&(MESSAGE_BYTES_MAX as i32 + 1).to_le_bytes()).is_err());
        assert!(length(&15_i32.to_le_bytes()).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut sections = vec![0];
        bson::encode(&ping(), &mut sections);
        let whole = message(0, &sections);
        draw::check("any_bytes_are_read_or_refused", 20_000, |draw| {
            let mut bytes = if draw.one_in(2) { whole.clone() } else { draw.bytes(80) };
            for _ in 0..draw.below(4) {
                if !bytes.is_empty() {
                    let at = draw.index(bytes.len());
                    bytes[at] = draw.bits() as u8;
                }
            }
            let _ = (length(&bytes), decode(&bytes));
        });
    }
}
