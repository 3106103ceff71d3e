#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that lie: a live name server answers with a public address first and a private one next, mixes them, hides them
behind aliases. The network is one in which every address there is leads to our listener, which sees the address that was
really connected to: it must be one that the policy allows, for each way that a request can travel. Speaks TAP.

Usage: rebind.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import contextlib
import random
import shutil
import signal
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
import egress
import nowhere
from nowhere import A, AAAA
from support import Answer, QUICK, World, run_tests, until

PUBLIC = {A: "93.184.216.34", AAAA: "2606:2800:220:1:248:1893:25c8:1946"}
OTHER = {A: "8.8.4.4", AAAA: "2001:4860:4860::8844"}
PRIVATE = {A: "10.1.2.3", AAAA: "fd00::3"}
METADATA = {A: "169.254.169.254", AAAA: "fd00:ec2::254"}
GOOD = {*PUBLIC.values(), *OTHER.values()}
SPECIAL = {
    A: ["0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.1.2.3", "168.63.129.16",
        "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
        "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255"],
    AAAA: ["::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:7f00:1", "64:ff9b::7f00:1",
           "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::1", "3fff::1", "fc00::1", "fd00:ec2::254",
           "fe80::1", "fe80::5efe:7f00:1", "fec0::1", "ff02::1", "4000::1"],
}
WAYS = ("own", "libcurl", "tls")  # a dot at the end of a name is left to libcurl, and so is TLS
if shutil.which("tinyproxy"):
    WAYS += ("proxy",)
else:
    print("# tinyproxy is not installed (Debian: tinyproxy-bin): nothing goes by a proxy")
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Net(World):
    make_receiver = nowhere.Everywhere

    def __init__(self, names, **more):
        """`names`: {name: entry of the zone}; a destination for each, by each way."""
        self.stack = contextlib.ExitStack()
        if "proxy" in WAYS:  # where a name leads to is the relay's to find out, not the proxy's
            more["proxies"] = {"tiny": egress.entry(egress.Tinyproxy(self.stack).start().port)}
        super().__init__(destinations=(), init=False, **more)
        SERVER.zone = {f"{name}.example.test": entry for name, entry in names.items()}
        SERVER.asked.clear()
        self.names, self.round = list(names), 0
        self.configure()
        self.hikyaku("init")

    def __exit__(self, *how):
        try:
            super().__exit__(*how)
        finally:
            self.stack.close()

    def daemon(self, name="relay", env=None, **more):
        return super().daemon(name, env={**egress.ENV, **(env or {})}, **more)

    def configure(self, **more):
        """Each time with another header, so that a reload makes every destination anew."""
        r, self.round = self.receiver, self.round + 1
        where = {"own": f"http://%s.example.test:{r.plain_port}", "libcurl": f"http://%s.example.test.:{r.plain_port}",
                 "tls": f"https://%s.example.test:{r.tls_port}", "proxy": f"http://%s.example.test:{r.plain_port}"}
        for name in self.names:
            for way, url in ((way, where[way]) for way in WAYS):
                http = {"url": f"{url % name}/{way}-{name}", "headers": {"X-Round": str(self.round)}}
                if way == "tls":
                    http["ca_file"] = r.cert
                by = {"proxy": "tiny"} if way == "proxy" else {}
                self.config["destinations"][f"{way}-{name}"] = {"http": http, **by, **more}
        self.write_config()

    def go(self, tag):
        """A message to each destination, seen through to its end. Returns what became of them, by destination."""
        for name in self.config["destinations"]:
            self.insert(destination=name, message_id=f"{tag}-{name}")
        left = "SELECT count(*) FROM outbox_messages WHERE status NOT IN ('sent', 'dead')"
        until(lambda: self.sql(left) == [(0,)], lambda: f"an end of {self.statuses()}")
        rows = self.sql("SELECT destination, status FROM outbox_messages WHERE message_id LIKE ? || '-%'", tag)
        return dict(rows)

    def reload(self, daemon):
        ended = daemon.log().count("msg=reloaded")
        self.configure()
        daemon.signal(signal.SIGHUP)
        daemon.says("msg=reloaded", ended + 1)

    def met(self):
        with self.receiver.lock:
            return set(self.receiver.connections)

    def check_letters(self):
        reasons = {reason for reason, in self.sql("SELECT reason_code FROM dead_letters")}
        assert reasons <= {"BLOCKED_BY_POLICY"}, self.sql("SELECT destination, reason_code, last_error FROM dead_letters")


