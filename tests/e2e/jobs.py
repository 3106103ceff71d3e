#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long operations in the background: relays that work on them die at every step, sleep past their lease, come two at a time.
Whatever happens each letter or message is acted on once, the audit has it once, and the job says so, to the command line and over HTTP. Speaks
TAP.

Usage: jobs.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import collections
import json
import pathlib
import re
import signal
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from api import Api
from dead import JQ, OK, WHY, Office
from dead_kill import has_crash_points
from support import POSTGRES, Skip, run_tests, until

TESTS = []
KILLED = -signal.SIGKILL
MANY, BATCH = 2100, 500
FAILURE, USAGE = 1, 2


def test(function):
    TESTS.append(function)
    return function


class Bureau(Office):
    """Letters to a destination that nobody knows: they die without being sent."""

    def __init__(self, *args, **sections):
        super().__init__(*args, relay={"lease": "1s"}, **sections)

    def bury(self, n, **columns):
        relay = self.daemon("undertaker").ready()
        self.insert_many(n, destination="nowhere", **columns)
        until(lambda: self.count("status = 'failed'") == n, lambda: f"{n} letters, not {self.count()}")
        relay.stop()

    def count(self, where="1 = 1"):
        return self.sql(f"SELECT count(*) FROM dead_letters WHERE {where}")[0][0]

    def start(self, *command, code=OK, **more):
        """The job's id."""
        told = self.run(*command, "--background", *WHY, "--yes", "--json", code=code, **more)
        return json.loads(told)["id"] if code == OK else told

    def job(self, job_id):
        return self.json("job", "show", job_id)

    def ends(self, job_id, status="done"):
        self.run("job", "show", job_id, "--wait", code=OK if status == "done" else FAILURE)
        job = self.job(job_id)
        assert job["status"] == status and job["ended_at"], job
        return job

    def dies_at(self, point, nth=1):
        return self.daemon(f"dies-at-{point}-{nth}", env={"HIKYAKU_CRASH_AT": f"{point}:{nth}"})

    def stops_at(self, point, nth=1):
        return self.daemon(f"stops-at-{point}-{nth}", env={"HIKYAKU_STOP_AT": f"{point}:{nth}"})

    def listed(self, act_id, of_messages=False):
        """(how many letters or messages the act has in its lists, how many different ones)"""
        table, column = ("outbox_audit_messages", "cancelled_id") if of_messages else ("outbox_audit_letters", "letter_id")
        of = "audit_id = ? OR audit_id IN (SELECT id FROM outbox_audit WHERE detail LIKE ?)"
        return self.sql(f"SELECT count(*), count(DISTINCT {column}) FROM {table} WHERE {of}", int(act_id), f'%"act":{act_id}%')[0]

    def is_whole(self, job, n, **counts):
        """Every letter once: in the result, in the progress, in the audit."""
        counts = {"changed": n, **counts}
        assert (job["done"], job["changed"], job["failed"]) == (n, counts["changed"], n - counts["changed"]), job
        assert job["result"]["changed"] == counts["changed"], job
        assert job["result"]["act_id"] == job["act_id"], job
        listed = self.listed(job["act_id"], of_messages=job["operation"].startswith("messages "))
        assert listed == (counts["changed"], counts["changed"]), (listed, job)
        self.chain_is_whole()


def is_stopped(daemon):
    return ") T " in pathlib.Path(f"/proc/{daemon.pid}/stat").read_text(encoding="ascii")


def needs_crash_points():
    if not has_crash_points():
        raise Skip("a build without crash points")


# ---- a job ----

@test
def a_relay_carries_it_out():
    with Bureau() as w:
        w.bury(MANY)
        job_id = w.start("dead", "discard", "--destination", "nowhere")
        waits = w.job(job_id)
        assert (waits["status"], waits["operation"], waits["actor"], waits["role"]) == ("queued", "dead discard", "ann", "admin")
        assert "destination:nowhere" in waits["request"]["filter"] and "status:failed" in waits["request"]["filter"], waits
        assert waits["started_at"] is None and waits["result"] is None
        assert w.count("status = 'discarded'") == 0
        w.daemon("works").ready()
        job = w.ends(job_id)
        assert job["total"] == MANY, job
        w.is_whole(job, MANY)
        assert w.count("status = 'discarded'") == MANY
        assert len(job["result"]["items"]) == 100 and job["result"]["items_in_all"] == MANY
        said = w.run("job", "show", job_id)
        assert "what came of each:\n id=" in said and f" and {MANY - 100} more\n" in said, said
        again = w.start("dead", "restore", "--act", job["act_id"])
        w.is_whole(w.ends(again), MANY)
        assert w.count("status = 'failed'") == MANY
        assert w.acts().count("job-start") == 2
        assert [j["id"] for j in w.json("job", "list")["items"]] == [again, job_id]
        page = w.json("job", "list", "--limit", "1")
        assert [j["id"] for j in w.json("job", "list", "--after", page["next"])["items"]] == [job_id]
        assert w.json("job", "list", "--running")["items"] == []


