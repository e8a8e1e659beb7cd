//! Random cases from a seed, for property tests.
//!
//! [`check`] runs a property on many seeds. When one fails, it prints the seed; `SEED=n` in the
//! environment runs that seed alone, and `CASES=n` runs n seeds instead of as many as the test says.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A stream of random numbers that a seed fixes for ever (SplitMix64).
#[derive(Clone, Debug)]
pub struct Draw {
    state: u64,
}

impl Draw {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Draw {
        Draw { state: seed }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, and without, `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(0 < bound, "there is no number below zero");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An index below `count`.
    pub fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`.
    pub fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())].clone()
    }

    /// Random bytes, up to and with `size_max` of them.
    pub fn bytes(&mut self, size_max: usize) -> Vec<u8> {
        let size = self.index(size_max + 1);
        (0..size).map(|_| self.bits() as u8).collect()
    }
}

/// Runs `property` on `cases` seeds, or on those that the environment's `SEED` or `CASES` names.
pub fn check(name: &str, cases: u64, mut property: impl FnMut(&mut Draw)) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CASES").unwrap_or(cases),
    };
    for seed in seeds {
        let mut draw = Draw::new(seed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| property(&mut draw))) {
            eprintln!("{name} failed, replay with SEED={seed}");
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Draw;

    #[test]
    fn a_seed_fixes_the_stream() {
        let mut draw = Draw::new(0);
        assert_eq!(draw.bits(), 0xE220_A839_7B1D_CDAF);
        let mut again = Draw::new(7);
        let mut other = Draw::new(7);
        assert!((0..100).all(|_| again.below(10) == other.below(10)));
        assert!((0..1000).all(|_| again.below(3) < 3));
    }
}
