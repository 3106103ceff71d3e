# SPDX-License-Identifier: Apache-2.0
"""Google's clients of Cloud Tasks, and an OAuth 2.0 server, fetched once into the build folder: for all programs, stores and later runs. A client that cannot be had skips
its tests, with the reason."""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from support import Skip

HERE = pathlib.Path(__file__).resolve().parent
MOST_SECONDS = 400  # to fetch or build one: far more than it takes, so that a test ends
PYTHON = ("google-cloud-tasks==2.19.3", "requests>=2.28")
AUTHLIB = ("Authlib==1.3.1", "Flask==3.0.3", "Werkzeug==3.0.4", "cryptography==43.0.1")
WHY_NOT = {}


def step(why, *command, cwd=None, env=None):
    """A step of a recipe, with low priority. None, or why it failed."""
    try:
        done = subprocess.run(["nice", *command], cwd=cwd, env={**os.environ, **(env or {})}, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{why}: it took longer than {MOST_SECONDS} s"
    said = (done.stderr + done.stdout).strip().splitlines() or ["?"]
    return None if done.returncode == 0 else f"{why}: {said[-1][:160]}"


def folder_of(name, wanted, make):
    """The folder that `make` has filled; who comes second waits. What was broken off is made anew."""
    base = os.environ.get("BUILD_DIR") or tempfile.gettempdir()
    folder = pathlib.Path(base) / f"{name}-{hashlib.sha256(wanted).hexdigest()[:12]}"
    if folder in WHY_NOT:
        raise Skip(WHY_NOT[folder])
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "whole").exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        why_not = make(folder)
        if why_not:
            WHY_NOT[folder] = why_not
            shutil.rmtree(folder, ignore_errors=True)
            raise Skip(why_not)
        (folder / "whole").touch()
        return folder


def node():
    """The folder with client.js and its modules."""
    npm = shutil.which("npm")
    if not shutil.which("node") or not npm:
        raise Skip("node and npm are not installed")
    files = [HERE / "tasks_node" / name for name in ("package.json", "package-lock.json", "client.js")]

    def make(folder):
        for file in files:
            shutil.copy(file, folder)
        return step("npm cannot fetch @google-cloud/tasks", npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
    return folder_of("tasks-node", b"".join(file.read_bytes() for file in files), make)


def python():
    """An interpreter that can import google.cloud.tasks_v2."""
    def make(folder):
        return (step("there is no venv", sys.executable, "-m", "venv", str(folder))
                or step("pip cannot fetch google-cloud-tasks", str(folder / "bin/python"), "-m", "pip", "install", "-q", "--no-compile",
                        "--only-binary", ":all:", "--disable-pip-version-check", *PYTHON))
    wanted = " ".join([*PYTHON, sys.version, sys.executable]).encode()
    return folder_of("tasks-python", wanted, make) / "bin/python"


def authlib():
    """An interpreter that can import authlib and flask."""
    def make(folder):
        return (step("there is no venv", sys.executable, "-m", "venv", str(folder))
                or step("pip cannot fetch Authlib", str(folder / "bin/python"), "-m", "pip", "install", "-q", "--no-compile",
                        "--only-binary", ":all:", "--disable-pip-version-check", *AUTHLIB))
    wanted = " ".join([*AUTHLIB, sys.version, sys.executable]).encode()
    return folder_of("authlib", wanted, make) / "bin/python"


def go():
    """The program of tasks_go."""
    compiler = shutil.which("go")
    if not compiler:
        raise Skip("go is not installed")
    files = [HERE / "tasks_go" / name for name in ("go.mod", "go.sum", "main.go")]

    def make(folder):
        for file in files:
            shutil.copy(file, folder)
        return step("go cannot build it", compiler, "build", "-p", "1", "-o", "tasks", ".", cwd=folder, env={"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"})
    return folder_of("tasks-go", b"".join(file.read_bytes() for file in files), make) / "tasks"
