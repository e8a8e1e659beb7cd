"""Compares kumiko with a real mongod on random work. See the head of `run`.

    differential.py OURS THEIRS ROUNDS SEED

A difference is printed with everything needed to see it again, and the exit code is 1.
"""

import random
import sys
from decimal import Decimal

import bson
from bson import Decimal128, Int64, ObjectId, Timestamp
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.json_util import CANONICAL_JSON_OPTIONS, dumps
from pymongo import MongoClient
from pymongo.errors import BulkWriteError, OperationFailure, PyMongoError

OPTIONS = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
ours, theirs = (MongoClient(uri, serverSelectionTimeoutMS=10000) for uri in sys.argv[1:3])
rounds, seed = int(sys.argv[3]), int(sys.argv[4])
FIELDS = ["a", "b", "c"]
PATHS = FIELDS + ["a.b", "b.c", "a.0", "c.1", "a.b.c"]


def show(value):
    return dumps(value, json_options=CANONICAL_JSON_OPTIONS)


class Draw:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def one(self, *choices):
        return self.r.choice(choices)

    def below(self, n):
        return self.r.randrange(n)

    def scalar(self):
        n = self.below(5) - 1
        return self.one(
            n, n, n, Int64(n), n / 2, float(n), Decimal128(str(n)), Decimal128("1.50"), None, True, False,
            self.one("", "a", "ab", "b", "B"), self.one("", "a", "ab", "b", "B"), DatetimeMS(n * 1000),
            ObjectId(f"{n % 3:024x}"), b"\x01" * (n + 1), 2**40 + n, 0.1, Timestamp(1, abs(n)),
        )

    def value(self, depth=2):
        kind = self.below(10)
        if depth and kind == 0:
            return [self.value(depth - 1) for _ in range(self.below(4))]
        if depth and kind == 1:
            return {name: self.value(depth - 1) for name in self.r.sample(FIELDS, self.below(3))}
        if depth and kind == 2:
            return [{name: self.scalar() for name in self.r.sample(FIELDS, self.below(3))} for _ in range(self.below(4))]
        return self.scalar()

    def document(self, _id):
        fields = self.r.sample(FIELDS, self.below(4))
        return {"_id": _id, **{name: self.value() for name in fields}}

    def path(self):
        return self.one(*PATHS)

    def test(self, depth=1):
        kind = self.below(17)
        v = self.value(1)
        tests = [
            lambda: {"$gt": v}, lambda: {"$gte": v}, lambda: {"$lt": v}, lambda: {"$lte": v},
            lambda: {"$ne": v}, lambda: {"$in": [self.value(1) for _ in range(self.below(4))]},
            lambda: {"$nin": [self.value(1) for _ in range(self.below(4))]},
            lambda: {"$exists": self.one(True, False)},
            lambda: {"$type": self.one("int", "string", "array", "object", "number", "null", "double", "bool", "date")},
            lambda: {"$size": self.below(4)}, lambda: {"$all": [self.scalar() for _ in range(self.below(3))]},
            lambda: {"$elemMatch": self.one({"$gt": self.scalar()}, {"$gte": 0, "$lt": 2}, {"b": self.scalar()}, {self.one(*FIELDS): {"$gt": 0}})},
            lambda: {"$regex": self.one("^a", "b", "^A", "a|b"), "$options": self.one("", "i")},
            lambda: {"$mod": [2, self.below(2)]},
            lambda: {"$not": self.test(depth - 1)} if depth else {"$eq": v},
            lambda: {"$gt": self.scalar(), "$lt": self.scalar()},
            lambda: {"$eq": v},
        ]
        return tests[kind]()

    def filter(self, depth=2):
        kind = self.below(10)
        if depth and kind == 0:
            return {self.one("$and", "$or", "$nor"): [self.filter(depth - 1) for _ in range(1 + self.below(2))]}
        if kind == 1:
            return {"_id": self.one({"$gt": self.below(20)}, {"$in": [1, 5, 9.0]}, self.below(30), {"$lt": self.below(30), "$gte": 3})}
        if kind == 2:
            return {"$expr": {self.one("$gt", "$eq", "$lt"): [f"${self.one(*FIELDS)}", self.one(f"${self.one(*FIELDS)}", self.scalar())]}}
        filter = {self.path(): self.one(self.value(1), self.test(), self.test())}
        if self.below(3) == 0:
            filter[self.path()] = self.test()
        return filter

    def update(self):
        kinds = {
            "$set": lambda: self.value(1), "$unset": lambda: "", "$inc": lambda: self.one(1, 2.5, Int64(3), Decimal128("0.5")),
            "$mul": lambda: self.one(2, 0.5), "$min": self.scalar, "$max": self.scalar,
            "$push": lambda: self.one(self.scalar(), {"$each": [self.scalar() for _ in range(self.below(3))], **self.one({}, {"$slice": self.below(5) - 2}, {"$position": self.below(4) - 1}, {"$sort": self.one(1, -1)})}),
            "$addToSet": lambda: self.one(self.scalar(), {"$each": [self.scalar(), self.scalar()]}),
            "$pull": lambda: self.one(self.scalar(), {"$gt": 0}, {"b": 1}), "$pop": lambda: self.one(1, -1),
            "$pullAll": lambda: [self.scalar(), self.scalar()], "$bit": lambda: {self.one("and", "or", "xor"): 3},
            "$rename": lambda: self.one("x", "y.z"),
        }
        update = {}
        for _ in range(1 + self.below(2)):
            name = self.one(*kinds)
            path = self.one(*PATHS, "x", "x.y", "a.$[]", "b.$[]") if name != "$rename" else self.one(*FIELDS)
            update.setdefault(name, {})[path] = kinds[name]()
        return update

    def expression(self, depth=2):
        path = f"${self.one('a', 'b', 'c', 'a.b', '_id')}"
        if not depth:
            return self.one(path, path, {"$literal": self.scalar()})
        return self.call(path, lambda: self.expression(depth - 1))

    def call(self, path, e):
        choice = self.one(*range(14))
        return [
            lambda: path, lambda: {"$cond": [e(), e(), e()]}, lambda: {"$ifNull": [e(), e()]},
            lambda: {self.one("$eq", "$ne", "$gt", "$lte", "$cmp"): [e(), e()]},
            lambda: {self.one("$and", "$or"): [e(), e()]}, lambda: {"$not": [e()]},
            lambda: {"$type": e()}, lambda: {"$isArray": [e()]},
            lambda: {"$cond": [{"$isNumber": path}, {self.one("$add", "$subtract", "$multiply"): [path, self.one(1, 2.5, Int64(2))]}, None]},
            lambda: {self.one("$sum", "$max", "$min", "$avg"): [e(), e()]}, lambda: {"$sum": path},
            lambda: {"$cond": [{"$isArray": [path]}, self.one({"$arrayElemAt": [path, 0]}, {"$slice": [path, 1]}, {"$reverseArray": path}, {"$first": path}, {"$filter": {"input": path, "cond": {"$gt": ["$$this", 1]}}}, {"$map": {"input": path, "as": "m", "in": {"$type": "$$m"}}}, {"$in": [1, path]}, {"$size": path}, {"$concatArrays": [path, [9]]}), "no"]},
            lambda: {"x": e(), "y": e()}, lambda: [e(), e()],
        ][choice]()

    def stage(self):
        field = self.one(*FIELDS)
        return self.one(
            {"$match": self.filter(1)}, {"$project": {"v": self.expression()}}, {"$addFields": {self.one("v", "a", "w.x"): self.expression()}},
            {"$unwind": self.one(f"${field}", {"path": f"${field}", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "i"})},
            {"$unset": self.one(field, [field, "_id.x"])}, {"$project": {field: 0}},
            {"$project": self.projection() or {"a": 1}},
        )

    def projection(self):
        kind = self.below(4)
        paths = self.r.sample(["a", "b", "c", "a.b", "b.c"], 1 + self.below(2))
        paths = [p for p in paths if not any(q != p and p.startswith(q + ".") for q in paths)]
        if kind == 0:
            return {p: 0 for p in paths}
        if kind == 1:
            return {**{p: 1 for p in paths}, "_id": self.one(0, 1)}
        if kind == 2:
            return {p: 1 for p in paths}
        return {"_id": 0}

    def group(self):
        # Sums of floats depend on their order, which no server promises: integers only.
        return {"$group": {"_id": self.one(None, "$a", "$b.c", {"x": "$a"}), "n": {"$sum": 1}, "m": {"$max": "$b"}, "l": {"$min": "$c"}, "s": {"$addToSet": "$c"}}}


