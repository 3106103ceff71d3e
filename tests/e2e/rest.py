#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mode rest: what the relay writes down is sealed, and so is what receivers said. After mixed traffic no secret lies in any table but
outbox, nor in a log, a list, an export or an alert. Without the key the relay waits, and loses nothing. Speaks TAP.

Usage: rest.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import base64
import json
import os
import signal
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import POSTGRES, Answer, World, run_tests, until
if POSTGRES:
    import postgres

WHY = ("--actor", "ann", "--reason", "a test")
CANARY = "canary-51ab7e"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def write_key(path):
    path.write_bytes(base64.b64encode(os.urandom(32)) + b"\n")


class Rest(World):
    def __init__(self, mode="rest", **more):
        super().__init__(init=False, seal={"mode": mode, "store": "shop", "keys": [{"id": "k1", "file": "key"}]}, **more)
        self.key = self.path("key")
        write_key(self.key)
        self.hikyaku("init")

    def add(self, message_id, **more):
        self.insert(message_id=message_id, payload=json.dumps({"card": f"{CANARY}-{message_id}"}), **more)

    def arrives(self, message_id):
        return until(lambda: [r for r in self.receiver.arrived(message_id) if r.status == 200], message_id)[-1].body.decode()

    def columns_with(self, text):
        """Tables, other than outbox, with a cell that holds it."""
        return self.rows_with(text) if not POSTGRES else self.files_with(text)

    def rows_with(self, text):
        found, db = [], self.connect()
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'outbox'").fetchall():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            where = " OR ".join(f"instr(CAST({c} AS BLOB), CAST(? AS BLOB)) > 0" for c in columns)
            if db.execute(f"SELECT 1 FROM {table} WHERE {where} LIMIT 1", [text] * len(columns)).fetchall():
                found.append(table)
        db.close()
        return found

    def files_with(self, text):
        """Every file of the database, dead rows and TOAST included, but for those of outbox itself."""
        db = self.connect()
        db.execute("CHECKPOINT")
        own = {path for (path,) in db.execute(
            "WITH o AS (SELECT oid, reltoastrelid AS toast FROM pg_class WHERE oid = 'outbox'::regclass) SELECT pg_relation_filepath(c.oid)"
            " FROM pg_class c JOIN o ON c.oid IN (o.oid, o.toast) OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN (o.oid, o.toast))"
        ).fetchall()}
        rest = db.execute("SELECT relname, pg_relation_filepath(oid) FROM pg_class WHERE relkind IN ('r', 'i', 't', 'm')").fetchall()
        db.close()
        data = postgres.cluster().data
        return [name for name, path in rest if path and path not in own and (data / path).exists()
                and text.encode() in (data / path).read_bytes()]


def tell(w, *rules):
    """Alerts of these rules go to the receiver."""
    w.receiver.on("slack", lambda r: Answer(200, body=b"ok"))
    w.config["channels"] = {"ops": {"slack": {"url": w.receiver.url("slack")}, "allow": ["127.0.0.0/8"]}}
    w.config["alerts"] = {"interval": "100ms", "resolve_after": "100ms", "rules": list(rules)}


def mixed_traffic(w):
    """Every way that a message can go."""
    def echo(request):
        body = json.dumps({"message": "no: " + request.body.decode()}).encode()
        status = 500 if request.id.startswith("again") and request.n < 3 else 422
        return Answer(200 if request.id.startswith("again") and request.n >= 3 else status, {"X-Echo": request.body.decode()}, body=body)
    w.receiver.on("bad", echo)
    w.config["destinations"]["bad"] = w.destination("bad")
    tell(w, {"name": "died", "when": "dead_letter"})
    w.write_config()


