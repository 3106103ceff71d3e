#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hikyaku keys rotate under kill -9 at each of its steps (crash points of src/observe/crash.h), two relays that rotate at once, and a backup
that comes back when its key is retired: nothing is lost, and what is wrong is said. Speaks TAP.

Usage: keys_kill.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import json
import shutil
import signal
import sqlite3
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from dead_kill import has_crash_points
from keys import Keys
from rest import CANARY, WHY, write_key
from support import POSTGRES, Skip, run_tests, until
if POSTGRES:
    import postgres

TESTS = []
KILLED = -signal.SIGKILL
# where a relay dies, and the n-th time that it comes there
STEPS = [("job-taken", 1), ("job-before", 1), ("job-begun", 1), ("rotate-inside", 1), ("rotate-inside", 4), ("job-inside", 2), ("job-saved", 1),
         ("job-committed", 2)]
TEXTS = ("SELECT 'retry', message_id, payload FROM outbox_retry UNION ALL SELECT 'letter', message_id, payload FROM dead_letters "
         "UNION ALL SELECT 'cancelled', message_id, payload FROM outbox_cancelled UNION ALL "
         "SELECT 'version', CAST(letter_id AS text), payload FROM dead_letter_versions")


def test(function):
    TESTS.append(function)
    return function


class Rotations(Keys):
    def texts(self):
        """{place: the key that seals it}"""
        return {(where, name): text.split(".")[1] for where, name, text in self.sql(TEXTS)}

    def is_readable(self):
        """Every one of them, under whichever key it is by now."""
        self.all_open(1)
        for i in range(1, 3):
            assert f"{CANARY}-bad-{i}" in self.hikyaku("dead", "show", f"bad-{i}", "--reveal", *WHY)
            assert f"{CANARY}-gone-{i}" in self.hikyaku("messages", "show", f"gone-{i}", "--payload", "--reveal", *WHY)
            assert f"{CANARY}-slow-{i}" in self.hikyaku("messages", "show", f"slow-{i}", "--payload", "--reveal", *WHY)


@test
def killed_at_each_step_it_loses_nothing_and_goes_on():
    if not has_crash_points():
        raise Skip("a build without crash points")
    with Rotations(relay={"lease": "1s"}) as w:
        w.fill().stop()
        places = set(w.texts())
        assert len(places) == 3 * 3 + 1, places
        for i, (point, nth) in enumerate(STEPS):
            old, new = f"k{i + 1}", f"k{i + 2}"
            w.turn(None, new)
            job = w.rotate("--rate", "1000000/s")
            victim = w.daemon(f"dies-{point}-{nth}", env={"HIKYAKU_CRASH_AT": f"{point}:{nth}"})
            code = victim.wait()
            assert code == KILLED, (point, nth, code, victim.log()[-3000:])
            texts = w.texts()
            assert set(texts) == places and set(texts.values()) <= {old, new}, (point, texts)
            shown = json.loads(w.hikyaku("job", "show", job, "--json"))
            moved = w.uses().get(new, 0)
            assert shown["changed"] == moved, (point, nth, shown, moved)  # a batch is there with its progress, or not at all
            w.is_readable()
            code, text = w.try_hikyaku("keys", "retire", old, *WHY)
            assert code != 0 and f"key {old} is needed" in text, (point, text)
            survivor = w.daemon(f"after-{point}-{nth}").ready()
            done = w.ended(job)
            assert done["status"] == "done" and done["result"]["failed"] == 0 and done["result"]["key"] == new, done
            assert set(w.texts().values()) == {new} and w.uses().get(old, 0) == 0, w.uses()
            assert f"key {old} is not needed" in w.hikyaku("keys", "retire", old, *WHY)
            w.config["seal"]["keys"].pop()
            w.write_config()
            survivor.stop()
        w.is_readable()
        assert "holds" in w.hikyaku("audit", "verify") or w.hikyaku("audit", "verify")


