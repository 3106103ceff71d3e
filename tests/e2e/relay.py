#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The relay as its users meet it: a real process, real HTTP, a real SQLite file or, with STORE=postgres,
a real PostgreSQL. Speaks TAP.

Usage: relay.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them.

Nothing here asserts speed; what must not happen too early is compared with the receiver's own clock, exactly."""
import base64
import collections
import contextlib
import hashlib
import hmac
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import (Answer, FakeClock, FullDisk, PATIENCE, POSTGRES, QUICK, Skip, World, http_date, now_ms, rfc3339,
                     run_tests, sees_pause, sqlite_only, until)

TESTS = []
HERE = os.path.dirname(os.path.abspath(__file__))
YEAR = 365 * 24 * 3600


def test(function):
    TESTS.append(function)
    return function


def once_each(world, ids, destination="shop"):
    assert world.receiver.accepted(destination) == collections.Counter(ids), (
        world.receiver.accepted(destination) - collections.Counter(ids),
        collections.Counter(ids) - world.receiver.accepted(destination))


# ---- requirement 013 ----

@test
def exercise_a_all_are_sent_once_though_three_in_ten_requests_fail():
    chance = random.Random(13)
    with World(policies={"quick": {**QUICK, "backoff": {"base": "1s", "cap": "1s"}}}) as w:  # long enough to be seen
        w.receiver.on("shop", lambda r: 503 if chance.random() < 0.3 else 200)
        ids = w.insert_many(200)
        w.daemon()
        seen = collections.defaultdict(set)

        def all_sent():
            for i, attempts, due in w.sql("SELECT message_id, attempts, next_attempt_at FROM outbox_messages "
                                          "WHERE status = 'retrying'"):
                seen[i].add((attempts, due))
            return w.statuses() == {"sent": 200}

        until(all_sent, lambda: f"all sent, not {w.statuses()}")
        once_each(w, ids)
        # what failed more than once was seen with growing counts and later and later times
        grown = [sorted(pairs) for pairs in seen.values() if len({a for a, _ in pairs}) > 1]
        assert grown, "no message was seen to fail twice"
        for pairs in grown:
            assert all(a[0] < b[0] and a[1] < b[1] for a, b in zip(pairs, pairs[1:])), pairs
        failed = {r.id for r in w.receiver.arrived() if r.status == 503}
        for i in ids:
            attempts = len(w.receiver.arrived(i))
            assert w.message(i) == ("sent", attempts, None), (i, w.message(i), attempts)
            assert (attempts > 1) == (i in failed)


# ---- requirement 402 ----

@test
def each_failure_class_dies_at_its_own_count_with_its_own_reason():
    """The preset sync-pipeline; only its waits are shorter."""
    brief = {"preset": "sync-pipeline", "backoff": {"base": "5ms", "cap": "20ms"}, "breaker": "off",
             "classes": {"rate_limit": {"backoff": {"kind": "fixed", "base": "20ms"}}}}
    cases = {"s503": (503, 10, "RETRY_EXHAUSTED"), "s500": (500, 10, "RETRY_EXHAUSTED"),
             "s408": (408, 10, "RETRY_EXHAUSTED"), "s429": (429, 4, "RETRY_EXHAUSTED"),
             "s401": (401, 1, "AUTH_FAILED"), "s403": (403, 1, "AUTH_FAILED"), "s400": (400, 1, "HTTP_400"),
             "s422": (422, 1, "HTTP_422"), "s302": (302, 4, "RETRY_EXHAUSTED")}
    with World({name: {"policy": "pipeline"} for name in [*cases, "good"]}, policies={"pipeline": brief}) as w:
        for name, (status, _, _) in cases.items():
            w.receiver.on(name, status)
            w.insert(name, message_id=name, payload='{"for":"the letter"}', correlation_id="c-" + name)
        w.insert("good", message_id="good")
        w.daemon()
        w.settled(dead=len(cases), sent=1)
        for name, (status, count, reason) in cases.items():
            assert len(w.receiver.arrived(name)) == count, (name, len(w.receiver.arrived(name)))
            letter = w.sql("SELECT reason_code, attempts, status, payload, correlation_id, destination, life "
                           "FROM dead_letters WHERE message_id = ?", name)
            assert letter == [(reason, count, "failed", '{"for":"the letter"}', "c-" + name, name, 1)], letter
            records = w.sql("SELECT n, status FROM outbox_attempts WHERE message_id = ? ORDER BY n", name)
            assert records == [(n, status) for n in range(1, count + 1)], records
        assert w.sql("SELECT error_message FROM dead_letters WHERE message_id = 's422'") == [("the answer was HTTP 422",)]


@test
def a_message_asks_for_more_attempts_or_fewer_up_to_a_ceiling():
    brief = {"backoff": {"kind": "fixed", "base": "5ms"}, "max_attempts": 3, "breaker": "off"}
    cases = {"as-it-is": (None, 3), "fewer": (2, 2), "more": (5, 5), "too-many": (100000, 7)}
    with World({"shop": {"policy": "brief"}}, policies={"brief": brief}, relay={"max_attempts_ceiling": 7}) as w:
        w.receiver.on("shop", 503)
        for name, (asked, _) in cases.items():
            w.insert(message_id=name, **({"max_attempts": asked} if asked else {}))
        w.daemon()
        w.settled(dead=len(cases))
        assert {name: len(w.receiver.arrived(name)) for name in cases} == {name: gets for name, (_, gets) in cases.items()}
        shown = w.hikyaku("messages", "show", "too-many")
        assert "100000 (relay.max_attempts_ceiling: it gets 7)" in shown, shown
        assert "ceiling" not in w.hikyaku("messages", "show", "more")


# ---- requirement 306 ----

