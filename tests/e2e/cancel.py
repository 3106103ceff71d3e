#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages that are cancelled and restored, one or many: by name, by filter and by act, from the command line and over HTTP; order per key;
who dies in the middle of it. Speaks TAP.

Usage: cancel.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import itertools
import json
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from api import Served
from support import BINARY, POSTGRES, clean_environment, run_tests, until

OK, FAILURE, USAGE, TEMPORARY = 0, 1, 2, 75
KILLED = -signal.SIGKILL
WHY = ("--actor", "ann", "--reason", "a test")
KEYED = {"shop": {"order": "key"}}
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Desk(Served):
    def json(self, *args):
        return json.loads(self.hikyaku(*args, "--json"))

    def fails(self, code, *args, says=()):
        got, text = self.try_hikyaku(*args)
        assert got == code, (args, got, text)
        for words in says:
            assert words in text, (words, text)
        return text

    def waits(self):
        """message_ids that wait, by place."""
        fresh = [r[0] for r in self.sql("SELECT message_id FROM outbox ORDER BY id")]
        return fresh + [r[0] for r in self.sql("SELECT message_id FROM outbox_retry ORDER BY id")]

    def cancelled(self):
        return sorted(r[0] for r in self.sql("SELECT message_id FROM outbox_cancelled"))

    def places(self):
        """How often each message lies somewhere."""
        return self.sql("SELECT message_id, destination, count(*) FROM outbox_messages GROUP BY 1, 2 HAVING count(*) <> 1")

    def in_flight(self, *ids):
        now = int(time.time() * 1000)
        self.sql_do("INSERT INTO outbox_relay (name, boot, started_ms, until_ms) VALUES ('r1', 'b', ?, ?)", now, now + 600000)
        self.sql_do("INSERT INTO outbox_claim (lane, claimed_ms, ids) VALUES ((SELECT max(lane) FROM outbox_relay), ?, ?)", now,
                    list(ids) if POSTGRES else json.dumps(list(ids)))

    def sql_do(self, text, *args):
        db = self.connect()
        try:
            db.execute(text, args)
        finally:
            db.close()

    def is_sound(self):
        assert self.json("audit", "verify")["ok"]
        assert self.places() == [], self.places()

    def arrivals(self, n):
        until(lambda: len(self.receiver.arrived()) >= n, lambda: f"{n} messages, not {len(self.receiver.arrived())}")
        return [r.headers["webhook-id"] for r in self.receiver.arrived()]


@test
def a_dry_run_says_how_many_and_writes_nothing():
    with Desk(("shop", "bank")) as w:
        w.insert_many(7, prefix="a", payload='{"n":1}')
        w.insert_many(3, prefix="b", destination="bank")
        w.in_flight(1)
        out = w.hikyaku("messages", "cancel", "--destination", "shop", "--dry-run")
        assert out.startswith("6 messages would be cancelled; 1 in flight"), out
        assert out.count("OrderCreated for shop, pending\n") == 5 and out.endswith("…\n"), out
        seen = w.json("messages", "cancel", "--filter", "payload.n:1", "--dry-run")
        assert (seen["messages"], seen["other_states"], len(seen["examples"])) == (6, 1, 5), seen
        assert "changed" not in seen and seen["dry_run"], seen
        assert w.json("messages", "cancel", "--text", "b-0001", "--dry-run")["messages"] == 1
        assert w.json("messages", "cancel", "--text", "nowhere", "--dry-run")["messages"] == 0
        assert w.json("messages", "cancel", "a-0003", "b-0001", "--dry-run")["messages"] == 2
        assert w.cancelled() == [] and w.sql("SELECT count(*) FROM outbox_audit") == [(0,)]