def run(call):
    """What a server answers: results, or a code."""
    try:
        return "ok", call()
    except BulkWriteError as error:
        return "error", error.details["writeErrors"][0]["code"]
    except OperationFailure as error:
        return "error", error.code
    except PyMongoError as error:
        return "error", type(error).__name__


def extreme(value):
    """Of two equal numbers of different types, either is the least or the greatest."""
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return {"number": repr(float(value))}
    return normal(value)


def normal(value):
    """As text; sets, whose order is free, in order."""
    if isinstance(value, dict):
        grouped = "n" in value and "s" in value
        shown = {}
        for k, v in value.items():
            if k == "s" and isinstance(v, list):
                shown[k] = sorted((normal(it) for it in v), key=show)
            else:
                shown[k] = extreme(v) if grouped and k in ("m", "l") else normal(v)
        return shown
    if isinstance(value, list):
        return [normal(v) for v in value]
    return value


def shortened(answers):
    """Of two lists, only what differs."""
    (ours, a), (theirs, b) = answers
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(x, y) for x, y in zip(a, b) if show(x) != show(y)]
        a, b = [x for x, _ in pairs], [y for _, y in pairs]
    elif isinstance(a, list) and isinstance(b, list):
        texts = [show(x) for x in a], [show(y) for y in b]
        a, b = [x for x in a if show(x) not in texts[1]], [y for y in b if show(y) not in texts[0]]
    return (ours, show(a)), (theirs, show(b))


