#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a relay shows of itself: /metrics as Prometheus sees it (its own checkers, a real server, the shipped rules and
dashboard), /livez and /readyz, the service manager's notifications; and that nobody who asks can disturb it. Speaks TAP.

Usage: metrics.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True  # the source folder stays as it is
from ports import free_port
from support import BINARY, PATIENCE, POSTGRES, Skip, World, clean_environment, run_tests, sqlite_only, until

if POSTGRES:
    import postgres

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/prometheus/alerts.yml"
POLICIES = ROOT / "packaging/google-cloud"
DASHBOARD = ROOT / "packaging/grafana/hikyaku.json"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


# ---- asking ----

class Page:
    """One answer of /metrics: {(name, frozenset of labels): value}, and what HELP and TYPE say."""

    LINE = re.compile(r'^([a-z_]+)(?:\{(.*)\})? (-?[0-9.]+)$')
    LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\.)*)"(?:,|$)')

    def __init__(self, text):
        self.text, self.values, self.help, self.types, self.labels = text, {}, {}, {}, {}
        for line in text.splitlines():
            if line.startswith("# HELP "):
                _, _, name, words = line.split(" ", 3)
                self.help[name] = words
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ", 3)
                self.types[name] = kind
            else:
                name, labels, value = self.LINE.match(line).groups()
                labels = dict(self.LABEL.findall(labels or ""))
                key = name, frozenset(labels.items())
                assert key not in self.values, f"twice: {line}"
                self.values[key] = float(value)
                self.labels.setdefault(self.family(name), set()).update(set(labels) - {"le"})

    def family(self, name):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        return base if self.types.get(base) == "histogram" else name

    def get(self, name, **labels):
        return self.values.get((name, frozenset(labels.items())))

    def sum(self, name, **labels):
        wanted = set(labels.items())
        return sum(v for (n, have), v in self.values.items() if n == name and wanted <= have)


def address(daemon, what="admin"):
    daemon.says(f'"{what} listening"')
    host, port = re.search(rf'msg="{what} listening" address=(\S+):(\d+)', daemon.log()).groups()
    return host.strip("[]"), int(port)


def ask(at, path, method="GET", headers=None, body=None):
    connection = http.client.HTTPConnection(*at, timeout=PATIENCE)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8"), dict(answer.getheaders())
    finally:
        connection.close()


def scrape(daemon):
    status, text, headers = ask(address(daemon), "/metrics")
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", (status, headers)
    return Page(text)


def whole(daemon):
    """A page of a relay at work that has the store's figures, too: the first one asks for them."""
    def complete():
        page = scrape(daemon)
        known = page.get("hikyaku_oldest_due_age_seconds") is not None and page.labels.get("hikyaku_queue_depth")
        return page if page.get("hikyaku_ready") and known else None
    return until(complete, "a whole page")


def health(daemon, path):
    status, body, _ = ask(address(daemon), path)
    return status, json.loads(body).get("why")


def needs(program):
    path = shutil.which(program)
    if path is None:
        raise Skip(f"{program} is not installed (Debian: prometheus)")
    return path


def promtool(*args, stdin=None):
    done = subprocess.run([needs("promtool"), *args], input=stdin, text=True, capture_output=True, check=False)
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout + done.stderr


# ---- what is shown is true ----

