//! What changed in a database since its last publish, in just enough detail to publish only that.

use hashbrown::{HashMap, HashSet};

use super::Change;

/// What happened to one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touch {
    /// When it last changed.
    pub(crate) at_ms: u64,
    /// It was deleted or replaced as a whole: what is there now stands above all that was.
    pub(crate) reset: bool,
    /// Its string was written, not only counted up or down.
    pub(crate) written: bool,
    /// The fields or members that changed.
    pub(crate) members: HashSet<Box<[u8]>>,
    /// What was done to its list, in order.
    pub(crate) edits: Vec<ListEdit>,
}

/// One edit of a list. The elements themselves are in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListEdit {
    Insert { index: usize },
    Set { index: usize },
    Del { index: usize, count: usize },
}

/// The touched keys of one database.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) keys: HashMap<Vec<u8>, Touch>,
    /// Set when the whole database was emptied or exchanged, with the time.
    pub(crate) everything_ms: Option<u64>,
}

impl Touched {
    fn touch(&mut self, key: &[u8], at_ms: u64) -> &mut Touch {
        let touch = self.keys.entry_ref(key).or_default();
        touch.at_ms = at_ms;
        touch
    }

    fn reset(&mut self, key: &[u8], at_ms: u64) {
        let touch = self.touch(key, at_ms);
        touch.reset = true;
        touch.members.clear();
        touch.edits.clear();
    }

    fn edit(&mut self, key: &[u8], at_ms: u64, edit: ListEdit) {
        let touch = self.touch(key, at_ms);
        if !touch.reset {
            touch.edits.push(edit);
        }
    }

    /// Notes that nothing is as it was.
    pub(crate) fn everything(&mut self, at_ms: u64) {
        self.keys.clear();
        self.everything_ms = Some(at_ms);
    }

    /// Notes one change.
    pub(crate) fn note(&mut self, at_ms: u64, change: &Change<'_>) {
        match *change {
            Change::Set { key, .. } | Change::Del { key } | Change::Put { key, .. } => {
                self.reset(key, at_ms);
            }
            Change::Rename { key, to } => {
                self.reset(key, at_ms);
                self.reset(to, at_ms);
            }
            Change::Write { key, .. }
            | Change::Append { key, .. }
            | Change::SetRange { key, .. } => self.touch(key, at_ms).written = true,
            Change::Incr { key, .. } | Change::Expire { key, .. } => {
                self.touch(key, at_ms);
            }
            Change::ListInsert { key, index, .. } => {
                self.edit(key, at_ms, ListEdit::Insert { index: index as usize });
            }
            Change::ListSet { key, index, .. } => {
                self.edit(key, at_ms, ListEdit::Set { index: index as usize });
            }
            Change::ListDel { key, index, count } => {
                let edit = ListEdit::Del { index: index as usize, count: count as usize };
                self.edit(key, at_ms, edit);
            }
            Change::HashSet { key, field: member, .. }
            | Change::HashDel { key, field: member }
            | Change::SetAdd { key, member }
            | Change::SetDel { key, member }
            | Change::ZsetSet { key, member, .. }
            | Change::ZsetDel { key, member } => {
                let touch = self.touch(key, at_ms);
                if !touch.reset && !touch.members.contains(member) {
                    touch.members.insert(member.into());
                }
            }
            Change::Flush => self.everything(at_ms),
            Change::Entry { .. }
            | Change::Collect { .. }
            | Change::Folded
            | Change::Swap { .. }
            | Change::Database { .. }
            | Change::Snapshot { .. }
            | Change::Time { .. } => {}
        }
    }
}