differences = {}
steps = 0


def compare(what, detail, call, ordered=False):
    global steps
    steps += 1
    answers = []
    for client in (ours, theirs):
        kind, answer = run(lambda: call(client.get_database("differential", codec_options=OPTIONS)))
        if kind == "ok" and isinstance(answer, list):
            answer = [normal(it) for it in answer]
            answer = answer if ordered else sorted(answer, key=show)
        answers.append((kind, answer))
    failed = answers[0][0] == answers[1][0] == "error"
    if [(kind, show(answer)) for kind, answer in answers] != [(answers[1][0], show(answers[1][1]))] * 2:
        kind = what
        if answers[0][0] == answers[1][0] == "error":
            kind = f"{what}: code"
        differences.setdefault(kind, []).append((detail, shortened(answers)))
        return None if failed else False
    return None if failed else True


def round_of(number):
    draw = Draw(seed * 1_000_003 + number)
    documents = [draw.document(i) for i in range(30)]
    for client in (ours, theirs):
        client.differential.c.drop()
        client.differential.c.insert_many(documents)
    keys = [draw.one([("a", 1)], [("b", -1)], [("a", 1), ("b", 1)], [("a.b", 1)], [("c", 1), ("_id", -1)]) for _ in range(draw.below(3))]
    for key in keys:
        options = draw.one({}, {}, {"sparse": True}, {"partialFilterExpression": {"a": {"$gt": 0}}})
        compare("index", (number, key, options), lambda db: [db.c.create_index(key, **options)])
    for _ in range(40):
        kind = draw.below(10)
        if kind < 5:
            filter, projection = draw.filter(), draw.one(None, None, draw.projection())
            sort = draw.one(None, None, [(draw.one("a", "b", "a.b", "c"), draw.one(1, -1)), ("_id", 1)], [("_id", -1)])
            def find(db):
                cursor = db.c.find(filter, projection)
                return list(cursor.sort(sort) if sort else cursor)
            compare("find", (number, show(filter), show(projection), sort), find, ordered=sort is not None)
        elif kind < 8:
            filter, update = draw.filter(1), draw.update()
            many, upsert = draw.one(True, False), draw.below(8) == 0
            if not many:
                filter = {"_id": draw.below(30)}
            if upsert:
                filter = {"_id": 1000 + draw.below(3)}
            def change(db):
                call = db.c.update_many if many else db.c.update_one
                result = call(filter, update, upsert=upsert)
                return [result.matched_count, result.modified_count]
            same = compare("update", (number, show(filter), show(update), many, upsert), change)
            # An update of many that fails half-way leaves what it had done on one server and nothing on
            # the other: the collections have parted, and neither promised otherwise.
            if same is None and many:
                return
            contents = lambda db: list(db.c.find().sort("_id", 1))
            if not compare("update: contents", (number, show(filter), show(update), many, upsert), contents, ordered=True) or same is False:
                return
        else:
            stages = [draw.stage() for _ in range(1 + draw.below(2))]
            if draw.below(3) == 0:
                stages.append(draw.group())
            compare("aggregate", (number, show(stages)), lambda db: list(db.c.aggregate(stages)))


for number in range(rounds):
    round_of(number)
print(f"{steps} steps in {rounds} rounds from seed {seed}")
for kind, found in differences.items():
    print(f"== {kind}: {len(found)} differ")
    for detail, answers in found[:6]:
        print("  ", *detail)
        print("     ours  ", answers[0][0], answers[0][1][:600])
        print("     theirs", answers[1][0], answers[1][1][:600])
sys.exit(1 if differences else 0)
