#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What observing costs: the same messages with logs and traces off and on, in turns, in one run.

usage: bench/observe.py HIKYAKU [--rows N] [--rounds N]

Needs nginx: one is the destination, another takes the traces. Two cases: all messages arrive (then nothing is logged), and all are refused
once and for good (then each is a line). CPU of the relay a message, all its threads, is what to read: the machine's other work moves the
rates."""
import argparse, os, re, shutil, statistics, sys, tempfile, time

sys.dont_write_bytecode = True
from relay import Nginx, Relay, in_folder

QUIET = "log: { level: error }\n"
LOGFMT = "log: { level: info }\n"
JSON = "log: { format: json, level: info }\n"
CASES = {
    "delivered": {"nothing": QUIET, "log json": JSON, "log json, traces": JSON + "{telemetry}",
                  "log json, 1 % of traces": JSON + "{sampled}"},
    "refused": {"nothing": QUIET, "log logfmt": LOGFMT, "log json": JSON, "log json, traces": JSON + "{telemetry}"},
}


def nginx(folder, name, status):
    os.mkdir(os.path.join(folder, name))
    return Nginx(os.path.join(folder, name), status)


def once(args, folder, sections, port):
    sub = tempfile.mkdtemp(dir=folder)
    relay = Relay(args.hikyaku, sub, sections + "retention: { sent: 0s }\ndestinations:\n"
                  f"  sink: {{ http: {{ url: \"http://127.0.0.1:{port}/\" }}, allow: [127.0.0.0/8], breaker: off }}\n")
    relay.fill(args.rows)
    start = time.monotonic()
    relay.start()
    relay.drained()
    took, cpu = time.monotonic() - start, relay.cpu_s()
    relay.stop()
    with open(relay.log.name, encoding="utf-8") as f:
        log = f.read()
    lost = [tuple(map(int, m)) for m in re.findall(r'"telemetry stopped","sent":(\d+),"dropped":(\d+),"failed":(\d+)', log)]
    shutil.rmtree(sub)
    return args.rows / took, cpu / args.rows * 1e6, lost[0] if lost else None


@in_folder
def run(args, folder):
    collector = nginx(folder, "collector", "200")
    ends = {"delivered": nginx(folder, "delivered", "204"), "refused": nginx(folder, "refused", "400")}
    endpoint = f"telemetry: {{ endpoint: \"http://127.0.0.1:{collector.port}\" }}\n"
    texts = {"{telemetry}": endpoint, "{sampled}": endpoint.replace(" }", ", sample: 0.01 }")}
    try:
        for case, variants in CASES.items():
            found = {name: [] for name in variants}
            for _ in range(args.rounds):
                for name, sections in variants.items():
                    for mark, text in texts.items():
                        sections = sections.replace(mark, text)
                    found[name].append(once(args, folder, sections, ends[case].port))
            base = statistics.median(f[1] for f in found["nothing"])
            for name, runs in found.items():
                cpu = statistics.median(f[1] for f in runs)
                spans = f"   spans sent {runs[-1][2][0]}, dropped {runs[-1][2][1]}, failed {runs[-1][2][2]}" if runs[-1][2] else ""
                print(f"{case:>9}, {name:<24} {statistics.median(f[0] for f in runs):8.0f}/s   CPU {cpu:6.1f} us/message   "
                      f"{cpu - base:+5.1f} us{spans}", flush=True)
    finally:
        for server in [collector, *ends.values()]:
            server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hikyaku")
    parser.add_argument("--rows", type=int, default=50000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.hikyaku = os.path.abspath(args.hikyaku)
    if not shutil.which("nginx"):
        sys.exit("nginx is not installed")
    run(args)


if __name__ == "__main__":
    main()
