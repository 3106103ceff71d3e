#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Secrets in payloads, and where they must not be: after mixed traffic in the modes rest and end a canary lies in no file of the database
(rest: but for outbox's own), no log at debug level, no span, no metric, no alert, no export, no audit, and in no answer of the HTTP API.
A relay that crashes leaves no core file, and in a core that is allowed there is nothing of a key. Speaks TAP.

Usage: canary.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import base64
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from api import Api
from rest import CANARY, WHY, Rest, tell
from support import BINARY, POSTGRES, Answer, Skip, clean_environment, is_sanitized, run_tests, sqlite_only, until
from telemetry import SOON, Collector, telemetry
if POSTGRES:
    import postgres

SECRET = "header-2b19d4"  # receivers repeat it; it is in no payload
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def echo(request):
    """Says in every way that it can what it was sent."""
    text = request.body.decode()
    body = json.dumps({"message": "no: " + text[:300], "secret": SECRET}).encode()
    return Answer(500 if request.n < 3 and request.id.startswith("again") else 422, {"X-Echo": text[:300]}, body=body)


class Canary(Rest):
    def __init__(self, mode, collector, **more):
        super().__init__(mode=mode, relay={"history": "all"}, admin={"listen": "127.0.0.1:0", "auth": "tokens"},
                         log={"level": "debug"}, **telemetry(collector), **more)
        self.canary = f"{CANARY}-{mode}"  # PostgreSQL: one WAL for both modes
        self.receiver.on("bad", echo)
        self.config["destinations"]["bad"] = self.destination("bad")
        tell(self, {"name": "died", "when": "dead_letter"})
        self.write_config()

    def add(self, message_id, text="", **more):
        """By whoever seals in this mode."""
        payload = json.dumps({"card": f"{self.canary}-{message_id}", "v": "wrong", "more": text})
        if self.config["seal"]["mode"] == "rest":
            self.insert(message_id=message_id, payload=payload, **more)
            return
        options = [word for name, value in more.items() for word in ("--" + name.replace("_", "-"), value)]
        if "destination" not in more:
            options += ["--destination", "shop"]
        self.hikyaku("enqueue", "--event-type", "T", "--message-id", message_id, "--payload", payload, *options)

    def traffic(self):
        self.add("good")
        self.add("again", destination="bad")
        self.add("bad", destination="bad")
        self.add("large", base64.b64encode(os.urandom(75_000)).decode(), destination="bad")  # PostgreSQL: TOAST, which cannot be compressed
        self.add("later", not_before="2099-01-01T00:00:00Z")
        self.add("never", not_before="2099-01-01T00:00:00Z")
        relay = self.daemon(env=SOON).ready()
        until(lambda: self.letters() == {"again": "HTTP_422", "bad": "HTTP_422", "large": "HTTP_422"}, lambda: self.letters())
        assert self.canary in self.arrives("good")
        self.hikyaku("messages", "cancel", "never", *WHY)
        self.hikyaku("dead", "edit", "bad", "--payload", json.dumps({"card": self.canary + "-edited"}), "--reveal", *WHY)
        self.hikyaku("dead", "requeue", "bad", *WHY, "--yes")
        until(lambda: any(b"edited" in r.body for r in self.receiver.arrived()), "the edited one")
        until(lambda: self.sql("SELECT count(*) FROM dead_letters WHERE status = 'failed'") == [(3,)], "dead again")
        self.try_hikyaku("dead", "send", "again", *WHY)
        until(lambda: self.sql("SELECT count(*) FROM outbox") == [(0,)], "outbox empty")
        return relay

    def words(self):
        """What people and programs are shown who may not reveal."""
        said = {" ".join(words): "".join(map(str, self.try_hikyaku(*words))) for words in (
            ("dead", "export"), ("dead", "export", "--format", "csv"), ("dead", "list", "--json"), ("dead", "groups", "--json"),
            ("dead", "stats", "--json"), ("dead", "show", "bad"), ("dead", "show", "large", "--json"), ("messages", "list", "--json"),
            ("messages", "show", "later", "--payload", "--json"), ("messages", "show", "again"), ("messages", "explain", "again"),
            ("audit", "list", "--json"), ("audit", "export"), ("job", "list", "--json"), ("alerts", "list", "--json"), ("status", "--json"),
            ("keys", "list", "--json"), ("doctor",), ("config", "show"))}
        said.update(self.pages())
        return said

    def pages(self):
        """Every page of the API that needs no id, and those of the letters and messages."""
        address = re.search(r'msg="admin listening" address=(\S+)', self.daemons[-1].log())[1]
        token = json.loads(self.hikyaku("token", "create", "blind", "--role", "admin", *WHY, "--json"))["token"]
        blind, said = Api(address, token), {}
        paths = blind.good("GET", "/openapi.json")["paths"]
        wanted = [p for p, ways in paths.items() if "get" in ways and "{" not in p and "event-stream" not in json.dumps(ways["get"])]
        assert len(wanted) > 10, wanted
        ids = [row["id"] for row in blind.good("GET", "/dead-letters", query={"status": "any"})["items"]]
        wanted += [f"/dead-letters/{i}" for i in ids] + [f"/messages/{name}" for name in ("again", "later", "never", "good")]
        for path in wanted:
            status, _, body = blind.ask("GET", path.removeprefix("/api/v1"))
            said[f"GET {path}"] = f"{status} {body}"
        assert "200" in said[f"/dead-letters/{ids[0]}".join(("GET ", ""))][:4], said
        return said

    def places(self):
        """Files in which nothing of a payload may lie, and what the search must find in one of them."""
        if POSTGRES:
            return self.files_with(self.canary) if self.config["seal"]["mode"] == "rest" else self.anywhere()
        copy = self.path("copy.db")  # rest: the file without the pages that outbox has freed
        self.sql(f"VACUUM INTO '{copy}'")
        files = [copy] if self.config["seal"]["mode"] == "rest" else [f for f in self.folder.rglob("*") if f.is_file()]
        assert b"hk1.k1." in copy.read_bytes()
        return [str(f) for f in files if self.canary.encode() in f.read_bytes()]

    def anywhere(self):
        db = self.connect()
        oid = db.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchall()[0][0]
        db.execute("CHECKPOINT")
        db.close()
        data = postgres.cluster().data
        files = [f for place in ("base/" + str(oid), "pg_wal") for f in (data / place).rglob("*") if f.is_file()]
        assert any(b"hk1.k1." in f.read_bytes() for f in files)
        return [str(f) for f in files if self.canary.encode() in f.read_bytes()]


def holds(text):
    return CANARY in text or SECRET in text or CANARY.encode().hex() in text


def traffic_leaves_nothing_open(mode):
    with Collector() as collector, Canary(mode, collector) as w:
        key = base64.b64decode(w.key.read_bytes())
        relay = w.traffic()
        said = w.words()
        until(lambda: len(collector.spans()) >= 6, "spans")
        until(lambda: w.receiver.arrived(destination="slack"), "an alert")
        relay.stop()
        told = {"log": relay.log(), **said,
                "spans": b"".join(collector.bodies).decode(), "metrics": b"".join(b for _, _, b in collector.pushes).decode("latin-1"),
                "alerts": "".join(r.body.decode() for r in w.receiver.arrived(destination="slack"))}
        assert {name for name, text in told.items() if holds(text)} == set(), {
            name: text[max(0, text.find(CANARY) - 200):][:500] for name, text in told.items() if holds(text)}
        if POSTGRES:
            told["server"] = (postgres.cluster().folder / "server.log").read_text(encoding="utf-8", errors="replace")
        for form in (base64.b64encode(key).decode(), key.hex()):
            assert {name for name, text in told.items() if form in text} == set()
        assert "large" in told["spans"] and "(sealed)" in told["dead export"] and "HTTP_422" in told["log"]
        assert w.places() == [], w.places()
        assert w.canary in w.hikyaku("dead", "show", "large", "--reveal", "--json", *WHY)  # it is all there, for who may see it


@test
def rest_leaves_nothing_open_but_in_outbox():
    traffic_leaves_nothing_open("rest")


@test
def end_leaves_nothing_open_anywhere():
    traffic_leaves_nothing_open("end")


# ---- core files ----

def crash(w, number, *options):
    """(has the kernel written a core?, the file, where there is one)"""
    def unlimited():
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (most, most))
        signal.signal(number, signal.SIG_DFL)  # a shell's job in the background ignores SIGQUIT, and so would its children
    environment = clean_environment()
    asan = ":".join(filter(None, (environment.get("ASAN_OPTIONS"), "handle_segv=0", "handle_abort=0", "disable_coredump=0")))
    with open(w.path("crashed.log"), "wb") as log:
        process = subprocess.Popen([BINARY, "--config", str(w.config_path), "run", *options], cwd=w.folder, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, env={**environment, "ASAN_OPTIONS": asan}, preexec_fn=unlimited)
    w.children.append(process)
    log = lambda: w.path("crashed.log").read_text(encoding="utf-8")
    n = len(w.receiver.arrived())
    until(lambda: "msg=sandbox" in log() or process.poll() is not None, log)
    w.add(f"crash-{number}-{len(options)}")
    until(lambda: len(w.receiver.arrived()) > n, "one that was opened and sent")
    os.kill(process.pid, number)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = -os.WTERMSIG(status)
    assert os.WTERMSIG(status) == number, log()
    return os.WCOREDUMP(status), glob.glob(str(w.folder / "core*"))


