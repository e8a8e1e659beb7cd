//! Ties the state of a node to replication: publishes what changed, absorbs what came.
//!
//! [`Agent`] is what a node and the simulator drive alike. The state behind it is a [`State`]: for
//! each database an Index of entries that commands change and that other owners' slots are merged
//! into. The agent never publishes before [`Agent::start`], so that a wiped node can take its own
//! slots back from its peers first.

use std::collections::{BTreeMap, BTreeSet};

use super::{Effect, Event, PeerId, Settings, Sync};
use crate::Error;
use crate::index::Index;
use crate::live::{AHEAD_MAX_MS, Live, Source};
use crate::replica::{Layout, Place, Publisher, Standing, Store, Trust, Verified};
use crate::sign::{Owner, Signer};

/// The state that is replicated.
pub trait State {
    /// The names of all databases.
    fn databases(&self) -> Vec<Vec<u8>>;

    /// The entries of a database, as they are now.
    ///
    /// # Errors
    ///
    /// The state is damaged.
    fn entries(&mut self, database: &[u8], now_ms: u64) -> Result<Index, Error>;

    /// Merges what an owner holds. What lies further ahead of our clock than `ahead_max_ms` is left
    /// alone; says when it should be merged again.
    ///
    /// # Errors
    ///
    /// The state is damaged, or the slot is.
    fn absorb(
        &mut self,
        owner: &Owner,
        layout: Layout,
        store: &Store,
        ahead_max_ms: u64,
        now_ms: u64,
    ) -> Result<Option<u64>, Error>;
}

/// The databases that commands run on. The caller who wants to know which keys changed absorbs by
/// [`Live::absorb`] itself.
impl State for Live {
    fn databases(&self) -> Vec<Vec<u8>> {
        Live::databases(self).map(|(_, name, _)| name.to_vec()).collect()
    }

    fn entries(&mut self, database: &[u8], now_ms: u64) -> Result<Index, Error> {
        let id = self.open(database);
        self.fold(id, now_ms)?;
        Ok(self.state(id).clone())
    }

    fn absorb(
        &mut self,
        owner: &Owner,
        layout: Layout,
        store: &Store,
        ahead_max_ms: u64,
        now_ms: u64,
    ) -> Result<Option<u64>, Error> {
        let id = self.open(&store.database);
        let source = Source { owner, layout, ahead_max_ms };
        Ok(Live::absorb(self, id, source, store, now_ms)?.later_ms)
    }
}

/// Replicates a state.
#[derive(Debug)]
pub struct Agent {
    sync: Sync,
    signer: Signer,
    incarnation: u64,
    publishers: BTreeMap<Vec<u8>, Publisher>,
    /// Per database, the entries as last published.
    published: BTreeMap<Vec<u8>, Index>,
    /// Per database, what of each owner is merged in.
    seen: BTreeMap<Vec<u8>, BTreeMap<Owner, u64>>,
    /// Slots to be merged again, by time.
    later: BTreeSet<(u64, Place)>,
    started: bool,
}

impl Agent {
    /// An agent that listens and does not publish yet. `incarnation` is drawn at random once for
    /// the state behind it.
    pub fn new(signer: Signer, incarnation: u64, settings: Settings, trust: Trust) -> Agent {
        let sync = Sync::new(signer.clone(), signer.owner(), settings, trust);
        Agent {
            sync,
            signer,
            incarnation,
            publishers: BTreeMap::new(),
            published: BTreeMap::new(),
            seen: BTreeMap::new(),
            later: BTreeSet::new(),
            started: false,
        }
    }

    /// Replication below.
    pub fn sync(&self) -> &Sync {
        &self.sync
    }

    /// Replication below, to change its settings.
    pub fn sync_mut(&mut self) -> &mut Sync {
        &mut self.sync
    }

    /// What of each owner is merged into a database.
    pub fn seen(&self, database: &[u8]) -> Option<&BTreeMap<Owner, u64>> {
        self.seen.get(database)
    }

    /// Publishes from now on. To be called when our own slots were taken back from peers, or when
    /// waiting for them has been long enough, or is not needed.
    pub fn start(&mut self) {
        self.started = true;
    }

