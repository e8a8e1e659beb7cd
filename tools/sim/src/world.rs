//! The world: nodes, links between all of them, time, and what goes wrong.
//!
//! A link is a pair of queues. What is sent on it arrives in order, after a delay, or, if the link
//! is cut meanwhile, not at all. The last place is the hostile peer's.

use std::collections::{BTreeMap, VecDeque};

use kumiko_base::draw::Draw;
use kumiko_lattice::replica::Layout;
use kumiko_lattice::sign::{Owner, Signer};
use kumiko_lattice::sync::{Effect, Event, PeerId};

use crate::hostile::Hostile;
use crate::node::Node;

/// Steps of the stormy part.
const STORM_STEPS: u64 = 600;
/// How long one step is.
const STEP_MS: u64 = 20;
/// Later than any expiry that was set: the longest life and the farthest clock.
const EXPIRED_MS: u64 = 60_000 + 100_000 + 1_000;
/// The most simulated seconds that coming to rest may take.
const CALM_SECONDS: u64 = 300;

/// What a run went through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Commands that ran.
    pub commands: u64,
    /// Frames that arrived.
    pub frames: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Links that were cut.
    pub cuts: u64,
    /// Nodes that crashed.
    pub crashes: u64,
    /// Clocks that jumped.
    pub jumps: u64,
    /// Messages of the hostile peer.
    pub attacks: u64,
    /// Slots that were refused.
    pub refused: u64,
}

impl Report {
    /// Adds another run.
    pub fn add(&mut self, other: &Report) {
        self.commands += other.commands;
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.cuts += other.cuts;
        self.crashes += other.crashes;
        self.jumps += other.jumps;
        self.attacks += other.attacks;
        self.refused += other.refused;
    }
}

struct Link {
    ends: [usize; 2],
    /// The name of the connection at both ends, while it is open.
    open: Option<PeerId>,
    /// What travels to each end: when it arrives, and the body.
    travelling: [VecDeque<(u64, Vec<u8>)>; 2],
}

/// A run.
pub struct World {
    draw: Draw,
    nodes: Vec<Node>,
    hostile: Hostile,
    links: Vec<Link>,
    now_ms: u64,
    next_peer: u64,
    /// What all published counts add up to.
    counted: BTreeMap<Vec<u8>, i64>,
    report: Report,
    /// Whether things still go wrong.
    storm: bool,
}

impl World {
    /// The world of a seed: two to five honest nodes and a hostile peer.
    pub fn new(seed: u64) -> World {
        let mut draw = Draw::new(seed);
        let count = 2 + draw.index(4);
        let owners: Vec<Owner> =
            (1..=count as u8).map(|it| Signer::from_seed(&[it; 32]).owner()).collect();
        let nodes = (1..=count as u8).map(|it| Node::new(it, &owners)).collect();
        let mut links = Vec::new();
        for one in 0..=count {
            for two in 0..one {
                let travelling = [VecDeque::new(), VecDeque::new()];
                links.push(Link { ends: [two, one], open: None, travelling });
            }
        }
        World {
            draw,
            nodes,
            hostile: Hostile::new(),
            links,
            now_ms: 1_700_000_000_000,
            next_peer: 1,
            counted: BTreeMap::new(),
            report: Report::default(),
            storm: true,
        }
    }

    /// Runs the storm, then the calm, and checks what has to hold.
    pub fn run(mut self) -> Report {
        (0..self.links.len()).for_each(|link| self.open(link));
        for _ in 0..STORM_STEPS {
            self.trouble();
            self.advance(true);
        }
        self.heal();
        self.settle();
        self.check_counts();
        // A clock that ran ahead may have expired a key early at its node, which then has nothing
        // to delete. Later than any expiry, all nodes agree on what there is.
        self.now_ms += EXPIRED_MS;
        self.settle();
        // What one node deletes stays deleted everywhere, whatever is played again.
        self.nodes[0].delete_all(self.now_ms);
        self.settle();
        let attacked = self.links.len();
        for link in 0..attacked {
            self.attack(link);
        }
        self.settle();
        let now_ms = self.now_ms;
        for (at, node) in self.nodes.iter_mut().enumerate() {
            assert_eq!(node.shown(now_ms), 0, "node {at} shows what was deleted");
        }
        self.check_counts();
        self.report
    }

