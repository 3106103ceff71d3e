#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long people wait for an answer about a very long outbox: status, messages, explain, top.

usage: bench/status.py HIKYAKU [--rows N] [--rounds N] [--store sqlite,postgres] [--only WORDS] [--json FILE] [--hold]

Rows are made by SQL: N in the outbox (10,000,000), a tenth of that waiting for a retry and a tenth dead, of 12 destinations (one has
half of all, one has three rows), of keys, event types and reasons. Each command is run several times as a process of its own. Its
time from start to end is what a person waits; on a machine that others use read the CPU: its own, and what the database's processes
used meanwhile. Everything runs on loopback in a temporary folder, needs 8 GB there for each store, and is gone at the end;
--hold waits for Enter before that, so that one can look at plans."""
import sys

sys.dont_write_bytecode = True  # nothing beside the sources
import asking
from dead import LETTER

# Half of all for destination-0, three rows for destination-11, the rest shared out.
DESTINATION = ("CASE WHEN {i} % 2 = 0 THEN 'destination-0' WHEN {i} IN (1, 3, 5) THEN 'destination-11' "
               "ELSE 'destination-' || (1 + ({i} / 2) % 10) END")
COMMON = {
    "message_id": "'m-' || {i}",
    "destination": DESTINATION,
    "event_type": "CASE {i} % 12 WHEN 0 THEN 'OrderCreated' WHEN 1 THEN 'OrderPaid' ELSE 'Event' || ({i} % 12) END",
    "message_key": "CASE WHEN {i} % 4 <> 0 THEN 'k-' || ({i} % 50000) END",
    "correlation_id": "'c-' || ({i} / 3)",
    "created_at": "{time}",
    "payload": "'{\"order\":' || {i} || ',\"text\":\"" + "x" * 150 + "\"}'",
}
OUTBOX = COMMON | {"not_before": "CASE WHEN {i} % 20 = 0 THEN {later} END"}
RETRY = COMMON | {
    "message_id": "'r-' || {i}",
    "message_key": "CASE WHEN {i} % 4 <> 0 THEN 'rk-' || ({i} % 50000) END",
    "original_outbox_id": "-{i}",
    "due_ms": "{now_ms} + ({i} % 7 - 3) * 600000",  # four in seven are due
    "attempts": "{i} % 25",
    "last_cause": "'HTTP_503'",
    "last_error": "'the answer was HTTP 503'",
}


class Status(asking.Asking):
    doc = __doc__
    rows, least_rows = 10_000_000, 2_000_000
    destinations = 12

    def tables(self, rows):
        return [("outbox", OUTBOX, rows), ("outbox_retry", RETRY, rows // 10), ("dead_letters", LETTER, rows // 10)]

    def commands(self, rows):
        return [
            ("status", ["status"], "destination-11"),
            ("status --json", ["status", "--json"], '"estimate": true'),
            ("top --once: a refresh", ["top", "--once"], "destination-0"),
            ("relays list", ["relays", "list"], "no relay"),
            ("destinations list", ["destinations", "list"], "destination-11"),
            ("messages list", ["messages", "list"], "r-"),
            ("messages list: pending", ["messages", "list", "--status", "pending"], "r-"),
            ("messages list: retrying", ["messages", "list", "--status", "retrying"], "r-"),
            ("messages list: dead", ["messages", "list", "--status", "dead"], "m-"),
            ("messages list: of the rare destination", ["messages", "list", "--destination", "destination-11"], ""),
            ("messages explain: one of the newest", ["messages", "explain", f"m-{rows - 8}"], "m-"),
            ("messages explain: the oldest", ["messages", "explain", f"m-{rows // 10 + 3}"], "m-"),
            ("messages explain: one that is retried", ["messages", "explain", f"r-{rows // 20 + 3}"], "r-"),
            ("messages show: one that is retried", ["messages", "show", f"r-{rows // 20 + 3}"], "HTTP_503"),
            ("messages explain: one that is not there", ["messages", "explain", "nobody"], None),
        ]


if __name__ == "__main__":
    asking.main(Status())
