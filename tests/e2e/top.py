#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`hikyaku top` in a pseudo-terminal, read through a terminal emulator (Debian: python3-pyte), and --once. Speaks TAP.

Usage: top.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres: on PostgreSQL"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import BINARY, POSTGRES, Skip, World, clean_environment, run_tests, sqlite_only, until  # noqa: E402

SYSTEM_PYTHON = "/usr/bin/python3"  # where Debian's python3-pyte lies
try:
    import pyte
except ImportError:
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and os.path.exists(SYSTEM_PYTHON):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    pyte = None

TESTS = []
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ONCE = {"preset": "standard", "max_attempts": 1, "breaker": "off"}
ESC = "\x1b"


def test(function):
    TESTS.append(function)
    return function


class Term:
    """The program in a terminal of its own."""

    def __init__(self, w, *args, rows=24, columns=80, term="xterm-256color", locale="C.UTF-8", **env):
        if pyte is None:
            raise Skip("pyte is not installed (Debian: python3-pyte)")
        self.screen = pyte.Screen(columns, rows)
        self.stream, self.raw, self.rest = pyte.ByteStream(self.screen), b"", b""
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(w.folder)
            os.execve(BINARY, [BINARY, "--config", str(w.config_path), "top", "--interval", "200ms", *args],
                      {"PATH": os.environ["PATH"], "TERM": term, "LC_ALL": locale, "HIKYAKU_ACTOR": "ann", **env})
        self.pid, self.code = pid, None
        self.size(rows, columns)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.size(rows, columns)
        os.kill(self.pid, signal.SIGWINCH)

    def read(self, seconds=0.1):
        """What has come until then; false at the end."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.raw += data
        self.feed(data)
        return bool(data)

    def feed(self, data):
        """In words that pyte knows: no reports of the window, repeated characters one by one, scrolling by lines (the cursor
        stands at the region's edge then)."""
        data = self.rest + data
        cut = re.search(rb".?\x1b[^a-zA-Z]*$", data)  # the rest of it comes later
        data, self.rest = (data[:cut.start()], data[cut.start():]) if cut else (data, b"")
        data = re.sub(rb"\x1b\[[<>=?]?[0-9;]*[tu]", b"", data)
        data = re.sub(rb"\x1b\[(\d*)S", lambda m: b"\n" * int(m[1] or 1), data)
        data = re.sub(rb"\x1b\[(\d*)T", lambda m: b"\x1bM" * int(m[1] or 1), data)
        self.stream.feed(re.sub(rb"([\x20-\x7e])\x1b\[(\d+)b", lambda m: m[1] * (int(m[2]) + 1), data))

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, *texts, absent=()):
        def seen():
            self.read()
            text = self.text()
            return all(t in text for t in texts) and not any(t in text for t in absent)

        until(seen, lambda: f"{texts} without {absent} on:\n{self.text()}")
        return self

    def type(self, keys):
        os.write(self.fd, keys.encode())
        return self

    def ended(self):
        while self.code is None:
            while self.read(0.05):
                done, status = os.waitpid(self.pid, os.WNOHANG)
                if done:
                    self.code = os.waitstatus_to_exitcode(status)
                    break
            else:
                self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        assert b"Sanitizer" not in self.raw, self.raw[-3000:]


def run(w, *args, **env):
    return subprocess.run([BINARY, "--config", str(w.config_path), "top", *args], cwd=w.folder, text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60, check=False, env={**clean_environment(), "LC_ALL": "C.UTF-8", **env})


def once(w, *args, **env):
    done = run(w, "--once", *args, **env)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
    return done.stdout


def width(text):
    return sum(2 if ord(c) > 0x2E7F else 1 for c in text)


@test
def one_screen_for_scripts_fits_80_by_24():
    with World(("shop", "billing"), policies={"once": ONCE}) as w:
        w.receiver.on("billing", 422)
        w.config["destinations"]["billing"]["policy"] = "once"
        w.write_config()
        w.daemon().ready()
        w.insert_many(20)
        w.insert(destination="billing", message_id="bad")
        w.settled(sent=20, dead=1)
        until(lambda: re.search(r"shop +0 +0 +0 +[\d.]+ +[\d.]+ .*100%", once(w)), lambda: once(w))
        text = once(w)
        lines = text.splitlines()
        assert len(lines) == 24 and all(width(line) <= 80 for line in lines), text
        assert "dead letter 1 HTTP_422 bad" in text and "RECENT FAILURES" in text, text
        assert re.search(r"billing +0 +0 +1 ", text) and "relay " in lines[0], text
        wide = once(w, COLUMNS="200", LINES="50")
        assert len(wide.splitlines()) == 50, wide
        assert once(w, LC_ALL="C").isascii()
        for columns, rows in ((40, 10), (41, 11), (60, 12), (240, 200)):
            assert all(width(line) <= columns for line in once(w, COLUMNS=str(columns), LINES=str(rows)).splitlines())