@test
def two_relays_that_rotate_at_once_lose_nothing():
    """One of them has not read the newest key yet: it seals with the one before."""
    with Rotations(relay={"lease": "2s"}) as w:
        w.fill().stop()
        places = set(w.texts())
        w.turn(None, "k2")
        second = w.daemon("second").ready()
        first_job = w.rotate("--rate", "10/s")
        until(lambda: json.loads(w.hikyaku("job", "show", first_job, "--json"))["status"] != "queued", "it runs")
        w.turn(None, "k3")
        third = w.daemon("third").says("relay started")  # SQLite: it has no lane, and works on jobs
        second_job = w.rotate("--rate", "10/s")
        for job in (first_job, second_job):
            assert w.ended(job)["status"] == "done"
        assert set(w.texts()) == places and set(w.texts().values()) <= {"k2", "k3"}, w.texts()
        w.is_readable()
        second.stop()
        assert w.ended(w.rotate())["result"]["failed"] == 0
        assert set(w.texts().values()) == {"k3"}, w.texts()
        w.is_readable()
        third.stop()


def backup(w):
    if POSTGRES:
        return postgres.cluster().create(w.db)
    copy = sqlite3.connect(w.path("backup.db"))
    db = w.connect()
    db.backup(copy)
    db.close()
    copy.close()
    return w.path("backup.db")


def restore(w, copy):
    if not POSTGRES:
        for end in ("-wal", "-shm"):
            w.path(w.db.name + end).unlink(missing_ok=True)
        shutil.copy(copy, w.db)
        return
    cluster = postgres.cluster()
    cluster.drop(w.db)
    cluster.connect("postgres").execute(f"ALTER DATABASE {copy} RENAME TO {w.db}").close()


@test
def a_backup_comes_back_after_its_key_was_retired():
    with Rotations() as w:
        w.fill().stop()
        before, copy = w.texts(), backup(w)
        w.turn(None, "k2")
        relay = w.daemon("rotates").ready()
        assert w.ended(w.rotate())["status"] == "done"
        w.hikyaku("keys", "retire", "k1", *WHY)
        relay.stop()
        retired = w.config["seal"]["keys"].pop()
        w.write_config()
        restore(w, copy)
        assert w.texts() == before and set(before.values()) == {"k1"}
        w.receiver.on("slow", lambda r: 200)
        w.receiver.on("bad", lambda r: 200)
        relay = w.daemon("restored").ready()
        for i in range(3):
            w.hikyaku("messages", "retry", f"slow-{i}", *WHY)
        relay.says("sealed messages wait")
        relay.says("no key k1 is configured")
        w.hikyaku("dead", "requeue", "bad-1", *WHY, "--yes")  # acts work, and what they move waits, too
        until(lambda: w.sql("SELECT count(*) FROM outbox_retry WHERE last_error LIKE '%no key k1%'")[0][0] == 4, "four that wait")
        told = w.hikyaku("dead", "show", "bad-2", "--reveal", *WHY)
        assert "(sealed: no key k1 is configured" in told, told
        listed = {row["key"]: row for row in json.loads(w.hikyaku("keys", "list", "--json"))["items"]}
        assert listed["k1"]["kept"] >= 10, listed
        assert "k1" in w.ended(w.rotate())["result"]["error"]
        code, text = w.try_hikyaku("keys", "retire", "k1", *WHY)
        assert code != 0 and "key k1 is needed" in text, text
        assert {name: key for name, key in w.texts().items() if name in before} == before  # nothing of it has changed
        assert [r for r in w.receiver.arrived() if r.status == 200] == []
        w.config["seal"]["keys"].append(retired)
        w.write_config()
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded")
        w.is_readable()
        for name in ("slow-0", "slow-1", "slow-2", "bad-1"):
            w.hikyaku("messages", "retry", name, *WHY)
            assert w.arrives(name) == json.dumps({"card": f"{CANARY}-{name}"})
        assert w.ended(w.rotate())["result"]["failed"] == 0
        relay.stop()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
