#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dead letters as the relay makes and rescues them: what is refused before it is sent, redrive as a job that the relay
carries out, and auto_redrive. Speaks TAP.

Usage: redrive.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import collections
import contextlib
import json
import signal
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
import witness
from support import BINARY, POSTGRES, QUICK, Skip, World, hash_of, now_ms, run_tests, until

TESTS = []


def test(function):
    TESTS.append(function)
    return function


# ---- validation ----

RULES = [{"event_type": "Order*", "required": ["customer.id: integer", "items[*].sku: string"], "max_size": "1KiB"},
         {"event_type": "Log*", "json": True}]


@test
def what_breaks_the_rules_is_a_dead_letter_that_was_never_sent():
    with World(validate=RULES, event_log=True) as w:
        w.daemon().ready()
        good = '{"customer":{"id":42},"items":[{"sku":"a"},{"sku":"b"}]}'
        bad = {"missing": ("OrderCreated", '{"customer":{},"items":[]}', "VALIDATION_ERROR",
                           "$.customer.id: required field is missing"),
               "type": ("OrderCreated", '{"customer":{"id":"s3cret"},"items":[]}', "SCHEMA_MISMATCH",
                        "$.customer.id: must be"),
               "element": ("OrderPaid", '{"customer":{"id":1},"items":[{"sku":"a"},{}]}', "VALIDATION_ERROR",
                           "$.items[1].sku: required field is missing"),
               "json": ("LogLine", "s3cret, and not JSON", "VALIDATION_ERROR", "the payload is"),
               "large": ("OrderPaid", good + " " * 1024, "PAYLOAD_TOO_LARGE", "max_size")}
        for name, (event_type, payload, _, _) in bad.items():
            w.insert(message_id=name, event_type=event_type, payload=payload)
        w.insert(message_id="good", payload=good)
        w.insert(message_id="other", event_type="Stranger", payload="anything goes")
        w.settled(dead=len(bad), sent=2)
        for name, (_, _, reason, text) in bad.items():
            letter = w.sql("SELECT reason_code, error_message, attempts, fault FROM dead_letters WHERE message_id = ?",
                           name)
            assert letter[0][0] == reason and text in letter[0][1], letter
            assert letter[0][2:] == (0, "pipeline"), letter
            assert "s3cret" not in letter[0][1], letter
            assert w.receiver.arrived(name) == []
        assert w.sql("SELECT count(*) FROM outbox_attempts WHERE message_id IN ('missing', 'type')") == [(0,)]
        assert sorted(w.receiver.accepted()) == ["good", "other"]
        assert {e["m"] for e in w.events.lines() if e["ev"] == "send"} == {"good", "other"}
        assert "s3cret" not in w.daemons[0].log()


@test
def a_reload_brings_new_rules():
    with World(validate=RULES) as w:
        daemon = w.daemon().ready()
        w.insert(message_id="before", payload="{}")
        w.settled(dead=1)
        w.config["validate"] = [{"event_type": "*", "required": ["id"]}]
        w.write_config()
        daemon.signal(signal.SIGHUP)
        daemon.says("msg=reloaded")
        assert "changed=validate" in daemon.log()
        w.insert(message_id="now-good", payload='{"id":1}')
        w.insert(message_id="now-bad", event_type="Stranger", payload='{"ID":1}')
        w.settled(dead=2, sent=1)
        assert w.letters() == {"before": "VALIDATION_ERROR", "now-bad": "VALIDATION_ERROR"}
        daemon.stop()


# ---- redrive ----

ONCE = {**QUICK, "max_attempts": 1}
TWICE = {**QUICK, "max_attempts": 2}


def start(w, filter="destination:shop", rate="100/s", canary=0, abort="0%"):
    """A job, as a person starts it. Its id."""
    out = w.hikyaku("redrive", "start", "--filter", filter, "--rate", rate, "--canary", str(canary),
                    "--abort-if-failing", abort, "--reason", "it is repaired", "--yes", "--json")
    return int(json.loads(out)["redrive"])


