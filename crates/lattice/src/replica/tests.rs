//! Replicas against known ones, and against owners who cheat.

use std::collections::BTreeMap;

use kumiko_base::draw;

use super::publish::{Converter, from_convex, is_reserved};
use super::region::kv_of;
use super::{
    Absorbed, Layout, Limits, MANIFEST_KEY, Manifest, Outcome, Place, Publisher, Reason, Received,
    Refusal, Region, Trust, Verdict, Verified, absorb,
};
use crate::Error;
use crate::cell::golden::{hex, vectors};
use crate::cell::{Cell, message};
use crate::index::{Batch, Difference, Index};
use crate::replica::absorb::{absorb_all, column, may_speak};
use crate::sign::{Owner, Signer};

const PUSH: &str = include_str!("../../tests/vectors/push.txt");
const TIME: i64 = 1_700_000_000_000;

fn signer(number: u8) -> Signer {
    let mut seed = [0; 32];
    seed[31] = number;
    Signer::from_seed(&seed)
}

fn entry(value: Cell, type_tag: Option<i64>, stamp: i64, expire: Cell) -> Cell {
    let type_tag = type_tag.map_or_else(Cell::nil, Cell::int);
    Cell::vector(&[value, type_tag, Cell::int(stamp), expire])
}

fn text(value: &str, stamp: i64) -> Cell {
    entry(Cell::string(value), Some(0), stamp, Cell::int(0))
}

fn index(entries: &[(&str, Cell)]) -> Index {
    entries.iter().map(|(key, value)| (Cell::string(key), value.clone())).collect()
}

fn row(cells: &[Cell]) -> Cell {
    Cell::vector(cells)
}

/// The eight keys of the known store.
fn known_store() -> Index {
    let int = Cell::int;
    let string = |text: &str| Cell::string(text);
    let by_id = |members: &[(&str, &dyn Fn(Cell) -> Cell)]| -> Cell {
        let entries = members
            .iter()
            .map(|(name, row)| (Cell::blob(string(name).id().as_bytes()), row(string(name))));
        entries.collect::<Index>().cell().clone()
    };
    let hash = index(&[
        ("age", row(&[int(30), int(TIME)])),
        ("name", row(&[string("Alice"), int(TIME)])),
        ("tmp", row(&[Cell::nil(), int(TIME + 1)])),
    ]);
    let set = by_id(&[
        ("alpha", &|it| row(&[it, int(TIME), int(0)])),
        ("beta", &|it| row(&[it, int(TIME), int(TIME + 1)])),
    ]);
    let zset = by_id(&[
        ("a", &|it| row(&[it, Cell::double(1.0), int(TIME), int(0)])),
        ("b", &|it| row(&[it, Cell::double(2.5), int(TIME), int(0)])),
    ]);
    let counter = index(&[("node-0", row(&[int(3), int(1)])), ("node-1", row(&[int(5), int(0)]))]);
    let list = row(&[int(1), int(2), int(3)]);
    let entry = |value: &Cell, type_tag, stamp| entry(value.clone(), type_tag, stamp, Cell::nil());
    index(&[
        ("user:alice", entry(&string("Alice"), Some(0), TIME)),
        ("session", row(&[int(42), int(0), int(TIME), int(TIME + 60_000)])),
        ("gone", entry(&Cell::nil(), None, TIME)),
        ("h", entry(hash.cell(), Some(1), TIME + 1)),
        ("tags", entry(&set, Some(2), TIME + 1)),
        ("z", entry(&zset, Some(3), TIME)),
        ("l", entry(&list, Some(4), TIME)),
        ("hits", entry(counter.cell(), Some(5), TIME)),
    ])
}

