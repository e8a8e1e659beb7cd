"""Random commands to two servers at once; every reply must be the same.

    differential.py OUR_PORT THEIR_PORT ROUNDS SEED

Replies whose order is free (SMEMBERS) are sorted first; random picks are compared by their shape;
times to live are compared roughly. The keyspace events of every command must be the same as well,
and after each round the whole contents.
"""

import os
import random
import sys
import time

import commands
from resp import Connection, Error

COMMANDS_PER_ROUND = int(os.environ.get("COMMANDS", "400"))
FAILURES_MAX = int(os.environ.get("FAILURES", "5"))


class Mismatch(Exception):
    """The two servers differ."""


def canonical(command, reply):
    """The reply in the form that is compared."""
    name = command[0].upper()
    if isinstance(reply, Error) or not isinstance(reply, list):
        if name in commands.TIMES and isinstance(reply, int) and 0 < reply:
            return commands.near(name, reply)
        if name in commands.PICKS and isinstance(reply, bytes):
            return "a pick"
        return reply
    if name in commands.PICKS:
        return [reply[0], len(reply)]
    if name in commands.SCANS:
        return [reply[0], reply[1], unordered(reply[2], name in ("HSCAN", "ZSCAN"))]
    if name in commands.UNORDERED:
        return unordered(reply, name == "HGETALL")
    return reply


def unordered(reply, pairs):
    items = reply[1:]
    if pairs:
        items = [(items[at], items[at + 1]) for at in range(0, len(items), 2)]
    return [reply[0], *sorted(items, key=repr)]


def contents(connection):
    """All keys with type, value and whether they expire."""
    found = {}
    for key in sorted(connection.ask("KEYS", "*")[1:]):
        kind = connection.ask("TYPE", key)
        read = {
            "string": ("GET", key),
            "list": ("LRANGE", key, "0", "-1"),
            "set": ("SMEMBERS", key),
            "zset": ("ZRANGE", key, "0", "-1", "WITHSCORES"),
            "hash": ("HGETALL", key),
        }[kind]
        expires = 0 < connection.ask("PTTL", key)
        found[key] = (str(kind), canonical(read, connection.ask(*read)), expires)
    return found


class Side:
    """One of the two servers: a connection for commands, and one that hears of their events."""

    def __init__(self, port, version):
        self.connection, self.listener = Connection(port), Connection(port)
        self.connection.ask("FLUSHALL")
        self.connection.ask("HELLO", version)
        self.connection.ask("CONFIG", "SET", "notify-keyspace-events", "KA")
        self.listener.ask("PSUBSCRIBE", "__keyspace@*__:*")

    def events(self):
        """What was published since the last call."""
        self.listener.send("PING", "end")
        found = []
        while (message := self.listener.reply())[1] == b"pmessage":
            found.append((message[3], message[4]))
        return found

    def close(self):
        self.connection.close()
        self.listener.close()


def play(ours, theirs, draw, seed):
    """One round."""
    history = []
    for _ in range(COMMANDS_PER_ROUND):
        command = commands.make(draw)
        history.append(command)
        left, right = ours.connection.ask(*command), theirs.connection.ask(*command)
        if canonical(command, left) != canonical(command, right):
            show(history, seed, f"ours   {left!r}\ntheirs {right!r}")
        left, right = ours.events(), theirs.events()
        if left != right:
            show(history, seed, f"our events   {left!r}\ntheir events {right!r}")
    compare_contents(ours.connection, theirs.connection, history, seed)


def compare_contents(ours, theirs, history, seed):
    left, right = contents(ours), contents(theirs)
    if left != right:
        keys = [key for key in left.keys() | right.keys() if left.get(key) != right.get(key)]
        lines = [f"{key!r}\n  ours   {left.get(key)!r}\n  theirs {right.get(key)!r}" for key in keys]
        show(history, seed, "\n".join(lines))


def show(history, seed, text):
    last = "\n".join(" ".join(repr(word) for word in command) for command in history[-12:])
    raise Mismatch(f"seed {seed}, after {len(history)} commands, the last of them:\n{last}\n{text}")


def wait_for(port):
    """Returns once the server answers."""
    for _ in range(200):
        try:
            Connection(port).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nobody answers at port {port}")


def main():
    our_port, their_port, rounds, first = map(int, sys.argv[1:5])
    wait_for(our_port)
    wait_for(their_port)
    failed = 0
    for seed in range(first, first + rounds):
        draw = random.Random(seed)
        version = draw.choice("23")
        ours, theirs = Side(our_port, version), Side(their_port, version)
        try:
            play(ours, theirs, draw, seed)
        except Mismatch as mismatch:
            failed += 1
            print(mismatch, end="\n\n")
            if failed == FAILURES_MAX:
                break
        finally:
            ours.close()
            theirs.close()
    print(f"{rounds} rounds of {COMMANDS_PER_ROUND} commands from seed {first}: {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
