#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kafka as a destination: a real relay and a real broker, killed, stopped and wrongly configured. Speaks TAP.

Usage: kafka.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import collections
import functools
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
import kafka_broker
import oauth
from kafka_broker import PASSWORD, Broker
from support import BINARY, QUICK, World, clean_environment, run_tests, until

TESTS = []
N = int(os.environ.get("N", "10000"))
LOOPBACK = ["127.0.0.1/32", "::1/128"]  # not 127.0.0.2, which one listener announces
SOON = {**QUICK, "timeout": "7s", "max_attempts": 2, "classes": {"unknown": {"max_attempts": 2}}}
HARD = {"backoff": {"kind": "fixed", "base": "200ms"}, "jitter": "none", "max_attempts": 100, "timeout": "10s", "breaker": "off"}


def test(function):
    TESTS.append(function)
    return function


@functools.cache
def broker():
    b = Broker()
    b.make_topics(orders=[], small=["max.message.bytes=1000"], private=[], heavy=[], cut=[])
    b.forbid("private")
    return b


def sasl(mechanism, **more):
    return {"mechanism": mechanism, "user": "relay", "password": PASSWORD, **more}


def kafka(listener="plain", topic="orders", allow=None, order="none", policy="soon", **more):
    tls = {"tls": True, "ca_file": str(broker().ca)} if listener == "tls" else {}
    return {"kafka": {"brokers": broker().at(listener), "topic": topic, **tls, **more}, "allow": allow or LOOPBACK, "order": order, "policy": policy}


class KafkaWorld(World):
    def __init__(self, **destinations):
        super().__init__(destinations=(), policies={"soon": SOON, "patient": {**SOON, "timeout": "30s"}, "hard": HARD}, relay={"history": "all"})
        self.config["destinations"] = destinations
        self.write_config()

    def is_all_over(self, n):
        until(lambda: sum(self.statuses("status IN ('sent', 'dead')").values()) == n, lambda: f"an end of all, not {self.statuses()}")

    def attempts(self, message_id):
        return json.loads(self.hikyaku("messages", "show", message_id, "--json"))["attempts"]


@test
def each_way_in_and_what_a_record_holds():
    broker()
    with KafkaWorld() as w:
        w.path("token").write_text(kafka_broker.token(3600))
        w.config["destinations"] = {
            "plain": kafka(), "events": kafka(cloudevents="binary", topic="{destination}"),
            "password": kafka("sasl", sasl=sasl("PLAIN")), "secure": kafka("tls", sasl=sasl("PLAIN"), compression="zstd"),
            "token": kafka("sasl", sasl={"mechanism": "OAUTHBEARER", "token_file": str(w.path("token"))})}
        w.config["destinations"]["events"]["kafka"]["topic"] = "orders"
        w.write_config()
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        for name in w.config["destinations"]:
            w.insert(destination=name, message_id=f"in-{name}", payload=json.dumps({"way": name}), message_key="abc", correlation_id="corr-1",
                     traceparent=trace, headers='{"X-Tenant": "acme"}')
        relay = w.daemon().ready()
        until(lambda: sum(w.statuses(f"status IN ('sent', 'dead')").values()) == len(w.config["destinations"]), "an end of all")
        assert not w.letters(), w.sql("SELECT message_id, error_message FROM dead_letters")
        relay.stop()
        assert PASSWORD not in relay.log() and "seccomp=on" in relay.log()
        found = {r.headers.get("message-id", r.headers.get("ce_id")): r for r in broker().records("orders")}
        for name in w.config["destinations"]:
            r = found[f"in-{name}"]
            assert (json.loads(r.value), r.key, r.headers["X-Tenant"], r.headers["content-type"]) == ({"way": name}, "abc", "acme", "application/json"), r
            assert r.headers["correlation-id"] == "corr-1" and r.headers["traceparent"].split("-")[1] == trace.split("-")[1], r
            done = w.attempts(f"in-{name}")[-1]
            assert json.loads(done["response_headers"]) == {"partition": str(r.partition), "offset": str(r.offset)}, (done, r)
        assert len({r.partition for r in found.values()}) == 1, "a key has one partition"
        assert found["in-plain"].headers["event-type"] == "OrderCreated"
        event = found["in-events"].headers
        assert (event["ce_specversion"], event["ce_type"], event["ce_source"]) == ("1.0", "OrderCreated", "/hikyaku") and "event-type" not in event, event


