//! Watches inside one process: a commit wakes those who wait for a key that it wrote.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::{Error, Range, Watch};

#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<bool>,
    wake: Condvar,
}

/// Who waits for which key.
#[derive(Debug, Default)]
pub struct Watches {
    bells: Mutex<Bells>,
}

#[derive(Debug, Default)]
struct Bells {
    by_key: HashMap<Vec<u8>, Vec<Weak<Bell>>>,
    /// How many keys were left when those that nobody waits for were last swept out.
    swept: usize,
}

impl Bells {
    /// Drops the keys that nobody waits for any more, once they may be half of all.
    fn sweep(&mut self) {
        if self.swept * 2 < self.by_key.len() {
            self.by_key.retain(|_, waiting| waiting.iter().any(|bell| bell.strong_count() != 0));
            self.swept = self.by_key.len();
        }
    }
}

impl Watches {
    /// Starts to watch `key`.
    pub fn watch(&self, key: &[u8]) -> Box<dyn Watch> {
        let bell = Arc::new(Bell::default());
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.sweep();
        let waiting = bells.by_key.entry(key.to_vec()).or_default();
        waiting.retain(|bell| bell.strong_count() != 0);
        waiting.push(Arc::downgrade(&bell));
        Box::new(Waiting { bell })
    }

    /// A commit wrote these keys and ranges.
    pub fn ring<'a>(&self, keys: impl Iterator<Item = &'a [u8]>, ranges: &[Range]) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        let bells = &mut bells.by_key;
        if bells.is_empty() {
            return;
        }
        for key in keys {
            if let Some(waiting) = bells.remove(key) {
                ring_all(waiting);
            }
        }
        if !ranges.is_empty() {
            let hit = |key: &Vec<u8>| ranges.iter().any(|range| range.contains(key));
            let keys: Vec<Vec<u8>> = bells.keys().filter(|key| hit(key)).cloned().collect();
            for key in keys {
                ring_all(bells.remove(&key).unwrap_or_default());
            }
        }
    }
}

fn ring_all(waiting: Vec<Weak<Bell>>) {
    for bell in waiting.iter().filter_map(Weak::upgrade) {
        *bell.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        bell.wake.notify_all();
    }
}

struct Waiting {
    bell: Arc<Bell>,
}

impl Watch for Waiting {
    fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        let rung = self.bell.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (rung, _) = self
            .bell
            .wake
            .wait_timeout_while(rung, timeout, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        Ok(*rung)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_wakes_those_who_wait_for_its_key() {
        let watches = Watches::default();
        let mut a = watches.watch(b"a");
        let mut b = watches.watch(b"b");
        watches.ring([b"a".as_slice()].into_iter(), &[]);
        assert_eq!(a.wait(Duration::ZERO), Ok(true));
        assert_eq!(a.wait(Duration::ZERO), Ok(true), "it stays written");
        assert_eq!(b.wait(Duration::ZERO), Ok(false));
        watches.ring(std::iter::empty(), &[Range::prefix(b"b")]);
        assert_eq!(b.wait(Duration::ZERO), Ok(true));
        let mut late = watches.watch(b"a");
        assert_eq!(late.wait(Duration::ZERO), Ok(false));
    }

    #[test]
    fn forgotten_watches_take_no_room() {
        let watches = Watches::default();
        let kept = watches.watch(b"kept");
        for number in 0..10_000_u32 {
            drop(watches.watch(&number.to_be_bytes()));
        }
        assert!(watches.bells.lock().unwrap().by_key.len() < 8);
        watches.ring([b"kept".as_slice()].into_iter(), &[]);
        let mut kept = kept;
        assert_eq!(kept.wait(Duration::ZERO), Ok(true));
    }
}
