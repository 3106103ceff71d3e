#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What destinations of the store that rest cost a whole relay: 100 definitions that all have work, and 200 and 10,000 of which 100 have.

usage: bench/definitions.py HIKYAKU [--rows N] [--many N] [--idle S] [--store sqlite|postgres]

Each relay starts on its definitions, rests for a while, then sends the rows to nginx, and rests again. Told: how long it took until it knew
the definitions, and its CPU for that; its memory then and at the end; its CPU for a message; its CPU while it rests. On PostgreSQL the server's
CPU stands beside the relay's. Needs nginx; for PostgreSQL its server, with fsync as it is delivered. Everything runs on loopback, in a
temporary folder, and is stopped at the end."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.realpath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/e2e"))
from relay import PAYLOAD, Nginx, Relay
from tasks import OnPostgres, load_postgres

ACTIVE = 100
TICKS = os.sysconf("SC_CLK_TCK")


class OnSqlite:
    def __init__(self, args, folder, config):
        self.relay = Relay(args.hikyaku, folder, config)

    def run(self, statements):
        db = self.relay.connect()
        db.execute("BEGIN IMMEDIATE")
        for text, rows in statements:
            db.executemany(text, rows)
        db.execute("COMMIT")
        db.close()

    def ask(self, text):
        db = self.relay.connect()
        found = db.execute(text).fetchone()[0]
        db.close()
        return found

    def server_cpu_s(self):
        return 0.0

    def server_pids(self):
        return []


class OnServer:
    def __init__(self, args, folder, config):
        import psycopg
        self.server = args.servers.Cluster(fsync="on")
        url = self.server.url(self.server.create())
        self.relay, self.psycopg, self.url = OnPostgres(args.hikyaku, folder, config, url), psycopg, url

    def run(self, statements):
        with self.psycopg.connect(self.url) as db, db.cursor() as cursor:
            for text, rows in statements:
                cursor.executemany(text.replace("?", "%s"), rows)

    def ask(self, text):
        with self.psycopg.connect(self.url) as db:
            return db.execute(text).fetchone()[0]

    def server_pids(self):
        pid = self.server.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            return [pid, *f.read().split()]

    def server_cpu_s(self):
        """Of all its processes, and of those that have ended."""
        pid, total = self.server.process.pid, 0
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                    fields = f.read().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue
            if entry == str(pid):
                total += sum(int(n) for n in fields[11:15])
            elif int(fields[1]) == pid:
                total += int(fields[11]) + int(fields[12])
        return total / TICKS


def definitions(n, port):
    """Every so many of them are the ones that have work. With more connections than nginx has room for it would close those that rest, and each
    message would need another one: that would be measured."""
    text = json.dumps({"http": {"url": f"http://127.0.0.1:{port}/"}, "allow": ["127.0.0.0/8"], "breaker": "off", "limits": {"concurrency": 16}})
    return [(f"d{i:05}", i + 1, text) for i in range(n)]


def wait_until(what, found, seconds=600):
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            sys.exit(f"not {what} in {seconds} s")
        time.sleep(0.1)


def measure(store, n, args, port):
    relay = store.relay
    store.run([("INSERT INTO outbox_destination_def (name, version, seq, definition, created_ms, created_by, changed_ms, changed_by, reason) "
                "VALUES (?, 1, ?, ?, 0, 'bench', 0, 'bench', 'bench')", definitions(n, port)),
               ("UPDATE outbox_definitions SET version = ?", [(n,)])])
    began = time.monotonic()
    relay.start()
    log = relay.log.name

    def knows():
        with open(log, encoding="utf-8") as f:
            return "destinations of the store" in f.read()
    wait_until("applied", knows)
    told = {"known_s": time.monotonic() - began, "known_cpu_s": relay.cpu_s()}
    time.sleep(5)  # so that what belongs to the start is over
    told["rests_mib"] = relay.rss_mb()
    told["idle"] = idle(store, args.idle)
    step, before, server = n // ACTIVE, relay.cpu_s(), store.server_cpu_s()
    rows = [(f"d{i % ACTIVE * step:05}", PAYLOAD) for i in range(args.rows)]
    store.run([("INSERT INTO outbox (destination, event_type, payload) VALUES (?, 'Bench', ?)", rows)])
    server_wrote = store.server_cpu_s()
    began = time.monotonic()
    wait_until("drained", lambda: not store.ask("SELECT (SELECT count(*) FROM (SELECT 1 FROM outbox LIMIT 1) a) + "
                                                "(SELECT count(*) FROM (SELECT 1 FROM outbox_retry LIMIT 1) b)"))
    told["rate"] = args.rows / (time.monotonic() - began)
    told["us"] = (relay.cpu_s() - before) * 1e6 / args.rows
    told["server_us"] = (store.server_cpu_s() - server_wrote) * 1e6 / args.rows
    told["writing_us"] = (server_wrote - server) * 1e6 / args.rows
    told["mib"] = relay.rss_mb("VmHWM")
    time.sleep(5)
    told["idle_after"] = idle(store, args.idle)
    relay.stop()
    return told


def ran_ms(pids):
    """Of their threads that are there now, to the nanosecond: ticks of 10 ms are too coarse for one that rests."""
    total = 0
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/schedstat", encoding="utf-8") as f:
                    total += int(f.read().split()[0])
        except OSError:
            continue  # it has ended meanwhile
    return total / 1e6


def idle(store, seconds):
    """CPU of the relay and of the server, in ms a minute."""
    server = store.server_pids()
    before, own, began = ran_ms(server), ran_ms([store.relay.process.pid]), time.monotonic()
    time.sleep(seconds)
    minutes = (time.monotonic() - began) / 60
    return (ran_ms([store.relay.process.pid]) - own) / minutes, (ran_ms(server) - before) / minutes


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("hikyaku")
    parse.add_argument("--rows", type=int, default=50000)
    parse.add_argument("--many", type=int, default=10000)
    parse.add_argument("--idle", type=float, default=30, help="seconds")
    parse.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    args = parse.parse_args()
    args.hikyaku = os.path.realpath(args.hikyaku)
    if args.store == "postgres":  # before anything runs: it may start this program anew, with another interpreter
        args.servers = load_postgres()
        why_not = args.servers.why_not()
        if why_not:
            sys.exit(why_not)
    print(f"{args.store}: {args.rows} messages to {ACTIVE} destinations; load {os.getloadavg()[0]:.1f}", flush=True)
    for n in (ACTIVE, 2 * ACTIVE, args.many):
        with tempfile.TemporaryDirectory() as folder:
            nginx = Nginx(folder)
            store = None
            try:
                store = (OnServer if args.store == "postgres" else OnSqlite)(
                    args, folder, f"definitions: {{ allow: [127.0.0.0/8], max: {args.many} }}\nretention: {{ sent: 0s }}\n")
                told = measure(store, n, args, nginx.port)
            finally:
                if store:
                    store.relay.stop()
                nginx.stop()
        print(f"{n:6} definitions: known after {told['known_s']:.1f} s ({told['known_cpu_s'] * 1000:.0f} ms CPU)   RSS {told['rests_mib']:.1f} MiB, "
              f"at most {told['mib']:.1f}   {told['rate']:.0f}/s   CPU a message {told['us']:.1f} us, server {told['server_us']:.1f} us   "
              f"idle, CPU a minute: {told['idle'][0]:.0f} ms, server {told['idle'][1]:.0f} ms; after the work {told['idle_after'][0]:.0f} ms, "
              f"server {told['idle_after'][1]:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
