#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cloud Tasks v2: every call as REST, hostile requests, and document 004's flow with Google's own client for Node. Speaks TAP.

Usage: tasks.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them; STORE=postgres runs
them on that store. The client is fetched by npm, as tasks_node/package-lock.json pins it; where that cannot be, its tests are skipped."""
import atexit
import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
import clients
from dead_kill import has_crash_points
from support import Answer, Handler, Receiver, Request, Skip, World, clean_environment, rfc3339, run_tests, until

WHO = ("--actor", "setup", "--reason", "a test")
PARENT = "projects/shop/locations/asia-northeast1"
QUEUE = PARENT + "/queues/bigquery-sync-queue"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


# ---- the receiver: any method, and tasks are told apart by their name ----

class TaskHandler(Handler):
    def take(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {k.lower(): v for k, v in self.headers.items()}
        request = Request(self.path, headers, body, self.arrived)
        request.id, request.method = headers.get("x-cloudtasks-taskname", ""), self.command
        answer = self.server.receiver.take(request)
        if answer is None or answer.status is None:  # it hangs up
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        for key, value in answer.headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_POST = do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = take


class TaskReceiver(Receiver):
    def __init__(self, log=None):
        super().__init__(log)
        self.server.RequestHandlerClass = TaskHandler


class TaskWorld(World):
    """A relay with Cloud Tasks enabled, and a token of each role."""

    make_receiver = TaskReceiver

    def __init__(self, queues=None, **more):
        section = {"allow": ["127.0.0.0/8"], **(queues or {})}
        super().__init__(queues=section, **more)
        self.tokens = {role: self.hikyaku("token", "create", role, "--role", role, *WHO).strip().splitlines()[-1].split()[-1]
                       for role in ("viewer", "operator", "admin")}

    def start(self, name="relay", env=None):
        self.relay = self.daemon(name, env=env).ready()
        self.address = until(lambda: re.search(r'msg="admin listening" address=(\S+)', self.relay.log()), "the admin server")[1]
        return self

    def ask(self, method, path, body=None, role="admin", token=None, headers=None):
        """(status, parsed body) of a call below /v2/."""
        head = {"Authorization": f"Bearer {token or self.tokens[role]}", **(headers or {})}
        if body is not None:
            head.setdefault("Content-Type", "application/json")
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        connection = http.client.HTTPConnection(self.address, timeout=120)
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a body that is refused is not read to its end: the answer is there
                connection.request(method, "/v2/" + path, data, head)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def good(self, *args, **more):
        status, is_ = self.ask(*args, **more)
        assert status == 200, (args, status, is_)
        return is_

    def bad(self, status, word, *args, **more):
        """Google's form of an error; returns its message."""
        was, is_ = self.ask(*args, **more)
        assert was == status and set(is_) == {"error"}, (args, was, is_)
        error = is_["error"]
        assert error["code"] == status and error["status"] == word and error["message"] and error["details"] == [], is_
        return error["message"]

    def queue(self, name=QUEUE, **settings):
        return self.good("POST", PARENT + "/queues", {"name": name, **settings})

    def task(self, path="work", queue=QUEUE, name=None, http=None, role="operator", **more):
        """The task that was created."""
        task = {"httpRequest": {"url": self.receiver.url(path), **(http or {})}, **more}
        if name:
            task["name"] = f"{queue}/tasks/{name}"
        return self.good("POST", queue + "/tasks", {"task": task}, role=role)


@contextlib.contextmanager
def world(queues=None, **more):
    with TaskWorld(queues, **more) as w:
        yield w.start()


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def id_of(task):
    return task["name"].rsplit("/", 1)[1]


# ---- queues ----

@test
def queues_are_created_shown_listed_and_deleted():
    with world() as w:
        made = w.queue(rateLimits={"maxDispatchesPerSecond": 5.5, "maxConcurrentDispatches": 3},
                       retryConfig={"maxAttempts": 10, "minBackoff": "1s", "maxBackoff": "3.5s", "maxDoublings": 4, "maxRetryDuration": "7200s"})
        assert made == {"name": QUEUE, "state": "RUNNING",
                        "rateLimits": {"maxDispatchesPerSecond": 5.5, "maxBurstSize": 10, "maxConcurrentDispatches": 3},
                        "retryConfig": {"maxAttempts": 10, "maxRetryDuration": "7200s", "minBackoff": "1s", "maxBackoff": "3.500s",
                                        "maxDoublings": 4}}, made
        assert w.good("GET", QUEUE, role="viewer") == made
        w.bad(409, "ALREADY_EXISTS", "POST", PARENT + "/queues", {"name": QUEUE})
        names = [f"{PARENT}/queues/q{i}" for i in range(5)]
        for name in names:
            is_ = w.queue(name)
        assert is_["rateLimits"] == {"maxDispatchesPerSecond": 500, "maxBurstSize": 100, "maxConcurrentDispatches": 1000}, is_
        assert is_["retryConfig"] == {"maxAttempts": 100, "maxRetryDuration": "0s", "minBackoff": "0.100s", "maxBackoff": "3600s",
                                      "maxDoublings": 16}, is_
        found, token = [], ""
        while token is not None:
            page = w.good("GET", f"{PARENT}/queues?pageSize=2&pageToken={token}", role="viewer")
            assert len(page["queues"]) <= 2
            found += [q["name"] for q in page["queues"]]
            token = page.get("nextPageToken")
        assert found == sorted([QUEUE, *names]), found
        other = w.good("GET", "projects/other/locations/asia-northeast1/queues")
        assert other == {"queues": []}, other
        assert w.good("DELETE", names[0]) == {}
        w.bad(404, "NOT_FOUND", "GET", names[0])
        w.bad(404, "NOT_FOUND", "DELETE", names[0])


