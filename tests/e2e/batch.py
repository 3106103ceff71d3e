#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batch delivery with a receiver that remembers what it took: per-item results, requests that are refused as a whole, cuts, kills. Speaks TAP.

Usage: batch.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); MESSAGES=10000, KILLS=4, SEED=…; STORE=postgres"""
import base64
import collections
import gzip
import hashlib
import hmac
import http.client
import json
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from killed import KilledWorld, SEED
from support import Answer, POSTGRES, QUICK, Receiver, Request, World, run_tests, until

TESTS = []
MESSAGES, KILLS = int(os.environ.get("MESSAGES", "10000")), int(os.environ.get("KILLS", "4"))
SECRET = base64.b64encode(b"0123456789abcdefghijklmn").decode()
LEASE = {"relay": {"lease": "1s", "concurrency": 512}} if POSTGRES else {"relay": {"concurrency": 512}}


def test(function):
    TESTS.append(function)
    return function


# ---- the receiver ----

def raw_items(body):
    """The text of each item of an array, as it stands there."""
    text, decoder, at, items = body.decode(), json.JSONDecoder(), 1, []
    while text[at:at + 1] != "]":
        end = decoder.raw_decode(text, at)[1]
        items.append(text[at:end])
        at = end + (text[end] == ",")
    return items


def payload_of(text):
    """Its bytes: the last member of the item."""
    key = '"payload":'
    if key in text:
        return text[text.index(key) + len(key):-1].encode()
    return base64.b64decode(json.loads(text)["payload_base64"])


class Batch:
    """A request with its items."""

    def __init__(self, request):
        self.request, self.at = request, request.at
        body = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
        self.texts = body.decode().splitlines() if "ndjson" in request.headers["content-type"] else raw_items(body)
        self.items = [json.loads(text) for text in self.texts]
        self.ids = [item["id"] for item in self.items]

    def __len__(self):
        return len(self.items)


class Batches(Receiver):
    """{path: function(batch) -> Answer, status or None (the connection is cut)}; what a function took it names by `took`."""

    def __init__(self, log=None):
        super().__init__(log)
        self.batches, self.took = [], collections.Counter()

    def take(self, request):
        batch = Batch(request)
        with self.lock:
            self.batches.append(batch)
        script = self.script.get(request.path, self.accept)
        answer = script(batch)
        batch.answered = time.time()
        return answer if answer is None or isinstance(answer, Answer) else Answer(answer)

    def accept(self, batch, but=()):
        with self.lock:
            self.took.update(i for i in batch.ids if i not in but)
        return 200


def results(entries):
    return Answer(207, {"Content-Type": "application/json"}, body=json.dumps({"results": entries}).encode())


class BatchWorld(World):
    make_receiver = Batches

    def __init__(self, batch=100, http=None, **more):
        sections = {**LEASE, **more.pop("sections", {})}
        super().__init__({"shop": {"http": {"batch": batch, **(http or {})}, **more}}, **sections)


def fill(w, n, payload=lambda i: f'{{"n": {i} }}', **columns):
    ids, db = [f"m{i:05d}" for i in range(n)], w.connect()
    db.execute("BEGIN")
    for number, i in enumerate(ids):
        w.insert(db=db, message_id=i, payload=payload(number), **{k: v(number) for k, v in columns.items()})
    db.execute("COMMIT")
    db.close()
    return ids


# ---- cuts and kills ----

class Rough:
    """A receiver that misbehaves by chance. `unclear`: how often a message was taken and the relay was not told."""

    def __init__(self, receiver, bad):
        self.receiver, self.bad, self.chance = receiver, bad, random.Random(f"{SEED} rough")
        self.unclear = collections.Counter()

    def __call__(self, batch):
        with self.receiver.lock:
            luck, item_luck = self.chance.random(), [self.chance.random() for _ in batch.ids]
        if luck < 0.03:
            return None  # cut before anything was done
        if luck < 0.06:
            return 503
        if luck < 0.12:
            self.receiver.accept(batch, self.bad)
            self.unclear.update(batch.ids)
            return None if luck < 0.09 else Answer(200, body=b'{"results":[{"id"')
        entries = []
        for i, item_chance in zip(batch.ids, item_luck):
            if i in self.bad:
                entries.append({"id": i, "status": 422, "error": f"no such customer: {i}"})
            elif item_chance < 0.01:
                entries.append({"id": i, "status": 503})
            else:
                self.receiver.accept_one(i)
                entries.append({"id": i, "status": 200})
        if luck < 0.15:
            self.unclear.update(batch.ids[1:])
            entries = entries[:1]
        return results(entries)


class RoughBatches(Batches):
    def accept_one(self, i):
        with self.lock:
            self.took[i] += 1


@test
def through_cuts_and_kills_nothing_is_lost_and_only_the_bad_message_dies_with_its_own_words():
    class RoughWorld(BatchWorld):
        make_receiver = RoughBatches

    with RoughWorld() as w:
        ids = fill(w, MESSAGES)
        bad = {ids[MESSAGES // 3]}
        rough = Rough(w.receiver, bad)
        w.receiver.on("shop", rough)
        for kill in range(1, KILLS + 1):
            daemon = w.daemon(f"relay-{kill}").ready()
            until(lambda k=kill: len(w.receiver.took) >= MESSAGES * k // (KILLS + 1), "a share of the messages")
            daemon.kill()
        last = w.daemon("last").ready()
        w.settled(sent=MESSAGES - 1, dead=1)
        last.stop()
        took = w.receiver.took
        assert set(took) == set(ids) - bad, f"lost: {sorted(set(ids) - bad - set(took))[:10]}"
        for i, n in took.items():
            assert n <= 1 + rough.unclear[i] + KILLS, f"{i} was taken {n} times"
        repeats = sum(took.values()) - len(took)
        bound = sum(rough.unclear.values()) + KILLS * 400  # four batches in flight at each kill
        print(f"# SEED={SEED}: {len(w.receiver.batches)} requests, {repeats} repeats of at most {bound}")
        assert repeats <= bound
        (row,) = w.sql("SELECT message_id, reason_code, error_message FROM dead_letters")
        assert row[0] in bad and row[1] == "HTTP_422" and row[2] == f"HTTP 422: no such customer: {row[0]}", row
        assert max(len(b) for b in w.receiver.batches) == 100


class EachItsOwn(Receiver):
    """What KilledWorld's scripts say to single messages, as results of the items of a batch; one hang holds up the whole."""

    def take(self, request):
        batch = Batch(request)
        items = []
        for item, text in zip(batch.items, batch.texts):
            one = Request(request.path, {**request.headers, "webhook-id": item["id"]}, payload_of(text), request.at)
            items.append((one, self.ask(one)))
        self.closing.wait(max(answer.delay for _, answer in items))
        hangs = any(answer.hang for _, answer in items)
        for one, answer in items:
            self.act(one, answer._replace(hang=hangs))
        if hangs:
            self.closing.wait(300)
            return None
        return results([{"id": one.id, "status": answer.status,
                         **({"retry_after": int(answer.headers["Retry-After"])} if "Retry-After" in answer.headers else {})}
                        for one, answer in items])


