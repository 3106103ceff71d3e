#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Temporary keys for destinations at AWS: of an instance, of a container, and by a web identity. moto checks each signature and session token, and
is the STS; the endpoints of instances and containers are scripted. Speaks TAP.

Usage: aws_keys.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import datetime
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import urllib.parse

sys.dont_write_bytecode = True  # the source folder stays as it is
from aws_world import ACCOUNT, AwsWorld, Moto, Scripted
from support import BINARY, Skip, run_tests, until

TESTS = []
NO_KEYS = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
MANY = 60
WHY = ("--reason", "again", "--actor", "ann")


def test(function):
    TESTS.append(function)
    return function


class Keys:
    """An endpoint that hands out keys. `answers` maps "METHOD PATH" to (status, body), to a function of the request's header fields that returns
    it, or to None: the connection is held open without a word."""

    def __init__(self, answers, address="127.0.0.1", port=0):
        outer = self
        self.answers, self.asked, self.open = answers, [], threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_any(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                name = f"{self.command} {self.path}"
                outer.asked.append((name, dict(self.headers)))
                said = outer.answers.get(name, (404, ""))
                said = said(self.headers) if callable(said) else said
                if said is None:
                    outer.open.wait(60)
                    self.close_connection = True
                    return
                body = said[1].encode()
                self.send_response(said[0])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_any  # pylint: disable=invalid-name

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer((address, port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://{address}:{self.server.server_port}"

    def times(self, name):
        return sum(asked == name for asked, _ in self.asked)

    def end(self):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()


def lease(key, secret, token, seconds=3600):
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return json.dumps({"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": key, "SecretAccessKey": secret, "Token": token,
                       "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ")})


PATH = "/latest/meta-data/iam/security-credentials/"


def instance(keys, role="relay-role"):
    """As IMDSv2 answers: a token first, which every other question must show."""
    def token(headers):
        return (200, "TOKEN-7") if headers.get("X-aws-ec2-metadata-token-ttl-seconds") == "21600" else (400, "")

    def shown(answer):
        def judge(headers):
            if headers.get("X-aws-ec2-metadata-token") != "TOKEN-7":
                return 401, ""
            return answer() if callable(answer) else answer
        return judge
    return {"PUT /latest/api/token": token, f"GET {PATH}": shown((200, role)), f"GET {PATH}{role}": shown(keys)}


def role_of(moto):
    """Three calls: a role that may use every queue."""
    policy = json.dumps({"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}})
    trust = json.dumps({"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}})
    iam = {"region": "us-east-1", "Version": "2010-05-08", "RoleName": "relay"}
    moto.form("iam", Action="CreateRole", AssumeRolePolicyDocument=trust, **iam)
    moto.form("iam", Action="PutRolePolicy", PolicyName="p", PolicyDocument=policy, **iam)
    return f"arn:aws:iam::{ACCOUNT}:role/relay"


def assume(moto, arn):
    text = moto.form("sts", Action="AssumeRole", Version="2011-06-15", RoleArn=arn, RoleSessionName="test")
    return tuple(text.split(f"<{tag}>")[1].split("<")[0] for tag in ("AccessKeyId", "SecretAccessKey", "SessionToken"))


def insert_many(w, n=MANY):
    db = w.connect()
    db.execute("BEGIN IMMEDIATE")
    for i in range(n):
        w.insert("jobs", "Order", db=db, message_id=f"m-{i}", payload=str(i))
    db.execute("COMMIT")
    db.close()
    return [f"m-{i}" for i in range(n)]


def no_secret_is_shown(w, relay, *secrets):
    said = relay.log() + w.hikyaku("messages", "show", "m-0", "--json") + w.try_hikyaku("doctor")[1]
    assert not any(secret in said for secret in secrets), said


@test
def an_instance_gives_keys_for_many_messages_at_once():
    with AwsWorld() as w:
        moto = Moto(w, free_calls=4, jobs={})  # and the three below: it checks every signature and token after them
        key, secret, token = assume(moto, role_of(moto))
        endpoint = Keys(instance((200, lease(key, secret, token))))
        w.env = {**w.env, **NO_KEYS, "AWS_EC2_METADATA_SERVICE_ENDPOINT": endpoint.url + "/"}
        w.to("jobs", moto.url["jobs"])
        ids = insert_many(w)
        relay = w.start().ready()
        w.is_sent(*ids)
        assert [name for name, _ in endpoint.asked] == ["PUT /latest/api/token", f"GET {PATH}", f"GET {PATH}relay-role"], endpoint.asked
        no_secret_is_shown(w, relay, secret, token, "TOKEN-7")
        relay.stop()
        said = w.try_hikyaku("doctor")[1]
        assert "the queue is there" in said, said
        endpoint.end()


@test
def keys_are_renewed_before_they_end():
    """Keys of 8 s are asked for again in their last 2 s. No message fails, and the queue sees at least three of them."""
    with AwsWorld() as w:
        queue = Scripted(lambda body: (200, {"Successful": [{"Id": e["Id"], "MessageId": "m"} for e in body["Entries"]]}))
        given = []

        def next_keys():
            given.append(f"ASIA{len(given)}")
            return 200, lease(given[-1], f"secret-{given[-1]}", f"token-{given[-1]}", seconds=8)
        endpoint = Keys(instance(next_keys))
        w.env = {**w.env, **NO_KEYS, "AWS_EC2_METADATA_SERVICE_ENDPOINT": endpoint.url}
        w.to("jobs", queue.url)
        relay = w.start().ready()
        sent = []

        def send_and_count():
            sent.append(f"m-{len(sent)}")
            w.insert("jobs", "Order", message_id=sent[-1])
            w.is_sent(sent[-1])
            return len({head["X-Amz-Security-Token"] for head in queue.heads}) >= 3
        until(send_and_count, "three keys to be used")
        assert not w.letters() and all(f"Credential=ASIA{h['X-Amz-Security-Token'][-1]}/" in h["Authorization"] for h in queue.heads)
        assert w.sql("SELECT count(*) FROM outbox_messages WHERE attempts > 1")[0][0] == 0
        relay.stop()
        endpoint.end()
        queue.end()


@test
def a_container_gives_keys_for_its_token():
    with AwsWorld() as w:
        moto = Moto(w, free_calls=4, jobs={})
        key, secret, token = assume(moto, role_of(moto))

        def keys(headers):
            return (200, lease(key, secret, token)) if headers.get("Authorization") == "eks-token" else (401, '{"code":"AccessDenied","message":"not you"}')
        endpoint = Keys({"GET /v1/credentials?a=b": keys})
        file = w.path("token")
        file.write_text("stale\n", encoding="utf-8")
        w.env = {**w.env, **NO_KEYS, "AWS_CONTAINER_CREDENTIALS_FULL_URI": endpoint.url + "/v1/credentials?a=b",
                 "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(file)}
        w.to("jobs", moto.url["jobs"])
        relay = w.start().ready()
        w.insert("jobs", "Order", message_id="early")
        w.is_dead_of("early", "AUTH_FAILED", "the credentials endpoint for containers says HTTP 401 AccessDenied: not you")
        file.write_text("eks-token\n", encoding="utf-8")  # as the kubelet writes it anew

        def goes_through():  # within a second of a failure the relay repeats what it was told
            w.hikyaku("dead", "requeue", "early", *WHY)
            until(lambda: w.message("early")[0] in ("sent", "dead"), "its end")
            return w.message("early")[0] == "sent"
        until(goes_through, lambda: w.sql("SELECT error_message FROM dead_letters"))
        ids = insert_many(w)
        w.is_sent(*ids)
        no_secret_is_shown(w, relay, secret, token, "eks-token")
        relay.stop()
        endpoint.end()


@test
def a_web_identity_is_exchanged_once_for_many_messages():
    """moto's calls without a signature are used up by the relay's one question: a second one would be refused."""
    with AwsWorld() as w:
        moto = Moto(w, free_calls=4, jobs={})
        arn = role_of(moto)
        file = w.path("identity")
        file.write_text("header.cGF5bG9hZA==.sig+/=\n", encoding="utf-8")
        w.env = {**w.env, **NO_KEYS, "AWS_WEB_IDENTITY_TOKEN_FILE": str(file), "AWS_ROLE_ARN": arn, "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{moto.port}"}
        w.to("jobs", moto.url["jobs"])
        ids = insert_many(w)
        relay = w.start().ready()
        w.is_sent(*ids)
        log = (w.path("moto.log")).read_text(encoding="utf-8")
        assert "sig+/=" not in relay.log() and "cGF5bG9hZA" not in relay.log() + log
        relay.stop()


@test
def what_sts_refuses():
    answers = {"refused": (403, "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not this role</Message></Error></ErrorResponse>"),
               "expired": (400, "<ErrorResponse><Error><Code>ExpiredTokenException</Code><Message>too late</Message></Error></ErrorResponse>"),
               "busy": (400, "<ErrorResponse><Error><Code>IDPCommunicationError</Code><Message>again</Message></Error></ErrorResponse>"),
               "slow": (400, "<ErrorResponse><Error><Code>Throttling</Code><Message>slow</Message></Error></ErrorResponse>"),
               "broken": (500, ""), "odd": (200, "<ok/>")}
    reasons = {"refused": ("AUTH_FAILED", "STS says HTTP 403 AccessDenied: not this role"), "expired": ("AUTH_FAILED", "ExpiredTokenException: too late"),
               "busy": ("TOKEN_UNAVAILABLE", "IDPCommunicationError"), "slow": ("TOKEN_UNAVAILABLE", "Throttling"), "broken": ("TOKEN_UNAVAILABLE", "HTTP 500"),
               "odd": ("TOKEN_UNAVAILABLE", "gave no keys")}
    with AwsWorld() as w:
        now = ["refused"]
        bodies = []
        sts = Scripted(lambda body: bodies.append(urllib.parse.parse_qs(body)) or answers[now[0]], read=str)
        file = w.path("identity")
        file.write_text("a.b+c/d=", encoding="utf-8")
        w.env = {**w.env, **NO_KEYS, "AWS_WEB_IDENTITY_TOKEN_FILE": str(file), "AWS_ROLE_ARN": "arn:aws:iam::1:role/r&x", "AWS_ENDPOINT_URL_STS": sts.base}
        w.to("jobs", "http://127.0.0.1:9/1/jobs")
        relay = w.start().ready()
        for name, (reason, words) in reasons.items():
            now[0] = name
            tries = iter(range(1000))

            def dies_of_it():  # within a second of a failure the relay repeats what it was told
                message = f"{name}-{next(tries)}"  # pylint: disable=cell-var-from-loop
                w.insert("jobs", "Order", message_id=message)
                row, = until(lambda: w.sql("SELECT reason_code, error_message FROM dead_letters WHERE message_id = ?", message), "its death")
                return row[0] == reason and words in row[1]  # pylint: disable=cell-var-from-loop
            until(dies_of_it, lambda: f"{name}: {w.sql('SELECT reason_code, error_message FROM dead_letters')[-3:]}")  # pylint: disable=cell-var-from-loop
        assert bodies[0] == {"Action": ["AssumeRoleWithWebIdentity"], "Version": ["2011-06-15"], "RoleArn": ["arn:aws:iam::1:role/r&x"],
                             "RoleSessionName": ["hikyaku"], "WebIdentityToken": ["a.b+c/d="]}, bodies[0]
        relay.stop()
        sts.end()


@test
def what_an_instance_refuses():
    good = instance((200, "{}"))
    silent = {**good, "PUT /latest/api/token": None}
    cases = {"hops": (silent, "TOKEN_UNAVAILABLE", "hop limit"), "v1 alone": ({}, "AUTH_FAILED", "HTTP 404"),
             "no role": ({**good, f"GET {PATH}": (404, "")}, "AUTH_FAILED", "the instance has no role"),
             "no right": (instance((200, '{"Code":"AssumeRoleUnauthorizedAccess","Message":"EC2 cannot assume it"}')), "TOKEN_UNAVAILABLE", "AssumeRoleUnauthorizedAccess"),
             "no keys": (good, "TOKEN_UNAVAILABLE", "gave no keys"), "broken": ({**good, f"GET {PATH}relay-role": (500, "")}, "TOKEN_UNAVAILABLE", "HTTP 500"),
             "odd role": (instance((200, "{}"), role="../x"), "TOKEN_UNAVAILABLE", "no name of a role")}
    for name, (answers, reason, words) in cases.items():
        with AwsWorld() as w:
            endpoint = Keys(answers)
            w.env = {**w.env, **NO_KEYS, "AWS_EC2_METADATA_SERVICE_ENDPOINT": endpoint.url}
            w.to("jobs", "http://127.0.0.1:9/1/jobs")
            w.config["policies"]["soon"]["timeout"] = "30s"
            w.write_config()
            w.insert("jobs", "Order", message_id="m-0")
            relay = w.start().ready()
            try:
                w.is_dead_of("m-0", reason, words)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from error
            relay.kill()
            endpoint.end()
    with AwsWorld() as w:
        w.env = {**w.env, **NO_KEYS, "AWS_EC2_METADATA_DISABLED": "true"}
        w.to("jobs", "http://127.0.0.1:9/1/jobs")
        w.insert("jobs", "Order", message_id="m-0")
        relay = w.start().ready()
        w.is_dead_of("m-0", "AUTH_FAILED", "AWS_EC2_METADATA_DISABLED forbids")
        relay.stop()


NEAR = ("169.254.169.254", "169.254.170.2")


@test
def the_real_addresses_are_asked_and_no_destination_may_use_them():
    """In a network of its own, whose loopback has the link-local addresses."""
    if os.environ.get("AWS_KEYS_INSIDE"):
        raise Skip("this is the inside")
    if not shutil.which("unshare") or not shutil.which("ip"):
        raise Skip("unshare or ip is not installed")
    if subprocess.run(["unshare", "-Urn", "ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode:
        raise Skip("no network namespace of our own is allowed here")
    commands = " && ".join(["ip link set lo up", *(f"ip addr add {a}/32 dev lo" for a in NEAR), 'exec "$0" "$@"'])
    done = subprocess.run(["unshare", "-Urn", "sh", "-c", commands, sys.executable, str(pathlib.Path(__file__).resolve()), BINARY],
                          env={**os.environ, "AWS_KEYS_INSIDE": "1", "ONLY": "inside_the_network"}, text=True, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0 and "\nok 1" in done.stdout and "SKIP" not in done.stdout, done.stdout + done.stderr


@test
def inside_the_network():
    if not os.environ.get("AWS_KEYS_INSIDE"):
        raise Skip("runs inside of the test before")
    queue = Scripted(lambda body: (200, {"Successful": [{"Id": e["Id"], "MessageId": "m"} for e in body["Entries"]]}))
    imds = Keys(instance((200, lease("ASIAI", "s", "t"))), address=NEAR[0], port=80)
    ecs = Keys({"GET /v2/credentials/1": (200, lease("ASIAC", "s", "t"))}, address=NEAR[1], port=80)
    for env, key in (({}, "ASIAI"), ({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1"}, "ASIAC")):
        with AwsWorld(env={**NO_KEYS, **env}) as w:
            w.to("jobs", queue.url)
            w.at("sqs", "inward", queue_url=f"http://{NEAR[0]}/1/jobs")
            w.insert("jobs", "Order", message_id="m-0")
            w.insert("inward", "Order", message_id="inward")
            relay = w.start().ready()
            w.is_sent("m-0")
            w.is_dead_of("inward", "BLOCKED_BY_POLICY", "link-local")
            assert f"Credential={key}/" in queue.heads[-1]["Authorization"], queue.heads[-1]
            relay.stop()
    assert not any(name.startswith("POST") for name, _ in imds.asked), imds.asked
    for one in (imds, ecs, queue):
        one.end()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
