//! The members of a sorted set: by member in a table, by (score, member) in an order that knows
//! ranks.
//!
//! A large set keeps each member once, in a slot with its score; the table and the order hold slot
//! numbers. The order is a row of sorted chunks with the scores beside the slot numbers, so that a
//! search mostly reads scores that lie together; a Fenwick tree over the chunk lengths turns ranks
//! into chunks and back in logarithmic time.

use std::cmp::Ordering;

use super::fields::{Thresholds, sampled};
use super::hashing::Hashing;
use super::table::Table;

/// A chunk this long is cut in two.
const CHUNK_ITEMS: usize = 512;

/// One end of a range by score or by member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound<T> {
    /// Nothing lies before it.
    Low,
    /// This and what lies above it, as a start; this and what lies below it, as an end.
    With(T),
    /// The same without the value itself.
    Without(T),
    /// Nothing lies behind it.
    High,
}

fn compare(a: (f64, &[u8]), b: (f64, &[u8])) -> Ordering {
    // Scores are never NaN; the callers refuse it.
    a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal).then_with(|| a.1.cmp(b.1))
}

#[derive(Clone, Debug)]
struct Slot {
    score: f64,
    member: Box<[u8]>,
}

#[derive(Debug, Default)]
struct Chunk {
    scores: Vec<f64>,
    slots: Vec<u32>,
}

/// The large form.
#[derive(Debug, Default)]
pub(crate) struct Ranked {
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: Table<u32>,
    chunks: Vec<Chunk>,
    /// Fenwick tree over the chunks' lengths, one-based.
    sums: Vec<usize>,
}

impl Ranked {
    fn member(&self, slot: u32) -> &[u8] {
        &self.slots[slot as usize].member
    }

    fn find(&self, hashing: &Hashing, member: &[u8]) -> Option<u32> {
        self.index.find(hashing.of(member), |it| self.member(*it) == member).copied()
    }

    /// The first chunk whose last item is not before the given one.
    fn chunk_of(&self, score: f64, member: &[u8]) -> usize {
        self.chunks.partition_point(|chunk| {
            let last = chunk.slots.len() - 1;
            match chunk.scores[last].partial_cmp(&score) {
                Some(Ordering::Less) => true,
                Some(Ordering::Greater) => false,
                _ => self.member(chunk.slots[last]) < member,
            }
        })
    }

    fn place_in(&self, chunk: &Chunk, score: f64, member: &[u8]) -> usize {
        let start = chunk.scores.partition_point(|it| *it < score);
        let end = start + chunk.scores[start..].partition_point(|it| *it <= score);
        start + chunk.slots[start..end].partition_point(|it| self.member(*it) < member)
    }

    fn order_insert(&mut self, slot: u32) {
        let Slot { score, member } = &self.slots[slot as usize];
        let score = *score;
        let mut fresh = false;
        let mut at = self.chunk_of(score, member);
        if at == self.chunks.len() {
            // Behind everything: fill the last chunk whole, so that growing scores pack well.
            if self.chunks.last().is_none_or(|it| it.slots.len() == CHUNK_ITEMS) {
                self.chunks.push(Chunk::default());
                fresh = true;
            }
            at = self.chunks.len() - 1;
        }
        let place = self.place_in(&self.chunks[at], score, member);
        let chunk = &mut self.chunks[at];
        chunk.scores.insert(place, score);
        chunk.slots.insert(place, slot);
        if CHUNK_ITEMS < chunk.slots.len() {
            let half = chunk.slots.len() / 2;
            let (scores, slots) = (chunk.scores.split_off(half), chunk.slots.split_off(half));
            self.chunks.insert(at + 1, Chunk { scores, slots });
            fresh = true;
        }
        if fresh { self.count_again() } else { self.count_add(at, 1) }
    }

    fn order_remove(&mut self, slot: u32) {
        let Slot { score, member } = &self.slots[slot as usize];
        let at = self.chunk_of(*score, member);
        let place = self.place_in(&self.chunks[at], *score, member);
        assert_eq!(self.chunks[at].slots[place], slot, "the order holds every slot");
        let chunk = &mut self.chunks[at];
        chunk.scores.remove(place);
        chunk.slots.remove(place);
        let left = chunk.slots.len();
        let merges = left < CHUNK_ITEMS / 4
            && at + 1 < self.chunks.len()
            && left + self.chunks[at + 1].slots.len() <= CHUNK_ITEMS;
        if merges {
            let next = self.chunks.remove(at + 1);
            self.chunks[at].scores.extend(next.scores);
            self.chunks[at].slots.extend(next.slots);
        } else if left == 0 {
            self.chunks.remove(at);
        } else {
            self.count_add(at, -1);
            return;
        }
        self.count_again();
    }

