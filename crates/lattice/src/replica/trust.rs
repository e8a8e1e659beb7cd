//! Whom to believe: a list of owners that are trusted, and one of owners that are revoked.

use std::collections::BTreeSet;

use crate::sign::Owner;

/// How an owner stands with us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its state is merged into ours.
    Trusted,
    /// Its slot is kept and passed on; nothing of it is merged.
    Stranger,
    /// Its slot is refused.
    Revoked,
}

/// The lists. Revocation wins over trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    everyone: bool,
    trusted: BTreeSet<Owner>,
    revoked: BTreeSet<Owner>,
}

impl Trust {
    /// Nobody is trusted yet.
    pub fn nobody() -> Trust {
        Trust::default()
    }

    /// Everybody is trusted who is not revoked: for networks where only friends can connect.
    pub fn everyone() -> Trust {
        Trust { everyone: true, ..Trust::default() }
    }

    /// Trusts an owner. A revocation stays in force until it is lifted.
    pub fn trust(&mut self, owner: Owner) {
        self.trusted.insert(owner);
    }

    /// Takes the trust back, without revoking.
    pub fn distrust(&mut self, owner: &Owner) {
        self.trusted.remove(owner);
    }

    /// Revokes an owner: its slots are refused from now on.
    pub fn revoke(&mut self, owner: Owner) {
        self.revoked.insert(owner);
    }

    /// Lifts a revocation.
    pub fn pardon(&mut self, owner: &Owner) {
        self.revoked.remove(owner);
    }

    /// The owners on the list of the trusted.
    pub fn trusted(&self) -> impl Iterator<Item = &Owner> {
        self.trusted.iter()
    }

    /// The owners on the list of the revoked.
    pub fn revoked(&self) -> impl Iterator<Item = &Owner> {
        self.revoked.iter()
    }

    /// How an owner stands.
    pub fn standing(&self, owner: &Owner) -> Standing {
        if self.revoked.contains(owner) {
            Standing::Revoked
        } else if self.everyone || self.trusted.contains(owner) {
            Standing::Trusted
        } else {
            Standing::Stranger
        }
    }
}
