#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that leave by a proxy: tinyproxy (HTTP, with a password), squid (HTTP and HTTPS, with an access list) and microsocks
(SOCKS5, with a password), all real. What a proxy says is never taken for the receiver's word. Speaks TAP.

Usage: egress.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest.mock

sys.dont_write_bytecode = True  # the source folder stays as it is
from alerts import Mail
from ports import free_port
from support import Answer, Receiver, Skip, World, run_tests, until

USER, PASSWORD, WRONG = "relay", "open-sesame-81", "nothing-opens-17"
TOKEN = "bearer-of-the-receiver-4711"
ENV = {"PROXY_PASSWORD": PASSWORD, "WRONG_PASSWORD": WRONG, "RECEIVER_TOKEN": TOKEN}
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def program(name, package):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not path:
        raise Skip(f"{name} is not installed (Debian: {package})")
    return path


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Proxy:
    """A process on a port of its own, in a folder that any user may write to."""

    def __init__(self, stack):
        self.port, self.process = free_port(), None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-proxy-"))
        self.folder.chmod(0o777)
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        stack.callback(self.kill)

    def start(self):
        with open(self.folder / "out", "ab") as out:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        until(lambda: listens(self.port) or self.process.poll() is not None, f"{self.command()[0]} to listen", 30)
        assert self.process.poll() is None, self.read("out")
        return self

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def read(self, name):
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


class Tinyproxy(Proxy):
    """`denied`: a pattern of hosts that it does not let pass."""

    def __init__(self, stack, denied="^denied[.]test$"):
        super().__init__(stack)
        self.binary = program("tinyproxy", "tinyproxy-bin")
        (self.folder / "filter").write_text(denied + "\n", encoding="ascii")
        (self.folder / "conf").write_text(f"""Port {self.port}
Listen 127.0.0.1
Timeout 60
MaxClients 100
LogFile "{self.folder}/log"
LogLevel Connect
Allow 127.0.0.1
BasicAuth {USER} {PASSWORD}
Filter "{self.folder}/filter"
""", encoding="ascii")

    def command(self):
        return [self.binary, "-d", "-c", str(self.folder / "conf")]

    def log(self):
        return self.read("log")


class Squid(Proxy):
    """Lets CONNECT go to the ports that it is given; the header fields that it gets are in its log."""

    def __init__(self, stack, ports, certificate):
        super().__init__(stack)
        self.binary, self.tls_port = program("squid", "squid"), free_port()
        user = "proxy" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        for name in ("cert.pem", "key.pem"):
            shutil.copy(certificate / name, self.folder / name)
            (self.folder / name).chmod(0o644)
        (self.folder / "conf").write_text(f"""http_port 127.0.0.1:{self.port}
https_port 127.0.0.1:{self.tls_port} tls-cert={self.folder}/cert.pem tls-key={self.folder}/key.pem
acl ours port {' '.join(map(str, ports))}
acl CONNECT method CONNECT
http_access allow CONNECT ours
http_access deny all
log_mime_hdrs on
access_log stdio:{self.folder}/access
cache_log {self.folder}/cache
pid_filename {self.folder}/pid
coredump_dir {self.folder}
cache deny all
netdb_filename none
pinger_enable off
shutdown_lifetime 0 seconds
max_filedescriptors 1024
cache_effective_user {user}
visible_hostname squid.test
""", encoding="ascii")

    def command(self):
        return [self.binary, "-N", "-f", str(self.folder / "conf")]

    def log(self):
        return self.read("access")


class Microsocks(Proxy):
    def command(self):
        return [program("microsocks", "microsocks"), "-i", "127.0.0.1", "-p", str(self.port), "-u", USER, "-P", PASSWORD]

    def log(self):
        return self.read("out")


def make_certificate(folder, name):
    program("openssl", "openssl")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                    str(folder / "key.pem"), "-out", str(folder / "cert.pem")], check=True, capture_output=True)
    return folder


class TlsReceiver(Receiver):
    def __init__(self, folder):
        super().__init__()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def url(self, name):
        return f"https://localhost:{self.port}/{name}"


