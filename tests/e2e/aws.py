#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Destinations at AWS: queues of moto, which checks signatures, and scripted answers for what moto never says. Speaks TAP.

Usage: aws.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them; MESSAGES=200."""
import collections
import hashlib
import json
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from aws_world import AwsWorld, ElasticMq, Moto, Scripted, python, values
from support import Skip, clean_environment, run_tests, until

TESTS = []
MESSAGES = int(os.environ.get("MESSAGES", "200"))
KEYS = 20


def test(function):
    TESTS.append(function)
    return function


@test
def what_a_message_looks_like_and_what_is_refused():
    with AwsWorld() as w:
        moto = Moto(w, jobs={}, events={}, small={"MaximumMessageSize": "65536"}, ordered={"FifoQueue": "true"})
        w.to("jobs", moto.url["jobs"])
        w.to("events", moto.url["events"], cloudevents="structured")
        w.to("small", moto.url["small"])
        w.to("missing", moto.url["jobs"].replace("jobs", "nowhere"))
        w.to("ordered", moto.url["ordered"], order="key")
        w.to("elsewhere", "https://sqs.example.invalid/123456789012/jobs", endpoint=f"http://127.0.0.1:{moto.port}")
        w.to("blocked", moto.url["jobs"])
        del w.config["destinations"]["blocked"]["allow"]
        w.write_config()
        relay = w.start().ready()
        w.insert("jobs", "Order", message_id="good", message_key="k1", payload='{"a":"é😀"}', content_type="application/json", correlation_id="c1",
                 traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", headers='{"X-Tenant":"acme"}')
        w.is_sent("good")
        got, = moto.drain("jobs")
        attributes = values(got)
        assert got["Body"] == '{"a":"é😀"}' and attributes.pop("traceparent").startswith("00-0af7651916cd43dd8448eb211c80319c-"), got
        assert attributes == {"message-id": "good", "event-type": "Order", "message-key": "k1", "correlation-id": "c1",
                              "content-type": "application/json", "hikyaku-attempt": "1", "X-Tenant": "acme"}, attributes
        w.insert("jobs", "Order", message_id="many", headers=json.dumps({f"h{i}": str(i) for i in range(12)}))
        w.insert("events", "Order", message_id="event", payload='{"a":1}')
        w.insert("elsewhere", "Order", message_id="elsewhere")
        w.is_sent("many", "event", "elsewhere")
        many = {values(m)["message-id"]: values(m) for m in moto.drain("jobs")}
        assert set(many) == {"many", "elsewhere"} and json.loads(many["many"]["headers"])["h11"] == "11", many
        event, = moto.drain("events")
        body = json.loads(event["Body"])
        assert (body["id"], body["type"], body["data"], values(event)["content-type"]) == ("event", "Order", {"a": 1}, "application/cloudevents+json"), event
        # each refusal; the large one has company, which is sent all the same
        for i in range(5):
            w.insert("small", "Order", message_id=f"beside-{i}", payload='"' + "b" * 40000 + '"')
        w.insert("small", "Order", message_id="large", payload='"' + "x" * 70000 + '"')
        w.is_dead_of("large", "BROKER_REFUSED", "Message must be shorter than 65536 bytes")
        w.insert("jobs", "Order", message_id="huge", payload='"' + "x" * (1 << 20) + '"')
        w.is_dead_of("huge", "PAYLOAD_TOO_LARGE", "over")
        w.is_sent(*(f"beside-{i}" for i in range(5)))
        w.insert("missing", "Order", message_id="missing")
        w.is_dead_of("missing", "BROKER_REFUSED", "QueueDoesNotExist")
        w.insert("blocked", "Order", message_id="blocked")
        w.is_dead_of("blocked", "BLOCKED_BY_POLICY", "loopback")
        w.insert("jobs", "Order", message_id="binary", payload="\x01")
        w.is_dead_of("binary", "VALIDATION_ERROR", "SQS takes text")
        # a FIFO queue: order per key, one copy of an id
        for i in range(40):
            w.insert("ordered", "Order", message_id=f"o-{i:02d}", message_key=f"k {i % 4}", payload=str(i))
        w.is_sent(*(f"o-{i:02d}" for i in range(40)))
        seen = collections.defaultdict(list)
        for m in moto.drain("ordered"):
            seen[m["Attributes"]["MessageGroupId"]].append(int(m["Body"]))
            assert m["Attributes"]["MessageDeduplicationId"] == f"o-{int(m['Body']):02d}", m
        assert dict(seen) == {hashlib.sha256(f"k {k}".encode()).hexdigest(): list(range(k, 40, 4)) for k in range(4)}, seen
        said = json.loads(w.hikyaku("messages", "show", "o-00", "--json"))
        assert "wJalrXUtnFEMI" not in json.dumps(said) + relay.log()
        relay.stop()
        said = w.try_hikyaku("doctor")[1]
        assert "the queue is there" in said and "QueueDoesNotExist" in said or "NonExistentQueue" in said, said
        code, said = w.try_hikyaku("destinations", "test", "jobs")
        assert code == 0 and "success" in said, said


@test
def a_signature_is_checked_and_credentials_come_from_a_file():
    """moto's first three calls make the user, its right and its key; it checks every signature after them."""
    with AwsWorld() as w:
        moto = Moto(w, free_calls=4, jobs={})

        def iam(**fields):
            body = "&".join(f"{k}={v}" for k, v in {"Version": "2010-05-08", **fields}.items())
            status, text = moto.request("POST", "/", body, {
                "Content-Type": "application/x-www-form-urlencoded",
                "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0"})
            assert status == 200, text
            return text
        iam(Action="CreateUser", UserName="relay")
        policy = "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%7B%22Effect%22%3A%22Allow%22%2C%22Action%22%3A%22sqs%3A%2A%22%2C%22Resource%22%3A%22%2A%22%7D%7D"
        iam(Action="PutUserPolicy", UserName="relay", PolicyName="p", PolicyDocument=policy)
        text = iam(Action="CreateAccessKey", UserName="relay")
        key, secret = (text.split(f"<{tag}>")[1].split("<")[0] for tag in ("AccessKeyId", "SecretAccessKey"))
        file = w.path("credentials")
        file.write_text(f"[relay]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n[wrong]\naws_access_key_id = {key}\n"
                        "aws_secret_access_key = nonsense\n", encoding="utf-8")
        w.to("right", moto.url["jobs"], credentials_file=str(file), profile="relay")
        w.to("wrong", moto.url["jobs"], credentials_file=str(file), profile="wrong")
        w.to("unknown", moto.url["jobs"], access_key_id="AKIANOBODY", secret_access_key="x")
        w.to("none", moto.url["jobs"], credentials_file=str(file), profile="nobody")
        relay = w.start().ready()
        for name in w.config["destinations"]:
            w.insert(name, "Order", message_id=name)
        w.is_sent("right")
        w.is_dead_of("wrong", "AUTH_FAILED", "SignatureDoesNotMatch")
        w.is_dead_of("unknown", "AUTH_FAILED", "InvalidClientTokenId")
        w.is_dead_of("none", "AUTH_FAILED", "has no section")
        relay.stop()
        assert secret not in relay.log() and "nonsense" not in relay.log()
        said = w.try_hikyaku("doctor")[1]
        assert "the queue is there" in said and "SignatureDoesNotMatch" in said and secret not in said, said


