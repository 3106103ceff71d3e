#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SNS, EventBridge and Kinesis as destinations: topics, buses and streams of moto, and scripted answers for what moto never says. Speaks TAP.

Usage: aws_services.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them; MESSAGES=10000."""
import base64
import collections
import hashlib
import json
import os
import random
import socket
import sys
import threading
import urllib.parse

sys.dont_write_bytecode = True  # the source folder stays as it is
from aws_world import ACCOUNT, REGION, AwsWorld, Moto, Scripted, values
from support import run_tests, until

TESTS = []
MESSAGES = int(os.environ.get("MESSAGES", "10000"))
KEYS = 1000  # as many as may be under way: few and large requests


def test(function):
    TESTS.append(function)
    return function


def topic_of(moto, name, queue, **attributes):
    """A topic whose messages arrive in a queue of moto as they are."""
    numbered = {f"Attributes.entry.{i}.{part}": text for i, pair in enumerate(attributes.items(), 1) for part, text in zip(("key", "value"), pair)}
    arn = moto.form("sns", Action="CreateTopic", Version="2010-03-31", Name=name, **numbered).split("<TopicArn>")[1].split("<")[0]
    moto.form("sns", Action="Subscribe", Version="2010-03-31", TopicArn=arn, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
              **{"Attributes.entry.1.key": "RawMessageDelivery", "Attributes.entry.1.value": "true"})
    return arn


def bus_of(moto, name, queue):
    moto.json("events", "AWSEvents.CreateEventBus", Name=name)
    moto.json("events", "AWSEvents.PutRule", Name="all", EventBusName=name, EventPattern=json.dumps({"source": [{"prefix": ""}]}))
    moto.json("events", "AWSEvents.PutTargets", Rule="all", EventBusName=name, Targets=[{"Id": "q", "Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"}])


def kinesis(moto, action, **fields):
    return moto.json("kinesis", f"Kinesis_20131202.{action}", **fields)


def stream_of(moto, name, shards=1):
    kinesis(moto, "CreateStream", StreamName=name, ShardCount=shards)
    until(lambda: kinesis(moto, "DescribeStreamSummary", StreamName=name)["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE", "the stream to be active")


def records_of(moto, name):
    """Shard by shard, each in its order."""
    found = []
    for shard in kinesis(moto, "ListShards", StreamName=name)["Shards"]:
        at = kinesis(moto, "GetShardIterator", StreamName=name, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        while at:
            said = kinesis(moto, "GetRecords", ShardIterator=at, Limit=10000)
            found += said["Records"]
            at = said.get("NextShardIterator") if said["Records"] else None
    return found


def text_of(record):
    return base64.b64decode(record["Data"]).decode()


WHOLE = {"message_key": "k1", "content_type": "application/json", "correlation_id": "c1", "headers": '{"X-Tenant":"acme"}',
         "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
FIELDS = {"message-id": "good", "event-type": "Order", "message-key": "k1", "correlation-id": "c1", "content-type": "application/json",
          "hikyaku-attempt": "1", "X-Tenant": "acme"}


@test
def what_arrives_at_a_topic():
    with AwsWorld() as w:
        moto = Moto(w, plain={}, ordered={"FifoQueue": "true"})
        arn = topic_of(moto, "plain", "plain")
        fifo = topic_of(moto, "ordered.fifo", "ordered.fifo", FifoTopic="true")
        here = {"endpoint": f"http://127.0.0.1:{moto.port}"}
        w.at("sns", "plain", topic_arn=arn, **here)
        w.at("sns", "events", topic_arn=arn, cloudevents="structured", **here)
        w.at("sns", "ordered", topic_arn=fifo, order="key", **here)
        w.at("sns", "missing", topic_arn=arn.replace("plain", "nowhere"), **here)
        relay = w.start().ready()
        w.insert("plain", "Order", message_id="good", payload='{"a":"é😀&=+%"}', **WHOLE)
        w.is_sent("good")
        got, = moto.drain("plain")
        fields = values(got)
        assert got["Body"] == '{"a":"é😀&=+%"}' and fields.pop("traceparent").startswith("00-0af7651916cd43dd8448eb211c80319c-"), got
        assert fields == FIELDS, fields
        w.insert("events", "Order", message_id="event", payload='{"a":1}')
        w.is_sent("event")
        event, = moto.drain("plain")
        body = json.loads(event["Body"])
        assert (body["id"], body["type"], body["data"], values(event)["content-type"]) == ("event", "Order", {"a": 1}, "application/cloudevents+json"), event
        w.insert("missing", "Order", message_id="missing")
        w.is_dead_of("missing", "BROKER_REFUSED", "NotFound")
        w.insert("plain", "Order", message_id="huge", payload='"' + "x" * 262144 + '"')
        w.is_dead_of("huge", "PAYLOAD_TOO_LARGE", "SNS takes")
        w.insert("plain", "Order", message_id="binary", payload="\x01")
        w.is_dead_of("binary", "VALIDATION_ERROR", "SNS takes text")
        for i in range(24):
            w.insert("ordered", "Order", message_id=f"o-{i:02d}", message_key=f"k {i % 4}", payload=str(i))
        w.is_sent(*(f"o-{i:02d}" for i in range(24)))
        seen = collections.defaultdict(list)
        for m in moto.drain("ordered"):
            seen[m["Attributes"]["MessageGroupId"]].append(int(m["Body"]))
            assert m["Attributes"]["MessageDeduplicationId"] == f"o-{int(m['Body']):02d}", m
        assert dict(seen) == {hashlib.sha256(f"k {k}".encode()).hexdigest(): list(range(k, 24, 4)) for k in range(4)}, seen
        said = w.hikyaku("dead", "show", "missing", "--json") + w.hikyaku("messages", "show", "o-00", "--json")
        assert "nowhere" in said and "topic_arn" in said and "wJalrXUtnFEMI" not in said + relay.log(), said
        relay.stop()
        said = w.try_hikyaku("doctor")[1]  # moto counts no subscription as confirmed
        assert "the topic is there, with 0 confirmed subscriptions" in said and "NotFound" in said, said
        code, said = w.try_hikyaku("destinations", "test", "plain")
        assert code == 0 and "success" in said, said


@test
def what_arrives_on_a_bus():
    with AwsWorld() as w:
        moto = Moto(w, seen={})
        bus_of(moto, "jobs", "seen")
        here = {"event_bus": "jobs", "endpoint": f"http://127.0.0.1:{moto.port}"}
        w.at("eventbridge", "envelope", source="com.example.shop", **here)
        w.at("eventbridge", "payload", body="payload", **here)
        w.at("eventbridge", "event", body="cloudevents", **here)
        relay = w.start().ready()
        w.insert("envelope", "Order", message_id="good", payload='{"a":"é😀"}', **WHOLE)
        w.insert("payload", "Order", message_id="payload", payload='{"a":2}')
        w.insert("event", "Order", message_id="event", payload='{"a":3}')
        w.is_sent("good", "payload", "event")
        seen = [json.loads(m["Body"]) for m in moto.drain("seen")]
        envelope, = (e for e in seen if e["source"] == "com.example.shop")
        alone = sorted((e["detail"] for e in seen if e["source"] == "hikyaku"), key=len)
        assert alone[0] == {"a": 2} and (alone[1]["id"], alone[1]["type"], alone[1]["data"]) == ("event", "Order", {"a": 3}) and len(seen) == 3, seen
        assert envelope["detail-type"] == "Order" and envelope["detail"]["data"] == {"a": "é😀"}, envelope
        assert envelope["detail"]["metadata"].pop("traceparent").startswith("00-0af7651916cd43dd8448eb211c80319c-"), envelope
        assert envelope["detail"]["metadata"] == FIELDS, seen
        w.insert("payload", "Order", message_id="list", payload="[1]")
        w.is_dead_of("list", "VALIDATION_ERROR", "EventBridge takes JSON objects")
        w.insert("envelope", "", message_id="untyped")
        w.is_dead_of("untyped", "VALIDATION_ERROR", "event_type")
        w.insert("payload", "Order", message_id="huge", payload='{"a":"' + "x" * 262144 + '"}')
        w.is_dead_of("huge", "PAYLOAD_TOO_LARGE", "EventBridge takes")
        relay.stop()
        w.at("eventbridge", "missing", **{**here, "event_bus": "nowhere"})
        said = w.try_hikyaku("doctor")[1]
        assert "the event bus is there" in said and "ResourceNotFound" in said, said
        code, said = w.try_hikyaku("destinations", "test", "envelope")
        assert code == 0 and "success" in said, said


@test
def what_arrives_in_a_stream():
    with AwsWorld() as w:
        moto = Moto(w)
        stream_of(moto, "jobs", shards=2)
        here = {"stream": "jobs", "endpoint": f"http://127.0.0.1:{moto.port}"}
        w.at("kinesis", "envelope", **here)
        w.at("kinesis", "payload", body="payload", **here)
        w.at("kinesis", "missing", **{**here, "stream": "nowhere"})
        relay = w.start().ready()
        w.insert("envelope", "Order", message_id="good", payload='{"a":"é😀"}', **WHOLE)
        w.insert("payload", "Order", message_id="text", payload="plain text", content_type="text/plain")
        w.insert("envelope", "Order", message_id="wrapped", payload="plain text", content_type="text/plain", message_key="k" * 300)
        w.is_sent("good", "text", "wrapped")
        found = {r["PartitionKey"]: text_of(r) for r in records_of(moto, "jobs")}
        good, wrapped = json.loads(found["k1"]), json.loads(found[hashlib.sha256(b"k" * 300).hexdigest()])
        assert good["data"] == {"a": "é😀"} and good["metadata"].pop("traceparent") and good["metadata"] == FIELDS, good
        assert found["text"] == "plain text" and base64.b64decode(wrapped["data_base64"]) == b"plain text", found
        w.insert("missing", "Order", message_id="missing")
        w.is_dead_of("missing", "BROKER_REFUSED", "ResourceNotFoundException")
        w.insert("payload", "Order", message_id="huge", payload='"' + "x" * ((1 << 20) - 2) + '"')
        w.is_dead_of("huge", "PAYLOAD_TOO_LARGE", "Kinesis takes")
        shown = w.hikyaku("dead", "show", "missing", "--json")
        assert "nowhere" in shown and "PartitionKey" in shown, shown
        relay.stop()
        said = w.try_hikyaku("doctor")[1]
        assert "the stream is there, and is ACTIVE" in said and "ResourceNotFound" in said, said
        code, said = w.try_hikyaku("destinations", "test", "envelope")
        assert code == 0 and "success" in said, said


class Cutter:
    """A proxy in front of moto that cuts connections: before the request is out, or when the answer comes."""

    def __init__(self, port, rng, every):
        self.port, self.rng, self.every, self.cuts = port, rng, every, 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                near.close()
                continue
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    def carry(self, a, b):
        try:
            while data := a.recv(65536):
                if self.rng.randrange(self.every) == 0:
                    self.cuts += 1
                    b.sendall(data[:self.rng.randrange(len(data))])
                    break
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def end(self):
        self.server.close()


@test
def a_stream_keeps_each_key_in_order_through_kills_and_cuts():
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"# SEED={seed}")
    with AwsWorld(event_log=True, relay={"concurrency": KEYS}) as w:
        moto = Moto(w, threads=False)
        stream_of(moto, "jobs", shards=2)
        cutter = Cutter(moto.port, random.Random(seed), 60)
        w.at("kinesis", "jobs", order="key", policy="hard", stream="jobs", body="payload", endpoint=cutter.url)
        w.config["destinations"]["jobs"]["limits"] = {"concurrency": KEYS}
        w.write_config()
        db = w.connect()
        db.execute("BEGIN IMMEDIATE")
        for i in range(MESSAGES):
            w.insert("jobs", "Order", db=db, message_id=f"m-{i:05d}", message_key=f"k{i % KEYS}", payload=str(i))
        db.execute("COMMIT")
        db.close()
        for part in (4, 2):
            relay = w.start()
            until(lambda: w.statuses().get("sent", 0) > MESSAGES // part, lambda: f"{w.statuses()} {relay.log()[-2000:]}")
            relay.kill()
        relay = w.start()
        until(lambda: w.statuses() == {"sent": MESSAGES}, lambda: f"{w.statuses()} {relay.log()[-2000:]}")
        relay.stop()
        cutter.end()
        first, count = collections.defaultdict(list), collections.Counter()
        for record in records_of(moto, "jobs"):
            number = int(text_of(record))
            count[number] += 1
            if count[number] == 1:
                first[record["PartitionKey"]].append(number)
        assert set(count) == set(range(MESSAGES)), f"{MESSAGES - len(count)} are lost"
        assert all(numbers == sorted(numbers) for numbers in first.values()), "a key's order is broken"
        sends = collections.Counter(line["m"] for line in w.events.lines() if line["ev"] == "send")
        assert all(n <= sends[f"m-{i:05d}"] for i, n in count.items())
        print(f"# {MESSAGES} messages, {cutter.cuts} connections cut, {sum(count.values()) - MESSAGES} repeats, {sum(sends.values())} attempts")


@test
def an_outage_of_the_server_loses_nothing():
    """moto keeps nothing over its end: what it had before is read before."""
    with AwsWorld() as w:
        moto = Moto(w, threads=False)
        stream_of(moto, "jobs")
        w.at("kinesis", "jobs", order="key", policy="hard", stream="jobs", body="payload", endpoint=f"http://127.0.0.1:{moto.port}")
        relay = w.start().ready()
        for i in range(100):
            w.insert("jobs", "Order", message_id=f"a-{i}", message_key=f"k{i % 5}", payload=f"a{i}")
        w.is_sent(*(f"a-{i}" for i in range(100)))
        arrived = {text_of(r) for r in records_of(moto, "jobs")}
        assert arrived == {f"a{i}" for i in range(100)}, sorted(arrived ^ {f"a{i}" for i in range(100)})
        moto.process.kill()
        moto.process.wait()
        for i in range(100):
            w.insert("jobs", "Order", message_id=f"b-{i}", message_key=f"k{i % 5}", payload=f"b{i}")
        until(lambda: w.sql("SELECT count(*) FROM outbox_messages WHERE last_error IS NOT NULL")[0][0] > 0, lambda: relay.log()[-2000:])
        moto = Moto(w, port=moto.port, threads=False)
        stream_of(moto, "jobs")  # until then it is refused as missing
        for (lost,) in w.sql("SELECT message_id FROM dead_letters"):
            w.hikyaku("dead", "requeue", lost, "--reason", "the server is back", "--actor", "ann")
        w.is_sent(*(f"b-{i}" for i in range(100)))
        relay.stop()
        assert {text_of(r) for r in records_of(moto, "jobs")} == {f"b{i}" for i in range(100)}


# ---- scripted answers ----

WORDS = ["good"] * 14 + ["bad", "broken", "throttled"]
CODES = {"sns": {"bad": ("InvalidParameter", "true"), "broken": ("InternalError", "false"), "throttled": ("Throttled", "true")},
         "eventbridge": {"bad": "MalformedDetail", "broken": "InternalFailure", "throttled": "ThrottlingException"},
         "kinesis": {"bad": "", "broken": "InternalFailure", "throttled": "ProvisionedThroughputExceededException"}}


def read_form(body):
    fields = dict(urllib.parse.parse_qsl(body, strict_parsing=True))
    return [fields[f"PublishBatchRequestEntries.member.{i}.Message"] for i in range(1, 11) if f"PublishBatchRequestEntries.member.{i}.Id" in fields]


def publish_answer(words):
    good = "".join(f"<member><Id>{i}</Id><MessageId>m{i}</MessageId></member>" for i, word in enumerate(words) if word not in CODES["sns"])
    bad = "".join("<member><Id>{}</Id><Code>{}</Code><SenderFault>{}</SenderFault><Message>said &quot;{}&quot;</Message></member>".format(i, *CODES["sns"][word], word)
                  for i, word in enumerate(words) if word in CODES["sns"])
    return 200, f"<PublishBatchResponse><PublishBatchResult><Successful>{good}</Successful><Failed>{bad}</Failed></PublishBatchResult></PublishBatchResponse>"


def events_answer(words):
    return 200, {"FailedEntryCount": 0, "Entries": [
        {"ErrorCode": CODES["eventbridge"][word], "ErrorMessage": f"said {word}"} if word in CODES["eventbridge"] else {"EventId": "e"} for word in words]}


def records_answer(words):
    return 200, {"Records": [{"ErrorCode": CODES["kinesis"][word], "ErrorMessage": f"said {word}"} if CODES["kinesis"].get(word)
                             else {} if word == "bad" else {"SequenceNumber": "49", "ShardId": "shardId-0"} for word in words]}


KINDS = {"sns": (publish_answer, read_form, {"topic_arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:jobs"}, lambda word: word),
         "eventbridge": (events_answer, lambda body: [json.loads(e["Detail"])["w"] for e in json.loads(body)["Entries"]],
                         {"event_bus": "jobs", "body": "payload"}, lambda word: json.dumps({"w": word})),
         "kinesis": (records_answer, lambda body: [text_of(r) for r in json.loads(body)["Records"]], {"stream": "jobs", "body": "payload"}, lambda word: word)}


@test
def each_message_of_a_batch_has_its_own_result():
    sizes, servers = collections.defaultdict(list), {}

    def whole(kind, words):
        """Refuses any batch; a message alone gets its own result."""
        sizes[f"whole-{kind}"].append(len(words))
        return (400, {"__type": "com.amazonaws#ValidationException", "message": "too long"}) if len(words) > 1 else KINDS[kind][0](words)

    def parts(kind, words):
        sizes[kind].append(len(words))
        return KINDS[kind][0](words)
    try:
        with AwsWorld() as w:
            def server(name, kind, answer):
                _, read, options, _ = KINDS[kind]
                servers[name] = Scripted(lambda words: answer(kind, words), read)
                w.at(kind, name, endpoint=servers[name].base, **options)
            for kind, (_, _, _, payload) in KINDS.items():
                server(kind, kind, parts)
                server(f"whole-{kind}", kind, whole)
                server(f"throttles-{kind}", kind, lambda *_: (400, {"__type": "ThrottlingException", "message": "slow"}))
                server(f"denies-{kind}", kind, lambda *_: (403, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>"))
                server(f"fails-{kind}", kind, lambda *_: (503, ""))
                server(f"cut-{kind}", kind, lambda *_: None)
                server(f"odd-{kind}", kind, lambda *_: (200, {"ok": True}))
            db = w.connect()
            db.execute("BEGIN IMMEDIATE")
            for name in servers:
                payload = KINDS[name.split("-")[-1]][3]
                for i, word in enumerate(WORDS if name.split("-")[0] in ("whole", *KINDS) else ["good"]):
                    w.insert(name, "Order", db=db, message_id=f"{name}:{i if word == 'good' else word}", payload=payload(word))
            db.execute("COMMIT")
            db.close()
            relay = w.start().ready()
            for kind in KINDS:
                for name in (kind, f"whole-{kind}"):
                    w.is_sent(*(f"{name}:{i}" for i in range(14)))
                    if kind == "kinesis":
                        w.is_dead_of(f"{name}:bad", "UNKNOWN", "says nothing of this message", possibly=True)
                    else:
                        w.is_dead_of(f"{name}:bad", "BROKER_REFUSED", "said")
                    w.is_dead_of(f"{name}:broken", "BROKER_UNAVAILABLE", "Internal", possibly=True)
                    w.is_dead_of(f"{name}:throttled", "RATE_LIMITED", "Thr")
                w.is_dead_of(f"throttles-{kind}:0", "RATE_LIMITED", "ThrottlingException slow")
                w.is_dead_of(f"denies-{kind}:0", "AUTH_FAILED", "AccessDenied not you")
                w.is_dead_of(f"fails-{kind}:0", "BROKER_UNAVAILABLE", "HTTP 503", possibly=True)
                w.is_dead_of(f"cut-{kind}:0", "TRANSIENT_NETWORK", "", possibly=True)
                w.is_dead_of(f"odd-{kind}:0", "UNKNOWN", "does not answer as", possibly=True)
                assert sum(sizes[kind]) == 17 and max(sizes[kind]) > 1, sizes
                assert max(sizes[f"whole-{kind}"]) > 1 and sizes[f"whole-{kind}"].count(1) >= 17, sizes
            relay.stop()
    finally:
        for one in servers.values():
            one.end()


@test
def a_record_that_fails_holds_its_key_and_no_other():
    """A third of all records fails, in the middle of batches: a key's later records wait, the other keys go on."""
    rng, taken, lock = random.Random(20261119), [], threading.Lock()

    def answer(pairs):
        records = []
        with lock:
            assert len({key for key, _ in pairs}) == len(pairs), "two records of a key in one request"
            for key, number in pairs:
                if rng.randrange(3):
                    taken.append((key, number))
                    records.append({"SequenceNumber": str(len(taken)), "ShardId": "shardId-0"})
                else:
                    records.append({"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slow"})
        return 200, {"FailedRecordCount": 1, "Records": records}
    server = Scripted(answer, lambda body: [(r["PartitionKey"], int(text_of(r))) for r in json.loads(body)["Records"]])
    try:
        with AwsWorld() as w:
            w.at("kinesis", "jobs", order="key", policy="hard", stream="jobs", body="payload", endpoint=server.base)
            db = w.connect()
            db.execute("BEGIN IMMEDIATE")
            for i in range(600):
                w.insert("jobs", "Order", db=db, message_id=f"m-{i}", message_key=f"k{i % 60}", payload=str(i))
            db.execute("COMMIT")
            db.close()
            relay = w.start()
            until(lambda: w.statuses() == {"sent": 600}, lambda: f"{w.statuses()} {relay.log()[-2000:]}")
            relay.stop()
        by_key = collections.defaultdict(list)
        for key, number in taken:
            by_key[key].append(number)
        assert dict(by_key) == {f"k{k}": list(range(k, 600, 60)) for k in range(60)}
    finally:
        server.end()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
