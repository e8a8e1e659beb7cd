//! A filter that says for most absent keys that a table does not hold them.
//!
//! A key sets seven bits inside one group of 512, so a question costs one cache line. With ten bits
//! per key about one absent key in a hundred is not recognised.

const GROUP_WORDS: usize = 8;
const BITS_PER_KEY: usize = 10;
const PROBES: u32 = 7;

/// The hash of a key. It is stored, in effect, so it must never change.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ key.len() as u64;
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("chunks of eight bytes"));
        state = mix(state ^ word);
    }
    let mut last = [0; 8];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(state ^ u64::from_le_bytes(last)))
}

fn mix(word: u64) -> u64 {
    let wide = u128::from(word) * 0xD6E8_FEB8_6659_FD93_u128;
    (wide >> 64) as u64 ^ wide as u64
}

/// Makes the filter for these hashes.
pub(crate) fn build(hashes: &[u64]) -> Vec<u64> {
    let groups = (hashes.len() * BITS_PER_KEY).div_ceil(64 * GROUP_WORDS);
    let mut words = vec![0; groups * GROUP_WORDS];
    for hash in hashes {
        let start = group(words.len(), *hash);
        for (word, bit) in probes(*hash) {
            words[start + word] |= 1 << bit;
        }
    }
    words
}

/// Whether the table may hold the key with this hash.
pub(crate) fn may_hold(words: &[u64], hash: u64) -> bool {
    if words.len() < GROUP_WORDS {
        return false;
    }
    let start = group(words.len(), hash);
    let group = &words[start..start + GROUP_WORDS];
    probes(hash).all(|(word, bit)| group[word] & (1 << bit) != 0)
}

/// Where the group of a hash starts.
fn group(words: usize, hash: u64) -> usize {
    let groups = (words / GROUP_WORDS) as u64;
    ((u128::from(hash) * u128::from(groups)) >> 64) as usize * GROUP_WORDS
}

fn probes(hash: u64) -> impl Iterator<Item = (usize, u32)> {
    // The upper bits choose the group; these come from all of them.
    let mut bits = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..PROBES).map(move |_| {
        let place = bits >> 55;
        bits = bits.rotate_left(9);
        ((place >> 6) as usize, (place & 63) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::{build, hash, may_hold};

    #[test]
    fn present_keys_are_never_refused_and_absent_ones_mostly() {
        let key = |number: u32| format!("key {number}").into_bytes();
        let hashes: Vec<u64> = (0..10_000).map(|it| hash(&key(it))).collect();
        let words = build(&hashes);
        assert!(hashes.iter().all(|it| may_hold(&words, *it)));
        let wrong = (10_000..30_000).filter(|it| may_hold(&words, hash(&key(*it)))).count();
        assert!(wrong < 600, "{wrong} of 20,000 absent keys were let through");
        assert!(!may_hold(&build(&[]), hash(b"a")));
    }

    /// Filters on disk depend on these bits.
    #[test]
    fn the_hash_stays() {
        assert_eq!(hash(b"kumiko"), 17165110116613153050);
    }
}
