#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long people wait for an answer about very many dead letters, and how much memory that takes.

usage: bench/dead.py HIKYAKU [--rows N] [--rounds N] [--store sqlite,postgres] [--only WORDS] [--json FILE]

Letters are made by SQL: nine in ten are open, of 8 destinations, 6 reasons, 480 groups, with payloads of about 300 bytes.
Each command is run several times as a process of its own: the median of its time from start to end, the shortest and the
longest, its own CPU time, and the most memory that it had (peak RSS, the program itself included). Everything runs on loopback in a temporary folder and is
gone at the end. PostgreSQL 15 or later and python3-psycopg are needed for the second store."""
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

LONGEST_S = 300  # nothing may take longer
RARE = 100_000   # every so many letters a customer comes again

# A process's peak RSS begins with that of the one that forked it: so a small one does.
LAUNCHER = """
import json, os, sys, time
for line in sys.stdin:
    argv = json.loads(line)
    began = time.monotonic()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, "err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
    _, status, usage = os.wait4(pid, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), time.monotonic() - began, usage.ru_maxrss / 1024,
                      usage.ru_utime + usage.ru_stime]), flush=True)
"""


class Launcher:
    def __init__(self, folder):
        self.folder = folder
        env = {k: v for k, v in os.environ.items() if not k.startswith("HIKYAKU")}
        self.process = subprocess.Popen([sys.executable, "-S", "-E", "-c", LAUNCHER], cwd=folder, env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, *argv):
        """(seconds, peak RSS in MB, CPU seconds, output)"""
        self.process.stdin.write(json.dumps(["/usr/bin/timeout", str(LONGEST_S), *argv]) + "\n")
        self.process.stdin.flush()
        code, seconds, rss, cpu = json.loads(self.process.stdout.readline())
        out = (self.folder / "out").read_text(encoding="utf-8", errors="replace")
        if code != 0:
            sys.exit(f"{' '.join(argv)}: exit {code}: {(self.folder / 'err').read_text(errors='replace')[-2000:]}")
        return seconds, rss, cpu, out

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def load_servers():
    """tests/e2e/postgres.py knows how to start a server and how to get rid of it. (It may start the program anew, with the
    Python that has psycopg.)"""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))
    import postgres
    return postgres


# ---- letters ----

# {i} is the letter's number; both dialects understand the rest.
COLUMNS = {
    "message_id": "'m-' || {i}",
    "original_outbox_id": "{i}",
    "event_type": "CASE {i} % 12 WHEN 0 THEN 'OrderCreated' WHEN 1 THEN 'OrderPaid' ELSE 'Event' || ({i} % 12) END",
    "destination": "'destination-' || ({i} % 8)",
    "message_key": "'k-' || ({i} % 50000)",
    "content_type": "'application/json'",
    "correlation_id": "'c-' || ({i} / 3)",
    "reason_code": "CASE {i} % 20 WHEN 0 THEN 'VALIDATION_ERROR' WHEN 1 THEN 'HTTP_404' WHEN 2 THEN 'HTTP_422' "
                   "WHEN 3 THEN 'TIMEOUT' WHEN 4 THEN 'HTTP_400' ELSE 'RETRY_EXHAUSTED' END",
    "failure_class": "CASE WHEN {i} % 20 < 5 THEN 'permanent' ELSE 'transient' END",
    "fault": "CASE {i} % 20 WHEN 0 THEN 'pipeline' ELSE 'destination' END",
    "fingerprint": "{group}",
    "error_message": "'the receiver answered with an error: order ' || {i} || ' is not there'",
    "attempts": "1 + {i} % 12",
    "status": "CASE WHEN {i} % 50 = 7 THEN 'discarded' WHEN {i} % 25 IN (3, 4) THEN 'resolved' ELSE 'failed' END",
    "resolution": "CASE WHEN {i} % 50 = 7 THEN 'ann: test data' WHEN {i} % 25 IN (3, 4) THEN 'delivered' END",
    "resolved_at": "CASE WHEN {i} % 50 = 7 OR {i} % 25 IN (3, 4) THEN {time} END",
    "requeues": "CASE WHEN {i} % 25 IN (3, 4) THEN 1 ELSE 0 END",
    "message_created_at": "{time}",
    "first_failed_at": "{time}",
    "last_failed_at": "{time}",
    "last_attempt_at": "{time}",
    "created_at": "{time}",
    "payload": "'{\"order\":' || {i} || ',\"customer\":{\"id\":' || ({i} % " + str(RARE) + ") || ',\"name\":\"n-' || {i} || "
               "'\"},\"items\":[{\"sku\":\"A-1\",\"qty\":2},{\"sku\":\"B-22\",\"qty\":1}],\"text\":\"" + "x" * 200 + "\"}'",
}


def insert_sql(i, group, moment):
    def fill(text):
        return text.replace("{i}", i).replace("{group}", group).replace("{time}", moment)
    return f"INSERT INTO dead_letters ({', '.join(COLUMNS)}) SELECT {', '.join(fill(v) for v in COLUMNS.values())}"


class Sqlite:
    name = "SQLite"

    def __init__(self, folder, _):
        self.db = folder / "outbox.db"
        self.url = f"sqlite:{self.db}"

    def fill(self, rows):
        db = sqlite3.connect(self.db, isolation_level=None)
        for pragma in ("journal_mode = MEMORY", "synchronous = OFF", "cache_size = -262144"):
            db.execute(f"PRAGMA {pragma}")
        # 30 days, the newest now
        moment = f"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (({rows} - {{i}}) * 2592000.0 / {rows}) || ' seconds')"
        numbers = f"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
        db.execute(numbers + insert_sql("i", "printf('%016x', (i % 480) * 7919)", moment.replace("{i}", "i")) + " FROM n")
        db.execute("PRAGMA journal_mode = WAL")
        db.close()

    def size_mb(self):
        return os.path.getsize(self.db) / 1e6

    def close(self):
        pass


class Postgres:
    name = "PostgreSQL"

    def __init__(self, _, servers):
        self.cluster = servers.Cluster(shared_buffers="1GB", max_wal_size="8GB", maintenance_work_mem="256MB")
        self.database = self.cluster.create()
        self.url = self.cluster.url(self.database)

    def fill(self, rows):
        db = self.cluster.connect(self.database)
        moment = f"now() - ({rows} - i) * interval '2592000 s' / {rows}"
        db.execute(insert_sql("i", "lpad(to_hex((i % 480) * 7919), 16, '0')", moment) + f" FROM generate_series(1, {rows}) i")
        db.execute("VACUUM (ANALYZE) dead_letters")
        db.close()

    def size_mb(self):
        db = self.cluster.connect(self.database)
        size = db.execute("SELECT pg_total_relation_size('dead_letters')").fetchone()[0] / 1e6
        db.close()
        return size

    def close(self):
        self.cluster.close()


# ---- commands ----

def commands(rows):
    """(what, arguments, a word of the answer that must be there)"""
    middle = str(rows // 2)
    return [
        ("dead list: first page", ["dead", "list"], "there are more"),
        ("dead list: a page from the middle", ["dead", "list", "--after", middle], "there are more"),
        ("dead list: from the middle, oldest first", ["dead", "list", "--oldest", "--after", middle], "there are more"),
        ("dead list: one reason (1 in 20)", ["dead", "list", "--filter", "reason:HTTP_422"], "HTTP_422"),
        ("dead list: one reason, from the middle", ["dead", "list", "--filter", "reason:HTTP_422", "--after", middle], "HTTP_422"),
        ("dead list: a reason that none has", ["dead", "list", "--filter", "reason:HTTP_451"], "no dead letters fit"),
        ("dead list: a group", ["dead", "list", "--group", f"{7919 * 8:016x}"], "destination-0"),
        ("dead list: destination, type and age", ["dead", "list", "--filter", "destination:destination-0 type:Order* newer:7d"],
         "OrderCreated"),
        ("dead list: one message", ["dead", "list", "--filter", f"id:m-{rows // 3 * 2 + 5}", "--status", "any"], "destination-"),
        ("dead list: payload path, frequent match", ["dead", "list", "--filter", "payload.items[0].sku:A-1"], "there are more"),
        (f"dead list: payload path, 1 in {RARE:,}", ["dead", "list", "--filter", "payload.customer.id:42"], "destination-"),
        ("dead list: text that none has", ["dead", "list", "--filter", 'text:"no such text"'], "no dead letters fit"),
        ("dead groups", ["dead", "groups"], "RETRY_EXHAUSTED"),
        ("dead groups: of one destination", ["dead", "groups", "--destination", "destination-3"], "destination-3"),
        ("dead stats", ["dead", "stats"], "by reason"),
        ("dead show", ["dead", "show", middle], "payload"),
        ("redrive plan: all that are open", ["redrive", "plan", "--status", "failed"], "letters fit"),
        ("redrive plan: one destination and reason",
         ["redrive", "plan", "--filter", "destination:destination-0 reason:RETRY_EXHAUSTED"], "letters fit"),
        ("redrive start: all that are open", ["redrive", "start", "--status", "failed", "--yes", "--reason", "bench"], "started"),
        ("redrive start: by payload path",
         ["redrive", "start", "--filter", "payload.customer.id:42", "--yes", "--reason", "bench"], "started"),
        ("redrive list", ["redrive", "list"], "running"),
        ("status", ["status"], "dead"),
    ]


def measure(launcher, hikyaku, config, args, word, rounds):
    times, rss, cpu = [], [], []
    job = None
    for _ in range(rounds):
        if job:  # or the next one of the same letters would be refused
            launcher.run(hikyaku, "--config", str(config), "redrive", "cancel", job, "--reason", "bench")
        seconds, peak, busy, out = launcher.run(hikyaku, "--config", str(config), *args)
        if word not in out:
            sys.exit(f"{args}: no {word!r} in the answer:\n{out[:2000]}")
        job = out.split()[1] if args[:2] == ["redrive", "start"] else None
        times.append(seconds)
        rss.append(peak)
        cpu.append(busy)
        if sum(times) > 30:
            break
    return statistics.median(times), min(times), max(times), max(rss), statistics.median(cpu)


def bench(store_class, args, servers):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-bench-"))
    store = launcher = None
    figures = []
    try:
        store = store_class(folder, servers)
        config = folder / "hikyaku.yaml"
        config.write_text(f"store: {store.url}\n" + "".join(
            ["destinations:\n", *(f"  destination-{i}: {{ \"null\": {{}} }}\n" for i in range(8))]), encoding="ascii")
        subprocess.run([args.hikyaku, "--config", str(config), "init"], check=True, stdout=subprocess.DEVNULL)
        began = time.monotonic()
        store.fill(args.rows)
        print(f"\n== {store.name}: {args.rows:,} dead letters, {store.size_mb():,.0f} MB, made in {time.monotonic() - began:.0f} s "
              f"(load {os.getloadavg()[0]:.1f})", flush=True)
        launcher = Launcher(folder)
        for what, argv, word in commands(args.rows):
            if args.only and not any(w in what for w in args.only.split(",")):
                continue
            middle, best, longest, rss, cpu = measure(launcher, args.hikyaku, config, argv, word, args.rounds)
            print(f"{what:<44} {middle * 1000:8,.0f} ms ({best * 1000:,.0f} - {longest * 1000:,.0f}, own CPU {cpu * 1000:,.0f}) "
                  f"{rss:6.1f} MB", flush=True)
            figures.append({"store": store.name, "what": what, "rows": args.rows, "median_s": middle, "best_s": best, "longest_s": longest,
                            "cpu_s": cpu, "rss_mb": rss, "load": os.getloadavg()[0]})
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
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", default="sqlite,postgres")
    parser.add_argument("--only", help="words, separated by commas: commands whose line holds one")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.rows < 2000:
        parser.error("--rows: at least 2000, or what is looked for is not there")
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
