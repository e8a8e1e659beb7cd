//! Filters: which documents a query wants.
//!
//! A path looks through arrays, and a test of a value that is an array is also a test of each of its
//! elements. A comparison holds between values of one class only. `{a: null}` also wants documents
//! without `a`.

mod parse;

use kumiko_base::Value;
use kumiko_document::path::{self, field, place};
use kumiko_document::{Filter, Test, filter, order};

use crate::expr::{Context, Expr};
use crate::pattern::Pattern;
use crate::{Error, types};

/// A parsed filter.
#[derive(Clone, Debug)]
pub enum Match {
    /// All of them.
    All(Vec<Match>),
    /// One of them.
    Any(Vec<Match>),
    /// None of them.
    None(Vec<Match>),
    /// A test of what a path finds.
    Leaf(String, Leaf),
    /// An expression that must be true.
    Expr(Box<Expr>),
}

/// A test of what a path finds.
#[derive(Clone, Debug)]
pub enum Leaf {
    /// A comparison.
    Test(Test),
    /// Like a comparison, with values of all classes: the limit is the least or the greatest.
    Edge(Test),
    /// Text that matches, or the same pattern as a value.
    Regex(Pattern),
    /// One of these values, or text that matches one of these patterns.
    In(Vec<Value>, Vec<Pattern>),
    /// One of these types.
    Type(Vec<&'static str>),
    /// An array with this many elements.
    Size(i64),
    /// A number with this remainder.
    Mod(i64, i64),
    /// A number whose bits under the mask are: all set, all clear, any set, any clear.
    Bits(Bits, i64),
    /// An array with a map that passes.
    ElementMap(Box<Match>),
    /// An array with an element that passes all of these.
    Element(Vec<Leaf>),
    /// Not all of these.
    Not(Vec<Leaf>),
}

/// Which bits are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// All are 1.
    AllSet,
    /// All are 0.
    AllClear,
    /// One is 1.
    AnySet,
    /// One is 0.
    AnyClear,
}

impl Match {
    /// Parses a filter.
    pub fn parse(filter: &Value) -> Result<Match, Error> {
        parse::filter(filter)
    }

    /// Whether `document` passes.
    ///
    /// # Errors
    ///
    /// An expression may fail.
    pub fn matches(&self, document: &Value) -> Result<bool, Error> {
        self.matches_with(document, &Context::new(document))
    }

    /// Whether `document` passes, with the variables of `context`.
    pub fn matches_with(&self, document: &Value, context: &Context<'_>) -> Result<bool, Error> {
        Ok(match self {
            Match::All(all) => {
                for it in all {
                    if !it.matches_with(document, context)? {
                        return Ok(false);
                    }
                }
                true
            }
            Match::Any(any) | Match::None(any) => {
                let mut found = false;
                for it in any {
                    if it.matches_with(document, context)? {
                        found = true;
                        break;
                    }
                }
                found == matches!(self, Match::Any(_))
            }
            Match::Leaf(path, leaf) => leaf.at(document, path),
            Match::Expr(expr) => {
                let value = expr.eval(&context.with_root(document))?;
                types::truth(value.as_ref())
            }
        })
    }

    /// What the planner can use of this filter.
    pub fn to_filter(&self) -> Filter {
        match self {
            Match::All(all) => Filter::All(all.iter().map(Match::to_filter).collect()),
            Match::Any(any) => Filter::Any(any.iter().map(Match::to_filter).collect()),
            Match::Leaf(path, leaf) => leaf.to_filter(path),
            Match::None(_) | Match::Expr(_) => Filter::Other,
        }
    }

    /// Whether every document passes.
    pub fn is_all(&self) -> bool {
        matches!(self, Match::All(all) if all.iter().all(Match::is_all))
    }

    /// Adds the top-level fields that the filter looks at. False if it cannot tell.
    pub fn fields(&self, into: &mut Vec<String>) -> bool {
        match self {
            Match::All(all) | Match::Any(all) | Match::None(all) => {
                all.iter().all(|it| it.fields(into))
            }
            Match::Leaf(path, _) => {
                into.push(path.split('.').next().unwrap_or(path).into());
                true
            }
            Match::Expr(_) => false,
        }
    }

