//! Writing values: a buffer that is used again and again, in which a value that grows past 140
//! bytes is cut out and becomes a branch.

use super::head::{
    ADDRESS, BLOB, DOUBLE, FALSE, FLAT_BYTES_MAX, INT, KEYWORD, NAME_BYTES_MAX, NIL, REF, STRING,
    TRUE, VECTOR, text_child_size, vector_child_count,
};
use super::{Cell, EMBEDDED_BYTES_MAX, Slot, View, vlq};

/// Writes values one after the other. [`Writer::finish`] makes a cell of the one that was written.
#[derive(Debug, Default)]
pub struct Writer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) branches: Vec<Option<Cell>>,
}

impl Writer {
    /// An empty buffer.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// Makes a cell of the one value in the buffer, and leaves the buffer empty.
    pub fn finish(&mut self) -> Cell {
        if let ([REF, ..], [Some(cell)]) = (self.bytes.as_slice(), self.branches.as_slice()) {
            let cell = cell.clone();
            self.bytes.clear();
            self.branches.clear();
            return cell;
        }
        let cell =
            Cell::from_parts(self.bytes.as_slice().into(), self.branches.drain(..).collect());
        self.bytes.clear();
        cell
    }

    /// Writes a value by parts: what `write` appends is one value, and becomes a branch if it is
    /// too long to be embedded.
    pub(crate) fn value<T>(&mut self, write: impl FnOnce(&mut Writer) -> T) -> T {
        let mark = self.mark();
        let result = write(self);
        self.seal(mark);
        result
    }

    /// A place to go back to with `seal`.
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.bytes.len(), self.branches.len())
    }

    /// Makes a branch of the value that was written since `mark`, if it is too long to be embedded.
    pub(crate) fn seal(&mut self, (start, branch): (usize, usize)) {
        if self.bytes.len() - start <= EMBEDDED_BYTES_MAX {
            return;
        }
        let branches = self.branches.drain(branch..).collect();
        let cell = Cell::from_parts(self.bytes[start..].into(), branches);
        self.bytes.truncate(start);
        self.reference(cell);
    }

    fn reference(&mut self, cell: Cell) {
        self.bytes.push(REF);
        self.bytes.extend_from_slice(cell.id().as_bytes());
        self.branches.push(Some(cell));
    }

    /// Nothing.
    pub fn nil(&mut self) {
        self.bytes.push(NIL);
    }

    /// True or false.
    pub fn boolean(&mut self, value: bool) {
        self.bytes.push(if value { TRUE } else { FALSE });
    }

    /// An integer.
    pub fn int(&mut self, value: i64) {
        let unused = if value < 0 { value.leading_ones() } else { value.leading_zeros() };
        // One sign bit has to stay, and zero has no bytes at all.
        let size = if value == 0 { 0 } else { 8 - (unused as usize - 1) / 8 };
        self.bytes.push(INT + size as u8);
        self.bytes.extend_from_slice(&value.to_be_bytes()[8 - size..]);
    }

    /// A float, bit for bit.
    pub fn double(&mut self, value: f64) {
        self.bytes.push(DOUBLE);
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// An account address.
    pub fn address(&mut self, address: u64) {
        self.bytes.push(ADDRESS);
        vlq::put(&mut self.bytes, address);
    }

    /// A keyword. Its name has 1 to 128 bytes.
    pub fn keyword(&mut self, name: &str) {
        assert!(!name.is_empty() && name.len() <= NAME_BYTES_MAX, "a name has 1 to 128 bytes");
        self.bytes.push(KEYWORD);
        self.bytes.push(name.len() as u8);
        self.bytes.extend_from_slice(name.as_bytes());
    }

    /// Text. Its bytes need not be UTF-8.
    pub fn string(&mut self, text: &[u8]) {
        self.text(STRING, text);
    }

    /// Bytes.
    pub fn blob(&mut self, bytes: &[u8]) {
        self.text(BLOB, bytes);
    }

    fn text(&mut self, tag: u8, text: &[u8]) {
        let mark = self.mark();
        self.bytes.push(tag);
        vlq::put(&mut self.bytes, text.len() as u64);
        if text.len() <= FLAT_BYTES_MAX {
            self.bytes.extend_from_slice(text);
        } else {
            let size = text_child_size(text.len() as u64) as usize;
            text.chunks(size).for_each(|piece| self.text(BLOB, piece));
        }
        self.seal(mark);
    }

    /// A vector of at most 16 elements, which `write` appends one by one.
    pub fn short_vector(&mut self, count: usize, write: impl FnOnce(&mut Writer)) {
        assert!(count <= 16, "a longer vector is a tree");
        self.value(|writer| {
            writer.bytes.extend_from_slice(&[VECTOR, count as u8]);
            write(writer);
        });
    }

    /// A vector of any length. `write` appends element number `index`; it is called in any order.
    pub fn vector(&mut self, count: usize, write: &mut impl FnMut(&mut Writer, usize)) {
        self.vector_body(VECTOR, 0, count, write);
    }

    /// A vector, list or record of `count` elements from number `first` on.
    pub(crate) fn vector_body(
        &mut self,
        tag: u8,
        first: usize,
        count: usize,
        write: &mut impl FnMut(&mut Writer, usize),
    ) {
        let mark = self.mark();
        self.bytes.push(tag);
        vlq::put(&mut self.bytes, count as u64);
        if 16 < count && count.is_multiple_of(16) {
            let piece = vector_child_count(count as u64) as usize;
            for at in (0..count).step_by(piece) {
                self.vector_body(VECTOR, first + at, piece.min(count - at), write);
            }
        } else {
            let packed = if count <= 16 { 0 } else { count - count % 16 };
            (packed..count).for_each(|index| self.value(|writer| write(writer, first + index)));
            if 0 < packed {
                self.vector_body(VECTOR, first, packed, write);
            }
        }
        self.seal(mark);
    }

    /// A value that there is already.
    pub fn cell(&mut self, cell: &Cell) {
        if cell.is_embedded() {
            self.view(cell.view());
        } else {
            self.reference(cell.clone());
        }
    }

    /// A copy of a value that there is already. For a long one, [`Writer::cell`] is cheaper.
    pub fn view(&mut self, view: View<'_>) {
        let mark = self.mark();
        self.bytes.extend_from_slice(view.bytes);
        self.branches.extend_from_slice(view.branches);
        self.seal(mark);
    }

    /// What a slot of another cell holds, here or not.
    pub fn slot(&mut self, slot: Slot<'_>) {
        match slot {
            Slot::Embedded(view) => {
                self.bytes.extend_from_slice(view.bytes);
                self.branches.extend_from_slice(view.branches);
            }
            Slot::Branch(id, cell) => {
                self.bytes.push(REF);
                self.bytes.extend_from_slice(id.as_bytes());
                self.branches.push(cell.cloned());
            }
        }
    }
}
