//! The elements of a list: a row of nodes, each some kilobytes of elements end to end.
//!
//! ```text
//! size bytes size        size is one byte, or FF and four bytes (little-endian) from 255 on;
//!                        behind the bytes the same mirrored, so that a node reads backwards too
//! ```
//!
//! A node keeps a gap before its first element, so that both ends grow cheaply. Finding an index
//! walks the nodes' counts from the nearer end and then one node.

use std::collections::VecDeque;

/// A node this full takes no more elements; a longer element gets a node of its own.
const NODE_BYTES: usize = 8192;

#[derive(Clone, Debug, Default)]
struct Node {
    bytes: Vec<u8>,
    /// Where the first element starts.
    head: usize,
    count: usize,
}

fn framed(size: usize) -> usize {
    if size < 0xFF { size + 2 } else { size + 10 }
}

fn put(to: &mut [u8], element: &[u8]) {
    let size = element.len();
    let end = to.len();
    if size < 0xFF {
        to[0] = size as u8;
        to[1..end - 1].copy_from_slice(element);
        to[end - 1] = size as u8;
    } else {
        let bytes = (size as u32).to_le_bytes();
        to[0] = 0xFF;
        to[1..5].copy_from_slice(&bytes);
        to[5..end - 5].copy_from_slice(element);
        to[end - 5..end - 1].copy_from_slice(&bytes);
        to[end - 1] = 0xFF;
    }
}

fn four(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("four bytes were cut")) as usize
}

impl Node {
    fn used(&self) -> usize {
        self.bytes.len() - self.head
    }

    /// The element that starts at `at`, and where the next one starts.
    fn at(&self, at: usize) -> (&[u8], usize) {
        let (start, size) = match self.bytes[at] {
            0xFF => (at + 5, four(&self.bytes[at + 1..at + 5])),
            size => (at + 1, usize::from(size)),
        };
        (&self.bytes[start..start + size], at + framed(size))
    }

    /// Where the element that ends at `end` starts.
    fn before(&self, end: usize) -> usize {
        let size = match self.bytes[end - 1] {
            0xFF => four(&self.bytes[end - 5..end - 1]),
            size => usize::from(size),
        };
        end - framed(size)
    }

    fn offset(&self, index: usize) -> usize {
        if index <= self.count / 2 {
            (0..index).fold(self.head, |at, _| self.at(at).1)
        } else {
            (index..self.count).fold(self.bytes.len(), |at, _| self.before(at))
        }
    }

    fn takes(&self, size: usize) -> bool {
        self.count == 0 || self.used() + framed(size) <= NODE_BYTES
    }

    fn push_front(&mut self, element: &[u8]) {
        let need = framed(element.len());
        if self.head < need {
            let gap = need.max(self.used()).min(need.max(NODE_BYTES));
            let mut roomy = vec![0; gap + self.used()];
            roomy[gap..].copy_from_slice(&self.bytes[self.head..]);
            self.bytes = roomy;
            self.head = gap;
        }
        let start = self.head - need;
        put(&mut self.bytes[start..start + need], element);
        self.head = start;
        self.count += 1;
    }

    fn push_back(&mut self, element: &[u8]) {
        let need = framed(element.len());
        let start = self.bytes.len();
        if self.count == 0 {
            self.bytes.reserve_exact(need);
        }
        self.bytes.resize(start + need, 0);
        put(&mut self.bytes[start..], element);
        self.count += 1;
    }

    fn insert(&mut self, index: usize, element: &[u8]) {
        let at = self.offset(index);
        let mut framed_bytes = vec![0; framed(element.len())];
        put(&mut framed_bytes, element);
        self.bytes.splice(at..at, framed_bytes);
        self.count += 1;
    }

    fn remove(&mut self, index: usize) -> Vec<u8> {
        let at = self.offset(index);
        let (element, end) = self.at(at);
        let element = element.to_vec();
        if at == self.head {
            self.head = end;
        } else if end == self.bytes.len() {
            self.bytes.truncate(at);
        } else {
            self.bytes.drain(at..end);
        }
        self.count -= 1;
        element
    }

    fn split(&mut self) -> Node {
        let half = self.count / 2;
        let at = self.offset(half);
        let tail = Node { bytes: self.bytes[at..].to_vec(), head: 0, count: self.count - half };
        self.bytes.truncate(at);
        self.count = half;
        self.seal();
        tail
    }

    /// Gives back the room that a full node will not need.
    fn seal(&mut self) {
        self.bytes.drain(..self.head);
        self.head = 0;
        self.bytes.shrink_to_fit();
    }
}

/// The elements of one list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    nodes: VecDeque<Node>,
    count: usize,
}

impl Sequence {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn push_front(&mut self, element: &[u8]) {
        if !self.nodes.front().is_some_and(|it| it.takes(element.len())) {
            if let Some(full) = self.nodes.front_mut() {
                full.seal();
            }
            self.nodes.push_front(Node::default());
        }
        self.nodes.front_mut().expect("a node was added").push_front(element);
        self.count += 1;
    }

    pub(crate) fn push_back(&mut self, element: &[u8]) {
        if !self.nodes.back().is_some_and(|it| it.takes(element.len())) {
            if let Some(full) = self.nodes.back_mut() {
                full.seal();
            }
            self.nodes.push_back(Node::default());
        }
        self.nodes.back_mut().expect("a node was added").push_back(element);
        self.count += 1;
    }