@test
def tokens_of_an_endpoint_log_in_and_are_renewed():
    """By client credentials, from Authlib's server. They live for ten seconds, and the broker ends each session after eight: without new
    tokens messages would stop."""
    broker()
    with KafkaWorld() as w:
        server = oauth.Server(w)
        server.rule(subject="relay", life=10)
        oauth2 = {"token_url": f"http://127.0.0.1:{server.port}/token", "client_id": "relay@shop", "client_secret": "${CLIENT_SECRET}", "scope": "hooks:write"}

        def by(**more):
            return kafka("sasl", sasl={"mechanism": "OAUTHBEARER", "oauth2": {**oauth2, **more}})
        w.config["destinations"] = {"good": by(), "wrong": by(client_secret="${WRONG_SECRET}"), "nobody": by(token_url="http://127.0.0.1:1/token")}
        w.write_config()
        relay = w.daemon(env=oauth.ENV).ready()
        for name in ("wrong", "nobody"):
            w.insert(destination=name, message_id=name)
        first, n = time.monotonic(), 0
        while time.monotonic() < first + 25 or server.counts()["token"] < 4:
            w.insert(destination="good", message_id=f"flow-{n:04d}")
            n += 1
            time.sleep(0.2)
        w.is_all_over(n + 2)
        assert w.letters() == {"wrong": "AUTH_FAILED", "nobody": "RETRY_EXHAUSTED"}, w.letters()
        wrong, nobody = (w.sql("SELECT error_message FROM dead_letters WHERE message_id = ?", name)[0][0] for name in ("wrong", "nobody"))
        assert "token endpoint: HTTP 401 invalid_client" in wrong, wrong
        assert "token_unavailable" in json.dumps(w.attempts("nobody")).lower() and "refused" in json.dumps(w.attempts("nobody")), (nobody, w.attempts("nobody"))
        attempts = w.sql("SELECT count(*) FROM outbox_attempts WHERE message_id LIKE 'flow-%' AND class <> 'success'")
        assert attempts == [(0,)], attempts
        said = w.hikyaku_with(oauth.ENV, "doctor")
        assert "'good': 1 broker; topic orders has 4 partitions" in said and "'wrong': _AUTHENTICATION: token endpoint: HTTP 401" in said, said
        relay.stop()
        for secret in (oauth.SECRET, oauth.WRONG, "eyJ"):
            assert secret not in relay.log() + said, secret


@test
def scram_logs_in():
    """Kafka 4 refuses it from a librdkafka older than 2.6.1: then the error says so. An older Kafka takes it from all."""
    old = Broker(kafka_broker.OLD)
    try:
        old.make_topics(orders=[])
        with KafkaWorld() as w:
            for way in ("256", "512"):
                w.config["destinations"][f"old{way}"] = kafka("sasl", sasl=sasl(f"SCRAM-SHA-{way}"))
                w.config["destinations"][f"old{way}"]["kafka"]["brokers"] = old.at("sasl")
                w.config["destinations"][f"new{way}"] = kafka("sasl", sasl=sasl(f"SCRAM-SHA-{way}"))
            w.write_config()
            for name in w.config["destinations"]:
                w.insert(destination=name, message_id=name)
            w.daemon().ready()
            until(lambda: sum(w.statuses("status IN ('sent', 'dead')").values()) == 4, lambda: f"an end of all, not {w.statuses()}")
            assert {m for m, in w.sql("SELECT message_id FROM outbox_messages WHERE status = 'sent'")} >= {"old256", "old512"}, w.letters()
            for reason, error in w.sql("SELECT reason_code, error_message FROM dead_letters"):
                assert reason == "AUTH_FAILED" and "older than 2.6.1" in error, error
    finally:
        old.close()


