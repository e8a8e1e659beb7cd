use super::*;
use kumiko_base::draw;
use kumiko_kv::{Engine, Memory};

const ANY: &dyn Fn(&str) -> bool = &|_| true;

fn node(number: u8) -> NodeId {
    NodeId([number; 16])
}

fn with<T>(engine: &Memory, body: impl FnOnce(&mut dyn Txn) -> Result<T, Error>) -> T {
    let mut txn = engine.begin().unwrap();
    let value = body(txn.as_mut()).unwrap();
    txn.commit().unwrap();
    value
}

#[test]
fn a_job_is_submitted_once_claimed_once_and_finished_once() {
    let engine = Memory::new();
    let order = Order::new("build-1", "index", Value::Text("a".into()), 100);
    assert!(with(&engine, |txn| submit(txn, &order, 100)));
    assert!(!with(&engine, |txn| submit(txn, &order, 200)));
    let other = Order { args: Value::Null, ..order.clone() };
    let mut txn = engine.begin().unwrap();
    assert!(matches!(submit(txn.as_mut(), &other, 200), Err(Error::JobExists(_))));
    drop(txn);

    assert_eq!(with(&engine, |txn| claim(txn, node(1), &|kind| kind == "other", 100, 50)), None);
    let job = with(&engine, |txn| claim(txn, node(1), ANY, 100, 50)).unwrap();
    assert_eq!(with(&engine, |txn| claim(txn, node(2), ANY, 149, 50)), None);
    with(&engine, |txn| renew(txn, &job.held(), &Value::I64(7), 140, 50));
    with(&engine, |txn| finish(txn, &job.held(), "built", 180));
    let done = with(&engine, |txn| get(txn, &order.id)).unwrap();
    assert_eq!((done.state, done.ended_ms), (JobState::Done, Some(180)));
    assert_eq!(done.progress, Value::I64(7));
    let mut txn = engine.begin().unwrap();
    assert!(matches!(finish(txn.as_mut(), &job.held(), "again", 190), Err(Error::Lost(_))));
    assert!(matches!(cancel(txn.as_mut(), &order.id, 190), Err(Error::Ended(_))));
}

#[test]
fn a_dead_nodes_job_is_taken_over_and_the_dead_one_cannot_finish_it() {
    let engine = Memory::new();
    with(&engine, |txn| submit(txn, &Order::new("j", "k", Value::Null, 0), 0));
    let first = with(&engine, |txn| claim(txn, node(1), ANY, 0, 50)).unwrap();
    let second = with(&engine, |txn| claim(txn, node(2), ANY, 50, 50)).unwrap();
    assert_eq!(second.history.last().unwrap().what, "taken over");
    for result in [
        |txn: &mut dyn Txn, held: &Held| renew(txn, held, &Value::Null, 60, 50),
        |txn: &mut dyn Txn, held: &Held| finish(txn, held, "", 60),
        |txn: &mut dyn Txn, held: &Held| fail(txn, held, "", 60),
    ] {
        let mut txn = engine.begin().unwrap();
        assert!(matches!(result(txn.as_mut(), &first.held()), Err(Error::Lost(_))));
    }
    with(&engine, |txn| finish(txn, &second.held(), "", 60));
}

#[test]
fn failures_back_off_and_end() {
    let engine = Memory::new();
    let order = Order { attempts_max: 3, pause_ms: 10, ..Order::new("j", "k", Value::Null, 0) };
    with(&engine, |txn| submit(txn, &order, 0));
    let mut now = 0;
    for pause in [10, 20] {
        let job = with(&engine, |txn| claim(txn, node(1), ANY, now, 50)).unwrap();
        with(&engine, |txn| fail(txn, &job.held(), "no luck", now));
        assert_eq!(with(&engine, |txn| claim(txn, node(1), ANY, now + pause - 1, 50)), None);
        now += pause;
    }
    let job = with(&engine, |txn| claim(txn, node(1), ANY, now, 50)).unwrap();
    with(&engine, |txn| fail(txn, &job.held(), "no luck", now));
    let job = with(&engine, |txn| get(txn, &order.id)).unwrap();
    assert_eq!((job.state, job.note.as_str()), (JobState::Failed, "no luck"));
}