#[test]
fn vectors_are_met() {
    let store = known_store();
    let databases = Cell::map([(Cell::string("mydb"), store.cell().clone())]);
    let signed = signer(1).sign(&databases);
    let owners = Cell::map([(signer(1).owner().cell(), signed.clone())]);
    let root: Index = [(Cell::keyword("kv"), owners.clone())].into_iter().collect();
    let path = Cell::vector(&[Cell::keyword("kv")]);
    let push = Cell::vector(&[Cell::keyword("LV"), path, owners.clone()]);
    let part = |key: &str| store.get(key.as_bytes()).unwrap().unwrap().to_cell();
    let value = |key: &str| part(key).view().elements(4).unwrap()[0].to_cell();
    let rows = [
        ("kv value entry \"Alice\"@T", part("user:alice")),
        ("kv value entry 42@T expire T+60000", part("session")),
        ("kv tombstone@T", part("gone")),
        ("kv hash value", value("h")),
        ("kv hash entry", part("h")),
        ("kv set value", value("tags")),
        ("kv set entry", part("tags")),
        ("kv zset value", value("z")),
        ("kv zset entry", part("z")),
        ("kv list entry", part("l")),
        ("kv counter value", value("hits")),
        ("kv counter entry", part("hits")),
        ("kv store (8 keys)", store.cell().clone()),
        ("db map {\"mydb\" store}", databases),
        ("signed db map (seed 1)", signed),
        ("owner map {key1 signed}", owners),
        ("root {:kv ownermap}", root.cell().clone()),
        ("LV payload [:LV [:kv] ownermap]", push.clone()),
    ];
    let vectors = vectors();
    for (name, cell) in rows {
        let vector = vectors.iter().find(|it| it.name == name).unwrap();
        assert_eq!(Some(cell.bytes()), vector.bytes.as_deref(), "{} {name}", vector.number);
        assert_eq!(cell.id().to_string(), vector.id, "{} {name}", vector.number);
    }
    assert_eq!(message::decode_complete(&hex(PUSH.trim())).unwrap(), push);
}

/// The known push, as a region of ours would take it in and pass it on.
#[test]
fn a_convex_replica_is_taken_and_passed_on() {
    let push = message::decode_complete(&hex(PUSH.trim())).unwrap();
    let kv = push.view().elements(3).unwrap()[2].to_cell();
    let (received, refused) = Region::received(kv.view(), &Limits::default());
    assert_eq!((received.len(), refused.len()), (1, 0));
    let mut region = Region::new();
    let trust = Trust::everyone();
    let offer = |region: &mut Region| {
        region.offer(received[0].clone(), &trust, &Limits::default()).unwrap()
    };
    assert_eq!(offer(&mut region), Outcome::Taken);
    assert_eq!(offer(&mut region), Outcome::Same);
    assert_eq!(region.cell(Layout::Convex), kv);
    assert_eq!(region.cell(Layout::Seed), kv);
    assert_eq!(kv_of(&region.root(Layout::Convex)).unwrap(), Some(kv));
    let (slot, store) = region.stores(b"mydb").next().unwrap();
    assert_eq!(slot.place().layout(), Layout::Convex);
    assert_eq!(store.index, known_store());
    assert!(store.manifest.is_none());
    let seed = from_convex(&store.index).unwrap();
    assert_eq!(
        seed.get(b"user:alice").unwrap().unwrap().to_cell(),
        text("Alice", TIME),
        "no expiry is 0 in the layout of the seed"
    );
    let kept = seed.get(b"session").unwrap();
    assert_eq!(kept, store.index.get(b"session").unwrap(), "an expiry stays");
}

fn publisher(number: u8, database: &str) -> Publisher {
    Publisher::new(signer(number), database.as_bytes(), u64::from(number) + 1_000)
}

fn publish(publisher: &mut Publisher, changes: &[(&str, Cell)], now: u64) -> Verified {
    let mut batch = Batch::new();
    for (key, value) in changes {
        batch.put_string(key.as_bytes(), |writer| writer.cell(value));
    }
    publisher.publish(&mut batch, &BTreeMap::new(), now).unwrap()
}

