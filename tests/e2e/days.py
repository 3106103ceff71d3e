#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sent rows by the day (`hikyaku init --partition-sent`), as processes on a PostgreSQL of their own. Speaks TAP.

Usage: days.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import os
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
os.environ["STORE"] = "postgres"
from support import World, run_tests, until

TESTS = []
DAYS = "FROM pg_inherits WHERE inhparent = 'outbox_sent'::regclass"


def test(function):
    TESTS.append(function)
    return function


@test
def relays_at_work_do_not_notice_it():
    with World(relay={"lease": "5s"}) as world:
        relays = [world.daemon(name).ready() for name in "ab"]
        ids = world.insert_many(300, "before")
        until(lambda: world.receiver.arrived(), "the first arrival")
        said = world.hikyaku("init", "--partition-sent")
        assert "by the day" in said, said
        ids += world.insert_many(300, "behind")
        world.settled(sent=600)
        arrived = [r.id for r in world.receiver.arrived()]
        assert sorted(arrived) == sorted(ids), f"{len(arrived)} arrived"
        assert world.sql(f"SELECT count(*) {DAYS}") == [(5,)]
        assert world.sql("SELECT count(*) FROM outbox_sent") == [(600,)]
        assert "sent" in world.hikyaku("messages", "show", ids[0])
        assert "daily partitions" in world.hikyaku("doctor")
        world.hikyaku("init", "--partition-sent")
        assert world.sql(f"SELECT count(*) {DAYS}") == [(5,)]
        for relay in relays:
            relay.stop()


@test
def it_is_shown_first_and_given_to_roles_by_those_who_want_that():
    with World() as world:
        world.hikyaku("init")
        sql = world.hikyaku("init", "--partition-sent", "--print")
        assert "PARTITION BY RANGE" in sql and "SECURITY DEFINER" in sql
        assert world.sql(f"SELECT count(*) {DAYS}") == [(0,)]
        assert "outbox_sent_days" not in world.hikyaku("init", "--print-grants")
        assert "outbox_sent_days" in world.hikyaku("init", "--print-grants", "--partition-sent")


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