class Net(World):
    """`proxies`: by name, as the configuration has them. Each destination gets one message by go()."""

    allow = ("::1/128",)

    def __init__(self, proxies, destinations, **more):
        super().__init__(destinations=(), proxies=proxies, **more)
        self.config["destinations"] = {name: self.destination(name, **extra) for name, extra in destinations.items()}
        self.write_config()

    def daemon(self, name="relay", env=None, **more):
        return super().daemon(name, env={**ENV, **(env or {})}, **more)

    def go(self, *names):
        for name in names or self.config["destinations"]:
            self.insert(destination=name, message_id=f"to-{name}")

    def cause(self, name):
        """(class, cause, status, error) of its first attempt."""
        text = "SELECT class, cause, status, error FROM outbox_attempts WHERE destination = ? ORDER BY n LIMIT 1"
        return until(lambda: self.sql(text, name), f"an attempt at {name}")[0]

    def blocked(self, name):
        text = "SELECT 'permanent', reason_code, 0, error_message FROM dead_letters WHERE destination = ?"
        return until(lambda: self.sql(text, name), f"a dead letter of {name}")[0]

    def keeps_no_secret(self, daemon):
        for secret in (PASSWORD, WRONG):
            assert secret not in daemon.log()
            for file in self.folder.glob("outbox.db*"):
                assert secret.encode() not in file.read_bytes(), file


def entry(port, scheme="http", password="${PROXY_PASSWORD}", **more):
    who = {"user": USER, "password": password} if password else {}
    return {"url": f"{scheme}://127.0.0.1:{port}", **who, **more}


