#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples, run as a user would, and what other people's clients make of our requests. Speaks TAP.

Usage: examples.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); $EXAMPLE_ENQUEUE is the built C example."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from ports import free_port
from support import POSTGRES, Skip, World, run_tests, sqlite_only, until

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def arrives_from(language, *command, database=None, **options):
    """What the example committed arrives, what it rolled back does not. It is given the database: a path, or what
    `database` makes of a world."""
    with World() as w:
        run(*command, database(w) if database else w.url if POSTGRES else str(w.db), **options)
        w.daemon().ready()
        w.settled(sent=1)
        bodies = [json.loads(r.body) for r in w.receiver.arrived()]
        assert [b["from"] for b in bodies] == [language], bodies
        assert w.sql("SELECT count(*) FROM orders") == [(1,)]


@test
@sqlite_only
def the_sqlite3_shell_enqueues():
    if not shutil.which("sqlite3"):
        raise Skip("the sqlite3 shell is not installed")
    with open(EXAMPLES / "enqueue.sql", encoding="utf-8") as script:
        arrives_from("sql", "sqlite3", stdin=script)


@test
@sqlite_only
def python_enqueues():
    arrives_from("python", sys.executable, str(EXAMPLES / "enqueue.py"))


@test
@sqlite_only
def c_enqueues_on_its_own_handle():
    if not os.environ.get("EXAMPLE_ENQUEUE"):
        raise Skip("$EXAMPLE_ENQUEUE does not say where the built example is")
    arrives_from("c", os.environ["EXAMPLE_ENQUEUE"])


@test
@sqlite_only
def node_enqueues():
    node = shutil.which("node")
    if not node:
        raise Skip("node is not installed")
    if subprocess.run([node, "-e", "require('node:sqlite')"], capture_output=True, check=False).returncode != 0:
        raise Skip(f"node {run(node, '--version').strip()} has no node:sqlite (22.5 or later has)")
    arrives_from("node", node, str(EXAMPLES / "enqueue.mjs"))


# ---- on PostgreSQL ----

def postgres_test(function):
    if POSTGRES:
        TESTS.append(function)
    return function


@postgres_test
def psql_enqueues():
    if not shutil.which("psql"):
        raise Skip("psql is not installed")
    arrives_from("sql", "psql", "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", "-f",
                 str(EXAMPLES / "postgres/enqueue.sql"))


@postgres_test
def python_enqueues_with_psycopg():
    arrives_from("python", sys.executable, str(EXAMPLES / "postgres/enqueue.py"))


@postgres_test
def c_enqueues_on_its_own_connection():
    if not os.environ.get("EXAMPLE_ENQUEUE_PG"):
        raise Skip("this build has no PostgreSQL")
    arrives_from("c", os.environ["EXAMPLE_ENQUEUE_PG"])


