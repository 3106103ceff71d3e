#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every allocation and every call of libc fails in its turn, once and for ever, in the program and in each library below it
(tests/faults/faults.c). After each: the program ended by itself and in time, no sanitizer complains (leaks included), an
exit code of 0 means that all was done, the tables are sound, every message is in one place, and a relay without faults
brings all of them to their end. Speaks TAP.

Usage: faults.py [PATH-TO-HIKYAKU-FAULTS] (default: $HIKYAKU_FAULTS)
  FAULTS=full     every point (hours); FAULTS=N: at most N of each kind and mode for each command (default: 2)
  SEED=S          which of them (default: the day's)
  STORE=postgres  the relays on PostgreSQL: calls and allocations of libpq
  ONLY=NAME,NAME  these commands; POINT="alloc program 17 once,call any 3 ever": these points of each of them"""
import base64
import collections
import concurrent.futures
import contextlib
import difflib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.dont_write_bytecode = True  # the source folder stays as it is
if len(sys.argv) < 2:
    sys.argv.append(os.environ.get("HIKYAKU_FAULTS", ""))
import witness
from killed import Journal
from support import Answer, BINARY, POSTGRES, QUICK, Receiver, World, clean_environment, hash_of, now_ms, until

if POSTGRES:
    import postgres

SEED = os.environ.get("SEED", time.strftime("%Y%m%d", time.gmtime()))
FULL = os.environ.get("FAULTS") == "full"
MANY = 0 if FULL else int(os.environ.get("FAULTS", "2"))
WORKERS = int(os.environ.get("WORKERS", "8"))
GOOD_CODES = {0, 1, 2, 69, 75, 78}
JQ = pathlib.Path(os.environ.get("BUILD_DIR", pathlib.Path(BINARY).parents[2])) / "src/jq/hikyaku-jq"
SANITIZED = {**({"HIKYAKU_JQ": str(JQ)} if JQ.exists() else {}),
             "ASAN_OPTIONS": "detect_leaks=1:exitcode=99:abort_on_error=0:allocator_may_return_null=1",
             "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99:print_stacktrace=1"}
END_S = 60  # it must end by then, once told to

# libuv ends the process, by design, when what cannot fail does: its own eventfd and pipes
ONLY_CALLS = {"libuv": "socket,connect,accept4,bind,listen,epoll_create1,epoll_pwait,eventfd,open,pthread_create,getaddrinfo,"
                       "setsockopt,getsockname"}

Point = collections.namedtuple("Point", "kind origin n mode")


def fault_env(point, report):
    return {**SANITIZED, "HK_FAULT": f"{point.kind} {point.n} {point.mode}", "HK_FAULT_REPORT": str(report),
            "HK_FAULT_FROM": "!libuv" if point.origin == "any" else point.origin, "HK_FAULT_ONLY": ONLY_CALLS.get(point.origin, "")}


def read_report(path):
    """(calls, failed, what failed first, where); all zero when it never came to its end."""
    try:
        calls, failed, name, where, function = path.read_text(encoding="ascii", errors="replace").split(maxsplit=4)
    except (OSError, ValueError):
        return 0, 0, "?"
    return int(calls), int(failed), f"{name} in {pathlib.Path(where).name}, {function.strip()}"


def died_of_libcurl(point, output):
    """libcurl 7.88: without memory for a socket's table of transfers it empties that table and goes on to divide by its size."""
    return point.kind == "alloc" and re.search(r"AddressSanitizer: FPE .*\n(# )? *#0 \S+ +\(\S*/libcurl\.so", output)


def complaint(output):
    """What a sanitizer says, if anything."""
    return "Sanitizer" in output or "runtime error:" in output or "Assertion" in output


# ---- which points ----

def choose(total, name, kind, origin, mode):
    """All of them; or some, one of each stretch of equal length."""
    if total == 0:
        return []
    if FULL or total <= MANY:
        return range(1, total + 1)
    chance = random.Random(f"{SEED} {name} {kind} {origin} {mode}")
    return sorted({chance.randint(k * total // MANY + 1, (k + 1) * total // MANY) for k in range(MANY)})


class Tally:
    def __init__(self):
        self.lock, self.points, self.hit = threading.Lock(), 0, 0
        self.failures = collections.defaultdict(list)

    def add(self, hit):
        with self.lock:
            self.points += 1
            self.hit += bool(hit)

    def fail(self, name, point, what, output):
        with self.lock:
            self.failures[name].append(f"{' '.join(map(str, point))}: {what}\n{output[-2500:]}")


TALLY = Tally()


# ---- commands: on a copy of a full store ----

CONFIG = {"policies": {"quick": QUICK}, "default_policy": "quick", "alerts": {"rules": [
    {"name": "died", "when": "dead_letter"}]}, "masks": [{"event_type": "*", "paths": ["card"]}]}
ROWS = 6
CARD = "4111222233334444"  # masked; the destination repeats it in its answers
TABLES = ("outbox", "outbox_retry", "outbox_sent", "dead_letters", "outbox_cancelled")


class Shelf:
    """A store with messages of every status, made once; each point has a copy."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-faults-"))
        self.receiver = Receiver()
        self.full, self.empty = self.folder / "full", self.folder / "empty"
        for folder in (self.full, self.empty):
            folder.mkdir()
            config = {**CONFIG, "store": "sqlite:outbox.db", "channels": {"ops": {
                "webhook": {"url": self.receiver.url("ops")}, "allow": ["127.0.0.0/8"]}}, "destinations": {
                name: {"http": {"url": self.receiver.url(name)}, "allow": ["127.0.0.0/8"]} for name in ("shop", "bad")}}
            (folder / "hikyaku.yaml").write_text(json.dumps(config), encoding="utf-8")
            (folder / "many.ndjson").write_text("".join(
                json.dumps({"message_id": f"n-{i}", "destination": "shop", "event_type": "E", "payload": {"i": i}}) + "\n"
                for i in range(20)), encoding="utf-8")
        self.fill()

    def fill(self):
        """Some sent, some dead, some that wait: by the relay itself."""
        self.receiver.on("bad", Answer(422, body=f"no such card: {CARD}".encode()))
        self.clean(self.full, "init")
        for name in ("shop", "bad"):
            for i in range(ROWS):
                self.clean(self.full, "enqueue", "--destination", name, "--event-type", "E", "--payload",
                           '{"card":"%s","n":%d}' % (CARD, i), "--message-id", f"{name}-{i}")
        self.clean(self.full, "enqueue", "--destination", "bad", "--event-type", "E", "--encoding", "base64", "--payload",
                   base64.b64encode(b'{"card":"%s"}' % CARD.encode()).decode(), "--message-id", "coded")
        relay = subprocess.Popen([BINARY, "run"], cwd=self.full, stderr=subprocess.DEVNULL, env=clean_environment())
        until(lambda: self.count(self.full, "dead_letters") == ROWS + 1 and not self.count(self.full, "outbox"), "the shelf")
        # The relay has sent its notice, and written that down: every shelf holds the same alert, with nothing under way.
        until(lambda: self.query(self.full, "SELECT min(sent_ms) > 0 FROM outbox_notice")[0][0], "the notice")
        relay.terminate()
        assert relay.wait(60) == 0
        for i in range(ROWS):
            self.clean(self.full, "enqueue", "--destination", "shop", "--event-type", "E", "--payload", "{}",
                       "--message-id", f"wait-{i}", "--not-before", "2h")
        self.clean(self.full, "destinations", "pause", "bad", "--reason", "test", "--actor", "ann")
        self.clean(self.full, "alerts", "mute", "died", "--reason", "test", "--actor", "ann", "--for", "1h")
        self.receiver.on("bad", 200)  # for letters that are sent by hand
        self.clean(self.full, "redrive", "start", "--filter", "destination:bad", "--reason", "test", "--yes")
        db = sqlite3.connect(self.full / "outbox.db")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()

    @staticmethod
    def clean(folder, *args):
        done = subprocess.run([BINARY, *args], cwd=folder, text=True, capture_output=True, timeout=120, check=False,
                              stdin=subprocess.DEVNULL, env={**clean_environment(), **SANITIZED})
        assert done.returncode == 0, (args, done.returncode, done.stdout, done.stderr)
        return done.stdout

    @staticmethod
    def query(folder, text):
        db = sqlite3.connect(folder / "outbox.db")
        try:
            return db.execute(text).fetchall()
        finally:
            db.close()

    def count(self, folder, table):
        return self.query(folder, f"SELECT count(*) FROM {table}")[0][0]

    def close(self):
        self.receiver.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def everything(folder):
    """Each message, and where it is; None where there are no tables yet."""
    db = sqlite3.connect(folder / "outbox.db")
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        there = {name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if "outbox" not in there:
            return None
        whole = "coalesce(payload, '') || coalesce(headers, '')"
        return sorted((m, table, rest) for table in TABLES if table in there for m, rest in
                      db.execute(f"SELECT coalesce(message_id, ''), {whole if table == 'outbox' else '0'} FROM {table}"))
    finally:
        db.close()


ACT = ["--reason", "test", "--actor", "ann"]
READING = {
    "status": ["status", "--json", "--exact"],
    "list": ["messages", "list", "--json"],
    "show": ["messages", "show", "shop-1", "--payload"],
    "explain": ["messages", "explain", "wait-1"],
    "destinations": ["destinations", "list", "--json"],
    "relays": ["relays", "list"],
    "dead list": ["dead", "list", "--json"],
    "dead groups": ["dead", "groups"],
    "dead show": ["dead", "show", "bad-1"],
    "dead show coded": ["dead", "show", "coded"],
    "dead stats": ["dead", "stats", "--json"],
    "dead export": ["dead", "export"],
    "redrive plan": ["redrive", "plan", "--filter", "destination:bad"],
    "redrive list": ["redrive", "list"],
    "alerts list": ["alerts", "list"],
    "audit": ["audit", "list", "--json"],
    "verify": ["audit", "verify"],
    "doctor": ["doctor"],
    "top": ["top", "--once"],
    "plan": ["policy", "plan", "quick"],
    "simulate": ["policy", "simulate", "quick", "--clients", "50"],
    "policy": ["policy", "show", "quick"],
    "check": ["config", "check"],
    "schema": ["config", "schema", "--json"],
    "completion": ["completion", "bash"],
    "help": ["help", "run"],
}
CHANGING = {
    "init": ["init"],
    "init again": ["init"],
    "enqueue": ["enqueue", "--destination", "shop", "--event-type", "E", "--payload", "{}", "--message-id", "new",
                "--header", "a=b", "--header", "c=d"],
    "ndjson": ["enqueue", "--ndjson", "many.ndjson"],
    "cancel": ["messages", "cancel", "wait-1", *ACT],
    "retry": ["messages", "retry", "wait-1", *ACT],
    "pause": ["destinations", "pause", "shop", *ACT],
    "resume": ["destinations", "resume", "bad", *ACT],
    "requeue": ["dead", "requeue", "--destination", "bad", *ACT, "--yes"],
    "resolve": ["dead", "resolve", "bad-1", *ACT],
    "discard": ["dead", "discard", "--destination", "bad", *ACT, "--yes"],
    "note": ["dead", "note", "bad-1", "--actor", "ann", "looked at"],
    "fix": ["dead", "fix", "--destination", "bad", "--jq", ".n |= 9", *ACT, "--yes"],
    "redrive": ["redrive", "start", "--filter", "destination:bad id:bad-1", "--reason", "test", "--yes"],
    "redrive cancel": ["redrive", "cancel", "1", *ACT],
    "mute": ["alerts", "mute", "died", *ACT, "--for", "2h"],
    "unmute": ["alerts", "unmute", "died", *ACT],
}
SENDING = {  # over the network as well
    "test": ["destinations", "test", "shop"],
    "dead send": ["dead", "send", "bad-1", *ACT, "--force"],
    "alerts test": ["alerts", "test", "ops"],
}
ORIGINS = {"alloc": ["program", "libsqlite3"], "call": ["any"]}


def plain(text):
    """What a command says, without what differs from run to run."""
    length = r"\d[\d.]*(ms|[smhd]\d*[smh]?)?"
    text = re.sub(rf"{length} ago|\bin {length}|\(in [^)]*\)", "ago", text)
    return re.sub(r"[ -]+", " ", re.sub(r"\d+", "#", text))


class Command:
    def __init__(self, shelf, name, args, reading=False):
        self.shelf, self.name, self.args, self.reading = shelf, name, args, reading
        self.before, self.after, self.said = None, None, None

    def copy(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.shelf.folder))
        shutil.copytree(self.shelf.empty if self.name == "init" else self.shelf.full, folder, dirs_exist_ok=True)
        return folder

    def run(self, folder, point):
        report = folder / "report"
        try:
            done = subprocess.run([BINARY, *self.args], cwd=folder, capture_output=True, text=True, errors="replace",
                                  stdin=subprocess.DEVNULL, timeout=120, check=False,
                                  env={**clean_environment(), **fault_env(point, report)})
        except subprocess.TimeoutExpired:
            return None, "", "did not end", read_report(report)
        return done.returncode, done.stdout, done.stderr, read_report(report)

    def measure(self):
        """How many there are of each kind, and what the command does when all goes well."""
        folder, counts = self.copy(), {}
        self.before = everything(folder)
        for kind, origins in ORIGINS.items():
            for origin in origins + (["libcurl", "libcrypto"] if kind == "alloc" and self.name in SENDING else []):
                copy = self.copy()
                code, said, err, report = self.run(copy, Point(kind, origin, 0, "once"))
                assert code == 0, (self.name, code, said, err)
                self.said, self.after = said, everything(copy)
                counts[kind, origin] = report[0]
                shutil.rmtree(copy)
        shutil.rmtree(folder)
        return counts

    def judge(self, folder, point, code, out, err, report):
        if code is None or code not in GOOD_CODES or complaint(err + out):
            return f"exit {code} after {report[2]}"
        if self.reading and CARD in out + err:
            return f"shows what is masked after {report[2]}"
        tables = everything(folder)
        if tables not in (self.before, self.after):
            return f"half done after {report[2]}: {tables}"
        if code == 0 and tables != self.after:
            return f"exit 0, and nothing done, after {report[2]}"
        hides_more = out.count("***") > self.said.count("***")  # what cannot be looked through is masked whole
        if code == 0 and self.reading and plain(out) != plain(self.said) and "out of memory" not in out + err and not hides_more:
            lines = difflib.unified_diff(plain(self.said).splitlines(), plain(out).splitlines(), lineterm="", n=0)
            return f"exit 0, and it says something else after {report[2]}: " + "\n".join(list(lines)[:12])
        if code != 0 and not (err + out).strip() and point.kind == "alloc":
            return f"exit {code} without a word after {report[2]}"
        return None

    def point(self, point):
        folder = self.copy()
        try:
            code, out, err, report = self.run(folder, point)
            TALLY.add(report[1])
            wrong = self.judge(folder, point, code, out, err, report)
            if wrong is None and not self.reading:
                wrong = self.again(folder, code)
            if wrong:
                TALLY.fail(self.name, point, wrong, out[-200:] + err)
        except Exception as failure:  # pylint: disable=broad-except
            TALLY.fail(self.name, point, f"{type(failure).__name__}: {failure}", "")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def again(self, folder, code):
        """Where it did nothing it does all of it now; and the record of acts is whole."""
        if code != 0 and self.before != self.after and everything(folder) == self.before:
            self.shelf.clean(folder, *self.args)
            assert everything(folder) == self.after, "asked again, it does not do it"
        if self.name == "init":
            self.shelf.clean(folder, "init")
        self.shelf.clean(folder, "audit", "verify")


# ---- relays ----

DAY = {"shop": {}, "flaky": {}, "bad": {}, "keyed": {"order": "key"}}
EACH = 3
STORE = "libpq" if POSTGRES else "libsqlite3"
DEATHS = {"interval": "100ms", "rules": [{"name": "died", "when": "dead_letter"}]}


def catches(pid, number):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    return int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (number - 1) & 1


class Day(World):
    """A relay with all that runs beside it: deliveries, retries, dead letters, order by key, alerts, traces, metrics, a
    reload, a drain."""

    name = "relay"
    destinations = DAY
    origins = [("alloc", "program"), ("alloc", STORE), ("alloc", "libcurl"), ("call", "program"), ("call", STORE), ("call", "libcurl"),
               ("alloc", "libmicrohttpd"), ("call", "libmicrohttpd"), ("call", "libuv")][:6 if POSTGRES else 9]

    def __init__(self, ear):
        self.ear = ear
        super().__init__(self.destinations, event_log=True, relay={"lease": "2s" if POSTGRES else "30s"},
                         policies={"quick": {**QUICK, "max_attempts": 500}}, **self.sections())
        for name in self.destinations:
            self.events.add("dest", t=0, dest=name, kind="block" if name == "keyed" else "none", cap=0, wait=3600000)
        self.receiver.on("flaky", lambda r: 503 if r.n == 1 else 200)
        self.receiver.on("bad", 422)
        self.journal = None if POSTGRES else Journal(self)
        db = self.connect()
        if POSTGRES:
            witness.install(db)
        db.execute("BEGIN" if POSTGRES else "BEGIN IMMEDIATE")
        for name in self.destinations:
            for i in range(EACH):
                m, body = f"{name}-{i}", f'{{"n":{i}}}'
                key = {"message_key": "k"} if name == "keyed" else {}
                self.insert(name, db=db, message_id=m, payload=body, **key)
                self.events.add("commit", m=m, dest=name, key=key.get("message_key", ""), due=0, began=now_ms(), max=0,
                                hash=hash_of(body.encode()))
        db.execute("COMMIT")
        db.close()

    def sections(self):
        """Of its configuration."""
        return {"channels": {"ops": {"webhook": {"url": self.ear.url("ops")}, "allow": ["127.0.0.0/8"]}}, "alerts": DEATHS,
                "telemetry": {"endpoint": self.ear.url("").rstrip("/"), "protocol": "http/json"}}

    def ended(self):
        return not set(self.statuses()) - {"sent", "dead"}

    def ports(self, daemon):
        return re.findall(r"127\.0\.0\.1:(\d+)", "".join(x for x in daemon.log().splitlines() if "admin" in x))

    def look(self, daemon):
        """As Prometheus and an orchestrator do."""
        for port in self.ports(daemon)[:1]:
            for page in ("metrics", "readyz", "nowhere"):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5).read()
                except OSError:
                    pass

    def seen_ended(self):
        """A lock that could not be given up keeps readers out as long as its process lives."""
        try:
            return self.ended()
        except sqlite3.OperationalError as failure:
            if "locking protocol" not in str(failure):
                raise
            return False

    def suffer(self, env, fails=True):
        """Its faulty part. (exit code, its log) Where nothing fails it has all the time that it takes."""
        daemon = self.daemon(env=env)
        end = time.monotonic() + (2.5 if fails else END_S)
        while not daemon.gone() and time.monotonic() < end and not self.seen_ended():
            time.sleep(0.05)
        if not daemon.gone():
            self.look(daemon)
            if "relay started" in daemon.log():
                daemon.signal(signal.SIGHUP)
                time.sleep(0.15)
            daemon.signal(signal.SIGTERM)
        try:
            daemon.process.wait(3 if fails else END_S)
        except subprocess.TimeoutExpired:
            if catches(daemon.pid, signal.SIGTERM):  # else it is on its way out, and must come to its end by itself
                daemon.signal(signal.SIGTERM)  # in a hurry
        try:
            daemon.process.wait(END_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
        self.daemons.remove(daemon)
        if self.journal:
            self.journal.mend()
        return daemon.process.returncode, daemon.log()

    def recover(self):
        assert POSTGRES or self.sql("PRAGMA integrity_check") == [("ok",)]
        self.events.add("heal")
        daemon = self.daemon("last").ready()
        until(self.ended, lambda: f"rest: {self.statuses()}")
        until(lambda: self.sql("SELECT count(*) FROM outbox_relay") == [(1,)], "the end of the faulty one's lane")
        daemon.stop()
        self.events.add("end")
        self.check()

    def check(self):
        good, bad = [[n for n in self.destinations if (n == "bad") == b] for b in (False, True)]
        assert self.statuses() == {"sent": EACH * len(good), **({"dead": EACH} if bad else {})}, self.statuses()
        taken = self.receiver.accepted()
        assert set(taken) == {f"{name}-{i}" for name in good for i in range(EACH)}, taken
        checker = witness.find_checker(BINARY)
        if checker:
            log = [{**e, "at": e["t"]} if e["ev"] == "commit" else e for e in self.events.lines()]
            db = self.connect()
            if POSTGRES:
                log = witness.Witness(db).complete(log)
            witness.run_checker(checker, self.folder, log, witness.dump(db),
                                *(["--lanes", "many", "--slack", "100"] if POSTGRES else []))
            db.close()


class Certificate:
    """Our own authority and server in one, for all of a run."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-faults-"))
        self.cert, key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.cert],
                       check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.cert, key)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class TlsReceiver(Receiver):
    certificate = None  # main's

    def __init__(self, log=None):
        super().__init__(log)
        self.server.socket = self.certificate.context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)

    def url(self, name):
        return super().url(name).replace("http:", "https:")


