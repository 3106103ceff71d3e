#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP API of a relay, asked as a stranger's program would: who may ask for what, what is answered, what is refused and how; the
rescue of exercise C; two operators at once. Speaks TAP.

Usage: api.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import gzip
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import urllib.parse

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import Answer, World, run_tests, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROLES = ["metrics", "viewer", "operator", "admin"]
WHO = ("--actor", "setup", "--reason", "a test")
JSON = {"Content-Type": "application/json"}
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Api:
    """One token's view of a server. Each call is a connection of its own."""

    def __init__(self, address, token=None):
        self.host, self.port = address.rsplit(":", 1)
        self.token = token

    def ask(self, method, path, body=None, headers=None, query=None):
        """(status, headers, parsed body)"""
        url = path if path.startswith(("/openapi", "/metrics", "/livez")) else "/api/v1" + path
        if query:
            url += "?" + urllib.parse.urlencode(query)
        head = {**(JSON if body is not None else {}), **(headers or {})}
        if self.token:
            head["Authorization"] = f"Bearer {self.token}"
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=60)
        try:
            connection.request(method, url, data, head)
            answer = connection.getresponse()
            text = answer.read()
            kind = answer.headers.get("Content-Type", "")
            return answer.status, answer.headers, json.loads(text) if "json" in kind and "nd" not in kind and text else text
        finally:
            connection.close()

    def bytes(self, path, **headers):
        """(headers, body as it came)"""
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=60)
        try:
            connection.request("GET", "/api/v1" + path, None, {"Authorization": f"Bearer {self.token}", **headers})
            answer = connection.getresponse()
            assert answer.status == 200, answer.status
            return answer.headers, answer.read()
        finally:
            connection.close()

    def good(self, method, path, body=None, **more):
        status, _, is_ = self.ask(method, path, body, **more)
        assert status == 200, (method, path, status, is_)
        return is_

    def bad(self, status, code, method, path, body=None, **more):
        got, headers, problem = self.ask(method, path, body, **more)
        assert got == status, (method, path, got, problem)
        assert headers["Content-Type"] == "application/problem+json", headers
        assert problem["status"] == status and problem["code"] == code, problem
        return problem


class Served(World):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.tokens = {}

    def token(self, name, role, *more):
        made = json.loads(self.hikyaku("token", "create", name, "--role", role, *more, *WHO, "--json"))
        self.tokens[name] = made["token"]
        return made["token"]

    def serve(self):
        self.relay = self.daemon().ready()
        self.relay.says('"admin listening"')
        self.address = re.search(r'msg="admin listening" address=(\S+)', self.relay.log())[1]
        return self.relay

    def api(self, name=None):
        return Api(self.address, self.tokens.get(name))

    def dead(self, n=1):
        self.receiver.on("shop", Answer(422, {"Content-Type": "application/json"}, body=b'{"message":"currency is missing"}'))
        before = self.sql("SELECT count(*) FROM dead_letters")[0][0]
        for i in range(n):
            self.insert(message_id=f"dead-{before + i}", payload=json.dumps({"orderId": i, "customer": {"email": "a@example.com"}}))
        until(lambda: self.sql("SELECT count(*) FROM dead_letters")[0][0] == before + n, "letters")


# ---- who ----

def fill_path(path):
    return re.sub(r"\{\w+\}", "1", path) + ("?for=1s" if path == "/events" else "")  # which would not end


@test
def each_role_may_do_what_the_table_says():
    with Served(queues={}) as world:  # without the section queues are refused to everybody
        for role in ROLES:
            world.token(role, role)
        world.serve()
        described = world.api("admin").good("GET", "/openapi.json")
        n = 0
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                for role in ROLES:
                    body = {} if method != "get" else None  # wrong on purpose: nothing may change, and a right comes before a body
                    if operation["operationId"] == "enqueue_lines":
                        body = b"nonsense\n"
                    status, _, answer = world.api(role).ask(method.upper(), fill_path(path), body)
                    allowed = ROLES.index(role) >= ROLES.index(operation["x-role"])
                    assert (status == 403) == (not allowed), (role, method, path, status, answer)
                    assert allowed or f"needs the role {operation['x-role']}, and you have the role {role}" in answer["detail"], answer
                    assert status not in (401, 405) and status < 500, (role, method, path, status, answer)
                    n += 1
        assert n > 150, n


