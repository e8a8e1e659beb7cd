//! The manifest: what an owner says about one slot, inside the signature.
//!
//! It is an entry like any other, so that nodes which do not know it keep it and pass it on:
//!
//! ```text
//! key      00 "kumiko:slot"
//! entry    [[1 database sequence incarnation {owner -> sequence}] 0 sequence 0]
//! ```
//!
//! Keys that start with [`RESERVED_PREFIX`] cannot be written by users.

use std::collections::BTreeMap;

use crate::cell::{Cell, Form, View, Writer};
use crate::index::KEY_BYTES_MAX;
use crate::replica::Layout;
use crate::sign::Owner;

/// The start of keys that are not a user's.
pub const RESERVED_PREFIX: &[u8] = b"\0kumiko:";
/// The key of the manifest.
pub const MANIFEST_KEY: &[u8] = b"\0kumiko:slot";
/// The most owners whose sequences a manifest tells.
pub const SEEN_MAX: usize = 4_096;

const VERSION: i64 = 1;

/// What an owner says about its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The database that this is. A slot cannot be passed off as another database.
    pub database: Vec<u8>,
    /// Grows with each publication: at least the time in milliseconds. The larger one is the newer.
    pub sequence: u64,
    /// Drawn at random when a writer starts with its state. Two at a time share a key by mistake.
    pub incarnation: u64,
    /// The newest sequence of other owners that is merged in here. What everyone has seen deleted
    /// can be forgotten.
    pub seen: BTreeMap<Owner, u64>,
}

impl Manifest {
    /// Appends the entry.
    pub fn write(&self, writer: &mut Writer, layout: Layout) {
        assert!(self.seen.len() <= SEEN_MAX, "the publisher bounds what it tells");
        let seen = Cell::map(
            self.seen.iter().map(|(owner, sequence)| (owner.cell(), Cell::int(*sequence as i64))),
        );
        writer.short_vector(4, |writer| {
            writer.short_vector(5, |writer| {
                writer.int(VERSION);
                writer.string(&self.database);
                writer.int(self.sequence as i64);
                writer.int(self.incarnation as i64);
                writer.cell(&seen);
            });
            writer.int(0);
            writer.int(self.sequence as i64);
            match layout {
                Layout::Seed => writer.int(0),
                Layout::Convex => writer.nil(),
            }
        });
    }

    /// The manifest in an entry, if it is one of a version known here.
    pub fn decode(entry: View<'_>) -> Option<Manifest> {
        let entry = elements(entry, 4)?;
        let fields = elements(entry[0], 5)?;
        let sequence = u64::try_from(fields[2].as_int()?).ok()?;
        if fields[0].as_int()? != VERSION || entry[2].as_int()? != fields[2].as_int()? {
            return None;
        }
        let mut seen = BTreeMap::new();
        for (owner, sequence) in fields[4].map_entries(SEEN_MAX).ok()? {
            let owner = Owner::from_bytes(*owner.as_blob32()?);
            seen.insert(owner, u64::try_from(sequence.as_int()?).ok()?);
        }
        let database = fields[1].as_string(KEY_BYTES_MAX).ok()??.into_owned();
        let incarnation = fields[3].as_int()? as u64;
        Some(Manifest { database, sequence, incarnation, seen })
    }
}

fn elements(view: View<'_>, count: usize) -> Option<Vec<View<'_>>> {
    match view.form() {
        Form::Vector(found) if found == count as u64 => view.elements(count).ok(),
        _ => None,
    }
}
