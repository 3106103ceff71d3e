#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dead letters under kill -9: whoever buries, requeues, repairs, sends, settles or redrives dies at every step of it
(crash points of src/observe/crash.h). Nothing is lost or done twice, the audit's chain stays whole, and whoever repeats the
command or starts the next relay finishes the work. Speaks TAP.

Usage: dead_kill.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold
one."""
import collections
import itertools
import json
import signal
import subprocess
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from dead import FAILURE, JQ, OK, WHY, Office
from support import Answer, BINARY, POSTGRES, Skip, World, clean_environment, run_tests, until

TESTS = []
KILLED = -signal.SIGKILL
TEMPORARY = 75
STATEMENTS = 20  # no act has more in one transaction


def test(function):
    TESTS.append(function)
    return function


class Scene(Office):
    """Where people and relays are killed."""

    looks = 0

    def __init__(self, *args, **sections):
        super().__init__(*args, relay={"lease": "1s"}, policies={}, **sections)

    # -- who dies --

    def killed(self, point, nth, *args):
        """Runs a command that is to die at this place. False: it did not come there that often, and ended well."""
        done = subprocess.run([BINARY, "--config", str(self.config_path), *args], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
                              env={**clean_environment(), "HIKYAKU_ACTOR": "ann", "HIKYAKU_CRASH_AT": f"{point}:{nth}"})
        assert done.returncode in (KILLED, OK), (args, point, nth, done.returncode, done.stdout, done.stderr)
        if done.returncode == OK:
            return False
        self.is_sound()
        return True

    def relay_dies_at(self, point, nth=1):
        daemon = self.daemon(f"dies-at-{point}", env={"HIKYAKU_CRASH_AT": f"{point}:{nth}"})
        code = daemon.wait()
        assert code == KILLED, (point, nth, code, daemon.log()[-3000:])
        self.is_sound()

    # -- what must hold at any moment --

    def is_sound(self):
        """A letter is on its way if and only if it lies in outbox_retry, and then once; every act is in the chain."""
        self.looks += 1
        wrong = self.sql(
            "SELECT (SELECT count(*) FROM dead_letters d JOIN outbox_retry r ON r.letter_id = d.id WHERE d.status <> 'retrying'), "
            "(SELECT count(*) FROM dead_letters d WHERE d.status = 'retrying' AND d.sending_at IS NULL "
            "AND NOT EXISTS (SELECT 1 FROM outbox_retry r WHERE r.letter_id = d.id)), "
            "(SELECT count(*) FROM (SELECT letter_id FROM outbox_retry WHERE letter_id <> 0 GROUP BY letter_id "
            "HAVING count(*) > 1) twice)")
        assert wrong == [(0, 0, 0)], wrong
        self.chain_is_whole()

    def facts(self, message_id, act):
        """(status, being sent?, times in outbox_retry, such acts in the trail, earlier payloads), of one moment."""
        rows = self.sql(
            "SELECT d.status, d.sending_at IS NOT NULL, (SELECT count(*) FROM outbox_retry r WHERE r.letter_id = d.id), "
            "(SELECT count(*) FROM outbox_audit_of_letters a WHERE a.letter_id = d.id AND a.act = ?), "
            "(SELECT count(*) FROM dead_letter_versions v WHERE v.letter_id = d.id AND v.version + 1 = d.payload_version) "
            "FROM dead_letters d WHERE d.message_id = ?", act, message_id)
        assert len(rows) == 1, (message_id, rows)
        return (rows[0][0], bool(rows[0][1]), *rows[0][2:])

    def whole(self, ids, act, before, after):
        """All of them as before the act, or all as after it. True: after."""
        seen = {self.facts(i, act) for i in ids}
        assert seen == {before} or seen == {after}, (ids, act, seen)
        return seen == {after}

    # -- the plot --

    def bury(self, *ids, **columns):
        """These are refused for good; no relay runs any more then."""
        daemon = self.daemon("undertaker")
        self.dies(*ids, **columns)
        daemon.stop()
        self.receiver.on("shop", 200)

    def nothing_else_goes_out(self, counts):
        """A relay that has sent what comes last has sent everything. `counts`: how often each message was received."""
        daemon = self.daemon("last").ready()
        self.insert(message_id="probe")
        until(lambda: self.receiver.arrived("probe") and not self.sql("SELECT 1 FROM outbox_retry"), "all to be sent")
        daemon.stop()
        seen = collections.Counter(r.id for r in self.receiver.arrived())
        del seen["probe"]
        assert seen == counts, (seen, counts)
        self.is_sound()


def has_crash_points():
    """A build for users has none."""
    with World() as probe:
        daemon = probe.daemon(env={"HIKYAKU_CRASH_AT": "acquired:1"})
        until(lambda: daemon.gone() or "lane acquired" in daemon.log(), "a crash, or none")
        return daemon.gone()


# ---- acts ----

def at_each_step(w, what, act, args, first, second, before, after):
    """`args(ids)` is killed at every step of its one transaction, until it comes through; then, with other letters, right
    behind its commit."""
    assert w.killed(f"{what}-begun", 1, *args(first)), f"{what}-begun was not passed"
    assert not w.whole(first, act, before, after)
    for nth in itertools.count(1):
        if not w.killed(f"{what}-inside", nth, *args(first)):
            break
        done = w.whole(first, act, before, after)
        assert POSTGRES or not done, "it was not committed yet"
        assert nth < STATEMENTS
    assert nth > 1, f"{what}-inside was not passed"
    assert w.whole(first, act, before, after)
    assert w.killed(f"{what}-committed", 1, *args(second))
    assert w.whole(second, act, before, after)
    w.run(*args(second))  # asked again: it is so already
    assert w.whole(second, act, before, after)


def by_id(*command):
    return lambda ids: [*command, *ids, *WHY]


OPEN = ("failed", False, 0, 0, 0)


@test
def acts_are_done_once_or_not_at_all():
    with Scene() as w:
        many, few = ["q-1", "q-2", "q-3"], ["r-1", "r-2"]
        w.bury("d", "e", "f", "g")
        w.bury(*many, event_type="Many")
        w.bury(*few, event_type="Few")
        at_each_step(w, "act", "requeue",
                     lambda ids: ["dead", "requeue", "--filter", f"type:{'Many' if ids is many else 'Few'}", "--status", "any",
                                  "--yes", *WHY],
                     many, few, OPEN, ("retrying", False, 1, 1, 0))
        at_each_step(w, "act", "discard", by_id("dead", "discard"), ["d"], ["e"], OPEN, ("discarded", False, 0, 1, 0))
        at_each_step(w, "act", "restore", by_id("dead", "restore"), ["d"], ["e"], ("discarded", False, 0, 0, 0),
                     ("failed", False, 0, 1, 0))
        at_each_step(w, "act", "resolve", by_id("dead", "resolve"), ["f"], ["g"], OPEN, ("resolved", False, 0, 1, 0))
        w.nothing_else_goes_out({"d": 1, "e": 1, "f": 1, "g": 1, **{i: 2 for i in many + few}})
        assert {w.letter(i)[0] for i in many + few} == {"resolved"}
        print(f"# looked at {w.looks} times")


@test
def repairs_are_whole_with_their_older_payload_or_not_there():
    with Scene() as w:
        w.bury("d", "e", payload='{"a":1}')
        at_each_step(w, "edit", "edit", lambda ids: ["dead", "edit", *ids, "--payload", '{"a":2}', *WHY], ["d"], ["e"], OPEN,
                     ("failed", False, 0, 1, 1))
        for i in "de":
            assert w.letter(i, "payload, payload_version") == ('{"a":2}', 2)
        assert w.sql("SELECT DISTINCT payload, version FROM dead_letter_versions") == [('{"a":1}', 1)]
        if JQ is not None and not JQ.exists():
            raise Skip("dead fix: this build has no jq helper (libjq, libseccomp)")
        # a page of letters is one transaction: all of them or none, with one list in the audit
        ids, others = [f"f-{i}" for i in range(5)], [f"g-{i}" for i in range(3)]
        w.bury(*ids, event_type="Fix", payload='{"qty":"7"}')
        w.bury(*others, event_type="Other", payload='{"qty":"7"}')
        at_each_step(w, "act", "fix",
                     lambda of: ["dead", "fix", "--filter", f"type:{'Fix' if of is ids else 'Other'}", "--jq", ".qty |= tonumber",
                                 "--yes", *WHY],
                     ids, others, OPEN, ("failed", False, 0, 1, 1))
        for i in ids + others:
            assert w.letter(i, "payload, payload_version") == ('{"qty":7}', 2)
        w.nothing_else_goes_out({i: 1 for i in ["d", "e", *ids, *others]})


@test
def a_send_by_hand_is_made_once_and_its_doubt_is_left_to_people():
    with Scene() as w:
        begun, outcome = [("act-begun", 1), ("act-inside", 1)], [("outcome-begun", 1), ("outcome-inside", 1)]
        if not POSTGRES:
            begun += [("act-inside", 2)]
            outcome += [("outcome-inside", 2), ("outcome-inside", 3)]
        begun += [("act-committed", 1)]
        outcome += [("outcome-committed", 1)]
        names = [f"{point}-{nth}" for point, nth in begun + outcome]
        w.bury(*names)
        in_doubt = ("retrying", True, 0, 1, 0)
        for name, (point, nth) in zip(names, begun):
            assert w.killed(point, nth, "dead", "send", name, *WHY), name
            if w.whole([name], "send", OPEN, in_doubt):
                assert "with an unknown outcome" in w.run("dead", "send", name, *WHY, code=FAILURE)
                w.run("dead", "restore", name, *WHY)
            else:
                assert point != "act-committed"
            assert len(w.receiver.arrived(name)) == 1, "nothing was sent yet"
            w.run("dead", "send", name, *WHY)
        for name, (point, nth) in zip(names[len(begun):], outcome):
            assert w.killed(point, nth, "dead", "send", name, *WHY), name
            if w.whole([name], "send", in_doubt, ("resolved", False, 0, 1, 0)):
                assert point != "outcome-begun"
                assert "only an open one" in w.run("dead", "send", name, *WHY, code=FAILURE)
                assert w.facts(name, "sent")[3] == 1
            else:
                assert point != "outcome-committed" and w.facts(name, "sent")[3] == 0
                assert "with an unknown outcome" in w.run("dead", "send", name, *WHY, code=FAILURE)
                w.run("dead", "resolve", name, *WHY)
        assert {w.letter(name)[0] for name in names} == {"resolved"}
        w.nothing_else_goes_out({name: 2 for name in names})


# ---- redrive ----

def start(n=0):
    """All of them, each time in other words: of two that say the same the second is refused."""
    return ["redrive", "start", "--filter", f"destination:shop before:{2100 + n}-01-01", "--rate", "20/s", *WHY, "--yes"]


def jobs(w):
    """(job, status) of all, each of which has its beginning, and its end if it has one, in the trail: in one moment."""
    rows = w.sql("SELECT j.id, j.status, (SELECT count(*) FROM outbox_audit a WHERE a.redrive_id = j.id AND a.act = 'redrive-start'), "
                 "(SELECT count(*) FROM outbox_audit a WHERE a.redrive_id = j.id AND a.act IN ('redrive-done', 'redrive-cancel')) "
                 "FROM outbox_redrive j ORDER BY j.id")
    for row in rows:
        assert row[2:] == (1, int(row[1] != "running")), row
    starts = w.sql("SELECT count(*) FROM outbox_audit WHERE act = 'redrive-start'")
    assert starts == [(len(rows),)], (starts, rows)
    return [row[:2] for row in rows]


@test
def a_redrive_is_started_and_cancelled_whole_or_not_at_all():
    with Scene() as w:
        w.bury("d", "e")
        assert w.killed("redrive-begun", 1, *start()) and jobs(w) == []
        for nth in itertools.count(1):
            if not w.killed("redrive-inside", nth, *start(nth)):
                break
            assert POSTGRES or jobs(w) == []
            assert nth < STATEMENTS
        assert nth > 1 and 1 <= len(jobs(w)) <= nth
        running = len(jobs(w))
        assert w.killed("redrive-committed", 1, *start()) and len(jobs(w)) == running + 1
        newest = max(number for number, _ in jobs(w))
        for _ in range(2):  # typed again: it runs already
            assert f"redrive {newest} of the same letters runs already" in w.run(*start(), code=TEMPORARY)
        assert len(jobs(w)) == running + 1
        first, *others = [str(number) for number, _ in jobs(w)]
        for nth in itertools.count(1):
            if dict(jobs(w))[int(first)] != "running":
                break  # a COMMIT that was on its way has come there
            if not w.killed("redrive-ending", nth, "redrive", "cancel", first, *WHY):
                break
            assert nth < STATEMENTS
        assert nth > 1 and dict(jobs(w))[int(first)] == "cancelled"
        assert w.killed("redrive-committed", 1, "redrive", "cancel", others[0], *WHY)
        assert dict(jobs(w))[int(others[0])] == "cancelled"
        for number in (first, others[0]):
            assert "ended already" in w.run("redrive", "cancel", number, *WHY, code=FAILURE)
        for number in others[1:]:
            w.run("redrive", "cancel", number, *WHY)
        assert {status for _, status in jobs(w)} == {"cancelled"}
        w.nothing_else_goes_out({"d": 1, "e": 1})


@test
def a_redrive_goes_on_in_the_next_relay_and_sends_each_letter():
    # A few at a time: when all of them arrive with one exchange there is none left for the relay that is to die next.
    with Scene({"shop": {"limits": {"concurrency": 2}}}) as w:
        ids = [f"m-{i}" for i in range(16)]
        w.bury(*ids)
        # somebody was killed behind the commit, and asked again in other words: two jobs for the same letters
        assert w.killed("redrive-committed", 1, *start())
        w.run(*start(1))
        w.relay_dies_at("redrive-begun")
        assert w.sql("SELECT count(*) FROM outbox_retry") == [(0,)]
        for nth in (1,) if POSTGRES else (1, 2, 3, 4):
            w.relay_dies_at("redrive-inside", nth)
            assert POSTGRES or w.sql("SELECT count(*) FROM outbox_retry") == [(0,)]
        w.relay_dies_at("redrive-committed")
        assert w.sql("SELECT sum(requeued) > 0 FROM outbox_redrive") in ([(1,)], [(True,)])
        # Three at the most: who is in hand at a fourth kill is taken for the one that kills relays.
        doubts = ["arrive-begun", "arrive-inside", "arrive-committed"]
        for point in doubts:
            w.relay_dies_at(point)
        assert "running" in dict(jobs(w)).values()
        for nth in (1,) if POSTGRES else (1, 2):
            w.relay_dies_at("redrive-ending", nth)
        daemon = w.daemon("last").ready()
        until(lambda: {status for _, status in jobs(w)} == {"done"}, lambda: jobs(w))
        daemon.stop()
        trail = w.sql("SELECT letter_id FROM outbox_audit_of_letters WHERE act = 'requeue'")
        assert len(trail) == len(set(trail)) == len(ids), "each is requeued once, by whichever job"
        assert w.sql("SELECT sum(requeued) FROM outbox_redrive") == [(len(ids),)]
        assert w.sql("SELECT DISTINCT status, life, requeues, resolution FROM dead_letters") == [("resolved", 1, 1, "delivered")]
        took = w.receiver.accepted()
        assert set(took) == set(ids), set(ids) - set(took)
        # sent again only by relays that took over what was in hand when another died
        assert max(took.values()) <= 1 + len(doubts), took
        w.is_sound()
        print(f"# {sum(took.values()) - len(took)} repeats")


# ---- groups of older versions ----

@test
def letters_of_an_older_version_are_grouped_whoever_dies_at_it():
    with Scene() as w:
        w.receiver.on("shop", lambda r: Answer(422, body=f"no '{'currency' if r.id < 'm-6' else 'price'}'".encode()))
        daemon = w.daemon("first").ready()
        for n in range(9):
            w.insert(message_id=f"m-{n}")
        until(lambda: len(w.letters()) == 9, "all to die")
        daemon.stop()
        # as a relay of schema version 4 leaves them: one group, and no words but in the detail
        w.sql("UPDATE dead_letters SET fingerprint = '00000000000000aa', fingerprint_made = NULL, "
              "error_message = 'the answer was HTTP 422'")
        assert [(g["group"], g["letters"]) for g in w.json("dead", "groups")["items"]] == [("00000000000000aa", 9)]
        w.relay_dies_at("regroup")
        assert w.sql("SELECT count(*) FROM dead_letters WHERE fingerprint_made IS NULL") == [(9,)] or POSTGRES
        assert w.json("dead", "groups", "--group", "00000000000000aa")["letters"] == 9
        daemon = w.daemon("last").ready()
        until(lambda: "are grouped" in daemon.log() or w.sql("SELECT count(*) FROM dead_letters WHERE fingerprint_made IS NULL") == [(0,)],
              "the groups to be made anew")
        assert sorted((g["letters"], g["example_error"]) for g in w.json("dead", "groups")["items"]) == [
            (3, "HTTP 422: no 'price'"), (6, "HTTP 422: no 'currency'")]
        # the group of before still means the same letters
        assert w.json("dead", "groups", "--group", "00000000000000aa")["letters"] == 9
        w.receiver.on("shop", 200)
        w.run("dead", "requeue", "--filter", "group:00000000000000aa", "--yes", *WHY)
        until(lambda: len(w.receiver.accepted()) == 9, "all to arrive")
        daemon.stop()
        w.is_sound()


# ---- burying ----

def places(w):
    """Each message lies in one place, in one moment: {id: place}."""
    rows = w.sql("SELECT message_id, 'outbox' FROM outbox UNION ALL SELECT message_id, 'retry' FROM outbox_retry "
                 "UNION ALL SELECT message_id, status FROM dead_letters WHERE status <> 'retrying'")
    assert len(rows) == len({m for m, _ in rows}), rows
    return dict(rows)


@test
def a_message_is_buried_once_whoever_dies_at_the_grave():
    with Scene() as w:
        ids, kills = [], 0
        w.receiver.on("shop", 422)
        for point in ("bury-inside", "bury-begun", "bury-committed"):
            for _ in range(3):  # what was on its way when the one before was killed may be buried by now
                ids.append(f"m-{len(ids)}")
                w.insert(message_id=ids[-1])
            w.relay_dies_at(point)
            kills += 1
            assert set(places(w)) == set(ids), places(w)
            assert bool(w.letters()) == (point == "bury-committed") or POSTGRES
        daemon = w.daemon("last").ready()
        until(lambda: set(places(w).values()) == {"failed"}, lambda: places(w))
        daemon.stop()
        assert w.letters() == {i: "HTTP_422" for i in ids}, "nobody is blamed for the relays' deaths"
        # and again, into the letters that they came from
        for point, nth in [("bury-inside", 1), *([] if POSTGRES else [("bury-inside", 2)]), ("bury-committed", 1)]:
            if "failed" in places(w).values():
                w.run("dead", "requeue", "--filter", "destination:shop", "--yes", *WHY)
            w.relay_dies_at(point, nth)
            kills += 1
            assert set(places(w)) == set(ids), places(w)
        daemon = w.daemon("last").ready()
        until(lambda: set(places(w).values()) == {"failed"}, lambda: places(w))
        daemon.stop()
        assert w.sql("SELECT DISTINCT status, life - requeues, reason_code FROM dead_letters") == [("failed", 1, "HTTP_422")]
        letters = w.sql("SELECT message_id, life FROM dead_letters")
        assert len(letters) == len(ids) and min(life for _, life in letters) >= 2, letters
        came = collections.Counter(r.id for r in w.receiver.arrived())
        for i, life in letters:
            assert life <= came[i] <= life + kills, (i, life, came)
        w.is_sound()


if __name__ == "__main__":
    if not (POSTGRES and __import__("postgres").why_not()) and not has_crash_points():
        print("1..0 # SKIP the program was built without crash points")
        sys.exit(0)
    sys.exit(run_tests(TESTS))
