#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Destinations that the store keeps: created, changed and deleted while relays run, by command and over HTTP; which rules hold for them; what
stays after a restart and after a kill. Speaks TAP.

Usage: definitions.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import json
import re
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from api import Served
from support import POSTGRES, run_tests, until

OK, FAILURE, USAGE = 0, 1, 2
WHY = ("--actor", "ann", "--reason", "a test")
LOCAL = {"allow": ["127.0.0.0/8"]}
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def waiting(world):
    return world.sql("SELECT message_id FROM outbox")


def reload(relay):
    n = relay.log().count("msg=reloaded")
    relay.signal(signal.SIGHUP)
    relay.says("msg=reloaded", n + 1)


class Desk(Served):
    def __init__(self, *args, definitions=LOCAL, **more):
        super().__init__(*args, definitions=definitions, **more)

    def json(self, *args):
        return json.loads(self.hikyaku(*args, "--json"))

    def fails(self, code, *args, says=()):
        got, text = self.try_hikyaku(*args)
        assert got == code, (args, got, text)
        for words in says:
            assert words in text, (words, text)
        return text

    def define(self, verb, name, path=None, *more, **extra):
        text = json.dumps(self.destination(path or name, **extra))
        return self.json("destinations", verb, name, "--definition", text, *WHY, *more)

    def arrived_at(self, path, n):
        """Until n messages have come to that path."""
        def count():
            return sum(r.path.strip("/") == path for r in self.receiver.arrived())
        until(lambda: count() >= n, lambda: f"{n} messages at {path}, not {count()}")

    def only_waits(self, message_id):
        until(lambda: waiting(self) == [(message_id,)], lambda: f"only {message_id} in outbox, not {waiting(self)}")
        assert self.sql("SELECT count(*) FROM dead_letters") == [(0,)]

    def store_calls(self):
        """How often the relay has asked the store for messages, and changed some."""
        text = self.api().ask("GET", "/metrics")[2].decode()
        return sum(int(n) for n in re.findall(r'hikyaku_store_call_duration_seconds_count\{call="(?:scan|exchange|held_keys)"\} (\d+)', text))

    def row(self, name):
        return next((r for r in self.json("destinations", "list")["items"] if r["name"] == name), None)


@test
def created_by_command_changed_and_deleted_while_a_relay_runs():
    with Desk() as w:
        w.serve()
        made = w.define("create", "crm")
        assert (made["destination"], made["did"], made["version"]) == ("crm", "created", 1), made
        w.insert(destination="crm")
        w.arrived_at("crm", 1)
        w.fails(FAILURE, "destinations", "create", "crm", "--definition", '{"null":{}}', *WHY, says=["exists"])
        assert w.define("update", "crm", "other")["version"] == 2
        w.relay.says("destination changed")
        w.insert(destination="crm")
        w.arrived_at("other", 1)
        w.fails(FAILURE, "destinations", "update", "crm", "--definition", '{"null":{}}', "--if-version", "1", *WHY, says=["version 2"])
        w.fails(FAILURE, "destinations", "update", "nobody", "--definition", '{"null":{}}', *WHY, says=["no destination"])
        shown = w.json("destinations", "show", "crm")
        assert (shown["from"], shown["version"], shown["changed_by"]) == ("store", 2, "ann"), shown
        assert shown["definition"]["http"]["url"].endswith("/other"), shown
        row = w.row("crm")
        assert (row["from"], row["version"], row["problem"]) == ("store", 2, None), row
        assert w.row("shop")["from"] == "file" and w.row("shop")["version"] is None
        w.hikyaku("destinations", "delete", "crm", "--if-version", "2", *WHY)
        w.fails(FAILURE, "destinations", "delete", "crm", *WHY, says=["no destination"])
        w.relay.says("destination removed")
        w.insert(destination="crm", message_id="late")
        until(lambda: w.sql("SELECT reason_code FROM dead_letters WHERE message_id = 'late'") == [("UNKNOWN_DESTINATION",)], "a dead letter")
        acts = [r[0] for r in w.sql("SELECT act FROM outbox_audit WHERE destination = 'crm' ORDER BY id")]
        assert acts == ["destination-create", "destination-update", "destination-delete"], acts
        w.insert()
        w.arrived_at("shop", 1)


