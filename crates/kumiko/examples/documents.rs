//! Documents without a server: a collection, an index, a query and a change log, in this process.
//!
//! ```text
//! cargo run --example documents
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use kumiko::base::Value;
use kumiko::document::{Cursor, Error, Index, Notes, Query, Work};
use kumiko::document::{catalog, documents, feed, index, plan};
use kumiko::kv::{Engine, Memory, Read, Retry, Txn};
use kumiko::lang::{Match, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Memory::new();
    write(&engine, |work| feed::switch_on(work.txn))?;
    write(&engine, |work| {
        let mut people = catalog::open(work, "shop", "people", [1; 16])?;
        index::create(work, &mut people, Index::new("by_age", &[("age", false)]))?;
        for (id, age) in [(1, 31), (2, 45), (3, 27)] {
            let person =
                Value::Map(vec![("_id".into(), Value::I32(id)), ("age".into(), Value::I32(age))]);
            documents::insert(work, &mut people, &person)?;
        }
        Ok(())
    })?;

    let filter = Match::parse(&json::parse(r#"{"age": {"$gt": 30}}"#)?)?;
    let mut txn = engine.begin()?;
    let people = catalog::load(txn.as_mut(), "shop", "people")?;
    let plan = plan::plan(&people, &Query::new(filter.to_filter()))?;
    println!("{:?}", plan.access);
    let mut cursor = Cursor::new(&people, &plan, Read::Snapshot);
    while let Some(person) = cursor.next(txn.as_mut())? {
        if filter.matches(&person)? {
            println!("{}", json::show(&person, json::Style::Relaxed));
        }
    }

    write(&engine, |work| feed::sequence(work.txn, 1_000_000).map(drop))?;
    let mut txn = engine.begin()?;
    for (number, change) in feed::read(txn.as_mut(), 0, 1_000_000)? {
        println!("change {number}: {} {:?}", change.operation.word(), change.id);
    }
    Ok(())
}

fn write(
    engine: &dyn Engine,
    mut body: impl FnMut(&mut Work<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    kumiko::kv::run(engine, Retry::default(), |txn: &mut dyn Txn| {
        let mut notes = Notes::default();
        body(&mut Work::new(txn, 0, &mut notes))
    })
}
