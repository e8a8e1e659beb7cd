//! The documents on formats say what the code does: their examples are run, their tables compared.

use kumiko_base::{category, cbor, hex, show, tuple};

fn document(name: &str) -> String {
    let path = format!("../../docs/format/{name}.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

/// The examples `bytes = meaning` in the fences of this kind.
fn examples(text: &str, fence: &str) -> Vec<(Vec<u8>, String)> {
    let mut examples = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == format!("```{fence}");
        } else if inside {
            let (digits, meaning) = line.split_once(" = ").expect("an example has both sides");
            let bytes = hex::parse(digits).expect("hexadecimal digits");
            examples.push((bytes, meaning.to_owned()));
        }
    }
    assert!(!examples.is_empty(), "there is no example of {fence}");
    examples
}

#[test]
fn examples_of_keys() {
    let text = document("keys");
    for (bytes, meaning) in examples(&text, "keys") {
        assert_eq!(show::key(&bytes), meaning);
    }
    for (bytes, meaning) in examples(&text, "elements") {
        let elements = tuple::unpack(&bytes).unwrap();
        let shown: Vec<String> = elements.iter().map(ToString::to_string).collect();
        assert_eq!(shown.join(" "), meaning);
        assert_eq!(tuple::pack(&elements).unwrap(), bytes);
    }
}

#[test]
fn the_register() {
    let text = document("keys");
    for row in category::REGISTER {
        let [letter, numbers] = row.category.header();
        let formats = match row.format_last {
            last if last == row.format => format!("{last}"),
            last => format!("{} to {last}", row.format),
        };
        let line = format!(
            "| {} | {letter:02X} {numbers:02X} | {formats} | {} | {} | {} |",
            char::from(letter),
            row.owner,
            row.elements,
            row.value
        );
        assert!(text.lines().any(|found| found == line), "keys.md has no line\n{line}");
    }
}

#[test]
fn examples_of_values() {
    for (bytes, meaning) in examples(&document("cbor"), "cbor") {
        let value = cbor::decode(&bytes).unwrap();
        assert_eq!(value.to_string(), meaning);
        assert_eq!(cbor::encode(&value).unwrap(), bytes, "{meaning}");
    }
}