@test
def retry_after_in_seconds_and_as_a_date_is_never_undercut():
    asked = {}

    def seconds(status):
        return lambda r: Answer(status, {"Retry-After": "2"}) if r.n == 1 else 200

    def date(r):
        if r.n > 1:
            return 200
        asked[r.id] = int(time.time()) + 3
        return Answer(503, {"Retry-After": http_date(asked[r.id])})

    names = ["sec429", "sec503", "date503", "capped"]
    short = {"preset": "standard", "backoff": {"base": "5ms", "cap": "5ms"}, "hint_cap": "1s", "breaker": "off"}
    with World({n: {"policy": "short"} if n == "capped" else {} for n in names}, policies={"short": short}) as w:
        w.receiver.on("sec429", seconds(429))
        w.receiver.on("sec503", seconds(503))
        w.receiver.on("date503", date)
        w.receiver.on("capped", lambda r: Answer(503, {"Retry-After": "86400"}) if r.n == 1 else 200)
        w.daemon()
        for name in names:
            w.insert_many(3, prefix=name, destination=name)
        w.settled(sent=12)
        for r in w.receiver.arrived():
            if r.n == 1:
                continue
            first = w.receiver.arrived(r.id)[0]
            due = {"date503": lambda: asked[r.id], "capped": lambda: first.answered + 1}.get(
                r.destination, lambda: first.answered + 2)()
            assert r.at >= due, f"{r.id} came {due - r.at:.6f} s early"


@test
def a_429_holds_the_whole_destination_back():
    with World() as w:
        w.receiver.on("shop", lambda r: Answer(429, {"Retry-After": "2"}) if r.id == "first" and r.n == 1 else 200)
        w.daemon().ready()
        w.insert(message_id="first")
        until(lambda: w.message("first")[0] == "retrying", "a first refusal")
        others = w.insert_many(10)
        w.settled(sent=11)
        asked = w.receiver.arrived("first")[0].answered
        for i in others:
            assert w.receiver.arrived(i)[0].at >= asked + 2


# ---- the application's transactions ----

@test
def rolled_back_rows_never_leave_and_held_ones_leave_after_commit():
    with World() as w:
        w.daemon().ready()
        db = w.connect()
        db.execute("BEGIN IMMEDIATE")
        w.insert(db=db, message_id="undone")
        db.execute("ROLLBACK")
        db.execute("BEGIN IMMEDIATE")
        for i in range(3):
            w.insert(db=db, message_id=f"held-{i}")
        db.execute("SAVEPOINT deep")
        w.insert(db=db, message_id="undone-inner")
        db.execute("ROLLBACK TO deep")
        time.sleep(1.5)
        assert w.receiver.arrived() == [], "sent before it was committed"
        db.execute("COMMIT")
        w.insert(message_id="later")
        w.settled(sent=4)
        db.execute("BEGIN IMMEDIATE")
        w.insert(db=db, message_id="lost-connection")
        db.close()
        w.insert(message_id="last")
        w.settled(sent=5)
        once_each(w, ["held-0", "held-1", "held-2", "later", "last"])


WRITER = """
import random, sqlite3, sys
url, name, n, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
chance = random.Random(name)
sys.path.insert(0, folder)
sys.dont_write_bytecode = True
if url.startswith("postgres"):
    from postgres import Connection
    db = Connection(url)
else:
    db = sqlite3.connect(url.removeprefix("sqlite:"), timeout=60, isolation_level=None)
for i in range(n):
    db.execute("BEGIN IMMEDIATE")
    good = chance.random() > 0.25
    db.execute("INSERT INTO outbox (destination, event_type, payload, message_id) VALUES ('shop', 'T', '{}', ?)",
               (f"{name}-{i}-{'good' if good else 'bad'}",))
    db.execute("COMMIT" if good else "ROLLBACK")
    if good:
        print(f"{name}-{i}-good")
"""


@test
def several_processes_insert_at_once():
    with World() as w:
        w.daemon().ready()
        writers = [w.child(sys.executable, "-c", WRITER, w.url, f"w{k}", "100", HERE, stdout=subprocess.PIPE, text=True)
                   for k in range(4)]
        ids = [i for p in writers for i in p.communicate(timeout=120)[0].split()]
        assert all(p.returncode == 0 for p in writers)
        w.settled(sent=len(ids))
        once_each(w, ids)


# ---- what cannot be sent ----

@test
def what_makes_no_sense_is_a_dead_letter_and_the_others_go_on():
    with World(relay={"max_payload": "10KiB"}, routes=[{"event_type": "Order*", "destination": "shop"}]) as w:
        w.daemon().ready()
        bad = {"nowhere": {"destination": "nowhere"}, "no-route": {"destination": "", "event_type": "Stranger"},
               "when": {"not_before": "tomorrow"}, "when-null": {"not_before": "2026-13-01T00:00:00Z"},
               "base64": {"encoding": "base64", "payload": "not base64!"},
               "encoding": {"encoding": "rot13"}, "headers": {"headers": "[1,2]"},
               "policy": {"policy": "no-such"}, "huge": {"payload": "x" * 10241},
               "huge-blob": {"payload": b"\0" * 20000}, "expired": {"expires_at": "2020-01-01T00:00:00Z"}}
        for name in ("when", "when-null", "huge-blob") if POSTGRES else ():
            del bad[name]  # its types do not take them
        for name, columns in bad.items():
            w.insert(**{"message_id": name, **columns})
            w.insert(message_id="good-" + name)
        w.insert(message_id="largest", payload="x" * 10240)
        w.settled(dead=len(bad), sent=len(bad) + 1)
        once_each(w, ["largest", *("good-" + name for name in bad)])
        expected = {"nowhere": "UNKNOWN_DESTINATION", "no-route": "UNKNOWN_DESTINATION", "huge": "PAYLOAD_TOO_LARGE",
                    "huge-blob": "PAYLOAD_TOO_LARGE", "expired": "EXPIRED"}
        assert w.letters() == {name: expected.get(name, "VALIDATION_ERROR") for name in bad}, w.letters()
        for name in bad:
            assert w.receiver.arrived(name) == [], name
        assert w.sql("SELECT count(*) FROM dead_letters WHERE coalesce(error_message, '') = ''") == [(0,)]
        kept = w.sql("SELECT length(payload) FROM dead_letters WHERE message_id LIKE 'huge%' ORDER BY message_id")
        assert kept == ([(10241,)] if POSTGRES else [(10241,), (20000,)]), kept


