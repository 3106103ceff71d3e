#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard's words: whatever the doctor finds and `messages explain` says has a sentence in each language, with values that are really
there. Speaks TAP.

Usage: words.py [PATH-TO-HIKYAKU] (default: $HIKYAKU)"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import BINARY, clean_environment, run_tests  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LANGUAGES = ("en", "ja")
DOCTOR = ("src/desk/doctor.c", "src/store/pg/admin_inspect.c", "src/store/sqlite/admin_inspect.c")
EXPLAIN = ("src/desk/explain.c",)
CHOSEN = {"code": "connections_few", "lease_code": "(?:lease_held_|lease_over_)"}  # a variable or a function: its codes begin like this
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def words(name):
    text = (ROOT / "web/words" / f"{name}.js").read_text(encoding="utf-8")
    found = re.findall(r"^  '([^']+)': '((?:[^'\\]|\\.)*)',$", text, re.M)
    assert len(found) == len(re.findall(r"^  '", text, re.M)), f"{name}.js has a line that this test does not understand"
    assert len(found) == len(dict(found)), f"{name}.js has a key twice"
    return dict(found)


def holes(sentence):
    return set(re.findall(r"\{(\w+)\}", sentence))


def argument_before(text, end):
    """The C argument that ends with the comma before `end`."""
    at = depth = 0
    for at in range(end - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth < 0 or (depth == 0 and text[at] == "," and text[at + 1:end].strip(" \n,")):
            break
    return text[at + 1:end].strip(" \n,")


def values_after(text, start):
    """The names of HK_NAMED(…) at `start`."""
    depth, at = 0, start
    while True:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0 and text[at - 1] == ")":
            return set(re.findall(r'hk_named_\w+\(\s*"(\w+)"', text[start:at]))


def codes_of(paths):
    """{code: names of its values}, as the sources have them."""
    found = {}
    for path in paths:
        text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.S)
        for match in re.finditer(r"HK_NAMED(_NONE\b|\()", text):
            argument = argument_before(text, match.start())
            codes = re.findall(r'"(\w+)"', argument)
            if not codes:
                prefix = CHOSEN[re.match(r"\w+", argument)[0]]
                codes = re.findall(rf'"({prefix}\w*)"', text)
            names = values_after(text, match.start()) if match[1] == "(" else set()
            assert codes, (path, argument)
            for code in codes:
                found[code] = found[code] & names if code in found else names
    return found


def compare(prefix, codes):
    for language in LANGUAGES:
        have = {key[len(prefix):]: text for key, text in words(f"findings_{language}").items() if key.startswith(prefix)}
        assert {re.sub("_one$", "", key) for key in have} == set(codes), \
            (language, prefix, "without words", sorted(set(codes) - set(have)), "of no use", sorted(set(have) - set(codes)))
        for key, text in have.items():
            unknown = holes(text) - codes[re.sub("_one$", "", key)]
            assert not unknown, f"{language}: {prefix}{key} shows {unknown}, which the API does not send"


@test
def every_finding_of_the_doctor_has_words():
    codes = codes_of(DOCTOR)
    assert len(codes) > 80, sorted(codes)  # or this test reads the sources no more
    compare("doctor.", codes)


@test
def every_reason_of_explain_has_words():
    codes = codes_of(EXPLAIN)
    assert len(codes) > 25, sorted(codes)
    compare("because.", codes)
    compare("do.", codes)
    causes = set(re.findall(r'add\(\s*f,\s*"(\w+)"', (ROOT / EXPLAIN[0]).read_text(encoding="utf-8")))
    for language in LANGUAGES:
        missing = {f"why.{cause}" for cause in causes} - set(words(language))
        assert not missing, (language, sorted(missing))


@test
def every_check_of_the_doctor_has_a_name():
    text = "".join((ROOT / path).read_text(encoding="utf-8") for path in DOCTOR)
    checks = set(re.findall(r'(?:finding|note)\(\s*[^";]*?,\s*"([^"]+)",', text)) - {"writes_none"} | {"stuck rows", "WAL", "writing", "disk", "size"}
    assert len(checks) > 25, checks
    for language in LANGUAGES:
        missing = {"check." + re.sub(r"\W", "_", check.lower()) for check in checks} - set(words(f"findings_{language}"))
        assert not missing, (language, sorted(missing))


@test
def what_the_doctor_sends_fits_the_words():
    """A real diagnosis: of a database without a relay, and with a destination that nobody configured."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "hikyaku.yaml")
        config.write_text("destinations:\n  shop: {http: {url: 'http://127.0.0.1:9/'}}\n  nil: {'null': {}}\n", encoding="utf-8")
        env = clean_environment()
        url = f"sqlite:{folder}/app.db"
        done = subprocess.run([BINARY, "--db", url, "init"], cwd=folder, capture_output=True, text=True, timeout=60, check=False, env=env)
        assert done.returncode == 0, done.stderr
        done = subprocess.run([BINARY, "--config", str(config), "--db", url, "doctor", "--json"], cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=env)
        items = json.loads(done.stdout)["items"]
        assert {"relay_none", "database_ok", "backlog_none", "dead_none", "size_ok"} <= {i["code"] for i in items}, items
        for language in LANGUAGES:
            have = words(f"findings_{language}")
            for item in items:
                assert holes(have[f"doctor.{item['code']}"]) <= set(item["values"]), item


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