    fn count_add(&mut self, chunk: usize, by: isize) {
        let mut at = chunk + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    fn count_again(&mut self) {
        self.sums.clear();
        self.sums.push(0);
        self.sums.extend(self.chunks.iter().map(|it| it.slots.len()));
        for at in 1..self.sums.len() {
            let up = at + (at & at.wrapping_neg());
            if up < self.sums.len() {
                self.sums[up] += self.sums[at];
            }
        }
    }

    fn items_before(&self, chunk: usize) -> usize {
        let mut at = chunk;
        let mut sum = 0;
        while 0 < at {
            sum += self.sums[at];
            at &= at - 1;
        }
        sum
    }

    /// The chunk that holds `rank`, and the place in it.
    fn locate(&self, rank: usize) -> (usize, usize) {
        let mut at = 0;
        let mut rest = rank;
        let mut step = (self.sums.len().max(2) - 1).next_power_of_two();
        while 0 < step {
            if at + step < self.sums.len() && self.sums[at + step] <= rest {
                at += step;
                rest -= self.sums[at];
            }
            step /= 2;
        }
        (at, rest)
    }

    fn rank(&self, score: f64, member: &[u8]) -> usize {
        let at = self.chunk_of(score, member);
        match self.chunks.get(at) {
            Some(chunk) => self.items_before(at) + self.place_in(chunk, score, member),
            None => self.index.len(),
        }
    }

    fn insert(&mut self, hashing: &Hashing, score: f64, member: &[u8]) {
        let fresh = Slot { score, member: member.into() };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = fresh;
            slot
        } else {
            if self.slots.len() == self.slots.capacity() {
                self.slots.reserve_exact((self.slots.len() / 4).max(16));
            }
            self.slots.push(fresh);
            self.slots.len() as u32 - 1
        };
        let slots = &self.slots;
        self.index.insert(hashing.of(member), slot, |it| hashing.of(&slots[*it as usize].member));
        self.order_insert(slot);
    }

    fn remove(&mut self, hashing: &Hashing, member: &[u8]) -> bool {
        let Some(slot) = self.find(hashing, member) else { return false };
        self.order_remove(slot);
        let slots = &self.slots;
        self.index.remove(
            hashing.of(member),
            |it| *it == slot,
            |it| hashing.of(&slots[*it as usize].member),
        );
        self.slots[slot as usize].member = Box::default();
        self.free.push(slot);
        true
    }
}

/// The members and scores of one sorted set.
#[derive(Debug)]
pub(crate) enum Ranking {
    Small(Vec<(f64, Box<[u8]>)>),
    Large(Box<Ranked>),
}

