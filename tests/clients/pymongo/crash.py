"""Kills a node without warning, again and again, while clients write, move money in transactions and
build indexes; after each start, nothing that was answered may be missing and no index may differ.

    crash.py KUMIKO DIR ROUNDS SEED
"""

import random
import subprocess
import sys
import threading
import time

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

kumiko, folder, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
ACCOUNTS, START = 10, 100
answered = {}
lock = threading.Lock()


def start():
    node = subprocess.Popen([kumiko, "serve", "--dir", folder, "--redis", "off", "--http", "off", "--mongo", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    address = None
    for line in node.stdout:
        if line.startswith("mongo on "):
            address = line.split()[-1]
        if line.strip() == "ready":
            return node, address
    raise SystemExit("the node does not start")


def client(address):
    return MongoClient(f"mongodb://{address}/?timeoutMS=5000&serverSelectionTimeoutMS=3000", retryWrites=False)


def writer(address, n, stop, r):
    db = client(address).crash
    while not stop.is_set():
        key = f"{n}-{r.randrange(200)}"
        value = r.randrange(1_000_000)
        with lock:
            # Until it is answered, the old value or the new one may be there; None is no row.
            answered.setdefault(key, {None}).add(value)
        try:
            db.rows.replace_one({"_id": key}, {"v": value, "w": value % 7, "t": [value % 3, value % 5]}, upsert=True)
            with lock:
                answered[key] = {value}
        except PyMongoError:
            return


def mover(address, stop, r):
    c = client(address)
    db = c.crash
    while not stop.is_set():
        a, b = r.sample(range(ACCOUNTS), 2)

        # Not `with_transaction`: it would try a node that is gone for two minutes.
        try:
            with c.start_session() as session:
                session.start_transaction()
                db.accounts.update_one({"_id": a}, {"$inc": {"v": -1}}, session=session)
                db.accounts.update_one({"_id": b}, {"$inc": {"v": 1}}, session=session)
                session.commit_transaction()
        except OperationFailure:
            continue
        except PyMongoError:
            return


def indexer(address, stop, r):
    db = client(address).crash
    while not stop.is_set():
        try:
            name = r.choice(["w", "t", "v"])
            if r.randrange(2):
                db.rows.create_index(name)
            elif f"{name}_1" in db.rows.index_information():
                db.rows.drop_index(f"{name}_1")
        except PyMongoError:
            return


def check(address, number):
    db = client(address).crash
    deadline = time.time() + 60
    while any("progress" in op for op in db.client.admin.command("currentOp")["inprog"]):
        assert time.time() < deadline, "an index build does not go on"
        time.sleep(0.1)
    for name in ["rows", "accounts"]:
        report = db.command("validate", name)
        assert report["valid"], report
    rows = {row["_id"]: row["v"] for row in db.rows.find()}
    for key, values in answered.items():
        assert rows.get(key) in values, f"round {number}: {key} is {rows.get(key)}, it may be {values}"
        answered[key] = {rows.get(key)}
    total = sum(row["v"] for row in db.accounts.find())
    assert total == ACCOUNTS * START, f"round {number}: the accounts hold {total}"
    return len(rows)


node, address = start()
client(address).crash.accounts.insert_many([{"_id": n, "v": START} for n in range(ACCOUNTS)])
client(address).crash.rows.insert_one({"_id": "first", "v": 0})
for number in range(rounds):
    r = random.Random(seed * 1000 + number)
    stop = threading.Event()
    work = [threading.Thread(target=writer, args=(address, n, stop, random.Random(seed * 7 + number * 10 + n))) for n in range(3)]
    work += [threading.Thread(target=mover, args=(address, stop, random.Random(number * 3 + n))) for n in range(2)]
    work += [threading.Thread(target=indexer, args=(address, stop, r))]
    [t.start() for t in work]
    time.sleep(1 + r.random() * 2)
    node.kill()
    node.wait()
    stop.set()
    [t.join() for t in work]
    node, address = start()
    print(f"round {number}: {check(address, number)} rows", flush=True)
node.terminate()
node.wait()
