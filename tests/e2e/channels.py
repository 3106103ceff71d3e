#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Channels against real servers: what arrives is read by other people's programs (Python's email package, aiosmtpd, the
standardwebhooks package, a server that knows Slack's rules), and what goes wrong is said without any secret."""
import asyncio
import base64
import email
import email.header
import email.policy
import email.utils
import hashlib
import hmac
import html.parser
import http.server
import json
import logging
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import warnings

from ports import free_port
from support import BINARY, Skip, clean_environment, run_tests, until

SYSTEM_PYTHON = "/usr/bin/python3"  # where Debian's python3-aiosmtpd lies
try:
    from aiosmtpd import smtp as aiosmtpd
except ImportError:
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and os.path.exists(SYSTEM_PYTHON) and \
            subprocess.run([SYSTEM_PYTHON, "-c", "import aiosmtpd"], capture_output=True, check=False).returncode == 0:
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    aiosmtpd = None

CHANNEL = os.environ["CHANNEL"]
TESTS = []
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
AT = 1794700725000  # 2026-11-14T23:58:45Z
NOTICE = {"about": "dead_letter", "kind": "firing", "severity": "critical", "rule": "dead-billing",
          "fingerprint": "3f2a91c04be7d512", "count": 10000, "since_ms": AT - 725000, "at_ms": AT, "destination": "billing",
          "reason": "HTTP_422", "event_type": "OrderCreated", "example_id": "0190-abc", "detail": "422 Unprocessable Entity",
          "relay": "relay-1", "link": "https://ops.example.com/dead?group=3f2a"}
KINDS = ["dead_letter", "dead_letters_above", "dead_letters_rising", "oldest_age", "breaker_open", "paused",
         "store_unreachable", "no_progress", "lag_growing", "requeue_failed", "key_missing"]
NOTICES = ["firing", "update", "resolved", "test"]
# What breaks out of whatever it stands in, if it is let.
HOSTILE = [
    "\r\nBcc: evil@example.com\r\n\r\nbody", "a\nb\rc\td\0e", "</td></table><script>alert(1)</script>", "<!channel> <@U1> <http://x|y>",
    "```` ` ``` `", "&lt;&amp;<>&\"'", "\u202e\u2066gnp.exe", "\u200b\ufeff", "=?UTF-8?B?QmNj?=", ".\r\n.\r\nQUIT\r\n", "'; rm -rf ~; echo '",
    "$(reboot)`id`", "{dest} [x] {n:1|2} %s %n", "😀" * 400, "飛脚" * 900, "&" * 5000, "\x7f\x1b[31m\x1b]0;t\x07", "-rf", " ", "\u2028x\u2029",
]


def test(function):
    TESTS.append(function)
    return function


def run(channel, notice=None, id="n-1", mode="send", env=None, pass_fds=(), **changes):
    given = {"channel": {"name": "ops", "timeout_ms": 20000, **channel}, "notice": {**NOTICE, **(notice or {}), **changes}, "id": id}
    done = subprocess.run([CHANNEL, mode], input=json.dumps(given), text=True, capture_output=True, timeout=120, check=False, env=env,
                          pass_fds=pass_fds)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-4000:])
    return done.stdout if mode == "words" else json.loads(done.stdout)


def took(channel, notice=None, **more):
    said = run(channel, notice, **more)
    assert said["code"] == "OK", said
    return said


def refused(code, channel, *words, **more):
    said = run(channel, **more)
    assert said["code"] == code, said
    for word in words:
        assert word in said["error"], (word, said)
    return said


def hostile_notices():
    texts = ["destination", "reason", "event_type", "example_id", "detail", "rule", "relay", "fingerprint", "link"]
    for n, text in enumerate(HOSTILE):
        no_nul = text.replace("\0", "")
        yield {**NOTICE, "about": KINDS[n % len(KINDS)], "kind": NOTICES[n % 3],
               **{key: text if key in texts[:5] else no_nul for key in texts}}


# ---- an HTTP server ----

class Web:
    """Answers what `answer(request)` says: (status, headers, body)."""

    def __init__(self, answer=None, tls=None):
        self.requests, web = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}
                web.requests.append(request)
                status, headers, text = (answer or (lambda _: (200, {}, b"ok")))(request)
                if status is None:
                    web.closing.wait(60)
                    return
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(text)))
                else:
                    self.close_connection = True
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # who goes away early is tested here

        self.closing = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


def hidden(text):
    """Whatever shows nothing or changes how others show."""
    return [c for c in text if ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 or c in "\u202e\u2066\u200b\ufeff\u2028\u2029"]


# ---- Slack, as its reference describes blocks ----

def check_text_object(o, limit):
    assert o["type"] in ("plain_text", "mrkdwn"), o
    assert set(o) <= {"type", "text", "emoji"} if o["type"] == "plain_text" else set(o) <= {"type", "text", "verbatim"}, o
    assert 1 <= len(o["text"].encode("utf-16-le")) // 2 <= limit, (len(o["text"]), o)
    assert not hidden(o["text"]), o
    rest = o["text"].replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert not set(rest) & set("&<>"), o  # nothing that Slack would take for a link or a mention


