//! Owners and their signatures.
//!
//! An owner is an Ed25519 key. Signed data is a cell:
//!
//! ```text
//! 90, public key (32), signature (64), the value or its id
//! ```
//!
//! What is signed is the last part as it stands there: a short value itself, else 20 and the id. So
//! a signature is checked with this one cell, whatever hangs below it.

use std::fmt;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::Error;
use crate::cell::head::{REF, SIGNED};
use crate::cell::{Cell, Slot, View, Writer};

/// Who writes: an Ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner([u8; 32]);

impl Owner {
    /// The owner with this public key. Whether it is one shows when a signature is checked.
    pub const fn from_bytes(bytes: [u8; 32]) -> Owner {
        Owner(bytes)
    }

    /// The public key.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// As a cell: a blob of 32 bytes.
    pub fn cell(&self) -> Cell {
        Cell::blob(self.0)
    }

    /// The owner written as 64 hex digits, with or without 0x before them.
    pub fn parse(text: &str) -> Option<Owner> {
        let text = text.strip_prefix("0x").unwrap_or(text).as_bytes();
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        Some(Owner(bytes))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

/// Holds an owner's secret and signs with it. Wiped from memory when dropped.
#[derive(Clone)]
pub struct Signer(SigningKey);

impl Signer {
    /// The signer of this seed, which must be drawn well and kept secret.
    pub fn from_seed(seed: &[u8; 32]) -> Signer {
        Signer(SigningKey::from_bytes(seed))
    }

    /// The seed, to be kept in a key file.
    pub fn seed(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Who this signs for.
    pub fn owner(&self) -> Owner {
        Owner(self.0.verifying_key().to_bytes())
    }

    /// Signed data with `value`. Never to be called with a value that a peer chose.
    pub fn sign(&self, value: &Cell) -> Cell {
        let mut writer = Writer::new();
        writer.cell(value);
        let signature = self.0.sign(&writer.bytes).to_bytes();
        let mut bytes = Vec::with_capacity(97 + writer.bytes.len());
        bytes.push(SIGNED);
        bytes.extend_from_slice(&self.owner().0);
        bytes.extend_from_slice(&signature);
        bytes.append(&mut writer.bytes);
        Cell::from_parts(bytes.into(), writer.branches.into())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "signer of {}", self.owner())
    }
}

/// Checks signed data: who signed it, and what.
///
/// Strict: keys and signatures that only lax libraries take are refused, so that all sites agree.
///
/// # Errors
///
/// `Signature` if it is not signed data or the signature is wrong.
pub fn verify(signed: View<'_>) -> Result<(Owner, Slot<'_>), Error> {
    let Some((key, signature, value)) = signed.signed_parts() else {
        return Err(Error::Signature { reason: "not signed data" });
    };
    let mut message = [0; 33];
    let message = match value {
        Slot::Embedded(view) => view.bytes(),
        Slot::Branch(id, _) => {
            message[0] = REF;
            message[1..].copy_from_slice(id.as_bytes());
            &message[..]
        }
    };
    VerifyingKey::from_bytes(key)
        .and_then(|key| key.verify_strict(message, &Signature::from_bytes(signature)))
        .map_err(|_| Error::Signature { reason: "the signature is wrong" })?;
    Ok((Owner(*key), value))
}

#[cfg(test)]
mod tests {
    use super::{Owner, Signer, verify};
    use crate::cell::Cell;
    use crate::cell::golden::{hex, vectors};

    const SIGNATURES: &str = include_str!("../tests/vectors/signatures.txt");

    fn value(name: &str) -> Cell {
        match name {
            "nil" => Cell::nil(),
            "1" => Cell::int(1),
            "\"Hello\"" => Cell::string("Hello"),
            "blob pat(138)" => Cell::blob((0..138).collect::<Vec<u8>>()),
            "vector 0..15" => Cell::vector(&(0..16).map(Cell::int).collect::<Vec<_>>()),
            _ => panic!("no such value: {name}"),
        }
    }

    #[test]
    fn vectors_are_met() {
        let mut signers = Vec::new();
        let mut met = 0;
        for line in SIGNATURES.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split(" | ").collect();
            if let [seed, public] = fields[..] {
                let signer = Signer::from_seed(&hex(seed).try_into().unwrap());
                assert_eq!(signer.owner().to_string(), public);
                assert_eq!(Owner::parse(public), Some(signer.owner()));
                signers.push((seed, signer));
                continue;
            }
            let [seed, name, signed_bytes, signature] = fields[..] else { panic!("{line}") };
            let end = seed.trim_start_matches('.');
            let (_, signer) = signers.iter().find(|(seed, _)| seed.ends_with(end)).unwrap();
            let signed = signer.sign(&value(name));
            let (_, own_signature, _) = signed.view().signed_parts().unwrap();
            assert_eq!(own_signature.to_vec(), hex(signature), "{line}");
            assert_eq!(signed.bytes()[97..], hex(signed_bytes), "{line}");
            let wanted = format!("signed({name}) by ...{end}");
            let vector = vectors().into_iter().find(|it| it.name == wanted).unwrap();
            assert_eq!(Some(signed.bytes()), vector.bytes.as_deref(), "{wanted}");
            assert_eq!(signed.id().to_string(), vector.id);
            assert_eq!(verify(signed.view()).unwrap().0, signer.owner());
            met += 1;
        }
        assert_eq!((signers.len(), met), (3, 15));
    }

    #[test]
    fn every_wrong_bit_is_seen() {
        let signed = Signer::from_seed(&[7; 32]).sign(&Cell::int(1));
        for bit in 8..signed.bytes().len() * 8 {
            let mut bytes = signed.bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(cell) = Cell::decode(&bytes) {
                assert!(verify(cell.view()).is_err(), "bit {bit}");
            }
        }
        assert!(verify(Cell::nil().view()).is_err());
        // The neutral point as a key makes lax libraries take any message.
        let mut weak = vec![0x90, 1];
        weak.extend_from_slice(&[0; 31]);
        weak.push(1);
        weak.extend_from_slice(&[0; 63]);
        weak.push(0);
        assert!(verify(Cell::decode(&weak).unwrap().view()).is_err());
    }

    #[test]
    fn owners_are_read_from_text() {
        let owner = Signer::from_seed(&[1; 32]).owner();
        assert_eq!(Owner::parse(&format!("0x{owner}")), Some(owner));
        assert_eq!(Owner::parse(&owner.to_string().to_uppercase()), Some(owner));
        for wrong in ["", "0x", &"0".repeat(63), &"g".repeat(64), &"\u{e9}".repeat(32)] {
            assert_eq!(Owner::parse(wrong), None, "{wrong}");
        }
    }
}
