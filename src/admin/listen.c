/* SPDX-License-Identifier: Apache-2.0 */
/* Our own socket instead of the HTTP library's: it says why it cannot listen. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "admin/listen.h"
#include "base/cidr.h"
#include "base/parse.h"
#include "base/socket.h"
#include "base/str.h"

enum {
    BACKLOG = 4096 /* up to net.core.somaxconn; a client beyond waits a second for its next try */
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

/* ---- in the file system ---- */

static enum hk_code refuse_path(const char *path, enum hk_code code, const char *why, struct hk_err *err)
{
    return hk_err_set(err, code, "cannot listen on %s: %s", path, why);
}

/* Nobody may remove a socket between our look at it and our bind: whoever would has this lock first. */
static enum hk_code lock_path(const char *path, int *out_lock, struct hk_err *err)
{
    char name[sizeof((struct sockaddr_un *)NULL)->sun_path + sizeof ".lock"];
    (void)snprintf(name, sizeof name, "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return refuse_path(path, HK_INVALID, strerror(errno), err);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int why = errno;
        (void)close(fd);
        return refuse_path(path, why == EWOULDBLOCK ? HK_BUSY : HK_INVALID,
                           why == EWOULDBLOCK ? "another relay listens there" : strerror(why), err);
    }
    *out_lock = fd;
    return HK_OK;
}

/* With the lock held. What a relay has left that was killed goes; what is not a socket, or is somebody's, stays. */
static enum hk_code remove_stale(const struct sockaddr_un *at, struct hk_err *err)
{
    struct stat st;
    if (lstat(at->sun_path, &st) != 0)
        return errno == ENOENT ? HK_OK : refuse_path(at->sun_path, HK_INVALID, strerror(errno), err);
    if (!S_ISSOCK(st.st_mode))
        return refuse_path(at->sun_path, HK_INVALID, "there is a file that is not a socket", err);
    int fd = hk_socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return refuse_path(at->sun_path, HK_INVALID, strerror(errno), err);
    int why = connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 ? 0 : errno;
    (void)close(fd);
    if (why != ECONNREFUSED) /* also when nobody accepts just now, or it is not ours to ask */
        return refuse_path(at->sun_path, HK_BUSY, "another process listens there", err);
    if (unlink(at->sun_path) != 0 && errno != ENOENT)
        return refuse_path(at->sun_path, HK_INVALID, strerror(errno), err);
    return HK_OK;
}

static enum hk_code bind_path(const struct sockaddr_un *at, int *out_fd, struct hk_err *err)
{
    int fd = hk_socket(AF_UNIX, SOCK_STREAM, 0);
    /* The mode before the name: it is never open to others, not for a moment. */
    if (fd >= 0 && fchmod(fd, 0600) == 0 && bind(fd, (const struct sockaddr *)at, sizeof *at) == 0 &&
        chmod(at->sun_path, 0600) == 0 && listen(fd, BACKLOG) == 0) {
        *out_fd = fd;
        return HK_OK;
    }
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    return refuse_path(at->sun_path, why == EADDRINUSE ? HK_BUSY : HK_INVALID, strerror(why), err);
}

enum hk_code hk_listen_unix(const char *path, int *out_fd, int *out_lock, struct hk_err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int lock = -1;
    if (!hk_str_copy(at.sun_path, sizeof at.sun_path, hk_str_of(path)) || !path[0])
        return refuse_path(path, HK_INVALID, "the path is too long for a socket (107 bytes)", err);
    enum hk_code rc = lock_path(path, &lock, err);
    if (rc == HK_OK)
        rc = remove_stale(&at, err);
    if (rc == HK_OK)
        rc = bind_path(&at, out_fd, err);
    if (rc == HK_OK)
        *out_lock = lock;
    else if (lock >= 0)
        (void)close(lock);
    return rc;
}

int64_t hk_listen_peer_uid(int fd)
{
    struct ucred who;
    socklen_t len = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 ? (int64_t)who.uid : -1;
}

void hk_listen_unix_end(const char *path, int lock)
{
    (void)unlink(path);
    (void)close(lock);
}
