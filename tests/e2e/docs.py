#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows is what happens: console blocks are run, C is compiled, links lead somewhere. Speaks TAP.

Usage: docs.py [PATH-TO-HIKYAKU] (default: $HIKYAKU)"""
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import pages  # noqa: E402
import postgres  # noqa: E402
from ports import free_port  # noqa: E402

BINARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.environ["HIKYAKU"])
# The pages for users. CHANGELOG names what is gone, too.
PAGES = sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("README*.md"), *ROOT.glob("docs/*.md")])
# What the snippets of docs/library.md take from the reader's own program. Those of the READMEs stand alone.
PRELUDE = """
#include <stdio.h>
#include <hikyaku/hikyaku.h>
struct order;
int post_order(struct order *order, uint64_t timeout_ms);
void bury(struct order *order, const char *reason, const char *text);
void schedule(struct order *order, int64_t at_ms);
void log_retry(void *arg, const struct hk_retry_event *event);
"""
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-unused-function -Wno-unused-const-variable -Werror"


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)


def compiles(page, at_least, prelude=""):
    code = blocks(page, "c")
    assert len(code) >= at_least, f"{page} has {len(code)} pieces of C"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "page.c")
        source.write_text(prelude + "\n".join(code), encoding="utf-8")
        done = subprocess.run(["cc", "-std=c11", "-fsyntax-only", *WARNINGS.split(), f"-I{ROOT}/include", str(source)],
                              capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def runs(page, at_least):
    """`$ cat FILE` makes the file that it shows; `$ hikyaku …` must print what follows it."""
    n = 0
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks(page, "console"):
            for command, output in re.findall(r"^\$ ([^\n]*)\n(.*?)(?=^\$ |\Z)", block, re.S | re.M):
                words = command.split()
                if words[0] == "cat":
                    pathlib.Path(folder, words[1]).write_text(output, encoding="utf-8")
                    continue
                assert words[0] in ("hikyaku", "build/hikyaku"), command
                done = subprocess.run([BINARY, *words[1:]], cwd=folder, text=True, encoding="utf-8", check=False,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
                assert done.stdout == output, f"{command} prints:\n{done.stdout}"
                n += 1
    assert n >= at_least, f"{page} shows {n} commands"


def simulated_figures(page):
    """The table beside the picture holds some of the figures that the command prints."""
    table = re.search(r"```\n( +standard +without jitter\n.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    assert table, "there is no table of figures"
    done = subprocess.run([BINARY, "policy", "simulate", "standard", "--clients", "10000", "--outage", "60s"],
                          text=True, encoding="utf-8", check=True, stdout=subprocess.PIPE)
    for line in table[1].splitlines():
        assert line in done.stdout.splitlines(), line


def links():
    """Every relative link of every page leads to a file, and to a heading where it names one."""
    found = list(pages.broken())
    assert not found, "\n".join(found)
    assert len(pages.pages()) > 30, pages.pages()


def signature(secret, message_id, timestamp, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(mac.digest()).decode()


def verifiers():
    """The programs of docs/receivers.md take what is signed rightly, and nothing else. Go and Java are compiled by hand."""
    def secret_of(byte):
        return "whsec_" + base64.b64encode(bytes([byte]) * 32).decode()

    ours, other, body, now, old = secret_of(1), secret_of(2), b"{}\n\x00\xff", str(int(time.time())), "1700000000"
    good, foreign = signature(ours, "m-1", now, body), signature(other, "m-1", now, body)
    cases = [(True, now, good, body), (True, now, foreign + " " + good, body), (False, now, good, body + b"!"),
             (False, now, foreign, body), (False, old, signature(ours, "m-1", old, body), body)]
    with tempfile.TemporaryDirectory() as folder:
        for language, program, name in [("python", sys.executable, "v.py"), ("sh", "sh", "v.sh"), ("js", "node", "v.mjs"),
                                        ("ruby", "ruby", "v.rb"), ("php", "php", "v.php")]:
            code = blocks("docs/receivers.md", language)
            assert len(code) == 1, f"{len(code)} pieces of {language}"
            if not shutil.which(program):
                continue
            pathlib.Path(folder, name).write_text(code[0], encoding="utf-8")
            for wanted, timestamp, given, sent in cases:
                done = subprocess.run([program, name, ours, "m-1", timestamp, given], cwd=folder, input=sent,
                                      capture_output=True, check=False)
                assert done.returncode == (0 if wanted else 1), (language, wanted, timestamp, given, done)


def same_blocks(page, other):
    """A page and its translation show the same commands and outputs."""
    ours, theirs = (re.findall(r"^```\w*\n.*?^```$", (ROOT / name).read_text("utf-8"), re.S | re.M) for name in (page, other))
    assert len(ours) >= 5, f"{page} shows {len(ours)} blocks"
    assert ours == theirs, [(a, b) for a, b in zip(ours, theirs) if a != b] or (len(ours), len(theirs))


PATIENCE_S = 120


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.05)


def start_page(store):
    """The commands of docs/start.md, as a reader types them: all but the receiver that is down, which takes its time."""
    page = (ROOT / "docs/start.md").read_text(encoding="utf-8")
    sections = {s[0]: s for s in re.split(r"^## ", page, flags=re.M)[1:]}  # by its number
    typed = {n: re.findall(r"^\$ ([^\n]*)\n(.*?)(?=^\$ |^```)", s, re.S | re.M) for n, s in sections.items()}
    port, scripts = free_port(), blocks("docs/start.md", "sh")
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "bin").mkdir()
        (here / "bin/hikyaku").symlink_to(BINARY)
        shutil.copy(ROOT / "examples/receiver.py", here)
        config = blocks("docs/start.md", "yaml")[0].replace(":9000/", f":{port}/") + "admin: { listen: none }\n"
        secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
        env = {"PATH": f"{here}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "HOME": folder, "BILLING_SECRET": secret}
        insert = next(s for s in scripts if s.startswith("sqlite3 shop.db"))
        if store == "postgres":
            server = postgres.cluster()
            server.connect("postgres").execute("CREATE DATABASE shop").close()
            env |= {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "hikyaku"}
            config = config.replace("store: sqlite:shop.db", re.search(r"`(store: postgres:///\w+)`", sections["3"])[1])
            insert = next(s for s in scripts if s.startswith("psql -q shop"))
        (here / "hikyaku.yaml").write_text(config, encoding="utf-8")
        running, got = [], here / "got.log"

        def shell(command):
            done = subprocess.run(["sh", "-euc", command], cwd=folder, env=env, text=True, encoding="utf-8", check=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            return done.stdout

        def background(*argv):
            with open(got, "a", encoding="utf-8") as out:
                running.append(subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                                stderr=subprocess.DEVNULL))

        def same(command, output):
            printed = shell(command)
            assert shape(printed) == shape(output), f"{command} prints:\n{printed}"

        def received(order):
            until(lambda: f'{{"orderId":{order}}}' in got.read_text("utf-8"), f"order {order}: {got.read_text('utf-8')}")

        try:
            for command, output in typed["3"][1:]:
                output = output.replace("sqlite:shop.db", "postgres:///shop" if store == "postgres" else "sqlite:shop.db")
                assert re.sub(r"\d+", "N", shell(command)) == re.sub(r"\d+", "N", output), (command, shell(command))
            background(sys.executable, "receiver.py", str(port), secret)
            background(str(here / "bin/hikyaku"), "run")
            shell(insert)
            received(1)
            until(lambda: " sent " in shell(typed["5"][0][0]), "a sent message in the list")
            same(*typed["5"][0])
            enqueue, dead, requeue, audit = typed["7"]
            same(*enqueue)
            until(lambda: "UNKNOWN_DESTINATION" in shell(dead[0]), "a dead letter")
            same(*dead)
            same(*requeue)
            received(4)
            same(*audit)
            assert '"orderId":2' not in got.read_text("utf-8"), "what was rolled back has arrived"
            if store == "postgres":
                background(str(here / "bin/hikyaku"), "run")
                until(lambda: shape(shell(typed["8"][1][0])) == shape(typed["8"][1][1]), "two relays with their shares in the list")
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()


# ---- outputs that pages show ----

def shape(text):
    """A text without what differs from run to run: ids, times, durations, numbers, names of hosts, and the widths that follow from them."""
    for pattern, name in ((r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"), (r"\b[0-9a-f]{16,}\b…?", "HEX"),
                          (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"), (r"\S+@\S+", "WHO"), (r"(?m)^\S+-\d+(?= )", "RELAY"),
                          (r"\d[\d,.]*(?:ms|[smhd])(?:\d+[smh])?", "SPAN"), (r"\d[\d,]*(?:\.\d+)*", "N")):
        text = re.sub(pattern, name, text)
    return [" ".join(line.split()) for line in text.splitlines() if not line.startswith("got ")]  # the receiver of start.md


def shown_outputs(page):
    """(command, output) of each `$ hikyaku …` of a page that has an output; a command may have several lines, in quotes."""
    for language, block in re.findall(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", (ROOT / page).read_text(encoding="utf-8"), re.S | re.M):
        if language not in ("", "sh", "console"):
            continue
        for command, output in re.findall(r"^\$ ((?:[^'\n]|'[^']*')*)\n(.*?)(?=^\$ |\Z)", block, re.S | re.M):
            if re.match(r"(build/)?hikyaku ", command) and output:
                yield command.removeprefix("build/"), output


class Folder:
    """An empty folder with a configuration and its tables, as a reader has who follows a page."""

    def __init__(self, config, db=None):
        self.place = tempfile.TemporaryDirectory()
        self.here = pathlib.Path(self.place.name)
        (self.here / "bin").mkdir()
        (self.here / "bin/hikyaku").symlink_to(BINARY)
        (self.here / "hikyaku.yaml").write_text(config + "admin: { listen: none }\n", encoding="utf-8")
        self.env = {"PATH": f"{self.here}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "HOME": self.place.name} | ({"HIKYAKU_DB": db} if db else {})

    def __enter__(self):
        self.shell("hikyaku init")
        return self

    def __exit__(self, *_):
        self.place.cleanup()

    def shell(self, command):
        return subprocess.run(["sh", "-uc", command], cwd=self.here, env=self.env, text=True, encoding="utf-8", check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def prints(folder, page, chosen=lambda command: True, form=str):
    shown = [(c, o) for c, o in shown_outputs(page) if chosen(c)]
    assert shown, f"{page} shows no such output"
    for command, output in shown:
        printed = folder.shell(command)
        begun = output.removesuffix("…\n")  # the page leaves out the rest
        assert form(printed)[:len(form(begun))] == form(begun) and (begun != output or form(printed) == form(output)), \
            f"{page}: {command} prints:\n{printed}"


def manual_outputs():
    """Examples of the manual that need no database."""
    with Folder("") as folder:
        (folder.here / "shop.yaml").write_text("policies:\n  orders:\n    preset: standard\n    max_attempts: many\n", encoding="utf-8")
        prints(folder, "docs/man/hikyaku-config.1.scd")
        prints(folder, "docs/man/hikyaku-policy.1.scd")


def destinations_outputs():
    with Folder("destinations: {}\n") as folder:
        (folder.here / "crm.yaml").write_text("http: { url: 'https://crm.example/other' }\n", encoding="utf-8")
        prints(folder, "docs/destinations.md", lambda command: " explain " not in command)


def moving_outputs():
    """On PostgreSQL, with the table as Debezium's documentation has it."""
    server = postgres.cluster()
    with contextlib.closing(server.connect("postgres")) as db:
        db.execute("CREATE DATABASE moving")
    with contextlib.closing(server.connect("moving")) as db:
        db.execute("CREATE TABLE outboxevent (id uuid NOT NULL, aggregatetype character varying(255) NOT NULL, "
                   "aggregateid character varying(255) NOT NULL, type character varying(255) NOT NULL, payload jsonb)")
    with Folder("", f"postgres://hikyaku@127.0.0.1:{server.port}/moving") as folder:
        prints(folder, "docs/moving.md")