def job(w, number, columns="status, requeued"):
    return w.sql(f"SELECT {columns} FROM outbox_redrive WHERE id = ?", number)[0]


def ended(w, number, status):
    until(lambda: job(w, number)[0] != "running", lambda: f"the end of {job(w, number, '*')}")
    assert job(w, number)[0] == status, job(w, number, "*")


def letter_states(w):
    return dict(w.sql("SELECT status, count(*) FROM dead_letters GROUP BY status"))


def die(w, n, status=422, **columns):
    """So many messages, all dead. Their ids."""
    w.receiver.on("shop", status)
    before = len(w.letters())
    ids = w.insert_many(n, **columns)
    until(lambda: len(w.letters()) == before + n, lambda: w.statuses())
    return ids


def requeues(w, number):
    """(when, letter) of each, in their order, as the trail has them; when: Unix ms by the store's clock."""
    return w.sql("SELECT at_ms, letter_id FROM outbox_audit_of_letters WHERE act = 'requeue' AND redrive_id = ? ORDER BY id", number)


def check_rate(trail, n, rate):
    """Each letter once, oldest first, and in no window more than the rate and half a second's worth."""
    assert [letter for _, letter in trail] == sorted({letter for _, letter in trail}) and len(trail) == n
    for i, (began, _) in enumerate(trail):  # windows that begin with a letter and end with one: others hold no more
        for k in range(i, len(trail)):
            window = trail[k][0] - began + 100  # the trail's time is not quite that of the decision
            assert k - i + 1 <= rate * window / 1000 + rate / 2, (i, k, window)