class TlsDay(Day):
    """Destinations with TLS, a signature, a client's own header fields; spans as protobuf, compressed."""

    name = "relay tls"
    destinations = {n: {"http": {"headers": {"x-api-key": "k"}, "sign": {"secret": "whsec_" + base64.b64encode(b"s" * 32).decode()}}}
                    for n in ("shop", "flaky")}
    # not libcrypto: OpenSSL 3.0 crashes by itself where its tables have no lock, and without randomness there is no TLS
    origins = [("alloc", "program"), ("alloc", "libcurl"), ("alloc", "libssl"), ("call", "program"), ("call", "libcurl")]
    make_receiver = TlsReceiver

    def destination(self, name, http=None, **more):
        return super().destination(name, {**http, "ca_file": str(TlsReceiver.certificate.cert)}, **more)

    def sections(self):
        return {"telemetry": {"endpoint": self.ear.url("").rstrip("/"), "protocol": "http/protobuf", "compression": "gzip"}}


class RedriveDay(Day):
    """Letters that a job brings back: the relay that carries it out fails, and the next one goes on with it."""

    name = "relay redrive"
    destinations = {"shop": {}}
    origins = [("alloc", "program"), ("alloc", STORE), ("call", "program"), ("call", STORE)]

    def __init__(self, ear):
        super().__init__(ear)
        self.receiver.on("shop", 422)
        first = self.daemon("first").ready()
        until(lambda: self.statuses() == {"dead": EACH}, "its letters")
        first.stop()
        self.receiver.on("shop", 200)
        self.hikyaku("redrive", "start", "--filter", "destination:shop", "--rate", "1000/s", "--canary", "0", "--reason", "test", "--yes")

    def sections(self):
        return {}

    def ended(self):
        return self.statuses() == {"sent": EACH} and self.sql("SELECT status FROM outbox_redrive") != [("running",)]

    def check(self):
        assert self.statuses() == {"sent": EACH}, self.statuses()
        assert set(self.receiver.accepted()) == {f"shop-{i}" for i in range(EACH)}, self.receiver.accepted()
        assert self.sql("SELECT DISTINCT status, life, requeues, resolution FROM dead_letters") == [("resolved", 1, 1, "delivered")]
        trail = [letter for letter, in self.sql("SELECT letter_id FROM outbox_audit_of_letters WHERE act = 'requeue'")]
        assert len(trail) == len(set(trail)) == EACH, f"requeued twice, or never: {trail}"
        assert self.sql("SELECT status, requeued FROM outbox_redrive") == [("done", EACH)], self.sql("SELECT * FROM outbox_redrive")
        self.hikyaku("audit", "verify")


