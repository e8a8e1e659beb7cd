//! Chooses how to find the documents of a query: by id, by an index, by several, or one by one.
//!
//! The planner sees a [`Filter`], a sort and the catalog. It promises that what the plan finds
//! contains every document that passes the filter, in the order of the sort if the plan says so;
//! the caller looks at each again. There are no statistics: an equal value beats a range, a range
//! beats an order, an order beats nothing.

mod bounds;
mod ids;

use kumiko_base::Value;
use kumiko_kv::Range;

use crate::catalog::{Collection, Index, PRIMARY, State};
use crate::{Error, Filter, Test};
pub(crate) use bounds::Interval;

/// The most ranges that one plan reads; beyond it, fewer paths of the index are used.
const RANGES_MAX: usize = 1_000;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Query {
    /// What the documents must pass.
    pub filter: Filter,
    /// The paths to sort by, and whether each is descending.
    pub sort: Vec<(String, bool)>,
    /// The name of the index to use. `$natural` forbids all of them.
    pub hint: Option<String>,
    /// All top-level fields that the caller will look at, if it knows.
    pub fields: Option<Vec<String>>,
}

impl Query {
    /// Every document that passes, in any order.
    pub fn new(filter: Filter) -> Query {
        Query { filter, sort: Vec::new(), hint: None, fields: None }
    }
}

/// How documents are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// One by one, all of them.
    All,
    /// By their ids.
    Ids(Vec<Segment>),
    /// By an index.
    Index {
        /// Its name.
        name: String,
        /// What to read of it, in key order.
        ranges: Vec<Range>,
        /// The bounds of each path, to be shown.
        bounds: Vec<(String, Vec<String>)>,
    },
    /// Each of these; a document that several find counts once.
    Union(Vec<Access>),
}

/// A part of the documents in id order.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    /// One range.
    Rows(Range),
    /// Integers, and the numbers between them, which must be merged.
    Numbers(Range, Range),
}

/// How a query is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How documents are found.
    pub access: Access,
    /// From the end.
    pub reverse: bool,
    /// The documents come in the order of the sort.
    pub sorted: bool,
    /// The index alone answers; documents are not read.
    pub covered: bool,
    /// Whether one document may come up more than once.
    pub repeats: bool,
}

impl Plan {
    /// Reads everything.
    pub fn all() -> Plan {
        let access = Access::All;
        Plan { access, reverse: false, sorted: false, covered: false, repeats: false }
    }
}

struct Candidate {
    plan: Plan,
    /// Larger is better; zero is no better than reading everything.
    score: u32,
}

/// Chooses a plan.
///
/// # Errors
///
/// `Invalid` if the hint names no index.
pub fn plan(collection: &Collection, query: &Query) -> Result<Plan, Error> {
    let mut tests = Vec::new();
    let mut unions = Vec::new();
    collect(&query.filter, &mut tests, &mut unions);
    if collection.foreign {
        return Ok(Plan::all());
    }
    if let Some(hint) = &query.hint {
        return hinted(collection, query, &tests, hint);
    }
    let indexes = collection.indexes.iter().filter(|it| usable(it, query));
    let mut best = by_ids(collection, query, &tests);
    for candidate in indexes.filter_map(|index| by_index(collection, query, &tests, index)) {
        if best.as_ref().is_none_or(|best| best.score < candidate.score) {
            best = Some(candidate);
        }
    }
    if best.as_ref().is_none_or(|best| best.score < 10)
        && let Some(plan) = unions.iter().find_map(|any| union(collection, query, any))
    {
        return Ok(plan);
    }
    Ok(best.map_or_else(Plan::all, |best| best.plan))
}

fn hinted(
    collection: &Collection,
    query: &Query,
    tests: &Tests<'_>,
    hint: &str,
) -> Result<Plan, Error> {
    if hint == "$natural" {
        return Ok(Plan::all());
    }
    if hint == PRIMARY {
        return Ok(by_ids(collection, query, tests).map_or_else(Plan::all, |it| it.plan));
    }
    let Some(index) = collection.index(hint).filter(|it| it.state == State::Ready) else {
        return Err(Error::Invalid(
            "error processing query: planner returned error: hint provided does not correspond \
             to an existing index"
                .into(),
        ));
    };
    // A hint may leave out documents that the index does not hold: the user asked for it.
    Ok(index_candidate(collection, query, tests, index).plan)
}