@test
def it_shows_lives_and_leaves():
    with World(("shop", "billing")) as w:
        w.insert_many(7)
        with Term(w) as t:
            t.shows("shop", "billing", "PENDING", "due 7", "NO RELAY IS RUNNING", "q quit")
            w.daemon().ready()
            t.shows("due 0", "relay ", absent=["NO RELAY"])
            t.shows("100%")  # the relay has told of it
            t.type("q")
            assert t.ended() == 0
            assert t.raw.rstrip().endswith(b"\x1b[?1049l\x1b[23;0;0t\r\x1b[?1l\x1b>") or b"\x1b[?1049l" in t.raw[-80:], t.raw[-80:]


@test
def a_destination_is_paused_with_a_reason_and_resumed():
    with World(("alpha", "beta")) as w:
        w.insert(destination="beta", message_id="m")
        with Term(w) as t:
            t.shows("beta", "alpha")
            t.type("p").shows("pause beta: reason")
            t.type(ESC).shows("nothing was changed", absent=["reason ("])
            t.type("p").shows("pause beta: reason").type("  \r").shows("it takes a reason")
            assert w.sql("SELECT count(*) FROM outbox_audit")[0][0] == 0
            t.type("p").shows("pause beta: reason").type("工事x\x7f中").shows("工事中").type("\r")
            t.shows("beta: paused", "paused", "by ann: 工事中")
            assert w.sql("SELECT act, destination, actor, reason FROM outbox_audit") == [("pause", "beta", "ann", "工事中")]
            t.type("j").type("p").shows("pause alpha: reason").type(ESC).shows("nothing was changed")
            t.type("k").type("r").shows("resume beta").type("done\r").shows("beta: resumed")
            assert w.sql("SELECT act FROM outbox_audit ORDER BY id") == [("pause",), ("resume",)]
            t.type("q")
            assert t.ended() == 0


@test
def lists_are_sorted_and_filtered():
    def names(t):
        return re.findall(r"^(apple|banana|cherry) ", t.text(), re.M)

    with World(("apple", "banana", "cherry")) as w:
        w.insert(destination="cherry")
        w.insert(destination="cherry")
        w.insert(destination="banana")
        with Term(w) as t:
            t.shows("BY backlog", "apple")
            assert names(t) == ["cherry", "banana", "apple"], t.text()
            for order in ("dead", "rate", "latency", "name"):
                t.type("s").shows("BY " + order)
            assert names(t) == ["apple", "banana", "cherry"], t.text()
            t.type("/").shows("only destinations with:").type("AN\r").shows("/AN", "banana", absent=["apple", "cherry"])
            t.type("/").type("\x7f\x7fzzz\r").shows("no destination has that")
            t.type("/").type("\x7f\x7f\x7f\r").shows("apple", "banana", "cherry")
            t.shows("? help", "o id")  # nothing of the keys is cut off
            t.type("?").shows("move the mark", "a wait that it asked for.")
            assert "…" not in t.text(), t.text()
            t.type("q").shows("PENDING")
            t.type("q")
            assert t.ended() == 0


@test
def in_80_columns_states_are_whole_and_long_texts_go_on_in_the_next_line():
    with World(("shop", "billing")) as w:
        w.sql("INSERT INTO outbox_destination (name, paused, since_ms, open_until_ms) VALUES ('shop', false, 1, ?)",
              int(time.time() * 1000) + 85000)
        name = "注文" * 60
        w.insert(destination="billing", message_id="long", event_type=name)
        with Term(w) as t:
            until(lambda: t.read() and re.search(r"open (1m\d\ds|\d\d(\.\d)?s)\n", t.text() + "\n"), lambda: t.text())
            t.type("o").shows("message id:").type("long\r").shows("event type", "q back")
            assert "".join(t.text().split()).replace("\n", "").count("注文") == 60, t.text()
            t.type("q").shows("PENDING").type("q")
            assert t.ended() == 0


