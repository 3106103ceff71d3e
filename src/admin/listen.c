/* SPDX-License-Identifier: Apache-2.0 */
/* Our own socket instead of the HTTP library's: it says why it cannot listen. */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/listen.h"
#include "base/cidr.h"
#include "base/parse.h"
#include "base/socket.h"
#include "base/str.h"

enum {
    BACKLOG = 256 /* a client beyond waits a second for its next try */
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool parse(const char *where, union address *out, socklen_t *out_len)
{
    struct hk_str rest = hk_str_of(where), host;
    struct hk_ip ip;
    uint64_t port = 0;
    if (where[0] == '[') {
        rest = (struct hk_str){where + 1, rest.len - 1};
        host = hk_str_cut(&rest, ']');
        (void)hk_str_cut(&rest, ':');
    } else {
        host = hk_str_cut(&rest, ':');
        if (hk_str_eqi(host, hk_str_of("localhost")))
            host = hk_str_of("127.0.0.1");
    }
    if (!hk_ip_parse(host, &ip) || hk_parse_u64(rest, &port, NULL) != HK_OK || port > 65535)
        return false;
    memset(out, 0, sizeof *out);
    if (ip.v6) {
        out->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        memcpy(&out->v6.sin6_addr, ip.addr, 16);
        *out_len = sizeof out->v6;
    } else {
        out->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        memcpy(&out->v4.sin_addr, ip.addr, 4);
        *out_len = sizeof out->v4;
    }
    return true;
}

static void format(int fd, char out[HK_LISTEN_TEXT_MAX])
{
    union address bound;
    socklen_t len = sizeof bound;
    char text[HK_IP_TEXT_MAX];
    memset(&bound, 0, sizeof bound);
    (void)getsockname(fd, &bound.any, &len);
    struct hk_ip ip = {.v6 = bound.any.sa_family == AF_INET6};
    if (ip.v6)
        memcpy(ip.addr, &bound.v6.sin6_addr, 16);
    else
        memcpy(ip.addr, &bound.v4.sin_addr, 4);
    (void)hk_ip_format(&ip, text);
    (void)snprintf(out, HK_LISTEN_TEXT_MAX, ip.v6 ? "[%s]:%u" : "%s:%u", text,
                   ntohs(ip.v6 ? bound.v6.sin6_port : bound.v4.sin_port));
}

static int listen_at(const union address *at, socklen_t len)
{
    int on = 1, off = 0;
    int fd = hk_socket(at->any.sa_family, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, &at->any, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

enum hk_code hk_listen(const char *where, int *out_fd, char out_address[HK_LISTEN_TEXT_MAX],
                       struct hk_err *err)
{
    union address at;
    socklen_t len = 0;
    if (!parse(where, &at, &len))
        return hk_err_set(err, HK_INVALID, "%s is not an address and a port", where);
    int fd = listen_at(&at, len);
    if (fd < 0)
        return hk_err_set(err, errno == EADDRINUSE ? HK_BUSY : HK_INVALID, "cannot listen on %s: %s", where,
                          errno == EADDRINUSE ? "the port is taken" : strerror(errno));
    format(fd, out_address);
    *out_fd = fd;
    return HK_OK;
}
