//! The nodes of a cluster: who they are, and whether they live.
//!
//! ```text
//! S (78, cluster, node id)   {ID, Cluster, Host, Clock, Time, Status}     as PuzzleDB writes it
//! S (72, cluster, node id)   {beat_ms, incarnation}                       the heartbeat, ours
//! N (host)                   the same record as under S 78                the node at this address
//! ```
//!
//! A node walks joining, up, leaving, down by itself. Others move a node that stops beating to
//! unreachable, and later to down; a node that beats again is up again.

use kumiko_base::cbor::{self, Encoder};
use kumiko_base::tuple::Element;
use kumiko_base::{Category, Value};
use kumiko_kv::{Read, Txn};

use crate::message::{int, limit, text, wrong};
use crate::state::{self, StateType};
use crate::{Error, NodeId};

/// The most nodes of a cluster.
pub const MEMBERS_MAX: usize = 1_000;
/// The longest name of a cluster or a host: both stand in keys.
pub const NAME_BYTES_MAX: usize = 1_000;

/// How a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// Nothing is known.
    Unknown,
    /// It is there and has nothing to do.
    Idle,
    /// It starts.
    Joining,
    /// It works.
    Up,
    /// It stopped, or was silent for long.
    Down,
    /// It stops.
    Leaving,
    /// It is about to end.
    Exiting,
    /// It was taken out of the cluster.
    Removed,
    /// It failed.
    Aborted,
    /// It is silent.
    Unreachable,
}

impl Status {
    /// Every status with its word.
    const WORDS: [(Status, &'static str); 10] = [
        (Status::Unknown, "unknown"),
        (Status::Idle, "idle"),
        (Status::Joining, "joining"),
        (Status::Up, "up"),
        (Status::Down, "down"),
        (Status::Leaving, "leaving"),
        (Status::Exiting, "exiting"),
        (Status::Removed, "removed"),
        (Status::Aborted, "aborted"),
        (Status::Unreachable, "unreachable"),
    ];

    /// The word that is stored.
    pub fn word(self) -> &'static str {
        Status::WORDS.iter().find(|(it, _)| *it == self).map_or("unknown", |(_, word)| word)
    }

    fn of_word(word: &str) -> Option<Status> {
        Status::WORDS.iter().find(|(_, it)| *it == word).map(|(status, _)| *status)
    }

    /// Whether a node in this state takes part.
    pub fn is_live(self) -> bool {
        matches!(self, Status::Joining | Status::Up | Status::Idle | Status::Leaving)
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id, which survives a restart.
    pub id: NodeId,
    /// Its cluster.
    pub cluster: String,
    /// Its address.
    pub host: String,
    /// Its logical clock when the record was written.
    pub clock: u64,
    /// When the record was written, in milliseconds; stored in whole seconds.
    pub time_ms: i64,
    /// How it is.
    pub status: Status,
    /// When it was last heard of, in milliseconds.
    pub beat_ms: i64,
    /// How often it was started. Tells two processes that claim one id apart.
    pub incarnation: u64,
}

impl Member {
    fn address(&self) -> [Element; 2] {
        address(&self.cluster, self.id)
    }

    fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.map(6).text("ID").text(&self.id.to_string());
        encoder.text("Cluster").text(&self.cluster);
        encoder.text("Host").text(&self.host);
        encoder.text("Clock").u64(self.clock);
        encoder.text("Time").date_time(self.time_ms.div_euclid(1000) * 1000);
        encoder.text("Status").text(self.status.word());
        encoder.finish()
    }

    fn of_value(value: &Value) -> Result<Member, String> {
        let status = text(value, "Status")?;
        let time_ms = match value.field("Time") {
            Some(Value::DateTime(ms)) => *ms,
            _ => return Err("the field Time is not a moment".into()),
        };
        Ok(Member {
            id: NodeId::parse(&text(value, "ID")?).ok_or("the field ID is not a UUID")?,
            cluster: text(value, "Cluster")?,
            host: text(value, "Host")?,
            clock: u64::try_from(int(value, "Clock")?).map_err(wrong("Clock"))?,
            time_ms,
            status: Status::of_word(&status).ok_or_else(|| format!("no status is {status}"))?,
            beat_ms: time_ms,
            incarnation: 0,
        })
    }
}

fn address(cluster: &str, id: NodeId) -> [Element; 2] {
    [Element::Text(cluster.into()), Element::Text(id.to_string())]
}

fn host_key(host: &str) -> Vec<u8> {
    Category::Node.key().text(host).finish()
}

