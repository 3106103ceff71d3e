#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The relay's log: one event one line whatever rows hold, every retry with all that requirement 207 asks for, nothing secret or masked, and
a reader that does not read costs lines, never messages. Speaks TAP.

Usage: logs.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import unicodedata

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import Answer, BINARY, POSTGRES, PATIENCE, QUICK, World, clean_environment, run_tests, until

TESTS = []
CONFIG = 78

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test(function):
    TESTS.append(function)
    return function


def records(daemon):
    """Each line of the log, which must be JSON and nothing but that."""
    lines = daemon.log_path.read_bytes().split(b"\n")
    assert lines[-1] == b"", "the last line is whole"
    found = []
    for line in lines[:-1]:
        assert not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in line.decode()), line
        found.append(json.loads(line))
    return found


def said(daemon, msg):
    return [r for r in records(daemon) if r["msg"] == msg]


# What an application may write into any text column.
HOSTILE = ["two\nlines", '"', "\\", '","level":"error","msg":"forged', "a b=c level=error", "\x1b[2J", "\u2028\u2029\x85",
           "\u202egnp.exe", "\r\n\r\n", "飛脚 🚀", "x" * 5000, "<3>kernel", "{}", "'; DROP TABLE outbox; --", "%s%n", "\ufeff"]


@test
def hostile_rows_leave_lines_that_are_json():
    with World(log={"format": "json"}, policies={"quick": {**QUICK, "max_attempts": 2}}) as w:
        w.receiver.on("shop", 503)
        n = 0
        for text in HOSTILE:
            for column in ("message_id", "event_type", "correlation_id", "traceparent", "headers", "message_key", "policy",
                           "idempotency_key", "content_type"):
                row = {"message_id": f"h-{n}", "destination": "shop", column: text}
                if POSTGRES and column == "headers":
                    row["headers"] = json.dumps({"x": text})
                w.insert(**row)
                n += 1
            w.insert(destination=text, message_id=f"h-{n}")
            n += 1
        if not POSTGRES:  # which takes no text that is none
            db = w.connect()
            for bad in ("ff", "c0af", "eda080", "f4908080", "e381"):
                db.execute("INSERT INTO outbox (destination, event_type, payload, message_id, correlation_id) VALUES "
                           f"('shop', CAST(x'{bad}' AS TEXT), '{{}}', CAST(x'{bad}' AS TEXT), CAST(x'{bad}' AS TEXT))")
                n += 1
            db.close()
        daemon = w.daemon().ready()
        until(lambda: len(w.sql("SELECT 1 FROM dead_letters")) == n, "all are dead letters")
        daemon.stop()
        dead = said(daemon, "dead letter")
        assert len(dead) == n, (len(dead), n)
        assert all(r["level"] == "warn" and r["reason"] for r in dead)
        ids = {r["message_id"] for r in dead}
        assert HOSTILE[0] in ids and "飛脚 🚀" in ids, "good text comes out as it went in"
        assert any(r.get("correlation_id") == "two\nlines" for r in dead)
        assert not any(r.get("msg") == "forged" for r in records(daemon))


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@test
def a_retry_line_has_all_that_requirement_207_asks_for():
    with World(log={"format": "json"}, policies={"two": {**QUICK, "max_attempts": 2}}) as w:
        w.config["destinations"]["shop"]["policy"] = "two"
        w.write_config()
        w.receiver.on("shop", 503)
        w.insert(message_id="m-1", correlation_id="order-7", traceparent=PARENT)
        daemon = w.daemon().ready()
        until(lambda: w.letters() == {"m-1": "RETRY_EXHAUSTED"}, "a dead letter")
        daemon.stop()
        (retry,), (dead,) = said(daemon, "retry"), said(daemon, "dead letter")
        for line, attempt in ((retry, 1), (dead, 2)):
            assert line["message_id"] == "m-1" and line["request_id"] == f"m-1/{attempt}", line
            assert (line["policy"], line["policy_type"]) == ("two", "exponential"), line
            assert line["destination"] == "shop" and line["attempt"] == attempt, line
            assert time_of(line["started"]) <= time_of(line["ended"]) <= time_of(line["time"]) + 1, line
            assert line["class"] == "transient" and line["cause"] == "HTTP_503" and line["status"] == 503, line
            assert line["error"] == "the answer was HTTP 503", line
            assert line["correlation_id"] == "order-7" and line["trace_id"] == TRACE, line
        assert isinstance(retry["wait_ms"], int) and 10 <= retry["wait_ms"] <= 100, retry
        assert dead["reason"] == "RETRY_EXHAUSTED" and "wait_ms" not in dead, dead


@test
def logfmt_says_the_same():
    with World() as w:
        w.receiver.on("shop", lambda r: Answer(429, {"Retry-After": "1"}) if r.n == 1 else 200)
        w.insert(message_id="m-1", correlation_id="two words", traceparent=PARENT)
        daemon = w.daemon().ready()
        w.settled(sent=1)
        daemon.stop()
        line, = [x for x in daemon.log().splitlines() if "msg=retry" in x]
        assert re.search(r"level=info msg=retry message_id=m-1 request_id=m-1/1 correlation_id=\"two words\" "
                         rf"trace_id={TRACE} destination=shop policy=quick policy_type=adaptive attempt=1 "
                         r"started=\S+Z ended=\S+Z wait=1\S* class=rate_limit cause=RATE_LIMITED status=429 error=", line), line


