//! The checker must find what it is made to find: engines that are broken on purpose.

use super::*;
use crate::wrong::{Broken, Wrong};

/// How many of 20 interleaved histories break the promise, and what was said of the first.
fn violations(broken: Broken) -> (usize, String) {
    let found = (0..20).filter_map(|seed| check(&interleaved(&Wrong::new(broken), seed)).err());
    let found: Vec<Violation> = found.collect();
    (found.len(), found.first().map(ToString::to_string).unwrap_or_default())
}

#[test]
fn a_sound_engine_passes() {
    assert_eq!(violations(Broken::Not), (0, String::new()));
}

#[test]
fn broken_engines_are_found_out() {
    // how it is broken, what must be said
    let rows = [
        (Broken::Keys, "was lost"),
        (Broken::Scans, ""),
        (Broken::Old, ""),
        (Broken::Forgets, "was lost"),
        (Broken::Leaks, "failed, but left"),
    ];
    for (broken, words) in rows {
        let (count, first) = violations(broken);
        assert!(15 <= count, "{broken:?} was found in {count} of 20 histories");
        assert!(first.contains(words), "{broken:?}: {first}");
    }
}

/// Two doctors, both on call, each leaves because the other is there: nothing is lost, and no order
/// of the two explains it.
#[test]
fn write_skew_is_a_cycle() {
    let seen = |began, append| Transaction {
        reads: vec![(0, Vec::new()), (1, Vec::new())],
        appends: vec![append],
        outcome: Outcome::Committed,
        began,
        ended: began + 2,
    };
    let history = History {
        transactions: vec![seen(0, (0, 7)), seen(1, (1, 8))],
        last: BTreeMap::from([(0, vec![7]), (1, vec![8])]),
    };
    let violation = check(&history).unwrap_err().to_string();
    assert!(violation.contains("0 did not see 1"), "{violation}");
    assert!(violation.contains("1 did not see 0"), "{violation}");
}
