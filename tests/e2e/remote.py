#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The remote command line: every command says through `--server` what it says on the database: text, --json and exit code, errors
included. Two scenes that are the same, one asked directly and one through its relay's HTTP API. Speaks TAP.

Usage: remote.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import difflib
import http.server
import json
import re
import stat
import subprocess
import sys
import threading

sys.dont_write_bytecode = True  # the source folder stays as it is
from goldens import ACTS, AFTER, ERRORS, LOOKS, WRONG_ACTS, Scene, spread, words_of
from support import BINARY, World, clean_environment, run_tests

ACTOR = "ops"
WHO = ("--actor", ACTOR, "--reason", "a golden")
# Commands that stay on this machine, which what_stays_here_takes_no_server tests: `config` is about a file here, `version`, `completion` and `help` about
# the program here. Lines that begin with an option name a database themselves.
HERE = ("config", "version", "completion", "help")
ELSEWHERE = (*HERE, "--")
MORE = ["dead show 1 --payload-version 1", "messages list --limit 1", "dead list --limit 1", "dead list --filter payload.orderId:2 --limit 5",
        "whoami", "policy list --details", "policy show patient", "policy show azure-linear", "policy plan patient --class rate_limit",
        "policy plan cloud-tasks --attempts 3 --details", "policy plan standard-webhooks --seed 18446744073709551615",
        "policy simulate standard --clients 300 --seed 5", "policy simulate sync-pipeline --clients 300 --outage 5s --capacity 50/s",
        "policy simulate patient --clients 1 --details", "policy simulate standard --clients 50 --svg out.svg --seed 18446744073709551615"]
WRONG = ["policy plan nowhere", "policy simulate nowhere", "policy simulate standard --clients 0", "policy plan standard --class nonsense",
         "policy simulate standard --capacity 0/s", "policy show"]
# What a relay does meanwhile shows in these: their words differ from moment to moment, so only errors and exit codes are compared. `doctor`
# looks at the process that is asked: here the command, there the relay.
LIVE = ("status", "relays list", "redrive show", "redrive list", "redrive start", "redrive cancel", "destinations list", "doctor")
MANY = '{"event_type":"OrderCreated","destination":"later","message_id":"line-%d","payload":{"orderId":%d}}\n'
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def address(daemon):
    daemon.says('"admin listening"')
    return re.search(r'msg="admin listening" address=(\S+)', daemon.log())[1]


def is_here(line):
    return not line or line.startswith(ELSEWHERE)


