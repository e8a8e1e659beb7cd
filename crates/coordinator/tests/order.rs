//! Nodes that post and pull at random, with crashes: every node sees every message exactly once,
//! and all see them in one order.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use kumiko_base::draw::{self, Draw};
use kumiko_base::tuple::Element;
use kumiko_coordinator::member::{self, Member};
use kumiko_coordinator::{Dialect, Draft, Mailbox, NodeId, Status, Topic, mailbox};
use kumiko_kv::{Engine, Memory};

fn mailbox(number: u8) -> Mailbox {
    Mailbox::new(NodeId([number; 16]), "c", &format!("host-{number}"), Dialect::Own)
}

fn draft(number: u64) -> Draft {
    Draft::user(b'x', vec![Element::Int(number.into())], number.to_be_bytes().to_vec())
}

fn post(engine: &Memory, mailbox: &mut Mailbox, numbers: &[u64]) {
    let drafts: Vec<Draft> = numbers.iter().map(|number| draft(*number)).collect();
    let mut txn = engine.begin().unwrap();
    let (_, moved) = mailbox.post(txn.as_mut(), &drafts, 0).unwrap();
    txn.commit().unwrap();
    mailbox.apply(moved);
}

fn pull(engine: &Memory, mailbox: &mut Mailbox) -> Vec<u64> {
    let mut txn = engine.begin().unwrap();
    let (messages, moved) = mailbox.pull(txn.as_mut()).unwrap();
    if let Some(cursor) = moved.cursor() {
        mailbox.store_cursor(txn.as_mut(), cursor).unwrap();
    }
    txn.commit().unwrap();
    mailbox.apply(moved);
    messages.iter().map(|it| u64::from_be_bytes(it.object.clone().try_into().unwrap())).collect()
}

/// The reader's clock rises above the sender's when it pulls several messages at once. A reader that
/// takes its clock for its cursor never sees the sender's next message.
#[test]
fn the_message_after_a_pull_of_three_is_seen() {
    let engine = Memory::new();
    let (mut a, mut b) = (mailbox(1), mailbox(2));
    post(&engine, &mut a, &[1, 2, 3]);
    assert_eq!(pull(&engine, &mut b), [1, 2, 3]);
    post(&engine, &mut a, &[4]);
    assert_eq!(pull(&engine, &mut b), [4]);
}

fn run(draw: &mut Draw) {
    let engine = Memory::new();
    let count = 2 + draw.index(3);
    let mut nodes: Vec<Mailbox> = (0..count).map(|it| mailbox(it as u8 + 1)).collect();
    let mut seen: Vec<Vec<u64>> = vec![Vec::new(); count];
    let mut posted = 0;
    for _ in 0..60 {
        let index = draw.index(count);
        match draw.below(5) {
            0 | 1 => {
                let numbers: Vec<u64> = (0..=draw.below(4)).map(|it| posted + it).collect();
                posted += numbers.len() as u64;
                post(&engine, &mut nodes[index], &numbers);
            }
            2 | 3 => seen[index].extend(pull(&engine, &mut nodes[index])),
            _ => {
                // The node loses its memory and takes up the cursor that it stored.
                let mut fresh = mailbox(index as u8 + 1);
                let mut txn = engine.begin().unwrap();
                if nodes[index].cursor() != 0 {
                    fresh.resume(txn.as_mut()).unwrap();
                }
                nodes[index] = fresh;
            }
        }
    }
    for (node, seen) in nodes.iter_mut().zip(&mut seen) {
        seen.extend(pull(&engine, node));
    }
    let mut sorted = seen[0].clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..posted).collect::<Vec<u64>>(), "each message once");
    assert!(seen.iter().all(|it| *it == seen[0]), "one order");
}

#[test]
fn every_node_sees_every_message_once_and_in_one_order() {
    draw::check("every_node_sees_every_message_once", 300, run);
}

#[test]
fn two_posts_at_once_cannot_share_a_clock() {
    let engine = Memory::new();
    let (a, b) = (mailbox(1), mailbox(2));
    let (mut one, mut two) = (engine.begin().unwrap(), engine.begin().unwrap());
    let _ = a.post(one.as_mut(), &[draft(1)], 0).unwrap();
    let _ = b.post(two.as_mut(), &[draft(2)], 0).unwrap();
    one.commit().unwrap();
    assert_eq!(two.commit(), Err(kumiko_kv::Error::Conflict));
}

