#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the relay does at real brokers, beside bare clients in C that wait for the same confirms, in turns in the same run.

usage: bench/brokers.py HIKYAKU [--rows N] [--rounds N] [--window N] [--only kafka,nats,redis,amqp,mqtt,debezium]

HIKYAKU is a program in a build folder: the bare clients are looked for beside it. A broker that is not installed is named and left out; Kafka needs Java
and Maven. `debezium`: the relay on PostgreSQL to Kafka beside Debezium Server, which needs Java 21. Everything runs on loopback, in a temporary folder, and is stopped at the end. Ratios are what to read: absolute figures move with the machine."""
import argparse, contextlib, json, os, pathlib, shutil, signal, statistics, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/e2e"))
from relay import PAYLOAD, Relay, in_folder

DEFAULT_WINDOW = 64  # limits.concurrency of a destination
LINGER_MS = 1  # of a Kafka destination, by default


class Place:
    """Where a broker lives: what the tests call a world."""

    def __init__(self):
        self.folder, self.brokers = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-bench-")), []

    def path(self, name):
        return self.folder / name

    def end(self):
        for broker in self.brokers:
            broker.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- brokers: each yields (what a destination says of it, the bare client's command up to the number of messages) ----

@contextlib.contextmanager
def place():
    here = Place()
    try:
        yield here
    finally:
        here.end()


@contextlib.contextmanager
def kafka(build):
    from kafka_broker import Broker
    broker = Broker()
    try:
        broker.make_topics(bench=[])
        yield {"brokers": broker.at("plain"), "topic": "bench"}, [build / "bench/kafka_bare", broker.at("plain"), "bench"]
    finally:
        broker.close()


@contextlib.contextmanager
def nats(build):
    from brokers_servers import Nats, NatsClient
    with place() as here:
        port = Nats(here).start().port
        client = NatsClient(port)
        client.stream("B", "bench.>")
        client.close()
        yield {"url": f"nats://127.0.0.1:{port}", "subject": "bench.r"}, [build / "bench/bench_brokers", "nats", port]


@contextlib.contextmanager
def redis(build):
    from brokers_servers import Redis
    with place() as here:
        port = Redis(here).start().port
        yield {"url": f"redis://127.0.0.1:{port}", "stream": "bench"}, [build / "bench/bench_brokers", "redis", port]


@contextlib.contextmanager
def amqp(build):
    from brokers_servers import Amqp, Rabbit
    with place() as here:
        port = Rabbit(here).start().port
        client = Amqp(port)
        client.queue("bench")
        client.close()
        yield {"url": f"amqp://127.0.0.1:{port}", "routing_key": "bench"}, [build / "bench/bench_brokers", "amqp", port]


@contextlib.contextmanager
def mqtt(build):
    from brokers_servers import Mosquitto
    with place() as here:
        port = Mosquitto(here, "allow_anonymous true").start().port
        yield {"url": f"mqtt://127.0.0.1:{port}", "topic": "bench"}, [build / "bench/bench_brokers", "mqtt", port]


BROKERS = {"kafka": kafka, "nats": nats, "redis": redis, "amqp": amqp, "mqtt": mqtt}


# ---- one run: (messages a second, CPU microseconds a message) ----

def bare(args, command, window):
    more = [LINGER_MS] if "kafka_bare" in str(command[0]) else []
    words = [*command, args.rows, window, *more, len(PAYLOAD)]
    return tuple(map(float, subprocess.run([str(w) for w in words], text=True, capture_output=True, check=True).stdout.split()))


@in_folder
def relay(args, folder):
    """Rows that are there when it starts: from its start until all are settled."""
    sink = {args.kind: args.section, "allow": ["127.0.0.0/8"]}
    if args.window:
        sink["limits"] = {"concurrency": args.window}
    r = Relay(args.hikyaku, folder, f"admin: {{ listen: none }}\nrelay: {{ concurrency: {max(256, args.window)} }}\n"
              f"destinations: {json.dumps({'sink': sink})}\n")
    r.fill(args.rows)
    began = time.monotonic()
    r.start()
    r.drained()
    rate, cpu = args.rows / (time.monotonic() - began), r.cpu_s() * 1e6 / args.rows
    r.stop()
    return rate, cpu


def show(name, figures, beside=None):
    rates, cpus = zip(*figures)
    ratio = f"  {statistics.median(rates) / statistics.median(r for r, _ in beside):5.2f} of it" if beside else ""
    print(f"{name:36} {statistics.median(rates):9,.0f}/s  ({min(rates):,.0f} to {max(rates):,.0f})  {statistics.median(cpus):6.1f} us CPU a message{ratio}", flush=True)


def measure(args, kind):
    from support import Skip
    args.kind, build = kind, pathlib.Path(args.hikyaku).resolve().parents[2]
    try:
        if kind == "debezium":
            beside_debezium(args)
            return
        with BROKERS[kind](build) as (args.section, command):
            bare(args, command, 1000)  # a broker is slow at first
            for window in args.windows:
                args.window = window
                alone, ours = [], []
                for _ in range(args.rounds):  # in turns, for the machine may be slower at times
                    alone.append(bare(args, command, window or DEFAULT_WINDOW))
                    ours.append(relay(args))
                words = f"{window} in flight" if window else f"default, {DEFAULT_WINDOW} in flight"
                show(f"{kind}, bare client, {window or DEFAULT_WINDOW} in flight", alone)
                show(f"{kind}, relay, {words}", ours, alone)
    except Skip as why:
        print(f"{kind}: not measured: {why}")


# ---- Debezium Server ----

def topic_bytes(broker, topic):
    return sum(path.stat().st_size for path in broker.folder.glob(f"data/{topic}-*/*.log"))


def from_commit_to_last(broker, topic, process, insert, rows):
    """(records a second, CPU microseconds a record): the topic is the same clock for both. Looks at the log's size, which costs the machine nothing."""
    def cpu():
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    used, before = cpu(), topic_bytes(broker, topic)
    insert()
    began = last = time.monotonic()
    size = before
    while last == began or time.monotonic() - last < 5:
        assert process.poll() is None and time.monotonic() - began < 300, "it has ended, or does nothing"
        time.sleep(0.01)
        now = topic_bytes(broker, topic)
        if now > size:
            size, last = now, time.monotonic()
    return rows / (last - began), (cpu() - used) * 1e6 / rows