class Mailbox:
    """As much of SMTP as it takes."""

    def __init__(self):
        self.mails, self.socket = 0, socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                threading.Thread(target=self.talk, args=self.socket.accept()[:1], daemon=True).start()
            except OSError:
                return

    def talk(self, client):
        with contextlib.suppress(OSError), client, client.makefile("rwb", buffering=0) as file:
            file.write(b"220 here\r\n")
            text = False
            for line in file:
                word = line.strip().upper()[:4]
                if text and word != b".":
                    continue
                self.mails += text
                file.write(b"354 go on\r\n" if word == b"DATA" and not text else b"221 bye\r\n" if word == b"QUIT" else b"250 yes\r\n")
                text = word == b"DATA" and not text

    def close(self):
        self.socket.close()


class AlertsDay(Day):
    """Every kind of channel: each of them is told in the end."""

    name = "relay alerts"
    destinations = {"shop": {}, "bad": {}}
    origins = [("alloc", "program"), ("alloc", STORE), ("alloc", "libcurl"), ("call", "program"), ("call", "libcurl")]

    def sections(self):
        local = {"allow": ["127.0.0.0/8"]}
        self.mailbox = Mailbox()
        self.ear.on("slack", Answer(200, body=b"ok"))
        self.ear.on("pager", 202)
        return {"alerts": DEATHS, "channels": {
            "slack": {"slack": {"url": self.ear.url("slack")}, **local},
            "hook": {"webhook": {"url": self.ear.url("hook"), "secret": "whsec_" + base64.b64encode(b"s" * 32).decode()}, **local},
            "pager": {"pagerduty": {"routing_key": "r" * 32, "url": self.ear.url("pager")}, **local},
            "mail": {"email": {"url": f"smtp://127.0.0.1:{self.mailbox.port}", "from": "a@example.com", "to": ["b@example.com"],
                               "starttls": False}},
            "program": {"exec": {"command": ["/bin/sh", "-c", "cat > /dev/null"]}}}}

    def untold(self):
        return self.sql("SELECT channel, last_error FROM outbox_notice WHERE sent_ms = 0")

    def ended(self):
        return super().ended() and self.sql("SELECT count(DISTINCT channel) FROM outbox_notice WHERE sent_ms > 0") == [(5,)] and not self.untold()

    def recover(self):
        given_up = self.sql("SELECT channel, last_error FROM outbox_notice WHERE given_up_ms > 0")
        assert not given_up, f"given up: {given_up}"
        self.sql("UPDATE outbox_notice SET due_ms = 0 WHERE sent_ms = 0")  # as if the waits were over, and the claims of who died
        super().recover()

    def check(self):
        super().check()
        assert self.mailbox.mails > 0

    def __exit__(self, *how):
        self.mailbox.close()
        super().__exit__(*how)