@test
def what_is_wrong_is_told_before_anything_is_done():
    with Desk() as w:
        w.insert_many(2)
        w.fails(USAGE, "messages", "cancel", *WHY, says=["say which"])
        w.fails(USAGE, "messages", "cancel", "--filter", "  ", *WHY, says=["say which"])
        w.fails(USAGE, "messages", "cancel", "m-0001", "--text", "x", *WHY, says=["not both"])
        w.fails(USAGE, "messages", "cancel", "--destination", "shop", "--status", "sent", *WHY, says=["pending, retrying or any"])
        w.fails(USAGE, "messages", "cancel", "--filter", "status:sent", "--yes", *WHY, says=["sent cannot be cancelled"])
        w.fails(USAGE, "messages", "restore", "--filter", "status:pending", "--yes", *WHY, says=["pending cannot be restored"])
        w.fails(USAGE, "messages", "cancel", "--filter", "destination:", *WHY)
        w.fails(USAGE, "messages", "cancel", "--destination", "shop", "--yes", says=["--reason"])
        w.fails(USAGE, "messages", "cancel", "--destination", "shop", *WHY, says=["cancel: 2 messages?", "--yes"])
        w.fails(USAGE, "messages", "restore", "--act", "1", "m-0001", *WHY, says=["do not go with it"])
        w.fails(FAILURE, "messages", "restore", "--act", "77", "--yes", *WHY, says=["77"])
        assert w.cancelled() == [] and w.sql("SELECT count(*) FROM outbox_audit") == [(0,)]


@test
def one_is_cancelled_and_comes_back():
    with Desk() as w:
        w.insert(message_id="m", idempotency_key="i", max_attempts=4)
        w.insert(message_id="n")
        assert w.hikyaku("messages", "cancel", "m", *WHY) == "m: cancelled: it will not be sent\n"
        w.fails(FAILURE, "messages", "cancel", "m", *WHY, says=["was cancelled"])
        assert w.hikyaku("messages", "restore", "m", *WHY) == "m: restored: it waits again\n"
        assert w.hikyaku("messages", "restore", "m", *WHY) == "m: it waits already, nothing was changed\n"
        done = w.json("messages", "cancel", "m", *WHY)
        assert (done["message_id"], done["act"], done["changed"], done["act_id"]) == ("m", "cancel", 1, None), done
        done = w.json("messages", "restore", "m", *WHY)
        assert (done["message_id"], done["act"], done["changed"], done["reason"]) == ("m", "restore", 1, "a test"), done
        assert w.sql("SELECT idempotency_key, max_attempts, attempts FROM outbox_retry") == [("i", 4, 0)]
        w.fails(FAILURE, "messages", "restore", "nobody", *WHY, says=["there is no message"])
        w.in_flight(2)
        w.fails(TEMPORARY, "messages", "cancel", "n", *WHY, says=["in flight"])
        assert [a["act"] for a in w.json("audit", "list", "--oldest")["items"]] == ["cancel", "restore"] * 2
        w.is_sound()


@test
def several_that_are_named_are_one_act():
    with Desk() as w:
        w.insert_many(5)
        w.insert(message_id="m-0003", destination="bank")
        w.in_flight(3)
        w.fails(USAGE, "messages", "cancel", "m-0001", "m-0003", *WHY, says=["several destinations", "--destination"])
        assert w.cancelled() == []
        text = w.fails(FAILURE, "messages", "cancel", "m-0000", "m-0001", "m-0002", "nobody", *WHY)
        assert "m-0002: it is in flight" in text and "nobody: there is no such message" in text, text
        assert "2 cancelled, 0 unchanged, 1 refused, 1 missing" in text and "act 1: " in text, text
        text = w.hikyaku("messages", "cancel", "m-0000", "m-0004", *WHY)
        assert "1 cancelled, 1 unchanged" in text, text
        shown = w.hikyaku("audit", "show", "1")
        assert "2 messages" in shown and "m-0001" in shown and "LETTER" not in shown, shown
        act = w.json("audit", "show", "1")
        assert (act["messages"], act["letters"], act["message_id"]) == (2, 0, None), act
        assert [(i["message_id"], i["letter"], i["cancelled"]) for i in act["items"]] == [("m-0000", None, "1"), ("m-0001", None, "2")]
        assert "2 messages" in w.hikyaku("audit", "list")
        w.is_sound()
        w.sql_do("DELETE FROM outbox_audit_messages WHERE cancelled_id = 2")
        code, text = w.try_hikyaku("audit", "verify")
        assert code == FAILURE and "broken at row 1: its list does not fit" in text, text