@test
def each_refusal_is_a_dead_letter_in_the_brokers_words():
    big = json.dumps({"big": os.urandom(1000).hex()})
    cases = {  # destination, its settings, reason code, what the error says
        "missing": (kafka(topic="no-such-topic", policy="patient"), "BROKER_REFUSED", "UNKNOWN_TOPIC_OR_PART"),
        "small": (kafka(topic="small"), "BROKER_REFUSED", "MSG_SIZE_TOO_LARGE: Broker: Message size too large"),
        "forbidden": (kafka("sasl", topic="private", sasl=sasl("PLAIN")), "AUTH_FAILED", "TOPIC_AUTHORIZATION_FAILED"),
        "stranger": (kafka("sasl", sasl=sasl("PLAIN", password="wrong-horse")), "AUTH_FAILED", "_AUTHENTICATION"),
        "stranger2": (kafka("sasl", sasl=sasl("SCRAM-SHA-256", password="wrong-horse")), "AUTH_FAILED", "_AUTHENTICATION"),
        "untrusted": ({**kafka("tls", sasl=sasl("PLAIN"))}, "RETRY_EXHAUSTED", "certificate verify failed"),
        "elsewhere": (kafka("elsewhere"), "BLOCKED_BY_POLICY", "127.0.0.2"),
        "nameless": (kafka(topic="events.{event_type}"), "VALIDATION_ERROR", "may hold letters"),
        "nobody": (kafka(), "RETRY_EXHAUSTED", "refused"),
    }
    cases["untrusted"][0]["kafka"].pop("ca_file")
    cases["nobody"][0]["kafka"]["brokers"] = "127.0.0.1:1"
    with KafkaWorld(**{name: case[0] for name, case in cases.items()}) as w:
        for name in cases:
            w.insert(destination=name, message_id=f"no-{name}", event_type="Order created!" if name == "nameless" else "OrderCreated",
                     payload=big if name == "small" else "{}")
        for i in range(50):  # a batch with a message that is too large takes none of the others along
            w.insert(destination="small", message_id=f"fits-{i:02d}", payload=json.dumps({"i": i, "some": "x" * 300}))
        relay = w.daemon().ready()
        w.settled(dead=len(cases), sent=50)
        for name, (_, reason, words) in cases.items():
            found, error = w.sql("SELECT reason_code, error_message FROM dead_letters WHERE message_id = ?", f"no-{name}")[0]
            last = [a for a in w.attempts(f"no-{name}") if a["error"]]
            said = error + (last[-1]["error"] if last else "")
            assert found == reason and words in said, (name, found, said)
            assert not any(a["possibly_delivered"] for a in last), (name, last)
        shown = w.hikyaku("dead", "show", "no-small")
        assert '"topic":"small","code":"MSG_SIZE_TOO_LARGE"' in shown and ", failed after " in shown and "no answer" not in shown, shown
        relay.stop()
        assert "horse" not in relay.log(), "a password in the log"
        assert sorted(r.headers["message-id"] for r in broker().records("small")) == [f"fits-{i:02d}" for i in range(50)]


@test
def doctor_and_test_ask_the_cluster():
    with KafkaWorld(good=kafka(), missing=kafka(topic="no-such-topic", policy="patient"), stranger=kafka("sasl", sasl=sasl("PLAIN", password="wrong-horse"))) as w:
        _, said = w.try_hikyaku("doctor")
        assert "'good': 1 broker; topic orders has 4 partitions" in said, said
        assert "'missing': topic no-such-topic: the cluster has none of that name" in said, said
        assert "'stranger': _AUTHENTICATION" in said and "horse" not in said, said
        done = subprocess.run([BINARY, "--config", str(w.config_path), "doctor"], capture_output=True, text=True, check=False,
                              env={**clean_environment(), "HIKYAKU_MODULES": str(w.folder)})
        assert "the module for kafka is not installed" in done.stdout and "install hikyaku-kafka" in done.stdout, done.stdout
        code, said = w.try_hikyaku("destinations", "test", "good")
        assert code == 0 and '"offset":"' in said, said
        code, said = w.try_hikyaku("destinations", "test", "missing")
        assert code != 0 and "UNKNOWN_TOPIC_OR_PART" in said, said


