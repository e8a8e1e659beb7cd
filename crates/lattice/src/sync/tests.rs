//! Replication between a few nodes, against recorded bytes, and against peers who cheat.

use std::collections::{BTreeMap, VecDeque};

use kumiko_base::draw;

use super::message::Wrong;
use super::{Agent, Code, Effect, Event, Message, PeerId, Settings, Sync};
use crate::cell::golden::hex;
use crate::cell::{Cell, Writer, message};
use crate::index::Batch;
use crate::live::{self, Live};
use crate::replica::{Layout, Place, Publisher, Reason, Received, Trust, Verified};
use crate::sign::Signer;

fn signer(number: u8) -> Signer {
    let mut seed = [0; 32];
    seed[31] = number;
    Signer::from_seed(&seed)
}

fn node_with(number: u8, settings: Settings) -> Sync {
    Sync::new(signer(number), signer(number).owner(), settings, Trust::everyone())
}

fn node(number: u8) -> Sync {
    node_with(number, Settings::default())
}

fn sent(effects: &[Effect]) -> Vec<Vec<u8>> {
    let body = |effect: &Effect| match effect {
        Effect::Send { body, .. } => Some(body.clone()),
        _ => None,
    };
    effects.iter().filter_map(body).collect()
}

const PEER: PeerId = PeerId(7);

fn open(sync: &mut Sync, expected: Option<u8>) -> Vec<Effect> {
    let expected = expected.map(|it| signer(it).owner());
    sync.step(0, Event::Opened { peer: PEER, expected, layout: Layout::Seed, token: [0x22; 32] })
}

const OWNERS: &str = "820131204cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29904c\
    b5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29a17baedfc014db99c4cd03be5d7bc1e8\
    ebe828f10b553d15688d6f77957f709589d0b8406528802dd9f75ddd0ec15e54f3c88d065141eac600fca18aa9ff89\
    05820130026462840130016b80043001761016018bcfe5680000";
const OWNERS_ID: &str = "2394088d04d192e185e9fd948c86ea06fda94eb388f58498eeb70341cca9027b";

/// What a node of another make sent and was answered, byte by byte. OM is the map of owners above,
/// ID its id.
#[test]
fn recorded_exchanges_are_met() {
    let mut sync = node(2);
    open(&mut sync, None);
    let rows = [
        ("8002330450494e471101", "dd0511011601a1e09cf5b0000000"),
        ("8002330450494e47300178", ""),
        ("800333024c5111028000", "dd05110200000000"),
        ("800333024c56800133026b7620ID811eOM", ""),
        ("800333024c5111038000", "dd051103840133026b7620ID000000811eOM"),
        ("800333024c511104800133026b76", "dd05110420ID000000811eOM"),
        ("800333024c511105800130026b76", "dd05110520ID000000811eOM"),
        (
            "800333024c511106800533026b7631204cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aed\
             f0a5ba29330576616c75653002646230016b",
            "dd05110680043001761016018bcfe5680000000000",
        ),
        ("800333024c511107800333046e6f706511011102", "dd05110700000000"),
        (
            "80043302445211093120ID31200000000000000000000000000000000000000000000000000000000000000000",
            "dd051109800220ID00000000811eOM",
        ),
        (
            "800333024452110a31207ad68308ed2ed811a433c6f214cdeb7417b31ee3a37f6ef9adcb9df33a391bb3",
            "dd05110a8001840133026b7620ID000000",
        ),
        ("800233025352110d", ""),
        // A bare root, as older nodes broadcast it, and a value whose branch is missing.
        ("840133026b7620ID", ""),
        (
            "800333024c56800133026b76204cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29",
            "",
        ),
        ("ff0102", "dd0500300d6e6f742061206d6573736167653306464f524d41540000"),
    ];
    for (request, answer) in rows {
        let fill = |text: &str| hex(&text.replace("OM", OWNERS).replace("ID", OWNERS_ID));
        let effects =
            sync.step(0x01a1_e09c_f5b0, Event::Received { peer: PEER, body: &fill(request) });
        // The stranger is told the new root; that is not an answer.
        let answers: Vec<_> =
            sent(&effects).into_iter().filter(|it| it.first() == Some(&0xdd)).collect();
        match answer {
            "" => assert!(answers.is_empty(), "{request}"),
            _ => assert_eq!(answers, [fill(answer)], "{request}"),
        }
    }
    let effects = sync.step(0, Event::Received { peer: PEER, body: &hex("80013303425945") });
    assert!(matches!(effects[..], [Effect::Close { .. }]));
    assert_eq!(Message::Bye.cell().bytes(), hex("80013303425945"));
}