def forms_of(key):
    return {"raw": key, "base64": base64.b64encode(key), "hex": key.hex().encode()}


@test
@sqlite_only
def a_crash_leaves_no_core():
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        raise Skip("this user may write no core")
    with Collector() as collector, Canary("end", collector) as w:
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGQUIT):
            assert crash(w, number) == (False, []), number


def core_of(w):
    """As the kernel writes it, or gdb, which leaves out the same pages."""
    dumped, files = crash(w, signal.SIGABRT, "--core-dumps")
    if files:
        return files[0]
    if not shutil.which("gcore"):
        raise Skip(f"no core can be had here (dumped: {dumped}), and gdb is not installed")
    relay = w.child(BINARY, "--config", str(w.config_path), "run", "--core-dumps", stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env=clean_environment())
    w.add("for-gdb")
    until(lambda: w.receiver.arrived("for-gdb"), "it works")
    done = subprocess.run(["gcore", "-o", str(w.path("core")), str(relay.pid)], capture_output=True, timeout=300, check=False)
    files = glob.glob(str(w.folder / "core*"))
    if done.returncode != 0 or not files:
        raise Skip("gdb may not look at a process here")
    return files[0]


@test
@sqlite_only
def a_core_that_is_allowed_has_nothing_of_a_key():
    with Collector() as collector, Canary("end", collector) as w:
        key, found = base64.b64decode(w.key.read_bytes()), set()
        with open(core_of(w), "rb") as core:
            before = b""
            while chunk := core.read(1 << 24):
                text = before + chunk
                found |= {name for name, form in forms_of(key).items() if form in text}
                found |= {"control"} if w.receiver.url("shop").encode() in text else set()
                before = text[-100:]
        assert found == {"control"}, found


def mappings(pid):
    """The flags of each, as smaps has them."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
        return [set(line.split()[1:]) for line in file if line.startswith("VmFlags:")]


@test
@sqlite_only
def keys_are_in_locked_memory():
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == 0:
        raise Skip("this user may lock no memory")
    if is_sanitized():
        raise Skip("sanitizers make mlock() do nothing")
    with Collector() as collector, Canary("end", collector) as w:
        relay = w.child(BINARY, "--config", str(w.config_path), "run", "--core-dumps", stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                        env=clean_environment())
        w.add("m")
        until(lambda: w.receiver.arrived("m"), "it works")
        assert any({"lo", "dd"} <= flags for flags in mappings(relay.pid)), mappings(relay.pid)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
