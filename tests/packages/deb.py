#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a plain Debian: installed, configured as docs/service.md says, started as the unit says, upgraded from the
version before while an application enqueues, removed, purged. Speaks TAP; wants root and a Debian mirror (the machine's own apt sources
say which). `make deb-test` calls it.

Usage: deb.py DEB_DIR [AGAIN_DIR]    AGAIN_DIR: the same packages built a second time; they must be the same bytes"""
import hashlib
import json
import os
import pathlib
import platform
import pwd
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
DEBS, AGAIN = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:3]
sys.argv[1:] = ["/bin/false"]  # no program but the packages'
from chroot import Chroot, output
from support import Receiver, Skip, run_tests, until

TESTS = []
BEFORE = "0.1.0-1"
UNIT = "/usr/lib/systemd/system/hikyaku.service"
STORE = "/var/lib/hikyaku/outbox.db"


def test(function):
    TESTS.append(function)
    return function


def deb(name, folder=DEBS):
    found = sorted(pathlib.Path(folder).glob(f"{name}_*.deb"))
    assert len(found) == 1, (name, found)
    return found[0]


# ---- a plain Debian with our packages ----

class Machine(Chroot):
    def install(self, *packages):
        """As a person does, from files; what they need comes from the mirror."""
        names = []
        for package in packages:
            shutil.copy(package, self.path("/tmp"))
            names.append(f"/tmp/{package.name}")
        said = self.run("apt-get", "install", "-y", "-q", "--no-install-recommends", "--allow-downgrades", *names)
        for name in names:
            self.path(name).unlink()
        return said

    def user(self):
        row = next(line for line in self.path("/etc/passwd").read_text(encoding="utf-8").splitlines() if line.startswith("hikyaku:"))
        return int(row.split(":")[2]), int(row.split(":")[3])

    def owner(self, name):
        found = self.path(name).stat()
        return found.st_uid, found.st_gid, found.st_mode & 0o7777

    def named(self):
        """Everything in it that has our name."""
        return set(self.run("find", "/", "-xdev", "-path", "/proc", "-prune", "-o", "-iname", "*hikyaku*", "-print").split())


# ---- the version before ----

def package_of(program, folder):
    """The program of before in a package of before: what differs from today's are the program and the version."""
    tree = folder / "tree"
    output("dpkg-deb", "-R", deb("hikyaku"), tree)
    shutil.copy(program, tree / "usr/bin/hikyaku")
    output("strip", tree / "usr/bin/hikyaku")
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", f"Version: {BEFORE}", control.read_text(encoding="utf-8")), encoding="utf-8")
    files = sorted(p for p in tree.rglob("*") if p.is_file() and not p.is_symlink() and tree / "DEBIAN" not in p.parents)
    sums = "".join(f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(tree)}\n" for p in files)
    (tree / "DEBIAN/md5sums").write_text(sums, encoding="utf-8")
    made = folder / f"hikyaku_{BEFORE}_{deb('hikyaku').stem.rsplit('_', 1)[1]}.deb"
    output("dpkg-deb", "--root-owner-group", "-b", tree, made)
    return made


# ---- the service without a service manager ----

