#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hikyaku messages erase, dead erase: one person's data goes, the record that something was there stays, and the audit holds. Speaks TAP.

Usage: erase.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import json
import re
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from rest import WHY, Rest
from support import Answer, run_tests, until

ANN, BOB = "ann-7d21c0@example.com", "bob-7d21c0@example.com"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class People(Rest):
    """Letters, versions, attempts and cancelled messages of two people; nothing is sealed, so that all of it can be looked for."""

    def __init__(self, **more):
        super().__init__(mode="off", relay={"history": "all", "lease": "2s"}, **more)

    def fill(self, each=2):
        self.receiver.on("bad", lambda r: Answer(422, {"X-About": r.body.decode()}, body=b'{"message":"no: ' + r.body.hex().encode() + b'"}'))
        self.config["destinations"]["bad"] = self.destination("bad")
        self.write_config()
        relay = self.daemon().ready()
        for who in (ANN, BOB):
            for i in range(each):
                name = f"{who[:3]}-{i}"
                self.insert(message_id=f"dead-{name}", destination="bad", payload=json.dumps({"mail": who}),
                            headers=json.dumps({"x-mail": who}))
                self.insert(message_id=f"sent-{name}", payload=json.dumps({"mail": who}), headers=json.dumps({"x-mail": who}))
                self.insert(message_id=f"gone-{name}", payload=json.dumps({"mail": who}), headers=json.dumps({"x-mail": who}),
                            not_before="2099-01-01T00:00:00Z")
        until(lambda: len(self.letters()) == 2 * each, "letters")
        until(lambda: self.sql("SELECT count(*) FROM outbox_sent") == [(2 * each,)], "sent")
        until(lambda: self.sql("SELECT count(*) FROM outbox") == [(0,)], "outbox empty")
        for who in (ANN, BOB):
            for i in range(each):
                self.hikyaku("messages", "cancel", f"gone-{who[:3]}-{i}", *WHY)
            self.hikyaku("dead", "edit", f"dead-{who[:3]}-0", "--payload", json.dumps({"mail": who, "v": 2}), "--yes", *WHY)
        return relay

    def about(self, who):
        """Tables with a cell that holds it; dead rows of PostgreSQL are VACUUM's."""
        db, found = self.connect(), []
        for table in ("outbox_retry", "dead_letters", "dead_letter_versions", "outbox_cancelled", "outbox_attempts", "outbox_audit",
                      "outbox_job", "outbox_audit_letters", "outbox_audit_messages"):
            for row in db.execute(f"SELECT * FROM {table}").fetchall():
                text = "".join(bytes(c).decode("utf-8", "replace") if isinstance(c, (bytes, memoryview)) else str(c) for c in row)
                if who in text or who.encode().hex() in text:
                    found.append(table)
                    break
        db.close()
        return found


@test
def one_persons_data_goes_and_the_record_stays():
    with People() as w:
        relay = w.fill()
        everywhere = {"dead_letters", "dead_letter_versions", "outbox_cancelled", "outbox_attempts"}
        assert set(w.about(ANN)) == everywhere, w.about(ANN)
        would = w.hikyaku("dead", "erase", "--filter", f"payload.mail:{ANN}", "--dry-run")
        assert would.startswith("2 letters would be erased"), would
        assert set(w.about(ANN)) == everywhere
        code, text = w.try_hikyaku("dead", "erase", "--filter", f"payload.mail:{ANN}", "--yes")
        assert code != 0 and "reason" in text, text
        out = w.hikyaku("dead", "erase", "--filter", f"payload.mail:{ANN}", "--yes", "--actor", "ann", "--reason", "request 17")
        assert "2 changed" in out, out
        for i in range(2):
            w.hikyaku("messages", "erase", f"gone-ann-{i}", f"sent-ann-{i}", *WHY)
        assert w.about(ANN) == [], w.about(ANN)
        assert set(w.about(BOB)) == everywhere
        shown = json.loads(w.hikyaku("dead", "show", "dead-ann-0", "--json"))
        assert shown["status"] == "discarded" and shown["reason_code"] == "HTTP_422" and shown["resolution"] == "erased", shown
        assert w.sql("SELECT count(*) FROM outbox_audit WHERE act = 'erase'") == [(6,)]
        assert w.sql("SELECT reason FROM outbox_audit WHERE act = 'erase' AND message_id = 'dead-ann-0'") == [("request 17",)]
        assert "holds" in w.hikyaku("audit", "verify") or w.hikyaku("audit", "verify")
        for words in (("dead", "restore", "dead-ann-0"), ("dead", "requeue", "dead-ann-0", "--yes"), ("messages", "restore", "gone-ann-0")):
            code, text = w.try_hikyaku(*words, *WHY)
            assert code != 0, (words, text)
        assert "erased" in w.try_hikyaku("messages", "restore", "gone-ann-0", *WHY)[1]
        w.hikyaku("messages", "restore", "gone-bob-0", *WHY)  # other people's are as they were
        w.hikyaku("messages", "list")
        relay.stop()


@test
def what_waits_or_is_on_its_way_is_not_erased():
    with People() as w:
        relay = w.fill(each=1)
        w.insert(message_id="waits", payload=json.dumps({"mail": ANN}), not_before="2099-01-01T00:00:00Z")
        until(lambda: w.sql("SELECT count(*) FROM outbox_retry WHERE message_id = 'waits'") == [(1,)], "scheduled")
        code, text = w.try_hikyaku("messages", "erase", "waits", *WHY)
        assert code != 0 and "cancel it first" in text, text
        code, text = w.try_hikyaku("messages", "erase", "nothing", *WHY)
        assert code != 0 and "no message" in text, text
        w.receiver.on("bad", lambda r: Answer(200, delay=3))
        w.hikyaku("dead", "requeue", "dead-ann-0", "--yes", *WHY)
        code, text = w.try_hikyaku("dead", "erase", "dead-ann-0", *WHY)
        assert code != 0 and "on its way" in text, text
        w.hikyaku("messages", "cancel", "waits", *WHY)
        w.hikyaku("messages", "erase", "waits", *WHY)
        relay.stop()


@test
def a_job_goes_on_after_a_kill():
    with People() as w:
        relay = w.fill(each=1)
        for i in range(300):
            w.insert(message_id=f"many-{i}", payload=json.dumps({"mail": ANN}), not_before="2099-01-01T00:00:00Z")
        until(lambda: w.sql("SELECT count(*) FROM outbox") == [(0,)], "scheduled")
        w.hikyaku("messages", "cancel", "--filter", f"payload.mail:{ANN}", "--yes", *WHY)
        relay.stop()
        job = re.search(r"job (\d+)", w.hikyaku("messages", "erase", "--text", ANN, "--background", "--yes", *WHY)).group(1)
        for n in range(3):
            relay = w.daemon(f"killed-{n}").ready()
            relay.kill()
        relay = w.daemon("last").ready()

        def status():
            return json.loads(w.hikyaku("job", "show", job, "--json"))["status"]
        until(lambda: status() not in ("queued", "running"), "the job")
        assert status() == "done", w.hikyaku("job", "show", job)
        assert set(w.about(ANN)) <= {"outbox_audit"}, w.about(ANN)  # of the cancel, whose filter the test itself gave
        assert w.hikyaku("audit", "verify")
        assert set(w.about(BOB)) >= {"dead_letters", "outbox_cancelled"}
        relay.stop()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
