"""Writes, kills the server in the middle, starts it again and compares."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

PROGRAM, FOLDER, DURABILITY, CYCLES = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
WRITERS = 4
random.seed(7)


def start():
    """Starts the server and returns it with its port once it is ready."""
    server = subprocess.Popen(
        [PROGRAM, "serve", "--dir", FOLDER, "--redis", "127.0.0.1:0", "--http", "off", "--durability", DURABILITY],
        stdout=subprocess.PIPE, text=True)
    port = None
    for line in server.stdout:
        if line.startswith("redis on "):
            port = int(line.rsplit(":", 1)[1])
        if line.strip() == "ready":
            return server, port
    raise SystemExit("the server ended while it started")


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            word = str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.socket.sendall(b"".join(parts))
        return self.read()

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        return rest


def write(port, number, state, stop):
    """Writes ever larger numbers; state holds the last one that was answered, and when."""
    try:
        client = Client(port)
        while not stop.is_set():
            value = state[number][-1][0] + 1
            client.call("SET", f"last:{number}", value)
            client.call("RPUSH", f"list:{number}", value)
            state[number].append((value, time.monotonic()))
            del state[number][:-200000]
            if value % 1000 == 0:
                client.call("BGSAVE") if number == 0 and value % 3000 == 0 else client.call("PING")
    except (OSError, ConnectionError, RuntimeError):
        pass


def main():
    state = {number: [(0, 0.0)] for number in range(WRITERS)}
    lost_most = answered = 0
    for cycle in range(CYCLES):
        server, port = start()
        client = Client(port)
        for number in range(WRITERS):
            found = int(client.call("GET", f"last:{number}") or 0)
            length = client.call("LLEN", f"list:{number}")
            tail = client.call("LRANGE", f"list:{number}", -1, -1)
            last, killed_at = state[number][-1][0], state["killed"] if "killed" in state else 0.0
            if DURABILITY == "always":
                floor = last
            else:
                # Whatever was answered more than a second before the end must be there.
                floor = max((value for value, at in state[number] if at < killed_at - 1.2), default=0)
            lost_most = max(lost_most, last - found)
            if found < floor or length < floor:
                raise SystemExit(f"cycle {cycle}: writer {number} was answered {last}, must have {floor}, "
                                 f"found {found} and a list of {length}")
            if tail and int(tail[0]) != length:
                raise SystemExit(f"cycle {cycle}: the list of {length} ends with {tail[0]!r}")
            # A write that was under way may or may not have happened: begin after it.
            keep = min(found, length)
            client.call("SET", f"last:{number}", keep)
            client.call("LTRIM", f"list:{number}", 0, keep - 1)
            if keep == 0:
                client.call("DEL", f"list:{number}")
            state[number] = [(keep, time.monotonic())]
        stop = threading.Event()
        threads = [threading.Thread(target=write, args=(port, number, state, stop)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        time.sleep(random.uniform(0.05, 0.6) if DURABILITY == "always" else random.uniform(0.3, 1.8))
        os.kill(server.pid, signal.SIGKILL)
        state["killed"] = time.monotonic()
        server.wait()
        stop.set()
        for thread in threads:
            thread.join()
        answered += sum(state[number][-1][0] for number in range(WRITERS)) if cycle == CYCLES - 1 else 0
    print(f"{DURABILITY}: {CYCLES} kills, {answered} writes answered in all, at most {lost_most} lost in one cycle")


main()
