#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container image: what it is made of, and a relay in it, run as a strict cluster would (read-only root, not root, no
capability, no new privilege) by runc or crun, or in a chroot under the same rules where neither can run. Speaks TAP; running it wants root.
`make image-test` calls it.

Usage: image.py IMAGE.tar [BUILD_DIR]    BUILD_DIR: make the image a second time from it; it must be the same bytes. An empty RUNTIME= asks
neither of them."""
import contextlib
import ctypes
import gzip
import hashlib
import http.client
import io
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True  # the source folder stays as it is
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
ARGUMENTS, sys.argv[1:] = sys.argv[1:], ["/bin/false"]  # no program but the image's
from ports import free_port
from support import Receiver, Skip, run_tests, until

TESTS = []


def test(function):
    TESTS.append(function)
    return function


# ---- what it is made of ----

class Image:
    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
        index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layer = gzip.decompress(self.blob(self.manifest["layers"][0]))

    def blob(self, descriptor):
        data = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        assert len(data) == descriptor["size"] and "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"], descriptor
        return data

    def members(self):
        with tarfile.open(fileobj=io.BytesIO(self.layer)) as tar:
            return tar.getmembers()

    def unpack(self, folder):
        with tarfile.open(fileobj=io.BytesIO(self.layer)) as tar:
            for member in tar.getmembers():
                tar.extract(member, folder, numeric_owner=True)


def image():
    return Image(ARGUMENTS[0])


@test
def every_digest_and_size_is_right():
    it = image()
    assert json.loads(it.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert it.config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(it.layer).hexdigest()]
    assert it.manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    old, = json.loads(it.files["manifest.json"])
    assert json.loads(it.files[old["Config"]]) == it.config and gzip.decompress(it.files[old["Layers"][0]]) == it.layer


@test
def there_is_nothing_in_it_to_attack_with():
    it = image()
    members = it.members()
    names = ["/" + m.name for m in members]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", it.config["config"]["User"]), it.config["config"]
    assert not [m.name for m in members if m.mode & 0o6000], "setuid"
    assert not [n for n in names if re.search(r"/(sh|bash|dash|busybox|python3?|perl|apt|dpkg)$", n)], names
    writable = {"/" + m.name for m in members if m.uid != 0 or m.mode & 0o022}
    assert writable == {"/tmp", "/var/lib/hikyaku"}, writable
    programs = [n for n in names if "/bin/" in n or "/libexec/" in n]
    assert sorted(os.path.basename(n) for n in programs if "." not in n and n.rsplit("/", 1)[1].startswith("hikyaku-") or n.endswith("/bin/hikyaku")) \
        == ["hikyaku", "hikyaku-jq"], programs
    print(f"# {len(names)} files and folders, {len(it.layer) / 1e6:.1f} MB")


@test
def every_library_has_its_licence():
    if not shutil.which("dpkg-query"):
        raise Skip("not Debian: nobody knows which package a file is of")
    names = {"/" + m.name for m in image().members()}
    packages = {n.split("/")[4] for n in names if n.startswith("/usr/share/doc/") and n.endswith("/copyright")}
    assert {"libc6", "libpq5", "libsqlite3-0", "libuv1", "libmicrohttpd12"} <= packages, packages


@test
def made_again_it_is_the_same_bytes():
    if len(ARGUMENTS) < 2:
        raise Skip("no build to make it from")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "tools/image", ARGUMENTS[1], f"{folder}/again.tar"], check=True, capture_output=True, umask=0o077,
                       env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"})
        assert pathlib.Path(ARGUMENTS[0]).read_bytes() == pathlib.Path(folder, "again.tar").read_bytes()


# ---- a relay in it ----

class Pod:
    """The image unpacked, a volume for the store, a folder with the configuration."""

    def __init__(self, folder):
        self.folder, self.config = pathlib.Path(folder), image().config["config"]
        self.uid, self.gid = map(int, self.config["User"].split(":"))
        self.root, self.volume, self.settings = self.folder / "rootfs", self.folder / "volume", self.folder / "settings"
        os.chmod(self.folder, 0o755)
        for place in (self.root, self.volume, self.settings):
            place.mkdir(mode=0o755)
        image().unpack(self.root)
        os.chown(self.volume, self.uid, self.gid)
        self.children, self.n = [], 0
        self.runtime = self.choose()

    def choose(self):
        """A container runtime that can run what is in the image, else a chroot."""
        wanted = os.environ.get("RUNTIME", "runc crun").split()
        for runtime in (name for name in wanted if shutil.which(name)):
            self.oci = [runtime, *(["--cgroup-manager=disabled"] if runtime == "crun" else [])]
            done = subprocess.run(self.contained("--version"), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            if done.returncode == 0 and done.stdout.startswith("hikyaku "):
                print(f"# run by {runtime}")
                return self.contained
            print(f"# {runtime} cannot run here: {(done.stdout + done.stderr).strip()[-200:]}")
        print("# run in a chroot")
        return self.chroot

    def command(self, *arguments):
        return [*self.config["Entrypoint"], *arguments]

    def contained(self, *arguments):
        """Network and its ports are the machine's, so that receiver and probes are reached."""
        self.n += 1
        bundle = self.folder / f"bundle-{self.n}"
        bundle.mkdir()
        bind = lambda source, target, mode: {"type": "bind", "source": str(source), "destination": target, "options": ["bind", mode]}
        spec = {"ociVersion": "1.0.0", "root": {"path": str(self.root), "readonly": True},
                "process": {"user": {"uid": self.uid, "gid": self.gid}, "args": self.command(*arguments), "env": self.config["Env"],
                            "cwd": self.config["WorkingDir"], "noNewPrivileges": True,
                            "capabilities": {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")}},
                "mounts": [{"type": "proc", "source": "proc", "destination": "/proc"},
                           {"type": "tmpfs", "source": "tmpfs", "destination": "/dev", "options": ["nosuid", "mode=755", "size=64k"]},
                           bind(self.volume, "/var/lib/hikyaku", "rw"), bind(self.settings, "/etc/hikyaku", "ro")],
                "linux": {"namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc")]}}
        (bundle / "config.json").write_text(json.dumps(spec), encoding="utf-8")
        state = ["--root", str(self.folder / "state")]
        return [*self.oci, *state, "run", "--bundle", str(bundle), f"hikyaku-{os.getpid()}-{self.n}"]

    def chroot(self, *arguments):
        mounts = ('root=$1; shift; mount --bind "$root" "$root"; mount -t proc proc "$root/proc"; '
                  'mount --bind "$1" "$root/var/lib/hikyaku"; mount --bind "$2" "$root/etc/hikyaku"; shift 2; '
                  'mount --bind /dev "$root/dev"; mount -o remount,bind,ro "$root"; exec "$@"')
        for name in ("proc", "dev"):
            (self.root / name).mkdir(exist_ok=True)
        return ["unshare", "--mount", "--ipc", "--uts", "--propagation", "private", "sh", "-ec", mounts, "sh", str(self.root), str(self.volume),
                str(self.settings), sys.executable, __file__, "--in-chroot", str(self.root), str(self.uid), self.config["WorkingDir"],
                *self.config["Env"], "--", *self.command(*arguments)]

    def run(self, *arguments):
        done = subprocess.run(self.runtime(*arguments), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def start(self):
        self.log_path = self.folder / f"log-{self.n}"
        with open(self.log_path, "wb") as log:
            process = subprocess.Popen(self.runtime(*self.config["Cmd"]), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.children.append(process)
        return process

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def close(self):
        for child in self.children:
            if child.poll() is None:
                child.terminate()  # a runtime hands it on, and ends with the relay
            child.wait()


def in_chroot(root, uid, cwd, *rest):
    """What a runtime does before it starts a program, without namespaces."""
    cut = rest.index("--")
    os.chroot(root)
    os.chdir(cwd)
    libc = ctypes.CDLL(None)
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)  # out of the bounding set
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
    command = rest[cut + 1:]
    os.execve(command[0], command, dict(pair.split("=", 1) for pair in rest[:cut]))


@contextlib.contextmanager
def a_pod():
    if os.geteuid() != 0:
        raise Skip("containers and mounts need root here")
    with tempfile.TemporaryDirectory(prefix="hikyaku-image-") as folder:
        pod, receiver = Pod(folder), Receiver()
        try:
            yield pod, receiver
        finally:
            pod.close()
            receiver.close()


def configure(pod, receiver):
    """As docs/container.md says: probes on a port of their own. Returns that port."""
    port = free_port()
    config = {"store": "sqlite:/var/lib/hikyaku/outbox.db", "admin": {"listen": "none", "health_listen": f"127.0.0.1:{port}"},
              "destinations": {"shop": {"http": {"url": receiver.url("shop")}, "allow": ["127.0.0.0/8"]}}}
    path = pod.settings / "hikyaku.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    os.chmod(path, 0o644)
    pod.run("init")
    return port


def insert(pod, name):
    db = sqlite3.connect(pod.volume / "outbox.db", timeout=60, isolation_level=None)
    db.execute("INSERT INTO outbox (destination, event_type, payload, message_id) VALUES ('shop', 'Order', '{}', ?)", (name,))
    db.close()


def probe(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def facts_of_relay(pod):
    """Of the process that runs the relay: in its namespace it has another number."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.stat(path).st_uid == pod.uid and path.joinpath("cmdline").read_bytes().split(b"\0")[-2:-1] == [b"run"]:
                return dict(line.split(":\t", 1) for line in path.joinpath("status").read_text(encoding="ascii").splitlines() if ":\t" in line)
    raise AssertionError("no relay runs")


@test
def the_relay_in_it_relays_answers_probes_and_drains():
    with a_pod() as (pod, receiver):
        port = configure(pod, receiver)
        process = pod.start()
        until(lambda: probe(port, "/readyz") == 200 or process.poll() is not None, pod.log)
        assert process.poll() is None and probe(port, "/livez") == 200, pod.log()
        facts = facts_of_relay(pod)
        assert facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2", facts
        assert all(int(facts[kind], 16) == 0 for kind in ("CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb")), facts
        for i in range(20):
            insert(pod, f"order-{i}")
        until(lambda: len(receiver.accepted("shop")) == 20, pod.log)
        process.send_signal(signal.SIGTERM)
        code = process.wait(120)
        assert code == 0, (code, pod.log())
        assert set(receiver.accepted("shop").values()) == {1}


@test
def repairs_with_jq_work_in_it():
    """The helper and its cage have what they need."""
    with a_pod() as (pod, receiver):
        configure(pod, receiver)
        db = sqlite3.connect(pod.volume / "outbox.db", timeout=60, isolation_level=None)
        db.execute("INSERT INTO dead_letters (message_id, event_type, destination, reason_code, error_message, attempts, first_failed_at, "
                   "last_failed_at, created_at, payload) VALUES ('dead', 'Order', 'shop', 'HTTP_422', 'no', 1, '2026-01-01T00:00:00.000Z', "
                   "'2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '{\"a\":1}')")
        db.close()
        said = pod.run("dead", "fix", "--reason-code", "HTTP_422", "--jq", ".a = 2", "--dry-run", "--reason", "test")
        assert '+  "a": 2' in said and "1 would be changed, 0 unchanged, 0 failed" in said, said


if __name__ == "__main__":
    if ARGUMENTS[:1] == ["--in-chroot"]:
        in_chroot(*ARGUMENTS[1:])
    sys.exit(run_tests(TESTS))