/// Sends a region as bytes, as a peer would, and takes it in.
fn exchange(from: &Region, to: &mut Region, trust: &Trust) -> (Vec<Outcome>, Vec<Refusal>) {
    let mut bytes = Vec::new();
    message::encode(&from.root(Layout::Seed), &mut bytes);
    let kv = kv_of(&message::decode_complete(&bytes).unwrap()).unwrap().unwrap();
    let (received, mut refused) = Region::received(kv.view(), &Limits::default());
    let mut outcomes = Vec::new();
    for slot in received {
        match to.offer(slot, trust, &Limits::default()) {
            Ok(outcome) => outcomes.push(outcome),
            Err(refusal) => refused.push(refusal),
        }
    }
    (outcomes, refused)
}

/// The larger stamp wins: enough of a judge for these tests.
#[expect(clippy::unnecessary_wraps, reason = "the form of a judge")]
fn judge(it: &Difference<'_>) -> Result<Verdict, Error> {
    let stamp = |entry: Option<crate::cell::View<'_>>| entry.and_then(super::stamp_of);
    Ok(match (stamp(it.own), stamp(it.theirs)) {
        (_, Some(2_000_000_000_000..)) => Verdict::Later(2_000_000_000_000),
        (own, theirs) if own < theirs => Verdict::Take,
        _ => Verdict::Keep,
    })
}

fn absorb_everyone(own: &Index, me: u8, region: &Region, trust: &Trust) -> (Index, Vec<Absorbed>) {
    let me = signer(me).owner();
    let mut judge = |_: &Owner, it: &Difference<'_>| judge(it);
    let (index, reports) = absorb_all(own, &me, region, b"db", trust, &|_| true, &mut judge);
    (index, reports.into_iter().map(|(_, done)| done.unwrap()).collect())
}

#[test]
fn owners_converge() {
    let trust = Trust::everyone();
    let (mut one, mut two) = (publisher(1, "db"), publisher(2, "db"));
    let (mut here, mut there) = (Region::new(), Region::new());
    here.take(publish(&mut one, &[("a", text("one", 5)), ("c", text("x", 7))], 100));
    there.take(publish(&mut two, &[("b", text("two", 6)), ("c", text("y", 8))], 100));
    assert_eq!(exchange(&here, &mut there, &trust), (vec![Outcome::Taken], vec![]));
    let (outcomes, _) = exchange(&there, &mut here, &trust);
    assert!(outcomes.len() == 2 && outcomes.contains(&Outcome::Taken));
    assert_eq!(here.cell(Layout::Seed), there.cell(Layout::Seed));
    let (own, done) = absorb_everyone(one.index(), 1, &here, &trust);
    assert_eq!((done.len(), done[0].changed), (1, 2));
    let (other, done) = absorb_everyone(two.index(), 2, &there, &trust);
    assert_eq!((done.len(), done[0].changed), (1, 1));
    let user = |index: &Index| index.remove(MANIFEST_KEY).unwrap();
    assert_eq!(user(&own), user(&other));
    assert_eq!(
        user(&own),
        index(&[("a", text("one", 5)), ("b", text("two", 6)), ("c", text("y", 8))])
    );
    // Old states are known for what they are.
    let old = here.clone();
    here.take(publish(&mut one, &[("a", text("new", 9))], 90));
    assert_eq!(one.sequence(), 101, "a clock that went back does not take the sequence with it");
    let (outcomes, _) = exchange(&old, &mut here, &trust);
    assert!(outcomes.len() == 2 && outcomes.contains(&Outcome::Older));
}

#[test]
fn manifests_read_back() {
    let seen = [(signer(3).owner(), 77), (signer(4).owner(), 78)].into_iter().collect();
    let manifest = Manifest { database: b"db".to_vec(), sequence: 9, incarnation: u64::MAX, seen };
    for layout in [Layout::Seed, Layout::Convex] {
        let entry = Cell::write(|writer| manifest.write(writer, layout));
        assert_eq!(Manifest::decode(entry.view()), Some(manifest.clone()));
    }
    for wrong in [Cell::nil(), text("x", 5), Cell::vector(&[])] {
        assert_eq!(Manifest::decode(wrong.view()), None);
    }
    assert!(is_reserved(MANIFEST_KEY) && !is_reserved(b"kumiko:slot") && !is_reserved(b""));
}

