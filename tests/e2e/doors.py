#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The doors of the admin server as clients meet them: TLS with certificates that change, client certificates, a proxy in front, a
Unix socket, and who is turned away at each. Speaks TAP.

Usage: doors.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import warnings

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import BINARY, Skip, World, clean_environment, run_tests, until

TESTS = []


def test(function):
    TESTS.append(function)
    return function


# ---- certificates ----

def openssl(*args):
    if shutil.which("openssl") is None:
        raise Skip("openssl is not installed")
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def authority(w, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", str(w.path(f"{name}.key")), "-out", str(w.path(f"{name}.pem")))


def certificate(w, ca, name, subject, usage, alt=None):
    """NAME.pem and NAME.key, put in place by a rename each, as those who renew certificates do."""
    ext = w.path(f"{name}.ext")
    ext.write_text(f"extendedKeyUsage={usage}\n" + (f"subjectAltName={alt}\n" if alt else ""), "utf-8")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={subject}",
            "-keyout", str(w.path(f"{name}.key.new")), "-out", str(w.path(f"{name}.csr")))
    openssl("x509", "-req", "-in", str(w.path(f"{name}.csr")), "-CA", str(w.path(f"{ca}.pem")), "-CAkey", str(w.path(f"{ca}.key")),
            "-CAcreateserial", "-days", "2", "-extfile", str(ext), "-out", str(w.path(f"{name}.pem.new")))
    for kind in ("key", "pem"):
        os.replace(w.path(f"{name}.{kind}.new"), w.path(f"{name}.{kind}"))


def server_certificate(w, subject="first"):
    certificate(w, "ca", "relay", subject, "serverAuth", "DNS:relay.example,IP:127.0.0.1")


# ---- clients ----

def address(daemon):
    daemon.says('"admin listening" address=')
    host, port = re.search(r'msg="admin listening" address=(\S+):(\d+)', daemon.log()).groups()
    return "127.0.0.1" if host == "0.0.0.0" else host, int(port)


def trusting(w, client=None, ca="ca"):
    context = ssl.create_default_context(cafile=str(w.path(f"{ca}.pem")))
    if client:
        context.load_cert_chain(str(w.path(f"{client}.pem")), str(w.path(f"{client}.key")))
    return context


def ask(connection, path="/livez", method="GET", headers=None, body=None):
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def plain(at):
    return http.client.HTTPConnection(*at, timeout=60)


def secure(at, context):
    return http.client.HTTPSConnection(*at, timeout=60, context=context)


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def subject_of(at, context):
    with socket.create_connection(at, timeout=60) as raw, context.wrap_socket(raw, server_hostname="relay.example") as s:
        return dict(pair for part in s.getpeercert()["subject"] for pair in part)["commonName"]


def with_tls(w, **more):
    authority(w, "ca")
    server_certificate(w)
    w.config["admin"] = {"listen": "127.0.0.1:0", "hosts": ["relay.example"], "tls": {"cert": "relay.pem", "key": "relay.key", **more}}
    w.write_config()


def refused(w, admin, words):
    """At the start and by `config check`, with a line that says what to do."""
    w.config["admin"] = admin
    w.write_config()
    for command in (["run"], ["config", "check"]):
        done = subprocess.run([BINARY, "--config", str(w.config_path), *command], cwd=w.folder, text=True, capture_output=True,
                              timeout=60, check=False, env=clean_environment())
        assert done.returncode == 78 and words in done.stderr + done.stdout, (command, done)


# ---- tests ----

@test
def other_addresses_need_tls_and_tokens():
    own = {"cert": "relay.pem", "key": "relay.key"}
    with World() as w:
        for admin in ({"listen": "0.0.0.0:0"}, {"listen": "[::]:0", "tls": own}, {"listen": "10.0.0.1:1", "auth": "tokens"},
                      {"listen": "0.0.0.0:0", "tls": "terminated", "trusted_proxies": ["10.0.0.0/8"]}):
            refused(w, admin, "must be a loopback address, or have")
        refused(w, {"tls": {"cert": "relay.pem"}}, 'needs both "cert" and "key"')
        refused(w, {"tls": {"client_ca": "ca.pem"}}, '"client_ca" needs')
        refused(w, {"tls": "terminated"}, 'needs "trusted_proxies"')
        refused(w, {"trusted_proxies": ["10.0.0.0/8"]}, 'needs "tls: terminated"')
        refused(w, {"hosts": ["relay.example:80"]}, "without a port")
        refused(w, {"cors": ["https://dash.example/x"]}, "without a path")