#[test]
fn the_newest_event_of_a_key_is_kept_for_those_who_come_late() {
    let engine = Memory::new();
    let mut a = mailbox(1);
    post(&engine, &mut a, &[7]);
    post(&engine, &mut a, &[7]);
    let mut txn = engine.begin().unwrap();
    let key = [Element::Int(7)];
    let event = mailbox::newest_event(txn.as_mut(), Topic::User, &key).unwrap().unwrap();
    assert_eq!(event.clock, mailbox::newest(txn.as_mut()).unwrap());
}

#[test]
fn the_last_number_of_the_clock_is_fatal_and_named() {
    let engine = Memory::new();
    let mut txn = engine.begin().unwrap();
    let message = kumiko_coordinator::Message {
        from: NodeId([1; 16]),
        cluster: "c".into(),
        host: "h".into(),
        clock: u64::MAX - 1,
        topic: Topic::User,
        event: kumiko_coordinator::Event::Other(1),
        object: vec![],
        time_ms: Some(0),
    };
    let key = kumiko_coordinator::Message::key(message.clock);
    txn.put(&key, &message.encode(Dialect::Own).unwrap()).unwrap();
    let error = mailbox(1).post(txn.as_mut(), &[draft(1)], 0).unwrap_err();
    assert!(error.to_string().contains("no number left"), "{error}");
}

#[test]
fn old_messages_go_only_below_every_live_cursor_and_the_newest_stays() {
    let engine = Memory::new();
    let (mut a, mut b) = (mailbox(1), mailbox(2));
    for (number, mailbox) in [&a, &b].into_iter().enumerate() {
        let member = Member {
            id: mailbox.node,
            cluster: "c".into(),
            host: format!("host-{number}"),
            clock: 0,
            time_ms: 0,
            status: Status::Up,
            beat_ms: 0,
            incarnation: 1,
        };
        let mut txn = engine.begin().unwrap();
        member::put(txn.as_mut(), &member).unwrap();
        txn.commit().unwrap();
    }
    post(&engine, &mut a, &[1, 2, 3]);
    assert_eq!(pull(&engine, &mut a).len(), 3);
    let discard = |now| {
        let mut txn = engine.begin().unwrap();
        let count = mailbox::discard(txn.as_mut(), "c", now, 1000).unwrap();
        txn.commit().unwrap();
        count
    };
    assert_eq!(discard(5000), 0, "b has read nothing");
    assert_eq!(pull(&engine, &mut b).len(), 3);
    assert_eq!(discard(500), 0, "they are young");
    assert_eq!(discard(5000), 2);
    assert_eq!(discard(5000), 0, "the newest stays");
}

#[test]
fn silent_nodes_are_unreachable_then_down_and_ids_are_found_by_host() {
    let engine = Memory::new();
    let mut txn = engine.begin().unwrap();
    let member = Member {
        id: NodeId([9; 16]),
        cluster: "c".into(),
        host: "10.0.0.9".into(),
        clock: 5,
        time_ms: 1_999,
        status: Status::Up,
        beat_ms: 1_999,
        incarnation: 3,
    };
    member::put(txn.as_mut(), &member).unwrap();
    assert!(member::sweep(txn.as_mut(), "c", 2_000, 100, 1000).unwrap().is_empty());
    let changed = member::sweep(txn.as_mut(), "c", 2_100, 100, 1000).unwrap();
    assert_eq!(changed[0].status, Status::Unreachable);
    let changed = member::sweep(txn.as_mut(), "c", 3_000, 100, 1000).unwrap();
    assert_eq!(changed[0].status, Status::Down);
    assert_eq!(member::at_host(txn.as_mut(), "10.0.0.9").unwrap().unwrap().id, member.id);
    let read = member::get(txn.as_mut(), "c", member.id).unwrap().unwrap();
    assert_eq!((read.beat_ms, read.incarnation), (1_999, 3));
    member::forget(txn.as_mut(), &member).unwrap();
    assert!(member::list(txn.as_mut(), "c").unwrap().is_empty());
    assert!(member::at_host(txn.as_mut(), "10.0.0.9").unwrap().is_none());
}
