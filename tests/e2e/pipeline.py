#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Document 004 from end to end, with Google's own client for Node: a task that fails ten times becomes a dead letter; Slack, a mail and a
metric report it and name the session; a person sends it again, and its record says resolved. Its seven points of acceptance (requirement
408) are seven tests of one run. Speaks TAP.

Usage: pipeline.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres. Skipped where npm cannot fetch the client, or aiosmtpd is not
installed."""
import atexit
import contextlib
import json
import re
import sys
import threading
import urllib.request

sys.dont_write_bytecode = True  # the source folder stays as it is
from alerts import Mail, Slack
from support import Answer, run_tests, until
from tasks import PARENT, QUEUE, WHO, Google, TaskWorld, id_of, sync_task

SECOND = 0.02  # the document's second
FIELDS = ["sessionId", "tableName", "userId", "card"]
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Pipeline:
    """One run, made when the first test asks for it."""

    made = None

    @classmethod
    def run(cls):
        cls.made = cls.made or cls()
        return cls.made

    def __init__(self):
        self.stack = contextlib.ExitStack()
        atexit.register(self.stack.close)
        self.slack, self.mail = (self.stack.enter_context(contextlib.closing(kind())) for kind in (Slack, Mail))
        self.w = self.stack.enter_context(TaskWorld(
            channels={"slack": {"slack": {"url": self.slack.url}, "allow": ["127.0.0.0/8"], "timeout": "30s"},
                      "mail": {"email": {"url": self.mail.url, "from": "hikyaku@example.com", "to": "ops@example.com", "starttls": False},
                               "language": "ja", "timeout": "30s"}},
            masks=[{"event_type": "*", "paths": ["userId"]}],
            alerts={"interval": "100ms", "resolve_after": "0s",
                    "rules": [{"name": "dlq", "when": "dead_letter", "severity": "critical", "fields": FIELDS}]}))
        self.w.start()
        self.client = Google(self.w)
        self.queue = self.client.createQueue(parent=PARENT, queue={"name": QUEUE, "retryConfig": {
            "maxAttempts": 10, "minBackoff": {"seconds": 0, "nanos": int(SECOND * 1e9)}, "maxBackoff": {"seconds": 3600}, "maxDoublings": 16}})
        self.healthy = threading.Event()
        self.w.receiver.on("internal_syncToBigQuery", lambda _: 200 if self.healthy.is_set() else Answer(500, body=b"BigQuery is away"))
        self.id = id_of(self.client.createTask(parent=QUEUE, task=sync_task(self.w)))
        self.reason = until(lambda: self.w.letters().get(self.id), "the dead letter")
        self.tries = self.w.receiver.arrived(self.id)

    def letter(self):
        return json.loads(self.w.hikyaku("dead", "show", self.id, "--json"))

    def metrics(self):
        with urllib.request.urlopen(f"http://{self.w.address}/metrics", timeout=60) as answer:
            return answer.read().decode()


@test
def point_1_a_queue_is_made_with_ten_attempts_and_doubling_waits():
    p = Pipeline.run()
    retry = p.client.getQueue(name=QUEUE)["retryConfig"]
    assert p.queue["name"] == QUEUE and retry["maxAttempts"] == 10 and retry["maxDoublings"] == 16, retry


@test
def point_2_a_task_that_fails_is_tried_again_by_itself():
    p = Pipeline.run()
    assert [r.headers["x-cloudtasks-taskretrycount"] for r in p.tries] == [str(i) for i in range(10)]
    assert {r.body for r in p.tries} == {p.tries[0].body} and json.loads(p.tries[0].body)["sessionId"] == "s-42"


@test
def point_3_the_waits_grow_one_two_four_eight():
    p = Pipeline.run()
    waits = [b.at - a.answered for a, b in zip(p.tries, p.tries[1:])]
    for i, wait in enumerate(waits):
        assert wait >= SECOND * 2 ** i - 0.005, (i, waits)  # never early; how late is the machine's business


@test
def point_4_after_ten_failures_it_is_a_dead_letter_with_error_and_count():
    p = Pipeline.run()
    assert len(p.tries) == 10 and p.reason == "RETRY_EXHAUSTED", (len(p.tries), p.reason)
    (row,) = p.w.sql("SELECT attempts, error_message, status, resolved_at FROM dead_letters WHERE message_id = ?", p.id)
    assert row[0] == 10 and "500" in row[1] and row[2] == "failed" and row[3] is None, row


@test
def point_5_the_dead_letter_can_be_looked_at():
    p = Pipeline.run()
    text = json.dumps(p.letter())
    assert "BigQuery is away" in text and "s-42" in text and '"status": "failed"' in text, text[:2000]
    assert p.id in p.w.hikyaku("dead", "list")


@test
def point_6_slack_a_mail_and_a_metric_report_it_and_name_the_session():
    p = Pipeline.run()
    until(lambda: p.slack.taken() and p.mail.mails, lambda: f"notices, not {p.slack.bodies} and {p.mail.texts()}")
    slack, mail = json.dumps(p.slack.taken()[0], ensure_ascii=False), p.mail.texts()[0]
    queue = QUEUE.rsplit("/", 1)[1]
    for text in (slack, mail):
        assert queue in text and "sessionId: s-42" in text and "tableName: events" in text, text
        assert "u1" not in text and "RETRY_EXHAUSTED" in text, text  # masked
    assert "userId: (masked)" in slack and "card: (not in the payload)" in slack, slack
    assert "userId: （マスク対象）" in mail, mail
    fields = {f["path"]: (f["state"], f["value"]) for f in json.loads(p.w.hikyaku("alerts", "list", "--json"))["items"][0]["fields"]}
    assert fields["sessionId"] == ("shown", "s-42") and fields["userId"][0] == "masked" and fields["card"][0] == "absent", fields
    assert "u1" not in json.dumps(fields), fields
    # the queue was made at run time, and has a name of its own
    died = r'hikyaku_dead_letters_total\{destination="' + queue + r'\.\w+",reason="RETRY_EXHAUSTED"\} 1\n'
    until(lambda: re.search(died, p.metrics()), lambda: p.metrics())


@test
def point_7_a_person_processes_it_again_and_its_record_says_resolved():
    p = Pipeline.run()
    p.healthy.set()
    p.w.hikyaku("dead", "requeue", p.id, "--yes", *WHO)
    until(lambda: p.w.sql("SELECT status FROM dead_letters WHERE message_id = ?", p.id) == [("resolved",)], "the letter to be resolved")
    assert len(p.w.receiver.arrived(p.id)) == 11
    (row,) = p.w.sql("SELECT resolved_at, resolution FROM dead_letters WHERE message_id = ?", p.id)
    assert row[0] and row[1] == "delivered", row
    until(lambda: len(p.slack.taken()) >= 2 and len(p.mail.mails) >= 2, "the end to be told")
    assert "RESOLVED" in p.slack.taken()[-1]["text"] and "s-42" in json.dumps(p.slack.taken()[-1]), p.slack.taken()[-1]


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
