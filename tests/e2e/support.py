# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests of the relay share: a receiver that follows a script, the daemon as a process, a database
in a temporary folder, and the event log of src/observe/eventlog.h, which hikyaku-check reads."""
import collections
import contextlib
import functools
import glob
import hashlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback

POSTGRES = os.environ.get("STORE") == "postgres"  # the same tests on the other store
if POSTGRES:
    import postgres

BINARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.environ["HIKYAKU"])
PATIENCE = 120  # seconds: how long a condition may take on a slow, busy machine before the test gives up


def is_sanitized(path=BINARY):
    """gcc links the sanitizer's runtime as a library, clang puts it into the program: the name of its start is in either."""
    program = pathlib.Path(path).read_bytes()
    return b"__asan_init" in program or b"__tsan_init" in program


# ---- TAP ----

class Skip(Exception):
    pass


def sqlite_only(function):
    """A test of SQLite itself: nothing to see on another store."""
    function.sqlite_only = True
    return function


def run_tests(tests):
    """Runs each; those named in $ONLY (words, any part of a name) when that is set. Returns the exit code."""
    if POSTGRES and postgres.why_not():
        print(f"1..0 # SKIP {postgres.why_not()}")
        return 0
    only = os.environ.get("ONLY", "").split()
    chosen = [t for t in tests if (not only or any(word in t.__name__ for word in only))
              and not (POSTGRES and getattr(t, "sqlite_only", False))]
    print(f"1..{len(chosen)}", flush=True)
    bad = 0
    for number, function in enumerate(chosen, 1):
        name, began = function.__name__.replace("_", " "), time.monotonic()
        try:
            function()
            print(f"ok {number} - {name}")
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}")
        except Exception:  # pylint: disable=broad-except
            bad += 1
            print(f"not ok {number} - {name}")
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
        print(f"# {time.monotonic() - began:.1f} s", flush=True)
    return 1 if bad else 0


# ---- waiting ----

def until(condition, what, seconds=PATIENCE):
    """Waits until `condition()` is true, and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for: {what() if callable(what) else what}")
        time.sleep(0.02)


def rfc3339(unix):
    whole = int(unix // 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((unix - whole) * 1000):03d}Z"


def http_date(unix):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(unix))


# ---- the event log ----

def now_ms():
    return int(time.time() * 1000)


def hash_of(body):
    return hashlib.blake2b(body, digest_size=8).hexdigest()


def count_sends(event, leg, unclear, crashes):
    """What may have arrived although nobody knows, and how often a relay died with it in hand, since its last attempt that was settled."""
    if event["ev"] == "send":
        unclear[leg] += 1  # until it is known …
    elif event["ev"] == "fail":
        unclear[leg] -= not event["maybe"]  # … that it was refused …
    elif event["ev"] == "settle" and event["rows"]:
        unclear[leg] -= event["kind"] == "sent"  # … or that it was taken, and that this is on disk
        crashes[leg] *= event["kind"] in ("release", "fan_out", "defer", "dead")
    elif event["ev"] == "orphan":
        crashes[leg] += 1


class EventLog:
    """Lines of one file that several processes add to: one write each, so that their order is the order of events."""

    def __init__(self, path):
        self.path = str(path)
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, ev, t=None, **fields):
        line = {"t": now_ms() if t is None else t, "ev": ev, **fields}
        os.write(self.fd, (json.dumps(line, separators=(",", ":")) + "\n").encode())

    def close(self):
        os.close(self.fd)

    def lines(self):
        with open(self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


# ---- the receiver ----

Answer = collections.namedtuple("Answer", "status headers delay hang body", defaults=({}, 0.0, False, b""))


class Request:
    """One that arrived: `at` by our own clock when its first line was read, `answered` just before the answer."""

    def __init__(self, path, headers, body, at):
        self.path, self.headers, self.body, self.at = path, headers, body, at
        self.destination = path.strip("/")
        self.id = headers.get("webhook-id", "")
        self.n = 0  # how often this message has been here, this time included
        self.answered = None
        self.status = None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def parse_request(self):
        self.arrived = time.time()
        return super().parse_request()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {k.lower(): v for k, v in self.headers.items()}
        answer = self.server.receiver.take(Request(self.path, headers, body, self.arrived))
        if answer is None:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for key, value in answer.headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request, client_address):
        pass  # the relay went away: that is what these tests are about


class Receiver:
    """Answers as its script says: {path: function(request) -> status or Answer}; 200 where there is none. A 2xx is
    what it accepted. `log`: writes recv lines."""

    host = "127.0.0.1"

    def __init__(self, log=None):
        self.log, self.lock, self.script = log, threading.Lock(), {}
        self.requests, self.seen = [], collections.Counter()
        self.closing = threading.Event()
        self.server = Server((self.host, 0), Handler)
        self.server.receiver = self
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def url(self, name):
        return f"http://{self.host}:{self.port}/{name}"

    def on(self, name, script):
        """`script`: a status, an Answer, or a function of the request that gives one."""
        self.script["/" + name] = script

    def ask(self, request):
        """Notes the request; what the script says to it."""
        with self.lock:
            self.seen[request.id, request.destination] += 1
            request.n = self.seen[request.id, request.destination]
            self.requests.append(request)
        script = self.script.get(request.path, 200)
        answer = script(request) if callable(script) else script
        return answer if isinstance(answer, Answer) else Answer(answer)

    def act(self, request, answer):
        """It is done; the answer goes out next, or never."""
        if self.log:
            self.log.add("recv", m=request.id, dest=request.destination, wait=0, status=answer.status,
                         acted=int(answer.status < 300), hash=hash_of(request.body))
        if not answer.hang:
            request.answered, request.status = time.time(), answer.status

    def take(self, request):
        answer = self.ask(request)
        if answer.delay:
            self.closing.wait(answer.delay)
        self.act(request, answer)
        if answer.hang:
            self.closing.wait(300)
            return None
        return answer

    def arrived(self, message_id=None, destination=None):
        with self.lock:
            return [r for r in self.requests if message_id in (None, r.id) and destination in (None, r.destination)]

    def accepted(self, destination=None):
        """How often each message was answered with 2xx."""
        return collections.Counter(r.id for r in self.arrived(destination=destination)
                                   if r.status is not None and r.status < 300)

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


# ---- the daemon ----

def clean_environment():
    """Without settings of whoever runs the tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("HIKYAKU", "OTEL_"))}


