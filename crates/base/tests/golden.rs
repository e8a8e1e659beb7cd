//! The bytes of keys and values, pinned.
//!
//! `key HEX` unpacks a key and prints its category and elements; `element HEX` prints elements
//! without a header; `cbor HEX` decodes a value. Each packs or encodes again and says so if the
//! bytes come out differently.

use kumiko_base::{category, cbor, golden, hex, tuple};

fn key(bytes: &[u8]) -> Result<String, kumiko_base::Error> {
    let (category, mut reader) = category::open(bytes)?;
    let mut packed = category.key();
    let mut shown = char::from(category.letter()).to_string();
    while let Some(element) = reader.element()? {
        shown = format!("{shown} {element}");
        packed = packed.element(&element)?;
    }
    Ok(again(&shown, bytes, &packed.finish()))
}

fn elements(bytes: &[u8]) -> Result<String, kumiko_base::Error> {
    let elements = tuple::unpack(bytes)?;
    let shown: Vec<String> = elements.iter().map(ToString::to_string).collect();
    Ok(again(&shown.join(" "), bytes, &tuple::pack(&elements)?))
}

fn value(bytes: &[u8]) -> Result<String, kumiko_base::Error> {
    let value = cbor::decode(bytes)?;
    Ok(again(&value.to_string(), bytes, &cbor::encode(&value)?))
}

fn again(shown: &str, before: &[u8], after: &[u8]) -> String {
    if before == after {
        shown.to_owned()
    } else {
        format!("{shown}\nwritten as {}", hex::show(after))
    }
}

fn command(line: &str) -> String {
    let (verb, digits) = line.split_once(' ').expect("a command and its bytes");
    let bytes = hex::parse(digits).expect("hexadecimal digits");
    let result = match verb {
        "key" => key(&bytes),
        "element" => elements(&bytes),
        "cbor" => value(&bytes),
        _ => panic!("unknown command {verb}"),
    };
    result.unwrap_or_else(|error| format!("{}: {error}", error.kind().word()))
}

#[test]
fn golden_scripts() {
    golden::run_dir("tests/golden", || command);
}