    fn trouble(&mut self) {
        let link = self.draw.index(self.links.len());
        let node = self.draw.index(self.nodes.len());
        match self.draw.below(60) {
            0 => self.cut(link),
            1..=6 => self.open(link),
            7 => self.crash(node),
            8..=12 if !self.nodes[node].up => self.nodes[node].restart(self.now_ms),
            13 => {
                // Mostly within what is tolerated, now and then far beyond.
                let bound = if self.draw.one_in(5) { 200_000 } else { 25_000 };
                self.nodes[node].offset_ms = self.draw.below(bound) as i64 - bound as i64 / 2;
                self.report.jumps += 1;
            }
            14..=20 => self.attack(link),
            _ => {}
        }
    }

    /// One step of time: commands, publications, arrivals, ticks.
    fn advance(&mut self, commands: bool) {
        self.now_ms += STEP_MS;
        for at in 0..self.nodes.len() {
            if !self.nodes[at].up {
                continue;
            }
            if commands && self.draw.one_in(2) {
                self.nodes[at].command(&mut self.draw, self.now_ms);
                self.report.commands += 1;
            }
            if self.draw.one_in(3) {
                let effects = self.nodes[at].publish(self.now_ms, &mut self.counted);
                self.carry_out(at, effects);
            }
            if self.now_ms % 1_000 < STEP_MS {
                let effects = self.nodes[at].step(self.now_ms, Event::Tick);
                self.carry_out(at, effects);
            }
        }
        for link in 0..self.links.len() {
            self.deliver(link, 0);
            self.deliver(link, 1);
        }
    }

    fn deliver(&mut self, link: usize, end: usize) {
        let Some(peer) = self.links[link].open else { return };
        let to = self.links[link].ends[end];
        let from = self.links[link].ends[1 - end];
        let mut arrived = false;
        while let Some((at_ms, _)) = self.links[link].travelling[end].front()
            && *at_ms <= self.now_ms
            && self.links[link].open == Some(peer)
        {
            let (_, body) = self.links[link].travelling[end].pop_front().expect("it is there");
            self.report.frames += 1;
            self.report.bytes += body.len() as u64;
            arrived = true;
            if to == self.nodes.len() {
                self.hostile.hear(&mut self.draw, &body);
            } else {
                let effects =
                    self.nodes[to].step(self.now_ms, Event::Received { peer, body: &body });
                self.carry_out(to, effects);
            }
        }
        let is_empty = self.links[link].travelling[end].is_empty();
        if arrived && is_empty && from < self.nodes.len() && self.links[link].open == Some(peer) {
            let effects = self.nodes[from].step(self.now_ms, Event::Drained { peer });
            self.carry_out(from, effects);
        }
    }