class Daemon:
    def __init__(self, world, name="relay", config=None, env=None, preexec=None, program=BINARY):
        self.name, self.world = name, world
        self.log_path = world.path(f"{name}-{len(world.daemons)}.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, "--config", str(config or world.config_path), "run"], cwd=world.folder,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**clean_environment(), **(env or {})},
                preexec_fn=preexec)
        world.daemons.append(self)

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def says(self, text, times=1):
        until(lambda: self.log().count(text) >= times or self.gone(),
              lambda: f"{text!r} in the log:\n{self.log()[-3000:]}")
        assert self.log().count(text) >= times, f"{self.name} ended without {text!r}:\n{self.log()[-3000:]}"
        return self

    def ready(self):
        return self.says("lane acquired")

    def gone(self):
        return self.process.poll() is not None

    def signal(self, number):
        self.process.send_signal(number)

    def freeze(self):
        """SIGSTOP. A process that is stopped while it holds SQLite's write lock would stop every writer: not then."""
        until(self.stops_outside_of_a_transaction, f"{self.name} to be stopped")

    def stops_outside_of_a_transaction(self):
        self.signal(signal.SIGSTOP)
        until(lambda: ") T " in pathlib.Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii"), "it to stop")
        if POSTGRES:
            return True
        db = sqlite3.connect(self.world.db, timeout=0, isolation_level=None)
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
            return True
        except sqlite3.OperationalError:
            self.signal(signal.SIGCONT)
            return False
        finally:
            db.close()

    def kill(self):
        if not self.gone():
            self.process.kill()
        self.process.wait()

    def wait(self, seconds=PATIENCE):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end in {seconds} s:\n{self.log()[-3000:]}") from None

    def stop(self):
        """Drains; must end well."""
        self.signal(signal.SIGTERM)
        code = self.wait()
        assert code == 0, (code, self.log()[-3000:])


def sees_pause(read_log, destination):
    """Waits until a relay, whose log `read_log()` gives, knows of a pause: it looks for pauses from time to time."""
    address = until(lambda: re.search(r'msg="admin listening" address=(\S+)', read_log()), "the admin server")[1]

    def page():
        connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode("utf-8")
        finally:
            connection.close()

    until(lambda: f'hikyaku_destination_paused{{destination="{destination}"}} 1\n' in page(), lambda: f"the pause:\n{page()}")


# ---- its wall clock ----

class FakeClock:
    """libfaketime for one daemon: the wall clock is off by what a file says, the monotonic one is left alone."""

    def __init__(self, world):
        found = sorted(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))
        if not found:
            raise Skip("libfaketime is not installed (Debian: faketime)")
        self.file, self.offset = world.path("faketime"), 0
        self.set(0)
        preload = [found[0]]
        # the sanitizer's runtime wants to come first
        linked = subprocess.run(["ldd", BINARY], text=True, capture_output=True, check=False).stdout
        preload[:0] = [line.split()[2] for line in linked.splitlines() if "libasan" in line and "=>" in line]
        self.env = {"LD_PRELOAD": " ".join(preload), "FAKETIME_TIMESTAMP_FILE": str(self.file),
                    "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}

    def set(self, seconds):
        self.offset = seconds
        aside = self.file.with_suffix(".new")
        aside.write_text(f"{seconds:+d}\n", encoding="ascii")
        aside.rename(self.file)


# ---- a full disk ----

class FullDisk:
    """A small file system that can be filled up."""

    def __init__(self, stack, folder, size="4m"):
        self.filler = folder / "filler"
        if os.geteuid() != 0:
            raise Skip("not root: cannot mount a small file system")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise Skip(f"cannot mount a small file system: {done.stderr.strip()}")
        stack.callback(subprocess.run, ["umount", "-l", str(folder)], capture_output=True, check=False)

    def fill(self):
        with open(self.filler, "wb", buffering=0) as file:
            for size in (65536, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"\0" * size)

    def free(self):
        self.filler.unlink()


# ---- what `hikyaku init` makes ----

def init_store(url):
    with tempfile.TemporaryDirectory(prefix="hikyaku-init-") as folder:
        config = pathlib.Path(folder, "hikyaku.yaml")
        config.write_text(json.dumps({"store": url}), encoding="utf-8")
        done = subprocess.run([BINARY, "--config", str(config), "init"], text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120, check=False, env=clean_environment())
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)


