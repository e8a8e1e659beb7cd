//! Repairing a log: what can be mended without guessing is, the rest is named.
//!
//! Debris goes, and a missing `latest` is found again from the events. Damaged events are never
//! changed unless the caller asks to cut the log before the first of them.

use kumiko_kv::{Engine, Flow, Range, Read, Scan, retry};

use crate::fence::Fence;
use crate::key::{self, Record};
use crate::log::Log;
use crate::snapshot::{Head, SNAPSHOT};
use crate::verify::{Finding, Report, verify};
use crate::writer::{Take, Writer, retry_all};
use crate::{Error, EventId};

/// What a repair may do beyond removing debris.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Remove keys that are not of the format.
    pub foreign: bool,
    /// Cut the log before its first damaged event. Everything after it is lost.
    pub cut: bool,
    /// Take the log over from a writer that holds it.
    pub take_over: bool,
}

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What was wrong before.
    pub before: Report,
    /// What was done, in words.
    pub actions: Vec<String>,
    /// What is wrong now.
    pub after: Report,
}

/// Verifies the log, mends what can be mended, and verifies it again.
pub fn repair(
    engine: &dyn Engine,
    log: &Log,
    owner: &str,
    allow: Allow,
) -> Result<Repaired, Error> {
    let before = verify(engine, log, &mut |_, _| ())?;
    if before.is_clean() {
        return Ok(Repaired { after: before.clone(), before, actions: Vec::new() });
    }
    let mut actions = Vec::new();
    mend_meta(engine, log, &before, &mut actions)?;
    let take = if allow.take_over { Take::Over } else { Take::IfFree };
    let writer = Writer::open(engine, log, owner, take)?;
    let latest = mend_latest(engine, &writer, &before, allow, &mut actions)?;
    mend_debris(engine, &writer, &before, latest, allow, &mut actions)?;
    writer.release(engine)?;
    let after = verify(engine, log, &mut |_, _| ())?;
    Ok(Repaired { before, actions, after })
}

/// Metadata that would keep a writer from opening.
fn mend_meta(
    engine: &dyn Engine,
    log: &Log,
    before: &Report,
    actions: &mut Vec<String>,
) -> Result<(), Error> {
    for finding in &before.findings {
        match finding {
            Finding::Meta("meta/writer") => {
                retry::run(engine, retry_all(), |txn| {
                    // The epoch is lost, so it starts anew above anything a writer can have had.
                    let epoch = 1 << 32;
                    let fence = Fence { epoch, ..Fence::default() };
                    Ok::<_, Error>(txn.put(&log.writer_key, &fence.encode())?)
                })?;
                actions.push("wrote a new writer fence of epoch 4294967296".into());
            }
            Finding::Schema(_) => {
                let schema = log.keys.meta(key::META_SCHEMA);
                let missing = retry::run(engine, retry_all(), |txn| {
                    let missing = txn.get(&schema, Read::Serializable)?.is_none();
                    if missing {
                        txn.put(&schema, b"0")?;
                    }
                    Ok::<_, Error>(missing)
                })?;
                if !missing {
                    return Err(Error::Schema("another schema version is not repaired".into()));
                }
                actions.push("wrote the schema version 0".into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Finds the latest event again, or cuts the log before the first damaged one.
fn mend_latest(
    engine: &dyn Engine,
    writer: &Writer,
    before: &Report,
    allow: Allow,
    actions: &mut Vec<String>,
) -> Result<EventId, Error> {
    let log = writer.log();
    let lost = before
        .findings
        .iter()
        .any(|it| matches!(it, Finding::NoLatest | Finding::Meta("meta/latest")));
    let cut = before.damaged().filter(|_| allow.cut || lost);
    let latest = if lost && before.latest == EventId::ZERO {
        last_whole(engine, log, before.first)?
    } else {
        cut.map_or(before.latest, EventId::prior)
    };
    if lost || cut.is_some() {
        writer.run(engine, |txn, _| {
            txn.clear(&log.keys.ids(latest.next(), EventId::MAX))?;
            txn.put(&log.keys.meta(key::META_SCHEMA), b"0")?;
            Ok(txn.put(&log.latest_key, &latest.get().to_be_bytes())?)
        })?;
        actions.push(format!("set the latest event to {latest}"));
    }
    Ok(latest)
}

/// The last event of the unbroken run from `first` on.
fn last_whole(engine: &dyn Engine, log: &Log, first: EventId) -> Result<EventId, Error> {
    let mut machine = crate::machine::Machine::new(first);
    let mut range = Some(Range::new(log.keys.id(first), log.keys.events().end));
    let mut broken = false;
    while let Some(part) = range.filter(|_| !broken) {
        let mut txn = engine.begin()?;
        let scan = Scan::new(part).bytes(8_000_000).snapshot();
        range = txn.visit(&scan, &mut |key, value| {
            let step = log.keys.unpack(key).map(|record| machine.step(record, value.len()));
            broken = !matches!(step, Some(Ok(_)));
            if broken { Flow::Stop } else { Flow::Go }
        })?;
    }
    Ok(machine.expected().prior())
}

fn mend_debris(
    engine: &dyn Engine,
    writer: &Writer,
    before: &Report,
    latest: EventId,
    allow: Allow,
    actions: &mut Vec<String>,
) -> Result<(), Error> {
    let log = writer.log();
    let has = |wanted: fn(&Finding) -> bool| before.findings.iter().any(wanted);
    if has(|it| matches!(it, Finding::After(_))) {
        writer.run(engine, |txn, _| Ok(txn.clear(&log.keys.ids(latest.next(), EventId::MAX))?))?;
        actions.push(format!("removed the records after event {latest}"));
    }
    if has(|it| matches!(it, Finding::Before(_))) {
        if before.first == EventId::FIRST {
            writer.run(engine, |txn, _| {
                Ok(txn.clear(&Range::new(log.keys.events().start, log.keys.id(EventId::FIRST)))?)
            })?;
        } else {
            writer.clear_front(engine)?;
        }
        actions.push(format!("removed the records before event {}", before.first));
    }
    for finding in &before.findings {
        match finding {
            Finding::Foreign(key) if allow.foreign => {
                writer.run(engine, |txn, _| Ok(txn.del(key)?))?;
                actions.push(format!("removed the foreign key {}", crate::hex(key)));
            }
            Finding::Blob(number) => {
                writer.run(engine, |txn, _| log.clear_blob(txn, *number))?;
                actions.push(format!("removed the unused blob {number}"));
            }
            Finding::Snapshot(id) if before.first == EventId::FIRST => {
                writer.run(engine, |txn, _| {
                    txn.del(&log.keys.record(Record::Special(*id, SNAPSHOT)))?;
                    for (key, value) in txn.scan(&Scan::new(log.keys.blob_heads()))?.rows {
                        if Head::decode(&value).is_none_or(|head| head.id == *id) {
                            let number = log.keys.strip(&key).and_then(|it| it.get(1..));
                            if let Some(number) = number.and_then(|it| it.try_into().ok()) {
                                log.clear_blob(txn, u64::from_be_bytes(number))?;
                            }
                        }
                    }
                    Ok(())
                })?;
                actions.push(format!("removed the damaged snapshot at event {id}"));
            }
            _ => {}
        }
    }
    Ok(())
}
