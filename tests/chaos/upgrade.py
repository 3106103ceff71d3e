#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Upgrades: the migration killed between any two statements and begun again, programs of two versions on one database. Speaks
TAP.

Usage: upgrade.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; PART=3 takes every third place only (the first
chosen by SEED=…); OLDER=PATH: the program before the newest schema version (tools/older builds it)"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from support import Answer, BINARY, POSTGRES, Skip, World, clean_environment, now_ms, run_tests, until
if POSTGRES:
    import postgres

TESTS = []
SEED = os.environ.get("SEED", str(time.time_ns()))
PART = int(os.environ.get("PART", "1"))
CHANCE = random.Random(SEED)
NEWEST = max(int(p.name[:4]) for p in pathlib.Path(os.environ["SOURCE_DIR"], "src/store/sqlite/schema").glob("*.sql"))
COUNTS = {}


def test(function):
    TESTS.append(function)
    return function


# ---- a database of an older version ----

def script(world):
    """What makes a database from nothing: the SQL of each version, as `init --print` has it."""
    text = world.hikyaku("init", "--print")
    return re.split(r"(?<=\nCOMMIT;\n)", text)[:-1]


LETTER = ("INSERT INTO dead_letters (message_id, event_type, destination, reason_code, error_message, attempts, "
          "first_failed_at, last_failed_at, created_at, payload) VALUES ('dead-{0}', 'Order', 'shop', 'HTTP_422', 'no {0}', 1, "
          "'2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '{{}}')")
RETRY = ("INSERT INTO outbox_retry (message_id, destination, event_type, due_ms, attempts, charged, failed_transient, created_at, "
         "first_attempt_ms, first_failed_ms, last_attempt_ms, payload) VALUES ('retry-{0}', 'shop', 'Order', 1, 1, 1, 1, "
         "'2026-01-01T00:00:00.000Z', {1}, {1}, {1}, '{{}}')")


def put(db, n=3):
    """Rows in every state that is kept."""
    for i in range(n):
        db.execute(f"INSERT INTO outbox (destination, event_type, payload, message_id) VALUES ('shop', 'Order', '{{}}', 'new-{i}')")
        db.execute(LETTER.format(i))
        db.execute(RETRY.format(i, now_ms()))


IDS = {f"{kind}-{i}" for kind in ("new", "retry", "dead") for i in range(3)}


def known(world):
    return {i for i, in world.sql("SELECT message_id FROM outbox_messages")} | set(world.letters())


def shape(world):
    """Everything that a schema is made of, as text."""
    if not POSTGRES:
        return sorted(map(str, world.sql("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'")))
    return sorted(map(str, world.sql(
        "SELECT table_name, column_name, data_type, column_default, is_nullable FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name NOT LIKE 'bomb%' "
        "UNION ALL SELECT tablename, indexdef, '', '', '' FROM pg_indexes WHERE schemaname = 'public' UNION ALL SELECT proname, prosrc, '', '', '' FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace AND proname NOT LIKE 'bomb%' UNION ALL "
        "SELECT tgname, tgrelid::regclass::text, '', '', '' FROM pg_trigger WHERE NOT tgisinternal"))
    ) + [world.sql("SELECT value FROM outbox_meta WHERE key = 'schema_version'")]


def check_whole(world, ids, expected):
    assert shape(world) == expected, "another schema than an undisturbed init makes"
    assert known(world) == ids, known(world) ^ ids
    unmarked = world.sql("SELECT count(*) FROM dead_letters WHERE fingerprint IS NULL")
    assert unmarked == [(0,)], f"{unmarked} letters belong to no group"
    if not POSTGRES:
        assert world.sql("PRAGMA integrity_check") == [("ok",)]


def places(n):
    """Every PART-th place of n, but the last always."""
    return sorted({*range(1 + CHANCE.randrange(PART), n + 1, PART), n})


def works(world):
    """A relay of today finds everything."""
    daemon = world.daemon().ready()
    until(lambda: len(world.receiver.accepted()) == 6, lambda: f"all to arrive: {world.statuses()}")
    daemon.stop()


# ---- SQLite: killed by its own crash points ----

def sqlite_old(world, version):
    """A file of that version with rows in it; version 0: an application's own without any of ours."""
    path = world.path(f"old{version}.db")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    for part in script(world)[:version]:
        db.executescript(re.sub("^PRAGMA.*\n", "", part))
    if version:
        put(db)
    db.close()
    return path


