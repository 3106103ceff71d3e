#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What relays leave in the store for people, and what `hikyaku status` makes of it. Speaks TAP.

Usage: figures.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres: on PostgreSQL"""
import json
import signal
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import Answer, World, run_tests, until  # noqa: E402

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def status(w, *args):
    return json.loads(w.hikyaku("status", "--json", *args))


def dest(w, name="shop"):
    return {d["name"]: d for d in status(w)["destinations"]}.get(name, {})


def lately(w, name="shop"):
    return dest(w, name).get("last_minute") or {}


@test
def rates_latencies_and_success_are_those_of_the_last_minute():
    with World(("shop", "other")) as w:
        w.receiver.on("shop", lambda r: Answer(200, {}, 0.02) if r.n > 1 or r.id != "bad-0000" else 500)
        w.daemon().ready()
        w.insert_many(30)
        w.insert_many(1, prefix="bad")
        w.settled(sent=31)
        until(lambda: lately(w).get("attempts_ok") == 31, lambda: dest(w))
        seen = lately(w)
        assert seen["attempts_failed"] == 1 and seen["dead"] == 0, seen
        assert abs(seen["success_ratio"] - 31 / 32) < 1e-9, seen
        assert seen["in_per_s"] > 0 and seen["out_per_s"] > 0, seen
        assert 18 <= seen["latency_ms"]["p50"] <= seen["latency_ms"]["p95"] <= seen["latency_ms"]["p99"], seen
        shop = dest(w)
        assert shop["last_error"] and shop["last_error_at"] and shop["breaker"] == "closed", shop
        text = w.hikyaku("status")
        assert "IN THE LAST MINUTE" in text and "P99" in text and "last error" in text, text
        assert "other" not in {d["name"] for d in status(w)["destinations"]}  # nothing happened there


@test
def an_error_that_repeats_what_is_masked_does_not_get_into_the_figures():
    masks = [{"event_type": "*", "paths": ["card"]}]
    with World(masks=masks, policies={"once": {"preset": "standard", "max_attempts": 1}}) as w:
        w.config["destinations"]["shop"]["policy"] = "once"
        # a host name that cannot be resolved is repeated in the error: here it is the card's number
        w.config["destinations"]["shop"]["http"]["url"] = "http://c4111111111111111.invalid/"
        w.write_config()
        w.insert(payload=json.dumps({"card": "c4111111111111111"}))
        w.daemon().ready()
        until(lambda: w.statuses().get("dead") == 1, "a dead letter")
        until(lambda: dest(w).get("last_error"), "a last error")
        shown = json.dumps(status(w)) + w.hikyaku("status")
        assert "4111111111111111" not in shown, shown
        rows = w.sql("SELECT last_error FROM outbox_figures")
        assert rows and all("4111111111111111" not in (r[0] or "") for r in rows), rows


@test
def an_error_from_before_a_mask_leaves_the_figures_with_the_reload():
    with World(policies={"once": {"preset": "standard", "max_attempts": 1}}) as w:
        w.config["destinations"]["shop"]["policy"] = "once"
        w.config["destinations"]["shop"]["http"]["url"] = "http://c4111111111111111.invalid/"
        w.write_config()
        w.insert(payload=json.dumps({"card": "c4111111111111111"}))
        daemon = w.daemon().ready()
        until(lambda: "4111111111111111" in (dest(w).get("last_error") or ""), "a last error")
        w.config["masks"] = [{"event_type": "*", "paths": ["card"]}]
        w.write_config()
        daemon.signal(signal.SIGHUP)
        until(lambda: "4111111111111111" not in json.dumps(status(w)) + w.hikyaku("status"), "it is gone")


@test
def an_idle_relay_writes_nothing_and_its_rows_go_with_it():
    with World() as w:
        daemon = w.daemon().ready()
        time.sleep(6)
        assert w.sql("SELECT count(*) FROM outbox_figures")[0][0] == 0
        w.insert_many(3)
        w.settled(sent=3)
        until(lambda: w.sql("SELECT count(*) FROM outbox_figures")[0][0] == 1, "figures")
        daemon.stop()
        assert w.sql("SELECT count(*) FROM outbox_figures")[0][0] == 0


@test
def what_a_killed_relay_said_counts_no_longer_than_its_lease():
    with World() as w:
        daemon = w.daemon().ready()
        w.insert_many(3)
        until(lambda: lately(w).get("attempts_ok") == 3, lambda: dest(w))
        daemon.kill()
        until(lambda: not dest(w), lambda: dest(w))
        assert w.sql("SELECT count(*) FROM outbox_figures")[0][0] == 1  # nobody has taken over yet
        w.daemon("next").ready()
        until(lambda: w.sql("SELECT count(*) FROM outbox_figures")[0][0] == 0, "the rows to go with the lane")


@test
def a_store_that_is_busy_costs_figures_and_nothing_else():
    with World() as w:
        daemon = w.daemon().ready()
        w.insert_many(5)
        w.settled(sent=5)
        db = w.connect()
        db.execute("BEGIN")
        db.execute("LOCK TABLE outbox_figures" if "postgres" in w.url else
                   "UPDATE outbox_meta SET value = value WHERE key = 'schema_version'")
        time.sleep(7)
        assert not daemon.gone()
        db.execute("ROLLBACK")
        db.close()
        w.insert_many(5, prefix="n")
        until(lambda: lately(w).get("attempts_ok") == 10, lambda: (dest(w), daemon.log()))
        daemon.stop()


@test
def what_waits_behind_the_head_of_its_key_is_counted():
    with World({"shop": {"order": "key"}, "free": {}}, policies={
            "once": {"preset": "standard", "max_attempts": 1, "breaker": "off"}}) as w:
        w.config["destinations"]["shop"]["policy"] = "once"
        w.write_config()
        w.receiver.on("shop", lambda r: 400 if r.id == "head" else 200)
        w.insert(message_id="head", message_key="k")
        for i in range(4):
            w.insert(message_id=f"m{i}", message_key="k")
        w.insert(message_id="alone", message_key="other")
        w.insert(destination="free", message_id="f1", message_key="k")
        w.daemon().ready()
        w.settled(sent=2, dead=1, pending=4)
        assert status(w)["blocked"] == {"n": 4, "estimate": False}
        assert status(w, "--exact")["blocked"] == {"n": 4, "estimate": False}
        assert dest(w)["blocked"]["n"] == 4 and "blocked" in w.hikyaku("status")
        assert not dest(w, "free") or dest(w, "free")["blocked"] is None


@test
def without_figures_the_rest_is_shown():
    with World() as w:
        w.insert(message_id="m")
        w.sql("ALTER TABLE outbox_figures RENAME TO away")
        assert status(w)["due"]["n"] == 1 and "figures" in status(w)["figures_error"]
        assert "cannot be read" in w.hikyaku("status")
        assert json.loads(w.hikyaku("messages", "explain", "m", "--json"))["cause"] == "no_relay"
        w.sql("ALTER TABLE away RENAME TO outbox_figures")
        assert status(w)["figures_error"] is None


@test
def a_limit_that_holds_messages_back_is_shown():
    with World({"shop": {"limits": {"rate": "1/s", "burst": 1}}}) as w:
        w.insert_many(600)
        w.daemon().ready()
        until(lambda: dest(w).get("limited"), lambda: dest(w))
        assert dest(w)["limited_until"] and "at its limit" in w.hikyaku("status")


def lines(w, *args):
    return {line["destination"]: line["points"] for line in json.loads(w.hikyaku("figures", "--json", *args))["items"]}


def total(points, name):
    return sum(p[name] or 0 for p in points)


@test
def figures_over_time_have_what_each_minute_brought():
    with World(("shop", "other"), policies={"once": {"preset": "standard", "max_attempts": 1}}) as w:
        w.config["destinations"]["other"]["policy"] = "once"
        w.write_config()
        w.receiver.on("shop", lambda r: Answer(200, {}, 0.02) if r.n > 1 or r.id != "bad-0000" else 500)
        w.receiver.on("other", lambda r: 422)
        daemon = w.daemon().ready()
        w.insert_many(30)
        w.insert_many(1, prefix="bad")
        w.insert(message_id="dies", destination="other")
        w.settled(sent=31, dead=1)
        until(lambda: total(lines(w)[None], "attempts_ok") == 31, lambda: lines(w))  # a minute has to end
        # what lies in the store is counted after that, by one relay
        until(lambda: lines(w)[None][-1]["dead_open"] == 1 or lines(w)[None][-2]["dead_open"] == 1, lambda: lines(w)[None][-3:])
        seen = lines(w, "--for", "2h", "--step", "5m")
        assert set(seen) == {None, "shop", "other"}, seen.keys()
        assert len(seen[None]) in (24, 25) and all(len(points) == len(seen[None]) for points in seen.values())
        assert total(seen["shop"], "attempts_failed") == 1 == total(seen["shop"], "retried"), seen["shop"]
        assert total(seen["other"], "dead") == 1 == total(seen["other"], "attempts_failed") and total(seen["other"], "retried") == 0
        point = next(p for p in reversed(seen["shop"]) if p["attempts_ok"])
        assert 18 <= point["latency_p50_ms"] <= point["latency_p95_ms"], point
        assert seen[None][0]["waiting"] is None and seen[None][0]["attempts_ok"] == 0, "before anybody counted"
        assert total(lines(w, "--step", "1h", "--destination", "shop")["shop"], "attempts_ok") == 31, "hours have it as well"
        assert lines(w, "--destination", "nowhere")["nowhere"][0]["attempts_ok"] == 0
        text = w.hikyaku("figures")
        assert "(all)" in text and "SENT OVER TIME" in text, text
        # what was counted since the last minute is written when the relay ends in order
        w.insert_many(5, prefix="late")
        w.settled(sent=36, dead=1)
        daemon.stop()
        assert total(lines(w)[None], "attempts_ok") == 36, lines(w)[None][-3:]


@test
def figures_say_what_is_wrong_with_a_span():
    with World() as w:
        for args, says in ((("--step", "1m", "--for", "30d"), "points"), (("--since", "yesterday"), "is no time"),
                           (("--since", "2026-01-01T00:00:00Z", "--for", "1h"), "one of them"),
                           (("--since", "2026-01-02T00:00:00Z", "--until", "2026-01-01T00:00:00Z"), "not before"),
                           (("--step", "2m"), "1m")):
            code, told = w.try_hikyaku("figures", *args)
            assert code == 2 and says in told, (args, told)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
