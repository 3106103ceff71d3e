#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many relays on one PostgreSQL, as processes, with whatever may happen to them, to the network and to the server.
Speaks TAP.

Usage: many.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them; SEED=…
MESSAGES=200000 ROWS=100000 with a release build is the full run.

Relays, receivers and applications write one event log; witness.py completes it from what the database itself has seen;
it is judged here, and by hikyaku-check."""
import asyncio
import collections
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
os.environ["STORE"] = "postgres"
import postgres
import witness
from proxy import CUTS, Proxy
from support import (Answer, BINARY, EventLog, FakeClock, PATIENCE, QUICK, Receiver, Request, Skip, World, hash_of, now_ms,
                     rfc3339, run_tests, until)

SHARED_LIMITS = True  # relays share a destination's rate through the database
MESSAGES = int(os.environ.get("MESSAGES", "4000"))
ROWS = int(os.environ.get("ROWS", "20000"))
SEED = os.environ.get("SEED", str(time.time_ns()))
FULL = MESSAGES >= 100000
LEASE = 3.0
SLACK = ["--lanes", "many", "--slack", "100"]
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def say(text):
    print(f"# {text}", flush=True)


# ---- a receiver without a thread for each connection ----

class Conversation(asyncio.Protocol):
    def __init__(self, inbox):
        self.inbox, self.buffer, self.transport = inbox, b"", None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
            whole = end + 4 + int(headers.get("content-length", 0))
            if len(self.buffer) < whole:
                return
            body, self.buffer = self.buffer[end + 4:whole], self.buffer[whole:]
            request = Request(first.split(" ")[1], headers, body, time.time())
            answer = self.inbox.ask(request)
            if answer.delay:
                asyncio.get_running_loop().call_later(answer.delay, self.answer, request, answer)
            else:
                self.answer(request, answer)

    def answer(self, request, answer):
        self.inbox.act(request, answer)
        if not answer.hang and not self.transport.is_closing():
            extra = "".join(f"{k}: {v}\r\n" for k, v in answer.headers.items())
            self.transport.write(f"HTTP/1.1 {answer.status} X\r\n{extra}Content-Length: 0\r\n\r\n".encode())


class Inbox(Receiver):
    """As its parent, for thousands of requests a second. Scripts must not block."""

    def __init__(self, log=None):  # pylint: disable=super-init-not-called
        self.log, self.lock, self.script = log, threading.Lock(), {}
        self.requests, self.seen = [], collections.Counter()
        self.loop, ready = asyncio.new_event_loop(), threading.Event()
        self.port = None

        async def serve():
            server = await self.loop.create_server(lambda: Conversation(self), "127.0.0.1", 0, backlog=512)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()

        def run():
            self.loop.run_until_complete(serve())
            self.loop.run_forever()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        ready.wait()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


# ---- applications: processes of their own ----

# How one writes; what a test says replaces it. `dests`: name -> (weight, number of keys); `rate`: transactions a second,
# 0 = as fast as it can; `total`: messages, 0 = until its stdin is closed; `hold`: how often it dawdles, and for how long.
WRITER = {"dests": {"shop": (1, 0)}, "rate": 30, "total": 0, "batch": 4, "rollback": 0.1, "savepoint": 0.1,
          "hold": (0.1, 0.1)}
PROBE = {"dests": {"probe": (1, 0)}, "rate": 1, "batch": 1, "rollback": 0, "savepoint": 0, "hold": (0, 0)}


class Writer:
    def __init__(self, url, log, name, spec):
        self.url, self.log, self.name, self.spec = url, log, name, spec
        self.chance, self.n, self.left = random.Random(f"{SEED} {name}"), itertools.count(), spec["total"]
        self.names = list(spec["dests"])
        self.weights = [spec["dests"][d][0] for d in self.names]
        self.db = None

    def draw(self):
        dest = self.chance.choices(self.names, self.weights)[0]
        keys = self.spec["dests"][dest][1]
        return {"destination": dest, "event_type": "Order", "payload": f'{{"n":{self.chance.random()}}}',
                "message_id": f"{self.name}-{next(self.n)}", "message_key": f"k{self.chance.randrange(keys)}" if keys else None}

    def insert(self, rows):
        """Returns their ids."""
        columns = ", ".join(rows[0])
        marks = ", ".join(f"({', '.join('?' * len(rows[0]))})" for _ in rows)
        return [i for i, in self.db.execute(f"INSERT INTO outbox ({columns}) VALUES {marks} RETURNING id",
                                            [v for row in rows for v in row.values()])]

    def dawdle(self):
        often, seconds = self.spec["hold"]
        if self.chance.random() < often:
            time.sleep(self.chance.uniform(0, seconds))

    def write(self, rows):
        """One transaction. Keys are written under a lock, so that one of them is committed in the order of its ids."""
        good, undone = self.chance.random() >= self.spec["rollback"], []
        self.db.execute("BEGIN")
        xid = self.db.execute("SELECT pg_current_xact_id()::text").fetchone()[0]
        for key in sorted({f"{r['destination']} {r['message_key']}" for r in rows if r["message_key"]}):
            self.db.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", [key])
        began, ids = now_ms(), []
        cut = self.chance.randrange(len(rows))
        for part in filter(None, (rows[:cut], rows[cut:])):
            ids += self.insert(part)
            self.dawdle()
            if self.chance.random() < self.spec["savepoint"]:
                self.db.execute("SAVEPOINT s")
                undone.append(self.draw())
                self.insert(undone[-1:])
                self.db.execute("ROLLBACK TO s")
        lines = [{"t": now_ms(), "ev": "intent" if good else "rollback", "m": r["message_id"], "dest": r["destination"],
                  "key": r["message_key"] or "", "due": 0, "began": began, "max": 0, "id": i,
                  "hash": hash_of(r["payload"].encode())} for r, i in zip(rows, ids)]
        self.note(lines + [{"t": now_ms(), "ev": "rollback", "m": r["message_id"]} for r in undone])
        if not good:
            self.db.execute("ROLLBACK")
            return 0
        try:
            self.db.execute("COMMIT")
        except postgres.psycopg.Error:
            if not self.find_out(xid, rows[0]["message_id"]):
                self.note([{"t": now_ms(), "ev": "aborted", "m": r["message_id"]} for r in rows])
                return 0
        self.note([{"t": now_ms(), "ev": "committed", "m": r["message_id"]} for r in rows])
        return len(rows)

    def note(self, lines):
        os.write(self.log.fd, "".join(json.dumps(e, separators=(",", ":")) + "\n" for e in lines).encode())

    def connect(self):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.db = postgres.Connection(self.url)
                return
            except postgres.psycopg.OperationalError:
                assert time.monotonic() < end
                time.sleep(0.1)

    def find_out(self, xid, message_id):
        """Was it committed? The server went away in the middle of it. A number that never came to its disk may be given
        again, so that only the message itself tells."""
        while True:
            with contextlib.suppress(postgres.psycopg.OperationalError):
                self.connect()
                if self.is_over(xid):
                    found = self.db.execute("SELECT 1 FROM outbox_messages WHERE message_id = ?", [message_id])
                    return found.fetchone() is not None
            time.sleep(0.1)

    def is_over(self, xid):
        try:
            status = self.db.execute("SELECT pg_xact_status(?::text::xid8)", [xid]).fetchone()[0]
        except postgres.psycopg.errors.InvalidParameterValue:  # in the future: it is gone
            return True
        return status != "in progress"

    def run(self, stop):
        self.connect()
        while not stop.is_set() and (not self.spec["total"] or self.left > 0):
            try:
                n = self.chance.randint(1, self.spec["batch"])
                n = min(n, self.left) if self.spec["total"] else n
                self.left -= self.write([self.draw() for _ in range(n)])
            except postgres.psycopg.OperationalError:  # before COMMIT: nothing was said yet, or it is an intent
                self.connect()
            except postgres.psycopg.errors.ReadOnlySqlTransaction:
                self.db.execute("ROLLBACK")
                time.sleep(0.1)
            if self.spec["rate"]:
                time.sleep(self.chance.expovariate(self.spec["rate"]))


def application(url, log_path, name, spec):
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    Writer(url, EventLog(log_path), name, json.loads(spec)).run(stop)


# ---- everything of one test ----

class Many(World):
    make_receiver = Inbox

    def __init__(self, destinations=("shop",), relay=None, **more):
        super().__init__(destinations, event_log=True, relay={"lease": f"{int(LEASE * 1000)}ms", "concurrency": 64,
                                                               **(relay or {})}, **more)
        self.role = f"relay_{self.db}"
        self.began, self.started_ms = time.monotonic(), now_ms()
        self.writers, self.relays = [], []
        with contextlib.closing(self.connect()) as db:
            db.execute(f"CREATE ROLE {self.role} LOGIN")
            for line in self.hikyaku("init", "--print-grants", "--relay-role", self.role).splitlines():
                if line.startswith("GRANT") and self.role in line:
                    db.execute(line)
            witness.install(db)
        for d, settings in self.config["destinations"].items():
            self.events.add("dest", t=0, dest=d, kind="block" if settings.get("order") == "key" else "none", cap=0,
                            wait=3600000)

    def __exit__(self, kind, *rest):
        if kind:
            self.show_sessions()
        super().__exit__(kind, *rest)
        postgres.cluster().connect("postgres").execute(f"DROP ROLE {self.role}").close()

    def show_sessions(self):
        with contextlib.suppress(Exception):
            for row in self.sql("SELECT pid, pg_blocking_pids(pid), application_name, state, wait_event, now() - xact_start, "
                                "now() - state_change, left(query, 100) FROM pg_stat_activity WHERE datname = ?", self.db):
                say(f"session {row}")
            for row in self.sql("SELECT * FROM outbox_relay"):
                say(f"lane {row}, and it is {now_ms()} now")

    # -- relays --

    def relay(self, name, port=None, **more):
        """A relay of its own name, as the role that may do no more than it must."""
        config = {**self.config, "relay": {**self.config["relay"], "name": name},
                  "store": f"postgres://{self.role}@127.0.0.1:{port or postgres.cluster().port}/{self.db}"
                           f"?application_name={name}&sslmode=disable&gssencmode=disable"}
        path = self.path(f"{name}.yaml")
        path.write_text(json.dumps(config), encoding="utf-8")
        self.relays.append(self.daemon(name, config=path, **more))
        return self.relays[-1]

    def start(self, *names, **more):
        relays = [self.relay(name, **more) for name in names]
        for relay in relays:
            relay.ready()
        return relays

    def shares(self):
        """Shards by relay; those of nobody under None."""
        return dict(self.sql("SELECT r.name, count(*) FROM outbox_shard s LEFT JOIN outbox_relay r ON r.lane = s.lane "
                             "GROUP BY r.name"))

    def shared_by(self, *names):
        """Waits until exactly these share all shards, fairly. How long it took."""
        began, low = time.monotonic(), 64 // len(names)

        def fair():
            shares = self.shares()
            return set(shares) == set(names) and sum(shares.values()) == 64 and \
                all(low <= n <= low + 1 for n in shares.values())

        until(fair, lambda: f"{names} to share: {self.shares()}")
        return time.monotonic() - began

    def lane_of(self, name):
        return self.sql("SELECT max(lane) FROM outbox_relay WHERE name = ?", name)[0][0]

    def in_hand(self, name):
        return self.sql("SELECT count(*) FROM outbox_claim c JOIN outbox_relay r ON r.lane = c.lane "
                        "WHERE r.name = ? AND cardinality(c.ids) > 0", name)[0][0]

    def is_gone(self, lane):
        return self.sql("SELECT 1 FROM outbox_relay WHERE lane = ?", lane) == []

    # -- applications --

    def write(self, n=1, **spec):
        """Starts writers."""
        for _ in range(n):
            name = f"w{len(self.writers)}"
            self.writers.append(self.child(
                sys.executable, __file__, BINARY, "--write", postgres.cluster().url(self.db), self.events.path, name,
                json.dumps({**WRITER, **spec}), stdin=subprocess.PIPE, env={**os.environ, "SEED": SEED}))

    def stop_writing(self):
        for process in self.writers:
            process.stdin.close()
        for process in self.writers:
            assert process.wait(PATIENCE) == 0

    def flowing(self, more=50):
        """Waits until so many more have arrived."""
        n = len(self.receiver.requests)
        until(lambda: len(self.receiver.requests) >= n + more, "messages to flow")

    # -- the end --

    def come_to_rest(self, seconds=PATIENCE):
        """Everything is settled, every relay drains."""
        self.events.add("heal")
        rest = "SELECT 1 WHERE EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM outbox_retry)"
        until(lambda: self.sql(rest) == [], lambda: f"rest: {self.statuses()} {self.shares()}", seconds)
        for relay in self.relays:
            if not relay.gone():
                relay.stop()
        self.events.add("end")

    def finished_log(self):
        """A commit stands where it began to be visible, with the time of its end."""
        lines = self.events.lines()
        odd = [e for e in lines if e["ev"] != "dest" and not self.started_ms <= e["t"] <= now_ms()]
        assert not odd, f"at another time: {odd[:3]}"
        ended = {e["m"]: e["t"] for e in lines if e["ev"] == "committed"}
        out = []
        for e in lines:
            if e["ev"] == "intent":
                if e["m"] in ended:
                    out.append({**e, "ev": "commit", "at": e["t"], "t": ended[e["m"]]})
                else:  # the server went away before, or undid it
                    out.append({**e, "ev": "rollback"})
            elif e["ev"] not in ("committed", "aborted"):
                out.append(e)
        with contextlib.closing(self.connect()) as db:
            return witness.Witness(db).complete(out)

    def judge(self, repeats=None, dead=()):
        """Every committed id at its receiver, or a dead letter where it was to go to one of `dead`; no other; repeats
        within their bound (or at most `repeats`); order per key; nothing left. What happened, in words."""
        log = self.finished_log()
        wanted, hashes, ids, keys = set(), {}, {}, {}
        taken, unclear, first = collections.Counter(), collections.Counter(), {}
        for e in log:
            leg = e.get("m"), e.get("dest")
            if e["ev"] == "commit":
                wanted.add(leg)
                hashes[leg], ids[leg], keys[leg] = e["hash"], e["id"], e["key"]
            elif e["ev"] == "recv":
                assert leg in wanted, f"{leg} was never committed"
                assert e["hash"] == hashes[leg], f"{leg} arrived with other bytes"
                taken[leg] += e["acted"]
                if e["acted"]:
                    first.setdefault(leg, len(first))
            elif e["ev"] == "send":
                unclear[leg] += 1  # until it is known …
            elif e["ev"] == "fail":
                unclear[leg] -= not e["maybe"]  # … that it was refused …
            elif e["ev"] == "settle" and e["rows"]:
                unclear[leg] -= e["kind"] == "sent"  # … or that it was taken, and that this is on disk
        lost = {leg for leg in wanted if not taken[leg] and leg[1] not in dead}
        assert not lost, f"{len(lost)} lost: {sorted(lost)[:10]}"
        for leg, n in taken.items():
            assert n <= 1 + unclear[leg], f"{leg} was taken {n} times, {unclear[leg]} outcomes were unclear"
        again = sum(taken.values()) - len(+taken)
        assert repeats is None or again <= repeats, f"{again} repeats"
        self.check_order(first, ids, keys)
        sent = collections.Counter(self.sql("SELECT message_id, destination FROM outbox_sent"))
        letters = collections.Counter(self.sql("SELECT message_id, destination FROM dead_letters"))
        assert sent == collections.Counter(leg for leg in wanted if leg[1] not in dead), "the tables tell another story"
        assert letters == collections.Counter(leg for leg in wanted if leg[1] in dead), "dead letters"
        for table in ("outbox", "outbox_retry", "outbox_claim", "outbox_relay"):
            assert self.sql(f"SELECT count(*) FROM {table}") == [(0,)], table
        assert self.shares() == {None: 64}
        return f"{len(wanted)} messages, {again} repeats; {self.check(log)}"

    @staticmethod
    def check_order(first, ids, keys):
        """Of one destination and key: taken first in the order in which they were written."""
        last = {}
        for leg in sorted(first, key=first.get):
            place = leg[1], keys[leg]
            if keys[leg]:
                assert ids[leg] > last.get(place, 0), f"{leg} of {keys[leg]} came behind one that was written later"
                last[place] = ids[leg]

    def check(self, log):
        checker = witness.find_checker(BINARY)
        if not checker:
            return "hikyaku-check was not built"
        with contextlib.closing(self.connect()) as db:
            return witness.run_checker(checker, self.folder, log, witness.dump(db), *SLACK)


KEYED = {"dests": {"shop": (1, 0), "keyed": (1, 12)}}
SHOPS = {"shop": {}, "keyed": {"order": "key"}}


# ---- 1: coming and going ----

@test
def three_relays_share_the_work_and_come_and_go_without_a_repeat():
    with Many(SHOPS) as w:
        w.receiver.on("shop", Answer(200, delay=1.2))  # so that shards are in hand when they are to change theirs
        w.write(3, **KEYED)
        w.start("a", "b", "c")
        say(f"three share after {w.shared_by('a', 'b', 'c'):.1f} s")
        listed = json.loads(w.hikyaku("relays", "list", "--json"))
        assert sorted(r["name"] for r in listed["items"]) == ["a", "b", "c"], listed
        assert sorted(int(r["shards"]) for r in listed["items"]) == [21, 21, 22], listed
        w.flowing(200)
        w.relays[0].stop()
        say(f"the others have the shards of one that left after {w.shared_by('b', 'c'):.1f} s")
        w.flowing(200)
        w.start("d")
        say(f"a new one has its share after {w.shared_by('b', 'c', 'd'):.1f} s")
        w.flowing(200)
        w.stop_writing()
        w.come_to_rest()
        say(w.judge(repeats=0))
        for relay in w.relays:
            assert "lane lost" not in relay.log() and "does not answer" not in relay.log(), relay.log()


# ---- 2: dying and stalling ----

@test
def what_a_killed_or_stalled_relay_had_is_taken_over_and_it_changes_nothing_when_it_wakes():
    with Many(SHOPS) as w:
        for d in SHOPS:
            w.receiver.on(d, Answer(200, delay=0.05))
        w.write(2, **KEYED)
        w.start("a", "b", "c")
        w.shared_by("a", "b", "c")
        w.flowing(100)
        until(lambda: w.in_hand("a"), "something in hand")
        dead = w.lane_of("a")
        w.relays[0].kill()
        began = time.monotonic()
        until(lambda: w.is_gone(dead), "a take-over")
        say(f"killed: taken over after {time.monotonic() - began:.1f} s, the lease being {LEASE:g} s")
        w.shared_by("b", "c")
        until(lambda: w.in_hand("b"), "something in hand")
        stalled = w.lane_of("b")
        w.relays[1].signal(signal.SIGSTOP)
        stopped, began = now_ms(), time.monotonic()
        until(lambda: w.is_gone(stalled), "a take-over")
        say(f"stopped: taken over after {time.monotonic() - began:.1f} s")
        w.shared_by("c")
        w.flowing(100)
        at = len(w.events.lines())
        w.relays[1].signal(signal.SIGCONT)
        w.relays[1].says("lane lost")
        w.shared_by("b", "c")
        assert w.lane_of("b") > stalled
        w.flowing(100)
        w.stop_writing()
        w.come_to_rest()
        # What its loop had begun when it was stopped, it ends when it wakes.
        late = [e for e in w.events.lines()[at:] if e.get("lane") == stalled and e["t"] > stopped + 100]
        assert not [e for e in late if e["ev"] == "send"], late
        say(w.judge())


# ---- 3: hostile writers ----

class Held:
    """A message whose transaction stays open."""

    def __init__(self, world, name, prepared=False):
        self.world, self.db, self.name, self.prepared = world, world.connect(), name, prepared
        self.began = now_ms()
        self.db.execute("BEGIN")
        world.insert(db=self.db, message_id=name)
        if prepared:
            self.db.execute(f"PREPARE TRANSACTION '{name}'")

    def commit(self):
        """How long it took from there to the receiver."""
        self.world.events.add("intent", m=self.name, dest="shop", key="", due=0, began=self.began, max=0, id=0,
                              hash=hash_of(b"{}"))
        self.db.execute(f"COMMIT PREPARED '{self.name}'" if self.prepared else "COMMIT")
        self.world.events.add("committed", m=self.name)
        committed = time.time()
        arrived = until(lambda: self.world.receiver.arrived(self.name), f"{self.name} to arrive")
        self.db.close()
        return arrived[0].at - committed


@test
def late_commits_are_found_and_undone_rows_are_not_whatever_writers_do():
    with Many(SHOPS) as w:
        held = [Held(w, "held"), Held(w, "prepared", prepared=True)]
        w.start("a", "b")
        w.shared_by("a", "b")
        w.write(8, dests=KEYED["dests"], rate=12, rollback=0.25, savepoint=0.3, hold=(0.5, 0.5))
        w.flowing(300)
        w.stop_writing()
        until(lambda: w.sql("SELECT count(*) FROM outbox") == [(0,)], "all that is committed")
        for one in held:
            assert w.receiver.arrived(one.name) == []
            say(f"{one.name}: arrives {one.commit() * 1000:.0f} ms after its commit, {now_ms() - one.began} ms after its insert")
        w.come_to_rest()
        say(w.judge(repeats=0))


# ---- 4: the server ----

@contextlib.contextmanager
def settings(db, **values):
    for name, value in values.items():
        db.execute(f"ALTER SYSTEM SET {name} = {value}")
    db.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        for name in values:
            db.execute(f"ALTER SYSTEM RESET {name}")
        db.execute("SELECT pg_reload_conf()")


@contextlib.contextmanager
def full(db, world):
    """The server takes no more connections, and ends those that there are."""
    db.execute(f"ALTER DATABASE {world.db} CONNECTION LIMIT 0")
    db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ?", [world.role])
    try:
        yield
    finally:
        db.execute(f"ALTER DATABASE {world.db} CONNECTION LIMIT -1")


BROKEN, WELL = "store does not answer", "store answers again"


@test
def an_outage_of_the_server_is_said_once_charges_no_attempt_and_ends_by_itself():
    with Many(SHOPS) as w:
        w.write(2, **KEYED)
        w.start("a", "b")
        w.shared_by("a", "b")

        def outage(what, happen):
            w.flowing()
            before = [(r.log().count(BROKEN), r.log().count(WELL)) for r in w.relays]
            happen([n + 1 for n, _ in before])
            began = time.monotonic()
            for r, (broken, well) in zip(w.relays, before):
                r.says(WELL, well + 1)
            w.flowing()
            say(f"{what}: messages flow again {time.monotonic() - began:.1f} s after its end")
            after = [(r.log().count(BROKEN), r.log().count(WELL)) for r in w.relays]
            assert after == [(a + 1, b + 1) for a, b in before], (what, before, after)

        def noticed(during, counts):
            with during:
                for r, n in zip(w.relays, counts):
                    r.says(BROKEN, n)
                time.sleep(1)

        for _ in range(2):
            outage("restarted in the hard way", lambda counts: postgres.cluster().restart(signal.SIGQUIT))
        with contextlib.closing(postgres.cluster().connect("postgres")) as db:
            outage("read-only", lambda counts: noticed(settings(db, default_transaction_read_only="on"), counts))
            assert "read-only" in w.relays[0].log()
            outage("no more connections", lambda counts: noticed(full(db, w), counts))
            # said once, so it is the first that a relay met: its connection's end, or that it gets no other
            causes = ("too many connections", "terminating connection", "closed the connection", "administrator command")
            for r in w.relays:
                line = [text for text in r.log().splitlines() if BROKEN in text][-1]
                assert any(cause in line for cause in causes), line
        w.stop_writing()
        w.come_to_rest()
        assert w.sql("SELECT count(*) FROM outbox_sent WHERE attempts <> 1") == [(0,)], "an attempt was charged"
        say(w.judge())


# ---- 5: the network ----

WAITS = ("SELECT 1 FROM pg_stat_activity WHERE usename = ? AND state = 'active' AND wait_event = 'ClientRead' "
         "AND xact_start < clock_timestamp() - interval '300 ms'")

@test
def a_connection_that_is_cut_in_an_exchange_loses_nothing_and_repeats_nothing_that_was_clear():
    with Proxy(postgres.cluster().port) as proxy, Many(SHOPS) as w:
        w.write(2, **KEYED)
        w.start("a", "b", port=proxy.port)
        w.shared_by("a", "b")
        for kind in [*CUTS, *(k for k in CUTS if k != "vanish"), *("after", "commit") * 3]:
            w.flowing(10)
            n, began = len(proxy.done), time.monotonic()
            proxy.cut_next(kind)
            until(lambda: len(proxy.done) > n, "an exchange")
            if kind == "vanish":  # its session holds the lane, and waits for a COMMIT that never comes
                until(lambda: w.sql(WAITS, w.role), "a session that waits")
                until(lambda: not w.sql(WAITS, w.role), "its end")
                say(f"an exchange without an end was ended by others after {time.monotonic() - began:.1f} s")
                w.shared_by("a", "b")
            w.flowing(10)
        w.stop_writing()
        w.come_to_rest()
        lost = sum(r.log().count("lane lost") for r in w.relays)
        stale = [e for e in w.events.lines() if e["ev"] == "settle" and not e["rows"]]
        assert lost or not stale, f"settled, and not known again: {stale[:3]}"
        say(f"{len(proxy.done)} cuts, {lost} lanes lost; {w.judge(repeats=None if lost else 0)}")


# ---- 6: the clock ----

@test
def a_wrong_and_jumping_wall_clock_of_a_relay_loses_nothing_and_sends_nothing_early():
    steady = {**QUICK, "backoff": {"kind": "fixed", "base": "700ms"}}
    with Many({"shop": {"policy": "steady"}}, policies={"steady": steady}) as w:
        clock = FakeClock(w)
        w.receiver.on("shop", lambda r: 503 if int(r.id.split("-")[1]) % 3 == 0 and r.n < 3 else 200)
        clock.set(3600)
        try:
            w.start("odd", env=clock.env)
        except AssertionError as why:
            raise Skip(f"the program does not run under libfaketime here: {str(why)[-200:]!r}") from None
        w.start("even")
        w.shared_by("odd", "even")
        w.write(1, rate=20)
        for i, offset in enumerate((3600, 0, -3600, 7200)):
            w.flowing(20)
            due = time.time() + 1.5
            names = [f"later{i}-{3 * k + 1}" for k in range(8)]
            with contextlib.closing(w.connect()) as db:
                for name in names:
                    w.events.add("intent", m=name, dest="shop", key="", due=int(due * 1000), began=now_ms(), max=0, id=0,
                                 hash=hash_of(b"{}"))
                    w.insert(db=db, message_id=name, not_before=rfc3339(due))
                    w.events.add("committed", m=name)
            clock.set(offset)
            until(lambda names=names: {r.id for r in w.receiver.arrived()} >= set(names), "those that are due")
            early = [r.id for r in w.receiver.arrived() if r.id in names and r.at < due - 0.001]
            assert not early, early
        w.stop_writing()
        w.come_to_rest()
        for name in {r.id for r in w.receiver.arrived()}:
            visits = w.receiver.arrived(name)
            assert all(b.at - a.answered >= 0.7 for a, b in zip(visits, visits[1:])), [(v.at, v.answered) for v in visits]
        say(w.judge(repeats=0))


# ---- 7: all at once ----

HEALTHY = [f"d{i:02d}" for i in range(10)]
KEYS = ["k0", "k1", "k2", "k3", "k4"]
RATE, BURST, DELAY = 5, 5, 1  # of "limited"; and how many seconds a request may take from its grant to its receiver
CHAOS = {
    **{d: {} for d in HEALTHY}, **{d: {"order": "key"} for d in KEYS}, "flaky": {},
    "slow": {"limits": {"concurrency": 8}}, "dead": {"policy": "brief"}, "probe": {},
    "limited": {"limits": {"rate": f"{RATE}/s", "burst": BURST}}}
BRIEF = {**QUICK, "max_attempts": 4, "backoff": {"kind": "fixed", "base": "300ms"}}


class Chaos(Many):
    def __init__(self, proxy):
        super().__init__(CHAOS, policies={"brief": BRIEF}, relay={"concurrency": 128 if FULL else 12})
        self.config["destinations"]["dead"]["http"]["url"] = f"http://127.0.0.1:{postgres.free_port()}/dead"
        self.proxy, self.chance, self.born = proxy, random.Random(SEED), itertools.count()
        self.alive, self.stopped, self.acts = [], [], collections.Counter()
        luck, longest = random.Random(f"{SEED} receiver"), 0.05 if FULL else 0.4
        for d in HEALTHY + KEYS:  # so that there is something in hand at any time
            self.receiver.on(d, lambda r: Answer(200, delay=luck.uniform(0, longest)))
        self.receiver.on("flaky", lambda r: 503 if luck.random() < 0.1 else 200)
        self.receiver.on("slow", Answer(200, delay=0.8))

    def write_all(self):
        """To the slow, the dead and the limited as many as they can bear."""
        def part(n):
            return 16 * n / MESSAGES

        dests = {**{d: (1, 0) for d in HEALTHY}, **{d: (1, 50) for d in KEYS}, "flaky": (1, 0),
                 "slow": (part(2000 if FULL else 150), 0), "dead": (part(4000 if FULL else 150), 0),
                 "limited": (part(1000 if FULL else 150), 0)}
        self.write(4, dests=dests, total=MESSAGES // 4, batch=40 if FULL else 8, rate=0 if FULL else 15, hold=(0.05, 0.2))
        self.write(1, **PROBE)

    def more(self):
        self.alive.append(self.relay(f"r{next(self.born)}", port=self.proxy.port))

    def pick(self):
        """One that runs."""
        return self.alive.pop(self.chance.randrange(len(self.alive)))

    def kill_one(self):
        self.pick().kill()
        self.more()

    def stop_one(self):
        """Past its lease."""
        relay = self.pick()
        relay.signal(signal.SIGSTOP)

        def go_on():
            time.sleep(LEASE + 1.5)
            relay.signal(signal.SIGCONT)
            self.alive.append(relay)

        self.stopped.append(threading.Thread(target=go_on))
        self.stopped[-1].start()

    def leave_and_join(self):
        relay = self.pick()
        relay.signal(signal.SIGTERM)
        self.more()

    def cut(self):
        self.proxy.cut_next(self.chance.choice([k for k in CUTS if k != "vanish"]))

    def restart(self):
        postgres.cluster().restart(signal.SIGQUIT)

    def rage(self, acts, pause):
        """Does all of it, in some order."""
        plan = [act for act, n in acts.items() for _ in range(n)]
        self.chance.shuffle(plan)
        for act in plan:
            time.sleep(self.chance.uniform(0, 2 * pause))
            until(lambda: len(self.alive) > 1, "one that can be spared")
            act()
            self.acts[act.__name__] += 1
        for thread in self.stopped:
            thread.join()

    # -- judging --

    @staticmethod
    def most_in_10_s(times):
        times, most, begin = sorted(times), 0, 0
        for end, t in enumerate(times):
            while times[begin] <= t - 10:
                begin += 1
            most = max(most, end - begin + 1)
        return most

    def probes(self):
        """How late each came; and what happened to the worst of them."""
        lines = [e for e in self.events.lines() if e.get("dest") == "probe" or e["ev"] == "committed"]
        committed = {e["m"]: e["t"] for e in lines if e["ev"] == "committed"}
        came = {}
        for r in self.receiver.arrived(destination="probe"):
            came.setdefault(r.id, r.at - committed[r.id] / 1000)
        worst = max(came, key=came.get)
        say("the worst probe: " + ", ".join(f"{e['ev']} {(e['t'] - committed[worst]) / 1000:.1f} s {e.get('relay', '')}".strip()
                                            for e in lines if e.get("m") == worst and e["ev"] != "committed"))
        return sorted(came.values())


@test
def four_relays_survive_everything_at_once():
    say(f"SEED={SEED}")
    with Proxy(postgres.cluster().port, SEED) as proxy, Chaos(proxy) as w:
        for _ in range(4):
            w.more()
        w.write_all()
        w.flowing()
        many = 6 if FULL else 1
        w.rage({w.kill_one: 3 * many, w.stop_one: 2 * many, w.leave_and_join: many, w.cut: 6 * many, w.restart: 2},
               pause=4 if FULL else 1.5)
        for writer in w.writers[:-1]:
            until(lambda w=writer: w.poll() is not None, "the writers' end", 1800)
        w.stop_writing()
        w.come_to_rest(1800 if FULL else 2 * PATIENCE)
        took = time.monotonic() - w.began
        say(f"{dict(w.acts)}, cuts {dict(collections.Counter(proxy.done))}, {took:.0f} s")
        late = w.probes()
        within = sum(1 for t in late if t <= LEASE + 5) / len(late)
        say(f"{len(late)} probes: {within:.2%} within {LEASE + 5:g} s; median {late[len(late) // 2] * 1000:.0f} ms, "
            f"worst {late[-1]:.1f} s")
        came = [r.at for r in w.receiver.arrived(destination="limited")]
        most = w.most_in_10_s(came)
        sent = w.most_in_10_s([e["t"] / 1000 for e in w.events.lines() if e["ev"] == "send" and e["dest"] == "limited"])
        say(f"{len(came)} requests to the limited destination: at most {most} came in 10 s, {sent} were sent; "
            f"allowed are {RATE * 10 + BURST}")
        say(w.judge(dead=["dead"]))
        wrong = "SELECT count(*) FROM dead_letters WHERE reason_code <> 'RETRY_EXHAUSTED' OR attempts <> 4"
        assert w.sql(wrong) == [(0,)], "an attempt too few or too many"
        assert not FULL or within >= 0.999, "probes were late"
        # what was granted in 10 s; it may arrive a little later or sooner than its neighbours
        assert not SHARED_LIMITS or most <= RATE * (10 + DELAY) + BURST, "more than the destination allows"


# ---- 8: worn in, then flooded ----

class Flood(World):
    """One relay that sends to nowhere, through PgBouncer or directly."""

    def __init__(self, pooled):
        super().__init__((), relay={"concurrency": 256})
        self.config["destinations"] = {"void": {"null": {}}}
        if pooled:
            self.config["store"] = postgres.cluster().url(self.db, postgres.pooler().port)
        self.write_config()

    def load(self, n, first=0):
        self.sql(f"INSERT INTO outbox (destination, event_type, payload, message_id) SELECT 'void', 'Order', "
                 f"repeat('x', 200), 'm' || i FROM generate_series({first + 1}, {first + n}) i")

    def drained(self, n):
        """Waits until so many are sent."""
        until(lambda: self.sql("SELECT count(*) FROM outbox_sent") == [(n,)] if n < 1000 else
              self.sql("SELECT 1 FROM outbox LIMIT 1") == [], "an empty outbox", 1800)


def rate_of(pooled, worn):
    with Flood(pooled) as w:
        if worn:
            w.sql("ANALYZE")
            w.daemon().ready()
            for i in range(40):
                w.load(1, i)
                w.drained(i + 1)
        w.load(ROWS, 1000)
        if not worn:
            w.daemon().ready()
        began = time.monotonic()
        w.drained(ROWS)
        return ROWS / (time.monotonic() - began)


def compare_rates(pooled):
    loaded, worn = rate_of(pooled, False), rate_of(pooled, True)
    say(f"{ROWS} rows: {loaded:.0f} a second when they lay there, {worn:.0f} after 40 single ones: {worn / loaded:.2f}")


@test
def worn_in_on_an_empty_table_then_flooded():
    compare_rates(pooled=False)


@test
def worn_in_on_an_empty_table_then_flooded_behind_pgbouncer():
    if not postgres.find_pooler():
        raise Skip("PgBouncer is not installed (Debian: pgbouncer)")
    compare_rates(pooled=True)


if "--write" in sys.argv:
    application(*sys.argv[sys.argv.index("--write") + 1:])
    sys.exit(0)
sys.exit(run_tests(TESTS))
