#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`hikyaku messages explain`: each test makes one situation and reads that cause. Speaks TAP.

Usage: explain.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres: on PostgreSQL"""
import calendar
import json
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import BINARY, POSTGRES, Answer, Skip, World, clean_environment, rfc3339, run_tests, until  # noqa: E402
from words import LANGUAGES, holes, words  # noqa: E402

TESTS = []
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SLOW = {"preset": "standard", "backoff": {"kind": "fixed", "base": "1h"}, "jitter": "none", "breaker": "off", "max_attempts": 9}
ONCE = {"preset": "standard", "max_attempts": 1, "breaker": "off"}
HANG = Answer(200, {}, 0, True)


def test(function):
    TESTS.append(function)
    return function


def world(shop=None, **more):
    shop = {"policy": "slow", **(shop or {})}
    return World({"shop": shop}, policies={"slow": SLOW, "once": ONCE, **more.pop("policies", {})},
                 relay={"lease": "30s", **more.pop("relay", {})}, **more)


def run(w, *args):
    return subprocess.run([BINARY, "--config", str(w.config_path), "messages", "explain", *args], cwd=w.folder, text=True,
                          capture_output=True, timeout=60, check=False, env=clean_environment())


def explain(w, message_id="m", *args):
    """The answer; and what a person sees says the same."""
    done = run(w, message_id, "--json", *args)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    answer = json.loads(done.stdout)
    assert answer["cause"] == answer["items"][0]["cause"] == answer["items"][0]["causes"][0]["cause"], answer
    for cause in answer["items"][0]["causes"]:
        assert cause["text"] and cause["do"] and not CONTROL.search(cause["text"] + cause["do"]), cause
        for language in LANGUAGES:
            for kind in ("because", "do"):
                sentence = words(f"findings_{language}")[f"{kind}.{cause['code']}"]
                assert holes(sentence) <= set(cause["values"]), (sentence, cause)
    return answer


def causes(w, message_id="m", *args):
    return [c["cause"] for c in explain(w, message_id, *args)["items"][0]["causes"]]


def first(w, message_id="m", *args):
    return explain(w, message_id, *args)["items"][0]["causes"][0]


def ms(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) * 1000 + int(text[20:23])


def says(w, message_id, *texts):
    done = run(w, message_id)
    assert done.returncode == 0, done.stderr
    for text in texts:
        assert text in done.stdout, (text, done.stdout)


@test
def a_retry_that_is_not_due():
    with world() as w:
        w.receiver.on("shop", 503)
        w.insert(message_id="m")
        w.daemon().ready()
        w.settled(retrying=1)
        c = first(w)
        assert c["cause"] == "not_due" and causes(w) == ["not_due"], c
        assert abs(ms(c["until"]) / 1000 - time.time() - 3600) < 60, c
        assert "HTTP_503" in c["text"] and "attempt 2" in c["text"], c
        says(w, "m", "[not_due]", "messages retry")


@test
def a_message_for_later():
    with world() as w:
        due = rfc3339(time.time() + 7200)
        w.insert(message_id="m", not_before=due)
        w.daemon().ready()
        until(lambda: w.sql("SELECT count(*) FROM outbox_retry")[0][0] == 1, "the relay to put it aside")
        c = first(w)
        assert c["cause"] == "not_due" and ms(c["until"]) == ms(due) and "not_before" in c["text"], c


@test
def a_key_that_a_dead_head_blocks():
    with world({"order": "key", "policy": "once"}) as w:
        w.receiver.on("shop", 400)
        w.insert(message_id="head", message_key="k")
        w.insert(message_id="m", message_key="k")
        w.daemon().ready()
        w.settled(dead=1, pending=1)
        c = first(w)
        letter = str(w.sql("SELECT id FROM dead_letters")[0][0])
        assert (c["cause"], c["blocked_by"], c["letter"]) == ("key_blocked", "head", letter), c
        assert "dead" in c["text"] and f"dead show {letter}" in c["do"], c
        w.config["destinations"]["shop"]["on_dead"] = "skip"
        w.write_config()
        assert "key_blocked" not in causes(w)
        w.config["destinations"]["shop"]["order"] = "none"
        w.write_config()
        assert "key_blocked" not in causes(w)


@test
def a_key_that_a_waiting_head_blocks():
    with world({"order": "key"}) as w:
        w.receiver.on("shop", 503)
        w.insert(message_id="head", message_key="k")
        w.insert(message_id="m", message_key="k")
        w.daemon().ready()
        w.settled(retrying=1, pending=1)
        c = first(w)
        assert (c["cause"], c["blocked_by"], c["letter"]) == ("key_blocked", "head", None), c
        assert abs(ms(c["until"]) / 1000 - time.time() - 3600) < 60 and "next attempt" in c["text"], c
        assert first(w, "head")["cause"] == "not_due"


@test
def a_key_whose_head_is_in_flight():
    with world({"order": "key"}) as w:
        w.receiver.on("shop", HANG)
        w.insert(message_id="head", message_key="k")
        w.insert(message_id="m", message_key="k")
        w.daemon().ready()
        until(lambda: w.receiver.arrived("head"), "the head to be sent")
        c = first(w)
        assert (c["cause"], c["blocked_by"]) == ("key_blocked", "head") and "in flight" in c["text"], c


@test
def a_key_whose_earlier_message_has_not_gone_out():
    with world({"order": "key"}) as w:
        w.insert(message_id="head", message_key="k")
        w.insert(message_id="m", message_key="k")
        assert causes(w) == ["no_relay", "key_blocked"]
        c = explain(w)["items"][0]["causes"][1]
        assert c["blocked_by"] == "head" and "before it" in c["text"], c
        assert causes(w, "head") == ["no_relay"]


@test
def an_open_breaker():
    with world({"breaker": {"failures": 3, "window": "1m", "open": "2m", "open_factor": 1}}, policies={
            "slow": {**SLOW, "breaker": {"failures": 3, "window": "1m", "open": "2m"}}}) as w:
        w.receiver.on("shop", 503)
        w.insert_many(3)
        w.daemon().ready()
        opens = until(lambda: w.sql("SELECT max(open_until_ms) FROM outbox_destination")[0][0], "the breaker to open")
        w.insert(message_id="m")
        c = first(w)
        assert c["cause"] == "breaker_open" and ms(c["until"]) == opens, (c, opens)
        assert "shop" in c["text"] and "destinations test" in c["do"], c


@test
def a_paused_destination():
    with world() as w:
        w.daemon().ready()
        w.hikyaku("destinations", "pause", "shop", "--reason", "工事中", "--actor", "ann")
        w.insert(message_id="m")
        c = first(w)
        assert (c["cause"], c["by"], c["reason"]) == ("paused", "ann", "工事中") and c["since"], c
        assert "resume" in c["do"], c
        says(w, "m", "ann", "工事中", "[paused]")


@test
def a_limiter_that_holds_it_back():
    with world({"limits": {"rate": "6/m", "burst": 1}}) as w:
        w.insert_many(4, prefix="x")
        w.insert(message_id="m")
        w.daemon().ready()
        until(lambda: w.receiver.arrived(), "the first to go")
        until(lambda: "rate_limited" in causes(w), lambda: explain(w))
        c = first(w)
        assert c["cause"] == "rate_limited", c
        assert 10 < ms(c["until"]) / 1000 - time.time() < 80, c


@test
def a_wait_that_the_destination_asked_for():
    with world() as w:
        w.receiver.on("shop", Answer(429, {"Retry-After": "300"}))
        w.insert(message_id="first")
        w.daemon().ready()
        w.settled(retrying=1)
        w.insert(message_id="m")
        until(lambda: "rate_limited" in causes(w), lambda: explain(w))
        assert ms(first(w)["until"]) / 1000 - time.time() > 100


@test
def a_destination_that_is_full():
    with world({"limits": {"concurrency": 1}}) as w:
        w.receiver.on("shop", HANG)
        w.insert(message_id="first")
        w.daemon().ready()
        until(lambda: w.receiver.arrived("first"), "the first to be sent")
        w.insert(message_id="m")
        until(lambda: "concurrency" in causes(w), lambda: explain(w))


@test
def no_relay_is_running():
    with world() as w:
        w.insert(message_id="m")
        c = first(w)
        assert c["cause"] == "no_relay" and "hikyaku run" in c["do"] and causes(w) == ["no_relay"], c


@test
def a_message_that_is_being_sent():
    with world() as w:
        w.receiver.on("shop", HANG)
        w.insert(message_id="m")
        w.daemon("relay-7").ready()
        until(lambda: w.receiver.arrived("m"), "it to be sent")
        c = first(w)
        name = w.sql("SELECT name FROM outbox_relay")[0][0]
        assert (c["cause"], c["by"]) == ("processing", name) and c["since"] and causes(w) == ["processing"], c


@test
def a_lease_that_a_dead_relay_holds():
    with world(relay={"lease": "20s"}) as w:
        w.receiver.on("shop", HANG)
        w.insert(message_id="m")
        daemon = w.daemon().ready()
        until(lambda: w.receiver.arrived("m"), "it to be sent")
        daemon.kill()
        name, ends = w.sql("SELECT name, until_ms FROM outbox_relay")[0]
        until(lambda: causes(w)[0] == "lease_held", lambda: explain(w))
        c = first(w)
        assert c["by"] == name and ms(c["until"]) == ends and "another relay takes over" in c["text"], c
        until(lambda: causes(w) == ["lease_held", "no_relay"], lambda: explain(w))  # it has ended
        w.receiver.on("shop", 200)
        w.daemon("next").ready()
        until(lambda: causes(w) == ["sent"], lambda: explain(w))


@test
def a_shard_whose_relay_died():
    if not POSTGRES:
        raise Skip("SQLite has one shard")
    with world(relay={"lease": "20s"}) as w:
        dead, alive = w.daemon("dead").ready(), w.daemon("alive").ready()
        until(lambda: w.sql("SELECT count(*) FROM (SELECT 1 FROM outbox_shard GROUP BY lane HAVING count(*) = 32) x")[0][0] == 2,
              "both to have their share")
        dead.kill()
        w.insert_many(64)
        until(lambda: w.statuses().get("sent", 0) >= 4, "the other's messages to go")
        waiting = [r[0] for r in w.sql("SELECT message_id FROM outbox_messages WHERE status = 'pending'")]
        assert waiting
        until(lambda: explain(w, waiting[0])["cause"] in ("lease_held", "sent"), lambda: explain(w, waiting[0]))
        c = first(w, waiting[0])
        assert c["cause"] == "lease_held" and "shard" in c["text"] and c["until"], c
        w.settled(sent=64)
        alive.stop()


@test
def a_destination_that_nobody_knows():
    with world() as w:
        w.insert(message_id="m", destination="shpo")
        assert causes(w) == ["unknown_destination", "no_relay"]
        assert "shpo" in first(w)["text"] and "destinations:" in first(w)["do"]
        w.daemon().ready()
        until(lambda: causes(w) == ["dead"], lambda: explain(w))
        assert first(w)["reason"] == "UNKNOWN_DESTINATION"


@test
def an_event_type_without_a_route():
    with world(routes=[{"event_type": "Order*", "destination": "shop"}]) as w:
        w.insert(message_id="m", destination="", event_type="Invoice")
        assert causes(w) == ["no_route", "no_relay"] and "Invoice" in first(w)["text"]
        w.insert(message_id="routed", destination="", event_type="OrderMade")
        w.hikyaku("destinations", "pause", "shop", "--reason", "r", "--actor", "ann")
        assert causes(w, "routed") == ["no_relay", "paused"] and explain(w, "routed")["items"][0]["destination"] == "shop"


@test
def a_message_that_has_expired():
    with world() as w:
        w.insert(message_id="m", expires_at=rfc3339(time.time() - 60))
        assert causes(w) == ["expired", "no_relay"] and first(w)["until"]
        w.daemon().ready()
        until(lambda: causes(w) == ["dead"], lambda: explain(w))
        assert first(w)["reason"] == "EXPIRED"


@test
def messages_that_have_ended():
    with world({"policy": "once"}) as w:
        w.receiver.on("shop", lambda r: 400 if r.id.startswith("dead") else 200)
        for message_id in ("sent", "dead-1", "dead-2", "later"):
            w.insert(message_id=message_id, **({"not_before": rfc3339(time.time() + 3600)} if message_id == "later" else {}))
        daemon = w.daemon().ready()
        until(lambda: w.statuses() == {"sent": 1, "dead": 2, "pending": 1}, w.statuses)
        w.hikyaku("messages", "cancel", "later", "--reason", "wrong order", "--actor", "bob")
        w.hikyaku("dead", "discard", "dead-2", "--reason", "test", "--yes")
        assert first(w, "sent")["cause"] == "sent" and first(w, "sent")["since"]
        c = first(w, "dead-1")
        assert (c["cause"], c["reason"]) == ("dead", "HTTP_400") and c["letter"] in c["do"] and "requeue" in c["do"], c
        assert first(w, "dead-2")["cause"] == "discarded" and "restore" in first(w, "dead-2")["do"]
        c = first(w, "later")
        assert (c["cause"], c["by"], c["reason"]) == ("cancelled", "bob", "wrong order"), c
        daemon.stop()
        assert first(w, "sent")["cause"] == "sent"  # whoever relays


@test
def a_requeued_letter_is_told_by_its_new_life():
    with world({"policy": "once"}) as w:
        w.receiver.on("shop", 400)
        w.insert(message_id="m")
        daemon = w.daemon().ready()
        w.settled(dead=1)
        daemon.stop()
        w.hikyaku("dead", "requeue", "m", "--reason", "again", "--yes", "--same-id")
        assert causes(w) == ["no_relay"]
    with world({"policy": "once"}) as w:
        w.receiver.on("shop", 400)
        w.insert(message_id="m")
        daemon = w.daemon().ready()
        w.settled(dead=1)
        daemon.stop()
        w.hikyaku("dead", "requeue", "m", "--reason", "again", "--yes", "--new-id")
        assert causes(w) == ["requeued"] and "another id" in first(w)["text"]


@test
def no_such_message():
    with world() as w:
        done = run(w, "nobody")
        assert done.returncode == 1 and done.stdout == "" and "no message" in done.stderr, done
        done = run(w, "nobody", "--json")
        assert done.returncode == 1 and json.loads(done.stdout)["cause"] == "no_such_message", done
        w.insert(message_id="m")
        done = run(w, "m", "--json", "--destination", "other")
        assert done.returncode == 1 and json.loads(done.stdout) == {
            "message_id": "m", "items": [], "cause": "no_such_message", "found": True}, done.stdout  # to another destination


@test
def a_message_that_nothing_holds():
    with world() as w:
        daemon = w.daemon().ready()
        daemon.freeze()  # it cannot take it, and nobody can know yet
        w.insert_many(3, prefix="x")
        w.insert(message_id="m")
        c = first(w)
        assert c["cause"] == "queued" and "3 before it" in c["text"], c
        daemon.signal(signal.SIGCONT)
        until(lambda: causes(w) == ["sent"], lambda: explain(w))


@test
def several_causes_stand_in_the_order_of_their_weight():
    with world({"order": "key", "policy": "once"}) as w:
        w.receiver.on("shop", 400)
        w.insert(message_id="head", message_key="k")
        w.daemon().ready()
        w.settled(dead=1)
        w.hikyaku("destinations", "pause", "shop", "--reason", "r", "--actor", "ann")
        w.insert(message_id="m", message_key="k", not_before=rfc3339(time.time() + 3600))
        assert causes(w) == ["paused", "key_blocked", "not_due"]
        done = run(w, "m")
        assert done.stdout.count("why ") == 1 and done.stdout.count("also") == 2, done.stdout


@test
def a_message_to_several_destinations_is_explained_for_each():
    with World(("a", "b"), policies={"slow": SLOW}, default_policy="slow",
               routes=[{"event_type": "*", "destination": ["a", "b"]}]) as w:
        w.receiver.on("b", 503)
        w.insert(destination="", message_id="m")
        assert causes(w) == ["no_relay"]
        w.daemon().ready()
        w.settled(sent=1, retrying=1)
        told = {i["destination"]: i["cause"] for i in explain(w)["items"]}
        assert told == {"a": "sent", "b": "not_due"}, told
        assert [i["destination"] for i in explain(w, "m", "--destination", "a")["items"]] == ["a"]


@test
def nothing_that_a_row_holds_moves_the_cursor():
    with world({"order": "key"}) as w:
        evil = "\x1b[2J\u202eevil\x07"
        w.insert(message_id="head" + evil, message_key="k", event_type=evil)
        w.insert(message_id="m" + evil, message_key="k")
        w.insert(message_id="x" + evil, destination=evil)
        w.hikyaku("destinations", "pause", "shop", "--reason", evil, "--actor", evil)
        for message_id in ("m" + evil, "x" + evil):
            for args in ((message_id,), (message_id, "--json")):
                done = run(w, *args)
                assert done.returncode == 0 and "\x1b" not in done.stdout and "\x07" not in done.stdout, done
                assert "--json" in args or not CONTROL.search(done.stdout + done.stderr), done


@test
def without_a_configuration_the_store_alone_is_asked():
    with world() as w:
        w.hikyaku("destinations", "pause", "shop", "--reason", "r", "--actor", "ann")
        w.insert(message_id="m", message_key="k")
        done = subprocess.run([BINARY, "--db", w.url, "messages", "explain", "m", "--json"], cwd="/", text=True,
                              capture_output=True, timeout=60, check=False, env=clean_environment())
        assert done.returncode == 0, done.stderr
        assert [c["cause"] for c in json.loads(done.stdout)["items"][0]["causes"]] == ["no_relay", "paused"], done.stdout


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
