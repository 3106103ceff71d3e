#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A storm over several relays on one PostgreSQL, drawn from a seed: kill -9 at random and at named crash points, SIGSTOP past
the lease, SIGTERM, partitions by network namespaces, connections cut in the middle of an exchange, the server restarted
hard, its disk full. Then everything heals, and hikyaku-check judges what relays, receivers and database wrote. Speaks TAP.

Usage: storm.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); SEED=… replays the same draws;
KILLS=8 PAUSES=2 PARTITIONS=2 RESTARTS=1 FULLS=1 CUTS=4 LEAVES=1: how many of each, in rounds of at most 50 kills; PACE=0.6
seconds between two; TRACE=1 shows what happened when."""
import collections
import contextlib
import heapq
import itertools
import json
import os
import pathlib
import random
import signal
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import nets
import fleet
import postgres
from fleet import LEASE, Raging, SEED, say
from ports import free_port
from proxy import Proxy
from support import Answer, FullDisk, PATIENCE, QUICK, Skip, run_tests

SEATS = 5
PER_ROUND = 50  # kills; a longer event log takes more memory to judge than it is worth
WANTED = {"kill": ("KILLS", 8), "pause": ("PAUSES", 2), "partition": ("PARTITIONS", 2), "restart": ("RESTARTS", 1),
          "fill": ("FULLS", 1), "cut": ("CUTS", 4), "leave": ("LEAVES", 1)}
PACE = float(os.environ.get("PACE", "0.6"))  # seconds between two faults, on average
POINTS = ["acquired", "exchange", "exchanged", "send", "sent", "released", "arrive-begun", "arrive-inside", "bury-begun",
          "bury-inside"]
# One that was in hand of four relays that died is dead; behind it its key would wait for ever.
DESTINATIONS = {"shop": {}, "keyed": {"order": "key", "on_dead": "skip"}, "flaky": {}, "dead": {"policy": "brief"}}
BRIEF = {**QUICK, "max_attempts": 4, "backoff": {"kind": "fixed", "base": "200ms"}}
WRITES = {"dests": {"shop": (4, 0), "keyed": (4, 40), "flaky": (2, 0), "dead": (0.2, 0)}, "rate": 15}


class Storm(Raging):
    """The weather: what is done and what has to be undone later, by time."""

    allow, store_host = [nets.NET], None

    def __init__(self, proxy, net, disk, seed):
        self.store_host, self.make_receiver = net.host, type("Hub", (fleet.Inbox,), {"host": net.host})
        super().__init__(proxy, DESTINATIONS, policies={"brief": BRIEF}, relay={"lease": f"{int(LEASE * 1000)}ms"}, seed=seed)
        self.config["destinations"]["dead"]["http"]["url"] = f"http://{net.host}:{free_port()}/dead"
        self.net, self.disk, self.later, self.order = net, disk, [], itertools.count()
        self.leaving, self.away_until, self.seated = [], 0.0, {}
        luck = random.Random(f"{seed} receiver")
        for d in ("shop", "keyed"):  # so that there is something in hand at any time
            self.receiver.on(d, lambda r: Answer(200, delay=luck.uniform(0, 0.3)))
        self.receiver.on("flaky", lambda r: 503 if luck.random() < 0.2 else Answer(200, delay=luck.uniform(0, 0.1)))

    # -- relays --

    def more(self, armed=None):
        """One more, on a free seat. Some carry the place of their death with them."""
        env = {}
        if armed if armed is not None else self.chance.random() < 0.4:
            env["HIKYAKU_CRASH_AT"] = f"{self.chance.choice(POINTS)}:{self.chance.randint(1, 40)}"
        free = [s for s in self.net.seats if s not in self.seated.values()]
        seat = self.chance.choice(free) if free else None
        relay = self.relay(f"r{next(self.born)}", port=self.proxy.port, env=env, preexec=seat.enter if seat else None)
        relay.armed = bool(env)
        if seat:
            self.seated[relay] = seat
        self.alive.append(relay)
        return relay

    def bury(self, relay):
        self.seated.pop(relay, None)
        self.check_sanitizers()
        self.daemons.remove(relay)
        self.relays.remove(relay)

    def at(self, seconds, act):
        heapq.heappush(self.later, (time.monotonic() + seconds, next(self.order), act))

    # -- what happens --

    def kill(self):
        relay = self.pick()
        relay.kill()
        self.bury(relay)
        self.more()

    def pause(self):
        relay = self.pick()
        relay.signal(signal.SIGSTOP)

        def go_on():
            relay.signal(signal.SIGCONT)
            self.alive.append(relay)

        self.at(self.chance.choice([0.3, LEASE - 0.5, LEASE + 1, LEASE + 2]), go_on)

    def partition(self):
        seats = [self.seated[r] for r in self.alive if r in self.seated and not self.seated[r].cut]
        if not seats:
            return False
        seat = self.chance.choice(seats)
        seat.partition()
        self.at(self.chance.choice([0.5, LEASE, LEASE + 2, LEASE + 4]), seat.heal)
        return True

    def leave(self):
        relay = self.pick()
        relay.signal(signal.SIGTERM)
        relay.told = time.monotonic()
        self.leaving.append(relay)
        self.more()

    def server_busy(self):
        return time.monotonic() < self.away_until

    def restart(self):
        if self.server_busy():
            return False
        postgres.cluster().restart(signal.SIGQUIT)
        self.away_until = time.monotonic() + 0.5
        return True

    def fill(self):
        if self.server_busy() or not self.disk:
            return False
        self.disk.fill()
        seconds = self.chance.uniform(0.5, 2.5)
        self.away_until = time.monotonic() + seconds + 1
        self.at(seconds, self.make_room)
        return True

    def make_room(self):
        self.disk.free()
        server = postgres.cluster()
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if server.process.poll() is None:
                    server.connect("postgres").close()
                else:  # it could not even recover
                    server.start()
                return
            except (postgres.psycopg.Error, AssertionError):
                assert time.monotonic() < end, server.log()
                time.sleep(0.1)

    # -- all of it --

    def tend(self):
        """Undoes what is due, sees who died of itself and who has left."""
        while self.later and self.later[0][0] <= time.monotonic():
            heapq.heappop(self.later)[2]()
        for relay in [r for r in self.alive if r.gone()]:
            assert relay.armed and relay.process.returncode == -signal.SIGKILL, \
                f"{relay.name} ended with {relay.process.returncode}:\n{relay.log()[-3000:]}"
            self.alive.remove(relay)
            self.bury(relay)
            self.acts["kill at a named point"] += 1
            self.more()
        for relay in [r for r in self.leaving if r.gone()]:
            self.leaving.remove(relay)
            code = relay.process.returncode
            killed = relay.armed and code == -signal.SIGKILL
            unborn = code == -signal.SIGTERM and not relay.log()  # told before its program had begun
            # 75: something was in hand that the server, being away, did not take
            assert code in (0, 75) or killed or unborn, f"{relay.name} left with {code}:\n{relay.log()[-3000:]}"
            self.acts["kill at a named point"] += killed
            self.acts["left without the store"] += code == 75
            self.bury(relay)
        for relay in self.leaving:
            assert time.monotonic() - relay.told < 60, f"{relay.name} does not leave:\n{relay.log()[-3000:]}"

    def trace(self, what):
        if "TRACE" in os.environ:
            say(f"{time.monotonic() - self.began:.1f} {what}, {len(self.alive)} relays, {len(self.receiver.requests)} requests")

    def rage(self, plan):  # pylint: disable=arguments-differ
        todo = collections.deque(self.chance.sample(plan, len(plan)))
        skipped = collections.Counter()
        following = time.monotonic()
        while todo:
            self.tend()
            time.sleep(0.02)
            if time.monotonic() < following or len(self.alive) < 2:
                continue
            act = todo.popleft()
            self.trace(act)
            if act == "kill" and self.acts["kill at a named point"] > skipped["kill"]:
                skipped["kill"] += 1  # one that died of itself counts as well
            elif getattr(self, act)() is False:
                todo.append(act)
            else:
                self.acts[act] += 1
            following = time.monotonic() + self.chance.expovariate(1 / PACE)
        while self.later:
            self.tend()
            time.sleep(0.02)

    def settle_down(self):
        """No more faults; two relays that carry no death with them bring it to its end."""
        old, self.alive = self.alive, []
        for relay in old:
            relay.signal(signal.SIGTERM)
            relay.told = time.monotonic()
            self.leaving.append(relay)
        for relay in (self.more(armed=False), self.more(armed=False)):
            relay.ready()
        self.trace("two new ones run")
        while self.leaving:
            self.tend()
            time.sleep(0.02)
        self.trace("the others left")
        self.stop_writing()
        self.come_to_rest(2 * PATIENCE)


def plans():
    """Rounds: lists of acts."""
    wanted = {act: int(os.environ.get(variable, default)) for act, (variable, default) in WANTED.items()}
    rounds = max(1, -(-max(wanted.values()) // PER_ROUND))
    for i in range(rounds):
        yield [act for act, n in wanted.items() for _ in range(n * (i + 1) // rounds - n * i // rounds)]


def small_disk(stack, made):
    """For the server's data; None where that cannot be had."""
    def prepare(folder):
        try:
            made.append(FullDisk(stack, folder, "500m"))
        except Skip as why:
            say(f"no disk-fulls: {why}")
    return prepare


