//! One honest node: the live structure and the agent, a clock of its own, and a disk that keeps
//! what was published.

use std::collections::BTreeMap;

use kumiko_base::draw::Draw;
use kumiko_lattice::cell::Cell;
use kumiko_lattice::index::Index;
use kumiko_lattice::live::{DbId, End, Live, Settings, Ttl, ZaddRule};
use kumiko_lattice::replica::{Place, Received, Trust};
use kumiko_lattice::sign::{Owner, Signer};
use kumiko_lattice::sync::{self, Agent, Effect, Event, State};

/// The database that everything happens in.
pub const DATABASE: &[u8] = b"0";
/// Keys of any type.
pub const KEYS: u64 = 5;
/// Keys that are only ever counted up and down.
pub const COUNTERS: u64 = 3;

/// One honest node.
pub struct Node {
    /// Its key.
    pub signer: Signer,
    /// What commands run on.
    pub live: Live,
    id: DbId,
    /// Replication.
    pub agent: Agent,
    /// Whether it runs.
    pub up: bool,
    /// How far its clock is ahead of true time.
    pub offset_ms: i64,
    /// What is on its disk: our own slot as last published.
    disk: Option<(Place, Cell)>,
    /// What was counted since the last publication.
    unpublished: BTreeMap<Vec<u8>, i64>,
    trust: Trust,
}

impl Node {
    /// A new node. `owners` are the honest ones.
    pub fn new(number: u8, owners: &[Owner]) -> Node {
        let signer = Signer::from_seed(&[number; 32]);
        let mut trust = Trust::nobody();
        for owner in owners {
            trust.trust(*owner);
        }
        let (live, id) = live(&signer);
        let mut agent = agent(&signer, &trust);
        agent.start();
        let unpublished = BTreeMap::new();
        Node { signer, live, id, agent, up: true, offset_ms: 0, disk: None, unpublished, trust }
    }

    /// The time on the node's own clock.
    pub fn clock(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(self.offset_ms)
    }

    /// Runs a random command.
    pub fn command(&mut self, draw: &mut Draw, now_ms: u64) {
        let now_ms = self.clock(now_ms);
        let mut db = self.live.db(self.id, now_ms);
        if draw.one_in(3) {
            let key = format!("counter {}", draw.below(COUNTERS)).into_bytes();
            let by = draw.below(20) as i64 - 8;
            db.incr(&key, by).expect("a counter is never anything else");
            *self.unpublished.entry(key).or_default() += by;
            return;
        }
        let key = format!("key {}", draw.below(KEYS)).into_bytes();
        let word = draw.below(6).to_string().into_bytes();
        // A command on a key of another type fails and changes nothing.
        match draw.below(14) {
            0 | 1 => drop(db.set(&key, &word, Ttl::Clear)),
            2 => drop(db.set(&key, &word, Ttl::At(now_ms + 1 + draw.below(60_000)))),
            3 => drop(db.hset(&key, &word, &draw.bytes(200))),
            4 => drop(db.hdel(&key, &word)),
            5 | 6 => drop(db.sadd(&key, &word)),
            7 => drop(db.srem(&key, &word)),
            8 => drop(db.zadd(&key, &word, draw.below(5) as f64, ZaddRule::default())),
            9 => drop(db.push(&key, End::Back, &word)),
            10 => drop(db.pop(&key, End::Front)),
            11 => drop(db.append(&key, &word)),
            12 => drop(db.expire_at(&key, now_ms + draw.below(60_000))),
            _ => drop(db.del(&key)),
        }
    }

    /// Publishes what changed; hands what was counted to `counted`, since it is durable now.
    pub fn publish(&mut self, now_ms: u64, counted: &mut BTreeMap<Vec<u8>, i64>) -> Vec<Effect> {
        let now_ms = self.clock(now_ms);
        let effects = self.agent.publish(&mut self.live, now_ms).expect("the state is whole");
        let place = self.agent.sync().own_place(DATABASE);
        if let Some(slot) = self.agent.sync().region().get(&place) {
            self.disk = Some((place, slot.signed().clone()));
            for (key, by) in std::mem::take(&mut self.unpublished) {
                *counted.entry(key).or_default() += by;
            }
        }
        effects
    }

    /// Takes in an event.
    pub fn step(&mut self, now_ms: u64, event: Event<'_>) -> Vec<Effect> {
        let now_ms = self.clock(now_ms);
        self.agent.step(&mut self.live, now_ms, event).expect("the state is whole")
    }

    /// Loses everything but the disk.
    pub fn crash(&mut self) {
        self.up = false;
        self.unpublished.clear();
    }

    /// Comes back with what the disk has.
    pub fn restart(&mut self, now_ms: u64) {
        (self.live, self.id) = live(&self.signer);
        self.agent = agent(&self.signer, &self.trust);
        if let Some((place, signed)) = self.disk.clone() {
            let slot = Received::new(place, signed);
            self.agent.sync_mut().restore(slot).expect("the disk keeps what it was given");
            let now_ms = self.clock(now_ms);
            self.agent.absorb_trusted(&mut self.live, now_ms).expect("the state is whole");
        }
        self.agent.start();
        self.up = true;
    }

    /// The entries, as all nodes should have them in the end.
    pub fn entries(&mut self, now_ms: u64) -> Index {
        let now_ms = self.clock(now_ms);
        State::entries(&mut self.live, DATABASE, now_ms).expect("the state is whole")
    }

    /// What a counter shows.
    pub fn count(&mut self, key: &[u8], now_ms: u64) -> i64 {
        let now_ms = self.clock(now_ms);
        let mut db = self.live.db(self.id, now_ms);
        let text = db.get(key).expect("a counter is never anything else");
        let text = text.map_or("0".into(), String::from_utf8_lossy);
        text.parse().expect("a counter shows a number")
    }

    /// Deletes every key that is not a counter.
    pub fn delete_all(&mut self, now_ms: u64) {
        let now_ms = self.clock(now_ms);
        let mut db = self.live.db(self.id, now_ms);
        for key in 0..KEYS {
            db.del(format!("key {key}").as_bytes());
        }
    }

    /// How many keys show that are not counters.
    pub fn shown(&mut self, now_ms: u64) -> usize {
        let now_ms = self.clock(now_ms);
        let mut db = self.live.db(self.id, now_ms);
        (0..KEYS).filter(|key| db.exists(format!("key {key}").as_bytes())).count()
    }
}

fn live(signer: &Signer) -> (Live, DbId) {
    let column = kumiko_lattice::replica::absorb::column(&signer.owner(), 1).into_bytes();
    let mut live = Live::new(Settings { replication: true, column, ..Settings::default() });
    let id = live.open(DATABASE);
    (live, id)
}

fn agent(signer: &Signer, trust: &Trust) -> Agent {
    Agent::new(signer.clone(), 1, sync::Settings::default(), trust.clone())
}