@test
def ten_kilobytes_of_noise_in_any_column_are_settled():
    noise = "".join(chr(0x4e20 + i * 7919 % 20000) for i in range(3500))  # nothing can compress it
    columns = ("destination", "event_type", "message_key", "headers", "content_type", "encoding", "correlation_id",
               "traceparent", "idempotency_key", "policy", "payload", "message_id")
    with World() as w:
        for column in columns:
            w.insert(**{"message_id": column, column: noise})
        w.insert(message_id="good")
        w.daemon().ready()
        until(lambda: sum(w.statuses("status IN ('sent', 'dead')").values()) == len(columns) + 1,
              lambda: f"all of them, not {w.statuses()}")
        assert w.message("good")[0] == "sent" and w.message("payload")[0] == "sent"
        for column in ("destination", "event_type", "headers", "encoding", "policy"):
            assert w.message(column)[0] == "dead", column


# ---- routes ----

@test
def the_first_route_wins_and_a_list_fans_out():
    routes = [{"event_type": "Order.Paid", "destination": "a"}, {"event_type": "Order.*", "destination": ["b", "c"]},
              {"event_type": "*", "destination": "d"}]
    with World("abcd", routes=routes) as w:
        w.receiver.on("c", lambda r: 500 if r.n < 3 else 200)
        w.daemon().ready()
        for i, event_type in enumerate(["Order.Paid", "Order.New", "Other", "Order.Paid.Late"]):
            w.insert("", event_type, message_id=f"m{i}", payload=f"{i}")
        w.insert("d", "Order.Paid", message_id="named")
        w.settled(sent=7)
        got = {d: sorted(w.receiver.accepted(d)) for d in "abcd"}
        assert got == {"a": ["m0"], "b": ["m1", "m3"], "c": ["m1", "m3"], "d": ["m2", "named"]}, got
        assert all(n == 1 for d in "abcd" for n in w.receiver.accepted(d).values())
        rows = w.sql("SELECT message_id, destination, attempts FROM outbox_messages WHERE message_id = 'm1' ORDER BY 2")
        assert rows == [("m1", "b", 1), ("m1", "c", 3)], rows
        assert {r.body for r in w.receiver.arrived("m1")} == {b"1"}


# ---- order ----

def order_of(world, destination, key_prefix):
    return [r.id for r in world.receiver.arrived(destination=destination)
            if r.status is not None and r.status < 300 and r.id.startswith(key_prefix)]


@test
def a_dead_head_blocks_its_key_until_it_is_discarded_or_does_not_as_configured():
    destinations = {"block": {"order": "key"}, "skip": {"order": "key", "on_dead": "skip"}}
    with World(destinations) as w:
        for name in destinations:
            w.receiver.on(name, lambda r: 400 if r.body == b"poison" else
                          503 if r.n == 1 and r.id.endswith("3") else 200)
        for name in destinations:
            for i in range(6):
                for key in "xyz":
                    poison = key == "x" and i == 2
                    w.insert(name, message_key=key, message_id=f"{key}{i}", payload="poison" if poison else "{}")
        w.daemon().ready()
        until(lambda: len(w.receiver.accepted("skip")) == 17 and len(w.receiver.accepted("block")) == 14,
              lambda: f"all that may go: {w.receiver.accepted('skip')} {w.receiver.accepted('block')}")
        time.sleep(1.5)  # long enough for one that must not go
        assert order_of(w, "block", "x") == ["x0", "x1"]
        assert order_of(w, "skip", "x") == ["x0", "x1", "x3", "x4", "x5"]
        for key in "yz":
            for name in destinations:
                assert order_of(w, name, key) == [f"{key}{i}" for i in range(6)]
        waiting = "status = 'pending' AND attempts = 0 AND message_key = 'x'"
        assert w.statuses(waiting) == {"pending": 3}, w.statuses()
        w.insert("block", message_key="w", message_id="w0")
        until(lambda: w.receiver.accepted("block")["w0"], "another key")
        w.sql("UPDATE dead_letters SET status = 'discarded', resolution = 'not wanted', "
              "resolved_at = ? WHERE destination = 'block'", rfc3339(time.time()))
        until(lambda: len(order_of(w, "block", "x")) == 5, lambda: f"the freed key: {w.statuses()}")
        assert order_of(w, "block", "x") == ["x0", "x1", "x3", "x4", "x5"]
        # one at a time: nothing of a key arrives before the one before it was answered
        for name in destinations:
            for key in "xyz":
                visits = [r for r in w.receiver.arrived(destination=name) if r.id.startswith(key)]
                assert all(a.answered <= b.at for a, b in zip(visits, visits[1:])), (name, key)


@test
def a_waiting_head_holds_its_key_over_a_restart():
    with World({"shop": {"order": "key", "policy": "slow"}},
               policies={"slow": {"preset": "standard", "backoff": {"kind": "fixed", "base": "2s"}, "jitter": "none",
                                  "breaker": "off"}}) as w:
        w.receiver.on("shop", lambda r: 503 if r.id == "k0" and r.n == 1 else 200)
        first = w.daemon().ready()
        for i in range(3):
            w.insert(message_key="k", message_id=f"k{i}")
        until(lambda: w.message("k0")[0] == "retrying", "a first failure")
        first.stop()
        w.daemon().ready()
        w.insert(message_key="other", message_id="o")
        w.settled(sent=4)
        assert order_of(w, "shop", "k") == ["k0", "k1", "k2"]
        assert order_of(w, "shop", "o") == ["o"]


# ---- scheduled and expiring ----

@test
def scheduled_messages_wait_for_their_time_and_expired_ones_die():
    with World() as w:
        w.daemon().ready()
        soon, far = now_ms() / 1000 + 1.2, now_ms() / 1000 + YEAR
        w.insert(message_id="soon", not_before=rfc3339(soon))
        w.insert(message_id="far", not_before=rfc3339(far))
        local = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(soon + 9 * 3600))
        w.insert(message_id="zone", not_before=local + "+09:00")
        w.insert(message_id="past", not_before="2001-01-01T00:00:00Z")
        w.insert(message_id="in-time", expires_at=rfc3339(soon + 3600))
        w.insert(message_id="too-late", not_before=rfc3339(soon + 0.5), expires_at=rfc3339(soon))
        w.settled(sent=4, dead=1, pending=1)
        assert w.letters() == {"too-late": "EXPIRED"}
        assert w.receiver.arrived("soon")[0].at >= float(f"{soon:.3f}") - 0.001
        assert w.receiver.arrived("zone")[0].at >= int(soon)
        assert w.message("far") == ("pending", 0, rfc3339(far)), (w.message("far"), rfc3339(far))
        assert w.receiver.arrived("far") == []