# ---- kill -9 ----

STEPS = [("job-taken", 1), ("job-before", 1), ("job-begun", 2), ("act-inside", 1), ("job-inside", 3), ("job-saved", 4),
         ("job-committed", 1), ("job-committed", 5)]


@test
def killed_at_each_step_nothing_is_lost_or_done_twice():
    needs_crash_points()
    with Bureau() as w:
        w.bury(MANY)
        for i, (point, nth) in enumerate(STEPS):
            act, status = ("discard", "discarded") if i % 2 == 0 else ("restore", "failed")
            victim = w.dies_at(point, nth)
            job_id = w.start("dead", act, "--destination", "nowhere")
            code = victim.wait()
            assert code == KILLED, (point, nth, code)
            # what was committed is what the row says, and the letters say the same
            job = w.job(job_id)
            assert w.count(f"status = '{status}'") == job["changed"], (point, nth, job)
            assert job["changed"] % BATCH == 0 or job["changed"] == MANY, (point, nth, job)
            survivor = w.daemon(f"after-{point}-{nth}")
            job = w.ends(job_id)
            w.is_whole(job, MANY)
            assert w.count(f"status = '{status}'") == MANY, (point, nth)
            survivor.stop()
        assert w.acts().count("job-start") == len(STEPS)


@test
def a_program_that_may_not_run_twice_is_run_once():
    needs_crash_points()
    if not JQ:
        raise Skip("this build has no jq")
    with Bureau() as w:
        n = 450  # three batches
        w.bury(n, payload='{"n":1}')
        for i, (point, nth) in enumerate([("job-begun", 1), ("act-inside", 2), ("job-inside", 2), ("job-committed", 2)]):
            victim = w.dies_at(point, nth)
            job_id = w.start("dead", "fix", "--destination", "nowhere", "--jq", ".n += 1")
            assert victim.wait() == KILLED, (point, nth)
            survivor = w.daemon(f"after-{point}")
            job = w.ends(job_id)
            assert (job["result"]["matched"], job["result"]["changed"], job["result"]["failed"]) == (n, n, 0), job
            w.is_whole(job, n)
            seen = w.sql("SELECT payload, payload_version, count(*) FROM dead_letters GROUP BY payload, payload_version")
            assert seen == [(f'{{"n":{i + 2}}}', i + 2, n)], (point, nth, seen)
            survivor.stop()


@test
def letters_that_are_requeued_arrive_once():
    needs_crash_points()
    with Bureau() as w:
        relay = w.daemon("undertaker").ready()
        w.receiver.on("shop", 422)
        ids = w.insert_many(1100)
        until(lambda: w.count("status = 'failed'") == 1100, "all to be dead")
        relay.stop()
        w.receiver.on("shop", 200)
        before = len(w.receiver.arrived())
        victim = w.dies_at("job-saved", 2)
        job_id = w.start("dead", "requeue", "--destination", "shop")
        assert victim.wait() == KILLED
        w.daemon("survivor").ready()
        w.is_whole(w.ends(job_id), 1100)
        until(lambda: w.count("status = 'resolved'") == 1100, "all to arrive")
        # a relay that was killed may have sent some twice: deliveries, not requeues
        sent = collections.Counter(r.id for r in w.receiver.arrived()[before:])
        assert set(sent) == set(ids)
        assert w.sql("SELECT max(requeues), min(requeues) FROM dead_letters") == [(1, 1)]


