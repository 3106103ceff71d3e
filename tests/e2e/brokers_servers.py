# SPDX-License-Identifier: Apache-2.0
"""Real brokers for the end-to-end tests, each in the test's own folder and on a port of its own, and a proxy that cuts connections
after so many bytes."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

from ports import free_port
from support import PATIENCE, Skip, until


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


class Server:
    """A broker as a process. It is started, stopped, killed and started again on the same port and files."""

    package = program = None

    def __init__(self, world, name="broker"):
        found = self.find()
        if not found:
            raise Skip(f"no {self.program} (Debian: {self.package})")
        self.found, self.world, self.port = found, world, free_port()
        self.folder = world.path(name)
        self.folder.mkdir()
        self.process = None

    @classmethod
    def find(cls):
        return shutil.which(cls.program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")

    def command(self):
        raise NotImplementedError

    def environment(self):
        return os.environ.copy()

    def up(self):
        return accepts(self.port)

    def start(self):
        log = open(self.folder / "output.log", "ab")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(self.command(), cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=log, start_new_session=True)
        log.close()
        self.world.brokers.append(self)
        until(lambda: self.process.poll() is not None or self.up(), lambda: f"the broker:\n{self.output()}")
        assert self.process.poll() is None, self.output()
        return self

    def output(self):
        return (self.folder / "output.log").read_text(encoding="utf-8", errors="replace")[-3000:]

    def kill(self):
        """kill -9, with all that it has started."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.process:
            self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.kill()

    def freeze(self, on=True):
        os.killpg(self.process.pid, signal.SIGSTOP if on else signal.SIGCONT)


