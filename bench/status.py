#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long people wait for an answer about a very long outbox: status, messages, explain, top.

usage: bench/status.py HIKYAKU [--rows N] [--rounds N] [--store sqlite,postgres] [--only WORDS] [--json FILE] [--hold]

Rows are made by SQL: N in the outbox (10,000,000), a tenth of that waiting for a retry and a tenth dead, of 12 destinations (one has
half of all, one has three rows), of keys, event types and reasons. Each command is run several times as a process of its own. Its
time from start to end is what a person waits; on a machine that others use read the CPU: its own, and what the database's processes
used meanwhile. Everything runs on loopback in a temporary folder, needs 8 GB there for each store, and is gone at the end;
--hold waits for Enter before that, so that one can look at plans."""
import argparse
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing beside the sources
from dead import Launcher, insert_sql as insert_letters, load_servers

DESTINATIONS = 12
# Half of all for destination-0, three rows for destination-11, the rest shared out.
DESTINATION = ("CASE WHEN {i} % 2 = 0 THEN 'destination-0' WHEN {i} IN (1, 3, 5) THEN 'destination-11' "
               "ELSE 'destination-' || (1 + ({i} / 2) % 10) END")
COMMON = {
    "message_id": "'m-' || {i}",
    "destination": DESTINATION,
    "event_type": "CASE {i} % 12 WHEN 0 THEN 'OrderCreated' WHEN 1 THEN 'OrderPaid' ELSE 'Event' || ({i} % 12) END",
    "message_key": "CASE WHEN {i} % 4 <> 0 THEN 'k-' || ({i} % 50000) END",
    "correlation_id": "'c-' || ({i} / 3)",
    "created_at": "{time}",
    "payload": "'{\"order\":' || {i} || ',\"text\":\"" + "x" * 150 + "\"}'",
}
OUTBOX = COMMON | {"not_before": "CASE WHEN {i} % 20 = 0 THEN {later} END"}
RETRY = COMMON | {
    "message_id": "'r-' || {i}",
    "message_key": "CASE WHEN {i} % 4 <> 0 THEN 'rk-' || ({i} % 50000) END",
    "original_outbox_id": "-{i}",
    "due_ms": "{now_ms} + ({i} % 7 - 3) * 600000",  # four in seven are due
    "attempts": "{i} % 25",
    "last_cause": "'HTTP_503'",
    "last_error": "'the answer was HTTP 503'",
}


def insert_sql(table, columns, words):
    def fill(text):
        for mark, word in words.items():
            text = text.replace(mark, word)
        return text
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(fill(v) for v in columns.values())}"


class Sqlite:
    name = "SQLite"

    def __init__(self, folder, _):
        self.db = folder / "outbox.db"
        self.url = f"sqlite:{self.db}"

    def fill(self, rows):
        db = sqlite3.connect(self.db, isolation_level=None)
        for pragma in ("journal_mode = MEMORY", "synchronous = OFF", "cache_size = -2000000"):
            db.execute(f"PRAGMA {pragma}")
        for table, columns, n in (("outbox", OUTBOX, rows), ("outbox_retry", RETRY, rows // 10)):
            db.execute(self.numbers(n) + insert_sql(table, columns, {
                "{time}": self.moment(n), "{i}": "i", "{later}": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 day')",
                "{now_ms}": str(int(time.time() * 1000))}) + " FROM n")
        db.execute(self.numbers(rows // 10) + insert_letters(
            "i", "printf('%016x', (i % 480) * 7919)", self.moment(rows // 10)) + " FROM n")
        db.execute("PRAGMA journal_mode = WAL")
        db.close()

    @staticmethod
    def numbers(n):
        return f"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {n}) "

    @staticmethod
    def moment(n):  # of a day, the newest now
        return f"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (({n} - i) * 86400.0 / {n}) || ' seconds')"

    def size_mb(self):
        return os.path.getsize(self.db) / 1e6

    def cpu_s(self):
        return 0.0

    def close(self):
        pass


class Postgres:
    name = "PostgreSQL"

    def __init__(self, _, servers):
        self.cluster = servers.Cluster(shared_buffers="1GB", max_wal_size="16GB", maintenance_work_mem="256MB")
        self.database = self.cluster.create()
        self.url = self.cluster.url(self.database)

    def fill(self, rows):
        db = self.cluster.connect(self.database)
        for table, columns, n in (("outbox", OUTBOX, rows), ("outbox_retry", RETRY, rows // 10)):
            db.execute(insert_sql(table, columns, {"{time}": self.moment(n), "{i}": "i", "{later}": "now() + interval '1 day'",
                                                   "{now_ms}": str(int(time.time() * 1000))}) + f" FROM generate_series(1, {n}) i")
        db.execute(insert_letters("i", "lpad(to_hex((i % 480) * 7919), 16, '0')", self.moment(rows // 10)) +
                   f" FROM generate_series(1, {rows // 10}) i")
        for table in ("outbox", "outbox_retry", "dead_letters"):
            db.execute(f"VACUUM (ANALYZE) {table}")
        db.close()

    @staticmethod
    def moment(n):
        return f"now() - ({n} - i) * interval '86400 s' / {n}"

    def size_mb(self):
        db = self.cluster.connect(self.database)
        size = db.execute("SELECT pg_database_size(current_database())").fetchone()[0] / 1e6
        db.close()
        return size

    def cpu_s(self):
        """Of the server's processes that have ended: a command's own has, once it is reaped."""
        time.sleep(0.1)
        fields = pathlib.Path(f"/proc/{self.cluster.process.pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.cluster.close()


def commands(rows):
    """(what, arguments, a word of the answer that must be there)"""
    return [
        ("status", ["status"], "destination-11"),
        ("status --json", ["status", "--json"], '"estimate": true'),
        ("top --once: a refresh", ["top", "--once"], "destination-0"),
        ("relays list", ["relays", "list"], "no relay"),
        ("destinations list", ["destinations", "list"], "destination-11"),
        ("messages list", ["messages", "list"], "r-"),
        ("messages list: pending", ["messages", "list", "--status", "pending"], "r-"),
        ("messages list: retrying", ["messages", "list", "--status", "retrying"], "r-"),
        ("messages list: dead", ["messages", "list", "--status", "dead"], "m-"),
        ("messages list: of the rare destination", ["messages", "list", "--destination", "destination-11"], ""),
        ("messages explain: one of the newest", ["messages", "explain", f"m-{rows - 8}"], "m-"),
        ("messages explain: the oldest", ["messages", "explain", f"m-{rows // 10 + 3}"], "m-"),
        ("messages explain: one that is retried", ["messages", "explain", f"r-{rows // 20 + 3}"], "r-"),
        ("messages show: one that is retried", ["messages", "show", f"r-{rows // 20 + 3}"], "HTTP_503"),
    ]


def measure(store, launcher, argv, word, rounds):
    times, own, server = [], [], []
    for _ in range(rounds):
        before = store.cpu_s()
        seconds, _, cpu, out = launcher.run(*argv)
        if word not in out:
            sys.exit(f"{argv}: no {word!r} in the answer:\n{out[:2000]}")
        times.append(seconds)
        own.append(cpu)
        server.append(store.cpu_s() - before)
        if sum(times) > 60:
            break
    return {"median_s": statistics.median(times), "best_s": min(times), "longest_s": max(times),
            "cpu_s": statistics.median(own), "server_cpu_s": statistics.median(server)}


def bench(store_class, args, servers):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-bench-"))
    store = launcher = None
    figures = []
    try:
        store = store_class(folder, servers)
        config = folder / "hikyaku.yaml"
        config.write_text(f"store: {store.url}\ndestinations:\n" + "".join(
            f"  destination-{i}: {{ \"null\": {{}} }}\n" for i in range(DESTINATIONS)), encoding="ascii")
        subprocess.run([args.hikyaku, "--config", str(config), "init"], check=True, stdout=subprocess.DEVNULL)
        began = time.monotonic()
        store.fill(args.rows)
        print(f"\n== {store.name}: {args.rows:,} in the outbox, {args.rows // 10:,} to retry, {args.rows // 10:,} dead, "
              f"{store.size_mb():,.0f} MB, made in {time.monotonic() - began:.0f} s (load {os.getloadavg()[0]:.1f})", flush=True)
        launcher = Launcher(folder)
        for what, argv, word in commands(args.rows):
            if args.only and not any(w in what for w in args.only.split(",")):
                continue
            found = measure(store, launcher, [args.hikyaku, "--config", str(config), *argv], word, args.rounds)
            print(f"{what:<42} {found['median_s'] * 1000:8,.0f} ms ({found['best_s'] * 1000:,.0f} - {found['longest_s'] * 1000:,.0f})"
                  f"   CPU: own {found['cpu_s'] * 1000:,.0f} ms, server {found['server_cpu_s'] * 1000:,.0f} ms", flush=True)
            figures.append({"store": store.name, "what": what, "rows": args.rows, "load": os.getloadavg()[0], **found})
        if args.hold:
            input(f"held: {config}, {store.url}: Enter ends it ")
    finally:
        if launcher:
            launcher.close()
        if store:
            store.close()
        shutil.rmtree(folder, ignore_errors=True)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hikyaku", type=os.path.abspath)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", default="sqlite,postgres")
    parser.add_argument("--only", help="words, separated by commas: commands whose line holds one")
    parser.add_argument("--json")
    parser.add_argument("--hold", action="store_true")
    args = parser.parse_args()
    if args.rows < 2_000_000:
        parser.error("--rows: at least 2000000, or what is looked for is not there")
    stores = args.store.split(",")
    servers = load_servers() if "postgres" in stores else None
    figures = []
    for name in stores:
        if name == "postgres" and servers.why_not():
            print(f"skipped: PostgreSQL: {servers.why_not()}")
            continue
        figures += bench(Postgres if name == "postgres" else Sqlite, args, servers)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": os.uname().machine, "cores": os.cpu_count(), "figures": figures}, file, indent=1)


if __name__ == "__main__":
    main()