class AdminDay(Day):
    """Prometheus, probes and strangers at both doors, all the time."""

    name = "relay admin"
    destinations = {"shop": {}, "flaky": {}}
    origins = [("alloc", "program"), ("alloc", "libmicrohttpd"), ("call", "program"), ("call", "libmicrohttpd")]
    ASKED = [b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n", b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n",
             b"HEAD /livez HTTP/1.0\r\n\r\n", b"GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"POST /metrics HTTP/1.1\r\n"
             b"Host: localhost\r\nContent-Length: 5\r\n\r\nhello", b"BREW /tea HTTP/9.9\r\n\r\n", b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n",
             b"GET /metr"]

    def sections(self):
        return {"admin": {"listen": "127.0.0.1:0", "health_listen": "127.0.0.1:0"}}

    def ask(self, port, text):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            client.settimeout(0.5)
            client.sendall(text)
            while client.recv(65536):
                pass

    def look(self, daemon):
        ports = [int(p) for p in self.ports(daemon)][:2]
        askers = [threading.Thread(target=self.ask, args=(port, text)) for port in ports for text in self.ASKED]
        for thread in askers:
            thread.start()
        for thread in askers:
            thread.join()


class Relay:
    def __init__(self, ear, day):
        self.ear, self.day, self.name = ear, day, day.name

    def measure(self):
        counts = {}
        for kind, origin in self.day.origins:
            code, log, report, wrong = self.run(Point(kind, origin, 0, "once"))
            assert code == 0 and wrong is None, (kind, origin, code, wrong, log[-3000:])
            counts[kind, origin] = report[0]
        return counts

    def run(self, point):
        with self.day(self.ear) as w:
            report = w.path("report")
            code, log = w.suffer(fault_env(point, report), fails=point.n > 0)
            wrong = None
            if code in (-signal.SIGHUP, -signal.SIGTERM):
                code = 1  # it was ending by itself, or had not begun, when the test sent its signals
            if (code not in GOOD_CODES or complaint(log)) and not died_of_libcurl(point, log):
                wrong = f"exit {code}"
            else:
                try:
                    w.recover()
                except AssertionError as failure:
                    wrong = f"afterwards: {failure}"
            return code, log, read_report(report), wrong

    def point(self, point):
        try:
            _, log, report, wrong = self.run(point)
            TALLY.add(report[1])
            if wrong:
                TALLY.fail(self.name, point, f"{wrong} after {report[2]}", log)
        except Exception as failure:  # pylint: disable=broad-except
            TALLY.fail(self.name, point, f"{type(failure).__name__}: {failure}", "")