@contextlib.contextmanager
def relay_on_postgres(args, folder, cluster, broker, order):
    """A relay that runs: (its process, what gives it rows)."""
    from postgres import servers
    url, path = cluster.url(cluster.create()), folder / f"{order}.yaml"
    sink = {"kafka": {"brokers": broker.at("plain"), "topic": f"order-{order}"}, "allow": ["127.0.0.0/8"], "order": order}
    path.write_text(f"store: \"{url}\"\nadmin: {{ listen: none }}\ndestinations: {json.dumps({'sink': sink})}\n", encoding="utf-8")
    subprocess.run([args.hikyaku, "--config", path, "init"], check=True, stdout=subprocess.DEVNULL)
    db = servers.psycopg.connect(url, autocommit=True)

    def insert(rows):
        db.execute("INSERT INTO outbox (destination, event_type, message_key, payload) SELECT 'sink', 'Bench', 'k' || i %% 1000, %s "
                   "FROM generate_series(1, %s) i", (PAYLOAD, rows))
    with open(folder / f"{order}.log", "wb") as log:
        process = subprocess.Popen([args.hikyaku, "--config", path, "run"], stderr=log)
    try:
        yield process, insert
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def beside_each_other(args):
    """Yields (broker, {topic: (process, insert)}): all run and have nothing to do. 1,000 keys each."""
    from debezium import Debezium
    from kafka_broker import Broker
    from postgres import servers
    from support import Skip
    if servers.why_not():
        raise Skip(servers.why_not())
    with contextlib.ExitStack() as stack, place() as here:
        broker = Broker()
        stack.callback(broker.close)
        broker.make_topics(**{"debezium": [], "order-key": [], "order-none": []})
        cluster = servers.Cluster(wal_level="logical", fsync="on", shared_buffers="512MB", max_wal_size="4GB")
        stack.callback(cluster.close)
        name = cluster.create()
        db = servers.psycopg.connect(cluster.url(name), autocommit=True)
        peer = Debezium(here.folder, name, cluster.port, broker.at("plain"), "debezium", db)
        stack.callback(peer.close)
        all_of_them = {"debezium": (peer.process, lambda rows: peer.insert(db, rows, PAYLOAD))}
        for order in ("key", "none"):
            all_of_them[f"order-{order}"] = stack.enter_context(relay_on_postgres(args, here.folder, cluster, broker, order))
        yield broker, all_of_them


def beside_debezium(args):
    with beside_each_other(args) as (broker, all_of_them):
        figures = {topic: [] for topic in all_of_them}
        for turn in range(args.rounds + 1):  # the first is for Java to warm up
            for topic, (process, insert) in all_of_them.items():
                figure = from_commit_to_last(broker, topic, process, lambda insert=insert: insert(args.rows), args.rows)
                figures[topic] += [figure] if turn else []
        for topic in all_of_them:
            got = sum(int(line.rsplit(":", 1)[1]) for line in broker.run("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", broker.at("plain"),
                                                                         "--topic", topic).split())
            assert got == args.rows * (args.rounds + 1), f"{topic}: {got} records"
        show("Debezium Server, PostgreSQL", figures["debezium"])
        for order in ("key", "none"):
            show(f"relay, PostgreSQL, order: {order}", figures[f"order-{order}"], figures["debezium"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hikyaku")
    parser.add_argument("--rows", type=int, default=50000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--window", type=int, action="append", dest="windows", help="0: default settings [0 and 256]")
    parser.add_argument("--only", default=",".join([*BROKERS, "debezium"]))
    args = parser.parse_args()
    args.windows = args.windows or [0, 256]
    if "debezium" in args.only:
        import postgres  # noqa: F401, pylint: disable=unused-import  # may start this program again, with a Python that has psycopg
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # brokers do not outlive it
    for kind in args.only.split(","):
        measure(args, kind)


if __name__ == "__main__":
    main()
