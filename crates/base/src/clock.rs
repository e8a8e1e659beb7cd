//! Clocks as plain values: they read no time, they are told it.
//!
//! A [`Lamport`] clock orders messages; a [`Hybrid`] clock stamps writes so that a later write of
//! one replica always carries a later stamp once the earlier one was shown to others.

use crate::Error;

/// A logical clock in the sense of Lamport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lamport(u64);

impl Lamport {
    /// The clock that shows `now`.
    pub const fn new(now: u64) -> Lamport {
        Lamport(now)
    }

    /// What the clock shows.
    pub const fn now(self) -> u64 {
        self.0
    }

    /// The clock after posting a message when the newest one carries `newest`: the message gets
    /// what the new clock shows.
    ///
    /// # Errors
    ///
    /// `ClockOverflow` where a number would have to wrap, which would break the order of keys.
    pub fn post(self, newest: u64) -> Result<Lamport, Error> {
        self.forward(newest, 2)
    }

    /// The clock after pulling messages, the newest of which carries `newest`. Once per pull.
    ///
    /// # Errors
    ///
    /// `ClockOverflow` as [`Lamport::post`].
    pub fn pull(self, newest: u64) -> Result<Lamport, Error> {
        self.forward(newest, 1)
    }

    fn forward(self, newest: u64, by: u64) -> Result<Lamport, Error> {
        self.0.max(newest).checked_add(by).map(Lamport).ok_or(Error::ClockOverflow)
    }
}

/// A clock that follows the wall clock, never runs backwards, and never gives a stamp again that
/// others have seen. Between two publications it may give one stamp many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hybrid {
    newest: u64,
    published: bool,
}

impl Hybrid {
    /// A clock that knows the stamp `newest`, and that others have seen it.
    pub const fn after(newest: u64) -> Hybrid {
        Hybrid { newest, published: true }
    }

    /// The stamp for a write at the wall time `wall_ms`.
    pub fn stamp(&mut self, wall_ms: u64) -> u64 {
        let least = if self.published { self.newest.saturating_add(1) } else { self.newest };
        self.newest = wall_ms.max(least);
        self.published = false;
        self.newest
    }

    /// Takes note of a stamp that another replica gave.
    pub fn observe(&mut self, stamp: u64) {
        if self.newest <= stamp {
            *self = Hybrid::after(stamp);
        }
    }

    /// Others may have seen every stamp given so far.
    pub fn publish(&mut self) {
        self.published = true;
    }

    /// The newest stamp given or observed.
    pub const fn newest(self) -> u64 {
        self.newest
    }
}

/// Whether a foreign `stamp` lies further ahead of `wall_ms` than `ahead_ms_max`, so that it must
/// wait before it is merged.
pub const fn is_ahead(stamp: u64, wall_ms: u64, ahead_ms_max: u64) -> bool {
    wall_ms.saturating_add(ahead_ms_max) < stamp
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw;

    #[test]
    fn lamport_steps() {
        let clock = Lamport::default();
        assert_eq!(clock.post(0).unwrap().now(), 2);
        assert_eq!(Lamport::new(5).post(9).unwrap().now(), 11);
        assert_eq!(Lamport::new(9).post(5).unwrap().now(), 11);
        assert_eq!(Lamport::new(5).pull(9).unwrap().now(), 10);
        assert_eq!(Lamport::new(9).pull(5).unwrap().now(), 10);
        assert_eq!(Lamport::new(u64::MAX - 2).post(0).unwrap().now(), u64::MAX);
        assert_eq!(Lamport::new(u64::MAX - 1).post(0), Err(Error::ClockOverflow));
        assert_eq!(Lamport::new(0).pull(u64::MAX), Err(Error::ClockOverflow));
    }

    /// Whatever the wall does: stamps never fall, and a published one never comes back.
    #[test]
    fn hybrid_never_repeats_what_was_published() {
        draw::check("hybrid_never_repeats_what_was_published", 2_000, |draw| {
            let mut clock = Hybrid::default();
            let (mut last, mut seen) = (0, None);
            for _ in 0..20 {
                match draw.below(4) {
                    0 => {
                        clock.publish();
                        seen = seen.max(Some(last));
                    }
                    1 => {
                        let stamp = draw.below(20);
                        clock.observe(stamp);
                        seen = seen.max(Some(stamp));
                    }
                    _ => {
                        let wall = draw.below(20);
                        let stamp = clock.stamp(wall);
                        assert!(last <= stamp && wall <= stamp);
                        assert!(seen.is_none_or(|seen| seen < stamp));
                        last = stamp;
                    }
                }
                assert!(last <= clock.newest());
            }
        });
    }

    #[test]
    fn within_one_interval_the_clock_need_not_run_ahead() {
        let mut clock = Hybrid::after(10);
        assert_eq!([clock.stamp(3), clock.stamp(3), clock.stamp(4)], [11, 11, 11]);
        clock.publish();
        assert_eq!([clock.stamp(3), clock.stamp(50)], [12, 50]);
    }

    #[test]
    fn far_ahead() {
        assert!(!is_ahead(130, 100, 30));
        assert!(is_ahead(131, 100, 30));
        assert!(!is_ahead(u64::MAX, u64::MAX, 30));
    }
}