@test
def nothing_is_lost_when_the_relay_is_killed():
    with AwsWorld(event_log=True) as w:
        moto = Moto(w, jobs={})
        w.to("jobs", moto.url["jobs"], order="key", policy="hard")
        db = w.connect()
        db.execute("BEGIN IMMEDIATE")
        for i in range(MESSAGES):
            w.insert("jobs", "Order", db=db, message_id=f"m-{i:05d}", message_key=f"k{i % KEYS}", payload=str(i))
        db.execute("COMMIT")
        db.close()
        for part in (3, 2):
            relay = w.start()
            until(lambda: w.statuses().get("sent", 0) > MESSAGES // part, lambda: f"{w.statuses()} {relay.log()[-2000:]}")
            relay.kill()
        relay = w.start()
        until(lambda: w.statuses() == {"sent": MESSAGES}, lambda: f"{w.statuses()} {relay.log()[-2000:]}")
        relay.stop()
        arrived = collections.Counter(int(m["Body"]) for m in moto.drain("jobs"))
        sends = collections.Counter(line["m"] for line in w.events.lines() if line["ev"] == "send")
        assert set(arrived) == set(range(MESSAGES)), f"{MESSAGES - len(arrived)} are lost"
        assert all(n <= sends[f"m-{i:05d}"] for i, n in arrived.items())
        print(f"# {MESSAGES} messages, {sum(arrived.values()) - MESSAGES} repeats, {sum(sends.values())} attempts")


def taken(entries):
    return [{"Id": e["Id"], "MessageId": "m"} for e in entries]


def failed(entry, code, sender=True):
    return {"Id": entry["Id"], "SenderFault": sender, "Code": code, "Message": f"said {code}"}


@test
def each_message_of_a_batch_has_its_own_result():
    codes = {"bad": ("InvalidMessageContents", True), "broken": ("InternalError", False), "throttled": ("RequestThrottled", True)}
    batches = []

    def by_entry(body):
        entries = body["Entries"]
        words = {e["Id"]: json.loads(e["MessageBody"]) for e in entries}
        return 200, {"Successful": taken(e for e in entries if words[e["Id"]] == "good"),
                     "Failed": [failed(e, *codes[words[e["Id"]]]) for e in entries if words[e["Id"]] in codes]}

    def whole(body):
        if len(body["Entries"]) > 1:
            return 400, {"__type": "com.amazonaws.sqs#BatchRequestTooLong", "message": "too long"}
        return by_entry(body)

    def counted(body):
        batches.append(len(body["Entries"]))
        return by_entry(body)
    servers = {"entries": Scripted(counted), "whole": Scripted(whole), "throttles": Scripted(lambda _: (400, {"__type": "com.amazonaws.sqs#RequestThrottled"})),
               "fails": Scripted(lambda _: (500, {})), "cut": Scripted(lambda _: None), "odd": Scripted(lambda _: (200, {"ok": True}))}
    try:
        with AwsWorld() as w:
            for name, server in servers.items():
                w.to(name, server.url)
            db = w.connect()
            db.execute("BEGIN IMMEDIATE")
            for name in ("entries", "whole"):
                for i, word in enumerate(["good"] * 14 + ["bad", "broken", "throttled", "silent"]):
                    w.insert(name, "Order", db=db, message_id=f"{name}-{i if word == 'good' else word}", payload=json.dumps(word))
            db.execute("COMMIT")
            db.close()
            for name in ("throttles", "fails", "cut", "odd"):
                w.insert(name, "Order", message_id=name)
            relay = w.start().ready()
            for name in ("entries", "whole"):
                w.is_sent(*(f"{name}-{i}" for i in range(14)))
                w.is_dead_of(f"{name}-bad", "BROKER_REFUSED", "InvalidMessageContents said InvalidMessageContents")
                w.is_dead_of(f"{name}-broken", "BROKER_UNAVAILABLE", "InternalError", possibly=True)
                w.is_dead_of(f"{name}-throttled", "RATE_LIMITED", "RequestThrottled")
                w.is_dead_of(f"{name}-silent", "UNKNOWN", "says nothing of this message", possibly=True)
            w.is_dead_of("throttles", "RATE_LIMITED", "RequestThrottled")
            w.is_dead_of("fails", "BROKER_UNAVAILABLE", "HTTP 500", possibly=True)
            w.is_dead_of("cut", "TRANSIENT_NETWORK", "", possibly=True)
            w.is_dead_of("odd", "UNKNOWN", "does not answer as SQS does", possibly=True)
            assert max(batches) == 10 and sum(batches) == 18, batches
            relay.stop()
    finally:
        for server in servers.values():
            server.end()


@test
def another_server_with_the_limits_of_sqs():
    with AwsWorld() as w:
        mq = ElasticMq(w, 'jobs {}, "ordered.fifo" { fifo = true }')
        w.to("jobs", mq.url("jobs"))
        w.to("ordered", mq.url("ordered.fifo"), order="key")
        w.to("missing", mq.url("nowhere"))
        db = w.connect()
        db.execute("BEGIN IMMEDIATE")
        for i in range(200):
            w.insert("jobs", "Order", db=db, message_id=f"j-{i}", payload=json.dumps({"n": i, "text": "é😀"}), headers=json.dumps({f"h{k}": "v" for k in range(i % 9)}))
        for i in range(100):
            w.insert("ordered", "Order", db=db, message_id=f"o-{i:02d}", message_key=f"k{i % 7}", payload=str(i))
        w.insert("jobs", "Order", db=db, message_id="large", payload='"' + "x" * ((1 << 20) - 400) + '"')  # all but what its attributes take
        w.insert("missing", "Order", db=db, message_id="missing")
        db.execute("COMMIT")
        db.close()
        relay = w.start().ready()
        w.is_sent(*(f"j-{i}" for i in range(200)), *(f"o-{i:02d}" for i in range(100)), "large")
        w.is_dead_of("missing", "BROKER_REFUSED", "QueueDoesNotExist")
        bodies = [json.loads(m["Body"]) for m in mq.drain("jobs")]
        assert sorted(b["n"] for b in bodies if isinstance(b, dict)) == list(range(200)) and len(bodies) == 201
        seen = collections.defaultdict(list)
        for m in mq.drain("ordered.fifo"):
            seen[m["Attributes"]["MessageGroupId"]].append(int(m["Body"]))
        assert dict(seen) == {f"k{k}": list(range(k, 100, 7)) for k in range(7)}, seen
        relay.stop()


BOTOCORE = """
import json, sys
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
for line in sys.stdin:
    r = json.loads(line)
    request = AWSRequest(method=r["method"], url="http://" + r["host"] + r["path"] + ("?" + r["query"] if r["query"] else ""), data=bytes.fromhex(r["body"]),
                         headers={k: v for k, v in r["headers"].items() if k not in ("host", "x-amz-date")})
    request.context["timestamp"] = r["time"]
    signer = SigV4Auth(Credentials(r["key"], r["secret"]), r["service"], r["region"])
    request.headers["X-Amz-Date"] = r["time"]
    canonical = signer.canonical_request(request)
    text = signer.string_to_sign(request, canonical)
    names = signer.signed_headers(signer.headers_to_sign(request))
    print("AWS4-HMAC-SHA256 Credential=%s, SignedHeaders=%s, Signature=%s" % (signer.scope(request), names, signer.signature(text, request)))
"""


@test
def signatures_are_those_of_botocore():
    signer = os.environ.get("TEST_AWS")
    if not signer:
        raise Skip("TEST_AWS does not name the program tests/unit/test_aws")
    rng = random.Random(20261119)

    def text(letters, most):
        return "".join(rng.choice(letters) for _ in range(rng.randint(1, most)))
    word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~"
    requests = []
    for _ in range(1000):
        names = {text("abcdefghijklmnopqrstuvwxyz-0123456789", 12).strip("-") or "x" for _ in range(rng.randint(0, 5))}
        names -= {"host", "x-amz-date", "expect", "connection"}
        pieces = [w for w in ("%20", "%3A", "%C3%A9", "a", "Z", "~", ":", "*", "(", "+")]
        requests.append({
            "key": text(word, 20), "secret": text(word + "/+=", 40), "region": text("abcdefghij-1", 14), "service": text("abcdefghij", 8),
            "time": f"2026{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}T{rng.randint(0, 23):02d}{rng.randint(0, 59):02d}07Z",
            "method": rng.choice(["GET", "POST", "PUT"]), "host": text("abc.xyz", 20).strip(".") or "h",
            "path": "/" + "/".join("".join(rng.choice(pieces) for _ in range(rng.randint(1, 6))) for _ in range(rng.randint(0, 4))),
            "query": "&".join(text(word, 6) + "=" + "".join(rng.choice(["%20", "%2F", "b", "C", "-"]) for _ in range(rng.randint(0, 5)))
                              for _ in range(rng.randint(0, 6))),
            "headers": {n: text(word + "  ;=,", 30).strip() or "v" for n in sorted(names)}, "body": rng.randbytes(rng.randint(0, 3000)).hex()})
    for r in requests:
        r["headers"].update({"host": r["host"], "x-amz-date": r["time"]})
    lines = "".join(" ".join([*(r[f].encode().hex() for f in ("key", "secret", "region", "service", "time", "method", "path", "query")), r["body"],
                              *(p.encode().hex() for h in r["headers"].items() for p in h)]) + "\n" for r in requests)
    own = subprocess.run([signer, "sign"], input=lines, text=True, capture_output=True, timeout=60, check=True).stdout.splitlines()
    theirs = subprocess.run([str(python()), "-c", BOTOCORE], input="".join(json.dumps(r) + "\n" for r in requests), text=True, capture_output=True,
                            timeout=120, check=True, env=clean_environment()).stdout.splitlines()
    assert len(own) == len(theirs) == 1000, (len(own), len(theirs))
    for r, a, b in zip(requests, own, theirs):
        assert a == b, (r, a, b)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
