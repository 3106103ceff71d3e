# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL for the end-to-end tests: a server of our own in a temporary folder, started when first asked for, PgBouncer
before it when POOLER=pgbouncer is set, and a connection that speaks as sqlite3's do, so that one test serves both stores."""
import atexit
import datetime
import glob
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from ports import free_port

POOLED = os.environ.get("POOLER") == "pgbouncer"  # relays and commands go through it
SYSTEM_PYTHON = "/usr/bin/python3"  # where Debian's python3-psycopg lies

try:
    import psycopg
    import psycopg.adapt
except ImportError:
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and os.path.exists(SYSTEM_PYTHON) and \
            subprocess.run([SYSTEM_PYTHON, "-c", "import psycopg"], capture_output=True, check=False).returncode == 0:
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    psycopg = None


def why_not():
    """Why there is no PostgreSQL to test with; None: there is."""
    if not psycopg:
        return "python3-psycopg is not installed"
    if not find_bin():
        return "no PostgreSQL server (15 or later) is installed"
    return "PgBouncer is not installed (Debian: pgbouncer)" if POOLED and not find_pooler() else None


def find_bin():
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: float(p.split("/")[4]), reverse=True)
    folders += [os.path.dirname(shutil.which("initdb"))] if shutil.which("initdb") else []
    return next((f for f in folders if os.access(f"{f}/initdb", os.X_OK)), None)


def find_pooler():
    return shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")


# Ends what runs in the folder when the test program is gone, however it ended.
KEEPER = """
import glob, os, shutil, signal, subprocess, sys, time
sys.stdin.read()
for name in [n for place in ("/*.pid", "/data/postmaster.pid", "/disk/data/postmaster.pid") for n in glob.glob(sys.argv[1] + place)]:
    try:
        pid = int(open(name).readline())
        os.kill(pid, signal.SIGQUIT)
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.02)
    except (OSError, ValueError):
        pass
if os.path.ismount(sys.argv[1] + "/disk"):
    subprocess.run(["umount", "-l", sys.argv[1] + "/disk"])
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


class Cluster:
    """One server. Root may not run it: then the user `postgres` does."""

    def __init__(self, disk=None, **settings):
        """`disk`: a function that makes a file system for the data of a folder that it is given."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hikyaku-pg-"))
        self.data, self.port, self.bin = self.folder / ("disk/data" if disk else "data"), free_port(), find_bin()
        self.owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self.databases, self.process, self.template = 0, None, None
        self.keeper = subprocess.Popen([sys.executable, "-c", KEEPER, str(self.folder)], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        if self.owner:
            os.chown(self.folder, self.owner.pw_uid, self.owner.pw_gid)
            os.chmod(self.folder, 0o755)
        if disk:
            (self.folder / "disk").mkdir()
            disk(self.folder / "disk")
            if self.owner:
                os.chown(self.folder / "disk", self.owner.pw_uid, self.owner.pw_gid)
        self.run("initdb", "-D", str(self.data), "-A", "trust", "-U", "hikyaku", "-E", "UTF8", "--locale=C", "--no-sync",
                 "--no-instructions")
        self.settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder,
                         "shared_buffers": "64MB", "max_connections": 200, "max_prepared_transactions": 20,
                         "fsync": "off", "timezone": "UTC", "max_wal_size": "256MB", **settings}
        atexit.register(self.close)
        self.start()

    def become(self):
        os.setsid()
        if self.owner:
            os.setgroups([])
            os.setgid(self.owner.pw_gid)
            os.setuid(self.owner.pw_uid)

    def run(self, program, *args):
        done = subprocess.run([f"{self.bin}/{program}", *args], capture_output=True, text=True, check=False,
                              preexec_fn=self.become, cwd=self.folder, timeout=120)
        assert done.returncode == 0, (program, done.stdout, done.stderr)

    def start(self):
        options = [f"-c{k}={v}" for k, v in self.settings.items()]
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen([f"{self.bin}/postgres", "-D", str(self.data), *options], cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=self.become)
        end = time.monotonic() + 60
        while True:
            try:
                self.connect("postgres").close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < end and self.process.poll() is None, self.log()
                time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        """SIGINT: fast; SIGQUIT: immediate, as in a crash."""
        self.process.send_signal(how)
        self.process.wait(60)

    def restart(self, how=signal.SIGQUIT):
        self.stop(how)
        self.start()

    def log(self):
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")[-3000:]

    def close(self):
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        self.keeper.stdin.close()
        self.keeper.wait(60)

    def url(self, database, port=None):
        return f"postgres://hikyaku@127.0.0.1:{port or self.port}/{database}"

    def create(self, template="template1"):
        """A fresh database, or a copy; its name."""
        with LOCK:
            self.databases += 1
            name = f"t{self.databases}_{os.getpid()}"
            self.connect("postgres").execute(f"CREATE DATABASE {name} TEMPLATE {template}").close()
        return name

    def create_like(self, fill):
        """A copy of one that `fill` has filled, given its URL: it is called once."""
        with LOCK:
            if not self.template:
                name = self.create()
                fill(self.url(name))
                self.template = name
            return self.create(self.template)

    def drop(self, name):
        self.connect("postgres").execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)").close()

    def connect(self, database):
        return Connection(self.url(database))


