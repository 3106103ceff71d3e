#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the HTTP API costs the relay, and what it answers: SQLite, in one run.

usage: bench/api.py HIKYAKU [--rows N] [--connections N] [--idle N] [--seconds S]

- A backlog is drained to nginx: with nobody asking, with clients that ask for lists all the time, with slow clients that
  hold connections open, beside very many connections that send nothing, and beside as many that are opened again whenever the relay
  cuts one. (The relay holds at most 256 connections, and cuts idle ones for others.)
- Clients and attackers take CPU of the same machine. So each crowd comes twice: to another relay, which has nothing to deliver, and to
  the relay that drains. Read the ratio of the second to the first: what the crowd costs deliveries beyond its share of the CPU.
- Meanwhile /livez is asked ten times a second: the worst answer is told.
- Calls a second, and their median and p99, for a few paths.
- Beside a flood of TLS handshakes at the admin door (openssl s_time), /livez at the door for probes: the worst answer, and handshakes a second.
Needs nginx and openssl. Everything runs on loopback, in a temporary folder, and is stopped at the end."""
import argparse, contextlib, errno, http.client, os, resource, re, select, socket, statistics, subprocess, sys, tempfile, threading, time

sys.path.append(os.path.dirname(os.path.realpath(__file__)))
from relay import Nginx, Relay, wait_port

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/e2e"))
from ports import free_port

PATHS = ["/api/v1/version", "/api/v1/status", "/api/v1/messages?limit=50", "/api/v1/dead-letters?limit=50"]


class Background:
    """Runs a function again and again in threads, until the block is left."""

    def __init__(self, function, threads):
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(function,)) for _ in range(threads)]

    def run(self, function):
        while not self.stop.is_set():
            try:
                function(self.stop)
            except OSError:
                time.sleep(0.05)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


class Probe:
    def __init__(self, port):
        self.port, self.worst_ms = port, 0.0

    def __call__(self, stop):
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/livez")
        connection.getresponse().read()
        connection.close()
        self.worst_ms = max(self.worst_ms, (time.monotonic() - began) * 1000)
        stop.wait(0.1)


def drain(relay, rows):
    """Messages a second. Filling is part of it, as the relay begins at once; it is the same each time."""
    began = time.monotonic()
    relay.fill(rows, "shop")
    relay.drained()
    return rows / (time.monotonic() - began)


def ask_lists(port):
    def ask(stop):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not stop.is_set():
            connection.request("GET", "/api/v1/messages?limit=50")
            connection.getresponse().read()
    return ask


def hold(port, n):
    """n connections that have sent half a request; those that the server cuts are opened again."""
    def once(stop):
        held = []
        for _ in range(n):
            if stop.is_set():
                break
            s = socket.create_connection(("127.0.0.1", port), timeout=30)
            s.sendall(b"POST /api/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            held.append(s)
        stop.wait(1)
        for s in held:
            s.close()
    return once


class Idle:
    """n connections that send nothing. With `again`, one that the server cuts is opened again at once: a storm of connections that
    does not end."""

    def __init__(self, port, n, again):
        self.port, self.n, self.again = port, n, again
        self.open, self.opened, self.cut, self.stayed = {}, 0, 0, 0
        self.all_opened = threading.Event()

    def start_one(self, poll):
        s = socket.socket()
        s.setblocking(False)
        if s.connect_ex(("127.0.0.1", self.port)) not in (0, errno.EINPROGRESS):
            s.close()
            return
        self.open[s.fileno()] = s
        self.opened += 1
        poll.register(s.fileno(), select.EPOLLIN | select.EPOLLRDHUP)

    def __call__(self, stop):
        poll = select.epoll()
        while not stop.is_set():
            wanted = self.n - len(self.open) if self.again else self.n - self.opened
            for _ in range(min(500, wanted)):
                self.start_one(poll)
            for fd, _ in poll.poll(0.05):
                poll.unregister(fd)
                self.open.pop(fd).close()
                self.cut += 1
            if self.opened >= self.n:
                self.all_opened.set()
        self.stayed = len(self.open)
        for s in self.open.values():
            s.close()
        poll.close()


def allow_files(n):
    """The relay that is started later may have as many: it is not the number of its files that bounds its connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n:
        if hard != resource.RLIM_INFINITY and hard < n:
            sys.exit(f"--idle needs {n} open files; the limit is {hard} (ulimit -Hn)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))


def files_of(relay):
    return len(os.listdir(f"/proc/{relay.process.pid}/fd"))


def print_drain(name, rates, worst_ms, relay):
    """rates: beside the crowd at the other relay, and at this one"""
    print(f"{name:23} elsewhere {rates[0]:7.0f}/s   here {rates[1]:7.0f}/s   {rates[1] / rates[0]:.2f}   worst /livez {worst_ms:7.1f} ms   "
          f"RSS {relay.rss_mb():.0f} MiB   {files_of(relay)} files", flush=True)


class Other(Relay):
    """A relay that has nothing to deliver, in a folder of its own."""

    def __init__(self, hikyaku, folder):
        os.mkdir(folder)
        self.port = free_port()
        super().__init__(hikyaku, folder, f"""admin: {{ listen: "127.0.0.1:{self.port}" }}
destinations: {{ shop: {{ "null": {{}} }} }}
""")
        self.start()
        wait_port(self.port)


def beside(crowd, ready, probe, relay, rows):
    """(the rate of a drain, the worst answer of /livez meanwhile)"""
    with crowd:
        ready.wait()
        probe.worst_ms = 0.0
        with Background(probe, 1):
            return drain(relay, rows), probe.worst_ms


def measure_calls(port, path, seconds):
    connection, took, end = http.client.HTTPConnection("127.0.0.1", port, timeout=30), [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, (path, answer.status)
        took.append((time.monotonic() - began) * 1000)
    took.sort()
    return len(took) / seconds, statistics.median(took), took[int(len(took) * 0.99)]


def flood(hikyaku, folder, seconds):
    """Handshakes at one door, probes at another."""
    at, health = free_port(), free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", f"{folder}/tls.key", "-out", f"{folder}/tls.pem"], check=True, capture_output=True)
    relay = Relay(hikyaku, folder, f"""admin: {{ listen: "127.0.0.1:{at}", health_listen: "127.0.0.1:{health}", tls: {{ cert: tls.pem, key: tls.key }} }}
destinations: {{ shop: {{ "null": {{}} }} }}
""")
    relay.start()
    wait_port(at)
    wait_port(health)
    try:
        for name, n in (("no handshakes", 0), ("2 clients shake hands", 2)):
            clients = [subprocess.Popen(["openssl", "s_time", "-connect", f"127.0.0.1:{at}", "-new", "-time", str(int(seconds) + 2)],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(n)]
            probe = Probe(health)
            with Background(probe, 1):
                time.sleep(seconds)
            said = [client.communicate()[0] for client in clients]
            made = sum(int(found[1]) for text in said if (found := re.search(r"(\d+) connections in \d+ real seconds", text)))
            print(f"{name:23} worst /livez {probe.worst_ms:7.1f} ms   {made / (seconds + 2):.0f} handshakes/s", flush=True)
    finally:
        relay.stop()


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("hikyaku")
    parse.add_argument("--rows", type=int, default=50000)
    parse.add_argument("--connections", type=int, default=1000)
    parse.add_argument("--idle", type=int, default=10000)
    parse.add_argument("--seconds", type=float, default=3)
    args = parse.parse_args()
    allow_files(args.idle + 1000)
    with tempfile.TemporaryDirectory() as folder:
        nginx, port = Nginx(folder), free_port()
        relay = Relay(args.hikyaku, folder, f"""admin: {{ listen: "127.0.0.1:{port}" }}
retention: {{ sent: 0s }}
destinations: {{ shop: {{ http: {{ url: "http://127.0.0.1:{nginx.port}/" }}, allow: [127.0.0.0/8] }} }}
""")
        relay.start()
        wait_port(port)
        other = Other(args.hikyaku, os.path.join(folder, "other"))
        try:
            probe = Probe(port)
            drain(relay, args.rows)  # warm
            now = threading.Event()
            now.set()
            nobody = [beside(contextlib.nullcontext(), now, probe, relay, args.rows) for _ in range(2)]
            print_drain("nobody asks", [rate for rate, _ in nobody], max(worst for _, worst in nobody), relay)
            idle, storm = ([Idle(p, args.idle, again) for p in (other.port, port)] for again in (False, True))
            crowds = [("2 clients ask for lists", [(Background(ask_lists(p), 2), now) for p in (other.port, port)]),
                      (f"{args.connections} slow connections", [(Background(hold(p, args.connections), 1), now) for p in (other.port, port)]),
                      (f"{args.idle} idle connections", [(Background(some, 1), some.all_opened) for some in idle]),
                      (f"{args.idle} that come again", [(Background(some, 1), some.all_opened) for some in storm])]
            for name, pair in crowds:
                rates, worst = [], 0.0
                for crowd, ready in pair:
                    rate, worst = beside(crowd, ready, probe, relay, args.rows)
                    rates.append(rate)
                print_drain(name, rates, worst, relay)
            for name, (_, some) in (("idle", idle), ("that come again", storm)):
                print(f"connections {name}: {some.opened} opened, {some.cut} cut by the relay, {some.stayed} open at the end")
            for path in PATHS:
                rate, median, p99 = measure_calls(port, path, args.seconds)
                print(f"{path:32} {rate:7.0f} calls/s   median {median:6.2f} ms   p99 {p99:6.2f} ms")
        finally:
            relay.stop()
            other.stop()
            nginx.stop()
    with tempfile.TemporaryDirectory() as folder:
        flood(args.hikyaku, folder, args.seconds)


if __name__ == "__main__":
    main()
