#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dead letters from the command line, with a real relay: look, repair, send again, settle; masks and the audit's chain.
Speaks TAP.

Usage: dead.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import base64
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import Answer, BINARY, POSTGRES, World, clean_environment, run_tests, sqlite_only, until

TESTS = []
OK, FAILURE, USAGE, TEMPORARY = 0, 1, 2, 75
JQ = pathlib.Path(os.environ["BUILD_DIR"]) / "src/jq/hikyaku-jq" if "BUILD_DIR" in os.environ else None
WHY = ("--reason", "INC-1")


def test(function):
    TESTS.append(function)
    return function


class Office(World):
    """A world in which somebody sits at a terminal."""

    def __init__(self, *args, **sections):
        sections.setdefault("policies", {"once": {"preset": "standard", "max_attempts": 1, "breaker": "off"},
                                         "twice": {"preset": "standard", "max_attempts": 2, "breaker": "off",
                                                   "backoff": {"base": "10ms", "cap": "10ms"}, "jitter": "none"}})
        super().__init__(*args, **sections)

    def run(self, *args, code=OK, stdin="", env=None):
        done = subprocess.run([BINARY, "--config", str(self.config_path), *args], cwd=self.folder, text=True,
                              input=stdin, capture_output=True, timeout=120, check=False,
                              env={**clean_environment(), "HIKYAKU_ACTOR": "ann", "LC_ALL": "C.UTF-8", **(env or {})})
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
        return done.stdout if code in (OK,) else done.stdout + done.stderr

    def json(self, *args, **more):
        return json.loads(self.run(*args, "--json", **more))

    def letter(self, message_id, columns="status"):
        rows = self.sql(f"SELECT {columns} FROM dead_letters WHERE message_id = ?", message_id)
        assert len(rows) == 1, (message_id, rows)
        return rows[0]

    def letter_id(self, message_id):
        return str(self.letter(message_id, "id")[0])

    def becomes(self, message_id, status):
        until(lambda: self.letter(message_id)[0] == status, lambda: f"{status}, not {self.letter(message_id)}")

    def dies(self, *ids, status=422, destination="shop", **columns):
        """These messages are written and refused."""
        self.receiver.on(destination, status)
        for i in ids:
            self.insert(message_id=i, destination=destination, **columns)
        until(lambda: {r[0] for r in self.sql("SELECT message_id FROM dead_letters WHERE status = 'failed'")} >= set(ids),
              "all to be dead")

    def acts(self):
        return [a["act"] for a in self.json("audit", "list", "--oldest", "--limit", "1000")["items"]]

    def chain_is_whole(self):
        assert "the chain is whole" in self.run("audit", "verify")


# ---- the exercises ----

@test
def exercise_b_a_missing_field_is_dead_by_our_own_validation():
    with Office(validate=[{"event_type": "OrderCreated", "required": ["orderId"]}]) as w:
        w.daemon().ready()
        w.insert(message_id="poison", payload='{"order":1}')
        w.insert(message_id="fine", payload='{"orderId":1}')
        w.settled(dead=1, sent=1)
        shown = w.run("dead", "show", "poison")
        assert "VALIDATION_ERROR" in shown and "$.orderId: required field is missing" in shown, shown
        assert "never sent" in shown and "our pipeline broke" in shown
        assert w.receiver.arrived("poison") == []


@test
def exercise_c_requeue_is_pending_with_count_0_and_due_now():
    with Office({"shop": {"policy": "twice"}}) as w:
        daemon = w.daemon().ready()
        w.dies("m", status=503)
        assert w.letter("m", "attempts, reason_code") == (2, "RETRY_EXHAUSTED")
        daemon.stop()
        assert w.json("dead", "requeue", "m", *WHY)["changed"] == 1
        status, attempts, due = w.message("m")
        assert (status, attempts) == ("pending", 0) and due is not None
        assert w.letter("m", "status, requeued_at IS NOT NULL, requeues") in [("retrying", 1, 1), ("retrying", True, 1)]
        again = w.run("dead", "requeue", "m", *WHY)
        assert "on its way already" in again
        w.receiver.on("shop", 200)
        w.daemon("second").ready()
        w.becomes("m", "resolved")
        w.settled(sent=1)
        assert w.receiver.accepted() == {"m": 1}, "asked twice, sent once, under the same id"
        assert [r.headers["idempotency-key"] for r in w.receiver.arrived()] == ['"m"'] * 3
        assert w.acts() == ["requeue"]
        w.chain_is_whole()


@test
def exercises_1_to_3_poison_reasons_and_a_replaced_payload():
    with Office({"shop": {}, "once": {"policy": "once"}},
                validate=[{"event_type": "Order*", "required": ["id: integer"]}]) as w:
        w.daemon().ready()
        w.dies("broken", payload="{", destination="shop")
        w.dies("typed", payload='{"id":"1"}', destination="shop")
        w.dies("refused", payload='{"id":1}', destination="shop")
        w.dies("down", payload='{"id":1}', status=503, destination="once")
        w.dies("nowhere", payload='{"id":1}', destination="nowhere")
        assert w.letters() == {"broken": "VALIDATION_ERROR", "typed": "SCHEMA_MISMATCH", "refused": "HTTP_422",
                               "down": "HTTP_503", "nowhere": "UNKNOWN_DESTINATION"}
        w.receiver.on("shop", 200)
        out = w.run("dead", "edit", "broken", "--payload", '{"id": 7}', "--reason", "as the customer meant it")
        assert '+{"id": 7}' in out or '+  "id": 7' in out, out
        w.run("dead", "requeue", "broken", *WHY)
        w.becomes("broken", "resolved")
        requeued_as, version, requeued_at = w.letter("broken", "requeued_as, payload_version, requeued_at")
        assert requeued_as and version == 2 and requeued_at, "an edited letter goes out under a new id"
        sent = [r for r in w.receiver.arrived() if r.id == requeued_as]
        assert [r.body for r in sent] == [b'{"id": 7}']
        shown = w.run("dead", "show", "broken", "--payload-version", "1")
        assert "version 1" in shown and "\n{\n" in shown, shown
        w.chain_is_whole()


@test
def an_unknown_id_is_named_and_the_known_ones_are_done():
    with Office() as w:
        w.daemon().ready()
        w.dies("a", "b")
        a, b = w.letter_id("a"), w.letter_id("b")
        for verb, done in (("discard", "discarded; restore brings it back"), ("restore", "open again"), ("resolve", "resolved")):
            for ids in ([a, "987654", "nope"], ["nope", "987654", a]):
                out = w.run("dead", verb, *ids, *WHY, code=FAILURE)
                said = done if ids[0] == a else out.split(f"{a}: ")[1].split("\n")[0]
                assert sorted(out.splitlines()[:3]) == sorted([
                    f"{a}: {said}", "987654: there is no such letter", "nope: there is no dead letter of this message"]), out
                assert ("already" in said) == (ids[0] != a) and "1 unchanged" in out or "1 changed" in out, out
                assert "0 refused, 2 missing" in out, out
        out = w.run("dead", "requeue", "nope", b, *WHY, code=FAILURE)
        assert out.startswith(f"nope: there is no dead letter of this message\n{b}: requeued as b\n1 changed, "), out
        out = w.run("dead", "discard", "nope", b, "987654", "--dry-run", code=FAILURE)
        assert "nope: there is no dead letter" in out and "987654: there is no such letter" in out, out
        assert w.letter("b")[0] != "discarded"


# ---- looking ----

