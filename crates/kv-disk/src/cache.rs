//! Blocks that were read lately, up to a bound.
//!
//! Sixteen shards, each a map and a clock: a block that was used since the hand passed it gets a
//! second chance.

use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::block::Block;

const SHARDS: usize = 16;

/// Which block: the table's id and the block's number in it.
type Place = (u64, u32);

/// Places are small numbers; one multiplication spreads them.
#[derive(Debug, Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        let wide = u128::from(self.0.rotate_left(23) ^ word) * 0x9E37_79B9_7F4A_7C15_u128;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }
}

type Build = BuildHasherDefault<PlaceHasher>;

#[derive(Debug)]
struct Entry {
    place: Place,
    block: Arc<Block>,
    used: bool,
}

#[derive(Debug, Default)]
struct Shard {
    map: HashMap<Place, usize, Build>,
    entries: Vec<Entry>,
    hand: usize,
    bytes: usize,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct Cache {
    shards: Vec<Mutex<Shard>>,
    shard_bytes_max: usize,
    hasher: Build,
}

impl Cache {
    /// A cache of about `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Cache {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Cache { shards, shard_bytes_max: bytes_max / SHARDS, hasher: Build::default() }
    }

    /// The block, if it is here.
    pub(crate) fn get(&self, table: u64, number: u32) -> Option<Arc<Block>> {
        let mut shard = self.shard((table, number));
        let index = *shard.map.get(&(table, number))?;
        let entry = &mut shard.entries[index];
        entry.used = true;
        Some(Arc::clone(&entry.block))
    }

    /// Keeps a block. With `spare`, only if no other has to go.
    pub(crate) fn put(&self, table: u64, number: u32, block: &Arc<Block>, spare: bool) {
        let place = (table, number);
        let mut shard = self.shard(place);
        let size = block.size();
        if self.shard_bytes_max < size || shard.map.contains_key(&place) {
            return;
        }
        if spare && self.shard_bytes_max < shard.bytes + size {
            return;
        }
        while self.shard_bytes_max < shard.bytes + size {
            shard.evict();
        }
        shard.bytes += size;
        let index = shard.entries.len();
        shard.entries.push(Entry { place, block: Arc::clone(block), used: false });
        shard.map.insert(place, index);
    }

    /// How many bytes the blocks take.
    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).bytes).sum()
    }

    fn shard(&self, place: Place) -> MutexGuard<'_, Shard> {
        // The map uses the low bits and the top seven; these are between.
        let index = (self.hasher.hash_one(place) >> 40) as usize % SHARDS;
        lock(&self.shards[index])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    /// Drops the first block under the hand that was not used since the hand passed it last.
    fn evict(&mut self) {
        loop {
            if self.entries.len() <= self.hand {
                self.hand = 0;
            }
            let entry = &mut self.entries[self.hand];
            if entry.used {
                entry.used = false;
                self.hand += 1;
                continue;
            }
            let gone = self.entries.swap_remove(self.hand);
            self.map.remove(&gone.place);
            self.bytes -= gone.block.size();
            if let Some(moved) = self.entries.get(self.hand) {
                self.map.insert(moved.place, self.hand);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, SHARDS};
    use crate::block::{Block, Builder};
    use std::sync::Arc;

    #[test]
    fn the_bound_holds_and_used_blocks_stay() {
        let mut builder = Builder::default();
        builder.push(b"key", Some(&[1; 1000]));
        let mut bytes = Vec::new();
        builder.finish(&mut bytes);
        let block = Arc::new(Block::decode(bytes).unwrap());
        let bytes_max = SHARDS * 10 * block.size();
        let cache = Cache::new(bytes_max);
        cache.put(1, 0, &block, false);
        for number in 1..1000 {
            assert!(cache.get(1, 0).is_some(), "dropped although used, at {number}");
            cache.put(1, number, &block, false);
            assert!(cache.bytes() <= bytes_max);
        }
        assert!((1..1000).any(|number| cache.get(1, number).is_none()));
        let full = cache.bytes();
        cache.put(2, 0, &block, true);
        assert!(cache.bytes() <= full + block.size());
        // Too large for a shard: not kept, not an endless search for room.
        let tiny = Cache::new(SHARDS * 10);
        tiny.put(1, 0, &block, false);
        assert_eq!(tiny.bytes(), 0);
    }
}
