# SPDX-License-Identifier: Apache-2.0
"""What the tests of destinations at AWS share: moto, which checks signatures and rights; an endpoint that says what a test wants; a world whose
destinations are at AWS."""
import http.client
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import urllib.parse

import clients
from ports import free_port
from support import BINARY, QUICK, Skip, World, clean_environment, until

HERE = pathlib.Path(__file__).resolve().parent
LOOPBACK = ["127.0.0.0/8"]
REGION = "ap-northeast-1"
ACCOUNT = "123456789012"
SOON = {**QUICK, "timeout": "60s", "max_attempts": 1, "classes": {"auth": {"pause_after": 0}, "rate_limit": {"max_attempts": 1}}}
HARD = {"backoff": {"kind": "fixed", "base": "100ms"}, "jitter": "none", "max_attempts": 100, "timeout": "10s", "breaker": "off"}


def python():
    """An interpreter that can import moto and botocore in the versions of requirements-aws.txt."""
    wanted = (HERE / "requirements-aws.txt").read_text(encoding="utf-8")
    packages = [line for line in wanted.splitlines() if not line.startswith("#")]
    check = "import importlib.metadata as m, moto.server; assert all(m.version(p) == v for p, v in (" + ", ".join(
        str(tuple(p.replace("[server]", "").split("=="))) for p in packages) + "))"
    if subprocess.run([sys.executable, "-c", check], capture_output=True, check=False).returncode == 0:
        return sys.executable

    def make(folder):
        return (clients.step("there is no venv", sys.executable, "-m", "venv", str(folder))
                or clients.step("pip cannot fetch moto and botocore", str(folder / "bin/python"), "-m", "pip", "install", "-q", "--no-compile",
                                "--only-binary", ":all:", "--disable-pip-version-check", *packages))
    return clients.folder_of("aws-python", (wanted + sys.version + sys.executable).encode(), make) / "bin/python"


# moto's Kinesis says itself that it is not safe for concurrency: it writes one record over another. Whole requests go in one by one.
ONE_BY_ONE = """
import io, sys, threading
import moto.server as m
run, lock = m.run_simple, threading.Lock()

def one_by_one(app):
    def call(environ, start_response):
        wanted = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(wanted)
        if len(body) < wanted:
            raise OSError("cut off")
        environ["wsgi.input"] = io.BytesIO(body)
        with lock:
            return list(app(environ, start_response))
    return call
m.run_simple = lambda host, port, app, **more: run(host, port, one_by_one(app), **more)
m.main(sys.argv[1:])
"""


class Moto:
    """With the user `relay`, whose key may send to every queue but `secret`. Calls for tests go in without a signature: moto checks
    none before its first calls are used up, so queues are made first."""

    def __init__(self, world, free_calls="infinity", port=None, threads=True, **queues):
        self.port = port or free_port()
        self.log = open(world.path("moto.log"), "w", encoding="utf-8")  # pylint: disable=consider-using-with
        env = {**clean_environment(), "INITIAL_NO_AUTH_ACTION_COUNT": str(free_calls)}
        self.process = subprocess.Popen([str(python()), *(["-m", "moto.server"] if threads else ["-c", ONE_BY_ONE]), "-H", "127.0.0.1", "-p", str(self.port)], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, env=env)
        world.children.append(self.process)
        until(self.answers, "moto to answer")
        self.url = {name: self.call("CreateQueue", QueueName=name + (".fifo" if attributes.get("FifoQueue") else ""), Attributes=attributes)["QueueUrl"]
                    for name, attributes in queues.items()}

    def answers(self):
        try:
            self.request("GET", "/moto-api/data.json")
            return True
        except OSError:
            assert self.process.poll() is None, "moto ended"
            return False

    def request(self, method, path, body="", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def call(self, action, **fields):
        status, text = self.request("POST", "/", json.dumps(fields), {
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}",
            "Authorization": f"AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/sqs/aws4_request, SignedHeaders=host, Signature=0"})
        assert status == 200, text
        return json.loads(text)

    def json(self, service, target, **fields):
        """A call of a service that speaks JSON, such as Kinesis."""
        status, text = self.request("POST", "/", json.dumps(fields), {
            "Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target,
            "Authorization": f"AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0"})
        assert status == 200, text
        return json.loads(text or "{}")

    def form(self, service, region=REGION, **fields):
        """A call of a service that speaks XML, such as SNS."""
        status, text = self.request("POST", "/", urllib.parse.urlencode(fields), {
            "Content-Type": "application/x-www-form-urlencoded",
            "Authorization": f"AWS4-HMAC-SHA256 Credential=test/20260101/{region}/{service}/aws4_request, SignedHeaders=host, Signature=0"})
        assert status == 200, text
        return text

    def drain(self, name):
        """What nobody has seen yet."""
        found = []
        while True:
            some = self.call("ReceiveMessage", QueueUrl=self.url[name], MaxNumberOfMessages=10, MessageAttributeNames=["All"],
                             AttributeNames=["All"], VisibilityTimeout=3600).get("Messages", [])
            if not some:
                return found
            found += some
            if name == "ordered":  # its groups wait for each other
                self.call("DeleteMessageBatch", QueueUrl=self.url[name],
                          Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(some)])


