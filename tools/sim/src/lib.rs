//! Many nodes in one thread from one seed, on a network that fails.
//!
//! The nodes are the real live structure, the real merge, the real agent and protocol; only
//! sockets, disks and clocks are played. A seed fixes everything: commands, delays, cut connections,
//! partitions, crashes, clocks that jump, and a hostile peer. When the network has healed:
//!
//! - all honest nodes hold the same,
//! - counters are exact: every count that was published before a crash is in, none twice,
//! - what is deleted then stays deleted, also when old messages are played again.
//!
//! Read [`world`], then [`node`], [`hostile`].

pub mod hostile;
pub mod node;
pub mod world;

pub use world::{Report, World};

#[cfg(test)]
mod tests {
    use super::World;

    /// A few seeds each time; `SIM_SEEDS` runs more, `SEED` one of them.
    #[test]
    fn replicas_converge() {
        let count = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(12);
        let mut faults = 0;
        kumiko_base::draw::check("replicas_converge", count, |draw| {
            let report = World::new(draw.bits()).run();
            faults += report.cuts + report.crashes + report.attacks;
        });
        assert!(0 < faults, "a network without faults shows nothing");
    }

    #[test]
    fn a_seed_fixes_the_run() {
        assert_eq!(World::new(7).run(), World::new(7).run());
    }
}
