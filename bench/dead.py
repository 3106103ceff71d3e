#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long people wait for an answer about very many dead letters, and how much memory that takes.

usage: bench/dead.py HIKYAKU [--rows N] [--rounds N] [--store sqlite,postgres] [--only WORDS] [--json FILE] [--hold]

Letters are made by SQL: nine in ten are open, of 8 destinations, 6 reasons, 480 groups, with payloads of about 300 bytes.
Each command is run several times as a process of its own: the median of its time from start to end, the shortest and the
longest, its own CPU time and the server's, and the most memory that it had (peak RSS, the program itself included). Everything
runs on loopback in a temporary folder and is gone at the end. PostgreSQL 15 or later and python3-psycopg are needed for the second store."""
import sys

sys.dont_write_bytecode = True  # nothing beside the sources
import asking

RARE = 100_000  # every so many letters a customer comes again

LETTER = {
    "message_id": "'m-' || {i}",
    "original_outbox_id": "{i}",
    "event_type": "CASE {i} % 12 WHEN 0 THEN 'OrderCreated' WHEN 1 THEN 'OrderPaid' ELSE 'Event' || ({i} % 12) END",
    "destination": "'destination-' || ({i} % 8)",
    "message_key": "'k-' || ({i} % 50000)",
    "content_type": "'application/json'",
    "correlation_id": "'c-' || ({i} / 3)",
    "reason_code": "CASE {i} % 20 WHEN 0 THEN 'VALIDATION_ERROR' WHEN 1 THEN 'HTTP_404' WHEN 2 THEN 'HTTP_422' "
                   "WHEN 3 THEN 'TIMEOUT' WHEN 4 THEN 'HTTP_400' ELSE 'RETRY_EXHAUSTED' END",
    "failure_class": "CASE WHEN {i} % 20 < 5 THEN 'permanent' ELSE 'transient' END",
    "fault": "CASE {i} % 20 WHEN 0 THEN 'pipeline' ELSE 'destination' END",
    "fingerprint": "{group}",
    "error_message": "'the receiver answered with an error: order ' || {i} || ' is not there'",
    "attempts": "1 + {i} % 12",
    "status": "CASE WHEN {i} % 50 = 7 THEN 'discarded' WHEN {i} % 25 IN (3, 4) THEN 'resolved' ELSE 'failed' END",
    "resolution": "CASE WHEN {i} % 50 = 7 THEN 'ann: test data' WHEN {i} % 25 IN (3, 4) THEN 'delivered' END",
    "resolved_at": "CASE WHEN {i} % 50 = 7 OR {i} % 25 IN (3, 4) THEN {time} END",
    "requeues": "CASE WHEN {i} % 25 IN (3, 4) THEN 1 ELSE 0 END",
    "message_created_at": "{time}",
    "first_failed_at": "{time}",
    "last_failed_at": "{time}",
    "last_attempt_at": "{time}",
    "created_at": "{time}",
    "payload": "'{\"order\":' || {i} || ',\"customer\":{\"id\":' || ({i} % " + str(RARE) + ") || ',\"name\":\"n-' || {i} || "
               "'\"},\"items\":[{\"sku\":\"A-1\",\"qty\":2},{\"sku\":\"B-22\",\"qty\":1}],\"text\":\"" + "x" * 200 + "\"}'",
}


class Dead(asking.Asking):
    doc = __doc__
    rows, least_rows = 1_000_000, 2000
    span_s = 30 * 86_400

    def tables(self, rows):
        return [("dead_letters", LETTER, rows)]

    def commands(self, rows):
        middle = str(rows // 2)
        return [
            ("dead list: first page", ["dead", "list"], "there are more"),
            ("dead list: a page from the middle", ["dead", "list", "--after", middle], "there are more"),
            ("dead list: from the middle, oldest first", ["dead", "list", "--oldest", "--after", middle], "there are more"),
            ("dead list: one reason (1 in 20)", ["dead", "list", "--filter", "reason:HTTP_422"], "HTTP_422"),
            ("dead list: one reason, from the middle", ["dead", "list", "--filter", "reason:HTTP_422", "--after", middle], "HTTP_422"),
            ("dead list: a reason that none has", ["dead", "list", "--filter", "reason:HTTP_451"], "no dead letters fit"),
            ("dead list: a group", ["dead", "list", "--group", f"{7919 * 8:016x}"], "destination-0"),
            ("dead list: destination, type and age", ["dead", "list", "--filter", "destination:destination-0 type:Order* newer:7d"],
             "OrderCreated"),
            ("dead list: one message", ["dead", "list", "--filter", f"id:m-{rows // 3 * 2 + 5}", "--status", "any"], "destination-"),
            ("dead list: payload path, frequent match", ["dead", "list", "--filter", "payload.items[0].sku:A-1"], "there are more"),
            (f"dead list: payload path, 1 in {RARE:,}", ["dead", "list", "--filter", "payload.customer.id:42"], "destination-"),
            ("dead list: text that none has", ["dead", "list", "--filter", 'text:"no such text"'], "no dead letters fit"),
            ("dead groups", ["dead", "groups"], "RETRY_EXHAUSTED"),
            ("dead groups: of one destination", ["dead", "groups", "--destination", "destination-3"], "destination-3"),
            ("dead stats", ["dead", "stats"], "by reason"),
            ("dead show", ["dead", "show", middle], "payload"),
            ("redrive plan: all that are open", ["redrive", "plan", "--status", "failed"], "letters fit"),
            ("redrive plan: one destination and reason",
             ["redrive", "plan", "--filter", "destination:destination-0 reason:RETRY_EXHAUSTED"], "letters fit"),
            ("redrive start: all that are open", ["redrive", "start", "--status", "failed", "--yes", "--reason", "bench"], "started"),
            ("redrive start: by payload path",
             ["redrive", "start", "--filter", "payload.customer.id:42", "--yes", "--reason", "bench"], "started"),
            ("redrive list", ["redrive", "list"], "running"),
            ("status", ["status"], "dead"),
        ]

    def undo(self, args, out):
        if args[:2] != ["redrive", "start"]:
            return None
        return ["redrive", "cancel", out.split()[1], "--reason", "bench"]  # or the next one of the same letters would be refused


if __name__ == "__main__":
    asking.main(Dead())