@test
def a_certificate_that_is_none_stops_the_start():
    with World() as w:
        with_tls(w)
        w.path("relay.key").write_text("no key", "utf-8")
        for name in ("relay.key", None):
            if name is None:
                w.path("relay.key").unlink()
            done = subprocess.run([BINARY, "--config", str(w.config_path), "run"], cwd=w.folder, text=True, capture_output=True,
                                  timeout=60, check=False, env=clean_environment())
            assert done.returncode == 78 and "relay.key" in done.stderr, done


@test
def tls_serves_and_takes_renewed_certificates_without_dropping_anybody():
    with World() as w:
        with_tls(w)
        w.config["admin"].update(listen="0.0.0.0:0", auth="tokens")
        w.write_config()
        daemon = w.daemon().ready()
        at, context = address(daemon), trusting(w)
        assert ask(secure(at, context))[0] == 200
        assert subject_of(at, context) == "first"
        old = secure(at, context)
        old.request("GET", "/livez")
        assert old.getresponse().read()
        server_certificate(w, "second")
        until(lambda: subject_of(at, context) == "second", "the new certificate")
        daemon.says("admin certificate reloaded")
        old.request("GET", "/livez")  # on the connection from before
        assert old.getresponse().status == 200
        old.close()
        w.path("relay.pem").write_text("broken", "utf-8")
        until(lambda: subject_of(at, context) and "certificate not taken" in daemon.log(), "the complaint")
        assert subject_of(at, context) == "second", "the older one stays"
        server_certificate(w, "third")
        daemon.signal(signal.SIGHUP)
        until(lambda: subject_of(at, context) == "third", "the third certificate")
        daemon.stop()