def always(kind, value):
    return lambda asked, _: [value] if asked == kind else []


@test
def a_name_of_a_special_address_is_blocked():
    names = {f"s{kind}-{i}": always(kind, value) for kind, values in SPECIAL.items() for i, value in enumerate(values)}
    with Net(names) as w:
        daemon = w.daemon().ready()
        ends = w.go("x")
        assert set(ends.values()) == {"dead"} and len(ends) == len(names) * len(WAYS), ends
        w.check_letters()
        assert not w.met(), w.receiver.connections
        daemon.stop()
        print(f"# {len(ends)} destinations, none connected to")


@test
def a_listed_address_is_reached_and_its_neighbours_are_not():
    names = {"in": always(A, "10.1.2.3"), "out": always(A, "10.2.0.1"), "meta": always(A, METADATA[A])}
    with Net(names) as w:
        w.configure(allow=["10.1.0.0/16"])
        daemon = w.daemon().ready()
        ends = w.go("x")
        assert ends == {f"{way}-{name}": "sent" if name == "in" else "dead" for way in WAYS for name in names}, ends
        assert w.met() == {"10.1.2.3"}, w.receiver.connections
        daemon.stop()


def flip(good, bad):
    return lambda kind, n: [good[kind]] if n % 2 == 0 else [bad[kind]]


@test
def an_answer_that_changes_is_judged_anew_each_time():
    """Public at the first question, private at the next, for five rounds of questions."""
    names = {"flip": flip(PUBLIC, PRIVATE), "flop": flip(METADATA, PUBLIC),
             "v4": lambda kind, n: [(PUBLIC, METADATA)[n % 2][A]] if kind == A else [],
             "v6": lambda kind, n: [(PUBLIC, METADATA)[n % 2][AAAA]] if kind == AAAA else [],
             "late": lambda kind, n: [PUBLIC[kind]] if n < 3 else [METADATA[kind]],
             "loop": lambda kind, n: [PUBLIC[kind]] if n % 3 else [{A: "127.0.0.1", AAAA: "::1"}[kind]]}
    with Net(names) as w:
        daemon = w.daemon().ready()
        seen = set()
        for i in range(5):
            ends = w.go(f"r{i}")
            seen |= set(ends.values())
            w.reload(daemon)
        assert seen == {"sent", "dead"}, seen  # both kinds of answers were met
        w.check_letters()
        assert w.met() and w.met() <= GOOD, w.receiver.connections
        daemon.stop()
        print(f"# {sum(SERVER.asked.values())} questions, connections: {dict(w.receiver.connections)}")


@test
def of_mixed_answers_only_the_allowed_ones_are_used():
    choose = random.Random(7)

    def shuffled(kind, _):
        values = [PUBLIC[kind], PRIVATE[kind], METADATA[kind], OTHER[kind], *SPECIAL[kind][:6]]
        choose.shuffle(values)
        return values

    names = {"private-first": lambda kind, _: [PRIVATE[kind], PUBLIC[kind]],
             "public-first": lambda kind, _: [PUBLIC[kind], METADATA[kind]],
             "split": lambda kind, _: [PUBLIC[A]] if kind == A else [METADATA[AAAA]],
             "split6": lambda kind, _: [METADATA[A]] if kind == A else [PUBLIC[AAAA]],
             "shuffled": shuffled, "all-bad": lambda kind, _: [PRIVATE[kind], METADATA[kind]]}
    with Net(names) as w:
        daemon = w.daemon().ready()
        for i in range(3):
            ends = w.go(f"r{i}")
            for way in WAYS:
                # libcurl gives up on a name most of whose addresses are refused to it
                assert ends.pop(f"{way}-shuffled") == "sent" or way != "own"
            assert ends == {f"{way}-{name}": "dead" if name == "all-bad" else "sent"
                            for way in WAYS for name in names if name != "shuffled"}, ends
            w.reload(daemon)
        w.check_letters()
        assert w.met() <= GOOD, w.receiver.connections
        daemon.stop()