@contextlib.contextmanager
def all_proxies():
    """tinyproxy, squid, microsocks, and a receiver with TLS; squid lets CONNECT go to that one's port and `plain`'s."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-cert-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        tls = TlsReceiver(make_certificate(folder, "localhost"))
        stack.callback(tls.close)
        tiny, socks = Tinyproxy(stack).start(), Microsocks(stack).start()

        def squid(*ports):
            return Squid(stack, [tls.port, *ports], folder).start()

        yield tiny, squid, socks, tls, folder


@test
def every_kind_of_proxy_carries_messages():
    with all_proxies() as (tiny, make_squid, socks, tls, folder), Net({}, {}) as w:
        squid = make_squid(w.receiver.port)
        w.config["proxies"] = {
            "tiny": entry(tiny.port), "squid": entry(squid.port, password=None),
            "squid-tls": entry(squid.tls_port, "https", password=None, ca_file=str(folder / "cert.pem")),
            "socks": entry(socks.port, "socks5"), "socks-h": entry(socks.port, "socks5h"),
            "not-here": entry(tiny.port, no_proxy=["127.0.0.0/8", "::1", "localhost"]),
            "named": entry(tiny.port, dns="proxy")}
        for proxy in w.config["proxies"]:
            w.config["destinations"][f"http-{proxy}"] = w.destination(
                f"http-{proxy}", proxy=proxy, http={"auth": {"bearer": "${RECEIVER_TOKEN}"}})
            w.config["destinations"][f"https-{proxy}"] = w.destination(
                f"https-{proxy}", proxy=proxy, http={"url": tls.url(proxy), "ca_file": str(folder / "cert.pem")})
        w.write_config()
        w.go()
        daemon = w.daemon().ready()
        w.settled(sent=len(w.config["destinations"]))
        for r in w.receiver.arrived():
            assert r.headers["authorization"] == f"Bearer {TOKEN}", r.headers
        for r in (*w.receiver.arrived(), *tls.arrived()):
            assert not [name for name in r.headers if name.startswith("proxy") or name == "via"], r.headers
        assert len(w.receiver.arrived()) == 7 and len(tls.arrived()) == 7
        # two by tiny, two by `named`, none by `not-here`; each asks for an address
        asked = [line for line in tiny.log().splitlines() if "CONNECT" in line and "Request" in line]
        assert len(asked) == 4 and all("CONNECT 127.0.0.1:" in line or "CONNECT [::1]:" in line for line in asked), asked
        daemon.stop()
        until(lambda: squid.log().count("CONNECT ") == 4, lambda: squid.log(), 20)  # written when a tunnel ends
        assert TOKEN not in squid.log() and "webhook-id" not in squid.log().lower(), squid.log()
        w.keeps_no_secret(daemon)


@test
def what_a_proxy_says_is_not_the_receivers_word():
    with all_proxies() as (tiny, make_squid, socks, tls, _), Net({}, {}) as w:
        squid, closed, dead = make_squid(), free_port(), free_port()
        w.config["proxies"] = {
            "tiny": entry(tiny.port), "tiny-wrong": entry(tiny.port, password="${WRONG_PASSWORD}"),
            "tiny-nobody": entry(tiny.port, password=None), "squid": entry(squid.port, password=None),
            "socks": entry(socks.port, "socks5"), "socks-wrong": entry(socks.port, "socks5", password="${WRONG_PASSWORD}"),
            "socks-nobody": entry(socks.port, "socks5", password=None),
            "untrusted": entry(squid.tls_port, "https", password=None),
            "dead": entry(dead), "dead-socks": entry(dead, "socks5"), "no-proxy": entry(w.receiver.port, password=None),
            "nowhere": {"url": "http://proxy.invalid:3128"}, "named": entry(tiny.port, dns="proxy")}
        here, there = w.receiver.url("x"), f"http://127.0.0.1:{closed}/x"
        wanted = {  # destination: (proxy, url, class, cause, words)
            "wrong": ("tiny-wrong", here, "transient", "PROXY_AUTH_FAILED", "tiny-wrong does not take our credentials (HTTP 401)"),
            "nobody": ("tiny-nobody", here, "transient", "PROXY_AUTH_FAILED", "tiny-nobody does not take our credentials (HTTP 407)"),
            "wrong-socks": ("socks-wrong", here, "transient", "PROXY_AUTH_FAILED", "socks-wrong does not take our credentials ("),
            "nobody-socks": ("socks-nobody", here, "transient", "PROXY_AUTH_FAILED", "socks-nobody does not take our credentials ("),
            "refused": ("squid", here, "unknown", "PROXY_REFUSED", "squid does not let us to this target (HTTP 403)"),
            "closed": ("tiny", there, "transient", "TRANSIENT_NETWORK", "tiny cannot connect to the target (HTTP 5"),
            "closed-socks": ("socks", there, "transient", "TRANSIENT_NETWORK", "socks cannot connect to the target"),
            "untrusted": ("untrusted", here, "transient", "PROXY_UNAVAILABLE", "proxy untrusted failed"),
            "dead": ("dead", here, "transient", "PROXY_UNAVAILABLE", "proxy dead failed"),
            "dead-socks": ("dead-socks", here, "transient", "PROXY_UNAVAILABLE", "proxy dead-socks failed"),
            "nowhere": ("nowhere", here, "transient", "PROXY_UNAVAILABLE", "proxy nowhere failed"),
            "no-proxy": ("no-proxy", here, "unknown", "PROXY_REFUSED", "HTTP 501"),
            # asked for by name, or looked up here: the same name, which nobody knows
            "by-proxy": ("named", "http://target.invalid/", "transient", "TRANSIENT_NETWORK", "named cannot connect"),
            "by-relay": ("tiny", "http://target.invalid/", "transient", "TRANSIENT_NETWORK", "cannot resolve target.invalid"),
            "denied": ("named", "http://denied.test/", "unknown", "PROXY_REFUSED", "named does not let us to this target (HTTP 403)"),
            # the guard looks at the target, whoever looks it up
            "inside": ("tiny", "http://127.0.0.1:9/", "permanent", "BLOCKED_BY_POLICY", "127.0.0.1 is a loopback address"),
            "inside-named": ("named", "http://localhost:9/", "permanent", "BLOCKED_BY_POLICY", "127.0.0.1 is a loopback"),
            "inside-socks": ("socks", "http://[::ffff:127.0.0.1]/", "permanent", "BLOCKED_BY_POLICY", "loopback"),
            "metadata": ("named", "http://169.254.169.254/", "permanent", "BLOCKED_BY_POLICY", "link-local")}
        for name, (proxy, url, *_) in wanted.items():
            allow = ["10.0.0.0/8"] if name in ("inside", "inside-named", "inside-socks", "metadata") else ["127.0.0.0/8"]
            w.config["destinations"][name] = {"http": {"url": url}, "allow": allow, "proxy": proxy}
        w.config["policies"]["quick"] = {"max_attempts": 3, "backoff": {"kind": "fixed", "base": "60s"}, "breaker": "off"}
        w.write_config()
        w.go()
        daemon = w.daemon().ready()
        for name, (_, _, cls, cause, words) in wanted.items():
            found = w.cause(name) if cls != "permanent" else w.blocked(name)
            assert (found[0], found[1], found[2]) == (cls, cause, 0) and words in found[3], (name, found)
        assert not w.receiver.arrived()
        assert "CONNECT target.invalid:80" in tiny.log(), tiny.log()
        assert "169.254" not in tiny.log() and ":9 " not in tiny.log() and "localhost" not in tiny.log(), tiny.log()
        assert tiny.log().count("CONNECT target.invalid:80") == 1, tiny.log()
        daemon.stop()
        w.keeps_no_secret(daemon)


@test
def a_proxy_dies_and_comes_back():
    with contextlib.ExitStack() as stack:
        tiny = Tinyproxy(stack).start()
        with Net({"tiny": entry(tiny.port)}, {"shop": {"proxy": "tiny"}, "later": {"proxy": "tiny"}}) as w:
            w.receiver.on("shop", lambda r: Answer(200, hang=True) if r.n == 1 else 200)
            daemon = w.daemon().ready()
            w.go("shop")
            until(w.receiver.arrived, "the request")
            tiny.kill()
            cls, cause, status, error = w.cause("shop")
            assert (cls, cause, status) == ("transient", "TRANSIENT_NETWORK", 0), (cls, cause, status, error)
            assert w.sql("SELECT possibly_delivered FROM outbox_attempts WHERE destination = 'shop' ORDER BY n LIMIT 1") == [(1,)]
            w.go("later")
            assert w.cause("later")[:2] == ("transient", "PROXY_UNAVAILABLE")
            tiny.start()
            w.settled(sent=2)
            assert len(w.receiver.arrived("to-shop")) == 2 and len(w.receiver.arrived("to-later")) == 1
            daemon.stop()


@test
def the_default_proxy_holds_for_definitions_channels_and_telemetry():
    with contextlib.ExitStack() as stack:
        tiny = Tinyproxy(stack).start()
        with Net({"tiny": entry(tiny.port)}, {"yes": {}, "no": {"proxy": "none"}}, default_proxy="tiny",
                 definitions={"allow": ["127.0.0.0/8"]}) as w:
            w.config["channels"] = {"ops": {"webhook": {"url": w.receiver.url("notice")}, "allow": ["127.0.0.0/8"]}}
            w.config["alerts"] = {"interval": "100ms", "rules": [{"name": "dead-letter", "when": "dead_letter"}]}
            w.config["telemetry"] = {"endpoint": w.receiver.url("").rstrip("/"), "metrics": False}
            w.config["validate"] = [{"event_type": "Bad", "required": ["x"]}]
            w.write_config()
            defined = {"http": {"url": w.receiver.url("defined")}, "allow": ["127.0.0.0/8"]}
            os.environ.update(ENV)
            try:
                w.hikyaku("destinations", "create", "defined", "--reason", "test", "--definition", json.dumps(defined))
                code, said = w.try_hikyaku("destinations", "create", "around", "--reason", "test", "--definition",
                                           json.dumps({**defined, "proxy": "none"}))
                assert code and "cannot go around the relay's default_proxy" in said, said
                code, said = w.try_hikyaku("destinations", "create", "other", "--reason", "test", "--definition",
                                           json.dumps({**defined, "proxy": "teeny"}))
                assert code and "there is no proxy" in said, said
            finally:
                for name in ENV:
                    os.environ.pop(name)
            daemon = w.daemon().ready()
            w.go()
            w.insert(destination="defined", message_id="to-defined")
            w.insert(destination="yes", message_id="bad", event_type="Bad")
            w.settled(sent=3, dead=1)
            for path in ("/notice", "/v1/traces"):
                until(lambda path=path: [r for r in w.receiver.arrived() if r.path == path], path)
            daemon.stop()
            connects = tiny.log().count("Request (file descriptor")
            assert connects >= 4, tiny.log()  # two destinations, the channel, the collector
            tiny.kill()  # what goes directly still does, and nothing else
            w.insert(destination="no", message_id="again")
            w.insert(destination="yes", message_id="waits")
            second = w.daemon("second").ready()
            until(lambda: w.receiver.arrived("again"), "the direct one")
            until(lambda: w.sql("SELECT 1 FROM outbox_attempts WHERE message_id = 'waits' AND cause = 'PROXY_UNAVAILABLE'"), "the other")
            assert not w.receiver.arrived("waits")
            second.stop()
            w.keeps_no_secret(daemon)


@test
def mail_goes_by_the_proxy_that_its_channel_names_and_by_no_other():
    with contextlib.ExitStack() as stack:
        tiny, socks, mail = Tinyproxy(stack).start(), Microsocks(stack).start(), Mail()
        stack.callback(mail.close)
        proxies = {"tiny": entry(tiny.port), "socks": entry(socks.port, "socks5"), "named": entry(socks.port, "socks5h"),
                   "locked": entry(tiny.port, password="${WRONG_PASSWORD}"), "gone": entry(free_port()),
                   "not-here": entry(free_port(), no_proxy=["localhost"])}
        with Net(proxies, {"shop": {}}, default_proxy="gone") as w:
            at = mail.url.replace("127.0.0.1", "localhost")
            mails = {"email": {"url": at, "from": "hikyaku@example.com", "to": "ops@example.com", "starttls": False}}
            w.config["channels"] = {f"by-{name}": {**mails, "proxy": name, "timeout": "30s"} for name in proxies}
            w.config["channels"] |= {"direct": {**mails, "proxy": "none"}, "silent": mails}
            w.write_config()

            def tell(channel):
                with unittest.mock.patch.dict(os.environ, ENV):
                    return w.try_hikyaku("alerts", "test", channel)

            for n, name in enumerate(("by-tiny", "by-socks", "by-named", "by-not-here", "direct", "silent"), 1):
                code, said = tell(name)
                assert code == 0 and len(mail.mails) == n, (name, said)
            asked = [line for line in tiny.log().splitlines() if "CONNECT" in line and "Request" in line]
            port = mail.url.rsplit(":", 1)[1]
            assert len(asked) == 1 and re.search(rf"CONNECT (127\.0\.0\.1|\[::1\]):{port} ", asked[0]), asked
            assert socks.log().count("connected to") == 2, socks.log()
            for name, wanted in (("by-locked", "proxy locked does not take our credentials"), ("by-gone", "by proxy gone: ")):
                code, said = tell(name)
                assert code and wanted in said and WRONG not in said and len(mail.mails) == 6, (name, said)
            mail.close()
            code, said = tell("by-tiny")  # the proxy is there, and the mail server is not
            assert code and "by proxy tiny: " in said, said


@test
def a_configuration_that_makes_no_sense_is_refused():
    with Net({}, {"shop": {}}) as w:
        good = {"url": "http://127.0.0.1:3128"}
        for proxies, words in (
                ({"p": {"url": "ftp://x:1"}}, "must begin with http://, https://, socks5:// or socks5h://"),
                ({"p": {"url": "http://proxy"}}, "must be a host and a port"),
                ({"p": {"url": "http://u:p@proxy:1"}}, "must not hold a user name or password"),
                ({"p": {**good, "user": "u"}}, '"user" needs "password" as well'),
                ({"p": {**good, "user": "u", "password": "plain-text-here"}}, '"password" must be a reference'),
                ({"none": good}, 'no proxy can be called "none"'),
                ({"p": {**good, "no_proxy": ["a b"]}}, "must be a host, .example"),
                ({"p": {"url": "socks5h://127.0.0.1:1", "dns": "relay"}}, "socks5h:// means dns: proxy"),
                ({"q": good}, 'there is no proxy "p"')):
            w.config["proxies"], w.config["destinations"]["shop"]["proxy"] = proxies, "p" if "none" not in proxies else "none"
            w.write_config()
            code, said = w.try_hikyaku("config", "check")
            assert code and words in said and "plain-text-here" not in said, (proxies, said)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(run_tests(TESTS))
