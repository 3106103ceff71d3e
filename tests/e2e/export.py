#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports that are larger than what a relay keeps in memory: 100 MB of dead letters over the HTTP API and through `--server`, in bounded
memory on both sides; readers that are slow, that leave, and that are told when the end is missing. Speaks TAP.

Usage: export.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from api import Served
from support import BINARY, PATIENCE, POSTGRES, clean_environment, run_tests, until

LETTERS, SOME, PAYLOAD = 112, 48, 900_000
# what the sanitizer keeps of freed memory is not ours
LEAN = {"ASAN_OPTIONS": "quarantine_size_mb=1:thread_local_quarantine_size_kb=16:malloc_context_size=0"}
MIB = 1 << 20
# Beyond what the process had before. A page of 4 MiB is in memory with its JSON, once as it is read and once as it is written.
RELAY_MAX, CLIENT_MAX = 48 * MIB, 48 * MIB
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def memory(pid, what="VmRSS"):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) * 1024


class Full(Served):
    """A relay with 100 MB of letters: their destination does not exist."""

    def __init__(self, letters=LETTERS):
        super().__init__()
        self.token("boss", "admin")
        self.path("token").write_text(self.tokens["boss"] + "\n", encoding="ascii")
        self.relay = self.daemon(env=LEAN).ready()
        self.relay.says('"admin listening"')
        self.address = re.search(r'msg="admin listening" address=(\S+)', self.relay.log())[1]
        line = json.dumps({"event_type": "X", "destination": "nowhere", "payload": "x" * PAYLOAD}) + "\n"
        for _ in range(letters // 16):
            done = subprocess.run([BINARY, "--config", str(self.config_path), "enqueue", "--ndjson", "-"], input=line.encode() * 16,
                                  capture_output=True, env={**clean_environment(), **LEAN}, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
        until(lambda: self.sql("SELECT count(*) FROM dead_letters")[0][0] == letters, "letters", 4 * PATIENCE)

    def begin(self):
        """A response of which only the head was read, by a client with a small buffer."""
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sock.connect((host, int(port)))
        connection.request("GET", "/api/v1/dead-letters/export", headers={"Authorization": f"Bearer {self.tokens['boss']}"})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.headers["Transfer-Encoding"] == "chunked", (answer.status, answer.headers)
        return connection, answer

    def export(self, *place, stdout):
        return subprocess.Popen([BINARY, *place, "dead", "export"], cwd=self.folder, stdout=stdout, stderr=subprocess.PIPE,
                                env={**clean_environment(), **LEAN, "HOME": str(self.folder)})

    def there(self):
        return "--server", f"http://{self.address}", "--token-file", str(self.path("token"))

    def open_transactions(self):
        if POSTGRES:
            return self.sql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND datname = current_database()")[0][0]
        db = sqlite3.connect(self.db, timeout=PATIENCE, isolation_level=None)
        try:  # a reader that stays keeps the log from being cut
            return db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            db.close()


@test
def a_hundred_megabytes_go_through_little_memory():
    with Full() as world:
        small = world.export("--config", str(world.config_path), stdout=subprocess.PIPE)  # how much a client needs anyway
        small.stdout.read(1000)
        base = memory(small.pid)
        small.kill()
        small.communicate()
        files = {}
        before = memory(world.relay.pid)
        for name, place in (("here", ("--config", str(world.config_path))), ("there", world.there())):
            files[name] = world.path(name)
            with open(files[name], "wb") as out:
                client = world.export(*place, stdout=out)
                said = client.stderr.read()
                _, status, used = os.wait4(client.pid, 0)
                client.returncode = os.waitstatus_to_exitcode(status)
            assert client.returncode == 0, said
            print(f"# {name}: {files[name].stat().st_size / MIB:.0f} MiB, client {used.ru_maxrss / 1024:.0f} MiB at most ({base / MIB:.0f} before)")
            assert used.ru_maxrss * 1024 - base < CLIENT_MAX, used.ru_maxrss
        most = memory(world.relay.pid, "VmHWM")
        print(f"# relay: {before / MIB:.0f} MiB before, {most / MIB:.0f} MiB at most")
        assert files["there"].stat().st_size > 100_000_000
        with open(files["here"], "rb") as here, open(files["there"], "rb") as there:
            for line in here:
                assert line == there.readline()
            assert not there.read()
        assert most - before < RELAY_MAX, (before, most)


@test
def a_slow_reader_holds_no_transaction_and_leaves_room_for_others():
    with Full() as world:
        connection, answer = world.begin()
        lines = answer.read(100_000).count(b"\n")
        until(lambda: world.open_transactions() == 0, "no transaction to be open")
        assert world.api("boss").good("GET", "/status")["relays_running"] == 1  # another thread answers
        problem = world.api("boss").bad(503, "BUSY", "GET", "/dead-letters/export")
        assert "export" in problem["detail"], problem
        assert len(world.api("boss").good("GET", "/dead-letters", query={"limit": 5})["items"]) == 5
        while piece := answer.read(1 << 20):  # and in the end it has all
            lines += piece.count(b"\n")
        connection.close()
        assert lines == LETTERS, lines
        assert world.api("boss").ask("GET", "/dead-letters/export")[0] == 200


@test
def a_reader_that_leaves_ends_its_export():
    with Full(SOME) as world:
        connection, answer = world.begin()
        answer.read(100_000)
        world.api("boss").bad(503, "BUSY", "GET", "/dead-letters/export")
        answer.close()
        connection.close()
        until(lambda: world.api("boss").ask("GET", "/dead-letters/export")[0] == 200, "the place to be free")
        world.relay.stop()


@test
def an_error_in_the_middle_is_seen():
    with Full(SOME) as world:
        connection, answer = world.begin()
        answer.read(100_000)
        world.sql("ALTER TABLE dead_letters RENAME TO dead_letters_moved")
        try:
            while answer.read(1 << 20):
                pass
            raise AssertionError("it seemed to be complete")
        except (http.client.IncompleteRead, ConnectionError):
            pass
        connection.close()
        world.sql("ALTER TABLE dead_letters_moved RENAME TO dead_letters")
        assert world.api("boss").good("GET", "/dead-letters", query={"limit": 1})["items"]


@test
def a_relay_that_stops_is_no_end_of_an_export():
    with Full(SOME) as world:
        curl = subprocess.Popen(["curl", "-sS", "-N", "-H", f"Authorization: Bearer {world.tokens['boss']}",
                                 f"http://{world.address}/api/v1/dead-letters/export"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        curl.stdout.read(1)
        world.relay.signal(signal.SIGTERM)
        rest = curl.communicate(timeout=PATIENCE)
        assert curl.returncode in (18, 56), (curl.returncode, rest[1])
        assert world.relay.wait() == 0
    with Full(SOME) as world:
        client = world.export(*world.there(), stdout=subprocess.PIPE)
        client.stdout.read(1)
        world.relay.signal(signal.SIGTERM)
        out, said = client.communicate(timeout=PATIENCE)
        assert client.returncode not in (0, 2) and b"ended before it was complete" in said, (client.returncode, said)
        assert out.count(b"\n") < SOME and out.endswith(b"\n")  # whole letters
        assert world.relay.wait() == 0


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