@test
def metrics_are_clean_and_say_what_happened():
    with World({"shop": {}, "picky": {}, "flaky": {}}) as w:
        w.receiver.on("picky", 422)
        w.receiver.on("flaky", lambda r: 503 if r.n == 1 else 200)
        daemon = w.daemon().ready()
        w.insert_many(20)
        w.insert_many(3, prefix="p", destination="picky")
        w.insert_many(4, prefix="f", destination="flaky")
        w.insert(message_id="x", destination="stranger\"}\n")
        w.settled(sent=24, dead=4)
        for kind, n in (("sent", 24), ("dead", 4)):
            until(lambda: scrape(daemon).get("hikyaku_settles_total", kind=kind) == n, kind)  # pylint: disable=cell-var-from-loop
        until(lambda: scrape(daemon).get("hikyaku_in_flight") == 0, "nothing in flight")
        page = whole(daemon)
        assert "warning" not in promtool("check", "metrics", stdin=page.text).lower()
        success = {"outcome": "success", "class": "none"}
        for name, value, labels in [
                ("hikyaku_messages_sent_total", 20, {"destination": "shop"}),
                ("hikyaku_messages_sent_total", 4, {"destination": "flaky"}),
                ("hikyaku_attempts_total", 20, {"destination": "shop", **success}),
                ("hikyaku_attempts_total", 4, {"destination": "flaky", "outcome": "failure", "class": "transient"}),
                ("hikyaku_attempts_total", 3, {"destination": "picky", "outcome": "failure", "class": "permanent"}),
                ("hikyaku_retries_total", 4, {"destination": "flaky"}),
                ("hikyaku_dead_letters_total", 3, {"destination": "picky", "reason": "HTTP_4xx"}),
                ("hikyaku_dead_letters_total", 1, {"destination": "other", "reason": "UNKNOWN_DESTINATION"}),
                ("hikyaku_insert_to_ack_seconds_count", 20, {"destination": "shop"}),
                ("hikyaku_insert_to_ack_seconds_count", 4, {"destination": "flaky"}),
                ("hikyaku_insert_to_ack_seconds_count", 0, {"destination": "picky"}),
                ("hikyaku_attempt_duration_seconds_count", 8, {"destination": "flaky"}),
                ("hikyaku_settles_total", 24, {"kind": "sent"}),
                ("hikyaku_settles_total", 4, {"kind": "dead"}),
                ("hikyaku_lane_events_total", 1, {"event": "acquired"}),
                ("hikyaku_breaker_state", 1, {"destination": "shop", "state": "closed"}),
                ("hikyaku_destination_paused", 0, {"destination": "shop"}),
                ("hikyaku_lane_held", 1, {}), ("hikyaku_store_up", 1, {}), ("hikyaku_ready", 1, {}),
                ("hikyaku_draining", 0, {}), ("hikyaku_relays_running", 1, {}),
                ("hikyaku_settles_stale_total", 0, {}), ("hikyaku_log_lines_dropped_total", 0, {})]:
            assert page.get(name, **labels) == value, (name, labels, value, page.get(name, **labels))
        assert page.get("hikyaku_store_call_duration_seconds_count", call="exchange") >= 2
        assert "stranger" not in page.text, "labels come from the configuration"
        slowest = page.get("hikyaku_attempt_duration_seconds_sum", destination="shop") / 20
        assert 0 < slowest < 60, slowest

        # What only the store knows: read anew after ten seconds at the latest.
        def depths():
            p = scrape(daemon)
            return p.get("hikyaku_queue_depth", state="dead") == 4 and p.get("hikyaku_queue_depth", state="sent") == 24 and p
        page = until(depths, "the queue's depths")
        assert page.get("hikyaku_destination_queue_depth", destination="picky", state="dead") == 3
        assert page.get("hikyaku_destination_queue_depth", destination="other", state="dead") == 1
        assert page.get("hikyaku_queue_depth", state="due") == 0 and page.get("hikyaku_oldest_due_age_seconds") == 0
        assert page.get("hikyaku_queue_depth_estimated", state="dead") == 0
        daemon.stop()


@test
def a_pause_and_a_backlog_are_seen():
    with World() as w:
        w.hikyaku("destinations", "pause", "shop", "--reason", "test")
        daemon = w.daemon().ready()
        w.insert_many(5)
        until(lambda: scrape(daemon).get("hikyaku_destination_paused", destination="shop") == 1, "the pause")
        page = until(lambda: (lambda p: p if p.get("hikyaku_destination_queue_depth", destination="shop", state="pending") == 5
                              else None)(scrape(daemon)), "the backlog")
        assert page.get("hikyaku_oldest_undelivered_age_seconds") > 0
        assert page.get("hikyaku_queue_attempts", attempts="0") == 5
        w.hikyaku("destinations", "resume", "shop", "--reason", "test")
        until(lambda: scrape(daemon).get("hikyaku_messages_sent_total", destination="shop") == 5, "all sent")
        daemon.stop()


