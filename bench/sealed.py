#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the modes of sealing cost the success path: how fast the relay drains the same messages with `off`, `rest` and `end`, in turns in one run,
and with `rest` and `off` where every message fails once. SQLite, nginx on loopback.

usage: bench/sealed.py HIKYAKU [--rows N] [--rounds N]

Ratios are what to read: absolute figures move with the machine."""
import argparse, base64, json, os, statistics, subprocess, time

from relay import PAYLOAD, Nginx, Relay, dest, in_folder

MODES = ("off", "rest", "end")


def one(hikyaku, folder, mode, rows, port):
    place = os.path.join(folder, f"{mode}-{time.monotonic_ns()}")
    os.mkdir(place)
    with open(os.path.join(place, "key"), "wb") as f:
        f.write(base64.b64encode(b"7" * 32))
    config = ("seal: { mode: %s, keys: [ { id: k1, file: %s/key } ] }\nretention: { sent: 0s }\n"
              "default_policy: once\npolicies: { once: { preset: standard, backoff: { kind: exponential, base: 1ms, cap: 1ms }, max_attempts: 1 } }\n"
              "destinations:\n%s" % (mode, place, dest("sink", port)))
    relay = Relay(hikyaku, place, config)
    if mode == "end":
        line = json.dumps({"destination": "sink", "event_type": "Bench", "payload": json.loads(PAYLOAD)}) + "\n"
        subprocess.run([hikyaku, "--config", relay.path, "enqueue", "--ndjson", "-"], input=(line * rows).encode(), check=True,
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


@in_folder
def main(args, folder):
    for what, status, modes in (("sent", 204, MODES), ("dead at the first attempt", 422, ("off", "rest"))):
        nginx_folder = os.path.join(folder, f"nginx-{status}")
        os.mkdir(nginx_folder)
        nginx = Nginx(nginx_folder, status)
        got = {mode: [] for mode in modes}
        for _ in range(args.rounds):
            for mode in modes:
                got[mode].append(one(args.hikyaku, folder, mode, args.rows, nginx.port))
        nginx.stop()
        base = statistics.median(r for r, _ in got["off"])
        for mode in modes:
            rate = statistics.median(r for r, _ in got[mode])
            cpu = statistics.median(c for _, c in got[mode])
            print(f"{what:26} {mode:5} {rate:8.0f}/s  {100 * rate / base:5.1f} % of off  {cpu:6.1f} us of CPU a message")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hikyaku")
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    main(parser.parse_args())
