//! Positions in a list: keys that sort as the elements do, with room between any two.
//!
//! A position is a path of components, each 24 bytes, and sorts as its bytes:
//!
//! ```text
//! major (8, BE) stamp (6, BE) writer (6) number in its run (4, BE)
//! ```
//!
//! Elements that one writer adds in one step form a run: they share all but the last four bytes, so
//! nothing that others add at the same time comes between them. The stamp makes a position new for
//! ever: what was popped is never mistaken for what was pushed later.

use super::Stamp;

const COMPONENT: usize = 24;
const MIDDLE: u64 = 1 << 63;
/// What lies between two neighbours at one end: room for 32 halvings on the same level, and for
/// two thousand million runs at each end.
const STRIDE: u64 = 1 << 32;
/// The longest position: what an Index takes for a key.
pub(super) const POSITION_MAX: usize = 255;

/// Who adds elements, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Author {
    pub(super) tag: [u8; 6],
    pub(super) stamp: Stamp,
}

fn component(major: u64, author: Author) -> [u8; COMPONENT] {
    let mut bytes = [0; COMPONENT];
    bytes[..8].copy_from_slice(&major.to_be_bytes());
    bytes[8..14].copy_from_slice(&author.stamp.to_be_bytes()[2..]);
    bytes[14..20].copy_from_slice(&author.tag);
    bytes
}

/// The path above the last component, and that component's major; nothing for a foreign form.
fn last(position: &[u8]) -> Option<(&[u8], u64)> {
    if position.is_empty() || !position.len().is_multiple_of(COMPONENT) {
        return None;
    }
    let (path, component) = position.split_at(position.len() - COMPONENT);
    Some((path, u64::from_be_bytes(component[..8].try_into().expect("eight bytes were cut"))))
}

/// The major at a level of a position, the top level being zero bytes deep.
fn major_at(position: &[u8], depth: usize) -> Option<u64> {
    let bytes = position.get(depth..depth + 8)?;
    Some(u64::from_be_bytes(bytes.try_into().expect("eight bytes were cut")))
}

/// The position of the element with this number in a run that starts at `first`.
pub(super) fn in_run(first: &[u8], number: u32) -> Vec<u8> {
    let mut position = first.to_vec();
    let at = position.len() - 4;
    position[at..].copy_from_slice(&number.to_be_bytes());
    position
}

/// The first position of a run between two others; nothing if it would be too long.
pub(super) fn between(
    left: Option<&[u8]>,
    right: Option<&[u8]>,
    author: Author,
) -> Option<Vec<u8>> {
    let with = |path: &[u8], major: u64| [path, &component(major, author)].concat();
    let mut choices = Vec::new();
    let (low, high) = (left.unwrap_or_default(), right.unwrap_or_default());
    if left.is_none() && right.is_none() {
        choices.push(with(&[], MIDDLE));
    } else if right.is_none() {
        let major = major_at(low, 0).and_then(|it| it.checked_add(STRIDE));
        choices.extend(major.map(|it| with(&[], it)));
    } else if left.is_none() {
        let major = major_at(high, 0).and_then(|it| it.checked_sub(STRIDE));
        choices.extend(major.map(|it| with(&[], it)));
    } else {
        // Halfway, or beside one of them, on their own levels, before going down.
        for (path, _) in [last(low), last(high)].into_iter().flatten() {
            let depth = path.len();
            let before = major_at(low, depth).filter(|_| low.starts_with(path));
            let after = major_at(high, depth).filter(|_| high.starts_with(path));
            let major = match (before, after) {
                (Some(before), Some(after)) => Some(u64::midpoint(before, after)),
                (Some(before), None) => before.checked_add(STRIDE),
                (None, Some(after)) => after.checked_sub(STRIDE),
                (None, None) => None,
            };
            choices.extend(major.map(|it| with(path, it)));
        }
    }
    choices.extend(left.map(|it| with(it, MIDDLE)));
    choices.into_iter().find(|it| {
        let it = &it[..];
        // The whole run must fit: its last four bytes may be anything.
        let end = in_run(it, u32::MAX);
        left.is_none_or(|left| left < it)
            && right.is_none_or(|right| &end[..] < right)
            && it.len() <= POSITION_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::{Author, between, in_run};
    use kumiko_base::draw;

    #[test]
    fn there_is_always_room() {
        draw::check("there_is_always_room", 60, |draw| {
            let mut positions: Vec<Vec<u8>> = Vec::new();
            let mut refused = 0;
            for stamp in 1..300 {
                let tag = [draw.below(3) as u8; 6];
                let at = match draw.below(3) {
                    0 => 0,
                    1 => positions.len(),
                    _ => draw.index(positions.len() + 1),
                };
                let left = at.checked_sub(1).map(|it| &positions[it][..]);
                let right = positions.get(at).map(|it| &it[..]);
                let Some(first) = between(left, right, Author { tag, stamp }) else {
                    refused += 1;
                    continue;
                };
                let run: Vec<Vec<u8>> =
                    (0..=draw.below(3) as u32).map(|it| in_run(&first, it)).collect();
                positions.splice(at..at, run);
                assert!(positions.is_sorted_by(|a, b| a < b));
            }
            // Cutting the run that was inserted last in two, again and again, goes down a level
            // each time. The list is then written anew.
            assert!(refused < 3, "{refused} of 300 inserts had no room");
        });
    }
}