@test
def a_message_that_expires_between_its_attempts_dies():
    policy = {"preset": "standard", "backoff": {"kind": "fixed", "base": "1s"}, "jitter": "none", "breaker": "off"}
    with World({"shop": {"policy": "slow"}}, policies={"slow": policy}) as w:
        w.receiver.on("shop", 503)
        w.daemon().ready()
        w.insert(message_id="m", expires_at=rfc3339(time.time() + 1.5))
        w.settled(dead=1)
        assert w.letters() == {"m": "EXPIRED"}
        assert 1 <= len(w.receiver.arrived("m")) <= 3


# ---- signals ----

@test
def sigterm_drains_without_charging_what_was_not_sent():
    with World(relay={"concurrency": 8}) as w:
        w.receiver.on("shop", Answer(200, delay=0.4))
        daemon = w.daemon().ready()
        w.insert_many(100)
        until(lambda: len(w.receiver.accepted()) >= 8, "some to be accepted")
        daemon.stop()
        accepted = w.receiver.accepted()
        assert all(n == 1 for n in accepted.values())
        assert w.statuses() == {"sent": len(accepted), "pending": 100 - len(accepted)}, (w.statuses(), len(accepted))
        assert len(accepted) < 100
        for table in ("outbox_claim", "outbox_relay"):
            assert w.sql(f"SELECT count(*) FROM {table}") == [(0,)]
        assert not w.sql("SELECT * FROM outbox_messages WHERE status = 'pending' AND (attempts > 0 OR crashes > 0)")
        w.receiver.on("shop", 200)
        w.daemon()
        w.settled(sent=100)
        assert all(n == 1 for n in w.receiver.accepted().values())


def hanging(stack, **more):
    """A world whose receiver never answers `hang`, with three requests on their way to it, and others answered."""
    w = stack.enter_context(World({"hang": {"policy": "patient"}, "shop": {}},
                                  policies={"patient": {**QUICK, "timeout": "120s"}}, **more))
    w.receiver.on("hang", Answer(200, hang=True))
    daemon = w.daemon().ready()
    w.insert_many(3, destination="hang", prefix="h")
    w.insert_many(5)
    until(lambda: len(w.receiver.arrived(destination="hang")) == 3 and len(w.receiver.accepted()) == 5, "all to arrive")
    return w, daemon


def check_given_back(w):
    assert w.statuses() == {"sent": 5, "pending": 3}, w.statuses()
    assert w.sql("SELECT sum(attempts), sum(crashes) FROM outbox_messages WHERE destination = 'hang'") == [(0, 0)]
    assert w.sql("SELECT count(*) FROM outbox_relay") == [(0,)]


@test
def a_hanging_receiver_does_not_hold_a_drain_and_a_second_signal_hurries_it():
    with contextlib.ExitStack() as stack:
        patient, daemon = hanging(stack)
        began = time.monotonic()
        daemon.signal(signal.SIGTERM)
        hurried, other = hanging(stack)
        other.signal(signal.SIGTERM)
        other.says("draining")
        time.sleep(1)
        assert not other.gone(), "it must wait for what is on its way"
        other.signal(signal.SIGTERM)
        asked = time.monotonic()
        assert other.wait() == 0
        assert time.monotonic() - asked < 15, "the second signal did not hurry it"
        check_given_back(hurried)
        assert daemon.wait() == 0
        assert time.monotonic() - began < 50, "neither the drain's end nor the request's"
        check_given_back(patient)
        assert "draining in a hurry" not in daemon.log()


@test
@sqlite_only
def sigint_is_as_good_and_a_relay_that_waits_for_its_turn_ends_at_once():
    with World() as w:
        first = w.daemon().ready()
        second = w.daemon("second").says("holds it")
        second.signal(signal.SIGINT)
        assert second.wait() == 0
        first.signal(signal.SIGINT)
        assert first.wait() == 0


@test
def sighup_takes_a_good_configuration_and_refuses_a_bad_one_while_messages_flow():
    with World({"old": {}, "stays": {}}) as w:
        daemon = w.daemon().ready()
        stop, ids = threading.Event(), []

        def application():
            n = 0
            while not stop.is_set():
                ids.append(f"flow-{n}")
                w.insert("stays", message_id=ids[-1])
                n += 1
                time.sleep(0.005)

        flow = threading.Thread(target=application)
        flow.start()
        try:
            until(lambda: len(w.receiver.accepted("stays")) > 20, "a flow")
            for bad in ("destinations: [", "nonsense: 1\n",
                        '{"destinations": {"stays": {"http": {"url": "gopher://x"}}}}'):
                before = daemon.log().count("reload refused")
                w.write_config(bad)
                daemon.signal(signal.SIGHUP)
                daemon.says("reload refused, the old configuration stays", before + 1)
            w.insert("old", message_id="still")
            until(lambda: w.receiver.accepted("old")["still"], "the old configuration to work on")
            seen = len(w.receiver.accepted("stays"))
            until(lambda: len(w.receiver.accepted("stays")) > seen + 20, "the flow to go on")
            del w.config["destinations"]["old"]
            w.config["destinations"]["new"] = w.destination("new")
            w.write_config()
            daemon.signal(signal.SIGHUP)
            daemon.says("destination removed").says("destination added").says("msg=reloaded")
            daemon.says("lane acquired", 2)
            w.insert("new", message_id="n")
            w.insert("old", message_id="o")
            until(lambda: w.receiver.accepted("new")["n"] and w.letters(), "the new configuration to work")
            assert w.letters() == {"o": "UNKNOWN_DESTINATION"}
            seen = len(w.receiver.accepted("stays"))
            until(lambda: len(w.receiver.accepted("stays")) > seen + 20, "the flow to go on")
        finally:
            stop.set()
            flow.join()
        until(lambda: w.statuses() == {"sent": len(ids) + 2, "dead": 1}, lambda: f"all to be over: {w.statuses()}")
        once_each(w, ids, "stays")
        daemon.stop()


# ---- pauses ----

