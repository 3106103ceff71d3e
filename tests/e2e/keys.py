#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hikyaku keys: list, rotate, retire. What an older key sealed is sealed with the new one while messages go out; a relay that is killed
anywhere on the way goes on where it was; two rotations at once are one; a key that is needed is not let go. Speaks TAP.

Usage: keys.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import json
import re
import signal
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from rest import CANARY, WHY, Rest, write_key
from support import run_tests, until

TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Keys(Rest):
    """With letters, versions, cancelled messages, retries and words of receivers that the key k1 sealed."""

    def fill(self, n=3):
        self.receiver.on("bad", lambda r: 422)
        self.receiver.on("slow", lambda r: 503)
        for name in ("bad", "slow"):
            self.config["destinations"][name] = self.destination(name)
        self.config["policies"]["patient"] = {"preset": "standard", "backoff": {"kind": "exponential", "base": "1h", "cap": "2h"}}
        self.config["destinations"]["slow"]["policy"] = "patient"
        self.write_config()
        relay = self.daemon().ready()
        for i in range(n):
            self.add(f"bad-{i}", destination="bad")
            self.add(f"slow-{i}", destination="slow")
            self.add(f"gone-{i}", not_before="2099-01-01T00:00:00Z")
        until(lambda: len(self.letters()) == n, "letters")
        until(lambda: self.sql("SELECT count(*) FROM outbox_retry WHERE attempts > 0") == [(n,)], "retries")
        until(lambda: self.sql("SELECT count(*) FROM outbox_retry") == [(2 * n,)], "scheduled")
        for i in range(n):
            self.hikyaku("messages", "cancel", f"gone-{i}", *WHY)
        self.hikyaku("dead", "edit", "bad-0", "--payload", json.dumps({"card": CANARY + "-edited"}), "--reveal", *WHY)
        return relay

    def turn(self, relay, second="k2"):
        """The new key in front, and every relay has both."""
        write_key(self.path(second))
        self.config["seal"]["keys"].insert(0, {"id": second, "file": second})
        self.write_config()
        if relay:
            relay.signal(signal.SIGHUP)
            relay.says("msg=reloaded")

    def uses(self):
        return {row["key"]: row["kept"] for row in json.loads(self.hikyaku("keys", "list", "--json"))["items"]}

    def rotate(self, *more):
        return re.search(r"job (\d+)", self.hikyaku("keys", "rotate", *more, *WHY)).group(1)

    def ended(self, job):
        def look():
            shown = json.loads(self.hikyaku("job", "show", job, "--json"))
            return shown if shown["status"] not in ("queued", "running") else None
        return until(look, f"job {job}")

    def all_open(self, n=3):
        for i in range(n):
            wanted = f"{CANARY}-edited" if i == 0 else f"{CANARY}-bad-{i}"
            assert wanted in self.hikyaku("dead", "show", f"bad-{i}", "--reveal", *WHY)
        assert f"{CANARY}-bad-0" in self.hikyaku("dead", "show", "bad-0", "--payload-version", "1", "--reveal", *WHY)


@test
def what_an_older_key_sealed_is_sealed_with_the_new_one():
    with Keys() as w:
        relay = w.fill()
        assert set(w.uses()) == {"k1"} and w.uses()["k1"] >= 10, w.uses()
        code, text = w.try_hikyaku("keys", "retire", "k1", *WHY)
        assert code != 0 and "k1 seals" in text, text
        w.turn(relay)
        code, text = w.try_hikyaku("keys", "retire", "k1", *WHY)
        assert code != 0 and re.search(r"key k1 is needed: \d+ texts", text), text
        done = w.ended(w.rotate())
        assert done["status"] == "done" and done["result"]["failed"] == 0 and done["result"]["key"] == "k2", done
        assert w.uses()["k1"] == 0 or "k1" not in w.uses(), w.uses()
        w.all_open()
        assert "key k1 is not needed" in w.hikyaku("keys", "retire", "k1", *WHY)
        w.config["seal"]["keys"].pop()
        w.write_config()
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded", times=2)
        w.all_open()
        w.receiver.on("slow", lambda r: 200)
        for i in range(3):
            w.hikyaku("messages", "retry", f"slow-{i}", *WHY)
            assert w.arrives(f"slow-{i}") == json.dumps({"card": f"{CANARY}-slow-{i}"})
        assert w.hikyaku("audit", "verify")
        acts = {act for (act,) in w.sql("SELECT act FROM outbox_audit")}
        assert "key-retire" in acts and "job-start" in acts
        relay.stop()


@test
def a_rotation_goes_on_after_a_kill_and_two_at_once_are_one():
    with Keys(relay={"lease": "2s"}) as w:
        relay = w.fill()
        relay.stop()
        w.turn(None)
        first, second = w.rotate("--rate", "20/s"), w.rotate("--rate", "20/s")
        for n in range(4):
            relay = w.daemon(f"killed-{n}").ready()
            until(lambda: json.loads(w.hikyaku("job", "show", first, "--json"))["status"] != "queued", "it runs")
            relay.kill()
        relay = w.daemon("last").ready()
        assert {w.ended(first)["status"], w.ended(second)["status"]} == {"done"}
        assert w.uses().get("k1", 0) == 0, w.uses()
        w.all_open()
        relay.stop()


@test
def what_lay_open_is_sealed_and_a_missing_key_is_told():
    with Keys(mode="off") as w:
        relay = w.fill()
        assert w.uses()[None] >= 10 and CANARY in w.hikyaku("dead", "show", "bad-1"), w.uses()
        w.config["seal"]["mode"] = "rest"
        w.write_config()
        relay.signal(signal.SIGHUP)
        relay.says("msg=reloaded")
        for words in (("dead", "edit", "bad-1", "--payload", "{}"), ("dead", "fix", "--filter", "reason:HTTP_422", "--jq", ".a = 1", "--yes")):
            code, text = w.try_hikyaku(*words, *WHY)  # nothing is written open any more
            assert "not sealed yet" in text, (code, text)
        assert w.ended(w.rotate())["status"] == "done"
        assert w.uses().get(None, 0) == 0, w.uses()
        w.all_open()
        w.key.rename(w.path("lost"))  # as a backup that comes back when its key is gone
        w.turn(None)
        relay.stop()
        relay = w.daemon("later").ready()
        done = w.ended(w.rotate())
        assert done["result"]["failed"] > 0 and "k1" in done["result"]["error"], done
        listed = w.hikyaku("keys", "list")
        assert "cannot be read" in listed, listed
        code, text = w.try_hikyaku("keys", "retire", "k1", *WHY)
        assert code != 0 and "is needed" in text, text
        w.path("lost").rename(w.key)
        relay.stop()
        relay = w.daemon("found").ready()
        assert w.ended(w.rotate())["result"]["failed"] == 0
        w.all_open()
        relay.stop()


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
