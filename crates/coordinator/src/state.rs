//! States by type and key: small records that all nodes see.
//!
//! ```text
//! key    (header S, type, key elements...)
//! value  CBOR
//! ```

use kumiko_base::tuple::{Element, Writer};
use kumiko_base::{Category, Value, cbor};
use kumiko_kv::{Range, Read, Scan, Txn};

use crate::Error;

/// Which kind of state; a letter, as an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateType(pub u8);

impl StateType {
    /// A node of a cluster: (cluster, node id).
    pub const NODE: StateType = StateType(b'N');
    /// When a node was last heard of: (cluster, node id).
    pub const HEARTBEAT: StateType = StateType(b'H');
    /// How far a node has read the messages: (cluster, node id).
    pub const CURSOR: StateType = StateType(b'R');
    /// The clock of the newest message, written with every post, for those who wait: (cluster).
    pub const BELL: StateType = StateType(b'B');
    /// When a message was posted, where the message itself cannot say: (clock).
    pub const TIME: StateType = StateType(b'T');
    /// The jobs by the time at which they are due: (milliseconds, job id).
    pub const DUE: StateType = StateType(b'Q');
}

/// The key of a state.
pub fn key(kind: StateType, elements: &[Element]) -> Result<Vec<u8>, Error> {
    let mut writer: Writer = Category::State.key().int(kind.0);
    for element in elements {
        writer = writer.element(element).map_err(|error| Error::corrupt(&[], error))?;
    }
    Ok(writer.finish())
}

/// The state under a key, if there is one.
pub fn get(txn: &mut dyn Txn, kind: StateType, key: &[Element]) -> Result<Option<Value>, Error> {
    let key = self::key(kind, key)?;
    match txn.get(&key, Read::Serializable)? {
        None => Ok(None),
        Some(bytes) => Ok(Some(decode(&key, &bytes)?)),
    }
}

/// Puts a state under a key.
pub fn put(
    txn: &mut dyn Txn,
    kind: StateType,
    key: &[Element],
    value: &Value,
) -> Result<(), Error> {
    let key = self::key(kind, key)?;
    let bytes = cbor::encode(value).map_err(|error| Error::corrupt(&key, error))?;
    Ok(txn.put(&key, &bytes)?)
}

/// Removes a state.
pub fn del(txn: &mut dyn Txn, kind: StateType, key: &[Element]) -> Result<(), Error> {
    Ok(txn.del(&self::key(kind, key)?)?)
}

/// The states whose key begins with `prefix`: the elements behind the type, and the value. At most
/// `rows_max` of them, in key order.
pub fn list(
    txn: &mut dyn Txn,
    kind: StateType,
    prefix: &[Element],
    rows_max: usize,
) -> Result<Vec<(Vec<Element>, Value)>, Error> {
    let range = Range::prefix(&key(kind, prefix)?);
    let page = txn.scan(&Scan::new(range).rows(rows_max))?;
    page.rows.iter().map(|(key, value)| Ok((elements(key)?, decode(key, value)?))).collect()
}

/// The elements of a state's key behind the type.
fn elements(key: &[u8]) -> Result<Vec<Element>, Error> {
    let corrupt = |error| Error::corrupt(key, error);
    let mut reader = kumiko_base::category::open_as(Category::State, key).map_err(corrupt)?;
    reader.int::<u8>().map_err(corrupt)?;
    let mut elements = Vec::new();
    while let Some(element) = reader.element().map_err(corrupt)? {
        elements.push(element);
    }
    Ok(elements)
}

/// Says what is wrong with a stored state, or with a node's record by host.
pub(crate) fn check(key: &[u8], value: &[u8]) -> Result<(), Error> {
    decode(key, value).map(drop)
}

fn decode(key: &[u8], bytes: &[u8]) -> Result<Value, Error> {
    cbor::decode(bytes).map_err(|error| Error::corrupt(key, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_kv::{Engine, Memory};

    #[test]
    fn put_get_list_del() {
        let engine = Memory::new();
        let mut txn = engine.begin().unwrap();
        let kind = StateType(b'x');
        let name = |text: &str| vec![Element::Text("c".into()), Element::Text(text.into())];
        for text in ["a", "b"] {
            put(txn.as_mut(), kind, &name(text), &Value::Text(text.into())).unwrap();
        }
        put(txn.as_mut(), StateType(b'y'), &name("a"), &Value::Null).unwrap();
        assert_eq!(get(txn.as_mut(), kind, &name("a")).unwrap(), Some(Value::Text("a".into())));
        let all = list(txn.as_mut(), kind, &name("a")[..1], 10).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].0[1].as_text(), Some("b"));
        del(txn.as_mut(), kind, &name("a")).unwrap();
        assert_eq!(get(txn.as_mut(), kind, &name("a")).unwrap(), None);
    }
}
