//! Just enough of Rust's grammar: where code is, and where comments and strings are not.

/// The text with comments, strings and characters turned to blanks. Lines stay where they are.
pub(crate) fn strip(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at + 1),
            b'r' if !is_word_before(bytes, at) => raw_string_end(bytes, at).unwrap_or(at + 1),
            b'\'' => char_end(bytes, at).unwrap_or(at + 1),
            _ => at + 1,
        };
        if at + 1 < end {
            for byte in &mut code[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        at = end;
    }
    // Blanks replaced whole characters' bytes only inside what was blanked as a whole.
    String::from_utf8_lossy(&code).into_owned()
}

/// The `r` of `br"..."` follows a word character and yet begins a raw string.
fn is_word_before(bytes: &[u8], at: usize) -> bool {
    let before = |distance: usize| at.checked_sub(distance).map(|index| bytes[index]);
    match before(1) {
        Some(b'b' | b'c') => before(2).is_some_and(is_word),
        Some(byte) => is_word(byte),
        None => false,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let length = bytes[open + 1..].windows(close.len()).position(|window| window == close);
    Some(length.map_or(bytes.len(), |length| open + 1 + length + close.len()))
}

/// None for a lifetime.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes[at + 3..].iter().position(|byte| *byte == b'\'')?;
        return Some(at + 3 + close + 1);
    }
    let text = std::str::from_utf8(&bytes[at + 1..(at + 5).min(bytes.len())]);
    let valid = match &text {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[at + 1..at + 1 + error.valid_up_to()]).ok()?,
    };
    let width = valid.chars().next()?.len_utf8();
    if bytes.get(at + 1 + width) == Some(&b'\'') { Some(at + width + 2) } else { None }
}

/// The line of a byte, which starts at one.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Where `word` stands as a word of its own.
pub(crate) fn words_at<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).is_none_or(|index| !is_word(bytes[index]));
        let first = word.as_bytes().first().copied().is_some_and(is_word);
        let last = word.as_bytes().last().copied().is_some_and(is_word);
        let after = bytes.get(at + word.len()).is_none_or(|byte| !is_word(*byte));
        (before || !first) && (after || !last)
    })
}

/// The end of the block whose `{` is the first one at or after `at`, if a `;` does not come first.
pub(crate) fn block_end(code: &str, at: usize) -> Option<usize> {
    let bytes = code.as_bytes();
    let (mut braces, mut brackets) = (0, 0);
    for (index, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(index + 1);
                }
                if braces < 0 {
                    return None;
                }
            }
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if braces == 0 && brackets == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The code with everything behind `#[cfg(test)]` turned to blanks.
pub(crate) fn without_tests(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (at, attribute) in code.match_indices("#[cfg(test)]") {
        let end = block_end(code, at + attribute.len()).unwrap_or(at);
        for byte in &mut bytes[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_is_blank() {
        // text, code
        let rows = [
            ("a // b { \n c", "a        \n c"),
            ("a /* { /* } */ */ b", "a                 b"),
            ("f(\"{\\\"{\") + 1", "f(      ) + 1"),
            ("r#\"{\"# + r", "       + r"),
            ("br\"{\" + 1", "b     + 1"),
            ("'{' + '\\'' + 'a", "    +      + 'a"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("'\\u{7f}' {", "         {"),
            ("for r in x", "for r in x"),
        ];
        for (text, code) in rows {
            assert_eq!(strip(text), code, "{text}");
        }
    }

    #[test]
    fn blocks_and_words() {
        let code = "fn a() -> [u8; 3] { if x { y } } fn b();";
        assert_eq!(block_end(code, 0), Some(32));
        assert_eq!(block_end(code, 33), None);
        assert_eq!(words_at("fn xfn fn_ fn", "fn").collect::<Vec<_>>(), [0, 11]);
        assert_eq!(words_at("std::fs::x std::fsx", "std::fs").collect::<Vec<_>>(), [0]);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }

    #[test]
    fn tests_are_left_out() {
        let code = "a();\n#[cfg(test)]\nmod tests {\n b();\n}\nc();\n#[cfg(test)]\nmod x;\nd();";
        let left = without_tests(code);
        assert!(left.contains("a()") && !left.contains("b()"));
        assert!(left.contains("c()") && left.contains("d()"));
    }
}