@test
def a_job_that_kills_every_relay_ends():
    needs_crash_points()
    with Bureau() as w:
        w.bury(10)
        job_id = w.start("dead", "discard", "--destination", "nowhere")
        for _ in range(5):
            assert w.dies_at("job-begun").wait() == KILLED
        w.daemon("survivor").ready()
        job = w.ends(job_id, "failed")
        assert "made no progress" in job["error"] and job["changed"] == 0, job
        assert w.count("status = 'failed'") == 10


# ---- messages ----

LATER, FRESH = 800, 900


def places(w):
    return tuple(w.sql(f"SELECT count(*) FROM {table}")[0][0] for table in ("outbox", "outbox_retry", "outbox_cancelled"))


def killed_on_the_way(w, job_id, *points):
    """Each relay dies within the job, the last one ends it. How far it had come at each death."""
    seen = []
    for point, nth in points:
        assert w.dies_at(point, nth).wait() == KILLED, (point, nth)
        job = w.job(job_id)
        assert job["status"] == "running", job
        seen.append(job["changed"])
    survivor = w.daemon(f"ends-{job_id}")
    w.ends(job_id)
    survivor.stop()
    return seen


@test
def messages_are_cancelled_and_restored_once():
    needs_crash_points()
    n = LATER + FRESH
    with Bureau() as w:
        w.run("destinations", "pause", "shop", *WHY)
        relay = w.daemon("sorts").ready()
        w.insert_many(LATER, prefix="later", not_before="2099-01-01T00:00:00Z")
        until(lambda: places(w) == (0, LATER, 0), lambda: f"they to be put off, not {places(w)}")
        relay.stop()
        w.insert_many(FRESH, prefix="fresh")
        w.insert(message_id="other", event_type="Other", not_before="2099-01-01T00:00:00Z")
        before = w.statuses()

        job_id = w.start("messages", "cancel", "--event-type", "OrderCreated")
        assert places(w)[2] == 0
        seen = killed_on_the_way(w, job_id, ("job-inside", 2), ("job-committed", 2))
        job = w.job(job_id)
        assert seen[0] == BATCH < seen[1] < n and job["total"] == n, (seen, job)
        w.is_whole(job, n)
        assert w.sql("SELECT count(*), count(DISTINCT message_id) FROM outbox_cancelled") == [(n, n)]
        assert w.statuses("message_id <> 'other'") == {"cancelled": n}, w.statuses()
        assert len(job["result"]["items"]) == 100 and job["result"]["items_in_all"] == n, job
        assert w.acts().count("cancel") == 1, w.acts()

        back = w.start("messages", "restore", "--act", job["act_id"])
        seen = killed_on_the_way(w, back, ("job-begun", 2), ("job-saved", 2))
        job = w.job(back)
        # PostgreSQL may have the second relay's last batch already: the commit was sent
        assert seen in ([BATCH, 2 * BATCH], [BATCH, 3 * BATCH]) and job["total"] == n, (seen, job)
        w.is_whole(job, n)
        assert job["result"]["not_cancelled_any_more"] == 0 and places(w)[2] == 0, job
        assert w.statuses() == before, (before, w.statuses())
        assert w.acts().count("restore") == 1, w.acts()

        # those that are cancelled when a restore begins, by filter; another time all of an act are back already
        works = w.daemon("works").ready()
        w.is_whole(w.ends(w.start("messages", "cancel", "--destination", "shop", "--status", "any")), n + 1)
        w.is_whole(w.ends(w.start("messages", "restore", "--filter", "type:OrderCreated")), n)
        job = w.ends(w.start("messages", "restore", "--act", w.job(job_id)["act_id"]))
        assert (job["changed"], job["result"]["not_cancelled_any_more"]) == (0, n), job
        assert w.statuses() == {**before, "pending": n, "cancelled": 1}, w.statuses()
        works.stop()
        assert "few" in w.run("messages", "cancel", "other", "--background", *WHY, code=USAGE)
        assert "cannot be cancelled" in w.start("messages", "cancel", "--filter", "status:sent", code=USAGE)


# ---- several, and sleepers ----