def resume(world, name):
    world.hikyaku("destinations", "resume", name, "--reason", "it works again", "--actor", "tester")


@test
def five_refused_credentials_in_a_row_pause_the_destination_and_nothing_else():
    with World({"locked": {"limits": {"concurrency": 1}}, "shop": {}}) as w:
        w.receiver.on("locked", 401)
        w.insert_many(30, prefix="l", destination="locked")
        w.insert_many(30)
        daemon = w.daemon()
        until(lambda: w.statuses().get("dead") == 5 and len(w.receiver.accepted("shop")) == 30,
              lambda: str(w.statuses()))
        paused = w.sql("SELECT name, paused, reason FROM outbox_destination")
        assert paused == [("locked", 1, "AUTH_FAILED")], paused
        lines = [line for line in daemon.says("destination paused").log().splitlines() if "destination paused" in line]
        assert len(lines) == 1 and "locked" in lines[0] and "AUTH_FAILED" in lines[0] and "resume" in lines[0], lines
        time.sleep(1)
        assert len(w.receiver.arrived(destination="locked")) == 5
        assert w.statuses("destination = 'locked'") == {"dead": 5, "pending": 25}
        assert w.sql("SELECT sum(attempts) FROM outbox_messages WHERE status = 'pending'") == [(0,)]
        w.receiver.on("locked", 200)
        resume(w, "locked")
        until(lambda: len(w.receiver.accepted("locked")) == 25, lambda: str(w.statuses()))
        w.settled(sent=55, dead=5)


@test
def a_410_pauses_the_destination_over_a_restart():
    with World({"gone": {"limits": {"concurrency": 1}}, "shop": {}}) as w:
        w.receiver.on("gone", 410)
        w.insert_many(10, prefix="g", destination="gone")
        daemon = w.daemon()
        until(lambda: w.sql("SELECT name FROM outbox_destination WHERE paused") == [("gone",)], "a pause")
        daemon.stop()
        assert w.letters() == {"g-0000": "HTTP_410"}
        w.daemon().ready()
        w.insert(message_id="m")
        until(lambda: w.receiver.accepted("shop")["m"], "the others to go on")
        assert len(w.receiver.arrived(destination="gone")) == 1
        w.receiver.on("gone", 200)
        resume(w, "gone")
        w.settled(sent=10, dead=1)


@test
def an_open_breaker_is_seen_by_people_and_outlives_its_relay():
    def open_until():
        shown = {d["name"]: d for d in json.loads(w.hikyaku("status", "--json"))["destinations"]}
        return shown.get("shop", {}).get("breaker_open_until")

    with World({"shop": {"breaker": {"failures": 3, "window": "1m", "open": "1h", "open_factor": 1}}}) as w:
        w.receiver.on("shop", 503)
        w.insert_many(5)
        daemon = w.daemon()
        until(open_until, "an open breaker")
        for words in (["status"], ["destinations", "list"]):
            assert "breaker: open until " + open_until()[:4] in w.hikyaku(*words), w.hikyaku(*words)
        daemon.stop()
        w.receiver.on("shop", 200)
        before, opens = len(w.receiver.arrived()), now_ms() + 4000
        w.sql(f"UPDATE outbox_destination SET open_until_ms = {opens}")  # most of the hour is over
        w.daemon()
        w.settled(sent=5)
        first = min(r.at for r in w.receiver.arrived()[before:]) * 1000
        assert first >= opens - 1, f"{opens - first} ms early"
        until(lambda: w.sql("SELECT open_until_ms FROM outbox_destination") == [(0,)], "the breaker to be closed")
        assert open_until() is None


@test
def an_operator_pauses_and_resumes():
    with World() as w:
        daemon = w.daemon().ready()
        w.hikyaku("destinations", "pause", "shop", "--reason", "maintenance", "--actor", "tester")
        sees_pause(daemon.log, "shop")
        w.insert_many(10)
        time.sleep(1)
        assert w.receiver.arrived() == [] and w.statuses() == {"pending": 10}
        resume(w, "shop")
        w.settled(sent=10)


@test
def a_resume_closes_the_breaker_of_a_relay_at_work():
    with World({"shop": {"breaker": {"failures": 3, "window": "1m", "open": "1h", "open_factor": 1}}}) as w:
        w.receiver.on("shop", 503)
        w.insert_many(5)
        w.daemon()
        until(lambda: w.sql("SELECT 1 FROM outbox_destination WHERE open_until_ms > 0"), "an open breaker")
        w.receiver.on("shop", 200)
        assert "shop: resumed" in w.hikyaku("destinations", "resume", "shop", "--reason", "mended", "--actor", "tester")
        w.settled(sent=5)  # an hour before it would have been tried again
        assert "was not paused" in w.hikyaku("destinations", "resume", "shop", "--reason", "mended", "--actor", "tester")


# ---- what the receiver sees ----

def signature(secret, request):
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