impl Ranking {
    pub(crate) fn new() -> Ranking {
        Ranking::Small(Vec::new())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Ranking::Small(items) => items.len(),
            Ranking::Large(ranked) => ranked.index.len(),
        }
    }

    pub(crate) fn score(&self, hashing: &Hashing, member: &[u8]) -> Option<f64> {
        match self {
            Ranking::Small(items) => items.iter().find(|it| *it.1 == *member).map(|it| it.0),
            Ranking::Large(ranked) => {
                ranked.find(hashing, member).map(|slot| ranked.slots[slot as usize].score)
            }
        }
    }

    /// Sets a member's score; true if the member is new.
    pub(crate) fn set(
        &mut self,
        hashing: &Hashing,
        limits: &Thresholds,
        member: &[u8],
        score: f64,
    ) -> bool {
        match self {
            Ranking::Small(items) => {
                let old = items.iter().position(|it| *it.1 == *member);
                if let Some(at) = old {
                    items.remove(at);
                }
                let at = items.partition_point(|it| {
                    compare((it.0, &it.1), (score, member)) == Ordering::Less
                });
                if items.len() == items.capacity() {
                    items.reserve_exact(items.len().clamp(1, 16));
                }
                items.insert(at, (score, member.into()));
                if limits.zset_entries < items.len() || limits.zset_value < member.len() {
                    let mut ranked = Ranked::default();
                    for (score, member) in std::mem::take(items) {
                        ranked.insert(hashing, score, &member);
                    }
                    *self = Ranking::Large(Box::new(ranked));
                }
                old.is_none()
            }
            Ranking::Large(ranked) => {
                if let Some(slot) = ranked.find(hashing, member) {
                    if ranked.slots[slot as usize].score.to_bits() != score.to_bits() {
                        ranked.order_remove(slot);
                        ranked.slots[slot as usize].score = score;
                        ranked.order_insert(slot);
                    }
                    false
                } else {
                    ranked.insert(hashing, score, member);
                    true
                }
            }
        }
    }

    pub(crate) fn del(&mut self, hashing: &Hashing, member: &[u8]) -> bool {
        match self {
            Ranking::Small(items) => match items.iter().position(|it| *it.1 == *member) {
                Some(at) => {
                    items.remove(at);
                    true
                }
                None => false,
            },
            Ranking::Large(ranked) => ranked.remove(hashing, member),
        }
    }

    /// How many items lie before (score, member) in the order.
    pub(crate) fn rank(&self, score: f64, member: &[u8]) -> usize {
        match self {
            Ranking::Small(items) => items
                .partition_point(|it| compare((it.0, &it.1), (score, member)) == Ordering::Less),
            Ranking::Large(ranked) => ranked.rank(score, member),
        }
    }

    /// How many items have a score below `score`, or up to it if `with`.
    fn rank_of_score(&self, score: f64, with: bool) -> usize {
        let under = |it: f64| if with { it <= score } else { it < score };
        match self {
            Ranking::Small(items) => items.partition_point(|it| under(it.0)),
            Ranking::Large(ranked) => {
                let at = ranked
                    .chunks
                    .partition_point(|it| it.scores.last().is_some_and(|score| under(*score)));
                let inside = ranked
                    .chunks
                    .get(at)
                    .map_or(0, |it| it.scores.partition_point(|score| under(*score)));
                ranked.items_before(at) + inside
            }
        }
    }

    /// The first rank inside a range that starts at `start`, and the first behind its `end`.
    pub(crate) fn score_range(&self, start: Bound<f64>, end: Bound<f64>) -> (usize, usize) {
        let first = match start {
            Bound::Low => 0,
            Bound::High => self.len(),
            Bound::With(score) => self.rank_of_score(score, false),
            Bound::Without(score) => self.rank_of_score(score, true),
        };
        let last = match end {
            Bound::Low => 0,
            Bound::High => self.len(),
            Bound::With(score) => self.rank_of_score(score, true),
            Bound::Without(score) => self.rank_of_score(score, false),
        };
        (first, last.max(first))
    }

    fn rank_of_member(&self, member: &[u8], with: bool) -> usize {
        let under = |it: &[u8]| if with { it <= member } else { it < member };
        let mut low = 0;
        let mut high = self.len();
        while low < high {
            let middle = usize::midpoint(low, high);
            let (it, _) = self.at(middle).expect("below the length");
            if under(it) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// As `score_range`, by member; meaningful when all scores are equal.
    pub(crate) fn member_range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> (usize, usize) {
        let first = match start {
            Bound::Low => 0,
            Bound::High => self.len(),
            Bound::With(member) => self.rank_of_member(member, false),
            Bound::Without(member) => self.rank_of_member(member, true),
        };
        let last = match end {
            Bound::Low => 0,
            Bound::High => self.len(),
            Bound::With(member) => self.rank_of_member(member, true),
            Bound::Without(member) => self.rank_of_member(member, false),
        };
        (first, last.max(first))
    }

    /// The item at `rank`.
    pub(crate) fn at(&self, rank: usize) -> Option<(&[u8], f64)> {
        if self.len() <= rank {
            return None;
        }
        match self {
            Ranking::Small(items) => items.get(rank).map(|it| (&*it.1, it.0)),
            Ranking::Large(ranked) => {
                let (chunk, place) = ranked.locate(rank);
                let chunk = &ranked.chunks[chunk];
                Some((ranked.member(chunk.slots[place]), chunk.scores[place]))
            }
        }
    }

    /// The items from rank `start` up to, and without, `end`.
    pub(crate) fn range(&self, start: usize, end: usize) -> Walk<'_> {
        let end = end.min(self.len());
        let (chunk, place) = match self {
            Ranking::Large(ranked) if start < end => ranked.locate(start),
            _ => (0, start),
        };
        Walk { ranking: self, chunk, place, left: end.saturating_sub(start), back: false }
    }

    /// The same items, the highest rank first.
    pub(crate) fn range_back(&self, start: usize, end: usize) -> Walk<'_> {
        let end = end.min(self.len());
        let (chunk, place) = match self {
            Ranking::Large(ranked) if start < end => ranked.locate(end - 1),
            _ => (0, end.saturating_sub(1)),
        };
        Walk { ranking: self, chunk, place, left: end.saturating_sub(start), back: true }
    }

    /// As `Table::scan`; a small set comes whole.
    pub(crate) fn scan(
        &self,
        hashing: &Hashing,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8], f64),
    ) -> u64 {
        match self {
            Ranking::Small(items) => {
                for it in items {
                    visit(&it.1, it.0);
                }
                0
            }
            Ranking::Large(ranked) => ranked.index.scan(
                cursor,
                count,
                |it| hashing.of(ranked.member(*it)),
                |it| visit(ranked.member(*it), ranked.slots[*it as usize].score),
            ),
        }
    }

    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Ranking::Small(_) => "listpack",
            Ranking::Large(_) => "skiplist",
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Ranking::Small(items) => {
                items.iter().map(|it| it.1.len()).sum::<usize>() + items.capacity() * 24
            }
            Ranking::Large(ranked) => {
                let members = sampled(&ranked.index, |it| ranked.member(*it).len());
                let order: usize = ranked.chunks.iter().map(|it| it.slots.capacity() * 12).sum();
                members
                    + order
                    + ranked.slots.capacity() * size_of::<Slot>()
                    + ranked.index.bytes()
                    + ranked.free.capacity() * 4
            }
        }
    }
}

