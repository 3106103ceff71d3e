#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard screen by screen, in Debian's Chromium against a real daemon: live charts, figures, long lists, search, the life of a
message, redrives and jobs, empty screens, what is left without live events, and a rescue by the keyboard alone. dashboard.py has the bad
night, roles, hostile text and looks. Speaks TAP.

Usage: dashboard_screens.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import datetime
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
from browser import BROWSER
from dashboard import Night
from support import BINARY, Answer, run_tests, sqlite_only, until

TESTS = []
HERE = pathlib.Path(__file__).resolve().parent
LATER_S = 3600
POLLS_S = 12  # without events a page asks again every ten seconds


def test(function):
    TESTS.append(function)
    return function


# ---- overview ----

def charts(anna, world):
    """The live charts gain points, and each chart has its table."""
    anna.move("?span=live")
    anna.sees("The last five minutes, live")
    titles = ["Attempts per second", "Latency of the slowest destination", "Backlog", "Dead letters"]
    for title in titles:
        anna.page.get_by_role("img", name=f"Chart: {title}.").wait_for()
    anna.page.evaluate("document.querySelectorAll('.chart ~ details').forEach((d) => { d.open = true })")
    rows = anna.page.locator("table", has=anna.page.get_by_text("Attempts per second", exact=True)).locator("tbody tr")
    until(lambda: rows.count() >= 3, "points of the live chart")
    world.insert(destination="billing", message_id="live", payload='{"currency":"JPY"}')
    slowest = anna.page.locator("table", has=anna.page.get_by_text("Latency of the slowest destination", exact=True)).locator("tbody tr").first
    until(lambda: re.search(r"\d\s+\d", slowest.inner_text()), "a latency")
    anna.click("6 hours")
    anna.page.wait_for_url("**/#/?span=6h")  # the span can be sent to somebody
    anna.page.go_back()
    anna.sees("The last five minutes, live")


def figures(anna, world):
    """Requirement 113: per day, by reason, by type, age, success of requeues; each chart with its numbers."""
    anna.move("dead?tab=figures")
    anna.page.get_by_role("img", name="Chart: New per day.").wait_for()
    anna.page.locator("details summary").first.click()
    today = anna.page.locator("details table tbody tr").first
    assert "305" in today.inner_text(), today.inner_text()
    for title, name, n in (("By reason", "HTTP_422", "300"), ("By event type", "OrderCreated", "300"), ("By destination", "crm", "5"),
                           ("Where it failed", "the destination refused it", "305")):
        row = anna.page.get_by_role("table", name=title, exact=True).get_by_role("row").filter(has_text=name)
        assert row.locator("td.n").inner_text() == n and row.locator(".fill").count() == 1, (title, row.inner_text())
    anna.sees("Nobody has requeued a dead letter yet.")
    ages = anna.page.get_by_role("table", name="Age of the oldest").locator("tbody tr")
    assert ages.count() == 10 and re.search(r"\d (s|min|ms)", ages.first.inner_text()), ages.first.inner_text()
    world.api().good("POST", "/dead-letters/requeue", {"filter": "destination:crm", "reason": "again"})
    anna.page.get_by_role("table", name="What became of requeued letters").get_by_role("row").filter(has_text="Died again").filter(has_text="5").wait_for()
    anna.page.get_by_role("link", name="HTTP_400").first.click()
    anna.sees("All 5 that match")  # a bar leads to its letters


# ---- long lists ----

def long_list(anna):
    """A page has 200 rows, of which the browser draws those in sight; the address holds the page."""
    anna.move("dead?tab=letters&filter=destination:billing")
    anna.sees("All 300 that match")
    rows = anna.page.locator("table[aria-rowcount='201'] tbody tr[aria-rowindex]")
    rows.first.wait_for()
    until(lambda: 10 < rows.count() < 120, lambda: f"some of 200 rows, not {rows.count()}")
    anna.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    anna.page.locator("tr[aria-rowindex='201']").wait_for()
    assert anna.page.locator("tr[aria-rowindex='2']").count() == 0
    anna.page.keyboard.press("j")  # the first row comes into sight again
    anna.page.locator("tr.at[aria-rowindex='2']").wait_for()
    anna.sees("1–200 of 300")
    anna.page.get_by_role("link", name="Next page").click()
    anna.sees("201–300 of 300")
    address = anna.page.url
    anna.page.go_back()
    anna.sees("1–200 of 300")
    anna.page.goto(address)
    anna.page.reload()
    anna.sees("201–300 of 300")