    /// The equalities that an upsert starts its document from.
    pub fn equalities<'a>(&'a self, into: &mut Vec<(&'a str, &'a Value)>) {
        match self {
            Match::All(all) => all.iter().for_each(|it| it.equalities(into)),
            Match::Any(any) if any.len() == 1 => any[0].equalities(into),
            Match::Leaf(path, Leaf::Test(Test::Eq(value))) => into.push((path, value)),
            Match::Leaf(path, Leaf::In(values, patterns))
                if values.len() == 1 && patterns.is_empty() =>
            {
                into.push((path, &values[0]));
            }
            _ => {}
        }
    }

    /// Which element of an array made `document` pass: what `$` in an update's path stands for.
    pub fn position(&self, document: &Value) -> Option<usize> {
        match self {
            Match::All(all) => all.iter().filter_map(|it| it.position(document)).next_back(),
            Match::Any(any) => {
                any.iter().find(|it| it.matches(document) == Ok(true))?.position(document)
            }
            Match::Leaf(path, leaf) => leaf.position(document, path),
            Match::None(_) | Match::Expr(_) => None,
        }
    }
}

impl Leaf {
    /// Whether what `path` finds in `document` passes.
    pub fn at(&self, document: &Value, path: &str) -> bool {
        match self {
            Leaf::Not(inside) => !inside.iter().all(|it| it.at(document, path)),
            Leaf::Test(Test::Exists(false)) => {
                !path::visit(document, path, &mut |value| value.is_some())
            }
            _ => path::visit(document, path, &mut |value| self.value(value)),
        }
    }

    /// Whether a value that a path found passes, itself or by one of its elements.
    fn value(&self, value: Option<&Value>) -> bool {
        if let Leaf::Test(test) = self {
            return filter::test_leaf(test, value);
        }
        if let Leaf::Not(inside) = self {
            return !inside.iter().all(|it| it.value(value));
        }
        if self.itself(value) {
            return true;
        }
        match (self, value) {
            (Leaf::Size(_) | Leaf::Element(_) | Leaf::ElementMap(_), _) => false,
            (_, Some(Value::Array(elements))) => elements.iter().any(|it| self.itself(Some(it))),
            _ => false,
        }
    }

