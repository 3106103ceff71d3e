# SPDX-License-Identifier: Apache-2.0
"""A network for tests in which every address leads to this machine, and a name server that says what it is told: for
what a relay must never connect to. Programs that use it start themselves again inside (`enter`)."""
import collections
import os
import pathlib
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

from support import Handler, Receiver, Server

INSIDE = "HIKYAKU_TEST_NOWHERE"
A, CNAME, AAAA = 1, 5, 28


# ---- the namespace ----

def why_not():
    """Why such a network cannot be made here; None when it can."""
    for program in ("unshare", "ip", "mount"):
        if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            return f"there is no {program} here"
    done = subprocess.run(namespace() + ["true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no namespaces: {done.stderr.strip()}"


def namespace():
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--net", "--mount", "--propagation", "private"]


def enter():
    """Returns inside the network; outside it never returns."""
    if os.environ.get(INSIDE):
        set_up()
        return
    why = why_not()
    if why:
        print(f"1..0 # SKIP {why}")
        sys.exit(0)
    os.environ[INSIDE] = "1"
    os.execvp("unshare", namespace() + [sys.executable, *sys.argv])


def set_up():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-net-"))
    files = {"/etc/resolv.conf": "nameserver 127.0.0.53\noptions timeout:2 attempts:2\n",
             "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n"}
    for command in ("ip link set lo up", "ip route add local 0.0.0.0/0 dev lo", "ip -6 route add local ::/0 dev lo"):
        subprocess.run(command.split(), check=True)
    for number, (path, text) in enumerate(files.items()):
        if not os.path.exists(path):
            continue
        ours = folder / str(number)
        ours.write_text(text, encoding="ascii")
        ours.chmod(0o644)
        subprocess.run(["mount", "--bind", str(ours), os.path.realpath(path)], check=True)
    shutil.rmtree(folder)  # the mounts keep what they need


# ---- the name server ----

def labels(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.rstrip(".").split(".")) + b"\0"


def record(owner, kind, value):
    data = labels(value) if kind == CNAME else \
        socket.inet_pton(socket.AF_INET if kind == A else socket.AF_INET6, value)
    return labels(owner) + struct.pack(">HHIH", kind, 1, 0, len(data)) + data  # TTL 0


class NameServer:
    """`zone[name]`: a function of (kind of the question, how often this was asked before) that gives a list of values:
    addresses of that kind, or ("CNAME", name, [addresses]). Names without an entry do not exist. One for all tests."""

    def __init__(self):
        self.zone, self.asked = {}, collections.Counter()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.53", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            packet, peer = self.socket.recvfrom(4096)
            self.socket.sendto(self.answer(packet), peer)

    def answer(self, packet):
        at, parts = 12, []
        while packet[at]:
            parts.append(packet[at + 1:at + 1 + packet[at]].decode("ascii", "replace"))
            at += 1 + packet[at]
        kind = struct.unpack(">H", packet[at + 1:at + 3])[0]
        name = ".".join(parts).lower()
        values = self.values(name, kind)
        records = []
        for value in values or []:
            if isinstance(value, tuple):
                records.append(record(name, CNAME, value[1]))
                records += [record(value[1], kind, v) for v in value[2]]
            else:
                records.append(record(name, kind, value))
        code = 3 if values is None else 0
        head = packet[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, len(records), 0, 0)
        return head + packet[12:at + 5] + b"".join(records)

    def values(self, name, kind):
        if name not in self.zone:
            return None
        n = self.asked[name, kind]
        self.asked[name, kind] += 1
        return self.zone[name](kind, n)


# ---- the listener ----

class Noted(Handler):
    def setup(self):
        super().setup()
        at = self.connection.getsockname()[0]
        self.server.receiver.met(at[7:] if at.startswith("::ffff:") else at)


class Wide(Server):
    address_family = socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class Everywhere(Receiver):
    """Listens on every address, in plain text and with TLS; `connections` are the addresses that were connected to."""

    def __init__(self, log=None):
        super().__init__(log)
        self.connections = collections.Counter()
        self.folder = tempfile.mkdtemp(prefix="hikyaku-net-")
        self.cert = f"{self.folder}/cert.pem"
        self.more = [self.listen(None), self.listen(self.make_tls())]
        self.plain_port, self.tls_port = (server.server_address[1] for server in self.more)

    def make_tls(self):
        key = f"{self.folder}/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", self.cert, "-days", "2", "-subj", "/CN=test",
                        "-addext", "subjectAltName=DNS:*.example.test"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, key)
        return context

    def listen(self, context):
        server = Wide(("::", 0), Noted)
        server.receiver = self
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def met(self, address):
        with self.lock:
            self.connections[address] += 1

    def close(self):
        for server in self.more:
            server.shutdown()
            server.server_close()
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)
