//! One message and its bytes.
//!
//! ```text
//! key    (header M, clock)
//! value  {FromID: [16 bytes as integers], FromCluster: text, FromHost: text, MsgClock: u64,
//!         MsgType: u8, EvtType: u8, EncBytes: bytes, MsgTime: moment}
//! ```
//!
//! `MsgTime` is ours; nodes of PuzzleDB refuse a field that they do not know, so in their dialect it
//! is left out and the time stands in a state of its own. Their events differ too: they say U for
//! "created" and O for "deleted". We read both dialects whatever we write.

use kumiko_base::cbor::{self, Encoder};
use kumiko_base::limits::VALUE_BYTES_MAX;
use kumiko_base::tuple::Element;
use kumiko_base::{Category, Value};

use crate::{Error, NodeId};

/// The longest object of a message: a value of the engine, with room for the fields around it.
pub const OBJECT_BYTES_MAX: usize = 90_000;
/// The longest name of a cluster or a host.
pub const NAME_BYTES_MAX: usize = 1_000;

const _: () = assert!(OBJECT_BYTES_MAX + 2 * NAME_BYTES_MAX + 300 < VALUE_BYTES_MAX);

/// How messages are written in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As this specification says, with the time in the message.
    #[default]
    Own,
    /// As nodes of PuzzleDB read it.
    Puzzle,
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// An object of the coordinator store.
    Object,
    /// A database.
    Database,
    /// A collection.
    Collection,
    /// Whatever the users of the coordinator agree on.
    User,
}

impl Topic {
    /// All topics.
    pub const ALL: [Topic; 4] = [Topic::Object, Topic::Database, Topic::Collection, Topic::User];

    /// The letter in the message.
    pub const fn letter(self) -> u8 {
        match self {
            Topic::Object => b'O',
            Topic::Database => b'D',
            Topic::Collection => b'C',
            Topic::User => b'U',
        }
    }

    fn of_letter(letter: u8) -> Option<Topic> {
        Topic::ALL.into_iter().find(|it| it.letter() == letter)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// It is new.
    Created,
    /// It changed.
    Updated,
    /// It is gone.
    Deleted,
    /// An event of a user message: any byte.
    Other(u8),
}

impl Event {
    fn letter(self, topic: Topic, dialect: Dialect) -> u8 {
        match (self, dialect) {
            (Event::Other(byte), _) => byte,
            (Event::Created, Dialect::Puzzle) if topic != Topic::User => b'U',
            (Event::Deleted, Dialect::Puzzle) if topic != Topic::User => b'O',
            (Event::Created, _) => b'C',
            (Event::Updated, _) => b'U',
            (Event::Deleted, _) => b'D',
        }
    }

    fn of_letter(letter: u8, topic: Topic) -> Event {
        match (letter, topic) {
            (byte, Topic::User) => Event::Other(byte),
            (b'C', _) => Event::Created,
            (b'U', _) => Event::Updated,
            (b'D' | b'O', _) => Event::Deleted,
            (byte, _) => Event::Other(byte),
        }
    }
}

/// A message before it has a clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// What it is about.
    pub topic: Topic,
    /// What happened.
    pub event: Event,
    /// The key under which the view of newest events keeps it.
    pub key: Vec<Element>,
    /// The object, as CBOR.
    pub object: Vec<u8>,
}

impl Draft {
    /// A database was created, changed or deleted.
    pub fn database(event: Event, database: &str) -> Draft {
        let object = encode_fields(&[("Database", database)]);
        let key = vec![Element::Text(database.into())];
        Draft { topic: Topic::Database, event, key, object }
    }

    /// A collection was created, changed or deleted.
    pub fn collection(event: Event, database: &str, collection: &str) -> Draft {
        let object = encode_fields(&[("Database", database), ("Collection", collection)]);
        let key = vec![Element::Text(database.into()), Element::Text(collection.into())];
        Draft { topic: Topic::Collection, event, key, object }
    }

    /// A message of the users' own.
    pub fn user(event: u8, key: Vec<Element>, object: Vec<u8>) -> Draft {
        Draft { topic: Topic::User, event: Event::Other(event), key, object }
    }
}

