#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Access tokens by client credentials, from a real OAuth 2.0 server (Authlib) and to a receiver that asks it: tokens expire and are
revoked in the middle of traffic. By both HTTP clients. Speaks TAP.

Usage: oauth.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import contextlib
import http.client
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
import clients
from ports import free_port
from support import World, run_tests, until

SECRET, WRONG = "s3cret&of=the+relay", "not-the-secret-99"
ENV = {"CLIENT_SECRET": SECRET, "WRONG_SECRET": WRONG}
WAYS = {"own": "own", "libcurl": "{destination}"}  # a URL with fields of the message is left to libcurl
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Server:
    def __init__(self, world):
        self.port, self.python = free_port(), clients.authlib()
        self.out = open(world.path("oauth.log"), "ab")
        self.start(world)

    def start(self, world):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "oauth_server.py")
        world.child(str(self.python), script, str(self.port), stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out,
                    env={**os.environ, **ENV})
        until(self.answers, "the OAuth server", 60)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def answers(self):
        with contextlib.suppress(OSError):
            return bool(self.ask("GET", "/seen"))
        return False

    def rule(self, **rules):
        self.ask("POST", "/rules", json.dumps(rules))

    def counts(self):
        return {"token": 0, "hook": 0, "denied": 0, **self.ask("GET", "/seen")["counts"]}

    def received(self, prefix=""):
        return [i for i, _ in self.ask("GET", "/seen")["received"] if i.startswith(prefix)]


class Shop(World):
    def __init__(self, auth=None, **more):
        super().__init__(destinations=(), **more)
        self.server = Server(self)
        self.oauth = {"token_url": f"http://127.0.0.1:{self.server.port}/token", "client_id": "relay@shop",
                      "client_secret": "${CLIENT_SECRET}", "scope": "hooks:write", **(auth or {})}
        for way, path in WAYS.items():
            self.config["destinations"][way] = {
                "http": {"url": f"http://127.0.0.1:{self.server.port}/hooks/{path}", "auth": {"oauth2": self.oauth}},
                "allow": ["127.0.0.0/8", "::1/128"], "breaker": "off"}
        self.config["policies"]["quick"] = {"max_attempts": 1000, "backoff": {"kind": "fixed", "base": "300ms"}, "breaker": "off"}
        self.config["relay"]["history"] = "all"
        self.write_config()

    def daemon(self, name="relay", env=None, **more):
        return super().daemon(name, env={**ENV, **(env or {})}, **more)

    def go(self, n, prefix):
        for way in WAYS:
            self.insert_many(n, f"{prefix}-{way}", destination=way)

    def attempts(self, prefix):
        return self.sql("SELECT message_id, class, cause, status, error, request_headers FROM outbox_attempts "
                        f"WHERE message_id LIKE '{prefix}%' ORDER BY id")

    def keeps_no_secret(self, daemon):
        for secret in (SECRET, WRONG, "token-", "cmVsYXk"):
            assert secret not in daemon.log(), secret
            for file in self.folder.glob("outbox.db*"):
                assert secret.encode() not in file.read_bytes(), (secret, file)


@test
def one_token_carries_many_messages():
    with Shop() as w:
        w.server.rule(delay=0.5)  # all are there before the first token is
        w.go(60, "many")
        daemon = w.daemon().ready()
        w.settled(sent=120)
        counts = w.server.counts()
        assert counts["token"] == 2 and counts["denied"] == 0 and counts["by client_secret_basic"] >= 2, counts  # one for each destination
        assert sorted(w.server.received()) == sorted(set(w.server.received())) and len(w.server.received()) == 120
        assert {(cls, status) for _, cls, _, status, *_ in w.attempts("many")} == {("success", 204)}
        daemon.stop()
        w.keeps_no_secret(daemon)


@test
def a_token_expires_in_the_middle_of_traffic():
    with Shop({"client_auth": "body"}) as w:
        w.server.rule(life=3)
        daemon, until_s, n = w.daemon().ready(), time.monotonic() + 8, 0
        while time.monotonic() < until_s:
            w.go(1, f"flow{n}")
            n += 1
            time.sleep(0.05)
        w.settled(sent=2 * n)
        counts = w.server.counts()
        assert counts["denied"] == 0, counts  # none went out with a token that had expired
        assert 4 <= counts["token"] <= 12, counts
        assert counts["by client_secret_post"] >= counts["token"], counts
        assert all(a[1] == "success" for a in w.attempts("flow"))
        assert len(w.server.received()) == 2 * n
        print(f"# {2 * n} messages, {counts['token']} tokens")
        daemon.stop()
        w.keeps_no_secret(daemon)