#[test]
fn challenges_are_answered_as_recorded() {
    let token = Cell::blob([0x11; 32]);
    let (me, node_key) = (signer(1), signer(2).owner().cell());
    // Without the context the signatures are those that were recorded; with it they are taken.
    let old = me.sign(&Cell::vector(&[token.clone(), node_key.clone()]));
    let signature = "cb5dc6bd8d336cfec03e663167fbeaf43af6b92f86a7ed5cc1cd18b97cbe37574e787e967e8db80494\
        24b898112b22869852e95b1122e3283061b24e1efd8b08";
    assert_eq!(old.view().signed_parts().unwrap().1.to_vec(), hex(signature));
    let ask = |sync: &mut Sync, id: i64, signed: Cell| {
        let mut body = Vec::new();
        message::encode(&Message::Challenge { id, signed }.cell(), &mut body);
        let effects = sync.step(1, Event::Received { peer: PEER, body: &body });
        message::decode_complete(&sent(&effects)[0]).unwrap()
    };
    let mut sync = node(2);
    open(&mut sync, None);
    let context = Cell::string("convex-lattice-peer-v1");
    let wrong = me.sign(&Cell::vector(&[token.clone(), me.owner().cell(), context.clone()]));
    assert_eq!(
        ask(&mut sync, 12, wrong).bytes(),
        hex("dd05110c301057726f6e6720746172676574206b6579330554525553540000")
    );
    for (signed, text) in [
        (old, "Challenge without context"),
        (Cell::nil(), "Invalid signature"),
        (me.sign(&Cell::vector(&[Cell::nil(), Cell::nil(), context.clone()])), "Malformed token"),
        (me.sign(&Cell::vector(&[token.clone(), node_key.clone(), Cell::nil()])), "Wrong context"),
    ] {
        let answer = Message::of(&ask(&mut sync, 1, signed)).unwrap();
        let result = Err((Code::Trust, text.to_string()));
        assert_eq!(answer, Message::Answer { id: Some(1), result });
    }
    let right = me.sign(&Cell::vector(&[token.clone(), node_key, context.clone()]));
    let Ok(Message::Answer { id: Some(2), result: Ok(answer) }) =
        Message::of(&ask(&mut sync, 2, right))
    else {
        panic!("it has to be answered")
    };
    let wanted = signer(2).sign(&Cell::vector(&[token, me.owner().cell(), context]));
    assert_eq!(answer, wanted);
}

#[test]
fn messages_read_back() {
    let cell = Cell::blob([7; 200]);
    let ids: Vec<_> = (0..254).map(|at| Cell::int(at).id()).collect();
    let messages = [
        Message::Ping { id: 5 },
        Message::Query { id: 6, path: vec![Cell::keyword("kv")] },
        Message::Value { id: None, path: vec![], value: cell.clone() },
        Message::Value { id: Some(7), path: vec![], value: Cell::nil() },
        Message::Fetch { id: 8, ids: ids.clone() },
        Message::Cells { cells: vec![cell.clone(); 3] },
        Message::Challenge { id: 9, signed: signer(1).sign(&cell) },
        Message::Bye,
        Message::Answer { id: Some(10), result: Ok(cell) },
        Message::Answer { id: None, result: Err((Code::Load, "busy".to_string())) },
    ];
    for it in messages {
        let mut body = Vec::new();
        message::encode(&it.cell(), &mut body);
        let cell = message::decode_complete(&body).unwrap();
        assert_eq!(Message::of(&cell), Ok(it));
    }
    let many = Message::Fetch { id: 8, ids: [ids, vec![Cell::int(1).id()]].concat() };
    assert!(matches!(Message::of(&many.cell()), Err(Wrong::Argument(..))));
    let wrong = [Cell::nil(), Cell::vector(&[]), Cell::vector(&[Cell::int(1)]), Cell::string("x")];
    for cell in wrong {
        assert_eq!(Message::of(&cell), Err(Wrong::Unknown));
    }
}

