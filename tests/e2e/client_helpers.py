#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages in clients/, each with its own tests in its own ecosystem, on one PostgreSQL and on SQLite; then a relay delivers what they wrote. A
language whose tools or packages cannot be had is skipped, with the reason. Speaks TAP.

Usage: STORE=postgres client_helpers.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is
import clients
from support import POSTGRES, Skip, World, clean_environment, run_tests

CLIENTS = pathlib.Path(__file__).resolve().parents[2] / "clients"
CONTRACT = json.loads((CLIENTS / "contract.json").read_text(encoding="utf-8"))
MOST_SECONDS = 400
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def files_of(language, *names):
    """What a client's tests need, as bytes: who changes one gets a new folder."""
    return b"".join((CLIENTS / language / name).read_bytes() for name in names)


def copy_of(language, folder):
    """The client beside contract.json, so that nothing is built in the source folder."""
    target = folder / language
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(CLIENTS / language, target, ignore=shutil.ignore_patterns("node_modules", "target", "__pycache__"))
    shutil.copy(CLIENTS / "contract.json", folder)
    return target


def keeps_the_contract(command, cwd, env=None):
    """Runs the package's tests; then each of their messages arrives, and what was rolled back does not."""
    with World(("shop",)) as w:
        w.try_hikyaku("--db", f"sqlite:{w.path('app.db')}", "init")
        given = {**clean_environment(), "HIKYAKU_TEST_PG": w.url, "HIKYAKU_TEST_SQLITE": str(w.path("app.db")), **(env or {})}
        done = subprocess.run(["nice", *command], cwd=cwd, text=True, capture_output=True, timeout=MOST_SECONDS, check=False, env=given)
        assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
        written = dict(w.sql("SELECT event_type, count(*) FROM outbox GROUP BY 1"))
        accepted = {c["message"]["event_type"] for c in CONTRACT["cases"] if "row" in c}
        assert accepted <= set(written) and "Never" not in written, written
        later = w.sql("SELECT count(*) FROM outbox WHERE not_before > clock_timestamp()")[0][0]
        w.daemon().ready()
        w.settled(sent=sum(written.values()) - later, pending=later)
        got = {}
        for request in w.receiver.arrived():
            got.setdefault(request.headers["hikyaku-event"], []).append(request)
        upload = next(c["message"] for c in CONTRACT["cases"] if c["name"] == "bytes")
        assert base64.b64decode(upload["base64"]) in [r.body for r in got["Upload"]], [r.body for r in got["Upload"]]
        plain = next(c["message"] for c in CONTRACT["cases"] if c["name"] == "the least")
        assert {r.body for r in got["OrderCreated"]} == {plain["text"].encode()}, got["OrderCreated"]
        if "OrderPaid" in got:
            check_every_column(got["OrderPaid"][0])


def check_every_column(request):
    given = next(c["message"] for c in CONTRACT["cases"] if c["name"] == "every column")
    for name, value in (("x-tenant", "acme"), ("x-note", given["headers"]["X-Note"]), ("content-type", "text/xml"),
                        ("idempotency-key", given["idempotency_key"]), ("x-correlation-id", given["correlation_id"])):
        assert request.headers[name] == value, (name, request.headers)


def check_python(folder):
    """Types, too."""
    place = copy_of("python", folder)
    done = subprocess.run(["nice", folder / "bin/python", "-m", "mypy", "--strict", "--cache-dir", folder / "mypy", "hikyaku_outbox"], cwd=place, text=True,
                          capture_output=True, timeout=MOST_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@test
def python_with_psycopg_sqlite3_and_sqlalchemy():
    def make(folder):
        return (clients.step("there is no venv", sys.executable, "-m", "venv", str(folder))
                or clients.step("pip cannot fetch the drivers", str(folder / "bin/python"), "-m", "pip", "install", "-q", "--no-compile",
                                "--only-binary", ":all:", "--disable-pip-version-check", "-r", str(CLIENTS / "python/requirements-test.txt")))
    wanted = files_of("python", "requirements-test.txt") + sys.version.encode()
    folder = clients.folder_of("helper-python", wanted, make)
    keeps_the_contract([folder / "bin/python", "-B", "-m", "unittest", "discover", "-s", "tests"], check_python(folder))


@test
def node_with_pg_better_sqlite3_and_prisma():
    npm = shutil.which("npm")
    if not shutil.which("node") or not npm:
        raise Skip("node and npm are not installed")

    def make(folder):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(CLIENTS / "node" / name, folder)
        return (clients.step("npm cannot fetch the drivers", npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
                # Not optimized: that takes minutes, for a handful of statements.
                or clients.step("npm cannot build better-sqlite3", npm, "run", "build-debug", cwd=folder / "node_modules/better-sqlite3"))
    folder = clients.folder_of("helper-node", files_of("node", "package.json", "package-lock.json"), make)
    place = copy_of("node", folder)
    # Prisma would fetch the program of its migrations from elsewhere; nothing here migrates.
    keeps_the_contract([npm, "run", "--silent", "test"], place, {"CHECKPOINT_DISABLE": "1", "PRISMA_SCHEMA_ENGINE_BINARY": "/bin/true"})


@test
def go_with_database_sql_and_pgx():
    compiler = shutil.which("go")
    if not compiler:
        raise Skip("go is not installed")
    settings = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}

    def make(folder):
        place = copy_of("go", folder)
        return clients.step("go cannot build the tests", compiler, "test", "-p", "1", "-c", "-o", str(folder / "contract.test"), ".",
                            cwd=place / "contracttest", env=settings)
    sources = sorted(str(p.relative_to(CLIENTS / "go")) for p in (CLIENTS / "go").rglob("*") if p.suffix in (".go", ".mod", ".sum"))
    folder = clients.folder_of("helper-go", files_of("go", *sources), make)
    copy_of("go", folder)
    keeps_the_contract([folder / "contract.test", "-test.v=false"], folder / "go/contracttest")


@test
def java_with_jdbc_and_spring():
    maven = shutil.which("mvn")
    if not maven or not shutil.which("javac"):
        raise Skip("mvn and a JDK are not installed")

    def make(folder):
        place = copy_of("java", folder)
        return clients.step("mvn cannot fetch or build it", maven, "-B", "-q", f"-Dmaven.repo.local={folder / 'm2'}", "test",
                            "-Dtest=None", "-Dsurefire.failIfNoSpecifiedTests=false", cwd=place)
    folder = clients.folder_of("helper-java", files_of("java", "pom.xml"), make)
    place = copy_of("java", folder)
    keeps_the_contract([maven, "-B", "-q", f"-Dmaven.repo.local={folder / 'm2'}", "test"], place)


if __name__ == "__main__":
    if not POSTGRES:
        os.environ["STORE"] = "postgres"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    sys.exit(run_tests(TESTS))