@test
def an_act_is_undone_exactly():
    with Desk(("shop", "bank")) as w:
        w.insert_many(1201, prefix="s")
        w.insert_many(3, prefix="b", destination="bank")
        w.hikyaku("messages", "cancel", "s-0007", *WHY)
        done = w.json("messages", "cancel", "--destination", "shop", "--yes", *WHY)
        assert (done["changed"], done["refused"], done["items_in_all"], len(done["items"])) == (1200, 0, 1200, 1000), done["changed"]
        act = done["act_id"]
        row = next(r for r in w.json("audit", "list")["items"] if r["id"] == act)
        assert (row["act"], row["messages"], row["filter"]) == ("cancel", 1200, "destination:shop"), row
        assert w.sql("SELECT count(*) FROM outbox_audit WHERE act = 'cancel'") == [(4,)]  # three transactions, and the one by hand
        w.hikyaku("messages", "cancel", "--destination", "bank", "--yes", *WHY)
        w.hikyaku("messages", "restore", "s-0009", *WHY)
        seen = w.json("messages", "restore", "--act", act, "--dry-run")
        assert (seen["messages"], seen["not_cancelled_any_more"], seen["undone_act"]) == (1199, 1, act), seen
        out = w.hikyaku("messages", "restore", "--act", act, "--yes", *WHY)
        assert "1199 restored, 0 unchanged, 0 refused, 0 missing\n1 of the act were not cancelled any more\n" in out, out
        assert w.cancelled() == ["b-0000", "b-0001", "b-0002", "s-0007"]
        ids = [r[0] for r in w.sql("SELECT message_id FROM outbox_retry ORDER BY id")]
        assert ids == ["s-0009"] + [f"s-{i:04d}" for i in range(1201) if i not in (7, 9)]
        out = w.hikyaku("messages", "restore", "--act", act, "--yes", *WHY)
        assert "0 restored" in out and "1200 of the act" in out, out
        w.fails(FAILURE, "messages", "restore", "--act", "1", "--yes", *WHY, says=["one message", "messages restore s-0007"])
        undo = next(r["id"] for r in w.json("audit", "list", "--act", "restore")["items"] if r["messages"] == 1199)
        w.fails(FAILURE, "messages", "restore", "--act", undo, "--yes", *WHY, says=["is a restore"])
        w.fails(FAILURE, "dead", "restore", "--act", act, "--yes", *WHY, says=["is a cancel"])
        assert w.json("messages", "restore", "--filter", "text:b-", "--yes", *WHY)["changed"] == 3
        w.is_sound()


@test
def messages_keep_their_order():
    with Desk(KEYED) as w:
        w.hikyaku("destinations", "pause", "shop", *WHY)
        ids = [f"m-{i}" for i in range(9)]
        for i in ids:
            w.insert(message_id=i, message_key="k", payload=json.dumps({"n": int(i[2:])}))
        w.hikyaku("messages", "cancel", "--filter", "payload.n:5", "--yes", *WHY)
        w.hikyaku("messages", "cancel", "m-2", "m-3", *WHY)
        w.hikyaku("messages", "restore", "--destination", "shop", "--yes", *WHY)
        w.hikyaku("messages", "cancel", "--destination", "shop", "--yes", *WHY)
        w.insert(message_id="m-9", message_key="k")
        w.hikyaku("messages", "restore", "--destination", "shop", "--yes", *WHY)
        w.daemon().ready()  # one that runs meanwhile knows of it within a second
        w.hikyaku("destinations", "resume", "shop", *WHY)
        arrived = w.arrivals(10)
        assert arrived == [*ids, "m-9"], arrived
        w.settled(sent=10)
        w.is_sound()