class KilledBatches(KilledWorld):
    make_receiver = EachItsOwn

    def destination(self, name, http=None, **more):
        return super().destination(name, {"batch": 10, **(http or {})}, **more, limits={"concurrency": 64})


@test
def the_checker_finds_every_promise_kept_when_the_relay_is_killed():
    with KilledBatches("batches") as w:
        w.be_flaky()
        app = w.start_application()
        while w.kills < (4 if POSTGRES else 10):
            w.live_and_die()
        w.stop_application(app)
        w.come_to_rest()
        print(f"# {w.kills} kills, {w.with_hands_full} with messages in hand; {w.judge()}")


# ---- one bad message does not harm the others ----

@test
def a_refused_request_is_parted_until_the_bad_messages_are_alone():
    with BatchWorld() as w:
        ids = fill(w, 400)
        bad = {ids[7], ids[8], ids[333]}

        def refuse(batch):
            if bad & set(batch.ids):
                return Answer(400, body=json.dumps({"message": "bad customer in " + batch.ids[0]}).encode())
            return w.receiver.accept(batch)

        w.receiver.on("shop", refuse)
        w.daemon().ready()
        w.settled(sent=397, dead=3)
        assert w.receiver.took == collections.Counter(set(ids) - bad), "each good one once"
        letters = w.sql("SELECT message_id, reason_code, error_message, attempts FROM dead_letters ORDER BY 1")
        assert letters == [(i, "HTTP_400", f"HTTP 400: bad customer in {i}", 1) for i in sorted(bad)], letters
        assert w.sql("SELECT DISTINCT attempts FROM outbox_sent") == [(1,)], "it is the same attempt"
        assert len(w.receiver.batches) < 100, len(w.receiver.batches)


