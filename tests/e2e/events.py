#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /events of a relay: what changes is told, a listener goes on where it was cut off, and no listener is in the relay's way. Speaks TAP.

Usage: events.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres: on PostgreSQL"""
import http.client
import json
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True  # the source folder stays as it is
from api import Served
from support import BINARY, PATIENCE, POSTGRES, Answer, Receiver, clean_environment, run_tests, until

TYPES = {"state", "figures", "alert", "redrive", "job", "heartbeat", "open", "reset", "end"}
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Listener:
    """Reads events on a thread of its own, as strictly as the format is."""

    def __init__(self, world, token="viewer", last_id=None, address=None, **query):
        host, port = (address or world.address).rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        head = {"Authorization": f"Bearer {world.tokens[token]}"} if token else {}
        if last_id is not None:
            head["Last-Event-ID"] = last_id
        self.connection.request("GET", "/api/v1/events" + ("?" + urllib.parse.urlencode(query) if query else ""), headers=head)
        self.answer = self.connection.getresponse()
        self.status, self.events, self.all = self.answer.status, queue.Queue(), []
        self.socket = self.answer.fp.raw._sock  # pylint: disable=protected-access
        if self.status == 200:
            assert self.answer.headers["Content-Type"] == "text/event-stream", dict(self.answer.headers)
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        event = {}
        try:
            for line in self.answer:
                line = line.decode("utf-8").rstrip("\n")
                if line == "" and event:
                    assert event["event"] in TYPES, event
                    self.events.put((event["event"], event.get("id"), json.loads(event["data"])))
                    event = {}
                elif line and not line.startswith(":"):
                    name, value = line.split(": ", 1)
                    assert name in ("id", "event", "data") and name not in event, (name, line)
                    event[name] = value
        except (OSError, ValueError, http.client.HTTPException):
            pass  # it was cut
        self.events.put(None)

    def next(self, what):
        """The first event for which `what` holds; all before it are dropped."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                event = self.events.get(timeout=end - time.monotonic())
            except queue.Empty:
                break
            assert event is not None, f"it ended; before that: {self.all[-5:]}"
            self.all.append(event)
            if what(*event):
                return event
        raise AssertionError(f"no such event: {self.all[-10:]}")

    def opened(self):
        self.next(lambda type_, id_, data: type_ == "open")
        return self

    def state(self, destination, **members):
        return self.next(lambda type_, id_, data: type_ == "state" and data["destination"] == destination and
                         all((data[k]["n"] if isinstance(data[k], dict) else data[k]) == v for k, v in members.items()))

    def ended(self):
        return self.next(lambda type_, id_, data: type_ == "end")[2]["reason"]

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def served(**more):
    world = Served(**more)
    world.token("viewer", "viewer")
    world.token("boss", "admin")
    return world


def meter(world, name):
    text = world.api("boss").ask("GET", "/metrics")[2].decode("utf-8")
    return int(float(re.search(rf"^{name} (\S+)$", text, re.M)[1]))


@test
def what_changes_is_told():
    with served() as world:
        world.serve()
        world.receiver.on("shop", Answer(422))
        listener = Listener(world).opened()
        world.insert(message_id="m")
        listener.state("shop", dead=1)
        seen = Listener(world, types="figures", destination="shop").opened()
        figures = seen.next(lambda type_, id_, data: type_ == "figures" and data["destination"] == "shop")[2]
        assert "latency_ms" in figures and "attempts_failed" in figures, figures
        assert {event[0] for event in seen.all} <= {"figures", "open"}, seen.all
        world.api("boss").good("POST", "/destinations/shop/pause", {"reason": "a test"})
        paused = listener.state("shop", paused=True)[2]
        assert paused["paused_reason"] == "a test" and paused["paused_by"] == "boss", paused
        job = world.api("boss").good("POST", "/redrives", {"destination": "shop", "rate": "1/s", "reason": "a test"})
        told = listener.next(lambda type_, id_, data: type_ == "redrive" and data["id"] == job["redrive"])[2]
        assert told["status"] == "running" and told["total"] == 1, told
        ids = [event[1] for event in listener.all if event[1]]
        assert len(ids) == len(set(ids)) >= 3, ids


@test
def jobs_are_told():
    with served() as world:
        world.serve()
        world.dead(3)
        listener = Listener(world, types="job").opened()
        boss = world.api("boss")
        ask = {"destination": "shop", "background": True, "reason": "a test"}
        status, _, started = boss.ask("POST", "/dead-letters/discard", ask)
        assert status == 202, (status, started)
        told = listener.next(lambda type_, id_, data: type_ == "job" and data["id"] == started["id"] and data["status"] == "done")[2]
        assert (told["operation"], told["changed"], told["failed"]) == ("dead discard", 3, 0), told
        assert [told] == boss.good("GET", "/jobs")["items"]
        assert {event[0] for event in listener.all} <= {"job", "open"}, listener.all


