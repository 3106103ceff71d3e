#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks of Cloud Tasks: created by clients in parallel while the relay dispatches them to nginx.

usage: bench/tasks.py HIKYAKU [--tasks N] [--clients N] [--node N] [--store sqlite|postgres]

- `--clients` processes create `--tasks` tasks over HTTP, each on a connection of its own; `--node` of them are created by Google's client
  for Node instead (0: none; it is fetched by npm). A call that is answered 503 is made again after Retry-After, and counted.
- nginx writes down the name of each task that arrives: none may be missing, and tasks that arrived twice are counted.
- Told: tasks created and dispatched a second (both from the first call on), the slowest call, calls that were answered 503, duplicates, and
  the relay's CPU and memory.
Needs nginx; for PostgreSQL its server, which runs with fsync as it is delivered. Everything runs on loopback, in a temporary folder, and is
stopped at the end."""
import argparse
import collections
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.dirname(os.path.realpath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/e2e"))
from relay import Relay, wait_port
from ports import free_port

PARENT = "projects/bench/locations/here"
QUEUE = PARENT + "/queues/many"
BODY = "eyJzZXNzaW9uSWQiOiJzLTQyIiwidGFibGVOYW1lIjoiZXZlbnRzIn0="


class Receiver:
    """nginx, which answers 204 and notes the names of tasks."""

    def __init__(self, folder):
        self.port, self.log = free_port(), os.path.join(folder, "names.log")
        conf = os.path.join(folder, "nginx.conf")
        with open(conf, "w") as f:
            f.write(f"""daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{ log_format name '$http_x_cloudtasks_taskname'; access_log {self.log} name buffer=64k flush=1s; keepalive_requests 1000000000;
client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
server {{ listen 127.0.0.1:{self.port} backlog=4096; location / {{ return 204; }} }} }}""")
        self.process = subprocess.Popen(["nginx", "-c", conf, "-p", folder], stderr=subprocess.DEVNULL)
        wait_port(self.port)

    def names(self):
        with open(self.log) as f:
            return f.read().split()

    def stop(self):
        self.process.terminate()
        self.process.wait()


def create(port, token, target, n, told):
    """One client: creates n tasks, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    head = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    body = json.dumps({"task": {"httpRequest": {"url": target, "headers": {"Content-Type": "application/json"}, "body": BODY}}})
    slowest, refused, why = 0.0, 0, collections.Counter()
    while n > 0:
        began = time.monotonic()
        connection.request("POST", f"/v2/{QUEUE}/tasks", body, head)
        answer = connection.getresponse()
        text = answer.read()
        slowest = max(slowest, time.monotonic() - began)
        if answer.status == 503:
            refused += 1
            why[json.loads(text)["error"]["message"][:120]] += 1
            time.sleep(float(answer.headers.get("Retry-After", 1)))
            continue
        assert answer.status == 200, (answer.status, text[:300])
        n -= 1
    told.put((slowest, refused, dict(why)))