@test
def the_configuration_has_the_limits_of_queues_that_name_none():
    with world(queues={"limits": {"rate": "20/s", "concurrency": 3}}) as w:
        assert w.queue()["rateLimits"] == {"maxDispatchesPerSecond": 20, "maxBurstSize": 10, "maxConcurrentDispatches": 3}
        own = w.queue(PARENT + "/queues/own", rateLimits={"maxDispatchesPerSecond": 100})["rateLimits"]
        assert own == {"maxDispatchesPerSecond": 100, "maxBurstSize": 20, "maxConcurrentDispatches": 3}, own
        gate, inside, most = threading.Event(), [], []

        def slow(request):
            inside.append(request)
            most.append(len(inside))
            gate.wait(0.2)
            inside.remove(request)
            return 200

        w.receiver.on("slow", slow)
        for i in range(8):
            w.task("slow", name=f"s{i}")
        until(lambda: len(w.receiver.accepted()) == 8, "all of them")
        assert max(most) <= 3, most
        w.config["queues"]["limits"] = {"burst": 7}  # a queue keeps what it was made with
        w.write_config()
        n = w.relay.log().count("msg=reloaded")
        w.relay.signal(signal.SIGHUP)
        w.relay.says("msg=reloaded", n + 1)
        assert w.good("GET", QUEUE)["rateLimits"]["maxDispatchesPerSecond"] == 20
        later = w.queue(PARENT + "/queues/later")["rateLimits"]
        assert later == {"maxDispatchesPerSecond": 500, "maxBurstSize": 7, "maxConcurrentDispatches": 1000}, later
        again = json.loads(w.hikyaku("queues", "update", QUEUE, "--reset", "rate", "--reset", "concurrency", "--json", *WHO))
        assert (again["rate_per_s"], again["burst"], again["concurrency"]) == (500, 10, 1000), again


@test
def a_patch_changes_what_its_mask_names_and_makes_what_is_not_there():
    with world() as w:
        made = w.good("PATCH", QUEUE, {"retryConfig": {"maxAttempts": 7, "minBackoff": "2s"}})
        assert made["retryConfig"]["maxAttempts"] == 7 and made["retryConfig"]["minBackoff"] == "2s", made
        one = w.good("PATCH", QUEUE + "?updateMask=retryConfig.maxAttempts,rate_limits.max_concurrent_dispatches",
                     {"name": QUEUE, "retryConfig": {"maxAttempts": -1, "minBackoff": "9s"}, "rateLimits": {"maxConcurrentDispatches": 2}})
        assert one["retryConfig"]["maxAttempts"] == -1 and one["retryConfig"]["minBackoff"] == "2s", one
        assert one["rateLimits"]["maxConcurrentDispatches"] == 2, one
        again = w.good("PATCH", QUEUE + "?updateMask=retryConfig", {})
        assert again["retryConfig"]["maxAttempts"] == 100 and again["retryConfig"]["minBackoff"] == "0.100s", again
        w.bad(400, "INVALID_ARGUMENT", "PATCH", QUEUE + "?updateMask=nonsense", {})
        w.bad(400, "INVALID_ARGUMENT", "PATCH", QUEUE, {"name": PARENT + "/queues/another"})


@test
def patches_at_the_same_time_all_hold():
    fields = [("rateLimits", "maxBurstSize", 7), ("rateLimits", "maxConcurrentDispatches", 8), ("retryConfig", "maxAttempts", 9),
              ("retryConfig", "maxDoublings", 10)]
    with world() as w:
        name, wrong = w.queue(PARENT + "/queues/-")["name"], []  # Google has queues of this name, too

        def patch(section, field, value):
            for _ in range(8):
                status, is_ = w.ask("PATCH", f"{name}?updateMask={section}.{field}", {section: {field: value}})
                if status != 200:
                    wrong.append(is_)

        threads = [threading.Thread(target=patch, args=f) for f in fields]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        is_ = w.good("GET", name)
        assert not wrong and all(is_[section][field] == value for section, field, value in fields), (wrong, is_)


@test
def a_paused_queue_keeps_its_tasks_until_it_is_resumed():
    with world() as w:
        w.queue()
        assert w.good("POST", QUEUE + ":pause", {}, role="operator")["state"] == "PAUSED"
        assert w.good("GET", QUEUE)["state"] == "PAUSED"
        w.task(name="waits")
        listed = w.good("GET", QUEUE + "/tasks", role="viewer")["tasks"]
        assert [id_of(t) for t in listed] == ["waits"], listed
        assert w.good("POST", QUEUE + ":resume", {}, role="operator")["state"] == "RUNNING"
        until(lambda: w.receiver.arrived("waits"), "the task")


@test
def a_purge_cancels_what_waits():
    with world() as w:
        w.queue()
        w.good("POST", QUEUE + ":pause", {})
        for i in range(7):
            w.task(name=f"old-{i}")
        w.good("POST", QUEUE + ":purge", {}, role="operator")
        until(lambda: w.good("GET", QUEUE + "/tasks") == {"tasks": []}, "an empty queue")
        w.task(name="new")
        w.good("POST", QUEUE + ":resume", {})
        until(lambda: w.receiver.arrived("new"), "the new task")
        assert {r.id for r in w.receiver.arrived()} == {"new"}
        assert w.statuses("message_id LIKE 'old-%'") == {"cancelled": 7}


# ---- queues, as people see them ----

@test
def people_make_change_and_watch_queues():
    with world(policies={"patient": {"preset": "cloud-tasks", "backoff": {"base": "1h", "cap": "1h"}}}) as w:
        made = json.loads(w.hikyaku("queues", "create", QUEUE, "--rate", "5/s", "--concurrency", "3", "--max-attempts", "unlimited", "--max-retry-duration",
                                    "2h", "--min-backoff", "1s", "--max-doublings", "0", "--policy", "patient", "--json", *WHO))
        is_ = w.good("GET", QUEUE)
        assert is_["rateLimits"] == {"maxDispatchesPerSecond": 5, "maxBurstSize": 10, "maxConcurrentDispatches": 3}, is_
        assert is_["retryConfig"] == {"maxAttempts": -1, "maxRetryDuration": "7200s", "minBackoff": "1s", "maxBackoff": "3600s", "maxDoublings": 0}, is_
        assert (made["name"], made["max_attempts"], made["policy"], made["paused"]) == (QUEUE, None, "patient", False), made
        again = json.loads(w.hikyaku("queues", "update", "bigquery-sync-queue", "--max-attempts", "7", "--reset", "rate", "--reset", "burst", "--json", *WHO))
        assert (again["max_attempts"], again["rate_per_s"], again["burst"], again["concurrency"]) == (7, 500, 100, 3), again
        assert "bigquery-sync-queue: paused" in w.hikyaku("queues", "pause", "bigquery-sync-queue", *WHO)
        w.task(name="one")
        w.task(name="two")
        shown = json.loads(w.hikyaku("queues", "show", QUEUE, "--json"))
        assert (shown["paused"], shown["waiting"]["n"], shown["in_flight"], shown["dead"]["n"]) == (True, 2, 0, 0), shown
        # over HTTP it is the same
        token = w.path("token")
        token.write_text(w.tokens["viewer"], encoding="utf-8")
        there = ("--server", f"http://{w.address}", "--token-file", str(token))
        assert json.loads(w.hikyaku("queues", "show", QUEUE, "--json", *there)) == shown
        table = w.hikyaku("queues", "list", *there).splitlines()
        assert table[0].split() == "QUEUE RATE BURST AT ONCE ATTEMPTS RETRY FOR BACKOFF WAITING DEAD STATE".split(), table
        assert table[1].startswith(QUEUE) and table[1].split()[1:6] == ["500/s", "100", "3", "7", "2h"] and table[1].split()[-3:] == ["2", "0", "paused"], table
        w.hikyaku("queues", "create", PARENT + "/queues/zz", *WHO)
        page = json.loads(w.hikyaku("queues", "list", "--parent", PARENT, "--limit", "1", "--json"))
        assert [q["name"] for q in page["items"]] == [QUEUE] and page["next"] == QUEUE, page
        assert [q["name"] for q in json.loads(w.hikyaku("queues", "list", "--after", page["next"], "--json"))["items"]] == [PARENT + "/queues/zz"]
        assert "2 tasks cancelled" in w.hikyaku("queues", "purge", "bigquery-sync-queue", *WHO)
        assert w.statuses() == {"cancelled": 2}
        assert w.hikyaku("queues", "resume", QUEUE, *WHO) == f"{QUEUE}: running\n"
        # a pause does not outlive its queue
        w.hikyaku("queues", "pause", "zz", *WHO)
        assert "deleted; 0 tasks cancelled" in w.hikyaku("queues", "delete", "zz", *WHO)
        assert w.queue(PARENT + "/queues/zz")["state"] == "RUNNING"


