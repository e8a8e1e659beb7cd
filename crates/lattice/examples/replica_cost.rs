//! What replication costs: export and sign, sign again after one change, send, take in, merge.
//!
//! `cargo run --release -p kumiko-lattice --example replica_cost -- 100000`
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::collections::BTreeMap;
use std::time::Instant;

use kumiko_lattice::Index;
use kumiko_lattice::cell::{Cell, Writer, message};
use kumiko_lattice::index::{Batch, Difference};
use kumiko_lattice::replica::region::kv_of;
use kumiko_lattice::replica::{
    Layout, Limits, Publisher, Region, Trust, Verdict, absorb::absorb_all,
};
use kumiko_lattice::sign::{Owner, Signer};

const TIME: i64 = 1_700_000_000_000;

fn write_entry(writer: &mut Writer, value: &[u8], stamp: i64) {
    writer.short_vector(4, |writer| {
        writer.string(value);
        writer.int(0);
        writer.int(stamp);
        writer.int(0);
    });
}

fn publisher(number: u8) -> Publisher {
    Publisher::new(Signer::from_seed(&[number; 32]), b"db", 1)
}

/// The best of five runs, in milliseconds.
fn best<T>(name: &str, mut run: impl FnMut() -> T) -> T {
    let mut best = f64::INFINITY;
    let mut result = None;
    for _ in 0..5 {
        let start = Instant::now();
        result = Some(run());
        best = best.min(start.elapsed().as_secs_f64() * 1_000.0);
    }
    println!("{name:<44} {best:>10.3} ms");
    result.expect("it ran")
}

fn main() {
    let count: u32 = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(100_000);
    // Scattered, as a hash table gives them.
    let keys: Vec<String> =
        (0..count).map(|at| format!("key:{:08}", at.wrapping_mul(2_654_435_761) % count)).collect();
    let seen = BTreeMap::new();
    let fill = |publisher: &mut Publisher| {
        let mut batch = Batch::new();
        for key in &keys {
            batch.put_string(key.as_bytes(), |writer| write_entry(writer, b"some value", TIME));
        }
        publisher.publish(&mut batch, &seen, 1).expect("all is here")
    };
    println!("{count} keys");
    let slot = best("export and sign", || fill(&mut publisher(1)));
    let mut one = publisher(1);
    fill(&mut one);
    let changed = best("change one key and sign", || {
        let mut batch = Batch::new();
        batch.put_string(keys[7].as_bytes(), |writer| write_entry(writer, b"other", TIME + 1));
        one.publish(&mut batch, &seen, 2).expect("all is here")
    });
    let mut region = Region::new();
    region.take(slot.clone());
    let sent = best("encode the complete message", || {
        let mut sent = Vec::new();
        message::encode(&region.root(Layout::Seed), &mut sent);
        sent
    });
    println!("{:<44} {:>10} bytes", "", sent.len());
    let root =
        best("decode and check it", || message::decode_complete(&sent).expect("it is whole"));
    let trust = Trust::everyone();
    let theirs = best("verify the slot", || {
        let kv = kv_of(&root).expect("a root").expect("with the region");
        let (received, _) = Region::received(kv.view(), &Limits::default());
        let mut region = Region::new();
        for slot in received {
            region.offer(slot, &trust, &Limits::default()).expect("it is signed");
        }
        region
    });
    let me = Signer::from_seed(&[2; 32]).owner();
    let absorb = |own: &Index, region: &Region| {
        let mut judge = |_: &Owner, _: &Difference<'_>| Ok(Verdict::Take);
        absorb_all(own, &me, region, b"db", &trust, &|_| true, &mut judge).0
    };
    let merged = best("merge into empty", || absorb(&Index::new(), &theirs));
    let mut newer = Region::new();
    newer.take(changed.clone());
    best("merge with one difference", || absorb(&merged, &newer));
    let novel = best("find the novel cells of one change", || {
        let old = slot.stores()[0].index.cell();
        let known: std::collections::HashSet<_> =
            message::novelty(old, &mut |_| false, usize::MAX).iter().map(Cell::id).collect();
        message::novelty(changed.signed(), &mut |id| known.contains(id), usize::MAX)
    });
    println!("{:<44} {:>10} cells", "", novel.len());
}
