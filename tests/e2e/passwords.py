#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passwords of PostgreSQL that change while a relay runs, as short-lived ones do: it reads the passfile again, or runs password_command
again, for each connection. Speaks TAP.

Usage: passwords.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import contextlib
import os
import pathlib
import signal
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


# ---- password_command ----

class Tokens:
    """A program that prints what stands in a file, as the client of a cloud prints a token, and notes that it ran."""

    def __init__(self, world, server):
        self.world, self.server, self.program = world, server, world.path("db-token")
        self.token, self.runs = world.path("token"), world.path("runs")
        self.program.write_text(f'#!/bin/sh\necho "$1" >>{self.runs}\ncat {self.token}\n', encoding="ascii")
        os.chmod(self.program, 0o700)
        world.config["store"] = {"url": f"postgres://{ROLE}@127.0.0.1:{server.cluster.port}/{world.db}",
                                 "password_command": [str(self.program), "for relay"]}
        world.write_config()

    def issue(self, token):
        self.token.write_text(token + "\n", encoding="ascii")

    def count(self):
        return len(self.runs.read_text(encoding="ascii").splitlines()) if self.runs.exists() else 0

    def command(self, *words):
        self.world.config["store"]["password_command"] = list(words)
        self.world.write_config()


@contextlib.contextmanager
def issuing():
    """A role whose password a program prints."""
    with rotating() as (world, server):
        tokens = Tokens(world, server)
        server.set_password("token-zero")
        tokens.issue("token-zero")
        yield world, server, tokens


@contextlib.contextmanager
def relaying():
    """The same, with a relay that has delivered."""
    with issuing() as (world, server, tokens):
        relay = world.daemon().ready()
        relayed(world, "zero", relay.log)
        yield world, server, tokens, relay


def seen_by_others(pid):
    """Command lines and names of a process and its children."""
    found = b""
    for each in [pid, *children(pid)]:
        with contextlib.suppress(OSError):
            found += pathlib.Path(f"/proc/{each}/cmdline").read_bytes() + b"\n"
    return found.decode()


def children(pid):
    return [int(each) for each in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


@test
def a_locked_relay_runs_the_command_for_each_connection():
    with relaying() as (world, server, tokens, relay):
        relay.says("seccomp=on")
        for n in range(3):
            before = tokens.count()
            server.set_password(f"token-{n}")  # the last one ends, while messages come
            tokens.issue(f"token-{n}")
            assert server.cut() > 0
            relayed(world, f"after-{n}", relay.log)
            assert tokens.count() > before
        assert set(tokens.runs.read_text(encoding="ascii").splitlines()) == {"for relay"}  # one word stays one
        assert "token-" not in relay.log() and "token-" not in seen_by_others(relay.pid), relay.log()[-3000:]
        keepers = children(relay.pid)
        relay.stop()
        until(lambda: not any(os.path.exists(f"/proc/{each}") for each in keepers), "the keeper ends with its relay")


@test
def a_command_that_fails_for_a_while_is_waited_for():
    with relaying() as (world, server, tokens, relay):
        tokens.token.unlink()
        server.cut()
        relay.says("password_command gave no password, because its command ended with code 1")
        world.insert(message_id="one")
        tokens.issue("token-zero")
        until(lambda: world.receiver.accepted("shop")["one"] > 0, lambda: relay.log()[-3000:])
        relay.stop()


@test
def a_relay_without_its_keeper_says_so_and_goes_on_with_what_is_open():
    with relaying() as (world, server, tokens, relay):
        keeper = [each for each in children(relay.pid)
                  if pathlib.Path(f"/proc/{each}/comm").read_text(encoding="ascii") == "hikyaku-passwd\n"]
        assert len(keeper) == 1, keeper
        os.kill(keeper[0], signal.SIGKILL)
        relayed(world, "one", relay.log)
        server.cut()
        relay.says("its process has ended: restart the relay")
        relay.kill()


@test
def commands_run_it_too_and_say_what_is_wrong():
    with issuing() as (world, server, tokens):
        world.hikyaku("init")
        world.hikyaku("status")
        assert tokens.count() > 1
        for words, wanted in ((("/bin/sh", "-c", "echo token-zero; exit 3"), "its command ended with code 3"),
                              (("/bin/true",), "its command printed nothing"),
                              (("/bin/sh", "-c", "echo token-zero; echo"), "its command printed more than one line"),
                              (("/nonexistent/token",), "there is no such program"),
                              (("/bin/echo", "token-wrong"), REFUSED)):
            tokens.command(*words)
            code, text = world.try_hikyaku("status")
            assert code != 0 and wanted in text and "token-" not in text, (words, code, text)


@test
def the_environment_s_url_is_not_the_command_s_and_no_url_names_a_keeper():
    with issuing() as (world, server, tokens):
        code, text = world.try_hikyaku("--db", world.config["store"]["url"], "status")
        assert code != 0 and tokens.count() == 0, (code, text)
        code, text = world.try_hikyaku("--db", server.url() + "&hikyaku_password_fd=3", "status")
        assert code != 0 and "hikyaku's own" in text, (code, text)
        world.config["store"] = {"url": f"sqlite:{world.path('other.db')}", "password_command": ["/bin/true"]}
        world.write_config()
        code, text = world.try_hikyaku("config", "check")
        assert code != 0 and "a file has no password" in text, (code, text)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