@test
def a_head_that_is_restored_holds_its_key():
    slow = {"slow": {"preset": "standard", "backoff": {"base": "1h", "cap": "1h"}, "jitter": "none", "breaker": "off"}}
    with Desk({"shop": {"order": "key", "policy": "slow"}}, policies=slow) as w:
        w.receiver.on("shop", 503)
        first = w.daemon().ready()
        w.insert(message_id="head", message_key="k")
        until(lambda: w.message("head", "status")[0] == "retrying", "the first failure")
        was = w.sql("SELECT attempts, due_ms, first_failed_ms, last_error FROM outbox_retry")
        assert was[0][0] == 1
        assert first.stop() in (None, 0)  # one that runs meanwhile knows of it within a second
        w.hikyaku("messages", "cancel", "--text", "head", "--yes", *WHY)
        w.hikyaku("messages", "restore", "--text", "head", "--yes", *WHY)
        assert w.sql("SELECT attempts, due_ms, first_failed_ms, last_error FROM outbox_retry") == was
        w.receiver.on("shop", 200)
        w.insert(message_id="next", message_key="k")
        w.insert(message_id="other", message_key="another")
        w.daemon("second").ready()
        until(lambda: w.message("other", "status")[0] == "sent", "the other key")
        assert w.message("next", "status")[0] == "pending"
        w.hikyaku("messages", "retry", "head", *WHY)
        w.settled(sent=3)
        assert [i for i in w.arrivals(4) if i != "other"] == ["head", "head", "next"]


@test
def times_stay_as_they_were():
    with Desk() as w:
        w.insert(message_id="later", not_before="2099-01-01T00:00:00Z")
        w.insert(message_id="stale", expires_at="2020-01-01T00:00:00Z")
        w.insert(message_id="due")
        w.hikyaku("messages", "cancel", "--destination", "shop", "--yes", *WHY)
        w.daemon().ready()
        w.hikyaku("messages", "restore", "--destination", "shop", "--yes", *WHY)
        w.settled(sent=1, dead=1, pending=1)
        assert w.letters() == {"stale": "EXPIRED"} and w.arrivals(1) == ["due"]
        assert "2099-01-01" in str(w.message("later", "next_attempt_at"))


@test
def what_retention_took_cannot_be_restored():
    with Desk(retention={"cancelled": "1s"}) as w:
        w.insert_many(3)
        act = w.json("messages", "cancel", "--destination", "shop", "--yes", *WHY)["act_id"]
        w.daemon().ready()
        until(lambda: w.cancelled() == [], "retention")
        if not POSTGRES:
            assert w.sql("SELECT count(*) FROM outbox_cancelled_past") == [(0,)]
        w.fails(FAILURE, "messages", "restore", "m-0001", *WHY, says=["there is no message"])
        out = w.hikyaku("messages", "restore", "--act", act, "--yes", *WHY)
        assert "0 restored" in out and "3 of the act" in out, out


@test
def over_http_it_is_the_same():
    with Desk(("shop", "bank")) as w:
        w.token("viewer", "viewer")
        w.token("operator", "operator")
        w.hikyaku("destinations", "pause", "shop", *WHY)
        w.hikyaku("destinations", "pause", "bank", *WHY)
        w.serve()
        w.insert_many(6)
        w.insert(message_id="b", destination="bank")
        api, why = w.api("operator"), {"reason": "a test"}
        w.api("viewer").bad(403, "DENIED", "POST", "/messages/cancel", {"ids": ["m-0000"], **why})
        api.bad(400, "INVALID", "POST", "/messages/cancel", {"ids": ["m-0000"]})
        api.bad(400, "INVALID", "POST", "/messages/cancel", why)
        api.bad(404, "NOTFOUND", "POST", "/messages/cancel", {"ids": ["nobody"], **why})
        seen = api.good("POST", "/messages/cancel", {"destination": "shop", "dry_run": True})
        assert seen["messages"] == 6 and w.cancelled() == [], seen
        one = api.good("POST", "/messages/m-0000/cancel", why)
        assert (one["message_id"], one["changed"]) == ("m-0000", 1), one
        two = api.good("POST", "/messages/cancel", {"ids": ["m-0001", "m-0002"], **why})
        assert two["changed"] == 2 and {i["did"] for i in two["items"]} == {"done"}, two
        rest = api.good("POST", "/messages/cancel", {"filter": "destination:shop", **why})
        assert rest["changed"] == 3 and rest["act_id"] != two["act_id"], rest
        back = api.good("POST", "/messages/restore", {"act": int(two["act_id"]), **why})
        assert (back["changed"], back["undone_act"], back["not_cancelled_any_more"]) == (2, two["act_id"], 0), back
        assert api.good("POST", "/messages/restore", {"ids": ["m-0001"], **why})["unchanged"] == 1
        assert api.good("POST", "/messages/restore", {"destination": "shop", **why})["changed"] == 4
        assert w.cancelled() == [] and len(api.good("GET", f"/audit/{rest['act_id']}")["items"]) == 3
        described = api.good("GET", "/openapi.json")["paths"]
        assert described["/messages/cancel"]["post"]["operationId"] == "messages_cancel"
        assert described["/messages/{message_id}/cancel"]["post"]["operationId"] == "messages_cancel_one"
        w.hikyaku("destinations", "resume", "shop", *WHY)
        until(lambda: w.statuses() == {"sent": 6, "pending": 1}, lambda: str(w.statuses()))
        assert sorted(w.arrivals(6)) == [f"m-{i:04d}" for i in range(6)]
        w.is_sound()