@test
def a_file_of_destinations_prunes_no_queue():
    with world(definitions={"allow": ["127.0.0.0/8"]}) as w:
        w.queue()
        w.task(name="held", scheduleTime="2100-01-01T00:00:00Z")
        idle = w.queue(PARENT + "/queues/idle")["name"]
        w.hikyaku("destinations", "create", "old", "--definition", '{"null":{}}', *WHO)
        done = json.loads(w.hikyaku("destinations", "apply", "--definitions", '{"new":{"null":{}}}', "--prune", "--json", *WHO))
        assert [(i["destination"], i["did"]) for i in done["items"]] == [("new", "created"), ("old", "deleted")], done
        assert w.good("GET", idle)["name"] == idle
        assert [id_of(t) for t in w.good("GET", QUEUE + "/tasks")["tasks"]] == ["held"]


@test
def people_are_told_what_is_wrong_with_a_queue():
    with world() as w:
        other = "projects/bank/locations/asia-northeast1/queues/bigquery-sync-queue"
        w.queue()

        def refuse(code, says, *command):
            got, text = w.try_hikyaku("queues", *command, *(() if command[0] in ("show", "list") else WHO))
            assert got == code and says in text, (command, got, text)

        refuse(1, "there is a queue", "create", QUEUE)
        refuse(2, "projects/", "create", "mail")
        refuse(2, "'--max-attempts' takes 1 to 1000000, or unlimited; not '0'", "create", other, "--max-attempts", "0")
        refuse(2, "'--max-doublings' takes 0 to 16", "create", other, "--max-doublings", "17")
        refuse(2, "'--max-retry-duration' takes a duration", "create", other, "--max-retry-duration", "soon")
        refuse(2, "minBackoff must not be above maxBackoff", "create", other, "--min-backoff", "2s", "--max-backoff", "1s")
        refuse(2, "nosuch", "create", other, "--policy", "nosuch")
        refuse(2, "--rate", "create", other, "--rate", "900/s")
        for nothing in (("--concurrency", "0"), ("--burst", "0"), ("--min-backoff", "0s"), ("--max-backoff", "0s")):  # no word for the default
            refuse(2, f"option '{nothing[0]}' takes", "create", other, *nothing)
            refuse(2, f"option '{nothing[0]}' takes", "update", QUEUE, *nothing)
        refuse(1, "there is no queue \"nosuch\"", "show", "nosuch")
        refuse(1, "there is no queue", "update", other, "--rate", "1/s")
        refuse(2, "say what is to change", "update", QUEUE)
        refuse(2, "'--reset' takes rate, burst", "update", QUEUE, "--reset", "colour")
        refuse(2, "contradict", "update", QUEUE, "--reset", "rate", "--rate", "1/s")
        refuse(1, "there is no queue", "delete", "nosuch")
        w.hikyaku("queues", "create", other, *WHO)
        refuse(2, "several queues are named \"bigquery-sync-queue\"", "show", "bigquery-sync-queue")


@test
def a_large_purge_or_delete_outlives_its_relay():
    """The call answers at once; the rest is a job, which another relay takes over in the middle."""
    if not has_crash_points():
        raise Skip("a build without crash points")
    many = 1600  # four batches
    with TaskWorld(relay={"lease": "1s"}) as w:
        w.start()
        w.queue()
        w.good("POST", QUEUE + ":pause", {})
        destination = json.loads(w.hikyaku("queues", "show", QUEUE, "--json"))["destination"]
        w.insert_many(many, prefix="old", destination=destination)
        w.relay.stop()
        w.start("dies", {"HIKYAKU_CRASH_AT": "job-saved:2"})
        purged = w.good("POST", QUEUE + ":purge", {}, role="operator")
        assert purged["state"] == "PAUSED" and purged["purgeTime"][:2] == "20", purged
        assert w.relay.wait() == -signal.SIGKILL
        w.start("survives")
        w.task(name="young")
        until(lambda: w.statuses("message_id LIKE 'old-%'") == {"cancelled": many}, lambda: w.statuses())
        assert [id_of(t) for t in w.good("GET", QUEUE + "/tasks")["tasks"]] == ["young"]
        w.good("POST", QUEUE + ":resume", {})
        until(lambda: w.receiver.arrived("young"), "the task that came after the purge")

        w.good("POST", QUEUE + ":pause", {})
        w.insert_many(many, prefix="more", destination=destination)
        w.relay.stop()
        w.start("dies-too", {"HIKYAKU_CRASH_AT": "job-committed:3"})
        assert w.good("DELETE", QUEUE) == {}
        assert w.relay.wait() == -signal.SIGKILL
        w.start("survives-too")
        w.bad(404, "NOT_FOUND", "GET", QUEUE)
        w.bad(404, "NOT_FOUND", "DELETE", QUEUE)
        assert w.good("GET", PARENT + "/queues") == {"queues": []}
        w.bad(404, "NOT_FOUND", "POST", QUEUE + "/tasks", {"task": {"httpRequest": {"url": w.receiver.url("x")}}})
        until(lambda: w.ask("POST", PARENT + "/queues", {"name": QUEUE})[0] == 200, "the name to be free")
        assert w.statuses("message_id LIKE 'more-%'") == {"cancelled": many}
        w.task(name="next")  # the new queue of that name runs
        until(lambda: w.receiver.arrived("next"), "a task of the new queue")
        assert {r.id for r in w.receiver.arrived()} == {"young", "next"} and not w.letters()
        jobs = json.loads(w.hikyaku("job", "list", "--json"))["items"]
        assert [(j["operation"], j["status"], j["changed"]) for j in jobs] == [("queues delete", "done", many), ("messages cancel", "done", many)], jobs