@test
def list_groups_stats_and_export_agree():
    with Office({"shop": {}, "bank": {}}) as w:
        w.daemon().ready()
        w.dies(*[f"a-{i}" for i in range(7)], payload='{"customer":{"id":42},"n":1}')
        w.dies("b-1", "b-2", status=400, destination="bank", event_type="PaymentMade", payload='{"customer":{"id":43}}')
        groups = w.json("dead", "groups")
        assert [(g["letters"], g["destination"], g["reason_code"], g["fault"]) for g in groups["items"]] == [
            (7, "shop", "HTTP_422", "destination"), (2, "bank", "HTTP_400", "destination")]
        assert len(w.json("dead", "list", "--group", groups["items"][1]["group"])["items"]) == 2
        assert w.run("dead", "groups").endswith("\n9 letters in 2 groups\n")
        assert w.run("dead", "groups", "--filter", "id:a-3").endswith("\n1 letter in 1 group\n")
        for terms, n in (("reason:HTTP_422", 7), ("type:Payment*", 2), ("payload.customer.id:42", 7), ("payload.customer.id:4", 0),
                         ("destination:bank text:paymentmade", 2), ("status:resolved", 0), ("newer:1h", 9), ("older:1h", 0),
                         ("class:permanent", 9), ("id:a-3", 1)):
            found = w.json("dead", "list", "--filter", terms)
            assert len(found["items"]) == n and found["next"] is None, (terms, found)
        first = w.json("dead", "list", "--limit", "4")
        rest = w.json("dead", "list", "--limit", "100", "--after", first["next"])
        ids = [int(i["id"]) for i in first["items"] + rest["items"]]
        assert len(ids) == 9 and ids == sorted(ids, reverse=True) and rest["next"] is None
        exported = [json.loads(line) for line in w.run("dead", "export").splitlines()]
        assert [int(e["id"]) for e in exported] == sorted(ids) and exported[0]["payload"] == '{"customer":{"id":42},"n":1}'
        stats = w.json("dead", "stats")
        assert (stats["total"], stats["failed"]) == (9, 9) and stats["days"][-1]["letters"] == 9
        assert {r["name"]: r["letters"] for r in stats["reasons"]} == {"HTTP_422": 7, "HTTP_400": 2}
        assert stats["oldest"][0]["message_id"].startswith("a-") and stats["requeued"]["success_rate"] is None
        assert "by reason" in w.run("dead", "stats")
        part = w.json("dead", "list", "--filter", "key:nobody", "--scan", "4")
        assert part["items"] == [] and part["looked"] == 4 and part["next"] == str(ids[3]) and first["looked"] is None, part
        assert f"stopped after 4 letters; continue with --after {ids[3]} " in w.run("dead", "list", "--filter", "key:nobody", "--scan", "4")
        end = w.json("dead", "list", "--filter", "key:nobody", "--scan", "9", "--after", str(ids[3]))
        assert (end["items"], end["looked"], end["next"]) == ([], None, None), end
        assert (groups["letters"], groups["partial"], groups["looked"], groups["about"], groups["next"]) == (9, False, None, None, None), groups
        about = 4 * (ids[0] - ids[8] + 1) // (ids[0] - ids[3] + 1)  # 9, if no id was left out
        few = w.json("dead", "groups", "--scan", "4", "--hours")
        assert (few["letters"], few["partial"], few["looked"], few["about"], few["next"]) == (4, True, 4, about, str(ids[3])), few
        assert [(g["letters"], sum(g["hours"])) for g in few["items"]] == [(2, 2), (2, 2)], few
        said = w.run("dead", "groups", "--scan", "4")
        assert f"counted: only the 4 letters that were looked at, newest first; about {about} match\n" in said, said
        assert f"\ncontinue with --after {ids[3]} (--scan N counts more at once)\n" in said, said
        others = w.json("dead", "groups", "--scan", "5", "--after", few["next"])
        assert others["letters"] == 5 and not others["partial"] and others["next"] is None, others
        none = w.run("dead", "groups", "--filter", "key:nobody", "--scan", "4")
        assert "counted: only the 4 letters that were looked at, newest first\n" in none and "about" not in none, none
        bad = w.run("dead", "list", "--filter", "reason:HTTP_422 nonsense:1", code=USAGE)
        assert "column" in bad and "nonsense" in bad, bad


@test
def what_the_receiver_says_is_seen_and_makes_the_groups():
    def answer(request):
        field = "price" if request.id.endswith("price") else "currency"
        return Answer(422, {"Content-Type": "application/json"}, body=json.dumps(
            {"request_id": f"{hash(request.id):x}", "message": f"field '{field}' is missing in order {len(request.id)}17"}).encode())
    with Office({"shop": {}, "quiet": {}}) as w:
        daemon = w.daemon().ready()
        w.receiver.on("shop", answer)
        w.receiver.on("quiet", 422)
        for i in [f"m{'x' * n}" for n in range(6)] + ["a-price", "b--price"]:
            w.insert(message_id=i, destination="shop")
        w.insert(message_id="q", destination="quiet")
        w.settled(dead=9)
        said = "HTTP 422: field 'currency' is missing in order 117"
        assert w.letter("m", "error_message") == (said,) and w.letter("q", "error_message") == ("the answer was HTTP 422",)
        assert w.sql("SELECT error FROM outbox_attempts WHERE message_id = 'm'") == [(said,)]
        assert said in w.run("dead", "show", "m").split("payload")[0] and said in w.run("dead", "list") and said in w.run("messages", "list")
        assert len(w.json("dead", "list", "--text", "'price' is missing")["items"]) == 2
        assert any(f'error="{said}"' in line for line in daemon.log().splitlines() if "dead letter" in line), daemon.log()
        groups = w.json("dead", "groups")["items"]
        assert [(g["letters"], g["example_error"].split(" in ")[0]) for g in groups] == [
            (6, "HTTP 422: field 'currency' is missing"), (2, "HTTP 422: field 'price' is missing"), (1, "the answer was HTTP 422")], groups
        assert "field 'price' is missing" in w.run("dead", "groups")
        # by hand the letter stays in its group
        w.run("dead", "send", "a-price", *WHY, code=FAILURE)
        assert [g["letters"] for g in w.json("dead", "groups")["items"]] == [6, 2, 1]


@test
def show_answers_in_the_order_of_questions_and_as_curl():
    with Office() as w:
        w.receiver.on("shop", lambda r: Answer(422, {"X-Why": "no such sku"}))
        w.daemon().ready()
        w.insert(message_id="m", payload='{"it\'s":"quoted"}', correlation_id="corr-9", headers='{"X-Tenant":"t1"}')
        until(lambda: w.letters(), "it to die")
        shown = w.run("dead", "show", "m")
        places = [shown.index(word) for word in ("HTTP_422", "last error", "attempts", "last attempt", "payload", "corr-9",
                                                 "attempt 1 of life 1", "X-Why")]
        assert places == sorted(places), shown
        full = w.json("dead", "show", w.letter_id("m"))
        assert full["payload"] == '{"it\'s":"quoted"}' and full["attempts_made"][0]["status"] == 422
        assert "no such sku" in full["attempts_made"][0]["response_headers"]
        w.receiver.on("shop", 200)
        curl = w.run("dead", "show", "m", "--curl")
        done = subprocess.run(["sh", "-c", re.sub(r"\bcurl\b", "curl --noproxy '*'", curl)], capture_output=True, text=True, check=False,
                              timeout=120)
        if done.returncode == 127:
            return  # curl is not on this machine
        assert done.returncode == 0, (curl, done)
        last = w.receiver.arrived()[-1]
        assert last.body == b'{"it\'s":"quoted"}' and last.headers["x-tenant"] == "t1" and last.id == "m"


