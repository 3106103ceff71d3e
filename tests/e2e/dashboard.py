#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard, as people use it: a bad night and its rescue, log-in and roles, two operators at one letter, hostile text everywhere,
both languages, dark and light, a phone, the keyboard alone, a relay that dies while somebody looks. Debian's Chromium against a real
daemon (browser.py). Speaks TAP.

Usage: dashboard.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them; LETTERS=10000 is the size
of the bad night (default: 200, for all of a night's letters are delivered twice)."""
import http.client
import json
import os
import re
import sys
import urllib.parse

sys.dont_write_bytecode = True  # the source folder stays as it is
from api import Served
from browser import BROWSER, WEB
from ports import free_port
from support import POSTGRES, Answer, run_tests, sqlite_only, until

TESTS = []
MANY, FEW = int(os.environ.get("LETTERS", "200")), 30
SCREENS = ["", "?span=live", "dead", "dead?tab=letters", "dead?tab=figures", "dead/1", "dead/1?edit=yes", "dead/fix?filter=status:failed&jq=.a%3D1", "messages", "messages/order-0",
           "redrives", "redrives/1", "redrives/job/1", "redrives/new?filter=status:failed", "destinations", "destinations?new=yes", "destinations?edit=shop", "policies", "policies/standard?draft=max_attempts:%203", "alerts", "audit", "relays", "settings"]
LOOKS = [{"locale": "en-GB", "theme": "light"}, {"locale": "ja-JP", "theme": "dark", "width": 375}, {"locale": "en-GB", "theme": "dark"}, {"locale": "ja-JP", "theme": "light"}]
# Names that a configuration allows, and that a script may confuse with what every object of it has.
NAMES = ["__proto__", "constructor", "toString"]
# Each would show itself if it were taken as markup.
HOSTILE = ["<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "\"><svg onload=alert(3)>", "javascript:alert(4)", "{{constructor.constructor('alert(5)')()}}",
           "</textarea><iframe src=//example.com>", "'-alert(6)-'", "\u202egnp.exe"]


def test(function):
    TESTS.append(function)
    return function


def answer_billing(request):
    if "currency" in json.loads(request.body):
        return 200
    return Answer(422, {"Content-Type": "application/json"}, body=b'{"error":"currency is missing"}')


class Night(Served):
    """Orders without a currency, which the receiver refuses; a few customers that another one does not know."""

    def __init__(self, many=MANY, few=FEW, **more):
        super().__init__(destinations=("billing", "crm", "shop"), **more)
        self.config["channels"] = {"ops": {"slack": {"url": self.receiver.url("slack")}, "allow": ["127.0.0.0/8"]}}
        self.config["alerts"] = {"interval": "200ms", "resolve_after": "0s", "rules": [{"name": "dead-letter", "when": "dead_letter"}]}
        self.write_config()
        self.receiver.on("slack", Answer(200, body=b"ok"))
        self.receiver.on("billing", answer_billing)
        self.receiver.on("crm", Answer(400, {"Content-Type": "application/json"}, body=b'{"message":"customer unknown"}'))
        self.many, self.few = many, few

    def told(self, words):
        """Notices to people that hold these words."""
        return [text for text in (r.body.decode() for r in self.receiver.arrived(destination="slack")) if all(w in text for w in words)]

    def fall(self):
        db = self.connect()
        db.execute("BEGIN" if hasattr(db, "info") else "BEGIN IMMEDIATE")
        for i in range(self.many):
            self.insert(db=db, destination="billing", message_id=f"order-{i}", payload=json.dumps({"orderId": i, "customer": {"name": "山田"}}, ensure_ascii=False))
        for i in range(self.few):
            self.insert(db=db, destination="crm", event_type="CustomerChanged", message_id=f"customer-{i}", payload=json.dumps({"id": i}))
        db.execute("COMMIT")
        db.close()
        until(lambda: self.sql("SELECT count(*) FROM dead_letters")[0][0] == self.many + self.few, "letters")


# ---- the bad night ----

@test
def a_bad_night_is_rescued_in_a_few_clicks():
    """Of 10,000 letters with LETTERS=10000. PostgreSQL: two relays, of which one serves the page."""
    with Night() as world:
        world.serve()
        if POSTGRES:
            second = world.daemon("second").ready()
        world.fall()
        with BROWSER.visit(world.address) as anna:
            anna.go()
            anna.sees(f"{MANY:,} dead letters for billing have the same cause:")
            anna.sees("HTTP 422: currency is missing")
            anna.page.locator("nav .count").first.wait_for()  # and an alert fires
            until(lambda: world.told(["billing", "HTTP_422"]), "somebody to be told")
            anna.page.locator(".attention li", has_text="currency is missing").get_by_role("link").click()
            anna.clicks += 1
            anna.sees(f"All {MANY:,} that match")
            anna.click("Fix with jq")
            anna.fill("jq program", '.currency = "JPY"')
            anna.sees(f"{MANY:,} change")
            assert anna.page.locator("pre.diff .add", has_text='"currency": "JPY"').count() > 0
            anna.fill("Reason", "ticket 311: currency added")
            anna.click(f"Fix {MANY:,} and redrive")
            anna.sees("Redrive 1")
            waits = list(anna.waits)
            until(lambda: world.sql("SELECT count(*) FROM dead_letters WHERE status = 'resolved'")[0][0] == MANY, "the redrive's end", 1200)
            anna.sees(f"It has ended. All {MANY:,} arrived.")
            assert anna.clicks <= 8 and anna.entries <= 2, (anna.clicks, anna.entries)
            assert sum(1 for n in world.receiver.accepted("billing").values() if n == 1) == MANY
            until(lambda: world.told(["billing", "No open dead letters"]), "somebody to be told that it is over")
            anna.move("redrives/job/1")
            anna.sees("A redrive of these dead letters has started since:")  # nobody is asked to start it twice
            anna.move("")  # what is left is the other cause
            anna.sees(f"{FEW} dead letters for crm have the same cause:")
            assert anna.page.locator(".attention", has_text="billing").count() == 0
            assert world.sql("SELECT count(*) FROM dead_letters WHERE status = 'failed'")[0][0] == FEW
            # The redrive's own wait is not among them. A machine that is busy with something else says nothing about the page.
            assert os.getloadavg()[0] > os.cpu_count() or max(waits)[0] <= 2, max(waits)
            print(f"# {MANY} letters, {anna.clicks} clicks, {anna.entries} entries; the longest waits:",
                  ", ".join(f"{s:.2f} s ({words})" for s, words in sorted(waits, reverse=True)[:3]))
            discard_and_undo(anna, world)
            if POSTGRES:
                lose_the_other_relay(anna, world, second)


def lose_the_other_relay(anna, world, second):
    """It is killed while somebody watches: the page says so, and messages go out all the same."""
    anna.move("relays")
    until(lambda: anna.page.locator("td .chip", has_text="running").count() == 2, "both relays")
    second.process.kill()
    second.process.wait()
    until(lambda: anna.page.locator("td .chip", has_text="running").count() == 1, "the page to say that one is gone")
    world.insert(destination="billing", message_id="after", payload='{"currency":"JPY"}')
    until(lambda: world.receiver.accepted("billing")["after"] == 1, "a message after that")


def discard_and_undo(anna, world):
    anna.move("dead?tab=letters&filter=destination:crm")
    anna.sees(f"All {FEW} that match")
    anna.click("Discard")
    anna.page.locator("dialog").get_by_text(f"{FEW} dead letters", exact=True).wait_for()  # the count comes before the act
    anna.sees("CustomerChanged → crm")             # and so does an example
    anna.fill("Reason", "test data")
    anna.click(f"Discard: {FEW}")
    anna.sees(f"{FEW} changed")
    assert world.sql("SELECT count(*) FROM dead_letters WHERE status = 'discarded'")[0][0] == FEW
    anna.click("Undo")
    anna.sees(f"undone: {FEW}")
    assert world.sql("SELECT count(*) FROM dead_letters WHERE status = 'failed'")[0][0] == FEW


# ---- log-in, roles, sessions ----

def raw(address, method, path, headers=None):
    """(status, headers, body) of a request as it is written."""
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


@test
@sqlite_only
def a_token_logs_in_and_its_role_decides():
    with Night(many=3, few=0) as world:
        world.token("vera", "viewer")
        world.token("otto", "operator")
        world.serve()
        world.fall()
        with BROWSER.visit(world.address) as vera:
            vera.go("dead/1")
            vera.fill("Token", "hk_" + "x" * 49)
            vera.click("Log in")
            vera.sees("This is no valid token.")
            vera.fill("Token", world.tokens["vera"])
            vera.click("Log in")
            vera.sees("Dead letter 1")  # the address was kept
            requeue = vera.page.get_by_role("button", name="Requeue", exact=True)
            assert requeue.get_attribute("aria-disabled") == "true" and "operator" in requeue.get_attribute("title")
            cookies = vera.context.cookies()
            assert len(cookies) == 1 and cookies[0]["httpOnly"] and cookies[0]["sameSite"] == "Strict", cookies
            assert vera.page.evaluate("document.cookie") == "" and "hk_" not in vera.page.evaluate("JSON.stringify(localStorage)")
            refused = vera.page.evaluate("fetch('/api/v1/dead-letters/requeue', {method: 'POST', headers: {'Content-Type': 'application/json'}, "
                                         "body: JSON.stringify({ids: ['1'], reason: 'x'})}).then((r) => r.status)")
            assert refused == 403, refused  # by the server, too
            vera.page.reload()
            vera.sees("vera · viewer")
            world.hikyaku("token", "revoke", "vera", "--actor", "t", "--reason", "left")
            vera.move("settings")
            vera.page.get_by_label("Token").wait_for()  # within seconds, without a click
        with BROWSER.visit(world.address) as otto:
            otto.go()
            otto.fill("Token", world.tokens["otto"])
            otto.click("Log in")
            otto.sees("otto · operator")
            cookie = otto.context.cookies()[0]
            otto.click("Log out")
            otto.page.get_by_label("Token").wait_for()
            old = {"Cookie": f"{cookie['name']}={cookie['value']}"}
            assert raw(world.address, "GET", "/api/v1/me", old)[0] == 401  # the session is over, not only forgotten


@test
@sqlite_only
def a_cookie_counts_for_our_own_pages_only():
    with Night(many=1, few=0) as world:
        world.token("otto", "operator")
        world.serve()
        origin = {"Origin": f"http://{world.address}"}
        bearer = {"Authorization": f"Bearer {world.tokens['otto']}"}
        status, headers, _ = raw(world.address, "POST", "/ui/session", {**bearer, **origin})
        assert status == 204, status
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and world.tokens["otto"] not in cookie, cookie
        mine = {"Cookie": cookie.split(";")[0]}
        pause = "/api/v1/destinations/shop/pause"
        assert raw(world.address, "GET", "/api/v1/me", mine)[0] == 200
        assert raw(world.address, "GET", "/api/v1/me", {**mine, "Sec-Fetch-Site": "same-site"})[0] == 401
        assert raw(world.address, "GET", "/api/v1/me", {**mine, "Sec-Fetch-Site": "cross-site"})[0] == 401
        assert raw(world.address, "POST", pause, mine)[0] == 401  # it names no origin
        assert raw(world.address, "POST", pause, {**mine, "Origin": "http://evil.example"})[0] == 403
        assert raw(world.address, "POST", pause, {**mine, **origin})[0] == 400  # let in; the reason is missing
        assert raw(world.address, "POST", "/ui/session", {**origin, "Hikyaku-Ticket": "guess"})[0] == 401
        assert raw(world.address, "DELETE", "/ui/session", {**mine, **origin})[0] == 204
        assert raw(world.address, "GET", "/api/v1/me", mine)[0] == 401


@test
@sqlite_only
def a_ticket_opens_one_session():
    with Night(many=1, few=0, admin={"listen": "127.0.0.1:0", "auth": "tokens"}) as world:
        world.relay = world.daemon(env={"HIKYAKU_UI_TICKET": "sesame-of-the-test"}).ready()
        world.relay.says('"admin listening"')
        world.address = re.search(r'msg="admin listening" address=(\S+)', world.relay.log())[1]
        with BROWSER.visit(world.address) as guest, BROWSER.visit(world.address) as thief:
            guest.go("ticket/sesame-of-the-test")
            guest.sees("Nothing needs attention")
            assert "sesame" not in guest.page.url
            thief.go("ticket/sesame-of-the-test")
            thief.page.get_by_label("Token").wait_for()


@test
@sqlite_only
def files_are_served_strictly_and_kept():
    with Night(many=1, few=0) as world:
        world.serve()
        BROWSER.start()  # skips where there is no dashboard
        status, headers, page = raw(world.address, "GET", "/")
        policy = headers["Content-Security-Policy"]
        assert status == 200 and headers["Content-Type"].startswith("text/html") and "unsafe" not in policy, (status, policy)
        assert "frame-ancestors 'none'" in policy and "default-src 'none'" in policy and headers["X-Content-Type-Options"] == "nosniff"
        assert raw(world.address, "GET", "/", {"If-None-Match": headers["ETag"]})[0] == 304
        names = re.findall(r'(?:src|href)="(/ui/[^"]+)"', page.decode())
        assert len(names) > 10, names
        total = 0
        for name in names:
            status, headers, body = raw(world.address, "GET", name, {"Accept-Encoding": "gzip"})
            assert status == 200 and headers["Content-Encoding"] == "gzip" and "immutable" in headers["Cache-Control"], (name, status)
            assert headers["Content-Type"].split(";")[0] in ("text/javascript", "text/css", "image/svg+xml"), (name, headers["Content-Type"])
            total += len(body)
        assert total < 150000, total
        plain = raw(world.address, "GET", names[-1])
        assert plain[0] == 200 and "Content-Encoding" not in plain[1] and b"import" in plain[2]
        for wrong in ("/ui/nothing", "/ui/dev/main.js", "/ui/../etc/passwd"):
            assert raw(world.address, "GET", wrong)[0] == 404, wrong
        assert raw(world.address, "POST", "/")[0] in (403, 405)
        assert raw(world.address, "GET", "/", {"Host": "evil.example"})[0] == 421


# ---- what each role may do ----

# The buttons of these screens, and the least role that each needs.
NEEDED = {"dead/1": {"Edit": "operator", "Requeue": "operator", "Send once": "operator", "Mark as resolved": "operator", "Discard": "operator", "Add a note": "operator"},
          "dead?tab=letters": {"Fix with jq": "operator", "Redrive": "operator", "Requeue": "operator", "Mark as resolved": "operator", "Discard": "operator"},
          "destinations": {"Pause": "operator", "Send a test": "operator", "New destination": "admin"},
          "alerts": {"Mute": "operator"}, "settings": {"New token": "admin"}}
ROLES = ["viewer", "operator", "admin"]
CALLS = [("POST", "/api/v1/dead-letters/resolve", "operator"), ("POST", "/api/v1/destinations/shop/pause", "operator"), ("POST", "/api/v1/alerts/mute", "operator"),
         ("POST", "/api/v1/destinations", "admin"), ("PUT", "/api/v1/destinations/shop", "admin"), ("POST", "/api/v1/tokens", "admin")]


def check_buttons(person, role):
    for where, buttons in NEEDED.items():
        person.move(where)
        for name, needs in buttons.items():
            button = person.page.locator("main").get_by_role("button", name=name, exact=True).first
            button.wait_for()
            allowed = ROLES.index(role) >= ROLES.index(needs)
            title = button.get_attribute("title") or ""
            assert (button.get_attribute("aria-disabled") is None) == allowed, (role, where, name)
            word = {"admin": "administrator"}.get(needs, needs)
            assert allowed or word in title, (role, where, name, title)


@test
@sqlite_only
def every_role_sees_what_it_may_not_do_and_the_server_refuses_it():
    with Night(many=1, few=0) as world:
        for role in ROLES:
            world.token(role, role)
        world.serve()
        world.fall()
        for role in ROLES:
            with BROWSER.visit(world.address, theme="dark" if role == "operator" else "light") as person:
                person.go()
                person.accessible(("log-in", role))
                person.fill("Token", world.tokens[role])
                person.click("Log in")
                person.sees(f"{role} · ")
                check_buttons(person, role)
                for method, path, needs in CALLS:  # nothing changes: who is let in is told what is missing
                    status = person.page.evaluate("([method, path]) => fetch(path, {method, headers: {'Content-Type': 'application/json'}, body: '{}'}).then((r) => r.status)",
                                                  [method, path])
                    allowed = ROLES.index(role) >= ROLES.index(needs)
                    assert (status == 403) == (not allowed) and 400 <= status < 500, (role, path, status)


# ---- what an administrator does besides ----

def define(anna, world):
    anna.move("destinations")
    change = anna.page.locator("#destination-shop").get_by_role("button", name="Change", exact=True)
    change.wait_for()
    assert change.get_attribute("aria-disabled") == "true" and "configuration file" in change.get_attribute("title")
    anna.click("New destination")
    anna.fill("Name", "partner")
    anna.fill("Address", "ftp://partner.example/")
    anna.fill("Rate limit", "fast")
    anna.fill("Reason", "a new partner")
    anna.click("Create")
    for field in ("#f-http-url", "#f-limits-rate"):  # each error stands at its field
        anna.page.locator(f"{field}[aria-invalid=true]").wait_for()
        assert anna.page.locator(f"{field}-wrong").inner_text(), field
    assert world.api().ask("GET", "/destinations/partner")[0] == 404
    anna.fill("Address", world.receiver.url("partner"))
    anna.fill("Rate limit", "50/s")
    anna.fill("Private networks", "127.0.0.0/8")
    anna.click("Create")
    anna.sees("the store, version 1")
    world.insert(destination="partner", message_id="first")
    until(lambda: world.receiver.accepted("partner")["first"] == 1, "a message to a destination that was made here")
    change_and_meet_another(anna, world)
    delete(anna, world)


def change_and_meet_another(anna, world):
    anna.move("destinations?edit=partner")
    anna.fill("Concurrency", "2")
    anna.fill("Reason", "be gentle")
    text = json.dumps(world.destination("partner", limits={"rate": "10/s"}))
    world.api().good("PUT", "/destinations/partner", {"definition": text, "reason": "somebody else"})
    anna.click("Save")
    anna.sees("Somebody else has changed it meanwhile.")
    anna.click("Start from theirs")
    anna.page.locator("#f-limits-rate").wait_for()
    until(lambda: anna.page.locator("#f-limits-rate").input_value() == "10/s", "their definition")
    anna.fill("Concurrency", "2")
    anna.click("Save")
    anna.sees("the store, version 3")
    shown = world.api().good("GET", "/destinations/partner")
    assert shown["definition"]["limits"] == {"rate": "10/s", "concurrency": 2}, shown


def delete(anna, world):
    world.api().good("POST", "/destinations/partner/pause", {"reason": "so that one waits"})
    world.insert(destination="partner", message_id="late")
    anna.move("")
    anna.move("destinations")
    row = anna.page.locator("#destination-partner")
    row.get_by_role("link", name="1", exact=True).first.wait_for()  # one waits
    row.get_by_role("button", name="Delete", exact=True).click()
    anna.sees("1 message waits for it.")
    anna.fill("Reason", "the contract ended")
    button = anna.page.locator("dialog").get_by_role("button", name="Delete", exact=True)
    assert button.get_attribute("aria-disabled") == "true"
    anna.page.get_by_label("Delete it even if messages wait").check()
    button.click()
    row.get_by_text("not in the configuration").wait_for()  # a dead letter names it still
    until(lambda: world.letters().get("late") == "UNKNOWN_DESTINATION", "the message that waited to be a dead letter")


def queues(anna, world):
    anna.move("destinations")
    anna.click("New queue")
    dialog = anna.page.locator("dialog")
    dialog.get_by_label("Whole name").fill("projects/p/locations/l/queues/mails")
    dialog.get_by_label("Rate limit").fill("fast")
    dialog.get_by_label("Reason").fill("for the mails")
    dialog.get_by_role("button", name="Create").click()
    anna.page.locator("#queue-rate[aria-invalid=true]").wait_for()
    dialog.get_by_label("Rate limit").fill("5/s")
    dialog.get_by_label("Attempts").fill("7")
    dialog.get_by_role("button", name="Create").click()
    row = anna.page.locator("#queues tr", has_text="mails")
    row.get_by_text("5/s").wait_for()
    row.get_by_role("button", name="Change").click()
    dialog.get_by_label("Attempts").fill("unlimited")
    dialog.get_by_label("Reason").fill("they matter")
    dialog.get_by_role("button", name="Save").click()
    row.get_by_text("∞").wait_for()
    is_ = world.api().good("GET", "/queues/mails")
    assert is_["rate_per_s"] == 5 and is_["max_attempts"] is None, is_
    row.get_by_role("button", name="Pause").click()
    dialog.get_by_label("Reason").fill("wait")
    dialog.get_by_role("button", name="Pause").click()
    row.get_by_text("paused").wait_for()
    row.get_by_role("button", name="Delete").click()
    dialog.get_by_label("Reason").fill("no more mails")
    dialog.get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")
    assert world.api().good("GET", "/queues")["items"] == []


def draft(anna):
    anna.move("policies/standard")
    anna.click("Begin with the running policy")
    text = anna.page.locator("#draft")
    until(lambda: "max_attempts: 30" in text.input_value(), "the running policy")
    text.fill("preset: standard\nmax_attempts: 4\njitter: none")
    anna.sees("Draft: since the first")
    anna.sees("It gives up after 4 attempts")
    anna.page.get_by_role("img", name=re.compile("^Draft · With full jitter: peak of")).wait_for()
    assert "max_attempts" in urllib.parse.unquote(anna.page.url)  # the address can be sent to somebody
    text.fill("max_attempts: lots")
    anna.page.locator("#draft ~ .problem", has_text="/max_attempts").wait_for()
    anna.click("Drop the draft")
    text.wait_for(state="detached")


def mute(anna, world):
    anna.move("alerts")
    anna.click("Mute")
    anna.page.get_by_label("For", exact=True).select_option("6h")
    anna.fill("Reason", "we know")
    anna.page.locator("dialog").get_by_role("button", name="Mute", exact=True).click()
    anna.page.get_by_role("cell", name="we know").wait_for()
    mutes = world.api().good("GET", "/alerts")["mutes"]
    assert [(m["rule"], m["reason"]) for m in mutes] == [("dead-letter", "we know")], mutes
    assert mutes[0]["until"][:13] > mutes[0]["since"][:13], mutes  # hours later
    anna.click("Unmute")
    anna.fill("Reason", "over")
    anna.page.locator("dialog").get_by_role("button", name="Unmute", exact=True).click()
    anna.sees("Nothing is muted.")


def letters(anna, world):
    anna.move("dead/1")
    anna.click("Add a note")
    anna.fill("Reason", "asked billing")
    anna.page.locator("dialog").get_by_role("button", name="Add a note", exact=True).click()
    anna.sees("asked billing")
    anna.click("Mark as resolved")
    anna.fill("Reason", "done by hand")
    anna.click("Mark as resolved: 1")
    anna.sees("1 changed")
    anna.click("Close")
    anna.page.locator(".head .chip", has_text="resolved").wait_for()
    world.api().good("POST", "/dead-letters/discard", {"ids": ["2"], "reason": "test data"})
    anna.move("dead?tab=letters&filter=status:discarded")
    anna.sees("The one that matches")
    anna.click("Restore")
    anna.fill("Reason", "not test data")
    anna.click("Restore: 1")
    anna.sees("1 changed")
    assert world.sql("SELECT status FROM dead_letters ORDER BY id") == [("resolved",), ("failed",), ("failed",)]
    anna.click("Close")
    anna.move("dead")
    anna.page.get_by_role("img", name="2 in the last 24 hours").wait_for()  # its trend …
    anna.page.locator("details summary").first.click()
    anna.page.get_by_role("columnheader", name="billing · HTTP_422").wait_for()  # … and the table of it


def tokens(anna, world):
    """The last one: from the first token on nobody is let in without one."""
    anna.move("settings")
    anna.click("New token")
    anna.fill("Name", "otto")
    anna.page.get_by_label("Role", exact=True).select_option("admin")
    anna.fill("Reason", "on call")
    anna.click("Make the token")
    anna.sees("This is the only time that the token is shown.")
    token = anna.page.locator("dialog pre").inner_text()
    anna.click("Close")
    anna.page.get_by_label("Token").wait_for()  # the door is not open any more
    anna.fill("Token", token)
    anna.click("Log in")
    anna.sees("otto · administrator")
    anna.move("settings")
    anna.click("Revoke")
    anna.fill("Reason", "left")
    anna.page.locator("dialog").get_by_role("button", name="Revoke", exact=True).click()
    anna.page.get_by_label("Token").wait_for()  # its own session has ended
    assert raw(world.address, "GET", "/api/v1/me", {"Authorization": f"Bearer {token}"})[0] == 401


@test
@sqlite_only
def an_administrator_does_the_rest():
    with Night(many=3, few=0, definitions={"allow": ["127.0.0.0/8"]}, queues={"allow": ["127.0.0.0/8"]}) as world:
        world.serve()
        world.fall()
        with BROWSER.visit(world.address) as anna:
            anna.go()
            draft(anna)
            mute(anna, world)
            letters(anna, world)
            define(anna, world)
            queues(anna, world)
            tokens(anna, world)


# ---- two operators ----

@test
@sqlite_only
def two_operators_edit_one_letter():
    with Night(many=1, few=0) as world:
        world.serve()
        world.fall()
        with BROWSER.visit(world.address) as anna, BROWSER.visit(world.address) as ben:
            for who, name in ((anna, "anna"), (ben, "ben")):
                who.go("dead/1?edit=yes")
                who.fill("Payload", f'{{"orderId":0,"by":"{name}"}}')
                who.page.locator("pre.diff .add", has_text=name).first.wait_for()
                who.fill("Reason", "repair")
            anna.click("Save as a new version")
            anna.sees("version 2")
            ben.click("Save as a new version")
            ben.sees("Somebody else has saved version 2 meanwhile.")
            ben.sees('{"orderId":0,"by":"anna"}')
            assert "anna" in world.sql("SELECT payload FROM dead_letters")[0][0]
            ben.click("Keep my text on top of theirs")
            ben.page.locator("pre.diff .del", has_text="anna").first.wait_for()
            ben.click("Save as a new version")
            ben.sees("version 3")


# ---- hostile text ----

@test
@sqlite_only
def hostile_names_of_a_configuration():
    """Markup is refused as a name. What is allowed is shown, and so are the texts of a policy's rules, which may be anything."""
    rules = [{"match": "409", "header": "X-Note", "contains": text, "body": text, "class": "permanent"} for text in HOSTILE]
    with Night(many=1, few=0, policies={name: {"preset": "standard", "classify": rules} for name in NAMES}) as world:
        for name in NAMES:
            world.config["channels"][name] = {"slack": {"url": world.receiver.url("refuses")}, "allow": ["127.0.0.0/8"]}
            world.config["alerts"]["rules"].append({"name": name, "when": "dead_letter"})
            world.config["destinations"][name] = world.destination("billing", policy=name)
        world.receiver.on("refuses", Answer(500, body=HOSTILE[0].encode()))
        wrong = {**world.config, "policies": {text: {"preset": "standard"} for text in HOSTILE}, "channels": {text: world.config["channels"]["ops"] for text in HOSTILE},
                 "alerts": {"rules": [{"name": text, "when": "dead_letter"} for text in HOSTILE]}}
        world.write_config(json.dumps(wrong))
        code, said = world.try_hikyaku("config", "check")
        refused = [said.count(words) for words in ("is no name for a policy", "is no name for a channel", '"name" must be a name')]
        assert code == 78 and refused == [len(HOSTILE)] * 3, (code, said)
        world.write_config()
        world.serve()
        for name in NAMES:
            world.insert(destination=name, message_id=f"of-{name}", payload="{}")
        until(lambda: world.sql("SELECT count(*) FROM dead_letters")[0][0] == len(NAMES), "letters")
        for name in NAMES:
            world.api().good("POST", "/alerts/mute", {"rule": name, "for": "1h", "reason": HOSTILE[0]})
        with BROWSER.visit(world.address) as anna:
            anna.go()
            for where in ["", "dead", "dead?tab=figures", "messages", "destinations", "policies", "alerts", "audit"] + [f"policies/{name}" for name in NAMES] + [f"dead?tab=letters&filter=destination:{name}" for name in NAMES]:
                anna.move(where)
                nothing_of_it_is_markup(anna, where)
            anna.move("alerts")
            until(lambda: world.api().good("GET", "/alerts")["notices"], "a notice that was refused")
            for name in NAMES:
                anna.page.get_by_role("cell", name=name, exact=True).first.wait_for()
                anna.move(f"policies/{name}")
                anna.page.get_by_role("heading", name=name).first.wait_for()
                anna.page.get_by_text("YAML", exact=True).click()
                anna.page.locator("pre", has_text=HOSTILE[0]).wait_for()


def nothing_of_it_is_markup(anna, where):
    anna.loaded()
    anna.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    strange = anna.page.evaluate("document.querySelectorAll('img,iframe,object,embed,main script,[onerror],[onload],a[href^=\"javascript\"]').length")
    assert strange == 0, where
    assert not anna.page.evaluate("window.violations"), where


@test
@sqlite_only
def hostile_text_is_text_everywhere():
    with Night(many=1, few=0, definitions={"allow": ["127.0.0.0/8"]}, queues={"allow": ["127.0.0.0/8"]}) as world:
        words = json.dumps({"error": HOSTILE[0]}).encode()
        world.receiver.on("billing", Answer(422, {"Content-Type": "application/json", "X-Words": HOSTILE[2]}, body=words))
        world.receiver.on("shop", Answer(503, {"Content-Type": "text/html"}, body=HOSTILE[1].encode()))
        world.serve()
        for i, text in enumerate(HOSTILE):
            for destination in ("billing", "shop"):
                world.insert(destination=destination, event_type=f"T {text}", message_id=f"{destination}-{i} {text}", payload=json.dumps({"note": text, text: 1}), message_key=text, correlation_id=text,
                             headers=json.dumps({"X-Note": text.encode("ascii", "replace").decode()}))
        world.insert(destination=HOSTILE[0], event_type="T", message_id="nowhere")
        world.insert(destination="billing", message_id="sent", payload=json.dumps({"note": HOSTILE[0]}))
        world.insert(destination="shop", message_id="retried", payload=json.dumps({"note": HOSTILE[0]}))
        letters = 2 * len(HOSTILE) + 2  # the relay refuses headers like these; one is refused by its receiver, and one is retried
        until(lambda: world.sql("SELECT count(*) FROM dead_letters")[0][0] == letters, "letters")
        until(lambda: world.receiver.arrived("retried"), "a retry")
        world.hikyaku("dead", "note", "1", HOSTILE[1], "--actor", HOSTILE[0])
        anybody = world.api()
        anybody.good("POST", "/destinations/crm/pause", {"reason": HOSTILE[1]})
        anybody.good("POST", "/alerts/mute", {"rule": "dead-letter", "for": "1h", "reason": HOSTILE[0]})
        definition = json.dumps(world.destination("partner", http={"headers": {"X-Note": HOSTILE[2]}}))
        anybody.good("POST", "/destinations", {"destination": "partner", "definition": definition, "reason": HOSTILE[1]})
        anybody.good("POST", "/redrives", {"filter": "reason:HTTP_422", "reason": HOSTILE[0], "canary": 1})
        anybody.good("POST", "/queues", {"name": "projects/p/locations/l/queues/q", "reason": HOSTILE[2]})
        world.insert(destination="crm", message_id="cancelled", payload="{}")
        anybody.good("POST", "/messages/cancelled/cancel", {"reason": HOSTILE[0]})
        status, _, job = anybody.ask("POST", "/dead-letters/resolve", {"filter": "payload.note:1", "reason": HOSTILE[1], "background": True})
        assert status == 202, job
        world.hikyaku("token", "create", "gone", "--role", "viewer", "--actor", HOSTILE[0], "--reason", HOSTILE[1])
        token = json.loads(world.hikyaku("token", "create", "anna", "--role", "admin", "--actor", "t", "--reason", HOSTILE[2], "--json"))["token"]
        typed = [where + urllib.parse.quote(text) for where in ("dead?tab=letters&filter=", "messages?filter=", "policies/standard?draft=", "audit?by=") for text in HOSTILE[:2]]
        with BROWSER.visit(world.address) as anna:
            anna.go()
            anna.fill("Token", token)
            anna.click("Log in")
            anna.sees("anna · administrator")
            for where in SCREENS + typed + ["destinations?edit=partner", "audit?id=1", "messages/sent", "messages/retried", "messages/cancelled", "messages/" + message_path(world)]:
                anna.move(where)
                nothing_of_it_is_markup(anna, where)
            anna.move("messages/sent")
            anna.sees(HOSTILE[0])


def message_path(world):
    name = world.sql("SELECT message_id FROM dead_letters ORDER BY id")[0][0]
    return urllib.parse.quote(name, safe="")


# ---- how it looks ----

@test
@sqlite_only
def every_screen_is_accessible_in_both_languages_themes_and_widths():
    with Night(many=12, few=2) as world:
        world.serve()
        world.fall()
        world.hikyaku("dead", "note", "1", "seen", "--actor", "t")
        for how in LOOKS:
            with BROWSER.visit(world.address, **how) as anna:
                anna.go()
                for where in SCREENS:
                    anna.move(where)
                    anna.page.wait_for_selector("h1")
                    anna.accessible((where, how))
                    anna.fits((where, how))
                assert anna.page.evaluate("document.documentElement.lang") == how["locale"][:2]


@test
@sqlite_only
def both_languages_have_the_same_words():
    def keys(name):
        return set(re.findall(r"^  '((?:[^'\\]|\\.)*)':", (WEB / "words" / f"{name}.js").read_text(encoding="utf-8"), re.M))
    english, japanese = (keys(language) | keys(f"findings_{language}") for language in ("en", "ja"))
    assert len(japanese) > 300 and {k for k in english if not k.endswith("_one")} == japanese, english ^ japanese
    used, prefixes = set(), set()
    for path in [*WEB.glob("*.js"), *WEB.glob("screens/*.js")]:
        text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.M)
        for key, more in re.findall(r"(?<![\w.$])(?:t|known)\((?:[\w.]+ \? )?'([^']+)'(\s*\+)?", text):
            (prefixes if more else used).add(key)
        prefixes |= {f"{kind}." for kind in re.findall(r"\bsaid\('(\w+)'", text)}
        for pair in re.findall(r"\? '([a-z_]+\.[a-z_]+)' : '([a-z_]+\.[a-z_]+)'", text):
            used.update(pair)
    assert used <= english, used - english
    assert all(any(k.startswith(p) for k in english) for p in prefixes), prefixes
    unused = {k for k in japanese if k not in used and not any(k.startswith(p) for p in prefixes)}
    assert not unused, unused


