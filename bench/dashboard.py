#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the dashboard's first screen takes with 1,000,000 messages waiting and 100,000 dead letters.

usage: bench/dashboard.py HIKYAKU [--rows N] [--rounds N] [--store sqlite,postgres] [--json FILE]

Rows are made by SQL: N in the outbox (1,000,000), a tenth of that waiting for a retry, and a tenth dead. All destinations are paused, so
that nothing moves. First each question that the page asks is asked by itself (CPU of the relay and of the database's server together;
other work on the machine makes the time longer, and the CPU hardly). Then Debian's Chromium opens the page with an empty cache: from
the request for the page until the sentences and the figures of the overview are there ("usable"), and until its charts are. Everything
runs on loopback in a temporary folder and is gone at the end. Needs Chromium, npm and pip (tests/e2e/browser.py); PostgreSQL 15 or
later and python3-psycopg for the second store."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing beside the sources
import asking
import pages
from relay import free_port
from status import OUTBOX, RETRY

# What the overview asks for, then other screens.
QUESTIONS = ["status", "alerts", "dead-letters/groups?limit=5", "redrives?running=true", "figures?for=1h&step=1m", "me", "destinations",
             "dead-letters/groups?limit=50&hours=true", "dead-letters?limit=200", "dead-letters/stats", "messages?limit=200", "audit?limit=200"]
SETTLE_S = 10  # what a relay does when it starts is no part of this
WAIT_MS = 300_000


def tables(rows):
    return [("outbox", OUTBOX, rows), ("outbox_retry", RETRY, rows // 10), ("dead_letters", pages.LETTERS, rows // 10)]


def ask_all(served, rounds):
    for path in QUESTIONS:
        served.get("/api/v1/" + path)
        found = [served.get("/api/v1/" + path)[:2] for _ in range(rounds)]
        cpu, took = (statistics.median(values) for values in zip(*found))
        print(f"GET /{path:<44} {cpu:8.1f} ms of CPU {took:8.1f} ms", flush=True)
        yield {"store": served.store.name, "what": "GET /" + path, "cpu_ms": cpu, "took_ms": took}


def open_page(browser, port):
    """(usable, whole) in ms since the page was asked for, as the browser's own clock has it."""
    with browser.visit(f"127.0.0.1:{port}") as visitor:
        visitor.context.set_default_timeout(WAIT_MS)
        visitor.page.goto("/", wait_until="commit")
        visitor.page.wait_for_selector("dl.figures dd")
        usable = visitor.page.evaluate("performance.now()")
        visitor.page.wait_for_selector(".chart canvas")
        return usable, visitor.page.evaluate("performance.now()")


def open_all(browser, served, rounds):
    before = served.cpu_s()
    found = [open_page(browser, served.port) for _ in range(rounds + 1)][1:]  # the first one starts the browser
    cpu = (served.cpu_s() - before) * 1000 / (rounds + 1)
    for i, what in enumerate(("usable", "with its charts")):
        times = [f[i] for f in found]
        print(f"the first screen, {what:<16} {statistics.median(times):8.0f} ms ({min(times):.0f} - {max(times):.0f}); "
              f"{cpu:.0f} ms of CPU of relay and server a visit (load {os.getloadavg()[0]:.1f})", flush=True)
        yield {"store": served.store.name, "what": f"first screen, {what}", "took_ms": statistics.median(times), "best_ms": min(times), "cpu_ms": cpu}


def run(store_class, args, servers, browser):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-bench-"))
    store = served = None
    try:
        store, port = store_class(folder, servers), free_port()
        config = pages.write_config(folder, store, port)
        for words in [["init"]] + [["destinations", "pause", f"destination-{i}", "--reason", "bench"] for i in range(pages.DESTINATIONS)]:
            subprocess.run([args.hikyaku, "--config", str(config), *words], check=True, stdout=subprocess.DEVNULL)
        began, made = time.monotonic(), tables(args.rows)
        store.fill(made, 86_400)
        print(f"\n== {store.name}: {', '.join(f'{n:,} in {name}' for name, _, n in made)}, {store.size_mb():,.0f} MB, "
              f"made in {time.monotonic() - began:.0f} s (load {os.getloadavg()[0]:.1f})", flush=True)
        served = pages.Served(args.hikyaku, store, config, port)
        time.sleep(SETTLE_S)
        return [*ask_all(served, args.rounds), *open_all(browser, served, args.rounds)]
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
    parser.add_argument("--json")
    args = parser.parse_args()
    sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))  # last: names of files there are names of ours, too
    from browser import BROWSER  # reads the program's path from the command line
    stores = args.store.split(",")
    servers = asking.load_servers() if "postgres" in stores else None
    figures = []
    try:
        for name in stores:
            if name == "postgres" and servers.why_not():
                print(f"skipped: PostgreSQL: {servers.why_not()}")
                continue
            figures += run(asking.Postgres if name == "postgres" else asking.Sqlite, args, servers, BROWSER)
    finally:
        BROWSER.close()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"cores": os.cpu_count(), "figures": figures}, file, indent=1)


if __name__ == "__main__":
    main()