@test
def a_reload_brings_other_destinations_and_keeps_the_counts():
    with World({"shop": {}, "old": {}}) as w:
        daemon = w.daemon().ready()
        w.insert_many(3)
        until(lambda: scrape(daemon).get("hikyaku_messages_sent_total", destination="shop") == 3, "three sent")
        w.config["destinations"]["new"] = w.config["destinations"].pop("old")
        w.write_config()
        daemon.signal(signal.SIGHUP)
        daemon.says("msg=reloaded")
        until(lambda: scrape(daemon).get("hikyaku_reloads_total") == 1, "the reload")
        page = scrape(daemon)  # the next one: a page takes its names when it begins
        assert page.get("hikyaku_messages_sent_total", destination="shop") == 3
        assert page.get("hikyaku_messages_sent_total", destination="new") == 0
        assert '"old"' not in page.text
        w.insert_many(2, prefix="n", destination="new")
        until(lambda: scrape(daemon).get("hikyaku_messages_sent_total", destination="new") == 2, "two more")
        daemon.stop()


@test
def a_lane_that_was_lost_is_counted():
    with World() as w:
        first = w.daemon("first").ready()
        address(first)
        first.freeze()
        second = w.daemon("second").ready()  # once the lease has run out
        w.insert_many(3)
        w.settled(sent=3)
        first.signal(signal.SIGCONT)
        until(lambda: scrape(first).get("hikyaku_lane_events_total", event="lost") >= 1, "the loss")
        assert scrape(second).get("hikyaku_messages_sent_total", destination="shop") == 3
        second.stop()
        first.stop()


# ---- what is written about it ----

@test
def every_metric_is_documented_and_no_other():
    with World() as w:
        daemon = w.daemon().ready()
        w.insert(message_id="a")
        w.settled(sent=1)
        page = whole(daemon)
        rows = re.findall(r"^\| `(hikyaku_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", (ROOT / "docs/metrics.md").read_text("utf-8"),
                          re.M)
        assert {name for name, *_ in rows} == set(page.types), {n for n, *_ in rows} ^ set(page.types)
        for name, kind, labels, words in rows:
            assert kind == page.types[name], name
            assert words == page.help[name], (name, words, page.help[name])
            assert set(re.findall(r"`(\w+)`", labels)) == page.labels.get(name, set()), (name, labels)
        daemon.stop()


@test
def rules_and_dashboard_use_only_what_exists():
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    exprs = [t["expr"] for p in dashboard["panels"] for t in p.get("targets", [])]
    exprs += [a["expr"] for a in dashboard["annotations"]["list"] if "expr" in a]
    exprs += [v["definition"] for v in dashboard["templating"]["list"] if "definition" in v]
    assert len(exprs) > 20 and len({p["id"] for p in dashboard["panels"]}) == len(dashboard["panels"])
    exprs.append(re.sub(r"#.*", "", RULES.read_text("utf-8")))
    with World() as w:
        daemon = w.daemon().ready()
        page = whole(daemon)
        used = set().union(*(re.findall(r"\bhikyaku_\w+", e) for e in exprs))
        assert len(used) > 30, used
        unknown = {name for name in used if page.family(name) not in page.types}
        assert not unknown, unknown
        for expr in exprs:  # and labels with values that exist
            for name, selector in re.findall(r"\b(hikyaku_\w+)\{([^}]*)\}", expr):
                for label in re.findall(r"([a-z_]+)(?:=~|!=|=)", selector):
                    assert label in page.labels.get(page.family(name), set()) | {"job", "instance"}, (name, label)
        daemon.stop()


@test
def the_rules_pass_prometheus_own_tests():
    promtool("check", "rules", str(RULES))
    assert "SUCCESS" in promtool("test", "rules", str(RULES.with_name("alerts_test.yml")))
    tested = RULES.with_name("alerts_test.yml").read_text("utf-8")
    for alert in re.findall(r"alert: (\w+)", RULES.read_text("utf-8")):
        assert tested.count(f'alertname="{alert}"') >= 2, f"{alert} has no test that it fires"


