//! The machine: events in, effects out.

use std::collections::BTreeMap;

use super::message::{Code, Message, Wrong};
use super::peer::{Peer, answer_challenge};
use super::pull::Pull;
use super::{Effect, Event, PeerId, Settings, Shelf, path};
use crate::cell::{self, Cell, Id};
use crate::replica::{
    Layout, Limits, Outcome, Place, Reason, Received, Refusal, Region, Trust, Verified,
};
use crate::sign::{Owner, Signer};

/// Replication of one node.
#[derive(Debug)]
pub struct Sync {
    /// Proves who we are. Also the owner of our slots, unless told otherwise.
    signer: Signer,
    /// The owner of our own slots.
    me: Owner,
    settings: Settings,
    limits: Limits,
    trust: Trust,
    region: Region,
    shelf: Shelf,
    /// The root in each layout.
    roots: [Cell; 2],
    peers: BTreeMap<PeerId, Peer>,
    /// Whether we published. Until then our own slots are taken back from peers.
    published: bool,
    next_id: i64,
    now_ms: u64,
    effects: Vec<Effect>,
}

impl Sync {
    /// A node without slots or peers. `signer` proves who we are; `me` owns our slots.
    pub fn new(signer: Signer, me: Owner, settings: Settings, trust: Trust) -> Sync {
        let region = Region::new();
        let roots = [region.root(Layout::Seed), region.root(Layout::Convex)];
        Sync {
            signer,
            me,
            settings,
            limits: Limits::default(),
            trust,
            region,
            shelf: Shelf::default(),
            roots,
            peers: BTreeMap::new(),
            published: false,
            next_id: 1,
            now_ms: 0,
            effects: Vec::new(),
        }
    }

    /// The slots of all owners.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Whom we believe.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Changes whom we believe. Slots of revoked owners are forgotten.
    pub fn set_trust(&mut self, trust: Trust) {
        for owner in trust.revoked() {
            self.region.forget(owner);
        }
        self.trust = trust;
        self.refresh();
    }

    /// Changes how much is taken.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The number of changes of the root so far. A peer that acknowledges it has all of them.
    pub fn generation(&self) -> u64 {
        self.shelf.generation()
    }

    /// The key that a peer proved.
    pub fn proved(&self, peer: PeerId) -> Option<Owner> {
        self.peers.get(&peer).and_then(|it| it.proved)
    }

    /// The root as peers of a layout see it.
    pub fn root(&self, layout: Layout) -> &Cell {
        &self.roots[layout as usize]
    }

    /// How many cells are kept for peers.
    pub fn cell_count(&self) -> usize {
        self.shelf.count()
    }

    /// Puts back slots that were kept over a restart. They were verified before they were stored,
    /// and are verified again.
    ///
    /// # Errors
    ///
    /// The refusal of a slot that does not hold.
    pub fn restore(&mut self, slot: Received) -> Result<Outcome, Refusal> {
        let outcome = self.region.offer(slot, &self.trust, &self.limits)?;
        self.refresh();
        Ok(outcome)
    }

    /// Takes in one event and says what to do now. `now_ms` never runs back.
    pub fn step(&mut self, now_ms: u64, event: Event<'_>) -> Vec<Effect> {
        self.now_ms = self.now_ms.max(now_ms);
        match event {
            Event::Opened { peer, expected, layout, token } => {
                self.opened(peer, Peer::new(expected, layout, token, self.now_ms));
            }
            Event::Received { peer, body } => self.received(peer, body),
            Event::Drained { peer } => self.drained(peer),
            Event::Closed { peer } => drop(self.peers.remove(&peer)),
            Event::Published { slots } => self.published(slots),
            Event::Tick => self.tick(),
        }
        std::mem::take(&mut self.effects)
    }