def show(totals):
    print(f"# counts {json.dumps(dict(totals))}", flush=True)


def storms_of_every_kind_lose_nothing_and_break_no_rule():
    say(f"SEED={SEED}")
    totals, made = collections.Counter(), []
    with contextlib.ExitStack() as stack:
        postgres.CLUSTER.append(postgres.Cluster(small_disk(stack, made), min_wal_size="32MB", max_wal_size="64MB",
                                                 max_connections=120))
        stack.callback(postgres.cluster().close)
        for i, plan in enumerate(plans()):
            totals.update(one_round(i, plan, made[0] if made else None))
            show(totals)


def one_round(i, plan, disk):
    seed = f"{SEED} {i}"
    absent = [a for a, there in (("partition", not NET.why), ("fill", disk)) if not there]
    with Proxy(postgres.cluster().port, seed, NET.host) as proxy, Storm(proxy, NET, disk, seed) as w:
        w.write(2, **WRITES)
        for _ in range(SEATS - 1):
            w.more()
        w.flowing()
        w.rage([act for act in plan if act not in absent])
        w.settle_down()
        said = w.judge(dead=["dead"], kills=True)
        say(f"round {i}: {dict(w.acts)}; {said}; {time.monotonic() - w.began:.0f} s")
        return w.totals + w.acts


NET = nets.Nets(SEATS + 2)  # those who leave keep their seat for a while
if NET.why:
    say(f"no partitions: {NET.why}")
code = run_tests([storms_of_every_kind_lose_nothing_and_break_no_rule])
NET.close()
sys.exit(code)