/// A walk over ranks, up or down.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    ranking: &'a Ranking,
    chunk: usize,
    place: usize,
    left: usize,
    back: bool,
}

impl<'a> Iterator for Walk<'a> {
    type Item = (&'a [u8], f64);

    fn next(&mut self) -> Option<(&'a [u8], f64)> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (item, length) = match self.ranking {
            Ranking::Small(items) => {
                let it = &items[self.place];
                ((&*it.1, it.0), usize::MAX)
            }
            Ranking::Large(ranked) => {
                let chunk = &ranked.chunks[self.chunk];
                let member = ranked.member(chunk.slots[self.place]);
                ((member, chunk.scores[self.place]), chunk.slots.len())
            }
        };
        if self.back {
            if 0 < self.place {
                self.place -= 1;
            } else if let (Ranking::Large(ranked), true) = (self.ranking, 0 < self.chunk) {
                self.chunk -= 1;
                self.place = ranked.chunks[self.chunk].slots.len() - 1;
            }
        } else {
            self.place += 1;
            if self.place == length {
                self.chunk += 1;
                self.place = 0;
            }
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, Ranking};
    use crate::live::fields::Thresholds;
    use crate::live::hashing::Hashing;
    use kumiko_base::draw;
    use std::collections::BTreeMap;

    #[test]
    fn behaves_like_a_sorted_vector() {
        let limits = Thresholds::default();
        draw::check("ranking_behaves_like_a_sorted_vector", 12, |draw| {
            let hashing = Hashing::new(draw.bits());
            let mut ranking = Ranking::new();
            let mut model: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
            let members = draw.one_of(&[20, 500, 5000]);
            let scores = draw.one_of(&[1, 5, 100_000]);
            for _ in 0..8000 {
                let member = draw.below(members).to_string().into_bytes();
                if draw.one_in(4) {
                    assert_eq!(ranking.del(&hashing, &member), model.remove(&member).is_some());
                } else {
                    let score = draw.below(scores) as f64 / 3.0;
                    let fresh = model.insert(member.clone(), score).is_none();
                    assert_eq!(ranking.set(&hashing, &limits, &member, score), fresh);
                }
            }
            let mut sorted: Vec<(f64, &[u8])> = model.iter().map(|it| (*it.1, &it.0[..])).collect();
            sorted.sort_by(|a, b| super::compare(*a, *b));
            assert_eq!(ranking.len(), sorted.len());
            let count = sorted.len();
            assert!(ranking.range(0, count).eq(sorted.iter().map(|it| (it.1, it.0))));
            for _ in 0..200 {
                let start = draw.index(count + 1);
                let end = start + draw.index(count + 1 - start);
                let part = &sorted[start..end];
                assert!(ranking.range(start, end).eq(part.iter().map(|it| (it.1, it.0))));
                assert!(
                    ranking.range_back(start, end).eq(part.iter().rev().map(|it| (it.1, it.0)))
                );
                let score = draw.below(scores) as f64 / 3.0;
                let below = sorted.iter().filter(|it| it.0 < score).count();
                let upto = sorted.iter().filter(|it| it.0 <= score).count();
                assert_eq!(
                    ranking.score_range(Bound::With(score), Bound::With(score)),
                    (below, upto)
                );
                assert_eq!(ranking.score_range(Bound::Without(score), Bound::High).0, upto);
                if let Some(it) = sorted.get(start) {
                    assert_eq!(ranking.rank(it.0, it.1), start);
                    assert_eq!(ranking.score(&hashing, it.1), Some(it.0));
                    assert_eq!(ranking.at(start), Some((it.1, it.0)));
                }
            }
        });
    }
}
