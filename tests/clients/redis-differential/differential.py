"""Random commands to two servers at once; every reply must be the same.

    differential.py KUMIKO ROUNDS SEED

Replies whose order is free (SMEMBERS) are sorted first; random picks are compared by their shape;
times to live are compared roughly. The keyspace events of every command must be the same as well,
and after each round the whole contents.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile

import commands
from resp import Connection, Error

COMMANDS_PER_ROUND = int(os.environ.get("COMMANDS", "400"))


class Mismatch(Exception):
    """The two servers differ."""


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Servers:
    """Both servers: started here, or named by the environment."""

    def __init__(self, kumiko):
        self.processes, self.folder = [], tempfile.mkdtemp(prefix="redis-differential-")
        try:
            self.ours = int(os.environ.get("OURS") or self.start_kumiko(kumiko))
            self.theirs = int(os.environ.get("THEIRS") or self.start_redis())
        except BaseException:
            self.stop()
            raise

    def start_kumiko(self, kumiko):
        off = [word for name in ("mongo", "postgres", "mysql", "lattice", "http") for word in (f"--{name}", "off")]
        command = [kumiko, "serve", "--engine", "memory", "--redis", "127.0.0.1:0", *off]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.processes.append(process)
        port = None
        for line in process.stdout:
            if "redis" in line and "127.0.0.1:" in line:
                port = int(line.split("127.0.0.1:")[1].split()[0].strip(".,)"))
            if line.strip() == "ready":
                break
        if port is None:
            raise SystemExit("kumiko did not say where it listens for Redis clients")
        return port

    def start_redis(self):
        port = free_port()
        quiet = ["--save", "", "--appendonly", "no", "--loglevel", "warning", "--dir", self.folder]
        # SORT ALPHA goes by the locale, and ours is the plain one.
        plain = {**os.environ, "LC_ALL": "C"}
        process = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", *quiet], env=plain)
        self.processes.append(process)
        for _ in range(200):
            try:
                Connection(port).close()
                return port
            except OSError:
                import time

                time.sleep(0.05)
        raise SystemExit("redis-server does not answer")

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(timeout=20)
        shutil.rmtree(self.folder, ignore_errors=True)


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


def main():
    kumiko, rounds, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    servers = Servers(kumiko)
    failed = 0
    try:
        for seed in range(first, first + rounds):
            draw = random.Random(seed)
            version = draw.choice("23")
            ours, theirs = Side(servers.ours, version), Side(servers.theirs, version)
            try:
                play(ours, theirs, draw, seed)
            except Mismatch as mismatch:
                failed += 1
                print(mismatch, end="\n\n")
                if failed == int(os.environ.get("FAILURES", "5")):
                    break
            finally:
                ours.close()
                theirs.close()
    finally:
        servers.stop()
    print(f"{rounds} rounds of {COMMANDS_PER_ROUND} commands from seed {first}: {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