def check_slack(message):
    assert set(message) == {"text", "blocks"} and message["text"], message
    assert len(message["blocks"]) <= 50
    for block in message["blocks"]:
        kind = block["type"]
        if kind == "header":
            assert set(block) == {"type", "text"} and block["text"]["type"] == "plain_text"
            check_text_object(block["text"], 150)
        elif kind == "section":
            assert set(block) in ({"type", "text"}, {"type", "fields"}), block
            if "text" in block:
                check_text_object(block["text"], 3000)
                if block["text"]["type"] == "mrkdwn":  # a label, and foreign text that stays in its code
                    assert block["text"]["text"].count("`") == block["text"]["text"].count("```") * 3 == 6, block
            else:
                assert 1 <= len(block["fields"]) <= 10
                for field in block["fields"]:
                    check_text_object(field, 2000)
                    assert field["text"].startswith("*") and field["text"].count("`") in (0, 2), field
        elif kind == "context":
            assert set(block) == {"type", "elements"} and 1 <= len(block["elements"]) <= 10
            for element in block["elements"]:
                check_text_object(element, 3000)
                assert element["text"].count("`") in (0, 2, 4), element
        elif kind == "actions":
            assert set(block) == {"type", "elements"} and 1 <= len(block["elements"]) <= 25
            for button in block["elements"]:
                assert set(button) == {"type", "text", "url", "action_id"} and button["type"] == "button", button
                assert button["url"].startswith("https://") and len(button["url"]) <= 3000
                check_text_object(button["text"], 75)
        else:
            raise AssertionError(f"no such block: {block}")


def slack_answer(request):
    """In Slack's own words."""
    if request["path"] != "/services/T000/B000/supersecrettoken":
        return 404, {}, b"no_service"
    try:
        check_slack(json.loads(request["body"]))
    except Exception as why:  # pylint: disable=broad-except
        return 400, {}, f"invalid_blocks {why!r}".encode()
    return 200, {}, b"ok"


def slack(web, **more):
    return {"kind": "slack", "url": web.url("/services/T000/B000/supersecrettoken"), "allow": ["127.0.0.0/8"], **more}


@test
def slack_takes_every_notice_in_both_languages():
    with Web(slack_answer) as web:
        for language in ("en", "ja"):
            for about in KINDS:
                for kind in NOTICES:
                    took(slack(web, language=language), about=about, kind=kind, value=7200, threshold=300)
        assert len(web.requests) == 2 * len(KINDS) * len(NOTICES)
        assert web.requests[0]["headers"]["content-type"].startswith("application/json")


@test
def a_slack_message_has_counts_reason_example_and_link():
    with Web(slack_answer) as web:
        took(slack(web))
        message = json.loads(web.requests[0]["body"])
        blocks = message["blocks"]
        assert message["text"] == blocks[0]["text"]["text"] == "[CRITICAL] 10,000 dead letters for billing: HTTP_422", message
        fields = {f["text"].split("\n")[0].strip("*"): f["text"].split("\n")[1] for b in blocks for f in b.get("fields", [])}
        assert fields["Messages"] == "10,000" and fields["Reason"] == "`HTTP_422`" and fields["Destination"] == "`billing`"
        assert fields["Example"] == "`0190-abc`" and fields["Since"].startswith("2026-11-14 23:46:40 UTC"), fields
        assert [b["elements"][0]["url"] for b in blocks if b["type"] == "actions"] == [NOTICE["link"]]
        assert "hikyaku dead list --filter" in json.dumps(blocks) and "422 Unprocessable Entity" in json.dumps(blocks)


@test
def slack_takes_hostile_texts():
    with Web(slack_answer) as web:
        for notice in hostile_notices():
            for language in ("en", "ja"):
                took(slack(web, language=language), notice)


@test
def slack_says_no_for_ever_or_for_now():
    def answer(request):
        return {"/gone": (404, {}, b"no_service"), "/old": (410, {}, b"channel_is_archived"), "/slow": (429, {"Retry-After": "17"}, b"rate_limited"),
                "/sick": (503, {}, b""), "/moved": (302, {"Location": "http://127.0.0.1:1/"}, b""), "/page": (200, {}, b"<html>Log in</html>"),
                "/bad": (400, {}, b"invalid_blocks")}[request["path"]]
    with Web(answer) as web:
        def to(path):
            return slack(web, url=web.url(path))
        refused("INVALID", to("/gone"), "404", "no_service")
        refused("INVALID", to("/old"), "channel_is_archived")
        refused("INVALID", to("/bad"), "invalid_blocks")
        assert refused("BUSY", to("/slow"), "429", "rate_limited")["retry_ms"] == 17000
        refused("UNAVAILABLE", to("/sick"), "503")
        refused("INVALID", to("/moved"), "302", "redirects")
        refused("INVALID", to("/page"), "Log in")
        assert len(web.requests) == 7


@test
def an_answer_that_is_cut_is_no_refusal():
    for text in (b"", b"o"):
        with Web(lambda _, text=text: (200, {"Content-Length": "2"}, text)) as web:
            refused("UNAVAILABLE", slack(web), "200", "did not come whole")
            took(slack(web, kind="webhook", secret=SECRET))  # only the status counts there