@test
def alerts_are_told():
    chat = Receiver()
    chat.on("chat", Answer(200, body=b"ok"))
    with served(channels={"chat": {"slack": {"url": chat.url("chat")}, "allow": ["127.0.0.0/8"]}},
                alerts={"rules": [{"name": "died", "when": "dead_letter"}]}) as world:
        world.serve()
        listener = Listener(world, types="alert").opened()
        world.dead()
        fires = listener.next(lambda type_, id_, data: type_ == "alert" and data["status"] == "firing")[2]
        assert fires["rule"] == "died" and fires["destination"] == "shop", fires
    chat.close()


@test
def a_listener_goes_on_where_it_was_cut_off():
    with served(destinations=("shop", "other")) as world:
        world.serve()
        boss = world.api("boss")
        stays, goes = Listener(world).opened(), Listener(world).opened()
        boss.good("POST", "/destinations/shop/pause", {"reason": "first"})
        last = goes.state("shop", paused=True)[1]
        goes.close()
        boss.good("POST", "/destinations/other/pause", {"reason": "missed"})
        stays.state("other", paused=True)
        back = Listener(world, last_id=last)
        missed = back.state("other", paused=True)
        assert not [event for event in back.all if event[0] in ("reset", "open")], back.all
        back.opened()
        assert missed[1] in [event[1] for event in stays.all], "the same event has the same id"


@test
def who_missed_too_much_is_told_to_load_again():
    with served() as world:
        world.serve()
        for last_id in ("0000000000000001-5", "nonsense", "-"):
            listener = Listener(world, last_id=last_id)
            assert listener.next(lambda type_, id_, data: True)[0] == "reset", listener.all
            listener.opened().close()


@test
def no_name_breaks_the_framing():
    name = "x\n\nevent: end\ndata: {}\n\n\r\rid: 1\n"
    with served() as world:
        world.serve()
        listener = Listener(world).opened()
        world.insert(destination=name, message_id="m")
        listener.state(name, dead=1)


@test
def a_listener_whose_token_is_revoked_is_sent_away():
    with served() as world:
        world.token("other", "viewer")
        world.serve()
        goes, stays = Listener(world, "viewer").opened(), Listener(world, "other").opened()
        world.api("boss").good("POST", "/tokens/viewer/revoke", {"reason": "left the team"})
        assert "token" in goes.ended()
        world.api("boss").good("POST", "/destinations/shop/pause", {"reason": "still here"})
        stays.state("shop", paused=True)


@test
def a_stream_ends_when_it_was_to_end_and_when_the_relay_does():
    with served() as world:
        relay = world.serve()
        assert "time" in Listener(world, **{"for": "1s"}).opened().ended()
        listener = Listener(world).opened()
        relay.stop()
        assert "shutting down" in listener.ended()


@test
def what_cannot_be_asked_for_is_refused():
    with served() as world:
        world.token("meter", "metrics")
        world.serve()
        boss = world.api("boss")
        boss.bad(400, "INVALID", "GET", "/events?types=nonsense")
        boss.bad(400, "INVALID", "GET", "/events?for=0s")
        world.api("meter").bad(403, "DENIED", "GET", "/events")
        status, headers, body = boss.ask("HEAD", "/events")
        assert status == 200 and headers["Content-Type"] == "text/event-stream" and not body, (status, dict(headers), body)


@test
def a_hundred_listeners_cost_one_look_and_none_costs_nothing():
    with served() as world:
        world.serve()
        first = Listener(world).opened()
        many = [Listener(world) for _ in range(99)]
        for listener in many:
            listener.opened()
        assert meter(world, "hikyaku_event_listeners") == 100
        looks, began = meter(world, "hikyaku_event_looks_total"), time.monotonic()
        until(lambda: meter(world, "hikyaku_event_looks_total") > looks, "another look")
        world.api("boss").good("POST", "/destinations/shop/pause", {"reason": "for all"})
        for listener in [first, *many]:
            listener.state("shop", paused=True)
        looked = meter(world, "hikyaku_event_looks_total") - looks
        assert looked <= time.monotonic() - began + 2, "one look a second at the most, whoever listens"
        for listener in [first, *many]:
            listener.close()
        until(lambda: meter(world, "hikyaku_event_listeners") == 0, "they have left")

        def rests():
            before = meter(world, "hikyaku_event_looks_total")
            time.sleep(3)
            return meter(world, "hikyaku_event_looks_total") == before
        until(rests, "nobody listens, nobody looks")


@test
def too_many_listeners_are_refused():
    with served() as world:
        world.serve()
        many = []
        while len(many) < 200:
            listener = Listener(world)
            if listener.status != 200:
                break
            many.append(listener)
        assert listener.status == 503 and listener.answer.headers["Retry-After"], listener.status
        assert len(many) == 128, len(many)