def unit(chroot):
    found = {}
    for line in chroot.path(UNIT).read_text(encoding="utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return {key: values[-1] for key, values in found.items()}


class Service:
    """ExecStart as the unit's user: a root that is read-only but for the state, no capability, no new privilege, a /tmp of its own; what it
    tells the service manager."""

    def __init__(self, chroot):
        said = unit(chroot)
        assert (said["ProtectSystem"], said["NoNewPrivileges"], said["CapabilityBoundingSet"], said["PrivateTmp"]) == ("strict", "yes", "", "yes")
        self.chroot, self.notices = chroot, ""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("")  # the kernel chooses an abstract name
        self.socket.settimeout(0.05)
        self.log_path = chroot.root.with_suffix(".log")
        inside = f"umask {said['UMask']}; cd /var/lib/{said['StateDirectory']}; exec {said['ExecStart']}"
        mounts = ('root=$1; shift; mount --bind "$root" "$root"; mount -t proc proc "$root/proc"; mount -t tmpfs tmpfs "$root/tmp"; '
                  'mount --bind "$root/var/lib/hikyaku" "$root/var/lib/hikyaku"; mount -o remount,bind,ro "$root"; exec chroot "$root" "$@"')
        drop = ("setpriv", "--reuid", said["User"], "--regid", said["Group"], "--clear-groups", "--no-new-privs", "--inh-caps=-all",
                "--bounding-set=-all")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ("unshare", "--mount", "--ipc", "--propagation", "private", "sh", "-ec", mounts, "sh", str(chroot.root), *drop, "sh", "-c", inside),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET": "@" + self.socket.getsockname()[1:].decode()})

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def listens(self):
        try:
            self.notices += self.socket.recv(4096).decode() + "\n"
        except TimeoutError:
            pass
        assert self.process.poll() is None, self.log()[-3000:]
        return self.notices

    def ready(self):
        until(lambda: "READY=1" in self.listens(), lambda: f"READY=1:\n{self.log()[-3000:]}")
        return self

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self.socket.close()
        assert code == 0, (code, self.log()[-3000:])

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.socket.close()


# ---- an application ----

class Application:
    """Commits a message again and again, until it is asked to stop; remembers what it committed."""

    def __init__(self, chroot):
        self.path, self.ids, self.stopped, self.error = chroot.path(STORE), [], threading.Event(), None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        try:
            db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            while not self.stopped.wait(0.01):
                name = f"order-{len(self.ids)}"
                db.execute("INSERT INTO outbox (destination, event_type, payload, message_id) VALUES ('shop', 'Order', '{}', ?)", (name,))
                self.ids.append(name)
            db.close()
        except Exception as why:  # pylint: disable=broad-except
            self.error = why

    def stop(self):
        self.stopped.set()
        self.thread.join()
        assert self.error is None, self.error


def configure(chroot, receiver):
    config = {"store": f"sqlite:{STORE}", "admin": {"listen": "127.0.0.1:0"},
              "destinations": {"shop": {"http": {"url": receiver.url("shop")}, "allow": ["127.0.0.0/8"]}}}
    chroot.write("/etc/hikyaku/hikyaku.yaml", json.dumps(config), 0o640, chroot.user()[1])
    as_relay(chroot, "init")


def as_relay(chroot, *arguments):
    return chroot.run("setpriv", "--reuid", "hikyaku", "--regid", "hikyaku", "--clear-groups",
                      "hikyaku", "--config", "/etc/hikyaku/hikyaku.yaml", *arguments)


# ---- the tests: one life of one machine, in this order ----

class Life:
    """Made by the first test that needs it."""

    chroot = receiver = service = folder = None


def machine():
    if Life.chroot is None:
        if os.geteuid() != 0:
            raise Skip("chroots and mounts need root")
        for program in ("debootstrap", "unshare", "chroot"):
            if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
                raise Skip(f"there is no {program} here (tools/deps deb)")
        Life.chroot, Life.receiver = Machine(tempfile.mkdtemp(prefix="hikyaku-deb-")), Receiver()
        Life.chroot.run("apt-get", "update", "-q")
        Life.folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-deb-"))
    return Life.chroot, Life.receiver


@test
def two_builds_are_the_same_bytes():
    if not AGAIN:
        raise Skip("built only once")
    for name in sorted(p.name for p in DEBS.glob("*.deb")):
        assert (DEBS / name).read_bytes() == (pathlib.Path(AGAIN[0]) / name).read_bytes(), name


@test
def a_program_builds_with_the_development_package():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libhikyaku1", "libhikyaku-dev"):
            output("dpkg-deb", "-x", deb(name), folder)
        where = f"{folder}/usr/lib/{platform.machine()}-linux-gnu"
        env = {**os.environ, "PKG_CONFIG_PATH": f"{where}/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": folder, "LD_LIBRARY_PATH": where}
        flags = shlex.split(output("pkg-config", "--cflags", "--libs", "hikyaku", env=env))
        output("cc", "-std=c11", "-Werror", ROOT / "tests/e2e/installed_main.c", *flags, "-o", f"{folder}/main")
        needed = output("readelf", "-d", f"{folder}/main")
        assert "[libhikyaku.so.1]" in needed, needed
        assert output(f"{folder}/main", "standard", "1", "2", env=env).split()


@test
def the_version_before_installs_and_relays():
    chroot, receiver = machine()
    program = subprocess.run([ROOT / "tools/older"], capture_output=True, text=True, check=False)
    if program.returncode != 0:
        print(f"# no older program ({program.stderr.strip()[-200:]}): today's takes its place")
    older = package_of(program.stdout.strip(), Life.folder) if program.returncode == 0 else repackaged()
    chroot.install(older)
    uid, gid = chroot.user()
    assert uid != 0 and chroot.owner("/etc/hikyaku") == (0, gid, 0o750), chroot.owner("/etc/hikyaku")
    assert chroot.owner("/var/lib/hikyaku") == (uid, gid, 0o750), chroot.owner("/var/lib/hikyaku")
    assert chroot.exists("/etc/systemd/system/multi-user.target.wants/hikyaku.service"), "the unit is not enabled"
    for name in ("bash-completion/completions/hikyaku", "zsh/vendor-completions/_hikyaku", "fish/vendor_completions.d/hikyaku.fish",
                 "man/man1/hikyaku.1.gz", "doc/hikyaku/examples/hikyaku.yaml"):
        assert chroot.exists(f"/usr/share/{name}"), name
    configure(chroot, receiver)
    Life.service = Service(chroot).ready()
    status = pathlib.Path(f"/proc/{Life.service.process.pid}/status").read_text(encoding="ascii")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Uid"].split() == [str(uid)] * 4 and facts["NoNewPrivs"] == "1" and int(facts["CapBnd"], 16) == 0, status
    assert facts["Seccomp"] == "2", status
    one_message(chroot)
    until(lambda: receiver.accepted("shop")["first"] == 1, Life.service.log)


def repackaged():
    output("dpkg-deb", "-x", deb("hikyaku"), Life.folder / "today")
    return package_of(Life.folder / "today/usr/bin/hikyaku", Life.folder)


def one_message(chroot):
    db = sqlite3.connect(chroot.path(STORE), timeout=60, isolation_level=None)
    db.execute("INSERT INTO outbox (destination, event_type, payload, message_id) VALUES ('shop', 'Order', '{}', 'first')")
    db.close()


@test
def an_upgrade_with_traffic_running_loses_nothing():
    chroot, receiver = machine()
    if Life.service is None:
        raise Skip("the version before does not run")
    old, application = Life.service, Application(chroot)
    until(lambda: len(receiver.accepted("shop")) > 20, old.log)
    chroot.install(deb("hikyaku"))
    assert chroot.run("dpkg-query", "-W", "-f", "${Version}", "hikyaku") != BEFORE
    at = len(receiver.accepted("shop"))
    until(lambda: len(receiver.accepted("shop")) > at + 20, old.log)  # the relay of before goes on …
    as_relay(chroot, "init")
    at = len(receiver.accepted("shop"))
    until(lambda: len(receiver.accepted("shop")) > at + 20, old.log)  # … on the newer schema, too
    old.stop()
    Life.service = Service(chroot).ready()
    at = len(receiver.accepted("shop"))
    until(lambda: len(receiver.accepted("shop")) > at + 20, Life.service.log)
    application.stop()
    until(lambda: set(application.ids) <= set(receiver.accepted("shop")), lambda: Life.service.log()[-3000:])
    again = {i: n for i, n in receiver.accepted("shop").items() if n > 1}
    assert not again, again  # both relays ended in good order
    print(f"# {len(application.ids)} messages, each delivered once")


@test
def the_package_for_kafka_brings_its_module():
    chroot, _ = machine()
    if Life.service is None:
        raise Skip("no relay ran")
    config = {"store": f"sqlite:{STORE}", "destinations": {"bus": {"kafka": {"brokers": "127.0.0.1:1", "topic": "orders"}, "allow": ["127.0.0.0/8"]}}}
    chroot.write("/tmp/kafka.yaml", json.dumps(config))

    def said():
        command = ("setpriv", "--reuid", "hikyaku", "--regid", "hikyaku", "--clear-groups", "hikyaku", "--config", "/tmp/kafka.yaml")
        return subprocess.run(chroot.command(*command, "destinations", "test", "bus"), capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}, stdin=subprocess.DEVNULL)

    before = said()
    assert before.returncode != 0 and "install hikyaku-kafka" in before.stdout + before.stderr, before
    chroot.install(deb("hikyaku-kafka"))
    after = said()
    assert after.returncode != 0 and "hikyaku-kafka" not in after.stdout + after.stderr, after  # it is there, and no broker is
    assert "_TRANSPORT" in after.stdout, after
    chroot.path("/tmp/kafka.yaml").unlink()