@test
def signatures_verify_and_payload_bytes_are_unchanged():
    keys = [bytes(range(32)), b"another key of 32 bytes, or so.."]
    secrets = ["whsec_" + base64.b64encode(k).decode() for k in keys]
    destinations = {"one": {"http": {"sign": {"secret": secrets[0]}}, "policy": "slow"},
                    "two": {"http": {"sign": {"secrets": secrets}}}, "plain": {}}
    everything = bytes(range(256)) * 5
    payloads = {"text": ('{"price": 1.0, "名": "飛脚", "a":1,"a":2 }\r\n', None), "blob": (everything, None),
                "base64": (base64.b64encode(everything).decode(), "base64"), "empty": ("", None)}
    if POSTGRES:
        del payloads["blob"]  # text it is, or base64
    slow = {"preset": "standard", "backoff": {"kind": "fixed", "base": "1100ms"}, "jitter": "none", "breaker": "off"}
    with World(destinations, policies={"slow": slow}) as w:
        w.receiver.on("one", lambda r: 503 if r.n < 3 else 200)
        w.daemon().ready()
        for name in destinations:
            for kind, (payload, encoding) in payloads.items():
                w.insert(name, payload=payload, encoding=encoding, message_id=f"{name}-{kind}",
                         content_type="application/x-test", idempotency_key='own "key"' if kind == "text" else None,
                         headers='{"X-Own":"yes"}',
                         traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        w.settled(sent=3 * len(payloads))
        expected = {"text": payloads["text"][0].encode(), "blob": everything, "base64": everything, "empty": b""}
        for r in w.receiver.arrived():
            kind = r.id.split("-")[1]
            assert r.body == expected[kind], r.id
            assert r.headers["idempotency-key"] == ('"own \\"key\\""' if kind == "text" else f'"{r.id}"')
            assert r.headers["content-type"] == "application/x-test" and r.headers["x-own"] == "yes"
            assert r.headers["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")
            assert abs(int(r.headers["webhook-timestamp"]) - r.at) < PATIENCE
            mine = {"one": keys[:1], "two": keys, "plain": []}[r.destination]
            assert r.headers.get("webhook-signature", "").split() == [signature(k, r) for k in mine], r.id
        for kind in payloads:
            visits = w.receiver.arrived(f"one-{kind}")
            assert len(visits) == 3 and len({v.headers["webhook-timestamp"] for v in visits}) == 3
            assert len({v.headers["webhook-signature"] for v in visits}) == 3
            assert len({v.headers["webhook-id"] for v in visits}) == 1


@test
def without_a_message_id_each_message_gets_its_own_for_good():
    with World() as w:
        w.receiver.on("shop", lambda r: 500 if r.n < 3 else 200)
        for _ in range(20):
            w.sql("INSERT INTO outbox (destination, event_type, payload) VALUES ('shop', 'T', '{}')")
        ids = {i for i, in w.sql("SELECT message_id FROM outbox")}
        assert len(ids) == 20
        w.daemon()
        w.settled(sent=20)
        once_each(w, ids)
        assert {len(w.receiver.arrived(i)) for i in ids} == {3}


# ---- two daemons ----

@test
@sqlite_only
def the_second_relay_waits_and_takes_over_from_a_killed_one():
    with World() as w:
        first = w.daemon("first").ready()
        second = w.daemon("second").says("holds it")
        ids = w.insert_many(20)
        w.settled(sent=20)
        w.receiver.on("shop", Answer(200, delay=0.5))
        ids += w.insert_many(20, prefix="late")
        until(lambda: len(w.receiver.arrived()) >= 25, "requests on their way")
        first.kill()
        second.ready()
        w.settled(sent=40)
        in_flight = {r.id for r in w.receiver.arrived() if r.id.startswith("late")}
        for i, n in w.receiver.accepted().items():
            assert n <= (2 if i in in_flight else 1), (i, n)
        assert set(w.receiver.accepted()) == set(ids)
        assert w.sql("SELECT count(*), count(DISTINCT message_id) FROM outbox_sent") == [(40, 40)]
        assert w.sql("SELECT sum(attempts) FROM outbox_sent") == [(40,)], "a crash charges no attempt"
        assert first.log().count("lane acquired") == second.log().count("lane acquired") == 1
        second.stop()


@test
@sqlite_only
def a_stalled_relay_changes_nothing_when_it_wakes_up():
    with World(relay={"concurrency": 8}, event_log=True) as w:
        w.receiver.on("shop", Answer(200, delay=0.3))
        first = w.daemon("first").ready()
        old_lane = w.sql("SELECT lane FROM outbox_relay")[0][0]
        second = w.daemon("second").says("holds it")
        ids = w.insert_many(40)
        until(lambda: len(w.receiver.accepted()) >= 8, "some to be accepted")
        first.freeze()
        stopped = now_ms()
        second.ready()
        until(lambda: len(w.receiver.accepted()) >= 24, "the second one at work")
        first.signal(signal.SIGCONT)
        woken = len(w.events.lines())
        first.says("lane lost")
        w.settled(sent=40)
        accepted = w.receiver.accepted()
        assert set(accepted) == set(ids) and all(n <= 2 for n in accepted.values()), accepted
        assert sum(accepted.values()) <= 40 + 8, "more repeats than the stalled one had in hand"
        assert w.sql("SELECT count(*), count(DISTINCT message_id) FROM outbox_sent") == [(40, 40)]
        # A round of the loop reads the clock once: what it had begun when it was stopped, it ends when it wakes.
        late = [e for e in w.events.lines()[woken:] if e.get("lane") == old_lane and e["t"] > stopped]
        assert not [e for e in late if e["ev"] in ("claim", "send", "renew")], late
        assert not [e for e in late if e["ev"] == "settle" and e["rows"]], late
        second.stop()
        until(lambda: first.log().count("lane acquired") == 2, "the first one's turn again")
        w.insert(message_id="after")
        w.settled(sent=41)


@test
def a_row_that_cannot_be_deleted_is_sent_once_and_the_others_go():
    with World() as w:
        w.insert(message_id="held", payload='{"n": 2}')
        if POSTGRES:
            w.sql("CREATE FUNCTION keep_held() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
            w.sql("CREATE TRIGGER keep_held BEFORE DELETE ON outbox FOR EACH ROW WHEN (old.message_id = 'held') "
                  "EXECUTE FUNCTION keep_held()")
        else:
            w.sql("CREATE TRIGGER keep_held BEFORE DELETE ON outbox WHEN old.message_id = 'held' "
                  "BEGIN SELECT RAISE(IGNORE); END")
        daemon = w.daemon().ready()
        daemon.says("others have put something on hikyaku's tables")
        daemon.says("its row is held, and not sent again")
        w.insert_many(20)
        w.settled(sent=20, pending=1)
        assert "keep_held" in w.hikyaku("messages", "explain", "held")
        assert "stuck" in w.hikyaku("status")
        daemon.stop()
        w.daemon("second").ready()
        w.insert(message_id="after")
        w.settled(sent=21, pending=1)
        assert w.receiver.accepted()["held"] == 1, w.receiver.accepted()


@test
@sqlite_only
def a_log_that_is_deleted_costs_nothing_that_was_committed_since():
    with World() as w:
        daemon = w.daemon().ready()
        w.insert(message_id="before")
        w.settled(sent=1)
        for name in ("outbox.db-wal", "outbox.db-shm"):
            w.path(name).unlink()
        db = w.connect()
        db.execute("CREATE TABLE kept (n)")
        for i in range(20):
            db.execute("INSERT INTO kept VALUES (?)", (i,))
        assert daemon.wait() != 0
        assert "moved, deleted or replaced" in daemon.log()
        db.close()
        assert w.sql("SELECT count(*) FROM kept") == [(20,)]
        assert w.sql("PRAGMA integrity_check") == [("ok",)]


@test
@sqlite_only
def doctor_finds_a_process_whose_log_was_deleted():
    with World() as w:
        db = w.connect()
        db.execute("SELECT count(*) FROM outbox").fetchall()
        assert "deleted" not in w.try_hikyaku("doctor")[1]
        for name in ("outbox.db-wal", "outbox.db-shm"):
            w.path(name).unlink()
        code, out = w.try_hikyaku("doctor")
        assert code != 0 and f"process {os.getpid()} has a -wal file open that was deleted" in out, out
        db.close()


@test
@sqlite_only
def a_database_that_is_replaced_ends_the_relay_with_a_word():
    with World() as w:
        daemon = w.daemon().ready()
        for name in ("outbox.db", "outbox.db-wal", "outbox.db-shm"):
            w.path(name).unlink(missing_ok=True)
        w.hikyaku("init")
        assert daemon.wait() != 0
        assert "moved, deleted or replaced" in daemon.log()
        w.insert(message_id="m")
        w.daemon("second").ready()
        w.settled(sent=1)


# ---- the wall clock ----

@test
@sqlite_only
def a_jumping_wall_clock_loses_nothing_and_sends_nothing_early():
    steady = {"preset": "standard", "backoff": {"kind": "fixed", "base": "700ms"}, "jitter": "none", "breaker": "off"}
    with World({"shop": {"policy": "steady"}}, policies={"steady": steady}, event_log=True) as w:
        clock = FakeClock(w)
        w.receiver.on("shop", lambda r: 503 if r.id.startswith("retry") and r.n < 3 else 200)
        try:
            daemon = w.daemon(env=clock.env).ready()
        except AssertionError as why:
            raise Skip(f"the program does not run under libfaketime here: {str(why)[-200:]!r}") from None
        start = time.time()
        w.insert(message_id="half-hour", not_before=rfc3339(start + 1800))
        w.insert(message_id="two-hours", not_before=rfc3339(start + 7200))
        w.insert(message_id="retry-0")
        until(lambda: w.receiver.accepted()["retry-0"], "a start")
        assert w.receiver.arrived("half-hour") == []

        clock.set(3600)
        w.insert(message_id="ahead")
        w.insert(message_id="retry-1")
        until(lambda: all(w.receiver.accepted()[i] for i in ("half-hour", "ahead", "retry-1")), "what is due by now")
        assert w.message("two-hours") == ("pending", 0, rfc3339(start + 7200))

        w.insert(message_id="retry-2")
        until(lambda: w.receiver.arrived("retry-2"), "an attempt before the clock goes back")
        clock.set(0)
        due = time.time() + 2  # by the clock itself: the store's time, which does not go back, is for leases and waits
        asked = time.monotonic()
        w.insert(message_id="back", not_before=rfc3339(due))
        w.insert(message_id="retry-3")
        w.insert(message_id="now")
        until(lambda: all(w.receiver.accepted()[i] for i in ("now", "retry-2", "retry-3")), "life after the jump back")
        until(lambda: w.receiver.accepted()["back"], "what was due two seconds later")
        assert time.monotonic() - asked >= 2, "sent early"
        w.settled(sent=8, pending=1)
        assert all(n == 1 for n in w.receiver.accepted().values())

        # by the store's clock: no send before the due time that its last settle set; by the real one: 0.7 s apart
        due_ms = {}
        last = 0
        for e in w.events.lines():
            if e["ev"] == "settle" and e["kind"] in ("retry", "defer"):
                due_ms[e["m"]] = e["due"]
            if e["ev"] == "send":
                assert e["t"] >= due_ms.get(e["m"], 0), e
            if e["ev"] == "renew":
                assert e["until"] >= last, "the store's clock went back"
                last = e["until"]
        for i in range(4):
            visits = w.receiver.arrived(f"retry-{i}")
            assert all(b.at - a.answered >= 0.7 for a, b in zip(visits, visits[1:])) or i == 1, [v.at for v in visits]
        for jump in ("ahead", "back"):  # each was said once
            assert daemon.log().count(f"the host's clock jumped {jump}") == 1, daemon.log()[-3000:]
        daemon.stop()


@test
@sqlite_only
def a_message_that_failed_with_a_wrong_clock_goes_after_a_reset():
    steady = {"preset": "standard", "backoff": {"kind": "fixed", "base": "700ms"}, "jitter": "none", "breaker": "off"}
    with World({"shop": {"policy": "steady"}}, policies={"steady": steady}) as w:
        clock = FakeClock(w)
        clock.set(86400)
        down = [True]
        w.receiver.on("shop", lambda r: 503 if down[0] else 200)
        try:
            daemon = w.daemon(env=clock.env).ready()
        except AssertionError as why:
            raise Skip(f"the program does not run under libfaketime here: {str(why)[-200:]!r}") from None
        w.insert(message_id="late")
        until(lambda: w.message("late")[0] == "retrying", "a failure at the wrong time")
        code, said = w.try_hikyaku("clock", "reset", "--reason", "NTP was off")
        assert code == 1 and "runs" in said and "stop every relay" in said, (code, said)
        daemon.stop()

        found = json.loads(w.hikyaku("clock", "show", "--json"))
        assert not found["in_step"] and 86000000 < found["ahead_ms"] < 86500000 and found["rows"]["waits"] == 1, found
        assert "1 message that waits for its next attempt" in w.hikyaku("clock", "reset", "--dry-run")
        due = w.sql("SELECT due_ms FROM outbox_retry")
        assert due[0][0] > (time.time() + 80000) * 1000, due
        told = w.hikyaku("clock", "reset", "--reason", "NTP was off", "--actor", "ann")
        assert "ahead of the clock, and goes by it again" in told and "1 message that waits" in told, told
        assert "in step" in w.hikyaku("clock", "reset", "--reason", "NTP was off")
        assert w.sql("SELECT actor, act, reason FROM outbox_audit") == [("ann", "clock-reset", "NTP was off")]
        w.hikyaku("audit", "verify")

        down[0] = False
        daemon = w.daemon().ready()  # with the right clock: not in a day
        until(lambda: w.receiver.accepted()["late"], lambda: f"the message: {w.message('late')}\n{daemon.log()[-2000:]}")
        assert "clock behind" not in daemon.log()
        daemon.stop()


@test
def a_reset_of_the_clock_tells_an_idle_relay_from_a_dead_one():
    day = 86400000
    with World({"shop": {}}, relay={"lease": "5s"}) as w:
        daemon = w.daemon().ready()
        until(lambda: w.sql("SELECT count(*) FROM outbox_relay") == [(1,)], "a lane")
        # as if the clock had been ahead: no lease is renewed that ends in a day
        w.sql(f"UPDATE outbox_relay SET until_ms = until_ms + {day}")
        w.sql(f"UPDATE outbox_alert_look SET evaluated_ms = {now_ms() + day}")
        code, said = w.try_hikyaku("clock", "reset", "--reason", "NTP was off")
        assert code == 1 and "runs" in said, (code, said)
        daemon.kill()
        told = w.hikyaku("clock", "reset", "--reason", "NTP was off")  # where no lock tells, after a lease
        assert "1 relay's lease" in told and "1 last look for alerts" in told, told
        w.insert(message_id="next")
        daemon = w.daemon().ready()
        until(lambda: w.receiver.accepted()["next"], lambda: f"its successor to work:\n{daemon.log()[-2000:]}")
        daemon.stop()


# ---- a full disk ----

@test
@sqlite_only
def a_full_disk_is_said_once_and_loses_nothing():
    with contextlib.ExitStack() as stack:
        w = stack.enter_context(World(init=False))
        small = w.path("small")
        small.mkdir()
        disk = FullDisk(stack, small)
        w.db = small / "outbox.db"
        w.config["store"] = f"sqlite:{w.db}"
        w.write_config()
        w.hikyaku("init")
        ids = w.insert_many(50, payload="x" * 2000)
        daemon = w.daemon()
        w.settled(sent=50)
        # more is committed while the destination fails, then the disk fills up under the relay
        w.receiver.on("shop", Answer(200, delay=0.2))
        ids += w.insert_many(200, prefix="late", payload="x" * 2000)
        until(lambda: len(w.receiver.accepted()) > 60, "some to go")
        db = w.connect()
        until(lambda: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "an empty WAL")
        disk.fill()
        db.close()
        daemon.says("store does not answer")
        time.sleep(4)
        said = daemon.log().count("store does not answer")
        assert "full" in daemon.log().lower(), daemon.log()[-1000:]
        assert not daemon.gone()
        disk.free()
        w.settled(sent=250)
        assert said == 1, f"it was said {said} times"
        daemon.says("store answers again")
        assert set(w.receiver.accepted()) == set(ids)
        assert w.sql("SELECT count(*) FROM dead_letters") == [(0,)]
        daemon.stop()
        assert w.sql("PRAGMA integrity_check") == [("ok",)]
        # and one that starts on a full disk waits for room
        w.insert(message_id="last")
        disk.fill()
        again = w.daemon("again")
        time.sleep(1.5)
        disk.free()
        if again.gone():
            assert again.process.returncode in (69, 75), (again.process.returncode, again.log())
            w.daemon("once more")
        w.settled(sent=251)


def refuse_writes(daemon):
    """No file may grow past 16 KiB, which leaves room for its log. Returns what gives the room back."""
    soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (16384, hard))
    return lambda: resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (soft, hard))