@test
def what_the_relay_writes_is_sealed():
    with Rest(relay={"history": "all"}) as w:
        mixed_traffic(w)
        for i in range(3):
            w.add(f"good-{i}")
            w.add(f"again-{i}", destination="bad")
            w.add(f"bad-{i}", destination="bad")
        w.insert(message_id="bytes", destination="bad", encoding="base64", payload=base64.b64encode(f"{CANARY}-bytes".encode()).decode())
        w.add("later", not_before="2099-01-01T00:00:00Z")
        w.add("never", not_before="2099-01-01T00:00:00Z", message_key="k")
        w.insert(message_id="wrong", encoding="base64", payload=CANARY + " is not base64 !")
        w.insert(message_id="large", destination="bad", payload=CANARY + "x" * 3_000_000)
        relay = w.daemon().ready()
        for i in range(3):
            assert w.arrives(f"good-{i}") == json.dumps({"card": f"{CANARY}-good-{i}"})
            assert w.arrives(f"again-{i}") == json.dumps({"card": f"{CANARY}-again-{i}"})
        dead = {"bad-0": "HTTP_422", "bad-1": "HTTP_422", "bad-2": "HTTP_422", "bytes": "HTTP_422", "wrong": "VALIDATION_ERROR",
                "large": "PAYLOAD_TOO_LARGE"}
        until(lambda: w.letters() == dead, lambda: w.letters())
        until(lambda: w.sql("SELECT count(*) FROM outbox") == [(0,)], "outbox empty")
        w.hikyaku("messages", "cancel", "never", *WHY)
        w.hikyaku("dead", "edit", "bad-0", "--payload", json.dumps({"card": CANARY + "-edited"}), "--reveal", *WHY)
        w.hikyaku("dead", "requeue", "bad-0", *WHY, "--yes")
        until(lambda: w.receiver.arrived()[-1].body.decode().count("edited"), "the edited one")
        until(lambda: w.sql("SELECT count(*) FROM dead_letters WHERE status = 'failed'") == [(6,)], "dead again")
        w.try_hikyaku("dead", "send", "bad-1", *WHY)
        seen = "".join(w.hikyaku(*words) for words in (
            ("dead", "list", "--json"), ("dead", "groups"), ("dead", "export"), ("dead", "show", "bad-1", "--json"), ("messages", "list"),
            ("messages", "show", "bad-1", "--payload", "--json"), ("messages", "show", "later", "--payload"), ("audit", "list", "--json"),
            ("status",), ("messages", "explain", "bad-1"), ("dead", "stats")))
        assert CANARY not in seen, seen[max(0, seen.find(CANARY) - 300):][:600]
        assert "(sealed)" in seen and "the answer was HTTP 422" in seen
        revealed = w.hikyaku("dead", "show", "bad-1", "--reveal", "--json", *WHY)
        shown = json.loads(revealed)
        assert CANARY + "-bad-1" in json.dumps(shown["payload"]), shown
        words = json.dumps([a["response_body"] for a in shown["attempts_made"]])
        assert "no: " in words and CANARY in words, shown["attempts_made"]  # the receiver's words, too
        assert CANARY + "-bytes" in w.hikyaku("dead", "show", "bytes", "--reveal", *WHY)
        assert CANARY + "-later" in w.hikyaku("messages", "show", "later", "--payload", "--reveal", *WHY)
        assert w.sql("SELECT reason FROM outbox_audit WHERE act = 'reveal' AND message_id = 'later'") == [("a test",)]
        assert w.sql("SELECT encoding FROM dead_letters WHERE message_id = 'bytes'") == [("sealed:base64",)]
        until(lambda: w.receiver.arrived(destination="slack"), "an alert")
        relay.stop()
        assert CANARY not in relay.log()
        assert not any(CANARY in r.body.decode() for r in w.receiver.arrived(destination="slack"))
        assert w.columns_with(CANARY) == [], w.columns_with(CANARY)
        assert w.columns_with("bad-1")  # the search finds what is there
        encodings = {e for (e,) in w.sql("SELECT encoding FROM dead_letters UNION SELECT encoding FROM outbox_retry "
                                         "UNION SELECT encoding FROM outbox_cancelled")}
        assert encodings == {"sealed", "sealed:base64"}, encodings