/// Nodes with a connection between some of them. Frames arrive in order, one by one.
struct Net {
    nodes: Vec<Sync>,
    publishers: Vec<Publisher>,
    /// (node, its name for the connection) at both ends.
    links: Vec<[(usize, PeerId); 2]>,
    frames: VecDeque<(usize, PeerId, Vec<u8>)>,
    effects: Vec<(usize, Effect)>,
    sent_bytes: usize,
    now: u64,
}

impl Net {
    fn new(count: u8, settings: Settings) -> Net {
        let publisher = |at: u8| Publisher::new(signer(at + 1), b"db", u64::from(at));
        Net {
            nodes: (0..count).map(|at| node_with(at + 1, settings)).collect(),
            publishers: (0..count).map(publisher).collect(),
            links: Vec::new(),
            frames: VecDeque::new(),
            effects: Vec::new(),
            sent_bytes: 0,
            now: 1_000,
        }
    }

    fn connect(&mut self, one: usize, two: usize, expect: bool) {
        let link = self.links.len() as u64;
        let ends = [(one, PeerId(2 * link)), (two, PeerId(2 * link + 1))];
        self.links.push(ends);
        for (end, other) in [(0, 1), (1, 0)] {
            let (at, peer) = ends[end];
            let expected = expect.then(|| signer(ends[other].0 as u8 + 1).owner());
            let token = [link as u8 + end as u8; 32];
            let layout = Layout::Seed;
            self.step(at, Event::Opened { peer, expected, layout, token });
        }
        self.run();
    }

    fn step(&mut self, at: usize, event: Event<'_>) {
        for effect in self.nodes[at].step(self.now, event) {
            match effect {
                Effect::Send { peer, body } => {
                    let link = self.links[peer.0 as usize / 2];
                    let (to, name) = link[1 - peer.0 as usize % 2];
                    self.sent_bytes += body.len();
                    self.frames.push_back((to, name, body));
                }
                effect => self.effects.push((at, effect)),
            }
        }
    }

    fn run(&mut self) {
        let mut count = 0;
        while let Some((to, peer, body)) = self.frames.pop_front() {
            count += 1;
            assert!(count < 10_000, "the nodes never come to rest");
            self.step(to, Event::Received { peer, body: &body });
            let (from, name) = self.links[peer.0 as usize / 2][1 - peer.0 as usize % 2];
            self.step(from, Event::Drained { peer: name });
        }
    }

    fn publish(&mut self, at: usize, keys: std::ops::Range<u32>) {
        let mut batch = Batch::new();
        for key in keys {
            batch.put_string(format!("key {key} of {at}").as_bytes(), |writer| {
                writer.short_vector(4, |writer| {
                    writer.string(b"value");
                    writer.int(0);
                    writer.int(self.now as i64);
                    writer.int(0);
                });
            });
        }
        let now = self.now;
        let slot = self.publishers[at].publish(&mut batch, &BTreeMap::new(), now).unwrap();
        self.step(at, Event::Published { slots: vec![slot] });
    }

    fn assert_equal(&self) {
        let root = self.nodes[0].root(Layout::Seed);
        assert!(!root.view().is_nil());
        for node in &self.nodes {
            assert_eq!(node.root(Layout::Seed), root);
            assert!(node.root(Layout::Seed).is_complete());
        }
    }
}

#[test]
fn verified_peers_exchange_what_is_new() {
    let mut net = Net::new(3, Settings::default());
    net.publish(0, 0..5_000);
    net.connect(0, 1, true);
    net.connect(1, 2, true);
    net.assert_equal();
    let proved = net.effects.iter().filter(|it| matches!(it.1, Effect::Proved { .. })).count();
    assert_eq!(proved, 4);
    // One more key costs a few cells on each link, and reaches the far end through the middle.
    net.sent_bytes = 0;
    net.publish(0, 5_000..5_001);
    net.run();
    net.assert_equal();
    assert!(net.sent_bytes < 6_000, "{} bytes for one key over two links", net.sent_bytes);
    let generation = net.nodes[0].generation();
    let acked = Effect::Acked { peer: PeerId(0), generation };
    assert!(net.effects.contains(&(0, acked)), "the neighbour says that it has it");
    net.publish(2, 0..10);
    net.run();
    net.assert_equal();
    assert_eq!(net.nodes[0].region().stores(b"db").count(), 2);
    // At rest, an announcement costs next to nothing.
    net.sent_bytes = 0;
    net.now += 30_000;
    (0..3).for_each(|at| net.step(at, Event::Tick));
    net.run();
    assert!(net.sent_bytes < 1_000, "{} bytes at rest", net.sent_bytes);
}