@test
def the_library_installs():
    chroot, _ = machine()
    chroot.install(deb("libhikyaku1"))
    assert "libhikyaku.so.1" in chroot.run("ldconfig", "-p")


@test
def what_the_operator_wrote_outlives_removal_and_purge_and_nothing_else_does():
    chroot, _ = machine()
    if Life.service is None:
        raise Skip("no relay ran")
    Life.service.stop()
    shipped = [name for package in ("hikyaku", "hikyaku-kafka", "libhikyaku1") for name in chroot.run("dpkg", "-L", package).split()]
    chroot.run("apt-get", "remove", "-y", "-q", "hikyaku", "hikyaku-kafka", "libhikyaku1")
    assert not chroot.exists("/usr/bin/hikyaku") and chroot.exists(STORE) and chroot.exists("/etc/hikyaku/hikyaku.yaml")
    chroot.run("apt-get", "purge", "-y", "-q", "hikyaku")  # of the library nothing is left that could be purged
    left = [name for name in shipped if chroot.exists(name) and not chroot.path(name).is_dir()]
    assert not left, left
    assert chroot.named() == {"/etc/hikyaku", "/etc/hikyaku/hikyaku.yaml", "/var/lib/hikyaku"}, chroot.named()
    assert chroot.exists(STORE) and chroot.user()  # messages may wait in it; accounts are never taken away
    states = chroot.run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n")
    assert "hikyaku" not in states, states


if __name__ == "__main__":
    began = time.monotonic()
    try:
        code = run_tests(TESTS)
    finally:
        if Life.service:
            Life.service.end()
            Life.service.log_path.unlink(missing_ok=True)
        if Life.receiver:
            Life.receiver.close()
        for made in (Life.chroot and Life.chroot.root, Life.folder):
            if made:
                shutil.rmtree(made, ignore_errors=True)
    print(f"# {time.monotonic() - began:.0f} s")
    sys.exit(code)
