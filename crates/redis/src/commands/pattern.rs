//! Glob patterns: `*`, `?`, `[a-z]`, `[^x]` and `\` before a letter that stands for itself.

/// Whether `text` matches `pattern`, letter by letter.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_from(pattern, text, false)
}

/// As [`matches`], in any case of letters.
pub fn matches_any_case(pattern: &[u8], text: &[u8]) -> bool {
    matches_from(pattern, text, true)
}

/// Walks both once and remembers only the last star: a mismatch lets that star take one letter
/// more. So the time is bounded by the product of the lengths, and nothing recurses.
fn matches_from(pattern: &[u8], text: &[u8], any_case: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, t));
            p += 1;
            continue;
        }
        let step = if p < pattern.len() { one(&pattern[p..], text[t], any_case) } else { None };
        match (step, star) {
            (Some(used), _) => {
                p += used;
                t += 1;
            }
            (None, Some((after, from))) => {
                star = Some((after, from + 1));
                p = after;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// How much of the pattern was used up if its first item matches `byte`.
fn one(pattern: &[u8], byte: u8, any_case: bool) -> Option<usize> {
    let same = |a: u8, b: u8| a == b || (any_case && a.eq_ignore_ascii_case(&b));
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => same(*escaped, byte).then_some(2),
        [b'[', rest @ ..] => {
            let (used, inside) = class(rest, byte, any_case);
            inside.then_some(used + 1)
        }
        [letter, ..] => same(*letter, byte).then_some(1),
        [] => None,
    }
}

/// How long the class is, its closing bracket included, and whether it holds `byte`. A class that
/// is not closed goes to the end of the pattern.
fn class(rest: &[u8], byte: u8, any_case: bool) -> (usize, bool) {
    let fold = |it: u8| if any_case { it.to_ascii_lowercase() } else { it };
    let byte = fold(byte);
    let negated = rest.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        match &rest[at.min(rest.len())..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                found |= fold(*escaped) == byte;
                at += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (fold(*low), fold(*high));
                found |= (low.min(high)..=low.max(high)).contains(&byte);
                at += 3;
            }
            [letter, ..] => {
                found |= fold(*letter) == byte;
                at += 1;
            }
        }
    }
    (at, found != negated)
}

#[cfg(test)]
mod tests {
    use super::{matches, matches_any_case};

    #[test]
    fn patterns() {
        // pattern, text, matches
        let rows = [
            ("", "", true),
            ("*", "", true),
            ("*", "anything", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hello", false),
            ("[", "[", false),
            ("[a", "a", true),
            ("a\\", "a\\", true),
            ("*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ];
        for (pattern, text, wanted) in rows {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), wanted, "{pattern} {text}");
        }
        assert!(matches_any_case(b"MAX*", b"maxmemory"));
        assert!(!matches(b"MAX*", b"maxmemory"));
    }
}
