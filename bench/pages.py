#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a page of a list costs over the HTTP API, with 1,000,000 messages waiting.

usage: bench/pages.py HIKYAKU [--rows N] [--rounds N] [--store sqlite,postgres] [--only WORDS] [--json FILE]

Rows are made by SQL: N in the outbox, a tenth of that waiting for a retry, N dead letters and N / 10 rows of the audit. All
destinations are paused, so that nothing moves. Then one client asks a running relay for pages of 50, with each filter: the first
page, and one from the middle of the table, by its cursor. Each page is asked for once to warm up and then --rounds times.

CPU is that of the relay and of the database's server together, the median and the largest of the rounds: other work on the machine
makes the time longer, and the CPU hardly. "bound" means that the answer stopped there, says how many rows it looked at and has a
cursor. "!" stands where a page that did not stop at a bound took more than 100 ms of CPU. Everything runs on loopback, in a
temporary folder, and is gone at the end. PostgreSQL 15 or later and python3-psycopg are needed for the second store."""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.dont_write_bytecode = True  # nothing beside the sources
import asking
from dead import LETTER
from relay import free_port, wait_port
from status import OUTBOX, RETRY

LIMIT = 50
ALLOWED_MS = 100.0
DESTINATIONS = 12

# The relay gives letters of an older rule a new group in the background. These have the newest already.
LETTERS = LETTER | {"fingerprint_made": "'2:' || {group}"}
AUDIT = {
    "at_ms": "{now_ms} - {i}",
    "actor": "'person-' || ({i} % 20)",
    "act": "CASE {i} % 5 WHEN 0 THEN 'discard' WHEN 1 THEN 'edit' ELSE 'requeue' END",
    "message_id": "'m-' || {i}",
    "destination": "'destination-' || ({i} % 8)",
    "reason": "'bench'",
    "letter_id": "{i}",
}


def tables(rows):
    return [("outbox", OUTBOX, rows), ("outbox_retry", RETRY, rows // 10), ("dead_letters", LETTERS, rows),
            ("outbox_audit", AUDIT, rows // 10)]


def cases(rows):
    """(path, filter, the cursor of a page in the middle; None: the list has no pages) of each"""
    outbox, retry, dead, audit = f"outbox:{rows // 2}", f"retry:{rows // 20}", str(rows // 2), str(rows // 20)
    group = f"{7919 * 8:016x}"
    messages = [
        ({}, outbox),
        ({"status": "pending"}, outbox),
        ({"status": "processing"}, outbox),
        ({"status": "retrying"}, retry),
        ({"status": "sent"}, f"dead:{dead}"),
        ({"status": "dead"}, f"dead:{dead}"),
        ({"status": "cancelled"}, "cancelled:1"),
        ({"destination": "destination-0"}, outbox),
        ({"destination": "destination-7"}, outbox),
        ({"destination": "destination-11"}, outbox),
        ({"destination": "nobody"}, outbox),
        ({"event_type": "OrderPaid"}, outbox),
        ({"event_type": "Order*"}, outbox),
        ({"event_type": "None"}, outbox),
        ({"key": "k-17"}, outbox),
        ({"key": "none"}, outbox),
        ({"destination": "destination-0", "key": "k-18"}, outbox),
        ({"correlation_id": f"c-{rows // 6}"}, outbox),
        ({"newer": "1h"}, outbox),
        ({"older": "12h"}, outbox),
        ({"filter": f"payload.order:{rows // 3}"}, outbox),
        ({"text": "no such text"}, outbox),
    ]
    letters = [
        ({}, dead),
        ({"oldest": "true"}, dead),
        ({"status": "any"}, dead),
        ({"status": "discarded"}, dead),
        ({"status": "retrying"}, dead),
        ({"destination": "destination-3"}, dead),
        ({"destination": "nobody"}, dead),
        ({"event_type": "OrderPaid"}, dead),
        ({"event_type": "None"}, dead),
        ({"reason_code": "HTTP_422"}, dead),
        ({"reason_code": "HTTP_451"}, dead),
        ({"class": "permanent"}, dead),
        ({"class": "auth"}, dead),
        ({"filter": "fault:pipeline"}, dead),
        ({"group": group}, dead),
        ({"filter": f"id:m-{rows // 2 + 5}"}, None),
        ({"filter": f"correlation:c-{rows // 6}"}, None),
        ({"filter": "key:k-17"}, dead),
        ({"newer": "1d"}, dead),
        ({"older": "12h"}, dead),
        ({"filter": "payload.customer.id:42"}, dead),
        ({"text": "no such text"}, dead),
    ]
    groups = [{}, {"destination": "destination-3"}, {"reason_code": "HTTP_422"}, {"event_type": "OrderPaid"}, {"group": group},
              {"newer": "1d"}]
    acts = [({}, audit), ({"oldest": "true"}, audit), ({"by": "person-3"}, audit), ({"by": "nobody"}, audit), ({"act": "edit"}, audit),
            ({"act": "none"}, audit), ({"letter": audit}, None)]
    return ([("messages", *c) for c in messages] + [("dead-letters", *c) for c in letters] +
            [("dead-letters/groups", g, None) for g in groups] + [("audit", *c) for c in acts])


# ---- CPU ----

def process_cpu_s(pid):
    """Of all its threads, in nanoseconds' steps: the clock of another process (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