@test
def unknown_letters_and_ambiguous_messages_are_said():
    with Office("ab", routes=[{"event_type": "*", "destination": ["a", "b"]}]) as w:
        for name in "ab":
            w.receiver.on(name, 400)
        w.daemon().ready()
        w.insert(destination="", message_id="twice")
        until(lambda: len(w.sql("SELECT 1 FROM dead_letters")) == 2, "both to die")
        assert "several letters" in w.run("dead", "show", "twice", code=USAGE)
        assert w.json("dead", "show", "twice", "--destination", "b")["destination"] == "b"
        assert "no dead letter" in w.run("dead", "show", "nobody", code=FAILURE)
        assert "no such letter" in w.run("dead", "discard", "999999", *WHY, code=FAILURE)
        assert "a reason is needed" in w.run("dead", "discard", "1", code=USAGE)
        assert "say which" in w.run("dead", "requeue", *WHY, code=USAGE)


@test
def what_was_not_meant_changes_nothing():
    with Office() as w:
        w.daemon().ready()
        w.dies("m", "n")
        i = w.letter_id("m")
        for verb in ("requeue", "discard", "resolve", "restore"):
            assert "would be" in w.run("dead", verb, i, "--dry-run")
            assert w.json("dead", verb, "--filter", "id:m", "--dry-run")["dry_run"] is True
        assert "no such letter" in w.run("dead", "discard", i, "999999", "--dry-run", code=FAILURE)
        assert "not both" in w.run("dead", "discard", i, "--reason-code", "HTTP_500", *WHY, code=USAGE)
        assert "no dead letter" in w.run("dead", "discard", "nobody", *WHY, code=FAILURE)
        for blank in ("", "  "):
            assert "say which" in w.run("dead", "discard", "--filter", blank, "--yes", *WHY, code=USAGE)
            assert "say which" in w.run("redrive", "start", "--filter", blank, "--yes", *WHY, code=USAGE)
        assert w.json("dead", "send", i, "--dry-run")["dry_run"] is True
        assert w.json("dead", "edit", i, "--payload", "{}", *WHY)["changed"] is False
        assert w.letter("m")[0] == w.letter("n")[0] == "failed" and w.acts() == []
        w.run("dead", "discard", "n", *WHY)
        assert "open already" in w.run("dead", "restore", "--filter", "status:failed", "--yes", *WHY)
        assert w.letter("n")[0] == "discarded", "who asks for open ones does not mean discarded ones"


@test
def curl_reads_no_file_and_shows_no_control_character():
    with Office() as w:
        w.daemon().ready()
        w.dies("file", payload="@/etc/passwd")
        w.dies("bell", payload="\x1b]0;x\x07 it's \u202e")
        assert "--data-raw '@/etc/passwd'" in w.run("dead", "show", "file", "--curl")
        curl = w.run("dead", "show", "bell", "--curl")
        assert not set("\x1b\x07\u202e") & set(curl) and r"--data-raw $'\033]0;x\007 it\'s \342\200\256'" in curl, curl


# ---- settling ----

@test
def discard_restore_resolve_and_notes_keep_their_record():
    with Office() as w:
        w.daemon().ready()
        w.dies("m", "n", "o")
        w.run("dead", "discard", "m", "--reason", "test data")
        assert w.letter("m", "status, resolution")[0] == "discarded"
        assert "discarded already" in w.run("dead", "discard", "m", *WHY)
        assert "discarded" in w.run("dead", "requeue", "m", *WHY, code=FAILURE)
        w.run("dead", "restore", "m", "--reason", "it was not")
        assert w.letter("m")[0] == "failed"
        w.run("dead", "note", "m", "ask billing first")
        w.run("dead", "resolve", "m", "--reason", "refunded by hand")
        assert w.letter("m", "status, resolution") == ("resolved", "ann: refunded by hand")
        trail = w.json("dead", "show", w.letter_id("m"))["acts"]
        assert [(a["act"], a["actor"], a["reason"]) for a in trail] == [
            ("discard", "ann", "test data"), ("restore", "ann", "it was not"), ("note", "ann", "ask billing first"),
            ("resolve", "ann", "refunded by hand")]
        assert "--yes" in w.run("dead", "discard", "--reason-code", "HTTP_422", *WHY, code=USAGE)
        assert "2 letters would be" in w.run("dead", "discard", "--reason-code", "HTTP_422", "--dry-run")
        done = w.json("dead", "discard", "--reason-code", "HTTP_422", "--yes", *WHY)
        assert done["changed"] == 2 and w.statuses() == {"dead": 2, "sent": 1}
        assert w.json("dead", "restore", "--filter", "type:*", "--yes", *WHY)["changed"] == 2
        w.chain_is_whole()


@test
def a_dead_head_lets_its_key_go_on_when_it_is_rescued():
    with Office({"shop": {"order": "key", "on_dead": "block", "policy": "once"}}) as w:
        w.daemon().ready()
        w.receiver.on("shop", lambda r: 422 if r.id.startswith("head") and r.n == 1 else 200)
        for key in ("k1", "k2"):
            w.insert(message_id=f"head-{key}", message_key=key)
            for i in range(3):
                w.insert(message_id=f"{key}-{i}", message_key=key)
        until(lambda: w.statuses() == {"dead": 2, "pending": 6}, lambda: w.statuses())
        assert w.json("dead", "show", w.letter_id("head-k1"))["blocked"] == 3
        w.run("dead", "requeue", "head-k1", *WHY)
        until(lambda: w.statuses() == {"dead": 1, "pending": 3, "sent": 4}, lambda: w.statuses())
        w.run("dead", "discard", "head-k2", *WHY)
        until(lambda: w.statuses() == {"dead": 1, "sent": 7}, lambda: w.statuses())
        order = [r.id for r in w.receiver.arrived() if r.status == 200]
        assert [i for i in order if "k1" in i] == ["head-k1", "k1-0", "k1-1", "k1-2"], order
        assert [i for i in order if "k2" in i] == ["k2-0", "k2-1", "k2-2"], order


# ---- repairing ----

@test
def a_destination_that_nobody_knows_whatever_its_name_lets_no_message_hang():
    with Office() as w:
        w.daemon().ready()
        names = ["x" * 300, "y" * 5000, "gone"]
        for name in names:
            w.dies(name[:1], destination=name)
        w.run("dead", "requeue", "--filter", "reason:UNKNOWN_DESTINATION", "--yes", *WHY)
        until(lambda: w.sql("SELECT count(*) FROM dead_letters WHERE status = 'failed' AND life = 2") == [(len(names),)],
              "them to die again")


@test
def edit_checks_keeps_versions_and_loses_no_race():
    with Office(validate=[{"event_type": "*", "required": ["id"]}]) as w:
        w.daemon().ready()
        w.dies("m", payload='{"id":1}')
        i = w.letter_id("m")
        assert "not valid" in w.run("dead", "edit", i, "--payload", "{}", *WHY, code=FAILURE)
        assert w.letter("m", "payload_version") == (1,)
        script = w.path("editor.sh")
        script.write_text("#!/bin/sh\nprintf '{\"id\":2}\\n' > \"$1\"\n", encoding="utf-8")
        script.chmod(0o700)
        out = w.run("dead", "edit", i, *WHY, env={"EDITOR": str(script)})
        assert "version 2" in out
        assert w.letter("m", "payload, payload_version") == ('{"id":2}', 2), "an editor's last newline is not the payload's"
        assert "nothing was changed" in w.run("dead", "edit", i, "--payload", '{"id":2}', *WHY)
        assert w.sql("SELECT version, payload FROM dead_letter_versions") == [(1, '{"id":1}')]
        # somebody else settles it while the editor is open
        script.write_text(f"#!/bin/sh\nprintf '{{\"id\":3}}' > \"$1\"\n'{BINARY}' --config '{w.config_path}' dead discard {i} "
                          "--reason x >/dev/null\n", encoding="utf-8")
        assert "discarded" in w.run("dead", "edit", i, *WHY, code=FAILURE, env={"EDITOR": str(script)})
        assert w.letter("m", "payload, status") == ('{"id":2}', "discarded")
        acts = w.json("audit", "list", "--letter", i, "--oldest")["items"]
        assert [a["act"] for a in acts] == ["edit", "discard"] and acts[0]["before"] and acts[0]["after"] != acts[0]["before"]
        w.chain_is_whole()