#[test]
fn cheats_are_refused_by_name() {
    let trust = Trust::everyone();
    let good = publish(&mut publisher(1, "db"), &[("a", text("x", 5))], 100);
    let place = |database: &str, number: u8| {
        Place::Database(database.as_bytes().to_vec(), signer(number).owner())
    };
    let index = good.stores()[0].index.cell().clone();
    let bare = known_store();
    let damaged = {
        let mut bytes = good.signed().bytes().to_vec();
        bytes[40] ^= 1;
        let known = good.signed().branches().to_vec();
        let cell = Cell::decode(&bytes).unwrap();
        message::complete(&cell, &mut |id| {
            known.iter().flatten().find(|it| it.id() == *id).cloned()
        })
        .unwrap()
    };
    let big = publish(
        &mut publisher(1, "db"),
        &[("a", text(&"x".repeat(500), 5)), ("b", text("y", 5))],
        100,
    );
    let rows = [
        (place("db", 2), good.signed().clone(), Reason::Owner),
        (place("db", 1), damaged, Reason::Signature),
        (place("db", 1), Cell::nil(), Reason::Shape),
        (place("db", 1), signer(1).sign(&Cell::int(1)), Reason::Shape),
        (place("db", 1), signer(1).sign(bare.cell()), Reason::Manifest),
        (place("other", 1), good.signed().clone(), Reason::Manifest),
        (place("db", 1), Cell::decode(big.signed().bytes()).unwrap(), Reason::Incomplete),
        (Place::Owner(signer(1).owner()), signer(1).sign(&index), Reason::Shape),
        (
            Place::Owner(signer(1).owner()),
            signer(1).sign(&Cell::map([(Cell::string("x"), index.clone())])),
            Reason::Manifest,
        ),
    ];
    let mut region = Region::new();
    region.take(publish(&mut publisher(3, "db"), &[("c", text("z", 5))], 100));
    let before = region.cell(Layout::Seed);
    for (place, signed, reason) in rows {
        let owner = Some(*place.owner());
        let refusal = region.offer(Received::new(place, signed), &trust, &Limits::default());
        assert_eq!(refusal, Err(Refusal { owner, reason }));
    }
    let offer = |region: &mut Region, trust: &Trust, limits: &Limits| {
        let received = Received::new(place("db", 1), good.signed().clone());
        region.offer(received, trust, limits).map_err(|it| it.reason)
    };
    let mut revoking = Trust::everyone();
    revoking.revoke(signer(1).owner());
    assert_eq!(offer(&mut region, &revoking, &Limits::default()), Err(Reason::Revoked));
    let limits = |entries_max, slots_max| Limits { entries_max, slots_max };
    assert_eq!(offer(&mut region, &trust, &limits(1, 10)), Err(Reason::TooLarge));
    assert_eq!(offer(&mut region, &trust, &limits(2, 1)), Err(Reason::TooLarge));
    assert_eq!(region.cell(Layout::Seed), before, "nobody else was touched");
    assert_eq!(offer(&mut region, &trust, &limits(2, 2)), Ok(Outcome::Taken));
    region.forget(&signer(1).owner());
    assert_eq!(region.cell(Layout::Seed), before);
}

#[test]
fn two_states_of_one_number_are_seen() {
    let one = publish(&mut publisher(1, "db"), &[("a", text("x", 5))], 100);
    let two = publish(&mut publisher(1, "db"), &[("a", text("y", 5))], 100);
    let run = |first: &Verified, second: &Verified| {
        let mut region = Region::new();
        region.take(first.clone());
        let outcome = region.take(second.clone());
        assert!(matches!(outcome, Outcome::Forked { .. }), "{outcome:?}");
        region.cell(Layout::Seed)
    };
    assert_eq!(run(&one, &two), run(&two, &one), "all nodes keep the same");
}

