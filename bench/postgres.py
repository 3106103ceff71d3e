#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the relay does on PostgreSQL, beside the limits of the same machine and beside other queues, in the same run.

usage: bench/postgres.py HIKYAKU [--only PART[,PART…]] [--rows N] [--rounds N] [--held SECONDS] [--backlog ROWS] [--json FILE]

Parts: drain, http, held, backlog, relays, latency. Needs PostgreSQL 15 or later, nginx, python3-psycopg, and
bench_store_pg of the same build for the bare loops; graphile-worker and pg-boss are fetched by npm, or left out when it
cannot. Everything runs on loopback, in temporary folders, and is stopped at the end. What is compared takes turns within a
round; every figure is the median over the rounds, a ratio is the median of each round's ratio. Read the ratios: absolute
figures move with the machine. One server with the same settings serves all; fsync is on."""
import argparse
import atexit
import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing beside the sources

from relay import dest, free_port, percentile, wait_port, wrk

HERE = os.path.dirname(os.path.realpath(__file__))
TICK = os.sysconf("SC_CLK_TCK")
PEERS = {"graphile-worker": "0.17.3", "pg-boss": "10.4.2"}
PEER_NEEDS = ["pg", "undici@7"]
PEER_ROWS = 50000
DRAIN_S = 600  # nothing takes longer
WRITERS = 4
DRAIN_AIMS = {"classic": 3, "w": 0.7}
PEER_AIMS = {"graphile-worker": 3, "pg-boss": 2.5}
RSS_AIM = 30

# The null destination shows what the relay itself can do: as many in flight as two batches are.
WIDE = "relay: { batch: 500, concurrency: 1000 }\n"
NULL = 'destinations: { sink: { "null": {}, limits: { concurrency: 1000 } } }\n'
NULL_AS_IS = 'destinations: { sink: { "null": {} } }\n'
NO_SENT = "retention: { sent: 0s }\n"


def load_servers():
    """tests/e2e/postgres.py knows how to start a server and how to get rid of it. (Its name is ours.)"""
    spec = importlib.util.spec_from_file_location("servers", os.path.join(HERE, "../tests/e2e/postgres.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


servers = load_servers()


# ---- what is printed ----

class Report:
    def __init__(self, path):
        self.path, self.items, self.rss = path, [], []

    def part(self, name, text):
        print(f"\n== {name}: {text} (load {os.getloadavg()[0]:.1f})", flush=True)

    def say(self, text):
        print(f"   {text}", flush=True)

    def figure(self, name, values, unit, aim=None, least=True, note=""):
        """One line: the median, smallest and largest, and the aim: at least so much, or at most."""
        middle = statistics.median(values)
        met = None if aim is None else (middle >= aim if least else middle <= aim)
        goal = "" if aim is None else f"   aim {'>=' if least else '<='} {aim:g}: {'reached' if met else 'MISSED'}"
        spread = f" ({number(min(values))} - {number(max(values))})" if len(values) > 1 else ""
        print(f"{name:<62} {number(middle):>9} {unit:<6}{spread}{goal}{'   ' + note if note else ''}", flush=True)
        self.items.append({"name": name, "median": middle, "unit": unit, "values": list(values), "aim": aim,
                           "at_least": least, "met": met, "note": note, "load": os.getloadavg()[0]})

    def skip(self, what, why):
        print(f"skipped: {what}: {why}", flush=True)
        self.items.append({"name": what, "skipped": why})

    def finish(self):
        if self.rss:
            print()
            self.figure("RSS of the relay, the most that was seen in any part", [max(self.rss)], "MB", RSS_AIM, False)

    def save(self):
        if self.path:
            with open(self.path, "w", encoding="utf-8") as f:
                json.dump({"machine": os.uname().machine, "cores": os.cpu_count(), "figures": self.items}, f, indent=1)


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


# ---- the machine ----

def stat(pid):
    """CPU seconds of a process, of its children that are gone, and its parent."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0, 0, 0
    own, gone = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return own / TICK, gone / TICK, int(fields[1])


