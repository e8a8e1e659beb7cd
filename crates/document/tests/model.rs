//! The store against a model: a list of documents and a filter that looks at each of them.
#![expect(clippy::unwrap_used, reason = "a test may stop at any surprise")]

use std::cmp::Ordering;

use kumiko_base::Value;
use kumiko_base::draw::{self, Draw};
use kumiko_document::*;
use kumiko_kv::{Engine, Memory, Read, Retry, Txn};

fn run<T>(
    engine: &Memory,
    mut body: impl FnMut(&mut Work<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    kumiko_kv::run(engine, Retry::default(), |txn: &mut dyn Txn| {
        let mut notes = Notes::default();
        body(&mut Work::new(txn, 1_000, &mut notes))
    })
}

fn map(fields: &[(&str, Value)]) -> Value {
    Value::Map(fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect())
}

fn scalar(draw: &mut Draw) -> Value {
    let small = draw.below(4) as i32;
    match draw.below(8) {
        0 => Value::Null,
        1 => Value::F64(f64::from(small) / 2.0),
        2 => Value::Text(draw.one_of(&["", "a", "ab", "b"]).into()),
        3 => Value::Bool(draw.one_in(2)),
        4 => Value::I64(i64::from(small)),
        _ => Value::I32(small),
    }
}

fn value(draw: &mut Draw) -> Value {
    match draw.below(8) {
        0 => Value::Array((0..draw.below(3)).map(|_| scalar(draw)).collect()),
        1 => map(&[("c", scalar(draw))]),
        2 => Value::Array((0..draw.below(3)).map(|_| map(&[("c", scalar(draw))])).collect()),
        _ => scalar(draw),
    }
}

fn id(draw: &mut Draw) -> Value {
    match draw.below(8) {
        0 => Value::Text(draw.one_of(&["", "x", "y"]).into()),
        1 => Value::F64(draw.below(6) as f64 / 2.0),
        2 => Value::ObjectId([draw.below(3) as u8; 12]),
        3 => Value::I64(draw.below(3) as i64 * 5_000_000_000 - 5_000_000_000),
        _ => Value::I32(draw.below(12) as i32 - 3),
    }
}

fn document(draw: &mut Draw, id: Value) -> Value {
    let mut fields = vec![("_id".to_string(), id)];
    for name in ["a", "b"] {
        if !draw.one_in(4) {
            fields.push((name.into(), value(draw)));
        }
    }
    Value::Map(fields)
}

fn test(draw: &mut Draw) -> Test {
    match draw.below(9) {
        0 => Test::Lt(scalar(draw)),
        1 => Test::Le(scalar(draw)),
        2 => Test::Gt(scalar(draw)),
        3 => Test::Ge(scalar(draw)),
        4 => Test::In((0..draw.below(4)).map(|_| value(draw)).collect()),
        5 => Test::Prefix(draw.one_of(&["", "a"]).into()),
        6 => Test::Exists(draw.one_in(2)),
        _ => Test::Eq(value(draw)),
    }
}

fn filter(draw: &mut Draw, depth: u32) -> Filter {
    match draw.below(if depth == 0 { 4 } else { 7 }) {
        0 => {
            let wanted = id(draw);
            Filter::Test("_id".into(), draw.one_of(&[Test::Eq(wanted.clone()), Test::Ge(wanted)]))
        }
        1 => Filter::Element(
            draw.one_of(&["a", "b"]).into(),
            vec![Test::Gt(scalar(draw)), Test::Lt(scalar(draw))],
        ),
        2 | 3 => Filter::Test(draw.one_of(&["a", "b", "a.c", "b.c"]).into(), test(draw)),
        4 => Filter::Any((0..=draw.below(2)).map(|_| filter(draw, depth - 1)).collect()),
        _ => Filter::All((0..draw.below(4)).map(|_| filter(draw, depth - 1)).collect()),
    }
}

fn index(draw: &mut Draw, n: u64) -> Index {
    let paths: Vec<(&str, bool)> = match draw.below(4) {
        0 => vec![("a", draw.one_in(2)), ("b", draw.one_in(2))],
        1 => vec![("a.c", draw.one_in(2))],
        2 => vec![("b.c", false), ("b", true)],
        _ => vec![(draw.one_of(&["a", "b"]), draw.one_in(2))],
    };
    let mut index = Index::new(&format!("i{n}"), &paths);
    index.unique = draw.one_in(6);
    index.sparse = draw.one_in(4);
    if draw.one_in(4) {
        index.partial = Some(Filter::Test("b".into(), Test::Exists(true)));
    }
    index
}

fn compare_ids(a: &Value, b: &Value) -> Ordering {
    order::compare(documents::id(a).unwrap(), documents::id(b).unwrap())
}

/// Random writes, and then random queries, find in the store what they find in a list.
#[test]
fn store_follows_the_model() {
    let cases = std::env::var("CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(400);
    draw::check("store_follows_the_model", cases, |draw| {
        let engine = Memory::new();
        let mut model: Vec<Value> = Vec::new();
        for n in 0..30 {
            if draw.one_in(6) {
                let index = index(draw, n);
                let _ = run(&engine, |work| {
                    let mut it = catalog::open(work, "d", "c", [1; 16])?;
                    kumiko_document::index::create(work, &mut it, index.clone())
                });
            }
            step(draw, &engine, &mut model);
        }
        let mut txn = engine.begin().unwrap();
        for (_, report) in check::all(txn.as_mut()).unwrap() {
            assert_eq!(report.faults, Vec::<String>::new());
            assert_eq!(report.documents, model.len() as u64);
        }
        for _ in 0..10 {
            query(draw, txn.as_mut(), &model);
        }
    });
}

fn step(draw: &mut Draw, engine: &Memory, model: &mut Vec<Value>) {
    let id = id(draw);
    let new = document(draw, id.clone());
    let at = model.iter().position(|it| order::equal(documents::id(it).unwrap(), &id));
    let del = draw.one_in(4);
    let result = run(engine, |work| {
        let mut it = catalog::open(work, "d", "c", [1; 16])?;
        let old = documents::get(work.txn, &it, &id, Read::Serializable)?;
        assert_eq!(old.is_some(), at.is_some());
        match old {
            Some(old) if del => documents::remove(work, &mut it, &old),
            Some(old) => documents::replace(work, &mut it, &old, &new, Operation::Replace),
            None => documents::insert(work, &mut it, &new),
        }
    });
    match (result, at) {
        (Ok(()), Some(at)) if del => drop(model.remove(at)),
        (Ok(()), Some(at)) => model[at] = new,
        (Ok(()), None) => model.push(new),
        (Err(Error::Duplicate { .. } | Error::ParallelArrays), _) => {}
        (Err(error), _) => panic!("{error}"),
    }
}

fn query(draw: &mut Draw, txn: &mut dyn Txn, model: &[Value]) {
    let Some(collection) = catalog::get(txn, "d", "c").unwrap() else { return };
    let mut query = Query::new(filter(draw, 3));
    if draw.one_in(2) {
        let path = draw.one_of(&["_id", "a", "b"]);
        query.sort = vec![(path.into(), draw.one_in(2))];
    }
    let plan = plan::plan(&collection, &query).unwrap();
    let mut cursor = Cursor::new(&collection, &plan, Read::Serializable);
    let mut found = Vec::new();
    while let Some(document) = cursor.next(txn).unwrap() {
        if query.filter.matches(&document) {
            found.push(document);
        }
    }
    if plan.sorted {
        let (path, down) = &query.sort[0];
        let null = Value::Null;
        for pair in found.windows(2) {
            let [a, b] = [0, 1].map(|n| path::plain(&pair[n], path).unwrap_or(&null));
            let wrong = if *down { Ordering::Less } else { Ordering::Greater };
            assert_ne!(order::compare(a, b), wrong, "{query:?} {plan:?}");
        }
    }
    let mut wanted: Vec<Value> =
        model.iter().filter(|it| query.filter.matches(it)).cloned().collect();
    wanted.sort_by(compare_ids);
    found.sort_by(compare_ids);
    assert_eq!(found, wanted, "{query:?} {plan:?} {:?}", collection.indexes);
}

/// An index over one more document than fits one transaction of its build is built in steps, while
/// others write, and ends as if it had been there from the start.
#[test]
fn index_builds_in_steps() {
    draw::check("index_builds_in_steps", 20, |draw| {
        let engine = Memory::new();
        let mut model = Vec::new();
        run(&engine, |work| {
            let mut it = catalog::open(work, "d", "c", [1; 16])?;
            for n in 0..=kumiko_document::index::INLINE_DOCUMENTS_MAX as i32 {
                let document = map(&[("_id", Value::I32(n + 100)), ("a", Value::I32(n % 7))]);
                documents::insert(work, &mut it, &document)?;
            }
            Ok(())
        })
        .unwrap();
        let state = run(&engine, |work| {
            let mut it = catalog::load(work.txn, "d", "c")?;
            kumiko_document::index::create(work, &mut it, Index::new("i", &[("a", false)]))
        });
        assert_eq!(state.unwrap(), State::Building);
        loop {
            let step =
                run(&engine, |work| kumiko_document::index::build_step(work, "d", "c", "i", 40));
            if step.unwrap() == kumiko_document::index::Step::Done {
                break;
            }
            step_beside(draw, &engine, &mut model);
        }
        let mut txn = engine.begin().unwrap();
        let collection = catalog::load(txn.as_mut(), "d", "c").unwrap();
        let report = check::collection(txn.as_mut(), &collection).unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
        assert_eq!(collection.index("i").unwrap().state, State::Ready);
    });
}

fn step_beside(draw: &mut Draw, engine: &Memory, model: &mut Vec<Value>) {
    for _ in 0..3 {
        step(draw, engine, model);
    }
}

/// Writers of different documents leave their changes without conflict; followers see each once,
/// one writer's in order, and a discarded past is an error.
#[test]
fn changes_come_in_commit_order() {
    let engine = Memory::new();
    let mut txn = engine.begin().unwrap();
    feed::switch_on(txn.as_mut()).unwrap();
    txn.commit().unwrap();
    run(&engine, |work| catalog::create(work, "d", "c", map(&[]), [1; 16])).unwrap();
    let begin = |n: i32| {
        let mut txn = engine.begin().unwrap();
        let mut notes = Notes::default();
        let mut work = Work::new(txn.as_mut(), 5, &mut notes);
        let mut it = catalog::load(work.txn, "d", "c").unwrap();
        for part in 0..2 {
            let document = map(&[("_id", Value::I32(n * 10 + part))]);
            documents::insert(&mut work, &mut it, &document).unwrap();
        }
        txn
    };
    let (late, early) = (begin(1), begin(2));
    early.commit().unwrap();
    let sequence = || {
        let mut txn = engine.begin().unwrap();
        let count = feed::sequence(txn.as_mut(), 1_000).unwrap();
        txn.commit().unwrap();
        count
    };
    assert_eq!(sequence(), 2);
    late.commit().unwrap();
    begin(3).commit().unwrap();
    assert_eq!((sequence(), sequence()), (4, 0));
    let mut txn = engine.begin().unwrap();
    let changes = feed::read(txn.as_mut(), 0, 1_000_000).unwrap();
    let ids: Vec<Value> = changes.iter().filter_map(|(_, change)| change.id.clone()).collect();
    assert_eq!(ids, [20, 21, 10, 11, 30, 31].map(Value::I32));
    assert_eq!(changes.last().unwrap().0, feed::newest(txn.as_mut()).unwrap());
    assert_eq!(feed::trim(txn.as_mut(), 6, 1_000_000).unwrap(), 6);
    assert_eq!(feed::read(txn.as_mut(), 3, 1_000).unwrap_err(), Error::HistoryLost);
    assert_eq!(feed::read(txn.as_mut(), 6, 1_000).unwrap(), []);
}

/// A document longer than a value comes back whole, changes its length, and leaves nothing behind.
#[test]
fn long_documents() {
    let engine = Memory::new();
    let long = |size: usize| map(&[("_id", Value::I32(1)), ("a", Value::Bytes(vec![7; size]))]);
    for size in [10, documents::FRAGMENT_BYTES, 1_000_000, 95_000, 5] {
        let stored = run(&engine, |work| {
            let mut it = catalog::open(work, "d", "c", [1; 16])?;
            match documents::get(work.txn, &it, &Value::F64(1.0), Read::Serializable)? {
                Some(old) => {
                    documents::replace(work, &mut it, &old, &long(size), Operation::Replace)?;
                }
                None => documents::insert(work, &mut it, &long(size))?,
            }
            documents::get(work.txn, &it, &Value::I32(1), Read::Serializable)
        });
        assert_eq!(stored.unwrap(), Some(long(size)), "{size}");
    }
    let error = run(&engine, |work| {
        let mut it = catalog::open(work, "d", "e", [1; 16])?;
        documents::insert(work, &mut it, &long(documents::DOCUMENT_BYTES_MAX))
    });
    assert!(matches!(error.unwrap_err(), Error::TooLarge { what: "document", .. }));
    run(&engine, |work| catalog::drop_database(work, "d").map(drop)).unwrap();
    let mut txn = engine.begin().unwrap();
    let all = kumiko_kv::Scan::new(kumiko_kv::Range::all());
    assert_eq!(txn.scan(&all).unwrap().rows, []);
}
