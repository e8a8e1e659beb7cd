//! The lattice database on one thread: commands, publishing, merging, and bytes per key.
//!
//! The figures beside ours are those of the Java reference on a machine like this one (two virtual
//! processors, third repetition); no release with a key-value store is on Maven to run beside us.
//! Memory is compared with a `redis-server` on this machine, if there is one.
//!
//! ```text
//! bench-lattice [COUNT]      COUNT keys, 100000 if not given; memory takes ten times as many
//! ```

mod memory;
mod replicate;

use std::time::Instant;

use kumiko_lattice::live::{DbId, End, Live, Settings, Ttl, ZaddRule};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A fixed time: no command here depends on it.
pub(crate) const NOW_MS: u64 = 1_800_000_000_000;

pub(crate) fn key(n: usize) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut rest = n;
    for place in key[4..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Visits `0..count` in an order that jumps about.
pub(crate) fn scattered(count: usize) -> impl Iterator<Item = usize> {
    let step = 7_919;
    (0..count).map(move |n| n * step % count)
}

fn row(name: &str, count: usize, java: f64, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    let rate = count as f64 / start.elapsed().as_secs_f64();
    let ratio = if java == 0.0 { "-".to_string() } else { format!("{:.0}x", rate / java) };
    let java = if java == 0.0 { "-".to_string() } else { format!("{java:.0}") };
    println!("{name:<34} {rate:>12.0} {java:>10} {ratio:>8}");
}

fn live(replication: bool) -> (Live, DbId) {
    let column = b"0123456789abcdef0123456789abcdef.1".to_vec();
    let mut live = Live::new(Settings { replication, column, seed: 9, ..Settings::default() });
    let id = live.open(b"0");
    (live, id)
}

fn commands(count: usize, replication: bool) {
    let kind = if replication { "replicated" } else { "alone" };
    println!(
        "\n{:<34} {:>12} {:>10} {:>8}",
        format!("commands, {kind}"),
        "per second",
        "java",
        "ratio"
    );
    let (mut live, id) = live(replication);
    let value = [b'v'; 16];
    row("set, new keys", count, 155e3, || {
        for n in 0..count {
            live.db(id, NOW_MS).set(&key(n), &value, Ttl::Clear).expect("it fits");
        }
    });
    row("set, again, scattered", count, 107e3, || {
        for n in scattered(count) {
            live.db(id, NOW_MS).set(&key(n), &value, Ttl::Clear).expect("it fits");
        }
    });
    row("get, scattered", count, 429e3, || {
        for n in scattered(count) {
            let mut db = live.db(id, NOW_MS);
            assert!(db.get(&key(n)).expect("a string").is_some());
        }
    });
    row("incr, one key", count, 208e3, || {
        for _ in 0..count {
            live.db(id, NOW_MS).incr(b"counter", 1).expect("an integer");
        }
    });
    let fields = count.min(10_000);
    let rounds = count.div_ceil(fields);
    row("hset, 10k fields", fields * rounds, 520e3, || {
        for n in (0..rounds).flat_map(|_| scattered(fields)) {
            live.db(id, NOW_MS).hset(b"hash", &key(n), &value).expect("it fits");
        }
    });
    row("sadd, 10k members", fields * rounds, 49e3, || {
        for n in (0..rounds).flat_map(|_| scattered(fields)) {
            live.db(id, NOW_MS).sadd(b"set", &key(n)).expect("it fits");
        }
    });
    row("zadd, 10k members", fields * rounds, 54e3, || {
        for (at, n) in (0..rounds).flat_map(|_| scattered(fields)).enumerate() {
            let score = (at * 31 % 1000) as f64;
            live.db(id, NOW_MS)
                .zadd(b"zset", &key(n), score, ZaddRule::default())
                .expect("it fits");
        }
    });
    row("zrange 0..9 of 10k", count, 1.0 / 0.45, || {
        for _ in 0..count {
            let mut db = live.db(id, NOW_MS);
            assert!(0 < db.zrange(b"zset", 0, 10, false).expect("a sorted set").count());
        }
    });
    lists(count, &mut live, id);
}

fn lists(count: usize, live: &mut Live, id: DbId) {
    row("rpush", count, 319e3, || {
        for n in 0..count {
            live.db(id, NOW_MS).push(b"right", End::Back, &key(n)).expect("it fits");
        }
    });
    row("lpush", count, 12.8e3, || {
        for n in 0..count {
            live.db(id, NOW_MS).push(b"left", End::Front, &key(n)).expect("it fits");
        }
    });
    row("lpop", count, 0.0, || {
        for _ in 0..count {
            live.db(id, NOW_MS).pop(b"left", End::Front).expect("a list");
        }
    });
    row("keys, each", count, 100e3 / 2.3, || {
        let mut seen = 0;
        live.db(id, NOW_MS).each_key(|_| seen += 1);
        assert!(count <= seen);
    });
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, count, shape, replicated] = &words[..]
        && mode == "memory"
    {
        let number = |it: &String| it.parse().expect("a number");
        return memory::child(number(count), number(shape), replicated == "true");
    }
    let count = std::env::args().nth(1).map_or(100_000, |it| it.parse().expect("a number of keys"));
    println!("one thread, {count} keys of 16 bytes with values of 16 bytes");
    commands(count, false);
    commands(count, true);
    replicate::run(count);
    memory::run(count * 10);
}
