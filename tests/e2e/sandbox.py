#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the relay's process may do, and that it still does its work then: by itself (seccomp, no core dumps, another user),
and under the restrictions of the systemd unit. Speaks TAP.

Usage: sandbox.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import ctypes
import ctypes.util
import os
import pathlib
import platform
import pwd
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
from support import BINARY, Daemon, Skip, World, clean_environment, is_sanitized, run_tests, sqlite_only, until

UNIT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2])) / "packaging/systemd/hikyaku.service"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def start(world, *options, preexec=None, wrap=()):
    """As world.daemon(), with options behind `run`, and perhaps by another program."""
    daemon = Daemon.__new__(Daemon)
    daemon.name, daemon.world = "relay", world
    daemon.log_path = world.path(f"relay-{len(world.daemons)}.log")
    with open(daemon.log_path, "wb") as log:
        daemon.process = subprocess.Popen([*wrap, BINARY, "--config", str(world.config_path), "run", *options],
                                          cwd=world.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env=clean_environment(), preexec_fn=preexec)
    world.daemons.append(daemon)
    return daemon


def status(pid, task=None):
    path = f"/proc/{pid}/task/{task}/status" if task else f"/proc/{pid}/status"
    with open(path, encoding="ascii", errors="replace") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def filters(pid):
    """The seccomp mode of each thread, 2 = a filter."""
    return {status(pid, task).get("Seccomp") for task in os.listdir(f"/proc/{pid}/task")}


def locked(daemon):
    """Waits for the sandbox; skips where there can be none."""
    daemon.says("msg=sandbox")
    line = next(line for line in daemon.log().splitlines() if "msg=sandbox" in line)
    if "seccomp=off" in line and "libseccomp" in line:
        raise Skip("built without libseccomp")
    return line


def works(world, n=20):
    ids = world.insert_many(n, prefix=f"w{len(world.receiver.requests)}")
    until(lambda: all(world.receiver.accepted()[i] for i in ids), "messages to arrive")


# ---- by itself ----

@test
def a_relay_at_work_is_locked_up_with_all_its_threads():
    with World() as w:
        daemon = start(w).ready()
        assert "seccomp=on" in locked(daemon), daemon.log()
        works(w)
        assert filters(daemon.pid) == {"2"}, filters(daemon.pid)
        assert status(daemon.pid)["NoNewPrivs"] == "1"
        daemon.stop()


@test
def names_and_files_that_are_first_needed_afterwards_can_be_had():
    """The resolver's libraries, hosts, authorities: all of it is looked for when the process is locked already."""
    with World() as w:
        daemon = start(w).ready()
        locked(daemon)
        works(w)
        shop = w.config["destinations"]["shop"]
        shop["http"]["url"] = shop["http"]["url"].replace("127.0.0.1", "localhost")
        w.config["destinations"]["far"] = {"http": {"url": "https://localhost:1/"}, "allow": ["127.0.0.0/8", "::1"],
                                           "policy": "quick"}
        shop["allow"] = ["127.0.0.0/8", "::1"]
        w.write_config()
        daemon.signal(signal.SIGHUP)
        daemon.says("msg=reloaded")
        works(w)
        w.insert(destination="far", message_id="tls")
        until(lambda: "message_id=tls" in daemon.log(), "an attempt by TLS")
        assert "cause=TRANSIENT_NETWORK" in daemon.log(), daemon.log()[-2000:]
        daemon.stop()


@test
def no_core_dump_and_no_debugger_of_the_same_user():
    with World() as w:
        daemon = start(w).ready()
        with open(f"/proc/{daemon.pid}/limits", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("Max core file size"))
        assert line.split()[4:6] == ["0", "0"], line
        daemon.stop()
        limit = resource.getrlimit(resource.RLIMIT_CORE)
        daemon = start(w, "--core-dumps").ready()
        with open(f"/proc/{daemon.pid}/limits", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("Max core file size"))
        assert (line.split()[4] == "0") == (limit[0] == 0), line
        daemon.stop()


