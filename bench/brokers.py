#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the relay does at a broker, beside the bare client in C with the same records, settings and confirms in the same run.

usage: bench/brokers.py HIKYAKU [--rows N] [--rounds N]

HIKYAKU is a program in a build folder: the bare clients are looked for beside it. Needs Java and Maven (Kafka). Everything runs on loopback, in a temporary
folder, and is stopped at the end. Ratios are what to read: absolute figures move with the machine."""
import argparse, os, pathlib, statistics, subprocess, sys, time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/e2e"))
from relay import PAYLOAD, Relay, in_folder
from support import Skip

LINGER_MS = 1  # the relay's default


def bare(args, broker, topic, window):
    build = pathlib.Path(args.hikyaku).resolve().parents[2]
    out = subprocess.run([build / "bench/kafka_bare", broker.at("plain"), topic, str(args.rows), str(window), str(LINGER_MS), str(len(PAYLOAD))], text=True,
                         capture_output=True, check=True).stdout.split()
    return float(out[0]), float(out[1])


@in_folder
def relay(args, folder):
    """Rows that are there when it starts: from its start until all are settled."""
    more = f", limits: {{ concurrency: {args.window} }}" if args.window else ""
    r = Relay(args.hikyaku, folder, f"admin: {{ listen: none }}\nrelay: {{ concurrency: {max(256, args.window)} }}\ndestinations:\n  sink: {{ kafka: {{ brokers: "
              f"\"{args.broker.at('plain')}\", topic: {args.topic} }}, allow: [127.0.0.0/8]{more} }}\n")
    r.fill(args.rows)
    began = time.monotonic()
    r.start()
    r.drained()
    rate, cpu = args.rows / (time.monotonic() - began), r.cpu_s() * 1e6 / args.rows
    r.stop()
    return rate, cpu


def show(name, figures, beside=None):
    rates, cpus = zip(*figures)
    ratio = f"  {statistics.median(rates) / statistics.median(r for r, _ in beside):5.2f} of it" if beside else ""
    print(f"{name:44} {statistics.median(rates):9,.0f}/s  ({min(rates):,.0f} to {max(rates):,.0f})  {statistics.median(cpus):6.1f} us CPU a message{ratio}", flush=True)


def kafka(args):
    from kafka_broker import Broker
    try:
        args.broker, args.topic = Broker(), "bench"
    except Skip as why:
        print(f"Kafka: not measured: {why}")
        return
    try:
        args.broker.make_topics(bench=[])
        bare(args, args.broker, args.topic, 1000)  # a broker in Java is slow at first
        for window in (0, 1000):
            args.window = window
            alone, ours = [], []
            for _ in range(args.rounds):  # in turns, for the machine may be slower at times
                alone.append(bare(args, args.broker, args.topic, window or 64))
                ours.append(relay(args))
            words = f"{window} in flight" if window else "default settings, 64 in flight"
            show(f"Kafka, librdkafka alone, {window or 64} in flight", alone)
            show(f"Kafka, relay on SQLite, {words}", ours, alone)
    finally:
        args.broker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hikyaku")
    parser.add_argument("--rows", type=int, default=50000)
    parser.add_argument("--rounds", type=int, default=3)
    kafka(parser.parse_args())


if __name__ == "__main__":
    main()