def points_of(condition):
    """What its filter says: names of metrics, and labels of them."""
    (kind,) = {"conditionThreshold", "conditionAbsent"} & set(condition)
    told = condition[kind]
    names = re.findall(r'metric\.type = "workload\.googleapis\.com/(\w+)"', told["filter"])
    text = told["filter"] + " ".join(g for a in told["aggregations"] for g in a.get("groupByFields", []))
    return names, re.findall(r"metric\.label\.(\w+)", text)


@test
def policies_for_cloud_monitoring_name_metrics_that_there_are():
    policies = sorted(POLICIES.glob("*.json"))
    assert len(policies) >= 5, policies
    with World({"shop": {}}) as w:
        daemon = w.daemon().ready()
        w.insert_many(1)
        w.settled(sent=1)
        page = whole(daemon)
        for file in policies:
            policy = json.loads(file.read_text("utf-8"))
            assert policy["displayName"].startswith("hikyaku: ") and policy["combiner"] == "OR" and policy["conditions"], file
            assert policy["severity"] in ("CRITICAL", "ERROR", "WARNING") and policy["documentation"]["content"], file
            for condition in policy["conditions"]:
                names, labels = points_of(condition)
                assert len(names) == 1 and page.family(names[0]) in page.types, (file, names)
                counts = page.types[page.family(names[0])] == "counter"
                aligners = {a["perSeriesAligner"] for c in condition.values() if isinstance(c, dict) for a in c["aggregations"]}
                assert counts == (aligners <= {"ALIGN_DELTA", "ALIGN_RATE"}), (file, aligners)
                known = page.labels.get(page.family(names[0]), set())
                assert set(labels) <= known, (file, labels, known)
            named = set(re.findall(r"metric\.label\.(\w+)", policy["documentation"]["content"]))
            assert named <= {label for c in policy["conditions"] for label in points_of(c)[1]}, (file, named)
        daemon.stop()