@test
def it_can_be_turned_off():
    with World() as w:
        daemon = start(w, "--no-sandbox").ready()
        assert "seccomp=off" in locked(daemon) and "--no-sandbox" in daemon.log()
        works(w)
        assert "2" not in filters(daemon.pid)
        daemon.stop()


@test
def a_channel_that_runs_a_program_leaves_it_off_and_cannot_be_added_later():
    script = "#!/bin/sh\ncat >/dev/null\n"
    with World() as w:
        program = w.path("told")
        program.write_text(script, encoding="ascii")
        program.chmod(0o755)
        daemon = start(w).ready()
        if "seccomp=on" not in locked(daemon):
            raise Skip("no seccomp here")
        w.config["channels"] = {"script": {"exec": {"command": [str(program)]}}}
        w.write_config()
        daemon.signal(signal.SIGHUP)
        daemon.says("reload refused")
        assert "that needs a restart" in daemon.log(), daemon.log()[-2000:]
        works(w)
        daemon.stop()
        daemon = start(w).ready()
        assert "seccomp=off" in locked(daemon) and "exec" in daemon.log(), daemon.log()
        works(w)
        daemon.stop()


@test
def a_kernel_that_refuses_is_no_reason_not_to_relay():
    if platform.machine() != "x86_64":
        raise Skip("the filter that refuses filters is written for x86_64")

    def refuse():
        """seccomp(2) fails with EINVAL, as where the kernel was built without it."""
        code = b"".join(struct.pack("HBBI", *i) for i in (
            (0x20, 0, 0, 0),               # load the system call's number
            (0x15, 0, 1, 317),             # seccomp?
            (0x06, 0, 0, 0x00050000 | 22),  # EINVAL
            (0x06, 0, 0, 0x7fff0000)))     # allow
        instructions = ctypes.create_string_buffer(code)
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(instructions)))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            os._exit(70)

    with World() as w:
        daemon = start(w, preexec=refuse)
        until(lambda: daemon.gone() or "msg=sandbox" in daemon.log(), "a start")
        if daemon.gone() and daemon.wait() == 70:
            raise Skip("no seccomp here")
        line = locked(daemon)
        assert "seccomp=off" in line and "level=warn" in line, line
        works(w)
        daemon.stop()


# ---- the process that starts jq ----

HELPER = pathlib.Path(BINARY).resolve().parent.parent / "jq/hikyaku-jq"


