"""A driver's tour of the MongoDB side: CRUD, cursors, indexes, aggregation, sessions, retried writes,
transactions, change streams, users. Each part is a function; a failed one is named, and the exit code
is the number of failures.

    smoke.py mongodb://127.0.0.1:27017
"""

import datetime
import sys
import threading
import time
import traceback
import uuid

import bson
from bson import Decimal128, Int64, ObjectId
from pymongo import ASCENDING, DESCENDING, MongoClient, ReturnDocument
from pymongo.errors import (
    BulkWriteError,
    DuplicateKeyError,
    OperationFailure,
    WriteError,
)
from pymongo.operations import DeleteOne, IndexModel, InsertOne, UpdateOne

URI = sys.argv[1]
client = MongoClient(URI, serverSelectionTimeoutMS=5000)
db = client[f"smoke_{int(time.time())}"]


def equal(a, b):
    assert a == b, f"{a!r} is not {b!r}"


def fails(code, run):
    try:
        run()
    except OperationFailure as error:
        assert error.code == code, f"code {error.code}, wanted {code}: {error}"
    else:
        raise AssertionError(f"nothing failed, wanted {code}")


def connect():
    hello = client.admin.command("hello")
    equal(hello["msg"], "isdbgrid")
    equal(client.admin.command("buildInfo")["version"], "6.0.5")
    fails(59, lambda: client.admin.command("noSuchThing"))
    equal(client.admin.command("ping")["ok"], 1.0)


def crud():
    c = db.crud
    c.insert_many([{"_id": i, "n": i % 5, "t": f"x{i}"} for i in range(300)])
    equal(c.count_documents({}), 300)
    equal(c.estimated_document_count(), 300)
    equal(len(list(c.find({}, batch_size=7))), 300)
    equal([d["_id"] for d in c.find({"n": 3}).sort("_id", -1).skip(1).limit(2)], [293, 288])
    equal(c.find_one({"_id": 7.0}, {"t": 1, "_id": 0}), {"t": "x7"})
    fails(11000, lambda: c.insert_one({"_id": Decimal128("7.00")}))
    result = c.update_one({"_id": 7}, {"$set": {"a.b": 1}, "$inc": {"n": 10}})
    equal((result.matched_count, result.modified_count), (1, 1))
    equal(c.find_one({"a.b": 1})["n"], 12)
    result = c.update_many({"n": {"$lt": 5}}, {"$set": {"z": True}})
    equal(result.modified_count, 299)
    result = c.update_one({"_id": "new"}, {"$set": {"q": 1}}, upsert=True)
    equal(result.upserted_id, "new")
    equal(c.replace_one({"_id": "new"}, {"w": 2}).modified_count, 1)
    equal(c.find_one({"_id": "new"}), {"_id": "new", "w": 2})
    equal(c.delete_one({"_id": "new"}).deleted_count, 1)
    equal(c.delete_many({"n": 0}).deleted_count, 60)
    old = c.find_one_and_update({"_id": 1}, {"$inc": {"n": 1}})
    equal(old["n"], 1)
    new = c.find_one_and_update({"_id": 1}, {"$inc": {"n": 1}}, return_document=ReturnDocument.AFTER)
    equal(new["n"], 3)
    equal(c.find_one_and_delete({"_id": 1})["_id"], 1)
    equal(sorted(c.distinct("n")), [1, 2, 3, 4, 12])
    fails(66, lambda: c.update_one({"_id": 2}, {"$set": {"_id": 3}}))
    fails(9, lambda: c.update_one({"_id": 2}, {"$nope": {"a": 1}}))
    fails(2, lambda: list(c.find({"a": {"$nope": 1}})))


def bulk():
    c = db.bulk
    result = c.bulk_write([InsertOne({"_id": 1}), UpdateOne({"_id": 1}, {"$set": {"a": 1}}), DeleteOne({"_id": 1}), UpdateOne({"_id": 2}, {"$set": {"a": 1}}, upsert=True)])
    equal((result.inserted_count, result.modified_count, result.deleted_count, result.upserted_ids), (1, 1, 1, {3: 2}))
    try:
        c.insert_many([{"_id": 5}, {"_id": 5}, {"_id": 6}], ordered=False)
        raise AssertionError("a duplicate went in")
    except BulkWriteError as error:
        equal(error.details["nInserted"], 2)
        equal(error.details["writeErrors"][0]["index"], 1)
    try:
        c.insert_many([{"_id": 7}, {"_id": 5}, {"_id": 8}])
    except BulkWriteError as error:
        equal(error.details["nInserted"], 1)
    equal(c.count_documents({"_id": {"$in": [7, 8]}}), 1)


def types():
    c = db.types
    document = {
        "_id": ObjectId(), "double": 1.5, "text": "h\u00e9", "map": {"b": 1, "a": [1, {"x": None}]},
        "bytes": b"\x00\xff", "uuid": bson.Binary.from_uuid(uuid.uuid4()), "sub": bson.Binary(b"abc", 5),
        "yes": True, "date": datetime.datetime(2020, 1, 2, 3, 4, 5, 678000), "none": None,
        "regex": bson.Regex("^a", "i"), "int": 1, "long": Int64(1), "decimal": Decimal128("1.10"),
        "stamp": bson.Timestamp(5, 6), "min": bson.MinKey(), "max": bson.MaxKey(), "code": bson.Code("x"),
    }
    c.insert_one(document)
    equal(c.find_one({"_id": document["_id"]}), document)
    assert isinstance(c.find_one()["long"], Int64)