@test
def a_listener_that_does_not_read_is_cut_and_the_relay_goes_on():
    with served() as world:
        world.serve()
        world.receiver.on("shop", Answer(200))
        host, port = world.address.rsplit(":", 1)
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((host, int(port)))
        deaf.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {world.address}\r\nAuthorization: Bearer {world.tokens['viewer']}\r\n\r\n".encode())
        # One round of events is less than what may be unread, and none is asked for before the last was read: on a slow machine this
        # one would be cut, too.
        listener = Listener(world, types="state").opened()
        until(lambda: meter(world, "hikyaku_event_listeners") == 2, "it listens, too")
        now = int(time.time() * 1000)
        rows = [f"dest-{i:03d}" for i in range(180)]
        db = world.connect()
        db.execute("BEGIN")
        for name in rows:
            db.execute("INSERT INTO outbox_destination (name, paused, actor, reason, since_ms) VALUES (?, ?, ?, ?, ?)",
                       (name, bool(1) if POSTGRES else 1, "test", "x" * 800, now))
        db.execute("COMMIT")
        listener.state("dest-179")
        turns = 0
        while meter(world, "hikyaku_event_clients_cut_total") == 0:
            turns += 1
            assert turns < 200, "it was never cut"
            world.sql("UPDATE outbox_destination SET since_ms = since_ms + 1 WHERE name LIKE 'dest-%'")
            listener.state("dest-179")
        world.insert_many(20)
        world.settled(sent=20)
        assert meter(world, "hikyaku_event_listeners") == 1
        deaf.close()


class Command:
    """hikyaku events, whose lines are read as they come."""

    def __init__(self, place, *words):
        self.process = subprocess.Popen([BINARY, *place, "events", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=clean_environment())
        self.lines, self.all = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def next(self, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                break
            assert line is not None, f"it ended; before that: {self.all[-5:]}; {self.process.stderr.read()}"
            self.all.append(line)
            if what(line):
                return line
        raise AssertionError(f"no such line: {self.all[-10:]}")

    def ended(self):
        """(exit code, what it wrote to stderr)"""
        code = self.process.wait(timeout=PATIENCE)
        return code, self.process.stderr.read()


def places(world):
    """Where the command asks: at the relay, and on the database."""
    token = world.path("token-file")
    token.write_text(world.tokens["viewer"], encoding="ascii")
    return ("--server", f"http://{world.address}", "--token-file", str(token)), ("--config", str(world.config_path))


@test
def the_command_tells_the_same_at_a_relay_and_on_the_database():
    with served(destinations=("shop", "other")) as world:
        world.serve()
        world.receiver.on("shop", Answer(422))
        commands = [Command(place, "--json", "--types", "state", "--destination", "shop") for place in places(world)]
        texts = [Command(place, "--types", "state") for place in places(world)]
        for command in commands + texts:
            command.next(lambda line: "open" in line)
        world.insert(message_id="m")
        for command in commands:
            command.next(lambda line: json.loads(line)["data"].get("dead", {}).get("n") == 1)
            events = [json.loads(line) for line in command.all]
            assert {e["event"] for e in events} <= {"open", "state"}, events
            assert all(e["data"].get("destination") in (None, "shop") for e in events), events
        for command in texts:
            line = command.next(lambda line: "destination=shop" in line and "dead=1" in line)
            assert re.match(r"\d\d:\d\d:\d\d state ", line), line
        for command in commands + texts:
            command.process.send_signal(signal.SIGINT)
        for command in commands + texts:
            assert command.ended() == (0, ""), command.all[-3:]


@test
def the_command_ends_after_its_time_and_says_when_the_relay_ends_it():
    with served() as world:
        world.serve()
        remote, here = places(world)
        for command in [Command(place, "--json", "--for", "1s") for place in (remote, here)]:
            command.next(lambda line: json.loads(line)["event"] == "end")
            assert command.ended() == (0, ""), command.all
        wrong = Command(remote, "--types", "nothing")
        code, said = wrong.ended()
        assert code == 2 and "takes state, figures, alert" in said, (code, said)
        left = Command(remote, "--json", "--types", "alert")
        left.next(lambda line: "open" in line)
        world.relay.process.send_signal(signal.SIGTERM)
        code, said = left.ended()
        assert code == 69 and "has ended the stream" in said, (code, said)


if POSTGRES:
    @test
    def a_listener_at_one_relay_sees_what_another_does():
        with served(destinations=("shop", "other")) as world:
            world.serve()
            at_first = world.address
            world.receiver.on("shop", Answer(422))
            second = world.daemon("second").ready()
            second.says('"admin listening"')
            at_second = re.search(r'msg="admin listening" address=(\S+)', second.log())[1]
            assert at_first != at_second
            listener = Listener(world, address=at_first).opened()
            world.insert_many(20)
            listener.state("shop", dead=20)
            world.address = at_second
            world.api("boss").good("POST", "/destinations/other/pause", {"reason": "at the other one"})
            listener.state("other", paused=True)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
