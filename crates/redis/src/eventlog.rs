//! What the commands of the event log need from whoever keeps it.

/// Which events a point has: from the first that is kept to the latest. None if the latest is
/// before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first event that is kept.
    pub first: u64,
    /// The latest event; 0 if there never was one.
    pub latest: u64,
}

/// The logs of all points. Errors are texts for the client.
pub trait EventLog: Send + std::fmt::Debug {
    /// Appends the events in one transaction and returns the id of the first. When this returns
    /// they are as safe as the engine's setting promises.
    fn append(&mut self, point: &str, events: &[&[u8]]) -> Result<u64, String>;

    /// The events from `from` on, at most `count` of them.
    fn read(&mut self, point: &str, from: u64, count: usize)
    -> Result<Vec<(u64, Vec<u8>)>, String>;

    /// Which events there are.
    fn extent(&mut self, point: &str) -> Result<Extent, String>;

    /// The names of points that have a log, at most `count` of them.
    fn points(&mut self, count: usize) -> Result<Vec<String>, String>;
}