def pages_of_a_phone(world):
    """They are shorter there, and one that is sent to somebody begins at the same row on a large screen."""
    with BROWSER.visit(world.address, width=375) as phone:
        phone.go("dead?tab=letters&filter=destination:billing")
        phone.sees("1–50 of 300")
        phone.page.get_by_role("link", name="Next page").click()
        phone.sees("51–100 of 300")
        until(lambda: phone.page.evaluate("scrollY") < 100, "the page to begin at its top")
        phone.fits("the second page")
        phone.page.get_by_role("link", name="Next page").click()
        phone.sees("101–150 of 300")
        phone.page.get_by_role("link", name="Previous page").click()
        phone.sees("51–100 of 300")
        address = phone.page.url
        phone.page.get_by_role("link", name="Previous page").click()
        phone.sees("1–50 of 300")
    with BROWSER.visit(world.address) as ben:
        ben.page.goto(address)
        ben.sees("51–250 of 300")
        ben.page.get_by_role("link", name="Next page").click()
        ben.sees("251–300 of 300")


# ---- search, and a message ----

def search(anna):
    """Each term of the issue's example is completed, and the whole of it finds the one message."""
    anna.move("messages")
    box = anna.page.get_by_role("combobox")
    box.wait_for()
    for typed, offered in (("dest", "destination:"), ("dest:sh", "dest:shop"), ("stat", "status:"), ("status:re", "status:retrying"), ("ty", "type:"), ("type:Order", "type:OrderPaid"),
                           ("ke", "key:"), ("key:4", "key:42"), ("pay", "payload."), ("ag", "age:"), ("age:>", "age:>1h"), ("age:<", "age:<24h")):
        box.fill(typed)
        anna.page.get_by_role("option").filter(has_text=offered).first.wait_for()
    box.fill("dest:shop status:retrying type:Order* key:42 payload.customer.id:7 age:<1h")
    box.press("Enter")
    anna.page.get_by_text("1 message", exact=True).wait_for()
    assert anna.page.locator("tbody tr").count() == 1
    box.fill("dest:shop age:>1h")
    box.press("Enter")
    anna.sees("No message fits this filter.")
    box.fill("age:1h")
    box.press("Enter")
    anna.sees('column 1: "age": > or < is expected')
    anna.page.go_back()
    anna.page.go_back()
    anna.page.get_by_role("link", name="paid-1").click()


def message(anna, world):
    """States in time, the attempt with request and response, the next attempt and why, and the same request as curl."""
    life = anna.page.locator("ol.life")
    life.get_by_text("Committed").wait_for()
    life.get_by_text("Attempt 1 · HTTP 503").wait_for()
    life.get_by_text("Next attempt").wait_for()
    anna.sees("It waits for its time.")
    anna.page.locator(".note").filter(has_text=re.compile("Retry-After|retry", re.I)).first.wait_for()
    time = life.locator("time").first
    shown, hover = time.inner_text(), time.get_attribute("title")
    utc = datetime.datetime.strptime(re.search(r"(\S+ \d\d:\d\d:\d\d)[.\d]*Z$", hover)[1], "%Y-%m-%d %H:%M:%S")
    tokyo = utc + datetime.timedelta(hours=9)  # the viewer's zone in these tests
    assert tokyo.strftime("%H:%M:%S") in shown, (shown, hover)
    attempt = anna.page.locator("details", has_text="Attempt 1").first
    attempt.locator("summary").click()
    for words in ("Request headers", "Response headers", "Retry-After: 3600", "closed for stocktaking"):
        attempt.get_by_text(words).first.wait_for()
    anna.context.grant_permissions(["clipboard-read", "clipboard-write"])
    attempt.get_by_role("button", name="Copy as curl").click()
    anna.sees("Copied")
    command = anna.page.evaluate("navigator.clipboard.readText()")
    before = len(world.receiver.arrived("paid-1"))
    done = subprocess.run(["sh", "-c", command + " --silent --max-time 60"], capture_output=True, text=True, timeout=90, check=True)
    assert "503" in done.stdout and len(world.receiver.arrived("paid-1")) == before + 1, (command, done.stdout)
    sent = world.receiver.arrived("paid-1")
    assert sent[-1].body == sent[0].body, (sent[0].body, sent[-1].body)


# ---- redrives and jobs ----