@test
def two_relays_share_the_jobs():
    with Bureau() as w:
        types = [f"Type{i}" for i in range(8)]
        relay = w.daemon("undertaker").ready()
        for t in types:
            w.insert_many(60, prefix=t, destination="nowhere", event_type=t)
        until(lambda: w.count("status = 'failed'") == 60 * len(types), "letters")
        relay.stop()
        for name in ("one", "two"):
            w.config["relay"]["name"] = name
            w.write_config()
            w.daemon(name).says('"admin listening"')
        jobs = [w.start("dead", "resolve", "--event-type", t) for t in types]
        for job_id in jobs:
            w.is_whole(w.ends(job_id), 60)
        assert w.count("status = 'resolved'") == 60 * len(types)
        assert w.sql("SELECT max(token), min(token) FROM outbox_job") == [(1, 1)]


def sleeper_changes_nothing(point):
    with Bureau() as w:
        w.bury(MANY)
        job_id = w.start("dead", "discard", "--destination", "nowhere")
        sleeper = w.stops_at(point, 2)
        until(lambda: is_stopped(sleeper), "it to fall asleep")
        assert w.job(job_id)["changed"] == BATCH
        w.daemon("awake")
        job = w.ends(job_id)
        w.is_whole(job, MANY)
        sleeper.signal(signal.SIGCONT)
        sleeper.says("job left to another relay")
        assert {k: v for k, v in w.job(job_id).items() if k != "now"} == {k: v for k, v in job.items() if k != "now"}
        w.is_whole(w.job(job_id), MANY)
        assert w.sql("SELECT token FROM outbox_job") == [(2,)]


@test
def who_sleeps_past_the_lease_changes_nothing():
    needs_crash_points()
    sleeper_changes_nothing("job-before")


@test
def who_sleeps_within_a_batch_holds_nobody_for_long():
    needs_crash_points()
    if not POSTGRES:
        raise Skip("on SQLite whoever sleeps with the lock stops every writer")
    sleeper_changes_nothing("job-inside")


# ---- cancel, fail, stop ----

@test
def a_job_is_cancelled_before_its_next_batch():
    needs_crash_points()
    with Bureau() as w:
        w.bury(MANY)
        job_id = w.start("dead", "discard", "--destination", "nowhere")
        other = w.start("dead", "resolve", "--destination", "nowhere")
        relay = w.stops_at("job-before", 3)
        until(lambda: is_stopped(relay), "it to pause")
        told = w.json("job", "cancel", other, *WHY)
        assert told["status"] == "cancelled" and told["started_at"] is None, told
        told = w.json("job", "cancel", job_id, "--reason", "not that many")
        assert told["status"] == "running" and told["cancelled_by"] == "ann", told
        relay.signal(signal.SIGCONT)
        job = w.ends(job_id, "cancelled")
        n = 2 * BATCH
        assert (job["done"], job["changed"], job["cancel_reason"]) == (n, n, "not that many"), job
        assert job["result"]["changed"] == n and w.count("status = 'discarded'") == n
        assert w.listed(job["act_id"]) == (n, n)
        assert "has ended already" in w.run("job", "cancel", job_id, *WHY, code=FAILURE)
        assert w.acts().count("job-cancel") == 2
        w.chain_is_whole()


@test
def a_job_that_cannot_be_done_fails():
    with Bureau() as w:
        w.bury(3)
        bad = w.start("dead", "discard", "--destination", "nowhere")
        w.sql("UPDATE outbox_job SET request = ? WHERE id = ?", '{"filter":"nonsense:1"}', int(bad))
        away = w.start("dead", "requeue", "--destination", "nowhere", "--to", "shop")
        del w.config["destinations"]["shop"]
        w.config["destinations"]["other"] = w.destination("other")
        w.write_config()
        w.daemon("works").ready()
        job = w.ends(bad, "failed")
        assert job["error_code"] == "INVALID" and job["error"], job
        assert w.ends(away, "failed")["error_code"] == "INVALID"
        assert w.count("status = 'failed'") == 3


@test
def a_relay_that_stops_gives_its_job_back():
    needs_crash_points()
    with Bureau() as w:
        w.bury(MANY)
        job_id = w.start("dead", "discard", "--destination", "nowhere")
        relay = w.stops_at("job-before", 2)
        until(lambda: is_stopped(relay), "it to pause")
        relay.signal(signal.SIGTERM)
        relay.signal(signal.SIGCONT)
        assert relay.wait() == OK
        job = w.job(job_id)
        assert job["status"] == "queued" and 0 < job["changed"] < MANY, job
        w.daemon("next")
        w.is_whole(w.ends(job_id), MANY)


# ---- over HTTP ----

