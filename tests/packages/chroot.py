# SPDX-License-Identifier: Apache-2.0
"""A plain Debian in a folder, for the tests that install or build in one: the machine itself stays as it is. Wants root and a Debian mirror (the
machine's own apt sources say which)."""
import os
import pathlib
import re
import subprocess
import tempfile

from support import Skip

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, (command, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def codename():
    return re.search(r"^VERSION_CODENAME=(\S+)", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)[1]


def sources():
    """[(URI, suite, component)] of Debian's own, as this machine has them."""
    wanted = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    rows = {tuple(line.split("|")) for line in output("apt-get", "indextargets", "--format", wanted, "Created-By: Packages").splitlines()}
    return sorted(row[1:] for row in rows if row[0] == "Debian")


def base():
    """A tar of what debootstrap makes, kept in build/chroot."""
    kept = ROOT / "build/chroot" / f"{codename()}.tar"
    if kept.exists():
        return kept
    mirror = next((uri for uri, suite, _ in sources() if suite == codename()), None)
    if not mirror:
        raise Skip("no apt source of Debian says where to get a plain one (apt-get update?)")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        os.chmod(folder, 0o755)
        output("debootstrap", "--variant=minbase", codename(), folder, mirror)
        aside = kept.with_suffix(".new")
        output("tar", "--numeric-owner", "--exclude=./var/cache/apt/archives/*.deb", "-cf", aside, "-C", folder, ".")
        aside.rename(kept)
    return kept


class Chroot:
    """Each command has a mount namespace of its own, so that nothing stays mounted."""

    def __init__(self, root, fresh=True):
        """`root`: an empty folder that belongs to root; or, not `fresh`, one that was made before."""
        self.root = pathlib.Path(root)
        if not fresh:
            return
        os.chmod(self.root, 0o755)
        output("tar", "--numeric-owner", "-xf", base(), "-C", self.root)
        lines = [f"deb {uri} {suite} {component}\n" for uri, suite, component in sources()]
        self.write("/etc/apt/sources.list", "".join(lines))
        settings = [line for line in output("apt-config", "dump").splitlines() if line.startswith("Acquire::") and '""' not in line]
        self.write("/etc/apt/apt.conf.d/99acquire", "\n".join(settings) + "\n")
        for name in ("/etc/resolv.conf", "/etc/hosts"):
            self.write(name, pathlib.Path(name).read_text(encoding="utf-8"))

    def path(self, name):
        return self.root / str(name).lstrip("/")

    def write(self, name, text, mode=0o644, group=0):
        path = self.path(name)
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
        os.chown(path, 0, group)
        os.chmod(path, mode)

    def command(self, *command):
        return ("unshare", "--mount", "--propagation", "private", "sh", "-ec",
                'root=$1; shift; mount -t proc proc "$root/proc"; exec chroot "$root" "$@"', "sh", str(self.root), *command)

    def run(self, *command):
        path = "/usr/sbin:/usr/bin:/sbin:/bin"
        return output(*self.command(*command), env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": path, "LC_ALL": "C.UTF-8"})

    def exists(self, name):
        return os.path.lexists(self.path(name))