class Server:
    """PostgreSQL, and a database with our tables."""

    def __init__(self, args, **settings):
        self.cluster = servers.Cluster(
            fsync="on", synchronous_commit="on", shared_buffers="2GB", max_wal_size="8GB", checkpoint_timeout="30min",
            checkpoint_completion_target=0.9, maintenance_work_mem="256MB", effective_cache_size="8GB", **settings)
        self.hikyaku = args.hikyaku
        self.name = self.cluster.create()
        self.url = self.cluster.url(self.name)
        self.db = self.connect()
        self.init()

    def connect(self):
        db = servers.psycopg.connect(self.url, autocommit=True)
        for name in ("enable_seqscan", "enable_bitmapscan", "jit"):  # to look for a row among those that are gone
            db.execute(f"SET {name} = off")
        return db

    def init(self, *options):
        subprocess.run([self.hikyaku, "--db", self.url, "init", *options], check=True, stdout=subprocess.DEVNULL)

    def value(self, sql):
        return self.db.execute(sql).fetchone()[0]

    def wal(self):
        return int(self.value("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))

    def cpu_s(self):
        root = self.cluster.process.pid
        own, gone, _ = stat(root)
        children = (stat(pid) for pid in os.listdir("/proc") if pid.isdigit())
        return own + gone + sum(cpu for cpu, _, parent in children if parent == root)

    def empty(self):
        self.db.execute("TRUNCATE outbox, outbox_sent, outbox_retry, outbox_claim, outbox_destination")
        self.db.execute("CHECKPOINT")  # or the first change of each page would log all of it

    def insert(self, rows, destination="sink"):
        """In one transaction: the highest id, and when it was committed."""
        self.db.execute("INSERT INTO outbox (destination, event_type, payload) SELECT %s, 'Bench', %s "
                        "FROM generate_series(1, %s)", (destination, payload(), rows))
        committed = time.monotonic()
        return self.last_id(), committed

    def last_id(self):
        return int(self.value("SELECT last_value FROM outbox_id_seq"))

    def load(self, rows):
        self.empty()
        last, _ = self.insert(rows)
        self.db.execute("VACUUM ANALYZE outbox")
        return last

    def wait_drained(self, last, rows):
        """When nothing of the last `rows` was left. Looks at the end until it is gone: the dead are long to walk over."""
        end = time.monotonic() + DRAIN_S
        while True:
            now = time.monotonic()
            tail = self.db.execute("SELECT 1 FROM outbox WHERE id > %s LIMIT 1", (last - 200,)).fetchone()
            if not tail and not self.value(f"SELECT EXISTS (SELECT 1 FROM outbox WHERE id > {last - rows}) "
                                           "OR EXISTS (SELECT 1 FROM outbox_retry)"):
                return now
            if now > end:
                sys.exit("the relay did not drain in time")
            time.sleep(0.02)

    def close(self):
        self.db.close()
        self.cluster.close()


def payload():
    text = {"order": 42, "text": ""}
    return json.dumps({**text, "text": "x" * (500 - len(json.dumps(text)))})


class Nginx:
    """Answers 204 to everything; on its second port it also writes down when and to what id."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="hikyaku-nginx-")
        self.port, self.logged = free_port(), free_port()
        self.log = os.path.join(self.folder, "arrived")
        conf = os.path.join(self.folder, "nginx.conf")
        temp = "".join(f"{kind}_temp_path {self.folder}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(conf, "w", encoding="ascii") as f:
            f.write(f"""daemon off; pid {self.folder}/nginx.pid; error_log {self.folder}/nginx.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{ {temp} keepalive_requests 1000000000; log_format arrived '$msec $http_webhook_id'; access_log off;
server {{ listen 127.0.0.1:{self.port} backlog=4096; location / {{ return 204; }} location /count {{ stub_status; }} }}
server {{ listen 127.0.0.1:{self.logged}; access_log {self.log} arrived; location / {{ return 204; }} }} }}""")
        self.process = subprocess.Popen(["nginx", "-c", conf, "-p", self.folder], stderr=subprocess.DEVNULL)
        wait_port(self.port)

    def arrivals(self):
        """Wall-clock seconds by message id."""
        with open(self.log, encoding="ascii", errors="replace") as f:
            lines = f.read().split("\n")
        return {name: float(at) for at, name in (line.split(" ", 1) for line in lines if " " in line)}

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Relay:
    """One hikyaku run."""

    def __init__(self, server, config):
        self.folder = tempfile.mkdtemp(prefix="hikyaku-bench-")
        path = os.path.join(self.folder, "hikyaku.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f'store: "{server.url}"\nadmin: {{ listen: "127.0.0.1:0" }}\n{config}')
        self.log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([server.hikyaku, "--config", path, "run"], stderr=self.log)
        atexit.register(self.kill)

    def cpu_s(self):
        return stat(self.process.pid)[0]

    def rss_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.log.seek(0)
        text = self.log.read()
        self.kill()
        if code:
            sys.exit(f"the relay ended with {code}:\n{text[-2000:]}")

    def kill(self):
        atexit.unregister(self.kill)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Bench:
    def __init__(self, args):
        self.args, self.report, self.nginx, self.shared = args, Report(args.json), Nginx(), None

    def server(self):
        if not self.shared:
            self.shared = Server(self.args)
        return self.shared

    def close(self):
        self.nginx.close()
        if self.shared:
            self.shared.close()

    def http(self, extra=""):
        return "destinations:\n" + dest("sink", self.nginx.port, extra)

    def drained(self, config, rows):
        """A relay that finds `rows` when it starts: rate from its start to the last row's end, and what a message cost."""
        server = self.server()
        last = server.load(rows)
        wal, cpu, start = server.wal(), server.cpu_s(), time.monotonic()
        relay = Relay(server, config)
        took = server.wait_drained(last, rows) - start
        got = {"rate": rows / took, "wal": (server.wal() - wal) / rows, "relay_us": relay.cpu_s() / rows * 1e6,
               "server_us": (server.cpu_s() - cpu) / rows * 1e6, "rss": relay.rss_mb()}
        relay.stop()
        self.report.rss.append(got["rss"])
        return got

    def bare(self, variant, rows):
        """A loop of bench_store_pg; None when it was not built."""
        program = os.path.join(os.path.dirname(os.path.realpath(self.args.hikyaku)), "../../bench/bench_store_pg")
        if not os.path.exists(program):
            return None
        env = {**os.environ, "HIKYAKU_BENCH_PG": self.server().url}
        done = subprocess.run([program, "--only", variant, str(rows)], env=env, capture_output=True, text=True, check=True,
                              timeout=DRAIN_S)
        rate, wal, own, server = (float(v) for v in done.stdout.split())
        return {"rate": rate, "wal": wal, "relay_us": own, "server_us": server}

    def take_turns(self, variants):
        """{name: function} -> {name: {figure: [each round's]}}"""
        got = {name: {} for name in variants}
        for turn in range(self.args.rounds):
            for name, run in variants.items():
                one = run() or {}
                print(f"   round {turn + 1}: {name}: {one.get('rate', 0):,.0f}/s", file=sys.stderr, flush=True)
                for key, value in one.items():
                    got[name].setdefault(key, []).append(value)
        return {name: figures for name, figures in got.items() if figures}

    def compare(self, got, name, other, label, aim=None):
        """By rate; and by CPU, here and in the server, which a busy machine bends less."""
        mine, theirs = got[name], got[other]
        self.report.figure(label, [a / b for a, b in zip(mine["rate"], theirs["rate"])], "x", aim)
        if "server_us" in mine and "server_us" in theirs:
            cpu = [(c + d) / (a + b) for a, b, c, d in zip(mine["relay_us"], mine["server_us"], theirs["relay_us"],
                                                           theirs["server_us"])]
            self.report.figure(f"{label}, by CPU", cpu, "x")

    def costs(self, got, names, wal_aims=()):
        for name in names:
            figures, wal_aim = got[name], dict(wal_aims).get(name)
            self.report.figure(f"{name}: rate", figures["rate"], "/s")
            if "wal" in figures:
                self.report.figure(f"{name}: WAL", figures["wal"], "B/msg", wal_aim, False)
            if "server_us" in figures:
                own, server = statistics.median(figures["relay_us"]), statistics.median(figures["server_us"])
                both = [a + b for a, b in zip(figures["relay_us"], figures["server_us"])]
                self.report.figure(f"{name}: CPU", both, "us/msg", note=f"own {own:.1f} + PostgreSQL {server:.1f}")
            if "rss" in figures:
                self.report.figure(f"{name}: peak RSS", figures["rss"], "MB")


# ---- parts ----

def drain(bench):
    """Nothing behind it: claim, hand over, settle."""
    rows = bench.args.rows
    bench.report.part("drain", f"{rows:,} rows of 500 bytes to a null destination, beside bare loops in C, "
                      f"batches of 500, {bench.args.rounds} rounds")
    relays = {"relay, sent 0s": lambda: bench.drained(NO_SENT + WIDE + NULL, rows),
              "relay, sent kept (default)": lambda: bench.drained(WIDE + NULL, rows),
              "relay, sent 0s, 64 in flight (default)": lambda: bench.drained(NO_SENT + NULL_AS_IS, rows)}
    loops = {key: lambda key=key: bench.bare(key, rows) for key in ("classic", "5", "w", "w64")}
    got = bench.take_turns({**loops, **relays})
    bench.costs(got, got, {"relay, sent 0s": 200}.items())
    for name in relays:
        for other in loops:
            if other not in got or (other == "w64") != ("64" in name):
                continue
            aim = DRAIN_AIMS.get(other) if name == "relay, sent 0s" else None
            bench.compare(got, name, other, f"{name} / bare {other}", aim)
    if "w" not in got:
        bench.report.skip("bare loops", "bench_store_pg was not built beside the program")


class Peers:
    """graphile-worker and pg-boss, one node process each, in a database of their own on the same server."""

    def __init__(self, bench):
        self.bench, self.server = bench, bench.server()
        self.folder = tempfile.mkdtemp(prefix="hikyaku-peers-")
        self.why_not = self.fetch()
        self.env = {**os.environ, "PEERS_DIR": self.folder, "PEERS_PG": self.server.cluster.url(self.server.cluster.create()),
                    "PEERS_HOOK": f"http://127.0.0.1:{bench.nginx.port}/"}

    def fetch(self):
        if not shutil.which("npm"):
            return "npm is not installed"
        wanted = [f"{name}@{version}" for name, version in PEERS.items()] + PEER_NEEDS
        try:
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", self.folder, *wanted],
                                  capture_output=True, text=True, timeout=180, check=False)
        except subprocess.TimeoutExpired:
            return "npm did not fetch them within three minutes"
        errors = [line for line in done.stderr.splitlines() if "npm ERR!" in line or "npm error" in line]
        return None if done.returncode == 0 else "npm: " + (errors or ["failed"])[0]

    def node(self, *args):
        done = subprocess.run(["node", os.path.join(HERE, "peers.mjs"), *args], env=self.env, capture_output=True, text=True,
                              timeout=DRAIN_S, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(args)}:\n{done.stderr[-2000:]}")
        return done.stdout

    def run(self, library, mode):
        self.node("seed", library, str(PEER_ROWS))
        self.server.db.execute("CHECKPOINT")
        wal, cpu = self.server.wal(), self.server.cpu_s()
        got = json.loads(self.node(mode, library, str(PEER_ROWS)))
        if got["done"] < PEER_ROWS:
            self.bench.report.say(f"{library}, {mode}: stopped at its time limit with {got['done']} done")
        return {"rate": got["rate"], "relay_us": got["cpu_us"], "rss": got["rss_mb"],
                "wal": (self.server.wal() - wal) / got["done"], "server_us": (self.server.cpu_s() - cpu) / got["done"] * 1e6}

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def http(bench):
    """To nginx, beside others that POST the same (64 connections), and beside wrk, which does nothing else."""
    rows = bench.args.rows
    bench.report.part("http", f"{rows:,} rows to nginx, 64 in flight unless said (others: {PEER_ROWS:,} jobs), "
                      f"{bench.args.rounds} rounds")
    peers = Peers(bench)
    more = ", limits: { concurrency: 256 }"
    variants = {"POST: relay, sent 0s": lambda: bench.drained(NO_SENT + bench.http(), rows),
                "POST: relay, sent kept (default)": lambda: bench.drained(bench.http(), rows),
                "POST: relay, sent 0s, 256 in flight": lambda: bench.drained(NO_SENT + bench.http(more), rows),
                "no-op: relay, sent 0s": lambda: bench.drained(NO_SENT + WIDE + NULL, rows)}
    if shutil.which("wrk"):
        variants["POST: wrk alone"] = lambda: {"rate": wrk(bench.nginx.port, 64, 3)}
    if peers.why_not:
        bench.report.skip("graphile-worker, pg-boss", peers.why_not)
    else:
        bench.report.say("others: " + ", ".join(f"{name} {version}" for name, version in PEERS.items()))
        variants |= {f"{word}: {name}": lambda name=name, mode=mode: peers.run(name, mode)
                     for name in PEERS for word, mode in (("POST", "http"), ("no-op", "noop"))}
    got = bench.take_turns(variants)
    peers.close()
    bench.costs(got, got)
    for name in (name for name in got if ": relay" in name):
        for other in (other for other in got if ": relay" not in other and other[:5] == name[:5]):
            who = other.split(": ")[1]
            bench.compare(got, name, other, f"{name} / {who}", PEER_AIMS.get(who) if name.startswith("POST") else None)


