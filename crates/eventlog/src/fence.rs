//! The writer fence: one record that says who may write, and which event is under way.
//!
//! ```text
//! 01 epoch (8, BE) body (8, BE) lease (8, BE) owner (UTF-8)
//! ```
//!
//! Taking a log over adds one to the epoch. Every transaction that writes reads the fence and
//! requires its own epoch, so a writer that was replaced can never change anything again. `body`
//! is the id of an event whose fragments are being written over several transactions, 0 if there
//! is none; if its writer dies, the next append removes what it left behind. `lease` is when the
//! holder expects to be gone unless it renews, in ms since 1970, 0 for never.

use crate::{Error, EventId};

/// The longest name of an owner.
pub const OWNER_BYTES_MAX: usize = 256;

const VERSION: u8 = 1;

/// What the fence record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    /// Grows with every take-over.
    pub epoch: u64,
    /// The event that is being written in parts; zero if none is.
    pub body: EventId,
    /// When the holder may be replaced without asking, in ms since 1970; 0 for never.
    pub lease_until_ms: u64,
    /// Who holds the log; empty if nobody does.
    pub owner: String,
}

impl Fence {
    /// Reads the record; none at all is a fence that nobody holds.
    pub fn decode(value: Option<&[u8]>) -> Result<Fence, Error> {
        let Some(value) = value else { return Ok(Fence::default()) };
        let parsed = (|| {
            let (&version, rest) = value.split_first()?;
            let (epoch, rest) = rest.split_first_chunk::<8>()?;
            let (body, rest) = rest.split_first_chunk::<8>()?;
            let (lease, owner) = rest.split_first_chunk::<8>()?;
            let owner = std::str::from_utf8(owner).ok()?;
            if version != VERSION || OWNER_BYTES_MAX < owner.len() {
                return None;
            }
            Some(Fence {
                epoch: u64::from_be_bytes(*epoch),
                body: EventId::new(u64::from_be_bytes(*body))?,
                lease_until_ms: u64::from_be_bytes(*lease),
                owner: owner.to_owned(),
            })
        })();
        parsed.ok_or_else(|| Error::corrupt(EventId::ZERO, "the writer fence is not readable"))
    }

    /// The bytes of the record.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.owner.len() <= OWNER_BYTES_MAX, "owners are checked when they come in");
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.epoch.to_be_bytes());
        value.extend_from_slice(&self.body.get().to_be_bytes());
        value.extend_from_slice(&self.lease_until_ms.to_be_bytes());
        value.extend_from_slice(self.owner.as_bytes());
        value
    }

    /// Whether somebody holds the log.
    pub fn is_held(&self) -> bool {
        !self.owner.is_empty()
    }

    /// The error for one who finds the log held by another.
    pub fn held(&self) -> Error {
        Error::Held {
            holder: self.owner.clone(),
            epoch: self.epoch,
            lease_until_ms: self.lease_until_ms,
        }
    }
}

/// With which right a transaction writes.
#[derive(Clone, Copy, Debug)]
pub enum Guard {
    /// Nobody may hold the log.
    Free,
    /// The writer of this epoch must hold it.
    Epoch(u64),
}

impl Guard {
    /// Compares the right with the fence as it stands.
    pub fn check(self, fence: &Fence) -> Result<(), Error> {
        match self {
            Guard::Free if fence.is_held() => Err(fence.held()),
            Guard::Epoch(epoch) if epoch != fence.epoch => {
                Err(Error::Stale { epoch, holder_epoch: fence.epoch, holder: fence.owner.clone() })
            }
            Guard::Free | Guard::Epoch(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::draw;

    #[test]
    fn the_record() {
        let fence = Fence {
            epoch: 2,
            body: EventId::new(7).unwrap(),
            lease_until_ms: 0x1234,
            owner: "host/1".into(),
        };
        let hex = "01000000000000000200000000000000070000000000001234686f73742f31";
        assert_eq!(crate::hex(&fence.encode()), hex);
        assert_eq!(Fence::decode(Some(&fence.encode())), Ok(fence));
        assert_eq!(Fence::decode(None), Ok(Fence::default()));
    }

    #[test]
    fn mutated_records() {
        draw::check("mutated_records", 5_000, |draw| {
            let fence = Fence { epoch: draw.bits(), owner: "abc".into(), ..Fence::default() };
            let mut bytes = fence.encode();
            let at = draw.index(bytes.len());
            if draw.one_in(2) {
                bytes[at] = draw.bits() as u8;
            } else {
                bytes.truncate(at);
            }
            if let Ok(fence) = Fence::decode(Some(&bytes)) {
                assert_eq!(fence.encode(), bytes);
            }
        });
    }
}