@test
def fix_repairs_many_and_says_what_it_cannot():
    needs_jq()
    with Office(validate=[{"event_type": "Order*", "max_size": "100"}]) as w:
        w.daemon().ready()
        w.dies(*[f"m-{i}" for i in range(5)], payload='{"qty":"7","z":1,"a":1.50}')
        w.dies("big", payload='{"qty":"7","serial":9007199254740993}')
        w.dies("half", payload='{"qty":"7","name":"x\\udc00"}')
        w.dies("text", payload="no json", event_type="Other")
        w.dies("done", payload='{"qty":7}')
        program = "if .qty|type == \"string\" then .qty |= tonumber else . end"
        out = w.run("dead", "fix", "--newer", "1h", "--jq", program, "--dry-run", code=FAILURE)
        assert "5 would be changed, 1 unchanged, 3 failed, of 9" in out and '-  "qty": "7"' in out, out
        assert "round" in out and "surrogate" in out and "not JSON" in out, out
        assert w.sql("SELECT count(*) FROM dead_letter_versions") == [(0,)]
        for number in ("9007199254740993", "-123456789012345678901"):
            assert "beyond 2^53" in w.run("dead", "fix", "--filter", "id:done", "--jq", f".qty = {number}", "--dry-run", code=FAILURE)
        assert "1 would be" in w.run("dead", "fix", "--filter", "id:done", "--jq", ".qty = 4111999988887777 + 0.5", "--dry-run")
        assert "syntax error" in w.run("dead", "fix", "--newer", "1h", "--jq", ".a |", "--yes", *WHY, code=USAGE)
        out = w.run("dead", "fix", "--text", "qty", "--jq", program, "--yes", *WHY, code=FAILURE)
        assert "5 changed" in out, out
        fixed = w.letter("m-0", "payload, payload_version")
        assert json.loads(fixed[0]) == {"qty": 7, "z": 1, "a": 1.5} and fixed[1] == 2
        assert w.letter("big", "payload") == ('{"qty":"7","serial":9007199254740993}',)
        assert w.letter("half", "payload") == ('{"qty":"7","name":"x\\udc00"}',)
        w.receiver.on("shop", 200)
        assert w.json("dead", "requeue", "--filter", "id:m-0", "--yes", *WHY)["changed"] == 1
        w.becomes("m-0", "resolved")
        assert json.loads(w.receiver.arrived()[-1].body)["qty"] == 7
        w.chain_is_whole()


def needs_jq():
    if JQ is not None and not JQ.exists():
        from support import Skip
        raise Skip("this build has no jq helper (libjq, libseccomp)")


def timed_out(**sections):
    """An office whose receiver never answers: what is sent may have arrived."""
    return Office({"shop": {"policy": "once"}},
                  policies={"once": {"preset": "standard", "max_attempts": 1, "timeout": "3s", "breaker": "off"}}, **sections)


@test
def what_says_the_same_keeps_its_bytes_and_its_id():
    needs_jq()
    with timed_out() as w:
        w.daemon().ready()
        w.receiver.on("shop", Answer(200, hang=True))
        payload = '{ "b": 1.50,  "a": "\\u00e9" }'
        for i in ("fixed", "edited", "changed"):
            w.insert(message_id=i, payload=payload)
        until(lambda: len(w.letters()) == 3, lambda: w.letters())
        for program in (".", "{a, b}", ".b |= tonumber"):
            out = w.json("dead", "fix", "--filter", "id:fixed", "--jq", program, "--yes", *WHY)
            assert (out["changed"], out["unchanged"], out["may_have_arrived"]) == (0, 1, 0), (program, out)
        assert "same values" in w.run("dead", "edit", "edited", "--payload", '{"a":"é","b":1.5}', *WHY)
        assert w.json("dead", "edit", "edited", "--payload", '{"a":"é","b":1.5}', *WHY)["changed"] is False
        for i in ("fixed", "edited"):
            assert w.letter(i, "payload, payload_version") == (payload, 1)
        preview = w.json("dead", "fix", "--filter", "type:*", "--jq", ".b = 2", "--dry-run")
        assert (preview["changed"], preview["may_have_arrived"]) == (3, 3), preview
        assert "3 of the letters to change may have arrived" in w.run("dead", "fix", "--filter", "type:*", "--jq", ".b = 2", "--dry-run")
        done = w.json("dead", "fix", "--filter", "id:changed", "--jq", ".b = 2", "--yes", *WHY)
        assert (done["changed"], done["may_have_arrived"]) == (1, 1), done
        groups = w.json("dead", "groups")
        assert groups["may_have_arrived"] == sum(g["may_have_arrived"] for g in groups["items"]) == 3, groups
        assert "3 may have arrived" in w.run("dead", "groups")
        plan = w.json("redrive", "plan")
        assert plan["may_have_arrived"] == sum(g["may_have_arrived"] for g in plan["groups"]) == 3, plan
        assert "3 of these letters may have arrived" in w.run("redrive", "plan")
        assert w.json("dead", "requeue", "--filter", "type:*", "--dry-run")["may_have_arrived"] == 3
        assert "would be requeued, 1 may have arrived" in w.run("dead", "requeue", "fixed", "--dry-run")
        w.receiver.on("shop", 200)
        w.run("dead", "requeue", "--filter", "type:*", "--yes", *WHY)
        for i in ("fixed", "edited", "changed"):
            w.becomes(i, "resolved")
        last = {r.id: r.body.decode() for r in w.receiver.arrived() if r.status == 200}
        assert last["fixed"] == last["edited"] == payload, last
        assert "changed" not in last and w.letter("changed", "requeued_as")[0] in last
        # who cares about bytes may say so
        w.dies("bytes", payload=payload)
        w.run("dead", "edit", "bytes", "--payload", '{"a":"é","b":1.5}', "--yes", *WHY)
        assert w.letter("bytes", "payload_version") == (2,)


@test
def a_name_that_stands_twice_is_not_dropped_by_jq():
    needs_jq()
    with Office() as w:
        w.daemon().ready()
        twice = '{"items":[{"sku":"a","sku":"b"}],"n":1}'
        w.dies("twice", payload=twice)
        out = w.run("dead", "fix", "--filter", "type:*", "--jq", ".n = 2", "--yes", *WHY, code=FAILURE)
        assert "same name twice" in out and "use dead edit" in out, out
        assert w.letter("twice", "payload, payload_version") == (twice, 1)
        w.run("dead", "edit", "twice", "--payload", twice.replace("1", "2"), *WHY)
        assert w.letter("twice", "payload_version") == (2,)


@test
def a_dry_run_looks_at_states():
    with Office() as w:
        w.daemon().ready()
        w.dies("a", "b", "c", "d")
        w.run("dead", "discard", "a", "b", *WHY)
        w.run("dead", "resolve", "c", *WHY)
        for verb, status, fit, others in (("requeue", "any", 1, 3), ("requeue", "discarded", 0, 2), ("discard", "any", 1, 3),
                                          ("restore", "any", 2, 2), ("resolve", "failed", 1, 0)):
            asked = ("dead", verb, "--status", status)
            seen = w.json(*asked, "--dry-run")
            assert (seen["letters"]["n"], seen["other_states"]["n"]) == (fit, others), (asked, seen)
            text = w.run(*asked, "--dry-run")
            assert text.startswith(f"{fit} letter{'s' * (fit != 1)} would be") and ("does not allow it" in text) == (others > 0), text
        done = w.json("dead", "requeue", "--status", "discarded", "--yes", *WHY, code=FAILURE)
        assert (done["changed"], done["refused"]) == (0, 2), done


