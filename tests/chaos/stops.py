#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM at any time: while a relay begins, under load, without its store. It ends with 0 in time, nothing stays in its hands,
nothing that was not sent is charged. And a relay that begins while its server is away. Speaks TAP.

Usage: stops.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; STOPS=12; SEED=…"""
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
from killed import KilledWorld, SEED
from support import Answer, POSTGRES, World, run_tests, sqlite_only, until
if POSTGRES:
    import postgres

TESTS = []
STOPS = int(os.environ.get("STOPS", "12"))
IN_TIME = 25  # seconds
COUNTS = {}


def test(function):
    TESTS.append(function)
    return function


def postgres_only(function):
    return test(function) if POSTGRES else function


def holds_sigterm(daemon):
    """Has it come so far that it takes signals? Before that it is not ours yet: the loader's."""
    try:
        status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigBlk", "SigCgt"))]
    return any(mask >> (signal.SIGTERM - 1) & 1 for mask in masks)


@test
def a_signal_while_it_begins_ends_it_in_good_order():
    with World() as w:
        for i in range(STOPS):
            held = i % 2 == 0  # by whoever started it; otherwise as soon as it holds signals itself
            daemon = w.daemon(preexec=(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])) if held else None)
            if not held:
                until(lambda d=daemon: holds_sigterm(d) or d.gone(), "it to take signals")
            time.sleep(i / STOPS * 0.05)
            daemon.signal(signal.SIGTERM)
            assert daemon.wait() == 0, (daemon.process.returncode, daemon.log())
        assert w.sql("SELECT count(*) FROM outbox_relay") == [(0,)]


@test
def sigterm_at_random_times_leaves_nothing_in_hand_and_charges_nothing_that_was_not_sent():
    print(f"# SEED={SEED}")
    worst, early = 0.0, 0
    with KilledWorld("stops") as w:
        w.be_flaky()
        app, chance = w.start_application(), random.Random(f"{SEED} stops")
        for _ in range(STOPS):
            daemon = w.daemon()
            time.sleep(chance.choice([0, 0.05, 0.3, 1]) * chance.random())
            if chance.random() < 0.6:
                daemon.ready()
                until(w.has_work, "a share of the outbox")
                time.sleep(chance.random() * 0.3)
            ours, began = holds_sigterm(daemon), time.monotonic()
            daemon.signal(signal.SIGTERM)
            code = daemon.wait()
            worst = max(worst, time.monotonic() - began)
            early += code == -signal.SIGTERM
            assert code == 0 or (code == -signal.SIGTERM and not ours), (code, daemon.log()[-3000:])
            assert w.sql("SELECT count(*) FROM outbox_relay") == [(0,)], "a lane was left"
            assert w.sql("SELECT count(*) FROM outbox_claim") == [(0,)], "a claim was left"
            assert "processing" not in w.statuses()
            if w.journal:
                w.journal.read()
                assert not w.journal.open, w.journal.open
            w.forget(daemon)
        w.stop_application(app)
        w.come_to_rest()
        assert worst < IN_TIME, f"one took {worst:.1f} s"
        print(f"# {STOPS} times, at the most {worst:.1f} s, {early} before it was the program's; {w.judge()}")
        COUNTS["SIGTERM"] = STOPS


# ---- without the store ----

WITHOUT = "stopped without the store"


def no_room(daemon):
    """Nothing of its own may grow: as good as a full disk, for SQLite. Its log is short."""
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (16384, resource.RLIM_INFINITY))


def ignore_sigxfsz():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def without_store(in_hand, exit_code, words):
    with World() as w:
        w.receiver.on("shop", Answer(200, delay=1.5))
        daemon = w.daemon(preexec=ignore_sigxfsz).ready()
        if in_hand:
            w.insert_many(30)
            until(lambda: len(w.receiver.arrived()) > 5, "some on their way")
        else:
            time.sleep(0.5)
        if POSTGRES:
            postgres.cluster().stop(signal.SIGQUIT)
        else:
            no_room(daemon)
        try:
            daemon.says("store does not answer")
            began = time.monotonic()
            daemon.signal(signal.SIGTERM)
            code = daemon.wait()
            took = time.monotonic() - began
        finally:
            if POSTGRES:
                postgres.cluster().start()
        assert code == exit_code and words in daemon.log(), (code, daemon.log()[-2000:])
        print(f"# {'something' if in_hand else 'nothing'} in hand: exit {code} after {took:.1f} s")
        w.receiver.on("shop", 200)
        w.daemon("next").ready()
        if in_hand:
            w.settled(sent=30)
            assert all(n <= 2 for n in w.receiver.accepted().values())
            assert w.sql("SELECT count(*) FROM outbox_sent WHERE attempts <> 1") == [(0,)], "an attempt was charged"
        return took


@test
def without_its_store_and_with_empty_hands_it_does_not_wait():
    assert without_store(False, 0, f"{WITHOUT}: nothing was in hand") < 20


@test
def what_it_has_in_hand_it_holds_as_long_as_it_may_and_then_says_so():
    assert without_store(True, 75, f"{WITHOUT}: what was in hand goes out again later") < 60


# ---- a server that is away ----

@postgres_only
def a_relay_that_begins_while_its_server_is_away_waits_for_it():
    with World() as w:
        w.insert_many(5)
        postgres.cluster().stop(signal.SIGQUIT)
        try:
            daemon = w.daemon()
            daemon.says("store does not answer")
            leaves = w.daemon("leaves").says("store does not answer")
            leaves.signal(signal.SIGTERM)
            assert leaves.wait() == 0, leaves.log()
        finally:
            postgres.cluster().start()
        daemon.says("store answers again").ready()
        w.settled(sent=5)
        assert daemon.log().count("store does not answer") == 1
        daemon.stop()


@postgres_only
def a_relay_that_is_told_a_wrong_name_ends_at_once():
    with World() as w:
        w.config["store"] = w.url.replace(w.db, "no_such_database")
        w.write_config()
        began = time.monotonic()
        daemon = w.daemon()
        assert daemon.wait() == 69 and "check the database's name" in daemon.log(), daemon.log()
        assert "trying again" not in daemon.log(), f"after {time.monotonic() - began:.1f} s"


@test
@sqlite_only
def a_relay_without_a_place_for_its_file_ends_at_once():
    with World(init=False) as w:
        w.config["store"] = f"sqlite:{w.path('nowhere')}/outbox.db"
        w.write_config()
        assert w.daemon().wait() != 0
        w.damaged = True  # there is no file to look at


exit_code = run_tests(TESTS)
print(f"# counts {json.dumps(COUNTS)}")
sys.exit(exit_code)