def sqlite_init(world, point):
    return subprocess.run([BINARY, "--config", str(world.config_path), "init"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=60, env={**clean_environment(), "HIKYAKU_CRASH_AT": point}).returncode


def sqlite_killed_from(version):
    with World(init=False) as w:
        old, ids = sqlite_old(w, version), IDS if version else set()

        def fresh():
            for suffix in ("", "-wal", "-shm"):
                pathlib.Path(f"{w.db}{suffix}").unlink(missing_ok=True)
            shutil.copy(old, w.db)

        fresh()
        w.hikyaku("init")
        expected, killed = shape(w), 0
        k = 1 if PART == 1 else 1 + CHANCE.randrange(min(PART, 8))  # there are at least so many places
        while True:
            fresh()
            code = sqlite_init(w, f"migrate:{k}")
            if code == 0:  # there are not so many
                break
            assert code == -signal.SIGKILL, (k, code)
            killed += 1
            w.hikyaku("init")
            check_whole(w, ids, expected)
            k += PART
        if killed == 0:
            raise Skip("the program was built without crash points")
        print(f"# from version {version}: killed at {killed} places", flush=True)
        COUNTS["migration kill"] = COUNTS.get("migration kill", 0) + killed
        if version:
            works(w)


# ---- PostgreSQL: an event trigger ends the session, or lets it wait to be killed ----

BOMB = """
CREATE SEQUENCE bomb_n;
CREATE TABLE bomb (at bigint, how text);
INSERT INTO bomb VALUES (0, '');
CREATE FUNCTION bomb_go() RETURNS event_trigger LANGUAGE plpgsql SET search_path = public AS $$
DECLARE b public.bomb; BEGIN
    SELECT * INTO b FROM public.bomb;
    IF nextval('public.bomb_n') <> b.at THEN RETURN; END IF;
    IF b.how = 'end' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
    WHILE (SELECT at FROM public.bomb) = b.at LOOP PERFORM pg_sleep(0.02); END LOOP;
END $$;
CREATE EVENT TRIGGER bomb_here ON ddl_command_end EXECUTE FUNCTION bomb_go()"""


def pg_old(version):
    """The name of a database to be copied."""
    with World(init=False) as w:
        parts = script(w)
    name = f"old{version}_{os.getpid()}"
    postgres.cluster().connect("postgres").execute(f"CREATE DATABASE {name}").close()
    db = postgres.cluster().connect(name)
    for part in parts[:version]:
        db.pg.execute(part)
    if version:
        put(db)
    db.execute(BOMB)
    db.close()
    return name


class PgWorld(World):
    def fresh(self, template):
        server = postgres.cluster().connect("postgres")
        server.execute(f"DROP DATABASE {self.db} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {self.db} TEMPLATE {template}")
        server.close()

    def bomb(self, at, how=""):
        self.sql("UPDATE bomb SET at = ?, how = ?", at, how)

    def init(self, at, how):
        """Its exit code; ended by the server, or killed while the server is at it."""
        self.bomb(at, how)
        child = self.child(BINARY, "--config", str(self.config_path), "init", stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())
        if how == "kill":
            until(lambda: self.sql("SELECT last_value >= ? FROM bomb_n", at) == [(True,)], "its place")
            child.kill()
        return child.wait(60)


def pg_killed_from(version):
    template, ids = pg_old(version), IDS if version else set()
    done = 0
    with PgWorld(init=False) as w:
        w.fresh(template)
        w.hikyaku("init")
        expected, n = shape(w), w.sql("SELECT last_value FROM bomb_n")[0][0]
        for k in places(n):
            w.fresh(template)
            how = CHANCE.choice(["end", "kill"])
            code = w.init(k, how)
            assert code != 0, (k, how)
            w.bomb(0)
            w.hikyaku("init")  # waits for whoever is still at it
            check_whole(w, ids, expected)
            done += 1
        if version:
            works(w)
    print(f"# from version {version}: {done} of {n} places", flush=True)
    COUNTS["migration kill"] = COUNTS.get("migration kill", 0) + done


@test
def a_migration_killed_between_any_two_statements_is_ended_by_the_next_init():
    print(f"# SEED={SEED}")
    for version in (0, 1, NEWEST - 1):
        (pg_killed_from if POSTGRES else sqlite_killed_from)(version)


# ---- two versions at once ----

@test
def a_program_of_today_works_with_the_next_schema_if_that_says_so():
    with World() as w:
        first = w.daemon("first").ready()
        w.insert_many(20, prefix="before")
        w.settled(sent=20)
        w.sql("ALTER TABLE outbox_retry ADD COLUMN a_new_one text")
        w.sql("CREATE TABLE outbox_something_new (id integer)")
        w.sql("UPDATE outbox_meta SET value = ? WHERE key = 'schema_version'", str(NEWEST + 1))
        w.receiver.on("shop", lambda r: 503 if r.n < 2 else 200)
        w.insert_many(20, prefix="during")
        w.settled(sent=40)
        first.stop()
        second = w.daemon("second").ready()
        w.insert_many(20, prefix="after")
        w.settled(sent=60)
        assert "up to date" in w.hikyaku("init")
        assert w.sql("SELECT value FROM outbox_meta WHERE key = 'schema_version'") == [(str(NEWEST + 1),)], "it was set back"
        second.stop()
        w.sql("UPDATE outbox_meta SET value = ? WHERE key = 'compatible_from'", str(NEWEST + 1))
        third = w.daemon("third")
        assert third.wait() == 78 and "install a newer hikyaku" in third.log(), third.log()
        assert set(w.receiver.accepted().values()) == {1}


def older():
    program = os.environ.get("OLDER")
    if not program:
        raise Skip("OLDER does not name a program of the version before (tools/older builds it, `make soak` uses it)")
    return program


def run_older(program, world, *args):
    done = subprocess.run([program, "--config", str(world.config_path), *args], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=60, env=clean_environment())
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout


@test
def the_version_before_goes_on_while_its_database_is_migrated_and_afterwards():
    program = older()
    with World(init=False) as w:
        run_older(program, w, "init")
        assert w.sql("SELECT value FROM outbox_meta WHERE key = 'schema_version'") == [(str(NEWEST - 1),)]
        w.receiver.on("shop", lambda r: 503 if r.n < 2 else 200)
        old = w.daemon("old", program=program).ready()
        total = 0

        def more(prefix):
            nonlocal total
            w.insert_many(30, prefix=prefix)
            total += 30
            w.settled(sent=total)

        more("a")
        w.insert_many(200, prefix="under-way")
        total += 200
        assert f"from version {NEWEST - 1} to {NEWEST}" in w.hikyaku("init")
        w.settled(sent=total)
        more("b")
        assert not old.gone(), old.log()
        if POSTGRES:  # together
            new = w.daemon("new").ready()
            until(lambda: w.sql("SELECT count(DISTINCT lane) FROM outbox_shard") == [(2,)], "both to have a share")
            more("c")
            old.stop()
        else:
            old.stop()
            new = w.daemon("new").ready()
        more("d")
        new.stop()
        again = w.daemon("again", program=program).ready()  # and back
        more("e")
        again.stop()
        assert set(w.receiver.accepted().values()) == {1}
        assert w.sql("SELECT count(*) FROM dead_letters") == [(0,)]


@test
def letters_of_the_version_before_are_grouped_by_what_the_receiver_said():
    if NEWEST != 5:
        raise Skip("the version before has the words already")
    program = older()
    with World(init=False) as w:
        run_older(program, w, "init")
        w.receiver.on("shop", lambda r: Answer(422, body=b"no 'currency'" if r.id.startswith("c") else b"no 'price'"))
        old = w.daemon("old", program=program).ready()
        w.insert_many(3, prefix="c-early")
        w.insert_many(2, prefix="p-early")
        w.settled(dead=5)
        before = w.sql("SELECT DISTINCT fingerprint, error_message FROM dead_letters")
        assert len(before) == 1 and before[0][1] == "the answer was HTTP 422", before
        w.hikyaku("init")
        w.insert_many(2, prefix="c-late")  # the older relay goes on, and knows nothing of the new columns
        w.settled(dead=7)
        assert w.sql("SELECT count(*) FROM dead_letters WHERE fingerprint_made IS NULL") == [(7,)]
        if not POSTGRES:
            old.stop()
        new = w.daemon("new").ready()
        until(lambda: w.sql("SELECT count(*) FROM dead_letters WHERE fingerprint_made IS NULL") == [(0,)], "all to be grouped")
        groups = json.loads(w.hikyaku("dead", "groups", "--json"))["items"]
        assert [(g["letters"], g["example_error"]) for g in groups] == [(5, "HTTP 422: no 'currency'"), (2, "HTTP 422: no 'price'")], groups
        found = json.loads(w.hikyaku("dead", "list", "--group", before[0][0], "--json"))["items"]
        assert len(found) == 7, "the group of before means the same letters"
        new.stop()
        if POSTGRES:
            old.stop()


exit_code = run_tests(TESTS)
print(f"# counts {json.dumps(COUNTS)}")
sys.exit(exit_code)