# ---- all of it ----

def given_points():
    return [Point(kind, origin, int(n), mode) for kind, origin, n, mode in (p.split() for p in os.environ["POINT"].split(","))]


class Result:
    """Of one command."""

    def __init__(self, scene):
        self.scene, self.jobs, self.of, self.failure, self.planned = scene, [], 0, None, threading.Event()
        self.counts = {}

    def plan(self, pool):
        """Counts what there is to fail, and puts the chosen points into the queue."""
        try:
            if "POINT" in os.environ:
                self.jobs += [pool.submit(self.scene.point, p) for p in given_points()]
                return
            self.counts = self.scene.measure()
            for (kind, origin), total in self.counts.items():
                self.of += 2 * total
                self.jobs += [pool.submit(self.scene.point, Point(kind, origin, n, mode)) for mode in ("once", "ever")
                              for n in choose(total, self.scene.name, kind, origin, mode)]
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = f"without faults: {type(failure).__name__}: {failure}"
        finally:
            self.planned.set()

    def wait(self):
        self.planned.wait()
        concurrent.futures.wait(self.jobs)
        findings = ([self.failure] if self.failure else []) + TALLY.failures.get(self.scene.name, [])
        return findings


def main():
    if not os.path.exists(BINARY):
        print("1..0 # SKIP hikyaku-faults was not built (it needs gcc)")
        return 0
    if POSTGRES and postgres.why_not():
        print(f"1..0 # SKIP {postgres.why_not()}")
        return 0
    only = os.environ.get("ONLY", "").split(",")
    shelf, ear = None if POSTGRES else Shelf(), Receiver()
    TlsReceiver.certificate = Certificate()
    days = [Day, RedriveDay] if POSTGRES else [AdminDay, AlertsDay, RedriveDay, TlsDay, Day]
    scenes = [Command(shelf, name, args, reading=table is READING)
              for table in (READING, CHANGING, SENDING) if shelf for name, args in table.items()] + [Relay(ear, day) for day in days]
    results = [Result(s) for s in scenes if only == [""] or s.name in only]
    print(f"1..{len(results)}\n# SEED={SEED}", flush=True)
    bad, began = 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for result in reversed(results):  # the relay, which takes longest, comes first
            pool.submit(result.plan, pool)
        for number, result in enumerate(results, 1):
            findings = result.wait()
            bad += bool(findings)
            print(f"{'not ok' if findings else 'ok'} {number} - {result.scene.name}, whatever fails below it")
            counts = "".join(f"; {kind} {origin} {n}" for (kind, origin), n in result.counts.items())
            print(f"# {len(result.jobs)} points of {result.of}, {len(findings)} findings{counts}")
            for line in "\n".join(findings[:6]).splitlines():
                print(f"# {line}")
            sys.stdout.flush()
    print(f"# {TALLY.points} points of {sum(r.of for r in results)} were failed, {TALLY.hit} of them were reached, "
          f"{bad} commands with findings; {time.monotonic() - began:.0f} s")
    ear.close()
    TlsReceiver.certificate.close()
    if shelf:
        shelf.close()
    return 1 if bad else 0


sys.exit(main())