@test
def a_401_fetches_one_token_and_repeats_once():
    with Shop() as w:
        daemon = w.daemon().ready()
        w.go(1, "first")
        w.settled(sent=2)
        before = w.server.counts()
        w.server.rule(revoked=True, delay=0.3)
        w.go(40, "revoked")
        w.settled(sent=82)
        counts = w.server.counts()
        assert counts["token"] == before["token"] + 2, (before, counts)  # one for each destination
        assert 2 <= counts["denied"] <= 80, counts
        assert counts["hook"] == before["hook"] + 80 + counts["denied"], (before, counts)
        rows = w.attempts("revoked")
        assert len(rows) == 80 and all(r[1] == "success" for r in rows)  # the repeat is part of the attempt
        assert len(w.server.received("revoked")) == 80
        # a receiver that takes no token at all
        before = counts
        w.server.rule(deny=True, delay=0)
        w.go(1, "denied")
        w.settled(sent=82, dead=2)
        after = w.server.counts()
        assert after["hook"] == before["hook"] + 4 and after["token"] == before["token"] + 2, (before, after)
        rows = w.attempts("denied")
        assert [(r[1], r[2], r[3]) for r in rows] == [("auth", "AUTH_FAILED", 401)] * 2
        assert all(json.loads(r[5])["Authorization"] == "***" for r in rows), rows
        daemon.stop()
        w.keeps_no_secret(daemon)


@test
def an_endpoint_that_is_down_is_no_failure_of_the_credentials():
    with Shop() as w:
        w.server.rule(status=503, text="not now")
        w.go(5, "wait")
        daemon = w.daemon().ready()
        until(lambda: len(w.attempts("wait")) >= 10, "attempts")
        for row in w.attempts("wait"):
            assert (row[1], row[2], row[3]) == ("transient", "TOKEN_UNAVAILABLE", 0) and "token endpoint: HTTP 503" in row[4], row
        assert w.server.counts()["hook"] == 0
        asked = w.server.counts()["token"]
        assert asked < len(w.attempts("wait")), asked  # who fails together asks together
        w.server.rule(status=200, text="no JSON")
        until(lambda: [r for r in w.attempts("wait") if "did not answer with a JSON object" in r[4]], "that")
        w.server.rule(status=200, text='{"access_token": "a b", "token_type": "bearer"}')
        until(lambda: [r for r in w.attempts("wait") if "cannot stand in a header field" in r[4]], "that")
        w.server.rule(status=0)
        w.settled(sent=10)
        daemon.stop()
        w.keeps_no_secret(daemon)


@test
def wrong_credentials_are_told_in_the_endpoints_words():
    with Shop() as w:
        closed = free_port()
        for name, auth in {"wrong": {"client_secret": "${WRONG_SECRET}"},
                           "in-body": {"client_secret": "${WRONG_SECRET}", "client_auth": "body"}, "nobody": {"client_id": "nobody"},
                           "closed": {"token_url": f"http://127.0.0.1:{closed}/token"},
                           "inside": {"token_url": "http://10.1.2.3/token"}}.items():
            w.config["destinations"][name] = {
                "http": {"url": w.receiver.url(name), "auth": {"oauth2": {**w.oauth, **auth}}}, "allow": ["127.0.0.0/8"], "breaker": "off"}
        w.config["policies"]["quick"]["backoff"]["base"] = "60s"
        w.write_config()
        daemon = w.daemon().ready()
        for name in ("wrong", "in-body", "nobody", "closed", "inside"):
            w.insert(destination=name, message_id=f"x-{name}")
        letters = {"x-wrong": "AUTH_FAILED", "x-in-body": "AUTH_FAILED", "x-nobody": "AUTH_FAILED", "x-inside": "BLOCKED_BY_POLICY"}
        until(lambda: w.letters() == letters, lambda: f"{letters}, not {w.letters()}")
        errors = dict(w.sql("SELECT message_id, error_message FROM dead_letters"))
        for name in ("x-wrong", "x-in-body", "x-nobody"):
            assert "token endpoint: HTTP 40" in errors[name] and "invalid_client" in errors[name], errors
        assert "token endpoint: blocked: 10.1.2.3" in errors["x-inside"], errors
        rows = until(lambda: w.attempts("x-closed"), "the closed one")
        assert rows[0][1:3] == ("transient", "TOKEN_UNAVAILABLE"), rows
        assert not w.receiver.arrived()
        daemon.stop()
        w.keeps_no_secret(daemon)


@test
def a_relay_stops_though_an_endpoint_says_nothing():
    with Shop(policies={"short": {"max_attempts": 5, "timeout": "2s", "backoff": {"kind": "fixed", "base": "300ms"}, "breaker": "off"}}) as w:
        for destination in w.config["destinations"].values():
            destination["policy"] = "short"
        w.write_config()
        w.server.rule(delay=12)
        w.go(3, "late")
        daemon = w.daemon().ready()
        rows = until(lambda: w.attempts("late"), "an attempt")
        assert rows[0][1:3] == ("transient", "TOKEN_UNAVAILABLE") and "did not answer in time" in rows[0][4], rows
        began = time.monotonic()
        daemon.stop()
        assert time.monotonic() - began < 10  # the endpoint still thinks
        assert w.server.counts()["token"] == 2 and w.server.counts()["hook"] == 0
        w.server.rule(delay=0)
        second = w.daemon("second").ready()
        w.settled(sent=6)
        second.stop()
        w.keeps_no_secret(second)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
