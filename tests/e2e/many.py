#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many relays on one PostgreSQL, as processes, with whatever may happen to them, to the network and to the server.
Speaks TAP.

Usage: many.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them; SEED=…
MESSAGES=200000 ROWS=100000 with a release build is the full run.

Relays, receivers and applications write one event log; witness.py completes it from what the database itself has seen;
it is judged here, and by hikyaku-check."""
import collections
import contextlib
import json
import os
import random
import signal
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
os.environ["STORE"] = "postgres"
import postgres
from fleet import KEYED, LEASE, Many, PROBE, Raging, SEED, SHOPS, say
from ports import free_port
from proxy import CUTS, Proxy
from support import Answer, FakeClock, PATIENCE, QUICK, Skip, World, hash_of, now_ms, rfc3339, run_tests, until

SHARED_LIMITS = True  # relays share a destination's rate through the database
MESSAGES = int(os.environ.get("MESSAGES", "4000"))
ROWS = int(os.environ.get("ROWS", "20000"))
FULL = MESSAGES >= 100000
UNHURRIED = {"lease": "20s"}  # where nobody dies: a relay that a busy machine lets wait keeps its lane
TESTS = []


def test(function):
    TESTS.append(function)
    return function


# ---- 1: coming and going ----

@test
def three_relays_share_the_work_and_come_and_go_without_a_repeat():
    with Many(SHOPS, relay=UNHURRIED) as w:
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
    with Many(SHOPS, relay=UNHURRIED) as w:
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
    with Many({"shop": {"policy": "steady"}}, relay=UNHURRIED, policies={"steady": steady}) as w:
        clock = FakeClock(w)
        w.receiver.on("shop", lambda r: 503 if int(r.id.split("-")[1]) % 3 == 0 and r.n < 3 else 200)
        clock.set(3600)
        try:
            odd, = w.start("odd", env=clock.env)
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
            if i:
                odd.says("the host's clock jumped", times=i)
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


def longest_way(came, sends):
    """From a relay, which says when it sends, to the receiver: on a busy machine that may take a while."""
    of = collections.defaultdict(list)
    for m, t in sends:
        of[m].append(t)
    return max((r.at - max((t for t in of[r.id] if t <= r.at), default=r.at) for r in came), default=0)


class Chaos(Raging):
    def __init__(self, proxy):
        super().__init__(proxy, CHAOS, policies={"brief": BRIEF}, relay={"concurrency": 128 if FULL else 12})
        self.config["destinations"]["dead"]["http"]["url"] = f"http://127.0.0.1:{free_port()}/dead"
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
        came = w.receiver.arrived(destination="limited")
        most = w.most_in_10_s([r.at for r in came])
        sends = [(e["m"], e["t"] / 1000) for e in w.events.lines() if e["ev"] == "send" and e["dest"] == "limited"]
        slowest = longest_way(came, sends)
        say(f"{len(came)} requests to the limited destination: at most {most} came in 10 s, {w.most_in_10_s([t for _, t in sends])} "
            f"were sent; allowed are {RATE * 10 + BURST}; on its way for {slowest:.1f} s at the most")
        say(w.judge(dead=["dead"]))
        wrong = "SELECT count(*) FROM dead_letters WHERE reason_code <> 'RETRY_EXHAUSTED' OR attempts <> 4"
        assert w.sql(wrong) == [(0,)], "an attempt too few or too many"
        assert not FULL or within >= 0.999, "probes were late"
        # what was granted in 10 s; it may arrive a little later or sooner than its neighbours
        assert not SHARED_LIMITS or most <= RATE * (10 + max(DELAY, slowest)) + BURST, "more than the destination allows"


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


sys.exit(run_tests(TESTS))