@test
def the_reference_is_what_a_relay_describes():
    """Run with HK_UPDATE_DOCS=1 in the environment to write it anew."""
    page = ROOT / "docs/api-reference.md"
    with Served(queues={}) as world:
        world.token("admin", "admin")
        world.serve()
        described = world.api("admin").good("GET", "/openapi.json")
    text = subprocess.run([ROOT / "tools/api-reference"], input=json.dumps(described), text=True, capture_output=True, check=True).stdout
    n = sum(len(methods) for methods in described["paths"].values())
    assert text.count("\n### `") == n > 60, n
    if os.environ.get("HK_UPDATE_DOCS"):
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text, "docs/api-reference.md is stale: run this test with HK_UPDATE_DOCS=1 in the environment"


@test
def strangers_hold_no_memory_and_no_place():
    """Whoever has no token is refused when the head is there: no body is awaited, so that 64 MiB of bodies and 64 places stay free."""
    with Served(admin={"listen": "127.0.0.1:0", "auth": "tokens"}) as world:
        world.token("good", "admin")
        world.serve()
        host, port = world.address.rsplit(":", 1)
        strangers = []
        for i in range(100):
            s = socket.create_connection((host, int(port)), timeout=60)
            s.sendall(f"POST /api/v1/messages/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                      f"{'Authorization: Basic x' + chr(13) + chr(10) if i < 3 else ''}Content-Length: {15 << 20}\r\n\r\n".encode()
                      + b"x" * (i % 3))
            strangers.append(s)
        for s in strangers:
            assert s.recv(65536).startswith(b"HTTP/1.1 401 "), "the body was awaited"
        until(lambda: world.sql("SELECT count(*) FROM outbox_audit WHERE act = 'api-refused'")[0][0] > 0, "wrong tokens in the audit")
        line = json.dumps({"event_type": "X", "destination": "shop", "payload": "x" * 1000}) + "\n"
        made = world.api("good").good("POST", "/messages/batch", line.encode() * 100, headers={"Content-Type": "application/x-ndjson"})
        assert len(made["items"]) == 100
        for s in strangers:
            s.close()


@test
def names_of_fields_are_pointed_to_as_they_are():
    with Served() as world:
        world.token("good", "admin")
        world.serve()
        for name, pointer in (("a/b~c", "#/a~1b~0c"), ("n" * 300, "#/" + "n" * 300), ("~1", "#/~01")):
            problem = world.api("good").bad(400, "INVALID", "POST", "/policies/simulate", {"name": "standard", name: 1})
            assert problem["errors"][0]["pointer"] == pointer, problem


@test
def errors_name_fields_and_not_options():
    with Served() as world:
        world.token("good", "admin")
        world.serve()
        world.dead()
        for path, body, names in (("/alerts/mute", {"rule": "x", "reason": "r"}, ("until", "for")),
                                  ("/dead-letters/requeue", {"reason": "r"}, ("filter", "group", "reason_code")),
                                  ("/dead-letters/fix", {"reason": "r"}, ("jq",)),
                                  ("/redrives", {"reason": "r"}, ("filter", "destination")),
                                  ("/dead-letters/requeue", {"ids": ["1"], "same_id": True, "new_id": True, "reason": "r"}, ("same_id", "new_id"))):
            status, _, problem = world.api("good").ask("POST", path, body)
            assert status == 400 and all(re.search(rf"\b{n}\b", problem["detail"]) for n in names), problem
            assert "--" not in problem["detail"], problem


@test
def nobody_comes_in_without_a_good_token():
    with Served() as world:
        world.token("good", "admin")
        world.token("old", "admin", "--expires", "1s")
        world.token("gone", "admin")
        world.hikyaku("token", "revoke", "gone", *WHO)
        world.serve()
        described = world.api("good").good("GET", "/openapi.json")
        until(lambda: world.api("old").ask("GET", "/status")[0] == 401, "it has expired")
        wrong = Api(world.address, world.tokens["good"][:-1] + "x")
        for path, methods in described["paths"].items():
            for method in methods:
                for who, codes in ((Api(world.address), {"TOKEN_MISSING"}), (wrong, {"TOKEN_INVALID"}), (world.api("old"), {"TOKEN_EXPIRED"}),
                                   (world.api("gone"), {"TOKEN_REVOKED"})):
                    status, headers, problem = who.ask(method.upper(), fill_path(path), {} if method != "get" else None)
                    assert status in (401, 429), (method, path, status, problem)
                    assert status == 429 or (problem["code"] in codes and headers["WWW-Authenticate"].startswith("Bearer")), problem
        assert Api(world.address).ask("GET", "/livez")[0] == 200  # a probe needs none
        until(lambda: world.api("good").ask("GET", "/status")[0] == 200, "others are not locked out for long")