def ignore_sigxfsz():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


@test
@sqlite_only
def a_file_size_limit_is_as_good_as_a_full_disk():
    with World() as w:
        w.receiver.on("shop", Answer(200, delay=0.2))
        daemon = w.daemon(preexec=ignore_sigxfsz).ready()
        ids = w.insert_many(100, payload="x" * 2000)
        until(lambda: len(w.receiver.accepted()) > 10, "some to go")
        give_back = refuse_writes(daemon)
        daemon.says("store does not answer")
        time.sleep(1)
        assert not daemon.gone()
        give_back()
        w.settled(sent=100)
        assert set(w.receiver.accepted()) == set(ids)
        daemon.stop()


@test
@sqlite_only
def a_drain_ends_though_the_store_does_not_answer():
    with World() as w:
        w.receiver.on("shop", Answer(200, delay=0.2))
        daemon = w.daemon(preexec=ignore_sigxfsz).ready()
        w.insert_many(100, payload="x" * 2000)
        until(lambda: len(w.receiver.accepted()) > 10, "some to go")
        refuse_writes(daemon)
        daemon.says("store does not answer")
        daemon.signal(signal.SIGTERM)
        daemon.says("draining")
        daemon.signal(signal.SIGTERM)
        daemon.wait()
        w.daemon("next")
        w.settled(sent=100)
        assert all(n <= 2 for n in w.receiver.accepted().values())


