/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel never gives these ports to outgoing connections, and each belongs to one process: a socket by an abstract
 * name reserves it. The names are those of tests/e2e/ports.py. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ports.h"

enum {
    LOWEST = 10240, /* below are the well-known ports */
    HIGHEST = 65535,
    ENOUGH = 1000,
};

/* The range of outgoing connections; none (0 to 0) where it leaves too few others. */
static void read_outgoing(int *out_low, int *out_high)
{
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
    if (!f || fscanf(f, "%d %d", out_low, out_high) != 2) /* NOLINT(cert-err34-c): the kernel's own numbers */
        abort();
    (void)fclose(f);
    int below = *out_low > LOWEST ? *out_low - LOWEST : 0;
    int above = *out_high < HIGHEST ? HIGHEST - *out_high : 0;
    if (below + above < ENOUGH)
        *out_low = *out_high = 0;
}

/* A socket that keeps the port from other processes that ask for one; -1 when one of them has it. */
static int reserve(int port)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "hikyaku-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at,
                        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* On every address: the last owner's server may still be shutting down, and others may listen here, too. */
static bool is_unused(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool unused = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        (void)close(fd);
    return unused;
}

int free_port(void)
{
    int low, high;
    read_outgoing(&low, &high);
    unsigned first;
    if (getrandom(&first, sizeof first, 0) != sizeof first)
        abort();
    const unsigned n = HIGHEST - LOWEST + 1;
    for (unsigned i = 0; i < n; i++) {
        int port = LOWEST + (int)((first % n + i) % n);
        int fd = port >= low && port <= high ? -1 : reserve(port);
        if (fd >= 0 && is_unused(port))
            return port; /* the descriptor stays open: it is the reservation */
        if (fd >= 0)
            (void)close(fd);
    }
    abort();
}
