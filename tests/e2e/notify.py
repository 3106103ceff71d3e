#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Relays that new messages wake (`hikyaku init --notify`), as processes on a PostgreSQL of their own: that they are told when
they have nothing to do and only then, and that every message arrives whatever becomes of listening. Speaks TAP.

Usage: notify.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
os.environ["STORE"] = "postgres"
import postgres
from support import Answer, Skip, World, run_tests, until

TESTS = []
LISTENING = 'msg="listening for new messages"'
ALONE = 'msg="polling alone"'
LISTENERS = ("FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = 1751739257 "
             "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
ARMED = "SELECT is_called AND last_value % 1000000 = 0 FROM outbox_wake"


def test(function):
    TESTS.append(function)
    return function


class Ear:
    """Somebody else who listens, and counts."""

    def __init__(self, world):
        self.db = world.connect()
        oid = self.db.execute("SELECT 'outbox'::regclass::oid").fetchall()[0][0]
        self.heard = 0
        self.db.pg.add_notify_handler(self.hear)
        self.db.execute(f"LISTEN hikyaku_{oid}")

    def hear(self, _):
        self.heard += 1

    def count(self):
        """All that was sent by what was committed before."""
        for _ in range(2):  # what came with the first answer is told with the second at the latest
            self.db.execute("SELECT 1")
        return self.heard


@test
def new_messages_wake_a_relay_and_doctor_says_so():
    with World() as world:
        assert "no NOTIFY" in world.hikyaku("doctor")
        world.hikyaku("init", "--notify")
        relay = world.daemon().ready().says(LISTENING)
        ear = Ear(world)
        for i in range(30):
            until(lambda: world.sql(ARMED) == [(True,)], "the flag to be armed")
            before = ear.count()
            world.insert(message_id=f"m-{i}")
            until(lambda: len(world.receiver.arrived()) == i + 1, "its arrival")
            assert ear.count() == before + 1
        assert "1 of 1 listen" in world.hikyaku("doctor")
        world.settled(sent=30)
        relay.stop()
        assert "0 of 0 listen" in world.hikyaku("doctor")


@test
def nobody_is_told_while_all_relays_are_busy():
    with World(relay={"concurrency": 4, "lease": "30s"}) as world:
        world.hikyaku("init", "--notify")
        world.receiver.on("shop", lambda request: Answer(200, delay=0 if world.path("go").exists() else 1000))
        ear = Ear(world)
        relay = world.daemon().ready().says(LISTENING)
        world.insert_many(8, "first")
        until(lambda: len(world.receiver.arrived()) == 4, "four to be on their way")
        time.sleep(0.3)  # polls go on, and none of them arms it
        world.insert(message_id="disarms")
        told = ear.count()
        for i in range(200):
            world.insert(message_id=f"m-{i:03d}")
        time.sleep(0.3)
        assert world.sql(ARMED) == [(False,)]
        assert ear.count() == told, (told, ear.heard)
        world.path("go").touch()
        world.receiver.closing.set()  # those that wait are let go
        world.settled(sent=209)
        relay.stop()


@test
def every_message_arrives_whatever_becomes_of_listening():
    """Sessions are ended, the trigger comes and goes, relays come and go, strangers shout, writers dawdle and change their
    minds."""
    rng, ids, lock = random.Random(os.environ.get("SEED", "7")), [], threading.Lock()
    with World({"shop": {"order": "key"}}, relay={"lease": "15s"}) as world:
        world.hikyaku("init", "--notify")
        relays = [world.daemon("a").ready(), world.daemon("b").ready()]
        over = threading.Event()

        def write(name, seed):
            own, db = random.Random(seed), world.connect()
            for i in range(150):
                message, keep = f"{name}-{i}", own.random() < 0.9
                db.execute("BEGIN")
                world.insert(db=db, message_id=message, message_key=name)
                time.sleep(own.choice((0, 0, 0, 0.005, 0.03)))
                db.execute("COMMIT" if keep else "ROLLBACK")
                if keep:
                    with lock:
                        ids.append(message)
                time.sleep(own.random() * 0.04)
            db.close()

        def disturb():
            db = world.connect()
            oid = db.execute("SELECT 'outbox'::regclass::oid").fetchall()[0][0]
            while not over.is_set():
                db.execute(rng.choice((
                    f"SELECT pg_terminate_backend(pid) {LISTENERS}",
                    f"SELECT pg_notify('hikyaku_{oid}', repeat('x', 7000)) FROM generate_series(1, 50)",
                    "DO $$BEGIN PERFORM nextval('outbox_wake'); EXCEPTION WHEN undefined_table THEN NULL; END$$")))
                if rng.random() < 0.2:
                    world.hikyaku("init", rng.choice(("--notify", "--no-notify")))
                over.wait(0.1)
            db.close()

        threads = [threading.Thread(target=write, args=(f"w{n}", n)) for n in range(4)]
        disturber = threading.Thread(target=disturb)
        for thread in [*threads, disturber]:
            thread.start()
        relays.append(world.daemon("c").ready())
        relays[0].stop()
        for thread in threads:
            thread.join()
        until(lambda: set(world.receiver.accepted()) == set(ids),
              lambda: f"missing: {set(ids) - set(world.receiver.accepted())}")
        over.set()
        disturber.join()
        for n in range(4):
            order = [int(r.id.split("-")[1]) for r in world.receiver.arrived() if r.id.startswith(f"w{n}-")]
            assert order == sorted(order), order
        assert max(world.receiver.accepted().values()) == 1  # nobody died: nothing is sent twice
        for relay in relays[1:]:
            relay.stop()


@test
def a_relay_listens_again_after_the_server_was_restarted():
    with World() as world:
        world.hikyaku("init", "--notify")
        relay = world.daemon().ready().says(LISTENING)
        postgres.cluster().restart()
        relay.says(ALONE).says(LISTENING, 2)
        until(lambda: world.sql(ARMED) == [(True,)], "the flag to be armed")
        world.insert(message_id="m")
        world.settled(sent=1)
        relay.stop()


@test
def behind_a_pooler_a_relay_polls_and_says_so():
    if not postgres.find_pooler():
        raise Skip("PgBouncer is not installed (Debian: pgbouncer)")
    with World() as world:
        world.hikyaku("init", "--notify")
        world.config["store"] = postgres.cluster().url(world.db, postgres.pooler().port)
        world.write_config()
        relay = world.daemon().ready().says(ALONE)
        assert "pooler" in relay.log()
        assert "through a pooler nothing can be listened for" in world.hikyaku("doctor")
        ear = Ear(world)
        world.insert_many(20)
        world.settled(sent=20)
        assert ear.count() == 0
        relay.stop()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
