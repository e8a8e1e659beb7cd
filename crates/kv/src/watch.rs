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
    bells: Mutex<HashMap<Vec<u8>, Vec<Weak<Bell>>>>,
}

impl Watches {
    /// Starts to watch `key`.
    pub fn watch(&self, key: &[u8]) -> Box<dyn Watch> {
        let bell = Arc::new(Bell::default());
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = bells.entry(key.to_vec()).or_default();
        waiting.retain(|bell| bell.strong_count() != 0);
        waiting.push(Arc::downgrade(&bell));
        Box::new(Waiting { bell })
    }

    /// A commit wrote these keys and ranges.
    pub fn ring<'a>(&self, keys: impl Iterator<Item = &'a [u8]>, ranges: &[Range]) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
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
        bells.retain(|_, waiting| waiting.iter().any(|bell| bell.strong_count() != 0));
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
