//! A hash table that grows in small steps and can be walked while it changes.
//!
//! One large table doubles all at once: a pause, and up to half of it empty. This one is made of
//! many small tables ("shards" of some hundred items) and splits one shard at a time (linear
//! hashing). Four regions of unequal weight keep the shards at different points of their own
//! doubling, so that the memory per item stays near its mean whatever the number of items is.
//!
//! The walk goes in the order of an item's *position*: region, then the hash with its bits
//! reversed. A shard is one contiguous range of positions and a split halves that range, so a
//! cursor stays right through any growth: an item that is there from the first call to the last is
//! seen exactly once.
//!
//! The table does not know what a key is; callers pass the hash and how to find it again.

use hashbrown::HashTable;

/// Items per shard on average after a split. Twice this still fits 512 buckets.
const SHARD_ITEMS: usize = 200;
const REGIONS: usize = 4;
/// Upper bounds of the regions in the highest hash byte; the weights step by the fourth root of 2.
const REGION_ENDS: [u64; REGIONS] = [48, 106, 175, 256];
/// Bits of a position inside its region.
const PLACE_BITS: u32 = 46;

/// A table of `T`. See the module's head.
#[derive(Debug)]
pub(crate) struct Table<T> {
    regions: [Region<T>; REGIONS],
    count: usize,
    /// The largest number of buckets any shard ever had; what random picks aim at.
    buckets_max: usize,
}

#[derive(Debug)]
struct Region<T> {
    shards: Vec<HashTable<T>>,
    count: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table::new()
    }
}

fn region_of(hash: u64) -> usize {
    let byte = hash >> 56;
    usize::from(byte >= REGION_ENDS[0])
        + usize::from(byte >= REGION_ENDS[1])
        + usize::from(byte >= REGION_ENDS[2])
}

/// What the small tables see. They use the lowest bits, which choose the shard here.
fn inner(hash: u64) -> u64 {
    hash.rotate_right(32)
}

/// Where the walk meets an item with this hash.
pub(crate) fn position(hash: u64) -> u64 {
    ((region_of(hash) as u64) << PLACE_BITS) | (hash.reverse_bits() >> (64 - PLACE_BITS))
}

impl<T> Region<T> {
    fn level(&self) -> u32 {
        self.shards.len().ilog2()
    }

    fn shard_of(&self, hash: u64) -> usize {
        let level = self.level();
        let wide = (hash & ((2 << level) - 1)) as usize;
        if wide < self.shards.len() { wide } else { (hash & ((1 << level) - 1)) as usize }
    }

    /// How many low bits of the hash are the same for all items of a shard.
    fn depth(&self, shard: usize) -> u32 {
        let level = self.level();
        let low = 1_usize << level;
        let split = self.shards.len() - low;
        if shard < split || low <= shard { level + 1 } else { level }
    }

    fn grow(&mut self, hash_of: &impl Fn(&T) -> u64) {
        if self.count <= self.shards.len() * SHARD_ITEMS {
            return;
        }
        let fresh = self.shards.len();
        let low = 1_usize << self.level();
        let old = fresh - low;
        let taken = std::mem::take(&mut self.shards[old]);
        let bit = low as u64;
        let moving = taken.iter().filter(|it| hash_of(it) & bit != 0).count();
        let mut stay = HashTable::with_capacity(taken.len() - moving);
        let mut move_to = HashTable::with_capacity(moving);
        for item in taken {
            let hash = hash_of(&item);
            let target = if hash & bit == 0 { &mut stay } else { &mut move_to };
            target.insert_unique(inner(hash), item, |it| inner(hash_of(it)));
        }
        self.shards[old] = stay;
        self.shards.push(move_to);
    }

    fn shrink(&mut self, hash_of: &impl Fn(&T) -> u64) {
        if self.shards.len() == 1 || self.shards.len() * SHARD_ITEMS / 3 <= self.count {
            return;
        }
        let last = self.shards.pop().expect("there is more than one shard");
        let buddy = self.shards.len() - (1_usize << self.level());
        let shard = &mut self.shards[buddy];
        for item in last {
            shard.insert_unique(inner(hash_of(&item)), item, |it| inner(hash_of(it)));
        }
    }
}