@test
@sqlite_only
def a_damaged_database_ends_the_relay_in_good_order():
    with World() as w:
        w.damaged = True
        w.receiver.on("shop", Answer(200, delay=1))
        daemon = w.daemon().ready()
        w.insert_many(300, payload="x" * 2000)
        until(lambda: len(w.receiver.arrived()) > 10, "requests on their way")
        db = w.connect()
        until(lambda: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "an empty WAL")
        db.close()
        with open(w.db, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
        assert daemon.wait() == 69
        assert daemon.log().count("level=error") == 1 and "damaged" in daemon.log()


@test
def a_relay_that_waits_for_a_lane_sleeps():
    if POSTGRES:
        raise Skip("many relays of one database have a lane each")

    def cpu_s(pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    with World() as w:
        first = w.daemon().ready()
        second = w.daemon("second").says("no lane yet, waiting")
        time.sleep(1)
        before, at = cpu_s(second.pid), time.monotonic()
        time.sleep(2)
        used, passed = cpu_s(second.pid) - before, time.monotonic() - at
        assert used < passed / 5, f"{used} s of CPU in {passed} s"
        first.stop()
        second.ready()
        log = second.log()
        assert "holds it" in log and "does not answer" not in log and "answers again" not in log, log


sys.exit(run_tests(TESTS))