@functools.lru_cache(maxsize=None)
def whole_file():
    """Of SQLite, made once: each world has a copy, which costs nothing."""
    with tempfile.TemporaryDirectory(prefix="hikyaku-init-") as folder:
        file = pathlib.Path(folder, "outbox.db")
        init_store(f"sqlite:{file}")
        assert [p.name for p in pathlib.Path(folder).iterdir()] == ["outbox.db"], "it is all in one file"
        return file.read_bytes(), stat.S_IMODE(file.stat().st_mode)


def make_file(path):
    content, mode = whole_file()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(content)


# ---- everything of one test ----

LEASE = "5s"  # short, for successors wait for it; a relay that a busy machine lets wait so long would lose its lane
QUICK = {"preset": "standard", "backoff": {"base": "20ms", "cap": "100ms"}, "jitter": "none", "breaker": "off",
         "max_attempts": 60, "timeout": "20s"}


class World:
    """A temporary folder with database, configuration, receiver and daemons; nothing outlives the `with` block."""

    make_receiver, allow = Receiver, ()

    def __init__(self, destinations=("shop",), folder=None, event_log=False, init=True, **sections):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="hikyaku-e2e-"))
        self.daemons, self.children, self.damaged = [], [], False
        by_program = init and POSTGRES and postgres.POOLED  # through the pooler, too
        copied = init and not by_program
        self.db = self.make_database(copied) if POSTGRES else self.place_db()
        self.url = postgres.relay_url(self.db) if POSTGRES else f"sqlite:{self.db}"
        self.config_path = self.path("hikyaku.yaml")
        self.events = EventLog(self.path("events.log")) if event_log else None
        self.receiver = self.make_receiver(self.events)
        self.config = {"store": self.url, "relay": {"lease": LEASE, **sections.pop("relay", {})},
                       "policies": {"quick": QUICK, **sections.pop("policies", {})}, "default_policy": "quick",
                       "admin": {"listen": "127.0.0.1:0"}, "destinations": {}, **sections}
        for name in destinations:
            extra = destinations[name] if isinstance(destinations, dict) else {}
            self.config["destinations"][name] = self.destination(name, **extra)
        self.write_config()
        if by_program:
            self.hikyaku("init")
        elif copied and not POSTGRES:
            make_file(self.db)

    @staticmethod
    def make_database(copied):
        return postgres.cluster().create_like(init_store) if copied else postgres.cluster().create()

    def place_db(self):
        return self.path("outbox.db")

    def destination(self, name, http=None, **more):
        return {"http": {"url": self.receiver.url(name), **(http or {})}, "allow": ["127.0.0.0/8", *self.allow], **more}

    def write_config(self, text=None):
        """JSON is YAML. Written aside and renamed, as a careful operator does."""
        aside = self.path("hikyaku.yaml.new")
        aside.write_text(text if text is not None else json.dumps(self.config, indent=1), encoding="utf-8")
        aside.rename(self.config_path)

    def path(self, name):
        return self.folder / name

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in [d.process for d in self.daemons] + self.children:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.receiver.close()
        if self.events:
            self.events.close()
        try:
            if kind is None:
                self.check_sanitizers()
                assert self.damaged or POSTGRES or self.sql("PRAGMA integrity_check") == [("ok",)]
            else:
                self.explain()
        finally:
            if POSTGRES:
                postgres.cluster().drop(self.db)
            shutil.rmtree(self.folder, ignore_errors=True)

    def explain(self):
        for daemon in self.daemons[-3:]:
            print(f"# log of {daemon.name}, exit {daemon.process.returncode}:")
            for line in daemon.log().splitlines()[-25:]:
                print(f"#   {line[:400]}")

    def check_sanitizers(self):
        for daemon in self.daemons:
            log = daemon.log()
            assert "Sanitizer" not in log and "runtime error" not in log and "assert" not in log.lower(), log[-6000:]

    # -- processes --

    def hikyaku(self, *args):
        done = subprocess.run([BINARY, "--config", str(self.config_path), *args], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
                              env=clean_environment())
        assert done.returncode == 0, (args, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def hikyaku_with(self, env, *args):
        """What it says, whatever it returns."""
        done = subprocess.run([BINARY, "--config", str(self.config_path), *args], cwd=self.folder, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120, check=False, env={**clean_environment(), **env})
        return done.stdout + done.stderr

    def try_hikyaku(self, *args):
        """(exit code, what it wrote to either)"""
        done = subprocess.run([BINARY, "--config", str(self.config_path), *args], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
                              env=clean_environment())
        return done.returncode, done.stdout + done.stderr

    def daemon(self, name="relay", env=None, **more):
        if self.events:
            env = {**(env or {}), "HIKYAKU_EVENT_LOG": self.events.path}
        return Daemon(self, name, env=env, **more)

    def child(self, *command, **options):
        process = subprocess.Popen(command, cwd=self.folder, **options)
        self.children.append(process)
        return process

    # -- the database --

    def connect(self):
        """In autocommit mode: transactions begin where a test says so."""
        if POSTGRES:
            return postgres.cluster().connect(self.db)
        return sqlite3.connect(self.db, timeout=60, isolation_level=None, check_same_thread=False)

    def sql(self, text, *args):
        db = self.connect()
        try:
            return db.execute(text, args).fetchall()
        finally:
            db.close()

    def insert(self, destination="shop", event_type="OrderCreated", payload="{}", db=None, **columns):
        row = {"destination": destination, "event_type": event_type, "payload": payload, **columns}
        text = f"INSERT INTO outbox ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        if db is not None:
            db.execute(text, list(row.values()))
        else:
            self.sql(text, *row.values())

    def insert_many(self, n, prefix="m", **columns):
        """In one transaction. Returns the ids."""
        ids = [f"{prefix}-{i:04d}" for i in range(n)]
        db = self.connect()
        db.execute("BEGIN IMMEDIATE")
        for i in ids:
            self.insert(db=db, message_id=i, **columns)
        db.execute("COMMIT")
        db.close()
        return ids

    def statuses(self, where="1 = 1"):
        return dict(self.sql(f"SELECT status, count(*) FROM outbox_messages WHERE {where} GROUP BY status"))

    def settled(self, **expected):
        """Waits until the view shows exactly these statuses."""
        until(lambda: self.statuses() == expected, lambda: f"{expected}, not {self.statuses()}")

    def letters(self):
        return dict(self.sql("SELECT message_id, reason_code FROM dead_letters"))

    def message(self, message_id, columns="status, attempts, next_attempt_at", destination=None):
        rows = self.sql(f"SELECT {columns} FROM outbox_messages WHERE message_id = ? AND CAST(? AS text) IN ('', destination)",
                        message_id, destination or "")
        assert len(rows) == 1, (message_id, rows)
        return rows[0]