impl<T> Table<T> {
    pub(crate) fn new() -> Table<T> {
        let regions = std::array::from_fn(|_| Region { shards: vec![HashTable::new()], count: 0 });
        Table { regions, count: 0, buckets_max: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        let region = &self.regions[region_of(hash)];
        region.shards[region.shard_of(hash)].find(inner(hash), eq)
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let region = &mut self.regions[region_of(hash)];
        let shard = region.shard_of(hash);
        region.shards[shard].find_mut(inner(hash), eq)
    }

    /// Adds an item that is not there yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, item: T, hash_of: impl Fn(&T) -> u64) {
        let region = &mut self.regions[region_of(hash)];
        let shard = region.shard_of(hash);
        let shard = &mut region.shards[shard];
        shard.insert_unique(inner(hash), item, |it| inner(hash_of(it)));
        self.buckets_max = self.buckets_max.max(shard.num_buckets());
        self.count += 1;
        region.count += 1;
        region.grow(&hash_of);
    }

    #[inline]
    pub(crate) fn remove(
        &mut self,
        hash: u64,
        eq: impl FnMut(&T) -> bool,
        hash_of: impl Fn(&T) -> u64,
    ) -> Option<T> {
        let region = &mut self.regions[region_of(hash)];
        let shard = region.shard_of(hash);
        let shard = &mut region.shards[shard];
        let item = match shard.find_entry(inner(hash), eq) {
            Ok(entry) => entry.remove().0,
            Err(_) => return None,
        };
        if shard.len() * 8 < shard.num_buckets() && 32 < shard.num_buckets() {
            shard.shrink_to_fit(|it| inner(hash_of(it)));
        }
        self.count -= 1;
        region.count -= 1;
        region.shrink(&hash_of);
        Some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.regions.iter().flat_map(|region| region.shards.iter().flat_map(HashTable::iter))
    }

