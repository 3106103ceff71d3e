#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a healthy destination notices of slow ones beside it, with default settings, on SQLite and on PostgreSQL.

usage: bench/fair.py HIKYAKU [--slow N[,N…]] [--seconds S] [--rate R] [--answer S] [--store sqlite|postgres]

For each number of slow destinations (they answer after --answer seconds and have more to send than the relay has places)
a healthy one gets --rate messages a second for --seconds, first alone, then beside them, with the same configuration. The
time is from the commit to the arrival. Also: how long the last of the slow ones waited for its first request. Needs
PostgreSQL and python3-psycopg for the second store. Everything runs on loopback, in temporary folders, and is stopped at the
end. About half a minute for each number and store; 400 takes a minute."""
import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # nothing beside the sources

from relay import Relay, percentile

ROWS = 800  # of the slow ones together, at least: three times the places of a relay
INSERT = "INSERT INTO outbox (destination, event_type, payload) VALUES ({0}, 'Bench', {0})"


class Receiver:
    """Answers /quick/… at once and /slow/… late, and notes when a request came."""

    def __init__(self, answer_s):
        self.answer_s, self.healthy, self.first = answer_s, [], {}
        self.loop, self.ready = asyncio.new_event_loop(), threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()
        self.ready.wait()

    def serve(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.talk, "127.0.0.1", 0, backlog=1024))
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def talk(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                now, path = time.time(), head.split(" ", 2)[1]
                length = next(int(l.split(":")[1]) for l in head.split("\r\n") if l.lower().startswith("content-length:"))
                body = await reader.readexactly(length)
                if path.startswith("/slow/"):
                    self.first.setdefault(path, now)
                    await asyncio.sleep(self.answer_s)
                else:
                    self.healthy.append((now - float(body)) * 1000)
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (OSError, EOFError):
            writer.close()


class OnSqlite(Relay):
    name = "SQLite"

    def insert(self, db, rows):
        db.execute("BEGIN IMMEDIATE")
        db.executemany(INSERT.format("?"), rows)
        db.execute("COMMIT")


class OnPostgres(Relay):
    name = "PostgreSQL"
    cluster = None

    def __init__(self, hikyaku, folder, config):
        import postgres
        OnPostgres.cluster = OnPostgres.cluster or postgres.servers.Cluster(fsync="on", max_wal_size="1GB")
        self.psycopg, self.url = postgres.servers.psycopg, self.cluster.url(self.cluster.create())
        self.path, self.hikyaku, self.process = os.path.join(folder, "hikyaku.yaml"), hikyaku, None
        self.log = open(os.path.join(folder, "relay.log"), "w")
        with open(self.path, "w") as f:
            f.write(f"store: {self.url}\n" + config)
        subprocess.run([hikyaku, "--config", self.path, "init"], check=True, stdout=subprocess.DEVNULL)

    def connect(self):
        return self.psycopg.connect(self.url, autocommit=True)

    def insert(self, db, rows):
        with db.transaction(), db.cursor() as cursor:
            cursor.executemany(INSERT.format("%s"), rows)


def send_healthy(relay, db, seconds, rate):
    start, n = time.monotonic(), 0
    while (now := time.monotonic()) < start + seconds:
        if now < start + n / rate:
            time.sleep(start + n / rate - now)
        relay.insert(db, [("healthy", repr(time.time()))])
        n += 1
    return n


def measure(args, kind, n_slow, beside):
    """Delays of the healthy one, how many of its messages did not come, the wait of the last slow one."""
    folder, receiver = tempfile.mkdtemp(prefix="hikyaku-fair-"), Receiver(args.answer)
    url, allow = f"http://127.0.0.1:{receiver.port}", "allow: [127.0.0.0/8]"
    names = [f"slow{i}" for i in range(n_slow)]
    relay = kind(args.hikyaku, folder, f'destinations:\n  healthy: {{ http: {{ url: "{url}/quick/" }}, {allow} }}\n' +
                 "".join(f'  {n}: {{ http: {{ url: "{url}/slow/{n}" }}, {allow} }}\n' for n in names))
    db = relay.connect()
    try:
        if beside:
            relay.insert(db, [(n, "0") for n in names for _ in range(max(8, ROWS // n_slow))])
        began = time.time()
        relay.start()
        time.sleep(3)
        sent = send_healthy(relay, db, args.seconds, args.rate)
        until = time.monotonic() + 2 * args.answer + 5
        while time.monotonic() < until and (len(receiver.healthy) < sent or len(receiver.first) < n_slow * beside):
            time.sleep(0.1)
        return receiver.healthy, sent - len(receiver.healthy), max((t - began for t in receiver.first.values()), default=0)
    finally:
        db.close()
        relay.process.kill()  # what the slow ones have is not waited for
        relay.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hikyaku")
    parser.add_argument("--slow", default="4,32,128,399")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--answer", type=float, default=20)
    parser.add_argument("--store", choices=("sqlite", "postgres"))
    args = parser.parse_args()
    args.hikyaku = os.path.abspath(args.hikyaku)
    for kind in (OnSqlite, OnPostgres):
        if args.store not in (None, kind.name.lower(), kind.name.lower()[:8]):
            continue
        for n in map(int, args.slow.split(",")):
            alone, _, _ = measure(args, kind, n, False)
            beside, missing, last = measure(args, kind, n, True)
            a50, a99, b50, b99 = (percentile(d, p) if d else float("nan") for d in (alone, beside) for p in (.5, .99))
            print(f"{kind.name:<10} {n:>4} slow: alone p50 {a50:.1f} ms, p99 {a99:.1f} ms; beside p50 {b50:.1f} ms, p99 {b99:.1f} ms "
                  f"({b99 / a99:.2f}x), missing {missing}; the last slow one waited {last:.1f} s (load {os.getloadavg()[0]:.1f})", flush=True)


if __name__ == "__main__":
    main()