    /// Publishes every database that changed. To be called a short while after a change.
    ///
    /// # Errors
    ///
    /// The state is damaged. Nothing was published then.
    pub fn publish(&mut self, state: &mut dyn State, now_ms: u64) -> Result<Vec<Effect>, Error> {
        if !self.started {
            return Ok(Vec::new());
        }
        let mut slots = Vec::new();
        for database in state.databases() {
            let entries = state.entries(&database, now_ms)?;
            // Equal entries have equal bytes at the top already.
            let published = self.published.entry(database.clone()).or_default();
            if *published == entries {
                continue;
            }
            *published = entries.clone();
            let signer = &self.signer;
            let incarnation = self.incarnation;
            let publisher = self
                .publishers
                .entry(database.clone())
                .or_insert_with(|| Publisher::new(signer.clone(), &database, incarnation));
            let seen = self.seen.entry(database).or_default();
            slots.push(publisher.publish_state(&entries, seen, now_ms)?);
        }
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.sync.step(now_ms, Event::Published { slots }))
    }

    /// Takes in an event. What came is merged before this returns; the effects that are left are
    /// for the network and the log.
    ///
    /// # Errors
    ///
    /// The state is damaged.
    pub fn step(
        &mut self,
        state: &mut dyn State,
        now_ms: u64,
        event: Event<'_>,
    ) -> Result<Vec<Effect>, Error> {
        let is_tick = matches!(event, Event::Tick);
        let mut effects = self.sync.step(now_ms, event);
        let taken = |effect: &Effect| match effect {
            Effect::Taken { place } => Some(place.clone()),
            _ => None,
        };
        let mut places: Vec<Place> = effects.iter().filter_map(taken).collect();
        effects.retain(|effect| !matches!(effect, Effect::Taken { .. }));
        while is_tick && self.later.first().is_some_and(|it| it.0 <= now_ms) {
            places.extend(self.later.pop_first().map(|it| it.1));
        }
        for place in places {
            self.absorb(state, &place, now_ms)?;
        }
        Ok(effects)
    }

    /// Merges a slot, if its owner is trusted or ourselves.
    fn absorb(&mut self, state: &mut dyn State, place: &Place, now_ms: u64) -> Result<(), Error> {
        let Some(slot) = self.sync.region().get(place).cloned() else {
            return Ok(());
        };
        let is_own = *slot.owner() == self.signer.owner();
        if is_own {
            self.resume(&slot);
        } else if self.sync.trust().standing(slot.owner()) != Standing::Trusted {
            return Ok(());
        }
        // What we wrote ourselves is never too far ahead: our clock has gone back since.
        let ahead_ms = if is_own { u64::MAX } else { AHEAD_MAX_MS };
        for store in slot.stores() {
            let layout = place.layout();
            if let Some(time) = state.absorb(slot.owner(), layout, store, ahead_ms, now_ms)? {
                self.later.insert((time, place.clone()));
            }
            if !is_own && let Some(manifest) = &store.manifest {
                let seen = self.seen.entry(store.database.clone()).or_default();
                let newest = seen.entry(*slot.owner()).or_default();
                *newest = manifest.sequence.max(*newest);
            }
        }
        Ok(())
    }

    /// Goes on from a slot of our own.
    fn resume(&mut self, slot: &Verified) {
        for store in slot.stores() {
            let (signer, incarnation) = (&self.signer, self.incarnation);
            self.publishers
                .entry(store.database.clone())
                .or_insert_with(|| Publisher::new(signer.clone(), &store.database, incarnation))
                .resume(slot);
        }
    }

    /// Merges all that strangers gave us and that is trusted now, after the lists changed.
    ///
    /// # Errors
    ///
    /// The state is damaged.
    pub fn absorb_trusted(&mut self, state: &mut dyn State, now_ms: u64) -> Result<(), Error> {
        let places: Vec<Place> = self.sync.region().iter().map(|it| it.place().clone()).collect();
        places.iter().try_for_each(|place| self.absorb(state, place, now_ms))
    }

    /// Whether a peer proved its key.
    pub fn is_proved(&self, peer: PeerId) -> bool {
        self.sync.proved(peer).is_some()
    }
}
