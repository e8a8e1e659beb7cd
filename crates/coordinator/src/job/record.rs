//! The stored form of a job.

use kumiko_base::Value;

use super::{Error, JobId, NodeId, Order, PART_BYTES_MAX, cbor, field, int, limit, text, wrong};

/// How many entries of its history a job keeps: the newest.
pub const HISTORY_MAX: usize = 20;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobState {
    /// For its time.
    Waiting,
    /// A node holds it.
    Running,
    /// It took effect.
    Done,
    /// It was tried as often as it may be.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl JobState {
    const WORDS: [(JobState, &'static str); 5] = [
        (JobState::Waiting, "waiting"),
        (JobState::Running, "running"),
        (JobState::Done, "done"),
        (JobState::Failed, "failed"),
        (JobState::Cancelled, "cancelled"),
    ];

    /// The word that is stored and shown.
    pub fn word(self) -> &'static str {
        JobState::WORDS.iter().find(|(it, _)| *it == self).map_or("", |(_, word)| word)
    }
}

/// One line of a job's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub time_ms: i64,
    /// Which node, if one was concerned.
    pub node: Option<NodeId>,
    /// What happened.
    pub what: String,
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// What is to be done.
    pub kind: String,
    /// With what.
    pub args: Value,
    /// Where it stands.
    pub state: JobState,
    /// When it is due while it waits.
    pub at_ms: i64,
    /// How far apart it is repeated.
    pub every_ms: Option<i64>,
    /// How often it was tried since it last took effect.
    pub attempts: u32,
    /// How often it may be tried.
    pub attempts_max: u32,
    /// The pause after the first failure.
    pub pause_ms: i64,
    /// Grows with every claim.
    pub token: u64,
    /// Who holds it.
    pub holder: Option<NodeId>,
    /// Until when.
    pub lease_ms: i64,
    /// How far the work is, in the words of its kind.
    pub progress: Value,
    /// What the last attempt said.
    pub note: String,
    /// When it ended.
    pub ended_ms: Option<i64>,
    /// What happened to it, oldest first.
    pub history: Vec<Entry>,
}

impl Job {
    pub(super) fn of_order(order: &Order, now_ms: i64) -> Job {
        Job {
            id: order.id.clone(),
            kind: order.kind.clone(),
            args: order.args.clone(),
            state: JobState::Waiting,
            at_ms: order.at_ms,
            every_ms: order.every_ms,
            attempts: 0,
            attempts_max: order.attempts_max.max(1),
            pause_ms: order.pause_ms.max(0),
            token: 0,
            holder: None,
            lease_ms: now_ms,
            progress: Value::Null,
            note: String::new(),
            ended_ms: None,
            history: Vec::new(),
        }
    }

    /// Proves that the claim which returned this job is still the newest.
    pub fn held(&self) -> super::Held {
        super::Held { id: self.id.clone(), token: self.token }
    }

    /// When somebody must look at the job; none if it has ended.
    pub fn due_ms(&self) -> Option<i64> {
        match self.state {
            JobState::Waiting => Some(self.at_ms),
            JobState::Running => Some(self.lease_ms),
            JobState::Done | JobState::Failed | JobState::Cancelled => None,
        }
    }

