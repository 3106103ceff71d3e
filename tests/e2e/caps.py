#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers that never end: a hundred receivers at once, each of which would fill any memory and any time that it is given.
The relay takes a bounded part of each, ends it in the documented class, and goes on with the others. Speaks TAP.

Usage: caps.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import collections
import socket
import ssl
import subprocess
import sys
import threading
import zlib

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import PATIENCE, QUICK, Skip, World, is_sanitized, run_tests, until

MIB = 1 << 20
TAKEN_MAX = 24 * MIB  # of one answer, what the kernel keeps for both ends included
COPIES = 2  # of each, by each way
GROWTH_MAX = MIB  # of the whole process, once connections and destinations have what they need
TESTS = []


def test(function):
    TESTS.append(function)
    return function


# ---- the receivers ----

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def bomb():
    """The same ten kilobytes again and again: a gzip stream of zeros that goes on."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = squeeze.compress(bytes(MIB)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    again = squeeze.compress(bytes(10 * MIB)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return start, again


BOMB = bomb()

# name: (what comes first, what then comes again and again, seconds between two of them, what it ends in)
# "sent": the whole status came, and it decides, whatever follows; else the cause of the letter.
ANSWERS = {
    "polite": (HEAD + b"Content-Length: 2\r\n\r\nok", None, 0, "sent"),
    "stream-10-gib": (HEAD + b"Content-Length: 10737418240\r\n\r\n", b"x" * 65536, 0, "sent"),
    "stream-without-length": (HEAD + b"\r\n", b"x" * 65536, 0, "sent"),
    "stream-of-failure": (b"HTTP/1.1 422 No\r\n\r\n", b"x" * 65536, 0, "HTTP_422"),
    "gzip-bomb": (HEAD + b"Content-Encoding: gzip\r\n\r\n" + BOMB[0], BOMB[1], 0, "sent"),
    "transfer-gzip-bomb": (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", b"1000\r\n" + bytes(4096) + b"\r\n", 0, "any"),
    "million-headers": (HEAD, b"".join(b"X-%d: y\r\n" % i for i in range(1000)), 0, "PROTOCOL_ERROR"),
    "million-cookies": (HEAD, b"Set-Cookie: a=b; Path=/\r\n" * 1000, 0, "PROTOCOL_ERROR"),
    "endless-header-line": (HEAD + b"X-Long: ", b"a" * 65536, 0, "PROTOCOL_ERROR"),
    "endless-header-name": (HEAD, b"a" * 65536, 0, "PROTOCOL_ERROR"),
    "endless-status-line": (b"HTTP/1.1 200 ", b"O" * 65536, 0, "PROTOCOL_ERROR"),
    "endless-folding": (HEAD + b"X-A: b\r\n", b" c\r\n" * 16384, 0, "PROTOCOL_ERROR"),
    "storm-of-100": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, 0, "PROTOCOL_ERROR"),
    "storm-of-103": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1000, 0, "PROTOCOL_ERROR"),
    "endless-chunks": (CHUNKED, b"1\r\nx\r\n" * 10000, 0, "sent"),
    "endless-chunk-extension": (CHUNKED + b"1;a=", b"b" * 65536, 0, "sent"),
    "chunk-extensions": (CHUNKED, (b"1;" + b"c" * 4000 + b"\r\nx\r\n") * 16, 0, "sent"),
    "endless-chunk-size": (CHUNKED, b"0" * 65536, 0, "sent"),
    "endless-trailers": (CHUNKED + b"0\r\n", b"X-T: y\r\n" * 8192, 0, "sent"),
    "endless-trailer": (CHUNKED + b"0\r\nX-T: ", b"y" * 65536, 0, "sent"),
    "drip-of-status": (b"", b"H", 0.2, "any"),
    "drip-of-headers": (HEAD, b"X-A: b\r\n", 0.2, "TIMEOUT"),
    "drip-of-100": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.2, "TIMEOUT"),
    "drip-of-body": (HEAD + b"Content-Length: 100000\r\n\r\n", b"x", 0.2, "sent"),
    "silence": (b"", b"", 0.2, "TIMEOUT"),
    "null-bytes": (b"", bytes(65536), 0, "PROTOCOL_ERROR"),
}


class Flood:
    """Serves them all, by the request's path; counts what each has got rid of."""

    def __init__(self, context=None):
        self.context, self.closing = context, threading.Event()
        self.taken, self.largest, self.lock = collections.Counter(), collections.Counter(), threading.Lock()
        self.open, self.most = 0, 0
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.closing.is_set():
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            connection.settimeout(PATIENCE)
            while self.one(connection):
                pass
        except OSError:
            pass
        finally:
            connection.close()

    def one(self, connection):
        """A request and its answer; false when the connection is done with."""
        request = b""
        while not request.endswith(b"{}"):
            piece = connection.recv(65536)
            if not piece:
                return False
            request += piece
        name = request.split(b" ")[1].decode().rsplit("/", 1)[-1]
        first, again, pause, _ = ANSWERS[name]
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
        sent = 0
        try:
            connection.sendall(first)
            sent += len(first)
            while again is not None and not self.closing.is_set():
                connection.sendall(again)
                sent += len(again)
                if pause:
                    self.closing.wait(pause)
        finally:
            with self.lock:
                self.open -= 1
                self.taken[name] += sent
                self.largest[name] = max(self.largest[name], sent)
        return True

    def close(self):
        self.closing.set()
        self.socket.close()


