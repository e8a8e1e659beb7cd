//! Publishing and merging.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kumiko_lattice::index::Index;
use kumiko_lattice::live::{DbId, Live, Settings, Source, Ttl, publication};
use kumiko_lattice::replica::absorb::column;
use kumiko_lattice::replica::{Layout, Publisher, Verified};
use kumiko_lattice::sign::Signer;

use crate::{NOW_MS, key};

struct Node {
    live: Live,
    id: DbId,
    publisher: Publisher,
    signer: Signer,
}

impl Node {
    fn new(number: u8) -> Node {
        let signer = Signer::from_seed(&[number; 32]);
        let column = column(&signer.owner(), 1).into_bytes();
        let settings = Settings { replication: true, column, seed: 7, ..Settings::default() };
        let mut live = Live::new(settings);
        let id = live.open(b"0");
        let publisher = Publisher::new(Signer::from_seed(&[number; 32]), b"0", 1);
        Node { live, id, publisher, signer }
    }

    fn set(&mut self, n: usize, value: &[u8], now_ms: u64) {
        self.live.db(self.id, now_ms).set(&key(n), value, Ttl::Clear).expect("it fits");
    }

    fn publish(&mut self, now_ms: u64) -> Verified {
        self.live.fold(self.id, now_ms).expect("our own state");
        let state: &Index = self.live.state(self.id);
        let mut batch = publication(self.publisher.index(), state).expect("our own state");
        self.publisher.publish(&mut batch, &BTreeMap::new(), now_ms).expect("our own state")
    }

    fn absorb(&mut self, from: &Node, slot: &Verified, now_ms: u64) -> usize {
        let owner = from.signer.owner();
        let source = Source { owner: &owner, layout: Layout::Seed, ahead_max_ms: 30_000 };
        let merged = self.live.absorb(self.id, source, &slot.stores()[0], now_ms);
        merged.expect("a whole slot").keys.len()
    }
}

fn row(name: &str, took: Duration, java_ms: f64) {
    let ms = took.as_secs_f64() * 1e3;
    let (java, ratio) = if java_ms == 0.0 {
        ("-".to_string(), "-".to_string())
    } else {
        (format!("{java_ms}"), format!("{:.1}x", java_ms / ms))
    };
    println!("{name:<46} {ms:>10.3} {java:>10} {ratio:>8}");
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

pub(crate) fn run(count: usize) {
    println!("\n{:<46} {:>10} {:>10} {:>8}", "replication", "ms", "java", "ratio");
    let (mut a, mut b) = (Node::new(1), Node::new(2));
    for n in 0..count {
        a.set(n, &[b'v'; 16], NOW_MS);
    }
    let (slot, took) = timed(|| a.publish(NOW_MS));
    row(&format!("fold, hash and sign {count} new keys"), took, 498.0);
    let (changed, took) = timed(|| b.absorb(&a, &slot, NOW_MS));
    assert_eq!(changed, count);
    row(&format!("absorb {count} keys into nothing"), took, 405.0);
    b.publish(NOW_MS);
    for (differences, java_publish, java_absorb) in
        [(1, 0.1, 1092.0), (10, 0.0, 0.0), (1000, 0.0, 0.0)]
    {
        let now_ms = NOW_MS + differences as u64;
        for n in 0..differences {
            a.set(n * 97 % count, format!("{differences} {n}").as_bytes(), now_ms);
        }
        let (slot, took) = timed(|| a.publish(now_ms));
        row(&format!("publish {differences} changed of {count}"), took, java_publish);
        let (changed, took) = timed(|| b.absorb(&a, &slot, now_ms));
        assert!(0 < changed && changed <= differences);
        row(&format!("absorb {differences} changed of {count}"), took, java_absorb);
    }
}
