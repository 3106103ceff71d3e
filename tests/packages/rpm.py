#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The RPM packages: what is in them, what they ask for, and a relay from them: unpacked into a folder by rpm itself, with a database of its own, it
delivers a message, and the folder is as before once they are erased. Speaks TAP. `make rpm` calls it.

Usage: rpm.py RPM_DIR"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the source folder stays as it is
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
RPMS = pathlib.Path(sys.argv[1]).resolve()
sys.argv[1:] = ["/bin/false"]  # no program but the packages'
from support import Receiver, Skip, clean_environment, run_tests, until

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=300, **more)
    assert done.returncode == 0, (command, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def package(name):
    found = [p for p in RPMS.glob(f"{name}-[0-9]*.rpm") if not p.name.endswith(".src.rpm")]
    assert len(found) == 1, (name, found)
    return found[0]


def ask(name, *query):
    return output("rpm", "-qp", *query, str(package(name))).splitlines()


@test
def each_package_has_its_files_and_no_other():
    relay, kafka, library, development = (set(ask(name, "-l")) for name in ("hikyaku", "hikyaku-kafka", "hikyaku-libs", "hikyaku-devel"))
    for path in ("/usr/bin/hikyaku", "/usr/libexec/hikyaku/hikyaku-jq", "/usr/lib/systemd/system/hikyaku.service", "/usr/lib/sysusers.d/hikyaku.conf",
                 "/usr/lib/tmpfiles.d/hikyaku.conf", "/usr/share/bash-completion/completions/hikyaku", "/usr/share/doc/hikyaku/examples/hikyaku.yaml", "/etc/hikyaku"):
        assert path in relay, (path, sorted(relay))
    assert any(re.fullmatch(r"/usr/share/man/man1/hikyaku-dead\.1(\.\w+)?", p) for p in relay), sorted(relay)
    assert any(re.fullmatch(r"/usr/lib\w*/libhikyaku\.so\.1", p) for p in library), library
    assert any(p.endswith("/libhikyaku.so") for p in development) and "/usr/include/hikyaku/hikyaku.h" in development, development
    assert any(re.fullmatch(r"/usr/lib\w*/hikyaku/sink-kafka\.so", p) for p in kafka), kafka
    assert not any("kafka.so" in p for p in relay), relay
    shared = (relay & library) | (relay & development) | (library & development) | (kafka & (relay | library | development))
    assert all(p.startswith(("/usr/lib/.build-id", "/usr/share/licenses")) for p in shared), shared
    assert [p.name for p in RPMS.glob("*.src.rpm")], "there is no source package"


@test
def the_packages_ask_for_what_they_load():
    needs = "\n".join(ask("hikyaku", "-R"))
    for library in ("libcurl.so", "libpq.so", "libsqlite3.so", "libssl.so", "libuv.so", "libyaml-0.so", "libmicrohttpd.so", "libseccomp.so", "libjq.so"):
        assert library in needs, (library, needs)
    assert "rdkafka" not in needs and "librdkafka.so" in "\n".join(ask("hikyaku-kafka", "-R")), "only who wants Kafka gets its library"
    assert "libhikyaku.so" not in needs, "the program is linked to the archives"
    assert any(line.startswith("hikyaku-libs") for line in ask("hikyaku-devel", "-R"))
    scripts = output("rpm", "-qp", "--scripts", str(package("hikyaku")))
    assert "disable --now hikyaku.service" in scripts and "restart" not in scripts.split("postuninstall")[-1].replace("restarts them", ""), scripts


@test
def a_relay_from_the_packages_delivers_and_leaves_nothing_behind():
    if os.geteuid() != 0:
        raise Skip("rpm unpacks into a folder only as root")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-rpm-"))
    receiver, relay = Receiver(), None
    rpm = ["rpm", "--root", str(folder), "--nodeps"]
    try:
        # Without scripts: they are for a running system, and there is no shell in the folder.
        output(*rpm, "-i", "--noscripts", "--ignorearch", str(package("hikyaku")), str(package("hikyaku-libs")), str(package("hikyaku-kafka")))
        assert output(*rpm, "-V", "hikyaku-libs") == ""
        unit = (folder / "usr/lib/systemd/system/hikyaku.service").read_text(encoding="utf-8")
        program = re.search(r"^ExecStart=(\S+)", unit, re.MULTILINE)[1]
        assert (folder / program[1:]).exists(), program
        config = folder / "etc/hikyaku/hikyaku.yaml"
        config.write_text(json.dumps({"store": f"sqlite:{folder}/o.db", "admin": {"listen": "127.0.0.1:0"},
                                      "destinations": {"shop": {"http": {"url": receiver.url("shop")}, "allow": ["127.0.0.0/8"]}}}), encoding="utf-8")
        hikyaku = [str(folder / program[1:]), "--config", str(config)]
        env = clean_environment()
        output(*hikyaku, "init", env=env)
        output(*hikyaku, "enqueue", "--destination", "shop", "--event-type", "E", "--payload", "1", "--message-id", "m", env=env)
        with open(folder / "log", "wb") as log:
            relay = subprocess.Popen([*hikyaku, "run"], env=env, stdout=log, stderr=log)
        until(lambda: receiver.arrived("m"), "the message")
        relay.send_signal(signal.SIGTERM)
        assert relay.wait(60) == 0, (folder / "log").read_text(encoding="utf-8")
        output(*rpm, "-e", "--noscripts", "hikyaku", "hikyaku-libs", "hikyaku-kafka")
        assert not (folder / program[1:]).exists() and config.exists(), "the configuration is the operator's"
        assert not list(folder.glob("usr/lib*/libhikyaku*"))
    finally:
        if relay and relay.poll() is None:
            relay.kill()
            relay.wait()
        receiver.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