def json_of(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return json.load(answer)["data"]


@test
def a_real_prometheus_scrapes_two_relays_and_a_shipped_rule_fires():
    server = needs("prometheus")
    with World({"shop": {}, "picky": {}}) as w:
        w.receiver.on("picky", 422)
        relays = [w.daemon("one").ready(), w.daemon("two")]
        if POSTGRES:
            relays[1].ready()
        targets = [f"127.0.0.1:{address(r)[1]}" for r in relays]
        shutil.copy(RULES, w.path("alerts.yml"))
        w.path("prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["alerts.yml"],
            "scrape_configs": [{"job_name": "hikyaku", "static_configs": [{"targets": targets}]}]}), "utf-8")
        promtool("check", "config", str(w.path("prometheus.yml")))
        port = free_port()
        log = open(w.path("prometheus.log"), "wb")
        prometheus = w.child(server, f"--config.file={w.path('prometheus.yml')}", f"--storage.tsdb.path={w.path('tsdb')}",
                             f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn", stdout=log, stderr=log)
        log.close()
        api = f"http://127.0.0.1:{port}/api/v1"

        def value(query):
            try:
                return [float(r["value"][1]) for r in json_of(f"{api}/query?query={urllib.request.quote(query)}")["result"]]
            except OSError:
                assert prometheus.poll() is None, w.path("prometheus.log").read_text("utf-8")
                return []

        def firing():  # others may be pending: a scrape that took too long on a busy machine
            return [a["labels"] for a in json_of(f"{api}/alerts")["alerts"] if a["state"] == "firing"]

        until(lambda: value('sum(up{job="hikyaku"})') == [2], "both relays scraped")
        until(lambda: value("sum(hikyaku_dead_letters_total)") == [0], "no dead letter yet")
        assert firing() == []
        w.insert_many(10)
        w.insert_many(3, prefix="p", destination="picky")
        w.settled(sent=10, dead=3)
        until(lambda: value("sum(hikyaku_messages_sent_total)") == [10], "what was sent")
        until(lambda: value('sum(hikyaku_dead_letters_total{reason="HTTP_4xx"})') == [3], "what died")

        until(lambda: {"alertname": "HikyakuDeadLetters", "job": "hikyaku", "destination": "picky", "reason": "HTTP_4xx",
                       "severity": "warning"} in firing(), lambda: f"the alert, not {firing()}")
        until(lambda: value('max(hikyaku_queue_depth{state="dead"})') == [3], "the store's figures")
        prometheus.terminate()
        prometheus.wait(PATIENCE)
        relays[1].stop()
        relays[0].stop()


# ---- health ----

@test
def ready_ends_with_a_drain_and_live_does_not():
    with World() as w:
        answer = threading.Event()
        w.receiver.on("shop", lambda r: answer.wait(PATIENCE) and 200)
        daemon = w.daemon().ready()
        until(lambda: health(daemon, "/readyz") == (200, None), "ready")
        assert health(daemon, "/livez") == (200, None)
        w.insert(message_id="slow")
        until(w.receiver.arrived, "the request")
        daemon.signal(signal.SIGTERM)
        until(lambda: health(daemon, "/readyz") == (503, "draining"), "draining")
        assert health(daemon, "/livez") == (200, None)
        assert scrape(daemon).get("hikyaku_draining") == 1
        answer.set()
        assert daemon.wait() == 0
        w.settled(sent=1)


@test
def ready_follows_the_store_and_nobody_waits_for_it():
    if not POSTGRES:
        raise Skip("a file does not go away by itself")
    with World() as w:
        daemon = w.daemon().ready()
        until(lambda: health(daemon, "/readyz") == (200, None), "ready")
        whole(daemon)
        postgres.cluster().stop(signal.SIGQUIT)
        try:
            until(lambda: health(daemon, "/readyz") == (503, "the store does not answer"), "not ready")
            assert health(daemon, "/livez") == (200, None)
            until(lambda: scrape(daemon).get("hikyaku_queue_figures_errors_total") >= 1, "figures that cannot be read")
            page = scrape(daemon)
            assert page.get("hikyaku_store_up") == 0 and page.get("hikyaku_ready") == 0
            assert page.sum("hikyaku_store_errors_total", code="unavailable") >= 1
            assert page.get("hikyaku_queue_depth", state="due") == 0, "the last figures stay"
            assert page.get("hikyaku_queue_figures_age_seconds") > 1, "and say how old they are"
        finally:
            postgres.cluster().start()
        until(lambda: health(daemon, "/readyz") == (200, None), "ready again")
        until(lambda: scrape(daemon).get("hikyaku_queue_figures_age_seconds") < 5, "fresh figures")
        w.insert(message_id="a")
        w.settled(sent=1)
        daemon.stop()


def tell(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # a session that was about to end


def frozen(w):
    """Sessions of the relay, stopped as a machine that hangs would stop them."""
    return [pid for pid, in w.sql("SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
                                  "AND pid <> pg_backend_pid()")]


@test
def a_store_that_hangs_is_not_ready_and_does_not_feed_the_watchdog():
    if not POSTGRES:
        raise Skip("a file does not hang by itself")
    with World() as w, Manager(w.path("notify")) as manager:
        daemon = w.daemon(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "400000"}).ready()
        until(lambda: health(daemon, "/readyz") == (200, None), "ready")
        manager.hears("WATCHDOG=1", 3)
        pids = frozen(w)
        for pid in pids:
            tell(pid, signal.SIGSTOP)
        manager.drain()
        before = manager.count("WATCHDOG=1")
        try:
            until(lambda: health(daemon, "/readyz") == (503, "the store does not answer"), "not ready")
            assert health(daemon, "/livez") == (200, None), "the loop turns"
            assert ask(address(daemon), "/metrics")[0] == 200, "nobody waits for the store"
            manager.drain()  # ten seconds without an answer: a hundred times had it been well; each call may end in time
            assert manager.count("WATCHDOG=1") - before <= 8, "fed though the store makes no progress"
        finally:
            for pid in pids:
                tell(pid, signal.SIGCONT)
        until(lambda: health(daemon, "/readyz") == (200, None), "ready again")
        manager.hears("WATCHDOG=1", manager.count("WATCHDOG=1") + 3)
        daemon.stop()


# ---- the service manager ----

class Manager:
    """The socket of a service manager; `name` as NOTIFY_SOCKET has it."""

    def __init__(self, path):
        self.name, self.heard = str(path), []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + self.name[1:] if self.name.startswith("@") else self.name)
        self.socket.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def drain(self):
        try:
            while True:
                self.heard += self.socket.recv(4096).decode("ascii").split("\n")
        except BlockingIOError:
            pass

    def count(self, line):
        return self.heard.count(line)

    def hears(self, line, times=1):
        def enough():
            self.drain()
            return self.count(line) >= times
        until(enough, lambda: f"{times} times {line} in {self.heard}")


