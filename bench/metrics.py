#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to be looked at: a relay whose /metrics is scraped every second against one with admin.listen: none, in
turns, on SQLite.

usage: bench/metrics.py HIKYAKU [--rows N] [--rounds N]

Two ends: the null destination, where a message costs least and counting weighs most, and (where nginx is installed) HTTP. Read
the ratio of CPU, as the kernel counts it for the relay's process: the rate moves with whatever else the machine does."""
import argparse, os, re, shutil, statistics, sys, tempfile, threading, time, urllib.request

from relay import Nginx, Relay, dest


def scrape(relay, stop, sizes):
    port = None
    while not stop.wait(0.05 if port is None else 1.0):
        with open(relay.log.name) as log:
            found = re.search(r'"admin listening" address=127\.0\.0\.1:(\d+)', log.read())
        port = found and found[1]
        if port:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
                sizes.append(len(page.read()))


def drain(args, config, on):
    """Messages a second, and microseconds of CPU a message."""
    folder = tempfile.mkdtemp(prefix="hikyaku-bench-")
    stop, sizes = threading.Event(), []
    try:
        relay = Relay(args.hikyaku, folder, f"admin: {{ listen: {'127.0.0.1:0' if on else 'none'} }}\n"
                      "retention: { sent: 0s }\n" + config)
        relay.fill(args.rows)
        relay.start()
        thread = threading.Thread(target=scrape, args=(relay, stop, sizes))
        if on:
            thread.start()
        began = time.monotonic()
        relay.drained()
        took, cpu = time.monotonic() - began, relay.cpu_s()
        stop.set()
        if on:
            thread.join()
            assert sizes, "nobody scraped"
        relay.stop()
        return args.rows / took, cpu * 1e6 / args.rows
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(args, what, config):
    ratios, costs, times, figures = [], [], [], {True: [], False: []}
    for i in range(args.rounds):
        run = {}
        for on in ((True, False) if i % 2 else (False, True)):  # neither always goes first
            run[on] = drain(args, config, on)
            figures[on].append(run[on])
        ratios.append(run[True][0] / run[False][0])
        costs.append(run[True][1] - run[False][1])
        times.append(run[True][1] / run[False][1])
    for on in (False, True):
        rate, cpu = (statistics.median(f[k] for f in figures[on]) for k in (0, 1))
        print(f"{what}, metrics {'on ' if on else 'off'}: {rate:9,.0f} messages/s, {cpu:.2f} us of CPU a message")
    print(f"{what}: {statistics.median(ratios):.3f} of the rate (of {args.rounds} rounds: {min(ratios):.2f} - {max(ratios):.2f}), "
          f"{statistics.median(times):.3f} of the CPU ({min(times):.2f} - {max(times):.2f}), "
          f"{statistics.median(costs):+.2f} us a message ({min(costs):+.2f} - {max(costs):+.2f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hikyaku")
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.hikyaku = os.path.abspath(args.hikyaku)
    compare(args, "null", 'destinations: { sink: { "null": {}, breaker: off } }\n')
    if not shutil.which("nginx"):
        sys.exit("nginx is not installed: no figures over HTTP")
    folder = tempfile.mkdtemp(prefix="hikyaku-bench-")
    nginx = Nginx(folder)
    try:
        compare(args, "HTTP", "destinations:\n" + dest("sink", nginx.port))
    finally:
        nginx.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
