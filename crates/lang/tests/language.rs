//! The language, row by row: what each row says was observed on MongoDB 6.0.

use kumiko_base::Value;
use kumiko_base::draw::{self, Draw};
use kumiko_lang::json::{Style, parse, show};
use kumiko_lang::{
    Context, Error, Host, Match, Pipeline, Projection, Run, Situation, Sort, Update,
};
use kumiko_lang::{project, update};

fn value(text: &str) -> Value {
    parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn relaxed(value: &Value) -> String {
    show(value, Style::Relaxed).replace("\":", "\": ").replace(',', ", ")
}

#[test]
fn filters() {
    // filter, documents that pass, documents that do not
    let rows: &[(&str, &[&str], &[&str])] = &[
        (
            r#"{"a": null}"#,
            &["{}", r#"{"a": null}"#, r#"{"a": [null]}"#],
            &[r#"{"a": 1}"#, r#"{"a": []}"#],
        ),
        (
            r#"{"a": 1}"#,
            &[r#"{"a": 1.0}"#, r#"{"a": [3, 1]}"#],
            &[r#"{"a": "1"}"#, r#"{"a": true}"#],
        ),
        (
            r#"{"a": {"$gt": 0, "$lt": 2}}"#,
            &[r#"{"a": [-1, 3]}"#, r#"{"a": 1}"#],
            &[r#"{"a": [5]}"#],
        ),
        (
            r#"{"a": {"$elemMatch": {"$gt": 0, "$lt": 2}}}"#,
            &[r#"{"a": [1]}"#],
            &[r#"{"a": [-1, 3]}"#, r#"{"a": 1}"#],
        ),
        (r#"{"a": [1, 2]}"#, &[r#"{"a": [1, 2]}"#, r#"{"a": [[1, 2]]}"#], &[r#"{"a": [2, 1]}"#]),
        (r#"{"a.b": null}"#, &[r#"{"a": [{"b": 1}, {}]}"#, "{}"], &[r#"{"a": [{"b": 1}]}"#]),
        (
            r#"{"a.b": 2}"#,
            &[r#"{"a": [{"b": 1}, {"b": 2}]}"#, r#"{"a": {"b": [2]}}"#],
            &[r#"{"a": 2}"#],
        ),
        (r#"{"a.1": 2}"#, &[r#"{"a": [1, 2]}"#, r#"{"a": {"1": 2}}"#], &[r#"{"a": [2]}"#]),
        (r#"{"a": {"$ne": 1}}"#, &["{}", r#"{"a": [2]}"#], &[r#"{"a": [1, 2]}"#]),
        (r#"{"a": {"$in": [1, null]}}"#, &["{}", r#"{"a": 1}"#], &[r#"{"a": 2}"#]),
        (r#"{"a": {"$nin": [1]}}"#, &["{}", r#"{"a": 2}"#], &[r#"{"a": [1]}"#]),
        (r#"{"a": {"$exists": false}}"#, &["{}"], &[r#"{"a": null}"#]),
        (
            r#"{"a": {"$type": "number"}}"#,
            &[r#"{"a": 1}"#, r#"{"a": ["x", 1.5]}"#],
            &[r#"{"a": "1"}"#, "{}"],
        ),
        (r#"{"a": {"$type": "array"}}"#, &[r#"{"a": []}"#], &[r#"{"a": 1}"#]),
        (r#"{"a": {"$size": 2}}"#, &[r#"{"a": [1, 2]}"#], &[r#"{"a": [1]}"#, r#"{"a": 2}"#]),
        (r#"{"a": {"$all": [1, 2]}}"#, &[r#"{"a": [2, 3, 1]}"#], &[r#"{"a": [1]}"#]),
        (r#"{"a": {"$all": []}}"#, &[], &[r#"{"a": []}"#, "{}"]),
        (r#"{"a": {"$not": {"$gt": 1}}}"#, &["{}", r#"{"a": 1}"#], &[r#"{"a": 2}"#]),
        (r#"{"a": {"$regex": "^b", "$options": "i"}}"#, &[r#"{"a": "Bc"}"#], &[r#"{"a": "cb"}"#]),
        (r#"{"a": {"$mod": [4, 1]}}"#, &[r#"{"a": 5}"#, r#"{"a": 5.9}"#], &[r#"{"a": 6}"#]),
        (r#"{"a": {"$gte": null}}"#, &["{}", r#"{"a": null}"#], &[r#"{"a": 0}"#]),
        (r#"{"a": {"$gt": {"$minKey": 1}}}"#, &[r#"{"a": 1}"#], &[]),
        (r#"{"$or": [{"a": 1}, {"b": 1}]}"#, &[r#"{"b": 1}"#], &["{}"]),
        (r#"{"$nor": [{"a": 1}, {"b": 1}]}"#, &["{}"], &[r#"{"b": 1}"#]),
        (r#"{"$expr": {"$gt": ["$a", "$b"]}}"#, &[r#"{"a": 2, "b": 1}"#], &[r#"{"a": 1, "b": 1}"#]),
        (r#"{"a": {"$bitsAllSet": [0, 2]}}"#, &[r#"{"a": 5}"#], &[r#"{"a": 4}"#]),
        (
            r#"{"a": {"$elemMatch": {"b": 1, "c": 2}}}"#,
            &[r#"{"a": [{"b": 1, "c": 2}]}"#],
            &[r#"{"a": [{"b": 1}, {"c": 2}]}"#],
        ),
    ];
    for (filter, pass, fail) in rows {
        let parsed = Match::parse(&value(filter)).unwrap();
        for document in *pass {
            assert_eq!(parsed.matches(&value(document)), Ok(true), "{filter} {document}");
            assert!(parsed.to_filter().matches(&value(document)), "plan of {filter} {document}");
        }
        for document in *fail {
            assert_eq!(parsed.matches(&value(document)), Ok(false), "{filter} {document}");
        }
    }
}

#[test]
fn wrong_filters() {
    let rows = [
        (r#"{"$foo": 1}"#, 2),
        (r#"{"a": {"$foo": 1}}"#, 2),
        (r#"{"$or": []}"#, 2),
        (r#"{"a": {"$in": 1}}"#, 2),
        (r#"{"a": {"$size": -1}}"#, 2),
        (r#"{"a": {"$type": "foo"}}"#, 2),
        (r#"{"a": {"$regex": "("}}"#, 51091),
        (r#"{"$where": "1"}"#, 238),
    ];
    for (filter, code) in rows {
        assert_eq!(Match::parse(&value(filter)).unwrap_err().code.0, code, "{filter}");
    }
}

#[test]
fn expressions() {
    let document = value(
        r#"{"a": 1, "b": [1, 2, 3], "c": {"d": "Xy"}, "e": [{"f": 1}, {"f": 2}, {}], "t": {"$date": "2020-02-29T12:34:56.789Z"}}"#,
    );
    let rows = [
        (r#"{"$add": ["$a", 2]}"#, "3"),
        (r#"{"$add": ["$a", null]}"#, "null"),
        (r#"{"$add": [2147483647, 1]}"#, "2147483648"),
        (r#"{"$divide": [1, 2]}"#, "0.5"),
        (r#"{"$subtract": ["$a", 2]}"#, "-1"),
        (r#"{"$multiply": [2, 3.5]}"#, "7.0"),
        (r#"{"$mod": [7, 4]}"#, "3"),
        (r#"{"$round": [2.5]}"#, "2.0"),
        (r#"{"$cond": [{"$gt": ["$a", 0]}, "y", "n"]}"#, r#""y""#),
        (r#"{"$ifNull": ["$x", "$y", 5]}"#, "5"),
        (r#"{"$switch": {"branches": [{"case": false, "then": 1}], "default": 2}}"#, "2"),
        (r#"{"$size": "$b"}"#, "3"),
        (r#"{"$arrayElemAt": ["$b", -1]}"#, "3"),
        (r#"{"$filter": {"input": "$b", "as": "x", "cond": {"$gt": ["$$x", 1]}}}"#, "[2, 3]"),
        (r#"{"$map": {"input": "$b", "in": {"$add": ["$$this", 1]}}}"#, "[2, 3, 4]"),
        (
            r#"{"$reduce": {"input": "$b", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}"#,
            "6",
        ),
        (r#"{"$concat": ["$c.d", "z"]}"#, r#""Xyz""#),
        (r#"{"$toLower": "$c.d"}"#, r#""xy""#),
        (r#""$e.f""#, "[1, 2]"),
        (r#"{"$sum": "$b"}"#, "6"),
        (r#"{"$avg": "$b"}"#, "2.0"),
        (r#"{"$max": ["$a", 9]}"#, "9"),
        (r#"{"$in": [2, "$b"]}"#, "true"),
        (r#"{"$setUnion": [[2, 1], [3, 1]]}"#, "[1, 2, 3]"),
        (r#"{"$mergeObjects": ["$c", {"g": 1}]}"#, r#"{"d": "Xy", "g": 1}"#),
        (r#"{"$objectToArray": "$c"}"#, r#"[{"k": "d", "v": "Xy"}]"#),
        (r#"{"$year": "$t"}"#, "2020"),
        (r#"{"$dayOfYear": "$t"}"#, "60"),
        (
            r#"{"$dateToString": {"date": "$t", "format": "%Y/%m/%d %H:%M:%S.%L"}}"#,
            r#""2020/02/29 12:34:56.789""#,
        ),
        (
            r#"{"$dateAdd": {"startDate": "$t", "unit": "year", "amount": 1}}"#,
            r#"{"$date": "2021-02-28T12:34:56.789Z"}"#,
        ),
        (r#"{"$toString": "$a"}"#, r#""1""#),
        (r#"{"$toInt": "12"}"#, "12"),
        (r#"{"$type": "$nope"}"#, r#""missing""#),
        (r#"{"$let": {"vars": {"x": 2}, "in": {"$multiply": ["$$x", 3]}}}"#, "6"),
        (r#"{"$literal": "$a"}"#, r#""$a""#),
        (r#"{"$cmp": ["$nope", null]}"#, "-1"),
        (r#"{"$slice": ["$b", -2]}"#, "[2, 3]"),
        (r#"{"$regexMatch": {"input": "$c.d", "regex": "^x", "options": "i"}}"#, "true"),
        (r#"{"$getField": "a"}"#, "1"),
        (r#"{"$substrCP": ["$c.d", 1, 5]}"#, r#""y""#),
        (r#"{"$convert": {"input": "q", "to": "int", "onError": 7}}"#, "7"),
    ];
    for (expr, wanted) in rows {
        let parsed = kumiko_lang::Expr::parse(&value(expr)).unwrap();
        let result = parsed.eval(&Context::new(&document)).unwrap();
        assert_eq!(result.map(|it| relaxed(&it)).as_deref(), Some(wanted), "{expr}");
    }
    for (expr, code) in [(r#"{"$foo": 1}"#, 168), (r#"{"$divide": [1]}"#, 16020)] {
        let error = kumiko_lang::Expr::parse(&value(expr)).unwrap_err();
        assert_eq!(error.code.0, code, "{expr}");
    }
}

fn updated(
    document: &str,
    change: &str,
    found: Option<usize>,
    filters: &str,
) -> Result<String, Error> {
    let Value::Array(filters) = value(filters) else { panic!("filters are a list") };
    let filters = update::array_filters(&filters)?;
    let situation = Situation { found, filters: &filters, now_ms: 1000, ..Situation::default() };
    Ok(relaxed(&Update::parse(&value(change))?.apply(&value(document), &situation)?))
}

#[test]
fn updates() {
    let rows = [
        (
            r#"{"_id": 1}"#,
            r#"{"$set": {"c": 1, "a.b": 2}}"#,
            r#"{"_id": 1, "a": {"b": 2}, "c": 1}"#,
        ),
        (r#"{"a": 1}"#, r#"{"$inc": {"a": 2, "b": 3}}"#, r#"{"a": 3, "b": 3}"#),
        (r#"{"a": 4}"#, r#"{"$mul": {"a": 2, "b": 3}}"#, r#"{"a": 8, "b": 0}"#),
        (r#"{"a": 4}"#, r#"{"$min": {"a": 2}, "$max": {"b": 3}}"#, r#"{"a": 2, "b": 3}"#),
        (r#"{"a": 4, "b": 1}"#, r#"{"$unset": {"a": ""}}"#, r#"{"b": 1}"#),
        (r#"{"a": 4}"#, r#"{"$rename": {"a": "b.c"}}"#, r#"{"b": {"c": 4}}"#),
        (r#"{"a": [1]}"#, r#"{"$push": {"a": 2, "b": 1}}"#, r#"{"a": [1, 2], "b": [1]}"#),
        (
            r#"{"a": [5, 1]}"#,
            r#"{"$push": {"a": {"$each": [3, 2], "$sort": -1, "$slice": 3}}}"#,
            r#"{"a": [5, 3, 2]}"#,
        ),
        (
            r#"{"a": [1, 2]}"#,
            r#"{"$push": {"a": {"$each": [9], "$position": 1}}}"#,
            r#"{"a": [1, 9, 2]}"#,
        ),
        (r#"{"a": [1]}"#, r#"{"$addToSet": {"a": {"$each": [1.0, 2]}}}"#, r#"{"a": [1, 2]}"#),
        (r#"{"a": [1, 2, 3]}"#, r#"{"$pull": {"a": {"$gt": 1}}}"#, r#"{"a": [1]}"#),
        (r#"{"a": [{"b": 1}, {"b": 2}]}"#, r#"{"$pull": {"a": {"b": 1}}}"#, r#"{"a": [{"b": 2}]}"#),
        (r#"{"a": [1, 2, 1]}"#, r#"{"$pullAll": {"a": [1]}}"#, r#"{"a": [2]}"#),
        (r#"{"a": [1, 2]}"#, r#"{"$pop": {"a": -1}}"#, r#"{"a": [2]}"#),
        (r#"{"a": [1]}"#, r#"{"$set": {"a.2": 3}}"#, r#"{"a": [1, null, 3]}"#),
        (r#"{"a": [1, 2]}"#, r#"{"$inc": {"a.$[]": 1}}"#, r#"{"a": [2, 3]}"#),
        (r#"{"a": [1, 2]}"#, r#"{"$set": {"a.$": 9}}"#, r#"{"a": [1, 9]}"#),
        (r#"{"a": [1, 5]}"#, r#"{"$set": {"a.$[big]": 0}}"#, r#"{"a": [1, 0]}"#),
        (r#"{"a": 5}"#, r#"{"$bit": {"a": {"and": 4}}}"#, r#"{"a": 4}"#),
        (r#"{"_id": 1, "a": 5}"#, r#"{"b": 1}"#, r#"{"_id": 1, "b": 1}"#),
        (
            r#"{"a": 5}"#,
            r#"[{"$set": {"b": {"$add": ["$a", 1]}}}, {"$unset": "a"}]"#,
            r#"{"b": 6}"#,
        ),
        (r#"{"a": 1}"#, r#"{"$setOnInsert": {"b": 1}}"#, r#"{"a": 1}"#),
    ];
    for (document, change, wanted) in rows {
        let result = updated(document, change, Some(1), r#"[{"big": {"$gt": 2}}]"#);
        assert_eq!(result.as_deref(), Ok(wanted), "{document} {change}");
    }
    let wrong = [
        (r#"{"a": 1}"#, r#"{"$set": {"a.b": 1}}"#, 28),
        (r#"{"a": "x"}"#, r#"{"$inc": {"a": 1}}"#, 14),
        (r#"{"a": 1}"#, r#"{"$set": {"a": 1}, "$inc": {"a": 1}}"#, 40),
        (r#"{"a": 1}"#, r#"{"$set": {"a": 1, "a.b": 1}}"#, 40),
        (r#"{"_id": 1}"#, r#"{"$set": {"_id": 2}}"#, 66),
        (r#"{"a": 1}"#, r#"{"$foo": {"a": 1}}"#, 9),
        (r#"{"a": 1}"#, r#"{"$push": {"a": 1}}"#, 2),
        (r#"{"a": [1]}"#, r#"{"$set": {"a.$[x]": 1}}"#, 2),
    ];
    for (document, change, code) in wrong {
        assert_eq!(updated(document, change, None, "[]").unwrap_err().code.0, code, "{change}");
    }
}

#[test]
fn projections() {
    let document =
        r#"{"_id": 1, "a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}, 3], "g": [1, 2, 3]}"#;
    let rows = [
        (r#"{"a.b": 1}"#, r#"{"_id": 1, "a": {"b": 1}}"#),
        (r#"{"a": 0, "d": 0}"#, r#"{"_id": 1, "g": [1, 2, 3]}"#),
        (r#"{"d.e": 1, "_id": 0}"#, r#"{"d": [{"e": 1}]}"#),
        (r#"{"d.e": 0, "a": 0, "g": 0}"#, r#"{"_id": 1, "d": [{"f": 2}, 3]}"#),
        (r#"{"_id": 1}"#, r#"{"_id": 1}"#),
        (r#"{"x": "$a.b"}"#, r#"{"_id": 1, "x": 1}"#),
        (r#"{"g": {"$slice": -1}, "a": 0, "d": 0}"#, r#"{"_id": 1, "g": [3]}"#),
        (r#"{"g": {"$elemMatch": {"$gt": 1}}}"#, r#"{"_id": 1, "g": [2]}"#),
        (r#"{"g.$": 1}"#, r#"{"_id": 1, "g": [2]}"#),
        (r#"{"a": {"c": 1}}"#, r#"{"_id": 1, "a": {"c": 2}}"#),
    ];
    let document = value(document);
    for (spec, wanted) in rows {
        let parsed = Projection::parse(&value(spec), project::Place::Find).unwrap();
        let shown = parsed.apply(&document, &Context::new(&document), Some(1)).unwrap();
        assert_eq!(relaxed(&shown), wanted, "{spec}");
    }
    for (spec, code) in [(r#"{"a": 1, "b": 0}"#, 31254), (r#"{"a": 1, "a.b": 1}"#, 31250)] {
        let error = Projection::parse(&value(spec), project::Place::Find).unwrap_err();
        assert_eq!(error.code.0, code, "{spec}");
    }
}

struct Others(Vec<Value>);

impl Host for Others {
    fn find(&mut self, _: &str, filter: &Match) -> Result<Vec<Value>, Error> {
        Ok(self.0.iter().filter(|it| filter.matches(it) == Ok(true)).cloned().collect())
    }

    fn random(&mut self) -> u64 {
        4
    }
}

fn piped(documents: &str, stages: &str) -> Result<String, Error> {
    let (Value::Array(documents), Value::Array(stages)) = (value(documents), value(stages)) else {
        panic!("lists are wanted")
    };
    let pipeline = Pipeline::parse(&stages)?;
    let empty = Value::Map(Vec::new());
    let mut run = Run::new(&pipeline.stages, &Context::new(&empty));
    let mut host = Others(documents.clone());
    for document in documents {
        if !run.push(&mut host, document)? {
            break;
        }
    }
    Ok(relaxed(&Value::Array(run.finish(&mut host)?)))
}

#[test]
fn pipelines() {
    let documents = r#"[{"_id": 1, "k": "x", "v": 1, "l": [1, 2]}, {"_id": 2, "k": "y", "v": 2, "l": []}, {"_id": 3, "k": "x", "v": 3}]"#;
    let rows = [
        (
            r#"[{"$match": {"k": "x"}}, {"$project": {"v": 1, "_id": 0}}]"#,
            r#"[{"v": 1}, {"v": 3}]"#,
        ),
        (
            r#"[{"$group": {"_id": "$k", "s": {"$sum": "$v"}, "a": {"$avg": "$v"}, "n": {"$count": {}}}}, {"$sort": {"_id": 1}}]"#,
            r#"[{"_id": "x", "s": 4, "a": 2.0, "n": 2}, {"_id": "y", "s": 2, "a": 2.0, "n": 1}]"#,
        ),
        (
            r#"[{"$sort": {"v": -1}}, {"$limit": 1}, {"$project": {"v": 1}}]"#,
            r#"[{"_id": 3, "v": 3}]"#,
        ),
        (r#"[{"$skip": 1}, {"$limit": 1}, {"$unset": ["k", "l"]}]"#, r#"[{"_id": 2, "v": 2}]"#),
        (
            r#"[{"$unwind": "$l"}, {"$project": {"l": 1}}]"#,
            r#"[{"_id": 1, "l": 1}, {"_id": 1, "l": 2}]"#,
        ),
        (
            r#"[{"$unwind": {"path": "$l", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "i"}}, {"$project": {"l": 1, "i": 1}}]"#,
            r#"[{"_id": 1, "l": 1, "i": 0}, {"_id": 1, "l": 2, "i": 1}, {"_id": 2, "i": null}, {"_id": 3, "i": null}]"#,
        ),
        (r#"[{"$count": "n"}]"#, r#"[{"n": 3}]"#),
        (r#"[{"$match": {"v": 9}}, {"$count": "n"}]"#, "[]"),
        (
            r#"[{"$match": {"_id": 2}}, {"$addFields": {"w": {"$add": ["$v", 1]}, "z.y": 1}}, {"$unset": "l"}]"#,
            r#"[{"_id": 2, "k": "y", "v": 2, "w": 3, "z": {"y": 1}}]"#,
        ),
        (
            r#"[{"$match": {"_id": 2}}, {"$lookup": {"from": "c", "localField": "v", "foreignField": "_id", "as": "o"}}, {"$project": {"o._id": 1}}]"#,
            r#"[{"_id": 2, "o": [{"_id": 2}]}]"#,
        ),
        (
            r#"[{"$match": {"_id": 2}}, {"$lookup": {"from": "c", "let": {"m": "$v"}, "pipeline": [{"$match": {"$expr": {"$gt": ["$v", "$$m"]}}}, {"$project": {"_id": 1}}], "as": "o"}}, {"$project": {"o": 1}}]"#,
            r#"[{"_id": 2, "o": [{"_id": 3}]}]"#,
        ),
        (
            r#"[{"$facet": {"a": [{"$count": "n"}], "b": [{"$limit": 1}, {"$project": {"_id": 1}}]}}]"#,
            r#"[{"a": [{"n": 3}], "b": [{"_id": 1}]}]"#,
        ),
        (r#"[{"$limit": 1}, {"$replaceRoot": {"newRoot": {"x": "$v"}}}]"#, r#"[{"x": 1}]"#),
        (r#"[{"$sortByCount": "$k"}]"#, r#"[{"_id": "x", "count": 2}, {"_id": "y", "count": 1}]"#),
        (r#"[{"$limit": 1}, {"$unionWith": "c"}, {"$count": "n"}]"#, r#"[{"n": 4}]"#),
        (
            r#"[{"$bucket": {"groupBy": "$v", "boundaries": [0, 2, 9]}}]"#,
            r#"[{"_id": 0, "count": 1}, {"_id": 2, "count": 2}]"#,
        ),
        (r#"[{"$sample": {"size": 2}}, {"$count": "n"}]"#, r#"[{"n": 2}]"#),
        (
            r#"[{"$group": {"_id": null, "f": {"$first": "$v"}, "l": {"$last": "$v"}, "m": {"$max": "$v"}, "p": {"$push": "$v"}}}]"#,
            r#"[{"_id": null, "f": 1, "l": 3, "m": 3, "p": [1, 2, 3]}]"#,
        ),
    ];
    for (stages, wanted) in rows {
        assert_eq!(piped(documents, stages).as_deref(), Ok(wanted), "{stages}");
    }
    for (stages, code) in [
        (r#"[{"$foo": {}}]"#, 40324),
        (r#"[{"$limit": 0}]"#, 15958),
        (r#"[{"$group": {}}]"#, 15955),
        (r#"[{"$match": {}, "$limit": 1}]"#, 40323),
    ] {
        assert_eq!(piped("[]", stages).unwrap_err().code.0, code, "{stages}");
    }
}

#[test]
fn sorts() {
    let Value::Array(mut all) = value(
        r#"[{"a": [3, 1]}, {"a": 2}, {"a": "x"}, {}, {"a": []}, {"a": null}, {"a": {"$minKey": 1}}]"#,
    ) else {
        panic!("a list")
    };
    Sort::parse(&value(r#"{"a": 1}"#)).unwrap().sort(&mut all);
    let shown: Vec<String> = all.iter().map(relaxed).collect();
    let wanted = [
        r#"{"a": {"$minKey": 1}}"#,
        r#"{"a": []}"#,
        "{}",
        r#"{"a": null}"#,
        r#"{"a": [3, 1]}"#,
        r#"{"a": 2}"#,
        r#"{"a": "x"}"#,
    ];
    assert_eq!(shown, wanted);
}

/// Text that nobody wrote on purpose is refused or read, and never stops us.
#[test]
fn any_document_is_parsed_or_refused() {
    let words = [
        "$gt",
        "$in",
        "$or",
        "$elemMatch",
        "$set",
        "$push",
        "$each",
        "$match",
        "$group",
        "_id",
        "a",
        "a.b",
        "$sum",
        "$cond",
        "$regex",
        "$lookup",
        "$size",
        "$slice",
        "$sort",
        "$expr",
        "$map",
        "input",
    ];
    fn any(draw: &mut Draw, words: &[&str], depth: u32) -> Value {
        match draw.below(if depth == 0 { 4 } else { 7 }) {
            0 => Value::I32(draw.below(5) as i32 - 2),
            1 => Value::Text(format!("${}", draw.one_of(words))),
            2 => Value::Text(draw.one_of(words).into()),
            3 => Value::Null,
            4 => Value::Array((0..draw.below(4)).map(|_| any(draw, words, depth - 1)).collect()),
            _ => Value::Map(
                (0..draw.below(3))
                    .map(|_| (draw.one_of(words).to_string(), any(draw, words, depth - 1)))
                    .collect(),
            ),
        }
    }
    let document = value(r#"{"_id": 1, "a": {"b": [1, {"a": 2}]}}"#);
    draw::check("any_document_is_parsed_or_refused", 20_000, |draw| {
        let it = any(draw, &words, 4);
        if let Ok(filter) = Match::parse(&it) {
            let passes = filter.matches(&document);
            if passes == Ok(true) {
                assert!(filter.to_filter().matches(&document), "the plan of {it:?} loses it");
            }
        }
        if let Ok(update) = Update::parse(&it) {
            let _ = update.apply(&document, &Situation::default());
        }
        if let Ok(projection) = Projection::parse(&it, project::Place::Find) {
            let _ = projection.apply(&document, &Context::new(&document), Some(0));
        }
        if let Value::Array(stages) = &it
            && let Ok(pipeline) = Pipeline::parse(stages)
        {
            let mut run = Run::new(&pipeline.stages, &Context::new(&document));
            let _ = run.push(&mut Others(Vec::new()), document.clone());
        }
    });
}