def make_tls(folder):
    cert, key = f"{folder}/cert.pem", f"{folder}/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


# ---- the relay's memory ----

def memory(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


def forget_peak(pid):
    try:
        with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except PermissionError:
        raise Skip("only root may look at a process that allows no dumps") from None


class Hostile(World):
    def __init__(self):
        once = {**QUICK, "max_attempts": 1}  # only those that drip are to be ended by time
        super().__init__(destinations=("shop",), policies={"once": {**once, "timeout": "60s"}, "drip": {**once, "timeout": "15s"}},
                         relay={"concurrency": 400})
        cert, context = make_tls(self.folder)
        self.floods = {"own": Flood(), "libcurl": Flood(context)}  # our own HTTP/1.1 is for plain text only
        urls = {"own": f"http://127.0.0.1:{self.floods['own'].port}",
                "libcurl": f"https://localhost:{self.floods['libcurl'].port}"}
        for way, url in urls.items():
            for name in ANSWERS:
                http = {"url": f"{url}/{name}", **({"ca_file": cert} if way == "libcurl" else {})}
                self.config["destinations"][f"{way}-{name}"] = {"http": http, "policy": "drip" if ANSWERS[name][2] else "once",
                                                                "allow": ["127.0.0.0/8", "::1"]}
        self.write_config()

    def __exit__(self, *what):
        for flood in self.floods.values():
            flood.close()
        super().__exit__(*what)

    def all_at_once(self, tag, names, copies):
        db = self.connect()
        db.execute("BEGIN IMMEDIATE")
        for way in self.floods:
            for name in names:
                for i in range(copies):
                    self.insert(db=db, destination=f"{way}-{name}", message_id=f"{tag}-{way}-{name}-{i}")
        db.execute("COMMIT")
        db.close()

    def over(self):
        left = "SELECT count(*) FROM outbox_messages WHERE status NOT IN ('sent', 'dead')"
        until(lambda: self.sql(left) == [(0,)], lambda: f"an end of {self.statuses()}", seconds=120)


@test
def a_hundred_endless_answers_are_bounded_in_memory_and_end_in_one_class_each():
    with Hostile() as w:
        sanitized = is_sanitized()
        # freed memory is kept aside by the sanitizer: little of it, so that growth means something
        w.daemon(env={"ASAN_OPTIONS": "quarantine_size_mb=1:thread_local_quarantine_size_kb=16:malloc_context_size=0",
                      "MALLOC_ARENA_MAX": "2"}).ready()
        daemon = w.daemons[0]
        w.all_at_once("warm", ["polite"], 40)
        w.over()
        hostile = [name for name in ANSWERS if name != "polite"]
        for i in range(1 if sanitized else 3):  # connections, TLS, caches, tables: room for so many, and the holes between them
            w.all_at_once(f"first-{i}", hostile, COPIES)
            w.over()
        before = memory(daemon.pid, "VmRSS")
        forget_peak(daemon.pid)
        w.all_at_once("x", hostile, COPIES)
        w.insert_many(50, prefix="good", destination="shop")
        until(lambda: len(w.receiver.accepted("shop")) == 50, "good messages among the bad")
        w.over()
        growth = memory(daemon.pid, "VmHWM") - before
        at_once = sum(flood.most for flood in w.floods.values())
        taken = {f"{way}-{name}": n for way, flood in w.floods.items() for name, n in flood.largest.items()}
        worst = max(taken, key=taken.get)
        print(f"# {len(hostile) * COPIES * len(w.floods)} hostile answers, {at_once} at once, resident {before / MIB:.1f} MiB, "
              f"at the most {growth / MIB:+.2f} MiB{' under a sanitizer' if sanitized else ''}")
        print(f"# the most that one answer got rid of: {taken[worst] / MIB:.1f} MiB ({worst})")
        assert at_once >= 60, at_once
        assert growth < (32 * MIB if sanitized else GROWTH_MAX), growth
        bad = {name: n for name, n in taken.items() if n > TAKEN_MAX}
        assert not bad, bad
        ends = check_classes(w)
        daemon.stop()
        print("# " + ", ".join(f"{name}: {end}" for name, end in sorted(ends.items())))


def check_classes(w):
    """One class for each answer, whichever way it came."""
    rows = w.sql("SELECT m.destination, m.status, d.cause FROM outbox_messages m LEFT JOIN "
                 "(SELECT message_id, reason_code AS cause FROM dead_letters) d ON d.message_id = m.message_id "
                 "WHERE m.destination <> 'shop'")
    ends = collections.defaultdict(set)
    for destination, status, cause in rows:
        ends[destination.split("-", 1)[1]].add(cause or status)
    wrong = {name: got for name, got in ends.items()
             if len(got) != 1 or ANSWERS[name][3] not in ("any", next(iter(got)))}
    assert not wrong, wrong
    return {name: next(iter(got)) for name, got in ends.items()}


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
