# SPDX-License-Identifier: Apache-2.0
"""Many relays on one PostgreSQL as processes, and what may happen to them: shared by tests/e2e/many.py and tests/chaos.
Relays, receivers and applications write one event log; witness.py completes it from what the database itself has seen.

As a program it is one of the applications: fleet.py PATH-TO-HIKYAKU --write URL LOG NAME SPEC"""
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
from proxy import CUTS
from support import BINARY, EventLog, PATIENCE, Receiver, Request, World, count_sends, hash_of, now_ms, until

SEED = os.environ.get("SEED", str(time.time_ns()))
LEASE = 3.0
SLACK = ["--lanes", "many", "--slack", "100"]


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
            server = await self.loop.create_server(lambda: Conversation(self), self.host, 0, backlog=512)
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
    make_receiver, store_host = Inbox, "127.0.0.1"

    def __init__(self, destinations=("shop",), relay=None, **more):
        super().__init__(destinations, event_log=True, relay={"lease": f"{int(LEASE * 1000)}ms", "concurrency": 64,
                                                               **(relay or {})}, **more)
        self.role = f"relay_{self.db}"
        self.began, self.started_ms = time.monotonic(), now_ms()
        self.writers, self.relays, self.totals = [], [], collections.Counter()
        with contextlib.closing(self.connect()) as db:
            db.execute(f"CREATE ROLE {self.role} LOGIN")
            for line in self.hikyaku("init", "--print-grants", "--relay-role", self.role).splitlines():
                if line.startswith("GRANT") and self.role in line:
                    db.execute(line)
            witness.install(db)
        for d, settings in self.config["destinations"].items():
            self.events.add("dest", t=0, dest=d, kind=settings.get("on_dead", "block") if settings.get("order") == "key" else "none", cap=0,
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
                  "store": f"postgres://{self.role}@{self.store_host}:{port or postgres.cluster().port}/{self.db}"
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

    def left(self):
        """What waits, and which dead heads it may wait for."""
        return (self.sql("SELECT destination, message_key, min(id), count(*) FROM outbox GROUP BY 1, 2 LIMIT 20"),
                self.sql("SELECT destination, message_key, due_ms, claim FROM outbox_retry LIMIT 20"),
                self.sql("SELECT destination, message_key, reason_code FROM dead_letters WHERE message_key <> '' LIMIT 20"))

    def come_to_rest(self, seconds=PATIENCE):
        """Everything is settled, every relay drains."""
        self.events.add("heal")
        rest = "SELECT 1 WHERE EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM outbox_retry)"
        until(lambda: self.sql(rest) == [], lambda: f"rest: {self.statuses()} {self.shares()} {self.left()}", seconds)
        alive = sum(not relay.gone() for relay in self.relays)
        if alive:  # somebody takes over from those that were killed last, once their leases are over
            until(lambda: self.sql("SELECT count(*) FROM outbox_relay")[0][0] <= alive, lambda: f"lanes: {self.shares()} {self.left()}", seconds)
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

    def judge(self, repeats=None, dead=(), kills=False):
        """Every committed id at its receiver, or a dead letter where it was to go to one of `dead`; no other, unless relays
        are killed and it was in hand four times running; repeats within their bound (or at most `repeats`); order per key;
        nothing left. What happened, in words."""
        log = self.finished_log()
        wanted, hashes, ids, keys = set(), {}, {}, {}
        taken, unclear, first, crashes = collections.Counter(), collections.Counter(), {}, collections.Counter()
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
            else:
                count_sends(e, leg, unclear, crashes)
        blamed = self.blamed(crashes) if kills else set()
        lost = {leg for leg in wanted if not taken[leg] and leg[1] not in dead} - blamed
        assert not lost, f"{len(lost)} lost: {sorted(lost)[:10]}"
        for leg, n in taken.items():
            assert n <= 1 + unclear[leg], f"{leg} was taken {n} times, {unclear[leg]} outcomes were unclear"
        again = sum(taken.values()) - len(+taken)
        assert repeats is None or again <= repeats, f"{again} repeats"
        self.check_order(first, ids, keys)
        sent = collections.Counter(self.sql("SELECT message_id, destination FROM outbox_sent"))
        letters = collections.Counter(self.sql("SELECT message_id, destination FROM dead_letters"))
        dying = {leg for leg in wanted if leg[1] in dead} | blamed
        assert sent == collections.Counter(wanted - dying), "the tables tell another story"
        assert letters == collections.Counter(dying), "dead letters"
        for table in ("outbox", "outbox_retry", "outbox_claim", "outbox_relay"):
            assert self.sql(f"SELECT count(*) FROM {table}") == [(0,)], table
        assert self.shares() == {None: 64}
        self.totals.update(messages=len(wanted), repeats=again, blamed=len(blamed))
        return f"{len(wanted)} messages, {again} repeats; {self.check(log)}"

    def blamed(self, crashes):
        """Who was in hand when relays died, as often as it takes; nobody else."""
        legs = set(self.sql("SELECT message_id, destination FROM dead_letters WHERE reason_code = 'RELAY_CRASHED'"))
        innocent = {leg: crashes[leg] for leg in legs if crashes[leg] < 4}
        assert not innocent, f"blamed for too few crashes: {innocent}"
        return legs

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


# ---- whatever may happen ----

class Raging(Many):
    """One whose relays are killed, stopped, sent away and cut off, behind a proxy."""

    def __init__(self, proxy, *args, seed=SEED, **more):
        super().__init__(*args, **more)
        self.proxy, self.chance, self.born = proxy, random.Random(seed), itertools.count()
        self.alive, self.stopped, self.acts = [], [], collections.Counter()

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


if __name__ == "__main__":
    application(*sys.argv[sys.argv.index("--write") + 1:])