def create_by_node(port, token, target, n, told):
    """Google's client, one call after the other."""
    import clients
    folder = clients.node()
    began, slowest = 0.0, 0.0
    with subprocess.Popen(["node", str(folder / "client.js"), "127.0.0.1", str(port), token], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "NODE_PATH": str(folder / "node_modules")}) as process:
        process.stdout.readline()
        call = json.dumps({"call": "createTask", "request": {"parent": QUEUE, "task": {"httpRequest": {"httpMethod": "POST", "url": target, "body": BODY}}}})
        for _ in range(n):
            began = time.monotonic()
            process.stdin.write(call + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "ok" in answer, answer
            slowest = max(slowest, time.monotonic() - began)
        process.stdin.close()
    told.put((slowest, 0, {}))


class Peak(threading.Thread):
    """The most memory that the relay had."""

    def __init__(self, relay):
        super().__init__(daemon=True)
        self.relay, self.mb, self.ends = relay, 0.0, threading.Event()

    def run(self):
        while not self.ends.wait(0.2):
            self.mb = max(self.mb, self.relay.rss_mb())


class OnPostgres(Relay):
    """The relay of bench/relay.py on a server of our own."""

    def __init__(self, hikyaku, folder, config, url):
        self.path, self.hikyaku, self.process = os.path.join(folder, "hikyaku.yaml"), hikyaku, None
        with open(self.path, "w") as f:
            f.write(f"store: \"{url}\"\n" + config)
        self.log = open(os.path.join(folder, "relay.log"), "w")
        subprocess.run([hikyaku, "--config", self.path, "init"], check=True, stdout=subprocess.DEVNULL)


def make_relay(args, folder, config):
    if args.store == "sqlite":
        return Relay(args.hikyaku, folder, config)
    import postgres
    why_not = postgres.why_not()
    if why_not:
        sys.exit(why_not)
    server = postgres.Cluster(fsync="on")
    return OnPostgres(args.hikyaku, folder, config, server.url(server.create()))


def run(args, folder):
    receiver, port = Receiver(folder), free_port()
    relay = make_relay(args, folder, f"""admin: {{ listen: "127.0.0.1:{port}" }}
queues: {{ allow: [127.0.0.0/8] }}
retention: {{ sent: 0s }}
""")
    who = ["--config", relay.path, "--actor", "bench", "--reason", "a benchmark"]
    token = subprocess.run([args.hikyaku, "token", "create", "bench", "--role", "admin", *who], check=True, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.split()[-1]
    relay.start()
    wait_port(port)
    subprocess.run([args.hikyaku, "queues", "create", QUEUE, *who], check=True, stdout=subprocess.DEVNULL)
    peak = Peak(relay)
    peak.start()
    target, told = f"http://127.0.0.1:{receiver.port}/", multiprocessing.Queue()
    share = [(args.tasks - args.node) // args.clients + (i < (args.tasks - args.node) % args.clients) for i in range(args.clients)]
    work = [multiprocessing.Process(target=create, args=(port, token, target, n, told)) for n in share]
    if args.node:
        work.append(multiprocessing.Process(target=create_by_node, args=(port, token, target, args.node, told)))
    cpu, began = relay.cpu_s(), time.monotonic()
    try:
        for process in work:
            process.start()
        results = [told.get() for _ in work]
        created_s = time.monotonic() - began
        names = receiver.names()
        while len(set(names)) < args.tasks:
            if time.monotonic() - began > args.most:
                sys.exit(f"only {len(set(names))} of {args.tasks} tasks arrived within {args.most} s")
            time.sleep(0.5)
            names = receiver.names()
        dispatched_s = time.monotonic() - began
        peak.ends.set()
        print(f"{args.store}: {args.tasks} tasks, {args.clients} clients" + (f", {args.node} tasks by Google's client for Node" if args.node else ""))
        print(f"created     {args.tasks / created_s:8.0f}/s   slowest call {max(r[0] for r in results) * 1000:.0f} ms   answered 503: {sum(r[1] for r in results)}")
        print(f"dispatched  {args.tasks / dispatched_s:8.0f}/s   duplicates {len(names) - len(set(names))}")
        print(f"relay: CPU {relay.cpu_s() - cpu:.1f} s   RSS {peak.mb:.0f} MiB")
        for _, _, why in results:
            for words, n in why.items():
                print(f"  503, {n} times: {words}")
    finally:
        for process in work:
            if process.is_alive():
                process.terminate()
        relay.stop()
        receiver.stop()


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("hikyaku")
    parse.add_argument("--tasks", type=int, default=100000)
    parse.add_argument("--clients", type=int, default=8)
    parse.add_argument("--node", type=int, default=0)
    parse.add_argument("--most", type=int, default=1800, help="seconds")
    parse.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    args = parse.parse_args()
    args.hikyaku = os.path.realpath(args.hikyaku)
    with tempfile.TemporaryDirectory() as folder:
        run(args, folder)


if __name__ == "__main__":
    main()