def dies_at(w, point, nth, *args):
    """False: it did not come there that often, and ended well."""
    done = subprocess.run([BINARY, "--config", str(w.config_path), *args, *WHY], cwd=w.folder, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120, check=False,
                          env={**clean_environment(), "HIKYAKU_CRASH_AT": f"{point}:{nth}"})
    assert done.returncode in (KILLED, OK), (args, point, nth, done.returncode, done.stderr)
    return done.returncode == KILLED


@test
def who_dies_in_the_middle_leaves_nothing_half_done():
    with Desk(KEYED) as w:
        ids = sorted(w.insert_many(4, message_key="k") + w.insert_many(2, prefix="n"))
        for verb in ("cancel", "restore"):
            for nth in itertools.count(1):
                before = w.cancelled()
                if not dies_at(w, "act-inside", nth, "messages", verb, "--destination", "shop", "--yes"):
                    break
                assert w.cancelled() in ([before, (ids if verb == "cancel" else [])] if POSTGRES else [before])  # COMMIT was sent, too
                w.is_sound()
            assert nth > 1 and w.cancelled() == (ids if verb == "cancel" else [])
            w.is_sound()
        assert dies_at(w, "act-committed", 1, "messages", "cancel", "--destination", "shop", "--yes")
        assert w.cancelled() == ids
        assert dies_at(w, "act-committed", 1, "messages", "restore", "--destination", "shop", "--yes") and w.cancelled() == []
        w.is_sound()
        w.daemon().ready()
        w.settled(sent=6)
        assert [i for i in w.arrivals(6) if i[0] == "m"] == [f"m-{i:04d}" for i in range(4)]


@test
def while_a_relay_sends_nothing_is_lost_and_nothing_sent_twice():
    with Desk(KEYED) as w:
        daemon = w.daemon().ready()
        ids = [f"{key}-{n:04d}" for n in range(120) for key in "abc"]
        db = w.connect()
        for n in range(0, len(ids), 30):
            db.execute("BEGIN")
            for i in ids[n:n + 30]:
                w.insert(db=db, message_id=i, message_key=i[0])
            db.execute("COMMIT")
            w.try_hikyaku("messages", "cancel", "--destination", "shop", "--yes", *WHY)
            if n == 180:
                daemon.kill()
                daemon = w.daemon("second").ready()
            until(lambda: w.try_hikyaku("messages", "restore", "--destination", "shop", "--yes", *WHY)[0] == OK and not w.cancelled(),
                  "all to be restored")
        db.close()
        w.settled(sent=len(ids))
        w.is_sound()
        arrived = w.arrivals(len(ids))
        assert set(arrived) == set(ids)
        twice = {i for i in arrived if arrived.count(i) > 1}
        assert twice <= set(ids[:180 + 30]), twice  # in flight when their relay was killed
        for n in range(0, len(ids), 30):  # what was written after a restore may go before relays know of it: within a second
            for key in "abc":
                once = [i for i in arrived if i[0] == key and i not in twice and i in ids[n:n + 30]]
                assert once == sorted(once), once
        assert daemon.stop() in (None, 0)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