# ---- tasks ----

@test
def a_task_goes_out_as_google_sends_it():
    with world() as w:
        w.queue()
        made = w.task("work?x=1", name="t1", http={"httpMethod": "PUT", "body": b64('{"a":1}'),
                                                   "headers": {"Content-Type": "application/json", "Authorization": "Bearer mine",
                                                               "X-CloudTasks-TaskName": "forged", "User-Agent": "forged"}})
        assert made["name"] == QUEUE + "/tasks/t1" and made["view"] == "BASIC" and "body" not in made["httpRequest"], made
        assert made["httpRequest"]["httpMethod"] == "PUT" and made["dispatchCount"] == 0, made
        got = until(lambda: w.receiver.arrived("t1"), "the task")[0]
        assert (got.method, got.path, got.body) == ("PUT", "/work?x=1", b'{"a":1}'), (got.method, got.path, got.body)
        h = got.headers
        assert h["x-cloudtasks-queuename"] == "bigquery-sync-queue" and h["user-agent"] == "Google-Cloud-Tasks", h
        assert (h["x-cloudtasks-taskretrycount"], h["x-cloudtasks-taskexecutioncount"]) == ("0", "0"), h
        assert abs(int(h["x-cloudtasks-tasketa"]) - time.time()) < 3600 and h["authorization"] == "Bearer mine", h
        assert h["content-type"] == "application/json" and "webhook-id" not in h and "hikyaku-attempt" not in h, h
        until(lambda: w.message("t1")[0] == "sent", "it to be settled")
        w.bad(404, "NOT_FOUND", "GET", QUEUE + "/tasks/t1")


@test
def a_retry_says_how_the_try_before_ended():
    with world() as w:
        w.queue(retryConfig={"minBackoff": "0.010s"})
        answers = iter([401, Answer(403, body=b"not you"), Answer(None), 503, 200])
        w.receiver.on("picky", lambda _: next(answers))
        w.task("picky", name="picky")
        tries = until(lambda: len(w.receiver.arrived("picky")) == 5 and w.receiver.arrived("picky"), "five tries")
        told = [(r.headers.get("x-cloudtasks-taskpreviousresponse"), r.headers.get("x-cloudtasks-taskretryreason")) for r in tries]
        assert told == [(None, None), ("401", "AUTH_FAILED"), ("403", "AUTH_FAILED"), (None, "TRANSIENT_NETWORK"), ("503", "HTTP_503")], told


@test
def every_method_and_binary_bodies_arrive():
    with world() as w:
        w.queue()
        for method in ("GET", "HEAD", "DELETE", "OPTIONS", "PATCH"):
            w.task(name=f"m-{method}", http={"httpMethod": method})
            assert until(lambda m=method: w.receiver.arrived(f"m-{m}"), method)[0].method == method
        raw = bytes(range(256))
        w.task(name="bytes", http={"httpMethod": 1, "body": base64.urlsafe_b64encode(raw).decode().rstrip("=")})
        assert until(lambda: w.receiver.arrived("bytes"), "the bytes")[0].body == raw
        assert w.receiver.arrived("bytes")[0].headers["content-type"] == "application/octet-stream"
        w.bad(400, "INVALID_ARGUMENT", "POST", QUEUE + "/tasks",
              {"task": {"httpRequest": {"url": w.receiver.url("x"), "httpMethod": "GET", "body": b64("x")}}})


