#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Google's clients of Cloud Tasks for Python and Go, over REST: each makes a queue and a task, and the relay dispatches it. They are fetched by
name (pip, go) into the build folder, once; where one cannot be had, its test is skipped. tasks.py has the client for Node. Speaks TAP.

Usage: tasks_clients.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
import clients
from support import clean_environment, run_tests, until
from tasks import QUEUE, world

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def other_client_makes_and_dispatches(language, program, *before):
    """The same steps with Google's client for another language."""
    with world() as w:
        asked = [*before, str(program), w.address, w.tokens["admin"], QUEUE, w.receiver.url("work")]
        done = subprocess.run(asked, text=True, capture_output=True, timeout=120, check=False, env=clean_environment())
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert json.loads(done.stdout) == {"queue": QUEUE, "attempts": 3, "state": "RUNNING", "task": f"{QUEUE}/tasks/from-{language}", "method": "PUT",
                                           "missing": "Not Found"}, done.stdout
        got = until(lambda: w.receiver.arrived(f"from-{language}"), "the task")[0]
        assert (got.method, json.loads(got.body), got.headers["content-type"]) == ("PUT", {"from": language}, "application/json"), (got.method, got.body)


@test
def googles_client_for_python_makes_and_dispatches():
    other_client_makes_and_dispatches("python", pathlib.Path(__file__).resolve().parent / "tasks_python.py", str(clients.python()))


@test
def googles_client_for_go_makes_and_dispatches():
    other_client_makes_and_dispatches("go", clients.go())


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