/// A peer that was away pays for what differs.
#[test]
fn returning_costs_the_difference() {
    let mut net = Net::new(2, Settings::default());
    net.publish(0, 0..20_000);
    net.connect(0, 1, false);
    net.assert_equal();
    let whole = net.sent_bytes;
    for at in 0..2 {
        let peer = PeerId(at as u64);
        net.step(at, Event::Closed { peer });
    }
    net.now += 7 * 86_400_000;
    net.publish(0, 100..110);
    net.sent_bytes = 0;
    net.connect(0, 1, false);
    net.assert_equal();
    assert!(net.sent_bytes * 20 < whole, "{} of {whole} bytes", net.sent_bytes);
}

#[test]
fn strangers_get_whole_values_only() {
    let settings = Settings { message_bytes_max: 20_000, ..Settings::default() };
    let mut sync = node_with(1, settings);
    let mut publisher = Publisher::new(signer(1), b"db", 1);
    let mut publish = |sync: &mut Sync, count: u32| {
        let mut batch = Batch::new();
        for key in 0..count {
            batch.put_string(&key.to_be_bytes(), Writer::nil);
        }
        let slot = publisher.publish(&mut batch, &BTreeMap::new(), 1).unwrap();
        sent(&sync.step(9_000, Event::Published { slots: vec![slot] }))
    };
    open(&mut sync, None);
    assert!(publish(&mut sync, 100).is_empty(), "the challenge is still open");
    let effects = sync.step(9_000, Event::Tick);
    let bodies = sent(&effects);
    assert_eq!(bodies.len(), 1);
    message::decode_complete(&bodies[0]).unwrap();
    assert!(publish(&mut sync, 101).is_empty(), "one value at a time");
    assert_eq!(sent(&sync.step(9_000, Event::Drained { peer: PEER })).len(), 1);
    sync.step(9_000, Event::Drained { peer: PEER });
    assert!(publish(&mut sync, 10_000).is_empty(), "too long for a stranger");
    // A query for it is answered with the top cell.
    let mut body = Vec::new();
    message::encode(&Message::Query { id: 1, path: vec![] }.cell(), &mut body);
    let bodies = sent(&sync.step(9_000, Event::Received { peer: PEER, body: &body }));
    assert!(!message::decode(&bodies[0], &mut |_| None).unwrap().is_complete());
    // What a stranger sends in part is not completed.
    let root = sync.root(Layout::Seed).clone();
    let mut other = node(2);
    open(&mut other, None);
    let mut body = Vec::new();
    let push = Message::Value { id: Some(3), path: vec![], value: root };
    message::encode_with(&push.cell(), &[], &mut body);
    let effects = other.step(9_000, Event::Received { peer: PEER, body: &body });
    let answer = message::decode_complete(&sent(&effects)[0]).unwrap();
    assert!(matches!(
        Message::of(&answer),
        Ok(Message::Answer { id: Some(3), result: Err((Code::Trust, _)) })
    ));
    assert!(other.root(Layout::Seed).view().is_nil());
}

#[test]
fn a_peer_with_another_key_is_let_go() {
    let mut net = Net::new(2, Settings::default());
    net.publish(0, 0..10);
    net.links.push([(0, PeerId(0)), (1, PeerId(1))]);
    let layout = Layout::Seed;
    let wrong = Some(signer(9).owner());
    net.step(0, Event::Opened { peer: PeerId(0), expected: wrong, layout, token: [1; 32] });
    net.step(1, Event::Opened { peer: PeerId(1), expected: None, layout, token: [2; 32] });
    net.run();
    assert!(net.effects.iter().any(|it| matches!(it, (0, Effect::Close { .. }))));
    assert!(net.nodes[1].root(Layout::Seed).view().is_nil());
    // One that never answers is let go when its time is up.
    let mut sync = node(1);
    open(&mut sync, Some(2));
    assert_eq!(sync.step(5_000, Event::Tick), []);
    assert!(matches!(sync.step(5_001, Event::Tick)[..], [Effect::Close { .. }]));
}