class Rabbit(Server):
    package, program = "rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server"

    def __init__(self, world, settings=""):
        super().__init__(world, "rabbit")
        self.epmd, self.dist, self.settings = free_port(), free_port(), settings
        self.names = None  # epmd: RabbitMQ would start one that outlives it

    @classmethod
    def find(cls):
        return cls.program if os.access(cls.program, os.X_OK) else None

    def environment(self):
        f = str(self.folder)
        return {**os.environ, "RABBITMQ_NODENAME": f"hk{self.port}@localhost", "RABBITMQ_MNESIA_BASE": f + "/mnesia",
                "RABBITMQ_LOG_BASE": f + "/log", "RABBITMQ_CONFIG_FILE": f + "/rabbitmq", "RABBITMQ_PID_FILE": f + "/pid", "HOME": f,
                "RABBITMQ_ENABLED_PLUGINS_FILE": f + "/plugins", "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(self.epmd),
                "RABBITMQ_DIST_PORT": str(self.dist), "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none"}

    def command(self):
        (self.folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n{self.settings}\n", encoding="ascii")
        (self.folder / "plugins").write_text("[].\n", encoding="ascii")
        return [self.found]

    def up(self):
        if not accepts(self.port):
            return False
        try:
            Amqp(self.port).close()
            return True
        except (OSError, AssertionError):
            return False

    def ctl(self, *args):
        done = subprocess.run(["/usr/lib/rabbitmq/bin/rabbitmqctl", "-q", *args], env=self.environment(), cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout

    def start(self):
        if not self.names:
            self.names = subprocess.Popen(["epmd", "-port", str(self.epmd), "-address", "127.0.0.1"], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until(lambda: accepts(self.epmd), "epmd")
        return super().start()

    def kill(self):
        super().kill()
        if self.names:
            self.names.kill()
            self.names.wait()
            self.names = None


class Amqp:
    """The least of a consumer: declare, bind, consume, delete; and what publishes one message by itself."""

    def __init__(self, port, user="guest", password="guest", vhost="/"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.rest = b""
        self.socket.sendall(b"AMQP\0\0\x09\x01")
        self.expect(10, 10)
        secret = f"\0{user}\0{password}".encode()
        self.method(0, 10, 11, b"\0\0\0\0" + self.short("PLAIN") + len(secret).to_bytes(4, "big") + secret + self.short("en_US"))
        self.expect(10, 30)
        self.method(0, 10, 31, (2).to_bytes(2, "big") + (131072).to_bytes(4, "big") + b"\0\0")
        self.method(0, 10, 40, self.short(vhost) + b"\0\0")
        self.expect(10, 41)
        self.method(1, 20, 10, b"\0")
        self.expect(20, 11)

    @staticmethod
    def short(text):
        return bytes([len(text)]) + text.encode()

    def frame(self, kind, channel, payload):
        self.socket.sendall(bytes([kind]) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce")

    def method(self, channel, cls, number, arguments=b""):
        self.frame(1, channel, cls.to_bytes(2, "big") + number.to_bytes(2, "big") + arguments)

    def read(self):
        """(type, channel, payload)"""
        while True:
            if len(self.rest) >= 7:
                length = int.from_bytes(self.rest[3:7], "big")
                if len(self.rest) >= length + 8:
                    frame, self.rest = self.rest[:length + 8], self.rest[length + 8:]
                    return frame[0], int.from_bytes(frame[1:3], "big"), frame[7:-1]
            more = self.socket.recv(1 << 20)
            assert more, "the broker has closed the connection"
            self.rest += more

    def expect(self, cls, number):
        while True:
            kind, _, payload = self.read()
            if kind == 1:
                got = (int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big"))
                assert got == (cls, number), (got, payload)
                return payload[4:]

    def exchange(self, name, kind="direct"):
        self.method(1, 40, 10, b"\0\0" + self.short(name) + self.short(kind) + b"\x02\0\0\0\0")
        self.expect(40, 11)

    def delete_exchange(self, name):
        self.method(1, 40, 20, b"\0\0" + self.short(name) + b"\0")
        self.expect(40, 21)

    def queue(self, name, **arguments):
        table = b"".join(self.short(k) + (b"S" + len(v).to_bytes(4, "big") + v.encode() if isinstance(v, str) else b"I" + v.to_bytes(4, "big"))
                         for k, v in arguments.items())
        self.method(1, 50, 10, b"\0\0" + self.short(name) + b"\x02" + len(table).to_bytes(4, "big") + table)
        self.expect(50, 11)

    def bind(self, queue, exchange, key):
        self.method(1, 50, 20, b"\0\0" + self.short(queue) + self.short(exchange) + self.short(key) + b"\0\0\0\0\0")
        self.expect(50, 21)

    def get(self, queue):
        """The next message as (properties, body); None when the queue is empty."""
        self.method(1, 60, 70, b"\0\0" + self.short(queue) + b"\x01")
        kind, _, payload = self.read()
        while kind != 1:
            kind, _, payload = self.read()
        if payload[:4] == b"\0\x3c\0\x48":  # get-empty
            return None
        assert payload[:4] == b"\0\x3c\0\x47", payload
        head = self.read()[2]
        body, size = b"", int.from_bytes(head[4:12], "big")
        while len(body) < size:
            body += self.read()[2]
        return properties_of(head[12:]), body

    def drain(self, queue):
        """All messages that are there."""
        found = []
        while True:
            message = self.get(queue)
            if message is None:
                return found
            found.append(message)

    def close(self):
        self.socket.close()


NAMES = ["content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to", "expiration", "message_id",
         "timestamp", "type", "user_id", "app_id"]


def properties_of(data):
    flags, at, found = int.from_bytes(data[:2], "big"), 2, {}
    for i, name in enumerate(NAMES):
        if not flags & 1 << (15 - i):
            continue
        if name == "headers":
            end = at + 4 + int.from_bytes(data[at:at + 4], "big")
            at += 4
            table = {}
            while at < end:
                key = data[at + 1:at + 1 + data[at]].decode()
                at += 1 + data[at]
                assert data[at:at + 1] == b"S", data[at:]
                length = int.from_bytes(data[at + 1:at + 5], "big")
                table[key] = data[at + 5:at + 5 + length].decode()
                at += 5 + length
            found[name] = table
        elif name in ("delivery_mode", "priority"):
            found[name] = data[at]
            at += 1
        elif name == "timestamp":
            found[name] = int.from_bytes(data[at:at + 8], "big")
            at += 8
        else:
            found[name] = data[at + 1:at + 1 + data[at]].decode()
            at += 1 + data[at]
    return found


class Cutter:
    """A proxy. Each connection is cut after so many bytes in one direction: the next of `cuts` ((direction, bytes); None: it lives)."""

    def __init__(self, port, cuts=()):
        self.port_behind, self.cuts, self.lock = port, list(cuts), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            with self.lock:
                cut = self.cuts.pop(0) if self.cuts else None
                self.connections += 1
            try:
                server = socket.create_connection(("127.0.0.1", self.port_behind))
            except OSError:
                client.close()
                continue
            for direction, a, b in (("up", client, server), ("down", server, client)):
                limit = cut[1] if cut and cut[0] == direction else None
                threading.Thread(target=self.pump, args=[a, b, limit], daemon=True).start()

    @staticmethod
    def pump(source, sink, limit):
        try:
            while True:
                data = source.recv(65536)
                if limit is not None:
                    data, limit = data[:limit], limit - len(data[:limit])
                if data:
                    sink.sendall(data)
                if not data or limit == 0:
                    break
        except OSError:
            pass
        for side in (source, sink):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


# ---- NATS ----

class Nats(Server):
    package, program = "nats-server", "nats-server"

    def __init__(self, world, settings="", name="nats"):
        super().__init__(world, name)
        self.settings = settings

    def command(self):
        (self.folder / "n.conf").write_text(f"listen: 127.0.0.1:{self.port}\njetstream {{store_dir: \"js\"}}\n{self.settings}\n", encoding="ascii")
        return [self.found, "-c", "n.conf"]


class NatsClient:
    """Requests, and what a stream holds."""

    def __init__(self, port, **login):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.rest, self.n = b"", 0
        assert self.line().startswith(b"INFO ")
        connect = json.dumps({"verbose": False, "pedantic": False, "headers": True, "no_responders": True, **login})
        self.socket.sendall(f"CONNECT {connect}\r\nSUB _INBOX.test.* 1\r\nPING\r\n".encode())
        while (line := self.line()) != b"PONG":
            assert not line.startswith(b"-ERR"), line

    def more(self):
        data = self.socket.recv(1 << 20)
        assert data, "the server has closed the connection"
        self.rest += data

    def line(self):
        while b"\r\n" not in self.rest:
            self.more()
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line

    def take(self, n):
        while len(self.rest) < n + 2:
            self.more()
        data, self.rest = self.rest[:n], self.rest[n + 2:]
        return data

    def ask(self, subject, **request):
        self.n += 1
        body = json.dumps(request).encode() if request else b""
        self.socket.sendall(f"PUB {subject} _INBOX.test.{self.n} {len(body)}\r\n".encode() + body + b"\r\n")
        while True:
            words = self.line().split()
            if words[0] in (b"MSG", b"HMSG"):
                data = self.take(int(words[-1]))
                return json.loads(data) if words[0] == b"MSG" else {"error": data.decode()}

    def stream(self, name, *subjects, **more):
        got = self.ask(f"$JS.API.STREAM.CREATE.{name}", name=name, subjects=list(subjects), storage="file", **more)
        assert "error" not in got, got

    def delete(self, name):
        assert self.ask(f"$JS.API.STREAM.DELETE.{name}")["success"]

    def messages(self, name):
        """All messages of a stream as (subject, headers, body), in order."""
        state = self.ask(f"$JS.API.STREAM.INFO.{name}")["state"]
        found = []
        for seq in range(state["first_seq"], state["last_seq"] + 1):
            m = self.ask(f"$JS.API.STREAM.MSG.GET.{name}", seq=seq)
            if "error" in m:
                continue
            m = m["message"]
            lines = base64.b64decode(m.get("hdrs", "")).decode().split("\r\n")[1:]
            found.append((m["subject"], dict(line.split(": ", 1) for line in lines if line), base64.b64decode(m.get("data", ""))))
        return found

    def close(self):
        self.socket.close()


# ---- Redis ----

class Redis(Server):
    package, program = "redis-server", "redis-server"

    def __init__(self, world, *settings, name="redis"):
        super().__init__(world, name)
        self.settings = settings

    def command(self):
        return [self.found, "--port", str(self.port), "--bind", "127.0.0.1", "--appendonly", "yes", "--appendfsync", "always", "--save", "",
                "--dir", str(self.folder), *self.settings]

    def up(self):
        try:
            return RedisClient(self.port).ask("PING") is not None
        except OSError:
            return False


class RedisError(Exception):
    pass


class RedisClient:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        words = [str(w).encode() if not isinstance(w, bytes) else w for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line:
            raise OSError("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            if rest.startswith(b"LOADING"):
                return None
            raise RedisError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def entries(self, stream):
        """All entries as dicts of text."""
        return [dict(zip((k.decode() for k in fields[::2]), (v.decode() for v in fields[1::2]))) for _, fields in self.ask("XRANGE", stream, "-", "+")]

    def close(self):
        self.file.close()
        self.socket.close()


# ---- MQTT ----

class Mosquitto(Server):
    package, program = "mosquitto", "mosquitto"

    def __init__(self, world, settings="", name="mosquitto"):
        super().__init__(world, name)
        self.settings = settings

    def command(self):
        os.chmod(self.folder, 0o777)  # Mosquitto gives up root
        (self.folder / "m.conf").write_text(f"listener {self.port} 127.0.0.1\nmax_queued_messages 0\n{self.settings}\n", encoding="ascii")
        return [self.found, "-c", "m.conf"]


class MqttClient:
    """Subscribes with a session that outlives the connection, and collects what comes; MQTT 5."""

    def __init__(self, port, topic, client="witness", user=None, password=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.rest, self.got = b"", []
        flags = 0xC0 if user else 0
        login = self.text(user) + self.text(password) if user else b""
        self.send(0x10, self.text("MQTT") + bytes([5, flags, 0, 0]) + b"\x05\x11\xff\xff\xff\xff" + self.text(client) + login)
        kind, body = self.read()
        assert kind >> 4 == 2 and body[1] == 0, (kind, body)
        if topic:
            self.send(0x82, b"\0\1\0" + self.text(topic) + b"\1")
            while self.read()[0] >> 4 != 9:
                pass

    @staticmethod
    def text(s):
        return len(s.encode()).to_bytes(2, "big") + s.encode()

    def send(self, first, body):
        size, n = b"", len(body)
        while True:
            size += bytes([n & 0x7F | (0x80 if n > 0x7F else 0)])
            n >>= 7
            if not n:
                break
        self.socket.sendall(bytes([first]) + size + body)

    def whole(self):
        """The length of the packet that is there: (head, body); None: not yet."""
        length, shift = 0, 0
        for at in range(1, 5):
            if len(self.rest) <= at:
                return None
            length |= (self.rest[at] & 0x7F) << shift
            shift += 7
            if not self.rest[at] & 0x80:
                return (at + 1, length) if len(self.rest) >= at + 1 + length else None
        raise AssertionError("no MQTT")

    def read(self):
        while not (found := self.whole()):
            data = self.socket.recv(1 << 20)
            assert data, "the broker has closed the connection"
            self.rest += data
        head, length = found
        kind, body = self.rest[0], self.rest[head:head + length]
        self.rest = self.rest[head + length:]
        if kind >> 4 == 3:
            self.keep(kind, body)
        return kind, body

    def keep(self, kind, body):
        n = int.from_bytes(body[:2], "big")
        topic, at = body[2:2 + n].decode(), 2 + n
        if kind & 6:
            self.send(0x40, body[at:at + 2])
            at += 2
        length, shift = 0, 0
        while True:
            byte = body[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        end, properties = at + length, {}
        while at < end:
            code = body[at]
            n = int.from_bytes(body[at + 1:at + 3], "big")
            first, at = body[at + 3:at + 3 + n].decode(), at + 3 + n
            if code == 0x26:
                n = int.from_bytes(body[at:at + 2], "big")
                properties[first], at = body[at + 2:at + 2 + n].decode(), at + 2 + n
            else:
                properties[code] = first
        self.got.append((topic, properties, body[end:]))

    def messages(self, n, seconds=PATIENCE):
        """Until n are there."""
        end = time.monotonic() + seconds
        while len(self.got) < n and time.monotonic() < end:
            self.read()
        return self.got

    def close(self):
        self.socket.close()