def check_order(records, keys):
    """Each key's messages come for the first time in the order in which they were written."""
    for key in range(keys):
        mine = [r for r in records if r.key == f"k{key}"]
        assert len({r.partition for r in mine}) <= 1, key
        seen = list(dict.fromkeys(json.loads(r.value)["i"] for r in sorted(mine, key=lambda r: r.offset)))
        assert seen == sorted(seen), (key, seen[:50])


@test
def nothing_is_lost_though_broker_and_relay_are_killed():
    keys = 100
    with KafkaWorld(heavy=kafka(topic="heavy", order="key", policy="hard")) as w:
        def write(start, end):
            db = w.connect()
            db.execute("BEGIN IMMEDIATE")
            for i in range(start, end):
                w.insert(db=db, destination="heavy", message_id=f"h-{i:05d}", message_key=f"k{i % keys}", payload=json.dumps({"i": i}))
            db.execute("COMMIT")
            db.close()

        def sent(more):
            return until(lambda: w.statuses().get("sent", 0) >= more, lambda: f"{more} sent, not {w.statuses()}")
        write(0, N // 4)
        relay = w.daemon().ready()
        sent(N // 20)
        relay.kill()
        write(N // 4, N // 2)
        relay = w.daemon().ready()
        sent(N // 8)
        broker().end(signal.SIGTERM)
        write(N // 2, 3 * N // 4)
        broker().start()
        sent(N // 4)
        broker().end(signal.SIGKILL)
        time.sleep(1)
        relay.kill()
        relay = w.daemon().ready()
        write(3 * N // 4, N)
        broker().start()
        w.settled(sent=N)
        relay.stop()
        judge(w, "heavy", {f"h-{i:05d}" for i in range(N)}, keys)


def judge(w, topic, ids, keys):
    """Nothing lost or invented, order kept, and no more copies than attempts that may have arrived allow."""
    records = broker().records(topic)
    copies = collections.Counter(r.headers["message-id"] for r in records)
    assert set(copies) == ids, (ids - set(copies), set(copies) - ids)
    ambiguous = dict(w.sql("SELECT message_id, count(*) FROM outbox_attempts WHERE possibly_delivered <> 0 GROUP BY message_id"))
    for message_id, n in copies.items():
        assert n <= 1 + ambiguous.get(message_id, 0), (message_id, n, w.attempts(message_id))
    check_order(records, keys)
    print(f"# {len(records) - len(ids)} repeats of {sum(ambiguous.values())} ambiguous attempts")


@test
def nothing_is_lost_when_connections_are_cut():
    keys, n = 20, 1000
    cutter = broker().cutter
    with KafkaWorld(cut=kafka(topic="cut", order="key", policy="hard")) as w:
        w.config["destinations"]["cut"]["kafka"]["brokers"] = f"127.0.0.1:{cutter.port}"
        w.write_config()
        cutter.cuts = [("up", 3), ("down", 5), ("down", 400), ("up", 150), ("up", 2000), ("down", 900), ("up", 5001), ("down", 1300), ("up", 9000), ("down", 2100)]
        before = cutter.connections
        db = w.connect()
        db.execute("BEGIN IMMEDIATE")
        for i in range(n):
            w.insert(db=db, destination="cut", message_id=f"c-{i:05d}", message_key=f"k{i % keys}", payload=json.dumps({"i": i}))
        db.execute("COMMIT")
        db.close()
        relay = w.daemon().ready()
        w.settled(sent=n)
        assert not cutter.cuts and cutter.connections - before > 10, (cutter.cuts, cutter.connections - before)
        relay.stop()
        judge(w, "cut", {f"c-{i:05d}" for i in range(n)}, keys)


def main():
    try:
        return run_tests(TESTS)
    finally:
        if broker.cache_info().currsize:
            broker().close()


if __name__ == "__main__":
    sys.exit(main())