def serve(w, *roles):
    tokens = {r: json.loads(w.run("token", "create", r, "--role", r, *WHY, "--json"))["token"] for r in roles}
    relay = w.daemon("serves").ready()
    relay.says('"admin listening"')
    address = re.search(r'msg="admin listening" address=(\S+)', relay.log())[1]
    return {r: Api(address, tokens[r]) for r in roles}


@test
def http_and_the_command_line_show_the_same_job():
    with Bureau() as w:
        w.bury(700)
        apis = serve(w, "viewer", "operator")
        ask = {"destination": "nowhere", "background": True, "reason": "too old"}
        key = {"Idempotency-Key": "once"}
        status, headers, job = apis["operator"].ask("POST", "/dead-letters/discard", ask, headers=key)
        assert status == 202 and headers["Location"] == f"/api/v1/jobs/{job['id']}", (status, headers, job)
        assert (job["actor"], job["role"], job["reason"]) == ("operator", "operator", "too old"), job
        status, headers, again = apis["operator"].ask("POST", "/dead-letters/discard", ask, headers=key)
        assert (status, again["id"], headers["Location"]) == (202, job["id"], f"/api/v1/jobs/{job['id']}")
        assert headers["Idempotency-Replayed"] == "true"
        here = w.ends(job["id"])
        w.is_whole(here, 700)
        there = apis["viewer"].good("GET", f"/jobs/{job['id']}")
        assert {**there, "now": 0} == {**here, "now": 0}
        listed = apis["viewer"].good("GET", "/jobs")
        assert {**listed, "now": 0} == {**w.json("job", "list"), "now": 0}
        assert len(listed["items"]) == 1
        apis["viewer"].bad(403, "DENIED", "POST", "/dead-letters/discard", ask)
        apis["viewer"].bad(403, "DENIED", "POST", f"/jobs/{job['id']}/cancel", {"reason": "x"})
        apis["operator"].bad(409, "CONFLICT", "POST", f"/jobs/{job['id']}/cancel", {"reason": "x"})
        apis["operator"].bad(404, "NOTFOUND", "GET", "/jobs/999")
        apis["operator"].bad(400, "INVALID", "GET", "/jobs/x")


@test
def what_cannot_be_a_job_is_refused():
    with Bureau() as w:
        w.bury(2)
        apis = serve(w, "operator")
        o = apis["operator"]
        o.bad(400, "INVALID", "POST", "/dead-letters/discard", {"ids": ["1"], "background": True, "reason": "x"})
        o.bad(400, "INVALID", "POST", "/dead-letters/discard", {"destination": "nowhere", "background": True, "dry_run": True})
        o.bad(400, "INVALID", "POST", "/dead-letters/discard", {"destination": "nowhere", "background": True})
        o.bad(400, "INVALID", "POST", "/dead-letters/discard", {"destination": "nowhere", "background": "yes", "reason": "x"})
        o.bad(400, "INVALID", "POST", "/dead-letters/1/note", {"text": "x", "background": True})
        status, _, acted = o.ask("POST", "/dead-letters/discard", {"destination": "nowhere", "background": False, "reason": "x"})
        assert status == 200 and acted["changed"] == 2, acted
        assert w.sql("SELECT count(*) FROM outbox_job") == [(0,)]
        assert "few" in w.run("dead", "discard", "1", "--background", *WHY, code=USAGE)


@test
def a_server_starts_and_shows_jobs_for_the_command_line():
    with Bureau() as w:
        w.bury(30)
        apis = serve(w, "operator")
        w.path("token").write_text(apis["operator"].token, encoding="ascii")
        w.path("token").chmod(0o600)
        at = ("--server", f"http://{apis['operator'].host}:{apis['operator'].port}", "--token-file", str(w.path("token")))
        told = w.run("dead", "discard", "--destination", "nowhere", "--background", "--yes", "--reason", "x", *at)
        job_id = re.match(r"job (\d+) waits", told)[1]
        shown = json.loads(w.run("job", "show", job_id, "--wait", "--json", *at))
        assert shown["status"] == "done" and shown["changed"] == 30, shown
        assert {**w.job(job_id), "now": 0} == {**shown, "now": 0}
        assert "dead discard" in w.run("job", "list", *at)


if __name__ == "__main__":
    run_tests(TESTS)