def redrive(anna, world):
    """A plan, a canary that fails, what became of each part and why; then one that is cancelled on its way."""
    anna.move("redrives/new?filter=destination:crm")
    anna.sees("5 dead letters, about")
    anna.page.get_by_label("Canary").fill("2")
    anna.fill("Reason", "is the customer known now?")
    anna.click("Redrive 5")
    anna.sees("a canary failed again")
    row = anna.page.get_by_role("row").filter(has_text="crm").first
    row.get_by_role("link", name=re.compile("^[12]$")).wait_for()  # the second one may have been on its way
    again = anna.page.get_by_role("row").filter(has_text="HTTP 400: customer unknown")
    again.get_by_role("link").click()
    anna.sees(re.compile("^(All 2 that match|The one that matches)$"))
    anna.move("redrives/new?filter=destination:billing")
    anna.page.get_by_label("Canary").fill("0")
    anna.page.get_by_label("Rate", exact=True).fill("1/s")
    anna.page.get_by_label("Abort when failing").fill("100%")
    anna.fill("Reason", "slowly")
    anna.click("Redrive 300")
    anna.sees("of 300 requeued")
    anna.click("Cancel the redrive")
    anna.fill("Reason", "not now")
    anna.page.locator("dialog").get_by_role("button", name="Cancel the redrive").click()
    anna.page.locator(".head .chip", has_text="cancelled").wait_for()
    assert world.api().good("GET", "/redrives/2")["status"] == "cancelled"


def job(anna, world):
    anna.move("dead?tab=letters&filter=destination:crm")
    anna.sees("All 5 that match")
    anna.click("Mark as resolved")
    anna.fill("Reason", "by hand")
    anna.click("Mark as resolved: 5")
    anna.sees("5 changed")
    anna.click("Close")
    anna.move("redrives")
    anna.page.locator("section", has_text="Jobs").get_by_role("link", name="1", exact=True).last.click()
    anna.sees("What became of it")
    items = anna.page.locator("section", has_text="What became of it").locator("tbody tr")
    until(lambda: items.count() == 5, lambda: f"five items, not {items.count()}")
    anna.sees("by hand")
    anna.page.get_by_text("The request").click()
    anna.page.locator("pre", has_text="destination:crm").first.wait_for()
    anna.click("In the audit", role="link")
    anna.page.wait_for_url("**/#/audit?id=*")


@test
@sqlite_only
def every_screen_does_what_it_promises():
    with Night(many=300, few=5) as world:
        closed = Answer(503, {"Retry-After": str(LATER_S), "Content-Type": "text/plain"}, body=b"closed for stocktaking")
        world.receiver.on("shop", closed)
        world.serve()
        world.insert(destination="shop", event_type="OrderPaid", message_id="paid-1", message_key="42", payload='{"customer":{"id":7},"words":"it\'s \\"paid\\""}')
        world.insert(destination="shop", event_type="OrderPaid", message_id="paid-2", message_key="43", payload='{"customer":{"id":8}}')
        world.fall()
        with BROWSER.visit(world.address) as anna:
            anna.go()
            charts(anna, world)
            figures(anna, world)
            long_list(anna)
            pages_of_a_phone(world)
            search(anna)
            message(anna, world)
            redrive(anna, world)
            job(anna, world)


# ---- one letter, one destination, one policy ----

def send_once(anna, world):
    """Refused, it stays open; delivered, it is resolved. The dialog shows what the receiver said."""
    letter = world.sql("SELECT id FROM dead_letters WHERE destination = 'crm'")[0][0]
    anna.go(f"dead/{letter}")
    dialog = anna.page.locator("dialog")

    def send(outcome, words):
        before = len(world.receiver.arrived("customer-0"))
        anna.click("Send once")
        dialog.get_by_label("Reason").fill("is the customer known now?")
        dialog.get_by_role("button", name="Send once", exact=True).click()
        dialog.locator(".chip", has_text=re.compile(f"[✓✕]{outcome}$")).wait_for()
        for text in words:
            dialog.get_by_text(text).first.wait_for()
        dialog.get_by_role("button", name="Close").click()
        assert len(world.receiver.arrived("customer-0")) == before + 1

    send("not delivered", ["HTTP 400", "customer unknown"])
    assert world.sql("SELECT status FROM dead_letters WHERE destination = 'crm'") == [("failed",)]
    anna.page.locator(".head .chip", has_text="open").wait_for()
    world.receiver.on("crm", Answer(200, body=b"welcome"))
    send("delivered", ["HTTP 200", "welcome"])
    anna.page.locator(".head .chip", has_text="resolved").wait_for()
    assert world.sql("SELECT status FROM dead_letters WHERE destination = 'crm'") == [("resolved",)]
    assert anna.page.get_by_role("button", name="Send once", exact=True).get_attribute("aria-disabled") == "true"