fn encode_fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.map(fields.len());
    for (name, text) in fields {
        encoder.text(name).text(text);
    }
    encoder.finish()
}

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The node that posted it.
    pub from: NodeId,
    /// Its cluster.
    pub cluster: String,
    /// Its host.
    pub host: String,
    /// The logical clock: where the message stands in the one order.
    pub clock: u64,
    /// What it is about.
    pub topic: Topic,
    /// What happened.
    pub event: Event,
    /// The object, as CBOR.
    pub object: Vec<u8>,
    /// When it was posted, in milliseconds since 1970, if the message says so.
    pub time_ms: Option<i64>,
}

impl Message {
    /// The key of the message with this clock.
    pub fn key(clock: u64) -> Vec<u8> {
        Category::Message.key().int(clock).finish()
    }

    /// The bytes of this message.
    pub fn encode(&self, dialect: Dialect) -> Result<Vec<u8>, Error> {
        limit("the object of a message", self.object.len(), OBJECT_BYTES_MAX)?;
        limit("the name of a cluster", self.cluster.len(), NAME_BYTES_MAX)?;
        limit("the name of a host", self.host.len(), NAME_BYTES_MAX)?;
        let time = self.time_ms.filter(|_| dialect == Dialect::Own);
        let mut encoder = Encoder::new();
        encoder.map(7 + usize::from(time.is_some())).text("FromID").array(16);
        for byte in self.from.0 {
            encoder.u8(byte);
        }
        encoder.text("FromCluster").text(&self.cluster);
        encoder.text("FromHost").text(&self.host);
        encoder.text("MsgClock").u64(self.clock);
        encoder.text("MsgType").u8(self.topic.letter());
        encoder.text("EvtType").u8(self.event.letter(self.topic, dialect));
        encoder.text("EncBytes").bytes(&self.object);
        if let Some(time) = time {
            encoder.text("MsgTime").date_time(time);
        }
        Ok(encoder.finish())
    }

    /// Reads a message back. `key` is for the error only.
    pub fn decode(key: &[u8], bytes: &[u8]) -> Result<Message, Error> {
        let value = cbor::decode(bytes).map_err(|error| Error::corrupt(key, error))?;
        Message::of_value(&value).map_err(|why| Error::corrupt(key, why))
    }

    fn of_value(value: &Value) -> Result<Message, String> {
        let number = |name| u64::try_from(int(value, name)?).map_err(wrong(name));
        let letter = |name| u8::try_from(number(name)?).map_err(wrong(name));
        let topic = letter("MsgType")?;
        let topic =
            Topic::of_letter(topic).ok_or_else(|| format!("no topic has the letter {topic}"))?;
        let object = match field(value, "EncBytes")? {
            Value::Bytes(bytes) => bytes.clone(),
            _ => return Err("EncBytes is not a byte string".into()),
        };
        let time_ms = match value.field("MsgTime") {
            None => None,
            Some(Value::DateTime(ms)) => Some(*ms),
            Some(_) => return Err("MsgTime is not a moment".into()),
        };
        Ok(Message {
            from: node_id(field(value, "FromID")?)?,
            cluster: text(value, "FromCluster")?,
            host: text(value, "FromHost")?,
            clock: number("MsgClock")?,
            topic,
            event: Event::of_letter(letter("EvtType")?, topic),
            object,
            time_ms,
        })
    }
}

fn node_id(value: &Value) -> Result<NodeId, String> {
    let bytes: Option<Vec<u8>> = match value {
        Value::Bytes(bytes) => Some(bytes.clone()),
        Value::Uuid(bytes) => Some(bytes.to_vec()),
        Value::Array(items) => {
            items.iter().map(|it| u8::try_from(it.as_int()?).ok()).collect::<Option<Vec<u8>>>()
        }
        _ => None,
    };
    let id = bytes.and_then(|it| <[u8; 16]>::try_from(it).ok());
    id.map(NodeId).ok_or_else(|| "FromID is not 16 bytes".into())
}

pub(crate) fn field<'a>(value: &'a Value, name: &str) -> Result<&'a Value, String> {
    value.field(name).ok_or_else(|| format!("the field {name} is missing"))
}