# ---- the keyboard ----

@test
@sqlite_only
def the_keyboard_is_enough():
    with Night(many=3, few=1) as world:
        world.serve()
        world.fall()
        with BROWSER.visit(world.address) as anna:
            keys = anna.page.keyboard
            anna.go()
            anna.sees("dead letters for billing")
            keys.press("?")
            anna.page.get_by_role("dialog").wait_for()
            anna.accessible("the list of keys")
            keys.press("Escape")
            anna.page.get_by_role("dialog").wait_for(state="detached")
            anna.page.evaluate("document.activeElement.blur()")
            keys.press("g")
            keys.press("d")
            anna.sees("4 open dead letters in 2 groups")
            keys.press("/")
            keys.type("des")
            keys.press("ArrowDown")
            keys.press("Enter")
            anna.page.get_by_role("option", name="destination:billing").wait_for()
            keys.type("bil")
            keys.press("ArrowDown")
            keys.press("Enter")
            keys.press("Enter")
            anna.sees("3 open dead letters in 1 group")
            keys.press("Escape")
            anna.page.evaluate("document.activeElement.blur()")
            keys.press("j")
            anna.page.locator("tr.at").wait_for()
            keys.press("Enter")
            anna.sees("All 3 that match")
            anna.page.go_back()
            anna.sees("3 open dead letters in 1 group")


# ---- a relay that dies ----

@test
@sqlite_only
def a_relay_is_killed_while_somebody_looks():
    with Night(many=2, few=0) as world:
        world.config["admin"] = {"listen": f"127.0.0.1:{free_port()}"}
        world.write_config()
        relay = world.serve()
        with BROWSER.visit(world.address) as anna:
            anna.go()
            anna.page.locator(".live[data-state=on]").wait_for()
            relay.process.kill()
            relay.process.wait()
            anna.sees("No connection")
            anna.sees("You see what it last said.")
            world.serve()
            anna.page.locator(".live[data-state=on]").wait_for()
            world.fall()
            anna.sees("2 dead letters for billing have the same cause:")  # it listens again


if __name__ == "__main__":
    try:
        code = run_tests(TESTS)
    finally:
        BROWSER.close()
    sys.exit(code)