    /// Shows the items from `cursor` on, about `count` of them, and returns the next cursor; zero
    /// when the walk is over. Items that share a position come together.
    pub(crate) fn scan<'a>(
        &'a self,
        cursor: u64,
        count: usize,
        hash_of: impl Fn(&T) -> u64,
        mut visit: impl FnMut(&'a T),
    ) -> u64 {
        let mut at = cursor;
        let mut seen = 0;
        // Sparse tables must not make one call walk everything.
        let mut shards_left = count.max(16);
        let mut batch: Vec<(u64, &'a T)> = Vec::new();
        while at >> PLACE_BITS < REGIONS as u64 {
            let region = &self.regions[(at >> PLACE_BITS) as usize];
            let shard = region.shard_of((at << (64 - PLACE_BITS)).reverse_bits());
            let width = 1_u64 << (PLACE_BITS - region.depth(shard));
            batch.clear();
            batch.extend(region.shards[shard].iter().filter_map(|item| {
                let place = position(hash_of(item));
                (at <= place).then_some((place, item))
            }));
            batch.sort_unstable_by_key(|it| it.0);
            let mut last = u64::MAX;
            for (place, item) in &batch {
                if count <= seen && *place != last {
                    return *place;
                }
                visit(item);
                seen += 1;
                last = *place;
            }
            at = (at / width + 1) * width;
            shards_left -= 1;
            if count <= seen || shards_left == 0 {
                break;
            }
        }
        if at >> PLACE_BITS < REGIONS as u64 { at } else { 0 }
    }

    /// A uniformly random item; `below(n)` draws a number under `n`.
    pub(crate) fn random(&self, below: &mut dyn FnMut(u64) -> u64) -> Option<&T> {
        if self.count == 0 {
            return None;
        }
        let shards: usize = self.regions.iter().map(|region| region.shards.len()).sum();
        for _ in 0..1000 {
            let mut shard = below(shards as u64) as usize;
            let bucket = below(self.buckets_max as u64) as usize;
            for region in &self.regions {
                if shard < region.shards.len() {
                    let table = &region.shards[shard];
                    if bucket < table.num_buckets()
                        && let Some(item) = table.get_bucket(bucket)
                    {
                        return Some(item);
                    }
                    break;
                }
                shard -= region.shards.len();
            }
        }
        // Nearly empty after mass deletes.
        let index = below(self.count as u64) as usize;
        self.iter().nth(index)
    }

    /// Bytes of the table itself, without what the items point to.
    pub(crate) fn bytes(&self) -> usize {
        let shards = self.regions.iter().flat_map(|region| &region.shards);
        size_of::<Self>()
            + shards.map(|it| it.allocation_size() + size_of::<HashTable<T>>()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::Table;
    use kumiko_base::draw::{self, Draw};
    use std::collections::BTreeSet;

    fn mix(n: u64) -> u64 {
        Draw::new(n).bits()
    }

    fn whole(table: &Table<u64>) -> Vec<u64> {
        let mut seen = Vec::new();
        let mut cursor = 0;
        loop {
            cursor = table.scan(cursor, 7, |it| mix(*it), |it| seen.push(*it));
            if cursor == 0 {
                return seen;
            }
        }
    }

    #[test]
    fn behaves_like_a_set() {
        draw::check("table_behaves_like_a_set", 6, |draw| {
            let mut table = Table::new();
            let mut model = BTreeSet::new();
            let span = draw.one_of(&[50, 4000, 20000]);
            for _ in 0..30_000 {
                let n = draw.below(span);
                if draw.below(5) < 3 {
                    if model.insert(n) {
                        table.insert(mix(n), n, |it| mix(*it));
                    }
                } else {
                    let gone = table.remove(mix(n), |it| *it == n, |it| mix(*it));
                    assert_eq!(gone.is_some(), model.remove(&n));
                }
            }
            assert_eq!(table.len(), model.len());
            assert!(model.iter().all(|n| table.find(mix(*n), |it| it == n).is_some()));
            let walked = whole(&table);
            assert_eq!(walked.len(), model.len());
            assert_eq!(walked.into_iter().collect::<BTreeSet<_>>(), model);
            for n in model.clone() {
                assert!(table.remove(mix(n), |it| *it == n, |it| mix(*it)).is_some());
            }
            assert_eq!(table.len(), 0);
            assert_eq!(table.iter().count(), 0);
        });
    }

    #[test]
    fn a_walk_sees_what_stays_exactly_once() {
        draw::check("a_walk_sees_what_stays", 20, |draw| {
            let mut table = Table::new();
            for n in 0..2000 {
                table.insert(mix(n), n, |it| mix(*it));
            }
            let mut next = 10_000;
            let mut seen = Vec::new();
            let mut cursor = 0;
            loop {
                cursor = table.scan(cursor, 10, |it| mix(*it), |it| seen.push(*it));
                if cursor == 0 {
                    break;
                }
                for _ in 0..draw.below(200) {
                    table.insert(mix(next), next, |it| mix(*it));
                    next += 1;
                }
                if draw.one_in(3) {
                    for n in (10_000..next).filter(|n| n % 3 != 0) {
                        table.remove(mix(n), |it| *it == n, |it| mix(*it));
                    }
                }
            }
            let mut stayed: Vec<u64> = seen.into_iter().filter(|n| *n < 2000).collect();
            stayed.sort_unstable();
            assert_eq!(stayed, (0..2000).collect::<Vec<_>>());
        });
    }

    #[test]
    fn random_items_are_uniform() {
        let mut table = Table::new();
        for n in 0..100 {
            table.insert(mix(n), n, |it| mix(*it));
        }
        let mut draw = Draw::new(1);
        let mut counts = [0_u32; 100];
        for _ in 0..100_000 {
            let item = table.random(&mut |n| draw.below(n)).expect("it is not empty");
            counts[*item as usize] += 1;
        }
        assert!(counts.iter().all(|it| (800..1200).contains(it)), "{counts:?}");
    }
}
