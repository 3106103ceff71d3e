# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy between a relay and PostgreSQL that knows enough of the protocol to cut where it hurts: a pipeline goes out
whole, so that whoever cuts may choose between before it, in the middle of it, and before its answer."""
import random
import socket
import struct
import threading

EXCHANGE = b"hikyaku: lane"  # stands in the one statement that only exchanges begin with
# What the next exchange meets: "before": nothing of it reaches the server. "middle": part of it does. "vanish": all but
# COMMIT, and the server is not told that nobody is there any more. "after": all of it, and no answer comes back. "commit":
# every answer comes back but COMMIT's.
CUTS = ("before", "middle", "vanish", "after", "commit")


class Messages:
    """Bytes into whole messages of the protocol."""

    def __init__(self, untyped=0):
        self.buffer, self.untyped = b"", untyped

    def feed(self, data):
        self.buffer += data
        while True:
            at = 0 if self.untyped else 1
            if len(self.buffer) < at + 4:
                return
            end = at + struct.unpack_from(">I", self.buffer, at)[0]
            if len(self.buffer) < end:
                return
            message, self.buffer = self.buffer[:end], self.buffer[end:]
            self.untyped -= self.untyped > 0
            yield b"" if at == 0 else message[:1], message


class Link:
    """One connection."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.names, self.cut = set(), None

    def run(self):
        threading.Thread(target=self.guarded, args=[self.upwards], daemon=True).start()
        self.guarded(self.downwards)

    def guarded(self, pump):
        try:
            pump()
        except OSError:
            pass
        self.close()

    def close(self):
        for side in (self.client,) if self.cut == "vanish" else (self.client, self.server):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            side.close()

    def is_exchange(self, kind, message):
        """Also remembers under which name it is prepared."""
        names = message[5:].split(b"\0", 2)
        if kind == b"P" and EXCHANGE in message:
            self.names |= {names[0]} - {b""}
            return True
        return kind == b"B" and names[1] in self.names

    def upwards(self):
        messages, pipeline, exchange = Messages(untyped=1), [], False
        while data := self.client.recv(65536):
            for kind, message in messages.feed(data):
                pipeline.append(message)
                exchange |= self.is_exchange(kind, message)
                if kind in (b"P", b"B", b"D", b"E", b"C"):
                    continue  # until it is whole
                self.cut = self.proxy.take_cut() if exchange and kind == b"S" else None
                if self.cut == "before":
                    return
                if self.cut in ("middle", "vanish"):
                    self.server.sendall(b"".join(pipeline[:self.proxy.chance.randrange(1, len(pipeline) - 5)]
                                                 if self.cut == "middle" else pipeline[:-5]))  # COMMIT is four messages
                    return
                self.server.sendall(b"".join(pipeline))
                pipeline, exchange = [], False

    def downwards(self):
        messages = Messages()
        while data := self.server.recv(65536):
            cut = self.cut
            if cut not in ("after", "commit"):
                self.client.sendall(data)
                messages.buffer = b""
                continue
            for kind, message in messages.feed(data):
                if kind == b"Z":
                    return
                if kind == b"C" and message[5:] == b"COMMIT\0":
                    self.cut = "after"
                if self.cut == "commit":
                    self.client.sendall(message)


class Proxy:
    def __init__(self, port, seed=0, host="127.0.0.1"):
        self.upstream, self.lock, self.chance = port, threading.Lock(), random.Random(seed)
        self.wanted, self.done, self.links = [], [], []
        self.listener = socket.create_server((host, 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.upstream), 5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.links.append(Link(self, client, server))
            threading.Thread(target=self.links[-1].run, daemon=True).start()

    def cut_next(self, kind):
        with self.lock:
            self.wanted.append(kind)

    def take_cut(self):
        with self.lock:
            if not self.wanted:
                return None
            self.done.append(self.wanted.pop(0))
            return self.done[-1]

    def close(self):
        """For good; those that vanished, too."""
        self.listener.close()
        for link in self.links:
            link.cut = None
            link.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