pub(crate) fn text(value: &Value, name: &str) -> Result<String, String> {
    let text = field(value, name)?.as_text();
    text.map(str::to_string).ok_or_else(|| format!("the field {name} is not text"))
}

pub(crate) fn int(value: &Value, name: &str) -> Result<i128, String> {
    field(value, name)?.as_int().ok_or_else(|| format!("the field {name} is not an integer"))
}

pub(crate) fn wrong<E>(name: &str) -> impl Fn(E) -> String + '_ {
    move |_| format!("the field {name} is out of range")
}

pub(crate) fn limit(what: &'static str, size: usize, size_max: usize) -> Result<(), Error> {
    if size_max < size { Err(Error::TooLarge { what, size, size_max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::{draw, hex};

    fn sample() -> Message {
        let id = hex::parse_uuid("00112233-4455-6677-8899-aabbccddeeff").unwrap();
        Message {
            from: NodeId(id),
            cluster: "puzzledb".into(),
            host: "node-a".into(),
            clock: 300,
            topic: Topic::Database,
            event: Event::Updated,
            object: Draft::database(Event::Updated, "test").object,
            time_ms: Some(1_700_000_000_000),
        }
    }

    /// The bytes that a node of PuzzleDB writes for the same message.
    #[test]
    fn bytes_as_puzzledb_writes_them() {
        let expected = "A7 66 46726F6D4944 90 00 11 1822 1833 1844 1855 1866 1877 1888 1899 18AA 18BB \
                        18CC 18DD 18EE 18FF 6B 46726F6D436C7573746572 68 70757A7A6C656462 \
                        68 46726F6D486F7374 66 6E6F64652D61 68 4D7367436C6F636B 1B000000000000012C \
                        67 4D736754797065 1844 67 45767454797065 1855 68 456E634279746573 4F A1 \
                        68 4461746162617365 64 74657374";
        let expected: String = expected.split_whitespace().collect();
        let bytes = sample().encode(Dialect::Puzzle).unwrap();
        assert_eq!(bytes, hex::parse(&expected).unwrap());
        let read = Message::decode(&[], &bytes).unwrap();
        assert_eq!(read, Message { time_ms: None, ..sample() });
        assert_eq!(Message::key(300), [1, 0x4D, 0x11, 0, 0x16, 1, 0x2C]);
    }

    #[test]
    fn events_in_both_dialects() {
        let rows = [
            (Event::Created, Dialect::Own, b'C', Event::Created),
            (Event::Deleted, Dialect::Own, b'D', Event::Deleted),
            (Event::Created, Dialect::Puzzle, b'U', Event::Updated),
            (Event::Deleted, Dialect::Puzzle, b'O', Event::Deleted),
        ];
        for (event, dialect, letter, read) in rows {
            assert_eq!(event.letter(Topic::Collection, dialect), letter);
            assert_eq!(Event::of_letter(letter, Topic::Collection), read);
        }
    }

    #[test]
    fn limits_on_both_sides() {
        let mut message = Message { object: vec![0; OBJECT_BYTES_MAX], ..sample() };
        message.host = "h".repeat(NAME_BYTES_MAX);
        assert!(message.encode(Dialect::Own).unwrap().len() <= VALUE_BYTES_MAX);
        message.object.push(0);
        assert!(message.encode(Dialect::Own).is_err());
        let message = Message { host: "h".repeat(NAME_BYTES_MAX + 1), ..sample() };
        assert!(message.encode(Dialect::Own).is_err());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic() {
        let good = sample().encode(Dialect::Own).unwrap();
        assert_eq!(Message::decode(&[], &good).unwrap(), sample());
        draw::check("no_bytes_make_the_decoder_panic", 3000, |draw| {
            let mut bytes = if draw.one_in(2) { good.clone() } else { draw.bytes(80) };
            for _ in 0..draw.below(4) {
                if !bytes.is_empty() {
                    let at = draw.index(bytes.len());
                    bytes[at] = draw.bits() as u8;
                }
            }
            let _ = Message::decode(&[], &bytes);
        });
    }
}