@test
def names_are_given_once():
    with world() as w:
        w.queue()
        w.queue(PARENT + "/queues/other")
        w.task(name="only")
        task = {"task": {"name": QUEUE + "/tasks/only", "httpRequest": {"url": w.receiver.url("x")}}}
        w.bad(409, "ALREADY_EXISTS", "POST", QUEUE + "/tasks", task)
        until(lambda: w.message("only")[0] == "sent", "it to be sent")
        w.bad(409, "ALREADY_EXISTS", "POST", QUEUE + "/tasks", task)  # for an hour
        w.task(name="only", queue=PARENT + "/queues/other")
        race = {"task": {"name": QUEUE + "/tasks/race", "httpRequest": {"url": w.receiver.url("x")}}}
        codes = []
        threads = [threading.Thread(target=lambda: codes.append(w.ask("POST", QUEUE + "/tasks", race)[0])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(codes) == [200] + [409] * 7, codes
        names = {w.task()["name"] for _ in range(5)}
        assert len(names) == 5


@test
def tasks_are_shown_listed_and_deleted():
    with world() as w:
        w.queue()
        w.good("POST", QUEUE + ":pause", {})
        later = rfc3339(time.time() + 86400)
        w.task(name="later", scheduleTime=later, dispatchDeadline="30s", http={"body": b64("hidden")})
        basic = w.good("GET", QUEUE + "/tasks/later", role="viewer")
        assert basic["scheduleTime"] == later and basic["dispatchDeadline"] == "30s" and "body" not in basic["httpRequest"], basic
        full = w.good("GET", QUEUE + "/tasks/later?responseView=FULL")
        assert full["view"] == "FULL" and full["httpRequest"]["body"] == b64("hidden"), full
        assert w.good("GET", QUEUE + "/tasks/later?responseView=2&$alt=json%3Benum-encoding=int")["view"] == 2
        for i in range(5):
            w.task(name=f"n{i}")
        until(lambda: w.sql("SELECT message_id FROM outbox_retry") == [("later",)], "the relay to put it aside: not between two pages")
        found, token = [], ""
        while token is not None:
            page = w.good("GET", f"{QUEUE}/tasks?pageSize=2&pageToken={token}")
            assert len(page["tasks"]) <= 2
            found += [id_of(t) for t in page["tasks"]]
            token = page.get("nextPageToken")
        assert sorted(found) == ["later", *(f"n{i}" for i in range(5))], found
        assert w.good("DELETE", QUEUE + "/tasks/later", role="operator") == {}
        w.bad(404, "NOT_FOUND", "GET", QUEUE + "/tasks/later")
        w.bad(404, "NOT_FOUND", "DELETE", QUEUE + "/tasks/later")
        assert w.bad(409, "ALREADY_EXISTS", "POST", QUEUE + "/tasks", {"task": {"name": QUEUE + "/tasks/later", "httpRequest": {
            "url": w.receiver.url("x")}}}) == "there is a task of this name, or was within the last hour"  # and not where the database is
        w.bad(400, "INVALID_ARGUMENT", "GET", QUEUE + "/tasks?pageToken=junk")


@test
def a_scheduled_task_is_never_early_and_runs_at_once_when_asked():
    with world() as w:
        w.queue()
        at = time.time() + 2
        w.task(name="soon", scheduleTime=rfc3339(at))
        w.task(name="tomorrow", scheduleTime=rfc3339(at + 86400))
        got = until(lambda: w.receiver.arrived("soon"), "the scheduled task")[0]
        assert got.at >= at - 0.01 and got.headers["x-cloudtasks-tasketa"] == str(int(at)), (got.at, at, got.headers)
        assert not w.receiver.arrived("tomorrow")
        ran = w.good("POST", QUEUE + "/tasks/tomorrow:run", {"responseView": "FULL"}, role="operator")
        assert ran["name"].endswith("/tomorrow") and ran["view"] == "FULL", ran
        until(lambda: w.receiver.arrived("tomorrow"), "the task that was run")
        until(lambda: w.message("tomorrow")[0] == "sent", "it to be settled")
        w.bad(404, "NOT_FOUND", "POST", QUEUE + "/tasks/tomorrow:run", {})
        w.good("POST", QUEUE + ":pause", {}, role="operator")
        w.task(name="held")
        w.good("POST", QUEUE + "/tasks/held:run", {}, role="operator")
        until(lambda: w.receiver.arrived("held"), "the task that was run though its queue is paused")


@test
def a_slow_handler_is_cut_off_at_its_deadline():
    with world() as w:
        w.queue(retryConfig={"maxAttempts": 1})
        w.receiver.on("slow", Answer(200, hang=True))
        w.task("slow", name="slow", dispatchDeadline="15s")
        letter = until(lambda: w.letters().get("slow"), "the dead letter")
        assert letter == "TIMEOUT", letter


@test
def limits_of_a_queue_hold():
    with world() as w:
        gate = threading.Event()
        inside, most = [], []

        def slow(request):
            inside.append(request)
            most.append(len(inside))
            gate.wait(0.05)
            inside.remove(request)
            return 200

        w.queue(rateLimits={"maxConcurrentDispatches": 2, "maxDispatchesPerSecond": 20, "maxBurstSize": 1})
        w.receiver.on("slow", slow)
        began = time.time()
        for i in range(12):
            w.task("slow", name=f"s{i}")
        until(lambda: len(w.receiver.accepted()) == 12, "all of them")
        last = max(r.at for r in w.receiver.arrived())
        assert max(most) <= 2, most
        assert last - began >= 10 / 20, last - began  # 12 at 20 a second, one of them saved up


@test
def a_queue_in_trouble_is_slowed():
    """429 and 503 hold all of it for as long as they ask; a high share of failures opens its breaker. A single task that fails does neither."""
    with world() as w:
        answers = iter([Answer(429, headers={"Retry-After": "2"}), 200])
        w.receiver.on("limited", lambda _: next(answers))
        w.receiver.on("broken", 500)
        w.queue(retryConfig={"minBackoff": "3600s"})
        w.task("limited", name="limited")
        until(lambda: w.receiver.arrived("limited"), "the first attempt")
        until(lambda: w.message("limited")[0] == "retrying", "its 429 to be settled")
        w.task(name="other")
        until(lambda: w.receiver.arrived("other"), "the other task")
        until(lambda: len(w.receiver.arrived("limited")) == 2, "the second attempt")
        told = w.receiver.arrived("limited")[0].answered
        for name in ("limited", "other"):
            assert w.receiver.arrived(name)[-1].at >= told + 1.99, (name, told, [r.at for r in w.receiver.arrived(name)])

        def queue(name):
            destination = json.loads(w.hikyaku("queues", "show", name, "--json"))["destination"]
            return next(d for d in json.loads(w.hikyaku("status", "--json"))["destinations"] if d["name"] == destination)

        w.task("broken", name="alone")
        until(lambda: w.message("alone")[0] == "retrying", "it to fail")
        w.task(name="beside")
        until(lambda: w.receiver.arrived("beside"), "a task beside it")
        assert queue(QUEUE)["breaker"] == "closed", queue(QUEUE)
        bad = PARENT + "/queues/bad"
        w.queue(bad, retryConfig={"minBackoff": "3600s"}, rateLimits={"maxConcurrentDispatches": 5})
        for i in range(70):
            w.task("broken", bad, f"b{i}")
        until(lambda: queue(bad)["breaker"] == "open", lambda: queue(bad))
        n = sum(bool(w.receiver.arrived(f"b{i}")) for i in range(70))
        assert 50 <= n < 60, n  # and those that were under way
        w.task(name="healthy")
        until(lambda: w.receiver.arrived("healthy"), "a task of the other queue")


@test
def a_forced_task_passes_the_concurrency():
    with world() as w:
        gate = threading.Event()

        def hold(_):
            gate.wait(600)
            return 200

        w.receiver.on("hold", hold)
        w.queue(rateLimits={"maxConcurrentDispatches": 1})
        w.task("hold", name="first")
        until(lambda: w.receiver.arrived("first"), "the one place to be taken")
        for i in range(3):
            w.task("hold", name=f"forced-{i}")
        w.task(name="behind")
        for i in range(3):
            w.good("POST", f"{QUEUE}/tasks/forced-{i}:run", {}, role="operator")
        until(lambda: all(w.receiver.arrived(f"forced-{i}") for i in range(3)), "the forced ones, beside the first")
        assert not w.receiver.arrived("behind")
        gate.set()
        until(lambda: w.receiver.arrived("behind"), "what nobody forced")


# ---- what is refused ----

@test
def hostile_requests_get_googles_errors():
    with world() as w:
        w.queue()
        url, tasks = w.receiver.url("x"), QUEUE + "/tasks"

        def refuse(body, *words, method="POST", path=tasks, **more):
            message = w.bad(400, "INVALID_ARGUMENT", method, path, body, **more)
            for word in words:
                assert word in message, (word, message)

        def http(**fields):
            return {"task": {"httpRequest": {"url": url, **fields}}}

        refuse({"task": {"httpRequest": {"url": url}, "nonsense": 1}}, "Unknown name", "nonsense", "'task'")
        refuse({"tusk": {}}, "Unknown name")
        refuse(b"{", "Invalid JSON")
        refuse(b"[]", "object")
        refuse(b'{"task":{"httpRequest":{"url":"%s"}}} x' % url.encode(), "Invalid JSON")
        refuse({}, "url is required")
        refuse(http(body="%%%"), "task.http_request.body")
        refuse(http(body=5), "body")
        refuse(http(httpMethod="FETCH"), "http_method")
        refuse(http(httpMethod=99), "http_method")
        refuse(http(headers={"a b": "c"}), "no name of a header")
        refuse(http(headers={"x": "a\r\nInjected: yes"}), "control character")
        refuse(http(headers={"Transfer-Encoding": "chunked"}), "not for a task")
        refuse(http(headers={"x": 1}))
        refuse(http(headers={"x-once": "a", "X-Once": "b"}), "X-Once", "given twice")
        refuse(http(headers={"content-type": "a/b", "Content-Type": "c/d"}), "given twice")
        refuse(b'{"task":{"httpRequest":{"url":"%s","headers":{"x":"1","x":"2"}}}}' % url.encode(), "given twice")
        refuse(http(oidcToken={"serviceAccountEmail": "a@b"}), "oidc_token", "tokens: ignore")
        for bad in ("ftp://a/", "//a/b", "http://u:p@a/", "http://a/#f", "http://a b/", "http:///x", "javascript:1", "http://a/\r\nX: y", "http://a:99999/", "http://[::1/",
                    "http://a/" + "x" * 2100):
            refuse({"task": {"httpRequest": {"url": bad}}}, "url")
        refuse({"task": {"name": QUEUE + "/tasks/a b", "httpRequest": {"url": url}}}, "Task name")
        refuse({"task": {"name": QUEUE + "/tasks/" + "x" * 501, "httpRequest": {"url": url}}}, "Task name")
        refuse({"task": {"name": PARENT + "/queues/other/tasks/a", "httpRequest": {"url": url}}}, "Task.name")
        refuse({"task": {"scheduleTime": "tomorrow", "httpRequest": {"url": url}}}, "schedule_time")
        for bad in ("5", "-1s", "1e3s", "s", "3.s", 15, "15 s"):
            refuse({"task": {"dispatchDeadline": bad, "httpRequest": {"url": url}}}, "dispatch_deadline")
        refuse({"task": {"dispatchDeadline": "1s", "httpRequest": {"url": url}}}, "between 15s and 1800s")
        refuse(http(body=b64("x" * 110000)), "too large")
        refuse({"task": {"appEngineHttpRequest": {}, "httpRequest": {"url": url}}}, "app_engine")
        refuse({"task": {"httpRequest": {"url": url}}}, "application/json", headers={"Content-Type": "text/plain"})
        refuse({"name": PARENT + "/queues/a b"}, path=PARENT + "/queues")
        refuse({"name": "projects/x/locations/y/queues/z"}, "parent", path=PARENT + "/queues")
        for section in ({"retryConfig": {"maxAttempts": -2}}, {"retryConfig": {"maxDoublings": 17}}, {"rateLimits": {"maxDispatchesPerSecond": 501}},
                        {"rateLimits": {"maxConcurrentDispatches": 5001}}, {"retryConfig": {"minBackoff": "2s", "maxBackoff": "1s"}},
                        {"rateLimits": {"maxDispatchesPerSecond": "NaN"}}):
            refuse({"name": PARENT + "/queues/bad", **section}, path=PARENT + "/queues")
        refuse(None, method="GET", path=QUEUE + "?color=red")
        w.bad(404, "NOT_FOUND", "GET", PARENT + "/nothing")
        w.bad(404, "NOT_FOUND", "POST", QUEUE + ":explode", {})
        status, problem = w.ask("POST", "../v2beta3/" + PARENT + "/queues", {"name": QUEUE})  # an older version of Google's
        assert (status, problem["code"]) == (404, "NO_SUCH_PATH"), problem
        w.bad(404, "NOT_FOUND", "POST", QUEUE + ":getIamPolicy", {})
        w.bad(404, "NOT_FOUND", "POST", PARENT + "/queues/missing/tasks", http())
        refuse(b'{"task":{"httpRequest":{"url":"' + b"x" * (300 << 10) + b'"}}}', "url")
        huge = b'{"task":{"httpRequest":{"url":"' + b"x" * (600 << 10) + b'"}}}'  # these are refused before they are read
        refuse(huge, "too long")
        refuse(iter([huge[:200 << 10], huge[200 << 10:400 << 10], huge[400 << 10:]]), "too long")  # no length announced
        refuse(b"{}", "without a body", method="DELETE", path=QUEUE)
        refuse({}, "localhost", headers={"Host": "elsewhere.example"})
        w.task(name="zero", scheduleTime="0001-01-01T00:00:00Z")  # as a program writes that has none
        until(lambda: w.receiver.arrived("zero"), "the task of no time")
        past = w.task(name="past", scheduleTime="2001-02-03T04:05:06Z")  # a time that is over means now
        assert past["scheduleTime"].startswith("2001-02-03"), past
        until(lambda: w.receiver.arrived("past"), "the task of the past")
        assert {r.id for r in w.receiver.arrived()} == {"past", "zero"}


@test
def tokens_that_only_google_can_make_are_refused_or_left_out():
    asked = {"oidcToken": {"serviceAccountEmail": "a@b", "audience": "https://shop.example"}}, {"oauthToken": {"serviceAccountEmail": "a@b", "scope": "s"}}
    with world() as w:
        w.queue()
        for token in asked:
            message = w.bad(400, "INVALID_ARGUMENT", "POST", QUEUE + "/tasks", {"task": {"httpRequest": {"url": w.receiver.url("x"), **token}}})
            assert "oidc_token or oauth_token" in message and "tokens: ignore" in message, message
        assert w.good("GET", QUEUE + "/tasks") == {"tasks": []}
    with world(queues={"tokens": "ignore"}) as w:
        w.queue()
        for i, token in enumerate(asked):
            w.task(name=f"bare-{i}", http=token)
            w.task(name=f"own-{i}", http={**token, "headers": {"Authorization": "Bearer mine"}})
        until(lambda: len(w.receiver.accepted()) == 4, "all four")
        for i in range(2):
            assert "authorization" not in w.receiver.arrived(f"bare-{i}")[0].headers
            assert w.receiver.arrived(f"own-{i}")[0].headers["authorization"] == "Bearer mine"


@test
def roles_decide():
    with world() as w:
        w.bad(403, "PERMISSION_DENIED", "POST", PARENT + "/queues", {"name": QUEUE}, role="operator")
        w.queue()
        task = {"task": {"httpRequest": {"url": w.receiver.url("x")}}}
        w.bad(403, "PERMISSION_DENIED", "POST", QUEUE + "/tasks", task, role="viewer")
        w.bad(403, "PERMISSION_DENIED", "POST", QUEUE + ":pause", {}, role="viewer")
        w.bad(403, "PERMISSION_DENIED", "DELETE", QUEUE, role="operator")
        w.good("GET", QUEUE, role="viewer")
        w.bad(401, "UNAUTHENTICATED", "GET", QUEUE, token="hk_wrong")
        for header in ("", "Bearer", "Bearer ", "Basic YTpi", w.tokens["admin"]):
            w.bad(401, "UNAUTHENTICATED", "GET", QUEUE, headers={"Authorization": header})
        w.hikyaku("token", "revoke", "viewer", *WHO)
        until(lambda: w.ask("GET", QUEUE, role="viewer")[0] == 401, "the revoked token to be refused")


@test
def nothing_is_there_without_the_section():
    with TaskWorld() as w:
        del w.config["queues"]
        w.write_config()
        w.start()
        assert "queues: {}" in w.bad(403, "PERMISSION_DENIED", "POST", PARENT + "/queues", {"name": QUEUE})
        w.bad(403, "PERMISSION_DENIED", "GET", PARENT + "/queues")


@test
def addresses_of_tasks_are_guarded():
    with world(queues={"allow": []}) as w:
        w.queue(retryConfig={"maxAttempts": 3})
        w.task(name="inside")
        assert until(lambda: w.letters().get("inside"), "the dead letter") == "BLOCKED_BY_POLICY"
        assert not w.receiver.arrived()


@test
def any_message_may_name_its_url_where_the_destination_lets_it():
    with world(destinations={"hooks": {"http": {"url": "message"}}, "fixed": {}}) as w:
        w.hikyaku("enqueue", "--destination", "hooks", "--event-type", "E", "--payload", "{}", "--message-id", "good",
                  "--target-url", w.receiver.url("own"), "--target-method", "PATCH", "--timeout", "20s")
        got = until(lambda: [r for r in w.receiver.arrived() if r.path == "/own"], "the message")[0]
        assert got.method == "PATCH" and got.headers["webhook-id"] == "good" and not [h for h in got.headers if h[0] == ":"], got.headers
        url = w.receiver.url("own")
        hostile = {"none": {}, "scheme": {":url": "file:///etc/passwd"}, "user": {":url": "http://a:b@127.0.0.1/"},
                   "lines": {":url": url + "\r\nX: y"}, "long": {":url": url + "x" * 3000}, "method": {":url": url, ":method": "TRACE"},
                   "body": {":url": url, ":method": "GET"}, "timeout": {":url": url, ":timeout": "soon"}, "unknown": {":url": url, ":x": "y"}}
        for name, headers in hostile.items():
            w.insert("hooks", message_id=name, headers=json.dumps(headers))
        w.insert("fixed", message_id="fixed", headers=json.dumps({":url": url}))
        w.insert("hooks", message_id="guarded", headers=json.dumps({":url": "http://10.255.255.1/"}))
        until(lambda: len(w.letters()) == len(hostile) + 2, lambda: f"dead letters: {w.letters()}")
        assert w.letters() == {**dict.fromkeys([*hostile, "fixed"], "VALIDATION_ERROR"), "guarded": "BLOCKED_BY_POLICY"}, w.letters()
        assert len(w.receiver.arrived()) == 1
        assert "url: message" in json.dumps(w.sql("SELECT error_message FROM dead_letters WHERE message_id = 'fixed'"))


# ---- document 004, with Google's own client ----

class Google:
    """Google's client, as a process that takes calls."""

    def __init__(self, w, role="admin"):
        folder = clients.node()
        host, port = w.address.rsplit(":", 1)
        self.process = w.child("node", str(folder / "client.js"), host, port, w.tokens[role], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env={**clean_environment(), "NODE_PATH": str(folder / "node_modules")})
        self.queue = self.read()

    def read(self):
        line = self.process.stdout.readline()
        assert line, "the client ended"
        answer = json.loads(line)
        if "error" in answer:
            raise GoogleError(answer["error"]["code"], answer["error"]["message"])
        return answer["ok"]

    def __getattr__(self, call):
        def ask(**request):
            self.process.stdin.write(json.dumps({"call": call, "request": request}) + "\n")
            self.process.stdin.flush()
            return self.read()
        return ask


class GoogleError(Exception):
    """(code, what the server said)"""


def fails(word, function, **request):
    """Its REST transport throws what the server said, as it is."""
    try:
        function(**request)
    except GoogleError as error:
        assert json.loads(error.args[1])["error"]["status"] == word, error
        return
    raise AssertionError(f"no error {word}")


def sync_task(w, path="internal_syncToBigQuery", **more):
    """As the document registers one."""
    data = {"userId": "u1", "sessionId": "s-42", "tableName": "events", "retryCount": 0}
    return {"httpRequest": {"httpMethod": "POST", "url": w.receiver.url(path), "headers": {"Content-Type": "application/json"},
                            "body": b64(json.dumps(data))},
            "scheduleTime": {"seconds": int(time.time())}, **more}


@test
def googles_client_uses_every_call():
    with world() as w:
        c = Google(w)
        assert c.queue == QUEUE
        queue = c.createQueue(parent=PARENT, queue={"name": QUEUE, "retryConfig": {"maxAttempts": 10, "minBackoff": {"seconds": 1}}})
        assert queue["name"] == QUEUE and queue["retryConfig"]["maxAttempts"] == 10, queue
        fails("ALREADY_EXISTS", c.createQueue, parent=PARENT, queue={"name": QUEUE})
        assert c.getQueue(name=QUEUE)["state"] in ("RUNNING", 1)
        assert [q["name"] for q in c.listQueues(parent=PARENT)] == [QUEUE]
        is_ = c.updateQueue(queue={"name": QUEUE, "retryConfig": {"maxAttempts": 4}}, updateMask={"paths": ["retry_config.max_attempts"]})
        assert is_["retryConfig"]["maxAttempts"] == 4, is_
        assert c.pauseQueue(name=QUEUE)["state"] in ("PAUSED", 2)
        made = c.createTask(parent=QUEUE, task=sync_task(w, name=QUEUE + "/tasks/one"))
        assert made["name"] == QUEUE + "/tasks/one", made
        fails("ALREADY_EXISTS", c.createTask, parent=QUEUE, task=sync_task(w, name=QUEUE + "/tasks/one"))
        full = c.getTask(name=QUEUE + "/tasks/one", responseView="FULL")
        assert json.loads(base64.b64decode(full["httpRequest"]["body"]))["sessionId"] == "s-42", full
        assert [t["name"] for t in c.listTasks(parent=QUEUE)] == [QUEUE + "/tasks/one"]
        c.createTask(parent=QUEUE, task=sync_task(w, name=QUEUE + "/tasks/two"))
        c.deleteTask(name=QUEUE + "/tasks/two")
        fails("NOT_FOUND", c.getTask, name=QUEUE + "/tasks/two")
        assert c.resumeQueue(name=QUEUE)["state"] in ("RUNNING", 1)
        until(lambda: w.receiver.arrived("one"), "the task")
        c.createTask(parent=QUEUE, task=sync_task(w, name=QUEUE + "/tasks/late", scheduleTime={"seconds": int(time.time()) + 9999}))
        c.runTask(name=QUEUE + "/tasks/late")
        until(lambda: w.receiver.arrived("late"), "the task that was run")
        c.purgeQueue(name=QUEUE)
        c.deleteQueue(name=QUEUE)
        fails("NOT_FOUND", c.getQueue, name=QUEUE)
        viewer = Google(w, "viewer")
        fails("PERMISSION_DENIED", viewer.createQueue, parent=PARENT, queue={"name": QUEUE})


class Flow:
    """Document 004, once for its seven points: a queue with ten attempts and doubling waits, a handler that fails, a person who acts.
    The document's second is 20 ms here."""

    world = None
    SECOND = 0.02

    def __init__(self):
        self.stack = contextlib.ExitStack()
        atexit.register(self.stack.close)
        self.slack = self.stack.enter_context(contextlib.closing(TaskReceiver()))
        w = self.w = self.stack.enter_context(world(
            channels={"slack": {"slack": {"url": self.slack.url("hook")}, "allow": ["127.0.0.0/8"]}},
            alerts={"interval": "1s", "rules": [{"name": "dlq", "when": "dead_letter"}]}))
        self.client = Google(w)
        self.queue = self.client.createQueue(parent=PARENT, queue={"name": QUEUE, "retryConfig": {
            "maxAttempts": 10, "minBackoff": {"seconds": 0, "nanos": int(self.SECOND * 1e9)}, "maxBackoff": {"seconds": 3600}, "maxDoublings": 16}})
        self.healthy = threading.Event()
        w.receiver.on("internal_syncToBigQuery", lambda _: 200 if self.healthy.is_set() else Answer(500, body=b"BigQuery is away"))
        self.task = self.client.createTask(parent=QUEUE, task=sync_task(w))
        self.id = id_of(self.task)
        self.reason = until(lambda: w.letters().get(self.id), "the dead letter")
        self.tries = w.receiver.arrived(self.id)


FLOW = []


def flow():
    if not FLOW:
        FLOW.append(Flow())
    return FLOW[0]


@test
def point_1_the_queue_is_made():
    f = flow()
    assert f.queue["name"] == QUEUE and f.client.getQueue(name=QUEUE)["retryConfig"]["maxAttempts"] == 10


@test
def point_2_failures_are_retried_by_themselves():
    f = flow()
    assert [r.headers["x-cloudtasks-taskretrycount"] for r in f.tries] == [str(i) for i in range(10)]
    assert {r.headers["x-cloudtasks-taskexecutioncount"] for r in f.tries} == {"0"}  # a 500 is no execution
    assert {r.body for r in f.tries} == {f.tries[0].body} and json.loads(f.tries[0].body)["sessionId"] == "s-42"


@test
def point_3_waits_double():
    f = flow()
    waits = [b.at - a.answered for a, b in zip(f.tries, f.tries[1:])]
    for i, wait in enumerate(waits):
        assert wait >= f.SECOND * 2 ** i - 0.005, (i, waits)  # never early; how late is the machine's business


@test
def point_4_after_ten_failures_it_is_a_dead_letter():
    f = flow()
    assert len(f.tries) == 10 and f.reason == "RETRY_EXHAUSTED", (len(f.tries), f.reason)


@test
def point_5_dead_letters_can_be_looked_at():
    f = flow()
    letter = json.loads(f.w.hikyaku("dead", "show", f.id, "--json"))
    text = json.dumps(letter)
    assert '"attempts": 10' in text and "BigQuery is away" in text and "s-42" in text.replace("\\", ""), text[:2000]
    assert '"status": "failed"' in text


@test
def point_6_people_are_told():
    f = flow()
    note = until(lambda: f.slack.arrived(), "the notice in Slack")[0]
    assert b"bigquery-sync-queue" in note.body, note.body


@test
def point_7_a_person_processes_it_again():
    f = flow()
    f.healthy.set()
    f.w.hikyaku("dead", "requeue", f.id, "--yes", *WHO)
    until(lambda: f.w.sql("SELECT status FROM dead_letters WHERE message_id = ?", f.id) == [("resolved",)], "the letter to be resolved")
    assert len(f.w.receiver.arrived(f.id)) == 11


@test
def the_category_table_holds_for_a_queue():
    """Requirement 402: transient ten attempts, 429 four, 401 and 400 one."""
    with world(queues={"policy": "fast-pipeline"}, policies={"fast-pipeline": {
            "preset": "sync-pipeline", "backoff": {"base": "5ms"},
            "classes": {"rate_limit": {"backoff": {"kind": "fixed", "base": "10ms"}}, "auth": {"pause_after": 0}}}}) as w:
        c = Google(w)
        c.createQueue(parent=PARENT, queue={"name": QUEUE})
        expected = {500: 10, 429: 4, 401: 1, 400: 1}
        for status in expected:
            w.receiver.on(f"s{status}", status)
            c.createTask(parent=QUEUE, task=sync_task(w, f"s{status}", name=f"{QUEUE}/tasks/t{status}"))
        until(lambda: len(w.letters()) == 4, "four dead letters")
        assert {s: len(w.receiver.arrived(f"t{s}")) for s in expected} == expected
        last = w.receiver.arrived("t429")[-1]
        assert (last.headers["x-cloudtasks-taskretrycount"], last.headers["x-cloudtasks-taskexecutioncount"]) == ("3", "3"), last.headers
        assert (last.headers["x-cloudtasks-taskpreviousresponse"], last.headers["x-cloudtasks-taskretryreason"]) == ("429", "RATE_LIMITED"), last.headers
        first, *more = w.receiver.arrived("t500")
        assert "x-cloudtasks-taskpreviousresponse" not in first.headers and "x-cloudtasks-taskretryreason" not in first.headers, first.headers
        assert {(r.headers["x-cloudtasks-taskpreviousresponse"], r.headers["x-cloudtasks-taskretryreason"]) for r in more} == {("500", "HTTP_500")}


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
