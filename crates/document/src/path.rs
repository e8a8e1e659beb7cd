//! Dotted paths into documents, and what an index keeps of a document.
//!
//! A path looks through arrays: `a.b` of `{a: [{b: 1}, {b: 2}]}` finds 1 and 2. A number in a path
//! is a place in an array, or a field's name in a map.

use kumiko_base::Value;

use crate::Error;

/// The field `name` of a map.
pub fn field<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(fields) = map else { return None };
    fields.iter().find(|(it, _)| it == name).map(|(_, value)| value)
}

/// A place in an array, if `part` is one.
pub fn place(part: &str) -> Option<usize> {
    if part.is_empty() || (1 < part.len() && part.starts_with('0')) {
        return None;
    }
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    part.parse().ok()
}

/// Shows every value that `path` finds, `None` where an object on the way lacks the next part.
/// Arrays on the way are looked through; an array at the end is shown whole. Stops when `each`
/// says true, and says whether it did.
pub fn visit<'a>(
    value: &'a Value,
    path: &str,
    each: &mut dyn FnMut(Option<&'a Value>) -> bool,
) -> bool {
    let (part, rest) = match path.split_once('.') {
        Some((part, rest)) => (part, Some(rest)),
        None => (path, None),
    };
    let go = |found: Option<&'a Value>, each: &mut dyn FnMut(Option<&'a Value>) -> bool| match (
        found, rest,
    ) {
        (found, None) => each(found),
        (Some(found), Some(rest)) => visit(found, rest, each),
        (None, Some(_)) => each(None),
    };
    match value {
        Value::Map(_) => go(field(value, part), each),
        Value::Array(elements) => {
            if let Some(element) = place(part).and_then(|at| elements.get(at))
                && go(Some(element), each)
            {
                return true;
            }
            let maps = elements.iter().filter(|element| matches!(element, Value::Map(_)));
            for element in maps {
                if go(field(element, part), each) {
                    return true;
                }
            }
            false
        }
        _ => each(None),
    }
}

/// The first value that `path` finds without looking through arrays, except by place.
pub fn plain<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Array(elements) => elements.get(place(part)?),
        _ => field(value, part),
    })
}

/// The value at `path` if only maps are on the way.
pub fn plain_maps<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, field)
}

/// One component of an index entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part<'a> {
    /// The document has nothing there.
    Missing,
    /// The document has an empty array there.
    Empty,
    /// The document has this there, itself or in an array.
    Is(&'a Value),
}

/// What an index over some paths keeps of one document.
#[derive(Debug, Default)]
pub struct Parts<'a> {
    /// One row per entry, one part per path.
    pub rows: Vec<Vec<Part<'a>>>,
    /// Which paths went through, or ended in, an array.
    pub multikey: Vec<bool>,
}

/// The most entries that one document may have in one index.
pub const ENTRIES_MAX: usize = 100_000;

/// The entries of `document` in an index over `paths`.
///
/// # Errors
///
/// `ParallelArrays` if two paths look through different arrays.
pub fn parts<'a>(document: &'a Value, paths: &[&'a str]) -> Result<Parts<'a>, Error> {
    let mut found = Parts { rows: Vec::new(), multikey: vec![false; paths.len()] };
    let start = Part::Is(document);
    let head = |path: &&'a str| Head { at: start, rest: Some(path), done: false };
    expand(paths.iter().map(head).collect(), &mut found)?;
    Ok(found)
}

#[derive(Clone, Copy)]
struct Head<'a> {
    at: Part<'a>,
    /// What is left of the path.
    rest: Option<&'a str>,
    /// An element of an array is final, even if it is an array itself.
    done: bool,
}

impl<'a> Head<'a> {
    fn array(&self) -> Option<&'a [Value]> {
        match self.at {
            Part::Is(Value::Array(elements)) if !self.done => Some(elements),
            _ => None,
        }
    }

    /// The head one step into the array it stands at; `None` if that is empty.
    fn enter(&self, element: Option<&'a Value>) -> Head<'a> {
        if self.array().is_none() {
            return *self;
        }
        let (at, done) = match (element, self.rest) {
            (None, None) => (Part::Empty, true),
            (Some(element), None) => (Part::Is(element), true),
            (Some(element @ Value::Map(_)), Some(_)) => (Part::Is(element), false),
            (_, Some(_)) => (Part::Missing, true),
        };
        Head { at, rest: if done { None } else { self.rest }, done }
    }
}