@test
def masks_keep_the_editor_shut_only_where_they_hide_something():
    with Office(masks=[{"event_type": "*", "paths": ["card"], "headers": ["x-api-key"]}]) as w:
        w.daemon().ready()
        w.dies("plain", payload='{"n":1}')
        w.dies("masked", payload='{"n":1,"card":4111}')
        script = w.path("editor.sh")
        script.write_text("#!/bin/sh\nprintf '{\"n\":2}' > \"$1\"\n", encoding="utf-8")
        script.chmod(0o700)
        w.run("dead", "edit", "plain", *WHY, env={"EDITOR": str(script)})
        assert w.letter("plain", "payload") == ('{"n":2}',)
        assert "masked fields" in w.run("dead", "edit", "masked", *WHY, code=FAILURE, env={"EDITOR": str(script)})


@test
def what_jq_quotes_in_part_shows_nothing_of_a_masked_value():
    with Office(masks=[{"paths": ["[*]", "card"]}]) as w:
        w.daemon().ready()
        w.dies("array", payload='["4111111111111111"]')
        w.dies("object", payload='{"card":"4111111111111111"}')
        for program in (". + 1", "{c:.card?} + 1", "[.] + {}"):
            for more in ((), ("--json",)):
                said = w.run("dead", "fix", "--status", "failed", "--jq", program, "--dry-run", *more, code=FAILURE)
                assert "4111" not in said and "***" in said, said


@test
def an_edited_letter_under_the_same_id_is_refused_when_it_may_have_arrived():
    with Office({"shop": {"policy": "once"}},
                policies={"once": {"preset": "standard", "max_attempts": 1, "timeout": "3s", "breaker": "off"}}) as w:
        w.daemon().ready()
        w.receiver.on("shop", Answer(200, hang=True))
        w.insert(message_id="m", payload='{"a":1}')
        until(lambda: w.letters() == {"m": "TIMEOUT"}, lambda: w.letters())
        assert w.letter("m", "possibly_delivered") in [(1,), (True,)]
        w.receiver.on("shop", 200)
        w.run("dead", "edit", "m", "--payload", '{"a":2}', *WHY)
        assert "drop it as a repeat" in w.run("dead", "requeue", "m", "--same-id", *WHY, code=FAILURE)
        assert "drop it as a repeat" in w.run("dead", "send", "m", *WHY, code=FAILURE)
        assert w.letter("m")[0] == "failed"
        w.run("dead", "requeue", "m", "--same-id", "--yes", *WHY)
        w.becomes("m", "resolved")
        assert [r.id for r in w.receiver.arrived()] == ["m", "m"]


@test
def a_payload_in_base64_is_shown_edited_and_sent_as_what_it_says():
    for encoding in ("base64", "BASE64"):
        with Office(masks=[{"paths": ["card"]}]) as w:
            daemon = w.daemon().ready()
            w.dies("m", payload=base64.b64encode(b'{"card":"4111","n":1}').decode(), encoding=encoding)
            daemon.stop()
            assert w.json("dead", "show", "m")["payload"] == '{"card":"***","n":1}'
            assert len(w.json("dead", "list", "--filter", "payload.n:1")["items"]) == 1
            w.run("dead", "edit", "m", "--payload", '{"card":"4111","n":2}', *WHY)
            stored = w.letter("m", "payload")[0]
            assert base64.b64decode(stored) == b'{"card":"4111","n":2}', stored
            if JQ is None or JQ.exists():
                w.run("dead", "fix", "--filter", "id:m", "--jq", ".n = 3", "--yes", *WHY)
            w.receiver.on("shop", 200)
            w.run("dead", "send", "m", *WHY)
            assert json.loads(w.receiver.arrived()[-1].body)["card"] == "4111", w.receiver.arrived()[-1].body


# ---- by hand ----

@test
def a_send_is_judged_by_the_policy_that_the_letter_names():
    lenient = {"preset": "standard", "max_attempts": 1, "breaker": "off", "classify": [{"match": "409", "class": "success"}]}
    with Office({"shop": {"policy": "once"}}, policies={"once": {"preset": "standard", "max_attempts": 1, "breaker": "off"},
                                                        "lenient": lenient}) as w:
        daemon = w.daemon().ready()
        w.dies("own", policy="lenient")
        w.dies("other")
        w.dies("gone", policy="no-such-policy")
        daemon.stop()
        w.receiver.on("shop", 409)
        assert w.json("dead", "send", "own", *WHY)["ok"] is True
        assert w.letter("own") == ("resolved",)
        w.run("dead", "send", "other", *WHY, code=FAILURE)
        assert "no-such-policy" in w.run("dead", "send", "gone", *WHY, code=FAILURE)
        assert w.letter("gone") == ("failed",) and w.receiver.arrived("gone") == []



@test
def send_shows_the_answer_records_it_and_never_rearms():
    with Office() as w:
        daemon = w.daemon().ready()
        w.dies("m", payload='{"a":1}')
        daemon.stop()
        before = w.letter("m", "fingerprint, error_message")
        out = w.run("dead", "send", "m", *WHY, "--reveal", code=FAILURE)
        assert "422" in out and "permanent" in out, out
        assert w.acts().count("reveal") == 1, "the answer may show what is masked"
        assert w.letter("m", "status, life") == ("failed", 1)
        assert w.letter("m", "fingerprint, error_message") == before, "it has failed in the same way, and stays in its group"
        assert w.sql("SELECT count(*) FROM outbox_retry") == [(0,)], "never re-armed"
        w.receiver.on("shop", 201)
        done = w.json("dead", "send", "m", *WHY)
        assert done["ok"] and done["status"] == 201
        assert w.letter("m")[0] == "resolved" and w.statuses() == {"sent": 1}
        assert [a["status"] for a in w.json("dead", "show", w.letter_id("m"))["attempts_made"]][-2:] == [422, 201]
        assert "only an open one" in w.run("dead", "send", "m", *WHY, code=FAILURE)
        assert [r.id for r in w.receiver.arrived()] == ["m"] * 3
        w.chain_is_whole()


@test
def who_dies_while_sending_leaves_a_letter_that_only_a_person_settles():
    for point, arrived in (("send-begun", 1), ("send-answered", 2)):
        with Office({"shop": {"order": "key"}}) as w:
            daemon = w.daemon().ready()
            w.dies("m", message_key="k")
            w.insert(message_id="next", message_key="k")
            w.receiver.on("shop", 200)
            w.run("dead", "send", "m", *WHY, code=-9, env={"HIKYAKU_CRASH_AT": f"{point}:1"})
            assert w.letter("m", "status, sending_at IS NOT NULL") in [("retrying", 1), ("retrying", True)]
            assert len(w.receiver.arrived("m")) == arrived
            assert "with an unknown outcome" in w.run("dead", "send", "m", *WHY, code=FAILURE)
            assert "not known" in w.run("dead", "requeue", "m", *WHY, code=FAILURE)
            assert w.receiver.arrived("next") == [], "its key is held all the while"
            if point == "send-answered":
                w.run("dead", "resolve", "m", "--reason", "the receiver has it")
                assert w.letter("m")[0] == "resolved"
            else:
                w.run("dead", "restore", "m", "--reason", "the receiver has not")
                w.run("dead", "send", "m", *WHY)
            w.settled(sent=2)
            assert len(w.receiver.arrived("m")) == 2
            daemon.stop()
            w.chain_is_whole()


@test
def a_paused_destination_is_not_sent_to_by_hand_unless_forced():
    with Office() as w:
        daemon = w.daemon().ready()
        w.dies("m")
        daemon.stop()
        w.receiver.on("shop", 200)
        w.run("destinations", "pause", "shop", *WHY)
        for more in ((), ("--yes",), ("--dry-run",)):
            assert "is paused" in w.run("dead", "send", "m", *WHY, *more, code=FAILURE)
        assert len(w.receiver.arrived("m")) == 1 and w.letter("m") == ("failed",)
        w.run("dead", "send", "m", *WHY, "--force")
        assert len(w.receiver.arrived("m")) == 2 and w.letter("m") == ("resolved",)


