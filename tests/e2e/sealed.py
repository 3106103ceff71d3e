#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sealed payloads: what is written sealed arrives open, and lies open nowhere in between; a relay without the key waits, and loses
nothing; what was damaged or moved dies and is not sent; who may see it. Speaks TAP.

Usage: sealed.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import POSTGRES, Answer, Skip, World, now_ms, run_tests, until
if POSTGRES:
    import postgres

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/seal"
WHY = ("--actor", "ann", "--reason", "a test")
CANARY = "canary-8c1fe2"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def write_key(path):
    path.write_bytes(base64.b64encode(os.urandom(32)) + b"\n")


class Sealed(World):
    """Mode end, with one key in a file."""

    def __init__(self, source=None, **more):
        super().__init__(init=False, seal={"mode": "end", "store": "shop", "keys": [{"id": "k1", **(source or {"file": "key"})}]},
                         **more)
        self.key = self.path("key")
        write_key(self.key)
        self.hikyaku("init")

    def enqueue(self, message_id, payload):
        self.hikyaku("enqueue", "--destination", "shop", "--event-type", "OrderCreated", "--message-id", message_id,
                     "--payload", payload)

    def sealed_text(self, message_id, payload):
        """As the relay's configuration would have it sealed, without its being sent."""
        self.enqueue("aside-" + message_id, "x")
        self.sql("DELETE FROM outbox WHERE message_id = ?", "aside-" + message_id)
        self.enqueue(message_id, payload)
        text = self.sql("SELECT payload FROM outbox WHERE message_id = ?", message_id)[0][0]
        self.sql("DELETE FROM outbox WHERE message_id = ?", message_id)
        return text

    def arrives(self, message_id):
        return until(lambda: [r for r in self.receiver.arrived(message_id) if r.status == 200], message_id)[-1].body.decode()

    def files(self):
        """Where a database keeps what it was ever told."""
        if POSTGRES:
            cluster = postgres.cluster()
            db = self.connect()
            oid = db.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchall()[0][0]
            db.execute("CHECKPOINT")
            db.close()
            places = [cluster.data / "base" / str(oid), cluster.data / "pg_wal"]
        else:
            places = [self.folder]
        return [f for place in places for f in place.rglob("*") if f.is_file() and f.name != "hikyaku.yaml"]

    def holds(self, text):
        return [str(f) for f in self.files() if text.encode() in f.read_bytes()]


@test
def what_is_sealed_arrives_and_lies_open_nowhere():
    with Sealed() as w:
        def echo(request):  # a receiver that repeats what it was sent
            return Answer(422, {"X-Echo": request.body.decode()}, body=b'{"message":"no: ' + CANARY.encode() + b'"}')
        w.receiver.on("bad", echo)
        w.config["destinations"]["bad"] = w.destination("bad")
        w.write_config()
        w.enqueue("good", json.dumps({"card": CANARY + "-1"}))
        line = json.dumps({"destination": "bad", "event_type": "T", "message_id": "bad", "payload": {"card": CANARY + "-2"}})
        w.path("lines").write_text(line + "\n", encoding="utf-8")
        w.hikyaku("enqueue", "--ndjson", "lines")
        w.path("lines").unlink()
        assert {e for (e,) in w.sql("SELECT encoding FROM outbox")} == {"sealed"}
        relay = w.daemon().ready()
        assert w.arrives("good") == json.dumps({"card": CANARY + "-1"})
        until(lambda: w.letters() == {"bad": "HTTP_422"}, lambda: w.letters())
        shown = w.hikyaku("dead", "show", "bad", "--json") + w.hikyaku("dead", "list", "--json")
        w.path("export").write_text(w.hikyaku("dead", "export"), encoding="utf-8")
        assert "(sealed)" in shown and CANARY not in shown, shown
        revealed = w.hikyaku("dead", "show", "bad", "--reveal", *WHY)
        assert CANARY + "-2" in revealed, revealed
        assert any(act == "reveal" for (act,) in w.sql("SELECT act FROM outbox_audit"))
        code, text = w.try_hikyaku("dead", "send", "bad", *WHY)  # the receiver repeats it once more
        assert code != 0 and "422" in text and CANARY not in text, (code, text)
        relay.stop()
        assert CANARY not in relay.log()
        assert w.holds(CANARY) == []
        assert w.holds("HTTP_422")  # the search finds what is there