@test
def no_secret_is_in_an_error():
    token = "supersecrettoken"

    def echo(request):  # says back all that it was told
        return 500, {}, (request["path"] + json.dumps(request["headers"]) + request["body"].decode())[-1500:].encode()

    def told(request):
        return 400, {}, f"no such hook {request['path']} {token}".encode()
    for answer in (echo, told):
        with Web(answer) as web:
            for channel in (slack(web), slack(web, kind="webhook", secret=SECRET),
                            slack(web, kind="pagerduty", secret="R0UT1NGKEYR0UT1NGKEYR0UT1NGKEY12")):
                said = run(channel)
                assert said["code"] in ("INVALID", "UNAVAILABLE") and "ops" in said["error"], said
                for secret in (token, SECRET, SECRET[6:], "R0UT1NGKEY"):
                    assert secret not in said["error"], said
    for before in range(40, 110, 3):  # nor is a part of it, where the answer is cut
        with Web(lambda _, n=before: (400, {}, b"x" * n + token.encode() + b"x" * 100)) as web:
            said = refused("INVALID", slack(web), "400")
            assert token[:4] not in said["error"], said
    gone = {"kind": "slack", "allow": ["127.0.0.0/8"], "url": f"http://127.0.0.1:{free_port()}/services/{token}"}
    assert token not in refused("UNAVAILABLE", gone)["error"]
    assert token not in refused("INVALID", {**gone, "url": f"http://user:{token}@127.0.0.1/x"})["error"]
    assert token not in refused("INVALID", {**gone, "url": f"ftp://127.0.0.1/{token}"})["error"]
    assert token not in refused("INVALID", {**gone, "url": f"{token}:///"})["error"]
    assert "password!" not in refused("INVALID", {"kind": "webhook", "url": "http://192.0.2.1/", "secret": "whsec_password!"})["error"]


@test
def forbidden_addresses_are_not_asked():
    with Web() as web:
        for kind, more in (("slack", {}), ("webhook", {}), ("pagerduty", {"secret": "k"})):
            for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"):
                channel = {"kind": kind, "url": f"http://{host}:{web.port}/", **more}
                refused("INVALID", channel, "blocked", "allow")
            refused("INVALID", {"kind": kind, "url": "http://169.254.169.254/latest/", **more}, "blocked", "169.254.169.254")
            refused("INVALID", {"kind": kind, "url": f"http://127.0.0.1:{web.port}/", "allow": ["10.0.0.0/8"], **more}, "blocked")
        assert not web.requests
        took({"kind": "webhook", "url": web.url("/"), "allow": ["127.0.0.1"]})
        assert len(web.requests) == 1


@test
def a_proxy_of_the_environment_is_not_asked():
    with Web() as web, Web() as proxy:
        env = {**os.environ, "http_proxy": proxy.url("/"), "all_proxy": proxy.url("/"), "HTTP_PROXY": proxy.url("/")}
        took({"kind": "webhook", "url": web.url("/"), "allow": ["127.0.0.0/8"]}, env=env)
        assert (len(web.requests), len(proxy.requests)) == (1, 0)


@test
def certificates_are_verified():
    with Certificates() as certs, Web(tls=certs.context()) as web:
        channel = {"kind": "slack", "url": f"https://localhost:{web.port}/", "allow": ["127.0.0.0/8", "::1"]}
        took({**channel, "ca_file": str(certs.cert)})
        refused("UNAVAILABLE", channel, "certificate")
        assert len(web.requests) == 1


@test
def a_receiver_that_hangs_or_floods_is_bounded():
    def flood(_):
        return 500, {}, b"x" * 30_000_000
    with Web(lambda _: (None, {}, b"")) as web:
        refused("TIMEOUT", slack(web, timeout_ms=300))
    with Web(flood) as web:
        said = refused("UNAVAILABLE", slack(web), "500")
        assert len(said["error"]) < 512


# ---- webhook ----

def webhook(web, **more):
    return {"kind": "webhook", "url": web.url("/hook"), "secret": SECRET, "allow": ["127.0.0.0/8"], **more}