def slices(bench, seconds, rows):
    """Floods of `rows`, each drained, for so long: rate and the server's CPU of each. At most 60, evenly spread."""
    server, got = bench.server(), []
    end, pause = time.monotonic() + seconds, seconds / 60
    while not got or time.monotonic() < end:
        began = time.monotonic()
        last, start = server.insert(rows)
        cpu = server.cpu_s()
        took = server.wait_drained(last, rows) - start
        got.append((rows / took, (server.cpu_s() - cpu) / rows * 1e6))
        time.sleep(max(0, min(began + pause, end) - time.monotonic()))
    return got


def held(bench):
    """Another session's snapshot keeps vacuum from removing anything. A relay runs all the time; flood follows flood."""
    seconds, rows = bench.args.held, min(bench.args.rows, 50000)
    rounds = bench.args.rounds if seconds <= 60 else 1
    bench.report.part("held", f"a snapshot held for {seconds:.0f} s, floods of {rows:,} rows to a null destination, "
                      f"{rounds} rounds")
    for what, config, n in (("1,000 in flight", WIDE + NULL, rows), ("64 in flight (default)", NULL_AS_IS, rows // 5)):
        of_rate, of_cpu, bend = held_with(bench, NO_SENT + config, n, rounds)
        bench.report.figure(f"{what}: rate with the snapshot held / without", of_rate, "x", 0.95)
        bench.report.figure(f"{what}: rate of the last third while held / the first", bend, "x", 0.95)
        bench.report.figure(f"{what}: the server's CPU per message, held / without", of_cpu, "x")


def held_with(bench, config, rows, rounds):
    server, seconds = bench.server(), bench.args.held
    server.empty()
    relay = Relay(server, config)
    slices(bench, 1, rows)
    of_rate, of_cpu, bend = [], [], []
    for turn in range(rounds):
        free = slices(bench, min(seconds, 60), rows)
        with servers.psycopg.connect(server.url) as other:
            other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            other.execute("SELECT count(*) FROM outbox_relay")
            during = slices(bench, seconds, rows)
        of_rate.append(middle_of(during, 0) / middle_of(free, 0))
        of_cpu.append(middle_of(during, 1) / middle_of(free, 1))
        third = max(1, len(during) // 3)
        bend.append(middle_of(during[-third:], 0) / middle_of(during[:third], 0))
        print(f"   round {turn + 1}: {of_rate[-1]:.2f} of the rate, {len(during)} floods", file=sys.stderr, flush=True)
        for table in ("outbox", "outbox_relay", "outbox_claim"):
            server.db.execute(f"VACUUM {table}")
    bench.report.rss.append(relay.rss_mb())
    relay.stop()
    return of_rate, of_cpu, bend


def middle_of(pairs, which):
    return statistics.median(pair[which] for pair in pairs)


def backlog(bench):
    """Many rows: all to be sent, beside a small table; and for a destination that is paused, beside one that is not."""
    rows, some = bench.args.backlog, 100000
    bench.report.part("backlog", f"{rows:,} rows wait")
    server = Server(bench.args, shared_preload_libraries="pg_stat_statements")
    sink = '"null": {}, limits: { concurrency: 1000 }'
    config = f"{NO_SENT}{WIDE}destinations: {{ sink: {{ {sink} }}, full: {{ {sink} }} }}\n"
    try:
        server.db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        server.insert(some, "full")
        server.db.execute("VACUUM ANALYZE outbox")
        small = all_due(bench, server, config, some, f"{some:,} rows, all due")
        start = time.monotonic()
        for done in range(0, rows, 1000000):
            server.insert(min(rows - done, 1000000), "full")
        server.db.execute("VACUUM ANALYZE outbox")
        bench.report.say(f"filled in {time.monotonic() - start:.0f} s, "
                         f"{server.value('SELECT pg_total_relation_size($$outbox$$)') / 1e6:,.0f} MB")
        large = all_due(bench, server, config, some, f"{rows:,} rows, all due")
        bench.report.figure(f"rate of the first {some:,}: of {rows:,} / of {some:,}", [large / small], "x")
        server.db.execute("INSERT INTO outbox_destination (name, paused, actor, reason, since_ms) "
                          "VALUES ('full', true, 'bench', '', 0)")
        behind_paused(bench, server, config)
    finally:
        server.close()


def behind_paused(bench, server, config):
    """Messages to a healthy destination that were written behind all the paused ones, which a relay that starts walks over
    once: the first of them waits for that, those that come later do not."""
    start = time.monotonic()
    relay = Relay(server, config)
    first = gone_after(server)
    if first is None:
        bench.report.skip("behind the paused rows", f"the first message did not go within {DRAIN_S} s")
    else:
        bench.report.figure("behind the paused rows: a start to the first message gone", [time.monotonic() - start], "s")
        waits = []
        for _ in range(max(5, bench.args.rounds)):
            time.sleep(0.3)
            waits.append(gone_after(server) or DRAIN_S * 1000)
        bench.report.figure("behind the paused rows: INSERT to gone", waits, "ms",
                            note="one at a time: an idle relay's poll is in it")
        before = relay.cpu_s()
        time.sleep(3)
        bench.report.figure("behind the paused rows: the relay's CPU, idle", [(relay.cpu_s() - before) / 3 * 100], "%")
    bench.report.figure("behind the paused rows: peak RSS", [relay.rss_mb()], "MB", RSS_AIM, False)
    bench.report.rss.append(relay.rss_mb())
    relay.stop()


def gone_after(server):
    """Milliseconds from an INSERT until the row is gone; None: not in time."""
    last, start = server.insert(1)
    while server.db.execute("SELECT 1 FROM outbox WHERE id = %s", (last,)).fetchone():
        if time.monotonic() > start + DRAIN_S:
            return None
        time.sleep(0.002)
    return (time.monotonic() - start) * 1000


# The relay's statements, by what stands in them: those that come first, first.
STATEMENTS = {"claim": 'INSERT INTO "outbox_claim"', "settle": 'DELETE FROM "outbox"', "reading what was claimed": ".fits",
              "scan": 'FROM "outbox" o WHERE'}


def all_due(bench, server, config, some, what):
    """The first `some` rows: the rate, and how long the relay's own statements take."""
    server.db.execute("SELECT pg_stat_statements_reset()")
    first, start = int(server.value("SELECT id FROM outbox ORDER BY id LIMIT 1")), time.monotonic()
    relay = Relay(server, config)
    while server.db.execute("SELECT 1 FROM outbox WHERE id BETWEEN %s AND %s LIMIT 1",
                            (first + some - 200, first + some - 1)).fetchone():
        time.sleep(0.02)
    rate, rss = some / (time.monotonic() - start), relay.rss_mb()
    relay.stop()
    bench.report.figure(f"{what}: rate of the first {some:,}", [rate], "/s")
    bench.report.figure(f"{what}: peak RSS", [rss], "MB", RSS_AIM, False)
    bench.report.rss.append(rss)
    seen = server.db.execute("SELECT query, calls, total_exec_time, max_exec_time FROM pg_stat_statements").fetchall()
    for name, part in STATEMENTS.items():
        these = [row for row in seen if part in row[0]]
        seen = [row for row in seen if part not in row[0]]
        calls = sum(row[1] for row in these)
        if calls:
            bench.report.figure(f"{what}: {name}, mean", [sum(row[2] for row in these) / calls], "ms",
                                note=f"{calls} times, longest {max(row[3] for row in these):.1f} ms")
    return rate


def relays(bench):
    """They stand ready and have shared the shards out; then all rows come in one transaction."""
    rows = bench.args.rows
    bench.report.part("relays", f"1, 2 and 4 relays on {os.cpu_count()} cores, a flood of {rows:,} rows, "
                      f"{bench.args.rounds} rounds")
    kinds = {"null": NO_SENT + WIDE + NULL, "POST": NO_SENT + bench.http()}
    got = bench.take_turns({f"{kind}, {n} relay{'s' * (n > 1)}": lambda n=n, config=config: flooded(bench, n, config, rows)
                            for kind, config in kinds.items() for n in (1, 2, 4)})
    bench.costs(got, got)
    for kind in kinds:
        for n in (2, 4):
            bench.compare(got, f"{kind}, {n} relays", f"{kind}, 1 relay", f"{kind}, {n} relays / 1")


def flooded(bench, n, config, rows):
    server = bench.server()
    server.empty()
    many = [Relay(server, f"{config}" + ("" if "relay:" in config else "relay: { batch: 500 }\n")) for _ in range(n)]
    end = time.monotonic() + 60
    while not server.value(f"SELECT count(DISTINCT lane) = {n} AND count(lane) = 64 AND max(least(x, {-(-64 // n)})) = max(x) "
                           "FROM (SELECT lane, count(*) OVER (PARTITION BY lane) AS x FROM outbox_shard) s"):
        if time.monotonic() > end:
            sys.exit("the relays did not share the shards out")
        time.sleep(0.1)
    own = sum(r.cpu_s() for r in many)
    last, start = server.insert(rows)
    cpu = server.cpu_s()
    took = server.wait_drained(last, rows) - start
    got = {"rate": rows / took, "relay_us": (sum(r.cpu_s() for r in many) - own) / rows * 1e6,
           "server_us": (server.cpu_s() - cpu) / rows * 1e6}
    bench.report.rss += [r.rss_mb() for r in many]
    for relay in many:
        relay.stop()
    return got


def write(url, rate, seconds, name, out):
    """An application: one INSERT a transaction, at a steady rate; when each was committed, and how long it took."""
    db, done = servers.psycopg.connect(url, autocommit=True), {}
    start = time.monotonic()
    for n in range(int(rate * seconds)):
        time.sleep(max(0, start + n / rate - time.monotonic()))
        began = time.time()
        db.execute("INSERT INTO outbox (destination, event_type, payload, message_id) VALUES ('sink', 'Bench', %s, %s)",
                   (payload(), f"{name}-{n}"))
        now = time.time()
        done[f"{name}-{n}"] = (now, now - began)
    out.put(done)


def measure_latency(bench, config, rate, tag):
    server = bench.server()
    server.empty()
    relay = Relay(server, config)
    time.sleep(1)
    out, n, seconds = multiprocessing.Queue(), WRITERS, bench.args.seconds
    writers = [multiprocessing.Process(target=write, args=(server.url, rate / n, seconds, f"{tag}-{i}", out)) for i in range(n)]
    for writer in writers:
        writer.start()
    written = {}
    for _ in writers:
        written |= out.get(timeout=seconds * 10 + 60)
    for writer in writers:
        writer.join()
    server.wait_drained(server.last_id(), len(written))
    bench.report.rss.append(relay.rss_mb())
    relay.stop()
    arrived = bench.nginx.arrivals()
    missing = [name for name in written if name not in arrived]
    if missing:
        sys.exit(f"{len(missing)} messages did not arrive")
    delays = [(arrived[name] - at) * 1000 for name, (at, _) in written.items()]
    inserts = [took * 1000 for _, took in written.values()]
    times = [at for at, _ in written.values()]
    return {"written": len(times) / max(max(times) - min(times), 0.001), "p50": percentile(delays, .5), "p99": percentile(delays, .99), "insert p50": percentile(inserts, .5),
            "insert p99": percentile(inserts, .99)}


def latency(bench):
    """From COMMIT's answer to the request's arrival at nginx, whose clock counts milliseconds."""
    server, config = bench.server(), "destinations:\n" + dest("sink", bench.nginx.logged)
    bench.report.part("latency", f"{bench.args.seconds} s each, {WRITERS} writers, {bench.args.rounds} rounds")
    help_text = subprocess.run([server.hikyaku, "init", "--help"], capture_output=True, text=True, check=True).stdout
    ways = ["--no-notify", "--notify"] if "--notify" in help_text else [None]
    if len(ways) == 1:
        bench.report.skip("latency with NOTIFY", "this hikyaku init has no --notify")
    got = {(way, rate): {} for way in ways for rate in (100, 1000)}
    for turn in range(bench.args.rounds):
        for (way, rate), figures in got.items():
            server.init(*[way] if way else [])
            for key, value in measure_latency(bench, config, rate, f"{turn}-{rate}{way}").items():
                figures.setdefault(key, []).append(value)
    for (way, rate), figures in got.items():
        what = f"{rate:,}/s, {'with' if way == '--notify' else 'without'} NOTIFY"
        kept_up = statistics.median(figures["written"]) >= 0.95 * rate  # or it says nothing about that rate
        aim = {"--notify": 10}.get(way, 60) if rate == 1000 and kept_up else None
        bench.report.figure(f"{what}: commit to arrival, median", figures["p50"], "ms", aim, False,
                            note=f"written: {statistics.median(figures['written']):,.0f}/s" +
                            ("" if kept_up else ", too slow to judge"))
        bench.report.figure(f"{what}: commit to arrival, 99 %", figures["p99"], "ms")
        bench.report.figure(f"{what}: the application's INSERT, median", figures["insert p50"], "ms",
                            note=f"99 %: {statistics.median(figures['insert p99']):.1f} ms")


PARTS = {"drain": drain, "http": http, "relays": relays, "held": held, "latency": latency, "backlog": backlog}


def between(least, most):
    def read(text):
        value = float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{least} to {most}")
        return int(value) if value == int(value) else value
    return read


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hikyaku")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--rows", type=between(1000, 10000000), default=300000)
    parser.add_argument("--rounds", type=between(1, 99), default=5)
    parser.add_argument("--seconds", type=between(1, 600), default=5, help="of each measurement of latency")
    parser.add_argument("--held", type=between(1, 7200), default=12, help="how long the snapshot is held")
    parser.add_argument("--backlog", type=between(100000, 50000000), default=1000000)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    args.hikyaku = os.path.abspath(args.hikyaku)
    args.only = args.only.split(",")
    unknown = [part for part in args.only if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {unknown[0]} (there are {', '.join(PARTS)})")
    return args


def main():
    args = read_arguments()
    why_not = servers.why_not() or (None if shutil.which("nginx") else "nginx is not installed")
    if why_not:
        sys.exit(why_not)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and everything that was started
    bench = Bench(args)
    try:
        for name, part in PARTS.items():
            if name in args.only:
                part(bench)
        bench.report.finish()
    finally:
        bench.report.save()
        bench.close()


if __name__ == "__main__":
    main()