type Tests<'a> = Vec<(&'a str, Group<'a>)>;

/// Tests that one value must pass all together.
pub(crate) type Group<'a> = Vec<&'a Test>;

/// The conditions that hold for every document of the result.
fn collect<'a>(filter: &'a Filter, tests: &mut Tests<'a>, unions: &mut Vec<&'a [Filter]>) {
    match filter {
        Filter::All(all) => all.iter().for_each(|it| collect(it, tests, unions)),
        Filter::Any(any) if any.len() == 1 => collect(&any[0], tests, unions),
        Filter::Any(any) => unions.push(any),
        Filter::Test(path, test) => tests.push((path, vec![test])),
        Filter::Element(path, group) => tests.push((path, group.iter().collect())),
        Filter::Other => {}
    }
}

/// Whether the index holds every document that the query could find.
fn usable(index: &Index, query: &Query) -> bool {
    if index.state != State::Ready || index.hidden {
        return false;
    }
    index.partial.as_ref().is_none_or(|partial| query.filter.implies(partial))
}

fn by_ids(collection: &Collection, query: &Query, tests: &Tests<'_>) -> Option<Candidate> {
    let groups: Vec<&Test> = tests
        .iter()
        .filter(|(path, _)| *path == "_id")
        .flat_map(|(_, group)| group.iter().copied())
        .collect();
    let bounds = ids::segments(collection.prefixes(), &groups);
    let (sorted, reverse) = match query.sort.first() {
        // Ids are unique: what comes after the id in a sort decides nothing.
        Some((path, down)) if path == "_id" => (true, *down),
        Some(_) => (false, false),
        None => (true, false),
    };
    let score = match &bounds {
        Some((_, true)) => 100,
        Some((_, false)) => 5 + if sorted { 2 } else { 0 },
        None if sorted && !query.sort.is_empty() => 1,
        None => return None,
    };
    let segments = bounds.map_or_else(|| ids::all(collection.prefixes()), |(segments, _)| segments);
    let access = Access::Ids(segments);
    let sorted = sorted && !query.sort.is_empty();
    let plan = Plan { access, reverse, sorted, covered: false, repeats: false };
    Some(Candidate { plan, score })
}

fn by_index(
    collection: &Collection,
    query: &Query,
    tests: &Tests<'_>,
    index: &Index,
) -> Option<Candidate> {
    if index.sparse {
        // It must be plain that documents without all the paths cannot pass.
        let present = index.paths.iter().any(|(path, _)| {
            tests.iter().any(|(it, group)| it == path && group.iter().any(|test| present(test)))
        });
        if !present {
            return None;
        }
    }
    let candidate = index_candidate(collection, query, tests, index);
    (0 < candidate.score).then_some(candidate)
}

/// Whether a missing value never passes.
fn present(test: &Test) -> bool {
    match test {
        Test::Exists(wanted) => *wanted,
        Test::Eq(value) | Test::Le(value) | Test::Ge(value) => *value != Value::Null,
        Test::In(values) => !values.contains(&Value::Null),
        Test::Lt(_) | Test::Gt(_) | Test::Prefix(_) => true,
    }
}