@test
def a_webhook_is_signed_and_documented():
    with Web() as web:
        took(webhook(web), id="n-42")
        request = web.requests[0]
        headers, body = request["headers"], json.loads(request["body"])
        signed = f"n-42.{headers['webhook-timestamp']}.".encode() + request["body"]
        mac = base64.b64encode(hmac.new(base64.b64decode(SECRET[6:]), signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-id"] == "n-42" and headers["webhook-signature"] == f"v1,{mac}", headers
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 300
        assert body["type"] == "alert.firing" and body["timestamp"] == "2026-11-14T23:58:45.000Z"
        data = body["data"]
        for key in ("rule", "fingerprint", "severity", "count", "destination", "reason", "event_type", "example_id", "detail", "relay", "link"):
            assert data[key] == NOTICE[key], key
        assert data["value"] is None and data["threshold"] is None
        assert data["kind"] == "dead_letter" and data["since"] == "2026-11-14T23:46:40.000Z" and data["id"] == "n-42"
        assert data["title"] and data["text"] and data["command"].startswith("hikyaku dead list") and data["language"] == "en"
        documented = (pathlib.Path(os.environ["SOURCE_DIR"]) / "docs/channels.md").read_text(encoding="utf-8")
        for key in data:
            assert f"`{key}`" in documented, f"{key} is not in docs/channels.md"


@test
def a_webhook_without_a_secret_is_not_signed():
    with Web() as web:
        took(webhook(web, secret=None))
        assert "webhook-signature" not in web.requests[0]["headers"]


@test
def a_webhook_carries_hostile_texts_unchanged():
    with Web() as web:
        for notice in hostile_notices():
            took(webhook(web), notice, id=notice["fingerprint"])
            data = json.loads(web.requests[-1]["body"])["data"]
            for key in ("destination", "reason", "detail"):
                got, sent = data[key] or "", notice[key]
                assert got == sent or sent.startswith(got.rstrip("\ufffd")) and len(got.encode()) >= 4000, (key, got[:50], sent[:50])
            assert not hidden(data["title"]) and not hidden(data["text"]), data
            assert len(data["title"]) <= 140 and "\n" not in data["title"]
            header = web.requests[-1]["headers"]["webhook-id"]
            assert header.isascii() and all(c.isalnum() or c in "._-" for c in header), header


@test
def the_documentation_shows_real_notices():
    documented = (pathlib.Path(os.environ["SOURCE_DIR"]) / "docs/channels.md").read_text(encoding="utf-8")
    for language in ("en", "ja"):
        assert f"```\n{run({'language': language}, mode='words')}```" in documented, language
        assert run({"language": language}, mode="words", kind="resolved").splitlines()[0] + "\n" in documented, language


VERIFY = """
import { Webhook } from "standardwebhooks";
let text = "";
for await (const piece of process.stdin) text += piece;
const [secret, body, headers] = JSON.parse(text);
console.log(JSON.stringify(new Webhook(secret).verify(body, headers)));
"""


@test
def the_standardwebhooks_package_verifies_it():
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        raise Skip("node and npm are not installed")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-npm-"))
    try:
        (folder / "package.json").write_text('{"private":true,"type":"module"}', encoding="utf-8")
        done = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "standardwebhooks@1.0.0"], cwd=folder,
                              capture_output=True, text=True, timeout=240, check=False)
        if done.returncode != 0:
            raise Skip("npm cannot fetch standardwebhooks: " + done.stderr.strip().splitlines()[-1][:120])
        (folder / "verify.mjs").write_text(VERIFY, encoding="utf-8")
        with Web() as web:
            took(webhook(web, language="ja"), detail="飛脚 <&>")
            request = web.requests[0]
            given = [SECRET, request["body"].decode(), request["headers"]]
            good = subprocess.run([node, "verify.mjs"], cwd=folder, input=json.dumps(given), text=True, capture_output=True, check=False)
            assert good.returncode == 0 and json.loads(good.stdout)["data"]["detail"] == "飛脚 <&>", good
            given[1] = given[1].replace("10000", "10001")
            bad = subprocess.run([node, "verify.mjs"], cwd=folder, input=json.dumps(given), text=True, capture_output=True, check=False)
            assert bad.returncode != 0, "a changed body was accepted"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- PagerDuty ----

def pagerduty_answer(request):
    """As the Events API v2 is described."""
    event = json.loads(request["body"])
    try:
        assert set(event) <= {"routing_key", "event_action", "dedup_key", "payload", "client", "client_url", "links", "images"}
        assert len(event["routing_key"]) == 32 and event["event_action"] in ("trigger", "acknowledge", "resolve")
        assert 1 <= len(event["dedup_key"]) <= 255
        payload = event["payload"]
        assert 1 <= len(payload["summary"]) <= 1024 and payload["source"]
        assert payload["severity"] in ("critical", "error", "warning", "info") and isinstance(payload["custom_details"], dict)
        assert set(payload) <= {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"}
        assert all(link["href"].startswith("https://") and link["text"] for link in event.get("links", []))
        assert not hidden(json.dumps(event, ensure_ascii=False)), event
    except Exception as why:  # pylint: disable=broad-except
        return 400, {}, json.dumps({"status": "invalid event", "message": str(why)}).encode()
    return 202, {}, json.dumps({"status": "success", "message": "Event processed", "dedup_key": event["dedup_key"]}).encode()


@test
def pagerduty_triggers_updates_and_resolves_one_incident():
    with Web(pagerduty_answer) as web:
        channel = {"kind": "pagerduty", "url": web.url("/v2/enqueue"), "secret": "R" * 32, "allow": ["127.0.0.0/8"]}
        for kind in ("firing", "update", "resolved"):
            took(channel, kind=kind)
        events = [json.loads(r["body"]) for r in web.requests]
        assert [e["event_action"] for e in events] == ["trigger", "trigger", "resolve"]
        assert {e["dedup_key"] for e in events} == {NOTICE["fingerprint"]}
        assert events[0]["payload"]["severity"] == "critical" and events[0]["payload"]["custom_details"]["Messages"] == "10,000"
        web.requests.clear()
        took(channel, kind="test")  # leaves no incident behind
        assert [json.loads(r["body"])["event_action"] for r in web.requests] == ["trigger", "resolve"]
        for notice in hostile_notices():
            took({**channel, "language": "ja"}, notice)
        for severity in ("info", "warning"):
            took(channel, severity=severity)
            assert json.loads(web.requests[-1]["body"])["payload"]["severity"] == severity


# ---- mail ----

class Certificates:
    def __init__(self):
        openssl = shutil.which("openssl")
        if not openssl:
            raise Skip("openssl is not installed")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-certs-"))
        self.cert, self.key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", self.key, "-out", self.cert],
                       check=True, capture_output=True)

    def context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


