#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dead letters as a stranger would use them: filters, ids, payloads, terminals and editors that nobody has thought of, and two
people at once. Nothing crashes, hangs, writes control characters to a terminal, or changes a letter by chance. Speaks TAP.

Usage: dead_hostile.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold
one."""
import base64
import glob
import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True  # the source folder stays as it is
from dead import FAILURE, OK, TEMPORARY, USAGE, WHY, Office
from support import BINARY, POSTGRES, clean_environment, run_tests, until

TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Stranger(Office):
    def ask(self, *args, env=None, stdout=subprocess.PIPE):
        """(exit code, output, errors); no crash, no control characters for a terminal to obey."""
        command = [os.fsencode(a) for a in (BINARY, "--config", str(self.config_path), *args)]
        done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=60,
                              check=False, env={**clean_environment(), "LC_ALL": "C.UTF-8", "HIKYAKU_ACTOR": "ann", **(env or {})})
        assert done.returncode in (OK, FAILURE, USAGE, TEMPORARY), (args, done)
        assert b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr, (args, done.stderr)
        out = done.stdout or b""
        assert not [c for c in out + done.stderr if c < 32 and c not in (9, 10)], (args, out, done.stderr)
        return done.returncode, out, done.stderr

    def letters_as_they_are(self):
        return self.sql("SELECT id, status, payload, payload_version, requeues FROM dead_letters ORDER BY id")


ODD = ['{"a":1.5e+10,"b":"x"}', "", "   ", "null", '"str"', "[1,[2,[3]]]", '{"a":' * 300 + "1" + "}" * 300, "[" * 5000, "\ufeff{}",
       '{"a":"\\ud800"}', '{"a":"\x1b[31mred\x07"}', '{"secret":"s3cr3t","x":"\u202eRTL"}', '{"a":1e99999,"a":-0}', "x" * 100000,
       '{"a":"' + "\\\\" * 2000 + '"}', '{"a":12345678901234567890123}']


def fill(w):
    """Letters of all kinds; no relay runs any more then."""
    daemon = w.daemon().ready()
    w.receiver.on("shop", 422)
    for i, payload in enumerate(ODD):
        w.insert(message_id=f"m{i}", payload=payload, event_type=f"T\u202e{i}" if i % 3 else "Plain")
    w.insert(message_id="b64", payload=base64.b64encode(b'{"a":42}').decode(), encoding="base64")
    w.insert(message_id="bad64", payload="***", encoding="base64")
    for name in ("123", "-1", "id:x", "\x1b]0;pwn\x07"):
        w.insert(message_id=name, message_key="\x1b[2J")
    n = len(ODD) + 6
    if not POSTGRES:  # whose columns take anything
        w.insert(message_id="blob", payload=b"\xff\x00\xfe")
        w.insert(message_id="nul", payload="a\0b")
        w.insert(message_id="num", payload=42)
        n += 3
    until(lambda: len(w.letters()) == n, lambda: f"{w.statuses()}, not {n}")
    daemon.stop()
    return n


FINE = ["::", "payload", "destination:'; DROP TABLE dead_letters; --", "text:%_%", "text:\\", "newer:0s", "since:9999-12-31T23:59:59Z",
        "before:1969-01-01", "status:any,any,failed", "type:" + "*" * 500, "type:[a-z]?%_\\", "key:\x01\x02", "text:\u202ex",
        "id:" + "x" * 4000, " ".join(["payload.a:1"] * 64), 'payload.a:"\\"\\\\"', "text:\U0001f600", 'payload."":x', "payload.a:NaN",
        "payload.a:+++", "payload.a:.*", "payload.a:1.5e+10", "payload.a:[0]", "text:(", "text:[", "payload.a:e", "text:$", "text:^"]
WRONG = ["payload.", "payload.:x", "payload[", "payload[*", "payload[*]:", "payload[99999999999999999999]:1", "payload[-1]:x",
         'payload."a\\":x', "destination:", 'text:"\\', 'text:"', "older:-1s", "older:99999999999999999d", "since:0000-00-00", "redrive:0",
         "redrive:9223372036854775808", "group:ZZZ", "status:", "status:,", "text:" + "\u00e9" * 3000, " ".join(["text:a"] * 65),
         "payload" + ".a" * 2000 + ":1", "reason:lower", "class:nope", "a:b", "text:\udcff\udcfe", "payload.\udcff:1"]


@test
def filters_that_nobody_has_thought_of_find_something_or_say_what_is_wrong():
    with Stranger(masks=[{"paths": ["secret"]}]) as w:
        fill(w)
        before = w.letters_as_they_are()
        for filter in FINE + WRONG:
            for command in (("dead", "list"), ("dead", "groups"), ("redrive", "plan"), ("dead", "requeue", "--dry-run")):
                code, _, err = w.ask(*command, "--filter", filter)
                assert code == (OK if filter in FINE else USAGE), (command, filter, code, err)
                assert code == OK or b"--filter: " in err, (command, filter, err)
        for empty in ("", " ", "\t"):
            for command in (("dead", "requeue"), ("dead", "discard"), ("redrive", "start")):
                code, _, err = w.ask(*command, "--filter", empty, "--yes", *WHY)
                assert code == USAGE, (command, empty, code, err)
        assert w.letters_as_they_are() == before
        assert len(w.json("dead", "list", "--filter", "payload.a:42")["items"]) == 1, "the one in base64"
        assert len(w.json("dead", "list", "--filter", "payload.a:1.5e+10")["items"]) == 1


@test
def ids_that_are_none_are_found_nowhere():
    with Stranger() as w:
        fill(w)
        before = w.letters_as_they_are()
        for name in ("0", "+1", " 1", "1 ", "9" * 22, "9223372036854775807", "9223372036854775808", "id:", "", "''", "%", "../../etc",
                     "x" * 100000, "\udcff\udcfe", "\x1b[31m", "M0", "1e3", "0x1", "\uff11", "m_"):
            for command in (("show",), ("show", "--curl"), ("show", "--json"), ("requeue", *WHY), ("discard", *WHY), ("send", *WHY),
                            ("edit", "--payload", "{}", *WHY)):
                code, out, err = w.ask("dead", *command, "--", name)
                assert code == FAILURE and b"there is no" in out + err, (command, name, code, out, err)
        for name in ("m0", "id:123", "id:id:x", "-1", "id:\x1b]0;pwn\x07"):
            assert w.ask("dead", "show", "--", name)[0] == OK, name
        assert w.letters_as_they_are() == before


@test
def whatever_a_letter_holds_is_shown_without_harm():
    with Stranger(masks=[{"paths": ["secret"]}]) as w:
        n = fill(w)
        for (i,) in w.sql("SELECT id FROM dead_letters"):
            for command in (("show",), ("show", "--json"), ("show", "--curl"), ("send", "--dry-run"),
                            ("edit", "--payload", '{"a":1}', "--dry-run"), ("show", "--payload-version", "1")):
                _, out, _ = w.ask("dead", command[0], str(i), *command[1:])
                assert "--json" not in command or json.loads(out)
                assert b"s3cr3t" not in out, (command, out)
            for version in ("9", "-1", "0", "x"):
                assert w.ask("dead", "show", str(i), "--payload-version", version)[0] != OK
        _, out, _ = w.ask("dead", "export")
        assert len([json.loads(line) for line in out.splitlines()]) == n
        for env in ({"TERM": ""}, {"COLUMNS": "1"}, {"COLUMNS": "-5"}, {"COLUMNS": "999999999999"}, {"LC_ALL": "C"}, {"LC_ALL": "ja_JP.SJIS"},
                    {"TZ": "Bogus/Zone"}, {"HIKYAKU_ACTOR": "\x1b[31m"}, {"HOME": ""}, {"PATH": ""}):
            for command in (("list",), ("stats",), ("groups",), ("note", "m0", "\x1b[31mred")):
                assert w.ask("dead", *command, env=env)[0] == OK, (command, env)
        with open("/dev/full", "wb") as full:
            for command in (("dead", "list"), ("dead", "export"), ("dead", "stats"), ("audit", "list")):
                code, _, err = w.ask(*command, stdout=full)
                assert code == FAILURE and b"No space left" in err, (command, code, err)
        read, write = os.pipe()
        os.close(read)  # `dead export | head`
        with os.fdopen(write, "wb") as gone:
            assert w.ask("dead", "export", stdout=gone)[2] == b""


EDITORS = {"killed": "kill -9 $$", "gone": 'rm "$1"', "a folder": 'rm "$1"; mkdir "$1"', "a pipe": 'rm "$1"; mkfifo "$1"',
           "no end": 'rm "$1"; ln -s /dev/zero "$1"', "failed": 'echo "{}" > "$1"; exit 3', "empty": ': > "$1"',
           "too large": 'head -c 70000000 /dev/zero > "$1"', "bytes": 'printf "\\377\\000" > "$1"', "not JSON": 'echo nope > "$1"',
           "half": 'printf "{\\"a\\":" > "$1"'}


@test
def an_editor_that_goes_wrong_changes_nothing():
    with Stranger() as w:
        daemon = w.daemon().ready()
        w.dies("json", payload='{"a":1}')
        w.dies("text", payload="plain words")
        daemon.stop()
        before = w.letters_as_they_are()
        folder = w.path("tmp")
        folder.mkdir()
        script = w.path("editor.sh")
        for what, does in EDITORS.items():
            script.write_text("#!/bin/sh\n" + does + "\n")
            script.chmod(0o755)
            for name in ("json",) if what in ("not JSON", "half", "bytes") else ("json", "text"):
                code, _, err = w.ask("dead", "edit", name, *WHY, env={"EDITOR": str(script), "TMPDIR": str(folder)})
                assert code == FAILURE and err, (what, name, code, err)
        for env in ({"EDITOR": "/nonexistent"}, {"EDITOR": "", "VISUAL": ""}, {"EDITOR": "true", "TMPDIR": "/nonexistent"},
                    {"EDITOR": "true", "TMPDIR": "/proc"}, {"EDITOR": "x" * 5000}):
            assert w.ask("dead", "edit", "json", *WHY, env={"TMPDIR": str(folder), **env})[0] in (FAILURE, USAGE), env
        for payload in ("@/nonexistent", "@/etc", "@/dev/zero", "@", "", "\udcff"):
            assert w.ask("dead", "edit", "json", "--payload", payload, *WHY)[0] in (FAILURE, USAGE), payload
        assert w.letters_as_they_are() == before and "edit" not in w.acts()
        assert w.ask("dead", "edit", "json", *WHY, env={"EDITOR": "true", "TMPDIR": str(folder)})[0] == OK
        # who is killed while somebody edits leaves a file that nobody else may read
        script.write_text('#!/bin/sh\nkill -9 $PPID\n')
        for left in folder.iterdir():
            (left.rmdir if left.is_dir() else left.unlink)()
        code = subprocess.run([BINARY, "--config", str(w.config_path), "dead", "edit", "json", *WHY], check=False, stdin=subprocess.DEVNULL,
                              env={**clean_environment(), "EDITOR": str(script), "TMPDIR": str(folder)}).returncode
        left = [os.stat(path).st_mode & 0o777 for path in glob.glob(str(folder / "*"))]
        assert code == -signal.SIGKILL and left in ([], [0o600]), (code, left)
        assert w.letters_as_they_are() == before


@test
def of_two_people_at_once_one_wins_and_the_other_is_told():
    with Stranger() as w:
        daemon = w.daemon().ready()
        w.dies(*(f"m{i}" for i in range(6)), payload='{"a":1}')
        daemon.stop()
        w.receiver.on("shop", 200)

        def both(first, second):
            """The two commands at the same moment: (exit code, what was said) of each."""
            results = [None, None]

            def go(k, args):
                results[k] = w.ask(*args, env={"HIKYAKU_ACTOR": f"p{k}"})
            threads = [threading.Thread(target=go, args=(k, args)) for k, args in enumerate((first, second))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return results

        one, two = both(("dead", "edit", "m0", "--payload", '{"a":2}', *WHY), ("dead", "edit", "m0", "--payload", '{"a":3}', *WHY))
        won = [r[0] for r in (one, two)].count(OK)
        assert w.letter("m0", "payload_version") == (1 + won,) and won >= 1, (one, two)
        one, two = both(("dead", "requeue", "m1", *WHY), ("dead", "discard", "m1", *WHY))
        assert [one[0], two[0]].count(OK) == 1, (one, two)
        both(("dead", "requeue", "m2", *WHY), ("dead", "requeue", "m2", *WHY))
        assert w.sql("SELECT count(*) FROM outbox_retry WHERE message_id = 'm2'") == [(1,)]
        one, two = both(("dead", "send", "m3", *WHY), ("dead", "send", "m3", *WHY))
        assert [one[0], two[0]].count(OK) == 1 and len(w.receiver.arrived("m3")) == 2, (one, two)
        start = ("redrive", "start", "--filter", "destination:shop newer:3h", "--yes", *WHY)
        one, two = both(start, start)
        codes = sorted([one[0], two[0]])
        assert codes == [OK, TEMPORARY] or w.sql("SELECT count(*) FROM outbox_redrive") == [(2,)], (one, two)
        same = ("redrive", "start", "--filter", "destination:shop before:2100-01-01", "--yes", *WHY)
        one, two = both(same, same)
        assert sorted([one[0], two[0]]) == [OK, TEMPORARY], (one, two)
        w.chain_is_whole()


def on_a_terminal(w, *args, until_seen=None, key=None):
    """What a person sees, and the exit code; a key is pressed when something is seen."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(w.folder)
        os.execve(BINARY, [BINARY, "--config", str(w.config_path), *args], {**clean_environment(), "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    seen = b""
    while select.select([fd], [], [], 60)[0]:
        try:
            some = os.read(fd, 65536)
        except OSError:  # Linux's way to say that nobody has it open any more
            break
        if not some:
            break
        seen += some
        if key and until_seen in seen:
            os.write(fd, key)
            key = None
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return seen, os.waitstatus_to_exitcode(status)


@test
def a_long_search_says_how_far_it_is_and_ends_when_it_is_told_to():
    with Stranger() as w:
        slow = '{"b":"\\u0041' + "x" * 9000 + '"}'  # may hold anything, until it is read
        numbers = "generate_series(1, 20000) AS i" if POSTGRES else \
            "(WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n)"
        w.sql("INSERT INTO dead_letters (message_id, event_type, destination, reason_code, error_message, attempts, first_failed_at, "
              "last_failed_at, created_at, status, payload) SELECT 'm' || i, 'T', 'shop', 'HTTP_422', 'no', 1, "
              "'2026-11-15T00:00:00.000Z', '2026-11-15T00:00:00.000Z', '2026-11-15T00:00:00.000Z', 'failed', "
              f"CASE WHEN i = 1 THEN '{{\"a\":7}}' ELSE '{slow}' END FROM {numbers}")
        seen, code = on_a_terminal(w, "dead", "list", "--filter", "payload.a:7", "--scan", "20000")
        assert code == OK and b"m1" not in seen and b"HTTP_422" in seen, seen
        assert b"looking" in seen and seen.rindex(b"looking") < seen.index(b"HTTP_422"), seen[:500]
        _, code = on_a_terminal(w, "dead", "list", "--filter", "payload.a:8", "--scan", "20000", until_seen=b"looking", key=b"\x03")
        assert code == -signal.SIGINT, code


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
