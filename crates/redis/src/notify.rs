//! Keyspace notifications: which classes of events are published, and as what.
//!
//! A client may hear of every change: `__keyspace@0__:key` carries the event, and
//! `__keyevent@0__:event` carries the key. The setting `notify-keyspace-events` chooses the
//! classes by letters.

/// Publish on `__keyspace@..`.
pub const KEYSPACE: u32 = 1;
/// Publish on `__keyevent@..`.
pub const KEYEVENT: u32 = 1 << 1;
/// `g`: DEL, EXPIRE, RENAME and others of no type.
pub const GENERIC: u32 = 1 << 2;
/// `$`: strings.
pub const STRING: u32 = 1 << 3;
/// `l`: lists.
pub const LIST: u32 = 1 << 4;
/// `s`: sets.
pub const SET: u32 = 1 << 5;
/// `h`: hashes.
pub const HASH: u32 = 1 << 6;
/// `z`: sorted sets.
pub const ZSET: u32 = 1 << 7;
/// `x`: keys that expired.
pub const EXPIRED: u32 = 1 << 8;
/// `e`: keys that were evicted.
pub const EVICTED: u32 = 1 << 9;
/// `t`: streams.
pub const STREAM: u32 = 1 << 10;
/// `m`: keys that were looked for in vain. Not part of `A`.
pub const KEY_MISS: u32 = 1 << 11;
/// `d`: modules.
pub const MODULE: u32 = 1 << 13;
/// `n`: new keys. Not part of `A`.
pub const NEW: u32 = 1 << 14;
/// `A`: all classes but misses and new keys.
pub const ALL: u32 =
    GENERIC | STRING | LIST | SET | HASH | ZSET | EXPIRED | EVICTED | STREAM | MODULE;

const LETTERS: &[(u8, u32)] = &[
    (b'g', GENERIC),
    (b'$', STRING),
    (b'l', LIST),
    (b's', SET),
    (b'h', HASH),
    (b'z', ZSET),
    (b'x', EXPIRED),
    (b'e', EVICTED),
    (b't', STREAM),
    (b'd', MODULE),
];

/// The classes that the letters name, or `None` if one of them is unknown.
pub fn parse(letters: &[u8]) -> Option<u32> {
    let mut classes = 0;
    for letter in letters {
        classes |= match letter {
            b'A' => ALL,
            b'K' => KEYSPACE,
            b'E' => KEYEVENT,
            b'm' => KEY_MISS,
            b'n' => NEW,
            other => LETTERS.iter().find(|(it, _)| it == other)?.1,
        };
    }
    Some(classes)
}

/// The letters of the classes, as `CONFIG GET` shows them.
pub fn letters(classes: u32) -> String {
    let mut text = String::new();
    if classes & ALL == ALL {
        text.push('A');
    } else {
        let set = LETTERS.iter().filter(|(_, class)| classes & class != 0);
        text.extend(set.map(|(letter, _)| char::from(*letter)));
    }
    for (class, letter) in [(KEYSPACE, 'K'), (KEYEVENT, 'E'), (KEY_MISS, 'm'), (NEW, 'n')] {
        if classes & class != 0 {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{letters, parse};

    #[test]
    fn letters_read_back() {
        // given, shown
        let rows =
            [("", ""), ("KEA", "AKE"), ("Ex", "xE"), ("g$lshzxet", "g$lshzxet"), ("Km", "Km")];
        for (given, shown) in rows {
            assert_eq!(letters(parse(given.as_bytes()).unwrap()), shown);
        }
        assert_eq!(parse(b"KQ"), None);
    }
}
