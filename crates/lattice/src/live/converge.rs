//! Replicas that write, publish and absorb in any order end up the same.

use kumiko_base::draw::{self, Draw};

use super::tests::{Plains, plain};
use super::{DbId, End, Live, Settings, Source, Ttl, ZaddRule};
use crate::entry::{Entry, merge};
use crate::index::Index;
use crate::replica::absorb::column;
use crate::replica::{Layout, Store};
use crate::sign::{Owner, Signer};

pub(super) struct Node {
    pub(super) live: Live,
    pub(super) id: DbId,
    pub(super) owner: Owner,
    pub(super) now_ms: u64,
}

impl Node {
    pub(super) fn new(number: u8, journal: bool) -> Node {
        let owner = Signer::from_seed(&[number; 32]).owner();
        let settings = Settings {
            replication: true,
            journal,
            column: column(&owner, 1).into_bytes(),
            seed: u64::from(number),
            ..Settings::default()
        };
        let mut live = Live::new(settings);
        let id = live.open(b"0");
        Node { live, id, owner, now_ms: 1_000_000 }
    }

    pub(super) fn state(&mut self) -> Store {
        self.live.fold(self.id, self.now_ms).unwrap();
        let index = self.live.state(self.id).clone();
        Store { database: b"0".to_vec(), index, manifest: None }
    }

    pub(super) fn absorb(&mut self, from: Owner, store: &Store) -> super::Merged {
        let source = Source { owner: &from, layout: Layout::Seed, ahead_max_ms: 30_000 };
        let merged = self.live.absorb(self.id, source, store, self.now_ms).unwrap();
        assert_eq!(merged.refused, 0, "{:?}", merged.refused_keys);
        merged
    }

    pub(super) fn plain(&mut self) -> Plains {
        let mut db = self.live.db(self.id, self.now_ms);
        plain(&mut db)
    }
}

/// One random command of any type on few keys.
fn command(draw: &mut Draw, node: &mut Node) {
    let mut db = node.live.db(node.id, node.now_ms);
    let key = vec![b'k', draw.below(4) as u8];
    let word = draw.below(8).to_string().into_bytes();
    let other = vec![b'k', draw.below(4) as u8];
    let at_ms = node.now_ms + draw.below(300);
    let length = db.llen(&key).unwrap_or(0);
    let index = draw.index(length + 1);
    // A command on another type fails and changes nothing, as it should.
    match draw.below(24) {
        0 => _ = db.set(&key, &word, Ttl::Clear),
        1 => _ = db.set(&key, &word, Ttl::At(at_ms)),
        2..5 => _ = db.incr(&key, draw.below(9) as i64 - 3),
        5 => _ = db.append(&key, &word),
        6..9 => _ = db.hset(&key, &word, &draw.bytes(3)),
        9 => _ = db.hdel(&key, &word),
        10 | 11 => _ = db.sadd(&key, &word),
        12 => _ = db.srem(&key, &word),
        13 | 14 => _ = db.zadd(&key, &word, draw.below(4) as f64, ZaddRule::default()),
        15 => _ = db.zrem(&key, &word),
        16 => _ = db.push(&key, End::Front, &word),
        17 => _ = db.push(&key, End::Back, &word),
        18 => _ = db.pop(&key, End::Front),
        19 => _ = db.linsert(&key, index, &word),
        20 => _ = db.lset(&key, index, &word),
        21 => _ = db.del(&key),
        22 => _ = db.rename(&key, &other, true),
        _ if draw.one_in(30) => _ = db.flush(),
        _ if draw.one_in(2) => _ = db.persist(&key),
        _ => _ = db.expire_at(&key, at_ms),
    }
}

/// The merge of all states, one after the other, entry by entry.
fn sequential(indexes: &[Index]) -> Vec<(Vec<u8>, Entry)> {
    let mut all: std::collections::BTreeMap<Vec<u8>, Entry> = std::collections::BTreeMap::new();
    for index in indexes {
        for it in index {
            let it = it.unwrap();
            let entry = Entry::decode(it.value).unwrap();
            let own = all.entry(it.key_bytes().unwrap().into_owned()).or_default();
            *own = merge(own, &entry).unwrap();
        }
    }
    all.into_iter().collect()
}