@test
def what_others_did_meanwhile_is_seen():
    """Somebody creates it, or deletes it, while the command waits for its turn."""
    row = ("INSERT INTO outbox_destination_def (name, version, seq, definition, created_ms, created_by, changed_ms, changed_by, reason) "
           "VALUES ('crm', 1, 1, '{\"null\":{}}', 1, 'bob', 1, 'bob', 'he was faster')")
    cases = (("create", row, ["--definition", '{"null":{}}'], "exists"), ("delete", "DELETE FROM outbox_destination_def", [], "no destination"))
    with Desk() as w:
        for verb, meanwhile, more, says in cases:
            db, told = w.connect(), []
            db.execute("BEGIN IMMEDIATE")
            if POSTGRES:
                db.execute("UPDATE outbox_definitions SET version = version + 1")
            db.execute(meanwhile)
            command = threading.Thread(target=lambda v=verb, m=more, t=told: t.append(w.try_hikyaku("destinations", v, "crm", *m, *WHY)))
            command.start()
            if POSTGRES:  # the file's lock is waited for, too, but nobody can see that
                until(lambda: w.sql("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"), "it to wait")
            db.execute("COMMIT")
            db.close()
            command.join()
            assert told[0][0] == FAILURE and says in told[0][1], (verb, told)


@test
def over_http_with_versions():
    with Desk() as w:
        w.token("root", "admin")
        w.token("eye", "viewer")
        w.serve()
        api = w.api("root")
        body = {"destination": "crm", "definition": w.destination("crm"), "reason": "a test"}
        status, head, made = api.ask("POST", "/destinations", body)
        assert status == 200 and made["version"] == 1 and head["ETag"] == '"1"', (status, made)
        assert api.ask("POST", "/destinations", body)[0] == 409
        w.insert(destination="crm")
        w.arrived_at("crm", 1)
        changed = {"definition": w.destination("two"), "reason": "a test"}
        assert api.ask("PUT", "/destinations/crm", changed, headers={"If-Match": '"7"'})[0] == 412
        assert api.ask("PUT", "/destinations/crm", changed, headers={"If-Match": '"1"'})[2]["version"] == 2
        status, head, shown = api.ask("GET", "/destinations/crm")
        assert head["ETag"] == '"2"' and shown["definition"]["http"]["url"].endswith("/two"), shown
        assert w.api("eye").ask("GET", "/destinations/crm")[2]["definition"] is None
        bad = {"destination": "bad", "definition": {"http": {"url": "https://a.example/", "methd": "PUT"}}, "reason": "a test"}
        status, _, problem = api.ask("POST", "/destinations", bad)
        assert status == 400 and problem["errors"][0]["pointer"] == "#/definition/http/methd", problem
        assert "did you mean" in problem["detail"], problem
        status, _, done = api.ask("POST", "/destinations/apply",
                                  {"definitions": {"crm": w.destination("two"), "n": {"null": {}}}, "reason": "a test"})
        assert (done["created"], done["unchanged"]) == (1, 1), done
        assert api.ask("DELETE", "/destinations/n?reason=x")[2]["did"] == "deleted"
        assert api.ask("DELETE", "/destinations/n?reason=x")[0] == 404
        assert api.ask("DELETE", "/destinations/crm")[0] == 400


@test
def what_is_wrong_names_its_field_and_nothing_is_written():
    with Desk() as w:
        def create(definition, says):
            w.fails(USAGE, "destinations", "create", "crm", "--definition", definition, *WHY, says=says)
        create("{http: {url: 'http://127.0.0.1/'}}", ["/http/url", "blocked"])
        create("{http: {url: 'https://a.example/'}, allow: [10.0.0.0/8]}", ["/allow/0", "definitions.allow"])
        create("{http: {url: 'https://a.example/', auth: {bearer: hunter2}}}", ["/http/auth/bearer", "HIKYAKU_SECRET_"])
        create("{http: {url: 'https://a.example/${file:/etc/passwd}'}}", ["/http/url", "definitions.secrets"])
        create("{http: {url: 'https://a.example/${PATH}'}}", ["/http/url", "HIKYAKU_SECRET_"])
        create("{http: {url: 'https://a.example/'}, policy: nope}", ["/policy", "there is no policy"])
        create("[]", ["must be a mapping"])
        w.fails(USAGE, "destinations", "create", "a b", "--definition", '{"null":{}}', *WHY, says=["no name for a destination"])
        w.fails(USAGE, "destinations", "create", "crm", *WHY, says=["--definition"])
        w.fails(FAILURE, "destinations", "create", "shop", "--definition", '{"null":{}}', *WHY, says=["defined in the configuration file"])
        w.fails(FAILURE, "destinations", "delete", "shop", *WHY, says=["defined in the configuration file"])
        assert w.sql("SELECT count(*) FROM outbox_destination_def") == [(0,)]
        assert w.sql("SELECT count(*) FROM outbox_audit") == [(0,)]