@test
def a_redrive_sends_each_letter_once_more_under_its_own_id_and_at_its_rate():
    with World(policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        ids = die(w, 60)
        w.receiver.on("shop", 200)
        number = start(w, rate="40/s", canary=1, abort="20%")
        ended(w, number, "done")
        assert w.receiver.accepted() == collections.Counter(ids)
        assert {r.n for r in w.receiver.arrived() if r.status == 200} == {2}, "not the same webhook-id"
        assert w.statuses() == {"sent": 60} and letter_states(w) == {"resolved": 60}, w.statuses()
        assert w.sql("SELECT DISTINCT life, requeues, resolution FROM dead_letters") == [(1, 1, "delivered")]
        check_rate(requeues(w, number), 60, 40)
        assert job(w, number, "total, requeued") == (60, 60)
        log = daemon.log()
        assert log.count("redrive started") == 1 and log.count("redrive finished") == 1, log
        daemon.stop()


@test
def a_pause_holds_a_redrive_and_after_it_the_rate_is_kept():
    with World(policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        ids = die(w, 60)
        w.receiver.on("shop", 200)
        w.hikyaku("destinations", "pause", "shop", "--reason", "works")
        number = start(w, rate="30/s")
        until(lambda: "shop is paused" in w.hikyaku("redrive", "show", str(number)), "show to say so")
        shown = json.loads(w.hikyaku("redrive", "show", str(number), "--json"))
        assert shown["paused_destination"] == "shop" and shown["requeued"] == 0, shown
        w.hikyaku("destinations", "resume", "shop", "--reason", "done")
        ended(w, number, "done")
        assert w.receiver.accepted() == collections.Counter(ids)
        check_rate(requeues(w, number), 60, 30)
        assert "paused" not in w.hikyaku("redrive", "show", str(number))
        daemon.stop()


@test
def a_canary_that_fails_leaves_the_rest_alone():
    with World(policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        die(w, 40)
        number = start(w, canary=2)
        ended(w, number, "aborted")
        assert job(w, number)[1] <= 2 and "canary" in job(w, number, "ending")[0]
        assert letter_states(w) == {"failed": 40}
        again = dict(w.sql("SELECT life, count(*) FROM dead_letters GROUP BY life"))
        assert again[1] >= 38 and sum(again.values()) == 40, again
        assert w.statuses() == {"dead": 40}
        assert daemon.says("redrive aborted").log().count("redrive aborted") == 1
        daemon.stop()


@test
def a_redrive_stops_when_too_many_fail_again():
    with World(policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        die(w, 200)
        w.receiver.on("shop", lambda r: 200 if int(r.id[2:]) % 2 else 422)
        number = start(w, rate="40/s", abort="20%")
        ended(w, number, "aborted")
        status, requeued = job(w, number)
        assert 10 <= requeued < 200, (status, requeued)
        # what was on its way comes to its end; the rest has not been touched
        until(lambda: "retrying" not in letter_states(w), lambda: letter_states(w))
        assert w.sql("SELECT count(*) FROM dead_letters WHERE requeues = 1") == [(requeued,)]
        daemon.stop()


@test
def one_that_struggles_counts_as_failing():
    with World(policies={"quick": ONCE, "slow": {**QUICK, "backoff": {"kind": "fixed", "base": "1h"}}}) as w:
        daemon = w.daemon().ready()
        die(w, 100, policy="quick")
        w.sql("UPDATE dead_letters SET policy = 'slow'")
        w.receiver.on("shop", 503)
        number = start(w, rate="40/s", abort="20%")
        ended(w, number, "aborted")
        assert 10 <= job(w, number)[1] < 100 and letter_states(w)["failed"] == 100 - job(w, number)[1]
        daemon.stop()


@test
def a_redrive_outlives_the_relays_that_work_on_it():
    with World(policies={"quick": ONCE}) as w:
        first = w.daemon().ready()
        ids = die(w, 120)
        w.receiver.on("shop", 200)
        number = start(w, rate="40/s")
        until(lambda: job(w, number)[1] >= 20, "the first letters")
        first.stop()
        assert job(w, number)[0] == "running", "ended too early for the test"
        second = w.daemon("second").ready()
        until(lambda: job(w, number)[1] >= 60, "more letters")
        second.kill()
        third = w.daemon("third").ready()
        ended(w, number, "done")
        w.settled(sent=120)
        got = w.receiver.accepted()
        assert set(got) == set(ids), set(ids) - set(got)
        assert letter_states(w) == {"resolved": 120}
        trail = [letter for _, letter in requeues(w, number)]
        assert len(trail) == len(set(trail)) == 120, "requeued twice, or never"
        # only what was in flight when it was killed may have gone out twice
        assert sum(got.values()) - 120 <= 64, got
        assert "redrive continued" in second.log() and "redrive finished" in third.log()
        third.stop()


@test
def a_redrive_that_is_cancelled_leaves_the_rest_alone():
    with World(policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        die(w, 100)
        w.receiver.on("shop", 200)
        number = start(w, rate="20/s")
        until(lambda: job(w, number)[1] >= 10, "the first letters")
        w.hikyaku("redrive", "cancel", str(number), "--reason", "wrong ones")
        status, requeued = job(w, number)
        assert status == "cancelled" and requeued < 100, (status, requeued)
        daemon.says("redrive cancelled")
        until(lambda: "retrying" not in letter_states(w), lambda: letter_states(w))
        assert letter_states(w) == {"resolved": requeued, "failed": 100 - requeued}
        assert job(w, number)[1] == requeued
        daemon.stop()


@test
def heads_go_before_those_who_waited_behind_them():
    with World({"shop": {"order": "key"}}, policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        w.receiver.on("shop", lambda r: 422 if r.id.startswith("head") else 200)
        for k in range(10):
            w.insert(message_id=f"head-{k}", message_key=f"k{k}")
            for i in range(3):
                w.insert(message_id=f"then-{k}-{i}", message_key=f"k{k}")
        w.settled(dead=10, pending=30)
        assert w.receiver.accepted() == {}
        w.receiver.on("shop", 200)
        number = start(w, rate="50/s")
        w.settled(sent=40)
        ended(w, number, "done")
        for k in range(10):
            came = [r.id for r in w.receiver.arrived() if r.status == 200 and r.id.split("-")[1] == str(k)]
            assert came == [f"head-{k}", *(f"then-{k}-{i}" for i in range(3))], came
        daemon.stop()


@test
def letters_of_one_key_go_in_the_order_in_which_they_were_written():
    with World({"shop": {"order": "key", "on_dead": "skip"}}, policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        ids = die(w, 60, message_key="k")
        w.receiver.on("shop", 200)
        number = start(w, rate="100/s")
        ended(w, number, "done")
        assert [r.id for r in w.receiver.arrived() if r.status == 200] == ids
        daemon.stop()


def write_down(w, ids):
    """Messages, with the line of each that the judge needs."""
    for m in ids:
        w.events.add("commit", m=m, dest="shop", key="", due=0, began=now_ms(), max=0, hash=hash_of(b"{}"))
        w.insert(message_id=m)


def judge(w):
    """hikyaku-check, which knows nothing of the program, reads what relays and receivers wrote, and the audit."""
    w.events.add("heal")
    w.events.add("end")
    with contextlib.closing(w.connect()) as db:
        lines = witness.merge(w.events.lines(), witness.acts(db))
        assert sum(e["ev"] == "requeue" for e in lines) == w.sql("SELECT sum(requeues) FROM dead_letters")[0][0]
        rows = [*witness.dump(db), *witness.totals(db)]
        said = witness.run_checker(witness.find_checker(BINARY), w.folder, lines, rows,
                                   *(["--lanes", "many", "--slack", "100"] if POSTGRES else []))
        print(f"# {said}")
        return lines, rows


@test
def a_judge_of_its_own_finds_nothing_wrong_with_redrives():
    if not witness.find_checker(BINARY):
        raise Skip("hikyaku-check is not built")
    with World(policies={"quick": ONCE}, event_log=True) as w:
        w.events.add("dest", t=0, dest="shop", kind="none", cap=0, wait=3600000)
        first = w.daemon("first").ready()
        w.receiver.on("shop", 422)
        ids = [f"m-{i}" for i in range(40)]
        write_down(w, ids)
        w.settled(dead=40)
        # a quarter dies once more, half is done by the next relay; then the rest, one of them by hand
        w.receiver.on("shop", lambda r: 422 if int(r.id[2:]) % 4 == 0 else 200)
        number = start(w, rate="40/s", abort="0%")
        until(lambda: job(w, number)[1] >= 15, "the first letters")
        first.stop()
        second = w.daemon("second").ready()
        ended(w, number, "done")
        w.settled(dead=10, sent=30)
        w.receiver.on("shop", 200)
        w.hikyaku("dead", "requeue", "m-0", "--reason", "by hand")
        w.hikyaku("dead", "discard", "m-4", "--reason", "not wanted")
        until(lambda: "retrying" not in letter_states(w), lambda: letter_states(w))
        number = start(w)
        ended(w, number, "done")
        second.stop()
        lines, rows = judge(w)
        # and it would have found something
        wrong = [e for e in lines if not (e["ev"] == "requeue" and e["m"] == "m-8")]
        try:
            witness.run_checker(witness.find_checker(BINARY), w.folder, wrong, rows)
        except AssertionError:
            return
        raise AssertionError("a life that nobody began went unseen")


@test
def a_redrive_that_is_started_twice_runs_once():
    with World(policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        die(w, 30)
        daemon.stop()
        w.receiver.on("shop", 200)
        number = start(w, filter="destination:shop newer:2h")
        for again in ("destination:shop newer:2h", "newer:2h destination:shop", "destination:shop newer:2h status:failed"):
            code, said = w.try_hikyaku("redrive", "start", "--filter", again, "--reason", "again", "--yes")
            assert code == 75 and f"redrive {number} of the same letters runs already" in said, (code, said)
        code, said = w.try_hikyaku("redrive", "start", "--filter", "destination:shop status:resolved", "--reason", "x", "--yes")
        assert code == 2 and "only open letters" in said, (code, said)
        assert w.sql("SELECT count(*) FROM outbox_redrive") == [(1,)]
        other = start(w, filter="destination:shop newer:5h")  # other letters are meant, by what it says
        daemon = w.daemon("next").ready()
        for i in (number, other):
            ended(w, i, "done")
        assert w.sql("SELECT sum(requeued) FROM outbox_redrive") == [(30,)]
        assert set(w.receiver.accepted().values()) == {1}
        start_again(w)
        daemon.stop()


def start_again(w):
    """It has ended: the same may be started once more, but there is nothing left."""
    code, said = w.try_hikyaku("redrive", "start", "--filter", "destination:shop newer:2h", "--reason", "x", "--yes")
    assert code == 1 and "nothing to redrive" in said, (code, said)


# ---- auto_redrive ----

BREAKER = {"failures": 5, "window": "30s", "open": "300ms", "open_factor": 1, "open_jitter": 0}


@test
def what_died_in_an_outage_goes_out_when_the_breaker_has_closed():
    with World({"shop": {"auto_redrive": True, "breaker": BREAKER}, "other": {"breaker": BREAKER}},
               policies={"quick": TWICE}) as w:
        daemon = w.daemon().ready()
        w.receiver.on("other", 503)
        w.receiver.on("shop", lambda r: 422 if r.id == "wrong" else 503)
        w.insert(message_id="wrong")
        until(lambda: w.letters(), "the first letter")
        ids = w.insert_many(20)
        w.insert_many(6, prefix="x", destination="other")
        until(lambda: len(w.letters()) == 27, lambda: w.statuses())
        assert w.sql("SELECT count(*) FROM outbox_redrive") == [(0,)]
        w.receiver.on("shop", lambda r: 422 if r.id == "wrong" else 200)
        w.receiver.on("other", 200)
        w.insert(message_id="probe")
        w.insert(message_id="probe-other", destination="other")
        until(lambda: set(ids) <= set(w.receiver.accepted()), lambda: w.receiver.accepted())
        ended(w, 1, "done")
        rows = w.sql("SELECT actor, reason, canary, abort_ratio, filter FROM outbox_redrive")
        assert len(rows) == 1 and rows[0][:4] == ("hikyaku", "auto_redrive: the breaker has closed", 1, 0.2), rows
        assert rows[0][4].startswith("destination:shop reason:RETRY_EXHAUSTED since:"), rows
        # neither what the destination refused nor those of others
        failed = {m for m, in w.sql("SELECT message_id FROM dead_letters WHERE status = 'failed'")}
        assert failed == {"wrong", *(f"x-{i:04d}" for i in range(6))}, failed
        daemon.stop()


def a_relay_without_redrives_has_no_connection_for_them():
    with World(policies={"quick": ONCE}) as w:
        daemon = w.daemon().ready()
        w.insert(message_id="m")
        w.settled(sent=1)

        def connections():
            return w.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                         "AND pid <> pg_backend_pid()")[0][0]

        until(lambda: w.sql("SELECT count(*) FROM outbox_figures") == [(1,)], "figures, for which it has a connection, too")
        alone = connections()
        die(w, 30)
        w.receiver.on("shop", 200)
        number = start(w, rate="10/s")
        until(lambda: job(w, number)[1] > 0, "the first step")
        assert connections() > alone
        ended(w, number, "done")
        until(lambda: connections() == alone, lambda: f"{connections()}, not {alone}")
        daemon.stop()


def two_relays_share_a_job_and_its_rate():
    with World(policies={"quick": ONCE}) as w:
        daemons = [w.daemon(name).ready() for name in ("one", "two")]
        ids = die(w, 80)
        w.receiver.on("shop", 200)
        number = start(w, rate="40/s", canary=1)
        ended(w, number, "done")
        w.settled(sent=80)
        assert w.receiver.accepted() == collections.Counter(ids)
        check_rate(requeues(w, number), 80, 40)
        logs = "".join(d.log() for d in daemons)
        assert w.sql("SELECT count(*) FROM outbox_audit WHERE act = 'redrive-done'") == [(1,)]  # one of them ended it
        assert logs.count("redrive finished") == 1, logs
        for daemon in daemons:
            daemon.stop()


if POSTGRES:
    test(two_relays_share_a_job_and_its_rate)
    test(a_relay_without_redrives_has_no_connection_for_them)  # SQLite has no server to ask


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