def indexes():
    c = db.indexes
    c.insert_many([{"_id": i, "a": i % 10, "b": [i, i + 1], "e": {"f": f"k{i}"}} for i in range(500)])
    equal(c.create_index([("a", ASCENDING), ("_id", DESCENDING)]), "a_1__id_-1")
    c.create_index("b")
    c.create_index("e.f", unique=True)
    c.create_index("s", sparse=True, unique=True)
    c.create_index("p", partialFilterExpression={"a": {"$gt": 5}})
    equal(len(list(c.list_indexes())), 6)
    plan = c.find({"a": 3}).explain()["queryPlanner"]["winningPlan"]
    equal(plan["inputStage"]["indexName"], "a_1__id_-1")
    equal(c.count_documents({"a": 3}), 50)
    equal(c.count_documents({"b": 10}), 2)
    equal([d["_id"] for d in c.find({"a": 3}).sort([("a", 1), ("_id", -1)]).limit(2)], [493, 483])
    covered = c.find({"a": 3}, {"a": 1, "_id": 0}).explain()
    equal(covered["executionStats"]["totalDocsExamined"], 0)
    fails(11000, lambda: c.insert_one({"e": {"f": "k1"}}))
    fails(11000, lambda: c.update_one({"_id": 2}, {"$set": {"e.f": "k1"}}))
    c.insert_many([{"e": {"f": f"n{i}"}} for i in range(3)])
    fails(86, lambda: c.create_index([("zz", 1)], name="b_1"))
    fails(85, lambda: c.create_index([("b", 1)], name="other"))
    c.drop_index("b_1")
    fails(27, lambda: c.drop_index("b_1"))
    equal(c.count_documents({"b": 10}), 2)
    equal(db.command("validate", "indexes")["valid"], True)
    fails(11000, lambda: c.create_index("a", unique=True))
    db.expiring.create_indexes([IndexModel("at", expireAfterSeconds=0)])
    db.expiring.insert_many([{"at": datetime.datetime(2020, 1, 1)}, {"at": datetime.datetime(2100, 1, 1)}])


def aggregation():
    c = db.orders
    c.insert_many([{"_id": i, "who": f"u{i % 3}", "sum": i, "tags": ["x", f"t{i % 2}"]} for i in range(12)])
    db.users.insert_many([{"_id": f"u{i}", "name": f"N{i}"} for i in range(3)])
    rows = list(c.aggregate([
        {"$match": {"sum": {"$gte": 2}}},
        {"$group": {"_id": "$who", "total": {"$sum": "$sum"}, "n": {"$sum": 1}}},
        {"$lookup": {"from": "users", "localField": "_id", "foreignField": "_id", "as": "u"}},
        {"$unwind": "$u"},
        {"$project": {"_id": 0, "name": "$u.name", "total": 1}},
        {"$sort": {"name": 1}},
    ]))
    equal(rows, [{"name": "N0", "total": 18}, {"name": "N1", "total": 21}, {"name": "N2", "total": 26}])
    facets = next(c.aggregate([{"$facet": {"tags": [{"$unwind": "$tags"}, {"$sortByCount": "$tags"}], "count": [{"$count": "n"}]}}]))
    equal(facets["count"], [{"n": 12}])
    equal(facets["tags"][0], {"_id": "x", "count": 12})
    equal(len(list(c.aggregate([{"$match": {}}], batchSize=5))), 12)
    list(c.aggregate([{"$match": {"sum": {"$lt": 3}}}, {"$out": "few"}]))
    equal(db.few.count_documents({}), 3)
    fails(40324, lambda: list(c.aggregate([{"$nope": {}}])))


def catalog():
    db.create_collection("made", validator={"n": {"$type": "int"}})
    fails(48, lambda: db.command("create", "made"))
    fails(121, lambda: db.made.insert_one({"n": "x"}))
    db.made.insert_one({"n": 1})
    db.made.rename("renamed")
    equal(db.renamed.count_documents({}), 1)
    db.made.insert_one({"n": 2})
    equal(db.made.count_documents({}), 1)
    assert {"made", "renamed"} <= set(db.list_collection_names())
    assert db.name in client.list_database_names()
    db.made.drop()
    equal(db.made.count_documents({}), 0)
    equal(db.renamed.count_documents({}), 1)
    equal(db.command("collStats", "renamed")["count"], 1)
    big = {"_id": 1, "x": "y" * 3_000_000}
    db.big.insert_one(big)
    equal(db.big.find_one(), big)