class Smtp:
    """aiosmtpd on a loopback port."""

    def __init__(self, tls=None, starttls=None, auth=None, auth_needs_tls=True, refuse=()):
        if not aiosmtpd:
            raise Skip("aiosmtpd is not installed (Debian: python3-aiosmtpd)")
        self.mails, self.logins, smtp = [], [], self

        class Handler:
            async def handle_RCPT(self, server, session, envelope, address, options):
                if address in refuse:
                    return refuse[address]
                envelope.rcpt_tos.append(address)
                return "250 OK"

            async def handle_DATA(self, server, session, envelope):
                smtp.mails.append({"from": envelope.mail_from, "to": envelope.rcpt_tos, "raw": envelope.original_content,
                                   "tls": session.ssl is not None, "user": session.auth_data})
                return "250 taken"

        def authenticate(server, session, envelope, mechanism, data):
            good = isinstance(data, aiosmtpd.LoginPassword) and (data.login, data.password) == tuple(s.encode() for s in auth)
            smtp.logins.append(mechanism)
            return aiosmtpd.AuthResult(success=good, handled=good, message=None if good else "535 5.7.8 no: " + ascii(data.password))

        options = {}
        if auth:
            options = {"authenticator": authenticate, "auth_required": True, "auth_require_tls": auth_needs_tls}

        logging.getLogger("mail.log").setLevel(logging.CRITICAL + 1)  # what goes wrong here is meant to
        warnings.simplefilter("ignore")
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda *_: None)
        self.server = self.loop.run_until_complete(self.loop.create_server(
            lambda: aiosmtpd.SMTP(Handler(), hostname="mail.example.com", tls_context=starttls, loop=self.loop, **options),
            "127.0.0.1", 0, ssl=tls))
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


def mail(smtp, scheme="smtp", **more):
    return {"kind": "email", "url": f"{scheme}://127.0.0.1:{smtp.port}", "from": "hikyaku <alerts@example.com>",
            "to": ["ops@example.com", "飛脚 当番 <oncall@example.co.jp>"], **more}


