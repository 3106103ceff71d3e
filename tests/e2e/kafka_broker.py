# SPDX-License-Identifier: Apache-2.0
"""A real Kafka (one broker, KRaft) in a temporary folder, on free loopback ports. Maven fetches it once into the build folder; where that
fails, or there is no Java, its tests are skipped with the reason."""
import collections
import concurrent.futures
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import clients
from ports import free_port
from support import Skip, until

POM = pathlib.Path(__file__).resolve().parent / "kafka_jars" / "pom.xml"
OLD = "3.9.1"  # the last that takes SCRAM as librdkafka before 2.6.1 has it
PASSWORD = "correct-horse"  # of relay, in every mechanism
JAAS = "org.apache.kafka.common.security"
Record = collections.namedtuple("Record", "partition offset headers key value")


def jars(version=None):
    """The folder with Kafka's jars: of the version in the POM, or of another one."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    if not java or not maven:
        raise Skip("java and mvn are not installed")

    pom = POM.read_text()
    pom = re.sub(r"(kafka[_.0-9a-z-]*</artifactId><version>)[0-9.]+", rf"\g<1>{version}", pom) if version else pom

    def make(folder):
        (folder / "pom.xml").write_text(pom)
        return clients.step("Maven cannot fetch Kafka", maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", cwd=folder)
    return clients.folder_of("kafka", pom.encode(), make) / "lib"


class Cutter:
    """Passes connections on, and cuts each after a number of bytes: ("up" to the broker, "down" from it). When the cuts are used up, nothing is cut."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.target = self.listener.getsockname()[1], None
        self.cuts, self.connections = [], 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                if self.listener.fileno() < 0:
                    return
                client.close()
                continue
            server.settimeout(None)
            self.connections += 1
            way, left = self.cuts.pop(0) if self.cuts else (None, None)
            for name, source, sink in (("up", client, server), ("down", server, client)):
                threading.Thread(target=self.pump, args=[source, sink, left if name == way else None], daemon=True).start()

    @staticmethod
    def pump(source, sink, left):
        try:
            while left is None or left > 0:
                data = source.recv(65536 if left is None else min(left, 65536))
                if not data:
                    break
                sink.sendall(data)
                left = None if left is None else left - len(data)
        except OSError:
            pass
        for side in (source, sink):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