@test
def what_is_sent_by_hand_is_what_is_there_when_it_is_sent():
    with Office() as w:
        daemon = w.daemon().ready()
        w.dies("m", payload='{"v":1}')
        daemon.stop()
        w.receiver.on("shop", 200)
        db = w.connect()
        db.execute("BEGIN IMMEDIATE")  # whoever begins to send waits for us, and has looked at the letter by then
        db.execute("UPDATE dead_letters SET payload = '{\"v\":2}', payload_version = 2 WHERE message_id = 'm'")
        process = w.child(BINARY, "--config", str(w.config_path), "dead", "send", "m", *WHY, env=clean_environment(),
                          stdout=subprocess.DEVNULL)
        if POSTGRES:
            until(lambda: w.sql("SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0") == [(1,)],
                  "it to wait")
        else:
            time.sleep(1)  # nobody can tell; should it come later it finds the new payload at once
        db.execute("COMMIT")
        db.close()
        assert process.wait() == 0
        assert w.receiver.arrived("m")[-1].body == b'{"v":2}' and w.letter("m") == ("resolved",)


@test
def a_letter_is_known_by_the_id_that_it_was_requeued_under():
    with Office() as w:
        daemon = w.daemon().ready()
        w.dies("m")
        asked = w.json("dead", "requeue", "m", "--new-id", *WHY)["items"][0]
        new = w.letter("m", "requeued_as")[0]
        assert asked["message_id"] == new and new != "m"
        w.becomes("m", "failed")
        i = w.letter_id("m")
        assert w.json("dead", "show", new)["id"] == w.json("dead", "show", i)["id"]
        w.run("dead", "note", new, "seen")
        w.run("dead", "discard", new, *WHY)
        assert w.letter("m") == ("discarded",)
        w.run("dead", "restore", "id:" + new, *WHY)
        assert "there is no dead letter" in w.run("dead", "show", new[:-1], code=FAILURE)
        daemon.stop()