@test
def messages_wait_for_one_that_a_relay_cannot_use():
    """The database must give no rights on the relay's host: what the desk would refuse is held by the relay, too, and nothing dies of it."""
    with Desk() as w:
        (w.path("sec")).mkdir()
        w.config["definitions"]["secrets"] = "sec"
        w.write_config()
        w.serve()
        w.define("create", "crm", http={"headers": {"X-Api-Key": "${file:key}"}})
        w.relay.says("cannot be used here")
        w.insert(destination="crm", message_id="m1")
        w.insert()
        w.arrived_at("shop", 1)
        w.only_waits("m1")
        calls, began = w.store_calls(), time.monotonic()
        w.fails(FAILURE, "destinations", "delete", "crm", *WHY, says=["1 message waits", "--force"])
        time.sleep(2)
        calls, took = w.store_calls() - calls, time.monotonic() - began
        assert calls <= 3 * took + 5, f"what waits costs {calls} calls at the store in {took} s"
        (w.path("sec") / "key").write_text("s3cret\n")
        w.arrived_at("crm", 1)
        assert w.receiver.arrived()[-1].headers["x-api-key"] == "s3cret"
        db = w.connect()  # past the desk
        db.execute("UPDATE outbox_destination_def SET definition = ?, seq = 1000 WHERE name = 'crm'",
                   (json.dumps({"http": {"url": w.receiver.url("crm")}, "allow": ["127.0.0.0/8", "0.0.0.0/0"]}),))
        db.execute("UPDATE outbox_definitions SET version = 1000")
        db.execute("INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (0, 'x', 'x', 'x')")
        db.close()
        until(lambda: w.relay.log().count("cannot be used here") == 2, "the relay's word")
        w.insert(destination="crm", message_id="m2")
        w.insert()
        w.arrived_at("shop", 2)
        w.only_waits("m2")
        problem = w.row("crm")["problem"]
        assert "/allow/1" in problem, problem
        told = w.json("messages", "explain", "m2")
        assert "unusable_destination" in json.dumps(told), told
        assert "of the store cannot be used" in w.try_hikyaku("doctor")[1]


@test
def what_a_relay_lacks_is_known_everywhere():
    """A secret that only the relay lacks: who looks from another machine, where the secret is, learns of it all the same."""
    with Desk() as w:
        w.token("eye", "viewer")
        for folder in ("sec", "elsewhere"):
            w.path(folder).mkdir()
        w.config["definitions"]["secrets"] = "sec"
        w.write_config()
        w.serve()
        w.config["definitions"]["secrets"] = "elsewhere"
        w.write_config()
        (w.path("elsewhere") / "key").write_text("s3cret\n", encoding="utf-8")
        w.define("create", "crm", http={"headers": {"X-Api-Key": "${file:key}"}})
        w.define("create", "good")
        w.insert(destination="crm", message_id="m1")
        w.relay.says("cannot be used here")
        until(lambda: (w.row("crm") or {}).get("unusable"), "the relay's word in destinations list")
        row = w.row("crm")
        assert row["problem"] is None and row["unusable"]["relays"] == 1 and row["unusable"]["since"], row
        assert "/http/headers" in row["unusable"]["why"] and "s3cret" not in json.dumps(row), row
        assert w.row("good")["unusable"] is None and w.row("shop")["unusable"] is None
        told = w.json("messages", "explain", "m1")["items"][0]["causes"]
        assert [c["cause"] for c in told] == ["unusable_destination"], told
        assert "1 of 1 relays cannot use" in told[0]["text"] and "/http/headers" in told[0]["text"] and "uncharged" in told[0]["do"], told
        seen = next(d for d in w.json("status")["destinations"] if d["name"] == "crm")
        assert seen["unusable"]["why"] == row["unusable"]["why"] and seen["last_error"] is None, seen
        assert seen["last_minute"] is None or seen["last_minute"]["attempts_failed"] == 0, seen
        for words, says in ((["status"], "1 relay cannot use it, for"), (["destinations", "list"], "1 relay cannot use it, for"),
                            (["doctor"], "'crm' of the store cannot be used by 1 relay, for")):
            text = w.try_hikyaku(*words)[1]
            assert "crm" in text and says in text and "/http/headers" in text, (words, text)
        assert "by 1 relay, since" in w.try_hikyaku("destinations", "show", "crm")[1]
        assert w.api("eye").good("GET", "/destinations/crm")["unusable"]["why"] == row["unusable"]["why"]
        w.only_waits("m1")
        (w.path("sec") / "key").write_text("s3cret\n", encoding="utf-8")
        w.arrived_at("crm", 1)
        until(lambda: w.row("crm")["unusable"] is None, "nothing to tell any more")
        assert not any("cannot" in w.try_hikyaku(words)[1] for words in ("doctor", "status"))
        assert [r[0] for r in w.sql("SELECT attempts FROM outbox_retry")] == [] and w.sql("SELECT count(*) FROM dead_letters") == [(0,)]