#[test]
fn malformed_entries_are_left_out() {
    let own = index(&[("a", text("old", 5))]);
    let negative = index(&[("node", row(&[Cell::int(-1), Cell::int(0)]))]);
    let wrong = [
        Cell::int(1),
        Cell::vector(&[]),
        entry(Cell::int(1), Some(0), 0, Cell::nil()),
        entry(Cell::int(1), Some(7), 5, Cell::nil()),
        entry(Cell::int(1), Some(-1), 5, Cell::nil()),
        entry(Cell::int(1), None, 5, Cell::nil()),
        entry(Cell::int(1), Some(0), 5, Cell::int(-1)),
        entry(Cell::int(1), Some(0), 5, Cell::string("x")),
        entry(Cell::int(1), Some(5), 5, Cell::nil()),
        entry(negative.cell().clone(), Some(5), 5, Cell::nil()),
    ];
    let mut changes: Vec<(String, Cell)> =
        wrong.iter().enumerate().map(|(at, it)| (format!("bad {at}"), it.clone())).collect();
    changes.push(("a".to_string(), text("new", 6)));
    changes.push(("future".to_string(), text("new", 3_000_000_000_000)));
    let changes: Vec<(&str, Cell)> =
        changes.iter().map(|(key, it)| (key.as_str(), it.clone())).collect();
    let slot = publish(&mut publisher(1, "db"), &changes, 100);
    let owner = signer(1).owner();
    let done = absorb(&own, &owner, Layout::Convex, &slot.stores()[0], &mut judge).unwrap();
    assert_eq!(done.refused, wrong.len() as u64);
    assert!(done.refused_keys.iter().all(|(key, _)| key.starts_with(b"bad")));
    assert_eq!(done.changed, 1);
    assert_eq!(done.later, Some(2_000_000_000_000));
    assert_eq!(done.index, index(&[("a", text("new", 6))]));
}

#[test]
fn a_column_is_taken_from_its_owner_only() {
    let (me, other) = (signer(1).owner(), signer(2).owner());
    let (mine, others) = (column(&me, 1), column(&other, 0xabc));
    // owner, layout, column, whether it may speak
    let rows = [
        (&me, Layout::Seed, mine.as_str(), true),
        (&me, Layout::Seed, others.as_str(), false),
        (&other, Layout::Convex, mine.as_str(), false),
        (&me, Layout::Convex, "node-1", true),
        (&me, Layout::Seed, "node-1", false),
        (&me, Layout::Seed, "", false),
    ];
    for (owner, layout, column, may) in rows {
        assert_eq!(may_speak(owner, layout, column.as_bytes()), may, "{column}");
    }
    let counts = |up: i64| row(&[Cell::int(up), Cell::int(0)]);
    let counter =
        |columns: &[(&str, Cell)]| entry(index(columns).cell().clone(), Some(5), 9, Cell::int(0));
    let slot = publish(
        &mut publisher(1, "db"),
        &[("hits", counter(&[(&mine, counts(3)), (&others, counts(1_000_000))]))],
        100,
    );
    let store = &slot.stores()[0];
    let done = absorb(&Index::new(), &me, Layout::Seed, store, &mut judge).unwrap();
    assert_eq!(done.index, index(&[("hits", counter(&[(&mine, counts(3))]))]));
    let done = absorb(&Index::new(), &other, Layout::Seed, store, &mut judge).unwrap();
    assert_eq!(done.index, index(&[("hits", counter(&[(&others, counts(1_000_000))]))]));
    let done = absorb(&Index::new(), &signer(3).owner(), Layout::Seed, store, &mut judge).unwrap();
    assert_eq!((done.changed, done.index), (0, Index::new()));
}

