#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program for arm64: built by Debian's cross compiler from the tarball, with every optional part, in a Debian of its own; then its unit tests on
bytes, and a relay that delivers messages from SQLite and PostgreSQL, under qemu-user. Speaks TAP; wants root and a Debian mirror. `make arm64` calls it.

Usage: arm64.py [ROOT_DIR]    the Debian with compiler and libraries, made there if it is missing (build/chroot/arm64 otherwise)"""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source folder stays as it is
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import postgres  # first: it may start this program anew under Debian's Python
WHERE = pathlib.Path(sys.argv[1] if sys.argv[1:] else ROOT / "build/chroot/arm64").resolve()
sys.argv[1:] = ["/bin/false"]  # no program but that for arm64
from chroot import Chroot, output
from support import Receiver, Skip, run_tests, until

TESTS = []
TOOLS = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross meson ninja-build nodejs pkg-config python3 qemu-user scdoc".split()
LIBRARIES = [name + ":arm64" for name in """libc6-dev libcmocka-dev libcurl4-openssl-dev libgnutls28-dev libjansson-dev libjq-dev libmicrohttpd-dev
    libncurses-dev libpq-dev librdkafka-dev libseccomp-dev libsqlite3-dev libssl-dev libuv1-dev libyaml-dev zlib1g-dev""".split()]
PARTS = ["man", "jq", "postgres", "kafka", "top", "sandbox", "dashboard"]
# What may depend on the machine: the order of bytes, alignment, the sign of char, widths of integers, cryptography.
UNIT_TESTS = """amqp_wire base64 buf cidr envelope histogram json keyring kafka mqtt_wire nats_wire parse payload_scan pg_runs pg_window policy
    redis_wire rng sign time utf8 wire window""".split()
STARTED = {}


def test(function):
    TESTS.append(function)
    return function


def debian():
    """With the tools in it. Kept, since it takes minutes; made anew when the list changes."""
    if os.geteuid() != 0:
        raise Skip("chroots and mounts need root")
    for program in ("debootstrap", "unshare", "chroot"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            raise Skip(f"there is no {program} here (tools/deps deb)")
    wanted, noted = " ".join(TOOLS + LIBRARIES), WHERE / "installed"
    if noted.exists() and noted.read_text(encoding="ascii") == wanted:
        return Chroot(WHERE, fresh=False)
    shutil.rmtree(WHERE, ignore_errors=True)
    WHERE.mkdir(parents=True)
    made = Chroot(WHERE)
    made.run("dpkg", "--add-architecture", "arm64")
    made.run("apt-get", "update", "-q")
    made.run("apt-get", "install", "-y", "-q", "--no-install-recommends", *TOOLS, *LIBRARIES)
    made.run("apt-get", "clean")
    noted.write_text(wanted, encoding="ascii")
    return made


def built():
    """The program, as the path inside."""
    if "root" in STARTED:
        return STARTED["root"]
    root = debian()
    with tempfile.TemporaryDirectory() as folder:
        output(ROOT / "tools/dist", folder)
        shutil.rmtree(root.path("/src"), ignore_errors=True)
        root.path("/src").mkdir()
        output("tar", "-xf", next(pathlib.Path(folder).glob("*.tar.gz")), "--strip-components=1", "-C", root.path("/src"))
    root.run("meson", "setup", "/src/build", "/src", "--cross-file", "/src/packaging/cross/arm64.ini", "-Dtests=true",
             *(f"-D{part}=enabled" for part in PARTS))
    known = set(root.run("meson", "introspect", "--targets", "/src/build").split('"'))
    tests = [f"tests/unit/test_{name}" for name in UNIT_TESTS if f"test_{name}" in known]
    STARTED["tests"] = [pathlib.Path(name).name for name in tests]
    root.run("ninja", "-C", "/src/build", "src/cli/hikyaku", "src/jq/hikyaku-jq", *tests, *modules(root))
    STARTED["root"] = root
    return root


def modules(root):
    return [name for name in root.run("ninja", "-C", "/src/build", "-t", "targets", "all").replace(":", "").split() if name.endswith("sink-kafka.so")]


def under_qemu(root, *command, **more):
    return root.command("qemu-aarch64", *command), {"stdin": subprocess.DEVNULL, "env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}, **more}


def hikyaku(root, *arguments):
    command, how = under_qemu(root, "/src/build/src/cli/hikyaku", *arguments)
    return output(*command, **{key: value for key, value in how.items() if key != "stdin"})


@test
def everything_builds_for_arm64():
    root = built()
    for name in ("src/cli/hikyaku", "src/jq/hikyaku-jq", modules(root)[0]):
        head = root.path(f"/src/build/{name}").read_bytes()[:20]
        assert head[:6] == b"\x7fELF\x02\x01" and struct.unpack("<H", head[18:20])[0] == 183, (name, head)  # 64 bits, little endian, AArch64
    version = hikyaku(root, "--version")
    assert version.startswith("hikyaku 0."), version
    linked = output("readelf", "-d", root.path("/src/build/src/cli/hikyaku"))
    assert "libpq.so" in linked and "BIND_NOW" in linked and "librdkafka" not in linked, linked


@test
def unit_tests_pass():
    root = built()
    assert len(STARTED["tests"]) > 15, STARTED["tests"]
    for name in STARTED["tests"]:
        command, how = under_qemu(root, f"/src/build/tests/unit/{name}")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=ROOT, **how)
        assert done.returncode == 0 and "\nnot ok" not in done.stdout, (name, done.returncode, done.stdout[-2000:], done.stderr[-2000:])


def relay(root, receiver, store, insert, n):
    """Runs until `n` messages have arrived, and ends in good order."""
    config = {"store": store, "admin": {"listen": "127.0.0.1:0"}, "relay": {"lease": "60s"},
              "destinations": {"shop": {"http": {"url": receiver.url("shop"), "sign": {"secrets": ["whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"]}},
                                        "allow": ["127.0.0.0/8"]}}}
    root.write("/tmp/hikyaku.yaml", json.dumps(config), 0o600)
    hikyaku(root, "--config", "/tmp/hikyaku.yaml", "init")
    insert()
    log = root.path("/tmp/relay.log")
    command, how = under_qemu(root, "/src/build/src/cli/hikyaku", "--config", "/tmp/hikyaku.yaml", "run")
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, **how)
    try:
        said = lambda: log.read_text(encoding="utf-8", errors="replace")[-3000:]
        until(lambda: len(receiver.accepted("shop")) == n or process.poll() is not None, said)
        assert process.poll() is None, said()
        status = json.loads(hikyaku(root, "--config", "/tmp/hikyaku.yaml", "status", "--json"))
        assert status, status
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, said()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert set(receiver.accepted("shop").values()) == {1}, receiver.accepted("shop")


@test
def a_relay_delivers_from_sqlite():
    root, receiver = built(), Receiver()
    root.path("/tmp/outbox.db").unlink(missing_ok=True)

    def insert():
        db = sqlite3.connect(root.path("/tmp/outbox.db"), timeout=60, isolation_level=None)
        for i in range(50):
            db.execute("INSERT INTO outbox (destination, event_type, payload, message_id) VALUES ('shop', 'Order', '{}', ?)", (f"m{i}",))
        db.close()

    try:
        relay(root, receiver, "sqlite:/tmp/outbox.db", insert, 50)
    finally:
        receiver.close()


@test
def a_relay_delivers_from_postgresql():
    root = built()
    if postgres.why_not():
        raise Skip(postgres.why_not())
    receiver, name = Receiver(), postgres.cluster().create()

    def insert():
        db = postgres.cluster().connect(name)
        for i in range(50):
            db.execute("INSERT INTO outbox (destination, event_type, payload, message_id) VALUES ('shop', 'Order', '{}', ?)", (f"m{i}",))
        db.close()

    try:
        relay(root, receiver, postgres.cluster().url(name), insert, 50)
    finally:
        receiver.close()


if __name__ == "__main__":
    began = time.monotonic()
    code = run_tests(TESTS)
    print(f"# {time.monotonic() - began:.0f} s")
    sys.exit(code)
