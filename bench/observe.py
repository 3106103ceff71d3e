#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What observing costs: the same messages with figures, logs and traces off and on, in turns, in one run.

usage: bench/observe.py HIKYAKU [--rows N] [--rounds N]

Needs nginx: one is the destination, another takes the traces. Two cases: all messages arrive (then nothing is logged), and all are refused
once and for good (then each is a line). Read the ratios of CPU (user and system, of all threads of the relay, as the kernel counts it): each is
of two runs that followed each other, the median of all rounds with the least and the greatest. The machine's other work moves the rates much more.
"no figures" takes away the table that `status` has its rates from, so that every write to it fails at once."""
import argparse, os, re, shutil, statistics, sys, tempfile, time

sys.dont_write_bytecode = True
from relay import Nginx, Relay, in_folder

QUIET = "log: { level: error }\n"
LOGFMT = "log: { level: info }\n"
JSON = "log: { format: json, level: info }\n"
CASES = {
    "delivered": {"nothing": QUIET, "no figures": QUIET, "log json": JSON, "log json, traces": JSON + "{telemetry}",
                  "log json, 1 % of traces": JSON + "{sampled}"},
    "refused": {"nothing": QUIET, "log logfmt": LOGFMT, "log json": JSON, "log json, traces": JSON + "{telemetry}"},
}


def nginx(folder, name, status):
    os.mkdir(os.path.join(folder, name))
    return Nginx(os.path.join(folder, name), status)


def once(args, folder, sections, port, figures=True):
    sub = tempfile.mkdtemp(dir=folder)
    relay = Relay(args.hikyaku, sub, sections + "retention: { sent: 0s }\ndestinations:\n"
                  f"  sink: {{ http: {{ url: \"http://127.0.0.1:{port}/\" }}, allow: [127.0.0.0/8], breaker: off }}\n")
    relay.fill(args.rows)
    if not figures:
        db = relay.connect()
        db.execute("ALTER TABLE outbox_figures RENAME TO away")
        db.close()
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


def report(case, found):
    base = found["nothing"]
    for name, runs in found.items():
        cpu = statistics.median(f[1] for f in runs)
        times = [f[1] / b[1] for f, b in zip(runs, base)]
        spans = f"   spans sent {runs[-1][2][0]}, dropped {runs[-1][2][1]}, failed {runs[-1][2][2]}" if runs[-1][2] else ""
        print(f"{case:>9}, {name:<24} {statistics.median(f[0] for f in runs):8.0f}/s   CPU {cpu:6.1f} us/message   "
              f"{cpu - statistics.median(f[1] for f in base):+5.1f} us   {statistics.median(times):.3f} times "
              f"({min(times):.2f} - {max(times):.2f}){spans}", flush=True)


@in_folder
def run(args, folder):
    collector = nginx(folder, "collector", "200")
    ends = {"delivered": nginx(folder, "delivered", "204"), "refused": nginx(folder, "refused", "400")}
    endpoint = f"telemetry: {{ endpoint: \"http://127.0.0.1:{collector.port}\" }}\n"
    texts = {"{telemetry}": endpoint, "{sampled}": endpoint.replace(" }", ", sample: 0.01 }")}
    try:
        for case, variants in CASES.items():
            found = {name: [] for name in variants}
            for round_ in range(args.rounds):
                for name, sections in list(variants.items())[::-1 if round_ % 2 else 1]:  # none always goes first
                    for mark, text in texts.items():
                        sections = sections.replace(mark, text)
                    found[name].append(once(args, folder, sections, ends[case].port, name != "no figures"))
            report(case, found)
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
