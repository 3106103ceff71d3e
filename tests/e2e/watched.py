#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Destinations that were created while a relay runs are watched like those of the file: metrics, figures, alerts, auto_redrive. Speaks TAP.

Usage: watched.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import json
import re
import sys
import urllib.request

sys.dont_write_bytecode = True  # the source folder stays as it is
from definitions import LOCAL, Desk, reload
from support import QUICK, run_tests, until

TESTS = []
BREAKER = {"failures": 5, "window": "30s", "open": "300ms", "open_factor": 1, "open_jitter": 0}
TWICE = {**QUICK, "max_attempts": 2}


def test(function):
    TESTS.append(function)
    return function


def page(w):
    address = re.findall(r'msg="admin listening" address=(\S+)', w.relay.log())[-1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        return answer.read().decode()


def metric(w, name, **labels):
    """Its value; None: there is no such series."""
    wanted = ",".join(f'{k}="{v}"' for k, v in labels.items())
    found = re.search(rf"^{name}\{{{re.escape(wanted)}\}} (\S+)$", page(w), re.M)
    return float(found[1]) if found else None


def lately(w, name):
    found = {d["name"]: d for d in w.json("status")["destinations"]}.get(name, {})
    return found.get("last_minute") or {}


@test
def one_that_was_created_has_metrics_figures_and_alerts_of_its_own():
    with Desk(policies={"once": {"preset": "standard", "max_attempts": 1}}, alerts={
            "interval": "100ms", "rules": [{"name": "died", "when": "dead_letter", "destination": "crm*"}]},
              channels={"told": {"exec": {"command": ["/bin/true"]}}}) as w:
        w.serve()
        w.define("create", "crm", policy="once")
        w.define("create", "quiet")
        until(lambda: metric(w, "hikyaku_destination_paused", destination="quiet") == 0, "a value of its own, before anything was sent")
        w.receiver.on("crm", lambda r: 422 if r.id.startswith("bad") else 200)
        w.insert_many(20, destination="crm")
        w.insert_many(2, prefix="bad", destination="crm")
        w.settled(sent=20, dead=2)
        until(lambda: metric(w, "hikyaku_messages_sent_total", destination="crm") == 20, lambda: page(w))
        assert metric(w, "hikyaku_dead_letters_total", destination="crm", reason="HTTP_4xx") == 2
        assert metric(w, "hikyaku_messages_sent_total", destination="other") is None
        until(lambda: lately(w, "crm").get("attempts_ok") == 20 and lately(w, "crm")["dead"] == 2, lambda: w.json("status"))
        alert = until(lambda: w.json("alerts", "list")["items"], "an alert")[0]
        assert alert["destination"] == "crm" and alert["count"] == 2, alert
        reload(w.relay)  # with the same names: what was counted stays
        assert metric(w, "hikyaku_messages_sent_total", destination="crm") == 20
        w.insert_many(1, prefix="more", destination="crm")
        w.settled(sent=21, dead=2)
        until(lambda: metric(w, "hikyaku_messages_sent_total", destination="crm") == 21, lambda: page(w))
        w.hikyaku("destinations", "delete", "quiet", "--actor", "ann", "--reason", "gone")
        until(lambda: metric(w, "hikyaku_destination_paused", destination="quiet") is None, "its series end")
        w.relay.stop()  # what was counted in this minute is written
        series = {i["destination"]: i["points"] for i in w.json("figures")["items"]}
        assert sum(p["attempts_ok"] or 0 for p in series["crm"]) == 21, series["crm"]
        assert sum(p["dead"] or 0 for p in series["crm"]) == 2


@test
def names_are_bounded_and_go_to_those_that_send():
    with Desk(definitions={**LOCAL, "max": 1000}) as w:
        w.serve()
        many = {f"d-{i:03}": w.destination("all") for i in range(300)}
        w.path("many.json").write_text(json.dumps(many))
        w.hikyaku("destinations", "apply", "--definitions", f"@{w.path('many.json')}", "--actor", "ann", "--reason", "many")

        def named():
            return set(re.findall(r'^hikyaku_destination_paused\{destination="([^"]+)"\}', page(w), re.M))

        until(lambda: len(named()) == 256, lambda: f"256 names, not {len(named())}")
        assert "shop" in named() and "d-299" not in named(), "the file's first, then by name"
        w.insert_many(3, destination="d-299")
        w.settled(sent=3)
        until(lambda: metric(w, "hikyaku_messages_sent_total", destination="d-299") == 3, lambda: sorted(named())[-3:])
        # its count comes at once, the gauges with the next look at the store
        until(lambda: len(named()) == 256 and {"shop", "d-299"} <= named(), lambda: f"{len(named())} names")


@test
def what_died_in_an_outage_of_one_goes_out_when_its_breaker_has_closed():
    with Desk(policies={"quick": TWICE}) as w:
        w.serve()
        w.define("create", "crm", auto_redrive=True, breaker=BREAKER, policy="quick")
        w.receiver.on("crm", 503)
        ids = w.insert_many(20, destination="crm")
        until(lambda: len(w.letters()) == 20, lambda: w.statuses())
        assert w.sql("SELECT count(*) FROM outbox_redrive") == [(0,)]
        w.receiver.on("crm", 200)
        w.insert(message_id="probe", destination="crm")
        until(lambda: set(ids) <= set(w.receiver.accepted()), lambda: w.receiver.accepted())
        until(lambda: w.sql("SELECT status FROM outbox_redrive") == [("done",)], "one redrive to end")
        assert w.sql("SELECT actor FROM outbox_redrive") == [("hikyaku",)]


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
