#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/openapi.json of a relay, in the hands of tools that know nothing of hikyaku: it is valid OpenAPI, every answer of a relay is as it says
(schemathesis), and a client that is generated from it rescues a dead letter. Speaks TAP. The tools come by pip, into the build folder, once
for both stores and for later runs; without them the tests are skipped.

Usage: api_schema.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them; TOOLS=FOLDER
takes the tools from a virtual environment that is there."""
import collections
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the source folder stays as it is
from api import Served
from rest import write_key
from support import Answer, QUICK, Receiver, Skip, clean_environment, now_ms, run_tests, until

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = "not_a_server_error,response_schema_conformance,content_type_conformance,status_code_conformance"
MOST_SECONDS = 600  # for one tool: far more than it takes, so that a test ends
TESTS = []


def test(function):
    TESTS.append(function)
    return function


# ---- the tools ----

class Tools:
    """In a virtual environment, made when the first test asks for one: in the build folder, under a name that goes by the list of
    tools. Whoever comes second waits for it (the same program runs for each store at a time). Without a build folder it is removed
    at the end."""

    folder = why_not = None

    def run(self, *command):
        return subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=MOST_SECONDS, check=False)

    def make(self):
        steps = ((sys.executable, "-m", "venv", str(self.folder)),
                 (str(self.folder / "bin/python"), "-m", "pip", "install", "-q", "--no-compile", "--only-binary", ":all:",
                  "--disable-pip-version-check", "-r", str(HERE / "requirements-api.txt")))
        for step in steps:
            done = self.run(*step)
            if done.returncode != 0:
                said = (done.stderr + done.stdout).strip().splitlines() or ["?"]
                return f"the tools cannot be had by pip: {said[-1][:160]}"
        (self.folder / "whole").touch()
        return None

    def make_or_find(self):
        """One at a time. What was broken off is made anew."""
        with open(f"{self.folder}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (self.folder / "whole").exists():
                return None
            shutil.rmtree(self.folder, ignore_errors=True)
            try:
                return self.make()
            except (OSError, subprocess.TimeoutExpired) as why:
                return f"the tools cannot be had by pip: {why}"

    def program(self, name):
        if "TOOLS" in os.environ:
            return str(pathlib.Path(os.environ["TOOLS"]) / "bin" / name)
        if self.folder is None:
            wanted = (HERE / "requirements-api.txt").read_bytes() + sys.version.encode() + sys.executable.encode()
            base = os.environ.get("BUILD_DIR") or tempfile.mkdtemp(prefix="hikyaku-tools-")
            self.folder = pathlib.Path(base) / f"api-tools-{hashlib.sha256(wanted).hexdigest()[:12]}"
            self.why_not = self.make_or_find()
        if self.why_not:
            raise Skip(self.why_not)
        return str(self.folder / "bin" / name)

    def cache(self):
        """For compiled Python, so that each start of a tool does not compile it again."""
        return (self.folder or pathlib.Path(os.environ["TOOLS"])) / "compiled"

    def close(self):
        if self.folder and "BUILD_DIR" not in os.environ:
            shutil.rmtree(self.folder.parent, ignore_errors=True)


TOOLS = Tools()


def use(world, name, *args, **env):
    """Runs a tool in the world's folder; what it wrote."""
    done = subprocess.run([TOOLS.program(name), *args], cwd=world.folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=MOST_SECONDS, check=False,
                          env={**clean_environment(), "PYTHONPYCACHEPREFIX": str(TOOLS.cache()), "NO_PROXY": "*", **env})
    assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{done.stdout[-12000:]}"
    return done.stdout


# ---- the relay ----

class Described(Served):
    """With something of each kind to ask for."""

    def __init__(self):
        self.chat = Receiver()
        self.chat.on("chat", Answer(200, body=b"ok"))
        super().__init__(destinations={"shop": {}, "closed": {}, "down": {"policy": "patient"}},
                         policies={"patient": {**QUICK, "backoff": {"base": "1h", "cap": "1h"}}},
                         queues={},
                         channels={"chat": {"slack": {"url": self.chat.url("chat")}, "allow": ["127.0.0.0/8"]}},
                         alerts={"rules": [{"name": "died", "when": "dead_letter"}]})
        keys = ("newer", "older")
        for key in keys:
            write_key(self.path(key))
        self.config["seal"] = {"mode": "end", "store": "shop", "keys": [{"id": key, "file": key} for key in keys]}
        self.write_config()

    def __exit__(self, *error):
        try:
            return super().__exit__(*error)
        finally:
            self.chat.close()

    def describe(self):
        path = self.path("openapi.json")
        path.write_text(json.dumps(self.api("boss").good("GET", "/openapi.json")), encoding="utf-8")
        return path

    def fill(self, letters):
        """Writes what exists into a file."""
        boss = self.api("boss")
        self.receiver.on("down", 503)
        self.insert(destination="down", message_id="failed")
        self.receiver.on("closed", 422)
        self.insert(destination="closed", message_id="refused")
        until(lambda: "refused" in self.letters(), "a letter of another destination")
        boss.good("POST", "/destinations/closed/pause", {"reason": "a redrive that does not end by itself"})
        self.dead(letters)
        later = {"destination": "shop", "event_type": "OrderCreated", "payload": "{}", "not_before": "2099-01-01T00:00:00Z"}
        waiting = [boss.good("POST", "/messages", {**later, "message_id": f"later-{i}"})["message_id"] for i in range(20)]
        ids = [item["id"] for item in boss.good("GET", "/dead-letters", query={"destination": "shop", "limit": letters})["items"]]
        boss.good("POST", f"/dead-letters/{ids[0]}/note", {"text": "a first act"})
        redrive = boss.good("POST", "/redrives", {"destination": "closed", "rate": "1/s", "reason": "a test"})
        until(lambda: self.statuses("message_id = 'failed'") == {"retrying": 1}, "it to have failed once")
        # a job that does not end by itself: another relay has it in hand
        self.sql("INSERT INTO outbox_job (operation, request, actor, reason, role, status, owner, token, lease_ms, created_ms) "
                 "VALUES ('dead discard', '{}', 'ann', 'a test', 'operator', 'running', 'elsewhere', 1, ?, ?)",
                 now_ms() + 3600 * 1000, now_ms())
        doomed = [f"doomed-{i}" for i in range(20)]
        boss.good("POST", "/destinations/apply", {"definitions": {name: {"null": {}} for name in [*doomed, "kept"]}, "reason": "a test"})
        for name in [*doomed, "kept"]:
            boss.good("POST", "/queues", {"name": f"projects/p/locations/l/queues/{name}", "reason": "a test"})
        path = self.path("known.json")
        path.write_text(json.dumps({
            "letter": ids, "message": ["dead-0", "dead-1"], "waiting": waiting, "failed": ["failed"], "doomed": doomed, "redrive": [redrive["redrive"]],
            "job": [item["id"] for item in boss.good("GET", "/jobs")["items"]],
            "act": [item["id"] for item in boss.good("GET", "/audit")["items"]]}), encoding="utf-8")
        return path