def children_cpu_s(pid):
    """Of the server's processes: those that run, and those that have ended (parallel workers) in steps of 10 ms."""
    total = 0.0
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        try:
            total += process_cpu_s(int(child))
        except OSError:
            pass  # it has just ended
    ended = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1].split()
    return total + (int(ended[13]) + int(ended[14])) / os.sysconf("SC_CLK_TCK")


class Served:
    """A relay that serves the API and delivers nothing."""

    def __init__(self, hikyaku, store, config, port):
        self.store, self.port = store, port
        self.log = open(config.parent / "relay.log", "w", encoding="utf-8")
        self.process = subprocess.Popen([hikyaku, "--config", str(config), "run"], stderr=self.log)
        wait_port(port)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=asking.LONGEST_S)

    def cpu_s(self):
        server = getattr(self.store, "cluster", None)
        return process_cpu_s(self.process.pid) + (children_cpu_s(server.process.pid) if server else 0.0)

    def get(self, path):
        """(CPU in ms, time in ms, the answer)"""
        before, began = self.cpu_s(), time.monotonic()
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        took = time.monotonic() - began
        cpu = self.cpu_s() - before
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status}: {body[:2000].decode(errors='replace')}")
        return cpu * 1000, took * 1000, json.loads(body)

    def stop(self):
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()


# ---- pages ----

def measure(served, path, rounds):
    served.get(path)
    cpu, took = [], []
    for _ in range(rounds):
        cpu_ms, took_ms, answer = served.get(path)
        cpu.append(cpu_ms)
        took.append(took_ms)
    return {"cpu_ms": statistics.median(cpu), "most_cpu_ms": max(cpu), "took_ms": statistics.median(took), "items": len(answer["items"]),
            "looked": answer.get("looked") or 0, "next": answer.get("next")}


def print_page(what, found):
    bound = f"bound: looked at {found['looked']:,}" if found["looked"] else "more" if found["next"] else "end"
    mark = "!" if found["cpu_ms"] > ALLOWED_MS and not found["looked"] else " "
    print(f"{what:<66} {found['cpu_ms']:8.1f} ms{mark} (most {found['most_cpu_ms']:8.1f})   {found['items']:3} items   {bound}", flush=True)


def ask_pages(served, args):
    for path, words, middle in cases(args.rows):
        name = f"{path} {' '.join(f'{k}={v}' for k, v in words.items())}".strip()
        if args.only and not any(w in name for w in args.only.split(",")):
            continue
        for which, cursor in (("", {}), (", from the middle", {"after": middle})):
            if cursor and middle is None:
                continue
            found = measure(served, f"/api/v1/{path}?{urllib.parse.urlencode({'limit': LIMIT, **words, **cursor})}", args.rounds)
            print_page(name + which, found)
            yield {"store": served.store.name, "what": name + which, "rows": args.rows, **found}


def write_config(folder, store, port):
    config = folder / "hikyaku.yaml"
    config.write_text(f"store: {store.url}\nadmin: {{ listen: \"127.0.0.1:{port}\" }}\ndestinations:\n" + "".join(
        f"  destination-{i}: {{ \"null\": {{}} }}\n" for i in range(DESTINATIONS)), encoding="ascii")
    return config


def run(store_class, args, servers):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-bench-"))
    store = served = None
    try:
        store, port = store_class(folder, servers), free_port()
        config = write_config(folder, store, port)
        for words in [["init"]] + [["destinations", "pause", f"destination-{i}", "--reason", "bench"] for i in range(DESTINATIONS)]:
            subprocess.run([args.hikyaku, "--config", str(config), *words], check=True, stdout=subprocess.DEVNULL)
        began, made = time.monotonic(), tables(args.rows)
        store.fill(made, 86_400)
        print(f"\n== {store.name}: {', '.join(f'{n:,} in {name}' for name, _, n in made)}, {store.size_mb():,.0f} MB, "
              f"made in {time.monotonic() - began:.0f} s (load {os.getloadavg()[0]:.1f})", flush=True)
        served = Served(args.hikyaku, store, config, port)
        time.sleep(10)  # what a relay does when it starts is no part of a page
        idle = served.cpu_s()
        time.sleep(5)
        print(f"nobody asks: {(served.cpu_s() - idle) * 200:.1f} ms of CPU a second", flush=True)
        return list(ask_pages(served, args))
    finally:
        if served:
            served.stop()
        if store:
            store.close()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hikyaku", type=os.path.abspath)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", default="sqlite,postgres")
    parser.add_argument("--only", help="words, separated by commas: filters whose line holds one")
    parser.add_argument("--json")
    args = parser.parse_args()
    stores = args.store.split(",")
    servers = asking.load_servers() if "postgres" in stores else None
    figures = []
    for name in stores:
        if name == "postgres" and servers.why_not():
            print(f"skipped: PostgreSQL: {servers.why_not()}")
            continue
        figures += run(asking.Postgres if name == "postgres" else asking.Sqlite, args, servers)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"cores": os.cpu_count(), "figures": figures}, file, indent=1)


if __name__ == "__main__":
    main()