fn slot(number: u8, key: &str, now: u64) -> Verified {
    let mut batch = Batch::new();
    batch.put_string(key.as_bytes(), Writer::nil);
    let mut publisher = Publisher::new(signer(number), b"db", u64::from(number) + now);
    publisher.publish(&mut batch, &BTreeMap::new(), now).unwrap()
}

fn push(sync: &mut Sync, path: &[Cell], value: &Cell) -> Vec<Effect> {
    let mut body = Vec::new();
    let push = Message::Value { id: None, path: path.to_vec(), value: value.clone() };
    message::encode(&push.cell(), &mut body);
    sync.step(100, Event::Received { peer: PEER, body: &body })
}

#[test]
fn own_slots_are_taken_back_and_twins_are_seen() {
    let owners = |slot: &Verified| Cell::map([(slot.owner().cell(), slot.signed().clone())]);
    let path = [Cell::keyword("kv"), Cell::string("db")];
    let place = Place::Database(b"db".to_vec(), signer(1).owner());
    let mut sync = node(1);
    open(&mut sync, None);
    // Before the first publication, what peers kept of ours is taken back.
    let kept = slot(1, "kept", 50);
    let effects = push(&mut sync, &path, &owners(&kept));
    assert!(effects.contains(&Effect::Taken { place: place.clone() }));
    let mut publisher = Publisher::new(signer(1), b"db", 1);
    publisher.resume(sync.region().get(&place).unwrap());
    let own = publisher.publish(&mut Batch::new(), &BTreeMap::new(), 60).unwrap();
    assert!(own.stores()[0].index.get(b"kept").unwrap().is_some());
    sync.step(100, Event::Published { slots: vec![own] });
    // Afterwards, an old one is nothing, and a newer one is somebody else's.
    assert!(
        !push(&mut sync, &path, &owners(&kept)).contains(&Effect::Twin { place: place.clone() })
    );
    let root = sync.root(Layout::Seed).clone();
    let effects = push(&mut sync, &path, &owners(&slot(1, "twin", 70)));
    assert!(effects.contains(&Effect::Twin { place }));
    assert_eq!(*sync.root(Layout::Seed), root);
    // Two histories of another owner are reported too.
    push(&mut sync, &path, &owners(&slot(3, "one", 80)));
    let effects = push(&mut sync, &path, &owners(&slot(3, "two", 80)));
    assert!(effects.iter().any(|it| matches!(it, Effect::Forked { .. })));
}

#[test]
fn cheats_touch_nobody_else() {
    let good = slot(3, "good", 80);
    let mut sync = node(1);
    open(&mut sync, None);
    let kv = Cell::keyword("kv");
    let database = Cell::string("db");
    let forged = Cell::map([
        (signer(4).owner().cell(), good.signed().clone()),
        (good.owner().cell(), good.signed().clone()),
        (Cell::int(1), good.signed().clone()),
    ]);
    let effects = push(&mut sync, &[kv.clone(), database.clone()], &forged);
    let refused: Vec<Reason> = effects
        .iter()
        .filter_map(|it| match it {
            Effect::Refused { refusal, .. } => Some(refusal.reason),
            _ => None,
        })
        .collect();
    assert_eq!(refused.len(), 2);
    assert!(refused.contains(&Reason::Owner) && refused.contains(&Reason::Shape));
    assert_eq!(sync.region().iter().count(), 1, "the good one is in");
    // No path leads below a signature.
    let root = sync.root(Layout::Seed).clone();
    let me = signer(1).owner().cell();
    let index = good.stores()[0].index.cell();
    for path in [
        vec![kv.clone(), me.clone(), Cell::keyword("value"), database.clone()],
        vec![kv.clone(), me, Cell::keyword("value")],
        vec![Cell::keyword("data")],
    ] {
        push(&mut sync, &path, index);
        assert_eq!(*sync.root(Layout::Seed), root, "{path:?}");
    }
    // Whoever only sends what has to be refused is let go.
    let mut closed = false;
    for _ in 0..100 {
        let effects = push(&mut sync, &[Cell::nil()], index);
        closed |= effects.iter().any(|it| matches!(it, Effect::Close { .. }));
    }
    assert!(closed);
}