# ---- tests ----

AS_A_JOB = {"keys_rotate": "202"}  # never within the call


@test
def the_description_is_openapi():
    with Described() as world:
        world.token("boss", "admin")
        world.serve()
        use(world, "openapi-spec-validator", str(world.describe()))


@test
def every_answer_is_as_described():
    with Described() as world:
        TOOLS.program("schemathesis")
        world.token("spare", "viewer")
        world.token("boss", "admin", "--reveal")
        world.serve()
        known, answered = world.fill(30), world.path("answered.json")
        world.path("schemathesis.toml").write_text('[phases.coverage]\nunexpected-methods = ["DELETE"]\n', encoding="utf-8")
        said = use(world, "schemathesis", "--no-color", "run", str(world.describe()), "--url", f"http://{world.address}/api/v1", "--header",
                   f"Authorization: Bearer {world.tokens['boss']}", "--checks", CHECKS, "--phases", "coverage,fuzzing", "--seed", "16",
                   "--max-examples", "6", "--generation-database", "none", "--continue-on-failure", "--no-shrink",
                   SCHEMATHESIS_HOOKS="api_hooks", PYTHONPATH=str(HERE), KNOWN=str(known), ANSWERED=str(answered))
        seen = collections.defaultdict(dict)
        for key, n in json.loads(answered.read_text(encoding="utf-8")).items():
            name, status = key.split()
            seen[name][status] = n
        for name, statuses in sorted(seen.items()):
            print(f"# {name}: {', '.join(f'{n} x {status}' for status, n in sorted(statuses.items()))}")
        described = json.loads(world.path("openapi.json").read_text(encoding="utf-8"))
        names = {operation["operationId"] for methods in described["paths"].values() for operation in methods.values()}
        never = sorted(name for name in names if AS_A_JOB.get(name, "200") not in seen[name])
        assert not never, f"never answered with 200, so that no schema was looked at: {never}\n{said[-3000:]}"


RESCUE = '''
import json, sys
from hikyaku_client import AuthenticatedClient
from hikyaku_client.api.dead import dead_edit, dead_list, dead_open, dead_requeue, dead_show
from hikyaku_client.models import DeadEditBody, DeadRequeueBody

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], raise_on_unexpected_status=True, timeout=60)
if sys.argv[3] == "rescue":
    listed = dead_list.sync(client=client, destination="shop", reason_code="HTTP_422")
    letter = listed.items[0]
    opened = dead_open.sync_detailed(letter.id, client=client)
    payload = json.loads(opened.parsed.payload)
    payload["currency"] = "JPY"
    edited = dead_edit.sync(letter.id, client=client, if_match=opened.headers["ETag"],
                            body=DeadEditBody.from_dict({"payload": payload, "reason": "currency added"}))
    requeued = dead_requeue.sync(client=client, body=DeadRequeueBody(ids=[letter.id], reason="repaired"))
    print(json.dumps({"id": letter.id, "changed": edited.changed, "requeued": requeued.to_dict()}))
else:
    print(json.dumps(dead_show.sync(sys.argv[4], client=client).to_dict()))
'''


@test
def a_generated_client_rescues_a_dead_letter():
    with Described() as world:
        TOOLS.program("openapi-python-client")
        world.token("boss", "admin")
        world.token("ops", "operator")
        world.serve()
        world.dead()
        use(world, "openapi-python-client", "generate", "--path", str(world.describe()), "--output-path", str(world.path("hikyaku_client")),
            "--meta", "none")
        world.path("rescue.py").write_text(RESCUE, encoding="utf-8")

        def ask(*args):
            return json.loads(use(world, "python", "rescue.py", f"http://{world.address}/api/v1", world.tokens["ops"], *args))

        world.receiver.on("shop", 200)
        rescued = ask("rescue")
        assert rescued["changed"], rescued
        until(lambda: ask("show", rescued["id"])["status"] == "resolved", "the generated client sees it resolved")
        sent = json.loads(world.receiver.arrived()[-1].body)
        assert sent["currency"] == "JPY" and sent["orderId"] == 0, sent


if __name__ == "__main__":
    try:
        code = run_tests(TESTS)
    finally:
        TOOLS.close()
    sys.exit(code)
