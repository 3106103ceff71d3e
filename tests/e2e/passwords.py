#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passwords of PostgreSQL that change while a relay runs, as short-lived ones do: it reads the passfile again for each connection. Speaks TAP.

Usage: passwords.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import contextlib
import os
import sys
import urllib.parse

sys.dont_write_bytecode = True  # the source folder stays as it is
os.environ["STORE"] = "postgres"
import postgres
from support import World, run_tests, until

TESTS = []
ROLE = "short_lived"
REFUSED = "password authentication failed"


def test(function):
    TESTS.append(function)
    return function


class Server:
    """The tests' server, which trusts everybody but this role."""

    def __init__(self, world):
        self.world, self.cluster = world, postgres.cluster()
        rules = self.cluster.data / "pg_hba.conf"
        text = rules.read_text(encoding="ascii")
        if ROLE not in text:
            rules.write_text(f"host all {ROLE} 127.0.0.1/32 scram-sha-256\n{text}", encoding="ascii")
        self.ask("SELECT pg_reload_conf()")
        self.ask(f"CREATE ROLE {ROLE} LOGIN")
        self.ask(f"ALTER DATABASE {world.db} OWNER TO {ROLE}")  # so it may create tables, and the relay's role is their owner
        self.passfile = world.path("passfile")

    def ask(self, text):
        db = self.cluster.connect("postgres")
        try:
            return db.execute(text).fetchall()
        finally:
            db.close()

    def set_password(self, password):
        """Connections that are open stay open, as everywhere."""
        self.ask(f"ALTER ROLE {ROLE} PASSWORD '{password}'")

    def write_password(self, password):
        """As whoever rotates it should: written aside and renamed."""
        aside = self.passfile.with_suffix(".new")
        aside.write_text(f"127.0.0.1:{self.cluster.port}:*:{ROLE}:{password}\n", encoding="ascii")
        os.chmod(aside, 0o600)
        aside.rename(self.passfile)

    def cut(self):
        """Ends the role's connections; how many there were."""
        return self.ask(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{ROLE}'")[0][0]

    def url(self):
        where = urllib.parse.quote(str(self.passfile))
        return f"postgres://{ROLE}@127.0.0.1:{self.cluster.port}/{self.world.db}?passfile={where}"


@contextlib.contextmanager
def rotating():
    with World(init=False) as world:
        server = Server(world)
        try:
            server.set_password("zero")
            server.write_password("zero")
            world.config["store"] = server.url()
            world.write_config()
            world.hikyaku("init")
            yield world, server
        finally:
            for daemon in world.daemons:
                daemon.kill()
            server.ask(f"ALTER DATABASE {world.db} OWNER TO hikyaku")
            owned = world.connect()
            owned.execute(f"REASSIGN OWNED BY {ROLE} TO hikyaku")
            owned.execute(f"DROP OWNED BY {ROLE}")
            owned.close()
            server.ask(f"DROP ROLE {ROLE}")


def relayed(world, name, log):
    world.insert(message_id=name)
    until(lambda: world.receiver.accepted("shop")[name] > 0, lambda: log()[-3000:])


@test
def a_relay_follows_passwords_that_change_again_and_again():
    with rotating() as (world, server):
        relay = world.daemon().ready()
        relayed(world, "zero", relay.log)
        for n in range(3):
            server.write_password(f"secret-{n}")
            server.set_password(f"secret-{n}")
            assert server.cut() > 0
            relayed(world, f"after-{n}", relay.log)
        assert "secret-" not in relay.log(), relay.log()[-3000:]
        relay.stop()


@test
def a_file_that_is_late_is_waited_for():
    """The password is changed, connections end, and only then the new one is written."""
    with rotating() as (world, server):
        relay = world.daemon().ready()
        relayed(world, "zero", relay.log)
        server.set_password("one")
        server.cut()
        relay.says(REFUSED)
        world.insert(message_id="one")
        server.write_password("one")
        until(lambda: world.receiver.accepted("shop")["one"] > 0, lambda: relay.log()[-3000:])
        relay.stop()


@test
def commands_read_it_each_time():
    with rotating() as (world, server):
        world.hikyaku("status")
        server.set_password("one")
        code, text = world.try_hikyaku("status")
        assert code != 0 and REFUSED in text and "zero" not in text, (code, text)
        server.write_password("one")
        world.hikyaku("status")


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
