#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A standby that lags is promoted: the database forgets its last seconds, lanes and claims among them. What it forgot may be
sent again; what it knows arrives, and relays that still believe in lanes that never were change nothing. Speaks TAP.

Usage: failover.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); FAILOVERS=1; SEED=…"""
import collections
import json
import os
import pathlib
import random
import signal
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
os.environ["STORE"] = "postgres"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import postgres
from proxy import Proxy
from support import Answer, PATIENCE, World, run_tests, until

SEED = os.environ.get("SEED", str(time.time_ns()))
FAILOVERS = int(os.environ.get("FAILOVERS", "1"))
COUNTS = collections.Counter()


class Standby(postgres.Cluster):
    """A copy of another server that follows it, until it is told not to listen any more."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()

    def run(self, program, *args):
        """Its data come from the primary instead of from initdb."""
        if program == "initdb":
            super().run("pg_basebackup", "-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "hikyaku", "-D", str(self.data),
                        "-R", "-X", "stream", "-c", "fast")
        else:
            super().run(program, *args)

    def ask(self, text, database="postgres"):
        db = self.connect(database)
        try:
            return db.execute(text).fetchall()
        finally:
            db.close()

    def caught_up(self, lsn):
        return self.ask(f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'::pg_lsn") == [(True,)]

    def fall_behind(self):
        self.ask("ALTER SYSTEM SET primary_conninfo = ''")
        self.ask("SELECT pg_reload_conf()")
        until(lambda: self.ask("SELECT count(*) FROM pg_stat_wal_receiver") == [(0,)], "it to listen no more")

    def promote(self):
        self.ask("SELECT pg_promote()")
        until(lambda: self.ask("SELECT pg_is_in_recovery()") == [(False,)], "a new primary")


class Failing(World):
    def __init__(self, proxy):
        super().__init__(relay={"lease": "2s", "concurrency": 16})
        self.proxy, self.written = proxy, set()

    def relay(self, name):
        config = {**self.config, "relay": {**self.config["relay"], "name": name},
                  "store": postgres.cluster().url(self.db, self.proxy.port) + "?sslmode=disable&gssencmode=disable"}
        path = self.path(f"{name}.yaml")
        path.write_text(json.dumps(config), encoding="utf-8")
        return self.daemon(name, config=path)

    def write(self, n, prefix):
        self.written |= set(self.insert_many(n, prefix=prefix))

    def all_arrive(self, prefix):
        until(lambda: {i for i in self.written if i.startswith(prefix)} <= set(self.receiver.accepted()),
              lambda: f"all of {prefix}: {self.statuses()}", 2 * PATIENCE)


def fail_over(number):
    chance = random.Random(f"{SEED} {number}")
    old = postgres.cluster()
    with Proxy(old.port, SEED) as proxy, Failing(proxy) as w:
        w.receiver.on("shop", Answer(200, delay=0.15))
        a, b = w.relay("a").ready(), w.relay("b").ready()
        w.write(40, "before")
        w.all_arrive("before")
        standby = Standby(old)
        try:
            w.write(60, "known")  # the standby may see them unsent
            lsn = old.connect("postgres").execute("SELECT pg_current_wal_lsn()").fetchone()[0]
            until(lambda: standby.caught_up(lsn), "the standby to follow")
            standby.fall_behind()
            w.write(60, "forgotten")
            b.kill()  # lanes and claims that the standby will never hear of
            b = w.relay("b").ready()
            time.sleep(chance.uniform(0, 1.5))
            old.stop(signal.SIGQUIT)
            standby.promote()
            postgres.CLUSTER[0] = standby
            proxy.upstream = standby.port
            c = w.relay("c").ready()  # it may be given the number of a lane that another believes to have
            w.write(60, "after")
            w.all_arrive("after")
            w.all_arrive("known")
            judge(w, number)
            for relay in (a, b, c):
                assert not relay.gone(), (relay.name, relay.process.returncode, relay.log()[-3000:])
                relay.stop()
            assert w.sql("SELECT count(*) FROM outbox_relay") == [(0,)]
        finally:
            proxy.close()
    COUNTS["failover"] += 1


def judge(w, number):
    until(lambda: set(w.statuses()) == {"sent"}, lambda: f"rest: {w.statuses()}", 2 * PATIENCE)
    taken = w.receiver.accepted()
    there = [i for i, in w.sql("SELECT message_id FROM outbox_messages")]
    assert len(there) == len(set(there)), "a message stands in two places"
    assert set(there) <= set(taken), f"lost: {sorted(set(there) - set(taken))[:5]}"
    assert set(taken) <= w.written, "invented"
    assert w.sql("SELECT count(*) FROM dead_letters") == [(0,)]
    three = [("a", 1), ("b", 1), ("c", 1)]
    until(lambda: sorted(w.sql("SELECT name, count(*) FROM outbox_relay GROUP BY name")) == three, "lanes that never were to go")
    until(lambda: w.sql("SELECT count(*) FROM outbox_claim WHERE cardinality(ids) > 0") == [(0,)], "their claims to go")
    until(lambda: w.sql("SELECT count(*) FROM outbox_shard WHERE lane IS NULL OR lane NOT IN (SELECT lane FROM outbox_relay)")
          == [(0,)], "shards to be shared")
    forgotten = len(w.written - set(there))
    again = sum(taken.values()) - len(taken)
    print(f"# failover {number}: {forgotten} messages forgotten by the database, {again} repeats, 0 lost", flush=True)


def a_standby_that_lags_is_promoted_and_nothing_that_it_knows_is_lost():
    print(f"# SEED={SEED}")
    for number in range(FAILOVERS):
        fail_over(number)


def forget(what):
    """What a standby may have forgotten is taken away by hand, while the relay has messages in flight: it must not go on."""
    with World() as w:
        w.receiver.on("shop", Answer(200, delay=1))
        relay = w.daemon().ready()
        w.insert_many(20, prefix="early")
        until(lambda: len(w.receiver.arrived()) >= 20, "all to be on their way")
        w.sql(what)
        relay.says("lane lost")
        w.insert_many(20, prefix="late")
        w.receiver.on("shop", 200)
        w.settled(sent=40)
        relay.stop()


def a_lane_whose_number_was_given_to_another_is_lost():
    forget("UPDATE outbox_relay SET boot = 'another'")


def a_lane_whose_last_exchange_was_forgotten_is_lost():
    forget("DELETE FROM outbox_exchange")


def a_lane_that_is_anothers_is_not_released():
    with World() as w:
        relay = w.daemon().ready()
        time.sleep(0.3)  # it has nothing to do, and renews its lease only now and then
        w.sql("UPDATE outbox_relay SET boot = 'another'")
        relay.signal(signal.SIGTERM)
        assert relay.wait() == 0, relay.log()
        assert w.sql("SELECT count(*) FROM outbox_relay WHERE boot = 'another'") == [(1,)], "it was released"


exit_code = run_tests([a_lane_that_is_anothers_is_not_released,
                       a_lane_whose_number_was_given_to_another_is_lost, a_lane_whose_last_exchange_was_forgotten_is_lost,
                       a_standby_that_lags_is_promoted_and_nothing_that_it_knows_is_lost])
print(f"# counts {json.dumps(COUNTS)}")
sys.exit(exit_code)