@test
def a_token_that_is_revoked_is_of_no_use_within_a_second():
    with Served() as world:
        world.token("boss", "admin")
        world.token("viewer", "viewer")
        world.serve()
        assert world.api("viewer").good("GET", "/me") == {"name": "viewer", "role": "viewer", "reveal": False}
        world.api("boss").good("POST", "/tokens/viewer/revoke", {"reason": "left the team"})
        until(lambda: world.api("viewer").ask("GET", "/me")[0] == 401, "it is refused", seconds=20)
        rows = {r["name"]: r for r in world.api("boss").good("GET", "/tokens")["items"]}
        assert rows["viewer"]["revoked_at"] and not rows["boss"]["revoked_at"], rows
        assert world.tokens["boss"] not in json.dumps(rows)


@test
def what_is_masked_needs_the_right_to_reveal():
    with Served(masks=[{"paths": ["customer.email"]}]) as world:
        world.token("plain", "admin")
        world.token("trusted", "viewer", "--reveal")
        world.serve()
        world.dead()
        letter = world.api("plain").good("GET", "/dead-letters")["items"][0]["id"]
        hidden = world.api("plain").good("GET", f"/dead-letters/{letter}")
        assert "a@example.com" not in json.dumps(hidden)
        world.api("plain").bad(403, "DENIED", "GET", f"/dead-letters/{letter}", query={"reveal": "true", "reason": "curious"})
        world.api("trusted").bad(400, "INVALID", "GET", f"/dead-letters/{letter}", query={"reveal": "true"})
        shown = world.api("trusted").good("GET", f"/dead-letters/{letter}", query={"reveal": "true", "reason": "ticket 7"})
        assert "a@example.com" in json.dumps(shown)
        audit = world.api("plain").good("GET", "/audit")["items"]
        assert any(row["actor"] == "trusted" and row["reason"] == "ticket 7" for row in audit), audit


@test
def a_filter_does_not_tell_what_is_masked():
    with Served(masks=[{"event_type": "Order*", "paths": ["customer.email"]}]) as world:
        world.token("plain", "admin")
        world.token("trusted", "admin", "--reveal")
        world.serve()
        world.receiver.on("shop", Answer(422, {"Content-Type": "text/plain"}, body=b"no such customer: a@example.com"))
        for i, kind in enumerate(("OrderCreated", "Other")):
            world.insert(message_id=f"m{i}", event_type=kind, payload=json.dumps({"orderId": i, "customer": {"email": "a@example.com", "city": "Kyoto"}}))
        until(lambda: world.sql("SELECT count(*) FROM dead_letters")[0][0] == 2, "letters")
        world.insert(message_id="m2", event_type="OrderCreated", destination="shop", not_before="2099-01-01T00:00:00Z",
                     payload='{"customer":{"email":"a@example.com","city":"Nara"}}')

        def ids(who, path, **query):
            return sorted(r["message_id"] for r in world.api(who).good("GET", path, query=query)["items"])

        for path, all_of_it, seen in (("/dead-letters", ["m0", "m1"], ["m1"]), ("/messages", ["m0", "m1", "m2"], ["m1"])):
            for text in "a@example.com", "a@exam":  # in the payload, and in what the receiver said of it
                assert ids("trusted", path, text=text) == all_of_it, (path, ids("trusted", path, text=text))
                assert ids("plain", path, text=text) == seen, (path, text, ids("plain", path, text=text))
            assert ids("plain", path, text="Kyoto") == ["m0", "m1"] and ids("plain", path, text="m0") == ["m0"]
            assert ids("plain", path, filter="payload.orderId:1") == ["m1"]
            assert ids("trusted", path, filter="payload.customer.email:a@example.com") == all_of_it
            for filter_ in ("payload.customer.email:a@example.com", "type:Order* payload.customer.email:x", "type:OrderCreated payload.customer.email.x:1"):
                problem = world.api("plain").bad(403, "DENIED", "GET", path, query={"filter": filter_})
                assert "payload.customer.email" in problem["detail"] and "reveal" in problem["detail"], problem
            assert ids("plain", path, filter="type:Other payload.customer.email:a@example.com") == ["m1"]
        act = {"filter": "payload.customer.email:a@example.com", "dry_run": True, "reason": "a guess"}
        world.api("plain").bad(403, "DENIED", "POST", "/dead-letters/discard", act)
        act["filter"] = "text:a@example.com"
        assert world.api("plain").good("POST", "/dead-letters/discard", act)["letters"]["n"] == 1
        world.api("plain").bad(403, "DENIED", "POST", "/redrives/plan", {"filter": "text:a@example.com"})
        assert world.api("trusted").ask("POST", "/redrives/plan", {"filter": "text:a@example.com"})[0] == 200
        assert len(world.api("plain").good("GET", "/dead-letters/groups", query={"text": "a@example.com"})["items"]) == 1