class Pooler:
    """PgBouncer in transaction mode. Root may not run it either."""

    def __init__(self, server):
        self.server, self.port = server, free_port()
        settings = server.folder / f"pgbouncer-{self.port}.ini"
        settings.write_text(f"""[databases]
* = host=127.0.0.1 port={server.port} user=hikyaku
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
pidfile = {server.folder}/pgbouncer-{self.port}.pid
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
""", encoding="ascii")
        with open(server.folder / "pgbouncer.log", "ab") as log:
            self.process = subprocess.Popen([find_pooler(), str(settings)], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=server.folder, preexec_fn=server.become)
        atexit.register(self.close)
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 5).close()
                return
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None, "PgBouncer does not start"
                time.sleep(0.02)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


CLUSTER = []
POOLERS = []
LOCK = threading.RLock()


def cluster():
    """The one that tests share."""
    with LOCK:
        if not CLUSTER:
            CLUSTER.append(Cluster())
        return CLUSTER[0]


def pooler():
    """The one before it."""
    with LOCK:
        if not POOLERS:
            POOLERS.append(Pooler(cluster()))
        return POOLERS[0]


def relay_url(database):
    """As relays and commands shall reach it."""
    return cluster().url(database, pooler().port if POOLED else None)


# ---- a connection that speaks as sqlite3's do ----

class TimeText(psycopg.adapt.Loader if psycopg else object):
    """timestamptz as SQLite has it: RFC 3339 in UTC with milliseconds."""

    def load(self, data):
        text = bytes(data).decode()
        if "infinity" in text:
            return text
        at = datetime.datetime.fromisoformat(text.replace(" ", "T") + (":00" if text[-3] in "+-" else ""))
        return at.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Rows:
    def __init__(self, rows, lastrowid=None):
        self.rows, self.lastrowid = rows, lastrowid

    def fetchall(self):
        return self.rows

    def fetchone(self):
        return self.rows[0] if self.rows else None

    def __iter__(self):
        return iter(self.rows)


def plain(value):
    """Numbers as Python's own, bytes as bytes."""
    return int(value) if type(value).__name__ == "Decimal" else value


class Connection:
    """In autocommit mode; `?` marks parameters."""

    def __init__(self, url):
        self.pg = psycopg.connect(url, autocommit=True, prepare_threshold=None)  # as poolers want it
        self.pg.adapters.register_loader("timestamptz", TimeText)
        self.pg.execute("SET timezone TO 'UTC'")

    def execute(self, text, args=()):
        if text.startswith("BEGIN"):
            text = "BEGIN"
        cursor = self.pg.execute(text.replace("%", "%%").replace("?", "%s"), list(args)) if args else \
            self.pg.execute(text)
        rows = [tuple(plain(v) for v in row) for row in cursor.fetchall()] if cursor.description else []
        done = Rows(rows)
        done.close = self.close
        return done

    def executemany(self, text, many):
        with self.pg.cursor() as cursor:
            cursor.executemany(text.replace("%", "%%").replace("?", "%s"), [list(args) for args in many])

    def close(self):
        self.pg.close()