def children(pid):
    """{pid: status} of a process's children, zombies included."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            seen = status(name)
        except OSError:
            continue  # it has ended
        if seen.get("PPid") == str(pid):
            found[int(name)] = seen
    return found


def starter(daemon):
    if not HELPER.exists():
        raise Skip("built without jq")
    found = children(daemon.pid)
    assert [seen["Name"] for seen in found.values()] == ["hikyaku-jqstart"], found
    return next(iter(found))


def ended(pid):
    try:
        return status(pid)["State"].startswith("Z")
    except OSError:
        return True


@test
def a_locked_relay_has_a_process_that_starts_jq_and_ends_with_it():
    with World() as w:
        daemon = start(w).ready()
        locked(daemon)
        pid = starter(daemon)
        seen = status(pid)
        assert seen["NoNewPrivs"] == "1" and int(seen["CapEff"], 16) == 0 and int(seen["CapPrm"], 16) == 0, seen
        if os.geteuid() == 0:
            held = sorted(os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
            assert held[:3] == ["/dev/null"] * 3 and len(held) == 5, held
            assert not pathlib.Path(f"/proc/{pid}/environ").read_bytes().strip(b"\0")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)  # for its parent, as all of a process group get them
        works(w)
        assert starter(daemon) == pid
        daemon.stop()
        assert ended(pid), "the relay ended before it"
        daemon = start(w).ready()
        pid = starter(daemon)
        daemon.kill()
        until(lambda: ended(pid), "the end of what the relay had started")


@test
def a_relay_whose_starter_of_jq_dies_says_so_and_goes_on():
    with World() as w:
        daemon = start(w).ready()
        locked(daemon)
        os.kill(starter(daemon), signal.SIGKILL)
        daemon.says("the process that starts jq has ended")
        until(lambda: not children(daemon.pid), "no zombie")
        works(w)
        daemon.stop()


# ---- as somebody else ----

def give_to(world, user):
    entry = pwd.getpwnam(user)
    for path in [world.folder, *world.folder.rglob("*")]:
        os.chown(path, entry.pw_uid, entry.pw_gid)
    world.folder.chmod(0o755)
    return entry


@test
@sqlite_only
def root_becomes_another_user_before_anything_is_read():
    if os.geteuid() != 0:
        raise Skip("only root can become somebody else")
    with World() as w:
        entry = give_to(w, "nobody")
        daemon = start(w, "--user", "nobody").ready()
        works(w)
        ids = status(daemon.pid)
        assert set(ids["Uid"].split()) == {str(entry.pw_uid)}, ids["Uid"]
        assert set(ids["Gid"].split()) == {str(entry.pw_gid)} and "0" not in ids["Groups"].split(), ids
        assert int(ids["CapEff"], 16) == 0 and int(ids["CapPrm"], 16) == 0, ids
        assert os.stat(f"/proc/{daemon.pid}/environ").st_uid == 0, "its user can read its memory"
        assert "running as root" not in daemon.log()
        give_to(w, "nobody")
        w.config_path.chmod(0o600)
        os.chown(w.config_path, 0, 0)  # what it could not have read at the start it does not read later either
        daemon.signal(signal.SIGHUP)
        daemon.says("reload refused")
        os.chown(w.config_path, entry.pw_uid, entry.pw_gid)
        works(w)
        daemon.stop()


@test
@sqlite_only
def a_user_that_cannot_be_become_is_an_error_that_says_so():
    with World() as w:
        daemon = start(w, "--user", "no-such-user")
        assert daemon.wait() == 2 and "there is no user" in daemon.log(), daemon.log()
        daemon = start(w, "--user", "nobody:no-such-group")
        assert daemon.wait() == 2 and "there is no group" in daemon.log(), daemon.log()


@test
@sqlite_only
def root_is_told_that_it_is_root():
    if os.geteuid() != 0:
        raise Skip("not root")
    with World() as w:
        daemon = start(w).ready()
        assert 'msg="running as root"' in daemon.log(), daemon.log()
        code, text = w.try_hikyaku("doctor")
        assert "sandbox" in text and "runs as root" in text, (code, text)
        daemon.stop()


# ---- the unit ----

def settings():
    """{key: [values]} of [Service]; an empty value forgets the ones before it, as in systemd."""
    found, section = {}, ""
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found.setdefault(key, []).append(value)
    return found


def system_calls(groups):
    """Names of what systemd's groups hold, those within them included."""
    names, left = set(), list(groups)
    while left:
        group = left.pop()
        if not group.startswith("@"):
            names.add(group)
            continue
        text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", group], capture_output=True, text=True,
                              check=True).stdout
        left += [line.strip() for line in text.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return names


def need(*programs):
    for program in programs:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            raise Skip(f"there is no {program} here")


@test
@sqlite_only
def the_unit_exposes_little():
    need("systemd-analyze")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", str(UNIT)], capture_output=True,
                          text=True, check=False)
    match = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    if not match:
        raise Skip(f"systemd-analyze cannot do that here: {done.stderr.strip()[:200]}")
    print(f"# {match[0]}")
    assert float(match[1]) <= 1.5, done.stdout
    assert all(key in settings() for key in ("NoNewPrivileges", "User", "SystemCallFilter", "LimitCORE"))


def under_the_unit(folder):
    """What the unit forbids, done to this process as far as a process can: file systems, identity, system calls."""
    unit = settings()
    libc = ctypes.CDLL(None, use_errno=True)
    run = lambda *command: subprocess.run(command, check=True)
    assert unit["ProtectSystem"] == ["strict"] and unit["ProtectHome"] == ["yes"]
    run("mount", "--bind", folder, folder)
    run("mount", "-o", "remount,bind,ro", "/") if os.path.ismount("/") else None
    for path in ("/home", "/root", "/run/user"):
        if os.path.isdir(path) and not BINARY.startswith(path):
            run("mount", "-t", "tmpfs", "-o", "ro,mode=000", "tmpfs", path)
    entry = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    os.umask(int(unit["UMask"][0], 8))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # NoNewPrivileges
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not is_sanitized(BINARY):
        libc.prctl(65, 1, 0, 0, 0)  # MemoryDenyWriteExecute, from Linux 6.3 on
    filter_calls(unit)


