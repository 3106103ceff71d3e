# SPDX-License-Identifier: Apache-2.0
"""A world whose relay is killed again and again, and what it could not write any more: shared by tests/e2e/kill.py and
tests/chaos. As a program it is the application: killed.py PATH-TO-HIKYAKU --insert DATABASE LOG NAME"""
import collections
import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
import witness
from support import Answer, BINARY, EventLog, PATIENCE, POSTGRES, QUICK, World, count_sends, hash_of, now_ms, until
if POSTGRES:
    import postgres

SEED = os.environ.get("SEED", str(time.time_ns()))


# ---- the application: its own process ----

def draw_message(chance):
    """Columns of a message, and the destinations that it must reach."""
    kind = chance.random()
    if kind < 0.4:
        return {"destination": "flaky"}, "flaky"
    if kind < 0.65:
        return {"destination": "keyed", "message_key": f"k{chance.randrange(5)}"}, "keyed"
    if kind < 0.8:
        return {"destination": "slow"}, "slow"
    return {"event_type": "Fan.out"}, "fan_a,fan_b"


def write_transaction(db, log, chance, prefix):
    began, good, batch = now_ms(), chance.random() > 0.2, []
    rows = [{"event_type": "Order", "payload": f'{{"n":{chance.random()}}}', **columns, "message_id": f"{prefix}-{i}",
             "reach": destinations} for i in range(chance.randint(1, 4)) for columns, destinations in [draw_message(chance)]]
    db.execute("BEGIN IMMEDIATE")
    for row in rows:
        destinations = row.pop("reach")
        db.execute(f"INSERT INTO outbox ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
        batch.append({"m": row["message_id"], "dest": destinations, "key": row.get("message_key", ""), "due": 0,
                      "began": began, "max": 0, "hash": hash_of(row["payload"].encode())})
    if chance.random() < 0.1:
        time.sleep(0.05)  # held open
    if not good:
        db.execute("ROLLBACK")
    for message in batch:  # before the commit, so that nobody can be quicker
        log.add("intent" if good else "rollback", **message)
    if good:
        known = commit(db, batch[0]["m"])
        for message in batch:
            log.add("committed" if known else "aborted", m=message["m"])


def commit(db, message_id):
    """False: the disk is full, and nothing of it is there."""
    try:
        db.execute("COMMIT")
        return True
    except sqlite3.Error:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
    while True:
        with contextlib.suppress(sqlite3.Error):
            return db.execute("SELECT 1 FROM outbox_messages WHERE message_id = ?", [message_id]).fetchone() is not None
        time.sleep(0.1)


def is_behind(db):
    """Relays that are killed again and again on a busy machine get little done: the outbox shall not grow without end."""
    with contextlib.suppress(sqlite3.Error):
        return db.execute("SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM outbox_retry)").fetchone()[0] > 300
    return False


def application(path, log_path, name):
    """Inserts until its stdin is closed."""
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    log, chance = EventLog(log_path), random.Random(f"{SEED} {name}")
    db = postgres.Connection(path) if POSTGRES else sqlite3.connect(path, timeout=60, isolation_level=None)
    n = 0
    while not stop.is_set():
        try:
            write_transaction(db, log, chance, f"{name}-{n}")
        except sqlite3.OperationalError:  # a full disk: nothing was said of it yet
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
        n += 1
        time.sleep(chance.expovariate(60))
        while not stop.is_set() and is_behind(db):
            time.sleep(0.1)


# ---- what a killed relay could not write any more ----

class Journal:
    """Follows the event log. After a kill it compares it with the tables and adds the lines that were missing: of the
    last exchange, which may be on disk and not in the log; and of what the successor will take from the dead lane."""

    def __init__(self, world):
        self.world, self.at, self.rest = world, 0, ""
        self.open = {}  # row -> its claim line
        self.lanes = {}  # lane -> relay, while it lives
        self.attempts = collections.Counter()  # settled, by message and destination
        self.charged = collections.Counter()  # the same, of those that were charged
        self.mourned = set()  # lanes of the dead whose rows were written off already: their successor died waiting

    def read(self):
        with open(self.world.events.path, encoding="utf-8") as file:
            file.seek(self.at)
            lines = file.readlines()
            self.at = file.tell()
        for line in lines:
            self.follow(json.loads(line))

    def follow(self, e):
        if e["ev"] == "acquire":
            self.lanes = {e["lane"]: e["relay"]}
        elif e["ev"] == "release":
            self.lanes.pop(e["lane"], None)
        elif e["ev"] == "claim":
            self.open[e["row"]] = e
        elif e["ev"] == "settle" and e["rows"]:
            self.open.pop(e["row"], None)
            self.attempts[e["m"], e["dest"]] = e["n"]
            self.charged[e["m"], e["dest"]] = e["charged"]
        elif e["ev"] == "orphan":
            self.open.pop(e["row"], None)

    def in_hand(self, db):
        """Rows that a manifest names, as the tables have it."""
        rows = {}
        for claim, lane, ids in db.execute("SELECT claim, lane, ids FROM outbox_claim"):
            for i in json.loads(ids):
                for m, dest in db.execute("SELECT message_id, destination FROM outbox WHERE id = ?", [i]):
                    rows[f"o{i}"] = {"m": m, "dest": dest, "row": f"o{i}", "lane": lane, "claim": claim, "life": 1}
            for i, m, dest, life in db.execute(
                    "SELECT id, message_id, destination, life FROM outbox_retry WHERE claim = ?", [claim]):
                rows[f"r{i}"] = {"m": m, "dest": dest, "row": f"r{i}", "lane": lane, "claim": claim, "life": life}
        return rows

    def fate(self, db, claim):
        """(kind, destination, attempts, due, reason) of a row that was settled, as the tables have it."""
        table, row, m, dest = claim["row"][0], int(claim["row"][1:]), claim["m"], claim["dest"]
        name = "outbox" if table == "o" else "outbox_retry"
        if not dest and not db.execute(f"SELECT 1 FROM {name} WHERE id = ?", [row]).fetchone():
            return "fan_out", "", 0, 0, ""
        if table == "o" and db.execute("SELECT 1 FROM outbox WHERE id = ?", [row]).fetchone():
            return "release", dest, 0, 0, ""
        where = "WHERE message_id = ? AND destination = ?"
        waits = db.execute(f"SELECT attempts, due_ms FROM outbox_retry {where}", [m, dest]).fetchone()
        if waits:
            return "retry" if waits[0] > self.attempts[m, dest] else "release", dest, waits[0], waits[1], ""
        sent = db.execute(f"SELECT attempts FROM outbox_sent {where}", [m, dest]).fetchone()
        if sent:
            return "sent", dest, sent[0], 0, ""
        dead = db.execute(f"SELECT attempts, reason_code FROM dead_letters {where}", [m, dest]).fetchone()
        assert dead, f"{m} to {dest or 'nowhere yet'} is in no table"
        return "dead", dest, dead[0], 0, dead[1]

    def charged_of(self, db, m, dest, attempts):
        """As the table has it; where it has not, each attempt since the last that is known was charged."""
        waits = db.execute("SELECT charged FROM outbox_retry WHERE message_id = ? AND destination = ?", [m, dest]).fetchone()
        return waits[0] if waits else self.charged[m, dest] + attempts - self.attempts[m, dest]

    def mend(self):
        """After the process's end, before its successor's start. Returns what was in its hand."""
        self.read()
        log, db = self.world.events, self.world.connect()
        db.execute("BEGIN")
        lanes = {lane: (name, started, ends) for lane, name, started, ends in
                 db.execute("SELECT lane, name, started_ms, until_ms FROM outbox_relay") if lane not in self.mourned}
        for lane, (name, started, ends) in lanes.items():
            if lane not in self.lanes:
                log.add("acquire", t=started, relay=name, lane=lane, until=ends)
            log.add("renew", lane=lane, until=ends)
        for lane in set(self.lanes) - set(lanes) - self.mourned:
            log.add("release", lane=lane)
        rows = {row: claim for row, claim in self.in_hand(db).items() if claim["lane"] in lanes}
        for row, claim in self.open.items():
            if row in rows and rows[row]["claim"] == claim["claim"]:
                continue
            kind, dest, attempts, due, reason = self.fate(db, claim)
            log.add("settle", m=claim["m"], dest=dest, kind=kind, reason=reason, row=row, lane=claim["lane"],
                    claim=claim["claim"], due=due, life=claim["life"], n=attempts,
                    charged=self.charged_of(db, claim["m"], dest, attempts), rows=1)
        for row, claim in rows.items():
            if row not in self.open or self.open[row]["claim"] != claim["claim"]:
                log.add("claim", **claim)
        for name in {name for name, _, _ in lanes.values()}:
            log.add("crash", relay=name)
        for claim in rows.values():
            log.add("orphan", m=claim["m"], dest=claim["dest"], row=claim["row"],
                    lane=claim["lane"], claim=claim["claim"])
        db.execute("COMMIT")
        db.close()
        self.mourned |= set(lanes)
        self.read()
        assert not self.open, self.open
        return set(rows)


# ---- a world that is killed ----

DESTINATIONS = {"flaky": {}, "keyed": {"order": "key"}, "slow": {"policy": "hasty"}, "fan_a": {}, "fan_b": {},
                "poison": {}}


class KilledWorld(World):
    def __init__(self, name, **more):
        super().__init__(DESTINATIONS, event_log=True, relay={"concurrency": 64, **({"lease": "1s"} if POSTGRES else {})},
                         policies={"hasty": {**QUICK, "timeout": "2s"}, "quick": {**QUICK, "max_attempts": 1000}},
                         routes=[{"event_type": "Fan.*", "destination": ["fan_a", "fan_b"]}], **more)
        self.name, self.chance = name, random.Random(f"{SEED} {name}")
        for d in DESTINATIONS:
            self.events.add("dest", t=0, dest=d, kind="block" if d == "keyed" else "none", cap=0, wait=3600000)
        self.journal = None if POSTGRES else Journal(self)
        if POSTGRES:
            with contextlib.closing(self.connect()) as db:
                witness.install(db)
        self.kills, self.with_hands_full = 0, 0

    def be_flaky(self):
        """Its own generator for each destination: threads share no state that matters."""
        for d in DESTINATIONS:
            chance = random.Random(f"{SEED} {self.name} {d}")
            self.receiver.on(d, lambda r, chance=chance, slow=d == "slow": self.answer(chance, slow))

    @staticmethod
    def answer(chance, slow):
        luck = chance.random()
        if slow:
            return Answer(200, hang=True) if luck < 0.03 else Answer(200, delay=luck * 0.15)
        if luck < 0.02:
            return Answer(429, headers={"Retry-After": "1"})
        return 503 if luck < 0.15 else 200

    def be_well(self):
        self.receiver.script.clear()

    def start_application(self):
        return self.child(sys.executable, __file__, BINARY, "--insert", self.url if POSTGRES else str(self.db),
                          self.events.path, self.name,
                          stdin=subprocess.PIPE, env={**os.environ, "SEED": SEED})

    def stop_application(self, process):
        process.stdin.close()
        assert process.wait(PATIENCE) == 0

    def mend(self, daemon):
        self.kills += 1
        self.with_hands_full += bool(self.journal.mend() if self.journal else self.claims())

    def claims(self):
        return self.sql("SELECT 1 FROM outbox_claim WHERE lane = (SELECT max(lane) FROM outbox_relay)")

    def most_crashes(self):
        return self.sql("SELECT coalesce(max(crashes), 0) FROM outbox_retry")[0][0]

    def most_crashes_soon(self):
        """Once what the dead one had in hand is taken over."""
        return self.sql("SELECT coalesce(max(crashes + CASE WHEN claim IS NULL THEN 0 ELSE 1 END), 0) FROM outbox_retry")[0][0]

    def live_and_die(self):
        # who was in hand at three kills running would be blamed for the fourth: that one must not come at random
        at_random = self.most_crashes_soon() < 3 and self.chance.random() < 0.2
        daemon = self.daemon()
        if at_random:
            time.sleep(self.chance.uniform(0, 0.3))  # wherever it is by then
        else:
            until(lambda: "lane acquired" in daemon.log() or daemon.gone(), "its turn")
            until(self.has_work, "a share of the outbox")
            at_work = self.chance.random() < 0.6  # else it may have nothing in hand when it is killed
            time.sleep(self.chance.uniform(0, 0.4))
            until(lambda: self.most_crashes() < 3 and (not at_work or self.claims()), "those that saw three crashes")
        assert not daemon.gone(), (daemon.process.returncode, daemon.log())
        daemon.kill()
        self.mend(daemon)
        self.forget(daemon)

    def has_work(self):
        """On PostgreSQL it waits for what its predecessor had."""
        return not POSTGRES or self.sql("SELECT 1 FROM outbox_shard WHERE lane = (SELECT max(lane) FROM outbox_relay)")

    def forget(self, daemon):
        """Hundreds of them: keep what is of interest."""
        self.check_sanitizers()
        self.daemons.remove(daemon)

    def come_to_rest(self):
        """A last relay, left alone, brings everything to its end and drains."""
        self.be_well()
        self.events.add("heal")
        daemon = self.daemon("last").ready()
        until(lambda: not set(self.statuses()) - {"sent", "dead"}, lambda: f"rest: {self.statuses()}", 2 * PATIENCE)
        until(lambda: self.sql("SELECT count(*) FROM outbox_relay") == [(1,)], "the last of the dead")
        daemon.stop()
        self.events.add("end")
        if self.journal:
            self.journal.read()

    # -- judging --

    def finished_log(self):
        """The log as the checker wants it: a commit stands where it began to be visible, with the time of its end."""
        lines = self.events.lines()
        ended = {e["m"]: e["t"] for e in lines if e["ev"] == "committed"}
        undone = {e["m"] for e in lines if e["ev"] == "aborted"}
        for e in lines:
            if e["ev"] == "intent" and e["m"] in undone:
                e["ev"] = "rollback"
            elif e["ev"] == "intent":
                assert e["m"] in ended, f"nobody knows whether {e['m']} was committed"
                e.update(ev="commit", at=e["t"], t=ended[e["m"]])
        lines = [e for e in lines if e["ev"] not in ("committed", "aborted")]
        if self.journal:
            return lines
        with contextlib.closing(self.connect()) as db:
            return witness.Witness(db).complete(lines)

    def judge(self):
        """Every committed id at its receivers, no rolled-back one, repeats within their bound, no innocent dead letter,
        nothing left over."""
        log = self.finished_log()
        wanted, rolled_back, hashes = set(), set(), {}
        taken, unclear, crashes = collections.Counter(), collections.Counter(), collections.Counter()
        for e in log:
            leg = e.get("m"), e.get("dest")
            if e["ev"] == "commit":
                wanted |= {(e["m"], d) for d in e["dest"].split(",")}
                hashes[e["m"]] = e["hash"]
            elif e["ev"] == "rollback":
                rolled_back.add(e["m"])
            elif e["ev"] == "recv":
                assert e["m"] not in rolled_back and leg in wanted, f"{leg} was never committed"
                assert e["hash"] == hashes[e["m"]], f"{leg} arrived with other bytes"
                taken[leg] += e["acted"]
            else:
                count_sends(e, leg, unclear, crashes)
        letters = self.sql("SELECT message_id, destination, reason_code FROM dead_letters")
        dead = {(m, d): reason for m, d, reason in letters}
        for leg, reason in dead.items():
            assert reason == "RELAY_CRASHED" and crashes[leg] >= 4, f"innocent: {leg} {reason}, {crashes[leg]} crashes"
        lost = {leg for leg in wanted if not taken[leg]} - set(dead)
        assert not lost, f"lost: {sorted(lost)[:10]}"
        for leg, n in taken.items():
            assert n <= 1 + unclear[leg], f"{leg} was taken {n} times, {unclear[leg]} outcomes were unclear"
        sent = collections.Counter(self.sql("SELECT message_id, destination FROM outbox_sent"))
        assert sent == collections.Counter(wanted - set(dead)), "the tables tell another story"
        for table in ("outbox", "outbox_retry", "outbox_claim", "outbox_relay"):
            assert self.sql(f"SELECT count(*) FROM {table}") == [(0,)], table
        assert POSTGRES or self.sql("PRAGMA integrity_check") == [("ok",)]
        asked = {e["wait"] for e in log if e["ev"] == "fail" and e["status"] == 429}
        assert asked <= {1000}, f"429s asked for 1 s each; the log says {asked} ms"
        self.run_checker(log)
        return f"{len(wanted)} deliveries, {sum(taken.values()) - len(+taken)} repeats, {len(dead)} dead"

    def run_checker(self, log):
        checker = witness.find_checker(BINARY)
        if checker:
            with contextlib.closing(self.connect()) as db:
                witness.run_checker(checker, self.folder, log, witness.dump(db),
                                    *(["--lanes", "many", "--slack", "100"] if POSTGRES else []))


def in_threads(functions):
    """Runs them side by side; the first failure is raised."""
    failures = []

    def guarded(function):
        try:
            function()
        except BaseException as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=[f]) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


if __name__ == "__main__":
    application(*sys.argv[sys.argv.index("--insert") + 1:])
