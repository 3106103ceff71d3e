# SPDX-License-Identifier: Apache-2.0
"""What bench/dead.py and bench/status.py share: stores that are filled by SQL, commands that are run on them as a person would,
and what is printed about each."""
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

LONGEST_S = 300  # nothing may take longer
ENOUGH_S = 60    # a command that took so long in all its rounds gets no more of them

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
    def __init__(self, folder, hikyaku, config):
        self.folder, self.start = folder, [hikyaku, "--config", str(config)]
        env = {k: v for k, v in os.environ.items() if not k.startswith("HIKYAKU")}
        self.process = subprocess.Popen([sys.executable, "-S", "-E", "-c", LAUNCHER], cwd=folder, env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, *argv, expect=0):
        """(seconds, peak RSS in MB, CPU seconds, output)"""
        self.process.stdin.write(json.dumps(["/usr/bin/timeout", str(LONGEST_S), *self.start, *argv]) + "\n")
        self.process.stdin.flush()
        code, seconds, rss, cpu = json.loads(self.process.stdout.readline())
        out = (self.folder / "out").read_text(encoding="utf-8", errors="replace")
        if code != expect:
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


# ---- stores ----

def insert_sql(table, columns, words):
    """Both dialects understand the columns' expressions but for {words}: {i}, the row's number, {time}, its moment, and others."""
    def fill(text):
        for mark, word in words.items():
            text = text.replace(mark, word)
        return text
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(fill(v) for v in columns.values())}"


def now_ms():
    return str(int(time.time() * 1000))


class Sqlite:
    name = "SQLite"

    def __init__(self, folder, _):
        self.db = folder / "outbox.db"
        self.url = f"sqlite:{self.db}"

    def fill(self, tables, span_s):
        """tables: (name, columns, rows); the rows' moments are in the last span_s seconds, the newest now."""
        db = sqlite3.connect(self.db, isolation_level=None)
        for pragma in ("journal_mode = MEMORY", "synchronous = OFF", "cache_size = -2000000"):
            db.execute(f"PRAGMA {pragma}")
        for table, columns, n in tables:
            numbers = f"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {n}) "
            db.execute(numbers + insert_sql(table, columns, {
                "{time}": f"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (({n} - i) * {span_s}.0 / {n}) || ' seconds')",
                "{later}": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 day')",
                "{group}": "printf('%016x', (i % 480) * 7919)", "{now_ms}": now_ms(), "{i}": "i"}) + " FROM n")
        db.execute("PRAGMA journal_mode = WAL")
        db.close()

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

    def fill(self, tables, span_s):
        db = self.cluster.connect(self.database)
        for table, columns, n in tables:
            db.execute(insert_sql(table, columns, {
                "{time}": f"now() - ({n} - i) * interval '{span_s} s' / {n}", "{later}": "now() + interval '1 day'",
                "{group}": "lpad(to_hex((i % 480) * 7919), 16, '0')", "{now_ms}": now_ms(), "{i}": "i"}) +
                f" FROM generate_series(1, {n}) i")
            db.execute(f"VACUUM (ANALYZE) {table}")
        db.close()

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


# ---- a benchmark ----

class Asking:
    """To be filled in: what is in the store, and what is asked about it."""
    doc = ""
    rows, least_rows = 1_000_000, 1
    destinations, span_s = 8, 86_400

    def tables(self, rows):
        """(name, columns, rows) of each"""
        raise NotImplementedError

    def commands(self, rows):
        """(what, arguments, a word of the answer that must be there; None: it must fail) of each"""
        raise NotImplementedError

    def undo(self, args, out):
        """The command, if any, that takes back what `args` did: run before the next round."""
        return None


def measure(store, launcher, bench, args, word, rounds):
    times, peaks, own, server = [], [], [], []
    undo = None
    for _ in range(rounds):
        if undo:
            launcher.run(*undo)
        before = store.cpu_s()
        seconds, rss, cpu, out = launcher.run(*args, expect=1 if word is None else 0)
        if word and word not in out:
            sys.exit(f"{args}: no {word!r} in the answer:\n{out[:2000]}")
        undo = bench.undo(args, out)
        times.append(seconds)
        peaks.append(rss)
        own.append(cpu)
        server.append(store.cpu_s() - before)
        if sum(times) > ENOUGH_S:
            break
    return {"median_s": statistics.median(times), "best_s": min(times), "longest_s": max(times), "rss_mb": max(peaks),
            "cpu_s": statistics.median(own), "server_cpu_s": statistics.median(server)}


def print_line(what, found):
    print(f"{what:<44} {found['median_s'] * 1000:8,.0f} ms ({found['best_s'] * 1000:,.0f} - {found['longest_s'] * 1000:,.0f})"
          f"   CPU: own {found['cpu_s'] * 1000:,.0f} ms, server {found['server_cpu_s'] * 1000:,.0f} ms"
          f"   {found['rss_mb']:.1f} MB", flush=True)


def ask(store_class, bench, args, servers):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-bench-"))
    store = launcher = None
    figures = []
    try:
        store = store_class(folder, servers)
        config = folder / "hikyaku.yaml"
        config.write_text(f"store: {store.url}\ndestinations:\n" + "".join(
            f"  destination-{i}: {{ \"null\": {{}} }}\n" for i in range(bench.destinations)), encoding="ascii")
        subprocess.run([args.hikyaku, "--config", str(config), "init"], check=True, stdout=subprocess.DEVNULL)
        began, tables = time.monotonic(), bench.tables(args.rows)
        store.fill(tables, bench.span_s)
        print(f"\n== {store.name}: {', '.join(f'{n:,} in {name}' for name, _, n in tables)}, {store.size_mb():,.0f} MB, "
              f"made in {time.monotonic() - began:.0f} s (load {os.getloadavg()[0]:.1f})", flush=True)
        launcher = Launcher(folder, args.hikyaku, config)
        for what, argv, word in bench.commands(args.rows):
            if args.only and not any(w in what for w in args.only.split(",")):
                continue
            found = measure(store, launcher, bench, argv, word, args.rounds)
            print_line(what, found)
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


def main(bench):
    parser = argparse.ArgumentParser(description=bench.doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hikyaku", type=os.path.abspath)
    parser.add_argument("--rows", type=int, default=bench.rows)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", default="sqlite,postgres")
    parser.add_argument("--only", help="words, separated by commas: commands whose line holds one")
    parser.add_argument("--json")
    parser.add_argument("--hold", action="store_true", help="wait for Enter before all is removed, so that one can look at plans")
    args = parser.parse_args()
    if args.rows < bench.least_rows:
        parser.error(f"--rows: at least {bench.least_rows}, or what is looked for is not there")
    stores = args.store.split(",")
    servers = load_servers() if "postgres" in stores else None
    figures = []
    for name in stores:
        if name == "postgres" and servers.why_not():
            print(f"skipped: PostgreSQL: {servers.why_not()}")
            continue
        figures += ask(Postgres if name == "postgres" else Sqlite, bench, args, servers)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": os.uname().machine, "cores": os.cpu_count(), "figures": figures}, file, indent=1)
