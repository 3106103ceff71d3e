# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: the test program has one of its own with a bridge in it, and each seat for a relay another, joined to
the bridge. A seat that is taken off the bridge is partitioned: packets go nowhere, and nobody is told. All of it is gone
when the processes are; nothing of the machine's own network is touched."""
import ctypes
import os
import signal
import subprocess

CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
HUB, NET = "10.77.0.1", "10.77.0.0/24"
LIBC = ctypes.CDLL(None, use_errno=True)


def call(function, *args):
    if function(*args) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


class Nets:
    """`why` says why there is none; then everybody is on the loopback, and nothing can be partitioned."""

    def __init__(self, seats):
        self.seats, self.why = [], None
        try:
            self.move_out()
            for n in range(seats):
                self.seats.append(Seat(n))
        except OSError as failure:
            self.why = f"no network namespaces here: {failure}"
        self.host = "127.0.0.1" if self.why else HUB

    @staticmethod
    def move_out():
        """The whole program, before it has threads."""
        call(LIBC.unshare, CLONE_NEWNET)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "hub", "type", "bridge")
        run("ip", "addr", "add", f"{HUB}/24", "dev", "hub")
        run("ip", "link", "set", "hub", "up")

    def close(self):
        for seat in self.seats:
            seat.close()


class Seat:
    def __init__(self, n):
        self.link, self.cut = f"seat{n}", False
        self.holder = subprocess.Popen(["sleep", "infinity"], preexec_fn=self.alone, start_new_session=True)
        inside = ("nsenter", "-t", str(self.holder.pid), "-n", "ip")
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        run("ip", "link", "set", self.link, "master", "hub", "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "addr", "add", f"10.77.0.{n + 2}/24", "dev", "eth0")
        run(*inside, "link", "set", "eth0", "up")
        self.fd = os.open(f"/proc/{self.holder.pid}/ns/net", os.O_RDONLY)

    @staticmethod
    def alone():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        call(LIBC.unshare, CLONE_NEWNET)

    def enter(self):
        """In a child, before it becomes the relay."""
        call(LIBC.setns, self.fd, CLONE_NEWNET)

    def partition(self):
        self.cut = True
        run("ip", "link", "set", self.link, "nomaster")

    def heal(self):
        run("ip", "link", "set", self.link, "master", "hub")
        self.cut = False

    def close(self):
        os.close(self.fd)
        self.holder.kill()
        self.holder.wait()
