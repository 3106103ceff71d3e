#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The relay's clock jumps by seconds, hours and a year, forwards and back. On SQLite it is the store's, too, which never goes back;
applications keep the true one. On PostgreSQL the server's own is the one that counts.

Usage: clocks.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; JUMPS=8; SEED=…"""
import json
import os
import pathlib
import random
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from support import FakeClock, POSTGRES, QUICK, Skip, World, run_tests, until

SEED = os.environ.get("SEED", str(time.time_ns()))
JUMPS = int(os.environ.get("JUMPS", "8"))
CHANCE = random.Random(SEED)
SIZES = [1, 10, 60, 3600, 86400, 30 * 86400, 365 * 86400]
COUNTS = {}


def jumps():
    """Offsets from the true time; the largest are among them both ways."""
    drawn = [CHANCE.choice(SIZES) * CHANCE.choice([1, -1]) for _ in range(max(0, JUMPS - 4))]
    return [-1, 1, *drawn, 365 * 86400, -365 * 86400]


def jumping_clocks_lose_nothing_and_stop_nothing():
    print(f"# SEED={SEED}")
    patient = {**QUICK, "max_attempts": 1000, "max_elapsed": "90000h"}  # SQLite's time is what the host says
    with World({"shop": {}}, policies={} if POSTGRES else {"quick": patient}) as w:
        clock = FakeClock(w)
        w.receiver.on("shop", lambda r: 503 if int(r.id.split("-")[1]) % 4 == 0 and r.n < 3 else 200)
        try:
            daemon = w.daemon(env=clock.env).ready()
        except AssertionError as why:
            raise Skip(f"the program does not run under libfaketime here: {str(why)[-200:]!r}") from None
        total = 0
        for i, offset in enumerate(jumps()):
            w.insert_many(20, prefix=f"j{i}")
            total += 20
            clock.set(offset)
            until(lambda t=total: len(w.receiver.accepted()) == t,
                  lambda o=offset: f"{total} to arrive after a jump to {o:+d} s: {w.statuses()}\n{daemon.log()[-1500:]}")
            if i % 3 == 2:  # and one that begins with a wrong clock
                daemon.stop()
                daemon = w.daemon(env=clock.env).ready()
        until(lambda: w.statuses() == {"sent": total}, lambda: f"rest: {w.statuses()}")
        daemon.stop()
        assert set(w.receiver.accepted().values()) == {1}, "a jump of the clock repeated something"
        assert w.sql("SELECT count(*) FROM dead_letters") == [(0,)]
        COUNTS["clock jump"] = len(jumps())


exit_code = run_tests([jumping_clocks_lose_nothing_and_stop_nothing])
print(f"# counts {json.dumps(COUNTS)}")
sys.exit(exit_code)
