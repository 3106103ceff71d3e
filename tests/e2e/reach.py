#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a receiver may ask of a request: client certificates that are changed on disk, a pinned key, a Unix socket, gzip, a URL with
fields of the message, Ed25519 signatures, and CloudEvents as one JSON document. Speaks TAP.

Usage: reach.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import base64
import gzip
import hashlib
import hmac
import json
import os
import shutil
import socketserver
import ssl
import subprocess
import sys
import threading

sys.dont_write_bytecode = True  # the source folder stays as it is
from ports import free_port
from support import BINARY, Answer, Handler, Receiver, Server, Skip, World, run_tests, until

SYSTEM_PYTHON = "/usr/bin/python3"  # where Debian's python3-nacl lies
try:
    import nacl.exceptions
    import nacl.signing
except ImportError:
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and \
            subprocess.run([SYSTEM_PYTHON, "-c", "import nacl"], capture_output=True, check=False).returncode == 0:
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    nacl = None

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def openssl(*args, data=None):
    if shutil.which("openssl") is None:
        raise Skip("openssl is not installed")
    return subprocess.run(["openssl", *map(str, args)], input=data, check=True, capture_output=True).stdout


EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


class Authority:
    def __init__(self, folder):
        self.folder = folder
        openssl("req", "-x509", *EC, "-subj", "/CN=test authority", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
        self.ca = str(folder / "ca.pem")

    def issue(self, name, to):
        """A certificate for `name` and its key, renamed into place: `to`.pem, `to`.key."""
        new = self.folder / f"{to}.new"
        extension = self.folder / "ext"
        extension.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n", encoding="ascii")
        openssl("req", *EC, "-subj", f"/CN={name}", "-keyout", f"{new}.key", "-out", f"{new}.csr")
        openssl("x509", "-req", "-in", f"{new}.csr", "-CA", self.ca, "-CAkey", self.folder / "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", extension, "-out", f"{new}.pem")
        for end in ("key", "pem"):
            os.rename(f"{new}.{end}", self.folder / f"{to}.{end}")
        return str(self.folder / f"{to}.pem"), str(self.folder / f"{to}.key")

    def pin(self, certificate):
        key = openssl("x509", "-in", certificate, "-pubkey", "-noout")
        return "sha256//" + base64.b64encode(hashlib.sha256(openssl("pkey", "-pubin", "-outform", "der", data=key)).digest()).decode()


class TlsHandler(Handler):
    def do_POST(self):
        subject = self.connection.getpeercert() or {}
        self.server.receiver.clients.append(dict(x[0] for x in subject.get("subject", ())).get("commonName"))
        super().do_POST()


class TlsReceiver(Receiver):
    """Notes whose certificate each request came with, and takes none without one."""

    def __init__(self, authority, certificate, key, wanted=True):
        super().__init__()
        self.clients = []
        self.server.RequestHandlerClass = TlsHandler
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if wanted:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(authority.ca)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def url(self, name):
        return f"https://localhost:{self.port}/{name}"


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 512
    handle_error = Server.handle_error


class UnixHandler(Handler):
    disable_nagle_algorithm = False  # it is no TCP

    def address_string(self):
        return "unix"


class Wire(World):
    allow = ("::1/128",)

    def go(self, *names, **columns):
        for name in names:
            self.insert(destination=name, message_id=f"to-{name}", **columns)

    def got(self, name):
        return until(lambda: self.receiver.arrived(f"to-{name}"), f"a request of {name}")[0]


@test
def a_client_certificate_that_changes_on_disk_is_used_by_new_connections():
    with Wire() as w:
        authority = Authority(w.folder)
        server = TlsReceiver(authority, *authority.issue("server", "server"))
        try:
            certificate, key = authority.issue("first", "client")
            w.config["destinations"]["shop"] = w.destination("shop", http={
                "url": server.url("shop"), "ca_file": authority.ca, "cert_file": certificate, "key_file": key})
            w.write_config()
            daemon = w.daemon().ready()
            w.insert(message_id="one")
            w.settled(sent=1)
            assert server.clients == ["first"], server.clients
            authority.issue("second", "client")  # no reload, no restart
            w.insert(message_id="two")
            w.settled(sent=2)
            assert server.clients[1] == "first", server.clients  # the same connection
            server.on("shop", Answer(200, {"Connection": "close"}))
            w.insert(message_id="three")
            w.settled(sent=3)
            server.on("shop", 200)
            w.insert(message_id="four")
            w.settled(sent=4)
            assert server.clients[2:] == ["first", "second"], server.clients
            daemon.stop()
        finally:
            server.close()


@test
def a_pinned_key_must_be_the_servers():
    with Wire(destinations=()) as w:
        authority = Authority(w.folder)
        certificate, key = authority.issue("server", "server")
        other, _ = authority.issue("other", "other")
        server = TlsReceiver(authority, certificate, key, wanted=False)
        try:
            for name, pins in {"right": [authority.pin(certificate)], "several": [authority.pin(other), authority.pin(certificate)],
                               "wrong": [authority.pin(other)]}.items():
                w.config["destinations"][name] = w.destination(name, http={
                    "url": server.url(name), "ca_file": authority.ca, "pin": pins})
            # a pin does not stand in for trust
            w.config["destinations"]["untrusted"] = w.destination("untrusted", http={
                "url": server.url("untrusted"), "pin": authority.pin(certificate)})
            w.config["policies"]["quick"] = {"max_attempts": 1}
            w.write_config()
            daemon = w.daemon().ready()
            w.go("right", "several", "wrong", "untrusted")
            w.settled(sent=2, dead=2)
            assert sorted(r.destination for r in server.arrived()) == ["right", "several"]
            assert w.letters() == {"to-wrong": "TLS_FAILED", "to-untrusted": "TLS_FAILED"}
            daemon.stop()
        finally:
            server.close()


@test
def a_socket_of_the_file_system_stands_for_the_host():
    with Wire(destinations=()) as w:
        path = str(w.path("app.sock"))
        server = UnixServer(path, UnixHandler)
        server.receiver = w.receiver
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            w.config["destinations"] = {
                "app": {"http": {"url": "http://app.internal/hooks?x=1", "socket": path}},  # no allow: the file names it
                "gone": {"http": {"url": "http://app.internal/", "socket": str(w.path("gone.sock"))}}}
            w.config["definitions"] = {"secrets": str(w.folder)}
            w.write_config()
            daemon = w.daemon().ready()
            w.go("app", "gone")
            for i in range(20):
                w.insert(destination="app", message_id=f"more-{i}")
            until(lambda: len(w.receiver.arrived()) == 21, "the requests")
            request = w.got("app")
            assert request.path == "/hooks?x=1" and request.headers["host"] == "app.internal", request.headers
            cause = "SELECT cause, address FROM outbox_attempts WHERE destination = 'gone'"
            assert until(lambda: w.sql(cause), "an attempt")[0][0] == "TRANSIENT_NETWORK"
            code, said = w.try_hikyaku("destinations", "create", "sly", "--reason", "test", "--definition",
                                       json.dumps({"http": {"url": "http://app/", "socket": path}}))
            assert code and 'a definition cannot name a "socket"' in said, said
            daemon.stop()
        finally:
            server.shutdown()
            server.server_close()


class Nginx:
    """Speaks HTTP/2 in plain and by TLS, says so to the receiver behind it, and ends each connection after 10 requests."""

    def __init__(self, folder, receiver, certificate, key):
        program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
        if not program:
            raise Skip("nginx is not installed")
        self.plain, self.tls = free_port(), free_port()
        paths = " ".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        conf = folder / "nginx.conf"
        conf.write_text(f"""daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr crit; events {{ }}
http {{ access_log off; keepalive_requests 10; {paths} ssl_certificate {certificate}; ssl_certificate_key {key};
server {{ listen 127.0.0.1:{self.plain} http2; listen 127.0.0.1:{self.tls} ssl http2;
location / {{ proxy_pass {receiver.url("")}; proxy_set_header X-Protocol $server_protocol; }} }} }}""", encoding="ascii")
        self.process = subprocess.Popen([program, "-p", str(folder), "-c", str(conf)])
        until(lambda: (folder / "nginx.pid").exists() or self.process.poll() is not None, "nginx")

    def close(self):
        self.process.terminate()
        self.process.wait()


@test
def http2_is_spoken_where_the_version_asks_for_it():
    with open(BINARY, "rb") as program:
        if b"libnghttp2.so" not in program.read():
            raise Skip("this build has no HTTP/2 of its own")
    with Wire(destinations=()) as w:
        authority = Authority(w.folder)
        nginx = Nginx(w.folder, w.receiver, *authority.issue("server", "server"))
        try:
            for name, http in {"plain": {"url": f"http://127.0.0.1:{nginx.plain}/plain", "version": 2},
                               "tls": {"url": f"https://localhost:{nginx.tls}/tls", "ca_file": authority.ca, "version": 2},
                               "old": {"url": f"https://localhost:{nginx.tls}/old", "ca_file": authority.ca, "version": 1},
                               "deaf": {"url": w.receiver.url("deaf"), "version": 2}}.items():
                w.config["destinations"][name] = w.destination(name, http=http)
            w.config["policies"]["quick"] = {"max_attempts": 1}
            w.write_config()
            daemon = w.daemon().ready()
            for name in ("plain", "tls", "old"):
                for i in range(50):
                    w.insert(destination=name, message_id=f"{name}-{i}")
            w.insert(destination="deaf", message_id="deaf")
            w.settled(sent=150, dead=1)
            spoken = {name: {r.headers["x-protocol"] for r in w.receiver.arrived() if r.destination == name}
                      for name in ("plain", "tls", "old")}
            assert spoken == {"plain": {"HTTP/2.0"}, "tls": {"HTTP/2.0"}, "old": {"HTTP/1.1"}}, spoken
            assert len(w.receiver.arrived()) == 150  # whatever nginx's GOAWAYs left behind came once
            assert w.sql("SELECT max(attempts) FROM outbox_sent")[0][0] == 1
            assert w.letters() == {"deaf": "PROTOCOL_ERROR"}
            daemon.stop()
        finally:
            nginx.close()


def v1(secret, request):
    text = f"{request.id}.{request.headers['webhook-timestamp']}.".encode() + request.body
    return "v1," + base64.b64encode(hmac.new(secret, text, hashlib.sha256).digest()).decode()


@test
def bodies_are_compressed_and_signed_as_they_are_sent():
    with Wire() as w:
        key = bytes(range(32))
        secret = "whsec_" + base64.b64encode(key).decode()
        for name, more in {"own": {}, "libcurl": {"url": w.receiver.url("{destination}")}}.items():
            w.config["destinations"][name] = w.destination(name, http={"compression": "gzip", "sign": {"secret": secret}, **more})
        w.write_config()
        daemon = w.daemon().ready()
        large, noise = json.dumps({"text": "many words " * 500}), base64.b64encode(os.urandom(30000)).decode()
        for name in ("own", "libcurl"):
            w.go(name, payload=large)
            w.insert(destination=name, message_id=f"small-{name}", payload='{"a": 1}')
            w.insert(destination=name, message_id=f"noise-{name}", payload=noise, encoding="base64")
        w.settled(sent=6)
        for name in ("own", "libcurl"):
            request = w.got(name)
            assert request.headers["content-encoding"] == "gzip" and len(request.body) < 500, request.headers
            assert gzip.decompress(request.body).decode() == large
            assert int(request.headers["content-length"]) == len(request.body)
            assert request.headers["webhook-signature"] == v1(key, request)
            for kind in ("small", "noise"):  # not worth it; not smaller
                request = w.receiver.arrived(f"{kind}-{name}")[0]
                assert "content-encoding" not in request.headers, request.headers
                assert request.headers["webhook-signature"] == v1(key, request)
        daemon.stop()


@test
def fields_of_the_message_stand_in_the_url():
    with Wire(destinations=()) as w:
        w.config["destinations"]["shop"] = w.destination("shop", http={
            "url": w.receiver.url("v1/{destination}/{event_type}?key={message_key}&x=y")})
        w.config["policies"]["quick"] = {"max_attempts": 1}
        w.write_config()
        daemon = w.daemon().ready()
        w.insert(message_id="plain", event_type="OrderCreated", message_key="k-1")
        w.insert(message_id="odd", event_type="../../admin?a=b#c@evil.example:1/%2e", message_key="注文 & co")
        w.insert(message_id="dots", event_type="..", message_key="k")
        w.insert(message_id="none", event_type="OrderCreated")
        w.settled(sent=2, dead=2)
        paths = {r.id: r.path for r in w.receiver.arrived()}
        assert paths == {
            "plain": "/v1/shop/OrderCreated?key=k-1&x=y",
            "odd": "/v1/shop/..%2F..%2Fadmin%3Fa%3Db%23c%40evil.example%3A1%2F%252e?key=%E6%B3%A8%E6%96%87%20%26%20co&x=y"}, paths
        assert w.letters() == {"dots": "VALIDATION_ERROR", "none": "VALIDATION_ERROR"}
        assert "needs {message_key}" in w.sql("SELECT error_message FROM dead_letters WHERE message_id = 'none'")[0][0]
        daemon.stop()
        for url in ("http://{destination}.example/", "http://a.example/{tenant}", "http://a.example:{event_type}/"):
            w.config["destinations"]["shop"]["http"]["url"] = url
            w.write_config()
            code, said = w.try_hikyaku("config", "check")
            assert code and "{event_type}, {message_key} and {destination} behind the host" in said, (url, said)


@test
def signatures_by_ed25519_need_no_shared_secret():
    with Wire(destinations=()) as w:
        openssl("genpkey", "-algorithm", "ed25519", "-out", w.path("pair.pem"))
        private = openssl("pkey", "-in", w.path("pair.pem"), "-outform", "der")[-32:]
        public = openssl("pkey", "-in", w.path("pair.pem"), "-pubout", "-outform", "der")[-32:]
        (w.path("public.pem")).write_bytes(openssl("pkey", "-in", w.path("pair.pem"), "-pubout"))
        key = bytes(range(24))
        whsec, half, whole = ("whsec_" + base64.b64encode(key).decode(), "whsk_" + base64.b64encode(private).decode(),
                              "whsk_" + base64.b64encode(private + public).decode())
        env = {"HALF": half, "WHOLE": whole, "WHSEC": whsec, "BROKEN": "whsk_" + base64.b64encode(private + private).decode()}
        for name, sign in {"half": {"secret": "${HALF}"}, "both": {"secrets": ["${WHSEC}", "${WHOLE}"]}}.items():
            w.config["destinations"][name] = w.destination(name, http={"sign": sign})
        w.write_config()
        daemon = w.daemon(env=env).ready()
        w.go("half", "both", payload='{"id": 42}')
        w.settled(sent=2)
        for name, n in (("half", 1), ("both", 2)):
            request = w.got(name)
            signatures = request.headers["webhook-signature"].split(" ")
            assert len(signatures) == n and signatures[-1].startswith("v1a,"), signatures
            if n == 2:
                assert signatures[0] == v1(key, request)
            signed = f"{request.id}.{request.headers['webhook-timestamp']}.".encode() + request.body
            w.path("signed").write_bytes(signed)
            w.path("signature").write_bytes(base64.b64decode(signatures[-1][4:]))
            said = openssl("pkeyutl", "-verify", "-pubin", "-inkey", w.path("public.pem"), "-rawin", "-in", w.path("signed"),
                           "-sigfile", w.path("signature"))
            assert b"Verified Successfully" in said, said
        for secret in (half, whole, whsec):
            assert secret not in daemon.log()
        daemon.stop()
        # two halves of different keys
        w.config["destinations"]["both"]["http"]["sign"] = {"secret": "${BROKEN}"}
        w.write_config()
        daemon = w.daemon("broken", env=env)
        assert daemon.wait() != 0 and "do not belong together" in daemon.log() and env["BROKEN"] not in daemon.log(), daemon.log()


@test
def another_library_takes_signatures_by_ed25519():
    """libsodium makes the keys and verifies; OpenSSL, which signs, has no part in it."""
    if not nacl:
        raise Skip("PyNaCl is not installed (Debian: python3-nacl)")
    with Wire(destinations=()) as w:
        keys = {"old": nacl.signing.SigningKey.generate(), "new": nacl.signing.SigningKey.generate()}
        env = {name.upper(): "whsk_" + base64.b64encode(bytes(key) + bytes(key.verify_key)).decode() for name, key in keys.items()}
        w.config["destinations"]["shop"] = w.destination("shop", http={"sign": {"secrets": ["${NEW}", "${OLD}"]}})
        w.write_config()
        daemon = w.daemon(env=env).ready()
        payloads = {"json": '{"id": 42}', "empty": "", "text": "注文\n\t✓", "long": "x" * 300000}
        for name, payload in payloads.items():
            w.insert(message_id=name, payload=payload)
        w.settled(sent=len(payloads))
        for request in w.receiver.arrived():
            assert request.body.decode() == payloads[request.id]
            signed = f"{request.id}.{request.headers['webhook-timestamp']}.".encode() + request.body
            signatures = [base64.b64decode(text.removeprefix("v1a,")) for text in request.headers["webhook-signature"].split(" ")]
            for key, other, signature in zip((keys["new"], keys["old"]), (keys["old"], keys["new"]), signatures, strict=True):
                assert key.verify_key.verify(signed, signature) == signed
                for wrong in (lambda: other.verify_key.verify(signed, signature), lambda: key.verify_key.verify(signed + b" ", signature)):
                    try:
                        wrong()
                    except nacl.exceptions.BadSignatureError:
                        continue
                    raise AssertionError("a signature that must not fit fits")
        daemon.stop()


@test
def an_event_is_one_document_around_the_payload():
    with Wire(destinations=()) as w:
        key = bytes(range(32))
        w.config["destinations"]["events"] = w.destination("events", http={
            "cloudevents": "structured", "sign": {"secret": "whsec_" + base64.b64encode(key).decode()}})
        w.config["policies"]["quick"] = {"max_attempts": 1}
        w.write_config()
        daemon = w.daemon().ready()
        odd = '{"n": 12345678901234567890.10,  "a":[1e400], "t":"\\u0000é" }'  # bytes that no parser would print again
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        rows = {"json": {"payload": odd, "correlation_id": 'c "1"', "traceparent": trace},
                "vendor": {"payload": "[1]", "content_type": "application/vnd.acme+json; charset=utf-8"},
                "text": {"payload": "plain ✓", "content_type": "text/plain"},
                "binary": {"payload": base64.b64encode(bytes(range(256))).decode(), "encoding": "base64",
                           "content_type": "application/octet-stream"},
                "empty": {"payload": ""}, "broken": {"payload": '{"a":'}}
        for name, row in rows.items():
            w.insert(destination="events", message_id=name, **row)
        w.settled(sent=5, dead=1)
        assert w.letters() == {"broken": "VALIDATION_ERROR"}
        requests = {r.id: r for r in w.receiver.arrived()}
        for request in requests.values():
            assert request.headers["content-type"] == "application/cloudevents+json", request.headers
            assert not [h for h in request.headers if h.startswith("ce-")] and "x-correlation-id" not in request.headers
            assert request.headers["webhook-signature"] == v1(key, request)
        events = {name: json.loads(r.body) for name, r in requests.items()}
        assert requests["json"].body.endswith(b'"datacontenttype":"application/json","data":' + odd.encode() + b"}"), requests["json"].body
        event = events["json"]
        assert {k: event[k] for k in ("specversion", "id", "source", "type", "correlationid", "traceparent")} == {
            "specversion": "1.0", "id": "json", "source": "/hikyaku", "type": "OrderCreated", "correlationid": 'c "1"',
            "traceparent": trace}, event
        assert events["vendor"]["data"] == [1] and "data_base64" not in events["vendor"]
        assert base64.b64decode(events["text"]["data_base64"]).decode() == "plain ✓" and events["text"]["datacontenttype"] == "text/plain"
        assert base64.b64decode(events["binary"]["data_base64"]) == bytes(range(256)) and "data" not in events["binary"]
        assert "data" not in events["empty"] and "data_base64" not in events["empty"]
        daemon.stop()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