fn expand<'a>(mut heads: Vec<Head<'a>>, found: &mut Parts<'a>) -> Result<(), Error> {
    heads.iter_mut().for_each(advance);
    let mut array: Option<&'a [Value]> = None;
    for (head, multikey) in heads.iter().zip(&mut found.multikey) {
        let Some(elements) = head.array() else { continue };
        if array.is_some_and(|it| !std::ptr::eq(it, elements)) {
            return Err(Error::ParallelArrays);
        }
        *multikey = true;
        array = Some(elements);
    }
    let Some(elements) = array else {
        let size = found.rows.len() + 1;
        if ENTRIES_MAX < size {
            let what = "index entries of one document";
            return Err(Error::TooLarge { what, size, size_max: ENTRIES_MAX });
        }
        found.rows.push(heads.iter().map(|head| head.at).collect());
        return Ok(());
    };
    if elements.is_empty() {
        return expand(heads.iter().map(|head| head.enter(None)).collect(), found);
    }
    elements.iter().try_for_each(|element| {
        expand(heads.iter().map(|head| head.enter(Some(element))).collect(), found)
    })
}

/// Follows maps, and places in arrays, as far as they go.
fn advance(head: &mut Head<'_>) {
    if head.done {
        return;
    }
    while let (Part::Is(value), Some(rest)) = (head.at, head.rest) {
        let (part, rest) = match rest.split_once('.') {
            Some((part, rest)) => (part, Some(rest)),
            None => (rest, None),
        };
        let next = match value {
            Value::Map(_) => field(value, part),
            Value::Array(elements) => match place(part).and_then(|at| elements.get(at)) {
                Some(element) => Some(element),
                None => return,
            },
            _ => None,
        };
        head.rest = if next.is_some() { rest } else { None };
        head.at = next.map_or(Part::Missing, Part::Is);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&str, Value)]) -> Value {
        Value::Map(fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect())
    }

    fn list(numbers: &[i32]) -> Value {
        Value::Array(numbers.iter().map(|it| Value::I32(*it)).collect())
    }

    #[test]
    fn entries_of_arrays() {
        let inner = Value::Array(vec![
            map(&[("b", Value::I32(1)), ("c", Value::I32(2))]),
            map(&[("b", list(&[3, 4]))]),
            Value::I32(9),
        ]);
        let document =
            map(&[("a", inner), ("e", list(&[])), ("n", Value::Array(vec![list(&[1])]))]);
        // paths, entries, multikey
        let rows: [(&[&str], usize, &[bool]); 6] = [
            (&["a.b"], 4, &[true]),
            (&["a.b", "a.c"], 4, &[true, true]),
            (&["a.0.b"], 1, &[false]),
            (&["e"], 1, &[true]),
            (&["n"], 1, &[true]),
            (&["x.y", "e"], 1, &[false, true]),
        ];
        for (paths, count, multikey) in rows {
            let found = parts(&document, paths).unwrap();
            assert_eq!(found.rows.len(), count, "{paths:?} {:?}", found.rows);
            assert_eq!(found.multikey, multikey, "{paths:?}");
        }
        assert!(matches!(parts(&document, &["a", "e"]), Err(Error::ParallelArrays)));
        assert_eq!(parts(&document, &["n"]).unwrap().rows[0][0], Part::Is(&list(&[1])));
    }

    #[test]
    fn visit_looks_through_arrays() {
        let document = map(&[("a", Value::Array(vec![map(&[("b", list(&[1]))]), map(&[])]))]);
        let mut seen = Vec::new();
        visit(&document, "a.b", &mut |value| {
            seen.push(value.cloned());
            false
        });
        assert_eq!(seen, [Some(list(&[1])), None]);
        assert_eq!(plain(&document, "a.0.b.0"), Some(&Value::I32(1)));
    }
}
