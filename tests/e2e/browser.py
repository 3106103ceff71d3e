# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium, driven by Playwright, for dashboard.py. The driver comes by pip and axe by npm, into the build folder, once; where
one of them cannot be had, the tests are skipped with the reason."""
import fcntl
import glob
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from support import BINARY, Skip, until

HERE = pathlib.Path(__file__).resolve().parent
WEB = HERE.parent.parent / "web"
MOST_SECONDS = 600  # for one tool: far more than it takes
WAIT_MS = int(os.environ.get('WAIT_MS', 120000))    # for anything on a page: as long as a condition may take on a slow, busy machine

# What no page may do, whatever it shows.
WITNESS = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""


def run(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=MOST_SECONDS, check=False)


def last_line(done):
    return ((done.stderr + done.stdout).strip().splitlines() or ["?"])[-1][:160]


def once(name, wanted, make):
    """A folder that `make(folder)` fills, unless an earlier run has. One at a time; what was broken off is made anew. Raises Skip."""
    base = pathlib.Path(os.environ.get("BUILD_DIR") or tempfile.gettempdir())
    folder = base / f"{name}-{hashlib.sha256(wanted).hexdigest()[:12]}"
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            try:
                why_not = make(folder)
            except (OSError, subprocess.TimeoutExpired) as why:
                why_not = str(why)
            if why_not:
                raise Skip(why_not)
            (folder / "whole").touch()
    return folder


def make_driver(folder):
    for step in ((sys.executable, "-m", "venv", str(folder)),
                 (str(folder / "bin/python"), "-m", "pip", "install", "-q", "--no-compile", "--only-binary", ":all:",
                  "--disable-pip-version-check", "-r", str(HERE / "requirements-browser.txt"))):
        done = run(*step)
        if done.returncode != 0:
            return f"the browser's driver cannot be had by pip: {last_line(done)}"
    return None


def make_axe(folder):
    folder.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(WEB / name, folder / name)
    if not shutil.which("npm"):
        return "npm is not installed"
    done = run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error", "--fetch-retries=1",
               "--fetch-timeout=20000", cwd=folder)
    return None if done.returncode == 0 else f"axe cannot be had by npm: {last_line(done)}"


def npm_answers():
    """Can what the lockfile pins be had now?"""
    return bool(shutil.which("npm")) and run("npm", "view", "--fetch-retries=0", "--fetch-timeout=15000", "htm@3.1.1", "version").returncode == 0


class Browser:
    """One for all tests of a program; each visitor has a context of its own, as another person has another computer."""

    playwright = browser = axe = None

    def start(self):
        if self.browser:
            return
        if "without the dashboard" in run(BINARY, "version").stdout:
            assert not npm_answers(), "npm answers, and yet the program was built without the dashboard"
            raise Skip("the program was built without the dashboard: npm or its packages were not to be had")
        chromium = shutil.which("chromium")
        if not chromium:
            raise Skip("chromium is not installed")
        folder = once("browser-driver", (HERE / "requirements-browser.txt").read_bytes() + sys.version.encode(), make_driver)
        self.axe = (once("browser-axe", (WEB / "package-lock.json").read_bytes(), make_axe) / "node_modules/axe-core/axe.min.js").read_text()
        sys.path.insert(0, glob.glob(str(folder / "lib/python*/site-packages"))[0])
        from playwright.sync_api import sync_playwright  # pylint: disable=import-outside-toplevel,import-error
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])

    def visit(self, address, **how):
        self.start()
        return Visitor(self, address, **how)

    def close(self):
        if self.browser:
            self.browser.close()
            self.playwright.stop()


BROWSER = Browser()


class Visitor:
    """A person at the dashboard. Counts what a hand does; at the end, nothing that a page must not do may have happened."""

    def __init__(self, browser, address, width=1280, locale="en-GB", theme="light"):
        self.context = browser.browser.new_context(locale=locale, color_scheme=theme, reduced_motion="reduce", viewport={"width": width, "height": 860},
                                                   timezone_id="Asia/Tokyo", base_url=f"http://{address}")
        self.context.set_default_timeout(WAIT_MS)
        self.context.add_init_script(WITNESS)
        self.browser, self.clicks, self.entries, self.wrong = browser, 0, 0, []
        self.requests, self.waits = [], []
        self.page = self.context.new_page()
        self.page.on("dialog", self.on_dialog)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script error: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = address

    def on_dialog(self, dialog):
        self.wrong.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.check()
            else:
                self.explain()
        finally:
            self.context.close()

    def explain(self):
        try:
            print(f"# at {self.page.url}; wrong: {self.wrong}")
            for line in self.page.inner_text("body").splitlines()[:60]:
                print(f"#   {line[:200]}")
        except Exception as why:  # pylint: disable=broad-except
            print(f"# the page cannot be read: {why}")

    def check(self):
        self.wrong += self.page.evaluate("window.violations")
        self.wrong += [f"asked another server: {url}" for url in self.requests if not url.startswith(f"http://{self.address}/")]
        assert not self.wrong, self.wrong

    def go(self, where=""):
        """To a screen, by its address; waits for its heading."""
        self.page.goto("/" + (where and "#/" + where))
        self.page.wait_for_selector("h1")
        return self

    def move(self, where):
        """Within the page, as a link does."""
        self.page.evaluate("(to) => { location.hash = '#/' + to }", where)

    def click(self, name, role="button", exact=True, **more):
        self.clicks += 1
        self.page.get_by_role(role, name=name, exact=exact, **more).first.click()

    def fill(self, label, text):
        self.entries += 1
        self.page.get_by_label(label, exact=False).first.fill(text)

    def sees(self, text):
        began = time.monotonic()
        self.page.get_by_text(text).first.wait_for(state="visible")
        self.waits.append((time.monotonic() - began, text))

    def loaded(self):
        """The screen has what it shows. Asked from here: the page's policy forbids what the driver would run in it to wait."""
        until(lambda: self.page.evaluate("!!document.querySelector('h1') && !/Loading …|読み込み中…/.test(document.querySelector('main').innerText)"), "the screen")

    def accessible(self, where):
        """axe finds nothing. Waits until the screen has loaded what it shows."""
        self.loaded()
        if not self.page.evaluate("!!window.axe"):  # once a page: it is half a megabyte
            self.page.evaluate(self.browser.axe + "; 0")
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => "
                                   "`${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`))")
        assert not found, (where, found)

    def fits(self, where):
        over = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, (where, f"{over} px too wide")