@postgres_test
def node_enqueues_with_pg():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-npm-"))
    try:
        node = npm_packages(folder, "pg@8.11.3")
        shutil.copy(EXAMPLES / "postgres/enqueue.mjs", folder)
        arrives_from("node", node, str(folder / "enqueue.mjs"), cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@postgres_test
def java_enqueues_with_jdbc():
    jar = "/usr/share/java/postgresql.jar"
    if not shutil.which("java") or not os.path.exists(jar):
        raise Skip("java and the JDBC driver (Debian: libpostgresql-jdbc-java) are not installed")
    version = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    if not shutil.which("javac"):
        raise Skip(f"a JDK is not installed, only {version.splitlines()[0]}")
    arrives_from("java", "java", "-cp", jar, str(EXAMPLES / "postgres/Enqueue.java"),
                 database=lambda w: w.url.replace("postgres://hikyaku@", "jdbc:postgresql://") + "?user=hikyaku")


@postgres_test
def go_enqueues():
    if not shutil.which("go"):
        raise Skip("go is not installed")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-go-"))
    try:
        shutil.copytree(EXAMPLES / "postgres/go", folder / "go")
        done = subprocess.run(["go", "build", "-o", str(folder / "enqueue"), "."], cwd=folder / "go",
                              capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0 and "dial" in done.stderr + done.stdout:
            raise Skip("go cannot fetch github.com/lib/pq")
        assert done.returncode == 0, done.stderr
        arrives_from("go", str(folder / "enqueue"), database=lambda w: w.url + "?sslmode=disable")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def listening(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


@test
@sqlite_only
def the_receiver_verifies_and_drops_repeats():
    port = free_port()
    with World() as w:
        out = open(w.path("receiver.out"), "w+", encoding="utf-8")
        w.child(sys.executable, str(EXAMPLES / "receiver.py"), str(port), SECRET, stdout=out)
        w.config["destinations"] = {
            "shop": {"http": {"url": f"http://127.0.0.1:{port}/", "sign": {"secret": SECRET}}, "allow": ["127.0.0.0/8"]},
            "liar": {"http": {"url": f"http://127.0.0.1:{port}/", "sign": {"secret": "whsec_" + "A" * 32}},
                     "allow": ["127.0.0.0/8"]}}
        w.write_config()
        until(lambda: listening(port), "the receiver listens")
        w.daemon().ready()
        w.insert(message_id="once", payload='{"n":1}')
        w.insert(message_id="once", payload='{"n":1}')  # the same id: a repeat, as after a lost answer
        w.insert(destination="liar", message_id="forged")
        w.settled(sent=2, dead=1)
        out.seek(0)
        assert out.read().splitlines() == ['got once OrderCreated {"n":1}']
        assert w.sql("SELECT reason_code FROM dead_letters") == [("AUTH_FAILED",)]
        out.close()


VERIFY = """
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";
import { HTTP } from "cloudevents";
const wh = new Webhook(process.argv[2]);
createServer((req, res) => {
  const parts = [];
  req.on("data", (d) => parts.push(d));
  req.on("end", () => {
    const body = Buffer.concat(parts).toString();
    try {
      const payload = wh.verify(body, req.headers);
      const event = HTTP.toEvent({ headers: req.headers, body });
      console.log(JSON.stringify({ payload, id: event.id, type: event.type, source: event.source, data: event.data }));
      res.writeHead(200).end();
    } catch (error) {
      console.log(JSON.stringify({ error: String(error) }));
      res.writeHead(400).end();
    }
  });
}).listen(Number(process.argv[3]), "127.0.0.1");
"""


def npm_packages(folder, *packages):
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        raise Skip("node and npm are not installed")
    (folder / "package.json").write_text('{"private":true,"type":"module"}', encoding="utf-8")
    done = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages], cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != 0:
        raise Skip(f"npm cannot fetch {' and '.join(packages)}: " + done.stderr.strip().splitlines()[-1][:120])
    return node


@test
@sqlite_only
def other_peoples_clients_accept_signature_and_cloudevent():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-npm-"))
    try:
        node, port = npm_packages(folder, "standardwebhooks@1.0.0", "cloudevents@8.0.2"), free_port()
        (folder / "verify.mjs").write_text(VERIFY, encoding="utf-8")
        with World() as w:
            out = open(w.path("verify.out"), "w+", encoding="utf-8")
            child = subprocess.Popen([node, str(folder / "verify.mjs"), SECRET, str(port)], cwd=folder, stdout=out)
            w.children.append(child)
            old = "whsec_" + "B" * 32  # while rotating: two signatures, the second one fits
            w.config["destinations"] = {"shop": {"http": {
                "url": f"http://127.0.0.1:{port}/", "sign": {"secrets": [old, SECRET]}, "cloudevents": "binary"},
                "allow": ["127.0.0.0/8"]}}
            w.write_config()
            until(lambda: listening(port), "the verifier listens")
            w.daemon().ready()
            payload = '{"text":"飛脚 \\u00e9","n":12345678901}'
            w.insert(message_id="m-1", payload=payload, content_type="application/json")
            w.settled(sent=1)
            out.seek(0)
            got = [json.loads(line) for line in out.read().splitlines()]
            assert len(got) == 1 and "error" not in got[0], got
            assert got[0]["payload"] == json.loads(payload) and got[0]["data"] == json.loads(payload), got
            assert (got[0]["id"], got[0]["type"]) == ("m-1", "OrderCreated"), got
            out.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(run_tests(TESTS))