def filter_calls(unit):
    """SystemCallFilter and RestrictAddressFamilies, by libseccomp."""
    allowed = set()
    for value in unit["SystemCallFilter"]:
        groups = value.lstrip("~").split()
        allowed = allowed - system_calls(groups) if value.startswith("~") else allowed | system_calls(groups)
    if is_sanitized(BINARY):
        allowed |= {"ptrace"}  # the leak checker
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p

    class Compare(ctypes.Structure):
        _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]

    refused, allow, equal = 0x00050000 | 38, 0x7fff0000, 4  # ENOSYS; SCMP_CMP_EQ
    context = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(refused)))
    for name in sorted(allowed - {"socket"}):
        number = lib.seccomp_syscall_resolve_name(name.encode())
        if number != -1:
            lib.seccomp_rule_add_array(context, ctypes.c_uint32(allow), number, 0, None)
    socket_number = lib.seccomp_syscall_resolve_name(b"socket")
    for family in unit["RestrictAddressFamilies"][0].split():
        which = Compare(0, equal, {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}[family], 0)
        assert lib.seccomp_rule_add_array(context, ctypes.c_uint32(allow), socket_number, 1, ctypes.byref(which)) == 0
    assert lib.seccomp_load(context) == 0


def jq_works(command):
    """The helper makes its cage on top of the unit's, and computes: `.a` of {"a":[1]}, in frames (src/jq/frame.h)."""
    frames = b"".join(struct.pack(">I", len(text)) + text for text in (b".a", b'{"a":[1]}'))
    done = subprocess.run(command, input=frames, capture_output=True, check=False)
    assert done.stdout == b"\0\0\0\1O" + b"\0\0\0\4O[1]", done


@test
@sqlite_only
def the_relay_works_under_the_unit():
    """Sends, drains, reloads, is scraped, keeps its store: with a root that is read-only, as nobody, and filtered."""
    if os.geteuid() != 0:
        raise Skip("mounts need root")
    need("unshare", "mount", "systemd-analyze")
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        raise Skip("there is no libseccomp here") from None
    with World() as w:
        give_to(w, "nobody")
        launcher = (sys.executable, os.path.abspath(__file__), "--under-the-unit", str(w.folder))
        unshare = ("unshare", "--mount", "--propagation", "private")
        daemon = start(w, wrap=(*unshare, *launcher))
        daemon.ready()
        assert "seccomp=on" in locked(daemon), daemon.log()  # its own, on top
        ids = status(daemon.pid)
        assert ids["NoNewPrivs"] == "1" and ids["Uid"].split()[0] != "0" and int(ids["Seccomp_filters"]) >= 2, ids
        if HELPER.exists():
            assert starter(daemon)
            jq_works((*unshare, *launcher, str(HELPER)))
        works(w, 50)
        address = re.search(r'msg="admin listening" address=(\S+)', daemon.log())[1]
        fetched = subprocess.run([sys.executable, "-c", "import sys, urllib.request as r; "
                                  "print(r.urlopen('http://' + sys.argv[1] + '/metrics').read()[:9])", address],
                                 capture_output=True, text=True, check=True)
        assert "HELP" in fetched.stdout, fetched
        w.config["destinations"]["shop"]["http"]["headers"] = {"X-New": "1"}
        w.write_config()
        give_to(w, "nobody")
        daemon.signal(signal.SIGHUP)
        daemon.says("msg=reloaded")
        works(w)
        daemon.stop()


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--under-the-unit":
        BINARY = sys.argv[3]
        under_the_unit(sys.argv[2])
        os.execv(sys.argv[3], sys.argv[3:])
    sys.exit(run_tests(TESTS))