class ElasticMq:
    """Another SQS, as strict with its limits as the real one. It checks no signatures."""

    def __init__(self, world, queues):
        java, maven = shutil.which("java"), shutil.which("mvn")
        if not java or not maven:
            raise Skip("java and mvn are not installed")
        pom = (HERE / "elasticmq_jars" / "pom.xml").read_text(encoding="utf-8")

        def make(folder):
            (folder / "pom.xml").write_text(pom, encoding="utf-8")
            return clients.step("Maven cannot fetch ElasticMQ", maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", cwd=folder)
        jars = clients.folder_of("elasticmq", pom.encode(), make) / "lib"
        self.port, settings, self.log = free_port(), world.path("elasticmq.conf"), world.path("elasticmq.log")
        settings.write_text(f"""include classpath("application.conf")
node-address {{ protocol = http, host = "127.0.0.1", port = {self.port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-port = {self.port}, bind-hostname = "127.0.0.1", sqs-limits = strict }}
rest-stats {{ enabled = false }}
queues {{ {queues} }}
""", encoding="utf-8")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([java, "-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Dconfig.file={settings}", "-cp", f"{jars}/*",
                                             "org.elasticmq.server.Main"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        world.children.append(self.process)
        until(self.answers, lambda: "ElasticMQ to answer: " + self.log.read_text(encoding="utf-8", errors="replace")[-2000:])

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/000000000000/{name}"

    def answers(self):
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        try:
            self.call("ListQueues")
            return True
        except OSError:
            return False

    def call(self, action, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", "/", json.dumps(fields), {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"})
            answer = connection.getresponse()
            text = answer.read().decode()
            assert answer.status == 200, text
            return json.loads(text or "{}")
        finally:
            connection.close()

    def drain(self, name):
        found = []
        while True:
            some = self.call("ReceiveMessage", QueueUrl=self.url(name), MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]).get("Messages", [])
            if not some:
                return found
            found += some
            self.call("DeleteMessageBatch", QueueUrl=self.url(name), Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(some)])


class AwsWorld(World):
    env = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG", "HOME": "/nonexistent"}

    def __init__(self, env=None, **more):
        super().__init__(destinations=(), policies={"soon": SOON, "hard": HARD}, default_policy="soon", **more)
        self.env = {**AwsWorld.env, **env} if env else AwsWorld.env

    def at(self, kind, name, order="none", policy="soon", **options):
        self.config["destinations"][name] = {kind: {"region": REGION, **options}, "allow": LOOPBACK, "order": order, "policy": policy}
        self.write_config()

    def to(self, name, url, **more):
        self.at("sqs", name, queue_url=url, **more)

    def try_hikyaku(self, *args):
        done = subprocess.run([BINARY, "--config", str(self.config_path), *args], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=120, check=False, env={**clean_environment(), **self.env})
        return done.returncode, done.stdout + done.stderr

    def start(self):
        return self.daemon(env=self.env)

    def is_sent(self, *ids):
        until(lambda: all(self.message(i)[0] == "sent" for i in ids),
              lambda: self.sql("SELECT message_id, last_error FROM outbox_messages")[:5] + self.sql("SELECT message_id, error_message FROM dead_letters")[:5])

    def is_dead_of(self, message_id, reason, words, possibly=False):
        rows = until(lambda: self.sql("SELECT reason_code, error_message, error_detail FROM dead_letters WHERE message_id = ?", message_id),
                     lambda: f"{message_id} dead: {self.statuses()}")
        detail = json.loads(rows[0][2] or '{"possibly_delivered": false}')
        assert (rows[0][0], detail["possibly_delivered"]) == (reason, possibly) and words in rows[0][1], rows


def values(message):
    return {name: a["StringValue"] for name, a in message.get("MessageAttributes", {}).items()}


class Scripted(http.server.ThreadingHTTPServer):
    """An endpoint that says what SQS may say and moto never does; `answer` gets the entries, and returns (status, body), or None: the
    connection is cut. A body that is no text goes out as JSON."""

    daemon_threads = True

    def __init__(self, answer, read=json.loads):
        outer = self
        self.heads = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.heads.append(dict(self.headers))
                said = answer(read(body))
                if said is None:
                    self.close_connection = True
                    return
                body = (said[1] if isinstance(said[1], str) else json.dumps(said[1])).encode()
                self.send_response(said[0])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server_port}"
        self.url = self.base + "/123456789012/jobs"

    def end(self):
        self.shutdown()
        self.server_close()