class Broker:
    """Listeners: plain; sasl (PLAIN, SCRAM, OAUTHBEARER); tls (the same by TLS); elsewhere, which announces 127.0.0.2; cut, which announces the cutter."""

    def __init__(self, version=None):
        self.jars = jars(version)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-kafka-"))
        self.ports = {name: free_port() for name in ("plain", "sasl", "tls", "elsewhere", "cut", "controller")}
        self.cutter = Cutter()
        self.cutter.target = self.ports["cut"]
        self.process, self.log = None, self.folder / "broker.log"
        self.ca = self.folder / "cert.pem"
        self.make_certificate()
        self.write_settings()
        cluster = self.run("kafka.tools.StorageTool", "random-uuid").split()[-1]
        scram = [f"{mechanism}=[name=relay,password={PASSWORD}]" for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
        self.run("kafka.tools.StorageTool", "format", "-t", cluster, "-c", "server.properties", *[word for s in scram for word in ("--add-scram", s)])
        self.start()

    def at(self, listener):
        return f"{'localhost' if listener == 'tls' else '127.0.0.1'}:{self.ports[listener]}"

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"], cwd=self.folder, check=True, capture_output=True)
        both = (self.folder / "key.pem").read_text() + (self.folder / "cert.pem").read_text()
        (self.folder / "keystore.pem").write_text(both)

    def write_settings(self):
        names = {"plain": "PLAINTEXT", "sasl": "SASL_PLAINTEXT", "tls": "SASL_SSL", "elsewhere": "PLAINTEXT", "cut": "PLAINTEXT", "controller": "PLAINTEXT"}
        listeners = {name: f"{name.upper()}://127.0.0.1:{port}" for name, port in self.ports.items()}
        told = {**listeners, "tls": f"TLS://localhost:{self.ports['tls']}", "elsewhere": f"ELSEWHERE://127.0.0.2:{self.ports['elsewhere']}",
                "cut": f"CUT://127.0.0.1:{self.cutter.port}"}
        settings = {
            "process.roles": "broker,controller", "node.id": "1", "controller.quorum.voters": f"1@127.0.0.1:{self.ports['controller']}",
            "listeners": ",".join(listeners.values()), "advertised.listeners": ",".join(v for k, v in told.items() if k != "controller"),
            "controller.listener.names": "CONTROLLER", "inter.broker.listener.name": "PLAIN",
            "listener.security.protocol.map": ",".join(f"{k.upper()}:{v}" for k, v in names.items()),
            "log.dirs": "data", "auto.create.topics.enable": "false", "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS", "allow.everyone.if.no.acl.found": "true",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "ssl.keystore.type": "PEM", "ssl.keystore.location": "keystore.pem",
            "listener.name.sasl.oauthbearer.connections.max.reauth.ms": "8000"}
        for listener in ("sasl", "tls"):
            settings |= {
                f"listener.name.{listener}.plain.sasl.jaas.config": f'{JAAS}.plain.PlainLoginModule required user_relay="{PASSWORD}";',
                f"listener.name.{listener}.scram-sha-256.sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;",
                f"listener.name.{listener}.scram-sha-512.sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;",
                f"listener.name.{listener}.oauthbearer.sasl.jaas.config":
                    f'{JAAS}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'}
        (self.folder / "server.properties").write_text("".join(f"{k}={v}\n" for k, v in settings.items()))

    # -- processes --

    def java(self, program, *args):
        return ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{self.jars}/*", program, *args]

    def run(self, program, *args):
        done = subprocess.run(self.java(program, *args), cwd=self.folder, text=True, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, (program, args, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.java("kafka.Kafka", "server.properties"), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.answers, lambda: f"Kafka to start:\n{self.log.read_text()[-3000:]}")

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            socket.create_connection(("127.0.0.1", self.ports["plain"]), timeout=1).close()
            return True
        except OSError:
            return False

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait(60)

    def close(self):
        self.cutter.close()
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- topics --

    def make_topics(self, **topics):
        """name: settings. The number of partitions is 4."""
        def make(name):
            more = [word for s in topics[name] for word in ("--config", s)]
            self.run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.at("plain"), "--create", "--topic", name, "--partitions", "4", *more)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(make, topics))

    def forbid(self, topic):
        self.run("org.apache.kafka.tools.AclCommand", "--bootstrap-server", self.at("plain"), "--add", "--deny-principal", "User:relay",
                 "--operation", "Write", "--topic", topic)

    def records(self, topic):
        """All of a topic, by Kafka's own consumer: those of one partition in their order."""
        shown = [word for s in ("key", "headers", "partition", "offset") for word in ("--formatter-property", f"print.{s}=true")]
        out = self.run("org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", self.at("plain"), "--topic", topic, "--from-beginning",
                       "--timeout-ms", "6000", *shown)
        return [record_of(line) for line in out.splitlines() if line.startswith("Partition:")]


def record_of(line):
    partition, offset, headers, key, value = line.split("\t", 4)
    pairs = re.findall(r"([^:,]+):(.*?)(?=,[A-Za-z_-]+:|$)", headers) if headers != "NO_HEADERS" else []
    return Record(int(partition.split(":")[1]), int(offset.split(":")[1]), dict(pairs), key, value)


def token(seconds, subject="relay"):
    """A token as Kafka's test mechanism takes it: a JWT that nobody has signed."""
    def part(value):
        import base64  # pylint: disable=import-outside-toplevel
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': subject, 'iat': now, 'exp': now + seconds})}."
