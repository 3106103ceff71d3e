#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces: every attempt a span with the right parent, link and attributes, in JSON and in protobuf as the generated classes read it; the
destination gets a traceparent that continues it; and a collector that is down, slow or overloaded costs spans, never messages. Speaks
TAP.

Usage: telemetry.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them. $OTELCOL names an
OpenTelemetry Collector with otlp and otlphttp in it (tools/otelcol builds one); without one that test is skipped."""
import gzip
import http.server
import importlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.dont_write_bytecode = True  # the source folder stays as it is
from ports import free_port
from support import QUICK, Skip, World, run_tests, until

TESTS = []
CONFIG = 78

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
CLIENT, PRODUCER, ERROR = 3, 4, 2


def test(function):
    TESTS.append(function)
    return function


# ---- a collector ----

class Collector:
    """Takes what is posted to it; `answer(n)` gives (status, headers, delay) of the n-th request with traces, `push` that of metrics, which
    are kept apart: (path, header fields, body)."""

    def __init__(self, answer=lambda n: (200, {}, 0), push=(200, {}, 0)):
        self.bodies, self.headers, self.pushes, self.lock = [], [], [], threading.Lock()
        self.push = push
        self.n, self.closing = 0, threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                metrics, mine = "metrics" in self.path, {k.lower(): v for k, v in self.headers.items()}
                with outer.lock:
                    outer.n += not metrics
                    status, headers, delay = outer.push if metrics else answer(outer.n)
                outer.closing.wait(delay)
                with outer.lock:
                    if metrics:
                        outer.pushes.append((self.path, mine, body))
                    else:
                        outer.headers.append((self.path, mine, status))
                        outer.bodies += [body] if status == 200 else []
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()

    def spans(self):
        with self.lock:
            bodies = list(self.bodies)
        return [span for body in bodies for span in read_json(json.loads(body))]


def value_of(any_value):
    (kind, value), = any_value.items()
    return int(value) if kind == "intValue" else value


def attributes(items):
    found = {a["key"]: value_of(a["value"]) for a in items}
    assert len(found) == len(items), items
    return found


class Span:
    def __init__(self, raw, resource, scope):
        self.resource, self.scope = resource, scope
        self.trace, self.id, self.parent = raw["traceId"], raw["spanId"], raw.get("parentSpanId", "")
        self.name, self.kind, self.flags = raw["name"], raw["kind"], raw["flags"]
        self.start, self.end = int(raw["startTimeUnixNano"]), int(raw["endTimeUnixNano"])
        self.attributes = attributes(raw["attributes"])
        self.events = [(e["name"], attributes(e["attributes"])) for e in raw.get("events", [])]
        self.links = [(x["traceId"], x["spanId"]) for x in raw.get("links", [])]
        self.status = raw.get("status", {}).get("code", 0)
        self.message = raw.get("status", {}).get("message", "")

    @property
    def message_id(self):
        return self.attributes["messaging.message.id"]

    @property
    def attempt(self):
        return self.attributes["hikyaku.attempt"]

    def traceparent(self):
        return f"00-{self.trace}-{self.id}-{self.flags:02x}"


def read_json(request):
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for raw in scope["spans"]:
                yield Span(raw, attributes(resource["resource"]["attributes"]), scope["scope"])


def telemetry(collector, protocol="http/json", **more):
    return {"telemetry": {"endpoint": collector.url, "protocol": protocol, **more}}


SOON = {"OTEL_BSP_SCHEDULE_DELAY": "50"}


def wait_for(collector, n):
    until(lambda: len(collector.spans()) >= n, lambda: f"{n} spans, not {len(collector.spans())}")
    return sorted(collector.spans(), key=lambda s: (s.message_id, s.start))


# ---- the generated classes ----

def proto_classes():
    """opentelemetry-proto by name, into a folder of its own."""
    try:
        return importlib.import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    except ImportError:
        pass
    folder = tempfile.mkdtemp(prefix="hikyaku-otlp-")
    try:
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", folder, "opentelemetry-proto"],
                              text=True, capture_output=True, timeout=120, check=False)
        if done.returncode != 0:
            raise Skip("opentelemetry-proto cannot be had by pip: " + (done.stderr.strip().splitlines() or ["?"])[-1][:100])
        sys.path.insert(0, folder)
        return importlib.import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    except (OSError, ImportError, subprocess.TimeoutExpired) as why:
        raise Skip(f"opentelemetry-proto cannot be had by pip: {why}") from None
    finally:
        proto_classes.folder = folder


proto_classes.folder = None


def as_json(request):
    """A parsed protobuf request in the shape of our JSON, so that one reader serves both."""
    def attrs(items):
        out = []
        for item in items:
            kind = item.value.WhichOneof("value")
            name = {"string_value": "stringValue", "int_value": "intValue"}[kind]
            out.append({"key": item.key, "value": {name: getattr(item.value, kind)}})
        return out

    return {"resourceSpans": [{
        "resource": {"attributes": attrs(r.resource.attributes)},
        "scopeSpans": [{
            "scope": {"name": s.scope.name, "version": s.scope.version},
            "spans": [{
                "traceId": x.trace_id.hex(), "spanId": x.span_id.hex(), "parentSpanId": x.parent_span_id.hex(),
                "name": x.name, "kind": x.kind, "flags": x.flags, "startTimeUnixNano": x.start_time_unix_nano,
                "endTimeUnixNano": x.end_time_unix_nano, "attributes": attrs(x.attributes),
                "events": [{"name": e.name, "attributes": attrs(e.attributes)} for e in x.events],
                "links": [{"traceId": k.trace_id.hex(), "spanId": k.span_id.hex()} for k in x.links],
                "status": {"code": x.status.code, "message": x.status.message}} for x in s.spans]} for s in r.scope_spans]}
        for r in request.resource_spans]}


# ---- what is in a span ----

def check_retries(w, spans, trace, parent, kind):
    """Three attempts of one message, two of them failed."""
    arrived = w.receiver.arrived()
    assert [s.attempt for s in spans] == [1, 2, 3]
    assert {s.trace for s in spans} == {trace} and {s.parent for s in spans} == {parent}
    assert {s.kind for s in spans} == {kind} and {s.name for s in spans} == {"send shop"}
    assert len({s.id for s in spans}) == 3
    assert [r.headers["traceparent"] for r in arrived] == [s.traceparent() for s in spans], "sent onward"
    assert [s.links for s in spans] == [[], [(trace, spans[0].id)], [(trace, spans[1].id)]]
    for span, request, status in zip(spans, arrived, (503, 429, 200)):
        a = span.attributes
        assert span.start <= int(request.answered * 1e9) and span.start < span.end
        assert a["messaging.system"] == "hikyaku" and a["messaging.destination.name"] == "shop", a
        assert a["messaging.operation.name"] == a["messaging.operation.type"] == "send", a
        assert a["messaging.message.id"] == "m-1" and a["messaging.message.conversation_id"] == "order-7", a
        assert a["http.response.status_code"] == status and a["http.request.method"] == "POST", a
        assert a["server.address"] == "127.0.0.1" and a["server.port"] == w.receiver.port, a
        assert a["messaging.message.body.size"] == len(request.body), a
    for span, code, cls, cause in zip(spans, ("503", "429"), ("transient", "rate_limit"), ("HTTP_503", "RATE_LIMITED")):
        assert span.status == ERROR and span.message == f"the answer was HTTP {code}"
        assert span.attributes["error.type"] == code
        (name, failure), (later, decision) = span.events
        assert (name, later) == ("exception", "hikyaku.retry")
        assert failure == {"exception.type": code, "exception.message": span.message}
        assert decision["hikyaku.class"] == cls and decision["hikyaku.cause"] == cause and decision["hikyaku.wait_ms"] > 0
    assert spans[2].status == 0 and not spans[2].events and "error.type" not in spans[2].attributes


def three_attempts(w, **row):
    w.receiver.on("shop", lambda r: {1: 503, 2: 429}.get(r.n, 200))
    w.insert(message_id="m-1", correlation_id="order-7", payload='{"secret": "of-the-payload"}', **row)
    return w.daemon(env={**SOON, "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test%2C1,team=a"}).ready()


@test
def attempts_are_children_of_the_rows_traceparent_and_retries_are_linked():
    with Collector() as c, World(**telemetry(c)) as w:
        daemon = three_attempts(w, traceparent=PARENT)
        spans = wait_for(c, 3)
        check_retries(w, spans, TRACE, SPAN, CLIENT)
        daemon.stop()
        r = spans[0].resource
        assert r["service.name"] == "hikyaku" and r["deployment.environment.name"] == "test,1" and r["team"] == "a"
        assert r["service.version"] and re.fullmatch("[0-9a-f]{32}", r["service.instance.id"]) and r["hikyaku.relay"]
        assert spans[0].scope["name"] == "hikyaku"
        path, headers, _ = c.headers[0]
        assert path == "/v1/traces" and headers["content-type"] == "application/json"
        assert not any(b"of-the-payload" in body for body in c.bodies), "nothing of a payload"
        assert f"trace_id={TRACE} span_id={spans[0].id}" in daemon.log()
        assert 'msg="telemetry stopped" sent=3 dropped=0 failed=0' in daemon.log()


@test
def without_a_traceparent_one_trace_holds_all_attempts():
    with Collector() as c, World(**telemetry(c)) as w:
        daemon = three_attempts(w)
        spans = wait_for(c, 3)
        check_retries(w, spans, spans[0].trace, "", PRODUCER)
        daemon.stop()


@test
def after_a_restart_the_trace_goes_on_without_a_link():
    with Collector() as c, World(**telemetry(c), policies={"quick": {**QUICK, "backoff": {"base": "1s", "cap": "1s"}}}) as w:
        w.receiver.on("shop", lambda r: 503 if r.n == 1 else 200)
        w.insert(message_id="m-1")
        daemon = w.daemon(env=SOON).ready()
        wait_for(c, 1)
        daemon.kill()
        w.daemon(env=SOON)
        first, second = wait_for(c, 2)
        assert first.trace == second.trace and second.attempt == 2 and second.links == []
        assert first.resource["service.instance.id"] != second.resource["service.instance.id"]
        w.settled(sent=1)
        w.daemons[-1].stop()


@test
def a_dead_letter_and_an_unreachable_destination_are_told():
    with Collector() as c, World({"shop": {}, "gone": {}}, **telemetry(c), policies={"quick": {**QUICK, "max_attempts": 1}}) as w:
        w.config["destinations"]["gone"]["http"]["url"] = f"http://127.0.0.1:{free_port()}/"
        w.write_config()
        w.receiver.on("shop", 404)
        w.insert(message_id="a")
        w.insert(message_id="b", destination="gone")
        daemon = w.daemon(env=SOON).ready()
        shop, gone = wait_for(c, 2)
        assert shop.attributes["error.type"] == "404" and shop.events[1][0] == "hikyaku.dead_letter"
        assert shop.events[1][1]["hikyaku.reason"] == w.letters()["a"]
        assert gone.attributes["error.type"] == "connect" and gone.status == ERROR and gone.message
        assert "http.response.status_code" not in gone.attributes
        daemon.stop()


@test
def masks_and_secrets_hold_in_spans():
    with Collector() as c, World(**telemetry(c, headers={"X-Scope": "scope-hunter2"}),
                                 masks=[{"paths": ["customer.email"]}]) as w:
        payload = json.dumps({"customer": {"email": "alice@example.org"}})
        w.insert(message_id="m-1", payload=payload, idempotency_key="für alice@example.org")
        w.insert(message_id="m-2", payload=payload, idempotency_key="für Bearer abc.hunter2")
        daemon = w.daemon(env=SOON).ready()
        spans = wait_for(c, 2)
        daemon.stop()
        assert all("idempotency_key" in s.message and "***" in s.message for s in spans), [s.message for s in spans]
        everything = b"".join(c.bodies) + daemon.log().encode()
        assert b"example.org" not in everything and b"hunter2" not in everything, everything
        assert c.headers[0][1]["x-scope"] == "scope-hunter2"


@test
def hostile_rows_leave_spans_that_both_formats_carry():
    hostile = ['","x":"', "two\nlines", "\u2028", "x" * 5000, "飛脚 🚀", "\\"]
    pb = proto_classes()
    with Collector() as c, Collector() as d, World(**telemetry(c)) as w:
        def go(collector, protocol):
            w.config["telemetry"] = {"endpoint": collector.url, "protocol": protocol}
            w.write_config()
            daemon = w.daemon(env=SOON).ready()
            n = len(w.receiver.arrived())
            for i, text in enumerate(hostile):
                w.insert(message_id=f"{protocol}-{i}", correlation_id=text, event_type=text)
            until(lambda: len(w.receiver.arrived()) == n + len(hostile), "all")
            daemon.stop()

        go(c, "http/json")
        go(d, "http/protobuf")
        parsed = [span for body in d.bodies for span in read_json(as_json(pb.ExportTraceServiceRequest.FromString(body)))]
        for spans in (c.spans(), parsed):
            found = {s.attributes["messaging.message.conversation_id"] for s in spans}
            assert found == {text[:256] for text in hostile}, found


@test
def protobuf_is_read_by_the_generated_classes_and_says_the_same():
    pb = proto_classes()
    with Collector() as c, World(**telemetry(c, "http/protobuf")) as w:
        daemon = three_attempts(w, traceparent=PARENT)
        w.settled(sent=1)
        daemon.stop()
        spans = []
        for body in c.bodies:
            request = pb.ExportTraceServiceRequest.FromString(body)
            assert request.ByteSize() == len(body), "nothing that the classes do not know"
            assert request.SerializeToString() == body
            spans += read_json(as_json(request))
        check_retries(w, sorted(spans, key=lambda s: s.start), TRACE, SPAN, CLIENT)
        assert c.headers[0][1]["content-type"] == "application/x-protobuf"


# ---- metrics ----

METRICS_SOON = {"metrics_interval": "200ms"}


def shown(daemon):
    """{(name, labels): value} of /metrics, histograms by their lines."""
    address = re.search(r'msg="admin listening" address=(\S+)', daemon.log())[1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line and line[0] != "#"]
    found = {}
    for line in lines:
        head, value = line.rsplit(" ", 1)
        name, _, labels = head.partition("{")
        found[name, frozenset(re.findall(r'(\w+)="([^"]*)"', labels))] = float(value)
    return found


def pushed(request):
    """The same of an ExportMetricsServiceRequest as JSON."""
    found, (resource,) = {}, request["resourceMetrics"]
    for metric in (m for scope in resource["scopeMetrics"] for m in scope["metrics"]):
        (kind,) = {"sum", "gauge", "histogram"} & set(metric)
        data, name = metric[kind], metric["name"]
        assert kind == "gauge" or data["aggregationTemporality"] in (2, "AGGREGATION_TEMPORALITY_CUMULATIVE"), metric
        assert kind != "sum" or data["isMonotonic"] and name.endswith("_total"), metric
        assert metric["unit"] == ("s" if "_seconds" in name else "") if "unit" in metric else True, metric
        for point in data["dataPoints"]:
            labels = frozenset((a["key"], a["value"]["stringValue"]) for a in point.get("attributes", []))
            assert 0 < int(point["startTimeUnixNano"]) <= int(point["timeUnixNano"]), point
            if kind != "histogram":
                found[name, labels] = float(point.get("asInt", point.get("asDouble", 0)))
                continue
            counts, total = [int(n) for n in point["bucketCounts"]], 0
            assert len(counts) == len(point["explicitBounds"]) + 1 and sum(counts) == int(point.get("count", 0)), point
            for bound, n in zip([*point["explicitBounds"], float("inf")], counts):
                total += n
                le = "+Inf" if bound == float("inf") else f"{bound:.6f}".rstrip("0").rstrip(".")
                found[name + "_bucket", labels | {("le", le)}] = total
            found[name + "_sum", labels], found[name + "_count", labels] = point.get("sum", 0), total
    return found


def attributes_of(request):
    return {a["key"]: a["value"]["stringValue"] for a in request["resourceMetrics"][0]["resource"]["attributes"]}


def check_pushes(c, read, **conf):
    """What is pushed becomes what is shown: while nothing happens only ages, and counters of idle work, go on."""
    moving = re.compile(r"_age_seconds$|_uptime_|_polls_|_store_call_|_telemetry_|_scans_|_exchanges_|_event_looks|_evaluations_|_figures_|_ready$")

    def still(found):
        return {k: v for k, v in found.items() if not moving.search(k[0])}

    with World(("shop", "other"), telemetry={"endpoint": c.url, **conf, **METRICS_SOON},
               policies={"quick": {**QUICK, "max_attempts": 1}}) as w:
        w.receiver.on("other", 422)
        daemon = w.daemon().ready()
        w.insert_many(30)
        w.insert_many(3, prefix="dies", destination="other")
        w.settled(sent=30, dead=3)

        def same():
            page, last = still(shown(daemon)), read(c.pushes[-1][2]) if c.pushes else None
            return last and page == still(pushed(last)) and page["hikyaku_messages_sent_total", frozenset({("destination", "shop")})] == 30 \
                and page.get(("hikyaku_queue_depth", frozenset({("state", "dead")}))) == 3 and last

        request = until(same, "what is pushed to be what is shown")
        assert {k for k, _ in shown(daemon)} == {k for k, _ in pushed(request)}, "the same metrics"
        assert attributes_of(request)["service.name"] == "hikyaku" and attributes_of(request)["hikyaku.relay"]
        daemon.stop()
        assert {path for path, _, _ in c.pushes} == {"/v1/metrics"}
        return request


@test
def metrics_are_pushed_as_they_are_shown():
    with Collector() as c:
        check_pushes(c, json.loads, protocol="http/json")
        assert c.pushes[0][1]["content-type"] == "application/json"


@test
def metrics_in_protobuf_are_read_by_the_generated_classes():
    proto_classes()
    classes = importlib.import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    to_json = importlib.import_module("google.protobuf.json_format").MessageToDict

    def read(body):
        request = classes.ExportMetricsServiceRequest.FromString(body)
        assert request.ByteSize() == len(body) and request.SerializeToString() == body, "nothing that the classes do not know"
        return to_json(request)

    with Collector() as c:
        check_pushes(c, read, compression="gzip")
        assert c.pushes[0][1]["content-encoding"] == "gzip"


@test
def metrics_are_pushed_where_nobody_may_ask_for_them_and_once_more_at_the_end():
    with Collector() as c, World(telemetry={"endpoint": c.url + "/v1/traces", "protocol": "http/json", "traces": False},
                                 admin={"listen": "none"}) as w:
        daemon = w.daemon(env={"OTEL_METRIC_EXPORT_INTERVAL": "3600000"}).ready()
        w.insert_many(5)
        w.settled(sent=5)
        assert not c.pushes
        daemon.stop()
        (path, _, body), = c.pushes
        sent = pushed(json.loads(body))["hikyaku_messages_sent_total", frozenset({("destination", "shop")})]
        assert path == "/v1/metrics" and sent == 5 and c.n == 0, (path, sent)


@test
def a_collector_that_takes_no_metrics_costs_a_line_of_the_log():
    with Collector(push=(404, {}, 0)) as c, World(telemetry={"endpoint": c.url, **METRICS_SOON}) as w:
        daemon = w.daemon(env=SOON).ready()
        w.insert_many(20)
        w.settled(sent=20)
        until(lambda: len(c.pushes) >= 3, "it is asked all the same")
        daemon.says('msg="metrics are not taken"')
        assert "HTTP 404" in daemon.log() and daemon.log().count("metrics are not taken") == 1
        c.push = (200, {}, 0)
        daemon.says('msg="metrics are taken again"')
        daemon.stop()
        assert counts(daemon)[0] == 20, daemon.log()


# ---- what is sent at all ----

@test
def without_telemetry_the_rows_own_traceparent_goes_out():
    with Collector() as c, World() as w:
        daemon = w.daemon().ready()
        w.insert(message_id="a", traceparent=PARENT)
        w.insert(message_id="b")
        w.settled(sent=2)
        daemon.stop()
        sent = {r.id: r.headers.get("traceparent") for r in w.receiver.arrived()}
        assert sent == {"a": PARENT, "b": None} and c.n == 0
        for off in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}):
            daemon = w.daemon(env={"OTEL_EXPORTER_OTLP_ENDPOINT": c.url, **SOON, **off}).ready()
            n = len(w.receiver.arrived())
            w.insert(message_id=f"off-{n}", traceparent=PARENT)
            until(lambda: len(w.receiver.arrived()) > n, "it is sent")
            daemon.stop()
            assert w.receiver.arrived()[-1].headers["traceparent"] == PARENT and c.n == 0
            assert "telemetry" not in daemon.log()


@test
def the_environment_wins_and_is_honoured():
    with Collector() as c, World(telemetry={"endpoint": "http://127.0.0.1:9", "headers": {"X-A": "file", "X-B": "file"}}) as w:
        env = {**SOON, "OTEL_EXPORTER_OTLP_ENDPOINT": c.url + "/base/", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
               "OTEL_EXPORTER_OTLP_HEADERS": "x-a=env%20one, X-C = two", "OTEL_SERVICE_NAME": "shop-relay",
               "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd", "OTEL_BSP_MAX_QUEUE_SIZE": "many"}
        daemon = w.daemon(env=env).ready()
        w.insert(message_id="m-1")
        span, = wait_for(c, 1)
        daemon.stop()
        path, headers, _ = c.headers[0]
        assert path == "/base/v1/traces"
        assert (headers["x-a"], headers["x-b"], headers["x-c"]) == ("env one", "file", "two"), headers
        assert span.resource["service.name"] == "shop-relay"
        assert "variable=OTEL_BSP_MAX_QUEUE_SIZE" in daemon.log() and "variable=OTEL_EXPORTER_OTLP_COMPRESSION" in daemon.log()
        env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = c.url + "/only/traces"
        daemon = w.daemon(env=env).ready()
        w.insert(message_id="m-2")
        wait_for(c, 2)
        daemon.stop()
        assert c.headers[-1][0] == "/only/traces"


@test
def requests_are_compressed_where_that_is_asked_for():
    cases = [({"compression": "gzip"}, {}, "gzip"), ({}, {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, "gzip"),
             ({"compression": "gzip"}, {"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "none"}, None)]
    for conf, env, encoding in cases:
        with Collector() as c, World(**telemetry(c, **conf)) as w:
            daemon = w.daemon(env={**SOON, **env}).ready()
            w.insert_many(300)
            assert len({span.id for span in wait_for(c, 300)}) == 300
            daemon.stop()
            assert {headers.get("content-encoding") for _, headers, _ in c.headers} == {encoding}, c.headers


@test
def a_collector_that_talks_without_end_is_cut_off():
    """In its answer's body, whose status counts, and in its header fields."""
    answers = {"body": b"HTTP/1.1 200 OK\r\n\r\n", "headers": b"HTTP/1.1 200 OK\r\n"}
    more = {"body": b"x" * 65536, "headers": b"X-Filler: " + b"y" * 1000 + b"\r\n"}
    for case in answers:
        with socket.create_server(("127.0.0.1", 0)) as server:
            ended = []

            def talk():
                peer, _ = server.accept()
                with peer:
                    peer.recv(65536)
                    peer.sendall(answers[case])
                    try:
                        while True:
                            peer.sendall(more[case])
                            ended.append(len(more[case]))
                    except OSError:
                        pass
                server.close()

            thread = threading.Thread(target=talk, daemon=True)
            thread.start()
            with World(telemetry={"endpoint": f"http://127.0.0.1:{server.getsockname()[1]}"}) as w:
                daemon = w.daemon(env=SOON).ready()
                w.insert(message_id="m-1")
                thread.join(60)
                assert not thread.is_alive() and sum(ended) < 64 << 20, sum(ended)
                daemon.stop()
                assert (counts(daemon)[0] == 1) == (case == "body"), (case, daemon.log())


