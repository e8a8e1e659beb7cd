"""Throughput, server CPU, latency, memory and start time of three servers, interleaved."""

import os
import socket
import subprocess
import sys
import time

WORK, MODES = sys.argv[1], sys.argv[2:]
SMALL = os.environ.get("SMALL") == "1"
REPEATS = int(os.environ.get("REPEATS", "1" if SMALL else "3"))
KEYS = 10_000 if SMALL else 1_000_000
REQUESTS = {1: 5_000, 16: 20_000, 64: 20_000} if SMALL else {1: 100_000, 16: 500_000, 64: 1_000_000}
COMMANDS = ["set", "get", "incr", "hset", "sadd", "zadd", "lpush", "lrange_100", "mset"]
SIZES = [16] if SMALL else [16, 1024]
FSYNC = {"never": None, "everysecond": "everysec", "always": "always"}
TICK = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, name, program, mode, folder):
        self.name, self.mode, self.folder, self.port = name, mode, folder, free_port()
        os.makedirs(folder, exist_ok=True)
        if name == "kumiko":
            engine = ["--engine", "memory"] if mode == "never" else ["--dir", folder, "--durability", mode]
            self.line = [program, "serve", "--redis", f"127.0.0.1:{self.port}", "--http", "off", *engine]
        else:
            keep = ["--appendonly", "no"] if mode == "never" else ["--appendonly", "yes", "--appendfsync", FSYNC[mode]]
            self.line = [program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", folder, "--save", "", *keep]

    def start(self):
        """Starts it and returns how long it took until it answered PING with PONG."""
        began = time.monotonic()
        self.process = subprocess.Popen(self.line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port)) as probe:
                    probe.sendall(b"PING\r\n")
                    if probe.recv(64).startswith(b"+PONG"):
                        return time.monotonic() - began
            except OSError:
                pass
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended while it started")
            time.sleep(0.002)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True).stdout

    def load(self, command, pipeline, size, requests):
        """One run of redis-benchmark: requests per second, p99 in ms, server CPU in us per request."""
        before = self.cpu()
        line = ["redis-benchmark", "-p", str(self.port), "-t", command, "-P", str(pipeline), "-d", str(size), "-c", "50",
                "-n", str(requests), "-r", "100000", "--csv"]
        rows = subprocess.run(line, capture_output=True, text=True).stdout.strip().splitlines()
        fields = [field.strip('"') for field in rows[-1].split(",")]
        micros = (self.cpu() - before) * 1e6 / requests
        return float(fields[-7]), float(fields[-2]), micros


def servers(mode):
    programs = {"redis": os.environ.get("REDIS"), "valkey": os.environ.get("VALKEY"), "kumiko": os.environ["KUMIKO"]}
    return [Server(name, path, mode, f"{WORK}/{name}-{mode}") for name, path in programs.items() if path]


def ratio(ours, others, higher_is_better):
    best = max(others) if higher_is_better else min(others)
    if not ours or not best:
        return "-"
    return f"{ours / best if higher_is_better else best / ours:.2f}"


def throughput(mode):
    running = servers(mode)
    for server in running:
        server.start()
    names = [server.name for server in running]
    print(f"\n## journal {mode}: us of server CPU per request, requests/s in thousands, p99 ms ({', '.join(names)})\n")
    print("| command | bytes | P | CPU | k/s | p99 | CPU ratio | throughput ratio |\n|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        for pipeline, requests in REQUESTS.items():
            for command in COMMANDS:
                count = requests if size == 16 else requests // 2
                count = count // 10 if command in ("lrange_100", "mset") else count
                best = {server.name: None for server in running}
                for _ in range(REPEATS):
                    for server in running:
                        row = server.load(command, pipeline, size, count)
                        old = best[server.name] or (0.0, float("inf"), float("inf"))
                        best[server.name] = (max(row[0], old[0]), min(row[1], old[1]), min(row[2], old[2]))
                show = lambda index, scale: " / ".join(f"{best[name][index] / scale:.2f}" for name in names)
                others = [best[name] for name in names if name != "kumiko"]
                ours = best["kumiko"]
                print(f"| {command} | {size} | {pipeline} | {show(2, 1)} | {show(0, 1000)} | {show(1, 1)} "
                      f"| {ratio(ours[2], [it[2] for it in others], False)} "
                      f"| {ratio(ours[0], [it[0] for it in others], True)} |", flush=True)
            for server in running:
                server.cli("flushall")
    for server in running:
        server.stop()


def fill(server):
    """KEYS strings with keys and values of 16 bytes."""
    stream = socket.create_connection(("127.0.0.1", server.port))
    for start in range(0, KEYS, 1000):
        parts = [b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$16\r\nvalue%011d\r\n" % (at, at) for at in range(start, start + 1000)]
        stream.sendall(b"".join(parts))
        left = 5 * 1000
        while left:
            left -= len(stream.recv(left))
    stream.close()


def memory_and_start():
    print(f"\n## {KEYS} strings, keys and values of 16 bytes\n\n| server | bytes per key (RSS) | start, ms |\n|---|---|---|")
    for server in servers("everysecond"):
        server.start()
        before = server.resident()
        fill(server)
        each = (server.resident() - before) / KEYS
        if server.name == "kumiko":
            server.cli("save")
            while "rdb_bgsave_in_progress:1" in server.cli("info", "persistence"):
                time.sleep(0.1)
        else:
            server.cli("bgrewriteaof")
            time.sleep(1)
            while "aof_rewrite_in_progress:1" in server.cli("info", "persistence"):
                time.sleep(0.1)
        server.stop()
        took = server.start()
        count = server.cli("dbsize").strip()
        assert count == str(KEYS), f"{server.name} has {count} keys after the start"
        server.stop()
        print(f"| {server.name} | {each:.0f} | {took * 1000:.0f} |", flush=True)


for chosen in MODES:
    throughput(chosen)
memory_and_start()
