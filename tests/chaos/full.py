#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SQLite on a small file system that fills up and is freed again, under a relay and an application that go on, are killed or
told to leave meanwhile; and kills at random times beside it. Speaks TAP.

Usage: full.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); SEED=…; FULLS=2 KILLS=0 WORLDS=2"""
import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
os.environ.pop("STORE", None)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from killed import KilledWorld, SEED, in_threads
from support import FullDisk, run_tests, until

FULLS = int(os.environ.get("FULLS", "2"))
KILLS = int(os.environ.get("KILLS", "0"))
WORLDS = int(os.environ.get("WORLDS", "2"))


class SmallWorld(KilledWorld):
    def __init__(self, name, stack):
        self.stack, self.disk = stack, None
        super().__init__(name)
        self.acts = collections.Counter()

    def place_db(self):
        small = self.path("small")
        small.mkdir()
        self.disk = FullDisk(self.stack, small, "16m")
        return small / "outbox.db"

    def flowing(self, more=10):
        n = len(self.receiver.requests)
        until(lambda: len(self.receiver.requests) >= n + more, "messages to flow")

    def fill(self, daemon):
        """Returns the relay that goes on."""
        self.flowing()
        with contextlib.closing(self.connect()) as db:
            until(lambda: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "an empty WAL")
            self.disk.fill()
        self.acts["fill"] += 1
        time.sleep(self.chance.uniform(0.1, 1.5))
        what = self.chance.choice(["wait", "kill", "leave"] if self.most_crashes_soon() < 3 else ["wait"])
        if what == "kill":
            daemon.kill()
        elif what == "leave":
            daemon.signal(signal.SIGTERM)
            time.sleep(self.chance.uniform(0, 3))
        self.disk.free()
        if what == "wait":
            return daemon
        code = daemon.wait()
        # 75: something was in hand that could not be written down
        assert code in ((-signal.SIGKILL,) if what == "kill" else (0, 75)), (what, code, daemon.log()[-3000:])
        self.acts[what] += 1
        self.acts["left without the store"] += code == 75
        self.mend(daemon)
        self.forget(daemon)
        return self.daemon()

    def most_crashes_soon(self):
        with contextlib.closing(self.connect()) as db:
            return db.execute("SELECT coalesce(max(crashes + CASE WHEN claim IS NULL THEN 0 ELSE 1 END), 0) "
                              "FROM outbox_retry").fetchone()[0]

    def stop(self, daemon):
        daemon.ready().stop()
        self.journal.read()
        self.forget(daemon)


def a_disk_that_fills_up_under_relays_that_die_and_leave_loses_nothing():
    totals = collections.Counter()
    print(f"# SEED={SEED}", flush=True)

    def one(k):
        with contextlib.ExitStack() as stack:
            w = stack.enter_context(SmallWorld(f"f{k}", stack))
            w.be_flaky()
            app = w.start_application()
            kills, fulls = (KILLS + WORLDS - 1 - k) // WORLDS, (FULLS + WORLDS - 1 - k) // WORLDS
            plan = ["kill"] * kills + ["fill"] * fulls
            w.chance.shuffle(plan)
            daemon = None
            for act in plan:
                if act == "fill":
                    daemon = w.fill(daemon or w.daemon())
                    continue
                if daemon:
                    w.stop(daemon)
                    daemon = None
                w.live_and_die()
                w.acts["kill"] += 1
            if daemon:
                w.stop(daemon)
            w.stop_application(app)
            w.come_to_rest()
            if "KEEP" in os.environ:
                shutil.copy(w.events.path, os.environ["KEEP"])
            print(f"# {w.name}: {dict(w.acts)}; {w.judge()}", flush=True)
            totals.update(w.acts)
            totals["messages"] += w.sql("SELECT count(*) FROM outbox_sent")[0][0]

    in_threads([lambda k=k: one(k) for k in range(WORLDS)])
    print(f"# counts {json.dumps(dict(totals))}", flush=True)


sys.exit(run_tests([a_disk_that_fills_up_under_relays_that_die_and_leave_loses_nothing]))