@test
def grpc_and_what_is_no_endpoint_are_refused_with_a_reason():
    with World() as w:
        for env, words in (({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317"},
                            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf")),
                           ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"))):
            daemon = w.daemon(env=env)
            assert daemon.wait() == CONFIG, daemon.log()
            assert all(word in daemon.log() for word in words), daemon.log()


@test
def sampling_decides_what_is_exported_and_what_the_destination_is_told():
    with Collector() as c, World(**telemetry(c)) as w:
        def flags(traceparent=None, **env):
            daemon = w.daemon(env={**SOON, **env}).ready()
            before, n = len(c.spans()), len(w.receiver.arrived())
            for i in range(20):
                w.insert(message_id=f"s-{n}-{i}", **({"traceparent": traceparent} if traceparent else {}))
            until(lambda: len(w.receiver.arrived()) == n + 20, "all are sent")
            told = [r.headers["traceparent"][-2:] for r in w.receiver.arrived()[n:]]
            until(lambda: len(c.spans()) - before >= told.count("01"), "what is sampled")  # a relay that ends waits no longer than 3 s
            daemon.stop()
            return len(c.spans()) - before, told.count("01")

        assert flags() == (20, 20)
        assert flags(traceparent=PARENT[:-2] + "00") == (0, 0), "the parent was not sampled"
        assert flags(OTEL_TRACES_SAMPLER="always_off") == (0, 0)
        assert flags(OTEL_TRACES_SAMPLER="always_on", traceparent=PARENT[:-2] + "00") == (20, 20)
        exported, told = flags(OTEL_TRACES_SAMPLER="parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG="0.5")
        assert exported == told and 0 < told < 20, (exported, told)
        w.config["telemetry"]["sample"] = 0
        w.write_config()
        assert flags() == (0, 0)
        assert flags(traceparent=PARENT) == (20, 20)


# ---- a collector in trouble ----

def deliver(w, n=200):
    w.insert_many(n)
    until(lambda: len(w.receiver.accepted()) == n, "all are delivered")


def counts(daemon):
    line = [x for x in daemon.log().splitlines() if 'msg="telemetry stopped"' in x][-1]
    return tuple(int(re.search(rf" {word}=(\d+)", line)[1]) for word in ("sent", "dropped", "failed"))


@test
def a_collector_that_is_down_costs_spans_and_nothing_else():
    with World(telemetry={"endpoint": "http://127.0.0.1:9"}) as w:
        daemon = w.daemon(env={**SOON, "OTEL_BSP_MAX_QUEUE_SIZE": "50", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10"}).ready()
        deliver(w)
        daemon.says('msg="telemetry is not taken"')
        daemon.stop()
        sent, dropped, failed = counts(daemon)
        assert sent == 0 and dropped > 0 and failed > 0 and dropped + failed == 200, (sent, dropped, failed)
        assert w.statuses() == {"sent": 200}


@test
def a_collector_that_never_answers_does_not_hold_up_the_end():
    with Collector(lambda n: (200, {}, 600), push=(200, {}, 600)) as c, World(**telemetry(c)) as w:
        daemon = w.daemon(env={**SOON, "OTEL_BSP_MAX_QUEUE_SIZE": "20", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5"}).ready()
        deliver(w)
        until(lambda: c.n > 0, "it was asked")
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0  # flushing is bounded; the collector would take ten minutes
        sent, dropped, failed = counts(daemon)
        assert sent == 0 and dropped > 0 and failed > 0 and dropped + failed == 200, (sent, dropped, failed)


@test
def an_overloaded_collector_is_asked_again_when_it_said():
    asked = []

    def answer(n):
        asked.append(time.monotonic())
        return (503, {"Retry-After": "2"}, 0) if n == 1 else (429, {}, 0) if n == 2 else (200, {}, 0)

    with Collector(answer) as c, World(**telemetry(c)) as w:
        daemon = w.daemon(env=SOON).ready()
        deliver(w, 50)
        assert len(wait_for(c, 50)) == 50
        until(lambda: "telemetry is taken again" in daemon.log() or "telemetry is not taken" not in daemon.log(), "it is told")
        daemon.stop()
        assert counts(daemon) == (50, 0, 0)
        assert asked[1] - asked[0] >= 2, "not before it asked for"
        assert len({s.id for s in c.spans()}) == 50, "each once"


@test
def a_collector_that_refuses_is_not_asked_again():
    with Collector(lambda n: (400, {}, 0)) as c, World(**telemetry(c)) as w:
        daemon = w.daemon(env=SOON).ready()
        deliver(w, 20)
        daemon.says('error="the collector answered HTTP 400"')
        daemon.stop()
        assert counts(daemon)[::2] == (0, 20)
        assert c.n <= 20


# ---- a real one ----

def otelcol():
    built = os.path.join(os.environ.get("SOURCE_DIR", "/nowhere"), "build", "otelcol", "otelcol")
    found = os.environ.get("OTELCOL") or shutil.which("otelcol") or (built if os.path.exists(built) else None)
    if not found:
        raise Skip("there is no OpenTelemetry Collector ($OTELCOL, otelcol in the path, or what tools/otelcol builds)")
    return found


@test
def a_real_collector_takes_both_protocols():
    program = otelcol()
    for protocol in ("http/protobuf", "http/json"):
        with Collector() as behind, World() as w:
            port = free_port()
            w.path("collector.yaml").write_text(json.dumps({
                "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
                "exporters": {"otlphttp": {"endpoint": behind.url, "encoding": "json", "compression": "none"}},
                "service": {"pipelines": {name: {"receivers": ["otlp"], "exporters": ["otlphttp"]} for name in ("traces", "metrics")},
                            "telemetry": {"metrics": {"level": "none"}}}}), encoding="ascii")
            with open(w.path("collector.log"), "wb") as log:
                collector = w.child(program, "--config", f"file:{w.path('collector.yaml')}", stdout=log, stderr=log)

            def up():
                assert collector.poll() is None, w.path("collector.log").read_text()[-2000:]
                with socket.socket() as s:
                    return s.connect_ex(("127.0.0.1", port)) == 0

            until(up, "the collector listens")
            w.config["telemetry"] = {"endpoint": f"http://127.0.0.1:{port}", "protocol": protocol}
            w.write_config()
            daemon = three_attempts(w, traceparent=PARENT)
            w.settled(sent=1)
            daemon.stop()
            assert counts(daemon) == (3, 0, 0), daemon.log()
            check_retries(w, wait_for(behind, 3), TRACE, SPAN, CLIENT)
            sent = ("hikyaku_messages_sent_total", frozenset({("destination", "shop")}))
            until(lambda: any(pushed(json.loads(body)).get(sent) == 1 for _, _, body in behind.pushes), "the metrics behind the collector")


if __name__ == "__main__":
    try:
        CODE = run_tests(TESTS)
    finally:
        if proto_classes.folder:
            shutil.rmtree(proto_classes.folder, ignore_errors=True)
    sys.exit(CODE)
