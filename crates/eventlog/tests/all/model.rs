//! Random operations against a list in memory, on an engine that fails.

use std::sync::atomic::Ordering;

use kumiko_base::draw::{self, Draw};
use kumiko_eventlog::repair::{Allow, repair};
use kumiko_eventlog::verify::verify;
use kumiko_eventlog::{Error, EventId, Item, PageMax, Writer};
use kumiko_kv::Memory;

use crate::faulty::Faulty;
use crate::{content_bytes, id, log, read_all, stream, writer};

#[derive(Default)]
struct Model {
    first: u64,
    events: Vec<Vec<u8>>,
    snapshots: Vec<u64>,
}

impl Model {
    fn latest(&self) -> u64 {
        self.first + self.events.len() as u64 - 1
    }
}

#[test]
fn random_operations() {
    let cases = std::env::var("CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(150);
    draw::check("random_operations", cases, |draw| {
        let memory = Memory::new();
        let mut engine = Faulty::new(memory.clone(), draw.bits(), 4);
        let mut writing = writer(&engine);
        let mut model = Model { first: 1, ..Model::default() };
        for _ in 0..40 {
            match draw.below(10) {
                0..=2 => append(draw, &engine, &writing, &mut model),
                3 | 4 => append_large(draw, &engine, &writing, &mut model),
                5 => snapshot(draw, &engine, &writing, &mut model),
                6 => truncate(draw, &engine, &writing, &mut model),
                7 => {
                    // The process dies in the middle of a large event, and comes back.
                    let dying = Faulty::new(memory.clone(), draw.bits(), 0);
                    dying.left.store(draw.below(5), Ordering::SeqCst);
                    let event = event(draw, 41, 300);
                    let next = id(model.latest() + 1);
                    if writing.append_from(&dying, next, &mut event.as_slice(), 0).is_ok() {
                        model.events.push(event);
                    }
                    engine = Faulty::new(memory.clone(), draw.bits(), 4);
                    let stale = std::mem::replace(&mut writing, writer(&engine));
                    let refused = stale.append(&engine, next, &[Item::event(b"")]);
                    assert!(matches!(refused, Err(Error::Stale { .. })), "{refused:?}");
                }
                8 => fork(draw, &engine, &writing, &model),
                _ => check(draw, &memory, &model),
            }
        }
        check(draw, &memory, &model);
        let report = verify(&memory, &log(), &mut |_, _| ()).unwrap();
        let repaired = repair(&memory, &log(), "test", Allow::default()).unwrap();
        assert!(repaired.after.is_clean(), "{:?} {:?}", report, repaired.after);
        check(draw, &memory, &model);
    });
}

fn event(draw: &mut Draw, least: u64, most: u64) -> Vec<u8> {
    let size = least + draw.below(most - least);
    (0..size).map(|_| draw.bits() as u8).collect()
}

fn append(draw: &mut Draw, engine: &Faulty, writing: &Writer, model: &mut Model) {
    let events: Vec<Vec<u8>> = (0..=draw.below(5)).map(|_| event(draw, 0, 35)).collect();
    // Sometimes the batch begins with events that are there already.
    let back = draw.below(3).min(model.events.len() as u64);
    let known = &model.events[model.events.len() - back as usize..];
    let items: Vec<Item<'_>> =
        known.iter().chain(&events).map(|event| Item::event(event)).collect();
    let first = id(model.latest() + 1 - back);
    let done = writing.append(engine, first, &items).unwrap();
    model.events.extend(events);
    assert_eq!(done.last.get(), model.latest());
}

fn append_large(draw: &mut Draw, engine: &Faulty, writing: &Writer, model: &mut Model) {
    let event = event(draw, 0, 400);
    let next = id(model.latest() + 1);
    let size = writing.append_from(engine, next, &mut event.as_slice(), 0).unwrap();
    assert_eq!(size, event.len() as u64);
    model.events.push(event);
    let again = writing.append_from(engine, next, &mut model.events.last().unwrap().as_slice(), 0);
    assert_eq!(again, Ok(size));
}

fn snapshot(draw: &mut Draw, engine: &Faulty, writing: &Writer, model: &mut Model) {
    let at = model.first - 1 + draw.below(model.events.len() as u64 + 2);
    let state = format!("state {at} {}", "x".repeat(at as usize % 90));
    let exists = 0 < at && at <= model.latest();
    let result = writing.snapshot(engine, id(at), &mut state.as_bytes());
    assert_eq!(result.is_ok(), exists, "{result:?}");
    if exists && !model.snapshots.contains(&at) {
        model.snapshots.push(at);
    }
}

fn truncate(draw: &mut Draw, engine: &Faulty, writing: &Writer, model: &mut Model) {
    if model.events.is_empty() {
        return;
    }
    let cut = model.first + draw.below(model.events.len() as u64);
    let covered = model.snapshots.iter().any(|at| cut <= *at);
    let result = writing.truncate(engine, id(cut));
    if !covered {
        assert!(matches!(result, Err(Error::Uncovered { .. })), "{result:?}");
        return;
    }
    assert_eq!(result.unwrap().first.get(), cut + 1);
    model.events.drain(..(cut + 1 - model.first) as usize);
    model.first = cut + 1;
    model.snapshots.retain(|at| cut <= *at);
}

fn fork(draw: &mut Draw, engine: &Faulty, writing: &Writer, model: &Model) {
    if model.events.is_empty() {
        return;
    }
    let index = draw.index(model.events.len());
    let mut other = model.events[index].clone();
    other.push(1);
    let at = id(model.first + index as u64);
    let result = writing.append(engine, at, &[Item::event(&other)]);
    assert_eq!(result, Err(Error::Fork { id: at }));
    if 1 < model.first {
        let before = writing.append(engine, id(model.first - 1), &[Item::event(&other)]);
        assert!(matches!(before, Err(Error::Truncated { .. })), "{before:?}");
    }
}

fn check(draw: &mut Draw, engine: &Memory, model: &Model) {
    let max = PageMax { events: 1 + draw.index(20), bytes: 1 + draw.index(200) };
    let expected: Vec<(u64, Vec<u8>)> = (model.first..).zip(model.events.clone()).collect();
    assert_eq!(read_all(engine, &log(), max), expected);
    assert_eq!(read_back(engine, max), expected);
    if let Some((at, event)) = expected.last() {
        assert_eq!(stream(engine, &log(), id(*at)), *event);
    }
    let mut txn = kumiko_kv::Engine::begin(engine).unwrap();
    let mut snapshots = model.snapshots.clone();
    snapshots.sort_unstable();
    let found = log().snapshots(txn.as_mut()).unwrap();
    assert_eq!(found.iter().map(|it| it.id.get()).collect::<Vec<_>>(), snapshots);
}

fn read_back(engine: &Memory, max: PageMax) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut next = Some(EventId::MAX);
    while let Some(from) = next {
        let mut txn = kumiko_kv::Engine::begin(engine).unwrap();
        let page = log().page_back(txn.as_mut(), from, max).unwrap();
        assert!(page.events.len() <= max.events);
        for (id, content) in page.events {
            all.push((id.get(), content_bytes(engine, &log(), id, content)));
        }
        next = page.next;
    }
    all.reverse();
    all
}
