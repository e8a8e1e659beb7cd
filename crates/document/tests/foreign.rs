//! What PuzzleDB wrote is read, and what we write has its bytes.
#![expect(clippy::unwrap_used, reason = "a test may stop at any surprise")]

use kumiko_base::{Value, hex};
use kumiko_document::{Cursor, Error, Filter, Notes, Plan, Query, Test, Work};
use kumiko_document::{catalog, documents, keys, plan};
use kumiko_kv::{Engine, Memory, Read};

fn bytes(text: &str) -> Vec<u8> {
    hex::parse(&text.replace(' ', "")).unwrap()
}

fn written() -> Memory {
    let engine = Memory::new();
    let mut txn = engine.begin().unwrap();
    let schema = "A4 00 1B 00 00 00 00 00 00 00 01 01 65 75 73 65 72 73 02 82 A2 01 62 69 64 02 18 \
                  22 A2 01 64 6E 61 6D 65 02 18 30 03 82 A3 01 62 69 64 02 01 03 81 62 69 64 A3 01 \
                  64 6E 69 64 78 02 02 03 81 64 6E 61 6D 65";
    let rows = [
        ("01 44 11 00 02 74 65 73 74 00", "A0"),
        ("01 43 11 00 02 74 65 73 74 00 02 75 73 65 72 73 00", schema),
        (
            "01 4F 11 00 02 74 65 73 74 00 02 75 73 65 72 73 00 02 69 64 00 15 2A",
            "A2 62 69 64 1A 00 00 00 2A 64 6E 61 6D 65 63 42 6F 62",
        ),
        (
            "01 49 12 00 02 74 65 73 74 00 02 75 73 65 72 73 00 02 6E 61 6D 65 00 02 42 6F 62 00 \
             02 69 64 00 15 2A",
            "",
        ),
        // A document of the MongoDB side: text id "ab", {_id: "ab", n: int32 1}.
        (
            "01 4F 11 00 02 74 65 73 74 00 02 74 00 02 5F 69 64 00 02 61 62 00",
            "A2 63 5F 69 64 62 61 62 61 6E 1A 00 00 00 01",
        ),
    ];
    for (key, value) in rows {
        txn.put(&bytes(key), &bytes(value)).unwrap();
    }
    txn.commit().unwrap();
    engine
}

#[test]
fn a_table_is_read_and_not_written() {
    let engine = written();
    let mut txn = engine.begin().unwrap();
    assert_eq!(catalog::databases(txn.as_mut()).unwrap(), ["test"]);
    let mut users = catalog::load(txn.as_mut(), "test", "users").unwrap();
    assert!(users.foreign);
    let mut cursor = Cursor::new(&users, &Plan::all(), Read::Serializable);
    let row = cursor.next(txn.as_mut()).unwrap().unwrap();
    assert_eq!(row.field("_id"), Some(&Value::I32(42)));
    assert_eq!(row.field("name"), Some(&Value::Text("Bob".into())));
    assert_eq!(cursor.next(txn.as_mut()).unwrap(), None);
    let mut notes = Notes::default();
    let mut work = Work::new(txn.as_mut(), 0, &mut notes);
    let error = documents::insert(&mut work, &mut users, &row).unwrap_err();
    assert!(matches!(error, Error::ReadOnly(_)));
}

#[test]
fn documents_without_a_record_are_read_and_written() {
    let engine = written();
    let mut txn = engine.begin().unwrap();
    let mut notes = Notes::default();
    let mut work = Work::new(txn.as_mut(), 0, &mut notes);
    let mut it = catalog::open(&mut work, "test", "t", [9; 16]).unwrap();
    let query = Query::new(Filter::Test("_id".into(), Test::Eq(Value::Text("ab".into()))));
    let plan = plan::plan(&it, &query).unwrap();
    let mut cursor = Cursor::new(&it, &plan, Read::Serializable);
    let old = cursor.next(work.txn).unwrap().unwrap();
    assert_eq!(old.field("n"), Some(&Value::I32(1)));
    documents::remove(&mut work, &mut it, &old).unwrap();
    assert_eq!(
        documents::get(work.txn, &it, &Value::Text("ab".into()), Read::Snapshot).unwrap(),
        None
    );
}

#[test]
fn keys_have_the_known_bytes() {
    let place = |id: Value| keys::Place::of(&id).unwrap();
    let prefixes = keys::Prefixes::new("test", "users");
    let key = |id: Value| hex::show(&prefixes.document(&place(id)));
    let stem = "014f11000274657374000275736572730002".to_string() + "5f696400";
    assert_eq!(key(Value::I32(42)), format!("{stem}152a"));
    assert_eq!(key(Value::F64(42.0)), format!("{stem}152a"));
    assert_eq!(key(Value::Text("ab".into())), format!("{stem}02616200"));
    let stem = stem.replace("014f11", "014f13");
    assert_eq!(key(Value::ObjectId([1; 12])), format!("{stem}46{}", "01".repeat(12)));
    assert_eq!(key(Value::F64(2.5)), format!("{stem}142202013300"));
    assert_eq!(hex::show(&keys::database("test")), "014411000274657374".to_string() + "00");
    assert_eq!(keys::index("test", "users", "nidx").len(), 4 + 6 + 7 + 6);
}