#[test]
fn repeated_jobs_come_again_and_never_in_the_past() {
    let engine = Memory::new();
    let order = Order { every_ms: Some(100), ..Order::new("tick", "k", Value::Null, 0) };
    with(&engine, |txn| submit(txn, &order, 0));
    let job = with(&engine, |txn| claim(txn, node(1), ANY, 0, 50)).unwrap();
    with(&engine, |txn| finish(txn, &job.held(), "", 250));
    let job = with(&engine, |txn| get(txn, &order.id)).unwrap();
    assert_eq!((job.state, job.at_ms), (JobState::Waiting, 300));
    with(&engine, |txn| cancel(txn, &order.id, 260));
    assert_eq!(with(&engine, |txn| claim(txn, node(1), ANY, 1000, 50)), None);
}

#[test]
fn history_is_dropped_in_steps() {
    let engine = Memory::new();
    for number in 0..10 {
        let order = Order::new(format!("j{number}"), "k", Value::Null, 0);
        with(&engine, |txn| submit(txn, &order, 0));
        if number % 2 == 0 {
            with(&engine, |txn| cancel(txn, &order.id, 5));
        }
    }
    let mut after = None;
    loop {
        after = with(&engine, |txn| prune(txn, after.as_ref(), 6, 3));
        if after.is_none() {
            break;
        }
    }
    assert_eq!(with(&engine, |txn| list(txn, None, 100)).len(), 5);
}

#[test]
fn limits_on_both_sides() {
    let engine = Memory::new();
    let mut txn = engine.begin().unwrap();
    let name = "x".repeat(NAME_BYTES_MAX);
    submit(txn.as_mut(), &Order::new(name.clone(), "k", Value::Null, 0), 0).unwrap();
    let long = Order::new(name + "x", "k", Value::Null, 0);
    assert!(matches!(submit(txn.as_mut(), &long, 0), Err(Error::TooLarge { .. })));
    // Three bytes of CBOR stand before a text of this length.
    let args = |size| Value::Text("a".repeat(size));
    submit(txn.as_mut(), &Order::new("a", "k", args(PART_BYTES_MAX - 3), 0), 0).unwrap();
    let large = Order::new("b", "k", args(PART_BYTES_MAX - 2), 0);
    assert!(matches!(submit(txn.as_mut(), &large, 0), Err(Error::TooLarge { .. })));
}

/// Many nodes claim, die, come back late, finish and fail: every job takes effect exactly once.
#[test]
fn every_job_takes_effect_once_whatever_happens() {
    draw::check("every_job_takes_effect_once", 200, |draw| {
        let engine = Memory::new();
        let mut effects = std::collections::BTreeMap::new();
        for number in 0..5 {
            let mut order = Order::new(format!("j{number}"), "k", Value::Null, 0);
            order.attempts_max = u32::MAX;
            with(&engine, |txn| submit(txn, &order, 0));
        }
        let mut holding: Vec<Held> = Vec::new();
        let mut now = 0;
        for _ in 0..200 {
            now += draw.below(40) as i64;
            match draw.below(4) {
                0 | 1 => {
                    let id = node(draw.below(3) as u8);
                    holding.extend(
                        with(&engine, |txn| claim(txn, id, ANY, now, 50)).map(|it| it.held()),
                    );
                }
                2 if !holding.is_empty() => {
                    let held = holding.remove(draw.index(holding.len()));
                    let mut txn = engine.begin().unwrap();
                    if finish(txn.as_mut(), &held, "", now).is_ok() {
                        txn.commit().unwrap();
                        *effects.entry(held.id).or_insert(0) += 1;
                    }
                }
                3 if !holding.is_empty() => {
                    let held = holding.remove(draw.index(holding.len()));
                    let mut txn = engine.begin().unwrap();
                    if fail(txn.as_mut(), &held, "bad luck", now).is_ok() {
                        txn.commit().unwrap();
                    }
                }
                _ => {}
            }
        }
        assert!(effects.values().all(|count| *count == 1), "{effects:?}");
    });
}

#[test]
fn no_bytes_make_the_decoder_panic() {
    let mut job = Job::of_order(&Order::new("j", "k", Value::Null, 0), 0);
    job.note_down(1, Some(node(3)), "claimed");
    let good = job.encode().unwrap();
    assert_eq!(Job::decode(&[], &good).unwrap(), job);
    draw::check("no_bytes_make_the_decoder_panic", 2000, |draw| {
        let mut bytes = good.clone();
        for _ in 0..=draw.below(4) {
            let at = draw.index(bytes.len());
            bytes[at] = draw.bits() as u8;
        }
        let _ = Job::decode(&[], &bytes);
    });
}
