#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the relay does over HTTP on SQLite, beside the limits of the same machine in the same run.

usage: bench/relay.py HIKYAKU [--rows N] [--seconds S]

Needs nginx and wrk. Everything runs on loopback, in a temporary folder, and is stopped at the end. Ratios are what to
read: absolute figures move with the machine. Each figure is one run, so run it several times."""
import argparse, json, os, shutil, signal, socket, sqlite3, statistics, subprocess, sys, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/e2e"))
from ports import free_port

PAYLOAD = json.dumps({"order": 42, "text": "x" * 460})


def wait_port(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"nothing listens on port {port}")


class Nginx:
    """Answers the same to everything."""

    def __init__(self, folder, status=204):
        self.port, self.h2_port = free_port(), free_port()
        conf = os.path.join(folder, "nginx.conf")
        with open(conf, "w") as f:
            f.write(f"""daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{ access_log off; client_max_body_size 64m; keepalive_requests 1000000000; client_body_temp_path {folder}; proxy_temp_path {folder};
fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
http2_max_concurrent_streams 256;
server {{ listen 127.0.0.1:{self.port} backlog=4096; listen 127.0.0.1:{self.h2_port} http2 backlog=4096; location / {{ return {status}; }} }} }}""")
        self.process = subprocess.Popen(["nginx", "-c", conf, "-p", folder], stderr=subprocess.DEVNULL)
        wait_port(self.port)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Relay:
    def __init__(self, hikyaku, folder, config):
        self.path = os.path.join(folder, "hikyaku.yaml")
        self.db = os.path.join(folder, "bench.db")
        with open(self.path, "w") as f:
            f.write(f"store: sqlite:{self.db}\n" + config)
        self.hikyaku = hikyaku
        self.log = open(os.path.join(folder, "relay.log"), "w")
        subprocess.run([hikyaku, "--config", self.path, "init"], check=True, stdout=subprocess.DEVNULL)
        self.process = None

    def start(self):
        self.process = subprocess.Popen([self.hikyaku, "--config", self.path, "run"], stderr=self.log)

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
            self.process = None

    def proc(self, name):
        with open(f"/proc/{self.process.pid}/{name}") as f:
            return f.read()

    def cpu_s(self):
        fields = self.proc("stat").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self, key="VmRSS"):
        return next(int(l.split()[1]) / 1024 for l in self.proc("status").splitlines() if l.startswith(key))

    def connect(self):
        db = sqlite3.connect(self.db, timeout=30, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        return db

    def fill(self, rows, destination="sink"):
        db = self.connect()
        for start in range(0, rows, 10000):
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT INTO outbox (destination, event_type, payload) VALUES (?, 'Bench', ?)",
                           ((destination, PAYLOAD) for _ in range(min(10000, rows - start))))
            db.execute("COMMIT")
        db.close()

    def drained(self, seconds=300):
        """Looks rarely and cheaply: a count of the table would compete with the relay for the machine."""
        db = self.connect()
        end = time.monotonic() + seconds
        while db.execute("SELECT EXISTS (SELECT 1 FROM outbox) OR EXISTS (SELECT 1 FROM outbox_retry)").fetchone()[0]:
            if time.monotonic() > end:
                sys.exit("the relay did not drain in time")
            time.sleep(0.02)
        db.close()


def dest(name, port, extra="", http=""):
    return (f"  {name}: {{ http: {{ url: \"http://127.0.0.1:{port}/\"{http} }}, allow: [127.0.0.0/8], "
            f"breaker: off{extra} }}\n")


def in_folder(f):
    def wrapped(args):
        folder = tempfile.mkdtemp(prefix="hikyaku-bench-")
        try:
            return f(args, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return wrapped


def wrk(port, concurrency, seconds):
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        lua.write(f"wrk.method='POST'\nwrk.body=[[{PAYLOAD}]]\nwrk.headers['content-type']='application/json'\n")
        lua.flush()
        out = subprocess.run(["wrk", "-t1", f"-c{concurrency}", f"-d{seconds}s", "-s", lua.name,
                              f"http://127.0.0.1:{port}/"], capture_output=True, text=True, check=True).stdout
    return float(next(l.split(":")[1] for l in out.splitlines() if "Requests/sec" in l))


@in_folder
def throughput(args, folder):
    nginx = Nginx(folder)
    for retention in ("0s", "24h"):
        sub = tempfile.mkdtemp(dir=folder)
        relay = Relay(args.hikyaku, sub, f"retention: {{ sent: {retention} }}\ndestinations:\n" + dest("sink", nginx.port))
        limit = wrk(nginx.port, 64, args.seconds)
        relay.fill(args.rows)
        start = time.monotonic()
        relay.start()
        relay.drained()
        took = time.monotonic() - start
        cpu = relay.cpu_s()
        rate = args.rows / took
        print(f"HTTP to nginx, sent rows kept {retention:>3}: {rate:8.0f}/s   wrk {limit:8.0f}/s   "
              f"ratio {rate / limit:.2f}   CPU {cpu / args.rows * 1e6:.0f} us/message   peak RSS {relay.rss_mb('VmHWM'):.1f} MB")
        relay.stop()
    nginx.stop()


@in_folder
def http2(args, folder):
    """HTTP/2 by prior knowledge against HTTP/1.1, to the same nginx, in turns; the median of three."""
    nginx = Nginx(folder)
    for concurrency in (64, 256):
        rates, cpus = {1: [], 2: []}, {1: [], 2: []}
        for _ in range(3):
            for version, port in ((1, nginx.port), (2, nginx.h2_port)):
                sub = tempfile.mkdtemp(dir=folder)
                relay = Relay(args.hikyaku, sub, "retention: { sent: 0s }\ndestinations:\n" +
                              dest("sink", port, f", limits: {{ concurrency: {concurrency} }}", f", version: {version}"))
                relay.fill(args.rows)
                start = time.monotonic()
                relay.start()
                relay.drained()
                rates[version].append(args.rows / (time.monotonic() - start))
                cpus[version].append(relay.cpu_s() / args.rows * 1e6)
                relay.stop()
        one, two = statistics.median(rates[1]), statistics.median(rates[2])
        print(f"{concurrency} in flight: HTTP/1.1 {one:8.0f}/s, {statistics.median(cpus[1]):.1f} us CPU/message   "
              f"HTTP/2 {two:8.0f}/s, {statistics.median(cpus[2]):.1f} us   ratio {two / one:.2f}")
    nginx.stop()


def bare_rate(args, path, rows):
    """Messages a second of a bare "cursor SELECT + batch DELETE" loop in C on such a file; 0 when it was not built."""
    program = os.path.join(os.path.dirname(os.path.realpath(args.hikyaku)), "../../bench/bench_store_sqlite")
    if not os.path.exists(program):
        return 0
    return float(subprocess.run([program, "--bare", path, str(rows)], capture_output=True, text=True, check=True).stdout)


@in_folder
def drain(args, folder):
    """The whole relay with nothing behind it: claim, hand over, settle. The bare loop takes turns with it, each on a file
    of its own that was filled alike; medians of three rounds."""
    rows = 300000
    for retention in ("0s", "24h"):
        rates = {"bare": [], "relay": []}
        for turn in ("bare", "relay") * 3:
            sub = tempfile.mkdtemp(dir=folder)
            relay = Relay(args.hikyaku, sub, f"relay: {{ batch: 1000, concurrency: 1000 }}\nretention: {{ sent: {retention} }}\n"
                          'destinations: { sink: { "null": {}, limits: { concurrency: 1000 } } }\n')
            db = relay.connect()
            for _ in range(rows // 10000):
                db.execute("BEGIN IMMEDIATE")
                db.executemany("INSERT INTO outbox (destination, event_type, payload) VALUES ('sink', 'Bench', ?)",
                               (("x" * 500,) for _ in range(10000)))
                db.execute("COMMIT")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.close()
            if turn == "bare":
                rates[turn].append(bare_rate(args, relay.db, rows))
            else:
                start = time.monotonic()
                relay.start()
                relay.drained()
                rates[turn].append(rows / (time.monotonic() - start))
                cpu_us, peak = relay.cpu_s() / rows * 1e6, relay.rss_mb("VmHWM")
                relay.stop()
            shutil.rmtree(sub)
        ratios = [r / b for r, b in zip(rates["relay"], rates["bare"]) if b]
        print(f"drain to null, sent rows kept {retention:>3}: {statistics.median(rates['relay']):8.0f}/s   "
              f"bare loop {statistics.median(rates['bare']):8.0f}/s   "
              f"ratio {statistics.median(ratios) if ratios else 0:.2f}   CPU {cpu_us:.1f} us/message   peak RSS {peak:.1f} MB")


@in_folder
def memory(args, folder):
    for rows in (0, 100000, 1000000):
        sub = tempfile.mkdtemp(dir=folder)
        port = free_port()  # nobody listens: everything stays
        relay = Relay(args.hikyaku, sub, "policies: { slow: { backoff: { kind: fixed, base: 1h } } }\ndestinations:\n"
                      + dest("sink", port, ", policy: slow"))
        relay.fill(rows)
        db = relay.connect()
        db.execute("INSERT INTO outbox_destination (name, paused, actor, reason, since_ms) VALUES ('sink', 1, 'bench', '', 0)")
        db.close()
        relay.start()
        time.sleep(4)
        print(f"RSS with {rows:>9,} rows waiting for a paused destination: {relay.rss_mb():5.1f} MB "
              f"(peak {relay.rss_mb('VmHWM'):.1f})")
        if rows == 0:
            before = relay.cpu_s()
            time.sleep(10)
            print(f"idle CPU: {(relay.cpu_s() - before) / 10 * 100:.2f} % of a core")
        relay.stop()


class Arrivals(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    times = {}

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Arrivals.times[json.loads(body)["n"]] = time.monotonic()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *a):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))]


def measure_latency(relay, rate, seconds, destinations):
    """Inserts at `rate`, one transaction each; insert-to-arrival and the INSERT itself, in ms."""
    Arrivals.times = {}
    db = relay.connect()
    inserted, insert_ms = {}, []
    start = time.monotonic()
    for n in range(int(rate * seconds)):
        due = start + n / rate
        while time.monotonic() < due:
            time.sleep(max(0, min(0.001, due - time.monotonic())))
        began = time.monotonic()
        db.execute("INSERT INTO outbox (destination, event_type, payload) VALUES (?, 'Bench', ?)",
                   (destinations[n % len(destinations)], json.dumps({"n": n})))
        inserted[n] = time.monotonic()
        insert_ms.append((inserted[n] - began) * 1000)
    db.close()
    end = time.monotonic() + 30
    while len(Arrivals.times) < len(inserted) and time.monotonic() < end:
        time.sleep(0.01)
    delays = [(Arrivals.times[n] - t) * 1000 for n, t in inserted.items() if n in Arrivals.times]
    return delays, insert_ms, len(inserted) - len(delays)


@in_folder
def latency(args, folder):
    server = Server(("127.0.0.1", 0), Arrivals)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for rate in (100, 1000):
        sub = tempfile.mkdtemp(dir=folder)
        relay = Relay(args.hikyaku, sub, "destinations:\n" + dest("sink", server.server_port))
        relay.start()
        time.sleep(0.5)
        delays, insert_ms, missing = measure_latency(relay, rate, args.seconds, ["sink"])
        print(f"insert to arrival at {rate:>4}/s: p50 {percentile(delays, .5):5.1f} ms, p99 {percentile(delays, .99):6.1f} ms"
              f"   INSERT p99 {percentile(insert_ms, .99):5.1f} ms   missing {missing}")
        relay.stop()
    server.shutdown()


@in_folder
def inserts_while_draining(args, folder):
    nginx = Nginx(folder)
    relay = Relay(args.hikyaku, folder, "destinations:\n" + dest("sink", nginx.port))
    relay.fill(args.rows)
    relay.start()
    db, times = relay.connect(), []
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        began = time.monotonic()
        db.execute("INSERT INTO outbox (destination, event_type, payload) VALUES ('sink', 'Bench', ?)", (PAYLOAD,))
        times.append((time.monotonic() - began) * 1000)
        time.sleep(0.001)
    db.close()
    print(f"INSERT by another process while draining: p50 {percentile(times, .5):.2f} ms, p99 {percentile(times, .99):.2f} ms, "
          f"max {max(times):.1f} ms over {len(times)}")
    relay.stop()
    nginx.stop()


@in_folder
def isolation(args, folder):
    """98 destinations with and without a hanging and a paused one beside them, the paused one with many rows due."""
    server = Server(("127.0.0.1", 0), Arrivals)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hang = socket.socket()
    hang.bind(("127.0.0.1", 0))
    hang.listen(512)  # accepts by backlog, never answers
    names = [f"d{i}" for i in range(98)]
    figures = []
    for bad in (False, True):
        sub = tempfile.mkdtemp(dir=folder)
        config = "destinations:\n" + "".join(dest(n, server.server_port) for n in names)
        config += dest("hanging", hang.getsockname()[1]) + dest("paused", server.server_port)
        relay = Relay(args.hikyaku, sub, config)
        db = relay.connect()
        db.execute("INSERT INTO outbox_destination (name, paused, actor, reason, since_ms) VALUES ('paused', 1, 'bench', '', 0)")
        db.close()
        if bad:
            relay.fill(args.paused_rows, "paused")
            relay.fill(1000, "hanging")
        relay.start()
        time.sleep(6 if bad else 1)
        delays, _, missing = measure_latency(relay, 200, args.seconds, names)
        figures.append(percentile(delays, .99))
        what = f"with 1 hanging and 1 paused with {args.paused_rows:,} rows" if bad else "alone"
        print(f"98 destinations {what}: p50 {percentile(delays, .5):.1f} ms, p99 {percentile(delays, .99):.1f} ms, missing {missing}")
        relay.stop()
    print(f"isolation: p99 {figures[1] / figures[0]:.2f}x of the same run without them")
    hang.close()
    server.shutdown()


BENCHES = {"drain": drain, "throughput": throughput, "http2": http2, "memory": memory, "latency": latency, "inserts": inserts_while_draining,
           "isolation": isolation}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hikyaku")
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--paused-rows", type=int, default=1000000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", choices=sorted(BENCHES))
    args = parser.parse_args()
    args.hikyaku = os.path.abspath(args.hikyaku)
    for tool in ("nginx", "wrk"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
    for name, bench in BENCHES.items():
        if not args.only or args.only == name:
            bench(args)


if __name__ == "__main__":
    main()