fn index_candidate(
    collection: &Collection,
    query: &Query,
    tests: &Tests<'_>,
    index: &Index,
) -> Candidate {
    let prefix = collection.index_prefix(&index.name);
    let mut keys: Vec<(Vec<u8>, Vec<u8>)> = vec![(Vec::new(), Vec::new())];
    let mut shown = Vec::new();
    let (mut points, mut score, mut open) = (0, 0, false);
    for (n, (path, down)) in index.paths.iter().enumerate() {
        let intervals = if open || shares_array(index, n) {
            None
        } else {
            bounds::of(tests, path, index.multikey[n])
        };
        let Some(intervals) = intervals else { break };
        if RANGES_MAX < keys.len().saturating_mul(intervals.len()) {
            break;
        }
        let single = intervals.len() == 1 && intervals[0].is_point();
        let all_points = intervals.iter().all(Interval::is_point);
        points += usize::from(single && points == n);
        score += if all_points { 10 } else { 5 };
        open = !all_points;
        shown.push((path.clone(), intervals.iter().map(|it| it.shown.clone()).collect()));
        keys = bounds::extend(&keys, &intervals, *down);
    }
    let order = order_by(index, &query.sort, points);
    if order.is_some() && !query.sort.is_empty() {
        score += if score == 0 { 1 } else { 2 };
    }
    let complete = points == index.paths.len();
    if index.unique && complete {
        score += 50;
    }
    let covered = is_covered(index, query);
    score += u32::from(covered && 0 < score);
    let range = |(low, high): (Vec<u8>, Vec<u8>)| {
        let high = if high.is_empty() { vec![0xFF] } else { high };
        Range::new([prefix.clone(), low].concat(), [prefix.clone(), high].concat())
    };
    let access = Access::Index {
        name: index.name.clone(),
        ranges: keys.into_iter().map(range).filter(|it| !it.is_empty()).collect(),
        bounds: shown,
    };
    let (sorted, reverse) = (order.is_some() && !query.sort.is_empty(), order == Some(true));
    let repeats = index.multikey.iter().any(|it| *it);
    Candidate { plan: Plan { access, reverse, sorted, covered, repeats }, score }
}

/// Whether an earlier path of the index looks through the same array: then two conditions may be
/// met by different elements, and only one of them may bound the index.
fn shares_array(index: &Index, n: usize) -> bool {
    let root = |at: usize| index.paths[at].0.split('.').next();
    index.multikey[n] && (0..n).any(|at| index.multikey[at] && root(at) == root(n))
}

/// Whether the index gives the order of `sort`, given that its first `points` paths have one value:
/// `Some(true)` if read from its end.
fn order_by(index: &Index, sort: &[(String, bool)], points: usize) -> Option<bool> {
    // A path that meets arrays has one value in the index and may have others in the document.
    let fixed = |path: &String| {
        let at = index.paths[..points].iter().position(|(it, _)| it == path);
        at.is_some_and(|at| !index.multikey[at])
    };
    let mut sort = sort.iter().filter(|(path, _)| !fixed(path));
    let mut reverse = None;
    for (n, (path, down)) in index.paths.iter().enumerate().skip(points) {
        let Some((wanted, wanted_down)) = sort.next() else { return Some(reverse == Some(true)) };
        let turned = down != wanted_down;
        if path != wanted || index.multikey[n] || reverse.is_some_and(|it| it != turned) {
            return None;
        }
        reverse = Some(turned);
    }
    sort.next().is_none().then_some(reverse == Some(true))
}

fn is_covered(index: &Index, query: &Query) -> bool {
    let Some(fields) = &query.fields else { return false };
    let plain = index.paths.iter().all(|(path, _)| !path.contains('.'));
    let known = |name: &String| name == "_id" || index.paths.iter().any(|(path, _)| path == name);
    plain && !index.multikey.iter().any(|it| *it) && fields.iter().all(known)
}

/// A plan for "one of these", if every branch has a good one.
fn union(collection: &Collection, query: &Query, any: &[Filter]) -> Option<Plan> {
    let mut accesses = Vec::new();
    for branch in any {
        let branch = Query::new(Filter::All(vec![branch.clone(), query.filter_without_any()]));
        match plan(collection, &branch).ok()?.access {
            Access::All => return None,
            access => accesses.push(access),
        }
    }
    let access = Access::Union(accesses);
    Some(Plan { access, reverse: false, sorted: false, covered: false, repeats: true })
}

impl Query {
    /// The conditions beside those that say "one of these", for the plan of a branch.
    fn filter_without_any(&self) -> Filter {
        without_any(&self.filter)
    }
}

/// Every "one of these" must go, however deep: a branch that saw its own union again would plan it
/// for ever.
fn without_any(filter: &Filter) -> Filter {
    match filter {
        Filter::All(all) => Filter::All(all.iter().map(without_any).collect()),
        Filter::Any(_) => Filter::All(Vec::new()),
        other => other.clone(),
    }
}