    fn carry_out(&mut self, at: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { peer, body } => self.send(at, peer, body),
                Effect::Close { peer, .. } => {
                    if let Some(link) = self.links.iter().position(|it| it.open == Some(peer)) {
                        self.cut(link);
                    }
                }
                Effect::Refused { .. } => self.report.refused += 1,
                Effect::Taken { place } => panic!("the agent takes in {place:?} itself"),
                Effect::Twin { .. } => panic!("node {at} is told that it has a twin"),
                Effect::Proved { .. } | Effect::Forked { .. } | Effect::Acked { .. } => {}
            }
        }
    }

    fn send(&mut self, from: usize, peer: PeerId, body: Vec<u8>) {
        let delay_ms = self.draw.below(if self.storm { 300 } else { 30 });
        let Some(link) = self.links.iter_mut().find(|it| it.open == Some(peer)) else { return };
        let end = usize::from(link.ends[0] == from);
        let after = link.travelling[end].back().map_or(0, |it| it.0);
        link.travelling[end].push_back((after.max(self.now_ms + delay_ms), body));
    }

    fn open(&mut self, link: usize) {
        let ends = self.links[link].ends;
        let is_up = |at: &usize| self.nodes.get(*at).is_none_or(|it| it.up);
        if self.links[link].open.is_some() || !ends.iter().all(is_up) {
            return;
        }
        let peer = PeerId(self.next_peer);
        self.next_peer += 1;
        self.links[link].open = Some(peer);
        for (end, at) in ends.into_iter().enumerate() {
            if at == self.nodes.len() {
                continue;
            }
            let other = self.nodes.get(ends[1 - end]).map(|it| it.signer.owner());
            let expected = other.filter(|_| self.draw.one_in(2));
            let mut token = [0; 32];
            token[..8].copy_from_slice(&self.draw.bits().to_be_bytes());
            let opened = Event::Opened { peer, expected, layout: Layout::Seed, token };
            let effects = self.nodes[at].step(self.now_ms, opened);
            self.carry_out(at, effects);
        }
    }

    fn cut(&mut self, link: usize) {
        let Some(peer) = self.links[link].open.take() else { return };
        self.report.cuts += 1;
        self.links[link].travelling.iter_mut().for_each(VecDeque::clear);
        for at in self.links[link].ends {
            if self.nodes.get(at).is_some_and(|it| it.up) {
                let effects = self.nodes[at].step(self.now_ms, Event::Closed { peer });
                self.carry_out(at, effects);
            }
        }
    }

    fn crash(&mut self, at: usize) {
        if !self.nodes[at].up {
            return;
        }
        self.report.crashes += 1;
        self.nodes[at].crash();
        for link in 0..self.links.len() {
            if self.links[link].ends.contains(&at) {
                self.cut(link);
            }
        }
    }

    /// Something hostile arrives at the honest end of a link to the hostile peer.
    fn attack(&mut self, link: usize) {
        let [to, from] = self.links[link].ends;
        if from != self.nodes.len() {
            return;
        }
        if let Some(peer) = self.links[link].open {
            let body = self.hostile.attack(&mut self.draw);
            self.report.attacks += 1;
            let effects = self.nodes[to].step(self.now_ms, Event::Received { peer, body: &body });
            self.carry_out(to, effects);
        }
    }

    /// Everyone is up, the clocks are right, and nothing is cut any more.
    fn heal(&mut self) {
        self.storm = false;
        for at in 0..self.nodes.len() {
            if !self.nodes[at].up {
                self.nodes[at].restart(self.now_ms);
            }
        }
        for node in &mut self.nodes {
            node.offset_ms = 0;
        }
    }

    /// Lets time pass without commands until all nodes hold the same.
    fn settle(&mut self) {
        for _ in 0..CALM_SECONDS {
            for _ in 0..1_000 / STEP_MS {
                (0..self.links.len()).for_each(|link| self.open(link));
                self.advance(false);
            }
            if self.is_equal() {
                return;
            }
        }
        panic!("the nodes do not come to hold the same");
    }

    fn is_equal(&mut self) -> bool {
        let now_ms = self.now_ms;
        let mut all = self.nodes.iter_mut().map(|node| node.entries(now_ms));
        let first = all.next().expect("there are nodes");
        all.all(|it| it == first)
    }

    fn check_counts(&mut self) {
        let now_ms = self.now_ms;
        for (at, node) in self.nodes.iter_mut().enumerate() {
            for (key, total) in &self.counted {
                let name = String::from_utf8_lossy(key);
                assert_eq!(node.count(key, now_ms), *total, "{name} at node {at}");
            }
        }
    }
}