@test
def letters_and_messages_are_opened_masked():
    with World(policies={"once": ONCE}, masks=[{"event_type": "*", "paths": ["card"]}]) as w:
        w.config["destinations"]["shop"]["policy"] = "once"
        w.write_config()
        w.receiver.on("shop", 422)
        w.insert(message_id="m-1", payload=json.dumps({"card": "4111111111111111", "qty": 3}))
        w.daemon().ready()
        w.settled(dead=1)
        with Term(w, columns=120, rows=40) as t:
            t.shows("dead letter 1 HTTP_422 m-1")
            t.type("\r").shows("HTTP_422", "***", "q back")
            t.type("q").shows("PENDING")
            t.type("\t\r").shows("***", "q back").type(ESC).shows("PENDING")
            t.type("o").shows("message id:").type("m-1\r").shows("event type", "q back").type("q").shows("PENDING")
            t.type("o").type("nobody\r").shows("no message")
            t.type("q")
            assert t.ended() == 0
            assert b"4111111111111111" not in t.raw


@test
def it_follows_the_size_of_its_terminal():
    with World([f"d{i:02d}" for i in range(30)]) as w:
        with Term(w) as t:
            t.shows("d00", "q quit")
            t.resize(40, 120)
            t.shows("d29", "RECENT FAILURES", "q quit", "P95  STATE")
            t.resize(10, 40)
            t.shows("hikyaku top", "q quit")
            t.resize(3, 20)
            time.sleep(0.5)
            t.resize(24, 80)
            t.shows("d00", "STATE", "RECENT FAILURES")
            t.type("j" * 25).shows("d25")
            t.type("q")
            assert t.ended() == 0


@test
def every_terminal_will_do():
    with World() as w:
        w.insert(destination="注文")
        w.hikyaku("destinations", "pause", "shop", "--reason", "r")
        for term in ("xterm", "xterm-256color", "vt100", "linux", "screen", "dumb"):
            with Term(w, term=term) as t:
                if term == "dumb":  # no cursor to move: it says so, or draws as it can
                    until(lambda: not t.read() or t.raw, "something")
                    continue
                t.shows("shop", "paused", "注文")
                t.type("q")
                assert t.ended() == 0, term
        with Term(w, NO_COLOR="1") as t:
            t.shows("shop", "paused")
            assert not re.search(rb"\x1b\[[0-9;]*3[13][;m]", t.raw), t.raw
        with Term(w, locale="C") as t:
            t.shows("shop", "????", absent=["注文"])
            t.type("q")
            assert t.ended() == 0


@test
def without_a_terminal_it_says_what_to_do():
    with World() as w:
        done = run(w)
        assert done.returncode == 2 and "--once" in done.stderr and done.stdout == "", done
        for wrong in ("soon", "10ms", "2d"):
            done = run(w, "--once", "--interval", wrong)
            assert done.returncode == 2 and "--interval" in done.stderr, done
        with Term(w, term="no-such-terminal") as t:
            assert t.ended() == 2 and b"not known" in t.raw, t.raw


@test
def what_rows_hold_moves_no_cursor():
    evil = "\x1b]0;owned\x07\x1b[2J\u202eevil"
    with World(policies={"once": ONCE}) as w:
        w.insert(destination=evil[:40], event_type=evil, message_id=evil)
        w.hikyaku("destinations", "pause", "shop", "--reason", evil, "--actor", evil)
        daemon = w.daemon().ready()
        w.settled(dead=1)
        daemon.stop()
        assert not CONTROL.search(once(w)), once(w)
        with Term(w, columns=200, rows=40) as t:
            t.shows("evil", "dead letter 1")
            t.type("\t\r").shows("q back", "evil")
            t.type("q").shows("PENDING")
            t.type("q")
            assert t.ended() == 0
            assert b"\x1b]0;" not in t.raw and b"\x1b[2J\xe2\x80\xae" not in t.raw and b"\x07" not in t.raw


@test
@sqlite_only
def a_store_that_is_out_of_reach_is_tried_again():
    with World(init=False) as w:
        assert run(w, "--once").returncode == 78
        with Term(w, columns=200) as t:
            t.shows("the store does not answer", "hikyaku init")
            w.hikyaku("init")
            w.insert(message_id="m")
            t.shows("due 1", "shop", absent=["does not answer"])
            aside = w.path("aside.db")
            os.rename(w.db, aside)
            os.rename(aside, w.db)
            t.type("q")
            assert t.ended() == 0


@test
def a_server_that_goes_away_is_tried_again():
    if not POSTGRES:
        raise Skip("SQLite has no server")
    with World() as w:
        w.insert(message_id="m")
        with Term(w) as t:
            t.shows("due 1")
            w.sql("ALTER TABLE outbox_destination RENAME TO away")
            t.shows("the store does not answer", "due 1")  # and what was seen stays
            w.sql("ALTER TABLE away RENAME TO outbox_destination")
            t.shows("due 1", absent=["does not answer"])
            w.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")
            w.insert(message_id="n")
            t.shows("due 2", absent=["does not answer"])
            t.type("q")
            assert t.ended() == 0


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
