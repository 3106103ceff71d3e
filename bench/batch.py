#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches beside single messages: the same rows to the same nginx, in turns, on SQLite and on PostgreSQL.

usage: bench/batch.py HIKYAKU [--rows N] [--rounds N] [--only sqlite,postgres] [--sent 0s,24h]

Each run drains N messages of 500 bytes. Printed are medians, with the least and the greatest, and the ratio to single messages with 64
in flight. nginx reads a batch and answers 204, so what is measured is the relay and its store. Needs nginx, PostgreSQL and python3-psycopg."""
import argparse
import os
import shutil
import statistics
import sys

sys.dont_write_bytecode = True
import postgres
import relay as sqlite
from relay import in_folder
from turns import on_postgres, on_sqlite

VARIANTS = {  # name: (concurrency of relay and destination, what the http section adds)
    "single, 64 in flight": (64, ""),
    "single, 256 in flight": (256, ""),
    "batch 100, 400 in flight": (400, ", batch: 100"),
    "batch 500, 2,000 in flight": (2000, ", batch: 500"),
}


def config_of(port, sent, concurrency, extra):
    return (f"relay: {{ concurrency: {max(concurrency, 256)} }}\nretention: {{ sent: {sent} }}\ndestinations:\n"
            f"  sink: {{ http: {{ url: \"http://127.0.0.1:{port}/\"{extra} }}, allow: [127.0.0.0/8], breaker: off, "
            f"limits: {{ concurrency: {concurrency} }} }}\n")


def spread(values, form="{:,.0f}"):
    return f"{form.format(statistics.median(values))} ({form.format(min(values))} - {form.format(max(values))})"


def show(store, sent, got):
    base = [one["rate"] for one in got["single, 64 in flight"]]
    for name, runs in got.items():
        ratio = statistics.median(one["rate"] / b for one, b in zip(runs, base))
        print(f"{store:<10} sent {sent:>3}  {name:<27} {spread([one['rate'] for one in runs])}/s   {ratio:.2f}x   "
              f"CPU {spread([one['cpu'] for one in runs], '{:.1f}')} us/message", flush=True)


def take_turns(args, store, port, run):
    for sent in args.sent.split(","):
        got = {name: [] for name in VARIANTS}
        for turn in range(args.rounds):
            for name in list(VARIANTS)[::-1 if turn % 2 else 1]:
                got[name].append(run(config_of(port, sent, *VARIANTS[name])))
        show(store, sent, got)


@in_folder
def run_all(args, folder):
    nginx = sqlite.Nginx(folder)
    try:
        if "sqlite" in args.only:
            take_turns(args, "SQLite", nginx.port, lambda config: on_sqlite(args.hikyaku, folder, config, args.rows))
        if "postgres" in args.only:
            server = postgres.Server(args)
            try:
                take_turns(args, "PostgreSQL", nginx.port, lambda config: on_postgres(server, config, args.rows))
            finally:
                server.close()
    finally:
        nginx.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hikyaku")
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="sqlite,postgres")
    parser.add_argument("--sent", default="0s,24h")
    args = parser.parse_args()
    args.hikyaku = os.path.abspath(args.hikyaku)
    if not shutil.which("nginx"):
        sys.exit("nginx is not installed")
    run_all(args)


if __name__ == "__main__":
    main()