@test
def one_that_comes_together_with_its_first_message():
    """The relay meets the message before it knows the destination, and nothing else happens in the database afterwards."""
    with Desk() as w:
        db = w.connect()  # one that was there before the relay, and left no act
        db.execute("INSERT INTO outbox_destination_def (name, version, seq, definition, created_ms, created_by, changed_ms, changed_by, reason) "
                   "VALUES ('early', 1, 1, ?, 0, 'x', 0, 'x', 'x')", (json.dumps(w.destination("early")),))
        db.execute("UPDATE outbox_definitions SET version = 1")
        w.serve()
        w.insert(destination="early")
        w.arrived_at("early", 1)
        w.define("create", "first")
        w.relay.says("destination added")
        for i in range(3):
            db.execute("BEGIN")
            db.execute("INSERT INTO outbox_destination_def (name, version, seq, definition, created_ms, created_by, changed_ms, changed_by, reason) "
                       "VALUES (?, 1, ?, ?, 0, 'x', 0, 'x', 'x')", (f"d{i}", 100 + i, json.dumps(w.destination(f"d{i}"))))
            db.execute("UPDATE outbox_definitions SET version = ?", (100 + i,))
            db.execute("INSERT INTO outbox (message_id, destination, event_type, payload) VALUES (?, ?, 'Made', '{}')", (f"m{i}", f"d{i}"))
            db.execute("INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (0, 'x', 'x', 'x')")
            db.execute("COMMIT")
            w.arrived_at(f"d{i}", 1)
        db.close()
        assert w.sql("SELECT count(*) FROM dead_letters") == [(0,)]


@test
def they_stay_after_a_restart_and_after_a_kill():
    with Desk() as w:
        relay = w.serve()
        w.define("create", "crm")
        w.define("create", "gone")
        w.insert(destination="crm")
        w.arrived_at("crm", 1)
        relay.kill()
        w.insert(destination="crm")
        w.insert(destination="gone", message_id="late")
        w.hikyaku("destinations", "delete", "gone", "--force", *WHY)
        relay = w.serve()
        w.arrived_at("crm", 2)
        until(lambda: w.sql("SELECT reason_code FROM dead_letters WHERE message_id = 'late'") == [("UNKNOWN_DESTINATION",)], "a dead letter")
        relay.stop()
        w.serve()
        w.insert(destination="crm")
        w.arrived_at("crm", 3)


@test
def the_file_wins_and_a_reload_composes_with_changes():
    with Desk() as w:
        relay = w.serve()
        w.define("create", "crm", "stored")
        w.insert(destination="crm")
        w.arrived_at("stored", 1)
        w.config["destinations"]["crm"] = w.destination("filed")
        w.write_config()
        reload(relay)
        w.insert(destination="crm")
        w.arrived_at("filed", 1)
        row = w.row("crm")
        assert row["from"] == "file" and row["also_stored"], row
        assert "the file's is used" in w.try_hikyaku("doctor")[1]
        del w.config["destinations"]["crm"]
        w.write_config()
        reload(relay)
        w.define("update", "crm", "again")
        relay.says("destination changed")
        w.insert(destination="crm")
        w.arrived_at("again", 1)