@test
def a_message_goes_out_as_it_was_written():
    with Rest() as w:
        w.receiver.on("shop", lambda r: 500 if r.n < 3 else 200)
        raw = bytes(range(256))
        w.insert(message_id="bytes", encoding="base64", payload=base64.b64encode(raw).decode())
        w.insert(message_id="text", payload="é\u0001 {not json")
        w.insert(message_id="none", payload=None)
        relay = w.daemon().ready()
        for name, body in (("bytes", raw), ("text", "é\u0001 {not json".encode()), ("none", b"")):
            got = until(lambda n=name: [r for r in w.receiver.arrived(n) if r.status == 200], name)[-1]
            assert got.body == body, (name, got.body)
        relay.stop()


@test
def a_crash_leaves_nothing_open_behind():
    with Rest(relay={"lease": "2s"}) as w:
        w.receiver.on("shop", lambda r: Answer(200, delay=30) if r.n == 1 else 200)
        w.add("held")
        first = w.daemon().ready()
        until(lambda: w.receiver.arrived("held"), "it is in flight")
        first.kill()
        second = w.daemon("second").ready()
        until(lambda: len(w.receiver.arrived("held")) > 1, "sent again")
        until(lambda: w.sql("SELECT count(*) FROM outbox_retry") == [(0,)], "settled")
        assert w.receiver.arrived("held")[-1].body.decode() == json.dumps({"card": f"{CANARY}-held"})
        second.stop()
        assert w.columns_with(CANARY) == []


@test
def without_the_key_nothing_is_sent_and_nothing_is_lost():
    with Rest() as w:
        tell(w, {"name": "keys", "when": "key_missing", "for": "100ms"}, {"name": "gone", "when": "store_unreachable", "for": "0s"})
        w.write_config()
        away = w.path("away")
        w.key.rename(away)
        w.add("m")
        relay = w.daemon()
        relay.says("nothing is sent before payloads can be sealed")
        notices = lambda: [r.body.decode() for r in w.receiver.arrived(destination="slack")]
        until(lambda: notices(), "a notice")
        time.sleep(1)
        assert len(notices()) == 1 and "lacks a key" in notices()[0] and "the key k1 cannot be read" in notices()[0], notices()
        assert w.receiver.arrived("m") == [] and w.sql("SELECT count(*) FROM outbox") == [(1,)]
        code, text = w.try_hikyaku("messages", "cancel", "m", *WHY)
        assert code != 0 and "cannot be" in text and w.sql("SELECT count(*) FROM outbox") == [(1,)], (code, text)
        away.rename(w.key)
        assert w.arrives("m") == json.dumps({"card": f"{CANARY}-m"})
        until(lambda: len(notices()) == 2, notices)
        assert "no longer waits for a key" in notices()[1], notices()
        relay.stop()


@test
def turning_it_on_seals_from_then_on_and_off_still_opens():
    with Rest(mode="off") as w:
        w.receiver.on("shop", lambda r: 503)
        w.add("before")
        relay = w.daemon().ready()
        until(lambda: w.sql("SELECT attempts > 0 FROM outbox_retry") in ([(1,)], [(True,)]), "tried")
        w.config["seal"]["mode"] = "rest"
        w.write_config()
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded")
        w.add("after")
        until(lambda: w.sql("SELECT encoding FROM outbox_retry WHERE message_id = 'after'") == [("sealed",)], "sealed")
        w.config["seal"]["mode"] = "off"
        w.write_config()
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded", times=2)
        w.receiver.on("shop", lambda r: 200)
        assert w.arrives("after") == json.dumps({"card": f"{CANARY}-after"})
        assert w.arrives("before") == json.dumps({"card": f"{CANARY}-before"})
        relay.stop()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