@test
def old_versions_of_tls_and_plain_text_are_refused():
    with World() as w:
        with_tls(w)
        daemon = w.daemon().ready()
        at = address(daemon)
        for version, good in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)):
            context = trusting(w)
            context.set_ciphers("DEFAULT:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it is old is the point
                context.minimum_version = context.maximum_version = version
            try:
                assert ask(secure(at, context))[0] == 200 and good, version
            except (ssl.SSLError, OSError):
                assert not good, version
        with socket.create_connection(at, timeout=60) as s:
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            got = b""
            try:
                while more := s.recv(4096):
                    got += more
            except ConnectionError:
                pass
            assert b"200 OK" not in got, got
        for _ in range(50):  # handshakes that are not finished
            s = socket.create_connection(at, timeout=60)
            s.sendall(b"\x16\x03\x01\x02\x00\x01")
            s.close()
        assert ask(secure(at, trusting(w)))[0] == 200
        daemon.stop()


@test
def client_certificates_are_required_when_an_authority_is_named():
    with World() as w:
        authority(w, "people")
        authority(w, "strangers")
        certificate(w, "people", "anna", "anna", "clientAuth")
        certificate(w, "strangers", "eve", "eve", "clientAuth")
        certificate(w, "people", "machine", "machine", "serverAuth")
        with_tls(w, client_ca="people.pem")
        daemon = w.daemon().ready()
        at = address(daemon)
        assert ask(secure(at, trusting(w, "anna")))[0] == 200
        for client in (None, "eve", "machine"):
            try:
                status = ask(secure(at, trusting(w, client)))[0]
            except (ssl.SSLError, OSError, http.client.HTTPException):
                continue
            raise AssertionError(f"{client} was let in: {status}")
        shutil.copy(w.path("strangers.pem"), w.path("people.pem.new"))
        os.replace(w.path("people.pem.new"), w.path("people.pem"))

        def eve_may():
            try:
                return ask(secure(at, trusting(w, "eve")))[0] == 200
            except (ssl.SSLError, OSError, http.client.HTTPException):
                return False
        until(eve_may, "the other authority")
        daemon.stop()


@test
def handshakes_and_probes_have_threads_of_their_own():
    """How long probes take beside a flood is measured by bench/api.py."""
    with World() as w:
        with_tls(w)
        w.config["admin"]["health_listen"] = "127.0.0.1:0"
        w.write_config()
        daemon = w.daemon().ready()
        at, context, over = address(daemon), trusting(w), threading.Event()
        daemon.says('"health listening" address=')
        probes = tuple(re.search(r'msg="health listening" address=(\S+):(\d+)', daemon.log()).groups())
        done = [0]

        def shake():
            while not over.is_set():
                subject_of(at, context)
                done[0] += 1

        crowd = [threading.Thread(target=shake) for _ in range(4)]
        for thread in crowd:
            thread.start()
        try:
            for _ in range(30):
                assert ask(plain((probes[0], int(probes[1]))))[0] == 200
            until(lambda: done[0] >= 20, "handshakes")
            assert ask(secure(at, context), headers={"Host": "relay.example"})[0] == 200
        finally:
            over.set()
            for thread in crowd:
                thread.join()
        daemon.stop()


@test
def names_and_origins_are_checked():
    with World() as w:
        with_tls(w)
        w.config["admin"]["cors"] = ["https://dash.example"]
        w.write_config()
        daemon = w.daemon().ready()
        at, context = address(daemon), trusting(w)

        def status(method="GET", path="/livez", **headers):
            return ask(secure(at, context), path, method, {k.replace("_", "-"): v for k, v in headers.items()})[0]

        for host in ("relay.example", "RELAY.example:8189", "localhost", "192.0.2.7:1", "[2001:db8::1]"):
            assert status(Host=host) == 200, host
        for host in ("evil.example", "relay.example.evil.example", "xrelay.example"):
            assert status(Host=host) == 421, host
        api = "/api/v1/nothing"
        assert status("POST", api, Host="relay.example", Origin="https://evil.example") == 403
        assert status("POST", api, Host="relay.example", Origin="null") == 403
        assert status("POST", api, Host="relay.example", Origin="http://relay.example") == 403
        for origin in ("https://relay.example", "https://relay.example:443", "https://dash.example"):
            assert status("POST", api, Host="relay.example", Origin=origin) != 421
            assert b"another origin" not in ask(secure(at, context), api, "POST", {"Host": "relay.example", "Origin": origin})[1]
        head = ask(secure(at, context), api, headers={"Host": "relay.example", "Origin": "https://dash.example"})[2]
        assert head["Access-Control-Allow-Origin"] == "https://dash.example", head
        head = ask(secure(at, context), api, headers={"Host": "relay.example", "Origin": "https://evil.example"})[2]
        assert not [name for name in head if name.startswith("Access-Control")], head
        code, _, head = ask(secure(at, context), api, "OPTIONS",
                            {"Host": "relay.example", "Origin": "https://dash.example", "Access-Control-Request-Method": "POST"})
        assert code == 204 and "POST" in head["Access-Control-Allow-Methods"], (code, head)
        daemon.stop()


@test
def behind_a_proxy_only_the_proxy_may_ask():
    with World() as w:
        for proxies, expected in ((["127.0.0.0/8"], 200), (["192.0.2.0/24"], 403)):
            w.config["admin"] = {"listen": "0.0.0.0:0", "tls": "terminated", "auth": "tokens", "trusted_proxies": proxies,
                                 "hosts": ["relay.example"]}
            w.write_config()
            daemon = w.daemon().ready()
            at = address(daemon)
            assert ask(plain(at), headers={"Host": "relay.example", "X-Forwarded-For": "198.51.100.7"})[0] == expected
            assert ask(plain(at), "/metrics", headers={"Host": "relay.example"})[0] == (401 if expected == 200 else 403)
            assert ask(plain(at), headers={"Host": "evil.example"})[0] == (421 if expected == 200 else 403)
            status = ask(plain(at), "/api/v1/status", headers={"Host": "relay.example"})[0]
            assert status in (401, 403), f"nobody is let in without a token: {status}"
            daemon.stop()


@test
def metrics_from_elsewhere_need_a_token_for_them():
    with World() as w:
        made = w.hikyaku("token", "create", "prometheus", "--role", "metrics", "--actor", "setup", "--reason", "a test", "--json")
        with_tls(w)
        w.config["admin"].update(listen="0.0.0.0:0", auth="tokens")
        w.write_config()
        daemon = w.daemon().ready()
        at, context = address(daemon), trusting(w)
        token = {"Authorization": f"Bearer {json.loads(made)['token']}"}
        code, page, _ = ask(secure(at, context), "/metrics", headers=token)
        assert code == 200 and b"# TYPE hikyaku_" in page, (code, page[:300])
        assert ask(secure(at, context), "/metrics")[0] == 401
        assert ask(secure(at, context), "/metrics", headers={"Authorization": "Bearer hk_wrong"})[0] == 401
        assert ask(secure(at, context), "/api/v1/status", headers=token)[0] == 403  # and for nothing else
        assert ask(secure(at, context), "/livez")[0] == 200
        daemon.stop()


@test
def a_unix_socket_is_its_users_alone_and_is_left_clean():
    with World() as w:
        path = w.path("admin.sock")
        w.config["admin"] = {"listen": "none", "unix": "admin.sock"}
        w.write_config()
        daemon = w.daemon().ready()
        daemon.says('"admin listening" path=')
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_ISSOCK(path.stat().st_mode)
        until(lambda: ask(Unix(path), "/readyz")[0] == 200, "ready")
        status, body, _ = ask(Unix(path), "/api/v1/status")
        assert status == 200 and json.loads(body), (status, body)
        w.hikyaku("token", "create", "somebody", "--role", "viewer", "--actor", "setup", "--reason", "a test")
        status, body, _ = ask(Unix(path), "/api/v1/me")  # the kernel says who it is: no token is needed
        assert status == 200 and json.loads(body) == {"name": f"uid {os.getuid()}", "role": "admin", "reveal": True}, (status, body)
        assert ask(Unix(path), "/api/v1/me", headers={"Authorization": "Bearer hk_wrong"})[0] == 401
        done = subprocess.run([BINARY, "--server", f"unix:{path}", "whoami"], cwd="/", text=True, capture_output=True, timeout=60, check=False,
                              env=clean_environment())
        assert done.returncode == 0 and done.stdout.startswith(f"uid {os.getuid()}: admin"), done

        second = subprocess.run([BINARY, "--config", str(w.config_path), "run"], cwd=w.folder, text=True, capture_output=True,
                                timeout=60, check=False, env=clean_environment())
        assert second.returncode == 75 and "another relay listens there" in second.stderr, second
        assert ask(Unix(path))[0] == 200, "and the first one goes on"
        daemon.kill()
        assert path.exists(), "what was killed leaves it"
        daemon = w.daemon().ready()
        until(lambda: path.exists() and ask(Unix(path))[0] == 200, "the next one takes it over")
        daemon.stop()
        assert not path.exists()

        path.write_text("mine", "utf-8")
        third = subprocess.run([BINARY, "--config", str(w.config_path), "run"], cwd=w.folder, text=True, capture_output=True,
                               timeout=60, check=False, env=clean_environment())
        assert third.returncode == 78 and "not a socket" in third.stderr and path.read_text("utf-8") == "mine", third
        path.unlink()

        with socket.socket(socket.AF_UNIX) as other:  # somebody else's
            other.bind(str(path))
            other.listen(1)
            fourth = subprocess.run([BINARY, "--config", str(w.config_path), "run"], cwd=w.folder, text=True, capture_output=True,
                                    timeout=60, check=False, env=clean_environment())
            assert fourth.returncode == 75 and "another process listens there" in fourth.stderr, fourth
            assert path.exists()


sys.exit(run_tests(TESTS))