    fn opened(&mut self, id: PeerId, mut peer: Peer) {
        if self.settings.sessions_max <= self.peers.len() {
            let reason = "too many connections";
            self.effects.push(Effect::Close { peer: id, reason });
            return;
        }
        let number = self.number();
        peer.challenge = Some((number, Some(self.now_ms + self.settings.challenge_ms)));
        let signed = peer.challenge(&self.signer);
        self.peers.insert(id, peer);
        self.send(id, &Message::Challenge { id: number, signed });
    }

    fn number(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    fn send(&mut self, peer: PeerId, message: &Message) {
        let mut body = Vec::new();
        cell::message::encode(&message.cell(), &mut body);
        self.effects.push(Effect::Send { peer, body });
    }

    fn fail(&mut self, peer: PeerId, id: Option<i64>, code: Code, text: &str) {
        self.send(peer, &Message::Answer { id, result: Err((code, text.to_string())) });
    }

    fn close(&mut self, peer: PeerId, reason: &'static str) {
        if self.peers.remove(&peer).is_some() {
            self.effects.push(Effect::Close { peer, reason });
        }
    }

    fn reject(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        state.rejects += 1;
        if self.settings.rejects_max <= state.rejects {
            self.close(peer, "too many messages that had to be refused");
        }
    }

    fn received(&mut self, peer: PeerId, body: &[u8]) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        state.heard_ms = self.now_ms;
        if state.body_bytes_max(&self.settings) < body.len() {
            self.close(peer, "a message is too long");
            return;
        }
        let (shelf, is_proved) = (&self.shelf, state.proved.is_some());
        let mut known = |id: &Id| if is_proved { shelf.get(id).cloned() } else { None };
        let Ok(cell) = cell::message::decode(body, &mut known) else {
            self.fail(peer, None, Code::Format, "not a message");
            self.reject(peer);
            return;
        };
        match Message::of(&cell) {
            Ok(message) => self.take(peer, message),
            Err(Wrong::Unknown) => {}
            Err(Wrong::Argument(id, text)) => {
                if id.is_some() {
                    self.fail(peer, id, Code::Argument, text);
                }
                self.reject(peer);
            }
        }
    }

    fn take(&mut self, peer: PeerId, message: Message) {
        match message {
            Message::Ping { id } => {
                let now = Cell::int(self.now_ms as i64);
                self.send(peer, &Message::Answer { id: Some(id), result: Ok(now) });
            }
            Message::Query { id, path } => self.query(peer, id, &path),
            Message::Value { id, path, value } => self.value(peer, id, path, value),
            Message::Fetch { id, ids } => self.fetch(peer, id, &ids),
            Message::Cells { cells } => self.cells(peer, cells),
            Message::Challenge { id, signed } => self.challenged(peer, id, &signed),
            Message::Bye => self.close(peer, "the peer said good bye"),
            Message::Answer { id: Some(id), result } => self.answered(peer, id, result),
            Message::Answer { id: None, .. } => {}
        }
    }

    fn query(&mut self, peer: PeerId, id: i64, keys: &[Cell]) {
        let root = &self.roots[self.peers[&peer].layout as usize];
        let value = path::find(root, keys).unwrap_or_else(Cell::nil);
        let top = Message::Answer { id: Some(id), result: Ok(value.clone()) }.cell();
        let mut body = Vec::new();
        let whole = self.settings.message_bytes_max.saturating_sub(top.bytes().len());
        let own = (!value.is_embedded()).then(|| value.clone());
        // What is too long for one message is told by its top cell; the rest can be fetched.
        let cells = match cells_within(&top, whole) {
            Some(cells) => cells,
            None => own.into_iter().collect(),
        };
        cell::message::encode_with(&top, &cells, &mut body);
        self.effects.push(Effect::Send { peer, body });
    }

    fn fetch(&mut self, peer: PeerId, id: i64, ids: &[Id]) {
        // The cells themselves travel, and the nodes of the vector that holds them; not what hangs
        // below the cells.
        let cell = |id: &Id| self.shelf.get(id).map_or_else(Cell::nil, Cell::without_branches);
        let cells: Vec<Cell> = ids.iter().map(cell).collect();
        self.send(peer, &Message::Answer { id: Some(id), result: Ok(Cell::vector(&cells)) });
    }

