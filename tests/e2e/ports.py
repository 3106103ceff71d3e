# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that cannot choose one themselves. Where a server can listen on port 0 and say which port it got, prefer that.

A port that the kernel just gave out and took back is not free for long: the next outgoing connection of any process may get it.
free_port() therefore hands out ports that the kernel never gives to outgoing connections, and each to one process only: a
socket by an abstract name reserves the port until the process ends. Such names, like ports, belong to a network namespace.
tests/contract/ports.c follows the same rule with the same names."""
import random
import socket

LOWEST, HIGHEST = 10240, 65535  # below are the well-known ports
ENOUGH = 1000
RESERVED = []  # sockets, until the process ends


def candidates():
    """Ports beside the range of outgoing connections; all ports where that range leaves too few."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        low, high = map(int, file.read().split())
    beside = [*range(LOWEST, min(low, HIGHEST + 1)), *range(max(high + 1, LOWEST), HIGHEST + 1)]
    return beside if len(beside) >= ENOUGH else list(range(LOWEST, HIGHEST + 1))


def reserve(port):
    """A socket that keeps the port from other processes that ask for one; None when one of them has it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        name.bind(f"\0hikyaku-test-port-{port}")
        return name
    except OSError:
        name.close()
        return None


def is_unused(port):
    """On every address: the last owner's server may still be shutting down, and others may listen here, too."""
    with socket.socket() as s:
        try:
            s.bind(("", port))
            return True
        except OSError:
            return False


def free_port():
    """A port where nobody listens, and where nobody will but the caller."""
    ports = candidates()
    first = random.SystemRandom().randrange(len(ports))
    for port in ports[first:] + ports[:first]:
        name = reserve(port)
        if name and is_unused(port):
            RESERVED.append(name)
            return port
        if name:
            name.close()
    raise AssertionError("every port is taken")