class Page(html.parser.HTMLParser):
    """Its tags, and its text."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.links, self.data = [], [], ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for key, value in attrs if key == "href"]

    def handle_data(self, data):
        self.data += data


HEADERS = ["From", "To", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted", "X-Auto-Response-Suppress",
           "X-Hikyaku-Notice", "MIME-Version", "Content-Type"]


def check_mail(got, words, longest=78):
    """What Python's email package, strictly, reads out of it; returns the message."""
    raw = got["raw"]
    assert raw.count(b"\n") == raw.count(b"\r\n") == raw.count(b"\r"), "bare CR or LF"
    ids = (b"Message-ID: <", b"In-Reply-To: <", b"References: <")  # cannot be folded
    assert all(len(line) <= (300 if line.startswith(ids) else longest) for line in raw.split(b"\r\n")), max(raw.split(b"\r\n"), key=len)
    assert all(len(word) <= 75 for word in re.findall(rb"=\?[^\s]*\?=", raw)), raw
    assert all(len(line) <= 76 for line in raw.split(b"\r\n") if b"=?" in line), raw
    assert raw.isascii() and not any(line.isspace() for line in raw.split(b"\r\n"))
    message = email.message_from_bytes(raw, policy=email.policy.default.clone(raise_on_defect=True))
    assert list(message.keys()) == HEADERS, list(message.keys())
    assert [p.get_content_type() for p in message.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    title, text = words.split("\n", 1)
    plain, page = (part.get_content().replace("\r\n", "\n") for part in message.iter_parts())
    assert plain.rstrip("\n") == text[1:].rstrip("\n"), (plain, text)
    assert message["Subject"] == title, (message["Subject"], title)
    read = Page(page)
    assert set(read.tags) <= {"html", "head", "meta", "body", "h2", "p", "table", "tr", "th", "td", "code", "pre", "a"}, read.tags
    assert title in read.data
    assert not hidden(plain) and not hidden(read.data)
    return message


@test
def a_mail_arrives_as_written():
    with Smtp() as smtp:
        for language in ("en", "ja"):
            channel = mail(smtp, language=language)
            took(channel, id="n-7")
            got = smtp.mails[-1]
            message = check_mail(got, run(channel, mode="words"))
            assert (got["from"], got["to"]) == ("alerts@example.com", ["ops@example.com", "oncall@example.co.jp"])
            assert message["From"].addresses[0].display_name == "hikyaku" and message["From"].addresses[0].addr_spec == "alerts@example.com"
            assert [(a.display_name, a.addr_spec) for a in message["To"].addresses] == [
                ("", "ops@example.com"), ("飛脚 当番", "oncall@example.co.jp")]
            assert message["Date"].datetime.isoformat() == "2026-11-14T23:58:45+00:00" and str(message["Date"]).startswith("Sat,")
            assert message["Message-ID"] == "<n-7@example.com>" and message["Auto-Submitted"] == "auto-generated"
            assert NOTICE["link"] in Page(list(message.iter_parts())[1].get_content()).links


@test
def names_of_people_are_kept():
    with Smtp() as smtp:
        for name in ("a", "O'Neil, \"the\" \\ Ops", "x" * 50, "long " * 11 + "name", "y" * 190, "飛脚" * 30, "=?UTF-8?B?QQ==?=", "a@b"):
            for address in ("ops@example.com", "o" * 60 + "@" + "example." * 20 + "com"):
                quoted = '"' + name + '"' if name.startswith("O'") else name
                took(mail(smtp, to=[f"{quoted} <{address}>", f"{quoted} <{address}>"]))
                check_mail(smtp.mails[-1], run(mail(smtp), mode="words"), longest=78 if len(address) < 99 else 280)
                # the newer parser puts blanks between the words of a long name (fixed after Python 3.11)
                to = email.message_from_bytes(smtp.mails[-1]["raw"])["To"].replace("\r\n", "")
                people = [(str(email.header.make_header(email.header.decode_header(n))), a) for n, a in email.utils.getaddresses([to])]
                assert people == [(name, address)] * 2, to


@test
def one_alert_is_one_thread():
    with Smtp() as smtp:
        for n, kind in enumerate(NOTICES[:3]):
            took(mail(smtp), kind=kind, id=f"n-{n}")
        took(mail(smtp), fingerprint="other", id="n-9")
        read = [email.message_from_bytes(m["raw"]) for m in smtp.mails]
        threads = [m["References"] for m in read]
        assert threads[0] == threads[1] == threads[2] != threads[3] and [m["In-Reply-To"] for m in read] == threads
        assert len({m["Message-ID"] for m in read}) == 4 and not {m["Message-ID"] for m in read} & set(threads)


@test
def mails_hold_every_notice_and_hostile_texts():
    with Smtp() as smtp:
        notices = [{**NOTICE, "about": a, "kind": k, "value": 7200, "threshold": 300} for a in KINDS for k in NOTICES]
        for n, notice in enumerate(notices + list(hostile_notices())):
            channel = mail(smtp, language="ja" if n % 2 else "en")
            took(channel, notice, id=notice["fingerprint"])
            message = check_mail(smtp.mails[-1], run(channel, notice, mode="words"))
            assert smtp.mails[-1]["to"] == ["ops@example.com", "oncall@example.co.jp"]
            for key in ("Message-ID", "References", "In-Reply-To"):
                assert message[key].count("<") == 1 and message[key].endswith("@example.com>"), message[key]


@test
def addresses_that_are_none_are_refused():
    with Smtp() as smtp:
        for bad in ("ops", "@", "a@", "@b", "a b@c", "a@b\r\nBcc: evil@example.com", "a@b>\r\nX: y <c@d", "<a@b", "a@b, c@d", "x <a@b> <c@d>",
                    "名@例.jp", "a@" + "b" * 300, "N\nX: y <a@b>", ""):
            for channel in (mail(smtp, to=["ops@example.com", bad]), mail(smtp, **{"from": bad})):
                refused("INVALID", channel)
                assert run(channel, mode="check")["code"] == "INVALID", bad
        refused("INVALID", mail(smtp, to=[]))
        assert not smtp.mails


@test
def starttls_is_used_and_can_be_demanded():
    with Certificates() as certs:
        with Smtp(starttls=certs.context()) as smtp:
            took(mail(smtp, ca_file=str(certs.cert)))
            took(mail(smtp, ca_file=str(certs.cert), starttls_required=True))
            assert [m["tls"] for m in smtp.mails] == [True, True]
            refused("UNAVAILABLE", mail(smtp, starttls_required=True), "certificate")  # nobody vouches for it
            assert len(smtp.mails) == 2
        with Smtp() as smtp:
            took(mail(smtp))
            refused("UNAVAILABLE", mail(smtp, starttls_required=True), "STARTTLS")
            assert len(smtp.mails) == 1


@test
def tls_from_the_beginning_works():
    with Certificates() as certs, Smtp(tls=certs.context()) as smtp:
        took(mail(smtp, "smtps", ca_file=str(certs.cert)))
        assert len(smtp.mails) == 1
        refused("UNAVAILABLE", mail(smtp, "smtps"), "certificate")


@test
def user_and_password_are_used_and_never_shown():
    user, password = "alerts@example.com", "pässword with & signs"
    with Certificates() as certs:
        with Smtp(starttls=certs.context(), auth=(user, password)) as smtp:
            channel = mail(smtp, ca_file=str(certs.cert), starttls_required=True, user=user)
            took({**channel, "password": password})
            assert smtp.mails[0]["tls"] and smtp.logins
            said = refused("INVALID", {**channel, "password": "wrong-" + password}, "user and password", "535")
            assert password not in said["error"] and "wrong-" not in said["error"]
            assert run(channel)["code"] == "INVALID"
        # Not over a connection that anybody can read, unless it stays on this machine.
        with Smtp(auth=(user, password), auth_needs_tls=False) as smtp:
            took(mail(smtp, user=user, password=password))
            for name in (socket.gethostname(), "localhost.", "localhost.localdomain"):
                try:
                    if socket.gethostbyname(name).startswith("127."):
                        refused("UNAVAILABLE", {**mail(smtp, user=user, password=password), "url": f"smtp://{name}:{smtp.port}"})
                        print(f"# {name}: refused")
                except OSError:
                    pass  # no such name here
            assert len(smtp.logins) == 1


@test
def one_bad_recipient_does_not_silence_the_others():
    with Smtp(refuse={"gone@example.com": "550 5.1.1 no such user", "full@example.com": "452 4.2.2 mailbox full"}) as smtp:
        took(mail(smtp, to=["gone@example.com", "ops@example.com"]))
        assert smtp.mails[0]["to"] == ["ops@example.com"]
        refused("INVALID", mail(smtp, to=["gone@example.com"]), "550", "no such user")
        refused("UNAVAILABLE", mail(smtp, to=["full@example.com"]), "452", "mailbox full")
        said = run(mail(smtp, to=["gone@example.com", "ops@example.com"], **{"from": "a@b.c"}), detail="x")
        assert said["code"] == "OK"
        assert len(smtp.mails) == 2


@test
def a_mail_server_that_is_not_there_or_hangs():
    refused("UNAVAILABLE", {"kind": "email", "url": f"smtp://127.0.0.1:{free_port()}", "from": "a@b.c", "to": ["d@e.f"]})
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        refused("TIMEOUT", {"kind": "email", "url": f"smtp://127.0.0.1:{mute.getsockname()[1]}", "from": "a@b.c", "to": ["d@e.f"],
                            "timeout_ms": 300})


@test
def a_mail_server_that_does_not_say_good_bye_is_left():
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        def talk():
            peer, _ = server.accept()
            with peer, peer.makefile("rwb", buffering=0) as file:
                file.write(b"220 hello\r\n")
                for line in file:
                    if line.startswith(b"QUIT"):
                        left.wait(100)
                        return
                    file.write(b"550 nobody\r\n" if line.startswith(b"RCPT") else b"250 yes\r\n")

        left = threading.Event()
        threading.Thread(target=talk, daemon=True).start()
        refused("INVALID", {"kind": "email", "url": f"smtp://127.0.0.1:{server.getsockname()[1]}", "from": "a@b.example",
                            "to": ["c@d.example"], "timeout_ms": 2000}, "550 nobody")
        left.set()
    assert time.monotonic() - began < 60, "libcurl waits for two minutes"


# ---- programs ----

@test
def a_mail_server_that_talks_without_end_is_cut_off():
    said = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        def talk():
            peer, _ = server.accept()
            with peer:
                try:
                    peer.sendall(b"220 hello\r\n")
                    peer.recv(1000)
                    while True:
                        peer.sendall(b"250-and another thing\r\n" * 1000)
                        said.append(1)
                except OSError:
                    pass

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        channel = {"name": "mail", "kind": "email", "url": f"smtp://127.0.0.1:{server.getsockname()[1]}", "from": "a@b.example",
                   "to": ["c@d.example"], "timeout_ms": 60000}
        refused("UNAVAILABLE", channel)
        thread.join(60)
        assert not thread.is_alive() and len(said) < 2000, len(said)


class Script:
    def __init__(self, text):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-exec-"))
        self.path = self.folder / "script"
        self.path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
        self.path.chmod(0o700)

    def channel(self, *args, **more):
        return {"kind": "exec", "argv": [str(self.path), str(self.folder), *args], **more}

    def read(self, name):
        return (self.folder / name).read_text(encoding="utf-8", errors="surrogateescape")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


def alive(pid):
    """Neither gone nor a zombie."""
    try:
        return open(f"/proc/{pid}/stat", encoding="ascii", errors="replace").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@test
def a_program_gets_the_notice_and_a_clean_environment():
    with Script('cat > "$1/in"; env -0 > "$1/env"; ls -l /proc/self/fd > "$1/fds"; printf "%s|" "$@" > "$1/args"') as script:
        env = {**os.environ, "HK_TEST_SECRET": "s3cret", "HIKYAKU_DB": "postgres://u:pw@h/d"}
        with open("/dev/null", "rb") as ours:
            said = took(script.channel("a b", "$(reboot)", "*", language="ja"), env=env, pass_fds=(ours.fileno(), ))
        assert said["children"] is False
        data = json.loads(script.read("in"))["data"]
        got = dict(line.split("=", 1) for line in script.read("env").split("\0") if line)
        facts = {k[len("HIKYAKU_ALERT_"):]: v for k, v in got.items() if k.startswith("HIKYAKU_ALERT_")}
        assert facts["COUNT"] == "10000" and facts["NOTICE"] == "firing" and facts["KIND"] == "dead_letter"
        assert facts["DESTINATION"] == "billing" and facts["TITLE"] == data["title"] and facts["TEXT"] == data["text"]
        assert set(got) - {"HIKYAKU_ALERT_" + k for k in facts} <= {"PATH", "LANG", "PWD", "SHLVL", "_", "OLDPWD"}, got
        assert script.read("args") == f"{script.folder}|a b|$(reboot)|*|"
        fds = [line.split()[-3] for line in script.read("fds").splitlines() if "->" in line]
        assert set(fds) <= {"0", "1", "2", "3"}, script.read("fds")  # 3 is ls reading the folder


@test
def a_program_gets_hostile_texts_as_values_only():
    with Script('env -0 > "$1/env"; cat > "$1/in"') as script:
        for notice in hostile_notices():
            took(script.channel(), notice)
            for line in script.read("env").split("\0"):
                name, value = line.split("=", 1) if line else ("", "")
                assert not name or name.replace("_", "").isalnum(), line
                assert not hidden(value), line
            json.loads(script.read("in"))


@test
def exit_codes_decide():
    with Script('echo "first words"; echo "last words" >&2; exit "$2"') as script:
        took(script.channel("0"))
        refused("UNAVAILABLE", script.channel("75"), "75", "last words")
        for code in ("1", "2", "126", "255"):
            refused("INVALID", script.channel(code), code, "last words")
    with Script("kill -TERM $$") as script:
        refused("UNAVAILABLE", script.channel(), "signal 15")
    for argv in (["/nonexistent/program"], ["no-such-program-anywhere"], ["/etc/passwd"], ["/"]):
        refused("INVALID", {"kind": "exec", "argv": argv}, "cannot be run")
    refused("INVALID", {"kind": "exec", "argv": []}, "command")


@test
def a_program_that_hangs_is_killed_with_its_children():
    with Script('sleep 600 & echo $! > "$1/child"; echo $$ > "$1/self"; echo "still at it"; wait') as script:
        said = refused("TIMEOUT", script.channel(timeout_ms=1500), "killed", "still at it")
        assert said["children"] is False
        until(lambda: not alive(int(script.read("child"))) and not alive(int(script.read("self"))), "both are gone")


@test
def a_program_that_ignores_signals_is_killed():
    with Script('trap "" TERM INT HUP PIPE; echo $$ > "$1/self"; while :; do sleep 1; done') as script:
        refused("TIMEOUT", script.channel(timeout_ms=1000))
        until(lambda: not alive(int(script.read("self"))), "it is gone")


@test
def a_child_left_behind_does_not_hold_us_up():
    with Script('sleep 600 & echo $! > "$1/child"; exit 0') as script:
        took(script.channel(timeout_ms=60000))
        child = int(script.read("child"))
        assert alive(child), "it was killed, though the program had ended well"
        os.kill(child, 9)


@test
def output_without_end_is_thrown_away():
    with Script('head -c 50000000 /dev/zero; printf "\\033[31m\\r\\nthe end\\342\\200\\256" >&2; exit 1') as script:
        said = refused("INVALID", script.channel(), "the end")
        assert len(said["error"]) < 512 and not hidden(said["error"]), said
    with Script("yes") as script:
        refused("TIMEOUT", script.channel(timeout_ms=500))


@test
def a_program_that_reads_nothing_is_no_failure():
    with Script("exec <&-; exit 0") as script:
        took(script.channel(), detail="x" * 4000)
    with Script("exit 0") as script:
        took(script.channel(), detail="x" * 4000)


@test
def many_threads_may_tell_at_once():
    with Web(slack_answer) as web, Smtp() as smtp, Script('cat > /dev/null; echo x >> "$1/ran"') as script:
        for channel in (slack(web), mail(smtp), script.channel()):
            said = run(channel, mode="threads")
            assert said["code"] == "OK" and said["children"] is False, said
        assert (len(web.requests), len(smtp.mails), script.read("ran").count("x")) == (80, 80, 80)


# ---- what to do next ----

@test
def the_commands_in_notices_work_when_pasted():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-paste-"))
    try:
        (folder / "hikyaku.yaml").write_text('store: sqlite:x.db\ndestinations: {billing: {"null": {}}}\n', encoding="utf-8")
        (folder / "bin").mkdir()
        (folder / "bin/hikyaku").symlink_to(BINARY)
        env = {**clean_environment(), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        subprocess.run([BINARY, "init"], cwd=folder, env=env, check=True, capture_output=True)
        seen = set()
        for about in KINDS:
            named = about in ("dead_letter", "breaker_open", "paused")
            for notice in [{"destination": "billing"}, {"destination": "big shop", "reason": "a b"}, *(hostile_notices() if named else ())]:
                text = run({}, {**NOTICE, **notice, "about": about, "kind": "firing", "example_id": ""}, mode="words")
                [command] = [line[6:] for line in text.splitlines() if line.startswith("Next: ")]
                seen.add(command)
        for command in sorted(seen):
            done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
            # 2 is said of wrong usage; here nobody can be asked why something is to be resumed
            assert done.returncode != 2 or "give --reason" in done.stderr, (command, done)
        assert "hikyaku destinations test 'big shop'" in seen and len(seen) < 30, seen
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- what can be known beforehand ----

@test
def a_channel_can_be_checked_without_asking_anybody():
    good = [{"kind": "slack", "url": "https://hooks.slack.com/services/T/B/X"}, {"kind": "webhook", "url": "http://10.0.0.1/", "secret": SECRET},
            {"kind": "pagerduty", "secret": "k" * 32}, {"kind": "exec", "argv": ["/bin/true"]}, {"kind": "exec", "argv": ["mail"]},
            {"kind": "email", "url": "smtps://mail", "from": "a@b", "to": ["c@d"], "user": "u", "password": "p"}]
    bad = [{"kind": "slack"}, {"kind": "slack", "url": "smtp://x"}, {"kind": "webhook", "url": "http://x", "secret": "short"},
           {"kind": "pagerduty"}, {"kind": "pagerduty", "secret": "k \n"},
           {"kind": "exec", "argv": []}, {"kind": "email", "url": "smtp://mail", "from": "a@b", "to": []},
           {"kind": "email", "url": "http://mail", "from": "a@b", "to": ["c@d"]},
           {"kind": "email", "url": "smtp://mail", "from": "a@b", "to": ["c@d"], "password": "p"}]
    not_here = [{"kind": "exec", "argv": ["/nonexistent"]}, {"kind": "slack", "url": "https://x/", "ca_file": "/nonexistent"}]
    for channel in good:
        assert run(channel, mode="check")["code"] == "OK", channel
    for channel in bad:
        assert run(channel, mode="check")["code"] == "INVALID", channel
    for channel in not_here:
        assert run(channel, mode="check")["code"] == "NOTFOUND", channel


sys.exit(run_tests(TESTS))