    fn cells(&mut self, peer: PeerId, cells: Vec<Cell>) {
        let state = self.peers.get_mut(&peer).expect("it sent something");
        if state.proved.is_none() {
            self.reject(peer);
            return;
        }
        // Without a value that lacks them they are of no use: the value will have them fetched.
        if let Some(pull) = &mut state.pull {
            for cell in cells.into_iter().filter(|it| !it.is_embedded()) {
                pull.stage(cell, &self.shelf);
            }
        }
    }

    fn challenged(&mut self, peer: PeerId, id: i64, signed: &Cell) {
        match answer_challenge(signed, &self.signer) {
            Ok(answer) => {
                self.send(peer, &Message::Answer { id: Some(id), result: Ok(answer) });
                let state = self.peers.get_mut(&peer).expect("it sent something");
                state.answered = true;
                self.greet(peer);
            }
            Err(text) => {
                self.fail(peer, Some(id), Code::Trust, text);
                self.reject(peer);
            }
        }
    }

    fn answered(&mut self, peer: PeerId, id: i64, result: Result<Cell, (Code, String)>) {
        let state = self.peers.get_mut(&peer).expect("it sent something");
        if state.challenge.is_some_and(|it| it.0 == id) {
            state.challenge = None;
            let owner = result.ok().and_then(|it| state.check_answer(&it, &self.signer.owner()));
            match owner {
                Some(owner) => {
                    state.proved = Some(owner);
                    self.effects.push(Effect::Proved { peer, owner });
                    self.greet(peer);
                }
                None => self.unproved(peer),
            }
        } else if state.pull.as_ref().is_some_and(|it| it.awaits(id)) {
            let size_max = self.settings.pull_bytes_max;
            let pull = state.pull.as_mut().expect("it awaits the answer");
            let taken = result
                .map_err(|_| "the peer refused")
                .and_then(|answer| pull.take(&answer, &self.shelf, size_max));
            if taken.is_ok() {
                self.pull(peer);
            } else {
                state.pull = None;
                self.reject(peer);
            }
        } else if let Some(generation) = state.take_ack(id)
            && result.is_ok()
        {
            self.effects.push(Effect::Acked { peer, generation });
        }
    }

    /// A peer that did not prove its key: an end if a certain one was expected, else a stranger.
    fn unproved(&mut self, peer: PeerId) {
        if self.peers[&peer].expected.is_some() {
            self.close(peer, "the peer has another key");
        } else {
            self.announce(peer);
        }
    }

    /// Both sides know each other now: tell what we have.
    fn greet(&mut self, peer: PeerId) {
        if self.peers[&peer].is_verified() {
            self.announce(peer);
        }
    }

    /// Sends the root, unless a value is on its way, with what is new since the last one. A peer
    /// that has not had one gets the top alone, and fetches what it lacks.
    fn announce(&mut self, id: PeerId) {
        let number = self.number();
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.sending {
            peer.dirty = true;
            return;
        }
        let root = self.roots[peer.layout as usize].clone();
        if root.view().is_nil() {
            return;
        }
        if peer.is_verified() && peer.told == Some(root.id()) {
            peer.dirty = false;
            peer.sent = Some(self.shelf.generation());
            return;
        }
        let wants_ack = peer.is_verified() && peer.layout == Layout::Seed;
        let top = Message::Value {
            id: wants_ack.then_some(number),
            path: Vec::new(),
            value: root.clone(),
        }
        .cell();
        let size_max = self.settings.message_bytes_max;
        let cells = if peer.is_verified() {
            let since = peer.sent.and_then(|sent| self.shelf.since(&top, sent, size_max));
            let mut cells = since.unwrap_or_default();
            if !root.is_embedded() && !cells.contains(&root) {
                cells.insert(0, root);
            }
            cells
        } else if peer.is_stranger() {
            // A stranger takes complete values only, and none that is too long.
            match cells_within(&top, size_max.saturating_sub(top.bytes().len())) {
                Some(cells) => cells,
                None => return,
            }
        } else {
            return;
        };
        let generation = self.shelf.generation();
        peer.sent = Some(generation);
        peer.sending = true;
        peer.dirty = false;
        peer.announced_ms = self.now_ms;
        if wants_ack {
            peer.expect_ack(number, generation);
        }
        let mut body = Vec::new();
        cell::message::encode_with(&top, &cells, &mut body);
        self.effects.push(Effect::Send { peer: id, body });
    }

