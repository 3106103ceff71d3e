#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the relay, at random times under load and at every named crash point. Speaks TAP.

Usage: kill.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); KILLS=200 (in all), SEED=…; STORE=postgres

On SQLite the lease is the usual one: a successor does not wait for it, as it finds its predecessor's lock free. On
PostgreSQL it does, and the lease is as short as can be. Several small worlds run side by side. Relay, receivers and the
application write one event log per world; it is judged here, and by hikyaku-check when that was built."""
import os
import random
import signal
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
import witness
from killed import KilledWorld, SEED, in_threads, write_transaction
from support import Answer, BINARY, POSTGRES, Skip, World, run_tests, until

TESTS = []
WORLDS = 4
KILLS = int(os.environ.get("KILLS", "48" if POSTGRES else "208"))


def test(function):
    TESTS.append(function)
    return function


# ---- the tests ----

@test
def killed_at_random_times_under_load_it_loses_invents_and_blames_nothing():
    figures = []

    def one(name):
        with KilledWorld(name) as w:
            w.be_flaky()
            app = w.start_application()
            while w.kills < (KILLS + WORLDS - 1) // WORLDS:
                w.live_and_die()
            w.stop_application(app)
            w.come_to_rest()
            figures.append(f"{w.name}: {w.kills} kills, {w.with_hands_full} with messages in hand; {w.judge()}")
            assert w.with_hands_full >= w.kills // 4, "the kills were too easy"

    print(f"# SEED={SEED}, hikyaku-check: {witness.find_checker(BINARY) or 'not built'}")
    try:
        in_threads([lambda name=f"w{k}": one(name) for k in range(WORLDS)])
    finally:
        for line in figures:
            print(f"# {line}")


POINTS = [("acquired", 1), ("exchange", 1), ("exchange", 2), ("exchange", 5), ("exchanged", 1), ("exchanged", 2),
          ("exchanged", 5), ("send", 1), ("send", 7), ("sent", 1), ("sent", 7), ("released", 1)]


def crash_at(w, point, n):
    daemon = w.daemon(env={"HIKYAKU_CRASH_AT": f"{point}:{n}"})
    if point == "released":
        until(lambda: w.sql("SELECT count(*) FROM outbox") == [(0,)], "some work")
        daemon.signal(signal.SIGTERM)
    code = daemon.wait()
    assert code == -signal.SIGKILL, (point, n, code, daemon.log())
    w.mend(daemon)


@test
def killed_at_every_named_point_it_loses_invents_and_blames_nothing():
    # a build without crash points never comes to the first one's end
    with World() as probe:
        daemon = probe.daemon(env={"HIKYAKU_CRASH_AT": "acquired:1"})
        until(lambda: daemon.gone() or "lane acquired" in daemon.log(), "a crash, or none")
        if not daemon.gone():
            raise Skip("the program was built without crash points")
    with KilledWorld("points") as w:
        chance, db = random.Random(7), w.connect()
        for k, (point, n) in enumerate(POINTS):
            w.be_flaky()
            for i in range(10):
                write_transaction(db, w.events, chance, f"{point}-{n}-{i}")
            crash_at(w, point, n)
            w.be_well()
            if k == len(POINTS) - 1:
                break
            healthy = w.daemon("healthy").ready()
            until(lambda: not set(w.statuses()) - {"sent"}, lambda: f"all sent: {w.statuses()}")
            healthy.stop()
            if w.journal:
                w.journal.read()
        db.close()
        w.come_to_rest()
        print(f"# {len(POINTS)} points; {w.judge()}")
        assert w.sql("SELECT count(*) FROM dead_letters") == [(0,)]


@test
def a_message_that_kills_the_relay_ends_as_a_dead_letter_and_its_neighbours_are_sent():
    with KilledWorld("poison") as w:
        now = {}

        def kill_it(request):
            if request.body == b"poison":
                os.kill(now["pid"], signal.SIGKILL)
            return Answer(200, delay=0.1)

        w.receiver.on("poison", kill_it)
        db = w.connect()
        db.execute("BEGIN")
        neighbours = [f"n{i}" for i in range(60)]
        for i in [*neighbours[:30], "killer", *neighbours[30:]]:
            w.insert("poison", db=db, message_id=i, payload="poison" if i == "killer" else "{}")
        db.execute("COMMIT")
        db.close()
        deaths = 0
        while not w.letters():
            daemon = w.daemon()
            now["pid"] = daemon.pid
            until(lambda: daemon.gone() or w.letters(), "a death or a dead letter")
            if daemon.gone():
                assert daemon.process.returncode == -signal.SIGKILL, daemon.log()
                deaths += 1
            assert deaths <= 4, "four crashes are the most"
        w.settled(sent=60, dead=1)
        assert deaths == 4, deaths
        assert w.letters() == {"killer": "RELAY_CRASHED"}
        assert w.sql("SELECT attempts, crashes FROM dead_letters") == [(0, 4)]
        # a crash leaves a trace: in the log of the next relay, and with each message
        daemon.says("took over from a relay that is gone; its messages may be repeated")
        traces = w.sql("SELECT count(*) FROM outbox_attempts WHERE message_id = 'killer' AND n = 0 AND cause = 'RELAY_CRASHED'")
        assert traces == [(4,)], traces
        assert "relay died while sending; may have arrived" in w.hikyaku("messages", "show", "killer")
        assert set(w.receiver.accepted()) >= set(neighbours)
        assert len(w.receiver.arrived("killer")) == 4


sys.exit(run_tests(TESTS))
