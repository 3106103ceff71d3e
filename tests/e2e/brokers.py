#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Destinations that are brokers, on real ones: what each refusal becomes, and 10,000 messages through cut connections, kills and restarts.
Speaks TAP.

Usage: brokers.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one; MESSAGES=10000."""
import base64
import binascii
import collections
import contextlib
import functools
import json
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from brokers_servers import Amqp, Cutter, Mosquitto, MqttClient, Nats, NatsClient, Rabbit, Redis, RedisClient
from ports import free_port
from support import BINARY, World, clean_environment, run_tests, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = []
MESSAGES = int(os.environ.get("MESSAGES", "10000"))
KEYS = 40
LOOPBACK = ["127.0.0.0/8"]
POLICY = {"preset": "standard", "backoff": {"base": "50ms", "cap": "1s"}, "jitter": "none", "breaker": "off", "max_attempts": 200,
          "timeout": "10s", "classes": {"auth": {"pause_after": 0}, "rate_limit": {"backoff": {"kind": "fixed", "base": "200ms"}}}}


def test(function):
    TESTS.append(function)
    return function


class BrokerWorld(World):
    def __init__(self, **more):
        self.brokers, self.stack = [], contextlib.ExitStack()
        super().__init__(destinations=(), policies={"patient": POLICY}, default_policy="patient", **more)

    def __exit__(self, *args):
        for broker in self.brokers:
            broker.kill()
        self.stack.close()
        super().__exit__(*args)

    def free_port(self):
        self.last_port = free_port()
        return self.last_port

    def to(self, name, kind, order="none", **options):
        self.config["destinations"][name] = {kind: options, "allow": LOOPBACK, "order": order}
        self.write_config()

    def page(self, name, destination, replace, env):
        """Sends a test message with the configuration of a page of the documentation."""
        text = (ROOT / "docs" / name).read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
        for old, new in replace.items():
            assert old in text, (old, text)
            text = text.replace(old, new)
        path = self.path("page.yaml")
        path.write_text(text.replace(f"  {destination}:\n", f"  {destination}:\n    allow: [127.0.0.0/8, '::1']\n"), encoding="utf-8")
        done = subprocess.run([BINARY, "--config", str(path), "destinations", "test", destination], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False, env={**clean_environment(), **env})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def letter(self, message_id):
        """(reason, error, the broker's code and words) once it is dead."""
        def row():
            return self.sql("SELECT reason_code, error_message, error_detail FROM dead_letters WHERE message_id = ?", message_id)
        found = until(row, lambda: f"{message_id} dead, not {self.statuses()}: {self.sql('SELECT message_id, last_error FROM outbox_messages')[:5]}")[0]
        detail = json.loads(found[2] or '{"possibly_delivered": false}')  # what was never sent has none
        said = detail.get("response_headers") or {}
        said = json.loads(said) if isinstance(said, str) else said
        return found[0], found[1], said.get("code"), said.get("text"), detail["possibly_delivered"]

    def is_dead_of(self, message_id, reason, code, words, possibly=False):
        got = self.letter(message_id)
        assert (got[0], got[2], got[4]) == (reason, code, possibly), got
        assert words in (got[3] or got[1]), got

    def is_sent(self, *ids):
        def left():
            return [(i, self.message(i)[0]) for i in ids if self.message(i)[0] != "sent"]
        until(lambda: not left(), lambda: f"sent, not {left()}: {self.sql('SELECT message_id, last_error FROM outbox_messages')[:5]}")

    def fill(self, n, destination, pad=200):
        """n messages of KEYS keys, in the order of their numbers."""
        db = self.connect()
        for first in range(0, n, 1000):
            db.execute("BEGIN IMMEDIATE")
            for i in range(first, min(first + 1000, n)):
                self.insert(db=db, destination=destination, message_id=f"m-{i:05d}", message_key=f"k{i % KEYS}",
                            payload=json.dumps({"n": i, "pad": "x" * pad}))
            db.execute("COMMIT")
        db.close()

    def sent_count(self):
        return self.statuses().get("sent", 0)

    def judge(self, arrived, n):
        """`arrived`: the numbers in the order in which the broker has them. Nothing lost, order per key kept, no copy without an attempt
        that may have arrived, none of an attempt that is said not to have."""
        assert self.statuses() == {"sent": n}, self.statuses()
        copies = collections.Counter(arrived)
        missing = set(range(n)) - set(copies)
        assert not missing and set(copies) == set(range(n)), f"{len(missing)} are lost, such as {sorted(missing)[:5]}"
        seen = {}
        for i in arrived:
            first = i not in seen.setdefault(i % KEYS, set())
            assert not first or i >= max(seen[i % KEYS], default=-1), f"{i} came behind {max(seen[i % KEYS])}"
            seen[i % KEYS].add(i)
        sends, surely_not = collections.Counter(), collections.Counter()
        for line in self.events.lines():
            if line["ev"] == "send":
                sends[line["m"]] += 1
            if line["ev"] == "busy" or (line["ev"] == "fail" and not line["maybe"]):
                surely_not[line["m"]] += 1
        for i, count in copies.items():
            m = f"m-{i:05d}"
            assert count <= sends[m] - surely_not[m], f"{m}: {count} copies, {sends[m]} attempts, {surely_not[m]} surely not"
        return f"{n} messages, {len(arrived) - n} repeats, {sum(sends.values())} attempts"

    def storm(self, destination, broker, troubles):
        """Sends MESSAGES while each of `troubles` happens in turn, and the relay is killed; between them some are sent."""
        self.fill(MESSAGES, destination)
        relay = self.daemon()
        for trouble in [*troubles, "kill the relay"]:
            before = self.sent_count()
            until(lambda: self.sent_count() > min(before + 300, MESSAGES - 1), lambda: f"more than {before} sent before: {trouble}\n{relay.log()[-2000:]}")
            if trouble == "kill the relay":
                relay.kill()
                relay = self.daemon()
            else:
                trouble(self, broker)
        until(lambda: self.sent_count() == MESSAGES, lambda: f"all to be sent, not {self.statuses()}: {relay.log()[-3000:]}")
        relay.ready()  # the last one may not even have begun, and would die of the signal
        relay.stop()
        return relay


def certificate(folder):
    """One of our own for localhost and 127.0.0.1. Returns (certificate, key)."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
                   check=True, capture_output=True)
    key.chmod(0o644)
    return cert, key


# ---- RabbitMQ ----

@test
def rabbitmq_its_refusals_are_dead_letters_in_its_own_words():
    with BrokerWorld() as w:
        cert, key = certificate(w.folder)
        rabbit = Rabbit(w, f"max_message_size = 65536\nlisteners.ssl.1 = 127.0.0.1:{w.free_port()}\nssl_options.cacertfile = {cert}\n"
                           f"ssl_options.certfile = {cert}\nssl_options.keyfile = {key}\n").start()
        url = f"amqp://127.0.0.1:{rabbit.port}"
        tls = f"amqps://localhost:{w.last_port}"
        rabbit.ctl("add_user", "relay", "right")
        rabbit.ctl("set_permissions", "relay", "", "^(events|there)$", "")
        admin = Amqp(rabbit.port)
        admin.exchange("events", "topic")
        admin.exchange("secret")
        admin.exchange("there")
        admin.queue("q")
        admin.queue("full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
        admin.bind("q", "events", "Order.#")
        admin.bind("q", "there", "Order")
        w.to("events", "amqp", url=url, exchange="events", routing_key="{event_type}.{message_key}")
        w.to("queue", "amqp", url=url, routing_key="q", cloudevents="binary")
        w.to("lax", "amqp", url=url, exchange="events", mandatory=False, persistent=False)
        w.to("nowhere", "amqp", url=url, exchange="no-such-exchange")
        w.to("each", "amqp", url=url, exchange="{event_type}", routing_key="Order")
        w.to("full", "amqp", url=url, routing_key="full")
        w.to("secret", "amqp", url=url.replace("//", "//relay@"), password="right", exchange="secret")
        w.to("there", "amqp", url=url.replace("//", "//relay@"), password="right", exchange="there", routing_key="Order")
        w.to("wrong", "amqp", url=url.replace("//", "//relay@"), password="wrong", exchange="there")
        w.to("vhost", "amqp", url=url + "/nowhere")
        w.to("tls", "amqp", url=tls, routing_key="q", ca_file=str(cert))
        w.to("untrusted", "amqp", url=tls, routing_key="q")
        w.config["policies"]["patient"]["classes"]["unknown"] = {"max_attempts": 1}
        w.write_config()
        assert "ok" in w.hikyaku("config", "check")
        code, said = w.try_hikyaku("destinations", "test", "tls")
        assert code == 0 and "success" in said, said
        code, said = w.try_hikyaku("destinations", "test", "nowhere")
        assert code == 1 and "no exchange 'no-such-exchange'" in said, said
        assert admin.drain("q")
        relay = w.daemon().ready()
        w.insert("events", "Order", message_id="good", message_key="k1", payload="{\"a\":1}", content_type="application/json", correlation_id="c1",
                 traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", headers='{"X-Tenant":"acme"}')
        w.is_sent("good")
        (properties, body), = admin.drain("q")
        assert body == b'{"a":1}' and properties["delivery_mode"] == 2 and properties["content_type"] == "application/json", properties
        assert (properties["message_id"], properties["type"], properties["correlation_id"]) == ("good", "Order", "c1"), properties
        headers = properties["headers"]
        assert headers.pop("traceparent").startswith("00-0af7651916cd43dd8448eb211c80319c-"), headers
        assert headers == {"hikyaku-key": "k1", "hikyaku-attempt": "1", "X-Tenant": "acme"}, headers
        w.insert("queue", "Order", message_id="event", message_key="k1")
        w.is_sent("event")
        headers = admin.drain("q")[0][0]["headers"]
        assert (headers["cloudEvents_id"], headers["cloudEvents_type"], headers["cloudEvents_partitionkey"]) == ("event", "Order", "k1"), headers
        # each refusal
        w.insert("events", "Nobody", message_id="unroutable")
        w.is_dead_of("unroutable", "BROKER_REFUSED", "312", "NO_ROUTE")
        w.insert("lax", "Nobody", message_id="dropped")
        w.is_sent("dropped")
        w.insert("nowhere", "Order", message_id="nowhere")
        w.is_dead_of("nowhere", "BROKER_REFUSED", "404", "no exchange 'no-such-exchange'")
        w.insert("secret", "Order", message_id="secret")
        w.is_dead_of("secret", "AUTH_FAILED", "403", "access to exchange 'secret'")
        w.insert("wrong", "Order", message_id="wrong")
        w.is_dead_of("wrong", "AUTH_FAILED", "403", "ACCESS_REFUSED")
        w.insert("vhost", "Order", message_id="vhost")
        w.is_dead_of("vhost", "AUTH_FAILED", "530", "nowhere")
        w.insert("untrusted", "Order", message_id="untrusted")
        assert "certificate" in w.letter("untrusted")[1], w.letter("untrusted")
        w.insert("tls", "Order", message_id="by-tls")
        w.is_sent("by-tls")
        code, said = w.try_hikyaku("dead", "show", "unroutable", "--curl")
        assert code == 1 and "not an HTTP one" in said, said
        # one message that is too large, among a hundred good ones
        w.hikyaku("destinations", "pause", "events", "--actor", "ann", "--reason", "a test")
        good = w.insert_many(100, prefix="g", destination="events", event_type="Order", payload="x" * 500)
        w.insert("events", "Order", message_id="large", payload="x" * 100000)
        good += w.insert_many(100, prefix="h", destination="events", event_type="Order", payload="x" * 500)
        w.hikyaku("destinations", "resume", "events", "--actor", "ann", "--reason", "a test")
        w.is_dead_of("large", "BROKER_REFUSED", "406", "65536")
        w.is_sent(*good)
        admin.drain("q")
        # an exchange by event type: one that is missing takes nobody along
        good = w.insert_many(20, prefix="e", destination="each", event_type="there")
        w.insert("each", "missing", message_id="missing")
        good += w.insert_many(20, prefix="f", destination="each", event_type="there")
        w.is_dead_of("missing", "BROKER_REFUSED", "404", "no exchange 'missing'")
        w.is_sent(*good)
        # a right that is taken away, an exchange that goes, a queue that is full
        w.insert("there", "Order", message_id="allowed")
        w.is_sent("allowed")
        rabbit.ctl("set_permissions", "relay", "", "", "")
        rabbit.ctl("close_all_user_connections", "relay", "a test")
        w.insert("there", "Order", message_id="revoked")
        w.is_dead_of("revoked", "AUTH_FAILED", "403", "access to exchange 'there'")
        admin.delete_exchange("events")
        w.insert("events", "Order", message_id="gone")
        w.is_dead_of("gone", "BROKER_REFUSED", "404", "no exchange 'events'")
        ids = w.insert_many(2, prefix="full", destination="full")
        until(lambda: "RATE_LIMITED" in relay.log(), "the full queue's nack")
        assert len(admin.drain("full")) == 1
        until(lambda: admin.drain("full") or w.statuses("destination = 'full'") == {"sent": 2}, "room in the queue")
        w.is_sent(*ids)
        # a destination of the store, and what doctor says
        w.config["definitions"] = {"allow": LOOPBACK}
        w.write_config()
        relay.signal(1)
        relay.says("msg=reloaded")
        w.hikyaku("destinations", "create", "kept", "--definition", json.dumps({"amqp": {"url": url, "routing_key": "q"}, "allow": LOOPBACK}),
                  "--actor", "ann", "--reason", "a test")
        w.insert("kept", "Order", message_id="kept")
        w.is_sent("kept")
        assert "right" not in relay.log() and "password" not in relay.log()
        relay.stop()
        # the configuration of the documentation
        rabbit.ctl("add_vhost", "orders")
        rabbit.ctl("set_permissions", "-p", "orders", "relay", ".*", "^events$", "")
        rabbit.ctl("set_permissions", "-p", "orders", "guest", ".*", ".*", ".*")
        orders = Amqp(rabbit.port, vhost="orders")
        orders.exchange("events", "topic")
        orders.queue("q")
        orders.bind("q", "events", "#")
        said = w.page("rabbitmq.md", "orders", {"rabbit-1.example,rabbit-2.example": tls.split("/")[2], "/etc/hikyaku/ca.pem": str(cert)},
                      {"RABBIT_PASSWORD": "right"})
        assert "success" in said and len(orders.drain("q")) == 1, said
        orders.close()
        admin.close()
        w.to("broken", "amqp", url=tls, ca_file="/nowhere/ca.pem")
        said = w.try_hikyaku("doctor")[1]
        assert "'broken' cannot be used" in said and "ca.pem" in said, said


# ---- NATS ----

def nkey(seed=bytes(range(32))):
    """(seed, public key) as NATS writes them."""
    from cryptography.hazmat.primitives.asymmetric import ed25519  # pylint: disable=import-outside-toplevel
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # pylint: disable=import-outside-toplevel
    public = ed25519.Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def encode(data):
        data += binascii.crc_hqx(data, 0).to_bytes(2, "little")
        return base64.b32encode(data).decode().rstrip("=")
    return encode(bytes([18 << 3 | 20 << 3 >> 5, (20 << 3 << 3) & 0xff]) + seed), encode(bytes([20 << 3]) + public)


@test
def nats_its_refusals_are_dead_letters_in_its_own_words():
    with BrokerWorld() as w:
        cert, key = certificate(w.folder)
        seed, public = nkey()
        (w.folder / "relay.creds").write_text(f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n", encoding="ascii")
        users = f"""max_payload: 65536
            authorization {{ users: [
              {{user: admin, password: adminpass}},
              {{user: relay, password: right, permissions: {{publish: ["events.>", "nobody.>", "$JS.API.>"], subscribe: "_INBOX.>"}}}},
              {{user: few, password: right, permissions: {{publish: ["events.>", "nobody.>"], subscribe: "mine.>"}}}},
              {{nkey: {public}}} ] }}"""
        nats = Nats(w, users).start()
        secure = Nats(w, f"tls {{cert_file: \"{cert}\", key_file: \"{key}\"}}\nauthorization {{token: sesame}}", name="secure").start()
        admin = NatsClient(nats.port, user="admin", **{"pass": "adminpass"})
        admin.stream("E", "events.>", "both.>")
        admin.stream("S", "small.>", max_msgs=1, discard="new")
        admin.stream("L", "large.>", max_msg_size=1000)
        url, tls = f"nats://relay@127.0.0.1:{nats.port}", f"tls://localhost:{secure.port}"
        login = {"url": url, "password": "right"}
        every = {"url": f"nats://127.0.0.1:{nats.port}", "creds_file": str(w.folder / "relay.creds")}
        w.to("events", "nats", subject="events.{event_type}.{message_key}", **login)
        w.to("cloud", "nats", subject="events.cloud", cloudevents="binary", **login)
        w.to("nobody", "nats", subject="nobody.{event_type}", **login)
        w.to("few", "nats", url=url.replace("relay", "few"), password="right", inbox="mine", subject="nobody.{event_type}")
        w.to("noinbox", "nats", url=url.replace("relay", "few"), password="right", subject="events.a")
        w.to("denied", "nats", subject="denied.{event_type}", **login)
        w.to("wrong", "nats", url=url, password="wrong", subject="events.a")
        w.to("small", "nats", subject="small.a", **every)
        w.to("large", "nats", subject="large.a", **every)
        w.to("one", "nats", subject="both.one", **every)
        w.to("two", "nats", subject="both.two", **every)
        w.to("three", "nats", subject="both.three", msg_id="destination", **every)
        w.to("tls", "nats", url=tls, token="sesame", subject="events.tls", ca_file=str(cert))
        w.to("badtoken", "nats", url=tls, token="simsim", subject="events.tls", ca_file=str(cert))
        w.to("untrusted", "nats", url=tls, token="sesame", subject="events.tls")
        w.to("plain", "nats", url=url.replace("nats://", "tls://"), password="right", subject="events.a")
        w.config["policies"]["patient"]["classes"]["unknown"] = {"max_attempts": 1}
        w.write_config()
        assert "ok" in w.hikyaku("config", "check")
        relay = w.daemon().ready()
        w.insert("events", "Order", message_id="good", message_key="k1", payload="{\"a\":1}", content_type="application/json", correlation_id="c1",
                 traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", headers='{"X-Tenant":"acme"}')
        w.is_sent("good")
        (subject, headers, body), = admin.messages("E")
        assert (subject, body) == ("events.Order.k1", b'{"a":1}'), (subject, body)
        assert headers.pop("traceparent").startswith("00-0af7651916cd43dd8448eb211c80319c-"), headers
        assert headers == {"Nats-Msg-Id": "good", "Hikyaku-Event": "Order", "Hikyaku-Key": "k1", "X-Correlation-Id": "c1",
                           "Content-Type": "application/json", "Hikyaku-Attempt": "1", "X-Tenant": "acme"}, headers
        w.insert("cloud", "Order", message_id="event")
        w.is_sent("event")
        headers = admin.messages("E")[-1][1]
        assert (headers["ce-id"], headers["ce-type"], headers["ce-specversion"]) == ("event", "Order", "1.0"), headers
        # each refusal
        w.insert("nobody", "Order", message_id="nobody")
        w.is_dead_of("nobody", "BROKER_REFUSED", "503", "no stream takes the subject")
        w.insert("few", "Order", message_id="few")  # it may not ask which streams there are
        w.is_dead_of("few", "BROKER_REFUSED", "503", "no stream takes the subject")
        w.insert("noinbox", "Order", message_id="noinbox")
        w.is_dead_of("noinbox", "AUTH_FAILED", "-ERR", "Permissions Violation for Subscription")
        good = w.insert_many(50, prefix="g", destination="events", event_type="Order", message_key="k")
        w.insert("denied", "Order", message_id="denied")
        w.is_dead_of("denied", "AUTH_FAILED", "-ERR", 'Publish to "denied.Order"')
        w.is_sent(*good)
        w.insert("wrong", "Order", message_id="wrong")
        w.is_dead_of("wrong", "AUTH_FAILED", "-ERR", "Authorization Violation")
        w.insert("events", "Order", message_id="subject", message_key="a b")
        assert w.letter("subject")[0] == "VALIDATION_ERROR" and "words between dots" in w.letter("subject")[1]
        w.insert("events", "Order", message_id="header", message_key="k", correlation_id="a\r\nNats-Rollup: all")
        assert w.letter("header")[0] == "VALIDATION_ERROR", w.letter("header")
        w.insert("events", "Order", message_id="huge", message_key="k", payload="x" * 65536)
        assert w.letter("huge")[0] == "PAYLOAD_TOO_LARGE" and "65536" in w.letter("huge")[1], w.letter("huge")
        w.insert("large", "Order", message_id="large", payload="x" * 2000)
        w.is_dead_of("large", "BROKER_REFUSED", "10054", "size exceeds")
        w.insert("one", "Order", message_id="twin")
        w.is_sent("twin")
        w.insert("two", "Order", message_id="twin")  # the same id in the same stream, from another destination
        w.is_dead_of("twin", "BROKER_REFUSED", "duplicate", "msg_id: destination")
        w.insert("three", "Order", message_id="twin")
        until(lambda: w.message("twin", destination="three")[0] == "sent", "the third")
        w.insert("tls", "Order", message_id="by-tls")
        w.is_dead_of("by-tls", "BROKER_REFUSED", "503", "no stream takes the subject")  # so it was let in
        w.insert("badtoken", "Order", message_id="badtoken")
        w.is_dead_of("badtoken", "AUTH_FAILED", "-ERR", "Authorization Violation")
        w.insert("untrusted", "Order", message_id="untrusted")
        assert "certificate" in w.letter("untrusted")[1], w.letter("untrusted")
        w.insert("plain", "Order", message_id="plain")
        assert "no TLS" in w.letter("plain")[1], w.letter("plain")
        # a stream that is full, and one that is deleted
        ids = w.insert_many(2, prefix="s", destination="small")
        until(lambda: "RATE_LIMITED" in relay.log(), "the full stream's words")
        assert "maximum messages exceeded" in relay.log()
        admin.ask("$JS.API.STREAM.PURGE.S")
        w.is_sent(*ids)
        admin.delete("E")
        w.insert("events", "Order", message_id="gone", message_key="k")
        w.is_dead_of("gone", "BROKER_REFUSED", "503", "no stream takes the subject")
        assert "sesame" not in relay.log() and "password" not in relay.log() and seed not in relay.log()
        relay.stop()
        # the configuration of the documentation
        admin.stream("E", "events.>")
        said = w.page("nats.md", "orders", {"tls://relay@nats-1.example,nats-2.example": url, "      ca_file: /etc/hikyaku/ca.pem\n": ""},
                      {"NATS_PASSWORD": "right"})
        assert "success" in said and len(admin.messages("E")) == 1, said
        admin.close()


# ---- Redis ----

@test
def redis_its_refusals_are_dead_letters_in_its_own_words():
    with BrokerWorld() as w:
        cert, key = certificate(w.folder)
        tls_port = w.free_port()
        redis = Redis(w, "--maxmemory", "50mb", "--tls-port", str(tls_port), "--tls-cert-file", str(cert), "--tls-key-file", str(key),
                      "--tls-ca-cert-file", str(cert), "--tls-auth-clients", "no").start()
        admin = RedisClient(redis.port)
        admin.ask("ACL", "SETUSER", "relay", "on", ">right", "~events*", "~hikyaku:*", "+xadd", "+eval", "+get", "+set")
        admin.ask("SET", "text", "no stream")
        url = f"redis://127.0.0.1:{redis.port}"
        login = {"url": url.replace("//", "//relay@"), "password": "right"}
        w.to("events", "redis", stream="events:{event_type}", **login)
        w.to("cloud", "redis", url=url + "/3", stream="cloud", cloudevents="binary")
        w.to("once", "redis", stream="events", dedup="1h", **login)
        w.to("once2", "redis", stream="events", dedup="1h", **login)
        w.to("trimmed", "redis", url=url, stream="trimmed", max_len=100)
        w.to("missing", "redis", url=url, stream="missing", create=False)
        w.to("missing2", "redis", url=url, stream="missing", create=False, dedup="1h")
        w.to("text", "redis", url=url, stream="text")
        w.to("denied", "redis", stream="denied", **login)
        w.to("wrong", "redis", url=login["url"], password="wrong", stream="events")
        w.to("db", "redis", url=url + "/99", stream="events")
        w.to("tls", "redis", url=f"rediss://localhost:{tls_port}", stream="tls", ca_file=str(cert))
        w.to("untrusted", "redis", url=f"rediss://localhost:{tls_port}", stream="tls")
        w.to("full", "redis", url=url, stream="full")
        w.config["policies"]["patient"]["classes"]["unknown"] = {"max_attempts": 1}
        w.write_config()
        assert "ok" in w.hikyaku("config", "check")
        relay = w.daemon().ready()
        w.insert("events", "Order", message_id="good", message_key="k1", payload="{\"a\":1}", content_type="application/json", correlation_id="c1",
                 traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", headers='{"X-Tenant":"acme"}')
        w.is_sent("good")
        entry, = admin.entries("events:Order")
        assert entry.pop("traceparent").startswith("00-0af7651916cd43dd8448eb211c80319c-"), entry
        assert entry == {"id": "good", "type": "Order", "key": "k1", "correlation_id": "c1", "content_type": "application/json", "attempt": "1",
                         "X-Tenant": "acme", "data": '{"a":1}'}, entry
        w.insert("cloud", "Order", message_id="event")
        w.is_sent("event")
        admin.ask("SELECT", 3)
        assert admin.entries("cloud")[0]["ce_id"] == "event"
        admin.ask("SELECT", 0)
        for destination in ("once", "once2"):  # each destination remembers its own
            w.insert(destination, "Order", message_id="once")
        until(lambda: w.statuses("message_id = 'once'") == {"sent": 2}, "both sent")
        assert len(admin.entries("events")) == 2
        note, = [k for k in admin.ask("KEYS", "hikyaku:*once:once")]
        assert note == b"hikyaku:{events}:once:once" and 0 < admin.ask("PTTL", note) <= 3600000, note
        w.is_sent(*w.insert_many(300, prefix="t", destination="trimmed"))
        assert 100 <= admin.ask("XLEN", "trimmed") < 300
        # each refusal
        for name in ("missing", "missing2"):
            w.insert(name, "Order", message_id=name)
            w.is_dead_of(name, "BROKER_REFUSED", "nil", "no such stream")
        w.insert("text", "Order", message_id="text")
        w.is_dead_of("text", "BROKER_REFUSED", "WRONGTYPE", "wrong kind of value")
        w.insert("denied", "Order", message_id="denied")
        w.is_dead_of("denied", "AUTH_FAILED", "NOPERM", "access one of the keys")
        w.insert("wrong", "Order", message_id="wrong")
        w.is_dead_of("wrong", "AUTH_FAILED", "WRONGPASS", "invalid username-password pair")
        w.insert("db", "Order", message_id="db")
        w.is_dead_of("db", "AUTH_FAILED", "ERR", "out of range")
        w.insert("tls", "Order", message_id="by-tls")
        w.is_sent("by-tls")
        w.insert("untrusted", "Order", message_id="untrusted")
        assert "certificate" in w.letter("untrusted")[1], w.letter("untrusted")
        admin.ask("ACL", "SETUSER", "relay", "-xadd")
        w.insert("events", "Order", message_id="revoked")
        w.is_dead_of("revoked", "AUTH_FAILED", "NOPERM", "no permissions to run the 'xadd' command")
        admin.ask("CONFIG", "SET", "maxmemory", "1mb")
        w.insert("full", "Order", message_id="full")
        until(lambda: "RATE_LIMITED" in relay.log() and "OOM" in relay.log(), "Redis to be full")
        admin.ask("CONFIG", "SET", "maxmemory", "50mb")
        w.is_sent("full")
        assert "right" not in relay.log() and "password" not in relay.log().replace("username-password", "")
        relay.stop()
        # the configuration of the documentation
        admin.ask("ACL", "SETUSER", "relay", "+xadd")
        said = w.page("redis.md", "orders", {"rediss://relay@redis.example": f"rediss://relay@localhost:{tls_port}", "/etc/hikyaku/ca.pem": str(cert)},
                      {"REDIS_PASSWORD": "right"})
        assert "success" in said and len(admin.entries("events")) == 3, said
        admin.close()


@test
def redis_is_followed_through_a_cluster():
    with BrokerWorld() as w:
        nodes = [Redis(w, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", str(w.free_port()), name=f"node{i}").start()
                 for i in range(2)]
        one, two = (RedisClient(n.port) for n in nodes)
        one.ask("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        two.ask("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        one.ask("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, nodes[1].settings[5])
        until(lambda: all(b"cluster_state:ok" in c.ask("CLUSTER", "INFO") and b"cluster_known_nodes:2" in c.ask("CLUSTER", "INFO") for c in (one, two)),
              "the cluster")
        names = [next(n for n in map("s{}".format, range(1000)) if (one.ask("CLUSTER", "KEYSLOT", n) < 8192) == low) for low in (True, False)]
        for i, name in enumerate(names):  # both by the first server
            w.to(name, "redis", url=f"redis://127.0.0.1:{nodes[0].port}", stream=name, dedup="off" if i else "1h")
        relay = w.daemon().ready()
        for name in names:
            w.is_sent(*w.insert_many(100, prefix=name, destination=name))
        assert [one.ask("XLEN", names[0]), two.ask("XLEN", names[1])] == [100, 100]
        # the slot moves under way: ASK, then MOVED
        slot, ids = two.ask("CLUSTER", "KEYSLOT", names[1]), [c.ask("CLUSTER", "MYID") for c in (one, two)]
        one.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[1])
        two.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[0])
        for key in two.ask("CLUSTER", "GETKEYSINSLOT", slot, 1000):
            two.ask("MIGRATE", "127.0.0.1", nodes[0].port, key, 0, 5000)
        w.is_sent(*w.insert_many(50, prefix="ask", destination=names[1]))
        for c in (one, two):
            c.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[0])
        w.is_sent(*w.insert_many(50, prefix="moved", destination=names[1]))
        assert one.ask("XLEN", names[1]) == 200
        assert w.sql("SELECT count(*) FROM outbox_attempts") == [(0,)], "a redirection is no attempt"
        relay.stop()


# ---- MQTT ----

@test
def mqtt_its_refusals_are_dead_letters_in_its_own_words():
    with BrokerWorld() as w:
        cert, key = certificate(w.folder)
        w.folder.chmod(0o755)
        tls_port = w.free_port()
        passwords = w.path("passwords")
        for i, (user, password) in enumerate((("relay", "right"), ("admin", "adminpass"))):
            subprocess.run(["mosquitto_passwd", *(["-c"] if not i else []), "-b", str(passwords), user, password], check=True, capture_output=True)
        passwords.chmod(0o644)
        acl = w.path("acl")
        acl.write_text("user admin\ntopic readwrite #\nuser relay\ntopic write events/#\ntopic write nobody/#\n", encoding="ascii")
        acl.chmod(0o644)
        broker = Mosquitto(w, f"allow_anonymous false\npassword_file {passwords}\nacl_file {acl}\nmessage_size_limit 65536\nmax_packet_size 70000\n"
                              f"listener {tls_port} 127.0.0.1\ncertfile {cert}\nkeyfile {key}\n").start()
        url, tls = f"mqtt://relay@127.0.0.1:{broker.port}", f"mqtts://relay@localhost:{tls_port}"
        login = {"url": url, "password": "right"}
        witness = MqttClient(broker.port, "events/#", user="admin", password="adminpass")
        w.to("events", "mqtt", topic="events/{event_type}", **login)
        w.to("twice", "mqtt", topic="events/{event_type}", qos=2, cloudevents="binary", **login)
        w.to("nobody", "mqtt", topic="nobody/a", require_subscriber=True, **login)
        w.to("anybody", "mqtt", topic="nobody/a", qos=2, **login)
        w.to("denied", "mqtt", topic="denied/a", **login)
        w.to("wrong", "mqtt", url=url, password="wrong", topic="events/a")
        w.to("tls", "mqtt", url=tls, password="right", topic="events/tls", ca_file=str(cert))
        w.to("untrusted", "mqtt", url=tls, password="right", topic="events/tls")
        w.config["policies"]["patient"]["classes"]["unknown"] = {"max_attempts": 1}
        w.write_config()
        assert "ok" in w.hikyaku("config", "check")
        relay = w.daemon().ready()
        w.insert("events", "Order", message_id="good", message_key="k1", payload="{\"a\":1}", content_type="application/json", correlation_id="c1",
                 traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", headers='{"X-Tenant":"acme"}')
        w.is_sent("good")
        topic, properties, body = witness.messages(1)[0]
        assert (topic, body, properties.pop(3)) == ("events/Order", b'{"a":1}', "application/json"), (topic, body)
        assert properties.pop("traceparent").startswith("00-0af7651916cd43dd8448eb211c80319c-"), properties
        assert properties == {"id": "good", "type": "Order", "key": "k1", "correlation-id": "c1", "attempt": "1", "X-Tenant": "acme"}, properties
        w.insert("twice", "Order", message_id="event")
        w.is_sent("event")
        assert witness.messages(2)[1][1]["ce-id"] == "event"
        w.insert("nobody", "Order", message_id="nobody")
        w.is_dead_of("nobody", "BROKER_REFUSED", "0x10", "No matching subscribers")
        w.insert("anybody", "Order", message_id="anybody")
        w.is_sent("anybody")
        w.insert("denied", "Order", message_id="denied")
        w.is_dead_of("denied", "AUTH_FAILED", "0x87", "Not authorized")
        w.insert("wrong", "Order", message_id="wrong")
        got = w.letter("wrong")
        assert got[0] == "AUTH_FAILED" and got[2] in ("0x86", "0x87"), got
        w.insert("events", "Order", message_id="huge", payload="x" * 70000)
        assert w.letter("huge")[0] == "PAYLOAD_TOO_LARGE", w.letter("huge")
        w.insert("events", "a#b", message_id="wildcard")
        assert w.letter("wildcard")[0] == "VALIDATION_ERROR", w.letter("wildcard")
        w.insert("tls", "Order", message_id="by-tls")
        w.is_sent("by-tls")
        w.insert("untrusted", "Order", message_id="untrusted")
        assert "certificate" in w.letter("untrusted")[1], w.letter("untrusted")
        # a right that is taken away
        acl.write_text("user admin\ntopic readwrite #\nuser relay\ntopic write nobody/#\n", encoding="ascii")
        broker.process.send_signal(1)
        time.sleep(0.5)
        w.insert("events", "Order", message_id="revoked")
        w.is_dead_of("revoked", "AUTH_FAILED", "0x87", "Not authorized")
        assert "right" not in relay.log() and "password" not in relay.log()
        relay.stop()
        # the configuration of the documentation
        acl.write_text("user admin\ntopic readwrite #\nuser relay\ntopic write events/#\n", encoding="ascii")
        broker.process.send_signal(1)
        time.sleep(0.5)
        said = w.page("mqtt.md", "devices", {"mqtts://relay@mqtt.example": tls, "/etc/hikyaku/ca.pem": str(cert)}, {"MQTT_PASSWORD": "right"})
        assert "success" in said, said
        witness.close()


# ---- storms: 10,000 messages while the connection is cut, the relay killed, and the broker killed, frozen or restarted ----

def kill(_, broker):
    broker.kill()
    time.sleep(0.3)
    broker.start()


def restart(_, broker):
    broker.stop()
    broker.start()


def freeze(_, broker):
    """It neither answers nor goes away: heartbeats tell."""
    broker.freeze()
    time.sleep(6)
    broker.freeze(False)


def alarm(w, rabbit):
    rabbit.ctl("set_vm_memory_high_watermark", "0.0000001")
    time.sleep(1)
    count, attempts = w.sent_count(), w.sql("SELECT count(*) FROM outbox_attempts")
    time.sleep(2)
    assert w.sent_count() <= count + 1000, "it goes on sending"
    assert w.sql("SELECT count(*) FROM outbox_attempts") == attempts, "attempts are charged for the broker's alarm"
    rabbit.ctl("set_vm_memory_high_watermark", "0.4")


def rabbit_prepare(port):
    admin = Amqp(port)
    admin.exchange("events")
    admin.queue("q")
    admin.bind("q", "events", "OrderCreated")
    admin.close()


def rabbit_arrived(port):
    admin = Amqp(port)
    bodies = [body for _, body in admin.drain("q")]
    admin.close()
    return bodies


def nats_prepare(port):
    admin = NatsClient(port)
    admin.stream("E", "events.>", duplicate_window=1000000000)  # a second: repeats are to be seen
    admin.close()


def nats_arrived(port):
    admin = NatsClient(port)
    bodies = [body for _, _, body in admin.messages("E")]
    admin.close()
    return bodies


def redis_arrived(port):
    client = RedisClient(port)
    bodies = [entry["data"] for entry in client.entries("events")]
    client.close()
    return bodies


def mqtt_prepare(port):
    MqttClient(port, "events/#").close()  # its session stays, and collects


def mqtt_arrived(port):
    witness = MqttClient(port, None)
    least = len(witness.messages(MESSAGES))
    with contextlib.suppress(OSError, AssertionError):  # and the repeats
        witness.socket.settimeout(2)
        witness.messages(10 * MESSAGES, 30)
    bodies = [body for _, _, body in witness.got]
    assert len(bodies) >= least
    witness.close()
    return bodies


# `cuts`: the first ones, which meet the greeting; the same ones follow for each. `prepare` and `arrived` get the broker's port; `arrived`
# returns the bodies in the broker's order.
Storm = collections.namedtuple("Storm", "name kind start options cuts troubles prepare arrived")
STORMS = [
    Storm("rabbitmq_loses_nothing_through_cuts_kills_restarts_and_an_alarm", "amqp", Rabbit, {"exchange": "events"},
          [("down", 300), ("up", 5), ("down", 800)], [alarm, kill, freeze, restart], rabbit_prepare, rabbit_arrived),
    Storm("nats_loses_nothing_through_cuts_kills_and_restarts", "nats", Nats, {"subject": "events.{event_type}"},
          [("down", 100), ("up", 30), ("down", 600)], [kill, freeze, restart], nats_prepare, nats_arrived),
    Storm("redis_loses_nothing_through_cuts_kills_and_restarts", "redis", Redis, {"stream": "events"},
          [("down", 3), ("up", 10), ("down", 200)], [kill, freeze, restart], lambda port: None, redis_arrived),
    # Mosquitto keeps nothing through a kill, as docs/mqtt.md says: so it is not killed.
    Storm("mqtt_loses_nothing_through_cuts_kills_of_the_relay_and_a_frozen_broker", "mqtt",
          lambda w: Mosquitto(w, "allow_anonymous true"), {"topic": "events/{event_type}"},
          [("down", 2), ("up", 10), ("down", 300)], [freeze], mqtt_prepare, mqtt_arrived),
]


def weather(storm):
    with BrokerWorld(event_log=True) as w:
        broker = storm.start(w).start()
        cutter = Cutter(broker.port, [*storm.cuts, ("up", 20000), ("up", 70001), ("down", 1500), ("up", 150000)])
        w.stack.callback(cutter.close)
        storm.prepare(broker.port)
        w.to("events", storm.kind, order="key", url=f"{storm.kind}://127.0.0.1:{cutter.port}", heartbeat="2s", **storm.options)
        w.storm("events", broker, storm.troubles)
        arrived = [json.loads(body)["n"] for body in storm.arrived(broker.port)]
        print(f"# {w.judge(arrived, MESSAGES)}, {cutter.connections} connections")


for each in STORMS:
    run = functools.partial(weather, each)
    run.__name__ = each.name
    test(run)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