def peak_mb(world, *args):
    """The most memory that a command had."""
    with open(world.path("out"), "wb") as out:
        process = subprocess.Popen([BINARY, "--config", str(world.config_path), *args], stdout=out, cwd=world.folder,
                                   env={**clean_environment(), "ASAN_OPTIONS": "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, args
    return usage.ru_maxrss / 1024


@test
def an_export_of_large_payloads_takes_no_more_memory_for_more_of_them():
    with Office(masks=[{"paths": ["secret"]}]) as w:
        big = json.dumps({"secret": "canary", "text": "x" * (2 << 20)})
        columns = ("message_id, event_type, destination, reason_code, error_message, attempts, first_failed_at, last_failed_at, "
                   "created_at, status, payload")

        def add(n, event_type):
            for i in range(n):
                w.sql(f"INSERT INTO dead_letters ({columns}) VALUES (?, ?, 'shop', 'HTTP_422', 'no', 1, '2026-11-15T00:00:00.000Z', "
                      "'2026-11-15T00:00:00.000Z', '2026-11-15T00:00:00.000Z', 'failed', ?)", f"{event_type}-{i}", event_type, big)
        add(4, "Few")
        add(40, "Many")
        for command in (("dead", "export"), ("dead", "export", "--text", "xxxx"), ("dead", "list", "--limit", "1000")):
            few = peak_mb(w, *command, "--event-type", "Few")
            many = peak_mb(w, *command, "--event-type", "Many")
            print(f"# {' '.join(command)}: 4 letters of 2 MiB: {few:.0f} MB, 40: {many:.0f} MB")
            assert many < few * 1.3 + 10, (command, few, many)
            text = w.path("out").read_text()
            assert "canary" not in text
            assert len(text.splitlines()) >= 40


@test
@sqlite_only  # what is said does not depend on the store, and 64 MiB take their time
def a_payload_that_is_cut_is_said_to_be_with_its_length_and_where_the_whole_is():
    with Office() as w:
        w.sql("INSERT INTO dead_letters (message_id, event_type, destination, reason_code, attempts, first_failed_at, last_failed_at, "
              "created_at, status, payload) VALUES ('big', 'T', 'shop', 'PAYLOAD_TOO_LARGE', 0, '2026-11-15T00:00:00.000Z', "
              "'2026-11-15T00:00:00.000Z', '2026-11-15T00:00:00.000Z', 'failed', ?)", "x" * ((64 << 20) + 1))
        says = "cut: the payload has 67,108,865 bytes, and this command reads the first 67,108,864; for all of it: " \
               "SELECT payload FROM dead_letters WHERE id = 1"

        def ask(*args):
            return subprocess.run([BINARY, "--config", str(w.config_path), *args], cwd=w.folder, text=True, capture_output=True,
                                  timeout=300, check=False, env=clean_environment())
        done = ask("dead", "export")
        letter = json.loads(done.stdout)
        assert done.returncode == 1 and done.stderr == f"hikyaku: letter 1: {says}\n", (done.returncode, done.stderr)
        assert letter["payload_cut"] and letter["payload_bytes"] == 67108865 and len(letter["payload"]) == 64 << 20
        for command in (("dead", "show", "1"), ("messages", "show", "big", "--payload")):
            done = ask(*command)
            assert done.returncode == 0 and f"({says})" in done.stdout, (command, done.returncode, done.stderr)
        for command, what in ((("edit", "1", "--payload", "{}"), "edited"), (("send", "1"), "sent by hand")):
            done = ask("dead", *command, "--reason", "x", "--yes")
            assert done.returncode == 1, (command, done.returncode)
            assert f"letter 1 cannot be {what}: its payload has 67,108,865 bytes, and at most 67,108,864 can" in done.stderr, done.stderr
        w.sql("UPDATE dead_letters SET payload = '{}'")
        done = ask("dead", "export")
        assert done.returncode == 0 and not done.stderr and not json.loads(done.stdout)["payload_cut"]


# ---- masks ----

def raw(world, *args):
    """Both outputs, whatever the exit code."""
    done = subprocess.run([BINARY, "--config", str(world.config_path), *args], cwd=world.folder, text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=120, check=False, env=clean_environment())
    return done.stdout + done.stderr


CANARIES = {"email": "canary-mail@example.com", "card": "4111999988887777", "token": "canary-tok/en+1"}


@test
def what_is_masked_is_seen_nowhere_unless_revealed():
    masks = [{"event_type": "Order*", "paths": ["customer.email", "card", "token"], "headers": ["x-api-key"]}]
    with Office(masks=masks) as w:
        def echo(request):
            body = json.loads(request.body)
            return Answer(422, {"X-Echo": f"bad {body['customer']['email']} {body['card']} of {request.headers['x-api-key']}",
                                "X-Api-Key": "canary-header"}, body=answer_body(request, body))

        def answer_body(request, body):
            """What receivers write: the field in a sentence, the whole request as JSON in JSON, percent-encoded, and cut."""
            said = {"error": f"unknown address {body['customer']['email']}, card {body['card']}",
                    "request": request.body.decode(), "key": request.headers["x-api-key"], "customer": body["customer"],
                    "at": "/orders?token=" + urllib.parse.quote(body["token"], safe="")}
            text = json.dumps(said)
            return (text + " " * (4096 - len(text) - 12) + body["customer"]["email"]).encode()  # 4 KiB are kept
        w.receiver.on("shop", echo)
        daemon = w.daemon().ready()
        payload = json.dumps({"customer": {"email": CANARIES["email"], "id": 42}, "card": int(CANARIES["card"]),
                              "token": CANARIES["token"]})
        w.insert(message_id="m", payload=payload, headers='{"X-Api-Key":"canary-header"}')
        until(lambda: w.letters(), "it to die")
        i = w.letter_id("m")
        secrets = [*CANARIES.values(), "canary-header", "canary-tok%2Fen%2B1", "canary-mail"]
        assert "unknown address" in w.run("dead", "show", i, "--json"), "the answer's body is kept"
        said = "HTTP 422: unknown address ***, card ***"
        assert w.letter("m", "error_message") == (said,), "masked before it is stored"
        assert w.json("dead", "groups")["items"][0]["example_error"] == said
        seen = []
        for args in (("dead", "list"), ("dead", "list", "--json"), ("dead", "groups"), ("dead", "groups", "--json"), ("dead", "show", i),
                     ("dead", "show", i, "--json"), ("dead", "show", i, "--curl"), ("dead", "export"), ("dead", "stats"),
                     ("messages", "list"), ("messages", "list", "--json"), ("messages", "show", "m"),
                     ("messages", "show", "m", "--payload"), ("messages", "show", "m", "--payload", "--json"), ("status",),
                     ("messages", "attempts", "m"), ("messages", "attempts", "m", "--json"),
                     ("dead", "stats", "--json"), ("dead", "list", "--text", "unknown address"), ("redrive", "plan", "--json"),
                     ("audit", "list"), ("dead", "requeue", "--filter", "id:m", "--dry-run")):
            seen.append((args, w.run(*args)))
        seen.append(("send", w.run("dead", "send", i, *WHY, code=FAILURE)))
        seen.append(("edit", w.run("dead", "edit", i, "--payload", payload.replace("42", "43"), *WHY)))
        seen.append(("moved", w.run("dead", "edit", i, "--payload", payload[:-1] + ', "x": "%s"}' % CANARIES["email"], "--dry-run")))
        if JQ is None or JQ.exists():
            for program in (".x = .customer.email", ".x = [.customer, .card]", ".customer|tostring|error"):
                seen.append((program, raw(w, "dead", "fix", "--filter", "id:m", "--jq", program, "--dry-run")))
        # attempts were about what is an earlier payload now
        seen.append(("edit", w.run("dead", "edit", i, "--payload", '{"customer":{"email":"new@example.com","id":43}}', *WHY)))
        assert w.json("dead", "list")["items"][0]["error_message"] == said and said in w.run("dead", "groups"), "earlier payloads are looked at"
        for args in (("dead", "list"), ("dead", "list", "--json"), ("dead", "show", i), ("dead", "show", i, "--json"), ("dead", "export"),
                     ("dead", "show", i, "--payload-version", "1", "--json"), ("messages", "show", "m", "--json")):
            seen.append((args, w.run(*args)))
        assert "only stands for" in w.run("dead", "edit", i, "--payload", '{"card":"***"}', *WHY, code=FAILURE)
        seen.append(("no reveal", w.run("dead", "edit", i, *WHY, code=FAILURE, env={"EDITOR": "true"})))
        seen.append(("audit", w.run("audit", "list", "--json")))
        seen.append(("audit rows", str(w.sql("SELECT * FROM outbox_audit"))))
        seen.append(("log", daemon.log()))
        for what, text in seen:
            for secret in secrets:
                assert secret not in text, (what, secret, text)
        assert "***" in w.run("dead", "show", i) and '"id": 43' in w.run("dead", "show", i)
        assert "--reason" in w.run("dead", "show", i, "--reveal", code=USAGE)
        shown = w.run("dead", "show", i, "--reveal", "--reason", "customer asked")
        assert CANARIES["email"] in shown and CANARIES["card"] in shown
        assert w.acts().count("reveal") == 1
        assert "new@example.com" in w.run("dead", "edit", i, "--payload", "{}", "--dry-run", "--reveal", *WHY)
        assert w.acts().count("reveal") == 2, "the difference shows the older payload"
        w.chain_is_whole()


@test
def a_secret_that_the_receiver_repeats_is_not_kept():
    with Office({"shop": {"http": {"headers": {"Authorization": "Bearer canary-credential-1"}}}}) as w:
        w.receiver.on("shop", lambda r: Answer(422, {"X-Echo": f"not you, {r.headers['authorization']}!",
                                                     "X-Part": r.headers["authorization"].split()[1]}))
        daemon = w.daemon().ready()
        w.insert(message_id="m")
        until(lambda: w.letters(), "it to die")
        seen = [w.run("dead", "show", "m"), w.run("dead", "show", "m", "--json"), w.run("dead", "export"),
                w.run("messages", "show", "m", "--json"), w.run("messages", "attempts", "m", "--json"), w.run("dead", "send", "m", *WHY, code=FAILURE), daemon.log(),
                str(w.sql("SELECT * FROM outbox_attempts")), str(w.sql("SELECT * FROM dead_letters"))]
        assert "not you, ***" in seen[1], seen[1]
        for text in seen:
            assert "canary-credential-1" not in text, text


# ---- the record ----

@test
def who_changes_the_record_is_found_out():
    with Office() as w:
        daemon = w.daemon().ready()
        w.dies("m")
        daemon.stop()
        w.run("destinations", "pause", "shop", "--reason", "a")
        w.run("destinations", "resume", "shop", "--reason", "b")
        for k in range(4):
            w.run("dead", "note", "m", f"note {k}")
        w.chain_is_whole()
        db = w.connect()
        if POSTGRES:
            db.execute("ALTER TABLE outbox_audit DISABLE TRIGGER USER")
        else:
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'outbox_audit'").fetchall():
                db.execute(f"DROP TRIGGER {name}")
        ids = [r[0] for r in db.execute("SELECT id FROM outbox_audit ORDER BY id").fetchall()]
        db.execute("UPDATE outbox_audit SET reason = 'forged' WHERE id = ?", (ids[3],))
        assert f"broken at row {ids[3]}" in w.run("audit", "verify", code=FAILURE)
        db.execute("UPDATE outbox_audit SET reason = 'note 1' WHERE id = ?", (ids[3],))
        w.chain_is_whole()
        db.execute("DELETE FROM outbox_audit WHERE id = ?", (ids[5],))
        assert "missing at its end" in w.run("audit", "verify", code=FAILURE)
        db.execute("DELETE FROM outbox_audit WHERE id = ?", (ids[2],))
        assert f"broken at row {ids[3]}" in w.run("audit", "verify", code=FAILURE)
        db.close()


@test
def open_letters_are_deleted_only_when_asked_for_and_never_silently():
    with Office() as w:
        for dead in ("0s", "2s", "23h59m"):
            w.config["retention"] = {"dead": dead}
            w.write_config()
            assert "would delete open dead letters within a day" in w.run("config", "check", code=78)
        w.config["retention"] = {"dead": "0s", "purge_open": True}
        w.write_config()
        daemon = w.daemon().ready()
        w.receiver.on("shop", 422)
        for i in ("m", "n"):
            w.insert(message_id=i, destination="shop")
        until(lambda: sum(int(n) for n in re.findall(r'"open dead letters deleted" .*?letters=(\d+)', daemon.log())) == 2,
              daemon.log)
        assert w.sql("SELECT id FROM dead_letters") == []
        rows = [r[0] for r in w.sql("SELECT detail FROM outbox_audit WHERE act = 'purge-dead' AND actor = 'hikyaku'")]
        assert sum(json.loads(r)["letters"] for r in rows) == 2, rows
        w.chain_is_whole()


@test
def a_front_that_is_gone_is_told_and_accounted_for():
    def say(key, value):
        db.execute("UPDATE outbox_meta SET value = ? WHERE key = ?", (value, key))

    with Office() as w:
        daemon = w.daemon().ready()
        w.dies("m")
        daemon.stop()
        for k in range(4):
            w.run("dead", "note", "m", f"note {k}")
        db = w.connect()
        (head,), = db.execute("SELECT value FROM outbox_meta WHERE key = 'audit_head'").fetchall()
        rows = db.execute("SELECT id, hash FROM outbox_audit ORDER BY id").fetchall()
        if POSTGRES:  # by whoever may: it leaves a row
            db.execute("DELETE FROM outbox_audit WHERE id = ?", (rows[0][0],))
            assert "retention has deleted 1 rows before them" in w.run("audit", "verify")
            told = json.loads(w.run("audit", "verify", "--json"))
            assert told["ok"] and told["purged"] == 1 and told["purged_at"], told
            db.execute("ALTER TABLE outbox_audit DISABLE TRIGGER USER")
            (head,), = db.execute("SELECT value FROM outbox_meta WHERE key = 'audit_head'").fetchall()
        db.execute("DELETE FROM outbox_audit WHERE id <= ?", (rows[1][0],))
        say("audit_first_prev", rows[1][1])
        assert f"broken at row {rows[2][0]}: the rows before it are gone" in w.run("audit", "verify", code=FAILURE)
        say("audit_unwitnessed_prev", rows[1][1])  # before schema version 5 nothing was left
        w.chain_is_whole()
        db.execute("DELETE FROM outbox_audit")  # all of it, as retention of those versions could
        assert "missing at its end" in w.run("audit", "verify", code=FAILURE)
        say("audit_first_prev", head)
        say("audit_unwitnessed_prev", head)
        assert "0 rows, the chain is whole" in w.run("audit", "verify")
        db.close()


@test
def an_act_on_many_is_one_row_that_can_be_opened():
    needs_jq()
    with Office() as w:
        daemon = w.daemon().ready()
        w.dies(*[f"m-{i}" for i in range(12)], payload='{"qty":"7"}')
        daemon.stop()
        w.run("destinations", "pause", "shop", *WHY)
        program = '.qty |= tonumber'
        fixed = w.json("dead", "fix", "--reason-code", "HTTP_422", "--jq", program, "--yes", *WHY)
        assert fixed["changed"] == 12 and fixed["act_id"], fixed
        gone = w.json("dead", "discard", "--filter", "type:*", "--yes", "--reason", "wrong filter")
        rows = w.json("audit", "list", "--oldest")["items"]
        assert [(r["act"], r["letters"]) for r in rows] == [("pause", 0), ("fix", 12), ("discard", 12)], rows
        assert rows[1]["jq"] == program and "HTTP_422" in rows[1]["filter"] and rows[2]["filter"], rows
        assert "12 letters" in w.run("audit", "list")
        shown = w.json("audit", "show", fixed["act_id"], "--limit", "5")
        assert (shown["act"], shown["jq"], len(shown["items"])) == ("fix", program, 5) and shown["next"], shown
        assert shown["items"][0]["before"] != shown["items"][0]["after"]
        rest = w.json("audit", "show", fixed["act_id"], "--after", shown["next"])
        assert {i["message_id"] for i in shown["items"] + rest["items"]} == {f"m-{i}" for i in range(12)} and rest["next"] is None
        text = w.run("audit", "show", gone["act_id"])
        assert "wrong filter" in text and "m-11" in text and "12 letters" in text, text
        assert "no act" in w.run("audit", "show", "4711", code=FAILURE)
        acts = w.json("audit", "list", "--letter", w.letter_id("m-3"), "--oldest")["items"]
        assert [(a["act"], a["act_id"]) for a in acts] == [("fix", fixed["act_id"]), ("discard", gone["act_id"])], acts
        assert [a["act"] for a in w.json("dead", "show", w.letter_id("m-3"))["acts"]] == ["fix", "discard"]
        w.chain_is_whole()
        db = w.connect()
        db.execute("DELETE FROM outbox_audit_letters WHERE letter_id = ? AND audit_id = ?", (w.letter_id("m-3"), gone["act_id"]))
        broken = w.run("audit", "verify", code=FAILURE)
        assert f"broken at row {gone['act_id']}" in broken and "its list does not fit its digest" in broken, broken
        db.close()


@test
def a_discard_of_many_is_undone_and_nothing_else():
    with Office() as w:
        daemon = w.daemon().ready()
        w.dies(*[f"m-{i}" for i in range(7)])
        w.dies("other", status=400)
        w.run("dead", "discard", "m-6", "--reason", "by name, before")
        act = w.json("dead", "discard", "--reason-code", "HTTP_422", "--yes", "--reason", "wrong filter")["act_id"]
        later = w.json("dead", "discard", "--reason-code", "HTTP_400", "--yes", *WHY)["act_id"]
        w.run("dead", "restore", "m-0", *WHY)
        w.run("dead", "discard", "m-0", "--reason", "this one was right")
        asked = ("dead", "restore", "--act", act)
        assert "do not go with it" in w.run(*asked, "m-1", *WHY, code=USAGE)
        assert "default: discarded" in w.run("dead", "restore", "--help") and "default: failed" in w.run("dead", "discard", "--help")
        assert "5 letters would be open again" in w.run(*asked, "--dry-run")
        done = w.json(*asked, "--yes", *WHY)
        assert (done["changed"], done["overtaken"], done["refused"]) == (5, 1, 0), done
        assert {i: w.letter(i)[0] for i in ("m-0", "m-1", "m-5", "m-6", "other")} == {
            "m-0": "discarded", "m-1": "failed", "m-5": "failed", "m-6": "discarded", "other": "discarded"}
        again = w.json(*asked, "--yes", *WHY)
        assert (again["changed"], again["overtaken"]) == (0, 6), again
        assert "only a discard" in w.run("dead", "restore", "--act", done["act_id"], "--yes", *WHY, code=FAILURE)
        single = [a["id"] for a in w.json("audit", "list", "--oldest")["items"] if a["reason"] == "by name, before"][0]
        assert "one letter" in w.run("dead", "restore", "--act", single, "--yes", *WHY, code=FAILURE)
        assert w.json("dead", "restore", "--act", later, "--yes", *WHY)["changed"] == 1
        daemon.stop()
        w.chain_is_whole()


@test
def ctrl_c_tells_what_was_done():
    needs_jq()
    with Office() as w:
        columns = ("message_id, event_type, destination, reason_code, error_message, attempts, first_failed_at, last_failed_at, "
                   "created_at, status, payload")
        w.sql(f"INSERT INTO dead_letters ({columns}) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) "
              "SELECT 'm-' || i, 'T', 'shop', 'HTTP_422', 'no', 1, '2026-11-15T00:00:00.000Z', '2026-11-15T00:00:00.000Z', "
              "'2026-11-15T00:00:00.000Z', 'failed', '{\"n\":1}' FROM n")
        process = w.child(BINARY, "--config", str(w.config_path), "dead", "fix", "--event-type", "T", "--jq", ".n = 2", "--yes", *WHY,
                          env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        until(lambda: w.sql("SELECT count(*) FROM dead_letter_versions")[0][0] > 0, "the first page")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the helper, too
        said = process.communicate(timeout=60)[1]
        changed = w.sql("SELECT count(*) FROM dead_letters WHERE payload_version = 2")[0][0]
        if process.returncode != 0:  # else it was done before the signal came
            assert f"stopped after {changed} letters were changed" in said and "run the same command again" in said, (changed, said)
            assert 0 < changed < 1500
        done = w.json("dead", "fix", "--event-type", "T", "--jq", ".n = 2", "--yes", *WHY)
        assert (done["changed"], done["unchanged"]) == (1500 - changed, changed), done
        w.chain_is_whole()


@test
def the_record_cannot_be_updated_by_chance():
    with Office() as w:
        w.run("destinations", "pause", "shop", "--reason", "a")
        try:
            w.sql("UPDATE outbox_audit SET reason = 'b'")
        except Exception as error:  # each store has its own
            assert "append" in str(error).lower() or "audit" in str(error).lower(), error
        else:
            raise AssertionError("an UPDATE of the audit went through")


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
