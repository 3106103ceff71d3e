#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGHUP to a relay at work: what a new configuration changes, what it cannot, and what happens when it comes at a bad
moment. Speaks TAP.

Usage: reload.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import signal
import sys
import threading

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import PATIENCE, QUICK, World, run_tests, sqlite_only, until

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def reload(world, daemon):
    """One reload, seen through to its end."""
    ended = daemon.log().count("msg=reloaded")
    world.write_config()
    daemon.signal(signal.SIGHUP)
    daemon.says("msg=reloaded", ended + 1)
    return [line for line in daemon.log().splitlines() if "msg=reloaded" in line][-1]


@test
def a_reload_names_what_changed_and_what_waits_for_a_restart():
    with World({"shop": {"http": {"headers": {"X-Tenant": "acme"}}}, "old": {}}) as w:
        daemon = w.daemon().ready()
        assert 'changed=nothing' in reload(w, daemon)
        shop = w.config["destinations"]["shop"]
        shop["http"]["headers"] = {"X-Tenant": "other-tenant"}
        shop["limits"] = {"concurrency": 3}
        w.config["relay"]["batch"] = 7
        w.config["policies"]["quick"] = {**QUICK, "max_attempts": 61}
        w.config["routes"] = [{"event_type": "*", "destination": "shop"}]
        w.config["destinations"]["new"] = w.config["destinations"].pop("old")
        line = reload(w, daemon)
        for path in ("relay.batch", "policies.quick.max_attempts", "destinations.shop.http.headers.X-Tenant",
                     "destinations.shop.limits.concurrency", "routes", "destinations.old", "destinations.new"):
            assert path in line, (path, line)
        assert "needs_restart" not in line and "level=info" in line, line
        assert "other-tenant" not in daemon.log(), "values are not logged"
        w.config["store"] = f"sqlite:{w.path('elsewhere.db')}"
        w.config["relay"]["name"] = "renamed"
        line = reload(w, daemon)
        assert 'needs_restart="store.url, relay.name"' in line and "level=warn" in line, line
        assert "changed=" not in line, line
        w.insert(message_id="a")
        w.settled(sent=1)  # in the database that it started with
        assert not w.path("elsewhere.db").exists()
        daemon.stop()


@test
def a_reload_applies_what_the_store_does_itself():
    with World(retention={"sent": "24h"}, relay={"history": "none"}) as w:
        daemon = w.daemon().ready()

        def recorded(message_id):
            return w.sql("SELECT count(*) FROM outbox_attempts WHERE message_id = ?", message_id)[0][0]

        def go(message_id, **columns):
            w.insert(message_id=message_id, **columns)
            until(lambda: w.receiver.accepted()[message_id] and w.sql("SELECT 1 FROM outbox") == [], message_id)

        go("kept")
        assert w.statuses() == {"sent": 1} and recorded("kept") == 0
        w.config["retention"]["sent"] = "0s"
        assert "changed=retention.sent" in reload(w, daemon)
        go("not-kept")
        assert "not-kept" not in {i for i, in w.sql("SELECT message_id FROM outbox_messages")}
        w.config["retention"]["sent"] = "24h"
        w.config["relay"]["history"] = "all"
        w.config["relay"]["max_payload"] = "100B"
        assert 'changed="relay.max_payload, relay.history, retention.sent"' in reload(w, daemon)
        go("kept-again")
        assert w.message("kept-again")[0] == "sent" and recorded("kept-again") == 1
        w.insert(message_id="large", payload="x" * 101)
        until(w.letters, "the large one to die")
        assert w.letters() == {"large": "PAYLOAD_TOO_LARGE"}
        daemon.stop()


@test
def signals_during_a_reload_lead_to_one_more_with_the_latest_file():
    with World() as w:
        enough = threading.Event()
        w.receiver.on("shop", lambda r: enough.wait(PATIENCE) and 200)
        daemon = w.daemon().ready()
        w.insert(message_id="slow")
        until(lambda: w.receiver.arrived("slow"), "a request that holds the reload up")
        w.config["relay"]["batch"] = 2
        w.write_config()
        daemon.signal(signal.SIGHUP)
        daemon.says("msg=reloading")
        for times, batch in enumerate((3, 4, 5), 1):
            w.config["relay"]["batch"] = batch
            w.write_config()
            daemon.signal(signal.SIGHUP)
            daemon.says("once more after it", times)
        w.config["destinations"]["late"] = w.destination("late")
        w.write_config()  # nobody signals: it is read because it was asked for before
        enough.set()
        daemon.says("msg=reloaded", 2)
        w.insert("late", message_id="late")
        w.settled(sent=2)
        assert "refused" not in daemon.log() and daemon.log().count("msg=reloading") == 2
        assert w.receiver.accepted("shop") == {"slow": 1}
        daemon.stop()


@test
@sqlite_only
def a_store_that_cannot_be_opened_anew_leaves_the_old_configuration_at_work():
    with World() as w:
        daemon = w.daemon().ready()
        w.insert(message_id="before")
        w.settled(sent=1)
        aside = w.path("aside.db")
        w.db.rename(aside)  # the daemon goes on with the file that it has open
        w.config["relay"]["history"] = "all"
        w.config["destinations"]["new"] = w.destination("new")
        w.write_config()
        daemon.signal(signal.SIGHUP)
        daemon.says("reload refused, the old configuration stays")
        aside.rename(w.db)
        daemon.says("lane acquired", 2)
        w.insert("new", message_id="n")
        until(w.letters, "the old configuration to know no such destination")
        w.insert(message_id="after")
        until(lambda: w.receiver.accepted()["after"], "the old configuration to work on")
        daemon.stop()


@test
def a_drain_during_a_reload_ends_in_good_order():
    with World() as w:
        answer = threading.Event()
        w.receiver.on("shop", lambda r: answer.wait(PATIENCE) and 200)
        daemon = w.daemon().ready()
        w.insert(message_id="slow")
        until(lambda: w.receiver.arrived("slow"), "a request that holds the reload up")
        w.config["relay"]["history"] = "all"
        w.write_config()
        daemon.signal(signal.SIGHUP)
        daemon.says("msg=reloading")
        daemon.signal(signal.SIGTERM)
        daemon.says("draining")
        answer.set()
        assert daemon.wait() == 0
        assert w.statuses() == {"sent": 1} and "msg=reloaded" not in daemon.log()


@test
def a_null_destination_confirms_everything_and_says_so():
    with World() as w:
        w.config["destinations"]["nowhere"] = {"null": {"latency": "5ms"}}
        w.write_config()
        daemon = w.daemon().ready()
        daemon.says('msg="destination is null')
        ids = w.insert_many(300, destination="nowhere", prefix="void")
        w.insert(message_id="real")
        w.settled(sent=301)
        assert {w.message(i, "attempts")[0] for i in ids} == {1}
        assert w.receiver.accepted("shop") == {"real": 1}
        assert len(w.receiver.arrived()) == 1
        daemon.stop()


@test
def a_file_that_is_being_written_takes_no_destination_away():
    with World() as w:
        daemon = w.daemon().ready()
        w.config_path.write_text("", encoding="utf-8")
        daemon.signal(signal.SIGHUP)
        daemon.says("reload refused")
        assert "no destinations" in daemon.log()
        w.insert(message_id="m")
        w.settled(sent=1)
        daemon.stop()


sys.exit(run_tests(TESTS))