class Refuser(http.server.BaseHTTPRequestHandler):
    """Says no as the receiver of docs/groups.md does."""

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        text = json.dumps({"message": "unknown currency" if b"XXX" in body else "field 'currency' is missing"}).encode()
        self.send_response(422)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def groups_outputs():
    """Dead letters of two causes, fewer than the pages tell of: the same words and columns, with other numbers."""
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuser)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    config = f"destinations: {{ billing: {{ http: {{ url: 'http://127.0.0.1:{receiver.server_port}/' }}, allow: [127.0.0.0/8], order: none }} }}\n"
    with Folder(config) as folder:
        relay = subprocess.Popen([BINARY, "run"], cwd=folder.here, env=folder.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try:
            for dead, payload in enumerate(('{"currency":"XXX"}', "{}", "{}", "{}", '{"currency":"XXX"}'), 1):
                folder.shell(f"hikyaku enqueue --destination billing --event-type OrderCreated --payload '{payload}'")
                until(lambda n=dead: folder.shell("hikyaku dead list --json").count('"message_id"') == n, f"{dead} dead letters")
            for page, chosen in (("docs/groups.md", lambda c: ("docs/groups.md", c) not in NOT_COMPARED), ("docs/runbook.md", lambda c: True), ("docs/runbook.ja.md", lambda c: True)):
                prints(folder, page, chosen, shape)
        finally:
            relay.terminate()
            relay.wait()
            receiver.shutdown()
            receiver.server_close()


# Where outputs are compared; and commands whose output no test here compares: why.
COMPARED = {"README.md": "runs", "README.ja.md": "runs", "docs/policies.md": "cli.py", "docs/start.md": "start_page", "docs/start.ja.md": "same_blocks",
            "docs/destinations.md": "destinations_outputs", "docs/moving.md": "moving_outputs", "docs/groups.md": "groups_outputs",
            "docs/runbook.md": "groups_outputs", "docs/runbook.ja.md": "groups_outputs", "docs/man/hikyaku-config.1.scd": "manual_outputs",
            "docs/man/hikyaku-policy.1.scd": "manual_outputs"}
NOT_COMPARED = {
    ("README.md", "hikyaku demo"): "differs with each run: cli.py runs it",
    ("README.ja.md", "hikyaku demo"): "differs with each run: cli.py runs it",
    ("docs/destinations.md", "hikyaku messages explain order-17"): "needs two relays that lack different things: explain.py makes that situation",
    ("docs/groups.md", "hikyaku dead groups --limit 1"): "needs a million dead letters",
    ("docs/start.md", "hikyaku messages explain $id"): "how far the retries have come: explain.py",
    ("docs/start.md", "hikyaku messages attempts $id"): "how many attempts were made by then",
    ("docs/kafka.md", "hikyaku doctor"): "needs a broker: kafka.py reads that line",
    ("docs/kafka.md", "hikyaku destinations test orders"): "needs a broker: kafka.py",
    ("docs/rabbitmq.md", "hikyaku destinations test orders"): "needs a broker: brokers.py",
}


def all_are_compared():
    pages_ = [*PAGES, *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/man/*.scd"))]
    shown = {(page, command) for page in pages_ for command, _ in shown_outputs(page)}
    assert len(shown) > 30, shown
    free = {(page, command) for page, command in shown if page not in COMPARED or (page, command) in NOT_COMPARED}
    assert free == set(NOT_COMPARED), ("neither compared nor excepted", free - set(NOT_COMPARED), "of no use", set(NOT_COMPARED) - free)


# Commands that no page can have run here: why.
NOT_RUN = {
    "demo": "its output differs with each run: cli.py runs it",
    "run": "runs until somebody stops it: start_page runs it",
    "events": "listens until somebody stops it",
    "top": "a live view",
    "login": "asks for a token",
    "logout": "forgets one",
}


def shown_commands(page):
    """The words of each `hikyaku …` in blocks of a page, without pipes, redirections and comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = [block for language, block in re.findall(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", text, re.S | re.M)
             if language in ("", "sh", "console")] + re.findall(r"(?:^    \S.*\n)+", text, re.M)
    for block in shown:
        lines = block.replace("\\\n", " ").split("\n")
        for at, line in enumerate(lines):
            found = re.match(r"\s*(?:\$ )?(?:\w+=\S+ )*(?:build/)?hikyaku (.*)", line)
            if not found:
                continue
            command = found[1]
            while command.count("'") % 2 and at + 1 < len(lines):  # a quoted text of several lines
                at += 1
                command += "\n" + lines[at]
            lexer = shlex.shlex(re.sub(r" [12]?>>? *[\w.]+", "", command), posix=True, punctuation_chars=True)
            lexer.whitespace_split, words = True, []
            for word in lexer:
                if re.fullmatch(r"[|&;<>()]+", word):
                    break
                words.append(word)
            yield words


def accepts():
    """Every command of every page is one that the program takes. On an empty store it may find nothing, but it never ends with 2 (usage),
    and never names an option that its help does not."""
    tried, wrong = set(), []
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "hikyaku.yaml").write_text(
            'destinations: { billing: { "null": {} }, orders: { "null": {} } }\nqueues: {}\n'
            "channels: { ops: { exec: { command: ['true'] } } }\n"
            "alerts: { rules: [{ name: backlog, when: dead_letters_above }] }\nadmin: { listen: none }\n", encoding="utf-8")
        (here / "crm.yaml").write_text("http: { url: 'https://crm.example/' }\n", encoding="utf-8")
        (here / "bad.yaml").write_text("nothing: 1\n", encoding="utf-8")
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": folder, "HIKYAKU_ACTOR": "docs"}

        def run(words):
            return subprocess.run([BINARY, *words], cwd=folder, env=env, text=True, encoding="utf-8", errors="replace", check=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        assert run(["init"]).returncode == 0
        with contextlib.closing(sqlite3.connect(here / "hikyaku.db")) as db:  # docs/moving.md: an outbox of Debezium's
            db.execute("CREATE TABLE outboxevent (id TEXT PRIMARY KEY, aggregatetype TEXT, aggregateid TEXT, type TEXT, payload TEXT)")
        for page in sorted(name for name in PAGES if not name.endswith(".ja.md")):
            for words in shown_commands(page):
                if tuple(words) in tried or words[0] in NOT_RUN or any(w.startswith("$") or w.startswith("[") for w in words):
                    continue
                tried.add(tuple(words))
                done = run([*words, "--yes"] if words[1:2] and words[1] in ("discard", "requeue") and "--yes" not in words else words)
                if done.returncode == 2 or done.returncode < 0:
                    wrong.append(f"{page}: hikyaku {shlex.join(words)}: {done.returncode}: {done.stdout.strip()[-300:]}")
    assert not wrong, "\n".join(wrong)
    assert len(tried) > 50, f"only {len(tried)} commands"


def names_of_commands():
    """What pages call by name in a sentence, such as `hikyaku dead list --text`, is there: the command and its options."""
    general, wrong, options, n = say("help"), [], {}, 0
    shared = set(re.findall(r"--[a-z][a-z-]*", general))
    known = {tuple((a + b).split()) for a, b in re.findall(r"^  ([a-z]+)( [a-z]+)?[ \[]", general, re.M)}
    for page in PAGES:
        text = re.sub(r"^ *```.*?^ *```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S | re.M)
        for phrase in re.findall(r"`hikyaku ([a-z][^`]*)`", text):
            words = re.split(r"[\s/|]+", phrase.strip())
            command = next((c for c in (tuple(words[:2]), tuple(words[:1])) if c in known), None)
            if not command:
                wrong += [f"{page}: there is no command `hikyaku {phrase}`"] if not any(c[:1] == (words[0],) for c in known) else []
                continue
            n += 1
            used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", phrase)) - shared
            if used and command not in options:
                options[command] = set(re.findall(r"--[a-z][a-z-]*", say("help", *command)))
            wrong += [f"{page}: hikyaku {' '.join(command)} has no {o}" for o in sorted(used - options.get(command, set()))]
    assert not wrong, "\n".join(wrong)
    assert n > 50, f"only {n} names"


def say(*words):
    return subprocess.run([BINARY, *words], text=True, encoding="utf-8", check=True, stdout=subprocess.PIPE).stdout


def manual():
    """Every command and option of `hikyaku help` stands in the manual, and the manual names no others."""
    def page_of(name):
        path = ROOT / f"docs/man/{name}.1.scd"
        return path.read_text(encoding="utf-8") if path.exists() else None

    def options_in(text):
        return set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", text))

    general, everywhere = say("help").split("options of every command:")
    whole, shared, wrong, used = page_of("hikyaku"), options_in(everywhere), [], {}
    commands = [(name + sub).split() for name, sub in re.findall(r"^  ([a-z]+)( [a-z]+)?[ \[]", general, re.M)]
    assert len(commands) > 15 and "config" in shared, commands
    for words in commands:
        words = [w for w in words if w != "bash"]
        own = options_in(say("help", *words).split("options of every command:")[0])
        page = page_of("hikyaku-" + words[0])
        used.setdefault(words[0] if page else "", shared | {"json"}).update(own)
        if not re.search(rf"^\*{' '.join(words)}\*|, \*{' '.join(words)}\*", whole, re.M):
            wrong.append(f"hikyaku(1) lacks the command {' '.join(words)}")
        wrong += [f"{' '.join(words)}: its page lacks --{o}" for o in sorted(own - options_in(page or whole))]
    for name, own in used.items():
        page = page_of(f"hikyaku-{name}" if name else "hikyaku")
        others = set().union(*used.values()) if not name else own
        wrong += [f"hikyaku{'-' + name if name else ''}(1): there is no --{o}" for o in sorted(options_in(page) - others)]
        wrong += [f"hikyaku(1) lacks --{o}" for o in sorted(shared - options_in(whole))]
    assert not wrong, "\n".join(wrong)


def reasons():
    """The reference is what the program prints of its own table."""
    page = (ROOT / "docs/reasons.md").read_text(encoding="utf-8")
    assert page == say("dead", "reasons", "--markdown")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", page, re.M)
    assert [(r["reason_code"], r["rule"], r["fault"]) for r in json.loads(say("dead", "reasons", "--json"))["items"]] == rows
    table = say("dead", "reasons").splitlines()[1:]
    assert [line.split(maxsplit=1)[0] for line in table] == [code for code, _, _ in rows], table


TESTS = [
    ("README.md: its C compiles", lambda: compiles("README.md", 1)),
    ("README.ja.md: its C compiles", lambda: compiles("README.ja.md", 1)),
    ("docs/library.md: its C compiles", lambda: compiles("docs/library.md", 5, PRELUDE)),
    ("README.md: the program prints what it shows", lambda: runs("README.md", 2)),
    ("README.ja.md: the program prints what it shows", lambda: runs("README.ja.md", 2)),
    ("docs/receivers.md: its programs verify signatures", verifiers),
    ("docs/start.md: its commands work on SQLite", lambda: start_page("sqlite")),
    ("docs/start.md: its commands work on PostgreSQL", lambda: start_page("postgres")),
    ("docs/start.ja.md: as docs/start.md", lambda: same_blocks("docs/start.md", "docs/start.ja.md")),
    ("docs/man: the program prints what its examples show", manual_outputs),
    ("docs/destinations.md: the program prints what it shows", destinations_outputs),
    ("docs/groups.md, docs/runbook.md: the program prints what they show", groups_outputs),
    ("docs/moving.md: the program prints what it shows, on PostgreSQL", moving_outputs),
    ("every page: outputs are compared, or excepted with a reason", all_are_compared),
    ("every page: links lead to files and headings", links),
    ("every page: the program takes the commands that it shows", accepts),
    ("every page: the commands and options that it names exist", names_of_commands),
    ("docs/man: every command and option, and no others", manual),
    ("docs/reasons.md: as the program prints it", reasons),
    ("README.md: the figures are the simulation's", lambda: simulated_figures("README.md")),
    ("README.ja.md: the figures are the simulation's", lambda: simulated_figures("README.ja.md")),
]


def main():
    print(f"1..{len(TESTS)}")
    failed = 0
    for number, (name, function) in enumerate(TESTS, 1):
        why_not = "PostgreSQL" in name and (postgres.why_not() or (None if shutil.which("psql") else "psql is not installed"))
        if why_not:
            print(f"ok {number} - {name} # SKIP {why_not}", flush=True)
            continue
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            for line in traceback.format_exc().splitlines():
                print("# " + line)
    return 1 if failed else 0


sys.exit(main())