@test
def who_is_not_let_in_learns_nothing_of_the_store():
    with Served() as world:
        world.token("boss", "admin")
        world.serve()
        world.sql("ALTER TABLE outbox_tokens RENAME TO outbox_tokens_away")
        problem = Api(world.address, world.tokens["boss"]).bad(503, "STORE_UNAVAILABLE", "GET", "/status")
        world.sql("ALTER TABLE outbox_tokens_away RENAME TO outbox_tokens")
        assert "outbox" not in json.dumps(problem) and "postgres" not in json.dumps(problem) and str(world.db) not in json.dumps(problem), problem
        until(lambda: world.api("boss").ask("GET", "/status")[0] == 200, "it is back")


# ---- rescues ----

@test
def a_dead_letter_is_repaired_and_sent_again():
    with Served() as world:
        world.token("ops", "operator")
        world.serve()
        ops = world.api("ops")
        made = ops.good("POST", "/messages", {"destination": "shop", "event_type": "OrderCreated", "payload": {"orderId": 1.0}})
        until(lambda: world.sql("SELECT status FROM outbox_messages WHERE message_id = ?", made["message_id"]) == [("sent",)], "it arrives")
        world.dead(3)
        listed = ops.good("GET", "/dead-letters", query={"limit": 2})
        assert len(listed["items"]) == 2 and listed["next"], listed
        rest = ops.good("GET", "/dead-letters", query={"limit": 2, "after": listed["next"]})
        assert len(rest["items"]) == 1 and not rest["next"], rest
        groups = ops.good("GET", "/dead-letters/groups")["items"]
        assert len(groups) == 1, groups
        letter = listed["items"][0]["id"]
        status, headers, opened = ops.ask("GET", f"/dead-letters/{letter}/payload")
        assert status == 200 and headers["ETag"] == f'"{opened["payload_version"]}"', (status, headers, opened)
        # two operators: the second one saw what is not there any more
        tag = {"If-Match": headers["ETag"]}
        edited = ops.good("PUT", f"/dead-letters/{letter}/payload", {"payload": {"orderId": 1, "currency": "JPY"}, "reason": "ticket 8"}, headers=tag)
        assert edited["changed"], edited
        ops.bad(412, "CONFLICT", "PUT", f"/dead-letters/{letter}/payload", {"payload": {"orderId": 2}, "reason": "ticket 9"}, headers=tag)
        world.receiver.on("shop", 200)
        ops.bad(400, "INVALID", "POST", "/dead-letters/requeue", {"ids": [letter]})  # why?
        would = ops.good("POST", "/dead-letters/requeue", {"destination": "shop", "dry_run": True})
        assert would["dry_run"] and would["letters"]["n"] == 3, would
        ops.good("POST", "/dead-letters/requeue", {"ids": [letter], "reason": "repaired"})
        until(lambda: ops.good("GET", f"/dead-letters/{letter}")["status"] == "resolved", "it is resolved")
        started = ops.good("POST", "/redrives", {"destination": "shop", "rate": "100/s", "reason": "the rest"})
        until(lambda: world.sql("SELECT count(*) FROM dead_letters WHERE status = 'resolved'")[0][0] == 3, "all are")
        assert ops.good("GET", "/redrives")["items"], started
        actors = {row["actor"] for row in ops.good("GET", "/audit")["items"]}
        assert "ops" in actors, actors