@test
def a_message_over_which_the_receiver_falls_does_not_take_others_with_it():
    policies = {"policies": {"four": {**QUICK, "max_attempts": 4}}}
    with BatchWorld(policy="four", sections=policies) as w:
        ids = fill(w, 300)
        w.receiver.on("shop", lambda batch: 500 if ids[150] in batch.ids else w.receiver.accept(batch))
        w.daemon().ready()
        w.settled(sent=299, dead=1)
        assert w.letters() == {ids[150]: "RETRY_EXHAUSTED"}
        assert w.receiver.took == collections.Counter(set(ids) - {ids[150]})


@test
def requests_that_are_too_large_become_smaller():
    with BatchWorld() as w:
        ids = fill(w, 500, payload=lambda i: json.dumps("x" * (30000 if i == 100 else 1000)))
        w.receiver.on("shop", lambda batch: 413 if len(batch.request.body) > 20000 else w.receiver.accept(batch))
        w.daemon().ready()
        w.settled(sent=499, dead=1)
        assert w.receiver.took == collections.Counter(set(ids) - {ids[100]}), "each once"
        assert w.sql("SELECT message_id, reason_code FROM dead_letters") == [(ids[100], "HTTP_413")]


@test
def items_that_were_not_mentioned_are_sent_again():
    with BatchWorld() as w:
        ids, silent = fill(w, 150), {}

        def forget_some(batch):
            w.receiver.accept(batch)
            first = [i for i in batch.ids if silent.setdefault(i, i.endswith("7"))]
            silent.update((i, False) for i in first)
            return results([{"id": i, "status": 200} for i in reversed(batch.ids) if i not in first])

        w.receiver.on("shop", forget_some)
        w.daemon().ready()
        w.settled(sent=150)
        assert w.receiver.took == collections.Counter({i: 1 + i.endswith("7") for i in ids})
        shown = w.hikyaku("messages", "show", ids[7])
        assert "says nothing of this message" in shown and "PROTOCOL_ERROR" in shown, shown


# ---- order, pace, limits ----

@test
def messages_of_one_key_stay_in_order_and_never_share_a_request():
    with BatchWorld(batch=20, order="key") as w:
        ids = fill(w, 600, message_key=lambda i: f"k{i % 30}")
        chance, order, together = random.Random(SEED), collections.defaultdict(list), []

        def some_fail(batch):
            entries = []
            with w.receiver.lock:
                keys = [item["key"] for item in batch.items]
                together.extend(k for k, n in collections.Counter(keys).items() if n > 1)
                for item in batch.items:
                    failed = chance.random() < 0.1
                    entries.append({"id": item["id"], "status": 503 if failed else 200})
                    if not failed:
                        order[item["key"]].append(item["id"])
            return results(entries)

        w.receiver.on("shop", some_fail)
        w.daemon().ready()
        w.settled(sent=600)
        assert not together, together
        assert all(sent == sorted(sent) for sent in order.values()), order
        assert sum(len(sent) for sent in order.values()) == len(ids)
        assert max(len(b) for b in w.receiver.batches) > 5, "they did travel together"


@test
def a_receiver_that_asks_for_a_wait_gets_it():
    with BatchWorld(batch={"messages": 50, "wait": "20ms"}, limits={"concurrency": 50}) as w:
        ids, first = fill(w, 120), threading.Event()

        def busy_once(batch):
            if first.is_set():
                return w.receiver.accept(batch)
            first.set()
            return Answer(429, {"Retry-After": "2"})

        w.receiver.on("shop", busy_once)
        w.daemon().ready()
        w.settled(sent=120)
        assert set(w.receiver.took) == set(ids)
        later = [b.at for b in w.receiver.batches if set(b.ids) & set(w.receiver.batches[0].ids)][1:]
        assert later and min(later) - w.receiver.batches[0].answered >= 2, "the destination was not spared"


@test
def metrics_and_history_count_messages():
    with BatchWorld() as w:
        ids = fill(w, 100)
        w.receiver.on("shop", lambda b: results([{"id": i, "status": 422 if i == ids[5] else 200, "error": "odd"} for i in b.ids]))
        daemon = w.daemon().ready()
        w.settled(sent=99, dead=1)
        address = until(lambda: [p.split("=")[1] for p in daemon.log().split() if p.startswith("address=127")], "the admin server")[0]
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        attempts = sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
                       if line.startswith("hikyaku_attempts_total{") and 'destination="shop"' in line)
        assert attempts == 100, page
        shown = w.hikyaku("messages", "show", ids[5])
        assert "HTTP 422: odd" in shown, shown
        headers = w.sql("SELECT request_headers FROM outbox_attempts WHERE message_id = ?", ids[5])[0][0]
        headers = headers if isinstance(headers, dict) else json.loads(headers)
        curl = w.hikyaku("dead", "show", ids[5], "--curl")
        assert "travelled in a batch" in curl and f"webhook-id: {ids[5]}" in curl and "Hikyaku-Batch" not in curl, curl
        assert headers["webhook-id"].startswith("batch_") and headers["Hikyaku-Batch"] == str(len(w.receiver.batches[0])), headers