def pause_resume_and_test(anna, world):
    anna.move("destinations")
    row, dialog = anna.page.locator("#destination-shop"), anna.page.locator("dialog")
    row.get_by_role("button", name="Pause", exact=True).click()
    dialog.get_by_label("Reason").fill("stocktaking")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    row.locator(".chip", has_text="paused").wait_for()
    row.get_by_text("stocktaking").wait_for()
    world.insert(destination="shop", message_id="held")
    row.get_by_role("button", name="Resume", exact=True).click()
    assert not world.receiver.arrived("held")
    dialog.get_by_label("Reason").fill("counted")
    dialog.get_by_role("button", name="Resume", exact=True).click()
    until(lambda: world.receiver.accepted("shop")["held"] == 1, "the message that waited")
    row.get_by_role("button", name="Pause", exact=True).wait_for()
    acts = [(row["act"], row["reason"]) for row in world.api().good("GET", "/audit")["items"][:2]]
    assert acts == [("resume", "counted"), ("pause", "stocktaking")], acts
    for answer, outcome, words in ((Answer(200, body=b"here I am"), "delivered", "here I am"), (Answer(503, body=b"closed today"), "not delivered", "closed today")):
        world.receiver.on("shop", answer)
        before = len(world.receiver.arrived(destination="shop"))
        row.get_by_role("button", name="Send a test", exact=True).click()
        anna.sees("Test of shop")
        dialog.locator(".chip", has_text=re.compile(f"[✓✕]{outcome}$")).wait_for()
        dialog.get_by_text(f"HTTP {answer.status}").first.wait_for()
        dialog.get_by_text(words).first.wait_for()
        dialog.get_by_role("button", name="Close").click()
        assert len(world.receiver.arrived(destination="shop")) == before + 1  # one request, and no retry


def herd(anna):
    """{what the herd is called: its peak}, as the pictures say it."""
    labels = [picture.get_attribute("aria-label") for picture in anna.page.get_by_role("img", name=re.compile("peak of")).all()]
    return {name: int(peak.replace(",", "")) for name, peak in (re.match(r"(.*): peak of ([\d,]+) attempt", label).groups() for label in labels)}


def simulator(anna):
    """A slider moves both herds, and without jitter the herd is the worse one."""
    anna.move("policies/standard")
    until(lambda: len(herd(anna)) == 2, "both herds")
    few = herd(anna)
    slider = anna.page.get_by_label("Clients:")
    slider.focus()
    for _ in range(2):
        anna.page.keyboard.press("ArrowRight")
    anna.sees("Clients: 1,000")
    until(lambda: len(herd(anna)) == 2 and all(peak != few[name] for name, peak in herd(anna).items()), lambda: f"other herds than {few}")
    many = herd(anna)
    with_jitter, without = next(n for n in many if "jitter" not in n), next(n for n in many if "Without jitter" in n)
    assert many[without] > many[with_jitter] and all(many[name] > few[name] for name in few), (few, many)
    served = anna.page.locator("table", has_text="99 % served after").locator("tbody tr").first
    before = served.inner_text()
    anna.page.get_by_label("Outage:").focus()
    anna.page.keyboard.press("End")
    anna.sees("Outage: 5 min")
    until(lambda: served.count() and served.inner_text() != before, "another outage to be simulated")


def ramp(anna, world):
    for want in (False, True):
        anna.move("redrives")
        anna.move("redrives/new?filter=destination:billing")
        box = anna.page.get_by_label("Begin slowly, and reach the rate step by step")
        box.set_checked(want)
        anna.page.get_by_label("Rate", exact=True).fill("40/s")
        anna.fill("Reason", "with a ramp" if want else "without one")
        anna.click("Redrive 3")
        anna.sees("a canary failed again")
        is_ = world.api().good("GET", f"/redrives/{2 if want else 1}")
        assert bool(is_["ramp_ms"]) == want and is_["rate_per_s"] == 40, is_
        assert anna.page.locator("dt", has_text="Ramp").count() == want