    fn drained(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        state.sending = false;
        if state.dirty {
            self.announce(peer);
        }
    }

    fn value(&mut self, peer: PeerId, id: Option<i64>, path: Vec<Cell>, value: Cell) {
        if value.is_complete() {
            self.merge(peer, id, &path, value);
            return;
        }
        let state = self.peers.get_mut(&peer).expect("it sent something");
        if state.proved.is_none() {
            if id.is_some() {
                self.fail(peer, id, Code::Trust, "a stranger sends complete values");
            }
            self.reject(peer);
            return;
        }
        // A newer value replaces one that is still being completed.
        state.pull = Some(Pull::new(value, path, id));
        self.pull(peer);
    }

    /// Asks for what is absent, or merges when nothing is.
    fn pull(&mut self, peer: PeerId) {
        let number = self.number();
        let late_ms = self.now_ms + self.settings.request_ms;
        let state = self.peers.get_mut(&peer).expect("it sent something");
        let pull = state.pull.as_mut().expect("something is being completed");
        if let Some(ids) = pull.ask(number, late_ms) {
            self.send(peer, &Message::Fetch { id: number, ids });
            return;
        }
        let whole = pull.finish(&self.shelf);
        let Pull { path, answer, .. } = state.pull.take().expect("it was just there");
        match whole {
            Ok(value) if value.is_complete() => self.merge(peer, answer, &path, value),
            _ => self.reject(peer),
        }
    }

    fn merge(&mut self, peer: PeerId, id: Option<i64>, keys: &[Cell], value: Cell) {
        if keys.is_empty() {
            self.peers.get_mut(&peer).expect("it sent something").told = Some(value.id());
        }
        let kv = match path::place(keys, value) {
            Ok(kv) => kv,
            Err(text) => {
                if id.is_some() {
                    self.fail(peer, id, Code::Argument, text);
                }
                self.reject(peer);
                return;
            }
        };
        let (received, mut refused) =
            kv.map_or_else(Default::default, |kv| Region::received(kv.view(), &self.limits));
        let mut changed = false;
        for slot in received {
            match self.offer(slot) {
                Ok(is_new) => changed |= is_new,
                Err(refusal) => refused.push(refusal),
            }
        }
        let state = self.peers.get_mut(&peer).expect("it sent something");
        if refused.is_empty() {
            state.rejects = 0;
        }
        if id.is_some() {
            self.send(peer, &Message::Answer { id, result: Ok(Cell::nil()) });
        }
        if changed {
            self.refresh_from(peer);
        }
        if refused.iter().any(|it| it.reason != Reason::Revoked) {
            self.reject(peer);
        }
        self.effects.extend(refused.into_iter().map(|refusal| Effect::Refused { peer, refusal }));
    }

    fn offer(&mut self, slot: Received) -> Result<bool, Refusal> {
        let place = slot.place().clone();
        if *place.owner() == self.me && self.published {
            return self.offer_own(slot);
        }
        let outcome = self.region.offer(slot, &self.trust, &self.limits)?;
        Ok(match outcome {
            Outcome::Same | Outcome::Older => false,
            Outcome::Taken => {
                self.effects.push(Effect::Taken { place });
                true
            }
            Outcome::Forked { taken } => {
                self.effects.push(Effect::Forked { place: place.clone() });
                if taken {
                    self.effects.push(Effect::Taken { place });
                }
                taken
            }
        })
    }