#[test]
fn random_bodies_never_panic() {
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    let good = slot(3, "good", 80);
    let owners = Cell::map([(good.owner().cell(), good.signed().clone())]);
    let context = Cell::string("convex-lattice-peer-v1");
    for it in [
        Message::Ping { id: 1 },
        Message::Query { id: 1, path: vec![Cell::keyword("kv"), Cell::string("db")] },
        Message::Value {
            id: Some(1),
            path: vec![Cell::keyword("kv"), Cell::string("db")],
            value: owners,
        },
        Message::Fetch { id: 1, ids: vec![good.signed().id()] },
        Message::Cells { cells: vec![Cell::blob([1; 200])] },
        Message::Challenge {
            id: 1,
            signed: signer(3).sign(&Cell::vector(&[Cell::blob([1; 32]), Cell::nil(), context])),
        },
        Message::Answer { id: Some(2), result: Ok(Cell::nil()) },
    ] {
        let mut body = Vec::new();
        message::encode(&it.cell(), &mut body);
        bodies.push(body);
    }
    draw::check("random_bodies_never_panic", 300, |draw| {
        let mut sync = node(1);
        open(&mut sync, None);
        for _ in 0..draw.below(20) {
            let mut body = if draw.one_in(6) { draw.bytes(100) } else { draw.one_of(&bodies) };
            for _ in 0..draw.below(3) {
                if !body.is_empty() {
                    let at = draw.index(body.len());
                    body[at] = draw.bits() as u8;
                }
            }
            sync.step(draw.below(20_000), Event::Received { peer: PEER, body: &body });
            sync.step(draw.below(20_000), Event::Tick);
        }
        assert!(sync.region().iter().all(|it| *it.signed() == *good.signed()));
    });
}

/// Found by the simulator: a clock jumped while a challenge was open, so its answer came late and was
/// thrown away. The peer that had answered took itself for verified and sent values in part, which
/// were refused as a stranger's, again and again, and nothing of it arrived any more.
#[test]
fn a_late_answer_still_proves_the_key() {
    let mut net = Net::new(2, Settings::default());
    net.links.push([(0, PeerId(0)), (1, PeerId(1))]);
    for at in 0..2 {
        let (peer, layout) = (PeerId(at as u64), Layout::Seed);
        net.step(at, Event::Opened { peer, expected: None, layout, token: [at as u8; 32] });
    }
    net.now += Settings::default().challenge_ms + 1;
    net.step(0, Event::Tick);
    net.run();
    assert_eq!(net.nodes[0].proved(PeerId(0)), Some(signer(2).owner()));
    net.publish(1, 0..1_000);
    net.run();
    net.publish(1, 1_000..1_001);
    net.run();
    net.assert_equal();
    // Each proved its key, once.
    assert_eq!(net.effects.iter().filter(|it| matches!(it.1, Effect::Proved { .. })).count(), 2);
}

/// Found by the simulator: a node whose clock had gone back took its own entries for too far ahead,
/// left them out, and published less than it had.
#[test]
fn own_entries_are_never_too_far_ahead() {
    let owner = signer(1).owner();
    let agent = || Agent::new(signer(1), 1, Settings::default(), Trust::everyone());
    let live = || {
        let column = crate::replica::absorb::column(&owner, 1).into_bytes();
        Live::new(live::Settings { replication: true, column, ..live::Settings::default() })
    };
    let (mut state, mut before) = (live(), agent());
    let id = state.open(b"db");
    state.db(id, 1_000_000).incr(b"hits", 5).unwrap();
    before.start();
    before.publish(&mut state, 1_000_000).unwrap();
    let place = before.sync().own_place(b"db");
    let signed = before.sync().region().get(&place).unwrap().signed().clone();

    let (mut state, mut after) = (live(), agent());
    after.sync_mut().restore(Received::new(place.clone(), signed)).unwrap();
    after.absorb_trusted(&mut state, 10).unwrap();
    after.start();
    after.publish(&mut state, 10).unwrap();
    let slot = after.sync().region().get(&place).unwrap();
    assert!(slot.stores()[0].index.get(b"hits").unwrap().is_some());
    let id = state.open(b"db");
    assert_eq!(state.db(id, 10).get(b"hits").unwrap(), Some(&b"5"[..]));
}
