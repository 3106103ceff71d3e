/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of sd_notify(3), without its library. */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/socket.h"
#include "base/str.h"
#include "daemon/service.h"

enum hk_code hk_service_open(struct hk_service *s, const char *where, struct hk_err *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    s->fd = -1;
    if (!where || !where[0])
        return HK_OK;
    size_t len = strlen(where);
    if ((where[0] != '/' && where[0] != '@') || len < 2 || len >= sizeof to.sun_path)
        return hk_err_set(err, HK_INVALID, "NOTIFY_SOCKET is neither a path nor @ and a name");
    memcpy(to.sun_path, where, len);
    if (where[0] == '@')
        to.sun_path[0] = '\0';
    int fd = hk_socket(AF_UNIX, SOCK_DGRAM, 0);
    /* an abstract name ends with the address, a path with a NUL */
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (where[0] == '/'));
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, n) != 0) {
        if (fd >= 0)
            (void)close(fd);
        return hk_err_set(err, HK_UNAVAILABLE, "NOTIFY_SOCKET cannot be reached");
    }
    s->fd = fd;
    return HK_OK;
}

void hk_service_close(struct hk_service *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
}

void hk_service_tell(struct hk_service *s, const char *state)
{
    if (s->fd >= 0)
        (void)!send(s->fd, state, strlen(state), MSG_NOSIGNAL);
}

uint64_t hk_service_watchdog_ms(const char *usec, const char *pid, int64_t own_pid)
{
    uint64_t us = 0;
    int64_t who = own_pid;
    if (!usec || hk_parse_u64(hk_str_of(usec), &us, NULL) != HK_OK)
        return 0;
    if (pid && pid[0] && (hk_parse_i64(hk_str_of(pid), &who, NULL) != HK_OK || who != own_pid))
        return 0;
    return us / 1000;
}
