#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages a second and CPU a message of a relay on SQLite to real brokers, beside a bare client in C with the same confirms in the same run.

usage: bench/publishers.py HIKYAKU BENCH_BROKERS [--rows N] [--bytes N] [--only amqp,nats,redis]

BENCH_BROKERS is the program of bench/bench_brokers.c. Everything runs on loopback, in a temporary folder, and is stopped at the end. Ratios
are what to read: absolute figures move with the machine. Each figure is one run, so run it several times."""
import argparse
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("hikyaku")
parser.add_argument("bare")
parser.add_argument("--rows", type=int, default=50000)
parser.add_argument("--bytes", type=int, default=500)
parser.add_argument("--only", default="amqp,nats,redis")
options = parser.parse_args()
sys.argv = [sys.argv[0], options.hikyaku]  # for support.py
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/e2e"))
from brokers_servers import Amqp, Nats, NatsClient, Rabbit, Redis  # noqa: E402


class Place:
    """Where brokers live: what the tests call a world."""

    def __init__(self):
        self.folder, self.brokers = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-bench-")), []

    def path(self, name):
        return self.folder / name

    def end(self):
        for broker in self.brokers:
            broker.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_amqp(place):
    broker = Rabbit(place).start()
    client = Amqp(broker.port)
    client.queue("bench")
    client.close()
    return broker, {"url": f"amqp://127.0.0.1:{broker.port}", "routing_key": "bench"}


def start_nats(place):
    broker = Nats(place).start()
    client = NatsClient(broker.port)
    client.stream("B", "bench.>")
    client.close()
    return broker, {"url": f"nats://127.0.0.1:{broker.port}", "subject": "bench.r"}


def start_redis(place):
    broker = Redis(place).start()
    return broker, {"url": f"redis://127.0.0.1:{broker.port}", "stream": "relay"}


def bare(kind, port, window):
    out = subprocess.run([options.bare, kind, str(port), str(options.rows), str(window), str(options.bytes)], check=True, text=True, capture_output=True)
    seconds, cpu = map(float, out.stdout.split())
    return options.rows / seconds, cpu / options.rows * 1e6


def relay(kind, place, section):
    """(messages a second, CPU microseconds a message) of a drain."""
    db, config = place.path(f"{kind}.db"), place.path(f"{kind}.yaml")
    config.write_text(json.dumps({"store": f"sqlite:{db}", "admin": {"listen": "127.0.0.1:0"}, "destinations": {
        "b": {kind: section, "allow": ["127.0.0.0/8"], "limits": {"concurrency": 256}}}}), encoding="utf-8")
    subprocess.run([options.hikyaku, "--config", str(config), "init"], check=True, stdout=subprocess.DEVNULL)
    base = sqlite3.connect(db, isolation_level=None, timeout=60)
    base.execute("BEGIN")
    base.executemany("INSERT INTO outbox (destination, event_type, payload) VALUES ('b', 'Bench', ?)", [("x" * options.bytes,)] * options.rows)
    base.execute("COMMIT")
    with open(place.path(f"{kind}.log"), "wb") as log:
        process = subprocess.Popen([options.hikyaku, "--config", str(config), "run"], stdout=log, stderr=log)
    began = last = None
    while True:
        left = base.execute("SELECT count(*) FROM outbox").fetchone()[0] if began is None else base.execute("SELECT 1 FROM outbox LIMIT 1").fetchone()
        if began is None and left < options.rows:
            began, first = time.monotonic(), options.rows - left
        last = time.monotonic()
        if began is not None and not left:
            break
        assert process.poll() is None, "the relay has ended"
        time.sleep(0.005)
    ticks = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    cpu = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    process.terminate()
    process.wait()
    base.close()
    return (options.rows - first) / (last - began), cpu / options.rows * 1e6


START = {"amqp": start_amqp, "nats": start_nats, "redis": start_redis}
print(f"{options.rows} messages of {options.bytes} bytes, each confirmed; window and concurrency 256")
print(f"{'':8}{'bare/s':>10}{'µs':>8}{'relay/s':>10}{'µs':>8}{'ratio':>8}")
for kind in options.only.split(","):
    place = Place()
    try:
        broker, section = START[kind](place)
        (bare_rate, bare_cpu), (rate, cpu) = bare(kind, broker.port, 256), relay(kind, place, section)
        print(f"{kind:8}{bare_rate:10.0f}{bare_cpu:8.1f}{rate:10.0f}{cpu:8.1f}{rate / bare_rate:8.2f}", flush=True)
    finally:
        place.end()