@test
def the_service_manager_is_told():
    for name in ("path", f"@hikyaku-e2e-{os.getpid()}"):
        with World() as w, Manager(name if name[0] == "@" else w.path("notify")) as manager:
            daemon = w.daemon(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "400000"})
            manager.hears("READY=1")
            daemon.ready()
            manager.hears("WATCHDOG=1", 3)
            daemon.signal(signal.SIGHUP)
            manager.hears("RELOADING=1")
            manager.hears("READY=1", 2)
            assert any(re.fullmatch(r"MONOTONIC_USEC=\d+", line) for line in manager.heard), manager.heard
            manager.hears("WATCHDOG=1", manager.count("WATCHDOG=1") + 2)
            assert manager.count("STOPPING=1") == 0
            daemon.signal(signal.SIGTERM)
            manager.hears("STOPPING=1")
            assert daemon.wait() == 0


@test
def a_manager_who_watches_another_process_or_none_is_not_fed():
    for env in ({"WATCHDOG_USEC": "400000", "WATCHDOG_PID": "1"}, {}):
        with World() as w, Manager(w.path("notify")) as manager:
            daemon = w.daemon(env={"NOTIFY_SOCKET": manager.name, **env}).ready()
            manager.hears("READY=1")
            w.insert(message_id="a")
            w.settled(sent=1)
            daemon.stop()
            manager.drain()
            assert manager.count("WATCHDOG=1") == 0 and manager.count("STOPPING=1") == 1, manager.heard


@test
def a_manager_that_cannot_be_reached_stops_nothing():
    with World() as w:
        for where in (str(w.path("nobody")), "vsock:2:1234", "@" + "x" * 300):
            daemon = w.daemon(env={"NOTIFY_SOCKET": where}).ready()
            daemon.says("the service manager is not told")
            daemon.stop()


# ---- where it listens ----

class Taken:
    """The default port, held by us, together with other runs of this program, or by whoever keeps it for good."""

    def __enter__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        end = time.monotonic() + PATIENCE
        while not self.take() and time.monotonic() < end:  # a relay of another test gives it back soon
            time.sleep(0.1)
        return self

    def take(self):
        try:
            self.socket.bind(("127.0.0.1", 8189))
            self.socket.listen(1)
            return True
        except OSError:
            return False

    def __exit__(self, *_):
        self.socket.close()


def run(w, expected):
    done = subprocess.run([BINARY, "--config", str(w.config_path), "run"], cwd=w.folder, text=True, capture_output=True,
                          timeout=60, check=False, env=clean_environment())
    assert done.returncode == expected, (done.returncode, done.stderr)
    return done.stderr


@test
def several_relays_on_one_host_just_work():
    with Taken(), World() as w:
        del w.config["admin"]
        w.write_config()
        daemon = w.daemon().ready()
        daemon.says('"continuing without an admin server" error="cannot listen on 127.0.0.1:8189: the port is taken"')
        w.insert(message_id="a")
        w.settled(sent=1)
        daemon.stop()
        w.config["admin"] = {"listen": "127.0.0.1:8189"}  # asked for: then it must be
        w.write_config()
        assert "cannot listen on 127.0.0.1:8189: the port is taken" in run(w, 75)
        w.config["admin"] = {"listen": "none"}
        w.write_config()
        daemon = w.daemon().ready()
        w.insert(message_id="b")
        w.settled(sent=2)
        assert "listening\" address" not in daemon.log() and "admin" not in daemon.log(), daemon.log()
        daemon.stop()


