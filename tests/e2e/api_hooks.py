# SPDX-License-Identifier: Apache-2.0
"""Loaded by schemathesis (api_schema.py starts it). What is made up at random is mostly refused, and a refusal says nothing about the schema of a
result: of three calls of an operation one stays as it was made up, one names things that exist, and one is right. Writes down
how each operation was answered.

In the environment: KNOWN (a JSON file: what exists) and ANSWERED (the file to write)."""
import atexit
import collections
import itertools
import json
import os
import pathlib

import schemathesis

WHY = {"reason": "a test"}
SHOP = {"destination": "shop"}
MESSAGE = {**SHOP, "event_type": "OrderCreated", "payload": {"orderId": 1.0}}

# What is right, by operation: members of the body, or of the query of a GET or DELETE. A text such as "<letter>" is the next known one.
RIGHT = {
    "enqueue": MESSAGE,
    "enqueue_lines": f"{json.dumps(MESSAGE)}\n\n{json.dumps({**MESSAGE, 'payload': 'text'})}\n".encode(),
    "figures": {"for": "2h", "step": "5m", "limit": 2},
    "events": {"types": "state,heartbeat", "for": "1s"},
    "messages_list": {**SHOP, "limit": 3},
    "messages_show": {"payload": "true"},
    "messages_attempts": {"limit": 1},
    "messages_cancel": {"ids": ["<waiting>"], **WHY},
    "messages_cancel_one": WHY,
    "messages_restore": {**SHOP, **WHY},
    "messages_retry": WHY,
    "messages_erase": {"ids": ["<message>"], "dry_run": True, **WHY},
    "keys_rotate": {"background": True, **WHY},
    "keys_retire": WHY,
    "destinations_create": {"destination": "<made>", "definition": {"null": {}}, **WHY},
    "destinations_update": {"definition": {"null": {"latency": "1ms"}}, **WHY},
    "destinations_delete": WHY,
    "destinations_apply": {"definitions": {"applied": {"null": {}}}, **WHY},
    "destinations_pause": WHY,
    "destinations_resume": WHY,
    "destinations_test": {},
    "queues_create": {"name": "<queue_made>", "rate": "5/s", **WHY},
    "queues_update": {"max_attempts": "7", "reset": ["rate"], **WHY},
    "queues_delete": WHY,
    "queues_purge": WHY,
    "queues_pause": WHY,
    "queues_resume": WHY,
    "clock_reset": {"dry_run": True},
    "dead_list": {**SHOP, "limit": 3, "reveal": "true", **WHY},
    "dead_groups": SHOP,
    "dead_export": {**SHOP, "text": "dead"},
    "dead_open": {"reveal": "true", **WHY},
    "dead_edit": {"payload": {"orderId": 2, "currency": "JPY"}, "yes": True, **WHY},
    "dead_fix": {"jq": ".currency = \"JPY\"", **SHOP, "dry_run": True},
    "dead_requeue": {"ids": ["<letter>"], **WHY},
    "dead_send": {"yes": True, "force": True, **WHY},
    "dead_resolve": {"ids": ["<letter>"], **WHY},
    "dead_discard": {"ids": ["<letter>"], **WHY},
    "dead_restore": {"ids": ["<letter>"], **WHY},
    "dead_erase": {"ids": ["<letter>"], "dry_run": True, **WHY},
    "dead_note": {"text": "looked at"},
    "redrive_plan": {**SHOP, "rate": "10/s"},
    "redrive_start": {**SHOP, "rate": "10/s", "dry_run": True},
    "redrive_cancel": WHY,
    "job_list": {"limit": 3},
    "job_cancel": WHY,
    "alerts_test": {"channel": "chat"},
    "alerts_mute": {"rule": "died", "for": "1h", **WHY},
    "alerts_unmute": {"rule": "died", **WHY},
    "policy_simulate": {"name": "quick", "clients": 10, "outage": "10s"},
    "token_create": {"name": "<new>", "role": "viewer", **WHY},
    "token_revoke": WHY,
    "audit_list": {"limit": 3},
}
# What stands in a path: by operation, else by the parameter's name.
NAMED = {"redrive_show": {"id": "<redrive>"}, "redrive_cancel": {"id": "<redrive>"}, "audit_show": {"id": "<act>"},
         "destinations_update": {"destination": "kept"}, "destinations_delete": {"destination": "<doomed>"},
         **{f"queues_{verb}": {"name": "kept"} for verb in ("show", "update", "purge", "pause", "resume")}, "queues_delete": {"name": "<doomed>"},
         "messages_cancel_one": {"message_id": "<waiting>"}, "messages_retry": {"message_id": "<failed>"}}
NAMES = {"id": "<letter>", "job_id": "<job>", "message_id": "<message>", "destination": "shop", "name": "quick", "token": "spare", "key_id": "older"}

known = {name: itertools.cycle(values)
         for name, values in json.loads(pathlib.Path(os.environ["KNOWN"]).read_text(encoding="utf-8")).items()}
known["new"] = (f"token-{n}" for n in itertools.count())
known["queue_made"] = (f"projects/p/locations/l/queues/made-{n}" for n in itertools.count())
known["made"] = (f"made-{n}" for n in itertools.count())
calls, answers = collections.Counter(), collections.Counter()


def fill(value):
    if isinstance(value, dict):
        return {k: fill(v) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v) for v in value]
    is_known = isinstance(value, str) and value[:1] == "<" and value[-1:] == ">"
    return next(known[value[1:-1]]) if is_known else value


def operation_id(case):
    return case.operation.definition.raw["operationId"]


@schemathesis.hook
def before_call(_, case, kwargs):
    """Every third is left as it is, but for the token that this program needs."""
    name = operation_id(case)
    if case.method.lower() != case.operation.method.lower():
        return
    turn = calls[name] % 3
    calls[name] += 1
    if name == "events" and case.method.upper() == "GET" and not (case.query or {}).get("for"):
        case.query = {**(case.query or {}), "for": "1s"}  # a stream that does not end tells nothing
    if turn > 0 or name == "token_revoke":
        case.path_parameters = {p: fill(NAMED.get(name, {}).get(p, NAMES.get(p))) for p in case.path_parameters or {}}
    if turn != 2:
        return
    case.query, case.headers, case.cookies = {}, {}, {}
    kwargs.get("headers", {}).pop("Content-Type", None)
    if case.method.upper() in ("GET", "DELETE"):
        case.query = fill(RIGHT.get(name, {}))
    else:
        case.media_type = "application/x-ndjson" if name == "enqueue_lines" else "application/json"
        case.body = fill(RIGHT[name])


@schemathesis.hook
def after_call(_, case, response):
    if case.method.lower() == case.operation.method.lower():
        answers[f"{operation_id(case)} {response.status_code}"] += 1


@schemathesis.serializer("application/x-ndjson")
def as_lines(_, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@atexit.register
def write_answers():
    pathlib.Path(os.environ["ANSWERED"]).write_text(json.dumps(answers), encoding="utf-8")