    /// A slot of our own that comes from outside is old, or somebody else's work.
    fn offer_own(&mut self, slot: Received) -> Result<bool, Refusal> {
        let place = slot.place().clone();
        let mut probe = Region::new();
        if let Some(own) = self.region.get(&place) {
            probe.take(own.clone());
        }
        match probe.offer(slot, &self.trust, &self.limits)? {
            Outcome::Same | Outcome::Older => {}
            Outcome::Taken | Outcome::Forked { .. } => self.effects.push(Effect::Twin { place }),
        }
        Ok(false)
    }

    fn published(&mut self, slots: Vec<Verified>) {
        for slot in slots {
            assert!(*slot.owner() == self.me, "we publish our own slots");
            self.region.take(slot);
        }
        self.published = true;
        self.refresh();
    }

    /// As `refresh`, after slots came from a peer. If it had all that we had, it has all that we
    /// have now, and nothing has to go back to it.
    fn refresh_from(&mut self, from: PeerId) {
        let before = self.shelf.generation();
        let peer = self.peers.get_mut(&from).expect("it sent something");
        let was_current = peer.sent == Some(before);
        let sending = std::mem::replace(&mut peer.sending, true);
        self.refresh();
        let peer = self.peers.get_mut(&from).expect("refreshing ends no connection");
        peer.sending = sending;
        if was_current {
            peer.sent = Some(self.shelf.generation());
        }
        if peer.dirty && !peer.sending {
            self.announce(from);
        }
    }

    /// Brings the roots up to date and tells everyone, if they changed.
    fn refresh(&mut self) {
        let has_convex = self.peers.values().any(|it| it.layout == Layout::Convex);
        let roots = [
            self.region.root(Layout::Seed),
            if has_convex { self.region.root(Layout::Convex) } else { self.roots[1].clone() },
        ];
        if roots == self.roots {
            return;
        }
        for root in &roots {
            self.shelf.add(root);
        }
        self.roots = roots;
        if self.shelf.wants_sweep() {
            self.shelf.sweep(&[&self.roots[0], &self.roots[1]]);
        }
        let peers: Vec<PeerId> = self.peers.keys().copied().collect();
        for peer in peers {
            self.announce(peer);
        }
    }

    fn tick(&mut self) {
        let peers: Vec<PeerId> = self.peers.keys().copied().collect();
        for peer in peers {
            self.tick_peer(peer);
        }
    }

    fn tick_peer(&mut self, id: PeerId) {
        let settings = self.settings;
        let now_ms = self.now_ms;
        let peer = self.peers.get_mut(&id).expect("the caller has just seen it");
        if let Some((_, late_ms)) = &mut peer.challenge
            && late_ms.is_some_and(|it| it < now_ms)
        {
            // The challenge stays: whoever answers it takes itself for verified from then on, and
            // sends values in part, so a late answer has to count here too.
            *late_ms = None;
            self.unproved(id);
            return;
        }
        if peer.pull.as_ref().is_some_and(|it| it.is_late(now_ms)) {
            // The next announcement starts it again.
            peer.pull = None;
        }
        let silent_ms = now_ms - peer.heard_ms;
        if 4 * settings.silence_ms < silent_ms {
            self.close(id, "the peer is silent");
            return;
        }
        if settings.announce_ms <= now_ms - peer.announced_ms {
            peer.announced_ms = now_ms;
            self.announce(id);
        }
        if settings.silence_ms < silent_ms {
            let number = self.number();
            self.send(id, &Message::Ping { id: number });
        }
    }

    /// Where our own slot of a database stands.
    pub fn own_place(&self, database: &[u8]) -> Place {
        Place::Database(database.to_vec(), self.me)
    }
}

/// All branches below `top`, if their bytes fit.
fn cells_within(top: &Cell, size_max: usize) -> Option<Vec<Cell>> {
    let cells = cell::message::novelty(top, &mut |_| false, size_max / 141 + 1);
    let size: usize = cells.iter().map(|it| it.bytes().len() + 3).sum();
    (size <= size_max).then_some(cells)
}