# ---- forms ----

@test
def payloads_arrive_byte_by_byte_in_a_signed_request():
    with BatchWorld(http={"sign": {"secret": "whsec_" + SECRET}, "compression": "gzip"}) as w:
        payloads = ['{"total": 12.50,\n\t"id":12345678901234567890 , "x":1e999}', '"ü\\u0000"', "not JSON {", "", '{"a":1}' * 400]
        db = w.connect()
        db.execute("BEGIN")
        for i, payload in enumerate(payloads):
            w.insert(db=db, message_id=f"p{i}", payload=payload, headers='{"X-Tenant":"acme"}')
        w.insert(db=db, message_id="text", payload="plain", content_type="text/plain")
        db.execute("COMMIT")
        db.close()
        w.daemon().ready()
        w.settled(sent=6)
        found = {}
        for batch in w.receiver.batches:
            headers = batch.request.headers
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + batch.request.body
            mac = base64.b64encode(hmac.new(base64.b64decode(SECRET), signed, hashlib.sha256).digest()).decode()
            assert headers["webhook-signature"] == "v1," + mac
            for item, text in zip(batch.items, batch.texts):
                found[item["id"]] = item, payload_of(text)
        assert {i: raw for i, (_, raw) in found.items()} == {"text": b"plain", **{f"p{i}": p.encode() for i, p in enumerate(payloads)}}
        assert found["text"][0]["content_type"] == "text/plain" and found["p0"][0]["headers"] == {"X-Tenant": "acme"}
        assert "payload" not in found["p2"][0]


@test
def lines_and_events():
    with BatchWorld(batch={"messages": 10, "format": "ndjson"}) as w:
        fill(w, 25, payload=lambda i: f'{{\n"n":{i}\r\n}}')
        w.config["destinations"]["events"] = w.destination("events", {"batch": 10, "cloudevents": "structured"})
        w.write_config()
        w.insert("events", message_id="e1", event_type="order.paid", payload='{"n":1}')
        w.daemon().ready()
        w.settled(sent=26)
        said = w.hikyaku("destinations", "test", "events")
        assert "200" in said, said
        lines = [b for b in w.receiver.batches if b.request.path == "/shop"]
        assert {b.request.headers["content-type"] for b in lines} == {"application/x-ndjson"}
        assert sorted(item["payload"]["n"] for b in lines for item in b.items) == list(range(25))
        events, _ = [b for b in w.receiver.batches if b.request.path == "/events"]
        assert events.request.headers["content-type"] == "application/cloudevents-batch+json"
        assert events.items[0]["type"] == "order.paid" and events.items[0]["data"] == {"n": 1} and events.items[0]["specversion"] == "1.0"


# ---- what a configuration may say ----

REFUSED = [
    ({"url": "message", "batch": 10}, 'needs a URL of its own, not "message"'),
    ({"url": "https://a.example/{event_type}", "batch": 10}, "one URL for all messages"),
    ({"url": "https://a.example/{message_key}", "batch": 10}, "one URL for all messages"),
    ({"batch": 10, "cloudevents": "binary"}, "cloudevents: structured"),
    ({"batch": {"format": "ndjson"}, "cloudevents": "structured"}, "a batch of CloudEvents is an array"),
    ({"batch": 10, "headers": {"X-Try": "{attempt}"}}, "stands for a field of one message"),
    ({"batch": 0}, "1 to 1000"),
    ({"batch": 1001}, "1 to 1000"),
    ({"batch": {"messages": 10, "size": 1}}, 'unknown key "size"'),
]


@test
def what_cannot_work_in_a_batch_is_refused():
    with BatchWorld() as w:
        for http_section, words in REFUSED:
            w.config["destinations"]["shop"]["http"] = {"url": "https://a.example/hooks", **http_section}
            w.write_config()
            code, said = w.try_hikyaku("config", "check")
            assert code != 0 and words in said, (http_section, said)
        w.config["destinations"]["shop"]["http"] = {"url": "https://a.example/{destination}", "batch": {"format": "ndjson"}, "headers": {"X-A": "b"}}
        w.config["destinations"]["shop"]["limits"] = {"concurrency": 99}
        w.write_config()
        code, said = w.try_hikyaku("config", "check")
        assert code == 0 and "no batch is ever full" in said, said


sys.exit(run_tests(TESTS))