@test
def a_letter_is_edited_and_goes_out_under_a_new_id():
    with Sealed() as w:
        w.receiver.on("shop", lambda r: 200 if b"right" in r.body else 422)
        w.enqueue("m", '{"v":"wrong"}')
        relay = w.daemon().ready()
        until(lambda: w.letters() == {"m": "HTTP_422"}, lambda: w.letters())
        code, text = w.try_hikyaku("dead", "edit", "m", "--payload", '{"v":"right"}', *WHY)
        assert code != 0 and "sealed" in text and "--reveal" in text, (code, text)
        w.hikyaku("dead", "edit", "m", "--payload", '{"v":"right"}', "--reveal", *WHY)
        assert w.sql("SELECT count(*) FROM dead_letters WHERE payload LIKE 'hk1.%'") == [(1,)]
        w.hikyaku("dead", "requeue", "m", *WHY, "--yes")
        until(lambda: [r for r in w.receiver.arrived() if r.status == 200], "the edited one")
        got = w.receiver.arrived()[-1]
        assert got.body == b'{"v":"right"}' and got.id.startswith("m~") and len(got.id) == 38, (got.id, got.body)
        relay.stop()


def ids_of(text):
    return sorted(item["message_id"] for item in json.loads(text)["items"])


@test
def filters_and_fixes_open_what_the_caller_may_see():
    with Sealed(admin={"listen": "127.0.0.1:0", "auth": "tokens"}, validate=[{"event_type": "*", "required": ["v:string"]}]) as w:
        w.receiver.on("shop", lambda r: 200 if b"right" in r.body else 422)
        w.enqueue("m1", json.dumps({"v": "wrong", "card": CANARY}))
        w.enqueue("m2", json.dumps({"v": "other", "card": CANARY}))
        w.insert(message_id="open", payload=json.dumps({"v": "wrong"}))
        w.insert(message_id="moved", payload=w.sealed_text("m3", '{"v":"wrong"}'), encoding="sealed")
        def token(name, *more):
            return json.loads(w.hikyaku("token", "create", name, "--role", "operator", *more, *WHY, "--json"))["token"]
        tokens = {"blind": token("blind"), "sees": token("sees", "--reveal")}
        relay = w.daemon().ready()
        until(lambda: len(w.letters()) == 4, lambda: w.letters())

        def ask(who, path, body=None):
            address = re.search(r'msg="admin listening" address=(\S+)', relay.log())[1]
            request = urllib.request.Request(f"http://{address}/api/v1{path}", data=body and json.dumps(body).encode(), headers={
                "Authorization": "Bearer " + tokens[who], "Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read().decode()

        wrong = ("--filter", "payload.v:wrong")
        assert ids_of(w.hikyaku("dead", "list", *wrong, "--json")) == ["m1", "open"]
        assert ids_of(w.hikyaku("messages", "list", *wrong, "--json")) == ["m1", "open"]
        assert ids_of(w.hikyaku("dead", "list", "--text", CANARY.upper(), "--json")) == ["m1", "m2"]
        assert ids_of(ask("sees", "/dead-letters?filter=payload.v:wrong")) == ["m1", "open"]
        assert ids_of(ask("blind", "/dead-letters?filter=payload.v:wrong")) == ["open"]
        assert ids_of(ask("blind", f"/dead-letters?filter=text:{CANARY}")) == []
        assert "2 letters" in w.hikyaku("redrive", "plan", *wrong)
        fix = ("dead", "fix", "--filter", "destination:shop", "--jq")
        blind = json.loads(ask("blind", "/dead-letters/fix", {"filter": "destination:shop", "jq": '.v = "right"', "dry_run": True, "reason": "r"}))
        assert blind["changed"] == 1 and blind["failed"] == 3 and "the right to reveal" in json.dumps(blind), blind
        away = w.path("away")
        w.key.rename(away)
        code, text = w.try_hikyaku(*fix, '.v = "right"', *WHY, "--dry-run")
        assert "the key k1 cannot be read" in text and "1 would be changed, 0 unchanged, 3 failed" in text, (code, text)
        assert ids_of(w.hikyaku("dead", "list", *wrong, "--json")) == ["open"]
        away.rename(w.key)
        told = "".join(w.try_hikyaku(*fix, program, *WHY, "--dry-run", "--samples", "9")[1] for program in (
            '.v = "right"', ".card | error", ".card | tonumber", ".v = 1"))
        assert "(sealed)" in told and "what jq said is hidden" in told and CANARY not in told, told
        text = w.try_hikyaku(*fix, '.v = "right"', *WHY, "--yes")[1]
        assert "3" in text and CANARY not in text, text
        rows = w.sql("SELECT message_id, encoding, substr(payload, 1, 4) FROM dead_letters ORDER BY message_id")
        assert [tuple(r) for r in rows] == [("m1", "sealed", "hk1."), ("m2", "sealed", "hk1."), ("moved", "sealed", "hk1."),
                                            ("open", "utf8", '{"v"')], rows
        w.hikyaku("dead", "requeue", "m1", "m2", *WHY, "--yes")
        until(lambda: sum(r.status == 200 for r in w.receiver.arrived()) == 2, "the fixed ones")
        assert sorted(json.loads(r.body)["v"] for r in w.receiver.arrived() if r.status == 200) == ["right", "right"]
        assert json.loads(w.receiver.arrived()[-1].body)["card"] == CANARY
        relay.stop()
        assert CANARY not in relay.log() and w.holds(CANARY) == [], w.holds(CANARY)


@test
def a_letter_is_sent_by_hand():
    with Sealed() as w:
        w.receiver.on("shop", lambda r: 422 if r.n == 1 else 200)
        w.enqueue("m", '{"v":1}')
        relay = w.daemon().ready()
        until(lambda: w.letters() == {"m": "HTTP_422"}, lambda: w.letters())
        w.hikyaku("dead", "send", "m", *WHY)
        assert w.arrives("m") == '{"v":1}'
        relay.stop()


@test
def without_the_key_messages_wait_and_nothing_is_charged():
    with Sealed(event_log=True) as w:
        w.receiver.on("slack", lambda r: Answer(200, body=b"ok"))
        w.config["channels"] = {"ops": {"slack": {"url": w.receiver.url("slack")}, "allow": ["127.0.0.0/8"]}}
        w.config["alerts"] = {"interval": "100ms", "resolve_after": "100ms", "rules": [
            {"name": "keys", "when": "key_missing", "for": "100ms", "severity": "critical"}, {"name": "gone", "when": "store_unreachable", "for": "0s"}]}
        w.write_config()
        secret = base64.b64decode(w.key.read_bytes())
        w.receiver.on("shop", lambda r: 500 if r.id == "tried" and r.n == 1 else 200)
        for name in ("one", "two"):
            w.enqueue(name, name)
            w.events.add("commit", m=name, dest="shop", began=now_ms(), hash="", max=0)
        away = w.path("away")
        w.key.rename(away)
        relay = w.daemon().ready()
        relay.says("sealed messages wait")
        notices = lambda: [r.body.decode() for r in w.receiver.arrived(destination="slack")]
        until(lambda: len(notices()) == 1, notices)
        assert "lacks a key" in notices()[0] and "the key k1 cannot be read" in notices()[0], notices()
        until(lambda: {e["m"] for e in w.events.lines() if e["ev"] == "keyless"} == {"one", "two"}, "both")
        w.insert(message_id="open", payload="open")  # what is not sealed does not wait for it
        assert w.arrives("open") == "open"
        until(lambda: "KEY_MISSING" in w.hikyaku("messages", "show", "one"), "its cause")
        assert "[key_missing]" in w.hikyaku("messages", "explain", "one")
        code, text = w.try_hikyaku("doctor")
        assert code != 0 and "the key k1 cannot be read" in text, text
        code, text = w.try_hikyaku("enqueue", "--destination", "shop", "--event-type", "T", "--payload", "x")
        assert code != 0 and "cannot be sealed" in text, text
        assert w.sql("SELECT count(*) FROM outbox_retry WHERE attempts = 0 AND charged = 0") == [(2,)]
        w.hikyaku("messages", "list")
        away.rename(w.key)
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded")
        for name in ("one", "two"):
            w.hikyaku("messages", "retry", name, *WHY)
        assert (w.arrives("one"), w.arrives("two")) == ("one", "two")
        until(lambda: w.sql("SELECT count(*) FROM outbox_retry") == [(0,)], "all of them settled")
        assert w.letters() == {}
        until(lambda: len(notices()) == 2, notices)
        assert "no longer waits for a key" in notices()[1], notices()
        for form in (base64.b64encode(secret).decode(), secret.hex()):
            assert form not in "".join(notices()) + relay.log()
        relay.stop()


@test
def another_key_of_the_same_id_waits_and_damage_dies():
    with Sealed() as w:
        text = w.sealed_text("m", "secret")
        right = w.key.read_bytes()
        cut = text[:-8]
        w.insert(message_id="moved", payload=text, encoding="sealed")
        w.insert(message_id="cut", payload=cut, encoding="sealed")
        w.insert(message_id="none", payload="{}", encoding="sealed")
        relay = w.daemon().ready()
        until(lambda: set(w.letters()) == {"moved", "cut", "none"}, lambda: w.letters())
        assert set(w.letters().values()) == {"VALIDATION_ERROR"}, w.letters()
        relay.stop()
        write_key(w.key)
        w.insert(message_id="m", payload=text, encoding="sealed")
        relay = w.daemon().ready()
        relay.says("is not the one that sealed it")
        assert w.receiver.arrived() == [] and len(w.letters()) == 3
        relay.stop()
        w.key.write_bytes(right)
        w.hikyaku("messages", "retry", "m", *WHY)
        relay = w.daemon().ready()
        assert w.arrives("m") == "secret"
        relay.stop()


@test
def a_redrive_by_payload_opens_what_it_looks_at():
    with Sealed(admin={"listen": "127.0.0.1:0", "auth": "tokens"}) as w:
        w.receiver.on("shop", lambda r: 422)
        for name in ("m1", "m2"):
            w.enqueue(name, json.dumps({"v": "wrong", "card": CANARY}))
        w.enqueue("m3", json.dumps({"v": "other", "card": CANARY}))
        w.insert(message_id="open", payload='{"v":"wrong"}')
        tokens = {name: json.loads(w.hikyaku("token", "create", name, "--role", "operator", *more, *WHY, "--json"))["token"]
                  for name, more in (("blind", ()), ("sees", ("--reveal",)))}
        relay = w.daemon().ready()
        until(lambda: len(w.letters()) == 4, lambda: w.letters())

        def start(who, **ask):
            address = re.search(r'msg="admin listening" address=(\S+)', relay.log())[1]
            request = urllib.request.Request(f"http://{address}/api/v1/redrives", data=json.dumps({"reason": "r", **ask}).encode(), headers={
                "Authorization": "Bearer " + tokens[who], "Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as refused:
                return refused.code, refused.read().decode()

        def jobs():
            return w.sql("SELECT status, requeued FROM outbox_redrive ORDER BY id")

        status, told = start("blind", filter="payload.v:wrong opens:sealed")
        assert status == 403 and "right to reveal" in told, (status, told)
        status, told = start("blind", filter=f"text:{CANARY}")
        assert status == 404, (status, told)
        w.receiver.on("shop", 200)
        assert start("blind", filter="payload.v:wrong")[0] in (200, 201, 202)  # finds what lies open, and opens nothing
        until(lambda: jobs() == [("done", 1)], jobs)
        assert w.receiver.accepted() == {"open": 1}, w.receiver.accepted()
        assert start("sees", filter="payload.v:wrong", rate=50)[0] in (200, 201, 202)
        until(lambda: jobs() == [("done", 1), ("done", 2)], jobs)
        assert w.receiver.accepted() == {"open": 1, "m1": 1, "m2": 1}, w.receiver.accepted()
        filters = [text for (text,) in w.sql("SELECT filter FROM outbox_redrive ORDER BY id")]
        assert "opens" not in filters[0] and "opens:sealed" in filters[1] and "opens:sealed" in w.hikyaku("redrive", "show", "2"), filters
        relay.stop()


@test
def a_relay_without_the_key_leaves_a_redrive_to_others():
    with Sealed() as w:
        w.receiver.on("shop", 422)
        w.enqueue("m1", '{"v":"wrong"}')
        w.enqueue("m2", '{"v":"right"}')
        relay = w.daemon().ready()
        until(lambda: len(w.letters()) == 2, lambda: w.letters())
        relay.stop()
        w.receiver.on("shop", 200)
        config, without = w.config_path, w.path("without.yaml")
        w.config["seal"]["keys"][0]["file"] = "nowhere"
        w.config_path = without
        w.write_config()
        w.config_path = config
        blind = w.daemon("blind", config=without).ready()
        w.hikyaku("redrive", "start", "--filter", "payload.v:wrong", *WHY, "--yes")
        blind.says("redrive waits: this relay cannot open a sealed payload")
        assert "the key k1 cannot be read" in blind.log()
        assert w.sql("SELECT status, requeued, cursor_id FROM outbox_redrive") == [("running", 0, 0)]
        if not POSTGRES:
            blind.stop()  # one relay at a time
        sees = w.daemon("sees").ready()
        until(lambda: w.sql("SELECT requeued FROM outbox_redrive") == [(1,)], "the other relay")
        if POSTGRES:
            blind.stop()  # the letter may be in a shard of this one: then it waits there

        def arrived():
            w.try_hikyaku("messages", "retry", "m1", *WHY)
            return w.receiver.accepted()
        until(arrived, "m1")
        until(lambda: w.sql("SELECT status FROM outbox_redrive") == [("done",)], "its end")
        assert w.receiver.accepted() == {"m1": 1} and dict(w.sql("SELECT message_id, status FROM dead_letters"))["m2"] == "failed"
        sees.stop()


# ---- where keys come from ----

@test
def a_command_is_asked_again_after_a_reload_and_when_it_failed():
    with Sealed(source={"command": ["cat", "key"]}) as w:
        relay = w.daemon().ready()
        w.enqueue("first", "first")
        assert w.arrives("first") == "first"
        locked = 'msg=sandbox seccomp=on' in relay.log()
        # another key comes, from another command: the relay itself can run none any more
        write_key(w.path("second"))
        w.config["seal"]["keys"].insert(0, {"id": "k2", "command": ["cat", "second"]})
        w.write_config()
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded")
        w.enqueue("second", "second")
        assert w.arrives("second") == "second" and "a key is missing" not in relay.log()
        # a service that does not answer yet
        w.config["seal"]["keys"].insert(0, {"id": "k3", "command": ["cat", "third"]})
        write_key(w.path("aside"))
        w.path("aside").rename(w.path("third"))
        w.write_config()
        w.enqueue("third", "third")
        w.path("third").rename(w.path("aside"))
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded", times=2)
        relay.says("its command ended with code 1")
        w.path("aside").rename(w.path("third"))
        until(lambda: "KEY_MISSING" in w.hikyaku("messages", "show", "third") or w.receiver.arrived("third"), "its cause")

        def arrived():
            w.try_hikyaku("messages", "retry", "third", *WHY)
            return w.receiver.arrived("third")
        until(arrived, "the third")
        assert w.arrives("third") == "third"
        # the process that runs commands has ended
        runners = [pid for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == relay.pid and name_of(pid) == "hikyaku-keys"]
        assert len(runners) == 1, runners
        os.kill(int(runners[0]), signal.SIGKILL)
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded", times=3)
        w.enqueue("fourth", "fourth")
        assert w.arrives("fourth") == "fourth"  # it keeps the keys that it has
        print(f"# locked: {locked}")
        relay.stop()
        assert "hikyaku-keys" not in {name_of(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == relay.pid}


def stat_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "0 () X 0"


def parent_of(pid):
    return int(stat_of(pid).rsplit(")", 1)[1].split()[1])


def name_of(pid):
    return stat_of(pid).split("(", 1)[1].rsplit(")", 1)[0]


@test
def a_command_hangs_and_the_relay_does_not():
    with Sealed() as w:
        w.config["seal"]["keys"].append({"id": "slow", "command": ["sh", "-c", "test -e answer && cat answer || sleep 60"]})
        w.path("answer").write_bytes(w.key.read_bytes())
        w.write_config()
        relay = w.daemon().ready()
        w.path("answer").unlink()
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded")
        w.enqueue("m", "m")
        assert w.arrives("m") == "m"
        relay.stop()


@test
def a_key_may_come_from_a_command_and_a_reload_keeps_it():
    with Sealed(source={"command": ["cat", "key"]}) as w:
        w.enqueue("before", "before")
        relay = w.daemon().ready()
        assert w.arrives("before") == "before"
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded")
        w.enqueue("after", "after")
        assert w.arrives("after") == "after"
        relay.stop()


@test
def a_key_may_come_from_a_variable_or_a_credential():
    with Sealed() as w:
        w.enqueue("m1", "one")
        w.enqueue("m2", "two")
        key = w.key.read_text(encoding="ascii")
        w.key.unlink()
        w.config["seal"]["keys"] = [{"id": "k1", "env": "THE_KEY"}]
        w.write_config()
        relay = w.daemon(env={"THE_KEY": key}).ready()
        assert (w.arrives("m1"), w.arrives("m2")) == ("one", "two")
        relay.stop()
        assert key.strip() not in relay.log()
        w.path("credentials").mkdir()
        w.path("credentials/key").write_text(key, encoding="ascii")
        w.config["seal"]["keys"] = [{"id": "k1", "credential": "key"}]
        w.write_config()
        relay = w.daemon(env={"CREDENTIALS_DIRECTORY": str(w.path("credentials"))}).ready()
        w.insert(message_id="m3", payload="three")
        assert w.arrives("m3") == "three"
        assert "a key is missing" not in relay.log()
        relay.stop()


def arrives_from(name, *command):
    with Sealed() as w:
        done = subprocess.run([*command, "k1", str(w.key), "shop", name], input=b'{"from":"\xc3\xa9"}', capture_output=True,
                              cwd=w.folder, timeout=300, check=False)
        assert done.returncode == 0, done.stderr.decode()
        w.insert(message_id=name, payload=done.stdout.decode("ascii"), encoding="sealed")
        relay = w.daemon().ready()
        assert w.arrives(name) == '{"from":"é"}'
        relay.stop()


def needs(program):
    found = shutil.which(program)
    if not found:
        raise Skip(f"{program} is not installed")
    return found


@test
def python_seals():
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import cryptography"], capture_output=True,
                                                     check=False).returncode == 0:
            return arrives_from("python", python, str(EXAMPLES / "seal.py"))
    raise Skip("python3-cryptography is not installed")


@test
def node_seals():
    arrives_from("node", needs("node"), str(EXAMPLES / "seal.mjs"))


@test
def go_seals():
    arrives_from("go", needs("go"), "run", str(EXAMPLES / "seal.go"))


@test
def java_seals():
    arrives_from("java", needs("java"), str(EXAMPLES / "Seal.java"))


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
