#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Google Cloud Pub/Sub as a destination: Google's own emulator, and in front of it a server that checks tokens and fails. Speaks TAP.

Usage: pubsub.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them; MESSAGES=10000."""
import copy
import json
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from brokers import LOOPBACK, MESSAGES, BrokerWorld, certificate, freeze
from brokers_servers import Cutter
from pubsub_servers import PROJECT, Front, Key, data, emulator
from support import run_tests, until

TESTS = []
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test(function):
    TESTS.append(function)
    return function


class PubsubWorld(BrokerWorld):
    def __init__(self, **more):
        super().__init__(**more)
        # a policy of its own; an answer that is cut within its header is a failure of the class unknown
        self.config["policies"] = copy.deepcopy(self.config["policies"])
        self.config["policies"]["patient"]["classes"]["unknown"] = {"max_attempts": 200}
        self.write_config()

    def topic(self, name, order="none", **options):
        self.to(name, "pubsub", order=order, **{"project": PROJECT, "topic": name, **options})

    def keeps_no_secret(self, relay, *secrets):
        said = relay.log() + json.dumps(self.sql("SELECT error, request_headers, response_headers FROM outbox_attempts"))
        for secret in ("PRIVATE KEY", "Bearer ", *secrets):
            assert secret not in said, secret


@test
def its_refusals_are_dead_letters_in_its_own_words():
    with PubsubWorld() as w:
        google = emulator(w)
        at = {"emulator": f"http://127.0.0.1:{google.port}"}
        for name in ("orders", "ordered", "events", "gone"):
            google.topic(name)
        google.topic("strict", **google.schema("with-n", "n"))
        w.topic("orders", **at)
        w.topic("ordered", order="key", **at)
        w.topic("events", cloudevents="binary", **at)
        w.topic("strict", **at)
        w.topic("gone", **at)
        w.topic("missing", **at)
        w.topic("blocked", **at)
        del w.config["destinations"]["blocked"]["allow"]
        w.write_config()
        assert "ok" in w.hikyaku("config", "check")
        relay = w.daemon().ready()
        w.insert("orders", "Order", message_id="good", message_key="k1", payload='{"a":"é"}', content_type="application/json", correlation_id="c1",
                 traceparent=TRACE, headers='{"X-Tenant":"acme"}')
        w.insert("orders", "Order", message_id="bytes", payload="AP8=", encoding="base64")
        w.insert("orders", "Order", message_id="empty", payload="")
        w.insert("ordered", "Order", message_id="keyed", message_key="k1")
        w.insert("events", "Order", message_id="event", payload='{"a":1}', content_type="application/json")
        w.is_sent("good", "bytes", "empty", "keyed", "event")
        got = {m["attributes"]["message-id"]: m for m in google.drain("orders", 3)}
        attributes = got["good"]["attributes"]
        assert data(got["good"]) == '{"a":"é"}'.encode() and attributes.pop("traceparent").startswith(TRACE[:36]), got
        assert attributes == {"message-id": "good", "event-type": "Order", "message-key": "k1", "correlation-id": "c1",
                              "content-type": "application/json", "hikyaku-attempt": "1", "X-Tenant": "acme"}, attributes
        assert data(got["bytes"]) == b"\0\xff" and data(got["empty"]) == b"" and "orderingKey" not in got["good"], got
        keyed, = google.drain("ordered", 1)
        assert keyed["orderingKey"] == "k1" and "message-key" not in keyed["attributes"], keyed
        event, = google.drain("events", 1)
        assert (event["attributes"]["ce-id"], event["attributes"]["ce-type"], data(event)) == ("event", "Order", b'{"a":1}'), event
        # two bad messages among 200 good ones, in one request: the topic's schema refuses them
        w.hikyaku("destinations", "pause", "strict", "--actor", "ann", "--reason", "a test")
        good = w.insert_many(100, prefix="g", destination="strict", payload='{"n":1}')
        w.insert("strict", "Order", message_id="bad-1", payload='{"n":"one"}')
        good += w.insert_many(100, prefix="h", destination="strict", payload='{"n":2}')
        w.insert("strict", "Order", message_id="bad-2", payload="")
        w.hikyaku("destinations", "resume", "strict", "--actor", "ann", "--reason", "a test")
        w.is_dead_of("bad-1", "BROKER_REFUSED", "INVALID_ARGUMENT", "")
        w.is_dead_of("bad-2", "BROKER_REFUSED", "INVALID_ARGUMENT", "")
        w.is_sent(*good)
        assert sorted(m["attributes"]["message-id"] for m in google.drain("strict", 200)) == sorted(good)
        assert w.sql("SELECT count(*) FROM outbox_attempts WHERE message_id NOT LIKE 'bad%'") == [(0,)], "a half of a batch is no attempt"
        # the others
        w.insert("missing", "Order", message_id="missing")
        w.is_dead_of("missing", "BROKER_REFUSED", "NOT_FOUND", "Topic not found")
        w.insert("gone", "Order", message_id="there")
        w.is_sent("there")
        google.call("DELETE", "topics/gone")
        w.insert("gone", "Order", message_id="gone")
        w.is_dead_of("gone", "BROKER_REFUSED", "NOT_FOUND", "Topic not found")
        w.insert("blocked", "Order", message_id="blocked")
        assert w.letter("blocked")[0] == "BLOCKED_BY_POLICY", w.letter("blocked")
        w.insert("orders", "Order", message_id="long", headers=json.dumps({"X-Long": "x" * 1025}))
        assert w.letter("long")[0] == "VALIDATION_ERROR", w.letter("long")
        w.insert("ordered", "Order", message_id="key", message_key="k" * 1025)
        assert w.letter("key")[0] == "VALIDATION_ERROR" and "1025 bytes" in w.letter("key")[1], w.letter("key")
        shown = json.loads(w.hikyaku("dead", "show", "missing", "--json"))
        assert f"projects/{PROJECT}/topics/missing" in json.dumps(shown), shown
        relay.stop()
        said = w.try_hikyaku("doctor")[1]
        assert "the topic is there, in an emulator" in said and "Topic not found" in said, said
        code, said = w.try_hikyaku("destinations", "test", "orders")
        assert code == 0 and "success" in said, said
        code, said = w.try_hikyaku("destinations", "test", "missing")
        assert code == 1 and "Topic not found" in said, said


@test
def a_token_is_signed_here_and_checked_there():
    with PubsubWorld(relay={"history": "all"}) as w:
        google, key, other = emulator(w), Key(w.folder), Key(w.folder, "other")
        pair = certificate(w.folder)
        front = Front(w, google, key, pair)
        google.topic("orders")
        at = {"endpoint": front.url, "ca_file": str(pair[0]), "topic": "orders"}
        w.topic("file", credentials_file=str(key.file), **at)
        w.topic("text", credentials="${GOOGLE_KEY}", **at)
        w.topic("wrong", credentials_file=str(other.file), **at)
        w.topic("nothing", credentials_file=str(w.path("nothing.json")), **at)
        w.topic("untrusted", credentials_file=str(key.file), endpoint=front.url, topic="orders")
        w.topic("usual", **at)  # by GOOGLE_APPLICATION_CREDENTIALS
        metadata = Front(w, google, key)
        w.topic("machine", metadata_server=metadata.url, endpoint=metadata.url, topic="orders")
        w.config["policies"]["patient"]["classes"]["unknown"] = {"max_attempts": 1}
        w.write_config()
        env = {"GOOGLE_KEY": key.text, "GOOGLE_APPLICATION_CREDENTIALS": str(key.file)}
        for name in ("file", "text", "usual", "machine"):
            w.insert_many(300, prefix=name, destination=name)
        relay = w.daemon(env=env).ready()
        w.is_sent(*(f"{name}-{i:04d}" for name in ("file", "text", "usual", "machine") for i in range(300)))
        assert front.denied == metadata.denied == 0 and metadata.given == 1, (front.denied, metadata.denied, metadata.given)
        assert 1 <= len(front.good) <= 3, "one for each destination"
        w.insert("wrong", "Order", message_id="wrong")
        w.is_dead_of("wrong", "AUTH_FAILED", "UNAUTHENTICATED", "its signature is wrong")
        w.insert("nothing", "Order", message_id="nothing")
        assert w.letter("nothing")[0] == "AUTH_FAILED" and "No such file" in w.letter("nothing")[1], w.letter("nothing")
        w.insert("untrusted", "Order", message_id="untrusted")
        assert "certificate" in w.letter("untrusted")[1], w.letter("untrusted")
        # all tokens are taken away in the middle of traffic: nobody's attempt fails
        time.sleep(1.1)  # a JWT of the same second would be the same one
        for one in (front, metadata):
            one.revoke()
        for name in ("file", "machine"):
            w.insert_many(300, prefix=f"then-{name}", destination=name)
        w.is_sent(*(f"then-{name}-{i:04d}" for name in ("file", "machine") for i in range(300)))
        assert metadata.given == 2, metadata.given
        failed = w.sql("SELECT message_id, error FROM outbox_attempts WHERE class <> 'success' AND message_id LIKE '%-0%'")
        assert not failed, failed[:3]
        # a right that is taken away
        front.allowed = False
        w.insert("file", "Order", message_id="revoked")
        w.is_dead_of("revoked", "AUTH_FAILED", "PERMISSION_DENIED", "not authorized")
        w.keeps_no_secret(relay, key.pem[40:90], "metadata-token", "eyJ")
        relay.stop()
        for allowed, says in ((True, "these credentials may publish to the topic"), (False, "may not publish to it")):
            front.allowed = allowed
            said = w.hikyaku_with(env, "doctor")
            assert says in said and "metadata-token" not in said and "PRIVATE" not in said, said
        # the configuration of the documentation
        front.allowed = True
        google.topic("page")
        said = w.page("pubsub.md", "orders", {"project: shop-prod": f"project: {PROJECT}", "topic: orders": "topic: page",
                                              "/etc/hikyaku/google.json": str(key.file),
                                              "https://asia-northeast1-pubsub.googleapis.com": front.url + f"\n      ca_file: {pair[0]}"}, {})
        assert "success" in said and len(google.drain("page", 1)) == 1, said


@test
def it_loses_nothing_through_cuts_kills_and_a_frozen_server():
    # The emulator keeps messages in memory: it is frozen, not killed.
    with PubsubWorld(event_log=True) as w:
        google = emulator(w)
        cutter = Cutter(google.port, [("down", 3), ("up", 10), ("down", 200), ("up", 20000), ("up", 70001), ("down", 1500), ("up", 150000)] * 2)
        w.stack.callback(cutter.close)
        google.topic("orders")
        w.topic("orders", order="key", emulator=f"http://127.0.0.1:{cutter.port}")

        w.storm("orders", google, [freeze])
        arrived = [json.loads(data(m))["n"] for m in google.drain("orders", MESSAGES)]
        print(f"# {w.judge(arrived, MESSAGES)}, {cutter.connections} connections")


@test
def order_per_key_is_kept_through_errors():
    def trouble(n, _):
        return {2: (503, "UNAVAILABLE"), 4: (429, "RESOURCE_EXHAUSTED"), 6: "lost", 7: (500, "INTERNAL"), 9: (400, "INVALID_ARGUMENT"),
                11: "lost", 13: (400, "FAILED_PRECONDITION")}.get(n % 16)

    n = min(MESSAGES, 1000)
    with PubsubWorld(event_log=True) as w:
        google, key = emulator(w), Key(w.folder)
        front = Front(w, google, key, script=lambda i, messages: trouble(i, messages) if len(messages) > 1 or i % 16 != 9 else None)
        google.topic("orders")
        w.topic("orders", order="key", endpoint=front.url, credentials_file=str(key.file))
        w.fill(n, "orders")
        relay = w.daemon()
        until(lambda: w.sent_count() == n, lambda: f"all to be sent, not {w.statuses()}: {relay.log()[-3000:]}")
        relay.stop()
        got = google.drain("orders", n)
        assert all(m["orderingKey"] == f"k{json.loads(data(m))['n'] % 40}" for m in got)
        print(f"# {w.judge([json.loads(data(m))['n'] for m in got], n)}, {front.requests} requests")


if __name__ == "__main__":
    assert LOOPBACK
    sys.exit(run_tests(TESTS))
