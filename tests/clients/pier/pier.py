"""Makes, grows and compares piers with LMDB itself.

pier.py make DIR      a pier of three epochs, written as vere writes it
pier.py grow DIR      more events in the newest epoch
pier.py same DIR DIR  whether two piers hold the same, byte by byte
"""

import os
import struct
import sys

import lmdb

META = {b"version": b"\3", b"who": bytes.fromhex("00042d"), b"fake": b"\1", b"life": b"\5"}


def value(number):
    sizes = {3: 2_021, 4: 2_022, 5: 2_023, 6: 5_000, 77: 300_000, 1_500: 9_000_000}
    size = sizes.get(number, 5 + number % 300)
    pattern = bytes((number * 31 + at * 7) % 256 for at in range(256))
    return (pattern * (size // 256 + 1))[:size]


def open_env(path):
    os.makedirs(path, exist_ok=True)
    return lmdb.open(path, map_size=1 << 30, max_dbs=4)


def put_meta(env):
    meta = env.open_db(b"META")
    with env.begin(write=True) as txn:
        for name, content in META.items():
            txn.put(name, content, db=meta)


def put_events(env, first, last, batch):
    events = env.open_db(b"EVENTS", integerkey=True)
    number = first
    while number <= last:
        with env.begin(write=True) as txn:
            for number in range(number, min(number + batch, last + 1)):
                assert txn.put(struct.pack("=Q", number), value(number), db=events, overwrite=False)
        number += 1


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def make(pier):
    log = os.path.join(pier, ".urb/log")
    with open_env(log) as env:
        put_meta(env)
    for last_before, last, batch in [(0, 1_400, 100), (1_400, 2_000, 1), (2_000, 60_000, 1_000)]:
        epoch = os.path.join(log, f"0i{last_before}")
        with open_env(epoch) as env:
            put_meta(env)
            put_events(env, last_before + 1, last, batch)
        write(os.path.join(epoch, "epoc.txt"), b"2")
        write(os.path.join(epoch, "vere.txt"), b"4.5")
        if last_before:
            write(os.path.join(epoch, "image.bin"), value(last_before) * 1_000)


def newest(pier):
    log = os.path.join(pier, ".urb/log")
    epochs = [int(name[2:]) for name in os.listdir(log) if name.startswith("0i")]
    return os.path.join(log, f"0i{max(epochs)}")


def grow(pier):
    with open_env(newest(pier)) as env:
        put_events(env, 60_001, 61_000, 7)


def read(path):
    """Everything in an environment, opened without its lock."""
    found = {}
    with lmdb.open(path, readonly=True, lock=False, max_dbs=4) as env:
        with env.begin() as txn:
            names = [name for name, _ in txn.cursor()]
        for name in names:
            db = env.open_db(name, create=False, integerkey=name == b"EVENTS")
            with env.begin(db=db) as txn:
                found[name] = list(txn.cursor())
                assert txn.stat(db)["entries"] == len(found[name])
    return found


def same(one, two):
    log = ".urb/log"
    epochs = sorted(name for name in os.listdir(os.path.join(one, log)) if name.startswith("0i"))
    others = sorted(name for name in os.listdir(os.path.join(two, log)) if name.startswith("0i"))
    assert epochs == others, (epochs, others)
    count = 0
    for path in [log] + [os.path.join(log, epoch) for epoch in epochs]:
        ours, theirs = read(os.path.join(one, path)), read(os.path.join(two, path))
        assert ours == theirs, path
        count += len(ours.get(b"EVENTS", []))
        for name in ["epoc.txt", "vere.txt", "image.bin"]:
            left, right = (os.path.join(pier, path, name) for pier in (one, two))
            assert os.path.exists(left) == os.path.exists(right), left
            if os.path.exists(left):
                assert open(left, "rb").read() == open(right, "rb").read(), left
    print(f"the same: {len(epochs)} epochs, {count} events")


if __name__ == "__main__":
    {"make": make, "grow": grow, "same": same}[sys.argv[1]](*sys.argv[2:])