@test
def a_letter_to_a_name_that_is_mistyped_is_sent_where_it_was_meant():
    with Served() as world:
        world.token("ops", "operator")
        world.serve()
        ops = world.api("ops")
        world.insert(message_id="typo", destination="shpo")
        until(lambda: world.sql("SELECT count(*) FROM dead_letters")[0][0] == 1, "a letter")
        letter = ops.good("GET", "/dead-letters")["items"][0]["id"]
        shown = ops.good("GET", f"/dead-letters/{letter}")
        assert (shown["reason_code"], shown["destination"], shown["did_you_mean"]) == ("UNKNOWN_DESTINATION", "shpo", "shop"), shown
        assert re.search(r"did you mean:? +shop", world.hikyaku("dead", "show", str(letter))), world.hikyaku("dead", "show", str(letter))
        problem = ops.bad(400, "INVALID", "POST", "/dead-letters/requeue", {"ids": [letter], "to": "shopp", "reason": "a typing error"})
        assert "did you mean shop?" in problem["detail"], problem
        ops.good("POST", "/dead-letters/requeue", {"ids": [letter], "to": "shop", "reason": "a typing error"})
        until(lambda: world.sql("SELECT status, destination FROM outbox_messages WHERE message_id = 'typo'") == [("sent", "shop")], "it arrives")


