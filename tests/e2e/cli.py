#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: output, errors, exit codes. Speaks TAP.

Usage: cli.py [PATH-TO-HIKYAKU] (default: $HIKYAKU)"""
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import traceback
import xml.etree.ElementTree

BINARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.environ["HIKYAKU"])
PRESETS = "standard sync-pipeline azure-exponential azure-linear cloud-tasks standard-webhooks".split()
OK, FAILURE, USAGE, CONFIG = 0, 1, 2, 78
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Result:
    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr


def hikyaku(*args, cwd=None, stdin="", **env):
    """Runs the program in an empty folder with next to no environment."""
    base = {"PATH": os.environ["PATH"], "LC_ALL": "C", "ASAN_OPTIONS": "detect_leaks=1"}
    with tempfile.TemporaryDirectory() as empty:
        return Result(subprocess.run([BINARY, *args], cwd=cwd or empty, input=stdin, text=True, encoding="utf-8",
                                     capture_output=True, env={**base, **env}, timeout=120, check=False))


def ok(*args, **more):
    result = hikyaku(*args, **more)
    assert result.code == OK, (args, result.code, result.err)
    assert result.err == "", (args, result.err)
    return result.out


def refused(code, *args, says=(), **more):
    """Exits with `code`, prints nothing to stdout and one line to stderr that holds all of `says`."""
    result = hikyaku(*args, **more)
    assert result.code == code, (args, result.code, result.err)
    assert result.out == "", (args, result.out)
    last = result.err.splitlines()[-1]
    assert last.startswith("hikyaku: "), result.err
    for text in says:
        assert text in result.err, (text, result.err)
    return result.err


def asks_json(*args, **more):
    return json.loads(ok(*args, "--json", **more))


# ---- help and suggestions ----

@test
def version_is_the_same_in_every_form():
    text = ok("version")
    assert re.fullmatch(r"hikyaku \d+\.\d+\.\d+\S*\n", text), text
    assert ok("--version") == text
    assert asks_json("version") == {"version": text.split()[1]}
    assert json.loads(ok("--json", "--version")) == {"version": text.split()[1]}


def listed_commands():
    """The words of each command that help names, in its order."""
    rows = re.findall(r"^  ([a-z]+)( [a-z]+)?[ \[]", ok("help").split("options of every command")[0], re.M)
    return [(name + sub).split() for name, sub in rows]


@test
def help_lists_finished_commands_only_and_each_has_its_own_page():
    page = ok("help")
    assert page == ok("--help") == ok("-h")
    commands = listed_commands()
    assert ["policy", "plan"] in commands and ["config", "check"] in commands and ["version"] in commands
    for words in commands:
        known = [w for w in words if w not in ("bash",)]
        one = ok("help", *known)
        assert one.startswith("usage: hikyaku " + " ".join(known)), one
        assert ok(*known, "--help") == one
        assert "--config FILE" in one
    refused(USAGE, "unknown-word", says=["'unknown-word'"])
    group = ok("help", "policy")
    assert "policy simulate" in group and "config" not in group


@test
def what_is_misspelt_gets_a_suggestion():
    refused(USAGE, "polcy", "list", says=["'polcy'", "did you mean 'policy'?"])
    refused(USAGE, "policy", "plna", "x", says=["did you mean 'policy plan'?"])
    refused(USAGE, "policy", "plan", "standard", "--sede", "1", says=["did you mean '--seed'?"])
    refused(USAGE, "zzzzzzzz", says=["hikyaku help"])
    refused(USAGE, "help", "polic", says=["did you mean 'policy'?"])
    refused(FAILURE, "policy", "show", "standrad", says=["'standrad'", "did you mean 'standard'"])
    refused(FAILURE, "policy", "plan", "webhooks", says=["'standard-webhooks'"])
    refused(FAILURE, "policy", "show", "qqq", says=PRESETS)


@test
def unfinished_and_overfull_commands_are_usage_errors():
    refused(USAGE, says=["hikyaku help"])
    refused(USAGE, "policy", says=["list", "show", "plan", "simulate"])
    refused(USAGE, "policy", "plan", says=["NAME"])
    refused(USAGE, "policy", "list", "extra", says=["'extra'"])
    refused(USAGE, "completion", says=["bash|zsh|fish"])
    refused(USAGE, "completion", "tcsh", says=["'tcsh'", "bash, zsh and fish"])
    refused(USAGE, *["word"] * 20)
    refused(USAGE, *["--json"] * 40)
    refused(USAGE, "-x", says=["'-x'"])
    refused(USAGE, "--", "--version", says=["'--version'"])


@test
def options_stand_before_or_behind_the_words():
    expected = ok("policy", "plan", "standard", "--seed", "5", "--json")
    assert ok("--json", "--seed=5", "policy", "plan", "standard") == expected
    assert ok("policy", "--seed", "5", "plan", "--json", "standard") == expected
    assert ok("policy", "plan", "--json", "--seed=9", "--seed=5", "--", "standard") == expected


@test
def every_bad_value_names_its_option_and_what_is_allowed():
    for option, allowed, values in [
        ("--attempts", ["1", "1000"], ["0", "1001", "-1", "x", "", "1.5", " 1", "99999999999999999999"]),
        ("--seed", ["0", "18446744073709551615"], ["-1", "x", "18446744073709551616", "0x1"]),
        ("--class", ["transient", "rate_limit", "auth", "permanent", "unknown"], ["success", "x", ""]),
    ]:
        for value in values:
            refused(USAGE, "policy", "plan", "standard", option, value, says=[option, f"'{value}'", *allowed])
    for option, allowed, values in [
        ("--clients", ["1", "1000000"], ["0", "1000001", "many"]),
        ("--outage", ["60s", "1d"], ["60", "25h", "-1s", ""]),
        ("--spread", ["1d"], ["1", "2d"]),
        ("--capacity", ["100/s"], ["100", "0/s", "x/s", "-1/s"]),
    ]:
        for value in values:
            refused(USAGE, "policy", "simulate", "standard", option, value, says=[option, f"'{value}'", *allowed])
    refused(USAGE, "policy", "plan", "standard", "--seed", says=["--seed", "needs a value"])
    refused(USAGE, "policy", "list", "--json=yes", says=["--json", "no value"])
    refused(USAGE, "policy", "list", "--seed", "1", says=["'policy list'", "--seed"])


@test
def errors_cannot_move_the_readers_cursor():
    err = refused(USAGE, "a\x1b[2Jb\nc\x9b\x7f")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", err) and err.count("\n") == 1, repr(err)


# ---- policies ----

@test
def list_shows_presets_with_the_default_marked():
    rows = ok("policy", "list").splitlines()
    assert rows[0].split() == ["NAME", "FROM", "ATTEMPTS", "ELAPSED", "JITTER", "BACKOFF"]
    assert [r.split()[0] for r in rows[1:]] == PRESETS
    assert [r for r in rows if " * " in r] == [rows[1]]
    listed = asks_json("policy", "list")
    assert listed["next"] is None
    assert [i["name"] for i in listed["items"]] == PRESETS
    assert [i["name"] for i in listed["items"] if i["default"]] == ["standard"]
    assert all(i["origin"] == "preset" for i in listed["items"])
    assert listed["items"][0]["max_attempts"] == 30 and listed["items"][0]["max_elapsed_ms"] == 86400000
    assert listed["items"][4]["max_elapsed_ms"] is None
    assert [i["jitter"] for i in listed["items"]] == ["full", "none", "own", "own", "none", "ratio"]
    assert not any(i["custom"] for i in listed["items"])


ODD_POLICY = r"""
default_policy: odd
policies:
  odd:
    preset: cloud-tasks
    backoff: { kind: exponential, base: 1500ms, factor: 1.75, cap: 90m, fast_first: true }
    jitter: { ratio: 0.25 }
    max_attempts: unlimited
    max_elapsed: 36h
    timeout: never
    limit_mode: any
    hints: all
    hint_cap: 2h30m
    classes:
      rate_limit: { charge: false, max_attempts: 7, backoff: { kind: list, waits: [1s, 90s, 1h] }, jitter: { add: 1500ms } }
      auth: { action: retry, pause_after: 3, max_attempts: 2 }
      unknown: { action: dead }
    classify:
      - { match: 409, class: permanent, reason: DUPLICATE }
      - { match: 5xx, header: X-Why, contains: "quota $${x} \"now\"", class: rate_limit }
      - { match: "*", body: "card\tdeclined \\ é", class: permanent, pause: true }
      - { match: timeout, class: unknown }
      - { match: HTTP_418, class: success }
    breaker: off
  slow:
    preset: azure-exponential
    backoff: { delta: 20s }
  plus:
    jitter: decorrelated