    /// Whether this very value passes.
    fn itself(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Leaf::Test(test), _) => test.holds(value),
            (Leaf::Not(inside), _) => !inside.iter().all(|it| it.itself(value)),
            (Leaf::In(values, patterns), _) => {
                values.iter().any(|it| match (it, value) {
                    (Value::Null, None) => true,
                    (_, None) => false,
                    (it, Some(value)) => order::equal(it, value),
                }) || patterns.iter().any(|it| is_match(it, value))
            }
            (Leaf::Regex(pattern), _) => is_match(pattern, value),
            (_, None) => false,
            (Leaf::Edge(test), Some(value)) => edge(test, value),
            (Leaf::Type(names), Some(value)) => {
                let name = types::type_name(Some(value));
                names.iter().any(|it| *it == name || (*it == "number" && types::is_number(value)))
            }
            (Leaf::Size(size), Some(Value::Array(elements))) => elements.len() as i64 == *size,
            (Leaf::Mod(divisor, remainder), Some(value)) => {
                let whole = types::float(value).filter(|it| it.is_finite()).map(f64::trunc);
                let whole = types::integer(value).or(whole.map(|it| it as i64));
                whole.is_some_and(|it| it.checked_rem(*divisor) == Some(*remainder))
            }
            (Leaf::Bits(bits, mask), Some(value)) => {
                let Some(number) = types::integer(value).filter(|_| types::is_number(value)) else {
                    return false;
                };
                match bits {
                    Bits::AllSet => number & mask == *mask,
                    Bits::AllClear => number & mask == 0,
                    Bits::AnySet => number & mask != 0,
                    Bits::AnyClear => number & mask != *mask,
                }
            }
            (Leaf::ElementMap(inside), Some(Value::Array(elements))) => {
                elements.iter().any(|it| element_map(inside, it))
            }
            (Leaf::Element(tests), Some(Value::Array(elements))) => {
                elements.iter().any(|it| tests.iter().all(|test| test.itself_or_nested(it)))
            }
            _ => false,
        }
    }

    /// An element is tested as it is, except that tests of arrays look into a nested array.
    fn itself_or_nested(&self, value: &Value) -> bool {
        self.itself(Some(value))
    }

    fn to_filter(&self, path: &str) -> Filter {
        match self {
            Leaf::Test(test) => Filter::Test(path.into(), test.clone()),
            Leaf::In(values, patterns) if patterns.is_empty() => {
                Filter::Test(path.into(), Test::In(values.clone()))
            }
            Leaf::Regex(pattern) => match pattern.prefix() {
                // An equal pattern stored as a value passes too; the planner must not lose it.
                Some(prefix) => Filter::Any(vec![
                    Filter::Test(path.into(), Test::Prefix(prefix)),
                    Filter::Test(
                        path.into(),
                        Test::Eq(Value::Regex(pattern.source.clone(), pattern.options.clone())),
                    ),
                ]),
                None => Filter::Other,
            },
            Leaf::Element(leaves) => {
                let tests: Option<Vec<Test>> = leaves
                    .iter()
                    .map(|leaf| match leaf {
                        Leaf::Test(test @ (Test::Exists(_) | Test::Eq(Value::Array(_)))) => {
                            let _ = test;
                            None
                        }
                        Leaf::Test(test) => Some(test.clone()),
                        _ => None,
                    })
                    .collect();
                tests.map_or(Filter::Other, |tests| Filter::Element(path.into(), tests))
            }
            Leaf::ElementMap(inside) => prefixed(&inside.to_filter(), path),
            _ => Filter::Other,
        }
    }

    fn position(&self, document: &Value, path: &str) -> Option<usize> {
        if matches!(self, Leaf::Not(_)) {
            return None;
        }
        let (part, rest) = path.split_once('.').map_or((path, None), |(it, rest)| (it, Some(rest)));
        let next = match document {
            Value::Array(elements) => elements.get(place(part)?)?,
            _ => field(document, part)?,
        };
        let Value::Array(elements) = next else {
            return self.position(next, rest?);
        };
        match (self, rest) {
            (_, Some(rest)) => {
                let first = rest.split('.').next().unwrap_or(rest);
                if place(first).is_some_and(|at| at < elements.len()) {
                    return self.position(next, rest);
                }
                elements.iter().position(|it| matches!(it, Value::Map(_)) && self.at(it, rest))
            }
            (Leaf::ElementMap(inside), None) => {
                elements.iter().position(|it| element_map(inside, it))
            }
            (Leaf::Element(tests), None) => {
                elements.iter().position(|it| tests.iter().all(|test| test.itself(Some(it))))
            }
            (_, None) => elements.iter().position(|it| self.itself(Some(it))),
        }
    }
}

fn element_map(inside: &Match, element: &Value) -> bool {
    match element {
        Value::Map(_) => inside.matches(element) == Ok(true),
        // The elements of a nested array are fields by their places.
        Value::Array(nested) => {
            let places = nested.iter().enumerate();
            let map = places.map(|(n, value)| (n.to_string(), value.clone())).collect();
            inside.matches(&Value::Map(map)) == Ok(true)
        }
        _ => false,
    }
}

fn is_match(pattern: &Pattern, value: Option<&Value>) -> bool {
    match value {
        Some(Value::Text(text)) => pattern.matches(text),
        Some(Value::Regex(source, options)) => {
            pattern.source == *source && pattern.options == *options
        }
        _ => false,
    }
}

fn edge(test: &Test, value: &Value) -> bool {
    match test {
        Test::Lt(limit) => order::compare(value, limit).is_lt(),
        Test::Le(limit) => order::compare(value, limit).is_le(),
        Test::Gt(limit) => order::compare(value, limit).is_gt(),
        Test::Ge(limit) => order::compare(value, limit).is_ge(),
        _ => false,
    }
}

/// The conditions on an array's maps as conditions on paths below it; each alone must hold.
fn prefixed(filter: &Filter, prefix: &str) -> Filter {
    let list = |inside: &[Filter]| inside.iter().map(|it| prefixed(it, prefix)).collect();
    match filter {
        Filter::All(all) => Filter::All(list(all)),
        Filter::Any(any) => Filter::Any(list(any)),
        // In a document without the array the path finds nothing, which such a test would accept.
        Filter::Test(path, test) if !test.holds(None) => {
            Filter::Test(format!("{prefix}.{path}"), test.clone())
        }
        Filter::Element(path, tests) => Filter::Element(format!("{prefix}.{path}"), tests.clone()),
        Filter::Test(..) | Filter::Other => Filter::Other,
    }
}
