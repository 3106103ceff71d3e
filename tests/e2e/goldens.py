#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every command says: text, --json and exit code, on either store, errors included. Speaks TAP.

For a change of structure, which must not change what people and scripts read. Record with the program of before, compare with
the program of after. The scene is always the same; times, ages, ports and folders are written as <time>, <age> …, and runs of
blanks as one, because they differ from run to run. Not part of `make test`: that would state every word a second time.

Usage: RECORD=1 goldens.py OLD-HIKYAKU; goldens.py NEW-HIKYAKU. STORE=postgres; GOLDENS=FOLDER (default: build/goldens)"""
import difflib
import getpass
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import BINARY, POSTGRES, Answer, World, clean_environment, run_tests, until

FILES = pathlib.Path(os.environ.get("GOLDENS", "build/goldens")).resolve()
STORE = "postgres" if POSTGRES else "sqlite"
WHO = ("--actor", "ops@example", "--reason", "a golden")

SECTIONS = {
    "relay": {"name": "golden"},
    "policies": {"patient": {"preset": "standard", "backoff": {"base": "1h", "cap": "1h"}, "jitter": "none", "breaker": "off"}},
    "routes": [{"event_type": "Ship*", "destination": "shop"}],
    "validate": [{"event_type": "OrderCreated", "required": ["orderId"]}],
    "masks": [{"paths": ["customer.email"]}],
}
DESTINATIONS = {"shop": {}, "billing": {}, "slow": {"policy": "patient"}, "later": {}}

# Nothing here changes anything: each is asked in text and as JSON.
LOOKS = [
    "version", "status", "status --exact",
    "messages list", "messages list --status dead", "messages list --status sent --limit 1", "messages list --destination slow",
    "messages list --event-type ShipOrder", "messages list --status pending",
    "messages show sent-1", "messages show slow-1", "messages show bad-1", "messages show dead-1", "messages show gone-1",
    "messages attempts dead-1", "messages attempts slow-1 --limit 1", "messages attempts later-1",
    "messages explain sent-1", "messages explain slow-1", "messages explain later-1", "messages explain scheduled-1",
    "messages explain dead-1", "messages explain gone-1",
    "destinations list", "destinations test shop", "destinations test billing", "relays list",
    "dead list", "dead list --status any", "dead list --oldest --limit 2", "dead list --reason-code HTTP_422",
    "dead list --class permanent", "dead list --text currency", "dead list --filter payload.orderId:2",
    "dead groups", "dead show 1", "dead show 2", "dead show dead-1", "dead stats", "dead reasons", "dead export",
    "dead requeue --destination billing --dry-run", "dead discard --class permanent --dry-run",
    "dead fix --jq .orderId=7 --reason-code VALIDATION_ERROR --dry-run",
    "redrive plan", "redrive plan --destination billing --rate 10/s", "redrive list", "job list",
    "alerts list", "audit list", "audit verify", "doctor",
    "policy list", "policy show standard", "policy plan standard --seed 1 --attempts 6", "config check",
]
# In this order: each changes the store, and is asked once, as text or as JSON.
ACTS = [
    "messages retry slow-1", "messages cancel later-1", "messages cancel scheduled-1 --json", "messages retry sent-1",
    "destinations pause shop", "destinations resume shop --json", "destinations resume later",
    "dead note 1 look-at-this", "dead edit 1 --payload {\"orderId\":1}", "dead edit 1 --payload {\"orderId\":1} --json",
    "dead fix --jq .currency=\"JPY\" --destination billing --yes", "dead requeue 1 --yes", "dead requeue 1 --yes --json",
    "dead resolve 2", "dead discard 3 --yes --json", "dead restore 3 --yes", "dead discard --destination billing --yes",
    "dead restore --destination billing --status discarded --yes --json", "dead send 3 --yes",
    "redrive start --destination billing --rate 5/s --yes", "redrive show 1", "redrive cancel 1", "redrive show 1 --json",
    "alerts mute dead_letters --for 1h", "alerts unmute dead_letters --json",
]
AFTER = ["status", "messages list", "messages show slow-1", "dead list --status any", "dead show 1", "dead show 3", "dead stats",
         "redrive list", "audit list", "audit list --letter 3", "audit verify", "destinations list"]
# What is wrong with each is said on standard error, and nothing is changed.
ERRORS = [
    "", "nonsense", "dead nonsense", "status --nonsense", "status extra", "messages show", "messages show no-such", "messages attempts no-such",
    "messages explain no-such", "messages list --limit 0", "messages list --status nonsense", "messages list --after nonsense",
    "dead show 999", "dead show no-such", "dead list --filter nonsense:1", "dead list --older never", "dead list --group zz",
    "dead requeue", "dead requeue 1 --yes", "dead fix --jq . --yes", "dead note 1", "destinations test nowhere", "redrive show 99",
    "job show 99", "job show x", "job list --after x",
    "redrive start --rate 0/s --yes", "alerts test nowhere", "policy show nowhere", "policy plan standard --attempts 0",
    "config check no-such.yaml", "enqueue --destination shop", "enqueue --destination shop --event-type X --payload @no-such",
    "completion nonsense", "--db sqlite:/no/such/folder/x.db status", "--db nonsense:x status", "--config no-such.yaml status",
    "help nonsense",
]
WRONG_ACTS = [
    "dead edit 999 --payload {}", "dead edit 1 --payload {]", "dead edit 1 --payload {}", "dead requeue 999 --yes",
    "dead requeue 1 999 --yes --json", "dead fix --jq ]] --destination shop --yes", "dead fix --jq error(1) --destination shop --yes",
    "dead send 999 --yes", "dead note 999 x", "dead restore 1 --yes", "destinations pause nowhere", "destinations resume nowhere",
    "job cancel 99", "dead discard 1 --background --yes", "dead discard --destination shop --background --dry-run --yes",
    "redrive cancel 99", "redrive start --destination shop --rate 0/s --yes", "alerts mute nonsense --for 1h", "alerts unmute nonsense",
    "messages cancel no-such", "messages retry no-such", "messages cancel bad-1",
]
NORMAL = [
    (re.compile(r"(PostgreSQL|SQLite) \d[\d.]*( \(.*?\))?"), r"\1 <version>"),
    (re.compile(r"\b\d+ free\b"), "<n> free"),
    (re.compile(r'(Server\W+|server: )BaseHTTP/[\w.]+ Python/[\w.]+'), r"\1<server>"),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"), "<date>"),
    (re.compile(r"\b1[789]\d{8}\b"), "<seconds>"),
    (re.compile(r'(\\"\w+_ms\\": ?)\d+'), r"\1<n>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?\b"), "<clock>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<day>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\btest-[0-9a-f]{16}\b"), "test-<id>"),
    (re.compile(r"\b1\d{12}\b"), "<ms>"),
    (re.compile(r"127\.0\.0\.1:\d+|host=\S+ port=\d+"), "<address>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b(\d+(\.\d+)? ?(ms|s|min|h|m|d) ?)+\b"), "<age>"),
    (re.compile(r'("(?:\w+_ms|age|\w*_seconds|pid|size_bytes|\w*bytes|free|took|p50|p95|p99|rate|per_s|window)": ?)-?[\d.]+'), r"\1<n>"),
    (re.compile(r"\b\d+(\.\d+)? ?(B|KB|MB|GB|KiB|MiB|GiB)\b"), "<size>"),
    (re.compile(r"pid \d+"), "pid <n>"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"-{3,}|─{2,}"), "---"),
]


def words_of(line):
    return line.split(" ") if line else []


def spread(out):
    """JSON that stands on lines, one field a line, so that a difference can be read; everything else as it is."""
    lines = out.splitlines()
    try:
        return "".join(json.dumps(json.loads(line), ensure_ascii=False, indent=1) + "\n" for line in lines)
    except ValueError:
        return out


class Scene(World):
    """A store with one message in each state, made one after the other, so that ids are the same every time."""

    def __init__(self):
        super().__init__(DESTINATIONS, **SECTIONS)
        self.config["destinations"]["later"]["policy"] = "patient"
        self.write_config()
        self.receiver.on("billing", Answer(422, {"Content-Type": "application/json"}, body=b'{"message":"field \'currency\' is missing"}'))
        self.receiver.on("slow", 503)
        self.said = []

    def put(self, message_id, status, **columns):
        self.insert(message_id=message_id, **columns)
        until(lambda: self.sql("SELECT status FROM outbox_messages WHERE message_id = ?", message_id) == [(status,)],
              lambda: f"{message_id} {status}, not {self.sql('SELECT message_id, status FROM outbox_messages')}")

    def fill(self):
        self.hikyaku("destinations", "pause", "later", *WHO)
        relay = self.daemon().ready()
        self.put("sent-1", "sent", payload='{"orderId":1}')
        self.put("sent-2", "sent", payload='{"orderId":2}', correlation_id="c-2", message_key="k")
        self.put("bad-1", "dead", payload='{"order":1}')
        self.put("dead-1", "dead", destination="billing", payload='{"orderId":2,"customer":{"email":"a@example.com"}}')
        self.put("dead-2", "dead", destination="billing", payload='{"orderId":3}', correlation_id="c-3")
        self.put("nowhere-1", "dead", destination="nowhere", payload='{"orderId":4}')
        self.put("slow-1", "retrying", destination="slow", payload='{"orderId":5}')
        self.put("gone-1", "pending", destination="later", payload='{"orderId":6}')
        self.hikyaku("messages", "cancel", "gone-1", *WHO)
        self.put("later-1", "pending", destination="later", payload='{"orderId":7}')
        self.put("scheduled-1", "pending", payload='{"orderId":8}', not_before="2099-01-01T00:00:00.000Z")
        until(lambda: not self.sql("SELECT 1 FROM outbox WHERE message_id = 'scheduled-1'"), "the relay puts it aside")
        relay.stop()

    def normal(self, text):
        for real, name in ((self.url, "<db>"), (str(self.db), "<db>"), (str(self.folder), "<folder>"), (BINARY, "hikyaku"),
                           (f"{getpass.getuser()}@{socket.gethostname()}", "<user>"), (socket.gethostname(), "<host>")):
            text = text.replace(real, name)
        for pattern, name in NORMAL:
            text = pattern.sub(name, text)
        return "".join(line.strip() + "\n" for line in text.splitlines())

    def say(self, line, *more):
        env = {**clean_environment(), "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "120", "TZ": "UTC"}
        before = [] if line.startswith("--") else ["--config", str(self.config_path)]
        done = subprocess.run([BINARY, *before, *words_of(line), *more], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              env=env, timeout=120, check=False)
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        assert "Sanitizer" not in err, err
        if "--json" in [*words_of(line), *more]:
            out = spread(out)
        shown = " ".join(["hikyaku", line, *(m for m in more if m not in WHO)]).strip()
        self.said.append(f"$ {shown}\n{self.normal(out)}" + (f"stderr:\n{self.normal(err)}" if err else "") + f"exit {done.returncode}\n")
        return done.returncode


def compare(name, said):
    path, now = FILES / f"{name}.{STORE}.txt", "\n".join(said)
    if os.environ.get("RECORD"):
        FILES.mkdir(parents=True, exist_ok=True)
        path.write_text(now, encoding="utf-8")
    was = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = list(difflib.unified_diff(was.splitlines(), now.splitlines(), str(path.name), "now", lineterm="", n=4))
    assert not changed, "what commands say has changed:\n" + "\n".join(changed[:200])


def every_command_says_what_it_said():
    with Scene() as scene:
        scene.fill()
        for line in LOOKS:
            scene.say(line)
            scene.say(line, "--json")
        compare("looks", scene.said)
        scene.said = []
        for line in ACTS:
            scene.say(line, *WHO)
        for line in AFTER:
            scene.say(line)
            scene.say(line, "--json")
        compare("acts", scene.said)


def every_error_says_what_it_said():
    with Scene() as scene:
        relay = scene.daemon().ready()
        scene.put("bad-1", "dead", payload='{"order":1}')
        relay.stop()
        for line in ERRORS:
            scene.say(line)
        for line in WRONG_ACTS:
            scene.say(line, *WHO)
        compare("errors", scene.said)


if __name__ == "__main__":
    sys.exit(run_tests([every_command_says_what_it_said, every_error_says_what_it_said]))