@test
def two_relays_learn_of_it_and_many_are_applied_at_once():
    with Desk() as w:
        relays = [w.daemon(name=f"r{i}").ready() for i in range(2 if POSTGRES else 1)]
        many = {f"d{i:03}": {**w.destination(f"d{i:03}"), "limits": {"concurrency": 2}} for i in range(60)}
        w.path("many.yaml").write_text(json.dumps({"destinations": many}), encoding="utf-8")
        would = w.json("destinations", "apply", "-f", "many.yaml", "--dry-run")
        assert (would["created"], would["dry_run"]) == (60, True) and w.sql("SELECT count(*) FROM outbox_destination_def") == [(0,)]
        assert w.json("destinations", "apply", "-f", "many.yaml", *WHY)["created"] == 60
        for i in range(60):
            w.insert(destination=f"d{i:03}", message_id=f"m{i:03}")
        until(lambda: len({r.path for r in w.receiver.arrived()}) == 60, lambda: f"60 paths, not {len({r.path for r in w.receiver.arrived()})}")
        del many["d000"]
        many["d001"]["policy"] = "standard"
        w.path("many.yaml").write_text(json.dumps(many), encoding="utf-8")
        done = w.json("destinations", "apply", "-f", "many.yaml", "--prune", *WHY)
        assert (done["created"], done["updated"], done["deleted"], done["unchanged"]) == (0, 1, 1, 58), done
        many["d002"]["nonsense"] = 1
        many["new"] = {"null": {}}
        w.path("many.yaml").write_text(json.dumps(many), encoding="utf-8")
        w.fails(USAGE, "destinations", "apply", "-f", "many.yaml", *WHY, says=["d002", "nonsense"])
        assert w.row("new") is None
        assert w.sql("SELECT count(*) FROM dead_letters") == [(0,)]
        for relay in relays:
            relay.stop()


@test
def paused_tested_and_redriven_as_those_of_the_file():
    with Desk() as w:
        w.serve()
        w.define("create", "crm", order="key")
        assert w.json("destinations", "test", "crm")["ok"]
        w.hikyaku("destinations", "pause", "crm", *WHY)
        w.insert(destination="crm", message_id="m1", message_key="k")
        w.insert()
        w.arrived_at("shop", 1)
        w.only_waits("m1")
        assert "paused" in json.dumps(w.json("messages", "explain", "m1"))
        w.hikyaku("destinations", "resume", "crm", *WHY)
        w.arrived_at("crm", 2)


@test
def relays_share_a_concurrency():
    with Desk() as w:
        relays = [w.daemon(name=f"r{i}").ready() for i in range(2 if POSTGRES else 1)]
        lock, now, most = threading.Lock(), [0], [0]

        def slow(_):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            w.receiver.closing.wait(0.02)  # it takes its time
            with lock:
                now[0] -= 1
            return 200
        w.receiver.on("crm", slow)
        w.fails(USAGE, "destinations", "create", "crm", "--definition", json.dumps(w.destination("crm", limits={"shared": True})), *WHY,
                says=["/limits/shared", "concurrency"])
        w.define("create", "crm", limits={"concurrency": 2, "shared": True})
        for i in range(40):
            w.insert(destination="crm", message_id=f"m{i}")
        until(lambda: waiting(w) == [], lambda: f"nothing in outbox, not {waiting(w)}")
        assert len(w.receiver.accepted()) == 40 and 1 <= most[0] <= 2, (len(w.receiver.accepted()), most)
        assert w.sql("SELECT count(*) FROM outbox_retry") == [(0,)] and w.sql("SELECT count(*) FROM dead_letters") == [(0,)]
        for relay in relays:
            relay.stop()


@test
def a_message_is_forced_past_a_pause():
    with Desk() as w:
        w.serve()
        w.define("create", "crm", order="key")
        w.hikyaku("destinations", "pause", "crm", *WHY)
        for name, key in (("m1", None), ("m2", "k"), ("m3", None)):
            w.insert(destination="crm", message_id=name, message_key=key)
        w.insert()
        w.arrived_at("shop", 1)
        assert w.json("messages", "retry", "m1", "--force", *WHY)["act"] == "force"
        w.arrived_at("crm", 1)
        w.fails(FAILURE, "messages", "retry", "m2", "--force", *WHY, says=["cannot be forced", "key"])
        until(lambda: sorted(waiting(w)) == [("m2",), ("m3",)], lambda: f"m2 and m3 in outbox, not {waiting(w)}")
        assert w.json("destinations", "list")["items"] and "paused" in json.dumps(w.json("messages", "explain", "m3"))
        assert [r[0] for r in w.sql("SELECT act FROM outbox_audit WHERE message_id = 'm1'")] == ["force"]
        w.hikyaku("destinations", "resume", "crm", *WHY)
        w.arrived_at("crm", 3)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
