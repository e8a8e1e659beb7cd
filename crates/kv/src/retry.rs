//! Runs a transaction again when it loses a race, with a bound.

use std::time::Duration;

use kumiko_base::Kind;

use crate::{Engine, Error, Txn};

/// How often and when to run a transaction again.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How many times the transaction is run at most.
    pub attempts_max: u32,
    /// Whether a commit whose result is unknown is repeated. Only where repeating is harmless.
    pub unknown: bool,
    /// What to do between attempts; gets the time to pause, which doubles from 1 ms to 64 ms.
    pub pause: fn(Duration),
}

impl Default for Retry {
    /// Enough attempts that a transaction which makes progress at all gets through.
    fn default() -> Retry {
        Retry { attempts_max: 100, unknown: false, pause: std::thread::sleep }
    }
}

/// Runs `body` in a transaction and commits it; after a conflict, again, as `retry` says.
pub fn run<T, E>(
    engine: &dyn Engine,
    retry: Retry,
    mut body: impl FnMut(&mut dyn Txn) -> Result<T, E>,
) -> Result<T, E>
where
    E: From<Error> + AsKind,
{
    let mut attempt = 0;
    loop {
        let result = attempt_once(engine, &mut body);
        attempt += 1;
        match result {
            Err(error) if attempt < retry.attempts_max && again(&error, retry) => {
                // The first repetition is at once: most conflicts are over by then.
                if 1 < attempt {
                    (retry.pause)(Duration::from_millis(1 << (attempt - 2).min(6)));
                }
            }
            result => return result,
        }
    }
}

fn attempt_once<T, E: From<Error>>(
    engine: &dyn Engine,
    body: &mut impl FnMut(&mut dyn Txn) -> Result<T, E>,
) -> Result<T, E> {
    let mut txn = engine.begin()?;
    let value = body(txn.as_mut())?;
    txn.commit()?;
    Ok(value)
}

fn again(error: &impl AsKind, retry: Retry) -> bool {
    match error.as_kind() {
        Kind::Conflict => true,
        Kind::Unknown => retry.unknown,
        _ => false,
    }
}

/// An error that has a kind.
pub trait AsKind {
    /// The kind of this error.
    fn as_kind(&self) -> Kind;
}

impl AsKind for Error {
    fn as_kind(&self) -> Kind {
        self.kind()
    }
}