#[test]
fn replicas_converge() {
    draw::check("replicas_converge", 12, |draw| {
        let count = 3 + draw.index(5);
        let mut nodes: Vec<Node> = (0..count).map(|it| Node::new(it as u8, false)).collect();
        // Clocks that disagree, within what is tolerated.
        for node in &mut nodes {
            node.now_ms += draw.below(500);
        }
        for _ in 0..40 {
            for node in &mut nodes {
                node.now_ms += draw.below(30);
                for _ in 0..draw.below(5) {
                    command(draw, node);
                }
            }
            let (from, to) = (draw.index(count), draw.index(count));
            let (owner, state) = (nodes[from].owner, nodes[from].state());
            nodes[to].absorb(owner, &state);
        }
        settle(&mut nodes);
    });
}

/// Everybody hears everybody until nothing changes; then all are the same, and the same as one
/// merge after the other.
fn settle(nodes: &mut [Node]) {
    let end_ms = nodes.iter().map(|it| it.now_ms).max().unwrap() + 1000;
    for node in nodes.iter_mut() {
        node.now_ms = end_ms;
    }
    let states: Vec<(Owner, Store)> = nodes.iter_mut().map(|it| (it.owner, it.state())).collect();
    let indexes: Vec<Index> = states.iter().map(|it| it.1.index.clone()).collect();
    let want = sequential(&indexes);
    for node in nodes.iter_mut() {
        for (owner, state) in &states {
            node.absorb(*owner, state);
        }
        let got: Vec<(Vec<u8>, Entry)> = sequential(&[node.live.state(node.id).clone()]);
        assert_eq!(got, want);
    }
    // Expiries that came over take effect; folding them must not tell the replicas apart.
    for _ in 0..3 {
        let states: Vec<(Owner, Store)> =
            nodes.iter_mut().map(|it| (it.owner, it.state())).collect();
        for node in nodes.iter_mut() {
            for (owner, state) in &states {
                node.absorb(*owner, state);
            }
        }
    }
    let first = nodes[0].plain();
    let index = nodes[0].live.state(nodes[0].id).id();
    for node in nodes.iter_mut() {
        assert_eq!(node.plain(), first);
        assert_eq!(node.live.state(node.id).id(), index, "the states have the same bytes");
        check_shown(node);
    }
}

/// What commands see is what the entries say.
pub(super) fn check_shown(node: &mut Node) {
    let shown = node.plain();
    let mut count = 0;
    for it in node.live.state(node.id) {
        let it = it.unwrap();
        let key = it.key_bytes().unwrap().into_owned();
        let entry = Entry::decode(it.value).unwrap();
        let visible = entry.shown(node.now_ms).unwrap();
        assert_eq!(visible.is_some(), shown.contains_key(&key), "{key:?} {entry:?}");
        count += usize::from(visible.is_some());
        if visible.is_some() {
            assert_eq!(shown[&key].1, entry.expiry().1 as u64);
        }
    }
    assert_eq!(count, shown.len());
}

fn snapshot(node: &mut Node) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    node.live.snapshot_begin(1);
    loop {
        match node.live.snapshot_step(100, node.now_ms) {
            super::SnapshotStep::Part(part) => parts.push(part),
            super::SnapshotStep::Last(part) => {
                parts.push(part);
                node.live.take_changes();
                return parts;
            }
            super::SnapshotStep::Restart => panic!("nothing was flushed meanwhile"),
        }
    }
}

/// A restart from the journal has the same data, the same stamps, and the same unpublished changes.
#[test]
fn a_restart_keeps_the_replicated_state() {
    draw::check("a_restart_keeps_the_replicated_state", 15, |draw| {
        let mut nodes = [Node::new(1, true), Node::new(2, false)];
        let mut journal = Vec::new();
        for _ in 0..30 {
            for node in &mut nodes {
                node.now_ms += draw.below(30);
                for _ in 0..draw.below(5) {
                    command(draw, node);
                }
            }
            let [a, b] = &mut nodes;
            match draw.below(4) {
                0 => _ = a.absorb(b.owner, &b.state()),
                1 => _ = b.absorb(a.owner, &a.state()),
                2 if draw.one_in(3) => {
                    _ = a.live.collect(a.id, a.now_ms.saturating_sub(200), a.now_ms).unwrap();
                }
                _ => {}
            }
            journal.push(a.live.take_changes());
            if draw.one_in(10) {
                // From here on, a snapshot stands for all that was before.
                journal = snapshot(a);
            }
        }
        let [a, _] = &mut nodes;
        let mut again = Node::new(1, true);
        again.now_ms = a.now_ms;
        for batch in &journal {
            again.live.replay(batch, None).unwrap();
        }
        assert_eq!(again.live.state(again.id).id(), a.live.state(a.id).id());
        assert_eq!(again.plain(), a.plain());
        // Expiry at the same moment, then the same fold.
        assert_eq!(again.state().index.id(), a.state().index.id());
    });
}