/// Writes a node's record and its heartbeat, and the view by host.
pub fn put(txn: &mut dyn Txn, member: &Member) -> Result<(), Error> {
    limit("the name of a cluster", member.cluster.len(), NAME_BYTES_MAX)?;
    limit("the name of a host", member.host.len(), NAME_BYTES_MAX)?;
    let bytes = member.encode();
    txn.put(&state::key(StateType::NODE, &member.address())?, &bytes)?;
    txn.put(&host_key(&member.host), &bytes)?;
    beat(txn, member)
}

/// Writes the heartbeat alone.
pub fn beat(txn: &mut dyn Txn, member: &Member) -> Result<(), Error> {
    let value = Value::Map(vec![
        ("beat_ms".into(), Value::I64(member.beat_ms)),
        ("incarnation".into(), Value::U64(member.incarnation)),
    ]);
    state::put(txn, StateType::HEARTBEAT, &member.address(), &value)
}

/// The node of this id, if it was ever seen.
pub fn get(txn: &mut dyn Txn, cluster: &str, id: NodeId) -> Result<Option<Member>, Error> {
    let address = address(cluster, id);
    let Some(value) = state::get(txn, StateType::NODE, &address)? else { return Ok(None) };
    let mut member = decode(&value, &state::key(StateType::NODE, &address)?)?;
    add_beat(txn, &mut member)?;
    Ok(Some(member))
}

/// The node at an address, if one was ever seen there.
pub fn at_host(txn: &mut dyn Txn, host: &str) -> Result<Option<Member>, Error> {
    let key = host_key(host);
    let Some(bytes) = txn.get(&key, Read::Serializable)? else { return Ok(None) };
    let value = cbor::decode(&bytes).map_err(|error| Error::corrupt(&key, error))?;
    decode(&value, &key).map(Some)
}

/// Every node of the cluster that was ever seen and not forgotten, by id.
pub fn list(txn: &mut dyn Txn, cluster: &str) -> Result<Vec<Member>, Error> {
    let prefix = [Element::Text(cluster.into())];
    let rows = state::list(txn, StateType::NODE, &prefix, MEMBERS_MAX)?;
    let mut members = Vec::new();
    for (elements, value) in rows {
        let mut member = decode(&value, &state::key(StateType::NODE, &elements)?)?;
        add_beat(txn, &mut member)?;
        members.push(member);
    }
    Ok(members)
}

/// Removes a node from the cluster's records.
pub fn forget(txn: &mut dyn Txn, member: &Member) -> Result<(), Error> {
    for kind in [StateType::NODE, StateType::HEARTBEAT, StateType::CURSOR] {
        state::del(txn, kind, &member.address())?;
    }
    if at_host(txn, &member.host)?.is_some_and(|it| it.id == member.id) {
        txn.del(&host_key(&member.host))?;
    }
    Ok(())
}

/// Marks nodes that were silent for `unreachable_ms` as unreachable, and for `down_ms` as down.
/// Returns those whose status changed, with their new status.
pub fn sweep(
    txn: &mut dyn Txn,
    cluster: &str,
    now_ms: i64,
    unreachable_ms: i64,
    down_ms: i64,
) -> Result<Vec<Member>, Error> {
    let mut changed = Vec::new();
    for mut member in list(txn, cluster)? {
        let silent = now_ms.saturating_sub(member.beat_ms);
        let next = match member.status {
            status if status.is_live() && down_ms <= silent => Status::Down,
            Status::Unreachable if down_ms <= silent => Status::Down,
            status if status.is_live() && unreachable_ms <= silent => Status::Unreachable,
            status => status,
        };
        if next != member.status {
            member.status = next;
            let bytes = member.encode();
            txn.put(&state::key(StateType::NODE, &member.address())?, &bytes)?;
            txn.put(&host_key(&member.host), &bytes)?;
            changed.push(member);
        }
    }
    Ok(changed)
}

fn decode(value: &Value, key: &[u8]) -> Result<Member, Error> {
    Member::of_value(value).map_err(|why| Error::corrupt(key, why))
}

fn add_beat(txn: &mut dyn Txn, member: &mut Member) -> Result<(), Error> {
    if let Some(beat) = state::get(txn, StateType::HEARTBEAT, &member.address())? {
        let number = |name| int(&beat, name).ok();
        let beat_ms = number("beat_ms").and_then(|it| i64::try_from(it).ok());
        member.beat_ms = beat_ms.unwrap_or(member.beat_ms);
        let incarnation = number("incarnation").and_then(|it| u64::try_from(it).ok());
        member.incarnation = incarnation.unwrap_or(0);
    }
    Ok(())
}