    fn locate(&self, index: usize) -> (usize, usize) {
        assert!(index < self.count, "index {index} of {}", self.count);
        if index <= self.count / 2 {
            let mut rest = index;
            for (node, it) in self.nodes.iter().enumerate() {
                if rest < it.count {
                    return (node, rest);
                }
                rest -= it.count;
            }
        } else {
            let mut after = self.count - index;
            for (node, it) in self.nodes.iter().enumerate().rev() {
                if after <= it.count {
                    return (node, it.count - after);
                }
                after -= it.count;
            }
        }
        unreachable!("the nodes' counts add up to the count")
    }

    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        if self.count <= index {
            return None;
        }
        let (node, index) = self.locate(index);
        let node = &self.nodes[node];
        Some(node.at(node.offset(index)).0)
    }

    pub(crate) fn set(&mut self, index: usize, element: &[u8]) {
        let (node, inside) = self.locate(index);
        let it = &mut self.nodes[node];
        let at = it.offset(inside);
        let end = it.at(at).1;
        if end - at == framed(element.len()) {
            put(&mut it.bytes[at..end], element);
            return;
        }
        self.remove(index);
        self.insert(index, element);
    }

    /// Puts `element` before the one at `index`; at the end if `index` is the count.
    pub(crate) fn insert(&mut self, index: usize, element: &[u8]) {
        if index == 0 {
            return self.push_front(element);
        }
        if index == self.count {
            return self.push_back(element);
        }
        let (node, inside) = self.locate(index);
        let it = &mut self.nodes[node];
        it.insert(inside, element);
        if NODE_BYTES < it.used() && 1 < it.count {
            let tail = it.split();
            self.nodes.insert(node + 1, tail);
        }
        self.count += 1;
    }

    pub(crate) fn remove(&mut self, index: usize) -> Vec<u8> {
        let (node, inside) = self.locate(index);
        let element = self.nodes[node].remove(inside);
        if self.nodes[node].count == 0 {
            self.nodes.remove(node);
        }
        self.count -= 1;
        element
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.range(0)
    }

    /// The elements from `start` on.
    pub(crate) fn range(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        let (mut node, inside) =
            if start < self.count { self.locate(start) } else { (self.nodes.len(), 0) };
        let mut at = self.nodes.get(node).map_or(0, |it| it.offset(inside));
        std::iter::from_fn(move || {
            let mut it = self.nodes.get(node)?;
            if at == it.bytes.len() {
                node += 1;
                it = self.nodes.get(node)?;
                at = it.head;
            }
            let (element, next) = it.at(at);
            at = next;
            Some(element)
        })
    }

    pub(crate) fn iter_back(&self) -> impl Iterator<Item = &[u8]> {
        let mut nodes = self.nodes.iter().rev();
        let mut current: Option<(&Node, usize)> = None;
        std::iter::from_fn(move || {
            if current.is_none_or(|(node, at)| at == node.head) {
                let node = nodes.next()?;
                current = Some((node, node.bytes.len()));
            }
            let (node, end) = current.expect("set above");
            let start = node.before(end);
            current = Some((node, start));
            Some(node.at(start).0)
        })
    }

    pub(crate) fn encoding(&self, list_size: i64) -> &'static str {
        let bytes: usize = self.nodes.iter().map(Node::used).sum();
        let small = match list_size {
            -1 => bytes <= 4096,
            -2 => bytes <= 8192,
            -3 => bytes <= 16384,
            -4 => bytes <= 32768,
            n if n < 0 => bytes <= 65536,
            n => self.count <= n as usize && bytes <= 8192,
        };
        if small && self.nodes.len() <= 1 { "listpack" } else { "quicklist" }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.nodes.iter().map(|it| it.bytes.capacity()).sum::<usize>()
            + self.nodes.capacity() * size_of::<Node>()
    }
}

#[cfg(test)]
mod tests {
    use super::Sequence;
    use kumiko_base::draw;

    #[test]
    fn behaves_like_a_vector() {
        draw::check("sequence_behaves_like_a_vector", 60, |draw| {
            let mut sequence = Sequence::default();
            let mut model: Vec<Vec<u8>> = Vec::new();
            let size_max = draw.one_of(&[3, 40, 300, 9000]);
            for _ in 0..draw.below(1500) {
                let element = draw.bytes(size_max);
                let index = draw.index(model.len() + 1);
                match draw.below(7) {
                    0 | 1 => {
                        sequence.push_front(&element);
                        model.insert(0, element);
                    }
                    2 | 3 => {
                        sequence.push_back(&element);
                        model.push(element);
                    }
                    4 => {
                        sequence.insert(index, &element);
                        model.insert(index, element);
                    }
                    5 if index < model.len() => {
                        sequence.set(index, &element);
                        model[index] = element;
                    }
                    6 if index < model.len() => {
                        assert_eq!(sequence.remove(index), model.remove(index));
                    }
                    _ => assert_eq!(sequence.get(index), model.get(index).map(|it| &it[..])),
                }
                assert_eq!(sequence.len(), model.len());
            }
            assert!(sequence.iter().eq(model.iter().map(|it| &it[..])));
            assert!(sequence.iter_back().eq(model.iter().rev().map(|it| &it[..])));
            let start = draw.index(model.len() + 1);
            assert!(sequence.range(start).eq(model[start..].iter().map(|it| &it[..])));
        });
    }
}