    pub(super) fn note_down(&mut self, time_ms: i64, node: Option<NodeId>, what: &str) {
        self.history.push(Entry { time_ms, node, what: what.to_string() });
        let surplus = self.history.len().saturating_sub(HISTORY_MAX);
        self.history.drain(..surplus);
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, Error> {
        let node = |node: Option<NodeId>| node.map_or(Value::Null, |it| Value::Uuid(it.0));
        let entry = |it: &Entry| {
            Value::Array(vec![
                Value::I64(it.time_ms),
                node(it.node),
                Value::Text(cut(&it.what).to_string()),
            ])
        };
        let optional = |number: Option<i64>| number.map_or(Value::Null, Value::I64);
        let fields = vec![
            ("version", Value::I8(1)),
            ("id", Value::Text(self.id.0.clone())),
            ("kind", Value::Text(self.kind.clone())),
            ("args", self.args.clone()),
            ("state", Value::Text(self.state.word().into())),
            ("at_ms", Value::I64(self.at_ms)),
            ("every_ms", optional(self.every_ms)),
            ("attempts", Value::I64(self.attempts.into())),
            ("attempts_max", Value::I64(self.attempts_max.into())),
            ("pause_ms", Value::I64(self.pause_ms)),
            ("token", Value::number(self.token)),
            ("holder", node(self.holder)),
            ("lease_ms", Value::I64(self.lease_ms)),
            ("progress", self.progress.clone()),
            ("note", Value::Text(cut(&self.note).to_string())),
            ("ended_ms", optional(self.ended_ms)),
            ("history", Value::Array(self.history.iter().map(entry).collect())),
        ];
        for (name, part) in [("args", &self.args), ("progress", &self.progress)] {
            let size =
                cbor::encode(part).map_err(|error| Error::corrupt(name.as_bytes(), error))?;
            limit("the arguments or the progress of a job", size.len(), PART_BYTES_MAX)?;
        }
        let fields = fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        cbor::encode(&Value::Map(fields))
            .map_err(|error| Error::corrupt(self.id.0.as_bytes(), error))
    }

    /// Reads a job back. `key` is for the error only.
    pub fn decode(key: &[u8], bytes: &[u8]) -> Result<Job, Error> {
        let value = cbor::decode(bytes).map_err(|error| Error::corrupt(key, error))?;
        Job::of_value(&value).map_err(|why| Error::corrupt(key, why))
    }

    fn of_value(value: &Value) -> Result<Job, String> {
        if int(value, "version")? != 1 {
            return Err("the job has a version that this program does not know".into());
        }
        let i64_of = |name| i64::try_from(int(value, name)?).map_err(wrong(name));
        let u32_of = |name| u32::try_from(int(value, name)?).map_err(wrong(name));
        let optional = |name| match field(value, name)? {
            Value::Null => Ok(None),
            _ => i64_of(name).map(Some),
        };
        let word = text(value, "state")?;
        let state = JobState::WORDS.iter().find(|(_, it)| *it == word).map(|(state, _)| *state);
        let Value::Array(history) = field(value, "history")? else {
            return Err("the history is not a list".into());
        };
        Ok(Job {
            id: JobId(text(value, "id")?),
            kind: text(value, "kind")?,
            args: field(value, "args")?.clone(),
            state: state.ok_or_else(|| format!("no state is {word}"))?,
            at_ms: i64_of("at_ms")?,
            every_ms: optional("every_ms")?,
            attempts: u32_of("attempts")?,
            attempts_max: u32_of("attempts_max")?,
            pause_ms: i64_of("pause_ms")?,
            token: u64::try_from(int(value, "token")?).map_err(wrong("token"))?,
            holder: node_of(field(value, "holder")?)?,
            lease_ms: i64_of("lease_ms")?,
            progress: field(value, "progress")?.clone(),
            note: text(value, "note")?,
            ended_ms: optional("ended_ms")?,
            history: history.iter().map(entry_of).collect::<Result<Vec<Entry>, String>>()?,
        })
    }
}

/// The longest entry of a history: 20 of them must fit into a value beside the other parts.
const ENTRY_BYTES_MAX: usize = 1_000;

fn cut(text: &str) -> &str {
    let mut end = text.len().min(ENTRY_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn node_of(value: &Value) -> Result<Option<NodeId>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Uuid(id) => Ok(Some(NodeId(*id))),
        _ => Err("a node is not a UUID".into()),
    }
}

fn entry_of(value: &Value) -> Result<Entry, String> {
    let wrong = || "an entry of the history is malformed".to_string();
    let Value::Array(parts) = value else { return Err(wrong()) };
    let [time, node, what] = parts.as_slice() else { return Err(wrong()) };
    let time_ms = time.as_int().and_then(|it| i64::try_from(it).ok()).ok_or_else(wrong)?;
    let what = what.as_text().ok_or_else(wrong)?.to_string();
    Ok(Entry { time_ms, node: node_of(node)?, what })
}