def close_the_page_of_a_fix(anna, world):
    """The page would start the redrive. If it is closed before the fix ends, the page of the job offers the redrive."""
    anna.move("dead/fix?filter=destination:billing")
    anna.fill("jq program", '.currency = "JPY"')
    anna.sees("3 change")
    anna.fill("Reason", "ticket 311")
    anna.context.route("**/api/v1/jobs/*", lambda route: None)  # this page does not see the end
    anna.click("Fix 3 and redrive")
    anna.sees("Keep this page open")
    anna.context.unroute("**/api/v1/jobs/*")
    anna.click("Job 1", role="link")
    anna.sees("The fix alone sends nothing.")
    assert [r["id"] for r in world.api().good("GET", "/redrives")["items"]] == ["2", "1"]
    job = anna.page.url
    anna.click("Redrive what was fixed")
    anna.fill("Reason", "ticket 311")
    anna.click("Redrive 3")
    anna.sees("It has ended. All 3 arrived.")
    anna.page.goto(job)
    anna.sees("A redrive of these dead letters has started since:")
    anna.click("Redrive 3", role="link")
    anna.sees("It has ended. All 3 arrived.")
    assert list(world.receiver.accepted("billing").values()) == [1, 1, 1]


@test
@sqlite_only
def one_letter_one_destination_and_one_policy_are_tried():
    with Night(many=3, few=1) as world:
        world.serve()
        world.fall()
        with BROWSER.visit(world.address) as anna:
            send_once(anna, world)
            pause_resume_and_test(anna, world)
            simulator(anna)
            ramp(anna, world)
            close_the_page_of_a_fix(anna, world)


# ---- many destinations ----

@test
@sqlite_only
def many_destinations_are_found():
    with Night(many=1, few=0, definitions={"allow": ["127.0.0.0/8"]}) as world:
        world.serve()
        api = world.api()
        for i in range(60):
            api.good("POST", "/destinations", {"destination": f"partner-{i:02d}", "definition": json.dumps(world.destination("p")), "reason": "many"})
        with BROWSER.visit(world.address) as anna:
            anna.go("destinations")
            anna.sees("1–50 of 63")
            anna.page.get_by_role("link", name="Next page").click()
            anna.sees("51–63 of 63")
            anna.page.get_by_role("link", name="Previous page").click()
            anna.sees("1–50 of 63")
            anna.page.get_by_role("searchbox").fill("partner-07")
            anna.page.locator("#destination-partner-07").wait_for()
            assert anna.page.locator("section[id^=destination-]").count() == 1
            anna.page.wait_for_url("**/#/destinations?name=partner-07")
            anna.page.get_by_role("searchbox").fill("nobody")
            anna.sees("No destination has this in its name.")


# ---- nothing to show, and nothing live ----

EMPTY = {"": "Nothing needs attention.", "dead": "A message comes here when its policy gives up", "dead?tab=letters": "status:any also finds", "dead?tab=figures": "A message comes here when its policy gives up",
         "messages": "An application commits a row into the table outbox", "redrives": "A redrive requeues all dead letters of a filter", "alerts": "Nothing is muted.",
         "audit": "Every act of a person is kept here.", "messages/nothing": "nothing"}


def reveal(anna, world):
    """What is masked is shown once, for a reason, and one row of the audit says so: the page does not ask again by itself."""
    anna.move("dead/1")
    anna.sees("Some fields are masked.")
    assert anna.page.get_by_text("山田").count() == 0
    anna.click("Show masked fields")
    anna.fill("Reason", "the customer called")
    anna.page.locator("dialog").get_by_role("button", name="Show masked fields").click()
    anna.sees("山田")
    time.sleep(POLLS_S)
    assert [row["reason"] for row in world.api().good("GET", "/audit")["items"] if row["act"] == "reveal"] == ["the customer called"]


@test
@sqlite_only
def empty_screens_teach_and_without_events_the_page_asks_again():
    with Night(many=2, few=0, masks=[{"paths": ["customer.name"]}]) as world:
        world.serve()
        with BROWSER.visit(world.address) as anna:
            anna.context.route("**/api/v1/events", lambda route: route.abort())
            anna.go()
            for where, words in EMPTY.items():
                anna.move(where)
                anna.sees(words)
                anna.accessible(where)
            anna.move("")
            anna.sees("Nothing needs attention.")
            assert anna.page.locator(".live[data-state=on]").count() == 0
            world.fall()
            anna.sees("2 dead letters for billing have the same cause:")  # it is readable without
            reveal(anna, world)