@test
def what_is_long_comes_packed_to_who_takes_it():
    with Served() as world:
        world.token("ops", "operator")
        world.serve()
        ops = world.api("ops")
        world.dead(20)
        plain, body = ops.bytes("/dead-letters")
        assert "Content-Encoding" not in plain and "Accept-Encoding" in plain.get_all("Vary"), plain
        packed, less = ops.bytes("/dead-letters", **{"Accept-Encoding": "br;q=1, gzip;q=0.5"})
        assert packed["Content-Encoding"] == "gzip" and len(less) < len(body) / 3, (packed, len(less), len(body))
        assert [i["id"] for i in json.loads(gzip.decompress(less))["items"]] == [i["id"] for i in json.loads(body)["items"]]
        for refused in ("gzip;q=0", "identity", "deflate, br"):
            headers, same = ops.bytes("/dead-letters", **{"Accept-Encoding": refused})
            assert "Content-Encoding" not in headers and len(same) == len(body), (refused, headers)
        headers, short = ops.bytes("/relays", **{"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in headers and json.loads(short)["items"], headers


@test
def a_jq_program_repairs_letters_although_the_relay_is_locked():
    with Served() as world:
        world.token("ops", "operator")
        world.serve()
        ops = world.api("ops")
        world.dead(4)
        ask = {"destination": "shop", "jq": '.currency = "JPY"'}
        would = ops.good("POST", "/dead-letters/fix", {**ask, "dry_run": True, "samples": 1})
        assert (would["matched"], would["changed"], len(would["samples"])) == (4, 4, 1), would
        problem = ops.bad(400, "INVALID", "POST", "/dead-letters/fix", {**ask, "jq": "]]", "reason": "a typing error"})
        assert "jq" in problem["detail"], problem
        fixed = ops.good("POST", "/dead-letters/fix", {**ask, "reason": "the field was forgotten"})
        assert (fixed["changed"], fixed["failed"]) == (4, 0), fixed
        again = ops.good("POST", "/dead-letters/fix", {**ask, "reason": "once more"})
        assert (again["changed"], again["unchanged"]) == (0, 4), again


@test
def a_call_with_the_same_key_is_done_once():
    with Served() as world:
        world.token("ops", "operator")
        world.token("other", "operator")
        world.serve()
        ops = world.api("ops")
        body, key = {"destination": "shop", "event_type": "OrderCreated", "payload": {"orderId": 1}}, {"Idempotency-Key": "k-1"}
        first = ops.good("POST", "/messages", body, headers=key)
        status, headers, again = ops.ask("POST", "/messages", body, headers=key)
        assert status == 200 and again == first and headers["Idempotency-Replayed"] == "true", (status, dict(headers), again)
        ops.bad(422, "KEY_REUSED", "POST", "/messages", {**body, "payload": {"orderId": 2}}, headers=key)
        assert world.api("other").good("POST", "/messages", body, headers=key) != first  # keys are each caller's own
        ops.bad(400, "INVALID", "POST", "/messages", {"nonsense": 1}, headers={"Idempotency-Key": "k-2"})
        assert ops.good("POST", "/messages", body, headers={"Idempotency-Key": "k-2"}) != first  # what was refused was not done
        answers = []
        both = [threading.Thread(target=lambda: answers.append(ops.ask("POST", "/messages", body, headers={"Idempotency-Key": "k-3"})))
                for _ in range(8)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        ids = {a[2]["message_id"] for a in answers if a[0] == 200}
        assert len(ids) == 1 and all(a[0] in (200, 409) for a in answers), answers
        rows = world.sql("SELECT count(*) FROM outbox_messages WHERE event_type = 'OrderCreated'")
        assert rows[0][0] == 4, rows


@test
def many_messages_come_in_as_lines():
    with Served() as world:
        world.token("ops", "operator")
        world.serve()
        ops, lines = world.api("ops"), {"Content-Type": "application/x-ndjson"}
        body = "".join(json.dumps({"destination": "shop", "event_type": "E", "payload": {"n": i}}) + "\n" for i in range(1100)).encode()
        made = ops.good("POST", "/messages/batch", body, headers=lines)
        assert len({m["message_id"] for m in made["items"]}) == 1100
        problem = ops.bad(400, "INVALID", "POST", "/messages/batch", body + b"nonsense\n", headers=lines)
        assert problem["detail"].startswith("line 1101:"), problem
        until(lambda: world.sql("SELECT count(*) FROM outbox_messages WHERE status = 'sent'")[0][0] == 1100, "all leave, and no other")


# ---- what is refused ----

@test
def what_is_wrong_is_said_with_its_field():
    with Served() as world:
        world.token("ops", "admin")
        world.serve()
        ops = world.api("ops")
        problem = ops.bad(400, "INVALID", "GET", "/messages", query={"limit": "0"})
        assert problem["errors"][0]["parameter"] == "limit", problem
        problem = ops.bad(400, "INVALID", "POST", "/dead-letters/requeue", {"filtr": "x"})
        assert problem["errors"][0]["pointer"] == "#/filtr" and "filter" in problem["detail"], problem
        ops.bad(400, "INVALID", "GET", "/dead-letters", query={"filter": "nonsense:1"})
        ops.bad(404, "NOTFOUND", "GET", "/dead-letters/999999")
        ops.bad(404, "NOTFOUND", "GET", "/messages/no-such")
        ops.bad(404, "NO_SUCH_PATH", "GET", "/nonsense")
        ops.bad(404, "NO_SUCH_PATH", "GET", "/dead-letters/1/nonsense")
        status, headers, _ = ops.ask("DELETE", "/messages")
        assert status == 405 and set(headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}, dict(headers)
        ops.bad(415, "UNSUPPORTED_MEDIA_TYPE", "POST", "/messages", b"{}", headers={"Content-Type": "text/plain"})
        ops.bad(415, "UNSUPPORTED_MEDIA_TYPE", "POST", "/dead-letters/discard", b"{}", headers={"Content-Type": "text/plain"})
        ops.bad(400, "INVALID", "POST", "/messages", b"[1]")
        ops.bad(400, "INVALID", "POST", "/messages", b'{"event_type":"X"')
        try:
            status, _, _ = ops.ask("POST", "/dead-letters/discard", b"{" + b" " * (2 << 20) + b"}")
        except (BrokenPipeError, ConnectionResetError):
            status = 413  # it was cut off before it had said everything
        assert status == 413, status
        status, _, _ = ops.ask("GET", "/status", b"{}")
        assert status == 413, status
        world.relay.stop()
        assert "Sanitizer" not in world.relay.log()


@test
def a_page_elsewhere_cannot_use_a_browser_to_ask():
    with Served() as world:
        world.serve()
        here = Api(world.address)  # no tokens yet: whoever is on this machine
        assert here.good("GET", "/status")["now"]
        body = {"destination": "shop", "event_type": "E", "payload": {}}
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Host": f"evil.example:{here.port}"}):
            status, _, answer = here.ask("POST", "/messages", body, headers=headers)
            assert (status, answer["code"]) in ((403, "DENIED"), (421, "MISDIRECTED")), (headers, status, answer)
        assert world.sql("SELECT count(*) FROM outbox_messages")[0][0] == 0
        status, headers, _ = here.ask("GET", "/status", headers={"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in headers


@test
def a_slow_caller_delays_nobody():
    with Served() as world:
        world.serve()
        held = []
        for i in range(40):
            s = socket.create_connection((Api(world.address).host, int(Api(world.address).port)), timeout=60)
            s.sendall(b"POST /api/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            held.append(s)
        assert Api(world.address).ask("GET", "/livez")[0] == 200
        assert Api(world.address).good("GET", "/status")["now"]
        world.insert(message_id="m")
        until(lambda: world.sql("SELECT status FROM outbox_messages WHERE message_id = 'm'") == [("sent",)], "deliveries go on")
        for s in held:
            s.close()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
