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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;
    use std::cell::RefCell;

    thread_local! {
        static PAUSES: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
    }

    fn note(pause: Duration) {
        PAUSES.with_borrow_mut(|pauses| pauses.push(pause.as_millis()));
    }

    /// Fails `failures` times with `error`, and says how often it was run.
    fn try_until(failures: u32, error: &Error, retry: Retry) -> (Result<(), Error>, u32) {
        let engine = Memory::new();
        let mut runs = 0;
        let result = run(&engine, retry, |txn| {
            runs += 1;
            txn.put(b"runs", &[runs as u8])?;
            if failures < runs { Ok(()) } else { Err(error.clone()) }
        });
        (result, runs)
    }

    #[test]
    fn conflicts_are_repeated_up_to_the_bound() {
        let retry = Retry { attempts_max: 11, unknown: false, pause: note };
        assert_eq!(try_until(10, &Error::Conflict, retry), (Ok(()), 11));
        let pauses = PAUSES.take();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64], "the first repetition is at once");
        assert_eq!(try_until(11, &Error::Conflict, retry), (Err(Error::Conflict), 11));
        assert_eq!(try_until(1, &Error::TooOld, retry), (Ok(()), 2));
    }

    #[test]
    fn only_what_may_be_repeated_is() {
        let unknown = Error::Unknown("cut off".into());
        let retry = Retry { attempts_max: 5, unknown: false, pause: note };
        assert_eq!(try_until(1, &unknown, retry), (Err(unknown.clone()), 1));
        assert_eq!(try_until(1, &unknown, Retry { unknown: true, ..retry }), (Ok(()), 2));
        let full = Error::Full("no room".into());
        assert_eq!(try_until(1, &full, Retry { unknown: true, ..retry }), (Err(full), 1));
    }
}
