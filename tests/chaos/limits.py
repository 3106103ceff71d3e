#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Too few descriptors, too little memory: the relay refuses to start, ends in good order or lets a message wait; it never loses
one, and a relay with enough of both finds everything as it should be. Speaks TAP.

Usage: limits.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; SEED=…; STEPS=8"""
import json
import os
import pathlib
import random
import resource
import signal
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from support import Answer, QUICK, Skip, World, is_sanitized, run_tests, until

SEED = os.environ.get("SEED", str(time.time_ns()))
STEPS = int(os.environ.get("STEPS", "8"))
CHANCE = random.Random(SEED)
COUNTS = {}
# Ends that are in order: done; failed with a word; the store could not be opened; later; out of memory, with a word.
ENDS = (0, 1, 69, 75, 78, -signal.SIGABRT)


def limited(what, soft):
    return lambda: resource.setrlimit(what, (soft, soft))


def live_with(world, what, soft, n):
    """A relay with that limit, for a while. How it ended, in a word."""
    ids = world.insert_many(n, prefix=f"l{soft}", payload="x" * CHANCE.choice([10, 1000, 200000]))
    daemon = world.daemon(f"limit-{soft}", preexec=limited(what, soft))
    end = time.monotonic() + 2.5
    while time.monotonic() < end and not daemon.gone() and not set(ids) <= set(world.receiver.accepted()):
        time.sleep(0.05)
    worked = bool(set(ids) & set(world.receiver.accepted()))
    if not daemon.gone():
        until(lambda: "relay started" in daemon.log() or daemon.gone(), "its start")
        daemon.signal(signal.SIGTERM)
    code = daemon.wait()
    assert code in ENDS, f"limit {soft}: ended with {code}:\n{daemon.log()[-3000:]}"
    assert code == 0 or daemon.log().strip(), f"limit {soft}: ended with {code} and said nothing"
    return "worked" if worked else f"exit {code}"


def sweep(what, limits):
    print(f"# SEED={SEED}")
    with World({"shop": {}}, relay={"concurrency": 64}, policies={"quick": {**QUICK, "max_attempts": 1000}}) as w:
        w.receiver.on("shop", Answer(200, delay=0.1))
        seen = {}
        for soft in limits:
            seen[soft] = live_with(w, what, soft, 40)
        daemon = w.daemon("last").ready()
        total = 40 * len(limits)
        until(lambda: w.statuses() == {"sent": total}, lambda: f"all {total} sent: {w.statuses()}")
        daemon.stop()
        assert len(w.receiver.accepted()) == total
        assert w.sql("SELECT count(*) FROM outbox_claim") == [(0,)]
        print(f"# {seen}")


def few_descriptors_lose_nothing():
    low = sorted(CHANCE.sample(range(8, 60), STEPS - 2)) + [64, 80]
    sweep(resource.RLIMIT_NOFILE, low)
    COUNTS["descriptor limits"] = len(low)


def little_memory_loses_nothing():
    if is_sanitized():
        raise Skip("a build with a sanitizer takes terabytes of addresses")
    mega = sorted(CHANCE.sample(range(20, 400), STEPS - 2)) + [800, 1200]
    sweep(resource.RLIMIT_AS, [m << 20 for m in mega])
    COUNTS["memory limits"] = len(mega)


exit_code = run_tests([few_descriptors_lose_nothing, little_memory_loses_nothing])
print(f"# counts {json.dumps(COUNTS)}")
sys.exit(exit_code)