@test
def only_this_machine_may_ask_and_others_only_for_health():
    with World() as w:
        for listen in ("0.0.0.0:0", "[::]:0", "10.0.0.1:8189"):
            w.config["admin"] = {"listen": listen}
            w.write_config()
            assert "must be a loopback address" in run(w, 78)
        w.config["admin"] = {"listen": "none", "health_listen": "192.0.2.1:8190"}
        w.write_config()
        assert "cannot listen on 192.0.2.1:8190" in run(w, 78)
        w.config["admin"] = {"listen": "[::1]:0" if has_ipv6() else "127.0.0.1:0", "health_listen": "0.0.0.0:0"}
        w.write_config()
        daemon = w.daemon().ready()
        inside, outside = address(daemon), ("127.0.0.1", address(daemon, "health")[1])
        for at in inside, outside:
            for path in "/livez", "/readyz", "/metrics":
                until(lambda: ask(at, path)[0] == 200, f"{at} {path}")  # pylint: disable=cell-var-from-loop
        evil = {"Host": "evil.example"}
        assert ask(inside, "/metrics", headers=evil)[0] == 421, "a page that was lured here"
        assert ask(outside, "/metrics", headers=evil)[0] == 200
        daemon.stop()


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


# ---- who asks badly ----

@test
def answers_are_proper_http():
    with World() as w:
        daemon = w.daemon().ready()
        at = address(daemon)
        status, body, headers = ask(at, "/nowhere")
        assert status == 404 and headers["Content-Type"] == "application/problem+json"
        problem = json.loads(body)
        assert (problem["status"], problem["title"], problem["code"]) == (404, "Not Found", "NO_SUCH_PATH"), problem
        for path in "/metrics%00x", "/metrics%00", "/%6detrics", "/metrics/", "//metrics":
            assert ask(at, path)[0] == 404, path
        status, body, headers = ask(at, "/metrics", "DELETE")
        assert (status, headers["Allow"]) == (405, "GET, HEAD") and json.loads(body)["status"] == 405
        length = ask(at, "/livez")[2]["Content-Length"]
        status, body, headers = ask(at, "/livez", "HEAD")
        assert (status, body, headers["Content-Length"]) == (200, "", length)
        assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
        assert ask(at, "/livez", body="x" * 100)[0] == 413
        assert ask(at, "/livez?verbose=1")[0] == 200
        connection = http.client.HTTPConnection(*at, timeout=PATIENCE)  # several on one connection
        for path in ("/livez", "/metrics", "/nowhere", "/livez"):
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == (404 if path == "/nowhere" else 200) and answer.read()
        connection.close()
        daemon.stop()


@test
def no_body_is_taken_for_a_request():
    """What a proxy might see otherwise than we do is refused, and the connection ends. (The library says its 400 twice.)"""
    inner = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    bodies = [b"Content-Length: %d\r\n\r\n" % len(inner) + inner,
              b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
              b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + inner,
              b"Transfer-Encoding: xchunked\r\n\r\n" + inner,
              b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
              b"Content-Length: 5\r\nContent-Length: 0\r\n\r\n" + inner,
              b"Content-Length: +5\r\n\r\n" + inner]
    with World() as w:
        daemon = w.daemon().ready()
        at = address(daemon)
        for method in (b"GET", b"POST"):
            for body in bodies:
                with socket.create_connection(at, timeout=60) as s:
                    s.sendall(method + b" /livez HTTP/1.1\r\nHost: localhost\r\n" + body)
                    got = b""
                    try:
                        while more := s.recv(65536):
                            got += more
                    except ConnectionError:
                        pass
                assert b"hikyaku_uptime" not in got and b" 200 OK" not in got, (method, body, got)
        daemon.stop()


