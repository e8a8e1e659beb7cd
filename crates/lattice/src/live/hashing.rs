//! The one hash function of the live structure, keyed so that clients cannot aim at collisions.

use std::hash::{BuildHasher, Hasher};

/// Hashes keys, fields and members.
#[derive(Clone, Debug)]
pub(crate) struct Hashing {
    state: foldhash::quality::FixedState,
}

impl Hashing {
    pub(crate) fn new(seed: u64) -> Hashing {
        Hashing { state: foldhash::quality::FixedState::with_seed(seed) }
    }

    #[inline]
    pub(crate) fn of(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }
}