class Asked(Scene):
    """A scene whose relay runs, asked on the database or through that relay."""

    def __init__(self, remote):
        super().__init__()
        self.remote, self.server, self.token = remote, None, self.path("token")

    def begin(self):
        made = json.loads(self.hikyaku("token", "create", ACTOR, "--role", "admin", "--reveal", "--actor", "setup", "--reason", "a test", "--json"))
        self.token.write_text(made["token"] + "\n", encoding="ascii")
        self.relay = self.daemon().ready()
        self.server = f"http://{address(self.relay)}"

    def place(self):
        if self.remote:
            return ["--server", self.server, "--token-file", str(self.token)]
        return ["--config", str(self.config_path)]

    def say(self, line, *more, stdin=b""):
        acts = [w for w in more if not self.remote or w not in ("--actor", ACTOR)]
        env = {**clean_environment(), "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "120", "TZ": "UTC", "HIKYAKU_ACTOR": ACTOR,
               "HOME": str(self.folder)}
        done = subprocess.run([BINARY, *self.place(), *words_of(line), *acts], cwd=self.folder, input=stdin, capture_output=True, env=env,
                              timeout=120, check=False)
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        assert "Sanitizer" not in err, err
        if "--json" in [*words_of(line), *more]:
            out = spread(out)
        out = re.sub(r", at http://\S+", "", out)
        out = re.sub(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{19}…", "<boot>", out)
        shown = " ".join([line, *(m for m in more if m not in WHO)]).strip()
        if line.startswith(LIVE) and done.returncode == 0:
            assert out, shown
            out = ""
        self.said.append((shown, self.normal(out), self.normal(err), done.returncode))
        return done.returncode


def compare(here, there):
    wrong = []
    for (line, *was), (again, *now) in zip(here.said, there.said, strict=True):
        assert line == again
        if was != now:
            texts = [f"{out}stderr:\n{err}exit {code}" for out, err, code in (was, now)]
            wrong += [f"$ hikyaku {line}", *difflib.unified_diff(texts[0].splitlines(), texts[1].splitlines(), "database", "server", lineterm="", n=2)]
    assert not wrong, "\n".join(wrong[:250])


def ask_both(lines):
    """`lines` is called with each scene in turn."""
    with Asked(False) as here, Asked(True) as there:
        for scene in here, there:
            scene.fill()
            scene.begin()
            lines(scene)
        compare(here, there)


@test
def every_look_is_the_same():
    def look(scene):
        for line in [*LOOKS, *MORE]:
            if not is_here(line):
                scene.say(line)
                scene.say(line, "--json")
        scene.said.append(("the picture", scene.path("out.svg").read_text("utf-8"), "", 0))
    ask_both(look)


@test
def what_stays_here_takes_no_server():
    with World(init=False) as world:
        for line in "config check x.yaml", "config schema", "version":
            done = subprocess.run([BINARY, "--server", "http://127.0.0.1:1", *line.split()], cwd=world.folder, text=True, capture_output=True,
                                  env=clean_environment(), timeout=120, check=False)
            assert done.returncode == 2 and "takes no '--server'" in done.stderr, done
        world.damaged = True  # there is none


@test
def every_act_is_the_same():
    def act(scene):
        for name in "shop", "billing":  # what is requeued waits, and so does a redrive: all see the same
            scene.hikyaku("destinations", "pause", name, *WHO)
        for line in ACTS:
            if "destinations resume shop" not in line and "dead send" not in line:
                scene.say(line, *(() if line.startswith("redrive show") else WHO))
        for line in AFTER:
            scene.say(line)
            scene.say(line, "--json")
    ask_both(act)


@test
def every_error_is_the_same():
    def err(scene):
        for line in [*ERRORS, *WRONG]:
            if not is_here(line):
                scene.say(line)
        for line in WRONG_ACTS:
            scene.say(line, *WHO)
    ask_both(err)


@test
def messages_go_in_by_the_line():
    def put(scene):
        lines = "".join(MANY % (i, i) for i in range(1203))
        scene.say("enqueue --ndjson -", stdin=lines.encode())
        scene.say("enqueue --ndjson - --json", stdin=(MANY % (5000, 1)).encode())
        scene.say("enqueue --ndjson -", stdin=(lines.replace("line-", "next-") + "\n\nnonsense\n" + MANY % (9999, 1)).encode())
        scene.say("enqueue --ndjson -", stdin=b'{"event_type":"X","nonsense":1}\n')
        scene.say("enqueue --destination later --event-type One --message-id one --key k --header A=B --correlation-id c --payload @bytes")
        scene.say("enqueue --destination later --event-type One --message-id two --payload text --not-before 1h --max-attempts 3")
        scene.say("enqueue --destination later")
        scene.say("messages list --destination later --limit 2000")
        rows = scene.sql("SELECT message_id, event_type, status FROM outbox_messages WHERE destination = 'later' ORDER BY message_id")
        assert len(rows) == 1203 + 1 + 1000 + 2 + 2, len(rows)
        scene.said.append(("rows", str(rows), "", 0))

    with Asked(False) as here, Asked(True) as there:
        for scene in here, there:
            scene.fill()
            scene.begin()
            scene.path("bytes").write_bytes(b"plain text")
            put(scene)
        compare(here, there)


@test
def a_login_is_kept_for_its_owner_alone():
    with Asked(True) as scene:
        scene.begin()
        env = {**clean_environment(), "HOME": str(scene.folder), "LC_ALL": "C.UTF-8"}

        def run(*args, stdin=""):
            done = subprocess.run([BINARY, *args], cwd="/", text=True, input=stdin, capture_output=True, env=env, timeout=120, check=False)
            return done.returncode, done.stdout + done.stderr

        code, said = run("login", scene.server, "--token-file", "-", stdin="hk_wrong\n")
        assert code != 0 and not (scene.folder / ".config/hikyaku/login").exists(), said
        code, said = run("login", scene.server, "--token-file", str(scene.token))
        assert code == 0 and f"as {ACTOR} (admin)" in said, said
        kept = scene.folder / ".config/hikyaku/login"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        code, said = run("whoami")
        assert code == 0 and said.startswith(f"{ACTOR}: admin"), said
        code, said = run("status", "--json")
        assert code == 0 and json.loads(said)["relays_running"] == 1, said
        code, said = run("--db", scene.url, "status", "--json")
        assert code == 0, said  # the database that was named, not the server
        kept.chmod(0o644)
        code, said = run("status")
        assert code != 0 and "chmod 600" in said, said
        kept.chmod(0o600)
        assert run("logout")[0] == 0 and not kept.exists()
        assert "nobody was logged in" in run("logout")[1]


@test
def a_server_that_is_not_there_is_said():
    with World() as world:
        for place, code, words in ((["--server", "http://127.0.0.1:1"], 69, "cannot ask"),
                                   (["--server", "ftp://x"], 2, "--server takes"),
                                   (["--server", "http://u:p@127.0.0.1:1"], 2, "--server takes"),
                                   (["--server", ""], 2, "is empty"),
                                   (["--server", "http://127.0.0.1:1", "--db", world.url], 2, "exclude each other")):
            done = subprocess.run([BINARY, *place, "status"], cwd=world.folder, text=True, capture_output=True, env=clean_environment(),
                                  timeout=120, check=False)
            assert done.returncode == code and words in done.stderr, (place, done)
        done = subprocess.run([BINARY, "--server", "http://127.0.0.1:1", "run"], cwd=world.folder, text=True, capture_output=True,
                              env=clean_environment(), timeout=120, check=False)
        assert done.returncode == 2 and "takes no '--server'" in done.stderr, done
        # a receiver is no relay
        done = subprocess.run([BINARY, "--server", re.match(r"http://[^/]+", world.receiver.url("shop"))[0], "status"], cwd=world.folder,
                              text=True, capture_output=True, env=clean_environment(), timeout=120, check=False)
        assert done.returncode != 0 and done.stderr.startswith("hikyaku: "), done


class Impostor(http.server.ThreadingHTTPServer):
    """A server that is no relay: `act(request, n, body)` answers the n-th request."""

    daemon_threads = True

    def __init__(self, act):
        super().__init__(("127.0.0.1", 0), ImpostorHandler)
        self.act, self.seen, self.lock = act, [], threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class ImpostorHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.lock:
            self.server.seen.append(body)
            n = len(self.server.seen)
        self.server.act(self, n, body)

    do_POST = do_GET

    def reply(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def ask_impostor(world, server, *args, stdin=b""):
    token = world.path("token")
    token.write_text("hk_of-somebody\n", encoding="ascii")
    env = {**clean_environment(), "HOME": str(world.folder), "LC_ALL": "C.UTF-8"}
    place = [] if args[0] == "login" else ["--server", server.url()]
    done = subprocess.run([BINARY, *place, "--token-file", str(token), *args], cwd=world.folder, input=stdin, capture_output=True,
                          env=env, timeout=120, check=False)
    assert b"Sanitizer" not in done.stderr and b"hk_of-somebody" not in done.stdout + done.stderr, done
    return done


@test
def an_impostor_gets_no_terminal_and_no_second_host():
    name = "\x1b]0;owned\x07\x9b31m\u202e"
    me = json.dumps({"name": name, "role": "admin", "reveal": True}).encode()
    problem = json.dumps({"detail": "no such " + name, "code": "NOTFOUND"}).encode()
    with World(init=False) as world, Impostor(lambda r, n, body: r.reply(200, me)) as other:
        for command in (("login", other.url()), ("whoami",)):
            done = ask_impostor(world, other, *command)
            assert done.returncode == 0 and b"owned" in done.stdout, done
            assert not any(c in done.stdout for c in (b"\x1b", b"\x07", "\x9b".encode(), "\u202e".encode())), done
        n = len(other.seen)
        with Impostor(lambda r, n, body: r.reply(302, b"", Location=other.url() + "/api/v1/me")) as server:
            done = ask_impostor(world, server, "whoami")
            assert done.returncode != 0 and b"302" in done.stderr and len(other.seen) == n, done
        with Impostor(lambda r, n, body: r.reply(404, problem, "application/problem+json; charset=utf-8")) as server:
            done = ask_impostor(world, server, "whoami")
            assert done.returncode == 1 and b"no such" in done.stderr and b"\x1b" not in done.stderr, done
        with Impostor(lambda r, n, body: r.reply(401, b'{"code":"TOKEN_EXPIRED","detail":"x"}', "application/problem+json")) as server:
            done = ask_impostor(world, server, "whoami")
            assert done.returncode == 1 and b"(TOKEN_EXPIRED)" in done.stderr and b"hikyaku login" in done.stderr, done
        world.damaged = True  # there is none


@test
def a_token_goes_in_clear_to_this_machine_alone():
    me = json.dumps({"name": "ops", "role": "admin", "reveal": False}).encode()
    with World(init=False) as world, Impostor(lambda r, n, body: r.reply(200, me)) as server:
        port = server.server_address[1]
        token = world.path("token")
        token.write_text("hk_of-somebody\n", encoding="ascii")
        env = {**clean_environment(), "HOME": str(world.folder), "LC_ALL": "C.UTF-8"}

        def run(*args):
            done = subprocess.run([BINARY, *args], cwd=world.folder, text=True, capture_output=True, env=env, timeout=120, check=False)
            return done.returncode, done.stderr

        far = f"http://127.1:{port}"  # not written as this machine's addresses are, though it is one
        for args in (("--server", far, "--token-file", str(token), "whoami"), ("login", far, "--token-file", str(token)),
                     ("login", "http://relay.example:1", "--token-file", str(token)),
                     ("login", "http://[2001:db8::1]:1", "--token-file", str(token))):
            code, said = run(*args)
            assert code == 2 and "in clear" in said and "--insecure" in said and not server.seen, (args, said)
        assert run("--server", far, "whoami")[0] == 0  # there is no token
        assert run("--insecure", "--server", far, "--token-file", str(token), "whoami")[0] == 0
        assert run("--server", f"http://localhost:{port}", "--token-file", str(token), "whoami")[0] == 0
        assert run("login", far, "--token-file", str(token), "--insecure")[0] == 0
        assert run("whoami")[0] == 0  # the login knows it
        world.damaged = True  # there is none


@test
def lines_that_a_server_took_without_a_word_are_not_sent_again():
    def act(request, n, body):
        if n == 1:
            request.reply(200, json.dumps({"items": [{"message_id": "m"}] * body.count(b"\n"), "next": None}).encode())
        else:
            request.close_connection = True  # it may well have written them

    with World(init=False) as world, Impostor(act) as server:
        done = ask_impostor(world, server, "enqueue", "--ndjson", "-", stdin="".join(MANY % (i, i) for i in range(501)).encode())
        assert done.returncode != 0, done
        assert [body.count(b"\n") for body in server.seen] == [500, 1], [len(b) for b in server.seen]
        world.damaged = True  # there is none


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