@test
def an_alias_is_judged_by_where_it_ends():
    def alias(to, values):
        return lambda kind, _: [("CNAME", to, [values[kind]])]

    names = {"good": alias("cdn.test", PUBLIC), "meta": alias("cdn.test", METADATA),
             "looks-public": alias("93.184.216.34.test", PRIVATE),
             "flip": lambda kind, n: [("CNAME", "x.test", [(PUBLIC, METADATA)[n % 2][kind]])]}
    with Net(names) as w:
        daemon = w.daemon().ready()
        for i in range(4):
            ends = w.go(f"r{i}")
            assert {ends[f"{way}-good"] for way in WAYS} == {"sent"}, ends
            assert {ends[f"{way}-{name}"] for way in WAYS for name in ("meta", "looks-public")} == {"dead"}, ends
            w.reload(daemon)
        w.check_letters()
        assert w.met() <= GOOD, w.receiver.connections
        daemon.stop()


@test
def a_reused_connection_stays_where_it_was_judged():
    """The name turns private as soon as the connection stands; later ones are made with what is then true."""
    turned = []
    names = {"shop": lambda kind, _: [METADATA[kind] if turned else PUBLIC[kind]]}
    with Net(names) as w:
        daemon = w.daemon().ready()
        assert set(w.go("first").values()) == {"sent"}
        turned.append(True)
        made = sum(w.receiver.connections.values())
        for i in range(10):
            assert set(w.go(f"m{i}").values()) == {"sent"}
        assert sum(w.receiver.connections.values()) == made == len(WAYS), w.receiver.connections
        for way in WAYS:  # the server gives them up; whether an answer is still believed is the client's choice
            w.receiver.on(f"{way}-shop", Answer(200, {"Connection": "close"}))
        w.go("closing")
        w.go("closed")
        assert w.met() <= GOOD, w.receiver.connections
        w.reload(daemon)
        assert set(w.go("anew").values()) == {"dead"}
        w.check_letters()
        assert w.met() <= GOOD, w.receiver.connections
        daemon.stop()


@test
def no_redirect_is_followed_wherever_it_leads():
    names = {"shop": lambda kind, _: [PUBLIC[kind]]}
    with Net(names, policies={"once": {**QUICK, "max_attempts": 1}}) as w:
        w.configure(policy="once")
        daemon = w.daemon().ready()
        r = w.receiver
        for i, (status, to) in enumerate((s, t) for s in (300, 301, 302, 303, 307, 308) for t in (
                f"http://169.254.169.254:{r.plain_port}/latest/meta-data/", f"//127.0.0.1:{r.plain_port}/",
                f"http://shop.example.test:{r.plain_port}/elsewhere", "file:///etc/passwd")):
            for way in WAYS:
                r.on(f"{way}-shop", Answer(status, {"Location": to, "Refresh": f"0; url={to}"}))
            ends = w.go(f"r{i}")
            assert set(ends.values()) == {"dead"}, (status, to, ends)
        assert w.met() <= GOOD, r.connections
        paths = {request.path for request in r.arrived()}
        assert paths == {f"/{way}-shop" for way in WAYS}, paths
        assert max(r.seen.values()) == 1, "each was asked once"
        daemon.stop()


if __name__ == "__main__":
    nowhere.enter()
    SERVER = nowhere.NameServer()
    sys.exit(run_tests(TESTS))
