//! The event log on the memory engine: the reference's bugs, golden dumps, a model, races.

#![expect(clippy::unwrap_used, reason = "tests may unwrap")]

mod faulty;
mod golden;
mod model;
mod pier;
mod races;
mod reference;
mod subspace;
mod upkeep;

use kumiko_eventlog::{Content, EventId, EventReader, Item, Log, PageMax, Sizes, Take, Writer};
use kumiko_kv::Engine;

/// Events above 10 bytes are cut, above 40 they take several transactions.
const SMALL: Sizes = Sizes { fragment: 10, body: 40 };

fn id(number: u64) -> EventId {
    EventId::new(number).unwrap()
}

fn log() -> Log {
    Log::new(&b"\x01T"[..]).with_sizes(SMALL)
}

fn writer(engine: &dyn Engine) -> Writer {
    Writer::open(engine, &log(), "test", Take::Over).unwrap()
}

/// Some bytes that tell events apart.
fn bytes(seed: u64, size: usize) -> Vec<u8> {
    (0..size).map(|at| (seed as usize * 31 + at * 7 + at / 256) as u8).collect()
}

fn append(engine: &dyn Engine, writer: &Writer, first: u64, events: &[Vec<u8>]) {
    let items: Vec<Item<'_>> = events.iter().map(|it| Item::event(it)).collect();
    writer.append(engine, id(first), &items).unwrap();
}

/// Every event of the log, read page by page.
fn read_all(engine: &dyn Engine, log: &Log, max: PageMax) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut next = Some(log.bounds(engine.begin().unwrap().as_mut(), SNAP).unwrap().first);
    while let Some(from) = next {
        let page = log.page(engine.begin().unwrap().as_mut(), from, max).unwrap();
        for (id, content) in page.events {
            all.push((id.get(), content_bytes(engine, log, id, content)));
        }
        next = page.next;
    }
    all
}

fn content_bytes(engine: &dyn Engine, log: &Log, id: EventId, content: Content) -> Vec<u8> {
    match content {
        Content::Event(bytes) | Content::Special(_, bytes) => bytes,
        Content::Large(size) => {
            let bytes = stream(engine, log, id);
            assert_eq!(bytes.len() as u64, size);
            bytes
        }
    }
}

fn stream(engine: &dyn Engine, log: &Log, id: EventId) -> Vec<u8> {
    let mut reader = EventReader::new(log, id);
    let mut bytes = Vec::new();
    while let Some(part) = reader.next(engine).unwrap() {
        bytes.extend(part);
    }
    bytes
}

const SNAP: kumiko_kv::Read = kumiko_kv::Read::Snapshot;