@test
def it_answers_again_after_it_was_stopped_for_a_while():
    with World() as w:
        daemon = w.daemon().ready()
        at = address(daemon)
        for _ in range(3):
            daemon.signal(signal.SIGSTOP)
            time.sleep(0.05)
            daemon.signal(signal.SIGCONT)
            assert ask(at, "/livez")[0] == 200
        daemon.stop()


@test
def slow_clients_hold_up_nobody():
    with World() as w:
        daemon = w.daemon().ready()
        at = address(daemon)
        slow = []
        for i in range(300):
            s = socket.socket()
            s.settimeout(PATIENCE)
            s.connect(at)
            s.sendall([b"", b"G", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ", b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
                       b"Content-Length: 1000000000\r\n\r\nx"][i % 4])
            slow.append(s)
            if i % 50 == 0:
                assert ask(at, "/livez")[0] == 200, i
        deaf = socket.socket()  # asks and asks, and never reads
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        deaf.connect(at)
        deaf.setblocking(False)
        try:
            for _ in range(2000):
                deaf.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        except (BlockingIOError, ConnectionError):
            pass
        assert ask(at, "/livez")[0] == 200 and ask(at, "/metrics")[0] == 200
        w.insert_many(50)
        w.settled(sent=50)
        for s in slow + [deaf]:
            s.close()
        until(lambda: ask(at, "/readyz")[0] == 200, "ready")
        daemon.stop()


@test
@sqlite_only  # it is the server's affair, and takes half a minute
def who_sends_a_byte_now_and_then_is_cut():
    with World() as w:
        daemon = w.daemon().ready()
        at = address(daemon)
        with socket.socket() as drip, socket.socket() as lazy:
            for s in drip, lazy:
                s.connect(at)
                s.settimeout(PATIENCE)
            drip.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
            lazy.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 OK" in lazy.recv(4096)
            for s in drip, lazy:
                s.settimeout(0.5)

            def over(s, byte):
                try:
                    if byte:
                        s.sendall(byte)
                    return s.recv(4096) == b""
                except TimeoutError:
                    return False
                except OSError:
                    return True

            until(lambda: over(drip, b"x"), "the one who drips to be cut")
            until(lambda: over(lazy, b""), "the idle one to be cut")
        assert ask(at, "/livez")[0] == 200
        daemon.stop()


@test
def garbage_is_refused_and_forgotten():
    seed = int(os.environ.get("SEED", "6"))
    chance = random.Random(seed)
    whole_lines = [b"GET /metrics HTTP/1.1\r\n", b"Host: localhost\r\n", b"Host: a\r\nHost: b\r\n", b"\r\n", b"HEAD * HTTP/1.1\r\n",
                   b"GET http://[ HTTP/9.9\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n",
                   b"Transfer-Encoding: chunked\r\n", b"fffffffffffffff\r\n", b"Expect: 100-continue\r\n", b"Connection: upgrade\r\n",
                   b"\0\0\0\0", b"GET /%00%ff%zz HTTP/1.1\r\n", b" folded: x\r\n", b"X: " + b"a" * 20000 + b"\r\n",
                   b"GET /" + b"b" * 20000 + b" HTTP/1.1\r\n", b"Cookie: a=b; c\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                   b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"]
    with World() as w:
        daemon = w.daemon().ready()
        at = address(daemon)
        for _ in range(400):
            request = b"".join(chance.choice(whole_lines) for _ in range(chance.randrange(1, 8)))
            if chance.random() < 0.3:
                request = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 3000)))
            with socket.socket() as s:
                s.settimeout(PATIENCE)
                s.connect(at)
                s.settimeout(0.02)
                try:
                    s.sendall(request)
                    s.recv(65536)
                except OSError:
                    pass
                if chance.random() < 0.3:  # and hang up hard
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert ask(at, "/livez")[0] == 200 and ask(at, "/metrics")[0] == 200, f"SEED={seed}"
        w.insert(message_id="a")
        w.settled(sent=1)
        daemon.stop()


sys.exit(run_tests(TESTS))