def retried_writes():
    c = db.retried
    # A client of its own: its session must not come back to the others with these numbers.
    own = MongoClient(URI)
    with own.start_session() as session:
        def run(number, command):
            return own[db.name].command({**command, "txnNumber": Int64(number)}, session=session)

        insert = {"insert": "retried", "documents": [{"_id": 1, "n": 0}]}
        for _ in range(2):
            equal(run(1001, insert)["n"], 1)
        equal(c.count_documents({}), 1)
        update = {"update": "retried", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
        for _ in range(3):
            equal(run(1002, update)["nModified"], 1)
        equal(c.find_one()["n"], 1)
        modify = {"findAndModify": "retried", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}}
        for _ in range(2):
            equal(run(1003, modify)["value"]["n"], 1)
        equal(c.find_one()["n"], 2)
        fails(225, lambda: run(1002, update))
    own.close()


def transactions():
    a, b = db.account_a, db.account_b
    a.insert_one({"_id": 1, "v": 10})
    b.insert_one({"_id": 1, "v": 0})
    with client.start_session() as session:
        def move(session):
            a.update_one({"_id": 1}, {"$inc": {"v": -3}}, session=session)
            b.update_one({"_id": 1}, {"$inc": {"v": 3}}, session=session)
            equal(a.find_one({"_id": 1}, session=session)["v"], 7)
            equal(a.find_one({"_id": 1})["v"], 10)
        session.with_transaction(move)
        equal((a.find_one()["v"], b.find_one()["v"]), (7, 3))
        session.start_transaction()
        a.insert_one({"_id": 2}, session=session)
        session.abort_transaction()
        equal(a.count_documents({}), 1)
    with client.start_session() as one, client.start_session() as two:
        one.start_transaction()
        two.start_transaction()
        a.update_one({"_id": 1}, {"$inc": {"v": 1}}, session=one)
        a.update_one({"_id": 1}, {"$inc": {"v": 1}}, session=two)
        one.commit_transaction()
        try:
            two.commit_transaction()
            raise AssertionError("two writers of one document both committed")
        except OperationFailure as error:
            equal(error.code, 112)
            assert error.has_error_label("TransientTransactionError")
    equal(a.find_one()["v"], 8)

    def add(_):
        with client.start_session() as session:
            for _ in range(10):
                session.with_transaction(lambda s: b.update_one({"_id": 1}, {"$inc": {"v": 1}}, session=s))
    threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    equal(b.find_one()["v"], 43)


def change_streams():
    c = db.watched
    c.insert_one({"_id": 0})
    with c.watch() as stream:
        c.insert_one({"_id": 1, "a": {"b": 1, "c": 2}})
        c.update_one({"_id": 1}, {"$set": {"a.b": 2}, "$unset": {"a.c": 1}})
        c.replace_one({"_id": 1}, {"z": 1})
        db.other.insert_one({})
        c.delete_one({"_id": 1})
        events = [next(stream) for _ in range(4)]
        equal([e["operationType"] for e in events], ["insert", "update", "replace", "delete"])
        equal(events[0]["fullDocument"], {"_id": 1, "a": {"b": 1, "c": 2}})
        equal(events[1]["updateDescription"]["updatedFields"], {"a.b": 2})
        equal(events[1]["updateDescription"]["removedFields"], ["a.c"])
        equal(events[3]["documentKey"], {"_id": 1})
        token = events[1]["_id"]
    with c.watch(resume_after=token) as stream:
        equal(next(stream)["operationType"], "replace")
    with db.watch([{"$match": {"operationType": "insert"}}], full_document="updateLookup") as stream:
        c.update_one({"_id": 0}, {"$set": {"q": 1}})
        with client.start_session() as session:
            with session.start_transaction():
                c.insert_one({"_id": 5}, session=session)
                db.other.insert_one({"_id": 6}, session=session)
        first, second = next(stream), next(stream)
        equal((first["documentKey"]["_id"], second["documentKey"]["_id"]), (5, 6))
        equal(first["txnNumber"], second["txnNumber"])
    with c.watch(max_await_time_ms=200) as stream:
        equal(stream.try_next(), None)
        c.drop()
        equal([next(stream)["operationType"] for _ in range(2)], ["drop", "invalidate"])


def expiry():
    deadline = time.time() + 30
    while db.expiring.count_documents({}) != 1:
        assert time.time() < deadline, "an expired document is still there"
        time.sleep(0.5)


def users():
    client.admin.command("createUser", "ann", pwd="secret", roles=[])
    try:
        good = MongoClient(URI, username="ann", password="secret", serverSelectionTimeoutMS=5000)
        equal(good.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"][0]["user"], "ann")
        bad = MongoClient(URI, username="ann", password="wrong", serverSelectionTimeoutMS=5000)
        fails(18, lambda: bad[db.name].crud.find_one())
        fails(13, lambda: MongoClient(URI)[db.name].crud.find_one())
    finally:
        good.admin.command("dropUser", "ann")
    assert MongoClient(URI)[db.name].crud.find_one() is not None


failures = 0
for part in [connect, crud, bulk, types, indexes, aggregation, catalog, retried_writes, transactions, change_streams, expiry, users]:
    try:
        part()
        print(f"ok      {part.__name__}")
    except Exception:
        failures += 1
        print(f"FAILED  {part.__name__}")
        traceback.print_exc()
client.drop_database(db.name)
sys.exit(failures)
