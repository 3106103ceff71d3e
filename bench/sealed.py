#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the modes of sealing cost: how fast the relay drains the same messages with `off`, `rest` and `end`, in turns in one run, and with
`off` and `rest` where each message dies at its first attempt. nginx on loopback; SQLite and PostgreSQL (which needs python3-psycopg).

usage: bench/sealed.py HIKYAKU [--store sqlite|postgres|both] [--rows N] [--rounds N]

Ratios are what to read: absolute figures move with the machine. A ratio is the median of the rounds' ratios."""
import argparse, base64, json, os, statistics, subprocess, sys, time

sys.dont_write_bytecode = True  # nothing beside the sources

from relay import PAYLOAD, Nginx, Relay, dest, in_folder

MODES = ("off", "rest", "end")
SETTINGS = ("seal: { mode: %s, keys: [ { id: k1, file: %s/key } ] }\nretention: { sent: 0s }\ndefault_policy: once\n"
            "policies: { once: { preset: standard, backoff: { kind: exponential, base: 1ms, cap: 1ms }, max_attempts: 1 } }\n"
            "destinations:\n%s")


class PgRelay(Relay):
    """On a database of its own."""

    def __init__(self, server, hikyaku, folder, config):
        self.server, self.name = server, server.cluster.create()
        self.path, self.hikyaku, self.process = os.path.join(folder, "hikyaku.yaml"), hikyaku, None
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(f"store: {server.cluster.url(self.name)}\n" + config)
        self.log = open(os.path.join(folder, "relay.log"), "w", encoding="utf-8")
        subprocess.run([hikyaku, "--config", self.path, "init"], check=True, stdout=subprocess.DEVNULL)

    def connect(self):
        db = self.server.cluster.connect(self.name)
        for name in ("enable_seqscan", "enable_bitmapscan", "jit"):  # to look for a row among those that are gone
            db.execute(f"SET {name} = off")
        return db

    def fill(self, rows, destination="sink"):
        db = self.connect()
        db.execute("INSERT INTO outbox (destination, event_type, payload) SELECT ?, 'Bench', ? FROM generate_series(1, ?)",
                   [destination, PAYLOAD, rows])
        db.execute("CHECKPOINT")
        db.close()

    def stop(self):
        super().stop()
        self.server.cluster.drop(self.name)


def one(args, make, folder, mode, rows, port):
    place = os.path.join(folder, f"{mode}-{time.monotonic_ns()}")
    os.mkdir(place)
    with open(os.path.join(place, "key"), "wb") as f:
        f.write(base64.b64encode(b"7" * 32))
    relay = make(args.hikyaku, place, SETTINGS % (mode, place, dest("sink", port)))
    if mode == "end":
        line = json.dumps({"destination": "sink", "event_type": "Bench", "payload": json.loads(PAYLOAD)}) + "\n"
        subprocess.run([args.hikyaku, "--config", relay.path, "enqueue", "--ndjson", "-"], input=(line * rows).encode(), check=True,
                       stdout=subprocess.DEVNULL)
    else:
        relay.fill(rows)
    began = time.monotonic()
    relay.start()
    relay.drained()
    took = time.monotonic() - began
    cpu = relay.cpu_s()
    relay.stop()
    return rows / took, cpu / rows * 1e6


def compare(args, make, folder, what, rows, modes, port):
    got = {mode: [] for mode in modes}
    for _ in range(args.rounds if "end" in modes else (args.rounds + 1) // 2):
        for mode in modes:
            got[mode].append(one(args, make, folder, mode, rows, port))
    for mode in modes:
        ratios = [100 * mine[0] / base[0] for mine, base in zip(got[mode], got["off"])]
        rate, cpu = (statistics.median(column) for column in zip(*got[mode]))
        print(f"{what:38} {mode:5} {rate:8.0f}/s  {statistics.median(ratios):5.1f} % of off ({min(ratios):.1f} - {max(ratios):.1f})  "
              f"{cpu:6.1f} us of CPU a message", flush=True)


def makers(args):
    if args.store in ("sqlite", "both"):
        yield "SQLite", Relay
    if args.store in ("postgres", "both"):
        server = postgres.Server(args)
        yield "PostgreSQL", lambda *more: PgRelay(server, *more)


@in_folder
def main(args, folder):
    for store, make in makers(args):
        for what, status, rows, modes in (("sent", 204, args.rows, MODES), ("dead at the first attempt", 422, args.rows // 3, ("off", "rest"))):
            place = os.path.join(folder, f"nginx-{store}-{status}")
            os.mkdir(place)
            nginx = Nginx(place, status)
            compare(args, make, folder, f"{store}: {what}", rows, modes, nginx.port)
            nginx.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hikyaku")
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--rows", type=int, default=20000, help="a third where messages die")
    parser.add_argument("--rounds", type=int, default=5, help="half as many where messages die")
    given = parser.parse_args()
    if given.store != "sqlite":
        import postgres  # bench/postgres.py, which may start this program again, with the Python that has psycopg
    main(given)
