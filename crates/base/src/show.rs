//! Keys as text that people read: for dumps, errors and golden scripts.
//!
//! ```text
//! O "shop" "people" "_id" 1
//! P 1 + 0000000000000001
//! ```

use std::fmt::Write;

use crate::{category, hex};

/// A key: the letter of its category and its elements. Behind the tuple, logs go on with keys of
/// their own, shown as digits; so is a key that is not one of ours.
pub fn key(key: &[u8]) -> String {
    let Ok((category, mut reader)) = category::open(key) else { return hex::show(key) };
    let mut text = char::from(category.letter()).to_string();
    // The reader's elements of a log's key end where the log's own part begins: one element.
    let elements_max = match category {
        crate::Category::Point => 1,
        crate::Category::Lattice => 2,
        _ => usize::MAX,
    };
    for _ in 0..elements_max {
        let rest = reader.rest();
        match reader.element() {
            Ok(Some(element)) => {
                let _ = write!(text, " {element}");
            }
            Ok(None) => return text,
            Err(_) => {
                let _ = write!(text, " + {}", hex::show(rest));
                return text;
            }
        }
    }
    if !reader.is_done() {
        let _ = write!(text, " + {}", hex::show(reader.rest()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::key;
    use crate::{Category, draw};

    #[test]
    fn keys_of_every_shape() {
        let packed = Category::Document.key().text("shop").text("pe\"o\n").int(-1).finish();
        assert_eq!(key(&packed), r#"O "shop" "pe\"o\n" -1"#);
        assert_eq!(key(&[9, 9]), "0909");
        let mut point = Category::Point.key().int(7).finish();
        assert_eq!(key(&point), "P 7");
        point.extend([0, 1]);
        assert_eq!(key(&point), "P 7 + 0001");
    }

    #[test]
    fn any_key_can_be_shown() {
        draw::check("any_key_can_be_shown", 2000, |draw| {
            let mut bytes = draw.one_of(&[Category::Point, Category::State]).prefix();
            // A byte FF here would belong to the header as an escaped zero.
            bytes.push(0x14);
            bytes.extend(draw.bytes(20));
            assert!(key(&bytes).starts_with(['P', 'S']));
        });
    }
}