@test
@sqlite_only
def a_folder_of_files_is_served_for_development():
    with Night(many=1, few=0) as world:
        folder, tool = world.path("ui"), HERE.parent.parent / "tools/web"
        BROWSER.start()  # skips where there is no dashboard
        made = subprocess.run([str(tool), "folder", str(folder)], capture_output=True, text=True, timeout=300, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
        wrapper = world.path("hikyaku-ui")
        wrapper.write_text(f'#!/bin/sh\nexec {BINARY} "$@" --ui-dir {folder}\n', encoding="utf-8")
        wrapper.chmod(0o755)
        world.relay = world.daemon(program=wrapper).ready()
        world.relay.says('"admin listening"')
        world.address = re.search(r'msg="admin listening" address=(\S+)', world.relay.log())[1]
        with BROWSER.visit(world.address) as anna:
            anna.go()
            anna.sees("Nothing needs attention.")
            words = folder / "words/en.js"
            text = words.read_text(encoding="utf-8")
            words.unlink()  # a link to the source, which stays as it is
            words.write_text(text.replace("Nothing needs attention.", "All is well here."), encoding="utf-8")
            anna.page.reload()
            anna.sees("All is well here.")


# ---- the tour ends in the browser ----

@test
@sqlite_only
def the_link_of_the_demo_leads_to_a_rescue():
    """What a stranger does with it: the receiver's words and the payload are in sight before anything has to be typed."""
    BROWSER.start()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([BINARY, "demo", "--keep"], cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            link = next(found for found in (re.search(r"http://(\S+)/#/(ticket/\S+)", line) for line in process.stdout) if found)
            with BROWSER.visit(link[1]) as anna:
                anna.go(link[2])
                anna.sees("HTTP 422: the field poison is not allowed")
                anna.click("Open the group", role="link")
                anna.click("Fix with jq")
                anna.page.locator(".note", has_text="the field poison is not allowed").wait_for()
                anna.page.locator("pre", has_text='"poison": true').wait_for()
                anna.fill("jq program", "del(.poison)")
                anna.sees("1 changes")
                anna.fill("Reason", "the shop does not know it")
                anna.click("Fix 1 and redrive")
                anna.sees("It has ended. The dead letter arrived.")
                anna.move("")
                anna.sees("Nothing needs attention.")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


# ---- the keyboard alone ----

def tab_to(anna, name):
    """Presses Tab until the thing of this name has the focus."""
    for _ in range(120):
        anna.page.keyboard.press("Tab")
        if name == anna.page.evaluate("(() => { const e = document.activeElement; return (e.labels?.[0]?.innerText || e.getAttribute('aria-label') || e.innerText || '').trim() })()"):
            return
    raise AssertionError(f"Tab does not reach {name!r}")


@test
@sqlite_only
def a_night_is_rescued_with_the_keyboard_alone():
    with Night(many=3, few=1) as world:
        world.serve()
        world.fall()
        with BROWSER.visit(world.address) as anna:
            keys = anna.page.keyboard
            anna.go()
            anna.sees("3 dead letters for billing have the same cause:")
            tab_to(anna, "Open the group")
            keys.press("Enter")
            anna.sees("All 3 that match")
            tab_to(anna, "Fix with jq")
            keys.press("Enter")
            anna.sees("One program over all payloads")
            tab_to(anna, "jq program")
            keys.type('.currency = "JPY"')
            anna.sees("3 change")
            tab_to(anna, "Reason (kept in the audit)")
            keys.type("ticket 311")
            tab_to(anna, "Fix 3 and redrive")
            keys.press("Enter")
            anna.sees("It has ended. All 3 arrived.")
            tab_to(anna, "Its letters")  # and a dialog keeps the focus, and gives it back
            keys.press("Enter")
            anna.sees("All 3 that match")
            anna.move("dead?tab=letters&filter=destination:crm")
            anna.sees("The one that matches")
            tab_to(anna, "Discard")
            keys.press("Enter")
            anna.page.get_by_role("dialog").wait_for()
            anna.accessible("the dialog")
            for _ in range(12):
                keys.press("Tab")
                assert anna.page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')"), "the focus left the dialog"
            keys.press("Escape")
            anna.page.get_by_role("dialog").wait_for(state="detached")
            assert anna.page.evaluate("document.activeElement.innerText") == "Discard"
            assert list(world.receiver.accepted("billing").values()) == [1, 1, 1]


if __name__ == "__main__":
    try:
        code = run_tests(TESTS)
    finally:
        BROWSER.close()
    sys.exit(code)