@test
def an_unsent_dead_letter_has_its_ids_as_well():
    with World(log={"format": "json"}) as w:
        w.insert(message_id="m-1", destination="nowhere", correlation_id="c-1", traceparent=PARENT)
        w.insert(message_id="m-2", expires_at="2020-01-01T00:00:00Z", correlation_id="c-2", traceparent=PARENT)
        daemon = w.daemon().ready()
        w.settled(dead=2)
        daemon.stop()
        lines = {r["message_id"]: r for r in said(daemon, "dead letter")}
        assert {m: r["reason"] for m, r in lines.items()} == w.letters()
        for n in (1, 2):
            assert lines[f"m-{n}"]["correlation_id"] == f"c-{n}" and lines[f"m-{n}"]["trace_id"] == TRACE
            assert "started" not in lines[f"m-{n}"]


@test
def masked_values_and_secrets_are_not_logged():
    with World({"shop": {"http": {"auth": {"bearer": "bearer-hunter2"}, "headers": {"X-Api-Key": "key-hunter2"}}}},
               masks=[{"paths": ["customer.email"], "headers": ["x-tenant"]}]) as w:
        payload = json.dumps({"customer": {"email": "alice@example.org"}})
        # what cannot be sent is repeated in the error
        w.insert(message_id="m-1", payload=payload, idempotency_key="für alice@example.org")
        w.insert(message_id="m-2", payload=payload, idempotency_key="für tenant-seven", headers='{"x-tenant": "tenant-seven"}')
        w.insert(message_id="m-3", payload=payload, idempotency_key="ü Bearer abc.hunter2")
        daemon = w.daemon().ready()
        w.settled(dead=3)
        daemon.stop()
        log = daemon.log()
        assert log.count("idempotency_key") == 3, log
        assert "example.org" not in log and "tenant-seven" not in log and "hunter2" not in log, log
        assert "***" in log


@test
def nobody_reads_the_log_and_everything_is_delivered():
    with World({"shop": {}, "down": {}}) as w:
        w.receiver.on("down", 503)
        w.insert_many(300, "down", destination="down", correlation_id="c" * 200)
        process = subprocess.Popen([BINARY, "--config", str(w.config_path), "run"], cwd=w.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=clean_environment())
        w.children.append(process)
        # a pipe holds 64 KiB; each retry is a line of a few hundred bytes
        until(lambda: len(w.receiver.arrived(destination="down")) > 1000, "more retries than the pipe holds")
        w.insert_many(500, "shop")
        until(lambda: len(w.receiver.accepted("shop")) == 500, "all are delivered")
        os.set_blocking(process.stderr.fileno(), False)
        text = b""

        def dropped():
            nonlocal text
            text += process.stderr.read() or b""
            return re.search(rb'level=error msg="log lines dropped" n=\d+\n', text)

        until(dropped, "the number of lines that were lost")
        assert text.startswith(b"time=") and all(line.startswith(b"time=") for line in text.split(b"\n")[:-1])
        w.receiver.on("down", 200)
        until(lambda: len(w.receiver.accepted("down")) == 300, "the others, too")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        process.stderr.close()


@test
def a_flag_wins_over_the_environment_and_that_over_the_file():
    with World(log={"format": "json", "level": "error"}) as w:
        def log_of(*flags, **env):
            process = subprocess.Popen([BINARY, "--config", str(w.config_path), "run", *flags], cwd=w.folder,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       text=True, env={**clean_environment(), **env})
            w.children.append(process)
            n = len(w.receiver.arrived())
            w.insert(message_id=f"m-{n}")
            until(lambda: len(w.receiver.arrived()) > n or process.poll() is not None, "it runs")
            process.send_signal(signal.SIGTERM)
            return process.communicate(timeout=PATIENCE)[1], process.returncode

        assert log_of() == ("", 0)
        text, _ = log_of(HIKYAKU_LOG_LEVEL="info")
        assert all(json.loads(line) for line in text.splitlines()) and "relay started" in text, text
        text, _ = log_of("--log-level", "error", HIKYAKU_LOG_LEVEL="info")  # not warn: as root it says so
        assert text == "", text
        text, _ = log_of("--log-format", "logfmt", "--log-level", "info", HIKYAKU_LOG_FORMAT="json")
        assert text.startswith("time=") and 'msg="relay started"' in text, text
        text, _ = log_of("--log-level", "info", HIKYAKU_LOG_FORMAT="logfmt")
        assert text.startswith("time="), text
        text, code = log_of(HIKYAKU_LOG_FORMAT="xml")
        assert code == CONFIG and "HIKYAKU_LOG_FORMAT" in text, (code, text)
        text, code = log_of(HIKYAKU_LOG_LEVEL="loud")
        assert code == CONFIG and "HIKYAKU_LOG_LEVEL" in text, (code, text)


@test
def a_reload_changes_format_and_level():
    with World() as w:
        daemon = w.daemon().ready()
        w.config["log"] = {"format": "json", "level": "warn"}
        w.write_config()
        daemon.signal(signal.SIGHUP)
        w.receiver.on("shop", 400)
        until(lambda: daemon.log().count("msg=reloading"), "the reload")
        w.insert(message_id="m-1")
        w.settled(dead=1)
        daemon.says('"msg":"dead letter"')
        assert '"msg":"reloaded"' not in daemon.log() and "msg=reloaded" not in daemon.log()
        daemon.stop()
        assert json.loads(daemon.log().splitlines()[-1])["msg"] == "dead letter"


sys.exit(run_tests(TESTS))
