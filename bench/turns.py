#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of hikyaku in turns: is the new one as fast as the old one?

usage: bench/turns.py OLD NEW [--rows N] [--rounds N] [--only sqlite,postgres]

OLD and NEW are two programs. Each drains the same rows, first one, then the other, the order changed in every round, on SQLite and on
PostgreSQL, to nginx (POST of 500 bytes) and to the null destination, with default settings. Printed are the medians of the rounds' ratios,
with the least and the greatest: new / old. A rate should be 0.97 or more, CPU 1.03 or less. On PostgreSQL the statements that one message takes
are counted in a run of their own (pg_stat_statements), on SQLite the calls of sqlite3_step cannot be seen from outside: CPU stands for them.
Needs nginx, PostgreSQL and python3-psycopg."""
import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import postgres
import relay as sqlite
from relay import dest, in_folder

NULL = 'destinations: { sink: { "null": {} } }\n'


def on_sqlite(program, folder, config, rows):
    sub = tempfile.mkdtemp(dir=folder)
    one = sqlite.Relay(program, sub, config)
    one.fill(rows)
    start = time.monotonic()
    one.start()
    one.drained()
    took, cpu = time.monotonic() - start, one.cpu_s()
    one.stop()
    shutil.rmtree(sub)
    return {"rate": rows / took, "cpu": cpu / rows * 1e6}


def on_postgres(server, config, rows):
    last = server.load(rows)
    cpu, start = server.cpu_s(), time.monotonic()
    one = postgres.Relay(server, config)
    took = server.wait_drained(last, rows) - start
    got = {"rate": rows / took, "cpu": (one.cpu_s() + server.cpu_s() - cpu) / rows * 1e6}
    one.stop()
    return got


def statements(server, config, rows):
    """How many statements the relay sends for one message, while it drains."""
    last = server.load(rows)
    server.db.execute("SELECT pg_stat_statements_reset()")
    one = postgres.Relay(server, config)
    server.wait_drained(last, rows)
    # In a database of its own: only the relay's and ours, and ours look at one table.
    calls = server.value("SELECT sum(calls) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid "
                         "WHERE d.datname = current_database() AND query NOT LIKE '%%LIMIT $%%' AND query NOT LIKE 'SELECT EXISTS%%'")
    one.stop()
    return float(calls or 0) / rows


def show(label, old, new):
    for figure, unit in (("rate", "/s"), ("cpu", "us/message")):
        ratios = [b[figure] / a[figure] for a, b in zip(old, new)]
        print(f"{label:<18} {figure:<5} old {statistics.median(a[figure] for a in old):9.1f}   new "
              f"{statistics.median(b[figure] for b in new):9.1f} {unit:<11} new / old {statistics.median(ratios):.3f} "
              f"({min(ratios):.2f} - {max(ratios):.2f})", flush=True)


def take_turns(label, rounds, run, programs):
    got = ([], [])
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            got[which].append(run(programs[which]))
            print(f"   round {turn + 1}: {label}, {'old new'.split()[which]}: {got[which][-1]['rate']:,.0f}/s", file=sys.stderr, flush=True)
    show(label, *got)


@in_folder
def run(args, folder):
    nginx = sqlite.Nginx(folder)
    configs = {"POST": "destinations:\n" + dest("sink", nginx.port), "null": NULL}
    try:
        if "sqlite" in args.only:
            for name, config in configs.items():
                take_turns(f"SQLite, {name}", args.rounds, lambda p, c=config: on_sqlite(p, folder, c, args.rows), args.programs)
        if "postgres" in args.only:
            both(args, configs)
    finally:
        nginx.stop()


def both(args, configs):
    """One server: a database for each program, since their schemas may differ."""
    first = postgres.Server(argparse.Namespace(hikyaku=args.programs[0]), shared_preload_libraries="pg_stat_statements")
    second = postgres.Server.__new__(postgres.Server)
    second.cluster, second.hikyaku, second.name = first.cluster, args.programs[1], first.cluster.create()
    second.url = first.cluster.url(second.name)
    second.db = second.connect()
    second.init()
    servers = dict(zip(args.programs, (first, second)))
    try:
        for name, config in configs.items():
            take_turns(f"PostgreSQL, {name}", args.rounds, lambda p, c=config: on_postgres(servers[p], c, args.rows), args.programs)
        for server in (first, second):
            server.db.execute("CREATE EXTENSION pg_stat_statements")
        counts = [statements(servers[p], configs["null"], args.rows) for p in args.programs]
        print(f"{'PostgreSQL, null':<18} statements a message: old {counts[0]:.4f}, new {counts[1]:.4f}", flush=True)
    finally:
        second.db.close()
        first.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="OLD NEW")
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", default="sqlite,postgres")
    args = parser.parse_args()
    args.programs = [os.path.abspath(p) for p in args.programs]
    if not shutil.which("nginx"):
        sys.exit("nginx is not installed")
    run(args)


if __name__ == "__main__":
    main()