"""


@test
def show_prints_a_configuration_that_reads_back_as_the_same_policy():
    with tempfile.TemporaryDirectory() as folder:
        first, second = pathlib.Path(folder, "first.yaml"), pathlib.Path(folder, "second.yaml")
        first.write_text(ODD_POLICY, encoding="utf-8")
        for name in [*PRESETS, "odd", "slow", "plus"]:
            shown = ok("policy", "show", name, "--config", str(first))
            second.write_text(shown, encoding="utf-8")
            checked = ok("config", "check", str(second))
            assert "1 policy" in checked, checked
            assert ok("policy", "show", name, "--config", str(second)) == shown, name
            assert ok("policy", "plan", name, "--seed", "3", "--config", str(second)) == ok(
                "policy", "plan", name, "--seed", "3", "--config", str(first)), name
            assert asks_json("policy", "show", name, "--config", str(first))["yaml"] in shown
        odd = ok("policy", "show", "odd", "--config", str(first))
        for text in ["factor: 1.75", "base: 1.5s", "{ ratio: 0.25 }", "max_attempts: unlimited", "hints: all",
                     "max_elapsed: 1d12h", "timeout: never", "fast_first: true", "waits: [1s, 1m30s, 1h]",
                     "{ add: 1.5s }", "reason: DUPLICATE", "pause: true", "breaker: off", "pause_after: 3"]:
            assert text in odd, (text, odd)


@test
def show_json_holds_every_setting():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "odd.yaml")
        path.write_text(ODD_POLICY, encoding="utf-8")
        odd = asks_json("policy", "show", "odd", "--config", str(path))
        slow = asks_json("policy", "show", "slow", "--config", str(path))
    assert (odd["max_attempts"], odd["max_elapsed_ms"], odd["timeout_ms"]) == (None, 129600000, None)
    assert (odd["limit_mode"], odd["hints"], odd["hint_cap_ms"]) == ("any", "all", 9000000)
    assert odd["classes"]["transient"]["max_attempts"] is None and odd["classes"]["auth"]["pause_after"] == 3
    own = [r for r in odd["classify"] if not r["of_preset"]]
    nothing = {"header": None, "contains": None, "body": None, "reason": None, "pause": False, "of_preset": False}
    assert own == [
        {**nothing, "match": "409", "class": "permanent", "reason": "DUPLICATE"},
        {**nothing, "match": "500-599", "header": "X-Why", "contains": 'quota ${x} "now"', "class": "rate_limit"},
        {**nothing, "match": "*", "body": "card\tdeclined \\ é", "class": "permanent", "pause": True},
        {**nothing, "match": "timeout", "class": "unknown"},
        {**nothing, "match": "HTTP_418", "class": "success"},
    ], own
    assert odd["classify"][:len(own)] == own and len(odd["classify"]) > len(own)
    assert slow["jitter"] == {"kind": "own", "ratio": 0.2} and slow["classify"] == []


@test
def show_says_how_common_answers_are_classed():
    shown = ok("policy", "show", "standard")
    for line in [r"# 200 +success +- +delivered", r"# 429 +rate_limit +RATE_LIMITED +retry", r"# 503 +transient",
                 r"# 401 +auth +AUTH_FAILED +dead letter", r"# 410 .*paused", r"# timeout +transient +TIMEOUT"]:
        assert re.search(line, shown), (line, shown)
    answers = {a["answer"]: a for a in asks_json("policy", "show", "standard")["answers"]}
    assert answers["422"] == {"answer": "422", "class": "permanent", "reason": "HTTP_422", "retry": False,
                              "pause": False}
    assert answers["200"]["reason"] is None and answers["410"]["pause"] is True


@test
def plan_json_holds_exact_waits_that_depend_on_the_seed_alone():
    plan = asks_json("policy", "plan", "standard")
    assert plan["policy"] == "standard" and plan["seed"] == 1 and plan["class"] == "transient"
    rows = plan["attempts"]
    assert [r["attempt"] for r in rows] == list(range(1, 31))
    for n, row in enumerate(rows[:-1]):
        assert row["earliest_ms"] == 0 and row["latest_ms"] == min(1000 << n, 3600000), row
        assert 0 <= row["wait_ms"] <= row["latest_ms"]
        assert 0.4 * row["latest_ms"] < row["median_ms"] < 0.6 * row["latest_ms"], row
    assert rows[-1]["wait_ms"] is None
    assert plan["end"]["reason"] == "RETRY_EXHAUSTED" and plan["end"]["attempts"] == 30
    assert 8.5 < plan["end"]["median_ms"] / 3600e3 < 9.5
    assert asks_json("policy", "plan", "standard", "--seed", "1") == plan
    other = asks_json("policy", "plan", "standard", "--seed", "2")
    assert [r["wait_ms"] for r in other["attempts"]] != [r["wait_ms"] for r in rows]
    assert [r["median_ms"] for r in other["attempts"]] == [r["median_ms"] for r in rows]
    assert len(asks_json("policy", "plan", "standard", "--attempts", "4")["attempts"]) == 4


@test
def plan_follows_the_class():
    waits = [r["wait_ms"] for r in asks_json("policy", "plan", "sync-pipeline")["attempts"]]
    assert waits == [*(1000 << n for n in range(9)), None]
    limited = asks_json("policy", "plan", "sync-pipeline", "--class", "rate_limit")
    assert [r["wait_ms"] for r in limited["attempts"]] == [10000, 10000, 10000, None]
    auth = asks_json("policy", "plan", "standard", "--class", "auth")
    assert len(auth["attempts"]) == 1 and auth["end"]["reason"] == "AUTH_FAILED"
    late = asks_json("policy", "plan", "standard", "--class", "rate_limit")
    assert late["end"]["reason"] == "DEADLINE_EXCEEDED"
    all_permanent = "policies: { p: { classify: [ { match: '*', class: permanent } ] } }"
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "hikyaku.yaml").write_text(all_permanent)
        refused(FAILURE, "policy", "plan", "p", cwd=folder, says=["'p'", "transient"])


@test
def plan_for_people_ends_with_where_it_ends():
    text = ok("policy", "plan", "standard")
    assert "drawn" not in text and "drawn" in ok("policy", "plan", "standard", "--seed", "1")
    assert re.search(r"^     12 .* 34m08s ", text, re.M), text
    assert re.search(r"dead letter after 30 attempts \(RETRY_EXHAUSTED\) or 24h \(DEADLINE_EXCEEDED\), "
                     r"about 9h\d\dm on average\n$", text), text
    assert ok("policy", "plan", "standard", "--class", "permanent").endswith(
        "dead letter at the first failure (HTTP_400)\n")
    assert "... 27 more" in ok("policy", "plan", "standard", "--attempts", "3")


@test
def plan_names_the_limit_that_ends_it_however_far_away():
    ends = {
        "short: { max_attempts: 100, max_elapsed: 5s }":
            r"after 5s \(DEADLINE_EXCEEDED\) or 100 attempts \(RETRY_EXHAUSTED\), usually at attempt \d, about 3\.\ds on",
        "many: { max_attempts: 5000, max_elapsed: 5000d }":
            r"more\n\ndead letter after 5,000 attempts \(RETRY_EXHAUSTED\) or 5000d \(DEADLINE_EXCEEDED\), about 103d",
        "fast: { backoff: { kind: fixed, base: 1ms }, jitter: none, max_attempts: unlimited }":
            r"\.\.\. about 86,399,000 more\n\ndead letter after 24h \(DEADLINE_EXCEEDED\), usually at attempt ~86,400,000,",
        "both: { preset: cloud-tasks, max_attempts: 100, max_elapsed: 200h }":
            r"after 100 attempts and 8d08h \(RETRY_EXHAUSTED\), usually at attempt 2\d\d, about 8d\d\dh on average",
        "one: { max_attempts: 1 }": r"dead letter at the first failure \(HTTP_503\)",
    }
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "hikyaku.yaml")
        for policy, end in ends.items():
            path.write_text("policies: { " + policy + " }\n")
            name = policy.split(":")[0]
            text = ok("policy", "plan", name, cwd=folder)
            assert re.search(end, text), (policy, text[-300:])
            plan = asks_json("policy", "plan", name, cwd=folder)
            assert plan["end"]["reason"] and plan["end"]["estimated"] == (plan["end"]["attempts"] > 1000)
            assert len(plan["attempts"]) == min(plan["end"]["attempts"], 1000) or name in ("short", "both")


# ---- simulate ----

SMALL = ["--clients", "400", "--outage", "20s", "--seed", "4"]


@test
def simulate_compares_the_policy_with_itself_without_jitter():
    s = asks_json("policy", "simulate", "standard", *SMALL)
    assert (s["clients"], s["outage_ms"], s["spread_ms"], s["capacity_per_s"], s["seed"]) == (400, 20000, 1000, 40, 4)
    for run in (s["as_is"], s["without_jitter"]):
        assert run["delivered"] + run["dead"] + run["waiting"] == 400
        assert run["served_50_ms"] <= run["served_99_ms"] <= run["served_all_ms"]
    assert s["as_is"]["peak_after_outage_per_s"] < s["without_jitter"]["peak_after_outage_per_s"] == 400
    assert s["as_is"]["herding_factor"] < s["without_jitter"]["herding_factor"]
    assert s["conclusion"].endswith(".")
    assert s == asks_json("policy", "simulate", "standard", *SMALL)


@test
def simulate_compares_a_policy_without_jitter_with_full_jitter_and_names_dead_letters():
    s = asks_json("policy", "simulate", "sync-pipeline", *SMALL)
    assert "without_jitter" not in s
    assert s["as_is"]["peak_after_outage_per_s"] > s["with_full_jitter"]["peak_after_outage_per_s"]
    assert s["as_is"]["dead"] > 0 and "dead letters" in s["conclusion"] and "jitter: full" in s["conclusion"]
    s = asks_json("policy", "simulate", "sync-pipeline", "--clients", "40", "--capacity", "40/s", "--outage", "20s")
    assert s["as_is"]["dead"] == 0 and "jitter: full" in s["conclusion"]
    text = ok("policy", "simulate", "sync-pipeline", *SMALL)
    assert "sync-pipeline with full jitter" in text and "without jitter" not in text
    s = asks_json("policy", "simulate", "azure-linear", "--clients", "50", "--outage", "5m")
    assert s["as_is"]["dead"] == 50 and s["as_is"]["served_50_ms"] is None
    assert "50 of 50" in s["conclusion"] and "outlast" in s["conclusion"]


@test
def simulate_says_something_sensible_about_one_client():
    for policy, outage, words in [("standard", "60s", "The only client is served at attempt "),
                                  ("sync-pipeline", "0s", "The only client is served at attempt 1, "),
                                  ("azure-linear", "5m", "The only client gives up after 11 attempts ")]:
        s = asks_json("policy", "simulate", policy, "--clients", "1", "--outage", outage)
        assert s["conclusion"].startswith(words), s["conclusion"]


@test
def charts_fit_the_terminal_and_its_characters():
    plain = ok("policy", "simulate", "standard", *SMALL)
    assert plain.isascii() and "#" in plain and "\x1b" not in plain
    fine = ok("policy", "simulate", "standard", *SMALL, LC_ALL="C.UTF-8")
    assert any(c in fine for c in "▁▂▃▄▅▆▇█")
    for columns in ("40", "60", "120", "1", "9999", "x"):
        width = {"40": 40, "60": 60, "120": 120, "1": 40, "9999": 240, "x": 80}[columns]
        text = ok("policy", "simulate", "standard", *SMALL, COLUMNS=columns)
        bars = [line for line in text.splitlines() if line[9:10] in ("|", "+")]
        assert len(bars) == 13 and max(map(len, bars)) <= width, (columns, text)


@test
def the_picture_is_one_well_formed_file_and_replaces_the_old_one():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "load.svg")
        path.write_text("old")
        ok("policy", "simulate", "standard", *SMALL, "--svg", str(path))
        assert os.listdir(folder) == ["load.svg"]
        mask = os.umask(0)
        os.umask(mask)
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask
        text = path.read_text(encoding="utf-8")
        root = xml.etree.ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "prefers-color-scheme: dark" in text and "nan" not in text and "inf" not in text
        assert "href" not in text and "<script" not in text and text.count("http") == 1
        words = " ".join("".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text"))
        for label in ("standard", "standard without jitter", "destination down", "attempts per second", "50 %",
                      "99 %", "capacity", "time since"):
            assert label in words, (label, words)
        result = hikyaku("policy", "simulate", "standard", *SMALL, "--svg", folder + "/none/x.svg")
        assert result.code == FAILURE and "none/x.svg" in result.err
        pathlib.Path(folder, "dir.svg").mkdir()
        result = hikyaku("policy", "simulate", "standard", *SMALL, "--svg", folder + "/dir.svg")
        assert result.code == FAILURE and sorted(os.listdir(folder)) == ["dir.svg", "load.svg"]


@test
def hostile_sizes_end_in_good_time():
    for extra in (["--clients", "1", "--outage", "0s", "--spread", "0"], ["--outage", "24h", "--clients", "20"],
                  ["--capacity", "0.001/s", "--clients", "30"], ["--capacity", "1000000000/s"],
                  ["--spread", "24h", "--clients", "100"]):
        s = asks_json("policy", "simulate", "standard", *extra)
        assert s["as_is"]["delivered"] + s["as_is"]["dead"] + s["as_is"]["waiting"] == s["clients"]
        ok("policy", "simulate", "standard", *extra)


# ---- configuration ----

BROKEN = "policies:\n  a: { max_attempts: many }\nnonsense: 1\n"
GOOD = """
policies: { a: { preset: standard, max_attempts: 3 } }
destinations: { billing: { http: { url: "https://billing.example/hooks" }, policy: a } }
routes: [ { event_type: "Order*", destination: billing } ]
"""


@test
def check_prints_every_error_with_its_place():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bad.yaml")
        path.write_text(BROKEN)
        err = refused(CONFIG, "config", "check", str(path), says=["2 errors"])
        places = [line.split(": ")[0] for line in err.splitlines()[:-1]]
        assert len(places) == 2 and all(re.fullmatch(re.escape(str(path)) + r":\d+:\d+", p) for p in places), err
        result = hikyaku("config", "check", str(path), "--json")
        report = json.loads(result.out)
        assert result.code == CONFIG and report["ok"] is False and len(report["errors"]) == 2
        assert {(e["file"], e["line"]) for e in report["errors"]} == {(str(path), 2), (str(path), 3)}
        assert all(e["col"] >= 1 and e["message"] for e in report["errors"])
        refused(CONFIG, "config", "check", folder + "/missing.yaml", says=["missing.yaml"])
        refused(CONFIG, "policy", "list", "--config", str(path), says=[str(path) + ":2:"])
        refused(CONFIG, "policy", "list", "--config", folder + "/missing.yaml", says=["missing.yaml"])


@test
def check_says_what_a_good_file_holds():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "hikyaku.yaml")
        path.write_text(GOOD)
        line = ok("config", "check", str(path))
        assert line == f"{path}: ok: 1 policy, 1 destination, 1 route\n", line
        report = asks_json("config", "check", str(path))
        assert report["ok"] is True and report["errors"] == [] and report["destinations"] == 1
        assert ok("config", "check", "-", stdin=GOOD).startswith("<stdin>: ok: ")
        assert hikyaku("config", "check", "-", stdin=BROKEN).code == CONFIG


@test
def check_names_a_store_that_this_build_has_not():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "hikyaku.yaml")
        for url in ("mysql://u:hunter2@h/db", "orders.db"):
            path.write_text(GOOD + f"store: '{url}'\n")
            err = refused(CONFIG, "config", "check", str(path), says=["sqlite:PATH or postgres://"])
            assert "hunter2" not in err, err
            report = json.loads(hikyaku("config", "check", str(path), "--json").out)
            assert report["ok"] is False and "sqlite:PATH" in report["errors"][0]["message"], report


@test
def check_warns_of_a_file_without_destinations():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "hikyaku.yaml")
        path.write_text("store: sqlite:x.db\n")
        result = hikyaku("config", "check", str(path))
        assert result.code == OK and "warning: no destinations" in result.err and "dead letter" in result.err, result.err
        assert "(1 warning)" in result.out, result.out
        report = asks_json("config", "check", str(path))
        assert report["ok"] is True and "no destinations" in report["warnings"][0]["message"], report


@test
def a_programs_own_policies_do_not_lock_the_command_line_out():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "hikyaku.yaml")
        path.write_text("policies: { mine: { custom: moon, max_attempts: 5 }, other: {} }\n")
        warning = "hikyaku.yaml:1:29: warning: custom \"moon\" is registered by a program; " \
                  "the command line cannot plan it\n"
        for args in (["config", "check"], ["policy", "list"], ["policy", "plan", "other"], ["policy", "show", "mine"],
                     ["policy", "simulate", "other", *SMALL]):
            result = hikyaku(*args, cwd=folder)
            assert (result.code, result.err) == (OK, warning), (args, result.code, result.err)
        for command in ("plan", "simulate"):
            result = hikyaku("policy", command, "mine", cwd=folder)
            assert result.code == FAILURE and "'mine'" in result.err and result.out == "", (command, result.err)
        items = {i["name"]: i for i in json.loads(hikyaku("policy", "list", "--json", cwd=folder).out)["items"]}
        assert items["mine"]["custom"] is True and items["other"]["custom"] is False
        path.write_text("policies: { mine: { custom: moon } }\n"
                        "destinations: { d: { http: { url: 'https://d.example/' }, policy: mine } }\n")
        result = hikyaku("config", "check", cwd=folder)
        assert result.code == CONFIG and "hikyaku.yaml:2:67: policy \"mine\"" in result.err, result.err


@test
def the_file_is_found_by_flag_then_environment_then_in_the_folder():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("hikyaku", "env", "flag"):
            pathlib.Path(folder, name + ".yaml").write_text("policies: { %s: {} }\n" % name)
        env = {"HIKYAKU_CONFIG": folder + "/env.yaml"}
        flag = ["--config", folder + "/flag.yaml"]

        def added(*args, **more):
            return [i["name"] for i in asks_json("policy", "list", *args, **more)["items"]][len(PRESETS):]

        assert added() == []
        assert added(cwd=folder) == ["hikyaku"]
        assert added(cwd=folder, **env) == ["env"]
        assert added(*flag, cwd=folder, **env) == ["flag"]
        assert ok("config", "check", cwd=folder).startswith("hikyaku.yaml: ok")
        assert ok("config", "check", cwd=folder, **env).startswith(folder + "/env.yaml: ok")
        assert ok("config", "check", *flag, cwd=folder, **env).startswith(folder + "/flag.yaml: ok")
        assert ok("config", "check", "flag.yaml", cwd=folder, **env).startswith("flag.yaml: ok")
    refused(USAGE, "config", "check", says=["HIKYAKU_CONFIG"])


@test
def a_default_policy_of_the_file_is_marked_and_a_changed_preset_comes_from_the_file():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "hikyaku.yaml").write_text(
            "default_policy: mine\npolicies: { mine: {}, standard: { max_attempts: 3 } }\n")
        items = {i["name"]: i for i in asks_json("policy", "list", cwd=folder)["items"]}
        assert [n for n, i in items.items() if i["default"]] == ["mine"]
        assert items["mine"]["origin"] == "file" and items["mine"]["preset"] == "standard"
        assert items["standard"]["origin"] == "file" and items["standard"]["max_attempts"] == 3
        assert items["azure-linear"]["origin"] == "preset"


@test
def the_schema_is_a_configuration_and_a_json_schema():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "all.yaml")
        path.write_text(ok("config", "schema"), encoding="utf-8")
        result = hikyaku("config", "check", str(path))
        assert result.code == OK and "ok" in result.out, result.err
        assert [line for line in result.err.splitlines() if "no destinations" not in line] == [], result.err
    schema = asks_json("config", "schema")
    assert schema["$schema"].endswith("2020-12/schema") and "policies" in schema["properties"]


# ---- documentation ----

@test
def the_guide_shows_what_the_program_prints():
    guide = pathlib.Path(__file__).resolve().parents[2] / "docs" / "policies.md"
    shown = re.findall(r"```console\n\$ hikyaku ([^\n]*)\n(.*?)```", guide.read_text(encoding="utf-8"), re.S)
    assert len(shown) >= 5
    for command, output in shown:
        assert ok(*command.split(), LC_ALL="C.UTF-8") == output, command
    for example in re.findall(r"```yaml\n(policies:.*?)```", guide.read_text(encoding="utf-8"), re.S):
        ok("config", "check", "-", stdin=example)
    with tempfile.TemporaryDirectory() as folder:
        ok("policy", "simulate", "standard", "--clients", "10000", "--outage", "60s", "--svg", folder + "/x.svg")
        drawn = pathlib.Path(folder, "x.svg").read_text(encoding="utf-8")
    assert drawn == (guide.parent / "img" / "simulate-standard.svg").read_text(encoding="utf-8")


# ---- output ----

@test
def a_result_that_does_not_arrive_is_a_failure():
    with open("/dev/full", "w", encoding="utf-8") as full:
        for args in (["version"], ["help"], ["policy", "list", "--json"], ["policy", "plan", "standard"]):
            done = subprocess.run([BINARY, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            assert done.returncode == FAILURE, (args, done)
            assert done.stderr.startswith("hikyaku: cannot write the output: No space left"), done.stderr


@test
def a_reader_who_left_is_told_nothing():
    for args in (["version"], ["policy", "plan", "standard", "--json"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([BINARY, *args], stdout=write, stderr=subprocess.PIPE, check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (FAILURE, b""), done


@test
def colours_only_for_a_terminal_that_wants_them():
    import pty
    for env, wanted in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)):
        master, slave = pty.openpty()
        child = subprocess.Popen([BINARY, "policy", "simulate", "standard", *SMALL], stdout=slave,
                                 env={"PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C", **env})
        os.close(slave)
        text = b""
        while True:
            try:
                chunk = os.read(master, 4096)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
        os.close(master)
        assert child.wait() == OK
        assert (b"\x1b[" in text) == wanted, (env, text)


# ---- completion ----

def paste(line, cwd):
    done = subprocess.run(["sh", "-c", line], cwd=cwd, text=True, capture_output=True, timeout=60, check=False,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
    assert done.returncode == 0, (line, done.returncode, done.stderr)
    return done.stdout


@test
def the_demo_ends_with_commands_that_can_be_pasted():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "it's here").mkdir()
        os.symlink(BINARY, f"{folder}/it's here/hk")
        temporary = pathlib.Path(folder) / "tmp"
        temporary.mkdir()
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": str(temporary)}
        done = subprocess.run(["it's here/hk", "demo"], executable=BINARY, cwd=folder, text=True, capture_output=True,
                              timeout=120, check=False, env=env)
        assert done.returncode == OK, (done.stdout, done.stderr)
        counted = re.search(r"counted: 20 unique, (\d+) (duplicates?), 0 lost", done.stdout)
        assert counted and (counted[2] == "duplicate") == (counted[1] == "1"), done.stdout
        demo, plan, init = [line.strip() for line in done.stdout.splitlines() if line.startswith("  '")]
        assert demo == "'it'\\''s here/hk' demo --keep", demo
        assert "attempt" in paste(plan, folder).lower()
        first, last = init.split(" && ")
        paste(first, folder)
        assert os.path.exists(f"{folder}/hikyaku.db") and last.endswith(" run")
        assert list(temporary.iterdir()) == []


@test
def what_the_demo_keeps_can_be_looked_at_from_anywhere_and_goes_with_it():
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        os.symlink(BINARY, f"{folder}/hk")
        temporary = pathlib.Path(folder) / "tmp"
        temporary.mkdir()
        process = subprocess.Popen(["./hk", "demo", "--keep"], executable=BINARY, cwd=folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": str(temporary)})
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("  sqlite3 "):
                    break
            status, messages = [line.strip() for line in lines if line.startswith(f"  {folder}/./hk ")]
            assert "relay demo" in paste(status, elsewhere)
            assert "order" in paste(messages, elsewhere).lower()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == OK
        finally:
            process.kill()
            process.communicate()
        assert list(temporary.iterdir()) == []


@test
def completion_scripts_parse_where_their_shell_is_there():
    for shell in ("bash", "zsh", "fish"):
        script = ok("completion", shell)
        for word in ("simulate", "capacity", "rate_limit", "schema"):
            assert word in script, (shell, word)
        try:
            done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, check=False)
        except FileNotFoundError:
            continue
        assert done.returncode == 0 and done.stderr == "", (shell, done.stderr)


@test
def bash_completes_commands_options_choices_and_policies():
    def complete(*words):
        script = ok("completion", "bash") + f"""
            COMP_WORDS=({" ".join("'" + w + "'" for w in words)}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            _hikyaku; printf '%s\\n' "${{COMPREPLY[@]}}\""""
        path = os.path.dirname(BINARY) + ":" + os.environ["PATH"]
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(["bash", "-c", script], text=True, capture_output=True, cwd=empty, check=True,
                                  env={"PATH": path})
        assert done.stderr == "", done.stderr
        return done.stdout.split()

    assert complete("hikyaku", "") == list(dict.fromkeys(words[0] for words in listed_commands()))
    assert complete("hikyaku", "policy", "s") == ["show", "simulate"]
    assert complete("hikyaku", "--config", "x", "policy", "plan", "--at") == ["--attempts"]
    assert complete("hikyaku", "policy", "plan", "--class", "r") == ["rate_limit"]
    assert complete("hikyaku", "policy", "show", "azure") == ["azure-exponential", "azure-linear"]
    assert complete("hikyaku", "completion", "") == ["bash", "zsh", "fish"]
    assert complete("hikyaku", "policy", "plan", "standard", "--at") == ["--attempts"]
    assert complete("hikyaku", "policy", "show", "standard", "") == []
    # the same name, with a value and without
    assert complete("hikyaku", "destinations", "test", "--payload", "") == []
    assert "--json" in complete("hikyaku", "messages", "show", "--payload", "--")
    assert "--json" in complete("hikyaku", "messages", "show", "--payload", "id", "--")
    assert "--destination" in complete("hikyaku", "enqueue", "--payload", "messages", "--")


@test
def a_password_does_not_stay_among_the_arguments():
    urls = ["postgres://app:s3cret@127.0.0.1:1/shop", "postgres://app:s3/cr@et@127.0.0.1:1/shop", "postgres://app:a:s3cret@h/x",
            "postgres://127.0.0.1:1/shop?user=a&password=s3cret&x=y", "postgres://app@127.0.0.1:1/shop"]
    with tempfile.TemporaryDirectory() as folder:
        slow = os.path.join(folder, "slow.yaml")
        os.mkfifo(slow)
        for url in urls:
            for arguments in ["--db", url], ["--db=" + url]:
                process = subprocess.Popen([BINARY, *arguments, "--config", slow, "status"], cwd=folder, text=True,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                with open(slow, "w", encoding="utf-8") as f:  # opened for reading: it has begun, and waits
                    seen = pathlib.Path(f"/proc/{process.pid}/cmdline").read_text("utf-8").rstrip("\0").split("\0")
                    f.write("{}\n")
                assert process.communicate()[1], "nobody is there"
                assert "s3" not in "".join(seen) and "cr@et" not in "".join(seen), seen
                assert seen[-3:] == ["--config", slow, "status"] and "postgres://" in "".join(seen), seen
                assert ("*" in "".join(seen)) == ("s3" in url), seen


@test
def a_new_sqlite_file_is_its_owners():
    with tempfile.TemporaryDirectory() as folder:
        mode = lambda name: os.stat(os.path.join(folder, name)).st_mode & 0o777
        os.symlink("target.db", os.path.join(folder, "link.db"))
        ok("init", "--db", "sqlite:new.db", cwd=folder)
        ok("init", "--db", "sqlite:link.db", cwd=folder)
        assert (mode("new.db"), mode("target.db")) == (0o600, 0o600)
        with open(os.path.join(folder, "old.db"), "w", encoding="utf-8"):
            os.chmod(os.path.join(folder, "old.db"), 0o664)
        ok("init", "--db", "sqlite:old.db", cwd=folder)
        assert mode("old.db") == 0o664, "what is there stays as it is"
        with sqlite3.connect(os.path.join(folder, "new.db")) as db:
            db.execute("INSERT INTO outbox (destination, event_type, payload) VALUES ('a', 'b', '{}')")
            db.commit()
            assert (mode("new.db-wal"), mode("new.db-shm")) == (0o600, 0o600)
        db.close()


def main():
    print(f"1..{len(TESTS)}")
    failed = 0
    for number, function in enumerate(TESTS, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {function.__name__}", flush=True)
            for line in traceback.format_exc().splitlines():
                print("# " + line)
    return 1 if failed else 0


sys.exit(main())