#[test]
fn only_the_trusted_and_wanted_are_merged() {
    let mut region = Region::new();
    for number in 1..=4 {
        let key = format!("from {number}");
        region.take(publish(&mut publisher(number, "db"), &[(&key, text("x", 5))], 100));
    }
    let mut trust = Trust::nobody();
    for number in [2, 3] {
        trust.trust(signer(number).owner());
    }
    let merged = |trust: &Trust, wanted: &dyn Fn(&Owner) -> bool| {
        let mut judge = |_: &Owner, it: &Difference<'_>| judge(it);
        let me = signer(1).owner();
        absorb_all(&Index::new(), &me, &region, b"db", trust, wanted, &mut judge).0.count()
    };
    assert_eq!(merged(&Trust::nobody(), &|_| true), 0);
    assert_eq!(merged(&trust, &|_| true), 2);
    assert_eq!(merged(&trust, &|owner| *owner == signer(2).owner()), 1);
    trust.revoke(signer(2).owner());
    assert_eq!(merged(&trust, &|_| true), 1);
    trust.pardon(&signer(2).owner());
    trust.distrust(&signer(3).owner());
    assert_eq!(merged(&trust, &|_| true), 1);
    assert_eq!(merged(&Trust::everyone(), &|_| true), 3, "all but our own");
}

#[test]
fn convex_peers_get_their_layout() {
    let mut converter = Converter::default();
    let mut database = publisher(1, "db");
    let mut second = publisher(1, "x");
    let expiring = entry(Cell::int(1), Some(0), 5, Cell::int(99));
    let slots = [
        publish(&mut database, &[("a", text("x", 5)), ("b", expiring.clone())], 100),
        publish(&mut second, &[("c", text("z", 5))], 100),
        publish(&mut database, &[("a", text("y", 6))], 101),
    ];
    let mut region = Region::new();
    for slot in &slots {
        region.take(slot.clone());
        let convex = converter.convert(slot, &signer(1)).unwrap();
        assert!(region.take(convex) == Outcome::Taken);
    }
    let kv = region.cell(Layout::Convex);
    let (received, refused) = Region::received(kv.view(), &Limits::default());
    assert_eq!((received.len(), refused.len()), (1, 0));
    let slot = received[0].clone().verify(&Limits::default()).unwrap();
    assert_eq!(slot.stores().len(), 2);
    let store = slot.stores().iter().find(|it| it.database == b"db").unwrap();
    let nil = entry(Cell::string("y"), Some(0), 6, Cell::nil());
    assert_eq!(store.index.get(b"a").unwrap().unwrap().to_cell(), nil);
    assert_eq!(store.index.get(b"b").unwrap().unwrap().to_cell(), expiring);
    let (both, _) = Region::received(region.cell(Layout::Seed).view(), &Limits::default()).clone();
    assert_eq!(both.len(), 3, "two databases of the seed's layout, one slot of Convex's");
}

#[test]
fn a_wiped_owner_goes_on_from_its_slot() {
    let mut before = publisher(1, "db");
    publish(&mut before, &[("a", text("x", 5))], 100);
    let kept = publish(&mut before, &[("b", text("y", 6))], 200);
    let mut wiped = publisher(1, "db");
    wiped.resume(&kept);
    let slot = publish(&mut wiped, &[("c", text("z", 7))], 150);
    assert_eq!(slot.sequence(), Some(201));
    assert_eq!(slot.stores()[0].index.count(), 4, "three keys and the manifest");
}

/// Damage anywhere in a message leaves at most a refusal, and never a panic.
#[test]
fn damaged_replicas_never_panic() {
    let push = hex(PUSH.trim());
    draw::check("damaged_replicas_never_panic", 3_000, |draw| {
        let mut bytes = push.clone();
        for _ in 0..=draw.below(3) {
            let at = draw.index(bytes.len());
            match draw.below(3) {
                0 => bytes[at] ^= 1 << draw.below(8),
                1 => bytes[at] = draw.bits() as u8,
                _ => drop(bytes.drain(at..(at + draw.index(4)).min(bytes.len()))),
            }
        }
        let Ok(cell) = message::decode(&bytes, &mut |_| None) else { return };
        let Ok(elements) = cell.view().elements(3) else { return };
        let Some(kv) = elements.last() else { return };
        let (received, _) = Region::received(*kv, &Limits::default());
        for slot in received {
            if let Ok(slot) = slot.verify(&Limits::default()) {
                assert_eq!(slot.stores()[0].index, known_store(), "the signature covers it all");
            }
        }
    });
}
